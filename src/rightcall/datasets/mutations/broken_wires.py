"""A right call whose text is broken, in any wire format: written as the format has it, then damaged.

Damage that leaves a call which may run is none: what is given was read with repair off, and blocks.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from rightcall.datasets.mutations.truth import Negative, Truth
from rightcall.errors import RightcallError
from rightcall.formats.spec import Format
from rightcall.parsing.parser import parse
from rightcall.parsing.rendering import render
from rightcall.types import Call, Reply

_STRUCTURE = re.compile(r"[{}\[\]()<>\"':,=/|]")
_TRIES = 16


def broken_syntax(truth: Truth, dice: random.Random) -> Negative | None:
    if not truth.is_call:
        return None
    formats = dice.sample(list(truth.formats), len(truth.formats))
    for format in formats[:4]:  # a few cannot say every call
        try:
            text = render(truth.call, format=format, tools=truth.tools)
        except RightcallError:
            continue
        for changed, damaged in _damaged(text, dice):
            found = _blocked(damaged, format, truth)
            if found is not None:
                return _negative(found, truth, changed, damaged, format)
    return None


def _damaged(text: str, dice: random.Random) -> Iterator[tuple[str, str]]:
    """What a model that loses its place writes: the end is missing, a sign is missing, doubled or another."""
    signs = [found.start() for found in _STRUCTURE.finditer(text)]
    for _ in range(_TRIES):
        if not signs or dice.random() < 0.2:
            end = dice.randrange(len(text) // 2, len(text))
            yield f"cut off behind character {end}", text[:end]
            continue
        at = dice.choice(signs)
        sign = text[at]
        if dice.random() < 0.6:
            yield f"{sign} left out at character {at}", text[:at] + text[at + 1 :]
        else:
            yield f"{sign} doubled at character {at}", text[:at] + sign + text[at:]


def _blocked(text: str, format: Format, truth: Truth) -> Call | None:
    """The one call of a text, if it must not run."""
    reply = _read(text, format, truth, "off")
    calls = list(reply.attempts)
    return calls[0] if len(calls) == 1 and not calls[0].ok and calls[0].name else None


def _read(text: str, format: Format, truth: Truth, policy: str) -> Reply:
    return parse(text, format=format, tools=truth.tools, repair=policy)  # type: ignore[arg-type]


def _negative(found: Call, truth: Truth, changed: str, text: str, format: Format) -> Negative:
    problem = next(each for each in found.problems if each.blocking)
    mended = _read(text, format, truth, "safe").calls
    right = (truth.call.name, truth.call.arguments)
    return Negative(
        Call(
            found.name,
            found.arguments,
            found.json,
            f"{truth.call.id or 'call'}-broken-syntax",
            found.raw,
            complete=found.complete,
        ),
        "deterministic_invalid",
        changed,
        f"{problem.code}: {problem.message}",
        reply=text,
        format=format.name,
        problems=found.problems,
        more={"mended_by_safe_repair": [(each.name, each.arguments) for each in mended] == [right]},
    )
