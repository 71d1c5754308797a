"""The values of tagged arguments: bare text up to its end, read as the schema says unless the tag does."""

from __future__ import annotations

from json.encoder import encode_basestring as quoted
from typing import Any

from rightcall.formats.spec import Params, alternatives
from rightcall.wire.bare_values import Wrong, typed
from rightcall.wire.bodies.nested import NestedTags
from rightcall.wire.bodies.tags import Tags
from rightcall.wire.bodies.value_end import Value, ValueEnd, break_at
from rightcall.wire.buffer import Steps
from rightcall.wire.call_builder import CallBuilder
from rightcall.wire.markers import Holes

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

    def read(self, p: CallBuilder, key: str, said: str | None, values: dict[str, Any], *, unended: bool) -> Steps[Any]:
        """The value that begins here; `said` is the type that its tag says, `values` what the call has so far. The line
        break behind a tag that is `unended` is never the value's."""
        prefix = (", " if values else "{") + quoted(key) + ": "
        kind = self._kind(p.kind(key) or p.kind_by_another_name(key), said)
        if self._nested is not None and (yield from self._is_nested(p, self._nested, key, kind)):
            json, value = yield from self._nested.read(p, key)
            p.give(prefix + json)
            return value
        line = (yield from _line_break(p)) if self._opens_line or unended else ""
        quote = (yield from self._quote(p)) if self._quotes else ""
        taken = Value(key, values, [], kind == "plain" and not (line and self._is_inline), [True] * unended)
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
        is_inline = self._opens_line and not line
        end = self._end_of(key, line, quote, is_inline and p.call is not None and p.call.inline)
        doubt = None if end.at_once(p, taken) else (yield from end.take(p, taken))
        text = "".join(taken.pieces)
        if is_inline and text and p.call is not None and True not in taken.edges:
            p.call.inline = True
        if line and self._is_inline and True not in taken.edges:
            text = line + text  # a line break at one edge alone is the value's own
        value: Any = text
        if taken.give:
            p.give('"')
        else:
            json, value, wrong = typed(text, "string" if quote and kind == "any" else kind, p.limits.depth)
            p.give(prefix + json)
            if wrong is not None:
                self._wrong(p, key, wrong)
        if doubt is not None and p.call is not None:
            p.problem(doubt.code, doubt.message, "/" + key, call=p.call.index)
        return value

    @staticmethod
    def _kind(declared: str | None, said: str | None) -> str:
        """A type in the text wins; where it says string and so does the schema, the schema says more."""
        return declared or "any" if said is None or (said == "string" and declared == "plain") else said

    def _wrong(self, p: CallBuilder, key: str, wrong: Wrong) -> None:
        # A wrong type is for the check of the whole call to tell, which may also mend it.
        if wrong[0] != "wrong_type" and p.call is not None:
            p.problem(wrong[0], f"{key}: {wrong[1]}", "/" + key, call=p.call.index)
            p.call.checked = True

    def _quote(self, p: CallBuilder) -> Steps[str]:
        """What closes the quotes around the value, if it is quoted."""
        assert self._quotes is not None
        while True:
            rest = p.buf[p.pos : p.pos + len(self._quotes[0])]
            if rest == self._quotes[0]:
                p.pos += len(rest)
                return self._quotes[1]
            if p.ended or not self._quotes[0].startswith(rest):
                return ""
            yield

    def _end_of(self, key: str, line: str, quote: str, inline: bool) -> ValueEnd:
        """Where the value of an argument ends."""
        which = (key if self._keyed else "", line, quote, inline)
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
