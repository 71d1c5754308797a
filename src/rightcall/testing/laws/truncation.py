"""The truncation law: no beginning of a text completes a call, whatever is said of how the answer ended."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import msgspec

from rightcall.formats.spec import Format
from rightcall.parsing.rendering import same
from rightcall.testing.laws.case import Case, Violation, raised
from rightcall.testing.laws.reading import USUAL, How, read
from rightcall.testing.laws.samples import renderings
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Reply

_PREFIXES = 24
_CUT = ("length", "content_filter", "error")
_FOUND_ELSEWHERE = {"rescued", "call_in_reasoning"}


def truncation_law(
    format: Format,
    text: str,
    *,
    tools: Toolset | None = None,
    seed: int = 0,
    how: How = USUAL,
    prefixes: int = _PREFIXES,
) -> list[Violation]:
    """No beginning of the text yields a complete call that the whole text does not have in that place. Where the answer
    is said to have been cut, whole calls before the cut stand, and nothing else runs: nothing that was rescued, and
    nothing out of reasoning.

    - `format`: the one that the text is written in.
    - `text`: any text.
    - `tools`, `how`: as in `cut_law`.
    - `seed`: which beginnings are tried.
    - `prefixes`: how many of them.
    """
    try:
        whole = read(format, [text], tools=tools, how=how).reply
        for end in _ends(text, seed, prefixes):
            reply = read(format, [text[:end]], tools=tools, how=how).reply
            what = _completed(reply, whole) or _when_said(format, text[:end], tools, how, end, reply)
            if what:
                return [Violation("truncation", what, text[:end])]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [raised(error, text)]
    return []


def _completed(cut: Reply, whole: Reply) -> str:
    for i, call in enumerate(cut.attempts):
        if call.complete and not (i < len(whole.attempts) and _equal(call, whole.attempts[i])):
            return f"call {i + 1} of the text cut off here is complete"
    return ""


def _when_said(format: Format, text: str, tools: Toolset | None, how: How, end: int, unsaid: Reply) -> str:
    if how.finish is not None:
        return ""
    finish = _CUT[end % len(_CUT)]
    said = read(format, [text], tools=tools, how=msgspec.structs.replace(how, finish=finish)).reply
    there = iter(unsaid.calls)
    if not all(any(_equal(call, other) for other in there) for call in said.calls):
        return f"finish={finish!r} makes calls that are not there without it"
    if any(problem.code in _FOUND_ELSEWHERE for call in said.calls for problem in call.problems):
        return f"a call that was only found runs although finish={finish!r}"
    return ""


def _ends(text: str, seed: int, prefixes: int) -> list[int]:
    if len(text) <= prefixes:
        return list(range(len(text)))
    return sorted(Random(f"{seed} {len(text)} ends").sample(range(len(text)), prefixes))


def _equal(cut: Call, whole: Call) -> bool:
    return whole.complete and cut.name == whole.name and same(cut.arguments, whole.arguments) is None


def cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    for text in renderings(format, seed, count):
        yield Case("truncation", text, seed=seed)


def judge(format: Format, case: Case, tools: Toolset | None, how: How = USUAL) -> list[Violation]:
    return truncation_law(format, case.text, tools=tools, seed=case.seed, how=how)
