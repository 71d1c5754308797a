"""Where a bare value ends:  owl</parameter>\\n<parameter=n>

A closing tag inside a value does not close it: a close counts only before what can follow a value, which is another
argument, the body's close, the call's or section's close, the opener of another call, an end-of-turn token. What else
of the format's own tags a value holds is remembered: where it may have swallowed what follows it, it is in doubt.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring as quoted
from typing import Any, Literal, NamedTuple

import msgspec

from rightcall.formats.spec import alternatives
from rightcall.parsing.bodies.tags import Tags
from rightcall.parsing.buffer import MAX_PIECE, MAX_PIECES, Broken, Capture, Cut, Sink, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import (
    END,
    MAX_BLANKS,
    Holes,
    Pat,
    Probe,
    Scan,
    alt,
    blanks,
    literal,
    seq,
    template,
)
from rightcall.types import Arguments, Event

_SPACES, _RUN = f"[ \\t\\r]{{0,{MAX_BLANKS}}}+", f"[ \\t\\r\\n]{{0,{MAX_BLANKS}}}+"
_LINES = Pat(f"{_SPACES}\\n{_RUN}", f"{_SPACES}(?:\\n{_RUN})?+")  # blanks with a line break
Found = re.Match[str] | Literal[False]


class Doubt(NamedTuple):
    """Why the value may hold more than it was meant to."""

    code: str
    message: str


class _Seen(msgspec.Struct):
    """The format's own tags in the value so far."""

    closed: bool = False  # a value's close
    opened: bool = False  # the opener of an argument or of a call
    shut: bool = False  # a close of more than a value, of nothing that was opened here
    depth: int = 0  # how many calls were opened and not closed
    quoted: bool = False  # what opens quotes
    argument: str = ""  # the opener of this argument, which is one of the tool's or of a call that was opened here
    repeated: str = ""  # or one that was given before
    message: Capture | None = None  # what begins another message


# A value that ends in a tag character or in a tag without its last character may end in what is left of its close.
_ENDS_IN_TAG = re.compile(r"(?:[<>/|]|<[^<>\n]*+)\s*\Z").search
_LONGEST_TAG = 80
_LINE_BREAKS = ("\n", "\r\n")


class Value(msgspec.Struct, frozen=True):
    """One value being taken. With `give` each piece of it goes out as it comes."""

    key: str
    given: dict[str, Any]
    pieces: list[str]
    give: bool
    edges: list[bool]  # whether the close that ended it came with a line break of its own


