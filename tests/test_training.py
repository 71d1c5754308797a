"""Training an adapter, as far as possible without a GPU; most tests need the extra `train`."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.small_disk import on_small_disk

TESTS = Path(__file__).resolve().parent
FOLDER = TESTS.parent / "examples" / "train"
EVALS = TESTS.parent / "evals"
PATHS = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (FOLDER, EVALS, TESTS)))}


def has_modules(*names: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in names)


needs_training = pytest.mark.skipif(
    not has_modules("torch", "transformers", "gguf"), reason="needs the extra train; `make train` has it"
)


def test_the_training_script_is_short_enough_to_read() -> None:
    for file in FOLDER.glob("*.py"):
        assert len(file.read_text("utf-8").splitlines()) < 150, file


@needs_training
def test_a_killed_training_run_leaves_whole_files_and_resumes(tmp_path: Path) -> None:
    kills = os.environ.get("RIGHTCALL_TRAINING_KILLS", "10")
    disk = on_small_disk(tmp_path)
    command = [*disk, sys.executable, str(EVALS / "training_kills.py"), kills, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=PATHS)
    assert done.returncode == 0, done.stderr
    assert "a full disk left no files" in done.stdout
    assert ("really full" in done.stdout) == bool(disk)


@needs_training
@pytest.mark.skipif(not has_modules("xgrammar"), reason="needs xgrammar; `make train` has it")
def test_a_served_adapter_gives_the_output_of_the_model_and_obeys_grammars(tmp_path: Path) -> None:
    command = [sys.executable, str(EVALS / "served_adapter.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=PATHS)
    assert done.returncode == 0 and "served" in done.stdout, done.stderr
