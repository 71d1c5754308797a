"""Recordings: our own cassettes, and the requests and results of batches.

    {"request": {"method": "POST", "path": "/v1/chat/completions", "body": {...}}, "response": {"chunks": [...], ...}}
    {"custom_id": "a", "body": {...}}   {"custom_id": "a", "response": {"status_code": 200, "body": {...}}}

Both are exchanges: the answer is what was recorded, and the request says what came before it.
"""

from __future__ import annotations

import re

import msgspec

from rightcall.backends.auto_mode import PROBE_PROMPT
from rightcall.backends.cassette import RecordedExchange, api_route
from rightcall.datasets.api_logs import answered_through, asked_through, exchange
from rightcall.datasets.logged import Log, PassedOver, id_in
from rightcall.errors import CallerError
from rightcall.providers.sdk_view import error_text, obj, text
from rightcall.providers.sse import json_value
from rightcall.types import Json

# -- cassettes ---------------------------------------------------------------------------------------------------------

_HEAD = "rightcall_cassette"
_GEMINI = re.compile(r"/models/([^/:]{1,200}):\w*[gG]enerateContent$").search


def is_cassette(row: Json) -> bool:
    request, response = row.get("request"), row.get("response")
    recorded = isinstance(request, dict) and isinstance(response, dict) and "method" in request and "chunks" in response
    return _HEAD in row or recorded


def cassette(row: Json) -> Log:
    """The answer of an exchange. What a server was asked of itself, probes, and tries that failed are passed over."""
    if _HEAD in row:
        raise PassedOver("head of a cassette")
    try:
        found = msgspec.convert(row, RecordedExchange)
    except msgspec.ValidationError as error:
        raise CallerError(f"this is no exchange of a cassette: {error}; record it again") from None
    body, response = found.request.body, found.response
    if body is None or found.request.method != "POST":
        raise PassedOver("question about the server")
    if response.status != 200 or response.broken:
        raise PassedOver("answer that failed or broke off")
    if _is_probe(body):
        raise PassedOver("probe of the server")
    said = b"".join(response.pieces()).decode("utf-8", "replace")
    model = _GEMINI(api_route(found.request.path))
    whole = json_value(said)
    answer = said if whole is None else whole
    api = asked_through(body, answered_through(answer))
    return exchange(body, answer, api, {}, model[1] if model else "")


def _is_probe(body: Json) -> bool:
    """`--mode auto` asks for a call of a tool that does nothing, as a tool or in the prompt."""
    messages = body.get("messages") or body.get("input")
    last = messages[-1] if isinstance(messages, list) and messages else None
    return (obj(last) or {}).get("content") == PROBE_PROMPT


# -- batches -----------------------------------------------------------------------------------------------------------

_REQUESTS, _RESULTS = ("body", "params", "request"), ("response", "result", "error")


def is_batch(row: Json) -> bool:
    return bool(batch_key(row)) and any(isinstance(row.get(key), dict) for key in (*_REQUESTS, *_RESULTS))


def batch_key(row: Json) -> str:
    """What a request and its result have in common."""
    return id_in({"custom_id": row.get("custom_id", row.get("key"))})


def batch_joined(rows: list[Json]) -> Json:
    """A request and its result as one line. An id that stands for several of either says nothing."""
    asked = [row for row in rows if _first(row, _REQUESTS) is not None]
    answered = [row for row in rows if _first(row, _RESULTS) is not None and row not in asked]
    if len(asked) > 1 or len(answered) > 1:
        return {"several": len(rows), "custom_id": batch_key(rows[0])}
    return {key: value for row in rows for key, value in row.items() if value is not None}


def _first(row: Json, keys: tuple[str, ...]) -> Json | None:
    return next((found for key in keys if (found := obj(row.get(key)))), None)


def batch(row: Json) -> Log:
    id = batch_key(row)
    if "several" in row:
        raise CallerError(
            f"{row['several']} lines are called {id!r:.80}, so nobody can say which belong together; "
            "import one batch at a time"
        )
    request, answer = _first(row, _REQUESTS), _answer(row)
    if answer is None:
        raise CallerError(f"the request {id!r:.80} has no result; give the file of the results too")
    response = answer.get("body", answer.get("message", answer))
    if isinstance(response, str):
        response = json_value(response) or response
    status = answer.get("status_code", 200)
    failed = row.get("error") or answer.get("error") or (obj(response) or {}).get("error")
    if failed or status != 200:
        raise PassedOver("request of a batch that failed")
    api = asked_through(request or {}, answered_through(response)) if request else answered_through(response)
    beside = {key: value for key, value in row.items() if key not in (*_REQUESTS, *_RESULTS)}
    return exchange(request or {}, response, api or "chat", {**beside, "custom_id": id})


def _answer(row: Json) -> Json | None:
    found = _first(row, _RESULTS)
    if found is not None and text(found.get("type")) in ("errored", "canceled", "expired"):
        return {"error": error_text(found)}
    return found
