"""Damage to correct answers: small changes that work in every dialect and can be combined.

each_call(without("id"))            remove the id of every call of the answer, streamed or whole
streamed(lambda events, question: ...)     change the events of a stream
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from zoo.question import Json, Question, dicts
from zoo.script import Output
from zoo.speech import Answer, Event

AnswerDamage = Callable[[Answer, Question], Answer]
OutputChange = Callable[[Output, Question], Output]
_ID = {"chat": "id", "responses": "call_id", "messages": "id", "ollama": "id", "gemini": "id"}


def combine(*damages: AnswerDamage) -> AnswerDamage:
    def damage(answer: Answer, question: Question) -> Answer:
        for each in damages:
            answer = each(answer, question)
        return answer

    return damage


def calls_in(api: str, payload: Any) -> list[Json]:
    """Return the calls in a payload of a stream or in a whole answer: their entries, items, blocks or parts."""
    if not isinstance(payload, dict):
        return []
    if api == "chat":
        messages = [choice.get("delta") or choice.get("message") or {} for choice in dicts(payload.get("choices"))]
        return [call for each in messages for call in dicts(each.get("tool_calls"))]
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


def each_payload(change: Callable[[Any, str, int], Any]) -> AnswerDamage:
    """Change every payload: `change(payload, api, number)` modifies it or returns another one; `...` drops it."""

    def damage(answer: Answer, question: Question) -> Answer:
        if answer.events is None:
            body = copy.deepcopy(answer.body)
            return answer._replace(body=_apply(change, body, question.api, 0))
        out: list[Event] = []
        for at, (name, payload) in enumerate(copy.deepcopy(answer.events)):
            new = _apply(change, payload, question.api, at)
            out += [] if new is ... else [(name, new)]
        return answer._replace(events=out)

    return damage


def _apply(change: Callable[[Any, str, int], Any], payload: Any, api: str, at: int) -> Any:
    if not isinstance(payload, dict):
        return payload
    new = change(payload, api, at)
    return payload if new is None else new


def each_call(change: Callable[[Json, str, int], Any]) -> AnswerDamage:
    """Change every occurrence of a call: `change(entry, api, number of the entry)` modifies it."""

    def damage(answer: Answer, question: Question) -> Answer:
        count = 0

        def change_entries(payload: Any, api: str, at: int) -> None:
            nonlocal count
            for entry in calls_in(api, payload):
                change(entry, api, count)
                count += 1

        return each_payload(change_entries)(answer, question)

    return damage


def id_of(api: str) -> str:
    """Return the key of a call's id."""
    return _ID[api]


def with_id(make: Callable[[int], Any]) -> AnswerDamage:
    """Replace the ids by `make(number of the call)`, where there is one; `...` removes them."""

    def damage(answer: Answer, question: Question) -> Answer:
        numbers: dict[Any, int] = {}

        def change(entry: Json, api: str, count: int) -> None:
            key = id_of(api)
            if not entry.get(key):
                return
            new = make(numbers.setdefault(entry[key], len(numbers)))
            if new is ...:
                del entry[key]
            else:
                entry[key] = new

        return each_call(change)(answer, question)

    return damage


def without(key: str) -> Callable[[Json, str, int], None]:
    def change(entry: Json, api: str, count: int) -> None:
        entry.pop(key, None)

    return change


def set_key(key: str, value: Any) -> Callable[[Json, str, int], None]:
    def change(entry: Json, api: str, count: int) -> None:
        entry[key] = value

    return change


def streamed(change: Callable[[list[Event], Question], list[Event]]) -> AnswerDamage:
    """Change the list of events; whole answers stay the same."""

    def damage(answer: Answer, question: Question) -> Answer:
        if answer.events is None:
            return answer
        return answer._replace(events=change(copy.deepcopy(answer.events), question))

    return damage


def no_event(*kinds: str) -> AnswerDamage:
    """Remove the events of these types."""
    return streamed(lambda events, question: [each for each in events if each[0] not in kinds])


# -- output of the model -----------------------------------------------------------------------------------------------


def raw(write: Callable[[Json], Any]) -> OutputChange:
    """Replace the encoded arguments by the result of `write`."""

    def change_output(output: Output, question: Question) -> Output:
        return output._replace(calls=tuple([call._replace(raw=write(call.arguments)) for call in output.calls]))

    return change_output


def as_text(write: Callable[[Any], str]) -> OutputChange:
    """Replace the calls by the text that `write` makes of them."""

    def change_output(output: Output, question: Question) -> Output:
        return Output(text=write(output.calls), reasoning=output.reasoning)

    return change_output


def until_feedback(change: OutputChange) -> OutputChange:
    """Apply a change only until the model gets feedback."""

    def change_output(output: Output, question: Question) -> Output:
        return output if question.has_feedback else change(output, question)

    return change_output


def rename_calls(write: Callable[[str], str]) -> OutputChange:
    def change_output(output: Output, question: Question) -> Output:
        return output._replace(calls=tuple([call._replace(name=write(call.name)) for call in output.calls]))

    return change_output


def twice(output: Output, question: Question) -> Output:
    """Call the same tool for two files."""
    call = output.call
    other = {key: f"2{value}" if isinstance(value, str) else value for key, value in call.arguments.items()}
    second = call._replace(arguments=other if other != call.arguments else call.arguments, id=f"{call.id}b")
    return output._replace(calls=(call, second))
