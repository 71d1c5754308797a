"""`dataset dedupe`: exact and near duplicates are dropped with bounded memory."""

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.datasets import row_files
from rightcall.datasets.deduping import DuplicateFinder, dedupe_files, row_fingerprint
from rightcall.datasets.exporting import export
from rightcall.datasets.importing import import_files
from rightcall.datasets.label import label_files
from rightcall.datasets.mutating import mutate_files
from rightcall.datasets.row_files import RowNumbers
from rightcall.datasets.rows import mapping
from rightcall.datasets.similarity import estimate_similarity, plan_bands, signature
from rightcall.errors import CallerError, FileFailed
from rightcall.types import Json
from support.captured import CONVERSATIONS, FORGE_ROW, conversation, rows, write
from support.command import failed, run
from support.format_sample import selected


def dropped_rows(entries: list[Json], near: float | None = None) -> list[int]:
    """Return the numbers of the dropped rows."""
    with DuplicateFinder(near) as finder:
        finder.add(row_fingerprint(row, near=near is not None) for row in entries)
        finder.find()
    assert finder.exact + finder.near == finder.dropped.count
    return [number for number in range(len(entries)) if number in finder.dropped]


# -- row numbers -------------------------------------------------------------------------------------------------------


@given(st.sets(st.integers(0, 5_000)))
def test_row_numbers_behave_like_a_set(numbers: set[int]) -> None:
    marks = RowNumbers()
    for number in [*numbers, *numbers]:
        marks.add(number)
    assert marks.count == len(numbers)
    assert {number for number in range(5_010) if number in marks} == numbers


# -- exact duplicates --------------------------------------------------------------------------------------------------


@given(st.lists(st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), min_size=1)))
def test_the_first_of_equal_rows_is_kept(entries: list[Json]) -> None:
    duplicates = dropped_rows(entries)
    kept = [row for at, row in enumerate(entries) if at not in duplicates]
    assert all(entries[at] in entries[:at] for at in duplicates)
    assert len({json.dumps(row, sort_keys=True) for row in kept}) == len(kept)
    assert {json.dumps(row, sort_keys=True) for row in entries} == {json.dumps(row, sort_keys=True) for row in kept}


def test_a_repeated_conversation_is_dropped_whole() -> None:
    again = [row for name in CONVERSATIONS for row in conversation(f"again-{name}", CONVERSATIONS[name], run=7)]
    assert dropped_rows(rows() + again) == list(range(len(rows()), len(rows()) + len(again)))


def test_a_file_given_twice_is_counted_once() -> None:
    assert dropped_rows(rows() + rows()) == list(range(len(rows()), 2 * len(rows())))


def test_a_conversation_with_another_end_is_kept_whole() -> None:
    """Its first turn equals a turn of another conversation; without that turn, the remainder would look correct."""
    retried, *_ = CONVERSATIONS["retried"]
    other = list(conversation("other", (retried, "I cannot do that.")))
    assert dropped_rows(rows("retried") + other) == []


def test_ids_assigned_by_a_server_are_ignored() -> None:
    first = rows("right")
    other = json.loads(json.dumps(first).replace("capture_call_0_0", "call_x9").replace("g-right", "g-2"))
    assert dropped_rows(first + other) == [2, 3]


def test_rows_with_different_labels_are_different() -> None:
    other = {**FORGE_ROW, "example_group_id": "b", "label": {"label": "valid", "by": "review", "why": ""}}
    assert dropped_rows([FORGE_ROW, other]) == []
    assert dropped_rows([FORGE_ROW, {**FORGE_ROW, "example_group_id": "b"}]) == [1]


# -- near duplicates ---------------------------------------------------------------------------------------------------

WORDS = (
    "please put two of the red docks into my cart and send them to office before noon on friday thanks for kind help "
    "with this small order when is next train from oslo bergen what does weather look like tomorrow book table four "
    "people window write mail chef that will be late cancel meeting move it monday morning find cheapest flight paris"
).split()


def random_text(rng: random.Random) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(15, 60)))


