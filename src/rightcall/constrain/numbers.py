"""Numbers between bounds as text:  1..120  ->  [1-9] | [1-9][0-9] | 1[01][0-9] | 120

Integers have no leading zeros, decimals any number of digits. Exponents, which JSON writers use for very small and very
large numbers, are allowed for numbers that those writers write with one.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

from rightcall.constrain.algebra import DIGIT, EMPTY, NEVER, Lexeme, Lit, Node, alt, chars, maybe, repeat, seq

_NONZERO = chars((0x31, 0x39))
_SIGN = maybe(Lit("-"))
_EXPONENTS = ((-324, -5), (16, 307))  # with these JSON writers write an exponent
_LARGE = Decimal("1e308")


def digits(least: int, most: int | None) -> Node:
    """Return the node of `least` to `most` digits (None: no upper limit)."""
    return repeat(DIGIT, least, most)


def _digits_of_fraction(most: int | None) -> Node:
    """Return the node of at least one digit and at most `most` (None: no limit)."""
    return repeat(DIGIT, 1, most)


def natural(most: int | None = None) -> Node:
    """Return the node of natural numbers, 0 included, without leading zeros, of at most `most` digits (None: no
    limit)."""
    return alt(Lit("0"), seq(_NONZERO, digits(0, None if most is None else most - 1)))


def _any_exponent() -> Node:
    """Return the node of an exponent, `e` or `E` included, up to 307, since larger numbers are not finite; down to
    -399, where numbers become 0."""
    two, sign = repeat(DIGIT, 1, 2), maybe(Lit("+"))
    up = seq(sign, alt(two, seq(chars("12"), DIGIT, DIGIT), seq(Lit("30"), chars((0x30, 0x37)))))
    down = seq(Lit("-"), alt(two, seq(chars("123"), DIGIT, DIGIT)))
    return seq(chars("eE"), alt(up, down))


_MORE = repeat(DIGIT)
# The last power of ten that still has finite numbers, up to the largest of them.
_TOP_PARTS = alt(
    seq(chars((0x30, 0x36)), _MORE),
    seq(Lit("7"), maybe(seq(chars((0x30, 0x38)), _MORE))),
    seq(Lit("79"), maybe(seq(chars((0x30, 0x36)), _MORE))),
    seq(Lit("797"), maybe(seq(chars((0x30, 0x35)), _MORE))),
    Lit("7976931348623157"),
)
_TOP = seq(Lit("1"), maybe(seq(Lit("."), _TOP_PARTS)), Lit("e+308"))


def any_integer(most: int | None = None, *, point: bool = False) -> Node:
    """Return the node of any integer, also -0, of at most `most` digits (None: no limit); with `point` it may be
    written 3.0."""
    return Lexeme(seq(_SIGN, natural(most), maybe(Lit(".0")) if point else EMPTY))


def any_number(most: int | None = None) -> Node:
    """Return the node of any finite number, also with an exponent; `most` limits the digits before and those after the
    point (None: no limit)."""
    plain = seq(natural(most), maybe(seq(Lit("."), _digits_of_fraction(most))))
    short = seq(DIGIT, maybe(seq(Lit("."), _digits_of_fraction(most))), _any_exponent())
    return Lexeme(seq(_SIGN, alt(plain, short, _TOP)))


# -- whole numbers -----------------------------------------------------------------------------------------------------


@lru_cache(1024)
def integers(low: int | None, high: int | None, most: int | None = None, *, point: bool = False) -> Node:
    """Return the node of the integers from `low` to `high` (None: no bound), with 0 also as -0; `NEVER` if there are
    none. `most` limits the digits where there is no bound. With `point` they may be written 3.0."""
    below = _non_negative_integers(None if high is None else -high, None if low is None else -low, most)
    above = _non_negative_integers(low, high, most)
    found = alt(seq(Lit("-"), below), above)
    return NEVER if found == NEVER else Lexeme(seq(found, maybe(Lit(".0")) if point else EMPTY))


def _non_negative_integers(low: int | None, high: int | None, most: int | None) -> Node:
    """Return the node of the integers of the range that are not negative; `NEVER` if there are none."""
    return NEVER if high is not None and high < 0 else _naturals(max(low or 0, 0), high, most)


def _naturals(low: int, high: int | None, most: int | None = None) -> Node:
    """Return the node of the natural numbers from `low` to `high`; `NEVER` if there are none. If `high` is None, there
    is no upper bound but at most `most` digits (None: no limit)."""
    if high is None:
        size = len(str(low))
        more = None if most is None else max(most - 1, size)
        return alt(_naturals(low, 10**size - 1), seq(_NONZERO, digits(size, more)))
    if low > high:
        return NEVER
    a, b = str(low), str(high)
    parts = []
    for size in range(len(a), len(b) + 1):
        first = a if size == len(a) else "1" + "0" * (size - 1)
        last = b if size == len(b) else "9" * size
        parts.append(_digits_of_same_length(first, last))
    return alt(*parts)


def _digits_of_same_length(low: str, high: str) -> Node:
    """Return the node of the digit strings from `low` to `high`, which have the same length; the empty sequence for
    empty ones."""
    if not low:
        return EMPTY
    if low[0] == high[0]:
        return seq(Lit(low[0]), _digits_of_same_length(low[1:], high[1:]))
    rest = len(low) - 1
    first_digit, last_digit = int(low[0]), int(high[0])
    parts: list[Node] = []
    if low[1:] != "0" * rest:
        parts.append(seq(Lit(low[0]), _digits_of_same_length(low[1:], "9" * rest)))
        first_digit += 1
    last: list[Node] = []
    if high[1:] != "9" * rest:
        last.append(seq(Lit(high[0]), _digits_of_same_length("0" * rest, high[1:])))
        last_digit -= 1
    if first_digit <= last_digit:
        parts.append(seq(chars((48 + first_digit, 48 + last_digit)), digits(rest, rest)))
    return alt(*parts, *last)


# -- decimals ----------------------------------------------------------------------------------------------------------


def _mantissa_of(value: Decimal) -> Decimal:
    """Return a number scaled by a power of ten to one digit before the point."""
    return value.scaleb(-value.adjusted())


@lru_cache(64)
def _exponents_between(first: int, last: int) -> Node:
    """Return the node of the exponents from `first` to `last`, which have the same sign, with `e` and the sign; a
    single digit may have a leading zero. `NEVER` if there are none."""
    if first > last:
        return NEVER
    low, high = sorted((abs(first), abs(last)))
    sizes = [(2, 1, 99), (3, 100, 999)] if high > 9 else [(2, 1, 9)]
    sizes += [(1, 1, 9)] if low < 10 else []
    parts = [
        _digits_of_same_length(f"{max(low, least):0{size}}", f"{min(high, most):0{size}}")
        for size, least, most in sizes
        if max(low, least) <= min(high, most)
    ]
    return seq(Lit("e-" if first < 0 else "e+"), alt(*parts))


class Range:
    """The non-negative numbers from `low` to `high`, as text. An `open` bound is excluded, None is no bound, and
    `most` limits the digits after the point."""

    def __init__(self, low: Decimal, high: Decimal | None, low_open: bool, high_open: bool, most: int | None) -> None:
        self.low, self.high, self.low_open, self.high_open, self.most = low, high, low_open, high_open, most

    def node(self) -> Node:
        """Return the node of all numbers of the range, without an exponent and, where JSON writers use one, with it;
        `NEVER` if the range is empty."""
        if self.high is not None and (
            self.low > self.high or (self.low == self.high and (self.low_open or self.high_open))
        ):
            return NEVER
        return alt(self._plain(), *self._with_exponent())

    def _plain(self) -> Node:
        """Return the node of the numbers of the range that are written without an exponent."""
        whole, part = _split_decimal(self.low)
        if self.high is None:
            rest = seq(_naturals(whole + 1, None, self.most), self._any_fraction())
            return alt(seq(Lit(str(whole)), self._fraction_from(part, self.low_open)), rest)
        top, end = _split_decimal(self.high)
        if whole == top:
            return seq(Lit(str(whole)), self._fraction_between(part, end))
        between = seq(_naturals(whole + 1, top - 1), self._any_fraction()) if whole + 1 <= top - 1 else NEVER
        return alt(
            seq(Lit(str(whole)), self._fraction_from(part, self.low_open)),
            between,
            seq(Lit(str(top)), self._fraction_up_to(end, self.high_open)),
        )

    def _with_exponent(self) -> list[Node]:
        """Return a list of nodes that together match the numbers of the range written with an exponent, in the two
        spans of exponents in which JSON writers use one."""
        found = [self._with_exponents(*exponents) for exponents in _EXPONENTS]
        return [*found, _TOP] if self.high is None and self.low <= _LARGE else found

    def _with_exponents(self, first: int, last: int) -> Node:
        """Return the node of the numbers of the range with an exponent from `first` to `last`: any digits for an
        exponent strictly inside the range, limited ones for the exponents of its bounds."""
        bottom = self.low.adjusted() if self.low else first - 1
        top = last + 1 if self.high is None else self.high.adjusted() if self.high else first - 1
        start, stop = Decimal(1), Decimal(10)
        parts = [seq(_NONZERO, self._any_fraction(), _exponents_between(max(first, bottom + 1), min(last, top - 1)))]
        if first <= bottom <= last:
            same = bottom == top
            end, is_open = (_mantissa_of(self.high), self.high_open) if same and self.high else (stop, True)
            inside = Range(_mantissa_of(self.low), end, self.low_open, is_open, self.most)._plain()
            parts.append(seq(inside, _exponents_between(bottom, bottom)))
        if self.high is not None and first <= top <= last and top > bottom:
            inside = Range(start, _mantissa_of(self.high), False, self.high_open, self.most)._plain()
            parts.append(seq(inside, _exponents_between(top, top)))
        return alt(*parts)

    def _any_fraction(self) -> Node:
        """Return the node of any fraction with its point, or nothing."""
        return maybe(seq(Lit("."), _digits_of_fraction(self.most)))

    def _any_digits(self) -> Node:
        """Return the node of any digits at the end of a fraction, or none."""
        return digits(0, self.most)

    def _fraction_from(self, part: str, is_open: bool) -> Node:
        """Return the node of a fraction, with its point, of at least `.part`, or greater if `is_open`. It may be
        missing if `part` is empty and included."""
        if not part and not is_open:
            return self._any_fraction()
        return seq(Lit("."), self._digits_above(part, is_open))

    def _digits_above(self, part: str, is_open: bool) -> Node:
        """Return the node of the digits of a fraction of at least `.part`; greater than it if `is_open`. They may be
        none if `part` is empty and included."""
        if not part:
            return seq(repeat(Lit("0"), 0, self.most), _NONZERO, self._any_digits()) if is_open else self._any_digits()
        head = int(part[0])
        same = seq(Lit(part[0]), self._digits_above(part[1:], is_open))
        return alt(same, seq(chars((49 + head, 57)), self._any_digits())) if head < 9 else same

    def _fraction_up_to(self, part: str, is_open: bool) -> Node:
        """Return the node of an optional fraction, with its point, of at most `.part`, or less if `is_open`; `NEVER` if
        `part` is empty and excluded."""
        if not part:
            return NEVER if is_open else maybe(seq(Lit("."), repeat(Lit("0"), 1, self.most)))
        return maybe(seq(Lit("."), self._digits_below(part, is_open, first=True)))

    def _digits_below(self, part: str, is_open: bool, first: bool = False) -> Node:
        """Return the node of the digits of a fraction of at most `.part`; less than it if `is_open`. `NEVER` if `part`
        is empty and excluded."""
        if not part:
            return NEVER if is_open else repeat(Lit("0"), 0, self.most)
        head = int(part[0])
        rest = self._digits_below(part[1:], is_open)
        if part[1:]:
            rest = maybe(rest)
        same = seq(Lit(part[0]), rest)
        return alt(seq(chars((48, 47 + head)), self._any_digits()), same) if head else same

    def _fraction_between(self, low: str, high: str) -> Node:
        """Return the node of a fraction, with its point, from `.low` to `.high`, each excluded if that bound of the
        range is open. It may be missing if `low` is empty and included."""
        if not low and not self.low_open:
            return self._fraction_up_to(high, self.high_open)
        return seq(Lit("."), self._digits_between(low, high))

    def _digits_between(self, low: str, high: str) -> Node:
        """Return the node of the digits of a fraction from `.low` to `.high`, each excluded if that bound of the range
        is open; `NEVER` if there are none."""
        if not high:
            return NEVER if self.high_open or low or self.low_open else repeat(Lit("0"), 0, self.most)
        first, last = int(low[:1] or "0"), int(high[0])
        if first == last:
            if not low and not self.low_open and not first:
                return seq(Lit("0"), maybe(self._digits_below(high[1:], self.high_open)))
            inner = self._digits_between(low[1:], high[1:])
            return seq(Lit(str(first)), inner)
        middle = seq(chars((49 + first, 47 + last)), self._any_digits()) if last - first > 1 else NEVER
        lower = seq(Lit(str(first)), self._digits_above(low[1:], self.low_open))
        rest = self._digits_below(high[1:], self.high_open)
        upper = seq(Lit(str(last)), maybe(rest) if high[1:] else rest)
        return alt(lower, middle, upper)


def _split_decimal(value: Decimal) -> tuple[int, str]:
    """Return the integer part of a non-negative number, and the digits of its fraction without trailing zeros."""
    whole = int(value)
    fraction = value - whole
    text = f"{fraction:f}".partition(".")[2].rstrip("0")
    return whole, text


def numbers(
    low: Decimal | None, high: Decimal | None, low_open: bool, high_open: bool, most: int | None = None
) -> Node:
    """Return the node of the numbers from `low` to `high` (None: no bound), a bound excluded if it is `open`; `NEVER`
    if there are none. An exponent is allowed only where JSON writers use one. `most` limits the digits after the point,
    and those before it where there is no bound."""
    below = _non_negative_numbers(
        None if high is None else -high, None if low is None else -low, high_open, low_open, most
    )
    above = _non_negative_numbers(low, high, low_open, high_open, most)
    found = alt(seq(Lit("-"), below), above)
    return NEVER if found == NEVER else Lexeme(found)


def _non_negative_numbers(
    low: Decimal | None, high: Decimal | None, low_open: bool, high_open: bool, most: int | None
) -> Node:
    """Return the node of the numbers from `low` to `high` (None: no bound) that are not negative, a bound excluded if
    it is `open`; `NEVER` if there are none. `most` limits the digits after the point, and those before it where there
    is no upper bound."""
    zero = Decimal(0)
    if high is not None and (high < zero or (high == zero and high_open)):
        return NEVER
    if low is None or low < zero:
        return Range(zero, high, False, high_open, most).node()
    return Range(low, high, low_open, high_open, most).node()
