"""Retries of requests: which errors are retried and after what delay."""

from datetime import UTC, datetime

import pytest

from rightcall.backends.exchange import Retries
from rightcall.backends.retry import is_about_tools, is_temporary, retry_after, wait_before
from rightcall.errors import (
    BackendError,
    BodyError,
    DecodeError,
    NotRecorded,
    ProviderError,
    StatusError,
    TimedOut,
    TransportError,
    Unsupported,
)

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "9" * 400}, None),
        ({}, None),
    ],
)
def test_retry_after_headers_are_read_in_every_spelling(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    "error, temporary",
    [
        (StatusError("", 429), True),
        (StatusError("", 503), True),
        (StatusError("", 500, "tools param requires --jinja flag"), False),
        (StatusError("", 400), False),
        (TimedOut("", "connect"), True),
        (TimedOut("", "first_byte"), False),
        (TimedOut("", "total"), False),
        (TransportError("connection refused"), True),
        (TransportError("certificate verify failed"), False),
        (BodyError(""), True),
        (ProviderError("", "overloaded_error"), True),
        (ProviderError("", "invalid_request_error"), False),
        (DecodeError(""), False),
        (Unsupported(""), False),
        (NotRecorded(""), False),
    ],
)
def test_only_temporary_errors_are_retried(error: BackendError, temporary: bool) -> None:
    assert is_temporary(error) is temporary
    assert (wait_before(1, error, Retries()) is not None) is temporary


def test_delays_double_with_jitter_up_to_the_longest_delay() -> None:
    retries = Retries(most=9, first=1.0, longest=5.0)
    for tried, longest in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 5.0), (9, 5.0)):
        waits = [wait_before(tried, StatusError("", 500), retries) for _ in range(50)]
        assert all(wait is not None and longest / 2 <= wait <= longest for wait in waits)
        assert len(set(waits)) > 1  # otherwise all clients would retry at the same time
    assert wait_before(10, StatusError("", 500), retries) is None


def test_a_delay_requested_by_the_server_is_used_or_the_retry_is_given_up() -> None:
    assert wait_before(1, StatusError("", 429, retry_after=20.0), Retries(longest=30)) == 20.0
    assert wait_before(1, StatusError("", 429, retry_after=31.0), Retries(longest=30)) is None


@pytest.mark.parametrize(
    "error, expected",
    [
        (StatusError("", 400, '"auto" tool choice requires --enable-auto-tool-choice'), True),
        (StatusError("", 400, '{"error":"registry.ollama.ai/library/x does not support tools"}'), True),
        (StatusError("", 500, "tools param requires --jinja flag"), True),
        (StatusError("", 401, "tools"), False),
        (StatusError("", 400, "context too long"), False),
        (ProviderError("this model has no tools"), True),
        (TransportError("tools"), False),
    ],
)
def test_an_error_about_missing_tool_support_is_recognised(error: BackendError, expected: bool) -> None:
    assert is_about_tools(error) is expected
