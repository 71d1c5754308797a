"""Keep tool output within limits and free of secrets: redaction, truncation, and pages of what was cut.

pages = Pages()
tools = Toolset(my_tools, pages.tool())
await dispatch(calls, tools, limits=RunLimits(result=Bounds(pages=pages)))"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol

import msgspec

from rightcall.dispatching.plain_json_values import plain
from rightcall.strict_json import escape_step
from rightcall.types import Tool

Steps = tuple[str, ...]


class Redaction(msgspec.Struct, frozen=True, kw_only=True):
    """Values that no model may see, given as JSON Pointers in which `*` matches any one step: `/rows/*/card`.

    - `deny`: values to replace. `deny` takes precedence over `allow`.
    - `allow`: if given, everything is replaced that neither leads to one of these places nor is inside one.
    - `text`: the replacement.
    """

    deny: tuple[str, ...] = ()
    allow: tuple[str, ...] | None = None
    text: str = "[redacted]"


def redact(value: Any, redaction: Redaction | None) -> tuple[Any, int]:
    """Return a copy of JSON data in which the values that no model may see are replaced, and their number. With None as
    the redaction, return the value itself and 0."""
    if redaction is None:
        return value, 0
    walker = _Redactor(redaction.text)
    allow = None if redaction.allow is None else [steps(pointer) for pointer in redaction.allow]
    return walker.walk(value, [steps(pointer) for pointer in redaction.deny], allow), walker.count


def steps(pointer: str) -> Steps:
    """Return the steps of a JSON Pointer, unescaped: ("a", "0") for "/a/0", and () for "", which is the whole value."""
    return tuple([step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]])


class _Redactor:
    """Replaces denied values in JSON data and counts them.

    The lists hold the remaining steps of each pointer that still leads here. `allow` is None inside an allowed
    place."""

    def __init__(self, text: str) -> None:
        self.text, self.count = text, 0

    def walk(self, value: Any, deny: list[Steps], allow: list[Steps] | None) -> Any:
        """Return the value with denied values replaced, counting each. `deny` and `allow` are the remaining steps of
        the pointers that lead into this value; `allow` is None if everything here is allowed."""
        if () in deny:
            return self.replacement()
        if allow is not None and () in allow:
            allow = None
        if allow is not None and (not allow or not isinstance(value, (dict, list))):
            return self.replacement()
        if not deny and allow is None:
            return value
        if isinstance(value, dict):
            return {
                key: self.walk(item, _remaining_steps(deny, key), _remaining_allowed(allow, key))
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [
                self.walk(item, _remaining_steps(deny, str(i)), _remaining_allowed(allow, str(i)))
                for i, item in enumerate(value)
            ]
        return value

    def replacement(self) -> str:
        """Count one replaced value and return the text that replaces it."""
        self.count += 1
        return self.text


def _remaining_steps(pointers: list[Steps], step: str) -> list[Steps]:
    """Return the pointers, given as steps, that lead into the member or item `step`, each without its first step: those
    whose first step is `step` or `*`."""
    return [rest[1:] for rest in pointers if rest and rest[0] in (step, "*")]


def _remaining_allowed(allow: list[Steps] | None, step: str) -> list[Steps] | None:
    """Return the pointers of `allow` that lead into the member or item `step`, each without its first step; None, which
    allows everything, stays None."""
    return None if allow is None else _remaining_steps(allow, step)


_DESCRIPTION = "Reads on where a result was cut. Send a page token exactly as a result showed it."
_WRAPPING = 512


class Pages:
    """Whole outputs, kept so that a model can continue where they were cut.

    Belongs to one conversation: every page token of its outputs is valid for it. Safe to share between threads.

    - `most_bytes`: how much is kept; the oldest outputs are dropped first.
    """

    def __init__(self, *, most_bytes: int = 64_000_000) -> None:
        self._most, self._used, self._made = most_bytes, 0, 0
        self._kept: OrderedDict[str, tuple[Any, Bounds, int]] = OrderedDict()
        self._lock = threading.Lock()

    def new_key(self) -> str:
        """Return a new key for the next output to keep. `dispatch` calls this."""
        with self._lock:
            self._made += 1
            return f"r{self._made}"

    def keep(self, key: str, whole: Any, bounds: Bounds) -> None:
        """Keep the `whole` of an output under its `key`, for `read` within `bounds`. Beyond `most_bytes` the oldest
        outputs are dropped, but never this one. `dispatch` calls this."""
        used = json_size(whole)
        with self._lock:
            self._kept[key] = (whole, bounds, used)
            self._used += used
            while self._used > self._most and len(self._kept) > 1:
                self._used -= self._kept.popitem(last=False)[1][2]

    def read(self, token: str) -> BoundedOutput:
        """Return the next piece for this `token`, within the bounds of its output: the text from where it was cut, or
        the items after the last one shown, with a token for the piece after it if there is more.

        Raises `ValueError` for an invalid token, or for one whose output has been dropped."""
        found = PageToken.read(token.strip())
        if found is None or found.at < 0:
            raise ValueError("this is not a page token; send one exactly as a result showed it")
        kept = self._kept.get(found.of)
        if kept is None:
            raise ValueError("the output of this page token is no longer kept; call the tool again")
        whole, bounds, _ = kept
        return _next_piece(_value_at(whole, found.pointer), found, bounds)

    def tool(self, name: str = "read_more") -> Tool:
        """Return the read-only tool with this `name` that a model calls with a page token to get the next piece; see
        `read`."""
        return Tool(
            name=name,
            description=_DESCRIPTION,
            parameters={
                "type": "object",
                "properties": {"token": {"type": "string", "description": "The page token."}},
                "required": ["token"],
                "additionalProperties": False,
            },
            read_only=True,
            run=self._read_more,
        )

    async def _read_more(self, token: str) -> BoundedOutput:
        """Return the next piece for a page token: the function of the tool. Raises `ValueError` as `read` does."""
        return self.read(token)


def _value_at(value: Any, pointer: str) -> Any:
    """Return the value at a JSON Pointer in `value`. Raises `ValueError`, with a text for the model, if there is
    none."""
    for step in steps(pointer):
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, ValueError, TypeError):
            raise ValueError(
                "there is no value at the place of this page token; send one exactly as a result showed it"
            ) from None
    return value


def _next_piece(value: Any, token: PageToken, bounds: Bounds) -> BoundedOutput:
    """Return the piece of a kept `value` that begins at the token's position, cut to the bounds, with the token that
    continues after it.

    Text continues at the next character, without a gap, so that the pieces can be joined; an array continues at the
    next item; any other value begins again."""
    place = Place(token.of, token.pointer, token.at)
    inner = msgspec.structs.replace(
        bounds, total_bytes=max(bounds.total_bytes - _WRAPPING, _WRAPPING), redaction=None, spill=None
    )
    if not isinstance(value, str):
        return cut_to_bounds(value[token.at :] if isinstance(value, list) else value, inner, place)
    rest = value[token.at :]
    piece = rest[: min(bounds.string_chars, inner.total_bytes // 6)]  # a character has at most six bytes in JSON
    if len(piece) == len(rest):
        return BoundedOutput(piece)
    following = PageToken(token.pointer, "string_chars", bounds.string_chars, token.of, token.at + len(piece))
    left = Omitted(token.pointer, "string_chars", str(following))
    return BoundedOutput(piece, omitted_chars=len(rest) - len(piece), omitted=(left,), redeemable=True)


def spill_to(file: BinaryIO) -> Callable[[str], str]:
    """Return a function for `Bounds.spill` that appends each output to the open `file` and returns its byte range."""

    def spill(text: str) -> str:
        """Append an output and a line break to the file, flush it, and return its name and byte range."""
        start = file.tell()
        file.write(text.encode() + b"\n")
        file.flush()
        return f"{getattr(file, 'name', 'the spill file')} (bytes {start}-{file.tell() - 1})"

    return spill


Reason = Literal["string_chars", "array_items", "total_bytes"]

_MAX_LISTED = 64  # omitted places that are listed one by one; all are counted
_SHOWN = 3
_LONGEST_TOKEN = 2_000  # a token holds its pointer, and keys may be of any length
_LEAST_CHARS = 64
_LEAST_ITEMS = 4
_LEAST_ROOM = 24  # bytes: a value cut to less is left out


class Store(Protocol):
    """Keeps outputs that were cut, so that they can be continued: `Pages`, or an implementation of the caller."""

    def new_key(self) -> str:
        """Return a key for the next output to keep."""

    def keep(self, key: str, whole: Any, bounds: Any) -> None:
        """Keep the `whole` of an output under its `key`, to be continued within `bounds`."""


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much of an output a model gets to see.

    Redaction comes first; then long texts keep their head and tail, long arrays their first items, and what is still
    too large loses its largest values.

    - `string_chars`: the most characters of one text.
    - `array_items`: the most items of one array.
    - `total_bytes`: the most bytes of the whole, as JSON.
    - `redaction`: what no model may see.
    - `pages`: keeps what was left out, so that the model can continue.
    - `spill`: receives the whole output as text when something was left out, and returns where it is stored.
    """

    string_chars: int = 4_000
    array_items: int = 64
    total_bytes: int = 256_000
    redaction: Redaction | None = None
    pages: Store | None = None
    spill: Callable[[str], str] | None = None


