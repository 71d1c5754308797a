"""The schemas of rows: `faults(row)` returns everything that is wrong with a row, in words.

rightcall-capture/v1               a call of a model, or how a conversation ended
forge-dataset-capture/v1           the same with less
forge-dataset-tool-prompt/v1       a request that has not been sent
forge-proxy-training-capture/v1    a call that a proxy saw
toolcall-verifier-training/v1      a call and its label, for training a verifier
forge-dataset-review-reject/v1     a row that was rejected, and the reason
forge-dataset-assemble-conflict/v1 two rows with the same input and different labels
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from rightcall.capture.captured_rows import CANDIDATE, FORGE, OUTCOME, SCHEMA
from rightcall.storage.jsonl import LineFault
from rightcall.types import Json, Problem, Repair

PROMPT = "forge-dataset-tool-prompt/v1"
PROXY = "forge-proxy-training-capture/v1"
TRAINING = "toolcall-verifier-training/v1"
REJECT = "forge-dataset-review-reject/v1"
CONFLICT = "forge-dataset-assemble-conflict/v1"
INPUTS = ("toolcall-verifier-input/v2", "toolcall-verifier-input/v1")  # the first is written

REVIEWED = ("valid", "wrong_tool_semantic", "wrong_arguments_semantic", "tool_not_needed", "needs_clarification")
LABELS = (*REVIEWED, "deterministic_invalid")
OUTCOMES = ("valid", "incomplete")

Faults = Iterator[str]


def faults(row: Json) -> list[str]:
    """Return everything that is wrong with this row; nothing if it fits its schema."""
    version = row.get("schema_version")
    check = SCHEMAS.get(version) if isinstance(version, str) else None
    if check is None:
        problem = f"unknown schema_version {version!r:.80}" if version is not None else "schema_version is missing"
        return [f"{problem}; known are {', '.join(SCHEMAS)}"]
    return list(check(row))


def first_fault(row: Json | LineFault, *schemas: str) -> str:
    """Return why a line is no row of one of these schemas; "" if it is one."""
    if isinstance(row, LineFault):
        return f"{row.message}; `rightcall dataset validate` lists every fault"
    if schemas and row.get("schema_version") not in schemas:
        return f"is {row.get('schema_version')!r:.80}; this takes {' or '.join(schemas)}"
    found = faults(row)
    return f"{found[0]}; `rightcall dataset validate` lists every fault" if found else ""


def label_of(row: Json) -> str | None:
    """Return the label of a row of any schema, or None."""
    label = row.get("label")
    if isinstance(label, dict):
        label = label.get("label")
    return label if isinstance(label, str) else None


def bucket_of(row: Json) -> str | None:
    """Return the source bucket of a row of any schema, or None."""
    review = row.get("review") if row.get("schema_version") == TRAINING else None
    found = review.get("source_bucket") if isinstance(review, dict) else row.get("source_bucket")
    return found if isinstance(found, str) else None


# -- the schemas -------------------------------------------------------------------------------------------------------


def _capture(row: Json) -> Faults:
    """Check a row of ours. A bad call is data, so its arguments need not fit the tool."""
    if row.get("kind") not in (CANDIDATE, OUTCOME):
        yield f"kind must be {CANDIDATE} or {OUTCOME}, not {row.get('kind')!r:.80}"
    yield from _texts(row, "example_group_id", "user_request", "source_bucket")
    yield from _objects(row, "workflow_state", "proxy_trace")
    yield from _lists(row, "available_tools", filled=True)
    yield from _lists(row, "messages", "problems")
    for at, each in enumerate(_entries(row.get("messages"))):
        if not isinstance(each, dict):
            yield f"messages[{at}] must be an object"
    yield from _values(row, "problems", list[Problem])
    if row.get("assistant") is not None:
        yield from _objects(row, "assistant")
    yield from _tool_faults(row.get("available_tools"))
    yield from _trace(row.get("proxy_trace"))
    yield from _marks(row)
    if row.get("kind") == CANDIDATE:
        yield from _call_shape(row.get("candidate_call"), "candidate_call")
        yield from _lists(row, "repairs")
        yield from _values(row, "repairs", list[Repair])
        yield from _values(row, "call", _ExactCall)
        if row.get("tool_result") is not None:
            yield from _objects(row, "tool_result")
    elif row.get("kind") == OUTCOME:
        yield from _values(row, "outcome", _Outcome)
    if "label" in row:
        yield from _label(row, OUTCOMES if row.get("kind") == OUTCOME else LABELS)


def _forge(row: Json) -> Faults:
    yield from _texts(row, "kind", "example_group_id", "user_request")
    yield from _objects(row, "workflow_state", "tool_result", "proxy_trace")
    yield from _trace(row.get("proxy_trace"))
    yield from _candidate(row)
    yield from _marks(row)


def _prompt(row: Json) -> Faults:
    yield from _texts(row, "domain", "scenario", "user_request")
    request = row.get("request")
    if not isinstance(request, dict):
        yield "request must be an object"
    else:
        yield from (f"request.{fault}" for fault in _texts(request, "model"))
        yield from (f"request.{fault}" for fault in _lists(request, "messages", "tools", filled=True))
    yield from _lists(row, "available_tools", filled=True)
    yield from _marks(row)


def _proxy(row: Json) -> Faults:
    yield from _texts(row, "kind", "example_group_id", "user_request", "deterministic_status")
    yield from _objects(row, "workflow_state")
    yield from _candidate(row)
    yield from _marks(row)


def _training(row: Json) -> Faults:
    label = row.get("label")
    if label not in LABELS:
        yield f"label must be one of {', '.join(LABELS)}, not {label!r:.80}"
    entry = row.get("input")
    if not isinstance(entry, dict):
        yield "input must be an object"
    else:
        yield from (f"input.{fault}" for fault in _input(entry, checked=label != "deterministic_invalid"))
        corrected = row.get("corrected_positive")
        if isinstance(corrected, dict) and "candidate_call" in corrected:
            named = candidate_faults(entry.get("available_tools"), corrected["candidate_call"])
            yield from (f"corrected_positive.{fault}" for fault in named)
    yield from _review(row.get("review"))


def _review(review: Any) -> Faults:
    if not isinstance(review, dict):
        yield "review must be an object"
        return
    yield from (f"review.{fault}" for fault in _texts(review, "source"))
    if not (review.get("example_group_id") or review.get("task_group_id")):
        yield "review must have example_group_id or task_group_id"


def _input(entry: Json, *, checked: bool) -> Faults:
    if entry.get("schema_version") not in INPUTS:
        yield f"schema_version must be {' or '.join(INPUTS)}, not {entry.get('schema_version')!r:.80}"
    yield from _texts(entry, "user_request")
    yield from _objects(entry, "workflow_state")
    yield from _candidate(entry, checked=checked)


def _reject(row: Json) -> Faults:
    yield from _texts(row, "reason", "detail")
    capture = row.get("capture")
    if isinstance(capture, dict):
        yield from (f"capture: {fault}" for fault in faults(capture))
    elif capture is not None:
        yield "capture must be an object"


def _conflict(row: Json) -> Faults:
    yield from _texts(row, "scorer_input")
    yield from _objects(row, "kept", "conflict")


SCHEMAS: dict[str, Callable[[Json], Faults]] = {
    SCHEMA: _capture,
    FORGE: _forge,
    PROMPT: _prompt,
    PROXY: _proxy,
    TRAINING: _training,
    REJECT: _reject,
    CONFLICT: _conflict,
}


class _ExactCall(msgspec.Struct):
    """The exact text of a call."""

    id: str
    json: str
    raw: str
    complete: bool


class _Outcome(msgspec.Struct):
    ended: Literal["answer", "max_turns", "error"]
    text: str


# -- pieces ------------------------------------------------------------------------------------------------------------


def _texts(row: Json, *names: str) -> Faults:
    for name in names:
        value = row.get(name)
        if not isinstance(value, str) or not value.strip():
            yield f"{name} must be a non-empty string"


def _objects(row: Json, *names: str) -> Faults:
    yield from (f"{name} must be an object" for name in names if not isinstance(row.get(name), dict))


def _lists(row: Json, *names: str, filled: bool = False) -> Faults:
    for name in names:
        value = row.get(name)
        if not isinstance(value, list) or (filled and not value):
            yield f"{name} must be a {'non-empty ' if filled else ''}list"


def _entries(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _values(row: Json, name: str, kind: Any) -> Faults:
    """Check that a value is the JSON of this type."""
    try:
        msgspec.convert(row.get(name), kind)
    except msgspec.ValidationError as error:
        yield f"{name}: {error}"
    except UnicodeEncodeError:  # a lone surrogate where a name or an object belongs
        yield f"{name}: it has a lone surrogate where none can be"


def _trace(trace: Any) -> Faults:
    if not isinstance(trace, dict):
        return
    yield from (f"proxy_trace.{fault}" for fault in _texts(trace, "domain", "scenario", "model"))
    for name in ("run_index", "turn", "call_index"):
        if type(trace.get(name)) is not int:
            yield f"proxy_trace.{name} must be an integer"


def _marks(row: Json) -> Faults:
    """Check the marks: a row is private unless it has a release."""
    marks = row.get("metadata")
    if not isinstance(marks, dict):
        yield "metadata must be an object"
        return
    if not isinstance(marks.get("provenance", {}), dict):
        yield "metadata.provenance must be an object"
    released = isinstance(marks.get("release"), dict)
    if marks.get("private_agent_log") is not (not released):
        yield f"metadata.private_agent_log must be {'false: the row is released' if released else 'true'}"
    if marks.get("public_export_allowed") is not released:
        yield f"metadata.public_export_allowed must be {'true: the row is released' if released else 'false'}"


def _label(row: Json, allowed: tuple[str, ...]) -> Faults:
    label = row["label"]
    if not isinstance(label, dict) or label.get("label") not in allowed:
        yield f"label.label must be one of {', '.join(allowed)}"


def _candidate(row: Json, *, checked: bool = True) -> Faults:
    tools, call = row.get("available_tools"), row.get("candidate_call")
    yield from _lists(row, "available_tools", filled=True)
    yield from _tool_faults(tools)
    yield from candidate_faults(tools, call) if checked else _call_shape(call, "candidate_call")


def _tool_faults(tools: Any) -> Faults:
    for at, tool in enumerate(_entries(tools)):
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            yield f"available_tools[{at}] must be an object with a name"


def _call_shape(call: Any, what: str) -> Faults:
    if not isinstance(call, dict):
        yield f"{what} must be an object"
        return
    if not isinstance(call.get("name"), str):
        yield f"{what}.name must be a string"
    if not isinstance(call.get("arguments"), dict):
        yield f"{what}.arguments must be an object"


def candidate_faults(tools: Any, call: Any) -> list[str]:
    """Check a call of a verifier's row: the tool is known, required arguments are present, and arguments have the
    declared primitive types. Unknown arguments and unknown types pass."""
    shape = list(_call_shape(call, "candidate_call"))
    if shape:
        return shape
    named = [tool for tool in _entries(tools) if isinstance(tool, dict) and tool.get("name") == call["name"]]
    tool = named[-1] if named else None
    if tool is None:
        return [f"candidate_call.name {call['name']!r:.80} is not among the available tools"]
    return list(_argument_faults(tool.get("parameters"), call["arguments"]))


def _argument_faults(schema: Any, arguments: Json) -> Faults:
    schema = schema if isinstance(schema, dict) else {}
    declared = schema.get("properties")
    for name in _entries(schema.get("required")):
        if isinstance(name, str) and name not in arguments:
            yield f"candidate_call.arguments: {name!r:.80} is required"
    for name, value in arguments.items():
        kind = _declared_type(declared, name)
        if kind in _KINDS and not _KINDS[kind](value):
            yield f"candidate_call.arguments: {name!r:.80} must be of type {kind}"


def _declared_type(declared: Any, name: str) -> str:
    wanted = declared.get(name) if isinstance(declared, dict) else None
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    return kind if isinstance(kind, str) else ""


_KINDS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "null": lambda value: value is None,
}
