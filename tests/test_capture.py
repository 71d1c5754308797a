"""One capture run: its requests, its rows, their order, and its end."""

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from rightcall.capture.capture_journal import CannotResume, journal_path
from rightcall.capture.captured_rows import capture_key
from rightcall.capture.runner import CaptureFailed, Watch
from rightcall.capture.scenario_run import JournalEntry
from rightcall.capture.settings import Settings, Task, tasks
from rightcall.datasets.conversations import judge_row
from rightcall.datasets.label import Labeller
from rightcall.errors import CallerError, FileFailed
from rightcall.storage.journal import Journal
from support.lamps import LAMPS, SHOPPING, journal, rows, run_capture, run_capture_async
from support.loopback import chat, json_answer

ON = ("switch", '{"lamp": "hall", "on": true}')
LIST = ("list_lamps", "{}")
DONE = json_answer(chat("Done."))


def answer_with_calls(*calls: tuple[str, str], ids: tuple[str | None, ...] = ()) -> Any:
    """Return an answer with these calls and ids; None omits the id."""
    body = chat(calls=calls, finish="tool_calls")
    body["id"] = "chatcmpl-1"
    for entry, id in zip(body["choices"][0]["message"]["tool_calls"], ids, strict=False):
        entry.update({"id": id}) if id is not None else entry.pop("id")
    return json_answer(body)


def test_an_invalid_sibling_does_not_reject_a_valid_call(tmp_path: Path) -> None:
    body = chat(calls=(ON,), finish="tool_calls")
    body["choices"][0]["message"]["tool_calls"].append(5)
    run, _ = run_capture(tmp_path / "c.jsonl", json_answer(body), DONE, DONE)
    call = rows(tmp_path / "c.jsonl")[0]
    assert call["tool_result"]["status"] == "ok" and run.tally.total.valid == 1
    assert [(problem["blocking"], problem["call"]) for problem in call["problems"]] == [(True, None)]
    assert (
        Labeller().label(call).get("label", {}).get("label") != "deterministic_invalid" and judge_row(call) is not False
    )


class RecordingWatch(Watch):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def scenario(self, task: Task) -> None:
        self.lines.append(f"{task.number} {task.model} {task.run} {task.domain.name} {task.scenario.name}")

    def failed(self, task: Task, error: Exception) -> None:
        self.lines.append(f"failed {task.number}")

    def renamed(self, said: JournalEntry, call: int, received: str, used: str) -> None:
        self.lines.append(f"turn {said.turn} call {call}: {received} is {used}")