class Omitted(msgspec.Struct, frozen=True):
    """A part that was left out at `pointer`, for this `reason`.

    The `page_token` can be redeemed only if there are pages."""

    pointer: str
    reason: Reason
    page_token: str


class BoundedOutput(msgspec.Struct, frozen=True):
    """An output cut to size, with counts of what was left out.

    - `payload`: what remains, as plain JSON data.
    - `omitted_chars`, `omitted_items`, `omitted_values`: how much was left out of texts, of arrays, and of values as a
      whole.
    - `redacted_values`: how many values were replaced because no model may see them.
    - `omitted`: the first places where something was left out, each with its page token.
    - `handle`: where `Bounds.spill` stored the whole.
    - `redeemable`: the page tokens are valid for `Pages.read`.
    """

    payload: Any
    omitted_chars: int = 0
    omitted_items: int = 0
    omitted_values: int = 0
    redacted_values: int = 0
    omitted: tuple[Omitted, ...] = ()
    handle: str = ""
    redeemable: bool = False

    @property
    def truncated(self) -> bool:
        """Return whether anything was left out."""
        return bool(self.omitted)

    @property
    def page_token(self) -> str:
        """Return the token that continues at the first omission; "" if nothing was left out."""
        return self.omitted[0].page_token if self.omitted else ""

    @property
    def text(self) -> str:
        """Return the text for the model: the payload, as JSON unless it is a text; if something was left out, also
        lines that say what and how to get it."""
        text = self.payload if isinstance(self.payload, str) else to_json_text(self.payload)
        return text + "\n" + self._footer() if self.omitted else text

    def _footer(self) -> str:
        """Return the lines that follow a cut payload: what was left out, up to three tokens to continue, and where
        the whole is stored."""
        counts = {"characters": self.omitted_chars, "items": self.omitted_items, "values": self.omitted_values}
        what = ", ".join([f"{count:,} {name}" for name, count in counts.items() if count])
        redeemable = [each for each in self.omitted if len(each.page_token) <= _LONGEST_TOKEN and self.redeemable]
        cure = "Call read_more with a token:" if redeemable else "Ask for less, or for a part."
        lines = [f"[left out: {what}. {cure}"]
        lines += [f"{each.pointer or '(the whole)'} {each.page_token}" for each in redeemable[:_SHOWN]]
        if self.handle:
            lines.append(f"The whole is in {self.handle}")
        return "\n".join(lines) + "]"


