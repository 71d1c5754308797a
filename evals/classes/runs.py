"""Other cases in which a wrong call would run (A4, A7, A8, A9), and calls of imperfect tools (E)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from classes.case import KITS, LOOSE_TYPES, Case, Expect
from classes.wire import Wire, first, join_pieces, without


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
        none = Expect(calls=[], holds=["Such a call looks like this", example.strip()], has_problem=True)
        yield Case("A4", "example for the user", wire.name, message, none, tools)
        more = wire.render_parts([real], tools)
        if more is not None and not header.startswith("all"):
            text = message + first(channels.start) + more
            yield Case("A4", "example, then a call", wire.name, text, Expect(calls=[real]), tools)


def _inner(wire: Wire, call: tuple[str, dict[str, object]]) -> str:
    if wire.params is None:
        return json.dumps({"name": call[0], "arguments": call[1]})
    return join_pieces(without(wire.pieces([call]), "header", "header_close"))


def too_big_a_number(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A7: a number that no float holds is refused like NaN and Infinity, in every notation."""
    kit = KITS[tools]
    for big in dice.sample(["1e400", "-1e999", "1e309", "123456789e400"], 2):
        for call in ((kit.weigh, {kit.ratio: 73737373}), (kit.find, {kit.text: "owl", kit.count: 73737373})):
            text = wire.render_parts([call], tools)
            if text is None or "73737373" not in text:
                continue
            none = Expect(calls=[], refused=1)
            yield Case("A7", "number too big", wire.name, text.replace("73737373", big), none, tools, auto="weak")


def only_those_that_may_run(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A8: `dispatch` runs the same calls for a reply and for its calls: the runnable ones."""
    kit = KITS[tools]
    good = kit.draw(dice)
    for bad in ((kit.find, {kit.count: 3}), ("no_such_tool", {"a": "b"})):
        for calls in ([good, bad], [bad, good]):
            text = wire.render_parts(list(calls), tools)
            if text is not None:
                expect = Expect(calls=[good], refused=1)
                yield Case("A8", "a good call and a bad", wire.name, text, expect, tools, by="dispatch")


def bad_neighbour(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A9: a value that is no call blocks no valid call next to it, and is reported."""
    if not wire.has_opener or wire.is_protocol:
        return
    good = KITS[tools].draw(dice)
    text = wire.render_parts([good], tools)
    body = wire.format.bodies[0]
    if text is None:
        return
    junk = dice.choice(["7", '"maybe"', "null"])
    wrap = getattr(body, "wrap", None)
    if wire.envelope is not None and wrap and wrap[0].strip() == "[":
        inner = json.dumps(wire_object(wire, good))
        for array in (f"[{inner}, {junk}]", f"[{junk}, {inner}]"):
            block = wire.json_block(array)
            yield Case(
                "A9",
                "no object in a list",
                wire.name,
                block,
                Expect(calls=[good], has_problem=True),
                tools,
                auto="weak",
            )
    elif first(wire.format.call[1]).strip() and wire.format.section is None and wire.envelope is not None:
        block = wire.json_block(junk) + "\n" + text
        yield Case(
            "A9", "a block of no object", wire.name, block, Expect(calls=[good], has_problem=True), tools, auto="weak"
        )


def wire_object(wire: Wire, call: tuple[str, dict[str, object]], **extra: object) -> dict[str, object]:
    """Return the envelope of a call as this format writes it."""
    assert wire.envelope is not None
    return {wire.envelope.names[0]: call[0], wire.envelope.args[0]: call[1], **extra}


def imperfect_tools(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """E: another spelling of a type has its one meaning; an unusable tool does not disable the others."""
    for kind in dice.sample(sorted(LOOSE_TYPES), 3):
        key = f"loose_{kind}"
        for call in (("measure", {"value": LOOSE_TYPES[kind]}), ("lookup", {"word": "owl"})):
            text = _write_without_schema(wire, call)
            if text is not None:
                yield Case("E", f"type {kind}", wire.name, text, Expect(calls=[call]), key)
    call = ("lookup", {"word": "barn owl"})
    text = _write_without_schema(wire, call)
    if text is not None:
        yield Case("E", "a tool that cannot be used", wire.name, text, Expect(calls=[call]), "unusable")
        none = Expect(calls=[])
        yield Case("E", "choice is none", wire.name, text, none, "words", options={"choice": "none"})


def _write_without_schema(wire: Wire, call: tuple[str, dict[str, object]]) -> str | None:
    """Write a call without the tools: tags from their pieces, other formats with `render` and other tools."""
    value = next(iter(call[1].values()))
    if wire.params is not None and isinstance(value, str):
        return join_pieces(wire.pieces([call]))
    if wire.params is not None and wire.params.item and not isinstance(value, int):
        return None  # nested tags: `render` would have to know the schema
    if wire.params is not None:
        return join_pieces(wire.pieces([call]))
    return wire.render_parts([call], "words")
