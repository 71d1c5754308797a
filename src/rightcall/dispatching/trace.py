"""A record of calls, hooks and interventions, call by call: `Trace` and its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from rightcall.dispatching.result import Kind
from rightcall.redaction.scrubber import Scrubber


class Event(msgspec.Struct, frozen=True, tag_field="event"):
    """One event of a trace; `call` is the index of the call in its batch, `hook` the index of the hook, both from 0."""


class HookBefore(Event, frozen=True, tag="hook_before"):
    """A hook's `before` ran, and answered.

    `call` is the call's index in its batch and `hook` the hook's among the hooks, both from 0; `action` is the
    answer, and `reason` its reason."""

    call: int
    hook: int
    action: Literal["continue", "skip", "terminate"]
    reason: str = ""


class HookBeforeError(Event, frozen=True, tag="hook_before_error"):
    """A hook's `before` raised. `call` and `hook` as in `HookBefore`; `message` is the error."""

    call: int
    hook: int
    message: str


class HookAfter(Event, frozen=True, tag="hook_after"):
    """A hook's `after` ran. `call` and `hook` as in `HookBefore`."""

    call: int
    hook: int


class HookAfterError(Event, frozen=True, tag="hook_after_error"):
    """A hook's `after` raised. `call` and `hook` as in `HookBefore`; `message` is the error."""

    call: int
    hook: int
    message: str


class HookCleanup(Event, frozen=True, tag="hook_cleanup"):
    """A hook's `cleanup` ran. `call` and `hook` as in `HookBefore`."""

    call: int
    hook: int


class HookCleanupError(Event, frozen=True, tag="hook_cleanup_error"):
    """A hook's `cleanup` raised. `call` and `hook` as in `HookBefore`; `message` is the error."""

    call: int
    hook: int
    message: str


class Outcome(Event, frozen=True, tag="outcome"):
    """The last event of every call: its outcome.

    - `call`: the call's index in its batch, from 0.
    - `name`: the tool.
    - `kind`: as in `Result`.
    - `reason`: why, in words.
    - `hook_error`: what a hook raised in `after` or `cleanup`.
    """

    call: int
    name: str
    kind: Kind
    reason: str = ""
    hook_error: str = ""


class Intervention(Event, frozen=True, tag="intervention"):
    """A decision of a guard policy about a turn.

    - `policy`: its name.
    - `action`: what happens: "tell" (the call runs, and its result contains this message too), "answer" (the call is
      not run: this is its result), "refuse" (it is not run, and the model is told why), "nudge" (the message is sent,
      and the model is asked again), "end" (once its calls have succeeded the task is done), "stop" (the task ends here,
      unfinished), "cut" (a result of the history is shortened).
    - `reason`: why, for the people who run the model.
    - `message`: for the model; at most 1,200 characters, except for an answer and a cut.
    - `call`: the index of the call among the reply's attempts; None for the whole reply.
    - `at`: of a cut, the index of the message in the history.
    """

    policy: str
    action: Literal["tell", "answer", "refuse", "nudge", "end", "stop", "cut"]
    reason: str
    message: str = ""
    call: int | None = None
    at: int | None = None


TraceEvent = (
    HookBefore | HookBeforeError | HookAfter | HookAfterError | HookCleanup | HookCleanupError | Outcome | Intervention
)
Row = tuple[Any, ...]
_SCRUBBER = Scrubber()
COMPLETED = "completed"  # the row of a call without incidents: its index, its name, and the number of hooks


