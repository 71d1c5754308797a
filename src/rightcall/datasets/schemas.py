"""The schemas of rows: `faults(row)` returns a message for everything that is wrong with a row.

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
    """Return a message for each fault of this row against the schema that it names; [] if it has none. An unknown
    schema is a fault."""
    version = row.get("schema_version")
    check = SCHEMAS.get(version) if isinstance(version, str) else None
    if check is None:
        problem = f"unknown schema_version {version!r:.80}" if version is not None else "schema_version is missing"
        return [f"{problem}; known are {', '.join(SCHEMAS)}"]
    return list(check(row))


def first_fault(row: Json | LineFault, *schemas: str) -> str:
    """Return the first reason why a line is no valid row of one of these schemas, or of any known one without
    `schemas`; "" if it is valid."""
    if isinstance(row, LineFault):
        return f"{row.message}; `rightcall dataset validate` lists every fault"
    if schemas and row.get("schema_version") not in schemas:
        return f"is {row.get('schema_version')!r:.80}; this takes {' or '.join(schemas)}"
    found = faults(row)
    return f"{found[0]}; `rightcall dataset validate` lists every fault" if found else ""


def label_of(row: Json) -> str | None:
    """Return the label of a row of any schema; None if it has none."""
    label = row.get("label")
    if isinstance(label, dict):
        label = label.get("label")
    return label if isinstance(label, str) else None


def bucket_of(row: Json) -> str | None:
    """Return the source bucket of a row of any schema; None if it has none."""
    review = row.get("review") if row.get("schema_version") == TRAINING else None
    found = review.get("source_bucket") if isinstance(review, dict) else row.get("source_bucket")
    return found if isinstance(found, str) else None


# -- the schemas -------------------------------------------------------------------------------------------------------


def _check_capture_row(row: Json) -> Faults:
    """Yield the faults of a row of a rightcall capture. Arguments are not checked against the tool, because rejected
    calls are kept as data."""
    if row.get("kind") not in (CANDIDATE, OUTCOME):
        yield f"kind must be {CANDIDATE} or {OUTCOME}, not {row.get('kind')!r:.80}"
    yield from _check_texts(row, "example_group_id", "user_request", "source_bucket")
    yield from _check_objects(row, "workflow_state", "proxy_trace")
    yield from _check_lists(row, "available_tools", filled=True)
    yield from _check_lists(row, "messages", "problems")
    for at, each in enumerate(_list_or_empty(row.get("messages"))):
        if not isinstance(each, dict):
            yield f"messages[{at}] must be an object"
    yield from _check_type(row, "problems", list[Problem])
    if row.get("assistant") is not None:
        yield from _check_objects(row, "assistant")
    yield from _check_tools(row.get("available_tools"))
    yield from _check_trace(row.get("proxy_trace"))
    yield from _check_privacy_marks(row)
    if row.get("kind") == CANDIDATE:
        yield from _check_call_shape(row.get("candidate_call"), "candidate_call")
        yield from _check_lists(row, "repairs")
        yield from _check_type(row, "repairs", list[Repair])
        yield from _check_type(row, "call", _ExactCall)
        if row.get("tool_result") is not None:
            yield from _check_objects(row, "tool_result")
    elif row.get("kind") == OUTCOME:
        yield from _check_type(row, "outcome", _Outcome)
    if "label" in row:
        yield from _check_label(row, OUTCOMES if row.get("kind") == OUTCOME else LABELS)


def _check_forge_row(row: Json) -> Faults:
    """Yield the faults of a row of `forge-dataset-capture/v1`, whose call must fit its tool."""
    yield from _check_texts(row, "kind", "example_group_id", "user_request")
    yield from _check_objects(row, "workflow_state", "tool_result", "proxy_trace")
    yield from _check_trace(row.get("proxy_trace"))
    yield from _check_candidate(row)
    yield from _check_privacy_marks(row)


def _check_prompt_row(row: Json) -> Faults:
    """Yield the faults of a row of `forge-dataset-tool-prompt/v1`, a request that was not sent, as messages."""
    yield from _check_texts(row, "domain", "scenario", "user_request")
    request = row.get("request")
    if not isinstance(request, dict):
        yield "request must be an object"
    else:
        yield from (f"request.{fault}" for fault in _check_texts(request, "model"))
        yield from (f"request.{fault}" for fault in _check_lists(request, "messages", "tools", filled=True))
    yield from _check_lists(row, "available_tools", filled=True)
    yield from _check_privacy_marks(row)


def _check_proxy_row(row: Json) -> Faults:
    """Yield the faults of a row of `forge-proxy-training-capture/v1`, whose call must fit its tool."""
    yield from _check_texts(row, "kind", "example_group_id", "user_request", "deterministic_status")
    yield from _check_objects(row, "workflow_state")
    yield from _check_candidate(row)
    yield from _check_privacy_marks(row)


def _check_training_row(row: Json) -> Faults:
    """Yield the faults of a verifier's training row. Its call must fit its tool unless it is labelled
    `deterministic_invalid`; a corrected call must fit too."""
    label = row.get("label")
    if label not in LABELS:
        yield f"label must be one of {', '.join(LABELS)}, not {label!r:.80}"
    entry = row.get("input")
    if not isinstance(entry, dict):
        yield "input must be an object"
    else:
        yield from (f"input.{fault}" for fault in _check_input(entry, checked=label != "deterministic_invalid"))
        corrected = row.get("corrected_positive")
        if isinstance(corrected, dict) and "candidate_call" in corrected:
            named = check_candidate(entry.get("available_tools"), corrected["candidate_call"])
            yield from (f"corrected_positive.{fault}" for fault in named)
    yield from _check_review(row.get("review"))


def _check_review(review: Any) -> Faults:
    """Yield the faults of the field `review` of a training row: it must be an object with a `source`, and with the id
    of its example group or task group."""
    if not isinstance(review, dict):
        yield "review must be an object"
        return
    yield from (f"review.{fault}" for fault in _check_texts(review, "source"))
    if not (review.get("example_group_id") or review.get("task_group_id")):
        yield "review must have example_group_id or task_group_id"


def _check_input(entry: Json, *, checked: bool) -> Faults:
    """Yield the faults of the field `input` of a training row; with `checked`, its call must fit its tool."""
    if entry.get("schema_version") not in INPUTS:
        yield f"schema_version must be {' or '.join(INPUTS)}, not {entry.get('schema_version')!r:.80}"
    yield from _check_texts(entry, "user_request")
    yield from _check_objects(entry, "workflow_state")
    yield from _check_candidate(entry, checked=checked)


def _check_reject_row(row: Json) -> Faults:
    """Yield the faults of a row that says why another was rejected, and of the capture row in its field `capture`, if
    it has one."""
    yield from _check_texts(row, "reason", "detail")
    capture = row.get("capture")
    if isinstance(capture, dict):
        yield from (f"capture: {fault}" for fault in faults(capture))
    elif capture is not None:
        yield "capture must be an object"


def _check_conflict_row(row: Json) -> Faults:
    """Yield a fault for each missing or empty field of a row about two contradicting training rows. The rows in it are
    not checked."""
    yield from _check_texts(row, "scorer_input")
    yield from _check_objects(row, "kept", "conflict")


SCHEMAS: dict[str, Callable[[Json], Faults]] = {
    SCHEMA: _check_capture_row,
    FORGE: _check_forge_row,
    PROMPT: _check_prompt_row,
    PROXY: _check_proxy_row,
    TRAINING: _check_training_row,
    REJECT: _check_reject_row,
    CONFLICT: _check_conflict_row,
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


def _check_texts(row: Json, *names: str) -> Faults:
    """Yield a fault for each of these fields of the row that is missing or not a text with other characters than white
    space."""
    for name in names:
        value = row.get(name)
        if not isinstance(value, str) or not value.strip():
            yield f"{name} must be a non-empty string"


def _check_objects(row: Json, *names: str) -> Faults:
    """Yield a fault for each of these fields of the row that is missing or not an object."""
    yield from (f"{name} must be an object" for name in names if not isinstance(row.get(name), dict))


def _check_lists(row: Json, *names: str, filled: bool = False) -> Faults:
    """Yield a fault for each of these fields of the row that is missing, not a list or, with `filled`, empty."""
    for name in names:
        value = row.get(name)
        if not isinstance(value, list) or (filled and not value):
            yield f"{name} must be a {'non-empty ' if filled else ''}list"


def _list_or_empty(value: Any) -> list[Any]:
    """Return the value if it is a list, else []."""
    return value if isinstance(value, list) else []


def _check_type(row: Json, name: str, kind: Any) -> Faults:
    """Yield a fault if the value of the row's field `name`, None if it is missing, cannot be converted to the type
    `kind`."""
    try:
        msgspec.convert(row.get(name), kind)
    except msgspec.ValidationError as error:
        yield f"{name}: {error}"
    except UnicodeEncodeError:  # a lone surrogate in a name or in place of an object
        yield f"{name}: it has a lone surrogate"


def _check_trace(trace: Any) -> Faults:
    """Yield the faults of a `proxy_trace`: domain, scenario and model must be texts that are not blank, run, turn and
    call integers. None for a value that is no object, which is reported elsewhere."""
    if not isinstance(trace, dict):
        return
    yield from (f"proxy_trace.{fault}" for fault in _check_texts(trace, "domain", "scenario", "model"))
    for name in ("run_index", "turn", "call_index"):
        if type(trace.get(name)) is not int:
            yield f"proxy_trace.{name} must be an integer"


def _check_privacy_marks(row: Json) -> Faults:
    """Yield the faults of `metadata`: a row must be marked private, or public if it has a release."""
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


def _check_label(row: Json, allowed: tuple[str, ...]) -> Faults:
    """Yield a fault if the row's field `label` is not an object with one of the allowed labels."""
    label = row["label"]
    if not isinstance(label, dict) or label.get("label") not in allowed:
        yield f"label.label must be one of {', '.join(allowed)}"


