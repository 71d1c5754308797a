"""A client's body, read: one file for each dialect, and the table of them.

    request = read_request("messages", body)

No reader knows a network, a server or another dialect. What a reader does not know stays in `ClientRequest.body`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightcall.api_names import Api
from rightcall.providers.sdk_view import text
from rightcall.serve.client_request import ClientRequest, RefusedRequest
from rightcall.serve.request_readers.chat_request import read_chat
from rightcall.serve.request_readers.gemini_request import read_gemini
from rightcall.serve.request_readers.messages_request import read_messages
from rightcall.serve.request_readers.ollama_request import read_ollama
from rightcall.serve.request_readers.responses_request import read_responses
from rightcall.types import Json

Reader = Callable[[Json, str, bool | None], ClientRequest]
READERS: dict[Api, Reader] = {
    "chat": read_chat,
    "responses": read_responses,
    "messages": read_messages,
    "ollama": read_ollama,
    "gemini": read_gemini,
}


def read_request(api: Api, body: Any, *, model: str = "", stream: bool | None = None) -> ClientRequest:
    """The request that a body says. Raises `RefusedRequest` for a body that no server could answer.

    - `api`: the dialect it came in.
    - `body`: the JSON of it.
    - `model`, `stream`: what the address says of them, where it does; else the body does.
    """
    if not isinstance(body, dict):
        raise RefusedRequest(f"the body is of the type {type(body).__name__}; send a JSON object")
    if api == "completions":  # passed through: nothing else of it must be known
        streamed = body.get("stream") is True if stream is None else stream
        return ClientRequest(api=api, model=model or text(body.get("model")), messages=[], stream=streamed, body=body)
    return READERS[api](body, model, stream)
