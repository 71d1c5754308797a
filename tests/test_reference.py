"""docs/reference.md is fresh, and what is public says what it is and what it takes."""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pages import stale
from reference_page import MODULES, functions_of, other_types, public_names
from signatures import parameters, signature
from test_exports import PUBLIC


def public_things() -> Iterator[tuple[str, Any]]:
    """What can be imported, and the classes of what is given."""
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


def said(value: Any) -> set[str]:
    """The names in backticks in the docstring of a thing itself, not of a base."""
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    return set(re.findall(r"`\*{0,2}(\w+)", text or ""))


def test_every_page_that_is_made_is_fresh() -> None:
    assert stale() == [], "run `make pages`"


def test_the_page_has_every_public_module() -> None:
    assert set(MODULES) == {"rightcall", "rightcall.errors", *[f"rightcall.{name}" for name in PUBLIC]}


@pytest.mark.parametrize("name", [*THINGS, *METHODS])
def test_what_is_public_says_what_it_is(name: str) -> None:
    value = THINGS.get(name) or METHODS[name]
    assert vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__, f"{name} has no docstring"


@pytest.mark.parametrize("name", [*[name for name, value in THINGS.items() if inspect.isfunction(value)], *METHODS])
def test_a_public_function_says_what_each_parameter_is(name: str) -> None:
    value = THINGS.get(name) or METHODS[name]
    assert {parameter.name for parameter in parameters(value)} <= said(value)


@pytest.mark.parametrize("name", [name for name, value in THINGS.items() if inspect.isclass(value)])
def test_a_public_class_says_what_it_is_made_of(name: str) -> None:
    kind = THINGS[name]
    own = kind if said(kind) or not issubclass(kind, Exception) else kind.__base__  # an error that is one of its base
    if signature(name, kind):
        assert {parameter.name for parameter in parameters(kind)} <= said(own)
