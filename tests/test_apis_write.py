"""Writing the assistant's turn, a tool's result and the tool choice in every dialect; opaque fields are sent back."""

from __future__ import annotations

from typing import Any

import pytest

from rightcall import Call, Reply
from rightcall.providers.anthropic import MESSAGES
from rightcall.providers.gemini import GEMINI
from rightcall.providers.ollama import OLLAMA
from rightcall.providers.openai_chat import CHAT
from rightcall.providers.openai_responses import RESPONSES
from rightcall.providers.provider_answers import read
from rightcall.types import Reasoning, Text

Json = dict[str, Any]
CALL = Call("edit", {"path": "a b", "n": 1}, '{"path": "a b", "n": 1}', "call_1")
REPLY = Reply((Reasoning("hm"), Text("Hi"), CALL))


# -- the assistant's turn ----------------------------------------------------------------------------------------------


def test_an_openai_message_has_calls_with_their_argument_text() -> None:
    assert CHAT.assistant_message("Hi", [CALL]) == {
        "role": "assistant",
        "content": "Hi",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "edit", "arguments": '{"path": "a b", "n": 1}'}}
        ],
    }


def test_empty_text_is_empty_content_and_never_null() -> None:
    assert CHAT.assistant_message("", [CALL])["content"] == ""
    assert CHAT.assistant_message("") == {"role": "assistant", "content": ""}


def test_an_anthropic_message_has_a_text_block_only_if_there_is_text() -> None:
    use = {"type": "tool_use", "id": "call_1", "name": "edit", "input": {"path": "a b", "n": 1}}
    assert MESSAGES.assistant_message("", [CALL]) == {"role": "assistant", "content": [use]}
    assert MESSAGES.assistant_message("Hi", [CALL])["content"] == [{"type": "text", "text": "Hi"}, use]


@pytest.mark.parametrize("dialect", [CHAT, MESSAGES])
def test_content_is_the_given_blocks_or_else_the_text(dialect: Any) -> None:
    blocks = [{"type": "text", "text": "Hi"}]
    assert dialect.assistant_message("Hi", blocks=blocks) == {"role": "assistant", "content": blocks}
    assert dialect.assistant_message("Hi") == {"role": "assistant", "content": "Hi"}
    assert dialect.assistant_message("Hi", [CALL], blocks=[]) == dialect.assistant_message("Hi", [CALL])


@pytest.mark.parametrize("dialect", [CHAT, MESSAGES])
@pytest.mark.parametrize("calls, blocks", [([CALL], None), (None, [{"type": "text", "text": "Hi"}]), (None, None)])
def test_reasoning_is_written_under_its_own_key(dialect: Any, calls: Any, blocks: Any) -> None:
    plain = dialect.assistant_message("Hi", calls, blocks=blocks)
    assert dialect.assistant_message("Hi", calls, blocks=blocks, reasoning="hm") == {**plain, "reasoning": "hm"}
    assert dialect.assistant_message("Hi", calls, blocks=blocks, reasoning="") == plain
    assert dialect.assistant_message("Hi", calls, blocks=blocks, reasoning="hm", reasoning_key=None) == plain


def test_a_message_of_a_reply_has_its_text_calls_and_reasoning() -> None:
    message = CHAT.assistant_message(REPLY, reasoning_key="reasoning_content")
    assert message["content"] == "Hi" and message["reasoning_content"] == "hm" and len(message["tool_calls"]) == 1


def test_an_ollama_message_has_object_arguments_and_an_index_and_no_id() -> None:
    function = {"index": 0, "name": "edit", "arguments": {"path": "a b", "n": 1}}
    calls = [{"type": "function", "function": function}]
    assert OLLAMA.assistant_message("", [CALL]) == {"role": "assistant", "tool_calls": calls}
    assert OLLAMA.assistant_message("Hi", [CALL]) == {"role": "assistant", "content": "Hi", "tool_calls": calls}
    assert OLLAMA.assistant_message(REPLY)["thinking"] == "hm"


