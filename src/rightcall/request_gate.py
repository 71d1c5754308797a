"""Decide whether a listening server accepts a request, and write the error body if it does not. No I/O.

    gate = make_gate("127.0.0.1", key=new_key())
    gate.check(RequestHead("POST", "/v1/chat/completions", headers))   ->   None, or a RequestRefusal

A web page can send requests to this machine through a host name that resolves to it (DNS rebinding), or across origins
with a body that needs no preflight (`text/plain`). So a request must name this machine in its Host header, come from no
page of a foreign origin, carry JSON, and present the key. `listeners` applies the decision to aiohttp and ASGI servers.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from rightcall.api_names import Api
from rightcall.errors import CallerError
from rightcall.redaction.key import Key
from rightcall.types import Json

_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]{2,60}\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?", re.A).fullmatch
_WITH_BODY = ("POST", "PUT", "PATCH")
_KEY_HEADERS = ("x-api-key", "x-goog-api-key")  # Anthropic's clients, and Google's
_ONCE = ("host", "origin", "authorization", *_KEY_HEADERS, "content-type", "content-length")
OPEN_PATHS = ("/health", "/v1/health", "/health/liveliness", "/health/readiness", "/ready")


class RequestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one server: body bytes, header count and bytes, concurrent requests, and the seconds within which the
    head and then the body of a request must arrive."""

    body: int = 64_000_000
    headers: int = 100
    header_bytes: int = 32_000
    concurrent: int = 64
    head_seconds: float = 10.0
    seconds: float = 60.0


class RequestHead(NamedTuple):
    """A request without its body. Header names are lower-case; repeated headers are kept."""

    method: str
    path: str
    headers: Sequence[tuple[str, str]]


