"""A capture with real tools: permissions, the content of its rows, and no tool executed twice."""

import asyncio
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rightcall import Toolset, tool
from rightcall.capture.capture_journal import journal_path
from rightcall.capture.captured_rows import OUTCOME
from rightcall.capture.domain import BadDomain, Domain, read_domain
from rightcall.capture.runner import Capture
from rightcall.capture.settings import SYSTEM, Settings
from rightcall.datasets.exporting import export
from rightcall.datasets.label import Labeller
from rightcall.dispatching.hook import Invocation
from rightcall.errors import CallerError
from rightcall.workspace import Approval, Permission
from support.command import failed, process, run
from support.lamps import rows
from support.loopback import Answering, backend, chat, json_answer, serving
from support.terminal import TerminalSession

OPEN = """
name = "rooms"
[[scenarios]]
name = "light"
request = "Light in the hall, please."
kind = "open"
"""
DONE = json_answer(chat("Done."))


def tool_calls(*calls: tuple[str, str]) -> Answering:
    return json_answer(chat(calls=calls, finish="tool_calls"))


class House:
    """A house whose lamp can be switched on; it records each switch."""

    def __init__(self) -> None:
        self.switched: list[str] = []

    def domain(self) -> Domain:
        @tool
        def switch(lamp: str) -> dict[str, str]:
            """Switches a lamp on."""
            if lamp == "attic":
                raise ValueError("there is no attic")
            self.switched.append(lamp)
            return {"lamp": lamp, "state": "on"}

        @tool(read_only=True)
        def look() -> list[str]:
            """Which lamps are on."""
            return self.switched

        return read_domain(OPEN, real=Toolset([switch, look]))


def run_capture(
    output: Path, house: House, *answers: Answering, resume: bool = False, ask: Any = None, **settings: Any
) -> list[Any]:
    async def go() -> list[Any]:
        chosen = Settings(models=("m",), mode="native", **settings)
        hooks = [Approval(ask=ask)] if ask else ()
        async with serving(*answers) as server:
            run = Capture(backend(server), [house.domain()], chosen, output, resume=resume, hooks=hooks)
            await run.go()
        return [post.body for post in server.posts]

    return asyncio.run(go())


def allow(invocation: Invocation) -> Permission:
    return "yes"


HALL = ("switch", '{"lamp": "hall"}')


def test_the_result_of_a_real_tool_is_recorded_and_sent_to_the_model(tmp_path: Path) -> None:
    house, output = House(), tmp_path / "c.jsonl"
    sent = run_capture(
        output, house, tool_calls(HALL, ("switch", '{"lamp": "attic"}')), tool_calls(("look", "{}")), DONE, ask=allow
    )
    first, failed_row, look_row, outcome_row = rows(output)
    assert house.switched == ["hall"]
    assert first["tool_result"] == {"status": "ok", "content": {"lamp": "hall", "state": "on"}}
    assert (
        failed_row["tool_result"]["status"] == "error"
        and "there is no attic" in failed_row["tool_result"]["content"]["error"]
    )
    assert look_row["tool_result"]["content"] == ["hall"] and outcome_row["kind"] == OUTCOME
    assert all(row["metadata"]["provenance"]["tools"] == "real" for row in (first, failed_row, look_row, outcome_row))
    assert json.loads(sent[1]["messages"][3]["content"]) == {"lamp": "hall", "state": "on"}


@pytest.mark.parametrize("ask", [None, lambda invocation: "no"])
def test_without_permission_only_read_only_tools_run(tmp_path: Path, ask: Any) -> None:
    house = House()
    run_capture(tmp_path / "c.jsonl", house, tool_calls(HALL, ("look", "{}")), DONE, ask=ask)
    denied_row, look_row, _ = rows(tmp_path / "c.jsonl")
    assert house.switched == [] and look_row["tool_result"] == {"status": "ok", "content": []}
    assert denied_row["tool_result"] == {
        "status": "error",
        "content": {"error": "the user did not allow switch; ask what to do instead"},
    }


def test_the_permission_yes_to_all_covers_all_calls_of_that_tool(tmp_path: Path) -> None:
    asked_names: list[str] = []

    def ask(invocation: Invocation) -> Permission:
        asked_names.append(invocation.tool.name)
        return "yes to all"

    house = House()
    run_capture(tmp_path / "c.jsonl", house, tool_calls(HALL, HALL), DONE, ask=ask)
    assert asked_names == ["switch"] and house.switched == ["hall", "hall"]


def test_a_resumed_run_executes_no_tool_twice(tmp_path: Path) -> None:
    house, output = House(), tmp_path / "c.jsonl"
    run_capture(output, house, tool_calls(HALL, ("look", "{}")), DONE, ask=allow)
    whole = output.read_bytes()
    journal_lines = journal_path(output).read_bytes().splitlines(keepends=True)
    assert [json.loads(line).get("ran") for line in journal_lines] == [None, None, "switch", "look", None]
    for kept_lines in range(2, 5):
        output.write_bytes(b"")
        journal_path(output).write_bytes(b"".join(journal_lines[:kept_lines]))
        again = House()
        run_capture(output, again, DONE, resume=True, ask=allow)
        assert again.switched == (["hall"] if kept_lines == 2 else [])
        if kept_lines > 3:
            assert [row["tool_result"] for row in rows(output)[:2]] == [
                json.loads(line)["tool_result"] for line in whole.splitlines()[:2]
            ]


