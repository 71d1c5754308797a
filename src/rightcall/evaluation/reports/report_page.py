"""A report of logged replies, as a page, as JSON data, and its headline for the terminal."""

from __future__ import annotations

from itertools import pairwise

import msgspec

from rightcall.evaluation.reports.findings import Finding, meaning
from rightcall.evaluation.reports.log_changes import ALL, LogComparison, RateChange
from rightcall.evaluation.reports.reply_samples import ReplySample
from rightcall.evaluation.reports.reply_tally import MEASURES, GroupKey, ReplyGroup, ReplyTally, Share
from rightcall.evaluation.webpage import (
    BarChart,
    BarCharts,
    BarRow,
    Cell,
    FigureTile,
    FigureTiles,
    Headline,
    IntervalCell,
    NamedCell,
    PageColumn,
    PagePart,
    PageRate,
    PageSample,
    PageTable,
    SampleCard,
    SampleCards,
    SamplePiece,
    StripPiece,
    Tone,
    ToneCell,
    WebPage,
)
from rightcall.safe_text import percent
from rightcall.types import Json

# The measures: the title of the column, its meaning, and its colour where the count is not zero.
LABELS: dict[str, str] = {
    "may_run": "may run",
    "as_written": "as written",
    "repaired": "repaired",
    "refused": "refused",
    "near": "near-calls",
    "cut": "cut off",
    "leaked": "leaked",
    "calling": "with a call",
    "troubled": "in trouble",
}
HINTS: dict[str, str] = {
    "may_run": "Calls that are complete and pass every check, of all calls",
    "as_written": "Runnable calls that are unchanged, of all calls",
    "repaired": "Runnable calls that were repaired, of all calls",
    "refused": "Rejected calls, of all calls",
    "near": "Replies whose text looks like a call but is not one, of all replies",
    "cut": "Replies that are truncated, or are an error, of all replies",
    "leaked": "Replies with markers or calls in their text that a server should have removed, of all replies",
    "calling": "Replies with at least one call, of all replies",
    "troubled": "Replies with a rejected call, a near-call or a leak, or that are truncated",
}
TONES: dict[str, Tone] = {
    "may_run": "good",
    "as_written": "good",
    "repaired": "fair",
    "refused": "bad",
    "near": "bad",
    "cut": "bad",
    "leaked": "bad",
}
KINDS = ("refused", "repaired", "near", "cut", "leaked")
COLUMNS = ("may_run", "repaired", "refused", "near", "cut", "leaked")


def page_rate(share: Share, measure: str = "") -> PageRate:
    """Return a share as a rate of a page, in the colour of the measure."""
    low, high = share.interval
    return PageRate(share.rate, low, high, share.whole, TONES.get(measure, "plain"))


def format_interval(share: Share) -> str:
    """Return the interval of a rate as text."""
    low, high = share.interval
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def group_name(key: GroupKey) -> tuple[str, str]:
    """Return two texts for a group: its model, or a note that it has no name, and its server and format, "no call" for
    none."""
    return key.model or "(no model named)", " · ".join([name for name in (key.server, key.format or "no call") if name])


def change_name(change: RateChange) -> str:
    return f"{LABELS[change.measure]}: {change.name}" if change.name else LABELS[change.measure]


def ranked_findings(group: ReplyGroup, kind: str) -> list[tuple[Finding, Share]]:
    """Return the findings of a kind, the most frequent first, each with its share of the calls or of the replies, as
    `MEASURES` defines for the kind."""
    found = [finding for finding in group.found if finding.kind == kind]
    found.sort(key=lambda finding: (-group.found[finding], finding.name))
    return [(finding, group.finding_share(finding)) for finding in found]


# -- the headline ------------------------------------------------------------------------------------------------------


def report_headline(tally: ReplyTally, comparison: LogComparison | None = None) -> Headline:
    """Return the headline of a report: the share of runnable calls, or that there are none, with notes; with a
    comparison, the first note says what changed."""
    total = tally.total
    calls, replies = total.counts["calls"], total.counts["replies"]
    notes = [] if comparison is None else [_comparison_note(comparison)]
    if not calls:
        near = total.counts["near"]
        says = f"calls in {format_count(replies, 'reply', 'replies')}"
        notes.append(
            f"{format_count(near, 'reply', 'replies')} nearly hold one." if near else "Nothing in them looks like one."
        )
        return Headline("No", says, (*notes, *_bad_line_notes(tally)))
    may_run, as_written = total.share("may_run"), total.share("as_written")
    repaired = total.counts["repaired"]
    notes.append(f"95 % interval: {format_interval(may_run)}.")
    if repaired:
        notes.append(
            f"{percent(as_written.rate)} are right as written; repair saved {format_count(repaired, 'more', 'more')}."
        )
    notes += [*_main_cause_notes(total), *_worst_group_notes(tally), *_bad_line_notes(tally)]
    strip = [
        StripPiece(LABELS[name], total.share(name).rate, total.counts[name], TONES[name])
        for name in ("as_written", "repaired", "refused")
    ]
    return Headline(
        percent(may_run.rate),
        f"of {format_count(calls, 'call', 'calls')} may run",
        tuple(notes),
        tuple(strip),
    )


