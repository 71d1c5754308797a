"""Remove secrets from a streamed answer, also secrets that extend over several pieces.

The network may cut a secret anywhere, and the model writes a few letters in each event. So the strings at the same
place of consecutive events are joined and searched as one text. Pieces without secrets keep their boundaries.
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
    """A line of the answer: its bytes as received (`was`), the text `before` and `behind` its JSON, the JSON `value`
    (None if it has none), and its bytes without secrets (`now`)."""

    was: bytes
    before: bytes = b""
    value: Any = None
    behind: bytes = b""
    now: bytes = b""

    def write(self) -> None:
        """Set `now` to the line with the current JSON value."""
        encoded = json.dumps(self.value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        self.now = self.before + encoded + self.behind


def scrub_pieces(pieces: list[bytes], delays: list[int], scrubber: Scrubber) -> tuple[list[bytes], list[int]]:
    """Return the pieces of a streamed answer without secrets, and the delay before each piece. Both are returned
    unchanged if nothing was found; pieces whose text was changed may be merged, and then their delays are added."""
    whole = b"".join(pieces)
    lines = (
        [PieceLine(whole)]
        if _parse_container(whole) is not None
        else [PieceLine(each) for each in whole.splitlines(keepends=True)]
    )
    _scrub_lines(lines, scrubber)
    clean = b"".join([line.now for line in lines])
    text = clean.decode("utf-8", "surrogateescape")
    if found := scrubber.find_secrets(text):  # over several lines, or hidden by a duplicate key
        lines = [PieceLine(whole, now=scrubber.replace_secrets(text, found).encode("utf-8", "surrogateescape"))]
        clean = lines[0].now
    return (pieces, delays) if clean == whole else _cut_at_piece_ends(lines, pieces, delays)


def _parse_container(data: bytes) -> Any:
    """Return the JSON object or list that the bytes are; None for anything else."""
    value = decode(data.decode("utf-8", "surrogateescape"), MAX_DEPTH) if data[:1] in (b"{", b"[") else None
    return None if isinstance(value, Undecodable) else value


def _scrub_lines(lines: list[PieceLine], scrubber: Scrubber) -> None:
    """Parse each line and set its `now` to its bytes without secrets, and its other fields. In JSON, secrets in strings
    that continue over several lines are removed too."""
    for line in lines:
        line.now = line.was
        line.before = next(each for each in _BEFORE if line.was.startswith(each))
        content = line.was[len(line.before) :].rstrip()
        line.behind = line.was[len(line.before) + len(content) :]
        line.value = _parse_container(content)
    changed = _scrub_joined_strings(lines, scrubber)
    for at, line in enumerate(lines):
        if line.value is None:
            text = line.was.decode("utf-8", "surrogateescape")
            line.now = scrubber.replace_secrets(text, scrubber.find_secrets(text)).encode("utf-8", "surrogateescape")
            continue
        clean = scrubber.value(line.value)
        if clean != line.value or at in changed:
            line.value = clean
            line.write()


# -- strings over several events ---------------------------------------------------------------------------------------


class StringPosition(msgspec.Struct):
    """A string in an event: the number of the event, and the container and key that hold the string."""

    event: int
    holder: Any
    at: Any


def _scrub_joined_strings(lines: list[PieceLine], scrubber: Scrubber) -> set[int]:
    """Join the strings at the same place of consecutive events, remove secrets from the joined texts, and store the
    strings in the JSON values of the lines. Return the numbers of the changed lines, whose `now` is not set here."""
    positions: dict[Path, list[StringPosition]] = {}
    for event, line in enumerate(lines):
        if line.value is not None:
            for path, holder, at in _walk_strings(line.value, ()):
                positions.setdefault(path, []).append(StringPosition(event, holder, at))
    changed: set[int] = set()
    for places in positions.values():
        strings = [each.holder[each.at] for each in places]
        if len(set(strings)) > 1:
            changed |= _scrub_joined(places, strings, scrubber)
    for event in changed:
        _clear_token_bytes(lines[event].value)
    return changed


def _scrub_joined(places: list[StringPosition], strings: list[str], scrubber: Scrubber) -> set[int]:
    """Remove secrets from `strings`, which continue one another, and store each at its place in `places`. Return the
    numbers of the changed events. If the joined text is JSON in which an escape hides a secret, the first string gets
    all of the text and the others become empty."""
    text = "".join(strings)
    found = scrubber.find_secrets(text)
    clean = _replace_across(strings, found, text, scrubber)
    if (whole := scrubber.text(text)) != text and not _are_equal_json("".join(clean), whole):
        clean = [whole, *[""] * (len(strings) - 1)]  # the joined text is JSON in which an escape hid a secret
    changed = set()
    for place, before, after in zip(places, strings, clean, strict=True):
        if before != after:
            place.holder[place.at] = after
            changed.add(place.event)
    return changed


def _are_equal_json(text: str, clean: str) -> bool:
    """Return whether two texts are equal, or are JSON of equal values."""
    return text == clean or decode(text, MAX_DEPTH) == decode(clean, MAX_DEPTH)


def _replace_across(strings: list[str], found: list[FoundSecret], text: str, scrubber: Scrubber) -> list[str]:
    """Return the strings without the secrets `found` in their joined `text`. The replacement is in the string where the
    secret began; the other strings lose their part of it."""
    clean: list[str] = []
    waiting = iter(found)
    secret = next(waiting, None)
    at = 0
    for string in strings:
        end, kept = at + len(string), []
        while secret is not None and secret.start < end:
            if secret.start >= at:
                kept += [text[at : secret.start], scrubber.replacement_for(text, secret)]
            at = min(secret.end, end)
            if secret.end > end:
                break
            secret = next(waiting, None)
        clean.append("".join([*kept, text[at:end]]))
        at = end
    return clean


def _walk_strings(value: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Yield the path, container and key of every string in `value`, at any depth. A path has the keys to the string
    after `path`, and the values of `type`, `index` and the like; for list items, their `index` is used instead of their
    position."""
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
            yield from _walk_strings(value[at], (*path, str(name)))


def _clear_token_bytes(value: Any) -> None:
    """Empty every list under the key `bytes` in a JSON value, in place: log probabilities spell out each token again as
    numbers."""
    if isinstance(value, dict) and isinstance(value.get("bytes"), list):
        value["bytes"] = []
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _clear_token_bytes(each)


# -- cutting into pieces -----------------------------------------------------------------------------------------------


def _cut_at_piece_ends(lines: list[PieceLine], pieces: list[bytes], delays: list[int]) -> tuple[list[bytes], list[int]]:
    """Return the scrubbed lines as pieces that end where the original pieces ended, and the delay before each. A cut
    inside changed text moves to the end of its line; a piece that becomes empty is dropped, and its delay added to the
    next."""
    clean = b"".join([line.now for line in lines])
    made: list[bytes] = []
    waits: list[int] = []
    waited = at = 0
    for end, delay in zip(_find_cuts(lines, pieces), [*delays, *[0] * len(pieces)], strict=False):
        waited += delay
        if end > at:
            made.append(clean[at:end])
            waits.append(waited)
            at, waited = end, 0
    return made, waits


def _find_cuts(lines: list[PieceLine], pieces: list[bytes]) -> Iterator[int]:
    """Yield, for each original piece, the index in the joined scrubbed lines at which it ends. In a line that was
    changed, that is the end of the line."""
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
