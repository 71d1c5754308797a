"""Request readers: bodies in the shapes of real clients are read into the common request."""

import json
from typing import Any

import pytest

from rightcall.providers.history_messages import OPAQUE
from rightcall.serve.client_request import RefusedRequest
from rightcall.serve.request_readers import READERS, read_request
from rightcall.types import Json

SCHEMA: Json = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
QUESTION = {"role": "user", "content": "What is in a.txt?"}
CALL = {"name": "read", "arguments": '{"path":"a.txt"}'}


def chat_call(id: str, *, name: str = "read", arguments: str = '{"path":"a.txt"}') -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def turn(id: str = "call_1", **more: Any) -> list[Json]:
    """Return the conversation of every body below: a question, a call and its result."""
    assistant = {"role": "assistant", "content": "", "tool_calls": [chat_call(id)]}
    return [QUESTION, {**assistant, **more}, {"role": "tool", "tool_call_id": id, "content": "zebra"}]


CHAT: Json = {
    "model": "m",
    "messages": [
        QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [chat_call("call_1")]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "zebra"}]},
    ],
    "tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA, "strict": True}}],
    "stream": True,
    "stream_options": {"include_usage": True},
    "max_completion_tokens": 32000,
    "top_p": 0.95,
    "store": False,
}
RESPONSES: Json = {
    "model": "m",
    "instructions": "Be brief.",
    "input": [
        {
            "type": "message",
            "role": "user",
            "id": "msg_1",
            "content": [{"type": "input_text", "text": QUESTION["content"]}],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed", **CALL},
        {"type": "function_call_output", "call_id": "call_1", "output": "zebra"},
    ],
    "tools": [{"type": "function", "name": "read", "strict": False, "parameters": SCHEMA}],
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "parallel_tool_calls": False,
    "reasoning": {"effort": "high", "summary": "auto"},
    "stream": True,
}
MESSAGES: Json = {
    "model": "m",
    "max_tokens": 32000,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": QUESTION["content"]}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Look.", "signature": "s1"},
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.txt"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "zebra"}]}
            ],
        },
    ],
    "tools": [{"name": "read", "input_schema": SCHEMA}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "output_config": {"effort": "high"},
    "stream": True,
}
OLLAMA: Json = {
    "model": "m",
    "messages": [
        QUESTION,
        {
            "role": "assistant",
            "thinking": "Look.",
            "tool_calls": [{"function": {"name": "read", "arguments": {"path": "a.txt"}}}],
        },
        {"role": "tool", "tool_name": "read", "content": "zebra"},
    ],
    "tools": [{"type": "function", "function": {"name": "read", "parameters": SCHEMA}}],
    "options": {"num_predict": 32000, "top_p": 0.9, "stop": ["END"]},
}
GEMINI: Json = {
    "systemInstruction": {"role": "user", "parts": [{"text": "Be brief."}]},
    "contents": [
        {"role": "user", "parts": [{"text": QUESTION["content"]}]},
        {
            "role": "model",
            "parts": [{"functionCall": {"name": "read", "args": {"path": "a.txt"}}, "thoughtSignature": "sig"}],
        },
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": "zebra"}}}]},
    ],
    "tools": [{"functionDeclarations": [{"name": "read", "parametersJsonSchema": SCHEMA}]}],
    "generationConfig": {"maxOutputTokens": 32000, "topK": 64, "thinkingConfig": {"thinkingLevel": "HIGH"}},
}
BODIES: dict[Any, Json] = {
    "chat": CHAT,
    "responses": RESPONSES,
    "messages": MESSAGES,
    "ollama": OLLAMA,
    "gemini": GEMINI,
}
SYSTEM = {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize("api", READERS)
def test_every_dialect_gives_the_same_conversation(api: Any) -> None:
    found = read_request(api, BODIES[api], model="m", stream=True)
    messages = [
        {key: value for key, value in each.items() if key not in (OPAQUE, "name", "reasoning_content")}
        for each in found.messages
    ]
    ids = [each["tool_call_id"] for each in messages if each["role"] == "tool"]
    plain = [
        {**each, "content": "zebra"} if each["role"] == "tool" else each
        for each in messages
        if each["role"] != "system"
    ]
    assert [{**each, "content": each["content"] or ""} for each in plain] == turn(ids[0])
    assert found.tools is not None and [each.tool.name for each in found.tools] == ["read"]
    assert found.tools[0].tool.parameters == SCHEMA and found.tools[0].kind == "function"
    assert (found.api, found.model, found.stream, found.choice) == (api, "m", True, "auto")
    assert found.body is BODIES[api] and not found.warnings and len(found.origins) == len(found.messages)


@pytest.mark.parametrize(
    ("api", "origins"), [("responses", (-1, 0, 1, 3)), ("messages", (-1, 0, 1, 2)), ("gemini", (-1, 0, 1, 2))]
)
def test_a_message_has_the_index_of_its_entry_and_instructions_have_none(api: Any, origins: tuple[int, ...]) -> None:
    found = read_request(api, BODIES[api])
    assert found.messages[0] == SYSTEM and found.origins == origins


def test_opaque_fields_are_kept_by_dialect_and_call() -> None:
    kept = {
        api: next(each for each in read_request(api, BODIES[api]).messages if each["role"] == "assistant")
        for api in READERS
    }
    assert OPAQUE not in kept["chat"] and OPAQUE not in kept["ollama"]
    assert kept["responses"][OPAQUE] == {"responses": {"": {"reasoning": [RESPONSES["input"][1]]}}}
    assert kept["messages"][OPAQUE] == {"messages": {"": {"thinking": [MESSAGES["messages"][1]["content"][0]]}}}
    assert kept["gemini"][OPAQUE] == {"gemini": {"call_0": {"thoughtSignature": "sig"}}}
    assert kept["messages"]["reasoning_content"] == kept["ollama"]["reasoning_content"] == "Look."


def test_token_limits_and_sampling_are_read_under_the_names_of_each_dialect() -> None:
    found = {api: read_request(api, BODIES[api]) for api in READERS}
    assert [found[api].max_tokens for api in READERS] == [32000, None, 32000, 32000, 32000]
    assert found["chat"].sampling == {"top_p": 0.95}
    assert found["responses"].sampling == found["messages"].sampling == {"reasoning_effort": "high"}
    assert found["ollama"].sampling == {"top_p": 0.9} and found["ollama"].stop == ("END",)
    assert found["gemini"].sampling == {"top_k": 64, "reasoning_effort": "high"}
    assert not found["responses"].parallel and not found["messages"].parallel and found["chat"].parallel


def test_the_chat_messages_of_a_client_are_not_copied() -> None:
    assert all(one is other for one, other in zip(read_request("chat", CHAT).messages, CHAT["messages"], strict=True))


def test_a_thread_is_rejected_with_the_error_that_makes_the_client_send_everything() -> None:
    with pytest.raises(RefusedRequest) as refused:
        read_request("messages", {**MESSAGES, "thread": {"type": "create"}})
    assert refused.value.status == 400
    assert refused.value.details == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}


