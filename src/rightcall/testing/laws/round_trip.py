"""The round-trip law: what was rendered reads back equal, or `render` says that the wire cannot carry it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rightcall.errors import CannotCarry
from rightcall.formats.spec import Format
from rightcall.parsing.rendering import render, same
from rightcall.testing.laws.case import Case, Violation, raised
from rightcall.testing.laws.reading import USUAL, How, read
from rightcall.testing.laws.samples import samples
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Part, Reply


def round_trip_law(
    format: Format, parts: Sequence[Part], *, tools: Toolset | None = None, must_carry: bool = False, how: How = USUAL
) -> list[Violation]:
    """What is rendered reads back equal.

    - `format`: what to write and read it in.
    - `parts`: texts, reasoning and calls.
    - `tools`, `how`: as in `cut_law`.
    - `must_carry`: that the format says `CannotCarry` is a violation too.
    """
    try:
        text = render(parts, format=format, tools=tools)
    except CannotCarry as error:
        said = f"it cannot carry what every format must: {error.path}: {error.cause}"
        return [Violation("round trip", said, repr(parts))] if must_carry else []
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [raised(error, repr(parts))]
    try:
        what = changed(parts, read(format, [text], tools=tools, how=how).reply)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [raised(error, text)]
    return [Violation("round trip", what, text)] if what else []


def _changed_part(a: Part, b: Part, i: int) -> str:
    if type(a) is not type(b):
        return f"part {i} was a {type(a).__name__} and reads back as a {type(b).__name__}"
    if isinstance(a, Call) and isinstance(b, Call):
        path = same(a.arguments, b.arguments)
        if a.name != b.name or path is not None or not b.complete:
            return f"call {a.name!r} at part {i} reads back changed at {path or 'its name or end'}"
    elif a.text.strip() != b.text.strip():  # type: ignore[union-attr]
        return f"the text of part {i} reads back changed"
    return ""


def changed(sent: Sequence[Part], reply: Reply) -> str:
    """How the reply differs from what was sent, white space at the edge of a text aside."""
    if len(sent) != len(reply.parts):
        return f"{len(sent)} parts were rendered and {len(reply.parts)} read back"
    for i, (a, b) in enumerate(zip(sent, reply.parts, strict=True)):
        if what := _changed_part(a, b, i):
            return what
    # A text that looks like a call, carried all the same, may be noted; nothing may block.
    blocking = [problem.code for problem in reply.problems if problem.blocking]
    return f"it reads back with problems: {', '.join(blocking)}" if blocking else ""


def cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    for sample in samples(format, seed, count):
        yield Case("round trip", sent=sample.parts, must_carry=sample.plain)


def judge(format: Format, case: Case, tools: Toolset | None, how: How = USUAL) -> list[Violation]:
    return round_trip_law(format, case.sent, tools=tools, must_carry=case.must_carry, how=how)
