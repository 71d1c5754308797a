"""The decision whether a request may come in: values in, a refusal or nothing out.

A web page can send requests to this machine, under a name of its own that leads here (DNS rebinding), or across origins
with a body that needs no leave (`text/plain`). So a request must name this machine as its Host, come from no page of
another origin, carry JSON, and know the key.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from rightcall.errors import CallerError
from rightcall.redaction.key import Key

_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]{2,60}\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?", re.A).fullmatch
_WITH_BODY = ("POST", "PUT", "PATCH")
_KEY_HEADERS = ("x-api-key", "x-goog-api-key")  # Anthropic's clients, and Google's
_ONCE = ("host", "origin", "authorization", *_KEY_HEADERS, "content-type", "content-length")
OPEN = ("/health", "/v1/health", "/health/liveliness", "/health/readiness", "/ready")


class RequestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes of a body, headers and their bytes, requests at the same time, seconds until a request's head and then its
    body must have come."""

    body: int = 64_000_000
    headers: int = 100
    header_bytes: int = 32_000
    together: int = 64
    head_seconds: float = 10.0
    seconds: float = 60.0


class RequestHead(NamedTuple):
    """A request without its body. Names of headers in small letters, each as often as it came."""

    method: str
    path: str
    headers: Sequence[tuple[str, str]]


class RequestRefusal(msgspec.Struct, frozen=True):
    """What to answer instead: status, a word for programs, and what is wrong and what to do for people."""

    status: int
    code: str
    message: str
    headers: dict[str, str] = {}


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """What a server asks for. Made by `guarding`, which refuses what would be open to others."""

    host: str
    key: Key | None
    bare_bodies: bool = False
    origins: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    limits: RequestLimits = RequestLimits()

    def refusal(self, head: RequestHead) -> RequestRefusal | None:
        """Why this request may not come in, or None."""
        found = self._too_much(head)
        if found is not None:
            return found
        headers = dict(head.headers)
        return (
            self._host(headers)
            or self._origin(headers)
            or (None if self.preflight(head) is not None else self._kind(head, headers))
            or self._length(headers)
        )

    def _too_much(self, head: RequestHead) -> RequestRefusal | None:
        size = sum([len(name) + len(value) for name, value in head.headers])
        if len(head.headers) > self.limits.headers or size > self.limits.header_bytes:
            most = f"{self.limits.headers} headers of {self.limits.header_bytes:,} bytes together"
            return RequestRefusal(431, "headers_too_large", f"the request has more than {most}; send fewer")
        names = [name for name, _ in head.headers]
        twice = next((name for name in _ONCE if names.count(name) > 1), None)
        if twice is not None:
            return RequestRefusal(400, "header_twice", f"the header {twice} stands there twice; send it once")
        return None

    def _host(self, headers: Mapping[str, str]) -> RequestRefusal | None:
        said = headers.get("host", "")
        name = host_name(said)
        if name is not None and self._is_ours(name):
            return None
        cure = f"use http://{self.host} or http://localhost, or name this host with --allow-host when the server starts"
        return RequestRefusal(421, "wrong_host", f"this server does not answer to the Host {said[:80]!r}; {cure}")

    def _is_ours(self, name: str) -> bool:
        if is_loopback(name) or name == self.host.lower() or name in self.hosts:
            return True
        # A name can be made to lead anywhere; a number cannot.
        return is_unspecified(self.host) and is_number(name)

    def _origin(self, headers: Mapping[str, str]) -> RequestRefusal | None:
        origin = headers.get("origin")
        if origin is not None:
            return None if self.allows(origin, headers.get("host", "")) else _foreign(origin)
        site = headers.get("sec-fetch-site", "none")
        return None if site in ("none", "same-origin") else _foreign(f"({site})")

    def allows(self, origin: str, host: str) -> bool:
        """Is this origin the server's own, or one that was allowed?"""
        if origin.lower() in self.origins:
            return True
        try:
            parts = urlsplit(origin.lower())
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and bool(host) and parts.netloc == host.lower()

    def cors(self, origin: str | None) -> dict[str, str]:
        """The headers that let a page of an allowed origin read the answer. There are none for any other."""
        if origin is None or origin.lower() not in self.origins:
            return {}
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}

    def preflight(self, head: RequestHead) -> dict[str, str] | None:
        """The headers for a browser that asks whether it may ask, if this is one."""
        if head.method != "OPTIONS":
            return None
        headers = dict(head.headers)
        allowed = self.cors(headers.get("origin"))
        if not allowed:
            return None
        named = headers.get("access-control-request-headers", "authorization, content-type, x-api-key")
        return {
            **allowed,
            "Access-Control-Allow-Methods": "GET, POST, DELETE, OPTIONS",
            "Access-Control-Allow-Headers": named if named.isprintable() else "authorization",
            "Access-Control-Max-Age": "600",
        }

    def _kind(self, head: RequestHead, headers: Mapping[str, str]) -> RequestRefusal | None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        bare = self.bare_bodies and "content-type" not in headers and not _is_browser(headers)
        if head.method in _WITH_BODY and kind != "application/json" and not bare:
            cure = "send JSON with the header Content-Type: application/json"
            return RequestRefusal(415, "not_json", f"a body of the kind {kind[:80]!r} is not read here; {cure}")
        return None if head.path in OPEN and head.method in ("GET", "HEAD") else self._known(headers)

    def _known(self, headers: Mapping[str, str]) -> RequestRefusal | None:
        if self.key is None or any(_same(each, self.key.reveal()) for each in _given(headers)):
            return None
        cause = "the key is wrong" if any(_given(headers)) else "the request has no key"
        cure = "send the one that was shown when the server started, as Authorization: Bearer KEY or as x-api-key"
        return RequestRefusal(401, "invalid_api_key", f"{cause}; {cure}", {"WWW-Authenticate": "Bearer"})

    def _length(self, headers: Mapping[str, str]) -> RequestRefusal | None:
        length = headers.get("content-length", "0").strip()
        if not (length.isascii() and length.isdigit()):
            return RequestRefusal(
                400, "bad_length", "Content-Length is no number; send the length of the body in bytes"
            )
        return self.too_long() if len(length) > 15 or int(length) > self.limits.body else None

    def too_long(self) -> RequestRefusal:
        return RequestRefusal(413, "body_too_large", f"the body is larger than {self.limits.body:,} bytes; send less")

    def unreadable(self) -> RequestRefusal:
        return RequestRefusal(400, "bad_body", "the body is not what its headers say; send it plain and whole")

    def too_slow(self) -> RequestRefusal:
        return RequestRefusal(
            408, "too_slow", f"the body did not come within {self.limits.seconds:g} seconds; send it again"
        )

    def too_many(self) -> RequestRefusal:
        cause = f"{self.limits.together} requests are being answered already"
        return RequestRefusal(503, "too_many_requests", f"{cause}; try again in a moment", {"Retry-After": "1"})


