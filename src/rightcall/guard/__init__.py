"""The guard: policies that keep a model on its task, applied to a turn that is derived from the messages.

    from rightcall.guard import Guard, Turn, required_steps

    guard = Guard.of("full").with_policies(required_steps("search", before=["answer"]))
    judged = guard.judge(Turn.of(messages, tools, reply=reply))

A policy is a function that takes a `Turn` and returns `Intervention`s; this package does no input or output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.lazy_names import load_lazily

if TYPE_CHECKING:
    from rightcall.dispatching.trace import Intervention
    from rightcall.guard.judgement import Guard, Judgement
    from rightcall.guard.policies import (
        GuardPolicy,
        Respond,
        announced,
        failing_budget,
        malformed_budget,
        near_calls,
        one_at_a_time,
        oversized_results,
        problems,
        repeated,
        silence,
        tool_choice,
        turn_budget,
        unknown_tool,
    )
    from rightcall.guard.task_order import prerequisites, required_steps, terminal_tools
    from rightcall.guard.turn import PastCall, PastTurn, Turn

__all__ = [
    "Guard",
    "Intervention",
    "Judgement",
    "PastCall",
    "PastTurn",
    "GuardPolicy",
    "Respond",
    "Turn",
    "announced",
    "failing_budget",
    "malformed_budget",
    "near_calls",
    "one_at_a_time",
    "oversized_results",
    "prerequisites",
    "problems",
    "repeated",
    "required_steps",
    "silence",
    "terminal_tools",
    "tool_choice",
    "turn_budget",
    "unknown_tool",
]

__getattr__ = load_lazily(
    __name__,
    {
        "Guard": "rightcall.guard.judgement",
        "Intervention": "rightcall.dispatching.trace",
        "Judgement": "rightcall.guard.judgement",
        "PastCall": "rightcall.guard.turn",
        "PastTurn": "rightcall.guard.turn",
        "GuardPolicy": "rightcall.guard.policies",
        "Respond": "rightcall.guard.policies",
        "Turn": "rightcall.guard.turn",
        "announced": "rightcall.guard.policies",
        "failing_budget": "rightcall.guard.policies",
        "malformed_budget": "rightcall.guard.policies",
        "near_calls": "rightcall.guard.policies",
        "one_at_a_time": "rightcall.guard.policies",
        "oversized_results": "rightcall.guard.policies",
        "prerequisites": "rightcall.guard.task_order",
        "problems": "rightcall.guard.policies",
        "repeated": "rightcall.guard.policies",
        "required_steps": "rightcall.guard.task_order",
        "silence": "rightcall.guard.policies",
        "terminal_tools": "rightcall.guard.task_order",
        "tool_choice": "rightcall.guard.policies",
        "turn_budget": "rightcall.guard.policies",
        "unknown_tool": "rightcall.guard.policies",
    },
)
