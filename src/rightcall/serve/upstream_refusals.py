"""What a server says in place of an answer, and how a client is told, in its own dialect.

raise await refusal_of(answer)
status, body, headers = failure(error, "messages")
"""

from __future__ import annotations

from collections.abc import Mapping

from rightcall.api_names import Api
from rightcall.errors import BackendError, BodyError, StatusError, TimedOut
from rightcall.providers.sdk_view import error_text
from rightcall.request_gate import error_body
from rightcall.serve.client_request import RefusedRequest
from rightcall.serve.upstream_link import UpstreamAnswer, told_headers
from rightcall.strict_json import Undecodable, decode
from rightcall.types import Json

_MAX_ERROR = 64_000
_DEPTH = 400


class UpstreamRefusal(StatusError):
    """The server answered with an error: its `status`, `body`, and the `headers` that the client should see."""

    def __init__(self, message: str, status: int, body: str, told: Mapping[str, str], data: bytes, kind: str) -> None:
        super().__init__(message, status, body, None)
        self.told, self.data, self.kind = dict(told), data, kind


async def refusal_of(answer: UpstreamAnswer) -> UpstreamRefusal:
    """Its refusal, with what it says of it."""
    try:
        data = await answer.whole(_MAX_ERROR)
    except BackendError:  # what it would have said is lost, that it refused is not
        data = b""
    return refused_with(answer, data)


def refused_with(answer: UpstreamAnswer, data: bytes) -> UpstreamRefusal:
    """The same, where its body has been read."""
    said = data.decode("utf-8", "replace")
    where = answer.headers.get("location", "")
    message = f"it sends on to {where:.200}; use that as the upstream" if where else _message(said)
    status = answer.status if answer.is_error else 502
    return UpstreamRefusal(message, status, said, told_headers(answer.headers), data, answer.kind)


def _message(said: str) -> str:
    """The words of an error body, whichever of the shapes it has."""
    value = decode(said, _DEPTH)
    if isinstance(value, Undecodable) or not isinstance(value, dict):
        return said.strip()[:600] or "the server said nothing"
    return error_text(value.get("error") or value.get("detail") or value)[:600]


def error_code(error: BackendError) -> str:
    """One word for the log."""
    if isinstance(error, TimedOut):
        return "upstream_timeout"
    return "upstream_broke" if isinstance(error, BodyError) else "upstream_unreachable"


def failure(error: BackendError | RefusedRequest, api: Api) -> tuple[int, Json, dict[str, str]]:
    """Status, body and headers that tell a client why it gets no answer, in its dialect."""
    if isinstance(error, RefusedRequest):
        return error.status, error_body(api, error.status, str(error), error.code, error.details), {}
    if isinstance(error, UpstreamRefusal):
        return error.status, error_body(api, error.status, str(error), "upstream_error"), dict(error.told)
    status = 504 if isinstance(error, TimedOut) else 502
    return status, error_body(api, status, str(error), error_code(error)), {}
