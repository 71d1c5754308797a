"""Arguments that are not JSON: each repair rule with its receipt, and the laws for all of them.

Every text is read under every chunking. Its carriers: a JSON envelope, a name followed by JSON, a provider's own field.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Call, Problem, Reply, Tool, Toolset, check, parse, read, render, repair
from rightcall.formats import FORMATS
from rightcall.formats.spec import Envelope, NameThenJson
from rightcall.repairs.finish import finalize_call
from rightcall.repairs.loose_json import UnreadableJson, read_loose
from support.cuts import Setting, hold_of_every_cut
from support.cuts import read as read_chunks
from support.format_sample import sampled, selected
from support.replies import INTEGER, STRING, Json, args, blocking, codes, hermes, make_call, runnable
from support.steps import MOST, measure_growth

Policy = Literal["off", "safe", "lenient"]

PROPERTIES: Json = {
    "city": STRING,
    "days": INTEGER,
    "ok": {"type": "boolean"},
    "tags": {"type": "array", "items": STRING},
    "o": {"type": "object"},
}


def weather(*, read_only: bool = False) -> Tool:
    parameters = {"type": "object", "properties": PROPERTIES, "additionalProperties": False}
    return Tool(name="f", parameters=parameters, read_only=read_only)


TOOLS = Toolset([weather()])
READ_ONLY = Toolset([weather(read_only=True)])


def native_call(sent: str, *, tools: Toolset = TOOLS, policy: Policy = "safe") -> Reply:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": sent}}
    return read({"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]}, tools=tools, repair=policy)


def json_envelope(sent: str, *, tools: Toolset = TOOLS, policy: Policy = "safe") -> Reply:
    text = hermes(f'{{"name": "f", "arguments": {sent}}}')
    return hold_of_every_cut(text, Setting("hermes", tools, repair=policy))


def name_then_json(sent: str, *, tools: Toolset = TOOLS, policy: Policy = "safe") -> Reply:
    text = f"<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{sent}<|tool_call_end|>"
    return hold_of_every_cut(text, Setting("kimi_k2", tools, repair=policy))


Carrier = Callable[..., Reply]
EVERY: tuple[Carrier, ...] = (native_call, json_envelope, name_then_json)


def receipts(reply: Reply) -> list[tuple[str, str, str, str, str]]:
    return [(r.rule, r.kind, r.path, r.before, r.after) for call in reply.attempts for r in call.repairs]


# -- the repair rules --------------------------------------------------------------------------------------------------

RUNGS: list[tuple[str, Json, str, str, str]] = [
    # sent, arguments, rule, before, after
    ("{“city”: “Oslo”}", {"city": "Oslo"}, "smart_quotes", "“city”", '"city"'),
    ("{‘city’: ‘Oslo’}", {"city": "Oslo"}, "smart_quotes", "‘city’", '"city"'),
    ("{'city': 'Oslo'}", {"city": "Oslo"}, "single_quotes", "'city'", '"city"'),
    ("{'city': \"it's\"}", {"city": "it's"}, "single_quotes", "'city'", '"city"'),
    ("{'city': 'say \"hi\"'}", {"city": 'say "hi"'}, "single_quotes", "'city'", '"city"'),
    ('{"city": \'say "hi"\'}', {"city": 'say "hi"'}, "single_quotes", "'say \"hi\"'", r'"say \"hi\""'),
    ("{`city`: `Oslo`}", {"city": "Oslo"}, "single_quotes", "`city`", '"city"'),
    ('{"ok": True}', {"ok": True}, "python_literal", "True", "true"),
    ('{"ok": False, "city": "x"}', {"ok": False, "city": "x"}, "python_literal", "False", "false"),
    ('{"o": {"a": None}}', {"o": {"a": None}}, "python_literal", "None", "null"),
    ('{"o": {"a": undefined}}', {"o": {"a": None}}, "python_literal", "undefined", "null"),
    ('{"city": "Oslo",}', {"city": "Oslo"}, "trailing_comma", ",}", "}"),
    ('{"tags": ["a", "b",]}', {"tags": ["a", "b"]}, "trailing_comma", ",]", "]"),
    ('{city: "Oslo"}', {"city": "Oslo"}, "unquoted_key", "city", '"city"'),
    ('{"city": "a\nb\tc"}', {"city": "a\nb\tc"}, "raw_newline", '"a\nb\tc"', r'"a\nb\tc"'),
    ('{"city": "it\\\'s"}', {"city": "it's"}, "bad_escape", '"it\\\'s"', '"it\'s"'),
    ('{"city": "\\d+ \\w"}', {"city": "\\d+ \\w"}, "bad_escape", '"\\d+ \\w"', r'"\\d+ \\w"'),
    ('{"tags": ["a"}', {"tags": ["a"]}, "missing_closer", "}", "]}"),
]


@pytest.mark.parametrize("carrier", EVERY, ids=lambda carrier: str(carrier.__name__))
@pytest.mark.parametrize("sent, arguments, rule, before, after", RUNGS)
def test_each_rule_repairs_its_damage_and_leaves_a_receipt(
    carrier: Carrier, sent: str, arguments: Json, rule: str, before: str, after: str
) -> None:
    reply = carrier(sent)
    assert (args(reply), reply.problems, reply.content) == ([("f", arguments)], (), "")
    assert receipts(reply) == [(rule, "exact", "", before, after)]
    assert json.loads(reply.attempts[0].json) == arguments


@pytest.mark.parametrize("carrier", EVERY, ids=lambda carrier: str(carrier.__name__))
@pytest.mark.parametrize("sent", [rung[0] for rung in RUNGS])
def test_without_repair_damage_is_a_problem_and_the_text_is_unchanged(carrier: Carrier, sent: str) -> None:
    reply = carrier(sent, policy="off")
    assert receipts(reply) == []
    assert runnable(reply) == []
    assert blocking(reply)
    assert [(call.complete, call.arguments) for call in reply.attempts] == [(False, {})]


@pytest.mark.parametrize("extra", ["}", "}}", "}}}", "]", ")", " }\n}"])
def test_one_to_three_extra_closers_are_removed(extra: str) -> None:
    reply = native_call('{"city": "Oslo"}' + extra)
    assert args(reply) == [("f", {"city": "Oslo"})]
    assert [r[0] for r in receipts(reply)] == ["extra_closer"]
    assert runnable(native_call('{"city": "Oslo"}' + "}" * 4)) == []


@pytest.mark.parametrize("extra", ["}", "}}", "}}}"])
def test_extra_closers_before_the_close_of_a_call_are_removed(extra: str) -> None:
    for reply in (json_envelope('{"city": "Oslo"}' + extra), name_then_json('{"city": "Oslo"}' + extra)):
        assert (runnable(reply), reply.content) == ([("f", {"city": "Oslo"})], "")
        assert [(r[0], r[3]) for r in receipts(reply)] == [("extra_closer", extra)]
    assert runnable(json_envelope('{"city": "Oslo"}}}}}}')) == []


@pytest.mark.parametrize("missing", ["}", "]}", "}}", "]}}"])
def test_final_closers_are_added_only_if_the_call_was_closed(missing: str) -> None:
    whole = {"}": '{"city": "Oslo"}', "]}": '{"tags": ["a"]}', "}}": '{"o": {"a": 1}}', "]}}": '{"o": {"a": [1]}}'}
    sent = whole[missing].removesuffix(missing)
    properties: Json = {key: {} for key in json.loads(whole[missing])}
    only = Toolset([Tool(name="f", parameters={"type": "object", "properties": properties})])
    for carrier in (json_envelope, name_then_json):
        reply = carrier(sent, policy="lenient")
        assert args(reply) == [("f", json.loads(whole[missing]))]
        assert [r[0] for r in receipts(reply)] == ["missing_closer"]
        # An open object may be missing further members, unless it has all that are declared.
        assert runnable(carrier(sent)) in ([], args(reply))
        assert missing != "}" or runnable(carrier(sent, tools=only))
    for policy in ("safe", "lenient"):
        assert blocking(native_call(sent, policy=policy)) == [("truncated", 0)]


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", "\n```json\n{}```\n", "```JSON \n{}\n```"])
def test_a_code_fence_around_arguments_is_removed(fence: str) -> None:
    sent = fence.replace("{}", '{"city": "Oslo"}')
    reply = native_call(sent)
    assert (args(reply), reply.attempts[0].json) == ([("f", {"city": "Oslo"})], '{"city": "Oslo"}')
    before = sent.lstrip()
    assert [(r[0], r[1], r[3], r[4]) for r in receipts(reply)] == [("code_fence", "exact", before, '{"city": "Oslo"}')]
    loose = native_call(fence.replace("{}", "{'city': 'Oslo'}"))
    assert [r[0] for r in receipts(loose)] == ["code_fence", "single_quotes"]


@pytest.mark.parametrize("format", ["hermes", "auto"])
def test_a_code_fence_inside_the_markers_is_removed(format: str) -> None:
    text = hermes('```json\n{"name": "f", "arguments": {"city": "Oslo"}}\n```')
    reply = parse(text, format=format, tools=TOOLS)
    assert (runnable(reply), reply.content) == ([("f", {"city": "Oslo"})], "")
    assert [r[0] for r in receipts(reply)] == ["code_fence"]


def test_an_envelope_with_unquoted_keys_is_repaired() -> None:
    reply = parse(hermes('{name: "f", arguments: {city: "Oslo"}}'), format="hermes", tools=TOOLS)
    assert runnable(reply) == [("f", {"city": "Oslo"})]
    assert [r[0] for r in receipts(reply)] == ["unquoted_key"]


PATHS = [r"C:\temp\new\docs", r"C:\new", r"\\server\share\tmp\new", r"C:\Users\bob"]


@pytest.mark.parametrize("path", PATHS)
def test_a_windows_path_keeps_its_backslashes(path: str) -> None:
    for carrier in EVERY:
        reply = carrier(f'{{"city": "{path}\\docs"}}')
        assert args(reply) == [("f", {"city": path + "\\docs"})]
        assert [r[0] for r in receipts(reply)] == ["bad_escape"]


@pytest.mark.parametrize(
    "sent, arguments, rule",
    [
        ('{"city": "O"}{"city": "O"}', {"city": "O"}, "concatenated"),
        ('{}{"city": "O"}', {"city": "O"}, "concatenated"),
        ('{"city": "O"}\n{}', {"city": "O"}, "concatenated"),
        ('{"city": "O"} {"city": "O"} {"city": "O"}', {"city": "O"}, "concatenated"),
    ],
)
def test_repeated_identical_objects_are_one_object(sent: str, arguments: Json, rule: str) -> None:
    reply = native_call(sent)
    assert args(reply) == [("f", arguments)]
    assert [r[0] for r in receipts(reply)] == [rule]


def test_different_objects_are_never_merged() -> None:
    for policy in ("safe", "lenient"):
        assert runnable(native_call('{"city": "a"}{"city": "b"}', policy=policy)) == []


# A number whose spelling is not JSON contains more information than its value.


@pytest.mark.parametrize("digits", ["02134", "007", "+3", "1_000", "1."])
def test_digits_of_a_declared_string_are_kept_as_written(digits: str) -> None:
    for carrier in EVERY:
        [(_, arguments)] = args(carrier(f'{{"city": {digits}}}'))
        assert arguments in ({"city": digits}, {})


@pytest.mark.parametrize("sent", ['\ufeff{"city": "Oslo"}', '{"city":\u00a0"Oslo"}', '{\u00a0"city": "Oslo"}'])
def test_unusual_blanks_are_removed_only_with_a_receipt(sent: str) -> None:
    reply = native_call(sent)
    if runnable(reply):
        assert receipts(reply)
        assert json.loads(reply.attempts[0].json) == {"city": "Oslo"}


# -- double encoding ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("carrier", EVERY, ids=lambda carrier: str(carrier.__name__))
def test_arguments_in_a_string_are_decoded(carrier: Carrier) -> None:
    sent = json.dumps('{"city": "Oslo"}')
    reply = carrier(sent)
    assert (args(reply), reply.attempts[0].json) == ([("f", {"city": "Oslo"})], '{"city": "Oslo"}')
    assert receipts(reply) == [("double_encoded", "exact", "", sent, '{"city": "Oslo"}')]
    assert blocking(carrier(sent, policy="off")) == [("arguments_not_object", 0)]


# -- guesses -----------------------------------------------------------------------------------------------------------

GUESSES: list[tuple[str, Json, str]] = [
    ('{"city": Oslo}', {"city": "Oslo"}, "unquoted_value"),
    ('{"city": "Oslo" "days": 3}', {"city": "Oslo", "days": 3}, "missing_comma"),
    ('{"city": "Oslo" /* here */}', {"city": "Oslo"}, "comment"),
    ('{"city": "Oslo", // here\n"days": 3}', {"city": "Oslo", "days": 3}, "comment"),
    ('{"city": "Oslo" # here\n}', {"city": "Oslo"}, "comment"),
]


@pytest.mark.parametrize("sent, arguments, rule", GUESSES)
def test_guesses_are_made_only_under_lenient_or_for_read_only_tools(sent: str, arguments: Json, rule: str) -> None:
    cases: list[tuple[Toolset, Policy, bool]] = [
        (TOOLS, "safe", False),
        (TOOLS, "off", False),
        (READ_ONLY, "off", False),
        (TOOLS, "lenient", True),
        (READ_ONLY, "safe", True),
    ]
    for tools, policy, is_repaired in cases:
        reply = native_call(sent, tools=tools, policy=policy)
        assert runnable(reply) == ([("f", arguments)] if is_repaired else [])
        assert [(r[0], r[1]) for r in receipts(reply)] == ([(rule, "guess")] if is_repaired else [])


UNREADABLE = {
    "another separator": '{"city" = "Oslo"}',
    "a sign": '{"days": +3}',
    "an underscore": '{"days": 1_000}',
    "two commas in an object": '{"city": "Oslo",, "days": 3}',
    "two commas in a list": '{"tags": ["a",, "b"]}',
    "a bracket of the wrong kind": '{"city": "a", "tags": ["b"}, "days": 3}',
    "two halves of an object": '{"city": "Oslo"}{"days": 3}',
    "an object twice inside": '{"o": {"a": 1}{"a": 1}}',
    "a fence inside": '{"o": ```json\n{"a": 1}\n```}',
    "inner quotes": '{"city": "he said "hi" there"}',
    "prose": "I am sorry, I cannot do that.",
    "markup": "<city>Oslo</city>",
    "a string that is not closed": '{"city": "he said "hi"',
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_damage_without_public_evidence_is_rejected_under_every_policy(kind: str) -> None:
    for policy in ("off", "safe", "lenient"):
        for tools in (TOOLS, READ_ONLY):
            reply = native_call(UNREADABLE[kind], tools=tools, policy=policy)
            assert (runnable(reply), receipts(reply)) == ([], [])
            assert blocking(reply)


@pytest.mark.parametrize(
    "sent", ["I cannot do that.", '{"city": NaN}', "{'city'}", '{"city": }', "{", "[}", '{"a": 1e}']
)
def test_unreadable_arguments_are_kept_with_a_problem(sent: str) -> None:
    for policy in ("off", "safe"):
        reply = native_call(sent, policy=policy)
        assert [(call.complete, call.arguments, call.json) for call in reply.attempts] == [(False, {}, sent)]
        assert len(blocking(reply)) == 1
        assert receipts(reply) == []


# -- policies ----------------------------------------------------------------------------------------------------------


def test_a_policy_can_be_set_for_each_tool() -> None:
    tools = Toolset([weather(), Tool(name="g", parameters=weather().parameters)])
    text = hermes('{"name": "f", "arguments": {"city": "x",}}') + hermes('{"name": "g", "arguments": {"city": "x",}}')
    for policy, ran in (
        ({"f": "off"}, ["g"]),
        ({"*": "off"}, []),
        ({"*": "off", "g": "safe"}, ["g"]),
        ({}, ["f", "g"]),
    ):
        reply = parse(text, format="hermes", tools=tools, repair=policy)  # type: ignore[arg-type]
        assert [name for name, _ in runnable(reply)] == ran
    guess = hermes('{"name": "g", "arguments": {"city": x}}')
    assert runnable(parse(guess, format="hermes", tools=tools, repair={"g": "lenient"})) == [("g", {"city": "x"})]
    assert runnable(parse(guess, format="hermes", tools=tools, repair={"f": "lenient"})) == []


# -- laws: a truncated call is never completed -------------------------------------------------------------------------

WHOLE = [
    make_call("f", city="it's 5\" \\ {[", days=-12, tags=["a", "b"]),
    make_call("f", o={"a": {"b": [1, None, True]}}),
]
ALLOWED = [[("f", call.arguments) for call in WHOLE[:count]] for count in range(3)]


@pytest.mark.parametrize("policy", ["safe", "lenient"])
@pytest.mark.parametrize("name", sampled())
def test_a_prefix_of_a_text_gives_only_calls_it_contains_completely(name: str, policy: Policy) -> None:
    text = render(WHOLE, format=name, tools=READ_ONLY)
    wrong = [
        text[:end]
        for end in range(len(text))
        if runnable(parse(text[:end], format=name, tools=READ_ONLY, repair=policy)) not in ALLOWED
    ]
    assert wrong == []


@pytest.mark.parametrize("policy", ["safe", "lenient"])
@pytest.mark.parametrize("name", ["hermes", "jamba", "mistral_v11", "kimi_k2", "harmony", "functionary_v31", "xlam"])
def test_no_prefix_of_a_damaged_text_becomes_a_call_with_fewer_arguments(name: str, policy: Policy) -> None:
    call = make_call("f", city="Oslo", tags=["a", "b"])
    text = render(call, format=name, tools=READ_ONLY).replace(call.json, "{'city': 'Oslo', 'tags': ['a', 'b',],}")
    assert "'Oslo'" in text
    for end in range(len(text)):
        reply = parse(text[:end], format=name, tools=READ_ONLY, repair=policy)
        assert runnable(reply) in ([], [("f", call.arguments)]), text[:end]


@pytest.mark.parametrize("name", sampled())
def test_auto_never_turns_a_prefix_into_a_complete_call(name: str) -> None:
    text = render(WHOLE[:1], format=name, tools=READ_ONLY)
    allowed = [[], *([[("f", WHOLE[0].arguments)]])]
    wrong = [
        text[:end]
        for end in range(len(text))
        if runnable(parse(text[:end], tools=READ_ONLY, repair="lenient")) not in allowed
    ]
    assert wrong == []


@pytest.mark.parametrize("policy", ["safe", "lenient"])
def test_prefixes_of_native_arguments_are_never_completed(policy: Policy) -> None:
    for whole in ('{"city": "it\'s", "tags": ["a", {"b": 1}]}', "{'city': 'Oslo', tags: ['a',],}"):
        for end in range(1, len(whole)):
            assert runnable(native_call(whole[:end], tools=READ_ONLY, policy=policy)) == [], whole[:end]


@pytest.mark.parametrize("json", ["", '{"city": "Os', '{"city": "Oslo"', "{'city': 'Oslo'}", '{"days": "3"}'])
def test_repair_never_changes_an_incomplete_call(json: str) -> None:
    call = Call("F", {}, json, complete=False)
    for policy in ("off", "safe", "lenient"):
        assert repair(call, READ_ONLY, policy=policy) is call


@pytest.mark.parametrize("json", ['{"city": "Os', '{"city": "Oslo"', '{"tags": ["a"', "{'city': 'Oslo'", '{"city": '])
def test_repair_never_completes_the_text_of_a_call(json: str) -> None:
    for policy in ("off", "safe", "lenient"):
        repaired = repair(Call("f", {}, json), READ_ONLY, policy=policy)
        assert (repaired.arguments, repaired.json, repaired.complete, repaired.ok) == ({}, json, False, False)
        assert [problem.code for problem in repaired.problems] == ["truncated" if policy != "off" else "invalid_json"]


def test_repair_parses_arguments_that_were_not_parsed() -> None:
    repaired = repair(Call("f", json='{"city": "Oslo"}'), READ_ONLY)
    assert (repaired.arguments, repaired.repairs, repaired.ok) == ({"city": "Oslo"}, (), True)
    repaired = repair(Call("f", json="{'city': 'Oslo'}"), READ_ONLY)
    assert repaired.arguments == {"city": "Oslo"} and repaired.repairs and repaired.ok


def test_repair_rejects_arguments_that_contradict_their_text() -> None:
    repaired = repair(Call("f", {"city": "Oslo"}, '{"city": "Rome"}'), READ_ONLY)
    assert (repaired.arguments, repaired.json, repaired.ok) == ({"city": "Oslo"}, '{"city": "Rome"}', False)
    assert [problem.code for problem in repaired.problems] == ["arguments_disagree"]


def test_repair_keeps_problems_that_it_cannot_check() -> None:
    known = Problem("ambiguous_end", "where it ends is not known", call=2)
    stale = Problem("wrong_type", "days must be an integer", "/days", 2)
    repaired = repair(Call("F", {"city": "Oslo"}, problems=(known, stale)), READ_ONLY)
    assert (repaired.name, repaired.problems, repaired.ok) == ("f", (known,), False)


# -- laws: damage is repaired correctly or not at all ------------------------------------------------------------------

JSON_WIRES = [name for name, format in FORMATS.items() if isinstance(format.bodies[0], (Envelope, NameThenJson))]
TRUTH: Json = {"city": "a b", "days": 3, "tags": ["x"]}
DAMAGE = {
    "single quotes": "{'city': 'a b', 'days': 3, 'tags': ['x']}",
    "trailing comma": '{"city": "a b", "days": 3, "tags": ["x"],}',
    "unquoted keys": '{city: "a b", days: 3, tags: ["x"]}',
    "smart quotes": "{“city”: “a b”, “days”: 3, “tags”: [“x”]}",
    "python": '{"city": "a b", "days": 3, "tags": ["x"], "ok": None}',
}


WORSE = {
    "comment": '{"city": "a b", /* here */ "days": 3, "tags": ["x"]}',
    "a bracket in a comment": '{"city": "a b", /* } */ "days": 3, "tags": ["x"]}',
    "quotes in a string": '{"city": "a "quoted" b", "days": 3, "tags": ["x"]}',
    "two objects": '{"city": "a"}{"city": "a b", "days": 3, "tags": ["x"]}',
    "a bracket in single quotes": "{'city': '}', 'days': 3, 'tags': ['x']}",
}


@pytest.mark.parametrize("policy", ["safe", "lenient"])
@pytest.mark.parametrize("name", sampled(JSON_WIRES))
def test_damage_in_any_json_format_never_runs_with_other_arguments(name: str, policy: Policy) -> None:
    call = make_call("f", **TRUTH)
    text = render(call, format=name, tools=TOOLS)
    assert call.json in text
    plausible = [TRUTH, TRUTH | {"city": 'a "quoted" b'}, TRUTH | {"city": "}"}]
    for kind, damaged in (DAMAGE | WORSE).items():
        reply = parse(text.replace(call.json, damaged), format=name, tools=TOOLS, repair=policy)
        assert runnable(reply) in ([], *([("f", each)] for each in plausible)), kind


@pytest.mark.parametrize("name", sampled(JSON_WIRES))
def test_damage_in_any_json_format_is_repaired(name: str) -> None:
    call = make_call("f", **TRUTH)
    text = render(call, format=name, tools=TOOLS)
    lost = [
        kind
        for kind, damaged in DAMAGE.items()
        if runnable(parse(text.replace(call.json, damaged), format=name, tools=TOOLS)) != [("f", TRUTH)]
    ]
    assert lost == []


# -- laws: live parsing ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [rung[0] for rung in RUNGS] + ['{"days": "3"}', '{"City": "Oslo"}'])
def test_live_parsing_repairs_arguments_in_the_same_way(sent: str) -> None:
    for name, text in (
        ("hermes", hermes(f'{{"name": "f", "arguments": {sent}}}')),
        ("kimi_k2", f"<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{sent}<|tool_call_end|>"),
    ):
        whole = read_chunks([text], Setting(name, TOOLS)).reply
        assert runnable(whole) and receipts(whole)
        for chunks in ([text], list(text)):
            assert read_chunks(chunks, Setting(name, TOOLS), live=True).reply == whole


# -- laws: every value -------------------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=5), values, max_size=4)
spellings = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])


@given(objects, spellings)
def test_valid_arguments_are_kept_exactly(arguments: Json, spelling: dict[str, Any]) -> None:
    sent = json.dumps(arguments, **spelling)
    for policy in ("off", "safe", "lenient"):
        call, found = finalize_call("f", sent, index=0, tools=Toolset([Tool(name="f")]), policy=policy)
        assert (call.json, call.repairs, found) == (sent, (), [])
        assert repair(Call("f", arguments, sent), [Tool(name="f")], policy=policy).json == sent


@given(objects)
def test_strict_json_read_loosely_has_the_same_value_and_no_deviations(arguments: Json) -> None:
    for text in (json.dumps(arguments), json.dumps(arguments, ensure_ascii=False, indent=1)):
        loose = read_loose(text)
        assert (json.dumps(loose.value), loose.deviations, loose.end) == (json.dumps(arguments), (), len(text))


@given(objects)
def test_a_python_dict_is_repaired_to_the_same_object(arguments: Json) -> None:
    sent = repr(arguments)
    call, found = finalize_call("f", sent, index=0, policy="safe")
    if "\\x" not in sent and "\\U" not in sent:  # Escapes that only Python has are reported as bad, and kept.
        assert (json.dumps(call.arguments), found) == (json.dumps(arguments), [])


@given(st.text(alphabet="{}[]\"'\\,:/*#` \n1aTNu“”", max_size=40))
def test_any_text_is_parsed_or_rejected_and_every_change_has_a_receipt(text: str) -> None:
    for policy in ("off", "safe", "lenient"):
        call, found = finalize_call("f", text, index=0, tools=READ_ONLY, policy=policy)
        assert call.complete or found
        if call.complete and not found:
            assert json.loads(call.json) == call.arguments
        if call.json != text and text.strip():
            assert call.repairs or text.strip() in ("null", '""') or not json.loads(text)
        if policy == "off":
            assert call.repairs == ()
        if call.repairs and call.complete:
            again, _ = finalize_call("f", call.json, index=0, tools=READ_ONLY, policy=policy)
            assert (again.arguments, again.repairs) == (call.arguments, ())
            assert len(check(again, READ_ONLY)) <= 5


@given(st.text(alphabet="{}[]\"'\\,:/*# \n1aTNu", max_size=40))
def test_text_that_ends_early_is_not_completed_unless_its_end_is_known(text: str) -> None:
    try:
        loose = read_loose(text, closed=False)
    except UnreadableJson:
        return
    assert "missing_closer" not in {deviation.rule for deviation in loose.deviations} or text[loose.end - 1 :].strip(
        "}])"
    )


# -- linear cost -------------------------------------------------------------------------------------------------------

# Repeated hostile pieces of about this many characters.
HOSTILE: dict[str, Callable[[int], str]] = {
    "quotes": lambda n: '{"city": ' + '"' * n,
    "escaped quotes": lambda n: '{"city": "' + '\\"' * (n // 2) + "}",
    "single quotes": lambda n: "{'city': " + "'" * n + "}",
    "smart quotes": lambda n: "{“city”: " + "“”" * (n // 2) + "}",
    "open brackets": lambda n: '{"tags": ' + "[" * n,
    "open braces": lambda n: "{" * n,
    "closers": lambda n: '{"city": "x"}' + "}" * n,
    "objects": lambda n: '{"city": "x"}' * (n // 13),
    "empty objects": lambda n: "{}" * (n // 2),
    "escapes": lambda n: '{"city": "' + "\\q" * (n // 2) + '"}',
    "backslashes": lambda n: '{"city": "' + "\\" * n + '"}',
    "windows": lambda n: '{"city": "C:' + "\\x" * (n // 2) + '"}',
    "commas": lambda n: '{"tags": [' + "," * n + "]}",
    "comments": lambda n: "{" + "/* x */" * (n // 7) + '"city": "x"}',
    "open comments": lambda n: '{"city": "x" ' + "/*" * (n // 2) + "}",
    "line comments": lambda n: "{" + "//x\n" * (n // 4) + '"city": "x"}',
    "hashes": lambda n: '{"city": "x" ' + "#" * n + "\n}",
    "keys": lambda n: "{" + "a:1," * (n // 4) + "}",
    "words": lambda n: '{"city": ' + "a " * (n // 2) + "}",
    "digits": lambda n: '{"days": +' + "9" * n + "}",
    "underscores": lambda n: '{"days": 1' + "_" * n + "}",
    "newlines": lambda n: '{"city": "' + "\n" * n + '"}',
    "fence": lambda n: "```json\n" + "`" * n,
    "fences": lambda n: "```json\n" * (n // 8),
    "blanks": lambda n: "{" + " " * n + "'city': 'x'}",
    "encoded": lambda n: json.dumps('{"city": ' + '"' * (n // 2)),
    "array in a string": lambda n: json.dumps({"tags": "[" + "'a'," * (n // 5) + "]"}),
    "brackets in a string": lambda n: json.dumps({"tags": "[" * n, "o": "{" * (n // 64)}),
}


def metered_tools(rightcall: Any) -> Any:
    """Return the tool of this file, created by the package that counts its steps."""
    tool = weather(read_only=True)
    return rightcall.Toolset([rightcall.Tool(name=tool.name, parameters=tool.parameters, read_only=True)])


@pytest.mark.parametrize("policy", selected(["safe", "lenient"], kept=["lenient"]))
@pytest.mark.parametrize("kind", HOSTILE)
def test_repair_takes_linear_steps_for_hostile_arguments(kind: str, policy: Policy) -> None:
    def finalize_hostile(rightcall: Any, _: Any, size: int) -> None:
        metered: Any = importlib.import_module("rightcall.repairs.finish")
        tools = metered_tools(rightcall)
        for closed in (False, True):
            metered.finalize_call("f", HOSTILE[kind](size), index=0, tools=tools, policy=policy, closed=closed)

    assert measure_growth(finalize_hostile) <= MOST


@pytest.mark.parametrize("kind", selected(HOSTILE, kept=list(HOSTILE)[::3]))
def test_parsing_takes_linear_steps_for_hostile_arguments(kind: str) -> None:
    def parse_hostile(rightcall: Any, _: Any, size: int) -> None:
        text = hermes(f'{{"name": "f", "arguments": {HOSTILE[kind](size)}}}')
        reply = rightcall.parse(text, format="hermes", tools=metered_tools(rightcall), repair="lenient")
        assert reply.attempts or codes(reply) or reply.content

    assert measure_growth(parse_hostile) <= MOST


def test_arguments_nested_beyond_the_limit_are_rejected_under_every_policy() -> None:
    for sent in ('{"o": ' + '{"a": ' * 300 + "1" + "}" * 301, "{'o': " + "{'a': " * 300 + "1" + "}" * 301):
        for policy in ("off", "safe", "lenient"):
            call, found = finalize_call("f", sent, index=0, tools=READ_ONLY, policy=policy)
            assert not call.complete
            assert found


@pytest.mark.parametrize("more", [r"\n", r"\t", r"\\d", r"\"", r"\u00e9", r"\\"])
def test_a_single_quoted_string_can_escape_its_quote_next_to_json_escapes(more: str) -> None:
    sent = f"{{'city': 'it\\'s {more}'}}"
    call = Call.from_text(
        "find", sent, tools=[Tool(name="find", parameters={"type": "object", "properties": {"city": STRING}})]
    )
    assert call.ok and call.arguments == {"city": json.loads(f'"it\'s {more}"')}
    assert {each.kind for each in call.repairs} == {"exact"}
