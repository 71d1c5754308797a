"""docs/reference.md is fresh, and what is public says what it is and what it takes."""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

from pages import stale
from reference_page import MODULES, public_names
from test_exports import PUBLIC


def public_things() -> Iterator[tuple[str, Any]]:
    for module in MODULES:
        for name in public_names(module):
            value = getattr(importlib.import_module(module), name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{module}.{name}", value


def functions() -> Iterator[tuple[str, Any]]:
    """Public functions, and the public methods of public classes."""
    for name, value in public_things():
        if inspect.isfunction(value):
            yield name, value
        else:
            for method, member in vars(value).items():
                function = getattr(member, "__func__", member)
                if not method.startswith("_") and inspect.isfunction(function):
                    yield f"{name}.{method}", function


THINGS, FUNCTIONS = dict(public_things()), dict(functions())


def test_every_page_that_is_made_is_fresh() -> None:
    assert stale() == [], "run `make pages`"


def test_the_page_has_every_public_module() -> None:
    assert set(MODULES) == {"rightcall", "rightcall.errors", *[f"rightcall.{name}" for name in PUBLIC]}


@pytest.mark.parametrize("name", [*THINGS, *FUNCTIONS])
def test_what_is_public_says_what_it_is(name: str) -> None:
    value = THINGS.get(name) or FUNCTIONS[name]
    assert vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__, f"{name} has no docstring"


@pytest.mark.parametrize("name", [name for name, value in THINGS.items() if inspect.isfunction(value)])
def test_a_public_function_says_what_each_parameter_is(name: str) -> None:
    said = set(re.findall(r"`\*{0,2}(\w+)", inspect.getdoc(THINGS[name]) or ""))
    assert set(inspect.signature(THINGS[name]).parameters) <= said
