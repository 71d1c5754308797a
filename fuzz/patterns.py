"""Every regular expression of the source, attacked: for each of its repeats, texts that match it and then fail.

A pattern is known when it is compiled: `re.compile` is watched while the package is imported and every format made
ready. How it is used (`match`, `search`, ...) is read in the source, where it can be; else it is tried in both ways.
"""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import rightcall

SOURCE = Path(rightcall.__file__).resolve().parent
SHORT, LONG = 1_000, 20_000  # characters
SLOW = 0.02  # CPU seconds: a pattern that goes over the text once takes a fiftieth of that
UNBOUNDED = 1_000  # repeats; fewer cost the same however long the text is
MOST_ATTACKS = 40  # on one pattern
_PARSER: Any = importlib.import_module("re._parser")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_METHODS = ("match", "fullmatch", "search", "sub", "finditer", "findall", "split")
_FAILS = ("", "\0", "x", "\n")
_CLASSES = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a", "CATEGORY_NOT_SPACE": "a"}
_CLASSES |= {"CATEGORY_NOT_DIGIT": "a", "CATEGORY_NOT_WORD": " "}


class Found(NamedTuple):
    source: str
    flags: int
    place: str
    methods: tuple[str, ...]


# -- which there are ---------------------------------------------------------------------------------------------------


def known() -> list[Found]:
    """Every pattern that the package compiles, with where and how it is used."""
    seen: set[tuple[Any, int, str]] = set()
    compile = re._compile  # type: ignore[attr-defined]

    def watched(pattern: Any, flags: Any) -> Any:
        made = compile(pattern, flags)
        if isinstance(made.pattern, str):
            seen.add((made.pattern, made.flags, _caller()))
        return made

    re._compile = watched  # type: ignore[attr-defined]
    try:
        _use_everything()
    finally:
        re._compile = compile  # type: ignore[attr-defined]
    ours = {(source, flags, _methods(place)): place for source, flags, place in sorted(seen) if place}
    return [Found(source, flags, place, methods) for (source, flags, methods), place in ours.items()]


def _caller() -> str:
    """The place that asked for it, if that is in the package."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("re", "functools"):
        frame = frame.f_back
    path = Path(frame.f_code.co_filename)
    return f"{path.relative_to(SOURCE)}:{frame.f_lineno}" if SOURCE in path.parents else ""


def _use_everything() -> None:
    """Loads every module anew, beside the one in use, and makes every format ready."""
    others = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "rightcall"}
    try:
        package = importlib.import_module("rightcall")
        for module in pkgutil.walk_packages(package.__path__, "rightcall."):
            if not module.name.endswith("__main__"):
                _load(module.name)
        formats, compile = (
            importlib.import_module("rightcall.formats"),
            importlib.import_module("rightcall.parsing.compile"),
        )
        for format in formats.FORMATS.values():
            for reasoning in (True, False):
                compile.compile_format(format, reasoning=reasoning)
        package.parse('```json\n{"name": "a", "arguments": {"b": tru}}\n``` <think>', repair="lenient")
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "rightcall"]:
            del sys.modules[name]
        sys.modules.update(others)


def _load(name: str) -> None:
    try:
        importlib.import_module(name)
    except ImportError:
        print(f"patterns: {name} cannot be loaded here; its patterns are left out", file=sys.stderr)


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@functools.cache  # a line may make hundreds of patterns
def _methods(place: str) -> tuple[str, ...]:
    """How the pattern of this line is used: said behind `re.compile(...)`, or wherever its name stands in the file."""
    file, _, line = place.rpartition(":")
    tree = _tree(SOURCE / file)
    uses = {
        node.value: node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in _METHODS
    }
    here = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno <= int(line) <= _end(node)]
    said = {uses[node] for node in here if node in uses}
    if said:
        return tuple(sorted(said))
    names = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and node.lineno <= int(line) <= _end(node)
    }
    used = {how for node, how in uses.items() if isinstance(node, ast.Name) and node.id in names}
    return tuple(sorted(used)) or ("match", "search")


def _end(node: Any) -> int:
    return int(node.end_lineno or node.lineno)


# -- texts that hurt ---------------------------------------------------------------------------------------------------


def attacks(source: str, flags: int) -> Iterator[tuple[str, str]]:
    """What stands before and what is repeated, for each repeat of the pattern."""
    tree = _PARSER.parse(source, flags & ~re.DEBUG & ~re.UNICODE)
    seen: set[tuple[str, str]] = set()
    for before, body in _repeats(list(tree), ""):
        for unit in sorted(_samples(body)):
            for start, again in ((before, unit), ("", unit), ("", before + unit)):
                if unit and (start, again) not in seen:
                    seen.add((start, again))
                    yield start, again


def _repeats(items: list[Any], before: str) -> Iterator[tuple[str, Any]]:
    """Each repeat that may be long, and a text that leads to it."""
    for kind, argument in items:
        name = str(kind)
        if name in _REPEATS:
            _, most, body = argument
            if most >= UNBOUNDED:
                yield before, body
            yield from _repeats(list(body), before)
        elif name == "SUBPATTERN":
            yield from _repeats(list(argument[3]), before)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from _repeats(list(argument[1]), before)
        elif name == "ATOMIC_GROUP":
            yield from _repeats(list(argument), before)
        elif name == "BRANCH":
            for choice in argument[1]:
                yield from _repeats(list(choice), before)
        before += _sample([(kind, argument)])


def _samples(body: Any) -> set[str]:
    """Short texts that a repeat's body matches: each of its choices, and several members of a class."""
    parts = list(body)
    found = {_sample(parts)}
    if len(parts) == 1:
        kind, argument = parts[0]
        if str(kind) == "IN":
            found |= {char for char in " \n\ta1_,.:-<\"'`\\\0=|é" if re.fullmatch(_class(argument), char)}
        elif str(kind) == "SUBPATTERN":
            found |= _samples(argument[3])
        elif str(kind) == "BRANCH":
            found |= {text for choice in argument[1] for text in _samples(choice)}
    return found


