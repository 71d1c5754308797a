"""Every repair in every format that carries JSON: the same damage gives the same call or a rejected one."""

from __future__ import annotations

import json
from typing import Literal

import pytest

from rightcall import Reply, Tool, Toolset, parse, read, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Envelope, NameThenJson, marker_alternatives
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled
from support.replies import INTEGER, STRING, Json, blocking, codes, make_call, runnable

Policy = Literal["off", "safe", "lenient"]
PROPERTIES: Json = {
    "city": STRING,
    "days": INTEGER,
    "ok": {"type": "boolean"},
    "tags": {"type": "array", "items": STRING},
}
TOOLS = Toolset(
    [Tool(name="f", parameters={"type": "object", "properties": PROPERTIES, "additionalProperties": False})]
)
WIRES = [name for name, format in FORMATS.items() if isinstance(format.bodies[0], (Envelope, NameThenJson))]
# One format of each kind: an envelope alone, in a list, under a key, with its name as key; a name and JSON with and
# without a closing marker; messages with headers.
KINDS = ["hermes", "jamba", "mistral", "generic_json", "apertus", "kimi_k2", "mistral_v11", "functionary_v31"]
KINDS += ["functionary_v2", "functionary_v32", "harmony", "deepseek_v3", "llama3_json"]
# These formats write a fence or nothing where others close a call, so the same text has another meaning.
FORMATS_WITHOUT_CLOSE = {"granite_20b_fc", "gigachat3", "gigachat31"}

TRUTH: Json = {"city": "a b", "days": 3, "tags": ["x"]}
SENT = json.dumps(TRUTH)

EXACT: dict[str, tuple[str, str]] = {
    # the input and the rule that repairs it
    "smart quotes": (SENT.replace('"city"', "“city”"), "smart_quotes"),
    "single quotes": (SENT.replace('"', "'"), "single_quotes"),
    "a bare key": (SENT.replace('"city"', "city"), "unquoted_key"),
    "a trailing comma": (SENT.replace("]}", "],}"), "trailing_comma"),
    "an object in a string": (json.dumps(SENT), "double_encoded"),
}
REPEATED_OBJECTS = {
    "the object twice": SENT + SENT,
    "an empty object before": "{}" + SENT,
    "an empty one after": SENT + "\n{}",
}
GUESSES: dict[str, tuple[str, str]] = {
    "a comment": (SENT.replace(", ", ", // here\n", 1), "comment"),
    "a comment at the end": (SENT[:-1] + " # here\n}", "comment"),
    "a bracket in a comment": (SENT.replace(", ", ", /* } */ ", 1), "comment"),
    "a missing comma": (SENT.replace(', "days"', ' "days"'), "missing_comma"),
    "a bare word": (SENT.replace('"a b"', "ab"), "unquoted_value"),
}


def render_in(wire: str, arguments: str) -> str:
    call = make_call("f", **TRUTH)
    text = render(call, format=wire, tools=TOOLS)
    assert call.json in text
    return text.replace(call.json, arguments)


def parse_in(wire: str, arguments: str, policy: Policy = "safe") -> Reply:
    return parse(render_in(wire, arguments), format=wire, tools=TOOLS, repair=policy)


def repair_rules(reply: Reply) -> list[str]:
    return [repair.rule for call in reply.attempts for repair in call.repairs]


@pytest.mark.parametrize("kind", EXACT)
@pytest.mark.parametrize("wire", sampled(WIRES))
def test_exact_repairs_give_the_same_call_in_every_format(wire: str, kind: str) -> None:
    sent, rule = EXACT[kind]
    for policy in ("safe", "lenient"):
        reply = parse_in(wire, sent, policy)
        assert (runnable(reply), repair_rules(reply), reply.content) == ([("f", TRUTH)], [rule], "")
    assert runnable(parse_in(wire, sent, "off")) == []


@pytest.mark.parametrize("kind", REPEATED_OBJECTS)
@pytest.mark.parametrize("wire", sampled(WIRES))
def test_repeated_argument_objects_are_repaired_only_outside_an_envelope(wire: str, kind: str) -> None:
    reply = parse_in(wire, REPEATED_OBJECTS[kind])
    if isinstance(FORMATS[wire].bodies[0], NameThenJson):
        assert (runnable(reply), repair_rules(reply), reply.content) == ([("f", TRUTH)], ["concatenated"], "")
    else:
        assert (runnable(reply), len(blocking(reply))) == ([], 1)


