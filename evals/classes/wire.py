"""A format from the point of view of the cases: its calls piece by piece, and properties derived from its data.

Everything is derived from the data of the format, so a new format is covered when it is registered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from random import Random
from typing import Any, NamedTuple

from classes.case import CallData, toolset
from rightcall import Call, CannotCarry, Reasoning, Text, Toolset, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import (
    Envelope,
    Format,
    NameThenJson,
    Params,
    Pythonic,
    Special,
    marker_alternatives,
)

_HOLE = re.compile(r"\{(name|key|type|id|index|number)\}")


class Piece(NamedTuple):
    role: str
    text: str


def first(marker: str | tuple[str, ...]) -> str:
    """Return the alternative that is written."""
    return marker_alternatives(marker)[0]


def fill(template: str, **holes: object) -> str:
    return _HOLE.sub(lambda hole: str(holes[hole[1]]), template)


def join_pieces(pieces: Iterable[Piece]) -> str:
    return "".join([piece.text for piece in pieces])


def without(pieces: Iterable[Piece], *roles: str) -> list[Piece]:
    return [piece for piece in pieces if piece.role not in roles]


class Wire:
    """One format, and how its texts are generated."""

    def __init__(self, name: str, format: Format) -> None:
        self.name = name
        self.format = format

    # -- properties --

    @cached_property
    def params(self) -> Params | None:
        return next((body for body in self.format.bodies if isinstance(body, Params)), None)

    @cached_property
    def envelope(self) -> Envelope | None:
        body = self.format.bodies[0]
        return body if isinstance(body, Envelope) and body.names else None

    @cached_property
    def is_pythonic(self) -> bool:
        return isinstance(self.format.bodies[0], Pythonic)

    @cached_property
    def is_named_json(self) -> bool:
        return isinstance(self.format.bodies[0], NameThenJson) and bool(self.format.bodies[0].open)

    @cached_property
    def has_channels(self) -> bool:
        return self.format.channels is not None

    @cached_property
    def is_bare(self) -> bool:
        """Return whether a call may appear without any marker."""
        if self.format.section or self.has_channels or "" not in marker_alternatives(self.format.call[0]):
            return False
        return isinstance(self.format.bodies[0], (Envelope, Pythonic))

    @cached_property
    def opener(self) -> str:
        """Return the marker that the first call of a reply begins with, as data (so that special tokens are known)."""
        if self.format.section:
            return first(self.format.section[0])
        if first(self.format.call[0]):
            return first(self.format.call[0])
        return first(getattr(self.format.bodies[0], "open", "") or "")

    @cached_property
    def has_frame(self) -> bool:
        """Return whether a section or a block surrounds the body of a call."""
        return self.format.section is not None or bool(first(self.format.call[0]).strip())

    @cached_property
    def has_opener(self) -> bool:
        """Return whether a marker precedes a call, in a text without messages. A fence quotes its content."""
        return not self.has_channels and bool(self.opener.strip()) and not self.opener.lstrip().startswith("`")

    @cached_property
    def is_special(self) -> bool:
        return isinstance(self.opener, Special)

    @cached_property
    def thinks(self) -> bool:
        return self.format.reasoning is not None and not self.has_channels

    @cached_property
    def is_protocol(self) -> bool:
        return self.format.protocol is not None

    @cached_property
    def is_fence(self) -> bool:
        return any("```" in text for text in marker_alternatives(self.format.call[0]))

    @cached_property
    def think(self) -> tuple[str, str]:
        assert self.format.reasoning is not None
        return first(self.format.reasoning[0]), first(self.format.reasoning[1])

    @cached_property
    def markup(self) -> list[str]:
        """Return the pieces of markers that must not appear in text for the user."""
        body = self.params
        markers = [self.opener, *map(first, self.format.call), *map(first, self.format.section or ())]
        if body is not None:
            markers += [first(body.value_close), first(body.close)]
        pieces = {piece.strip() for text in markers for piece in _HOLE.split(str(text))}
        return sorted([piece for piece in pieces if len(piece) > 4 and re.search(r"[<>\[\]|]", piece)])

    @cached_property
    def name_is_inside(self) -> bool:
        """Return whether the opener continues after the name, so that it is incomplete without that part."""
        after_name = self.opener.partition("{name}")[2].strip()
        return len(after_name) > (0 if self.opener[:1].isalpha() else 2)

    @cached_property
    def openers(self) -> list[str]:
        """Return the texts that a call begins with, up to its name."""
        body = first(getattr(self.params or self.format.bodies[0], "open", "") or "")
        markers = [*(self.format.section or ())[:1], self.format.call[0], body]
        pieces = [_HOLE.split(str(first(marker)))[0].strip() for marker in markers]
        return [piece for piece in pieces if len(piece) > 4]

    # -- texts --

    def render_parts(self, parts: Sequence[CallData | str | Reasoning], tools: str) -> str | None:
        """Render the parts with `render`; return None if the format cannot carry them."""
        whole = [self._part(part) for part in parts]
        try:
            return render(whole, format=self.format, tools=Toolset(toolset(tools)))
        except CannotCarry:
            return None

    @staticmethod
    def _part(part: CallData | str | Reasoning) -> Call | Text | Reasoning:
        if isinstance(part, str):
            return Text(part)
        return part if isinstance(part, Reasoning) else Call(*part)

    def pieces(self, calls: Sequence[CallData]) -> list[Piece]:
        """Write calls of a tagged format piece by piece: strings raw, other values as JSON."""
        pieces: list[Piece] = []
        for index, (name, arguments) in enumerate(calls):
            pieces += [Piece("between", self._between(index))] if index else []
            pieces += self._call(index, name, arguments)
        if self.has_channels or not self.format.section:
            return pieces
        opens, closes = map(first, self.format.section)
        return [Piece("section_open", opens), *pieces, Piece("section_close", closes)]

    def _between(self, index: int) -> str:
        return first(self.format.channels.start) if self.format.channels else self.format.between

    def _call(self, index: int, name: str, arguments: dict[str, Any]) -> list[Piece]:
        assert self.params is not None
        holes = {"name": name, "index": index, "number": index + 1, "id": f"call_{index}"}
        inner = [Piece("open", fill(first(self.params.open), **holes))]
        for key, value in arguments.items():
            inner += self._argument(key, value)
        inner.append(Piece("close", first(self.params.close)))
        opens, closes = map(first, self.format.call)
        inner = [Piece("call_open", fill(opens, **holes)), *inner, Piece("call_close", closes)]
        return inner if self.format.channels is None else self._message(name, inner)

    def _message(self, name: str, inner: list[Piece]) -> list[Piece]:
        assert self.format.channels is not None
        header, end = self.format.channels.messages["call"]
        opens, closes = map(first, self.format.section or ("", ""))
        framed = [Piece("section_open", opens), *inner, Piece("section_close", closes)]
        return [Piece("header", fill(header, name=name)), *framed, Piece("header_close", end)]

    def _argument(self, key: str, value: Any) -> list[Piece]:
        assert self.params is not None
        text = value if isinstance(value, str) else json.dumps(value)
        word = self._type(value)
        opens, closes = first(self.params.param), first(self.params.value_close)
        return [
            Piece("param", fill(opens, key=key, type=word)),
            Piece("value", text),
            Piece("value_close", fill(closes, key=key)),
        ]

    def _type(self, value: Any) -> str:
        assert self.params is not None
        types = self.params.types
        kind_of_value = "string" if isinstance(value, str) else "json"
        if kind_of_value == "json" and "integer" in types:
            return "integer" if isinstance(value, int) else "object"
        return next((word for word, kind in types.items() if kind == kind_of_value), "")

    def json_block(self, body: str, name: str = "lookup") -> str:
        """Return one block around a body text, with its section closed."""
        opens, closes = map(first, self.format.call)
        if not self.has_frame:
            opens, closes = self.opener, first(getattr(self.format.bodies[0], "close", ""))
        text = fill(opens, name=name, index=0, number=1, id="c1") + body + closes
        if self.format.section:
            return first(self.format.section[0]) + text + first(self.format.section[1])
        return text

    def prose(self, dice: Random) -> str:
        """Return text before a call, where the format allows it."""
        return dice.choice(["", "One moment.\n", "I will look that up.\n\n", "Sure, here it is:\n"])


def wires() -> list[Wire]:
    return [Wire(name, format) for name, format in FORMATS.items()]


def blanks_beside_tokens(template: str, dice: Random, *, left: bool = True, right: bool = True) -> str:
    """Return the marker with blanks next to its special tokens, but not at an outer edge that touches a value."""
    tokens = getattr(template, "tokens", ())
    if not tokens:
        return template
    text = "|".join([re.escape(token) for token in sorted(set(tokens), key=len, reverse=True)])
    spread = re.sub(text, lambda token: dice.choice([" {}", "{} ", " {} "]).format(token[0]), str(template))
    spread = spread if left or not str(template)[:1].strip() else spread.lstrip(" ")
    return spread if right or not str(template)[-1:].strip() else spread.rstrip(" ")