def test_a_responses_turn_is_a_list_of_items() -> None:
    assert RESPONSES.assistant_message(REPLY) == [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
        {"type": "function_call", "call_id": "call_1", "name": "edit", "arguments": '{"path": "a b", "n": 1}'},
    ]


def test_a_gemini_turn_is_one_content() -> None:
    assert GEMINI.assistant_message(REPLY) == {
        "role": "model",
        "parts": [
            {"text": "hm", "thought": True},
            {"text": "Hi"},
            {"functionCall": {"id": "call_1", "name": "edit", "args": {"path": "a b", "n": 1}}},
        ],
    }
    assert "id" not in GEMINI.assistant_message("", [CALL], ids=False)["parts"][0]["functionCall"]


@pytest.mark.parametrize(
    "json, arguments, written",
    [
        ('{ "n": 1.50, "s": "a  \\" b" }', {"n": 1.5, "s": 'a  " b'}, '{ "n": 1.50, "s": "a  \\" b" }'),
        ('\n{\n  "n": 1\n}\n', {"n": 1}, '{\n  "n": 1\n}'),
        ('{"n": 12345678901234567890123}', {"n": 12345678901234567890123}, '{"n": 12345678901234567890123}'),
        ('{"n": "ab', {}, "{}"),
        ("[1]", {}, "{}"),
        ("", {}, "{}"),
        ("", {"a": "é"}, '{"a": "é"}'),
        ('{"n": 2}', {"n": 1}, '{"n":1}'),
    ],
)
def test_written_arguments_are_an_object_with_the_original_spelling(json: str, arguments: Json, written: str) -> None:
    call = Call("f", arguments, json, "a")
    assert CHAT.assistant_message("", [call])["tool_calls"][0]["function"]["arguments"] == written


# -- a tool's result ---------------------------------------------------------------------------------------------------


def test_an_openai_result_is_a_tool_message() -> None:
    assert CHAT.tool_result(CALL, "ok") == {"role": "tool", "tool_call_id": "call_1", "content": "ok"}


def test_an_anthropic_result_is_a_user_message_with_one_block() -> None:
    block = {"type": "tool_result", "tool_use_id": "call_1", "content": "ok"}
    assert MESSAGES.tool_result(CALL, "ok") == {"role": "user", "content": [block]}
    assert MESSAGES.tool_result(CALL, "ok", is_error=True)["content"] == [{**block, "is_error": True}]
    blocks = [{"type": "text", "text": "ok"}]
    assert MESSAGES.tool_result(CALL, blocks)["content"][0]["content"] == blocks


def test_an_ollama_result_names_the_tool_and_has_no_id() -> None:
    assert OLLAMA.tool_result(CALL, "ok") == {"role": "tool", "tool_name": "edit", "content": "ok"}


def test_a_responses_result_is_an_item() -> None:
    output = {"type": "function_call_output", "call_id": "call_1", "output": "ok"}
    assert RESPONSES.tool_result(CALL, "ok") == output
    assert RESPONSES.tool_result(CALL, "ok", custom=True)["type"] == "custom_tool_call_output"


def test_a_gemini_result_is_a_part_of_the_user() -> None:
    def response(output: Any, **flags: Any) -> Json:
        content = GEMINI.tool_result(CALL, output, **flags)
        assert content["role"] == "user" and content["parts"][0]["functionResponse"]["name"] == "edit"
        found: Json = content["parts"][0]["functionResponse"]["response"]
        return found

    assert response("ok") == {"output": "ok"}
    assert response({"a": 1}) == {"a": 1}
    assert response("no", is_error=True) == {"error": "no"}


@pytest.mark.parametrize("dialect, key", [(CHAT, "content"), (OLLAMA, "content"), (RESPONSES, "output")])
def test_an_error_is_marked_in_the_text_if_the_dialect_has_no_error_flag(dialect: Any, key: str) -> None:
    assert dialect.tool_result(CALL, "no such file", is_error=True)[key] == "ERROR: no such file"
    assert dialect.tool_result(CALL, "error: no", is_error=True)[key] == "error: no"


