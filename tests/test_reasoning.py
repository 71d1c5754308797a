"""Reasoning: how it is separated from text, when it is recognized, and what is held back until then."""

from __future__ import annotations

from contextlib import suppress

import pytest

from rightcall import CallStart, CannotCarry, Parser, Reasoning, Recast, Reply, Text, render
from rightcall.formats import FORMATS
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format, Special, marker_alternatives
from rightcall.formats.special_tokens import special_tokens
from support.format_sample import sampled
from support.replies import (
    TOOLS,
    args,
    codes,
    hermes,
    is_distinctive_reasoning,
    make_call,
    read,
)

every_format = pytest.mark.parametrize("name", sampled())


MESSAGES_END_ALIKE = ("solar_open", "inkling")
FORMATS_WITH_REASONING = [
    name for name, format in FORMATS.items() if format.reasoning and name not in MESSAGES_END_ALIKE
]


@pytest.mark.parametrize("name", sampled(FORMATS_WITH_REASONING))
def test_a_close_of_reasoning_without_its_opener_makes_the_text_before_it_reasoning(name: str) -> None:
    pair = FORMATS[name].reasoning
    assert pair is not None
    close = marker_alternatives(pair[1])[0]
    text = f"First I look.{close}" + render(make_call("f", s="x"), format=name, tools=TOOLS)
    reply = read(text, name)
    assert (reply.reasoning, reply.content, args(reply)) == ("First I look.", "", [("f", {"s": "x"})])
    opened = read(text, name, reasoning="open")
    assert (opened.parts, opened.problems) == (reply.parts, reply.problems)


# The reasoning of granite3 is closed by a sentence.
CLOSED_BY_TAG = [name for name in FORMATS_WITH_REASONING if is_distinctive_reasoning(name, 1) and name != "granite3"]


@pytest.mark.parametrize("before", ['They call it "so and', "As in `so and", "```\nso", "Hm."])
@pytest.mark.parametrize("name", CLOSED_BY_TAG)
def test_auto_recognizes_the_reasoning_close_of_every_format(name: str, before: str) -> None:
    pair = FORMATS[name].reasoning
    assert pair is not None
    opens, close = [marker_alternatives(marker)[0] for marker in pair]
    reply = read(f"{before}{close}Hello there.", "auto")
    assert (reply.reasoning, reply.content) == (before, "Hello there.")
    shown = [f"The tag `{close.strip()}` closes it.", f"In `{opens.strip()} x {close.strip()} y` it is shown."]
    for text in shown[: 1 if opens[0].isalpha() else 2]:  # a sentence opens it at the start of a reply
        assert read(text, "auto").content == text


@pytest.mark.parametrize("name", sampled(FORMATS_WITH_REASONING))
def test_reasoning_that_the_prompt_opened_is_reasoning_from_the_first_character(name: str) -> None:
    parser = Parser(name, reasoning="open")
    assert parser.feed("Let me") == [Reasoning("Let me")]
    parser.feed(" think")
    parser.close()
    assert parser.reply.parts == (Reasoning("Let me think"),)


@pytest.mark.parametrize("text_parts", [(), (Text("Let me see."),)], ids=["call", "text and call"])
@every_format
def test_reasoning_in_think_tags_does_not_change_the_reply_after_it(name: str, text_parts: tuple[Text, ...]) -> None:
    # The header of a reply may also follow the reasoning.
    with suppress(CannotCarry):
        text = render(Reply((*text_parts, make_call("f", s="x"))), format=name, tools=TOOLS)
        alone, behind = read(text, name), read(f"<think>hm</think>\n{text}", name)
        assert args(alone) == args(behind) == [("f", {"s": "x"})]
        assert (behind.reasoning, behind.content, codes(behind)) == ("hm", alone.content, codes(alone))


def test_emitted_text_is_recast_when_it_turns_out_to_be_reasoning() -> None:
    parser = Parser("hermes")
    assert parser.feed("I look") == [Text("I look")]
    assert parser.feed(" first</think>") == [Text(" first"), Recast(12, "reasoning")]
    assert parser.feed("Hi") == [Text("Hi")]
    parser.close()
    assert parser.reply.parts == (Reasoning("I look first"), Text("Hi"))


def test_with_hold_text_is_emitted_only_when_its_kind_is_known() -> None:
    parser = Parser("hermes", hold=True)
    assert parser.feed("I look first") == []
    assert [*parser.feed("</think>Hi"), *parser.close()] == [Reasoning("I look first"), Text("Hi")]
    other = Parser("hermes", hold=True)
    assert other.feed("Plain text.") == []
    assert other.close() == [Text("Plain text.")]


def test_with_hold_text_is_emitted_when_a_call_begins() -> None:
    parser = Parser("hermes", hold=True)
    events = parser.feed('I look.\n<tool_call>{"name": "f", "arguments": {')
    assert [type(event) for event in events] == [Text, CallStart]


