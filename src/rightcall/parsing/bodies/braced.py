"""Bare keys in braces:  call:f{k:<|"|>v<|"|>,n:1,l:[{a:true}]}   as the Gemma family writes them.

Strings stand between two quote tokens. A quote closes one only if what follows can follow a value: a comma and a key or
a value, or a bracket that is itself followed by structure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from json.encoder import encode_basestring as quoted
from typing import Any

from rightcall.formats.body_kinds import first_alternative
from rightcall.formats.spec import HOLES, Braced, Format
from rightcall.parsing.argument_values import (
    TEXT_KINDS,
    Read,
    all_there,
    bad_escape,
    meant,
    skipped,
    string,
    string_at,
    to_json,
    typed,
    whole,
)
from rightcall.parsing.bodies.body_reader import Around, BodyReader
from rightcall.parsing.buffer import Broken, Cut, NotACall, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import (
    END,
    NAME,
    TEXT_END,
    Holes,
    Pat,
    Probe,
    Scan,
    alt,
    blanks,
    literal,
    lookahead,
    presence,
    seq,
    templates,
)
from rightcall.parsing.values.notation import (
    BRACED_KEY,
    JSON_WORDS,
    LONGEST,
    PYTHON_ESCAPES,
    SURROGATE_PAIR,
    FullMatch,
    Match,
    Notation,
    Quote,
    StringText,
    Taken,
    braces,
    easy_without,
)
from rightcall.parsing.values.value_reader import BadValue, Ends, Odd, Unfinished, ValueReader, opening
from rightcall.strict_json import Undecodable, decode_unique, pointer_step
from rightcall.types import Repair

PAIRS = (*[(mark, mark) for mark in "\"'`\u201d\u2019"], ("\u201c", "\u201d"), ("\u2018", "\u2019"))
MARKS = "".join([opens for opens, _ in PAIRS])
_ESCAPE = seq(literal("\\"), Pat(rf"(?:{SURROGATE_PAIR}|[\s\S])", ""))
_SOUND = re.compile(r"(?:[^\\]++|\\(?:[\"'`\\/bfnrt]|u[0-9a-fA-F]{4}))*+").fullmatch
_SHOWN = 200
KEY_IN_QUOTES = r"[^\s:{}\[\],<>\"'`\\]{1,256}+"
_KEY = re.compile(rf"([\"'`])({KEY_IN_QUOTES})\1(?=[ \t\r\n]{{0,8}}+:)").match


class Ordinary:
    """Behind its first quote. `inner`: a quote stands in it that was not escaped; `lost`: it has no end."""

    __slots__ = ("_close", "_follows", "_scan", "easy", "inner", "lost", "odd")
    has_hole = False

    def __init__(self, close: str, scan: Scan[str], follows: Probe, easy: FullMatch) -> None:
        self._close, self._scan, self._follows, self.easy = close, scan, follows, easy
        self.odd = self.inner = self.lost = False

    def take(self, text: str, pos: int, ended: bool) -> Taken:
        start, search = pos, self._scan.ended if ended else self._scan.search
        while (found := search(text, pos)) is not None:
            at, sign = found.start(), "" if found.lastindex is None else self._scan.actions[found.lastindex]
            if sign == "quote":
                closes = self._follows.at(text, at, ended)
                if closes:
                    return at + 1, self._decoded(text[start:at]), True
                sign = "" if closes is None else sign
                self.inner = self.inner or closes is False
            if sign == "escape" and not ended and len(text) - at < LONGEST:
                sign = ""
            if not sign or sign == "stop":
                self.lost = sign == "stop"
                return at, self._decoded(text[start:at]), False
            pos = found.end()
        return len(text), self._decoded(text[start:]), False

    def _decoded(self, text: str) -> str:
        if "\\" not in text:
            return text
        self.odd = self.odd or _SOUND(text) is None
        return PYTHON_ESCAPES.read(text)

    def plain(self, text: str) -> tuple[str, int] | None:
        return (text, len(text)) if self.easy(text) else None


def ordinary(stops: list[Pat], after: Pat) -> tuple[Quote, ...]:
    """The quotes of such strings: one of `stops` ends the call, `after` is what follows a value."""
    return tuple([Quote(opens, closes, PYTHON_ESCAPES, make=_maker(closes, stops, after)) for opens, closes in PAIRS])


def _maker(close: str, stops: list[Pat], after: Pat) -> Callable[[], StringText]:
    scan = Scan([("escape", _ESCAPE), ("quote", literal(close)), *[("stop", stop) for stop in stops]])
    follows = presence(seq(literal(close), blanks(), after))
    easy = easy_without(close + "".join([stop.head or "<" for stop in stops]))
    return lambda: Ordinary(close, scan, follows, easy)


class OrdinaryReader(ValueReader):
    """Reads such strings inside lists and objects; `ordinary` says how each was written, and whether it is a guess."""

    def __init__(self, notation: Notation, text: str, pos: int, *, depth: int, ended: bool) -> None:
        super().__init__(notation, text, pos, depth=depth, ended=ended)
        self.ordinary: list[tuple[str, bool]] = []

    def _text(self, char: str) -> str | None:
        if char not in MARKS:
            return super()._text(char)
        begin = self.pos
        found = opening(self.notation, self.text, begin, self.ended)
        assert found is not None
        string, start = found
        self.pos, text, closed = string.take(self.text, start, self.ended)
        if not closed:
            if not self.ended:
                raise Unfinished
            raise BadValue("unterminated_string", f"a string that starts with {char} is not closed")
        written = self.text[begin : self.pos]
        if string.odd:
            self.escaped.append(Odd(self._path(), written[1:-1]))
        self.ordinary.append((written, isinstance(string, Ordinary) and string.inner))
        return text

    def _key(self, char: str) -> tuple[str, bool]:
        if char not in MARKS:
            key = self._key_in_tokens()
            return super()._key(char) if key is None else (key, True)
        found = _KEY(self.text, self.pos)
        if found is None:
            if not self.ended:
                raise Unfinished
            raise BadValue("invalid_argument_name", f"a key stands without quotes, not with {char}")
        self.ordinary.append((found.group(), False))
        self.pos = found.end()
        return found.group(2), True

    def _key_in_tokens(self) -> str | None:
        """A key between the format's own quotes: models write one as they write any string."""
        quote = self.notation.quotes[0].open
        if not self.text.startswith(quote, self.pos):
            return None
        found = _key_between(quote)(self.text, self.pos)
        if found is None:
            if not self.ended:
                raise Unfinished
            raise BadValue("invalid_argument_name", f"a key must be a name, and no more than that stand in {quote}")
        self.pos = found.end()
        return found.group(1).strip()


