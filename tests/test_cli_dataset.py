"""`rightcall dataset`: commands, exit codes, output and written files."""

import json
from pathlib import Path

import pytest

from rightcall.capture.captured_rows import read_rows
from support.captured import rows, write
from support.command import failed, process, run


@pytest.fixture
def source(tmp_path: Path) -> str:
    return str(write(tmp_path / "capture.jsonl", rows()))


def run_json(*args: str, code: int = 0) -> dict[str, object]:
    result = run("dataset", *args, "--json")
    assert result.exit_code == code, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_a_capture_can_be_turned_into_a_public_file(tmp_path: Path, source: str) -> None:
    def at(name: str) -> str:
        return str(tmp_path / name)

    assert run_json("validate", source)["bad"] == 0
    assert run_json("label", source, "-o", at("labelled.jsonl"))["labels"] == {
        "valid": 9,
        "incomplete": 2,
        "deterministic_invalid": 1,
        "wrong_tool_semantic": 1,
    }
    assert run_json("split", at("labelled.jsonl"), "-o", at("split"))["rows"] == 13
    assert run_json("export", at("labelled.jsonl"), "--to", "verifier", "-o", at("verifier.jsonl"))["examples"] == 7
    assert run_json("assemble", at("verifier.jsonl"), "-o", at("merged"))["accepted"] == 6
    assert run_json("redact", at("labelled.jsonl"), "-o", at("redacted.jsonl"), "--term", "dock")["rows"] == 13
    assert run_json("release", at("redacted.jsonl"), "-o", at("released.jsonl"), "--by", "Ann")["released"] == 13
    export = run_json("export", at("released.jsonl"), "--to", "trl-sft", "-o", at("public.parquet"), "--public")
    assert export["public"] is True
    assert run_json("import", at("verifier.jsonl"), "-o", at("none.jsonl"), code=1)["refused"] == 7


def test_every_command_prints_a_summary(tmp_path: Path, source: str) -> None:
    def at(name: str) -> str:
        return str(tmp_path / name)

    for args in (
        ("validate", source),
        ("label", source, "-o", at("labelled.jsonl")),
        ("stats", source),
        ("export", source, "--to", "openai-sft", "-o", at("train.jsonl")),
        ("prompts", "-o", at("prompts.jsonl")),
        ("redact", source, "-o", at("redacted.jsonl")),
    ):
        result = run("dataset", *args)
        assert result.exit_code == 0, result.output
        assert result.stdout.strip()


def test_validation_reports_every_bad_line_and_exits_with_1(tmp_path: Path, source: str) -> None:
    with open(source, "ab") as file:
        file.write(b'{"schema_version": "\x1b[2J"}\nnonsense\n')
    result = run("dataset", "validate", source)
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert [line.split(" ")[0] for line in lines] == [f"{source}:14", f"{source}:15"]
    assert "\x1b" not in result.stderr
    assert run_json("validate", source, code=1)["bad"] == 2


def test_a_public_export_of_private_rows_reports_each_row_and_writes_nothing(tmp_path: Path, source: str) -> None:
    result = run("dataset", "export", source, "--to", "trl-sft", "-o", str(tmp_path / "out.jsonl"), "--public")
    assert result.exit_code == 1
    assert len([line for line in result.stderr.splitlines() if line.startswith(source)]) == 13
    assert [path.name for path in tmp_path.iterdir()] == ["capture.jsonl"]


def test_the_stats_page_is_complete_and_has_private_permissions(tmp_path: Path, source: str) -> None:
    assert run_json("stats", source, "--html", str(tmp_path / "stats.html"))["rows"] == 13
    text = (tmp_path / "stats.html").read_text()
    assert text.startswith("<!doctype html>") and text.endswith("</html>\n")
    assert (tmp_path / "stats.html").stat().st_mode & 0o777 == 0o600


def test_a_usage_error_is_one_line_and_exits_with_2(tmp_path: Path, source: str) -> None:
    out = str(tmp_path / "out.jsonl")
    assert "needs a format" in failed(run("dataset", "export", source, "--to", "text", "-o", out))
    assert "did you mean" in failed(run("dataset", "prompts", "--domains", "shoping", "-o", out))
    assert "at least one domain" in failed(run("dataset", "prompts", "--domains", ",", "-o", out))
    assert "not a path" in failed(run("dataset", "assemble", source, "-o", out, "--combined-output", "../x"))
    assert "no format" in failed(run("dataset", "export", source, "--to", "text", "-f", "x", "-o", out))
    assert run("dataset", "export", source, "--to", "nothing", "-o", out).exit_code == 2
    assert run("dataset", "split", source, "-o", out, "--validation-ratio", "2").exit_code == 2


