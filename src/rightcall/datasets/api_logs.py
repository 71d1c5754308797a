"""Logs of the APIs of providers: conversations, requests with their responses, and responses alone.

    {"messages": [...], "tools": [...]}                          a conversation: each turn of the model is a row
    {"request": {"messages": [...]}, "response": {...}}          an exchange: the response is, its history is not
    {"object": "chat.completion", "choices": [...]}              an answer to nobody knows what

Requests and responses go by several names, may be JSON in a text, or stand in a `body`. A response may be a recorded
stream: the text of its events, or a list of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rightcall.datasets.logged import Entry, Log, LogTurn, flat, id_in, model_in, time_in
from rightcall.providers.dialect import ModelTurn
from rightcall.providers.gemini import field
from rightcall.providers.sdk_view import dumps, items, obj, objects, text
from rightcall.providers.sniff import DIALECTS, sniff
from rightcall.providers.sse import as_payloads, json_value
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


# -- what stands where -------------------------------------------------------------------------------------------------


def as_exchange(row: Json) -> Json:
    """The line with its request and response as objects under these names, if it has both; else as it is."""
    for asked, answered in _PAIRS:
        request, response = _opened(row.get(asked)), _opened(row.get(answered))
        if isinstance(request, list):
            request = {"messages": request}
        if isinstance(request, dict) and _asks(request) and _answers(response, request):
            return {**row, "request": request, "response": response}
    sent = items(row.get("messages") or row.get("contents"))
    answered = next((key for key in _ANSWERS if _is_answer(row.get(key), sent)), "") if sent else ""
    if answered:
        request = {key: value for key, value in row.items() if key != answered}
        return {**row, "request": request, "response": _opened(row[answered])}
    prompt, completion = row.get("prompt"), row.get("completion", row.get("chosen"))
    if isinstance(prompt, list) and isinstance(completion, list):
        return {**row, "messages": [*prompt, *completion]}
    return row


def _is_answer(value: Any, sent: list[Any]) -> bool:
    """Is this the answer to these messages? Words are, unless the last of the messages is an answer already."""
    if isinstance(value, str):
        return bool(value.strip()) and (obj(sent[-1]) or {}).get("role") not in ("assistant", "model")
    return bool(obj(value)) or _is_stream(value)


def _opened(value: Any) -> Any:
    """What stands in a body, and what a JSON text holds."""
    if isinstance(value, str):
        found = json_value(value)
        return _opened(found) if _is_of_an_api(found) else value
    inner = next((value[key] for key in ("body", "json") if key in value), None) if isinstance(value, dict) else None
    return _opened(inner) if isinstance(inner, dict | str) else value


def _is_of_an_api(found: Any) -> bool:
    """Is this what a server was sent or sent, and not JSON that a model wrote?"""
    if isinstance(found, list):
        return sniff(found) is not None
    return isinstance(found, dict) and (_asks(found) or "body" in found or "error" in found or sniff(found) is not None)


def _asks(request: Json) -> bool:
    return any(request.get(key) for key in ("messages", "contents", "input", "prompt"))


def _answers(response: Any, request: Json) -> bool:
    """A list is an answer if it is a stream; the items of a Responses conversation are that conversation."""
    if isinstance(response, list):
        return _is_stream(response)
    return isinstance(response, dict | str) and bool(response)


def is_exchange(row: Json) -> bool:
    return isinstance(row.get("request"), dict) and row.get("response") is not None


def api_of(row: Json) -> str:
    """Through which API a line came, told by its keys; "" if through none."""
    row = as_exchange(row)
    if is_exchange(row) and _asks(row["request"]):
        return asked_through(row["request"], answered_through(row["response"]))
    if any(isinstance(row.get(key), list) for key in ("messages", "contents")):
        return asked_through(row)
    if any(isinstance(row.get(key), list) for key in ("input", "output", "items")):
        return "responses"
    return sniff(row) or ""


def asked_through(request: Json, answered: str = "") -> str:
    """The API of a request."""
    if "contents" in request:
        return "gemini"
    if isinstance(request.get("messages"), list):
        other = "messages" if _is_messages(request) else answered
        return other if other in ("messages", "ollama") else "chat"
    return "responses" if "input" in request else "chat"


def _is_messages(row: Json) -> bool:
    kinds = {text(block.get("type")) for each in objects(row["messages"]) for block in objects(each.get("content"))}
    tools = objects(row.get("tools"))
    return not kinds.isdisjoint({"tool_use", "tool_result", "thinking"}) or any(
        "input_schema" in tool for tool in tools
    )


def answered_through(response: Any) -> str:
    """The API of an answer, whole or as a stream; "" for text."""
    if isinstance(response, str):
        found = as_payloads(response) or []
        return next((api for payload in found if (api := sniff(payload))), "")
    return sniff(response) or ""


# -- logs --------------------------------------------------------------------------------------------------------------


def api_log(api: str) -> Callable[[Json], Log]:
    """The reader of logs of this API."""

    def read(row: Json) -> Log:
        row = as_exchange(row)
        if is_exchange(row):
            return exchange(row["request"], row["response"], api, row)
        history, tools = HISTORIES[api](row, False)
        if not history and sniff(row):
            history = [answer_turn(row, api)]
        return Log(tuple(history), tools, model=model_in(row), at=time_in(row), id=id_in(row))

    return read


def exchange(request: Json, response: Any, api: str, line: Json, model: str = "") -> Log:
    """One answer, and the conversation that it was asked for. `line` is where both stand."""
    history, tools = HISTORIES[api](request, True)
    answer = answer_turn(response, api)
    beside = {key: value for key, value in line.items() if key not in _EXCHANGE}
    told = facts_of(response)
    return Log(
        (*history, answer),
        tools,
        model=model_in(request, beside, told) or model,
        at=time_in(told, beside, request),
        id=id_in(beside) or id_in({"id": answer.id}),
        is_exchange=True,
    )


def answer_turn(response: Any, api: str) -> LogTurn:
    """An answer as it is read: a recorded stream as the text of its events, words as words."""
    told = facts_of(response)
    id = id_in({"id": told.get("id", told.get("responseId"))}) or None
    value = recorded(response) if _is_stream(response) else response
    found = answered_through(value)
    return LogTurn(value, found or ("text" if isinstance(value, str) else api), id=id, at=time_in(told))


def facts_of(response: Any) -> Json:
    """What an answer says of itself; of a stream, what its first event does."""
    if isinstance(response, str):
        response = as_payloads(response) or []
    first = response[0] if isinstance(response, list) and response else response
    found = obj(first) or {}
    return obj(found.get("response")) or (obj(found.get("message")) if "type" in found else None) or found


def _is_stream(response: Any) -> bool:
    """A list of the events of a stream, as objects or as their lines."""
    if not isinstance(response, list) or not response:
        return False
    if all(isinstance(each, str) for each in response):
        return bool(as_payloads(recorded(response)))
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


def recorded(events: list[Any]) -> str:
    """The events of a stream as the text that came."""
    lines = [each.rstrip("\n") if isinstance(each, str) else f"data: {dumps(each)}" for each in events]
    return "".join([f"{line}\n\n" for line in lines])


# -- histories: what was sent, by the API ------------------------------------------------------------------------------

History = tuple[list[Entry], Any]  # entries, and the tools as they were declared


def _history(api: str, system: Any, messages: list[Any], is_history: bool) -> list[Entry]:
    """What was sent, through an API whose requests hold the system's words beside the messages."""
    entries: list[Entry] = [{"role": "system", "content": said}] if (said := flat(system)) else []
    for each in DIALECTS[api].history_entries(messages):
        entries.append(LogTurn(each.value, api, is_history) if isinstance(each, ModelTurn) else _entry(each))
    return entries


