"""docs/reference.md is up to date, and every public object and its parameters are documented."""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pages import stale_pages
from reference_page import MODULES, functions_of, other_types, public_names
from signatures import parameters, signature
from test_exports import PUBLIC


def public_things() -> Iterator[tuple[str, Any]]:
    """Yield the importable objects, and the classes of returned values."""
    for module in MODULES:
        for name in public_names(module):
            value = getattr(importlib.import_module(module), name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{module}.{name}", value
    yield from ((name, value) for name, value in other_types().items() if inspect.isclass(value))


THINGS = dict(public_things())
METHODS = {
    f"{name}.{method}": function
    for name, value in THINGS.items()
    if inspect.isclass(value)
    for method, function in functions_of(value).items()
}


def documented_names(value: Any) -> set[str]:
    """Return the names in backticks in the docstring of an object itself, not of a base class."""
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    return set(re.findall(r"`\*{0,2}(\w+)", text or ""))


def test_every_generated_page_is_current() -> None:
    assert stale_pages() == [], "run `make pages`"


def test_the_reference_has_every_public_module() -> None:
    assert set(MODULES) == {"rightcall", "rightcall.errors", *[f"rightcall.{name}" for name in PUBLIC]}


@pytest.mark.parametrize("name", [*THINGS, *METHODS])
def test_every_public_object_has_a_docstring(name: str) -> None:
    value = THINGS.get(name) or METHODS[name]
    assert vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__, f"{name} has no docstring"


@pytest.mark.parametrize("name", [*[name for name, value in THINGS.items() if inspect.isfunction(value)], *METHODS])
def test_a_public_function_documents_every_parameter(name: str) -> None:
    value = THINGS.get(name) or METHODS[name]
    assert {parameter.name for parameter in parameters(value)} <= documented_names(value)


@pytest.mark.parametrize("name", [name for name, value in THINGS.items() if inspect.isclass(value)])
def test_a_public_class_documents_every_parameter(name: str) -> None:
    kind = THINGS[name]
    own = (
        kind if documented_names(kind) or not issubclass(kind, Exception) else kind.__base__
    )  # an exception documented by its base
    if signature(name, kind):
        assert {parameter.name for parameter in parameters(kind)} <= documented_names(own)
