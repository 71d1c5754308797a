"""Convert the messages of a history from any API to OpenAI's Chat, and write replies and results for any API.

    chat_messages(anthropic_history)
    chat_messages(items, api="responses")

    history.append(write_message(reply, "messages"))
    history += write_results("messages", [CallOutcome(call, "4 degrees")])

The calls of a history are not checked or repaired: they stay as they were sent. Fields that a provider requires back
unchanged are stored in the message under `OPAQUE`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import NoneType
from typing import Any

from rightcall.api_names import api_name
from rightcall.providers.dialect import CallDelta, CallOutcome, Dialect, ModelTurn, ReasoningDelta, TextDelta
from rightcall.providers.sdk_view import obj, text
from rightcall.providers.sniff import DIALECTS, detect_dialect
from rightcall.types import Json, Reply

# The key of a message with opaque fields (signatures, encrypted reasoning), by dialect.
OPAQUE = "rightcall_opaque"
_OTHER_ROLES = frozenset(("system", "developer", "user"))


# -- writing -----------------------------------------------------------------------------------------------------------


def write_message(reply: Reply, api: str = "chat") -> Any:
    """Return a reply as the assistant's turn of an API: one message, or for "responses" a list of items.

    Opaque fields are included if the reply came from the same API. Raises `CallerError` for an unknown API.
    """
    name = api_name(api, DIALECTS)
    return DIALECTS[name].accepted_message(reply, reply.extras if reply.api == name else {})


def write_results(api: str, outcomes: Sequence[CallOutcome], note: str = "") -> list[Json]:
    """Return the messages of an API that answer calls, in order, and the note to the model unless it is empty. Raises
    `CallerError` for an unknown API."""
    return DIALECTS[api_name(api, DIALECTS)].result_messages(outcomes, note)


# -- reading -----------------------------------------------------------------------------------------------------------


def chat_messages(history: Sequence[Any], *, api: str = "auto") -> list[Json]:
    """Convert the messages of a history to the shape of OpenAI's Chat. The given history is not changed; messages in
    that shape are returned unchanged.

    - `history`: the `messages`, `input` or `contents` of a request, as that API takes them.
    - `api`: `chat`, `responses`, `messages`, `gemini` or `ollama`, or the name of its SDK; "auto" detects it, and takes
      "chat" if no message tells.

    A call without an id gets one, which does not change between conversions, and so does its result. A result that its
    API marks as an error has `is_error`. Fields that another API than Chat requires back are under `OPAQUE`. Raises
    `CallerError` for an unknown API.
    """
    name = api if api == "auto" else api_name(api, DIALECTS)
    if name in ("auto", "chat") and all(map(_is_chat, history)):
        return list(history)
    dialect = DIALECTS[history_api(history) if name == "auto" else name]
    entries = list(dialect.history_entries(history))
    convert = _convert_chat_turn if dialect.name == "chat" else _convert_turn
    messages = [convert(each.value, dialect) if isinstance(each, ModelTurn) else each for each in entries]
    _add_ids(messages)
    if dialect.name != "chat":
        for converted, entry in zip(messages, entries, strict=True):
            if isinstance(entry, ModelTurn):
                _store_opaque_fields(converted, entry.value, dialect)
    return messages


def history_api(history: Iterable[Any]) -> str:
    """Return the dialect name of a history: that of the first message which only one API writes, else "chat"."""
    found = (_message_api(each) for each in history if not _is_chat(each))
    return next((api for api in found if api not in (None, "chat")), None) or "chat"


def _message_api(message: Any) -> str | None:
    """Return the dialect name of a message, or None if it is unknown. A message of the type `message` without a stop
    reason is an item of Responses."""
    fields = obj(message) or {}
    if fields.get("type") == "message" and "stop_reason" not in fields:  # an item of Responses, not an Anthropic answer
        return "responses"
    return detect_dialect(message)


def _is_chat(message: Any) -> bool:
    """Return True if this is certainly a Chat message that needs no conversion: a result has the id of its call, every
    call has an id and arguments as text, and other content is text (of the assistant, text or null)."""
    if type(message) is not dict:
        return False
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        return bool(message.get("tool_call_id"))
    if role == "assistant":
        if "function_call" in message or type(content) not in (str, NoneType):
            return False
        calls = message.get("tool_calls")
        return not calls or (type(calls) is list and all(map(_is_chat_call, calls)))
    return role in _OTHER_ROLES and type(content) is str and "type" not in message


def _is_chat_call(call: Any) -> bool:
    """Return True if this is an object with an id and a `function` whose arguments are text: a Chat call that needs no
    conversion. Its name is not checked."""
    if type(call) is not dict or not call.get("id"):
        return False
    function = call.get("function")
    return type(function) is dict and type(function.get("arguments")) is str


def _convert_turn(turn: Any, dialect: Dialect) -> Json:
    """Convert a turn of the model, as the dialect writes it, to an assistant message of Chat. Texts, and pieces of
    reasoning, are joined with line breaks; calls may have the id "". Faults of the turn are ignored."""
    deltas = [delta for _, delta in dialect.response_deltas(turn)]
    content = "\n".join([delta.text for delta in deltas if type(delta) is TextDelta])
    converted: Json = {"role": "assistant", "content": content}
    if calls := [_convert_call(delta) for delta in deltas if isinstance(delta, CallDelta)]:
        converted["tool_calls"] = calls
    if reasoning := "\n".join([delta.text for delta in deltas if type(delta) is ReasoningDelta]):
        converted["reasoning_content"] = reasoning
    return converted


def _convert_chat_turn(turn: Any, dialect: Dialect) -> Json:
    """Return a copy of a turn of Chat, in which calls of another shape are converted. An empty or unreadable list of
    calls is dropped."""
    if _is_chat(turn):
        return dict(turn)
    calls = _convert_turn(turn, dialect).get("tool_calls")
    fields = {key: value for key, value in turn.items() if key not in ("function_call", "tool_calls")}
    if not calls:
        return fields
    opaque_fields = [kept for _, kept in dialect.opaque_fields(turn)[1]] or [{}] * len(calls)
    return {**fields, "tool_calls": [{**kept, **call} for kept, call in zip(opaque_fields, calls, strict=False)]}


def _convert_call(call: CallDelta) -> Json:
    """Return a call delta as an entry of `tool_calls`, with the delta's id, which may be "". Empty arguments become
    `{}`."""
    if call.custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}


def _store_opaque_fields(converted: Json, turn: Any, dialect: Dialect) -> None:
    """Store the opaque fields of a turn in the converted message, under `OPAQUE` and the dialect's name. Nothing is
    stored if there are none. The calls must have their ids."""
    message_fields, call_fields = dialect.opaque_fields(turn)
    ids = [call["id"] for call in _message_calls(converted)]
    calls = {id: fields for id, (_, fields) in zip(ids, call_fields, strict=False) if fields}
    if message_fields or calls:
        converted[OPAQUE] = {dialect.name: {**({"": message_fields} if message_fields else {}), **calls}}


def _add_ids(messages: list[Json]) -> None:
    """Give every call without an id a new one, and set the `tool_call_id` of each result that has none: that of the
    call it answers, or "" if it answers none. The messages are changed in place; an empty name of a result is
    removed."""
    taken = {call["id"] for message in messages for call in _message_calls(message) if call["id"]}
    count = 0
    waiting: dict[str, str] = {}  # names of the calls without a result, by id
    for message in messages:
        for call in _message_calls(message):
            count += 1
            call["id"] = call["id"] or _new_id(count, taken)
            waiting[call["id"]] = call_name(call)
        if message["role"] == "tool":
            id = message["tool_call_id"] = message.get("tool_call_id") or _find_call_id(message, waiting)
            waiting.pop(id, None)
            if not message.get("name"):
                message.pop("name", None)


def call_name(entry: Json) -> str:
    """Return the name of the tool in an entry of `tool_calls`, which is a function call or a custom call; "" if it has
    none."""
    return text((entry.get("function") or entry.get("custom") or {}).get("name"))


def _find_call_id(result: Json, waiting: dict[str, str]) -> str:
    """Return the id of the call that a result without an id answers, or "" if there is none.

    It is the first waiting call of the result's tool, or the first waiting call at all if the result does not name its
    tool. `waiting` has the names of the calls without a result, by id, and is not changed.
    """
    name = text(result.get("name"))
    same_tool = (id for id, tool in waiting.items() if tool == name)
    return next(same_tool, "" if name else next(iter(waiting), ""))


def _message_calls(message: Json) -> list[Json]:
    """Return the calls of an assistant message, not as a copy; an empty list for any other message."""
    calls = message.get("tool_calls") if message["role"] == "assistant" else None
    return calls if isinstance(calls, list) else []


def _new_id(number: int, taken: set[str]) -> str:
    """Return an unused id, `call_` and the number, and add it to `taken`. Underscores follow while it is taken."""
    id = f"call_{number}"
    while id in taken:
        id += "_"
    taken.add(id)
    return id
