"""Logs of text: ShareGPT with its function calls, Hermes with its tags, Glaive, and lines with what a model wrote.

{"conversations": [{"from": "human", "value": "..."}, {"from": "gpt", "value": "..."}], "tools": "[...]"}
{"system": "SYSTEM: ... {tools}", "chat": "USER: ...\\n\\n\\nASSISTANT: <functioncall> {...} <|endoftext|>"}
{"prompt": "...", "generated_text": "<tool_call>...</tool_call>"}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from rightcall.datasets.logged import Entry, Log, LogTurn, flat, id_in, model_in, time_in
from rightcall.providers.sdk_view import dumps, objects, text
from rightcall.types import Json

# -- ShareGPT and Hermes -----------------------------------------------------------------------------------------------

_SIDES = {"human": "user", "user": "user", "system": "system", "observation": "tool", "tool": "tool"}


def is_sharegpt(row: Json) -> bool:
    return isinstance(row.get("conversations"), list)


def sharegpt(row: Json) -> Log:
    entries: list[Entry] = []
    if text(row.get("system")):
        entries.append({"role": "system", "content": row["system"]})
    for turn in objects(row.get("conversations")):
        side, value = text(turn.get("from", turn.get("role"))), turn.get("value", turn.get("content"))
        said = value if isinstance(value, str) else dumps(value)
        if side == "function_call":
            entries.append(_function_call(said))
        elif side in _SIDES:
            entries += _from_side(_SIDES[side], said)
        else:
            entries.append(LogTurn(said, "text"))
    return _log(row, entries)


def _log(row: Json, entries: list[Entry]) -> Log:
    said = text(row.get("format")) or "auto"
    return Log(tuple(entries), row.get("tools"), said, model_in(row), time_in(row), id_in(row))


def _function_call(said: str) -> LogTurn:
    """JSON with a name and arguments, or a list of such; what is no JSON is what a model wrote."""
    try:
        value = json.loads(said)
    except (ValueError, RecursionError):
        return LogTurn(said, "text")
    calls = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]
    return _called("", *[(each.get("name"), each.get("arguments")) for each in calls])


def _called(said: str, *calls: tuple[Any, Any]) -> LogTurn:
    made = [{"type": "function", "function": {"name": name, "arguments": given}} for name, given in calls]
    return LogTurn({"role": "assistant", "content": said, "tool_calls": made}, "chat")


def _from_side(role: str, said: str) -> list[Entry]:
    """A message; the results of several calls, which stand in one entry as a list, are several."""
    if role != "tool":
        return [{"role": role, "content": said}]
    tagged = list(_between(said, "<tool_response>", "</tool_response>"))
    return [{"role": "tool", "content": each.strip()} for each in tagged or [said]]


def _between(said: str, opens: str, closes: str) -> Iterator[str]:
    start = said.find(opens)
    while start >= 0:
        end = said.find(closes, start)
        if end < 0:
            return
        yield said[start + len(opens) : end]
        start = said.find(opens, end)


# -- Glaive ------------------------------------------------------------------------------------------------------------

_TURN = re.compile(r"^(USER|ASSISTANT|FUNCTION RESPONSE):[ ]?", re.M)
_OPENS, _ENDS = "<functioncall>", "<|endoftext|>"


def is_glaive(row: Json) -> bool:
    return isinstance(row.get("chat"), str) and isinstance(row.get("system", ""), str)


def glaive(row: Json) -> Log:
    system = text(row.get("system")).removeprefix("SYSTEM:").strip()
    entries: list[Entry] = [{"role": "system", "content": system}] if system else []
    pieces = _TURN.split(row["chat"])
    for side, said in zip(pieces[1::2], pieces[2::2], strict=True):
        if side == "ASSISTANT":
            entries.append(_glaive_turn(said.replace(_ENDS, "").strip()))
        else:
            entries.append({"role": "user" if side == "USER" else "tool", "content": said.strip()})
    return _log(row, entries)


def _glaive_turn(said: str) -> LogTurn:
    before, opens, body = said.partition(_OPENS)
    call = _glaive_call(body.strip()) if opens else None
    return LogTurn(said, "text") if call is None else _called(before.strip(), call)


def _glaive_call(body: str) -> tuple[Any, Any] | None:
    """`{"name": "f", "arguments": '{"a": 1}'}`: the arguments are JSON in apostrophes, which JSON does not have."""
    try:
        found, _ = _DECODER.raw_decode(body)
        return (found.get("name"), found.get("arguments")) if isinstance(found, dict) else None
    except (ValueError, RecursionError):
        head, _, rest = body.partition('"arguments":')
    first, last = rest.find("'"), rest.rfind("'")
    try:
        name = json.loads(head.rstrip().rstrip(",") + "}").get("name")
    except (ValueError, RecursionError, AttributeError):
        return None
    return (name, rest[first + 1 : last].replace("\\'", "'")) if 0 <= first < last else None


# -- what a model wrote ------------------------------------------------------------------------------------------------

_WRITTEN = ("text", "completion", "output", "response", "generated_text", "generation", "answer", "prediction")
_ASKED = ("prompt", "instruction", "input", "question", "query", "request")


def is_written(row: Json) -> bool:
    return any(isinstance(row.get(key), str) for key in _WRITTEN) or bool(_conversed(row))


def _conversed(row: Json) -> list[Json]:
    """A pipeline gives back the messages with the model's behind them."""
    return [each for each in objects(row.get("generated_text")) if "role" in each]


def written(row: Json) -> Log:
    if messages := _conversed(row):
        return _log(row, [_message(each) for each in messages])
    prompt = [_message(each) for key in ("messages", *_ASKED) for each in objects(row.get(key))]
    asked = "\n".join([row[key] for key in _ASKED if text(row.get(key)).strip()])
    entries: list[Entry] = [{"role": "system", "content": row["system"]}] if text(row.get("system")) else []
    entries += prompt or ([{"role": "user", "content": asked}] if asked else [])
    said = next((row[key] for key in _WRITTEN if text(row.get(key))), "")
    return _log(row, [*entries, LogTurn(said, "text")])


def _message(message: Json) -> Entry:
    role, said = text(message.get("role")), flat(message.get("content"))
    return LogTurn(said, "text") if role == "assistant" else {"role": role or "user", "content": said}


# -- tools that a prompt lists -----------------------------------------------------------------------------------------

_DECODER = json.JSONDecoder()


def listed_tools(entries: tuple[Entry, ...]) -> list[Json]:
    """The tools that a system message lists as JSON, in `<tools>` or on lines of their own; empty if there are none."""
    system = next((each["content"] for each in entries if isinstance(each, dict) and each["role"] == "system"), "")
    block = next(_between(system, "<tools>", "</tools>"), system)
    return [
        each for value in _values(block) for each in (value if isinstance(value, list) else [value]) if _is_tool(each)
    ]


def _values(said: str) -> Iterator[Any]:
    """The JSON values that begin a line. A text in which many beginnings come to nothing lists no tools."""
    at = failed = 0
    while failed < _MOST_FAILED and (found := _BEGINS.search(said, at)) is not None:
        try:
            value, at = _DECODER.raw_decode(said, found.end() - 1)
        except json.JSONDecodeError as error:
            at, failed = max(error.pos, found.end()), failed + 1
        except RecursionError:
            return
        else:
            yield value


_MOST_FAILED = 50
_BEGINS = re.compile(r"^[ \t]*+[\[{]", re.M)


def _is_tool(value: Any) -> bool:
    found = value.get("function", value) if isinstance(value, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return False
    return isinstance(found.get("parameters", found.get("input_schema", found.get("inputSchema"))), dict)
