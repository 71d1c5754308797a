"""What an annotation means: a JSON Schema for the model, and a reader that makes the function's value of JSON.

    meaning = Meanings().of(date)
    meaning.schema                  # {"format": "date", "type": "string"}
    meaning.read("2026-05-17")      # date(2026, 5, 17), or `Misfit` is raised

A reader takes what JSON has, and values that are of the type already. It never takes a text for a number: JSON has
numbers, and the schema says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any, NamedTuple

from rightcall.types import Json

MOST_FAULTS = 5

Read = Callable[[Any], Any]


class Meaning(NamedTuple):
    """`keys` are the names of the fields, where the value is a class that has some."""

    schema: Json
    read: Read
    keys: Set[str] = frozenset()


class ValueFault(NamedTuple):
    """One thing that is wrong with a value: where in it, and in words that go after the place."""

    code: str
    said: str
    steps: tuple[str | int, ...] = ()


class Misfit(Exception):
    """A value that cannot be what the annotation says."""

    def __init__(self, faults: Iterable[ValueFault]) -> None:
        self.faults = tuple(dict.fromkeys(faults))[:MOST_FAULTS]
        super().__init__(self.faults)

    def within(self, step: str | int) -> list[ValueFault]:
        """The same faults, seen from further outside."""
        return [ValueFault(code, said, (step, *steps)) for code, said, steps in self.faults]


class Unsayable(Exception):
    """An annotation that JSON Schema has no words for. `cure` where there is a better one than another type; `place` is
    the field that has it (`Stay.arrival`), if it is one of a class."""

    place = ""

    def __init__(self, hint: Any, cause: str = "", cure: str = "") -> None:
        self.hint, self.cause, self.cure = hint, cause, cure
        super().__init__(hint, cause, cure)


class NeedsPydantic(Exception):
    """An annotation that only pydantic understands: a model of its, a field, a validator."""


def wrong_type(said: str) -> Misfit:
    return Misfit([ValueFault("wrong_type", said)])


def invalid(said: str) -> Misfit:
    return Misfit([ValueFault("invalid_argument", said)])


def read_each(read: Read, values: Iterable[Any]) -> list[Any]:
    """Every item read; what is wrong with several of them is told together."""
    made: list[Any] = []
    faults: list[ValueFault] = []
    for at, value in enumerate(values):
        try:
            made.append(read(value))
        except Misfit as misfit:
            faults += misfit.within(at)
            if len(faults) >= MOST_FAULTS:
                break
    if faults:
        raise Misfit(faults)
    return made


def copied(value: Any) -> Any:
    """What a tool does to its arguments must not change the call they came from."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value