def format_count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _comparison_note(comparison: LogComparison) -> str:
    """Return a sentence with the numbers of significantly worse and better rates and the first of them, worse before
    better; or that there are none."""
    worse, better = comparison.of("worse"), comparison.of("better")
    if not worse and not better:
        return "Nothing got better or worse by more than chance explains."
    numbers = ", ".join([f"{len(found)} {word}" for found, word in ((worse, "worse"), (better, "better")) if found])
    first = next((change for change in (*worse, *better) if change.scope == ALL), (*worse, *better)[0])
    of = "" if first.scope == ALL else f" of {first.scope}"
    rates = f"{percent(first.before.rate)} → {percent(first.after.rate)}"
    return f"Since the log before: {numbers}. First of all {change_name(first)}{of}: {rates}."


def _main_cause_notes(total: ReplyGroup) -> list[str]:
    """Return a list with one sentence that names the most frequent problem of rejected calls; [] if no call was
    rejected."""
    causes = ranked_findings(total, "refused")
    if not causes:
        return []
    finding, share = causes[0]
    return [f"Most refused: {finding.name} ({format_count(share.part, 'call', 'calls')}, {percent(share.rate)})."]


def _worst_group_notes(tally: ReplyTally) -> list[str]:
    """Return a list with one sentence that names the group with the lowest rate of runnable calls, of those whose 95 %
    interval is below the total rate. Return [] if there are none, or fewer than two groups have calls."""
    total = tally.total.share("may_run").rate
    groups = [(key, group.share("may_run")) for key, group in tally.groups.items() if group.counts["calls"]]
    below = [(share.rate, key) for key, share in groups if share.interval[1] < total]
    if len(groups) < 2 or not below:
        return []
    rate, key = min(below)
    return [f"Lowest: {', '.join(group_name(key))} with {percent(rate)}."]


def _bad_line_notes(tally: ReplyTally) -> list[str]:
    return [f"{format_count(tally.bad, 'line holds', 'lines hold')} no reply."] if tally.bad else []


assert set(MEASURES) == set(LABELS) == set(HINTS)


KIND = "report"
_MAX_BARS, _MAX_CARDS, _MAX_CHANGES = 12, 120, 200
_TITLES = {
    "refused": "Refused, by problem",
    "repaired": "Repaired, by rule",
    "near": "Nearly a call",
    "cut": "Cut off or failed",
    "leaked": "Leaked into the text",
}
_VERDICTS: dict[str, tuple[Tone, float]] = {
    "worse": ("bad", 0.0),
    "better": ("good", 1.0),
    "changed": ("fair", 2.0),
    "same": ("plain", 3.0),
}


def report_page(tally: ReplyTally, title: str, *, comparison: LogComparison | None = None, old: str = "") -> WebPage:
    """Return the report of a tally as a `WebPage`, which is rendered as HTML or in the terminal. With a comparison, the
    changes since the log named `old` come after the figures and before the other tables."""
    total = tally.total
    parts: list[PagePart] = [_figure_tiles(total)]
    if comparison is not None:
        parts += _change_tables(comparison, old)
    parts += [_group_table(tally), _finding_charts(total), _sample_cards(tally)]
    return WebPage(KIND, title, report_headline(tally, comparison), tuple(parts), _footnotes(comparison))


def _footnotes(comparison: LogComparison | None) -> tuple[str, ...]:
    """Return the footnotes of a report: how rates and samples are made, and with a comparison how it is tested."""
    lines = [
        "Rates of calls are parts of all calls, those of replies of all replies. Intervals are Wilson's, of 95 %; a "
        "thin line over a bar shows one.",
        "Samples are chosen at random, short ones first. Text that looks like a secret is masked. Samples are real: "
        "share this page only with those who may read the log.",
    ]
    if comparison is not None:
        lines.insert(1, f"{len(comparison.changes)} comparisons; {_CORRECTED}")
    return tuple(lines)


