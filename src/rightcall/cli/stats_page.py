"""The page of `dataset stats`: a headline, and rates by label, tool, domain and more."""

from __future__ import annotations

from collections import Counter

from rightcall.datasets.inspection import Histogram, RowStats, bin_edges
from rightcall.evaluation.reports.significance import interval
from rightcall.evaluation.webpage import (
    BarChart,
    BarCharts,
    BarRow,
    FigureTile,
    FigureTiles,
    Headline,
    PageColumn,
    PageRate,
    PageTable,
    ToneCell,
    WebPage,
)
from rightcall.safe_text import percent

KIND = "dataset stats"
_MOST = 20


def stats_page(stats: RowStats, title: str) -> WebPage:
    """Return the statistics of rows as a `WebPage`, with this title. A property with several values has a chart; those
    with a single value share a table."""
    named = {name: counts for name, counts in stats.counts.items() if counts}
    several = [_count_chart(stats, name, counts) for name, counts in named.items() if len(counts) > 1]
    single = [(name, *_single_value(stats, name, counts)) for name, counts in named.items() if len(counts) == 1]
    lengths = [_length_chart(name, each) for name, each in stats.lengths.items() if len(each.bins) > 1]
    columns = (PageColumn("what"), PageColumn("value"), PageColumn("share"), PageColumn("rows"))
    parts = (
        _figure_tiles(stats),
        BarCharts(tuple(several)),
        PageTable("Of these there is one value only", columns, tuple(single)),
        BarCharts(tuple(lengths)),
    )
    foot = ("Shares are of all sound rows; a row may have several tools, repairs and problems. Private.",)
    return WebPage(KIND, title, _headline(stats), parts, foot)


def _sound(stats: RowStats) -> int:
    """Return the number of rows that are not invalid."""
    return stats.rows - stats.bad


def _headline(stats: RowStats) -> Headline:
    """Return the headline of the page: the share of valid calls among the labelled rows; without labels, the share of
    rows that are not invalid."""
    labels, sound = stats.counts["label"], _sound(stats)
    labelled = labels.total() - labels["unlabelled"]
    bad = f"{stats.bad:,} of {stats.rows:,} rows are invalid." if stats.bad else "Every row is sound."
    if labelled:
        low, high = interval(labels["valid"], labelled)
        note = f"95 % interval: {100 * low:.1f} to {100 * high:.1f} %."
        notes = (note, f"{labelled:,} of {sound:,} sound rows are labelled.", bad)
        return Headline(percent(labels["valid"] / labelled), f"of {labelled:,} labelled rows are valid", notes)
    unlabelled = ("No row is labelled; `rightcall dataset label` does that.",) if sound else ()
    rate = percent(sound / stats.rows if stats.rows else 0.0)
    return Headline(rate, f"of {stats.rows:,} rows are sound", (bad, *unlabelled))


def _figure_tiles(stats: RowStats) -> FigureTiles:
    """Return the figures of the page: the number of rows, and the numbers of different tools, domains, models and
    formats, with the most common of each."""
    tiles = [FigureTile("rows", f"{stats.rows:,}", f"{stats.bad:,} bad" if stats.bad else "all sound")]
    for name in ("tool", "domain", "model", "format"):
        if counts := stats.counts[name]:
            (first, number), *_ = counts.most_common(1)
            note = f"most often {first} ({number:,})" if len(counts) > 1 else first
            tiles.append(FigureTile(f"{name}s", f"{len(counts):,}", note))
    return FigureTiles(tuple(tiles))


def _share(number: int, whole: int) -> PageRate:
    """Return the share of `number` in `whole`, at most 1, with its 95 % interval; 0 if `whole` is 0."""
    number = min(number, whole)
    return PageRate(number / whole if whole else 0.0, *interval(number, whole), whole)


def _count_chart(stats: RowStats, name: str, counts: Counter[str]) -> BarChart:
    """Return a chart with the `_MOST` most common values of one property."""
    sound = _sound(stats)
    rows = [BarRow(value, _share(number, sound), f"{number:,}") for value, number in counts.most_common(_MOST)]
    more = f"and {len(counts) - _MOST:,} more" if len(counts) > _MOST else ""
    return BarChart(f"By {name}", tuple(rows), "share of sound rows, and how many", more)


def _single_value(stats: RowStats, name: str, counts: Counter[str]) -> tuple[str, ToneCell, int]:
    """Return the row of the table for a property with a single value: the value, its share of the sound rows, and its
    count. The first column, the `name`, is added by the caller."""
    ((value, number),) = counts.items()
    rate = _share(number, _sound(stats)).rate
    return value, ToneCell(percent(rate), "plain", rate), number


def _length_chart(name: str, histogram: Histogram) -> BarChart:
    """Return a chart of a histogram of lengths: a bar for each bin, in characters, or in messages for the name
    "messages"."""
    unit = "Messages of a conversation" if name == "messages" else f"Characters of the {name}"
    note = f"mean {histogram.mean:,.0f}, median up to {histogram.median:,}, largest {histogram.largest:,}"
    rows = []
    for size in range(min(histogram.bins), max(histogram.bins) + 1):
        number = histogram.bins[size]
        label = " to ".join(dict.fromkeys([f"{edge:,}" for edge in bin_edges(size)]))
        rows.append(BarRow(label, _share(number, histogram.total), f"{number:,}"))
    return BarChart(unit, tuple(rows), note)
