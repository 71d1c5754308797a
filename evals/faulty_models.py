"""Scripted models that know the steps of a task and have one fault each, for evals/guard.py.

A model is a function of the messages. Its fault occurs at one step of the task and repeats each turn until the model
gets feedback about it and heeds it, with the probability `heed` and from a fixed seed. It never corrects itself without
feedback. A tool's error is feedback, too, and so is a message that the loop adds without a guard.
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


def write_calls(*steps: Step) -> str:
    return "\n".join(
        [
            f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"
            for name, arguments in steps
        ]
    )


def arguments_of(acceptable: Acceptable) -> Json:
    """Return arguments that match: the long domains accept each argument with one comparison."""
    return {name: next(iter(comparisons.values())) for name, comparisons in acceptable.arguments.items()}


class TaskPath:
    """The steps through a scenario, in order, including a first call that fails."""

    def __init__(self, domain: Domain, scenario: Scenario) -> None:
        self.domain, self.scenario = domain, scenario
        self.steps: list[Step] = [(each.name, arguments_of(each)) for each in scenario.calls]
        self.optional = [each.optional for each in scenario.calls]

    def at(self, turn: Turn) -> int:
        """Return the number of the next step, or the number of steps at the end."""
        for number, (name, arguments) in enumerate(self.steps):
            states = [call.outcome for call in turn.calls if call.name == name and call.arguments == arguments]
            if "ok" not in states and not (self.optional[number] and states):
                return number
        return len(self.steps)

    def fails(self, step: Step) -> bool:
        return self.domain.run(*step).status == "error"

    def unrelated_call(self) -> Step | None:
        """Return a call of this domain that changes state, succeeds, and is not part of this task."""
        own = {name for name, _ in self.steps}
        for other in self.domain.scenarios:
            for step in [(each.name, arguments_of(each)) for each in other.calls if each.name not in own]:
                if not self._tool(step[0]).read_only and not self.fails(step):
                    return step
        return None

    def reading_call(self, number: int) -> Step | None:
        """Return a successful read-only call, with another value for each number."""
        for tool in [tool for tool in self.domain.tools if tool.read_only]:
            step = tool.name, dict.fromkeys(tool.parameters["properties"], f"2026-05-{number:02}")
            if not self.fails(step):
                return step
        return None

    def any_call(self) -> Step:
        """Return the call of a model that must call without a reason: the last step again, or a change."""
        return self.steps[-1] if self.steps else self.unrelated_call() or ("", {})

    def _tool(self, name: str) -> Tool:
        tool = self.domain.tools.get(name)
        assert tool is not None
        return tool


class Fault(msgspec.Struct, frozen=True):
    """One fault of a model.

    `strikes` returns the step at which it occurs, or None for a task that cannot show it. `says` returns the text of
    the model; its last argument counts the occurrences from 0. A fault that is `once` ends when its calls were handled.
    `policy` is the policy against it, or "" if there is none. A model with a `window` reads only that many characters,
    and its tools give long results. A model that is `forced` writes a call in every reply, as with a grammar, and ends
    only if there is a tool to end with.
    """

    about: str
    policy: str
    strikes: Callable[[TaskPath], int | None]
    says: Callable[[TaskPath, int, int], str]
    options: Json = {}  # of the Runner
    once: bool = False
    window: int = 0
    forced: bool = False


def last_step(path: TaskPath) -> int | None:
    return len(path.steps) - 1 if path.steps else None


def last_of_several(path: TaskPath) -> int | None:
    return len(path.steps) - 1 if len(path.steps) > 1 else None


def _missing_argument(path: TaskPath, at: int, count: int) -> str:
    name, arguments = path.steps[at]
    return write_calls((name, dict(list(arguments.items())[:-1])))


def _react_call(path: TaskPath, at: int, count: int) -> str:
    name, arguments = path.steps[at]
    return f"Action: {name}\nAction Input: {json.dumps(arguments)}"


def _prose_in_call(path: TaskPath, at: int, count: int) -> str:
    name, arguments = path.steps[at]
    return f"<tool_call>{name}: {', '.join(map(str, arguments.values()))}</tool_call>"


def _wrong_value(path: TaskPath, at: int, number: int) -> Step:
    name, arguments = path.steps[at]
    key = next(key for key, value in arguments.items() if isinstance(value, str))
    return name, {**arguments, key: f"unknown {number}"}


def _step_with_wrong_value(path: TaskPath) -> int | None:
    at = last_step(path)
    if at is None or not any(isinstance(value, str) for value in path.steps[at][1].values()):
        return None
    return at if path.fails(_wrong_value(path, at, 1)) else None


def _unrelated_call(path: TaskPath, at: int, count: int) -> str:
    return write_calls(path.unrelated_call() or ("", {}))


def _second_step(path: TaskPath) -> int | None:
    return 1 if len(path.steps) > 1 and not path.optional[0] else None


def _third_step(path: TaskPath) -> int | None:
    return 2 if len(path.steps) > 2 and not any(path.optional[:2]) else None


def _skippable_step(path: TaskPath) -> int | None:
    return 0 if len(path.steps) > 1 and path.scenario.calls[-1].after and not any(path.optional) else None


def _parallel_step(path: TaskPath) -> int | None:
    if len(path.steps) < 2 or path.optional[-2] or path.scenario.calls[-2].name not in path.scenario.calls[-1].after:
        return None
    return len(path.steps) - 2


FAULTS: dict[str, Fault] = {
    "none": Fault("no fault", "", lambda path: None, lambda path, at, count: ""),
    "unknown_name": Fault(
        "calls a tool that there is none of", "unknown_tool", last_step,
        lambda path, at, count: write_calls(("execute_request", path.steps[at][1])),
    ),
    "missing_argument": Fault("leaves an argument out", "problems", last_step, _missing_argument),
    "one_or_the_other": Fault(
        "names no tool there is, then leaves an argument out, in turn", "malformed_budget", last_step,
        lambda path, at, count: (
            _missing_argument(path, at, count) if count % 2 else write_calls(("do_it", path.steps[at][1]))
        ),
    ),
    "odd_call": Fault("writes the call in a form of its own", "near_calls", last_step, _react_call),
    "hollow_call": Fault("opens a call and writes none into it", "near_calls", last_step, _prose_in_call),
    "announces": Fault(
        "announces the call and makes none", "announced", last_step,
        lambda path, at, count: f"I have all I need. Let me call {path.steps[at][0]} now.",
    ),
    "silent": Fault("says nothing", "silence", last_step, lambda path, at, count: ""),
    "answers_at_once": Fault(
        "talks, where a call is required", "tool_choice", lambda path: 0 if path.steps else None,
        lambda path, at, count: "Certainly, I can help with that.", {"choice": "required"},
    ),
    "two_at_once": Fault(
        "makes two calls at once, where one is allowed", "one_at_a_time", _parallel_step,
        lambda path, at, count: write_calls(path.steps[at], path.steps[at + 1]), {"parallel": False}, once=True,
    ),
    "repeats": Fault(
        "makes the same call again and again", "repeated", _second_step,
        lambda path, at, count: write_calls(path.steps[at - 1]),
    ),
    "goes_round": Fault(
        "goes round two calls", "repeated", _third_step,
        lambda path, at, count: write_calls(path.steps[at - 2 + count % 2]),
    ),
    "keeps_failing": Fault(
        "calls with one wrong value after the other", "failing_budget", _step_with_wrong_value,
        lambda path, at, count: write_calls(_wrong_value(path, at, count)),
    ),
    "ends_early": Fault(
        "says it is done before the last call", "required_steps", last_of_several,
        lambda path, at, count: "Done. Everything is taken care of.",
    ),
    "skips_ahead": Fault(
        "makes the last call first", "prerequisites", _skippable_step,
        lambda path, at, count: write_calls(path.steps[-1]), once=True,
    ),
    "goes_on": Fault(
        "changes something else once the task is done", "terminal_tools",
        lambda path: len(path.steps) if path.scenario.terminal and path.unrelated_call() else None, _unrelated_call,
        once=True,
    ),
    "wanders": Fault(
        "looks for ever, at something else each time", "turn_budget",
        lambda path: 0 if path.reading_call(0) else None,
        lambda path, at, count: write_calls(path.reading_call(count) or ("", {})),
    ),
    "short_memory": Fault(
        "forgets the task behind long results", "oversized_results", lambda path: None,
        lambda path, at, count: "", window=120_000,
    ),
    "must_call": Fault(
        "is made to call in every reply", "respond", lambda path: None, lambda path, at, count: "", forced=True,
    ),
    "lookalike": Fault(
        "makes another, valid call that changes something", "",
        lambda path: last_step(path) if path.unrelated_call() else None, _unrelated_call, once=True,
    ),
    "acts_unasked": Fault(
        "acts where it should ask back", "",
        lambda path: None if path.steps or not path.unrelated_call() else 0, _unrelated_call, once=True,
    ),
}  # fmt: skip


class FaultyModel:
    """A model that knows the steps and has one fault. `next_text` returns its next text."""

    def __init__(self, path: TaskPath, fault: Fault, heed: float, seed: str) -> None:
        self._way, self._fault, self._heed = path, fault, heed
        self._random = random.Random(seed)
        self._strikes_at = fault.strikes(path)
        self._count = 0
        self._is_corrected = self._strikes_at is None

    def next_text(self, messages: Sequence[Json], turn: Turn, offered: Sequence[str] = ()) -> str:
        if self._fault.window and sum(len(str(message.get("content"))) for message in messages) > self._fault.window:
            return "I have read a lot. What was the task?"
        if self._count and not self._is_corrected and _has_feedback(messages):
            self._is_corrected = self._random.random() < self._heed
        elif self._count and self._fault.once:
            self._is_corrected = True
        at = self._way.at(turn)
        if not self._is_corrected and (self._count or at == self._strikes_at):
            self._count += 1
            return self._fault.says(self._way, self._strikes_at or 0, self._count - 1)
        if at < len(self._way.steps):
            return write_calls(self._way.steps[at])
        text = "Done." if self._way.steps else "Which one do you mean?"
        if not self._fault.forced:
            return text
        return write_calls(("respond", {"message": text}) if "respond" in offered else self._way.any_call())


def _has_feedback(messages: Sequence[Json]) -> bool:
    """Return whether there is feedback about the model's last message."""
    for message in reversed(messages):
        if message["role"] == "assistant":
            return False
        text: Any = message.get("content")
        if str(text).startswith("ERROR") or "[guard: " in str(text) or message["role"] == "user":
            return True
    return False
