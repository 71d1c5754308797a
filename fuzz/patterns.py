"""Attack every regular expression of the source: for each of its repeats, texts that match it and then fail.

Patterns are collected when they are compiled: `re.compile` is wrapped while the package is imported and every format is
compiled. Their methods (`match`, `search`, ...) are determined from the source if possible; otherwise both are tried.
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
SLOW = 0.02  # CPU seconds: a pattern that scans the text once takes a fiftieth of that
UNBOUNDED = 1_000  # repeats; fewer cost the same however long the text is
MOST_ATTACKS = 40  # on one pattern
_PARSER: Any = importlib.import_module("re._parser")
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_METHODS = ("match", "fullmatch", "search", "sub", "finditer", "findall", "split")
_FAILS = ("", "\0", "x", "\n")
_CLASSES = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a", "CATEGORY_NOT_SPACE": "a"}
_CLASSES |= {"CATEGORY_NOT_DIGIT": "a", "CATEGORY_NOT_WORD": " "}


class SourcePattern(NamedTuple):
    source: str
    flags: int
    place: str
    methods: tuple[str, ...]


# -- collection --------------------------------------------------------------------------------------------------------


def find_patterns() -> list[SourcePattern]:
    """Return every pattern that the package compiles, with its location and methods."""
    seen: set[tuple[Any, int, str]] = set()
    compile = re._compile  # type: ignore[attr-defined]

    def compile_and_record(pattern: Any, flags: Any) -> Any:
        compiled = compile(pattern, flags)
        if isinstance(compiled.pattern, str):
            seen.add((compiled.pattern, compiled.flags, _caller()))
        return compiled

    re._compile = compile_and_record  # type: ignore[attr-defined]
    try:
        _use_everything()
    finally:
        re._compile = compile  # type: ignore[attr-defined]
    ours = {(source, flags, _methods(place)): place for source, flags, place in sorted(seen) if place}
    return [SourcePattern(source, flags, place, methods) for (source, flags, methods), place in ours.items()]


def _caller() -> str:
    """Return the location of the call, if it is in the package."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("re", "functools"):
        frame = frame.f_back
    path = Path(frame.f_code.co_filename)
    return f"{path.relative_to(SOURCE)}:{frame.f_lineno}" if SOURCE in path.parents else ""


def _use_everything() -> None:
    """Import every module again, next to the one in use, and compile every format."""
    modules = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "rightcall"}
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
        sys.modules.update(modules)


def _load(name: str) -> None:
    try:
        importlib.import_module(name)
    except ImportError:
        print(f"patterns: cannot import {name}; its patterns are skipped", file=sys.stderr)


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@functools.cache  # one line may compile hundreds of patterns
def _methods(place: str) -> tuple[str, ...]:
    """Return the methods that are called on the pattern of this line, or on its name anywhere in the file."""
    file, _, line = place.rpartition(":")
    tree = _tree(SOURCE / file)
    uses = {
        node.value: node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in _METHODS
    }
    here = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno <= int(line) <= _end(node)]
    methods_here = {uses[node] for node in here if node in uses}
    if methods_here:
        return tuple(sorted(methods_here))
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


# -- attacks -----------------------------------------------------------------------------------------------------------


def attacks(source: str, flags: int) -> Iterator[tuple[str, str]]:
    """Yield the prefix and the repeated text, for each repeat of the pattern."""
    tree = _PARSER.parse(source, flags & ~re.DEBUG & ~re.UNICODE)
    seen: set[tuple[str, str]] = set()
    for before, body in _repeats(list(tree), ""):
        for unit in sorted(_samples(body)):
            for start, again in ((before, unit), ("", unit), ("", before + unit)):
                if unit and (start, again) not in seen:
                    seen.add((start, again))
                    yield start, again


def _repeats(items: list[Any], before: str) -> Iterator[tuple[str, Any]]:
    """Yield each repeat that may be long, and a text that leads to it."""
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
    """Return short texts that a repeat's body matches: each of its choices, and several members of a class."""
    parts = list(body)
    patterns_found = {_sample(parts)}
    if len(parts) == 1:
        kind, argument = parts[0]
        if str(kind) == "IN":
            patterns_found |= {char for char in " \n\ta1_,.:-<\"'`\\\0=|é" if re.fullmatch(_class(argument), char)}
        elif str(kind) == "SUBPATTERN":
            patterns_found |= _samples(argument[3])
        elif str(kind) == "BRANCH":
            patterns_found |= {text for choice in argument[1] for text in _samples(choice)}
    return patterns_found


def _class(items: Any) -> re.Pattern[str]:
    compiler: Any = importlib.import_module("re._compiler")
    pattern: re.Pattern[str] = compiler.compile(_PARSER.SubPattern(_PARSER.State(), [(_PARSER.IN, items)]))
    return pattern


def _sample(items: list[Any]) -> str:
    """Return a text that these parts match, ignoring lookarounds."""
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


# -- cost --------------------------------------------------------------------------------------------------------------


def _use(pattern: re.Pattern[str], method: str) -> Callable[[str], object]:
    if method == "sub":
        return lambda text: pattern.sub("", text)
    patterns_found = getattr(pattern, method)
    return (lambda text: list(patterns_found(text))) if method == "finditer" else patterns_found


def _seconds(run: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    run(text)
    return time.process_time() - start


def find_slow_text(patterns_found: SourcePattern) -> str | None:
    """Return a text for which this pattern is superlinear, or None if none was found."""
    pattern = re.compile(patterns_found.source, patterns_found.flags)
    for before, unit in islice(attacks(patterns_found.source, patterns_found.flags), MOST_ATTACKS):
        for method in patterns_found.methods:
            for after in _FAILS:
                if _is_slow(_use(pattern, method), before, unit, after):
                    return f"{method} of {before!r} + {unit!r} * n + {after!r}"
    return None


def _is_slow(run: Callable[[str], object], before: str, unit: str, after: str) -> bool:
    for size in (24, 100):  # a cost that doubles with each character is not tested with longer texts
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
    """Print and return the superlinear patterns."""
    patterns_found = find_patterns()
    wrong = [
        f"{each.place}: {each.source[:120]!r}: {text}"
        for each in patterns_found
        if (text := find_slow_text(each)) is not None
    ]
    for each in wrong:
        print(each, flush=True)
    print(f"patterns: {len(patterns_found)} of the source attacked, {len(wrong) or 'none'} superlinear", flush=True)
    return wrong
