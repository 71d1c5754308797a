"""The next of many markers in a text that is still arriving."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from rightcall.wire.markers import TEXT_END, Pat, Search, is_certain, solid, tree

A = TypeVar("A")
_MANY = 36
_LONGEST = 8_192


class Scan(Generic[A]):
    """Finds the next of several markers. `search(text, pos)` gives a match or None; `actions[match.lastindex]` says
    which it is, and no `lastindex` means that the text ends in what may become one. A marker that no later text can
    make another is tried first."""

    __slots__ = ("_entries", "_sure", "actions", "ended", "finditer", "search")
    search: Search
    ended: Search
    finditer: Callable[..., Iterator[re.Match[str]]]

    def __init__(self, entries: list[tuple[A, Pat]]) -> None:
        self._entries, self._sure = _by_certainty(entries)
        self.actions = [action for action, _ in self._entries[:1] + self._entries]  # groups count from 1

    def __getattr__(self, name: str) -> Any:
        """Compiled when it is first asked, as a `Probe` is."""
        if name not in ("search", "ended", "finditer"):
            raise AttributeError(name)
        pats, sure = [pat for _, pat in self._entries], self._sure
        starts = [f"{re.escape(p.head)}(?:{p.tail[1]})\\Z" for p in pats]
        wholes = [f"{re.escape(p.head)}({p.tail[0]})" for p in pats]
        never = "(?!)"
        ended = re.compile("|".join(wholes) or never)
        wholes = [whole.replace(TEXT_END, never) for whole in wholes]
        # As in `Probe`: a beginning is looked for first only where a longer marker may still be arriving.
        search = re.compile("|".join(wholes[:sure] + starts + wholes[sure:]) or never)
        self.search, self.ended, self.finditer = search.search, ended.search, ended.finditer
        if len(pats) > _MANY:
            places = re.compile(tree({pat.opening[:10] for pat in pats}, begun=True)).search
            whole = re.compile("|".join(wholes)).match
            self.search = _places_first(places, whole, search.match)
            self.ended = _places_first(places, whole, ended.match)
        return getattr(self, name)


def _by_certainty(entries: list[tuple[A, Pat]]) -> tuple[list[tuple[A, Pat]], int]:
    """Those first that no later text can make others, and how many they are. By length of the pattern: of two markers,
    one beginning with the other, the longer is tried first."""
    entries = sorted(entries, key=lambda entry: -len(entry[1].whole))
    solids = {solid(pat) for _, pat in entries}
    certain = [entry for entry in entries if is_certain(entry[1], solids)]
    return certain + [entry for entry in entries if entry not in certain], len(certain)


def _places_first(places: Search, whole: Search, at: Search) -> Search:
    """A search for hundreds of markers: a tree of their first characters finds the places worth a look. Far from the
    end of the text no beginning of a marker is looked for: none is so long."""

    def search(text: str, pos: int) -> re.Match[str] | None:
        while (place := places(text, pos)) is not None:
            found = (at if len(text) - place.start() < _LONGEST else whole)(text, place.start())
            if found is not None:
                return found
            pos = place.start() + 1
        return None

    return search
