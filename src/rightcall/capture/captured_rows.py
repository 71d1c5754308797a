"""The rows of a capture, `rightcall-capture/v1`: one call of a model, or the end of a conversation, with all that
training needs. Rows are plain dicts; code that rewrites a row keeps keys of later versions.

    row = capture_row(call, group="...", request="...", tools=domain.tools, trace=CallTrace(...), messages=[...], ...)
    row["candidate_call"]      # {"name": "add_to_cart", "arguments": {...}}
    call_of(row)               # the `Call`, with its exact text and its repairs

A row has the request (`user_request`, and `messages`: the conversation before this turn), what the model wrote (`reply`
as it came, `assistant`: the turn in OpenAI chat form), what was parsed (`candidate_call`, `call`, `repairs`,
`problems`), the result of the tool (`tool_result`), and its origin (`proxy_trace`, `metadata`). It is private until
`dataset release` changes that. Rows of `forge-dataset-capture/v1`, which have fewer keys, can be read too.
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
    "conversation_before",
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

_MAX_CACHED = 200_000  # bytes of tools whose toolset is cached
Ended = Literal["answer", "max_turns", "error"]


class CallTrace(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a row. `model` is the requested model; `attempt` counts from 1 within a turn."""

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
    log_id: str | None = None  # the id of the line in an imported log
    tools: Literal["stub", "real"] = "stub"  # what executed the calls


# Fields of a trace that are keys of the row itself; the others are in its `proxy_trace`.
_TOP_LEVEL_FIELDS = ("scenario_kind", "mode", "guard", "format", "attempt", "seed", "usage")
_TRACE_FIELDS = (
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
    """Return the row of one call as JSON data.

    - `group`: the id that all rows of this conversation share.
    - `messages`, `assistant`: the conversation before this turn and the turn itself, in OpenAI chat form.
    - `reply`: what the model sent: its text, or the provider's message.
    - `result`: the result of the tool; None for a call that was not executed.
    - `completed`, `recent_errors`, `required_steps`: the state of the task before the call.
    """
    row = _shared_fields(CANDIDATE, group, request, tools, trace, messages, captured_at_unix_ms)
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
    """Return the row of the end of a scenario: with an answer (`text`), out of turns, or with an `error`. `messages` is
    the conversation before the last turn; `assistant` is that turn, by default the `text` if it ended with an answer,
    else None. The other parameters are those of `capture_row`."""
    row = _shared_fields(OUTCOME, group, request, tools, trace, messages, captured_at_unix_ms)
    turn = {"role": "assistant", "content": text} if assistant is None and ended == "answer" else assistant
    return {
        **row,
        "workflow_state": workflow_state(completed, recent_errors, required_steps),
        "outcome": {"ended": ended, "text": text, "error": error},
        "problems": msgspec.to_builtins(list(problems)),
        "assistant": turn,
        "reply": reply,
    }


def _shared_fields(
    kind: str,
    group: str,
    request: str,
    tools: Iterable[Tool],
    trace: CallTrace,
    messages: Sequence[Json],
    at: int | None,
) -> Json:
    """Return the fields that rows of every kind have, with metadata that marks the row as private. `at` is the time of
    capture in milliseconds; None is now."""
    return {
        "schema_version": SCHEMA,
        "kind": kind,
        "example_group_id": group,
        "source_bucket": trace.bucket,
        "user_request": request,
        "available_tools": available_tools(tools),
        "proxy_trace": {name: getattr(trace, name) for name in _TRACE_FIELDS},
        **{name: getattr(trace, name) for name in _TOP_LEVEL_FIELDS},
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
    """Return the state of a task before a call as JSON data: required, completed and pending steps (required, but not
    completed), recent errors, and `respond` as the only terminal tool."""
    done = set(completed)
    return {
        "required_steps": list(required),
        "completed_steps": list(completed),
        "pending_steps": [step for step in required if step not in done],
        "terminal_tools": [RESPOND.name],
        "recent_errors": list(errors),
    }


def available_tools(tools: Iterable[Tool]) -> list[Json]:
    """Return each tool as a flat object with name, description and parameters. The built-in `respond` is last, in place
    of any tool of that name."""
    own = [tool for tool in tools if tool.name != RESPOND.name]
    return [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in (*own, RESPOND)
    ]


def example_group_id(domain: str, scenario: str, run_index: int, at_unix_ms: int) -> str:
    """Return the id that the rows of one run of a scenario share. It contains all four arguments."""
    return f"rightcall-{domain}-{scenario}-run-{run_index:05d}-{at_unix_ms}"


def unix_ms() -> int:
    """Return the current time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


# -- reading a row -----------------------------------------------------------------------------------------------------


def capture_key(row: Json) -> str:
    """Return a key that identifies the row among all rows: its group, turn, and call or outcome."""
    trace = row["proxy_trace"]
    place = f"{row['example_group_id']}:turn-{trace['turn']}"
    if row["kind"] == OUTCOME:
        return f"{place}:outcome"
    return f"{place}:call-{trace['call_index']}:tool-call-{trace['tool_call_id']}"


def conversation_before(row: Json) -> list[Json]:
    """Return the messages before the turn of a row. For a captured row, the solved examples before the request are left
    out: system messages, and everything from the last occurrence of the request, remain. Other rows give all messages.
    """
    messages: list[Json] = row["messages"]
    if row["source_bucket"] != "real_model_call":
        return messages
    request = {"role": "user", "content": row["user_request"]}
    at = max((at for at, message in enumerate(messages) if message == request), default=0)
    return [message for message in messages[:at] if message.get("role") == "system"] + messages[at:]


def call_of(row: Json) -> Call:
    """Return the call of a row. A row without its exact text, source or repairs gives the arguments encoded as JSON, an
    empty `raw`, and none."""
    candidate, details = row["candidate_call"], row.get("call") or {}
    text = details.get("json")
    return Call(
        candidate["name"],
        candidate["arguments"],
        text if isinstance(text, str) else msgspec.json.encode(candidate["arguments"]).decode(),
        details.get("id") or row["proxy_trace"].get("tool_call_id") or "",
        details.get("raw") or "",
        tuple(msgspec.convert(row.get("repairs") or (), list[Repair])),
        complete=details.get("complete", True),
    )


def problems_of(row: Json) -> list[Problem]:
    """Return the problems of a row: those of its call, and those of no call."""
    return msgspec.convert(row.get("problems") or [], list[Problem])


def blocking_of(row: Json) -> list[Problem]:
    """Return the blocking problems of a row. For a call, problems that belong to no call are left out: they do not
    block it."""
    found = [problem for problem in problems_of(row) if problem.blocking]
    return found if row["kind"] == OUTCOME else [problem for problem in found if problem.call is not None]


def tools_of(row: Json) -> Toolset:
    """Return the tools of a row without `respond`. Toolsets are cached, since rows share their tools. Raises `BadTools`
    for invalid declarations."""
    encoded = encode_row({"tools": row["available_tools"]})
    return _read_tools(encoded) if len(encoded) < _MAX_CACHED else _read_tools.__wrapped__(encoded)


@lru_cache(64)
def _read_tools(encoded: bytes) -> Toolset:
    """Return the toolset of encoded JSON `{"tools": [...]}` without `respond`. Raises `BadTools`."""
    return Toolset([tool for tool in json.loads(encoded)["tools"] if tool["name"] != RESPOND.name])
