"""An opener is never ignored silently (B1, B2, B3, B5, B6, B9)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any, Literal

import msgspec

from classes.case import KITS, CallData, Case, Expect
from classes.wire import Wire, blanks_beside_tokens, first, join_pieces, without
from rightcall.formats.spec import NameThenJson, replace


def blanks_in_markers(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B1: blanks beside a special token inside a marker, as detokenizers write them, change nothing."""
    for _ in range(3):
        calls = [KITS[tools].draw(dice), KITS[tools].draw(dice)]
        plain, spread = wire.render_parts(calls, tools), _write_spread(wire, dice, calls, tools)
        if plain is None or spread is None or spread == plain:
            return
        runs = Expect(calls=calls, content="", reasoning="")
        yield Case("B1", "blanks beside tokens", wire.name, spread, runs, tools)


def _write_spread(wire: Wire, dice: Random, calls: list[CallData], tools: str) -> str | None:
    """Write the calls in the same format with blanks in its markers."""
    old = wire.format
    body: Any = wire.params or old.bodies[0]
    if wire.params is not None:
        body = _replace(body, open=_wide(first(wire.params.open), dice), close=_wide(first(wire.params.close), dice))
        param = blanks_beside_tokens(first(wire.params.param), dice, right=False)
        value_close = blanks_beside_tokens(first(wire.params.value_close), dice, left=False)
        body = _replace(body, param=param, value_close=value_close)
    elif isinstance(body, NameThenJson) and body.open:
        body = _replace(body, open=_wide(first(body.open), dice))
    channels = old.channels
    if channels is not None:
        opens, end = channels.messages["call"]
        messages = {**channels.messages, "call": (_wide(opens, dice), end)}
        channels = _replace(channels, start=_wide(first(channels.start), dice), messages=messages)
    section = old.section and (_wide(first(old.section[0]), dice), first(old.section[1]))
    call = (_wide(first(old.call[0]), dice), first(old.call[1]))
    wide = replace(old, name=old.name, body=body, section=section, call=call, channels=channels)
    return Wire(wire.name, wide).render_parts(calls, tools)


def _wide(template: str, dice: Random) -> str:
    return blanks_beside_tokens(template, dice)


def _replace(struct: Any, **changes: object) -> Any:
    return msgspec.structs.replace(struct, **changes)


