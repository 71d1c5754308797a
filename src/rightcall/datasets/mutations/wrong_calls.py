"""Another tool, and other arguments: calls that `check` lets through, and that are wrong all the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

from rightcall.datasets.mutations.other_values import arguments_of, others, words_of
from rightcall.datasets.mutations.truth import Negative, Truth, named, same
from rightcall.providers.sdk_view import dumps
from rightcall.types import Call, Json, Tool

_TRIES = 24


def wrong_tool(truth: Truth, dice: random.Random) -> Negative | None:
    """Another tool, with as many of the arguments as it has too: the more, the harder to tell."""
    if not truth.is_call:
        return None
    right, words = truth.call, words_of(truth.row["user_request"])
    for tool in _likeliest(truth, dice)[:_TRIES]:
        call = named(right, "wrong-tool", arguments_of(tool.parameters, right.arguments, words), tool.name)
        if truth.fits(call) and truth.scenario_says(call) in (None, "wrong_tool_semantic"):
            why = f"the request is for {right.name}, and {tool.name} was called"
            return Negative(call, "wrong_tool_semantic", f"{right.name} became {tool.name}", why)
    return None


def _likeliest(truth: Truth, dice: random.Random) -> list[Tool]:
    """The other tools, those that share most arguments first."""
    tools = [tool for tool in truth.tools if tool.name != truth.call.name]
    dice.shuffle(tools)
    return sorted(tools, key=lambda tool: -len(truth.call.arguments.keys() & _properties(tool.parameters).keys()))


def _properties(schema: Json) -> Json:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def wrong_arguments(truth: Truth, dice: random.Random) -> Negative | None:
    """One value that is another; failing that, one that is needed and not there, which `check` sees."""
    if not truth.is_call:
        return None
    right = truth.call
    for name, arguments, changed in _changed(truth, dice):
        call = named(right, "wrong-arguments", arguments)
        if truth.fits(call) and truth.scenario_says(call) in (None, "wrong_arguments_semantic"):
            return Negative(call, "wrong_arguments_semantic", changed, f"{name} is not what was asked for: {changed}")
    return _without(truth, dice)


def _changed(truth: Truth, dice: random.Random) -> Iterator[tuple[str, Json, str]]:
    given, schema = truth.call.arguments, _properties(truth.schema(truth.call.name))
    words = words_of(truth.row["user_request"])
    for name in dice.sample(sorted(given), len(given)):
        known = schema.get(name)
        found = others(given[name], known if isinstance(known, dict) else {}, words, dice)
        for other in islice(found, _TRIES):
            if not same(given[name], other):
                yield name, {**given, name: other}, f"{name}: {_brief(given[name])} became {_brief(other)}"


def _without(truth: Truth, dice: random.Random) -> Negative | None:
    given = truth.call.arguments
    for name in dice.sample(sorted(given), len(given)):
        call: Call = named(truth.call, "wrong-arguments", {key: value for key, value in given.items() if key != name})
        if not truth.fits(call):
            return Negative(call, "deterministic_invalid", f"{name} left out", f"{name} is required")
    return None


def _brief(value: object) -> str:
    said = dumps(value)
    return said if len(said) <= 80 else said[:79] + "…"
