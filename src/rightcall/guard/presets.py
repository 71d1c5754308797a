"""The three guards with a name."""

from __future__ import annotations

from collections.abc import Callable

from rightcall.guard.call_rules import one_at_a_time, oversized_results, tool_choice
from rightcall.guard.intervention import GuardPolicy
from rightcall.guard.patience import failing_budget, malformed_budget
from rightcall.guard.repeats import repeated
from rightcall.guard.speech import announced, silence
from rightcall.guard.told_calls import near_calls, problems, unknown_tool


def _parse() -> tuple[GuardPolicy, ...]:
    return malformed_budget(), unknown_tool(), problems(), near_calls()


def _full() -> tuple[GuardPolicy, ...]:
    return (
        *(failing_budget(), *_parse()),
        *(tool_choice(), one_at_a_time(), repeated(), announced(), silence(), oversized_results()),
    )


PRESETS: dict[str, Callable[[], tuple[GuardPolicy, ...]]] = {"none": tuple, "parse": _parse, "full": _full}
