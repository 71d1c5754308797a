"""Solved scenarios, for models that must see a call before they make one: a request, the right call, its result.

They are other scenarios of the same domain, so that tools and manner fit and the answer is not given away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rightcall.capture.domain import Acceptable, Domain, Scenario
from rightcall.providers.sdk_view import dumps
from rightcall.types import Json


def solved(domain: Domain, but: Scenario, most: int, *, with_results: bool = True) -> list[Json]:
    """The messages of at most so many scenarios with one call whose arguments are known exactly.

    Without `with_results` the call is all that is shown: servers insist on a result, and where the conversation is
    text, a small model takes to writing results itself once it has seen some.
    """
    found: list[Json] = []
    for number, (scenario, call, arguments) in enumerate(_known(domain, but)):
        if number == most:
            break
        turns = _turns(domain, scenario, call.name, arguments, f"example_{number}")
        found += turns if with_results else turns[:2]
    return found


def _known(domain: Domain, but: Scenario) -> Iterator[tuple[Scenario, Acceptable, Json]]:
    for scenario in domain.scenarios:
        if scenario.name != but.name and len(scenario.calls) == 1 and scenario.kind == "single":
            arguments = _exact(scenario.calls[0])
            if arguments is not None:
                yield scenario, scenario.calls[0], arguments


def _exact(call: Acceptable) -> Json | None:
    """The arguments, if each of them can be told from its comparisons."""
    made: Json = {}
    for name, comparisons in call.arguments.items():
        value = _value(comparisons)
        if value is None:
            return None
        made[name] = value
    return made


def _value(comparisons: dict[str, Any]) -> Any:
    if "is" in comparisons:
        return comparisons["is"]
    if "same_text" in comparisons:
        return comparisons["same_text"]
    return comparisons["one_of"][0] if comparisons.get("one_of") else None


def _turns(domain: Domain, scenario: Scenario, name: str, arguments: Json, id: str) -> list[Json]:
    made = {"id": id, "type": "function", "function": {"name": name, "arguments": dumps(arguments)}}
    result = domain.run(name, arguments).message
    return [
        {"role": "user", "content": scenario.request},
        {"role": "assistant", "content": "", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": id, "name": name, "content": result},
        {"role": "assistant", "content": f"Done: {result}"},
    ]
