"""Suites of cases: the four built-in ones, and JSON Lines files of the user.

    find_cases(["questions", "bfcl:simple_python", "tasks:clinic", "mine.jsonl"], limit=50)

A row of a user's file has one of three shapes:

    {"id": "a", "messages": [{"role": "user", ...}], "tools": [...], "calls": [{"name": "f", "arguments": {...}}]}
    {"messages": [..., {"role": "assistant", "tool_calls": [...]}], "tools": [...]}        training rows
    {"id": "b", "question": [[{"role": "user", ...}]], "function": [...], "ground_truth": [{"f": {"x": [1]}}]}

The first may have a text `question` instead of `messages`; an empty `calls` means that the model must make no call. Of
the second, the last turn is the expected answer. The third is a row of the Berkeley leaderboard and is judged by its
rules.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Literal

import msgspec

from rightcall.capture.domain import DEFAULT_DOMAINS, Domain, Scenario, find_domains, solved_examples
from rightcall.errors import BadTools, CallerError
from rightcall.evaluation.eval_case import EvalCase, by_scenario, exactly
from rightcall.evaluation.leaderboard import leaderboard_case, leaderboard_cases
from rightcall.storage.jsonl import LineFault, read_rows
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json

QUESTIONS = "questions"
TASK_DOMAINS = ("clinic", "warehouse", "newsroom", "expenses", "fleet")
OWN_TURNS = 3
_QUESTION_FOLDER = Path(__file__).with_name("own_questions")


class Suite(msgspec.Struct, frozen=True):
    """A built-in source of cases.

    - `about`: a description in one line.
    - `max_turns`: the default limit of answers in one case.
    - `find`: returns the cases of the given parts (empty: all), with so many examples before each request.
    """

    about: str
    max_turns: int
    find: Callable[[Sequence[str], int], Iterable[EvalCase]]


def find_cases(names: Iterable[str], *, limit: int | None = None, examples: int = 0) -> list[EvalCase]:
    """Return the cases of the named suites and files, each case once.

    - `names`: `SUITE`, `SUITE:PART,PART` or a path that ends with `.jsonl`.
    - `limit`: at most so many cases of each name, taken from its categories in turn.
    - `examples`: how many solved examples precede the request of a case.

    Raises `CallerError` for an unknown name, an invalid row or no cases, `FileFailed` for an unreadable file.
    """
    found: dict[str, EvalCase] = {}
    for name in names:
        for case in islice(_interleave_categories(_cases_of(name, examples)), limit):
            if found.setdefault(case.key, case).digest != case.digest:
                raise CallerError(f"two different cases are called {case.key!r:.120}; give each its own id")
    if not found:
        raise CallerError("there are no cases; name a suite or a file of rows")
    return list(_interleave_categories(found.values()))


def max_turns(case: EvalCase) -> int:
    """Return the default limit of answers in this case."""
    return SUITES[case.suite].max_turns if case.suite in SUITES else OWN_TURNS


def _cases_of(word: str, examples: int) -> Iterable[EvalCase]:
    """Return the cases that a word of the command names: a suite, some parts of it (`SUITE:PART,PART`), or a .jsonl
    file. `examples` is the number of solved examples before a request. Raises `CallerError` for an unknown suite."""
    name, _, parts = word.partition(":")
    if name in SUITES:
        return SUITES[name].find([part for part in parts.split(",") if part], examples)
    if word.endswith(".jsonl"):
        return own_cases(Path(word))
    near = difflib.get_close_matches(name, SUITES, 1, 0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(SUITES)}, or give a .jsonl file"
    raise CallerError(f"no suite {name!r:.80}; {hint}")


def _interleave_categories(cases: Iterable[EvalCase]) -> Iterator[EvalCase]:
    """Yield all cases, one of each category in turn, so that a run that ends early has cases of all."""
    groups: dict[tuple[str, str], list[EvalCase]] = {}
    for case in cases:
        groups.setdefault((case.suite, case.category), []).append(case)
    for row in zip_longest(*groups.values()):
        yield from [case for case in row if case is not None]


# -- files of the user -------------------------------------------------------------------------------------------------


def own_cases(path: Path) -> Iterator[EvalCase]:
    """Yield the cases of a user's JSON Lines file, whose name is that of the suite. Raises `CallerError`, with the
    line, for an invalid row, and `FileFailed` for an unreadable file."""
    for number, row in read_rows(path):
        if isinstance(row, LineFault):
            raise CallerError(f"{path}:{number}: {row.message}")
        try:
            yield _parse_own_case(row, path.stem, number)
        except (CallerError, BadTools, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            why = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise CallerError(f"{path}:{number}: not a valid case: {why:.300}") from error


def _parse_own_case(row: Json, suite: str, number: int) -> EvalCase:
    """Return the case of one row of a user's file; `number` is its line, which is its id if it has none. An invalid row
    raises `CallerError`, `KeyError`, `TypeError` or another error."""
    if "ground_truth" in row:
        row = {"id": f"line-{number}", **row}
        _check_truths(row["ground_truth"])
        return leaderboard_case(row, row["ground_truth"], str(row.get("category", suite)), suite)
    messages, expected = _split_row(row)
    tools = Toolset.of(row["tools"]) or Toolset()
    if unknown := [call.name for call in expected if call.name not in tools]:
        raise CallerError(
            f"the expected call names {unknown[0]!r:.80}, which is not one of its tools; add it to `tools`"
        )
    return EvalCase(
        suite=suite,
        id=str(row.get("id", f"line-{number}")),
        category=str(row.get("category", suite)),
        tools=tools,
        messages=tuple(messages),
        wanted=[{"name": call.name, "arguments": call.arguments} for call in expected],
        judge=exactly(expected),
    )


def _split_row(row: Json) -> tuple[Sequence[Json], list[Call]]:
    """Return the messages of the request and the expected calls of a user's row: from its `calls`, or from a last turn
    of the assistant. Raises `CallerError` or `KeyError` for an invalid row."""
    if isinstance(row.get("question"), str):
        return [{"role": "user", "content": row["question"]}], _parse_calls(row["calls"])
    messages = row["messages"]
    if not isinstance(messages, list) or not all(isinstance(each, dict) and "role" in each for each in messages):
        raise CallerError("`messages` must be a list of objects that have a role")
    if "calls" in row and not messages:
        raise CallerError("`messages` is empty: the case has no request")
    if "calls" in row:
        return messages, _parse_calls(row["calls"])
    if not messages or messages[-1].get("role") != "assistant":
        raise CallerError("there is neither `calls` nor a last turn of the assistant with the expected calls")
    return messages[:-1], _parse_calls([each["function"] for each in messages[-1].get("tool_calls") or ()])


def _parse_calls(entries: Any) -> list[Call]:
    """Return a list of JSON objects with name and arguments as calls. Raises `CallerError` or `KeyError` if they are
    not calls."""
    if not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise CallerError("the expected calls must be a list of objects")
    return [_parse_call(each["name"], each.get("arguments", {})) for each in entries]


def _parse_call(name: Any, arguments: Any) -> Call:
    """Return a call of the tool `name`; the arguments may be JSON text, of which an empty one is {}. Raises
    `CallerError` if they are not an object or the name is no text."""
    value = decode(arguments or "{}", MAX_DEPTH) if isinstance(arguments, str) else arguments
    if not isinstance(name, str) or not isinstance(value, dict):
        raise CallerError(f"the call of {name!r:.80} must have a name, and arguments that are an object")
    return Call(name, value)


def _check_truths(truths: Any) -> None:
    """Raise `CallerError` unless `truths` is a list of objects that each map one tool name to lists of acceptable
    values, one list per argument; otherwise do nothing."""
    for truth in truths if isinstance(truths, list) else [None]:
        values = next(iter(truth.values())) if isinstance(truth, dict) and len(truth) == 1 else None
        if not isinstance(values, dict) or not all(isinstance(each, list) for each in values.values()):
            raise CallerError('`ground_truth` must be a list of objects like {"f": {"x": [1, 2]}}')


# -- scenarios of stub domains -----------------------------------------------------------------------------------------


def domain_cases(names: Iterable[str] = (), examples: int = 0) -> Iterator[EvalCase]:
    """Yield a case for each scenario of these domains, given as names or TOML files; without names, of the default
    ones. `examples` solved examples precede each request."""
    return _scenario_cases("domains", list(names) or DEFAULT_DOMAINS, examples)


def task_cases(names: Iterable[str] = (), examples: int = 0) -> Iterator[EvalCase]:
    """Yield a case for each task of several steps in these domains; without names, of all domains that consist of such
    tasks. `examples` solved examples precede each request."""
    return _scenario_cases("tasks", list(names) or TASK_DOMAINS, examples)


def _scenario_cases(suite: str, names: Iterable[str], examples: int) -> Iterator[EvalCase]:
    """Yield a case for each scenario of these domains, as part of `suite`; open scenarios, which have no expected
    calls, are left out."""
    for domain in find_domains(names):
        for scenario in domain.scenarios:
            if scenario.kind != "open":
                yield _scenario_case(suite, domain, scenario, examples)


def _scenario_case(suite: str, domain: Domain, scenario: Scenario, examples: int) -> EvalCase:
    """Return a scenario as a case of `suite`; `examples` is the number of solved examples of its domain before the
    request."""
    return EvalCase(
        suite=suite,
        id=f"{domain.name}/{scenario.name}",
        category=domain.name,
        tools=domain.tools,
        messages=(*solved_examples(domain, scenario, examples), {"role": "user", "content": scenario.request}),
        wanted=[msgspec.to_builtins(call) for call in scenario.calls],
        judge=by_scenario(scenario, domain),
        domain=domain,
    )


# -- questions that one call answers -----------------------------------------------------------------------------------
# A prompt of prompts.json has a tool, wordings and rows of argument values. A case offers its tool and up to two
# others. The first forty cases have every tool twice; later ones repeat the tools with other wordings and values.


def question_cases(examples: int = 0) -> Iterator[EvalCase]:
    """Yield the 240 built-in questions as cases. Solved examples for up to `examples` of the offered tools precede
    each."""
    prompts, number = _read_questions("prompts"), 0
    for row in range(max(len(prompt["values"]) for prompt in prompts)):
        for wording in range(max(len(prompt["say"]) for prompt in prompts)):
            for target, prompt in enumerate(prompts):
                if row < len(prompt["values"]) and wording < len(prompt["say"]):
                    yield _question_case(number, target, row, wording, examples)
                    number += 1


@cache
def _read_questions(name: Literal["prompts", "tools"]) -> list[Json]:
    """Return the prompts or the tools of the built-in questions."""
    rows: list[Json] = json.loads((_QUESTION_FOLDER / f"{name}.json").read_text("utf-8"))
    return rows


def _question_case(number: int, target: int, row: int, wording: int, examples: int) -> EvalCase:
    """Return question `number`: the prompt at index `target` in one `wording`, with the argument values of one `row`.
    Solved examples for up to `examples` of the offered tools precede it."""
    prompts, tools = _read_questions("prompts"), _read_questions("tools")
    offered = [(target + step) % len(prompts) for step in range(1 + number % 3)]
    rotated = offered[number % len(offered) :] + offered[: number % len(offered)]  # the target is not always first
    messages = [
        message for each in rotated[:examples] for message in _solved_example(prompts[each], row + 1, wording + 1)
    ]
    prompt = prompts[target]
    call = Call(prompt["tool"], prompt["values"][row])
    return EvalCase(
        suite=QUESTIONS,
        id=f"{prompt['tool']}/{row}/{wording}",
        category=prompt["tool"],
        tools=Toolset([tools[each] for each in rotated]),
        messages=(*messages, {"role": "user", "content": _question_text(prompt, row, wording)}),
        wanted=[{"name": call.name, "arguments": call.arguments}],
        judge=exactly([call]),
    )


def _solved_example(prompt: Json, row: int, wording: int) -> list[Json]:
    """Return the messages of a solved example of a prompt: request, call and result. `row` and `wording` are taken
    modulo their numbers."""
    row, wording = row % len(prompt["values"]), wording % len(prompt["say"])
    function = {"name": prompt["tool"], "arguments": json.dumps(prompt["values"][row], ensure_ascii=False)}
    id = f"example_{prompt['tool']}"
    return [
        {"role": "user", "content": _question_text(prompt, row, wording)},
        {"role": "assistant", "content": "", "tool_calls": [{"id": id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": id, "name": prompt["tool"], "content": "ok"},
    ]


def _question_text(prompt: Json, row: int, wording: int) -> str:
    """Return the text of a prompt in one `wording`, with the argument values of one `row` filled in."""
    values = {key: _plain_language(value) for key, value in prompt["values"][row].items()}
    return str(prompt["say"][wording].format(**values))


def _plain_language(value: Any) -> str:
    """Return an argument value as text for a request: `["a", "b"]` as "a and b", an object as its values with blanks
    between."""
    if isinstance(value, list):
        return " and ".join([", ".join(value[:-1]), value[-1]] if len(value) > 1 else value)
    return " ".join([_plain_language(each) for each in value.values()]) if isinstance(value, dict) else str(value)


def _find_questions(parts: Sequence[str], examples: int) -> Iterable[EvalCase]:
    return [case for case in question_cases(examples) if not parts or case.category in parts]


SUITES: dict[str, Suite] = {
    QUESTIONS: Suite("240 questions that one call of 20 tools answers", 3, _find_questions),
    "bfcl": Suite("the Berkeley leaderboard's categories of one turn", 3, lambda parts, _: leaderboard_cases(parts)),
    "domains": Suite("scenarios over stub tools, as `rightcall capture` has them", 6, domain_cases),
    "tasks": Suite("52 tasks of several steps over stub tools", 16, task_cases),
}
