"""A domain: stub tools that have no effects and always answer the same, and scenarios that say which calls are right.

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

Domains are TOML data, so that users add theirs without code. `find_domains` finds the built-in ones by name, and others
by path.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from rightcall.capture.stubs import COMPARISONS, LISTS, NUMBERS, StubAnswer, StubOutcome, choose_answer, placeholders
from rightcall.errors import BadTools, CallerError
from rightcall.providers.sdk_view import compact_json
from rightcall.tools.toolset import Toolset
from rightcall.types import Json, Tool

MAX_SIZE = 1_000_000  # characters of a domain file
_NAME = re.compile(r"[\w.-]{1,80}")  # names are parts of keys and of key=value lines


class BadDomain(CallerError):
    """An invalid domain file. The message names the file, the place in it and the cure."""


class Stub(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stub tool: its declaration and its answers."""

    name: str
    answers: tuple[StubAnswer, ...]
    description: str = ""
    parameters: Json = {}
    read_only: bool = False


class Acceptable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An expected call.

    - `name`: the tool.
    - `arguments`: comparisons that each argument must satisfy; an argument that is neither here nor in `free` must be
      absent.
    - `free`: arguments that may have any value.
    - `optional`: the call may be left out.
    - `after`: names of calls that must have been made before.
    """

    name: str
    arguments: dict[str, dict[str, Any]] = {}
    free: tuple[str, ...] = ()
    optional: bool = False
    after: tuple[str, ...] = ()


Kind = Literal["single", "parallel", "dependent", "recover", "no_tool", "clarify", "open"]


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One request, and the calls that answer it.

    - `name`: unique in its domain.
    - `request`: the message of the user.
    - `calls`: the expected calls; if there are none, the right answer is a text: an answer, or a question back.
    - `kind`: what it tests; the calls of an "open" scenario are not judged, since the right ones are unknown.
    - `required_steps`: names of tools that must be called during the task.
    - `terminal`: names of tools; a successful call of one ends the task.
    - `tags`: labels of the user.
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
    """Tools and scenarios that need them: `name`, `about`, `tools`, `scenarios`. Immutable; made by `find_domains`
    from a parsed `file`. With `is_real`, the `tools` are real ones instead of the stubs of the file."""

    def __init__(self, file: _File, tools: Toolset, *, is_real: bool = False) -> None:
        self.name, self.about, self.scenarios = file.name, file.about, file.scenarios
        self.tools, self.is_real = tools, is_real
        self._answers = {stub.name: stub.answers for stub in file.tools}

    def run(self, name: str, arguments: Json) -> StubOutcome:
        """Return the answer of the stub `name` to these `arguments`; an error outcome, not an exception, for an unknown
        tool. Equal arguments have equal answers; nothing is changed."""
        answers = self._answers.get(name)
        if answers is None:
            return StubOutcome("error", {"error": f"unknown tool: {name}"})
        return choose_answer(answers, arguments)

    @cached_property
    def by_name(self) -> dict[str, Scenario]:
        """The scenarios by their names."""
        return {scenario.name: scenario for scenario in self.scenarios}


def read_domain(text: str, origin: str = "domain", *, real: Toolset | None = None) -> Domain:
    """Parse a domain from TOML text; with `real`, these tools replace its stubs.

    `origin` names the text in errors. Raises `BadDomain` for text that is too long or not TOML of this structure, else
    with all faults of the content in one message.
    """
    if len(text) > MAX_SIZE:
        raise BadDomain(f"{origin}: longer than {MAX_SIZE} characters; split it into several domains")
    try:
        data = tomllib.loads(text)
        _check_json(data, origin)
        file = msgspec.convert(data, _File)
    except tomllib.TOMLDecodeError as error:
        raise BadDomain(f"{origin}: not TOML: {error}") from error
    except RecursionError as error:
        raise BadDomain(f"{origin}: nested too deeply") from error
    except msgspec.ValidationError as error:
        raise BadDomain(f"{origin}: {error}") from error
    if real is not None:
        file = msgspec.structs.replace(file, tools=())
    tools = _make_toolset(file, origin) if real is None else real
    faults = list(_find_faults(file, tools))
    if faults:
        raise BadDomain("\n".join(f"{origin}: {fault}" for fault in faults))
    return Domain(file, tools, is_real=real is not None)


def _check_json(value: Any, origin: str) -> None:
    """Raise `BadDomain` for a value from TOML that JSON does not have, at any depth: dates, times, NaN and infinity."""
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _check_json(each, origin)
    elif not isinstance(value, str | bool | int) and (not isinstance(value, float) or value - value != 0):
        raise BadDomain(f"{origin}: {value} is not a JSON value; write it as text")


def _make_toolset(file: _File, origin: str) -> Toolset:
    """Return the stubs of a file as tools. Raises `BadDomain` for an invalid declaration."""
    try:
        return Toolset([_tool(stub) for stub in file.tools])
    except BadTools as error:
        raise BadDomain(f"{origin}: {error}") from error


def _tool(stub: Stub) -> Tool:
    """Return the declaration of a stub as a `Tool`, without its answers."""
    return Tool(name=stub.name, description=stub.description, parameters=stub.parameters, read_only=stub.read_only)


def _find_faults(file: _File, tools: Toolset) -> Iterator[str]:
    """Yield every fault of a domain as text, so that a user can fix all of them in one pass."""
    if not file.scenarios:
        yield "there are no scenarios"
    for name in (file.name, *[scenario.name for scenario in file.scenarios]):
        if not _NAME.fullmatch(name):
            yield f"{name!r:.80} is not a valid name; use at most 80 letters, digits, _, - and ."
    for stub in file.tools:
        yield from _find_stub_faults(stub, set(tools.kinds(stub.name)))
    for kind, named in (("tools", file.tools), ("scenarios", file.scenarios)):
        yield from (f"two {kind} are called {name!r}" for name in _duplicates(each.name for each in named))
    for scenario in file.scenarios:
        yield from _find_scenario_faults(scenario, tools)


def _duplicates(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, each once."""
    return [name for name, count in Counter(names).items() if count > 1]


