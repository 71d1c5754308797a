"""The end of the demo, and the main job: a model is driven over stub tools in three ways, and its calls become rows.

The model runs here if it is here; else a recording of it answers, and the demo says so.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from rightcall.backends.base import BaseBackend
from rightcall.backends.local import LocalBackend
from rightcall.backends.replay import ReplayBackend
from rightcall.capture.catalogue import find_domains
from rightcall.capture.runner import Capture, check_output
from rightcall.capture.settings import Settings
from rightcall.cli.layout import bar_chart, heading, row, table
from rightcall.cli.safe import visible
from rightcall.datasets.exporting import Exported, export
from rightcall.datasets.label import label_files
from rightcall.datasets.validating import Report, validate
from rightcall.datasets.written_kinds import EXPORT, EXPORTED, LABELLED, manifest, manifest_of
from rightcall.errors import BackendError
from rightcall.storage.file_kinds import existing
from rightcall.types import Json

TITLE = "A small model makes its calls in three ways, and they become rows to train on"
MODEL = "smollm2"
RECORDING = Path(__file__).with_name("demo_capture.jsonl")
DOMAINS = ("shopping", "calendar", "support")


class Way(msgspec.Struct, frozen=True):
    about: str
    settings: Settings


_ASKED = Settings(
    models=(MODEL,), mode="text", max_turns=1, choice="required", examples=2, temperature=0.0, max_tokens=96, seed=1
)


def _way(about: str, **how: Any) -> Way:
    return Way(about, msgspec.structs.replace(_ASKED, **how))


WAYS: dict[str, Way] = {
    "none": _way("guard none: as the model wrote it", guard="none"),
    "parse": _way("guard parse: read and repaired", guard="parse"),
    "grammar": _way("mode grammar: held to the tools", guard="parse", mode="grammar"),
}


class Captured(msgspec.Struct, frozen=True):
    """What came of it. `source` says who answered."""

    source: str
    runs: Mapping[str, Capture]
    report: Report
    labels: Mapping[str, int]
    exported: Exported
    folder: Path

    @property
    def files(self) -> list[tuple[str, str]]:
        rows = [(f"rows, {name}", str(run.output)) for name, run in self.runs.items()]
        labelled = ("labelled", str(self.folder / "labelled.jsonl"))
        return [*rows, labelled, ("for a trainer", self.exported.path), ("its manifest", self.exported.manifest)]


def check_folder(folder: Path | None, *, force: bool = False) -> None:
    """Raises `NotOurs` if a file of the demo would take the place of somebody else's; nothing is written."""
    if folder is None:
        return
    for name in WAYS:
        check_output(folder / f"{name}.jsonl", force=force)
    train = folder / "train.jsonl"
    kinds = {folder / "labelled.jsonl": LABELLED, train: EXPORT, manifest_of(train): manifest(EXPORTED)}
    for path, kind in kinds.items():
        existing(path, kind, force=force)


def captured(folder: Path | None, *, recorded: bool = False, force: bool = False) -> Captured:
    """Runs all ways, checks and labels their rows, and exports them."""
    folder = folder or Path(tempfile.mkdtemp(prefix="rightcall-demo-"))
    source, runs = _asked(folder, recorded=recorded, force=force)
    outputs = [run.output for run in runs.values()]
    report = validate(outputs, tell=lambda where, what: None)
    labels = label_files(outputs, folder / "labelled.jsonl", domains=find_domains(DOMAINS), force=force)
    exported = export([folder / "labelled.jsonl"], folder / "train.jsonl", to="trl-kto", force=force)
    return Captured(source, runs, report, labels, exported, folder)


def _asked(folder: Path, *, recorded: bool, force: bool) -> tuple[str, dict[str, Capture]]:
    why = "as you asked"
    if not recorded:
        try:
            runs = asyncio.run(run_ways(LocalBackend(MODEL), folder, force=force))
            return f"{MODEL}, run on this machine just now", runs
        except BackendError as error:
            why = str(error)
    return f"a recording of {MODEL} ({why})", asyncio.run(run_ways(recording(), folder, force=force))


def recording() -> ReplayBackend:
    """Lenient: what the model is told may have been reworded since."""
    return ReplayBackend(RECORDING, profile="llama.cpp", strict=False)


async def run_ways(backend: BaseBackend, folder: Path, *, force: bool = False) -> dict[str, Capture]:
    """The rows of the last time go when the first of this time come."""
    domains = find_domains(DOMAINS)
    runs = {}
    async with backend:
        for name, way in WAYS.items():
            output = folder / f"{name}.jsonl"
            runs[name] = Capture(backend, domains, way.settings, output, fresh=True, force=force)
            await runs[name].go()
    return runs


# -- shown -------------------------------------------------------------------------------------------------------------

_HEADS = ("", "scenarios", "calls wanted", "calls", "valid", "right tool", "right arguments")


def show(out: Console, found: Captured) -> None:
    heading(out, TITLE)
    row(out, "source", visible(found.source, one_line=True), "dim")
    _table(out, found.runs)
    report, made = found.report, found.exported
    row(out, "checked", f"{report.rows} rows, {report.bad} bad")
    row(out, "labelled", ", ".join([f"{label} {count}" for label, count in sorted(found.labels.items())]))
    row(out, "exported", f"{made.examples} examples for TRL's KTO, good and bad; private, mode 0600")
    row(out, "files", visible(f"{', '.join([Path(path).name for _, path in found.files])}", one_line=True), "dim")
    row(out, "folder", visible(str(found.folder), one_line=True), "dim")
    _chart(out, found.runs)


def _table(out: Console, runs: Mapping[str, Capture]) -> None:
    totals = {name: run.tally.total for name, run in runs.items()}
    cells = [
        (WAYS[name].about, of.scenarios, of.wanted, of.calls, of.valid, of.right_tool, of.right_arguments)
        for name, of in totals.items()
    ]
    table(out, _HEADS, cells)


def _chart(out: Console, runs: Mapping[str, Capture]) -> None:
    """Of the calls that were made, how many may run."""
    heading(out, "\nOf the calls that the model made, so many are valid")
    totals = {name: run.tally.total for name, run in runs.items()}
    rows = [
        (f"{WAYS[name].about} ({of.valid} of {of.calls})", round(100 * of.valid / max(of.calls, 1)))
        for name, of in totals.items()
    ]
    bar_chart(out, rows, most=100, unit=" %", style="green")


def as_json(found: Captured) -> Json:
    return {
        "title": TITLE,
        "source": found.source,
        "ways": {name: msgspec.to_builtins(run.tally.total) for name, run in found.runs.items()},
        "rows": found.report.rows,
        "bad": found.report.bad,
        "labels": dict(found.labels),
        "examples": found.exported.examples,
        "files": dict(found.files),
    }