class Trace:
    """The events of hooks and tools, call by call.

    `dispatch` appends to it, any number of times. Equal to a trace with the same events. `str(trace)` draws a tree.
    `events` are those it begins with."""

    __slots__ = ("_rows",)

    def __init__(self, events: Iterable[TraceEvent] = ()) -> None:
        # Each row is a class and its fields: events are created on access, because most runs never read them.
        self._rows: list[Row] = []
        if events:
            self.add(events)

    def add(self, events: Iterable[TraceEvent]) -> None:
        """Append these `events` to the trace."""
        self._rows += [(type(event), *msgspec.structs.astuple(event)) for event in events]

    @property
    def events(self) -> tuple[TraceEvent, ...]:
        """Return every event so far, in order."""
        return tuple([event for row in self._rows for event in _events_of_row(*row)])

    def __iter__(self) -> Iterator[TraceEvent]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and self.events == other.events

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Trace({list(self.events)!r})"

    def to_json(self) -> list[dict[str, Any]]:
        """Return the events as plain JSON data, without secrets that are recognized by their shape."""
        found: list[dict[str, Any]] = msgspec.to_builtins(self.events)
        return found

    @classmethod
    def from_json(cls, data: Any) -> Trace:
        """Return the trace that `to_json` wrote as `data`. Raises `msgspec.ValidationError` for anything else."""
        return cls(msgspec.convert(data, list[TraceEvent]))

    def __str__(self) -> str:
        """Return the trace as a tree, one branch for each call, and one line for each intervention of a policy. Calls
        and hooks are counted from 1, and invisible characters are escaped."""
        lines: list[str] = []
        branch: list[str] = []
        for event in self.events:
            if isinstance(event, Intervention):
                lines.append(_escape_invisible(f"guard  {event.policy}: {event.action}{_in_parentheses(event.reason)}"))
                continue
            branch.append(_format_call_event(event))
            if isinstance(event, Outcome):
                lines += [_escape_invisible(f"call {event.call + 1}  {event.name}"), *_draw_branch(branch)]
                branch = []
        return "\n".join([*lines, *_draw_branch(branch)])


def _events_of_row(kind: Any, call: Any, *fields: Any) -> list[TraceEvent]:
    """Return the events of one row of a `Trace`, with recognized secrets in texts replaced. A row `COMPLETED` stands
    for a call without incidents and gives `before` and `after` of every hook and the outcome; any other row is one
    event, of the class `kind`."""
    if kind is not COMPLETED:
        return [kind(call, *[_SCRUBBER.text(each) if isinstance(each, str) else each for each in fields])]
    name, hooks = fields
    befores: list[TraceEvent] = [HookBefore(call, at, "continue") for at in range(hooks)]
    return [*befores, *[HookAfter(call, at) for at in range(hooks)], Outcome(call, name, "completed")]


def _draw_branch(branch: list[str]) -> list[str]:
    """Return the lines of one call's branch of the tree, given the texts of its events: each after a branch mark, with
    invisible characters escaped."""
    return [("`- " if at == len(branch) else "|- ") + _escape_invisible(line) for at, line in enumerate(branch, 1)]


def _format_call_event(event: Any) -> str:
    """Return the text of one event of a call for the tree: the hook's number, stage and action or error, or the outcome
    with its reason. The text is not escaped; an `Intervention` is not accepted."""
    match event:
        case HookBefore():
            return f"hook {event.hook + 1} before: {event.action}{_in_parentheses(event.reason)}"
        case HookAfter():
            return f"hook {event.hook + 1} after"
        case HookCleanup():
            return f"hook {event.hook + 1} cleanup"
        case Outcome():
            broken = f"; a hook failed: {event.hook_error}" if event.hook_error else ""
            return event.kind + _in_parentheses(event.reason) + broken
    stage = {HookBeforeError: "before", HookAfterError: "after", HookCleanupError: "cleanup"}[type(event)]
    return f"hook {event.hook + 1} {stage}: raised {event.message}"


def _in_parentheses(reason: str) -> str:
    """Return the reason in parentheses after a blank; "" for an empty one."""
    return f" ({reason})" if reason else ""


def _escape_invisible(text: str) -> str:
    """Return the text with invisible characters as escapes."""
    return "".join([char if char.isprintable() else char.encode("unicode_escape").decode() for char in text])
