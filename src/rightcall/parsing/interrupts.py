"""The three ways out of a call that cannot be read to its end. They never leave the engine."""

from __future__ import annotations


class NotACall(Exception):
    """What looked like the beginning of a call is text."""


class Broken(Exception):
    """The call that has begun cannot be read any further."""

    def __init__(self, code: str, message: str, path: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.path = code, message, path


def too_deep(depth: int) -> Broken:
    return Broken("too_deep", f"the arguments are nested deeper than {depth} levels; send them flatter")


def broken_by(error: Broken | RecursionError, depth: int) -> Broken:
    return error if isinstance(error, Broken) else too_deep(depth)


class Cut(Exception):
    """The text ended inside a call."""
