"""The Berkeley Function Calling Leaderboard: its published data, its cases, and its rules of a right call.

    data = find_leaderboard()
    data.rows("BFCL_v4_multiple"), data.truths("multiple")
    is_match("f", {"city": "new york"}, function, {"f": {"city": ["New York"], "days": [3, ""]}})   ->  True

The data is read out of the wheel `bfcl-eval`, whose code is never run: it has a hundred and fifty dependencies, and
`pip download --no-deps` is enough. Only categories of one turn are cases. Java and JavaScript are left out: there the
leaderboard expects every value as source text in a string.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rightcall.backends.models import cache_folder
from rightcall.errors import CallerError
from rightcall.evaluation.eval_case import EvalCase, Judge, by_names_and, judge_any_call
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Tool

VERSION = "2026.3.23"
SUITE = "bfcl"
CATEGORIES = (
    *("simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance"),
    *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple", "live_irrelevance", "live_relevance"),
)
_PACKAGE = "bfcl_eval"
_NOT_QUESTIONS = ("possible_answer", "format_sensitivity", "sanity_check")


class MissingCases(CallerError):
    """The leaderboard's data is not installed. The message has the command that downloads it."""


class LeaderboardData:
    """The data files of `bfcl_eval`: `path` is the folder of the installed package, or a wheel."""

    def __init__(self, path: Path) -> None:
        self._folder: Path | zipfile.Path = path / "data"
        if path.is_file():
            self._folder = zipfile.Path(path) / _PACKAGE / "data"

    def rows(self, name: str) -> list[Json]:
        """Return the rows of the data file `name`.json, which has one JSON object on each line; blank lines are
        skipped."""
        text = (self._folder / f"{name}.json").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    def truths(self, category: str) -> dict[str, list[Json]]:
        """Return the acceptable calls of each case of a category, by the id of the case."""
        return {row["id"]: row["ground_truth"] for row in self.rows(f"possible_answer/BFCL_v4_{category}")}

    def names(self) -> list[str]:
        """Return the names of all files of questions and tools, also in subfolders; files of truths are left out."""
        return [name for name in _find_json_files(self._folder) if not any(word in name for word in _NOT_QUESTIONS)]


def _find_json_files(folder: Path | zipfile.Path, prefix: str = "") -> Iterator[str]:
    """Yield, sorted, the names of all .json files below a folder or zip, relative to it and without suffix. `prefix` is
    put before each name."""
    inside: list[Path | zipfile.Path] = [*folder.iterdir()]
    for each in sorted(inside, key=lambda each: each.name):
        if each.is_dir():
            yield from _find_json_files(each, f"{prefix}{each.name}/")
        elif each.name.endswith(".json"):
            yield prefix + each.name.removesuffix(".json")


def find_leaderboard() -> LeaderboardData:
    """Return the data of the installed package `bfcl_eval`, or else of its newest wheel in the cache. Raises
    `MissingCases`, which says how to download it, if there is neither."""
    spec = find_spec(_PACKAGE)
    if spec is not None and spec.submodule_search_locations:
        return LeaderboardData(Path(next(iter(spec.submodule_search_locations))))
    folder = cache_folder()
    wheels = sorted(folder.glob(f"{_PACKAGE}-*.whl"))
    if not wheels:
        raise MissingCases(
            f"the leaderboard's cases are not downloaded; download them once: "
            f"pip download --no-deps --dest {folder} bfcl-eval=={VERSION}"
        )
    return LeaderboardData(wheels[-1])


# -- cases -------------------------------------------------------------------------------------------------------------


def leaderboard_cases(names: Iterable[str] = (), data: LeaderboardData | None = None) -> Iterator[EvalCase]:
    """Yield the cases of these categories; all if none is given.

    A name may also be a word such as `live`, which selects all categories with that word in their names. `data` is the
    leaderboard's data (None: it is found). Raises `CallerError` for an unknown name, `MissingCases` without the data.
    """
    chosen = _choose_categories(names)
    data = data or find_leaderboard()
    for category in chosen:
        truths = data.truths(category) if "relevance" not in category else {}
        for row in data.rows(f"BFCL_v4_{category}"):
            yield leaderboard_case(row, truths.get(row["id"], []), category)