class PageToken(msgspec.Struct, frozen=True):
    """The content of a page token. `of` names the output that was cut, `at` is the first character or item left out."""

    pointer: str
    reason: Reason
    limit: int
    of: str = ""
    at: int = 0

    def __str__(self) -> str:
        return "v1:" + msgspec.json.encode(self).hex()

    @classmethod
    def read(cls, text: str) -> PageToken | None:
        """Return the content of a page token; None for a text that is not one."""
        if not text.startswith("v1:") or len(text) > _LONGEST_TOKEN:
            return None
        try:
            return msgspec.json.decode(bytes.fromhex(text[3:]), type=cls)
        except ValueError:  # msgspec's errors are ValueErrors too
            return None


def bound(output: Any, bounds: Bounds | None = None) -> BoundedOutput:
    """Return an output as plain JSON data, redacted and cut to `bounds` (None: the defaults), as a `BoundedOutput`. An
    output that is one already is returned unchanged, whatever the bounds: its tool bounded it."""
    if isinstance(output, BoundedOutput):
        return output
    bounds = bounds or _DEFAULT
    whole, count = redact(plain(output), bounds.redaction)
    return cut_to_bounds(whole, bounds, Place(), hidden=count)


_DEFAULT = Bounds()


class Place(msgspec.Struct, frozen=True):
    """Where in a kept output a value comes from: `at` is the index of its first item there."""

    of: str = ""
    pointer: str = ""
    at: int = 0


