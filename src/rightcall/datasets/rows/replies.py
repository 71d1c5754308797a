"""Replies of models in rows of logs: find them, read them, and write one line for each.

    find_reply({"id": 7, "response": {"body": {"choices": [...]}}})      # the answer of a provider, for `read`
    find_reply({"id": 8, "generated_text": "..."})                       # the text of a model, for `parse`

`ReplyWork` is the work of `rightcall parse --rows`. A row becomes one line of JSON:

    {"id": 7, "model": null, "content": "On it.", "reasoning": "", "calls": [...], "refused": [], "problems": [], ...}

Calls without an id are numbered, `call_0_0`, so that the same row gives the same line in every run. A row without a
reply becomes `{"id": 8, "error": "..."}`, so that line n is about row n.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sources import RowBatch
from rightcall.errors import CallerError
from rightcall.formats.registered import FormatCarrier
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.parsing.parser import parse
from rightcall.providers.provider_answers import read
from rightcall.providers.sniff import detect_dialect
from rightcall.storage.file_kinds import json_lines
from rightcall.storage.jsonl import LineFault, encode_row
from rightcall.strict_json import MAX_DEPTH, Undecodable, decode
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Problem, Reply

# Keys that only a reply has come first.
_REPLIES = tuple(
    "response completion generated_text output output_text outputs model_output raw_output answer reply prediction "
    "generation result body message text content raw".split()
)
_IDS = tuple("custom_id id request_id uuid _id trace_id key index idx".split())
_MODELS = ("model", "model_name", "model_id", "modelVersion")
_TOOLS = ("tools", "functions", "available_tools", "tool_definitions")
_FINISHES = ("finish_reason", "stop_reason", "done_reason", "finish")
_ANSWER_KEYS = frozenset(("choices", "candidates", "tool_calls", "function_call"))  # of answers, not of logs of them
_DECIDING = frozenset(("content", "output", "message"))  # their values decide what the row is
_MOST_SHAPES = 1_000
_DEPTH = 4  # levels of nested objects that are searched
_CACHED_CHARS = 200_000  # characters of tools that are cached


class RowKeys(msgspec.Struct, frozen=True):
    """The dotted paths of values in a row; None: the value is found by the names of keys."""

    text: str | None = None
    id: str | None = None
    model: str | None = None
    tools: str | None = None


class NoReply(CallerError):
    """A row without a reply. The message names its keys."""


def value_at(row: Any, path: str) -> Any:
    """Return the value at a dotted path (`response.body.choices.0`); None if there is none. A key that contains the
    dots has precedence."""
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


def require_reply(row: Json, keys: RowKeys) -> Any:
    """Return the reply of a row: a text, or the answer of a provider. It is the value at `keys.text` if that is set,
    else it is found by the usual keys. Raises `NoReply` if there is none."""
    found = _find_reply_cached(row) if keys.text is None else value_at(row, keys.text)
    if isinstance(found, (str, dict, list)):
        return found
    names = ", ".join([repr(key)[:40] for key in list(row)[:8]]) or "none"
    if keys.text is not None:
        raise NoReply(f"nothing is found at {keys.text!r}; its keys are {names}: name one with --text-key")
    raise NoReply(f"no reply is found; its keys are {names}: name its key with --text-key")


_TEXT_KEYS: dict[tuple[str, ...], str] = {}  # by the keys of a row: the key of its reply, if that is a text


def _find_reply_cached(row: Json) -> Any:
    """Return the reply in a row, as `find_reply` finds it; None if there is none. If it is a text, its key is
    remembered for all rows with the same keys, as those of one log have."""
    shape = tuple(row)
    name = _TEXT_KEYS.get(shape)
    if name is not None and type(row[name]) is str:
        return row[name]
    found = find_reply(row)
    first = next((each for each in _REPLIES if each in row), "")
    if found is row.get(first) and type(found) is str and _DECIDING.isdisjoint(row.keys() - {first}):
        if len(_TEXT_KEYS) >= _MOST_SHAPES:
            _TEXT_KEYS.clear()
        _TEXT_KEYS[shape] = first
    return found


def find_reply(row: Json, depth: int = _DEPTH) -> Any:
    """Return the text of a model or the answer of a provider in a row: the row itself if it is an answer, else the
    first reply under the usual keys, down to `depth` levels of objects, else the last message of the assistant in
    `messages`. Without any, return the row if it has an `error`, else None."""
    if _is_answer(row):
        return row
    for key in _REPLIES:
        found = _find_reply_in_value(row.get(key), depth)
        if found is not None:
            return found
    last = _last_assistant_message(row.get("messages"))
    return row if last is None and row.get("error") else last


def _is_answer(row: Json) -> bool:
    """Return whether the row itself is an answer or a message, and not an object that contains one."""
    if not _ANSWER_KEYS.isdisjoint(row) or isinstance(row.get("content"), list) or isinstance(row.get("output"), list):
        return True
    if "role" in row and "content" in row:
        return True
    is_ollama = "done" in row and ("message" in row or "response" in row)
    return is_ollama or ("finish_reason" in row and isinstance(row.get("message"), dict))


def _find_reply_in_value(value: Any, depth: int) -> Any:
    """Return the reply in a value: a text, a list that `detect_dialect` knows, or what `find_reply` finds in an object
    or in the only item of a list. None if there is none down to `depth` levels."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 1:
        return _find_reply_in_value(value[0], depth - 1) if depth else None
    if isinstance(value, list):
        return value if detect_dialect(value) else None
    return find_reply(value, depth - 1) if isinstance(value, dict) and depth else None


