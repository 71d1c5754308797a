"""A call whose arguments can be read in more than one way is rejected, in every format that its body is of."""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any

import pytest

from rightcall import Call, Reply, Toolset, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Body, Braced, Envelope, NameThenJson, Pythonic, marker_alternatives
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled
from support.replies import INTEGER, STRING, blocking, runnable, tool

LISTED = {"type": "array", "items": {"type": ["integer", "null"]}}
TOOLS = Toolset([tool("lookup", word=STRING, n=INTEGER, options={"type": "object"}, items=LISTED)])


def formats_with(kind: type[Body], without: Container[str] = ()) -> pytest.MarkDecorator:
    names = [name for name, format in FORMATS.items() if isinstance(format.bodies[0], kind) and name not in without]
    return pytest.mark.parametrize("format", sampled(names))


def render_call(format: str, arguments: dict[str, Any]) -> str:
    return render(Call("lookup", arguments, json.dumps(arguments)), format=format, tools=TOOLS)


def read(text: str, format: str, tools: Toolset | None = TOOLS) -> Reply:
    return hold_of_every_cut(text, Setting(format, tools))


def render_json(format: str, arguments: str) -> str:
    """Return a call with the text `arguments` in place of its JSON object."""
    text = render_call(format, {"word": "owl"})
    start = text.index('{"word"')
    return text[:start] + arguments + text[text.index("}", start) + 1 :]


# -- strings in braces and in Python -----------------------------------------------------------------------------------


@formats_with(Braced)
@pytest.mark.parametrize("inner", ["a Qb c", "a QbQ c", "aQb"])
def test_a_string_with_inner_quotes_before_a_lost_comma_is_ambiguous(format: str, inner: str) -> None:
    """The key that follows its last quote may be a part of it too."""
    body = FORMATS[format].bodies[0]
    assert isinstance(body, Braced) and body.quote is not None
    text = render_call(format, {"word": "owl", "n": 3}).replace("owl", inner.replace("Q", body.quote))
    assert runnable(read(text, format)) == [("lookup", {"word": inner.replace("Q", body.quote), "n": 3})]
    assert runnable(read(text.replace(body.quote + ",", body.quote + " "), format)) == []


@formats_with(Pythonic, without=["tool_code"])  # a fence with anything but calls is text there
@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize(
    "written", ["QitQs aQ, undeclared=QbQ", "Qa QbQ c, dQ, undeclared=QbQ", "QitQsQ, n=3, other=QbQ"]
)
def test_a_string_with_inner_quotes_and_two_possible_ends_is_ambiguous(format: str, quote: str, written: str) -> None:
    sure = render_call(format, {"word": "owl"}).replace('"owl"', f"{quote}it{quote}s a{quote}")
    assert runnable(read(sure, format)) == [("lookup", {"word": f"it{quote}s a"})]
    unsure = render_call(format, {"word": "owl"}).replace('"owl"', written.replace("Q", quote))
    assert runnable(read(unsure, format)) == []


@formats_with(Pythonic, without=["tool_code"])  # a fence with anything but calls is text there
@pytest.mark.parametrize("rest", [", n=3)", ",n=3)", " , n = 3)", ", n=3, word='bat')"])
def test_a_call_with_an_argument_behind_its_parenthesis_is_rejected(format: str, rest: str) -> None:
    text = render_call(format, {"word": "owl"})
    end = text.index(")", text.index("owl")) + 1
    reply = read(text[:end] + rest + text[end:], format)
    assert runnable(reply) == []
    assert ("trailing_content", 0) in blocking(reply) and reply.attempts[0].arguments == {}


# -- JSON --------------------------------------------------------------------------------------------------------------


@formats_with(
    Envelope, without=[name for name, format in FORMATS.items() if not marker_alternatives(format.call[1])[0]]
)
@pytest.mark.parametrize("bracket", ["}", "} "])
def test_an_id_before_a_superfluous_bracket_may_be_an_argument(format: str, bracket: str) -> None:
    arguments = '{"word": "owl"}'
    if '"id"' in render_json(format, arguments):
        pytest.skip("the format writes an id itself")
    assert runnable(read(render_json(format, arguments + ', "id": "7"'), format)) == [("lookup", {"word": "owl"})]
    end = render_json(format, arguments + ', "id": "7"').index('"7"') + 3
    text = render_json(format, arguments + ', "id": "7"')
    assert runnable(read(text[:end] + bracket + text[end:], format)) == []


def has_close(format: str) -> bool:
    body = FORMATS[format].bodies[0]
    return isinstance(body, NameThenJson) and bool(marker_alternatives(body.close)[0].strip("\n`"))


@formats_with(NameThenJson, without=[name for name in FORMATS if not has_close(name)])
@pytest.mark.parametrize("between", ["", "\n", " "])
def test_a_call_that_is_closed_before_its_arguments_is_rejected(format: str, between: str) -> None:
    body = FORMATS[format].bodies[0]
    assert isinstance(body, NameThenJson)
    close = marker_alternatives(body.close)[0]
    text = render_call(format, {"word": "owl"})
    start = text.index('{"word"')
    end = text.index(close, start)
    for behind in (text[end:], text[end + len(close) :]):
        assert runnable(read(text[:start] + close + between + text[start:end] + behind, format)) == []


@formats_with(Envelope)
@pytest.mark.parametrize("key", ["n: m", "n, m", 'n\\": \\"m', "n: {m", "n]"])
@pytest.mark.parametrize("arguments", ['{"word": "owl", "KEY": 3, }', '{"options": {"KEY": 3, }'])
def test_no_bracket_is_certain_behind_a_key_that_may_be_two_members(format: str, key: str, arguments: str) -> None:
    whole = render_json(format, arguments.replace("KEY", key))
    lost = whole.replace("3, }}", "3, }", 1)
    for tools in (None, TOOLS):
        if "options" in arguments or lost != whole:
            assert runnable(read(lost, format, tools)) == []


MIXED = [
    """{"options": {'k: 1, "x": 2, y': 3}}""",
    """{'options': {"k: 1, 'x': 2, y": 3}}""",
    """{"options": {\u201ck: 1, "x": 2, y\u201d: 3}}""",
    """{"options": {"a": {'k: 1, "x": 2, y': 3}}}""",
]


@pytest.mark.parametrize("arguments", MIXED)
@pytest.mark.parametrize(
    "format", sampled(name for name, each in FORMATS.items() if isinstance(each.bodies[0], Envelope | NameThenJson))
)
def test_quotes_that_differ_between_nested_objects_are_never_certain(format: str, arguments: str) -> None:
    assert runnable(read(render_json(format, arguments), format)) == []


@pytest.mark.parametrize("format", sampled())
def test_null_in_place_of_a_list_that_may_have_null_items_is_not_dropped(format: str) -> None:
    reply = read(render_call(format, {"items": None}), format)
    assert runnable(reply) == [] and len(reply.attempts) == 1
