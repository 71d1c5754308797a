"""Outputs kept so that a model can read on where an envelope was cut.

    pages = Pages()
    tools = Toolset(my_tools, pages.tool())
    await dispatch(calls, tools, limits=RunLimits(result=Bounds(pages=pages)))

Only what the model may see is kept: redaction has been done. The oldest outputs go first when there is no more room.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, BinaryIO

import msgspec

from rightcall.dispatching.bounded_output import BoundedOutput, Bounds, Omitted, PageToken, Place, cut, size
from rightcall.dispatching.redact import steps
from rightcall.types import Tool

_DESCRIPTION = "Reads on where a result was cut. Send a page token exactly as a result showed it."
_WRAPPING = 512


class Pages:
    """Outputs kept so that a model can read on where they were cut. Belongs to one conversation: every token that it
    gave is good for it. Safe to share between threads.

    - `most_bytes`: how much is kept; the oldest outputs go first.
    """

    def __init__(self, *, most_bytes: int = 64_000_000) -> None:
        self._most, self._used, self._made = most_bytes, 0, 0
        self._kept: OrderedDict[str, tuple[Any, Bounds, int]] = OrderedDict()
        self._lock = threading.Lock()

    def new_key(self) -> str:
        """A name for the next output to keep. `dispatch` asks for it."""
        with self._lock:
            self._made += 1
            return f"r{self._made}"

    def keep(self, key: str, whole: Any, bounds: Bounds) -> None:
        """Keeps the `whole` of an output under its `key`, to be read on within `bounds`. `dispatch` does it."""
        used = size(whole)
        with self._lock:
            self._kept[key] = (whole, bounds, used)
            self._used += used
            while self._used > self._most and len(self._kept) > 1:
                self._used -= self._kept.popitem(last=False)[1][2]

    def read(self, token: str) -> BoundedOutput:
        """The next piece that this `token` stands for: text from where it was cut, or the items after the last one
        given. Raises ValueError."""
        found = PageToken.read(token.strip())
        if found is None or found.at < 0:
            raise ValueError("this is no page token; send one exactly as a result showed it")
        kept = self._kept.get(found.of)
        if kept is None:
            raise ValueError("what this page token belongs to is no longer kept; call the tool again")
        whole, bounds, _ = kept
        return _piece(_at(whole, found.pointer), found, bounds)

    def tool(self, name: str = "read_more") -> Tool:
        """The tool that redeems page tokens, under this `name`."""
        return Tool(
            name=name,
            description=_DESCRIPTION,
            parameters={
                "type": "object",
                "properties": {"token": {"type": "string", "description": "The page token."}},
                "required": ["token"],
                "additionalProperties": False,
            },
            read_only=True,
            run=self._read_more,
        )

    async def _read_more(self, token: str) -> BoundedOutput:
        return self.read(token)


def _at(value: Any, pointer: str) -> Any:
    for step in steps(pointer):
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, ValueError, TypeError):
            raise ValueError("this page token points at nothing; send one exactly as a result showed it") from None
    return value


def _piece(value: Any, token: PageToken, bounds: Bounds) -> BoundedOutput:
    """Text is given without gaps, so that pieces can be put together; arrays go on at the next item."""
    place = Place(token.of, token.pointer, token.at)
    inner = msgspec.structs.replace(
        bounds, total_bytes=max(bounds.total_bytes - _WRAPPING, _WRAPPING), redaction=None, spill=None
    )
    if not isinstance(value, str):
        return cut(value[token.at :] if isinstance(value, list) else value, inner, place)
    rest = value[token.at :]
    piece = rest[: min(bounds.string_chars, inner.total_bytes // 6)]  # a character has at most six bytes in JSON
    if len(piece) == len(rest):
        return BoundedOutput(piece)
    following = PageToken(token.pointer, "string_chars", bounds.string_chars, token.of, token.at + len(piece))
    left = Omitted(token.pointer, "string_chars", str(following))
    return BoundedOutput(piece, omitted_chars=len(rest) - len(piece), omitted=(left,), redeemable=True)


def spill_to(file: BinaryIO) -> Callable[[str], str]:
    """For `Bounds.spill`: appends each output to the open `file`, and names the bytes it has there."""

    def spill(text: str) -> str:
        start = file.tell()
        file.write(text.encode() + b"\n")
        file.flush()
        return f"{getattr(file, 'name', 'the spill file')} (bytes {start}-{file.tell() - 1})"

    return spill
