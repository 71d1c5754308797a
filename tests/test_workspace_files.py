"""The four file tools: what they return, and that no path leads out of the root."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rightcall.errors import CallerError, ToolError
from rightcall.workspace import BASH, EDIT_FILE, LIST_DIR, READ_FILE, WRITE_FILE, Workspace, all_tools, file_tools
from rightcall.workspace.root import Root

SECRET = "the secret"


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    """Create a workspace with a file outside it that no tool may read or change."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET)
    root = tmp_path / "root"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    (root / "sub" / "b.txt").write_text("b")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "link.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (root / "sub" / "up").symlink_to("../..")
    (root / "loop").symlink_to("loop")
    return Workspace(root, sandbox="off")


# -- the definitions ---------------------------------------------------------------------------------------------------


def test_there_are_five_tools_in_this_order() -> None:
    assert [tool.name for tool in all_tools()] == [READ_FILE, WRITE_FILE, EDIT_FILE, LIST_DIR, BASH]


def test_every_schema_is_a_closed_object_with_properties_and_required() -> None:
    for tool in all_tools():
        assert tool.parameters["type"] == "object" and tool.parameters["additionalProperties"] is False
        assert set(tool.parameters["required"]) <= set(tool.parameters["properties"]) and tool.description


def test_only_the_reading_tools_are_read_only() -> None:
    assert [tool.name for tool in all_tools() if tool.read_only] == [READ_FILE, LIST_DIR]


# -- paths out of the root ---------------------------------------------------------------------------------------------

UPS = ["..", "../", "sub/../..", "./..", "sub/deep/../../..", ".//..", "sub/./../../", "a.txt/../.."]
TAILS = [
    "/outside/secret.txt",
    "/outside/new.txt",
    "/outside",
    "/outside/../outside/secret.txt",
    "",
    "//outside//secret.txt",
]
LINKS = ["link/secret.txt", "link.txt", "sub/up/outside/secret.txt", "link", "loop", "loop/x", "link/../a.txt/x"]
ABSOLUTE_PATHS = [
    "/etc/passwd",
    "/",
    "/proc/self/environ",
    "/dev/null",
    "//etc/passwd",
    "/../etc/passwd",
    "~/x",
    "$HOME/x",
    "~",
]
INVALID_PATHS = ["a\0b", "/outside/secret.txt\0", "x" * 5000, "..\0/outside", "link/\udcff"]


def escaping_paths(outside: Path) -> list[str]:
    paths = [up + tail for up in UPS for tail in TAILS] + LINKS + ABSOLUTE_PATHS + INVALID_PATHS
    paths += [f"{outside}/secret.txt", f"{outside}", f"{outside}/../outside/secret.txt"]
    paths += [
        f"{outside.parent}/root/../outside/secret.txt",
        f"{outside.parent}/rootless",
        f"{outside.parent}/root.txt",
    ]
    return paths


def test_no_path_leads_out_of_the_root(space: Workspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    attempts: list[Callable[[str], str]] = [
        space.read_file,
        lambda path: space.write_file(path, "owned"),
        lambda path: space.edit_file(path, SECRET, "owned"),
        space.list_dir,
    ]
    attempt_count = 0
    for path in escaping_paths(outside):
        for attempt in attempts:
            attempt_count += 1
            try:
                output = attempt(path)
            except ToolError:
                continue
            assert SECRET not in output and "secret.txt" not in output, path
    assert attempt_count >= 200
    assert sorted(os.listdir(outside)) == ["secret.txt"] and (outside / "secret.txt").read_text() == SECRET
    assert sorted(os.listdir(tmp_path)) == ["outside", "root"]


def test_a_sibling_folder_with_the_same_name_prefix_is_outside(space: Workspace, tmp_path: Path) -> None:
    for path in (f"{tmp_path}/rootless", f"{tmp_path}/rootless/new.txt", f"{tmp_path}/root.txt"):
        with pytest.raises(ToolError, match="outside the workspace"):
            space.write_file(path, "owned")


path_parts = st.sampled_from(
    ["..", ".", "sub", "deep", "link", "up", "link.txt", "outside", "root", "secret.txt", "a.txt", "", "~"]
)


@given(st.lists(path_parts, min_size=1, max_size=8), st.booleans())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_combination_of_path_parts_leads_out_of_the_root(space: Workspace, parts: list[str], absolute: bool) -> None:
    path = "/".join(parts)
    for candidate in (path, f"{space.root.path}/{path}" if absolute else path):
        with contextlib.suppress(ToolError):
            assert SECRET not in space.read_file(candidate)
        with contextlib.suppress(ToolError):
            assert "secret.txt" not in space.list_dir(candidate)


def test_a_folder_concurrently_replaced_by_a_link_does_not_lead_out(space: Workspace, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "swap").mkdir()
    (root / "swap" / "secret.txt").write_text("mine")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            try:
                os.rename(root / "swap", root / "kept")
                os.symlink(outside, root / "swap")
                os.unlink(root / "swap")
                os.rename(root / "kept", root / "swap")
            except OSError:  # the writer has created the folder again in the meantime
                shutil.rmtree(root / "swap", ignore_errors=True)
                with contextlib.suppress(OSError):
                    os.unlink(root / "swap")
                with contextlib.suppress(OSError):
                    os.rename(root / "kept", root / "swap")

    thread = threading.Thread(target=swap)
    thread.start()
    contents = set()
    try:
        for _ in range(400):
            try:
                contents.add(space.read_file("swap/secret.txt"))
                space.write_file("swap/secret.txt", "mine")
            except ToolError:
                pass
    finally:
        stop.set()
        thread.join()
    assert contents <= {"mine"} and (outside / "secret.txt").read_text() == SECRET


def test_only_regular_files_are_opened(space: Workspace, tmp_path: Path) -> None:
    root = tmp_path / "root"
    os.mkfifo(root / "pipe")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(root / "sock"))
    for name, message in (("pipe", "pipe"), ("sock", "regular"), ("sub", "folder")):
        with pytest.raises(ToolError, match=message):
            space.read_file(name)
        with pytest.raises(ToolError, match="regular file"):
            space.write_file(name, "x")
    server.close()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc here")
