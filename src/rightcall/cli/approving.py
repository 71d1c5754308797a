"""The question before a call runs, and what the answer means: the same for every command that runs real tools."""

from __future__ import annotations

import sys
import termios
from contextlib import suppress

from rightcall.cli.layout import console, paragraph
from rightcall.cli.safe import brief, visible
from rightcall.workspace.allow_rules import AllowRule
from rightcall.workspace.approval import Denial, Permission

_YES, _NO, _ALWAYS = ("y", "yes"), ("", "n", "no"), ("a", "always")


def question(rule: AllowRule | None) -> str:
    """What can be answered. `rule` is what an "always" would allow."""
    always = "" if rule is None else f", [a]lways {brief(str(rule), 200)}"
    return f"[y]es{always}, [n]o, or say what to do instead"


def permission(said: str, rule: AllowRule | None) -> Permission:
    """What an answer allows. Other words than these are a no, and go to the model."""
    word = said.strip().lower()
    if word in _YES:
        return "yes"
    if word in _ALWAYS:
        return rule or "yes"
    return "no" if word in _NO else Denial(said.strip())


def asked(shown: str, rule: AllowRule | None) -> Permission:
    """Shows what is to be allowed, on standard error, and waits for an answer. What was typed before counts for
    nothing; the end of the input is a no."""
    err = console(stderr=True)
    if shown:
        paragraph(err, visible(shown, one_line=True), "bold", hang=2)
    paragraph(err, question(rule), hang=2)
    with suppress(termios.error, OSError, ValueError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    return permission(typed("allow? "), rule)


def typed(prompt: str, *, ends: str = "") -> str:
    """A line from the terminal; `ends` where there are no more. The prompt is never part of what the command prints."""
    if sys.stdout.isatty():
        with suppress(ImportError):
            import readline  # noqa: F401 - gives `input` its line editing
        with suppress(EOFError):
            return input(prompt)
        return ends
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else ends