def test_a_resumed_run_does_not_reuse_results_of_an_earlier_run_in_the_same_journal(tmp_path: Path) -> None:
    output = tmp_path / "c.jsonl"
    run_capture(output, House(), tool_calls(HALL, ("look", "{}")), DONE, ask=allow)
    earlier_run = journal_path(output).read_bytes()
    output.write_bytes(b"")
    # The second run was killed after the model's first answer, before its tools ran.
    journal_path(output).write_bytes(earlier_run + b"".join(earlier_run.splitlines(keepends=True)[:2]))
    house = House()
    run_capture(output, house, DONE, resume=True, ask=allow)
    assert house.switched == ["hall"] and rows(output)[1]["tool_result"]["content"] == ["hall"]
    assert [row.get("kind") for row in rows(output)].count(OUTCOME) == 1


def test_scenarios_with_unknown_tools_and_examples_without_stubs_are_rejected(tmp_path: Path) -> None:
    needs = OPEN.replace('kind = "open"', 'calls = [{ name = "dim" }]')
    with pytest.raises(BadDomain, match="there is no tool 'dim'"):
        read_domain(needs, real=House().domain().tools)
    with pytest.raises(CallerError, match="examples need the answers of stubs"):
        run_capture(tmp_path / "c.jsonl", House(), DONE, examples=1)


def test_rows_of_an_open_scenario_have_no_label(tmp_path: Path) -> None:
    house = House()
    run_capture(tmp_path / "c.jsonl", house, tool_calls(HALL), DONE, ask=allow)
    labeller = Labeller([house.domain()])
    assert all("label" not in labeller.label(row) for row in rows(tmp_path / "c.jsonl"))


def test_a_custom_system_prompt_is_sent_to_the_model_and_exported(tmp_path: Path) -> None:
    sent = run_capture(
        tmp_path / "c.jsonl", House(), tool_calls(HALL), DONE, ask=allow, system="You look after a house."
    )
    assert sent[0]["messages"][0] == {"role": "system", "content": "You look after a house."}
    export([tmp_path / "c.jsonl"], tmp_path / "out.jsonl", to="trl-sft")
    (example,) = rows(tmp_path / "out.jsonl")
    assert example["messages"][0]["content"] == "You look after a house."
    run_capture(tmp_path / "d.jsonl", House(), DONE)
    assert rows(tmp_path / "d.jsonl")[0]["messages"][0]["content"] == SYSTEM


# -- the command -------------------------------------------------------------------------------------------------------

ADDS = """
name = "sums"
[[scenarios]]
name = "sum"
request = "What is two and three?"
calls = [{ name = "add", arguments = { a = { is = 2 }, b = { is = 3 } } }]
"""
MODULE = '''
def add(a: int, b: int) -> dict[str, int]:
    """Adds."""
    print("adding")
    return {"sum": a + b}
'''


@pytest.mark.parametrize("source", ["tools", "mcp"])
def test_the_command_runs_tools_of_a_module_or_an_mcp_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("adding.py").write_text(MODULE)
    Path("sums.toml").write_text(ADDS)
    Path("system.txt").write_text("You add.\n")
    server = f"{shlex.quote(sys.executable)} {shlex.quote(str(Path(__file__).parent / 'support' / 'mcp_server.py'))}"
    tool_options = ("--tools", "adding.py:add") if source == "tools" else ("--mcp", server)
    options = ("--model", "m", "--mode", "native", "--domains", "sums.toml", "--system", "system.txt", "-o", "c.jsonl")
    assert "pass --yes" in failed(run("capture", *options, *tool_options)) and not Path("c.jsonl").exists()

    async def go() -> tuple[subprocess.CompletedProcess[bytes], Any]:
        async with serving(tool_calls(("add", '{"a": 2, "b": 3}')), DONE) as model:
            arguments = ("capture", "--base-url", model.url, *options, *tool_options, "--yes", "--json")
            return await asyncio.to_thread(process, *arguments), model.posts[0].body

    done, sent = asyncio.run(go())
    assert done.returncode == 0, done.stderr
    assert sent["messages"][0] == {"role": "system", "content": "You add."}
    assert json.loads(done.stdout)["models"]["m"]["right_arguments"] == 1
    assert rows(Path("c.jsonl"))[0]["tool_result"] == {"status": "ok", "content": {"sum": 5}}


def test_a_terminal_user_is_asked_before_each_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("adding.py").write_text(MODULE)
    Path("sums.toml").write_text(ADDS)
    options = (
        "--model",
        "m",
        "--mode",
        "native",
        "--domains",
        "sums.toml",
        "-o",
        "c.jsonl",
        "--tools",
        "adding.py:add",
    )

    def answer_prompts(url: str) -> int:
        with TerminalSession("capture", "--base-url", url, *options, "--tools", "adding.py:add") as seat:
            seat.until('run add {"a": 2, "b": 3}?', "allow? ")
            seat.type_text("yes\n")
            seat.until('run add {"a": 9, "b": 9}?', "allow? ")
            seat.type_text("not these\n")
            seat.until("capture complete")
            return seat.process.wait()

    async def go() -> int:
        first, second = (tool_calls(("add", f'{{"a": {a}, "b": {b}}}')) for a, b in ((2, 3), (9, 9)))
        async with serving(first, second, DONE) as model:
            return await asyncio.to_thread(answer_prompts, model.url)

    assert asyncio.run(go()) == 0
    allowed, denied, _ = rows(Path("c.jsonl"))
    assert allowed["tool_result"] == {"status": "ok", "content": {"sum": 5}}
    assert denied["tool_result"]["status"] == "error" and "not these" in json.dumps(denied["tool_result"])
