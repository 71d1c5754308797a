"""Logs of provider APIs: conversations, requests with their responses, responses alone, cassettes and batches.

    {"messages": [...], "tools": [...]}                          a conversation: each turn of the model gets rows
    {"request": {"messages": [...]}, "response": {...}}          an exchange: only the response gets rows
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
from rightcall.datasets.log_entries import (
    Entry,
    Log,
    LogTurn,
    PassedOver,
    find_id,
    find_model,
    find_time_ms,
    flatten_content,
)
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


def normalize_exchange(row: Json) -> Json:
    """Return a line that has a request and a response, under any of their usual keys, with both as `request` and
    `response`. Without them, a prompt and a completion that are lists are joined to `messages`; any other line is
    returned unchanged."""
    for request_key, response_key in _PAIRS:
        request, response = _unwrap_body(row.get(request_key)), _unwrap_body(row.get(response_key))
        if isinstance(request, list):
            request = {"messages": request}
        if isinstance(request, dict) and _is_request(request) and _is_response(response):
            return {**row, "request": request, "response": response}
    messages = items(row.get("messages") or row.get("contents"))
    answer_key = next((key for key in _ANSWERS if _is_answer_to(row.get(key), messages)), "") if messages else ""
    if answer_key:
        request = {key: value for key, value in row.items() if key != answer_key}
        return {**row, "request": request, "response": _unwrap_body(row[answer_key])}
    prompt, completion = row.get("prompt"), row.get("completion", row.get("chosen"))
    if isinstance(prompt, list) and isinstance(completion, list):
        return {**row, "messages": [*prompt, *completion]}
    return row


def _is_answer_to(value: Any, messages: list[Any]) -> bool:
    """Return whether a value is an answer to these messages: an object, a stream, or a text unless the last message
    is an answer already."""
    if isinstance(value, str):
        return bool(value.strip()) and (obj(messages[-1]) or {}).get("role") not in ("assistant", "model")
    return bool(obj(value)) or _is_stream(value)


def _unwrap_body(value: Any) -> Any:
    """Return the value inside a `body` or `json` key, or inside a JSON text that is a request or response, at any depth
    of both; any other value, such as the text of a model, unchanged."""
    if isinstance(value, str):
        found = decode_container(value)
        return _unwrap_body(found) if _is_api_json(found) else value
    inner = next((value[key] for key in ("body", "json") if key in value), None) if isinstance(value, dict) else None
    return _unwrap_body(inner) if isinstance(inner, dict | str) else value


def _is_api_json(found: Any) -> bool:
    """Return whether decoded JSON is a request or a response of an API, and not JSON that a model wrote."""
    if isinstance(found, list):
        return detect_dialect(found) is not None
    return isinstance(found, dict) and (
        _is_request(found) or "body" in found or "error" in found or detect_dialect(found) is not None
    )


def _is_request(request: Json) -> bool:
    """Return whether an object has a key with the messages or the prompt of a request."""
    return any(request.get(key) for key in ("messages", "contents", "input", "prompt"))


def _is_response(response: Any) -> bool:
    """Return whether a value can be a response: an object, a text, or a list of stream events. Any other list is a
    conversation of the Responses API."""
    if isinstance(response, list):
        return _is_stream(response)
    return isinstance(response, dict | str) and bool(response)


def is_exchange(row: Json) -> bool:
    """Return whether a line, as `normalize_exchange` returns it, has a request and a response."""
    return isinstance(row.get("request"), dict) and row.get("response") is not None


def detect_line_api(row: Json) -> str:
    """Return the API of a line ("chat", "messages", "responses", "gemini" or "ollama") by its keys; "" if it is of
    none."""
    row = normalize_exchange(row)
    if is_exchange(row) and _is_request(row["request"]):
        return detect_request_api(row["request"], detect_answer_api(row["response"]))
    if any(isinstance(row.get(key), list) for key in ("messages", "contents")):
        return detect_request_api(row)
    if any(isinstance(row.get(key), list) for key in ("input", "output", "items")):
        return "responses"
    return detect_dialect(row) or ""


def detect_request_api(request: Json, answer_api: str = "") -> str:
    """Return the API of a request by its keys; "chat" if they name none. Chat, Ollama and plain Messages requests look
    the same: there `answer_api`, the API of the answer, decides."""
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


def detect_answer_api(response: Any) -> str:
    """Return the API of an answer: an object, a list of stream events, or the text of a stream. "" for the text of a
    model and for anything that is not recognized."""
    if isinstance(response, str):
        found = parse_recording(response) or []
        return next((api for payload in found if (api := detect_dialect(payload))), "")
    return detect_dialect(response) or ""


# -- conversations and exchanges ---------------------------------------------------------------------------------------


def make_log_reader(api: str) -> Callable[[Json], Log]:
    """Return a function that reads a line of this API as a `Log`: an exchange, a conversation, or a single answer. The
    `Log` has no entries if the line is none of these."""

    def read(row: Json) -> Log:
        """Return the `Log` of a line; its entries are empty if it holds neither messages nor an answer."""
        row = normalize_exchange(row)
        if is_exchange(row):
            return read_exchange(row["request"], row["response"], api, row)
        history, tools = _HISTORIES[api](row, False)
        if not history and detect_dialect(row):
            history = [read_logged_answer(row, api)]
        return Log(tuple(history), tools, model=find_model(row), at=find_time_ms(row), id=find_id(row))

    return read


def read_exchange(request: Json, response: Any, api: str, line: Json, model: str = "") -> Log:
    """Return a `Log` of the request's conversation and its answer; only the answer gets rows. `line` is the line that
    holds both, and `model` is used if request, line and answer name none."""
    history, tools = _HISTORIES[api](request, True)
    answer = read_logged_answer(response, api)
    beside = {key: value for key, value in line.items() if key not in _EXCHANGE}
    metadata = _find_answer_metadata(response)
    return Log(
        (*history, answer),
        tools,
        model=find_model(request, beside, metadata) or model,
        at=find_time_ms(metadata, beside, request),
        id=find_id(beside) or find_id({"id": answer.id}),
        is_exchange=True,
    )


def read_logged_answer(response: Any, api: str) -> LogTurn:
    """Return the turn of an answer. A list of stream events becomes their text; other values are kept. The turn's API
    is detected from the answer; if it is not recognized, it is "text" for a text, else `api`."""
    metadata = _find_answer_metadata(response)
    id = find_id({"id": metadata.get("id", metadata.get("responseId"))}) or None
    value = _join_stream_events(response) if _is_stream(response) else response
    found = detect_answer_api(value)
    return LogTurn(value, found or ("text" if isinstance(value, str) else api), id=id, at=find_time_ms(metadata))


def _find_answer_metadata(response: Any) -> Json:
    """Return the object that holds the id, model and time of an answer: for a stream, that of its first event; {} if
    there is none."""
    if isinstance(response, str):
        response = parse_recording(response) or []
    first = response[0] if isinstance(response, list) and response else response
    found = obj(first) or {}
    return obj(found.get("response")) or (obj(found.get("message")) if "type" in found else None) or found


def _is_stream(response: Any) -> bool:
    """Return whether a value is a non-empty list of the events of a stream, as objects or as lines of text."""
    if not isinstance(response, list) or not response:
        return False
    if all(isinstance(each, str) for each in response):
        return bool(parse_recording(_join_stream_events(response)))
    return all(isinstance(each, dict) and _is_stream_event(each) for each in response)


def _is_stream_event(found: Json) -> bool:
    """Return whether an object is an event of a stream of any API."""
    kind = text(found.get("type"))
    return (
        text(found.get("object")).endswith(".chunk")
        or kind.startswith("response.")
        or kind in _EVENTS
        or kind == "ping"
        or "candidates" in found
        or ("done" in found and "model" in found)
    )


def _join_stream_events(events: list[Any]) -> str:
    """Return a list of stream events, objects or lines, as the text of server-sent events."""
    lines = [each.rstrip("\n") if isinstance(each, str) else f"data: {compact_json(each)}" for each in events]
    return "".join([f"{line}\n\n" for line in lines])


# -- histories: the conversation of a request, by API ------------------------------------------------------------------

History = tuple[list[Entry], Any]  # entries, and the tools as they were declared


def _collect_entries(api: str, system: Any, messages: list[Any], is_history: bool) -> list[Entry]:
    """Return the entries of a request: its system message, if it is not empty, and its messages, with turns of the
    model as `LogTurn`. `is_history` marks these turns as part of a request."""
    entries: list[Entry] = [{"role": "system", "content": found}] if (found := flatten_content(system)) else []
    for each in DIALECTS[api].history_entries(messages):
        entries.append(LogTurn(each.value, api, is_history) if isinstance(each, ModelTurn) else _convert_message(each))
    return entries


def _convert_message(message: Json) -> Json:
    """Return a message of the user, the system or a tool in the form of the chat API, with its content as text. A
    result has the id and the name of its call, and the status "error" if it is marked so."""
    content = flatten_content(message.get("content"))
    if message["role"] != "tool":
        return {"role": "system" if message["role"] == "developer" else message["role"], "content": content}
    name = {"name": message["name"]} if message.get("name") else {}
    status = {"status": "error"} if message.get("is_error") is True else {}
    return {"tool_call_id": text(message.get("tool_call_id")), **name, "role": "tool", "content": content, **status}


def _chat_history(request: Json, is_history: bool, api: str = "chat") -> History:
    """Return the entries and the declared tools of a Chat or Ollama request (`api`), or of one of the legacy
    completions API with a `prompt`. `is_history` marks turns of the model as part of a request."""
    prompt = text(request.get("prompt"))
    asked = [{"role": "user", "content": prompt}] if prompt else []
    entries = _collect_entries(api, None, [*asked, *objects(request.get("messages"))], is_history)
    return entries, request.get("tools", request.get("functions"))


def _messages_history(request: Json, is_history: bool) -> History:
    """Return the entries and the declared tools of a Messages request. `is_history` marks turns of the model as part of
    a request, so that they get no rows."""
    entries = _collect_entries("messages", request.get("system"), items(request.get("messages")), is_history)
    return entries, request.get("tools")


def _responses_history(request: Json, is_history: bool) -> History:
    """Return the entries and the declared tools of a Responses request, or of a logged list of its items (`items`,
    `input`, `output`). `is_history` marks turns of the model as part of a request, so that they get no rows."""
    asked = [{"role": "user", "content": request["input"]}] if isinstance(request.get("input"), str) else []
    listed = [each for key in ("items", "input", "output") for each in objects(request.get(key))]
    entries = _collect_entries("responses", text(request.get("instructions")), [*asked, *listed], is_history)
    return entries, request.get("tools")


def _gemini_history(request: Json, is_history: bool) -> History:
    """Return the entries and the declared tools of a Gemini request. `is_history` marks turns of the model as part of a
    request, so that they get no rows."""
    contents, system = request.get("contents"), field(request, "systemInstruction")
    found = obj(system)
    instructions = text(system) if found is None else flatten_content(objects(found.get("parts")) or found.get("text"))
    listed = contents if isinstance(contents, list) else [contents]
    return _collect_entries("gemini", instructions, listed, is_history), request.get("tools")


_HISTORIES: dict[str, Callable[[Json, bool], History]] = {
    "chat": _chat_history,
    "messages": _messages_history,
    "responses": _responses_history,
    "gemini": _gemini_history,
    "ollama": lambda request, is_history: _chat_history(request, is_history, "ollama"),
}


# -- cassettes ---------------------------------------------------------------------------------------------------------

_CASSETTE_HEAD = "rightcall_cassette"
_GEMINI_MODEL = re.compile(r"/models/([^/:]{1,200}):\w*[gG]enerateContent$").search


def is_cassette(row: Json) -> bool:
    """Return whether a line is the head or an exchange of a cassette, as `Recorder` writes them."""
    request, response = row.get("request"), row.get("response")
    recorded = isinstance(request, dict) and isinstance(response, dict) and "method" in request and "chunks" in response
    return _CASSETTE_HEAD in row or recorded


def read_cassette(row: Json) -> Log:
    """Return the exchange of a cassette line as a `Log`. Raises `PassedOver` for heads, questions about the server,
    probes and failed answers, and `CallerError` for a line that is no valid exchange."""
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
    api = detect_request_api(body, detect_answer_api(answer))
    return read_exchange(body, answer, api, {}, model[1] if model else "")


# -- batches -----------------------------------------------------------------------------------------------------------

_REQUESTS, _RESULTS = ("body", "params", "request"), ("response", "result", "error")


def is_batch(row: Json) -> bool:
    """Return whether a line is a request or a result of a batch."""
    return bool(batch_key(row)) and any(isinstance(row.get(key), dict) for key in (*_REQUESTS, *_RESULTS))


def batch_key(row: Json) -> str:
    """Return the id that a request and its result in a batch share; "" if the line has none."""
    return find_id({"custom_id": row.get("custom_id", row.get("key"))})


def join_batch(rows: list[Json]) -> Json:
    """Return a request and its result, which share an id, merged to one line; of two values for one key the later
    counts, null is left out. Several requests or several results with one id cannot be matched: then return a line with
    their number (`several`), for which `read_batch` raises."""
    requests = [row for row in rows if _first_object(row, _REQUESTS) is not None]
    results = [row for row in rows if _first_object(row, _RESULTS) is not None and row not in requests]
    if max(len(requests), len(results)) > 1:
        return {"several": len(rows), "custom_id": batch_key(rows[0])}
    return {key: value for row in rows for key, value in row.items() if value is not None}


def _first_object(row: Json, keys: tuple[str, ...]) -> Json | None:
    """Return the first non-empty object under one of these keys; None if there is none."""
    return next((found for key in keys if (found := obj(row.get(key)))), None)


def read_batch(row: Json) -> Log:
    """Return the exchange of a line from `join_batch` as a `Log`. Raises `PassedOver` for a failed request, and
    `CallerError` for a request without a result and for several with one id."""
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
    api = detect_request_api(request or {}, detect_answer_api(response)) if request else detect_answer_api(response)
    beside = {key: value for key, value in row.items() if key not in (*_REQUESTS, *_RESULTS)}
    return read_exchange(request or {}, response, api or "chat", {**beside, "custom_id": id})
