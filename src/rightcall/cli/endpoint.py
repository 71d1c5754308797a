"""Options of every command that talks to a model, and the backend that they select.

@grouped
def ask(*, endpoint: Endpoint, model: Model = "") -> None:
    with backend_errors():
        backend = endpoint.backend(model)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from rightcall.backends.address import API_DEFAULTS, check_api
from rightcall.backends.base import BaseBackend
from rightcall.backends.exchange import Retries, Timeouts
from rightcall.backends.http import Backend
from rightcall.backends.local import LocalBackend
from rightcall.backends.models import is_model_path
from rightcall.backends.recording import Recorder
from rightcall.cli.inputs import exit_with_usage_error, option_parser, print_message, usage_errors
from rightcall.errors import BackendError

_SERVER = "The server"


class ModeName(StrEnum):
    """How calls are requested from a server."""

    auto = "auto"
    native = "native"
    text = "text"
    grammar = "grammar"


class GuardName(StrEnum):
    """A preset of the guard."""

    none = "none"
    parse = "parse"


Local = Annotated[
    str | None,
    typer.Option(
        "--local",
        metavar="NAME|FILE",
        help="Run this model on this machine: a name from `rightcall model list`, or a GGUF file.",
        rich_help_panel=_SERVER,
    ),
]
Lora = Annotated[
    str,
    typer.Option(
        "--lora",
        metavar="NAME|FILE",
        help="An adapter for the local model: a name, or a GGUF file.",
        rich_help_panel=_SERVER,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        "--proxy-base-url",
        metavar="URL",
        help="URL of the server, with or without /v1. [default: OPENAI_BASE_URL and the like, else the API's own]",
        rich_help_panel=_SERVER,
    ),
]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The environment variable that holds the key. [default: OPENAI_API_KEY and the like]",
        rich_help_panel=_SERVER,
    ),
]
Api = Annotated[
    str,
    typer.Option(
        parser=option_parser(check_api),
        metavar="|".join(API_DEFAULTS),
        help="The API of the server. The names of the SDKs (openai, anthropic) work too.",
        rich_help_panel=_SERVER,
    ),
]
Model = Annotated[str, typer.Option("--model", "-m", metavar="NAME", help="The model.", rich_help_panel=_SERVER)]
Mode = Annotated[
    ModeName,
    typer.Option(
        help="How tools are offered: natively by the server, as text in the prompt, as text constrained by a grammar, "
        "or whichever works.",
        rich_help_panel=_SERVER,
    ),
]
Record = Annotated[
    str | None,
    typer.Option(metavar="CASSETTE", help="Record requests and responses in this file.", rich_help_panel=_SERVER),
]
ConnectTimeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.001, help="Limit for connecting.", rich_help_panel=_SERVER)
]
FirstByteTimeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.001, help="Limit until the response begins.", rich_help_panel=_SERVER)
]
IdleTimeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.001, help="Limit between two chunks.", rich_help_panel=_SERVER)
]
TotalTimeout = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", min=0.001, help="Limit for the whole request.", rich_help_panel=_SERVER
    ),
]
RetryCount = Annotated[
    int, typer.Option("--retries", metavar="N", min=0, help="Retries after the first attempt.", rich_help_panel=_SERVER)
]

Temperature = Annotated[float | None, typer.Option(min=0.0, help="Sampling temperature; 0 is greedy.")]
MaxTokens = Annotated[int | None, typer.Option(min=1, metavar="N", help="Maximum length of an answer.")]

LIMITS = Timeouts()


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Options that select the model server, the timeouts and the retries."""

    local: Local = None
    lora: Lora = ""
    base_url: BaseUrl = None
    api: Api = "chat"
    api_key_env: ApiKeyEnv = None
    mode: Mode = ModeName.auto
    connect_timeout: ConnectTimeout = LIMITS.connect
    first_byte_timeout: FirstByteTimeout = LIMITS.first_byte
    idle_timeout: IdleTimeout = LIMITS.idle
    timeout: TotalTimeout = LIMITS.total
    retries: RetryCount = Retries().most
    record: Record = None

    def check_model(self, model: str, *, required: bool = False) -> None:
        """Exit with a usage error if --local is combined with --base-url or `model` (the value of --model), or if
        `required` and neither --local nor a model is given."""
        if self.local is not None and (self.base_url is not None or model):
            exit_with_usage_error("--local runs a model on this machine; it excludes --base-url and --model")
        if required and self.local is None and not model:
            exit_with_usage_error("no model: pass --model NAME, or --local NAME to run one on this machine")

    def backend(self, model: str, *, force: bool = False) -> BaseBackend:
        """Return a new backend for the chosen server or local model, inside a recorder with --record; `force` lets the
        recorder replace a foreign file. Exits with code 2 for wrong options."""
        with usage_errors():
            if self.lora and self.local is None:
                exit_with_usage_error("--lora needs a model that runs on this machine: pass --local NAME")
            backend = self._remote_backend(model) if self.local is None else self._local_backend(self.local)
            return backend if self.record is None else Recorder(backend, self.record, force=force)

    def _local_backend(self, name: str) -> BaseBackend:
        """Return the backend that runs the local model `name` with these options."""
        return LocalBackend(name, mode=self.mode.value, lora=self.lora, timeouts=self.timeouts)

    @property
    def local_name(self) -> str:
        """Return the name of the local model for rows, such as `model` or `model+adapter`; "" without a local model."""
        names = [each for each in (self.local, self.lora) if each]
        return "+".join([Path(each).stem if is_model_path(each) else each for each in names])

    def _remote_backend(self, model: str) -> BaseBackend:
        """Return the backend for an HTTP server, with these options for mode, key, timeouts and retries."""
        return Backend(
            self.base_url,
            api=self.api,
            model=model,
            mode=self.mode.value,
            api_key_env=self.api_key_env,
            timeouts=self.timeouts,
            retries=Retries(most=self.retries),
        )

    @property
    def timeouts(self) -> Timeouts:
        """Return the four time limits, in seconds, as one value."""
        return Timeouts(
            connect=self.connect_timeout, first_byte=self.first_byte_timeout, idle=self.idle_timeout, total=self.timeout
        )


@contextmanager
def backend_errors() -> Iterator[None]:
    """Return a context in which a failing server (`BackendError`) is reported in one line with exit code 1, and wrong
    usage with exit code 2."""
    with usage_errors():
        try:
            yield
        except BackendError as error:
            print_message(str(error))
            raise typer.Exit(1) from None
