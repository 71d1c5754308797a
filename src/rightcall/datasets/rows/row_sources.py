"""Which files hold rows, and what kind each of them is, told by its name.

sources_of(["logs/*.jsonl", "more.csv.gz"])
sources_of(["-"], rows_as="jsonl")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from rightcall.datasets.rows.stores import STDIN, store_of
from rightcall.errors import CallerError
from rightcall.extras import needs

Kind = Literal["jsonl", "csv", "parquet"]
Packing = Literal["", "gz", "zst"]
KINDS: dict[str, Kind] = {"jsonl": "jsonl", "ndjson": "jsonl", "csv": "csv", "parquet": "parquet"}
PACKINGS: dict[str, Packing] = {"gz": "gz", "zst": "zst"}
WORDS = tuple(kind + packing for kind in KINDS for packing in ("", ".gz", ".zst"))


class RowSource(msgspec.Struct, frozen=True):
    """A file of rows: its name (`-` is standard input), what is in it, and how it is packed."""

    path: str
    kind: Kind = "jsonl"
    packing: Packing = ""

    @property
    def name(self) -> str:
        """As a message calls it."""
        return "standard input" if self.path == STDIN else self.path

    @property
    def can_be_cut(self) -> bool:
        """Can a worker begin anywhere in it?"""
        return self.kind == "jsonl" and not self.packing and self.path != STDIN


def sources_of(paths: Sequence[str], *, rows_as: str | None = None) -> list[RowSource]:
    """The files that these names and globs say, in this order. Raises `CallerError` for a glob that fits nothing and
    for a kind that is not known, `MissingExtra` for one that needs a package.

    - `rows_as`: the kind of standard input, and of names that do not end in one: `jsonl`, `csv.gz` ...
    """
    found = [source_of(each, rows_as) for path in paths for each in _named(path)]
    if any(each.kind == "parquet" or each.packing == "zst" for each in found):
        needs("parquet")
    return found


def _named(path: str) -> list[str]:
    names = store_of(path).matching(path)
    if not names:
        raise CallerError(f"no file fits {path!r}; name files that are there")
    return names


def source_of(path: str, rows_as: str | None = None) -> RowSource:
    """One file. Its name counts first, then what was told."""
    told = _kind(path.rpartition("/")[2]) if path != STDIN else None
    told = told or (_kind(f".{rows_as}") if rows_as else None)
    if told is None:
        raise CallerError(_unknown(path, rows_as))
    return RowSource(path, *told)


def _kind(name: str) -> tuple[Kind, Packing] | None:
    stem, _, last = name.lower().rpartition(".")
    packing = PACKINGS.get(last, "")
    if packing:
        last = stem.rpartition(".")[2]
    kind = KINDS.get(last)
    return None if kind is None else (kind, packing)


def _unknown(path: str, rows_as: str | None) -> str:
    if rows_as:
        return f"{rows_as!r} is no kind of rows; it is one of {', '.join(WORDS)}"
    name = "standard input" if path == STDIN else repr(path)
    return f"cannot tell what {name} holds; say it with --rows-as (jsonl, csv, parquet, each also with .gz or .zst)"
