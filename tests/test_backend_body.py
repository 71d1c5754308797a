"""Request bodies: one request in five dialects, with only the requested fields."""

from typing import Any

import msgspec
import pytest

from rightcall import Toolset
from rightcall.backends.address import check_api
from rightcall.backends.history_bodies import fit_call_id
from rightcall.backends.plain_prompt import text_format, write_as_text
from rightcall.backends.profiles import PROFILES, UNKNOWN, IdRule, Profile
from rightcall.backends.request import Request
from rightcall.backends.request_body import write_body, write_tool_fields
from rightcall.backends.request_plan import (
    ModeChoice,
    grammar_fields,
    make_plan,
    without_named_choice,
)
from rightcall.types import Json
from support.loopback import ask

CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
HISTORY: list[Json] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Look"}, IMAGE]},
    {"role": "assistant", "content": None, "reasoning_content": "Hm", "tool_calls": [CALL, {**CALL, "id": "call_2"}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
    {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "sun"}]},
    {"role": "user", "content": "Thanks"},
]
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}


def body(
    request: Request | None = None,
    *,
    api: str = "chat",
    mode: str = "native",
    profile: Profile = UNKNOWN,
    **fields: Any,
) -> Json:
    request = request or ask(messages=HISTORY, **fields)
    return write_body(make_plan(request, ModeChoice(mode, profile), check_api(api), "m", stream=False))


def test_chat_messages_are_sent_unchanged_except_for_null_content() -> None:
    sent = body()["messages"]
    assert sent[2] == {**HISTORY[2], "content": ""}
    assert [*sent[:2], *sent[3:]] == [*HISTORY[:2], *HISTORY[3:]]


def test_responses_input_is_a_list_of_items() -> None:
    sent = body(api="responses")
    assert sent["input"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Look"},
                {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
            ],
        },
        {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city": "Oslo"}'},
        {"type": "function_call", "call_id": "call_2", "name": "get_weather", "arguments": '{"city": "Oslo"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
        {"type": "function_call_output", "call_id": "call_2", "output": "sun"},
        {"role": "user", "content": "Thanks"},
    ]
    (tool,) = sent["tools"]
    assert tool["name"] == "get_weather" and tool["strict"] is False


def test_anthropic_gets_a_separate_system_prompt_and_the_results_of_a_turn_in_one_message() -> None:
    sent = body(api="messages")
    assert sent["system"] == "Be brief." and sent["max_tokens"] == 4096
    uses = [
        {"type": "tool_use", "id": id, "name": "get_weather", "input": {"city": "Oslo"}} for id in ("call_1", "call_2")
    ]
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    results = [
        {"type": "tool_result", "tool_use_id": "call_1", "content": "rain"},
        {"type": "tool_result", "tool_use_id": "call_2", "content": "sun"},
    ]
    assert sent["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Look"}, {"type": "image", "source": source}]},
        {"role": "assistant", "content": uses},
        {"role": "user", "content": results},
        {"role": "user", "content": "Thanks"},
    ]
    assert sent["tools"][0]["input_schema"]["required"] == ["city"]


def test_ollama_gets_argument_objects_tool_names_and_images() -> None:
    sent = body(api="ollama", profile=PROFILES["ollama"], temperature=0.5, max_tokens=9, seed=1, stop=("X",))
    assert sent["messages"][1] == {"role": "user", "content": "Look", "images": ["QUJD"]}
    call = sent["messages"][2]["tool_calls"][0]["function"]
    assert call["arguments"] == {"city": "Oslo"} and sent["messages"][2]["thinking"] == "Hm"
    assert sent["messages"][3] == {"role": "tool", "tool_name": "get_weather", "content": "rain"}
    assert sent["options"] == {"temperature": 0.5, "num_predict": 9, "seed": 1, "stop": ["X"]}


@pytest.mark.parametrize(
    "api, profile, names",
    [
        ("chat", UNKNOWN, {"temperature", "max_tokens", "seed", "stop"}),
        ("chat", PROFILES["openai"], {"temperature", "max_completion_tokens", "seed", "stop"}),
        ("responses", UNKNOWN, {"temperature", "max_output_tokens"}),
        ("messages", UNKNOWN, {"temperature", "max_tokens", "stop_sequences"}),
    ],
)
def test_every_dialect_has_its_own_names_for_settings(api: str, profile: Profile, names: set[str]) -> None:
    plain = set(body(api=api, profile=profile)) - {"max_tokens"}
    full = body(api=api, profile=profile, temperature=0.0, max_tokens=9, seed=1, stop=("X",))
    assert set(full) - plain == names
    assert 9 in full.values() and 0.0 in full.values()


@pytest.mark.parametrize("api", ["chat", "responses", "messages", "ollama"])
@pytest.mark.parametrize("tools", [None, ()])
def test_a_request_without_tools_does_not_mention_tools(api: str, tools: Any) -> None:
    sent = body(api=api, tools=tools)
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(sent)


@pytest.mark.parametrize(
    "api, choice, expected",
    [
        ("chat", "auto", None),
        ("chat", "required", "required"),
        ("chat", "none", "none"),
        ("chat", "get_weather", {"type": "function", "function": {"name": "get_weather"}}),
        ("responses", "get_weather", {"type": "function", "name": "get_weather"}),
        ("messages", "required", {"type": "any"}),
        ("messages", "get_weather", {"type": "tool", "name": "get_weather"}),
        ("ollama", "required", None),
    ],
)
def test_every_dialect_has_its_own_spelling_of_the_tool_choice(api: str, choice: str, expected: Any) -> None:
    assert body(api=api, choice=choice).get("tool_choice") == expected


