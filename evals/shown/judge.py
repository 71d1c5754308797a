"""Check the runnable calls of a text, parsed with the named format and with `auto`, whole and in two chunks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import NamedTuple

from rightcall import Ids, Parser, Reply, Toolset, parse
from rightcall.formats import FORMATS, NAMED_ONLY
from shown.made import CORPUS, SEED, TOOLS, Sample, generate_calls, generate_quoted, has_own_fence

_NO_NAME = "forced_choice"  # its calls have no name, so `auto` cannot recognize them


class Fault(NamedTuple):
    what: str  # RAN, LOST, CUT (the chunks give another reply) or SILENT (no note)
    kind: str
    format: str
    how: str
    text: str


def check_format(name: str, texts: int, real: int) -> tuple[int, list[Fault]]:
    """Return the number of texts that were parsed for a format, and the faults."""
    count, faults = 0, []
    for case in [*generate_quoted(name, texts), *generate_calls(name, real)]:
        count += 1
        faults += list(_faults(case))
    return count, faults


def _faults(case: Sample) -> Iterator[Fault]:
    dice = Random(f"{SEED} {case.text}")
    cut = dice.choice((case.format, "auto"))
    for how in (case.format, "auto"):
        reply = parse(case.text, tools=_tools(case.tools), format=how, ids=Ids.numbered("c"))
        what = _classify(case, how, reply)
        if what:
            yield Fault(what, case.kind, case.format, how, case.text)
        if how == cut and _in_pieces(case, how, dice) != reply:
            yield Fault("CUT", case.kind, case.format, how, case.text)


def _classify(case: Sample, how: str, reply: Reply) -> str:
    calls = [(call.name, call.arguments) for call in reply.calls]
    if not case.calls:
        if calls:
            return "RAN"
        is_reported = any(problem.code == "looks_like_a_call" for problem in reply.problems)
        return "" if is_reported or case.format == _NO_NAME else "SILENT"
    if calls == list(case.calls) or (how == "auto" and not _auto_reads(case.format)):
        return ""
    return "LOST"


def _auto_reads(name: str) -> bool:
    """Return whether `auto` finds calls of this format after text. Without an opener, only as the whole reply."""
    format = FORMATS[name]
    return name not in NAMED_ONLY and not has_own_fence(format) and "" not in format.call[0]


def _in_pieces(case: Sample, how: str, dice: Random) -> Reply:
    at = dice.randrange(len(case.text) + 1)
    parser = Parser(how, tools=_tools(case.tools), ids=Ids.numbered("c"))
    for piece in (case.text[:at], case.text[at:]):
        parser.feed(piece)
    parser.close()
    return parser.reply


@cache
def _tools(key: str) -> Toolset:
    return Toolset(json.loads((CORPUS / "tools.json").read_text("utf-8"))[key]) if key else TOOLS
