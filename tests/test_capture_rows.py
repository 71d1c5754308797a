"""The row of a captured call, and the JSON lines file that stores it."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall.capture.captured_rows import (
    SCHEMA,
    CallTrace,
    FileFailed,
    Journal,
    LineFault,
    append_jsonl,
    call_of,
    capture_key,
    capture_row,
    ensure_parent_dir,
    example_group_id,
    outcome_row,
    problems_of,
    read_rows,
    tools_of,
    touch_jsonl,
    unix_ms,
    workflow_state,
)
from rightcall.capture.stubs import StubOutcome
from rightcall.storage import jsonl
from rightcall.storage.jsonl import encode_row, read_at, read_lines
from rightcall.types import Call, Json, Problem, Repair
from support.captured import FORGE_ROW, SHOP, rows, write

TRACE = CallTrace(domain="shopping", scenario="compare_headphones", run_index=0, turn=0, model="m", tool_call_id="a")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def compare_products() -> Json:
    call = Call("compare_products", {"product_ids": ["SKU-HEADPHONES-1", "SKU-HEADPHONES-2"]}, "{}")
    return capture_row(
        call,
        group=example_group_id("shopping", "compare_headphones", 0, 5),
        request="Compare.",
        tools=SHOP.tools,
        trace=TRACE,
        messages=[],
        assistant={"role": "assistant", "content": ""},
        reply="",
        result=StubOutcome("ok", {"cheapest": "SKU-HEADPHONES-2"}),
    )


def test_a_row_carries_group_context_and_private_provenance() -> None:
    row = compare_products()
    assert row["schema_version"] == SCHEMA
    assert row["kind"] == "tool_call_candidate"
    assert row["example_group_id"] == "rightcall-shopping-compare_headphones-run-00000-5"
    assert row["source_bucket"] == "real_model_call"
    assert row["proxy_trace"]["domain"] == "shopping"
    assert row["proxy_trace"]["run_index"] == 0
    assert row["metadata"]["private_agent_log"] is True
    assert row["metadata"]["public_export_allowed"] is False
    assert row["metadata"]["provenance"]["domain"] == "shopping"


def test_a_row_has_every_field_of_the_forge_schema() -> None:
    def keys(value: Json, path: str = "") -> set[str]:
        names = {f"{path}/{name}" for name in value}
        inner = [(name, each) for name, each in value.items() if isinstance(each, dict) and name != "arguments"]
        return names.union(*[keys(each, f"{path}/{name}") for name, each in inner if name != "content"])

    row = compare_products()
    assert keys({k: v for k, v in FORGE_ROW.items() if k != "tool_result"}) <= keys(row)
    assert row["tool_result"] == {"status": "ok", "content": {"cheapest": "SKU-HEADPHONES-2"}}
    assert row["available_tools"][-1]["name"] == "respond"
    assert [tool.name for tool in tools_of(row)] == [tool.name for tool in SHOP.tools]


def test_the_state_lists_completed_and_pending_steps() -> None:
    state = workflow_state(["a", "a"], ["boom"], ["a", "b"])
    assert state["completed_steps"] == ["a", "a"]
    assert state["pending_steps"] == ["b"]
    assert state["recent_errors"] == ["boom"]
    assert state["terminal_tools"] == ["respond"]


def test_a_call_is_restored_from_its_row_with_its_repairs() -> None:
    repairs = (Repair("scalar_type", "schema", "/n", '"2"', "2"),)
    call = Call("f", {"n": 10**30}, '{"n": 1000000000000000000000000000000}', "a", "raw", repairs, complete=False)
    problem = Problem("missing", "x is required", "/x", 0)
    row = capture_row(
        call,
        group="g",
        request="r",
        tools=(),
        trace=TRACE,
        messages=[],
        assistant={},
        reply={},
        result=None,
        problems=[problem],
    )
    back = json.loads(encode_row(row))
    assert call_of(back) == call
    assert problems_of(back) == [problem]
    assert call_of(FORGE_ROW).arguments == FORGE_ROW["candidate_call"]["arguments"]


def test_a_scenario_without_a_call_is_an_outcome_row() -> None:
    row = outcome_row(group="g", request="r", tools=SHOP.tools, trace=TRACE, messages=[], reply="Hello.", text="Hello.")
    assert row["kind"] == "outcome"
    assert row["outcome"] == {"ended": "answer", "text": "Hello.", "error": ""}
    assert row["assistant"] == {"role": "assistant", "content": "Hello."}


def test_no_two_rows_of_a_run_have_the_same_key() -> None:
    found = rows()
    assert len({capture_key(row) for row in found}) == len(found)


def test_unix_ms_is_in_milliseconds() -> None:
    assert 1_700_000_000_000 < unix_ms() < 10_000_000_000_000


# -- lines -------------------------------------------------------------------------------------------------------------


@given(st.lists(st.dictionaries(st.text(), JSON), max_size=5))
def test_appended_rows_are_read_back(tmp_path_factory: pytest.TempPathFactory, entries: list[Json]) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    with Journal(path) as journal:
        for entry in entries:
            journal.append(entry)
    assert [row for _, row in read_rows(path)] == entries


def test_lone_surrogates_and_huge_integers_are_kept(tmp_path: Path) -> None:
    row = {"a": "x\ud800", "n": 10**40}
    append_jsonl(tmp_path / "a.jsonl", row)
    assert [found for _, found in read_rows(tmp_path / "a.jsonl")] == [row]


def test_a_file_is_readable_only_by_its_owner_and_never_truncated(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "a.jsonl"
    touch_jsonl(path)
    append_jsonl(path, {"n": 1})
    touch_jsonl(path)
    assert path.read_bytes() == b'{"n":1}\n'
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_path_without_a_folder_creates_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ensure_parent_dir("a.jsonl")
    append_jsonl("a.jsonl", {})
    assert os.listdir(tmp_path) == ["a.jsonl"]


def test_an_error_names_the_step_and_the_path(tmp_path: Path) -> None:
    with pytest.raises(FileFailed, match=f"cannot open {tmp_path}: Is a directory"):
        append_jsonl(tmp_path, {})
    (tmp_path / "file").touch()
    with pytest.raises(FileFailed, match="cannot make the folder"):
        append_jsonl(tmp_path / "file" / "a.jsonl", {})
    with pytest.raises(FileFailed, match="cannot be read"):
        list(read_rows(tmp_path / "none.jsonl"))


FILLS_THE_DISK = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
from rightcall.capture.captured_rows import FileFailed, Journal
journal = Journal(sys.argv[1])
try:
    for number in range(100):
        journal.append({"number": number, "text": "x" * 40})
except FileFailed as error:
    print(error)
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit on file sizes here")
def test_a_full_disk_leaves_whole_lines_and_reports_the_failed_step(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    command = [sys.executable, "-c", FILLS_THE_DISK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith(f"cannot write {path}: ")
    numbers = [row["number"] for _, row in read_rows(path) if not isinstance(row, LineFault)]
    assert numbers == list(range(len(numbers)))
    assert numbers
    assert path.read_bytes().endswith(b"\n")


def test_an_incomplete_last_line_is_reported_and_removed_only_on_request(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [{"n": 1}])
    path.write_bytes(path.read_bytes() + b'{"n": ')
    assert list(read_rows(path))[-1] == (2, LineFault("the last line is incomplete", torn=True))
    with pytest.raises(FileFailed, match="last line is incomplete"):
        Journal(path)
    with Journal(path, torn="cut") as journal:
        assert journal.cut == 6
        journal.append({"n": 2})
    assert path.read_bytes() == b'{"n":1}\n{"n":2}\n'


def test_a_last_line_without_a_newline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":1}')
    append_jsonl(path, {"n": 2})
    assert path.read_bytes() == b'{"n":1}\n{"n":2}\n'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[1]\n", "not a list"),
        (b"nonsense\n", "not JSON"),
        (b'{"a": NaN}\n', "not JSON"),
        (b'{"a": "\xff"}\n', "not UTF-8"),
        (b'{"a": ' + b"[" * 5_000 + b"]" * 5_000 + b"}\n", "nested too deeply"),
    ],
)
def test_an_invalid_line_is_a_fault_and_the_next_line_is_read(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line + b'\n{"n":1}\n')
    first, second = read_rows(path)
    assert first[0] == 1 and isinstance(first[1], LineFault) and message in first[1].message
    assert second == (3, {"n": 1})


def test_a_line_that_is_too_long_is_skipped_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LONGEST", 100)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": "' + b"x" * 1_000 + b'"}\n{"n":1}\n')
    first, second = read_rows(path)
    assert isinstance(first[1], LineFault) and "longer than 100 bytes" in first[1].message
    assert second == (2, {"n": 1})


def test_the_position_of_a_line_counts_every_byte_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LONGEST", 100)
    given_rows = [{"n": number, "text": "\u00e9" * number} for number in range(8)]
    between = [b"", b"\n", b"\n\n", b" \t\r\n", b"x" * 500 + b"\n", b"[1]\n", b"nonsense\r\n"]
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b"".join([b"\n", *[encode_row(row) + other for row, other in zip(given_rows, [*between, b"\n"], strict=True)]])
    )
    whole = path.read_bytes().splitlines(keepends=True)
    lines = list(read_lines(path))
    assert [line.number for line in lines] == [at for at, each in enumerate(whole, 1) if each.strip()]
    with path.open("rb") as file:
        for line in lines:
            file.seek(line.place)
            assert file.read(line.size) == whole[line.number - 1]
        assert [read_at(file, line.place, line.size) for line in lines if isinstance(line.row, dict)] == given_rows
