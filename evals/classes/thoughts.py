"""Calls in reasoning (A5, B4)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from classes.case import KITS, CallData, Case, Expect
from classes.wire import Wire, first
from rightcall.formats.spec import Channels

_THOUGHTS = ("I should look.", "The user wants a word.", "Let me think about it\nfor two lines.")


def in_open_reasoning(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B4: a special opener ends reasoning; a plain one in reasoning without an end gives a blocked call."""
    if not wire.thinks or not wire.has_opener:
        return
    kit, (opens, _) = KITS[tools], wire.think
    thought = dice.choice(_THOUGHTS)
    calls = [kit.draw(dice) for _ in range(dice.choice([1, 1, 2]))]
    text = wire.render_parts(calls, tools)
    if text is None:
        return
    start = f"{opens}{thought}\n"
    if wire.is_special:
        runs = Expect(calls=calls, reasoning=thought, content="", lacks=wire.markup)
        yield Case("B4", "special opener ends it", wire.name, start + text, runs, tools, auto="same")
        unknown = wire.render_parts([("no_such_tool", {"a": "b"})], tools)
        yield Case(
            "B4", "special, unknown tool", wire.name, start + (unknown or ""), Expect(calls=[], refused=1), tools
        )
        cut = Expect(calls=[], refused=1, codes=["truncated"])
        alone = wire.render_parts(calls[:1], tools) or ""
        yield Case("B4", "special, cut off", wire.name, start + _cut(alone, calls[0][0]), cut, tools)
        return
    blocked = Expect(calls=[], codes=["call_in_open_reasoning"])
    yield Case("B4", "plain opener, never closed", wire.name, start + text, blocked, tools, auto="weak")
    behind = f"{start}{text} - no, the user said not to"
    yield Case("A5", "a rehearsal, never closed", wire.name, behind, blocked, tools, auto="weak")
    yield from _unfit_calls(wire, tools, start, text, calls[0][0])


def _unfit_calls(wire: Wire, tools: str, start: str, text: str, name: str) -> Iterator[Case]:
    reported = Expect(calls=[], has_problem=True)
    unknown = wire.render_parts([("no_such_tool", {"a": "b"})], tools)
    unfit = wire.render_parts([(KITS[tools].find, {KITS[tools].count: 3})], tools)
    for shape, call in (("unknown tool", unknown), ("does not fit", unfit), ("cut off", _cut(text, name))):
        if call is not None:
            yield Case("B4", f"plain, {shape}", wire.name, start + call, reported, tools, auto="weak")
    yield Case("B4", "plain, no tools", wire.name, start + text, reported, "")


def _cut(text: str, name: str) -> str:
    """Return the text up to a few characters after the first name."""
    at = text.index(name) + len(name)
    return text[: at + max(3, (len(text) - at) // 3)].rstrip()


def in_closed_reasoning(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A5: calls in closed reasoning count only if the reasoning ends with them and nothing follows."""
    if not wire.thinks or not wire.has_opener:
        return
    kit, (opens, closes) = KITS[tools], wire.think
    thought = dice.choice(_THOUGHTS)
    call, other = kit.draw(dice, both=True), kit.draw(dice)
    text, second = wire.render_parts([call], tools), wire.render_parts([other], tools)
    if text is None or second is None:
        return
    complete = f"{opens}{thought}\n{text}\n{closes}"
    yield Case("A5", "ends with the call", wire.name, complete, Expect(calls=[call]), tools)
    quoted = f"{opens}{thought} `{text}` is what I could send.{closes}"
    if "`" not in text and "\n\n" not in text:
        yield Case("A5", "shown in the thought", wire.name, quoted, Expect(calls=[]), tools)
    if wire.is_special:
        return
    none = {"reasoning_calls": "never"}
    yield Case("A5", "never out of reasoning", wire.name, complete, Expect(calls=[]), tools, options=none)
    yield Case("A5", "answer was cut", wire.name, complete, Expect(calls=[]), tools, options={"finish": "length"})
    continued = f"{opens}{thought}\n{text} - no, better not.{closes}"
    yield Case("A5", "thought goes on", wire.name, continued, Expect(calls=[]), tools)
    with_answer = f"{complete}Owls are birds."
    expected = Expect(calls=[]) if wire.is_protocol else Expect(calls=[], content="Owls are birds.")
    yield Case("A5", "answer behind", wire.name, with_answer, expected, tools)
    yield Case("A5", "call behind", wire.name, complete + second, Expect(calls=[other]), tools)


def second_opener(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B4: a second opener inside open reasoning does not leak."""
    if not wire.thinks or not wire.has_opener:
        return
    opens, closes = wire.think
    if opens.strip()[0].isalpha():
        return  # a sentence that may appear twice
    text = f"{opens}First this.\n{opens}Then that.{closes}Owls are birds."
    leaks = [opens.strip(), closes.strip()]
    expected = None if wire.is_protocol else "Owls are birds."
    yield Case("B4", "a second opener", wire.name, text, Expect(calls=[], content=expected, lacks=leaks), tools)


def _find_reasoning_messages(wire: Wire, dice: Random, tools: str) -> tuple[Channels, CallData, str] | None:
    """Return the channels of a format that has reasoning messages, a call, and its text."""
    channels = wire.format.channels
    if channels is None or "reasoning" not in channels.messages:
        return None
    call = KITS[tools].draw(dice)
    text = wire.render_parts([call], tools)
    return None if text is None else (channels, call, text)


def in_own_channel(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A5: nothing runs from a channel that is addressed to the model itself."""
    message_format = _find_reasoning_messages(wire, dice, tools)
    if message_format is None:
        return
    channels, _, text = message_format
    opens, end = channels.messages["reasoning"]
    inner = text.partition(channels.message)[2]
    for ending in (end, ""):
        message = f"{opens}I might send {inner.removesuffix(channels.messages['call'][1])}{ending}"
        yield Case("A5", "a note to itself", wire.name, message, Expect(calls=[]), tools)
    header, done = channels.messages["content"]
    already_open = f"I think so.{end}{first(channels.start)}{header}Owls are birds.{done}"
    expected = Expect(calls=[], reasoning="I think so.", content="Owls are birds.")
    yield Case(
        "B4", "reasoning opened by the prompt", wire.name, already_open, expected, tools, options={"reasoning": "open"}
    )


def shown_in_own_channel(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A5: a message quoted in a reasoning message is reasoning; an unclosed quotation hides nothing."""
    message_format = _find_reasoning_messages(wire, dice, tools)
    if message_format is None:
        return
    channels, call, text = message_format
    (opens, end), (says, over), start = channels.messages["reasoning"], channels.messages["content"], channels.start
    for marks in ("`{}`", "\n```\n{}\n```\n", "\u201c{}\u201d"):
        thought = f"I could send {marks.replace('{}', f'{first(start)} {text.lstrip()}')} but do not."
        message = f"{opens}{thought}{end}{first(start)}{says}Owls are birds.{over}"
        yield Case("A5", "shown in a thought", wire.name, message, Expect(calls=[], content="Owls are birds."), tools)
    for mark in ("`", "\u201c", '"'):
        message = f"{opens}I read {mark}a page{end}{first(start)}{text}"
        yield Case("A5", "mark left open in a thought", wire.name, message, Expect(calls=[call]), tools)
