"""No command overwrites a user's file: every command that writes a file is run against every kind of existing file.

The commands are discovered in the app: a path option that is missing from the tables here fails a test.
"""

import json
import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click.testing
import pytest
import typer

from rightcall.capture.capture_journal import journal_path
from rightcall.cli.app import app
from rightcall.datasets.exporting import export
from rightcall.datasets.releasing import redact_files
from rightcall.errors import NotOurs
from rightcall.serve.bounded_writer import LineSink
from support.captured import rows, write
from support.command import commands, failed, process, run
from support.small_disk import on_small_disk
from support.stub_model import start_server


class Place(NamedTuple):
    """A file that a command writes: `option` names the file, or its folder, where it is called `name`."""

    command: str
    option: str
    name: str
    more: str = ""  # further arguments; {source} and {url} are filled in
    beside: str = ""  # the name that the option gets, if it is not this file
    ends: int = 0  # exit code of the command when the file was written

    def __str__(self) -> str:
        return f"{self.command} {self.option} {self.name}"

    def args(self, at: Path, source: str, url: str) -> list[str]:
        option_path = at.parent if self.option in FOLDERS else at.with_name(self.beside) if self.beside else at
        more = [word.format(source=source, url=url) for word in self.more.split()]
        return [*self.command.split(), *more, self.option, str(option_path)]


APP = typer.main.get_command(app)
FOLDERS = ("--out-dir", "--folder")
_SERVER = "--model m --base-url {url} --mode native"
_CAPTURE = f"{_SERVER} --domains support --max-turns 1 -q"
PLACES = (
    Place("capture", "--output", "c.jsonl", _CAPTURE),
    Place("capture", "--output", "c.jsonl.journal", _CAPTURE, beside="c.jsonl"),
    Place("capture", "--record", "tape.jsonl", _CAPTURE + " -o {source}.rows"),
    Place("chat", "--record", "tape.jsonl", _SERVER + " --tools {source}.tools"),
    Place("parse", "--out", "replies.jsonl", "--rows {source}.replies.jsonl"),
    Place("parse", "--out", "replies.jsonl.part", "--rows {source}.replies.jsonl", beside="replies.jsonl"),
    Place("parse", "--out", "replies.jsonl.part.journal", "--rows {source}.replies.jsonl", beside="replies.jsonl"),
    Place("check", "--out", "checked.jsonl", "--rows {source}.calls.jsonl --tools {source}.tools"),
    Place("repair", "--out", "calls.jsonl", "--rows {source}.calls.jsonl --tools {source}.tools"),
    Place("dataset stats", "--html", "page.html", "{source}"),
    Place("eval", "--out", "evaluated.jsonl", "questions --limit 1 -q -c bare " + _SERVER),
    Place("eval", "--html", "eval.html", "questions --limit 1 -q -c bare " + _SERVER),
    Place("eval", "--record", "tape.jsonl", "questions --limit 1 -q -c bare " + _SERVER),
    Place("doctor", "--html", "doctor.html", "{url} --model m --api chat --max-requests 2", ends=1),
    Place("report", "--html", "report.html", "{source} --rows-as jsonl --jobs 1"),
    Place("dataset prompts", "--output", "prompts.jsonl"),
    Place("dataset label", "--output", "labelled.jsonl", "{source}"),
    Place("dataset dedupe", "--output", "once.jsonl", "{source}"),
    Place("dataset mutate", "--output", "wrong.jsonl", "{source}"),
    Place("dataset redact", "--output", "redacted.jsonl", "{source}"),
    Place("dataset release", "--output", "released.jsonl", "{source}.redacted --by Ann"),
    Place("dataset import", "--output", "imported.jsonl", "{source}.sharegpt"),
    Place("dataset export", "--output", "train.jsonl", "{source} --to trl-kto"),
    Place("dataset export", "--output", "train.jsonl.manifest.json", "{source} --to trl-kto", beside="train.jsonl"),
    Place("dataset export", "--output", "train.parquet", "{source} --to trl-kto"),
    *[
        Place("dataset split", "--out-dir", name, "{source}")
        for name in ("train.jsonl", "validation.jsonl", "split_manifest.json")
    ],
    *[
        Place("dataset assemble", "--out-dir", name, "{source}.verifier {source}")
        for name in ("training.jsonl", "notebook.jsonl", "conflicts.jsonl", "quarantine.jsonl", "dataset_manifest.json")
    ],
    *[
        Place("demo", "--folder", name, "--recorded")
        for name in ("none.jsonl", "grammar.jsonl.journal", "labelled.jsonl", "train.jsonl")
    ],
)
FAST_PLACES = [place for place in PLACES if place.command != "demo"]  # the demo runs for long once it starts