@pytest.mark.parametrize("api", READERS)
@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "x",
        3,
        {},
        {"messages": 3, "input": 3, "contents": 3},
        {"messages": [3], "input": [3], "contents": [3]},
    ],
)
def test_an_invalid_body_is_rejected_with_a_cure(api: Any, body: Any) -> None:
    with pytest.raises(RefusedRequest, match="send a") as refused:
        read_request(api, body)
    assert refused.value.status == 400


# -- tools of every kind -----------------------------------------------------------------------------------------------


def read_tools(*tools: Json, api: Any = "responses", **more: Any) -> Any:
    body = {"input": "hi", "messages": [QUESTION], "contents": "hi", "tools": list(tools), **more}
    return read_request(api, body)


def test_a_custom_tool_becomes_a_function_with_its_text_and_grammar() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: /a+/"}
    flat = {"type": "custom", "name": "patch", "description": "Edits.", "format": grammar}
    nested = {
        "type": "custom",
        "custom": {"name": "patch", "description": "Edits.", "format": {"type": "grammar", "grammar": grammar}},
    }
    for api, entry in (("responses", flat), ("chat", nested)):
        (tool,) = read_tools(entry, api=api).tools
        assert (tool.kind, tool.name, tool.entry) == ("custom", "patch", entry)
        assert tool.tool.parameters["required"] == ["input"]
        assert tool.tool.description == "Edits.\n\nThe input must match this lark grammar:\nstart: /a+/"


def test_functions_of_a_namespace_have_unique_names() -> None:
    close = {"type": "function", "name": "close", "parameters": SCHEMA}
    tools: list[Json] = [
        {"type": "namespace", "name": "a", "tools": [close]},
        {"type": "namespace", "name": "b", "tools": [close]},
        close,
    ]
    found = read_tools(*tools, {"type": "function", "name": "a__close", "parameters": SCHEMA})
    assert [(each.tool.name, each.namespace, each.name, each.kind) for each in found.tools] == [
        ("a__close", "a", "close", "namespace"),
        ("b__close", "b", "close", "namespace"),
        ("close", "", "close", "function"),
        ("a__close_2", "", "a__close", "function"),
    ]


