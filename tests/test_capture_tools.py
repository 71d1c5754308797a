"""A capture over real tools: who allows a call, what its row says, and that no tool is run twice."""

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
from support.terminal import Sitting

OPEN = """
name = "rooms"
[[scenarios]]
name = "light"
request = "Light in the hall, please."
kind = "open"
"""
DONE = json_answer(chat("Done."))


def calling(*calls: tuple[str, str]) -> Answering:
    return json_answer(chat(calls=calls, finish="tool_calls"))


class House:
    """A lamp that can be switched, and a note of each time it was."""

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


def held(
    output: Path, house: House, *answers: Answering, resume: bool = False, ask: Any = None, **settings: Any
) -> list[Any]:
    async def go() -> list[Any]:
        chosen = Settings(models=("m",), mode="native", **settings)
        hooks = [Approval(ask=ask)] if ask else ()
        async with serving(*answers) as server:
            run = Capture(backend(server), [house.domain()], chosen, output, resume=resume, hooks=hooks)
            await run.go()
        return [heard.body for heard in server.posts]

    return asyncio.run(go())


def yes(invocation: Invocation) -> Permission:
    return "yes"


HALL = ("switch", '{"lamp": "hall"}')


def test_a_real_tool_is_run_and_its_result_is_in_the_row_and_goes_back(tmp_path: Path) -> None:
    house, output = House(), tmp_path / "c.jsonl"
    sent = held(output, house, calling(HALL, ("switch", '{"lamp": "attic"}')), calling(("look", "{}")), DONE, ask=yes)
    first, broken, looked, ended = rows(output)
    assert house.switched == ["hall"]
    assert first["tool_result"] == {"status": "ok", "content": {"lamp": "hall", "state": "on"}}
    assert (
        broken["tool_result"]["status"] == "error" and "there is no attic" in broken["tool_result"]["content"]["error"]
    )
    assert looked["tool_result"]["content"] == ["hall"] and ended["kind"] == OUTCOME
    assert all(row["metadata"]["provenance"]["tools"] == "real" for row in (first, broken, looked, ended))
    assert json.loads(sent[1]["messages"][3]["content"]) == {"lamp": "hall", "state": "on"}


@pytest.mark.parametrize("ask", [None, lambda invocation: "no"])
def test_tools_without_permission_do_not_run_and_reading_tools_do(tmp_path: Path, ask: Any) -> None:
    house = House()
    held(tmp_path / "c.jsonl", house, calling(HALL, ("look", "{}")), DONE, ask=ask)
    denied, looked, _ = rows(tmp_path / "c.jsonl")
    assert house.switched == [] and looked["tool_result"] == {"status": "ok", "content": []}
    assert denied["tool_result"] == {
        "status": "error",
        "content": {"error": "the user did not allow switch; ask what to do instead"},
    }


