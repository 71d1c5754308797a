"""The inputs of the laws: a `Case` and its JSON form, and generators of replies to render and of texts to parse.

    Case("opener", text="<tool_call>{")
    line(case, "hermes")                      one line of JSON, which `case_from_line` reads

The same seed and format give the same samples on every machine. Strings contain quotes, line breaks, other scripts and
the format's own markers; texts are renderings, truncated or damaged, and random sequences of markers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Literal

import msgspec

from rightcall.errors import CannotCarry
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format, marker_alternatives
from rightcall.parsing.rendering import render
from rightcall.testing.laws.marker_texts import markers_of
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Part, Reasoning, Text, Tool

LawName = Literal[
    "cut",
    "live",
    "events",
    "nothing lost",
    "round trip",
    "truncation",
    "ends",
    "opener",
    "auto",
    "keys",
    "swallowing",
    "never raises",
]


class Violation(msgspec.Struct, frozen=True):
    """A violation: the name of the `law`, what is wrong (`what`), and the `input`: the parsed text, or the rendered
    parts."""

    law: LawName
    what: str
    input: str


class WrittenKey(msgspec.Struct, frozen=True):
    """A key of a text, with its `value`. A message that mentions any of `names` accounts for it: the key itself, or the
    key of the object that contains it."""

    names: tuple[str, ...]
    value: Any


class Case(msgspec.Struct, frozen=True, omit_defaults=True):
    """One example for one law: a text to parse, or parts to render.

    - `law`: the name of the law in `LAWS`.
    - `text`: the text to parse.
    - `sent`: the parts from which the text was rendered, or which are to be rendered.
    - `written`: the keys in the text, with their values.
    - `value`: the exact value of a raw argument in the text.
    - `must_carry`: whether it is a violation if the format cannot express the parts.
    - `seed`: selects where the text is cut.
    """

    law: str
    text: str = ""
    sent: tuple[Part, ...] = ()
    written: tuple[WrittenKey, ...] = ()
    value: str = ""
    must_carry: bool = False
    seed: int = 0


def raised_violation(error: Exception, input: str) -> Violation:
    """Return a violation of the law "never raises" for an input for which the parser or the renderer raised `error`."""
    return Violation("never raises", f"{type(error).__name__}: {error}", input)


# -- one line of JSON --------------------------------------------------------------------------------------------------


def line(case: Case, format: str, **more: Any) -> str:
    """Return a case as one line of JSON for a corpus file, without a line break, with the name of its format; `more`
    are further keys."""
    row = {"law": case.law, "format": format, **more, "text": case.text}
    row |= {"sent": [_part_json(part) for part in case.sent]} if case.sent else {}
    row |= {"written": [[list(w.names), w.value] for w in case.written]} if case.written else {}
    row |= {"value": case.value} if case.value else {}
    row |= {"must_carry": True} if case.must_carry else {}
    row |= {"seed": case.seed} if case.seed else {}
    return json.dumps(row)  # ASCII only, since a lone surrogate cannot be written otherwise


def case_from_line(row: dict[str, Any]) -> Case:
    """Return the case of a line that was parsed as JSON. Other keys are ignored, and missing ones get defaults."""
    return Case(
        row.get("law", ""),
        row.get("text", ""),
        tuple([_part_from_json(part) for part in row.get("sent", [])]),
        tuple([WrittenKey(tuple(names), value) for names, value in row.get("written", [])]),
        row.get("value", ""),
        row.get("must_carry", False),
        row.get("seed", 0),
    )


def _part_json(part: Part) -> dict[str, Any]:
    """Return a part as JSON data: the name and arguments of a call, or the text of a text or reasoning part."""
    if isinstance(part, Call):
        return {"name": part.name, "arguments": part.arguments}
    return {"reasoning" if isinstance(part, Reasoning) else "text": part.text}


def _part_from_json(row: dict[str, Any]) -> Part:
    """Return the part that this JSON data describes: a call with `name` and `arguments`, else `reasoning`, else
    `text`."""
    if "name" in row:
        return Call(row["name"], row["arguments"])
    return Reasoning(row["reasoning"]) if "reasoning" in row else Text(row["text"])


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
# Text after which a call may be a quotation, and not a call.
_QUOTING = (
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
    """Parts to render. Every format must express a `plain` sample; for others, `CannotCarry` is allowed."""

    parts: tuple[Part, ...]
    plain: bool = False


def make_call(name: str, arguments: dict[str, Any]) -> Call:
    """Return a call with these arguments, and with their JSON as its text."""
    return Call(name, arguments, json.dumps(arguments, ensure_ascii=False))


WEATHER = make_call("get_weather", {"city": "Oslo", "days": 3})
PING = make_call("ping", {})


def samples(format: Format, seed: int, count: int) -> Iterator[Sample]:
    """Yield samples of replies to render: a few that every format must express, then `count` random ones."""
    yield Sample((WEATHER,), plain=True)
    yield Sample((PING,), plain=True)
    yield Sample((WEATHER, PING), plain=True)
    if not _excludes_text(format) and not _calls_only_at_start(format):
        yield Sample((Text("One moment."), WEATHER), plain=True)
    if has_reasoning(format):
        yield Sample((Reasoning("The city is Oslo."), WEATHER), plain=True)
    dice = Random(f"{seed} {format.name} samples")
    markers = markers_of(format)
    for _ in range(count):
        yield Sample(tuple(_random_parts(dice, format, markers)))


def renderings(format: Format, seed: int, count: int) -> Iterator[str]:
    """Yield at most `count` texts of sample replies in this format, the plain samples first; samples that the format
    cannot express are left out."""
    count_rendered = 0
    for sample in samples(format, seed, 3 * count):
        text = rendering(format, sample.parts)
        if text is not None:
            yield text
            count_rendered += 1
        if count_rendered >= count:
            return


def rendering(format: Format, parts: Sequence[Part]) -> str | None:
    """Return the text of these parts; None if the format cannot express them, or `render` raises anything else."""
    try:
        return render(parts, format=format, tools=TOOLS)
    except CannotCarry:
        return None
    except Exception:  # noqa: BLE001 - the round-trip law renders too, and reports what is raised
        return None


def texts(format: Format, rendered: list[str], seed: int, count: int) -> Iterator[str]:
    """Yield `count` texts that are no renderings: copies of `rendered` that are damaged or quoted, and random sequences
    of the format's markers."""
    dice = Random(f"{seed} {format.name} texts")
    markers = markers_of(format)
    for i in range(count):
        if rendered and i % 6 == 4:
            yield _quoted_renderings(dice, rendered)
        elif rendered and i % 3:
            yield damage(dice, dice.choice(rendered), markers)
        else:
            yield marker_sequence(dice, markers)


