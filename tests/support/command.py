"""Run the command line in tests: in this process, or as a separate process."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import typer
from typer.testing import CliRunner, Result

from rightcall.cli.app import app

REPLY = 'On it.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
MINE = 'name = "mine"\ncall = ["<c>", "</c>"]\nbody = { kind = "envelope" }\n'


@cache
def commands() -> dict[str, Any]:
    """Return every command by its words."""
    return _commands(typer.main.get_command(app))


def _commands(command: Any, words: str = "") -> dict[str, Any]:
    if not hasattr(command, "list_commands"):
        return {words.strip(): command}
    context = typer.Context(command)
    inner = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return {path: found for name, each in inner.items() for path, found in _commands(each, f"{words} {name}").items()}


def run(*args: str, stdin: str | bytes = "", env: Mapping[str, str | None] | None = None) -> Result:
    return CliRunner().invoke(app, args, input=stdin, env=env)


def failed(result: Result, code: int = 2) -> str:
    """Return the single error line of a failed command."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("rightcall: ")
    return line


def process(*args: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "rightcall", *args]
    return subprocess.run(command, input=stdin, capture_output=True, env={**os.environ, **env}, timeout=60)


def accept_ctrl_c() -> None:
    """Restore the default handler of SIGINT, which the process that started the tests may ignore; for `preexec_fn`."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
