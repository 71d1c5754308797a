"""Damaged calls, one after the other, the same for the same seed:  texts(seed, count)"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import msgspec

from damaged import envelope_ways, text_ways, value_ways
from damaged.judge import is_json, judge
from damaged.tokens import tokens
from damaged.toolsets import Truth, made, toolset
from damaged.wires import WIRES, Wire

_TRUTHS_OF_A_TOOLSET = 6
# What makes sense only at the beginning or the end of a text.
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
    """So many damaged calls; every way comes as often, every wire too, where the way applies to it."""
    dice = random.Random(seed)
    turn = 0
    tried = 0
    truths: list[Truth] = []
    while turn < count:
        if not truths:
            truths = _truths(dice)
        truth = truths.pop()
        for wire in dice.sample(WIRES, 4):
            if (
                judge(wire.block(wire.body(truth.name, wire.arguments(truth.arguments))), wire, truth).outcome
                != "right"
            ):
                continue  # what the wire cannot carry
            for _ in range(8):
                way = WAYS[tried % len(WAYS)]
                tried += 1
                text = next((made for _ in range(3) if (made := damage(dice, way, wire, truth)) is not None), None)
                if text is not None and turn < count:
                    turn += 1
                    yield Damaged(way, wire, truth, text)


def _truths(dice: random.Random) -> list[Truth]:
    tools = toolset(dice)
    return [truth for _ in range(_TRUTHS_OF_A_TOOLSET) if (truth := made(dice, tools)) is not None]


def damage(dice: random.Random, way: str, wire: Wire, truth: Truth) -> str | None:
    if way in envelope_ways.WAYS:
        return envelope_ways.WAYS[way](dice, wire, truth)
    if way in ("two at once", "three at once"):
        return _several(dice, 2 if way.startswith("two") else 3, wire, truth)
    name, _, area = way.rpartition(", ")
    if area == "as a value":
        arguments = value_ways.WAYS[name](dice, truth)
        return None if arguments is None else wire.block(wire.body(truth.name, wire.arguments(arguments)))
    return _textual(dice, name, area == "in the body", wire, truth)


def _textual(dice: random.Random, name: str, whole: bool, wire: Wire, truth: Truth) -> str | None:
    if wire.notation == "tags":
        return None if whole else _in_a_tag(dice, name, wire, truth)
    if whole and not wire.body("", "").strip():
        return None
    text = wire.arguments(truth.arguments)
    text = wire.body(truth.name, text) if whole else text
    sent = text_ways.WAYS[name](dice, tokens(text))
    if sent is None:
        return None
    return wire.block(sent if whole else wire.body(truth.name, sent))


def _in_a_tag(dice: random.Random, name: str, wire: Wire, truth: Truth) -> str | None:
    """Damage to one value that is written as JSON between tags."""
    keys = [key for key, value in truth.arguments.items() if not isinstance(value, str)]
    if not keys:
        return None
    key = dice.choice(keys)
    sent = text_ways.WAYS[name](dice, tokens(json.dumps(truth.arguments[key], ensure_ascii=False)))
    if sent is None:
        return None
    arguments: dict[str, Any] = {**truth.arguments, key: "\0"}
    return wire.block(wire.body(truth.name, wire.arguments(arguments).replace("\0", sent)))


def _several(dice: random.Random, count: int, wire: Wire, truth: Truth) -> str | None:
    """Several members damaged, each in a way of its own that does not leave valid JSON which says something else."""
    members = [json.dumps({key: value}, ensure_ascii=False)[1:-1] for key, value in truth.arguments.items()]
    if wire.notation != "json" or len(members) < count:
        return None
    for index in dice.sample(range(len(members)), count):
        sent = text_ways.WAYS[dice.choice(_SEVERAL)](dice, tokens(members[index]))
        if sent is None or is_json(f"{{{sent}}}"):
            return None
        members[index] = sent
    return wire.block(wire.body(truth.name, "{" + ", ".join(members) + "}"))