# Options that take a path that is only read, or a folder for tools with their own rules.
READ_OPTIONS = {
    *("--tools", "--format-file", "--terms", "--examples", "--replay", "--workspace", "--local", "--lora", "--system"),
    *("--ca", "--config", "--cwd"),
    *("FILE|-", "FILES", "FILE|NAME", "CASSETTE", "NAME|FILE", "[check] [NAMES|FILES]"),
}
# Logs of a server and the journal of a run are never overwritten: lines are appended, see below.
APPENDING_OPTIONS = {"--log", "--capture", "--record", "--journal"}
FOLDER_ENTRY_OPTIONS = {"--combined-output"}  # a name in a folder that has its own rows above


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = start_server()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write the rows to work on and, beside them, the same rows in the other kinds that commands read."""
    path = tmp_path_factory.mktemp("source") / "rows.jsonl"
    write(path, rows())
    redact_files([path], f"{path}.redacted")
    Path(f"{path}.tools").write_text(json.dumps([{"name": "look", "parameters": {"type": "object"}}]))
    Path(f"{path}.replies.jsonl").write_text('{"id": 1, "text": "Hello."}\n')
    Path(f"{path}.calls.jsonl").write_text('{"id": 1, "name": "look", "arguments": {}}\n')
    for shape in ("verifier", "sharegpt"):
        export([path], f"{path}.{shape}", to=shape)
    return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    user_folder = tmp_path / "theirs"
    user_folder.mkdir()
    return user_folder


def invoke_app(*args: str) -> Any:
    """Like `command.run`, without building the whole app for each call."""
    runner: Any = click.testing.CliRunner()
    return runner.invoke(APP, args, input="Hello\n")


Run = Callable[..., Any]


@pytest.fixture
def run_place(source: str, url: str, folder: Path) -> Run:
    def run_place(place: Place, *more: str) -> Any:
        return invoke_app(*place.args(folder / place.name, source, url), *more)

    return run_place


def listing(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return names, inodes, modes and contents of the folder."""
    return {
        path.name: (path.lstat().st_ino, path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in folder.iterdir()
    }


# -- the tables are complete -------------------------------------------------------------------------------------------


COMMANDS = commands()
_PATHLIKE = re.compile(r"FILE|DIR|FOLDER|PATH|CASSETTE")
_NAMED_SO = re.compile(r"--(?:.*-)?(?:out|output|file|folder|dir|path|record|save|log|html|trace|write|dump|to-file)")


def path_options(command: Any) -> Iterator[str]:
    """Yield the options and arguments that take a path."""
    for each in command.params:
        metavar = each.metavar or ""
        if each.param_type_name == "argument":
            if _PATHLIKE.search(metavar):
                yield metavar
        elif not each.is_flag and (_PATHLIKE.search(metavar) or any(map(_NAMED_SO.fullmatch, each.opts))):
            yield next(name for name in each.opts if name.startswith("--"))


def test_every_path_option_is_in_the_tables() -> None:
    table_options = {(place.command, place.option) for place in PLACES}
    found = {(name, option) for name, command in COMMANDS.items() for option in path_options(command)}
    assert table_options <= found
    rest = {option for _, option in found - table_options}
    assert (
        rest - READ_OPTIONS - FOLDER_ENTRY_OPTIONS - APPENDING_OPTIONS == set()
        and rest >= READ_OPTIONS | FOLDER_ENTRY_OPTIONS | APPENDING_OPTIONS
    )


def test_every_writing_command_has_the_option_force_with_the_same_help() -> None:
    help_texts = {
        name: each.help for name, command in COMMANDS.items() for each in command.params if "--force" in each.opts
    }
    assert set(help_texts) == {place.command for place in PLACES} | {"model pull", "run"}
    assert len(set(help_texts.values())) == 1


@pytest.mark.parametrize("content", [b"Dear diary,\nno line end", b"\0" * 100, b"\x89PNG\r\n\x1a\n"])
def test_lines_are_not_appended_to_a_file_of_another_kind(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(content)
    with pytest.raises(NotOurs):
        LineSink(str(file))
    assert file.read_bytes() == content


def test_the_journal_of_a_run_does_not_replace_another_file(tmp_path: Path, url: str) -> None:
    file = tmp_path / "diary"
    file.write_text("Dear diary,", "utf-8")
    arguments = ["run", "Hi", "--model", "m", "--base-url", url, "--journal", str(file), "--cwd", str(tmp_path)]
    assert run(*arguments).exit_code == 2
    assert file.read_text("utf-8") == "Dear diary,"


# -- existing files ----------------------------------------------------------------------------------------------------

FOREIGN_FILES: dict[str, bytes] = {
    "text": b"Dear diary,\n\ntoday I wrote a thesis.\n",
    "text of one line": b"all on one line " * 300,
    "a picture": b"\x89PNG\r\x1a" + bytes(byte for byte in range(256) if byte != 10) * 20,
    "JSON": b'{"name": "package", "version": 1}',
    "JSON over lines": b'{\n  "schema_version": "mine/v1",\n  "rows": []\n}\n',
    "JSON lines": b'{"messages": [{"role": "user", "content": "Hi"}]}\n{"messages": []}\n',
    "rows of somebody else": b'{"schema_version": "mine/v1"}\n',
    "rows of no more than a word": b'{"schema_version":"rightcall-capt"',
    "UTF-16": "Grüße\n".encode("utf-16"),
    "zeros": b"\0" * 4096,
    "a newline": b"\n",
    "a page": b"<!doctype html>\n<title>Mine</title>\n",
    "Parquet": b"PAR1" + b"rightcall" * 9 + (9).to_bytes(4, "little") + b"PAR1",
    "a cassette of a later version": b'{"rightcall_cassette": 2}\n{}\n',
}


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_file_of_another_kind_is_rejected_and_unchanged(place: Place, folder: Path, run_place: Run) -> None:
    for content in FOREIGN_FILES.values():
        (folder / place.name).write_bytes(content)
        before = listing(folder)
        line = failed(run_place(place))
        assert str(folder / place.name) in line and "it looks like" in line and "--force" in line
        assert listing(folder) == before


@pytest.mark.parametrize("place", PLACES[:3], ids=str)
def test_a_resumed_capture_does_not_change_a_foreign_file(place: Place, folder: Path, run_place: Run) -> None:
    for content in FOREIGN_FILES.values():
        (folder / place.name).write_bytes(content)
        before = listing(folder)
        assert "it looks like" in failed(run_place(place, "--resume"))
        assert listing(folder) == before


@pytest.mark.parametrize("place", FAST_PLACES, ids=str)
def test_force_replaces_a_foreign_file_and_the_next_run_needs_no_force(
    place: Place, folder: Path, run_place: Run
) -> None:
    foreign = FOREIGN_FILES["text of one line"]
    (folder / place.name).write_bytes(foreign)
    forced = run_place(place, "--force")
    assert forced.exit_code == place.ends, forced.stderr
    path = folder / place.name  # or the option named another file, which is complete now
    assert not path.exists() or b"all on one line" not in path.read_bytes()
    again = run_place(place)
    assert again.exit_code == place.ends, again.stderr
    assert not [name for name in os.listdir(folder) if name.endswith(".rightcall")]


@pytest.mark.parametrize("place", FAST_PLACES, ids=str)
def test_an_empty_file_is_overwritten_and_a_missing_one_created(place: Place, folder: Path, run_place: Run) -> None:
    (folder / place.name).touch()
    for _ in range(2):
        done = run_place(place)
        assert done.exit_code == place.ends, done.stderr
        for path in folder.iterdir():
            path.unlink()


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("kind", ["folder", "link", "dangling link", "link to our own", "pipe", "read-only"])
def test_a_path_that_is_not_a_regular_file_is_rejected_even_with_force(
    kind: str, place: Place, tmp_path: Path, folder: Path, run_place: Run
) -> None:
    at, target = folder / place.name, tmp_path / "mine"
    target.write_bytes(b"" if kind == "link to our own" else b"mine")
    if kind == "folder":
        at.mkdir()
    elif kind == "pipe":
        os.mkfifo(at)
    elif kind == "read-only":
        at.touch(0o444)
    else:
        at.symlink_to(tmp_path / "none" if kind == "dangling link" else target)
    before = listing(folder)
    for more in ((), ("--force",)):
        line = failed(run_place(place, *more))
        assert str(at) in line and re.search("name (a|another|the) ", line)
    assert listing(folder) == before and target.read_bytes() in (b"", b"mine")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("place", [each for each in FAST_PLACES if each.name.startswith(("c.", "tape"))], ids=str)
@pytest.mark.parametrize("at", [1, 20, -1])
def test_only_an_incomplete_line_is_removed(place: Place, at: int, folder: Path, run_place: Run) -> None:
    """A capture removes it on --resume; a cassette and a journal, which would be unreadable, always."""
    assert run_place(place).exit_code == 0
    path = folder / place.name
    whole = path.read_bytes()
    path.write_bytes(whole + whole.splitlines(keepends=True)[-1][:at])
    done = run_place(place, *(["--resume"] if place.command == "capture" else []))
    assert done.exit_code == 0, done.stderr
    assert path.read_bytes().startswith(whole) and path.read_bytes().endswith(b"\n")
    assert all(isinstance(json.loads(line), dict) for line in path.read_bytes().splitlines())


@pytest.mark.parametrize("place", PLACES[:1] + PLACES[2:4], ids=str)
def test_a_first_line_cut_at_any_byte_is_recognized(place: Place, folder: Path, run_place: Run) -> None:
    assert run_place(place).exit_code == 0
    path = folder / place.name
    first = path.read_bytes().partition(b"\n")[0]
    resume = ["--resume"] if place.command == "capture" else []
    for end in (*range(1, 60, 7), len(first) - 1):
        path.write_bytes(first[:end])
        done = run_place(place, *resume)
        assert done.exit_code == 0, done.stderr


def test_derived_rows_do_not_replace_a_capture_with_its_journal(folder: Path, run_place: Run, source: str) -> None:
    assert run_place(PLACES[0]).exit_code == 0
    capture = folder / "c.jsonl"
    before = capture.read_bytes()
    for command in (["label", source], ["split", source, "--out-dir"]):
        capture.rename(capture.with_name("train.jsonl")) if command[0] == "split" else None
        at = [str(folder)] if command[0] == "split" else ["--output", str(capture)]
        if command[0] == "split":
            journal_path(capture).rename(folder / "train.jsonl.journal")
        assert "rightcall-capture/v1" in failed(run("dataset", *command, *at))
    assert (folder / "train.jsonl").read_bytes() == before


def test_recording_to_the_output_file_is_a_usage_error(folder: Path, url: str) -> None:
    args = ["capture", *_CAPTURE.format(url=url).split(), "-o", str(folder / "c.jsonl"), "--record"]
    for name in ("c.jsonl", "c.jsonl.journal"):
        assert "name another file" in failed(run(*args, str(folder / name), "--force"))
    assert list(folder.iterdir()) == []


# -- modes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["labelled.jsonl", "redacted.jsonl", "prompts.jsonl"])
def test_the_mode_of_an_existing_file_is_kept_and_a_new_file_is_private(
    name: str, folder: Path, run_place: Run
) -> None:
    place = next(each for each in PLACES if each.name == name)
    at = folder / name
    assert run_place(place).exit_code == 0 and stat.S_IMODE(at.stat().st_mode) == 0o600
    at.chmod(0o640)
    assert run_place(place).exit_code == 0 and stat.S_IMODE(at.stat().st_mode) == 0o640


def test_a_private_export_is_private_even_if_the_replaced_file_was_not(folder: Path, run_place: Run) -> None:
    place = next(each for each in PLACES if each.name == "train.jsonl")
    assert run_place(place).exit_code == 0
    (folder / place.name).chmod(0o644)
    assert run_place(place).exit_code == 0 and stat.S_IMODE((folder / place.name).stat().st_mode) == 0o600


# -- streams -----------------------------------------------------------------------------------------------------------


def test_rows_can_be_written_to_standard_output_without_other_output(source: str) -> None:
    done = process("dataset", "label", source, "-o", "/dev/stdout")
    assert done.returncode == 0, done.stderr
    assert len([json.loads(line)["label"] for line in done.stdout.splitlines() if b'"label"' in line]) == len(rows())
    assert b"/dev/stdout" in done.stderr and len(done.stdout.splitlines()) == len(rows())


def test_standard_output_that_is_a_file_is_appended_to(source: str, tmp_path: Path) -> None:
    args = [sys.executable, "-m", "rightcall", "dataset", "export", source, "--to", "trl-kto", "-o", "/dev/fd/1"]
    with (tmp_path / "all.jsonl").open("wb", buffering=0) as file:
        file.write(b"first\n")
        assert subprocess.run(args, stdout=file, timeout=60).returncode == 0
    text = (tmp_path / "all.jsonl").read_bytes()
    assert text.startswith(b'first\n{"prompt"') and not list(tmp_path.glob("*.manifest.json"))


@pytest.mark.parametrize("place", [each for each in FAST_PLACES if each.option in ("--output", "--record")], ids=str)
def test_writing_to_dev_null_does_not_change_dev_null(place: Place, source: str, url: str) -> None:
    before = os.stat("/dev/null")
    args = place._replace(beside="").args(Path("/dev/null"), source, url)
    done = invoke_app(*args)
    assert done.exit_code == 0, done.stderr
    after = os.stat("/dev/null")
    assert (after.st_mode, after.st_ino, after.st_rdev) == (before.st_mode, before.st_ino, before.st_rdev)
    assert not [name for name in os.listdir("/dev") if name.startswith(("null.", "."))]


def test_a_full_device_is_a_clear_error(source: str, url: str) -> None:
    for place in [each for each in FAST_PLACES if each.option in ("--output", "--record") and not each.beside]:
        done = invoke_app(*place.args(Path("/dev/full"), source, url))
        assert done.exit_code == 1 and "cannot write /dev/full: No space left on device" in done.stderr


# -- kills and full disks ----------------------------------------------------------------------------------------------


def test_after_a_kill_or_a_full_disk_every_file_is_old_or_new_and_can_be_completed() -> None:
    """Real processes are killed at the steps of a write.

    RIGHTCALL_KILL_SECONDS, set by `make killtest`, means every step. The disk is really full, too, where the kernel
    allows a small one.
    """
    stride = "1" if "RIGHTCALL_KILL_SECONDS" in os.environ else "8"
    room = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a RAM disk is faster
    with tempfile.TemporaryDirectory(dir=room) as scratch:
        disk = on_small_disk(Path(scratch))
        command = [*disk, sys.executable, str(Path(__file__).parent / "support" / "starved.py"), scratch, stride]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    jobs = "parts capture eval record import label assemble split export parquet"
    assert {each["job"] for each in outcomes} == set(jobs.split())
    assert [each for each in outcomes if each["wrong"] or each["tries"] < 8 or each["filled"] != bool(disk)] == []
