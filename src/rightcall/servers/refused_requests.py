"""What is refused, as a client's dialect words it: clients look for the message in a place of their own.

error_body("messages", 400, "no such field", "invalid_request")
"""

from __future__ import annotations

from typing import Any

from rightcall.api_names import Api
from rightcall.servers.gate import RequestRefusal
from rightcall.types import Json

_KINDS = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_GOOGLE = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    504: "DEADLINE_EXCEEDED",
}


def error_body(api: Api, status: int, message: str, code: str, details: Any = None) -> Json:
    """The body of an answer with this HTTP `status`: what is wrong as a `message` for people and a `code` for programs,
    and `details`, which stand beside them where the dialect has a place."""
    if api == "ollama":
        return {"error": message}
    beside = {} if details is None else {"details": details}
    if api == "gemini":
        return {"error": {"code": status, "message": message, "status": _google(status), **_listed(code, details)}}
    if api == "messages":
        return {"type": "error", "error": {"type": error_kind(status), "message": message, **beside}}
    return {"error": {"message": message, "type": error_kind(status), "param": None, "code": code, **beside}}


def error_kind(status: int) -> str:
    """The word for errors of this status, the same with OpenAI and Anthropic."""
    return _KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")


def _google(status: int) -> str:
    return _GOOGLE.get(status, "INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE")


def _listed(code: str, details: Any) -> Json:
    """Google's details are a list of objects that name their type."""
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code.upper(), "domain": "rightcall"}
    return {"details": [reason, *(details if isinstance(details, list) else [] if details is None else [details])]}


def body_of(refusal: RequestRefusal, path: str) -> Json:
    """The body of the answer, for the API that this path belongs to."""
    message, code = refusal.message, refusal.code
    if path.rstrip("/").endswith("/mcp"):
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message, "data": {"code": code}}}
    return error_body(api_of(path), refusal.status, message, code)


def api_of(path: str) -> Api:
    """The dialect in which this path is answered; Chat's where the path says nothing."""
    if path.startswith("/api/"):
        return "ollama"
    if ":generateContent" in path or ":streamGenerateContent" in path or ":countTokens" in path:
        return "gemini"
    if "/messages" in path:
        return "messages"
    return "responses" if "/responses" in path else "chat"
