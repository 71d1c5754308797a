"""`dataset split` and `dataset assemble`: rows are split and merged by reproducible rules."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.capture.captured_rows import read_rows
from rightcall.datasets.assembling import assemble, find_public_mark
from rightcall.datasets.forge_rows import model_input, training_row
from rightcall.datasets.label import Labeller
from rightcall.datasets.row_files import BadRows
from rightcall.datasets.schemas import faults
from rightcall.datasets.splitting import group_key, rank, split
from rightcall.types import Json
from support.captured import rows, write


def training_rows() -> list[Json]:
    labelled = [training_row(Labeller().label(row)) for row in rows()]
    return [row for row in labelled if row is not None]


ROW = training_rows()[0]


def row_of_group(group: str, number: int = 0) -> Json:
    entry = {**ROW["input"], "user_request": f"request {number}"}
    return {**ROW, "input": entry, "review": {**ROW["review"], "example_group_id": group}}


def groups_in(path: Path) -> list[str]:
    return [row["review"]["example_group_id"] for _, row in read_rows(path) if isinstance(row, dict)]


# -- split -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "key", "value"),
    [("", "", 0xAF63BD4C8601B7DF), ("a", "", 0x089BE207B544F1E4), ("foobar", "", 0x34531CA7168B8F38)],
)
def test_the_rank_is_fnv_1a_of_seed_nul_and_key(seed: str, key: str, value: int) -> None:
    """The expected values are the published test vectors of FNV."""
    assert rank(seed, key) == value
    assert rank("a", "b") != rank("ab", "")


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=30),
    st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]),
    st.sampled_from(["forge-dataset-v1", "other"]),
)
def test_groups_go_to_validation_by_rank_until_enough_rows_are_chosen(
    tmp_path_factory: pytest.TempPathFactory, groups: list[str], ratio: float, seed: str
) -> None:
    folder = tmp_path_factory.mktemp("split")
    source = write(folder / "a.jsonl", [row_of_group(group, at) for at, group in enumerate(groups)])
    report = split([source], folder / "out", ratio=ratio, seed=seed)
    wanted, chosen = math.ceil(len(groups) * ratio), set[str]()
    for group in sorted(set(groups), key=lambda each: rank(seed, each)):
        if sum(each in chosen for each in groups) >= wanted:
            break
        chosen.add(group)
    assert groups_in(folder / "out" / "validation.jsonl") == [group for group in groups if group in chosen]
    assert groups_in(folder / "out" / "train.jsonl") == [group for group in groups if group not in chosen]
    assert (report.rows, report.groups) == (len(groups), len(set(groups)))


def test_rows_are_copied_byte_for_byte(tmp_path: Path) -> None:
    lines = [
        json.dumps(row_of_group(group, at), indent=None, separators=(", ", " : ")) for at, group in enumerate("abcd")
    ]
    lines[1] = lines[1].replace("request 1", "r\\u00e9quest 1e5")
    source = tmp_path / "a.jsonl"
    source.write_text("\n".join(lines))
    split([source], tmp_path / "out", ratio=0.5)
    written = [(tmp_path / "out" / name).read_text().splitlines() for name in ("train.jsonl", "validation.jsonl")]
    assert sorted(written[0] + written[1]) == sorted(lines)


def test_the_group_key_is_the_first_key_present_in_a_row() -> None:
    review = {"example_group_id": "e", "task_group_id": "t", "capture_key": "c", "row_key": "r"}
    for name in list(review):
        assert group_key({"review": review}) == review.pop(name)
    assert group_key({"review": {}, "input": {"b": 1, "a": 2}}) == '{"b":1,"a":2}'
    assert group_key(rows("right")[0]) == "g-right"


def test_captures_are_split_by_conversation(tmp_path: Path) -> None:
    report = split([write(tmp_path / "a.jsonl", rows())], tmp_path / "out", ratio=0.3)
    sides = [
        {row["example_group_id"] for _, row in read_rows(path) if isinstance(row, dict)}
        for path in (report.train_path, report.validation_path)
    ]
    assert sides[0].isdisjoint(sides[1])
    assert len(sides[0] | sides[1]) == 6


def test_the_manifest_counts_labels_buckets_and_schemas(tmp_path: Path) -> None:
    split([write(tmp_path / "a.jsonl", training_rows())], tmp_path / "out", ratio=0.3)
    manifest = json.loads((tmp_path / "out" / "split_manifest.json").read_text())
    assert manifest["seed"] == "forge-dataset-v1"
    assert manifest["train"]["rows"] + manifest["validation"]["rows"] == manifest["rows"] == 7
    for side in ("train", "validation"):
        for name in ("labels", "buckets", "schemas"):
            assert sum(manifest[side][name].values()) == manifest[side]["rows"]


def test_a_bad_row_leaves_no_output(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", [*training_rows(), {"schema_version": "x"}])
    with pytest.raises(BadRows, match=r"a\.jsonl:8 unknown schema_version"):
        split([source], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def row_with_tools(group: str, called: str, offered: str) -> Json:
    """Return a verifier row of this conversation that calls one tool (or "respond") and offers these tools."""
    tools = [{"name": name, "description": "", "parameters": {"type": "object"}} for name in [*offered, "respond"]]
    entry = {**ROW["input"], "available_tools": tools, "candidate_call": {"name": called, "arguments": {}}}
    return {**ROW, "input": entry, "review": {**ROW["review"], "example_group_id": group}}


def tools_in(path: Path) -> tuple[set[str], set[str]]:
    """Return the tools that the rows of a file call, and the tools that they offer."""
    read_entries = [row["input"] for _, row in read_rows(path) if isinstance(row, dict)]
    offered = {tool["name"] for each in read_entries for tool in each["available_tools"]}
    return {each["candidate_call"]["name"] for each in read_entries} - {"respond"}, offered - {"respond"}


@given(
    st.lists(
        st.tuples(st.sampled_from("123456789"), st.sets(st.sampled_from("abcdefgh"), min_size=1, max_size=3)),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([0.0, 0.1, 0.3, 0.6, 1.0]),
    st.booleans(),
)
def test_a_split_by_tool_offers_no_validation_tool_in_training(
    tmp_path_factory: pytest.TempPathFactory, conversations: list[tuple[str, set[str]]], ratio: float, quiet: bool
) -> None:
    folder = tmp_path_factory.mktemp("split")
    entries = [
        row_with_tools(group, "respond" if quiet else min(tools), "".join(sorted(tools)))
        for group, tools in conversations
    ]
    report = split([write(folder / "a.jsonl", entries)], folder / "out", ratio=ratio, by="tool")
    called, offered = tools_in(Path(report.validation_path))
    assert tools_in(Path(report.train_path))[1].isdisjoint(offered if quiet else called)
    assert set(groups_in(Path(report.train_path))).isdisjoint(groups_in(Path(report.validation_path)))
    assert report.train + report.validation + report.left_out == report.rows == len(conversations)
    assert report.validation + report.left_out >= math.ceil(len(conversations) * ratio)


def test_a_split_by_tool_omits_conversations_that_only_offer_a_held_out_tool(tmp_path: Path) -> None:
    lowest = min("ab", key=lambda name: rank("forge-dataset-v1", name))
    other = "ab".replace(lowest, "")
    entries = [row_with_tools("1", lowest, lowest), row_with_tools("2", other, "ab"), row_with_tools("3", other, other)]
    report = split([write(tmp_path / "a.jsonl", entries)], tmp_path / "out", ratio=0.1, by="tool")
    assert (report.train, report.validation, report.left_out, report.held_out) == (1, 1, 1, 1)
    manifest = json.loads(Path(report.manifest_path).read_text())
    assert manifest["by"] == "tool" and manifest["held_out_tools"] == [lowest] and manifest["left_out"] == 1


def test_a_split_by_tool_keeps_conversations_without_tools(tmp_path: Path) -> None:
    entries = [row_with_tools(group, "respond", "") for group in "1234"]
    report = split([write(tmp_path / "a.jsonl", entries)], tmp_path / "out", ratio=0.5, by="tool")
    assert (report.train, report.validation, report.left_out) == (2, 2, 0)


# -- assemble ----------------------------------------------------------------------------------------------------------


def read_entries(path: Path) -> list[Json]:
    return [row for _, row in read_rows(path) if isinstance(row, dict)]


def test_duplicates_are_kept_once_and_conflicts_are_written_to_a_file(tmp_path: Path) -> None:
    first = write(tmp_path / "1.jsonl", [row_of_group("a", 1), row_of_group("b", 1), row_of_group("c", 2)])
    second = write(tmp_path / "2.jsonl", [{**row_of_group("d", 1), "label": "tool_not_needed"}, row_of_group("e", 3)])
    report = assemble([first, second], tmp_path / "out")
    assert (report.accepted, report.duplicates, report.conflicts, report.quarantine) == (3, 1, 1, 0)
    kept = read_entries(tmp_path / "out" / "training.jsonl")
    assert [row["review"]["example_group_id"] for row in kept] == ["a", "c", "e"]
    (conflict,) = read_entries(tmp_path / "out" / "conflicts.jsonl")
    assert faults(conflict) == []
    assert conflict["kept"]["path"] == str(first) and conflict["kept"]["line_number"] == 1
    assert conflict["conflict"]["path"] == str(second) and conflict["conflict"]["label"] == "tool_not_needed"
    assert conflict["scorer_input"] == model_input(row_of_group("a", 1)["input"])


def test_conflicts_can_be_dropped_with_every_row_of_their_input(tmp_path: Path) -> None:
    entries = [row_of_group("a", 1), row_of_group("b", 2), {**row_of_group("c", 1), "label": "tool_not_needed"}]
    report = assemble([write(tmp_path / "1.jsonl", entries)], tmp_path / "out", drop_conflicts=True)
    assert (report.accepted, report.dropped) == (1, 1)
    assert [row["review"]["example_group_id"] for row in read_entries(tmp_path / "out" / "training.jsonl")] == ["b"]


def test_bad_rows_and_public_rows_are_quarantined(tmp_path: Path) -> None:
    nested = {**ROW, "input": {**ROW["input"], "metadata": {"a": [{"public_export_allowed": True}]}}}
    other = {**ROW, "review": {**ROW["review"], "private_agent_log": False}}
    source = write(tmp_path / "1.jsonl", [ROW, nested, other, {**ROW, "label": "great"}, rows("right")[0]])
    source.write_bytes(source.read_bytes() + b"nonsense\n")
    report = assemble([source], tmp_path / "out")
    assert (report.accepted, report.quarantine) == (1, 5)
    quarantined = read_entries(tmp_path / "out" / "quarantine.jsonl")
    assert [row["reason"] for row in quarantined] == [
        "public_row",
        "public_row",
        "invalid_training_row",
        "invalid_training_row",
        "invalid_json",
    ]
    assert [row["line_number"] for row in quarantined] == [2, 3, 4, 5, 6]
    assert all(faults(row) == [] for row in quarantined)
    assert find_public_mark(nested) == "/input/metadata/a/0/public_export_allowed must not be true"


def test_the_manifest_and_the_notebook_rows_are_written(tmp_path: Path) -> None:
    source = write(tmp_path / "1.jsonl", training_rows())
    report = assemble([source], tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "dataset_manifest.json").read_text())
    assert manifest["inputs"][0]["rows_seen"] == 7
    assert manifest["counts"]["accepted"] == report.accepted == sum(manifest["labels"].values())
    flat = read_entries(tmp_path / "out" / "notebook.jsonl")
    assert len(flat) == report.accepted
    assert {"label", "user_request", "candidate_call", "metadata", "rank_score"} <= flat[0].keys()
    for path in (tmp_path / "out").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
