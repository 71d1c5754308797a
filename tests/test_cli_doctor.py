"""`rightcall doctor` as a command: table, JSON, page, exit codes, and layout from 60 columns up."""

import json
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from rightcall.cli.doctor_command import show_diagnosis
from rightcall.cli.layout import Page
from support.command import failed, run
from support.scripted_server import scripted
from support.webpages import HOSTILE, example_diagnosis
from test_doctor import leaks

CHAT = ("--model", "m", "--api", "chat")


def test_the_table_the_class_the_evidence_and_the_cure_are_shown(tmp_path: Path) -> None:
    page_path = tmp_path / "page.html"
    with scripted(lambda path, body: leaks(body)) as (url, _):
        result = run("doctor", url, *CHAT, "--html", str(page_path))
    assert result.exit_code == 1 and result.stderr == ""
    lines = result.stdout.splitlines()
    assert [line.split() for line in lines if line.startswith("a plain call")] == [
        ["a", "plain", "call", "FAULT", "FAULT", "call_as_text"]
    ]
    assert "call_as_text: The call comes back as text" in lines
    assert any(line.startswith("  200 ") and "<tool_call>" in line for line in lines)
    assert lines[-1] == f"cure       rightcall serve --upstream {url}"
    assert "The call comes back as text" in page_path.read_text()


def test_json_output_contains_the_whole_diagnosis(tmp_path: Path) -> None:
    with scripted(lambda path, body: leaks(body)) as (url, _):
        result = run("doctor", url, *CHAT, "--json", "--through", "--max-requests", "80")
    diagnosed = json.loads(result.stdout)
    assert result.exit_code == 1 and diagnosed["classes"][0] == "call_as_text"
    plain = [each for each in diagnosed["results"] if each["probe"] == "plain_call"]
    assert [(each["way"], each["verdict"], each["cure"]) for each in plain] == [
        (way, "fault", f"rightcall serve --upstream {url}") for way in ("whole", "streamed")
    ]
    assert {each["verdict"] for each in diagnosed["through"]["results"] if each["probe"] == "plain_call"} == {"ok"}


def test_an_unreachable_server_gives_exit_code_1() -> None:
    result = run("doctor", "http://127.0.0.1:9", "-m", "m")
    assert result.exit_code == 1 and "no dialect that was tried" in result.stdout


@pytest.mark.parametrize(
    "args, message",
    [
        (("http://user:pw@h/v1",), "holds credentials"),
        (("nonsense",), "is not a base URL"),
        (("http://127.0.0.1:9", "--api-key-env", "NO_SUCH_VARIABLE_HERE"), "the environment has no"),
    ],
)
def test_a_usage_error_is_one_line_with_exit_code_2(args: tuple[str, ...], message: str) -> None:
    assert message in failed(run("doctor", *args))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("through", [False, True])
def test_a_diagnosis_with_hostile_text_fits_the_screen(width: int, through: bool) -> None:
    found = example_diagnosis(HOSTILE)
    out = Page(width)
    show_diagnosis(out, found if through else msgspec.structs.replace(found, through=None))
    assert max(map(cell_len, out.text.splitlines())) <= width
    assert "\x00" not in out.text and "\u202e" not in out.text and "\\u202e" in out.text


def test_only_pages_of_the_doctor_are_overwritten(tmp_path: Path) -> None:
    other = tmp_path / "notes.html"
    other.write_text("<p>mine</p>")
    result = run("doctor", "http://127.0.0.1:9", "--html", str(other))
    assert result.exit_code == 2 and other.read_text() == "<p>mine</p>"
