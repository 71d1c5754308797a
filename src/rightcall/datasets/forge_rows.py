"""Rows of ours as `forge-dataset-capture/v1` has them: one call, what it was asked for, and what the tool gave.

What that schema has no place for is lost: outcomes, the text beside calls and the thoughts, receipts, problems, labels
and the exact text of arguments. Calls, ids, model, time and results come back with `dataset import`.
"""

from __future__ import annotations

from rightcall.capture.captured_rows import FORGE, OUTCOME
from rightcall.datasets.schemas import faults
from rightcall.types import Json

_SAME = ("kind", "example_group_id", "source_bucket", "user_request", "workflow_state", "available_tools")
TRACED = (
    *("domain", "scenario", "run_index", "turn", "call_index", "tool_call_id", "response_id", "finish_reason"),
    "model",
)
_PLACE = ("domain", "scenario", "run_index")


def forge_row(row: Json) -> Json | None:
    """The row; None for what the schema cannot say: an outcome, a call that nothing answered or that does not fit its
    tool."""
    if row["kind"] == OUTCOME or not row.get("tool_result"):
        return None
    trace, result = row["proxy_trace"], row["tool_result"]
    made: Json = {
        "schema_version": FORGE,
        **{name: row.get(name) for name in _SAME},
        "candidate_call": {name: row["candidate_call"][name] for name in ("name", "arguments")},
        "tool_result": {"status": result.get("status", "ok"), "content": result.get("content")},
        "proxy_trace": {name: trace.get(name) for name in TRACED},
        "metadata": _marks(row),
    }
    return None if faults(made) else made


def _marks(row: Json) -> Json:
    marks = row["metadata"]
    told = marks.get("provenance", {})
    kept = ("private_agent_log", "public_export_allowed", "redaction", "release")
    trace = row["proxy_trace"]
    return {
        **{name: marks[name] for name in kept if name in marks},
        "provenance": {
            "source": told.get("source") or "rightcall",
            "captured_at_unix_ms": told.get("captured_at_unix_ms"),
            **{name: trace.get(name) for name in _PLACE},
        },
    }
