"""Histories of every API converted to Chat messages: one conversation gives the same messages from every API."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightcall import Call, Problem, Reasoning, Reply, Result, Text, tool
from rightcall.errors import CallerError
from rightcall.guard import Guard, Turn, prerequisites, required_steps, terminal_tools
from rightcall.messages import chat_messages, history_faults, sane
from rightcall.providers.sniff import DIALECTS

Json = dict[str, Any]
APIS = list(DIALECTS)
every_api = pytest.mark.parametrize("api", APIS)


@tool(read_only=True)
def look(city: str) -> str:
    return city


@tool
def save(city: str, days: int = 1) -> str:
    return "saved"


TOOLS = [look, save]
GUARD = Guard.of("full").with_policies(
    required_steps("look"), prerequisites({"save": ("look", "city")}), terminal_tools("save")
)


def user_message(api: str, text: str = "go") -> Json:
    return {"role": "user", "parts": [{"text": text}]} if api == "gemini" else {"role": "user", "content": text}


def state(turn: Turn) -> list[Any]:
    """Return what a policy can see of the past, without ids: one of the APIs has none."""
    return [
        (
            each.text,
            each.told,
            [(call.name, call.arguments, call.result, call.outcome, call.told) for call in each.calls],
        )
        for each in turn.past
    ]


cities = st.sampled_from(["Oslo", "Rome", "[guard: x] y", "ERROR: z", 'a "b"\n{c}'])
outputs = st.sampled_from(["sun", "rain\nand wind", "", '{"a": 1}', "[info] fine", "ERROR: no", "x\n[note] y"])
calls = st.builds(
    lambda name, city, bad: (name, {"city": city}, bad),
    st.sampled_from(["look", "save", "nope"]),
    cities,
    st.booleans(),
)
turns = st.lists(
    st.tuples(
        st.sampled_from(["", "Hm.", "Let me call look.", "Two\n\nparts"]),
        st.sampled_from(["", "I think."]),
        st.lists(calls, max_size=3),
        st.lists(st.tuples(outputs, st.booleans()), min_size=3, max_size=3),
        st.sampled_from(["", "", "", "And now?"]),
    ),
    max_size=8,
)


def reply_of(text: str, thought: str, call_specs: Sequence[Any], at: int) -> Reply:
    parts: list[Any] = [*([Reasoning(thought)] if thought else []), *([Text(text)] if text else [])]
    for number, (name, arguments, bad) in enumerate(call_specs):
        wrong = (Problem("unknown_tool" if name == "nope" else "missing", "x is missing", call=number),)
        parts.append(Call(name, arguments, id=f"c{at}x{number}", problems=wrong if bad or name == "nope" else ()))
    return Reply(tuple(parts))


@settings(max_examples=settings().max_examples * 3)
@given(conversation=turns)
def test_a_conversation_gives_the_same_turn_in_every_api(conversation: list[Any]) -> None:
    """Each history, with the guard's messages, is kept in the format of its API; the guard's verdict never differs."""
    histories: dict[str, list[Any]] = {api: [user_message(api)] for api in APIS}
    for at, (text, thought, call_specs, call_outputs, next_request) in enumerate(conversation):
        reply = reply_of(text, thought, call_specs, at)
        judged = {api: GUARD.judge(Turn.of(histories[api], TOOLS, reply=reply)) for api in APIS}
        first = judged["chat"]
        for api, own in judged.items():
            assert (own.decision, own.interventions) == (first.decision, first.interventions), api
            results = [Result(call, *given_back) for call, given_back in zip(own.calls, call_outputs, strict=False)]
            histories[api] += own.messages(results, api=api)
            histories[api] += [user_message(api, next_request)] if next_request else []
        states = {api: state(Turn.of(histories[api], TOOLS)) for api in APIS}
        states_with_api = {api: state(Turn.of(histories[api], TOOLS, api=api)) for api in APIS}
        for api in APIS:
            assert states[api] == states["chat"], api
            assert states_with_api[api] == states["chat"], api


@settings(max_examples=settings().max_examples * 2)
@given(conversation=turns, api=st.sampled_from(APIS))
def test_converted_messages_are_a_valid_chat_history_and_conversion_is_idempotent(
    conversation: list[Any], api: str
) -> None:
    history: list[Any] = [user_message(api)]
    for at, (text, thought, call_specs, call_outputs, _) in enumerate(conversation):
        reply = reply_of(text or "x", thought, call_specs, at)
        judged = Guard.of("none").judge(Turn.of(history, TOOLS, reply=reply))
        history += judged.messages([Result(c, *r) for c, r in zip(judged.calls, call_outputs, strict=False)], api=api)
    before = json.dumps(history)
    found = chat_messages(history, api=api)
    assert chat_messages(found) == found
    assert json.dumps(history) == before
    bare = [{key: value for key, value in each.items() if key != "is_error"} for each in found]
    assert not history_faults(sane(bare, profile="vllm").messages, profile="vllm")
    assert not [each for each in sane(bare, profile="vllm").changes if each.kind not in ("content", "empty_turn")]


HISTORIES: dict[str, tuple[str, list[Any], list[Json]]] = {
    "Claude Code": (
        "messages",
        [
            {"role": "user", "content": [{"type": "text", "text": "<system-reminder>a</system-reminder>"}]},
            {"role": "user", "content": [{"type": "text", "text": "Read it", "cache_control": {"type": "ephemeral"}}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "zebra"}]},
                    {"type": "text", "text": "<system-reminder>\nbe brief\n</system-reminder>"},
                ],
            },
        ],
        [
            {"role": "user", "content": "<system-reminder>a</system-reminder>"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "Read it", "cache_control": {"type": "ephemeral"}}],
            },
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "Read", "arguments": '{"path":"a"}'}}
                ],
                "reasoning_content": "hm",
                "rightcall_opaque": {
                    "messages": {"": {"thinking": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}}
                },
            },
            {"role": "tool", "tool_call_id": "t1", "content": "zebra"},
            {"role": "user", "content": "<system-reminder>\nbe brief\n</system-reminder>"},
        ],
    ),
    "Codex": (
        "responses",
        [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
            {"type": "message", "role": "user", "content": "Read it"},
            {"role": "assistant", "content": "I will."},
            {"type": "function_call", "id": "fc_1", "name": "cat", "arguments": '{"p": 1}', "call_id": "c1"},
            {"type": "custom_tool_call", "name": "patch", "input": "+ a", "call_id": "c2"},
            {"type": "function_call_output", "call_id": "c1", "output": "zebra"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"},
        ],
        [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Read it"},
            {
                "role": "assistant",
                "content": "I will.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "cat", "arguments": '{"p": 1}'}},
                    {"id": "c2", "type": "custom", "custom": {"name": "patch", "input": "+ a"}},
                ],
                "rightcall_opaque": {"responses": {"c2": {"type": "custom_tool_call"}}},
            },
            {"role": "tool", "tool_call_id": "c1", "content": "zebra"},
            {"role": "tool", "tool_call_id": "c2", "content": "ok"},
        ],
    ),
    "Gemini, without ids": (
        "gemini",
        [
            {"role": "user", "parts": [{"text": "Read"}, {"inlineData": {"mimeType": "image/png", "data": "AA=="}}]},
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "a", "args": {"x": 1}}, "thoughtSignature": "sig"},
                    {"functionCall": {"name": "b", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "b", "response": {"error": "no b"}}},
                    {"functionResponse": {"name": "a", "response": {"lines": 3}}},
                ],
            },
        ],
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Read"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                ],
            },
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "a", "arguments": '{"x":1}'}},
                    {"id": "call_2", "type": "function", "function": {"name": "b", "arguments": "{}"}},
                ],
                "rightcall_opaque": {"gemini": {"call_1": {"thoughtSignature": "sig"}}},
            },
            {"role": "tool", "tool_call_id": "call_2", "name": "b", "content": "no b", "is_error": True},
            {"role": "tool", "tool_call_id": "call_1", "name": "a", "content": '{"lines":3}'},
        ],
    ),
    "Ollama": (
        "ollama",
        [
            {"role": "user", "content": "Read"},
            {
                "role": "assistant",
                "thinking": "hm",
                "tool_calls": [
                    {"function": {"name": "a", "arguments": {"x": 1}}},
                    {"function": {"name": "a", "arguments": {"x": 2}}},
                ],
            },
            {"role": "tool", "tool_name": "a", "content": "one"},
            {"role": "tool", "tool_name": "a", "content": "two"},
        ],
        [
            {"role": "user", "content": "Read"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {"id": "call_1", "type": "function", "function": {"name": "a", "arguments": '{"x":1}'}},
                    {"id": "call_2", "type": "function", "function": {"name": "a", "arguments": '{"x":2}'}},
                ],
                "reasoning_content": "hm",
            },
            {"role": "tool", "tool_call_id": "call_1", "name": "a", "content": "one"},
            {"role": "tool", "tool_call_id": "call_2", "name": "a", "content": "two"},
        ],
    ),
    "Chat before tools": (
        "chat",
        [
            {"role": "user", "content": "Read", "name": "Ann"},
            {"role": "assistant", "content": None, "function_call": {"name": "a", "arguments": "{}"}, "audio": {}},
            {"role": "function", "name": "a", "content": "one"},
        ],
        [
            {"role": "user", "content": "Read", "name": "Ann"},
            {
                "role": "assistant",
                "content": None,
                "audio": {},
                "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "a", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "call_1", "name": "a", "content": "one"},
        ],
    ),
}


@pytest.mark.parametrize("case", HISTORIES)
def test_histories_of_real_clients_are_converted(case: str) -> None:
    api, history, wanted = HISTORIES[case]
    assert chat_messages(history) == wanted
    assert chat_messages(history, api=api) == wanted
    turn = Turn.of(history)
    assert len(turn.past) == 1 and all(call.outcome in ("ok", "failed") for call in turn.calls)


@pytest.mark.parametrize("api", ["ollama", "gemini"])
@pytest.mark.parametrize(
    "names, ids",
    [
        (["read", "edit", "read"], ["call_1", "call_2", "call_3"]),
        (["edit", "read"], ["call_2", "call_1"]),
        (["", "", ""], ["call_1", "call_2", "call_3"]),
        (["read", "", ""], ["call_1", "call_2", "call_3"]),
        (["edit", "edit", "read"], ["call_2", "", "call_1"]),
        (["drop", "read"], ["", "call_1"]),
        (["drop"], [""]),
    ],
    ids=str,
)
def test_a_result_without_an_id_answers_the_first_waiting_call_of_the_tool_it_names(
    api: str, names: list[str], ids: list[str]
) -> None:
    called = ["read", "edit", "read"]
    history: list[Json]
    if api == "ollama":
        ollama_calls = [{"function": {"name": name, "arguments": {}}} for name in called]
        results = [{"role": "tool", "tool_name": name, "content": "x"} for name in names]
        history = [user_message(api), {"role": "assistant", "content": "", "tool_calls": ollama_calls}, *results]
    else:
        parts = [{"functionCall": {"name": name, "args": {}}} for name in called]
        responses = [{"functionResponse": {"name": name, "response": {"r": "x"}}} for name in names]
        history = [user_message(api), {"role": "model", "parts": parts}, {"role": "user", "parts": responses}]
    assert [each["tool_call_id"] for each in chat_messages(history, api=api) if each["role"] == "tool"] == ids


@every_api
def test_plain_text_is_converted_the_same_from_every_api(api: str) -> None:
    history = [user_message(api, "Hi"), Reply((Text("Hello."),)).message(api), user_message(api, "Bye")]
    flat = [each for one in history for each in (one if isinstance(one, list) else [one])]
    assert [each["content"] for each in chat_messages(flat)] == ["Hi", "Hello.", "Bye"]


def test_an_unknown_api_is_rejected_by_name() -> None:
    with pytest.raises(CallerError, match="telegraph"):
        chat_messages([], api="telegraph")


def test_bracketed_text_of_users_and_tools_is_not_treated_as_guard_text() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    turn = Turn.of(
        [
            {"role": "user", "content": "[urgent] look"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "[info] sun\n[info] wind"},
        ]
    )
    assert [(each.outcome, each.result) for each in turn.calls] == [("ok", "[info] sun\n[info] wind")]
