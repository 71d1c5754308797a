"""Formats with one tag per argument: where a value ends (A1, A2, A3, A6)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from classes.case import KITS, CallData, Case, Expect
from classes.wire import Piece, Wire, join_pieces, without


def value_swallows(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A1: a call without its close is rejected at the next opener, which keeps all that follows.

    Before the close of the surrounding block, the call runs.
    """
    if wire.params is None:
        return
    kit = KITS[tools]
    for _ in range(2):
        calls = [kit.draw(dice), kit.draw(dice)]
        pieces = wire.pieces(calls)
        both = Expect(calls=calls, lacks=wire.markup)
        second = Expect(calls=calls[1:], refused=1, codes=["abandoned"], lacks=wire.markup)
        for shape, text, is_closed in _unclosed(wire, pieces):
            prose = wire.prose(dice) * (not wire.has_channels)
            yield Case("A1", shape, wire.name, prose + text, both if is_closed else second, tools, auto="same")
        yield from _prose_after_open_call(wire, dice, tools)


def _unclosed(wire: Wire, pieces: list[Piece]) -> Iterator[tuple[str, str, bool]]:
    """Yield the two calls with closers left out, and whether another marker closes the first call.

    The closers are left out of the first call, of the last one before the close of its section, and of the inner block.
    """
    second = next(i for i, piece in enumerate(pieces) if piece.role == "between")
    head, tail = pieces[:second], pieces[second:]
    if not wire.has_channels:
        yield "no closers before the next opener", join_pieces([*without(head, "close", "call_close"), *tail]), False
    roles = {piece.role for piece in pieces if piece.text.strip()}
    if "close" in roles and ("call_close" in roles or "section_close" in roles):
        yield (
            "no body close, outer close is there",
            join_pieces(without(pieces, "close")),
            wire.has_channels or "call_close" in roles,
        )
    inner = without(head, "call_close"), without(tail, "call_open", "section_open")
    if "close" in roles and "call_open" in roles and not wire.has_channels:
        yield "two calls in one block", join_pieces([*inner[0], *inner[1]]), True