_CORRECTED = (
    "each p value is corrected for their number (Holm), so that all verdicts hold together with 95 %. "
    "Fisher's exact test where numbers are small, else the z test of two proportions."
)


def _figure_tiles(total: ReplyGroup) -> FigureTiles:
    """Return tiles for a report: the numbers of replies and calls, and each rate with its interval."""
    tiles = [FigureTile("replies", f"{total.counts['replies']:,}", f"{total.counts['calls']:,} calls in them")]
    for name in COLUMNS:
        share = total.share(name)
        note = f"{share.part:,} · {format_interval(share)}" if share.whole else "nothing to count"
        tone = TONES[name] if share.part and name not in ("may_run",) else "plain"
        tiles.append(FigureTile(LABELS[name], percent(share.rate) if share.whole else "–", note, tone))
    return FigureTiles(tuple(tiles))


def _group_table(tally: ReplyTally) -> PageTable:
    """Return the table with a row for each group (model, server and format), the largest first."""
    columns = [PageColumn("model, server, format"), PageColumn("replies"), PageColumn("calls")]
    columns += [PageColumn(LABELS[name], HINTS[name]) for name in COLUMNS]
    rows = [_group_row(key, group) for key, group in tally.largest()]
    return PageTable("By model, server and format", tuple(columns), tuple(rows))


def _group_row(key: GroupKey, group: ReplyGroup) -> tuple[Cell, ...]:
    """Return the table row of a group."""
    rates = [page_rate(group.share(name), name) for name in COLUMNS]
    return NamedCell(*group_name(key)), group.counts["replies"], group.counts["calls"], *rates


def _finding_charts(total: ReplyGroup) -> BarCharts:
    return BarCharts(tuple([_finding_chart(total, kind) for kind in KINDS if ranked_findings(total, kind)]))


def _finding_chart(total: ReplyGroup, kind: str) -> BarChart:
    """Return a bar chart of the findings of one `kind`, the most frequent first; those beyond the twelfth are only
    counted."""
    found = ranked_findings(total, kind)
    rows = [
        BarRow(finding.name, page_rate(share, kind), f"{share.part:,}", meaning(finding.name), _pick(finding))
        for finding, share in found[:_MAX_BARS]
    ]
    of = "calls" if kind in ("refused", "repaired") else "replies"
    more = f"and {len(found) - _MAX_BARS} more, in --json" if len(found) > _MAX_BARS else ""
    return BarChart(_TITLES[kind], tuple(rows), f"share of all {of}, and how many", more)


def _pick(finding: Finding) -> str:
    return f"{LABELS[finding.kind]}:{finding.name}"


# -- samples -----------------------------------------------------------------------------------------------------------


def _sample_cards(tally: ReplyTally) -> SampleCards:
    """Return the section of a report with samples: a card for each finding of each group, at most `_MAX_CARDS`, with a
    note about others."""
    cards = [
        _sample_card(key, group, finding) for kind in KINDS for key, group, finding in _sampled_findings(tally, kind)
    ]
    left = len(cards) - _MAX_CARDS
    note = f"the most frequent {_MAX_CARDS}; {left} more in --json" if left > 0 else ""
    return SampleCards("Samples", tuple(cards[:_MAX_CARDS]), note)


def _sampled_findings(tally: ReplyTally, kind: str) -> list[tuple[GroupKey, ReplyGroup, Finding]]:
    """Return the findings of a kind that have samples, each with the key and the group in which it was found, the most
    frequent first."""
    found = [
        (key, group, finding) for key, group in tally.largest() for finding in group.samples if finding.kind == kind
    ]
    return sorted(found, key=lambda each: -each[1].found[each[2]])


def _sample_card(key: GroupKey, group: ReplyGroup, finding: Finding) -> SampleCard:
    """Return the card of a finding in one group: its kind, name, meaning, frequency and samples."""
    share = group.finding_share(finding)
    source = f"{' · '.join(group_name(key))} · {share.part:,} of {share.whole:,}"
    samples = tuple([page_sample(sample) for sample in group.samples[finding]])
    return SampleCard(LABELS[finding.kind], finding.name, meaning(finding.name), source, samples, TONES[finding.kind])


def page_sample(sample: ReplySample) -> PageSample:
    """Return a sample for a page: its text in pieces, each in one span and inside or outside the finding."""
    start, end = sample.found
    pieces: list[SamplePiece] = []
    for span in sample.spans:
        edges = sorted({span.start, span.end, *[each for each in (start, end) if span.start < each < span.end]})
        pieces += [
            SamplePiece(sample.text[left:right], span.kind, start <= left < end) for left, right in pairwise(edges)
        ]
    is_end = start == end or (not sample.after and sample.cut)
    return PageSample(tuple(pieces), sample.place, sample.says, sample.before, sample.after, is_end)


