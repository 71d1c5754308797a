"""Tables of the outcomes, and the figures that must not get worse."""

from __future__ import annotations

from report import ROOT, Figure, figures_table, percent, table

from damaged.count import Outcomes
from damaged.made import WAYS
from damaged.wires import WIRES

RATCHET = ROOT / "evals" / "damaged" / "ratchet.json"


def figures(outcomes: Outcomes) -> list[Figure]:
    total = outcomes.total()
    found = [
        Figure("damaged calls that run with other arguments", outcomes.total("other", "silent"), total, at_most=0),
        Figure("damaged calls that run as they were meant", outcomes.total("right"), total),
    ]
    for way in WAYS:
        of = sum([number for (name, _), number in outcomes.ways.items() if name == way])
        found.append(Figure(f"mended: {way}", outcomes.ways[way, "right"], of))
    return found


def text(outcomes: Outcomes) -> str:
    total = outcomes.total()
    ways = len({name for name, _ in outcomes.ways})
    section = f"""
## Damaged calls

Written by `make damage FLAGS=--write`. {total:,} calls of made-up tools, damaged in {ways} ways, written as
{len(WIRES)} wires do ({", ".join([f"`{wire.name}`" for wire in WIRES])}; `repair` is a provider's argument text), and
read with the policy `safe`. *Right* is a call that runs as it was meant. *Well formed* is damage that leaves a text
which is valid as it stands and says something else, such as a number that lost a digit: no structure is repaired, and
no parser can tell.

{figures_table(figures(outcomes)[:2])}

{_outcomes(outcomes)}

By repair rule and kind: what ran with it, and what the guesses that `safe` does not make would have been worth.

{_rules(outcomes)}
"""
    return section.strip()


def _outcomes(outcomes: Outcomes) -> str:
    rows = []
    for way in WAYS:
        got = [outcomes.ways[way, outcome] for outcome in ("right", "refused", "valid")]
        wrong = outcomes.ways[way, "other"] + outcomes.ways[way, "silent"]
        of = sum(got) + wrong
        if of:
            rows.append((way, f"{of:,}", percent(got[0] / of), f"{got[1]:,}", f"{got[2]:,}", wrong))
    return table(("way", "calls", "right", "refused", "well formed", "other arguments"), rows)


def _rules(outcomes: Outcomes) -> str:
    rows = []
    for rule in sorted({name for name, _ in outcomes.rules}):
        got = [outcomes.rules[rule, outcome] for outcome in ("right", "other", "guessed right", "guessed other")]
        rows.append((rule, *[f"{number:,}" for number in got]))
    return table(("rule", "right", "other arguments", "not made: right", "not made: other"), rows)
