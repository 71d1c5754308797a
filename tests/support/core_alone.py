"""Test what `pip install rightcall` can do with only its two dependencies. A program: it prints the version.

`make smoke` runs it in a clean venv with the wheel; the test suite runs it with every other package made unavailable.
"""

from __future__ import annotations

import enum
import sys
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import rightcall
from rightcall import Call, Parser, Toolset, dispatch_sync, parse, tool
from rightcall.backends import Backend
from rightcall.errors import BadTools, MissingExtra, RightcallError

TEXT = """On it.
<tool_call>
{"name": "book", "arguments": "{\\"stay\\": {\\"hotel\\": \\"Seeblick\\", \\"at\\": \\"2026-05-17\\"}}"}}
</tool_call>"""
OTHERS = "pydantic pydantic_core typer rich aiohttp jinja2 mcp llguidance pyarrow opentelemetry".split()


class Board(enum.Enum):
    NONE = "none"
    HALF = "half"


class Guest(NamedTuple):
    name: str
    age: int = 30


class Wishes(TypedDict, total=False):
    floor: int
    quiet: bool


@dataclass
class Stay:
    """A stay in one hotel."""

    hotel: str
    at: date
    nights: int = 1
    then: Stay | None = None
    tags: list[str] = field(default_factory=list)


@tool
def book(
    stay: Annotated[Stay, "Where and when"],
    guests: list[Guest] | None = None,
    board: Board = Board.NONE,
    wishes: Wishes | None = None,
    pay: Decimal | Literal["later"] = "later",
    receipt: Path | None = None,
    id: UUID | None = None,
) -> list[Any]:
    """Books a room.

    Args:
        board: What to eat.
    """
    return [stay, guests, board, wishes, pay, receipt, id]


TOOLS = Toolset(book, {"name": "look", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}})


def test_reading() -> None:
    reply = parse(TEXT, tools=TOOLS, format="hermes")
    assert reply.content == "On it." and [repair.rule for repair in reply.calls[0].repairs], reply
    parser = Parser("hermes", tools=TOOLS)
    for character in TEXT:
        parser.feed(character)
    parser.close()
    assert parser.reply.calls[0].arguments == reply.calls[0].arguments
    answer = {"choices": [{"message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}]}
    assert rightcall.read(answer, tools=TOOLS).calls[0].arguments == reply.calls[0].arguments
    assert rightcall.detect(TEXT, tools=TOOLS)[0] == "hermes"
    wire = rightcall.render(reply, format="qwen3_coder", tools=TOOLS)
    assert parse(wire, tools=TOOLS, format="qwen3_coder").calls[0].arguments == reply.calls[0].arguments


def test_checking() -> None:
    (problem,) = rightcall.check(Call("look", {"city": 3}), TOOLS)
    assert problem.code == "wrong_type", problem
    repaired = rightcall.repair(Call("look", json="{'city': 'Oslo',}"), TOOLS)
    assert repaired.arguments == {"city": "Oslo"}, repaired


def test_requests() -> None:
    grammar = rightcall.grammar(TOOLS)
    assert "root" in grammar.gbnf() and grammar.lark()
    assert "interface" in (text := rightcall.contract(TOOLS).text) or "type" in text
    assert TOOLS.definitions("messages")[0]["input_schema"]["properties"]["board"]["description"] == "What to eat."


def test_dispatch() -> None:
    arguments = {
        "stay": {"hotel": "Seeblick", "at": "2026-05-17", "then": {"hotel": "Adler", "at": "2026-05-18"}},
        "guests": [["Ada"], ["Alan", 41]],
        "board": "half",
        "wishes": {"floor": 3},
        "pay": 120.5,
        "receipt": "out/receipt.pdf",
        "id": "12345678-1234-5678-1234-567812345678",
    }
    reply = parse(TEXT, tools=TOOLS, format="hermes")
    results = dispatch_sync([Call("book", arguments), Call("book", {"stay": {"hotel": "x", "at": "soon"}})], TOOLS)
    assert results[0].output == [
        Stay("Seeblick", date(2026, 5, 17), then=Stay("Adler", date(2026, 5, 18))),
        [Guest("Ada"), Guest("Alan", 41)],
        Board.HALF,
        {"floor": 3},
        Decimal("120.5"),
        Path("out/receipt.pdf"),
        UUID("12345678-1234-5678-1234-567812345678"),
    ], results[0]
    assert results[1].problems[0].path == "/stay/at", results[1]
    (answer,) = rightcall.answers(reply, dispatch_sync(reply, TOOLS))
    assert "2026-05-17" in answer["content"], answer
    rejected = parse('<tool_call>{"name": "look", "arguments": {"city": [1]}}</tool_call>', tools=TOOLS)
    assert "city" in rightcall.feedback(rejected)


def test_errors() -> None:
    def f(connection: object, process: memoryview) -> None: ...

    assert "parameter 'process' of" in error_message(BadTools, lambda: Toolset(f))
    assert "wrap takes a client of openai" in error_message(RightcallError, lambda: rightcall.wrap(object()))
    assert "pip install 'rightcall[http]'" in error_message(
        MissingExtra, lambda: Backend("http://127.0.0.1:9", model="m")
    )


def error_message(kind: type[Exception], function: Any) -> str:
    try:
        function()
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was not raised")


def main() -> None:
    for step in (test_reading, test_checking, test_requests, test_dispatch, test_errors):
        step()
    loaded = [name for name in OTHERS if sys.modules.get(name) is not None]
    assert not loaded, f"the core imported {loaded}"
    print(rightcall.__version__)


if __name__ == "__main__":
    main()
