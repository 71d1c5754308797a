"""JSON bodies between Hermes tags: what is parsed, what is held back while streaming, and the code of each mistake.

Bodies are read with and without line breaks around them, under every chunking. Repair is off unless stated otherwise.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from rightcall import Call, CallStart, Parser, Reasoning, Recast, Reply, Text, parse, render
from rightcall.types import Part
from support.cuts import Setting, hold_of_every_cut
from support.cuts import read as read_chunks
from support.replies import args, codes, is_kept
from support.replies import hermes as body

OFF = Setting("hermes", repair="off")


def read(text: str) -> Reply:
    return hold_of_every_cut(text, OFF)


def read_body(inside: str) -> Reply:
    """Return the reply for a body, which is the same with and without line breaks around it."""
    reply = read(body(inside))
    tight = read(f"<tool_call>{inside}</tool_call>")
    assert (tight.parts, tight.problems) == (reply.parts, reply.problems)
    return reply


def problem_keys(reply: Reply) -> list[tuple[str, bool, int | None]]:
    return [(problem.code, problem.blocking, problem.call) for problem in reply.problems]


def test_a_clean_body_is_one_call() -> None:
    reply = read_body('{"name":"f","arguments":{"k":1}}')
    assert args(reply) == [("f", {"k": 1})]
    assert (reply.attempts[0].json, reply.content, reply.problems) == ('{"k":1}', "", ())
    reply = read(f'Before\n{body("""{"name":"f","arguments":{"k":1}}""")}\nafter')
    assert [type(part) for part in reply.parts] == [Text, Call, Text]
    assert reply.content == "Before\nafter"


@pytest.mark.parametrize("rest", ["", ',"arguments":null', ',"arguments":""', ',"arguments":"  "'])
def test_absent_null_and_blank_arguments_are_an_empty_object(rest: str) -> None:
    reply = read_body(f'{{"name":"f"{rest}}}')
    assert args(reply) == [("f", {})]
    assert (reply.attempts[0].json, reply.problems) == ("{}", ())


@pytest.mark.parametrize("extra", ["}", "}}", "}}}"])
def test_extra_closing_braces_keep_the_call_and_are_reported(extra: str) -> None:
    """With repair they are removed, with a receipt."""
    inside = '{"name":"f","arguments":{}}'
    reply = read_body(inside + extra)
    assert args(reply) == [("f", {})]
    assert reply.attempts[0].complete
    assert problem_keys(reply) == [("trailing_content", True, 0)]
    repaired = hold_of_every_cut(body(inside + extra), Setting("hermes"))
    assert (args(repaired), repaired.problems, repaired.content) == ([("f", {})], (), "")
    assert [(r.rule, r.kind, r.before, r.after) for r in repaired.attempts[0].repairs] == [
        ("extra_closer", "exact", extra, "")
    ]


def test_a_name_inside_the_arguments_is_not_used_without_repair() -> None:
    reply = read_body('{"arguments":{"command":"ls","name":"bash"}}')
    assert args(reply) == [("", {"command": "ls", "name": "bash"})]
    assert problem_keys(reply) == [("invalid_name", True, 0)]


@pytest.mark.parametrize("arguments", [{"command": "ls"}, {"path": "/x"}])
def test_a_body_without_a_name_keeps_the_call_and_blocks_it(arguments: dict[str, Any]) -> None:
    inside = json.dumps({"arguments": arguments})
    reply = read_body(inside)
    assert args(reply) == [("", arguments)]
    assert reply.attempts[0].raw == inside
    assert problem_keys(reply) == [("invalid_name", True, 0)]


@pytest.mark.parametrize("name", ["", "  "])
def test_a_blank_name_keeps_the_call_and_blocks_it(name: str) -> None:
    reply = read_body(f'{{"name":"{name}","arguments":{{}}}}')
    assert len(reply.attempts) == 1
    assert problem_keys(reply) == [("invalid_name", True, 0)]


@pytest.mark.parametrize("name", ["get weather", "a/b"])
def test_a_name_with_inner_blanks_keeps_the_call_and_blocks_it(name: str) -> None:
    reply = read_body(f'{{"name":"{name}","arguments":{{"a":1}}}}')
    assert args(reply) == [(name, {"a": 1})]
    assert problem_keys(reply) == [("invalid_name", True, 0)]
    assert read_body('{"name":"search.docs","arguments":{"a":1}}').problems == ()


def test_arguments_sent_as_a_json_string_are_kept_as_text_without_repair() -> None:
    """With repair they are decoded, with a receipt."""
    sent = '"{\\"k\\":1}"'
    inside = f'{{"name":"f","arguments":{sent}}}'
    reply = read_body(inside)
    assert args(reply) == [("f", {})]
    assert reply.attempts[0].json == sent
    assert problem_keys(reply) == [("arguments_not_object", True, 0)]
    repaired = hold_of_every_cut(body(inside), Setting("hermes"))
    assert (args(repaired), repaired.attempts[0].json, repaired.problems) == ([("f", {"k": 1})], '{"k":1}', ())
    assert [(r.rule, r.before, r.after) for r in repaired.attempts[0].repairs] == [("double_encoded", sent, '{"k":1}')]


@pytest.mark.parametrize("sent", ["[1]", "5", "true", '"x"'])
def test_arguments_that_are_not_an_object_are_kept_as_text(sent: str) -> None:
    reply = read_body(f'{{"name":"f","arguments":{sent}}}')
    assert args(reply) == [("f", {})]
    assert reply.attempts[0].json == sent
    assert problem_keys(reply) == [("arguments_not_object", True, 0)]


@pytest.mark.parametrize(
    "text, content",
    [
        ("<tool_call></tool_call>", ""),
        ("<tool_call>\n</tool_call>", ""),
        ("a<tool_call></tool_call>b", "a\nb"),
    ],
)
def test_an_empty_body_is_ignored(text: str, content: str) -> None:
    reply = read(text)
    assert (reply.attempts, codes(reply)) == ((), ["opener_without_call"])
    assert not reply.problems[0].blocking and reply.content.split() == content.split()


@pytest.mark.parametrize("rest", ['{"k":1', '{"k":"v', '{"k":1}'])
def test_a_truncated_body_is_never_completed(rest: str) -> None:
    inside = f'{{"name":"f","arguments":{rest}'
    reply = read(f"<tool_call>\n{inside}")
    assert problem_keys(reply) == [("truncated", True, 0)]
    [call] = reply.attempts
    assert (call.name, call.arguments, call.complete, call.raw) == ("f", {}, False, inside)


def test_a_body_truncated_before_its_name_is_kept_and_rejected() -> None:
    reply = read('<tool_call>\n{"na')
    assert "truncated" in [problem.code for problem in reply.problems]
    assert not any(call.complete for call in reply.attempts)
    assert is_kept(reply, '{"na')


def test_a_whole_body_without_its_close_tag_is_kept_and_reported_as_truncated() -> None:
    """Servers that stop at the closing tag never send it: the note does not block the call."""
    reply = read('<tool_call>\n{"name":"f","arguments":{"k":1}}')
    assert args(reply) == [("f", {"k": 1})]
    assert reply.attempts[0].complete
    assert problem_keys(reply) == [("unclosed", False, None)]


def test_a_bad_first_block_does_not_hide_the_second() -> None:
    reply = read('<tool_call>{bad}</tool_call><tool_call>{"name":"f"}</tool_call>')
    bad, good = reply.attempts
    assert (good.name, good.arguments, good.complete) == ("f", {}, True)
    assert (bad.complete, bad.arguments, bad.raw) == (False, {}, "{bad}")
    assert {problem.call for problem in reply.problems if problem.blocking} == {0}
    assert "invalid_json" in [problem.code for problem in reply.problems]


def test_one_character_at_a_time_gives_the_same_reply() -> None:
    first, second = (body(f'{{"name":"{name}","arguments":{{"x":"y"}}}}') for name in "fg")
    text = f"Hi\n{first}\nthen\n{second}\nbye"
    reply = read_chunks(list(text), OFF).reply
    assert reply == read_chunks([text], OFF).reply
    assert [type(part) for part in reply.parts] == [Text, Call, Text, Call, Text]
    assert reply.content == "Hi\nthen\nbye"


def test_only_text_that_may_start_a_marker_is_held_back() -> None:
    parser = Parser("hermes")
    assert parser.feed("Hello <tool") == [Text("Hello")]
    rest = [*parser.feed("box> x"), *parser.close()]
    assert "".join([event.text for event in rest if isinstance(event, Text)]) == " <toolbox> x"
    assert parser.reply.parts == (Text("Hello <toolbox> x"),)
    assert parser.reply.problems == ()


def test_calls_are_numbered_in_the_order_written() -> None:
    text = "\nand\n".join(body(f'{{"name":"{name}"}}') for name in "fgh")
    starts = [event for event in read_chunks([text], OFF).events if isinstance(event, CallStart)]
    assert [(start.index, start.name) for start in starts] == [(0, "f"), (1, "g"), (2, "h")]


def test_a_think_block_is_reasoning() -> None:
    call = body('{"name":"f"}')
    for text, names in (("<think>plan</think>answer", []), (f"<think>plan</think>answer\n{call}", ["f"])):
        reply = read(text)
        assert (reply.reasoning, reply.content) == ("plan", "answer")
        assert [c.name for c in reply.attempts] == names
    split = read_chunks(["<think>plan</th", "ink>answer"], OFF).reply
    assert split.parts == (Reasoning("plan"), Text("answer"))


@pytest.mark.parametrize("text", ["<think></think>hi", "<think>\n\n</think>\n\nhi"])
def test_an_empty_think_block_is_ignored(text: str) -> None:
    assert read(text).parts == (Text("hi"),)


def test_an_open_think_block_is_reasoning_at_the_end() -> None:
    assert read("<think>abc").parts == (Reasoning("abc"),)


def test_a_think_close_without_opener_makes_the_text_before_it_reasoning() -> None:
    assert read("plan</think>answer").parts == (Reasoning("plan"), Text("answer"))
    parser = Parser("hermes")
    events = [*parser.feed("plan"), *parser.feed("</think>answer"), *parser.close()]
    assert events == [Text("plan"), Recast(4, "reasoning"), Text("answer")]


def test_a_rendered_call_has_the_hermes_shape_and_parses_back() -> None:
    parts: list[Part] = [Text("Hi"), Call("f", {"x": 1}, '{"x": 1}')]
    text = render(parts, format="hermes")
    assert text == 'Hi\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
    back = parse(text, format="hermes")
    assert back.parts[0] == Text("Hi")
    assert args(back) == [("f", {"x": 1})]
