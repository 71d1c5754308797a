"""The text that was to be replaced is not there: what comes nearest, so that the model can see what it got wrong."""

from __future__ import annotations

import difflib
from collections import Counter
from heapq import nlargest

_LINES = 4000  # of the file are looked at
_LONGEST = 200  # characters of a line
_CANDIDATES = 8  # are compared letter by letter, which takes long
_SHOWN = 8  # lines


def nearest(text: str, wanted: str) -> str:
    """The rest of the message: where the text is but for its white space, or the lines most like it."""
    lines, sought = _lines(text)[:_LINES], _lines(wanted)
    at = _but_for_blanks(lines, sought)
    if at is not None:
        found = lines[at : at + len(sought)]
        return f"; it is there but for its white space, from line {at + 1} on:\n{_quoted(found)}"
    at = _most_alike(lines, sought)
    if at is None:
        return "; nothing in it comes near, so read the file again"
    return f"; the nearest is at line {at + 1}:\n{_quoted(lines[at : at + len(sought)])}"


def _lines(text: str) -> list[str]:
    """As read_file counts them: only a line feed ends one."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _but_for_blanks(lines: list[str], sought: list[str]) -> int | None:
    bare = [line.split() for line in lines]
    want = [line.split() for line in sought]
    starts = [at for at, line in enumerate(bare) if want and line == want[0]]
    return next((at for at in starts[:100] if bare[at : at + len(want)] == want), None)


def _most_alike(lines: list[str], sought: list[str]) -> int | None:
    """The line most like the longest of those sought, moved up to where the first would be."""
    if not sought:
        return None
    anchor = max(range(len(sought)), key=lambda at: len(sought[at].strip()))
    wanted = sought[anchor].strip()[:_LONGEST]
    matcher = difflib.SequenceMatcher(None, "", wanted, autojunk=False)
    best, found = 0.6, None
    for at in _candidates(lines, wanted):
        matcher.set_seq1(lines[at].strip()[:_LONGEST])
        if (ratio := matcher.ratio()) > best:
            best, found = ratio, at
    return None if found is None else max(found - anchor, 0)


def _candidates(lines: list[str], wanted: str) -> list[int]:
    """The lines that have most pairs of letters in common with the one that is wanted, the first of them first."""
    sought = _pairs(wanted)
    alike: list[float] = []
    for line in lines:
        pairs = _pairs(line.strip()[:_LONGEST])
        alike.append((sought & pairs).total() / (sought.total() + pairs.total()))
    return sorted(nlargest(_CANDIDATES, range(len(lines)), key=lambda at: (alike[at], -at)))


def _pairs(line: str) -> Counter[str]:
    return Counter([line[at : at + 2] for at in range(max(len(line) - 1, 1))])


def _quoted(lines: list[str]) -> str:
    shown = [line[:_LONGEST] for line in lines[:_SHOWN]]
    return "\n".join([*shown, "..."] if len(lines) > _SHOWN else shown)
