"""The opaque fields of a streamed answer: fields that rightcall does not read and the provider requires back.

    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "..."}}

The chunks of each dialect are joined to the part of a whole response that `Dialect.opaque_fields` reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightcall.providers.gemini import field
from rightcall.providers.openai_chat import OPAQUE
from rightcall.providers.sdk_view import integer, obj, objects, text
from rightcall.types import Json

_GROWING_FIELDS = {"thinking_delta": "thinking", "signature_delta": "signature"}


class _TextPieces(list[str]):
    """The pieces of a text."""


class OpaqueFields:
    """Collects the opaque fields of every chunk; `response` returns them for `Dialect.opaque_fields`."""

    def __init__(self) -> None:
        self._blocks: dict[int | None, Json] = {}
        self._message: Json = {}
        self._calls: dict[int | None, Json] = {}
        self._whole: Json | None = None

    def add(self, api: str, payload: Json) -> None:
        """Collect the opaque fields of one chunk of the API named `api`; of an API without any, such as "ollama",
        nothing. The chunk is not changed."""
        collect = _COLLECTORS.get(api)
        if collect is not None:
            collect(self, payload)

    def response(self, api: str) -> Any:
        """Return the collected fields in the shape of a whole response of the API; a chunk that was a whole response is
        returned itself."""
        if self._whole is not None:
            return self._whole
        if api == "chat":
            return {**_join_texts(self._message), "tool_calls": [_join_texts(call) for call in self._calls.values()]}
        blocks = [_join_texts(block) for block in self._blocks.values()]
        return {{"messages": "content", "gemini": "parts"}.get(api, "output"): blocks}

    def _add_messages(self, payload: Json) -> None:
        """Collect the blocks of an event of the Messages API as they begin, and the pieces of their thinking and
        signatures. A chunk that is itself a whole message replaces all that was collected."""
        kind, slot = text(payload.get("type")), integer(payload.get("index"))
        delta = obj(payload.get("delta")) or {}
        if kind == "content_block_start":
            self._blocks[slot] = {}
            _merge_fields(self._blocks[slot], obj(payload.get("content_block")) or {})
        elif key := _GROWING_FIELDS.get(text(delta.get("type"))):
            _merge_fields(self._blocks.setdefault(slot, {"type": "thinking"}), {key: text(delta.get(key))})
        elif kind == "message":
            self._whole = payload

    def _add_responses(self, payload: Json) -> None:
        """Collect the finished item of an event of the Responses API. A chunk that is itself a whole response, with
        `output` at the top, replaces all that was collected; the response inside a final event is ignored."""
        item = obj(payload.get("item"))
        if payload.get("type") == "response.output_item.done" and item is not None:
            self._blocks[len(self._blocks)] = item
        elif "output" in payload:
            self._whole = payload

    def _add_gemini(self, payload: Json) -> None:
        """Collect the parts of a Gemini chunk's first candidate that have a signature or begin a call."""
        candidates = objects(payload.get("candidates"))
        content = obj((candidates[0] if candidates else payload).get("content")) or {}
        for part in objects(content.get("parts")):
            call = obj(field(part, "functionCall"))
            begins_call = call is not None and bool(text(call.get("name")))  # without a name it continues a call
            if field(part, "thoughtSignature") is not None or begins_call:
                self._blocks[len(self._blocks)] = part

    def _add_chat(self, payload: Json) -> None:
        """Collect the opaque fields of the message in a Chat chunk's first choice, and of its calls by index. A chunk
        that is a whole response replaces all that was collected."""
        choice = next((c for c in objects(payload.get("choices")) if not c.get("index")), {})
        if obj(choice.get("message")) is not None:
            self._whole = payload
        delta = obj(choice.get("delta")) or {}
        _merge_fields(self._message, {key: value for key, value in delta.items() if key in OPAQUE})
        for position, call in enumerate(objects(delta.get("tool_calls"))):
            index = integer(call.get("index"))
            kept = self._calls.setdefault(position if index is None else index, {})
            _merge_fields(kept, {key: value for key, value in call.items() if key not in ("function", "index")})


def _merge_fields(kept: Json, more: Json) -> None:
    """Add the fields in `more` to `kept`, in place: append to texts and lists, merge objects, replace any other value.
    `id` and `type` are replaced too, and null changes nothing."""
    for key, value in more.items():
        before = kept.get(key)
        if isinstance(value, str) and key not in ("id", "type"):
            kept[key] = before if isinstance(before, _TextPieces) else _TextPieces()
            kept[key].append(value)
        elif isinstance(value, list):
            kept[key] = before if type(before) is list else []
            kept[key] += value
        elif isinstance(value, dict):
            kept[key] = before if isinstance(before, dict) else {}
            kept[key].update(value)
        elif value is not None:
            kept[key] = value


def _join_texts(kept: Json) -> Json:
    """Return a copy of the fields in which the pieces of each text are joined; texts inside objects have no pieces."""
    return {key: "".join(value) if isinstance(value, _TextPieces) else value for key, value in kept.items()}


_COLLECTORS: dict[str, Callable[[OpaqueFields, Json], None]] = {
    "messages": OpaqueFields._add_messages,
    "responses": OpaqueFields._add_responses,
    "gemini": OpaqueFields._add_gemini,
    "chat": OpaqueFields._add_chat,
}
