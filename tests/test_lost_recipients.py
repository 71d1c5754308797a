"""A message for a tool that lost its recipient always leaves a problem."""

from __future__ import annotations

import pytest

from rightcall import Call, Toolset, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Special, marker_alternatives
from rightcall.testing.laws.marker_texts import openers_of
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled
from support.replies import codes

_MAIL = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
TOOLS = Toolset.of([{"name": "send_mail", "parameters": _MAIL}])
_TO, _BODY = " to=functions.send_mail", '<|message|>{"to": "a"}'
LOST = [
    f"<|channel|>{first}{_TO}<|channel|>{second}{_BODY}{end}"
    for first in ("commentary", "final")
    for second in ("commentary", "final", "analysis")
    for end in ("<|call|>", "<|end|>", "")
] + [
    *(f"<|channel|>{channel}{_BODY}<|call|>" for channel in ("commentary", "final", "analysis")),
    f"<|channel|>commentary<|constrain|>json{_BODY}<|call|>",
    '{"to": "a"}<|call|>',
]


@pytest.mark.parametrize("text", LOST)
def test_a_lost_recipient_is_reported(text: str) -> None:
    reply = hold_of_every_cut(text, Setting("harmony", TOOLS))
    assert not reply.calls and "opener_without_call" in codes(reply)


@pytest.mark.parametrize(
    "text",
    [
        f"<|channel|>commentary{_TO}{_BODY}<|call|>",
        f"<|channel|>commentary{_TO}{_BODY}<|call|><|call|>",
        f"<|channel|>commentary{_TO}<|channel|>commentary{_TO}{_BODY}<|call|>",
    ],
)
def test_a_message_with_a_recipient_is_a_call_without_problems(text: str) -> None:
    reply = hold_of_every_cut(text, Setting("harmony", TOOLS))
    assert len(reply.calls) == 1 and codes(reply) == []


def test_a_repeated_header_without_a_declared_tool_is_text() -> None:
    text = "<|channel|>commentary to=assistant<|channel|>final<|message|>Good morning<|return|>"
    reply = hold_of_every_cut(text, Setting("harmony", TOOLS))
    assert (reply.content, codes(reply)) == ("Good morning", [])


@pytest.mark.parametrize("text", [" to=<|message|>", " to= <|message|>", " to=functions.<|message|>"])
def test_a_message_with_an_empty_recipient_is_a_nameless_call_or_text_with_a_note(text: str) -> None:
    call = hold_of_every_cut(f'<|channel|>commentary{text} {{"to": "a"}}<|call|>', Setting("harmony", TOOLS))
    assert codes(call) == ["invalid_name"] and call.refused[0].arguments == {"to": "a"}
    text_message = hold_of_every_cut(f"<|channel|>commentary{text}Good morning<|end|>", Setting("harmony", TOOLS))
    assert (text_message.content, codes(text_message)) == ("Good morning", ["opener_without_call"])


NAMED = [
    name
    for name, format in FORMATS.items()
    if format.channels is not None
    and any(isinstance(start, Special) for start in marker_alternatives(format.channels.start))
]


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if openers_of(FORMATS[name]) or name in NAMED))
@pytest.mark.parametrize("blank", ["", " ", "  "])
def test_a_call_with_a_blank_name_is_rejected_or_its_name_is_inferred(name: str, blank: str) -> None:
    if name == "functionary_v32":
        return  # Only the name distinguishes its header from a line of text.
    wire = render([Call("send_mail", {"to": "a"})], format=name, tools=TOOLS).replace("send_mail", blank)
    reply = hold_of_every_cut(wire, Setting(name, TOOLS))
    assert reply.attempts and not reply.content, reply
    assert [call.name for call in reply.calls] in ([], ["send_mail"])


@pytest.mark.parametrize("name", [*NAMED, "auto"])
def test_an_incomplete_header_at_the_end_is_not_text(name: str) -> None:
    for wire in NAMED if name == "auto" else [name]:
        start = next(iter(marker_alternatives(FORMATS[wire].channels.start)))  # type: ignore[union-attr]
        call = str(start) + render([Call("send_mail", {"to": "a"})], format=wire, tools=TOOLS)
        assert isinstance(start, Special)
        least = len(start.strip()) if name == "auto" else len(start.tokens[0])
        for end in range(
            call.index(start.strip()) + least, call.index("<|message|>" if "<|message|>" in call else "{")
        ):
            reply = hold_of_every_cut("Well." + call[:end], Setting(name, TOOLS))
            assert (reply.content, codes(reply)) == ("Well.", ["truncated"]), call[:end]


@pytest.mark.parametrize("text", ["Well.\n>>>send_mail", ">>>send_mail", ">>>all\nWell.\n>>>send_mail"])
def test_a_declared_name_alone_after_its_mark_is_a_truncated_call(text: str) -> None:
    reply = hold_of_every_cut(text, Setting("functionary_v32", TOOLS))
    assert [call.name for call in reply.refused] == ["send_mail"] and codes(reply) == ["truncated"]
    assert hold_of_every_cut(">>>print", Setting("functionary_v32", TOOLS)).content == ">>>print"


def test_a_reply_can_begin_with_a_channel_without_its_marker() -> None:
    """The prompt may end with `>>>`. The text after the channel does not begin like arguments."""
    reply = hold_of_every_cut("all\nWell.", Setting("functionary_v32", TOOLS))
    assert (reply.content, reply.attempts, reply.problems) == ("Well.", (), ())


@pytest.mark.parametrize("channel, kind", [("analysis", "reasoning"), ("commentary", "content"), ("final", "content")])
@pytest.mark.parametrize("role", ["assistant", "user"])
@pytest.mark.parametrize("header", ["<|channel|>{} to={}", "<|start|>assistant to={1}<|channel|>{0}"])
def test_a_message_to_a_role_is_reasoning_or_content_by_its_channel(
    channel: str, kind: str, role: str, header: str
) -> None:
    text = header.format(channel, role) + "<|message|>First the plan.<|end|>"
    for name in ("harmony", "auto"):
        reply = hold_of_every_cut(text, Setting(name, TOOLS))
        assert not reply.attempts and getattr(reply, kind) == "First the plan."
