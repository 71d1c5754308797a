"""The way to a trained adapter, as far as a machine without a GPU goes; the rest needs the extra `train`."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "train"
KILLS = FOLDER.parent.parent / "evals" / "training_kills.py"
IS_HERE = all(importlib.util.find_spec(name) is not None for name in ("torch", "transformers", "gguf"))


def test_the_training_script_is_short_enough_to_read() -> None:
    for file in FOLDER.glob("*.py"):
        assert len(file.read_text("utf-8").splitlines()) < 150, file


@pytest.mark.skipif(not IS_HERE, reason="needs the extra train; `make train` has it")
def test_a_killed_training_run_leaves_whole_files_and_goes_on() -> None:
    kills = os.environ.get("RIGHTCALL_TRAINING_KILLS", "10")
    environ = {**os.environ, "PYTHONPATH": str(FOLDER)}
    done = subprocess.run([sys.executable, str(KILLS), kills], capture_output=True, text=True, env=environ)
    assert done.returncode == 0, done.stderr
    assert "a full disk left nothing behind" in done.stdout
