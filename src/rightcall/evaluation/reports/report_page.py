"""A tally as a page: headline, figures, groups, what was refused and repaired, samples; and what changed."""

from __future__ import annotations

from itertools import pairwise

from rightcall.evaluation.reports.findings import Finding, meaning
from rightcall.evaluation.reports.log_changes import ALL, Comparison, RateChange
from rightcall.evaluation.reports.reply_samples import ReplySample
from rightcall.evaluation.reports.reply_tally import GroupKey, ReplyGroup, ReplyTally
from rightcall.evaluation.reports.report_words import (
    COLUMNS,
    HINTS,
    KINDS,
    LABELS,
    TONES,
    between,
    change_name,
    group_name,
    headline,
    ordered,
    page_rate,
)
from rightcall.evaluation.webpages.page_parts import (
    BarChart,
    BarCharts,
    BarRow,
    Cell,
    FigureTile,
    FigureTiles,
    IntervalCell,
    NamedCell,
    PageColumn,
    PagePart,
    PageSample,
    PageTable,
    SampleCard,
    SampleCards,
    SamplePiece,
    Tone,
    ToneCell,
    WebPage,
)
from rightcall.safe_text import percent

KIND = "report"
_MOST_BARS, _MOST_CARDS, _MOST_CHANGES = 12, 120, 200
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


def report_page(tally: ReplyTally, title: str, *, comparison: Comparison | None = None, old: str = "") -> WebPage:
    """The page of a tally; with a comparison, what changed since the log `old` comes first."""
    total = tally.total
    parts: list[PagePart] = [_figures(total)]
    if comparison is not None:
        parts += _changes(comparison, old)
    parts += [_groups(tally), _findings(total), _samples(tally)]
    return WebPage(KIND, title, headline(tally, comparison), tuple(parts), _foot(comparison))


def _foot(comparison: Comparison | None) -> tuple[str, ...]:
    lines = [
        "Rates of calls are parts of all calls, those of replies of all replies. Intervals are Wilson's, of 95 %; a "
        "thin line over a bar shows one.",
        "Samples are chosen by lot, short ones first. What looks like a secret is covered; they are real all the same, "
        "so mail this page to those who may read the log.",
    ]
    if comparison is not None:
        lines.insert(1, f"{len(comparison.changes)} comparisons; {_CORRECTED}")
    return tuple(lines)


_CORRECTED = (
    "each p value is corrected for their number (Holm), so that all that is named better or worse is so with 95 %. "
    "Fisher's exact test where numbers are small, else the z test of two proportions."
)


def _figures(total: ReplyGroup) -> FigureTiles:
    tiles = [FigureTile("replies", f"{total.counts['replies']:,}", f"{total.counts['calls']:,} calls in them")]
    for name in COLUMNS:
        share = total.share(name)
        note = f"{share.part:,} · {between(share)}" if share.whole else "nothing to count"
        tone = TONES[name] if share.part and name not in ("may_run",) else "plain"
        tiles.append(FigureTile(LABELS[name], percent(share.rate) if share.whole else "–", note, tone))
    return FigureTiles(tuple(tiles))


def _groups(tally: ReplyTally) -> PageTable:
    columns = [PageColumn("model, server, format"), PageColumn("replies"), PageColumn("calls")]
    columns += [PageColumn(LABELS[name], HINTS[name]) for name in COLUMNS]
    rows = [_group(key, group) for key, group in tally.largest()]
    return PageTable("By model, server and format", tuple(columns), tuple(rows))


def _group(key: GroupKey, group: ReplyGroup) -> tuple[Cell, ...]:
    rates = [page_rate(group.share(name), name) for name in COLUMNS]
    return NamedCell(*group_name(key)), group.counts["replies"], group.counts["calls"], *rates


def _findings(total: ReplyGroup) -> BarCharts:
    return BarCharts(tuple([_chart(total, kind) for kind in KINDS if ordered(total, kind)]))


