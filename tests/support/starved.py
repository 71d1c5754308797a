"""Kill commands, or take their disk space, at every step in which they use the disk; in forks of one process.

    python tests/support/starved.py FOLDER STRIDE     print one JSON line per job: faults and attempts

The child counts its calls of functions that change files; SIGKILL ends it before the n-th call. A limit on the size of
files simulates a full disk. If the folder is a small disk of its own (`small_disk`), that disk is filled, too.
Everything is imported once, so an attempt costs only a fork. A stride n greater than 1 tests only every n-th step.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import io
import json
import os
import pkgutil
import re
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

COUNTED_FUNCTIONS = "open write fsync fdatasync rename unlink ftruncate".split()
_calls_left: list[int] = []  # calls until the process is killed; empty: it is not killed


def _count_calls(do: Callable[..., Any]) -> Callable[..., Any]:
    def count_and_call(*args: Any, **kwargs: Any) -> Any:
        if _calls_left:
            _calls_left[0] -= 1
            if _calls_left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return do(*args, **kwargs)

    return count_and_call


for _name in COUNTED_FUNCTIONS:  # before a module is imported that stores one of them
    if hasattr(os, _name):
        setattr(os, _name, _count_calls(getattr(os, _name)))

import typer  # noqa: E402

import rightcall  # noqa: E402
from rightcall import parse  # noqa: E402
from rightcall.backends.base import BaseBackend  # noqa: E402
from rightcall.backends.cassette import load_cassette  # noqa: E402
from rightcall.backends.recording import Recorder, ReplayBackend  # noqa: E402
from rightcall.backends.request import Answer, Request, to_answer  # noqa: E402
from rightcall.capture.captured_rows import CAPTURE  # noqa: E402
from rightcall.capture.domain import find_domains  # noqa: E402
from rightcall.capture.runner import Capture  # noqa: E402
from rightcall.cli.app import app  # noqa: E402
from rightcall.cli.demo_model import CAPTURE_RECORDING, MODES, recording  # noqa: E402
from rightcall.datasets.exporting import export  # noqa: E402
from rightcall.datasets.rows.engines import InlineEngine  # noqa: E402
from rightcall.datasets.rows.mapping import RowOutcome, map_rows  # noqa: E402
from rightcall.datasets.rows.sinks import FileSink  # noqa: E402
from rightcall.datasets.rows.sources import RowBatch, sources_of  # noqa: E402
from rightcall.evaluation.evaluation_run import EvalSettings, Evaluation  # noqa: E402
from rightcall.evaluation.suites import find_cases  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # started by its path, without pytest
from support.captured import rows, write  # noqa: E402
from support.small_disk import is_small_disk, leave_room, page_size  # noqa: E402

APP = typer.main.get_command(app)


class Job(NamedTuple):
    """A command that writes `files` into the given folder, from the beginning or by resuming."""

    name: str
    run: Callable[[Path], int]
    files: tuple[str, ...]
    appends: bool = False


def command(*args: str) -> Callable[[Path], int]:
    def run_command(folder: Path) -> int:
        arguments = [arg.format(here=folder, there=folder.parent) for arg in args]
        return int(APP.main(arguments, standalone_mode=False) or 0)

    return run_command


def record(folder: Path) -> int:
    """Record the same few requests each time."""
    backend = Recorder(ReplayBackend(folder.parent / "tape.jsonl", strict=False), folder / "tape.jsonl")
    for text in ("Hi", "And?", "Bye"):
        backend.complete_sync(Request(messages=[{"role": "user", "content": text}], model="m"))
    return 0


def capture(folder: Path) -> int:
    run = Capture(recording(), find_domains(["support"]), MODES["parse"].settings, folder / "c.jsonl", resume=True)
    asyncio.run(run.go())
    return 0


class FirstToolBackend(BaseBackend):
    """A backend that calls the first offered tool."""

    async def complete(self, request: Request) -> Answer:
        assert request.toolset
        call = {"name": request.toolset.names[0], "arguments": {}}
        return to_answer(parse(f"<tool_call>{json.dumps(call)}</tool_call>", tools=request.toolset), mode="text")


def evaluate(folder: Path) -> int:
    settings = EvalSettings(model="m", configurations=("bare", "+repair"), max_turns=1)
    run = Evaluation(FirstToolBackend(), find_cases(["questions"], limit=4), settings, folder / "e.jsonl", resume=True)
    asyncio.run(run.go())
    return 0


class Echo:
    """A row function that writes each row again."""

    key = "echo"

    def __call__(self, batch: RowBatch) -> RowOutcome:
        lines = [line + b"\n" for line in batch.lines()]
        return RowOutcome(b"".join(lines), rows=len(lines))


def parts(folder: Path) -> int:
    """Write many parts, each of which may be the last; resume if there are some."""
    with FileSink(folder / "out.jsonl", CAPTURE, resume=True) as sink:
        map_rows(sources_of([str(folder.parent / "rows.jsonl")]), Echo(), sink, InlineEngine(), part_size=4_000)
    return 0


JOBS = (
    Job("parts", parts, ("out.jsonl",)),
    Job("capture", capture, ("c.jsonl", "c.jsonl.journal"), appends=True),
    Job("eval", evaluate, ("e.jsonl",), appends=True),
    Job("record", record, ("tape.jsonl",), appends=True),
    Job("import", command("dataset", "import", "{there}/logs.jsonl", "-o", "{here}/rows.jsonl"), ("rows.jsonl",)),
    Job("label", command("dataset", "label", "{there}/rows.jsonl", "-o", "{here}/rows.jsonl"), ("rows.jsonl",)),
    Job("assemble", command("dataset", "assemble", "{there}/verifier.jsonl", "-o", "{here}"),
        ("training.jsonl", "notebook.jsonl", "conflicts.jsonl", "quarantine.jsonl", "dataset_manifest.json")),
    Job("split", command("dataset", "split", "{there}/rows.jsonl", "-o", "{here}"),
        ("train.jsonl", "validation.jsonl", "split_manifest.json")),
    Job("export", command("dataset", "export", "{there}/rows.jsonl", "--to", "trl-kto", "-o", "{here}/train.jsonl"),
        ("train.jsonl", "train.jsonl.manifest.json")),
    Job("parquet", command("dataset", "export", "{there}/rows.jsonl", "--to", "trl-kto", "-o", "{here}/train.parquet"),
        ("train.parquet", "train.parquet.manifest.json")),
)  # fmt: skip


def prepare(folder: Path) -> None:
    """Write the input of the jobs; first with fewer rows, so that an old file differs from a new one."""
    (folder / "tape.jsonl").write_bytes(CAPTURE_RECORDING.read_bytes())
    for number, names in enumerate((("right",), ())):
        at = folder / ("old" if not number else "new")
        at.mkdir()
        write(at / "rows.jsonl", rows(*names))
        export([at / "rows.jsonl"], at / "verifier.jsonl", to="verifier")
        export([at / "rows.jsonl"], at / "logs.jsonl", to="sharegpt")


def copy_inputs(folder: Path, which: str) -> None:
    for name in ("rows.jsonl", "verifier.jsonl", "logs.jsonl"):
        (folder / name).write_bytes((folder / which / name).read_bytes())


# -- one attempt -------------------------------------------------------------------------------------------------------


def run_attempt(job: Job, folder: Path, *, kill_at: int | None = None, max_bytes: int | None = None) -> int:
    """Return the exit code of a child that runs the job; -9 if it was killed."""
    child = os.fork()
    if not child:
        code = 99
        try:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            if max_bytes is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))
            if kill_at is not None:
                _calls_left.append(kill_at)
            code = _code(job, folder)
        finally:
            _calls_left.clear()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _code(job: Job, folder: Path) -> int:
    from rightcall.errors import FileFailed

    try:
        return job.run(folder)
    except SystemExit as error:
        return int(error.code or 0)
    except FileFailed:
        return 1
    except Exception as error:  # noqa: BLE001 - the outermost frame of the process: typer's Exit has the exit code
        return int(getattr(error, "exit_code", 98))


def state(job: Job, folder: Path) -> dict[str, bytes | None]:
    """Return the contents of the files, without timestamps."""
    paths = {name: folder / name for name in job.files}
    return {name: _steady(path.read_bytes()) if path.exists() else None for name, path in paths.items()}


def _steady(data: bytes) -> bytes:
    data = re.sub(rb'"at":"[^"]*"|"seconds":[\d.e-]+', b"", data)
    data = re.sub(rb'(_unix_ms"?: ?|run-\d{5}-|"at": ?)\d{13}', rb"\g<1>0", data)
    return re.sub(rb'"sha256": "[0-9a-f]{64}"|"call_[0-9A-Za-z]{16,}|"delays":\[[\d,]*\]', b"", data)


def drafts(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(".")]


# -- all attempts of a job ---------------------------------------------------------------------------------------------


class Trial:
    def __init__(self, job: Job, folder: Path, stride: int) -> None:
        self.stride = stride
        self.job, self.folder, self.here = job, folder, folder / job.name
        self.old_copy = folder / f"{job.name}.old"
        self.wrong: list[str] = []
        self.attempts = 0
        self.old = self._run_first("old")
        self.here.rename(self.old_copy)
        self.new = self._run_first("new")

    def _run_first(self, which: str) -> dict[str, bytes | None]:
        shutil.rmtree(self.here, ignore_errors=True)
        self.here.mkdir()
        copy_inputs(self.folder, which)
        code = self._run_here() if which == "old" else run_attempt(self.job, self.here)
        if code:
            self.wrong.append(f"{which}: exit code {code}")
        return state(self.job, self.here)

    def _run_here(self) -> int:
        """Run the job in this process, so that its caches exist in every fork. Jobs with threads run in a fork."""
        if self.job.name in ("capture", "eval", "record", "parquet"):
            return run_attempt(self.job, self.here)
        with redirect_stdout(io.StringIO()):
            return self.job.run(self.here)

    def reset(self) -> None:
        """Restore the old files; or nothing, if files are appended to."""
        shutil.rmtree(self.here, ignore_errors=True)
        if self.job.appends:
            self.here.mkdir()
        else:
            shutil.copytree(self.old_copy, self.here)

    def kill(self) -> None:
        for number in range(0, 10_000, self.stride):
            self.reset()
            code = run_attempt(self.job, self.here, kill_at=number)
            self._check_files(f"killed before step {number}")
            if code != -signal.SIGKILL:
                if number < 8 or code:
                    self.wrong.append(f"ended with {code} before step {number}")
                return
            self._finish(f"after it was killed before step {number}")

    def starve(self) -> None:
        sizes = [len(data) for data in self.new.values() if data]
        for max_bytes in sorted({0, 50, min(sizes) // 2, max(sizes) // 2, max(sizes) - 200}):
            self._without_room(
                f"with room for {max_bytes}", partial(run_attempt, self.job, self.here, max_bytes=max_bytes)
            )

    def fill(self) -> None:
        """Fill the disk, except for fewer pages than the largest file has."""
        needed = -(-max([len(data) for data in self.new.values() if data]) // page_size(self.folder))
        for pages in sorted({0, needed // 2, needed - 1}):
            self._without_room(f"on a disk with {pages} pages left", partial(self._on_full_disk, pages))

    def _on_full_disk(self, pages: int) -> int:
        ballast = leave_room(self.folder, pages)
        try:
            return run_attempt(self.job, self.here)
        finally:
            ballast.unlink()

    def _without_room(self, when: str, go: Callable[[], int]) -> None:
        self.reset()
        before = state(self.job, self.here)
        code = go()
        self._check_files(when)
        if code != 1:
            self.wrong.append(f"{when}: exit code {code}")
        if not self.job.appends and state(self.job, self.here) != before:
            self.wrong.append(f"{when}: the old files changed")
        if drafts(self.here):
            self.wrong.append(f"{when}: {drafts(self.here)} is left")
        self._finish(f"and again, after it was {when}")

    def _check_files(self, when: str) -> None:
        """Check that every file is the old or the new one; an appended file is a prefix of the new one."""
        self.attempts += 1
        for name, data in state(self.job, self.here).items():
            if self.job.appends:
                if data is not None and not (self.new[name] or b"").startswith(data):
                    self.wrong.append(f"{when}: {name} is no prefix of the new file")
            elif data not in (self.old[name], self.new[name]):
                self.wrong.append(f"{when}: {name} is neither old nor new")

    def _finish(self, when: str) -> None:
        if self.job.name == "record":  # running it again appends more
            code, path = run_attempt(self.job, self.here), self.here / "tape.jsonl"
            if code or len(load_cassette(path).exchanges) < 3:
                self.wrong.append(f"{when}: it cannot be resumed ({code})")
            return
        code = run_attempt(self.job, self.here)
        if code or state(self.job, self.here) != self.new or drafts(self.here):
            self.wrong.append(
                f"{when}: run again it ends with {code}, {drafts(self.here)}, and the files differ from the new ones"
            )


def _preload() -> None:
    """Import the modules that commands import when they run, once for all forks."""
    for package in ("backends", "capture", "datasets", "evaluation", "cli"):
        for module in pkgutil.iter_modules([str(Path(rightcall.__file__).parent / package)]):
            if module.name not in ("__main__", "llama_child", "pytest_plugin"):
                importlib.import_module(f"rightcall.{package}.{module.name}")
    for name in ("aiohttp", "jsonschema_rs", "pyarrow.parquet"):
        importlib.import_module(name)
    find_cases(["questions"], limit=4)  # they stay in a cache


def trials(folder: Path, stride: int) -> Iterator[dict[str, Any]]:
    _preload()
    prepare(folder)
    gc.freeze()  # no child collects the objects that all of them share
    for job in JOBS:
        trial = Trial(job, folder, stride)
        if not trial.wrong:
            trial.kill()
            trial.starve()
        is_filled = is_small_disk(folder) and not trial.wrong
        if is_filled:
            trial.fill()
        yield {"job": job.name, "tries": trial.attempts, "filled": is_filled, "wrong": trial.wrong[:20]}


if __name__ == "__main__":
    for result in trials(Path(sys.argv[1]), int(sys.argv[2])):
        print(json.dumps(result), flush=True)
