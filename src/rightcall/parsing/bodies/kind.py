"""What a body kind says of itself: how a call is read, written and constrained, by which markers it is known, and what
a format file may put into it. `BODIES` has one for each; nothing else tells one kind from another.

    class Pairs(Body, frozen=True): ...                  the data: what one format of this kind is made of
    class PairsKind(BodyKind[Pairs]): ...                what is done with it
    BODIES = {..., Pairs: PairsKind()}
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from rightcall.formats.spec import Body, Format, Marker, alternatives
from rightcall.parsing.buffer import Steps
from rightcall.parsing.call_builder import CallBuilder, Whole
from rightcall.parsing.markers import HOLES, Pat, Probe
from rightcall.repairs.envelope_repair import Sketch
from rightcall.types import Call

B = TypeVar("B", bound=Body)
Wrap = tuple[str, str, str]
KeyPair = tuple[tuple[str, ...], tuple[str, ...]]
_NAME = re.compile(HOLES["name"]).fullmatch
CALLED = re.compile(r"[^\W\d][\w.\-]{0,255}").fullmatch  # a name in front of a parenthesis


class Around(NamedTuple):
    """What of a format stands around a body: the markers that may follow its end, and those that end a turn."""

    after: list[Pat]
    turns: list[Pat]


# The calls of a block, its end, and whether it is over: else only what follows decides whether that is all.
WholeBlock = tuple[list[Whole], int, bool]
# The block that begins there, if all of it is there and as usual; what it gives is what `read` would give.
Quick = Callable[[CallBuilder, int, bool], WholeBlock | None]


class BodyReader:
    """Reads one block of calls. `begins` tells a body from its siblings, `tells` from prose behind a marker, where
    that needs more.

    `closers` are the markers that end a value or the body where values are raw text: behind a call they say that it did
    not end where it seemed to. `quick` is a short cut for whole texts that the laws hold to `read`.
    """

    begins: Probe
    tells: Probe | None = None
    closers: tuple[Pat, ...] = ()
    labels: frozenset[str] = frozenset()  # words that may stand before a call
    quick: Quick | None = None

    def read(self, p: CallBuilder, *, bare: bool) -> Steps[None]:
        """Reads the calls; `bare` says that no marker stood before them."""
        raise NotImplementedError

    def read_choice(self, p: CallBuilder, name: str) -> Steps[None]:
        """Reads the arguments of a call whose name the request said."""
        raise NotImplementedError

    def is_over(self, p: CallBuilder, end: int) -> bool:
        """Is a block over that `quick` found to end there, as far as what follows now tells?"""
        return False

    def sketch(self, p: CallBuilder, text: str, closed: bool) -> list[Sketch]:
        """The calls of a block that could not be read, read loosely; none where that does not help."""
        return []

    def tail(self, text: str, end: int) -> int:
        """Where a block ends whose last call, read loosely, ends there."""
        return end


class BodyKind(Generic[B]):
    first = ""
    """The characters that begin a block which no marker stands before; it is one only where a reply may begin."""
    holds_json = False
    """The arguments are one JSON object."""
    named_by_header = False
    """In a channel's message the header says the name, and the message is nothing but the arguments."""
    declared_only = False
    """A grammar of any arguments still needs their names: each name stands in a marker."""
    lines = False
    """Several calls stand on lines of their own, where nothing else is written between them."""
    found_on_lines = False
    """A line that is a call is one outside the blocks of a protocol too."""
    is_object = False
    """A call is one JSON object, which holds its name and its arguments."""

    def reader(self, body: B, format: Format, around: Around) -> BodyReader:
        """What reads it."""
        raise NotImplementedError

    def write(self, body: B, call: Call, arguments: str, index: int) -> str:
        """The text of one call. `arguments` is their JSON, `index` the call's place in the reply."""
        raise NotImplementedError

    def markers(self, body: B) -> tuple[Marker, ...]:
        """Every marker that it has, and other texts that mean something in it: what hostile texts are made of."""
        return ()

    def check(self, body: B, where: str, format: Format) -> None:
        """Refuses what a format file must not say."""

    # -- by which markers it is known ----------------------------------------------------------------------------------

    def opening(self, body: B) -> tuple[Marker, ...]:
        """The tags by which a call of it is found in text. The first is what stands before the arguments."""
        return ()

    def param_opening(self, body: B) -> Marker:
        """What stands before an argument whose value is raw text."""
        return ""

    def value_closing(self, body: B) -> Marker:
        """What ends a value that is raw text."""
        return ""

    def damaged(self, body: B, format: Format) -> list[Pat]:
        """Its opening tags with a character missing, where what follows leaves no doubt."""
        return []

    def closing(self, body: B) -> Marker:
        return ""

    def wrap(self, body: B) -> Wrap | None:
        """What stands before, between and after several calls in one block."""
        return None

    def keys(self, body: B) -> KeyPair | None:
        """Under which keys name and arguments stand, where a call is an object that has both; the first is written."""
        return None

    def outer(self, body: B) -> tuple[str, ...]:
        """The key of the calls, where a reply is one object with all of them; the first is written."""
        return ()

    def content_key(self, body: B) -> str:
        """The key of the text, where a reply is one object."""
        return ""

    def is_named_outside(self, body: B) -> bool:
        """Is it nothing but arguments, because a header or the request said the name?"""
        return False

    def carries_name(self, body: B, name: str) -> bool:
        """Can it write this name so that it reads back?"""
        return bool(_NAME(name))


def first(marker: Marker) -> str:
    """The one of its alternatives that is written."""
    return alternatives(marker)[0]


def filled(marker: Marker, call: Call, index: int) -> str:
    text = first(marker).replace("{name}", call.name).replace("{id}", call.id or f"call_{index}")
    return text.replace("{index}", str(index)).replace("{number}", str(index + 1))