def _chart(total: ReplyGroup, kind: str) -> BarChart:
    found = ordered(total, kind)
    rows = [
        BarRow(finding.name, page_rate(share, kind), f"{share.part:,}", meaning(finding.name), _pick(finding))
        for finding, share in found[:_MOST_BARS]
    ]
    of = "calls" if kind in ("refused", "repaired") else "replies"
    more = f"and {len(found) - _MOST_BARS} more, in --json" if len(found) > _MOST_BARS else ""
    return BarChart(_TITLES[kind], tuple(rows), f"share of all {of}, and how many", more)


def _pick(finding: Finding) -> str:
    return f"{LABELS[finding.kind]}:{finding.name}"


# -- samples -----------------------------------------------------------------------------------------------------------


def _samples(tally: ReplyTally) -> SampleCards:
    cards = [_card(key, group, finding) for kind in KINDS for key, group, finding in _in_order(tally, kind)]
    left = len(cards) - _MOST_CARDS
    note = f"the most frequent {_MOST_CARDS}; {left} more in --json" if left > 0 else ""
    return SampleCards("Samples", tuple(cards[:_MOST_CARDS]), note)


def _in_order(tally: ReplyTally, kind: str) -> list[tuple[GroupKey, ReplyGroup, Finding]]:
    found = [
        (key, group, finding) for key, group in tally.largest() for finding in group.samples if finding.kind == kind
    ]
    return sorted(found, key=lambda each: -each[1].found[each[2]])


def _card(key: GroupKey, group: ReplyGroup, finding: Finding) -> SampleCard:
    share = group.finding_share(finding)
    source = f"{' · '.join(group_name(key))} · {share.part:,} of {share.whole:,}"
    samples = tuple([page_sample(sample) for sample in group.samples[finding]])
    return SampleCard(LABELS[finding.kind], finding.name, meaning(finding.name), source, samples, TONES[finding.kind])


def page_sample(sample: ReplySample) -> PageSample:
    """A sample in pieces, each of one kind, cut where what was found begins and ends."""
    start, end = sample.found
    pieces: list[SamplePiece] = []
    for span in sample.spans:
        edges = sorted({span.start, span.end, *[each for each in (start, end) if span.start < each < span.end]})
        pieces += [
            SamplePiece(sample.text[left:right], span.kind, start <= left < end) for left, right in pairwise(edges)
        ]
    is_end = start == end or (not sample.after and sample.cut)
    return PageSample(tuple(pieces), sample.place, sample.says, sample.before, sample.after, is_end)


# -- what changed ------------------------------------------------------------------------------------------------------

_CHANGED = (
    PageColumn("what"),
    PageColumn("verdict"),
    PageColumn("before"),
    PageColumn("now"),
    PageColumn("points", "The difference in percentage points"),
    PageColumn("p", "Corrected for the number of comparisons (Holm)"),
)


def _changes(comparison: Comparison, old: str) -> list[PagePart]:
    """What changed, and how all replies stand; the other rates are folded up below."""
    first = [change for change in comparison.changes if change.verdict != "same" or _is_total(change)]
    rest = [change for change in comparison.changes if change.verdict == "same" and not _is_total(change)]
    first.sort(key=lambda change: _VERDICTS[change.verdict][1])
    rows, more = [tuple([_change(change) for change in changes]) for changes in (first, rest[:_MOST_CHANGES])]
    title = f"{len(rest)} more rates that differ by no more than chance explains"
    return [
        PageTable("What changed", _CHANGED, rows, f"compared with {old}"),
        PageTable(title, _CHANGED, more, folded=True),
    ]


def _is_total(change: RateChange) -> bool:
    return change.scope == ALL and not change.name


def _change(change: RateChange) -> tuple[Cell, ...]:
    tone, order = _VERDICTS[change.verdict]
    points = ToneCell(f"{change.points:+.1f}", tone, change.points)
    p = ToneCell("< 0.001" if change.p < 0.001 else f"{change.p:.3f}", "plain", change.p)
    rates = [IntervalCell(page_rate(share)) for share in (change.before, change.after)]
    return NamedCell(change_name(change), change.scope), ToneCell(change.verdict, tone, order), *rates, points, p