def test_the_root_folder_as_workspace_excludes_special_file_systems() -> None:
    everything = Workspace("/", sandbox="off")
    for path in ("/proc/self/environ", "/sys/kernel/uevent_seqnum", "/dev/null", "proc/1/mem", "/proc/self/fd/0"):
        with pytest.raises(ToolError):
            everything.read_file(path)
    with pytest.raises(ToolError):
        everything.write_file("/proc/self/comm", "x")
    for folder in ("/sys/fs/cgroup", "/dev/shm", "/dev/pts"):  # mounted file systems below the root
        if not os.path.isdir(folder):
            continue
        with pytest.raises(ToolError, match="not of the workspace"):
            everything.list_dir(folder)


def test_a_root_that_is_not_a_folder_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="not a folder"):
        Workspace(tmp_path / "nope")


def test_a_root_given_by_a_link_accepts_both_paths(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("x")
    (tmp_path / "alias").symlink_to(tmp_path / "real")
    space = Workspace(tmp_path / "alias", sandbox="off")
    for path in ("a.txt", f"{tmp_path}/real/a.txt", f"{tmp_path}/alias/a.txt", "./a.txt", "x/../a.txt"):
        assert space.read_file(path) == "x"


def test_home_is_expanded_only_at_the_start_of_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.txt").write_text("x")
    space = Workspace(tmp_path, sandbox="off")
    assert {space.read_file(path) for path in ("~/a.txt", "$HOME/a.txt")} == {"x"}
    for path in ("~root/a.txt", "$HOMEX/a.txt", "x/~/a.txt", "${HOME}/a.txt"):
        with pytest.raises(ToolError):
            space.read_file(path)


# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, text",
    [
        ({}, "one\ntwo\nthree\n"),
        ({"line": 2}, "two\nthree\n"),
        ({"line": 2, "limit": 1}, "two\n[lines 2 to 2; the file continues: read it with line=3]"),
        ({"line": 3, "limit": 5}, "three\n"),
    ],
)
def test_read_file_returns_the_requested_lines(space: Workspace, options: dict[str, int], text: str) -> None:
    assert space.read_file("a.txt", **options) == text


def test_a_line_after_the_end_is_an_error_that_gives_the_line_count(space: Workspace) -> None:
    with pytest.raises(ToolError, match="3 lines"):
        space.read_file("a.txt", line=4)


