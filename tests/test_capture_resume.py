"""Capture runs that are interrupted at any moment, and how they are resumed."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.backends.exchange import Retries
from rightcall.backends.http import Backend
from rightcall.capture.capture_journal import CannotResume, Commits, journal_path
from rightcall.capture.captured_rows import capture_key
from rightcall.capture.domain import Domain
from rightcall.capture.runner import Capture, Watch
from rightcall.capture.settings import Settings
from rightcall.errors import FileFailed
from rightcall.storage.journal import Journal
from support.format_sample import selected
from support.lamps import LAMPS, journal, rows, steady
from support.stub_model import start_server

KILLED = Path(__file__).parent / "support" / "killed.py"
SETTINGS = Settings(models=("m",), mode="native", max_turns=3, runs=2, seed=5)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = start_server()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class CutRecorder(Watch):
    def __init__(self) -> None:
        self.cuts: list[tuple[str, int]] = []

    def cut(self, path: Path, size: int) -> None:
        self.cuts.append((path.name, size))


def run_capture(
    url: str, output: Path, *, watch: Watch | None = None, domains: tuple[Domain, ...] = (LAMPS,)
) -> Capture:
    backend = Backend(url, retries=Retries(most=0), environ={})
    run = Capture(backend, domains, SETTINGS, output, resume=True, watch=watch)
    asyncio.run(run.go())
    return run


class WrittenPieces:
    """A whole run as the pieces that were written, in order: an answer, then its rows."""

    def __init__(self, url: str, folder: Path) -> None:
        output = folder / "whole.jsonl"
        run_capture(url, output)
        self.wanted = [steady(row) for row in rows(output)]
        row_lines = [(line, json.loads(line)) for line in output.read_bytes().splitlines(keepends=True)]
        self.pieces: list[tuple[str, bytes]] = []
        for line in journal_path(output).read_bytes().splitlines(keepends=True):
            self.pieces.append(("journal", line))
            answer = json.loads(line)
            own_rows = [at for at, (_, row) in enumerate(row_lines) if _belongs(row, answer)]
            self.pieces += [("rows", row_lines[at][0]) for at in own_rows]
            row_lines = [each for at, each in enumerate(row_lines) if at not in own_rows]
        assert not row_lines

    def write(self, output: Path, whole: int, torn: int) -> None:
        """Write the first `whole` pieces and a part of the next one."""
        files = {"rows": b"", "journal": b""}
        for kind, line in self.pieces[:whole]:
            files[kind] += line
        if whole < len(self.pieces):
            kind, line = self.pieces[whole]
            files[kind] += line[: torn % len(line)]
        output.write_bytes(files["rows"])
        journal_path(output).write_bytes(files["journal"])


def _belongs(row: dict[str, Any], answer: dict[str, Any]) -> bool:
    if row["example_group_id"] != answer.get("group"):
        return False
    turn = row["proxy_trace"]["turn"]
    out_of_turns = row["kind"] == "outcome" and row["outcome"]["ended"] == "max_turns"
    return bool(turn - out_of_turns == answer["turn"])


@pytest.fixture(scope="module")
def pieces(url: str, tmp_path_factory: pytest.TempPathFactory) -> WrittenPieces:
    return WrittenPieces(url, tmp_path_factory.mktemp("whole"))


@given(data=st.data())
def test_a_run_interrupted_at_any_byte_resumes_to_the_same_rows(
    data: st.DataObject, url: str, pieces: WrittenPieces, tmp_path_factory: pytest.TempPathFactory
) -> None:
    output = tmp_path_factory.mktemp("cut") / "c.jsonl"
    pieces.write(output, data.draw(st.integers(0, len(pieces.pieces))), data.draw(st.integers(0, 10_000)))
    run = run_capture(url, output)
    assert [steady(row) for row in rows(output)] == pieces.wanted
    assert run.tally.rows == len(pieces.wanted), "what was written before counts too"
    assert all(isinstance(line, dict) for line in journal(output))


def test_an_incomplete_last_line_is_removed_and_reported(url: str, pieces: WrittenPieces, tmp_path: Path) -> None:
    output = tmp_path / "c.jsonl"
    pieces.write(output, 4, 100)
    watch = CutRecorder()
    run_capture(url, output, watch=watch)
    assert [size for _, size in watch.cuts] == [100]


def test_resuming_a_completed_run_changes_no_file(url: str, tmp_path: Path) -> None:
    output = tmp_path / "c.jsonl"
    run_capture(url, output)
    before = output.read_bytes(), journal_path(output).read_bytes()
    run = run_capture(url, output)
    assert (output.read_bytes(), journal_path(output).read_bytes()) == before
    assert run.resumed == run.total == 4 and run.tally.total.scenarios == 4


def test_foreign_rows_in_the_output_file_are_kept(url: str, pieces: WrittenPieces, tmp_path: Path) -> None:
    output = tmp_path / "c.jsonl"
    pieces.write(output, 5, 0)
    foreign_row = b'{"schema_version": "forge-dataset-capture/v1"}\n'
    output.write_bytes(foreign_row + output.read_bytes())
    run_capture(url, output)
    assert output.read_bytes().startswith(foreign_row) and len(rows(output)) == len(pieces.wanted) + 1


def test_a_damaged_line_is_reported_with_its_number(url: str, pieces: WrittenPieces, tmp_path: Path) -> None:
    output = tmp_path / "c.jsonl"
    pieces.write(output, len(pieces.pieces), 0)
    lines = output.read_bytes().splitlines(keepends=True)
    output.write_bytes(b"".join([lines[0], b"{]\n", *lines[2:]]))
    with pytest.raises(FileFailed, match=r"c\.jsonl:2: not JSON"):
        run_capture(url, output)
    journal_path(output).write_bytes(b'{"rightcall_journal": 1, "run": {}}\n{"task": 1}\n')
    with pytest.raises(CannotResume, match=r"c\.jsonl\.journal:2"):
        run_capture(url, output)


@pytest.mark.parametrize("line", [b"[]\n", b'{"rightcall_journal": 99}\n', b'{"task": "x"}\n', b"\xff\n"])
def test_a_file_that_is_not_a_journal_is_rejected(line: bytes, url: str, tmp_path: Path) -> None:
    journal_path(tmp_path / "c.jsonl").write_bytes(line)
    with pytest.raises((CannotResume, FileFailed)):
        run_capture(url, tmp_path / "c.jsonl")
    assert journal_path(tmp_path / "c.jsonl").read_bytes() == line


@pytest.mark.parametrize("concurrency", selected([1, 4], kept=[4]))
def test_repeatedly_killed_runs_lose_no_row_and_write_none_twice(concurrency: int, url: str, tmp_path: Path) -> None:
    """Real processes are ended by SIGKILL at random moments for RIGHTCALL_KILL_SECONDS seconds."""
    seconds = os.environ.get("RIGHTCALL_KILL_SECONDS", "1")
    domains = "shopping,calendar,forge_eval"
    options = ["--model", "m", "--base-url", url, "--mode", "native", "--max-turns", "3", "--seed", "1"]
    options += ["--domains", domains, "--runs", str(max(1, round(float(seconds) / 4)))]
    whole, output = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    many = ["--concurrency", str(concurrency)]
    for patience, path, more in (("0", whole, []), (seconds, output, many)):
        command = [sys.executable, str(KILLED), patience, "capture", *options, *more, "--output", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr + Path(f"{path}.log").read_text("utf-8")[-3000:]
    print(f"concurrency {concurrency}: {done.stdout.strip()}, {len(rows(output))} rows")
    keys = [capture_key(row) for row in rows(output)]
    assert len(keys) == len(set(keys))
    contents = [sorted([json.dumps(steady(row), sort_keys=True) for row in rows(path)]) for path in (whole, output)]
    assert contents[0] == contents[1]
    assert all(isinstance(line, dict) for line in journal(output))


# -- disks -------------------------------------------------------------------------------------------------------------


LIMITED_COMMAND = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
from rightcall.cli.app import app
app(sys.argv[1:])
"""


