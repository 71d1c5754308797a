"""Public module: hooks, budgets, time limits and output limits for the calls that `dispatch` runs.

    results = await dispatch(reply, tools, hooks=[call_budget(20)], limits=RunLimits(call=30))

A hook is a `Hook`, or a function that is asked before each call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.lazy_names import load_lazily

if TYPE_CHECKING:
    from rightcall.dispatching.bounded_output import Bounds, Pages, Redaction, spill_to
    from rightcall.dispatching.budgets import (
        Budget,
        BudgetGuard,
        BudgetHook,
        TimeBudget,
        TokenBudget,
        TokenHook,
        call_budget,
        fingerprint,
        repair_history,
        retry_class,
    )
    from rightcall.dispatching.hook import Continue, Hook, Invocation, Skip, Terminate
    from rightcall.dispatching.invoke import RunLimits
    from rightcall.dispatching.otel import Spans

__all__ = [
    "Bounds",
    "Budget",
    "BudgetGuard",
    "BudgetHook",
    "Continue",
    "Hook",
    "Invocation",
    "Pages",
    "Redaction",
    "RunLimits",
    "Skip",
    "Spans",
    "Terminate",
    "TimeBudget",
    "TokenBudget",
    "TokenHook",
    "call_budget",
    "fingerprint",
    "repair_history",
    "retry_class",
    "spill_to",
]

__getattr__ = load_lazily(
    __name__,
    {
        "Bounds": "rightcall.dispatching.bounded_output",
        "Budget": "rightcall.dispatching.budgets",
        "BudgetGuard": "rightcall.dispatching.budgets",
        "BudgetHook": "rightcall.dispatching.budgets",
        "Continue": "rightcall.dispatching.hook",
        "Hook": "rightcall.dispatching.hook",
        "Invocation": "rightcall.dispatching.hook",
        "Pages": "rightcall.dispatching.bounded_output",
        "Redaction": "rightcall.dispatching.bounded_output",
        "RunLimits": "rightcall.dispatching.invoke",
        "Skip": "rightcall.dispatching.hook",
        "Spans": "rightcall.dispatching.otel",
        "Terminate": "rightcall.dispatching.hook",
        "TimeBudget": "rightcall.dispatching.budgets",
        "TokenBudget": "rightcall.dispatching.budgets",
        "TokenHook": "rightcall.dispatching.budgets",
        "call_budget": "rightcall.dispatching.budgets",
        "fingerprint": "rightcall.dispatching.budgets",
        "repair_history": "rightcall.dispatching.budgets",
        "retry_class": "rightcall.dispatching.budgets",
        "spill_to": "rightcall.dispatching.bounded_output",
    },
)
