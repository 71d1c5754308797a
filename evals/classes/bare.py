"""Bare, fenced, quoted and near calls: what is text and what is a call (B7, B8, G5, I)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

from classes.case import KITS, CallData, Case, Expect
from classes.runs import wire_object
from classes.wire import Wire
from rightcall.formats.spec import Params

NOTE = "looks_like_a_call"


def _object(call: CallData) -> str:
    return json.dumps({"name": call[0], "arguments": call[1]})


def _python(call: CallData) -> str:
    return f"{call[0].replace('-', '_')}({', '.join([f'{key}={value!r}' for key, value in call[1].items()])})"


def _text_of(wire: Wire, call: CallData) -> str:
    """Return the bare body of a bare format."""
    return f"[{_python(call)}]" if wire.is_pythonic else json.dumps(wire_object(wire, call))


def named_finds_no_less(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B7: the bare body of a named bare format is a call after text too, and next to other bodies."""
    tools = "words" if tools == "shop" else tools  # a Python name has no hyphen
    if wire.is_bare:
        call, other = KITS[tools].draw(dice), KITS[tools].draw(dice)
        body = _text_of(wire, call)
        for prefix in ("Sure: ", "Let me see. ", "I will look it up.\n\n"):
            yield Case("B7", "behind text", wire.name, prefix + body, Expect(calls=[call]), tools)
        note = Expect(calls=[], codes=[NOTE])
        yield Case("B7", "text behind too", wire.name, f"Sure: {body} is what I would send.", note, tools)
        if not wire.is_pythonic:
            for mark in (", ", "; ", "", "\n", " "):
                both = body + mark + _text_of(wire, other)
                yield Case(
                    "B7", f"two, {mark!r} between", wire.name, both, Expect(calls=[call, other]), tools, auto="weak"
                )
    if wire.is_bare and wire.is_fence:
        call = KITS[tools].draw(dice)
        fenced = f"Let me look.\n\n```json\n[{_object(call)}]\n```"
        yield Case("B7", "fence behind text", wire.name, fenced, Expect(calls=[call]), tools)
    if wire.name in ("llama3_json", "llama4_pythonic"):
        yield from _llama4(wire, dice, tools)