def _last_assistant_message(messages: Any) -> Any:
    """Return the last message of the assistant in a list; None if there is none."""
    if not isinstance(messages, list):
        return None
    turns = (each for each in reversed(messages) if isinstance(each, dict) and each.get("role") == "assistant")
    return next(turns, None)


def _may_be_answer(text: str) -> bool:
    """Return whether a text begins like the JSON answer or the recorded stream of a provider, or with white space. It
    may still be the text of a model."""
    return text.startswith(("{", "[", "data:", "event:")) or text[:1].isspace()


# -- other values of a row ---------------------------------------------------------------------------------------------


def find_row_id(row: Json, keys: RowKeys) -> Any:
    """Return the id of a row: the value at `keys.id`, or under the first of the usual keys; None if there is none."""
    return _first_value(row, _IDS) if keys.id is None else value_at(row, keys.id)


def find_row_model(row: Json, keys: RowKeys) -> Any:
    """Return the model that a row names: the value at `keys.model`, or under a usual key of the row, its response or
    its request; None if there is none."""
    if keys.model is not None:
        return value_at(row, keys.model)
    found = _first_value(row, _MODELS)
    if found is None:
        inner = (row.get(key) for key in ("response", "request", "body"))
        found = next((name for each in inner if isinstance(each, dict) and (name := find_row_model(each, keys))), None)
    return found


def _first_value(row: Json, names: tuple[str, ...]) -> Any:
    """Return the first value under these keys that is not None; None if there is none."""
    return next((found for name in names if (found := row.get(name)) is not None), None)


def tools_of_row(row: Json, keys: RowKeys) -> Toolset | None:
    """Return the tools that a row declares, at `keys.tools` or else under the usual keys, in the form of any provider
    or as JSON text. Those that cannot be used are left out. None if it declares none."""
    tools = _find_tool_definitions(row) if keys.tools is None else value_at(row, keys.tools)
    if not tools:
        return None
    text = tools if isinstance(tools, str) else msgspec.json.encode(tools)
    return _parse_tools(text) if len(text) < _CACHED_CHARS else _parse_tools.__wrapped__(text)


def _find_tool_definitions(row: Json) -> Any:
    """Return the tools under a usual key of the row, or of the request in it; None if there are none."""
    found = _first_value(row, _TOOLS)
    if found is not None:
        return found
    for key in ("request", "body", "input"):
        inner = row.get(key)
        if isinstance(inner, dict) and (found := _find_tool_definitions(inner)) is not None:
            return found
    return None


@lru_cache(64)  # rows share their tools
def _parse_tools(text: str | bytes) -> Toolset | None:
    """Return the toolset of definitions as JSON text, without those that cannot be used; None for text that is no
    JSON list or object. Cached."""
    tools = decode(text if isinstance(text, str) else text.decode(), MAX_DEPTH)
    if not isinstance(tools, (list, dict)) or isinstance(tools, Undecodable):
        return None
    return Toolset.lenient(tools)


# -- the work of `parse --rows` ----------------------------------------------------------------------------------------


