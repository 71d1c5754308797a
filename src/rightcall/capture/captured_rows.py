"""The row of a capture, `rightcall-capture/v1`: one call of a model, or how a conversation ended, with everything that
training needs. Rows are plain dicts; keys that a later version adds are kept by whoever rewrites a row.

    row = capture_row(call, group="...", request="...", tools=domain.tools, trace=Trace(...), messages=[...], ...)
    row["candidate_call"]      # {"name": "add_to_cart", "arguments": {...}}
    call_of(row)               # the `Call`, with its exact text and its receipts

A row says who asked what (`user_request`, `messages`: the conversation before this turn), what the model wrote (`reply`
as it came, `assistant`: the turn in OpenAI chat form), what that was read as (`candidate_call`, `call`, `repairs`,
`problems`), what the tool gave back (`tool_result`) and where it comes from (`proxy_trace`, `metadata`). It is private
until `dataset release` says otherwise. `forge-dataset-capture/v1`, which has less, is read too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal

import msgspec

from rightcall.capture.stubs import StubOutcome
from rightcall.errors import FileFailed
from rightcall.storage.file_kinds import json_lines
from rightcall.storage.journal import Journal, append_jsonl, touch_jsonl
from rightcall.storage.jsonl import LineFault, encode_row, ensure_parent_dir, read_rows
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Problem, Repair, Tool

__all__ = [
    "CANDIDATE",
    "CAPTURE",
    "FORGE",
    "OUTCOME",
    "SCHEMA",
    "LineFault",
    "FileFailed",
    "Journal",
    "CallTrace",
    "append_jsonl",
    "asked",
    "call_of",
    "capture_key",
    "capture_row",
    "ensure_parent_dir",
    "example_group_id",
    "outcome_row",
    "problems_of",
    "blocking_of",
    "read_rows",
    "tools_of",
    "touch_jsonl",
    "unix_ms",
    "workflow_state",
]

SCHEMA = "rightcall-capture/v1"
FORGE = "forge-dataset-capture/v1"
CANDIDATE = "tool_call_candidate"
OUTCOME = "outcome"
CAPTURE = json_lines("capture", "schema_version", SCHEMA, FORGE)
RESPOND = Tool(
    name="respond",
    description="Gives the user the final answer.",
    parameters={"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
)

_KEPT = 200_000  # bytes of tools that are kept when read
Ended = Literal["answer", "max_turns", "error"]


class CallTrace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a row comes from. `model` is the one asked for, `attempt` counts from 1 within a turn."""

    domain: str
    scenario: str
    run_index: int
    turn: int
    model: str
    call_index: int = 0
    tool_call_id: str = ""
    response_id: str | None = None
    finish_reason: str | None = None
    scenario_kind: str = ""
    mode: str = ""
    guard: str = ""
    format: str = ""
    attempt: int = 1
    seed: int | None = None
    usage: Json | None = None
    source: str = "rightcall"
    bucket: str = "real_model_call"
    log_id: str | None = None  # what a log that was imported calls the line
    tools: Literal["stub", "real"] = "stub"  # what ran the calls


_BESIDE = ("scenario_kind", "mode", "guard", "format", "attempt", "seed", "usage")  # beside proxy_trace, not in it
_TRACED = (
    *("domain", "scenario", "run_index", "turn", "call_index", "tool_call_id", "response_id", "finish_reason"),
    "model",
)


def capture_row(
    call: Call,
    *,
    group: str,
    request: str,
    tools: Iterable[Tool],
    trace: CallTrace,
    messages: Sequence[Json],
    assistant: Json,
    reply: Any,
    result: StubOutcome | None,
    problems: Sequence[Problem] = (),
    completed: Sequence[str] = (),
    recent_errors: Sequence[str] = (),
    required_steps: Sequence[str] = (),
    captured_at_unix_ms: int | None = None,
) -> Json:
    """The row of one call. `messages` is the conversation before this turn and `assistant` the turn itself, both in
    OpenAI chat form; `reply` is what came from the model: its text, or the provider's message. `completed` and
    `recent_errors` are from before the call; `result` is None for a call that was not run."""
    row = _row(CANDIDATE, group, request, tools, trace, messages, captured_at_unix_ms)
    return {
        **row,
        "workflow_state": workflow_state(completed, recent_errors, required_steps),
        "candidate_call": {"name": call.name, "arguments": call.arguments},
        "tool_result": None if result is None else {"status": result.status, "content": result.content},
        "call": {"id": call.id, "json": call.json, "raw": call.raw, "complete": call.complete},
        "repairs": msgspec.to_builtins(list(call.repairs)),
        "problems": msgspec.to_builtins(list(problems)),
        "assistant": assistant,
        "reply": reply,
    }


