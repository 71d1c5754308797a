"""Parse calls whose arguments have bare keys in braces, `call:f{k:<|"|>v<|"|>,n:1,l:[{a:true}]}`, as Gemma writes them.

A string is between two quote tokens. A quote closes it only if what follows can follow a value: a comma and a key or a
value, or a bracket that is itself followed by structure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, lru_cache, partial
from json.encoder import encode_basestring as quoted
from typing import Any, NamedTuple

from rightcall.formats.body_kinds import first_alternative
from rightcall.formats.spec import Braced, Format
from rightcall.parsing.argument_values import (
    TEXT_KINDS,
    ParsedValue,
    bad_escape_receipt,
    interpret_by_schema,
    open_string,
    parse_by_kind,
    parse_value,
    take_run,
    take_string,
    take_to_end,
    take_whole_value,
    to_json,
)
from rightcall.parsing.bodies.body_reader import Around, BodyReader
from rightcall.parsing.buffer import Broken, Cut, NotACall, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import (
    END,
    NAMED,
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
    Quote,
    StringText,
    Taken,
    braces,
    easy_without,
)
from rightcall.parsing.values.value_reader import BadValue, Ends, Odd, Unfinished, ValueReader
from rightcall.strict_json import Undecodable, decode_unique, pointer_step
from rightcall.types import Repair

# Models also write ordinary quotes (ollama#17882).
_ORDINARY_QUOTES = (*[(mark, mark) for mark in "\"'`\u201d\u2019"], ("\u201c", "\u201d"), ("\u2018", "\u2019"))
_QUOTE_MARKS = "".join([opens for opens, _ in _ORDINARY_QUOTES])
_MAX_SHOWN = 200
_ESCAPE = seq(literal("\\"), Pat(rf"(?:{SURROGATE_PAIR}|[\s\S])", ""))
_has_json_escapes = re.compile(r"(?:[^\\]++|\\(?:[\"'`\\/bfnrt]|u[0-9a-fA-F]{4}))*+").fullmatch

_WORD = Pat(r"[^\s:{}\[\],<>\"']{1,256}+", r"[^\s:{}\[\],<>\"']{0,256}+")
_KEY = Pat(BRACED_KEY, BRACED_KEY.replace("{1,256}", "{0,256}"))
_QUOTED_KEY = r"[^\s:{}\[\],<>\"'`\\]{1,256}+"
# An argument after which Python's sign is written, or before which the comma is missing: the group names the case.
_NAME, _NAME_PART = r"[\w$.\-]{1,64}+", r"[\w$.\-]{0,64}+"
_ASSIGNMENT = seq(Pat(f"(?P<assigned>{_NAME})", _NAME_PART), blanks(), literal("="))
_ASSIGNMENT_PROBE = Probe(_ASSIGNMENT)
_ADJACENT = seq(blanks(), Pat(f"(?P<adjacent>{_NAME})", _NAME_PART), blanks(), Pat("[:=]", ""))
_PLAIN_KEY = re.compile(r"(?!//)[^\\()=]++")
_KINDS_OF_TEXT = {"string": TEXT_KINDS | {"any"}}  # by what quotes mean: kinds of values that may be text


class QuoteSyntax(NamedTuple):
    """How a kind of string ends. `follows` finds the quote with what must follow it; `stop` markers in `scan` end the
    call."""

    close: str
    scan: Scan[str]
    follows: Probe
    easy: FullMatch
    has_escapes: bool


class LookaheadString:
    """Reads a string whose closing quote is the first one that structure follows.

    - `has_inner_quote`: it contains an unescaped quote.
    - `lost`: the call ended before it was closed.
    - `may_follow`: decides whether a key, which `follows` found in a group, may follow the string.
    """

    __slots__ = ("_syntax", "easy", "has_inner_quote", "lost", "may_follow", "odd")
    has_hole = False

    def __init__(self, syntax: QuoteSyntax) -> None:
        self._syntax, self.easy = syntax, syntax.easy
        self.odd = self.has_inner_quote = self.lost = False
        self.may_follow: Callable[[re.Match[str]], bool] | None = None

    def take(self, text: str, pos: int, ended: bool) -> Taken:
        """Decode the string from index `pos` on. Return the index that was reached, the content up to it, and whether
        the string is closed; then the index is behind its quote. What later text may change is not decoded unless
        `ended`. A quote that does not close it is content and sets `has_inner_quote`; an escape that is not JSON's sets
        `odd`. If a closing marker of the call comes first, `lost` is set, and the index is that of the marker; a string
        between quote tokens has neither escapes nor such markers."""
        start, scan = pos, self._syntax.scan
        search = scan.ended if ended else scan.search
        while (found := search(text, pos)) is not None:
            at, action = found.start(), "" if found.lastindex is None else scan.actions[found.lastindex]
            if action == "quote":
                is_closed = self._is_closed_at(text, at, ended)
                if is_closed:
                    return at + len(self._syntax.close), self._decode(text[start:at]), True
                if is_closed is None:
                    action = ""
                else:
                    self.has_inner_quote = True
            elif action == "escape" and not ended and len(text) - at < LONGEST:
                action = ""
            if not action or action == "stop":
                self.lost = action == "stop"
                return at, self._decode(text[start:at]), False
            pos = found.end()
        return len(text), self._decode(text[start:]), False

    def _is_closed_at(self, text: str, at: int, ended: bool) -> bool | None:
        """Return whether the quote at index `at` closes the string: structure or the end of the text follows it, or a
        key that `may_follow` accepts, in a string without inner quotes. None if more text is needed to tell. Nothing is
        set."""
        found = self._syntax.follows.at(text, at, ended)
        if not found or found.lastgroup is None:
            return None if found is None else bool(found)
        return self.may_follow is not None and not self.has_inner_quote and self.may_follow(found)

    def _decode(self, text: str) -> str:
        """Return the text with its escapes decoded, if this kind of string has any; set `odd` if one of them is not
        JSON's."""
        if "\\" not in text or not self._syntax.has_escapes:
            return text
        self.odd = self.odd or _has_json_escapes(text) is None
        return PYTHON_ESCAPES.read(text)

    def plain(self, text: str) -> tuple[str, int] | None:
        """Return the part of a piece before what may be a quote, an escape or a closing marker at its end, and the size
        of that part; None if a whole one is in the piece, so that the reader must parse it."""
        found = self._syntax.scan.search(text, 0)
        if found is None:
            return text, len(text)
        return (text[: found.start()], found.start()) if found.lastindex is None else None


