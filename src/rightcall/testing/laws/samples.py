"""What the laws are tried on: replies to render, and texts to parse, made from a seed.

The same seed and format give the same samples on every machine. Strings hold quotes, line breaks, other scripts and the
format's own markers; texts are renderings, cut short or damaged, and heaps of markers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import msgspec

from rightcall.errors import CannotCarry
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format, marker_alternatives
from rightcall.parsing.rendering import render
from rightcall.testing.laws.marker_texts import markers_of
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Part, Reasoning, Text, Tool

_STRING = {"type": "string"}
TOOLS = Toolset(
    [
        Tool(
            name="get_weather",
            description="The weather of a city.",
            parameters={
                "type": "object",
                "properties": {"city": _STRING, "days": {"type": "integer"}},
                "required": ["city"],
            },
        ),
        Tool(
            name="take_note",
            description="Keeps a note.",
            parameters={
                "type": "object",
                "properties": {
                    "text": _STRING,
                    "tags": {"type": "array", "items": _STRING},
                    "meta": {"type": "object"},
                    "weight": {"type": "number"},
                    "done": {"type": "boolean"},
                    "about": {"type": ["string", "null"]},
                },
            },
        ),
        Tool(name="ping", description="Says that it is there.", parameters={"type": "object", "properties": {}}),
    ]
)

_FRAGMENTS = (
    *("Oslo", "a b", " ", "\n", "\n\n", "\t", '"', "'", "\\", "\\n", "\\u00e9", "{", "}", "[", "]", "(", ")", ","),
    *("<", ">", "</", "&lt;", "|", "`", "```", "#", "null", "None", "true", "007", "1e5", "-3", "=", ":", ";", "%"),
    *("ü", "日本", "🙂", "\u2028", "\u202e", "é", "```json\n", '{"name": "f"}', "f(x=1)", "<think>", "EOF"),
)
# What may show the text behind it.
_SHOWING = (
    *(
        "\n> ",
        "\n```\n\n",
        "\n~~~\n",
        " `",
        "``",
        ' "',
        " \u201c",
        " '",
        "\n\n    ",
        "\n\n\t",
        "\n@@ -1 +1 @@\n",
        "\n--- a\n+++ b\n",
    ),
    *(
        "<pre>",
        "</pre>",
        "<code>",
        "<!-- ",
        " -->",
        "<![CDATA[",
        "\nuser: ",
        "\n12\t",
        "\n12: ",
        "\n- ",
        "\n2024-01-05 10:30:00 ",
    ),
    *("<tool_response>", "</tool_response>", "\n# ", '"', "\n\n"),
)
PROSE = ("One moment.", "I will look it up.", "Here: 3 < 4, {ok}.", "Línea\nnext", "Done - see above.", "a [b] (c)")
_NUMBERS = (0, 1, -3, 42, 2**53 + 1, 10**20, 0.5, -2.25, 1e-7)


class Sample(msgspec.Struct, frozen=True):
    """Parts to render. A `plain` one must be carried by every format; of others a format may say `CannotCarry`."""

    parts: tuple[Part, ...]
    plain: bool = False


def call(name: str, arguments: dict[str, Any]) -> Call:
    return Call(name, arguments, json.dumps(arguments, ensure_ascii=False))


WEATHER = call("get_weather", {"city": "Oslo", "days": 3})
PING = call("ping", {})


def samples(format: Format, seed: int, count: int) -> Iterator[Sample]:
    """The plain samples, then so many random ones."""
    yield Sample((WEATHER,), plain=True)
    yield Sample((PING,), plain=True)
    yield Sample((WEATHER, PING), plain=True)
    if not _either_or(format) and not _only_at_the_start(format):
        yield Sample((Text("One moment."), WEATHER), plain=True)
    if thinks(format):
        yield Sample((Reasoning("The city is Oslo."), WEATHER), plain=True)
    dice = Random(f"{seed} {format.name} samples")
    markers = markers_of(format)
    for _ in range(count):
        yield Sample(tuple(_parts(dice, format, markers)))


def renderings(format: Format, seed: int, count: int) -> Iterator[str]:
    """The texts of so many samples that the format can carry."""
    made = 0
    for sample in samples(format, seed, 3 * count):
        text = rendering(format, sample.parts)
        if text is not None:
            yield text
            made += 1
        if made >= count:
            return


def rendering(format: Format, parts: Sequence[Part]) -> str | None:
    """The text of these parts, or None where the format cannot carry them."""
    try:
        return render(parts, format=format, tools=TOOLS)
    except CannotCarry:
        return None
    except Exception:  # noqa: BLE001 - the round-trip law renders too, and reports what is raised
        return None


def texts(format: Format, rendered: list[str], seed: int, count: int) -> Iterator[str]:
    """Texts that no one rendered: damaged renderings, and heaps of the format's markers."""
    dice = Random(f"{seed} {format.name} texts")
    markers = markers_of(format)
    for i in range(count):
        if rendered and i % 6 == 4:
            yield _showing(dice, rendered)
        elif rendered and i % 3:
            yield damaged(dice, dice.choice(rendered), markers)
        else:
            yield heap(dice, markers)