class RequestRefusal(msgspec.Struct, frozen=True):
    """The answer to a request that is not accepted: HTTP status, error code, and a message with cause and cure."""

    status: int
    code: str
    message: str
    headers: dict[str, str] = {}


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one server. Use `make_gate`, which rejects settings that would expose it by accident."""

    host: str
    key: Key | None
    bare_bodies: bool = False
    origins: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    limits: RequestLimits = RequestLimits()

    def check(self, head: RequestHead) -> RequestRefusal | None:
        """Return why this request is refused (status, code, message), or None if it is accepted. Headers, host, origin,
        content type, key and declared length are checked; the body is not."""
        found = self._check_headers(head)
        if found is not None:
            return found
        headers = dict(head.headers)
        return (
            self._check_host(headers)
            or self._check_origin(headers)
            or (None if self.preflight_headers(head) is not None else self._check_content_type_and_key(head, headers))
            or self._check_length(headers)
        )

    def _check_headers(self, head: RequestHead) -> RequestRefusal | None:
        """Return a refusal (431 or 400) for too many or too large headers, or a repeated one that must be unique;
        else None."""
        size = sum([len(name) + len(value) for name, value in head.headers])
        if len(head.headers) > self.limits.headers or size > self.limits.header_bytes:
            most = f"{self.limits.headers} headers of {self.limits.header_bytes:,} bytes together"
            return RequestRefusal(431, "headers_too_large", f"the request has more than {most}; send fewer")
        names = [name for name, _ in head.headers]
        twice = next((name for name in _ONCE if names.count(name) > 1), None)
        if twice is not None:
            return RequestRefusal(400, "header_twice", f"the header {twice} was sent twice; send it once")
        return None

    def _check_host(self, headers: Mapping[str, str]) -> RequestRefusal | None:
        """Return a refusal (421) for a Host header that is missing, malformed, or names another host than this server
        (see `_is_own_name`); else None. The port is not compared."""
        host = headers.get("host", "")
        name = parse_host(host)
        if name is not None and self._is_own_name(name):
            return None
        cure = f"use http://{self.host} or http://localhost, or name this host with --allow-host when the server starts"
        return RequestRefusal(421, "wrong_host", f"this server does not answer to the Host {host[:80]!r}; {cure}")

    def _is_own_name(self, name: str) -> bool:
        """Return whether a host name refers to this server: loopback, its own name, an allowed one, or any IP
        address if it listens on all."""
        if is_loopback(name) or name == self.host.lower() or name in self.hosts:
            return True
        # DNS can point a name anywhere; an address cannot be redirected.
        return is_unspecified(self.host) and is_ip_address(name)

    def _check_origin(self, headers: Mapping[str, str]) -> RequestRefusal | None:
        """Return a refusal (403) for a request from a web page of another origin that is not allowed; else None.
        Without an Origin header, `Sec-Fetch-Site` decides; requests without both are accepted."""
        origin = headers.get("origin")
        if origin is not None:
            return None if self.allows_origin(origin, headers.get("host", "")) else _origin_refusal(origin)
        site = headers.get("sec-fetch-site", "none")
        return None if site in ("none", "same-origin") else _origin_refusal(f"({site})")

    def allows_origin(self, origin: str, host: str) -> bool:
        """Return whether this origin was allowed explicitly, or is http or https with the same host and port as the
        Host header `host`. False for an invalid origin."""
        if origin.lower() in self.origins:
            return True
        try:
            parts = urlsplit(origin.lower())
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and bool(host) and parts.netloc == host.lower()

    def cors_headers(self, origin: str | None) -> dict[str, str]:
        """Return the CORS headers for an explicitly allowed origin; an empty dict for any other and for None."""
        if origin is None or origin.lower() not in self.origins:
            return {}
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}

    def preflight_headers(self, head: RequestHead) -> dict[str, str] | None:
        """Return the headers that answer a CORS preflight request of an allowed origin; None for any other request."""
        if head.method != "OPTIONS":
            return None
        headers = dict(head.headers)
        allowed = self.cors_headers(headers.get("origin"))
        if not allowed:
            return None
        named = headers.get("access-control-request-headers", "authorization, content-type, x-api-key")
        return {
            **allowed,
            "Access-Control-Allow-Methods": "GET, POST, DELETE, OPTIONS",
            "Access-Control-Allow-Headers": named if named.isprintable() else "authorization",
            "Access-Control-Max-Age": "600",
        }

    def _check_content_type_and_key(self, head: RequestHead, headers: Mapping[str, str]) -> RequestRefusal | None:
        """Return a refusal for a body that is not JSON (415), or for a missing or wrong key (401) unless the path is
        open; else None."""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        bare = self.bare_bodies and "content-type" not in headers and not _is_browser(headers)
        if head.method in _WITH_BODY and kind != "application/json" and not bare:
            cure = "send JSON with the header Content-Type: application/json"
            return RequestRefusal(415, "not_json", f"the content type {kind[:80]!r} is not accepted; {cure}")
        return None if head.path in OPEN_PATHS and head.method in ("GET", "HEAD") else self._check_key(headers)

    def _check_key(self, headers: Mapping[str, str]) -> RequestRefusal | None:
        """Return a refusal (401) for a missing or wrong key; None if it is right or the server has none."""
        if self.key is None or any(_is_same_key(each, self.key.reveal()) for each in _request_keys(headers)):
            return None
        cause = "the key is wrong" if any(_request_keys(headers)) else "the request has no key"
        cure = "send the key of this server as Authorization: Bearer KEY or as x-api-key"
        return RequestRefusal(401, "invalid_api_key", f"{cause}; {cure}", {"WWW-Authenticate": "Bearer"})

    def _check_length(self, headers: Mapping[str, str]) -> RequestRefusal | None:
        """Return a refusal for an invalid (400) or too large (413) Content-Length; else None."""
        length = headers.get("content-length", "0").strip()
        if not (length.isascii() and length.isdigit()):
            return RequestRefusal(
                400, "bad_length", "Content-Length is not a number; send the length of the body in bytes"
            )
        return self.large_body_refusal() if len(length) > 15 or int(length) > self.limits.body else None

    def large_body_refusal(self) -> RequestRefusal:
        """Return the refusal (413) of a body beyond the size limit."""
        return RequestRefusal(413, "body_too_large", f"the body is larger than {self.limits.body:,} bytes; send less")

    def malformed_body_refusal(self) -> RequestRefusal:
        """Return the refusal (400) of a body that cannot be read as its headers declare."""
        return RequestRefusal(400, "bad_body", "the body does not match its headers; send it uncompressed and whole")

    def slow_body_refusal(self) -> RequestRefusal:
        """Return the refusal (408) of a body that did not arrive in time."""
        return RequestRefusal(
            408, "too_slow", f"the body did not arrive within {self.limits.seconds:g} seconds; send it again"
        )

    def busy_refusal(self) -> RequestRefusal:
        """Return the refusal (503 with Retry-After) of a request beyond the limit of concurrent ones."""
        cause = f"{self.limits.concurrent} requests are in progress already"
        return RequestRefusal(503, "too_many_requests", f"{cause}; try again in a moment", {"Retry-After": "1"})


def make_gate(
    host: str,
    *,
    key: Key | None,
    no_key: bool = False,
    open_to_all: bool = False,
    origins: Iterable[str] = (),
    hosts: Iterable[str] = (),
    limits: RequestLimits | None = None,
    bare_bodies: bool = False,
) -> Gate:
    """Return the gate of a server on this address.

    A server without a key needs `no_key`, and a loopback address unless `open_to_all` is set. With `bare_bodies`
    programs may omit the content type; browsers may not. Raises `CallerError` if these rules are violated, and for an
    invalid origin.
    """
    if key is None and not open_to_all and not is_loopback(host):
        raise CallerError(f"{host!r} can be reached from other machines: set a key, or listen on 127.0.0.1")
    if key is None and not no_key:
        raise CallerError("no key: other programs and web pages can reach this server; set a key, or pass no_key")
    allowed = frozenset([_parse_origin(each) for each in origins])
    return Gate(
        host=host,
        key=key,
        bare_bodies=bare_bodies,
        origins=allowed,
        hosts=frozenset(map(str.lower, hosts)),
        limits=limits or RequestLimits(),
    )


def new_key() -> Key:
    """Return a new random key for one run of a server."""
    return Key("rck_" + secrets.token_urlsafe(24), "made for this start")


def given_key(text: str) -> Key:
    """Return a key chosen by the user. Raises `CallerError` if it is too short or cannot be sent in a header."""
    if len(text) < 8 or not text.isascii() or not text.isprintable() or " " in text:
        raise CallerError("the key of a server needs at least 8 printable ASCII characters and no spaces")
    return Key(text, "given")


def _parse_origin(origin: str) -> str:
    """Return the origin as scheme, host and port in lower case. Raises `CallerError` if it is not an http or https
    origin."""
    parts = urlsplit(origin.strip().lower().rstrip("/"))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query or "*" in origin:
        raise CallerError(f"{origin!r} is not an origin; write it like http://localhost:3000")
    return f"{parts.scheme}://{parts.netloc}"


def _is_browser(headers: Mapping[str, str]) -> bool:
    """Return whether a browser sent a request, given its headers: browsers name the origin with each body, or send
    headers that begin with `sec-`."""
    return any(name == "origin" or name.startswith("sec-") for name in headers)


def _origin_refusal(origin: str) -> RequestRefusal:
    """Return the refusal (403) of a request from a page of this origin."""
    cure = "allow it with --allow-origin when the server starts"
    return RequestRefusal(403, "foreign_origin", f"pages from {origin[:80]!r} may not use this server; {cure}")


def _request_keys(headers: Mapping[str, str]) -> list[str]:
    """Return the keys in a request's headers: the bearer token, then those of Anthropic's and Google's headers;
    empty ones left out."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    others = [headers.get(name, "").strip() for name in _KEY_HEADERS]
    return [each for each in (bearer, *others) if each]


