"""What the laws are about and what they say: a `Case` goes in, `Violation`s come out.

    Case("opener", "hermes", text="<tool_call>{", tools="laws")

A case is all that is needed to try it again, and has a JSON form of one line: `line(case)`, `from_line(text)`.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

from rightcall.types import Call, Part, Reasoning, Text

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
    """One law that one input breaks. `law` is its name, `what` says how it is broken, and `input` is the text that was
    parsed, or the parts that were rendered."""

    law: LawName
    what: str
    input: str


class Written(msgspec.Struct, frozen=True):
    """A key that stands in a text with this `value`. Any of `names` accounts for it: the key, or what it stood in."""

    names: tuple[str, ...]
    value: Any


class Case(msgspec.Struct, frozen=True, omit_defaults=True):
    """One example for one law: a text to be read, or parts to be rendered.

    - `law`: its name in `LAWS`.
    - `text`: what is read.
    - `sent`: the parts that the text was made of, or that are rendered.
    - `written`: the keys that stand in the text, each with its value.
    - `value`: the exact string that stands in its raw argument.
    - `must_carry`: that the format cannot carry the parts is a violation too.
    - `seed`: says where the text is cut.
    """

    law: str
    text: str = ""
    sent: tuple[Part, ...] = ()
    written: tuple[Written, ...] = ()
    value: str = ""
    must_carry: bool = False
    seed: int = 0


def raised(error: Exception, input: str) -> Violation:
    return Violation("never raises", f"{type(error).__name__}: {error}", input)


# -- one line of JSON --------------------------------------------------------------------------------------------------


def line(case: Case, format: str, **more: Any) -> str:
    """The case as one line of a corpus file, with what else is to be said of it."""
    row = {"law": case.law, "format": format, **more, "text": case.text}
    row |= {"sent": [_plain(part) for part in case.sent]} if case.sent else {}
    row |= {"written": [[list(w.names), w.value] for w in case.written]} if case.written else {}
    row |= {"value": case.value} if case.value else {}
    row |= {"must_carry": True} if case.must_carry else {}
    row |= {"seed": case.seed} if case.seed else {}
    return json.dumps(row)  # all ASCII: a lone surrogate has no other form in a file


def from_line(row: dict[str, Any]) -> Case:
    """The case of a parsed line. Keys that are not the case's are left to whoever reads the file."""
    return Case(
        row.get("law", ""),
        row.get("text", ""),
        tuple([_part(part) for part in row.get("sent", [])]),
        tuple([Written(tuple(names), value) for names, value in row.get("written", [])]),
        row.get("value", ""),
        row.get("must_carry", False),
        row.get("seed", 0),
    )


def _plain(part: Part) -> dict[str, Any]:
    if isinstance(part, Call):
        return {"name": part.name, "arguments": part.arguments}
    return {"reasoning" if isinstance(part, Reasoning) else "text": part.text}


def _part(row: dict[str, Any]) -> Part:
    if "name" in row:
        return Call(row["name"], row["arguments"])
    return Reasoning(row["reasoning"]) if "reasoning" in row else Text(row["text"])
