"""Assertions of the cut law: the result of a text does not depend on its chunking."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from rightcall import Format, Reply, Toolset
from rightcall.parsing.options import Limits
from rightcall.testing.laws import How, Reading, cut_law, cuttings, nothing_lost_law
from rightcall.testing.laws.cut import join_events, reply_of_events
from rightcall.testing.laws.marker_texts import literals as markers
from rightcall.testing.laws.reading import parse_whole
from rightcall.testing.laws.reading import read as read_chunks

__all__ = [
    "Reading",
    "Setting",
    "parse_whole",
    "cuts",
    "reply_of_events",
    "hold_of_every_cut",
    "join_events",
    "markers",
    "assert_nothing_lost",
    "read",
]


class Setting(NamedTuple):
    """The options for parsing a text."""

    format: str | Format
    tools: Toolset | None = None
    reasoning: Literal["auto", "open", "off"] = "auto"
    repair: Literal["off", "safe", "lenient"] = "safe"
    choice: str | None = None
    limits: Limits | None = None
    finish: str | None = None
    reasoning_calls: Literal["never", "safe"] = "safe"

    @property
    def how(self) -> How:
        return How(self.reasoning, self.repair, self.choice, self.limits, self.finish, self.reasoning_calls)


def read(chunks: Iterable[str], setting: Setting, *, live: bool = False, hold: bool = False) -> Reading:
    return read_chunks(setting.format, chunks, tools=setting.tools, how=setting.how, live=live, hold=hold)


def cuts(text: str, format: str | Format, *, seed: int = 0) -> list[list[str]]:
    """Return the text whole, and cut as in the laws."""
    return [[text], *cuttings(format, text, seed).values()]


def hold_of_every_cut(text: str, setting: Setting, *, seed: int = 0) -> Reply:
    """Return the reply after checking that every cut gives it, live or not, and that it lost no text."""
    violations = cut_law(setting.format, text, tools=setting.tools, how=setting.how, seed=seed)
    assert not violations, violations[0]
    return read([text], setting).reply


def assert_nothing_lost(text: str, reply: Reply) -> None:
    violations = nothing_lost_law(reply.format or "auto", text, reply)
    assert not violations, violations[0]
