"""Render a reply, or some calls, in a format.

The rendered text is parsed before it is returned, so that no text is returned that would be parsed differently:
`CannotCarry` says what the format would change. White space at the edges of a text belongs to the markers and does not
count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rightcall.errors import CannotCarry
from rightcall.formats import find
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Body, Format, marker_alternatives
from rightcall.parsing.compile import compile_format
from rightcall.parsing.detection import read_whole
from rightcall.parsing.markers import BLANKS
from rightcall.parsing.options import ReadOptions
from rightcall.strict_json import Undecodable, decode, encode, escape_step
from rightcall.tools.toolset import ToolLike, Toolset
from rightcall.types import Call, Part, Reasoning, Reply, Text

_DEPTH = 1_000
_UNCERTAIN = frozenset(("ambiguous_end", "duplicate_argument"))  # the parsed call may differ from the rendered one


def render(
    reply: Reply | Sequence[Call | Part] | Call,
    *,
    format: str | Format,
    tools: Toolset | Iterable[ToolLike] | None = None,
) -> str:
    """Render a reply or calls as a model writes them in this format. The text is parsed before it is returned.

    - `reply`: a `Reply`, one `Call`, or a list of parts.
    - `format`: a name, an alias or a `Format`; of formats with several bodies the first is rendered.
    - `tools`: the tools of the calls, for formats that need the schema to distinguish a number from a text.

    Raises `CannotCarry` if the format has no place for a part, a call is truncated or has arguments that are not JSON,
    or the text would be parsed differently; `UnknownFormat` for an unknown name, `BadTools` for unusable tools.
    """
    chosen = find(format)
    parts: Sequence[Part] = reply.parts if isinstance(reply, Reply) else [reply] if isinstance(reply, Call) else reply
    text = _Writer(chosen, parts).write()
    _verify(text, parts, chosen, Toolset.of(tools))
    return text


class _Writer:
    """Renders the parts of one reply in one format."""

    def __init__(self, format: Format, parts: Sequence[Part]) -> None:
        self.format = format
        self.body: Body = format.bodies[0]  # of several bodies the first is rendered
        self.kind = BODIES[type(self.body)]
        self.parts = parts
        self.index = 0  # of the next call

    def write(self) -> str:
        """Return the text of all parts. Raises `CannotCarry` if the format has no place for one, a call is truncated or
        its arguments are not JSON. If the opener of sections, or else of calls, ends with a line break, each text but
        the last gets a line break at its end if it has none, unless the format has messages with headers or a reply is
        one object."""
        if self.format.channels is not None:
            return "".join([self._message(i, part) for i, part in enumerate(self.parts)])
        if outer := self.kind.outer(self.body):
            return self._outer(outer[0])
        out = self._prose_and_blocks()
        if _first((self.format.section or self.format.call)[0]).endswith("\n"):
            # Blocks on lines of their own stay on them.
            out[:-1] = [text.removesuffix("\n") + "\n" for text in out[:-1]]
        return "".join(out)

    def _prose_and_blocks(self) -> list[str]:
        """Return the text of each part in order; consecutive calls are one text. Raises `CannotCarry` as `_prose` and
        `_calls` do."""
        out: list[str] = []
        calls: list[Call] = []  # consecutive ones
        for i, part in enumerate((*self.parts, None)):
            if isinstance(part, Call):
                calls.append(part)
                continue
            if calls:
                out.append(self._calls(calls, i - len(calls)))
                calls = []
            if part is not None:
                out.append(self._prose(part, i))
        return out

    def _prose(self, part: Text | Reasoning, i: int) -> str:
        """Return the text of a part that is text or reasoning, with its markers (for text, those of the content block
        that its tag names, else the first). `i`: its index, for errors. Raises `CannotCarry` for reasoning that the
        format has no place for."""
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
        """Return the text of consecutive calls, the first of which is part `i`, with their markers, in one section if
        the format has sections, and count them. If the body holds several calls, all are in one body, with one pair of
        markers, which has the name of the first if it has one. Raises `CannotCarry` as `_call` does."""
        bodies = [self._call(call, i + n) for n, call in enumerate(calls)]
        wrap = self.kind.wrap(self.body)
        opens, closes = _first(self.format.call[0]), _first(self.format.call[1])
        if wrap is not None:
            bodies = [wrap[0] + wrap[1].join(bodies) + wrap[2]]
        text = self.format.between.join(
            [opens.replace("{name}", call.name) + body + closes for call, body in zip(calls, bodies, strict=False)]
        )
        if self.format.section is None:
            return text
        return _first(self.format.section[0]) + text + _first(self.format.section[1])

    def _call(self, call: Call, i: int) -> str:
        """Return the text of the body of one call, which is part `i`, without the markers around it, and count the
        call. Raises `CannotCarry` if the call is truncated or its arguments are not JSON."""
        if not call.complete:
            raise CannotCarry(self.format.name, f"/parts/{i}", "the call was cut off")
        text = self.kind.write(self.body, call, _arguments(call, self.format, i), self.index)
        self.index += 1
        return text

    def _message(self, i: int, part: Part) -> str:
        """Return the text of a part as a message with a header; the first (`i` = 0) has no start, because the prompt
        ended with it. If the header names the tool, only the arguments of a call follow, else all that `_calls`
        returns. Raises `CannotCarry` if the format has no messages of this kind, a call is truncated or its arguments
        are not JSON."""
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
        return start + opens.replace("{name}", part.name) + inside + closes

    def _outer(self, key: str) -> str:
        """Return the text of all parts as one JSON object: a single text under the content key, or calls (also none)
        under `key`. Raises `CannotCarry` for text or reasoning beside other parts, reasoning alone, a truncated call or
        arguments that are not JSON."""
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
    """Return the first alternative of a marker, which is the one that is written."""
    return marker_alternatives(marker)[0]


def _arguments(call: Call, format: Format, i: int) -> str:
    """Return the arguments of a call as JSON: the exact text `call.json` if its value is that of `call.arguments`, else
    new JSON. Raises `CannotCarry` for part `i` if they are not JSON."""
    if call.json and same(decode(call.json, _DEPTH), call.arguments) is None:
        return call.json
    try:
        return encode(call.arguments)
    except (TypeError, ValueError, RecursionError) as error:
        raise CannotCarry(format.name, f"/parts/{i}/arguments", f"not JSON ({error})") from None


def _verify(text: str, parts: Sequence[Part], format: Format, tools: Toolset | None) -> None:
    """Parse `text` in the format, with repairs and rescue off, and raise `CannotCarry`, with the path of the first
    difference, if the result differs from `parts`. Names and arguments of calls and the text of other parts, without
    white space at its edges, are compared, and the number of parts; a call whose end or arguments are uncertain differs
    (`_changed`)."""
    reply = read_whole(text, compile_format(format), ReadOptions(tools, repair="off", rescue="off"))
    for i, (sent, got) in enumerate(zip(parts, reply.parts, strict=False)):
        if isinstance(sent, Call) and isinstance(got, Call):
            changed = _changed(sent, got, tools)
            if changed is not None:
                raise CannotCarry(format.name, f"/parts/{i}{changed[0]}", changed[1])
        elif type(sent) is not type(got) or _bare(sent) != _bare(got):
            raise CannotCarry(format.name, f"/parts/{i}", "it would read back as something else")
    if len(parts) != len(reply.parts):
        first = min(len(parts), len(reply.parts))
        raise CannotCarry(format.name, f"/parts/{first}", "it would read back in other parts")


def _changed(sent: Call, got: Call, tools: Toolset | None) -> tuple[str, str] | None:
    """Return the path and the cause of the first difference between a rendered call and the same call as parsed: in the
    name, a problem that makes the parsed call uncertain (`_UNCERTAIN`), or in the arguments; None if there is none. Ids
    are not compared. `tools`: None adds a hint to the cause of a difference in arguments."""
    if sent.name != got.name:
        return "/name", f"the name would read back as {got.name[:60]!r}"
    unsure = next((problem for problem in got.problems if problem.code in _UNCERTAIN), None)
    if unsure is not None:
        return f"/arguments{unsure.path}", unsure.message
    path = same(sent.arguments, got.arguments)
    hint = "" if tools is not None else " (pass the tools: this wire may need the schema to tell types apart)"
    return None if path is None else (f"/arguments{path}", f"it would read back as another value{hint}")


def _bare(part: Any) -> str:
    """Return the text of a part without white space at its edges; "" for calls."""
    return str(part.text).strip(BLANKS) if isinstance(part, (Text, Reasoning)) else ""


def same(a: Any, b: Any, path: str = "") -> str | None:
    """Return None if two JSON values are the same, types included; else a JSON Pointer, behind `path`, to the first
    difference ("" for the values themselves). An `Undecodable` as `b` differs from everything; lists of different
    length differ as a whole, objects with different keys in one of the keys that only one of them has."""
    if type(a) is not type(b) or isinstance(b, Undecodable):
        return path
    keys: Iterable[Any]
    if isinstance(a, dict):
        if a.keys() != b.keys():
            return f"{path}/{escape_step(next(iter(a.keys() ^ b.keys())))}"
        keys = a
    elif isinstance(a, list) and len(a) == len(b):
        keys = range(len(a))
    else:
        return None if a == b else path
    for key in keys:
        found = same(a[key], b[key], f"{path}/{escape_step(str(key))}")
        if found is not None:
            return found
    return None