@pytest.mark.parametrize(
    "args",
    [
        ("export", "--to", "trl-sft", "-o", "capture.jsonl"),
        ("export", "--to", "trl-sft", "-o", "linked.parquet"),
        ("label", "-o", "capture.jsonl"),
        ("redact", "-o", "../{folder}/capture.jsonl"),
        ("release", "--by", "Ann", "-o", "capture.jsonl"),
        ("import", "-o", "linked.parquet"),
        ("assemble", "-o", ".", "--combined-output", "capture.jsonl"),
        ("stats", "--html", "capture.jsonl"),
    ],
)
def test_no_command_overwrites_its_input(
    args: tuple[str, ...], tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = Path(source).read_bytes()
    Path("linked.parquet").hardlink_to(source)
    command, *options = [arg.format(folder=tmp_path.name) for arg in args]
    assert "would be overwritten" in failed(run("dataset", command, source, *options))
    assert Path(source).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["capture.jsonl", "linked.parquet"]


def test_a_split_does_not_overwrite_its_input(tmp_path: Path, source: str) -> None:
    train = tmp_path / "train.jsonl"
    train.write_bytes(Path(source).read_bytes())
    assert "would be overwritten" in failed(run("dataset", "split", str(train), "-o", str(tmp_path)))
    assert train.read_bytes() == Path(source).read_bytes()


@pytest.mark.parametrize("name", ["notebook.jsonl", "conflicts.jsonl", "quarantine.jsonl", "dataset_manifest.json"])
def test_the_combined_file_cannot_have_the_name_of_another_output(name: str, tmp_path: Path, source: str) -> None:
    out = tmp_path / "out"
    error = failed(run("dataset", "assemble", source, "-o", str(out), "--combined-output", name))
    assert "another file" in error and not out.exists()


def test_an_unusable_file_is_a_one_line_error(tmp_path: Path, source: str) -> None:
    assert "cannot be read" in failed(run("dataset", "validate", str(tmp_path / "none.jsonl")), 1)
    assert "Is a directory" in failed(run("dataset", "label", source, "-o", str(tmp_path)), 2)
    (tmp_path / "bad.jsonl").write_text("nonsense\n")
    line = failed(run("dataset", "label", str(tmp_path / "bad.jsonl"), "-o", str(tmp_path / "out.jsonl")), 1)
    assert "bad.jsonl:1 not JSON" in line and "dataset validate" in line


def test_a_full_disk_is_a_one_line_error_and_leaves_no_file(tmp_path: Path, source: str) -> None:
    import resource
    import subprocess
    import sys

    def limit_file_size() -> None:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))

    for args, message in (
        (("label", source), "cannot write "),
        (("export", source, "--to", "trl-kto"), "cannot write "),
    ):
        command = [sys.executable, "-m", "rightcall", "dataset", *args, "-o", str(tmp_path / "new" / "out.jsonl")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=limit_file_size)
        assert done.returncode == 1, done.stderr
        assert done.stderr.startswith(f"rightcall: {message}"), done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert not list((tmp_path / "new").glob("*")) and not list((tmp_path / "new").glob(".*"))


def test_the_rescue_policy_of_an_import_is_an_option(tmp_path: Path) -> None:
    call = '{"name": "f", "arguments": {}}'
    log = [{"text": call}, {"text": f"<think><tool_call>{call}</tool_call></think>"}]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in log))
    (tmp_path / "tools.json").write_text('[{"name": "f"}]')
    for options, calls in (((), 2), (("--rescue", "off"), 1), (("--reasoning-calls", "never"), 1)):
        source, out, definitions = (str(tmp_path / name) for name in ("log.jsonl", "out.jsonl", "tools.json"))
        paths = (source, "-o", out, "--tools", definitions)
        assert run_json("import", *paths, *options).get("calls", 0) == calls


def test_imported_calls_keep_their_repairs(tmp_path: Path) -> None:
    log = {"text": '<tool_call>{"name": "f", "arguments": {"n": "1",}}</tool_call>'}
    (tmp_path / "log.jsonl").write_text(json.dumps(log) + "\n")
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}]
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    options = ("--tools", str(tmp_path / "tools.json"), "--from", "text", "--format", "hermes", "--model", "m")
    counts = run_json("import", str(tmp_path / "log.jsonl"), "-o", str(tmp_path / "out.jsonl"), *options)
    assert counts["calls"] == 1
    ((_, row),) = read_rows(tmp_path / "out.jsonl")
    assert isinstance(row, dict)
    assert {repair["rule"] for repair in row["repairs"]} == {"trailing_comma", "scalar_type"}
    assert row["proxy_trace"]["model"] == "m"


def test_the_dataset_commands_are_listed_by_a_new_process() -> None:
    done = process("dataset", "--help")
    assert done.returncode == 0
    for name in b"validate stats prompts label assemble split redact release export import".split():
        assert name in done.stdout


def test_three_rejected_lines_are_reported_and_the_others_counted(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"a": 1}\n' * 9 + '{"prompt": "Hi", "output": "Hello."}\n')
    result = run("dataset", "import", str(tmp_path / "log.jsonl"), "-o", str(tmp_path / "out.jsonl"))
    assert result.exit_code == 1
    *reported, rest = result.stderr.splitlines()
    assert [line.split(" ")[0] for line in reported] == [f"{tmp_path}/log.jsonl:{number}" for number in (1, 2, 3)]
    assert rest == "and 6 more lines are refused"
    assert "refused        9" in result.stdout and "answers        1" in result.stdout


def test_a_split_by_tool_reports_an_empty_side(tmp_path: Path) -> None:
    rows = Path(__file__).resolve().parent.parent / "examples" / "captured.jsonl"
    result = run("dataset", "split", str(rows), "--by", "tool", "-o", str(tmp_path / "parts"))
    assert result.exit_code == 0 and "held out         1" in result.stdout
    assert "one side is empty: rows that all offer the same tools cannot be split by tool" in result.stderr
