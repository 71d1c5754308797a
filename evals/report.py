"""Figures, the ratchet that lets none of them get worse, and the page that shows them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parent.parent
RATCHET = ROOT / "evals" / "ratchet.json"
PAGE = ROOT / "docs" / "results.md"
FIRST = "eval"  # what a reader of the page wants to know
_PART = re.compile(r"<!-- part: (\w+) -->\n.*?<!-- end: \1 -->\n", re.S)


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


def wilson(count: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Between which rates the true one lies, 19 times out of 20: Wilson's interval, for few cases too."""
    if not of:
        return 0.0, 1.0
    rate, spread = count / of, z * z / of
    middle = (rate + spread / 2) / (1 + spread)
    half = z * math.sqrt(rate * (1 - rate) / of + spread / of / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def keep_part(name: str, text: str) -> None:
    """Puts one program's part into the page, in place of its last one. Whoever writes the page keeps such parts."""
    begin, end = f"<!-- part: {name} -->\n", f"<!-- end: {name} -->\n"
    before, _, rest = PAGE.read_text("utf-8").partition(begin)
    after = rest.partition(end)[2]
    PAGE.write_text(f"{before.rstrip()}\n\n{begin}\n{text.strip()}\n\n{end}{after}", "utf-8")


def parts(*, first: bool) -> str:
    """The parts that other programs have put into the page: the one that stands first, or the others."""
    kept = PAGE.read_text("utf-8") if PAGE.exists() else ""
    return "".join([f"\n{piece.group()}" for piece in _PART.finditer(kept) if (piece[1] == FIRST) is first])


def page(title: str, head: str, sections: Iterable[Section]) -> str:
    shown = [f"## {s.title}\n\n{s.text}\n\n{figures_table(s.figures)}".replace("\n\n\n", "\n\n") for s in sections]
    begins = f"{title.strip()}\n{parts(first=True)}"
    return "\n\n".join([begins.strip(), head.strip(), *shown]) + "\n" + parts(first=False)


def ratchet(path: Path = RATCHET) -> dict[str, tuple[int, int]]:
    """The best that was measured so far: of each figure, count and cases."""
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def faults(figures: Sequence[Figure], path: Path = RATCHET) -> list[str]:
    """What missed its target, got worse than the ratchet allows, or is gone."""
    best = ratchet(path)
    found = [f"{f.name}: {percent(f.rate)} misses its target, {f.target}" for f in figures if f.missed]
    for figure in figures:
        count, of = best.get(figure.name, (0, 0))
        if of and figure.worse_than(count, of):
            found.append(f"{figure.name}: {percent(figure.rate)} is worse than {percent(count / of)}")
    return found + [f"{name}: is not measured any more" for name in best.keys() - {f.name for f in figures}]


def tighten(figures: Sequence[Figure], path: Path = RATCHET) -> None:
    """The ratchet takes over what is not worse. To let a figure get worse, or to drop one, edit the file."""
    best = ratchet(path)
    kept = {
        f.name: best[f.name] if f.name in best and f.worse_than(*best[f.name]) else (f.count, f.of) for f in figures
    }
    lines = [f"  {json.dumps(name)}: [{count}, {of}]" for name, (count, of) in {**best, **kept}.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
