"""An evaluation, or what changed between two, as JSON data."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rightcall.evaluation.eval_tally import EvalTally, Step
from rightcall.evaluation.reports.reply_tally import Share
from rightcall.types import Json


def eval_json(tally: EvalTally) -> Json:
    """Every rate with its interval, every cost, and every step."""
    return {
        "configurations": {
            name: {**_rates(tally, name), "cost": msgspec.to_builtins(tally.spending(name))}
            for name in tally.configurations
        },
        "suites": {
            suite: {name: _rates(tally, name, suite) for name in tally.configurations} for suite in tally.suites
        },
        "categories": {
            f"{suite}/{category}": {name: _rates(tally, name, suite, category) for name in tally.configurations}
            for suite in tally.suites
            for category in tally.categories(suite)
        },
        "steps": steps_json(tally.steps()),
    }


def _rates(tally: EvalTally, name: str, suite: str = "", category: str = "") -> Json:
    shares: dict[str, Share] = {metric: tally.share(name, metric, suite, category) for metric in tally.metrics}
    rates = {metric: share_json(share) for metric, share in shares.items() if share.whole}
    return {"cases": len(tally.of(name, suite, category)), **rates}


def share_json(share: Share) -> Json:
    low, high = share.interval
    return {"part": share.part, "whole": share.whole, "rate": share.rate, "interval": [low, high]}


def steps_json(steps: Sequence[Step]) -> list[Json]:
    return [
        {
            "scope": step.scope,
            "metric": step.metric,
            "before": share_json(step.before),
            "after": share_json(step.after),
            "gained": step.gained,
            "lost": step.lost,
            "p": step.p,
            "verdict": step.verdict,
        }
        for step in steps
    ]
