"""The dataset commands stream: ten times the rows need no more memory."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rightcall.datasets import row_files
from rightcall.datasets.assembling import assemble
from rightcall.datasets.deduping import dedupe_files
from rightcall.datasets.exporting import export
from rightcall.datasets.importing import import_files
from rightcall.datasets.inspection import statistics, validate
from rightcall.datasets.label import Labeller, label_files
from rightcall.datasets.mutating import mutate_files
from rightcall.datasets.releasing import redact_files
from rightcall.datasets.splitting import split
from rightcall.storage.jsonl import encode_row
from support.captured import CONVERSATIONS, conversation
from support.format_sample import selected

SMALL, LARGE = 100, 1_000


def _ignore(where: object, why: str) -> None:
    pass


COMMANDS: dict[str, Callable[[Path, Path], Any]] = {
    "validate": lambda rows, out: validate([rows], tell=_ignore),
    "stats": lambda rows, out: statistics([rows]),
    "label": lambda rows, out: label_files([rows], out / "a", jobs=1),
    "dedupe": lambda rows, out: dedupe_files([rows], out / "a", jobs=1),
    "mutate": lambda rows, out: mutate_files([rows], out / "a", kinds={"not_needed": 900}, jobs=1),
    "split": lambda rows, out: split([rows], out / "a"),
    "redact": lambda rows, out: redact_files([rows], out / "a"),
    "export": lambda rows, out: export([rows], out / "a", to="openai-sft", jobs=1),
    "verifier": lambda rows, out: export([rows], out / "a", to="verifier", jobs=1),
    "assemble": lambda rows, out: assemble([out.parent / f"{rows.stem}.verifier"], out / "a"),
    "import": lambda rows, out: import_files([out.parent / f"{rows.stem}.sft"], out / "a", refused=_ignore, jobs=1),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Write rows of two sizes, and the inputs that some commands derive from them."""
    folder, labeller, paths = tmp_path_factory.mktemp("rows"), Labeller(), []
    for size in (SMALL, LARGE):
        paths.append(folder / f"{size}.jsonl")
        with paths[-1].open("wb") as file:
            for number in range(size // 2):
                for row in conversation(f"group-{number}", CONVERSATIONS["right"], run=number):
                    file.write(encode_row(labeller.label(row)))
        export([paths[-1]], folder / f"{size}.verifier", to="verifier")
        export([paths[-1]], folder / f"{size}.sft", to="openai-sft")
    return paths


def peak_memory(command: Callable[[Path, Path], Any], rows: Path, out: Path) -> int:
    tracemalloc.start()
    try:
        command(rows, out)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", selected(COMMANDS, kept=["label", "export"]))
def test_ten_times_the_rows_need_no_more_memory(name: str, files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_files, "PART", 20_000)  # small enough that the small file has several parts
    out = files[0].parent / name
    out.mkdir()
    peak_memory(COMMANDS[name], files[0], out)  # imports and compilation are not measured
    small, large = (peak_memory(COMMANDS[name], rows, out) for rows in files)
    assert large < 1.3 * small + 200_000
