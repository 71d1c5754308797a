"""A question as the body of a request in one dialect: as clients write it, with nothing put right.

body_of(QUESTIONS["plain"], "messages", "m", stream=True, sending=Sending())
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from rightcall.api_names import Api
from rightcall.backends.profiles import UNKNOWN
from rightcall.backends.request import Request
from rightcall.backends.request_body import write_body
from rightcall.backends.request_plan import ModeChoice, make_plan
from rightcall.doctor.questions import ServerQuestion
from rightcall.doctor.seen_answer import SeenAnswer, SeenCall
from rightcall.providers import anthropic, gemini, ollama, openai_chat, openai_responses
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.types import Call, Json

LISTS: dict[Api, str] = {
    "chat": "messages",
    "responses": "input",
    "messages": "messages",
    "ollama": "messages",
    "gemini": "contents",
}
_RESULT = "rain, 9 degrees"
_REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking", "extra_content")


class Sending(msgspec.Struct, frozen=True, kw_only=True):
    """How this server wants its requests: the field that limits an answer, and whether a temperature is taken."""

    max_tokens: str = "max_tokens"
    temperature: float | None = 0.0


def body_of(question: ServerQuestion, api: Api, model: str, *, stream: bool, sending: Sending) -> Json:
    """The body that a client would send."""
    request = Request(
        messages=question.messages,
        tools=list(question.tools) or None,
        choice=question.choice,
        max_tokens=question.max_tokens,
        temperature=sending.temperature,
        sampling=question.sampling,
        extra=question.extra.get(api, {}),
    )
    profile = msgspec.structs.replace(UNKNOWN, max_tokens=sending.max_tokens)
    plan = make_plan(request, ModeChoice("native", profile), api, model, stream=stream)
    body = write_body(plan)
    if api == "chat":
        body["messages"] = question.messages
    elif api == "responses":
        _spoil(body, question)
    for tool in question.tools:
        if (name := plan.naming.server_name(tool.name)) != tool.name:
            body = json.loads(json.dumps(body).replace(json.dumps(name), json.dumps(tool.name)))
    return body


def _spoil(body: Json, question: ServerQuestion) -> None:
    """Arguments in the history as the question has them, also where they are no JSON."""
    calls = [call for message in question.messages for call in objects(message.get("tool_calls"))]
    items = [item for item in objects(body.get("input")) if item.get("type") == "function_call"]
    for item, call in zip(items, calls, strict=True):
        item["arguments"] = call["function"]["arguments"]


def going_on(body: Json, api: Api, answer: SeenAnswer, *, reasoning: bool) -> Json:
    """The body of the next request: with the server's turn as it gave it, and a result for each of its calls."""
    turn = answer.turn if reasoning else [entry for each in answer.turn for entry in _without_reasoning(each, api)]
    results = [entry for call in answer.calls for entry in _results(call, api)]
    if api == "messages":
        results = [{"role": "user", "content": [part for each in results for part in objects(each["content"])]}]
    name = LISTS[api]
    return {**body, name: [*_entries(body.get(name)), *turn, *results]}


def _entries(given: Any) -> Sequence[Any]:
    return given if isinstance(given, list) else [{"role": "user", "content": given}]


def _results(call: SeenCall, api: Api) -> list[Json]:
    made = Call(text(call.name), obj(call.value) or {}, "", id=text(call.id))
    if api == "responses":
        return [openai_responses.tool_result(made, _RESULT)]
    if api == "messages":
        return [anthropic.tool_result(made, _RESULT)]
    if api == "gemini":
        return [gemini.tool_result(made, _RESULT)]
    return [ollama.tool_result(made, _RESULT) if api == "ollama" else openai_chat.tool_result(made, _RESULT)]


def _without_reasoning(entry: Json, api: Api) -> list[Json]:
    """As clients keep it that know nothing of reasoning; an item that is nothing else goes."""
    if api == "responses":
        return [] if entry.get("type") == "reasoning" else [entry]
    if api == "messages":
        blocks = [each for each in objects(entry.get("content")) if "thinking" not in text(each.get("type"))]
        return [{**entry, "content": blocks}]
    if api == "gemini":
        parts = [_unsigned(each) for each in objects(entry.get("parts")) if each.get("thought") is not True]
        return [{**entry, "parts": parts}]
    plain = {key: value for key, value in entry.items() if key not in _REASONING}
    if isinstance(plain.get("tool_calls"), list):
        plain["tool_calls"] = [_plain_call(each) for each in objects(plain["tool_calls"])]
    return [plain]


def _plain_call(call: Json) -> Json:
    return {key: value for key, value in call.items() if key in ("id", "type", "function")}


def _unsigned(part: Json) -> Json:
    return {key: value for key, value in part.items() if key not in ("thoughtSignature", "thought_signature")}