@pytest.mark.parametrize("output, text", [({"a": [1, "é"]}, '{"a":[1,"é"]}'), ([], "[]"), (None, "null"), (5, "5")])
def test_results_that_are_not_text_are_written_as_json(output: Any, text: str) -> None:
    assert CHAT.tool_result(CALL, output)["content"] == text


# -- the tool choice ---------------------------------------------------------------------------------------------------

CHOICES = [
    (CHAT, "auto", "auto"),
    (CHAT, "required", "required"),
    (CHAT, "none", "none"),
    (CHAT, "f", {"type": "function", "function": {"name": "f"}}),
    (RESPONSES, "auto", "auto"),
    (RESPONSES, "required", "required"),
    (RESPONSES, "none", "none"),
    (RESPONSES, "f", {"type": "function", "name": "f"}),
    (MESSAGES, "auto", {"type": "auto"}),
    (MESSAGES, "required", {"type": "any"}),
    (MESSAGES, "none", {"type": "none"}),
    (MESSAGES, "f", {"type": "tool", "name": "f"}),
    (GEMINI, "auto", {"functionCallingConfig": {"mode": "AUTO"}}),
    (GEMINI, "required", {"functionCallingConfig": {"mode": "ANY"}}),
    (GEMINI, "none", {"functionCallingConfig": {"mode": "NONE"}}),
    (GEMINI, "f", {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}}),
]


@pytest.mark.parametrize("dialect, word, written", CHOICES)
def test_a_tool_choice_is_written(dialect: Any, word: str, written: Any) -> None:
    assert dialect.tool_choice(word) == written


def test_ollama_has_no_tool_choice() -> None:
    assert OLLAMA.tool_choice("required") is None


# -- opaque fields -----------------------------------------------------------------------------------------------------

SIGNED: Json = {"extra_content": {"google": {"thought_signature": "s"}}}


def test_extra_fields_of_a_chat_call_are_written_back() -> None:
    entry = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, **SIGNED}
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    response = {"choices": [{"message": {"content": "", "tool_calls": [entry], "reasoning_details": details}}]}
    reply = read(response)
    assert reply.extras == {"a": SIGNED, "": {"reasoning_details": details}}
    message = reply.message()
    assert message["tool_calls"] == [entry] and message["reasoning_details"] == details


def test_a_gemini_thought_signature_is_written_back_for_a_call_without_an_id() -> None:
    parts = [{"text": "Hi"}, {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"}]
    response = {"candidates": [{"content": {"role": "model", "parts": parts}}]}
    reply = read(response)
    assert reply.extras == {reply.attempts[0].id: {"thoughtSignature": "s"}}
    assert GEMINI.assistant_message(reply, extras=reply.extras, ids=False) == {"role": "model", "parts": parts}


def test_signed_anthropic_thinking_is_written_back_unchanged() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "a", "name": "f", "input": {}},
    ]
    response = {"type": "message", "role": "assistant", "content": blocks}
    assert read(response).message("messages") == {"role": "assistant", "content": blocks}


def test_encrypted_responses_reasoning_is_written_back_unchanged() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}
    custom = {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": "***"}
    response = {"output": [thought, custom]}
    assert read(response).message("responses") == [thought, custom]


def test_a_custom_chat_call_is_written_as_a_custom_call() -> None:
    entry = {"id": "a", "type": "custom", "custom": {"name": "patch", "input": "***"}}
    message = {"role": "assistant", "content": "", "tool_calls": [entry]}
    assert read(message).message() == message


def test_a_response_without_opaque_fields_has_no_extras() -> None:
    assert read(CHAT.assistant_message(REPLY, reasoning="")).extras == {}
    assert read({"x": 1}).extras == {} and read("text").extras == {}
