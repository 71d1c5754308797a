"""The cost of parsing in counted steps, which is the same on every machine under any load.

The package is loaded a second time, from its source with a meter inserted. A step is a call, an iteration of a loop, or
a character or item that a built-in reads or copies: the text that `find`, `re` or a comparison scans, the slice that is
created, the pieces that are joined. So a scan from the start with every chunk, or a join with every chunk, is counted
although each of them is one call in C.

    growth(lambda size: "<" * size, Way("hermes", pieces=4, live=True))  # 4: linear, 16: quadratic
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial
from pathlib import Path
from types import BuiltinMethodType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

PACKAGE = "rightcall"
_GROWING = (list, dict, set)
_SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset)
# Built-ins that do not read all of their arguments.
_CONSTANT: set[Any] = {
    len,
    isinstance,
    issubclass,
    type,
    hash,
    id,
    getattr,
    setattr,
    hasattr,
    iter,
    next,
    callable,
    ord,
}
_CONSTANT |= {chr, range, bool, super, enumerate, zip, map, filter, reversed, slice, object, memoryview, abs, repr}
_CONSTANT_METHODS = set(
    "append pop get add discard setdefault items keys values popitem send close throw appendleft popleft".split()
)
_COPYING = set("copy insert remove reverse sort index count".split())
_FROM_A_PLACE = {"find", "index", "rfind", "count"}  # methods of text with an optional start and end
_TESTS = {"startswith", "endswith"}  # read no more than the length of the search text


class Meter:
    """Counter. `steps` increases with every operation of the metered package."""

    def __init__(self) -> None:
        self.steps = 0

    # -- called by the rewritten source --------------------------------------------------------------------------------

    def call(self, function: Any, /, *args: Any, **named: Any) -> Any:
        result = function(*args, **named)
        self.steps += 1 + _cost(function, args, result)
        return result

    def slice(self, value: Any, where: slice) -> Any:
        result = value[where]
        self.steps += 1 + _size(result)
        return result

    def add(self, a: Any, b: Any) -> Any:
        result = a + b
        self.steps += 1 + _size(result)
        return result

    def grow(self, a: Any, b: Any) -> Any:
        """Evaluate `a += b`: a list grows in place, a string is copied."""
        self.steps += 1 + _size(b) + (0 if isinstance(a, (list, set, dict)) else _size(a))
        a += b
        return a

    def text(self, value: str) -> str:
        self.steps += len(value)
        return value

    def holds(self, item: Any, container: Any) -> bool:
        if isinstance(container, (str, bytes)):
            at = container.find(item)
            self.steps += 1 + (len(container) if at < 0 else at)
        elif isinstance(container, (list, tuple)):
            self.steps += 1 + len(container)
        return item in container

    def equal(self, a: Any, b: Any) -> Any:
        if isinstance(a, (str, list, tuple)) and isinstance(b, type(a)) and len(a) == len(b):
            self.steps += len(a)
        return a == b

    def each(self, values: Iterable[Any]) -> Iterable[Any]:
        for value in values:
            self.steps += 1
            yield value

    def turn(self) -> bool:
        self.steps += 1
        return True


def _size(value: Any) -> int:
    return len(value) if isinstance(value, _SIZED) else 0


def _cost(function: Any, args: tuple[Any, ...], result: Any) -> int:
    """Return what a call of a built-in reads, in characters and items. Python functions count their own steps."""
    kind, owner = type(function), getattr(function, "__self__", None)
    if kind is FunctionType or (kind is MethodType and not isinstance(owner, _SIZED)):
        if not _is_foreign(function):
            return 0
    elif kind is BuiltinMethodType and type(owner) in _GROWING and function.__name__ in _CONSTANT_METHODS:
        return 0
    if isinstance(owner, re.Pattern):
        return _searched_length(function, args, result)
    if isinstance(owner, str) and isinstance(function, BuiltinMethodType):
        return _text_method_cost(owner, function.__name__, args, result)
    if isinstance(owner, _SIZED):
        name = getattr(function, "__name__", "")
        return 0 if name in _CONSTANT_METHODS else sum(map(_size, args)) + (_size(owner) if name in _COPYING else 0)
    if _is_constant(function) or not _is_foreign(function):
        return 0
    if (
        len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], int)
    ):  # a scanner, from a position to its end
        ends = isinstance(result, tuple) and isinstance(result[-1], int)
        return max(0, (result[-1] if ends else len(args[0])) - args[1])
    return sum(map(_size, args))


def _is_constant(function: Any) -> bool:
    try:
        return function in _CONSTANT
    except TypeError:
        return False


def _is_foreign(function: Any) -> bool:
    """Return whether the function is not of the package: a built-in or of another package, which is not metered."""
    return not str(getattr(function, "__module__", "") or "").startswith(PACKAGE)


def _searched_length(function: Any, args: tuple[Any, ...], result: Any) -> int:
    """Return how far a pattern searched: to the end of its match, or of the text."""
    numbers = [arg for arg in args if isinstance(arg, int)]
    text: Any = next((arg for arg in args if isinstance(arg, (str, bytes))), "")
    start, end = numbers[0] if numbers else 0, min([len(text), *numbers[1:2]])
    if isinstance(result, re.Match):
        end = result.end()
    elif function.__name__ in ("match", "fullmatch"):
        end = max([found.end() for each in _prefixes(function.__self__) if (found := each.match(text, start))] or [0])
    return max(0, end - start)


@cache
def _prefixes(pattern: re.Pattern[str]) -> list[re.Pattern[str]]:
    """Return the pattern truncated after each of its parts, as far as it can be split.

    A pattern that does not match searched as far as the last of these matches.
    """
    parser: Any = importlib.import_module("re._parser")
    compiler: Any = importlib.import_module("re._compiler")
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    found: list[re.Pattern[str]] = []
    for items in _alternatives_of(tree):
        for end in range(1, len(items) + 1):
            try:
                found.append(compiler.compile(parser.SubPattern(tree.state, items[:end]), pattern.flags))
            except (re.error, RuntimeError):
                break
    return found


def _alternatives_of(items: Any) -> Iterator[list[Any]]:
    """Yield a pattern's parts; if the first is a choice or a group, those of each choice."""
    parts = list(items)
    if len(parts) > 1:
        yield parts
    match parts[:1]:
        case [(kind, (_, choices))] if str(kind) == "BRANCH":
            for each in choices:
                yield from _alternatives_of(each)
        case [(kind, (_, _, _, inner))] if str(kind) == "SUBPATTERN":
            yield from _alternatives_of(inner)
        case [(kind, (_, inner))] if str(kind) == "ASSERT":
            yield from _alternatives_of(inner)
        case [(kind, inner)] if str(kind) == "ATOMIC_GROUP":
            yield from _alternatives_of(inner)