def thinks(format: Format) -> bool:
    """Does this format have a place for reasoning?"""
    if format.channels is not None:
        return "reasoning" in format.channels.messages
    return format.reasoning is not None


def _either_or(format: Format) -> bool:
    """A format whose reply is one JSON object holds either calls or text."""
    body = format.bodies[0]
    return bool(BODIES[type(body)].outer(body))


def _only_at_the_start(format: Format) -> bool:
    """Without any marker a call is one only where a reply begins."""
    opener = marker_alternatives(format.call[0])[0]
    bare = (not opener or opener.startswith("`")) and format.section is None and format.channels is None
    return bare and bool(BODIES[type(format.bodies[0])].first)


# -- one reply ---------------------------------------------------------------------------------------------------------


def _parts(dice: Random, format: Format, markers: list[str]) -> Iterator[Part]:
    if thinks(format) and dice.random() < 0.3:
        yield Reasoning(dice.choice(PROSE))
    prose = not _either_or(format)
    for _ in range(dice.choice((1, 1, 2, 3))):
        if prose and dice.random() < 0.3:
            yield Text(dice.choice(PROSE))
        yield _any_call(dice, markers)
    if prose and dice.random() < 0.3:
        yield Text(dice.choice(PROSE))


def _any_call(dice: Random, markers: list[str]) -> Call:
    kind = dice.random()
    if kind < 0.1:
        return PING
    if kind < 0.4:
        return call("get_weather", {"city": _string(dice, markers), "days": dice.choice((0, 1, -3, 10**20))})
    makers: dict[str, Any] = {
        "text": lambda: _string(dice, markers),
        "tags": lambda: [_string(dice, markers) for _ in range(dice.randrange(3))],
        "meta": lambda: _object(dice, markers, 0),
        "weight": lambda: dice.choice(_NUMBERS),
        "done": lambda: dice.random() < 0.5,
        "about": lambda: None if dice.random() < 0.5 else _string(dice, markers),
    }
    chosen = dice.sample(sorted(makers), dice.randrange(1, 5))
    return call("take_note", {key: makers[key]() for key in chosen})


def _string(dice: Random, markers: list[str]) -> str:
    pieces = []
    for _ in range(dice.choice((0, 1, 1, 2, 4, 8))):
        pool = markers if markers and dice.random() < 0.2 else _FRAGMENTS
        piece = dice.choice(pool)
        pieces.append(piece[: dice.randrange(1, len(piece) + 1)] if dice.random() < 0.2 else piece)
    return "".join(pieces)


def _object(dice: Random, markers: list[str], depth: int) -> dict[str, Any]:
    keys = ("a", "b c", "name", "arguments", "ü", "x")
    return {dice.choice(keys): _value(dice, markers, depth + 1) for _ in range(dice.randrange(4))}


def _value(dice: Random, markers: list[str], depth: int) -> Any:
    kind = dice.randrange(6 if depth < 3 else 4)
    if kind == 0:
        return dice.choice((None, True, False))
    if kind == 1:
        return dice.choice(_NUMBERS)
    if kind < 4:
        return _string(dice, markers)
    if kind == 4:
        return [_value(dice, markers, depth + 1) for _ in range(dice.randrange(3))]
    return _object(dice, markers, depth)


# -- texts that were never rendered ------------------------------------------------------------------------------------


def damaged(dice: Random, text: str, markers: list[str]) -> str:
    a, b = sorted((dice.randrange(len(text) + 1), dice.randrange(len(text) + 1)))
    b = min(b, a + 24)
    kind = dice.randrange(4)
    if kind == 0:
        return text[:a] + text[b:]
    if kind == 1:
        return text[:b] + text[a:]
    if kind == 2:
        return text[:a] + dice.choice([*markers, *_FRAGMENTS, *_SHOWING]) + text[a:]
    return text[:b]


def _showing(dice: Random, rendered: list[str]) -> str:
    """Renderings with something before them that may show them."""
    pieces = [dice.choice(rendered) for _ in range(dice.choice((1, 2, 2)))]
    return "".join([dice.choice((*_SHOWING, *PROSE, "")) + dice.choice((*_SHOWING, "")) + piece for piece in pieces])


def heap(dice: Random, markers: list[str]) -> str:
    bodies = ('{"name": "ping", "arguments": {}}', '{"city": "Oslo"}', "ping()", "[ping()]", "ping", "city: Oslo")
    pool = [*markers, *markers, *bodies, *PROSE, *_FRAGMENTS, *_SHOWING]
    return "".join([dice.choice(pool) for _ in range(dice.randrange(1, 12))])
