"""Tools from Python functions and classes, and the `tool` decorator."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest
from pydantic import BaseModel, Field, RootModel

from rightcall.errors import BadTools
from rightcall.tools.functions import tool
from rightcall.tools.toolset import Toolset, to_tool
from rightcall.types import Json, Tool


class Unit(Enum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


class Place(BaseModel):
    """A place on earth."""

    city: str = Field(description="Its name")
    country: str | None = None


@dataclass
class Point:
    """A point."""

    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)


class Window(TypedDict, total=False):
    width: int
    title: str


class Node(BaseModel):
    """A tree."""

    value: int
    children: list[Node] = []


def schema_of(function: Callable[..., Any]) -> Json:
    return to_tool(function).parameters


def property_of(hint: Any, default: Any = inspect.Parameter.empty) -> Json:
    def f(**arguments: Any) -> None: ...

    f.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter("x", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)]
    )
    f.__annotations__ = {"x": hint}
    found: Json = schema_of(f)["properties"]["x"]
    return found


HINTS: list[tuple[Any, Json]] = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (Any, {}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
    (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
    (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
    (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (Annotated[str, "Where"], {"type": "string", "description": "Where"}),
    (Annotated[int, Field(ge=1, description="How many")], {"type": "integer", "minimum": 1, "description": "How many"}),
]


@pytest.mark.parametrize("hint, schema", HINTS, ids=[str(hint) for hint, _ in HINTS])
def test_an_annotation_becomes_its_schema(hint: Any, schema: Json) -> None:
    assert property_of(hint) == schema


def test_required_arguments_and_defaults_come_from_the_signature() -> None:
    def f(a: int, b: str = "x", *, c: bool = False) -> None: ...

    assert schema_of(f) == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "string", "default": "x"},
            "c": {"type": "boolean", "default": False},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


def test_structured_types_are_definitions_without_generated_titles() -> None:
    def f(place: Place, point: Point, window: Window, unit: Unit = Unit.CELSIUS) -> None: ...

    schema = schema_of(f)
    assert '"title":' not in json.dumps({**schema, "$defs": {**schema["$defs"], "Window": {}}})
    assert schema["$defs"]["Unit"] == {"type": "string", "enum": ["celsius", "fahrenheit"]}
    assert schema["$defs"]["Place"]["properties"]["city"] == {"type": "string", "description": "Its name"}
    assert schema["$defs"]["Point"]["required"] == ["x"]
    assert schema["$defs"]["Window"]["properties"] == {"width": {"type": "integer"}, "title": {"type": "string"}}
    assert schema["properties"]["unit"] == {"$ref": "#/$defs/Unit", "default": "celsius"}


def test_a_typed_dict_inside_another_type_has_its_properties() -> None:
    def f(windows: list[Window] | None = None) -> None: ...

    assert set(schema_of(f)["$defs"]["Window"]["properties"]) == {"width", "title"}


def test_parameters_with_reserved_names_are_supported() -> None:
    def f(json: str, schema: str, model_config: str, self_: str, _x: int = 0) -> str:
        return json + schema + model_config + self_

    assert list(schema_of(f)["properties"]) == ["json", "schema", "model_config", "self_", "_x"]
    run = to_tool(f).run
    assert run is not None and run(json="a", schema="b", model_config="c", self_="d") == "abcd"


def test_a_default_of_none_allows_null() -> None:
    def f(a: str = None) -> None: ...  # type: ignore[assignment]  # noqa: RUF013

    assert schema_of(f)["properties"]["a"] == {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}


def test_a_default_without_a_json_value_is_omitted() -> None:
    def f(a: Any = object) -> None: ...

    assert schema_of(f)["properties"]["a"] == {}
    assert "required" not in schema_of(f)


def test_positional_only_parameters_are_passed_by_name() -> None:
    def f(a: int, /, b: int) -> int:
        return a - b

    run = to_tool(f).run
    assert run is not None and run(b=1, a=3) == 2


def test_variable_keyword_arguments_are_additional_properties() -> None:
    def f(a: int, **more: int) -> int:
        return a + sum(more.values())

    assert schema_of(f)["additionalProperties"] == {"type": "integer"}
    run = to_tool(f).run
    assert run is not None and run(a=1, b=2) == 3


def test_a_function_with_star_args_is_rejected_by_name() -> None:
    def f(*numbers: int) -> None: ...

    with pytest.raises(BadTools, match=r"tool 'f'.*takes \*numbers.*numbers: list"):
        to_tool(f)


def test_a_type_without_a_schema_names_the_parameter() -> None:
    def f(a: int, connection: subprocess.Popen[str]) -> None: ...

    with pytest.raises(BadTools, match=r"parameter 'connection' of .*f\(\)"):
        to_tool(f)


def test_an_undefined_annotation_is_rejected() -> None:
    def f(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(BadTools, match=r"'Nowhere' is not defined"):
        to_tool(f)


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(BadTools, match="lambda has no name"):
        to_tool(lambda x: x)
    assert to_tool(tool(lambda x: x, name="same")).name == "same"


def test_a_callable_without_a_signature_is_rejected() -> None:
    with pytest.raises(BadTools):
        to_tool(type)
    with pytest.raises(BadTools):
        to_tool(int)


def test_run_converts_arguments_to_the_annotated_types() -> None:
    def f(place: Place, point: Point, unit: Unit) -> list[Any]:
        return [place, point, unit]

    run = to_tool(f).run
    assert run is not None
    given = run(place={"city": "Bern"}, point={"x": 1}, unit="celsius")
    assert given == [Place(city="Bern"), Point(1), Unit.CELSIUS]


def test_an_async_function_stays_async() -> None:
    async def f(n: int) -> int:
        return n + 1

    run = to_tool(f).run
    assert run is not None and inspect.iscoroutinefunction(run)
    assert asyncio.run(run(n=1)) == 2


def test_a_bound_method_is_a_tool_without_its_self_parameter() -> None:
    class Counter:
        def add(self, n: int) -> int:
            """Adds."""
            return n + 1

    built_tool = to_tool(Counter().add)
    assert (built_tool.name, built_tool.description, list(built_tool.parameters["properties"])) == (
        "add",
        "Adds.",
        ["n"],
    )
    assert built_tool.run is not None and built_tool.run(n=1) == 2
    with pytest.raises(BadTools, match=r"method without its object"):
        to_tool(Counter.add)


def test_a_callable_object_is_a_tool() -> None:
    class Greet:
        def __call__(self, who: str) -> str:
            """Greets."""
            return f"hello {who}"

    built_tool = to_tool(Greet())
    assert (built_tool.name, built_tool.description) == ("Greet", "Greets.")
    assert built_tool.run is not None and built_tool.run(who="you") == "hello you"


def test_arguments_fixed_by_a_partial_are_not_parameters() -> None:
    def query(connection: object, sql: str) -> str:
        """Asks."""
        return f"{connection}: {sql}"

    built_tool = to_tool(functools.partial(query, connection="db"))
    assert (built_tool.name, list(built_tool.parameters["properties"])) == ("query", ["sql"])
    assert built_tool.run is not None and built_tool.run(sql="select") == "db: select"


def test_a_wrapped_function_has_the_signature_of_the_original() -> None:
    def traced(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return inner

    @traced
    def f(a: int) -> int:
        """Doubles."""
        return 2 * a

    built_tool = to_tool(f)
    assert (built_tool.description, list(built_tool.parameters["properties"])) == ("Doubles.", ["a"])
    assert built_tool.run is not None and built_tool.run(a=2) == 4


CLASSES: list[tuple[type, str, list[str], list[str]]] = [
    (Place, "A place on earth.", ["city", "country"], ["city"]),
    (Point, "A point.", ["x", "y", "tags"], ["x"]),
    (Window, "", ["width", "title"], []),
    (Node, "A tree.", ["value", "children"], ["value"]),
]


@pytest.mark.parametrize("cls, description, names, required", CLASSES)
def test_a_class_is_a_tool_whose_arguments_are_its_fields(
    cls: type, description: str, names: list[str], required: list[str]
) -> None:
    built_tool = to_tool(cls)
    assert (built_tool.name, built_tool.description) == (cls.__name__, description)
    assert list(built_tool.parameters["properties"]) == names
    assert built_tool.parameters.get("required", []) == required
    assert built_tool.parameters["type"] == "object" and "title" not in built_tool.parameters


def test_running_a_class_tool_creates_an_instance() -> None:
    run = to_tool(Place).run
    assert run is not None and run(city="Bern") == Place(city="Bern")


def test_a_model_that_is_not_an_object_is_rejected() -> None:
    class Numbers(RootModel[list[int]]):
        pass

    with pytest.raises(BadTools, match="arguments are an object"):
        to_tool(Numbers)


def test_the_attributes_section_of_a_class_describes_its_fields() -> None:
    class Book(BaseModel):
        """A book.

        Attributes:
            title: What is on the cover.
        """

        title: str

    built_tool = to_tool(Book)
    assert built_tool.description == "A book."
    assert built_tool.parameters["properties"]["title"] == {"type": "string", "description": "What is on the cover."}


def test_a_decorated_function_stays_callable_and_carries_its_tool() -> None:
    @tool
    def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    assert add(2) == 3
    carried = add.__rightcall_tool__  # type: ignore[attr-defined]
    assert isinstance(carried, Tool) and Toolset(add).get("add") is carried


def test_decorator_options_override_the_function() -> None:
    @tool(name="read", description="Reads.", aliases={"file": "path"}, read_only=True, compact=True)
    def read_file(path: str) -> str:
        """Not this."""
        return path

    built_tool = to_tool(read_file)
    assert (built_tool.name, built_tool.description, built_tool.aliases) == ("read", "Reads.", {"file": "path"})
    assert built_tool.read_only and built_tool.compact and read_file("x") == "x"


def test_an_invalid_function_is_rejected_by_the_decorator() -> None:
    with pytest.raises(BadTools, match=r"alias 'file' stands for 'file_path', which is no parameter"):
        tool(_reads, aliases={"file": "file_path"})
    with pytest.raises(BadTools):

        @tool
        def f(*args: int) -> None: ...


def _reads(path: str) -> str:
    return path


def test_decorated_methods_of_every_kind_are_tools() -> None:
    class Desk:
        @tool(read_only=True)
        def look(self, at: str) -> str:
            return at

        @tool(name="still")
        @staticmethod
        def fixed(n: int) -> int:
            return n

        @tool(name="of_class")
        @classmethod
        def made(cls, n: int) -> str:
            return f"{cls.__name__}{n}"

    tools = Toolset(Desk().look, Desk.fixed, Desk.made)
    assert [one.name for one in tools] == ["look", "still", "of_class"]
    look, made = tools.get("look"), tools.get("of_class")
    assert look is not None and look.read_only and look.run is not None and look.run(at="me") == "me"
    assert made is not None and made.run is not None and made.run(n=1) == "Desk1"


def test_tool_options_of_a_class_are_not_inherited() -> None:
    @tool(name="base", compact=True)
    class Base(BaseModel):
        a: int

    class Child(Base):
        b: int

    assert to_tool(Base).name == "base" and to_tool(Base).compact
    assert to_tool(Child).name == "Child" and not to_tool(Child).compact


def test_an_annotation_can_refer_to_a_later_definition() -> None:
    program = """
from __future__ import annotations
from rightcall.tools.functions import tool
from rightcall.tools.toolset import Toolset
@tool(name="later")
def f(a: Later) -> None: ...
class Later:
    __slots__ = ()
from dataclasses import dataclass
@dataclass
class Later:
    x: int
print(Toolset(f).names)
"""
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "('later',)"


def test_declaring_dicts_imports_no_pydantic() -> None:
    program = """
import sys
from rightcall.tools.toolset import Toolset
Toolset([{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}}])
print([name for name in ("pydantic", "jsonschema_rs") if name in sys.modules])
"""
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


def test_a_class_with_a_field_without_a_schema_is_rejected() -> None:
    class Hook(BaseModel):
        call: Callable[[], None]

    with pytest.raises(BadTools, match=r"tool 'Hook' .*has no JSON Schema"):
        to_tool(Hook)