def _class(items: Any) -> re.Pattern[str]:
    compiler: Any = importlib.import_module("re._compiler")
    made: re.Pattern[str] = compiler.compile(_PARSER.SubPattern(_PARSER.State(), [(_PARSER.IN, items)]))
    return made


def _sample(items: list[Any]) -> str:
    """A text that these parts match, but for what looks around."""
    out = ""
    for kind, argument in items:
        match str(kind):
            case "LITERAL":
                out += chr(argument)
            case "NOT_LITERAL":
                out += "a" if chr(argument) != "a" else "b"
            case "ANY":
                out += "a"
            case "IN":
                out += next((char for char in "a1 \n<\"'[(-.\0é" if _class(argument).match(char)), "a")
            case "CATEGORY":
                out += _CLASSES.get(str(argument), "a")
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                out += _sample(list(argument[2])) * max(1, argument[0])
            case "SUBPATTERN":
                out += _sample(list(argument[3]))
            case "ATOMIC_GROUP":
                out += _sample(list(argument))
            case "BRANCH":
                out += _sample(list(argument[1][0]))
    return out


# -- what they cost ----------------------------------------------------------------------------------------------------


def _use(pattern: re.Pattern[str], method: str) -> Callable[[str], object]:
    if method == "sub":
        return lambda text: pattern.sub("", text)
    found = getattr(pattern, method)
    return (lambda text: list(found(text))) if method == "finditer" else found


def _seconds(run: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    run(text)
    return time.process_time() - start


def slow(found: Found) -> str | None:
    """A text on which this pattern is more than linear, if one was found."""
    pattern = re.compile(found.source, found.flags)
    for before, unit in islice(attacks(found.source, found.flags), MOST_ATTACKS):
        for method in found.methods:
            for after in _FAILS:
                if _is_slow(_use(pattern, method), before, unit, after):
                    return f"{method} of {before!r} + {unit!r} * n + {after!r}"
    return None


def _is_slow(run: Callable[[str], object], before: str, unit: str, after: str) -> bool:
    for size in (24, 100):  # what doubles with each character is not tried with more
        if _seconds(run, before + unit * size + after) > SLOW:
            return True
    short = _seconds(run, before + unit * (SHORT // len(unit)) + after)
    if short > 0.5:
        return True
    text = before + unit * (LONG // len(unit)) + after
    long = _seconds(run, text)
    if long < SLOW:
        return False
    long = min(long, _seconds(run, text))
    return long > SLOW and long > 40 * max(short, 1e-6)


def attack_all() -> list[str]:
    """Prints the patterns that are more than linear, and says how many there are."""
    found = known()
    wrong = [f"{each.place}: {each.source[:120]!r}: {text}" for each in found if (text := slow(each)) is not None]
    for each in wrong:
        print(each, flush=True)
    print(f"patterns: {len(found)} of the source attacked, {len(wrong) or 'none'} superlinear", flush=True)
    return wrong
