"""Text that is no call stays text: prose, code, data and examples that only look like calls.

`corpus/prose.jsonl` has one such text per line, and the kind of trap it is. `make bfcl` reads many more.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from rightcall import Parser, Tool, Toolset, parse
from support.samples import CORPUS

FORMATS = ("auto", "hermes", "qwen3_coder", "pythonic", "llama3_json", "mistral", "xlam", "harmony", "generic_json")
STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
DECLARED: dict[str, tuple[str, dict[str, Any]]] = {  # what is required, and what may be sent
    "get_weather": ("city", {"city": STRING, "days": INTEGER}),
    "get_time": ("zone", {"zone": STRING}),
    "search_docs": ("query", {"query": STRING, "limit": INTEGER}),
    "bash": ("command", {"command": STRING}),
    "read_file": ("path", {"path": STRING}),
    "send_email": ("to subject", {"to": STRING, "subject": STRING, "body": STRING}),
    "f": ("", {"x": {}, "y": {}, "a": {}, "city": {}}),
    "add": ("a b", {"a": NUMBER, "b": NUMBER}),
}
TOOLS = Toolset(
    [
        Tool(name=name, parameters={"type": "object", "properties": properties, "required": required.split()})
        for name, (required, properties) in DECLARED.items()
    ]
)
BARE = ("llama3_json", "xlam", "generic_json")
OWN_WIRE = ("xlam", "```json")  # a reply that begins with a JSON fence is what this format looks like
TEXTS = [json.loads(line) for line in (CORPUS / "prose.jsonl").read_text("utf-8").splitlines()]


def texts(format: str) -> list[tuple[str, str]]:
    """Kind and text of all that are no call in this format."""
    pairs = [(row["kind"], row["text"]) for row in TEXTS]
    pairs = [pair for pair in pairs if not ends_with_a_call(pair[1], format)]
    return [pair for pair in pairs if format != OWN_WIRE[0] or not pair[1].startswith(OWN_WIRE[1])]


def ends_with_a_call(text: str, format: str) -> bool:
    """A format that was named and writes nothing before a call has one where a text ends with it, unless that is shown:
    no sign tells `Example:` from `Here it is:`."""
    return format in BARE and "Example: {" in text and text.rstrip().endswith("}}")


@pytest.mark.parametrize("format", BARE)
def test_a_named_bare_format_has_a_call_where_a_text_ends_with_one_that_nothing_shows(format: str) -> None:
    found = [row["text"] for row in TEXTS if ends_with_a_call(row["text"], format)]
    assert found
    for text in found:
        reply = parse(text, tools=TOOLS, format=format)
        assert len(reply.calls) == 1 and [problem.code for problem in reply.problems] == ["rescued"], text


def fired(text: str, format: str) -> bool:
    reply = parse(text, tools=TOOLS, format=format)
    return bool(reply.attempts) or any(problem.blocking for problem in reply.problems)


@pytest.mark.parametrize("format", FORMATS)
def test_text_that_is_no_call_stays_text(format: str) -> None:
    assert [(kind, text) for kind, text in texts(format) if fired(text, format)] == []


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_of_a_text_without_a_call_is_lost(format: str) -> None:
    lost = []
    for kind, text in texts(format):
        reply = parse(text, tools=TOOLS, format=format, reasoning="off")
        said = text
        if any(problem.code == "opener_without_call" for problem in reply.problems):
            said = said.replace(" [TOOL_CALLS] ", "\n")  # a token that nobody writes by chance is no text
        if reply.content.strip() not in (text.strip(), said.strip()):
            lost.append((kind, text))
    assert lost == []


def test_text_without_a_call_is_text_under_every_chunking() -> None:
    for row in TEXTS:
        parser = Parser("auto", tools=TOOLS)
        for i in range(0, len(row["text"]), 3):
            parser.feed(row["text"][i : i + 3])
        parser.close()
        assert parser.reply == parse(row["text"], tools=TOOLS), row


def test_the_texts_are_many_and_of_many_kinds() -> None:
    assert len(TEXTS) >= 150
    assert len({row["kind"] for row in TEXTS}) >= 10
    assert (CORPUS / "prose.jsonl").stat().st_size < 100_000
