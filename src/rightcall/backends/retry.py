"""Retry policy: which errors are retried, and how long to wait before. Pure functions without waiting."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from rightcall.backends.exchange import Retries
from rightcall.errors import (
    AnswerTooLarge,
    BackendError,
    BodyError,
    ProviderError,
    StatusError,
    TimedOut,
    TransportError,
)

AGAIN = frozenset((408, 425, 429, 500, 502, 503, 504, 529))
_PASSING = (
    "overloaded",
    "rate_limit",
    "server_error",
    "unavailable",
    "timeout",
    "internal",
    "429",
    "500",
    "502",
    "503",
    "529",
)
_LASTING = ("certificate", "name or service not known", "nodename nor servname", "not http")


def is_temporary(error: BackendError) -> bool:
    """Return True if the same request may succeed when it is retried: after some HTTP statuses, broken connections and
    overload. False for rejected tools, other timeouts than of connecting, and answers that are too large."""
    if isinstance(error, StatusError):
        return error.status in AGAIN and not is_about_tools(error)
    if isinstance(error, TimedOut):
        return error.stage == "connect"
    if isinstance(error, TransportError):
        return not any(word in str(error).lower() for word in _LASTING)
    if isinstance(error, ProviderError):
        return any(word in error.kind.lower() for word in _PASSING)
    return isinstance(error, BodyError) and not isinstance(error, AnswerTooLarge)


def is_about_tools(error: BackendError) -> bool:
    """Return True if the error's text shows that the server or its model has no tools, or cannot compile a grammar for
    these. Retrying the same request does not help."""
    if not isinstance(error, StatusError | ProviderError):
        return False
    if isinstance(error, StatusError) and error.status not in (400, 404, 405, 422, 500, 501):
        return False
    said = (error.body if isinstance(error, StatusError) else str(error)).lower()
    return any(word in said for word in ("tool", "jinja", "function call", "grammar"))


def is_about_schemas(error: BackendError) -> bool:
    """Return True if the error's text shows that the server rejects the schemas of these tools, or a grammar made from
    them, and not tools in general."""
    said = (error.body if isinstance(error, StatusError) else str(error)).lower()
    return is_about_tools(error) and any(word in said for word in ("grammar", "schema"))


def wait_before(tried: int, error: BackendError, retries: Retries) -> float | None:
    """Return the seconds to wait before the next try, after `tried` tries of which the last failed with `error`; None
    if the request must not be retried. A wait that the server asks for is used, but not one above `retries.longest`."""
    if tried > retries.most or not is_temporary(error):
        return None
    asked = error.retry_after if isinstance(error, StatusError) else None
    if asked is not None:
        return asked if asked <= retries.longest else None
    longest = min(retries.longest, retries.first * 2.0 ** min(tried - 1, 30))
    return longest * random.uniform(0.5, 1.0)


def retry_after(headers: dict[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds that a server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date.
    None if there is no such header or it cannot be read."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        return seconds if 0 <= seconds < 1e9 else None
    try:
        until = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError, TypeError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - (now or datetime.now(UTC))).total_seconds())
