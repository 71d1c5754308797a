"""evals/clients: what `make clients` would run fits together; and Python's SDKs do its task behind the proxy."""

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
from zoo.script import reply_to

ROOT = Path(__file__).resolve().parent.parent
if not (ROOT / "evals").is_dir():
    pytest.skip("the evals are not part of the sdist", allow_module_level=True)
sys.path.insert(0, str(ROOT / "evals"))

from clients.client import Client, filled  # noqa: E402
from clients.everyone import CLIENTS  # noqa: E402
from clients.faults import BAD, GOOD, TWELVE, faults_for  # noqa: E402
from clients.incurable import INCURABLE  # noqa: E402
from clients.installing import PROGRAMS  # noqa: E402
from clients.page import PAGE, page  # noqa: E402
from clients.result_rows import WAYS, Played, Way, add_result, keep_last, read_results  # noqa: E402
from clients.sandbox import Ended  # noqa: E402
from clients.stage import Stage  # noqa: E402
from clients.task import AFTER, ANSWER, BEFORE, Room, judged, told  # noqa: E402

PLACES = {name: f"/{name.lower()}" for name in "BASE MODEL WORK HOME FILE OLD NEW ANSWER PROGRAMS TASK".split()}
EVERY = pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)


def texts(client: Client) -> list[str]:
    pairs = [*client.env.items(), *client.files.items()]
    return [*client.command, *client.before, *[text for pair in pairs for text in pair], told(client, {})]


@EVERY
def test_a_client_has_only_places_that_are_taken(client: Client) -> None:
    left = [name for text in texts(client) for name in re.findall(r"\$([A-Z]+)", filled(text, PLACES))]
    assert set(left) <= {"ASKED"}, "$ASKED is the shell's own"


@EVERY
def test_the_program_of_a_library_is_there(client: Client) -> None:
    started = [word.removeprefix("$PROGRAMS/") for word in client.command if word.startswith("$PROGRAMS/")]
    assert [name for name in started if not (PROGRAMS / name).exists()] == []


@EVERY
def test_the_scripted_model_makes_the_calls_of_the_client_task(client: Client) -> None:
    uses = [client.reads, client.edits]
    asked = told(client, PLACES)
    tools = [{"type": "function", "function": {"name": use.name, "parameters": {}}} for use in uses]
    turns: list[dict[str, Any]] = [{"role": "user", "content": asked}]
    for use in uses:
        said = reply_to(Question("chat", {"messages": turns, "tools": tools}, stream=False))
        assert (said.call.name, said.call.arguments.keys()) == (use.name, use.arguments.keys())
        turns += [{"role": "assistant"}, {"role": "tool", "content": "x"}]


@EVERY
def test_a_client_is_run_before_servers_of_its_dialect(client: Client) -> None:
    few, every = faults_for(client), faults_for(client, everything=True)
    assert set(few) <= set(every) and len(few) <= 13
    assert all(client.api in BAD[name].apis for name in every if name != GOOD)


def test_twelve_are_twelve_where_there_are_so_many() -> None:
    some = {client.api: client for client in CLIENTS.values()}
    for api, names in TWELVE.items():
        assert (
            len(set(names)) == len(names) == min(12, len(faults_for(some[api], everything=True)) - 1 - len(INCURABLE))
        )


@pytest.mark.parametrize(
    "text, printed, status, heard, outcome",
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
def test_a_run_is_right_if_all_of_the_task_was_done(
    tmp_path: Path, text: str, printed: str, status: int | None, heard: list[str], outcome: str
) -> None:
    room = Room(tmp_path)
    room.make_ready()
    room.file.write_text(text, "utf-8")
    assert judged(room, Ended(status, printed), heard) == outcome


def test_the_page_tells_what_was_run_and_what_was_not() -> None:
    def played(fault: str, way: Way, outcome: Any) -> Played:
        return Played("codex", "9.9", fault, way, outcome, 1.0, 3, "2026-01-02", said="it | broke")

    runs = [("good", "right", "right"), ("no_id", "lost", "right"), ("leaks_bare", "out of time", "refused")]
    cells = [
        played(fault, way, outcome) for fault, *outcomes in runs for way, outcome in zip(WAYS, outcomes, strict=True)
    ]
    text = page({each.cell: each for each in cells})
    assert "| codex | 9.9 | responses | 2 | 0 | 1 |" in text
    assert "| `no_id` | X + |" in text and "| `leaks_bare` | T e |" in text
    assert "| codex | `leaks_bare` | refused | `it / broke` |" in text
    assert "codex: `leaks_hermes`" in text and "claude, copilot" in text


def test_the_page_is_made_from_the_rows_that_are_kept() -> None:
    assert PAGE.read_text("utf-8") == page(read_results()), "stale: run `make clients FLAGS=--page`"


@given(
    st.permutations([(client, fault, way) for client in ("claude", "pi") for fault in (GOOD, "no_id") for way in WAYS])
)
def test_of_each_cell_the_last_row_is_kept_and_the_order_of_runs_shows_nowhere(
    cells: list[tuple[str, str, Way]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.jsonl"
        for seconds in (1.0, 2.0):
            for client, fault, way in cells:
                add_result(Played(client, "9.9", fault, way, "right", seconds, 3, "2026-01-02"), file)
        kept = keep_last(file)
        assert {row.seconds for row in kept.values()} == {2.0} and kept == read_results(file)
        written = [
            (row["client"], row["fault"], row["way"]) for row in map(json.loads, file.read_text("utf-8").splitlines())
        ]
        assert written == sorted(cells, key=lambda cell: (cell[0] == "pi", cell[1] != GOOD, cell[2] == "with"))


# -- Python's SDKs -----------------------------------------------------------------------------------------------------

SDKS = {name: CLIENTS[name] for name in "openai-py openai-py-responses anthropic-py genai-py ollama-py".split()}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Stage() as open_stage:
        yield open_stage


@pytest.mark.parametrize("name", selected(SDKS, kept=["openai-py", "anthropic-py"]))
def test_an_sdk_does_the_task_before_a_chat_server_behind_the_proxy(name: str, stage: Stage, tmp_path: Path) -> None:
    client = SDKS[name]
    room = Room(tmp_path)
    room.make_ready()
    stage.begin()
    places = {"FILE": str(room.file), "OLD": "grey", "NEW": "green", "PROGRAMS": str(PROGRAMS)}
    env = {"BASE": stage.base("chat", through=True, settings={}), "MODEL": "leaks_hermes"}
    command = [sys.executable, *[filled(word, places) for word in client.command[1:]]]
    env |= {
        "TASK": told(client, places),
        "PYTHONWARNINGS": "ignore",
        "HOME": str(room.home),
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(command, env=env, cwd=room.work, capture_output=True, text=True, timeout=120)
    outcome = judged(room, Ended(done.returncode, done.stdout), stage.heard())
    assert outcome == "right", done.stdout[-2000:] + done.stderr[-2000:]