class BracedValueReader(ValueReader):
    """Parses lists and objects. `in_ordinary_quotes` has each key and string in such quotes as it was written, and
    whether its end is a guess."""

    def __init__(self, syntax: ArgumentSyntax, text: str, pos: int, *, depth: int, ended: bool) -> None:
        super().__init__(syntax.notation, text, pos, depth=depth, ended=ended)
        self._is_raw = syntax.body.quoted == "raw"
        self.in_ordinary_quotes: list[tuple[str, bool]] = []

    def string_value(self, text: str) -> tuple[str, Any]:
        """Return JSON and value of a string inside a list or an object: itself, or, where quotes say nothing about
        types, the value that is written in it."""
        return parse_by_kind(text, "any", self.depth)[:2] if self._is_raw else super().string_value(text)

    def record_string(self, string: StringText, begin: int) -> None:
        """Record a string in ordinary quotes that begins at `begin` and ends at `pos`, and whether its end is a
        guess."""
        if self.text[begin] in _QUOTE_MARKS and isinstance(string, LookaheadString):
            self.in_ordinary_quotes.append((self.text[begin : self.pos], string.has_inner_quote))

    def _key(self, char: str) -> str:
        """Read the key that begins with `char` at `pos`, bare or in quotes, and return it without them; `pos` is behind
        it then. One in ordinary quotes is recorded in `in_ordinary_quotes`. Raises `BadValue` if no valid key is here,
        `Unfinished` if more text is needed, and, unless `ended`, for any invalid key in quotes."""
        quote = self.notation.quotes[0].open
        if char not in _QUOTE_MARKS and not self.text.startswith(quote, self.pos):
            return super()._key(char)
        found = _match_quoted_key(quote)(self.text, self.pos)
        if found is None:
            message = f"a key must be a name without quotes, or no more than a name in {quote}"
            raise BadValue("invalid_argument_name", message) if self.ended else Unfinished
        if char in _QUOTE_MARKS:
            self.in_ordinary_quotes.append((found.group(), False))
        self.pos = found.end()
        return found[found.lastindex or 0].strip()


