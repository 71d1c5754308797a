"""Input as pairs of text and special flag: a special token opens calls anywhere, its letters as plain text nowhere."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from rightcall import Call, Ids, Parser, Reply, Text, Tool, Toolset, parse, render
from rightcall.errors import CallerError
from rightcall.formats import FORMATS
from rightcall.formats.spec import Special
from rightcall.parsing.compile import compile_format
from support.format_sample import sampled

WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
TOOLS = Toolset([Tool(name="lookup", parameters=WORD), Tool(name="ping", parameters={"type": "object"})])
CALLS = [Call("lookup", {"word": 'a `b` "c"'}), Call("ping", {})]
Pairs = list[tuple[str, bool | None]]


def special_tokens_of(value: Any) -> set[str]:
    """Return the special tokens in the data of a format."""
    if isinstance(value, Special):
        return {token for token in value.tokens if token}
    if isinstance(value, msgspec.Struct):
        value = [getattr(value, field) for field in value.__struct_fields__]
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    return set().union(*map(special_tokens_of, value)) if isinstance(value, (tuple, list)) else set()


def split_tokens(text: str, name: str) -> Pairs:
    """Split a text as the decoder of a model does: special tokens one by one, everything else as plain text."""
    found = sorted(special_tokens_of(FORMATS[name]), key=len, reverse=True)
    pieces = re.split("(" + "|".join(map(re.escape, found)) + ")", text) if found else [text]
    return [(piece, piece in found) for piece in pieces if piece]


def calls(reply: Reply) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, call.arguments) for call in reply.calls]


def feed_pairs(pairs: Pairs, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the runnable calls of the pairs, and check that `parse` and a parser fed piecewise agree."""
    whole = calls(parse(pairs, tools=TOOLS, format=name))
    parser = Parser(name, tools=TOOLS)
    for text, special in pairs:
        for piece in [text] if special else text:
            parser.feed(piece, special)
    parser.close()
    assert calls(parser.reply) == whole
    return whole


EXPECTED_CALLS = [(call.name, call.arguments) for call in CALLS]
SPECIAL = [name for name in FORMATS if compile_format(FORMATS[name]).openers.has_tokens]
TAGGED = [
    name for name in SPECIAL if any(not sign.is_token for _, sign in compile_format(FORMATS[name]).bodies.openers)
]
BARE = ["llama3_json", "llama4_pythonic", "phi4_mini"]


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if name != "forced_choice"))
def test_marking_special_tokens_does_not_change_the_calls(name: str) -> None:
    wire = render(CALLS, format=name, tools=TOOLS)
    for parsed_format in (name, "auto"):
        assert feed_pairs(split_tokens(wire, name), parsed_format) == calls(
            parse(wire, tools=TOOLS, format=parsed_format)
        )


@pytest.mark.parametrize("name", sampled(SPECIAL))
def test_the_text_of_a_special_opener_opens_no_call_in_plain_text(name: str) -> None:
    wire = "Hello. " + render(CALLS, format=name, tools=TOOLS)
    if name not in TAGGED + BARE:  # the calls of the others are opened by a plain tag or word, or by no opener
        for parsed_format in (name, "auto"):
            assert feed_pairs([(wire, False)], parsed_format) == []
            assert feed_pairs([("```\n", None), (wire, False), ("\n```", None)], parsed_format) == []


@pytest.mark.parametrize("name", [name for name in SPECIAL if not FORMATS[name].channels])
def test_a_special_opener_opens_a_call_in_any_context(name: str) -> None:
    pairs = split_tokens(render(CALLS, format=name, tools=TOOLS), name)
    if pairs[0][1]:
        for before in ("```\n", "A `code ", 'He said "', "> ", "<pre>\n"):
            assert feed_pairs([(before, False), *pairs], name) == EXPECTED_CALLS, before


def test_plain_text_tags_open_calls_except_in_code() -> None:
    wire = render(CALLS[0], format="hermes", tools=TOOLS)
    assert len(feed_pairs([(wire, False)], "hermes")) == 1
    assert feed_pairs([("```\n", False), (wire, False), ("\n```\nDone.", False)], "hermes") == []
    opener, rest = "<tool_call>", wire.removeprefix("<tool_call>")
    assert len(feed_pairs([("```\n", False), (opener, True), (rest, False), ("\n```\nDone.", False)], "hermes")) == 1


def test_unmarked_text_is_detected_and_plain_text_is_kept() -> None:
    wire = render(CALLS[0], format="kimi_k2", tools=TOOLS)
    assert len(feed_pairs([(wire, None)], "kimi_k2")) == 1
    reply = parse([("Send ", False), (wire, False), (".", None)], tools=TOOLS, format="kimi_k2")
    assert reply.parts == (Text(f"Send {wire}."),)
    assert [problem.code for problem in reply.problems] == ["looks_like_a_call"]


@pytest.mark.parametrize("name", ["auto", *sampled()])
def test_unmarked_pairs_parse_like_a_string(name: str) -> None:
    body = '[{"name": "ping", "arguments": {}}]'
    for text in (body, f"Well: {body} so.", f"```json\n{body}\n```"):
        whole = parse(text, format=name, tools=TOOLS, ids=Ids.numbered("n"))
        for pairs in ([(text, None)], [(char, None) for char in text]):
            assert parse(pairs, format=name, tools=TOOLS, ids=Ids.numbered("n")) == whole, text


def test_input_other_than_pairs_is_an_error() -> None:
    with pytest.raises(CallerError, match="pairs"):
        parse(["ab"], tools=TOOLS)  # type: ignore[list-item]
