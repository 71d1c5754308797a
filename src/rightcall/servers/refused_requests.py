"""What is refused, as the dialect of the path words it: clients look for the message in a place of their own."""

from __future__ import annotations

from rightcall.servers.gate import RequestRefusal
from rightcall.types import Json

_KINDS = {401: "authentication_error", 403: "permission_error", 413: "request_too_large", 503: "overloaded_error"}


def body_of(refusal: RequestRefusal, path: str) -> Json:
    """The body of the answer, for the API that this path belongs to."""
    kind = _KINDS.get(refusal.status, "invalid_request_error")
    message, code = refusal.message, refusal.code
    if path.endswith("/messages"):  # Anthropic's
        return {"type": "error", "error": {"type": kind, "message": message}}
    if path.startswith("/api/"):  # Ollama's
        return {"error": message}
    if path.rstrip("/").endswith("/mcp"):
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message, "data": {"code": code}}}
    if ":generateContent" in path or ":streamGenerateContent" in path:
        return {"error": {"code": refusal.status, "message": message, "status": code.upper()}}
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