def _find_stub_faults(stub: Stub, declared: set[str]) -> Iterator[str]:
    """Yield the faults of a stub as text: no answers, an answer with both or neither of `result` and `error`, an
    argument that is not in `declared`, invalid comparisons."""
    if not stub.answers:
        yield f"tool {stub.name}: it has no answers"
    for at, answer in enumerate(stub.answers):
        where = f"tool {stub.name}, answer {at}"
        if bool(answer.error) == (answer.result is not None):
            yield f"{where}: give either `result` or `error`"
        for name in sorted((placeholders([answer.result, answer.error]) | answer.when.keys()) - declared):
            yield f"{where}: there is no argument {name!r}"
        yield from _find_comparison_faults(answer.when, where)


def _undeclared(call: Acceptable, tools: Toolset) -> list[str]:
    """Return the argument names of an expected call that its tool does not declare, sorted; none if the tool is unknown
    or declares no arguments."""
    declared = set(tools.kinds(call.name)) if call.name in tools else set()
    return sorted((call.arguments.keys() | set(call.free)) - declared) if declared else []


def _find_scenario_faults(scenario: Scenario, tools: Toolset) -> Iterator[str]:
    """Yield each fault of a scenario as text: an empty request, calls that its kind needs or excludes, unknown tools,
    undeclared argument names, and invalid comparisons. The expected values are not checked against the schema."""
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
        yield from _find_comparison_faults(call.arguments, f"{where}, call {call.name}")


def _find_comparison_faults(compared: dict[str, dict[str, Any]], where: str) -> Iterator[str]:
    """Yield the faults of comparisons, given by argument, as text: unknown names, and operands of a wrong type. `where`
    begins each text."""
    for name, comparisons in compared.items():
        for word, wanted in comparisons.items():
            if word not in COMPARISONS:
                yield f"{where}, {name}: no comparison {word!r}; there are {', '.join(COMPARISONS)}"
            elif (word in LISTS) != isinstance(wanted, list) and word not in ("is", "is_not"):
                yield f"{where}, {name}: {word} takes {'a list' if word in LISTS else 'one value'}"
            elif word in NUMBERS and (isinstance(wanted, bool) or not isinstance(wanted, int | float)):
                yield f"{where}, {name}: {word} takes a number"


_BUILT_IN_FOLDER = Path(__file__).with_name("domains")
DEFAULT_DOMAINS = ("repo_docs", "shopping", "calendar", "support")


def built_in_names() -> list[str]:
    """Return the names of the built-in domains."""
    return sorted(file.stem for file in _BUILT_IN_FOLDER.glob("*.toml"))


@cache
def built_in_domain(name: str) -> Domain:
    """Return the built-in domain of this name, parsed once per process. Raises `FileNotFoundError` for an unknown
    name."""
    return read_domain((_BUILT_IN_FOLDER / f"{name}.toml").read_text("utf-8"), f"{name}.toml")