def cut_to_bounds(whole: Any, bounds: Bounds, place: Place, *, hidden: int = 0) -> BoundedOutput:
    """Cut redacted plain data to all limits of `bounds` (characters per text, items per array, total bytes) and return
    it as a `BoundedOutput`.

    If something was cut, the whole is stored in `bounds.pages`, unless `place` says that it was read from there, and
    passed to `bounds.spill`. `hidden` becomes `redacted_values`."""
    of = place.of or (bounds.pages.new_key() if bounds.pages is not None else "")
    made = _cut_to_fit(whole, bounds, place)
    if not made.notes:
        return BoundedOutput(made.payload, redacted_values=hidden)
    if bounds.pages is not None and not place.of:
        bounds.pages.keep(of, whole, bounds)
    handle = _spill_whole(whole, bounds)
    omitted = [
        Omitted(note.pointer, note.reason, str(PageToken(note.pointer, note.reason, note.limit, of, note.at)))
        for note in _current_notes(made.notes)[:_MAX_LISTED]
    ]
    counts = (made.chars, made.items, made.values, hidden)
    return BoundedOutput(made.payload, *counts, tuple(omitted), handle, bounds.pages is not None)


def _spill_whole(whole: Any, bounds: Bounds) -> str:
    """Pass the whole as text to `Bounds.spill` and return the place that it returns. "" without `spill`, or if it
    raises `OSError` or `ValueError`; other errors are raised."""
    if bounds.spill is None:
        return ""
    try:
        return bounds.spill(whole if isinstance(whole, str) else to_json_text(whole))
    except (OSError, ValueError):  # a full disk or a closed file must not lose the result
        return ""


class _Note(NamedTuple):
    """Something left out: from `at` on, of the text or the array at `pointer`; all of it where `at` is 0."""

    pointer: str
    reason: Reason
    limit: int
    at: int


def _current_notes(notes: list[_Note]) -> list[_Note]:
    """Return the notes that are still true, in order. A later note of the same value replaces an earlier one, and a
    note below a value or item that `total_bytes` removed is dropped. Without cuts by `total_bytes`, all notes are
    returned."""
    last = {note.pointer: note for note in notes}
    ends = {note.pointer: note.at for note in last.values() if note.reason == "total_bytes"}
    if not ends:
        return notes
    return [note for note in notes if last[note.pointer] is note and not _is_in_omitted_part(note.pointer, ends)]


def _is_in_omitted_part(pointer: str, ends: dict[str, int]) -> bool:
    """Return whether the pointer leads below a value that was left out whole (`ends[pointer]` is 0), or to or below
    an item of a list from the index `ends[pointer]` on. The pointer of the value itself does not."""
    steps = pointer.split("/")
    for count in range(1, len(steps)):
        end = ends.get("/".join(steps[:count]))
        if end is not None and (end == 0 or (steps[count].isdigit() and int(steps[count]) >= end)):
            return True
    return False


