"""The table of problem codes lists exactly the existing codes, and every example produces its code."""

import ast
import re
from collections.abc import Callable, Iterator
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest

from problems_page import parse_example
from rightcall import Call, Limits, Problem, Toolset, check, parse
from rightcall.contracts.ledger import Deliverable, Ledger, LedgerState
from rightcall.contracts.protocol import violations
from rightcall.problems import CODES, GROUPS, TOOLS, Code
from rightcall.providers.provider_answers import Stream, read
from rightcall.tools.functions import get_binding
from rightcall.tools.toolset import to_tool

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "rightcall"
LAYERS = (
    "parsing",
    "repairs",
    "providers",
    "contracts",
    "strict_json.py",
    "tools/checks.py",
    "tools/toolset.py",
    "tools/type_hints.py",
    "tools/value_types.py",
    "tools/with_pydantic.py",
)
TABLES = {"_CODES", "OPEN_CODE"}
PROBLEM_MAKERS = {
    "ValueFault",
    "Problem",
    "problem",
    "_make_problem",
    "Undecodable",
    "Fault",
    "fail",
    "note",
    "block_pending",
}
PROBLEM_MAKERS |= {"Broken", "BadValue", "_Refused"}
IS_CODE = re.compile(r"[a-z]+(?:_[a-z]+)*").fullmatch


def is_message(node: ast.expr) -> bool:
    """Return whether the node is a text of several words: the message after a code."""
    pieces = node.values if isinstance(node, ast.JoinedStr) else [node]
    return any(isinstance(piece, ast.Constant) and " " in str(piece.value) for piece in pieces)


def code_word(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) and IS_CODE(node.value) else ""


def codes_in(source: str) -> Iterator[str]:
    """Yield every code in a module: before a message, as the argument of a problem, or in a table of codes."""
    for node in ast.walk(ast.parse(source)):
        items = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
        yield from (code_word(code) for code, message in pairwise(items) if is_message(message))
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[first, *_]) if (
                name in PROBLEM_MAKERS
            ):
                yield code_word(first)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get"), args=[_, default]) if name in TABLES:
                yield code_word(default)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(values=values)) if name in TABLES:
                yield from map(code_word, values)


def sources() -> list[str]:
    files = [
        file for layer in LAYERS for file in ([PACKAGE / layer] if "." in layer else (PACKAGE / layer).rglob("*.py"))
    ]
    return [file.read_text("utf-8") for file in files if file.name != "rules.py"]


def test_the_table_lists_exactly_the_codes_in_the_source() -> None:
    assert set(CODES) == {code for source in sources() for code in codes_in(source)} - {""}


def test_codes_in_source_text_are_found() -> None:
    assert list(codes_in('p.problem("new_code", message)')) == ["new_code"]
    assert list(codes_in('wrong = "another", f"it is {what} too"')) == ["another"]
    assert list(codes_in('_CODES = {"enum": "third"}')) == ["third"]


def test_no_code_is_listed_twice() -> None:
    assert len(CODES) == sum(map(len, GROUPS.values()))


@pytest.mark.parametrize("code", [code for code in CODES.values() if code.example], ids=lambda code: code.code)
def test_an_example_produces_its_code(code: Code) -> None:
    found = {problem.code: problem for problem in parse_example(code).problems}
    assert code.code in found and found[code.code].blocking == code.blocking
    assert not any(problem.blocking for problem in found.values()) or code.blocking


def _stream_problems(*chunks: str) -> tuple[Problem, ...]:
    stream = Stream(tools=TOOLS)
    for chunk in chunks:
        stream.feed(chunk)
    stream.close()
    return stream.reply.problems


def _binding_problems(arguments: dict[str, str]) -> tuple[Problem, ...]:
    def f(day: date) -> None: ...

    bound = get_binding(to_tool(f).run)
    typed = bound.typed(arguments) if bound is not None else ()
    return typed if isinstance(typed, tuple) else ()


def _late_problems() -> tuple[Problem, ...]:
    return _stream_problems(
        'data: {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "name": "book"}}\n\n',
        'data: {"type": "content_block_delta", "index": 0, "delta": {"partial_json": "{\\"city\\": \\"Oslo\\"}"}}\n\n',
        'data: {"type": "content_block_stop", "index": 0}\n\n',
        'data: {"type": "content_block_delta", "index": 0, "delta": {"partial_json": "{}"}}\n\n',
    )


CALL = '<tool_call>{"name": "book", "arguments": {"city": "Oslo"}}</tool_call>'
CALL_WITH_EXTRA_KEY = '<tool_call>{"name": "book", "arguments": {"city": "Oslo"}, "nights": 2}</tool_call>'
OPEN_LEDGER = Ledger(state=LedgerState(deliverables=(Deliverable("1", "a test"),)))
OTHER_EXAMPLES: dict[str, Callable[[], tuple[Problem, ...] | list[Problem]]] = {
    "not_authorised": lambda: parse(CALL, tools=Toolset(TOOLS).scoped(["list_bookings"])).problems,
    "tool_left_out": lambda: Toolset.lenient([{"name": "f", "input_schema": {"type": "colour"}}]).notes,
    "tool_mended": lambda: Toolset([{"name": "f", "input_schema": {"type": "dict"}}]).notes,
    "incomplete": lambda: check(Call("book", {}, "", complete=False), TOOLS),
    "arguments_disagree": lambda: check(Call("book", {}, '{"city": "Oslo"}'), TOOLS),
    "late_arguments": _late_problems,
    "too_large": lambda: parse(CALL, tools=TOOLS, format="hermes", limits=Limits(call=10)).problems,
    "malformed_chunk": lambda: _stream_problems(
        'data: {"choices": [{"delta": {"content": "Hi"}}]}\n\n', 'data: {"choi}\n\n'
    ),
    "misplaced_argument": lambda: parse(CALL_WITH_EXTRA_KEY, tools=TOOLS, format="hermes", repair="off").problems,
    "ledger_open": lambda: [refusal] if (refusal := OPEN_LEDGER.refusal()) else [],
    "invalid_argument": lambda: list(_binding_problems({"day": "2026-02-31"})),
    "stray_text": lambda: violations(parse("So be it.", format="contract")),
    "unknown_tag": lambda: violations(parse("<answer>", format="contract")),
    "empty_done": lambda: violations(parse("<done> </done>", format="contract")),
    "no_blocks": lambda: violations(parse("<think>Hm.</think>", format="contract")),
    "unknown_shape": lambda: read({"object": "thing"}).problems,
}
WITHOUT_EXAMPLE: set[str] = set()


@pytest.mark.parametrize("code", OTHER_EXAMPLES)
def test_a_code_without_an_example_text_is_produced(code: str) -> None:
    assert (code, CODES[code].blocking) in [(problem.code, problem.blocking) for problem in OTHER_EXAMPLES[code]()]


def test_every_code_has_an_example_or_a_test() -> None:
    assert {code.code for code in CODES.values() if not code.example} == OTHER_EXAMPLES.keys() | WITHOUT_EXAMPLE
