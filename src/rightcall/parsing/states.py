"""Where the run through a reply is, as a value."""

from __future__ import annotations

from typing import Literal

import msgspec

from rightcall.parsing.buffer import Capture
from rightcall.parsing.output import Snapshot
from rightcall.types import Event

Due = Literal["", "due", "late"]  # a close: of nothing, of what a marker opened, of what none opened


class InText(msgspec.Struct, frozen=True):
    """Outside everything. `late`: nothing was seen yet that speaks against the prompt having opened the reasoning.
    `due`: the close of the last block is missing, or may still come. `mentions`: an opener of reasoning was only shown;
    so may be its close."""

    late: bool = False
    due: Due = ""
    mentions: bool = False


class InSection(msgspec.Struct, frozen=True):
    """Between the markers that surround all calls, of which there were so many before it. `is_open`: one of them stood
    there."""

    before: int
    is_open: bool = False
    due: Due = ""


class InReasoning(msgspec.Struct, frozen=True):
    """Inside reasoning."""


class InChannel(msgspec.Struct, frozen=True):
    """Inside a message whose header says what it holds."""

    kind: Literal["reasoning", "content"]


State = InText | InSection | InReasoning | InChannel


class Held(msgspec.Struct, frozen=True):
    """Calls without any marker count only if the reply is nothing else: what was, before the first of them."""

    start: Capture
    ready: list[Event]  # what may go out
    before: Snapshot