@pytest.mark.parametrize("kind", GUESSES)
@pytest.mark.parametrize("wire", sampled(WIRES))
def test_guesses_are_made_in_every_format_if_the_policy_allows_them(wire: str, kind: str) -> None:
    sent, rule = GUESSES[kind]
    assert runnable(parse_in(wire, sent)) == []
    reply = parse_in(wire, sent, "lenient")
    assert (repair_rules(reply), reply.content) == ([rule], "")
    assert runnable(reply) == [("f", TRUTH | ({"city": "ab"} if rule == "unquoted_value" else {}))]


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```"])
@pytest.mark.parametrize("wire", sampled(WIRES))
def test_a_code_fence_around_the_arguments_is_removed_or_blocks_the_call(wire: str, fence: str) -> None:
    reply = parse_in(wire, fence.replace("{}", SENT))
    assert runnable(reply) in ([], [("f", TRUTH)])
    if wire in ("deepseek_v31", "functionary_v31", "kimi_k2"):
        assert (runnable(reply), repair_rules(reply), reply.content) == ([("f", TRUTH)], ["code_fence"], "")


@pytest.mark.parametrize("extra", ["}", "}}"])
@pytest.mark.parametrize("wire", sampled(wire for wire in WIRES if wire != "mistral_v3"))
def test_superfluous_brackets_are_dropped_or_text(wire: str, extra: str) -> None:
    reply = parse_in(wire, SENT + extra)
    assert runnable(reply) == [("f", TRUTH)]
    if wire in FORMATS_WITHOUT_CLOSE:
        assert (repair_rules(reply), reply.content) == ([], extra)
    else:
        assert (repair_rules(reply), reply.content) == (["extra_closer"], "")


@pytest.mark.parametrize("wire", sampled(WIRES))
def test_two_different_argument_objects_are_runnable_in_no_format(wire: str) -> None:
    for policy in ("off", "safe", "lenient"):
        reply = parse_in(wire, '{"city": "q"}' + SENT, policy)
        assert (runnable(reply), len(blocking(reply))) == ([], 1)


@pytest.mark.parametrize("missing", [1, 2])
@pytest.mark.parametrize("wire", sampled(WIRES))
def test_missing_brackets_are_inserted_only_if_the_end_of_the_call_was_seen(wire: str, missing: int) -> None:
    reply = parse_in(wire, SENT[:-missing])
    assert runnable(reply) in ([], [("f", TRUTH)])
    assert bool(runnable(reply)) == (repair_rules(reply) == ["missing_closer"])
    whole = render_in(wire, SENT)
    cut = whole[: whole.index(SENT) + len(SENT) - missing]
    for policy in ("safe", "lenient"):
        assert runnable(parse(cut, format=wire, tools=TOOLS, repair=policy)) == []


@pytest.mark.parametrize("wire", KINDS)
def test_damage_parses_the_same_under_every_chunking(wire: str) -> None:
    more = [SENT + "}", SENT + "}}", SENT[:-1], '{"city": "q"}' + SENT, f"```json\n{SENT}\n```", SENT + " // x\n"]
    for sent in [*(sent for sent, _ in EXACT.values()), *more]:
        for before in ("", "Hi. "):
            hold_of_every_cut(before + render_in(wire, sent), Setting(wire, TOOLS))


@pytest.mark.parametrize("kind", EXACT)
def test_arguments_in_a_provider_field_are_repaired_like_text(kind: str) -> None:
    sent, rule = EXACT[kind]
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": sent}}
    message = {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]}
    reply = read(message, tools=TOOLS)
    assert (runnable(reply), repair_rules(reply)) == ([("f", TRUTH)], [rule])
    assert runnable(read(message, tools=TOOLS, repair="off")) == []


def test_a_code_fence_of_the_format_is_not_treated_as_empty_arguments() -> None:
    reply = parse_in("deepseek_v3", f"```\n{SENT}\n```", "lenient")
    assert runnable(reply) == []
    assert blocking(reply)


@pytest.mark.parametrize("wire", sampled(WIRES))
def test_an_unclosed_code_fence_around_the_arguments_is_repaired_if_the_call_is_closed(wire: str) -> None:
    reply = parse_in(wire, f"```json\n{SENT}")
    assert runnable(reply) in ([], [("f", TRUTH)])
    if wire in ("deepseek_v31", "functionary_v31", "kimi_k2"):
        assert (runnable(reply), repair_rules(reply), reply.content) == ([("f", TRUTH)], ["code_fence"], "")
    whole = render_in(wire, f"```json\n{SENT}")
    assert runnable(parse(whole[: whole.index(SENT) + 9], format=wire, tools=TOOLS)) == []


def opens_with_a_tag(name: str) -> bool:
    body = FORMATS[name].bodies[0]
    return isinstance(body, NameThenJson) and marker_alternatives(body.open)[0].endswith("{name}>")


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if opens_with_a_tag(name)))
def test_an_incomplete_tag_before_json_is_reported(name: str) -> None:
    call = render([make_call("f", days=3)], format=name, tools=TOOLS)
    damaged = call.replace("f>", "f", 1)
    for text, count in ((damaged, 0), (call + damaged, 1), (damaged.replace('f{"days": 3}', "f"), 0)):
        reply = hold_of_every_cut(text, Setting(name, TOOLS))
        assert len(reply.calls) == count and codes(reply) == ["looks_like_a_call"]
    prose = "The tag <function=f opens a call of f."
    assert hold_of_every_cut(prose, Setting(name, TOOLS)).content == prose
