"""The upstream request body: the client's own body for a server of the same dialect, otherwise a translation."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightcall.backends.profiles import BY_API, UNKNOWN, find_profile
from rightcall.backends.request_body import write_body
from rightcall.backends.request_plan import ModeChoice, make_plan
from rightcall.providers.history_messages import OPAQUE
from rightcall.providers.history_sanitizer import KeptFields
from rightcall.serve.client_request import ClientRequest
from rightcall.serve.request_readers import READERS, read_request
from rightcall.serve.upstream_body import dropped_fields, mended_history, same_dialect_body, to_request
from rightcall.types import Json
from test_serve_readers import BODIES, SCHEMA

# Fields that a dialect cannot express; the laws skip them.
CANNOT_CARRY: dict[str, frozenset[str]] = {
    "chat": frozenset(("is_error",)),  # expressed in the text of a result
    "responses": frozenset(("is_error", "stop", "seed", "reasoning")),  # reasoning only as the server signed it
    "messages": frozenset(("seed", "developer", "reasoning")),
    "ollama": frozenset(("choice", "parallel", "is_error", "ids")),
    "gemini": frozenset(("parallel", "developer", "reasoning")),
}


def upward(request: ClientRequest, api: Any) -> Json:
    profile = find_profile(BY_API[api]) if api in BY_API else UNKNOWN
    plan = make_plan(to_request(request, api), ModeChoice("native", profile), api, "m", stream=request.stream)
    return write_body(plan)


@pytest.mark.parametrize("api", READERS)
def test_the_body_for_a_server_of_the_same_dialect_is_unchanged(api: Any) -> None:
    body = {**BODIES[api], "odd": {"kept": [1]}}
    sent = same_dialect_body(read_request(api, body, model="m", stream=True), model="other", stream=False)
    flags = {} if api == "gemini" else {"model": "other", "stream": False}
    assert {key: value for key, value in sent.items() if key != "stream_options"} == {
        key: value for key, value in {**body, **flags}.items() if key != "stream_options"
    }


@pytest.mark.parametrize("api", READERS)
def test_the_feedback_of_a_retry_follows_the_clients_conversation(api: Any) -> None:
    request = read_request(api, BODIES[api], model="m", stream=True)
    call = {"id": "call_9", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    more: list[Json] = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_9", "content": "path is missing"},
        {"role": "user", "content": "Again."},
    ]
    sent = same_dialect_body(request, appended=more)
    key = {"responses": "input", "gemini": "contents"}.get(api, "messages")
    assert sent[key][: len(BODIES[api][key])] == BODIES[api][key]
    again = read_request(api, sent, model="m", stream=True)
    assert again.messages[: len(request.messages)] == request.messages
    assert [each["role"] for each in again.messages[len(request.messages) :]] == ["assistant", "tool", "user"]
    assert again.messages[-1]["content"] == "Again."


@pytest.mark.parametrize("api", READERS)
def test_only_the_repaired_messages_of_a_history_are_rewritten(api: Any) -> None:
    request = read_request(api, BODIES[api], model="m", stream=True)
    messages = [*request.messages]
    at = next(at for at, each in enumerate(messages) if each["role"] == "assistant")
    messages[at] = {**messages[at], "content": "Changed."}
    sent = same_dialect_body(request, messages=messages)
    key = {"responses": "input", "gemini": "contents"}.get(api, "messages")
    assert sent[key][0] is BODIES[api][key][0] and sent[key][-1] is BODIES[api][key][-1]
    assert "Changed." in json.dumps(sent[key])
    again = read_request(api, sent, model="m", stream=True).messages[at]
    assert (again["content"], again.get(OPAQUE)) == ("Changed.", messages[at].get(OPAQUE))


@pytest.mark.parametrize("api", READERS)
def test_a_valid_history_is_not_changed_for_a_server_of_its_own_dialect(api: Any) -> None:
    assert mended_history(read_request(api, BODIES[api], model="m"), None).changes == ()


@pytest.mark.parametrize("api", READERS)
def test_a_call_without_a_result_gets_one_in_the_dialect_of_the_client(api: Any) -> None:
    key = {"responses": "input", "gemini": "contents"}.get(api, "messages")
    request = read_request(api, {**BODIES[api], key: BODIES[api][key][:-1]}, model="m")
    repaired = mended_history(request, None)
    sent = same_dialect_body(request, messages=repaired.messages)
    assert repaired.changes and sent[key][: len(BODIES[api][key]) - 1] == BODIES[api][key][:-1]
    assert read_request(api, sent, model="m").messages[-1]["role"] == "tool"


def test_a_system_message_inside_the_conversation_keeps_its_position() -> None:
    first_messages = [
        {"role": "user", "content": "a"},
        {"role": "system", "content": "b"},
        {"role": "assistant", "content": "c"},
    ]
    request = read_request("messages", {"messages": [*first_messages, {"role": "user", "content": "d"}]})
    changed = [request.messages[0], {**request.messages[1], "content": "B"}, *request.messages[2:]]
    assert same_dialect_body(request, messages=changed)["messages"] == [
        first_messages[0],
        {"role": "system", "content": "B"},
        first_messages[2],
        {"role": "user", "content": "d"},
    ]


# -- translation between all dialects ----------------------------------------------------------------------------------

WORDS = st.text("abc xyz.,{}\"'\n", min_size=1, max_size=20).filter(str.strip)
NAMES = st.sampled_from(["read", "files.read", "x" * 70, "mcp__a__b", "1st"])
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0K"}}


def call(number: int, name: str, path: str) -> Json:
    arguments = json.dumps({"path": path}, separators=(",", ":"))
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


@st.composite
def conversations(draw: st.DrawFn) -> Json:
    """Draw a Chat body with a conversation and the tools that it calls."""
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    messages: list[Json] = [{"role": "system", "content": draw(WORDS)}] if draw(st.booleans()) else []
    count = 0
    for _ in range(draw(st.integers(1, 3))):
        question, has_image = draw(WORDS), draw(st.booleans())
        messages.append(
            {"role": "user", "content": [{"type": "text", "text": question}, IMAGE] if has_image else question}
        )
        calls = [call(count + at, draw(st.sampled_from(names)), draw(WORDS)) for at in range(draw(st.integers(0, 2)))]
        count += len(calls)
        turn: Json = {"role": "assistant", "content": draw(WORDS)}
        messages.append({**turn, "tool_calls": calls} if calls else turn)
        messages += [{"role": "tool", "tool_call_id": each["id"], "content": draw(WORDS)} for each in calls]
    tools = [{"name": name, "description": "d", "parameters": SCHEMA} for name in names]
    named = {"type": "function", "function": {"name": names[0]}}
    return {
        "model": "m",
        "messages": messages,
        "tools": [{"type": "function", "function": tool} for tool in tools],
        "tool_choice": draw(st.sampled_from(["auto", "required", "none", named])),
        "parallel_tool_calls": draw(st.booleans()),
        "max_tokens": draw(st.integers(1, 9000)),
        "temperature": draw(st.sampled_from([0.0, 0.5, 1.0])),
        "stop": draw(st.sampled_from([["A"], ["A", "B"]])),
        "seed": 7,
    }


def comparable_messages(request: ClientRequest, names: dict[str, str]) -> list[Any]:
    """Return what every dialect can express, with numbered ids and the client's names."""
    numbers: dict[str, int] = {}
    out = []
    for message in request.messages:
        calls = [
            (
                numbers.setdefault(each["id"], len(numbers)),
                names[each["function"]["name"]],
                json.loads(each["function"]["arguments"]),
            )
            for each in message.get("tool_calls", ())
        ]
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        out.append((message["role"], parts, calls, numbers.get(message.get("tool_call_id", ""))))
    return out