def guarding(
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
    """The guard of a server on this address. Without a key (`no_key`) only this machine may be served, unless the one
    who starts it says in as many words that it is `open_to_all`. With `bare_bodies` programs need not say that they
    send JSON; browsers must."""
    if key is None and not open_to_all and not is_loopback(host):
        raise CallerError(f"serving on {host!r} lets other machines in; give a key, or serve on 127.0.0.1")
    if key is None and not no_key:
        raise CallerError("a server needs a key: other programs and web pages reach it too; give one, or say no_key")
    allowed = frozenset([_checked_origin(each) for each in origins])
    return Gate(
        host=host,
        key=key,
        bare_bodies=bare_bodies,
        origins=allowed,
        hosts=frozenset(map(str.lower, hosts)),
        limits=limits or RequestLimits(),
    )


def new_key() -> Key:
    """A key for one start of a server."""
    return Key("rck_" + secrets.token_urlsafe(24), "made for this start")


def given_key(text: str) -> Key:
    """A key that somebody chose. Raises `CallerError` for one that can be guessed or sent by no header."""
    if len(text) < 8 or not text.isascii() or not text.isprintable() or " " in text:
        raise CallerError("a server's key must have at least 8 characters that a header can carry, and no blank")
    return Key(text, "given")


def _checked_origin(origin: str) -> str:
    parts = urlsplit(origin.strip().lower().rstrip("/"))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query or "*" in origin:
        raise CallerError(f"{origin!r} is no origin; write it like http://localhost:3000")
    return f"{parts.scheme}://{parts.netloc}"


def _is_browser(headers: Mapping[str, str]) -> bool:
    """A browser says with each body where it comes from."""
    return any(name == "origin" or name.startswith("sec-") for name in headers)


def _foreign(origin: str) -> RequestRefusal:
    cure = "a page that may is named with --allow-origin when the server starts"
    return RequestRefusal(403, "foreign_origin", f"pages of {origin[:80]!r} may not use this server; {cure}")


def _given(headers: Mapping[str, str]) -> list[str]:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    others = [headers.get(name, "").strip() for name in _KEY_HEADERS]
    return [each for each in (bearer, *others) if each]


def _same(given: str, key: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), key.encode())


def host_name(said: str) -> str | None:
    """The name or number of a Host header, without port, brackets and the last dot; None if it is none."""
    found = _HOST(said.strip())
    return None if found is None else found[1].strip("[]").lower().removesuffix(".")


def is_number(name: str) -> bool:
    return _number(name) is not None


def is_unspecified(name: str) -> bool:
    """Is this the address that means every address of a machine?"""
    number = _number(name)
    return number is not None and number.is_unspecified


@lru_cache(1000)
def is_loopback(host: str) -> bool:
    """Does this lead to this very machine, whoever asks?"""
    number = _number(host)
    if number is None:
        return host == "localhost" or host.endswith(".localhost")
    mapped = getattr(number, "ipv4_mapped", None)
    return bool((mapped or number).is_loopback)


def _number(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return None
