"""The tables of what became of damaged calls, and the figures that may not get worse."""

from __future__ import annotations

from report import ROOT, Figure, figures_table, percent, table

from damaged.count import Counted
from damaged.made import WAYS
from damaged.wires import WIRES

RATCHET = ROOT / "evals" / "damaged" / "ratchet.json"


def figures(counted: Counted) -> list[Figure]:
    total = counted.total()
    made = [
        Figure("damaged calls that run with other arguments", counted.total("other", "silent"), total, at_most=0),
        Figure("damaged calls that run as they were meant", counted.total("right"), total),
    ]
    for way in WAYS:
        of = sum([number for (name, _), number in counted.ways.items() if name == way])
        made.append(Figure(f"mended: {way}", counted.ways[way, "right"], of))
    return made


def text(counted: Counted) -> str:
    total = counted.total()
    ways = len({name for name, _ in counted.ways})
    shown = f"""
## Damaged calls

Written by `make damage FLAGS=--write`. {total:,} calls of made-up tools, damaged in {ways} ways, written as
{len(WIRES)} wires do ({", ".join([f"`{wire.name}`" for wire in WIRES])}; `repair` is a provider's argument text), and
read with the policy `safe`. *Right* is a call that runs as it was meant. *Well formed* is damage that leaves a text
which is valid as it stands and says something else, such as a number that lost a digit: no structure is repaired, and
no parser can tell.

{figures_table(figures(counted)[:2])}

{_outcomes(counted)}

By repair rule and kind: what ran with it, and what the guesses that `safe` does not make would have been worth.

{_rules(counted)}
"""
    return shown.strip()


def _outcomes(counted: Counted) -> str:
    rows = []
    for way in WAYS:
        got = [counted.ways[way, outcome] for outcome in ("right", "refused", "valid")]
        wrong = counted.ways[way, "other"] + counted.ways[way, "silent"]
        of = sum(got) + wrong
        if of:
            rows.append((way, f"{of:,}", percent(got[0] / of), f"{got[1]:,}", f"{got[2]:,}", wrong))
    return table(("way", "calls", "right", "refused", "well formed", "other arguments"), rows)


def _rules(counted: Counted) -> str:
    rows = []
    for rule in sorted({name for name, _ in counted.rules}):
        got = [counted.rules[rule, outcome] for outcome in ("right", "other", "guessed right", "guessed other")]
        rows.append((rule, *[f"{number:,}" for number in got]))
    return table(("rule", "right", "other arguments", "not made: right", "not made: other"), rows)
