"""Bugs of one line, put into the source one at a time: do the tests see them?    fuzz/mutants.py

    --only 'GBNF|id'   only the bugs whose name this expression finds
    --processes 2
    --most 0           so many may be missed

Each bug of `mutants.toml` says where it is put in and which checks must fail then: test files, or laws of a format. The
tree is copied, the source here is never touched. Every check also runs without any bug: one that fails then shows
nothing. The exit status is 1 if more bugs are missed than may be, if a check fails without a bug, or if a bug no longer
fits the source, because its line was changed: then it must be put in anew, or another one in its place.
"""

from __future__ import annotations

import argparse
import compileall
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("src", "tests", "fuzz", "evals", "tools", "pyproject.toml")
SEED = 12
LONGEST = 600.0  # seconds for a check without a bug
PATIENCE = 4  # a bug may make a check take so many times longer before it counts as hanging
GRACE = 30.0


class Mutant(NamedTuple):
    name: str
    file: str
    find: str  # stands once in the file
    put: str
    checks: tuple[str, ...]

    def fault(self) -> str:
        """Why it cannot be put in; empty if it can."""
        path = ROOT / "src/rightcall" / self.file
        if not path.exists():
            return f"there is no {self.file}"
        count = path.read_text().count(self.find)
        return "" if count == 1 else f"{self.find!r} stands {count} times in {self.file}"


class Outcome(NamedTuple):
    mutant: Mutant
    seen_by: str  # the check that failed; empty where none did
    seconds: float


class Run(NamedTuple):
    failed: bool
    seconds: float
    tail: str


def main() -> int:
    asked = arguments()
    mutants = [mutant for mutant in read() if re.search(asked.only, mutant.name)]
    stale = [f"  {mutant.name}: {fault}" for mutant in mutants if (fault := mutant.fault())]
    if stale:
        print("these bugs no longer fit the source; put them in anew:", *stale, sep="\n")
        return 1
    started = time.monotonic()
    missed = list[str]()
    with trees(asked.processes) as free, ThreadPoolExecutor(asked.processes) as pool:
        judge = Judge(free)
        for outcome in pool.map(judge.judge, mutants):
            by = f"caught by {outcome.seen_by}" if outcome.seen_by else "MISSED"
            print(f"{outcome.seconds:6.1f} s  {outcome.mutant.name}: {by}", flush=True)
            missed += [] if outcome.seen_by else [outcome.mutant.name]
    for check, said in judge.broken.items():
        print(f"fails without any bug: {check}\n{said}")
    print(f"{len(mutants)} bugs, {len(missed)} missed, in {time.monotonic() - started:.0f} s", *missed, sep="\n  ")
    return 1 if len(missed) > asked.most or judge.broken else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Puts bugs in, one at a time, and looks whether the tests see them.")
    parser.add_argument("--only", default="", help="only the bugs whose name this expression finds")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--most", type=int, default=0, help="so many may be missed")
    return parser.parse_args()


def read() -> list[Mutant]:
    data = tomllib.loads((ROOT / "fuzz/mutants.toml").read_text())
    return [Mutant(m["name"], m["file"], m["find"], m["put"], tuple(m["checks"])) for m in data["mutant"]]


# -- trees to put bugs into --------------------------------------------------------------------------------------------


@contextmanager
def trees(count: int) -> Iterator[Queue[Path]]:
    """Copies of the tree; whoever takes one puts it back as it was."""
    free = Queue[Path]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for number in range(count):
            free.put(copied(Path(folder) / str(number)))
        yield free


def copied(tree: Path) -> Path:
    tree.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / name)
    compileall.compile_dir(tree / "src", quiet=2)
    (tree / ".git").mkdir()  # the end of the way up, for what looks for the project's folder
    return tree


@contextmanager
def bugged(tree: Path, mutant: Mutant) -> Iterator[None]:
    path = tree / "src/rightcall" / mutant.file
    source = path.read_text()
    try:
        put(path, source.replace(mutant.find, mutant.put))
        yield
    finally:
        put(path, source)


def put(path: Path, source: str) -> None:
    """Python takes a compiled file for fresh by size and whole seconds, which two versions may share."""
    path.write_text(source)
    for old in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        old.unlink()


# -- the checks --------------------------------------------------------------------------------------------------------


class Judge:
    """Puts bugs in and runs their checks. What a check gives without any bug is looked at once."""

    def __init__(self, free: Queue[Path]) -> None:
        self._free = free
        self._clean: dict[str, Run] = {}

    def judge(self, mutant: Mutant) -> Outcome:
        started = time.monotonic()
        tree = self._free.get()
        try:
            seen_by = next((check for check in mutant.checks if self._sees(check, mutant, tree)), "")
        finally:
            self._free.put(tree)
        return Outcome(mutant, seen_by, time.monotonic() - started)

    def _sees(self, check: str, mutant: Mutant, tree: Path) -> bool:
        """Does it fail with the bug, and only with it?"""
        if check not in self._clean:
            self._clean[check] = run(check, tree, LONGEST)
        clean = self._clean[check]
        if clean.failed:
            return False
        with bugged(tree, mutant):
            return run(check, tree, GRACE + PATIENCE * clean.seconds).failed

    @property
    def broken(self) -> dict[str, str]:
        """The checks that fail without any bug, and what they said."""
        return {check: run.tail for check, run in self._clean.items() if run.failed}


def run(check: str, tree: Path, limit: float) -> Run:
    """A check that does not end in time has failed."""
    started = time.monotonic()
    environment = {
        **os.environ,
        "PYTHONPATH": "src:tests:evals",
        "PYTHONDONTWRITEBYTECODE": "1",
        "RIGHTCALL_SWEEP": "1",
    }
    process = subprocess.Popen(
        command(check),
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=limit)
        failed = process.returncode != 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        failed = True
    return Run(failed, time.monotonic() - started, said[-2_000:])


def command(check: str) -> list[str]:
    """`tests/...` with options of pytest, or `law NAME FORMAT`: the same seed tries the same examples."""
    words = shlex.split(check)
    if words[0] == "law":
        law, format = words[1:]
        options = ["--law", law, "--format", format, "--seed", str(SEED), "--examples", "60", "--processes", "1"]
        return [sys.executable, "fuzz/laws.py", *options]
    return [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *words]


if __name__ == "__main__":
    sys.exit(main())