def test_a_yes_to_all_is_for_that_tool(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(invocation: Invocation) -> Permission:
        asked.append(invocation.tool.name)
        return "yes to all"

    house = House()
    held(tmp_path / "c.jsonl", house, calling(HALL, HALL), DONE, ask=ask)
    assert asked == ["switch"] and house.switched == ["hall", "hall"]


def test_a_run_that_is_gone_on_with_runs_no_tool_again(tmp_path: Path) -> None:
    house, output = House(), tmp_path / "c.jsonl"
    held(output, house, calling(HALL, ("look", "{}")), DONE, ask=yes)
    whole = output.read_bytes()
    said = journal_path(output).read_bytes().splitlines(keepends=True)
    assert [json.loads(line).get("ran") for line in said] == [None, None, "switch", "look", None]
    for kept in range(2, 5):
        output.write_bytes(b"")
        journal_path(output).write_bytes(b"".join(said[:kept]))
        again = House()
        held(output, again, DONE, resume=True, ask=yes)
        assert again.switched == (["hall"] if kept == 2 else [])
        if kept > 3:
            assert [row["tool_result"] for row in rows(output)[:2]] == [
                json.loads(line)["tool_result"] for line in whole.splitlines()[:2]
            ]


def test_scenarios_that_need_another_tool_are_refused_and_so_are_examples(tmp_path: Path) -> None:
    needs = OPEN.replace('kind = "open"', 'calls = [{ name = "dim" }]')
    with pytest.raises(BadDomain, match="there is no tool 'dim'"):
        read_domain(needs, real=House().domain().tools)
    with pytest.raises(CallerError, match="examples need the answers of stubs"):
        held(tmp_path / "c.jsonl", House(), DONE, examples=1)


def test_an_open_scenario_has_no_verdict(tmp_path: Path) -> None:
    house = House()
    held(tmp_path / "c.jsonl", house, calling(HALL), DONE, ask=yes)
    labeller = Labeller([house.domain()])
    assert all("label" not in labeller.label(row) for row in rows(tmp_path / "c.jsonl"))


def test_the_system_prompt_given_reaches_the_model_and_the_export(tmp_path: Path) -> None:
    sent = held(tmp_path / "c.jsonl", House(), calling(HALL), DONE, ask=yes, system="You look after a house.")
    assert sent[0]["messages"][0] == {"role": "system", "content": "You look after a house."}
    export([tmp_path / "c.jsonl"], tmp_path / "out.jsonl", to="trl-sft")
    (example,) = rows(tmp_path / "out.jsonl")
    assert example["messages"][0]["content"] == "You look after a house."
    held(tmp_path / "d.jsonl", House(), DONE)
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
def test_the_command_runs_the_tools_of_a_module_or_of_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("adding.py").write_text(MODULE)
    Path("sums.toml").write_text(ADDS)
    Path("system.txt").write_text("You add.\n")
    server = f"{shlex.quote(sys.executable)} {shlex.quote(str(Path(__file__).parent / 'support' / 'mcp_server.py'))}"
    given = ("--tools", "adding.py:add") if source == "tools" else ("--mcp", server)
    options = ("--model", "m", "--mode", "native", "--domains", "sums.toml", "--system", "system.txt", "-o", "c.jsonl")
    assert "pass --yes" in failed(run("capture", *options, *given)) and not Path("c.jsonl").exists()

    async def go() -> tuple[subprocess.CompletedProcess[bytes], Any]:
        async with serving(calling(("add", '{"a": 2, "b": 3}')), DONE) as model:
            asked = ("capture", "--base-url", model.url, *options, *given, "--yes", "--json")
            return await asyncio.to_thread(process, *asked), model.posts[0].body

    done, sent = asyncio.run(go())
    assert done.returncode == 0, done.stderr
    assert sent["messages"][0] == {"role": "system", "content": "You add."}
    assert json.loads(done.stdout)["models"]["m"]["right_arguments"] == 1
    assert rows(Path("c.jsonl"))[0]["tool_result"] == {"status": "ok", "content": {"sum": 5}}


def test_somebody_at_a_terminal_is_asked_before_each_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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

    def sit(url: str) -> int:
        with Sitting("capture", "--base-url", url, *options, "--tools", "adding.py:add") as seat:
            seat.until('run add {"a": 2, "b": 3}?', "allow? ")
            seat.types("yes\n")
            seat.until('run add {"a": 9, "b": 9}?', "allow? ")
            seat.types("not these\n")
            seat.until("capture complete")
            return seat.process.wait()

    async def go() -> int:
        first, second = (calling(("add", f'{{"a": {a}, "b": {b}}}')) for a, b in ((2, 3), (9, 9)))
        async with serving(first, second, DONE) as model:
            return await asyncio.to_thread(sit, model.url)

    assert asyncio.run(go()) == 0
    allowed, refused, _ = rows(Path("c.jsonl"))
    assert allowed["tool_result"] == {"status": "ok", "content": {"sum": 5}}
    assert refused["tool_result"]["status"] == "error" and "not these" in json.dumps(refused["tool_result"])
