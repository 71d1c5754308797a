"""How many errors may still be looked at to put arguments right, for all calls of a reply together."""

from __future__ import annotations

from rightcall.schema.limits import MOST_LOOKS_OF_A_REPLY


class Looks:
    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_LOOKS_OF_A_REPLY
