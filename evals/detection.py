"""Measure whether `auto` parses texts as the named format does: chat-template corpus and leaderboard truths."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from bfcl_cases import Case
from report import ROOT, Figure, Section, table

from rightcall import CannotCarry, Reply, Toolset, parse, render
from rightcall.formats import FORMATS, NAMED_ONLY

CORPUS = ROOT / "tests" / "corpus"


def corpus_samples() -> Iterator[tuple[str, str, Toolset]]:
    """Yield format, text and tools of every sample."""
    declared = {key: Toolset(tools) for key, tools in json.loads((CORPUS / "tools.json").read_text("utf-8")).items()}
    for name in [name for name in FORMATS if name not in NAMED_ONLY]:
        for line in (CORPUS / f"{name}.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            yield name, row["text"], declared[row["tools"]]


def render_cases(found: Sequence[Case]) -> Iterator[tuple[str, str, Toolset]]:
    for name in [name for name in FORMATS if name not in NAMED_ONLY]:
        for case in found:
            try:
                yield name, render(case.calls, format=name, tools=case.tools), case.tools
            except CannotCarry:
                continue


def call_data(reply: Reply) -> list[tuple[str, dict[str, object], bool]]:
    return [(call.name, call.arguments, call.complete) for call in reply.attempts]


def compare(samples: Iterator[tuple[str, str, Toolset]]) -> tuple[Counter[str], Counter[str]]:
    """Return the number of texts of each format, and the number of which `auto` parses the same calls."""
    total: Counter[str] = Counter()
    alike: Counter[str] = Counter()
    for name, text, tools in samples:
        total[name] += 1
        alike[name] += call_data(parse(text, tools=tools)) == call_data(parse(text, format=name, tools=tools))
    return total, alike


def measure_detection(found: Sequence[Case]) -> Section:
    text = (
        'The same calls with `format="auto"` as with the format named, on what chat templates write (this project\'s '
    )
    text += "corpus) and on truths of the leaderboard. "
    figures = []
    rows = []
    for title, samples, target in (
        ("corpus", corpus_samples(), 0.97),
        ("leaderboard, rendered", render_cases(found), 0.97),
    ):
        total, alike = compare(samples)
        figures.append(Figure(f"auto reads as the named format does: {title}", alike.total(), total.total(), target))
        missed = [(name, title, total[name] - alike[name], total[name]) for name in total if alike[name] < total[name]]
        rows += sorted(missed, key=lambda row: -row[2])
    text += "These are read otherwise (`pythonic` has no markers: with text around, only its name tells it):\n\n"
    text += table(("format", "texts", "read otherwise", "of"), [(a, b, f"{c:,}", f"{d:,}") for a, b, c, d in rows])
    return Section("The format is found out", text, tuple(figures))
