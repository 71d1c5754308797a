"""The next of many markers in a text that is still arriving."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from rightcall.parsing.markers import TEXT_END, Pat, Search, is_certain, solid, tree

A = TypeVar("A")
Entries = list[tuple[A, Pat]]
_MANY = 36
_LONGEST = 8_192
_NEVER = "(?!)"


class Scan(Generic[A]):
    """Finds the next of several markers. `search(text, pos)` gives a match or None; `actions[match.lastindex]` says
    which it is, and no `lastindex` means that the text ends in what may become one. A marker that no later text can
    make another is tried first."""

    __slots__ = ("_groups", "actions", "ended", "finditer", "search")
    search: Search
    ended: Search
    finditer: Callable[..., Iterator[re.Match[str]]]

    def __init__(self, entries: Entries[A]) -> None:
        self._groups = _by_head(*_by_certainty(entries))
        actions = [action for _, certain, others in self._groups for action, _ in certain + others]
        self.actions = actions[:1] + actions  # groups count from 1

    def __getattr__(self, name: str) -> Any:
        """Compiled when it is first asked, as a `Probe` is."""
        if name not in ("search", "ended", "finditer"):
            raise AttributeError(name)
        ended = re.compile(self._source())
        search = re.compile(self._source(starts=True).replace(TEXT_END, _NEVER))
        self.search, self.ended, self.finditer = search.search, ended.search, ended.finditer
        pats = [pat for _, certain, others in self._groups for _, pat in certain + others]
        if len(pats) > _MANY:
            places = re.compile(tree({pat.opening[:10] for pat in pats}, begun=True)).search
            whole = re.compile(self._source().replace(TEXT_END, _NEVER)).match
            self.search = _places_first(places, whole, search.match)
            self.ended = _places_first(places, whole, ended.match)
        return getattr(self, name)

    def _source(self, *, starts: bool = False) -> str:
        """An expression for any of the markers; with `starts` also for what the text ends in and may become one. As in
        `Probe`: that is looked for first only where a longer marker may still be arriving."""
        made = []
        for head, certain, others in self._groups:
            begun = [f"(?:{pat.tail[1]})\\Z" for _, pat in certain + others] if starts else []
            sure, wholes = ([f"({pat.tail[0]})" for _, pat in each] for each in (certain, others))
            made.append(f"{re.escape(head)}(?:{'|'.join([*sure, *begun, *wholes])})")
        return "|".join(made) or _NEVER


def _by_certainty(entries: Entries[A]) -> tuple[Entries[A], Entries[A]]:
    """Those that no later text can make others, and the rest. By length of the pattern: of two markers, one beginning
    with the other, the longer is tried first."""
    entries = sorted(entries, key=lambda entry: -len(entry[1].whole))
    solids = {solid(pat) for _, pat in entries}
    certain = [entry for entry in entries if is_certain(entry[1], solids)]
    return certain, [entry for entry in entries if entry not in certain]


def _by_head(certain: Entries[A], others: Entries[A]) -> list[tuple[str, Entries[A], Entries[A]]]:
    """The same by their first character, which is looked at once for all that begin with it."""
    heads = dict.fromkeys(pat.head for _, pat in certain + others)
    return [(head, _of_head(head, certain), _of_head(head, others)) for head in heads]


def _of_head(head: str, entries: Entries[A]) -> Entries[A]:
    return [entry for entry in entries if entry[1].head == head]


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
