"""The options of every command that talks to a model, and the backend they name.

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

from rightcall.backends.address import HABITS, check_api
from rightcall.backends.base import BaseBackend
from rightcall.backends.exchange import Retries, Timeouts
from rightcall.backends.http import Backend
from rightcall.backends.local import LocalBackend
from rightcall.backends.models import is_path
from rightcall.backends.record import Recorder
from rightcall.cli.inputs import checked, refuse, say, usage_errors
from rightcall.errors import BackendError

_SERVER = "The server"


class ModeName(StrEnum):
    auto = "auto"
    native = "native"
    text = "text"
    grammar = "grammar"


class GuardName(StrEnum):
    none = "none"
    parse = "parse"


Local = Annotated[
    str | None,
    typer.Option(
        "--local",
        metavar="NAME|FILE",
        help="Run this model here: a name of `rightcall model list`, or a GGUF file.",
        rich_help_panel=_SERVER,
    ),
]
Lora = Annotated[
    str,
    typer.Option(
        "--lora",
        metavar="NAME|FILE",
        help="An adapter beside the model that runs here: its name, or a GGUF file.",
        rich_help_panel=_SERVER,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        "--proxy-base-url",
        metavar="URL",
        help="Where the server is, with or without /v1. [default: OPENAI_BASE_URL and the like, else the API's own]",
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
        parser=checked(check_api),
        metavar="|".join(HABITS),
        help="What the server speaks. The SDKs' names (openai, anthropic) are known too.",
        rich_help_panel=_SERVER,
    ),
]
Model = Annotated[str, typer.Option("--model", "-m", metavar="NAME", help="The model.", rich_help_panel=_SERVER)]
Mode = Annotated[
    ModeName,
    typer.Option(
        help="How tools are offered: by the server's own means, as text in the prompt, as text held to a grammar, or "
        "whichever works.",
        rich_help_panel=_SERVER,
    ),
]
Record = Annotated[
    str | None,
    typer.Option(metavar="CASSETTE", help="Write what is sent and received to this file.", rich_help_panel=_SERVER),
]
ConnectTimeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.001, help="Limit for connecting.", rich_help_panel=_SERVER)
]
FirstByteTimeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.001, help="Limit until an answer begins.", rich_help_panel=_SERVER)
]
IdleTimeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.001, help="Limit between two pieces.", rich_help_panel=_SERVER)
]
TotalTimeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0.001, help="Limit for all.", rich_help_panel=_SERVER)
]
RetryCount = Annotated[
    int, typer.Option("--retries", metavar="N", min=0, help="Tries after the first one.", rich_help_panel=_SERVER)
]

Temperature = Annotated[float | None, typer.Option(min=0.0, help="0 gives the likeliest answer.")]
MaxTokens = Annotated[int | None, typer.Option(min=1, metavar="N", help="The longest answer, in tokens.")]

LIMITS = Timeouts()


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a command asks, and how patiently."""

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

    def backend(self, model: str, *, force: bool = False) -> BaseBackend:
        """The backend that these options name, with a recorder around it if wanted. Wrong ones end in exit code 2."""
        with usage_errors():
            if self.lora and self.local is None:
                refuse("--lora goes with a model that runs here; name it with --local")
            backend = self._there(model) if self.local is None else self._here(self.local)
            return backend if self.record is None else Recorder(backend, self.record, force=force)

    def _here(self, name: str) -> BaseBackend:
        return LocalBackend(name, mode=self.mode.value, lora=self.lora, timeouts=self.timeouts)

    @property
    def local_name(self) -> str:
        """What rows call the model that runs here, and its adapter."""
        named = [each for each in (self.local, self.lora) if each]
        return "+".join([Path(each).stem if is_path(each) else each for each in named])

    def _there(self, model: str) -> BaseBackend:
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
        return Timeouts(
            connect=self.connect_timeout, first_byte=self.first_byte_timeout, idle=self.idle_timeout, total=self.timeout
        )


@contextmanager
def backend_errors() -> Iterator[None]:
    """A server that fails is one line on standard error and exit code 1; wrong usage is one and exit code 2."""
    with usage_errors():
        try:
            yield
        except BackendError as error:
            say(str(error))
            raise typer.Exit(1) from None
