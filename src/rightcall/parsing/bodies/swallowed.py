"""A bare value that swallowed an argument: its close and the opening tag of the next were both damaged.

    owl</paramter>\\n<paramete=n>3     owl\\n<parameter name="n3     owl</parameter>\\nn3     owl\\nn">3

Only a declared argument that the call does not have can have been swallowed. Its name in a value is one only beside
what is left of a tag, so that values about tags, or in HTML, are carried as before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from string import punctuation
from typing import Any

from rightcall.formats.spec import Params, alternatives
from rightcall.parsing.bodies.tagged_values import swallowed
from rightcall.parsing.bodies.tags import Tags
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import alt, longest_first
from rightcall.schema.places import Kind

Search = Callable[[str], Iterator[re.Match[str]]]
_SURE = 4  # so much of a tag tells it from other text
_LEFT = 0.6  # of the pairs of letters in a tag: so many are left where it lost two characters
_KEY = r"([\w.$\-]{1,64}+)"
_TEXT = r"[^\"'<>=\n]{1,256}+"
_BREAKS = r"[\r\n]{0,4}+"
_BLANKS = ("", " ", "\t", "\r", "\n")
_SIGNS = frozenset(punctuation) - {"_"}
_MOST = 1_024  # places in one value that are looked at


class Swallowed:
    """Looks for one in the values of a call."""

    def __init__(self, body: Params, tags: Tags) -> None:
        params = [text.partition("{key}") for text in longest_first(body.param)]
        heads = dict.fromkeys([before.partition("{")[0].rstrip() for before, _, _ in params])
        tails = dict.fromkeys([behind.partition("{")[0].rstrip() for _, _, behind in params])
        self._signs = sorted(set("".join([*heads, *tails])) & _SIGNS)
        self._heads = [_Head(head, tuple(filter(None, tails))) for head in heads if len(head) > _SURE]
        self._piece = _any_of([piece for head in self._heads for piece in head.thirds])
        self._without_tags = re.compile(alt(*tags.whole_params, *tags.closers, *tags.shuts).whole).sub
        closes = [f"{close.whole}{_BREAKS}" for close in tags.closers]
        self._behind_close = _any(closes)
        self._torn = _any([head.torn for head in self._heads])
        # The tag's name, and the key after other characters than it should have.
        starts = {re.split(r"[\s=>\"']", head)[0] for head in heads}
        names = [re.escape(start) for start in starts if len(start) >= 2 * _SURE]
        self._like = _any([rf"{name}(?:\W{{1,3}}(?:name|key))?\W{{1,3}}{_KEY}" for name in names])
        # Another tag, or most of an opening tag, right after the value's close.
        pieces = "|".join([re.escape(piece) for head in self._heads for piece in head.thirds])
        self._reopened = _any([rf"{close}\s{{0,8}}+(?:<|\S{{0,8}}?(?:{pieces}))" for close in closes] if pieces else [])
        self._lines = _any([f"(?m:^){_KEY}{re.escape(tail)}" for tail in tails if tail])
        # Where no line break stands between arguments, the key stands right behind the value.
        inline = [tail for tail in tails if tail[:1] == '"'] if "\n" not in alternatives(body.value_close)[0] else []
        quoted = [f"(?m:^|>|</)({_TEXT}){re.escape(tail)}" for tail in inline]
        self._texts = _any(quoted + [f'{close}(<(?!/){_TEXT})[">]' for close in closes])

    def tell(self, p: CallBuilder, values: dict[str, Any]) -> None:
        """Says which of these values of a call seems to hold an argument that is declared and not given."""
        call = p.call
        assert call is not None
        for key, value in values.items():
            # In most values no sign of a tag stands.
            is_signed = type(value) is str and any(map(value.__contains__, self._signs))
            if is_signed and (self._is_torn(value) if p.tools is None else self._is_holder(value, values, call.kinds)):
                p.problem("ambiguous_end", *swallowed(key, "another argument"), call=call.index)
                return

    def _is_holder(self, text: str, values: dict[str, Any], kinds: dict[str, Kind]) -> bool:
        if any(found[found.lastindex or 0] in kinds for found in self._like(text)) or next(self._reopened(text), None):
            return True
        missing = tuple([key for key in kinds if key and key not in values])
        return bool(missing) and self._holds(text, missing)

    def _is_torn(self, text: str) -> bool:
        """Where no tools are known: does an opening tag stand in it that lost one character, or its end?"""
        has_piece = next(self._piece(text), None) is not None
        return has_piece and next(self._torn(self._without_tags("\n", text)), None) is not None

    def _holds(self, text: str, missing: tuple[str, ...]) -> bool:
        """Does a key stand where a line begins, before what its tag goes on with? Or behind any text, before the end of
        a quotation that nothing opened, or in a tag right behind the value's close? Or right behind that close?"""
        return (
            any(found[found.lastindex or 0] in missing for found in self._lines(text))
            or any(found[found.lastindex or 0].endswith(missing) for found in self._texts(text))
            or any(text.startswith(missing, found.end()) for found in self._behind_close(text))
            or (next(self._piece(text), None) is not None and self._holds_damaged(text, missing))
        )

    def _holds_damaged(self, text: str, missing: tuple[str, ...]) -> bool:
        """Does what is left of an opening tag stand before a key? A whole tag is dealt with where the value ends."""
        text = self._without_tags("\n", text)  # what is whole is not left of another tag
        places = islice(((at, key) for key in missing for at in _places(text, key)), _MOST)
        return any(head.is_left_at(text, at, key) for at, key in places for head in self._heads)


class _Head:
    """How an argument's opening tag begins, and how it may go on behind its key."""

    def __init__(self, text: str, tails: tuple[str, ...]) -> None:
        self._size, self._tails, self._sign = len(text), tails, text[0]
        self._pairs = list(dict.fromkeys([text[i : i + 2] for i in range(len(text) - 1)]))
        self._least = _LEFT * len(self._pairs)
        self.torn = f"{re.escape(text[0])}{_one_missing(text[1:-1])}{re.escape(text[-1])}\\w|{re.escape(text)}\\w"
        third = (len(text) + 2) // 3
        self.thirds = [text[i : i + third] for i in range(0, len(text), third)]  # one is whole where two signs are lost

    def is_left_at(self, text: str, at: int, key: str) -> bool:
        """Does most of it stand right before this key, and its first sign or what the tag goes on with too? A word that
        is like a tag's name is none:  the parameter type"""
        before = text[max(0, at - self._size) : at]
        if before[-1:] in _BLANKS or not (self._sign in before or text.startswith(self._tails, at + len(key))):
            return False
        return len([pair for pair in self._pairs if pair in before]) >= self._least


def _places(text: str, key: str) -> Iterator[int]:
    at = text.find(key)
    while at >= 0:
        yield at
        at = text.find(key, at + 1)


def _any(sources: list[str]) -> Search:
    return re.compile("|".join(sources)).finditer if sources else lambda text: iter(())


def _any_of(texts: list[str]) -> Search:
    return _any([re.escape(text) for text in texts])


def _one_missing(text: str) -> str:
    """A pattern of the text without one of its characters."""
    found = ""
    for i in range(len(text) - 2, -1, -1):
        found = f"(?:{re.escape(text[i + 1 :])}|{re.escape(text[i])}{found})"
    return found
