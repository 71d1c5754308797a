"""Events held back until nothing can recast them any more: for those who show text and cannot take it back."""

from __future__ import annotations

from rightcall.parsing.fold import Fold
from rightcall.types import Arguments, Call, CallEnd, CallStart, Done, Event, Reasoning, Text


class Hold:
    """Text waits for the first call; reasoning for whatever is said or called behind it; both for the end."""

    __slots__ = ("_has_call", "_held")

    def __init__(self) -> None:
        self._held: list[Event] = []
        self._has_call = False

    def pass_on(self, events: list[Event], *, closed: bool) -> list[Event]:
        """Of what was held and these, the events that may go out now."""
        out: list[Event] = []
        for event in events:
            if isinstance(event, CallStart) or (self._has_call and isinstance(event, Text)):
                out += self._release()
                out.append(event)
                self._has_call = True
            elif self._held or not self._has_call or isinstance(event, Reasoning):
                self._held.append(event)
            else:
                out.append(event)
        return [*out, *self._release()] if closed else out

    def _release(self) -> list[Event]:
        """What was held, as it came out in the end: nothing of it is recast."""
        held, self._held = self._held, []
        of_calls = [event for event in held if isinstance(event, (Arguments, CallEnd))]
        settled = Fold()
        settled.add([event for event in held if not isinstance(event, (Arguments, CallEnd))])
        reply = settled.reply("", None)
        parts = [part for part in reply.parts if not isinstance(part, Call)]
        done = [Done(reply.done)] if reply.done is not None else []
        return [*parts, *reply.problems, *done, *of_calls]
