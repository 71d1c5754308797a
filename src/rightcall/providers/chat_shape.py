"""A history of any API in the shape of OpenAI's Chat, the one form that everything else here reads.

    chat_messages(anthropic_history)
    chat_messages(items, api="responses")

What a history holds was said before and is not judged again: calls are as they were sent. What a provider wants back
unseen goes with its turn, under `OPAQUE`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rightcall.api_names import api_name
from rightcall.providers.deltas import DeltaPiece, Said, Thought
from rightcall.providers.dialect import Dialect, Spoken
from rightcall.providers.sdk_view import obj, text
from rightcall.providers.sniff import DIALECTS, sniff
from rightcall.types import Json

# In a message of a history: what a provider wants back unseen (signatures, encrypted reasoning), by dialect.
OPAQUE = "rightcall_opaque"
_SPEAKERS = frozenset(("system", "developer", "user"))


def chat_messages(history: Sequence[Any], *, api: str = "auto") -> list[Json]:
    """The messages of a history in the shape of OpenAI's Chat. Those that have it already are as they were.

    - `history`: the `messages`, `input` or `contents` of a request, as that API takes them.
    - `api`: `chat`, `responses`, `messages`, `gemini` or `ollama`, or the name of its SDK; "auto" finds out.

    A call that has no id gets one, the same each time, and its result too. A result that its API marks as an error has
    `is_error`. Raises `CallerError` for an API that there is none of.
    """
    name = api if api == "auto" else api_name(api, DIALECTS)
    if name in ("auto", "chat") and all(map(_is_chat, history)):
        return list(history)
    dialect = DIALECTS[history_api(history) if name == "auto" else name]
    sides = list(dialect.sides(history))
    read = _in_place if dialect.name == "chat" else _turn
    out = [read(each.value, dialect) if isinstance(each, Spoken) else each for each in sides]
    _with_ids(out)
    for message, each in zip(out, sides, strict=True):
        if isinstance(each, Spoken) and dialect.name != "chat":
            _keep(message, each.value, dialect)
    return out


def history_api(history: Iterable[Any]) -> str:
    """The API whose history this is: the first that a message can only be of, else "chat"."""
    found = (_api(each) for each in history if not _is_chat(each))
    return next((api for api in found if api not in (None, "chat")), None) or "chat"


def _api(message: Any) -> str | None:
    found = obj(message) or {}
    if found.get("type") == "message" and "stop_reason" not in found:  # an item; else the answer of another API
        return "responses"
    return sniff(message)


def _is_chat(message: Any) -> bool:
    """Is it in the shape of Chat beyond doubt, every call with an id and arguments that are text?"""
    if type(message) is not dict:
        return False
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        return bool(message.get("tool_call_id"))
    if role == "assistant":
        if "function_call" in message or not (content is None or type(content) is str):
            return False
        calls = message.get("tool_calls")
        return not calls or (type(calls) is list and all(map(_is_chat_call, calls)))
    return role in _SPEAKERS and type(content) is str and "type" not in message


def _is_chat_call(call: Any) -> bool:
    if type(call) is not dict or not call.get("id"):
        return False
    function = call.get("function")
    return type(function) is dict and type(function.get("arguments")) is str


def _turn(said: Any, dialect: Dialect) -> Json:
    """What the model said, as Chat writes it."""
    deltas = [delta for _, delta in dialect.whole(said)]
    message: Json = {"role": "assistant", "content": "\n".join([each.text for each in deltas if type(each) is Said])}
    if calls := [_call(each) for each in deltas if isinstance(each, DeltaPiece)]:
        message["tool_calls"] = calls
    if thought := "\n".join([each.text for each in deltas if type(each) is Thought]):
        message["reasoning_content"] = thought
    return message


def _in_place(said: Any, dialect: Dialect) -> Json:
    """A message of Chat as it is, but for calls in a shape of their own."""
    if _is_chat(said):
        return dict(said)
    calls = _turn(said, dialect).get("tool_calls")
    fields = {key: value for key, value in said.items() if key not in ("function_call", "tool_calls")}
    if not calls:
        return fields
    beside = [kept for _, kept in dialect.opaque(said)[1]] or [{}] * len(calls)
    return {**fields, "tool_calls": [{**kept, **call} for kept, call in zip(beside, calls, strict=False)]}


def _keep(message: Json, said: Any, dialect: Dialect) -> None:
    own, of_calls = dialect.opaque(said)
    ids = [call["id"] for call in _calls_of(message)]
    calls = {id: fields for id, (_, fields) in zip(ids, of_calls, strict=False) if fields}
    if own or calls:
        message[OPAQUE] = {dialect.name: {**({"": own} if own else {}), **calls}}


def _call(piece: DeltaPiece) -> Json:
    if piece.custom:
        return {"id": piece.id, "type": "custom", "custom": {"name": piece.name, "input": piece.arguments}}
    return {"id": piece.id, "type": "function", "function": {"name": piece.name, "arguments": piece.arguments or "{}"}}


def _with_ids(messages: list[Json]) -> None:
    """Every call has an id, and its result the same: by its own, else by the tool's name, else the first that waits."""
    taken = {call["id"] for message in messages for call in _calls_of(message) if call["id"]}
    made = 0
    waiting: dict[str, str] = {}
    for message in messages:
        for call in _calls_of(message):
            made += 1
            call["id"] = call["id"] or _minted(made, taken)
            waiting[call["id"]] = text((call.get("function") or call.get("custom") or {}).get("name"))
        if message["role"] == "tool":
            id = message.get("tool_call_id") or _whose(text(message.get("name")), waiting)
            waiting.pop(id, None)
            message["tool_call_id"] = id
            if not message.get("name"):
                message.pop("name", None)


def _calls_of(message: Json) -> list[Json]:
    found = message.get("tool_calls") if message["role"] == "assistant" else None
    return found if isinstance(found, list) else []


def _minted(number: int, taken: set[str]) -> str:
    id = f"call_{number}"
    while id in taken:
        id += "_"
    taken.add(id)
    return id


def _whose(name: str, waiting: dict[str, str]) -> str:
    found = (id for id, of in waiting.items() if of == name)
    return next(found, "" if name else next(iter(waiting), ""))
