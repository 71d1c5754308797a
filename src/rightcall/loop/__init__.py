"""The loop: a model, its tools and a guard, until the task is done. Here are the values of a run; `Runner`,
`Conversation` and `run` are names of `rightcall` itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.lazy_names import load_lazily

if TYPE_CHECKING:
    from rightcall.loop.conversation import Spent
    from rightcall.loop.task_runner import CallRan, Over

__all__ = ["CallRan", "Over", "Spent"]

__getattr__ = load_lazily(
    __name__,
    {
        "CallRan": "rightcall.loop.task_runner",
        "Over": "rightcall.loop.task_runner",
        "Spent": "rightcall.loop.conversation",
    },
)
