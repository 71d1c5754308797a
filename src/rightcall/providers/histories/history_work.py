"""One history on its way through the steps that make it fit: its messages, and what was done to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rightcall.providers.histories.history_profiles import HistoryProfile
from rightcall.types import Json


class HistoryChange(msgspec.Struct, frozen=True):
    """One thing that was put right.

    - `kind`: one word for a program.
    - `at`: the index of its message in the history that was given.
    - `message`: what was done, in words.
    """

    kind: str
    at: int
    message: str


class KeptFields(msgspec.Struct, frozen=True):
    """What a provider wants back with a call: fields of its `message`, and fields of the `call` itself."""

    message: Json = {}
    call: Json = {}


class HistoryItem:
    """A message on its way, and where it came from. `poison` is what calls of it held instead of arguments."""

    __slots__ = ("at", "message", "poison")

    def __init__(self, at: int, message: Json) -> None:
        self.at, self.message = at, message
        self.poison: dict[int, str] = {}

    def put(self, **fields: Any) -> None:
        """Sets fields in a copy: the message that was given stays as it is."""
        self.message = {**self.message, **fields}

    def drop(self, *names: str) -> None:
        self.message = {key: value for key, value in self.message.items() if key not in names}


class HistoryWork:
    """One history on its way through the steps."""

    def __init__(self, profile: HistoryProfile, kept: Mapping[str, KeptFields]) -> None:
        self.profile, self.kept = profile, kept
        self.changes: list[HistoryChange] = []
        self.ids: dict[str, str] = {}

    def tell(self, kind: str, item: HistoryItem, message: str) -> None:
        self.changes.append(HistoryChange(kind, item.at, message))
