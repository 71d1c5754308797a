"""Generate the first part of docs/results.md and its picture from results/.    python evals/results.py [--write]

The rows are compressed files of `rightcall eval --out`. The figures are computed from them; `results/README.md` has the
commands.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

import msgspec
from report import ROOT, keep_part, table

from rightcall.evaluation.case_run import CONFIGURATIONS
from rightcall.evaluation.eval_case import Metric
from rightcall.evaluation.eval_rows import EvalRow
from rightcall.evaluation.eval_tally import EvalTally
from rightcall.evaluation.reports.reply_tally import Share
from rightcall.safe_text import percent

FOLDER = ROOT / "results"
PICTURE = ROOT / "docs" / "pictures" / "eval.svg"
SETTINGS = ("mode", "required", "one_call", "max_turns", "temperature", "max_tokens", "seed")
NAMES = {  # former names of adapters
    "smollm2+B": "smollm2-tools",
    "S": "smollm2 + own answers",
    "G": "smollm2 + own answers, said",
}
ORDER = ("questions", "bfcl", "domains", "tasks", "choosing")
SHOWN: dict[Metric, str] = {"valid": "valid", "right_tool": "right tool", "right_arguments": "right arguments"}


class ResultFile(msgspec.Struct, frozen=True):
    """One file: its name, the model, the settings, when and with what it was made, and its counted rows."""

    file: str
    model: str
    settings: str
    made: dict[str, str]
    tally: EvalTally


def read_result_file(path: Path) -> ResultFile:
    """Read all runs of a file: those that were divided over machines have a first line each."""
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    head = next(row for row in rows if row["kind"] == "run")
    tally = EvalTally([msgspec.convert(row, EvalRow) for row in rows if row["kind"] == "case"])
    settings = ", ".join(
        [
            f"{name} {value}"
            for name, value in head["run"].items()
            if name in SETTINGS and value is not None and value is not False
        ]
    )
    return ResultFile(
        path.relative_to(FOLDER).as_posix(),
        NAMES.get(head["run"]["model"], head["run"]["model"]),
        settings,
        head["made"],
        tally,
    )


def read_all() -> list[ResultFile]:
    paths = [path for path in FOLDER.rglob("*.jsonl.gz") if path.parent.name != "verifier"]
    return [read_result_file(path) for path in sorted(paths, key=_sort_key)]


def _sort_key(path: Path) -> tuple[int, int, str]:
    return len(path.parts), ORDER.index(path.name.split(".")[1]), path.name


# -- the page ----------------------------------------------------------------------------------------------------------


def share(of: Share) -> str:
    low, high = of.interval
    return f"{percent(of.rate)} ({100 * low:.0f}-{100 * high:.0f})" if of.whole else ""


def figures(of: ResultFile) -> str:
    tally = of.tally
    rows = []
    for name in tally.configurations:
        spent = tally.spending(name)
        rates = [share(tally.share(name, metric)) for metric in tally.metrics]
        tokens = f"{spent.prompt_tokens + spent.completion_tokens:.0f}"
        rows.append(
            (f"`{name}`", len(tally.select_rows(name)), *rates, f"{spent.turns:.1f}", tokens, f"{spent.seconds:.1f}")
        )
    metrics = [metric.replace("_", " ") for metric in tally.metrics]
    return table(("", "cases", *metrics, "turns", "tokens", "seconds"), rows)


def steps(of: ResultFile) -> str:
    changed_steps = [step for step in of.tally.steps() if step.differs]
    rows = [
        (step.scope, step.metric.replace("_", " "), f"{step.gained}", f"{step.lost}", _p(step.p), step.verdict)
        for step in changed_steps
    ]
    return table(("step", "what", "gained", "lost", "p", ""), rows) if rows else "No case came out otherwise."


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def on_questions(found: Iterable[ResultFile]) -> list[ResultFile]:
    return [each for each in found if each.tally.suites == ["questions"]]


def first(found: Sequence[ResultFile]) -> str:
    """Return the three main figures: the small model, and the best that was made of it, on the project's questions."""
    question_files = on_questions(found)
    plain = next(each for each in question_files if each.model == "smollm2" and "bare" in each.tally.configurations)
    configurations = [(each, name) for each in question_files for name in each.tally.configurations]
    best, name = max(
        configurations,
        key=lambda configuration: (
            configuration[0].tally.share(configuration[1], "right_arguments").rate,
            configuration[1] != "full",
        ),
    )
    chosen = [(plain, "bare"), (best, "bare"), (best, name)]
    rows = [
        (f"**{label}**", *[share(each.tally.share(configuration, metric)) for each, configuration in chosen])
        for metric, label in SHOWN.items()
    ]
    headings = [f"{each.model}, {configuration}" for each, configuration in chosen]
    return f"""
Three figures: a model of 135 million weights, asked the {len(plain.tally.select_rows("bare"))} questions of
[`rightcall eval`](eval.md) about tools that it never saw, without an example: as it comes, with an adapter of 5 MB that
was trained on rows of rightcall, and the same held to a grammar; intervals of 95 %.

{table(("", *headings), rows)}
"""