def _check_candidate(row: Json, *, checked: bool = True) -> Faults:
    """Yield the faults of the tools and the call of a row; with `checked`, the call must fit its tool."""
    tools, call = row.get("available_tools"), row.get("candidate_call")
    yield from _check_lists(row, "available_tools", filled=True)
    yield from _check_tools(tools)
    yield from check_candidate(tools, call) if checked else _check_call_shape(call, "candidate_call")


def _check_tools(tools: Any) -> Faults:
    """Yield a fault for each tool that is not an object with a name; none for a value that is no list."""
    for at, tool in enumerate(_list_or_empty(tools)):
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            yield f"available_tools[{at}] must be an object with a name"


def _check_call_shape(call: Any, what: str) -> Faults:
    """Yield a fault if a call is not an object with a name and arguments. `what` is its name in messages."""
    if not isinstance(call, dict):
        yield f"{what} must be an object"
        return
    if not isinstance(call.get("name"), str):
        yield f"{what}.name must be a string"
    if not isinstance(call.get("arguments"), dict):
        yield f"{what}.arguments must be an object"


def check_candidate(tools: Any, call: Any) -> list[str]:
    """Return the faults of a call in a verifier's row: no object with name and arguments, an unknown tool, a missing
    required argument, an argument of another primitive type than declared; [] if there are none. Unknown arguments and
    unknown types are no faults."""
    shape = list(_check_call_shape(call, "candidate_call"))
    if shape:
        return shape
    named = [tool for tool in _list_or_empty(tools) if isinstance(tool, dict) and tool.get("name") == call["name"]]
    tool = named[-1] if named else None
    if tool is None:
        return [f"candidate_call.name {call['name']!r:.80} is not among the available tools"]
    return list(_check_arguments(tool.get("parameters"), call["arguments"]))


def _check_arguments(schema: Any, arguments: Json) -> Faults:
    """Yield a fault for each required argument that is missing, and each argument of another primitive type than
    declared."""
    schema = schema if isinstance(schema, dict) else {}
    declared = schema.get("properties")
    for name in _list_or_empty(schema.get("required")):
        if isinstance(name, str) and name not in arguments:
            yield f"candidate_call.arguments: {name!r:.80} is required"
    for name, value in arguments.items():
        kind = _declared_type(declared, name)
        if kind in _KINDS and not _KINDS[kind](value):
            yield f"candidate_call.arguments: {name!r:.80} must be of type {kind}"


def _declared_type(declared: Any, name: str) -> str:
    """Return the type of the property `name`; "" if it is not declared as one type."""
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
