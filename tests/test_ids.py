"""Call ids: kept if they precede the arguments, generated otherwise, and always unique."""

from __future__ import annotations

import pytest

from rightcall import CallStart, Ids, parse
from support.cuts import Setting
from support.cuts import read as read_chunks
from support.format_sample import sampled
from support.replies import (
    hermes,
    read,
)

every_format = pytest.mark.parametrize("name", sampled())


IDS = [
    # format, text, id of the call
    ("hermes", hermes('{"id": "abc", "name": "f", "arguments": {"s": "x"}}'), "abc"),
    (
        "cohere_command3",
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "f", "parameters": {}}]<|END_ACTION|>',
        "0",
    ),
    ("kimi_k2", "<|tool_call_begin|>functions.f:3<|tool_call_argument_begin|>{}<|tool_call_end|>", "functions.f:3"),
    ("mistral_v11", "[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{}", "abcdefghi"),
    (
        "solar_open",
        "<|tool_calls|><|tool_call:begin|>tc-1<|tool_call:name|>f<|tool_call:args|>{}<|tool_call:end|><|calls|>",
        "tc-1",
    ),
]


@pytest.mark.parametrize("format, text, id", IDS)
def test_an_id_before_the_arguments_is_kept_and_final(format: str, text: str, id: str) -> None:
    result = read_chunks(list(text), Setting(format))
    assert [event.id for event in result.events if isinstance(event, CallStart)] == [id]
    assert [call.id for call in result.reply.attempts] == [id]


def test_an_id_after_the_arguments_is_ignored_and_kept_in_the_raw_text() -> None:
    text = '[TOOL_CALLS] [{"name": "f", "arguments": {}, "id": "abcdefghi"}]'
    [call] = read(text, "mistral_v3").attempts
    assert call.id == "c_0_0"
    assert "abcdefghi" in call.raw


def test_a_call_without_an_id_gets_a_unique_id() -> None:
    one = hermes('{"name": "f", "arguments": {"s": "x"}}')
    ids = [call.id for call in parse("\n".join([one] * 5), format="hermes").attempts]
    assert len(set(ids)) == 5
    assert all(id.startswith("call_") for id in ids)


def test_duplicate_ids_in_a_reply_become_unique() -> None:
    one = hermes('{"id": "a", "name": "f", "arguments": {}}')
    assert [call.id for call in parse(one * 3, format="hermes").attempts] == ["a", "a_dup_1", "a_dup_2"]


def test_ids_are_unique_over_all_turns_of_a_conversation() -> None:
    ids = Ids.numbered("capture_call")
    turns = [["a", "a", "a"], ["a", ""], ["capture_call_1_1"]]
    used = []
    for turn in turns:
        used.append([ids.take(received) for received in turn])
        ids.next_turn()
    assert used == [
        ["a", "a_dup_1", "a_dup_2"],
        ["a_dup_3", "capture_call_1_1"],
        ["capture_call_1_1_dup_1"],
    ]
    assert ids.received("a_dup_3") == "a"
    assert ids.received("capture_call_1_1") == "capture_call_1_1"


def test_nine_character_ids_are_kept_or_generated_and_never_suffixed() -> None:
    ids = Ids.nine()
    assert ids.take("abcdefghi") == "abcdefghi"
    others = [ids.take("abcdefghi"), ids.take("functions.f:0"), ids.take(""), ids.take("too-short")]
    others.append(ids.take("abcdéfghi"))  # nine letters, one of them not ASCII
    assert all(len(id) == 9 and id.isalnum() and id.isascii() for id in others)
    assert len({"abcdefghi", *others}) == 6
    assert ids.received(others[1]) == "functions.f:0"


def test_numbered_ids_are_the_same_on_every_run() -> None:
    text = hermes('{"name": "f"}') * 2
    for _ in range(2):
        assert [call.id for call in parse(text, format="hermes", ids=Ids.numbered("run")).attempts] == [
            "run_0_0",
            "run_0_1",
        ]