def _prose_after_open_call(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A1: prose after closed arguments without a closer: only the written call may run, with a report."""
    call = KITS[tools].draw(dice)
    pieces = without(wire.pieces([call]), "close", "call_close", "section_close", "header_close")
    text = join_pieces(pieces).rstrip() + "\nThat is all I need."
    yield Case(
        "A1", "prose behind open call", wire.name, text, Expect(among=[call], has_problem=True), tools, auto="weak"
    )


def closed_by_another(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A1: a value that another tag closes: that tag is not part of an argument of a runnable call."""
    if wire.params is None:
        return
    call = KITS[tools].draw(dice, both=True)
    pieces = wire.pieces([call])
    at = next(i for i, piece in enumerate(pieces) if piece.role == "value_close")
    for close in ("</arg>", "</value>", f"</{KITS[tools].text}>", "</arg_value>"):
        if close not in pieces[at].text:
            text = join_pieces([*pieces[:at], Piece("value_close", close + "\n"), *pieces[at + 1 :]])
            clean = Expect(clean=[close], among=[call], has_problem=True)
            yield Case("A1", "closed by another's tag", wire.name, text, clean, tools, auto="weak")


def no_line_break(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A2: white space at the edge of a marker is optional; the value is the same without it."""
    if wire.params is None:
        return
    for _ in range(3):
        calls = [KITS[tools].draw(dice, both=True), KITS[tools].draw(dice)]
        text = join_pieces([_trimmed(piece, dice) for piece in wire.pieces(calls)])
        yield Case("A2", "edges trimmed", wire.name, text, Expect(calls=calls, lacks=wire.markup), tools, auto="same")


def _trimmed(piece: Piece, dice: Random) -> Piece:
    if piece.role in ("value", "header", "between", "section_open", "section_close"):
        return piece
    left, right = piece.role == "value_close", piece.role in ("value_close", "open", "close")
    text = piece.text.lstrip() if left and dice.random() < 0.7 else piece.text
    return Piece(piece.role, text.rstrip() if right and dice.random() < 0.5 else text)


def own_closers_in_value(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A3: a closer of a value or body inside a value blocks that call and no other."""
    if wire.params is None:
        return
    kit = KITS[tools]
    plain, other = kit.draw(dice, both=False), kit.draw(dice)
    for roles in _endings(wire):
        closers = join_pieces([piece for piece in wire.pieces([plain]) if piece.role in roles])
        with_closer = (plain[0], {kit.text: f"a {closers.rstrip()} b"})
        shape = f"value holds {' + '.join(roles)}"
        # A parser may find the correct end. It must not use the first closer without a report.
        blocked = Expect(either=[Expect(calls=[], refused=1, codes=["ambiguous_end"]), Expect(calls=[with_closer])])
        yield Case("A3", shape, wire.name, join_pieces(wire.pieces([with_closer])), blocked, tools, auto="weak")
        both = join_pieces(wire.pieces([with_closer, other]))
        refused = Expect(calls=[other], refused=1, codes=["ambiguous_end"])
        sibling = Expect(either=[refused, Expect(calls=[with_closer, other])])
        yield Case("A3", shape + ", sibling", wire.name, both, sibling, tools)
    yield from _closers_elsewhere(wire, dice, tools)


def _endings(wire: Wire) -> list[tuple[str, ...]]:
    pieces = wire.pieces([("f", {"k": "v"})])
    roles = [piece.role for piece in pieces if piece.text.strip() and piece.role.endswith("close")]
    roles = [role for role in roles if role != "header_close"]
    ends = [tuple(roles[: count + 1]) for count in range(1, len(roles))]
    return [end for end in ends if end != ("value_close", "section_close")] or ends


def _closers_elsewhere(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A3: closers in code after the call, or in a value followed by text, block nothing."""
    call = KITS[tools].draw(dice, both=True)
    pieces = wire.pieces([call])
    closer = next(piece.text.strip() for piece in pieces if piece.role == "value_close")
    shown = f"\nThe tag `{closer}` closes a value."
    if not wire.has_channels:
        runs = Expect(calls=[call], not_codes=["ambiguous_end"], holds=[closer])
        runs = Expect(calls=[call], not_codes=["ambiguous_end"]) if wire.is_protocol else runs
        yield Case("A3", "closer shown behind", wire.name, join_pieces(pieces) + shown, runs, tools, auto="weak")
    with_closer: CallData = (call[0], {KITS[tools].text: f"a {closer} b"})
    text = wire.render_parts([with_closer], tools)
    if text is not None:
        yield Case("A3", "closer inside, text behind", wire.name, text, Expect(calls=[with_closer]), tools)


def abandoned(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A6: a call that is started twice runs once, as it was written the second time."""
    kit = KITS[tools]
    for _ in range(2):
        call = kit.draw(dice)
        if wire.params is not None and not wire.has_channels:
            pieces = wire.pieces([call])
            start = [piece for piece in pieces if piece.role in ("call_open", "open")]
            at = next(i for i, piece in enumerate(pieces) if piece.role == "open") + 1
            text = join_pieces([*pieces[:at], *start, *pieces[at:]])
            yield Case("A6", "begun twice", wire.name, text, Expect(calls=[call], has_problem=True), tools, auto="weak")
            continue
        whole = wire.render_parts([call], tools)
        if whole is None or wire.is_bare or not wire.has_opener or wire.name_is_inside:
            continue
        unfinished = whole[: whole.index(call[0]) + len(call[0])] + '": {'[: dice.randint(0, 4)] * (
            wire.envelope is not None
        )
        yield Case(
            "A6",
            "begun twice",
            wire.name,
            unfinished + "\n" + whole,
            Expect(among=[call], has_problem=True),
            tools,
            auto="weak",
        )


_OPENERS = ("section_open", "call_open", "open", "header")  # without these a call is lost, which is reported


def one_character_less(wire: Wire, dice: Random, tools: str) -> Iterator[Case]:
    """A1: with one character of a marker, or one marker, missing, nothing is swallowed or silently lost."""
    kit = KITS[tools]
    if wire.params is None:
        return
    calls = [kit.draw(dice), kit.draw(dice)]
    pieces = wire.pieces(calls)
    # Without its tag, a value is text after a closer, which another value may contain.
    safe = {"value", "between"}
    places = [i for i, piece in enumerate(pieces) if piece.text.strip() and piece.role not in safe]
    for i in dice.sample(places, min(8, len(places))):
        role, text = pieces[i]
        marks = [at for at, char in enumerate(text) if char in '<>/|[]="']
        whole = marks and (role == "param" or (role == "open" and not wire.has_frame))
        at = dice.choice(marks) if whole or (marks and dice.random() < 0.7) else None
        remaining = "" if at is None else text[:at] + text[at + 1 :]
        damaged = join_pieces([*pieces[:i], Piece(role, remaining), *pieces[i + 1 :]])
        shape = f"{role} {'gone' if at is None else 'damaged'}"
        expect = Expect(
            either=[Expect(calls=calls), Expect(at_most=2, has_problem=role in _OPENERS, clean=wire.openers)]
        )
        yield Case("A1n", shape, wire.name, damaged, expect, tools, auto="weak")
