"""Figures, the ratchet that fails when one of them gets worse, and the page that shows them."""

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
FIRST = "eval"  # the part that comes first on the page
_PART = re.compile(r"<!-- part: (\w+) -->\n.*?<!-- end: \1 -->\n", re.S)


class Figure(msgspec.Struct, frozen=True):
    """`count` of `of`. Lower is better if there is an `at_most` target, otherwise higher is better."""

    name: str
    count: int
    of: int
    at_least: float | None = None
    at_most: float | None = None

    @property
    def rate(self) -> float:
        return self.count / self.of if self.of else 0.0

    @property
    def is_missed(self) -> bool:
        low = self.at_least is not None and self.rate < self.at_least
        return low or (self.at_most is not None and self.rate > self.at_most)

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f"at least {percent(self.at_least)}"
        return f"at most {percent(self.at_most)}" if self.at_most is not None else ""

    def worse_than(self, count: int, of: int) -> bool:
        """Compare exactly, without rounding."""
        difference = self.count * of - count * self.of
        return difference > 0 if self.at_most is not None else difference < 0


class Section(msgspec.Struct, frozen=True):
    title: str
    text: str
    figures: tuple[Figure, ...]


def percent(rate: float) -> str:
    """Format with two digits, but never 100 % for less than all and never 0 % for more than none."""
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
    """Return the 95 % confidence interval of a rate: Wilson's interval, which is valid for few cases too."""
    if not of:
        return 0.0, 1.0
    rate, spread = count / of, z * z / of
    middle = (rate + spread / 2) / (1 + spread)
    half = z * math.sqrt(rate * (1 - rate) / of + spread / of / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def keep_part(name: str, text: str) -> None:
    """Replace one program's part of the page. The programs that write the page preserve such parts."""
    begin, end = f"<!-- part: {name} -->\n", f"<!-- end: {name} -->\n"
    before, _, rest = PAGE.read_text("utf-8").partition(begin)
    after = rest.partition(end)[2]
    PAGE.write_text(f"{before.rstrip()}\n\n{begin}\n{text.strip()}\n\n{end}{after}", "utf-8")


def parts(*, first: bool) -> str:
    """Return the parts that other programs wrote into the page: the first one, or the others."""
    page_text = PAGE.read_text("utf-8") if PAGE.exists() else ""
    return "".join([f"\n{piece.group()}" for piece in _PART.finditer(page_text) if (piece[1] == FIRST) is first])


def page(title: str, head: str, sections: Iterable[Section]) -> str:
    section_texts = [
        f"## {s.title}\n\n{s.text}\n\n{figures_table(s.figures)}".replace("\n\n\n", "\n\n") for s in sections
    ]
    beginning = f"{title.strip()}\n{parts(first=True)}"
    return "\n\n".join([beginning.strip(), head.strip(), *section_texts]) + "\n" + parts(first=False)


def ratchet(path: Path = RATCHET) -> dict[str, tuple[int, int]]:
    """Return the best measured figures so far: count and cases of each."""
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def faults(figures: Sequence[Figure], path: Path = RATCHET) -> list[str]:
    """Return the figures that miss their target, are worse than the ratchet allows, or are missing."""
    best = ratchet(path)
    found = [f"{f.name}: {percent(f.rate)} misses its target, {f.target}" for f in figures if f.is_missed]
    for figure in figures:
        count, of = best.get(figure.name, (0, 0))
        if of and figure.worse_than(count, of):
            found.append(f"{figure.name}: {percent(figure.rate)} is worse than {percent(count / of)}")
    return found + [f"{name}: is not measured any more" for name in best.keys() - {f.name for f in figures}]


def tighten(figures: Sequence[Figure], path: Path = RATCHET) -> None:
    """Write the figures that are not worse to the ratchet. To accept a worse figure or to drop one, edit the file."""
    best = ratchet(path)
    best_figures = {
        f.name: best[f.name] if f.name in best and f.worse_than(*best[f.name]) else (f.count, f.of) for f in figures
    }
    lines = [f"  {json.dumps(name)}: [{count}, {of}]" for name, (count, of) in {**best, **best_figures}.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
