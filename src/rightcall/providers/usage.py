"""What an answer cost, under the names that its provider has for it.

usage_of({"usage": {"total_tokens": 7}}) == {"total_tokens": 7}
"""

from __future__ import annotations

from typing import Any

from rightcall.providers.sdk_view import obj
from rightcall.types import Json

_USAGE = ("usage", "usageMetadata", "usage_metadata")
_OLLAMA = (
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
    "load_duration",
    "total_duration",
)

_TELLING = frozenset((*_USAGE, *_OLLAMA, "response", "message"))


def usage_of(payload: Any) -> Json:
    """What a payload says was counted, under the provider's own names; empty where it says nothing."""
    found = obj(payload) or {}
    if _TELLING.isdisjoint(found):
        return {}
    out = {key: found[key] for key in _OLLAMA if type(found.get(key)) is int}
    for holder in (found, obj(found.get("response")), obj(found.get("message"))):
        out |= _counted(holder or {})
    return out


def _counted(holder: Json) -> Json:
    counts = [obj(holder.get(key)) or {} for key in _USAGE]
    return {name: value for each in counts for name, value in each.items() if value is not None}