def test_a_call_and_its_result_become_a_row_and_the_final_text_an_outcome(tmp_path: Path) -> None:
    output = tmp_path / "a" / "b" / "c.jsonl"
    run, server = run_capture(output, answer_with_calls(ON), DONE, DONE)
    call, ended, silent = rows(output)
    assert call["schema_version"] == "rightcall-capture/v1" and call["kind"] == "tool_call_candidate"
    assert call["candidate_call"] == {"name": "switch", "arguments": {"lamp": "hall", "on": True}}
    assert call["tool_result"] == {"status": "ok", "content": {"lamp": "hall", "on": True}}
    assert call["proxy_trace"] == {
        "domain": "lamps",
        "scenario": "hall",
        "run_index": 0,
        "turn": 0,
        "call_index": 0,
        "tool_call_id": "call_0",
        "response_id": "chatcmpl-1",
        "finish_reason": "tool_calls",
        "model": "m",
    }
    assert (call["mode"], call["guard"], call["format"], call["attempt"]) == ("native", "parse", "chat", 1)
    assert call["usage"]["prompt"] == 7 and call["reply"]["tool_calls"][0]["function"]["name"] == "switch"
    assert [message["role"] for message in call["messages"]] == ["system", "user"]
    assert (ended["kind"], ended["outcome"]["ended"], ended["outcome"]["text"]) == ("outcome", "answer", "Done.")
    assert ended["workflow_state"]["completed_steps"] == ["switch"]
    assert silent["kind"] == "outcome", "a scenario without a call is data too"
    first, second, _ = [heard.body for heard in server.posts]
    assert first.keys() == {"model", "messages", "tools", "stream"} and first["stream"] is False
    assert [tool["function"]["name"] for tool in first["tools"]] == ["switch", "list_lamps"]
    result_message = {
        "role": "tool",
        "tool_call_id": "call_0",
        "name": "switch",
        "content": '{"lamp":"hall","on":true}',
    }
    assert second["messages"][-1] == result_message
    assert run.tally.total.completion_tokens == 15
    for path in (output, journal_path(output)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_row_carries_group_context_and_private_provenance(tmp_path: Path) -> None:
    compare = ("compare_products", '{"product_ids": ["SKU-HEADPHONES-1", "SKU-HEADPHONES-2"]}')
    run_capture(tmp_path / "c.jsonl", answer_with_calls(compare), DONE, domains=[SHOPPING])
    row = rows(tmp_path / "c.jsonl")[0]
    assert row["schema_version"] == "rightcall-capture/v1" and row["source_bucket"] == "real_model_call"
    assert row["example_group_id"].startswith("rightcall-shopping-compare_headphones-run-00000-")
    assert row["proxy_trace"]["domain"] == "shopping" and row["proxy_trace"]["run_index"] == 0
    assert row["metadata"]["private_agent_log"] is True and row["metadata"]["public_export_allowed"] is False
    assert row["available_tools"][-1]["name"] == "respond"


def test_every_row_of_a_turn_shows_the_state_before_its_call(tmp_path: Path) -> None:
    attic = ("switch", '{"lamp": "attic", "on": true}')
    run_capture(tmp_path / "c.jsonl", answer_with_calls(LIST, attic, LIST), DONE)
    first, second, third, ended = [row["workflow_state"] for row in rows(tmp_path / "c.jsonl")[:4]]
    assert first["completed_steps"] == [] and second["completed_steps"] == ["list_lamps"]
    assert third["recent_errors"] == ['{"error":"there is no lamp attic"}']
    assert ended["completed_steps"] == ["list_lamps", "list_lamps"]


def test_call_ids_are_kept_or_numbered_and_unique_in_a_scenario(tmp_path: Path) -> None:
    seen = RecordingWatch()
    turns = [
        answer_with_calls(LIST, LIST, LIST, ids=("a", "a", "a")),
        answer_with_calls(LIST, LIST, ids=("a", None)),
        answer_with_calls(LIST, ids=("capture_call_1_1",)),
        answer_with_calls(LIST, LIST, ids=(None, "")),
        DONE,
    ]
    _, server = run_capture(tmp_path / "c.jsonl", *turns, max_turns=5, watch=seen)
    found = [row["proxy_trace"]["tool_call_id"] for row in rows(tmp_path / "c.jsonl") if row["kind"] != "outcome"]
    assert found[:3] == ["a", "a_dup_1", "a_dup_2"] and found[3:5] == ["a_dup_3", "capture_call_1_1"]
    assert found[5:8] == ["capture_call_1_1_dup_1", "capture_call_3_0", "capture_call_3_1"]
    assert "turn 0 call 1: a is a_dup_1" in seen.lines and "turn 1 call 0: a is a_dup_3" in seen.lines
    assert [call["id"] for call in server.posts[1].body["messages"][2]["tool_calls"]] == ["a", "a_dup_1", "a_dup_2"]


def test_a_bad_call_is_a_row_with_its_problems_and_is_reported_to_the_model(tmp_path: Path) -> None:
    bad = answer_with_calls(
        ("switch", '{"lamp": "hall"}'), ("swich", "{}"), ("switch", '{"lamp": "ha'), ("list_lamps", "")
    )
    _, server = run_capture(tmp_path / "c.jsonl", bad, DONE)
    found = rows(tmp_path / "c.jsonl")[:4]
    codes = [{problem["code"] for problem in row["problems"] if problem["blocking"]} for row in found]
    assert codes[0] == {"missing"} and "unknown_tool" in codes[1] and codes[2] and codes[3] == set()
    assert [row["tool_result"]["status"] for row in found] == ["error", "error", "error", "ok"]
    results = [message["content"] for message in server.posts[1].body["messages"] if message["role"] == "tool"]
    assert "on" in results[0] and "swich" in results[1] and len(results) == 4


def test_strict_mode_fails_the_scenario_and_keeps_the_rows_before_the_bad_call(tmp_path: Path) -> None:
    seen = RecordingWatch()
    bad = answer_with_calls(LIST, ("switch", "{"), LIST)
    run, _ = run_capture(tmp_path / "c.jsonl", bad, DONE, strict=True, watch=seen)
    assert run.errors == 1 and "failed 1" in seen.lines
    assert [row["kind"] for row in rows(tmp_path / "c.jsonl")] == ["tool_call_candidate", "outcome"]


def test_without_a_guard_nothing_is_repaired_or_rescued(tmp_path: Path) -> None:
    loose = answer_with_calls(("switch", '{"lamp": "hall", "on": "true"}'))
    leaked = json_answer(chat('<tool_call>\n{"name": "list_lamps", "arguments": {}}\n</tool_call>'))
    for guard, valid in (("none", [False]), ("parse", [True, True])):
        output = tmp_path / f"{guard}.jsonl"
        run_capture(output, loose, DONE, leaked, DONE, guard=guard)
        calls = [row for row in rows(output) if row["kind"] != "outcome"]
        assert [not any(problem["blocking"] for problem in row["problems"]) for row in calls] == valid
        assert {row["guard"] for row in calls} == {guard}
    assert [repair["rule"] for repair in calls[0]["repairs"]], "a repair leaves its receipt in the row"
    outcome = rows(tmp_path / "none.jsonl")[-1]
    assert "list_lamps" in outcome["outcome"]["text"], "what was not taken as a call is text"


def test_text_mode_sends_and_reads_calls_as_text(tmp_path: Path) -> None:
    text = '<tool_call>\n{"name": "list_lamps", "arguments": {}}\n</tool_call>'
    _, server = run_capture(tmp_path / "c.jsonl", json_answer(chat(text)), DONE, mode="text", guard="none")
    row = rows(tmp_path / "c.jsonl")[0]
    assert (row["mode"], row["format"], row["reply"]) == ("text", "hermes", text)
    assert "tools" not in server.posts[0].body and "list_lamps" in server.posts[0].body["messages"][0]["content"]


def test_a_native_reply_in_text_mode_is_kept_whole(tmp_path: Path) -> None:
    run_capture(tmp_path / "c.jsonl", answer_with_calls(ON), DONE, mode="text")
    call, ended, *_ = rows(tmp_path / "c.jsonl")
    assert call["candidate_call"]["name"] == "switch"
    assert call["reply"]["tool_calls"][0]["function"]["name"] == "switch"
    assert ended["reply"] == "Done."


def test_a_scenario_that_reaches_max_turns_is_marked_in_its_outcome(tmp_path: Path) -> None:
    run_capture(tmp_path / "c.jsonl", answer_with_calls(LIST), max_turns=2)
    found = [row for row in rows(tmp_path / "c.jsonl") if row["proxy_trace"]["scenario"] == "hall"]
    assert [row["kind"] for row in found] == ["tool_call_candidate"] * 2 + ["outcome"]
    assert found[-1]["outcome"]["ended"] == "max_turns" and len({capture_key(row) for row in found}) == 3


def test_the_forge_key_is_sent_only_on_request(tmp_path: Path) -> None:
    for wanted in (False, True):
        _, server = run_capture(tmp_path / f"{wanted}.jsonl", answer_with_calls(LIST), DONE, forge_compat=wanted)
        result_message = server.posts[1].body["messages"][-1]
        assert result_message.get("_forge") == ({"tool_status": "ok"} if wanted else None)


def test_models_runs_domains_and_scenarios_are_ordered_and_each_run_has_its_seed(tmp_path: Path) -> None:
    seen = RecordingWatch()
    _, server = run_capture(tmp_path / "c.jsonl", DONE, models=("m", "n"), runs=2, seed=7, watch=seen)
    assert seen.lines == [
        *("1 m 0 lamps hall", "2 m 0 lamps which", "3 m 1 lamps hall", "4 m 1 lamps which"),
        *("5 n 0 lamps hall", "6 n 0 lamps which", "7 n 1 lamps hall", "8 n 1 lamps which"),
    ]
    assert [(heard.body["model"], heard.body["seed"]) for heard in server.posts[::2]] == [
        ("m", 7), ("m", 8), ("n", 7), ("n", 8),
    ]  # fmt: skip
    groups = [row["example_group_id"] for row in rows(tmp_path / "c.jsonl")]
    assert len(set(groups)) == 8


BAD_REQUEST = json_answer({"error": {"message": "no"}}, 400)


@pytest.mark.parametrize("most, failing", [(0, 1), (2, 3)])
def test_the_scenario_error_limit_is_exact(most: int, failing: int, tmp_path: Path) -> None:
    seen = RecordingWatch()
    with pytest.raises(CaptureFailed, match=f"{failing} scenarios failed.*--max-scenario-errors is {most}"):
        run_capture(tmp_path / "c.jsonl", BAD_REQUEST, max_scenario_errors=most, runs=5, watch=seen)
    assert sum(line.startswith("failed") for line in seen.lines) == failing


def test_failures_within_the_limit_keep_the_written_rows(tmp_path: Path) -> None:
    run, _ = run_capture(tmp_path / "c.jsonl", answer_with_calls(LIST), BAD_REQUEST, DONE, max_scenario_errors=1)
    assert run.errors == 1
    assert [row["kind"] for row in rows(tmp_path / "c.jsonl")] == ["tool_call_candidate", "outcome"]


def test_a_run_without_any_row_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CaptureFailed, match=r"all scenarios failed \(2\).*HTTP 400"):
        run_capture(tmp_path / "c.jsonl", BAD_REQUEST)