def no_name(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B2: a call without a name is blocked with `invalid_name` (or inferred, where one tool fits); its sibling runs."""
    if not wire.has_opener or wire.is_pythonic or wire.is_protocol or not _writes_name(wire):
        return
    kit = KITS[tools]
    good, fits = (kit.stop, {}), kit.draw(dice, both=False)
    for shape, arguments in (("nothing fits", {"zzz": "x"}), ("one tool fits", fits[1])):
        text = wire.render_parts([("nameless", dict(arguments)), good], tools)
        if text is None or "nameless" not in text:
            continue
        blocked = Expect(calls=[good], refused=1, codes=["invalid_name"])
        inferred = Expect(calls=[fits, good])
        expect = blocked if shape == "nothing fits" else Expect(either=[blocked, inferred])
        yield Case("B2", f"no name, {shape}", wire.name, text.replace("nameless", ""), expect, tools)


def _writes_name(wire: Wire) -> bool:
    body = wire.format.bodies[0]
    return wire.params is not None or wire.envelope is not None or bool(getattr(body, "open", ""))


def broken_blocks(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B3: unreadable text after an opener is a rejected call, or text with a problem."""
    if not wire.has_opener:
        return
    reported = Expect(calls=[], has_problem=True)
    bodies = ["hello", '{"command": "ls"}', "[[f(a=1)]]", "zzping", "{", "<function=", "{}", '"lookup"']
    for body in dice.sample(bodies, 5):
        text = wire.prose(dice) + wire.json_block(body)
        # An opener that is a plain word also appears in prose, so `auto` ignores it.
        auto: Literal["weak", ""] = "" if wire.json_block("").lstrip()[:1].isalpha() else "weak"
        yield Case("B3", "body that is none", wire.name, text, reported, tools, auto=auto)
    if wire.params is not None:
        yield from _broken_openers(wire, dice, tools)


def _broken_openers(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B3: the opener of the body without its last visible character."""
    call = KITS[tools].draw(dice)
    pieces = wire.pieces([call])
    at = next(i for i, piece in enumerate(pieces) if piece.role == "open")
    opener = pieces[at].text
    cut = opener.rstrip()[:-1] + opener[len(opener.rstrip()) :]
    text = join_pieces(pieces[:at]) + cut + join_pieces(pieces[at + 1 :])
    if not cut.strip().endswith(call[0][:-1]):  # the name itself is not a marker
        expect = Expect(among=[call], has_problem=True)
        yield Case(
            "B3", "opener without its end", wire.name, text, Expect(either=[Expect(calls=[call]), expect]), tools
        )


def no_section(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B5: a call's body without its section is a call."""
    calls = [KITS[tools].draw(dice) for _ in range(dice.choice([1, 2]))]
    runs = Expect(calls=calls, lacks=wire.markup)
    if wire.params is not None and wire.format.section:
        text = join_pieces(without(wire.pieces(calls), "section_open", "section_close"))
        yield Case("B5", "body without section", wire.name, text, runs, tools, auto="weak")
        if not wire.has_channels:
            yield Case("B5", "behind prose", wire.name, f"One moment.\n{text}", runs, tools, auto="weak")
    elif wire.format.section and not wire.has_channels:
        whole = wire.render_parts(calls, tools)
        opens, closes = (first(marker) for marker in wire.format.section)
        if whole is not None:
            text = whole.replace(opens, "", 1).replace(closes, "", 1)
            yield Case("B5", "call without section", wire.name, text, runs, tools, auto="weak")
    yield from _without_inner_words(wire, tools, calls, runs)


def _without_inner_words(wire: Wire, tools: str, calls: list[CallData], runs: Expect) -> Iterator[Case]:
    """B5: only the first token of a call's opener; a tag without its blank."""
    tokens = getattr(first(wire.format.call[0]), "tokens", ())
    if wire.params is not None and len(tokens) > 1:
        text = join_pieces(wire.pieces(calls)).replace(first(wire.format.call[0]), tokens[0])
        yield Case("B5", "opener's first token alone", wire.name, text, runs, tools)
    if wire.params is not None and "<function name=" in first(wire.params.open):
        text = join_pieces(wire.pieces(calls)).replace("<function name=", "<functionname=")
        yield Case("B5", "tag without its blank", wire.name, text, runs, tools)


def ends_in_opener(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B6: a text that ends inside a call's opener, or after its name, is a truncated call."""
    call = KITS[tools].draw(dice, both=True)
    whole = wire.render_parts([call], tools)
    if whole is None or whole.count(call[0]) == 0:
        return
    begin = whole.index(call[0]) if wire.format.name != "inkling" else whole.rindex(call[0])
    named = begin + len(call[0])
    value = whole.index(str(call[1][KITS[tools].text]).split("\n")[0], named)
    before = "One second." if wire.has_opener else ""
    cut = Expect(calls=[], refused=1, codes=["truncated"])
    known = Expect(calls=[], refused=1, codes=["truncated"], attempted=call[0])
    if wire.is_bare and not wire.has_opener:
        cut = known = Expect(calls=[], has_problem=True)
    if wire.has_opener:
        cut = Expect(calls=[], has_problem=True) if wire.name_is_inside and wire.envelope is None else cut
        yield Case("B6", "ends behind the name", wire.name, before + whole[:named], cut, tools, auto="weak")
    yield Case("B6", "ends in the arguments", wire.name, before + whole[: value + 1], known, tools, auto="weak")
    between = whole[named:value]
    if wire.envelope is not None and '"' in between:
        behind = before + whole[: named + len(between.rstrip(' {"'))]
        yield Case("B6", "ends before the arguments", wire.name, behind, known, tools, auto="weak")


def ends_in_inner_opener(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B6: so is a text that ends after the opener of calls, inside the opener of the call itself."""
    call, outer = KITS[tools].draw(dice), _outer(wire)
    whole = wire.render_parts([call], tools) if outer else None
    if whole is None or outer not in whole:
        return
    places = range(whole.index(outer) + len(outer), whole.index(call[0]) + 1)
    cut = Expect(calls=[], content="One second.", codes=["truncated"])
    auto: Literal["weak", ""] = "" if outer[0].isalpha() else "weak"  # a word of prose
    for end in dice.sample(places, min(4, len(places))):
        yield Case("B6", "ends in the inner opener", wire.name, f"One second.{whole[:end]}", cut, tools, auto=auto)


def _outer(wire: Wire) -> str:
    """Return the opener of calls, if it contains neither a name nor a fence."""
    opens = [first(pair[0]) for pair in (wire.format.section, wire.format.call) if pair]
    text = next((str(each).strip() for each in opens if each), "")
    return "" if wire.has_channels or "{name}" in text or "```" in text else text


def opened_twice(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A6: a repeated opener, and a fence directly after an opener, lose neither call."""
    call, other, outer = KITS[tools].draw(dice), KITS[tools].draw(dice), str(first(wire.format.call[0]))
    whole, behind = wire.render_parts([call], tools), wire.render_parts([other], tools)
    if not outer or whole is None or behind is None or wire.has_channels or "{name}" in outer or "```" in outer:
        return
    twice = whole.replace(outer, outer + dice.choice(["", "\n", " "]) + outer, 1)
    yield Case("A6", "opener twice", wire.name, twice, Expect(calls=[call]), tools, auto="weak")
    envelope = json.dumps({"name": call[0], "arguments": call[1]})
    fenced = f"{outer}\n```json\n{envelope}\n```\n{first(wire.format.call[1])}\n{behind}"
    reported = Expect(calls=[other], refused=1)
    if "```" not in first(wire.format.call[1]):
        some = Expect(either=[Expect(calls=[call, other]), reported])
        yield Case("B3", "fence behind the opener", wire.name, fenced, some, tools, auto="weak")


def header_again(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B9: a second channel token restarts the header; text to an unknown recipient is never lost."""
    channels = wire.format.channels
    if channels is None or not channels.to:
        return
    for content in ("Good morning", "It is snowing in Oslo."):
        for recipient in ("assistant", "everybody"):
            channel_start = f"{channels.channel}commentary" if channels.channel else ""
            header, end = channels.messages["content"]
            again = f"{channel_start}{channels.to}{recipient}{header}{content}"
            if channels.channel:
                yield Case("B9", "header begins again", wire.name, again, Expect(calls=[], content=content), tools)
            text = f"{channel_start}{channels.to}{recipient}{channels.message}{content}{end}"
            expected = Expect(calls=[], either=[Expect(holds=[content]), Expect(refused=1)])
            yield Case("B9", "no tool's message", wire.name, text, expected, tools)


def one_object(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """B10: a provider's answer whose `output` is one object, or that has both `output` and `tool_calls`."""
    if wire.name != "generic_json":
        return
    kit = KITS[tools]
    for i in range(4):
        a, b = kit.draw(dice), kit.draw(dice)
        one = {"type": "function_call", "name": a[0], "arguments": json.dumps(a[1]), "call_id": f"c{i}"}
        answer = {"object": "response", "id": "r1", "status": "completed", "output": one}
        yield Case("B10", "output is one object", wire.name, json.dumps(answer), Expect(calls=[a]), tools, by="read")
        part = {"type": "output_text", "text": "Good morning"}
        message_answer = json.dumps({**answer, "output": [{"type": "message", "role": "assistant", "content": part}]})
        expected = Expect(calls=[], content="Good morning")
        yield Case("B10", "content is one object", wire.name, message_answer, expected, tools, by="read")
        chat = [{"id": "c9", "type": "function", "function": {"name": b[0], "arguments": json.dumps(b[1])}}]
        both = json.dumps({**answer, "output": [one], "tool_calls": chat})
        some = [Expect(calls=calls) for calls in ([a], [b], [a, b], [b, a])]
        yield Case("B10", "output beside tool_calls", wire.name, both, Expect(either=some), tools, by="read")
