"""What an annotation says that is no type: its description, and whether null is allowed.

city: Annotated[str, "Where to look"]   ->   "Where to look"
"""

from __future__ import annotations

import types
import typing
from typing import Any


def described(hint: Any) -> str:
    """The text in `Annotated`, as it is or in a `Doc("text")` or a `Meta(description="text")`; "" if there is none."""
    for note in getattr(hint, "__metadata__", ()):
        text = note if isinstance(note, str) else getattr(note, "documentation", getattr(note, "description", None))
        if isinstance(text, str):
            return text
    return ""


def allows_none(hint: Any) -> bool:
    if hint in (Any, None, type(None), object):
        return True
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return allows_none(inner[0])
    if origin is typing.Literal:
        return None in inner
    return origin in (typing.Union, types.UnionType) and any(map(allows_none, inner))
