"""`rightcall report`: logs as input, a table, JSON and a page as output, and an exit code that reports a worsening."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rightcall.datasets.rows.engines import InlineEngine
from rightcall.datasets.rows.mapping import Totals, Watch, map_rows
from rightcall.datasets.rows.replies import ParseOptions, RowKeys
from rightcall.datasets.rows.sources import sources_of
from rightcall.evaluation.reports.logged_rows import TallySink, TallyWork
from rightcall.evaluation.reports.reply_tally import ReplyTally
from support.captured import rows, write
from support.command import failed, run
from support.reported import CUT, GOOD, LEFT_IN_TEXT, NEAR, PLAIN, REFUSED, REPAIRED, TEXTS, TOOLS

Json = dict[str, Any]


def write_log(path: Path, lines: list[Json]) -> str:
    path.write_text("".join([json.dumps(line) + "\n" for line in lines]))
    return str(path)


def text_rows(*replies: str, **more: str) -> list[Json]:
    return [{"id": at, "text": text, "model": "qwen", "server": "vllm", **more} for at, text in enumerate(replies)]


@pytest.fixture
def tools(tmp_path: Path) -> str:
    definitions = [{"name": tool.name, "parameters": tool.parameters} for tool in TOOLS]
    (tmp_path / "tools.json").write_text(json.dumps(definitions))
    return str(tmp_path / "tools.json")


def report_json(*args: str, code: int = 0) -> Json:
    result = run("report", *args, "--json", "--jobs", "1")
    assert result.exit_code == code, result.output
    found: Json = json.loads(result.stdout)
    return found


def test_a_log_of_texts_is_counted_by_model_server_and_format(tmp_path: Path, tools: str) -> None:
    report = report_json(write_log(tmp_path / "a.jsonl", text_rows(*TEXTS)), "--tools", tools, "--format", "hermes")
    assert report["headline"] == "50.0 % of 4 calls may run"
    (group,) = report["groups"]
    assert [group[name] for name in ("model", "server", "format", "replies", "calls")] == [
        "qwen",
        "vllm",
        "hermes",
        7,
        4,
    ]
    counts = {name: group[name]["count"] for name in ("may_run", "repaired", "refused", "near", "cut", "leaked")}
    assert counts == {"may_run": 2, "repaired": 1, "refused": 2, "near": 1, "cut": 1, "leaked": 1}
    assert group["may_run"]["low"] == pytest.approx(0.1500, abs=1e-4)
    missing = next(each for each in group["findings"] if each["name"] == "missing")
    (sample,) = missing["samples"]
    assert sample["text"][slice(*sample["found"])] == '{"name": "get_weather", "arguments": {}}'
    assert sample["line"] == 3


def test_responses_parse_output_and_captured_rows_are_read(tmp_path: Path, tools: str) -> None:
    parsed = str(tmp_path / "parsed.jsonl")
    source = write_log(tmp_path / "a.jsonl", text_rows(GOOD, REFUSED))
    assert run("parse", "--rows", source, "--tools", tools, "--jobs", "1", "--out", parsed).exit_code == 0
    answers = write_log(
        tmp_path / "b.jsonl", [{"custom_id": "1", "response": {"body": LEFT_IN_TEXT}, "base_url": "http://u:p@h:1/v1"}]
    )
    captured = str(write(tmp_path / "c.jsonl", rows("parallel", "repaired")))
    report = report_json(parsed, answers, captured, "--tools", tools)
    by_model = {(group["model"], group["server"]): group for group in report["groups"]}
    assert by_model["qwen", ""]["refused"]["count"] == 1
    assert by_model["m", "h:1"]["leaked"]["count"] == 1
    capture = by_model["test-model", ""]
    assert [capture[name] for name in ("replies", "calls")] == [4, 3]
    assert capture["repaired"]["count"] == 1


def test_keys_of_rows_can_be_given_as_options(tmp_path: Path) -> None:
    report = report_json(
        *(write_log(tmp_path / "a.jsonl", [{"a": {"b": GOOD}, "who": {"m": "x"}, "via": "y"}]), "--text-key", "a.b"),
        *("--model-key", "who.m", "--server-key", "via"),
    )
    assert [(group["model"], group["server"]) for group in report["groups"]] == [("x", "y")]


def test_lines_without_a_reply_are_reported_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": GOOD}) + "\nnonsense\n\n" + '{"x": 1}\n' * 4 + '{"id": 1, "error": "no"}\n')
    result = run("report", str(path), "--jobs", "1")
    assert result.exit_code == 0
    assert "6 lines hold no reply." in result.stdout
    lines = result.stderr.splitlines()
    assert len(lines) == 4 and lines[0].startswith(f"{path}:2 ") and lines[-1] == "and 3 more rows like these"


def test_a_log_without_replies_exits_with_code_1(tmp_path: Path) -> None:
    result = run("report", write_log(tmp_path / "a.jsonl", [{"x": 1}]), "--jobs", "1")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("rightcall: no line has a reply")


def test_a_significant_worsening_exits_with_1_and_an_improvement_with_0(tmp_path: Path, tools: str) -> None:
    old = write_log(tmp_path / "old.jsonl", text_rows(*[GOOD] * 60))
    new = write_log(tmp_path / "new.jsonl", text_rows(*[GOOD] * 40, *[REFUSED] * 20))
    worse = report_json(new, "--compare", old, "--tools", tools, code=1)
    assert {change["verdict"] for change in worse["changes"]} >= {"worse"}
    assert worse["notes"][0].startswith("Since the log before: 3 worse.")
    better = report_json(old, "--compare", new, "--tools", tools)
    assert {change["verdict"] for change in better["changes"]} == {"better", "same"}
    assert report_json(new, "--compare", new, "--tools", tools)["notes"][0].startswith("Nothing got better or worse")


def test_the_page_is_private_and_overwrites_only_an_earlier_page(tmp_path: Path) -> None:
    source = write_log(tmp_path / "a.jsonl", text_rows(GOOD, PLAIN))
    page = tmp_path / "report.html"
    for _ in range(2):
        assert run("report", source, "--html", str(page), "--jobs", "1").exit_code == 0
    assert page.read_text().endswith("</html>\n")
    assert page.stat().st_mode & 0o777 == 0o600
    assert "is no page of `report`" in failed(_run_report(source, "--html", write_foreign_file(tmp_path)))
    assert failed(_run_report(source, "--html", source))


def _run_report(*args: str) -> Any:
    return run("report", *args, "--jobs", "1")


def write_foreign_file(folder: Path) -> str:
    (folder / "notes.txt").write_text("mine")
    return str(folder / "notes.txt")


@pytest.mark.parametrize("args", [("nowhere-*.jsonl",), ("a.unknown",), ("x.jsonl", "--format", "herms")])
def test_wrong_usage_is_reported_in_one_line(args: tuple[str, ...]) -> None:
    assert failed(run("report", *args))


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_the_screen_fits_the_terminal_and_begins_with_the_headline(columns: str, tmp_path: Path, tools: str) -> None:
    source = write_log(tmp_path / "a.jsonl", text_rows(*TEXTS * 3, model="Qwen/Qwen2.5-Coder-32B-Instruct-AWQ"))
    result = run("report", source, "--tools", tools, "--jobs", "1", env={"COLUMNS": columns})
    lines = result.stdout.splitlines()
    assert lines[0] == "50.0 % of 12 calls may run"
    assert max(map(len, lines)) <= int(columns)
    assert "Qwen/Qwen2.5-Coder-32B-Instruct-AWQ" in result.stdout


# -- parts -------------------------------------------------------------------------------------------------------------


def tally_in_parts(paths: list[str], part_size: int, *, resume: bool = False, watch: Watch | None = None) -> ReplyTally:
    sources = sources_of(paths)
    work = TallyWork("key", RowKeys(), TOOLS, ParseOptions(format="hermes"))
    with TallySink(sources, resume=resume) as sink:
        map_rows(sources, work, sink, InlineEngine(), part_size=part_size, watch=watch)
    return sink.tally


def test_an_interrupted_report_resumes_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = write_log(tmp_path / "a.jsonl", text_rows(*(GOOD, REPAIRED, REFUSED, CUT, NEAR) * 8))

    def stop(totals: Totals) -> None:
        if totals.parts == 5:
            raise KeyboardInterrupt

    resumed: list[int] = []
    whole = tally_in_parts([path], 300)
    with pytest.raises(KeyboardInterrupt):
        tally_in_parts([path], 300, watch=stop)
    assert tally_in_parts([path], 300, resume=True, watch=lambda totals: resumed.append(totals.resumed)) == whole
    assert resumed[-1] > 0
    assert not list((tmp_path / "state" / "rightcall" / "unfinished").iterdir())


def test_only_a_resumable_report_needs_a_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state").write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = write_log(tmp_path / "a.jsonl", text_rows(GOOD, REPAIRED))
    assert run("report", path).exit_code == 0
    assert "Not a directory" in failed(run("report", path, "--resume"), 1)
    assert "cannot be read twice" in failed(run("report", "-", "--rows-as", "jsonl", "--resume"), 2)


def test_a_tally_is_independent_of_chunking(tmp_path: Path) -> None:
    lines = text_rows(*[text + "!" * at for at, text in enumerate((GOOD, REPAIRED, REFUSED, CUT, NEAR) * 8)])
    plain = write_log(tmp_path / "a.jsonl", [*lines, {"x": 1}, {"text": "half \ud800 " + REFUSED, "model": "\udc00"}])
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(Path(plain).read_bytes()))
    again = write_log(tmp_path / "c.jsonl", lines)
    for paths in ([plain], [plain, again], [str(tmp_path / "b.jsonl.gz")]):
        whole = tally_in_parts(paths, 1 << 20)
        assert tally_in_parts(paths, 300) == whole
        for sample in [each for group in whole.groups.values() for kept in group.samples.values() for each in kept]:
            assert sample.path in paths
            if sample.path != str(tmp_path / "b.jsonl.gz"):
                row = json.loads(Path(sample.path).read_text().splitlines()[sample.line - 1])
                assert row["text"].replace("\ud800", "\ufffd") == sample.text


def test_samples_of_csv_files_have_line_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('model,text\nm,"two\nlines"\nm,"' + REFUSED.replace('"', '""') + '"\n')
    (kept,) = [
        each for group in tally_in_parts([str(path)], 1 << 20).groups.values() for each in group.samples.values()
    ]
    assert kept[0].line == 4
