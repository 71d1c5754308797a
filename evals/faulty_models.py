"""Scripted models that know the way through a task and have one fault each, for evals/guard.py.

A model is a function of the messages. Its fault strikes at one step of the task and comes again each turn until the
model is told of it and heeds that: a draw with the probability `heed`, from a fixed seed. By itself it never finds out.
What it is told by a tool's own error counts as told; so does what the loop says without any guard.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rightcall.capture.domain import Acceptable, Domain, Scenario
from rightcall.guard import Turn
from rightcall.types import Json, Tool

Step = tuple[str, Json]  # the name of a tool, and arguments


def wrote(*steps: Step) -> str:
    return "\n".join(
        [f"<tool_call>\n{json.dumps({'name': name, 'arguments': given})}\n</tool_call>" for name, given in steps]
    )


def arguments_of(wanted: Acceptable) -> Json:
    """Arguments that fit: the long domains say each with one comparison."""
    return {name: next(iter(comparisons.values())) for name, comparisons in wanted.arguments.items()}


class Way:
    """The way through a scenario: its `steps` in order, a first try that fails included."""

    def __init__(self, domain: Domain, scenario: Scenario) -> None:
        self.domain, self.scenario = domain, scenario
        self.steps: list[Step] = [(each.name, arguments_of(each)) for each in scenario.calls]
        self.optional = [each.optional for each in scenario.calls]

    def at(self, turn: Turn) -> int:
        """The step that is next; as many as there are steps at the end."""
        for number, (name, given) in enumerate(self.steps):
            states = [call.outcome for call in turn.calls if call.name == name and call.arguments == given]
            if "ok" not in states and not (self.optional[number] and states):
                return number
        return len(self.steps)

    def fails(self, step: Step) -> bool:
        return self.domain.run(*step).status == "error"

    def stranger(self) -> Step | None:
        """A call of this domain that changes something, would go well, and is none of this task's."""
        own = {name for name, _ in self.steps}
        for other in self.domain.scenarios:
            for step in [(each.name, arguments_of(each)) for each in other.calls if each.name not in own]:
                if not self._tool(step[0]).read_only and not self.fails(step):
                    return step
        return None

    def look(self, number: int) -> Step | None:
        """A call that only reads and goes well, with another value each time."""
        for tool in [tool for tool in self.domain.tools if tool.read_only]:
            step = tool.name, dict.fromkeys(tool.parameters["properties"], f"2026-05-{number:02}")
            if not self.fails(step):
                return step
        return None

    def any_call(self) -> Step:
        """What is called by a model that must call and has nothing to call for: the last step again, or a change."""
        return self.steps[-1] if self.steps else self.stranger() or ("", {})

    def _tool(self, name: str) -> Tool:
        found = self.domain.tools.get(name)
        assert found is not None
        return found


class Fault(msgspec.Struct, frozen=True):
    """`strikes` gives the step at which it does, None for a task that cannot show it; `says` what is written then, the
    how-many-th time counted from 0. One that is `once` is over when its calls have run: the damage is done, or none
    was. `policy` is the one that is there for it; "" where none is. A model with a `window` reads so many characters
    and no more, and its tools answer at length. One that is `forced` writes a call in every reply, as a grammar can
    make it, and ends only where there is a tool to end with."""

    about: str
    policy: str
    strikes: Callable[[Way], int | None]
    says: Callable[[Way, int, int], str]
    options: Json = {}  # of the Runner
    once: bool = False
    window: int = 0
    forced: bool = False


def last(way: Way) -> int | None:
    return len(way.steps) - 1 if way.steps else None


def last_of_several(way: Way) -> int | None:
    return len(way.steps) - 1 if len(way.steps) > 1 else None


def _missing(way: Way, at: int, count: int) -> str:
    name, given = way.steps[at]
    return wrote((name, dict(list(given.items())[:-1])))


def _odd(way: Way, at: int, count: int) -> str:
    name, given = way.steps[at]
    return f"Action: {name}\nAction Input: {json.dumps(given)}"


def _hollow(way: Way, at: int, count: int) -> str:
    name, given = way.steps[at]
    return f"<tool_call>{name}: {', '.join(map(str, given.values()))}</tool_call>"


def _wrong(way: Way, at: int, number: int) -> Step:
    name, given = way.steps[at]
    key = next(key for key, value in given.items() if isinstance(value, str))
    return name, {**given, key: f"unknown {number}"}


def _can_be_wrong(way: Way) -> int | None:
    at = last(way)
    if at is None or not any(isinstance(value, str) for value in way.steps[at][1].values()):
        return None
    return at if way.fails(_wrong(way, at, 1)) else None


def _stranger(way: Way, at: int, count: int) -> str:
    return wrote(way.stranger() or ("", {}))


def _second(way: Way) -> int | None:
    return 1 if len(way.steps) > 1 and not way.optional[0] else None


def _third(way: Way) -> int | None:
    return 2 if len(way.steps) > 2 and not any(way.optional[:2]) else None


def _skippable(way: Way) -> int | None:
    return 0 if len(way.steps) > 1 and way.scenario.calls[-1].after and not any(way.optional) else None


