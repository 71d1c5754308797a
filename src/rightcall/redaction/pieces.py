"""An answer that came in pieces, without its secrets: also those that stand in several pieces.

A secret may be cut by the network, anywhere, or by the model, which says a few letters in each event. So the events of
a stream are read, and what they say at the same place is looked at as one text. Pieces stay as they were cut wherever
nothing was taken out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from rightcall.redaction.members import FoundSecret
from rightcall.redaction.scrubber import Scrubber
from rightcall.strict_json import MAX_DEPTH, Undecodable, decode

_BEFORE = (b"data: ", b"data:", b"")
_PLACES = ("type", "index", "output_index", "content_index", "item_id")
Path = tuple[Any, ...]


class PieceLine(msgspec.Struct):
    """A line of the answer: what stands before its JSON and behind it, and the JSON, if it has any."""

    was: bytes
    before: bytes = b""
    value: Any = None
    behind: bytes = b""
    now: bytes = b""

    def write(self) -> None:
        said = json.dumps(self.value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        self.now = self.before + said + self.behind


def without_secrets(pieces: list[bytes], delays: list[int], scrubber: Scrubber) -> tuple[list[bytes], list[int]]:
    """The pieces of an answer, and the delay before each."""
    whole = b"".join(pieces)
    lines = (
        [PieceLine(whole)]
        if _value(whole) is not None
        else [PieceLine(each) for each in whole.splitlines(keepends=True)]
    )
    _clean(lines, scrubber)
    clean = b"".join([line.now for line in lines])
    rest = clean.decode("utf-8", "surrogateescape")
    if again := scrubber.found(rest):  # over several lines, or hidden by a key that stands twice
        lines = [PieceLine(whole, now=scrubber.replaced(rest, again).encode("utf-8", "surrogateescape"))]
        clean = lines[0].now
    return (pieces, delays) if clean == whole else _cut(lines, pieces, delays)


def _value(data: bytes) -> Any:
    """The object or list that this is, or None."""
    value = decode(data.decode("utf-8", "surrogateescape"), MAX_DEPTH) if data[:1] in (b"{", b"[") else None
    return None if isinstance(value, Undecodable) else value


def _clean(lines: list[PieceLine], scrubber: Scrubber) -> None:
    for line in lines:
        line.now = line.was
        line.before = next(each for each in _BEFORE if line.was.startswith(each))
        said = line.was[len(line.before) :].rstrip()
        line.behind = line.was[len(line.before) + len(said) :]
        line.value = _value(said)
    touched = _series(lines, scrubber)
    for at, line in enumerate(lines):
        if line.value is None:
            text = line.was.decode("utf-8", "surrogateescape")
            line.now = scrubber.replaced(text, scrubber.found(text)).encode("utf-8", "surrogateescape")
            continue
        clean = scrubber.value(line.value)
        if clean != line.value or at in touched:
            line.value = clean
            line.write()


# -- what several events say together ----------------------------------------------------------------------------------


class SaidPiece(msgspec.Struct):
    """A string of an event, and where it is kept."""

    event: int
    holder: Any
    at: Any


def _series(lines: list[PieceLine], scrubber: Scrubber) -> set[int]:
    """Takes out what is secret in the strings of several events, read as one. Gives the events that were changed."""
    said: dict[Path, list[SaidPiece]] = {}
    for event, line in enumerate(lines):
        if line.value is not None:
            for path, holder, at in _strings(line.value, ()):
                said.setdefault(path, []).append(SaidPiece(event, holder, at))
    touched: set[int] = set()
    for places in said.values():
        strings = [each.holder[each.at] for each in places]
        if len(set(strings)) > 1:
            touched |= _spread(places, strings, scrubber)
    for event in touched:
        _forget_bytes(lines[event].value)
    return touched


def _spread(places: list[SaidPiece], strings: list[str], scrubber: Scrubber) -> set[int]:
    text = "".join(strings)
    found = scrubber.found(text)
    clean = _replaced_in(strings, found, text, scrubber)
    if (whole := scrubber.text(text)) != text and not _is_same("".join(clean), whole):
        clean = [whole, *[""] * (len(strings) - 1)]  # an escape hid it
    touched = set()
    for place, before, after in zip(places, strings, clean, strict=True):
        if before != after:
            place.holder[place.at] = after
            touched.add(place.event)
    return touched


def _is_same(text: str, clean: str) -> bool:
    return text == clean or decode(text, MAX_DEPTH) == decode(clean, MAX_DEPTH)


def _replaced_in(strings: list[str], found: list[FoundSecret], text: str, scrubber: Scrubber) -> list[str]:
    """The strings without what was found in all of them as one text. The word for a secret stands where it began."""
    clean: list[str] = []
    waiting = iter(found)
    secret = next(waiting, None)
    at = 0
    for string in strings:
        end, kept = at + len(string), []
        while secret is not None and secret.start < end:
            if secret.start >= at:
                kept += [text[at : secret.start], scrubber.word_for(text, secret)]
            at = min(secret.end, end)
            if secret.end > end:
                break
            secret = next(waiting, None)
        clean.append("".join([*kept, text[at:end]]))
        at = end
    return clean


def _strings(value: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Every string below, with the way to it. In a list the number that an entry gives itself counts, not its place."""
    if isinstance(value, dict):
        path = (*path, *[value[name] for name in _PLACES if isinstance(value.get(name), int | str)])
        entries = [(name, name) for name in value]
    elif isinstance(value, list):
        entries = [(at, each.get("index", at) if isinstance(each, dict) else at) for at, each in enumerate(value)]
    else:
        return
    for at, name in entries:
        if isinstance(value[at], str):
            yield (*path, name), value, at
        else:
            yield from _strings(value[at], (*path, str(name)))


def _forget_bytes(value: Any) -> None:
    """Likelihoods spell out each token once more, as numbers."""
    if isinstance(value, dict) and isinstance(value.get("bytes"), list):
        value["bytes"] = []
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _forget_bytes(each)


# -- the pieces again --------------------------------------------------------------------------------------------------


def _cut(lines: list[PieceLine], pieces: list[bytes], delays: list[int]) -> tuple[list[bytes], list[int]]:
    """The clean answer cut where the pieces ended. A cut inside of what was changed is moved to the end of its line."""
    clean = b"".join([line.now for line in lines])
    made: list[bytes] = []
    waits: list[int] = []
    waited = at = 0
    for end, delay in zip(_ends(lines, pieces), [*delays, *[0] * len(pieces)], strict=False):
        waited += delay
        if end > at:
            made.append(clean[at:end])
            waits.append(waited)
            at, waited = end, 0
    return made, waits


def _ends(lines: list[PieceLine], pieces: list[bytes]) -> Iterator[int]:
    old = new = 0  # where the line begins, as it was and as it is now
    rest = iter(lines)
    line = next(rest, None)
    cut = 0
    for piece in pieces:
        cut += len(piece)
        while line is not None and old + len(line.was) <= cut:
            old, new, line = old + len(line.was), new + len(line.now), next(rest, None)
        if line is None or cut == old:
            yield new
        else:
            yield new + (cut - old if line.now == line.was else len(line.now))
