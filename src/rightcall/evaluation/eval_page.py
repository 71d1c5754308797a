"""An evaluation as a page: headline, the rates and costs of every configuration, what each part adds, categories."""

from __future__ import annotations

from collections.abc import Sequence

from rightcall.evaluation.case_run import CONFIGURATIONS
from rightcall.evaluation.eval_case import Metric
from rightcall.evaluation.eval_tally import EvalTally, Step
from rightcall.evaluation.reports.report_page import page_rate
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
    PageTable,
    Tone,
    ToneCell,
    WebPage,
)
from rightcall.safe_text import percent

KIND = "eval"
LABELS: dict[Metric, str] = {
    "valid": "valid",
    "right_tool": "right tool",
    "right_arguments": "right arguments",
    "irrelevance": "irrelevance",
    "completed": "completed",
}
HINTS: dict[Metric, str] = {
    "valid": "A call was made, and each is of a declared tool, fits its schema and is complete",
    "right_tool": "The runnable calls are of the expected tools, and of no other",
    "right_arguments": "The runnable calls are the expected ones, with the right arguments",
    "irrelevance": "No call was expected, and no runnable call was made",
    "completed": "Everything requested is done, nothing else was changed, and the model ended",
}
_TONES: dict[str, Tone] = {"better": "good", "worse": "bad", "same": "plain"}
_HEADLINE_METRICS: tuple[Metric, ...] = ("right_arguments", "completed", "irrelevance", "valid")
_FOOT = (
    "Rates are parts of the cases that a column is asked of. Intervals are Wilson's, of 95 %.",
    "Configurations are compared over the same cases: gained are right now and were wrong before, lost the other way "
    "round. p is McNemar's, exact and two-sided, corrected for the number of comparisons (Holm). Configurations that "
    "ask the same share one answer. Cases are taken for independent; several runs of one are not quite.",
)


def eval_page(tally: EvalTally, title: str, notes: Sequence[str] = ()) -> WebPage:
    """Return the page of an evaluation as a `WebPage`: tiles, charts, tables, and a table of categories for each suite
    that has several. `notes` are lines below the headline."""
    parts: list[PagePart] = [_figure_tiles(tally), _charts(tally), *_tables(tally)]
    parts += [_category_table(tally, suite) for suite in tally.suites if len(tally.categories(suite)) > 1]
    return WebPage(KIND, title, _headline(tally, notes), tuple(parts), _FOOT)


def eval_screen(tally: EvalTally, title: str, notes: Sequence[str] = ()) -> WebPage:
    """Return the part of an evaluation's page that fits a terminal, as a `WebPage`: the headline and the tables.
    `notes` are lines below the headline."""
    return WebPage(KIND, title, _headline(tally, notes), tuple(_tables(tally)), _FOOT)


def _tables(tally: EvalTally) -> list[PagePart]:
    """Return the table of the configurations, and that of the comparisons of each with the one before in which the
    result of any case changed."""
    steps = tally.steps()
    differing = [step for step in steps if step.differs]
    same = len(steps) - len(differing)
    note = f"{same} more rates have the same result in every case" if same else ""
    return [_configuration_table(tally), _step_table(differing, "What each part adds", note)]


def compare_page(tally: EvalTally, older: EvalTally, title: str, old: str) -> WebPage:
    """Return the page of the changes in `tally` since the `older` run, as a `WebPage`; `old` is the older run's
    name."""
    steps = tally.against(older)
    counts = {word: sum([step.verdict == word for step in steps]) for word in ("better", "worse")}
    changed = ", ".join([f"{count} {word}" for word, count in counts.items() if count])
    figure = changed or "No change"
    says = f"of {len(steps)} rates over the same cases" if changed else "that is significant"
    headline = Headline(figure, says, (f"{title} against {old}",))
    return WebPage(KIND, title, headline, (_step_table(steps, "What changed", f"compared with {old}"),), _FOOT)


def _headline(tally: EvalTally, notes: Sequence[str]) -> Headline:
    """Return the headline of an evaluation: the rate of the last configuration, in the first headline metric that is
    measured, with the first configuration's rate for comparison; "No case was run" without rows."""
    names = tally.configurations
    metric = next((each for each in _HEADLINE_METRICS if each in tally.metrics), None)
    if not names or metric is None:
        return Headline("No", "case was run", tuple(notes))
    last = tally.share(names[-1], metric)
    low, high = last.interval
    first = [
        f"{LABELS[metric]}: {percent(tally.share(name, metric).rate)} {name}" for name in names[:1] if name != names[-1]
    ]
    lines = (*first, f"95 % interval: {100 * low:.1f} to {100 * high:.1f} %.", *notes)
    return Headline(percent(last.rate), f"{LABELS[metric]}, {names[-1]}, of {last.whole:,} cases", lines)