@pytest.mark.parametrize("one", READERS)
@pytest.mark.parametrize("other", READERS)
@settings(max_examples=15)
@given(conversations())
def test_a_conversation_is_the_same_in_every_dialect(one: Any, other: Any, body: Json) -> None:
    lost = CANNOT_CARRY[one] | CANNOT_CARRY[other]
    if "choice" in lost:  # Such a dialect offers only the tools that can be called.
        body = {**body, "tool_choice": "required"}
    chat = read_request("chat", body)
    first = read_request(one, upward(chat, one), model="m")
    second = read_request(other, upward(first, other), model="m")
    chat_tools = [each.tool for each in chat.tools or ()]
    translated_tools = [each.tool for each in second.tools or ()]
    assert [(each.description, each.parameters) for each in translated_tools] == [
        (each.description, each.parameters) for each in chat_tools
    ]
    names = {there.name: here.name for here, there in zip(chat_tools, translated_tools, strict=True)}
    assert comparable_messages(second, names) == comparable_messages(
        chat, {each.name: each.name for each in chat_tools}
    )
    lost |= {"parallel"} if chat.choice == "none" else set()  # With choice none, there are never two calls.
    assert "choice" in lost or names.get(second.choice, second.choice) == chat.choice
    for name in {"parallel", "stop", "seed"} - lost:
        assert getattr(second, name) == getattr(chat, name)
    assert (second.max_tokens, second.temperature) == (chat.max_tokens, chat.temperature)


