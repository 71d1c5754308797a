"""gpt-oss behind a server that omits special tokens: reasoning is separated from text, and no call is runnable."""

from __future__ import annotations

from typing import Literal

import pytest

from rightcall import Reply, Tool, Toolset, parse
from support.cuts import Setting, hold_of_every_cut

LOOKUP = Tool(name="lookup", parameters={"type": "object", "properties": {"word": {"type": "string"}}})
TOOLS = Toolset([LOOKUP])
CALL = 'commentary to=functions.lookup json{"word": "owl"}'

# Input, reasoning and content.
MESSAGES = [
    ("analysisLet me see.assistantfinalIt is a bird.", "Let me see.", "It is a bird."),
    ("assistantanalysisHm.assistantfinalHi", "Hm.", "Hi"),
    ("analysisA.assistantanalysisB.assistantfinalC.assistantfinalD.", "A.\nB.", "C.\nD."),
    ("analysisHm.\n\nassistantcommentaryOne moment.assistantfinalHi", "Hm.", "One moment.\nHi"),
    (f"analysisHm.assistant{CALL}", "Hm.", f"assistant{CALL}"),
    (f"analysisHm.assistant{CALL.replace(' json', 'json')}", "Hm.", f"assistant{CALL.replace(' json', 'json')}"),
    (f"analysisHm.assistant{CALL}assistantfinalDone.", "Hm.", f"assistant{CALL}\nDone."),
]
every_format = pytest.mark.parametrize("format", ["harmony", "auto"])


def codes(reply: Reply) -> set[str]:
    return {problem.code for problem in reply.problems}


@every_format
@pytest.mark.parametrize("text, reasoning, content", MESSAGES)
def test_reasoning_is_separated_from_text(format: str, text: str, reasoning: str, content: str) -> None:
    reply = hold_of_every_cut(text, Setting(format, TOOLS))
    assert (reply.reasoning, reply.content, reply.attempts) == (reasoning, content, ())
    assert "stray_marker" in codes(reply) and ("looks_like_a_call" in codes(reply)) == ("to=" in text)
    without = parse(text, format=format)
    assert (without.reasoning, without.content) == (reasoning, content)


@every_format
@pytest.mark.parametrize(
    "text",
    [
        "analysis of the text: assistantfinal is a word",
        'analysisThe page says "assistantfinal" somewhere.',
        "analysisOnly one.",
        "finalThe answer",
        "The answer. assistantfinalThe answer",
    ],
)
def test_other_text_is_unchanged(format: str, text: str) -> None:
    reply = hold_of_every_cut(text, Setting(format, TOOLS))
    assert (reply.content, reply.reasoning, reply.problems) == (text, "", ())


@every_format
@pytest.mark.parametrize(
    "before", ["", "assistant", "analysisHm.assistant", "analysisHm.assistantcommentaryA.assistant"]
)
def test_a_call_without_its_special_tokens_is_reported_and_not_runnable(format: str, before: str) -> None:
    text = before + CALL
    rescue: Literal["off", "safe"]
    for rescue in ("off", "safe"):
        reply = parse(text, format=format, tools=TOOLS, rescue=rescue)
        assert reply.attempts == () and "looks_like_a_call" in codes(reply)
    assert parse(text, format=format, tools=TOOLS, finish="length").attempts == ()
