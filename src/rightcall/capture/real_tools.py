"""Real tools in the place of stubs: a call is approved, run by `dispatch`, and its result is what the row says.

    outcome = await real_outcome(call, domain.tools, [Approval(ask=ask)])

Nothing is run that nobody allowed: tools that only read are, all others are asked about, unless all were allowed.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rightcall.capture.stubs import StubOutcome
from rightcall.dispatching.dispatcher import dispatch
from rightcall.dispatching.hook import HookLike
from rightcall.dispatching.invoke import RunLimits
from rightcall.dispatching.plain_json_values import plain
from rightcall.tools.toolset import Toolset
from rightcall.types import Call
from rightcall.workspace.approval import DENIED

_LONGEST = 200_000  # bytes of a result that are kept as they are; a longer one is kept as the model is told of it


async def real_outcome(call: Call, tools: Toolset, hooks: Iterable[HookLike]) -> StubOutcome:
    """What the tool gave; an error where it failed, or was not allowed."""
    (result,) = await dispatch(call, tools, hooks=hooks, limits=RunLimits())
    if result.error or result.reason == DENIED:
        return StubOutcome("error", {"error": result.text.removeprefix("ERROR: ")})
    content = plain(result.output)
    is_long = len(msgspec.json.encode(content)) > _LONGEST
    return StubOutcome("ok", result.text if is_long else content)
