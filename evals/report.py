"""Figures, the ratchet that lets none of them get worse, and the page that shows them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
RATCHET = ROOT / "evals" / "ratchet.json"
PAGE = ROOT / "docs" / "results.md"


class Figure(msgspec.Struct, frozen=True):
    """`count` of `of`. Less is better where the target is `at_most` so much, else more."""

    name: str
    count: int
    of: int
    at_least: float | None = None
    at_most: float | None = None

    @property
    def rate(self) -> float:
        return self.count / self.of if self.of else 0.0

    @property
    def missed(self) -> bool:
        low = self.at_least is not None and self.rate < self.at_least
        return low or (self.at_most is not None and self.rate > self.at_most)

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f"at least {percent(self.at_least)}"
        return f"at most {percent(self.at_most)}" if self.at_most is not None else ""

    def worse_than(self, count: int, of: int) -> bool:
        """Exactly, without rounding."""
        difference = self.count * of - count * self.of
        return difference > 0 if self.at_most is not None else difference < 0


class Section(msgspec.Struct, frozen=True):
    title: str
    text: str
    figures: tuple[Figure, ...]


def percent(rate: float) -> str:
    """Two digits, but never 100 % for less than all and never 0 % for more than none."""
    text = f"{rate * 100:.2f}"
    if (text == "100.00" and rate < 1) or (text == "0.00" and rate > 0):
        text = f"{rate * 100:.4f}"
    return f"{text.rstrip('0').rstrip('.')} %"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(["| " + " | ".join([str(cell) for cell in line]) + " |" for line in lines])


def figures_table(figures: Iterable[Figure]) -> str:
    rows = [(f.name, percent(f.rate), f"{f.count:,} of {f.of:,}", f.target) for f in figures]
    return table(("figure", "rate", "cases", "target"), rows)


def page(head: str, sections: Iterable[Section]) -> str:
    parts = [f"## {s.title}\n\n{s.text}\n\n{figures_table(s.figures)}".replace("\n\n\n", "\n\n") for s in sections]
    return "\n\n".join([head.strip(), *parts]) + "\n"


def ratchet() -> dict[str, tuple[int, int]]:
    """The best that was measured so far: of each figure, count and cases."""
    return json.loads(RATCHET.read_text("utf-8")) if RATCHET.exists() else {}


def faults(figures: Sequence[Figure]) -> list[str]:
    """What missed its target, got worse than the ratchet allows, or is gone."""
    best = ratchet()
    found = [f"{f.name}: {percent(f.rate)} misses its target, {f.target}" for f in figures if f.missed]
    for figure in figures:
        count, of = best.get(figure.name, (0, 0))
        if of and figure.worse_than(count, of):
            found.append(f"{figure.name}: {percent(figure.rate)} is worse than {percent(count / of)}")
    return found + [f"{name}: is not measured any more" for name in best.keys() - {f.name for f in figures}]


def tighten(figures: Sequence[Figure]) -> None:
    """The ratchet takes over what is not worse. To let a figure get worse, or to drop one, edit the file."""
    best = ratchet()
    kept = {
        f.name: best[f.name] if f.name in best and f.worse_than(*best[f.name]) else (f.count, f.of) for f in figures
    }
    lines = [f"  {json.dumps(name)}: [{count}, {of}]" for name, (count, of) in {**best, **kept}.items()]
    RATCHET.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
