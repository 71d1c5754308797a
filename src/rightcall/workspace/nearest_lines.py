"""Find the lines of a file most similar to a text that does not occur in it, to show the model its mistake."""

from __future__ import annotations

import difflib
from collections import Counter
from heapq import nlargest

_LINES = 4000  # of the file are looked at
_LONGEST = 200  # characters of a line
_CANDIDATES = 8  # are compared letter by letter, which takes long
_SHOWN = 8  # lines


def describe_nearest(text: str, wanted: str) -> str:
    """Return the end of an error message: where the text occurs with other white space, or the most similar lines."""
    lines, sought = _split_lines(text)[:_LINES], _split_lines(wanted)
    at = _find_ignoring_blanks(lines, sought)
    if at is not None:
        found = lines[at : at + len(sought)]
        return f"; it is there but for its white space, from line {at + 1} on:\n{_quote_lines(found)}"
    at = _find_most_similar(lines, sought)
    if at is None:
        return "; nothing in it comes near, so read the file again"
    return f"; the nearest is at line {at + 1}:\n{_quote_lines(lines[at : at + len(sought)])}"


def _split_lines(text: str) -> list[str]:
    """Return lines as read_file counts them: only a line feed ends one."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _find_ignoring_blanks(lines: list[str], sought: list[str]) -> int | None:
    """Return the index of the first line from which the lines match if white space is ignored."""
    bare = [line.split() for line in lines]
    want = [line.split() for line in sought]
    starts = [at for at, line in enumerate(bare) if want and line == want[0]]
    return next((at for at in starts[:100] if bare[at : at + len(want)] == want), None)


def _find_most_similar(lines: list[str], sought: list[str]) -> int | None:
    """Return where the sought lines would begin, by the line most similar to the longest of them; None if none is
    similar."""
    if not sought:
        return None
    anchor = max(range(len(sought)), key=lambda at: len(sought[at].strip()))
    wanted = sought[anchor].strip()[:_LONGEST]
    matcher = difflib.SequenceMatcher(None, "", wanted, autojunk=False)
    best, found = 0.6, None
    for at in _similar_lines(lines, wanted):
        matcher.set_seq1(lines[at].strip()[:_LONGEST])
        if (ratio := matcher.ratio()) > best:
            best, found = ratio, at
    return None if found is None else max(found - anchor, 0)


def _similar_lines(lines: list[str], wanted: str) -> list[int]:
    """Return the indexes of the lines that share most letter pairs with the wanted one, in order."""
    sought = _letter_pairs(wanted)
    alike: list[float] = []
    for line in lines:
        pairs = _letter_pairs(line.strip()[:_LONGEST])
        alike.append((sought & pairs).total() / (sought.total() + pairs.total()))
    return sorted(nlargest(_CANDIDATES, range(len(lines)), key=lambda at: (alike[at], -at)))


def _letter_pairs(line: str) -> Counter[str]:
    return Counter([line[at : at + 2] for at in range(max(len(line) - 1, 1))])


def _quote_lines(lines: list[str]) -> str:
    """Return the first `_SHOWN` lines as one text, each cut to `_LONGEST` characters, and "..." if there are more."""
    shown = [line[:_LONGEST] for line in lines[:_SHOWN]]
    return "\n".join([*shown, "..."] if len(lines) > _SHOWN else shown)
