"""Logs and datasets of others as conversations in the form of the chat API: the way in for `dataset import`.

    conversation({"conversations": [{"from": "human", "value": "..."}, ...], "tools": "[...]"})

Each turn of the model is kept as it was logged (a provider's message, a list of items, or text), so that it is read by
the same code that reads models. Read are messages of the APIs chat, messages and responses, alone or as request and
response; ShareGPT with its function calls; Hermes with its tags; plain text with the tools it may call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from rightcall.api_names import api_name
from rightcall.apis.sdk_view import dumps, items, obj, objects, text
from rightcall.errors import CallerError
from rightcall.types import Json


class LogTurn(msgspec.Struct, frozen=True):
    """A turn of the model, as logged: `api` says how it is to be read, "text" that it is what the model wrote."""

    value: Any
    api: str


class Log(msgspec.Struct, frozen=True):
    """Messages of the other side in the form of the chat API, turns of the model as they were logged."""

    entries: tuple[Json | LogTurn, ...]
    tools: Any = None
    format: str = "auto"


def conversation(row: Json, kind: str = "auto") -> Log:
    """What a line of a log holds. Raises `CallerError` if it holds none."""
    named = log_kind(kind)
    return KINDS[sniffed(row) if named == "auto" else named](_joined(row))


def log_kind(name: str) -> str:
    """The word for a kind of log, or "auto". Raises `CallerError` for a name that is none."""
    return api_name(name, ("auto", *KINDS), what="kind of log")


def sniffed(row: Json) -> str:
    """Which kind of log a line is, told by its keys."""
    row = _joined(row)
    if isinstance(row.get("conversations"), list):
        return "sharegpt"
    if isinstance(row.get("messages"), list):
        return "messages" if _is_messages(row) else "chat"
    if any(isinstance(row.get(key), list) for key in ("input", "output", "items")):
        return "responses"
    if any(isinstance(row.get(key), str) for key in ("text", "completion")):
        return "text"
    raise CallerError(f"this is no log that is known; its keys are {', '.join(map(repr, list(row)[:8]))}")


def _joined(row: Json) -> Json:
    """A request and its response as one conversation; a prompt and its completion too."""
    request, response = obj(row.get("request")), obj(row.get("response"))
    if request is not None and response is not None:
        return {**request, **_answered(request, response)}
    prompt, completion = row.get("prompt"), row.get("completion", row.get("chosen"))
    if isinstance(prompt, list) and isinstance(completion, list):
        return {**row, "messages": [*prompt, *completion]}
    return row


def _answered(request: Json, response: Json) -> Json:
    if isinstance(response.get("output"), list):
        return {"output": response["output"]}
    choices = objects(response.get("choices"))
    message = obj(choices[0].get("message")) if choices else {"role": "assistant", **response}
    return {"messages": [*items(request.get("messages")), *([message] if message else [])]}


def _is_messages(row: Json) -> bool:
    kinds = {text(block.get("type")) for each in objects(row["messages"]) for block in objects(each.get("content"))}
    tools = objects(row.get("tools"))
    return not kinds.isdisjoint({"tool_use", "tool_result", "thinking"}) or any(
        "input_schema" in tool for tool in tools
    )


# -- kinds -------------------------------------------------------------------------------------------------------------


def _chat(row: Json) -> Log:
    entries: list[Json | LogTurn] = []
    for message in objects(row.get("messages")):
        role = text(message.get("role"))
        if role == "assistant":
            entries.append(LogTurn(message, "chat"))
        elif role in ("tool", "function"):
            entries.append({**message, "role": "tool", "content": _flat(message.get("content"))})
        else:
            entries.append({"role": role or "user", "content": _flat(message.get("content"))})
    return Log(tuple(entries), row.get("tools", row.get("functions")))


def _messages(row: Json) -> Log:
    entries: list[Json | LogTurn] = []
    if row.get("system"):
        entries.append({"role": "system", "content": _flat(row["system"])})
    for message in objects(row.get("messages")):
        if message.get("role") == "assistant":
            entries.append(LogTurn(message, "messages"))
        else:
            entries += _anthropic_user(message)
    return Log(tuple(entries), row.get("tools"))


def _anthropic_user(message: Json) -> Iterator[Json]:
    """Results first, as the API demands, then what the user said."""
    content = message.get("content")
    blocks = objects(content)
    for block in blocks:
        if block.get("type") == "tool_result":
            said = _flat(block.get("content"))
            yield {"role": "tool", "tool_call_id": text(block.get("tool_use_id")), "content": said}
    said = content if isinstance(content, str) else _flat([each for each in blocks if each.get("type") == "text"])
    if said or not blocks:
        yield {"role": text(message.get("role")) or "user", "content": said}


def _responses(row: Json) -> Log:
    entries: list[Json | LogTurn] = []
    if text(row.get("instructions")):
        entries.append({"role": "system", "content": row["instructions"]})
    if isinstance(row.get("input"), str):
        entries.append({"role": "user", "content": row["input"]})
    turn: list[Json] = []
    for item in [each for key in ("items", "input", "output") for each in objects(row.get(key))]:
        other = _other_side(item)
        if other is None:
            turn.append(item)
            continue
        if turn:
            entries.append(LogTurn(turn, "responses"))
            turn = []
        entries.append(other)
    return Log(tuple(entries + ([LogTurn(turn, "responses")] if turn else [])), row.get("tools"))


def _other_side(item: Json) -> Json | None:
    """The message that an item is, if the model did not make it."""
    kind, role = text(item.get("type")), text(item.get("role"))
    if kind.endswith("_call_output"):
        return {"role": "tool", "tool_call_id": text(item.get("call_id")), "content": _flat(item.get("output"))}
    if role and role != "assistant":
        return {"role": "system" if role == "developer" else role, "content": _flat(item.get("content"))}
    return None


_SIDES = {"human": "user", "user": "user", "system": "system", "observation": "tool", "tool": "tool"}


def _sharegpt(row: Json) -> Log:
    entries: list[Json | LogTurn] = []
    tools = row.get("tools")
    if text(row.get("system")):
        entries.append({"role": "system", "content": row["system"]})
    for turn in objects(row.get("conversations")):
        side, value = text(turn.get("from", turn.get("role"))), turn.get("value", turn.get("content"))
        said = value if isinstance(value, str) else dumps(value)
        if side == "function_call":
            entries.append(_function_call(said))
        elif side in _SIDES:
            entries += _from_side(_SIDES[side], said)
        else:
            entries.append(LogTurn(said, "text"))
    return Log(tuple(entries), tools or _listed(entries))


def _function_call(said: str) -> LogTurn:
    """JSON with a name and arguments, or a list of such; what is no JSON is what a model wrote."""
    try:
        value = json.loads(said)
    except (ValueError, RecursionError):
        return LogTurn(said, "text")
    calls = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]
    made = [
        {"type": "function", "function": {"name": each.get("name"), "arguments": each.get("arguments")}}
        for each in calls
    ]
    return LogTurn({"role": "assistant", "content": "", "tool_calls": made}, "chat")


def _from_side(role: str, said: str) -> list[Json | LogTurn]:
    """A message; the results of several calls, which stand in one entry as a list, are several."""
    if role != "tool":
        return [{"role": role, "content": said}]
    tagged = list(_between(said, "<tool_response>", "</tool_response>"))
    return [{"role": "tool", "content": each.strip()} for each in tagged or [said]]


def _between(said: str, opens: str, closes: str) -> Iterator[str]:
    start = said.find(opens)
    while start >= 0:
        end = said.find(closes, start)
        if end < 0:
            return
        yield said[start + len(opens) : end]
        start = said.find(opens, end)


def _listed(entries: list[Json | LogTurn]) -> Any:
    """The tools that a Hermes system message lists: JSON in its tags, as a list or one on each line."""
    system = next((each["content"] for each in entries if isinstance(each, dict) and each["role"] == "system"), "")
    block = next(_between(system, "<tools>", "</tools>"), "")
    try:
        return json.loads(block)
    except (ValueError, RecursionError):
        lines = [line for line in block.splitlines() if line.strip()]
    try:
        return [json.loads(line) for line in lines] or None
    except (ValueError, RecursionError):
        return None


def _plain(row: Json) -> Log:
    prompt = row.get("prompt")
    entries: list[Json | LogTurn] = [{"role": "user", "content": prompt}] if text(prompt) else []
    for message in objects(prompt):
        role = text(message.get("role"))
        said = _flat(message.get("content"))
        entries.append(LogTurn(said, "text") if role == "assistant" else {"role": role or "user", "content": said})
    said = text(row.get("text")) or text(row.get("completion"))
    return Log((*entries, LogTurn(said, "text")), row.get("tools"), text(row.get("format")) or "auto")


KINDS: dict[str, Callable[[Json], Log]] = {
    "chat": _chat,
    "messages": _messages,
    "responses": _responses,
    "sharegpt": _sharegpt,
    "text": _plain,
}


def _flat(content: Any) -> str:
    """Content as text: its texts, and what is no text as JSON, so that nothing is lost."""
    if isinstance(content, str) or content is None:
        return content or ""
    parts = items(content)
    said = [
        part["text"] if isinstance(part, dict) and isinstance(part.get("text"), str) else dumps(part) for part in parts
    ]
    return "\n".join(said) if parts else ("" if isinstance(content, list) else dumps(content))