def _pair(way: Way) -> int | None:
    if len(way.steps) < 2 or way.optional[-2] or way.scenario.calls[-2].name not in way.scenario.calls[-1].after:
        return None
    return len(way.steps) - 2


FAULTS: dict[str, Fault] = {
    "none": Fault("no fault", "", lambda way: None, lambda way, at, count: ""),
    "unknown_name": Fault(
        "calls a tool that there is none of", "unknown_tool", last,
        lambda way, at, count: wrote(("execute_request", way.steps[at][1])),
    ),
    "missing_argument": Fault("leaves an argument out", "problems", last, _missing),
    "one_or_the_other": Fault(
        "names no tool there is, then leaves an argument out, in turn", "malformed_budget", last,
        lambda way, at, count: _missing(way, at, count) if count % 2 else wrote(("do_it", way.steps[at][1])),
    ),
    "odd_call": Fault("writes the call in a form of its own", "near_calls", last, _odd),
    "hollow_call": Fault("opens a call and writes none into it", "near_calls", last, _hollow),
    "announces": Fault(
        "announces the call and makes none", "announced", last,
        lambda way, at, count: f"I have all I need. Let me call {way.steps[at][0]} now.",
    ),
    "silent": Fault("says nothing", "silence", last, lambda way, at, count: ""),
    "answers_at_once": Fault(
        "talks, where a call is required", "tool_choice", lambda way: 0 if way.steps else None,
        lambda way, at, count: "Certainly, I can help with that.", {"choice": "required"},
    ),
    "two_at_once": Fault(
        "makes two calls at once, where one is allowed", "one_at_a_time", _pair,
        lambda way, at, count: wrote(way.steps[at], way.steps[at + 1]), {"parallel": False}, once=True,
    ),
    "repeats": Fault(
        "makes the same call again and again", "repeated", _second, lambda way, at, count: wrote(way.steps[at - 1])
    ),
    "goes_round": Fault(
        "goes round two calls", "repeated", _third, lambda way, at, count: wrote(way.steps[at - 2 + count % 2])
    ),
    "keeps_failing": Fault(
        "calls with one wrong value after the other", "failing_budget", _can_be_wrong,
        lambda way, at, count: wrote(_wrong(way, at, count)),
    ),
    "ends_early": Fault(
        "says it is done before the last call", "required_steps", last_of_several,
        lambda way, at, count: "Done. Everything is taken care of.",
    ),
    "skips_ahead": Fault(
        "makes the last call first", "prerequisites", _skippable,
        lambda way, at, count: wrote(way.steps[-1]), once=True,
    ),
    "goes_on": Fault(
        "changes something else once the task is done", "terminal_tools",
        lambda way: len(way.steps) if way.scenario.terminal and way.stranger() else None, _stranger, once=True,
    ),
    "wanders": Fault(
        "looks for ever, at something else each time", "turn_budget",
        lambda way: 0 if way.look(0) else None, lambda way, at, count: wrote(way.look(count) or ("", {})),
    ),
    "short_memory": Fault(
        "forgets the task behind long results", "oversized_results", lambda way: None,
        lambda way, at, count: "", window=120_000,
    ),
    "must_call": Fault(
        "is made to call in every reply", "respond", lambda way: None, lambda way, at, count: "", forced=True,
    ),
    "lookalike": Fault(
        "makes another, valid call that changes something", "",
        lambda way: last(way) if way.stranger() else None, _stranger, once=True,
    ),
    "acts_unasked": Fault(
        "acts where it should ask back", "",
        lambda way: None if way.steps or not way.stranger() else 0, _stranger, once=True,
    ),
}  # fmt: skip


class FaultyModel:
    """A model that knows the way and has this fault. `say` gives what it writes next."""

    def __init__(self, way: Way, fault: Fault, heed: float, seed: str) -> None:
        self._way, self._fault, self._heed = way, fault, heed
        self._random = random.Random(seed)
        self._strikes_at = fault.strikes(way)
        self._count = 0
        self._healed = self._strikes_at is None

    def say(self, messages: Sequence[Json], turn: Turn, offered: Sequence[str] = ()) -> str:
        if self._fault.window and sum(len(str(message.get("content"))) for message in messages) > self._fault.window:
            return "I have read a lot. What was the task?"
        if self._count and not self._healed and _is_told(messages):
            self._healed = self._random.random() < self._heed
        elif self._count and self._fault.once:
            self._healed = True
        at = self._way.at(turn)
        if not self._healed and (self._count or at == self._strikes_at):
            self._count += 1
            return self._fault.says(self._way, self._strikes_at or 0, self._count - 1)
        if at < len(self._way.steps):
            return wrote(self._way.steps[at])
        said = "Done." if self._way.steps else "Which one do you mean?"
        if not self._fault.forced:
            return said
        return wrote(("respond", {"message": said}) if "respond" in offered else self._way.any_call())


def _is_told(messages: Sequence[Json]) -> bool:
    """Was anything said against what the model last did?"""
    for message in reversed(messages):
        if message["role"] == "assistant":
            return False
        said: Any = message.get("content")
        if str(said).startswith("ERROR") or "[guard: " in str(said) or message["role"] == "user":
            return True
    return False
