"""The leaderboard's cases whose truth is a list of calls, read from its published wheel.

The wheel is fetched once, without its dependencies, and none of its code runs. A truth lists the acceptable values of
every argument. The call made from it has, for each argument, the first value that the schema allows; an optional
argument without such a value is omitted. A conversation of several turns gives one case per turn.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import jsonschema_rs
import msgspec

from rightcall import Call, Toolset
from rightcall.backends.models import cache_folder
from rightcall.evaluation.leaderboard import (
    VERSION,
    LeaderboardData,
    MissingCases,
    find_leaderboard,
    leaderboard_tools,
)

ONE_TURN = (
    *("simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple"),
    *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"),
)
MANY_TURNS = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")
DOCUMENTS = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}


class Case(msgspec.Struct, frozen=True, dict=True):
    """One question: the offered tools and the expected calls."""

    id: str
    tools: Toolset
    calls: tuple[Call, ...]

    @cached_property
    def key(self) -> str:
        """Return a key that is equal for cases with the same tools and the same expected calls."""
        return json.dumps([self.tools.names, [[call.name, call.arguments] for call in self.calls]], sort_keys=True)


def fetch() -> LeaderboardData:
    """Return the published data; download it if it is not in the cache."""
    try:
        return find_leaderboard()
    except MissingCases:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*command, "--dest", str(cache_folder()), f"bfcl-eval=={VERSION}"], check=True)
        return find_leaderboard()


def cases(wheel: LeaderboardData) -> Iterator[Case]:
    """Yield every case that expects calls, without duplicates: several conversation sets repeat the same turns."""
    seen: set[str] = set()
    for case in _all_cases(wheel):
        if case.calls and case.key not in seen:
            seen.add(case.key)
            yield case


def _all_cases(wheel: LeaderboardData) -> Iterator[Case]:
    for name in ONE_TURN:
        truths = wheel.truths(name)
        for row in wheel.rows(f"BFCL_v4_{name}"):
            tools = leaderboard_tools(row["function"])
            yield Case(row["id"], tools, tuple([make_call(truth, tools) for truth in truths[row["id"]]]))
    documents = {name: wheel.rows(f"multi_turn_func_doc/{file}") for name, file in DOCUMENTS.items()}
    for name in MANY_TURNS:
        truths = wheel.truths(name)
        for row in wheel.rows(f"BFCL_v4_{name}"):
            tools = leaderboard_tools(tool for part in row["involved_classes"] for tool in documents[part])
            for number, turn in enumerate(truths[row["id"]]):
                yield Case(f"{row['id']}/{number}", tools, tuple([_parse_python_call(text, tools) for text in turn]))


# -- truths ------------------------------------------------------------------------------------------------------------


def make_call(truth: dict[str, Any], tools: Toolset) -> Call:
    ((name, values),) = truth.items()
    tool = tools.get(name)
    parameters = tool.parameters if tool is not None else {}
    return Call(name, _choose_object(values, parameters), "")


def _choose_object(values: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    """Choose one acceptable value for each key. An empty string marks an optional key."""
    chosen_values: dict[str, Any] = {}
    for key, options in values.items():
        inner = parameters.get("properties", {}).get(key, {})
        acceptable = [_choose_value(option, inner) for option in (options if isinstance(options, list) else [options])]
        filled = [option for option in acceptable if option != ""]
        fitting = [option for option in filled if jsonschema_rs.is_valid(inner, option)]
        required = key in parameters.get("required", ())
        if fitting or required or "" not in acceptable:
            chosen_values[key] = (fitting or filled or [""])[0]
    return chosen_values


def _choose_value(value: Any, parameters: dict[str, Any]) -> Any:
    """Choose acceptable values inside a value: in nested objects, too, each key has a list of acceptable values."""
    if isinstance(value, dict) and value and all(isinstance(options, list) for options in value.values()):
        return _choose_object(value, parameters)
    if isinstance(value, list):
        return [_choose_value(item, parameters.get("items", {})) for item in value]
    return value


def _parse_python_call(text: str, tools: Toolset) -> Call:
    """Parse a truth that is written as Python, such as `f(1, b='x')`."""
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name), text
    tool = tools.get(node.func.id)
    names = list(tool.parameters.get("properties", {})) if tool is not None else []
    arguments = dict(zip(names, [ast.literal_eval(value) for value in node.args], strict=False))
    arguments |= {word.arg: ast.literal_eval(word.value) for word in node.keywords if word.arg}
    return Call(node.func.id, json.loads(json.dumps(arguments)), "")
