"""Parsing of a text in chunks, and the divisions of a text into chunks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from random import Random
from typing import Any, Literal, NamedTuple

import msgspec

from rightcall.formats import find
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.parsing.options import Limits
from rightcall.parsing.parser import Parser, parse
from rightcall.testing.laws.marker_texts import any_literal
from rightcall.tools.toolset import Toolset
from rightcall.types import Event, Reply


class How(msgspec.Struct, frozen=True):
    """The options with which the laws parse a text, besides its format and tools: `reasoning`, `repair`, `choice`,
    `limits`, `finish` and `reasoning_calls` are those of `parse`."""

    reasoning: Literal["auto", "open", "off"] = "auto"
    repair: Literal["off", "safe", "lenient"] = "safe"
    choice: str | None = None
    limits: Limits | None = None
    finish: str | None = None
    reasoning_calls: Literal["never", "safe"] = "safe"

    def options(self) -> dict[str, Any]:
        """Return the options as arguments of the constructor of `Parser`; without `finish`, which is an argument of its
        `close`."""
        return {
            "reasoning": self.reasoning,
            "repair": self.repair,
            "choice": self.choice,
            "limits": self.limits,
            "reasoning_calls": self.reasoning_calls,
        }


USUAL = How()


class Reading(NamedTuple):
    """The events and the reply of a parsed text."""

    events: list[Event]
    reply: Reply


def read(
    format: str | Format,
    chunks: Iterable[str],
    *,
    tools: Toolset | None = None,
    how: How = USUAL,
    live: bool = False,
    hold: bool = False,
    look: bool = False,
) -> Reading:
    """Parse a text that arrives in these chunks, with the same call ids on every run, and return events and reply.
    `live` and `hold` are options of `Parser`; with `look`, `Parser.reply` is read after each chunk. What the parser
    raises is not caught."""
    parser = Parser(format, tools=tools, ids=Ids.numbered("c"), spans=True, live=live, hold=hold, **how.options())
    events: list[Event] = []
    for chunk in chunks:
        events += parser.feed(chunk)
        if look:
            _ = parser.reply
    events += parser.close(how.finish)
    return Reading(events, parser.reply)


def parse_whole(format: str | Format, text: str, *, tools: Toolset | None = None, how: How = USUAL) -> Reply:
    """Parse a whole text with `parse` and return the reply, with the same call ids on every run."""
    options = how.options()
    return parse(text, format=format, tools=tools, ids=Ids.numbered("c"), spans=True, finish=how.finish, **options)


# -- cuts --------------------------------------------------------------------------------------------------------------


def cuttings(format: str | Format, text: str, seed: int = 0) -> dict[str, list[str]]:
    """Return divisions of a text into chunks, by name; each joined is the text.

    - `format`: the format whose markers are split in half; a name, or a `Format`.
    - `text`: the text.
    - `seed`: selects the random positions.
    """
    return {
        "one character at a time": list(text),
        "three characters at a time": [text[i : i + 3] for i in range(0, len(text), 3)],
        "at random": cut_at(text, _random_places(text, seed)),
        "with every marker split in half": cut_at(text, _marker_middles(format, text)),
    }


def cut_at(text: str, places: Iterable[int]) -> list[str]:
    """Return the pieces of a text cut at these positions, which must ascend; a position at an edge gives an empty
    piece."""
    return [text[a:b] for a, b in pairwise([0, *places, len(text)])]


def _random_places(text: str, seed: int) -> list[int]:
    """Return random positions inside a text, ascending, selected by `seed` and the text's length; none in a text of
    less than two characters."""
    dice = Random(f"{seed} {len(text)} cuts")
    if len(text) < 2:
        return []
    most = dice.choice((1, 3, 12, len(text) // 5 + 1))
    return sorted(dice.sample(range(1, len(text)), min(most, len(text) - 1)))


def _marker_middles(format: str | Format, text: str) -> list[int]:
    """Return the middle of each literal piece of the format's markers in the text; for "auto", every fifth position."""
    if format == "auto":
        return list(range(5, len(text), 5))
    return [match.start() + (len(match.group()) + 1) // 2 for match in any_literal(find(format)).finditer(text)]
