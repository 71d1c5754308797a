"""A report as JSON data, for programs: everything that is counted, with its rates and intervals, and the samples."""

from __future__ import annotations

import msgspec

from rightcall.evaluation.reports.findings import meaning
from rightcall.evaluation.reports.log_changes import Comparison, RateChange
from rightcall.evaluation.reports.reply_samples import ReplySample
from rightcall.evaluation.reports.reply_tally import MEASURES, ReplyGroup, ReplyTally, Share
from rightcall.evaluation.reports.report_words import KINDS, headline, ordered
from rightcall.types import Json


def report_json(tally: ReplyTally, comparison: Comparison | None = None) -> Json:
    """The whole report."""
    top = headline(tally, comparison)
    told: Json = {
        "headline": f"{top.figure} {top.says}",
        "notes": list(top.notes),
        "bad_lines": tally.bad,
        "total": _group(tally.total, samples=False),
        "groups": [{**key._asdict(), **_group(group, samples=True)} for key, group in tally.largest()],
    }
    if comparison is not None:
        told["changes"] = [_change(change) for change in comparison.changes]
    return told


def _share(share: Share) -> Json:
    low, high = share.interval
    return {"count": share.part, "of": share.whole, "rate": share.rate, "low": low, "high": high}


def _group(group: ReplyGroup, *, samples: bool) -> Json:
    told: Json = {"replies": group.counts["replies"], "calls": group.counts["calls"]}
    told |= {measure: _share(group.share(measure)) for measure in MEASURES}
    told["findings"] = [
        {
            **finding._asdict(),
            **_share(share),
            "meaning": meaning(finding.name),
            **({"samples": list(map(_sample, group.samples.get(finding, ())))} if samples else {}),
        }
        for kind in KINDS
        for finding, share in ordered(group, kind)
    ]
    return told


def _sample(sample: ReplySample) -> Json:
    return {
        "path": sample.path,
        "line": sample.line,
        "says": sample.says,
        "text": sample.text,
        "found": list(sample.found),
        "spans": msgspec.to_builtins(sample.spans),
        "left_out": [sample.before, sample.after],
    }


def _change(change: RateChange) -> Json:
    return {
        "scope": change.scope,
        "measure": change.measure,
        "name": change.name,
        "before": _share(change.before),
        "now": _share(change.after),
        "points": change.points,
        "p": change.p,
        "test": change.test,
        "verdict": change.verdict,
    }
