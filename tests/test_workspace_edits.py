"""Changes of files: shown before they are made, kept, undone; and what may be changed without being asked."""

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


def logged(space: Workspace, *calls: Call) -> EditLog:
    log = EditLog(space.root)
    dispatch_sync(calls, space.tools, hooks=[log])
    return log


# -- diffs -------------------------------------------------------------------------------------------------------------


def applied(before: str, diff: str) -> str:
    """What the diff makes of the text: it says itself where it stands."""
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
def test_a_diff_says_all_that_changed_and_nothing_else(before: list[str], after: list[str]) -> None:
    old, new = "".join([f"{line}\n" for line in before]), "".join([f"{line}\n" for line in after])
    diff = unified_diff(old, new)
    assert (diff == "") == (old == new)
    assert applied(old, diff) == new


def test_a_last_line_without_a_line_break_is_reported() -> None:
    assert unified_diff("a\nb", "a\nb\n").split("\n") == [
        "@@ -1,2 +1,2 @@",
        " a",
        "-b",
        "\\ no newline at the end",
        "+b",
    ]


@pytest.mark.parametrize("line", ["x\n", "{n}\n"])
def test_a_diff_of_a_long_text_costs_little(line: str) -> None:
    old = "".join([line.format(n=n) for n in range(100_000)])
    new = "".join([line.format(n=-n) for n in range(99_000)])
    began = time.process_time()
    unified_diff(old, new)
    assert time.process_time() - began < 5


# -- undoing -----------------------------------------------------------------------------------------------------------


