"""The other direction: a reply, or some calls, written in a format.

What is written is read back before it is given out, so that nothing goes out which would read back differently:
`CannotCarry` says what the wire would change. White space at the edge of a text belongs to the markers and does not
count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rightcall.errors import CannotCarry
from rightcall.formats import find
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Body, Format, alternatives
from rightcall.json_pointer import escaped
from rightcall.parsing.compile import compile_format
from rightcall.parsing.detection import read_whole
from rightcall.parsing.markers import BLANKS
from rightcall.parsing.options import ReadOptions
from rightcall.strict_json import Undecodable, decode, encode
from rightcall.tools.toolset import ToolLike, Toolset
from rightcall.types import Call, Part, Reasoning, Reply, Text

_DEPTH = 1_000
_UNSURE = frozenset(("ambiguous_end", "duplicate_argument"))  # what is read is not what was meant for certain


def render(
    reply: Reply | Sequence[Call | Part] | Call,
    *,
    format: str | Format,
    tools: Toolset | Iterable[ToolLike] | None = None,
) -> str:
    """The text a model would have written in this format. It is read back before it is given out.

    - `reply`: a `Reply`, one `Call`, or a list of parts.
    - `format`: a name, an alias or a `Format`; of formats with several bodies the first is written.
    - `tools`: what the calls are of, for wires that need the schema to tell a number from a text.

    Raises `CannotCarry` where the format cannot say it, or it would read back as something else.
    """
    chosen = find(format)
    parts: Sequence[Part] = reply.parts if isinstance(reply, Reply) else [reply] if isinstance(reply, Call) else reply
    text = _Writer(chosen, parts).write()
    _verify(text, parts, chosen, Toolset.of(tools))
    return text


class _Writer:
    def __init__(self, format: Format, parts: Sequence[Part]) -> None:
        self.format = format
        self.body: Body = format.bodies[0]  # of several the first is rendered
        self.kind = BODIES[type(self.body)]
        self.parts = parts
        self.index = 0  # of the next call

    def write(self) -> str:
        if self.format.channels is not None:
            return "".join([self._message(i, part) for i, part in enumerate(self.parts)])
        if outer := self.kind.outer(self.body):
            return self._outer(outer[0])
        out: list[str] = []
        i = 0
        while i < len(self.parts):
            part = self.parts[i]
            if isinstance(part, Call):
                run = 1
                while i + run < len(self.parts) and isinstance(self.parts[i + run], Call):
                    run += 1
                out.append(self._calls([c for c in self.parts[i : i + run] if isinstance(c, Call)], i))
                i += run
            else:
                out.append(self._prose(part, i))
                i += 1
        return self._join(out)

    def _join(self, out: list[str]) -> str:
        """Blocks that stand on lines of their own stay so."""
        opener = _first(self.format.section[0]) if self.format.section else _first(self.format.call[0])
        if not opener.endswith("\n"):
            return "".join(out)
        return "\n".join([text.removesuffix("\n") for text in out[:-1]] + out[-1:])

    def _prose(self, part: Text | Reasoning, i: int) -> str:
        if isinstance(part, Reasoning):
            if self.format.reasoning is None:
                raise CannotCarry(self.format.name, f"/parts/{i}", "this format has no place for reasoning")
            return _first(self.format.reasoning[0]) + part.text + _first(self.format.reasoning[1])
        if self.format.content:
            tag = f"<{part.tag}>"
            opens, closes = next(
                (p for p in self.format.content if _first(p[0]).strip() == tag), self.format.content[0]
            )
            return _first(opens) + part.text + _first(closes)
        return part.text

    def _calls(self, calls: list[Call], i: int) -> str:
        bodies = [self._call(call, i + n) for n, call in enumerate(calls)]
        wrap = self.kind.wrap(self.body)
        opens, closes = _first(self.format.call[0]), _first(self.format.call[1])
        if wrap is not None:
            bodies = [wrap[0] + wrap[1].join(bodies) + wrap[2]]
        text = self.format.between.join(
            [self._fill(opens, call) + body + closes for call, body in zip(calls, bodies, strict=False)]
        )
        if self.format.section is None:
            return text
        return _first(self.format.section[0]) + text + _first(self.format.section[1])

    def _call(self, call: Call, i: int) -> str:
        if not call.complete:
            raise CannotCarry(self.format.name, f"/parts/{i}", "the call was cut off")
        text = self.kind.write(self.body, call, _arguments(call, self.format, i), self.index)
        self.index += 1
        return text

    def _fill(self, marker: str, call: Call) -> str:
        return marker.replace("{name}", call.name)

    def _message(self, i: int, part: Part) -> str:
        channels = self.format.channels
        assert channels is not None
        kind: Any = "call" if isinstance(part, Call) else "reasoning" if isinstance(part, Reasoning) else "content"
        if kind not in channels.messages:
            raise CannotCarry(self.format.name, f"/parts/{i}", f"this format has no place for {kind}")
        opens, closes = channels.messages[kind]
        start = _first(channels.start) if i else ""
        if not isinstance(part, Call):
            return start + opens + part.text + closes
        if self.kind.named_by_header:
            inside = _arguments(part, self.format, i) if part.complete else self._call(part, i)
        else:
            inside = self._calls([part], i)
        return start + self._fill(opens, part) + inside + closes

    def _outer(self, key: str) -> str:
        match self.parts:
            case [Text(text=text)]:
                return json.dumps({self.kind.content_key(self.body): text}, ensure_ascii=False)
        calls = [part for part in self.parts if isinstance(part, Call)]
        if len(calls) < len(self.parts):
            raise CannotCarry(self.format.name, "/parts", "this format carries either one text or calls")
        wrap = self.kind.wrap(self.body) or ("[", ", ", "]")
        inside = wrap[1].join([self._call(call, i) for i, call in enumerate(calls)])
        return f'{{"{key}": {wrap[0]}{inside}{wrap[2]}}}'


def _first(marker: str | tuple[str, ...]) -> str:
    return alternatives(marker)[0]


def _arguments(call: Call, format: Format, i: int) -> str:
    """The exact text of the arguments where it still says what they are, else new JSON."""
    if call.json and same(decode(call.json, _DEPTH), call.arguments) is None:
        return call.json
    try:
        return encode(call.arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise CannotCarry(format.name, f"/parts/{i}/arguments", f"not JSON ({error})") from None


def _verify(text: str, parts: Sequence[Part], format: Format, tools: Toolset | None) -> None:
    reply = read_whole(text, compile_format(format), ReadOptions(tools, repair="off", rescue="off"))
    for i, (sent, got) in enumerate(zip(parts, reply.parts, strict=False)):
        if isinstance(sent, Call) and isinstance(got, Call):
            changed = _changed(sent, got, tools)
            if changed is not None:
                raise CannotCarry(format.name, f"/parts/{i}{changed[0]}", changed[1])
        elif type(sent) is not type(got) or _bare(sent) != _bare(got):
            raise CannotCarry(format.name, f"/parts/{i}", "it would read back as something else")
    if len(parts) != len(reply.parts):
        raise CannotCarry(
            format.name, f"/parts/{min(len(parts), len(reply.parts))}", "it would read back in other parts"
        )


def _changed(sent: Call, got: Call, tools: Toolset | None) -> tuple[str, str] | None:
    """Where and how a call would read back as another; None where it would not."""
    if sent.name != got.name:
        return "/name", f"the name would read back as {got.name[:60]!r}"
    unsure = next((problem for problem in got.problems if problem.code in _UNSURE), None)
    if unsure is not None:
        return f"/arguments{unsure.path}", unsure.message
    path = same(sent.arguments, got.arguments)
    return None if path is None else (f"/arguments{path}", _cause(tools))


def _cause(tools: Toolset | None) -> str:
    hint = "" if tools is not None else " (pass the tools: this wire may need the schema to tell types apart)"
    return "it would read back as another value" + hint


def _bare(part: Any) -> str:
    return str(part.text).strip(BLANKS) if isinstance(part, (Text, Reasoning)) else ""


def same(a: Any, b: Any, path: str = "") -> str | None:
    """None if two JSON values are the same, types included; else a JSON Pointer to the first difference."""
    if type(a) is not type(b) or isinstance(b, Undecodable):
        return path
    if isinstance(a, dict):
        if a.keys() != b.keys():
            odd = next(iter(a.keys() ^ b.keys()))
            return f"{path}/{escaped(odd)}"
        return _first_difference((a[key], b[key], f"{path}/{escaped(key)}") for key in a)
    if isinstance(a, list):
        if len(a) != len(b):
            return path
        return _first_difference((a[i], b[i], f"{path}/{i}") for i in range(len(a)))
    return None if a == b else path


def _first_difference(pairs: Iterable[tuple[Any, Any, str]]) -> str | None:
    return next((found for a, b, path in pairs if (found := same(a, b, path)) is not None), None)