def leaderboard_case(row: Json, truths: list[Json], category: str, suite: str = SUITE) -> EvalCase:
    """Return one row of the leaderboard as a case of `suite`, judged by the leaderboard's rules; `truths` are its
    acceptable calls. In the category "live_relevance" any call is right."""
    return EvalCase(
        suite=suite,
        id=str(row["id"]),
        category=category,
        tools=leaderboard_tools(row["function"]),
        messages=tuple(row["question"][0]),
        wanted="any call" if category == "live_relevance" else truths,
        judge=judge_any_call if category == "live_relevance" else _make_truth_judge(truths, row["function"]),
    )


def _make_truth_judge(truths: Sequence[Json], functions: Sequence[Json]) -> Judge:
    """Return a judge that compares the calls with `truths`, the acceptable calls, by the leaderboard's rules, and their
    tools also by name alone, without regard to order; `functions` are the declared tools. Without truths, only an
    answer without calls is right."""

    def are_right(calls: Sequence[Call]) -> bool:
        return are_matches([(call.name, call.arguments) for call in calls], functions, truths)

    return by_names_and([next(iter(truth)) for truth in truths], are_right)


def _choose_categories(words: Iterable[str]) -> list[str]:
    """Return the categories that these words select, each once: a word is a category's name, or a part of it such as
    `live`. Without words, all. Raises `CallerError` for an unknown word."""
    chosen: dict[str, None] = {}
    for word in words:
        fitting = [word] if word in CATEGORIES else [name for name in CATEGORIES if word in name.split("_")]
        if not fitting:
            raise CallerError(f"the leaderboard has no category {word!r:.80} here; there are {', '.join(CATEGORIES)}")
        chosen |= dict.fromkeys(fitting)
    return list(chosen) or list(CATEGORIES)


# -- tools: the leaderboard's types as JSON Schema ---------------------------------------------------------------------

_TYPES = {
    "dict": "object",
    "HashMap": "object",
    "float": "number",
    "double": "number",
    "tuple": "array",
    "Array": "array",
    "ArrayList": "array",
    "String": "string",
    "char": "string",
    "long": "integer",
    "Boolean": "boolean",
}
_SCHEMA_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_KEYWORDS = ("description", "enum", "default", "format", "maximum", "minItems", "maxItems")


def leaderboard_tools(functions: Iterable[Json]) -> Toolset:
    """Return the functions that a row declares as a `Toolset`, with their types translated to JSON Schema."""
    return Toolset(
        [
            Tool(
                name=each["name"],
                description=each.get("description", ""),
                parameters=_to_json_schema(each["parameters"]),
            )
            for each in functions
        ]
    )


def _to_json_schema(declared: Json) -> Json:
    """Return the JSON Schema of a type as the leaderboard declares it. Its default is always allowed: added to an
    `enum`, or null as a type. An `enum` of an array applies to its items."""
    schema = {word: declared[word] for word in _KEYWORDS if word in declared}
    name = str(declared.get("type", ""))
    kind = _TYPES.get(name, name)
    if kind in _SCHEMA_TYPES:
        schema["type"] = [kind, "null"] if declared.get("default", "") is None else kind
    if isinstance(declared.get("properties"), dict):
        schema["properties"] = {key: _to_json_schema(inner) for key, inner in declared["properties"].items()}
    if isinstance(declared.get("required"), list):
        schema["required"] = declared["required"]
    if isinstance(declared.get("items"), dict):
        schema["items"] = _to_json_schema(declared["items"])
    if "enum" in declared:
        options = schema.pop("enum")
        if kind == "array" and not any(isinstance(option, list) for option in options):
            schema["items"] = {**schema.get("items", {}), "enum": options}
        else:
            is_extra = "default" in schema and schema["default"] not in options
            schema["enum"] = [*options, schema["default"]] if is_extra else [*options]
    return schema


# -- the rules of a match ----------------------------------------------------------------------------------------------
# A truth lists the acceptable values of each argument; "" among them means that it may be left out. Strings are
# compared without case, blanks and the characters ,./-_*^; types are those of the function's declaration or of the
# truth. These are the leaderboard's own rules with their inconsistencies, so that rates can be compared with those
# that it publishes.

_IGNORED = re.compile(r"[ ,./\-_*^]")
_KINDS: dict[str, type[Any]] = {
    "string": str,
    "integer": int,
    "float": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "any": str,
}


