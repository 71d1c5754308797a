"""Rows of `forge-dataset-capture/v1` as a log: those of one conversation belong together, wherever they stand."""

from __future__ import annotations

from rightcall.capture.captured_rows import FORGE, SCHEMA
from rightcall.datasets.conversations import CapturedConversation, CapturedTurn
from rightcall.datasets.logged import Entry, Log, LogTurn, time_in
from rightcall.datasets.schemas import faults
from rightcall.errors import CallerError
from rightcall.providers.sdk_view import dumps
from rightcall.types import Json

_JOURNAL = "rightcall_journal"


def is_capture(row: Json) -> bool:
    return row.get("schema_version") in (FORGE, SCHEMA) or _JOURNAL in row


def capture_group(row: Json) -> str:
    """Rows of ours need no import, so they stand alone."""
    trace = row.get("proxy_trace")
    model = trace.get("model") if isinstance(trace, dict) else ""
    return f"{row.get('example_group_id')}\0{model}" if row.get("schema_version") == FORGE else ""


def captured_together(rows: list[Json]) -> Json:
    return {"schema_version": FORGE, "rows": rows}


def captured(row: Json) -> Log:
    """The conversation of these rows, with the results of its calls."""
    if row.get("schema_version") == SCHEMA or _JOURNAL in row:
        raise CallerError("this is a capture of rightcall: `dataset label`, `split` and `export` read it as it is")
    rows: list[Json] = row.get("rows") or [row]
    wrong = next((fault for each in rows for fault in faults(each)), "")
    if wrong:
        raise CallerError(f"{wrong}; `rightcall dataset validate` lists every fault")
    found = CapturedConversation(rows)
    first = rows[0]
    trace = first["proxy_trace"]
    entries: list[Entry] = [{"role": "user", "content": first["user_request"]}]
    for turn in found.turns:
        entries += _said(turn)
    return Log(
        tuple(entries),
        first["available_tools"],
        model=trace["model"],
        group=first["example_group_id"],
        place={key: trace[key] for key in ("domain", "scenario", "run_index")},
    )


def _said(turn: CapturedTurn) -> list[Entry]:
    trace, marks = turn.rows[0]["proxy_trace"], turn.rows[0]["metadata"]
    said = LogTurn(
        turn.assistant,
        "chat",
        id=trace.get("response_id"),
        finish=trace.get("finish_reason"),
        at=time_in({"time": marks.get("provenance", {}).get("captured_at_unix_ms")}),
        number=trace["turn"],
    )
    return [said, *[_result(row) for row in turn.rows]]


def _result(row: Json) -> Json:
    """What the tool gave, as the model was told, and as it was."""
    given = row["tool_result"]
    content = given.get("content")
    said = content if isinstance(content, str) else dumps(content)
    told = {"role": "tool", "tool_call_id": row["proxy_trace"].get("tool_call_id") or "", "content": said}
    return {**told, "status": "error" if given.get("status") == "error" else "ok", "result": content}
