"""Past a limit a problem is left: never an exception, and nothing is lost. And what callers get wrong."""

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
    made,
    read,
    runnable,
    tool,
)

every_format = pytest.mark.parametrize("name", sampled())


# -- limits ------------------------------------------------------------------------------------------------------------


def test_a_reply_with_very_many_openers_that_hold_no_call_is_text_from_there_on() -> None:
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
def test_a_reply_that_is_too_long_is_text_from_there_on(name: str) -> None:
    text = "Hello there. " * 10
    reply = read(text, name, limits=Limits(reply=40))
    assert reply.content == text
    assert codes(reply) == ["too_large"]


@every_format
def test_a_limit_in_the_middle_of_a_call_leaves_the_call_cut_off(name: str) -> None:
    text = render(made("f", s="needle in hay"), format=name, tools=TOOLS)
    reply = read(text, name, limits=Limits(reply=text.index("hay")))
    assert [(call.name, call.complete) for call in reply.attempts] == [("f", False)]
    assert sorted(codes(reply)) == ["too_large", "truncated"]
    assert "hay" in reply.content


@every_format
def test_a_call_that_is_too_large_is_kept_and_never_runs(name: str) -> None:
    text = render([made("f", s="x" * 400), made("f", s="y")], format=name, tools=TOOLS)
    reply = read(text, name, limits=Limits(call=300))
    assert [(call.name, call.complete) for call in reply.attempts] == [("f", False), ("f", True)]
    assert "x" * 400 in reply.attempts[0].raw
    assert blocking(reply) == [("too_large", 0)]


@every_format
def test_calls_beyond_the_limit_are_text(name: str) -> None:
    text = render([made("f", s=str(n)) for n in range(6)], format=name, tools=TOOLS)
    reply = read(text, name, limits=Limits(calls=3))
    assert len(reply.attempts) == 3
    assert codes(reply) == ["too_large"]
    assert "5" in reply.content


@every_format
def test_where_there_is_no_room_for_a_call_its_beginning_is_text(name: str) -> None:
    one = render(made("f", s="1"), format=name, tools=TOOLS)
    many = render([made("f", s="1"), made("f", s="2")], format=name, tools=TOOLS)
    sections = [marker for marker in marker_alternatives((FORMATS[name].section or ("", ""))[0]) if marker]
    damaged = [text.replace("<tool_call>", "", 1) for text in (one, many)] + [f"{each}f{one}" for each in sections]
    for text in (many, one + one, *damaged):
        for calls, end in ((calls, end) for calls in (0, 1) for end in range(0, len(text) + 1, 3)):
            whole = parse(text[:end], format=name, tools=TOOLS, spans=True, limits=Limits(calls=calls))
            parser = Parser(name, tools=TOOLS, spans=True, limits=Limits(calls=calls))
            parser.feed(text[:end])
            parser.close()
            assert len(whole.attempts) <= calls and unnamed(parser.reply) == unnamed(whole)


def unnamed(reply: Reply) -> Reply:
    """The same without ids, which are made anew."""
    calls = [msgspec.structs.replace(part, id="") if isinstance(part, Call) else part for part in reply.parts]
    return msgspec.structs.replace(reply, parts=tuple(calls))


THINKING = [name for name, format in FORMATS.items() if format.reasoning is not None]


@pytest.mark.parametrize("name", sampled(THINKING))
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_calls_out_of_an_open_thought_count_for_the_limit_too(name: str, calls: int) -> None:
    opens = marker_alternatives((FORMATS[name].reasoning or ("", ""))[0])[0]
    one = render([made("f", s="1")], format=name, tools=TOOLS)
    text = one + opens + render([made("f", s="2"), made("f", s="3")], format=name, tools=TOOLS)
    whole = read(text, name)
    reply = read(text, name, limits=Limits(calls=calls))
    is_beyond = len(whole.attempts) > calls
    if is_beyond and "rescued" in codes(whole):  # bare calls behind text are parsed all together or stay text
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
def test_arguments_that_are_too_deep_are_kept_and_never_run(name: str) -> None:
    tools = Toolset([tool("f", o={"type": "object"}), tool("g")])
    text = render([made("f", **nested(30)), made("g")], format=name, tools=tools)
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
def test_what_a_schema_checker_cannot_take_is_no_exception(repair: str, arguments: str) -> None:
    tools = Toolset(
        [Tool(name="f", parameters={**tool("f", s=STRING, n=INTEGER).parameters, "additionalProperties": False})]
    )
    reply = read(hermes(f'{{"name": "f", "arguments": {arguments}}}'), "hermes", tools, repair=repair)
    assert [call.name for call in reply.attempts] == ["f"]
    assert arguments in reply.attempts[0].raw


# -- callers' mistakes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["reasoning", "repair"])
def test_an_option_with_another_value_is_refused(option: str) -> None:
    with pytest.raises(CallerError, match="maybe"):
        Parser("hermes", **{option: "maybe"})  # type: ignore[arg-type]


def test_a_closed_parser_takes_no_more_text() -> None:
    parser = Parser("hermes")
    parser.close()
    assert parser.close() == []
    with pytest.raises(CallerError):
        parser.feed("x")


@pytest.mark.parametrize("before", [30, 39, 40, 41, 50])
def test_a_limit_that_is_passed_before_the_format_is_known_leaves_text(before: int) -> None:
    text = "x" * before + hermes('{"name": "g", "arguments": {}}')
    for size in (len(text), 1, 7):
        parser = Parser(limits=Limits(reply=40), tools=TOOLS)
        for start in range(0, len(text), size):
            parser.feed(text[start : start + size])
        parser.close()
        assert (parser.reply.content, codes(parser.reply)) == (text, ["too_large"])


def test_what_feed_gives_is_not_added_to_later() -> None:
    parser = Parser("hermes")
    given = parser.feed("<tool_call>")
    parser.feed('{"name": "g", "arguments": {}}</tool_call>')
    assert given == []


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*sampled(), "auto"])
def test_a_reply_that_was_read_leaves_nothing_to_the_garbage_collector(name: str) -> None:
    text = render(made("f", s="x"), format="hermes" if name == "auto" else name, tools=TOOLS)
    parse(text, format=name, tools=TOOLS)  # what is made once stays
    gc.collect()
    gc.freeze()  # so that it need not be looked at for every format
    parse(text, format=name, tools=TOOLS)
    assert gc.collect() == 0
