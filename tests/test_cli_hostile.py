"""Text from outside can neither control the terminal nor be invisible, from any kind of input."""

import json
import unicodedata
from pathlib import Path

import pytest

from rightcall.cli.layout import format_json
from rightcall.safe_text import brief, visible
from support.command import MINE, REPLY, failed, process, run

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07\x9b31m\x7f\x00\r\b[red]not red[/red][link=http://evil]x[/link]:skull:"
    "\u202e\u202a\u2066\u2069\u200e\u200f\u061c\u200b\u200d\u2060\ufeff\u00ad\u2028\u3164\ufe0f\U000e0041"
)


def unseen(text: str) -> list[str]:
    """Return the characters of an output that control the terminal or are invisible."""
    return sorted(
        {repr(char) for char in text if char != "\n" and (unicodedata.category(char)[0] in "CZ" and char != " ")}
    )


def hostile_reply() -> str:
    return f"{HOSTILE}\n" + REPLY.replace("Oslo", json.dumps(HOSTILE)[1:-1]).replace("On it.", HOSTILE)


@pytest.mark.parametrize(
    "flags", [[], ["--explain"], ["--json"], ["--json", "--explain"], ["--explain", "--stream", "1"]]
)
def test_control_and_invisible_characters_of_a_reply_are_escaped(flags: list[str]) -> None:
    done = run("parse", "-f", "hermes", *flags, stdin=hostile_reply().encode())
    assert unseen(done.stdout) == []
    assert "[red]not red[/red]" in done.stdout and ":skull:" in done.stdout


def test_escape_sequences_of_the_text_are_escaped_beside_colours() -> None:
    done = process("parse", "-f", "hermes", "--explain", stdin=hostile_reply().encode(), FORCE_COLOR="1", NO_COLOR="")
    assert b"\x1b[2J" not in done.stdout and b"\x1b]" not in done.stdout and b"\\x1b[2J" in done.stdout
    assert b"[red]not red[/red]" in done.stdout


def test_control_characters_in_names_problems_and_raw_text_are_escaped(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text('[{"name": "f"}]')
    named = f'<tool_call>{{"name": {json.dumps(HOSTILE)}, "arguments": {{"\u202e": 1}}}}</tool_call>'
    for text in (named, named[:-20], f'<tool_call>{{"name": "{HOSTILE}'):
        done = run("parse", "-f", "hermes", "--explain", "--tools", str(tools), stdin=text.encode())
        assert unseen(done.stdout + done.stderr) == []


def test_control_characters_in_arguments_and_files_of_the_user_are_escaped(tmp_path: Path) -> None:
    for args in (["parse", "-f", HOSTILE.replace("\0", "")], ["parse", "\x1b[2J\u202e"], ["formats", "\x1b[2J"]):
        assert unseen(failed(run(*args))) == []
    path = tmp_path / "bad.toml"
    path.write_text('"\\u001b[2J\\u202e" = 1')
    assert unseen(failed(run("formats", "check", str(path)))) == []


def test_violations_of_a_hostile_format_file_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    wrap = 'wrap = ["\\u001b[2J", "\\u202e", ""]'
    path.write_text(MINE.replace('"envelope"', f'"envelope", {wrap}').replace("<c>", "<[red]\\u202e>"))
    result = run("formats", "check", str(path), "--samples", "5")
    assert result.exit_code == 1 and unseen(result.stdout) == []


def test_rendered_text_is_not_escaped_in_a_pipe() -> None:
    calls = [{"name": "f", "arguments": {"x": "\u202e\x7f"}}]
    done = process("render", "-f", "hermes", stdin=json.dumps(calls).encode())
    assert "\u202e\x7f" in done.stdout.decode()


def test_a_lone_surrogate_causes_no_traceback() -> None:
    text = REPLY.replace("Oslo", "\\ud800")
    for flags in ([], ["--json"], ["--explain"]):
        parsed = run("parse", "-f", "hermes", *flags, stdin=text.encode())
        assert isinstance(parsed.exception, SystemExit | None) and "\\ud800" in parsed.stdout
    text_part = json.dumps([{"type": "text", "text": "\ud800"}]).encode()
    done = process("render", "-f", "hermes", stdin=text_part)
    assert done.returncode == 1 and b"surrogate" in done.stderr


def test_characters_outside_the_terminal_encoding_are_escaped() -> None:
    done = process("parse", "-f", "hermes", stdin="日本".encode(), PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and b"\\u65e5\\u672c" in done.stdout


@pytest.mark.parametrize("char", HOSTILE[HOSTILE.index("\u202e") :] + "\x00\x1b\x7f\x85\x9b\ud800\ue000\u00a0\u2800")
def test_every_invisible_character_is_escaped(char: str) -> None:
    shown = visible(f"a{char}b")
    assert shown.isascii() and shown.startswith("a\\") and shown.endswith("b")


def test_line_breaks_and_tabs_are_escaped_only_in_one_line_mode() -> None:
    assert visible("a\n\tb\r") == "a\n\tb\\r"
    assert visible("a\n\tb\r", one_line=True) == "a\\n\\tb\\r"


def test_printable_text_is_unchanged() -> None:
    text = "Größe, 日本語, Ελλάδα, 🙂, ▁, ｜, a\\b [x] {y}"
    assert visible(text) == text


def test_long_text_is_truncated_with_the_number_of_omitted_characters() -> None:
    assert brief("x" * 200, 10) == "x" * 10 + " … (190 more)"


def test_json_output_is_ascii_and_has_no_infinity() -> None:
    printed = format_json({"a": "\x7f\u202e🙂", "b": [float("inf"), 1.5]})
    assert printed.isascii() and "\x7f" not in printed
    assert json.loads(printed) == {"a": "\x7f\u202e🙂", "b": [None, 1.5]}
