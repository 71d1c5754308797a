"""What the rules of every dialect have in common: events come one by one, and what is wrong is written down."""

from __future__ import annotations

from typing import Any

from rightcall.providers.sdk_view import obj
from rightcall.testing.conformance.streamed_events import StreamedEvent, read_json
from rightcall.types import Json

_MOST = 1000  # faults; whoever has not had enough by then does not read them


class StreamRules:
    """Takes the events of one answer; `faults` are what is wrong with them, each with the number of its event."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.number = 0  # of the event that is looked at
        self.ended = ""  # by what
        self._ids: set[str] = set()

    def judged(self, events: list[StreamedEvent]) -> list[str]:
        for self.number, event in enumerate(events):
            if len(self.faults) >= _MOST:
                self.say_of_all(f"and so on: {len(events) - self.number} events more were not looked at")
                return self.faults
            if event.fault:
                self.say(event.fault)
            elif event.payload is None:
                self.on_done_mark()
            elif self.ended and not self.may_follow(event.payload):
                self.say(f"it comes after {self.ended}, which ended the answer")
            else:
                self.take(event.name, event.payload)
        self.close()
        return self.faults

    def say(self, what: str) -> None:
        self.faults.append(f"event {self.number}: {what}")

    def say_of_all(self, what: str) -> None:
        self.faults.append(what)

    # -- what a dialect says ------------------------------------------------------------------------------------------

    def take(self, name: str | None, payload: Json) -> None:
        raise NotImplementedError

    def may_follow(self, payload: Json) -> bool:
        """May this come after the end?"""
        return False

    def on_done_mark(self) -> None:
        self.ended = self.ended or "[DONE]"

    def close(self) -> None:
        if not self.ended:
            self.say_of_all("the stream ends without an end: clients wait, or ask again without limit")

    # -- what several need --------------------------------------------------------------------------------------------

    def take_error(self, payload: Json, *keys: str) -> None:
        error = obj(payload.get("error")) or payload
        self.want_texts(error, *keys)
        self.ended = "the error"

    def want_texts(self, fields: Json, *names: str) -> None:
        for name in names:
            if not isinstance(fields.get(name), str) or not fields[name]:
                self.say(f"`{name}` must be a text that is not empty, not {fields.get(name)!r:.40}")

    def want_numbers(self, fields: Json, *names: str) -> None:
        for name in names:
            if type(fields.get(name)) is not int:
                self.say(f"`{name}` must be a whole number, not {fields.get(name)!r:.40}")

    def want_usage(self, usage: Any, *names: str) -> None:
        found = obj(usage)
        if found is None:
            self.say(f"`usage` must be an object with {', '.join(names)}, not {usage!r:.40}")
        else:
            self.want_numbers(found, *names)

    def new_call_id(self, id: Any, key: str = "id") -> None:
        """The id of a call that begins here."""
        if not isinstance(id, str) or not id:
            self.say(f"the call's `{key}` must be a text that is not empty, not {id!r:.40}")
        elif id in self._ids:
            self.say(f"two calls have the id {id!r:.60}")
        else:
            self._ids.add(id)

    def want_call_name(self, name: Any) -> None:
        if not isinstance(name, str) or not name:
            self.say(f"the call's name must be whole when it begins, not {name!r:.40}")


def is_object(said: Any) -> bool:
    """Is this the text of a JSON object?"""
    return isinstance(said, str) and isinstance(read_json(said), dict)


class SaidSoFar:
    """Text that comes in pieces: is it blank so far? It may be asked after each piece."""

    def __init__(self) -> None:
        self._any = self._solid = False

    def add(self, piece: str) -> None:
        self._any = self._any or bool(piece)
        self._solid = self._solid or bool(piece.strip())

    @property
    def is_blank(self) -> bool:
        return self._any and not self._solid
