"""What reading costs, in steps that are counted: the same on every machine, however busy it is.

The package is loaded a second time, from its own source with a meter written into it. A step is a call, a turn of a
loop, or a character or item that a built-in looks at or copies: the text that `find`, `re` or a comparison goes over,
the slice that is made, the pieces that are joined. So a scan from the start with every chunk, or a join with every
chunk, is counted although each of them is one call in C.

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
# Built-ins that do not look at all of what they are given.
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
_FROM_A_PLACE = {"find", "index", "rfind", "count"}  # methods of text that may be given a start and an end
_TESTS = {"startswith", "endswith"}  # look at no more than what they look for


class Meter:
    """Counts. `steps` goes up with everything that the metered package does."""

    def __init__(self) -> None:
        self.steps = 0

    # -- what the rewritten source calls -------------------------------------------------------------------------------

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
        """`a += b`: a list grows in place, a string is copied."""
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
    """What a call of a built-in looks at, in characters and items. Calls of Python functions count their own steps."""
    kind, owner = type(function), getattr(function, "__self__", None)
    if kind is FunctionType or (kind is MethodType and not isinstance(owner, _SIZED)):
        if not _is_foreign(function):
            return 0
    elif kind is BuiltinMethodType and type(owner) in _GROWING and function.__name__ in _CONSTANT_METHODS:
        return 0
    if isinstance(owner, re.Pattern):
        return _searched(function, args, result)
    if isinstance(owner, str) and isinstance(function, BuiltinMethodType):
        return _of_text(owner, function.__name__, args, result)
    if isinstance(owner, _SIZED):
        name = getattr(function, "__name__", "")
        return 0 if name in _CONSTANT_METHODS else sum(map(_size, args)) + (_size(owner) if name in _COPYING else 0)
    if _is_constant(function) or not _is_foreign(function):
        return 0
    if len(args) == 2 and isinstance(args[0], str) and isinstance(args[1], int):  # a scanner, from a place to its end
        ends = isinstance(result, tuple) and isinstance(result[-1], int)
        return max(0, (result[-1] if ends else len(args[0])) - args[1])
    return sum(map(_size, args))


def _is_constant(function: Any) -> bool:
    try:
        return function in _CONSTANT
    except TypeError:
        return False


def _is_foreign(function: Any) -> bool:
    """Not of the package: a built-in, or Python of another package, which does its work unseen."""
    return not str(getattr(function, "__module__", "") or "").startswith(PACKAGE)


def _searched(function: Any, args: tuple[Any, ...], result: Any) -> int:
    """How far a pattern looked: to the end of what it found, or of the text."""
    numbers = [arg for arg in args if isinstance(arg, int)]
    text: Any = next((arg for arg in args if isinstance(arg, (str, bytes))), "")
    start, end = numbers[0] if numbers else 0, min([len(text), *numbers[1:2]])
    if isinstance(result, re.Match):
        end = result.end()
    elif function.__name__ in ("match", "fullmatch"):
        end = max([found.end() for each in _beginnings(function.__self__) if (found := each.match(text, start))] or [0])
    return max(0, end - start)


@cache
def _beginnings(pattern: re.Pattern[str]) -> list[re.Pattern[str]]:
    """The pattern cut off behind each of its parts, as far as it can be taken apart: how far one that does not match
    has looked, is as far as the last of these matches."""
    parser: Any = importlib.import_module("re._parser")
    compiler: Any = importlib.import_module("re._compiler")
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    found: list[re.Pattern[str]] = []
    for items in _sequences(tree):
        for end in range(1, len(items) + 1):
            try:
                found.append(compiler.compile(parser.SubPattern(tree.state, items[:end]), pattern.flags))
            except (re.error, RuntimeError):
                break
    return found


def _sequences(items: Any) -> Iterator[list[Any]]:
    """A pattern's parts, and where the first is a choice or a group, those of each choice."""
    parts = list(items)
    if len(parts) > 1:
        yield parts
    match parts[:1]:
        case [(kind, (_, choices))] if str(kind) == "BRANCH":
            for each in choices:
                yield from _sequences(each)
        case [(kind, (_, _, _, inner))] if str(kind) == "SUBPATTERN":
            yield from _sequences(inner)
        case [(kind, (_, inner))] if str(kind) == "ASSERT":
            yield from _sequences(inner)
        case [(kind, inner)] if str(kind) == "ATOMIC_GROUP":
            yield from _sequences(inner)


def _of_text(owner: str, name: str, args: tuple[Any, ...], result: Any) -> int:
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


# -- writing the meter into the source ---------------------------------------------------------------------------------

_METER = "__meter__"


def _to(method: str, *args: ast.expr, keywords: list[ast.keyword] | None = None) -> ast.Call:
    meter = ast.Attribute(ast.Name(_METER, ast.Load()), method, ast.Load())
    return ast.Call(meter, list(args), keywords or [])


