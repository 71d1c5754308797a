"""The requests of clients in the tests: the declared tools and the conversation, in every dialect.

build_request("plain", "messages", model="no_index", stream=True)       path and body
"""

from __future__ import annotations

import json
from typing import Any

from zoo.question import Json

USER = "What does hello.txt say?"
READ: Json = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "line": {"type": "integer"},
        "all": {"type": ["boolean", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "where": {"type": "object", "properties": {"depth": {"type": "integer"}}, "required": ["depth"]},
    },
    "required": ["path"],
    "additionalProperties": False,
}
WRITE: Json = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["path", "content"],
    "additionalProperties": False,
}
NOTHING: Json = {"type": "object", "properties": {}}
TOOLS: dict[str, Json] = {"read_file": READ, "write_file": WRITE, "get_time": NOTHING}


def build_request(scene: str, api: str, *, model: str, stream: bool) -> tuple[str, Json]:
    """Return path and body of the request of a scene."""
    scene_settings = SCENES[scene]
    arguments = (
        scene_settings.get("turns", ASKS),
        scene_settings.get("tools", TOOLS),
        model,
        stream,
        scene_settings.get("choice", ""),
    )
    path, body = encode_request(api, *arguments)
    return path, scene_settings.get("alter", lambda body: body)(body)


def build_next_request(api: str, calls: list[tuple[Any, str, Any]], *, model: str, stream: bool) -> tuple[str, Json]:
    """Return the second request of a client that stores only the calls of an answer."""
    call_entries = [call(json.dumps(arguments), str(id), name) for id, name, arguments in calls]
    turns = [user(), assistant_turn(*call_entries), *[result("zebra-4711", str(id)) for id, _, _ in calls]]
    return encode_request(api, turns, TOOLS, model, stream, "")


# -- conversations, as Chat messages -----------------------------------------------------------------------------------


def user(text: str = USER) -> Json:
    return {"role": "user", "content": text}


def call(arguments: str = '{"path": "hello.txt"}', id: str = "call_before1", name: str = "read_file") -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant_turn(*calls: Json, content: Any = None, **more: Any) -> Json:
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **more}


def result(content: Any = "no such file", id: str = "call_before1") -> Json:
    return {"role": "tool", "tool_call_id": id, "content": content}


HARD: Json = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "pattern": r"^(?!\.)[^@]+@[^@]+$"},
        "body": {"type": "string", "maxLength": 10000},
    },
    "required": ["to", "body"],
}


def with_strict(body: Json) -> Json:
    for entry in body["tools"]:
        entry.get("function", entry)["strict"] = False
    return body


def with_other_tools(body: Json) -> Json:
    patch = {"type": "custom", "name": "apply_patch", "description": "Edits.", "format": {"type": "text"}}
    inner = {"type": "function", "name": "spawn", "parameters": NOTHING}
    space = {"type": "namespace", "name": "agents", "description": "Agents.", "tools": [inner]}
    return {**body, "tools": [*body["tools"], {"type": "web_search"}, patch, space]}


ASKS = [user()]
AGAIN = [
    each
    for at in range(4)
    for each in (assistant_turn(call(id=f"call_old{at}")), result("zebra-4711", f"call_old{at}"))
]
SCENES: dict[str, Json] = {
    "plain": {},
    "no_arguments": {"turns": [user("Call get_time {} now.")]},
    "required": {"choice": "required"},
    "none": {"choice": "none"},
    "second_round": {
        "turns": [user(), assistant_turn(call(id="functions.read_file:0")), result(id="functions.read_file:0"), user()]
    },
    "two_rounds": {},
    "after_result": {"turns": [user(), assistant_turn(call()), result("zebra-4711")]},
    "result_parts": {"turns": [user(), assistant_turn(call()), result([{"type": "text", "text": "zebra-4711"}])]},
    "fifth_time": {"turns": [user(), *AGAIN]},
    "poisoned": {
        "turns": [user(), assistant_turn(call('{"path": "hel')), result("the call could not be read"), user()]
    },
    "orphan": {"turns": [user("Hello."), result(id="call_gone1"), user()]},
    "two_users": {"turns": [user("Hello."), user("Are you there?"), user()]},
    "prefixed": {"tools": {"mcp__fs__read_file": READ, "get_time": NOTHING}},
    "odd_names": {"tools": {"files.read_file": READ, "very_" * 14 + "long": NOTHING}},
    "hard_schema": {"tools": {**TOOLS, "send_mail": HARD}},
    "strict": {"alter": with_strict},
    "other_tools": {"alter": with_other_tools},
    "empty_tools": {"tools": {}, "alter": lambda body: {**body, "tools": []}},
    "long_prompt": {"turns": [user("north south east west " * 4000 + USER)]},
}


# -- in every dialect --------------------------------------------------------------------------------------------------


def encode_request(
    api: str, turns: list[Json], tools: dict[str, Json], model: str, stream: bool, choice: str
) -> tuple[str, Json]:
    """Return path and body of a request with this conversation and these tools."""
    path, body = _ENCODERS[api](turns, tools, model, stream, choice)
    return path, body


