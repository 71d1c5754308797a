"""Ollama's own chat (`/api/chat`), and its `/api/generate`:

    {"message": {"role": "assistant", "content": "", "thinking": "...", "tool_calls": [
        {"function": {"name": "f", "arguments": {"x": 1}}}]}, "done": true}

Arguments are objects, ids mostly missing, and a stream has whole calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rightcall.parsing.how_ended import finish_of
from rightcall.providers import openai_chat
from rightcall.providers.deltas import Delta, Deltas, Said, Seen, Stop, Thought
from rightcall.providers.dialect import Dialect, one_by_one
from rightcall.providers.outgoing import Extras, fields_of, output_text, turn
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.types import Call, Json, Reply


def whole(response: Any) -> Deltas:
    """Everything in a response, a message, a list of calls or one call."""
    found = obj(response)
    if found is None:
        return openai_chat.whole(response)
    return [(0, delta) for delta in _response(found)]


def chunk(payload: Json, seen: Seen) -> Deltas:
    """What one line of a stream adds: it has the shape of a whole response."""
    return whole(payload)


def _response(response: Json) -> Iterator[Delta]:
    message = obj(response.get("message"))
    if message is None and "response" in response:
        if thought := text(response.get("thinking")):
            yield Thought(thought)
        if said := text(response.get("response")):
            yield Said(said)
    else:
        yield from (delta for _, delta in openai_chat.whole(response if message is None else message))
    reason = text(response.get("done_reason"))
    if reason or response.get("done") is True:
        yield Stop(finish_of(reason or "stop"))


def assistant_message(
    reply: Reply | str,
    calls: Iterable[Call] | None = None,
    *,
    reasoning: str | None = None,
    extras: Extras | None = None,
    reasoning_key: str | None = "thinking",
) -> Json:
    """The assistant's turn for the history: arguments as objects, no ids, `content` left out beside calls if empty."""
    said = turn(reply, calls, reasoning)
    message: Json = {"role": "assistant"}
    if said.text or not said.calls:
        message["content"] = said.text
    if said.calls:
        message["tool_calls"] = [_written(i, call, extras) for i, call in enumerate(said.calls)]
    if said.reasoning and reasoning_key:
        message[reasoning_key] = said.reasoning
    return message


def _written(index: int, call: Call, extras: Extras | None) -> Json:
    function = {"index": index, "name": call.name, "arguments": call.arguments}
    return {"type": "function", "function": function, **fields_of(extras, call.id)}


def tool_result(call: Call, output: Any, *, is_error: bool = False) -> Json:
    """What a tool gave back, under the tool's name. The wire has no error flag: an error says so in its text."""
    return {"role": "tool", "tool_name": call.name, "content": output_text(output, is_error=is_error)}


def tool_choice(choice: str) -> Any:
    """None: the wire has no such field. A grammar or a guard must enforce the choice."""
    return None


def read_tool_choice(value: Any) -> str:
    return openai_chat.read_tool_choice(value)


def opaque(response: Any) -> tuple[Json, list[tuple[str, Json]]]:
    return openai_chat.opaque(response)


# -- what is known of it -----------------------------------------------------------------------------------------------


def _is_ollama(found: Json) -> bool:
    if "choices" in found:
        return False
    if "done" in found and ("message" in found or "response" in found):
        return True
    if "created_at" in found and obj(found.get("message")) is not None:
        return True
    return isinstance(found.get("thinking"), str) or has_parsed_call(found)


def has_parsed_call(found: Json) -> bool:
    """A call without an id, whose arguments are no text."""
    calls = [obj(each.get("function")) or {} for each in objects(found.get("tool_calls")) if not each.get("id")]
    return any(obj(call.get("arguments")) is not None for call in calls)


def _turn(reply: Reply, extras: Extras) -> Json:
    return assistant_message(reply, extras=extras)


OLLAMA = Dialect(
    "ollama", _is_ollama, whole, chunk, opaque, assistant_message, _turn, one_by_one(tool_result), openai_chat.sides
)
