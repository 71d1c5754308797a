"""How alike two texts are, told from 256 bytes of each: MinHash with one permutation, and bands to find likely pairs.

    signature(text)                       ->   128 numbers of 16 bits
    likeness(one, other)                  ->   about the share of pieces of five bytes that both texts have
    bands(signature, *plan(0.8))          ->   texts that are at least so alike share one of these, 99 times in 100

Every piece of a text is hashed once; the hash says in which of 128 bins it falls, and the lowest of each bin stays. A
bin without any borrows from another, in an order that is the same for every text ("optimal densification").
"""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from operator import eq
from zlib import crc32

BINS = 128
SIZE = 2 * BINS  # bytes of a signature
_PIECE = 5  # bytes of a text that are hashed together
_MIX, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1
_FOUND = 0.99  # of the pairs at the threshold, how many must share a band
_LONGEST = 100_000  # bytes of a text that are looked at
_LAYOUT = struct.Struct(f"<{BINS}H")
_BLANK = re.compile(r"\s+")


def _orders() -> list[list[int]]:
    drawn = random.Random(BINS)  # only to be the same everywhere
    return [drawn.sample(range(BINS), BINS) for _ in range(BINS)]


_ORDERS = _orders()


def signature(text: str) -> bytes:
    """Texts that differ in case and blanks alone have the same one."""
    plain = _BLANK.sub(" ", text.casefold()).strip().encode("utf-8", "surrogatepass")[:_LONGEST]
    lowest: dict[int, int] = {}
    for piece in {plain[at : at + _PIECE] for at in range(max(1, len(plain) - _PIECE + 1))}:
        mixed = crc32(piece) * _MIX & _MASK
        at, value = mixed >> 57, mixed >> 41 & 0xFFFF
        if value < lowest.get(at, 0x10000):
            lowest[at] = value
    return _LAYOUT.pack(*[lowest[at] if at in lowest else _borrowed(lowest, at) for at in range(BINS)])


def _borrowed(lowest: dict[int, int], at: int) -> int:
    return next(lowest[other] for other in _ORDERS[at] if other in lowest)


def likeness(one: bytes, other: bytes) -> float:
    """From 0 to 1; wrong by about 0.04."""
    same: int = sum(map(eq, _LAYOUT.unpack(one), _LAYOUT.unpack(other)))
    return same / BINS


def plan(threshold: float) -> tuple[int, int]:
    """How many bands of how many numbers find nearly every pair that is so alike, and few others."""
    found = [(BINS // rows, rows) for rows in range(1, 33) if _chance(threshold, BINS // rows, rows) >= _FOUND]
    return found[-1] if found else (BINS, 1)


def _chance(alike: float, count: int, rows: int) -> float:
    """That two texts which are so alike have a band in common."""
    return float(1 - (1 - alike**rows) ** count)


def bands(signed: bytes, count: int, rows: int) -> Iterator[bytes]:
    wide = 2 * rows
    return (signed[at * wide : at * wide + wide] for at in range(count))
