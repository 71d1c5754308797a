"""Requests that need not be read: no tools, nothing of ours in them. Told from their bytes without making an object.

    plain_request(b'{"model": "m", "messages": [...], "stream": true}')   ->   PlainRequest(model="m", stream=True)

Such a request goes to a server of its own dialect as it came, byte for byte.
"""

from __future__ import annotations

import msgspec

from rightcall.api_names import Api


class PlainRequest(msgspec.Struct):
    """What must be known of it; a field that is none of a plain request's must not be there."""

    model: str = ""
    stream: bool | None = None
    tools: None = None  # servers refuse an empty list, so one is read, and left out
    functions: None = None
    previous_response_id: None = None
    thread: None = None


_decode = msgspec.json.Decoder(PlainRequest).decode
STREAMS_UNASKED = ("ollama",)  # where a request that does not say is for a stream


def plain_request(raw: bytes, api: Api) -> PlainRequest | None:
    """The request, if it is plain; None if it has to be read."""
    try:
        found = _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if found.stream is None:
        found.stream = api in STREAMS_UNASKED
    return found
