"""Code fences of a whole text: the one that is all of it, and the last that it ends with."""

from __future__ import annotations

import re

from rightcall.parsing.shown import Shown
from rightcall.parsing.shown.line_starts import BLANKS, RUN


def only_fence(text: str) -> str | None:
    """What stands in the one code fence that a text is; None where it is anything else. Models forget the line break
    before the run that closes it."""
    text = text.strip()
    run = RUN(text, 0)
    first, _, body = text.partition("\n")
    if run is None or not body or run[0][0] in first[run.end() :] or "<" in first:
        return None  # a marker in its first line says that it is something else
    edge = re.compile(rf"^ {{0,3}}+{run[0][0]}{{{len(run[0])},}}+[ \t]*+$", re.M)
    closed = edge.search(body)
    if closed is None:
        inner = body.rstrip(run[0][0])
        return inner.strip() if len(body) - len(inner) == len(run[0]) else None
    return body[: closed.start()].strip() if closed.end() == len(body) else None


def last_fence(text: str) -> int:
    """Where the last code fence of a text begins; -1 if it has none."""
    shown, last, at, was = Shown(), -1, 0, False
    for line in text.splitlines(keepends=True):
        shown.take(line)
        if shown.in_fence and not was:
            last = BLANKS(line).end() + at  # type: ignore[union-attr]
        was = shown.in_fence
        at += len(line)
    return last
