"""Ollama's own chat (`/api/chat`), and its `/api/generate`:

    {"message": {"role": "assistant", "content": "", "thinking": "...", "tool_calls": [
        {"function": {"name": "f", "arguments": {"x": 1}}}]}, "done": true}

Arguments are objects, ids are usually missing, and a stream has complete calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rightcall.parsing.options import finish_of
from rightcall.providers.dialect import (
    Delta,
    Deltas,
    Dialect,
    Extras,
    Finish,
    ModelTurn,
    ReasoningDelta,
    StreamState,
    TextDelta,
    assistant_turn,
    extra_fields,
    output_text,
)
from rightcall.providers.openai_chat import CHAT
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.types import Call, Json, Reply


def _response_deltas(response: Json) -> Iterator[Delta]:
    """Yield the deltas of a `/api/chat` or `/api/generate` response, or of a bare message: reasoning, text, calls and
    the finish reason. `done` without a reason is "stop"."""
    message = obj(response.get("message"))
    if message is None and "response" in response:
        if reasoning := text(response.get("thinking")):
            yield ReasoningDelta(reasoning)
        if content := text(response.get("response")):
            yield TextDelta(content)
    else:
        yield from (delta for _, delta in CHAT.response_deltas(response if message is None else message))
    reason = text(response.get("done_reason"))
    if reason or response.get("done") is True:
        yield Finish(finish_of(reason or "stop"))


def _call_entry(index: int, call: Call, extras: Extras | None) -> Json:
    """Return a call as an entry of `tool_calls`, with its position, its arguments as an object, and no id."""
    function = {"index": index, "name": call.name, "arguments": call.arguments}
    return {"type": "function", "function": function, **extra_fields(extras, call.id)}


# -- the dialect -------------------------------------------------------------------------------------------------------


def has_parsed_call(fields: Json) -> bool:
    """Return True if the message has a call without an id whose arguments are an object. Only Ollama writes such
    calls."""
    calls = [obj(each.get("function")) or {} for each in objects(fields.get("tool_calls")) if not each.get("id")]
    return any(obj(call.get("arguments")) is not None for call in calls)


class OllamaChat(Dialect):
    """Ollama's own chat."""

    name = "ollama"

    def detects(self, fields: Json) -> bool:
        """Return True if the object has keys that only Ollama has, or calls as only Ollama writes them."""
        if "choices" in fields:
            return False
        if "done" in fields and ("message" in fields or "response" in fields):
            return True
        if "created_at" in fields and obj(fields.get("message")) is not None:
            return True
        return isinstance(fields.get("thinking"), str) or has_parsed_call(fields)

    def response_deltas(self, response: Any) -> Deltas:
        """Return the deltas of a response, a message, a list of calls or one call, all with the choice 0; of a finished
        response also its finish reason."""
        fields = obj(response)
        if fields is None:
            return CHAT.response_deltas(response)
        return [(0, delta) for delta in _response_deltas(fields)]

    def chunk_deltas(self, payload: Json, state: StreamState) -> Deltas:
        """Return the deltas of one line of a stream, which has the shape of a whole response."""
        return self.response_deltas(payload)

    def opaque_fields(self, response: Any) -> tuple[Json, list[tuple[str, Json]]]:
        """Return what `OpenAIChat.opaque_fields` returns: the opaque fields of the message, and for each call in order
        its id and its opaque fields."""
        return CHAT.opaque_fields(response)

    def history_entries(self, history: Sequence[Any]) -> Iterator[Json | ModelTurn]:
        """Yield a history as `OpenAIChat.history_entries` does: turns of the model as `ModelTurn`, all others as
        messages of Chat."""
        return CHAT.history_entries(history)

    def assistant_message(
        self,
        reply: Reply | str,
        calls: Iterable[Call] | None = None,
        *,
        reasoning: str | None = None,
        extras: Extras | None = None,
        reasoning_key: str | None = "thinking",
    ) -> Json:
        """Return the assistant's turn for a history: arguments as objects, no ids, no empty `content` next to calls.
        `reasoning_key` is the key of the reasoning; None omits it."""
        turn = assistant_turn(reply, calls, reasoning)
        message: Json = {"role": "assistant"}
        if turn.text or not turn.calls:
            message["content"] = turn.text
        if turn.calls:
            message["tool_calls"] = [_call_entry(i, call, extras) for i, call in enumerate(turn.calls)]
        if turn.reasoning and reasoning_key:
            message[reasoning_key] = turn.reasoning
        return message

    def tool_result(self, call: Call, output: Any, *, is_error: bool = False) -> Json:
        """Return a message with the result of a call, with the tool's name and no id. The API has no error flag: the
        text of an error begins with ERROR."""
        return {"role": "tool", "tool_name": call.name, "content": output_text(output, is_error=is_error)}

    def tool_choice(self, choice: str) -> Any:
        """Return None: the API has no such field. A grammar or a guard must enforce the choice."""
        return None


OLLAMA = OllamaChat()
