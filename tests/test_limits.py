"""Exceeded limits leave a problem, never an exception, and no text is lost. Also: errors of the caller."""

from __future__ import annotations

import gc

import msgspec
import pytest

from rightcall import Call, Parser, Reply, Tool, Toolset, parse, render
from rightcall.errors import CallerError
from rightcall.formats import FORMATS
from rightcall.formats.spec import marker_alternatives
from rightcall.parsing.options import Limits
from support.format_sample import sampled
from support.replies import (
    INTEGER,
    STRING,
    TOOLS,
    Json,
    blocking,
    codes,
    hermes,
    make_call,
    read,
    runnable,
    tool,
)

every_format = pytest.mark.parametrize("name", sampled())


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_reply_with_too_many_openers_without_calls_is_text() -> None:
    text = "<tool_call> x " * 10_500
    whole = parse(text, format="hermes", tools=TOOLS, spans=True)
    assert (whole.attempts, whole.content) == ((), text)
    assert codes(whole).count("too_large") == 1
    parser = Parser("hermes", tools=TOOLS, spans=True)
    for start in range(0, len(text), 999):
        parser.feed(text[start : start + 999])
    parser.close()
    assert parser.reply == whole


@every_format
def test_a_reply_beyond_the_length_limit_is_text(name: str) -> None:
    text = "Hello there. " * 10
    reply = read(text, name, limits=Limits(reply=40))
    assert reply.content == text
    assert codes(reply) == ["too_large"]


@every_format
def test_a_length_limit_inside_a_call_truncates_the_call(name: str) -> None:
    text = render(make_call("f", s="needle in hay"), format=name, tools=TOOLS)
    reply = read(text, name, limits=Limits(reply=text.index("hay")))
    assert [(call.name, call.complete) for call in reply.attempts] == [("f", False)]
    assert sorted(codes(reply)) == ["too_large", "truncated"]
    assert "hay" in reply.content


@every_format
def test_a_call_beyond_the_size_limit_is_kept_and_rejected(name: str) -> None:
    text = render([make_call("f", s="x" * 400), make_call("f", s="y")], format=name, tools=TOOLS)
    reply = read(text, name, limits=Limits(call=300))
    assert [(call.name, call.complete) for call in reply.attempts] == [("f", False), ("f", True)]
    assert "x" * 400 in reply.attempts[0].raw
    assert blocking(reply) == [("too_large", 0)]


@every_format
def test_calls_beyond_the_limit_are_text(name: str) -> None:
    text = render([make_call("f", s=str(n)) for n in range(6)], format=name, tools=TOOLS)
    reply = read(text, name, limits=Limits(calls=3))
    assert len(reply.attempts) == 3
    assert codes(reply) == ["too_large"]
    assert "5" in reply.content


@every_format
def test_the_beginning_of_a_call_beyond_the_limit_is_text(name: str) -> None:
    one = render(make_call("f", s="1"), format=name, tools=TOOLS)
    many = render([make_call("f", s="1"), make_call("f", s="2")], format=name, tools=TOOLS)
    sections = [marker for marker in marker_alternatives((FORMATS[name].section or ("", ""))[0]) if marker]
    damaged = [text.replace("<tool_call>", "", 1) for text in (one, many)] + [f"{each}f{one}" for each in sections]
    for text in (many, one + one, *damaged):
        for calls, end in ((calls, end) for calls in (0, 1) for end in range(0, len(text) + 1, 3)):
            whole = parse(text[:end], format=name, tools=TOOLS, spans=True, limits=Limits(calls=calls))
            parser = Parser(name, tools=TOOLS, spans=True, limits=Limits(calls=calls))
            parser.feed(text[:end])
            parser.close()
            assert len(whole.attempts) <= calls and without_ids(parser.reply) == without_ids(whole)


def without_ids(reply: Reply) -> Reply:
    """Return the reply without ids, which are generated for each parse."""
    calls = [msgspec.structs.replace(part, id="") if isinstance(part, Call) else part for part in reply.parts]
    return msgspec.structs.replace(reply, parts=tuple(calls))


THINKING = [name for name, format in FORMATS.items() if format.reasoning is not None]


