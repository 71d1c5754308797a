"""What a row of a log holds: the reply, its id, the model, the tools. Keys are told, as dotted paths, or found by name.

reply_in({"id": 7, "response": {"body": {"choices": [...]}}})      # the answer, for `read`
reply_in({"id": 8, "generated_text": "..."})                       # what the model wrote, for `parse`
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from rightcall.errors import CallerError
from rightcall.providers.sniff import sniff
from rightcall.strict_json import MAX_DEPTH, Undecodable, decode
from rightcall.tools.toolset import Toolset
from rightcall.types import Json

# Those come first that only a reply is called by.
_REPLIES = tuple(
    "response completion generated_text output output_text outputs model_output raw_output answer reply prediction "
    "generation result body message text content raw".split()
)
_IDS = tuple("custom_id id request_id uuid _id trace_id key index idx".split())
_MODELS = ("model", "model_name", "model_id", "modelVersion")
_TOOLS = ("tools", "functions", "available_tools", "tool_definitions")
_FINISHES = ("finish_reason", "stop_reason", "done_reason", "finish")
_WHOLE = frozenset(("choices", "candidates", "tool_calls", "function_call"))  # of answers, not of logs of them
_DECIDING = frozenset(("content", "output", "message"))  # what they hold decides what the row is
_SHAPES = 1_000
_DEEP = 4  # objects in objects that are looked into
_KEPT = 200_000  # characters of tools that are kept when read


class RowKeys(msgspec.Struct, frozen=True):
    """Where things stand in a row: dotted paths, or None to find them by name."""

    text: str | None = None
    id: str | None = None
    model: str | None = None
    tools: str | None = None


class NoReply(CallerError):
    """A row in which no reply is found. The message names its keys."""


def told(row: Any, path: str) -> Any:
    """What stands at a dotted path (`response.body.choices.0`); None if nothing does. A key with dots in it counts
    first."""
    if isinstance(row, dict) and path in row:
        return row[path]
    for key in path.split("."):
        if isinstance(row, dict):
            row = row.get(key)
        elif isinstance(row, list) and key.isdecimal() and int(key) < len(row):
            row = row[int(key)]
        else:
            return None
    return row


# -- the reply ---------------------------------------------------------------------------------------------------------


def reply_of(row: Json, keys: RowKeys) -> Any:
    """A text, or a provider's answer. Raises `NoReply`."""
    found = _found(row) if keys.text is None else told(row, keys.text)
    if isinstance(found, (str, dict, list)):
        return found
    names = ", ".join([repr(key)[:40] for key in list(row)[:8]]) or "none"
    if keys.text is not None:
        raise NoReply(f"nothing stands at {keys.text!r}; the keys are {names}")
    raise NoReply(f"no reply is found; its keys are {names}: say where it stands with --text-key")


_TEXT_AT: dict[tuple[str, ...], str] = {}  # by the keys of rows: where their reply stands if that is a text


def _found(row: Json) -> Any:
    """As `reply_in`. Rows of one log have the same keys, so where a text stands is worked out once."""
    shape = tuple(row)
    name = _TEXT_AT.get(shape)
    if name is not None and type(row[name]) is str:
        return row[name]
    found = reply_in(row)
    first = next((each for each in _REPLIES if each in row), "")
    if found is row.get(first) and type(found) is str and _DECIDING.isdisjoint(row.keys() - {first}):
        if len(_TEXT_AT) >= _SHAPES:
            _TEXT_AT.clear()
        _TEXT_AT[shape] = first
    return found


def reply_in(row: Json, deep: int = _DEEP) -> Any:
    """What the model wrote, or what a provider answered, found by the names of keys; None where there is none."""
    if _is_answer(row):
        return row
    for key in _REPLIES:
        found = _reply_at(row.get(key), deep)
        if found is not None:
            return found
    last = _last_turn(row.get("messages"))
    return row if last is None and row.get("error") else last


def _is_answer(row: Json) -> bool:
    """Is the row itself the answer, or the message, and not something that holds it?"""
    if not _WHOLE.isdisjoint(row) or isinstance(row.get("content"), list) or isinstance(row.get("output"), list):
        return True
    if "role" in row and "content" in row:
        return True
    is_ollama = "done" in row and ("message" in row or "response" in row)
    return is_ollama or ("finish_reason" in row and isinstance(row.get("message"), dict))


def _reply_at(value: Any, deep: int) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
        return _reply_at(value, deep - 1) if deep else None
    if isinstance(value, list):
        return value if sniff(value) else None
    return reply_in(value, deep - 1) if isinstance(value, dict) and deep else None


def _last_turn(messages: Any) -> Any:
    if not isinstance(messages, list):
        return None
    turns = (each for each in reversed(messages) if isinstance(each, dict) and each.get("role") == "assistant")
    return next(turns, None)


def is_of_provider(text: str) -> bool:
    """May this text be a provider's answer as JSON, or a recorded stream, and not what a model wrote?"""
    return text.startswith(("{", "[", "data:", "event:")) or text[:1].isspace()


# -- the rest ----------------------------------------------------------------------------------------------------------


def id_of(row: Json, keys: RowKeys) -> Any:
    return _named(row, _IDS) if keys.id is None else told(row, keys.id)


def model_of(row: Json, keys: RowKeys) -> Any:
    if keys.model is not None:
        return told(row, keys.model)
    found = _named(row, _MODELS)
    if found is None:
        inner = (row.get(key) for key in ("response", "request", "body"))
        found = next((name for each in inner if isinstance(each, dict) and (name := model_of(each, keys))), None)
    return found


def finish_of(row: Json) -> str | None:
    """How the answer ended, where that stands beside a text."""
    found = _named(row, _FINISHES)
    return found if isinstance(found, str) else None


def _named(row: Json, names: tuple[str, ...]) -> Any:
    for name in names:
        found = row.get(name)
        if found is not None:
            return found
    return None


def tools_of_row(row: Json, keys: RowKeys) -> Toolset | None:
    """The tools that a row declares, as definitions of any provider or as JSON text with them; None if it has none.
    What cannot be used of them is left out."""
    given = _tools_in(row) if keys.tools is None else told(row, keys.tools)
    if not given:
        return None
    said = given if isinstance(given, str) else msgspec.json.encode(given)
    return _toolset(said) if len(said) < _KEPT else _toolset.__wrapped__(said)


def _tools_in(row: Json) -> Any:
    found = _named(row, _TOOLS)
    if found is not None:
        return found
    for key in ("request", "body", "input"):
        inner = row.get(key)
        if isinstance(inner, dict) and (found := _tools_in(inner)) is not None:
            return found
    return None


@lru_cache(64)
def _toolset(said: str | bytes) -> Toolset | None:
    """Rows share their tools: what was read is kept for a while."""
    given = decode(said if isinstance(said, str) else said.decode(), MAX_DEPTH)
    if not isinstance(given, (list, dict)) or isinstance(given, Undecodable):
        return None
    return Toolset.lenient(given)
