"""A domain: stub tools that do no harm and always answer the same, and scenarios that say which calls are right.

    name = "shopping"
    about = "A shop with three products."

    [[tools]]
    name = "get_product"
    description = "Details of one product."
    parameters = { type = "object", properties = { product_id = { type = "string" } }, required = ["product_id"] }
    answers = [{ result = { product_id = "{product_id}", price = 149 } }]

    [[scenarios]]
    name = "product_details"
    request = "What does SKU-HEADPHONES-2 cost?"
    calls = [{ name = "get_product", arguments = { product_id = { is = "SKU-HEADPHONES-2" } } }]

Domains are TOML data, so that users add theirs without code.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Literal

import msgspec

from rightcall.capture.stubs import COMPARISONS, LISTS, NUMBERS, StubAnswer, StubOutcome, answered, holes
from rightcall.errors import BadTools, CallerError
from rightcall.tools.toolset import Toolset
from rightcall.types import Json, Tool

LARGEST = 1_000_000
_NAME = re.compile(r"[\w.-]{1,80}")  # it is part of keys, and of lines of key=value pairs


class BadDomain(CallerError):
    """A domain file that cannot be used. The message names the file, the place in it and the cure."""


class Stub(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool and its answers."""

    name: str
    answers: tuple[StubAnswer, ...]
    description: str = ""
    parameters: Json = {}
    read_only: bool = False


class Acceptable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call that is right: its name, and comparisons for its arguments. Arguments that are not mentioned must be
    absent, or stand in `free`."""

    name: str
    arguments: dict[str, dict[str, Any]] = {}
    free: tuple[str, ...] = ()
    optional: bool = False
    after: tuple[str, ...] = ()  # names of calls that must have been made before


Kind = Literal["single", "parallel", "dependent", "recover", "no_tool", "clarify", "open"]


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One request, and what answers it.

    - `name`: unique in its domain.
    - `request`: what the user says.
    - `calls`: those that are right; without any, the right answer is text: an answer, or a question back.
    - `kind`: what it tries; "open" says that nobody knows which calls are right, so none is judged.
    - `required_steps`: names of tools that must be called on the way.
    - `terminal`: names of tools of which one, gone well, ends the task.
    - `tags`: words of your own.
    """

    name: str
    request: str
    calls: tuple[Acceptable, ...] = ()
    kind: Kind = "single"
    required_steps: tuple[str, ...] = ()
    terminal: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    scenarios: tuple[Scenario, ...]
    tools: tuple[Stub, ...] = ()
    about: str = ""


class Domain:
    """Stub tools, and scenarios that ask for them: `name`, `about`, `tools`, `scenarios`. Immutable. `find_domains`
    makes it, of a `file` that was read and the `tools` in it, or of real tools in their place (`is_real`)."""

    def __init__(self, file: _File, tools: Toolset, *, is_real: bool = False) -> None:
        self.name, self.about, self.scenarios = file.name, file.about, file.scenarios
        self.tools, self.is_real = tools, is_real
        self._answers = {stub.name: stub.answers for stub in file.tools}

    def run(self, name: str, arguments: Json) -> StubOutcome:
        """What the stub of this `name` answers to these `arguments`: the same for the same, and nothing happens."""
        answers = self._answers.get(name)
        if answers is None:
            return StubOutcome("error", {"error": f"unknown tool: {name}"})
        return answered(answers, arguments)

    @cached_property
    def by_name(self) -> dict[str, Scenario]:
        """The scenarios by their names."""
        return {scenario.name: scenario for scenario in self.scenarios}


def read_domain(text: str, origin: str = "domain", *, real: Toolset | None = None) -> Domain:
    """The domain that a TOML text describes; with `real`, its scenarios over these tools. Raises `BadDomain`."""
    if len(text) > LARGEST:
        raise BadDomain(f"{origin}: longer than {LARGEST} characters; split it into several domains")
    try:
        data = tomllib.loads(text)
        _plain_json(data, origin)
        file = msgspec.convert(data, _File)
    except tomllib.TOMLDecodeError as error:
        raise BadDomain(f"{origin}: not TOML: {error}") from error
    except RecursionError as error:
        raise BadDomain(f"{origin}: nested too deeply") from error
    except msgspec.ValidationError as error:
        raise BadDomain(f"{origin}: {error}") from error
    if real is not None:
        file = msgspec.structs.replace(file, tools=())
    tools = _toolset(file, origin) if real is None else real
    faults = list(_faults(file, tools))
    if faults:
        raise BadDomain("\n".join(f"{origin}: {fault}" for fault in faults))
    return Domain(file, tools, is_real=real is not None)


