"""Every key of a call's envelope is the name, the arguments, an id or a type, or it is moved or reported.

The cases run in every format whose calls are JSON, whole and under every chunking.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rightcall import Call, Reply, Tool, Toolset, parse, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Envelope, NameThenJson
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled

Json = dict[str, Any]

TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
DELETE = Tool(
    name="delete_rows",
    parameters={
        "type": "object",
        "properties": {"table": TEXT, "where": TEXT, "limit": NUMBER, "dry_run": FLAG, "filter": {"type": "object"}},
    },
)
LOOKUP = Tool(
    name="lookup",
    parameters={"type": "object", "properties": {"word": TEXT, "n": NUMBER}, "required": ["word"]},
)
PING = Tool(name="ping", parameters={"type": "object", "properties": {}})
TOOLS = Toolset([DELETE, LOOKUP, PING])

ENVELOPES = [name for name, format in FORMATS.items() if isinstance(format.bodies[0], Envelope)]
FORMATS_WITH_NAME_FIRST = [name for name, format in FORMATS.items() if isinstance(format.bodies[0], NameThenJson)]
FORMATS_WITH_NAME_KEY = [name for name in ENVELOPES if FORMATS[name].bodies[0].names]  # type: ignore[attr-defined]
WITH_OPENER = [
    name for name in ENVELOPES if "" not in (FORMATS[name].call[0], *FORMATS[name].call[0]) and FORMATS[name].call[0]
]

every_envelope = pytest.mark.parametrize("format", sampled(ENVELOPES))
every_keyed = pytest.mark.parametrize("format", sampled(FORMATS_WITH_NAME_KEY))
every_json = pytest.mark.parametrize("format", [*ENVELOPES, *FORMATS_WITH_NAME_FIRST])


def envelope_body(format: str) -> Envelope:
    found = FORMATS[format].bodies[0]
    assert isinstance(found, Envelope)
    return found


def render_call(format: str, **arguments: Any) -> str:
    return render([Call("delete_rows", arguments)], format=format, tools=TOOLS)


def envelope(format: str, **arguments: Any) -> tuple[str, str, str]:
    """Return the text before the envelope of a rendered call, the envelope, and the text after it."""
    text = render_call(format, **arguments)
    keys = "|".join([*envelope_body(format).names, *envelope_body(format).ids, "delete_rows"])
    begin = re.search(rf'\{{\s*"(?:{keys})"', text)
    assert begin is not None
    _, end = json.JSONDecoder().raw_decode(text, begin.start())
    return text[: begin.start()], text[begin.start() : end], text[end:]


def with_members(format: str, members: str, **arguments: Any) -> str:
    """Return a rendered call with more members at the end of its envelope."""
    before, inside, behind = envelope(format, **arguments)
    return f"{before}{inside.rstrip()[:-1].rstrip()}, {members}}}{behind}"


def with_envelope(format: str, inside: str) -> str:
    """Return a rendered call with another envelope."""
    before, _, behind = envelope(format, table="users")
    return before + inside + behind


def read(text: str, format: str, repair: Any = "safe", tools: Toolset | None = TOOLS) -> Reply:
    return hold_of_every_cut(text, Setting(format, tools, repair=repair))


def runnable_calls(reply: Reply) -> list[tuple[str, Json]]:
    return [(call.name, call.arguments) for call in reply.calls]


def note_codes(reply: Reply) -> list[str]:
    return [problem.code for problem in reply.problems if not problem.blocking]


def blocking_codes(reply: Reply) -> list[str]:
    return [problem.code for call in reply.refused for problem in call.problems if problem.blocking]


# -- keys beside the arguments -----------------------------------------------------------------------------------------


@every_envelope
def test_a_declared_key_beside_the_arguments_becomes_an_argument(format: str) -> None:
    reply = read(with_members(format, '"where": "id=7"', table="users"), format)
    assert runnable_calls(reply) == [("delete_rows", {"table": "users", "where": "id=7"})]
    [receipt] = reply.calls[0].repairs
    assert (receipt.rule, receipt.kind, receipt.path, receipt.after) == (
        *("hoisted_argument", "schema", "/where"),
        '"id=7"',
    )
    assert json.loads(reply.calls[0].json) == reply.calls[0].arguments


@every_envelope
def test_a_declared_key_beside_the_arguments_blocks_the_call_without_repair(format: str) -> None:
    reply = read(with_members(format, '"where": "id=7"', table="users"), format, repair="off")
    assert (runnable_calls(reply), blocking_codes(reply)) == ([], ["misplaced_argument"])
    assert "'where'" in reply.problems[0].message


@every_envelope
def test_a_declared_key_with_a_value_of_the_wrong_type_blocks_the_call(format: str) -> None:
    reply = read(with_members(format, '"dry_run": "perhaps"', table="users"), format)
    assert (runnable_calls(reply), blocking_codes(reply)) == ([], ["wrong_type"])


@every_envelope
def test_a_declared_key_in_another_spelling_becomes_an_argument(format: str) -> None:
    reply = read(with_members(format, '"dryRun": true', table="users"), format)
    assert runnable_calls(reply) == [("delete_rows", {"table": "users", "dry_run": True})]


@every_envelope
def test_an_unknown_key_is_reported_as_a_note(format: str) -> None:
    reply = read(with_members(format, '"reason": "clean up", "mood": [1]', table="users"), format)
    assert (runnable_calls(reply), note_codes(reply)) == ([("delete_rows", {"table": "users"})], ["unknown_key"])
    assert "'reason'" in reply.problems[0].message and "'mood'" in reply.problems[0].message


@every_envelope
def test_two_values_of_an_argument_inside_and_outside_the_arguments_block_the_call(format: str) -> None:
    reply = read(with_members(format, '"table": "orders"', table="users"), format)
    assert (runnable_calls(reply), blocking_codes(reply)) == ([], ["duplicate_argument"])
    reply = read(with_members(format, '"table": "users"', table="users"), format)
    assert (runnable_calls(reply), note_codes(reply)) == ([("delete_rows", {"table": "users"})], ["duplicate_argument"])


@every_keyed
def test_a_flat_call_is_parsed(format: str) -> None:
    name = envelope_body(format).names[0]
    reply = read(with_envelope(format, f'{{"{name}": "delete_rows", "table": "users", "limit": 3}}'), format)
    assert runnable_calls(reply) == [("delete_rows", {"table": "users", "limit": 3})]
    assert [made.rule for made in reply.calls[0].repairs] == ["hoisted_argument"] * 2
    reply = read(with_envelope(format, f'{{"table": "users", "limit": 3, "{name}": "delete_rows"}}'), format)
    assert runnable_calls(reply) == [("delete_rows", {"table": "users", "limit": 3})]


@every_keyed
def test_two_different_argument_objects_block_the_call(format: str) -> None:
    args = envelope_body(format).args
    for key in (args[0], args[-1]):
        reply = read(with_members(format, f'"{key}": {{"table": "orders"}}', table="users"), format)
        assert (runnable_calls(reply), blocking_codes(reply)) == ([], ["duplicate_argument"]), key
        reply = read(with_members(format, f'"{key}": {{"table": "users"}}', table="users"), format)
        assert (runnable_calls(reply), note_codes(reply)) == (
            [("delete_rows", {"table": "users"})],
            ["duplicate_argument"],
        ), key


@every_keyed
@pytest.mark.parametrize("nothing", ["{}", "null", '"{}"', '""'])
def test_empty_second_arguments_do_not_block_the_call(format: str, nothing: str) -> None:
    args = envelope_body(format).args
    for key in (args[0], args[-1]):
        reply = read(with_members(format, f'"{key}": {nothing}', table="users"), format)
        assert runnable_calls(reply) == [("delete_rows", {"table": "users"})], key
        assert note_codes(reply) == ["duplicate_argument"], key


@every_keyed
def test_two_different_names_block_the_call(format: str) -> None:
    name, other = envelope_body(format).names[0], envelope_body(format).names[-1]
    for key in (name, other):
        reply = read(with_members(format, f'"{key}": "ping"', table="users"), format)
        assert (runnable_calls(reply), blocking_codes(reply)) == ([], ["duplicate_key"]), key
        reply = read(with_members(format, f'"{key}": "delete_rows"', table="users"), format)
        assert runnable_calls(reply) == [("delete_rows", {"table": "users"})], key


@every_keyed
def test_a_quoted_call_is_reported_under_each_key_of_its_name(format: str) -> None:
    for key in envelope_body(format).names:
        call = with_envelope(format, f'{{"{key}": "ping", "arguments": {{}}}}')
        reply = read(f"The manual says:\n\n```\n{call}\n```\n\nI have not run it.", format)
        # An opener with a tool name is reported next to the object after it.
        assert (runnable_calls(reply), set(note_codes(reply))) == ([], {"looks_like_a_call"}), key


@every_json
def test_a_duplicate_argument_with_two_values_blocks_the_call(format: str) -> None:
    text = render_call(format, table="users", filter={"glob": "*"})
    twice = text.replace('"users"', '"users", "table": "orders"')
    assert twice != text
    reply = read(twice, format)
    assert (runnable_calls(reply), blocking_codes(reply)) == ([], ["duplicate_argument"])
    reply = read(text.replace('"users"', '"users", "table": "users"'), format)
    assert (len(reply.calls), note_codes(reply)) == (1, ["duplicate_argument"])


@every_json
@pytest.mark.parametrize("repair", ["off", "safe", "lenient"])
def test_a_nested_duplicate_key_blocks_the_call(format: str, repair: str) -> None:
    text = render_call(format, table="users", filter={"glob": "*"})
    for other in ("1", "true"):
        reply = read(text.replace('"*"', f'1, "glob": {other}').replace('"glob": 1,', '"glob": "*",'), format, repair)
        assert (runnable_calls(reply), blocking_codes(reply)) == ([], ["duplicate_key"])


@every_envelope
def test_a_duplicate_key_blocks_the_call_if_arguments_are_parsed_leniently(format: str) -> None:
    text = render_call(format, table="users").replace('"table": "users"', "'table': 'users', 'table': 'orders'")
    assert runnable_calls(read(text, format)) == []
    text = render_call(format, table="users").replace('"table": "users"', "'table': 'users', 'table': 'users'")
    reply = read(text, format)
    assert (runnable_calls(reply), note_codes(reply)) == ([("delete_rows", {"table": "users"})], ["duplicate_key"])


@every_envelope
def test_a_key_beside_leniently_parsed_arguments_becomes_an_argument(format: str) -> None:
    text = with_members(format, '"where": "id=7"', table="users").replace('"users"', "'users'")
    reply = read(text, format)
    assert runnable_calls(reply) == [("delete_rows", {"table": "users", "where": "id=7"})]
    assert [made.rule for made in reply.calls[0].repairs] == ["single_quotes", "hoisted_argument"]


@pytest.mark.parametrize("format", sampled(WITH_OPENER))
def test_a_call_with_an_early_bracket_is_not_runnable_without_its_trailing_text(format: str) -> None:
    before, inside, behind = envelope(format, filter={"glob": "*"})
    early = with_members(format, '"dry_run": true', filter={"glob": "*"})
    assert runnable_calls(read(early, format)) == [("delete_rows", {"filter": {"glob": "*"}, "dry_run": True})]
    for rest in (', "dry_run": true}', '}, "dry_run": true}'):
        reply = read(before + inside + rest + behind, format)
        assert [call for call in reply.calls if "dry_run" not in call.arguments] == [], rest


@pytest.mark.parametrize("format", FORMATS_WITH_NAME_FIRST)
def test_arguments_that_end_too_early_are_rejected(format: str) -> None:
    text = render_call(format, filter={"glob": "*"})
    end = text.rindex("}") + 1
    reply = read(text[:end] + ', "dry_run": true}' + text[end:], format)
    assert runnable_calls(reply) == [] and len(reply.refused) == 1


_KEYS = st.sampled_from(["table", "where", "limit", "dry_run", "reason", "type", "index", "note", "a/b", "Where"])
_VALUES = st.sampled_from(['"x"', "3", "true", "null", '{"k": 1}', '[1, "y"]', '"function"'])


@pytest.mark.parametrize("format", sampled(FORMATS_WITH_NAME_KEY))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_key_is_an_argument_a_repair_or_a_reported_key(format: str, data: st.DataObject) -> None:
    keys = envelope_body(format)
    members = [f'"{keys.names[0]}": "delete_rows"']
    members += data.draw(st.sampled_from([[], [f'"{keys.args[0]}": {{"table": "users"}}']]))
    others = data.draw(st.lists(st.tuples(_KEYS, _VALUES), max_size=4))
    members = data.draw(st.permutations([*members, *(f'"{key}": {value}' for key, value in others)]))
    reply = read(with_envelope(format, "{" + ", ".join(members) + "}"), format)
    messages = "".join([problem.message for problem in reply.problems])
    for call in reply.attempts:
        places = [receipt.path for receipt in call.repairs]
        for key, value in others:
            path = "/" + key.replace("~", "~0").replace("/", "~1")
            placed = call.arguments.get(key) == json.loads(value) or path in places or "/where" in places
            assert placed or repr(key) in messages or key in ("type", "index"), (key, value, reply)
    if not reply.attempts:
        assert reply.content  # without a marker before it, it may be JSON of the model


# -- missing names, objects and ends -----------------------------------------------------------------------------------


@pytest.mark.parametrize("format", sampled(WITH_OPENER))
@pytest.mark.parametrize(
    "inside", ['{"command": "ls"}', "{}", '{"name": 3, "arguments": {"a": 1}}', '{"arguments": {}}']
)
def test_an_object_without_a_name_after_an_opener_is_a_call(format: str, inside: str) -> None:
    if not envelope_body(format).names:
        inside = "{}"
    reply = read(with_envelope(format, inside), format)
    assert runnable_calls(reply) == [] and "invalid_name" in blocking_codes(reply)


# Where the opener contains the tool name, no other name is inferred.
NAMED_INSIDE = [
    name
    for name in WITH_OPENER
    if FORMATS[name].bodies[0].names and "{name}" not in str(FORMATS[name].call[0])  # type: ignore[attr-defined]
]


@pytest.mark.parametrize("format", sampled(NAMED_INSIDE))
@pytest.mark.parametrize("name", ['""', '"  "', '" "', "null", "7"])
def test_a_blank_name_is_inferred_like_a_missing_one(format: str, name: str) -> None:
    key, args = envelope_body(format).names[0], envelope_body(format).args[0]
    reply = read(with_envelope(format, f'{{"{key}": {name}, "{args}": {{"word": "owl"}}}}'), format)
    assert runnable_calls(reply) == [("lookup", {"word": "owl"})]
    assert [made.rule for made in reply.calls[0].repairs] == ["inferred_name"]


@pytest.mark.parametrize(
    "format",
    [name for name in WITH_OPENER if (FORMATS[name].bodies[0].wrap or " ")[0][:1] == "["],  # type: ignore[attr-defined]
)
@pytest.mark.parametrize("stranger", ['"owl"', "7", "null", "[1, 2]"])
def test_a_list_item_that_is_not_an_object_is_rejected_and_its_siblings_are_kept(format: str, stranger: str) -> None:
    before, inside, behind = envelope(format, table="users")
    reply = read(f"{before}{stranger}, {inside}{behind}", format)
    assert (runnable_calls(reply), blocking_codes(reply)) == (
        [("delete_rows", {"table": "users"})],
        ["call_not_object"],
    )
    reply = read(f"{before}{inside}, {stranger}{behind}", format)
    assert (runnable_calls(reply), blocking_codes(reply)) == (
        [("delete_rows", {"table": "users"})],
        ["call_not_object"],
    )


NAMELESS = [
    ("mistral_v11", '[TOOL_CALLS]{"wrd": "owl"}'),
    ("ministral3", '[TOOL_CALLS]{"wrd": "owl"}'),
    ("mistral", '[TOOL_CALLS]{"wrd": "owl"}'),
    ("kimi_k2", '<|tool_calls_section_begin|><|tool_call_begin|>{"wrd": 1}<|tool_call_end|><|tool_calls_section_end|>'),
    ("deepseek_v31", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{"wrd": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'),
    ("deepseek_v3", '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{"wrd": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'),
    ("solar_open", '<|tool_calls|><|tool_call:begin|>{"wrd": 1}<|tool_call:end|><|calls|>'),
]


@pytest.mark.parametrize("format, text", NAMELESS)
def test_arguments_without_a_name_after_an_opener_are_a_rejected_call(format: str, text: str) -> None:
    reply = read(text, format)
    assert runnable_calls(reply) == [] and "invalid_name" in blocking_codes(reply) and not reply.content


@pytest.mark.parametrize("format, text", NAMELESS)
def test_a_missing_name_after_an_opener_is_inferred_from_the_arguments(format: str, text: str) -> None:
    reply = read(re.sub(r"\{.*\}", '{"word": "owl"}', text), format)
    assert runnable_calls(reply) == [("lookup", {"word": "owl"})]
    assert reply.calls[0].repairs[0].rule == "inferred_name"


@pytest.mark.parametrize("format", sampled(WITH_OPENER))
def test_a_truncated_call_keeps_its_name(format: str) -> None:
    text = render_call(format, table="users")
    cut = text[: text.index('"delete_rows"') + len('"delete_rows"')]
    for rest in (
        (",", ', "arg', f', "{(envelope_body(format).args or ("",))[0]}":')
        if envelope_body(format).names
        else (":", ": {")
    ):
        reply = read(cut + rest, format)
        assert [(call.name, blocking_codes(reply)) for call in reply.refused] == [("delete_rows", ["truncated"])], rest


@pytest.mark.parametrize(
    "format, text",
    [
        ("mistral_v11", "One.[TOOL_CALLS]lookup"),
        ("mistral_v11", "One.[TOOL_CALLS]lookup[AR"),
        ("mistral_v11", "One.[TOOL_CALLS]lookup[ARGS]"),
        ("kimi_k2", "<|tool_calls_section_begin|><|tool_call_begin|>functions.lookup:0<|tool_call_argu"),
        ("kimi_k2", "<|tool_calls_section_begin|><|tool_call_begin|>functions.lookup"),
        ("deepseek_v31", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>lookup<｜tool▁s"),
        ("deepseek_v3", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>lookup\n```js"),
    ],
)
def test_a_text_that_ends_before_the_arguments_is_a_truncated_call_with_its_name(format: str, text: str) -> None:
    reply = read(text, format)
    assert [(call.name, blocking_codes(reply)) for call in reply.refused] == [("lookup", ["truncated"])]


def test_a_json_word_at_the_end_of_the_text_completes_no_call() -> None:
    for word in ("null", "true", "12"):
        reply = read(f"<function=ping>{word}", "functionary_v31")
        assert (runnable_calls(reply), blocking_codes(reply)) == ([], ["truncated"])


@pytest.mark.parametrize("format", ["llama3_json", "granite3", "forced_choice", "xlam"])
def test_without_a_marker_an_object_that_names_a_declared_tool_is_a_call(format: str) -> None:
    assert runnable_calls(read('{"name": "ping"}', format)) == [("ping", {})]
    assert runnable_calls(read('{"name": "delete_rows", "table": "users"}', format)) == [
        ("delete_rows", {"table": "users"})
    ]
    for inside, code in (
        ('{"name": "lookup", "arguments": {"n": 3}}', "missing"),
        ('{"name": "lookup", "arguments": "owl"}', "arguments_not_object"),
        ('{"name": "lookup"}', "missing"),
        ('{"name": "lookup", "arguments":', "truncated"),
    ):
        reply = read(inside, format)
        assert (runnable_calls(reply), blocking_codes(reply)) == ([], [code]), inside
    reply = read('{"name": "lookup", "arguments": {"word": "owl"}}, "n": 3}', format)
    assert reply.attempts == () and [problem.code for problem in reply.problems] == ["looks_like_a_call"]
    reply = read('[{"name": "ping", "arguments": {}}, {"name": "lookup", "argu', format)
    assert ([call.name for call in reply.calls], blocking_codes(reply)) == (["ping"], ["truncated"])


@pytest.mark.parametrize("format", ["llama3_json", "granite3", "forced_choice", "xlam"])
def test_without_a_marker_other_json_is_text(format: str) -> None:
    for text in (
        '{"name": "lookup", "description": "finds", "parameters": {"type": "object", "properties": {}}}',
        '{"name": "ping", "version": 2}',
        '{"city": "Oslo", "word": "owl"}',
        '{"name": "Ada", "word": "owl"}',
    ):
        reply = parse(text, format=format, tools=TOOLS)
        assert (reply.attempts, reply.content) == ((), text)


@pytest.mark.parametrize("info", ["json5", "JSON", 'json title="a call"', "", " jsonc ", "json {.numberLines}"])
def test_a_code_fence_with_any_info_string_around_a_call_is_removed(info: str) -> None:
    for format in ("hermes", "jamba", "cohere_command3"):
        before, inside, behind = envelope(format, table="users")
        listed = before.rstrip().endswith("[")
        before, inside, behind = (
            (before.rstrip()[:-1], f"[{inside}]", behind.lstrip()[1:]) if listed else (before, inside, behind)
        )
        reply = read(f"{before}```{info}\n{inside}\n```{behind}", format)
        assert runnable_calls(reply) == [("delete_rows", {"table": "users"})], format
        assert [made.rule for made in reply.calls[0].repairs] == ["code_fence"]


@pytest.mark.parametrize("format", ["llama3_json", "granite3"])
def test_without_an_opener_an_unknown_key_before_the_arguments_makes_the_envelope_text(format: str) -> None:
    text = '{"name": "delete_rows", "thought": "now", "arguments": {"table": "users"}}'
    reply = read(text, format)
    assert reply.attempts == () and [problem.code for problem in reply.problems] == ["looks_like_a_call"]
