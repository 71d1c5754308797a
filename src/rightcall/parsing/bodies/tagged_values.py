"""The values of tagged arguments: bare text up to its end, read as the schema says unless the tag does."""

from __future__ import annotations

from json.encoder import encode_basestring as quoted
from typing import Any

from rightcall.formats.spec import Params, alternatives
from rightcall.parsing.argument_values import typed
from rightcall.parsing.bodies.nested import NestedTags
from rightcall.parsing.bodies.tags import Tags
from rightcall.parsing.bodies.value_end import Value, ValueEnd, break_at
from rightcall.parsing.buffer import Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import Holes

_TEXTUAL = frozenset(("plain", "string", "nullable"))
_MANY = 64  # ends of values that are kept: keys come from the model


class TaggedValues:
    """Reads the value of one argument at a time, behind its opening tag and up to its end."""

    def __init__(self, body: Params, tags: Tags, param: Holes) -> None:
        self._tags, self._param, self._quotes = tags, param, body.quote
        self._opens_line = any(text.endswith("\n") for text in alternatives(body.param))
        self._is_inline = self._opens_line and not alternatives(body.param)[0].endswith("\n")
        self._nested = NestedTags(body) if body.item else None
        self._keyed = "{key}" in "".join(alternatives(body.value_close))
        self._ends: dict[tuple[str, str, str, bool], ValueEnd] = {}

    def at_once(self, p: CallBuilder, key: str, said: str | None, values: dict[str, Any]) -> tuple[Any] | None:
        """As `read`, if the value is all there and as usual; else nothing is taken."""
        declared = (p.call.kinds.get(key) if p.call is not None else None) or p.kind_by_another_name(key)
        kind = declared or "any" if said is None else self._kind(declared, said)
        start, nested = p.pos, self._nested
        tag = nested.tag.at(p.buf, start, p.ended) if nested is not None and kind != "plain" else False
        if tag is not False:
            made = nested.at_once(p, key) if tag and nested is not None and kind not in _TEXTUAL else None
        else:
            made = self._text_at_once(p, key, kind, values)
        if made is None:
            p.pos = start
            return None
        p.give((", " if values else "{") + quoted(key) + ": " + made[0])
        return made[1:]

    def _text_at_once(self, p: CallBuilder, key: str, kind: str, values: dict[str, Any]) -> tuple[str, Any] | None:
        """JSON and value of bare text that is all there."""
        start, line = p.pos, ""
        if self._quotes and self._may_be_quoted(p):
            return None
        if self._opens_line:
            if p.buf[start : start + 2] in ("", "\r") and not p.ended:
                return None
            p.pos += break_at(p)
            line = p.buf[start : p.pos]
        found = self._end_of(p, key, line, "").at_once(p, key, values)
        if found is None:
            return None
        text = self._whole_text(p, found[0], line, found[1]) if self._opens_line else found[0]
        return (quoted(text), text) if kind == "plain" else self._typed(p, key, text, kind)

    def read(self, p: CallBuilder, key: str, said: str | None, values: dict[str, Any]) -> Steps[Any]:
        """Read the value that begins here; `said` is the type that its tag says, `values` what the call has so far."""
        prefix = (", " if values else "{") + quoted(key) + ": "
        kind = self._kind(p.kind(key) or p.kind_by_another_name(key), said)
        if self._nested is not None and (yield from self._is_nested(p, self._nested, key, kind)):
            json, value = yield from self._nested.read(p, key)
            p.give(prefix + json)
            return value
        line = (yield from _line_break(p)) if self._opens_line else ""
        quote = (yield from self._quote(p)) if self._quotes else ""
        taken = Value(key, values, [], kind == "plain" and not (line and self._is_inline), [])
        return (yield from self._text(p, taken, prefix, kind, line, quote))

    def _is_nested(self, p: CallBuilder, nested: NestedTags, key: str, kind: str) -> Steps[bool]:
        """Is the value written in tags? One that may be a text only where its schema lets it be more."""
        if kind in _TEXTUAL and (kind == "plain" or not nested.may_begin(p, key)):
            return False
        found = nested.tag.at(p.buf, p.pos, p.ended)
        return bool(found) or (found is None and bool((yield from p.test(nested.tag))))

    def _text(self, p: CallBuilder, taken: Value, prefix: str, kind: str, line: str, quote: str) -> Steps[Any]:
        """A value that is bare text. What is declared as plain text goes out as it comes."""
        key = taken.key
        if taken.give:
            p.give(prefix + '"')
        doubt = yield from self._end_of(p, key, line, quote).take(p, taken)
        value: Any = self._whole_text(p, "".join(taken.pieces), line, True in taken.edges)
        if taken.give:
            p.give('"')
        else:
            json, value = self._typed(p, key, value, "string" if quote and kind == "any" else kind)
            p.give(prefix + json)
        if doubt is not None and p.call is not None:
            p.problem(doubt.code, doubt.message, "/" + key, call=p.call.index)
        return value

    def _whole_text(self, p: CallBuilder, text: str, line: str, has_edge: bool) -> str:
        """The text between the tags, of which the opening one came with this line break, the other with one or not."""
        if self._opens_line and not line and text and p.call is not None and not has_edge:
            p.call.inline = True
        # A line break at one edge alone is the value's own.
        return line + text if line and self._is_inline and not has_edge else text

    def _typed(self, p: CallBuilder, key: str, text: str, kind: str) -> tuple[str, Any]:
        json, value, wrong = typed(text, kind, p.limits.depth)
        # A wrong type is for the check of the whole call to tell, which may also mend it.
        if wrong is not None and wrong[0] != "wrong_type" and p.call is not None:
            p.problem(wrong[0], f"{key}: {wrong[1]}", "/" + key, call=p.call.index)
            p.call.checked = True
        return json, value

    @staticmethod
    def _kind(declared: str | None, said: str | None) -> str:
        """A type in the text wins; where it says string and so does the schema, the schema says more."""
        return declared or "any" if said is None or (said == "string" and declared == "plain") else said

    def _quote(self, p: CallBuilder) -> Steps[str]:
        """What closes the quotes around the value, if it is quoted."""
        assert self._quotes is not None
        opens, closes = self._quotes
        while self._may_be_quoted(p):
            if p.buf.startswith(opens, p.pos):
                p.pos += len(opens)
                return closes
            if p.ended:
                break
            yield
        return ""

    def _may_be_quoted(self, p: CallBuilder) -> bool:
        assert self._quotes is not None
        opens = self._quotes[0]
        return opens.startswith(p.buf[p.pos : p.pos + len(opens)])

    def _end_of(self, p: CallBuilder, key: str, line: str, quote: str) -> ValueEnd:
        """Where the value of an argument ends."""
        is_inline = self._opens_line and not line and p.call is not None and p.call.inline
        which = (key if self._keyed else "", line, quote, is_inline)
        found = self._ends.get(which)
        if found is None:
            if len(self._ends) > _MANY:
                self._ends.clear()
            found = self._ends[which] = ValueEnd(self._tags, self._param, *which)
        return found


def _line_break(p: CallBuilder) -> Steps[str]:
    """The line break that stands here, taken; "" where none does."""
    while p.buf[p.pos : p.pos + 2] in ("", "\r") and not p.ended:
        yield
    size = break_at(p)
    p.pos += size
    return p.buf[p.pos - size : p.pos]
