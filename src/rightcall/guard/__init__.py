"""The guard: small policies that keep a model on its task, over a turn that is read off the messages alone.

    from rightcall.guard import Guard, Turn, required_steps

    guard = Guard.of("full").with_policies(required_steps("search", before=["answer"]))
    judged = guard.judge(Turn.of(messages, tools, reply=reply))

A policy is a function of a `Turn` that gives `Intervention`s; nothing here does any input or output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.lazy_names import on_first_use

if TYPE_CHECKING:
    from rightcall.dispatching.trace import Intervention
    from rightcall.guard.call_rules import one_at_a_time, oversized_results, tool_choice
    from rightcall.guard.intervention import GuardPolicy
    from rightcall.guard.judgement import Guard, Judgement
    from rightcall.guard.patience import failing_budget, malformed_budget, turn_budget
    from rightcall.guard.repeats import repeated
    from rightcall.guard.speech import Respond, announced, silence
    from rightcall.guard.task_order import prerequisites, required_steps, terminal_tools
    from rightcall.guard.told_calls import near_calls, problems, unknown_tool
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

__getattr__ = on_first_use(
    __name__,
    {
        "Guard": "rightcall.guard.judgement",
        "Intervention": "rightcall.dispatching.trace",
        "Judgement": "rightcall.guard.judgement",
        "PastCall": "rightcall.guard.turn",
        "PastTurn": "rightcall.guard.turn",
        "GuardPolicy": "rightcall.guard.intervention",
        "Respond": "rightcall.guard.speech",
        "Turn": "rightcall.guard.turn",
        "announced": "rightcall.guard.speech",
        "failing_budget": "rightcall.guard.patience",
        "malformed_budget": "rightcall.guard.patience",
        "near_calls": "rightcall.guard.told_calls",
        "one_at_a_time": "rightcall.guard.call_rules",
        "oversized_results": "rightcall.guard.call_rules",
        "prerequisites": "rightcall.guard.task_order",
        "problems": "rightcall.guard.told_calls",
        "repeated": "rightcall.guard.repeats",
        "required_steps": "rightcall.guard.task_order",
        "silence": "rightcall.guard.speech",
        "terminal_tools": "rightcall.guard.task_order",
        "tool_choice": "rightcall.guard.call_rules",
        "turn_budget": "rightcall.guard.patience",
        "unknown_tool": "rightcall.guard.told_calls",
    },
)
