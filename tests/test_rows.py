"""Mapping of many rows: chunking, compression, kills and resumption do not change the bytes or their order."""

from __future__ import annotations

import gzip
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from rightcall.datasets.rows.engines import LocalEngine
from rightcall.datasets.rows.mapping import RowOutcome, map_rows
from rightcall.datasets.rows.sinks import FileSink
from rightcall.datasets.rows.sources import RowBatch, sources_of
from rightcall.storage.file_kinds import LINES
from rightcall.storage.jsonl import LineFault, encode_row

ROWS = [{"id": number, "text": f"row {number} " + "é" * (number % 17)} for number in range(300)]
ROW_BYTES = b"".join(map(encode_row, ROWS))


class Echo:
    """Writes every row unchanged, and invalid ones as null."""

    key = "echo"

    def __call__(self, batch: RowBatch) -> RowOutcome:
        outcome = RowOutcome()
        lines = []
        for line, row in batch.rows():
            outcome.rows += 1
            if isinstance(row, LineFault):
                outcome.add_fault(line, row.message)
                lines.append(b"null\n")
            else:
                lines.append(encode_row(row))
        outcome.data, outcome.counts = b"".join(lines), {"seen": outcome.rows}
        return outcome


def echo_rows(tmp_path: Path, data: bytes, name: str = "in.jsonl", **more: Any) -> bytes:
    (tmp_path / name).write_bytes(data)
    out = tmp_path / "out.jsonl"
    with FileSink(out, LINES) as sink:
        map_rows(sources_of([str(tmp_path / name)]), Echo(), sink, **more)
    return out.read_bytes()


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("size", [1, 100, 4096, 1 << 20])
def test_mapped_rows_keep_their_bytes_and_order(tmp_path: Path, jobs: int, size: int) -> None:
    if jobs * size == 2:
        size = 50  # a process for every byte would prove nothing more
    assert echo_rows(tmp_path, ROW_BYTES, engine=LocalEngine(jobs), part_size=size) == ROW_BYTES


def test_compressed_rows_are_read(tmp_path: Path) -> None:
    import pyarrow  # type: ignore[import-untyped]

    assert echo_rows(tmp_path, gzip.compress(ROW_BYTES), "in.jsonl.gz", part_size=1000) == ROW_BYTES
    packed = pyarrow.compress(ROW_BYTES, codec="zstd", asbytes=True)
    assert echo_rows(tmp_path, packed, "in.jsonl.zst", part_size=1000) == ROW_BYTES


class Killer(Echo):
    """Kills its own process once for each mark file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, batch: RowBatch) -> RowOutcome:
        for mark in self._folder.glob("kill*"):
            mark.unlink(missing_ok=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(batch)


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(ROW_BYTES)
    (tmp_path / "kill1").touch()
    (tmp_path / "kill2").touch()
    with FileSink(tmp_path / "out.jsonl", LINES) as sink:
        map_rows(sources_of([str(tmp_path / "in.jsonl")]), Killer(tmp_path), sink, LocalEngine(2), part_size=1000)
    assert (tmp_path / "out.jsonl").read_bytes() == ROW_BYTES
    assert not list(tmp_path.glob("kill*"))


MIB = 1 << 20
PARTS = [bytes(at % 251 for at in range(size)) for size in (0, 1, 4096)]
PARTS += [bytes(range(251)) * (size // 251) + b"x" * (size % 251) for size in (MIB - 1, MIB, MIB + 1, 3 * MIB, 7)]


def interrupted_parts(out: Path) -> list[dict[str, int]]:
    """Write the parts without completing the file, and return their notes."""
    notes = [{"part": number} for number in range(len(PARTS))]
    with FileSink(out, LINES) as sink:
        sink.begin("run")
        for data, note in zip(PARTS, notes, strict=True):
            sink.write(data, note)
    return notes


def test_a_resumed_file_keeps_parts_of_any_size(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    notes = interrupted_parts(out)
    with FileSink(out, LINES, resume=True) as sink:
        assert sink.begin("run") == notes
        sink.finish()
    assert out.read_bytes() == b"".join(PARTS)


@pytest.mark.parametrize("at", [0, MIB - 1, MIB, 2 * MIB, 3 * MIB - 1])
def test_a_resumed_file_drops_a_part_with_a_changed_byte_and_those_after_it(tmp_path: Path, at: int) -> None:
    out, changed = tmp_path / "out.jsonl", 6  # the part of 3 MiB
    notes = interrupted_parts(out)
    with open(f"{out}.part", "r+b") as file:
        file.seek(sum(map(len, PARTS[:changed])) + at)
        file.write(b"\xff")
    with FileSink(out, LINES, resume=True) as sink:
        assert sink.begin("run") == notes[:changed]
        sink.finish()
    assert out.read_bytes() == b"".join(PARTS[:changed])