def part(found: Sequence[ResultFile]) -> str:
    """Return the three figures, the picture, and every table."""
    sections = [
        f"### {each.model}: `{each.file}`\n\n{each.made['at'][:10]}, rightcall {each.made['rightcall']}, "
        f"Python {each.made['python']}, {each.made['machine']}; {each.settings}.\n\n{figures(each)}\n\n{steps(each)}"
        for each in found
    ]
    how = "Commands, dates and raw rows are in [results](../results/README.md); this part is made of them by "
    how += "`evals/results.py --write`. Steps are compared over the same cases (McNemar, corrected by Holm)."
    picture = "![Rates with their intervals](pictures/eval.svg)"
    return "\n\n".join([first(found).strip(), picture, how, "## Small models, measured", *sections])


# -- the picture -------------------------------------------------------------------------------------------------------

WIDE, LEFT, BAR, GAP = 760, 270, 9, 16


class _Line(msgspec.Struct, frozen=True):
    label: str
    shares: tuple[Share, ...]


def lines_of(found: Iterable[ResultFile]) -> list[_Line]:
    """Return the bars: bare, and the last configurations of each file, without those that changed nothing."""
    lines = []
    for each in on_questions(found):
        last: tuple[Share, ...] = ()
        for name in [name for name in CONFIGURATIONS if name in each.tally.configurations]:
            shares = tuple([each.tally.share(name, metric) for metric in SHOWN])
            if shares != last:
                lines.append(_Line(f"{each.model} {name}", shares))
            last = shares
    return lines


def picture(lines: Sequence[_Line]) -> str:
    """Draw three bars for each line, on one scale, with Wilson's intervals."""
    height = len(lines) * (len(SHOWN) * BAR + GAP) + 62
    shapes = [_scale(height)]
    for at, line in enumerate(lines):
        shapes.append(_bars(line, 34 + at * (len(SHOWN) * BAR + GAP)))
    names = [
        f'<rect class="b{at}" x="{LEFT + at * 150}" y="{height - 14}" width="9" height="9"/>'
        f'<text x="{LEFT + 14 + at * 150}" y="{height - 6}">{name}</text>'
        for at, name in enumerate(SHOWN.values())
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {height}" role="img" '
        f'aria-label="Rates with their intervals">{_STYLE}{"".join(shapes)}{"".join(names)}</svg>\n'
    )


_STYLE = (
    "<style>text{font:12px system-ui,sans-serif;fill:#1f2328}line{stroke:#d0d7de}.b0{fill:#8c959f}.b1{fill:#54aeff}"
    ".b2{fill:#1a7f37}.i{stroke:#1f2328}@media(prefers-color-scheme:dark){text{fill:#e6edf3}line{stroke:#3d444d}"
    ".i{stroke:#e6edf3}}</style>"
)


def _x(rate: float) -> float:
    return round(LEFT + rate * (WIDE - LEFT - 60), 1)


def _scale(height: int) -> str:
    marks = [
        f'<line x1="{_x(at / 4)}" y1="20" x2="{_x(at / 4)}" y2="{height - 22}"/>'
        f'<text x="{_x(at / 4)}" y="14" text-anchor="middle">{25 * at} %</text>'
        for at in range(5)
    ]
    return "".join(marks)


def _bars(line: _Line, top: int) -> str:
    shapes = [f'<text x="{LEFT - 8}" y="{top + 17}" text-anchor="end">{escape(line.label)}</text>']
    for at, of in enumerate(line.shares):
        y = top + at * BAR
        low, high = of.interval
        shapes.append(
            f'<rect class="b{at}" x="{LEFT}" y="{y}" width="{max(1, _x(of.rate) - LEFT):.1f}" height="{BAR - 1}"/>'
        )
        shapes.append(f'<line class="i" x1="{_x(low)}" y1="{y + 4}" x2="{_x(high)}" y2="{y + 4}"/>')
    return "".join(shapes)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write docs/results.md and its picture")
    options = parser.parse_args(arguments)
    found = read_all()
    text = part(found)
    print(text)
    if options.write:
        keep_part("eval", text)
        PICTURE.write_text(picture(lines_of(found)), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
