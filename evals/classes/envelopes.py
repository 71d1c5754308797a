"""JSON envelopes: every key is accounted for, live or not (B12, G1, G3)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from classes.case import KITS, CallData, Case, Expect, Json
from classes.runs import wire_object
from classes.wire import Wire


def _block(wire: Wire, body: str, name: str) -> str:
    wrap = wire.envelope.wrap if wire.envelope is not None else None
    return wire.json_block(wrap[0] + body + wrap[2] if wrap else body, name)


def _has_envelope(wire: Wire) -> bool:
    return wire.envelope is not None and not wire.is_protocol and wire.format.section is None


def blank_names(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B12: a name of blanks is inferred from the arguments, as a missing one is."""
    if not _has_envelope(wire) or not wire.has_opener:
        return
    call = KITS[tools].draw(dice)
    for name in dice.sample(["", " ", "  \t", "\n"], 2):
        text = _block(wire, json.dumps(wire_object(wire, (name, call[1]))), call[0])
        yield Case("B12", "blank name", wire.name, text, Expect(calls=[call]), tools)


def strangers(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """G1: each key of an envelope is the name, the arguments, an id, or it is named in a repair or a problem."""
    if not _has_envelope(wire):
        return
    for shape, text, expect in _strange(wire, dice, tools):
        yield Case(
            "G1",
            shape,
            wire.name,
            _block(wire, text, KITS[tools].find),
            expect,
            tools,
            auto="weak" if wire.has_opener else "",
        )


def _strange(wire: Wire, dice: Random, tools: str) -> Iterator[tuple[str, str, Expect]]:
    kit = KITS[tools]
    word, count = dice.choice(["owl", "snow owl"]), dice.randint(1, 50)
    short, whole = (kit.find, {kit.text: word}), (kit.find, {kit.text: word, kit.count: count})
    assert wire.envelope is not None
    name, args = wire.envelope.names[0], wire.envelope.args[0]
    second = next((key for key in wire.envelope.args if key != args), None)
    hoisted = Expect(calls=[whole], rules=["hoisted_argument"])
    beside = json.dumps(wire_object(wire, short, **{kit.count: count}))
    yield "argument beside the arguments", beside, hoisted
    yield "flat call", json.dumps({name: kit.find, **whole[1]}), hoisted
    first = json.dumps({kit.count: count, **wire_object(wire, short)})
    yield "argument before the name", first, hoisted
    noted = Expect(calls=[short], named=["comment"])
    yield "a stranger", json.dumps(wire_object(wire, short, comment="as asked")), noted
    # A value that was meant for the tool and does not fit is not dropped silently, nor with only a note.
    unfit = Expect(calls=[], refused=1, named=[kit.count])
    yield "declared, does not fit", json.dumps(wire_object(wire, short, **{kit.count: "many of them"})), unfit
    blocked = Expect(calls=[], refused=1)
    inner, other = json.dumps(short[1]), json.dumps({kit.text: "bat"})
    start = f'{{"{name}": "{kit.find}", "{args}": {inner}'
    yield "arguments twice", f'{start}, "{args}": {other}}}', blocked
    if second is not None:
        yield "two argument objects", f'{start}, "{second}": {other}}}', blocked
    doubled = f'{{"{kit.text}": "owl", "{kit.text}": "bat"}}'
    yield "a key twice", f'{{"{name}": "{kit.find}", "{args}": {doubled}}}', blocked


def doubled_keys(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """G1: a duplicate key with different values blocks a call whose arguments are a JSON object after its name."""
    if wire.envelope is not None or not (wire.is_named_json or wire.has_channels) or wire.params is not None:
        return
    kit = KITS[tools]
    text = wire.render_parts([(kit.find, {kit.text: "owl", kit.count: 3})], tools)
    if text is None or f'"{kit.count}"' not in text:
        return
    twice = text.replace(f'"{kit.count}": 3', f'"{kit.text}": "bat"').replace(f'"{kit.count}":3', f'"{kit.text}":"bat"')
    yield Case("G1", "a key twice", wire.name, twice, Expect(calls=[], refused=1), tools, auto="weak")


def live_repairs(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """G3: common faults in argument JSON are repaired, live or not."""
    if wire.envelope is None and not wire.is_named_json and not (wire.has_channels and wire.params is None):
        return
    if wire.is_protocol:
        return
    kit = KITS[tools]
    call: CallData = (kit.find, {kit.text: "barn owl", kit.count: 3})
    text = wire.render_parts([call], tools)
    if text is None:
        return
    for shape, damaged in _damaged(text, kit.text, kit.count):
        yield Case("G3", shape, wire.name, damaged, Expect(calls=[call]), tools)


def _damaged(text: str, key: str, count: str) -> Iterator[tuple[str, str]]:
    compact = f'"{key}":"barn owl"' in text
    gap = "" if compact else " "
    pair, number = f'"{key}":{gap}"barn owl"', f'"{count}":{gap}3'
    changes: Json = {
        "single quotes": (pair, f"'{key}': 'barn owl'"),
        "unquoted key": (pair, f'{key}: "barn owl"'),
        "trailing comma": (number, f"{number},"),
        "a number in quotes": (number, f'"{count}": "3"'),
        "wrong case of a key": (pair, f'"{key.upper()}": "barn owl"'),
    }
    for shape, (before, after) in changes.items():
        if before in text:
            yield shape, text.replace(before, after)
