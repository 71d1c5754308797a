"""`rightcall eval`: it measures what each configuration adds; rows are durable; runs can be resumed and compared.

The models are scripted, behind a server on this machine. Each has faults that one part of rightcall corrects.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rightcall.errors import CallerError
from rightcall.evaluation.case_run import CONFIGURATIONS
from rightcall.evaluation.eval_rows import RecordedRun, read_evaluation
from rightcall.evaluation.eval_tally import EvalTally, tally_json
from rightcall.evaluation.suites import find_cases, question_cases
from support.command import failed, run
from support.format_sample import selected
from support.scripted_server import scripted
from support.stub_model import start_server

Json = dict[str, Any]
LLAMA = {"/props": {"default_generation_settings": {}, "chat_template": ""}}
WANTED = {case.messages[-1]["content"]: case.wanted[0] for case in question_cases()}
NUMBERS = {text: number for number, text in enumerate(WANTED)}
KILLED = Path(__file__).parent / "support" / "killed_evaluation.py"
ANNOUNCED = "Let me call {name} for you."


def chat_response(text: str) -> Json:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}


def hermes(call: Json) -> str:
    return f"<tool_call>\n{json.dumps(call)}\n</tool_call>"


def parse_request(body: Json) -> tuple[int, Json, str]:
    """Return the number of the question, the call that answers it, and the text after the question."""
    texts = [message["content"] for message in body["messages"]]
    at = next(at for at, text in enumerate(texts) if text in WANTED)
    return NUMBERS[texts[at]], WANTED[texts[at]], "\n".join(texts[at + 1 :])


def answer_with_faults(path: str, body: Json) -> Json:
    """Answer in six ways, by the number of the question.

    Correctly; in another format; with a number as a string; in the ReAct format until the guard corrects it; without a
    call unless a grammar forces one; with an announcement until the guard corrects it.
    """
    number, call, after = parse_request(body)
    kind = number % 6
    if "grammar" in body and kind != 5:
        return chat_response(hermes(call))
    if kind == 1:
        return chat_response(f"```json\n{json.dumps(call)}\n```")
    if kind == 2:
        loose = {key: str(value) if type(value) in (int, float) else value for key, value in call["arguments"].items()}
        return chat_response(hermes({"name": call["name"], "arguments": loose}))
    if kind == 3 and "[guard: near_call]" not in after:
        return chat_response(f"Action: {call['name']}\nAction Input: {json.dumps(call['arguments'])}")
    if kind == 4 or (kind == 5 and "[guard: announced]" not in after):
        return chat_response("I cannot." if kind == 4 else ANNOUNCED.format(name=call["name"]))
    return chat_response(hermes(call))


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, list[Json]]]:
    with scripted(answer_with_faults, LLAMA) as found:
        yield found


def run_evaluation(url: str, out: Path, *more: str) -> EvalTally:
    done = run(
        "eval",
        "questions",
        "--base-url",
        url,
        "-m",
        "scripted",
        "--limit",
        "60",
        "-o",
        str(out),
        "-q",
        "--mode",
        "text",
        *more,
    )
    assert done.exit_code == 0, done.output
    return EvalTally(read_run(out).rows)


def read_run(out: Path) -> RecordedRun:
    recorded_run = read_evaluation(out)
    assert recorded_run is not None
    return recorded_run


class EvaluationOutput(NamedTuple):
    """The output of one evaluation of the faulty model: its rows, its page, and its printed JSON."""

    out: Path
    page: str
    printed: Json


@pytest.fixture(scope="module")
def evaluation_output(server: tuple[str, list[Json]], tmp_path_factory: pytest.TempPathFactory) -> EvaluationOutput:
    folder = tmp_path_factory.mktemp("measured")
    out, page = folder / "rows.jsonl", folder / "page.html"
    args = ("eval", "questions", "--base-url", server[0], "-m", "m", "--limit", "60", "--mode", "text", "-q")
    done = run(*args, "-o", str(out), "--json", "--html", str(page))
    assert done.exit_code == 0, done.output
    return EvaluationOutput(out, page.read_text("utf-8"), json.loads(done.stdout))


def test_each_configuration_adds_correct_calls(evaluation_output: EvaluationOutput) -> None:
    tally = EvalTally(read_run(evaluation_output.out).rows)
    right = [tally.share(name, "right_arguments").part for name in CONFIGURATIONS]
    assert tally.configurations == list(CONFIGURATIONS)
    assert right == sorted(set(right)) and right[-1] == 60, "every one adds something"
    assert all(not step.lost for step in tally.steps())


def test_configurations_with_the_same_request_share_one_answer(tmp_path: Path) -> None:
    with scripted(lambda path, body: chat_response("No."), LLAMA) as (url, requests):
        rows = tmp_path / "rows.jsonl"
        args = (
            "eval",
            "questions",
            "--base-url",
            url,
            "-m",
            "m",
            "--limit",
            "3",
            "--mode",
            "text",
            "-o",
            str(rows),
            "-q",
        )
        assert run(*args, "-c", "bare,parse,repair,nudge").exit_code == 0
        assert len(requests) == 3
        assert {row.turns for row in read_run(rows).rows} == {1} and len(read_run(rows).rows) == 12
        assert run(*args, "-c", "bare", "--runs", "2").exit_code == 0
        assert len(requests) == 9


def test_the_bare_configuration_gets_tool_results_and_further_turns(tmp_path: Path) -> None:
    def correct_after_error(path: str, body: Json) -> Json:
        _, call, after = parse_request(body)
        return chat_response(
            hermes(call if "is not declared" in after or "no tool" in after else {**call, "name": "none_such"})
        )

    with scripted(correct_after_error, LLAMA) as (url, _):
        tally = run_evaluation(url, tmp_path / "rows.jsonl", "-c", "bare,full")
    assert [tally.share(name, "right_arguments").rate for name in ("bare", "full")] == [1.0, 1.0]
    assert {row.turns for row in tally.select_rows("bare")} == {2}


def test_a_call_rejected_by_the_guard_is_not_counted(tmp_path: Path) -> None:
    def call_twice(path: str, body: Json) -> Json:
        call = parse_request(body)[1]
        return chat_response(hermes(call) + hermes(call))

    with scripted(call_twice, LLAMA) as (url, _):
        tally = run_evaluation(url, tmp_path / "rows.jsonl", "-c", "bare,full", "--limit", "4")
    assert [tally.share(name, "right_tool").part for name in ("bare", "full")] == [0, 4]
    assert [tally.share(name, "valid").part for name in ("bare", "full")] == [4, 4]


def test_a_server_without_grammars_is_measured_without_the_grammar_configuration(tmp_path: Path) -> None:
    with scripted(answer_with_faults) as (url, _):
        args = ("eval", "questions", "--base-url", url, "-m", "m", "--limit", "6", "--mode", "text")
        done = run(*args, "-o", str(tmp_path / "rows.jsonl"))
        assert "does not support grammars" in done.stderr
        assert EvalTally(read_run(tmp_path / "rows.jsonl").rows).configurations == [
            name for name in CONFIGURATIONS if name != "+grammar"
        ]
        assert "leave out +grammar, full" in failed(run(*args, "-q", "-c", "bare,grammar,full"))


def test_tasks_are_scored_by_their_effects(tmp_path: Path) -> None:
    from rightcall.evaluation.suites import find_cases

    cases = {case.messages[-1]["content"]: case for case in find_cases(["tasks"])}

    def answer_correctly(path: str, body: Json) -> Json:
        """Make the next expected call; report completion when all calls were made."""
        texts = [message["content"] for message in body["messages"]]
        case = next(cases[text] for text in texts if text in cases)
        calls_made = sum(message["role"] == "assistant" for message in body["messages"])
        if calls_made >= len(case.wanted):
            return chat_response("It is done.")
        wanted = case.wanted[calls_made]
        given = {name: next(iter(comparisons.values())) for name, comparisons in wanted["arguments"].items()}
        return chat_response(hermes({"name": wanted["name"], "arguments": given}))

    with scripted(answer_correctly, LLAMA) as (url, _):
        out = tmp_path / "rows.jsonl"
        done = run("eval", "tasks", "--base-url", url, "-m", "m", "-c", "bare", "--mode", "text", "-o", str(out), "-q")
        assert done.exit_code == 0, done.output
    tally = EvalTally(read_run(out).rows)
    assert len(tally.select_rows("bare")) == len(cases) == 52
    assert tally.share("bare", "completed").rate == 1.0 and tally.share("bare", "irrelevance").rate == 1.0


# -- user-defined rows -------------------------------------------------------------------------------------------------

LOOK: Json = {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "string"}}}}
FUNCTION: Json = {
    "name": "look",
    "description": "",
    "parameters": {"type": "dict", "properties": {"at": {"type": "string"}}, "required": ["at"]},
}
OWN: list[Json] = [
    {"id": "a", "question": "Look at A.", "tools": [LOOK], "calls": [{"name": "look", "arguments": {"at": "A"}}]},
    {"id": "b", "question": "Hello.", "tools": [LOOK], "calls": []},
    {
        "messages": [
            {"role": "user", "content": "Look at C."},
            {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": '{"at": "C"}'}}]},
        ],
        "tools": [{"type": "function", "function": LOOK}],
    },
    {
        "id": "d",
        "question": [[{"role": "user", "content": "Look at D d."}]],
        "function": [FUNCTION],
        "ground_truth": [{"look": {"at": ["D d"]}}],
    },
]


def answer_look(path: str, body: Json) -> Json:
    question = body["messages"][-1]["content"]
    at = question.removeprefix("Look at ").rstrip(".")
    return chat_response(
        "Hello!" if at == question.rstrip(".") else hermes({"name": "look", "arguments": {"at": at.lower()}})
    )


def test_user_rows_are_scored_by_their_own_rules(tmp_path: Path) -> None:
    source, out = tmp_path / "mine.jsonl", tmp_path / "rows.jsonl"
    source.write_text("".join([json.dumps(row) + "\n" for row in OWN]))
    with scripted(answer_look, LLAMA) as (url, _):
        args = ("--base-url", url, "-m", "m", "-c", "bare", "--mode", "text", "-o", str(out), "-q")
        assert run("eval", str(source), *args).exit_code == 0
    verdicts = {row.case: row.verdict for row in read_run(out).rows}
    assert verdicts["mine/a"].right_tool and not verdicts["mine/a"].right_arguments
    assert verdicts["mine/b"].irrelevance and verdicts["mine/line-3"].valid
    assert verdicts["mine/d"].right_arguments, "the leaderboard compares without case"


@pytest.mark.parametrize(
    "line, why",
    [
        ("{", "not JSON"),
        ('{"question": "Hi"}', "no 'calls'"),
        ('{"messages": [{"role": "user", "content": "Hi"}], "tools": []}', "neither `calls` nor"),
        ('{"question": "Hi", "calls": []}', "no 'tools'"),
        ('{"question": "Hi", "calls": "look", "tools": [{"name": "look"}]}', "a list of objects"),
        ('{"question": "Hi", "calls": [{"name": "look", "arguments": 5}], "tools": [{"name": "look"}]}', "an object"),
        ('{"question": "Hi", "calls": [{"name": "look", "arguments": "{"}], "tools": [{"name": "look"}]}', "an object"),
        ('{"question": "Hi", "calls": [{"name": "see"}], "tools": [{"name": "look"}]}', "not one of its tools"),
        ('{"messages": [5], "tools": []}', "objects that have a role"),
        ('{"messages": [], "tools": [], "calls": []}', "the case has no request"),
        ('{"id": "x", "question": [[]], "function": [], "ground_truth": [{"f": {"x": 5}}]}', "must be a list of"),
        ('{"id": "x", "question": [[]], "function": [], "ground_truth": [{}]}', "must be a list of objects"),
    ],
)
def test_an_invalid_case_is_reported_with_its_line(line: str, why: str, tmp_path: Path) -> None:
    source = tmp_path / "mine.jsonl"
    source.write_text(json.dumps(OWN[0]) + "\n" + line + "\n")
    message = failed(run("eval", str(source), "--base-url", "http://127.0.0.1:9", "-m", "m"))
    assert f"{source}:2" in message and why in message


def test_two_different_cases_with_the_same_id_are_rejected(tmp_path: Path) -> None:
    source = tmp_path / "mine.jsonl"
    rows = [{"id": "a", "question": text, "tools": [{"name": "look"}], "calls": []} for text in ("Hi", "Ho")]
    source.write_text("".join([json.dumps(row) + "\n" for row in rows]))
    with pytest.raises(CallerError, match="two different cases are called 'mine/a'"):
        find_cases([str(source)])
    source.write_text((json.dumps(rows[0]) + "\n") * 2)
    assert len(find_cases([str(source)])) == 1


@pytest.mark.parametrize("run_", [True, "x", [1], None])
def test_a_file_without_a_header_line_is_reported(
    run_: Any, evaluation_output: EvaluationOutput, tmp_path: Path
) -> None:
    lines = evaluation_output.out.read_text("utf-8").splitlines()
    head = {**json.loads(lines[0]), "run": run_}
    broken = tmp_path / "rows.jsonl"
    broken.write_text("\n".join([json.dumps(head), *lines[1:], ""]), "utf-8")
    assert f"{broken}:1: `run` is not an object" in failed(
        run("eval", "compare", str(evaluation_output.out), str(broken))
    )


def test_cases_with_changed_expectations_are_not_compared(evaluation_output: EvaluationOutput, tmp_path: Path) -> None:
    head, *lines = evaluation_output.out.read_text("utf-8").splitlines()
    rows = [{**json.loads(line), "wanted": "other"} for line in lines]
    other = tmp_path / "rows.jsonl"
    other.write_text("\n".join([head, *map(json.dumps, rows), ""]), "utf-8")
    assert "no case in common" in failed(run("eval", "compare", str(evaluation_output.out), str(other)))


# -- durable rows ------------------------------------------------------------------------------------------------------


def test_a_run_resumes_where_its_budget_ended(server: tuple[str, list[Json]], tmp_path: Path) -> None:
    url, requests = server
    out, whole = tmp_path / "rows.jsonl", tmp_path / "whole.jsonl"
    args = ("eval", "questions", "--base-url", url, "-m", "m", "--limit", "12", "--mode", "text", "-q")
    assert run(*args, "-o", str(whole)).exit_code == 0
    before = len(requests)
    first = run(*args, "-o", str(out), "--max-requests", "5")
    assert first.exit_code == 1 and "the budget is spent: " in first.stderr and "--resume continues" in first.stderr
    assert 5 <= len(requests) - before < 12
    part = read_run(out)
    assert 0 < len(part.rows) < 72 and len(part.rows) % 6 == 0
    for _ in range(2):  # Finished cases are not run again.
        assert run(*args, "-o", str(out), "--resume").exit_code == 0
        assert verdicts(out) == verdicts(whole)
    assert "had model" in failed(run(*args, "-m", "other", "-o", str(out), "--resume"), 1)
    assert "pass --out FILE" in failed(run(*args, "--resume"))


def verdicts(out: Path) -> dict[Any, Any]:
    rows = read_run(out).rows
    assert len({row.key for row in rows}) == len(rows)
    return {row.key: (row.verdict, row.turns) for row in rows}


def test_a_second_run_in_a_file_does_not_change_the_first(server: tuple[str, list[Json]], tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    run_evaluation(server[0], out, "--limit", "2", "-c", "bare")
    first = out.read_bytes()
    run_evaluation(server[0], out, "--limit", "3", "-c", "bare")
    assert out.read_bytes().startswith(first) and len(read_run(out).rows) == 3


def test_cases_of_a_failing_server_fail_and_are_retried_on_resume(tmp_path: Path) -> None:
    fails = {"now": True}

    def fail_sometimes(path: str, body: Json) -> Json:
        number, call, _ = parse_request(body)
        return {"error": {"message": "busy"}} if fails["now"] and number % 2 else chat_response(hermes(call))

    out = tmp_path / "rows.jsonl"
    with scripted(fail_sometimes, LLAMA) as (url, _):
        args = ["eval", "questions", "--base-url", url, "-m", "m", "--limit", "8", "--mode", "text", "-o", str(out)]
        args += ["-c", "bare", "--retries", "0", "-q", "--concurrency", "3"]
        done = run(*args)
        assert done.exit_code == 1 and "4 cases failed" in done.stderr and len(read_run(out).rows) == 4
        ended = run(*args, "--resume", "--max-errors", "1")
        assert ended.exit_code == 1 and "--max-errors is 1" in ended.stderr
        fails["now"] = False
        assert run(*args, "--resume").exit_code == 0
    assert EvalTally(read_run(out).rows).share("bare", "right_arguments").part == 8


# -- output ------------------------------------------------------------------------------------------------------------


def test_json_screen_and_page_have_the_same_figures(
    evaluation_output: EvaluationOutput, server: tuple[str, list[Json]]
) -> None:
    tally = EvalTally(read_run(evaluation_output.out).rows)
    for name in CONFIGURATIONS:
        share = tally.share(name, "right_arguments")
        printed = evaluation_output.printed["configurations"][name]["right_arguments"]
        assert (printed["part"], *printed["interval"]) == (share.part, *share.interval)
    assert {step["verdict"] for step in evaluation_output.printed["steps"] if step["gained"] >= 10} == {"better"}
    args = ("eval", "questions", "--base-url", server[0], "-m", "m", "--limit", "60", "--mode", "text", "-q")
    shown = run(*args, "-o", str(evaluation_output.out), "--resume").stdout
    assert "100 % right arguments, full, of 60 cases" in shown and "100 % (94-100)" in shown
    assert "+grammar" in evaluation_output.page and "What each part adds" in evaluation_output.page
    assert "<script src" not in evaluation_output.page


def test_a_rate_of_zero_is_reported(tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    with scripted(lambda path, body: chat_response("I cannot."), LLAMA) as (url, _):
        run_evaluation(url, out, "-c", "bare", "--limit", "2")
    rates = tally_json(EvalTally(read_run(out).rows))["configurations"]["bare"]
    assert (rates["right_arguments"]["part"], rates["right_arguments"]["whole"]) == (0, 2)


def test_two_evaluations_are_compared_case_by_case(server: tuple[str, list[Json]], tmp_path: Path) -> None:
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    run_evaluation(server[0], old, "-c", "bare", "--limit", "60")
    with scripted(lambda path, body: chat_response(hermes(parse_request(body)[1])), LLAMA) as (url, _):
        run_evaluation(url, new, "-c", "bare,parse", "--limit", "60")
    better = run("eval", "compare", str(old), str(new))
    assert better.exit_code == 0 and "better" in better.stdout and "bare" in better.stdout
    worse = json.loads(run("eval", "compare", str(new), str(old), "--json").stdout)
    assert {(step["verdict"], step["scope"]) for step in worse["steps"]} == {("worse", "bare")}
    assert run("eval", "compare", str(new), str(old)).exit_code == 1
    assert "two files" in failed(run("eval", "compare", str(old)))


@pytest.mark.parametrize(
    "args, why",
    [
        (["quesions"], "did you mean 'questions'?"),
        (["bfcl:nothing"], "no category 'nothing'"),
        (["questions", "-c", "bore"], "no configuration 'bore'"),
        (["questions", "--mode", "grammar"], "--mode is for configurations"),
        (["questions:none_such"], "there are no cases"),
    ],
)
def test_wrong_usage_is_reported_in_one_line(args: list[str], why: str) -> None:
    assert why in failed(run("eval", *args, "--base-url", "http://127.0.0.1:9", "-m", "m"))


def test_missing_leaderboard_cases_are_reported_with_the_download_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIGHTCALL_CACHE", str(tmp_path))
    line = failed(run("eval", "bfcl", "--base-url", "http://127.0.0.1:9", "-m", "m"))
    assert "pip download --no-deps" in line and str(tmp_path) in line


# -- kills -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("concurrency", selected([1, 4], kept=[4]))
def test_a_repeatedly_killed_evaluation_keeps_every_acknowledged_row(concurrency: int, tmp_path: Path) -> None:
    """Real processes are killed by SIGKILL at random moments for a second; RIGHTCALL_KILL_SECONDS sets the duration."""
    seconds = os.environ.get("RIGHTCALL_KILL_SECONDS", "1")
    cases = min(240, 20 * max(1, round(float(seconds) / 4)))
    server = start_server()
    try:
        url, out = f"http://127.0.0.1:{server.server_port}", tmp_path / "killed.jsonl"
        command = [sys.executable, str(KILLED), seconds, url, str(out), str(concurrency)]
        environment = {**os.environ, "RIGHTCALL_KILL_CASES": str(cases)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)
        assert done.returncode == 0, done.stderr
    finally:
        server.shutdown()
        server.server_close()
    outcome = json.loads(done.stdout)
    print(f"concurrency {concurrency}: {outcome['killed']} killed, {len(read_run(out).rows)} rows")
    assert outcome["lost"] == [] and outcome["killed"] > 0
    assert len(verdicts(out)) == 3 * cases