@lru_cache(16)
def _match_quoted_key(quote: str) -> Match:
    """Return a function that matches a key in ordinary quotes (group 2) or between two quote tokens `quote` (group 3),
    before a colon, which it does not consume."""
    mark, end = re.escape(quote), r"(?=[ \t\r\n]{0,8}+:)"
    return re.compile(rf"(?:([\"'`])({_QUOTED_KEY})\1|{mark}([^:{{}}\[\]<>\r\n]{{1,256}}+){mark}){end}").match


class CallMarkers(NamedTuple):
    """The markers around the calls of a format: those before and behind one call, and all that may follow one."""

    opens: list[Pat]
    closes: list[Pat]
    after: list[Pat]


class ArgumentSyntax:
    """Parses the arguments between one pair of brackets."""

    def __init__(self, body: Braced, markers: CallMarkers, brackets: str) -> None:
        self.body, self._close = body, brackets[1]
        self._kinds_of_text = _KINDS_OF_TEXT.get(body.quoted, TEXT_KINDS)
        quote = literal(body.quote)
        self._quote = Probe(quote)
        # A key of braces may contain brackets and `=`.
        key = _KEY if brackets == "{}" else Pat(_NAME, _NAME_PART)
        self._key = Probe(seq(key, blanks(), literal(":")))
        self.another_call = lookahead(seq(alt(*templates(body.open)), blanks(), literal(brackets[0])))
        after = [*markers.after, self.another_call]
        value = alt(quote, *map(literal, JSON_WORDS), Pat(rf"[-+.0-9\[{{{_QUOTE_MARKS}]", ""))
        # Text before a colon is a key if a value follows. In ordinary quotes, which any text has, it must be one word.
        entry, word = seq(_KEY, blanks(), literal(":"), blanks(), value), seq(_WORD, blanks(), literal(":"))
        follows = self._follow_value([word, entry, value], after)
        token = QuoteSyntax(
            body.quote,
            Scan([("quote", quote)]),
            # Not `presence`: more text may show that `d=` is the beginning of the key `d=one:`.
            Probe(lookahead(seq(quote, alt(self._follow_value([word, entry, value, _ASSIGNMENT], after), _ADJACENT)))),
            easy_without(body.quote[0]),
            has_escapes=False,
        )
        # A string without the first character of its quote inside, before what has arrived and must follow it.
        token_source = re.escape(body.quote)
        end = presence(seq(quote, follows)).pat.whole.replace(TEXT_END, "(?!)")
        simple = rf"{token_source}([^{re.escape(body.quote[0])}]*+){end}{token_source}"
        stops = "".join([stop.head or "<" for stop in markers.closes])
        follows = self._follow_value([word, value, _ASSIGNMENT], after)
        ordinary = []
        for opens, closes in _ORDINARY_QUOTES:
            scan = Scan([("escape", _ESCAPE), ("quote", literal(closes)), *[("stop", stop) for stop in markers.closes]])
            probe = Probe(lookahead(seq(literal(closes), follows)))
            syntax = QuoteSyntax(closes, scan, probe, easy_without(closes + stops), has_escapes=True)
            ordinary.append(Quote(opens, make=partial(LookaheadString, syntax)))
        self._new_token_string = partial(LookaheadString, token)
        self.notation = braces(body.quote, self._new_token_string, tuple(ordinary), simple, brackets.strip("{}"))
        in_quotes = [
            seq(mark, Pat(_QUOTED_KEY, _QUOTED_KEY.replace("{1,256}", "{0,256}")), mark)
            for mark in (quote, *map(literal, _QUOTE_MARKS[:3]))
        ]
        self._quoted_key = Probe(seq(alt(*in_quotes), blanks(), literal(":")))
        # What shows that a string may have been closed too late.
        blank, closer = r"[ \t\r\n]{0,8}+", re.escape(self._close)
        openers = [seq(pat, blanks(), alt(*templates(body.open)), blanks(), Pat("[{(]", "")) for pat in markers.opens]
        self._find_openers = re.compile(alt(*openers).whole).finditer
        close = seq(Pat("[})]", ""), blanks(), alt(*markers.closes)) if markers.closes else None
        self._find_close = None if close is None else re.compile(close.whole).search
        self._find_end_of_call = re.compile(seq(quote, blanks(), literal(self._close)).whole).search
        self._find_edge = re.compile(rf"[,:\[{{]{blank}{token_source}|{token_source}{blank}[,\]{closer}}}]").search

    def _follow_value(self, entries: list[Pat], after: list[Pat]) -> Pat:
        """Return the pattern of what follows a string: a comma and one of `entries`, a bracket that structure or one of
        `after` follows, or the end of the text."""
        brackets = Pat(rf"[}}\]{re.escape(self._close)}]", "")
        return seq(
            blanks(),
            alt(
                seq(literal(","), blanks(), alt(*entries)),
                seq(brackets, blanks(), alt(literal(","), brackets, *after, END)),
                END,
            ),
        )

    def has_uncertain_end(self, value: Any) -> bool:
        """Return whether a string in a value may have been closed too late, so that the value holds the remainder of
        its call.

        It contains an opener of calls behind which no call is closed any more (any one, if the format has no closing
        marker), or a quote token where this call would
        have ended (only if the value is a string), where another string would have begun or ended, or at an edge of a
        string. The keys of objects are inspected only as text, as `str` writes them.
        """
        text = value if isinstance(value, str) else str(value)
        last = -1
        for found in self._find_openers(text):
            last = found.end()
        if last >= 0 and (self._find_close is None or self._find_close(text, last - 1) is None):
            return True
        if self.body.quote not in text:
            return False
        is_over = isinstance(value, str) and self._find_end_of_call(value) is not None
        return is_over or self._find_edge(text) is not None or self._is_quoted_twice(value)

    def _is_quoted_twice(self, value: Any) -> bool:
        """Return whether a string in the value begins or ends with the quote token, which a model then wrote twice."""
        if isinstance(value, str):
            return value.startswith(self.body.quote) or value.endswith(self.body.quote)
        items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return any(map(self._is_quoted_twice, items))

    # -- keys ----------------------------------------------------------------------------------------------------------

    def read(self, builder: CallBuilder) -> Steps[dict[str, Any]]:
        """Take the arguments up to and with their closing bracket, give their JSON without the last brace to the call
        as it arrives, and return them; {} for none. Superfluous commas are skipped, as in SGLang's gemma4_detector.py;
        damaged keys and missing commas are repaired, with receipts. A key that is neither declared nor a plain name is
        kept, but rejects the call (`check_key`). Raises `Broken` for an argument that is repeated, or invalid and not
        repaired, `Cut` if the text ends."""
        values: dict[str, Any] = {}
        follows_comma = True
        while True:
            char = builder.char() or (yield from builder.peek())
            if char == self._close:
                builder.advance()
                return values
            if char == ",":
                builder.advance()
                follows_comma = True
                continue
            if not char:
                raise Cut
            found = self._key.at(builder.buf, builder.pos, builder.ended)
            if found is None:
                found = yield from builder.test(self._key)
            if found:
                key = found.group()[:-1].strip()
                builder.take_match(found)
                builder.check_key(key, _PLAIN_KEY)
            else:
                key = yield from self._read_damaged_key(builder, values)
            if key in values:
                raise Broken("duplicate_argument", f"the argument {key!r} is given twice", f"/{key}")
            if not follows_comma:
                self._add_missing_comma(builder, key)
            is_assigned = not found and builder.buf[builder.pos - 1] == "="
            prefix = (", " if values else "{") + quoted(key) + ": "
            values[key] = None  # given, for the check of the key that follows
            values[key] = yield from self._read_value(builder, key, prefix, values, is_assigned=is_assigned)
            follows_comma = False

    def _read_damaged_key(self, builder: CallBuilder, values: dict[str, Any]) -> Steps[str]:
        """Take a key in quotes (also the format's own) with its colon, or one with its `=` that `_may_follow` accepts,
        add a receipt, and return it without these (ollama#17882, omlx#1886). `values`: the arguments so far. Raises
        `Cut` if the text ends in a bare key, which it takes, `Broken`, with nothing taken, for anything else, or if
        repairs are off."""
        call = builder.call
        assert call is not None
        found = yield from builder.test(self._quoted_key)
        if found:
            self._require_repair(builder)
            written = found.group()[:-1].strip()
            size = len(self.body.quote) if written.startswith(self.body.quote) else 1
            key = written[size:-size]
            call.add_repairs(Repair("ordinary_quotes", "exact", pointer_step(key), written, key))
            builder.take_match(found)
            return key
        found = yield from builder.test(_ASSIGNMENT_PROBE)
        if found and self._may_follow(builder, values, True, found):
            key = found["assigned"]
            call.add_repairs(Repair("keyword_arguments", "exact", pointer_step(key), found.group(), key + ":"))
            builder.take_match(found)
            return key
        if builder.ended and self._key.is_begun(builder.buf, builder.pos):
            builder.take_all()
            raise Cut
        raise Broken("invalid_argument_name", "an argument must be written key:value")

    def _may_follow(self, builder: CallBuilder, values: dict[str, Any], is_sure: bool, found: re.Match[str]) -> bool:
        """Return whether the key in the last group of `found` is a declared argument that is not in `values`, the
        arguments so far. Without declared tools True only for a key before `=` if `is_sure`. False if repairs are
        off."""
        call = builder.call
        assert call is not None
        if builder.policy(call.name) == "off":
            return False
        if builder.tools is None:
            return is_sure and found.lastgroup == "assigned"
        key = found[found.lastgroup or 0]
        return key in call.kinds and key not in values

    def _add_missing_comma(self, builder: CallBuilder, key: str) -> None:
        """Add the receipt of a comma that is missing before the argument `key` (yzma#243). Raises `Broken` if repairs
        are off, or the argument is not declared; without declared tools any argument is accepted."""
        call = builder.call
        assert call is not None
        if builder.policy(call.name) == "off" or (builder.tools is not None and key not in call.kinds):
            raise Broken("invalid_value", f"a comma is missing before the argument {key!r}")
        call.add_repairs(Repair("missing_comma", "schema", pointer_step(key), key, f",{key}"))

    # -- values --------------------------------------------------------------------------------------------------------

    def _read_value(
        self, builder: CallBuilder, key: str, prefix: str, values: dict[str, Any], *, is_assigned: bool
    ) -> Steps[Any]:
        """Take the value of `key`, give its JSON behind `prefix` to the call and return it: strings by the declared
        kind, those in ordinary quotes with a receipt, other values as the schema wants them. `values`: the arguments so
        far; `is_assigned`: the key is written with `=`, so that another such key may follow a string in ordinary quotes
        also without declared tools. Raises `Broken` for an invalid or missing value, or one that needs a repair while
        repairs are off, `Cut` if the text ends."""
        kind = builder.kind(key) or "any"
        usual = self.notation.usual_value(builder.buf, builder.pos)
        if usual is not None:
            text = usual[usual.lastindex or 0]
            json_value = None
            if usual.lastindex == 3:
                json_value = self._interpret_string(builder, text, kind)
            elif usual.lastindex == 1 and kind not in self._kinds_of_text:  # it may have lost a quote
                json_value = text, int(text)
            if json_value is not None:
                builder.take_match(usual)
                builder.give(prefix + json_value[0])
                return json_value[1]
        char = builder.char() or (yield from builder.peek())
        if not char:
            raise Cut
        is_quote = builder.buf.startswith(self.body.quote, builder.pos)
        if is_quote or (char == self.body.quote[0] and (yield from builder.test(self._quote))):
            builder.advance(len(self.body.quote))
            text = self._new_token_string()
            text.may_follow = partial(self._may_follow, builder, values, True)
            return (yield from self._read_string(builder, text, kind, prefix))
        if char in _QUOTE_MARKS:
            may_follow = partial(self._may_follow, builder, values, is_assigned)
            return (yield from self._read_ordinary_string(builder, key, kind, prefix, may_follow))
        if char in "[{":
            read = yield from self._read_nested(builder, key)
        else:
            read = yield from self._read_bare(builder, kind)
        json, value = interpret_by_schema(builder, key, read)
        builder.give(prefix + json)
        return value

    def _interpret_string(self, builder: CallBuilder, text: str, kind: str) -> tuple[str, Any]:
        """Return JSON and value of `text`, which was between quotes: itself, or, where quotes say nothing about types,
        the value of the declared `kind` that is written in it, unless that is "plain". Text that is no such value stays
        a string."""
        is_raw = self.body.quoted == "raw" and kind != "plain"
        return parse_by_kind(text, kind, builder.limits.depth)[:2] if is_raw else (quoted(text), text)

    def _read_string(self, builder: CallBuilder, text: LookaheadString, kind: str, prefix: str) -> Steps[Any]:
        """Take the string `text` behind its opening quote, give its JSON behind `prefix` to the call and return its
        value of the declared `kind` (`_interpret_string`). A string of kind "plain" is given while it arrives. No
        receipt is added. Raises `Broken` if a closing marker of the call comes before its end (only in ordinary
        quotes), `Cut` if the text ends."""
        if kind == "plain":
            builder.give(prefix + '"')
            value = yield from take_string(builder, text, give=True)
            builder.give('"')
            return value
        json, value = self._interpret_string(builder, (yield from take_string(builder, text, give=False)), kind)
        builder.give(prefix + json)
        return value

    def _read_ordinary_string(
        self, builder: CallBuilder, key: str, kind: str, prefix: str, may_follow: Callable[[re.Match[str]], bool]
    ) -> Steps[Any]:
        """Take a string with its quotes, which are not this format's, with a receipt (and one for an invalid escape),
        give its JSON behind `prefix` to the call and return its value of the declared `kind`. `may_follow`: decides
        whether a key may follow it, as in `LookaheadString`. Raises `Broken` if repairs are off or the call ends before
        it is closed, `Cut` if the text ends."""
        self._require_repair(builder)
        taken = builder.capture()
        try:
            text = yield from open_string(builder, self.notation)
            assert isinstance(text, LookaheadString)
            text.may_follow = may_follow
            value = yield from self._read_string(builder, text, kind, prefix)
        except (Broken, Cut):
            builder.drop(taken)
            raise
        written = builder.release(taken)
        if text.odd:
            assert builder.call is not None
            builder.call.add_repairs(bad_escape_receipt(pointer_step(key), written[1:-1]))
        self._add_quote_repair(builder, key, [(written, text.has_inner_quote)])
        return value

    def _require_repair(self, builder: CallBuilder) -> None:
        """Raise `Broken`, because of quotes that are not this format's, if the policy forbids to repair the call; else,
        and without a current call, do nothing."""
        if builder.call is not None and builder.policy(builder.call.name) == "off":
            raise Broken("invalid_value", f"these are not this format's quotes; use {self.body.quote}")

    def _add_quote_repair(self, builder: CallBuilder, key: str, strings: list[tuple[str, bool]]) -> None:
        """Add one receipt for the `strings` of argument `key` in ordinary quotes to the current call. Each is a pair:
        the text with its quotes, and whether its end is a guess. The receipt shows the first whose end is a guess, else
        the first."""
        assert builder.call is not None
        written, is_guess = next((each for each in strings if each[1]), strings[0])
        after = self.body.quote + written[1:-1] + self.body.quote
        shown = pointer_step(key), written[:_MAX_SHOWN], after[:_MAX_SHOWN]
        builder.call.add_repairs(Repair("ordinary_quotes", "guess" if is_guess else "exact", *shown))

    def _read_nested(self, builder: CallBuilder, key: str) -> Steps[ParsedValue]:
        """Take a list or an object, the value of `key`, and return it; nothing is given to the call but a receipt for
        ordinary quotes in it. Raises `Broken` if it is invalid, the call ends before it does, or such quotes are in it
        and repairs are off, `Cut` if the text ends."""
        depth = builder.limits.depth - 1
        reader = BracedValueReader(self, builder.buf, builder.pos, depth=depth, ended=False)
        found = take_whole_value(builder, reader)
        if found is None:
            close = builder.compiled.call_ends.close
            stop = None if close is None else close.at
            text = yield from take_to_end(builder, Ends(self.notation, stop=stop, stops="<"))
            reader = BracedValueReader(self, text, 0, depth=depth, ended=True)
            found = parse_value(reader)
        if reader.in_ordinary_quotes:
            self._require_repair(builder)
            self._add_quote_repair(builder, key, reader.in_ordinary_quotes)
        return found

    def _read_bare(self, builder: CallBuilder, kind: str) -> Steps[ParsedValue]:
        """Take a number, a word, or text that should have been quoted, and return it, unless the declared `kind` is
        text: then a number, and of kind "plain" also `true` or `false`, is a string. Only other text is
        recorded in `bare`. Raises `Broken` for no value, for one that `<`, an opening bracket or the first character of
        the quote token follows, or for a number that is not finite, `Cut` if the text ends with it."""
        text = (yield from take_run(builder, self.notation.bare_value)).strip()
        char = builder.buf[builder.pos]
        if not text or char in "<[{(" or char == self.body.quote[0]:
            raise Broken("invalid_value", f"no value can be read at {char!r}; strings need {self.body.quote}")
        words = self.notation.words
        if text in words and (kind != "plain" or words[text] is None):
            return ParsedValue(to_json(words[text]), words[text])
        value = decode_unique(text, builder.limits.depth)[0]
        if isinstance(value, Undecodable):
            if value.code == "not_finite":
                raise Broken(value.code, value.message)
            return ParsedValue(quoted(text), text, bare=(Odd((), text),))
        return ParsedValue(quoted(text), text) if kind in TEXT_KINDS else ParsedValue(text, value)


