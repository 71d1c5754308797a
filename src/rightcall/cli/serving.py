"""The options of every command that serves, and how it tells its key.

Whoever asks must know the key: one is made for each start, or it is the value of a variable. On the command line it
would stand for all to read who list the processes of the machine, so there is no option that takes it.
"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from rightcall.cli.inputs import refuse, say
from rightcall.redaction.key import Key
from rightcall.request_gate import given_key, is_loopback, new_key

_GUARD = "Who may use it"

KeyEnv = Annotated[
    str,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="The environment variable that holds the key to ask for. [default: a new key for each start]",
        rich_help_panel=_GUARD,
    ),
]
NoKey = Annotated[
    bool, typer.Option("--no-key", help="Ask for no key: every program here may use it.", rich_help_panel=_GUARD)
]
AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ORIGIN", help="Web pages that may use it, e.g. http://localhost:3000.", rich_help_panel=_GUARD
    ),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A further name that this machine is called by.", rich_help_panel=_GUARD),
]


def chosen_key(key_env: str, no_key: bool, host: str = "127.0.0.1") -> Key | None:
    """The key to ask for. Wrong options end in exit code 2."""
    if no_key and key_env:
        refuse("--no-key and --api-key-env exclude each other; give one of them")
    if no_key and not is_loopback(host):
        refuse(f"--no-key is for this machine alone, and --host {host} lets others in; leave out one of them")
    if not key_env:
        return None if no_key else new_key()
    text = os.environ.get(key_env, "").strip()
    if not text:
        refuse(f"the environment variable {key_env} is not set; it must hold the key")
    return Key(given_key(text).reveal(), key_env)


def tell_key(key: Key | None, key_env: str) -> None:
    """Once, on standard error, where it is in no pipe."""
    if key is None:
        say("no key is asked for: every program on this machine may use it (--no-key)")
    elif key_env:
        say(f"the key is the value of {key_env}")
    else:
        say(f"the key, for this start: {key.reveal()}")


def revealed(key: Key | None) -> str:
    return "" if key is None else key.reveal()