# -- changes -----------------------------------------------------------------------------------------------------------

_CHANGE_COLUMNS = (
    PageColumn("what"),
    PageColumn("verdict"),
    PageColumn("before"),
    PageColumn("now"),
    PageColumn("points", "The difference in percentage points"),
    PageColumn("p", "Corrected for the number of comparisons (Holm)"),
)


def _change_tables(comparison: LogComparison, old: str) -> list[PagePart]:
    """Return two tables of a comparison with the log `old`: significant changes and the rates of all replies; and,
    folded, the other rates."""
    first = [change for change in comparison.changes if change.verdict != "same" or _is_total(change)]
    rest = [change for change in comparison.changes if change.verdict == "same" and not _is_total(change)]
    first.sort(key=lambda change: _VERDICTS[change.verdict][1])
    rows, more = [tuple([_change_row(change) for change in changes]) for changes in (first, rest[:_MAX_CHANGES])]
    title = f"{len(rest)} more rates that differ by no more than chance explains"
    return [
        PageTable("What changed", _CHANGE_COLUMNS, rows, f"compared with {old}"),
        PageTable(title, _CHANGE_COLUMNS, more, folded=True),
    ]


def _is_total(change: RateChange) -> bool:
    return change.scope == ALL and not change.name


def _change_row(change: RateChange) -> tuple[Cell, ...]:
    """Return the table row of a rate's change between two logs: name and scope, verdict, rates before and now, points,
    p value."""
    tone, order = _VERDICTS[change.verdict]
    points = ToneCell(f"{change.points:+.1f}", tone, change.points)
    p = ToneCell("< 0.001" if change.p < 0.001 else f"{change.p:.3f}", "plain", change.p)
    rates = [IntervalCell(page_rate(share)) for share in (change.before, change.after)]
    return NamedCell(change_name(change), change.scope), ToneCell(change.verdict, tone, order), *rates, points, p


def report_json(tally: ReplyTally, comparison: LogComparison | None = None) -> Json:
    """Return the whole report as JSON data: all counts with rates and intervals, and the samples."""
    top = report_headline(tally, comparison)
    data: Json = {
        "headline": f"{top.figure} {top.says}",
        "notes": list(top.notes),
        "bad_lines": tally.bad,
        "total": _group_json(tally.total, samples=False),
        "groups": [{**key._asdict(), **_group_json(group, samples=True)} for key, group in tally.largest()],
    }
    if comparison is not None:
        data["changes"] = [_change_json(change) for change in comparison.changes]
    return data


def _share_json(share: Share) -> Json:
    """Return a share as a JSON object: count, of, rate, and low and high of the 95 % interval. If the whole is 0, the
    rate is 0 and the interval 0 to 1."""
    low, high = share.interval
    return {"count": share.part, "of": share.whole, "rate": share.rate, "low": low, "high": high}


def _group_json(group: ReplyGroup, *, samples: bool) -> Json:
    """Return the rates and findings of a group as JSON data; with `samples`, also the samples of each finding."""
    data: Json = {"replies": group.counts["replies"], "calls": group.counts["calls"]}
    data |= {measure: _share_json(group.share(measure)) for measure in MEASURES}
    data["findings"] = [
        {
            **finding._asdict(),
            **_share_json(share),
            "meaning": meaning(finding.name),
            **({"samples": list(map(_sample_json, group.samples.get(finding, ())))} if samples else {}),
        }
        for kind in KINDS
        for finding, share in ranked_findings(group, kind)
    ]
    return data


def _sample_json(sample: ReplySample) -> Json:
    """Return a sample as JSON data: its place in the log, message, text, spans, and how many characters were left out
    on each side."""
    return {
        "path": sample.path,
        "line": sample.line,
        "says": sample.says,
        "text": sample.text,
        "found": list(sample.found),
        "spans": msgspec.to_builtins(sample.spans),
        "left_out": [sample.before, sample.after],
    }


def _change_json(change: RateChange) -> Json:
    """Return the change of a rate as JSON data: scope, measure, name, shares before and now, points, p value, test and
    verdict."""
    return {
        "scope": change.scope,
        "measure": change.measure,
        "name": change.name,
        "before": _share_json(change.before),
        "now": _share_json(change.after),
        "points": change.points,
        "p": change.p,
        "test": change.test,
        "verdict": change.verdict,
    }
