"""The command `rightcall`: one module per command. Importing this package imports no heavy module."""

from __future__ import annotations

import sys

from rightcall.extras import install_advice, is_installed


def main() -> None:
    """Run the command line.

    Exit codes: 0 success, 1 a blocking problem was found, 2 wrong usage, 130 interrupted, 141 the output was closed.
    """
    if not is_installed("cli"):
        print(f"rightcall: {install_advice('cli')}", file=sys.stderr)
        raise SystemExit(2)
    from rightcall.cli.app import app, output_failures

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character shows its code
    with output_failures():
        app(prog_name="rightcall")