def _is_same_key(given: str, key: str) -> bool:
    """Return whether two keys are equal, in a time that does not depend on their content."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), key.encode())


def parse_host(header: str) -> str | None:
    """Return the host of a Host header in lower case, without port, brackets and final dot; None if it is malformed."""
    found = _HOST(header.strip())
    return None if found is None else found[1].strip("[]").lower().removesuffix(".")


def is_ip_address(name: str) -> bool:
    """Return whether a name is an IP address, also in brackets, and not a host name."""
    return _parse_address(name) is not None


def is_unspecified(name: str) -> bool:
    """Return whether this is the address for all addresses of the machine (0.0.0.0, ::); False for a host name."""
    address = _parse_address(name)
    return address is not None and address.is_unspecified


@lru_cache(1000)
def is_loopback(host: str) -> bool:
    """Return whether this address or name (in lower case) always refers to the machine of the client: 127.x, ::1,
    localhost and its subdomains."""
    address = _parse_address(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _parse_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an IP address, also from brackets; None for a host name."""
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return None


# -- error bodies, in the shape of each API ----------------------------------------------------------------------------

_ERROR_TYPES = {
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
_GOOGLE_STATUS = {
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
    """Return an error as the JSON body of this API; `details` are added unless the API is Ollama, which has no place
    for them."""
    if api == "ollama":
        return {"error": message}
    beside = {} if details is None else {"details": details}
    if api == "gemini":
        google = {"code": status, "message": message, "status": _google_status(status)}
        return {"error": {**google, "details": _google_details(code, details)}}
    if api == "messages":
        return {"type": "error", "error": {"type": error_type(status), "message": message, **beside}}
    return {"error": {"message": message, "type": error_type(status), "param": None, "code": code, **beside}}


def error_type(status: int) -> str:
    """Return the error type for this HTTP status, the same for OpenAI and Anthropic; a generic one if it has none."""
    return _ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")


def _google_status(status: int) -> str:
    """Return Google's status name for an HTTP status; INVALID_ARGUMENT for another status below 500, UNAVAILABLE from
    500 on."""
    return _GOOGLE_STATUS.get(status, "INVALID_ARGUMENT" if status < 500 else "UNAVAILABLE")


def _google_details(code: str, details: Any) -> list[Any]:
    """Return the error code and the details as Google sends them: a list of objects, the first with the code as
    reason."""
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code.upper(), "domain": "rightcall"}
    return [reason, *(details if isinstance(details, list) else [] if details is None else [details])]


def refusal_body(refusal: RequestRefusal, path: str) -> Json:
    """Return the JSON body of a refusal in the shape of the API that this path belongs to, Chat for an unknown path;
    JSON-RPC for a path that ends in /mcp."""
    message, code = refusal.message, refusal.code
    if path.rstrip("/").endswith("/mcp"):
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message, "data": {"code": code}}}
    return error_body(api_of_path(path), refusal.status, message, code)


def api_of_path(path: str) -> Api:
    """Return the API that this path belongs to; Chat for unknown paths."""
    if path.startswith("/api/"):
        return "ollama"
    if ":generateContent" in path or ":streamGenerateContent" in path or ":countTokens" in path:
        return "gemini"
    if "/messages" in path:
        return "messages"
    return "responses" if "/responses" in path else "chat"
