"""What a streamed answer holds that we do not read and a provider wants back, gathered chunk by chunk.

    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "..."}}

Each dialect's chunks are put together to as much of a whole response as `opaque` looks at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightcall.providers.gemini import field
from rightcall.providers.openai_chat import OPAQUE
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.types import Json

_GROWING = {"thinking_delta": "thinking", "signature_delta": "signature"}


class _Text(list[str]):
    """Text that comes in pieces."""


class Keepsakes:
    """Give every chunk to `add`; `response` is what `opaque` reads."""

    def __init__(self) -> None:
        self._blocks: dict[int | None, Json] = {}
        self._message: Json = {}
        self._calls: dict[int | None, Json] = {}
        self._whole: Json | None = None

    def add(self, api: str, payload: Json) -> None:
        gather = _GATHER.get(api)
        if gather is not None:
            gather(self, payload)

    def response(self, api: str) -> Any:
        if self._whole is not None:
            return self._whole
        if api == "chat":
            return {**_joined(self._message), "tool_calls": [_joined(call) for call in self._calls.values()]}
        found = [_joined(block) for block in self._blocks.values()]
        return {"content": found} if api == "messages" else {"parts": found} if api == "gemini" else {"output": found}

    def _anthropic(self, payload: Json) -> None:
        kind, slot = text(payload.get("type")), _slot(payload)
        delta = obj(payload.get("delta")) or {}
        if kind == "content_block_start":
            self._blocks[slot] = {}
            _grow(self._blocks[slot], obj(payload.get("content_block")) or {})
        elif key := _GROWING.get(text(delta.get("type"))):
            _grow(self._blocks.setdefault(slot, {"type": "thinking"}), {key: text(delta.get(key))})
        elif kind == "message":
            self._whole = payload

    def _responses(self, payload: Json) -> None:
        item = obj(payload.get("item"))
        if payload.get("type") == "response.output_item.done" and item is not None:
            self._blocks[len(self._blocks)] = item
        elif "output" in payload:
            self._whole = payload

    def _gemini(self, payload: Json) -> None:
        candidates = objects(payload.get("candidates"))
        content = obj((candidates[0] if candidates else payload).get("content")) or {}
        for part in objects(content.get("parts")):
            call = obj(field(part, "functionCall"))
            goes_on = call is not None and not text(call.get("name"))  # a further piece of the call before
            if field(part, "thoughtSignature") is not None or (call is not None and not goes_on):
                self._blocks[len(self._blocks)] = part

    def _chat(self, payload: Json) -> None:
        choice = next((c for c in objects(payload.get("choices")) if not c.get("index")), {})
        if obj(choice.get("message")) is not None:
            self._whole = payload
        delta = obj(choice.get("delta")) or {}
        _grow(self._message, {key: value for key, value in delta.items() if key in OPAQUE})
        for position, call in enumerate(objects(delta.get("tool_calls"))):
            self._chat_call(call, position)

    def _chat_call(self, call: Json, position: int) -> None:
        slot = _slot(call)
        kept = self._calls.setdefault(position if slot is None else slot, {})
        _grow(kept, {key: value for key, value in call.items() if key not in ("function", "index")})


def _slot(fields: Json) -> int | None:
    index = fields.get("index")
    return index if type(index) is int else None


def _grow(kept: Json, more: Json) -> None:
    """Text and lists go on, objects are joined, of the rest the last counts."""
    for key, value in more.items():
        before = kept.get(key)
        if isinstance(value, str) and key not in ("id", "type"):
            kept[key] = before if isinstance(before, _Text) else _Text()
            kept[key].append(value)
        elif isinstance(value, list):
            kept[key] = before if type(before) is list else []
            kept[key] += value
        elif isinstance(value, dict):
            kept[key] = before if isinstance(before, dict) else {}
            kept[key].update(value)
        elif value is not None:
            kept[key] = value


def _joined(kept: Json) -> Json:
    return {key: "".join(value) if isinstance(value, _Text) else value for key, value in kept.items()}


_GATHER: dict[str, Callable[[Keepsakes, Json], None]] = {
    "messages": Keepsakes._anthropic,
    "responses": Keepsakes._responses,
    "gemini": Keepsakes._gemini,
    "chat": Keepsakes._chat,
}
