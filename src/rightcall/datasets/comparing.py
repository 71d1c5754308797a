"""What makes two rows the same, for `dataset dedupe`.

    compared(row)   ->   Compared(unit=..., content=..., turn=0, ...)

Of a capture, the whole conversation is compared: dropping some turns of it would make a bad turn look as if it had
never been. What is compared is what a trainer would see: tools, messages, what the model said, the label. Ids, times,
models and the names of groups are not. Of training rows and of the lines of others each row is compared by itself: all
of it, or what the `keys` name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rightcall.capture.captured_rows import FORGE, OUTCOME, SCHEMA
from rightcall.datasets.forge_rows import model_input
from rightcall.datasets.row_files import digest
from rightcall.datasets.schemas import TRAINING, label_of
from rightcall.errors import CallerError
from rightcall.storage.jsonl import encode_row
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.types import Json


class Compared(NamedTuple):
    """A row as it is compared: the digest of the `unit` that it belongs to, the digest of its own `content`, and its
    place in the unit. A row that is a unit by itself has its content for a unit."""

    unit: bytes
    content: bytes
    turn: int = 0
    call: int = 0


def compared(row: Json, keys: Sequence[str] = ()) -> Compared:
    """Raises `CallerError` for a row that has none of the keys."""
    if keys:
        return _alone(dict(_named(row, keys)))
    version = row.get("schema_version")
    if version in (SCHEMA, FORGE):
        return _of_conversation(row)
    if version == TRAINING and isinstance(row.get("input"), dict):
        return _alone({"input": model_input(row["input"]), "label": row.get("label")})
    return _alone(row)


def _alone(said: Any) -> Compared:
    content = digest(encode_row(_in_order(said)))
    return Compared(content, content)


def _of_conversation(row: Json) -> Compared:
    trace = row["proxy_trace"]
    place = (trace["turn"], trace["call_index"])
    names: dict[Any, int] = {}
    said = {
        "place": [*place, row["kind"], row.get("attempt")],
        "request": row["user_request"],
        "tools": row["available_tools"],
        "messages": [_without_ids(each, names) for each in row.get("messages") or ()],
        "assistant": _without_ids(row.get("assistant") or {}, names),
        "call": row.get("candidate_call"),
        "result": row.get("tool_result"),
        "outcome": row.get("outcome"),
        "label": label_of(row),
    }
    unit = f"{row['example_group_id']}\0{trace['model']}"
    turn, call = (min(max(each, 0), 0xFFFFFFFF) for each in place)
    return Compared(digest(unit), digest(encode_row(_in_order(said))), turn, call)


def _without_ids(message: Json, names: dict[Any, int]) -> Json:
    """A message in which the ids of calls are numbers, counted as they come: a server makes them up."""
    made = {key: value for key, value in message.items() if key not in ("tool_call_id", "tool_calls", "id")}
    if "tool_call_id" in message:
        made["tool_call_id"] = names.setdefault(_text(message["tool_call_id"]), len(names))
    if isinstance(message.get("tool_calls"), list):
        made["tool_calls"] = [
            {**each, "id": names.setdefault(_text(each.get("id")), len(names))} if isinstance(each, dict) else each
            for each in message["tool_calls"]
        ]
    return made


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _in_order(value: Any) -> Any:
    """Objects with their keys in order: the order says nothing."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def _named(row: Json, keys: Sequence[str]) -> Iterator[tuple[str, Any]]:
    found = [(key, at_path(row, key)) for key in keys]
    if all(value is None for _, value in found):
        raise CallerError(f"it has none of the keys {', '.join(keys)}; --key names what is compared")
    return iter(found)


def at_path(row: Any, path: str) -> Any:
    """What stands at a path with dots; None where there is nothing."""
    for name in path.split("."):
        row = row.get(name) if isinstance(row, dict) else None
    return row


# -- alike, not the same -----------------------------------------------------------------------------------------------


def wording(row: Json, keys: Sequence[str] = ()) -> tuple[bytes, str]:
    """What must be the same in two rows that are alike, and the text that may differ a little.

    Calls must be the same but for their prose: `quantity: 2` is another call than `quantity: 3`, and a value without a
    blank is a name, not prose. Labels must be the same. What every row shares (system messages, tools) and what follows
    from the calls (their results) is not looked at.
    """
    if keys:
        return b"", "\n".join([each for _, value in _named(row, keys) for each in _texts(value)])
    entry = row["input"] if isinstance(row.get("input"), dict) else row
    calls = [call for call in (entry.get("candidate_call"), *_calls(entry)) if isinstance(call, dict)]
    said = list(_prose(entry, calls))
    if not said and not calls:
        said = list(_texts(row))
    fixed = [[call.get("name"), _in_order(_without_prose(call.get("arguments")))] for call in calls]
    return digest(encode_row({"calls": fixed, "label": label_of(row)})), "\n".join(said)


def _calls(entry: Json) -> Iterator[Any]:
    for message in _messages(entry):
        for each in message.get("tool_calls") or () if isinstance(message.get("tool_calls"), list) else ():
            function = each.get("function") if isinstance(each, dict) else None
            if isinstance(function, dict):
                given = function.get("arguments")
                read = decode(given, MAX_DEPTH) if isinstance(given, str) else given
                yield {"name": function.get("name"), "arguments": read if isinstance(read, dict) else given}


def _messages(entry: Json) -> list[Json]:
    found = entry.get("messages")
    listed = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return [*listed, entry["assistant"]] if isinstance(entry.get("assistant"), dict) else listed


def _prose(entry: Json, calls: list[Json]) -> Iterator[str]:
    spoken = [each for each in _messages(entry) if each.get("role") in ("user", "assistant")]
    if not any(each.get("role") == "user" for each in spoken):
        yield from _texts(entry.get("user_request"))
    for message in spoken:
        yield from _texts(message.get("content"))
    if entry.get("kind") == OUTCOME and not isinstance(entry.get("assistant"), dict):
        yield from _texts((entry.get("outcome") or {}).get("text"))
    for call in calls:
        yield from (each for each in _texts(call.get("arguments")) if _is_prose(each))


def _is_prose(value: Any) -> bool:
    return isinstance(value, str) and len(value.split(None, 1)) > 1


def _without_prose(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_prose(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_prose(each) for each in value]
    return "" if _is_prose(value) else value


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, depth first."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
