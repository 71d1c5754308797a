"""The runner: scripted models with one fault each, and runs that are cancelled, killed and resumed."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightcall import Conversation, Guard, Parser, Runner, Trace, dispatch_sync, parse, run_sync, tool
from rightcall.backends import Answer, BaseBackend, Request, Streaming
from rightcall.errors import CallerError
from rightcall.guard import Intervention, required_steps, terminal_tools
from rightcall.loop.conversation import estimate_tokens, fit
from rightcall.loop.task_runner import CallRan, Over, RunJournal, RunNotes, read_notes
from rightcall.messages import history_faults
from rightcall.types import Event, Text
from rightcall.workspace import EditLog, Workspace


@tool(read_only=True)
def look(place: str) -> str:
    """Looks at a place."""
    return f"{place} is empty"


def change(place: str, to: str) -> str:
    """Changes a place."""
    if to == "bad":
        raise ValueError("that cannot be")
    return "changed"


def finish(answer: str) -> str:
    """Ends the task."""
    return answer


TOOLS = (look, change, finish)


def call(name: str, **arguments: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


class Scripted(BaseBackend):
    """A model that gives these texts in order, whatever the request; the last text is repeated."""

    def __init__(self, *texts: str) -> None:
        self.texts, self.requests = texts, list[Request]()

    def stream(self, request: Request) -> Streaming:
        return Streaming(self._events(request))

    async def _events(self, request: Request) -> AsyncGenerator[Event | Answer]:
        text = self.texts[min(len(self.requests), len(self.texts) - 1)]
        self.requests.append(request)
        parser = Parser("hermes", tools=request.toolset, ids=request.ids)
        for event in parser.events([text[:5], text[5:]]):
            yield event
        reply = parser.reply
        yield Answer(**{name: getattr(reply, name) for name in reply.__struct_fields__})


EMPTY = "has neither content nor calls"  # the fault in the message of a silent model


def roles(conversation: Conversation) -> list[str]:
    return [message["role"] for message in conversation.messages]


def test_a_task_runs_to_its_answer() -> None:
    model = Scripted(call("look", place="hall"), "The hall is empty.")
    runner = Runner(model, TOOLS, system="Be brief.")
    over = runner.run_sync("What is in the hall?")
    assert over == Over("done", "", "The hall is empty.")
    assert roles(runner.conversation) == ["system", "user", "assistant", "tool", "assistant"]
    assert runner.conversation.messages[3]["content"] == "hall is empty"
    assert (runner.conversation.spent.turns, runner.conversation.spent.calls) == (2, 1)


FAULTS: dict[str, tuple[list[str], str, str]] = {
    "an unknown tool, then right": ([call("lok", place="a"), "It is empty."], "done", "unknown_tool"),
    "a missing argument, then right": ([call("change", place="a"), "Done."], "done", "problems"),
    "never right": ([call("change", place="a")], "stopped", "malformed_budget"),
    "the same call for ever": ([call("look", place="a")], "stopped", "repeated"),
    "two calls in turn for ever": ([*[call("look", place="a"), call("look", place="b")] * 12], "stopped", "repeated"),
    "always failing": ([*[call("change", place=str(n), to="bad") for n in range(9)]], "stopped", "failing_budget"),
    "announced only": (["Let me call look now.", "It is empty."], "done", "announced"),
    "silent": ([""], "stopped", "silence"),
}


def test_one_call_at_a_time_is_requested_and_enforced() -> None:
    both = call("look", place="a") + call("change", place="a", to="b")
    model = Scripted(both, call("change", place="a", to="b"), "Done.")
    runner = Runner(model, TOOLS, parallel=False)
    assert runner.run_sync("Look, then change.").status == "done"
    assert [request.parallel for request in model.requests] == [False] * 3
    results = [message["content"] for message in runner.conversation.messages if message["role"] == "tool"]
    assert results[0] == "a is empty" and results[2] == "changed"
    assert results[1].startswith("ERROR: [guard: one_at_a_time] One call at a time")


@pytest.mark.parametrize("choice", ["required", "look"])
def test_the_tool_choice_is_requested_and_enforced_until_it_is_followed(choice: str) -> None:
    texts = ("No.", call("change", place="a", to="b"), call("look", place="a"), "It is empty.")
    model = Scripted(*texts)
    runner = Runner(model, TOOLS, choice=choice)
    assert runner.run_sync("Look.").answer == "It is empty."
    choices = [request.choice for request in model.requests]
    assert choices == ([choice, choice, choice, "auto"] if choice == "look" else [choice, choice, "auto", "auto"])
    actions = [each.action for each in runner.conversation.interventions if each.policy == "tool_choice"]
    assert actions == (["nudge", "refuse"] if choice == "look" else ["nudge"])


@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_with_one_fault_is_nudged_and_the_run_ends(fault: str) -> None:
    texts, status, policy = FAULTS[fault]
    trace = Trace()
    runner = Runner(Scripted(*texts), TOOLS, trace=trace)
    over = runner.run_sync("Look.")
    assert over.status == status
    assert policy in {each.policy for each in runner.conversation.interventions}
    assert [each for each in trace if isinstance(each, Intervention)] == runner.conversation.interventions
    assert Trace.from_json(trace.to_json()) == trace
    assert f"guard  {policy}: " in str(trace)
    assert not [each for each in history_faults(runner.conversation.messages, profile="vllm") if EMPTY not in each]


def test_required_steps_and_a_terminal_tool_apply_to_a_whole_run() -> None:
    guard = Guard.of("full").with_policies(required_steps("look", before=["finish"]), terminal_tools("finish"))
    model = Scripted(call("finish", answer="42"), call("look", place="a"), "It is 42.", call("finish", answer="42"))
    over = run_sync("Look, then finish.", model, TOOLS, guard=guard)
    assert over.status == "done"
    assert len(model.requests) == 4


def test_events_are_emitted_live_and_end_with_over() -> None:
    async def collect() -> list[Any]:
        runner = Runner(Scripted("I look." + call("look", place="a"), "Empty."), TOOLS)
        return [event async for event in runner.events("go")]

    events = asyncio.run(collect())
    kinds = [type(event).__name__ for event in events]
    assert kinds.index("Text") < kinds.index("CallEnd") < kinds.index("CallRan") < kinds.index("Over")
    assert isinstance(events[-1], Over)
    assert "".join([event.text for event in events if isinstance(event, Text)]) == "I look.Empty."
    assert [event.result.output for event in events if isinstance(event, CallRan)] == ["a is empty"]


def test_a_caller_can_run_the_steps_itself() -> None:
    runner = Runner(None, TOOLS)
    texts = iter([call("look", place="a"), "Empty."])
    runner.ask("go")
    while (request := runner.next_request()) is not None:
        judgement = runner.receive(parse(next(texts), tools=request.toolset, format="hermes", ids=request.ids))
        if judgement.calls:
            with pytest.raises(CallerError, match="no results yet"):
                runner.next_request()
            runner.give(dispatch_sync(judgement.calls, TOOLS))
    assert runner.conversation.answer == "Empty."
    with pytest.raises(CallerError, match="no model"):
        runner.run_sync("go")


def test_a_required_choice_applies_until_a_call_is_made() -> None:
    model = Scripted("No.", call("look", place="a"), "Empty.")
    over = run_sync("go", model, TOOLS, choice="required")
    assert over.answer == "Empty."
    assert [request.choice for request in model.requests] == ["required", "required", "auto"]


def test_a_cancelled_run_keeps_its_results_and_every_call_has_one() -> None:
    started = asyncio.Event()

    async def wait(place: str) -> str:
        """Waits."""
        started.set()
        await asyncio.sleep(600)
        return place

    async def cancelled() -> Runner:
        runner = Runner(Scripted(call("wait", place="a")), [wait])
        task = asyncio.create_task(runner.run("go"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return runner

    runner = asyncio.run(cancelled())
    assert runner.conversation.status == "cancelled"
    assert roles(runner.conversation) == ["user", "assistant", "tool"]
    assert "it may have done a part of its work" in runner.conversation.messages[-1]["content"]


class Hanging(Scripted):
    """A model that never answers."""

    async def _events(self, request: Request) -> AsyncGenerator[Event | Answer]:
        await asyncio.Event().wait()
        yield Text("")


def test_a_run_cancelled_during_a_request_can_be_resumed() -> None:
    async def cancelled() -> Runner:
        runner = Runner(Hanging(""), TOOLS)
        task = asyncio.create_task(runner.run("go"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return runner

    runner = asyncio.run(cancelled())
    assert (runner.conversation.status, roles(runner.conversation)) == ("cancelled", ["user"])
    runner.model = Scripted("Here.")
    assert runner.run_sync("And now?").answer == "Here."


async def never(place: str) -> str:
    """Waits for ever."""
    await asyncio.Event().wait()
    return place


@pytest.mark.parametrize("model", [Hanging(""), Scripted(call("never", place="a"))], ids=["the model", "a tool"])
def test_a_task_ends_at_its_time_limit(model: Scripted) -> None:
    runner = Runner(model, [never], seconds=0.05)
    over = runner.run_sync("go")
    assert (over.status, over.reason) == ("stopped", "the task took longer than 0.05 seconds")
    assert not history_faults(runner.conversation.messages, profile="vllm")


def test_a_run_abandoned_before_its_calls_has_results_and_can_be_resumed() -> None:
    async def left() -> Runner:
        runner = Runner(Scripted(call("lok", place="a") + call("look", place="a"), "Empty."), TOOLS)
        events = runner.events("go")
        async for event in events:
            if isinstance(event, Intervention):
                break
        await events.aclose()
        return runner

    runner = asyncio.run(left())
    assert not history_faults(runner.conversation.messages, profile="vllm")
    assert "left before it" in runner.conversation.messages[-1]["content"]
    assert runner.run_sync().answer == "Empty."


def test_a_task_with_a_time_limit_of_zero_stops() -> None:
    runner = Runner(Scripted(*[call("look", place=str(n)) for n in range(20)]), TOOLS, seconds=0)
    over = runner.run_sync("go")
    assert (over.status, over.reason) == ("stopped", "the task took longer than 0 seconds")


def test_a_new_question_resets_the_outcome_of_the_conversation() -> None:
    conversation = Conversation()
    conversation.end("stopped", "the guard stopped it", "Nothing.")
    conversation.ask("And now?")
    assert (conversation.status, conversation.reason, conversation.answer) == ("open", "", "")


def test_the_cost_of_a_conversation_is_the_sum_of_its_turns() -> None:
    conversation = Conversation()
    conversation.add(parse("One."), calls=2, seconds=1.5)
    conversation.add(parse("Two."), calls=1, seconds=2.5)
    spent = conversation.spent
    assert (spent.turns, spent.calls, spent.seconds) == (2, 3, 4.0)


def test_a_conversation_can_be_saved_as_json_and_resumed() -> None:
    runner = Runner(Scripted(call("look", place="a"), call("lok", place="b"), "Empty."), TOOLS)
    runner.run_sync("go")
    saved = json.loads(json.dumps(runner.conversation.to_json()))
    restored = Conversation.from_json(saved)
    assert restored.to_json() == runner.conversation.to_json()
    model = Scripted("Still empty.")
    assert Runner(model, TOOLS, conversation=restored).run_sync("and now?").answer == "Still empty."
    assert [message["role"] for message in model.requests[0].messages][-1] == "user"
    wrongs: list[Any] = [
        None,
        [],
        {},
        {"version": 1},
        {**saved, "messages": 5},
        {**saved, "spent": "x"},
        {**saved, "messages": [5]},
    ]
    for wrong in wrongs:
        with pytest.raises(CallerError, match="conversation"):
            Conversation.from_json(wrong)


def test_a_conversation_in_the_middle_of_a_turn_can_be_saved_and_resumed() -> None:
    """The results of rejected calls are saved; the outcome of the other calls is unknown, and they do not run again."""
    runner = Runner(None, TOOLS)
    runner.ask("go")
    request = runner.next_request()
    assert request is not None
    judgement = runner.receive(
        parse(call("lok", place="a") + call("look", place="b"), tools=TOOLS, format="hermes", ids=request.ids)
    )
    assert len(judgement.calls) == 1
    restored = Conversation.from_json(json.loads(json.dumps(runner.conversation.to_json())))
    assert roles(restored) == ["user", "assistant", "tool", "tool"]
    results = [message["content"] for message in restored.messages[2:]]
    assert results[0].startswith("ERROR: [guard: unknown_tool]") and "outcome of this call is unknown" in results[1]
    assert not history_faults(restored.messages, profile="vllm")
    assert Runner(Scripted("Empty."), TOOLS, conversation=restored).run_sync().answer == "Empty."


def test_a_journal_with_a_conversation_accepts_no_other_one(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    first = Runner(Scripted("ok"), TOOLS, journal=journal)
    first.run_sync("go")
    first.close()
    with pytest.raises(CallerError, match="has a conversation already"):
        Runner(None, TOOLS, journal=journal, conversation=Conversation())


def test_a_run_resumes_from_every_line_of_its_journal_without_repeating_calls(tmp_path: Path) -> None:
    """Wherever the program ended, each call runs at most once and the task is completed."""
    ran: list[str] = []

    @tool
    def put(place: str) -> str:
        """Puts something."""
        ran.append(place)
        return "put"

    texts = [call("put", place="a"), call("nope") + call("put", place="b"), "", call("put", place="c"), "All done."]
    journal = tmp_path / "run.jsonl"
    first = Runner(Scripted(*texts), [put], journal=journal)
    assert first.run_sync("go").answer == "All done."
    first.close()
    assert ran == ["a", "b", "c"]
    lines = journal.read_bytes().splitlines(keepends=True)
    for number in range(2, len(lines) + 1):
        cut = tmp_path / f"{number}.jsonl"
        cut.write_bytes(b"".join(lines[:number]))
        state = json.loads(lines[number - 1])["state"]
        runner = Runner(Scripted("All done."), [put], journal=cut)
        before = [message["content"] for message in runner.conversation.messages if message["role"] == "user"]
        assert before[0] == "go"
        over = runner.run_sync()
        assert (over.status, over.answer) == ("done", "All done.") and state["status"] in ("open", "done")
        assert not [each for each in history_faults(runner.conversation.messages, profile="vllm") if EMPTY not in each]
        runner.close()
    assert ran == ["a", "b", "c"]


KILLED = """
import os, signal, sys
sys.path[:0] = [{tests!r}]
from test_runner import Scripted, call, TOOLS
from rightcall import Runner
def boom(place: str) -> str:
    "Ends it."
    os.kill(os.getpid(), signal.SIGKILL)
    return place
