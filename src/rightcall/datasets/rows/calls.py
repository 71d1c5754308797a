"""Calls as JSON: find them, check or repair them, and write one line for the calls of each row.

    check_calls(calls_in({"name": "f", "arguments": {}}), toolset, "safe")

Calls come alone, in a list, in a message of a provider, or in a reply as `parse --json` prints it. `CallsWork` is the
work of `rightcall check --rows` and `repair --rows`; a row holds such calls itself or under a key of replies:

    check     {"id": 7, "calls": 1, "refused": 0, "problems": []}
    repair    {"id": 7, "calls": [...], "refused": [], "problems": []}
"""

from __future__ import annotations

import json
from itertools import chain
from typing import Any, Literal, TypeVar

import msgspec

from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.replies import (
    FaultLine,
    RowKeys,
    encode_line,
    find_row_id,
    require_reply,
    tools_of_row,
    value_at,
)
from rightcall.datasets.rows.sources import RowBatch
from rightcall.errors import CallerError
from rightcall.providers.provider_answers import read
from rightcall.providers.sniff import detect_dialect
from rightcall.storage.file_kinds import json_lines
from rightcall.storage.jsonl import LineFault, finite
from rightcall.tools.checks import CHECKED_CODES, check
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Problem, Repair

# -- calls in JSON data ------------------------------------------------------------------------------------------------

_EXPECTED = (
    'expected a call {"name": "f", "arguments": {}}, a list of them, a message of a provider, or a reply as '
    "`rightcall parse --json` prints it"
)
_Value = TypeVar("_Value", Repair, Problem)
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_PROVIDER_TYPES = ("tool_use", "function_call", "custom_tool_call", "message", "reasoning")


def calls_in(data: Any) -> list[Call]:
    """Return the calls in JSON data: a call, a list of calls, a message of a provider, or a reply that rightcall
    printed. The exact text of their arguments is in `json`; they are not repaired. Raises `CallerError` for other
    data."""
    items = _find_call_objects(data)
    if items is not None:
        return [_read_call(item, at) for at, item in enumerate(items)]
    if detect_dialect(data) is None:
        raise CallerError(f"the input is not a call; {_EXPECTED}")
    return list(read(data, repair="off").attempts)


def _find_call_objects(data: Any) -> list[Any] | None:
    """Return the objects of the calls in JSON data of rightcall's shapes or of OpenAI's Chat API; None for data of
    any other shape."""
    if isinstance(data, list):
        return data if all(map(_is_call, data)) else None
    if not isinstance(data, dict):
        return None
    if isinstance(data.get("parts"), list) and isinstance(data.get("calls"), list):
        return [part for part in data["parts"] if isinstance(part, dict) and part.get("type") == "call"]
    found = [data[key] for key in ("calls", "refused", "tool_calls") if isinstance(data.get(key), list)]
    if found:
        return list(chain.from_iterable(found))
    return [data] if _is_call(data) else None


def _is_call(item: Any) -> bool:
    """Return whether an item is an object with a `name` or a `function` and none of the types of provider items."""
    return isinstance(item, dict) and ("name" in item or "function" in item) and item.get("type") not in _PROVIDER_TYPES


def _read_call(item: Any, at: int) -> Call:
    """Return the call of an item, the one with the index `at`. Its `arguments` are empty: they are in `json`, as exact
    text. Its repairs and those problems that checking does not find again are kept. Raises `CallerError` for an item
    that is no object and for a name that is no text."""
    fields = item.get("function") if isinstance(item, dict) and isinstance(item.get("function"), dict) else item
    if not isinstance(fields, dict):
        raise CallerError(f"item {at + 1} is {type(item).__name__}; {_EXPECTED}")
    name, exact = fields.get("name"), item.get("json")
    arguments = next((fields[key] for key in _ARGUMENTS if key in fields), None)
    if name is not None and not isinstance(name, str):
        raise CallerError(f'the "name" of item {at + 1} is no string; {_EXPECTED}')
    if not isinstance(exact, str) or not _has_same_arguments(exact, arguments):
        exact = _encode_arguments(arguments)
    problems = [
        msgspec.structs.replace(problem, call=at)
        for problem in _convert_values(item.get("problems"), Problem)
        if problem.code not in CHECKED_CODES  # those are checked again
    ]
    id, raw = item.get("id"), item.get("raw")
    return Call(
        name or "",
        {},
        exact,
        id if isinstance(id, str) else "",
        raw if isinstance(raw, str) else exact,
        _convert_values(item.get("repairs"), Repair),
        tuple(problems),
        item.get("complete", True) is not False,
    )