def test_calls_of_every_kind_in_a_history_refer_to_the_offered_tools() -> None:
    tools: list[Json] = [
        {"type": "namespace", "name": "ns", "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}]},
        {"type": "custom", "name": "patch"},
        {"type": "local_shell"},
        {"type": "tool_search", "execution": "client", "parameters": SCHEMA},
    ]
    items: list[Json] = [
        {"type": "function_call", "call_id": "1", "name": "f", "namespace": "ns", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "2", "name": "patch", "input": "*** Begin"},
        {"type": "local_shell_call", "call_id": "3", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "tool_search_call", "call_id": "4", "execution": "client", "arguments": {"query": "agent"}},
        {"type": "custom_tool_call_output", "call_id": "2", "output": "done"},
        {
            "type": "tool_search_output",
            "call_id": "4",
            "tools": [{"type": "function", "name": "late", "parameters": SCHEMA}],
        },
    ]
    found = read_tools(*tools, input=items)
    calls = [
        (each["id"], each["function"]["name"], json.loads(each["function"]["arguments"]))
        for each in found.messages[0]["tool_calls"]
    ]
    assert calls == [
        ("1", "ns__f", {}),
        ("2", "patch", {"input": "*** Begin"}),
        ("3", "local_shell", {"command": ["ls"]}),
        ("4", "tool_search", {"query": "agent"}),
    ]
    assert [each.tool.name for each in found.tools] == ["ns__f", "patch", "local_shell", "tool_search", "late"]
    assert found.open_tools and [each["role"] for each in found.messages] == ["assistant", "tool", "tool"]
    assert [each.call_type for each in found.tools] == ["", "", "local_shell_call", "tool_search_call", ""]


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ({"type": "bash_20250124", "name": "bash"}, "bash"),
        ({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}, "str_replace_based_edit_tool"),
        (
            {"type": "computer_20250124", "name": "computer", "display_width_px": 800, "display_height_px": 600},
            "computer",
        ),
        ({"type": "custom", "name": "read", "input_schema": SCHEMA}, "read"),
        ({"name": "read", "description": "Reads", "input_schema": SCHEMA, "eager_input_streaming": True}, "read"),
    ],
)
def test_a_tool_run_by_the_client_is_a_function(entry: Json, name: str) -> None:
    found = read_tools(entry, api="messages")
    assert [(each.tool.name, each.kind) for each in found.tools] == [(name, "function")]
    assert not found.warnings and found.tools[0].tool.parameters["required"]


def test_a_tool_run_only_by_its_provider_is_omitted_with_a_warning() -> None:
    for api, entry in (
        ("messages", {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}),
        ("responses", {"type": "web_search", "external_web_access": False}),
        ("gemini", {"googleSearch": {}}),
    ):
        found = read_tools(entry, api=api)
        assert found.tools == () and len(found.warnings) == 1 and "left out" in found.warnings[0]


def test_a_tool_with_an_invalid_schema_is_offered_without_it() -> None:
    found = read_tools({"type": "function", "name": "f", "parameters": {"type": "object", "properties": 3}})
    assert [each.tool.name for each in found.tools] == ["f"] and "without its schema" in found.warnings[0]


@pytest.mark.parametrize(
    ("tools", "is_open"),
    [
        (
            [
                {"name": "ToolSearch", "input_schema": SCHEMA},
                {"name": "DeferredToolPlaceholder", "input_schema": {}, "defer_loading": True},
            ],
            True,
        ),
        ([{"name": "WebFetch", "input_schema": SCHEMA, "defer_loading": True}], True),
        ([{"name": "read", "input_schema": SCHEMA}], False),
    ],
)
def test_deferred_tools_leave_the_list_open(tools: list[Json], is_open: bool) -> None:
    found = read_tools(*tools, api="messages")
    assert found.open_tools is is_open and "DeferredToolPlaceholder" not in [each.name for each in found.tools]


def test_no_tools_and_an_empty_tool_list_are_equivalent() -> None:
    assert read_tools(api="chat").tools is None and read_request("chat", {"messages": [QUESTION]}).tools is None


F: Json = {"type": "function", "name": "f", "parameters": SCHEMA}
G: Json = {"type": "function", "name": "g", "parameters": SCHEMA}