@pytest.mark.parametrize("name", sampled(THINKING))
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_calls_in_open_reasoning_count_towards_the_limit(name: str, calls: int) -> None:
    opens = marker_alternatives((FORMATS[name].reasoning or ("", ""))[0])[0]
    one = render([make_call("f", s="1")], format=name, tools=TOOLS)
    text = one + opens + render([make_call("f", s="2"), make_call("f", s="3")], format=name, tools=TOOLS)
    whole = read(text, name)
    reply = read(text, name, limits=Limits(calls=calls))
    is_beyond = len(whole.attempts) > calls
    if is_beyond and "rescued" in codes(whole):  # Bare calls after text are parsed all together or stay text.
        assert (reply.attempts, set(codes(reply))) == ((), {"looks_like_a_call"})
    else:
        assert len(reply.attempts) == min(calls, len(whole.attempts))
        assert ("too_large" in codes(reply)) is is_beyond


def nested(depth: int) -> Json:
    value: Json = {"n": 1}
    for _ in range(depth - 1):
        value = {"o": value}
    return value


@every_format
def test_arguments_that_are_too_deep_are_kept_and_rejected(name: str) -> None:
    tools = Toolset([tool("f", o={"type": "object"}), tool("g")])
    text = render([make_call("f", **nested(30)), make_call("g")], format=name, tools=tools)
    reply = read(text, name, tools, limits=Limits(depth=20))
    assert [call.name for call in reply.attempts] == ["f", "g"]
    assert blocking(reply)[0] == ("too_deep", 0)
    assert runnable(reply) == [("g", {})]
    assert len(runnable(read(text, name, tools, limits=Limits(depth=30)))) == 2


ODD_ARGUMENTS = [
    r'{"\ud800": 1}',
    r'{"s": "\ud800"}',
    r'{"o": {"\ud800": ["\udc00"]}}',
    '{"\ud800": "\udfff"}',
    '{"n": 1e400, "s": -1e-400}',
    '{"n": ' + "9" * 5000 + "}",
    '{"s": "\x7f\u2028\ufffe"}',
    '{"": {"": ""}}',
]


@pytest.mark.parametrize("arguments", ODD_ARGUMENTS, ids=ascii)
@pytest.mark.parametrize("repair", ["off", "safe", "lenient"])
def test_unusual_arguments_never_raise_in_the_schema_check(repair: str, arguments: str) -> None:
    tools = Toolset(
        [Tool(name="f", parameters={**tool("f", s=STRING, n=INTEGER).parameters, "additionalProperties": False})]
    )
    reply = read(hermes(f'{{"name": "f", "arguments": {arguments}}}'), "hermes", tools, repair=repair)
    assert [call.name for call in reply.attempts] == ["f"]
    assert arguments in reply.attempts[0].raw


# -- errors of the caller ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["reasoning", "repair"])
def test_an_invalid_option_value_is_rejected(option: str) -> None:
    with pytest.raises(CallerError, match="maybe"):
        Parser("hermes", **{option: "maybe"})  # type: ignore[arg-type]


def test_a_closed_parser_rejects_more_text() -> None:
    parser = Parser("hermes")
    parser.close()
    assert parser.close() == []
    with pytest.raises(CallerError):
        parser.feed("x")


@pytest.mark.parametrize("before", [30, 39, 40, 41, 50])
def test_a_limit_exceeded_before_format_detection_leaves_text(before: int) -> None:
    text = "x" * before + hermes('{"name": "g", "arguments": {}}')
    for size in (len(text), 1, 7):
        parser = Parser(limits=Limits(reply=40), tools=TOOLS)
        for start in range(0, len(text), size):
            parser.feed(text[start : start + size])
        parser.close()
        assert (parser.reply.content, codes(parser.reply)) == (text, ["too_large"])


def test_feed_does_not_change_a_returned_list_later() -> None:
    parser = Parser("hermes")
    events = parser.feed("<tool_call>")
    parser.feed('{"name": "g", "arguments": {}}</tool_call>')
    assert events == []


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*sampled(), "auto"])
def test_a_parse_leaves_no_reference_cycles(name: str) -> None:
    text = render(make_call("f", s="x"), format="hermes" if name == "auto" else name, tools=TOOLS)
    parse(text, format=name, tools=TOOLS)  # fills the caches
    gc.collect()
    gc.freeze()  # so that the collector does not scan these objects for every format
    parse(text, format=name, tools=TOOLS)
    assert gc.collect() == 0