def has_reasoning(format: Format) -> bool:
    """Return whether the format has markers of reasoning."""
    if format.channels is not None:
        return "reasoning" in format.channels.messages
    return format.reasoning is not None


def _excludes_text(format: Format) -> bool:
    """Return whether a reply in this format cannot have both calls and text, since it is one JSON object."""
    body = format.bodies[0]
    return bool(BODIES[type(body)].outer(body))


def _calls_only_at_start(format: Format) -> bool:
    """Return whether a call must be at the start of a reply, since it has no marker."""
    opener = marker_alternatives(format.call[0])[0]
    bare = (not opener or opener.startswith("`")) and format.section is None and format.channels is None
    return bare and bool(BODIES[type(format.bodies[0])].first)


# -- one reply ---------------------------------------------------------------------------------------------------------


def _random_parts(dice: Random, format: Format, markers: list[str]) -> Iterator[Part]:
    """Yield one to three random calls, and sometimes reasoning before and prose around them, as far as the format
    allows."""
    if has_reasoning(format) and dice.random() < 0.3:
        yield Reasoning(dice.choice(PROSE))
    prose = not _excludes_text(format)
    for _ in range(dice.choice((1, 1, 2, 3))):
        if prose and dice.random() < 0.3:
            yield Text(dice.choice(PROSE))
        yield _random_call(dice, markers)
    if prose and dice.random() < 0.3:
        yield Text(dice.choice(PROSE))