class BracedReader(BodyReader):
    def __init__(self, body: Braced, format: Format, around: Around) -> None:
        self.body = body
        self._markers = CallMarkers(templates(format.call[0]), templates(format.call[1]), around.after)
        self._in_braces = ArgumentSyntax(body, self._markers, "{}")
        self._another_call = Probe(self._in_braces.another_call)
        self.open = Holes(body.open)
        self.begins = self.open.probe
        opens = (body.open,) if isinstance(body.open, str) else body.open
        before_name = sorted({"", *[str(text).split("{name}")[0].strip() for text in opens]}, key=len, reverse=True)
        nameless = seq(alt(*map(literal, before_name)), blanks(), literal("{"))
        self._nameless = Probe(lookahead(nameless))
        # A name without the word before it: with the colon of that word (vllm#53431), or directly before the arguments
        # (vllm#54778).
        wordless = [seq(literal(":"), NAMED), seq(NAMED, blanks(), lookahead(literal("{")))] if before_name[0] else []
        self._without_word = [Probe(pat) for pat in wordless]

    @cached_property
    def _in_parentheses(self) -> ArgumentSyntax:
        """Return the syntax of arguments in round brackets as in Python, `call:f(k=<|"|>v<|"|>)` (omlx#1886,
        vllm#53657)."""
        return ArgumentSyntax(self.body, self._markers, "()")

    def read(self, builder: CallBuilder, *, bare: bool) -> Steps[None]:
        """Parse and finish a call and, unless `bare`, all calls that directly follow it. Raises `NotACall` if none
        begins here, or beyond the limit of calls, `Broken` if one is invalid, `Cut` if the text ends in one; the calls
        before that are finished."""
        yield from self._read_call(builder, bare)
        # More calls may follow between the same markers (openvinotoolkit/model_server#4179).
        while not bare and (builder.char() or (yield from builder.peek())):
            if not (yield from builder.test(self._another_call)):
                return
            yield from self._read_call(builder, bare)

    def _read_call(self, builder: CallBuilder, bare: bool) -> Steps[None]:
        """Parse one call, begin it and finish it; values whose end is uncertain reject it (`ambiguous_end`). Behind a
        marker (not `bare`) round brackets are repaired, with a receipt, unless repairs are off. Raises
        `NotACall` as `_begin_call`, `Broken` for a missing name or bracket or an invalid argument, `Cut` if the text
        ends; the call is not finished then."""
        builder.begin_text()
        yield from self._begin_call(builder, bare)
        char = builder.char() or (yield from builder.peek())
        if not char:
            raise Cut
        call = builder.call
        assert call is not None
        syntax = self._in_braces
        if char == "(" and not bare and builder.policy(call.name) != "off":
            syntax = self._in_parentheses
            builder.add_repair("keyword_arguments", f"{call.name}(", f"{call.name}{{")
        elif char != "{":
            raise Broken("invalid_call", f"a call needs '{{' after its name, found {char!r}")
        builder.advance()
        values = yield from syntax.read(builder)
        if values:
            builder.give("}")
        for key in [key for key, value in values.items() if syntax.has_uncertain_end(value)]:
            message = f"the argument {key!r} looks like the end of a call or of another text, so its own is unsure"
            cure = "close each string and each call, and write no markers of this format into a value"
            builder.problem("ambiguous_end", f"{message}; {cure}", "/" + key, call=call.index)
        builder.finish(values, empty=not values)

    def _begin_call(self, builder: CallBuilder, bare: bool) -> Steps[None]:
        """Take the opening tag with the name and begin the call; behind a special token (not `bare`) a missing word
        before the name is repaired, with a receipt. Raises `NotACall` if no tag is here and no such repair is allowed,
        if text but no `{` follows and neither a special token nor, unless `bare`, a declared name shows that it is a
        call, or beyond the limit of calls; `Broken` if, unless `bare`, only the name is missing; `Cut` if the text ends
        behind a name that declared tools lack. No call has begun then."""
        is_sure = builder.block is not None and builder.block.is_special and not bare
        found = self.open.probe.at(builder.buf, builder.pos, builder.ended)
        if found is None:
            found = yield from builder.test(self.open.probe)
        if found:
            name = self.open.fill(found).get("name", "")
            builder.take_match(found)
            char = builder.char() or (yield from builder.peek())
            is_known = builder.tools is None or name in builder.tools
            if not char and not is_known:
                raise Cut  # the name may have gone on
            if char and char != "{" and not is_sure and (bare or builder.tools is None or not is_known):
                raise NotACall
            builder.begin(name)
            return
        if not bare and (yield from builder.test(self._nameless)):
            raise Broken("invalid_name", "the call has no tool name; send the name of a tool with its arguments")
        # Behind a special token the word before the name may be missing.
        for probe in self._without_word if is_sure else ():
            found = found or (yield from builder.test(probe))
        if not found or builder.policy(found["name"]) == "off":
            raise NotACall
        before, after = found.group().rstrip(), first_alternative(self.body.open).replace("{name}", found["name"])
        builder.take_match(found)
        builder.begin(found["name"], repairs=(Repair("broken_opener", "exact", "", before, after),))