def outcome_row(
    *,
    group: str,
    request: str,
    tools: Iterable[Tool],
    trace: CallTrace,
    messages: Sequence[Json],
    reply: Any,
    text: str = "",
    assistant: Json | None = None,
    ended: Ended = "answer",
    error: str = "",
    problems: Sequence[Problem] = (),
    completed: Sequence[str] = (),
    recent_errors: Sequence[str] = (),
    required_steps: Sequence[str] = (),
    captured_at_unix_ms: int | None = None,
) -> Json:
    """How a scenario ended: with an answer in `text`, out of turns, or in an error. `messages` is everything before."""
    row = _row(OUTCOME, group, request, tools, trace, messages, captured_at_unix_ms)
    said = {"role": "assistant", "content": text} if assistant is None and ended == "answer" else assistant
    return {
        **row,
        "workflow_state": workflow_state(completed, recent_errors, required_steps),
        "outcome": {"ended": ended, "text": text, "error": error},
        "problems": msgspec.to_builtins(list(problems)),
        "assistant": said,
        "reply": reply,
    }


def _row(
    kind: str,
    group: str,
    request: str,
    tools: Iterable[Tool],
    trace: CallTrace,
    messages: Sequence[Json],
    at: int | None,
) -> Json:
    return {
        "schema_version": SCHEMA,
        "kind": kind,
        "example_group_id": group,
        "source_bucket": trace.bucket,
        "user_request": request,
        "available_tools": available_tools(tools),
        "proxy_trace": {name: getattr(trace, name) for name in _TRACED},
        **{name: getattr(trace, name) for name in _BESIDE},
        "messages": list(messages),
        "metadata": {
            "private_agent_log": True,
            "public_export_allowed": False,
            "provenance": {
                "source": trace.source,
                "captured_at_unix_ms": unix_ms() if at is None else at,
                "domain": trace.domain,
                "scenario": trace.scenario,
                "run_index": trace.run_index,
                **({} if trace.log_id is None else {"log_id": trace.log_id}),
                **({} if trace.tools == "stub" else {"tools": trace.tools}),
            },
        },
    }


def workflow_state(completed: Sequence[str], errors: Sequence[str], required: Sequence[str] = ()) -> Json:
    """What had been done before the call."""
    done = set(completed)
    return {
        "required_steps": list(required),
        "completed_steps": list(completed),
        "pending_steps": [step for step in required if step not in done],
        "terminal_tools": [RESPOND.name],
        "recent_errors": list(errors),
    }


def available_tools(tools: Iterable[Tool]) -> list[Json]:
    """Flat definitions, with `respond` at the end."""
    own = [tool for tool in tools if tool.name != RESPOND.name]
    return [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in (*own, RESPOND)
    ]


def example_group_id(domain: str, scenario: str, run_index: int, at_unix_ms: int) -> str:
    """One per run of a scenario, shared by its rows."""
    return f"rightcall-{domain}-{scenario}-run-{run_index:05d}-{at_unix_ms}"


def unix_ms() -> int:
    return time.time_ns() // 1_000_000


# -- out of a row ------------------------------------------------------------------------------------------------------


def capture_key(row: Json) -> str:
    """What tells this row from every other."""
    trace = row["proxy_trace"]
    place = f"{row['example_group_id']}:turn-{trace['turn']}"
    if row["kind"] == OUTCOME:
        return f"{place}:outcome"
    return f"{place}:call-{trace['call_index']}:tool-call-{trace['tool_call_id']}"


def asked(row: Json) -> list[Json]:
    """The conversation before a row, without examples that a capture showed the model ahead of the request."""
    messages: list[Json] = row["messages"]
    if row["source_bucket"] != "real_model_call":
        return messages
    wanted = {"role": "user", "content": row["user_request"]}
    at = max((at for at, message in enumerate(messages) if message == wanted), default=0)
    return [message for message in messages[:at] if message.get("role") == "system"] + messages[at:]


def call_of(row: Json) -> Call:
    """The call of a row, with its exact text and receipts where the row has them."""
    candidate, said = row["candidate_call"], row.get("call") or {}
    text = said.get("json")
    return Call(
        candidate["name"],
        candidate["arguments"],
        text if isinstance(text, str) else msgspec.json.encode(candidate["arguments"]).decode(),
        said.get("id") or row["proxy_trace"].get("tool_call_id") or "",
        said.get("raw") or "",
        tuple(msgspec.convert(row.get("repairs") or (), list[Repair])),
        complete=said.get("complete", True),
    )


def problems_of(row: Json) -> list[Problem]:
    return msgspec.convert(row.get("problems") or [], list[Problem])


def blocking_of(row: Json) -> list[Problem]:
    """What forbids the call of a row to run; of an outcome, all that blocks. The problems of a row are those of its
    call and those of no call, which block none."""
    found = [problem for problem in problems_of(row) if problem.blocking]
    return found if row["kind"] == OUTCOME else [problem for problem in found if problem.call is not None]


def tools_of(row: Json) -> Toolset:
    """The tools that could be called, without `respond`. Rows share their tools: what was read is kept for a while."""
    said = encode_row({"tools": row["available_tools"]})
    return _read_tools(said) if len(said) < _KEPT else _read_tools.__wrapped__(said)


@lru_cache(64)
def _read_tools(said: bytes) -> Toolset:
    return Toolset([tool for tool in json.loads(said)["tools"] if tool["name"] != RESPOND.name])