def _random_call(dice: Random, markers: list[str]) -> Call:
    """Return a random call of one of `TOOLS`, with strings that may contain `markers`."""
    kind = dice.random()
    if kind < 0.1:
        return PING
    if kind < 0.4:
        return make_call(
            "get_weather", {"city": _random_string(dice, markers), "days": dice.choice((0, 1, -3, 10**20))}
        )
    generators: dict[str, Any] = {
        "text": lambda: _random_string(dice, markers),
        "tags": lambda: [_random_string(dice, markers) for _ in range(dice.randrange(3))],
        "meta": lambda: _random_object(dice, markers, 0),
        "weight": lambda: dice.choice(_NUMBERS),
        "done": lambda: dice.random() < 0.5,
        "about": lambda: None if dice.random() < 0.5 else _random_string(dice, markers),
    }
    chosen = dice.sample(sorted(generators), dice.randrange(1, 5))
    return make_call("take_note", {key: generators[key]() for key in chosen})


def _random_string(dice: Random, markers: list[str]) -> str:
    """Return a random string of fragments and `markers`, some of them truncated; it may be empty."""
    pieces = []
    for _ in range(dice.choice((0, 1, 1, 2, 4, 8))):
        pool = markers if markers and dice.random() < 0.2 else _FRAGMENTS
        piece = dice.choice(pool)
        pieces.append(piece[: dice.randrange(1, len(piece) + 1)] if dice.random() < 0.2 else piece)
    return "".join(pieces)


def _random_object(dice: Random, markers: list[str], depth: int) -> dict[str, Any]:
    """Return a random JSON object with up to three members; `depth` is the number of containers around it, which limits
    its own nesting."""
    keys = ("a", "b c", "name", "arguments", "ü", "x")
    return {dice.choice(keys): _random_value(dice, markers, depth + 1) for _ in range(dice.randrange(4))}


def _random_value(dice: Random, markers: list[str], depth: int) -> Any:
    """Return a random JSON value; `depth` is the number of containers around it, and from 3 on it is a scalar."""
    kind = dice.randrange(6 if depth < 3 else 4)
    if kind == 0:
        return dice.choice((None, True, False))
    if kind == 1:
        return dice.choice(_NUMBERS)
    if kind < 4:
        return _random_string(dice, markers)
    if kind == 4:
        return [_random_value(dice, markers, depth + 1) for _ in range(dice.randrange(3))]
    return _random_object(dice, markers, depth)


# -- texts that are no renderings --------------------------------------------------------------------------------------


def damage(dice: Random, text: str, markers: list[str]) -> str:
    """Return a text with a piece of up to 24 characters removed or repeated, a marker or another fragment inserted, or
    the end cut off."""
    a, b = sorted((dice.randrange(len(text) + 1), dice.randrange(len(text) + 1)))
    b = min(b, a + 24)
    kind = dice.randrange(4)
    if kind == 0:
        return text[:a] + text[b:]
    if kind == 1:
        return text[:b] + text[a:]
    if kind == 2:
        return text[:a] + dice.choice([*markers, *_FRAGMENTS, *_QUOTING]) + text[a:]
    return text[:b]


def _quoted_renderings(dice: Random, rendered: list[str]) -> str:
    """Return one or two random texts of `rendered`, each after text that may make it a quotation."""
    pieces = [dice.choice(rendered) for _ in range(dice.choice((1, 2, 2)))]
    return "".join([dice.choice((*_QUOTING, *PROSE, "")) + dice.choice((*_QUOTING, "")) + piece for piece in pieces])


def marker_sequence(dice: Random, markers: list[str]) -> str:
    """Return a random sequence of up to eleven markers, bodies of calls, prose and fragments, without any order."""
    bodies = ('{"name": "ping", "arguments": {}}', '{"city": "Oslo"}', "ping()", "[ping()]", "ping", "city: Oslo")
    pool = [*markers, *markers, *bodies, *PROSE, *_FRAGMENTS, *_QUOTING]
    return "".join([dice.choice(pool) for _ in range(dice.randrange(1, 12))])