@pytest.mark.parametrize("body", [{"id": "x"}, {"choices": []}, {"choices": [{}]}])
def test_an_answer_without_choice_or_message_fails_its_scenario(body: Any, tmp_path: Path) -> None:
    with pytest.raises(CaptureFailed, match="is missing `choices` with a message"):
        run_capture(tmp_path / "c.jsonl", json_answer(body))


def test_concurrent_scenarios_give_the_same_rows(tmp_path: Path) -> None:
    run_capture(tmp_path / "one.jsonl", answer_with_calls(LIST), runs=6, max_turns=2)
    run_capture(tmp_path / "many.jsonl", answer_with_calls(LIST), runs=6, max_turns=2, concurrency=8)

    def keys(name: str) -> list[tuple[object, ...]]:
        traces = [row["proxy_trace"] for row in rows(tmp_path / name)]
        return sorted((each["run_index"], each["scenario"], each["turn"], each["call_index"]) for each in traces)

    assert keys("one.jsonl") == keys("many.jsonl")


def test_rows_are_appended_to_an_existing_file(tmp_path: Path) -> None:
    output = tmp_path / "c.jsonl"
    run_capture(output, DONE)
    run_capture(output, DONE)
    assert len(rows(output)) == 4 and sum("rightcall_journal" in line for line in journal(output)) == 2


