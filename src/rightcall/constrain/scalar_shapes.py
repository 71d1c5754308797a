"""What the keywords of texts and numbers say, as shapes; how long a thing may be is said here too.

{"type": "integer", "minimum": 0}  ->  Number(integer=True, low=0)
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rightcall.constrain.string_formats import FORMAT_PATTERNS
from rightcall.schema.pattern_size import pattern_size
from rightcall.shapes.intersect import Intersection, number_shape
from rightcall.shapes.patterns import Irregular, read_pattern
from rightcall.shapes.value_shapes import NOTHING, Number, Shape, TextShape
from rightcall.types import Json

MAX_DIGITS = 40  # of a bound
PATTERN_SHARE = 64  # bytes of a compiled pattern that count as a shape
MAX_COUNT = 2_000  # engines refuse counted repeats beyond this
_BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
_NUMBER_WORDS = frozenset((*_BOUNDS, "multipleOf"))
_ANY_INTEGER, _ANY_NUMBER = (number_shape(Number(integer, None, None, False, False)) for integer in (True, False))


class ScalarShapes(Intersection):
    """Reads texts, numbers and counts."""

    formats = False  # whether `format` is asserted

    def count(self, schema: Json, word: str, path: str) -> int | None:
        """A count that engines can repeat."""
        value = schema.get(word)
        if value is None:
            return None
        value = int(value)
        if value > MAX_COUNT:
            self.limit(f"{path}/{word}", word, f"any count beyond {MAX_COUNT}" if word.startswith("max") else "fewer")
            return None if word.startswith("max") else MAX_COUNT
        return value

    def text(self, schema: Json, path: str) -> Shape:
        least, most = self.count(schema, "minLength", path) or 0, self.count(schema, "maxLength", path)
        if most is not None and least > most:
            return NOTHING
        pattern, word = schema.get("pattern"), "pattern"
        if pattern is None and self.formats and schema.get("format") in FORMAT_PATTERNS:
            pattern, word = FORMAT_PATTERNS[schema["format"]], "format"
        if pattern is None:
            return TextShape(least, most)
        self.left -= pattern_size(pattern) // PATTERN_SHARE
        if self.left < 0:
            self.limit(f"{path}/{word}", word, "any text: the patterns are beyond the size a grammar is made for")
            return TextShape(least, most)
        try:
            node = read_pattern(pattern)
        except Irregular as why:
            self.limit(f"{path}/{word}", word, f"any text: {why}")
            return TextShape(least, most)
        return self.patterned(node, least, most, path)

    def number(self, schema: Json, path: str, integer: bool) -> Shape:
        if _NUMBER_WORDS.isdisjoint(schema):
            return _ANY_INTEGER if integer else _ANY_NUMBER
        bounds = {word: schema[word] for word in _BOUNDS if word in schema and self.bounded(schema[word], word, path)}
        low, low_open = _end(bounds.get("minimum"), bounds.get("exclusiveMinimum"), max)
        high, high_open = _end(bounds.get("maximum"), bounds.get("exclusiveMaximum"), min)
        step_ = schema.get("multipleOf")
        if step_ is not None:
            whole = Decimal(repr(step_)) if isinstance(step_, float) else Decimal(step_)
            if whole == 1:
                integer = True
            else:
                self.limit(f"{path}/multipleOf", "multipleOf", "any number within the bounds")
                integer = integer or whole == whole.to_integral_value()
        return number_shape(Number(integer, low, high, low_open, high_open))

    def bounded(self, value: float, word: str, path: str) -> bool:
        """Has this bound few enough digits to be written out?"""
        small = abs(value) < 10**MAX_DIGITS and (isinstance(value, int) or len(f"{_decimal(value):f}") <= MAX_DIGITS)
        if not small:
            self.limit(f"{path}/{word}", word, "any number: the bound has too many digits")
        return small


def _end(inside: Any, outside: Any, tighter: Any) -> tuple[Decimal | None, bool]:
    """The tighter of an end that belongs to the range and one that does not."""
    if inside is None or outside is None:
        one = inside if outside is None else outside
        return (None, False) if one is None else (_decimal(one), inside is None)
    within, beyond = _decimal(inside), _decimal(outside)
    best = tighter(within, beyond)
    return best, beyond == best


def _decimal(value: float) -> Decimal:
    return Decimal(value) if isinstance(value, int) else Decimal(repr(value))
