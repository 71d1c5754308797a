"""Small answers of providers, and what a reply to them has."""

from __future__ import annotations

from typing import Any

from rightcall import Reply

Json = dict[str, Any]
LEAK = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'


def chat_call(name: Any = "f", arguments: Any = '{"x": 1}', id: str = "call_1") -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat(finish: str = "tool_calls", **message: Any) -> Json:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}]}


def item(name: Any = "f", arguments: Any = '{"x": 1}', **more: Any) -> Json:
    return {"type": "function_call", "call_id": "call_1", "name": name, "arguments": arguments, **more}


def delta(*entries: Any, **fields: Any) -> Json:
    """Return a chunk of a chat stream."""
    calls = {"tool_calls": list(entries)} if entries else {}
    return {"choices": [{"index": 0, "delta": {**calls, **fields}, "finish_reason": None}]}


def entry(index: Any = None, id: Any = None, name: Any = None, arguments: Any = None) -> Json:
    """Return a piece of a call in a chunk."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    head = {key: value for key, value in (("index", index), ("id", id)) if value is not None}
    return {**head, "function": function}


def calls(reply: Reply) -> list[tuple[str, Json]]:
    return [(call.name, call.arguments) for call in reply.attempts]


def codes(reply: Reply) -> list[str]:
    return [problem.code for problem in reply.problems]