def _functions(tools: dict[str, Json]) -> list[Json]:
    return [{"name": name, "description": f"{name}.", "parameters": schema} for name, schema in tools.items()]


def _chat(turns: list[Json], tools: dict[str, Json], model: str, stream: bool, choice: str) -> tuple[str, Json]:
    offered = [{"type": "function", "function": function} for function in _functions(tools)]
    choice_fields: Json = {"tool_choice": choice} if choice else {}
    body: Json = {
        "model": model,
        "stream": stream,
        "messages": turns,
        **({"tools": offered} if tools else {}),
        **choice_fields,
    }
    return "/v1/chat/completions", body


def _ollama(turns: list[Json], tools: dict[str, Json], model: str, stream: bool, choice: str) -> tuple[str, Json]:
    _, body = _chat([_ollama_turn(turn) for turn in turns], tools, model, stream, "")
    return "/api/chat", body


def _ollama_turn(turn: Json) -> Json:
    calls = [
        {"function": {**each["function"], "arguments": _arguments_of(each)}} for each in turn.get("tool_calls", ())
    ]
    own = {key: value for key, value in turn.items() if key != "tool_call_id"}
    return {**own, "content": turn.get("content") or "", **({"tool_calls": calls} if calls else {})}


def _arguments_of(entry: Json) -> Any:
    try:
        return json.loads(entry["function"]["arguments"])
    except ValueError:
        return {}


def _responses(turns: list[Json], tools: dict[str, Json], model: str, stream: bool, choice: str) -> tuple[str, Json]:
    items: list[Json] = []
    for turn in turns:
        if turn["role"] == "tool":
            items.append({"type": "function_call_output", "call_id": turn["tool_call_id"], "output": turn["content"]})
            continue
        if turn.get("content"):
            items.append({"type": "message", "role": turn["role"], "content": turn["content"]})
        for each in turn.get("tool_calls", ()):
            items.append({"type": "function_call", "call_id": each["id"], **each["function"]})
    offered = [{"type": "function", **function} for function in _functions(tools)]
    choice_fields = {"tool_choice": choice} if choice else {}
    return "/v1/responses", {
        "model": model,
        "stream": stream,
        "input": items,
        "tools": offered,
        "store": False,
        **choice_fields,
    }


def _messages(turns: list[Json], tools: dict[str, Json], model: str, stream: bool, choice: str) -> tuple[str, Json]:
    out: list[Json] = []
    for turn in turns:
        if turn["role"] == "tool":
            block = {"type": "tool_result", "tool_use_id": turn["tool_call_id"], "content": turn["content"]}
            out.append({"role": "user", "content": [block]})
            continue
        blocks: list[Json] = [{"type": "text", "text": turn["content"]}] if turn.get("content") else []
        for each in turn.get("tool_calls", ()):
            blocks.append(
                {"type": "tool_use", "id": each["id"], "name": each["function"]["name"], "input": _arguments_of(each)}
            )
        out.append({"role": turn["role"], "content": blocks})
    offered = [
        {"name": each["name"], "description": each["description"], "input_schema": each["parameters"]}
        for each in _functions(tools)
    ]
    choice_fields: Json = {"tool_choice": {"type": {"required": "any"}.get(choice, choice)}} if choice else {}
    return "/v1/messages", {
        "model": model, "stream": stream, "max_tokens": 4000, "messages": out, "tools": offered, **choice_fields,
    }  # fmt: skip


def _gemini(turns: list[Json], tools: dict[str, Json], model: str, stream: bool, choice: str) -> tuple[str, Json]:
    names = {each["id"]: each["function"]["name"] for turn in turns for each in turn.get("tool_calls", ())}
    contents: list[Json] = []
    for turn in turns:
        if turn["role"] == "tool":
            name = names.get(turn["tool_call_id"], "read_file")
            function_response = {"id": turn["tool_call_id"], "name": name, "response": {"output": turn["content"]}}
            contents.append({"role": "user", "parts": [{"functionResponse": function_response}]})
            continue
        parts: list[Json] = [{"text": turn["content"]}] if turn.get("content") else []
        for each in turn.get("tool_calls", ()):
            arguments = {"id": each["id"], "name": each["function"]["name"], "args": _arguments_of(each)}
            parts.append({"functionCall": arguments})
        contents.append({"role": "model" if turn["role"] == "assistant" else turn["role"], "parts": parts})
    offered = [
        {"name": each["name"], "description": each["description"], "parametersJsonSchema": each["parameters"]}
        for each in _functions(tools)
    ]
    mode = {"required": "ANY", "none": "NONE"}.get(choice)
    choice_fields = {"toolConfig": {"functionCallingConfig": {"mode": mode}}} if mode else {}
    verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/models/{model}:{verb}", {
        "contents": contents,
        "tools": [{"functionDeclarations": offered}],
        **choice_fields,
    }


_ENCODERS: dict[str, Any] = {
    "chat": _chat, "responses": _responses, "messages": _messages, "ollama": _ollama, "gemini": _gemini,
}  # fmt: skip