def find_domain(name: str, real: Toolset | None = None) -> Domain:
    """Return the built-in domain `name`, or, if it ends with `.toml`, the domain in that file; with `real`, these tools
    replace its stubs.

    Raises `CallerError` for an unknown name, `BadDomain` for an invalid file or one that cannot be read.
    """
    if name in built_in_names():
        return built_in_domain(name) if real is None else read_domain_file(_BUILT_IN_FOLDER / f"{name}.toml", real)
    if name.endswith(".toml"):
        return read_domain_file(Path(name), real)
    near = difflib.get_close_matches(name, built_in_names(), 1, 0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(built_in_names())}, or give a .toml file"
    raise CallerError(f"unsupported dataset domain {name!r:.80}; {hint}")


def read_domain_file(path: Path, real: Toolset | None = None) -> Domain:
    """Parse the domain in a TOML file; with `real`, these tools replace its stubs. Raises `BadDomain` for an invalid
    file, and for one that cannot be read."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_SIZE + 1).decode("utf-8")
    except OSError as error:
        raise BadDomain(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadDomain(f"{path}: not UTF-8 text") from error
    return read_domain(text, str(path), real=real)


def find_domains(wanted: Iterable[str], *, tools: Toolset | None = None) -> list[Domain]:
    """Return these domains, each once and in the given order. Raises `CallerError`, also for two domains with the same
    name, and for scenarios that need a tool which does not exist.

    - `wanted`: names of built-in domains, or paths of TOML files.
    - `tools`: real tools that replace the stubs.
    """
    found: dict[str, Domain] = {}
    for name in dict.fromkeys(wanted):
        domain = find_domain(name, tools)
        if domain.name in found:
            raise CallerError(f"two domains are called {domain.name!r}, the second in {name}; rename one of them")
        found[domain.name] = domain
    return list(found.values())


def solved_examples(domain: Domain, but: Scenario, most: int, *, with_results: bool = True) -> list[Json]:
    """Return the messages of at most `most` solved scenarios, for models that need an example of a call.

    Each is a request, the right call, its result and a final answer. They are other scenarios of the same domain than
    `but`, with one call whose arguments can be derived. Without `with_results` an example ends with its call: servers
    require a result after a native call, but in a conversation as text, small models imitate results and invent them.
    """
    found: list[Json] = []
    for number, (scenario, call, arguments) in enumerate(_find_solvable_scenarios(domain, but)):
        if number == most:
            break
        turns = _example_messages(domain, scenario, call.name, arguments, f"example_{number}")
        found += turns if with_results else turns[:2]
    return found


def _find_solvable_scenarios(domain: Domain, but: Scenario) -> Iterator[tuple[Scenario, Acceptable, Json]]:
    """Yield each scenario of kind "single" except `but` that has one call whose arguments can be derived, with the call
    and these arguments. Of the alternatives in `one_of`, the first is taken."""
    for scenario in domain.scenarios:
        if scenario.name != but.name and len(scenario.calls) == 1 and scenario.kind == "single":
            arguments = _exact_arguments(scenario.calls[0])
            if arguments is not None:
                yield scenario, scenario.calls[0], arguments


def _exact_arguments(call: Acceptable) -> Json | None:
    """Return the arguments of an expected call, without its `free` ones; None if one of them cannot be derived from its
    comparisons."""
    made: Json = {}
    for name, comparisons in call.arguments.items():
        value = _exact_value(comparisons)
        if value is None:
            return None
        made[name] = value
    return made


def _exact_value(comparisons: dict[str, Any]) -> Any:
    """Return the operand of `is`, else that of `same_text`, else the first of `one_of`; None without one of them. Other
    comparisons of the argument are not checked."""
    if "is" in comparisons:
        return comparisons["is"]
    if "same_text" in comparisons:
        return comparisons["same_text"]
    return comparisons["one_of"][0] if comparisons.get("one_of") else None


def _example_messages(domain: Domain, scenario: Scenario, name: str, arguments: Json, id: str) -> list[Json]:
    """Return the four messages of a solved example: request, call, its stub result, and a final answer."""
    made = {"id": id, "type": "function", "function": {"name": name, "arguments": compact_json(arguments)}}
    result = domain.run(name, arguments).message
    return [
        {"role": "user", "content": scenario.request},
        {"role": "assistant", "content": "", "tool_calls": [made]},
        {"role": "tool", "tool_call_id": id, "name": name, "content": result},
        {"role": "assistant", "content": f"Done: {result}"},
    ]
