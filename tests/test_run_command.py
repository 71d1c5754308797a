"""`rightcall run`: a scripted model on loopback, real files and commands, and a real terminal for the user."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from rightcall.cli.user_tools import ask_permission
from rightcall.workspace import Permission
from rightcall.workspace.allow_rules import AllowRule
from rightcall.workspace.approval import Denial
from support.command import accept_ctrl_c, failed, run
from support.dialects import WIRES, Answer, WireCall
from support.loopback import call_delta, delta
from support.scripted_server import scripted
from support.stand_in_llama import model_file, write_package
from support.terminal import TerminalSession

Json = dict[str, Any]
USAGE: Json = {"choices": [], "usage": {"prompt_tokens": 700, "completion_tokens": 30}}
LOOK = ("read_file", {"path": "a.py"})
EDIT = ("edit_file", {"path": "a.py", "old_text": "return 1", "new_text": "return 2"})
NEW = ("write_file", {"path": "notes/b.md", "content": "# B\n"})
CHECK = ("bash", {"command": "cat a.py"})
BEFORE, AFTER = "def f():\n    return 1\n", "def f():\n    return 2\n"
Step = str | list[tuple[str, Json]]


def stream_step(step: Step, turn: int) -> list[Json]:
    """Return the chunks of an answer: a text, or calls."""
    if isinstance(step, str):
        return [*[delta(content=word) for word in re.findall(r"\S+\s*", step)], delta("stop"), USAGE]
    chunks: list[Json] = []
    for at, (name, arguments) in enumerate(step):
        text = json.dumps(arguments)
        chunks += [call_delta("", name, f"call_{turn}_{at}", at), call_delta(text[:9], index=at)]
        chunks.append(call_delta(text[9:], index=at))
    return [*chunks, delta("tool_calls"), USAGE]


class Agent:
    """The command in a folder, with a model that gives scripted answers."""

    def __init__(self, folder: Path, url: str, requests: list[Json]) -> None:
        self.folder, self.url, self.requests = folder, url, requests

    @property
    def options(self) -> list[str]:
        return ["--base-url", self.url, "-m", "m", "--mode", "native", "--retries", "0", "--cwd", str(self.folder)]

    def __call__(self, *args: str, stdin: str = "") -> Result:
        return run("run", *args, *self.options, stdin=stdin)

    def run_offline(self, *args: str) -> Result:
        return run("run", *args, "--cwd", str(self.folder))

    @property
    def file(self) -> str:
        return (self.folder / "a.py").read_text()

    def message_contents(self, role: str = "tool") -> list[str]:
        return [str(message["content"]) for message in self.requests[-1]["messages"] if message["role"] == role]

    def notes(self, *kinds: str) -> list[Json]:
        found = map(json.loads, self.run_offline("--replay", "last", "--json").stdout.splitlines())
        return [note for note in found if note["event"] in kinds]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RIGHTCALL_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.py").write_text(BEFORE)
    return tmp_path / "work"


@contextmanager
def agent(folder: Path, *steps: Step) -> Iterator[Agent]:
    def answers(path: str, body: Json) -> list[Json]:
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        return stream_step(steps[min(turn, len(steps) - 1)], turn)

    with scripted(answers) as (url, requests):
        yield Agent(folder, url, requests)


# -- a whole run -------------------------------------------------------------------------------------------------------

SCREEN = """\
> Make f return 2.
read_file  a.py  2 lines
edit_file  a.py
           @@ -1,2 +1,2 @@
            def f():
           -    return 1
           +    return 2
           edited a.py (line 2)
bash       $ cat a.py
           exit 0
           def f():
               return 2
