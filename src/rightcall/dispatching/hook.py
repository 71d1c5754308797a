"""Hooks: run before a call, after it, or to clean up when it failed or was stopped.

    class Approve(Hook):
        async def before(self, invocation):
            return None if invocation.tool.read_only or await ask(invocation) else Skip("the user said no", "denied")

| what happens                    | `cleanup` is called for     | `after` is called for      |
|---------------------------------|-----------------------------|----------------------------|
| every hook continues, tool ok   | none                        | all, in order              |
| every hook continues, it fails  | all                         | none                       |
| a hook skips                    | none                        | all, also without `before` |
| a hook terminates               | all, also without `before`  | none                       |
| a hook raises in `before`       | those before it             | none                       |

A hook that raises in `after` or `cleanup` does not keep the others from being called, nor the outcome from the trace;
its error is raised afterwards. Methods may be async or not. A plain function is a hook with only a `before`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec

from rightcall.dispatching.result import Result
from rightcall.dispatching.trace import Intervention
from rightcall.errors import CallerError
from rightcall.types import Call, Problem, Repair, Tool


class Continue(msgspec.Struct, frozen=True):
    """Answer of a hook: run the tool. Returning None means the same."""


class Skip(msgspec.Struct, frozen=True):
    """Answer of a hook: do not run the tool; use this `output` as its output. `reason` goes into the trace."""

    output: Any
    reason: str = ""


class Terminate(msgspec.Struct, frozen=True):
    """Answer of a hook: do not run the tool, nor any call after it.

    `reason` is the reason of the `DispatchTerminated` that is raised."""

    reason: str


Action = Continue | Skip | Terminate


class Invocation(msgspec.Struct, frozen=True, eq=False):
    """A call that is about to run.

    Each is equal to itself only, so that a hook can use it as a key.

    - `index`: its place in the batch, from 0.
    - `call`: as it was given.
    - `tool`: what it calls.
    - `arguments`: the values that the tool gets, in its own types.
    - `notes`: problems of the call that do not block it.
    """

    index: int
    call: Call
    tool: Tool
    arguments: Mapping[str, Any]
    notes: tuple[Problem, ...] = ()

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """Return the repairs of the call: what was changed in the model's text."""
        return self.call.repairs


class Hook:
    """Base class of hooks. Override `before`, `after` and `cleanup` as needed; methods may be async or not.

    A hook may see several calls at once, when they run in parallel."""

    def before(self, invocation: Invocation) -> Action | Awaitable[Action | None] | None:
        """Decide whether this `invocation` may run.

        Return None or `Continue()`, `Skip(output)` or `Terminate(reason)`. A hook that raises ends the batch."""
        return None

    def after(self, invocation: Invocation, result: Result) -> Awaitable[None] | None:
        """Observe the `result` of this `invocation`.

        `result.kind` says whether the tool ran ("completed") or not ("skipped"); its output is whole."""

    def cleanup(self, invocation: Invocation, error: BaseException) -> Awaitable[None] | None:
        """Release what was acquired for an `invocation` that failed or was stopped with this `error`.

        Also called without a `before`."""

    def intervened(self, intervention: Intervention) -> None:
        """Observe an `intervention` of a guard policy in a turn, before any call of the turn runs. A `Runner` calls it,
        `dispatch` does not."""


HookLike = Hook | Callable[[Invocation], Any]


def as_hooks(hooks: Iterable[HookLike]) -> list[Hook]:
    """Return these hooks as a list of `Hook`; a function becomes a hook with only a `before`. Raises `CallerError` for
    anything else, such as a class."""
    found = list(hooks)
    for hook in found:
        if not isinstance(hook, Hook):
            return [each if isinstance(each, Hook) else _to_hook(each, at) for at, each in enumerate(found)]
    return found  # type: ignore[return-value]


class _FunctionHook(Hook):
    def __init__(self, function: Callable[[Invocation], Any]) -> None:
        self.before = function  # type: ignore[method-assign,assignment]


def _to_hook(hook: object, at: int) -> Hook:
    """Return a function as a hook whose `before` it is. Raises `CallerError` for a class and for a value that cannot
    be called."""
    if isinstance(hook, type) or not callable(hook):
        raise CallerError(f"hook {at + 1} is {hook!r:.80}; pass an object of a class made from Hook, or a function")
    return _FunctionHook(hook)
