"""Measure the size and the structure of the package: `make measure`.

    python tools/measure.py [SRC] [--worst]      SRC: the `src` folder of another tree

Every figure is printed with its goal. Goals that were reached once (`REACHED`) must stay so: the exit status is 1 if
one of them is missed. Code lines are lines with something other than blanks, comments and docstrings. Complexity counts
the branches of a function and its boolean operators, by McCabe. A write to another object is an assignment to an
attribute of something other than `self`, or a call of a method that only assigns one attribute.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
SRC = HERE.parent / "src"
CORE = ("parsing", "repairs", "wire", "values")  # what reads a model's text; the last two are packages of older trees
REBUILT_LATER = re.compile(r"serve/|backends/rewrite\.py|providers/trusted")  # not counted in the rows of style
MOST_COMPLEX, SMALL_FILE, MOST_ATTRIBUTES = 10, 60, 15
FIXED = ("NamedTuple", "TypedDict", "Enum", "Protocol")  # bases of values that cannot be assigned to
Function = ast.FunctionDef | ast.AsyncFunctionDef

# The rows whose goal was reached. A row is added when it is, and never removed.
REACHED = {
    "files",
    "packages",
    "parsing + repairs: code lines",
    "one native call: files",
    "one native call: functions",
    "one native call: hops",
    "parsing: writes to attributes of other objects",
    "parsing + repairs: most attributes of an object",
    "public top-level names defined more than once",
    "functions of complexity above 10, per cent",
    "highest complexity of a function",
    "names in the private vocabulary",
}


class Row(NamedTuple):
    """One measured figure with its goal; None where there is none."""

    name: str
    value: float
    goal: float | None = None

    @property
    def is_met(self) -> bool:
        return self.goal is None or self.value <= self.goal


class Source:
    """One file of the package, parsed once."""

    def __init__(self, path: Path, package: Path) -> None:
        self.name = path.relative_to(package).as_posix()
        self.text = path.read_text("utf-8")
        self.tree = ast.parse(self.text)
        self.nodes = list(ast.walk(self.tree))

    @property
    def is_core(self) -> bool:
        return self.name.startswith(tuple(f"{package}/" for package in CORE))

    @property
    def is_parsing(self) -> bool:
        return self.name.startswith(("parsing/", "wire/"))

    @property
    def is_rebuilt_later(self) -> bool:
        return bool(REBUILT_LATER.match(self.name))

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in self.nodes if isinstance(node, Function)]

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in self.nodes if isinstance(node, ast.ClassDef)]

    @cached_property
    def code_lines(self) -> set[int]:
        return set(iterate_code_lines(self.text)) - set(iterate_docstring_lines(self.nodes))


def read_package(src: Path) -> list[Source]:
    package = src / "rightcall"
    return [Source(path, package) for path in sorted(package.rglob("*.py"))]


def iterate_code_lines(text: str) -> Iterator[int]:
    for token in iterate_tokens(text):
        yield from range(token.start[0], token.end[0] + 1)


def iterate_tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    """Yield the tokens of a file other than comments, line ends and indentation."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    return (token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in skipped)


def iterate_docstring_lines(nodes: list[ast.AST]) -> Iterator[int]:
    for node in nodes:
        match node:
            case (
                ast.Module(body=[first, *_]) | ast.ClassDef(body=[first, *_])
                | ast.FunctionDef(body=[first, *_]) | ast.AsyncFunctionDef(body=[first, *_])
            ) if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):  # fmt: skip
                yield from range(first.lineno, (first.end_lineno or first.lineno) + 1)


def complexity(function: Function) -> int:
    """Return 1 plus the number of branches; functions defined inside count for themselves."""
    inner: set[int] = set()
    for node in ast.walk(function):
        if isinstance(node, Function | ast.Lambda) and node is not function:
            inner |= {id(each) for each in ast.walk(node)}
    return 1 + sum(count_branches(node) for node in ast.walk(function) if id(node) not in inner)


def count_branches(node: ast.AST) -> int:
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


def count_writes(sources: list[Source]) -> int:
    """Count the writes to attributes of other objects, calls of methods that only assign one attribute included."""
    setters = {function.name for source in sources for function in source.functions if is_setter(function)}
    writes = 0
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                writes += ast.unparse(node.value) != "self"
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                writes += node.func.attr in setters and ast.unparse(node.func.value) != "self"
    return writes