@given(
    st.lists(
        st.text(st.characters(blacklist_characters="\r\n\0", blacklist_categories=["Cs"]), max_size=20), max_size=60
    )
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_parts_of_a_file_join_to_the_whole(space: Workspace, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    space.write_file("made.txt", text)
    assert space.read_file("made.txt") == text
    read, line = "", 1
    while line <= len(lines):
        piece = space.read_file("made.txt", line=line, limit=7)
        read += piece.rpartition("[lines ")[0] if piece.endswith(f"line={line + 7}]") else piece
        line += 7
    assert read == text


def test_a_long_file_is_read_in_parts_with_the_next_line_number(space: Workspace) -> None:
    space.write_file("long.txt", "".join(f"{n}\n" for n in range(1, 5001)))
    first = space.read_file("long.txt")
    assert first.endswith("[lines 1 to 2000; the file continues: read it with line=2001]")
    assert space.read_file("long.txt", line=2001).startswith("2001\n")
    space.write_file("wide.txt", ("x" * 1000 + "\n") * 1000)
    assert len(space.read_file("wide.txt")) <= file_tools.MOST_BYTES + 200


def test_an_overlong_line_is_truncated_and_marked(space: Workspace) -> None:
    space.write_file("one.txt", "é" * 400_000)
    text = space.read_file("one.txt")
    assert len(text.encode()) < file_tools.MOST_BYTES + 200 and "longer than" in text


@pytest.mark.parametrize("data, message", [(b"a\0b", "binary"), (b"\xff\xfeab", "UTF-8"), (b"\x89PNG\r\n\0", "binary")])
def test_binary_files_are_recognized(space: Workspace, tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "root" / "x.bin").write_bytes(data)
    with pytest.raises(ToolError, match=message):
        space.read_file("x.bin")
    with pytest.raises(ToolError, match=message):
        space.edit_file("x.bin", "a", "b")


def test_a_missing_path_is_an_error(space: Workspace) -> None:
    with pytest.raises(ToolError, match=r"nope\.txt.*does not exist"):
        space.read_file("nope.txt")
    with pytest.raises(ToolError, match="does not exist"):
        space.list_dir("nope")


# -- writing -----------------------------------------------------------------------------------------------------------


def test_writing_creates_the_file_and_its_parent_folders(space: Workspace, tmp_path: Path) -> None:
    assert space.write_file("new/deep/c.txt", "né\n") == "wrote new/deep/c.txt (4 bytes)"
    assert (tmp_path / "root" / "new" / "deep" / "c.txt").read_text("utf-8") == "né\n"


def test_writing_keeps_the_mode_bits(space: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "root" / "run.sh"
    file.write_text("x")
    file.chmod(0o751)
    space.write_file("run.sh", "y")
    space.edit_file("run.sh", "y", "z")
    assert stat.S_IMODE(file.stat().st_mode) == 0o751 and file.read_text() == "z"


def test_a_read_only_file_is_not_replaced(space: Workspace, tmp_path: Path) -> None:
    file = tmp_path / "root" / "a.txt"
    file.chmod(0o444)
    with pytest.raises(ToolError, match="read-only"):
        space.write_file("a.txt", "x")
    with pytest.raises(ToolError, match="read-only"):
        space.edit_file("a.txt", "two", "2")
    assert file.read_text() == "one\ntwo\nthree\n"


def test_a_private_file_is_never_written_with_a_wider_mode(
    space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "root" / "a.txt"
    file.chmod(0o600)
    modes: list[int] = []

    def write_and_record_mode(handle: int, data: memoryview) -> int:
        modes.append(stat.S_IMODE(os.fstat(handle).st_mode))
        return original_write(handle, data)

    original_write = os.write
    monkeypatch.setattr(os, "write", write_and_record_mode)
    space.write_file("a.txt", "a secret")
    monkeypatch.undo()
    assert modes == [0o600] and stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("path", ["a\ud800", "n" * 300, "sub/" + "n" * 300, "d" * 300 + "/x"])
def test_an_impossible_path_is_a_tool_error(space: Workspace, path: str) -> None:
    for use in (space.read_file, space.list_dir, lambda path: space.write_file(path, "x")):
        with pytest.raises(ToolError):
            use(path)


def test_a_missing_root_is_a_tool_error(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    space = Workspace(tmp_path / "root", sandbox="off")
    (tmp_path / "root").rmdir()
    with pytest.raises(ToolError, match="does not exist"):
        space.read_file("a.txt")


def test_a_hard_link_to_an_outside_file_is_replaced(space: Workspace, tmp_path: Path) -> None:
    os.link(tmp_path / "outside" / "secret.txt", tmp_path / "root" / "hard.txt")
    space.write_file("hard.txt", "mine")
    assert (tmp_path / "outside" / "secret.txt").read_text() == SECRET


def test_a_failed_write_leaves_no_temporary_file(space: Workspace, tmp_path: Path) -> None:
    before = sorted(os.listdir(tmp_path / "root"))
    with pytest.raises(ToolError, match="surrogate"):
        space.write_file("a.txt", "\ud800")
    for path in ("sub", "", ".", "new/", "link.txt"):
        with pytest.raises(ToolError):
            space.write_file(path, "x")
    assert sorted(os.listdir(tmp_path / "root")) == before


WRITER = """
import sys
from rightcall.workspace import Workspace
space = Workspace(sys.argv[1], sandbox="off")
print("ready", flush=True)
while True:
    for letter in "ab":
        space.write_file("f.txt", letter * 3_000_000)
"""


def test_a_file_is_complete_after_its_writer_is_killed(tmp_path: Path) -> None:
    space = Workspace(tmp_path, sandbox="off")
    space.write_file("f.txt", "a" * 3_000_000)
    for round in range(6):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None and writer.stdout.readline()
        time.sleep(0.005 * (round + 1))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        data = (tmp_path / "f.txt").read_text()
        assert len(data) == 3_000_000 and set(data) in ({"a"}, {"b"})


# -- editing -----------------------------------------------------------------------------------------------------------


def test_an_edit_replaces_one_exact_match(space: Workspace) -> None:
    assert space.edit_file("a.txt", "two\n", "2\n") == "edited a.txt (line 2)"
    assert space.read_file("a.txt") == "one\n2\nthree\n"


def test_concurrent_edits_are_all_applied(space: Workspace) -> None:
    space.write_file("many.txt", "".join([f"<{at}>\n" for at in range(40)]))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: space.edit_file("many.txt", f"<{at}>", f"[{at}]"), range(40)))
    assert space.read_file("many.txt") == "".join([f"[{at}]\n" for at in range(40)])


def test_an_edit_does_not_overwrite_a_concurrent_change(
    space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "root" / "a.txt"
    existing = Root.existing

    def write_before_existing(self: Root, name: str, folder: int, parts: list[str]) -> os.stat_result | None:
        file.write_text("somebody else's text, and longer")
        return existing(self, name, folder, parts)

    monkeypatch.setattr(Root, "existing", write_before_existing)
    with pytest.raises(ToolError, match="changed by another program"):
        space.edit_file("a.txt", "two", "2")
    assert file.read_text().startswith("somebody")


def test_an_edit_of_text_that_occurs_twice_is_an_error_with_the_lines(space: Workspace) -> None:
    space.write_file("c.txt", "x = 1\ny = 2\nx = 1\n")
    with pytest.raises(ToolError, match=r"2 times .*lines 1, 3"):
        space.edit_file("c.txt", "x = 1", "x = 2")


@pytest.mark.parametrize(
    "old, shown",
    [
        ("def f(a):\n  return a", "white space, from line 1 on:\ndef f(a):\n    return a"),
        ("def f(b):\n    return a", "most similar text is at line 1:\ndef f(a):"),
        ("zzzzzz", "no line is similar"),
        ("", "empty"),
    ],
)
def test_an_edit_without_a_match_shows_the_nearest_text(space: Workspace, old: str, shown: str) -> None:
    space.write_file("f.py", "def f(a):\n    return a\n")
    with pytest.raises(ToolError) as error:
        space.edit_file("f.py", old, "x")
    assert shown in str(error.value)


def test_windows_line_endings_are_kept(space: Workspace) -> None:
    space.write_file("w.txt", "a\r\nb\r\nc\r\n")
    space.edit_file("w.txt", "a\nb", "1\n2")
    assert space.read_file("w.txt") == "1\r\n2\r\nc\r\n"
    space.edit_file("w.txt", "2\nc", "3\r\n4\n5")
    assert space.read_file("w.txt") == "1\r\n3\r\n4\r\n5\r\n"


def test_an_edit_without_a_match_in_a_large_file_ends_in_time(space: Workspace) -> None:
    space.write_file("big.txt", "some line of text that looks like many others\n" * 100_000)
    start = time.process_time()
    with pytest.raises(ToolError, match="not found"):
        space.edit_file("big.txt", "another line\n" * 1000, "x")
    assert time.process_time() - start < 20


def test_the_work_of_every_tool_is_bounded(space: Workspace) -> None:
    """A thread cannot be stopped, so its work is bounded instead."""
    with (Path(space.root.path) / "sparse.txt").open("wb") as file:
        file.write(b"text line\n" * 1000)
        file.truncate(200 * 2**30)
    letters = list("aab" * 66)
    dice = random.Random(1)
    lines = []
    for _ in range(4000):
        dice.shuffle(letters)
        lines.append("".join(letters))
    space.write_file("alike.txt", "\n".join(lines))
    start = time.process_time()
    with pytest.raises(ToolError, match="only the first"):
        space.read_file("sparse.txt", line=2000)
    with pytest.raises(ToolError, match="not found"):
        space.edit_file("alike.txt", "aab" * 66, "y")
    assert time.process_time() - start < 5


# -- listing -----------------------------------------------------------------------------------------------------------


def test_a_folder_is_listed_with_kinds(space: Workspace) -> None:
    assert space.list_dir(".") == "d sub\nf a.txt\nl link\nl link.txt\nl loop"
    assert space.list_dir("sub/deep") == "[the folder is empty]"


def test_a_name_with_a_line_break_is_listed_as_one_entry(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "root" / "sub" / "x\nf fake").write_text("")
    assert len(space.list_dir("sub").splitlines()) == 4


def test_a_long_listing_is_truncated_with_the_number_of_omitted_entries(tmp_path: Path) -> None:
    for number in range(1100):
        (tmp_path / f"{number:04}").touch()
    listed = file_tools.list_dir(Root(tmp_path), ".").splitlines()
    assert len(listed) == 1001 and listed[-1] == "[100 more entries are not shown]"