def test_an_incomplete_line_is_rejected_without_resume(tmp_path: Path) -> None:
    output = tmp_path / "c.jsonl"
    half = b'{"schema_version":"rightcall-capture/v1","half": '
    output.write_bytes(half)
    with pytest.raises(FileFailed, match="line is incomplete"):
        run_capture(output, DONE)
    assert output.read_bytes() == half


def test_two_captures_cannot_write_to_one_file(tmp_path: Path) -> None:
    with Journal(tmp_path / "c.jsonl", alone=True), pytest.raises(FileFailed, match="another program writes to it"):
        run_capture(tmp_path / "c.jsonl", DONE)


def test_solved_examples_precede_the_request_and_do_not_contain_its_solution(tmp_path: Path) -> None:
    _, server = run_capture(tmp_path / "c.jsonl", DONE, examples=3)
    shown, other = [[message["content"] for message in heard.body["messages"]] for heard in server.posts]
    assert shown[1] == "Which lamps are there?" and shown[-1] == "Light in the hall, please."
    assert other[1] == "Light in the hall, please." and "hall" in other[3] and other[-1] == "Which lamps are there?"
    assert shown.count("Light in the hall, please.") == 1


def test_the_tally_counts_valid_and_correct_calls(tmp_path: Path) -> None:
    wrong = ("switch", '{"lamp": "kitchen", "on": true}')
    run, _ = run_capture(
        tmp_path / "c.jsonl", answer_with_calls(ON, wrong, ("nothing", "{}")), DONE, answer_with_calls(LIST), DONE
    )
    count = run.tally.total
    assert (count.scenarios, count.done, count.wanted) == (2, 1, 2)
    assert (count.calls, count.valid, count.right_tool, count.right_arguments) == (4, 3, 2, 2)


