"""Options of commands that listen on a port, and their key.

Clients must send the key. It is generated at each start, or is the value of an environment variable. No option takes
it, because every user of the machine could read it in the list of processes.
"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from rightcall.cli.inputs import exit_with_usage_error, print_message
from rightcall.redaction.key import Key
from rightcall.request_gate import given_key, is_loopback, new_key

_GUARD = "Access"

KeyEnv = Annotated[
    str,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="The environment variable with the key. [default: a new key at each start]",
        rich_help_panel=_GUARD,
    ),
]
NoKey = Annotated[
    bool,
    typer.Option("--no-key", help="Require no key: every program on this machine may connect.", rich_help_panel=_GUARD),
]
AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ORIGIN",
        help="Origin of web pages that may connect, e.g. http://localhost:3000.",
        rich_help_panel=_GUARD,
    ),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Another host name of this machine.", rich_help_panel=_GUARD),
]


def choose_key(key_env: str, no_key: bool, host: str = "127.0.0.1") -> Key | None:
    """Return the key that clients must send: the value of the environment variable `key_env`, or a new one if this is
    ""; None with `no_key`. Exits with a usage error if both are given, if the variable is not set, or for `no_key` on
    another host than loopback."""
    if no_key and key_env:
        exit_with_usage_error("--no-key and --api-key-env exclude each other; give one of them")
    if no_key and not is_loopback(host):
        exit_with_usage_error(
            f"--no-key is only for loopback, but --host {host} lets other machines connect; leave out one of them"
        )
    if not key_env:
        return None if no_key else new_key()
    text = os.environ.get(key_env, "").strip()
    if not text:
        exit_with_usage_error(f"the environment variable {key_env} is not set; it must contain the key")
    return Key(given_key(text).reveal(), key_env)


def report_key(key: Key | None, key_env: str) -> None:
    """Print on standard error, so that it does not go into a pipe: the generated key, or the variable that has it, or,
    for None, that no key is required."""
    if key is None:
        print_message("no key is required: every program on this machine may connect (--no-key)")
    elif key_env:
        print_message(f"the key is the value of {key_env}")
    else:
        print_message(f"the key for this start: {key.reveal()}")


def reveal_key(key: Key | None) -> str:
    """Return the key as a text; "" for None."""
    return "" if key is None else key.reveal()
