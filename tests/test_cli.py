"""Output and exit codes of the commands."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rightcall import __version__, formats, parse
from rightcall.cli.app import COMMANDS
from rightcall.cli.demo_command import ALL_SCENES, DAMAGED, PAIRS, PROMPT_SCENES, RIGHT, RUN_SCENES, SCENES, WRONG
from support.command import MINE, REPLY, failed, process, run
from support.format_sample import selected

BAD = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os'
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]


@pytest.fixture
def tools(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS))
    return str(path)


@pytest.fixture
def format_file(tmp_path: Path) -> str:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    return str(path)


# -- parse -------------------------------------------------------------------------------------------------------------


def test_parse_shows_text_calls_and_arguments() -> None:
    result = run("parse", "-", "--format", "hermes", stdin=REPLY)
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()[:3]] == ["format", "text", "call"]
    assert "get_weather" in result.stdout and '"city": "Oslo"' in result.stdout


def test_parse_reads_standard_input_by_default() -> None:
    assert run("parse", stdin=REPLY).stdout.startswith("format     hermes")


def test_parse_as_json_is_the_reply() -> None:
    data = json.loads(run("parse", "--format", "qwen", "--json", stdin=REPLY).stdout)
    assert data["content"] == "On it." and data["format"] == "hermes"
    assert [(call["name"], call["arguments"]) for call in data["calls"]] == [("get_weather", {"city": "Oslo"})]
    assert "events" not in data


def test_blocking_problems_give_exit_code_1(tools: str) -> None:
    assert run("parse", "--format", "hermes", stdin=BAD).exit_code == 1
    unknown = run("parse", "-f", "hermes", "--tools", tools, stdin=REPLY.replace("get_weather", "get_wether"))
    assert unknown.exit_code == 1 and "did you mean 'get_weather'?" in unknown.stdout


@pytest.mark.parametrize("live", [[], ["--live"]])
def test_the_reply_of_parse_is_independent_of_chunking(live: list[str], tools: str) -> None:
    args = ["parse", "-f", "hermes", "--tools", tools, "--json"]
    replies = [json.loads(run(*args, "--stream", n, *live, stdin=REPLY).stdout) for n in ("1", "3", "999999")]
    for reply in replies:
        for call in [*reply["calls"], *reply["parts"]]:
            call.pop("id", None)
    assert replies[0] == replies[1] == replies[2]


def test_explain_labels_every_span_and_lists_the_events() -> None:
    result = run("parse", "-f", "hermes", "--explain", "--stream", "5", stdin=REPLY, env={"NO_COLOR": "1"})
    spans = [line.split()[:2] for line in result.stdout.splitlines()[1:5]]
    assert spans == [["0-6", "text"], ["6-19", "marker"], ["19-73", "call"], ["73-86", "marker"]]
    assert r"\n<tool_call>\n" in result.stdout
    events = result.stdout.split("Events, ")[1].splitlines()
    names = [line.split()[1] for line in events if line[:7].strip().isdigit()]
    assert names[0] == "Text" and names[-3:] == ["CallStart", "Arguments", "CallEnd"]


def test_explain_colours_the_text_if_colours_are_enabled() -> None:
    done = process(
        "parse", "-f", "hermes", "--explain", stdin=REPLY.encode(), FORCE_COLOR="1", TERM="xterm", NO_COLOR=""
    )
    assert b"\x1b[32m" in done.stdout


def test_explain_as_json_has_spans_and_events() -> None:
    data = json.loads(run("parse", "-f", "hermes", "--explain", "--json", stdin=REPLY).stdout)
    assert "".join(REPLY[span["start"] : span["end"]] for span in data["spans"]) == REPLY
    assert [event["type"] for event in data["events"]] == ["text", "call_start", "arguments", "call_end"]


def test_reasoning_opened_by_the_prompt_is_an_option() -> None:
    data = json.loads(run("parse", "-f", "hermes", "--reasoning", "open", "--json", stdin="hm</think>Yes.").stdout)
    assert (data["reasoning"], data["content"]) == ("hm", "Yes.")


def test_a_format_file_is_read(format_file: str) -> None:
    text = '<c>{"name": "f", "arguments": {}}</c>'
    assert json.loads(run("parse", "--format-file", format_file, "--json", stdin=text).stdout)["format"] == "mine"
    assert "give one of them" in failed(run("parse", "--format-file", format_file, "-f", "hermes", stdin=text))


def test_an_empty_reply_is_shown_as_nothing() -> None:
    result = run("parse", "-f", "hermes", stdin="")
    assert result.exit_code == 0 and "(nothing)" in result.stdout


def test_a_number_beyond_floats_is_rejected_and_shown_unchanged() -> None:
    text = REPLY.replace('"Oslo"', "1e999")
    assert "not_finite" in run("parse", "-f", "hermes", stdin=text).stdout
    data = json.loads(run("parse", "-f", "hermes", "--json", stdin=text).stdout)
    assert (data["calls"], data["refused"][0]["json"]) == ([], '{"city": 1e999}')


# -- wrong usage -------------------------------------------------------------------------------------------------------


def test_an_unknown_format_is_a_one_line_error_with_the_nearest_name() -> None:
    for command in (["parse"], ["render"]):
        assert "did you mean 'hermes'?" in failed(run(*command, "--format", "herms", stdin="[]"))
    assert "did you mean 'hermes'?" in failed(run("formats", "herms"))


@pytest.mark.parametrize(
    "content, message",
    [
        ("{", "not valid JSON"),
        ("3", "holds no tools"),
        ('[{"nome": "f"}]', "has no name"),
        ('[{"name": "f", "parameters": 3}]', "JSON Schema object"),
        ("[3]", "int is no tool"),
        ("[" * 100_000, "as JSON: "),
        ("1" * 10_000, "as JSON: "),
    ],
)
def test_an_invalid_tools_file_is_a_one_line_error(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text(content)
    line = failed(run("parse", "-f", "hermes", "--tools", str(path), stdin=REPLY))
    assert message in line and "tools.json" in line


def test_an_unreadable_file_is_a_one_line_error(tmp_path: Path) -> None:
    assert "No such file" in failed(run("parse", str(tmp_path / "no")))
    assert "directory" in failed(run("parse", str(tmp_path)))
    assert "No such file" in failed(run("parse", "--tools", "no.json", stdin=REPLY))
    assert "No such file" in failed(run("formats", "check", "no.toml"))
    big = tmp_path / "big.toml"
    big.write_text("#" * 70_000)
    assert "larger than 65,536 bytes" in failed(run("formats", "check", str(big)))


def test_bytes_that_are_not_utf_8_are_replaced_and_reported() -> None:
    result = run("parse", "-f", "hermes", stdin=b"caf\xe9 \xef\xbf\xbd")
    assert result.exit_code == 0
    assert "caf\ufffd \ufffd" in result.stdout and "1 undecodable sequences" in result.stderr


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    assert json.loads(run("parse", "-f", "hermes", "--json", stdin=b"\xef\xbb\xbfhi").stdout)["content"] == "hi"


@pytest.mark.parametrize(
    "args",
    [["--nope"], ["parse", "--stream", "0"], ["parse", "--reasoning", "x"], ["parse", "--rescue", "x"], ["nope"]],
)
def test_invalid_options_give_exit_code_2(args: list[str]) -> None:
    assert run(*args).exit_code == 2


# -- render and detect -------------------------------------------------------------------------------------------------


def test_the_json_of_parse_is_rendered_back_to_the_same_text(tmp_path: Path) -> None:
    text = REPLY.replace('"Oslo"', '"Os\\u00e9 lo\\n", "n": 1E+2')
    printed = run("parse", "-f", "hermes", "--json", stdin=text).stdout
    assert run("render", "-f", "hermes", stdin=printed).stdout == text


@pytest.mark.parametrize(
    "data",
    [
        [{"name": "f", "arguments": {"x": 1}}],
        [{"name": "f", "arguments": '{"x": 1}'}],
        {"name": "f", "arguments": {"x": 1}},
        {"calls": [{"name": "f", "arguments": {"x": 1}}]},
        [{"type": "function", "id": "a", "function": {"name": "f", "arguments": '{"x": 1}'}}],
        [{"name": "f", "arguments": {"x": 1}, "json": '{"x": 2}'}],
    ],
)
def test_calls_render_from_every_input_form(data: Any) -> None:
    result = run("render", "--format", "functionary_v31", stdin=json.dumps(data))
    assert (result.exit_code, result.stdout) == (0, '<function=f>{"x": 1}</function>')


@pytest.mark.parametrize(
    "text, message",
    [
        ("3", "int"),
        ("[3]", "item 1 is int"),
        ('[{"arguments": {}}]', 'no "name"'),
        ('[{"name": "f", "arguments": [1]}]', "not a JSON object"),
        ('[{"type": "text"}]', 'without a string "text"'),
        ("{", "not valid JSON"),
    ],
)
def test_calls_that_cannot_be_rendered_are_a_one_line_error(text: str, message: str) -> None:
    assert message in failed(run("render", "-f", "hermes", stdin=text))


def test_an_error_in_standard_input_names_it() -> None:
    assert failed(run("render", "-f", "hermes", stdin="{")).startswith("rightcall: standard input is not valid JSON")


def test_rendered_text_can_be_printed_as_json() -> None:
    data = json.dumps([{"name": "f", "arguments": {"x": "\u202e"}}])
    result = run("render", "-f", "qwen3", "--json", stdin=data)
    printed = json.loads(result.stdout)
    assert (result.exit_code, printed["format"]) == (0, "hermes")
    assert printed["text"].encode() == run("render", "-f", "hermes", stdin=data).stdout_bytes


def test_parse_repairs_according_to_the_policy() -> None:
    broken = REPLY.replace('"Oslo"}}', '"Oslo",}}')
    assert "trailing_comma" in run("parse", stdin=broken).stdout
    unrepaired = run("parse", "--repair", "off", stdin=broken)
    assert unrepaired.exit_code == 1 and "trailing_comma" not in unrepaired.stdout


BARE = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'


@pytest.mark.parametrize(
    "text, options, call_count",
    [
        (BARE, [], 1),
        (BARE, ["--rescue", "off"], 0),
        (BARE, ["--finish", "length"], 0),
        (f"So: {BARE} now.", [], 0),
        (f"<think>{REPLY}</think>", [], 1),
        (f"<think>{REPLY}</think>", ["--reasoning-calls", "never"], 0),
        (f"<think>{REPLY}</think>", ["--finish", "content_filter"], 0),
    ],
)
def test_parse_rescues_according_to_the_policy(tools: str, text: str, options: list[str], call_count: int) -> None:
    for stream in ([], ["--stream", "3"]):
        result = run("parse", "--tools", tools, "--json", *options, *stream, stdin=text)
        assert (result.exit_code, len(json.loads(result.stdout)["calls"])) == (0, call_count)


def test_the_top_level_help_lists_the_exit_codes() -> None:
    assert "Exit codes: 0" in run("--help").stdout


def test_render_requires_a_named_format() -> None:
    assert "--format" in failed(run("render", stdin="[]"))
    assert "'auto' is only for parsing" in failed(run("render", "-f", "auto", stdin="[]"))


def test_content_that_a_format_cannot_represent_gives_exit_code_1() -> None:
    parts = [{"type": "reasoning", "text": "hm"}]
    assert "cannot carry" in failed(run("render", "-f", "granite4", stdin=json.dumps(parts)), 1)
    cut = [{"name": "f", "arguments": {}, "complete": False}]
    assert "cut off" in failed(run("render", "-f", "hermes", stdin=json.dumps(cut)), 1)


def test_detect_lists_the_likeliest_format_first(tools: str) -> None:
    result = run("detect", "--tools", tools, stdin=REPLY)
    assert result.exit_code == 0 and result.stdout.splitlines()[0] == "hermes"
    assert json.loads(run("detect", "--json", stdin=REPLY).stdout)[0] == "hermes"


def test_detect_finds_nothing_in_plain_text() -> None:
    assert "plain text" in failed(run("detect", stdin="Hello."), 1)


# -- formats -----------------------------------------------------------------------------------------------------------


def test_formats_lists_every_format() -> None:
    listed = [line.split()[0] for line in run("formats").stdout.splitlines()[1:]]
    assert listed == list(formats.FORMATS)
    assert [entry["name"] for entry in json.loads(run("formats", "--json").stdout)] == listed


@pytest.mark.parametrize("name", formats.FORMATS)
def test_a_format_is_shown_with_a_sample_that_parses(name: str) -> None:
    entry = json.loads(run("formats", name, "--json").stdout)
    assert entry["name"] == name and entry["bodies"]
    assert [call.name for call in parse(entry["sample"], format=name).attempts] == ["get_weather", "get_time"]


def test_an_alias_shows_its_format() -> None:
    result = run("formats", "gpt-oss")
    assert result.exit_code == 0 and result.stdout.startswith("format     harmony")
    assert "<|channel|>" in result.stdout


def test_check_accepts_a_correct_format(format_file: str) -> None:
    result = run("formats", "check", format_file, "--samples", "5")
    assert result.exit_code == 0 and "keeps every law" in result.stdout
    assert json.loads(run("formats", "check", format_file, "--samples", "5", "--json").stdout)["violations"] == []


def test_check_reports_the_violations_of_a_broken_format(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text(MINE.replace('"envelope"', '"envelope", wrap = ["(", " and ", ")"]'))
    result = run("formats", "check", str(path), "--samples", "5")
    assert result.exit_code == 1 and "breaks laws" in result.stdout
    assert json.loads(run("formats", "check", str(path), "--samples", "5", "--json").stdout)["violations"]


def test_check_rejects_a_file_that_is_not_a_format(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(MINE + "[bdoy]\n")
    assert "did you mean 'body'?" in failed(run("formats", "check", str(path)))
    assert "no file" in failed(run("formats", "check"))
    assert "x.toml" in failed(run("formats", "hermes", "x.toml"))


# -- demo, version, help -----------------------------------------------------------------------------------------------


def test_the_demo_fits_one_screen_and_shows_five_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("demo", env={"COLUMNS": "80"})
    assert result.exit_code == 0 and 24 <= len(result.stdout.splitlines()) <= 30
    assert [pair.scene.title in result.stdout for pair in PAIRS] == [True] * 5
    assert [len(pair.scene.play().calls) for pair in PAIRS] == [1, 1, 0, 1, 1]
    data = json.loads(run("demo", "--json").stdout)
    assert [pair["raw"] for pair in data["pairs"]] == [pair.scene.text for pair in PAIRS]


def test_the_figures_of_the_demo_equal_the_measured_ones() -> None:
    measured = json.loads((Path(__file__).parent.parent / "evals" / "ratchet.json").read_text())
    assert measured["damage parsed: equal to the truth"] == [RIGHT, DAMAGED]
    assert measured["damage parsed: passes check, differs"] == [WRONG, DAMAGED]


def test_the_full_demo_numbers_its_scenes() -> None:
    result = run("demo", "--all", "--recorded")
    assert result.exit_code == 0
    assert all(f"{number}. {scene.title[:60]}" in result.stdout for number, scene in enumerate(ALL_SCENES, 1))
    data = json.loads(run("demo", "--all", "--recorded", "--json").stdout)
    assert [scene["number"] for scene in data["scenes"]] == list(range(1, len(ALL_SCENES) + 2))


def test_the_demo_runs_no_unapproved_or_truncated_call() -> None:
    ran = RUN_SCENES[0].play()
    assert [result.kind for result in ran.results] == ["completed", "skipped", "refused"]
    assert ran.results[0].envelope is not None and ran.results[0].envelope.truncated and len(ran.results[0].text) < 400


def test_the_parser_scenes_match_their_titles() -> None:
    close, cut, answer, sibling, python, unknown, *_ = [scene.play() for scene in SCENES]
    assert "</tool_call>" in close.attempts[0].arguments["text"] and close.problems == ()
    assert [call.complete for call in cut.attempts] == [False]
    assert answer.attempts == () and answer.content == SCENES[2].text
    assert [call.complete for call in sibling.attempts] == [False, True]
    assert sibling.content == "First Oslo.\nThen Rome.\nThat is all."
    assert python.attempts[0].arguments == {"degrees": -3, "on": True}
    assert unknown.attempts[0].arguments == {"city": "Oslo"} and unknown.problems[0].code == "unknown_tool"


def test_the_repair_and_rescue_scenes_match_their_titles() -> None:
    typed, nested, unnamed, cut, leaked, example = [scene.play() for scene in SCENES[6:]]
    assert [receipt.rule for receipt in typed.attempts[0].repairs] == ["namespace", "folded_name", "scalar_type"]
    assert nested.attempts[0].arguments["guest"] == {"name": "Ada"} and nested.problems == ()
    assert unnamed.attempts[0].name == "book_room" and unnamed.problems == ()
    assert [call.complete for call in cut.attempts] == [False] and cut.problems[0].code == "truncated"
    assert leaked.attempts[0].arguments == {"city": "Oslo"} and leaked.problems[0].code == "rescued"
    assert example.attempts == () and example.content == SCENES[11].text


def test_the_scenes_of_the_contract_show_the_prompt() -> None:
    ours, theirs = PROMPT_SCENES
    assert "declare function book_room(args: { hotel: string /* required */" in ours.excerpt()
    assert theirs.excerpt().startswith(
        'One call:\n\n<|python_start|>[book_room(hotel="hotel", nights=1)]<|python_end|>'
    )
    shown = run("demo", "--all", "--recorded").stdout
    assert all(scene.excerpt().splitlines()[0] in shown for scene in PROMPT_SCENES)


def test_the_version_is_printed() -> None:
    assert run("--version").stdout == f"rightcall {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0 and "Usage: " in result.stdout


@pytest.mark.parametrize("module", ["rightcall", "rightcall.cli"])
def test_the_command_can_be_run_as_a_module(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"rightcall {__version__}\n"


PIPED = ["formats", "explain", "--help", "demo", "parse --json /dev/null", "formats --json"]


@pytest.mark.parametrize("arguments", selected(PIPED, kept=PIPED[:-1]))
def test_a_closed_pipe_ends_a_command_silently(arguments: str) -> None:
    """The reader closes the pipe before anything is written."""
    command = f"(trap '' PIPE; '{sys.executable}' -m rightcall {arguments}; echo $? >&2) | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.stdout == "" and done.stderr in ("141\n", "0\n"), done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device here that is always full")
@pytest.mark.parametrize("arguments", ["formats", "explain", "--help", "--version", "parse /dev/null"])
def test_a_full_disk_is_a_one_line_error_with_exit_code_1(arguments: str) -> None:
    command = f"'{sys.executable}' -m rightcall {arguments} > /dev/full"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    message = "rightcall: cannot write to standard output: No space left on device; free some space\n"
    assert (done.returncode, done.stderr) == (1, message)
