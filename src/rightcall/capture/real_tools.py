"""Real tools in the place of stubs: a call is approved, run by `dispatch`, and its result is what the row says.

    outcome = await real_outcome(call, domain.tools, [ApprovedCalls(ask)])

Nothing is run that nobody allowed: tools that only read are, all others are asked about, unless all were allowed.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

import msgspec

from rightcall.capture.stubs import StubOutcome
from rightcall.declare.toolset import Toolset
from rightcall.dispatching.dispatcher import dispatch
from rightcall.dispatching.hook import Hook, HookLike, Invocation, Skip
from rightcall.dispatching.plain import plain
from rightcall.dispatching.run_limits import RunLimits
from rightcall.types import Call

Allowed = Literal["yes", "no", "yes to all"]
AskUser = Callable[[Invocation], Allowed | Awaitable[Allowed]]
_DENIED = "denied"
_LONGEST = 200_000  # bytes of a result that are kept as they are; a longer one is kept as the model is told of it


class ApprovedCalls(Hook):
    """Asks before a tool is run that does more than read. `ask` is asked for each call, and not again for a tool of
    which it said "yes to all"; without it nothing but reading is allowed."""

    def __init__(self, ask: AskUser | None = None) -> None:
        self._ask = ask
        self._always: set[str] = set()

    async def before(self, invocation: Invocation) -> Skip | None:
        """What is not allowed is skipped, and the model told."""
        name = invocation.tool.name
        if invocation.tool.read_only or name in self._always:
            return None
        said = self._ask(invocation) if self._ask is not None else "no"
        answer = await said if inspect.isawaitable(said) else said
        if answer == "yes to all":
            self._always.add(name)
        return None if answer in ("yes", "yes to all") else Skip(f"the user did not allow {name}", _DENIED)


async def real_outcome(call: Call, tools: Toolset, hooks: Iterable[HookLike]) -> StubOutcome:
    """What the tool gave; an error where it failed, or was not allowed."""
    (result,) = await dispatch(call, tools, hooks=hooks, limits=RunLimits())
    if result.error or result.reason == _DENIED:
        return StubOutcome("error", {"error": result.text.removeprefix("ERROR: ")})
    content = plain(result.output)
    is_long = len(msgspec.json.encode(content)) > _LONGEST
    return StubOutcome("ok", result.text if is_long else content)
