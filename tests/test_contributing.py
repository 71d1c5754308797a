"""What CONTRIBUTING.md shows can be built in: a copy of the tree takes its format and its repair rule, and holds."""

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
PARTS = ("src", "tests", "tools", "docs", "README.md", "CONTRIBUTING.md", "pyproject.toml")
SUITE = ("corpus", "laws_module", "repair_rules")
OWN = "lighthouse or number_word or up_to_date or lists_every"


def blocks(language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", GUIDE.read_text("utf-8"))


def apply(diff: str, tree: Path) -> None:
    """Each part is a file and what is to be there: lines that stand there now, and those with a + that come to them."""
    for part in re.split(r"(?m)^--- ", diff)[1:]:
        name, *lines = part.splitlines()
        there = "".join(line[1:] + "\n" for line in lines if line[0] != "+")
        text = (tree / name).read_text("utf-8")
        assert text.count(there) == 1, f"{name} has not once what CONTRIBUTING.md shows:\n{there}"
        becomes = "".join(line[1:] + "\n" for line in lines if line[0] != "-")
        (tree / name).write_text(text.replace(there, becomes), "utf-8")


def run(tree: Path, *command: str) -> str:
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
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copyfile
        (tree / part).parent.mkdir(exist_ok=True)
        copy(ROOT / part, tree / part)
    (value,) = (block for block in blocks("python") if "LIGHTHOUSE = Format(" in block)
    (tree / "src" / "rightcall" / "formats" / "lighthouse.py").write_text(value, "utf-8")
    shutil.copyfile(
        ROOT / "examples" / "new_format" / "lighthouse.jsonl", tree / "tests" / "corpus" / "lighthouse.jsonl"
    )
    for diff in blocks("diff"):
        apply(diff, tree)
    return tree


@pytest.mark.sweep
def test_the_format_and_the_repair_rule_of_the_guide_pass_the_tests_when_they_are_built_in(tree: Path) -> None:
    run(tree, "tools/pages.py")
    assert "number_word" in (tree / "docs" / "repair.md").read_text("utf-8")
    assert "lighthouse" in (tree / "docs" / "formats.md").read_text("utf-8")
    files = [f"tests/test_{name}.py" for name in SUITE]
    told = run(
        tree, "-m", "pytest", "-p", "no:cacheprovider", "-o", "addopts=", "--import-mode=importlib", "-k", OWN, *files
    )
    assert int(re.findall(r"(\d+) passed", told)[0]) > 14
