"""The bytes of a request, as the object they must be."""

from __future__ import annotations

from rightcall.serve.client_request import RefusedRequest
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Json

_DEPTH = 400


def body_of(raw: bytes) -> Json:
    """The object that a body is. Raises `RefusedRequest`."""
    value = decode(raw.decode("utf-8-sig", "replace"), _DEPTH)
    if isinstance(value, Undecodable):
        raise RefusedRequest(
            f"the body is not valid JSON ({value.message:.200}); send one JSON object", code="bad_json"
        )
    if not isinstance(value, dict):
        raise RefusedRequest("the body must be one JSON object", code="bad_json")
    return value
