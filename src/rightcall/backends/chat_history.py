"""Messages in the shape of OpenAI's Chat, read for the other dialects: who said what, with which calls and results.

What a history holds was said before and is not judged again: a call that was broken goes out as the object it can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rightcall.providers.dialect import CallDelta, output_text
from rightcall.providers.history_messages import OPAQUE
from rightcall.providers.openai_chat import response_deltas
from rightcall.providers.sdk_view import dumps, items, obj, text
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.types import Call, Json


class HistoryTurn(msgspec.Struct, frozen=True):
    """One message. `content` is what it holds, text or parts; of a result `call` is the call it belongs to, and
    `is_error` what its API said of it."""

    role: str
    content: Any = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    call: Call | None = None
    extras: dict[str, Json] = {}
    is_error: bool = False

    @property
    def text(self) -> str:
        return text_of(self.content)

    @property
    def name(self) -> str:
        return self.call.name if self.call is not None else ""


def text_of(content: Any) -> str:
    """Text as it is; of parts, those that are text, joined."""
    if isinstance(content, str):
        return content
    said = [text(part.get("text")) if isinstance(part, dict) else text(part) for part in items(content)]
    return "\n".join([each for each in said if each])


def turns(messages: Sequence[Json]) -> list[HistoryTurn]:
    """The history, with every result beside the call that it answers."""
    made: dict[str, Call] = {}
    out: list[HistoryTurn] = []
    for message in messages:
        turn = _turn(message, made)
        made |= {call.id: call for call in turn.calls}
        out.append(turn)
    return out


def _turn(message: Json, made: dict[str, Call]) -> HistoryTurn:
    role = text(message.get("role"))
    content = message.get("content")
    content = "" if content is None else content
    if role in ("tool", "function"):
        id, name = text(message.get("tool_call_id")), text(message.get("name"))
        call = made.get(id) or Call(name, {}, "{}", id)
        failed, extras = message.get("is_error") is True, obj(message.get(OPAQUE)) or {}
        return HistoryTurn("tool", _result(content), call=call, extras=extras, is_error=failed)
    if role != "assistant":
        return HistoryTurn("system" if role == "developer" else role, content)
    thought = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    return HistoryTurn(role, content, thought, _calls(message), extras=obj(message.get(OPAQUE)) or {})


def _result(content: Any) -> Any:
    """A result is text: servers drop or refuse anything else. Parts that are all text are that text."""
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "\n".join([text(part.get("text")) for part in content])
    return content if isinstance(content, list) else output_text(content)


def _calls(message: Json) -> tuple[Call, ...]:
    found = [
        delta
        for _, delta in response_deltas({"tool_calls": message.get("tool_calls") or []})
        if isinstance(delta, CallDelta)
    ]
    return tuple([_call(piece) for piece in found])


def _call(piece: CallDelta) -> Call:
    value = {"input": piece.arguments} if piece.custom else decode(piece.arguments or "{}", MAX_DEPTH)
    sent = dumps(value) if piece.custom else piece.arguments
    is_object = isinstance(value, dict)
    return Call(piece.name, value if is_object else {}, sent if is_object else "{}", piece.id, sent)