It returns 2 now.
done       4 turns, 3 calls, 2,800 tokens in, 120 out, """


def test_a_task_is_executed_shown_and_can_be_replayed(folder: Path) -> None:
    with agent(folder, [LOOK], [EDIT], [CHECK], "It returns 2 now.") as it:
        done = it("Make f return 2.", "--yes")
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith(SCREEN) and it.file == AFTER
        assert {tool["function"]["name"] for tool in it.requests[0]["tools"]} >= {"bash", "edit_file"}
        assert "coding agent" in it.message_contents("system")[0] and str(folder) in it.message_contents("system")[0]
    assert it.run_offline("--replay", "last").stdout == done.stdout


@pytest.mark.parametrize("api", ["responses", "messages", "ollama"])
def test_the_model_can_have_any_api(folder: Path, api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    whole = WIRES[api][0]
    replies = [Answer("", "", (WireCall("c1", EDIT[0], json.dumps(EDIT[1])),)), Answer("", "Done.", ())]

    def answers(path: str, body: Json) -> Json:
        return dict(whole(replies[min(len(requests), 2) - 1]))

    with scripted(answers) as (url, requests):
        it = Agent(folder, url, requests)
        done = it("Make f return 2.", "--yes", "--api", api)
    assert done.exit_code == 0, done.output
    assert it.file == AFTER and "Done." in done.stdout and len(requests) == 2


def test_json_output_has_one_line_per_event_and_can_be_replayed(folder: Path) -> None:
    with agent(folder, [LOOK, EDIT], "Done.") as it:
        done = it("Go.", "--yes", "--json")
    notes = [json.loads(line) for line in done.stdout.splitlines()]
    assert [note["event"] for note in notes] == [
        *("task", "call", "call", "turn", "start", "result"),
        *("start", "diff", "result", "edited", "text", "turn", "over"),
    ]
    assert notes[-1]["status"] == "done" and notes[-1]["answer"] == "Done." and notes[-1]["prompt"] == 1400
    assert it.run_offline("--replay", "last", "--json").stdout == done.stdout


def test_control_characters_of_a_model_are_escaped(folder: Path) -> None:
    evil = "\x1b[2J[bold]x[/bold]\u202e"
    write = ("write_file", {"path": "\x1b]0;t\x07.md", "content": evil})
    with agent(folder, [write, ("bash", {"command": f"echo '{evil}'"}), ("no\x1b[2J", {})], evil) as it:
        shown = it(evil, "--yes").stdout
        assert it.run_offline("--replay", "last").stdout == shown
    assert "\x1b" not in shown and "\u202e" not in shown and "\x07" not in shown
    assert shown.count("\\x1b[2J[bold]x[/bold]\\u202e") >= 4


def test_a_local_model_can_be_used(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in repeats the last message: first the task, which contains a call, then the result as its answer."""
    monkeypatch.syspath_prepend(str(write_package(tmp_path / "packages")))
    task = f"<tool_call>{json.dumps({'name': CHECK[0], 'arguments': CHECK[1]})}</tool_call>"
    done = run("run", task, "--local", model_file(tmp_path), "--yes", "--cwd", str(folder))
    assert done.exit_code == 0, done.output
    assert "bash       $ cat a.py" in done.stdout and "done " in done.stdout


def test_the_tools_of_an_mcp_server_are_available(folder: Path) -> None:
    pytest.importorskip("mcp")
    server = f"{shlex.quote(sys.executable)} {shlex.quote(str(Path(__file__).parent / 'support' / 'mcp_server.py'))}"
    with agent(folder, [("add", {"a": 2, "b": 3})], "Five.") as it:
        done = it("Add.", "--mcp", server, "--allow", "add")
        assert done.exit_code == 0 and 'add        {"a": 2, "b": 3}' in done.stdout
        assert json.loads(it.message_contents()[0]) == {"sum": 5}
        gone = it("Add.", "--mcp", "rightcall-no-such-command")
    assert gone.exit_code == 1 and "cannot be used" in gone.stderr and "Traceback" not in gone.stderr


# -- permissions -------------------------------------------------------------------------------------------------------


def test_without_a_user_reading_is_allowed_and_changes_are_rejected(folder: Path) -> None:
    with agent(folder, [LOOK, EDIT, CHECK], "I may not.") as it:
        done = it("Make f return 2.")
        assert it.file == BEFORE and done.exit_code == 1
        assert it.message_contents()[0] == BEFORE and "did not allow edit_file" in it.message_contents()[1]
    first, last = done.stderr.splitlines()[-2:]
    assert "standard input is not a terminal" in first and "--yes" in first
    assert "2 calls were refused (edit_file, bash)" in last


def test_a_call_allowed_by_a_rule_runs(folder: Path) -> None:
    with agent(folder, [EDIT, CHECK], "Done.") as it:
        assert it("Go.", "--allow", "edit_file:*.py", "--allow", "bash:cat *").exit_code == 0
    assert it.file == AFTER


def test_a_plan_changes_nothing(folder: Path) -> None:
    with agent(folder, [LOOK, EDIT, NEW, CHECK], "First a, then b.") as it:
        done = it("Make f return 2.", "--plan", "--yes")
        assert [tool["function"]["name"] for tool in it.requests[0]["tools"]] == ["read_file", "list_dir"]
        assert it.message_contents("user")[0].startswith("Make f return 2.\n\n(Plan only")
    assert done.exit_code == 0 and "First a, then b." in done.stdout
    assert it.file == BEFORE and os.listdir(folder) == ["a.py"]


def test_changes_can_be_undone_one_by_one(folder: Path) -> None:
    with agent(folder, [EDIT, NEW, CHECK], "Done.") as it:
        assert it("Go.", "--yes").exit_code == 0
        assert it.run_offline("--undo").stdout == "notes/b.md is gone again\n"
        assert os.listdir(folder) == ["a.py"] and it.file == AFTER
        assert it.run_offline("--undo").stdout == "a.py is as it was\n" and it.file == BEFORE
        assert "nothing to undo" in failed(it.run_offline("--undo"), 1)
        it("Again?", "--yes", "--resume")
        assert (
            "took back your last change of notes/b.md.)\n(The user took back your last change of a.py"
            in (it.message_contents("user")[-1])
        )


