"""Hooks: asked before a call runs, told after it, told to clean up when it did not come to that.

    class Approve(Hook):
        async def before(self, invocation):
            return None if invocation.tool.read_only or await ask(invocation) else Skip("the user said no", "denied")

| what happens                    | who cleans up              | who is told after          |
|---------------------------------|----------------------------|----------------------------|
| every hook continues, tool ok   | nobody                     | all, in order              |
| every hook continues, it fails  | all                        | nobody                     |
| a hook skips                    | nobody                     | all, also those not asked  |
| a hook terminates               | all, also those not asked  | nobody                     |
| a hook raises before            | those asked before it      | nobody                     |

A hook that raises after a call, or while it cleans up, keeps neither the others from being told nor the outcome from
the trace; its error is raised then. Methods may be async or not. A plain function is a hook that is only asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec

from rightcall.dispatching.result import Result
from rightcall.dispatching.trace import Intervention
from rightcall.errors import CallerError
from rightcall.types import Call, Problem, Repair, Tool


class Continue(msgspec.Struct, frozen=True):
    """Said by a hook: go on. A hook that gives None says the same."""


class Skip(msgspec.Struct, frozen=True):
    """Said by a hook: do not run the tool; this `output` is its output. `reason` goes into the trace."""

    output: Any
    reason: str = ""


class Terminate(msgspec.Struct, frozen=True):
    """Said by a hook: do not run the tool, nor any call after it. `reason` is that of the `DispatchTerminated` which is
    raised."""

    reason: str


Action = Continue | Skip | Terminate


class Invocation(msgspec.Struct, frozen=True, eq=False):
    """A call that is about to run. Each is equal to itself only, so that a hook can keep something for it in a
    dictionary.

    - `index`: its place in the batch, from 0.
    - `call`: as it was given.
    - `tool`: what it calls.
    - `arguments`: the very values that the tool gets, in its own types.
    - `notes`: what is to be known of the call and does not block it.
    """

    index: int
    call: Call
    tool: Tool
    arguments: Mapping[str, Any]
    notes: tuple[Problem, ...] = ()

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """The receipts: what was changed in what the model wrote."""
        return self.call.repairs


class Hook:
    """Asked before a call runs, told after it, told to clean up when it did not come to that. Overrides what it needs;
    methods may be async or not. A hook may see several calls at once, when they run in parallel."""

    def before(self, invocation: Invocation) -> Action | Awaitable[Action | None] | None:
        """May this `invocation` run? None or `Continue()`, `Skip(output)` or `Terminate(reason)`. A hook that raises
        ends the batch."""
        return None

    def after(self, invocation: Invocation, result: Result) -> Awaitable[None] | None:
        """The `invocation` is over: `result.kind` says whether the tool ran ("completed") or not ("skipped"); its
        output is whole."""

    def cleanup(self, invocation: Invocation, error: BaseException) -> Awaitable[None] | None:
        """The `invocation` failed, or was stopped, with this `error`. Also comes without a `before`."""

    def intervened(self, intervention: Intervention) -> None:
        """A policy of the guard said this of a turn (`intervention`), before any of its calls ran. Told by a
        `Runner`."""


HookLike = Hook | Callable[[Invocation], Any]


def as_hooks(hooks: Iterable[HookLike]) -> list[Hook]:
    """Each as a hook; a plain function is one that is only asked."""
    found = list(hooks)
    for hook in found:
        if not isinstance(hook, Hook):
            return [each if isinstance(each, Hook) else _function(each, at) for at, each in enumerate(found)]
    return found  # type: ignore[return-value]


class _Function(Hook):
    def __init__(self, function: Callable[[Invocation], Any]) -> None:
        self.before = function  # type: ignore[method-assign,assignment]


def _function(hook: object, at: int) -> Hook:
    if isinstance(hook, type) or not callable(hook):
        raise CallerError(f"hook {at + 1} is {hook!r:.80}; pass an object of a class made from Hook, or a function")
    return _Function(hook)
