"""The parts of `rightcall demo` in which a model answers: a scene, and a capture of training rows.

The model runs locally if it is downloaded; otherwise a recording of it answers, and the output names it.
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
from rightcall.backends.cassette import load_cassette
from rightcall.backends.local import LocalBackend
from rightcall.backends.recording import ReplayBackend
from rightcall.backends.request import Answer, Request
from rightcall.capture.domain import find_domains
from rightcall.capture.runner import Capture, check_output
from rightcall.capture.settings import Settings
from rightcall.cli.demo_command import Scene
from rightcall.cli.layout import bar_chart, heading, row, table
from rightcall.datasets.exporting import Exported, export
from rightcall.datasets.inspection import Report, validate
from rightcall.datasets.label import label_files
from rightcall.datasets.row_files import EXPORT, EXPORTED, LABELLED, manifest, manifest_path
from rightcall.errors import BackendError
from rightcall.safe_text import visible
from rightcall.storage.file_kinds import existing
from rightcall.tools.toolset import Toolset
from rightcall.types import Json, Tool

RECORDING = Path(__file__).with_name("demo_model.jsonl")
MODEL = "smollm2"


def _tool(name: str, **properties: Json) -> Tool:
    """Return a tool whose parameters, given as schemas by name, are all required."""
    return Tool(name=name, parameters={"type": "object", "properties": properties, "required": list(properties)})


_TEXT: Json = {"type": "string"}
_CONDITION: Json = {"type": "object", "properties": {"column": _TEXT, "operator": _TEXT, "value": _TEXT}}
TOOLS = Toolset(  # the tools that the recorded question offers
    [
        _tool("get_directions", origin=_TEXT, destination=_TEXT, mode=_TEXT),
        _tool("query_table", table=_TEXT, where=_CONDITION, limit={"type": "integer"}),
    ]
)


def model_scene(*, recorded: bool = False) -> Scene:
    """Ask the local model the recorded question, at temperature 0, and return its answer as a scene. With `recorded`,
    or if the model cannot be run, the recording answers instead, which the scene's `source` says."""
    if recorded:
        return _make_scene(
            ReplayBackend(RECORDING).complete_sync(_read_recorded_request()), f"a recording of {MODEL}, as you asked"
        )
    try:
        with LocalBackend(MODEL) as backend:
            return _make_scene(
                backend.complete_sync(_read_recorded_request()), f"{MODEL}, run on this machine just now"
            )
    except BackendError as error:
        return _make_scene(
            ReplayBackend(RECORDING).complete_sync(_read_recorded_request()), f"a recording of {MODEL} ({error})"
        )


def _read_recorded_request() -> Request:
    """Return the request that was recorded with the model's answer."""
    body = load_cassette(RECORDING).exchanges[0].request.body or {}
    return Request(
        messages=body["messages"],
        temperature=body["temperature"],
        max_tokens=body["max_tokens"],
        seed=body["seed"],
    )


def _make_scene(answer: Answer, source: str) -> Scene:
    """Return the scene for an answer of the model; `source` names what answered."""
    return Scene(
        "A model of 135 million weights is asked for the way to a museum",
        "a bracket too many or a key in the wrong place, and a strict JSON reader loses the call",
        "hermes",
        str(answer.raw["choices"][0]["message"]["content"]),
        tools=TOOLS,
        source=source,
    )


TITLE = "A small model makes calls in three modes, and they become training rows"
CAPTURE_RECORDING = Path(__file__).with_name("demo_capture.jsonl")
DOMAINS = ("shopping", "calendar", "support")


class CaptureMode(msgspec.Struct, frozen=True):
    """One of the modes that the demo compares, with its settings."""

    about: str
    settings: Settings


_BASE_SETTINGS = Settings(
    models=(MODEL,), mode="text", max_turns=1, choice="required", examples=2, temperature=0.0, max_tokens=96, seed=1
)


def _capture_mode(about: str, **changes: Any) -> CaptureMode:
    """Return a mode of the demo: the common settings with these changes. `about` describes it."""
    return CaptureMode(about, msgspec.structs.replace(_BASE_SETTINGS, **changes))


MODES: dict[str, CaptureMode] = {
    "none": _capture_mode("guard none: as the model wrote it", guard="none"),
    "parse": _capture_mode("guard parse: parsed and repaired", guard="parse"),
    "grammar": _capture_mode("mode grammar: constrained by the tools", guard="parse", mode="grammar"),
}


class CaptureDemo(msgspec.Struct, frozen=True):
    """The results of the capture. `source` names what answered: the model or a recording."""

    source: str
    runs: Mapping[str, Capture]
    report: Report
    labels: Mapping[str, int]
    exported: Exported
    folder: Path

    @property
    def files(self) -> list[tuple[str, str]]:
        """Return the files that the demo wrote, each as a label and a path."""
        rows = [(f"rows, {name}", str(run.output)) for name, run in self.runs.items()]
        labelled = ("labelled", str(self.folder / "labelled.jsonl"))
        return [*rows, labelled, ("for a trainer", self.exported.path), ("its manifest", self.exported.manifest)]


