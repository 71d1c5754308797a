"""The entries of a log line, whatever wrote it: messages in the form of the chat API, and turns of a model as they
were logged.

    Log((user_message, LogTurn(response, "auto", id="chatcmpl-1", at=1763200000000)), model="gpt-4o", id="req-7")

`model_in`, `id_in` and `time_in` find values that logs name differently.
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


def model_in(*holders: Json) -> str:
    """Return the first model that one of these objects names."""
    return next((found for holder in holders for key in _MODELS if (found := text(holder.get(key)))), "")


def id_in(*holders: Json) -> str:
    """Return the first id that one of these objects has."""
    return next((found for holder in holders for key in _IDS if (found := _read_id(holder.get(key)))), "")


def _read_id(value: Any) -> str:
    return str(value) if type(value) is int else text(value)[:500]


def time_in(*holders: Json) -> int | None:
    """Return the first time that one of these objects has, in milliseconds since 1970."""
    found = (_read_time(holder[key]) for holder in holders for key in _TIMES if key in holder)
    return next((at for at in found if at is not None), None)


def _read_time(value: Any) -> int | None:
    """Read seconds, or a smaller unit, since 1970, as a number or as digits; or a time in ISO 8601."""
    if isinstance(value, str):
        try:
            number = float(value) if len(value) <= 40 else None
        except ValueError:
            number = None
        return _read_iso_time(value) if number is None else _read_time(number)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _YEAR_3000 * 10**9:
        return None
    for units in (1, 1_000, 1_000_000, 1_000_000_000):  # per second
        if value < _YEAR_3000 * units:
            return int(value * 1_000) if units == 1 else int(value // (units // 1_000))
    return None


def _read_iso_time(value: str) -> int | None:
    try:
        found = datetime.fromisoformat(value[:40].strip())
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1_000)
    except (ValueError, OverflowError):
        return None


def flatten_content(content: Any) -> str:
    """Return content as text: its texts, and everything else as JSON, so that nothing is lost."""
    if isinstance(content, str) or content is None:
        return content or ""
    parts = items(content)
    texts = [
        part["text"] if isinstance(part, dict) and isinstance(part.get("text"), str) else compact_json(part)
        for part in parts
    ]
    return "\n".join(texts) if parts else ("" if isinstance(content, list) else compact_json(content))
