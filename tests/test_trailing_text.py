"""Text between the arguments of a call and its closing marker rejects the call."""

from __future__ import annotations

import pytest

from rightcall import Call, Parser, Reply, Tool, parse, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Format, marker_alternatives

DELETE = Tool(
    name="delete_rows",
    parameters={"type": "object", "properties": {"table": {"type": "string"}}, "required": ["table"]},
)
CLOSED = [format for format in FORMATS.values() if marker_alternatives(format.call[1])[0].strip()]


def wire(format: Format, behind: str) -> str:
    text = render(Call("delete_rows", {"table": "users"}), format=format, tools=[DELETE])
    at = text.rindex(marker_alternatives(format.call[1])[0].strip())
    return text[:at] + behind + text[at:]


def read(text: str, format: Format | str, piece: int = 0) -> Reply:
    if not piece:
        return parse(text, tools=[DELETE], format=format)
    parser = Parser(tools=[DELETE], format=format)
    for at in range(0, len(text), piece):
        parser.feed(text[at : at + piece])
    parser.close()
    return parser.reply


@pytest.mark.parametrize("piece", [0, 1, 5])
@pytest.mark.parametrize("format", CLOSED, ids=lambda format: format.name)
def test_text_before_the_closing_marker_rejects_the_call(format: Format, piece: int) -> None:
    reply = read(wire(format, " where id=7\n"), format, piece)
    assert reply.calls == () and reply.problems
    assert format.name == "tool_code" or any(problem.blocking for problem in reply.refused[0].problems)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("harmony", '<|channel|>commentary to=functions.delete_rows<|message|>{"table": "users"} where id=7<|call|>'),
        ("harmony", '<|channel|>commentary to=functions.delete_rows<|message|>{"table": "users"} where id=7'),
        ("functionary_v32", '>>>delete_rows\n{"table": "users"} where id=7\n>>>all\nDone.'),
    ],
)
@pytest.mark.parametrize("piece", [0, 1, 5])
def test_text_after_the_arguments_of_a_message_rejects_the_call(format: str, text: str, piece: int) -> None:
    reply = read(text, format, piece)
    assert [problem.code for problem in reply.refused[0].problems] == ["trailing_content"] and reply.calls == ()


@pytest.mark.parametrize("aside", [" // all of them\n", " # all\n", "\n/* all */"])
@pytest.mark.parametrize("name", ["hermes", "contract", "lfm2", "olmo3", "longcat"])
@pytest.mark.parametrize("piece", [0, 1])
def test_a_comment_before_the_closing_marker_rejects_the_call(name: str, aside: str, piece: int) -> None:
    reply = read(wire(FORMATS[name], aside), name, piece)
    assert reply.calls == () and len(reply.refused) == 1


def test_text_after_an_unclosed_call_is_text() -> None:
    text = wire(FORMATS["hermes"], "Done.").removesuffix("</tool_call>")
    reply = read(text, "hermes")
    assert len(reply.calls) == 1 and reply.content == "Done."


def test_the_close_of_a_text_block_does_not_close_a_call() -> None:
    text = wire(FORMATS["apriel"], "Done.\n[END FINAL RESPONSE]").removesuffix("</tool_calls>")
    assert len(read(text, "apriel").calls) == 1
