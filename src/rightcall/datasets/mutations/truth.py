"""A row that may be learned from, and how a negative is written as a row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec

from rightcall.capture.captured_rows import (
    CANDIDATE,
    OUTCOME,
    SCHEMA,
    blocking_of,
    call_of,
    capture_key,
    conversation_before,
    tools_of,
)
from rightcall.datasets.label import Labeller, calls_before
from rightcall.datasets.schemas import label_of
from rightcall.formats.spec import Format
from rightcall.providers.openai_chat import assistant_message
from rightcall.tools.checks import check
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Problem

BUCKET = DOMAIN = "mutated"


class Truth:
    """A row of a capture: a call that was right, or a good answer that needed none.

    `formats` are the wire formats that broken calls are written in.
    """

    def __init__(self, row: Json, labeller: Labeller, formats: Sequence[Format]) -> None:
        self.row, self.formats = row, formats
        self._labeller = labeller

    @property
    def is_call(self) -> bool:
        """A call that is labelled valid, or has no label and nothing that blocks."""
        if self.row["kind"] != CANDIDATE or not self.call.complete or not self.tools:
            return False
        label = label_of(self.row)
        return label == "valid" if label is not None else not blocking_of(self.row) and self.fits(self.call)

    @property
    def is_answer(self) -> bool:
        """An answer that is labelled valid, in a conversation without a call."""
        return self.row["kind"] == OUTCOME and label_of(self.row) == "valid" and not calls_before(self.row)

    @cached_property
    def call(self) -> Call:
        return call_of(self.row)

    @cached_property
    def tools(self) -> Toolset:
        return tools_of(self.row)

    @cached_property
    def messages(self) -> list[Json]:
        return (
            conversation_before(self.row)
            if "messages" in self.row
            else [{"role": "user", "content": self.row["user_request"]}]
        )

    def schema(self, name: str) -> Json:
        """The parameters of a tool."""
        return next((tool.parameters for tool in self.tools if tool.name == name), {})

    def fits(self, call: Call) -> bool:
        """Would `check` let it run?"""
        return not any(problem.blocking for problem in check(call, self.tools))

    def scenario_says(self, call: Call) -> str | None:
        """The label that the row's scenario gives this call in place of its own; None if no scenario is known."""
        own = dict(self.row)
        own.pop("label", None)
        own["candidate_call"] = {"name": call.name, "arguments": call.arguments}
        own["call"] = {"id": call.id, "json": call.json, "raw": "", "complete": True}
        own |= {"problems": [], "repairs": [], "messages": self.messages}
        return label_of(self._labeller.label(own)) if self.row["kind"] == CANDIDATE else None


class Negative(msgspec.Struct, frozen=True):
    """A call that is wrong: its label, what was `changed`, and `why` that is wrong. What is not given stays as the
    truth has it."""

    call: Call
    label: str
    changed: str
    why: str
    request: str | None = None
    messages: list[Json] | None = None
    completed: list[str] | None = None
    reply: str | None = None
    format: str = ""
    problems: tuple[Problem, ...] = ()
    more: Json = {}

    def row(self, truth: Truth, kind: str, seed: str) -> Json:
        """It stays in the group of the truth, so that a split does not part them; its author is the mutation."""
        source = truth.row
        trace = {**source["proxy_trace"], "model": f"{DOMAIN}:{kind}", "domain": DOMAIN, "scenario": kind}
        trace |= {"tool_call_id": self.call.id, "response_id": None, "finish_reason": None}
        said = assistant_message("", [self.call])
        mutation = {"kind": kind, "changed": self.changed, "seed": seed, "from": capture_key(source), **self.more}
        state = source["workflow_state"]
        return {
            **{key: value for key, value in source.items() if key not in ("outcome", "label")},
            "schema_version": SCHEMA,
            "kind": CANDIDATE,
            "source_bucket": BUCKET,
            "user_request": source["user_request"] if self.request is None else self.request,
            "workflow_state": state if self.completed is None else {**state, "completed_steps": self.completed},
            "proxy_trace": trace,
            "mode": "text" if self.format else "native",
            "format": self.format,
            "messages": truth.messages if self.messages is None else self.messages,
            "candidate_call": {"name": self.call.name, "arguments": self.call.arguments},
            "tool_result": None,
            "call": {key: getattr(self.call, key) for key in ("id", "json", "raw", "complete")},
            "repairs": [],
            "problems": msgspec.to_builtins([msgspec.structs.replace(each, call=0) for each in self.problems]),
            "assistant": said,
            "reply": said if self.reply is None else self.reply,
            "metadata": _private({**source["metadata"], "mutation": mutation}),
            "label": {"label": self.label, "by": "mutate", "why": self.why[:300]},
        }


def _private(marks: Json) -> Json:
    """What was released or redacted was another row."""
    kept = {key: value for key, value in marks.items() if key not in ("release", "redaction")}
    return {**kept, "private_agent_log": True, "public_export_allowed": False}


def named(call: Call, kind: str, arguments: Json | None = None, name: str | None = None) -> Call:
    """A call like this one with an id of its own."""
    given = call.arguments if arguments is None else arguments
    return Call(name or call.name, given, id=f"{call.id or 'call'}-{kind}")


def same(one: Any, other: Any) -> bool:
    """Would a tool take one for the other? Blanks and case at the edges of a text make no other value."""
    if isinstance(one, str) and isinstance(other, str):
        return one.strip().casefold() == other.strip().casefold()
    alike = type(one) is type(other) or (_is_number(one) and _is_number(other))
    return alike and bool(one == other)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)
