"""The last part of the demo: captures of the recorded model in every mode."""

import json
from pathlib import Path

import pytest

from rightcall.cli import demo_model
from rightcall.cli.demo_model import CAPTURE_RECORDING, MODES, CaptureDemo, run_demo_capture
from support.command import run
from support.stand_in_llama import DIES, model_file, write_package


@pytest.fixture(scope="module")
def demo_capture(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CaptureDemo]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, run_demo_capture(folder, recorded=True)


def test_the_recording_gives_valid_rows_and_a_training_file(demo_capture: tuple[Path, CaptureDemo]) -> None:
    demo = demo_capture[1]
    assert list(demo.runs) == list(MODES) and demo.source == "a recording of smollm2 (as you asked)"
    assert demo.report.bad == 0 and demo.report.rows == sum(run.tally.rows for run in demo.runs.values()) > 0
    assert demo.exported.examples > 0 and all(Path(path).exists() for _, path in demo.files)
    assert all(run.tally.total.scenarios == 9 and run.tally.total.valid > 0 for run in demo.runs.values())


def test_the_demo_can_be_repeated_in_the_same_folder(demo_capture: tuple[Path, CaptureDemo]) -> None:
    folder, first = demo_capture
    (folder / "mine.txt").write_text("x")
    assert run_demo_capture(folder, recorded=True).report.rows == first.report.rows and (folder / "mine.txt").exists()


def test_a_grammar_increases_the_share_of_valid_calls(demo_capture: tuple[Path, CaptureDemo]) -> None:
    runs = demo_capture[1].runs
    free, held = [runs[name].tally.total for name in ("parse", "grammar")]
    assert held.valid / held.calls > free.valid / free.calls


def test_the_demo_uses_the_recording_and_the_reason_if_the_model_cannot_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(write_package(tmp_path / "packages", DIES.format("SIGILL"))))
    monkeypatch.setattr(demo_model, "MODEL", model_file(tmp_path))
    assert "processor lacks" in run_demo_capture(tmp_path / "rows").source


def test_the_command_shows_the_table_and_the_output_paths(tmp_path: Path) -> None:
    result = run("demo", "--recorded", "--folder", str(tmp_path))
    assert result.exit_code == 0
    assert "right tool  right arguments" in result.stdout and str(tmp_path) in result.stdout
    assert "train.jsonl" in result.stdout and "constrained by the tools (12 of 13)" in result.stdout.splitlines()[-1]
    last = json.loads(run("demo", "--recorded", "--folder", str(tmp_path), "--json").stdout)["live"]
    assert last["bad"] == 0 and last["ways"]["none"]["scenarios"] == 9


def test_the_recording_is_in_the_package() -> None:
    assert CAPTURE_RECORDING.parent.name == "cli" and CAPTURE_RECORDING.stat().st_size < 150_000
