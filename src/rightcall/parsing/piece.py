"""A reading inside another: a piece of a reply read by itself, without looking for calls in any other way."""

from __future__ import annotations

import msgspec

from rightcall.ids import Ids
from rightcall.parsing.buffer import TokenMap
from rightcall.parsing.call_builder import MINTED
from rightcall.parsing.compile import Compiled
from rightcall.parsing.events import Fold
from rightcall.parsing.machine import Machine
from rightcall.parsing.options import ReadOptions
from rightcall.types import Event, Reply, Span


class Piece(msgspec.Struct, frozen=True):
    """What a piece of text holds, and the spans of it, counted from its beginning."""

    reply: Reply
    spans: list[Span]


def shifted(spans: list[Span], by: int) -> list[Span]:
    return [Span(span.start + by, span.end + by, span.kind) for span in spans]


def quiet(options: ReadOptions) -> ReadOptions:
    """The same options for a reading inside another: nothing rescued, nothing live, nothing begun in the prompt."""
    reasoning = "off" if options.reasoning == "off" else "auto"
    return msgspec.structs.replace(options, reasoning=reasoning, live=False, rescue="off", reasoning_calls="never")


def read_piece(text: str, found: Compiled, options: ReadOptions, told: TokenMap | None = None) -> Piece:
    machine = Machine(found, quiet(options), Ids.numbered(MINTED))
    machine.builder.token_map = told
    machine.feed(text)
    machine.close()
    return Piece(fold(machine.take(), found.format.name), machine.output.spans)


def fold(events: list[Event], name: str) -> Reply:
    folding = Fold()
    folding.add(events)
    return folding.reply(name, None)