def test_sampling_fields_are_translated_between_dialects() -> None:
    request = read_request(
        "chat", {"messages": [], "top_p": 0.5, "top_k": 4, "logit_bias": {"1": 2}, "reasoning_effort": "high"}
    )
    assert upward(request, "gemini")["generationConfig"] == {
        "topP": 0.5,
        "topK": 4,
        "thinkingConfig": {"thinkingLevel": "HIGH"},
    }
    assert upward(request, "ollama")["options"] == {"top_p": 0.5, "top_k": 4}
    assert upward(request, "responses")["reasoning"] == {"effort": "high"} and "top_k" not in upward(
        request, "responses"
    )
    assert dropped_fields(request, "messages") == ("'logit_bias' is left out: the server's API has no field for it",)
    assert dropped_fields(request, "chat") == ()


@pytest.mark.parametrize("one", READERS)
@pytest.mark.parametrize("other", READERS)
def test_a_tool_failure_is_a_flag_or_stated_in_the_text(one: Any, other: Any) -> None:
    messages = [
        {"role": "assistant", "content": "", "tool_calls": [call(0, "read", "a")]},
        {"role": "tool", "tool_call_id": "call_0", "content": "no such file", "is_error": True},
    ]
    first = read_request(one, upward(read_request("chat", {"messages": messages}), one), model="m")
    result = read_request(other, upward(first, other), model="m").messages[-1]
    flagged = "is_error" not in CANNOT_CARRY[one] | CANNOT_CARRY[other]
    assert result.get("is_error", False) is flagged
    assert result["content"] == ("no such file" if flagged else "ERROR: no such file")


# -- calls that are not function calls, and fields that providers require back -----------------------------------------


def test_calls_of_other_types_are_translated_to_function_calls() -> None:
    tools = [{"type": "custom", "name": "patch"}, {"type": "local_shell"}]
    items = [
        {"type": "reasoning", "id": "rs_1", "encrypted_content": "E", "summary": []},
        {"type": "custom_tool_call", "call_id": "1", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "1", "output": "done"},
        {"type": "local_shell_call", "call_id": "2", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "local_shell_call_output", "call_id": "2", "output": "a.txt"},
    ]
    request = read_request("responses", {"input": items, "tools": tools})
    sent = upward(request, "responses")
    assert [each["type"] for each in sent["tools"]] == ["function", "function"]
    kinds = ["reasoning", *["function_call", "function_call_output"] * 2]
    assert [each["type"] for each in sent["input"]] == kinds and sent["input"][0] == items[0]
    own = same_dialect_body(request, messages=[{**each, "name": "x"} for each in request.messages])["input"]
    assert own == items


KEPT = {
    "messages": KeptFields({"thinking": [{"type": "thinking", "thinking": "t", "signature": "s"}]}),
    "responses": KeptFields({"reasoning": [{"type": "reasoning", "id": "r", "encrypted_content": "e"}]}),
    "gemini": KeptFields({}, {"thoughtSignature": "new"}),
}


@pytest.mark.parametrize("api", KEPT)
def test_opaque_fields_that_a_client_dropped_are_restored(api: Any) -> None:
    request = read_request(api, BODIES[api], model="m")
    (id,) = [each["tool_calls"][0]["id"] for each in request.messages if "tool_calls" in each]
    assert mended_history(request, None, kept={id: KEPT[api]}).changes == ()
    bare = [{key: value for key, value in each.items() if key != OPAQUE} for each in request.messages]
    dropped = msgspec.structs.replace(request, messages=bare)
    repaired = mended_history(dropped, None, kept={id: KEPT[api]})
    assert [each.kind for each in repaired.changes] == ["put_back"]
    wanted = {"messages": '"signature":"s"', "responses": '"encrypted_content":"e"', "gemini": '"new"'}[api]
    assert wanted in json.dumps(same_dialect_body(dropped, messages=repaired.messages), separators=(",", ":"))


def test_images_of_a_result_are_placed_where_the_server_accepts_them() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0K"}}
    blocks = [{"type": "tool_use", "id": "1", "name": "look", "input": {}}]
    result = {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "see"}, image]}
    messages = [{"role": "assistant", "content": blocks}, {"role": "user", "content": [result]}]
    request = read_request("messages", {"messages": messages})
    chat = upward(request, "chat")["messages"]
    assert chat[1]["content"] == "see\n(an image, which follows)" and chat[2] == {"role": "user", "content": [IMAGE]}
    assert upward(request, "messages")["messages"] == messages
    assert upward(request, "responses")["input"][1]["output"][1] == {
        "type": "input_image",
        "image_url": IMAGE["image_url"]["url"],  # type: ignore[index]
    }
    assert upward(request, "ollama")["messages"][1]["images"] == ["iVBORw0K"]
    assert upward(request, "gemini")["contents"][1]["parts"][1]["inlineData"]["data"] == "iVBORw0K"
