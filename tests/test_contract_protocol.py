"""The contract protocol: blocks, calls outside blocks, rejections, feedback to the model, and the canonical history."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import (
    Call,
    CallEnd,
    CallStart,
    Parser,
    Problem,
    Reasoning,
    Reply,
    Text,
    Tool,
    Toolset,
    canonical,
    feedback,
    parse,
)
from rightcall.contracts.protocol import prose, skeleton, stray, violations
from rightcall.formats import FORMATS
from rightcall.types import Done, to_json
from support.cuts import Setting, hold_of_every_cut
from support.generated import DECLARED, marker_texts
from support.replies import INTEGER, STRING, args, blocking, codes, notes, read, runnable, tool, wrong
from support.samples import CORPUS
from test_false_positives import TOOLS as PROSE

CONTRACT = FORMATS["contract"]
TOOLS = Toolset([tool("edit", path=STRING, text=STRING), tool("run", command=STRING), tool("mcp.search-v2", q=STRING)])
CALL = '<tool_call>\nedit({ path: "a" })\n</tool_call>'
EDIT = ("edit", {"path": "a"})


def read_contract(text: str, tools: Toolset | None = TOOLS, **how: Any) -> Reply:
    return read(text, "contract", tools, **how)


def violation_codes(reply: Reply) -> list[str]:
    return [problem.code for problem in violations(reply)]


# -- blocks ------------------------------------------------------------------------------------------------------------


def test_a_well_formed_reply_has_no_violations_and_no_feedback() -> None:
    text = f"<assistant_prose>I look.</assistant_prose>\n\n{CALL}\n<done>##DONE##</done>\n"
    reply = read_contract(text)
    assert args(reply) == [EDIT] and reply.done == "##DONE##"
    assert [part for part in reply.parts if isinstance(part, Text)] == [Text("I look.", "assistant_prose")]
    assert reply.problems == () and violations(reply) == [] and feedback(reply) == ""


def test_text_keeps_the_name_of_its_block() -> None:
    reply = read_contract("<assistant_prose>a</assistant_prose> b <user_response>c</user_response>")
    assert reply.parts == (Text("a", "assistant_prose"), Text("b"), Text("c", "user_response"))
    assert reply.content == "a\nb\nc"


def test_prose_is_the_user_response_or_else_the_assistant_prose() -> None:
    both = "<assistant_prose>a</assistant_prose><user_response>b</user_response><user_response>c</user_response>"
    assert prose(read_contract(both)) == "b\n\nc"
    assert (
        prose(read_contract("<assistant_prose>a</assistant_prose>stray<assistant_prose>b</assistant_prose>"))
        == "a\n\nb"
    )
    assert prose(read_contract("stray")) == ""
    assert prose(parse("plain", format="hermes")) == "plain"


def test_an_empty_text_block_is_ignored() -> None:
    reply = read_contract("<assistant_prose> \n </assistant_prose>\n<user_response></user_response>")
    assert reply.parts == () and violations(reply) == []


def test_done_can_have_any_body() -> None:
    assert read_contract("<done>\n all 3 < 4 tests pass \n</done>").done == "all 3 < 4 tests pass"
    assert read_contract("<done>##DONE##</done>").done == "##DONE##"
    assert read_contract("nothing").done is None


def test_an_empty_done_block_is_reported() -> None:
    reply = read_contract("<done> </done>")
    assert reply.done == "" and violation_codes(reply) == ["empty_done"]
    assert "empty" in feedback(reply)


def test_a_truncated_done_block_is_ignored() -> None:
    for text in ("<done>##DONE##", "<done>##DONE##</don", f"<done>\n{CALL}"):
        assert read_contract(text).done is None
    assert args(read_contract(f"<done>\n{CALL}")) == [EDIT]


def test_a_quoted_done_block_is_ignored() -> None:
    for text in ("Say `<done>x</done>` then.", "<assistant_prose>```\n<done>x</done>\n```</assistant_prose>"):
        assert read_contract(text).done is None


def test_a_done_block_is_an_event() -> None:
    parser = Parser("contract")
    assert parser.feed("<done>yes</done>") == [Done("yes")]
    holding_parser = Parser("contract", hold=True)
    assert holding_parser.feed("<done>yes</done>") == [] and holding_parser.close() == [Done("yes")]
    assert holding_parser.reply.done == "yes"
    assert to_json([Done("yes"), Text("a", "user_response")]) == [
        {"type": "done", "text": "yes"},
        {"type": "text", "text": "a", "tag": "user_response"},
    ]


def test_a_think_block_is_reasoning_without_violations() -> None:
    reply = read_contract(f"<think>edit({{ path: 'b' }})</think>{CALL}")
    assert reply.parts[0] == Reasoning("edit({ path: 'b' })") and args(reply) == [EDIT] and violations(reply) == []


def test_an_empty_reply_has_no_violations() -> None:
    for text in ("", " \n\t "):
        assert violations(read_contract(text)) == [] and feedback(read_contract(text)) == ""


def test_a_reply_of_only_reasoning_is_a_violation() -> None:
    assert violation_codes(read_contract("<think>Hm.</think>")) == ["no_blocks"]


def test_an_unclosed_prose_block_does_not_hide_a_call() -> None:
    assert args(read_contract(f"<assistant_prose>I look.\n{CALL}")) == [EDIT]


def test_an_unclosed_fence_in_prose_does_not_hide_a_call() -> None:
    assert args(read_contract(f"<assistant_prose>```\nx\n</assistant_prose>\n{CALL}")) == [EDIT]


def test_a_call_in_prose_outside_a_block_is_text() -> None:
    reply = read_contract('<assistant_prose>\nedit({ path: "a" })\n</assistant_prose>')
    assert args(reply) == [] and reply.content == 'edit({ path: "a" })' and wrong(reply) == []


# -- one call per block ------------------------------------------------------------------------------------------------


def test_several_calls_in_one_block_are_rejected() -> None:
    reply = read_contract('<tool_call>edit({ path: "a" })\nedit({ path: "b" })</tool_call>' + CALL)
    assert [name for name, _ in args(reply)] == ["edit", "edit", "edit"]
    assert blocking(reply) == [("several_calls", 0), ("several_calls", 1)]
    assert runnable(reply) == [EDIT]


def test_a_block_without_a_call_is_reported_with_its_content() -> None:
    reply = read_contract("<tool_call>I would edit the file</tool_call>")
    assert args(reply) == [] and violation_codes(reply) == ["no_call"]
    assert "I would edit the file" in feedback(reply)
    assert codes(read_contract("<tool_call>\n</tool_call>")) == ["no_call"]


def test_an_unknown_tool_is_rejected_and_feedback_lists_the_tools() -> None:
    reply = read_contract("<tool_call>nope({ a: 1 })</tool_call>")
    assert args(reply) == [("nope", {"a": 1})] and blocking(reply) == [("unknown_tool", 0)]
    assert "edit, run, mcp.search-v2" in feedback(reply)


def test_names_with_dots_and_dashes_can_be_called() -> None:
    for text in ('<tool_call>mcp.search-v2({ q: "x" })</tool_call>', 'mcp.search-v2({ q: "x" })'):
        assert args(read_contract(text)) == [("mcp.search-v2", {"q": "x"})]


def test_a_call_without_arguments_has_an_empty_object_that_is_checked() -> None:
    strict = Toolset([Tool(name="edit", parameters={"properties": {"path": STRING}, "required": ["path"]})])
    assert args(read_contract("<tool_call>edit()</tool_call>")) == [("edit", {})]
    assert blocking(read_contract("<tool_call>edit()</tool_call>", strict)) == [("missing", 0)]


LABELS = "tool_code tool_call tool_output call tool use python javascript typescript shell bash".split()


@pytest.mark.parametrize("label", LABELS)
def test_a_common_label_before_a_call_is_ignored(label: str) -> None:
    assert runnable(read_contract(f'<tool_call>{label}: edit({{ path: "a" }})</tool_call>')) == [EDIT]
    assert runnable(read_contract(f'{label}: edit({{ path: "a" }})')) == [EDIT]


@pytest.mark.parametrize("label", ["Hint", "Next step", "For example"])
def test_a_call_after_another_label_is_rejected(label: str) -> None:
    inside = read_contract(f'<tool_call>{label}: edit({{ path: "a" }})</tool_call>{CALL}')
    assert blocking(inside) == [("labelled_call", 0)] and runnable(inside) == [EDIT]
    outside = read_contract(f'{label}: edit({{ path: "a" }})\n{CALL}')
    assert blocking(outside) == [("labelled_call", None)] and runnable(outside) == [EDIT]
    assert f"'{label}:'" in feedback(outside)


def test_a_fence_or_backticks_around_a_call_in_its_block_are_ignored() -> None:
    assert args(read_contract("<tool_call>`edit({ path: 'a' })`</tool_call>")) == [EDIT]
    fenced = read_contract("<tool_call>\n```ts\nedit({ path: 'a' })\n```\n</tool_call>", repair="safe")
    assert args(fenced) == [EDIT] and [repair.rule for repair in fenced.attempts[0].repairs] == ["code_fence"]


# -- calls outside their block -----------------------------------------------------------------------------------------

BARE = [
    'edit({ path: "a" })',
    '  \tedit({ path: "a" })',
    'I will.\nedit({ path: "a" })\nThat was it.',
    '<assistant_prose>I will.</assistant_prose> edit({ path: "a" })',
    'edit({\n  path: "a",\n})',
    "edit({ path: <<EOF\na\nEOF })",
    '<edit({ path: "a" })>',
    'edit({ path: "a" });',
    'edit({ path: "a" })</tool_call>',
    '`edit({ path: "a" })`',
]
FENCED = [
    '```\nedit({ path: "a" })\n```',
    '```typescript\nedit({ path: "a" })\n```',
    '~~~js\nedit({ path: "a" })\n~~~\n',
]


@pytest.mark.parametrize("text", BARE)
def test_a_whole_call_at_the_beginning_of_a_line_runs_with_a_note(text: str) -> None:
    reply = read_contract(text)
    assert runnable(reply) == [EDIT] and codes(reply) == ["bare_call"]
    assert "outside its block" in feedback(reply)


@pytest.mark.parametrize("text", FENCED)
def test_a_call_in_a_fence_runs_if_the_fence_is_the_whole_reply(text: str) -> None:
    reply = read_contract(text)
    assert runnable(reply) == [EDIT] and codes(reply) == ["bare_call", "rescued"]
    for around in (f"So:\n{text}", f"{text}\nDone.", f"So:\n{text}\nDone."):
        assert read_contract(around).attempts == () and notes(read_contract(around)) == {"looks_like_a_call"}


NOT_CALLS = [
    'Use `edit({ path: "a" })` for that.',
    'Use edit({ path: "a" }) for that.',
    '`edit({ path: "a" })` does that.',
    "divide(10, 2)",
    "```js\nfetch({ url: 1 })\n```",
    "```\nHint: edit({ path: 'a' })\n```",
    "```js\n// look\nedit({ path: 'a' })\n```",
    "edit the file (a)",
    "- edit({ path: 'a' })",
]


@pytest.mark.parametrize("text", NOT_CALLS)
def test_a_mentioned_call_is_text(text: str) -> None:
    reply = read_contract(text)
    assert reply.attempts == () and reply.content == text and wrong(reply) == []
    assert violation_codes(reply) == ["stray_text"]


@pytest.mark.parametrize("text", ["```\nedit('a')\n```", "```\nedit({ path: 3 })\n```", "```\nedit({ path: })\n```"])
def test_a_fence_that_contains_only_invalid_calls_gives_rejected_calls(text: str) -> None:
    reply = read_contract(text)
    assert [call.name for call in reply.refused] == ["edit"] and reply.calls == () and reply.content == ""
    around = read_contract(f"For example:\n{text}")
    assert around.attempts == () and notes(around) == {"looks_like_a_call"} and wrong(around) == []


REFUSED = [
    ('edit("a")', "arguments_not_object"),
    ('edit(path="a")', "arguments_not_object"),
    ("nope({ a: 1 })", "unknown_tool"),
    ("edit({ path: })", "invalid_value"),
    ("edit({ path: 'a'", "truncated"),
    ("edit({ path: <<EOF\na", "truncated"),
]


@pytest.mark.parametrize("text, code", REFUSED)
def test_an_invalid_call_outside_blocks_is_text_with_a_problem(text: str, code: str) -> None:
    reply = read_contract("So.\n" + text)
    assert reply.attempts == () and reply.content == "So.\n" + text
    assert blocking(reply) == [(code, None)] and feedback(reply)


def test_a_rejected_call_outside_blocks_keeps_later_blocks() -> None:
    for text in ('edit("a")', "nope({ a: 1 })", "edit({ path: })", "Hint: edit({})"):
        assert runnable(read_contract(f"{text}\n{CALL}")) == [EDIT]


def test_calls_on_consecutive_lines_are_parsed() -> None:
    reply = read_contract(
        'edit({ path: "a" })\nrun({ command: "b" })\n\nrun({ command: "c" })\nrun({ command: "d" })\n'
    )
    assert [name for name, _ in runnable(reply)] == ["edit", "run", "run", "run"]
    assert reply.content == ""


def test_without_tools_text_outside_blocks_is_never_a_call() -> None:
    for tools in (None, Toolset([])):
        assert read_contract('edit({ path: "a" })', tools).attempts == ()


def test_an_invalid_bare_call_is_rejected() -> None:
    reply = read_contract("edit({ path: 3 })")
    assert args(reply) == [("edit", {"path": 3})] and blocking(reply) == [("wrong_type", 0)]


def test_the_number_of_rejected_lines_is_limited() -> None:
    reply = parse("nope({ a: 1 })\n" * 2_000, format="contract", tools=TOOLS)
    assert len(reply.problems) == 257


# -- native JSON -------------------------------------------------------------------------------------------------------


def native(name: str, arguments: Any, id: str = "call_1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_native_json_is_parsed_if_there_is_no_other_call() -> None:
    many = [native("edit", '{"path": "a"}'), native("run", {"command": "b"}, "call_2")]
    for before in ("", "Let me see. "):
        reply = read_contract(before + json.dumps(many), repair="safe")
        assert args(reply) == [EDIT, ("run", {"command": "b"})]
        assert [call.id for call in reply.attempts] == ["call_1", "call_2"]
        assert reply.content.split() == before.split()
        text_with_quoted_calls = before + json.dumps(many) + "\nThat is all."
        reply = read_contract(text_with_quoted_calls, repair="safe")
        assert (reply.attempts, reply.content, notes(reply)) == ((), text_with_quoted_calls, {"looks_like_a_call"})
    assert args(read_contract("Well. " + json.dumps(many[0]), repair="safe")) == [EDIT]


def test_native_json_in_a_block_is_parsed() -> None:
    assert args(read_contract(f"<tool_call>{json.dumps([native('edit', {'path': 'a'})])}</tool_call>")) == [EDIT]


def test_native_json_with_an_unknown_tool_or_bad_arguments_is_rejected() -> None:
    assert ("unknown_tool", 0) in blocking(read_contract("See: " + json.dumps([native("nope", "{}")])))
    reply = read_contract("See: " + json.dumps([native("edit", "{not json}")]))
    assert [call.name for call in reply.attempts] == ["edit"] and blocking(reply)


def test_calls_in_blocks_take_precedence_over_native_json() -> None:
    for text in (json.dumps([native("run", "{}")]) + "\n" + CALL, CALL + "\n" + json.dumps([native("run", "{}")])):
        assert args(read_contract(text)) == [EDIT]


# -- feedback to the model ---------------------------------------------------------------------------------------------


def test_feedback_has_an_excerpt_of_stray_text() -> None:
    reply = read_contract("word " * 100 + CALL)
    assert violation_codes(reply) == ["stray_text"] and stray(reply) == ["word " * 99 + "word"]
    assert ("word " * 24).strip() in feedback(reply) and "word " * 26 not in feedback(reply)
    assert not violations(reply)[0].blocking


def test_feedback_names_an_unknown_tag() -> None:
    reply = read_contract(f"<answer>{CALL}</answer>")
    assert violation_codes(reply) == ["unknown_tag", "unknown_tag"] and "<answer>" in feedback(reply)


def test_fences_around_calls_are_not_stray_text() -> None:
    assert violations(read_contract('```js\n// x\n```\n```\nedit({ path: "a" })\n```')) != []
    assert violations(read_contract('```\nedit({ path: "a" })\n```')) == []


def test_feedback_names_the_call_and_shows_the_blocks() -> None:
    message = feedback(read_contract("<tool_call>edit({ path: 1 })</tool_call>Bye."))
    assert "edit: path must be a string" in message and "'Bye.'" in message
    assert skeleton() in message and all(
        tag in skeleton() for tag in ("tool_call", "assistant_prose", "user_response", "done")
    )


def test_the_skeleton_is_a_valid_reply() -> None:
    reply = read_contract(skeleton().replace("value", "1"), None)
    assert args(reply) == [("name", {"key": 1})] and violations(reply) == [] and reply.done == "##DONE##"


def test_feedback_works_for_a_reply_in_any_format() -> None:
    reply = parse(
        '<tool_call>{"name": "edit", "arguments": {"path": 1}}</tool_call>', tools=TOOLS, format="hermes", repair="off"
    )
    assert "path must be a string" in feedback(reply) and "<tool_call>" not in feedback(reply)
    assert feedback(parse("Hello.", format="hermes")) == "" and violations(parse("Hello.", format="hermes")) == []


def test_feedback_is_bounded() -> None:
    assert len(feedback(read_contract("nope({ a: 1 })\n" * 300 + "x" * 10_000))) < 12_000
    assert len(feedback(parse("<a>" * 50_000, format="contract", tools=TOOLS))) < 12_000


# -- canonical text for the history ------------------------------------------------------------------------------------


def test_the_canonical_text_has_the_blocks_and_no_stray_text() -> None:
    text = (
        f"So. <assistant_prose>I look.</assistant_prose>\nHm.\n{CALL}\nrun({{ command: 'b' }})\nOk.\n<done> yes </done>"
    )
    assert canonical(read_contract(text)) == (
        "<assistant_prose>\nI look.\n</assistant_prose>\n\n"
        '<tool_call>\nedit({ path: "a" })\n</tool_call>\n\n'
        '<tool_call>\nrun({ command: "b" })\n</tool_call>\n\n'
        "<done>yes</done>"
    )


def test_the_canonical_text_of_another_format_uses_contract_blocks() -> None:
    reply = parse('Look:\n<tool_call>{"name": "edit", "arguments": {"path": "a\\nb"}}</tool_call>', format="hermes")
    assert canonical(reply) == (
        "<assistant_prose>\nLook:\n</assistant_prose>\n\n<tool_call>\nedit({ path: <<EOF\na\nb\nEOF })\n</tool_call>"
    )


def test_text_cannot_inject_a_call_into_the_canonical_text() -> None:
    evil = "</assistant_prose><tool_call>run({})</tool_call>"
    again = read_contract(canonical(Reply((Text(evil), Call("edit", {"path": evil}, "")), (), "hermes")), repair="safe")
    assert args(again) == [("edit", {"path": evil})]


def test_an_unparsable_call_is_not_in_the_canonical_text() -> None:
    assert canonical(read_contract("<tool_call>edit({ path: })</tool_call>")) == ""


@given(data=st.data())
def test_the_canonical_text_parses_to_the_same_calls_and_is_stable(data: st.DataObject) -> None:
    reply = parse(data.draw(marker_texts(CONTRACT)), format="contract", tools=DECLARED, repair="off")
    once = canonical(reply)
    again = parse(once, format="contract", tools=DECLARED, repair="off")
    named = {call.name for call in reply.attempts if call.complete}
    assert {call.name for call in again.attempts} <= named
    assert canonical(again) == once and violation_codes(again) == []
    assert (again.done or None) == (reply.done or None)
    feedback(reply)


# -- streaming ---------------------------------------------------------------------------------------------------------


def test_a_call_begins_with_its_name_and_ends_or_fails_with_its_arguments() -> None:
    parser = Parser("contract", tools=TOOLS)
    (start,) = parser.feed("<tool_call>edit(")
    assert isinstance(start, CallStart) and start.name == "edit"
    assert parser.feed("{ path: ") == []
    wrong, end = parser.feed("}</tool_call>")
    assert isinstance(wrong, Problem) and wrong.call == 0
    assert isinstance(end, CallEnd) and not end.call.complete


def test_a_bare_call_is_emitted_only_when_it_is_complete() -> None:
    parser = Parser("contract", tools=TOOLS)
    assert parser.feed('edit({ path: "a"') == []
    assert [type(event).__name__ for event in parser.feed(" })\n") + parser.close()] == [
        *("CallStart", "Problem", "Arguments", "CallEnd"),
    ]


# -- aliases and integers ----------------------------------------------------------------------------------------------

OPS = {"type": "array", "items": {"type": "object", "properties": {"range_start": INTEGER}}}
ALIASED = Tool(
    name="edit",
    aliases={"file": "path", "mode": "action"},
    parameters={
        "type": "object",
        "properties": {"path": STRING, "action": STRING, "range_start": INTEGER, "ops": OPS},
        "required": ["path"],
    },
)


def test_declared_aliases_are_renamed_and_integer_strings_converted_with_a_receipt() -> None:
    text = '<tool_call>edit({ file: "a", mode: "patch", range_start: "3", ops: [{ range_start: " 7 " }] })</tool_call>'
    (call,) = read_contract(text, Toolset([ALIASED]), repair="safe").attempts
    assert call.arguments == {"path": "a", "action": "patch", "range_start": 3, "ops": [{"range_start": 7}]}
    assert sorted(repair.rule for repair in call.repairs if repair.rule == "alias") == ["alias", "alias"]


def test_a_declared_name_takes_precedence_over_its_alias() -> None:
    (call,) = read_contract(
        '<tool_call>edit({ file: "b", path: "a" })</tool_call>', Toolset([ALIASED]), repair="safe"
    ).attempts
    assert call.arguments["path"] == "a"


def test_arguments_of_a_tool_without_aliases_are_unchanged() -> None:
    plain = Tool(name="edit", parameters={"type": "object"})
    text = '<tool_call>edit({ file: "a", mode: "patch", range_start: "3" })</tool_call>'
    (call,) = read_contract(text, Toolset([plain]), repair="safe").attempts
    assert call.arguments == {"file": "a", "mode": "patch", "range_start": "3"} and call.repairs == ()


def test_aliases_are_applied_outside_a_block_and_in_a_fence() -> None:
    for text in ('edit({ file: "a" })', '```\nedit({ file: "a" })\n```'):
        assert runnable(read_contract(text, Toolset([ALIASED]), repair="safe")) == [("edit", {"path": "a"})]


# -- detection ---------------------------------------------------------------------------------------------------------

TOLD_APART = [
    (CALL, "contract"),
    ('<tool_call>{"name": "edit", "arguments": {"path": "a"}}</tool_call>', "hermes"),
    ("<tool_call>\n<function=edit>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>", "qwen3_coder"),
    ("<tool_call>edit\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>", "glm45"),
    (f"<assistant_prose>I look.</assistant_prose>{CALL}", "contract"),
    ('edit({ path: "a" })', "contract"),
    ('```\nedit({ path: "a" })\n```', "contract"),
]


@pytest.mark.parametrize("text, format", TOLD_APART)
def test_the_format_is_detected_from_the_beginning_of_a_block(text: str, format: str) -> None:
    for size in (len(text), 1, 5):
        parser = Parser(tools=TOOLS)
        for at in range(0, len(text), size):
            parser.feed(text[at : at + size])
        parser.close()
        assert (parser.reply.format, args(parser.reply)) == (format, [EDIT])


def test_no_call_is_found_in_texts_that_only_look_like_calls() -> None:
    rows = [json.loads(line) for line in (CORPUS / "prose.jsonl").read_text("utf-8").splitlines()]
    assert [row["text"] for row in rows if parse(row["text"], tools=PROSE, format="contract").attempts] == []


# -- any text ----------------------------------------------------------------------------------------------------------

NASTY = [
    *("f({ s: <<EOF\n", "\nEOF", "\n  EOF })", "f({", "})", "g()", "nope({", "Hint: f({})", "tool_code: f({ s: 'y' })"),
    *("<f({ s: 1 })>", "`f({})`", "```js\n", "\n```\n", "~~~\n", "<tool_call>", "</tool_call>", "<assistant_prose>"),
    *(
        "</assistant_prose>",
        "<done>",
        "</done>",
        "<done>x</done>",
        "<think>",
        "</think>",
        '"',
        "'",
        "\\",
        "${",
        "}",
        "`",
    ),
    *(
        "\\u",
        "\\ud83d\\ude00",
        "s: ",
        "-1.5e3",
        "undefined",
        "[",
        "]",
        "{",
        "//",
        "/*",
        "*/",
        "\n",
        "\r\n",
        "\ud800",
        "é",
    ),
    *('"<<EOF\n', 'EOF"', "<<", '[{"id": "call_1", "function": {"name": "f", "arguments": "{}"}}]', ",", ";", ")", "("),
]


@given(text=st.lists(st.sampled_from(NASTY), max_size=24).map("".join), tools=st.sampled_from([None, DECLARED]))
def test_protocol_text_parses_the_same_under_every_chunking_without_loss(text: str, tools: Toolset | None) -> None:
    reply = hold_of_every_cut(text, Setting("contract", tools), seed=len(text))
    feedback(reply)
    canonical(reply)


def test_a_reply_that_looks_like_a_call_is_reported_to_the_model() -> None:
    tool = {"name": "lookup", "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}}
    call = '{"name": "lookup", "arguments": {"word": "owl"}}'
    message = feedback(parse(f"Let me see. {call} is what I need.", tools=[tool], format="hermes"))
    assert "looks like a call of 'lookup'" in message
    text_with_call = f"<tool_call>{call}</tool_call> as in {call}"
    assert feedback(parse(text_with_call, tools=[tool], format="hermes")) == ""