@pytest.mark.parametrize(
    ("api", "spelling", "choice", "names"),
    [
        ("chat", "required", "required", "fg"),
        ("chat", "any", "required", "fg"),
        ("chat", None, "auto", "fg"),
        ("chat", {"type": "function", "function": {"name": "f"}}, "f", "fg"),
        (
            "chat",
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "g"}}]},
            },
            "required",
            "g",
        ),
        ("responses", {"type": "function", "name": "g"}, "g", "fg"),
        (
            "responses",
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
            "auto",
            "f",
        ),
        ("responses", "none", "none", "fg"),
        ("responses", {"type": "web_search"}, "auto", "fg"),
        ("messages", {"type": "any"}, "required", "fg"),
        ("messages", {"type": "tool", "name": "f"}, "f", "fg"),
        ("messages", {"type": "none"}, "none", "fg"),
    ],
)
def test_a_tool_choice_is_read_in_every_spelling(api: Any, spelling: Any, choice: str, names: str) -> None:
    found = read_tools(F, G, api=api, tool_choice=spelling)
    assert found.choice == choice and [each.tool.name for each in found.tools] == list(names)
    assert list(found.toolset.names) == list(names)


@pytest.mark.parametrize(
    ("mode", "only", "choice", "names"),
    [
        ("ANY", [], "required", "fg"),
        ("ANY", ["f"], "f", "fg"),
        ("NONE", [], "none", "fg"),
        ("AUTO", ["g"], "auto", "g"),
    ],
)
def test_the_choice_of_gemini_is_a_mode_with_names(mode: str, only: list[str], choice: str, names: str) -> None:
    config = {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": only}}
    found = read_tools({"functionDeclarations": [F, G]}, api="gemini", toolConfig=config)
    assert found.choice == choice and [each.tool.name for each in found.tools] == list(names)


# -- results without the id of a call ----------------------------------------------------------------------------------


def pair_results(api: Any, ids: tuple[str, str], results: list[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Return the calls of `read` and `edit` with these ids, each with its content in the results."""
    names = ("read", "edit")
    if api == "ollama":
        ollama_calls = [
            {"function": {"name": name, "arguments": {}}, "id": id} for name, id in zip(names, ids, strict=True)
        ]
        result_messages = [
            {"role": "tool", "content": content, "tool_name": name, "tool_call_id": id} for id, name, content in results
        ]
        body: Json = {
            "messages": [QUESTION, {"role": "assistant", "content": "", "tool_calls": ollama_calls}, *result_messages]
        }
    else:
        calls = [{"functionCall": {"name": name, "args": {}, "id": id}} for name, id in zip(names, ids, strict=True)]
        parts = [
            {"functionResponse": {"id": id, "name": name, "response": {"r": content}}} for id, name, content in results
        ]
        question = {"role": "user", "parts": [{"text": "?"}]}
        body = {"contents": [question, {"role": "model", "parts": calls}, {"role": "user", "parts": parts}]}
    messages = read_request(api, {"model": "m", **body}).messages
    by_id = {each["tool_call_id"]: str(each["content"]) for each in messages if each["role"] == "tool"}
    all_calls: list[Json] = [call for each in messages for call in each.get("tool_calls") or ()]
    return [(call["function"]["name"], by_id.get(call["id"], "none")) for call in all_calls]


@pytest.mark.parametrize("api", ["ollama", "gemini"])
@pytest.mark.parametrize(
    "ids, results",
    [
        (("", ""), [("", "", "one"), ("", "", "two")]),
        (("", ""), [("theirs_1", "", "one"), ("theirs_2", "", "two")]),
        (("", ""), [("theirs_2", "edit", "two"), ("theirs_1", "read", "one")]),
        (("a", ""), [("theirs", "", "two"), ("a", "", "one")]),
        (("a", ""), [("theirs", "edit", "two"), ("", "read", "one")]),
        (("a", "b"), [("b", "", "two"), ("", "", "one")]),
    ],
)
def test_a_result_is_matched_to_a_call_without_an_id(
    api: Any, ids: tuple[str, str], results: list[tuple[str, str, str]]
) -> None:
    (read, one), (edit, two) = pair_results(api, ids, results)
    assert (read, edit) == ("read", "edit") and "one" in one and "two" in two


@pytest.mark.parametrize("api", ["ollama", "gemini"])
def test_a_result_of_another_call_is_not_matched_to_a_call_with_an_id(api: Any) -> None:
    assert [content for _, content in pair_results(api, ("a", "b"), [("theirs", "", "x"), ("other", "read", "y")])] == [
        "none"
    ] * 2
