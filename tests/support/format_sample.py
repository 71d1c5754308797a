"""One format of each shape for the products of `make test`; `make sweep` runs the same tests over all other formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable
from typing import Any, NamedTuple

import pytest

from rightcall import Format
from rightcall.formats import FORMATS

SWEEP = os.environ.get("RIGHTCALL_SWEEP") == "1"


class Shape(NamedTuple):
    """The parts of a format that the parser compiles into different states. Formats of one shape share their code."""

    bodies: tuple[str, ...]
    section: bool
    reasoning: bool
    channels: bool
    ends: bool


def shape_of(format: Format) -> Shape:
    return Shape(
        bodies=tuple([type(body).__name__ for body in format.bodies]),
        section=format.section is not None,
        reasoning=format.reasoning is not None,
        channels=format.channels is not None,
        ends=bool(format.ends),
    )


def one_per_shape(names: Iterable[str]) -> list[str]:
    """Return the first of `names` of each shape."""
    found: dict[Shape, str] = {}
    for name in names:
        found.setdefault(shape_of(FORMATS[name]), name)
    return list(found.values())


def sampled(values: Iterable[Any] = FORMATS, format_of: Callable[[Any], str] = str) -> list[Any]:
    """Return the values of one parameter: those of one format per shape, or all values in a sweep.

    In a sweep the values that `make test` leaves out have the mark `sweep`, so that `-m sweep` selects exactly them.
    A value whose name is no format, such as "auto", is always kept.
    """
    return sampled_rows([(value,) for value in values], lambda row: format_of(row[0]))


def selected(values: Iterable[Any], kept: Container[Any]) -> list[Any]:
    """Return the values of a parameter that is no format. Those that are not in `kept` have the mark `sweep`."""
    return [value if value in kept else pytest.param(value, marks=pytest.mark.sweep) for value in values]


def sampled_rows(rows: Iterable[tuple[Any, ...]], format_of: Callable[[Any], str] = lambda row: row[0]) -> list[Any]:
    """Return the rows of several parameters, chosen as `sampled` chooses values. The first is the format's name."""
    every = [(row, format_of(row)) for row in rows]
    chosen = one_per_shape(name for _, name in every if name in FORMATS)
    parameters = []
    for row, name in every:
        if name in chosen or name not in FORMATS:
            parameters.append(pytest.param(*row))
        elif SWEEP:
            parameters.append(pytest.param(*row, marks=pytest.mark.sweep))
    return parameters
