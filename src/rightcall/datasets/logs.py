"""Logs and datasets of others as conversations in the form of the chat API: the way in for `dataset import`.

    conversation({"conversations": [{"from": "human", "value": "..."}, ...], "tools": "[...]"})

Each turn of the model is kept as it was logged (a provider's message, a list of items, or text), so that it is read by
the same code that reads models. A kind of log is one entry of `KINDS`; the first that knows a line reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rightcall.api_names import api_name
from rightcall.datasets import api_logs, capture_logs, recorded_logs, text_logs
from rightcall.datasets.api_logs import api_log
from rightcall.datasets.logged import Log
from rightcall.errors import CallerError
from rightcall.types import Json


class LogKind(NamedTuple):
    """A kind of log.

    - `knows`: is this line one?
    - `read`: what it holds. Raises `CallerError` if that is nothing, `PassedOver` if it should be nothing.
    - `key`, `join`: what lines that belong together have in common, and one line made of them.
    """

    knows: Callable[[Json], bool]
    read: Callable[[Json], Log]
    key: Callable[[Json], str] | None = None
    join: Callable[[list[Json]], Json] | None = None


def _came_through(api: str) -> LogKind:
    return LogKind(lambda row: api_logs.api_of(row) == api, api_log(api))


KINDS: dict[str, LogKind] = {
    "capture": LogKind(
        capture_logs.is_capture, capture_logs.captured, capture_logs.capture_group, capture_logs.captured_together
    ),
    "cassette": LogKind(recorded_logs.is_cassette, recorded_logs.cassette),
    "batch": LogKind(recorded_logs.is_batch, recorded_logs.batch, recorded_logs.batch_key, recorded_logs.batch_joined),
    "sharegpt": LogKind(text_logs.is_sharegpt, text_logs.sharegpt),
    "glaive": LogKind(text_logs.is_glaive, text_logs.glaive),
    "chat": _came_through("chat"),
    "messages": _came_through("messages"),
    "responses": _came_through("responses"),
    "gemini": _came_through("gemini"),
    "ollama": _came_through("ollama"),
    "text": LogKind(text_logs.is_written, text_logs.written),
}
_CURE = "name what it is with --from, and the text of a model `text`"


def conversation(row: Json, kind: str = "auto") -> Log:
    """What a line of a log holds. Raises `CallerError` if it holds none, `PassedOver` if that is as it should be."""
    named = log_kind(kind)
    log = KINDS[sniffed(row) if named == "auto" else named].read(row)
    if not log.entries:
        raise CallerError(f"there is no conversation in it; its keys are {_keys(row)}; {_CURE}")
    return log


def log_kind(name: str) -> str:
    """The word for a kind of log, or "auto". Raises `CallerError` for a name that is none."""
    return api_name(name, ("auto", *KINDS), what="kind of log")


def sniffed(row: Json) -> str:
    """Which kind of log a line is, told by its keys."""
    kind = next((name for name, kind in KINDS.items() if kind.knows(row)), None)
    if kind is None:
        raise CallerError(f"this is no log that is known; its keys are {_keys(row)}; {_CURE}")
    return kind


def _keys(row: Json) -> str:
    return ", ".join([repr(key)[:40] for key in list(row)[:8]]) or "none"


def joined_by(row: Json, kind: str = "auto") -> tuple[str, str]:
    """The kind of a line and what it has in common with those that belong to it; "" if it stands alone."""
    names = KINDS if kind == "auto" else (kind,)
    for name in names:
        known = KINDS[name]
        if known.key is not None and (kind == name or known.knows(row)):
            return name, known.key(row)
    return "", ""