def test_a_file_changed_later_is_not_undone(folder: Path) -> None:
    with agent(folder, [EDIT], "Done.") as it:
        it("Go.", "--yes")
    (folder / "a.py").write_text("mine\n")
    assert "was changed since" in failed(it.run_offline("--undo"), 1)
    assert it.file == "mine\n"


# -- limits and interruptions ------------------------------------------------------------------------------------------


def test_a_task_over_its_turn_limit_is_stopped(folder: Path) -> None:
    steps: list[Step] = [[("bash", {"command": f"echo {at}"})] for at in range(9)]
    with agent(folder, *steps) as it:
        done = it("Go.", "--yes", "--max-turns", "3")
    assert done.exit_code == 1 and "stopped    3 turns were not enough" in done.stdout
    assert len(it.requests) == 4


def test_the_guard_can_be_chosen(folder: Path) -> None:
    with agent(folder, "Let me call read_file now.", "Done.") as it:
        assert it("Go.").exit_code == 0 and len(it.requests) == 2
        assert it("Go.", "--guard", "none").exit_code == 0 and len(it.requests) == 3


def test_a_failed_task_can_be_resumed(folder: Path) -> None:
    with agent(folder, [EDIT], "Done.") as it:
        url, it.url = it.url, "http://127.0.0.1:9"
        down = it("Make f return 2.", "--yes")
        assert down.exit_code == 1 and "failed " in down.stdout and "127.0.0.1:9" in down.stdout
        it.url = url
        done = it("--resume", "--yes")
        assert done.exit_code == 0 and it.file == AFTER
        assert it.message_contents("user") == ["Make f return 2."]
    assert [note["status"] for note in it.notes("over")] == ["failed", "done"]


def test_a_killed_run_resumes_without_repeating_calls(folder: Path) -> None:
    started = folder / "started"
    slow = ("bash", {"command": "echo x >> started; sleep 60"})
    with agent(folder, [EDIT], [slow], "Done.") as it:
        command = [sys.executable, "-m", "rightcall", "run", "Go.", "--yes", *it.options]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
            wait_for_file(started)
            killed.kill()
        assert it("--resume", "--yes").exit_code == 0
        assert "the outcome of this call is unknown" in it.message_contents()[-1]
    assert started.read_text() == "x\n" and it.file == AFTER
    assert it.run_offline("--undo").exit_code == 0 and it.file == BEFORE