@lru_cache(16)
def _key_between(quote: str) -> Match:
    mark = re.escape(quote)
    return re.compile(rf"{mark}([^:{{}}\[\]<>\r\n]{{1,256}}+){mark}(?=[ \t\r\n]{{0,8}}+:)").match


def receipts(path: str, found: list[tuple[str, bool]], quote: str) -> tuple[Repair, ...]:
    """The receipt of one argument's strings: of a guess, if there is one among them."""
    for written, guess in sorted(found, key=lambda each: not each[1])[:1]:
        after = quote + written[1:-1] + quote
        return (Repair("ordinary_quotes", "guess" if guess else "exact", path, written[:_SHOWN], after[:_SHOWN]),)
    return ()


_WORD = Pat(r"[^\s:{}\[\],<>\"']{1,256}+", r"[^\s:{}\[\],<>\"']{0,256}+")
KEY = Pat(BRACED_KEY, BRACED_KEY.replace("{1,256}", "{0,256}"))
KEY_TEXT = Pat(KEY_IN_QUOTES, KEY_IN_QUOTES.replace("{1,256}", "{0,256}"))
KEY_PROBE = Probe(seq(KEY, blanks(), literal(":")))


def named(body: Braced) -> tuple[Pat, ...]:
    """A call's name and what opens its arguments."""
    return (alt(*templates(body.open)), blanks(), literal("{"))