def _cut_to_fit(whole: Any, bounds: Bounds, place: Place) -> _Cutter:
    """Return a `_Cutter` whose `payload` is the value, cut as little as needed for `total_bytes`, and which has the
    counts and notes of the cuts.

    Each round halves the characters of a text, then the items of an array; the first round that fits is found by
    bisection. If none fits, the tightest result is cut further by `_Shrinker`, which drops the largest values."""
    rounds = _limits_by_round(bounds)
    made = _Cutter(*rounds[0]).cut(whole, place)
    if json_size(made.payload) <= bounds.total_bytes:
        return made
    low, high = 1, len(rounds)
    best = None
    while low < high:
        middle = (low + high) // 2
        made = _Cutter(*rounds[middle]).cut(whole, place)
        if json_size(made.payload) <= bounds.total_bytes:
            best, high = made, middle
        else:
            low = middle + 1
    if best is not None:
        return best
    made = _Cutter(*rounds[-1]).cut(whole, place)
    made.payload = _Shrinker(made, bounds.total_bytes).fit(made.payload, bounds.total_bytes, place.pointer, place.at)
    return made


def _limits_by_round(bounds: Bounds) -> list[tuple[int, int]]:
    """Return the limits for each round of cutting, from the loosest to the tightest, as pairs: the most characters of a
    text and the most items of an array. First the characters are halved down to 64, then the items down to 4."""
    chars, items = min(bounds.string_chars, bounds.total_bytes), bounds.array_items
    found = [(chars, items)]
    while chars > _LEAST_CHARS:
        chars = max(chars // 2, _LEAST_CHARS)
        found.append((chars, items))
    while items > _LEAST_ITEMS:
        items = max(items // 2, _LEAST_ITEMS)
        found.append((chars, items))
    return found


class _Cutter:
    """Cuts texts and arrays, and counts what is lost. `parts` has the lengths of head and tail that texts kept."""

    def __init__(self, most_chars: int, most_items: int) -> None:
        self.most_chars, self.most_items = most_chars, most_items
        self.payload: Any = None
        self.chars = self.items = self.values = 0
        self.notes: list[_Note] = []
        self.parts: dict[str, tuple[int, int]] = {}

    def cut(self, whole: Any, place: Place) -> _Cutter:
        """Set `payload` to the value with its texts and arrays cut, and return this cutter."""
        self.payload = self.walk(whole, place.pointer, place.at)
        return self

    def walk(self, value: Any, pointer: str, start: int = 0) -> Any:
        """Return a copy of the value with its texts and arrays cut; each cut is recorded in `notes` and the counts.
        `pointer` leads to the value, `start` is the index of an array's first item in the whole."""
        if isinstance(value, str):
            return value if len(value) <= self.most_chars else self.text(value, pointer)
        if isinstance(value, dict):
            return {
                key: self.walk(item, f"{pointer}/{escape_step(key)}") if self.may_shrink(item) else item
                for key, item in value.items()
            }
        return self.array(value, pointer, start) if isinstance(value, list) else value

    def may_shrink(self, value: Any) -> bool:
        """Return whether a value must be walked: True for a container, also one that stays whole, and for a text longer
        than allowed."""
        return isinstance(value, (dict, list)) or (isinstance(value, str) and len(value) > self.most_chars)

    def text(self, value: str, pointer: str) -> str:
        """Return the head and tail of a text that is too long, with a mark between them; only the head, without a mark,
        if there is no room for both. The cut is recorded in `notes`, `chars` and `parts`."""
        room = self.most_chars - len(_gap_text(len(value)))
        tail = room // 4 if room >= _LEAST_CHARS else 0
        head = room - tail if tail else self.most_chars
        self.parts[pointer] = (head, tail)
        lost = len(value) - head - tail
        self.chars += lost
        self.notes.append(_Note(pointer, "string_chars", self.most_chars, head))
        return value[:head] + _gap_text(lost) + value[-tail:] if tail else value[:head]

    def array(self, value: list[Any], pointer: str, start: int) -> list[Any]:
        """Return the first items of an array, each cut; the number of items left out is recorded in `notes` and
        `items`."""
        kept = [self.walk(item, f"{pointer}/{start + at}") for at, item in enumerate(value[: self.most_items])]
        if len(kept) < len(value):
            self.items += len(value) - len(kept)
            self.notes.append(_Note(pointer, "array_items", self.most_items, start + len(kept)))
        return kept


def _gap_text(lost: int) -> str:
    """Return the mark that replaces `lost` characters in the middle of a text."""
    return f"\n[... {lost:,} characters left out ...]\n"


class _Shrinker:
    """Cuts a payload further until it fits.

    Every field gets an equal share of the room; what a small one does not need is given to the larger ones.
    """

    def __init__(self, made: _Cutter, limit: int) -> None:
        self.made, self.limit = made, limit
        self.sizes: dict[int, int] = {}

    def json_size(self, value: Any) -> int:
        """Return the number of bytes of a value as compact JSON; that of a container may be a byte too high, and is
        computed once."""
        if not isinstance(value, (dict, list)):
            return json_size(value)
        found = self.sizes.get(id(value))
        if found is None:
            inner = (
                [self.json_size(item) + 1 for item in value]
                if isinstance(value, list)
                else [json_size(key) + self.json_size(item) + 2 for key, item in value.items()]
            )
            found = self.sizes[id(value)] = max(2, sum(inner) + 1)
        return found

    def fit(self, value: Any, room: int, pointer: str, start: int = 0) -> Any:
        """Cut a value to about `room` bytes of JSON and return it, unchanged if it fits. Cuts are recorded as notes and
        counts in `made`, not marked in the value; a number becomes the head of its text. `start` is the index of an
        array's first item in the whole."""
        if self.json_size(value) <= room:
            return value
        if isinstance(value, list):
            return self.items(value, room - 2, pointer, start)
        if isinstance(value, dict):
            return self.fields(value, room - 2, pointer)
        return self.head(value if isinstance(value, str) else to_json_text(value), room, pointer)

    def head(self, value: str, room: int, pointer: str) -> str:
        """Return the longest head of a text that fits in `room` bytes of JSON; the cut is recorded in `made`. A text
        that was cut before keeps none of its mark and tail."""
        head, tail = self.made.parts.get(pointer, (len(value), 0))
        low, high = 0, min(head, room)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if json_size(value[:middle]) <= room else (low, middle - 1)
        self.made.chars += head + tail - low
        self.note(pointer, low)
        return value[:low]

    def items(self, value: list[Any], room: int, pointer: str, start: int) -> list[Any]:
        """Return the first items of an array that fit in `room` bytes, the last of them cut; the items left out are
        recorded in `made`. `start` is the index of the first item in the whole."""
        kept: list[Any] = []
        for at, item in enumerate(value):
            if room < min(self.json_size(item) + 1, _LEAST_ROOM):
                break
            kept.append(self.fit(item, room - 1, f"{pointer}/{start + at}"))
            room -= (self.json_size(item) if kept[-1] is item else json_size(kept[-1])) + 1
        if len(kept) < len(value):
            self.made.items += len(value) - len(kept)
            self.note(pointer, start + len(kept))
        return kept

    def fields(self, value: dict[str, Any], room: int, pointer: str) -> dict[str, Any]:
        """Return the members of an object that fit in `room` bytes, in their order. The room is shared from the
        smallest member to the largest, and each is cut to its share; one for which the share is too small is left out
        and recorded in `made`."""
        kept: dict[str, Any] = {}
        waiting = sorted(value, key=lambda key: self.json_size(value[key]))
        for done, key in enumerate(waiting):
            name, share = json_size(key) + 2, room // (len(waiting) - done)
            whole = name + self.json_size(value[key])
            if whole > max(share, min(room, _LEAST_ROOM)) and share - name < _LEAST_ROOM:
                self.made.values += 1
                self.note(f"{pointer}/{escape_step(key)}", 0)
                continue
            kept[key] = self.fit(value[key], max(share, min(room, _LEAST_ROOM)) - name, f"{pointer}/{escape_step(key)}")
            room -= name + json_size(kept[key])
        return {key: kept[key] for key in value if key in kept}

    def note(self, pointer: str, at: int) -> None:
        """Record in `made` that, to fit `total_bytes`, the text or array at this pointer was left out from the
        character or item `at` on; the whole value for 0."""
        self.made.notes.append(_Note(pointer, "total_bytes", self.limit, at))


def to_json_text(value: Any) -> str:
    """Return plain JSON data as compact JSON text."""
    return msgspec.json.encode(value).decode()


def json_size(value: Any) -> int:
    """Return the number of bytes of plain JSON data as compact JSON."""
    return len(msgspec.json.encode(value))
