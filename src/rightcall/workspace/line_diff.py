r"""Unified diffs of two texts, in linear time for any texts.

unified_diff("a\nb\n", "a\nc\n")      "@@ -1,2 +1,2 @@\n a\n-b\n+c"
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile

CONTEXT = 3
_COMPARED = 1000  # lines on either side that are compared one by one; more of them are replaced as a whole
_NO_END = "\\ no newline at the end"

Opcode = tuple[str, int, int, int, int]


def unified_diff(before: str, after: str) -> str:
    r"""Return the unified diff of two texts; "" for equal ones. A Windows line end is shown as `\r` at the end of a
    line."""
    old, new = _split_lines(before), _split_lines(after)
    groups = _group_changes(_compute_opcodes(old, new))
    return "\n".join([line for group in groups for line in _format_hunk(old, new, group)])


def _split_lines(text: str) -> list[str]:
    """Return the lines of a text without line breaks. A last line without a line break gets, after a line break, a note
    that says so."""
    if not text:
        return []
    lines = text.split("\n")
    if not lines[-1]:
        return lines[:-1]
    return [*lines[:-1], f"{lines[-1]}\n{_NO_END}"]


def _compute_opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """Return the opcodes that turn the lines `old` into `new`, as `SequenceMatcher.get_opcodes` does. Only lines
    between the equal start and the equal end are compared; more than `_COMPARED` of them are replaced as a whole."""
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    remaining = min(len(old), len(new)) - head
    pairs = zip(reversed(old), reversed(new), strict=False)
    tail = min(remaining, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)))
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(a) > _COMPARED or len(b) > _COMPARED:
        middle: list[Opcode] = [("replace", 0, len(a), 0, len(b))]
    else:
        middle = list(SequenceMatcher(None, a, b).get_opcodes())
    found: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    found += [(tag, i + head, j + head, k + head, m + head) for tag, i, j, k, m in middle]
    ends = len(old), len(new)
    return [*found, *([("equal", ends[0] - tail, ends[0], ends[1] - tail, ends[1])] if tail else [])]


def _group_changes(opcodes: Sequence[Opcode]) -> Iterator[list[Opcode]]:
    """Yield the opcodes of each hunk: neighbouring changes, and up to `CONTEXT` equal lines before and after them."""
    group: list[Opcode] = []
    for at, (tag, i, j, k, m) in enumerate(opcodes):
        if tag != "equal":
            group.append((tag, i, j, k, m))
            continue
        before, after = at > 0, at < len(opcodes) - 1
        if before and (not after or j - i > 2 * CONTEXT):
            yield [*group, (tag, i, min(j, i + CONTEXT), k, min(m, k + CONTEXT))]
            group = []
        if after:
            near = j - i if group else CONTEXT
            group.append((tag, max(i, j - near), j, max(k, m - near), m))
    if group:
        yield group


def _format_hunk(old: Sequence[str], new: Sequence[str], group: Sequence[Opcode]) -> Iterator[str]:
    """Yield the lines of one hunk: its header, then each line after a blank, `-` or `+`."""
    first, last = group[0], group[-1]
    yield f"@@ -{_format_range(first[1], last[2])} +{_format_range(first[3], last[4])} @@"
    for tag, i, j, k, m in group:
        if tag == "equal":
            yield from (f" {line}" for line in old[i:j])
            continue
        yield from (f"-{line}" for line in old[i:j])
        yield from (f"+{line}" for line in new[k:m])


def _format_range(start: int, end: int) -> str:
    """Return a range of lines for the header of a hunk: the first line, counted from 1, and the number of lines."""
    size = end - start
    return f"{start + 1 if size else start},{size}"
