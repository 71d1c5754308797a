"""The calls of a history: each with a name, an id to come, and arguments that are a JSON object."""

from __future__ import annotations

from operator import is_
from typing import Any

from rightcall.providers.histories.history_work import HistoryItem, HistoryWork
from rightcall.providers.sdk_view import dumps, items, obj, text
from rightcall.strict_json import MAX_DEPTH, decode, is_object
from rightcall.types import Json

LONGEST_ECHO = 500


def written_calls(work: HistoryWork, messages: list[HistoryItem]) -> list[HistoryItem]:
    """Calls as the server wants them written; those without a name are text."""
    for item in messages:
        if item.message["role"] == "assistant":
            _modern(work, item)
            _put_right(work, item)
        elif "tool_calls" in item.message or "function_call" in item.message:
            work.tell("misplaced_calls", item, "only an assistant makes calls; those of another role are left out")
            item.drop("tool_calls", "function_call")
    return messages


def _modern(work: HistoryWork, item: HistoryItem) -> None:
    """`function_call`, the field before `tool_calls`."""
    if "function_call" not in item.message:
        return
    old = obj(item.message.get("function_call"))
    item.drop("function_call")
    if old and not item.message.get("tool_calls"):
        work.tell("old_call", item, "function_call became tool_calls")
        item.put(tool_calls=[{"type": "function", "function": old}])


def _put_right(work: HistoryWork, item: HistoryItem) -> None:
    if "tool_calls" not in item.message:
        return
    given = items(item.message["tool_calls"])
    calls = [_call(work, item, at, each) for at, each in enumerate(given)]
    if given and None not in given and all(map(is_, calls, given)):
        return
    named = [call for call in calls if call is not None]
    if len(named) < len(calls):
        item.poison = _shifted(item.poison, [call is not None for call in calls])
    if not named:
        if given:
            work.tell("no_calls", item, "its calls have no names and are left out")
        item.drop("tool_calls")
    elif named != given:
        item.put(tool_calls=named)


def _shifted(poison: dict[int, str], stays: list[bool]) -> dict[int, str]:
    return {sum(stays[:at]): what for at, what in poison.items() if stays[at]}


def _call(work: HistoryWork, item: HistoryItem, at: int, given: Any) -> Json | None:
    if work.profile.arguments == "text" and _is_fit(given):
        return given  # type: ignore[no-any-return]
    call = obj(given)
    if call is None:
        return None
    if call.get("type") == "custom" and obj(call.get("custom")) is not None:
        return call
    function = obj(call.get("function")) or {key: call[key] for key in ("name", "arguments") if key in call}
    name = text(function.get("name")).strip()
    if not name:
        work.tell("unnamed_call", item, "a call without a name is left out")
        return None
    arguments = _arguments(work, item, at, function.get("arguments"))
    fit = {**function, "name": name, "arguments": arguments}
    rest = {key: value for key, value in call.items() if key not in ("name", "arguments")}
    made = {**rest, "type": "function", "function": fit}
    return call if made == call and type(arguments) is type(function.get("arguments")) else made


def _is_fit(call: Any) -> bool:
    """Is it a call of a function as most are: with a name, and arguments that are the text of an object?"""
    if type(call) is not dict or call.get("type") != "function" or "name" in call or "arguments" in call:
        return False
    function = call.get("function")
    if type(function) is not dict:
        return False
    name, given = function.get("name"), function.get("arguments")
    return type(name) is str and name != "" and name == name.strip() and type(given) is str and is_object(given)


def _arguments(work: HistoryWork, item: HistoryItem, at: int, given: Any) -> Any:
    """As the server wants them. What is no object becomes `{}`, and is remembered for the result."""
    value = decode(given, MAX_DEPTH) if isinstance(given, str) and given.strip() else given
    if isinstance(value, str) and value.strip():  # encoded twice
        inner = decode(value, MAX_DEPTH)
        if isinstance(inner, dict):
            work.tell("double_encoded", item, "arguments were JSON in a string of JSON")
            given, value = value, inner
    if value is None or value == "":
        value, given = {}, "{}" if isinstance(given, str) else given
    if not isinstance(value, dict):
        said = given if isinstance(given, str) else dumps(given)
        item.poison[at] = said if len(said) <= LONGEST_ECHO else said[:LONGEST_ECHO] + "..."
        work.tell(
            "poisoned_arguments", item, "arguments that are no JSON object became {}; the result says what they were"
        )
        value, given = {}, None
    if work.profile.arguments == "object":
        return value
    return given if isinstance(given, str) and given.strip() else dumps(value)