@pytest.mark.parametrize(
    "field, value",
    [("runs", 0), ("max_turns", 0), ("concurrency", 0), ("models", ()), ("models", (" ",)), ("mode", "x")],
)
def test_invalid_settings_are_rejected(field: str, value: Any) -> None:
    with pytest.raises(CallerError):
        Settings(**{"models": ("m",), field: value})


def test_every_scenario_is_a_task_exactly_once() -> None:
    found = [task.key for task in tasks(Settings(models=("a", "b", "a"), runs=3), [LAMPS, SHOPPING])]
    assert len(found) == len(set(found)) == 2 * 3 * (2 + 3)


def test_resuming_a_different_run_is_rejected(tmp_path: Path) -> None:
    run_capture(tmp_path / "c.jsonl", DONE)
    with pytest.raises(CannotResume, match="had max_turns 4, but this one has 3"):
        run_capture(tmp_path / "c.jsonl", DONE, max_turns=3, resume=True)


def test_cancelling_a_run_keeps_the_written_rows(tmp_path: Path) -> None:
    output = tmp_path / "c.jsonl"
    options: Any = {"runs": 20, "concurrency": 4}

    async def cancelled() -> None:
        begun = asyncio.Event()

        class First(Watch):
            def row(self, row: Any) -> None:
                begun.set()

        work = asyncio.create_task(run_capture_async(output, answer_with_calls(LIST), watch=First(), **options))
        await begun.wait()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(cancelled())
    before = len(rows(output))
    run, _ = run_capture(output, answer_with_calls(LIST), resume=True, **options)
    keys = [capture_key(row) for row in rows(output)]
    assert len(keys) == len(set(keys)) == 20 * 2 * 5 >= before and run.tally.rows == len(keys)


# -- messages to the model, and preserved input ------------------------------------------------------------------------


def test_valid_argument_text_is_copied_unchanged_into_the_history(tmp_path: Path) -> None:
    sent = '{ "lamp":"hall",\n  "on": true }'
    _, server = run_capture(tmp_path / "c.jsonl", answer_with_calls(("switch", sent)), DONE, DONE)
    assert server.posts[1].body["messages"][2]["tool_calls"][0]["function"]["arguments"] == sent


@pytest.mark.parametrize("sent", ['{"lamp": "hall", "on"', "[1, 2]", "x" * 5_000])
def test_the_error_of_an_unreadable_call_quotes_it_within_a_limit(tmp_path: Path, sent: str) -> None:
    _, server = run_capture(tmp_path / "c.jsonl", answer_with_calls(("switch", sent)), DONE, DONE)
    call, result = server.posts[1].body["messages"][2:4]
    assert call["tool_calls"][0]["function"]["arguments"] == "{}"
    assert len(result["content"]) < 1_200
    error = json.loads(result["content"])["error"]
    assert f"You wrote: {sent[:500]}" in error and ("(4,500 characters more)" in error) == (len(sent) > 500)


def test_only_the_first_choice_is_used(tmp_path: Path) -> None:
    body = chat(calls=(ON,), finish="tool_calls")
    other = chat(calls=(LIST, LIST), finish="tool_calls")["choices"][0]
    body["choices"].append({**other, "index": 1})
    run_capture(tmp_path / "c.jsonl", json_answer(body), DONE, DONE)
    calls = [row["candidate_call"]["name"] for row in rows(tmp_path / "c.jsonl") if row["kind"] != "outcome"]
    assert calls == ["switch"]


@pytest.mark.parametrize("id, kept", [(7, "7"), ("chatcmpl-1", "chatcmpl-1"), (None, None), (True, None), ({}, None)])
def test_a_numeric_response_id_is_kept_as_text(tmp_path: Path, id: Any, kept: str | None) -> None:
    run_capture(tmp_path / "c.jsonl", json_answer({**chat(calls=(ON,)), "id": id}), DONE, DONE)
    assert rows(tmp_path / "c.jsonl")[0]["proxy_trace"]["response_id"] == kept