def change_text(rng: random.Random, text: str) -> str:
    """Add a typo for every hundred characters, and change blanks and case."""
    letters = list(text)
    for _ in range(1 + len(text) // 100):
        letters[rng.randrange(len(letters))] = rng.choice("xyz")
    return "".join(letters).replace(" ", "  ", 2).capitalize()


def test_nearly_every_changed_copy_is_found_and_no_original() -> None:
    rng = random.Random(15)
    first = [{"text": random_text(rng)} for _ in range(400)]
    copies = [{"text": change_text(rng, row["text"])} for row in first]
    duplicates = dropped_rows(first + copies, 0.7)
    assert [at for at in duplicates if at < 400] == []
    assert len(duplicates) >= 0.98 * 400


def test_similarity_is_estimated_within_one_fifth() -> None:
    rng = random.Random(3)
    for _ in range(50):
        text = random_text(rng)
        other = change_text(rng, change_text(rng, text))
        one, two = ({t[at : at + 5] for at in range(len(t) - 4)} for t in (text, " ".join(other.lower().split())))
        assert abs(estimate_similarity(signature(text), signature(other)) - len(one & two) / len(one | two)) < 0.2


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0])
def test_a_band_plan_finds_99_percent_at_its_threshold(threshold: float) -> None:
    count, wide = plan_bands(threshold)
    assert 1 - (1 - threshold**wide) ** count >= 0.99


def _call_row(request: str, **arguments: object) -> Json:
    call = {"name": "add_to_cart", "arguments": arguments}
    return {**FORGE_ROW, "example_group_id": request + str(arguments), "user_request": request, "candidate_call": call}


def test_similar_requests_with_different_calls_are_kept() -> None:
    two, three = (
        "Put 2 of the docks SKU-DOCK-1 into my cart, please.",
        "Put 3 of the docks SKU-DOCK-1 into my cart, please.",
    )
    assert dropped_rows([_call_row(two, quantity=2), _call_row(three, quantity=3)], 0.6) == []
    assert dropped_rows([_call_row(two, quantity=2), _call_row(two + "!", quantity=2)], 0.6) == [1]


def test_the_highest_threshold_drops_texts_that_differ_only_in_case_and_blanks() -> None:
    text = random_text(random.Random(7))
    assert dropped_rows([{"text": text}, {"text": text.upper().replace(" ", "  ")}, {"text": text + " x"}], 1.0) == [1]


def test_text_arguments_of_near_duplicates_may_differ_slightly() -> None:
    text = "Dear Ann, the docks that you ordered on Monday will be with you by the end of this week."
    pair = [_call_row("Write to Ann.", text=text), _call_row("Write to Ann.", text=text + " Yours")]
    assert dropped_rows(pair, 0.7) == [1]
    assert dropped_rows(pair) == []


@pytest.mark.parametrize("step", [2, 5, 10, 40])
def test_a_row_is_dropped_only_if_it_is_similar_to_a_kept_row(step: int) -> None:
    """Each text is the one before it moved on by some words, so that only neighbours are similar."""
    words = [f"w{number}" for number in range(400)]
    texts = [" ".join(words[at : at + 40]) for at in range(0, 361, step)]
    dropped = dropped_rows([{"text": text} for text in texts], 0.6)
    signed = list(map(signature, texts))
    kept = [at for at in range(len(texts)) if at not in dropped]
    for at in dropped:
        assert any(estimate_similarity(signed[at], signed[first]) >= 0.6 for first in kept if first < at)
    assert len(kept) >= 9 and (len(dropped) > 0) == (step < 40)


def test_thousands_of_similar_rows_are_compared_in_linear_time() -> None:
    entries = [{"text": f"The same words over and over, and then the number {number}."} for number in range(2_000)]
    assert len(dropped_rows(entries, 0.6)) > 1_500


# -- several workers ---------------------------------------------------------------------------------------------------


def _import_command(name: str) -> Callable[..., Any]:
    return lambda files, out, **how: import_files([files[0].with_name(name)], out, refused=print, **how)


COMMANDS: dict[str, Callable[..., Any]] = {
    "label": label_files,
    "dedupe": dedupe_files,
    "mutate": partial(mutate_files, formats=["hermes"]),
    "export": partial(export, to="trl-sft"),
    "export to Parquet": lambda files, out, **how: export(files, out.with_suffix(".parquet"), to="trl-sft", **how),
    "import": _import_command("logs.jsonl"),
    "import of lines that belong together": _import_command("forge.jsonl"),
}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = [row for at in range(40) for row in conversation(f"g-{at}", CONVERSATIONS["right"], run=at)]
    path = write(tmp_path_factory.mktemp("many") / "rows.jsonl", entries)
    export([path], path.with_name("logs.jsonl"), to="openai-sft")
    export([path], path.with_name("forge.jsonl"), to="forge-capture")
    return path


