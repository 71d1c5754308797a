"""Tools in separate processes: the results are the same, and a process can be killed with its children."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rightcall import Call, Result, dispatch, dispatch_sync
from rightcall.dispatching.invoke import RunLimits
from rightcall.errors import NotRunnable, ToolFailed
from rightcall.types import Tool
from support import isolated_tools


def run_isolated(tool: Any, name: str, **arguments: Any) -> Result:
    return dispatch_sync(Call(name, arguments, ""), [tool], isolate=True)[0]


def test_a_function_gives_the_same_result_in_a_separate_process() -> None:
    assert run_isolated(isolated_tools.add, "add", a=2).output == 3
    assert run_isolated(isolated_tools.add_later, "add_later", a=2).output == 3
    assert run_isolated(isolated_tools.own_process, "own_process").output != os.getpid()


def test_arguments_are_converted_in_the_process_and_prints_do_not_corrupt_the_result() -> None:
    assert run_isolated(isolated_tools.day_of, "weekday", day="2026-05-17").output == {"day": "2026-05-17", "number": 7}
    assert run_isolated(isolated_tools.Point, "Point", x=2.0).output == {"x": 2, "y": 0}


def test_a_callable_with_json_arguments_can_be_isolated() -> None:
    tool = Tool(name="echo", parameters={"type": "object"}, run=isolated_tools.takes_json)
    assert run_isolated(tool, "echo", a=[1, {"b": "ü"}]).output == {"a": [1, {"b": "ü"}]}


def test_an_exception_in_the_process_is_the_result_of_the_call() -> None:
    result = run_isolated(isolated_tools.fails, "fails", why="not there")
    assert result.error and "LookupError: not there" in str(result.output)
    assert "SystemExit" in str(run_isolated(isolated_tools.exits, "exits").output)
    died = run_isolated(isolated_tools.dies, "dies")
    assert died.error and "ended without an answer" in str(died.output)


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return not Path("/proc").is_dir()


def have_ended(pids: list[int]) -> bool:
    end = time.monotonic() + 20
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(is_running, pids))


def test_a_process_over_its_time_limit_is_killed_with_its_children(tmp_path: Path) -> None:
    note = tmp_path / "pids"

    async def main() -> Result:
        task = asyncio.create_task(
            dispatch(
                Call("sleeps", {"pid_file": str(note)}, ""),
                [isolated_tools.sleeps],
                isolate=True,
                limits=RunLimits(call=2),
            )
        )
        return (await task)[0]

    result = asyncio.run(main())
    assert result.kind == "timed_out" and "and was stopped" in result.text and not result.thread
    if note.exists():  # on a very slow machine the tool did not start in time
        assert have_ended([int(pid) for pid in note.read_text().split()])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the process group is known")
@pytest.mark.parametrize("forks_twice", [False, True])
@pytest.mark.parametrize("hangs", [False, True])
def test_a_child_in_its_own_session_is_killed_too(hangs: bool, forks_twice: bool, tmp_path: Path) -> None:
    tool, pid_file = isolated_tools.starts_a_daemon, tmp_path / "pid"
    call = Call("starts_a_daemon", {"pid_file": str(pid_file), "hangs": hangs, "forks_twice": forks_twice})
    (result,) = dispatch_sync(call, [tool], isolate=True, limits=RunLimits(call=2.0 if hangs else 60.0))
    assert result.kind == ("timed_out" if hangs else "completed")
    if pid_file.exists():  # on a very slow machine the tool did not start in time
        assert have_ended([int(pid_file.read_text())])


def test_the_process_runs_with_the_arguments_that_the_hooks_saw() -> None:
    seen: list[Any] = []
    hooks = [lambda invocation: seen.append(dict(invocation.arguments))]
    (result,) = dispatch_sync(Call("fresh", {}), [isolated_tools.fresh], hooks=hooks, isolate=True)
    assert result.output == f"{seen[0]['key']} {seen[0]['day']}"
    (result,) = dispatch_sync(Call("never_the_same", {"key": "a"}), [isolated_tools.never_the_same], isolate=True)
    assert result.error and "the tool was not run" in result.text


def test_a_process_without_a_waiting_caller_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pids"

    async def main() -> None:
        calls = [Call("sleeps", {"pid_file": str(note)}, "")]
        task = asyncio.create_task(dispatch(calls, [isolated_tools.sleeps], isolate=True))
        while not note.exists():
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(main(), 60))
    assert have_ended([int(pid) for pid in note.read_text().split()])


def test_a_process_does_not_outlive_its_parent(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from support import isolated_tools\n"
        "from rightcall import Call, dispatch_sync\n"
        f"dispatch_sync(Call('sleeps', {{'pid_file': {str(note)!r}}}, ''), [isolated_tools.sleeps], isolate=True)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    try:
        end = time.monotonic() + 60
        while not note.exists() and time.monotonic() < end:
            time.sleep(0.05)
    finally:
        parent.kill()
        parent.wait()
    assert have_ended([int(pid) for pid in note.read_text().split()])


def test_a_function_that_cannot_be_imported_is_rejected_with_the_reason() -> None:
    def local() -> None: ...

    replaced = isolated_tools.add

    def add(a: int) -> int:
        return replaced(a)

    add.__module__, add.__qualname__ = isolated_tools.__name__, "add"
    main = lambda: None  # noqa: E731
    main.__module__, main.__qualname__, main.__name__ = "__main__", "main", "main"
    for function, cause in ((local, "no name at the top level"), (add, "not the same"), (main, "main module")):
        with pytest.raises(NotRunnable, match=cause) as caught:
            dispatch_sync(Call(function.__name__, {"a": 1} if function is add else {}, ""), [function], isolate=True)
        assert "cannot run in a separate process" in str(caught.value) and len(caught.value.results) == 1


def test_an_isolated_failure_can_stop_the_batch() -> None:
    calls = [Call("fails", {"why": "x"}, ""), Call("fails", {"why": "y"}, "")]
    with pytest.raises(ToolFailed) as caught:
        dispatch_sync(calls, [isolated_tools.fails], isolate=True, stop_on_error=True)
    assert [result.kind for result in caught.value.results] == ["failed", "not_run"]
