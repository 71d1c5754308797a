"""How a right answer is spoilt on the wire: small changes, the same in every dialect, that can be put together.

each_call(without("id"))            every call of the answer loses its id, streamed or whole
events(lambda answer, all: ...)     a stream with other events
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from zoo.question import Json, Question, dicts
from zoo.script import Said
from zoo.speech import Answer, Event

Spoiling = Callable[[Answer, Question], Answer]
Wording = Callable[[Said, Question], Said]
_ID = {"chat": "id", "responses": "call_id", "messages": "id", "ollama": "id", "gemini": "id"}


def both(*spoilings: Spoiling) -> Spoiling:
    def spoil(answer: Answer, question: Question) -> Answer:
        for each in spoilings:
            answer = each(answer, question)
        return answer

    return spoil


def calls_in(api: str, payload: Any) -> list[Json]:
    """Where calls stand in a payload of a stream or in a whole answer: their entries, items, blocks or parts."""
    if not isinstance(payload, dict):
        return []
    if api == "chat":
        held = [choice.get("delta") or choice.get("message") or {} for choice in dicts(payload.get("choices"))]
        return [call for each in held for call in dicts(each.get("tool_calls"))]
    if api == "responses":
        outputs = dicts(payload.get("output")) + dicts((payload.get("response") or {}).get("output"))
        found = [*outputs, *([payload["item"]] if isinstance(payload.get("item"), dict) else [])]
        return [item for item in found if item.get("type") == "function_call"]
    if api == "messages":
        block = payload.get("content_block")
        found = dicts(payload.get("content")) + ([block] if isinstance(block, dict) else [])
        return [each for each in found if each.get("type") == "tool_use"]
    if api == "ollama":
        return dicts((payload.get("message") or {}).get("tool_calls"))
    parts = [
        part for each in dicts(payload.get("candidates")) for part in dicts((each.get("content") or {}).get("parts"))
    ]
    return [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), dict)]


def each_payload(change: Callable[[Any, str, int], Any]) -> Spoiling:
    """Every payload changed: `change(payload, api, number)` may write into it, or give another; `...` drops it."""

    def spoil(answer: Answer, question: Question) -> Answer:
        if answer.events is None:
            body = copy.deepcopy(answer.body)
            return answer._replace(body=_changed(change, body, question.api, 0))
        out: list[Event] = []
        for at, (name, payload) in enumerate(copy.deepcopy(answer.events)):
            new = _changed(change, payload, question.api, at)
            out += [] if new is ... else [(name, new)]
        return answer._replace(events=out)

    return spoil


def _changed(change: Callable[[Any, str, int], Any], payload: Any, api: str, at: int) -> Any:
    if not isinstance(payload, dict):
        return payload
    new = change(payload, api, at)
    return payload if new is None else new


def each_call(change: Callable[[Json, str, int], Any]) -> Spoiling:
    """Every place where a call stands is changed: `change(entry, api, number of the entry)` writes into it."""

    def spoil(answer: Answer, question: Question) -> Answer:
        count = 0

        def changed(payload: Any, api: str, at: int) -> None:
            nonlocal count
            for entry in calls_in(api, payload):
                change(entry, api, count)
                count += 1

        return each_payload(changed)(answer, question)

    return spoil


def id_of(api: str) -> str:
    """The key of a call's id."""
    return _ID[api]


def with_id(make: Callable[[int], Any]) -> Spoiling:
    """Ids of one's own, made from the number of the call; `...` leaves them out. Only where one stands."""

    def spoil(answer: Answer, question: Question) -> Answer:
        seen: dict[Any, int] = {}

        def change(entry: Json, api: str, count: int) -> None:
            key = id_of(api)
            if not entry.get(key):
                return
            new = make(seen.setdefault(entry[key], len(seen)))
            if new is ...:
                del entry[key]
            else:
                entry[key] = new

        return each_call(change)(answer, question)

    return spoil


def without(key: str) -> Callable[[Json, str, int], None]:
    def change(entry: Json, api: str, count: int) -> None:
        entry.pop(key, None)

    return change


def put(key: str, value: Any) -> Callable[[Json, str, int], None]:
    def change(entry: Json, api: str, count: int) -> None:
        entry[key] = value

    return change


def streamed(change: Callable[[list[Event], Question], list[Event]]) -> Spoiling:
    """Another list of events; whole answers stay."""

    def spoil(answer: Answer, question: Question) -> Answer:
        if answer.events is None:
            return answer
        return answer._replace(events=change(copy.deepcopy(answer.events), question))

    return spoil


def no_event(*kinds: str) -> Spoiling:
    """Without the events of these types."""
    return streamed(lambda events, question: [each for each in events if each[0] not in kinds])


# -- words -------------------------------------------------------------------------------------------------------------


def raw(write: Callable[[Json], Any]) -> Wording:
    """Arguments that stand on the wire as this makes them."""

    def say(said: Said, question: Question) -> Said:
        return said._replace(calls=tuple([call._replace(raw=write(call.arguments)) for call in said.calls]))

    return say


def as_text(write: Callable[[Any], str]) -> Wording:
    """No call at all: the text that this makes of all of them."""

    def say(said: Said, question: Question) -> Said:
        return Said(text=write(said.calls), reasoning=said.reasoning)

    return say


def until_told(wording: Wording) -> Wording:
    """Only until the model is told what was wrong: then it does better."""

    def say(said: Said, question: Question) -> Said:
        return said if question.is_told else wording(said, question)

    return say


def renamed(write: Callable[[str], str]) -> Wording:
    def say(said: Said, question: Question) -> Said:
        return said._replace(calls=tuple([call._replace(name=write(call.name)) for call in said.calls]))

    return say


def twice(said: Said, question: Question) -> Said:
    """Two calls of the same tool, of two files."""
    call = said.call
    other = {key: f"2{value}" if isinstance(value, str) else value for key, value in call.arguments.items()}
    second = call._replace(arguments=other if other != call.arguments else call.arguments, id=f"{call.id}b")
    return said._replace(calls=(call, second))
