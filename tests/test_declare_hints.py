"""Annotations without pydantic: the schema that the model gets, and the values that arguments are converted to.

The judge is pydantic itself: its schema of the same annotation, and its values for the same JSON.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import inspect
import ipaddress
import itertools
import operator
import pathlib
import re
import subprocess
import sys
import types
import typing
import uuid
from collections import abc
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypedDict, TypeVar

import msgspec
import pytest
import typing_extensions
from hypothesis import given, settings
from hypothesis import strategies as st

from rightcall import Call, Toolset, dispatch_sync
from rightcall.errors import BadTools, MalformedArguments
from rightcall.tools.argument_reader import ArgumentReader, function_reader
from rightcall.tools.toolset import to_tool
from rightcall.tools.value_types import ConversionError
from rightcall.tools.with_pydantic import pydantic_function
from rightcall.types import Json

KEYWORD = inspect.Parameter.KEYWORD_ONLY


class Unit(enum.Enum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


class Level(enum.IntEnum):
    """How loud."""

    LOW = 2  # The value 1 is avoided because pydantic accepts true for it.
    HIGH = 3


class Mixed(enum.Enum):
    ONE = 1
    TEXT = "text"
    NONE = None
    HALF = 0.5


@dataclass
class Point:
    """A point."""

    x: int
    y: float = 0.5
    tags: list[str] = field(default_factory=list)


@dataclass
class Bare:
    when: date
    unit: Unit = Unit.CELSIUS
    other: Bare | None = None


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Window(TypedDict):
    """A window."""

    width: int
    unit: Unit


class Pane(typing_extensions.TypedDict):
    """Pydantic needs this variant inside a dataclass before Python 3.12."""

    width: int
    unit: Unit


class Loose(TypedDict, total=False):
    title: str
    at: Point


T = TypeVar("T")


@dataclass
class Box(Generic[T]):
    item: T
    more: list[T] = field(default_factory=list)


class Tree(TypedDict):
    value: int
    children: list[Tree]


Plain = collections.namedtuple("Plain", "a b")
UserId = NewType("UserId", int)


def parameters(hint: Any, default: Any = inspect.Parameter.empty) -> dict[str, inspect.Parameter]:
    return {"x": inspect.Parameter("x", KEYWORD, default=default, annotation=hint)}


def our_reader(hint: Any, default: Any = inspect.Parameter.empty) -> ArgumentReader:
    return function_reader(parameters(hint, default), "f()")


def pydantic_reader(hint: Any, default: Any = inspect.Parameter.empty) -> ArgumentReader:
    return pydantic_function(parameters(hint, default), "f()")


def read_argument(intake: ArgumentReader, value: Any) -> Any:
    return intake.read({"x": value})["x"]


# -- agreement with pydantic -------------------------------------------------------------------------------------------

SAID: list[Any] = [
    *(str, int, float, bool, None, Any, object, bytes),
    *(list, list[int], list[Any], abc.Sequence[int], abc.Iterable[str], typing.List[int]),  # noqa: UP006
    *(set, set[int], frozenset[str], abc.Set[int], collections.deque[int]),
    *(dict, dict[str, int], dict[str, Any], dict[int, str], dict[Unit, int], dict[Literal["a", "b"], int]),
    *(dict[date, int], dict[uuid.UUID, int], abc.Mapping[str, int], collections.OrderedDict[str, int]),
    *(tuple, tuple[()], tuple[int, str], tuple[int, ...], typing.Tuple[int, str]),  # noqa: UP006
    *(int | None, int | str, int | None | str, int | bool, Decimal | None, list[Unit] | Unit),
    *(Literal["a"], Literal["a", "b"], Literal[1, 2], Literal[1, "a", None, True], Literal[None], Literal[b"x"]),
    *(Unit, Level, Mixed, Point, Bare, Pair, Plain, Window, Pane, Loose, UserId, T),
    *(list[Point], dict[str, Point], Point | None, Annotated[Point | None, "Where"], Annotated[Level, "How"]),
    *(date, datetime, time, timedelta, uuid.UUID, Decimal, pathlib.Path, pathlib.PurePath, re.Pattern, re.Pattern[str]),
    *(ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Interface),
]


@pytest.mark.parametrize("hint", SAID, ids=str)
def test_an_annotation_has_the_schema_that_pydantic_gives_it(hint: Any) -> None:
    assert our_reader(hint).schema == pydantic_reader(hint).schema
    assert list(our_reader(hint).schema) == list(pydantic_reader(hint).schema)


DEFAULTS: list[tuple[Any, Any]] = [
    (int, 3),
    (str, "x"),
    (int | None, None),
    (Unit, Unit.CELSIUS),
    (date, date(2026, 5, 17)),
    (datetime, datetime(2026, 5, 17, 9, 30, tzinfo=timezone.utc)),  # noqa: UP017
    (Decimal, Decimal("1.50")),
    (Point, Point(1)),
    (list[int], [1, 2]),
    (dict[str, int], {"a": 1}),
    (tuple[int, ...], (1, 2)),
    (pathlib.Path, pathlib.Path("a/b")),
    (uuid.UUID, uuid.UUID(int=7)),
    (bytes, b"x"),
    (Any, object()),
    (float, float("nan")),
    (Any, print),
]


@pytest.mark.parametrize(
    "hint, default", DEFAULTS, ids=[f"{hint} {type(default).__name__}" for hint, default in DEFAULTS]
)
def test_a_default_has_the_schema_of_pydantic_and_is_filled_in_unchanged(hint: Any, default: Any) -> None:
    if default == default:  # A number without a JSON value is omitted; pydantic shows null.
        assert our_reader(hint, default).schema == pydantic_reader(hint, default).schema
    assert our_reader(hint, default).read({})["x"] is default or our_reader(hint, default).read({})["x"] == default


def test_a_mutable_default_is_copied() -> None:
    default: list[int] = []
    our_reader(list[int], default).read({})["x"].append(1)
    assert default == []


READ: list[tuple[Any, list[Any]]] = [
    (str, ["", "é", "\ud800"[:0], 1, None]),
    (int, [0, -1, 10**30, "1", True, 1.5]),
    (float, [1, 1.5, "1", True]),
    (bool, [True, False, 1, "true"]),
    (Decimal, [1, 1.5, "1.5", "x", True, None]),
    (Decimal, [0.1, -2.675, 1e-7, 0.1 + 0.2, "0.1", "1e-7", 10**30]),
    (bytes, ["é", 1]),
    (date, ["2026-05-17", "2026-5-7", "20260517", "x", 3, "2026-05-17T00:00:00"]),
    (datetime, ["2026-05-17T10:00:00Z", "2026-05-17T10:00", "2026-05-17 10:00:00", "2026-05-17T10:00:00+02:00", "x"]),
    (datetime, ["2026-05-17T10:00:00.123456Z", "2026-W20-1", "2026-05-17", 0]),
    (time, ["10:00", "10:00:00", "10:00:00Z", "10", 3]),
    (timedelta, ["P1DT2H", "PT1.5S", "-P1D", "P1W", "P1WT1H2M3.25S", 5, "x", "P", "PT", "P1", "P1H"]),
    (uuid.UUID, ["12345678123456781234567812345678", "12345678-1234-5678-1234-567812345678", "x", 1]),
    (pathlib.Path, ["a/b", "", 1]),
    (ipaddress.IPv4Address, ["192.0.2.1", "192.0.2.256"]),
    (ipaddress.IPv4Network, ["192.0.2.0/24", "192.0.2.1/24"]),
    (re.Pattern, ["[a-z]", "["]),
    (Unit, ["celsius", "kelvin", 1, None]),
    (Level, [1, 3, "1"]),
    (Mixed, [1, "text", None, 0.5, 2, [1]]),
    (Literal[1, "a", None], [1, "a", None, 2, "b"]),
    (list[int], [[], [1, 2], ["a"], {}, None]),
    (set[int], [[1, 1, 2], ["a"]]),
    (tuple[int, str], [[1, "a"], [1], [1, "a", 2], ["a", 1]]),
    (tuple[int, ...], [[], [1, 2], ["a"]]),
    (dict[str, int], [{}, {"a": 1}, {"a": "b"}, []]),
    (dict[int, str], [{"1": "a"}, {"x": "a"}]),
    (dict[float, str], [{"1.5": "a"}]),
    (dict[Unit, int], [{"celsius": 1}, {"x": 1}]),
    (Point, [{"x": 1}, {"x": 1, "y": 2, "tags": ["a"], "z": 3}, {}, {"x": "1"}, [1], None]),
    (Bare, [{"when": "2026-05-17", "other": {"when": "2026-05-18", "unit": "fahrenheit"}}, {"when": "x"}]),
    (Pair, [[1], [1, "a"], [], [1, 2], [1, "a", "b"]]),
    (Window, [{"width": 1, "unit": "celsius"}, {"width": 1}, {"width": 1, "unit": "celsius", "more": 2}]),
    (Loose, [{}, {"title": "a"}, {"title": 1}, {"at": {"x": 1}}]),
    (int | None, [1, None, "a"]),
    (float | int, [1, 1.0, 1.5]),
    (int | float, [1, 1.0, 1.5]),
    (date | str, ["2026-05-17", "x", 1]),
    (str | date, ["2026-05-17"]),
    (Unit | str, ["celsius", "x"]),
    (Literal["celsius"] | Unit, ["celsius", "fahrenheit", "x"]),
    (int | bool, [True, 1]),
    (Level | int, [1, 3]),
    (list[float] | list[int], [[1, 2], [1.5], ["a"]]),
    (Window | Loose, [{"title": "a"}, {"width": 1, "unit": "celsius"}, {"width": 1, "unit": "celsius", "title": "a"}]),
    (Point | None, [None, {"x": 1}, {"y": 1}]),
    (UserId, [1, "a"]),
]


@pytest.mark.parametrize("hint, values", READ, ids=[str(hint) for hint, _ in READ])
def test_a_value_is_converted_as_by_pydantic(hint: Any, values: list[Any]) -> None:
    mine, judge = our_reader(hint), pydantic_reader(hint)
    for value in values:
        assert describe_outcome(mine, value) == describe_outcome(judge, value), value


def describe_outcome(intake: ArgumentReader, value: Any) -> Any:
    """Return the value with its types, recursively, or "misfit" if the conversion fails."""
    try:
        value_read = read_argument(intake, value)
    except ConversionError as misfit:
        return "misfit" if all(fault.message for fault in misfit.faults) else misfit
    return (
        repr(value_read)
        .replace("TzInfo(0)", "datetime.timezone.utc")
        .replace("TzInfo(7200)", "datetime.timezone(datetime.timedelta(seconds=7200))")
    )


LEAVES = [
    str,
    int,
    bool,
    float,
    type(None),
    date,
    uuid.UUID,
    Unit,
    Level,
    Literal["a", 2],
    Point,
    Pane,
    Pair,
    Decimal,
]


def compose_hints(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda hint: types.GenericAlias(list, hint)),
        inner.map(lambda hint: types.GenericAlias(dict, (str, hint))),
        inner.map(lambda hint: types.GenericAlias(tuple, (hint, ...))),
        st.tuples(inner, inner).map(lambda pair: types.GenericAlias(tuple, pair)),
        inner.map(lambda hint: hint | None),
        st.lists(inner, min_size=2, max_size=3).map(lambda hints: functools.reduce(operator.or_, hints)),
        st.lists(inner, min_size=1, max_size=3).map(dataclass_of),
    )


def dataclass_of(hints: list[Any]) -> Any:
    """Create a dataclass with a unique name: pydantic merges two of the same name and content."""
    fields = [(f"f{at}", hint) for at, hint in enumerate(hints)]
    return dataclasses.make_dataclass(f"Made{next(COUNT)}", fields)


COUNT = itertools.count()


HINTS = st.recursive(st.sampled_from(LEAVES), compose_hints, max_leaves=5)
TEXTS = st.sampled_from(["", "a", "celsius", "2026-05-17", "1.5", str(uuid.UUID(int=3))])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 2.5]), TEXTS)


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """JSON that fits the annotation, or nearly does."""
    return st.one_of(valid_values_of(hint), valid_values_of(hint), SCALARS, st.lists(SCALARS, max_size=2))


def valid_values_of(hint: Any) -> st.SearchStrategy[Any]:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is list or (origin is tuple and inner[-1] is ...):
        return st.lists(values_of(inner[0]), max_size=3)
    if origin is tuple:
        return st.tuples(*map(values_of, inner)).map(list)
    if origin is dict:
        return st.dictionaries(TEXTS, values_of(inner[1]), max_size=3)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*map(values_of, inner))
    if dataclasses.is_dataclass(hint) and hint is not Point:
        fields = {each.name: values_of(each.type) for each in dataclasses.fields(hint)}
        return st.fixed_dictionaries(fields)
    if hint in (Point, Pane):
        return st.fixed_dictionaries({}, optional={"x": SCALARS, "width": st.integers(0, 3), "unit": TEXTS})
    return SCALARS if not inner else values_of(inner[0])


@settings(max_examples=settings().max_examples * 4)
@given(HINTS, st.data())
def test_schemas_and_values_of_annotations_agree_with_pydantic(hint: Any, data: st.DataObject) -> None:
    mine, judge = our_reader(hint), pydantic_reader(hint)
    assert mine.schema == judge.schema
    for _ in range(4):
        value = data.draw(values_of(hint))
        assert describe_outcome(mine, value) == describe_outcome(judge, value), (hint, value)


# -- differences from pydantic -----------------------------------------------------------------------------------------


class Movie(TypedDict, total=False):
    title: typing.Required[str]
    year: Annotated[int, "When it came out"]


class Sequel(Movie):
    before: typing.NotRequired[str]
    part: int


def test_required_keys_of_a_typed_dict_are_found_in_string_annotations() -> None:
    assert our_reader(Movie).schema["$defs"]["Movie"]["required"] == ["title"]
    assert our_reader(Sequel).schema["$defs"]["Sequel"]["required"] == ["title", "part"]


def test_every_description_of_an_annotation_is_in_the_schema() -> None:
    schema = our_reader(list[Annotated[int, "One"]]).schema["properties"]["x"]
    assert schema == {"items": {"description": "One", "type": "integer"}, "type": "array"}
    assert our_reader(Movie).schema["$defs"]["Movie"]["properties"]["year"]["description"] == "When it came out"
    assert our_reader(Annotated[int, msgspec.Meta(description="Two")]).schema["properties"]["x"]["description"] == "Two"


def test_a_recursive_type_is_defined_once() -> None:
    intake = our_reader(list[Tree] | Tree)
    assert intake.schema["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    tree = {"value": 1, "children": [{"value": 2, "children": []}]}
    assert read_argument(intake, tree) == tree
    with pytest.raises(ConversionError) as caught:
        read_argument(our_reader(Tree), {"value": 1, "children": [{"value": "a", "children": []}]})
    assert caught.value.faults[0].steps == ("x", "children", 0, "value")


def test_a_generic_class_uses_its_type_arguments() -> None:
    intake = our_reader(Box[Point])
    assert intake.schema["$defs"]["Box_Point_"]["properties"]["more"]["items"] == {"$ref": "#/$defs/Point"}
    assert read_argument(intake, {"item": {"x": 1}, "more": [{"x": 2}]}) == Box(Point(1), [Point(2)])


def test_a_type_alias_is_a_definition() -> None:
    simple = typing_extensions.TypeAliasType("simple", list[int])
    assert our_reader(simple | None).schema["$defs"] == {"simple": {"items": {"type": "integer"}, "type": "array"}}
    assert read_argument(our_reader(simple), [1]) == [1]


def test_two_classes_with_the_same_name_have_separate_definitions() -> None:
    other = dataclasses.make_dataclass("Point", [("z", int)])
    schema = our_reader(tuple[Point, other]).schema  # type: ignore[valid-type]
    one, two = [each["$ref"].rpartition("/")[2] for each in schema["properties"]["x"]["prefixItems"]]
    assert one != two and set(schema["$defs"]) == {one, two}
    assert "z" in schema["$defs"][two]["properties"]


@dataclass
class Made:
    given: int
    counted: int = field(init=False, default=3)
    start: dataclasses.InitVar[int] = 4
    class_wide: typing.ClassVar[int] = 5
    named: int = field(default=1, kw_only=True, metadata={"description": "By name"})

    def __post_init__(self, start: int) -> None:
        if self.given < 0:
            raise ValueError("nothing is below zero")
        self.counted = self.given + start


def test_a_dataclass_has_the_parameters_of_its_constructor() -> None:
    properties = our_reader(Made).schema["$defs"]["Made"]["properties"]
    assert list(properties) == ["given", "start", "named"] and properties["named"]["description"] == "By name"
    assert read_argument(our_reader(Made), {"given": 1, "start": 2}).counted == 3


def test_a_validation_error_of_a_class_is_reported_to_the_model() -> None:
    def f(made: list[Made]) -> None: ...

    result = dispatch_sync(Call("f", {"made": [{"given": -1}]}), [f])[0]
    assert (result.kind, result.problems[0].path) == ("refused", "/made/0")
    assert "nothing is below zero" in result.text


def test_up_to_five_faults_are_reported_with_their_paths() -> None:
    def f(points: list[Point], when: date) -> None: ...

    run = to_tool(f).run
    assert run is not None
    with pytest.raises(MalformedArguments) as caught:
        run(points=[{"x": 1}, {"x": "a"}, {"y": "b"}], when="soon")
    assert [(each.code, each.path) for each in caught.value.problems] == [
        ("wrong_type", "/points/1/x"),
        ("missing", "/points/2/x"),
        ("wrong_type", "/points/2/y"),
        ("invalid_argument", "/when"),
    ]
    with pytest.raises(MalformedArguments) as caught:
        run(points=[{}] * 1000, when="2026-05-17")
    assert len(caught.value.problems) == 5


def test_run_accepts_values_that_already_have_the_type() -> None:
    def f(when: date, unit: Unit, point: Point, where: pathlib.Path, pair: Pair) -> list[Any]:
        return [when, unit, point, where, pair]

    given = [date(2026, 5, 17), Unit.CELSIUS, Point(1), pathlib.Path("a"), Pair(1)]
    run = to_tool(f).run
    assert run is not None and run(**dict(zip(("when", "unit", "point", "where", "pair"), given, strict=True))) == given


def test_an_unknown_argument_is_rejected() -> None:
    def f(a: int) -> int:
        return a

    run = to_tool(f).run
    assert run is not None
    with pytest.raises(MalformedArguments, match="b: is no argument of this tool"):
        run(a=1, b=2)


def test_unpacked_typed_dict_keys_are_arguments() -> None:
    def f(**more: typing.Unpack[Movie]) -> Any:
        return more

    built_tool = to_tool(f)
    assert set(built_tool.parameters["properties"]) == {"title", "year"} and built_tool.parameters["required"] == [
        "title"
    ]
    assert built_tool.run is not None and built_tool.run(title="M", year=1931) == {"title": "M", "year": 1931}


MADE: list[str] = []


@dataclass
class Left:
    inner: Left | Right | None = None

    def __post_init__(self) -> None:
        MADE.append("left")


@dataclass
class Right:
    inner: Left | Right | None = None

    def __post_init__(self) -> None:
        MADE.append("right")


def nested(depth: int, innermost: Any) -> Any:
    for _ in range(depth):
        innermost = {"inner": innermost}
    return innermost


def test_mutually_recursive_alternatives_are_read_once_per_level() -> None:
    intake = our_reader(Left | Right)
    MADE.clear()
    value_read = read_argument(intake, nested(60, None))
    assert len(MADE) <= 4 * 60
    while value_read.inner is not None:
        assert isinstance(value_read, Left)
        value_read = value_read.inner
    MADE.clear()
    with pytest.raises(ConversionError) as caught:
        read_argument(intake, nested(60, 7))
    assert len(caught.value.faults) == 1 and MADE == []


Shape = enum.Enum("Shape", {"SQUARE": [1, {"side": 2, "open": False}], "FLAG": {"on": True, "parts": []}})


@pytest.mark.parametrize(
    "value, member",
    [
        ([1.0, {"open": False, "side": 2.0}], Shape.SQUARE),
        ({"parts": [], "on": True}, Shape.FLAG),
        ([True, {"side": 2, "open": False}], None),
        ([1, {"side": 2, "open": 0}], None),
        ({"on": 1, "parts": []}, None),
        ({"on": True, "parts": {}}, None),
        ([1, {"side": {2}, "open": False}], None),
    ],
)
def test_options_are_equal_as_in_json_schema_at_any_depth(value: Any, member: Any) -> None:
    intake = our_reader(Shape)
    if member is not None:
        assert read_argument(intake, value) is member
    else:
        with pytest.raises(ConversionError):
            read_argument(intake, value)


def test_reading_a_value_twice_creates_two_objects() -> None:
    intake = our_reader(Left | Right)
    value = nested(2, None)
    assert read_argument(intake, value) is not read_argument(intake, value)


def test_too_deep_nesting_is_reported() -> None:
    with pytest.raises(ConversionError) as caught:
        read_argument(our_reader(Left | Right), nested(900, None))
    assert [fault.code for fault in caught.value.faults] == ["too_deep"]


BOUNDED: list[tuple[Any, Json, Any, Any]] = [
    (Annotated[int, msgspec.Meta(ge=1, lt=5)], {"type": "integer", "minimum": 1, "exclusiveMaximum": 5}, 1, 5),
    (Annotated[float, msgspec.Meta(gt=0)], {"type": "number", "exclusiveMinimum": 0}, 0.5, 0),
    (Annotated[int, msgspec.Meta(multiple_of=3)], {"type": "integer", "multipleOf": 3}, 6, 7),
    (Annotated[str, msgspec.Meta(min_length=2)], {"type": "string", "minLength": 2}, "ab", "a"),
    (Annotated[str, msgspec.Meta(pattern="^a")], {"type": "string", "pattern": "^a"}, "ab", "b"),
    (
        Annotated[list[int], msgspec.Meta(max_length=1)],
        {"type": "array", "items": {"type": "integer"}, "maxItems": 1},
        [1],
        [1, 2],
    ),
    (
        Annotated[int | None, msgspec.Meta(le=5)],
        {"anyOf": [{"type": "integer", "maximum": 5}, {"type": "null"}]},
        None,
        6,
    ),
]


@pytest.mark.parametrize("hint, schema, right, wrong", BOUNDED, ids=[str(row[0]) for row in BOUNDED])
def test_bounds_are_declared_and_enforced(hint: Any, schema: Json, right: Any, wrong: Any) -> None:
    def f(x: Any) -> Any:
        return x

    f.__annotations__["x"] = hint
    assert to_tool(f).parameters["properties"]["x"] == schema
    assert dispatch_sync(Call("f", {"x": right}), [f])[0].output == right
    assert dispatch_sync(Call("f", {"x": wrong}), [f])[0].kind == "refused"


def test_bounds_of_annotated_types_have_the_schema_of_pydantic() -> None:
    annotated_types = pytest.importorskip("annotated_types")
    for hint in (
        Annotated[int, annotated_types.Ge(1), annotated_types.Lt(9)],
        Annotated[str, annotated_types.Len(1, 3)],
        Annotated[list[int], annotated_types.MinLen(2)],
        Annotated[float, annotated_types.Interval(gt=0, le=1)],
    ):
        assert our_reader(hint).schema == pydantic_reader(hint).schema


# -- unsupported annotations -------------------------------------------------------------------------------------------

UNSAYABLE: list[tuple[Any, str]] = [
    (subprocess.Popen[str], r"subprocess\.Popen\[str\]; use a type that JSON can represent"),
    (list[subprocess.Popen[str]], r"Popen\[str\] \(in list\[subprocess\.Popen\[str\]\]\)"),
    (abc.Callable[[int], str], r"collections\.abc\.Callable\[\[int\], str\]"),
    (complex, r"complex"),
    (type[int], r"type\[int\]"),
    (dict[tuple[int, int], str], r"tuple\[int, int\] \(in dict.*\) cannot be the key of a JSON object.*use str"),
    (dict[Point, str], r"Point \(in dict.*\) cannot be the key"),
    (enum.Enum("Nothing", []), r"Nothing is an Enum without members; add a member"),
    (Literal[print], r"has the value <built-in function print>, which JSON cannot represent"),
    (Annotated[str, msgspec.Meta(ge=1)], r"has the bound ge=1, which does not apply to it"),
    (
        dataclasses.make_dataclass("Odd", [("a", "int | 3")]),
        r"Odd has an annotation that is no type .*annotate with a type",
    ),
    (typing.ForwardRef("Nowhere"), r"ForwardRef\('Nowhere'\)"),
    (7, r"7; use a type"),
]


@pytest.mark.parametrize("hint, message", UNSAYABLE, ids=[str(hint) for hint, _ in UNSAYABLE])
def test_an_unsupported_annotation_is_reported_with_parameter_and_cure(hint: Any, message: str) -> None:
    with pytest.raises(BadTools, match=rf"parameter 'x' of f\(\) has a type .*{message}"):
        our_reader(hint)


def test_an_unsupported_field_is_reported_with_its_class() -> None:
    @dataclass
    class Job:
        name: str
        process: subprocess.Popen[str]

    message = (
        r"Job\.process has a type without a JSON Schema, subprocess\.Popen\[str\]; use a type that JSON can represent"
    )
    with pytest.raises(BadTools, match=rf"tool 'Job' cannot be used: {message}"):
        to_tool(Job)
    with pytest.raises(BadTools, match=r"parameter 'x' of f\(\) .*subprocess\.Popen\[str\] \(in Job\.process\)"):
        our_reader(list[Job])


# -- without pydantic --------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
sys.modules["pydantic"] = None
from dataclasses import dataclass
from datetime import date
from typing import Annotated
from rightcall import Call, Toolset, dispatch_sync, tool

@dataclass
class Stay:
    at: date
    nights: int = 1

@tool
def book(stay: Stay, note: Annotated[str, "For the host"] = "") -> str:
    return f"{stay.at:%d.%m.} {stay.nights}"

print(dispatch_sync(Call("book", {"stay": {"at": "2026-05-17"}}), [book])[0].text)

class Own:
    def __get_pydantic_core_schema__(self, *_): ...

def f(own: Own): ...
try:
    Toolset(f)
except Exception as error:
    print(type(error).__name__, error)
"""