def are_matches(calls: Sequence[tuple[str, Json]], functions: Iterable[Json], truths: Sequence[Json]) -> bool:
    """Return whether each truth accepts another one of these calls, in any order, and no call remains.

    - `calls`: names and arguments.
    - `functions`: the functions of the row, as the leaderboard declares them.
    - `truths`: one object for each expected call, with the acceptable values of each argument.
    """
    declared = {function["name"]: function for function in functions}
    unmatched = dict(enumerate(calls))  # by index, since equal calls may differ in their types
    if len(calls) != len(truths):
        return False
    for truth in truths:
        function = declared.get(next(iter(truth)), {})
        match = next((at for at, call in unmatched.items() if is_match(*call, function, truth)), None)
        if match is None:
            return False
        del unmatched[match]
    return True


def is_match(name: str, arguments: Json, function: Json, truth: Json) -> bool:
    """Return whether the `truth` accepts a call of this `name` with these `arguments`; `function` declares the tool."""
    ((expected, accepted),) = truth.items()
    declared = function.get("parameters", {})
    if name != expected or any(each not in arguments for each in declared.get("required", ())):
        return False
    if any("" not in values for key, values in accepted.items() if key not in arguments):
        return False
    properties = declared.get("properties", {})
    return all(
        key in properties and key in accepted and _is_accepted(value, accepted[key], properties[key])
        for key, value in arguments.items()
    )


def _is_accepted(given: Any, accepted: Sequence[Any], declared: Json) -> bool:
    """Return whether the value `given` for an argument has the `declared` type, or that of the accepted values, and is
    one of the values in `accepted` by the leaderboard's rules."""
    name = declared.get("type", "any")
    kind = _KINDS.get(name, str)
    items: type[Any] | None = _KINDS.get(declared.get("items", {}).get("type", "any"), str) if kind is list else None
    value: Any = float(given) if name == "float" and type(given) is int else given
    if not _has_kind(value, accepted, kind, items):
        return False
    if _kind_of_truth(accepted) not in (None, kind) or (type(value) is not kind):
        return value in accepted  # the name of a variable instead of a value
    if kind is dict:
        return any(_is_accepted_object(value, each) for each in accepted if each != "")
    if kind is list:
        return any((_are_accepted_objects if items is dict else _is_list)(value, each) for each in accepted)
    return _normalize(value) in map(_normalize, accepted) if kind is str else value in accepted


def _kind_of_truth(accepted: Iterable[Any]) -> type[Any] | None:
    """Return the type of the acceptable values; None if only the omission of the argument is acceptable."""
    return next((type(each) for each in accepted if each != ""), None)


def _has_kind(value: Any, accepted: Sequence[Any], kind: type[Any], items: type[Any] | None) -> bool:
    """Return whether the value is of the class `kind`, with items of the class `items` (None: any), or else of the
    class of the first value in `accepted`."""
    if type(value) is not kind:
        return type(value) is _kind_of_truth(accepted)
    return items is None or any(
        not isinstance(each, list) or all(_has_kind(item, each, items, None) for item in value) for each in accepted
    )


def _normalize(value: Any) -> Any:
    """Return a string in lower case without the characters that a comparison ignores, and with " for '; any other value
    as it is."""
    return _IGNORED.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value


def _is_list(value: list[Any], accepted: Any) -> bool:
    return isinstance(accepted, list | str) and list(map(_normalize, value)) == list(map(_normalize, accepted))


def _is_accepted_object(value: Any, accepted: Any) -> bool:
    """Return whether `value` is a dict of which each value is acceptable, and which lacks only keys that may be left
    out; `accepted` has the acceptable values of each key."""
    if not (isinstance(value, dict) and isinstance(accepted, dict)):
        return False
    options = {key: each if isinstance(each, list | str) else [each] for key, each in accepted.items()}
    if any("" not in values for key, values in options.items() if key not in value):
        return False
    return all(key in options and _normalize(item) in map(_normalize, options[key]) for key, item in value.items())


def _are_accepted_objects(value: list[Any], accepted: Any) -> bool:
    """Return whether a list has as many items as `accepted`, and each is a dict that the one in the same place
    accepts."""
    if not isinstance(accepted, list | str) or len(value) != len(accepted):
        return False
    return all(map(_is_accepted_object, value, accepted))