def _llama4(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    call = KITS[tools].draw(dice)
    body = json.dumps({"name": call[0], "parameters": call[1]})
    inside = f"<|python_start|>{body}<|python_end|>"
    yield Case("B7", "JSON between the Python tokens", wire.name, inside, Expect(calls=[call]), tools)
    for thought in ("", "I need the word.", "# a comment"):
        behind = f"<|python_start|>{thought}<|python_end|>{body}"
        yield Case("B7", "JSON behind the Python tokens", wire.name, behind, Expect(calls=[call]), tools)


def whole_reply_is_bare(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B8: a reply of only objects that name declared tools holds calls; one that does not fit is reported."""
    kit = KITS[tools]
    bad, good = (kit.find, {kit.count: 3}), kit.draw(dice)
    strict = not wire.has_channels and not wire.is_protocol
    for shape, text in _bare_texts(bad):
        refused = Expect(calls=[], refused=1, codes=["missing"])
        expect = refused if strict else Expect(calls=[], has_problem=True)
        yield Case("B8", f"does not fit, {shape}", wire.name, text, expect, tools, auto="same")
    shape, text = dice.choice(list(_bare_texts(good)))
    runs, note = Expect(calls=[good]), Expect(calls=[], has_problem=True)
    yield Case(
        "B8", f"fits, {shape}", wire.name, text, runs if strict else Expect(either=[runs, note]), tools, auto="same"
    )
    options = {"finish": dice.choice(["length", "content_filter", "error"])}
    expected = Expect(either=[runs, note]) if wire.is_bare or not strict else note
    yield Case("B8", "fits, answer was cut", wire.name, _object(good), expected, tools, options=options)


def _bare_texts(call: CallData) -> Iterator[tuple[str, str]]:
    yield "an object", _object(call)
    yield "a list", f"[{_object(call)}]"
    yield "a fence", f"```json\n{_object(call)}\n```"


def nearly_calls(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """G5: a near call is text with a note."""
    tools = "words" if tools == "shop" else tools
    call = KITS[tools].draw(dice, both=True)
    note = Expect(calls=[], codes=[NOTE], holds=[call[0]])
    for shape, text in _near(call):
        if _is_own(wire, shape):
            continue
        yield Case("G5", shape, wire.name, text, note, tools, auto="same" if wire.name == "hermes" else "")
    body = _object(call)
    if not wire.is_protocol and not wire.has_channels:
        reported = Expect(either=[Expect(calls=[call]), Expect(calls=[], has_problem=True)])
        without_opener = f"{body}\n</tool_call>"
        yield Case("G5", "opener was in the prompt", wire.name, without_opener, reported, tools)


def _near(call: CallData) -> Iterator[tuple[str, str]]:
    body, inner = _object(call), json.dumps(call[1])
    invoked = "".join([f'<parameter name="{key}">{value}</parameter>\n' for key, value in call[1].items()])
    yield "bare behind text", f"Let me look that up.\n\n{body}"
    yield "bare before text", f"{body}\n\nThat should do it."
    yield "fence behind text", f"Let me look that up.\n\n```json\n{body}\n```"
    yield "fence amid text", f"I would send\n\n```json\n{body}\n```\n\nand wait."
    yield "other tag", f"<toolcall>{body}</toolcall>"
    yield "tools tag", f"<tools>{body}</tools>"
    yield "ReAct", f"Thought: I must look.\nAction: {call[0]}\nAction Input: {inner}"
    yield "plain invoke", f'<invoke name="{call[0]}">\n{invoked}</invoke>'
    yield "tool_code", f"```tool_code\nprint({_python(call)})\n```"


# Near calls that are valid calls in the format itself.
_OWN = {
    "ReAct": ("react",),
    "tool_code": ("tool_code", "minicpm3"),
    "plain invoke": ("invoke",),
    "tools tag": ("qwen25_coder",),
}


def _is_own(wire: Wire, shape: str) -> bool:
    if wire.name in _OWN.get(shape, ()):
        return True
    if shape == "plain invoke":
        bodies = [body for body in wire.format.bodies if isinstance(body, Params)]
        return any('<invoke name="' in str(body.open) for body in bodies)
    if shape == "tool_code" and wire.is_protocol:
        return True
    if shape == "bare behind text":
        return wire.is_bare or wire.is_protocol
    if shape == "fence behind text":
        return wire.is_fence or wire.is_protocol
    return wire.has_channels and shape in ("bare behind text", "bare before text") and not wire.format.channels.to  # type: ignore[union-attr]


def shown_calls(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """I: a call in a fence with text around it, in a code span or in quotation marks is text with a note."""
    if not wire.has_opener or wire.is_protocol:
        return
    call = KITS[tools].draw(dice)
    text = wire.render_parts([call], tools)
    if text is None:
        return
    cut = {"finish": dice.choice(["length", "content_filter", "error"])}
    yield Case("I", "whole call before the cut", wire.name, text, Expect(calls=[call]), tools, options=cut)
    if "`" in text:
        return
    text = text.strip()
    note = Expect(calls=[], codes=[NOTE], holds=[call[0]])
    for fence in dice.sample(["```", "~~~", "````"], 2):
        around = f"A call looks like this:\n\n{fence}xml\n{text}\n{fence}\n\nI have not sent it."
        yield Case("I", "in a fence", wire.name, around, note, tools, auto="same")
    if "\n" not in text:
        yield Case("I", "in a code span", wire.name, f"It writes `{text}` and stops.", note, tools, auto="same")
        if '"' not in text:
            yield Case("I", "in quotes", wire.name, f'It writes "{text}" and stops.', note, tools, auto="same")