def wait_for_file(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, f"{path} is not there"
        time.sleep(0.02)


def test_the_journal_of_a_run_can_be_named_and_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    own = str(tmp_path / "own.jsonl")
    with agent(folder, "Hi.") as it:
        assert it("Go.", "--journal", own).exit_code == 0
        assert "already has a run" in failed(it("Go.", "--journal", own))
        assert it("More.", "--journal", own, "--resume").exit_code == 0
        assert it.message_contents("user") == ["Go.", "More."]
        (tmp_path / "other.txt").write_text("mine")
        assert "no journal of a run" in failed(it.run_offline("--replay", str(tmp_path / "other.txt")))
    assert os.stat(own).st_mode & 0o777 == 0o600


WRONG: dict[str, list[str]] = {
    "no task": [],
    "no earlier run": ["--resume"],
    "--replay only shows a run": ["x", "--replay", "last"],
    "does not exist": ["--replay", "nowhere.jsonl"],
    "--undo only undoes": ["x", "--undo"],
    "is not a rule": ["x", "--allow", "bash:"],
    "--local runs a model on this machine": ["x", "--local", "smollm2", "-m", "m"],
    "is not a folder": ["x", "--cwd", "nowhere"],
    "is not one of": ["x", "--guard", "strict"],
}


@pytest.mark.parametrize("message", WRONG)
def test_a_usage_error_is_one_line(folder: Path, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert message in failed(run("run", *WRONG[message]))


def test_the_task_can_come_from_standard_input(folder: Path) -> None:
    with agent(folder, "Hi.") as it:
        assert it("-", stdin="Say hi.\n").exit_code == 0
        assert it.message_contents("user") == ["Say hi."]


# -- a user at a terminal ----------------------------------------------------------------------------------------------


def start_session(it: Agent, *args: str) -> TerminalSession:
    return TerminalSession("run", *args, *it.options, RIGHTCALL_RUNS=os.environ["RIGHTCALL_RUNS"], OPENAI_API_KEY="k")


def test_permission_is_given_once_or_always_or_denied(folder: Path) -> None:
    fails = ("edit_file", {"path": "a.py", "old_text": "not there", "new_text": "x"})
    shell = [("bash", {"command": f"cat {name}"}) for name in ("a.py", "b.md", "c.md")]
    with agent(folder, [EDIT, fails], [NEW], shell, "Done.") as it, start_session(it, "Go.") as user:
        user.until("-    return 1", "+    return 2", "allow edit_file a.py", "[a]lways edit_file:*", "allow? ")
        user.type_text("y\r")
        user.until("old_text not found", "allow write_file notes/b.md", "allow? ")
        user.type_text("Call it C.md\r")
        user.until("said: Call it C.md", "allow bash $ cat a.py", "[a]lways bash:cat *", "allow? ")
        user.type_text("a\r")
        user.until("cat b.md", "cat c.md", "Done.", "done ")
        assert user.process.wait(60) == 0
    assert it.file == AFTER and os.listdir(folder) == ["a.py"]
    assert it.message_contents()[2] == "ERROR: the user did not allow write_file, and said: Call it C.md"
    assert [note["answer"] for note in it.notes("asked")] == ["yes", "no", "bash:cat *"]


@pytest.mark.parametrize(
    "typed, permission",
    [
        ("y\n", "yes"),
        (" Yes \n", "yes"),
        ("A\n", AllowRule("bash", "ls *")),
        ("always\n", AllowRule("bash", "ls *")),
        ("No\n", "no"),
        ("\n", "no"),
        ("", "no"),
        ("Write to README.md\n", Denial("Write to README.md")),
        ("  No, use B.md instead \n", Denial("No, use B.md instead")),
    ],
)
def test_only_a_short_answer_is_yes_or_no_and_any_other_words_are_kept_as_typed(
    typed: str, permission: Permission, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert ask_permission("bash $ ls", AllowRule("bash", "ls *")) == permission


def test_without_a_task_a_conversation_starts_with_undo_and_plans(folder: Path) -> None:
    with agent(folder, [EDIT], "Changed.", "A plan.", "Bye.") as it, start_session(it, "--allow", "edit_file") as user:
        user.until("type a task", "> ")
        user.type_text("Make f return 2.\r")
        user.until("Changed.", "done ", "> ")
        assert it.file == AFTER
        user.type_text("/undo\r")
        user.until("a.py is as it was", "> ")
        assert it.file == BEFORE
        user.type_text("/plan\r")
        user.until("planning: nothing is changed", "> ")
        user.type_text("And now?\r")
        user.until("A plan.", "done ", "> ")
        assert it.message_contents("user")[-1].startswith(
            "(The user took back your last change of a.py.)\nAnd now?\n\n(Plan only"
        )
        user.type_text("/what\r")
        user.until("/undo undoes", "> ")
        user.type_text("\x04")
        assert user.process.wait(60) == 0


def test_ctrl_c_stops_the_task_keeps_the_changes_and_quits_at_the_prompt(folder: Path) -> None:
    slow = ("bash", {"command": "echo x >> started; sleep 60"})
    with agent(folder, [EDIT], [slow], "Done.") as it, start_session(it, "--yes") as user:
        user.until("> ")
        user.type_text("Go.\r")
        wait_for_file(folder / "started")
        user.type_text("\x03")
        user.until("stopping", "you stopped it", "> ")
        assert user.interrupt_until_end() == 0
    assert it.file == AFTER
    assert [note["kind"] for note in it.notes("result")] == ["completed", "cancelled"]
    with agent(folder, [EDIT], [slow], "Done.") as it:
        assert it("--resume", "--yes").exit_code == 0
        assert it.message_contents("user")[-1] == "Go on with the task." and "cancelled" in it.message_contents()[-1]
    assert (folder / "started").read_text() == "x\n"


def test_ctrl_c_at_a_question_stops_the_task_and_changes_nothing(folder: Path) -> None:
    with agent(folder, [EDIT], "Done.") as it, start_session(it, "Go.") as user:
        user.until("allow? ")
        user.interrupt_until("you stopped it")
        assert user.process.wait(60) == 1
    assert it.file == BEFORE


STUCK = """
import os, signal
from rightcall.cli.run_command import JsonNotes, _run_task

class Stuck:
    def start_task(self, task): pass
    def stop(self): pass
    def items(self):
        os.kill(os.getpid(), signal.SIGINT)
        yield from iter(int, 1)

_run_task(Stuck(), JsonNotes(), "x")
"""


def test_a_second_ctrl_c_quits_a_task_that_cannot_be_stopped() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", STUCK], env=env, capture_output=True, text=True, timeout=60, preexec_fn=accept_ctrl_c
    )
    assert done.returncode == 1, done
    assert done.stderr.splitlines()[0].endswith("Ctrl-C again quits at once")
    assert "--resume continues it" in done.stderr
