"""Insert one-line bugs into the source, one at a time, and check that the tests fail.    fuzz/mutants.py

    --only 'GBNF|id'   only the bugs whose name matches this expression
    --processes 2
    --most 0           the number of bugs that may be missed

Each bug of `mutants.toml` defines where it is inserted and which checks must fail: test files, or laws of a format. The
tree is copied; the source here is never changed. Every check also runs without a bug: a check that fails then proves
nothing. The exit status is 1 if too many bugs are missed, if a check fails without a bug, or if a bug does not match
the source any more because its line was changed: then adapt or replace it.
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
PATIENCE = 4  # with a bug, a check may take this many times longer before it counts as hanging
GRACE = 30.0


class Mutant(NamedTuple):
    name: str
    file: str
    find: str  # occurs once in the file
    put: str
    checks: tuple[str, ...]

    def fault(self) -> str:
        """Return why the bug cannot be inserted, or an empty string."""
        path = ROOT / "src/rightcall" / self.file
        if not path.exists():
            return f"the file {self.file} does not exist"
        count = path.read_text().count(self.find)
        return "" if count == 1 else f"{self.find!r} occurs {count} times in {self.file}"


class Outcome(NamedTuple):
    mutant: Mutant
    caught_by: str  # the check that failed; empty if none did
    seconds: float


class Run(NamedTuple):
    failed: bool
    seconds: float
    tail: str


def main() -> int:
    options = parse_arguments()
    mutants = [mutant for mutant in read_mutants() if re.search(options.only, mutant.name)]
    stale = [f"  {mutant.name}: {fault}" for mutant in mutants if (fault := mutant.fault())]
    if stale:
        print("these bugs do not match the source any more: adapt or replace them:", *stale, sep="\n")
        return 1
    started = time.monotonic()
    missed = list[str]()
    with trees(options.processes) as free, ThreadPoolExecutor(options.processes) as pool:
        mutant_runner = MutantRunner(free)
        for outcome in pool.map(mutant_runner.run_checks, mutants):
            verdict = f"caught by {outcome.caught_by}" if outcome.caught_by else "MISSED"
            print(f"{outcome.seconds:6.1f} s  {outcome.mutant.name}: {verdict}", flush=True)
            missed += [] if outcome.caught_by else [outcome.mutant.name]
    for check, output in mutant_runner.broken.items():
        print(f"fails without any bug: {check}\n{output}")
    print(f"{len(mutants)} bugs, {len(missed)} missed, in {time.monotonic() - started:.0f} s", *missed, sep="\n  ")
    return 1 if len(missed) > options.most or mutant_runner.broken else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Insert bugs one at a time and check that the tests fail.")
    parser.add_argument("--only", default="", help="only the bugs whose name matches this expression")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--most", type=int, default=0, help="the number of bugs that may be missed")
    return parser.parse_args()


def read_mutants() -> list[Mutant]:
    data = tomllib.loads((ROOT / "fuzz/mutants.toml").read_text())
    return [Mutant(m["name"], m["file"], m["find"], m["put"], tuple(m["checks"])) for m in data["mutant"]]


# -- copies of the tree ------------------------------------------------------------------------------------------------


@contextmanager
def trees(count: int) -> Iterator[Queue[Path]]:
    """Yield a queue of copies of the tree. A user of a copy returns it unchanged."""
    free = Queue[Path]()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for number in range(count):
            free.put(copy_tree(Path(folder) / str(number)))
        yield free


def copy_tree(tree: Path) -> Path:
    tree.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / name)
    compileall.compile_dir(tree / "src", quiet=2)
    (tree / ".git").mkdir()  # ends the search for the project's folder in parent folders
    return tree


@contextmanager
def inserted(tree: Path, mutant: Mutant) -> Iterator[None]:
    path = tree / "src/rightcall" / mutant.file
    source = path.read_text()
    try:
        write_source(path, source.replace(mutant.find, mutant.put))
        yield
    finally:
        write_source(path, source)


def write_source(path: Path, source: str) -> None:
    """Write the file and remove its compiled files: Python compares size and whole seconds, which may be equal."""
    path.write_text(source)
    for old in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        old.unlink()


# -- the checks --------------------------------------------------------------------------------------------------------


class MutantRunner:
    """Inserts bugs and runs their checks. The result of a check without a bug is cached."""

    def __init__(self, free: Queue[Path]) -> None:
        self._free = free
        self._clean: dict[str, Run] = {}

    def run_checks(self, mutant: Mutant) -> Outcome:
        started = time.monotonic()
        tree = self._free.get()
        try:
            caught_by = next((check for check in mutant.checks if self._catches(check, mutant, tree)), "")
        finally:
            self._free.put(tree)
        return Outcome(mutant, caught_by, time.monotonic() - started)

    def _catches(self, check: str, mutant: Mutant, tree: Path) -> bool:
        """Return whether the check fails with the bug, and only with it."""
        if check not in self._clean:
            self._clean[check] = run(check, tree, LONGEST)
        clean = self._clean[check]
        if clean.failed:
            return False
        with inserted(tree, mutant):
            return run(check, tree, GRACE + PATIENCE * clean.seconds).failed

    @property
    def broken(self) -> dict[str, str]:
        """Return the checks that fail without any bug, with their output."""
        return {check: run.tail for check, run in self._clean.items() if run.failed}


def run(check: str, tree: Path, limit: float) -> Run:
    """Run a check. A check that does not end in time has failed."""
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
        output, _ = process.communicate(timeout=limit)
        failed = process.returncode != 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        failed = True
    return Run(failed, time.monotonic() - started, output[-2_000:])


def command(check: str) -> list[str]:
    """Return the command of a check: `tests/...` with options of pytest, or `law NAME FORMAT` with a fixed seed."""
    words = shlex.split(check)
    if words[0] == "law":
        law, format = words[1:]
        options = ["--law", law, "--format", format, "--seed", str(SEED), "--examples", "60", "--processes", "1"]
        return [sys.executable, "fuzz/laws.py", *options]
    return [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *words]


if __name__ == "__main__":
    sys.exit(main())
