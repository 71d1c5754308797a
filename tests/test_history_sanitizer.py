"""Sanitized histories: laws over hostile histories, then a table of faults that users reported."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightcall.errors import CallerError
from rightcall.messages import HISTORY_PROFILES, KeptFields, history_faults, kept_of, sane
from rightcall.strict_json import MAX_DEPTH, decode, is_object_text
from rightcall.types import Call, Reasoning, Reply

PROFILES = sorted(HISTORY_PROFILES)
ids = st.sampled_from(["", "a", "b", "call_1", "abcdefgh1", "x" * 80, None, 7])
texts = st.sampled_from(
    [
        "",
        " ",
        "hi",
        "two\nlines",
        "é\ud800",
        None,
        5,
        {"a": 1},
        [],
        ["x"],
        [{"type": "text", "text": "t"}],
        [{"type": "image_url", "image_url": {}}],
    ]
)
arguments = st.sampled_from(
    ['{"x": 1}', "", "{", "[1]", '"{\\"x\\": 1}"', None, {"x": 1}, "null", "text", '{"a":1,"a":2}', "[" * 500]
)
names = st.sampled_from(["f", "g", "", None, "not a name"])
calls = st.one_of(
    st.builds(
        lambda i, n, a: {"id": i, "type": "function", "function": {"name": n, "arguments": a}}, ids, names, arguments
    ),
    st.sampled_from(
        [
            None,
            "x",
            {},
            {"name": "f", "arguments": "{}"},
            {"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}},
        ]
    ),
)
extra = st.sampled_from(
    [
        {},
        {"reasoning_content": "because"},
        {"reasoning": ""},
        {"thinking": "t"},
        {"function_call": {"name": "f", "arguments": "{}"}},
        {"x_unknown": 1},
        {"name": "n"},
        {"refusal": "no"},
    ]
)
messages = st.one_of(
    st.builds(
        lambda r, c, e: {"role": r, "content": c, **e},
        st.sampled_from(["system", "developer", "user", "assistant", "human", "tool", None, "?"]),
        texts,
        extra,
    ),
    st.builds(
        lambda c, t, e: {"role": "assistant", "content": c, "tool_calls": t, **e},
        texts,
        st.lists(calls, max_size=3),
        extra,
    ),
    st.builds(
        lambda i, c, n: {"role": "tool", "tool_call_id": i, "content": c, **({"name": n} if n else {})},
        ids,
        texts,
        names,
    ),
    st.sampled_from([None, "x", {}, [], {"role": "tool"}]),
)
histories = st.lists(messages, max_size=8)


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=60, deadline=None)
@given(history=histories)
def test_sanitized_histories_are_accepted_and_sanitizing_is_idempotent(profile: str, history: list[Any]) -> None:
    before = copy.deepcopy(history)
    fit = sane(history, profile=profile)
    assert history == before, "the history that was given was touched"
    assert history_faults(fit.messages, profile=profile) == []
    again = sane(fit.messages, profile=profile)
    assert (again.messages, again.changes) == (fit.messages, ())
    if not history_faults(history, profile=profile):
        assert fit.messages == history
        assert not fit.ids


@pytest.mark.parametrize("profile", PROFILES)
@settings(max_examples=40, deadline=None)
@given(history=histories)
def test_every_text_is_preserved(profile: str, history: list[Any]) -> None:
    marked = [
        {**each, "content": f"said-{at}."} if isinstance(each, dict) and each else each
        for at, each in enumerate(history)
    ]
    sent = json.dumps(sane(marked, profile=profile).messages)
    for at, each in enumerate(marked):
        if isinstance(each, dict) and each:
            assert sent.count(f"said-{at}.") == 1


def chat(*messages: Any) -> list[Any]:
    return [{"role": "user", "content": "go"}, *messages]


def assistant_with_calls(*calls: tuple[Any, Any, Any], **fields: Any) -> dict[str, Any]:
    tool_calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": given}} for id, name, given in calls
    ]
    return {"role": "assistant", "content": "", "tool_calls": tool_calls, **fields}


def tool_result(id: Any, content: Any = "done", **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content, **fields}


REPORTED_FAULTS: dict[str, tuple[str, list[Any], list[Any], set[str]]] = {
    "broken arguments poison a session": (
        "openai",
        chat(assistant_with_calls(("a", "f", '{"x": ')), tool_result("a", "bad JSON")),
        chat(
            assistant_with_calls(("a", "f", "{}")),
            tool_result("a", 'bad JSON\n(the arguments of this call were not a JSON object; you sent: {"x": )'),
        ),
        {"poisoned_arguments"},
    ),
    "arguments encoded twice": (
        "openai",
        chat(assistant_with_calls(("a", "f", '"{\\"x\\": 1}"')), tool_result("a")),
        chat(assistant_with_calls(("a", "f", '{"x": 1}')), tool_result("a")),
        {"double_encoded"},
    ),
    "empty arguments": (
        "openai",
        chat(assistant_with_calls(("a", "f", "")), tool_result("a")),
        chat(assistant_with_calls(("a", "f", "{}")), tool_result("a")),
        set(),
    ),
    "a call without a result": (
        "openai",
        chat(assistant_with_calls(("a", "f", "{}")), {"role": "user", "content": "and?"}),
        chat(
            assistant_with_calls(("a", "f", "{}")),
            tool_result("a", "ERROR: there is no result: the call was not run, or its result was lost"),
            {"role": "user", "content": "and?"},
        ),
        {"unanswered_call"},
    ),
    "a result whose call was trimmed away": (
        "openai",
        [tool_result("a", "42", name="f"), {"role": "user", "content": "go"}],
        [{"role": "user", "content": "Result of an earlier call of f:\n42"}, {"role": "user", "content": "go"}],
        {"orphan_result"},
    ),
    "results in another order, behind a user": (
        "openai",
        chat(
            assistant_with_calls(("a", "f", "{}"), ("b", "g", "{}")),
            tool_result("b", "B"),
            {"role": "user", "content": "?"},
            tool_result("a", "A"),
        ),
        chat(
            assistant_with_calls(("a", "f", "{}"), ("b", "g", "{}")),
            tool_result("a", "A"),
            tool_result("b", "B"),
            {"role": "user", "content": "?"},
        ),
        {"moved"},
    ),
    "null content": (
        "llama_cpp",
        chat(assistant_with_calls(("a", "f", "{}"), content=None), tool_result("a")),
        chat(assistant_with_calls(("a", "f", "{}")), tool_result("a")),
        {"content"},
    ),
    "list content of a result": (
        "vllm",
        chat(assistant_with_calls(("a", "f", "{}")), tool_result("a", [{"type": "text", "text": "42"}])),
        chat(assistant_with_calls(("a", "f", "{}")), tool_result("a", "42")),
        {"content"},
    ),
    "arguments as text for Ollama": (
        "ollama",
        chat(assistant_with_calls(("a", "f", '{"x": 1}')), tool_result("a")),
        chat(assistant_with_calls(("a", "f", {"x": 1})), tool_result("a")),
        set(),
    ),
    "thinking must come back to Kimi and is not blank": (
        "kimi",
        chat(assistant_with_calls(("a", "f", "{}")), tool_result("a")),
        chat(assistant_with_calls(("a", "f", "{}"), reasoning_content=" "), tool_result("a")),
        {"reasoning"},
    ),
    "gpt-oss takes text or thinking": (
        "gpt_oss",
        chat(assistant_with_calls(("a", "f", "{}"), content="I look.", reasoning_content="Hm."), tool_result("a")),
        chat(assistant_with_calls(("a", "f", "{}"), thinking="Hm.\nI look."), tool_result("a")),
        {"reasoning"},
    ),
    "OpenAI refuses reasoning": (
        "openai",
        chat(assistant_with_calls(("a", "f", "{}"), reasoning_content="Hm."), tool_result("a")),
        chat(assistant_with_calls(("a", "f", "{}")), tool_result("a")),
        {"reasoning"},
    ),
    "a denied action in Mistral": (
        "mistral",
        chat(
            assistant_with_calls(("abcdefgh1", "f", "{}")), tool_result("abcdefgh1"), {"role": "user", "content": "no!"}
        ),
        chat(
            assistant_with_calls(("abcdefgh1", "f", "{}")),
            tool_result("abcdefgh1"),
            {"role": "assistant", "content": "(The results were seen.)"},
            {"role": "user", "content": "no!"},
        ),
        {"role_order"},
    ),
    "an empty list of calls": (
        "openai",
        chat({"role": "assistant", "content": "hi", "tool_calls": []}),
        chat({"role": "assistant", "content": "hi"}),
        set(),
    ),
    "two system messages": (
        "gemma",
        [{"role": "system", "content": "a"}, {"role": "developer", "content": "b"}, {"role": "user", "content": "go"}],
        [{"role": "system", "content": "a\n\nb"}, {"role": "user", "content": "go"}],
        {"role", "role_order"},
    ),
}


@pytest.mark.parametrize("fault", REPORTED_FAULTS)
def test_reported_history_faults_are_repaired(fault: str) -> None:
    profile, given_history, wanted, kinds = REPORTED_FAULTS[fault]
    fit = sane(given_history, profile=profile)
    assert fit.messages == wanted
    assert {change.kind for change in fit.changes} == kinds


def test_repeated_ids_become_unique_and_can_be_traced() -> None:
    history = chat(
        assistant_with_calls(("t_0", "f", "{}")),
        tool_result("t_0", "one"),
        assistant_with_calls(("t_0", "f", "{}")),
        tool_result("t_0", "two"),
    )
    fit = sane(history)
    first, second = (message["tool_calls"][0]["id"] for message in fit.messages if "tool_calls" in message)
    assert first == "t_0" != second
    assert fit.ids == {second: "t_0"}
    assert [message["content"] for message in fit.messages if message["role"] == "tool"] == ["one", "two"]
    assert sane(history).ids == fit.ids, "another request must say the same, or no cache of a server helps"


LOST = "ERROR: there is no result: the call was not run, or its result was lost"
ONE, TWO, THREE = [("t_0", "f", f'{{"n": {n}}}') for n in (1, 2, 3)]
# (history, the result of each call in order)
SHARED_IDS: dict[str, tuple[list[Any], list[str]]] = {
    "each call has a result": (
        chat(assistant_with_calls(ONE), tool_result("t_0", "1"), assistant_with_calls(TWO), tool_result("t_0", "2")),
        ["1", "2"],
    ),
    "two calls of a message": (
        chat(assistant_with_calls(ONE, TWO), tool_result("t_0", "1"), tool_result("t_0", "2")),
        ["1", "2"],
    ),
    "the earlier call has no result": (
        chat(assistant_with_calls(ONE), assistant_with_calls(TWO), tool_result("t_0", "2")),
        [LOST, "2"],
    ),
    "the later call has no result": (
        chat(assistant_with_calls(ONE), tool_result("t_0", "1"), assistant_with_calls(TWO)),
        ["1", LOST],
    ),
    "the first of three calls has no result": (
        chat(
            assistant_with_calls(ONE),
            assistant_with_calls(TWO),
            tool_result("t_0", "2"),
            assistant_with_calls(THREE),
            tool_result("t_0", "3"),
        ),
        [LOST, "2", "3"],
    ),
    "two calls of a message after a call without a result": (
        chat(
            assistant_with_calls(ONE),
            assistant_with_calls(TWO, THREE),
            tool_result("t_0", "2"),
            tool_result("t_0", "3"),
        ),
        [LOST, "2", "3"],
    ),
}


@pytest.mark.parametrize("case", SHARED_IDS)
def test_a_result_belongs_to_the_newest_message_whose_calls_have_its_id(case: str) -> None:
    history, wanted = SHARED_IDS[case]
    messages = sane(history).messages
    ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    results = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    assert [results[id] for id in ids] == wanted
    assert len(set(ids)) == len(ids) == len(results)


def test_mistral_gets_ids_of_nine_characters() -> None:
    fit = sane(chat(assistant_with_calls(("call_123", "f", "{}")), tool_result("call_123")), profile="mistral")
    (new,) = fit.ids
    assert (len(new), fit.ids[new]) == (9, "call_123")
    assert fit.messages[2]["tool_call_id"] == new


def test_fields_dropped_by_a_client_are_restored_by_call_id() -> None:
    reply = Reply(
        (Reasoning("Hm."), Call("f", id="a")), extras={"a": {"extra_content": {"google": {"thought_signature": "S"}}}}
    )
    kept = kept_of(reply)
    fit = sane(chat(assistant_with_calls(("a", "f", "{}")), tool_result("a")), profile="deepseek", kept=kept)
    assert fit.messages[1]["reasoning_content"] == "Hm."
    assert fit.messages[1]["tool_calls"][0]["extra_content"] == {"google": {"thought_signature": "S"}}
    assert sane(fit.messages, profile="deepseek", kept=kept).changes == ()
    assert kept == {
        "a": KeptFields({"reasoning_content": "Hm."}, {"extra_content": {"google": {"thought_signature": "S"}}})
    }


def test_an_unknown_profile_is_an_error_that_lists_the_profiles() -> None:
    with pytest.raises(CallerError, match=r"unknown history profile 'opnai'.*openai, vllm"):
        sane([], profile="opnai")


texts_of_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
).map(lambda value: json.dumps(value, ensure_ascii=False))
odd_texts = st.sampled_from(
    ['{"a":1e999}', '{"a":NaN}', '{"a":"\\ud800"}', '{"a":1,"a":2}', '{"a":"\t"}', " {}\n", "{}x", '{"a":"\ud800"}']
    + ['{"a":' * depth + "1" + "}" * depth for depth in (199, 200, 201, 3000)]
    + ['{"a":' + "[" * depth + "]" * depth + "}" for depth in (198, 199, 200)]
    + ['{"a":' + "9" * digits + "}" for digits in (30, 5000)]
)


@given(text=texts_of_json | odd_texts)
def test_the_fast_object_check_agrees_with_decoding(text: str) -> None:
    assert is_object_text(text) is isinstance(decode(text, MAX_DEPTH), dict)
