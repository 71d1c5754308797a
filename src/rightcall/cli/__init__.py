"""The command `rightcall`. One file per group of commands; nothing heavy is imported before `main` runs."""

from __future__ import annotations

import sys

from rightcall.extras import is_installed, missing


def main() -> None:
    """Runs the command line. Exit codes: 0 fine, 1 something blocking was found, 2 wrong usage."""
    if not is_installed("cli"):
        print(f"rightcall: {missing('cli')}", file=sys.stderr)
        raise SystemExit(2)
    from rightcall.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character still shows which
    app(prog_name="rightcall")
