"""Damage to what stands around the arguments: names, keys beside them, encodings, fences, tags, the end of the text.

A way gets the wire and the truth and gives the whole text that the model wrote; None where it does not apply.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from damaged.toolsets import Truth
from damaged.wires import Wire, as_json

WholeWay = Callable[[random.Random, Wire, Truth], str | None]
_TAG = re.compile(r"</?(?:tool_call|function|parameter)(?:=\w+)?>")


def _is_envelope(wire: Wire) -> bool:
    return wire.notation == "json" and wire.body("f", "{}").startswith("{") and bool(wire.format)


def _text(wire: Wire, truth: Truth) -> str:
    return wire.block(wire.body(truth.name, wire.arguments(truth.arguments)))


def _of(change: Callable[[random.Random, Truth], str]) -> WholeWay:
    """Another envelope."""
    return lambda dice, wire, truth: wire.block(change(dice, truth)) if _is_envelope(wire) else None


def _around(change: Callable[[str], str]) -> WholeWay:
    """Other argument text, where that is JSON."""

    def way(dice: random.Random, wire: Wire, truth: Truth) -> str | None:
        text = wire.arguments(truth.arguments)
        return wire.block(wire.body(truth.name, change(text))) if wire.notation == "json" else None

    return way


def _beside(dice: random.Random, truth: Truth) -> str:
    """The last arguments stand beside the others, not among them."""
    keys = list(truth.arguments)
    cut = dice.randint(0, len(keys))
    inside = {key: truth.arguments[key] for key in keys[:cut]}
    outside = {key: truth.arguments[key] for key in keys[cut:]}
    return as_json({"name": truth.name, "arguments": inside, **outside})


def _without_name(dice: random.Random, truth: Truth) -> str:
    return as_json({"arguments": truth.arguments})


def _misspelt(dice: random.Random, truth: Truth) -> str:
    return as_json({dice.choice(("nme", "Name", "nname")): truth.name, "arguments": truth.arguments})


def _name_inside(dice: random.Random, truth: Truth) -> str:
    return as_json({"arguments": {dice.choice(("name", "tool", "function")): truth.name, **truth.arguments}})


def _other_key(dice: random.Random, truth: Truth) -> str:
    key = dice.choice(("parameters", "args", "Arguments", "input", "params"))
    return as_json({"name": truth.name, key: truth.arguments})


def _renamed(change: Callable[[str], str]) -> WholeWay:
    def way(dice: random.Random, wire: Wire, truth: Truth) -> str | None:
        name = change(truth.name)
        if name == truth.name or not wire.format:
            return None
        return wire.block(wire.body(name, wire.arguments(truth.arguments)))

    return way


def _twice(*, same: bool) -> WholeWay:
    """One key a second time."""

    def way(dice: random.Random, wire: Wire, truth: Truth) -> str | None:
        simple = [key for key, value in truth.arguments.items() if not isinstance(value, (dict, list))]
        if not simple or wire.notation == "tags":
            return None
        key = dice.choice(simple)
        value = truth.arguments[key] if same else dice.choice(("other", 99, True))
        more = wire.arguments({key: value}).strip("{} ")
        text = wire.arguments(truth.arguments)
        closed = re.sub(r" ?\}$", f", {more}}}", text) if text.endswith("}") and wire.notation != "python" else ""
        return wire.block(wire.body(truth.name, closed or f"{text}, {more}"))

    return way


def _cut(dice: random.Random, wire: Wire, truth: Truth) -> str | None:
    """The text ends too early."""
    text = _text(wire, truth)
    return text[: dice.randint(len(text) // 3, len(text) - 1)]


def _cut_inside(dice: random.Random, wire: Wire, truth: Truth) -> str | None:
    """The arguments end too early, but for the markers that close the call."""
    if wire.notation == "tags":
        return None
    body = wire.body(truth.name, wire.arguments(truth.arguments))
    return wire.block(body[: dice.randint(len(body) // 2, len(body) - 1)])


def _tagged(change: Callable[[str], str]) -> WholeWay:
    """Damage to one of the tags."""

    def way(dice: random.Random, wire: Wire, truth: Truth) -> str | None:
        text = _text(wire, truth)
        found = list(_TAG.finditer(text)) if wire.notation == "tags" else []
        if not found:
            return None
        one = dice.choice(found)
        return text[: one.start()] + change(one.group()) + text[one.end() :]

    return way


WAYS: dict[str, WholeWay] = {
    "arguments beside the others": _of(_beside),
    "flat call": _of(lambda dice, truth: as_json({"name": truth.name, **truth.arguments})),
    "name missing": _of(_without_name),
    "key of the name misspelt": _of(_misspelt),
    "name among the arguments": _of(_name_inside),
    "other key for the arguments": _of(_other_key),
    "name with a namespace": _renamed(lambda name: f"functions.{name}"),
    "name in another case": _renamed(lambda name: name.replace("_", "-").title()),
    "name without its namespace": _renamed(lambda name: name.rpartition(".")[2]),
    "letter of the name dropped": _renamed(lambda name: name[:-1]),
    "control token behind the name": _renamed(lambda name: f"{name}<|channel|>commentary"),
    "arguments as a JSON string": _around(as_json),
    "arguments as a JSON string twice": _around(lambda text: as_json(as_json(text))),
    "arguments in a code fence": _around(lambda text: f"```json\n{text}\n```"),
    "arguments in an open code fence": _around(lambda text: f"```json\n{text}\n"),
    "key given twice, with one value": _twice(same=True),
    "key given twice, with two values": _twice(same=False),
    "text cut off": _cut,
    "body cut off before its closing marker": _cut_inside,
    "tag dropped": _tagged(lambda tag: ""),
    "tag doubled": _tagged(lambda tag: tag * 2),
    "tag without its end": _tagged(lambda tag: tag[:-1]),
    "tag without its beginning": _tagged(lambda tag: tag[1:]),
    "tag with blanks": _tagged(lambda tag: tag.replace(">", " >")),
}
