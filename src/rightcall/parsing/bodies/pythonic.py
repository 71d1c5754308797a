"""Python calls with keyword arguments:  [f(k="v"), g(n=1)]   or one per line, without the brackets.

Superfluous commas are skipped, and a missing value is "", as in rig-compose's LFM reader (docs/capabilities.md).
A value that is valid JSON keeps its spelling. A tuple is a list (vllm#48171). What is no Python at all
(`when=2024-01-05`) is a string, with a receipt.
Where a call cannot be read, the problem's code says what is missing: a parenthesis, a name, an equals sign, a quote.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring as quoted
from typing import Any

from rightcall.parsing.argument_values import (
    TEXT_KINDS,
    ParsedValue,
    bad_escape_receipt,
    interpret_by_schema,
    open_string,
    parse_value,
    skip_to_end,
    take_string,
    take_to_end,
    take_whole_value,
    to_json,
)
from rightcall.parsing.bodies.body_reader import BodyReader
from rightcall.parsing.buffer import Broken, Cut, NotACall, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import Pat, Probe, alt, blanks, literal, lookahead, seq
from rightcall.parsing.values.notation import HOLE, PYTHON, PYTHON_ESCAPES, StringText
from rightcall.parsing.values.value_reader import BadValue, Ends, Odd, ValueReader
from rightcall.strict_json import Undecodable, decode_unique
from rightcall.types import Repair

_WORD = Pat(r"[^\W\d][\w.\-]{0,255}+", r"(?:[^\W\d][\w.\-]{0,255}+)?")
STRICT = Probe(lookahead(seq(_WORD, blanks(), literal("("))))
_ARG_NAME = Pat(r"[\w.\-]{1,256}+", r"[\w.\-]{0,256}+")
NAMELESS = Probe(lookahead(seq(literal("("), blanks(), _ARG_NAME, blanks(), literal("="))))
# Behind a call: an argument that a parenthesis was closed before too early.
LOST_ARGUMENT = Probe(lookahead(seq(blanks(), literal(","), blanks(), _ARG_NAME, blanks(), literal("="))))
_NAME_END = r"()\[\]{},'\"=<>\n`"
NAME = Probe(lookahead(Pat(rf"[^{_NAME_END}]{{0,256}}+[{_NAME_END}]", rf"[^{_NAME_END}]{{0,256}}+")))
NAME_RUN = re.compile(rf"[^{_NAME_END}]{{0,256}}+").match
_KEY_END = r"=(),\[\]{}'\"<>`"
KEY = re.compile(rf"[^{_KEY_END}]{{0,256}}+").match
KEY_PROBE = Probe(lookahead(Pat(rf"[^{_KEY_END}]{{0,256}}+[{_KEY_END}]", rf"[^{_KEY_END}]{{0,256}}+")))
GOOD_KEY = re.compile(r"[\w.\-]+").fullmatch
ENDS_VALUE = re.compile(r"[ \t\r\n]*+[,)]").match
MAY_CLOSE = re.compile(r"[<`]").search  # what a marker begins with
COMMAS = re.compile(r"[ \t\r\n,]*+").match  # all at once: what is not the usual argument is never looked at again
# The usual argument: a name that was not there before, an equals sign, and the first character of its value.
ARGUMENT = re.compile(r"[ \t\r\n,]*+([\w.\-]{1,256}+)[ \t\r\n]*+=[ \t\r\n]*+(?=[^ \t\r\n,)])").match
# In a bare value: what only code has, and an argument that lost the comma before it.
CODE = re.compile(r"[()\[\]{}\"]|(?<!\w)'|'(?!\w)|\n").search
CALL_BEGUN = re.compile(r"[\w.]++[(\[{]").match
ARGUMENT_INSIDE = re.compile(r"\s[^\W\d][\w.\-]*+\s*+=(?!=)").search
# Between two calls on lines of their own (waybarrios/vllm-mlx#622), each printed:  print(f())\nprint(g())
PRINT = Probe(
    Pat(
        r"\)?+[ \t\r\n;]{0,128}+print[ \t]{0,8}+\(",
        r"\)?+[ \t\r\n;]{0,128}+(?:p(?:r(?:i(?:n(?:t[ \t]{0,8}+)?+)?+)?+)?+)?+",
    )
)


# -- quotes inside strings ---------------------------------------------------------------------------------------------

_MOST_HELD = 4096
# After a string that is over: adjacent strings, an operator, a method, a condition. That is code.
_CODE = re.compile(r"\s*+(?:['\"]|[-+%*/.\[]|(?:if|or|and|in|not|is|for)\b)").match
_UP_TO_QUOTE = {quote: re.compile(rf"(?:[^{quote}\\]|\\.?)*+(?:{quote}|\Z)", re.S).finditer for quote in "'\""}
_AFTER_STRING = re.compile(
    r"\s*+(?:,\s*+([\w.\-]{1,256}+)\s*+=|\)\s*+(?:\Z|[\])][\])\s]*+\Z|;|,?\s*+[^\W\d][\w.\-]*+\s*+\())"
).match
# In a string that contains its own quotes: an argument after one of them or after a comma, and other calls.
_KEYS = {quote: re.compile(rf"(?:{quote}[^\w'\"]*+|,\s*+)([^\W\d][\w.\-]*+)\s*+=(?!=)").finditer for quote in "'\""}
_ENDS_WITH_KEY = re.compile(r"(?<![\w.\-])([^\W\d][\w.\-]{0,255}+)\s{0,16}+=\s{0,16}+[\[({]{0,8}+\Z").search
_CALLS = re.compile(r"(?<![\w.\-])([^\W\d][\w.\-]{0,255}+)\s*+\(").finditer
_NEXT_CALL = re.compile(
    r"(?<![\w.\-])[^\W\d][\w.\-]{0,255}+\s*+\(\s*+[^\W\d][\w.\-]*+\s*+=(?!=)"
    r"|\)\s*+[,;]\s*+[^\W\d][\w.\-]{0,255}+\s*+\("
).search


def read_inner_quotes(builder: CallBuilder, quote: str, key: str, before: str) -> Steps[str]:
    """Take the remainder of a string with unescaped quotes inside, with its closing quote, add a receipt, and return it
    decoded, from the first of these quotes on: word='grep 'owl' notes'

    `before` is the text up to that quote, which was taken with it. The string ends at the only later quote of the block
    that `,name=` follows, or `)` before the end of the block or another call. Raises `Broken`, with nothing taken, if
    that is not certain, `before` is "", the string seems to contain another argument or call (`ambiguous_end`) or
    repairs are off, `Cut` as `_find_block_end`. Evidence: NousResearch/hermes-agent#36271, continuedev/continue#12738.
    """
    broken = Broken("trailing_content", "a comma or ')' must follow the string; escape the quotes inside it", f"/{key}")
    assert builder.text.is_open and builder.call is not None
    key_before = _ENDS_WITH_KEY(before)
    if key_before is not None and _is_argument(builder, key_before[1]):
        raise broken  # the quote begins the string of the next argument
    if builder.policy(builder.call.name) == "off" or not before or before.endswith("\\"):
        raise broken  # one of two quotes at the start may be superfluous, and so may a backslash before the quote
    # The blanks after the quote were consumed: they are part of the string.
    taken = builder.text_so_far()
    lead = taken[taken.rfind(quote) :]
    end = yield from _find_block_end(builder, broken)
    rest = builder.buf[builder.pos : end]
    ends = [after for found in _UP_TO_QUOTE[quote](rest) if (after := _AFTER_STRING(rest, found.end()))]
    if _CODE(rest) or len(ends) != 1 or (ends[0][1] and not _is_argument(builder, ends[0][1])):
        raise broken
    text = lead + rest[: ends[0].start() - 1]
    if _holds_another(builder, text, quote) or _begins_another(builder, before):
        message = "the string seems to include the text after it; escape the quotes inside it, and send the call again"
        raise Broken("ambiguous_end", message, f"/{key}")
    builder.advance(ends[0].start())
    builder.call.add_repairs(
        Repair("inner_quotes", "schema", f"/{key}", text[:_SHOWN], text.replace(quote, "\\" + quote)[:_SHOWN])
    )
    return PYTHON_ESCAPES.read(text)


def _holds_another(builder: CallBuilder, text: str, quote: str) -> bool:
    """Return whether a string that was read over its own quotes (`quote`) contains another argument behind such a quote
    or a comma, or another call: a declared name and `(`, or any call with an argument or behind `)` and a comma or
    semicolon. Then a comma was lost. Without declared tools any `name=` there is an argument."""
    if any(_is_argument(builder, found[1]) for found in _KEYS[quote](text)):
        return True
    names = (found.group(1) for found in _CALLS(text))
    return _NEXT_CALL(text) is not None or any(map(builder.is_declared, names))


def _begins_another(builder: CallBuilder, before: str) -> bool:
    """Return whether another call begins in `before`, the text of a string before its first inner quote: an opener of
    calls, or a declared name and `(`; without declared tools, as in `_NEXT_CALL`. Then the call was given up, and its
    string was never closed."""
    if any(pat.prefix in before for pat, _ in builder.compiled.openers.of_calls):
        return True
    if builder.tools is None:
        return _NEXT_CALL(before) is not None
    return any(found.group(1) in builder.tools for found in _CALLS(before))


def _is_argument(builder: CallBuilder, name: str) -> bool:
    """Return whether the current call declares the argument `name`; True without declared tools."""
    return builder.tools is None or builder.kind(name) is not None


def _find_block_end(builder: CallBuilder, broken: Broken) -> Steps[int]:
    """Return the index in `buf` of the closing marker of the block, waiting for it with nothing taken. If the text ends
    first, return the end of `buf` if the format has bare calls or no such marker; otherwise take all and raise `Cut`.
    Raises `broken` if more than 4,096 characters have arrived without the marker, also if the format has none."""
    close, size = builder.compiled.call_ends.close, 0
    while True:
        most, found = min(len(builder.buf) - builder.pos, _MOST_HELD + 1), None
        while size < most and (
            close is None or (found := close.at(builder.buf, builder.pos + size, builder.ended)) is False
        ):
            size += 1
        if size > _MOST_HELD:
            raise broken
        if found or (builder.ended and (close is None or builder.compiled.bare_calls.first_characters)):
            return builder.pos + size
        if builder.ended:
            builder.take_all()
            raise Cut
        yield


_SHOWN = 200


class PythonicReader(BodyReader):
    begins = Probe(alt(Pat(r"[^\[{\s]", ""), seq(literal("["), blanks(), Pat(r"[^{\s]", ""))))

    def read(self, builder: CallBuilder, *, bare: bool) -> Steps[None]:
        """Parse and finish all calls: a list of calls up to and with its closing bracket, also `[]` unless `bare`, or
        calls in a row without brackets (OLMo 3: vllm#26143; LFM2: cactus-compute/cactus, docs/cactus_engine.md), up to
        other text. Commas between calls, and in a row `print(`, are skipped. Raises `NotACall` if none begins here or
        beyond the limit of calls, `Broken` if a call has no parenthesis or its end is not found, `Cut` if the text ends
        before the bracket, or, in a row, anywhere: also behind a finished call (vllm#30722)."""
        first = builder.index
        listed = (builder.char() or (yield from builder.peek())) == "["
        builder.advance(listed)
        while True:
            char = builder.char() or (yield from builder.peek())
            if not char:
                raise Cut
            is_first = builder.index == first
            if listed and char == "]":
                if bare and is_first:
                    raise NotACall
                builder.output.drop_blanks()
                builder.advance()
                return
            if char == "," and not is_first:
                builder.advance()
            elif listed or is_first:
                yield from self._call(builder, bare, listed, is_first)
            elif (again := (yield from builder.test(PRINT))) and not builder.is_declared("print"):
                builder.take_match(again)
            elif (yield from builder.test(STRICT)):
                yield from self._call(builder, bare, listed, is_first)
            else:
                return

    def _call(self, builder: CallBuilder, bare: bool, listed: bool, is_first: bool) -> Steps[None]:
        """Parse one call, begin it and finish it. If its arguments are invalid, the text up to and with its `)` is
        emitted as a rejected call, so that its siblings are parsed; if other text follows in a list (`listed`), or a
        further argument, the text up to the next comma or `]`. `is_first`: no call is before it. Raises `NotACall` as
        `_name` or beyond the limit of calls, `Broken` without `(` (no call has begun then) or if that end is not found
        (one has), `Cut` if the text ends."""
        builder.begin_text()
        # Without a bracket only a name and its parenthesis tell a call from prose about the marker.
        name = yield from self._name(builder, bare, is_first and (bare or not listed))
        builder.begin(name)
        builder.advance()
        try:
            values = yield from self._arguments(builder)
        except Broken as broken:
            # Its siblings live if the parenthesis that ends it can be found.
            yield from _skip_to(builder, (")",), broken)
            builder.fail(broken.code, broken.message, broken.path)
            return
        builder.end_text()
        if (listed and (builder.char() or (yield from builder.peek())) not in (",", "]", "")) or (
            yield from builder.test(LOST_ARGUMENT)
        ):
            trailing = Broken("trailing_content", "unexpected text after the call's closing ')'")
            yield from _skip_to(builder, (), trailing)
            builder.fail(trailing.code, trailing.message)
            return
        if values:
            builder.give("}")
        builder.finish(values, empty=not values)

    def _name(self, builder: CallBuilder, bare: bool, strict: bool) -> Steps[str]:
        """Take the name of a call and return it, "" if it is missing; `(` is the next character then, and the call has
        not begun. `strict`: raise `NotACall` unless a call opens here (`_opens`). Raises `Broken` if no `(` follows,
        `Cut` if the text ends in or behind the name; then, unless `bare`, a call of a declared name has begun (beyond
        the limit of calls `NotACall` instead)."""
        if strict and not (yield from self._opens(builder, bare)):
            raise NotACall
        yield from builder.test(NAME)
        found = NAME_RUN(builder.buf, builder.pos)
        assert found is not None
        builder.take_match(found)
        name = found.group().strip()
        if builder.pos == len(builder.buf):
            if not bare and builder.is_declared(name):
                builder.begin(name)
            raise Cut
        if (char := builder.buf[builder.pos]) == "[" and not name:
            raise Broken("invalid_call", "a call must stand in the list itself, not in a list inside it")
        if char != "(":
            raise Broken("invalid_call", f"a call needs '(' after its name, found {char!r}")
        return name

    def _opens(self, builder: CallBuilder, bare: bool) -> Steps[bool]:
        """Return whether a name and its parenthesis are here. Behind a marker (not `bare`) the name may also be missing
        before `(name=`, or the text may have ended in it. Nothing is taken."""
        if (yield from builder.test(STRICT)):
            return True
        if bare:
            return False
        return (builder.ended and STRICT.is_begun(builder.buf, builder.pos)) or bool(
            (yield from builder.test(NAMELESS))
        )

    def _arguments(self, builder: CallBuilder) -> Steps[dict[str, Any]]:
        """Take the arguments up to and with `)`, give their JSON without the last brace to the call, one by one, and
        return them; {} for none. Superfluous commas are skipped. Raises `Broken` for an invalid or repeated argument,
        `Cut` if the text ends."""
        values: dict[str, Any] = {}
        while True:
            usual = ARGUMENT(builder.buf, builder.pos)
            if usual is not None and usual.group(1) not in values:
                key = usual.group(1)
                builder.take_match(usual)
            else:
                char = builder.char() or (yield from builder.peek())
                if not char:
                    raise Cut
                if char == ")":
                    builder.advance()
                    return values
                if char == ",":
                    builder.take_match(COMMAS(builder.buf, builder.pos))
                    continue
                key = yield from self._key(builder, values)
            prefix = (", " if values else "{") + quoted(key) + ": "
            values[key] = yield from self._value(builder, key, prefix)

    def _key(self, builder: CallBuilder, values: dict[str, Any]) -> Steps[str]:
        """Take the name of an argument and its `=`, and return the name. Raises `Broken` without an equals sign
        (`positional_argument`, or `invalid_call` before the closing marker of the call), or for a name that is missing,
        invalid or in `values`, the arguments so far; `Cut` if the text ends in it."""
        yield from builder.test(KEY_PROBE)
        found = KEY(builder.buf, builder.pos)
        assert found is not None
        if found.end() == len(builder.buf):
            builder.take_match(found)
            raise Cut
        if builder.buf[found.end()] != "=":
            close = builder.compiled.call_ends.close
            builder.take_match(found)
            if close is not None and (yield from builder.test(close)):
                raise Broken("invalid_call", "the call's closing ')' is missing")
            raise Broken("positional_argument", "every argument needs its name: name=value")
        key = found.group().strip()
        builder.advance(found.end() + 1 - builder.pos)
        if not GOOD_KEY(key):
            message = f"{key[:80]!r} is no argument name" if key else "an argument has no name before '='"
            raise Broken("invalid_argument_name", message)
        if key in values:
            raise Broken("duplicate_argument", f"the argument {key!r} is given twice", f"/{key}")
        return key

    def _value(self, builder: CallBuilder, key: str, prefix: str) -> Steps[Any]:
        """Take the value of argument `key`, give its JSON behind `prefix` to the call, and return it: JSON and strings
        as they are, anything else as its schema wants it. A missing value is "", with a receipt: so vLLM's
        tool_chat_template_llama3.2_pythonic.jinja writes an empty string. Raises `Broken` if it is invalid or its end
        is uncertain, `Cut` if the text ends."""
        char = builder.char() or (yield from builder.peek())
        if not char:
            raise Cut
        if char in ",)":
            builder.give(prefix + interpret_by_schema(builder, key, ParsedValue('""', "", bare=(Odd((), ""),)))[0])
            return ""
        json = _take_json_value(builder, key)
        if json is None and char in PYTHON.heads and (text := (yield from open_string(builder, PYTHON))) is not None:
            return (yield from self._string(builder, text, key, prefix))
        if json is None:
            read = (
                (yield from self._nested(builder)) if char in PYTHON.brackets else (yield from self._bare(builder, key))
            )
            json = interpret_by_schema(builder, key, read)
        builder.give(prefix + json[0])
        return json[1]

    def _string(self, builder: CallBuilder, text: StringText, key: str, prefix: str) -> Steps[str]:
        """Take the string `text` behind its opening quote, give its JSON behind `prefix` to the call and return its
        content. A string of kind "plain" is given while it arrives. An invalid escape gets a receipt. If neither `,`,
        `)` nor the end of the text follows, its quotes are repaired (`read_inner_quotes`). Raises `Broken` if that
        fails or it is an f-string with braces, `Cut` if the text ends in it."""
        quote = builder.buf[builder.pos - 1]
        give = builder.kind(key) == "plain"
        if give:
            builder.give(prefix + '"')
        value = yield from take_string(builder, text, give=give)
        if text.has_hole:
            raise Broken("invalid_value", HOLE, f"/{key}")
        if text.odd:
            assert builder.call is not None
            builder.call.add_repairs(bad_escape_receipt(f"/{key}", value))
        if (yield from builder.peek()) not in (",", ")", ""):
            more = yield from read_inner_quotes(builder, quote, key, value)
            if give:
                builder.give(quoted(more)[1:-1])
            value += more
        builder.give('"' if give else prefix + quoted(value))
        return value

    def _nested(self, builder: CallBuilder) -> Steps[ParsedValue]:
        """Take a list, a tuple or an object, up to a comma or `)`, which is left, and return it; JSON keeps its
        spelling. Nothing is given to the call. Raises `Broken` if it is invalid, or if other text or the closing marker
        of the call comes first, `Cut` if the text ends."""
        start, depth = builder.pos, builder.limits.depth
        found = take_whole_value(builder, ValueReader(PYTHON, builder.buf, start, depth=depth, ended=False))
        # Outside quotes a marker may stand in it that closes the call: `Ends` sees that, the reader of values does not.
        if (
            found is not None
            and ENDS_VALUE(builder.buf, builder.pos)
            and not MAY_CLOSE(builder.buf, start, builder.pos)
        ):
            return found
        builder.advance(start - builder.pos)
        text = (yield from take_to_end(builder, _ends(builder, until=",)"))).strip()
        value = decode_unique(text, depth)[0]
        is_strict = not isinstance(value, Undecodable)
        return ParsedValue(text, value) if is_strict else parse_value(ValueReader(PYTHON, text, depth=depth))

    def _bare(self, builder: CallBuilder, key: str) -> Steps[ParsedValue]:
        """Take the value of `key` without quotes, up to a comma or parenthesis, which is left, and return it: a word
        (also as text in `odd`, if the declared kind is text), a number, or a string that lost its quotes. Nothing is
        given to the call. Raises `Broken` if it is none of these, is code (`_is_code`), contains a further argument, or
        the closing marker of the call comes first; `Cut` if the text ends."""
        text = (yield from take_to_end(builder, _ends(builder, until=",)", bare=True))).strip()
        if text in PYTHON.words:
            value = PYTHON.words[text]
            return ParsedValue(to_json(value), value, (Odd((), text),) if builder.kind(key) in TEXT_KINDS else ())
        reader = ValueReader(PYTHON, text)
        try:
            json, value = reader.scalar(text)
        except BadValue as bad:
            raise Broken(bad.code, bad.message) from None
        if reader.bare and _is_code(text, builder.kind(key)):
            raise Broken("invalid_value", f"{text[:60]!r} is no value; a string needs quotes")
        if reader.bare and ARGUMENT_INSIDE(text):
            raise Broken("trailing_content", f"unexpected text after the value: {text[:40]!r}")
        return ParsedValue(json, value, tuple(reader.odd), tuple(reader.bare))


def _is_code(text: str, kind: str | None) -> bool:
    """Return whether `text`, a value without quotes, is an expression and no text that lost its quotes: it has
    brackets, quotes (no apostrophe in a word is one) or a line break. If `kind`, the declared kind of type, is a text,
    it must also begin as a call (`f(`) or have a line break."""
    return bool(CODE(text)) and (kind not in TEXT_KINDS or bool(CALL_BEGUN(text)) or "\n" in text)


def _take_json_value(builder: CallBuilder, key: str) -> tuple[str, Any] | None:
    """Take a value that is JSON and return its JSON and its value, if it and the comma or parenthesis behind it, which
    is left, have arrived; else return None and take nothing. The JSON of a string is written anew. A boolean is left if
    the schema wants a text, which may have lost its quotes."""
    start = builder.pos
    found = builder.take_whole_json()
    is_word = found is not None and isinstance(found[1], bool) and builder.kind(key) in TEXT_KINDS
    if is_word or (found is not None and ENDS_VALUE(builder.buf, builder.pos) is None):
        builder.advance(start - builder.pos)
        return None
    if found is not None and isinstance(found[1], str):
        return quoted(found[1]), found[1]
    return found


def _ends(builder: CallBuilder, *, until: str, stack: tuple[str, ...] = (), bare: bool = False) -> Ends:
    """Return the search for the end of a value in Python's notation, in which the closing marker of the call is an
    error. The arguments are those of `Ends`. Nothing is searched here."""
    close = builder.compiled.call_ends.close
    return Ends(PYTHON, until=until, stack=stack, stop=None if close is None else close.at, bare=bare)


def _skip_to(builder: CallBuilder, stack: tuple[str, ...], broken: Broken) -> Steps[None]:
    """Take everything up to and with the brackets that close those in `stack`, or, if it is empty, up to a comma or
    `]`, which is not taken. Raises `broken` if that cannot be found, `Cut` if the text ends."""
    try:
        yield from skip_to_end(builder, _ends(builder, until=",]", stack=stack))
    except Broken:
        raise broken from None
