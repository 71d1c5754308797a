"""What a line of a log holds, whatever wrote it: messages in the form of the chat API, and turns of a model as they
were logged.

    Log((user_message, LogTurn(response, "auto", id="chatcmpl-1", at=1763200000000)), model="gpt-4o", id="req-7")

And what many logs say in one of several words: which model, when, under which id.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from rightcall.providers.sdk_view import dumps, items, text
from rightcall.types import Json


class LogTurn(msgspec.Struct, frozen=True):
    """A turn of the model, as logged.

    - `value`, `api`: what was logged and how it is to be read; "text" says that it is what the model wrote.
    - `is_history`: it stands in the request of what was recorded, and so is no row of its own.
    - `id`, `finish`: the id of the answer, and how it ended, where the log says so beside the answer.
    - `at`: when it was said, in milliseconds since 1970.
    - `number`: which turn of the conversation it is, where the log counts them.
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
    """Messages of the other side in the form of the chat API, turns of the model as they were logged.

    - `tools`, `format`: what could be called, as any provider or a JSON text says it; the format of texts.
    - `model`, `at`, `id`: as the log says; empty where it does not.
    - `is_exchange`: it is one answer and what was sent for it, so the next line may go on with it.
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
    """A line that belongs where it stands and holds no conversation; the message says what it is, in few words."""


# -- words of many logs ------------------------------------------------------------------------------------------------

_MODELS = ("model", "model_name", "modelVersion", "model_version", "model_id")
_TIMES = (
    *("created", "created_at", "createdAt", "createTime", "create_time", "timestamp", "time", "ts", "start_time"),
    *("startTime", "date"),
)
_IDS = ("custom_id", "id", "request_id", "key", "uuid", "trace_id", "conversation_id")
_FAR = 32_503_680_000  # seconds until the year 3000; what is larger counts something smaller


def model_in(*holders: Json) -> str:
    """The first model that one of them names."""
    return next((said for holder in holders for key in _MODELS if (said := text(holder.get(key)))), "")


def id_in(*holders: Json) -> str:
    """The first id that one of them has."""
    return next((said for holder in holders for key in _IDS if (said := _id(holder.get(key)))), "")


def _id(value: Any) -> str:
    return str(value) if type(value) is int else text(value)[:500]


def time_in(*holders: Json) -> int | None:
    """The first time that one of them says, in milliseconds since 1970."""
    said = (_moment(holder[key]) for holder in holders for key in _TIMES if key in holder)
    return next((at for at in said if at is not None), None)


def _moment(value: Any) -> int | None:
    """Seconds or smaller parts of them since 1970, as a number or in digits; or a time as ISO 8601 writes it."""
    if isinstance(value, str):
        number = _number(value)
        return _iso(value) if number is None else _moment(number)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _FAR * 10**9:
        return None
    for smaller in (1, 1_000, 1_000_000, 1_000_000_000):
        if value < _FAR * smaller:
            return int(value * 1_000) if smaller == 1 else int(value // (smaller // 1_000))
    return None


def _number(said: str) -> float | None:
    try:
        return float(said) if len(said) <= 40 else None
    except ValueError:
        return None


def _iso(said: str) -> int | None:
    try:
        found = datetime.fromisoformat(said[:40].strip())
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1_000)
    except (ValueError, OverflowError):
        return None


def flat(content: Any) -> str:
    """Content as text: its texts, and what is no text as JSON, so that nothing is lost."""
    if isinstance(content, str) or content is None:
        return content or ""
    parts = items(content)
    said = [
        part["text"] if isinstance(part, dict) and isinstance(part.get("text"), str) else dumps(part) for part in parts
    ]
    return "\n".join(said) if parts else ("" if isinstance(content, list) else dumps(content))
