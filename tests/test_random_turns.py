"""Ten thousand random turns of a runner: no exception, no lost message, and a result for every call.

`make turns` runs a million; RIGHTCALL_TURNS sets the number and RIGHTCALL_SEED the seed.
"""

import json
import os
import random
from typing import Any

from rightcall import Call, Conversation, Guard, Problem, Reasoning, Reply, Result, Runner, Text, Toolset, Trace, tool
from rightcall.guard import Intervention, Respond, prerequisites, required_steps, terminal_tools, turn_budget
from rightcall.messages import HISTORY_PROFILES, history_faults, sane

TURNS = int(os.environ.get("RIGHTCALL_TURNS", "10000"))
SEED = int(os.environ.get("RIGHTCALL_SEED", "1"))


@tool(read_only=True)
def look(place: str) -> str:
    """Looks at a place."""
    return place


@tool
def change(place: str, to: str = "") -> str:
    """Changes a place."""
    return to


@tool
def finish(answer: str) -> str:
    """Ends the task."""
    return answer


TOOLS = Toolset(look, change, finish)
OWN = (
    required_steps("look", before=["finish"]),
    prerequisites({"change": ("look", "place")}),
    terminal_tools("finish"),
    turn_budget(12),
    Respond(),
)
GUARDS = [*[Guard.of(name) for name in ("none", "parse", "full")], Guard.of("full").with_policies(*OWN), Guard(*OWN)]
NAMES = ["look", "look", "change", "change", "finish", "respond", "nope", "x" * 300]
WORDS = [
    "",
    " ",
    "ok",
    "Let me call look.",
    "I will look:",
    '{"name": "look"',
    "[guard: repeated] x",
    "é\ud800",
    "?" * 900,
]
VALUES: list[Any] = ["a", "b", "", 1, 1.0, None, True, ["a"], {"b": {"c": []}}, "[guard: problems] y", "z" * 5_000]
OUTPUTS: list[Any] = ["fine", "fine", "", "ERROR: no", "[info] x\n[guard: x] y", None, {"a": 1}, ["x"], "long " * 3_500]
KEYS = ["place", "place", "to", "answer", "message", "odd"]


def random_reply(dice: random.Random, at: int) -> Reply:
    """Return a reply that a parser could produce."""
    parts: list[Any] = []
    for _ in range(dice.choice([0, 1, 1, 2, 4])):
        kind = dice.random()
        if kind < 0.2:
            parts.append(Reasoning(dice.choice(WORDS)))
        elif kind < 0.45:
            parts.append(Text(dice.choice(WORDS)))
        else:
            parts.append(random_call(dice, f"t{at}_{len(parts)}"))
    beside = [Problem("looks_like_a_call", "it looks like a call", blocking=False)] if dice.random() < 0.1 else []
    return Reply(tuple(parts), tuple(beside), finish=dice.choice(["stop", "length", None]))


def random_call(dice: random.Random, id: str) -> Call:
    given = {dice.choice(KEYS): dice.choice(VALUES) for _ in range(dice.choice([0, 1, 1, 2]))}
    name = dice.choice(NAMES)
    wrong = dice.random() < 0.2 or name not in TOOLS
    code = "unknown_tool" if name not in TOOLS else dice.choice(["missing", "wrong_type", "truncated"])
    problems = (Problem(code, "it is wrong " + "w" * dice.choice([0, 3_000])),) if wrong else ()
    return Call(name, given, id=id, problems=problems, complete=not wrong or dice.random() < 0.5)


def test_random_turns_raise_nothing_lose_no_message_and_give_every_call_a_result() -> None:
    dice = random.Random(SEED)
    turns = 0
    while turns < TURNS:
        turns += run_conversation(dice)


def run_conversation(dice: random.Random) -> int:
    trace, turns, tasks = Trace(), 0, 0
    settings: dict[str, Any] = {
        "guard": dice.choice(GUARDS),
        "choice": dice.choice(["auto", "auto", "required", "none", "look"]),
        "parallel": dice.random() < 0.7,
        "context": dice.choice([None, None, 400]),
        "trace": trace,
    }
    runner = Runner(None, TOOLS, **settings)
    for at in range(dice.randint(1, 25)):
        before = list(runner.conversation.messages)
        if runner.conversation.status != "open" or not before:
            runner.ask(f"task {at}")
            tasks += 1
        request = runner.next_request()
        assert request is not None
        model_reply = random_reply(dice, at)
        judgement = runner.receive(model_reply)
        assert all(each.ok for each in judgement.calls) and len(judgement.calls) <= len(model_reply.attempts)
        assert runner.conversation.messages[: len(before)] == before
        if judgement.calls and dice.random() < 0.15:  # the program ends here, and another program continues
            kept = json.loads(json.dumps(runner.conversation.to_json()))
            runner = Runner(None, TOOLS, conversation=Conversation.from_json(kept), **settings)
        elif judgement.calls:
            runner.give([Result(each, dice.choice(OUTPUTS), dice.random() < 0.2) for each in judgement.calls])
        turns += 1
        answered = [each["tool_call_id"] for each in runner.conversation.messages if each["role"] == "tool"]
        assert answered[len(answered) - len(model_reply.attempts) :] == [each.id for each in model_reply.attempts]
        assert all(len(each.reason) < 2_000 for each in judgement.interventions)
        assert all(len(each.message) <= 1_200 for each in judgement.interventions if each.action not in _LONG)
    talk = runner.conversation
    assert (
        sum(message["content"].startswith("task ") for message in talk.messages if message["role"] == "user") == tasks
    )
    assert [each for each in trace if isinstance(each, Intervention)] == talk.interventions or "cut" in str(trace)
    profile = dice.choice(list(HISTORY_PROFILES))
    assert not history_faults(sane(talk.messages, profile=profile).messages, profile=profile)
    return turns


_LONG = ("answer", "cut", "end")