def _figure_tiles(tally: EvalTally) -> FigureTiles:
    """Return tiles with the number of cases and, for each metric, the rate of the last configuration."""
    last = tally.configurations[-1] if tally.configurations else ""
    tiles = [FigureTile("cases", f"{len(tally.select_rows(last)):,}", ", ".join(tally.suites))]
    for metric in tally.metrics:
        share = tally.share(last, metric)
        low, high = share.interval
        note = f"{share.part:,} of {share.whole:,} · {100 * low:.1f} to {100 * high:.1f} %"
        tiles.append(FigureTile(LABELS[metric], percent(share.rate), note))
    return FigureTiles(tuple(tiles))


def _charts(tally: EvalTally) -> BarCharts:
    return BarCharts(tuple([_metric_chart(tally, metric) for metric in tally.metrics if len(tally.configurations) > 1]))


def _metric_chart(tally: EvalTally, metric: Metric) -> BarChart:
    """Return a chart of one metric with a bar for the rate of each configuration."""
    rows = []
    for name in tally.configurations:
        share = tally.share(name, metric)
        rows.append(BarRow(name, page_rate(share), f"{share.part:,}"))
    return BarChart(LABELS[metric], tuple(rows), HINTS[metric])


def _configuration_description(name: str) -> str:
    """Return what a configuration does; "" for an unknown name."""
    return CONFIGURATIONS[name].about if name in CONFIGURATIONS else ""


def _configuration_table(tally: EvalTally) -> PageTable:
    """Return the table with a row for each configuration: number of cases, rates and mean costs."""
    columns = [PageColumn("configuration"), PageColumn("cases")]
    columns += [PageColumn(LABELS[metric], HINTS[metric]) for metric in tally.metrics]
    columns += [PageColumn(*each) for each in _COST_COLUMNS]
    rows = [
        (
            NamedCell(name, _configuration_description(name)),
            len(tally.select_rows(name)),
            *_rate_cells(tally, name),
            *_cost_cells(tally, name),
        )
        for name in tally.configurations
    ]
    return PageTable("Configurations", tuple(columns), tuple(rows))


_COST_COLUMNS = (
    ("turns", "Mean number of answers of the model"),
    ("tokens", "Mean number, in and out"),
    ("seconds", "Mean time until the last answer"),
)


def _rate_cells(tally: EvalTally, name: str, suite: str = "", category: str = "") -> list[Cell]:
    """Return a table cell for each metric, with the rate of the configuration `name` and its interval, of one suite or
    category if given; a dash where no case measures it."""
    shares = [tally.share(name, metric, suite, category) for metric in tally.metrics]
    return [IntervalCell(page_rate(share)) if share.whole else "–" for share in shares]


def _cost_cells(tally: EvalTally, name: str) -> list[Cell]:
    """Return three table cells with the mean turns, tokens and seconds of a case in the configuration `name`."""
    spent = tally.spending(name)
    tokens = spent.prompt_tokens + spent.completion_tokens
    return [
        ToneCell(f"{spent.turns:.1f}", "plain", spent.turns),
        round(tokens),
        ToneCell(f"{spent.seconds:.2f}", "plain", spent.seconds),
    ]


_STEP_COLUMNS = (
    PageColumn("what"),
    PageColumn("before"),
    PageColumn("now"),
    PageColumn("gained", "Cases that are right now and were wrong"),
    PageColumn("lost", "Cases that are wrong now and were right"),
    PageColumn("p", "McNemar, corrected for the number of comparisons (Holm)"),
)


def _step_table(steps: Sequence[Step], title: str, note: str = "") -> PageTable:
    return PageTable(title, _STEP_COLUMNS, tuple(map(_step_row, steps)), note)


def _step_row(step: Step) -> tuple[Cell, ...]:
    """Return the table row of a comparison: metric and scope, rates before and after, cases gained and lost, p
    value."""
    tone = _TONES[step.verdict]
    p = ToneCell("< 0.001" if step.p < 0.001 else f"{step.p:.3f}", tone, step.p)
    rates = [IntervalCell(page_rate(share)) for share in (step.before, step.after)]
    return NamedCell(LABELS[step.metric], step.scope), *rates, step.gained, step.lost, p


def _category_table(tally: EvalTally, suite: str) -> PageTable:
    """Return the table of a suite by category, with a row for each category and configuration. It is folded, so that a
    terminal prints only its title."""
    columns = [PageColumn("category"), PageColumn("cases")]
    columns += [PageColumn(LABELS[metric], HINTS[metric]) for metric in tally.metrics]
    rows = [
        (
            NamedCell(category, name),
            len(tally.select_rows(name, suite, category)),
            *_rate_cells(tally, name, suite, category),
        )
        for category in tally.categories(suite)
        for name in tally.configurations
    ]
    return PageTable(f"{suite}, by category", tuple(columns), tuple(rows), "in --html and --json", folded=True)