Runner(Scripted(call("look", place="a"), call("boom", place="b")), [*TOOLS, boom], journal=sys.argv[1]).run_sync("go")
"""


def test_a_killed_run_resumes_from_its_journal(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    script = KILLED.format(tests=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", script, str(journal)], env=dict(os.environ), check=False)
    assert done.returncode == -signal.SIGKILL
    model = Scripted("I looked before I went on.")
    runner = Runner(model, TOOLS, journal=journal)
    assert roles(runner.conversation) == ["user", "assistant", "tool", "assistant", "tool"]
    assert "outcome of this call is unknown" in runner.conversation.messages[-1]["content"]
    assert runner.run_sync().answer == "I looked before I went on."
    assert Runner(None, TOOLS, journal=tmp_path / "new.jsonl").conversation.messages == []


def test_a_truncated_journal_continues_from_its_last_whole_line(tmp_path: Path) -> None:
    journal = tmp_path / "run.jsonl"
    first = Runner(Scripted(call("look", place="a"), "Empty."), TOOLS, journal=journal)
    first.run_sync("go")
    first.close()
    whole = journal.read_bytes()
    for size in range(len(whole.splitlines()[0]) + 1, len(whole), 97):
        torn = tmp_path / f"{size}.jsonl"
        torn.write_bytes(whole[:size])
        runner = Runner(Scripted("ok"), TOOLS, journal=torn)
        assert not history_faults(runner.conversation.messages, profile="vllm")
        runner.close()


RECLASSIFIED: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "text before the end of reasoning": (
        "I looked first.</think>It is empty.",
        [("reasoning", "I looked first."), ("text", "It is empty.")],
    ),
    "text that is a call of another format": (
        '[TOOL_CALLS]look{"place": "hall"}',
        [("call", "look")],
    ),
    "a call of another format after text": (
        'I look.\n[TOOL_CALLS]look{"place": "hall"}',
        [("text", "I look."), ("call", "look")],
    ),
    "a call in reasoning": (
        "<think>I look now." + call("look", place="hall") + "</think>",
        [("reasoning", "I look now."), ("call", "look")],
    ),
}


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize("kind", RECLASSIFIED)
def test_a_reply_has_the_same_notes_in_the_journal_however_it_is_split(kind: str, size: int, tmp_path: Path) -> None:
    text, expected = RECLASSIFIED[kind]
    journal = RunJournal(tmp_path / "run.jsonl")
    notes = RunNotes(journal, Conversation(), EditLog(Workspace(tmp_path).root), lambda note: None)
    for event in Parser("hermes", tools=TOOLS).events([text[at : at + size] for at in range(0, len(text), size)]):
        notes.event(event)
    notes.over("done")
    journal.close()
    found = [note for note in read_notes(tmp_path / "run.jsonl") if note["event"] != "over"]
    assert [(note["event"], note.get("text") or note.get("name")) for note in found] == expected


MESSAGES = st.lists(
    st.one_of(
        st.builds(lambda n: [{"role": "user", "content": "u" * n}], st.integers(0, 300)),
        st.builds(
            lambda n, m: [
                {"role": "assistant", "content": "", "tool_calls": [{"id": f"c{i}"} for i in range(n)]},
                *[{"role": "tool", "tool_call_id": f"c{i}", "content": "r" * m} for i in range(n)],
            ],
            st.integers(1, 3),
            st.integers(0, 3_000),
        ),
    ),
    max_size=8,
)


@settings(max_examples=100, deadline=None)
@given(groups=MESSAGES, tokens=st.integers(0, 3_000))
def test_no_call_is_separated_from_its_result_in_any_window(groups: list[list[Any]], tokens: int) -> None:
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "first"}, *itertools.chain(*groups)]
    kept = fit(messages, tokens)
    assert kept[:2] == messages[:2]
    assert kept[-1] == messages[-1] or len(kept) == len(messages)
    waiting: list[str] = []
    for message in kept:
        if message["role"] == "tool":
            assert waiting.pop(0) == message["tool_call_id"]
        else:
            assert not waiting
            waiting = [each["id"] for each in message.get("tool_calls", ())]
    assert not waiting
    if estimate_tokens(messages) <= tokens:
        assert kept == messages


def test_the_last_user_message_is_always_kept() -> None:
    turns = [{"role": "assistant", "content": "x" * 400}] * 300
    talk = [{"role": "user", "content": "first"}, *turns, {"role": "user", "content": "now this"}, *turns]
    kept = fit([*talk, {"role": "user", "content": "[guard: silence] Your reply was empty."}], 2_000)
    assert estimate_tokens(kept) <= 2_000
    assert [message["content"] for message in kept if message["role"] == "user"][::2] == ["first", "now this"]


def test_a_window_over_a_long_history_is_counted_only_a_few_times() -> None:
    counted: list[int] = []

    def count(messages: Any) -> int:
        counted.append(len(messages))
        return estimate_tokens(messages)

    fit([{"role": "user", "content": "x" * 40}] * 5_000, 500, count=count, summarise=lambda gone: "s" * 4_000)
    assert len(counted) < 40


def test_omitted_messages_can_be_summarised() -> None:
    old = [{"role": "assistant", "content": "x" * 4_000}] * 6
    messages = [{"role": "user", "content": "go"}, *old, {"role": "user", "content": "now"}]
    kept = fit(messages, 3_000, summarise=lambda gone: f"{len(gone)} messages of x")
    assert kept[1] == {"role": "user", "content": "4 messages of x"}
    assert estimate_tokens(kept) <= 3_000


@pytest.mark.parametrize("size", [0, 10, 3_000, 6_000, 9_000])
def test_a_long_summary_replaces_as_many_more_turns_as_it_needs_room(size: int) -> None:
    old = [{"role": "assistant", "content": f"{at} " + "x" * 1_000} for at in range(20)]
    messages = [{"role": "user", "content": "go"}, *old, {"role": "user", "content": "now"}]
    kept = fit(messages, 4_000, summarise=lambda gone: f"{len(gone)} left out" + "s" * size)
    count = 22 - (len(kept) - 1)
    assert kept == [messages[0], {"role": "user", "content": f"{count} left out" + "s" * size}, *messages[1 + count :]]
    assert estimate_tokens(kept) <= 4_000
    assert estimate_tokens([*kept, old[count - 1]]) > 4_000, "fewer turns could be left out"


def test_every_intervention_is_an_event_of_the_surrounding_span() -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from rightcall.hooks import Spans

    seen, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(seen))
    runner = Runner(None, TOOLS, hooks=[Spans(tracer_provider=provider)])
    runner.ask("go")
    with provider.get_tracer("t").start_as_current_span("turn"):
        runner.receive(parse(call("lok", place="a"), tools=TOOLS, format="hermes"))
    (event,) = seen.get_finished_spans()[0].events
    assert event.name == "rightcall.intervention"
    assert (event.attributes or {})["rightcall.policy"] == "unknown_tool"
    seen.clear()
    runner.next_request()
    runner.receive(parse(call("lok", place="a"), tools=TOOLS, format="hermes"))
    (alone,) = seen.get_finished_spans()
    assert (alone.name, [each.name for each in alone.events]) == ("rightcall.guard", ["rightcall.intervention"])


def test_a_shortened_result_is_one_intervention() -> None:
    trace = Trace()
    call_made = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"place": "a"}'}}
    talk = Conversation(
        [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "", "tool_calls": [call_made]},
            {"role": "tool", "tool_call_id": "a", "content": "x" * 50_000},
        ]
    )
    model = Scripted(call("look", place="b"), "Empty.")
    runner = Runner(model, TOOLS, conversation=talk, trace=trace)
    assert runner.run_sync().answer == "Empty."
    assert [(each.policy, each.action) for each in trace if isinstance(each, Intervention)] == [
        ("oversized_results", "cut")
    ]
    assert all(len(request.messages[2]["content"]) < 20_000 for request in model.requests)