def check_folder(folder: Path | None, *, force: bool = False) -> None:
    """Raise `NotOurs` if the demo would overwrite a file in this folder that rightcall did not write, unless `force`.
    Do nothing for None, which means a new folder."""
    if folder is None:
        return
    for name in MODES:
        check_output(folder / f"{name}.jsonl", force=force)
    train = folder / "train.jsonl"
    kinds = {folder / "labelled.jsonl": LABELLED, train: EXPORT, manifest_path(train): manifest(EXPORTED)}
    for path, kind in kinds.items():
        existing(path, kind, force=force)


def run_demo_capture(folder: Path | None, *, recorded: bool = False, force: bool = False) -> CaptureDemo:
    """Run the model in all modes, validate, label and export the rows, and return the results. The files are written
    into `folder`, or into a new temporary one for None. With `recorded`, or without the model, a recording answers."""
    folder = folder or Path(tempfile.mkdtemp(prefix="rightcall-demo-"))
    source, runs = _run_captures(folder, recorded=recorded, force=force)
    outputs = [run.output for run in runs.values()]
    report = validate(outputs, tell=lambda where, what: None)
    labels = label_files(outputs, folder / "labelled.jsonl", domains=find_domains(DOMAINS), force=force)
    exported = export([folder / "labelled.jsonl"], folder / "train.jsonl", to="trl-kto", force=force)
    return CaptureDemo(source, runs, report, labels, exported, folder)


def _run_captures(folder: Path, *, recorded: bool, force: bool) -> tuple[str, dict[str, Capture]]:
    """Run the captures of all modes with the model or, if `recorded` is set or the model fails, with its recording.
    Return a description of which one answered, and the runs by mode."""
    why = "as you asked"
    if not recorded:
        try:
            runs = asyncio.run(run_modes(LocalBackend(MODEL), folder, force=force))
            return f"{MODEL}, run on this machine just now", runs
        except BackendError as error:
            why = str(error)
    return f"a recording of {MODEL} ({why})", asyncio.run(run_modes(recording(), folder, force=force))


def recording() -> ReplayBackend:
    """Return a backend that answers from the recording of the demo's captures. It is lenient, since the prompts may
    have changed."""
    return ReplayBackend(CAPTURE_RECORDING, profile="llama.cpp", strict=False)


async def run_modes(backend: BaseBackend, folder: Path, *, force: bool = False) -> dict[str, Capture]:
    """Run a capture with the backend in each mode, and return the captures by mode. The rows of each are written into a
    file in `folder` and replace those of an earlier demo."""
    domains = find_domains(DOMAINS)
    runs = {}
    async with backend:
        for name, mode in MODES.items():
            output = folder / f"{name}.jsonl"
            runs[name] = Capture(backend, domains, mode.settings, output, fresh=True, force=force)
            await runs[name].go()
    return runs


# -- display -----------------------------------------------------------------------------------------------------------

_HEADS = ("", "scenarios", "calls wanted", "calls", "valid", "right tool", "right arguments")


def print_demo_capture(out: Console, found: CaptureDemo) -> None:
    """Print the captures of the demo: counts by mode, rows, labels, files, and a chart of valid calls."""
    heading(out, TITLE)
    row(out, "source", visible(found.source, one_line=True), "dim")
    _print_counts(out, found.runs)
    report, made = found.report, found.exported
    row(out, "checked", f"{report.rows} rows, {report.bad} bad")
    row(out, "labelled", ", ".join([f"{label} {count}" for label, count in sorted(found.labels.items())]))
    row(out, "exported", f"{made.examples} examples for TRL's KTO, good and bad; private, mode 0600")
    row(out, "files", visible(f"{', '.join([Path(path).name for _, path in found.files])}", one_line=True), "dim")
    row(out, "folder", visible(str(found.folder), one_line=True), "dim")
    _print_chart(out, found.runs)


def _print_counts(out: Console, runs: Mapping[str, Capture]) -> None:
    """Print the counts of each mode as a table."""
    totals = {name: run.tally.total for name, run in runs.items()}
    cells = [
        (MODES[name].about, of.scenarios, of.wanted, of.calls, of.valid, of.right_tool, of.right_arguments)
        for name, of in totals.items()
    ]
    table(out, _HEADS, cells)


def _print_chart(out: Console, runs: Mapping[str, Capture]) -> None:
    """Print a bar for each mode: the share of its calls that are valid."""
    heading(out, "\nValid calls of the model")
    totals = {name: run.tally.total for name, run in runs.items()}
    rows = [
        (f"{MODES[name].about} ({of.valid} of {of.calls})", round(100 * of.valid / max(of.calls, 1)))
        for name, of in totals.items()
    ]
    bar_chart(out, rows, most=100, unit=" %", style="green")


def demo_capture_json(found: CaptureDemo) -> Json:
    """Return the captures of the demo as JSON data: the source, the counts by mode, labels, examples and files."""
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
