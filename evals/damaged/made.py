"""Generate damaged calls, the same for the same seed: `texts(seed, count)`."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec

from damaged import envelope_ways, text_ways, value_ways
from damaged.judge import is_json, judge_call
from damaged.tokens import tokens
from damaged.toolsets import Truth, make_truth, toolset
from damaged.wires import WIRES, Wire

_TRUTHS_OF_A_TOOLSET = 6
# Damage that makes sense only at the beginning or the end of a text.
_WHOLE = ("byte order mark", "comment at the end", "given twice in a row", "empty object first")
_SEVERAL = [name for name in text_ways.WAYS if name not in _WHOLE]
WAYS: tuple[str, ...] = (
    *[f"{name}, in the arguments" for name in text_ways.WAYS],
    *[f"{name}, in the body" for name in text_ways.WAYS],
    *[f"{name}, as a value" for name in value_ways.WAYS],
    *envelope_ways.WAYS,
    "two at once",
    "three at once",
)


class Damaged(msgspec.Struct, frozen=True):
    way: str
    wire: Wire
    truth: Truth
    text: str


def texts(seed: int, count: int) -> Iterator[Damaged]:
    """Yield `count` damaged calls, evenly distributed over the kinds of damage and the wires they apply to."""
    dice = random.Random(seed)
    turn = 0
    attempts = 0
    truths: list[Truth] = []
    while turn < count:
        if not truths:
            truths = _truths(dice)
        truth = truths.pop()
        for wire in dice.sample(WIRES, 4):
            if (
                judge_call(wire.block(wire.body(truth.name, wire.arguments(truth.arguments))), wire, truth).outcome
                != "right"
            ):
                continue  # the wire cannot carry this call
            for _ in range(8):
                way = WAYS[attempts % len(WAYS)]
                attempts += 1
                text = next((one for _ in range(3) if (one := damage(dice, way, wire, truth)) is not None), None)
                if text is not None and turn < count:
                    turn += 1
                    yield Damaged(way, wire, truth, text)


def _truths(dice: random.Random) -> list[Truth]:
    tools = toolset(dice)
    return [truth for _ in range(_TRUTHS_OF_A_TOOLSET) if (truth := make_truth(dice, tools)) is not None]


def damage(dice: random.Random, way: str, wire: Wire, truth: Truth) -> str | None:
    if way in envelope_ways.WAYS:
        return envelope_ways.WAYS[way](dice, wire, truth)
    if way in ("two at once", "three at once"):
        return _damage_several(dice, 2 if way.startswith("two") else 3, wire, truth)
    name, _, area = way.rpartition(", ")
    if area == "as a value":
        arguments = value_ways.WAYS[name](dice, truth)
        return None if arguments is None else wire.block(wire.body(truth.name, wire.arguments(arguments)))
    return _damage_text(dice, name, area == "in the body", wire, truth)


def _damage_text(dice: random.Random, name: str, whole: bool, wire: Wire, truth: Truth) -> str | None:
    if wire.notation == "tags":
        return None if whole else _damage_tag_value(dice, name, wire, truth)
    if whole and not wire.body("", "").strip():
        return None
    text = wire.arguments(truth.arguments)
    text = wire.body(truth.name, text) if whole else text
    damaged_text = text_ways.WAYS[name](dice, tokens(text))
    if damaged_text is None:
        return None
    return wire.block(damaged_text if whole else wire.body(truth.name, damaged_text))


def _damage_tag_value(dice: random.Random, name: str, wire: Wire, truth: Truth) -> str | None:
    """Damage one value that is written as JSON between tags."""
    keys = [key for key, value in truth.arguments.items() if not isinstance(value, str)]
    if not keys:
        return None
    key = dice.choice(keys)
    damaged_text = text_ways.WAYS[name](dice, tokens(json.dumps(truth.arguments[key], ensure_ascii=False)))
    if damaged_text is None:
        return None
    arguments: dict[str, Any] = {**truth.arguments, key: "\0"}
    return wire.block(wire.body(truth.name, wire.arguments(arguments).replace("\0", damaged_text)))


def _damage_several(dice: random.Random, count: int, wire: Wire, truth: Truth) -> str | None:
    """Damage several members, each in its own way that does not leave valid JSON with another meaning."""
    members = [json.dumps({key: value}, ensure_ascii=False)[1:-1] for key, value in truth.arguments.items()]
    if wire.notation != "json" or len(members) < count:
        return None
    for index in dice.sample(range(len(members)), count):
        damaged_text = text_ways.WAYS[dice.choice(_SEVERAL)](dice, tokens(members[index]))
        if damaged_text is None or is_json(f"{{{damaged_text}}}"):
            return None
        members[index] = damaged_text
    return wire.block(wire.body(truth.name, "{" + ", ".join(members) + "}"))
