"""Text without a call stays text: prose, code, data and examples that only resemble calls.

`corpus/prose.jsonl` has one such text per line with its kind. `make bfcl` reads many more.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from rightcall import Parser, Tool, Toolset, parse
from support.samples import CORPUS

FORMATS = ("auto", "hermes", "qwen3_coder", "pythonic", "llama3_json", "mistral", "xlam", "harmony", "generic_json")
STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
DECLARED: dict[str, tuple[str, dict[str, Any]]] = {  # required arguments, and all declared arguments
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
OWN_WIRE = ("xlam", "```json")  # In this format, a reply that begins with a JSON fence is a call.
TEXTS = [json.loads(line) for line in (CORPUS / "prose.jsonl").read_text("utf-8").splitlines()]


def texts_without_calls(format: str) -> list[tuple[str, str]]:
    """Return kind and text of all samples that are not a call in this format."""
    pairs = [(row["kind"], row["text"]) for row in TEXTS]
    pairs = [pair for pair in pairs if not ends_with_a_call(pair[1], format)]
    return [pair for pair in pairs if format != OWN_WIRE[0] or not pair[1].startswith(OWN_WIRE[1])]


def ends_with_a_call(text: str, format: str) -> bool:
    """Return whether a named format without text before its calls has a call at the end of this text.

    No syntax distinguishes `Example:` from `Here it is:`.
    """
    return format in BARE and "Example: {" in text and text.rstrip().endswith("}}")


@pytest.mark.parametrize("format", BARE)
def test_a_named_bare_format_parses_an_unquoted_call_at_the_end_of_a_text(format: str) -> None:
    found = [row["text"] for row in TEXTS if ends_with_a_call(row["text"], format)]
    assert found
    for text in found:
        reply = parse(text, tools=TOOLS, format=format)
        assert len(reply.calls) == 1 and [problem.code for problem in reply.problems] == ["rescued"], text


def has_call(text: str, format: str) -> bool:
    reply = parse(text, tools=TOOLS, format=format)
    return bool(reply.attempts) or any(problem.blocking for problem in reply.problems)


@pytest.mark.parametrize("format", FORMATS)
def test_text_without_a_call_stays_text(format: str) -> None:
    assert [(kind, text) for kind, text in texts_without_calls(format) if has_call(text, format)] == []


@pytest.mark.parametrize("format", FORMATS)
def test_text_without_a_call_is_kept_completely(format: str) -> None:
    lost = []
    for kind, text in texts_without_calls(format):
        reply = parse(text, tools=TOOLS, format=format, reasoning="off")
        expected = text
        if any(problem.code == "opener_without_call" for problem in reply.problems):
            expected = expected.replace(
                " [TOOL_CALLS] ", "\n"
            )  # This token never occurs in text by chance and is dropped.
        if reply.content.strip() not in (text.strip(), expected.strip()):
            lost.append((kind, text))
    assert lost == []


def test_text_without_a_call_is_text_under_every_chunking() -> None:
    for row in TEXTS:
        parser = Parser("auto", tools=TOOLS)
        for i in range(0, len(row["text"]), 3):
            parser.feed(row["text"][i : i + 3])
        parser.close()
        assert parser.reply == parse(row["text"], tools=TOOLS), row


def test_the_corpus_has_many_texts_of_many_kinds() -> None:
    assert len(TEXTS) >= 150
    assert len({row["kind"] for row in TEXTS}) >= 10
    assert (CORPUS / "prose.jsonl").stat().st_size < 100_000
