"""Ambiguous ends: a raw value that holds the format's own closers is never taken for a shorter one.

    <parameter=word>\\na </parameter>\\n</function>\\n</tool_call> b\\n</parameter>\\n</function>\\n</tool_call>

The wire cannot say it, so it cannot be read right for certain; but it can be known, and such a call does not run.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format
from rightcall.testing.laws.case import Case, Violation, raised
from rightcall.testing.laws.marker_texts import closers_of
from rightcall.testing.laws.reading import USUAL, How, read
from rightcall.testing.laws.samples import call, rendering
from rightcall.tools.toolset import Toolset
from rightcall.types import Call

_WORD = "zqvalueqz"


def ends_law(
    format: Format, text: str, value: str, *, tools: Toolset | None = None, how: How = USUAL
) -> list[Violation]:
    """A call of `take_note` whose argument `text` is written as this `value` does not run with another one.

    - `format`: one with raw values.
    - `text`: what is read, with `value` as it stands in it.
    - `tools`, `how`: as in `cut_law`.
    """
    try:
        for got in read(format, [text], tools=tools, how=how).reply.calls:
            said = got.arguments.get("text")
            if got.name == "take_note" and not (isinstance(said, str) and said.strip() == value.strip()):
                return [Violation("ends", f"it runs with {said!r}, written was {value!r}", text)]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [raised(error, text)]
    return []


def cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Values with some of the closers in their order, and something behind them. None where no value is raw."""
    if not BODIES[type(format.bodies[0])].value_closing(format.bodies[0]):
        return
    dice = Random(f"{seed} {format.name} ends")
    closers = closers_of(format, "text", "take_note")
    for _ in range(count):
        value = _value(dice, closers)
        text = _written(format, dice)
        if text is not None:
            yield Case("ends", text.replace(_WORD, value), value=value, seed=seed)


def _value(dice: Random, closers: list[list[str]]) -> str:
    levels = [ways for ways in closers if ways]
    first = 0 if dice.random() < 0.7 else dice.randrange(len(levels))
    last = dice.randrange(first + 1, len(levels) + 1)
    pieces = [dice.choice(ways) for ways in levels[first:last]]
    if dice.random() < 0.3:
        pieces = [piece.strip() for piece in pieces]
    return dice.choice(("a ", "owl\n", "say ")) + "".join(pieces) + dice.choice((" b", "\nand more", " is the end"))


def _written(format: Format, dice: Random) -> str | None:
    """One or two calls, the first with a word nobody uses for its value."""
    note = call("take_note", {"text": _WORD, "weight": 3} if dice.random() < 0.4 else {"text": _WORD})
    other = [call("get_weather", {"city": "Bergen"})] if dice.random() < 0.3 else list[Call]()
    return rendering(format, [note, *other])


def judge(format: Format, case: Case, tools: Toolset | None, how: How = USUAL) -> list[Violation]:
    return ends_law(format, case.text, case.value, tools=tools, how=how)
