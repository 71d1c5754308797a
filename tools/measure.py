"""How large, how long and how knotted the package is: `make measure`.

Code lines hold something beside blanks, comments and docstrings. Complexity counts the ways through a function, by
McCabe. Copied lines are runs of at least six code lines that stand in two files.
"""

from __future__ import annotations

import ast
import io
import statistics
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "rightcall"
READING = ("wire", "values", "repairs")  # what reads a model's text
KNOTTED, RUN = 10, 6
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Measured(NamedTuple):
    what: str
    value: str
    goal: str
    kept: bool


class Source:
    """A file, taken apart once."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        self.nodes = list(ast.walk(ast.parse(text)))

    @property
    def is_reading(self) -> bool:
        return self.path.relative_to(PACKAGE).parts[0] in READING

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in self.nodes if isinstance(node, Function)]

    @cached_property
    def code(self) -> dict[int, str]:
        """The code lines, stripped, by their numbers, in order."""
        taken = set(_code_lines(self.text)) - set(_docstring_lines(self.nodes))
        lines = self.text.splitlines()
        return {number: lines[number - 1].strip() for number in sorted(taken)}

    @property
    def code_but_imports(self) -> list[str]:
        imports = set(_import_lines(self.nodes))
        return [line for number, line in self.code.items() if number not in imports]


def _code_lines(text: str) -> Iterator[int]:
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            yield from range(token.start[0], token.end[0] + 1)


def _docstring_lines(nodes: list[ast.AST]) -> Iterator[int]:
    for node in nodes:
        match node:
            case (
                ast.Module(body=[first, *_]) | ast.ClassDef(body=[first, *_])
                | ast.FunctionDef(body=[first, *_]) | ast.AsyncFunctionDef(body=[first, *_])
            ) if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):  # fmt: skip
                yield from range(first.lineno, (first.end_lineno or first.lineno) + 1)


def complexity(function: Function) -> int:
    """One, and one more for each place where the way forks; what is defined inside counts for itself."""
    inner: set[int] = set()
    for node in ast.walk(function):
        if isinstance(node, Function | ast.Lambda) and node is not function:
            inner |= {id(each) for each in ast.walk(node)}
    return 1 + sum(_forks(node) for node in ast.walk(function) if id(node) not in inner)


def _forks(node: ast.AST) -> int:
    match node:
        case ast.BoolOp(values=values):
            return len(values) - 1
        case ast.comprehension(ifs=ifs):
            return 1 + len(ifs)
        case ast.Match(cases=cases):
            return len(cases)
        case ast.If() | ast.IfExp() | ast.For() | ast.AsyncFor() | ast.While() | ast.ExceptHandler() | ast.Assert():
            return 1
    return 0


def copied(sources: list[Source]) -> float:
    """The share of code lines that stand in a run which another file has too; imports are not copies."""
    homes: dict[tuple[str, ...], set[Path]] = defaultdict(set)
    lines = {source.path: source.code_but_imports for source in sources}
    for path, code in lines.items():
        for run in _runs(code):
            homes[run].add(path)
    found = 0
    for code in lines.values():
        twice = [start for start, run in enumerate(_runs(code)) if len(homes[run]) > 1]
        found += len({line for start in twice for line in range(start, start + RUN)})
    return 100 * found / max(1, sum(map(len, lines.values())))


def _runs(code: list[str]) -> Iterator[tuple[str, ...]]:
    for start in range(len(code) - RUN + 1):
        yield tuple(code[start : start + RUN])


def _import_lines(nodes: list[ast.AST]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def knotted(functions: list[Function]) -> float:
    return 100 * sum(complexity(function) > KNOTTED for function in functions) / max(1, len(functions))


def lengths(sizes: list[int]) -> tuple[int, int]:
    ordered = sorted(sizes)
    return int(statistics.median(ordered)), ordered[int(len(ordered) * 0.9)]


def measure(package: Path = PACKAGE) -> list[Measured]:
    files = sorted(package.rglob("*.py"))
    sources = [Source(path, path.read_text("utf-8")) for path in files]
    functions = [function for source in sources for function in source.functions]
    reading = [function for source in sources if source.is_reading for function in source.functions]
    file_lines = lengths([len(source.text.splitlines()) for source in sources])
    function_lines = lengths([(each.end_lineno or each.lineno) - each.lineno + 1 for each in functions])
    all_knotted, reading_knotted, twice = knotted(functions), knotted(reading), copied(sources)
    lines = sum(len(source.text.splitlines()) for source in sources)
    code = sum(len(source.code) for source in sources)
    return [
        Measured("lines, code lines", f"{lines:,}, {code:,}", "", True),
        Measured("files, functions", f"{len(sources):,}, {len(functions):,}", "", True),
        _sizes("lines of a file", file_lines, (120, 300)),
        _sizes("lines of a function", function_lines, (7, 18)),
        _share("copied between files", twice, 0.5),
        _share(f"functions with complexity above {KNOTTED}", all_knotted, 4),
        _share("of those that read a model's text", reading_knotted, 6),
    ]


def _sizes(what: str, sizes: tuple[int, int], most: tuple[int, int]) -> Measured:
    kept = sizes[0] <= most[0] and sizes[1] <= most[1]
    return Measured(f"{what}, median and p90", "{} and {}".format(*sizes), "at most {} and {}".format(*most), kept)


def _share(what: str, share: float, most: float) -> Measured:
    return Measured(what, f"{share:.2f} %", f"at most {most:g} %", share <= most)


def worst(package: Path = PACKAGE, count: int = 20) -> list[str]:
    """The functions with the most ways through them."""
    found = []
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, Function):
                found.append((complexity(node), f"{path.relative_to(package)}:{node.lineno} {node.name}"))
    return [f"{ways:4} {where}" for ways, where in sorted(found, reverse=True)[:count]]


def main() -> int:
    rows = measure()
    for row in rows:
        verdict = "" if not row.goal else f"   goal {row.goal}" + ("" if row.kept else ": MISSED")
        print(f"{row.what:<44}{row.value:>16}{verdict}")
    if "--worst" in sys.argv[1:]:
        print("\n".join(worst()))
    return int(not all(row.kept for row in rows))


if __name__ == "__main__":
    sys.exit(main())