def _plain_json(value: Any, origin: str) -> None:
    """Refuses what TOML has and JSON has not, for it would not survive the way to a model and back."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _plain_json(each, origin)
    elif not isinstance(value, str | bool | int) and (not isinstance(value, float) or value - value != 0):
        raise BadDomain(f"{origin}: {value} is no JSON value; write it as text")


def _toolset(file: _File, origin: str) -> Toolset:
    try:
        return Toolset([_tool(stub) for stub in file.tools])
    except BadTools as error:
        raise BadDomain(f"{origin}: {error}") from error


def _tool(stub: Stub) -> Tool:
    return Tool(name=stub.name, description=stub.description, parameters=stub.parameters, read_only=stub.read_only)


def _faults(file: _File, tools: Toolset) -> Iterator[str]:
    """Everything that is wrong, so that a user mends a file in one go."""
    if not file.scenarios:
        yield "there are no scenarios"
    for name in (file.name, *[scenario.name for scenario in file.scenarios]):
        if not _NAME.fullmatch(name):
            yield f"{name!r:.80} is no name; use letters, digits, _, - and ., at most 80"
    for stub in file.tools:
        yield from _stub_faults(stub, set(tools.kinds(stub.name)))
    yield from (f"two tools are called {name!r}" for name in _twice(stub.name for stub in file.tools))
    yield from (f"two scenarios are called {name!r}" for name in _twice(each.name for each in file.scenarios))
    for scenario in file.scenarios:
        yield from _scenario_faults(scenario, tools)


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _stub_faults(stub: Stub, declared: set[str]) -> Iterator[str]:
    if not stub.answers:
        yield f"tool {stub.name}: it has no answers"
    for at, answer in enumerate(stub.answers):
        where = f"tool {stub.name}, answer {at}"
        if bool(answer.error) == (answer.result is not None):
            yield f"{where}: say either `result` or `error`"
        for name in sorted((holes([answer.result, answer.error]) | answer.when.keys()) - declared):
            yield f"{where}: there is no argument {name!r}"
        yield from _comparison_faults(answer.when, where)


def _undeclared(call: Acceptable, tools: Toolset) -> list[str]:
    """The arguments that a call compares and its tool does not have."""
    declared = set(tools.kinds(call.name)) if call.name in tools else set()
    return sorted((call.arguments.keys() | set(call.free)) - declared) if declared else []


def _scenario_faults(scenario: Scenario, tools: Toolset) -> Iterator[str]:
    where = f"scenario {scenario.name}"
    if not scenario.request.strip():
        yield f"{where}: the request is empty"
    if bool(scenario.calls) == (scenario.kind in ("no_tool", "clarify", "open")):
        yield f"{where}: kind {scenario.kind!r} {'has no calls' if scenario.calls else 'needs calls'}"
    for name in sorted({call.name for call in scenario.calls} | {*scenario.required_steps, *scenario.terminal}):
        if name not in tools:
            yield f"{where}: there is no tool {name!r}"
    for call in scenario.calls:
        for name in _undeclared(call, tools):
            yield f"{where}: {call.name} has no argument {name!r}"
        yield from _comparison_faults(call.arguments, f"{where}, call {call.name}")


def _comparison_faults(compared: dict[str, dict[str, Any]], where: str) -> Iterator[str]:
    for name, comparisons in compared.items():
        for word, wanted in comparisons.items():
            if word not in COMPARISONS:
                yield f"{where}, {name}: no comparison {word!r}; there are {', '.join(COMPARISONS)}"
            elif (word in LISTS) != isinstance(wanted, list) and word not in ("is", "is_not"):
                yield f"{where}, {name}: {word} takes {'a list' if word in LISTS else 'one value'}"
            elif word in NUMBERS and (isinstance(wanted, bool) or not isinstance(wanted, int | float)):
                yield f"{where}, {name}: {word} takes a number"
