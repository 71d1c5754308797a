"""Find the lines of a file most similar to a text that does not occur in it, to show the model its mistake."""

from __future__ import annotations

import difflib
from collections import Counter
from heapq import nlargest

_LINES = 4000  # lines of the file that are compared
_LONGEST = 200  # characters of a line
_CANDIDATES = 8  # lines that are compared letter by letter, which is slow
_SHOWN = 8  # lines


def describe_nearest(text: str, wanted: str) -> str:
    """Return the end of an error message for a text `wanted` that does not occur in the file's `text`: the lines where
    it occurs with other white space, or the most similar lines, or that none is similar."""
    lines, sought = _split_lines(text)[:_LINES], _split_lines(wanted)
    at = _find_same_words(lines, sought)
    if at is not None:
        found = lines[at : at + len(sought)]
        return f"; it occurs with other white space, from line {at + 1} on:\n{_quote_lines(found)}"
    at = _find_most_similar(lines, sought)
    if at is None:
        return "; no line is similar; read the file again"
    return f"; the most similar text is at line {at + 1}:\n{_quote_lines(lines[at : at + len(sought)])}"


def _split_lines(text: str) -> list[str]:
    """Return the lines of a text without line ends, as read_file counts them: only a line feed ends one."""
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


def _find_same_words(lines: list[str], sought: list[str]) -> int | None:
    """Return the index of the first place in `lines` where all `sought` lines follow, compared word by word: the amount
    of white space in a line does not matter. None if there is none among the first 100 lines that match the first
    sought one."""
    bare = [line.split() for line in lines]
    want = [line.split() for line in sought]
    starts = [at for at, line in enumerate(bare) if want and line == want[0]]
    return next((at for at in starts[:100] if bare[at : at + len(want)] == want), None)


def _find_most_similar(lines: list[str], sought: list[str]) -> int | None:
    """Return the index in `lines` at which the `sought` lines would begin, if their longest line is aligned with the
    line most similar to it; None if no line is similar enough."""
    if not sought:
        return None
    anchor = max(range(len(sought)), key=lambda at: len(sought[at].strip()))
    wanted = sought[anchor].strip()[:_LONGEST]
    matcher = difflib.SequenceMatcher(None, "", wanted, autojunk=False)
    best, found = 0.6, None
    for at in _find_candidates(lines, wanted):
        matcher.set_seq1(lines[at].strip()[:_LONGEST])
        if (ratio := matcher.ratio()) > best:
            best, found = ratio, at
    return None if found is None else max(found - anchor, 0)


def _find_candidates(lines: list[str], wanted: str) -> list[int]:
    """Return the indexes, ascending, of the `_CANDIDATES` lines that share most pairs of letters with the text
    `wanted`."""
    sought = _count_letter_pairs(wanted)
    alike: list[float] = []
    for line in lines:
        pairs = _count_letter_pairs(line.strip()[:_LONGEST])
        alike.append((sought & pairs).total() / (sought.total() + pairs.total()))
    return sorted(nlargest(_CANDIDATES, range(len(lines)), key=lambda at: (alike[at], -at)))


def _count_letter_pairs(line: str) -> Counter[str]:
    """Return how often each pair of adjacent characters occurs in a line."""
    return Counter([line[at : at + 2] for at in range(max(len(line) - 1, 1))])


def _quote_lines(lines: list[str]) -> str:
    """Return the first `_SHOWN` lines as one text, each cut to `_LONGEST` characters, and "..." if there are more."""
    shown = [line[:_LONGEST] for line in lines[:_SHOWN]]
    return "\n".join([*shown, "..."] if len(lines) > _SHOWN else shown)
