"""What a provider wants back with its calls and a client dropped: thinking with its signature, encrypted reasoning,
signatures of thoughts. It is put where a writer of the provider's dialect looks for it; a history that has it stays
as it is. What servers that speak Chat want back is put back by `histories`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rightcall.api_names import Api
from rightcall.providers.history_messages import OPAQUE
from rightcall.providers.history_sanitizer import HistoryChange, KeptFields
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.types import Json

_OWN: dict[Api, str] = {"messages": "thinking", "responses": "reasoning", "gemini": "thoughtSignature"}


def kept_for(kept: KeptFields) -> Api | None:
    """The dialect that these fields were kept for, where they can only be of one; None for those of Chat."""
    if isinstance(kept.message.get("thinking"), list):
        return "messages"
    if isinstance(kept.message.get("reasoning"), list):
        return "responses"
    return "gemini" if "thoughtSignature" in {**kept.message, **kept.call} else None


def put_back(messages: Sequence[Json], kept: Mapping[str, KeptFields]) -> tuple[list[Json], tuple[HistoryChange, ...]]:
    """The messages with what is missing, and what was done."""
    if not kept:
        return list(messages), ()
    out: list[Json] = []
    changes: list[HistoryChange] = []
    for at, message in enumerate(messages):
        whole = _whole(message, kept) if message.get("role") == "assistant" else message
        if whole is not message:
            changes.append(HistoryChange("put_back", at, "what the provider wants back was not there, and is put back"))
        out.append(whole)
    return out, tuple(changes)


def _whole(message: Json, kept: Mapping[str, KeptFields]) -> Json:
    had: dict[str, Any] = obj(message.get(OPAQUE)) or {}
    missing: dict[str, Json] = {}
    for call in objects(message.get("tool_calls")):
        id = text(call.get("id"))
        found = kept.get(id)
        api = kept_for(found) if found is not None else None
        if found is None or api is None:
            continue
        known = obj(had.get(api)) or {}
        own, of_call = _message_fields(api, found.message), found.call
        if own and not obj(known.get("")):
            missing.setdefault(api, {})[""] = own
        if of_call and api == "gemini" and not obj(known.get(id)):
            missing.setdefault(api, {})[id] = of_call
    if not missing:
        return message
    return {**message, OPAQUE: {**had, **{api: {**(had.get(api) or {}), **more} for api, more in missing.items()}}}


def _message_fields(api: Api, fields: Json) -> Json:
    """Of a message: what stands under the dialect's own name. Reasoning that is not encrypted cannot go back: the
    server that has it does not know it by then."""
    value = fields.get(_OWN[api])
    if api == "responses":
        value = [item for item in objects(value) if item.get("encrypted_content")]
    return {_OWN[api]: value} if value else {}
