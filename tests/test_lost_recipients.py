"""A message that was meant for a tool and reached none is never silent."""

from __future__ import annotations

import pytest

from cuts import Setting, hold_of_every_cut
from replies import codes
from rightcall import Toolset

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
def test_a_recipient_that_was_lost_leaves_a_note(text: str) -> None:
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
def test_a_message_that_reached_its_tool_is_a_call_without_a_note(text: str) -> None:
    reply = hold_of_every_cut(text, Setting("harmony", TOOLS))
    assert len(reply.calls) == 1 and codes(reply) == []


def test_a_header_that_begins_again_without_a_declared_tool_is_as_before() -> None:
    text = "<|channel|>commentary to=assistant<|channel|>final<|message|>Good morning<|return|>"
    reply = hold_of_every_cut(text, Setting("harmony", TOOLS))
    assert (reply.content, codes(reply)) == ("Good morning", [])
