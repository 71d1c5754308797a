"""The command `rightcall`. One file per group of commands; nothing heavy is imported before `main` runs."""

from __future__ import annotations

import sys

from rightcall.extras import is_installed, missing


def main() -> None:
    """Runs the command line. Exit codes: 0 fine, 1 something blocking was found, 2 wrong usage, 130
    interrupted, 141 the reader of the output went away."""
    if not is_installed("cli"):
        print(f"rightcall: {missing('cli')}", file=sys.stderr)
        raise SystemExit(2)
    from rightcall.cli.app import app
    from rightcall.cli.closed_output import output_failures

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character still shows which
    with output_failures():
        app(prog_name="rightcall")
