"""Logs of provider APIs: conversations, requests with their responses, responses alone, cassettes and batches.

    {"messages": [...], "tools": [...]}                          a conversation: each turn of the model gets rows
    {"request": {"messages": [...]}, "response": {...}}          an exchange: the response does, its history does not
    {"object": "chat.completion", "choices": [...]}              an answer without its request
    {"request": {"method": "POST", "path": "/v1/chat/completions", "body": {...}}, "response": {"chunks": [...], ...}}
    {"custom_id": "a", "body": {...}}   {"custom_id": "a", "response": {"status_code": 200, "body": {...}}}

Requests and responses have several names, may be JSON in a text, or be inside a `body`. A response may be a recorded
stream: the text of its events, or a list of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from rightcall.backends.auto_mode import PROBE_PROMPT
from rightcall.backends.cassette import RecordedExchange, api_route
from rightcall.datasets.log_entries import Entry, Log, LogTurn, PassedOver, flatten_content, id_in, model_in, time_in
from rightcall.errors import CallerError
from rightcall.providers.dialect import ModelTurn
from rightcall.providers.gemini import field
from rightcall.providers.sdk_view import compact_json, error_text, items, obj, objects, text
from rightcall.providers.sniff import DIALECTS, detect_dialect
from rightcall.providers.sse import decode_container, parse_recording
from rightcall.types import Json

_PAIRS = (
    *(("request", "response"), ("request_body", "response_body"), ("req", "res"), ("body", "response")),
    *(("input", "output"), ("inputs", "outputs")),
)
_ANSWERS = ("response", "completion", "output", "generated_text", "text")  # beside the messages of a request
_EVENTS = frozenset(
    "message_start content_block_start content_block_delta content_block_stop message_delta message_stop".split()
)
_EXCHANGE = ("request", "response")


# -- the request and the response of a line ----------------------------------------------------------------------------


def as_exchange(row: Json) -> Json:
    """Return the line with its request and response as objects under these names, if it has both; else unchanged."""
    for asked, answered in _PAIRS:
        request, response = _unwrap(row.get(asked)), _unwrap(row.get(answered))
        if isinstance(request, list):
            request = {"messages": request}
        if isinstance(request, dict) and _is_request(request) and _is_response(response):
            return {**row, "request": request, "response": response}
    messages = items(row.get("messages") or row.get("contents"))
    answered = next((key for key in _ANSWERS if _is_answer_to(row.get(key), messages)), "") if messages else ""
    if answered:
        request = {key: value for key, value in row.items() if key != answered}
        return {**row, "request": request, "response": _unwrap(row[answered])}
    prompt, completion = row.get("prompt"), row.get("completion", row.get("chosen"))
    if isinstance(prompt, list) and isinstance(completion, list):
        return {**row, "messages": [*prompt, *completion]}
    return row


def _is_answer_to(value: Any, messages: list[Any]) -> bool:
    """Return whether a value answers these messages. A text does unless the last message is an answer already."""
    if isinstance(value, str):
        return bool(value.strip()) and (obj(messages[-1]) or {}).get("role") not in ("assistant", "model")
    return bool(obj(value)) or _is_stream(value)


def _unwrap(value: Any) -> Any:
    """Return what is inside a `body`, or inside a JSON text."""
    if isinstance(value, str):
        found = decode_container(value)
        return _unwrap(found) if _is_api_json(found) else value
    inner = next((value[key] for key in ("body", "json") if key in value), None) if isinstance(value, dict) else None
    return _unwrap(inner) if isinstance(inner, dict | str) else value


def _is_api_json(found: Any) -> bool:
    """Return whether JSON is a request or a response of an API, and not the text of a model."""
    if isinstance(found, list):
        return detect_dialect(found) is not None
    return isinstance(found, dict) and (
        _is_request(found) or "body" in found or "error" in found or detect_dialect(found) is not None
    )


def _is_request(request: Json) -> bool:
    return any(request.get(key) for key in ("messages", "contents", "input", "prompt"))


def _is_response(response: Any) -> bool:
    """Return whether a value is a response. A list is one only if it is a stream: otherwise it is a Responses
    conversation."""
    if isinstance(response, list):
        return _is_stream(response)
    return isinstance(response, dict | str) and bool(response)


def is_exchange(row: Json) -> bool:
    """Return whether a line from `as_exchange` has a request and a response."""
    return isinstance(row.get("request"), dict) and row.get("response") is not None


def api_of(row: Json) -> str:
    """Return the API of a line by its keys; "" if it is of none."""
    row = as_exchange(row)
    if is_exchange(row) and _is_request(row["request"]):
        return api_of_request(row["request"], api_of_answer(row["response"]))
    if any(isinstance(row.get(key), list) for key in ("messages", "contents")):
        return api_of_request(row)
    if any(isinstance(row.get(key), list) for key in ("input", "output", "items")):
        return "responses"
    return detect_dialect(row) or ""


def api_of_request(request: Json, answer_api: str = "") -> str:
    """Return the API of a request. The API of its answer decides between APIs with the same requests."""
    if "contents" in request:
        return "gemini"
    if isinstance(request.get("messages"), list):
        messages = objects(request["messages"])
        kinds = {text(block.get("type")) for each in messages for block in objects(each.get("content"))}
        if not kinds.isdisjoint({"tool_use", "tool_result", "thinking"}):
            return "messages"
        if any("input_schema" in tool for tool in objects(request.get("tools"))):
            return "messages"
        return answer_api if answer_api in ("messages", "ollama") else "chat"
    return "responses" if "input" in request else "chat"


def api_of_answer(response: Any) -> str:
    """Return the API of an answer, complete or as a stream; "" for the text of a model."""
    if isinstance(response, str):
        found = parse_recording(response) or []
        return next((api for payload in found if (api := detect_dialect(payload))), "")
    return detect_dialect(response) or ""


# -- conversations and exchanges ---------------------------------------------------------------------------------------


def api_log(api: str) -> Callable[[Json], Log]:
    """Return the reader of logs of this API."""

    def read(row: Json) -> Log:
        row = as_exchange(row)
        if is_exchange(row):
            return read_exchange(row["request"], row["response"], api, row)
        history, tools = _HISTORIES[api](row, False)
        if not history and detect_dialect(row):
            history = [read_logged_answer(row, api)]
        return Log(tuple(history), tools, model=model_in(row), at=time_in(row), id=id_in(row))

    return read


def read_exchange(request: Json, response: Any, api: str, line: Json, model: str = "") -> Log:
    """Read one answer with the conversation of its request. `line` is the line that holds both."""
    history, tools = _HISTORIES[api](request, True)
    answer = read_logged_answer(response, api)
    beside = {key: value for key, value in line.items() if key not in _EXCHANGE}
    facts = _answer_facts(response)
    return Log(
        (*history, answer),
        tools,
        model=model_in(request, beside, facts) or model,
        at=time_in(facts, beside, request),
        id=id_in(beside) or id_in({"id": answer.id}),
        is_exchange=True,
    )


def read_logged_answer(response: Any, api: str) -> LogTurn:
    """Read an answer: a recorded stream as the text of its events, a text as the text of a model."""
    facts = _answer_facts(response)
    id = id_in({"id": facts.get("id", facts.get("responseId"))}) or None
    value = _stream_text(response) if _is_stream(response) else response
    found = api_of_answer(value)
    return LogTurn(value, found or ("text" if isinstance(value, str) else api), id=id, at=time_in(facts))


def _answer_facts(response: Any) -> Json:
    """Return the object with the id, model and time of an answer; of a stream, that of its first event."""
    if isinstance(response, str):
        response = parse_recording(response) or []
    first = response[0] if isinstance(response, list) and response else response
    found = obj(first) or {}
    return obj(found.get("response")) or (obj(found.get("message")) if "type" in found else None) or found


def _is_stream(response: Any) -> bool:
    """Return whether a value is a list of the events of a stream, as objects or as their lines."""
    if not isinstance(response, list) or not response:
        return False
    if all(isinstance(each, str) for each in response):
        return bool(parse_recording(_stream_text(response)))
    return all(isinstance(each, dict) and _is_event(each) for each in response)


def _is_event(found: Json) -> bool:
    kind = text(found.get("type"))
    return (
        text(found.get("object")).endswith(".chunk")
        or kind.startswith("response.")
        or kind in _EVENTS
        or kind == "ping"
        or "candidates" in found
        or ("done" in found and "model" in found)
    )


def _stream_text(events: list[Any]) -> str:
    """Return the events of a stream as the text that the server sent."""
    lines = [each.rstrip("\n") if isinstance(each, str) else f"data: {compact_json(each)}" for each in events]
    return "".join([f"{line}\n\n" for line in lines])


# -- histories: the conversation of a request, by API ------------------------------------------------------------------

History = tuple[list[Entry], Any]  # entries, and the tools as they were declared


def _history(api: str, system: Any, messages: list[Any], is_history: bool) -> list[Entry]:
    """Return the entries of a request whose system message is separate from its messages."""
    entries: list[Entry] = [{"role": "system", "content": found}] if (found := flatten_content(system)) else []
    for each in DIALECTS[api].history_entries(messages):
        entries.append(LogTurn(each.value, api, is_history) if isinstance(each, ModelTurn) else _message_entry(each))
    return entries


def _message_entry(message: Json) -> Json:
    """Return a message of the other side; a result has the id or name of its call, and whether it is an error."""
    content = flatten_content(message.get("content"))
    if message["role"] != "tool":
        return {"role": "system" if message["role"] == "developer" else message["role"], "content": content}
    name = {"name": message["name"]} if message.get("name") else {}
    status = {"status": "error"} if message.get("is_error") is True else {}
    return {"tool_call_id": text(message.get("tool_call_id")), **name, "role": "tool", "content": content, **status}


def _chat(request: Json, is_history: bool, api: str = "chat") -> History:
    prompt = text(request.get("prompt"))
    asked = [{"role": "user", "content": prompt}] if prompt else []
    entries = _history(api, None, [*asked, *objects(request.get("messages"))], is_history)
    return entries, request.get("tools", request.get("functions"))


def _messages(request: Json, is_history: bool) -> History:
    entries = _history("messages", request.get("system"), items(request.get("messages")), is_history)
    return entries, request.get("tools")


def _responses(request: Json, is_history: bool) -> History:
    asked = [{"role": "user", "content": request["input"]}] if isinstance(request.get("input"), str) else []
    listed = [each for key in ("items", "input", "output") for each in objects(request.get(key))]
    return _history("responses", text(request.get("instructions")), [*asked, *listed], is_history), request.get("tools")


def _gemini(request: Json, is_history: bool) -> History:
    contents, system = request.get("contents"), field(request, "systemInstruction")
    found = obj(system)
    instructions = text(system) if found is None else flatten_content(objects(found.get("parts")) or found.get("text"))
    listed = contents if isinstance(contents, list) else [contents]
    return _history("gemini", instructions, listed, is_history), request.get("tools")


_HISTORIES: dict[str, Callable[[Json, bool], History]] = {
    "chat": _chat,
    "messages": _messages,
    "responses": _responses,
    "gemini": _gemini,
    "ollama": lambda request, is_history: _chat(request, is_history, "ollama"),
}


# -- cassettes ---------------------------------------------------------------------------------------------------------

_CASSETTE_HEAD = "rightcall_cassette"
_GEMINI_MODEL = re.compile(r"/models/([^/:]{1,200}):\w*[gG]enerateContent$").search


def is_cassette(row: Json) -> bool:
    """Return whether a line is of one of our cassettes."""
    request, response = row.get("request"), row.get("response")
    recorded = isinstance(request, dict) and isinstance(response, dict) and "method" in request and "chunks" in response
    return _CASSETTE_HEAD in row or recorded


def read_cassette(row: Json) -> Log:
    """Read the exchange of a cassette line. Questions about the server, probes and failed attempts are passed over."""
    if _CASSETTE_HEAD in row:
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
    messages = body.get("messages") or body.get("input")
    last = messages[-1] if isinstance(messages, list) and messages else None
    if (obj(last) or {}).get("content") == PROBE_PROMPT:  # `--mode auto` asks for a call of a tool without effect
        raise PassedOver("probe of the server")
    content = b"".join(response.pieces()).decode("utf-8", "replace")
    model = _GEMINI_MODEL(api_route(found.request.path))
    value = decode_container(content)
    answer = content if value is None else value
    api = api_of_request(body, api_of_answer(answer))
    return read_exchange(body, answer, api, {}, model[1] if model else "")


# -- batches -----------------------------------------------------------------------------------------------------------

_REQUESTS, _RESULTS = ("body", "params", "request"), ("response", "result", "error")


def is_batch(row: Json) -> bool:
    """Return whether a line is a request or a result of a batch."""
    return bool(batch_key(row)) and any(isinstance(row.get(key), dict) for key in (*_REQUESTS, *_RESULTS))


def batch_key(row: Json) -> str:
    """Return the id that a request and its result share."""
    return id_in({"custom_id": row.get("custom_id", row.get("key"))})


def join_batch(rows: list[Json]) -> Json:
    """Join a request and its result to one line. Several requests or results with one id cannot be matched."""
    requests = [row for row in rows if _first_object(row, _REQUESTS) is not None]
    results = [row for row in rows if _first_object(row, _RESULTS) is not None and row not in requests]
    if max(len(requests), len(results)) > 1:
        return {"several": len(rows), "custom_id": batch_key(rows[0])}
    return {key: value for row in rows for key, value in row.items() if value is not None}


def _first_object(row: Json, keys: tuple[str, ...]) -> Json | None:
    return next((found for key in keys if (found := obj(row.get(key)))), None)


def read_batch(row: Json) -> Log:
    """Read a line of `join_batch`. Failed requests are passed over."""
    id = batch_key(row)
    if "several" in row:
        raise CallerError(
            f"{row['several']} lines have the id {id!r:.80}, so requests and results cannot be matched; "
            "import one batch at a time"
        )
    request, answer = _first_object(row, _REQUESTS), _first_object(row, _RESULTS)
    if answer is None:
        raise CallerError(f"the request {id!r:.80} has no result; give the file of the results too")
    if text(answer.get("type")) in ("errored", "canceled", "expired"):
        answer = {"error": error_text(answer)}
    response = answer.get("body", answer.get("message", answer))
    if isinstance(response, str):
        response = decode_container(response) or response
    failed = row.get("error") or answer.get("error") or (obj(response) or {}).get("error")
    if failed or answer.get("status_code", 200) != 200:
        raise PassedOver("request of a batch that failed")
    api = api_of_request(request or {}, api_of_answer(response)) if request else api_of_answer(response)
    beside = {key: value for key, value in row.items() if key not in (*_REQUESTS, *_RESULTS)}
    return read_exchange(request or {}, response, api or "chat", {**beside, "custom_id": id})