class TokenQuoted:
    """A string between two quote tokens. A token that nothing structural follows is text."""

    __slots__ = ("_follows", "_quote", "_scan", "easy")
    odd = has_hole = lost = False

    def __init__(self, quote: str, scan: Scan[str], follows: Probe) -> None:
        self.easy = easy_without(quote[0])
        self._quote, self._scan, self._follows = quote, scan, follows

    def take(self, text: str, pos: int, ended: bool) -> Taken:
        start = pos
        search = self._scan.ended if ended else self._scan.search
        while (found := search(text, pos)) is not None:
            at = found.start()
            closes = None if found.lastindex is None else self._follows.at(text, at, ended)
            if closes is None:
                return at, text[start:at], False
            if closes:
                return at + len(self._quote), text[start:at], True
            pos = at + 1
        return len(text), text[start:], False

    def plain(self, text: str) -> tuple[str, int] | None:
        found = self._scan.search(text, 0)
        if found is None:
            return text, len(text)
        return (text[: found.start()], found.start()) if found.lastindex is None else None


def simple_string(quote: str, follows: Probe) -> str:
    """A string without a piece of its quote in it, before what has arrived and can only follow a string: what
    `TokenQuoted` takes there, and its text is the group."""
    mark = re.escape(quote)
    return rf"{mark}([^{re.escape(quote[0])}]*+){follows.pat.whole.replace(TEXT_END, '(?!)')}{mark}"


def behind_value(entry: Pat | None, value: Pat, after: list[Pat]) -> Pat:
    """What follows a string: another entry or item, or a bracket that structure follows."""
    deeper = Pat(r"[,}\]]", "")
    entries = [seq(_WORD, blanks(), literal(":")), *([] if entry is None else [entry])]
    return alt(
        seq(literal(","), blanks(), alt(*entries, value)),
        seq(Pat(r"[}\]]", ""), blanks(), alt(deeper, *after, END)),
        END,
    )


def without_word(body: Braced) -> list[Probe]:
    """A name where the word is missing that should stand before it: with its colon, or before its arguments."""
    if not heads(body)[0]:
        return []
    name = NAME._replace(whole=f"(?P<name>{HOLES['name']})")
    return [Probe(seq(literal(":"), name)), Probe(seq(name, blanks(), lookahead(literal("{"))))]


def heads(body: Braced) -> list[str]:
    """What stands before the name."""
    opens = (body.open,) if isinstance(body.open, str) else body.open
    return sorted({"", *[str(text).split("{name}")[0].strip() for text in opens]}, key=len, reverse=True)


class UnsureEnds:
    """Finds values whose end is not certain: one of their strings may have been closed before.

    Such a value contains the beginning of another call that does not end in it, or a quote token where this call would
    have ended, where another string would have begun or ended, or at an edge of a string.
    """

    def __init__(self, body: Braced, calls: list[Pat], closes: list[Pat]) -> None:
        self._quote = str(body.quote)
        quote, blank = re.escape(self._quote), r"[ \t\r\n]{0,8}+"
        self._openers = re.compile(alt(*[seq(pat, blanks(), *named(body)) for pat in calls]).whole).finditer
        self._close = re.compile(seq(literal("}"), blanks(), alt(*closes)).whole).search if closes else None
        self._end_of_call = re.compile(seq(literal(body.quote), blanks(), literal("}")).whole).search
        self._edge = re.compile(rf"[,:\[{{]{blank}{quote}|{quote}{blank}[,}}\]]").search

    def has(self, value: Any) -> bool:
        text = value if isinstance(value, str) else str(value)
        if self._has_open_call(text):
            return True
        if self._quote not in text:
            return False
        is_over = isinstance(value, str) and self._end_of_call(value) is not None
        return is_over or self._edge(text) is not None or self._is_quoted_twice(value)

    def _has_open_call(self, text: str) -> bool:
        last = -1
        for found in self._openers(text):
            last = found.end()
        return last >= 0 and (self._close is None or self._close(text, last - 1) is None)

    def _is_quoted_twice(self, value: Any) -> bool:
        """Does a string in it begin or end with the quote token? Then a model wrote the token twice."""
        if isinstance(value, str):
            return value.startswith(self._quote) or value.endswith(self._quote)
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return any(map(self._is_quoted_twice, items))