@pytest.mark.parametrize(
    "api, choice, profile, expected",
    [
        ("chat", "auto", UNKNOWN, {"parallel_tool_calls": False}),
        ("chat", "auto", PROFILES["ollama"], {}),
        ("responses", "required", UNKNOWN, {"parallel_tool_calls": False, "tool_choice": "required"}),
        ("messages", "auto", UNKNOWN, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
        ("messages", "required", UNKNOWN, {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}),
        ("messages", "none", UNKNOWN, {"tool_choice": {"type": "none"}}),
        ("ollama", "auto", PROFILES["ollama"], {}),
    ],
)
def test_every_dialect_has_its_own_spelling_of_one_call_at_a_time(
    api: str, choice: str, profile: Profile, expected: Any
) -> None:
    names = {"tool_choice", "parallel_tool_calls"}
    sent = body(api=api, choice=choice, profile=profile, parallel=False)
    assert {key: sent[key] for key in names & set(sent)} == expected
    assert "parallel_tool_calls" not in body(api=api, choice=choice, profile=profile)


def test_one_call_at_a_time_is_stated_in_the_grammar_and_in_the_prompt() -> None:
    request = Request(messages=[{"role": "user", "content": "Hi"}], tools=_two_tools(), parallel=False)
    both = [request, msgspec.structs.replace(request, parallel=True)]
    fields = [grammar_fields(each, _two_tools(), "hermes", PROFILES["llama.cpp"], "chat") for each in both]
    assert fields[0] != fields[1]
    prompts = [write_as_text(each, text_format("auto"))[0]["content"] for each in both]
    assert prompts[0].endswith("at most one call in a reply, and wait for its result before the next.")
    assert prompts[0].startswith(prompts[1])


def _two_tools() -> Toolset:
    return Toolset([{"name": name, "parameters": PARAMETERS} for name in ("get_weather", "get_time")])


@pytest.mark.parametrize("name", ["llama.cpp", "lmstudio"])
def test_a_server_without_named_choice_is_sent_only_the_chosen_tool(name: str) -> None:
    sent = body(profile=PROFILES[name], tools=_two_tools(), choice="get_time")
    assert sent["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["get_time"]


FORCED: dict[str, Any] = {
    "chat": "required",
    "responses": "required",
    "messages": {"type": "any"},
    "gemini": {"functionCallingConfig": {"mode": "ANY"}},
}


@pytest.mark.parametrize("api", FORCED)
def test_only_the_single_offered_tool_is_described(api: str) -> None:
    request, mode = (
        ask(messages=HISTORY, tools=_two_tools(), choice="get_time"),
        without_named_choice(ModeChoice("native", UNKNOWN)),
    )
    plan = make_plan(request, mode, check_api(api), "m", stream=False)
    fields = write_tool_fields(plan)
    assert plan.is_narrowed and "get_time" in str(fields) and "get_weather" not in str(fields)
    assert fields[{"gemini": "toolConfig"}.get(api, "tool_choice")] == FORCED[api]
    assert set(fields) < set(write_body(plan)) and "messages" not in fields


def test_tools_are_not_sent_with_choice_none_to_a_server_that_ignores_the_choice() -> None:
    assert "tools" not in body(profile=PROFILES["ollama"], tools=_two_tools(), choice="none")


def test_extra_fields_override_settings() -> None:
    sent = body(extra={"top_k": 3, "stream": True, "temperature": 1.0}, temperature=0.0)
    assert (sent["top_k"], sent["stream"], sent["temperature"]) == (3, True, 1.0)


@pytest.mark.parametrize(
    "rule, id, same",
    [
        (IdRule(), "anything: at all!", True),
        (PROFILES["anthropic"].ids, "call_1", True),
        (PROFILES["anthropic"].ids, "functions.f:0", False),
        (PROFILES["openai"].ids, "x" * 40, True),
        (PROFILES["openai"].ids, "x" * 41, False),
        (PROFILES["mistral"].ids, "abcDEF123", True),
        (PROFILES["mistral"].ids, "call_1", False),
    ],
)
def test_an_id_that_a_server_rejects_is_replaced_deterministically(rule: IdRule, id: str, same: bool) -> None:
    fitted = fit_call_id(id, rule)
    assert (fitted == id) is same and fit_call_id(fitted, rule) == fitted == fit_call_id(id, rule)


@pytest.mark.parametrize("api", ["chat", "messages"])
def test_a_call_and_its_result_keep_the_same_id(api: str) -> None:
    odd = {**CALL, "id": "functions.get_weather:0"}
    history = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "", "tool_calls": [odd]},
        {"role": "tool", "tool_call_id": odd["id"], "content": "rain"},
    ]
    sent = body(api=api, profile=PROFILES["anthropic"], request=ask(messages=history))["messages"]
    if api == "chat":
        assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] != odd["id"]
    else:
        assert sent[1]["content"][0]["id"] == sent[2]["content"][0]["tool_use_id"] != odd["id"]


def test_a_broken_call_in_the_history_is_sent_with_an_empty_object() -> None:
    broken = {**CALL, "function": {"name": "get_weather", "arguments": '{"city": "Os'}}
    history = [{"role": "user", "content": "?"}, {"role": "assistant", "content": None, "tool_calls": [broken]}]
    sent = body(api="messages", request=ask(messages=history))["messages"]
    assert sent[1]["content"][0]["input"] == {}
