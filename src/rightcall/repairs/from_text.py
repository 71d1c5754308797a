"""A call of which a name and argument text are at hand: what `Call.from_text` gives."""

from __future__ import annotations

import msgspec

from rightcall.repairs.whole_call import repair
from rightcall.tools.checks import check
from rightcall.tools.toolset import Tools, Toolset
from rightcall.types import Call


def call_from_text(name: str, text: str, tools: Tools | None, policy: str, id: str) -> Call:
    """The call, repaired and checked."""
    toolset = Toolset.of(tools)
    made = repair(Call(name, json=text, id=id, raw=text), toolset, policy=policy)
    notes = [problem for problem in made.problems if not problem.blocking]
    return msgspec.structs.replace(made, problems=(*check(made, toolset), *notes))