class ReplyLine(msgspec.Struct):
    """The line of a reply: what `Reply.to_json` gives except the parts, which repeat it in order."""

    id: Any
    model: Any
    content: str
    reasoning: str
    calls: tuple[Call, ...]
    refused: tuple[Call, ...]
    problems: tuple[Problem, ...]
    format: str
    done: str | None
    finish: str | None
    usage: Json | None
    api: str


_REPLY_FIELDS = ReplyLine.__struct_fields__[2:]


class FaultLine(msgspec.Struct):
    """The line of a row that cannot be worked on."""

    id: Any
    error: str


REPLIES = json_lines(
    "file of replies", "id", also=lambda row: "error" in row or {"content", "calls", "problems", "format"} <= row.keys()
)


class ParseOptions(msgspec.Struct, frozen=True):
    """The options of `parse` for all rows."""

    format: str | Format = "auto"
    reasoning: str = "auto"
    repair: str = "safe"
    rescue: str = "safe"
    reasoning_calls: str = "safe"
    finish: str | None = None


class ReplyWork(FormatCarrier):
    """Read the reply of each row. `tools` are used for rows that declare none, or for all rows where `keys` has no path
    of tools."""

    def __init__(self, key: str, keys: RowKeys, tools: Toolset | None, options: ParseOptions) -> None:
        self.key, self._keys, self._tools = key, keys, tools
        self._options: Json = {name: getattr(options, name) for name in options.__struct_fields__}
        self._finish = self._options.pop("finish")
        self._searches_tools = tools is None or keys.tools is not None

    def __call__(self, batch: RowBatch) -> RowOutcome:
        """Return a line for each row of a part, with its parsed reply, and the counts of runnable, rejected and
        repaired calls. A row without a reply gives a `FaultLine`, and is recorded as a fault."""
        outcome, lines = RowOutcome(), list[bytes]()
        calls = refused = repaired = 0
        for number, row in batch.rows():
            line = self._make_line(row)
            lines.append(encode_line(line))
            if isinstance(line, FaultLine):
                outcome.add_fault(number, line.error)
                continue
            calls += len(line.calls)
            refused += len(line.refused)
            repaired += len([call for call in (*line.calls, *line.refused) if call.repairs])
        outcome.data, outcome.rows = b"".join(lines), len(lines)
        outcome.counts = {"calls": calls, "refused": refused, "repaired": repaired}
        return outcome

    def _make_line(self, row: Json | LineFault) -> ReplyLine | FaultLine:
        """Return the line of a row's reply; a `FaultLine` for a row without one."""
        if isinstance(row, LineFault):
            return FaultLine(None, row.message)
        id = find_row_id(row, self._keys)
        try:
            reply = self._read_reply(row)
        except NoReply as error:
            return FaultLine(id, str(error))
        return ReplyLine(id, find_row_model(row, self._keys), *[getattr(reply, name) for name in _REPLY_FIELDS])

    def _read_reply(self, row: Json) -> Reply:
        """Return the parsed reply of a row: an answer of a provider if it is one, else the text of a model. Raises
        `NoReply` if the row has none."""
        found, tools = require_reply(row, self._keys), self._choose_tools(row)
        if not isinstance(found, str) or _may_be_answer(found):
            reply = read(found, tools=tools, ids=Ids.numbered("call"), **self._options)
            if reply.api or not isinstance(found, str):
                return reply
        return parse(found, tools=tools, finish=self._choose_finish(row), ids=Ids.numbered("call"), **self._options)

    def _choose_tools(self, row: Json) -> Toolset | None:
        """Return the tools that the row declares, if rows are searched for them, else those of the options; None if
        there are none."""
        tools = tools_of_row(row, self._keys) if self._searches_tools else None
        return self._tools if tools is None else tools

    def _choose_finish(self, row: Json) -> str | None:
        """Return the finish reason of the options or, without one, that of the row; None if there is none."""
        found = self._finish or _first_value(row, _FINISHES)
        return found if isinstance(found, str) else None


def encode_line(line: msgspec.Struct) -> bytes:
    """Return a line as JSON with its newline. Numbers of any size and lone surrogates stay exact."""
    try:
        return _ENCODE(line) + b"\n"
    except (UnicodeEncodeError, OverflowError):
        return encode_row(msgspec.to_builtins(line))


_ENCODE = msgspec.json.Encoder().encode
