"""Requests of current clients, with our own content: each is read completely and translated for every server."""

import json
from typing import Any, NamedTuple

import pytest

from rightcall.backends.profiles import BY_API, UNKNOWN, find_profile
from rightcall.backends.request_body import write_body
from rightcall.backends.request_plan import ModeChoice, make_plan
from rightcall.providers.history_messages import OPAQUE
from rightcall.serve.client_request import ClientRequest
from rightcall.serve.request_readers import READERS, read_request
from rightcall.serve.upstream_body import same_dialect_body, to_request
from rightcall.types import Json

ONE_PATH: Json = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
DRAFT: Json = {"$schema": "https://json-schema.org/draft/2020-12/schema", **ONE_PATH, "additionalProperties": False}
CACHED = {"cache_control": {"type": "ephemeral"}}


class Client(NamedTuple):
    """The request of one client, with the expected roles of its conversation and its offered tools."""

    api: Any
    body: Json
    roles: str
    tools: tuple[str, ...] | None
    is_open: bool = False
    warned: int = 0


def function(name: str, **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": ONE_PATH}, **more}


def flat(name: str, **more: Any) -> Json:
    return {"type": "function", "name": name, "description": "d", "parameters": ONE_PATH, **more}


def chat_call(id: str, arguments: str = '{"path":"a"}') -> Json:
    return {"id": id, "type": "function", "function": {"name": "read", "arguments": arguments}}


CLAUDE_CODE: Json = {
    "model": "any-name",
    "max_tokens": 128000,
    "system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", **CACHED}, {"type": "text", "text": "c"}],
    "messages": [
        {
            "role": "user",
            "content": [{"type": "text", "text": "<system-reminder>"}, {"type": "text", "text": "Read it"}],
        },
        {
            "role": "system",
            "content": [{"type": "text", "text": "# Environment", **CACHED}],
            "output_config": {"effort": "medium"},
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": "s"},
                {"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {"query": "select:WebFetch"}},
                {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"__unparsedToolInput": {"raw": "{"}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "tool_reference", "tool_name": "WebFetch"}],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "content": "<tool_use_error>",
                    "is_error": True,
                    **CACHED,
                },
            ],
        },
        {"role": "system", "content": "Go on.", "output_config": {"effort": "medium"}},
    ],
    "tools": [
        {"name": "Read", "description": "d", "input_schema": DRAFT},
        {"name": "ToolSearch", "description": "d", "input_schema": DRAFT},
        {
            "name": "DeferredToolPlaceholder",
            "input_schema": {"type": "object", "properties": {}},
            "defer_loading": True,
        },
        {"name": "WebFetch", "description": "d", "input_schema": DRAFT, "defer_loading": True},
    ],
    "metadata": {"user_id": '{"device_id":"x"}'},
    "thinking": {"type": "adaptive", "display": "omitted"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "output_config": {"effort": "medium"},
    "stream": True,
}
WEB_SEARCH: Json = {
    "messages": [{"role": "user", "content": "Search"}],
    "max_tokens": 9,
    "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
    "tool_choice": {"type": "auto"},
}
CODEX: Json = {
    "model": "gpt-5.5",
    "input": [
        {
            "type": "message",
            "role": "developer",
            "id": "msg_1",
            "content": [{"type": "input_text", "text": "x"}, {"type": "input_text", "text": "y"}],
        },
        {"type": "message", "role": "user", "id": "msg_2", "content": [{"type": "input_text", "text": "Patch it"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm"}],
            "encrypted_content": "e",
        },
        {
            "type": "custom_tool_call",
            "id": "ctc_1",
            "call_id": "c1",
            "status": "completed",
            "name": "apply_patch",
            "input": "*** Begin Patch",
        },
        {"type": "custom_tool_call_output", "id": "ctco_1", "call_id": "c1", "output": "aborted"},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c2",
            "name": "close_agent",
            "namespace": "multi_agent_v1",
            "arguments": "{}",
            "status": "completed",
        },
        {"type": "function_call_output", "call_id": "c2", "output": "done"},
        {
            "type": "tool_search_call",
            "id": "ts_1",
            "call_id": "c3",
            "status": "completed",
            "execution": "client",
            "arguments": {"query": "agent"},
        },
        {"type": "tool_search_output", "call_id": "c3", "status": "completed", "execution": "client", "tools": []},
    ],
    "tools": [
        flat("exec_command", strict=False),
        {
            "type": "namespace",
            "name": "multi_agent_v1",
            "description": "d",
            "tools": [flat("close_agent"), flat("spawn_agent")],
        },
        {"type": "web_search", "external_web_access": False, "search_content_types": ["text"]},
        {
            "type": "custom",
            "name": "apply_patch",
            "description": "d",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: /x/"},
        },
        {"type": "tool_search", "execution": "client", "description": "d", "parameters": ONE_PATH},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "k",
    "client_metadata": {"session_id": "s"},
    "text": {"verbosity": "low"},
}
CLIENTS: dict[str, Client] = {
    "claude code": Client("messages", CLAUDE_CODE, "susatts", ("Read", "ToolSearch", "WebFetch"), True),
    "claude code's web search": Client("messages", WEB_SEARCH, "u", (), warned=1),
    "codex": Client(
        "responses",
        CODEX,
        "duatatat",
        ("exec_command", "multi_agent_v1__close_agent", "multi_agent_v1__spawn_agent", "apply_patch", "tool_search"),
        True,
        1,
    ),
    "copilot": Client(
        "responses",
        {
            "instructions": "You are",
            "input": [
                {"role": "user", "type": "message", "content": [{"type": "input_text", "text": "Read"}]},
                {
                    "type": "function_call",
                    "id": "fc_c1",
                    "call_id": "c1",
                    "name": "read",
                    "arguments": "{}",
                    "status": "completed",
                },
                {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "zebra"}]},
            ],
            "tools": [flat("read", strict=False)],
            "store": False,
        },
        "suat",
        ("read",),
    ),
    "opencode": Client(
        "chat",
        {
            "messages": [
                {"role": "system", "content": "You are"},
                {"role": "user", "content": "Read"},
                {"role": "assistant", "content": "", "reasoning_content": "Hm", "tool_calls": [chat_call("c1")]},
                {"role": "tool", "tool_call_id": "c1", "content": "zebra"},
            ],
            "tools": [function("read")],
            "tool_choice": "auto",
            "max_tokens": 32000,
            "stream": True,
            "stream_options": {"include_usage": True},
        },
        "suat",
        ("read",),
    ),
    "opencode's title": Client(
        "chat", {"messages": [{"role": "system", "content": "Title"}, {"role": "user", "content": "Read"}]}, "su", None
    ),
    "qwen code": Client(
        "chat",
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "assistant", "content": None, "tool_calls": [chat_call("c1")]},
                {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "zebra"}]},
            ],
            "tools": [
                function("read"),
                {"type": "function", "function": {"name": "get_goal", "description": "d"}},
                function("tool_search"),
            ],
        },
        "uat",
        ("read", "get_goal", "tool_search"),
        True,
    ),
    "gemini cli": Client(
        "gemini",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "<session_context>"}, {"text": "Read"}]},
                {
                    "role": "model",
                    "parts": [
                        {
                            "functionCall": {"id": "read_1_0", "name": "read", "args": {"path": "a"}},
                            "thoughtSignature": "sig",
                        }
                    ],
                },
                {
                    "role": "user",
                    "parts": [
                        {"functionResponse": {"id": "read_1_0", "name": "read", "response": {"output": "zebra"}}}
                    ],
                },
            ],
            "systemInstruction": {"role": "user", "parts": [{"text": "You are"}]},
            "tools": [
                {"functionDeclarations": [{"name": "read", "description": "d", "parametersJsonSchema": ONE_PATH}]}
            ],
            "generationConfig": {
                "temperature": 1,
                "topP": 0.95,
                "topK": 64,
                "thinkingConfig": {"includeThoughts": True},
            },
        },
        "suat",
        ("read",),
    ),
    "google-genai": Client(
        "gemini",
        {
            "contents": [
                {"parts": [{"text": "Read"}], "role": "user"},
                {"parts": [{"functionCall": {"args": {}, "name": "read"}}], "role": "model"},
                {"parts": [{"functionResponse": {"name": "read", "response": {"error": "no path"}}}], "role": "user"},
            ],
            "tools": [
                {
                    "functionDeclarations": [
                        {"name": "read", "parameters_json_schema": ONE_PATH, "response_json_schema": {"type": "string"}}
                    ]
                }
            ],
            "generationConfig": {},
        },
        "uat",
        ("read",),
    ),
    "ai sdk": Client(
        "messages",
        {
            "max_tokens": 4096,
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Read"}]},
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}, **CACHED}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "zebra"}]},
            ],
            "tools": [{"name": "read", "description": "d", "input_schema": DRAFT, "eager_input_streaming": True}],
        },
        "uat",
        ("read",),
    ),
    "litellm": Client(
        "messages",
        {
            "messages": [{"role": "user", "content": "Read"}],
            "max_tokens": 4096,
            "tools": [{"type": "custom", "name": "read", "description": "d", "input_schema": ONE_PATH}],
        },
        "u",
        ("read",),
    ),
    "pydantic-ai": Client(
        "responses",
        {
            "input": [
                {"role": "user", "content": "Read"},
                {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path":"a"}'},
                {"type": "function_call_output", "call_id": "c1", "output": "zebra"},
            ],
            "tools": [flat("read", strict=True)],
            "tool_choice": "auto",
        },
        "uat",
        ("read",),
    ),
    "smolagents": Client(
        "chat",
        {
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "You are"}]},
                {"role": "user", "content": [{"type": "text", "text": "Read"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "Calling tools: []"}]},
                {"role": "user", "content": [{"type": "text", "text": "Observation: zebra"}]},
            ],
            "tools": [function("read")],
            "tool_choice": "required",
            "stop": ["Observation:", "Calling tools:"],
        },
        "suau",
        ("read",),
    ),
    "langchain on ollama": Client(
        "ollama",
        {
            "messages": [
                {"role": "user", "content": "Read", "images": ["iVBORw0K"]},
                {"role": "assistant", "tool_calls": [{"function": {"name": "read", "arguments": {"path": "a"}}}]},
                {"role": "tool", "content": "zebra"},
            ],
            "tools": [function("read")],
            "options": {},
        },
        "uat",
        ("read",),
    ),
}


