"""The tool bash, its sandbox, and the approval hook."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rightcall import Call, dispatch_sync
from rightcall.dispatching.hook import Invocation
from rightcall.errors import CallerError, ToolError
from rightcall.workspace import Permission, Workspace
from rightcall.workspace.sandbox import sandbox_prefix


def call(name: str, **arguments: object) -> Call:
    return Call(name, arguments, "", "call_1")


def run(space: Workspace, command: str, cwd: str = "") -> str:
    return asyncio.run(space.bash(command, cwd))


@pytest.fixture
def space(tmp_path: Path) -> Workspace:
    (tmp_path / "sub").mkdir()
    return Workspace(tmp_path, sandbox="off", seconds=20)


# -- running -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command, output",
    [
        ("echo hi", "exit 0\nhi"),
        ("echo out; echo err >&2; exit 3", "exit 3\nout\nerr"),
        ("true", "exit 0"),
        ("kill -TERM $$", "terminated by signal 15"),
        ("printf 'a\\377b'", "exit 0\na\ufffdb"),
        ("cat", "exit 0"),  # there is no input
    ],
)
def test_the_output_of_a_command_follows_its_exit_status(space: Workspace, command: str, output: str) -> None:
    assert run(space, command) == output


def test_a_command_runs_in_the_root_or_in_a_folder_of_it(space: Workspace, tmp_path: Path) -> None:
    real = os.path.realpath(tmp_path)
    assert run(space, "pwd") == f"exit 0\n{real}"
    assert run(space, "pwd", "sub") == f"exit 0\n{real}/sub"
    assert run(space, "pwd", f"{real}/sub") == f"exit 0\n{real}/sub"
    for cwd in ("..", "/", "/etc", "sub/../..", "nope"):
        with pytest.raises(ToolError):
            run(space, "pwd", cwd)


def test_the_environment_of_a_command_contains_no_keys(space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    output = run(space, "env")
    assert "secret" not in output and "PATH=" in output
    extra = Workspace(space.root.path, sandbox="off", extra={"MODE": "test"})
    assert "MODE=test" in run(extra, "env")


def test_output_is_bounded_with_head_and_tail_kept(tmp_path: Path) -> None:
    space = Workspace(tmp_path, sandbox="off", most_output=1000)
    output = run(space, "echo first; yes é | head -c 3000000; echo last")
    assert output.startswith("exit 0\n(output truncated)\nfirst") and output.endswith("last")
    assert len(output) < 1200 and "bytes left out" in output


# -- timeouts and cancellation -----------------------------------------------------------------------------------------


def is_running(mark: str) -> bool:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in line:
            return True
    return False


def has_ended(mark: str) -> bool:
    deadline = time.monotonic() + 60
    while is_running(mark):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked up in /proc")


@needs_proc
def test_a_command_over_the_time_limit_is_killed_with_its_children(tmp_path: Path) -> None:
    space = Workspace(tmp_path, sandbox="off", seconds=0.5)
    with pytest.raises(ToolError, match=r"(?s)after 0.5 seconds.*begun"):
        run(space, "echo begun; (sleep 317.1 & sleep 317.1); sleep 317.1")
    assert has_ended("317.1")


@needs_proc
def test_background_processes_of_a_command_end_with_it(space: Workspace) -> None:
    assert run(space, "sleep 317.2 & echo done") == "exit 0\ndone"
    assert has_ended("317.2")


@needs_proc
def test_a_command_that_ignores_signals_is_killed(tmp_path: Path) -> None:
    space = Workspace(tmp_path, sandbox="off", seconds=0.5)
    with pytest.raises(ToolError, match="stopped after"):
        run(space, "trap '' TERM INT HUP; sleep 317.3; sleep 317.3")
    assert has_ended("317.3")


@needs_proc
def test_cancelling_kills_the_command(space: Workspace) -> None:
    async def cancel_command() -> None:
        task = asyncio.create_task(space.bash("sleep 317.4"))
        while not is_running("317.4"):
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_command())
    assert has_ended("317.4")


@needs_proc
def test_cancelling_during_the_start_leaves_no_process_or_descriptor(space: Workspace) -> None:
    async def cancel_repeatedly() -> tuple[int, int]:
        await space.bash("true")  # the event loop has opened its own file descriptors now
        before = len(os.listdir("/proc/self/fd"))
        for round in range(30):
            task = asyncio.create_task(space.bash("sleep 317.6; true"))
            await asyncio.sleep(0.001 * (round % 10))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return len(os.listdir("/proc/self/fd")) - before, len(asyncio.all_tasks())

    assert asyncio.run(cancel_repeatedly()) == (0, 1)
    assert has_ended("317.6")


# -- sandbox -----------------------------------------------------------------------------------------------------------


def test_an_unknown_sandbox_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="one of"):
        sandbox_prefix("jail", str(tmp_path), network=True)


def test_the_active_sandbox_is_reported(tmp_path: Path) -> None:
    assert Workspace(tmp_path, sandbox="off").sandbox == ""
    assert Workspace(tmp_path).sandbox in ("bwrap", "sandbox-exec", "")


def test_in_a_sandbox_only_the_root_is_writable(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    space = Workspace(root, seconds=20)
    if not space.sandbox:
        with pytest.raises(CallerError, match="does not work"):
            Workspace(root, sandbox="bwrap")
        pytest.skip("no sandbox on this machine")
    assert run(space, "echo x > in.txt && cat in.txt") == "exit 0\nx"
    run(space, f"mkdir -p {tmp_path}; echo x > {tmp_path}/out.txt")  # /tmp is another folder inside
    assert not run(space, "echo x > ~/.rightcall-test").startswith("exit 0")
    assert not (tmp_path / "out.txt").exists()


SPY = "for at in /proc/[0-9]*; do tr '\\0' '\\n' < $at/environ; done 2>/dev/null | grep -c opensesame"
PROGRAM = """
import asyncio, sys
from rightcall.workspace import Workspace
space = Workspace(sys.argv[1], seconds=20)
print("keys" in space.exposure, asyncio.run(space.bash(sys.argv[2])).split()[-1])
"""


def test_a_command_sees_the_programs_keys_only_if_allowed(tmp_path: Path) -> None:
    env = {**os.environ, "SOME_API_KEY": "opensesame", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), SPY]
    output = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60).stdout.split()
    assert output[0] == "True" or output == ["False", "0"]
    assert "read the keys" in Workspace(tmp_path, sandbox="off").exposure


def test_in_a_process_namespace_all_children_end_with_the_command(tmp_path: Path) -> None:
    space = Workspace(tmp_path, seconds=2)
    if "keys" in space.exposure:
        pytest.skip("processes cannot be hidden on this machine")
    with pytest.raises(ToolError, match="stopped after 2 seconds"):
        run(space, "setsid sh -c 'while :; do date > beat; sleep 0.05; done' & sleep 60")
    time.sleep(0.3)
    (tmp_path / "beat").unlink(missing_ok=True)
    time.sleep(0.5)
    assert not (tmp_path / "beat").exists()


ESCAPES = (
    "mount -o remount,rw /",
    "mount -o remount,bind,rw /",
    "cat /proc/sys/kernel/printk_delay > /proc/sys/kernel/printk_delay",  # writes the current value
    "mknod node b 254 0",
    "chroot / true",
    "touch /etc/rightcall-test",
)


@pytest.mark.parametrize("command", ESCAPES)
def test_the_root_user_cannot_leave_the_sandbox(tmp_path: Path, command: str) -> None:
    space = Workspace(tmp_path, seconds=20)
    if space.sandbox != "bwrap":
        pytest.skip("no bubblewrap on this machine")
    assert not run(space, command).startswith("exit 0")
    assert run(space, "touch mine && chmod 700 mine && ls") == "exit 0\nmine"


# -- approval ----------------------------------------------------------------------------------------------------------

WRITE = call("write_file", path="n.txt", content="x")
SHELL = call("bash", command="echo ran > ran.txt")
READ = call("list_dir", path=".")


def run_with_approval(
    space: Workspace, answers: list[Permission], calls: list[Call], **options: str
) -> tuple[list[str], list[str]]:
    """Return the tools that were asked about and the kinds of the results."""
    names: list[str] = []

    def ask(invocation: Invocation) -> Permission:
        names.append(invocation.tool.name)
        return answers.pop(0)

    hook = space.approval(ask, **options)  # type: ignore[arg-type]
    return names, [result.kind for result in dispatch_sync(calls, space.tools, hooks=[hook])]


def test_approval_is_asked_for_writing_and_never_for_reading(space: Workspace, tmp_path: Path) -> None:
    assert run_with_approval(space, ["no", "no"], [READ, WRITE, SHELL]) == (
        ["write_file", "bash"],
        ["completed", "skipped", "skipped"],
    )
    assert sorted(os.listdir(tmp_path)) == ["sub"]
    assert run_with_approval(space, ["yes", "yes"], [WRITE, SHELL])[1] == ["completed", "completed"]


@pytest.mark.parametrize("answer", ["", "maybe", "Yes", None, True, 1])
def test_any_answer_other_than_yes_is_a_no(space: Workspace, answer: object) -> None:
    assert run_with_approval(space, [answer], [WRITE])[1] == ["skipped"]  # type: ignore[list-item]


def test_without_an_ask_function_writing_is_denied(space: Workspace) -> None:
    [result] = dispatch_sync([WRITE], space.tools, hooks=[space.approval()])
    assert result.kind == "skipped" and "did not allow" in result.text


def test_yes_to_all_covers_bash_only_if_bash_was_asked_about(space: Workspace) -> None:
    names, _ = run_with_approval(space, ["yes to all", "no", "yes to all"], [WRITE, WRITE, SHELL, SHELL, SHELL])
    assert names == ["write_file", "bash", "bash"]


def test_plan_mode_writes_only_into_the_plan_folder_and_runs_nothing(space: Workspace, tmp_path: Path) -> None:
    plan = call("write_file", path=".plan/plan.md", content="x")
    sly = call("write_file", path=".plan/../n.txt", content="x")
    outside = call("write_file", path="/etc/passwd", content="x")
    names, kinds = run_with_approval(space, [], [READ, plan, sly, outside, WRITE, SHELL], mode="plan")
    assert (names, kinds) == ([], ["completed", "completed", "skipped", "skipped", "skipped", "skipped"])
    assert sorted(os.listdir(tmp_path)) == [".plan", "sub"]


def test_bypass_mode_asks_for_no_permission(space: Workspace) -> None:
    assert run_with_approval(space, [], [WRITE, SHELL], mode="bypass") == ([], ["completed", "completed"])


def test_an_unknown_approval_mode_is_rejected(space: Workspace) -> None:
    with pytest.raises(CallerError, match="one of"):
        space.approval(mode="yolo")  # type: ignore[arg-type]


def test_a_failing_tool_is_an_error_for_the_model(space: Workspace) -> None:
    [result] = dispatch_sync([call("read_file", path="nope")], space.tools)
    assert result.error and result.text.startswith("ERROR: ") and "does not exist" in result.text
