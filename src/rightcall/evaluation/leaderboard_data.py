"""The published data of the Berkeley Function Calling Leaderboard: read out of its wheel, none of whose code is run.

    data = find_leaderboard()
    data.rows("BFCL_v4_multiple"), data.rows("possible_answer/BFCL_v4_multiple")

The wheel `bfcl-eval` has a hundred and fifty dependencies and none is needed: `pip download --no-deps` is enough. Its
types become JSON Schema.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from rightcall.backends.models import cache_folder
from rightcall.errors import CallerError
from rightcall.tools.toolset import Toolset
from rightcall.types import Json, Tool

VERSION = "2026.3.23"
_PACKAGE = "bfcl_eval"
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
_KEPT = ("string", "integer", "number", "boolean", "array", "object", "null")
_LEFT_OUT = ("possible_answer", "format_sensitivity", "sanity_check")
_KEYWORDS = ("description", "enum", "default", "format", "maximum", "minItems", "maxItems")


class MissingCases(CallerError):
    """The leaderboard's cases are not here. The message says how to get them."""


class LeaderboardData:
    """The files of a wheel, or of the package where it is installed: the folder of `bfcl_eval`, or a zip file with
    it."""

    def __init__(self, path: Path) -> None:
        self._folder: Path | zipfile.Path = path / "data"
        if path.is_file():
            self._folder = zipfile.Path(path) / _PACKAGE / "data"

    def rows(self, name: str) -> list[Json]:
        """The rows of a file, by its name without the ending."""
        text = (self._folder / f"{name}.json").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    def truths(self, category: str) -> dict[str, list[Json]]:
        """What is right for each case of a category, by its id."""
        return {row["id"]: row["ground_truth"] for row in self.rows(f"possible_answer/BFCL_v4_{category}")}

    def names(self) -> list[str]:
        """Every file of questions or tools, those in folders too; truths are none."""
        return [name for name in _names(self._folder) if not any(word in name for word in _LEFT_OUT)]


def _names(folder: Path | zipfile.Path, before: str = "") -> Iterator[str]:
    inside: list[Path | zipfile.Path] = [*folder.iterdir()]
    for each in sorted(inside, key=lambda each: each.name):
        if each.is_dir():
            yield from _names(each, f"{before}{each.name}/")
        elif each.name.endswith(".json"):
            yield before + each.name.removesuffix(".json")


def find_leaderboard() -> LeaderboardData:
    """The installed package, or else the wheel in the cache folder. Raises `MissingCases`."""
    spec = find_spec(_PACKAGE)
    if spec is not None and spec.submodule_search_locations:
        return LeaderboardData(Path(next(iter(spec.submodule_search_locations))))
    folder = cache_folder()
    wheels = sorted(folder.glob(f"{_PACKAGE}-*.whl"))
    if not wheels:
        raise MissingCases(
            f"the leaderboard's cases are not here; fetch them, once: "
            f"pip download --no-deps --dest {folder} bfcl-eval=={VERSION}"
        )
    return LeaderboardData(wheels[-1])


# -- tools -------------------------------------------------------------------------------------------------------------


def leaderboard_tools(functions: Iterable[Json]) -> Toolset:
    """The functions of a case, as the leaderboard declares them, as tools."""
    return Toolset([_tool(function) for function in functions])


def _tool(function: Json) -> Tool:
    return Tool(
        name=function["name"], description=function.get("description", ""), parameters=_schema(function["parameters"])
    )


def _schema(said: Json) -> Json:
    """JSON Schema of a type as the leaderboard says it. A default may be sent, so it is allowed, whatever it is; the
    options of an array are those of its items."""
    made = {word: said[word] for word in _KEYWORDS if word in said}
    named = str(said.get("type", ""))
    kind = _TYPES.get(named, named)
    if kind in _KEPT:
        made["type"] = [kind, "null"] if said.get("default", "") is None else kind
    if isinstance(said.get("properties"), dict):
        made["properties"] = {name: _schema(inner) for name, inner in said["properties"].items()}
    if isinstance(said.get("required"), list):
        made["required"] = said["required"]
    if isinstance(said.get("items"), dict):
        made["items"] = _schema(said["items"])
    if "enum" in said:
        _place_options(made, kind)
    return made


def _place_options(made: Json, kind: str) -> None:
    options = made.pop("enum")
    if kind == "array" and not any(isinstance(option, list) for option in options):
        made["items"] = {**made.get("items", {}), "enum": options}
        return
    made["enum"] = [*options, *[made[word] for word in ("default",) if word in made and made[word] not in options]]
