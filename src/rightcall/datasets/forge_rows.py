"""Rows in the schemas of the forge datasets: requests, calls with their results, and training rows of a verifier.

    prompts(find_domains(["shopping"]))  ->  rows `forge-dataset-tool-prompt/v1`: what a capture would send
    forge_row(row)                       ->  a row `forge-dataset-capture/v1`
    training_row(row)                    ->  {"input": {"candidate_call": ..., ...}, "label": "valid", ...}

`forge-dataset-capture/v1` holds one call, its request and its result. It has no place for outcomes, the text beside
calls, thoughts, receipts, problems, labels and the exact text of arguments. Calls, ids, model, time and results come
back with `dataset import`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rightcall.capture.captured_rows import FORGE, OUTCOME, available_tools, capture_key, unix_ms
from rightcall.capture.domain import Domain, Scenario
from rightcall.capture.settings import SYSTEM
from rightcall.datasets.row_files import PROMPTS
from rightcall.datasets.schemas import INPUTS, LABELS, PROMPT, TRAINING, faults, label_of
from rightcall.providers.sdk_view import compact_json
from rightcall.storage.whole_files import WholeFile
from rightcall.tools.provider_forms import to_provider
from rightcall.types import Json

# -- requests: `dataset prompts` ---------------------------------------------------------------------------------------

MODEL, OUTPUT = "test-model", "target/dataset/tool_prompts.jsonl"


def prompts(domains: Iterable[Domain], *, model: str = MODEL, runs: int = 1) -> Iterator[Json]:
    """Yield the prompt row of each scenario, as many times as `runs`, in the order in which a capture would send
    them. `model` is the model named in the requests."""
    known = list(domains)
    for run_index in range(runs):
        for domain in known:
            for scenario in domain.scenarios:
                yield _prompt_row(domain, scenario, model, run_index)


def _prompt_row(domain: Domain, scenario: Scenario, model: str, run_index: int) -> Json:
    """Return the row of one run of a scenario: the request that a capture would send, and the tools."""
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": scenario.request}]
    tools = to_provider(domain.tools, "chat")
    place = {"domain": domain.name, "scenario": scenario.name, "run_index": run_index}
    provenance = {"source": "rightcall", "created_at_unix_ms": unix_ms(), **place}
    return {
        "schema_version": PROMPT,
        **place,
        "user_request": scenario.request,
        "request": {"model": model, "messages": messages, "tools": tools, "stream": False},
        "available_tools": available_tools(domain.tools),
        "metadata": {"private_agent_log": True, "public_export_allowed": False, "provenance": provenance},
    }


def write_prompts(
    domains: Iterable[Domain], output: str | Path, *, model: str = MODEL, runs: int = 1, force: bool = False
) -> int:
    """Write what a capture would send, a row for each run of each scenario, and send nothing. Return the number of
    rows.

    - `domains`: those of `find_domains`.
    - `output`: the file.
    - `model`: the name that the requests have.
    - `runs`: how often each scenario is run.
    - `force`: as in `export`.
    """
    with WholeFile(output, PROMPTS, force=force) as out:
        for row in prompts(domains, model=model, runs=runs):
            out.write(row)
    return out.rows


# -- calls with their results: `dataset export --to forge-capture` -----------------------------------------------------

_SHARED = ("kind", "example_group_id", "source_bucket", "user_request", "workflow_state", "available_tools")
_TRACE = (
    *("domain", "scenario", "run_index", "turn", "call_index", "tool_call_id", "response_id", "finish_reason"),
    "model",
)


def _select_fields(row: Json, names: Iterable[str]) -> Json:
    """Return the fields with these names; None for a missing one."""
    return {name: row.get(name) for name in names}


def forge_row(row: Json) -> Json | None:
    """Return a row of a capture as one of `forge-dataset-capture/v1`; None for what that schema cannot hold: an
    outcome, a call without a result, and a call that does not fit its tool."""
    if row["kind"] == OUTCOME or not row.get("tool_result"):
        return None
    trace, result, marks = row["proxy_trace"], row["tool_result"], row["metadata"]
    provenance = marks.get("provenance", {})
    kept = ("private_agent_log", "public_export_allowed", "redaction", "release")
    made: Json = {
        "schema_version": FORGE,
        **_select_fields(row, _SHARED),
        "candidate_call": {name: row["candidate_call"][name] for name in ("name", "arguments")},
        "tool_result": {"status": result.get("status", "ok"), "content": result.get("content")},
        "proxy_trace": _select_fields(trace, _TRACE),
        "metadata": {
            **{name: marks[name] for name in kept if name in marks},
            "provenance": {
                "source": provenance.get("source") or "rightcall",
                "captured_at_unix_ms": provenance.get("captured_at_unix_ms"),
                **_select_fields(trace, ("domain", "scenario", "run_index")),
            },
        },
    }
    return None if faults(made) else made


# -- training rows of a verifier ---------------------------------------------------------------------------------------

_INPUT = ("user_request", "workflow_state", "available_tools", "candidate_call")
_STEPS = ("required_steps", "completed_steps", "pending_steps", "terminal_tools", "recent_errors")


def training_row(row: Json) -> Json | None:
    """Return the verifier's training row of a labelled row of a capture; None for an outcome, and for a row whose label
    is missing or not in `LABELS`."""
    label = label_of(row)
    if row["kind"] == OUTCOME or label not in LABELS:
        return None
    group, call = row["example_group_id"], row["candidate_call"]
    bucket = row.get("source_bucket") or "real_model_call"
    return {
        "schema_version": TRAINING,
        "input": {
            "schema_version": INPUTS[0],
            **{name: row[name] for name in _INPUT},
            "metadata": {"scenario_family": row.get("scenario_kind") or ""},
        },
        "label": label,
        "review": {
            "source": row["metadata"].get("provenance", {}).get("source") or "rightcall",
            "source_bucket": bucket,
            "example_group_id": group,
            "capture_key": capture_key(row),
            "row_key": f"{group}:{bucket}:{label}:{compact_json(call)}",
            "by": row["label"]["by"],
            "why": row["label"]["why"],
            **{key: row["metadata"][key] for key in ("private_agent_log", "public_export_allowed")},
        },
    }


def model_input(entry: Json) -> str:
    """Return the text of an input that a verifier reads; inputs with the same text are the same to it."""
    state = entry.get("workflow_state") or {}
    tools = entry.get("available_tools") or []
    steps = "\n".join([f"{name}={compact_json(state.get(name))}" for name in _STEPS])
    return (
        f"SCHEMA_VERSION:\n{entry.get('schema_version', '')}\n\nUSER_REQUEST:\n{entry.get('user_request', '')}\n\n"
        f"WORKFLOW_STATE:\n{steps}\n\nAVAILABLE_TOOLS:\n" + "\n\n".join(map(_format_tool, tools)) + "\n\n"
        f"CANDIDATE_CALL:\n{compact_json(entry.get('candidate_call'))}"
    )


def _format_tool(tool: Any) -> str:
    """Return the text of a tool definition as the verifier reads it: name, description and parameters. The definition
    may be nested in `function`."""
    inner = tool.get("function") if isinstance(tool.get("function"), dict) else tool
    parameters = inner.get("parameters") or {"type": "object", "properties": {}}
    return f"{inner.get('name', '')}: {inner.get('description', '')}\nPARAMETERS: {compact_json(parameters)}"


def notebook_row(row: Json) -> Json:
    """Return a training row as a flat object, as notebooks read it: label, the fields of its input, metadata and a rank
    score."""
    entry, review = row["input"], row["review"]
    return {
        "kind": "tool_call",
        "label": row["label"],
        **_select_fields(entry, _INPUT),
        "metadata": {
            **(entry.get("metadata") or {}),
            "generator": "rightcall",
            "example_group_id": review.get("example_group_id") or review.get("task_group_id"),
            "source": review.get("source"),
            "source_bucket": review.get("source_bucket"),
            "private_agent_log": review.get("private_agent_log", True),
            "public_export_allowed": review.get("public_export_allowed", False),
        },
        "rank_score": review.get("confidence", 1.0),
    }
