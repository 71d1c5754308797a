"""Reading answers of OpenAI's two APIs: shapes, names and arguments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rightcall import Call, Ids, Reply, Tool
from rightcall.providers.provider_answers import Stream, read, read_all
from rightcall.types import Reasoning, Text
from support.provider_answers import Json, calls, chat, chat_call, codes, item

# -- OpenAI Responses --------------------------------------------------------------------------------------------------


def test_a_bare_responses_item_is_one_call() -> None:
    reply = read(item())
    assert reply.attempts == (Call("f", {"x": 1}, '{"x": 1}', "call_1", '{"x": 1}'),)
    assert reply.format == "responses"


def test_a_whole_responses_answer_gives_text_and_calls_in_order() -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": "Looking."}]}
    reply = read({"output": [message, item("search.docs", {"query": "x"})]})
    assert [type(part) for part in reply.parts] == [Text, Call]
    assert calls(reply) == [("search.docs", {"query": "x"})]


def test_a_list_of_responses_items_is_read_item_by_item() -> None:
    assert calls(read([{"type": "web_search_call"}, item(), item("g", "")])) == [("f", {"x": 1}), ("g", {})]


def test_other_items_and_outputs_are_not_calls() -> None:
    assert calls(read({"output": [{"type": "web_search_call", "name": "f", "arguments": "{}"}]})) == []
    assert calls(read({"object": "response", "output": "f"})) == []


def test_responses_reasoning_summaries_are_read_as_reasoning() -> None:
    summary = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]
    assert read({"output": [{"type": "reasoning", "summary": summary}]}).parts == (Reasoning("a\n\nb"),)


def test_a_custom_call_has_its_text_as_input() -> None:
    custom = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin"}
    assert read(custom).attempts == (Call("patch", {"input": "*** Begin"}, '{"input":"*** Begin"}', "c", "*** Begin"),)


def test_a_custom_chat_call_has_its_text_as_input() -> None:
    entry = {"id": "c", "type": "custom", "custom": {"name": "patch", "input": "{"}}
    assert calls(read(chat(content=None, tool_calls=[entry]))) == [("patch", {"input": "{"})]


MAIL = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}


def read_as_custom_tool(text: str, **options: Any) -> Iterator[Reply]:
    """Yield the replies to calls of the function `mail` as a custom tool, whole and streamed."""
    entry = {"id": "c", "type": "custom", "custom": {"name": "mail", "input": text}}
    item = {"type": "custom_tool_call", "call_id": "c", "name": "mail", "input": text}
    for answer in (chat(content=None, tool_calls=[entry]), {"output": [item]}):
        yield read(answer, tools=[{"name": "mail", "parameters": MAIL}], **options)
        stream = Stream(tools=[{"name": "mail", "parameters": MAIL}], **options)
        stream.feed(answer)
        stream.close()
        yield stream.reply


def test_json_text_of_a_function_called_as_a_custom_tool_is_parsed_as_its_arguments() -> None:
    for reply in read_as_custom_tool('{"to": "a"}'):
        assert calls(reply) == [("mail", {"to": "a"})] and not reply.problems
        assert [(each.rule, each.kind) for each in reply.calls[0].repairs] == [("double_encoded", "exact")]
    for reply in read_as_custom_tool('{"two": "a"}'):
        assert not reply.calls and codes(reply) == ["missing"]
    for reply in read_as_custom_tool('{"to": "a"}', repair="off"):
        assert not reply.calls and codes(reply) == ["arguments_not_object"]


@pytest.mark.parametrize("text", ["a@b.c", '{"to": "a"', '["a"]', '"a"', "x" * 9_999])
def test_a_function_called_as_a_custom_tool_is_reported_with_its_text(text: str) -> None:
    for reply in read_as_custom_tool(text):
        (problem,) = reply.problems
        assert not reply.calls and reply.attempts[0].raw == text
        assert problem.code == "arguments_not_object" and "custom tool" in problem.message
        assert text[:100] in problem.message and len(problem.message) < 500


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool_use", "id": "c", "name": "mail", "input": {"to": "a"}},
        {"type": "tool_call", "id": "c", "name": "mail", "arguments": '{"to": "a"}'},
        {"type": "function_call", "call_id": "c", "name": "mail", "arguments": '{"to": "a"}'},
        {"type": "function", "id": "c", "function": {"name": "mail", "arguments": '{"to": "a"}'}},
    ],
)
def test_a_call_among_the_parts_of_a_chat_message_is_read_once(part: dict[str, Any]) -> None:
    parts = [{"type": "text", "text": "Yes."}, part]
    beside = {"id": "c", "type": "function", "function": {"name": "mail", "arguments": '{"to": "a"}'}}
    for message in (chat(content=parts), chat(content=parts, tool_calls=[beside])):
        reply = read(message, api="chat")
        assert (reply.content, calls(reply)) == ("Yes.", [("mail", {"to": "a"})])


# -- OpenAI chat -------------------------------------------------------------------------------------------------------


def test_a_chat_completion_gives_its_calls() -> None:
    reply = read(chat(content=None, tool_calls=[chat_call()]))
    assert reply == Reply(
        (Call("f", {"x": 1}, '{"x": 1}', "call_1", '{"x": 1}'),), (), "chat", finish="tool_calls", api="chat"
    )


@pytest.mark.parametrize("wrap", [lambda m: m, lambda m: m["tool_calls"], lambda m: m["tool_calls"][0]])
def test_a_message_a_call_list_and_a_single_call_give_the_same_calls(wrap: Any) -> None:
    assert calls(read(wrap({"role": "assistant", "tool_calls": [chat_call()]}))) == [("f", {"x": 1})]


def test_a_single_call_in_place_of_a_list_is_read() -> None:
    assert calls(read(chat(content="", tool_calls=chat_call()))) == [("f", {"x": 1})]


@pytest.mark.parametrize("nothing", [None, "f", [], 5])
def test_tool_calls_of_another_type_are_ignored(nothing: Any) -> None:
    assert read(chat("stop", content="Hi", tool_calls=nothing)) == Reply(
        (Text("Hi"),), (), "chat", finish="stop", api="chat"
    )


def test_choices_of_another_type_are_reported() -> None:
    assert codes(read({"choices": {"message": {}}})) == ["malformed_response"]


def test_an_entry_that_is_not_an_object_is_reported_and_other_entries_are_read() -> None:
    reply = read(chat(tool_calls=["f", chat_call()]))
    assert codes(reply) == ["call_not_object"] and calls(reply) == [("f", {"x": 1})]


@pytest.mark.parametrize("entry", [{"id": "a"}, {"id": "a", "function": "f"}, {"id": "a", "function": None}])
def test_an_entry_without_its_function_becomes_a_rejected_call(entry: Json) -> None:
    reply = read([entry, chat_call()], api="chat")
    assert reply.problems[0].code == "missing_function" and reply.problems[0].call == 0
    assert [call.complete for call in reply.attempts] == [False, True] and reply.attempts[0].id == "a"


@pytest.mark.parametrize("name", [None, 5, "", "  ", "bad/name", "a b"])
def test_a_call_with_an_invalid_name_is_rejected(name: Any) -> None:
    reply = read(chat(tool_calls=[chat_call(name)]))
    assert codes(reply) == ["invalid_name"] and reply.attempts[0].arguments == {"x": 1}


def test_a_name_may_hold_dots_and_dashes() -> None:
    assert codes(read(chat(tool_calls=[chat_call("search.docs-v2_x")]))) == []


def test_a_call_of_an_undeclared_tool_is_rejected() -> None:
    reply = read(chat(tool_calls=[chat_call("get_wether")]), tools=[Tool(name="get_weather")])
    assert codes(reply) == ["unknown_tool"] and "get_weather" in reply.problems[0].message
    assert codes(read(chat(tool_calls=[chat_call()]), tools=())) == ["unknown_tool"]


def test_read_merges_all_choices_and_read_all_keeps_them_apart() -> None:
    both = {
        "choices": [*chat(tool_calls=[chat_call()])["choices"], *chat(tool_calls=[chat_call("bad/name")])["choices"]]
    }
    merged, apart = read(both), read_all(both)
    assert [call.name for call in merged.attempts] == ["f", "bad/name"]
    assert [call.id for call in merged.attempts] == ["call_1", "call_1_dup_1"]
    assert merged.problems[0].call == 1 and apart[1].problems[0].call == 0
    assert [[call.name for call in reply.attempts] for reply in apart] == [["f"], ["bad/name"]]


def test_the_legacy_function_call_is_read() -> None:
    reply = read(chat(content=None, function_call={"name": "f", "arguments": "{}"}), ids=Ids.numbered("n"))
    assert calls(reply) == [("f", {})] and reply.attempts[0].id == "n_0_0"


def test_a_legacy_call_that_repeats_a_tool_call_is_read_once() -> None:
    legacy = {"name": "f", "arguments": '{"x": 1}'}
    assert len(read(chat(tool_calls=[chat_call()], function_call=legacy)).attempts) == 1


@pytest.mark.parametrize(
    "message",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"reasoning_content": "hm", "reasoning": "hm"},
        {"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"reasoning_details": [{"type": "reasoning.summary", "summary": "h"}, {"type": "reasoning.text", "text": "m"}]},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "Hi"},
            ]
        },
    ],
)
def test_reasoning_is_read_once_under_every_name(message: Json) -> None:
    reply = read(chat("stop", **{"content": "Hi", **message}), api="chat")
    assert reply.parts == (Reasoning("hm"), Text("Hi"))


def test_content_parts_and_refusals_are_read_as_text() -> None:
    parts = [{"type": "text", "text": "No"}, {"type": "refusal", "refusal": ", sorry"}, {"type": "image_url"}]
    assert read(chat("stop", content=parts)).content == "No, sorry"
    assert read(chat("stop", content=None, refusal="I cannot.")).content == "I cannot."
    refusal = {"type": "message", "content": [{"type": "refusal", "refusal": "I cannot."}]}
    assert read({"output": [refusal]}).content == "I cannot."


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "thinking"])
def test_chat_reasoning_is_read_under_every_server_key(key: str) -> None:
    reply = read(chat(content="Hi", **{key: "Hm."}))
    assert (reply.reasoning, reply.content) == ("Hm.", "Hi")


# -- arguments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", [None, "", "  ", "\n"])
def test_empty_arguments_are_an_empty_object(nothing: Any) -> None:
    reply = read(chat(tool_calls=[chat_call(arguments=nothing)]))
    assert reply.attempts[0].arguments == {} and reply.attempts[0].json == "{}" and not reply.problems


def test_absent_arguments_are_an_empty_object() -> None:
    assert calls(read([{"function": {"name": "f"}}])) == [("f", {})]
    assert calls(read({"type": "function_call", "name": "f"})) == [("f", {})]


def test_argument_text_is_preserved_exactly() -> None:
    sent = ' {"n": 12345678901234567890123, "f": 1.0e2}'
    call = read(chat(tool_calls=[chat_call(arguments=sent)])).attempts[0]
    assert call.json == call.raw == sent and call.arguments["n"] == 12345678901234567890123


@pytest.mark.parametrize("sent, text", [("[1]", "[1]"), (5, "5"), ([1], "[1]"), (True, "true")])
def test_arguments_that_are_not_an_object_are_kept_as_text_and_rejected(sent: Any, text: str) -> None:
    reply = read(chat(tool_calls=[chat_call(arguments=sent)]), repair="off")
    assert codes(reply) == ["arguments_not_object"]
    assert reply.attempts[0].json == reply.attempts[0].raw == text and reply.attempts[0].arguments == {}


def test_arguments_given_as_an_object_are_used_unchanged() -> None:
    call = read(chat(tool_calls=[chat_call(arguments={"x": 1})])).attempts[0]
    assert call.arguments == {"x": 1} and call.raw == '{"x":1}'


def test_invalid_json_arguments_are_a_problem_of_one_call_only() -> None:
    reply = read(chat(tool_calls=[chat_call(arguments="{not json}"), chat_call(id="b")]), repair="off")
    assert [(problem.code, problem.call) for problem in reply.problems] == [("invalid_json", 0)]
    assert [call.complete for call in reply.attempts] == [False, True] and reply.attempts[0].raw == "{not json}"


@pytest.mark.parametrize("finish", ["length", "stop", "tool_calls"])
@pytest.mark.parametrize("cut", ['{"x": "ab', '{"x": 1', "{", '{"x": [1, {"y": tr', "{'x': 'ab"])
def test_incomplete_arguments_are_truncated_for_every_finish_reason(cut: str, finish: str) -> None:
    reply = read(chat(finish, tool_calls=[chat_call(arguments=cut)]), repair="lenient")
    assert codes(reply) == ["truncated"]
    assert not reply.attempts[0].complete and reply.attempts[0].arguments == {} and reply.attempts[0].raw == cut


def test_complete_arguments_are_accepted_when_a_limit_ends_the_answer() -> None:
    assert read(chat("length", tool_calls=[chat_call()])).attempts[0].complete


def test_a_call_without_arguments_at_the_limit_is_truncated() -> None:
    reply = read(chat("length", tool_calls=[chat_call(), chat_call(arguments="", id="b")]))
    assert codes(reply) == ["truncated"] and [call.complete for call in reply.attempts] == [True, False]


CUT = ["length", "content_filter", "error", "max_tokens", "refusal"]


@pytest.mark.parametrize("finish", CUT)
@pytest.mark.parametrize(
    "text", ["", " ", "null", "tr", '"{', "city=Oslo", '{"x": 1', "{'x': 1", "{'x': {'y': 1}", "{'x': 1}"]
)
def test_the_last_call_of_a_cut_answer_is_never_completed(finish: str, text: str) -> None:
    sent = chat(finish, tool_calls=[chat_call(), chat_call(arguments=text, id="b")])
    for policy in ("off", "safe", "lenient"):
        reply = read(sent, repair=policy)
        assert [call.ok for call in reply.attempts] == [True, False] and codes(reply) == ["truncated"]


@pytest.mark.parametrize("finish", CUT)
@pytest.mark.parametrize("text", ['{"x": 1}', "{}", "{}{}{}", '{"x": 1}{"x": 1}', ' {"x": {"y": [1]}}\n'])
def test_a_call_completed_before_truncation_is_kept(finish: str, text: str) -> None:
    assert len(read(chat(finish, tool_calls=[chat_call(arguments=text)])).calls) == 1


def test_a_cut_answer_yields_no_call_from_its_reasoning() -> None:
    thought = 'So: <tool_call>{"name": "f", "arguments": {}}</tool_call>'
    assert len(read(chat("stop", reasoning_content=thought), tools=[Tool(name="f")]).calls) == 1
    assert read(chat("length", reasoning_content=thought), tools=[Tool(name="f")]).attempts == ()
    more = thought + " No, I must not."
    assert read(chat("stop", reasoning_content=more), tools=[Tool(name="f")]).attempts == ()


ENDINGS: dict[str, tuple[Json, str | None, Json | None]] = {
    "chat": ({**chat("stop", content="Hi"), "usage": {"total_tokens": 3, "x": None}}, "stop", {"total_tokens": 3}),
    "another word": (chat("pause_turn", content="Hi"), "pause_turn", None),
    "a message": ({"role": "assistant", "content": "Hi"}, None, None),
    "responses": (
        {"object": "response", "output": [], "status": "completed", "usage": {"input_tokens": 1}},
        "stop",
        {"input_tokens": 1},
    ),
    "responses, cut": (
        {
            "object": "response",
            "output": [],
            "status": "incomplete",
            "incomplete_details": {"reason": "content_filter"},
        },
        "content_filter",
        None,
    ),
    "messages": (
        {
            "type": "message",
            "role": "assistant",
            "content": [],
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 2},
        },
        "tool_calls",
        {"input_tokens": 2},
    ),
    "gemini": (
        {
            "candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "SAFETY"}],
            "usageMetadata": {"totalTokenCount": 4},
        },
        "content_filter",
        {"totalTokenCount": 4},
    ),
    "ollama": (
        {"model": "m", "message": {"role": "assistant", "content": "Hi"}, "done": True, "eval_count": 5},
        "stop",
        {"eval_count": 5},
    ),
    "an error": ({"error": {"message": "no"}}, "error", None),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_finish_reason_and_usage_have_one_shape_for_all_apis(name: str) -> None:
    response, finish, usage = ENDINGS[name]
    for reply in (read(response), *read_all(response), read(json.dumps(response))):
        assert (reply.finish, reply.usage) == (finish, usage)
    stream = Stream()
    stream.feed(response)
    stream.close()
    assert (stream.reply.finish, stream.reply.usage) == (finish, usage)


def test_the_merged_finish_reason_is_that_of_the_cut_choice() -> None:
    two = chat("stop", content="a")
    two["choices"].append({**chat("length", content="b")["choices"][0], "index": 1})
    assert read(two).finish == "length" and [reply.finish for reply in read_all(two)] == ["stop", "length"]


def test_too_deep_or_too_large_arguments_are_reported() -> None:
    deep = '{"a":' * 300 + "1" + "}" * 300
    assert codes(read(chat(tool_calls=[chat_call(arguments=deep)]))) == ["too_deep"]
    long = json.dumps({"a": "x" * 4_000_001})
    assert codes(read(chat(tool_calls=[chat_call(arguments=long)]))) == ["too_large"]


def test_calls_beyond_the_limit_are_text() -> None:
    reply = read(chat(tool_calls=[chat_call(id=f"c{i}") for i in range(258)]))
    assert len(reply.attempts) == 256 and codes(reply) == ["too_large"] and reply.content.count("f(") == 2