class Rewriter(ast.NodeTransformer):
    """Every operation that can cost more than a step goes through the meter."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals", "globals", "TypeVar", "NewType"):
            return node
        return _to("call", node.func, *node.args, keywords=node.keywords)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or not isinstance(node.slice, ast.Slice):
            return node
        none = ast.Constant(None)
        edges = [edge or none for edge in (node.slice.lower, node.slice.upper, node.slice.step)]
        return _to("slice", node.value, ast.Call(ast.Name("slice", ast.Load()), edges, []))

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _to("add", node.left, node.right) if isinstance(node.op, ast.Add) else node

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
        return ast.Assign([target], _to("grow", again, node.value))

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) != 1:
            return node
        left, right = node.left, node.comparators[0]
        match node.ops[0]:
            case ast.In():
                return _to("holds", left, right)
            case ast.NotIn():
                return ast.UnaryOp(ast.Not(), _to("holds", left, right))
            case ast.Eq():
                return _to("equal", left, right)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return _to("text", node)

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = _to("each", node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if not node.is_async:
            node.iter = _to("each", node.iter)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.test = ast.BoolOp(ast.And(), [_to("turn"), node.test])
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
    """A second copy of the package, with a meter in it. Use it inside `with package.on():`.

    `changes` are made to the source of modules, by name, before they are loaded: to try what the meter sees.
    """

    def __init__(self, changes: dict[str, Callable[[str], str]] | None = None) -> None:
        self.meter = Meter()
        self._finder = _Finder(self.meter, changes or {})
        self._modules: dict[str, ModuleType] = {}

    @contextmanager
    def on(self) -> Iterator[Metered]:
        """While this lasts, the package is the metered one, for what it imports late too."""
        others = _take_out()
        sys.modules.update(self._modules)
        sys.meta_path.insert(0, self._finder)
        try:
            yield self
        finally:
            sys.meta_path.remove(self._finder)
            self._modules = _take_out()
            sys.modules.update(others)

    def load(self, name: str) -> Any:
        return importlib.import_module(name)

    @cached_property
    def toolset(self) -> Any:
        """`TOOLS`, declared with the metered package. Ask for it inside `with package.on():`."""
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


def _take_out() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name.startswith(PACKAGE) and name.partition(".")[0] == PACKAGE]
    return {name: sys.modules.pop(name) for name in names}


# -- growth ------------------------------------------------------------------------------------------------------------

MOST = 4.6  # of four times the text; whatever is linear stays below
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


class Way(NamedTuple):
    """How a text is read: whole, or in pieces of so many characters."""

    format: str
    pieces: int = 0
    live: bool = False
    rescue: str = "safe"  # with "off" the parser compiles no other format


@cache
def shared() -> Metered:
    return Metered()


def growth_of(work: Callable[[Any, Any, int], object], *, size: int = 300, package: Metered | None = None) -> float:
    """As `growth`, of any work: it is given the metered package, a toolset of that, and a size."""
    metered = package or shared()

    def counted(size: int) -> float:
        with metered.on():
            rightcall = metered.load(PACKAGE)
            tools = metered.toolset
            return metered.count(lambda: work(rightcall, tools, size)) / size

    counted(size)
    small, large = counted(size), counted(4 * size)
    for times in (16, 64):
        if 4 * large > MOST * small:
            small, large = large, counted(times * size)
    return 4 * large / small


def growth(text_of: Callable[[int], str], way: Way, *, size: int = 300, package: Metered | None = None) -> float:
    """How many times as many steps four times the text takes (4: linear, 16: quadratic).

    What is bounded, such as how far a marker is looked for, may look worse on small texts: a larger one decides.
    """
    # What is made once, for a format or at first use, is no cost of the text: a short one is read before.
    texts = [text_of(size // 4), text_of(size), text_of(4 * size)]
    _, small, large = _per_character(texts, way, package)
    for times in (16, 64):
        if 4 * large > MOST * small:
            small, (large,) = large, _per_character([text_of(times * size)], way, package)
    return 4 * large / small


def _per_character(texts: list[str], way: Way, package: Metered | None) -> list[float]:
    metered = package or shared()
    with metered.on():
        rightcall = metered.load(PACKAGE)
        tools = metered.toolset
        return [metered.count(partial(_read, rightcall, text, way, tools)) / len(text) for text in texts]


def _read(rightcall: Any, text: str, way: Way, tools: Any) -> None:
    if not way.pieces:
        rightcall.parse(text, format=way.format, tools=tools, rescue=way.rescue)
        return
    parser = rightcall.Parser(way.format, tools=tools, live=way.live, rescue=way.rescue)
    for start in range(0, len(text), way.pieces):
        parser.feed(text[start : start + way.pieces])
    parser.close()
