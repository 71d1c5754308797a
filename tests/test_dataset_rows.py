"""`dataset validate`, `label`, `prompts` and `stats`: rows are validated, labelled, generated and counted."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.capture.captured_rows import read_rows
from rightcall.capture.domain import find_domain, find_domains
from rightcall.cli.stats_page import stats_page
from rightcall.datasets.conversations import CapturedConversation
from rightcall.datasets.forge_rows import prompts, training_row, write_prompts
from rightcall.datasets.inspection import Histogram, statistics, validate
from rightcall.datasets.label import Labeller, label_files
from rightcall.datasets.row_files import BadRows
from rightcall.datasets.schemas import SCHEMAS, faults
from rightcall.evaluation.webpage import BarCharts, PageTable, render_page
from rightcall.types import Json
from support.captured import CONVERSATIONS, FORGE_ROW, conversation, rows, write


def label_rows(name: str) -> list[Json]:
    labeller = Labeller()
    return [labeller.label(row) for row in conversation("g", CONVERSATIONS[name])]


def label_names(name: str) -> list[str]:
    return [row["label"]["label"] for row in label_rows(name)]


TRAINING = training_row(label_rows("right")[0]) or {}
SAMPLES: dict[str, Json] = {
    "rightcall-capture/v1": rows("right")[0],
    "forge-dataset-capture/v1": FORGE_ROW,
    "forge-dataset-tool-prompt/v1": next(prompts([find_domain("shopping")])),
    "forge-proxy-training-capture/v1": {
        **{name: FORGE_ROW[name] for name in ("kind", "example_group_id", "user_request", "workflow_state")},
        **{name: FORGE_ROW[name] for name in ("available_tools", "candidate_call", "metadata")},
        "schema_version": "forge-proxy-training-capture/v1",
        "deterministic_status": "ok",
    },
    "toolcall-verifier-training/v1": TRAINING,
    "forge-dataset-review-reject/v1": {
        "schema_version": "forge-dataset-review-reject/v1",
        "reason": "reviewer_rejected",
        "detail": "not sure",
        "capture": FORGE_ROW,
    },
    "forge-dataset-assemble-conflict/v1": {
        "schema_version": "forge-dataset-assemble-conflict/v1",
        "scorer_input": "x",
        "kept": {},
        "conflict": {},
    },
}


def test_the_example_rows_equal_the_output_of_a_capture() -> None:
    example = Path(__file__).resolve().parent.parent / "examples" / "captured.jsonl"
    assert [row for _, row in read_rows(example)] == rows()


# -- validate ----------------------------------------------------------------------------------------------------------


def test_every_schema_has_a_valid_sample() -> None:
    assert SAMPLES.keys() == SCHEMAS.keys()
    assert {name: faults(row) for name, row in SAMPLES.items()} == {name: [] for name in SCHEMAS}


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
def test_a_row_with_a_missing_or_invalid_key_is_validated_without_an_exception(name: str, data: st.DataObject) -> None:
    row = dict(SAMPLES[name])
    key = data.draw(st.sampled_from(sorted(row)))
    nonsense: Any = data.draw(st.sampled_from([None, 1, "x", [], {}, [1], {"a": 1}, [{}], {"name": 1}]))
    row[key] = nonsense
    assert isinstance(faults(row), list)
    del row[key]
    assert isinstance(faults(row), list)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rightcall-capture/v1", {"schema_version": []}),
        ("rightcall-capture/v1", {"schema_version": {"a": 1}}),
        ("rightcall-capture/v1", {"call": "\ud800"}),
        ("rightcall-capture/v1", {"problems": ["\ud800"]}),
        ("rightcall-capture/v1", {"call": {"\ud800": 1}}),
    ],
)
def test_a_row_of_any_json_is_accepted_by_validate_and_stats(name: str, change: Json, tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({**SAMPLES[name], **change}) + "\n")
    reported: list[str] = []
    assert validate([file], tell=lambda where, why: reported.append(why)).bad == 1
    assert reported and statistics([file]).bad == 1


@pytest.mark.parametrize("required", [[[]], [{}], [None, 1]])
def test_a_tool_with_an_invalid_required_list_is_validated(required: list[Any]) -> None:
    parameters = {"type": "object", "properties": {}, "required": required}
    call = {"name": "f", "arguments": {}}
    assert (
        faults({**FORGE_ROW, "available_tools": [{"name": "f", "parameters": parameters}], "candidate_call": call})
        == []
    )


REQUIRED = {
    "rightcall-capture/v1": "kind example_group_id user_request source_bucket workflow_state proxy_trace "
    "available_tools messages problems metadata candidate_call repairs call",
    "forge-dataset-capture/v1": "kind example_group_id user_request workflow_state available_tools candidate_call "
    "tool_result proxy_trace metadata",
    "forge-dataset-tool-prompt/v1": "domain scenario user_request request available_tools metadata",
    "forge-proxy-training-capture/v1": "kind example_group_id user_request workflow_state available_tools "
    "candidate_call deterministic_status metadata",
    "toolcall-verifier-training/v1": "input label review",
    "forge-dataset-review-reject/v1": "reason detail",
    "forge-dataset-assemble-conflict/v1": "scorer_input kept conflict",
}


@pytest.mark.parametrize("name", SAMPLES)
def test_each_missing_required_key_is_reported(name: str) -> None:
    for key in REQUIRED[name].split():
        without = {other: value for other, value in SAMPLES[name].items() if other != key}
        assert any(key in fault for fault in faults(without)), key


CANDIDATES: list[tuple[Json, str]] = [
    ({"name": "nothing", "arguments": {}}, "not among the available tools"),
    ({"name": "add_to_cart", "arguments": {"product_id": "x"}}, "'quantity' is required"),
    ({"name": "add_to_cart", "arguments": {"product_id": "x", "quantity": 1.5}}, "must be of type integer"),
    ({"name": "add_to_cart", "arguments": {"product_id": "x", "quantity": True}}, "must be of type integer"),
    ({"name": "add_to_cart", "arguments": {"product_id": 1, "quantity": 1}}, "must be of type string"),
    ({"name": "add_to_cart", "arguments": []}, "arguments must be an object"),
    ({"name": 1, "arguments": {}}, "name must be a string"),
]


@pytest.mark.parametrize(("call", "fault"), CANDIDATES)
def test_a_candidate_that_does_not_match_its_tool_is_a_fault_of_verifier_rows(call: Json, fault: str) -> None:
    assert any(fault in found for found in faults({**FORGE_ROW, "candidate_call": call}))


def test_unknown_arguments_are_accepted_and_an_invalid_candidate_can_have_the_invalid_label() -> None:
    call = {"name": "add_to_cart", "arguments": {"product_id": "x", "quantity": 1, "more": []}}
    assert faults({**FORGE_ROW, "candidate_call": call}) == []
    bad = {**TRAINING["input"], "candidate_call": {"name": "nothing", "arguments": {}}}
    assert faults({**TRAINING, "input": bad, "label": "deterministic_invalid"}) == []
    assert faults({**TRAINING, "input": bad}) != []
    old = {**TRAINING["input"], "schema_version": "toolcall-verifier-input/v1"}
    assert faults({**TRAINING, "input": old}) == []


def test_a_public_row_without_a_release_is_a_fault() -> None:
    row = rows("right")[0]
    public = {**row["metadata"], "public_export_allowed": True, "private_agent_log": False}
    assert len(faults({**row, "metadata": public})) == 2


def test_validation_reports_every_fault_with_its_position_and_counts_them(tmp_path: Path) -> None:
    good = write(tmp_path / "good.jsonl", [*SAMPLES.values()])
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"schema_version": "x/v9"}\n\nnonsense\n{"schema_version": "forge-dataset-assemble-conflict/v1"}\n')
    positions: list[tuple[str, int]] = []
    report = validate([good, bad], tell=lambda where, fault: positions.append((where.path, where.number)))
    assert (report.rows, report.bad, report.faults) == (len(SAMPLES) + 3, 3, 5)
    assert positions == [(str(bad), number) for number in (1, 3, 4, 4, 4)]
    assert report.schemas["rightcall-capture/v1"] == 1
    assert report.labels["valid"] == 1


# -- label -------------------------------------------------------------------------------------------------------------


def test_labels_describe_the_quality_of_each_call() -> None:
    assert label_names("right") == ["valid", "valid"]
    assert label_names("repaired") == ["valid", "valid"]
    assert label_names("retried") == ["deterministic_invalid", "valid", "valid"]
    assert label_names("parallel") == ["valid", "valid", "valid"]
    assert label_names("refused") == ["incomplete"]
    assert label_names("wrong") == ["wrong_tool_semantic", "incomplete"]


def test_a_label_has_its_origin_and_reason() -> None:
    first, *_ = label_rows("retried")
    assert first["label"]["by"] == "check"
    assert first["label"]["why"].startswith("missing: quantity is required")
    assert label_rows("refused")[0]["label"]["why"] == "not called: add_to_cart"


def test_a_repeated_call_is_labelled_as_not_needed() -> None:
    right = CONVERSATIONS["right"][0]
    again = [Labeller().label(row) for row in conversation("g", (right, right, "Done."))]
    assert [row["label"]["label"] for row in again] == ["valid", "tool_not_needed", "incomplete"]


def test_examples_in_the_prompt_are_not_calls_of_the_model() -> None:
    first, end = rows("right")
    shown = [{"role": "user", "content": "Another request."}, first["assistant"]]
    for row in (first, end):
        row["messages"][1:1] = shown
    assert [Labeller().label(row)["label"]["label"] for row in (first, end)] == ["valid", "valid"]
    assert [message["role"] for message in CapturedConversation([first, end]).turns[0].messages] == ["system", "user"]


def test_a_row_without_a_history_is_labelled_by_earlier_rows() -> None:
    labeller = Labeller()
    later = {**FORGE_ROW, "proxy_trace": {**FORGE_ROW["proxy_trace"], "turn": 1}}
    other = {**FORGE_ROW, "example_group_id": "another"}
    found = [labeller.label(row)["label"]["label"] for row in (FORGE_ROW, later, other)]
    assert found == ["valid", "tool_not_needed", "valid"]


def test_a_row_of_an_unknown_scenario_is_not_labelled() -> None:
    row = rows("right")[0]
    unknown = {**row, "proxy_trace": {**row["proxy_trace"], "domain": "moon"}}
    assert Labeller().label(unknown) == unknown


def test_a_file_is_labelled_completely_or_not_at_all(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", rows())
    counts = label_files([source], tmp_path / "out.jsonl")
    assert counts["valid"] == 9
    assert [row["label"]["label"] for _, row in read_rows(tmp_path / "out.jsonl") if isinstance(row, dict)].count(
        "valid"
    ) == 9
    source.write_bytes(source.read_bytes() + b"nonsense\n")
    with pytest.raises(BadRows, match=r"a\.jsonl:14 not JSON"):
        label_files([source], tmp_path / "none.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "out.jsonl"]


def test_keys_that_a_later_version_adds_are_kept(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", [{**rows("right")[0], "from_the_future": {"a": [1]}}])
    label_files([source], tmp_path / "out.jsonl")
    ((_, row),) = read_rows(tmp_path / "out.jsonl")
    assert isinstance(row, dict) and row["from_the_future"] == {"a": [1]}


# -- prompts -----------------------------------------------------------------------------------------------------------


def test_prompts_are_the_requests_of_a_capture_in_the_same_order(tmp_path: Path) -> None:
    domains = find_domains(["shopping", "calendar"])
    assert write_prompts(domains, tmp_path / "p.jsonl", model="m", runs=2) == 12
    found = [row for _, row in read_rows(tmp_path / "p.jsonl") if isinstance(row, dict)]
    assert [(row["run_index"], row["domain"]) for row in found] == [
        *[(0, "shopping")] * 3,
        *[(0, "calendar")] * 3,
        *[(1, "shopping")] * 3,
        *[(1, "calendar")] * 3,
    ]
    request = found[0]["request"]
    assert request.keys() == {"model", "messages", "tools", "stream"}
    assert request["stream"] is False
    assert "respond" not in [tool["function"]["name"] for tool in request["tools"]]
    assert found[0]["available_tools"][-1]["name"] == "respond"


# -- stats -------------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_a_histogram_counts_every_value_and_its_median_is_in_the_right_bin(values: list[int]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    middle = sorted(values)[(len(values) - 1) // 2]
    assert sum(histogram.bins.values()) == len(values)
    assert histogram.largest == max(values)
    assert middle <= histogram.median <= max(2 * middle, 1)


def test_stats_count_labels_tools_domains_formats_repairs_and_problems(tmp_path: Path) -> None:
    found = statistics([write(tmp_path / "a.jsonl", [*label_rows("repaired"), *label_rows("retried"), TRAINING])])
    assert found.rows == 6
    assert found.counts["label"] == {"valid": 5, "deterministic_invalid": 1}
    assert found.counts["tool"] == {"add_to_cart": 3}
    assert found.counts["domain"] == {"shopping": 5}
    assert found.counts["format"] == {"hermes": 5}
    assert found.counts["repair"] == {"scalar_type": 1}
    assert found.counts["problem"] == {"missing": 1}
    assert found.lengths["reply"].total == 5


def test_the_number_of_counted_names_is_limited(tmp_path: Path) -> None:
    row = rows("right")[0]
    many = [{**row, "candidate_call": {"name": f"tool{n}", "arguments": {}}} for n in range(1_500)]
    found = statistics([write(tmp_path / "a.jsonl", many)])
    assert len(found.counts["tool"]) == 1_001
    assert found.counts["tool"]["(others)"] == 500


def test_the_stats_page_shows_the_numbers(tmp_path: Path) -> None:
    text = render_page(stats_page(statistics([write(tmp_path / "a.jsonl", rows())]), "rows"))
    assert text.count("<rect") > 15
    assert "add_to_cart" in text and "of 13 rows are sound" in text


def test_a_value_common_to_all_rows_has_no_chart(tmp_path: Path) -> None:
    page = stats_page(statistics([write(tmp_path / "a.jsonl", label_rows("repaired") + label_rows("retried"))]), "rows")
    charts = [chart for part in page.parts if isinstance(part, BarCharts) for chart in part.charts]
    assert charts and all(len(chart.rows) > 1 for chart in charts)
    (table,) = [part for part in page.parts if isinstance(part, PageTable)]
    assert ("domain", "shopping") in [row[:2] for row in table.rows]
    assert page.headline.says == "of 5 labelled rows are valid"
    assert page.headline.figure == "80.0 %"


def test_a_repair_rule_is_counted_once_per_row(tmp_path: Path) -> None:
    row = next(row for row in rows("repaired") if row.get("repairs"))
    doubled = {**row, "repairs": row["repairs"] * 2}
    assert statistics([write(tmp_path / "a.jsonl", [doubled])]).counts["repair"] == {"scalar_type": 1}


def test_stats_can_be_written_as_json(tmp_path: Path) -> None:
    data = statistics([write(tmp_path / "a.jsonl", rows())]).to_json()
    assert json.loads(json.dumps(data)) == data
