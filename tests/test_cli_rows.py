"""Logs of many rows: `parse`, `check` and `repair` with `--rows`."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightcall import Ids, Toolset, parse
from rightcall.datasets.rows.engines import InlineEngine, LocalEngine
from rightcall.datasets.rows.mapping import map_rows
from rightcall.datasets.rows.replies import ParseOptions, ReplyWork, RowKeys
from rightcall.datasets.rows.sources import sources_of
from rightcall.storage.jsonl import LineFault, decode_row, encode_row
from rightcall.types import Json
from support.command import failed, process, run
from support.replies import hermes

LOOK: Json = {"name": "look", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
TOOLS = Toolset([LOOK])
CALL = hermes('{"name": "look", "arguments": {"city": "Oslo"}}')
WORK = ReplyWork("", RowKeys(), TOOLS, ParseOptions("hermes"))


class MemorySink:
    """A sink that collects what is written to it."""

    def __init__(self) -> None:
        self.data = b""

    def begin(self, run: str) -> list[Json]:
        return []

    def write(self, data: bytes, note: Json) -> None:
        self.data += data

    def finish(self) -> None:
        pass

    def discard(self) -> None:
        pass


def map_file(path: Path, *, jobs: int = 1, size: int = 1 << 20) -> bytes:
    sink = MemorySink()
    map_rows(sources_of([str(path)]), WORK, sink, LocalEngine(jobs), part_size=size)
    return sink.data


def parse_lines(data: bytes) -> bytes:
    """Return the expected output: every line parsed in a plain loop."""
    lines = []
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        row = decode_row(line)
        if isinstance(row, LineFault):
            lines.append(encode_row({"id": None, "error": row.message}))
            continue
        reply = parse(row["text"], tools=TOOLS, format="hermes", ids=Ids.numbered("call")).to_json()
        kept = ("content", "reasoning", "calls", "refused", "problems", "format", "done", "finish", "usage", "api")
        lines.append(encode_row({"id": row["id"], "model": None, **{key: reply[key] for key in kept}}))
    return b"".join(lines)


def compress(data: bytes, how: str) -> bytes:
    import pyarrow  # type: ignore[import-untyped]

    if how == ".zst":
        return bytes(pyarrow.compress(data, codec="zstd", asbytes=True))
    return gzip.compress(data) if how == ".gz" else data


ODD = [
    "",
    "Hello.",
    CALL,
    "<tool_call>{",
    hermes('{"name": "lok", "arguments": {"city": 3}}'),
    "é\u2028\ud800 \n\r\n x",
]
ROW = st.builds(lambda id, text: json.dumps({"id": id, "text": text}).encode(), st.integers(), st.sampled_from(ODD))
LINE = st.one_of(ROW, ROW, st.sampled_from([b"", b"  ", b"oops", b'{"id": 1', b"[1]", b'"\xff"', b"\xef\xbb\xbf"]))


@settings(max_examples=40)
@given(
    st.lists(LINE, max_size=25), st.sampled_from([b"\n", b"\r\n"]), st.booleans(), st.integers(1, 900),
    st.sampled_from(["", ".gz", ".zst"]),
)  # fmt: skip
def test_batches_of_a_log_give_the_replies_of_parse(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], newline: bytes, ends: bool, size: int, how: str
) -> None:
    data = newline.join(lines) + (newline if ends else b"")
    path = tmp_path_factory.mktemp("log") / f"log.jsonl{how}"
    path.write_bytes(compress(data, how))
    assert map_file(path, size=size) == parse_lines(data.removeprefix(b"\xef\xbb\xbf"))


def make_rows(count: int, text: str = CALL) -> list[Json]:
    return [{"id": str(number), "text": f'{number} é, "q"\n{text}'} for number in range(count)]


def encode_rows(given: list[Json]) -> bytes:
    return b"".join(map(encode_row, given))


def test_output_is_independent_of_the_number_of_processes(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(encode_rows(make_rows(200)))
    assert map_file(tmp_path / "log.jsonl", jobs=2, size=1_000) == parse_lines(encode_rows(make_rows(200)))


@pytest.mark.parametrize("how", ["", ".gz", ".zst"])
@pytest.mark.parametrize("size", [300, 1 << 20])
def test_csv_and_parquet_give_the_same_output_as_json_lines(tmp_path: Path, how: str, size: int) -> None:
    import pyarrow
    from pyarrow import parquet

    given, file, table = make_rows(60), io.StringIO(), io.BytesIO()
    writer = csv.DictWriter(file, ["id", "text"])
    writer.writeheader()
    writer.writerows(given)
    parquet.write_table(pyarrow.Table.from_pylist(given), table, row_group_size=25)
    for name, data in {"csv": file.getvalue().encode(), "parquet": table.getvalue()}.items():
        path = tmp_path / f"log.{name}{how}"
        path.write_bytes(compress(data, how))
        assert map_file(path, size=size) == parse_lines(encode_rows(given)), name


# -- the command -------------------------------------------------------------------------------------------------------


def read_lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def parse_rows(tmp_path: Path, *given: Json, more: tuple[str, ...] = ()) -> list[Json]:
    log, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    log.write_bytes(encode_rows(list(given)))
    done = run("parse", "--rows", str(log), "--out", str(out), *more)
    assert done.exit_code == 0, done.output
    return read_lines(out)


CALLS = [{"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"city": "Oslo"}'}}]
MESSAGE = {"role": "assistant", "content": None, "tool_calls": CALLS}
CHAT = {"object": "chat.completion", "choices": [{"message": MESSAGE, "finish_reason": "tool_calls"}], "model": "m"}
BLOCK = {"type": "tool_use", "id": "c", "name": "look", "input": {"city": "Oslo"}}
PART = {"functionCall": {"name": "look", "args": {"city": "Oslo"}}}
ITEM = {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"city": "Oslo"}'}
OLLAMA = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"function": {"name": "look", "arguments": {"city": "Oslo"}}}],
}


@pytest.mark.parametrize(
    "row",
    [
        *({key: CALL} for key in "text output response generated_text completion content answer prediction".split()),
        {"prompt": "Look!", "completion": CALL, "text": "Look!"},
        {"outputs": [{"text": CALL}]},
        CHAT,
        {"response": CHAT, "request": {"messages": []}},
        {"custom_id": "a", "response": {"status_code": 200, "body": CHAT}, "error": None},
        {"response": json.dumps(CHAT)},
        {"message": MESSAGE},
        {"messages": [{"role": "user", "content": "Look!"}, MESSAGE]},
        {"messages": [{"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Look!"}, MESSAGE]},
        {"type": "message", "role": "assistant", "content": [BLOCK], "stop_reason": "tool_use"},
        {"candidates": [{"content": {"parts": [PART]}}]},
        {"object": "response", "output": [ITEM]},
        {"model": "m", "message": OLLAMA, "done": True},
        {"model": "m", "response": CALL, "done": True},
    ],
    ids=lambda row: ",".join(row),
)
def test_the_reply_of_a_row_is_found_under_every_known_key(tmp_path: Path, row: Json) -> None:
    (line,) = parse_rows(tmp_path, row)
    assert [(call["name"], call["arguments"]) for call in line["calls"]] == [("look", {"city": "Oslo"})]


def test_keys_can_be_given_and_ids_and_models_are_kept(tmp_path: Path) -> None:
    row = {
        "meta": {"n": [7, 8]},
        "who": {"name": "m"},
        "a": {"b": [{"said": CALL}]},
        "text": "not this",
        "t": [LOOK],
    }
    keys = {"text": "a.b.0.said", "id": "meta.n.1", "model": "who.name", "tools": "t"}
    (line,) = parse_rows(tmp_path, row, more=tuple(word for key in keys for word in (f"--{key}-key", keys[key])))
    assert (line["id"], line["model"], line["calls"][0]["name"]) == (8, "m", "look")
    (line,) = parse_rows(tmp_path, {"custom_id": {"any": 1}, "id": 2, "model": "m", "text": ""})
    assert (line["id"], line["model"], line["calls"]) == ({"any": 1}, "m", [])


def test_tools_come_from_the_row_or_from_the_tools_file(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([LOOK]))
    other = {"name": "other", "parameters": {"type": "object"}}
    own = {"text": CALL, "tools": [other]}
    in_request = {"text": CALL, "request": {"tools": json.dumps([other])}}
    found = parse_rows(tmp_path, own, in_request, {"text": CALL})
    assert [len(line["refused"]) for line in found] == [1, 1, 0]
    options = ("--tools", str(tmp_path / "tools.json"))
    assert [len(line["refused"]) for line in parse_rows(tmp_path, own, in_request, more=options)] == [0, 0]
    found = parse_rows(tmp_path, own, {"text": CALL}, more=(*options, "--tools-key", "tools"))
    assert [len(line["refused"]) for line in found] == [1, 0]


def test_a_truncated_reply_has_no_rescued_call(tmp_path: Path) -> None:
    bare = {"text": '{"name": "look", "arguments": {"city": "Oslo"}}', "tools": [LOOK]}
    found = parse_rows(tmp_path, bare, {**bare, "finish_reason": "length"}, {**bare, "stop_reason": "max_tokens"})
    assert [len(line["calls"]) for line in found] == [1, 0, 0]


def test_invalid_rows_are_reported_up_to_a_limit_and_each_gives_an_output_line(tmp_path: Path) -> None:
    log, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    log.write_bytes(b'{"text": "a"}\n\noops\n{"id": 5, "x": 1}\n[]\n{"text": "b"}\n{"x": \n"last"')
    done = run("parse", "--rows", str(log), "--out", str(out))
    assert done.exit_code == 1
    assert done.stderr.splitlines() == [
        f"{log}:3 not JSON: expecting value at character 0",
        f"{log}:4 no reply is found; its keys are 'id', 'x': name its key with --text-key",
        f"{log}:5 a row is a JSON object, not a list",
        "and 2 more rows like these",
    ]
    found = read_lines(out)
    assert [line.get("content") for line in found] == ["a", None, None, None, "b", None, None]
    assert [line["id"] for line in found if "error" in line] == [None, 5, None, None, None]


def test_csv_rows_are_reported_by_their_line_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('id,text\n1,"two\nlines"\n2,b,c\n')
    done = run("parse", "--rows", str(tmp_path / "in.csv"), "--out", str(tmp_path / "out.jsonl"))
    assert done.stderr == f"{tmp_path}/in.csv:4 it has 3 fields, and the first line names 2\n"


def test_several_files_globs_and_standard_input_are_read(tmp_path: Path) -> None:
    for name in ("b1.jsonl", "b2.jsonl", "a.jsonl"):
        (tmp_path / name).write_bytes(encode_rows([{"id": name, "text": "x"}]))
    out = tmp_path / "out" / "all.jsonl"
    done = run("parse", "--jsonl", str(tmp_path / "a.jsonl"), str(tmp_path / "b*.jsonl"), "--out", str(out), "--json")
    assert [line["id"] for line in read_lines(out)] == ["a.jsonl", "b1.jsonl", "b2.jsonl"]
    summary = json.loads(done.stdout)
    assert (summary["rows"], summary["calls"], summary["bad"], summary["output"]) == (3, 0, 0, str(out))
    done = run("parse", "--rows-as", "csv", "--out", str(out), stdin="id,text\nq,x\n")
    assert [line["id"] for line in read_lines(out)] == ["q"] and done.exit_code == 0


def test_only_output_lines_are_written_to_standard_output() -> None:
    done = process("parse", "--rows-as", "jsonl.gz", "--json", stdin=gzip.compress(encode_rows(make_rows(3))))
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["0", "1", "2"]
    assert json.loads(done.stderr)["calls"] == 3


@pytest.mark.parametrize(
    "args, message",
    [
        (["--resume"], "--resume needs --rows, which reads logs of many rows"),
        (["--rows", "in.jsonl", "--resume"], "--resume needs the file of the interrupted run"),
        (["--rows", "-"], "unknown kind of rows in standard input; name it with --rows-as"),
        (["--rows", "-", "--rows-as", "jsonl", "--resume", "--out", "o"], "standard input cannot be read twice"),
        (["--rows", "in.txt"], "unknown kind of rows in 'in.txt'"),
        (["--rows", "in.txt", "--rows-as", "xml"], "'xml' is no kind of rows"),
        (["--rows", "no*.jsonl"], "no file matches 'no*.jsonl'"),
        (["--rows", "in.jsonl", "--explain"], "--explain is for a single reply"),
        (["a", "b"], "expected one file, got 2"),
        (["--rows", "in.jsonl", "--out", "in.jsonl"], "is an input of this command and would be overwritten"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_bytes(encode_rows(make_rows(1)))
    assert message in failed(run("parse", *args))


@pytest.mark.parametrize("name, data", [("x.jsonl.gz", b"no gzip"), ("x.jsonl.zst", b"none"), ("x.parquet", b"none")])
def test_an_unreadable_file_is_reported_in_one_line(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    assert f"cannot read {tmp_path / name}" in failed(run("parse", "--rows", str(tmp_path / name)), 1)
    assert "No such file" in failed(run("parse", "--rows", str(tmp_path / "none.jsonl")), 1)


# -- check and repair --------------------------------------------------------------------------------------------------


def test_check_counts_calls_and_repair_writes_them(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([LOOK]))
    log, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    wrong = {"id": 2, "name": "look", "arguments": '{"city": "Oslo",}'}
    log.write_bytes(
        encode_rows([{"id": 1, "name": "look", "arguments": {}}, wrong, {"id": 3, "response": CHAT}, {"id": 4}])
    )
    options = ("--rows", str(log), "--tools", str(tmp_path / "tools.json"), "--out", str(out))
    assert run("check", *options).exit_code == 1
    assert [(line.get("calls"), line.get("refused")) for line in read_lines(out)] == [
        (1, 0),
        (0, 1),
        (1, 0),
        (None, None),
    ]
    done = run("repair", *options, "--json")
    assert done.exit_code == 1 and f"{log}:4 " in done.stderr and json.loads(done.stdout)["repaired"] == 1
    found = read_lines(out)
    assert [call["arguments"] for line in found[:3] for call in line["calls"]] == [
        {},
        {"city": "Oslo"},
        {"city": "Oslo"},
    ]
    log.write_bytes(encode_rows([{"name": "look", "arguments": {"city": 7}, "tools": [LOOK]}]))
    assert run("check", "--rows", str(log), "--out", str(out)).exit_code == 1
    assert read_lines(out)[0]["problems"][0]["code"] == "wrong_type"


def test_check_accepts_the_output_of_parse(tmp_path: Path) -> None:
    parse_rows(tmp_path, {"id": 1, "text": CALL})
    (tmp_path / "tools.json").write_text(json.dumps([LOOK]))
    options = ("--rows", str(tmp_path / "out.jsonl"), "--tools", str(tmp_path / "tools.json"))
    assert run("check", *options, "--out", str(tmp_path / "checked.jsonl")).exit_code == 0
    assert read_lines(tmp_path / "checked.jsonl") == [{"id": 1, "calls": 1, "refused": 0, "problems": []}]


# -- resuming ----------------------------------------------------------------------------------------------------------


def test_a_killed_run_is_resumed(tmp_path: Path) -> None:
    """`test_files_written` kills a starved process at each step; this test kills the command itself."""
    log, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    log.write_bytes(encode_rows([{**each, "tools": [LOOK], "padding": "x" * 20_000} for each in make_rows(400)]))
    command = ["parse", "--rows", str(log), "--out", str(out), "--jobs", "2", "--format", "hermes"]
    journal = tmp_path / "out.jsonl.part.journal"
    running = subprocess.Popen([sys.executable, "-m", "rightcall", *command], stdout=subprocess.DEVNULL)
    while running.poll() is None and (not journal.exists() or journal.read_bytes().count(b"\n") < 3):
        time.sleep(0.001)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert out.exists() != journal.exists()
    if journal.exists():
        assert "belongs to another run" in failed(run(*command, "--resume", "--repair", "off"), 1)
    done = run(*command, "--resume", "--json")
    assert json.loads(done.stdout)["resumed"] > 0 or not journal.exists()
    assert out.read_bytes() == parse_lines(log.read_bytes())
    assert sorted(os.listdir(tmp_path)) == ["in.jsonl", "out.jsonl"]


def test_resume_without_an_interrupted_run_is_a_normal_run(tmp_path: Path) -> None:
    assert len(parse_rows(tmp_path, *make_rows(2), more=("--resume",))) == 2


def test_the_inline_engine_consumes_items_one_by_one() -> None:
    items = iter([b"a", b"b"])
    results = InlineEngine().map(bytes.upper, items)
    assert next(results) == b"A" and next(items) == b"b"
