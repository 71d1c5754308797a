"""Rows in remote stores: every store gives the same bytes, and an output file appears only when it is complete."""

from pathlib import Path
from uuid import uuid4

import pytest

from rightcall.datasets.rows.engines import InlineEngine, LocalEngine
from rightcall.datasets.rows.mapping import map_rows
from rightcall.datasets.rows.sinks import sink_to, unfinished_path
from rightcall.datasets.rows.sources import sources_of
from rightcall.datasets.rows.stores import RemoteStore, matches_glob
from rightcall.errors import CallerError, FileFailed, NotOurs
from rightcall.storage.file_kinds import LINES
from rightcall.storage.jsonl import encode_row
from support.row_works import Numbered

ROWS = [{"id": number, "text": f"row {number}"} for number in range(300)]
DATA = b"".join(map(encode_row, ROWS))
MADE = b"".join(encode_row({**row, "size": len(str(row["text"]))}) for row in ROWS)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(params=["file", "memory"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    pytest.importorskip("fsspec")
    return f"file://{tmp_path}/store" if request.param == "file" else f"memory://{uuid4().hex}"


@pytest.fixture
def filled_store(base: str, tmp_path: Path) -> str:
    """A store with two logs and another file."""
    (tmp_path / "store" / "deep").mkdir(parents=True)
    for name, data in (("a.jsonl", DATA[: len(DATA) // 2]), ("deep/b.jsonl", DATA[len(DATA) // 2 :]), ("c.txt", b"x")):
        with RemoteStore().writing(f"{base}/{name}") as write:
            write(data)
    return base


def read_file(path: str) -> bytes:
    with RemoteStore().open(path) as file:
        return file.read()


def test_a_glob_finds_the_files_of_a_store(filled_store: str) -> None:
    found = RemoteStore().matching
    assert found(f"{filled_store}/*.jsonl") == [f"{filled_store}/a.jsonl"]
    assert found(f"{filled_store}/**/*.jsonl") == [f"{filled_store}/a.jsonl", f"{filled_store}/deep/b.jsonl"]
    assert found(f"{filled_store}/a.jsonl") == [f"{filled_store}/a.jsonl"]
    with pytest.raises(CallerError, match="no file matches"):
        sources_of([f"{filled_store}/*.csv"])


def test_rows_are_mapped_from_store_to_store(filled_store: str, tmp_path: Path) -> None:
    engine = (
        LocalEngine(2) if filled_store.startswith("file") else InlineEngine()
    )  # The memory store exists only in this process.
    with RemoteStore().writing(f"{filled_store}/in.jsonl") as write:
        write(DATA)
    out = f"{filled_store}/out.jsonl"
    with sink_to(out, LINES) as sink:
        totals = map_rows(sources_of([f"{filled_store}/in.jsonl"]), Numbered(), sink, engine, part_size=2_000)
    assert read_file(out) == MADE
    assert totals.rows == len(ROWS)
    assert list((tmp_path / "state").rglob("*.jsonl*")) == []


def test_an_existing_file_is_replaced_only_with_force(filled_store: str) -> None:
    sources = sources_of([f"{filled_store}/*.jsonl"])
    with pytest.raises(NotOurs, match="already exists"), sink_to(f"{filled_store}/c.txt", LINES) as sink:
        map_rows(sources, Numbered(), sink, InlineEngine())
    assert read_file(f"{filled_store}/c.txt") == b"x"
    with sink_to(f"{filled_store}/c.txt", LINES, force=True) as sink:
        map_rows(sources, Numbered(), sink, InlineEngine())
    assert read_file(f"{filled_store}/c.txt") in MADE


class StopError(Exception):
    pass


class StoppingWork(Numbered):
    """Work that fails after some parts; other work with the same key can resume it."""

    def __init__(self, parts: int) -> None:
        self._left = parts

    def __call__(self, batch: object) -> object:  # type: ignore[override]
        self._left -= 1
        if self._left < 0:
            raise StopError
        return super().__call__(batch)  # type: ignore[arg-type]


def test_an_interrupted_run_into_a_store_is_resumed(filled_store: str) -> None:
    out = f"{filled_store}/out.jsonl"
    sources = sources_of([f"{filled_store}/a.jsonl"])
    with pytest.raises(StopError), sink_to(out, LINES) as sink:
        map_rows(sources, StoppingWork(3), sink, InlineEngine(), part_size=1_000)  # type: ignore[arg-type]
    assert not RemoteStore().exists(out)
    assert unfinished_path(out).with_name(unfinished_path(out).name + ".part").exists()
    with sink_to(out, LINES, resume=True) as sink:
        totals = map_rows(sources, Numbered(), sink, InlineEngine(), part_size=1_000)
    assert 0 < totals.resumed < totals.rows
    assert read_file(out) == MADE[: len(read_file(out))]


def test_a_missing_file_is_reported_by_name(base: str) -> None:
    with pytest.raises(FileFailed, match=r"nothing\.jsonl: there is no such file"):
        RemoteStore().size(f"{base}/nothing.jsonl")


def test_an_unknown_store_is_reported_by_name() -> None:
    with pytest.raises(CallerError, match="files of nowhere://"):
        sources_of(["nowhere://a/*.jsonl"])


@pytest.mark.parametrize(
    "name, pattern, fits",
    [
        ("b/a.jsonl", "b/*.jsonl", True),
        ("b/c/a.jsonl", "b/*.jsonl", False),
        ("b/c/a.jsonl", "b/**/*.jsonl", True),
        ("b/a.jsonl", "b/**/*.jsonl", True),
        ("b/c/d/a.jsonl", "b/**/d/a.*", True),
        ("b/a[1].jsonl", "b/a?1?.jsonl", True),
    ],
)
def test_one_star_matches_within_a_folder_and_two_stars_across_folders(name: str, pattern: str, fits: bool) -> None:
    assert matches_glob(name, pattern) == fits
