"""Clients may defer tools: they name them somewhere in the request, and declare them when one is wanted."""

from __future__ import annotations

import json
import re
from typing import Any

from rightcall.providers.sdk_view import obj
from rightcall.serve.client_request import ClientRequest
from rightcall.types import Json

_MODELS_OWN = ("assistant", "model")


class DeferredTools:
    """The tools that a model may call though this `request` does not declare them."""

    def __init__(self, request: ClientRequest) -> None:
        self._request = request
        self._told: str | None = None  # made once: a model may call many that nobody named

    def may_call(self, name: str) -> bool:
        """Only where the client defers tools, and has named this one: a model cannot know of it otherwise."""
        if not self._request.open_tools or not name:
            return False
        if self._request.previous:  # what was said before this request is not known here
            return True
        if self._told is None:
            self._told = _told(self._request.body)
        if name not in self._told:
            return False
        return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self._told) is not None


def _told(body: Json) -> str:
    """A request as text, without what the model itself has said in it."""
    others = {
        key: [each for each in value if not _is_models(each)] if isinstance(value, list) else value
        for key, value in body.items()
    }
    try:
        return json.dumps(others, ensure_ascii=False)
    except RecursionError:  # so deep that nobody named a tool in it
        return ""


def _is_models(entry: Any) -> bool:
    found = obj(entry) or {}
    return found.get("role") in _MODELS_OWN or found.get("type") in ("function_call", "custom_tool_call")
