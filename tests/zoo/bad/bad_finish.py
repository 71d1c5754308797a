"""The finish reason is wrong, duplicated, too early or missing."""

from __future__ import annotations

from typing import Any

from zoo.bad_server import BadServer
from zoo.question import Json, Question
from zoo.script import Output
from zoo.speech import Event
from zoo.spoiling import each_payload, no_event, streamed

_STOP = {"chat": "stop", "messages": "end_turn"}
_ODD = {"chat": "eos", "messages": "tool_calls", "gemini": "eos"}


def set_finish(words: dict[str, str]) -> Any:
    def change_output(output: Output, question: Question) -> Output:
        return output._replace(finish=words[question.api])

    return change_output


def has_finish(payload: Any) -> bool:
    return isinstance(payload, dict) and any(each.get("finish_reason") for each in payload.get("choices") or ())


def duplicate_finish(events: list[Event], question: Question) -> list[Event]:
    """Add a second finish after the call, with the reason stop."""
    last = next(at for at, (_, payload) in enumerate(events) if has_finish(payload))
    name, payload = events[last]
    stop = {**payload, "choices": [{**payload["choices"][0], "finish_reason": "stop"}]}
    return [*events[: last + 1], (name, stop), *events[last + 1 :]]


def remove_finish(events: list[Event], question: Question) -> list[Event]:
    if question.api == "gemini":
        for _, payload in events:
            payload["candidates"][0].pop("finishReason", None)
        return events
    if question.api == "ollama":
        return [each for each in events if not each[1].get("done")]
    return [each for each in events if each[1] != "[DONE]" and not has_finish(each[1])]


def move_finish_first(events: list[Event], question: Question) -> list[Event]:
    """Move the finish after the first piece of the call, before its arguments."""
    last = next(at for at, (_, payload) in enumerate(events) if has_finish(payload))
    first = next(at for at, (_, payload) in enumerate(events) if "tool_calls" in str(payload))
    return [*events[: first + 1], events[last], *events[first + 1 : last], *events[last + 1 :]]


def set_finish_to_null(payload: Json, api: str, at: int) -> None:
    for each in payload.get("choices") or ():
        each["finish_reason"] = None
    if "stop_reason" in payload:
        payload["stop_reason"] = None
    if isinstance(payload.get("delta"), dict) and "stop_reason" in payload["delta"]:
        payload["delta"]["stop_reason"] = None


LOST = "calls that nobody runs: the turn is taken for done"
SERVERS = [
    BadServer(
        "finish_stop", "wrong_finish", LOST, apis=("chat", "messages"), output=set_finish(_STOP),
        reports="sgl-project/sglang#2877 ollama/ollama#7963 BerriAI/litellm#12862",
    ),
    BadServer(
        "finish_odd", "wrong_finish", "a word that the dialect does not have", apis=("chat", "messages", "gemini"),
        output=set_finish(_ODD), reports="BerriAI/litellm#27139",
    ),
    BadServer(
        "finish_null", "wrong_finish", LOST, apis=("chat", "messages"), damage=each_payload(set_finish_to_null),
        reports="BerriAI/litellm#12862",
    ),
    BadServer(
        "finish_twice", "wrong_finish", "two finishes, of which the last says stop: the calls are discarded",
        modes=("stream",), damage=streamed(duplicate_finish), reports="RayBytes/ChatMock#114",
    ),
    BadServer(
        "finish_early", "wrong_finish", "a finish before the arguments: a call without any",
        modes=("stream",), damage=streamed(move_finish_first), reports="sgl-project/sglang#2877",
    ),
    BadServer(
        "no_finish", "wrong_finish", "a stream without an end: some ask again without limit",
        apis=("chat", "ollama", "gemini"), modes=("stream",), damage=streamed(remove_finish),
        reports="BerriAI/litellm#27139",
    ),
    BadServer(
        "no_message_delta", "wrong_finish", "no stop reason at all", apis=("messages",), modes=("stream",),
        damage=no_event("message_delta"), reports="BerriAI/litellm#27139",
    ),
    BadServer(
        "no_message_stop", "wrong_finish", "a message without its end", apis=("messages",), modes=("stream",),
        damage=no_event("message_stop"), reports="BerriAI/litellm#27139",
    ),
    BadServer(
        "no_completed", "wrong_finish", "a response that is never completed", apis=("responses",), modes=("stream",),
        damage=no_event("response.completed"), reports="BerriAI/litellm#27139 openai/codex#10635",
    ),
]  # fmt: skip
