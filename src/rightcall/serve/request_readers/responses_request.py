"""OpenAI Responses: one list of items, in which a turn of the assistant is several; `instructions` beside it. Not all
calls are of functions: custom tools, shells, patches and searches for tools have items of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightcall.providers.sdk_view import compact_json, items, obj, objects, text
from rightcall.serve.client_request import ClientRequest, RefusedRequest
from rightcall.serve.known_tools import is_call, item_call
from rightcall.serve.request_readers.body_fields import limits
from rightcall.serve.request_readers.content_parts import (
    Parts,
    image_part,
    joined_text,
    responses_parts,
    text_part,
)
from rightcall.serve.request_readers.declared_tools import DeclaredTools, declared, entries
from rightcall.serve.request_readers.request_messages import NOWHERE, RequestMessages, entry
from rightcall.serve.request_readers.tool_choices import chosen, read_choice
from rightcall.serve.request_readers.whole_requests import whole_request
from rightcall.types import Json

_CALL = frozenset(("type", "id", "call_id", "name", "arguments", "input", "status"))


def read_responses(body: Json, model: str, stream: bool | None) -> ClientRequest:
    given = _input(body)
    tools = declared([*(entries(body, "tools") or ()), *_found_tools(given)])
    talk = RequestMessages("responses")
    if told := joined_text(_told(body.get("instructions"))):
        talk.add({"role": "system", "content": told}, NOWHERE)
    reading = _Items(talk, tools)
    for at, each in enumerate(given):
        reading.read(entry(each, "input", at), at)
    talk.close()
    choice, left = chosen(read_choice(body.get("tool_choice")), tools)
    has_tools = bool(entries(body, "tools") or tools.tools)
    return whole_request(
        "responses",
        body,
        talk,
        choice,
        left,
        has_tools=has_tools,
        model=model or text(body.get("model")),
        parallel=body.get("parallel_tool_calls") is not False,
        stream=body.get("stream") is True if stream is None else stream,
        previous=text(body.get("previous_response_id")),
        **limits(body, most=("max_output_tokens",), stop="stop"),
    )


def _input(body: Json) -> list[Any]:
    """The items. Raises `RefusedRequest` where there is nothing to answer."""
    given = body.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if isinstance(given, list):
        return given
    if given is None and (text(body.get("previous_response_id")) or body.get("instructions")):
        return []
    kind = "is missing" if given is None else f"is of the type {type(given).__name__}"
    raise RefusedRequest(f"`input` {kind}; send a text or a list of items")


def _told(instructions: Any) -> Parts:
    """Text, or a list of messages."""
    if isinstance(instructions, str):
        return responses_parts(instructions)
    return [part for each in objects(instructions) for part in responses_parts(each.get("content"))]


def _found_tools(given: list[Any]) -> list[Any]:
    """The tools that searches brought: they may be called from then on."""
    found = [each for each in given if isinstance(each, dict) and each.get("type") == "tool_search_output"]
    return [tool for each in found for tool in items(each.get("tools"))]


class _Items:
    """The items of one conversation, one after the other."""

    def __init__(self, talk: RequestMessages, tools: DeclaredTools) -> None:
        self._talk, self._tools = talk, tools

    def read(self, item: Json, at: int) -> None:
        kind = text(item.get("type"))
        read = _READ.get(kind)
        if read is not None:
            read(self, item, at)
        elif is_call(kind):
            self._other_call(item, at)
        elif kind.endswith("_output"):
            self._result(item, at)
        elif text(item.get("role")):
            self._message(item, at)
        else:
            self._talk.warn(f"{kind[:60]!r} in the history is left out: only its provider can read it")

    def _message(self, item: Json, at: int) -> None:
        role, parts = text(item.get("role")) or "user", responses_parts(item.get("content"))
        if role != "assistant":
            self._talk.say(role, parts, at)
            return
        turn = self._talk.assistant(at)
        turn.text(joined_text([part for part in parts if part.get("type") == "text"], ""), apart=True)
        turn.parts += [part for part in parts if part.get("type") != "text"]

    def _reasoning(self, item: Json, at: int) -> None:
        turn = self._talk.assistant(at)
        for key in ("summary", "content"):
            turn.thought(joined_text(responses_parts(item.get(key))))
        turn.keep("reasoning", [item])

    def _function_call(self, item: Json, at: int) -> None:
        extras, name, namespace = _beside(item), text(item.get("name")), text(item.get("namespace"))
        offered = self._tools.offered(name, namespace)
        if offered != name:
            extras["name"] = name
        self._talk.assistant(at).call(_id(item), offered, item.get("arguments"), extras)

    def _custom_call(self, item: Json, at: int) -> None:
        name, namespace = text(item.get("name")), text(item.get("namespace"))
        offered = self._tools.offered(name, namespace)
        extras = {**_beside(item), "type": "custom_tool_call", **({"name": name} if offered != name else {})}
        self._talk.assistant(at).call(_id(item), offered, compact_json({"input": text(item.get("input"))}), extras)

    def _other_call(self, item: Json, at: int) -> None:
        found = item_call(item)
        if found is not None:
            extras = {key: value for key, value in item.items() if key not in ("id", "call_id")}
            self._talk.assistant(at).call(_id(item), self._tools.offered(found[0]), found[1], extras)

    def _result(self, item: Json, at: int) -> None:
        kind = text(item.get("type"))
        extras = {"type": kind} if kind != "function_call_output" else {}
        self._talk.result(_id(item), _output(item), at, extras=extras)


def _id(item: Json) -> str:
    return text(item.get("call_id")) or text(item.get("id"))


def _beside(item: Json) -> Json:
    return {key: value for key, value in item.items() if key not in _CALL and value is not None}


def _output(item: Json) -> Parts:
    """What a call came to: text, parts, a screenshot, or JSON that is said as text."""
    output = item.get("output", item.get("tools"))
    found = obj(output)
    if found is not None and text(found.get("image_url")):
        return [image_part(text(found["image_url"]))]
    if isinstance(output, str):
        return responses_parts(output)
    parts = objects(output)
    if parts and all("type" in part for part in parts) and "tools" not in item:
        return responses_parts(output)
    return [] if output is None else [text_part(compact_json(output))]


_READ: dict[str, Callable[[_Items, Json, int], None]] = {
    "message": _Items._message,
    "reasoning": _Items._reasoning,
    "function_call": _Items._function_call,
    "custom_tool_call": _Items._custom_call,
}
