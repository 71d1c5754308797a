"""What a provider's answer is made of, whatever the dialect: the values between a dialect and `assemble`.

    {"choices": [{"delta": {"content": "Hi"}}]}  ->  [(0, Said("Hi"))]

The number is the choice (or candidate) that the delta belongs to.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rightcall.types import Json

Slot = int | str


class Said(msgspec.Struct, frozen=True):
    """A piece of the answer's text."""

    text: str


class Thought(msgspec.Struct, frozen=True):
    """A piece of reasoning."""

    text: str


class Beside(msgspec.Struct, frozen=True):
    """A field of a native call that is not known. `inner`: it stands where only name and arguments do, so that the
    model and not the server has written it."""

    key: str
    value: Any
    inner: bool


class DeltaPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a native call. What the wire did not say is empty.

    `slot` is where the provider counts the call. A `whole` piece is a call of its own, a piece that is `all` has the
    final argument text whatever came before, `draft` is used if no argument text comes. `parsed` arguments are a
    server's writing of what the model wrote: that they are whole JSON does not say that the call was. `ended` is the
    provider's own word for it. `fault` is code and message of what made the entry unusable.
    """

    slot: Slot | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""
    draft: str = ""
    custom: bool = False
    whole: bool = False
    all: bool = False
    parsed: bool = False
    ended: bool = False
    fault: tuple[str, str] | None = None
    beside: tuple[Beside, ...] = ()


class End(msgspec.Struct, frozen=True):
    """Nothing more comes for the call in this slot."""

    slot: Slot | None


class Stop(msgspec.Struct, frozen=True):
    """The provider said how the answer ended, in the words of `finish_of`."""

    finish: str


class Fault(msgspec.Struct, frozen=True):
    """Something is wrong with the answer as such."""

    code: str
    message: str
    blocking: bool = True


class Loss(Fault, frozen=True):
    """Something of the answer was lost, so that the end of any of its choices may be missing."""


def unknown_fields(fields: Json, known: frozenset[str], *, inner: bool) -> tuple[Beside, ...]:
    """The fields of a call, or of its function, that are not known. Null says nothing."""
    if fields.keys() <= known:
        return ()
    return tuple([Beside(key, value, inner) for key, value in fields.items() if key not in known and value is not None])


Delta = Said | Thought | DeltaPiece | End | Stop | Fault
Deltas = list[tuple[int, Delta]]


def of_choice(deltas: Deltas, number: int) -> list[Delta]:
    """Those of one choice of an answer."""
    return [delta for each, delta in deltas if each == number]


# What a stream has already shown, for the dialects that say things twice. Each dialect keeps its own keys here.
Seen = dict[Any, Any]
