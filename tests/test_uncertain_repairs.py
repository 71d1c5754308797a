"""Repairs that once changed the intended arguments of a call although they were recorded as certain."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from rightcall import Call, Parser, Tool, Toolset, check, dispatch_sync, parse, repair, tool
from rightcall.repairs.argument_text import read_arguments
from support.replies import INTEGER, STRING, Json, runnable

# -- unreadable arguments ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['{"folder": "/tmp/x", "dry_run": tru', '{"folder": 007}', "nothing", '"folder"'])
def test_a_call_with_unreadable_arguments_never_runs(text: str) -> None:
    executed: list[tuple[str, bool]] = []

    @tool
    def clean(folder: str = "/", dry_run: bool = False) -> str:
        executed.append((folder, dry_run))
        return "ok"

    tools = Toolset([clean])
    call = repair(Call("clean", {}, text), tools)
    assert [problem for problem in check(call, tools) if problem.blocking]
    assert [result.kind for result in dispatch_sync(call, tools)] == ["refused"] and executed == []


# -- brackets ----------------------------------------------------------------------------------------------------------

FREE: Json = {"type": "object"}
DELETE = Toolset(
    [
        Tool(
            name="delete_files",
            parameters={"type": "object", "properties": {"filter": FREE, "dry_run": {"type": "boolean"}}},
        )
    ]
)
EARLY = [
    '{"name": "delete_files", "arguments": {"filter": {"glob": "*"}}, "dry_run": true}}',
    '{"name": "delete_files", "arguments": {"filter": {"glob": "*"}}, "dry_run": true}',
]


@pytest.mark.parametrize("text", EARLY)
def test_text_after_a_bracket_is_never_dropped(text: str) -> None:
    reply = parse(f"<tool_call>{text}</tool_call>", tools=DELETE, format="hermes")
    assert runnable(reply) in ([], [("delete_files", {"filter": {"glob": "*"}, "dry_run": True})])


def test_a_bracket_with_two_possible_positions_is_a_guess() -> None:
    text = '<tool_call>{"name": "delete_files", "arguments": {"filter": {"glob": "*", "dry_run": true}}</tool_call>'
    assert runnable(parse(text, tools=DELETE, format="hermes")) == []
    lenient = parse(text, tools=DELETE, format="hermes", repair="lenient")
    assert {(made.rule, made.kind) for call in lenient.calls for made in call.repairs} == {("missing_closer", "guess")}


@pytest.mark.parametrize("text, is_guess", [('{"a": 1}}', False), ('{"a": 1,}}', True), ('{"a": [1,]}]', True)])
def test_a_superfluous_bracket_after_a_trailing_comma_is_a_guess(text: str, is_guess: bool) -> None:
    """After the comma something is missing, so the bracket may be the end of that."""
    _, deviations = read_arguments(text, 0, None, depth=8, closed=True)
    assert [each.guess for each in deviations if each.rule == "extra_closer"] == [is_guess]


def test_a_bracket_with_one_possible_position_is_inserted() -> None:
    text = '<tool_call>{"name": "delete_files", "arguments": {"dry_run": true, "filter": {"glob": "*"}}</tool_call>'
    reply = parse(text, tools=DELETE, format="hermes")
    assert runnable(reply) == [("delete_files", {"dry_run": True, "filter": {"glob": "*"}})]
    assert {(made.rule, made.kind) for call in reply.calls for made in call.repairs} == {("missing_closer", "exact")}


OPTS: Json = {"type": "object", "properties": {"limit": INTEGER, "deep": FREE}}
EDIT_PROPERTIES: Json = {
    "path": STRING,
    "n": INTEGER,
    "tags": {"type": "array", "items": STRING},
    "opts": OPTS,
    "dry": {"type": "boolean"},
}
EDIT = Toolset([Tool(name="edit", parameters={"type": "object", "properties": EDIT_PROPERTIES, "required": ["path"]})])
ITEMS: dict[str, Any] = {
    "path": "a",
    "opts": {"limit": 1, "deep": {"a": 2}},
    "tags": ["x", "y"],
    "n": 5,
    "dry": True,
}


@pytest.mark.parametrize("damage", ["dropped", "doubled", "swapped"])
def test_one_wrong_bracket_never_changes_the_runnable_arguments(damage: str) -> None:
    dice = random.Random(damage)
    for _ in range(120):
        keys = list(ITEMS)
        dice.shuffle(keys)
        truth = {key: ITEMS[key] for key in keys}
        text = json.dumps(truth)
        at = dice.choice([index for index in range(len(text) - 1) if text[index] in "]}"])
        replacement = {"dropped": "", "doubled": text[at] * 2, "swapped": "]" if text[at] == "}" else "}"}[damage]
        sent = f'{{"name": "edit", "arguments": {text[:at]}{replacement}{text[at + 1 :]}}}'
        runnable_calls = runnable(parse(f"<tool_call>{sent}</tool_call>", tools=EDIT, format="hermes"))
        assert runnable_calls in ([], [("edit", truth)]), sent


# -- options -----------------------------------------------------------------------------------------------------------

DIFFERENT_OPTIONS = [
    ([">", "asc"], "<"),
    (["==", "in"], "!="),
    (["c", "java", "python"], "C++"),
    (["c", "java"], "C#"),
    (["*", "read"], ""),
    (["*", "read"], " "),
    (["1.1", "1.2"], "11"),
    (["1-1", "1-2"], "11"),
    (["5", "10"], "-5"),
    (["+", "times"], "-"),
    (["v1_1", "v2"], "v11"),
]
EQUAL_OPTIONS = [
    (["read_only", "write"], "Read-Only", "read_only"),
    (["read_only", "write"], "readonly", "read_only"),
    (["All Users", "me"], "ALL_USERS", "All Users"),
    (["a-b", "x"], "ab", "a-b"),
    (["Ärzte", "x"], "ärzte", "Ärzte"),
]


def repaired_choice(options: list[str], value: str) -> list[tuple[str, Json]]:
    parameters: Json = {"type": "object", "properties": {"v": {"enum": options}}, "required": ["v"]}
    call = repair(Call("f", {"v": value}), [Tool(name="f", parameters=parameters)])
    return [(call.name, call.arguments)] if call.ok and call.repairs else []


@pytest.mark.parametrize("options, value", DIFFERENT_OPTIONS)
def test_options_that_differ_in_punctuation_are_different(options: list[str], value: str) -> None:
    assert repaired_choice(options, value) == []


@pytest.mark.parametrize("options, value, meant", EQUAL_OPTIONS)
def test_options_that_differ_in_case_or_word_separators_are_equal(options: list[str], value: str, meant: str) -> None:
    assert repaired_choice(options, value) == [("f", {"v": meant})]


# -- numbers -----------------------------------------------------------------------------------------------------------

CODES: Json = {"zip": STRING, "phone": STRING, "n": INTEGER, "x": {"type": "number"}}
CODED = Toolset([Tool(name="f", parameters={"type": "object", "properties": CODES})])


def render_call(format: str, arguments: str) -> str:
    if format == "contract":
        return "<tool_call>\nf({ " + arguments.replace("=", ": ") + " })\n</tool_call>"
    if format == "lfm2":
        return f"<|tool_call_start|>[f({arguments})]<|tool_call_end|>"
    return f"[f({arguments})]"


@pytest.mark.parametrize("format", ["pythonic", "lfm2", "contract"])
@pytest.mark.parametrize(
    "arguments, meant",
    [
        ("zip=02134", {"zip": "02134"}),
        ("phone=+4712345", {"phone": "+4712345"}),
        ("zip=1.10", {"zip": "1.10"}),
        ("zip=1e5", {"zip": "1e5"}),
        ("zip=-0", {"zip": "-0"}),
        ("zip=True", None),
        ("n=010", None),
        ("n=1\u0662", None),
        ("n=\uff11\uff12", None),
        ("x=1e400", None),
        ("n=1, n=2", None),
        ("n=--5", None),
    ],
)
def test_a_number_keeps_its_digits_or_is_not_runnable(format: str, arguments: str, meant: Json | None) -> None:
    runnable_calls = runnable(parse(render_call(format, arguments), tools=CODED, format=format))
    assert runnable_calls in ([], [("f", meant)])
    assert meant is None or runnable_calls or format == "contract"


ODD_NUMBERS = ['{"n": 1\u0662}', '{"n": 1e400, "x": -1e999}', '{"n": "010"}', '{"n": 010}', '{"n": 0x1f}']
TWICE = ['{"zip": "a", "zip": "b"}', '{"n": 1, "n": 2}']


@pytest.mark.parametrize("sent", [*ODD_NUMBERS, *TWICE])
def test_json_with_invalid_numbers_or_duplicate_keys_is_not_runnable(sent: str) -> None:
    for text, format in ((f'<tool_call>{{"name": "f", "arguments": {sent}}}</tool_call>', "hermes"), (sent, "")):
        if format:
            assert runnable(parse(text, tools=CODED, format=format)) == []
        else:
            assert not repair(Call("f", {}, text), CODED).ok


# -- backslashes -------------------------------------------------------------------------------------------------------

GREP = Toolset([Tool(name="grep", parameters={"type": "object", "properties": {"pattern": STRING}})])


@pytest.mark.parametrize(
    "sent, meant",
    [
        (r"\\d+\s*", r"\d+\s*"),
        (r"\\w+\.py", r"\w+\.py"),
        (r"a\\d+\s*", r"a\d+\s*"),
        (r"\d+\s*", r"\d+\s*"),
        (r"^\w+\.py$", r"^\w+\.py$"),
        (r"C:\\Users\\me\d", r"C:\Users\me\d"),
        (r"C:\Users\new", r"C:\Users\new"),
        (r"th\e owl", "the owl"),
        (r"\$HOME", "$HOME"),
        (r"\x41", "A"),
        (r"it\'s", "it's"),
        (r"print('it\'s')", r"print('it\'s')"),
        (r"\Windows\System32", r"\Windows\System32"),
        (r"\\Windows\System32", r"\Windows\System32"),
        (r"\\host\share\docs", r"\\host\share\docs"),
        (r"\ud83d\ude00 \d+", "\U0001f600 \\d+"),
    ],
)
def test_a_backslash_has_its_intended_meaning_or_the_call_is_not_runnable(sent: str, meant: str) -> None:
    text = f'<tool_call>{{"name": "grep", "arguments": {{"pattern": "{sent}"}}}}</tool_call>'
    assert runnable(parse(text, tools=GREP, format="hermes")) in ([], [("grep", {"pattern": meant})])


@pytest.mark.parametrize("sent", [r"\d+", r"^\w+\.py$", r"C:\Users\new", r"it\'s", r"\\host\share\docs"])
def test_unambiguous_backslashes_are_repaired(sent: str) -> None:
    text = f'<tool_call>{{"name": "grep", "arguments": {{"pattern": "{sent}"}}}}</tool_call>'
    assert runnable(parse(text, tools=GREP, format="hermes")) == [("grep", {"pattern": sent.replace("\\'", "'")})]


# -- comments ----------------------------------------------------------------------------------------------------------

NOTED: Json = {
    "note": STRING,
    "dry_run": {"type": "boolean"},
    "filter": {"type": "object", "properties": {"keep": {"type": "boolean"}}, "additionalProperties": True},
    "steps": {"type": "array", "items": FREE},
}
NOTE = Toolset([Tool(name="f", parameters={"type": "object", "properties": NOTED, "required": ["note"]})])


def render_in_json_formats(arguments: str) -> list[tuple[str, str]]:
    """Return the arguments in an envelope with all its brackets, in one without its last bracket, and after a name."""
    return [
        (f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>', "hermes"),
        (f'<tool_call>{{"name": "f", "arguments": {arguments}</tool_call>', "hermes"),
        (f'[TOOL_CALLS][{{"name": "f", "arguments": {arguments}}}]', "mistral"),
        (f"<function=f>{arguments}</function>", "functionary_v31"),
        (f"<function=f>{arguments}}}</function>", "functionary_v31"),
        (f"<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{arguments}<|tool_call_end|>", "kimi_k2"),
    ]


def notation_variants(text: str) -> list[str]:
    return [text, text.replace('"', "'"), text.replace(":", " =>"), text.replace("//", "#")]


COMMENTED = [
    '{"note": "x", // the note "dry_run": true}',
    '{"note": "x" // the note, "dry_run": true}',
    '{"note": "x", // the note "dry_run": true\n}',
    '{"note": "x", // the note "dry_run": true}\n}',
    '{"note": ""// all", "dry_run": true}',
    '{"note": ""// all"\n}',
    '{"note": "x"} // so, "dry_run": true}',
    '{"note": "x", "steps": [{"a": 1}, // one {"a": 2},\n {"a": 3}]}',
    '{"note": "x", "steps": [{"a": 1} // one ]\n}',
]


@pytest.mark.parametrize("sent", [each for text in COMMENTED for each in notation_variants(text)])
def test_skipping_a_comment_that_may_contain_an_argument_is_never_certain(sent: str) -> None:
    for text, format in render_in_json_formats(sent):
        assert runnable(parse(text, tools=NOTE, format=format)) == [], text


@pytest.mark.parametrize(
    "comment", ["// as the user said: now (see [1])", "# it's so", '/* "x": 1 */', "// http://a.b/", '// not "x"]}']
)
def test_a_comment_is_skipped_as_a_guess(comment: str) -> None:
    text = f'<tool_call>{{"name": "f", "arguments": {{"note": "x", {comment}\n"dry_run": true}}}}</tool_call>'
    assert runnable(parse(text, tools=NOTE, format="hermes")) == []
    lenient = parse(text, tools=NOTE, format="hermes", repair="lenient")
    assert runnable(lenient) == [("f", {"note": "x", "dry_run": True})]
    assert [(made.rule, made.kind) for call in lenient.calls for made in call.repairs] == [("comment", "guess")]


@pytest.mark.parametrize(
    "sent",
    [
        '{"note": "x", "filter": {"keep": true, "dry_run": true}',
        '{"note": "x", "filter": {"dry_run": true, "keep": true}',
        '{"note": "x", "filter": {"keep": true, "dry_run": true, "a": 1}',
        '{"note": "x", "filter": {"a": {"dry_run": true, "b": 1}}',
    ],
)
def test_an_argument_is_not_moved_into_an_object_that_accepts_it(sent: str) -> None:
    for written in notation_variants(sent):
        for text, format in render_in_json_formats(written):
            if text.count("{") > text.count("}"):
                assert runnable(parse(text, tools=NOTE, format=format)) == [], text


@pytest.mark.parametrize("steps", ["[{]", "[{}", "{]", "{}", "[[]", "[}", "[{}, {}"])
def test_no_object_is_created_from_a_superfluous_bracket(steps: str) -> None:
    for text, format in render_in_json_formats(f'{{"note": "x", "steps": {steps}}}'):
        if not text.endswith("}}}</function>"):  # here one bracket of the list is wrong and all others are right
            assert runnable(parse(text, tools=NOTE, format=format)) == [], text


# -- Python strings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["pythonic", "lfm2"])
@pytest.mark.parametrize("written", ['f"a{x}"', "F'{x}'", "rf'{x}'", "f'{{x}}'", "f'''{x}'''"])
def test_a_string_with_unfilled_placeholders_is_not_runnable(format: str, written: str) -> None:
    for arguments in (f"zip={written}", f"any=[{written}]", f"any={{'a': {written}}}"):
        text = render_call(format, arguments)
        for size in (len(text), 1, 3):
            parser = Parser(tools=CODED, format=format)
            for start in range(0, len(text), size):
                parser.feed(text[start : start + size])
            parser.close()
            assert runnable(parser.reply) == [], (text, size)


def test_an_f_string_without_placeholders_is_a_string() -> None:
    assert runnable(parse(render_call("pythonic", "zip=f'a'"), tools=CODED, format="pythonic")) == [("f", {"zip": "a"})]


@pytest.mark.parametrize("either", [{"type": ["string", "boolean"]}, {"anyOf": [STRING, {"type": "boolean"}]}])
def test_a_bare_word_is_a_boolean_if_the_schema_declares_one(either: Json) -> None:
    tools = Toolset([Tool(name="f", parameters={"type": "object", "properties": {"v": either}})])
    hermes = '<tool_call>{"name": "f", "arguments": {"v": True}}</tool_call>'
    for text, format in ((render_call(name, "v=True"), name) for name in ("pythonic", "lfm2", "contract")):
        assert runnable(parse(text, tools=tools, format=format)) == [("f", {"v": True})]
    assert runnable(parse(hermes, tools=tools, format="hermes")) == [("f", {"v": True})]