def test_a_full_disk_ends_the_run_and_the_written_rows_are_kept(url: str, tmp_path: Path) -> None:
    """A limit on the size of files simulates a full disk: the write fails in the middle of a line."""
    output = tmp_path / "c.jsonl"
    command = [sys.executable, "-m", "rightcall", "capture", "--model", "m", "--base-url", url, "--mode", "native"]
    options = ["--max-turns", "3", "--domains", "shopping", "--output", str(output)]
    limited = [sys.executable, "-c", LIMITED_COMMAND, *command[3:]]
    full = subprocess.run([*limited, *options], capture_output=True, text=True, timeout=60)
    assert full.returncode == 1 and f"rightcall: cannot write {output}" in full.stderr.splitlines()[-1]
    before = rows(output)
    assert before and output.stat().st_size <= 20_000
    done = subprocess.run([*command, *options, "--resume"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    after = rows(output)
    assert after[: len(before)] == before and len({capture_key(row) for row in after}) == len(after) > len(before)


@pytest.mark.parametrize("name", ["", "file/below/c.jsonl"])
def test_an_unwritable_output_path_is_an_error(name: str, url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileFailed, match=r"cannot (open|make the folder)"):
        run_capture(url, tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_output_file_without_write_permission_is_an_error(url: str, tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").touch(0o400)
    with pytest.raises(FileFailed, match="Permission denied"):
        run_capture(url, tmp_path / "c.jsonl")


# -- syncs to disk -----------------------------------------------------------------------------------------------------


class BlockingJournal(Journal):
    """A journal whose first sync blocks until the gate is opened."""

    gate = threading.Event()

    def append_all(self, rows: Any) -> None:
        self.gate.wait(10)
        super().append_all(rows)


def test_concurrent_rows_share_a_sync(tmp_path: Path) -> None:
    async def count_syncs() -> int:
        file = BlockingJournal(tmp_path / "c.jsonl")
        with file:
            commits = Commits(file)
            work = [asyncio.create_task(commits.append({"n": n})) for n in range(50)]
            await asyncio.sleep(0.05)
            file.gate.set()
            await asyncio.gather(*work)
            return commits.syncs

    assert asyncio.run(count_syncs()) <= 3
    assert [row["n"] for row in rows(tmp_path / "c.jsonl")] == list(range(50))


class FullDiskJournal(BlockingJournal):
    """A journal on a disk that is full from its second sync on."""

    gate = threading.Event()

    def append_all(self, rows: Any) -> None:
        if self.path.stat().st_size:
            self.gate.wait(10)
            raise FileFailed(f"cannot write {self.path}: No space left on device")
        Journal.append_all(self, rows)


def test_after_a_failed_write_no_row_is_accepted_and_no_caller_waits(tmp_path: Path) -> None:
    async def collect_errors() -> list[Any]:
        file = FullDiskJournal(tmp_path / "c.jsonl")
        with file:
            commits = Commits(file)
            await commits.append({"n": 0})
            first = asyncio.create_task(commits.append({"n": 1}))
            await asyncio.sleep(0.05)
            late = asyncio.create_task(commits.append({"n": 2}))
            await asyncio.sleep(0.05)
            file.gate.set()
            async with asyncio.timeout(10):
                found = await asyncio.gather(first, late, return_exceptions=True)
            return [*found, *await asyncio.gather(commits.append({"n": 3}), return_exceptions=True)]

    assert all(isinstance(error, FileFailed) and "c.jsonl" in str(error) for error in asyncio.run(collect_errors()))
    assert rows(tmp_path / "c.jsonl") == [{"n": 0}]
