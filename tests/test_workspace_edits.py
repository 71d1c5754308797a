"""File edits: previews, the edit log, undo; and the rules that allow calls without asking."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Call, dispatch_sync
from rightcall.errors import CallerError, ToolError
from rightcall.hooks import Invocation
from rightcall.workspace import AllowRule, Denial, EditLog, Permission, Workspace, undo
from rightcall.workspace.line_diff import unified_diff


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, sandbox="off")


def write(path: str, content: str) -> Call:
    return Call("write_file", {"path": path, "content": content})


def edit(path: str, old: str, new: str) -> Call:
    return Call("edit_file", {"path": path, "old_text": old, "new_text": new})


def bash(command: str) -> Call:
    return Call("bash", {"command": command})


def dispatch_with_log(space: Workspace, *calls: Call) -> EditLog:
    log = EditLog(space.root)
    dispatch_sync(calls, space.tools, hooks=[log])
    return log


# -- diffs -------------------------------------------------------------------------------------------------------------


def apply_diff(before: str, diff: str) -> str:
    """Apply the diff to the text; the diff itself gives the positions."""
    if not diff:
        return before
    old, new, at = before.split("\n"), list[str](), 0
    lines = [line for line in diff.split("\n") if not line.startswith("\\")]
    for line in lines:
        if line.startswith("@@"):
            start, _, size = line.split()[1][1:].partition(",")
            stop = int(start) - (size != "0")
            new += old[at:stop]
            at = stop
        elif line[0] in " -":
            assert old[at] == line[1:]
            at += 1
        if line[0] in " +" and not line.startswith("@@"):
            new.append(line[1:])
    return "\n".join([*new, *old[at:]])


LINES = st.lists(st.sampled_from(["a", "b", "", " c", "-d", "@@ -1 +1 @@"]), max_size=30)


@given(LINES, LINES)
def test_applying_a_diff_gives_the_new_text(before: list[str], after: list[str]) -> None:
    old, new = "".join([f"{line}\n" for line in before]), "".join([f"{line}\n" for line in after])
    diff = unified_diff(old, new)
    assert (diff == "") == (old == new)
    assert apply_diff(old, diff) == new


def test_a_last_line_without_a_line_break_is_reported() -> None:
    assert unified_diff("a\nb", "a\nb\n").split("\n") == [
        "@@ -1,2 +1,2 @@",
        " a",
        "-b",
        "\\ no newline at the end",
        "+b",
    ]


@pytest.mark.parametrize("line", ["x\n", "{n}\n"])
def test_a_diff_of_a_long_text_takes_bounded_time(line: str) -> None:
    old = "".join([line.format(n=n) for n in range(100_000)])
    new = "".join([line.format(n=-n) for n in range(99_000)])
    began = time.process_time()
    unified_diff(old, new)
    assert time.process_time() - began < 5


# -- undo --------------------------------------------------------------------------------------------------------------


def test_edits_are_undone_one_by_one_in_reverse_order(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    log = dispatch_with_log(space, edit("a.txt", "two", "2"), write("a.txt", "new\n"), bash("echo more > b.txt"))
    assert [each.path for each in log.edits] == ["a.txt", "a.txt"]
    assert undo(space.root, log.edits.pop()) == "a.txt is as it was"
    assert (tmp_path / "a.txt").read_text() == "one\n2\n"
    undo(space.root, log.edits.pop())
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n" and (tmp_path / "b.txt").exists()


def test_undo_of_a_new_file_removes_it_and_its_empty_folders(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    log = dispatch_with_log(space, write("kept/x/y/a.txt", "hi"))
    assert undo(space.root, log.edits[0]) == "kept/x/y/a.txt is gone again"
    assert os.listdir(tmp_path) == ["kept"] and os.listdir(tmp_path / "kept") == []
    log = dispatch_with_log(space, write("kept/x/a.txt", "hi"))
    (tmp_path / "kept/x/mine").touch()
    undo(space.root, log.edits[0])
    assert os.listdir(tmp_path / "kept/x") == ["mine"]


def test_undo_restores_binary_content_and_mode(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\0\xff\r\n")
    (tmp_path / "a.bin").chmod(0o750)
    log = dispatch_with_log(space, write("a.bin", "text"))
    assert "binary file of 4 bytes" in log.edits[0].diff
    undo(space.root, log.edits[0])
    assert (tmp_path / "a.bin").read_bytes() == b"\0\xff\r\n" and (tmp_path / "a.bin").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("change", ["write", "remove", "link"])
def test_undo_is_rejected_if_the_file_was_changed_since(space: Workspace, tmp_path: Path, change: str) -> None:
    log = dispatch_with_log(space, write("a.txt", "ours"))
    path = tmp_path / "a.txt"
    path.unlink()
    if change == "write":
        path.write_text("theirs")
    elif change == "link":
        (tmp_path / "b.txt").write_text("ours")
        path.symlink_to("b.txt")
    with pytest.raises(ToolError):
        undo(space.root, log.edits[0])
    assert change != "write" or path.read_text() == "theirs"


def test_failed_and_denied_calls_are_not_logged(space: Workspace) -> None:
    log = EditLog(space.root)
    calls = [edit("none.txt", "a", "b"), write("../out.txt", "x"), write("a.txt", "x")]
    dispatch_sync(calls, space.tools, hooks=[space.approval(lambda _: "no"), log])
    assert log.edits == []


def test_a_file_changed_during_approval_is_not_overwritten(space: Workspace, tmp_path: Path) -> None:
    path, log = tmp_path / "a.txt", EditLog(space.root)
    path.write_text("one\n")

    def ask(invocation: Invocation) -> Permission:
        shown = log.preview(invocation)
        assert shown is not None and shown.diff == "@@ -1,1 +1,1 @@\n-one\n+two"
        path.write_text("theirs\n")
        return "yes"

    [result] = dispatch_sync(write("a.txt", "two\n"), space.tools, hooks=[space.approval(ask), log])
    assert "changed by another program meanwhile" in result.text
    assert path.read_text() == "theirs\n" and log.edits == []


def test_a_file_too_large_for_the_log_cannot_be_undone(space: Workspace, tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(11 * 1024 * 1024)
    log = dispatch_with_log(space, write("big", "small"))
    assert "cannot be shown" in log.edits[0].diff
    with pytest.raises(ToolError, match="too large to be kept"):
        undo(space.root, log.edits[0])
    assert (tmp_path / "big").read_text() == "small"


# -- rules for calls that need no approval -----------------------------------------------------------------------------

COVERED: dict[str, tuple[list[Call], list[Call]]] = {
    "bash:git status *": (
        [bash("git status"), bash("git status -s src"), bash("git status 'a b'")],
        [
            *[bash(f"git status{more}") for more in ("; rm -r .", " && rm x", " | sh", " $(rm x)", " `rm x`", " > x")],
            *[bash("git statusx"), bash("git push"), bash("git status\nrm x"), bash(" git status"), write("a", "")],
        ],
    ),
    "bash:a; b": ([bash("a; b")], [bash("a; b c"), bash("a")]),
    "bash": ([bash("anything; at all")], [write("a", "")]),
    "edit_file:src/*": (
        [edit("src/a.py", "a", "b"), write("src/x/b.py", ""), write("./src/../src/a.py", "")],
        [write("a.py", ""), write("src/../a.py", ""), write("srcs/a.py", ""), bash("ls"), write("/etc/src/a", "")],
    ),
    "write_file": ([write("a", ""), edit("b", "a", "b")], [bash("ls")]),
}


@pytest.mark.parametrize("text", COVERED)
def test_a_rule_covers_exactly_its_calls(space: Workspace, text: str) -> None:
    rule = AllowRule.read(text)
    covered, others = COVERED[text]
    assert str(rule) == text
    assert all(rule.covers(call.name, call.arguments, space.root) for call in covered)
    assert not [call for call in others if rule.covers(call.name, call.arguments, space.root)]


@pytest.mark.parametrize("text", ["", ":x", "bash:", "search:x"])
def test_an_invalid_rule_is_rejected(text: str) -> None:
    with pytest.raises(CallerError, match="is not a rule"):
        AllowRule.read(text)


OFFERED = {
    "pytest -q tests": "bash:pytest *",
    "git status -s": "bash:git status *",
    "git -c core.pager=x log": "bash:git -c core.pager=x log",
    "python3.12 -m pytest": "bash:python3.12 -m pytest",
    "/usr/bin/env ls": "bash:/usr/bin/env ls",
    "ls; rm -r x": "bash:ls; rm -r x",
    "PATH=x ls": "bash:PATH=x ls",
    "ls *": "None",
    "": "None",
}


@pytest.mark.parametrize("command", OFFERED)
def test_the_offered_rule_covers_the_call_narrowly(space: Workspace, command: str) -> None:
    rule = AllowRule.offered("bash", {"command": command}, space.root)
    assert str(rule) == OFFERED[command]
    assert rule is None or rule.covers("bash", {"command": command}, space.root)


@given(st.text(alphabet="ab *;|$/=-", max_size=12))
def test_every_offered_rule_covers_its_call(command: str) -> None:
    rule = AllowRule.offered("bash", {"command": command}, None)
    assert rule is None or rule.pattern == "" or rule.covers("bash", {"command": command}, None)


def test_the_offered_rule_for_a_file_covers_its_folder(space: Workspace) -> None:
    for path, rule in {"src/x/a.py": "edit_file:src/x/*", "a.py": "edit_file:*"}.items():
        assert str(AllowRule.offered("edit_file", {"path": path}, space.root)) == rule
    assert AllowRule.offered("edit_file", {"path": "../a"}, space.root) is None
    assert AllowRule.offered("search", {"path": "../a"}, None) == AllowRule("search")


def scripted_approval(*answers: Any) -> tuple[list[str], Callable[[Invocation], Permission]]:
    names: list[str] = []

    def ask(invocation: Invocation) -> Permission:
        names.append(invocation.call.json)
        return answers[len(names) - 1]  # type: ignore[no-any-return]

    return names, ask


def test_a_rule_given_as_the_answer_applies_to_later_calls(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    names, ask = scripted_approval(AllowRule("write_file", "src/*"), "no")
    calls = [write("src/a", "1"), write("src/b", "2"), write("c", "3")]
    kinds = [result.kind for result in dispatch_sync(calls, space.tools, hooks=[space.approval(ask)])]
    assert kinds == ["completed", "completed", "skipped"] and len(names) == 2


def test_a_rule_that_does_not_cover_the_call_denies_it(space: Workspace) -> None:
    _, ask = scripted_approval(AllowRule("bash", "ls"))
    assert dispatch_sync(bash("rm x"), space.tools, hooks=[space.approval(ask)])[0].kind == "skipped"


def test_a_denial_with_a_reason_is_reported_to_the_model(space: Workspace) -> None:
    _, ask = scripted_approval(Denial("use tabs"))
    [result] = dispatch_sync(write("a", "x"), space.tools, hooks=[space.approval(ask)])
    assert result.text == "ERROR: the user did not allow write_file, and said: use tabs"


def test_rules_apply_without_a_user(space: Workspace) -> None:
    hook = space.approval(rules=[AllowRule("write_file", "*.md")])
    kinds = [result.kind for result in dispatch_sync([write("a.md", ""), write("a.py", "")], space.tools, hooks=[hook])]
    assert kinds == ["completed", "skipped"]


@pytest.mark.parametrize("folder", ["", "."])
def test_plan_mode_without_a_plan_folder_denies_writes(space: Workspace, tmp_path: Path, folder: str) -> None:
    hook = space.approval(mode="plan", plan_dir=folder)
    [result] = dispatch_sync(write("a", "x"), space.tools, hooks=[hook])
    assert "refused while planning; answer with the plan" in result.text and os.listdir(tmp_path) == []