def _entry(message: Json) -> Json:
    """What somebody else said; of a result whose it is, by id or by name, and whether it was an error."""
    said = flat(message.get("content"))
    if message["role"] != "tool":
        return {"role": "system" if message["role"] == "developer" else message["role"], "content": said}
    name = {"name": message["name"]} if message.get("name") else {}
    status = {"status": "error"} if message.get("is_error") is True else {}
    return {"tool_call_id": text(message.get("tool_call_id")), **name, "role": "tool", "content": said, **status}


def _chat(request: Json, is_history: bool, api: str = "chat") -> History:
    prompt = text(request.get("prompt"))
    asked = [{"role": "user", "content": prompt}] if prompt else []
    entries = _history(api, None, [*asked, *objects(request.get("messages"))], is_history)
    return entries, request.get("tools", request.get("functions"))


def _ollama(request: Json, is_history: bool) -> History:
    return _chat(request, is_history, "ollama")


def _messages(request: Json, is_history: bool) -> History:
    entries = _history("messages", request.get("system"), items(request.get("messages")), is_history)
    return entries, request.get("tools")


def _responses(request: Json, is_history: bool) -> History:
    asked = [{"role": "user", "content": request["input"]}] if isinstance(request.get("input"), str) else []
    sent = [each for key in ("items", "input", "output") for each in objects(request.get(key))]
    return _history("responses", text(request.get("instructions")), [*asked, *sent], is_history), request.get("tools")


def _gemini(request: Json, is_history: bool) -> History:
    given = request.get("contents")
    contents = given if isinstance(given, list) else [given]
    return _history("gemini", _gemini_text(field(request, "systemInstruction")), contents, is_history), request.get(
        "tools"
    )


def _gemini_text(content: Any) -> str:
    found = obj(content)
    return text(content) if found is None else flat(objects(found.get("parts")) or found.get("text"))


HISTORIES: dict[str, Callable[[Json, bool], History]] = {
    "chat": _chat,
    "messages": _messages,
    "responses": _responses,
    "gemini": _gemini,
    "ollama": _ollama,
}