class BracedReader(BodyReader):
    def __init__(self, body: Braced, format: Format, around: Around) -> None:
        after, calls, closes = around.after, templates(format.call[0]), templates(format.call[1])
        self.body = body
        self.open = Holes(body.open)
        nameless = seq(*[alt(*[literal(head) for head in heads(body)])], blanks(), literal("{"))
        self._nameless = Probe(lookahead(nameless))
        self.begins = self.open.probe
        self._short = without_word(body)
        quote = literal(body.quote)
        self.quote = Probe(quote)
        words = [literal(word) for word in JSON_WORDS]
        value = alt(quote, *words, Pat(rf"[-+.0-9\[{{{MARKS}]", ""))
        # Words before a colon are a key where a value follows, and rather more text behind quotes that any text has.
        another = lookahead(seq(*named(body)))
        self._another = Probe(another)
        after = [*after, another]
        behind = behind_value(seq(KEY, blanks(), literal(":"), blanks(), value), value, after)
        follows = presence(seq(quote, blanks(), behind))
        simple = simple_string(str(body.quote), follows)
        others = ordinary(closes, behind_value(None, value, after))
        self._token = token = TokenQuoted(str(body.quote), Scan([("quote", quote)]), follows)
        self.notation = braces(str(body.quote), lambda: token, others, simple)  # the token has no state
        self._unsure_ends = UnsureEnds(body, calls, closes)
        in_quotes = [seq(mark, KEY_TEXT, mark) for mark in (quote, *map(literal, MARKS[:3]))]
        self._keys = Probe(seq(alt(*in_quotes), blanks(), literal(":")))

    def read(self, p: CallBuilder, *, bare: bool) -> Steps[None]:
        yield from self._call(p, bare)
        while not bare and (yield from self._is_another(p)):
            yield from self._call(p, bare)

    def _is_another(self, p: CallBuilder) -> Steps[bool]:
        """Does a second call follow inside the same markers?"""
        return bool(p.char() or (yield from p.peek())) and bool((yield from p.test(self._another)))

    def _call(self, p: CallBuilder, bare: bool) -> Steps[None]:
        p.begin_text()
        yield from self._begin(p, bare)
        char = p.char() or (yield from p.peek())
        if not char:
            raise Cut
        if char != "{":
            raise Broken("invalid_call", f"a call needs '{{' after its name, found {char!r}")
        p.advance()
        values = yield from self._members(p)
        if values:
            p.give("}")
        assert p.call is not None
        for key in [key for key, value in values.items() if self._unsure_ends.has(value)]:
            message = f"the argument {key!r} looks like the end of a call or of another text, so its own is unsure"
            cure = "close each string and each call, and write no markers of this format into a value"
            p.problem("ambiguous_end", f"{message}; {cure}", "/" + key, call=p.call.index)
        p.finish(values, empty=not values)

    def _begin(self, p: CallBuilder, bare: bool) -> Steps[None]:
        """The opening tag with the name."""
        is_sure = p.block is not None and p.block.is_special and not bare
        found = self.open.probe.at(p.buf, p.pos, p.ended)
        if found is None:
            found = yield from p.test(self.open.probe)
        if not found:
            if not bare and (yield from p.test(self._nameless)):
                raise Broken("invalid_name", "the call has no tool name; send the name of a tool with its arguments")
            yield from self._without_word(p, is_sure)
        else:
            name = self.open.fill(found).get("name", "")
            p.take_match(found)
            char = p.char() or (yield from p.peek())
            is_known = p.tools is None or name in p.tools
            if not char and not is_known:
                raise Cut  # the name may have gone on
            if char and char != "{" and not is_sure and (bare or p.tools is None or not is_known):
                raise NotACall
            p.begin(name)

    def _without_word(self, p: CallBuilder, is_sure: bool) -> Steps[None]:
        """Behind a special token the word before the name may be missing; a receipt says so."""
        found = None
        for probe in self._short if is_sure else ():
            found = found or (yield from p.test(probe))
        if found is None or p.policy(found["name"]) == "off":
            raise NotACall
        before, after = found.group().rstrip(), first_alternative(self.body.open).replace("{name}", found["name"])
        p.take_match(found)
        p.begin(found["name"], repairs=(Repair("broken_opener", "exact", "", before, after),))

    def _members(self, p: CallBuilder) -> Steps[dict[str, Any]]:
        values: dict[str, Any] = {}
        while True:
            char = p.char() or (yield from p.peek())
            if char == "}":
                p.advance()
                return values
            if char == ",":
                p.advance()
                continue
            key = yield from self._key(p)
            if key in values:
                raise Broken("duplicate_argument", f"the argument {key!r} is given twice", f"/{key}")
            prefix = (", " if values else "{") + quoted(key) + ": "
            values[key] = yield from self._argument(p, key, prefix)

    def _key(self, p: CallBuilder) -> Steps[str]:
        if not (p.char() or (yield from p.peek())):
            raise Cut
        found = KEY_PROBE.at(p.buf, p.pos, p.ended)
        if found is None:
            found = yield from p.test(KEY_PROBE)
        if not found and (key := (yield from self._quoted_key(p))):
            return key
        if not found:
            if p.ended and KEY_PROBE.is_begun(p.buf, p.pos):
                p.take_all()
                raise Cut
            raise Broken("invalid_argument_name", "an argument must be written key:value")
        p.take_match(found)
        return found.group()[:-1].strip()

    def _quoted_key(self, p: CallBuilder) -> Steps[str]:
        """A key in quotes, which has none here; "" where there is none."""
        found = yield from p.test(self._keys)
        if not found or p.call is None:
            return ""
        self._may_repair(p, p.call.name)
        written = found.group()[:-1].strip()
        size = len(self.body.quote) if written.startswith(self.body.quote) else 1
        key = written[size:-size]
        p.call.add_repairs(Repair("ordinary_quotes", "exact", pointer_step(key), written, key))
        p.take_match(found)
        return key

    def _argument(self, p: CallBuilder, key: str, prefix: str) -> Steps[Any]:
        kind = p.kind(key) or "any"
        usual = self.notation.usual_value(p.buf, p.pos)
        if usual is not None and (at_once := self._usual(p, usual, kind)) is not None:
            p.take_match(usual)
            p.give(prefix + at_once[0])
            return at_once[1]
        char = p.char() or (yield from p.peek())
        if not char:
            raise Cut
        if p.buf.startswith(self.body.quote, p.pos) or (char == self.body.quote[0] and (yield from p.test(self.quote))):
            p.advance(len(self.body.quote))
            return (yield from self._quoted(p, self._token, kind, prefix))
        if char in MARKS:
            return (yield from self._ordinary(p, key, kind, prefix))
        read = (yield from self._nested(p, key)) if char in "[{" else (yield from self._bare(p, kind))
        json, value = meant(p, key, read)
        p.give(prefix + json)
        return value

    def _usual(self, p: CallBuilder, found: re.Match[str], kind: str) -> tuple[str, Any] | None:
        """A string or a whole number that is all there; None for what else the schema must be asked of."""
        text = found[found.lastindex or 0]
        if found.lastindex == 3:
            return self._typed_text(p, text, kind)
        return (text, int(text)) if found.lastindex == 1 and not self._may_be_text(kind) else None

    def _may_be_text(self, kind: str) -> bool:
        """May a value without its first quote be a string?"""
        return kind in TEXT_KINDS or (kind == "any" and self.body.quoted == "string")

    def _typed_text(self, p: CallBuilder, text: str, kind: str) -> tuple[str, Any]:
        """What stood between quotes: a string, or where quotes say nothing about types, what the schema says."""
        is_raw = self.body.quoted == "raw" and kind != "plain"
        return typed(text, kind, p.limits.depth)[:2] if is_raw else (quoted(text), text)

    def _ordinary(self, p: CallBuilder, key: str, kind: str, prefix: str) -> Steps[Any]:
        """A string between quotes that are not this format's."""
        assert p.call is not None
        self._may_repair(p, p.call.name)
        taken = p.capture()
        try:
            text = yield from string_at(p, self.notation)
            assert isinstance(text, Ordinary)
            value = yield from self._quoted(p, text, kind, prefix)
        except (Broken, Cut):
            p.drop(taken)
            raise
        written = p.release(taken)
        if text.odd:
            p.call.add_repairs(bad_escape(pointer_step(key), written[1:-1]))
        p.call.add_repairs(*receipts(pointer_step(key), [(written, text.inner)], self.body.quote))
        return value

    def _may_repair(self, p: CallBuilder, name: str) -> None:
        if p.policy(name) == "off":
            raise Broken("invalid_value", f"these are not this format's quotes; use {self.body.quote}")

    def _quoted(self, p: CallBuilder, inside: StringText, kind: str, prefix: str) -> Steps[Any]:
        """A value between quotes."""
        give = kind == "plain"
        if give:
            p.give(prefix + '"')
        text = yield from string(p, inside, give=give)
        if give:
            p.give('"')
            return text
        json, value = self._typed_text(p, text, kind)
        p.give(prefix + json)
        return value

    def _reader(self, p: CallBuilder, text: str, pos: int, *, ended: bool) -> OrdinaryReader:
        make = _Typed if self.body.quoted == "raw" else OrdinaryReader
        return make(self.notation, text, pos, depth=p.limits.depth - 1, ended=ended)

    def _nested(self, p: CallBuilder, key: str) -> Steps[Read]:
        reader = self._reader(p, p.buf, p.pos, ended=False)
        found = all_there(p, reader)
        if found is None:
            close = p.compiled.call_ends.close
            stop = None if close is None else close.at
            text = yield from skipped(p, Ends(self.notation, stop=stop, stops="<"))
            reader = self._reader(p, text, 0, ended=True)
            found = whole(reader)
        if reader.ordinary:
            assert p.call is not None
            self._may_repair(p, p.call.name)
            p.call.add_repairs(*receipts(pointer_step(key), reader.ordinary, self.body.quote))
        return found

    def _bare(self, p: CallBuilder, kind: str) -> Steps[Read]:
        """A number, a word, or text that should have been quoted."""
        text = (yield from _until(p, self.notation)).strip()
        if not text or p.buf[p.pos] in "<[{" or p.buf[p.pos] == self.body.quote[0]:
            raise Broken("invalid_value", f"no value can be read at {p.buf[p.pos]!r}; strings need {self.body.quote}")
        words = self.notation.words
        if text in words and (kind != "plain" or words[text] is None):
            return Read(to_json(words[text]), words[text])
        value = decode_unique(text, p.limits.depth)[0]
        if isinstance(value, Undecodable):
            if value.code == "not_finite":
                raise Broken(value.code, value.message)
            return Read(quoted(text), text, bare=(Odd((), text),))
        return Read(quoted(text), text) if kind in TEXT_KINDS else Read(text, value)


class _Typed(OrdinaryReader):
    """Quotes say nothing about types: what is between them is JSON, or text."""

    def string_value(self, text: str) -> tuple[str, Any]:
        return typed(text, "any", self.depth)[:2]


def _until(p: CallBuilder, notation: Notation) -> Steps[str]:
    """A bare value, up to what ends it."""
    taken = p.capture()
    while True:
        found = notation.bare_value(p.buf, p.pos)
        p.advance(0 if found is None else found.end() - p.pos)
        if p.pos < len(p.buf):
            return p.release(taken)
        if p.ended:
            p.drop(taken)
            raise Cut
        yield
