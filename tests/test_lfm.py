"""Pythonic calls between the LFM markers: the parsed calls, and the problem code of each mistake.

A block is the text between `<|tool_call_start|>` and `<|tool_call_end|>`. Every text is read under every chunking.
Repair is off, so the tests check the parser alone.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from rightcall import Call, Problem, Reply, Text, detect
from support.replies import args, codes, is_kept, notes, runnable, wrong
from support.replies import read as read_under_every_cut

START, END = "<|tool_call_start|>", "<|tool_call_end|>"


def block(inside: str) -> str:
    return START + inside + END


def read(text: str) -> Reply:
    return read_under_every_cut(text, "lfm2", None, repair="off")


def assert_calls(inside: str, *calls: tuple[str, dict[str, Any]]) -> Reply:
    reply = read(block(inside))
    assert args(reply) == list(calls)
    assert wrong(reply) == [] and not (calls and notes(reply))
    assert all(call.complete and json.loads(call.json) == call.arguments for call in reply.attempts)
    assert reply.content == ""
    return reply


def assert_problem(code: str, inside: str, *, name: str | None = None) -> Problem:
    """Assert that no call is runnable, that one blocking problem gives the reason, and that the text is kept."""
    reply = read(block(inside))
    assert codes(reply) == [code]
    assert runnable(reply) == []
    assert is_kept(reply, inside.strip().removeprefix("[").removesuffix("]").strip())
    [problem] = reply.problems
    assert problem.blocking
    if name is not None:
        assert [call.name for call in reply.attempts] == [name]
        assert problem.call == 0
    return problem


# -- detection ---------------------------------------------------------------------------------------------------------


def test_plain_text_is_detected_as_no_format() -> None:
    assert detect("hello world") == []


def test_the_start_marker_is_detected_as_lfm2() -> None:
    assert detect(block("[get_weather(city='Berlin')]"))[0] == "lfm2"


# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["The weather in Berlin is sunny.", "  two blanks, and a line break\n", ""])
def test_plain_text_has_no_calls_and_is_kept_exactly(text: str) -> None:
    reply = read(text)
    assert (args(reply), reply.problems, reply.content) == ([], (), text)


def test_a_call_with_one_string_argument_is_read() -> None:
    assert_calls("[get_weather(city='Berlin')]", ("get_weather", {"city": "Berlin"}))


def test_several_arguments_of_one_call_are_read() -> None:
    assert_calls("[search(query='rust async', limit=10)]", ("search", {"query": "rust async", "limit": 10}))


def test_a_call_without_arguments_has_an_empty_object() -> None:
    assert_calls("[list_tools()]", ("list_tools", {}))


def test_two_calls_in_one_block_are_read_in_order() -> None:
    assert_calls(
        "[get_weather(city='Berlin'), get_time(zone='UTC')]",
        ("get_weather", {"city": "Berlin"}),
        ("get_time", {"zone": "UTC"}),
    )


def test_two_blocks_are_read_and_the_text_between_them_is_kept() -> None:
    reply = read(f"{block('[step_one(x=1)]')} some text {block('[step_two(y=2)]')}")
    assert args(reply) == [("step_one", {"x": 1}), ("step_two", {"y": 2})]
    assert [type(part) for part in reply.parts] == [Call, Text, Call]
    assert reply.content == "some text"
    assert reply.problems == ()


def test_a_block_without_brackets_is_read() -> None:
    assert_calls("ping(target='8.8.8.8')", ("ping", {"target": "8.8.8.8"}))


def test_an_integer_stays_an_integer() -> None:
    reply = assert_calls("[set_limit(n=42)]", ("set_limit", {"n": 42}))
    assert type(reply.attempts[0].arguments["n"]) is int


def test_a_float_keeps_its_value_and_spelling() -> None:
    assert_calls("[set_temp(t=0.7)]", ("set_temp", {"t": 0.7}))
    reply = assert_calls("[set_temp(t=1.50)]", ("set_temp", {"t": 1.5}))
    assert "1.50" in reply.attempts[0].json


def test_python_booleans_become_booleans() -> None:
    assert_calls("[configure(verbose=True, strict=False)]", ("configure", {"verbose": True, "strict": False}))


def test_none_becomes_null() -> None:
    assert_calls("[reset(ctx=None)]", ("reset", {"ctx": None}))


def test_a_double_quoted_string_is_read() -> None:
    assert_calls('[greet(name="world")]', ("greet", {"name": "world"}))


def test_nested_lists_and_objects_are_read() -> None:
    assert_calls(
        "[plan(items=['a,b', 'c'], meta={'city': 'Berlin', 'coords': [52.52, 13.405], 'active': True})]",
        ("plan", {"items": ["a,b", "c"], "meta": {"city": "Berlin", "coords": [52.52, 13.405], "active": True}}),
    )


def test_a_comma_inside_parentheses_does_not_split_calls() -> None:
    assert_calls("[fn(a=1, b=2), fn2(c=3)]", ("fn", {"a": 1, "b": 2}), ("fn2", {"c": 3}))


def test_a_comma_inside_quotes_does_not_split_arguments() -> None:
    assert_calls("[f(a='x,y', b=2)]", ("f", {"a": "x,y", "b": 2}))


def test_a_comma_inside_a_list_or_an_object_does_not_split_arguments() -> None:
    assert_calls("[f(a=[1, 2], b={'x': 'y,z'}, c=3)]", ("f", {"a": [1, 2], "b": {"x": "y,z"}, "c": 3}))


def test_a_colon_inside_a_key_does_not_split_the_entry() -> None:
    assert_calls("""[f(a={'x:y': 1, "p:q": {'r': 'a:b'}})]""", ("f", {"a": {"x:y": 1, "p:q": {"r": "a:b"}}}))


@pytest.mark.parametrize("inside", ["", "  ", "[]", "[ ]"])
def test_an_empty_block_has_no_calls(inside: str) -> None:
    assert_calls(inside)


def test_empty_parts_between_calls_are_skipped() -> None:
    assert_calls("[a(), , b(),]", ("a", {}), ("b", {}))


def test_blanks_around_a_name_are_dropped() -> None:
    assert_calls("[ f (a=1) ]", ("f", {"a": 1}))


def test_a_closing_parenthesis_inside_a_string_does_not_close_the_call() -> None:
    assert_calls("[f(s='a)b')]", ("f", {"s": "a)b"}))


def test_an_end_marker_inside_a_string_does_not_close_the_block() -> None:
    assert_calls(f"[f(s='a{END}b')]", ("f", {"s": f"a{END}b"}))


def test_a_name_may_hold_dots_dashes_and_underscores() -> None:
    assert_calls("[search.docs-v2_x(a=1)]", ("search.docs-v2_x", {"a": 1}))


def test_argument_names_may_hold_dashes_and_dots() -> None:
    assert_calls("[f(a-b=1, c.d=2)]", ("f", {"a-b": 1, "c.d": 2}))


def test_an_equals_sign_in_a_value_is_kept_and_a_missing_value_is_an_empty_string() -> None:
    assert_calls("[f(a='b=c', d=)]", ("f", {"a": "b=c", "d": ""}))


def test_empty_parts_between_arguments_are_skipped() -> None:
    assert_calls("[f(a=1,,b=2,)]", ("f", {"a": 1, "b": 2}))


def test_lower_case_true_and_false_are_booleans() -> None:
    assert_calls("[f(a=true, b=false)]", ("f", {"a": True, "b": False}))


def test_lower_case_null_is_null() -> None:
    assert_calls("[f(a=null)]", ("f", {"a": None}))


def test_python_escapes_are_read() -> None:
    assert_calls(
        r"""[f(a='x\ny', b="t\tt", c='\\', d='\u00e9', e='\x41')]""",
        ("f", {"a": "x\ny", "b": "t\tt", "c": "\\", "d": "é", "e": "A"}),
    )


def test_escaped_quotes_are_read() -> None:
    assert_calls(r"""[f(a='it\'s', b="say \"hi\"", c='\"')]""", ("f", {"a": "it's", "b": 'say "hi"', "c": '"'}))


def test_integers_beyond_64_bits_stay_exact() -> None:
    n, m = 9223372036854775808, -123456789012345678901234567890
    reply = assert_calls(f"[f(n={n}, m={m})]", ("f", {"n": n, "m": m}))
    assert str(n) in reply.attempts[0].json and str(m) in reply.attempts[0].json


def test_a_number_may_carry_a_plus_sign() -> None:
    assert_calls("[f(a=+5)]", ("f", {"a": 5}))


def test_a_bare_word_is_a_string() -> None:
    assert_calls("[f(a=hello, b=two words, c=TRUE)]", ("f", {"a": "hello", "b": "two words", "c": "TRUE"}))


def test_empty_items_of_a_list_are_skipped() -> None:
    assert_calls("[f(x=[1,,2,], y=[])]", ("f", {"x": [1, 2], "y": []}))


def test_an_object_key_may_be_a_bare_word() -> None:
    assert_calls("[f(x={city: 'B', 'n': [1,,2]})]", ("f", {"x": {"city": "B", "n": [1, 2]}}))


# -- problems ----------------------------------------------------------------------------------------------------------


def test_a_complete_call_without_its_end_marker_is_runnable_with_a_note() -> None:
    """The missing marker is reported by a problem that does not block the call."""
    reply = read(f"{START}[get_weather(city='Berlin')]")
    assert args(reply) == [("get_weather", {"city": "Berlin"})]
    assert [(problem.code, problem.blocking) for problem in reply.problems] == [("unclosed", False)]
    assert len(runnable(reply)) == 1


@pytest.mark.parametrize("inside", ["[get_weather(city='Ber", "[get_weather(city='Berlin'", "[get_weather("])
def test_a_truncated_call_is_never_completed(inside: str) -> None:
    reply = read(START + inside)
    assert codes(reply) == ["truncated"]
    assert reply.problems[0].blocking and reply.problems[0].call == 0
    [call] = reply.attempts
    assert (call.name, call.arguments, call.complete) == ("get_weather", {}, False)
    assert call.raw == inside.removeprefix("[")


def test_a_truncated_name_is_kept_and_never_runnable() -> None:
    reply = read(f"{START}[get_wea")
    assert "truncated" in codes(reply)
    assert runnable(reply) == []
    assert is_kept(reply, "get_wea")


def test_a_bad_call_does_not_affect_its_siblings_and_the_text() -> None:
    reply = read(f"Hi {block('[good(a=1), bad(1), fine(b=2)]')} bye")
    assert [call.name for call in reply.attempts] == ["good", "bad", "fine"]
    assert runnable(reply) == [("good", {"a": 1}), ("fine", {"b": 2})]
    assert [(problem.code, problem.call) for problem in reply.problems] == [("positional_argument", 1)]
    assert reply.content == "Hi\nbye"


def test_a_name_without_a_parenthesis_is_reported() -> None:
    reply = read(block("[not_a_call]"))
    assert "invalid_call" in codes(reply)
    assert runnable(reply) == []
    assert is_kept(reply, "not_a_call")


@pytest.mark.parametrize("inside", ["[(a=1)]", "[ (a=1)]"])
def test_a_call_with_an_empty_name_is_reported(inside: str) -> None:
    assert_problem("invalid_name", inside, name="")
    assert args(read(block(inside))) == [("", {"a": 1})]


def test_a_name_with_a_slash_keeps_the_call_and_rejects_it() -> None:
    assert_problem("invalid_name", "[bad/name(arg=1)]", name="bad/name")
    [call] = read(block("[bad/name(arg=1)]")).attempts
    assert call.complete and call.arguments == {"arg": 1}


@pytest.mark.parametrize("inside", ["[f(a=1]", "f(a=1"])
def test_a_call_whose_parenthesis_is_never_closed_is_reported(inside: str) -> None:
    assert_problem("invalid_call", inside, name="f")


def test_content_after_the_closing_parenthesis_is_reported() -> None:
    assert_problem("trailing_content", "[fn(arg=1) extra]", name="fn")
    assert is_kept(read(block("[fn(arg=1) extra]")), "extra")


def test_a_second_list_in_a_block_is_trailing_content() -> None:
    reply = read(block("[a()], [b()]"))
    assert codes(reply) == ["trailing_content"]
    assert args(reply)[0] == ("a", {})
    assert is_kept(reply, "[b()]") or args(reply)[1:] == [("b", {})]


@pytest.mark.parametrize("inside, name", [("[fn(badarg)]", "fn"), ("[f(1)]", "f"), ("[f('x')]", "f")])
def test_a_positional_argument_is_reported(inside: str, name: str) -> None:
    assert_problem("positional_argument", inside, name=name)


def test_an_empty_argument_name_is_reported() -> None:
    assert_problem("invalid_argument_name", "[fn(=1)]", name="fn")


@pytest.mark.parametrize("inside", ["[f(bad/key=1)]", "[f(two words=1)]"])
def test_an_argument_name_with_a_slash_is_reported(inside: str) -> None:
    assert_problem("invalid_argument_name", inside, name="f")


def test_an_argument_given_twice_is_reported() -> None:
    assert_problem("duplicate_argument", "[fn(city='Berlin', city='Paris')]", name="fn")


@pytest.mark.parametrize("inside", ["[f(a='x)]", '[f(a="x)]'])
def test_a_string_that_is_not_closed_is_reported(inside: str) -> None:
    problem = assert_problem("unterminated_string", inside, name="f")
    assert problem.call == 0
    assert not read(block(inside)).attempts[0].complete


def test_a_list_that_is_not_closed_is_reported() -> None:
    assert_problem("invalid_value", "[fn(items=['a', 'b')]", name="fn")


def test_an_object_that_is_not_closed_is_reported() -> None:
    assert_problem("invalid_value", "[f(a={'k': 1)]", name="f")


@pytest.mark.parametrize("inside", ["[f(a={'k'})]", "[f(a={'k': 1, 'm'})]"])
def test_an_object_entry_without_a_colon_is_reported(inside: str) -> None:
    assert_problem("invalid_value", inside, name="f")


@pytest.mark.parametrize("inside", ["[f(a={'k': 1, 'k': 2})]", "[f(a={k: 1, 'k': 2})]"])
def test_an_object_key_given_twice_is_reported(inside: str) -> None:
    assert_problem("duplicate_key", inside, name="f")


@pytest.mark.parametrize("inside", ["[f(a={1: 'x'})]", "[f(a={True: 1})]", "[f(a={None: 1})]"])
def test_an_object_key_that_is_not_a_string_is_reported(inside: str) -> None:
    assert_problem("invalid_value", inside, name="f")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "infinity", "NaN", "[1, nan]"])
def test_numbers_that_are_not_finite_are_reported(value: str) -> None:
    assert_problem("not_finite", f"[f(a={value})]", name="f")