def _output_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder without the manifests, which contain the time."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(".manifest.json")}


@pytest.mark.parametrize("name", selected(COMMANDS, kept=["label", "export to Parquet"]))
def test_two_workers_write_the_same_output_as_one(
    name: str, many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "PART", 40_000)
    for jobs in (1, 2):
        (tmp_path / str(jobs)).mkdir()
        COMMANDS[name]([many], tmp_path / str(jobs) / "out", jobs=jobs)
    one, two = _output_files(tmp_path / "1"), _output_files(tmp_path / "2")
    assert one == two and len(one) == 1 and b"" not in one.values()


@pytest.mark.parametrize("name", COMMANDS)
def test_an_interrupted_run_resumes_without_repeating_work(
    name: str, many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "PART", 40_000)
    worked: list[bytes] = []
    do = mapping.PartWork.__call__

    def record_work(self: mapping.PartWork, item: bytes) -> bytes:
        worked.append(item)
        return do(self, item)

    monkeypatch.setattr(mapping.PartWork, "__call__", record_work)
    steps: list[int] = []
    (tmp_path / "whole").mkdir()
    COMMANDS[name]([many], tmp_path / "whole" / "out", jobs=1, seen=steps.append)
    parts = len(worked)
    for last in {1, len(steps) // 2, len(steps)}:
        folder, left = tmp_path / str(last), iter(range(last - 1))
        folder.mkdir()
        worked.clear()
        with pytest.raises(KeyboardInterrupt):
            COMMANDS[name]([many], folder / "out", jobs=1, seen=lambda size, left=left: _step(left))
        assert not (folder / "out").exists()
        COMMANDS[name]([many], folder / "out", jobs=1, resume=True)
        assert len(worked) == parts
        assert _output_files(folder) == _output_files(tmp_path / "whole")


def test_a_second_run_to_the_same_file_does_not_change_the_first(many: Path, tmp_path: Path) -> None:
    def other(size: int) -> None:
        with pytest.raises(FileFailed, match="another run writes to"):
            label_files([many], tmp_path / "out", jobs=1)

    label_files([many], tmp_path / "out", jobs=1, seen=other)
    assert len((tmp_path / "out").read_bytes().splitlines()) == 80


def _step(left: Iterator[int]) -> None:
    if next(left, None) is None:
        raise KeyboardInterrupt


# -- files -------------------------------------------------------------------------------------------------------------


def test_the_command_writes_each_row_once_and_unchanged(tmp_path: Path) -> None:
    lines = [b'{"a": 1, "b": 2}', b'{"b":2,"a":1}', b'{"a": 2}', b'{"a": 2}\r']
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    done = run("dataset", "dedupe", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "out.jsonl"), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) | {"output": ""} == {"rows": 4, "kept": 2, "same": 2, "near": 0, "output": ""}
    assert (tmp_path / "out.jsonl").read_bytes() == b'{"a": 1, "b": 2}\n{"a": 2}\n'


def test_only_the_given_keys_are_compared(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", [{"id": 1, "said": {"text": "a"}}, {"id": 2, "said": {"text": "a"}}])
    assert dedupe_files([path], tmp_path / "out.jsonl", keys=["said.text"]).kept == 1
    missing = failed(run("dataset", "dedupe", str(path), "-o", str(tmp_path / "o.jsonl"), "--key", "texts"), 1)
    assert "in.jsonl:1 it has none of the keys texts" in missing


def test_a_line_that_is_not_a_row_is_rejected_with_its_position(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"a": 1}\n[]\n')
    assert "in.jsonl:2" in failed(run("dataset", "dedupe", str(tmp_path / "in.jsonl"), "-o", str(tmp_path / "o")), 1)
    assert not (tmp_path / "o").exists()


def test_a_similarity_threshold_out_of_range_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match=r"from 0\.3 to 1"):
        dedupe_files([], tmp_path / "o", near=0.1)