def test_edits_are_undone_one_after_the_other_and_the_last_one_first(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    log = logged(space, edit("a.txt", "two", "2"), write("a.txt", "new\n"), bash("echo more > b.txt"))
    assert [each.path for each in log.edits] == ["a.txt", "a.txt"]
    assert undo(space.root, log.edits.pop()) == "a.txt is as it was"
    assert (tmp_path / "a.txt").read_text() == "one\n2\n"
    undo(space.root, log.edits.pop())
    assert (tmp_path / "a.txt").read_text() == "one\ntwo\n" and (tmp_path / "b.txt").exists()


def test_a_file_that_was_made_is_gone_again_with_its_folders(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    log = logged(space, write("kept/x/y/a.txt", "hi"))
    assert undo(space.root, log.edits[0]) == "kept/x/y/a.txt is gone again"
    assert os.listdir(tmp_path) == ["kept"] and os.listdir(tmp_path / "kept") == []
    log = logged(space, write("kept/x/a.txt", "hi"))
    (tmp_path / "kept/x/mine").touch()
    undo(space.root, log.edits[0])
    assert os.listdir(tmp_path / "kept/x") == ["mine"]


def test_bytes_that_are_no_text_come_back_as_they_were(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\0\xff\r\n")
    (tmp_path / "a.bin").chmod(0o750)
    log = logged(space, write("a.bin", "text"))
    assert "binary file of 4 bytes" in log.edits[0].diff
    undo(space.root, log.edits[0])
    assert (tmp_path / "a.bin").read_bytes() == b"\0\xff\r\n" and (tmp_path / "a.bin").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("change", ["write", "remove", "link"])
def test_what_was_changed_since_stays_as_it_is(space: Workspace, tmp_path: Path, change: str) -> None:
    log = logged(space, write("a.txt", "ours"))
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


def test_a_call_that_fails_or_is_not_allowed_is_no_edit(space: Workspace) -> None:
    log = EditLog(space.root)
    calls = [edit("none.txt", "a", "b"), write("../out.txt", "x"), write("a.txt", "x")]
    dispatch_sync(calls, space.tools, hooks=[space.approval(lambda _: "no"), log])
    assert log.edits == []


def test_what_changed_while_somebody_looked_at_the_diff_is_not_written_over(space: Workspace, tmp_path: Path) -> None:
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


def test_a_file_too_large_to_be_kept_is_replaced_and_not_undone(space: Workspace, tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(11 * 1024 * 1024)
    log = logged(space, write("big", "small"))
    assert "cannot be shown" in log.edits[0].diff
    with pytest.raises(ToolError, match="too large to be kept"):
        undo(space.root, log.edits[0])
    assert (tmp_path / "big").read_text() == "small"


# -- what need not be asked about --------------------------------------------------------------------------------------

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
def test_a_rule_covers_these_calls_and_not_those(space: Workspace, text: str) -> None:
    rule = AllowRule.read(text)
    covered, others = COVERED[text]
    assert str(rule) == text
    assert all(rule.covers(call.name, call.arguments, space.root) for call in covered)
    assert not [call for call in others if rule.covers(call.name, call.arguments, space.root)]


@pytest.mark.parametrize("text", ["", ":x", "bash:", "search:x"])
def test_what_allows_nothing_is_refused(text: str) -> None:
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
def test_the_rule_that_is_offered_covers_the_call_and_little_more(space: Workspace, command: str) -> None:
    rule = AllowRule.offered("bash", {"command": command}, space.root)
    assert str(rule) == OFFERED[command]
    assert rule is None or rule.covers("bash", {"command": command}, space.root)


@given(st.text(alphabet="ab *;|$/=-", max_size=12))
def test_every_rule_that_is_offered_covers_its_call(command: str) -> None:
    rule = AllowRule.offered("bash", {"command": command}, None)
    assert rule is None or rule.pattern == "" or rule.covers("bash", {"command": command}, None)


def test_the_rule_that_is_offered_for_a_file_is_its_folder(space: Workspace) -> None:
    for path, rule in {"src/x/a.py": "edit_file:src/x/*", "a.py": "edit_file:*"}.items():
        assert str(AllowRule.offered("edit_file", {"path": path}, space.root)) == rule
    assert AllowRule.offered("edit_file", {"path": "../a"}, space.root) is None
    assert AllowRule.offered("search", {"path": "../a"}, None) == AllowRule("search")


def answering(*answers: Any) -> tuple[list[str], Callable[[Invocation], Permission]]:
    names: list[str] = []

    def ask(invocation: Invocation) -> Permission:
        names.append(invocation.call.json)
        return answers[len(names) - 1]  # type: ignore[no-any-return]

    return names, ask


def test_a_rule_in_answer_is_asked_about_once(space: Workspace, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    names, ask = answering(AllowRule("write_file", "src/*"), "no")
    calls = [write("src/a", "1"), write("src/b", "2"), write("c", "3")]
    kinds = [result.kind for result in dispatch_sync(calls, space.tools, hooks=[space.approval(ask)])]
    assert kinds == ["completed", "completed", "skipped"] and len(names) == 2


def test_a_rule_that_does_not_cover_the_call_is_a_no(space: Workspace) -> None:
    _, ask = answering(AllowRule("bash", "ls"))
    assert dispatch_sync(bash("rm x"), space.tools, hooks=[space.approval(ask)])[0].kind == "skipped"


def test_a_denial_with_a_reason_is_reported_to_the_model(space: Workspace) -> None:
    _, ask = answering(Denial("use tabs"))
    [result] = dispatch_sync(write("a", "x"), space.tools, hooks=[space.approval(ask)])
    assert result.text == "ERROR: the user did not allow write_file, and said: use tabs"


def test_rules_apply_without_a_user(space: Workspace) -> None:
    hook = space.approval(rules=[AllowRule("write_file", "*.md")])
    kinds = [result.kind for result in dispatch_sync([write("a.md", ""), write("a.py", "")], space.tools, hooks=[hook])]
    assert kinds == ["completed", "skipped"]


@pytest.mark.parametrize("folder", ["", "."])
def test_without_a_plan_folder_planning_changes_nothing(space: Workspace, tmp_path: Path, folder: str) -> None:
    hook = space.approval(mode="plan", plan_dir=folder)
    [result] = dispatch_sync(write("a", "x"), space.tools, hooks=[hook])
    assert "refused while planning; answer with the plan" in result.text and os.listdir(tmp_path) == []