class ValueEnd:
    """Finds the end of one argument's value. `line`: the line break of its own that its opener came with. `inline`: it
    came with none, and neither did those of an argument before it."""

    __slots__ = ("_is_plain", "chain", "is_named", "is_special", "param", "scan", "tags")

    def __init__(self, tags: Tags, param: Holes, key: str, line: str, quote: str, inline: bool) -> None:
        self.tags, self.param, self.is_named = tags, param, bool(key)
        entries = [("close", pat) for pat in self._closes(key, line, quote, inline)]
        entries += (
            self._inside(line) if not quote else [("quote", literal(tags.body.quote[0]))] if tags.body.quote else []
        )
        self.scan = Scan(entries)
        heads = "".join({re.escape(pat.head) for _, pat in entries})
        self.is_special = re.compile(f"[{heads}]").search
        self._is_plain = re.compile(rf'[^"\\\x00-\x1f{heads}]{{1,{MAX_PIECE}}}+').fullmatch
        self.chain = Probe(self._chain())

    def _closes(self, key: str, line: str, quote: str, inline: bool) -> list[Pat]:
        body = self.tags.body
        own = alternatives(body.value_close)
        texts = [text.replace("{key}", key) if key else text for text in own if text]
        cores = [seq(literal(quote), template(text)) if quote else template(text) for text in texts]
        # A line break before the close is the close's own where the opener had one, or where the format writes it so.
        with_break = any(text.startswith("\n") for text in texts) and (line or own[0].startswith("\n")) and not inline
        return [seq(literal(each), core) for each in _breaks(line) for core in cores] + cores if with_break else cores

    def _inside(self, line: str) -> list[tuple[str, Pat]]:
        tags = self.tags
        missing = tags.whole_params if tags.is_special or "" in alternatives(tags.body.value_close) else []
        return [
            *(("next", seq(literal(each), pat)) for each in _breaks(line) for pat in missing if pat.head),
            *(("next" if tags.is_special else "param", pat) for pat in tags.whole_params if pat.head),
            *(("open", pat) for pat in tags.param_starts),
            *(("call", pat) for pat in tags.whole_openers),
            *(("shut", pat) for pat in tags.shuts),
            *(("message", pat) for pat in tags.headers),
        ]

    def _chain(self) -> Pat:
        """What may follow a value: another argument, or the end of the body and of the call.

        The body's close is enough where nothing or a line break precedes it; behind blanks alone it is one only before
        more structure, so that a value which holds it is never cut off there.
        """
        tags = self.tags
        over = alt(*tags.call_closes, *tags.section_closes, *tags.openers, *tags.turns)
        ends = [seq(close, blanks(), over) for close in tags.body_closes]
        whole = seq(blanks(), alt(*tags.param_pats(group="key"), *ends, over, END))
        return alt(whole, *tags.body_closes, *[seq(_LINES, close) for close in tags.body_closes])

    def at_once(self, p: CallBuilder, key: str, given: dict[str, Any]) -> tuple[str, bool] | None:
        """Takes a value and the marker that closes it, if all of that is here and as usual; else takes nothing. Its
        text, and whether the marker came with a line break of its own."""
        buf, scan = p.buf, self.scan
        found = (scan.ended if p.ended else scan.search)(buf, p.pos)
        if found is None or found.lastindex is None or scan.actions[found.lastindex] != "close":
            return None
        follows = self.chain.at(buf, found.end(), p.ended)
        if not follows or not self._is_close(follows, key, given):
            return None
        start, end = found.span()
        text = buf[p.pos : start]
        p.pos = end
        return text, buf.startswith(_LINE_BREAKS, start)

    def take(self, p: CallBuilder, value: Value) -> Steps[Doubt | None]:
        """Takes a value and the marker that closes it."""
        seen = _Seen()
        return self._in_message(p, value, seen) if self.tags.headers else self._take(p, value, seen)

    def _in_message(self, p: CallBuilder, value: Value, seen: _Seen) -> Steps[Doubt | None]:
        """A value that is not closed ends where another message begins: what stands in that is not the call's."""
        try:
            doubt = yield from self._take(p, value, seen)
        except (Cut, Broken):
            if seen.message is None:
                raise
            p.give_back(seen.message)
            message = f"the argument {value.key!r} is not closed, and another message begins; send the call again"
            raise Broken("ambiguous_end", message, f"/{value.key}") from None
        if seen.message is not None:
            p.drop(seen.message)
        return doubt

    def _take(self, p: CallBuilder, value: Value, seen: _Seen) -> Steps[Doubt | None]:
        scan = self.scan
        sink: Sink | None = None

        def record(text: str) -> None:
            value.pieces.append(text)
            if value.give:
                p.record_given(quoted(text)[1:-1])

        while True:
            found = (scan.ended if p.ended else scan.search)(p.buf, p.pos)
            end = found.start() if found else len(p.buf)
            if end > p.pos:
                self._add(p, p.buf[p.pos : end], value)
                p.pos = end
            if found is None or found.lastindex is None:
                if p.ended:
                    raise Cut
                sink = sink or self._sink(p, live=value.give and p.live)
                p.listen(sink, record)
                yield
                p.sink = None
                continue
            action = scan.actions[found.lastindex]
            if action == "close":
                size = found.end() - end
                follows = self.chain.at(p.buf, end + size, p.ended)
                if follows is None:
                    follows = yield from self._behind(self.chain, p, size)
                if self._is_close(follows, value.key, value.given):
                    value.edges.append(break_at(p) > 0)
                    p.pos += size
                    return self._doubt(seen, value)
                seen.closed = True
            elif action == "next":
                if (yield from self._is_next(p, value)):
                    return self._doubt_of_next(value, seen)
                self._see(p, action, value, seen)
            else:
                if action == "open":
                    action = yield from self._opened(p)
                self._see(p, action, value, seen)
            # Not structure: its first character is the value's, and the search goes on behind it.
            self._add(p, p.buf[p.pos], value)
            p.pos += 1

    def _sink(self, p: CallBuilder, *, live: bool) -> Sink:
        """Consume what arrives inside a value, up to what may be a marker."""
        is_plain, is_special, search = self._is_plain, self.is_special, self.scan.search
        consumed, index = p.consumed, p.call.index if p.call is not None else 0

        def sink(piece: str) -> list[Event] | None:
            if len(consumed) >= MAX_PIECES:
                return None
            if not p.buf and is_plain(piece):
                consumed.append(piece)
                return [Arguments(index, piece)] if live else []
            if len(piece) > MAX_PIECE:
                return None
            text, rest = p.buf + piece, ""
            if is_special(text) and (found := search(text, 0)):
                if found.lastindex is not None:
                    return None
                text, rest = text[: found.start()], text[found.start() :]
            p.buf = rest
            if not text:
                return []
            consumed.append(text)
            return [Arguments(index, quoted(text)[1:-1])] if live else []

        return sink

    def _add(self, p: CallBuilder, text: str, value: Value) -> None:
        value.pieces.append(text)
        if value.give:
            p.give(quoted(text)[1:-1])

    def _behind(self, probe: Probe, p: CallBuilder, size: int) -> Steps[Found]:
        """Does this follow what stands here, of that size?"""
        while True:
            found = probe.at(p.buf, p.pos + size, p.ended)
            if found is not None:
                return found
            yield

    def _is_close(self, follows: Found, key: str, given: dict[str, Any]) -> bool:
        """Is a close before this really one? A repeated key is no argument that could follow."""
        if not follows or not follows.lastindex or self.is_named:
            # Where the close has the argument's own name, a repeated one is for the call to tell.
            return bool(follows)
        other = self.tags.plain(follows[follows.lastindex])
        return other != key and other not in given

    def _is_repeated(self, key: str, value: Value) -> bool:
        return key in value.given or key == value.key

    def _is_next(self, p: CallBuilder, value: Value) -> Steps[bool]:
        """The next argument's opener where a close was due: forgiven if its key is not yet given, and declared
        or told by a special token."""
        while True:
            line = break_at(p)
            found = self.param.probe.at(p.buf, p.pos + line, p.ended)
            if found is not None:
                break
            yield
        if not found:
            return False
        key = self.tags.plain(self.param.fill(found)["key"])
        is_known = self.tags.is_special or p.kind(key) is not None
        if self._is_repeated(key, value) or not is_known or p.call is None:
            return False
        p.pos += line
        _note_unclosed(p, f"the argument before {key!r} was not closed")
        return True

    def _opened(self, p: CallBuilder) -> Steps[str]:
        """The beginning of an argument's opener: is the rest of it here too? However the text is cut."""
        while True:
            found = self.param.probe.at(p.buf, p.pos, p.ended)
            if found is not None:
                return "param" if found else "open"
            yield

    def _see(self, p: CallBuilder, action: str, value: Value, seen: _Seen) -> None:
        """A tag of the format's own that does not end the value."""
        if action == "shut":
            seen.shut = seen.shut or not seen.depth
            seen.depth = max(0, seen.depth - 1)
        elif action == "quote":
            seen.quoted = True
        elif action == "message":
            seen.message = p.capture() if seen.message is None else seen.message
        elif action == "call":
            if seen.closed or seen.shut:
                raise Broken("ambiguous_end", *swallowed(value.key, "another call"))
            seen.opened, seen.depth = True, seen.depth + 1
        else:
            seen.opened = True
            at = self.param.probe.whole(p.buf, p.pos + break_at(p)) if action != "open" else None
            key = self.tags.plain(self.param.fill(at)["key"]) if at else ""
            if key and self._is_repeated(key, value):
                seen.repeated = key
            # Behind the opener of a call that nothing closed, the argument is that call's, whatever tool it is of.
            if key and (p.tools is None or seen.depth or p.kind(key) is not None):
                seen.argument = key

    def _doubt(self, seen: _Seen, value: Value) -> Doubt | None:
        if seen.repeated and seen.closed:
            return Doubt("duplicate_argument", f"the argument {seen.repeated!r} is given twice; send it once")
        if seen.argument or seen.quoted or (seen.opened and (seen.closed or seen.shut)):
            other = f"the argument {seen.argument!r}" if seen.argument else "another argument or call"
            return Doubt("ambiguous_end", swallowed(value.key, other)[0])
        if (seen.closed or seen.shut) and self.tags.reopens("".join(value.pieces)):
            return Doubt("ambiguous_end", swallowed(value.key, "another call")[0])
        if seen.closed and self.tags.ends_in_close("".join(value.pieces), value.key):
            message = f"the argument {value.key!r} ends with two closing tags, so that its end is not certain"
            return Doubt("ambiguous_end", f"{message}; close it once")
        return None

    def _doubt_of_next(self, value: Value, seen: _Seen) -> Doubt | None:
        """A value that the next argument ended: does what may be left of its close stand in it?"""
        if seen.closed or seen.shut or seen.opened or _ENDS_IN_TAG("".join(value.pieces)[-_LONGEST_TAG:]):
            message = f"the argument {value.key!r} is not closed as it should be; send the call again"
            return Doubt("ambiguous_end", message)
        return None


def _note_unclosed(p: CallBuilder, message: str) -> None:
    if p.call is not None:
        p.problem("unclosed_argument", message, blocking=False, call=p.call.index)


def break_at(p: CallBuilder) -> int:
    """How long the line break is that stands here; 0 where none does."""
    char = p.buf[p.pos : p.pos + 1]
    return 1 if char == "\n" else 2 if char == "\r" and p.buf.startswith("\r\n", p.pos) else 0


def _breaks(line: str) -> list[str]:
    """The line breaks that a close may have of its own, where the opener had this one."""
    return ["\r\n", "\n"] if line == "\r\n" else ["\n"]


def swallowed(key: str, other: str) -> tuple[str, str]:
    """What is said of an argument that holds another one or a call, and where it stands."""
    cure = "close each argument and each call, and write no tags of this format into a value"
    return f"the argument {key!r} holds what looks like {other}, so that its end is not certain; {cure}", f"/{key}"
