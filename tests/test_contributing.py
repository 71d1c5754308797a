"""The format and the repair rule of CONTRIBUTING.md pass the tests when they are added to a copy of the tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "CONTRIBUTING.md"
if not (GUIDE.exists() and (ROOT / "tools").exists()):
    pytest.skip("the guide is not part of the sdist", allow_module_level=True)
FOLDERS = ("src", "tests", "tools", "docs", "evals", "fuzz", "examples", "benchmarks")
PARTS = (*FOLDERS, "README.md", "CONTRIBUTING.md", "pyproject.toml")
OWN = "lighthouse or number_word or up_to_date or lists_every"


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", GUIDE.read_text("utf-8"))


def apply_diff(diff: str, tree: Path) -> None:
    """Apply each part of the diff to the file it names. The unchanged lines must occur there exactly once."""
    for part in re.split(r"(?m)^--- ", diff)[1:]:
        name, *lines = part.splitlines()
        before = "".join(line[1:] + "\n" for line in lines if line[0] != "+")
        after = "".join(line[1:] + "\n" for line in lines if line[0] != "-")
        text = (tree / name).read_text("utf-8")
        assert text.count(before) == 1, f"{name} does not have the lines of CONTRIBUTING.md exactly once:\n{before}"
        (tree / name).write_text(text.replace(before, after), "utf-8")


def run_in_tree(tree: Path, *command: str) -> str:
    paths = os.pathsep.join(str(tree / folder) for folder in ("src", "tools"))
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": paths, "RIGHTCALL_SWEEP": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("built") / "tree"
    for part in PARTS:
        (tree / part).parent.mkdir(exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns(".cache", "__pycache__"))
        else:
            shutil.copyfile(ROOT / part, tree / part)
    (module,) = (block for block in code_blocks("python") if "LIGHTHOUSE = Format(" in block)
    (tree / "src" / "rightcall" / "formats" / "lighthouse.py").write_text(module, "utf-8")
    shutil.copyfile(
        ROOT / "examples" / "new_format" / "lighthouse.jsonl", tree / "tests" / "corpus" / "lighthouse.jsonl"
    )
    for diff in code_blocks("diff"):
        apply_diff(diff, tree)
    return tree


@pytest.mark.sweep
def test_the_format_and_the_repair_rule_of_the_guide_pass_their_tests(tree: Path) -> None:
    run_in_tree(tree, "tools/pages.py")
    assert "number_word" in (tree / "docs" / "repair.md").read_text("utf-8")
    assert "lighthouse" in (tree / "docs" / "formats.md").read_text("utf-8")
    assert "keeps every law" in run_in_tree(tree, "-m", "rightcall", "formats", "check", "lighthouse")
    options = ("-p", "no:cacheprovider", "-o", "addopts=", "--import-mode=importlib")
    summary = run_in_tree(tree, "-m", "pytest", *options, "-k", OWN, "tests")
    assert int(re.findall(r"(\d+) passed", summary)[0]) > 100
