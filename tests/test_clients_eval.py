"""evals/clients: the definitions of `make clients` are consistent.

Python's SDKs complete its task through the proxy.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.format_sample import selected
from zoo.question import Question
from zoo.script import scripted_output

ROOT = Path(__file__).resolve().parent.parent
if not (ROOT / "evals").is_dir():
    pytest.skip("the evals are not part of the sdist", allow_module_level=True)
sys.path.insert(0, str(ROOT / "evals"))

from clients.client import Client, fill_placeholders  # noqa: E402
from clients.everyone import CLIENTS  # noqa: E402
from clients.faults import BAD, GOOD, TWELVE, faults_for  # noqa: E402
from clients.incurable import INCURABLE  # noqa: E402
from clients.installing import PROGRAMS  # noqa: E402
from clients.page import PAGE, page  # noqa: E402
from clients.result_rows import ROUTES, Route, RunResult, add_result, keep_last, read_results  # noqa: E402
from clients.sandbox import ProcessResult  # noqa: E402
from clients.stage import Stage  # noqa: E402
from clients.task import AFTER, ANSWER, BEFORE, ClientFolders, classify_outcome, describe_task  # noqa: E402

PLACES = {name: f"/{name.lower()}" for name in "BASE MODEL WORK HOME FILE OLD NEW ANSWER PROGRAMS TASK".split()}
EVERY_CLIENT = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)


def template_texts(client: Client) -> list[str]:
    pairs = [*client.env.items(), *client.files.items()]
    return [*client.command, *client.before, *[text for pair in pairs for text in pair], describe_task(client, {})]


@EVERY_CLIENT
def test_every_placeholder_of_a_client_is_filled(client: Client) -> None:
    placeholders = [
        name for text in template_texts(client) for name in re.findall(r"\$([A-Z]+)", fill_placeholders(text, PLACES))
    ]
    assert set(placeholders) <= {"ASKED"}, "$ASKED is the shell's own"


@EVERY_CLIENT
def test_the_programs_that_a_client_starts_exist(client: Client) -> None:
    programs = [word.removeprefix("$PROGRAMS/") for word in client.command if word.startswith("$PROGRAMS/")]
    assert [name for name in programs if not (PROGRAMS / name).exists()] == []


@EVERY_CLIENT
def test_the_scripted_model_makes_the_calls_of_the_client_task(client: Client) -> None:
    uses = [client.reads, client.edits]
    task = describe_task(client, PLACES)
    tools = [{"type": "function", "function": {"name": use.name, "parameters": {}}} for use in uses]
    turns: list[dict[str, Any]] = [{"role": "user", "content": task}]
    for use in uses:
        output = scripted_output(Question("chat", {"messages": turns, "tools": tools}, stream=False))
        assert (output.call.name, output.call.arguments.keys()) == (use.name, use.arguments.keys())
        turns += [{"role": "assistant"}, {"role": "tool", "content": "x"}]


@EVERY_CLIENT
def test_a_client_is_tested_against_faults_of_its_dialect(client: Client) -> None:
    few, every = faults_for(client), faults_for(client, everything=True)
    assert set(few) <= set(every) and len(few) <= 13
    assert all(client.api in BAD[name].apis for name in every if name != GOOD)


def test_each_dialect_has_twelve_faults_or_all_available_ones() -> None:
    some = {client.api: client for client in CLIENTS.values()}
    for api, names in TWELVE.items():
        assert (
            len(set(names)) == len(names) == min(12, len(faults_for(some[api], everything=True)) - 1 - len(INCURABLE))
        )


@pytest.mark.parametrize(
    "text, printed, status, sent_texts, outcome",
    [
        (AFTER, ANSWER, 0, [BEFORE], "right"),
        (AFTER, ANSWER, 1, [BEFORE], "ended badly"),
        (AFTER, ANSWER, None, [BEFORE], "ended badly"),
        (AFTER, ANSWER, 0, ["grey"], "lost"),
        (AFTER, "done", 0, [BEFORE], "lost"),
        (BEFORE, ANSWER, 0, [BEFORE], "refused"),
        (BEFORE, "", None, [], "out of time"),
    ],
)
def test_a_run_is_judged_by_the_edited_file_and_the_printed_answer(
    tmp_path: Path, text: str, printed: str, status: int | None, sent_texts: list[str], outcome: str
) -> None:
    room = ClientFolders(tmp_path)
    room.prepare()
    room.file.write_text(text, "utf-8")
    assert classify_outcome(room, ProcessResult(status, printed), sent_texts) == outcome


def test_the_page_lists_the_runs_and_the_missing_clients() -> None:
    def run_row(fault: str, way: Route, outcome: Any) -> RunResult:
        return RunResult("codex", "9.9", fault, way, outcome, 1.0, 3, "2026-01-02", said="it | broke")

    runs = [("good", "right", "right"), ("no_id", "lost", "right"), ("leaks_bare", "out of time", "refused")]
    cells = [
        run_row(fault, way, outcome) for fault, *outcomes in runs for way, outcome in zip(ROUTES, outcomes, strict=True)
    ]
    text = page({each.cell: each for each in cells})
    assert "| codex | 9.9 | responses | 2 | 0 | 1 |" in text
    assert "| `no_id` | X + |" in text and "| `leaks_bare` | T e |" in text
    assert "| codex | `leaks_bare` | refused | `it / broke` |" in text
    assert "codex: `leaks_hermes`" in text and "claude, copilot" in text


def test_the_committed_page_is_generated_from_the_committed_rows() -> None:
    assert PAGE.read_text("utf-8") == page(read_results()), "stale: run `make clients FLAGS=--page`"


@given(
    st.permutations(
        [(client, fault, way) for client in ("claude", "pi") for fault in (GOOD, "no_id") for way in ROUTES]
    )
)
def test_the_last_row_of_each_cell_is_kept_in_an_order_independent_of_the_runs(
    cells: list[tuple[str, str, Route]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.jsonl"
        for seconds in (1.0, 2.0):
            for client, fault, way in cells:
                add_result(RunResult(client, "9.9", fault, way, "right", seconds, 3, "2026-01-02"), file)
        last_rows = keep_last(file)
        assert {row.seconds for row in last_rows.values()} == {2.0} and last_rows == read_results(file)
        file_order = [
            (row["client"], row["fault"], row["way"]) for row in map(json.loads, file.read_text("utf-8").splitlines())
        ]
        assert file_order == sorted(cells, key=lambda cell: (cell[0] == "pi", cell[1] != GOOD, cell[2] == "with"))


# -- Python's SDKs -----------------------------------------------------------------------------------------------------

SDKS = {name: CLIENTS[name] for name in "openai-py openai-py-responses anthropic-py genai-py ollama-py".split()}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as open_stage:
        yield open_stage


@pytest.mark.parametrize("name", selected(SDKS, kept=["openai-py", "anthropic-py"]))
def test_an_sdk_completes_the_task_through_the_proxy_to_a_chat_server(name: str, stage: Stage, tmp_path: Path) -> None:
    client = SDKS[name]
    room = ClientFolders(tmp_path)
    room.prepare()
    stage.reset()
    places = {"FILE": str(room.file), "OLD": "grey", "NEW": "green", "PROGRAMS": str(PROGRAMS)}
    env = {"BASE": stage.base("chat", through=True, settings={}), "MODEL": "leaks_hermes"}
    command = [sys.executable, *[fill_placeholders(word, places) for word in client.command[1:]]]
    env |= {
        "TASK": describe_task(client, places),
        "PYTHONWARNINGS": "ignore",
        "HOME": str(room.home),
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(command, env=env, cwd=room.workspace, capture_output=True, text=True, timeout=120)
    outcome = classify_outcome(room, ProcessResult(done.returncode, done.stdout), stage.received_requests())
    assert outcome == "right", done.stdout[-2000:] + done.stderr[-2000:]