def test_functions_run_without_pydantic_and_its_types_report_the_missing_extra() -> None:
    lines = subprocess.check_output([sys.executable, "-c", PROGRAM], text=True).splitlines()
    assert lines[0] == "17.05. 1"
    assert lines[1].startswith("MissingExtra") and lines[1].endswith("pip install 'rightcall[pydantic]'")


def test_a_function_without_pydantic_types_never_imports_pydantic() -> None:
    program = PROGRAM.replace('sys.modules["pydantic"] = None', "").partition("class Own")[0]
    program += "\nprint([name for name in sys.modules if name.startswith('pydantic')])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).splitlines() == ["17.05. 1", "[]"]


def test_a_pydantic_parameter_does_not_change_how_other_parameters_are_read() -> None:
    pydantic = pytest.importorskip("pydantic")

    def f(n: Any, point: Point, unit: Unit | str, when: date) -> Any:
        return [n, point, unit, when]

    given: Json = {"n": 1, "point": {"x": 1}, "unit": "celsius", "when": "2026-05-17"}
    alone = dispatch_sync(Call("f", given), Toolset(f))[0].output
    f.__annotations__["n"] = Annotated[int, pydantic.Field(ge=1)]
    assert dispatch_sync(Call("f", given), Toolset(f))[0].output == alone
    assert dispatch_sync(Call("f", {**given, "n": 0}), Toolset(f))[0].kind == "refused"


def test_a_dataclass_that_contains_a_pydantic_model_is_supported() -> None:
    pydantic = pytest.importorskip("pydantic")
    place = pydantic.create_model("Place", city=(str, ...))
    trip = dataclasses.make_dataclass("Trip", [("to", place), ("days", int, 1)])

    def go(trip: Any) -> Any:
        return [trip.to.city, trip.days]

    go.__annotations__["trip"] = trip
    assert dispatch_sync(Call("go", {"trip": {"to": {"city": "Bern"}}}), [go])[0].output == ["Bern", 1]
