"""Rows for training a verifier, `toolcall-verifier-training/v1`: a call in its state, and what it deserves.

training_row(row)   ->   {"input": {"user_request": ..., "candidate_call": ...}, "label": "valid", "review": {...}}
"""

from __future__ import annotations

from typing import Any

from rightcall.capture.captured_rows import OUTCOME, capture_key
from rightcall.datasets.schemas import INPUTS, LABELS, TRAINING
from rightcall.datasets.validating import label_of
from rightcall.providers.sdk_view import dumps
from rightcall.types import Json

_SAID = ("user_request", "workflow_state", "available_tools", "candidate_call")
_STEPS = ("required_steps", "completed_steps", "pending_steps", "terminal_tools", "recent_errors")


def training_row(row: Json) -> Json | None:
    """The training row of a labelled capture row; None for one that has no label, and for outcomes."""
    label = label_of(row)
    if row["kind"] == OUTCOME or label not in LABELS:
        return None
    group, call = row["example_group_id"], row["candidate_call"]
    bucket = row.get("source_bucket") or "real_model_call"
    return {
        "schema_version": TRAINING,
        "input": {
            "schema_version": INPUTS[0],
            **{name: row[name] for name in _SAID},
            "metadata": {"scenario_family": row.get("scenario_kind") or ""},
        },
        "label": label,
        "review": {
            "source": row["metadata"].get("provenance", {}).get("source") or "rightcall",
            "source_bucket": bucket,
            "example_group_id": group,
            "capture_key": capture_key(row),
            "row_key": f"{group}:{bucket}:{label}:{dumps(call)}",
            "by": row["label"]["by"],
            "why": row["label"]["why"],
            **{key: row["metadata"][key] for key in ("private_agent_log", "public_export_allowed")},
        },
    }


def model_input(entry: Json) -> str:
    """The text that a verifier sees of an input; two inputs with the same text are the same to it."""
    state = entry.get("workflow_state") or {}
    tools = entry.get("available_tools") or []
    steps = "\n".join([f"{name}={dumps(state.get(name))}" for name in _STEPS])
    return (
        f"SCHEMA_VERSION:\n{entry.get('schema_version', '')}\n\nUSER_REQUEST:\n{entry.get('user_request', '')}\n\n"
        f"WORKFLOW_STATE:\n{steps}\n\nAVAILABLE_TOOLS:\n" + "\n\n".join(map(_tool, tools)) + "\n\n"
        f"CANDIDATE_CALL:\n{dumps(entry.get('candidate_call'))}"
    )


def _tool(tool: Any) -> str:
    inner = tool.get("function") if isinstance(tool.get("function"), dict) else tool
    parameters = inner.get("parameters") or {"type": "object", "properties": {}}
    return f"{inner.get('name', '')}: {inner.get('description', '')}\nPARAMETERS: {dumps(parameters)}"


def notebook_row(row: Json) -> Json:
    """A training row laid flat, as notebooks read it."""
    entry, review = row["input"], row["review"]
    group = review.get("example_group_id") or review.get("task_group_id")
    return {
        "kind": "tool_call",
        "label": row["label"],
        **{name: entry.get(name) for name in _SAID},
        "metadata": {
            **(entry.get("metadata") or {}),
            "generator": "rightcall",
            "example_group_id": group,
            "source": review.get("source"),
            "source_bucket": review.get("source_bucket"),
            "private_agent_log": review.get("private_agent_log", True),
            "public_export_allowed": review.get("public_export_allowed", False),
        },
        "rank_score": review.get("confidence", 1.0),
    }
