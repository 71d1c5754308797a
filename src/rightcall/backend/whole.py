"""What a provider wants back, out of a stream: the whole response as far as its opaque fields need it.

The calls and the text of a stream are read by `Stream`; here are only the fields that nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rightcall.apis.plain import obj, objects, text
from rightcall.backend.address import Api
from rightcall.types import Json

_OPAQUE = ("reasoning_details", "extra_content", "thought_signature", "encrypted_content")


def whole_response(api: Api, payloads: Sequence[Json]) -> Json:
    """A response that has the opaque fields of this stream."""
    return _WRITERS.get(api, _chat)(payloads)


def _chat(payloads: Sequence[Json]) -> Json:
    message: Json = {}
    calls: dict[Any, Json] = {}
    for payload in payloads:
        for choice in objects(payload.get("choices"))[:1]:
            delta = obj(choice.get("delta")) or obj(choice.get("message")) or {}
            for key in _OPAQUE:
                _grow(message, key, delta.get(key))
            for position, entry in enumerate(objects(delta.get("tool_calls"))):
                slot = entry.get("index", position)
                known = calls.setdefault(slot, {})
                known |= {key: value for key, value in entry.items() if value is not None and key not in known}
    return {"choices": [{"message": {**message, "tool_calls": [calls[slot] for slot in calls]}}]}


def _grow(message: Json, key: str, value: Any) -> None:
    """A list grows; any other value is the last one."""
    if isinstance(value, list) and isinstance(message.get(key), list):
        message[key].extend(value)
    elif value is not None:
        message[key] = list(value) if isinstance(value, list) else value


def _anthropic(payloads: Sequence[Json]) -> Json:
    blocks: dict[Any, Json] = {}
    pieces: dict[tuple[Any, str], list[str]] = {}
    for payload in payloads:
        at = payload.get("index")
        if payload.get("type") == "content_block_start":
            blocks[at] = dict(obj(payload.get("content_block")) or {})
        elif payload.get("type") == "content_block_delta" and at in blocks:
            delta = obj(payload.get("delta")) or {}
            for key in ("thinking", "signature"):
                if text(delta.get(key)):
                    pieces.setdefault((at, key), []).append(text(delta[key]))
    for (at, key), found in pieces.items():
        blocks[at][key] = text(blocks[at].get(key)) + "".join(found)
    return {"content": list(blocks.values())}


def _responses(payloads: Sequence[Json]) -> Json:
    last = next(
        (found for each in reversed(payloads) if (found := obj(each.get("response"))) and found.get("output")), None
    )
    if last is not None:
        return last
    return {"output": [obj(each.get("item")) for each in payloads if each.get("type") == "response.output_item.done"]}


_WRITERS: dict[Api, Callable[[Sequence[Json]], Json]] = {"anthropic": _anthropic, "responses": _responses}