def _encode_arguments(arguments: Any) -> str:
    """Return arguments as JSON text; text is returned unchanged, and None as ""."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _has_same_arguments(exact: str, arguments: Any) -> bool:
    """Return whether the JSON text of arguments still equals the arguments beside it, which may have been edited
    since it was printed."""
    try:
        return bool(finite(json.loads(exact)) == arguments)
    except (ValueError, RecursionError):
        return False


def _convert_values(value: Any, kind: type[_Value]) -> tuple[_Value, ...]:
    """Return repairs or problems from the JSON that rightcall prints; () if the value is anything else."""
    try:
        return msgspec.convert(value or (), tuple[kind, ...])  # type: ignore[valid-type]
    except msgspec.ValidationError:
        return ()


# -- checking ----------------------------------------------------------------------------------------------------------


class CheckedCall(msgspec.Struct, frozen=True):
    """A call, repaired as far as the policy allows, and its problems."""

    call: Call
    problems: tuple[Problem, ...]


def check_calls(calls: list[Call], tools: Toolset | None, policy: str) -> list[CheckedCall]:
    """Return each call, repaired as far as `policy` allows, with the problems that remain when it is checked against
    the tools. Each is checked alone, so that no call changes the result of another. Without tools, names are not
    checked."""
    return [_check_call(call, tools, policy, at) for at, call in enumerate(calls)]


def _check_call(call: Call, tools: Toolset | None, policy: str, at: int) -> CheckedCall:
    """Return a call, repaired as far as `policy` allows, and its problems. A truncated call is checked, but not
    repaired. `at` is its index in the row, which its problems name."""
    replace = msgspec.structs.replace
    if not call.complete:
        problems = tuple(check(call, tools, index=at))
        return CheckedCall(replace(call, problems=problems), problems)
    function = {"name": call.name, "arguments": call.json}
    entry = {"id": call.id or f"call_{at + 1}", "type": "function", "function": function}
    reply = read({"role": "assistant", "tool_calls": [entry]}, tools=tools, repair=policy, api="chat")  # type: ignore[arg-type]
    made = reply.attempts[0]
    call_problems = (*call.problems, *[replace(problem, call=at) for problem in made.problems])
    others = [replace(problem, call=at) for problem in reply.problems if problem not in made.problems]
    made = replace(made, id=call.id, raw=call.raw, repairs=(*call.repairs, *made.repairs), problems=call_problems)
    return CheckedCall(made, (*call_problems, *others))


# -- the work of `check --rows` and `repair --rows` --------------------------------------------------------------------

_KEYS = {"calls", "refused", "problems"}
CHECKED = json_lines("file that `check --rows` wrote", "id", also=lambda row: "error" in row or row.keys() >= _KEYS)
REPAIRED = json_lines("file that `repair --rows` wrote", "id", also=lambda row: "error" in row or row.keys() >= _KEYS)


class CallsLine(msgspec.Struct):
    """The line of the calls of a row: their numbers, or the calls."""

    id: Any
    calls: int | list[Call]
    refused: int | list[Call]
    problems: list[Problem]


class CallsWork:
    """Check the calls of each row against `tools`, or against the tools that the row declares, repaired as `policy`
    allows."""

    def __init__(
        self, key: str, keys: RowKeys, tools: Toolset | None, policy: str, output: Literal["counts", "calls"]
    ) -> None:
        self.key, self._keys, self._tools, self._policy, self._output = key, keys, tools, policy, output
        self._searches_tools = tools is None or keys.tools is not None

    def __call__(self, batch: RowBatch) -> RowOutcome:
        """Return a line for each row of a part, with its runnable calls, rejected calls and problems, or only their
        numbers, and the counts of runnable, rejected and repaired calls. A row without calls or tools gives a
        `FaultLine`, and is recorded as a fault."""
        outcome, lines = RowOutcome(), list[bytes]()
        calls = refused = repaired = 0
        for number, row in batch.rows():
            checked = self._check_row(row)
            if isinstance(checked, FaultLine):
                outcome.add_fault(number, checked.error)
                lines.append(encode_line(checked))
                continue
            id, found = checked
            runnable = [each.call for each in found if each.call.ok]
            rejected = [each.call for each in found if not each.call.ok]
            problems = [problem for each in found for problem in each.problems]
            if self._output == "counts":
                lines.append(encode_line(CallsLine(id, len(runnable), len(rejected), problems)))
            else:
                lines.append(encode_line(CallsLine(id, runnable, rejected, problems)))
            calls, refused = calls + len(runnable), refused + len(rejected)
            repaired += sum(bool(each.call.repairs) for each in found)
        outcome.data, outcome.rows = b"".join(lines), len(lines)
        outcome.counts = {"calls": calls, "refused": refused, "repaired": repaired}
        return outcome

    def _check_row(self, row: Json | LineFault) -> tuple[Any, list[CheckedCall]] | FaultLine:
        """Return the id of a row and its calls, checked against the given tools. With a key of tools, or without given
        tools, the tools that the row declares take precedence. Return a `FaultLine` for a row without calls, and if
        there are no tools."""
        if isinstance(row, LineFault):
            return FaultLine(None, row.message)
        id = find_row_id(row, self._keys)
        tools = tools_of_row(row, self._keys) if self._searches_tools else None
        tools = self._tools if tools is None else tools
        if tools is None:
            return FaultLine(id, "it declares no tools; give them with --tools, or name their key with --tools-key")
        try:
            return id, check_calls(self._calls_of(row), tools, self._policy)
        except CallerError as error:
            return FaultLine(id, str(error))

    def _calls_of(self, row: Json) -> list[Call]:
        """Return the calls at the path of the row's text if the options name one, else those of the row itself, else
        those of its reply. Raises `CallerError` if there are none."""
        if self._keys.text is not None:
            return calls_in(value_at(row, self._keys.text))
        try:
            return calls_in(row)
        except CallerError as error:
            found = require_reply(row, self._keys)
            if found is row or isinstance(found, str):
                raise error
            return calls_in(found)