def test_a_reasoning_close_after_a_call_has_no_effect() -> None:
    text = hermes('{"name": "f", "arguments": {"s": "x"}}') + "\nso </think> what"
    reply = read(text, "hermes")
    assert (reply.reasoning, reply.content, codes(reply)) == ("", "so\nwhat", ["stray_marker"])


@pytest.mark.parametrize("name", ["auto", "hermes", "qwen3_coder", "glm45"])
@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_quoted_reasoning_and_the_call_after_it_are_text(name: str, fence: str) -> None:
    call = render(make_call("f", s="x"), format="hermes" if name == "auto" else name, tools=TOOLS)
    text = f"It writes this:\n{fence}\n<think>\nHm.\n</think>\n\nLet me look.\n{call}\n{fence}\nThat is all."
    reply = read(text, name)
    assert (reply.content, reply.attempts) == (text, ())


def test_a_reasoning_opener_in_inline_code_is_text() -> None:
    text = "The tag `<think>` opens a thought."
    assert read(text, "hermes").content == text


def _closing_tokens(format: Format) -> list[str]:
    """Return the special tokens that close anything but reasoning."""
    kinds = [(BODIES[type(body)], body) for body in format.bodies]
    closes = [pair[1] for pair in (format.call, format.section, *format.content) if pair]
    closes += [close for kind, body in kinds for close in (kind.closing(body), kind.value_closing(body))]
    return [text.strip() for close in closes for text in marker_alternatives(close) if isinstance(text, Special)]


@pytest.mark.parametrize("name", sampled(name for name, format in FORMATS.items() if format.reasoning))
def test_special_tokens_and_role_names_between_them_are_not_reasoning(name: str) -> None:
    format = FORMATS[name]
    assert format.reasoning is not None
    opens = marker_alternatives(format.reasoning[0])[0]
    for token in {*special_tokens(format), *_closing_tokens(format)}:
        reply = read(f"{opens}Owls {token} hunt", name)
        assert {*f"{reply.reasoning} {reply.content}".split()} <= {"Owls", "hunt"}, (token, reply.parts)


@pytest.mark.parametrize("name, close", [("kimi_k2", "<|tool_call_end|>"), ("kimi_k3", "<|close|>response<|sep|>")])
def test_a_quoted_closing_token_stays_in_the_reasoning(name: str, close: str) -> None:
    text = f"It would write `{close}` there."
    reply = read(text, name, reasoning="open")
    assert (reply.reasoning, codes(reply)) == (text, [])
    assert codes(read(f"So {close} it was", name, reasoning="open")) == ["stray_marker"]


def test_a_sentence_that_closes_reasoning_is_text_without_open_reasoning() -> None:
    for text in ("Good day. Here is my response: no.", "Here is my response: no."):
        assert (read(text, "granite3").content, read(text, "granite3").reasoning) == (text, "")
    thought = "Here is my thought process: Birds. Here is my response: an owl. Here is my response: again."
    reply = read(thought, "granite3")
    assert (reply.reasoning, reply.content) == ("Birds.", "an owl. Here is my response: again.")


FORMATS_WITH_REASONING_MESSAGES = [
    name for name, format in FORMATS.items() if format.channels and "reasoning" in format.channels.messages
]


@pytest.mark.parametrize("marks", ["`{}`", "``{}``", "\n```\n{}\n```\n", '"{}"', "\u201c{}\u201d"])
@pytest.mark.parametrize("name", FORMATS_WITH_REASONING_MESSAGES)
def test_messages_quoted_in_a_reasoning_message_are_reasoning(name: str, marks: str) -> None:
    channels = FORMATS[name].channels
    assert channels is not None
    start = str(marker_alternatives(channels.start)[0])
    call = render(make_call("f", s="x"), format=name, tools=TOOLS).lstrip()
    (opens_reasoning, closes_reasoning), (opens_content, closes_content) = (
        channels.messages["reasoning"],
        channels.messages["content"],
    )
    for shown in (f"{start} {call}", call, f"{start} {call}{start} {call}"):
        thought = f"I could send {marks.format(shown)} but do not."
        reply = read(f"{opens_reasoning}{thought}{closes_reasoning}{start}{opens_content}Hi{closes_content}", name)
        assert (reply.content, reply.attempts, reply.reasoning) == ("Hi", (), thought)


@pytest.mark.parametrize("open", ["`", '"', "\u201c", "```\n", "it's"])
@pytest.mark.parametrize("name", FORMATS_WITH_REASONING_MESSAGES)
def test_an_unclosed_quotation_in_a_reasoning_message_hides_no_later_call(name: str, open: str) -> None:
    channels = FORMATS[name].channels
    assert channels is not None
    thinks, ends = channels.messages["reasoning"]
    call = render(make_call("f", s="x"), format=name, tools=TOOLS)
    reply = read(f"{thinks}I read {open}a page{ends}{marker_alternatives(channels.start)[0]}{call}", name)
    assert (args(reply), reply.reasoning) == ([("f", {"s": "x"})], f"I read {open}a page")
