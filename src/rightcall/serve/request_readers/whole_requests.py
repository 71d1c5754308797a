"""The end of every reader: what it found, as a `ClientRequest`."""

from __future__ import annotations

from typing import Any

from rightcall.api_names import Api
from rightcall.backends.request_body import read_sampling
from rightcall.serve.client_request import ClientRequest
from rightcall.serve.request_readers.declared_tools import DeclaredTools
from rightcall.serve.request_readers.request_messages import RequestMessages
from rightcall.types import Json


def whole_request(
    api: Api, body: Json, talk: RequestMessages, choice: str, tools: DeclaredTools, *, has_tools: bool, **own: Any
) -> ClientRequest:
    """The request of this body. `own` are the fields that each dialect says in its own way."""
    shared: Json = {
        "messages": talk.messages,
        "origins": tuple(talk.origins),
        "tools": tools.tools if has_tools else None,
        "toolset": tools.toolset if has_tools else None,
        "open_tools": tools.open_tools,
        "wants_usage": True,
        "sampling": read_sampling(api, body),
        "warnings": (*talk.warnings, *tools.warnings),
    }
    return ClientRequest(api=api, body=body, choice=choice, **{**shared, **own})