def is_setter(function: Function) -> bool:
    """Return whether a method only assigns one of its arguments to an attribute."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    match body:
        case [ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"))], value=ast.Name() | ast.Constant())]:
            return function.name != "__init__"
    return False


def count_attributes(node: ast.ClassDef) -> int:
    """Count the attributes that instances of a class can change: declared, in `__slots__` or assigned to `self`."""
    if any(word in ast.unparse(base) for base in node.bases for word in FIXED) or is_frozen(node):
        return 0
    names: set[str] = set()
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=ast.Tuple(elts=slots)):
                names |= {
                    slot.value for slot in slots if isinstance(slot, ast.Constant) and isinstance(slot.value, str)
                }
    for child in ast.walk(node):
        match child:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                names.add(name)
    return len(names)


def is_frozen(node: ast.ClassDef) -> bool:
    written = [*node.decorator_list, *node.keywords]
    return any("frozen=True" in ast.unparse(each) for each in written)


def private_names(sources: list[Source]) -> list[str]:
    """Return the modules, classes and functions whose names are in the private vocabulary (private_words.txt)."""
    text = (HERE / "private_words.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    whole = re.compile("|".join(f"(?:{line})" for line in lines if not line.startswith("~")))
    part = re.compile("|".join(f"(?:{line[1:]})" for line in lines if line.startswith("~")))

    def is_private_word(name: str) -> bool:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().strip("_")
        return bool(whole.fullmatch(words)) or any(part.fullmatch(word) for word in words.split("_"))

    found = []
    for source in sources:
        module = source.name.rpartition("/")[2].removesuffix(".py")
        definitions = [(node.name, node.lineno) for node in (*source.functions, *source.classes)]
        found += [f"{source.name}:{line} {name}" for name, line in [(module, 1), *definitions] if is_private_word(name)]
    return found


def repeated_names(sources: list[Source]) -> Counter[str]:
    """Count the public names of functions and classes that are defined at the top level more than once."""
    names: Counter[str] = Counter()
    for source in sources:
        names.update(node.name for node in source.tree.body if isinstance(node, Function | ast.ClassDef))
    return Counter({name: count for name, count in names.items() if count > 1 and not name.startswith("_")})


def measure(src: Path = SRC) -> list[Row]:
    sources = read_package(src)
    core = [source for source in sources if source.is_core]
    serve = [source for source in sources if source.name.startswith(("serve/", "exchange/"))]
    parsing = [source for source in sources if source.is_parsing]
    own = [source for source in sources if not source.is_rebuilt_later]
    small = [
        source for source in sources if source.text.count("\n") < SMALL_FILE and not source.name.startswith("formats/")
    ]
    levels = [complexity(function) for source in sources for function in source.functions]
    complex_share = 100 * sum(level > MOST_COMPLEX for level in levels) / max(1, len(levels))
    attributes = [count_attributes(node) for source in core for node in source.classes]
    return [
        Row("lines", sum(source.text.count("\n") for source in sources)),
        Row("tokens", sum(1 for source in sources for _ in iterate_tokens(source.text))),
        Row("code lines", count_code_lines(sources), 58_000),
        Row("files", len(sources), 450),
        Row("files under 60 lines, outside formats/", len(small), 40),
        Row("packages", len({source.name.partition("/")[0] for source in sources if "/" in source.name}), 23),
        Row("parsing + repairs: code lines", count_code_lines(core), 11_000),
        Row("exchange + serve: files", len(serve), 40),
        Row("exchange + serve: code lines", count_code_lines(serve), 5_700),
        *measure_walks(src),
        Row("parsing: writes to attributes of other objects", count_writes(parsing), 80),
        Row("parsing + repairs: most attributes of an object", max(attributes, default=0), MOST_ATTRIBUTES),
        Row("public top-level names defined more than once", len(repeated_names(sources)), 40),
        Row("functions of complexity above 10, per cent", round(complex_share, 2), 4),
        Row("highest complexity of a function", max(levels, default=0), 30),
        Row("names in the private vocabulary", len(private_names(own)), 20),
    ]


def count_code_lines(sources: list[Source]) -> int:
    return sum(len(source.code_lines) for source in sources)


def measure_walks(src: Path) -> Iterator[Row]:
    """Run walk.py in a process of its own, which imports the package of this tree."""
    goals = {"one streamed hermes call": (14, 60, 120), "one native call": (20, 90, 80)}
    command = [sys.executable, str(HERE / "walk.py"), str(src)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name, figures in goals.items():
        counts = re.search(rf"{name} +(\d+) files +(\d+) functions +(\d+) hops", output)
        assert counts is not None, output
        for what, count, goal in zip(("files", "functions", "hops"), counts.groups(), figures, strict=True):
            yield Row(f"{name}: {what}", int(count), goal)


def worst(src: Path = SRC, count: int = 20) -> list[str]:
    """Return the worst places of the rows that have places, a line each."""
    sources = read_package(src)
    functions = [
        (complexity(node), f"complexity  {source.name}:{node.lineno} {node.name}")
        for source in sources
        for node in source.functions
    ]
    classes = [
        (count_attributes(node), f"attributes  {source.name}:{node.lineno} {node.name}")
        for source in sources
        for node in source.classes
        if source.is_core
    ]
    lines = [f"{figure:4} {place}" for some in (functions, classes) for figure, place in sorted(some)[-count:][::-1]]
    lines += [f"{times:4} definitions  {name}" for name, times in repeated_names(sources).most_common(count)]
    return [*lines, *private_names([source for source in sources if not source.is_rebuilt_later])]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("src", nargs="?", type=Path, default=SRC)
    parser.add_argument("--worst", action="store_true", help="list the worst places")
    options = parser.parse_args()
    lost = []
    for row in measure(options.src):
        goal = "" if row.goal is None else f"   goal {row.goal:,}{'' if row.is_met else ': missed'}"
        print(f"{row.name:<50}{row.value:>12,}{goal}")
        lost += [row.name] if row.name in REACHED and not row.is_met else []
    if options.worst:
        print("\n".join(worst(options.src)))
    if lost:
        print(f"measure: reached before and missed now: {', '.join(lost)}", file=sys.stderr)
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
