"""Other ways in which the wrong thing runs (A4, A7, A8, A9), and calls of tools that are not perfect (E)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from classes.case import KITS, LOOSE_TYPES, Case, Expect
from classes.wire import Wire, first, joined, without


def shown_to_the_user(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A4: nothing in a content message of a channel format is a call; a call message beside it is one."""
    channels = wire.format.channels
    if channels is None or "content" not in channels.messages:
        return
    kit = KITS[tools]
    call, real = kit.draw(dice), kit.draw(dice)
    header, end = channels.messages["content"]
    quoted = _inner(wire, call)
    hermes = f"<tool_call>{json.dumps({'name': call[0], 'arguments': call[1]})}</tool_call>"
    for example in (quoted, hermes):
        message = f"{header}Such a call looks like this: {example}{end}"
        none = Expect(calls=[], holds=["Such a call looks like this", example.strip()], told=True)
        yield Case("A4", "example for the user", wire.name, message, none, tools)
        more = wire.written([real], tools)
        if more is not None and not header.startswith("all"):
            text = message + first(channels.start) + more
            yield Case("A4", "example, then a call", wire.name, text, Expect(calls=[real]), tools)


def _inner(wire: Wire, call: tuple[str, dict[str, object]]) -> str:
    if wire.params is None:
        return json.dumps({"name": call[0], "arguments": call[1]})
    return joined(without(wire.pieces([call]), "header", "header_close"))


def too_big_a_number(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A7: a number that no float holds is refused like NaN and Infinity, in every notation."""
    kit = KITS[tools]
    for big in dice.sample(["1e400", "-1e999", "1e309", "123456789e400"], 2):
        for call in ((kit.weigh, {kit.ratio: 73737373}), (kit.find, {kit.text: "owl", kit.count: 73737373})):
            text = wire.written([call], tools)
            if text is None or "73737373" not in text:
                continue
            none = Expect(calls=[], refused=1)
            yield Case("A7", "number too big", wire.name, text.replace("73737373", big), none, tools, auto="weak")


def only_those_that_may_run(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A8: `dispatch` runs the same whether it is given the reply or its calls: those that may run."""
    kit = KITS[tools]
    good = kit.draw(dice)
    for bad in ((kit.find, {kit.count: 3}), ("no_such_tool", {"a": "b"})):
        for calls in ([good, bad], [bad, good]):
            text = wire.written(list(calls), tools)
            if text is not None:
                expect = Expect(calls=[good], refused=1)
                yield Case("A8", "a good call and a bad", wire.name, text, expect, tools, by="dispatch")


def bad_neighbour(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A9: what is no call refuses no good neighbour, and is told."""
    if not wire.has_opener or wire.is_protocol:
        return
    good = KITS[tools].draw(dice)
    text = wire.written([good], tools)
    body = wire.format.bodies[0]
    if text is None:
        return
    junk = dice.choice(["7", '"maybe"', "null"])
    wrap = getattr(body, "wrap", None)
    if wire.envelope is not None and wrap and wrap[0].strip() == "[":
        inner = json.dumps(wire_object(wire, good))
        for listed in (f"[{inner}, {junk}]", f"[{junk}, {inner}]"):
            block = wire.json_block(listed)
            yield Case(
                "A9", "no object in a list", wire.name, block, Expect(calls=[good], told=True), tools, auto="weak"
            )
    elif first(wire.format.call[1]).strip() and wire.format.section is None and wire.envelope is not None:
        block = wire.json_block(junk) + "\n" + text
        yield Case("A9", "a block of no object", wire.name, block, Expect(calls=[good], told=True), tools, auto="weak")


def wire_object(wire: Wire, call: tuple[str, dict[str, object]], **extra: object) -> dict[str, object]:
    """The envelope of a call as this format writes it."""
    assert wire.envelope is not None
    return {wire.envelope.names[0]: call[0], wire.envelope.args[0]: call[1], **extra}


def imperfect_tools(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """E: a type that is spelled otherwise has its one meaning; a tool that cannot be used takes no other down."""
    for kind in dice.sample(sorted(LOOSE_TYPES), 3):
        key = f"loose_{kind}"
        for call in (("measure", {"value": LOOSE_TYPES[kind]}), ("lookup", {"word": "owl"})):
            text = _spelled(wire, call)
            if text is not None:
                yield Case("E", f"type {kind}", wire.name, text, Expect(calls=[call]), key)
    call = ("lookup", {"word": "barn owl"})
    text = _spelled(wire, call)
    if text is not None:
        yield Case("E", "a tool that cannot be used", wire.name, text, Expect(calls=[call]), "unusable")
        none = Expect(calls=[])
        yield Case("E", "choice is none", wire.name, text, none, "words", options={"choice": "none"})


def _spelled(wire: Wire, call: tuple[str, dict[str, object]]) -> str | None:
    """Written without asking the tools: tags by their pieces, the rest by `render` with other tools."""
    value = next(iter(call[1].values()))
    if wire.params is not None and isinstance(value, str):
        return joined(wire.pieces([call]))
    if wire.params is not None and wire.params.item and not isinstance(value, int):
        return None  # nested tags: `render` would have to know the schema
    if wire.params is not None:
        return joined(wire.pieces([call]))
    return wire.written([call], "words")