def called_names(request: ClientRequest) -> list[list[str]]:
    """Return the names of the calls of each turn."""
    turns = [each for each in request.messages if each["role"] == "assistant"]
    return [[call["function"]["name"] for call in each.get("tool_calls", ())] for each in turns]


LETTERS = {"s": "system", "u": "user", "a": "assistant", "t": "tool", "d": "developer"}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_client_request_is_read_completely(client: Client) -> None:
    found = read_request(client.api, client.body, model="m", stream=True)
    assert [each["role"] for each in found.messages] == [LETTERS[letter] for letter in client.roles]
    assert (None if found.tools is None else tuple([each.tool.name for each in found.tools])) == client.tools
    assert found.open_tools is client.is_open and len(found.warnings) == client.warned
    calls = [call["id"] for each in found.messages for call in each.get("tool_calls", ())]
    assert [each["tool_call_id"] for each in found.messages if each["role"] == "tool"] == calls


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
@pytest.mark.parametrize("api", READERS)
def test_a_client_request_is_translated_for_every_server(client: Client, api: Any) -> None:
    request = read_request(client.api, client.body, model="m", stream=True)
    profile = find_profile(BY_API[api]) if api in BY_API else UNKNOWN
    body = write_body(make_plan(to_request(request, api), ModeChoice("native", profile), api, "m", stream=True))
    assert OPAQUE not in json.dumps(body) and ("tools" in body) is bool(client.tools)
    again = read_request(api, body, model="m", stream=True)
    assert called_names(again) == called_names(request)


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_the_body_for_a_server_of_the_same_dialect_keeps_every_field(client: Client) -> None:
    sent = same_dialect_body(read_request(client.api, client.body, model="m", stream=True))
    ours = {"model", "stream", "stream_options"}
    assert {key: value for key, value in sent.items() if key not in ours} == {
        key: value for key, value in client.body.items() if key not in ours
    }
