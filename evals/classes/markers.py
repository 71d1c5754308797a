"""Markers that leak into text (C)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from classes.case import KITS, Case, Expect
from classes.wire import Wire, first
from rightcall.formats.spec import Special


def stray_markers(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """C: duplicate closers, end tokens and lone special closers are dropped with a note, and block nothing."""
    if wire.has_channels or wire.is_protocol:
        return
    calls = [KITS[tools].draw(dice) for _ in range(dice.choice([1, 2]))]
    text = wire.render_parts(calls, tools)
    if text is None:
        return
    for closer in dict.fromkeys(_closers(wire)):
        twice = Expect(calls=calls, content="", lacks=[closer], codes=["stray_marker"])
        yield Case(
            "C", "doubled closer", wire.name, f"{text}{dice.choice(['', chr(10)])}{closer}", twice, tools, auto="weak"
        )
    for end in wire.format.ends[:2]:
        if not wire.is_bare:
            expected = Expect(calls=calls, content="", lacks=[str(end)])
            yield Case("C", "end tokens", wire.name, f"{text}{end}{end}", expected, tools)
        expected = Expect(calls=[], content="Owls are birds.", lacks=[str(end)])
        yield Case("C", "end token behind text", wire.name, f"Owls are birds.{end}", expected, tools)
    yield from _alone(wire, dice, tools)


def _closers(wire: Wire) -> list[str]:
    """Return the visible closers of call and section: of a marker with special tokens, the last one."""
    pairs = [wire.format.call, *([wire.format.section] if wire.format.section else [])]
    found = []
    for _, close in pairs:
        marker = first(close)
        tokens = getattr(marker, "tokens", ())
        whole = not tokens or len(set(tokens)) > 1 or marker.startswith(tokens[0]) or tokens[-1][0] not in "<["
        text = str(marker) if whole else tokens[-1]
        found.append(text.strip())
    return [text for text in found if text and "`" not in text and text not in wire.format.ends]


def _alone(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    pairs = [wire.format.call, *([wire.format.section] if wire.format.section else [])]
    for _, close in pairs:
        marker = first(close)
        if not isinstance(marker, Special) or "`" in marker or not marker.strip() or marker in wire.format.ends:
            continue
        text = str(marker).strip()
        reported = Expect(calls=[], lacks=[text], holds=["Owls are birds."], codes=["stray_marker"])
        yield Case("C", "lone closer", wire.name, f"Owls are birds.{text}", reported, tools)
        unchanged = Expect(calls=[], content=f"The token `{text}` ends it.")
        yield Case("C", "closer shown in code", wire.name, f"The token `{text}` ends it.", unchanged, tools)


def of_one_format(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """C: cases of single formats."""
    call = KITS[tools].draw(dice)
    if wire.name == "gemma4":
        expected = Expect(calls=[], content="Owls are birds.")
        yield Case("C", "end of stream", wire.name, "Owls are birds.<eos>", expected, tools)
        label = Expect(calls=[], content="Owls are birds.", reasoning="I think so.")
        text = "thought\nI think so.\n<channel|>Owls are birds."
        yield Case("C", "label of an opener in the prompt", wire.name, text, label, tools)
        yield Case("C", "label, said to be open", wire.name, text, label, tools, options={"reasoning": "open"})
    if wire.name == "inkling":
        text = (wire.render_parts([call], tools) or "").removeprefix("<|message_model|>")
        yield Case("C", "begins with a call", wire.name, text, Expect(calls=[call], content=""), tools)
    if wire.name in ("cohere_command3", "cohere_command4"):
        for cited in ("</co: 0:[1]>", "</co: 0:[1,2]>", "</co: 0:[1],1:[0]>"):
            inner = f"<co>Owls are birds{cited}. They fly."
            expected = Expect(calls=[], content="Owls are birds. They fly.")
            text = f"<|START_RESPONSE|>{inner}<|END_RESPONSE|>"
            yield Case("C", "citation", wire.name, text, expected, tools)