def _text_method_cost(owner: str, name: str, args: tuple[Any, ...], result: Any) -> int:
    if name == "join":
        return _size(result)
    if name in _TESTS:
        return max([_size(arg) for arg in (args[0] if isinstance(args[0], tuple) else args[:1])], default=0)
    if name in _FROM_A_PLACE:
        start, stop, *_ = [*[arg for arg in args[1:] if isinstance(arg, int)], *(0, len(owner))[len(args[1:]) :]]
        if name in ("find", "index") and isinstance(result, int) and result >= 0:
            stop = min(stop, result + 1)
        elif name == "rfind" and result >= 0:
            start = result
        return max(0, min(stop, len(owner)) - max(0, start))
    return len(owner)


# -- inserting the meter into the source -------------------------------------------------------------------------------

_METER = "__meter__"


def _meter_call(method: str, *args: ast.expr, keywords: list[ast.keyword] | None = None) -> ast.Call:
    meter = ast.Attribute(ast.Name(_METER, ast.Load()), method, ast.Load())
    return ast.Call(meter, list(args), keywords or [])


class Rewriter(ast.NodeTransformer):
    """Route every operation that can cost more than one step through the meter."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals", "TypeVar", "NewType"):
            return node
        return _meter_call("call", node.func, *node.args, keywords=node.keywords)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or not isinstance(node.slice, ast.Slice):
            return node
        none = ast.Constant(None)
        edges = [edge or none for edge in (node.slice.lower, node.slice.upper, node.slice.step)]
        return _meter_call("slice", node.value, ast.Call(ast.Name("slice", ast.Load()), edges, []))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _meter_call("add", node.left, node.right) if isinstance(node.op, ast.Add) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Add) or not isinstance(node.target, (ast.Name, ast.Attribute)):
            return node
        target = node.target
        again: ast.expr = (
            ast.Name(target.id, ast.Load())
            if isinstance(target, ast.Name)
            else ast.Attribute(target.value, target.attr, ast.Load())
        )
        return ast.Assign([target], _meter_call("grow", again, node.value))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) != 1:
            return node
        left, right = node.left, node.comparators[0]
        match node.ops[0]:
            case ast.In():
                return _meter_call("holds", left, right)
            case ast.NotIn():
                return ast.UnaryOp(ast.Not(), _meter_call("holds", left, right))
            case ast.Eq():
                return _meter_call("equal", left, right)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return _meter_call("text", node)

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = _meter_call("each", node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if not node.is_async:
            node.iter = _meter_call("each", node.iter)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.test = ast.BoolOp(ast.And(), [_meter_call("turn"), node.test])
        return node


@cache
def _code(path: str, change: Callable[[str], str] | None) -> CodeType:
    source = Path(path).read_text("utf-8")
    tree = Rewriter().visit(ast.parse(source if change is None else change(source)))
    return compile(ast.fix_missing_locations(tree), path, "exec")


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, meter: Meter, change: Callable[[str], str] | None) -> None:
        super().__init__(name, path)
        self._meter, self._change = meter, change

    def get_code(self, fullname: str) -> CodeType:
        return _code(self.path, self._change)

    def exec_module(self, module: ModuleType) -> None:
        setattr(module, _METER, self._meter)
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, meter: Meter, changes: dict[str, Callable[[str], str]]) -> None:
        self._meter, self._changes = meter, changes

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != PACKAGE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path, self._meter, self._changes.get(name))
        return spec


class Metered:
    """A second copy of the package with a meter. Use it inside `with package.on():`.

    `changes` are applied to the source of modules, by name, before they are loaded: to test that the meter detects
    them.
    """

    def __init__(self, changes: dict[str, Callable[[str], str]] | None = None) -> None:
        self.meter = Meter()
        self._finder = _Finder(self.meter, changes or {})
        self._modules: dict[str, ModuleType] = {}

    @contextmanager
    def on(self) -> Iterator[Metered]:
        """Make the metered package the imported one, including its late imports."""
        others = _remove_package()
        sys.modules.update(self._modules)
        sys.meta_path.insert(0, self._finder)
        try:
            yield self
        finally:
            sys.meta_path.remove(self._finder)
            self._modules = _remove_package()
            sys.modules.update(others)

    def load(self, name: str) -> Any:
        return importlib.import_module(name)

    @cached_property
    def toolset(self) -> Any:
        """Return `TOOLS`, declared with the metered package. Use it inside `with package.on():`."""
        rightcall = self.load(PACKAGE)
        return rightcall.Toolset(
            [
                rightcall.Tool(name=name, parameters={"type": "object", "properties": properties})
                for name, properties in TOOLS.items()
            ]
        )

    def count(self, run: Callable[[], object]) -> int:
        before = self.meter.steps
        run()
        return self.meter.steps - before


def _remove_package() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.startswith(PACKAGE) and name.partition(".")[0] == PACKAGE]
    return {name: sys.modules.pop(name) for name in names}


# -- growth ------------------------------------------------------------------------------------------------------------

MOST = 4.6  # for four times the text; a linear cost stays below
TOOLS = {
    "write": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "rows": {"type": "array"},
        "more": {"type": "object"},
        "note": {"type": ["string", "null"]},
    },
    "ping": {},
}


class ReadingMode(NamedTuple):
    """How a text is parsed: whole, or in chunks of `pieces` characters."""

    format: str
    pieces: int = 0
    live: bool = False
    rescue: str = "safe"  # with "off" the parser compiles no other format


@cache
def shared() -> Metered:
    return Metered()


def measure_growth(
    function: Callable[[Any, Any, int], object], *, size: int = 300, package: Metered | None = None
) -> float:
    """Measure the growth of any function, which gets the metered package, a toolset and a size."""
    metered = package or shared()

    def steps_per_size(size: int) -> float:
        with metered.on():
            rightcall = metered.load(PACKAGE)
            tools = metered.toolset
            return metered.count(lambda: function(rightcall, tools, size)) / size

    steps_per_size(size)
    small, large = steps_per_size(size), steps_per_size(4 * size)
    for times in (16, 64):
        if 4 * large > MOST * small:
            small, large = large, steps_per_size(times * size)
    return 4 * large / small


def growth(
    text_of: Callable[[int], str], mode: ReadingMode, *, size: int = 300, package: Metered | None = None
) -> float:
    """Return the factor of the steps for four times the text (4: linear, 16: quadratic).

    A bounded cost, such as the search range for a marker, may look worse on small texts, so a larger text decides.
    """
    # Objects that are created once, for a format or at first use, are no cost of the text: parse a short text first.
    texts = [text_of(size // 4), text_of(size), text_of(4 * size)]
    _, small, large = _per_character(texts, mode, package)
    for times in (16, 64):
        if 4 * large > MOST * small:
            small, (large,) = large, _per_character([text_of(times * size)], mode, package)
    return 4 * large / small


def _per_character(texts: list[str], mode: ReadingMode, package: Metered | None) -> list[float]:
    metered = package or shared()
    with metered.on():
        rightcall = metered.load(PACKAGE)
        tools = metered.toolset
        return [metered.count(partial(_read, rightcall, text, mode, tools)) / len(text) for text in texts]


def _read(rightcall: Any, text: str, mode: ReadingMode, tools: Any) -> None:
    if not mode.pieces:
        rightcall.parse(text, format=mode.format, tools=tools, rescue=mode.rescue)
        return
    parser = rightcall.Parser(mode.format, tools=tools, live=mode.live, rescue=mode.rescue)
    for start in range(0, len(text), mode.pieces):
        parser.feed(text[start : start + mode.pieces])
    parser.close()
