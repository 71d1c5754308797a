"""Damage around the arguments: names, keys next to them, encodings, fences, tags, truncation.

A function receives the wire and the truth and returns the whole text that the model wrote, or None if it does not
apply.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from damaged.toolsets import Truth
from damaged.wires import Wire, as_json

TextDamage = Callable[[random.Random, Wire, Truth], str | None]
_TAG = re.compile(r"</?(?:tool_call|function|parameter)(?:=\w+)?>")


def _is_envelope(wire: Wire) -> bool:
    return wire.notation == "json" and wire.body("f", "{}").startswith("{") and bool(wire.format)


def _text(wire: Wire, truth: Truth) -> str:
    return wire.block(wire.body(truth.name, wire.arguments(truth.arguments)))


def _with_envelope(change: Callable[[random.Random, Truth], str]) -> TextDamage:
    """Return damage that writes another envelope."""
    return lambda dice, wire, truth: wire.block(change(dice, truth)) if _is_envelope(wire) else None


def _with_argument_text(change: Callable[[str], str]) -> TextDamage:
    """Return damage that writes other argument text, if that is JSON."""

    def damage(dice: random.Random, wire: Wire, truth: Truth) -> str | None:
        text = wire.arguments(truth.arguments)
        return wire.block(wire.body(truth.name, change(text))) if wire.notation == "json" else None

    return damage


def _move_beside(dice: random.Random, truth: Truth) -> str:
    """Write the last arguments next to the other ones, not among them."""
    keys = list(truth.arguments)
    cut = dice.randint(0, len(keys))
    inside = {key: truth.arguments[key] for key in keys[:cut]}
    outside = {key: truth.arguments[key] for key in keys[cut:]}
    return as_json({"name": truth.name, "arguments": inside, **outside})


def _drop_name(dice: random.Random, truth: Truth) -> str:
    return as_json({"arguments": truth.arguments})


def _misspell_name_key(dice: random.Random, truth: Truth) -> str:
    return as_json({dice.choice(("nme", "Name", "nname")): truth.name, "arguments": truth.arguments})


def _move_name_inside(dice: random.Random, truth: Truth) -> str:
    return as_json({"arguments": {dice.choice(("name", "tool", "function")): truth.name, **truth.arguments}})


def _rename_arguments_key(dice: random.Random, truth: Truth) -> str:
    key = dice.choice(("parameters", "args", "Arguments", "input", "params"))
    return as_json({"name": truth.name, key: truth.arguments})


def _with_name(change: Callable[[str], str]) -> TextDamage:
    def damage(dice: random.Random, wire: Wire, truth: Truth) -> str | None:
        name = change(truth.name)
        if name == truth.name or not wire.format:
            return None
        return wire.block(wire.body(name, wire.arguments(truth.arguments)))

    return damage


def _with_repeated_key(*, same: bool) -> TextDamage:
    """Return damage that repeats one key."""

    def damage(dice: random.Random, wire: Wire, truth: Truth) -> str | None:
        simple = [key for key, value in truth.arguments.items() if not isinstance(value, (dict, list))]
        if not simple or wire.notation == "tags":
            return None
        key = dice.choice(simple)
        value = truth.arguments[key] if same else dice.choice(("other", 99, True))
        more = wire.arguments({key: value}).strip("{} ")
        text = wire.arguments(truth.arguments)
        repeated = re.sub(r" ?\}$", f", {more}}}", text) if text.endswith("}") and wire.notation != "python" else ""
        return wire.block(wire.body(truth.name, repeated or f"{text}, {more}"))

    return damage


def _truncate(dice: random.Random, wire: Wire, truth: Truth) -> str | None:
    """Truncate the text."""
    text = _text(wire, truth)
    return text[: dice.randint(len(text) // 3, len(text) - 1)]


def _truncate_inside(dice: random.Random, wire: Wire, truth: Truth) -> str | None:
    """Truncate the arguments, but keep the markers that close the call."""
    if wire.notation == "tags":
        return None
    body = wire.body(truth.name, wire.arguments(truth.arguments))
    return wire.block(body[: dice.randint(len(body) // 2, len(body) - 1)])


def _with_tag(change: Callable[[str], str]) -> TextDamage:
    """Return damage to one of the tags."""

    def damage(dice: random.Random, wire: Wire, truth: Truth) -> str | None:
        text = _text(wire, truth)
        found = list(_TAG.finditer(text)) if wire.notation == "tags" else []
        if not found:
            return None
        tag = dice.choice(found)
        return text[: tag.start()] + change(tag.group()) + text[tag.end() :]

    return damage


WAYS: dict[str, TextDamage] = {
    "arguments beside the others": _with_envelope(_move_beside),
    "flat call": _with_envelope(lambda dice, truth: as_json({"name": truth.name, **truth.arguments})),
    "name missing": _with_envelope(_drop_name),
    "key of the name misspelt": _with_envelope(_misspell_name_key),
    "name among the arguments": _with_envelope(_move_name_inside),
    "other key for the arguments": _with_envelope(_rename_arguments_key),
    "name with a namespace": _with_name(lambda name: f"functions.{name}"),
    "name in another case": _with_name(lambda name: name.replace("_", "-").title()),
    "name without its namespace": _with_name(lambda name: name.rpartition(".")[2]),
    "letter of the name dropped": _with_name(lambda name: name[:-1]),
    "control token behind the name": _with_name(lambda name: f"{name}<|channel|>commentary"),
    "arguments as a JSON string": _with_argument_text(as_json),
    "arguments as a JSON string twice": _with_argument_text(lambda text: as_json(as_json(text))),
    "arguments in a code fence": _with_argument_text(lambda text: f"```json\n{text}\n```"),
    "arguments in an open code fence": _with_argument_text(lambda text: f"```json\n{text}\n"),
    "key given twice, with one value": _with_repeated_key(same=True),
    "key given twice, with two values": _with_repeated_key(same=False),
    "text cut off": _truncate,
    "body cut off before its closing marker": _truncate_inside,
    "tag dropped": _with_tag(lambda tag: ""),
    "tag doubled": _with_tag(lambda tag: tag * 2),
    "tag without its end": _with_tag(lambda tag: tag[:-1]),
    "tag without its beginning": _with_tag(lambda tag: tag[1:]),
    "tag with blanks": _with_tag(lambda tag: tag.replace(">", " >")),
}
