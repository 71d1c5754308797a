"""OpenAI Chat Completions. Its messages are the shape that all others are read into, and stay as they are, but for what
it has two words for: `function_call` and `functions`, the role "function", and custom calls.
"""

from __future__ import annotations

from typing import Any

from rightcall.providers.history_messages import OPAQUE
from rightcall.providers.sdk_view import arguments, compact_json, obj, objects, text
from rightcall.serve.client_request import ClientRequest
from rightcall.serve.request_readers.body_fields import limits
from rightcall.serve.request_readers.declared_tools import declared, entries
from rightcall.serve.request_readers.request_messages import CallIds, RequestMessages, entries_of, entry
from rightcall.serve.request_readers.tool_choices import AskedChoice, chosen, read_choice
from rightcall.serve.request_readers.whole_requests import whole_request
from rightcall.types import Json


def read_chat(body: Json, model: str, stream: bool | None) -> ClientRequest:
    talk, ids = RequestMessages("chat"), CallIds()
    for at, each in enumerate(entries_of(body, "messages")):
        talk.add(_message(entry(each, "messages", at), ids), at)
    given = entries(body, "tools", "functions")
    choice, tools = chosen(_choice(body), declared(given or []))
    return whole_request(
        "chat",
        body,
        talk,
        choice,
        tools,
        has_tools=given is not None,
        model=model or text(body.get("model")),
        parallel=body.get("parallel_tool_calls") is not False,
        stream=body.get("stream") is True if stream is None else stream,
        wants_usage=(obj(body.get("stream_options")) or {}).get("include_usage") is True,
        **limits(body, most=("max_completion_tokens", "max_tokens"), stop="stop"),
    )


def _choice(body: Json) -> AskedChoice:
    given = body.get("tool_choice")
    return read_choice(body.get("function_call") if given is None else given)


def _message(message: Json, ids: CallIds) -> Json:
    role = message.get("role")
    if not isinstance(role, str):
        message = {**message, "role": "user"}
    if role == "function":
        return _legacy_result(message, ids)
    if role == "tool":
        ids.of_result(text(message.get("tool_call_id")), "")
        return message
    if role != "assistant":
        return message
    return _assistant(message, ids)


def _legacy_result(message: Json, ids: CallIds) -> Json:
    name = text(message.get("name"))
    return {**message, "role": "tool", "tool_call_id": ids.of_result("", name)}


def _assistant(message: Json, ids: CallIds) -> Json:
    legacy = obj(message.get("function_call"))
    calls = message.get("tool_calls")
    if legacy is not None and not calls:
        made = {"id": ids.of_call("", text(legacy.get("name"))), "type": "function", "function": legacy}
        return {**{key: value for key, value in message.items() if key != "function_call"}, "tool_calls": [made]}
    for call in objects(calls):
        ids.of_call(text(call.get("id")), "") if text(call.get("id")) else None
    if not any(obj(call.get("custom")) for call in objects(calls)):
        return message
    return _with_functions(message, objects(calls))


def _with_functions(message: Json, calls: list[Json]) -> Json:
    """Custom calls as calls of the function that stands for their tool."""
    extras = {text(call.get("id")): {"type": "custom"} for call in calls if obj(call.get("custom")) is not None}
    return {**message, "tool_calls": [_as_function(call) for call in calls], OPAQUE: {"chat": extras}}


def _as_function(call: Json) -> Json:
    custom: Any = obj(call.get("custom"))
    if custom is None:
        return call
    given = compact_json({"input": arguments(custom.get("input"))})
    return {
        "id": call.get("id"),
        "type": "function",
        "function": {"name": text(custom.get("name")), "arguments": given},
    }
