"""On which line of a TOML text a key stands: the standard parser does not say.

line_of(text, ("models", "qwen*", "mode"))
line_of(text, ("upstream", 1, "url"))            the second table [[upstream]]
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Sequence

Place = tuple[str | int, ...]
_KEY = re.compile(
    r"""\s*+((?:"[^"]*+"|'[^']*+'|[A-Za-z0-9_-]++)(?:\s*+\.\s*+(?:"[^"]*+"|'[^']*+'|[A-Za-z0-9_-]++))*+)\s*+="""
)
_HEAD = re.compile(r"\s*+(\[\[?)(.*)")


def line_of(text: str, place: Sequence[str | int]) -> int:
    """The number of the line, or of the table's that it must be in; 0 if neither is found. What stands in an inline
    table is found with the key that holds it."""
    best = best_length = 0
    table: Place = ()
    arrays: Counter[Place] = Counter()
    wanted = tuple(place)
    for number, line in enumerate(text.split("\n"), 1):
        found = _table(line, arrays)
        if found is not None:
            table = here = found
        elif key := _KEY.match(line):
            here = (*table, *_parts(key[1]))
        else:
            continue
        if len(here) > best_length and here == wanted[: len(here)]:
            best, best_length = number, len(here)
    return best


def _table(line: str, arrays: Counter[Place]) -> Place | None:
    """The place that a line `[table]` or `[[array]]` opens."""
    head = _HEAD.match(line)
    name = _parts(head[2].split("]")[0]) if head is not None else ()
    if head is None or not name:
        return None
    if head[1] == "[":
        return name
    arrays[name] += 1
    return (*name, arrays[name] - 1)


def _parts(dotted: str) -> tuple[str, ...]:
    """The parts of a dotted key."""
    try:
        found = tomllib.loads(f"{dotted} = 0")
    except (ValueError, RecursionError):
        return ()
    parts: list[str] = []
    inner: object = found
    while isinstance(inner, dict) and len(inner) == 1:
        key, inner = next(iter(inner.items()))
        parts.append(key)
    return tuple(parts)
