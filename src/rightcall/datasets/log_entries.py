"""The entries of a log line, whatever program wrote it: messages in the form of the chat API, and turns of a model as
they were logged.

    Log((user_message, LogTurn(response, "auto", id="chatcmpl-1", at=1763200000000)), model="gpt-4o", id="req-7")

`find_model`, `find_id` and `find_time_ms` find values that logs name differently.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from rightcall.providers.sdk_view import compact_json, items, text
from rightcall.types import Json


class LogTurn(msgspec.Struct, frozen=True):
    """A turn of the model, as logged.

    - `value`, `api`: the logged value and the API that reads it; "text" is the text of a model.
    - `is_history`: it is part of the request of an exchange, and so gets no row.
    - `id`, `finish`: the id of the answer and its finish reason, where the log has them beside the answer.
    - `at`: the time, in milliseconds since 1970.
    - `number`: the index of the turn in the conversation, where the log counts turns.
    """

    value: Any
    api: str
    is_history: bool = False
    id: str | None = None
    finish: str | None = None
    at: int | None = None
    number: int | None = None


Entry = Json | LogTurn


class Log(msgspec.Struct, frozen=True):
    """A logged conversation: messages of the other side in the form of the chat API, turns of the model as logged.

    - `tools`, `format`: the tools in the form of any provider or as JSON text; the format of texts.
    - `model`, `at`, `id`: as the log names them; empty where it does not.
    - `is_exchange`: it is one answer with its request, which the next line may continue.
    - `group`, `place`: the conversation, and its domain, scenario and run, where it was a capture.
    """

    entries: tuple[Entry, ...]
    tools: Any = None
    format: str = "auto"
    model: str = ""
    at: int | None = None
    id: str = ""
    is_exchange: bool = False
    group: str = ""
    place: Json | None = None


class PassedOver(Exception):
    """A valid line without a conversation. The message names what it is."""


# -- values with several names -----------------------------------------------------------------------------------------

_MODELS = ("model", "model_name", "modelVersion", "model_version", "model_id")
_TIMES = (
    *("created", "created_at", "createdAt", "createTime", "create_time", "timestamp", "time", "ts", "start_time"),
    *("startTime", "date"),
)
_IDS = ("custom_id", "id", "request_id", "key", "uuid", "trace_id", "conversation_id")
_YEAR_3000 = 32_503_680_000  # in seconds; a larger number counts a smaller unit


def find_model(*holders: Json) -> str:
    """Return the first model name under one of the usual keys of these objects; "" if there is none."""
    return next((found for holder in holders for key in _MODELS if (found := text(holder.get(key)))), "")


def find_id(*holders: Json) -> str:
    """Return the first id under one of the usual keys of these objects, as text; "" if there is none."""
    return next((found for holder in holders for key in _IDS if (found := _parse_id(holder.get(key)))), "")


def _parse_id(value: Any) -> str:
    """Return an integer as text, a text cut to 500 characters; "" for any other value."""
    return str(value) if type(value) is int else text(value)[:500]


def find_time_ms(*holders: Json) -> int | None:
    """Return the first readable time under one of the usual keys of these objects, in milliseconds since 1970; None
    if there is none."""
    found = (_parse_unix_ms(holder[key]) for holder in holders for key in _TIMES if key in holder)
    return next((at for at in found if at is not None), None)


def _parse_unix_ms(value: Any) -> int | None:
    """Return a time as milliseconds since 1970; None if it cannot be read. It is a number, or digits, of seconds,
    milliseconds, microseconds or nanoseconds, distinguished by size, or a text in ISO 8601."""
    if isinstance(value, str):
        try:
            number = float(value) if len(value) <= 40 else None
        except ValueError:
            number = None
        return _parse_iso_ms(value) if number is None else _parse_unix_ms(number)
    if type(value) not in (int, float) or not 0 < value < _YEAR_3000 * 10**9:
        return None
    for units in (1, 1_000, 1_000_000, 1_000_000_000):  # per second
        if value < _YEAR_3000 * units:
            return int(value * 1_000) if units == 1 else int(value // (units // 1_000))
    return None


def _parse_iso_ms(value: str) -> int | None:
    """Return a time in ISO 8601 as milliseconds since 1970, UTC if it has no zone; None if it is invalid."""
    try:
        found = datetime.fromisoformat(value[:40].strip())
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1_000)
    except (ValueError, OverflowError):
        return None


def flatten_content(content: Any) -> str:
    """Return the content of a message as one text: its text parts, and any other part as JSON, joined by line breaks;
    "" for None and for an empty list, JSON for any other value."""
    if isinstance(content, str) or content is None:
        return content or ""
    parts = items(content)
    texts = [
        part["text"] if isinstance(part, dict) and isinstance(part.get("text"), str) else compact_json(part)
        for part in parts
    ]
    return "\n".join(texts) if parts else ("" if isinstance(content, list) else compact_json(content))
