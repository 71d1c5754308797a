"""The options of every command that talks to a model, and the backend they name.

def ask(base_url: BaseUrl = None, api: Api = "chat", model: ModelName = "", ...) -> None:
    with backend_errors():
        backend = endpoint(base_url, api=api, model=model, ...)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer

from rightcall.backends.address import HABITS, check_api
from rightcall.backends.base import BaseBackend
from rightcall.backends.exchange import Retries, Timeouts
from rightcall.backends.http import Backend
from rightcall.backends.record import Recorder
from rightcall.cli.inputs import checked, say, usage_errors
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

LIMITS = Timeouts()


def endpoint(
    base_url: str | None = None,
    *,
    api_key_env: str | None = None,
    api: str = "chat",
    model: str = "",
    mode: ModeName | str = ModeName.auto,
    record: str | None = None,
    force: bool = False,
    connect_timeout: float = LIMITS.connect,
    first_byte_timeout: float = LIMITS.first_byte,
    idle_timeout: float = LIMITS.idle,
    timeout: float = LIMITS.total,
    retries: int = Retries().most,
) -> BaseBackend:
    """The backend that these options name, with a recorder around it if wanted. Wrong ones end in exit code 2."""
    with usage_errors():
        backend = Backend(
            base_url,
            api=api,
            model=model,
            mode=str(mode),  # type: ignore[arg-type]
            api_key_env=api_key_env,
            timeouts=Timeouts(connect=connect_timeout, first_byte=first_byte_timeout, idle=idle_timeout, total=timeout),
            retries=Retries(most=retries),
        )
        return backend if record is None else Recorder(backend, record, force=force)


@contextmanager
def backend_errors() -> Iterator[None]:
    """A server that fails is one line on standard error and exit code 1; wrong usage is one and exit code 2."""
    with usage_errors():
        try:
            yield
        except BackendError as error:
            say(str(error))
            raise typer.Exit(1) from None
