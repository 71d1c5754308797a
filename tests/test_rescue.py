"""Calls in another shape than the expected one are rescued if they are certain, with a note, and never out of prose."""

from __future__ import annotations

import json

import pytest

from rightcall import Call, Parser, Reasoning, Recast, Reply, Text, Tool, Toolset, parse, render
from rightcall.formats import FORMATS, NAMED_ONLY
from rightcall.formats.spec import Special, marker_alternatives
from rightcall.parsing.compile import ends_of
from rightcall.types import Part
from support.cuts import Setting, hold_of_every_cut
from support.cuts import read as read_chunks
from support.format_sample import sampled
from support.replies import (
    BARE,
    EITHER,
    INTEGER,
    STRING,
    Json,
    args,
    blocking,
    codes,
    hermes,
    make_call,
    notes,
    runnable,
    wrong,
)

TOOLS = Toolset(
    [
        Tool(
            name="get_weather",
            parameters={
                "type": "object",
                "properties": {"city": STRING, "days": INTEGER},
                "required": ["city"],
                "additionalProperties": False,
            },
        ),
        Tool(name="ping", parameters={"type": "object", "properties": {}, "additionalProperties": False}),
    ]
)
OSLO = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
ROME = '{"name": "get_weather", "arguments": {"city": "Rome"}}'
NATIVE = (
    '{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}}'
)


def read(text: str, format: str = "glm45", tools: Toolset | None = TOOLS, **options: object) -> Reply:
    return hold_of_every_cut(text, Setting(format, tools, **options))  # type: ignore[arg-type]


def weather(*cities: str) -> list[tuple[str, Json]]:
    return [("get_weather", {"city": city}) for city in cities]


# -- rescued calls -----------------------------------------------------------------------------------------------------

BARE_REPLIES: dict[str, tuple[str, list[tuple[str, Json]]]] = {
    "a bare object": (OSLO, weather("Oslo")),
    "blanks around it": (f"\n  {OSLO}\n\n", weather("Oslo")),
    "an object of several lines": (OSLO.replace(", ", ",\n  "), weather("Oslo")),
    "other keys": ('{"tool": "get_weather", "parameters": {"city": "Oslo"}}', weather("Oslo")),
    "no arguments": ('{"name": "ping"}', [("ping", {})]),
    "several objects in a row": (f"{OSLO}\n{ROME}", weather("Oslo", "Rome")),
    "several objects and no blank": (OSLO + ROME, weather("Oslo", "Rome")),
    "a list": (f"[{OSLO}, {ROME}]", weather("Oslo", "Rome")),
    "a fence": (f"```json\n{OSLO}\n```", weather("Oslo")),
    "a fence of another name": (f"```tool_call\n{OSLO}\n```", weather("Oslo")),
    "a fence without a name": (f"```\n[{OSLO}]\n```\n", weather("Oslo")),
    "name[ARGS]": ('get_weather[ARGS]{"city": "Oslo"}', weather("Oslo")),
    "a bare call": ("get_weather(city='Oslo')", weather("Oslo")),
    "bare calls per line": ('get_weather(city="Oslo")\nget_weather(city="Rome")', weather("Oslo", "Rome")),
    "a list of calls": ('[get_weather(city="Oslo"), ping()]', [*weather("Oslo"), ("ping", {})]),
    "native JSON": (NATIVE, weather("Oslo")),
    "a native JSON array": (f"[{NATIVE}]", weather("Oslo")),
    "tool_calls": (f'{{"tool_calls": [{OSLO}]}}', weather("Oslo")),
}
MARKED_REPLIES: dict[str, tuple[str, list[tuple[str, Json]]]] = {
    "hermes": (f"Let me look.\n{hermes(OSLO)}\nDone.", weather("Oslo")),
    "two blocks": (f"Let me look.\n{hermes(OSLO)}\n{hermes(ROME)}\nDone.", weather("Oslo", "Rome")),
    "mistral": ('Let me look.[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}', weather("Oslo")),
    "lfm2": ("Let me look.\n<|tool_call_start|>[get_weather(city='Oslo')]<|tool_call_end|>\nDone.", weather("Oslo")),
    "minimax_m2": (
        'Let me look.\n<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Oslo</parameter>\n'
        "</invoke>\n</minimax:tool_call>\nDone.",
        weather("Oslo"),
    ),
}
# Formats whose own markers are none of those above.
OTHER_FORMATS = ["glm45", "kimi_k2", "harmony", "functionary_v31", "gemma4", "deepseek_v31", "granite4"]


@pytest.mark.parametrize("format", OTHER_FORMATS)
@pytest.mark.parametrize("shape", BARE_REPLIES)
def test_a_reply_that_consists_of_calls_is_rescued_in_every_format(format: str, shape: str) -> None:
    text, calls = BARE_REPLIES[shape]
    reply = read(text, format)
    assert (runnable(reply), reply.content, reply.reasoning) == (calls, "", "")
    assert [(p.code, p.call, p.blocking) for p in reply.problems] == [("rescued", i, False) for i in range(len(calls))]


@pytest.mark.parametrize("format", [name for name in OTHER_FORMATS if name != "granite4"])
@pytest.mark.parametrize("shape", MARKED_REPLIES)
def test_calls_in_markers_of_another_format_are_rescued_and_the_text_is_kept(format: str, shape: str) -> None:
    text, calls = MARKED_REPLIES[shape]
    reply = read(text, format)
    if format == "glm45" and shape in ("hermes", "two blocks"):  # GLM opens its calls with the same tag
        assert runnable(reply) == [] and {code for code, _ in blocking(reply)} == {"invalid_call"}
        return
    assert runnable(reply) == calls
    assert set(wrong(reply)) - {"unclosed"} == {"rescued"}
    assert reply.content.startswith("Let me look.")
    assert "get_weather" not in reply.content


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if name not in BARE | EITHER))
def test_calls_of_any_format_are_rescued_if_another_format_was_named(name: str) -> None:
    parts: list[Part] = [Text("Look:"), make_call("get_weather", city="Oslo")]
    text = render(parts, format=name, tools=TOOLS)
    other = "phi4_mini" if name != "phi4_mini" else "hermes"
    if name in NAMED_ONLY:
        assert notes(parse(text, format=other, tools=TOOLS)) == {"looks_like_a_call"}
        return
    assert runnable(parse(text, format=other, tools=TOOLS)) == weather("Oslo")


def reasoning_text(name: str) -> str:
    """Return reasoning in the notation of the format, or "" if it has none."""
    format = FORMATS[name]
    messages = {} if format.channels is None else format.channels.messages
    opens, closes = [marker_alternatives(each)[0] for each in format.reasoning or messages.get("reasoning", ("", ""))]
    return f"{opens}hm{closes}" if opens else ""


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if reasoning_text(name)))
def test_reasoning_before_a_call_does_not_change_its_rescue(name: str) -> None:
    # Only the first of the messages with headers may begin without its token.
    for other in [each for each in FORMATS if each not in NAMED_ONLY and FORMATS[each].channels is None]:
        text = render([make_call("get_weather", city="Oslo")], format=other, tools=TOOLS)
        alone, behind = [parse(before + text, format=name, tools=TOOLS) for before in ("", reasoning_text(name))]
        assert runnable(behind) == runnable(alone), other
        assert (behind.reasoning, behind.content) == ("hm", alone.content), other


def test_repairs_of_a_rescued_call_are_recorded() -> None:
    reply = read("{'name': 'get_weather', 'arguments': {'city': 'Oslo', 'days': '3'}}")
    assert runnable(reply) == [("get_weather", {"city": "Oslo", "days": 3})]
    assert [r.rule for r in reply.attempts[0].repairs] == ["single_quotes", "scalar_type"]
    assert runnable(read("{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}", repair="off")) == []


def test_the_id_of_a_rescued_call_is_kept() -> None:
    [call] = read(f"[{NATIVE}]").attempts
    assert call.id == "call_1"


def test_calls_of_the_named_format_are_never_rescued() -> None:
    text = f"{OSLO}\n{hermes(ROME)}"
    reply = read(text, "hermes")
    assert runnable(reply) == weather("Rome")
    assert "Oslo" in reply.content
    assert codes(reply) == ["looks_like_a_call"]


# -- events ------------------------------------------------------------------------------------------------------------


def test_emitted_text_of_a_rescued_call_is_recast() -> None:
    result = read_chunks(list(OSLO), Setting("glm45", TOOLS))
    recast = [event for event in result.events if isinstance(event, Recast)]
    assert recast == [Recast(len(OSLO), "call")]
    assert "".join(event.text for event in result.events if isinstance(event, Text)) == OSLO
    assert [type(part) for part in result.reply.parts] == [Call]


def test_surrounding_text_is_emitted_again_after_the_recast() -> None:
    text = f"Let me look.\n{hermes(OSLO)}\nDone."
    result = read_chunks(list(text), Setting("kimi_k2", TOOLS))
    assert [type(part) for part in result.reply.parts] == [Text, Call, Text]
    at = next(i for i, event in enumerate(result.events) if isinstance(event, Recast))
    emitted = "".join(event.text for event in result.events[:at] if isinstance(event, Text))
    assert result.events[at] == Recast(len(emitted), "call")
    assert [event for event in result.events[at:] if isinstance(event, Text)] == [Text("Let me look."), Text("Done.")]


def test_with_hold_no_text_is_recast() -> None:
    for format in ("glm45", "hermes", "kimi_k2"):
        parser = Parser(format, tools=TOOLS, hold=True)
        events = [event for char in OSLO for event in parser.feed(char)] + parser.close()
        assert not [event for event in events if isinstance(event, Recast)]
        assert args(parser.reply) == weather("Oslo")


def test_the_raw_text_of_a_rescued_call_is_part_of_the_reply() -> None:
    for text, _ in (*BARE_REPLIES.values(), *MARKED_REPLIES.values()):
        assert all(call.raw in text for call in read(text).attempts)


# -- text that is not rescued ------------------------------------------------------------------------------------------

NOT_TRUSTED = {
    "an undeclared tool": '{"name": "nope", "arguments": {}}',
    "a good call and an undeclared tool": f'{OSLO}\n{{"name": "nope", "arguments": {{}}}}',
    "markers of an undeclared tool": hermes('{"name": "nope", "arguments": {}}'),
    "markers with arguments that do not fit": hermes('{"name": "get_weather", "arguments": {"days": "many"}}'),
    "markers of a good call and of an undeclared tool": f"{hermes(OSLO)}\n"
    + hermes('{"name": "nope", "arguments": {}}'),
    "a call of an undeclared function": "print('hello')",
    "an object that is cut off": OSLO[:-1],
    "a list that is cut off": f"[{OSLO}",
    "a fence that is cut off": f"```json\n{OSLO}",
    "a call that is cut off": "get_weather(city='Oslo'",
    "markers that are cut off": hermes(OSLO)[:-20],
    "an object without a name": '{"city": "Oslo"}',
}
PROSE = {
    "text before": f"Here you go: {OSLO}",
    "text behind": f"{OSLO}\nThat is what I would send.",
    "a fence and text before": f"For example:\n```json\n{OSLO}\n```",
    "a fence and text behind": f"```json\n{OSLO}\n```\nThat is what I would send.",
    "two fences": f"```json\n{OSLO}\n```\n```json\n{ROME}\n```\nOne of them.",
    "inline code": f"Use `{OSLO}`.",
    "markers in a fence": f"Example:\n```\n{hermes(OSLO)}\n```\n",
    "markers in inline code": f"Write `{hermes(OSLO)}` to call.",
    "markers in inline code, behind words": f"Write `Sure. {hermes(OSLO)}` to call.".replace("\n", " "),
    "markers in quotes": f'Write "{hermes(OSLO)}" to call.',
    "a call in a sentence": "I would call get_weather(city='Oslo') here.",
    "a call and a comment": "get_weather(city='Oslo') gives the weather of Oslo.",
    "a name and a list": "get_weather[ARGS] takes a city.",
    "json of another kind": '{"name": "Oslo", "country": "Norway"}',
    "a marker in prose": "The <tool_call> tag opens a call.",
}


@pytest.mark.parametrize("format", ["glm45", "kimi_k2", "mistral_v11"])
@pytest.mark.parametrize("kind", [*NOT_TRUSTED, *PROSE])
def test_prose_and_untrusted_calls_are_unchanged_text(format: str, kind: str) -> None:
    text = (NOT_TRUSTED | PROSE)[kind]
    reply = read(text, format)
    assert runnable(reply) == []
    if ("markers" not in kind or format == "kimi_k2") and (kind, format) != ("a name and a list", "mistral_v11"):
        assert (reply.content, reply.attempts, wrong(reply)) == (text, (), [])
        is_near = "get_weather" in text or "ping" in text
        assert notes(reply) - {"opener_without_call"} == ({"looks_like_a_call"} if is_near else set())


def test_a_token_of_the_format_in_prose_is_dropped_with_a_note() -> None:
    reply = read("get_weather[ARGS] takes a city.", "mistral_v11")
    assert (reply.content, wrong(reply)) == ("get_weather\ntakes a city.", [])
    assert "stray_marker" in notes(reply)
    reply = read("[TOOL_CALLS] is Mistral's marker.", "auto")
    assert (reply.content.strip(), codes(reply)) == ("is Mistral's marker.", ["opener_without_call"])


@pytest.mark.parametrize("format", ["glm45", "kimi_k2", "mistral_v11", "auto", "hermes"])
@pytest.mark.parametrize(
    "text, code",
    [
        ('{"name": "get_weather", "arguments": {"city": ["a", "b"]}}', "wrong_type"),
        ('{"name": "get_weather", "arguments": {}}', "missing"),
        ('{"name": "ping", "arguments": {"x": 1}}', "unknown_argument"),
        (f'[{OSLO}, {{"name": "get_weather", "arguments": {{}}}}]', "missing"),
        ('```json\n{"name": "get_weather"}\n```', "missing"),
    ],
)
def test_a_reply_that_consists_of_invalid_calls_gives_rejected_calls(format: str, text: str, code: str) -> None:
    reply = read(text, format)
    assert (reply.content, len(reply.refused)) == ("", 1)
    assert blocking(reply) == [(code, len(reply.attempts) - 1)]


@pytest.mark.parametrize("kind", [*BARE_REPLIES, *MARKED_REPLIES])
def test_nothing_is_rescued_without_tools(kind: str) -> None:
    text, _ = (BARE_REPLIES | MARKED_REPLIES)[kind]
    for tools in (None, Toolset(())):
        reply = read(text, "kimi_k2", tools)
        expected_text = text.replace("<|tool_call_end|>", "")  # this is a token of Kimi, too, and closes nothing here
        assert (reply.content, reply.attempts, wrong(reply)) == (expected_text, (), [])


UNCLOSED = [
    'get_weather(city="Oslo")\nget_weather(city="Rome)',
    'get_weather({ city: "Oslo" })\nget_weather({ city: "Rome })',
    '[get_weather(city="Oslo"), get_weather(city="Rome)]',
    OSLO + ";" + ROME.replace('"Rome"', 'Rome"'),
    OSLO + "\n" + ROME.replace('"Rome"', '"Rome'),
    "[" + OSLO + ", " + ROME.replace('"Rome"', '"Rome') + "]",
]


@pytest.mark.parametrize("text", UNCLOSED)
@pytest.mark.parametrize("format", ["glm45", "qwen3_coder"])
def test_a_reply_whose_last_string_is_not_closed_is_text(format: str, text: str) -> None:
    """That string would hold the markers with which the reply is tried as calls."""
    reply = read(text, format)
    assert (reply.attempts, reply.content) == ((), text)


@pytest.mark.parametrize("text", [OSLO, hermes(OSLO), "get_weather(city='Oslo')", f"```json\n{OSLO}\n```"])
def test_no_prefix_of_a_rescued_reply_is_completed(text: str) -> None:
    for format in ("kimi_k2", "glm45", "auto"):
        for end in range(len(text)):
            got = runnable(parse(text[:end], format=format, tools=TOOLS, repair="lenient"))
            assert got in ([], weather("Oslo")), text[:end]
            if OSLO in text and OSLO not in text[:end]:
                assert got == [], text[:end]


def test_a_tool_outside_the_scope_is_not_rescued() -> None:
    assert read(OSLO, tools=TOOLS.scoped(["ping"])).attempts == ()


@pytest.mark.parametrize("format", ["auto", "hermes", "forced_choice"])
def test_with_a_forced_choice_bare_arguments_are_the_call(format: str) -> None:
    reply = parse('{"city": "Oslo"}', format=format, tools=TOOLS, choice="get_weather")
    assert (runnable(reply), reply.content) == (weather("Oslo"), "")
    assert runnable(parse('{"town": "Oslo"}', format=format, tools=TOOLS, choice="get_weather")) == []
    assert parse('{"city": "Oslo"}', tools=TOOLS).content == '{"city": "Oslo"}'


CALLS_OF_ANOTHER_TOOL = [
    '{"name": "ping", "arguments": {"city": "Oslo"}}',
    '{"tool": "ping", "parameters": {"city": "Oslo"}}',
]


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize(
    "text", [*CALLS_OF_ANOTHER_TOOL, '{"name": "get_weather", "arguments": {"city": "Oslo"}}', '{"city": "Oslo"}']
)
def test_the_tool_of_a_forced_choice_is_independent_of_chunking(text: str, live: bool) -> None:
    for size in range(1, len(text) + 1):
        parser = Parser("forced_choice", tools=TOOLS, choice="get_weather", live=live)
        for start in range(0, len(text), size):
            parser.feed(text[start : start + size])
        parser.close()
        assert runnable(parser.reply) == ([] if text in CALLS_OF_ANOTHER_TOOL else weather("Oslo"))
        assert [call.name for call in parser.reply.attempts] == ["get_weather"]


@pytest.mark.parametrize("sent", CALLS_OF_ANOTHER_TOOL)
def test_arguments_that_are_a_call_of_another_tool_are_never_unwrapped(sent: str) -> None:
    reply = parse(hermes(f'{{"name": "get_weather", "arguments": {sent}}}'), format="hermes", tools=TOOLS)
    assert (runnable(reply), [problem.code for problem in reply.problems]) == (
        [],
        ["missing", "unknown_argument", "misplaced_argument"],
    )


def test_a_tool_definition_is_not_a_call() -> None:
    tool = Tool(name="record", parameters={"type": "object", "properties": {"a": STRING}})
    text = '{"name": "record", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}'
    assert read(text, tools=Toolset([tool])).parts == (Text(text),)


@pytest.mark.parametrize(
    "shown", ["`a<|call|>` and", "```\na<|call|>\n```", 'the "x<|call|>" is', "in `<|end|>, `<|call|>` or"]
)
def test_a_quoted_end_token_is_text(shown: str) -> None:
    assert read(shown, "harmony").parts == (Text(shown),)


@pytest.mark.parametrize("text", ["```\nprint(1)<|return|>", "a `b<|return|>", 'a "b<|return|>\n', "Hi.<|return|>"])
def test_an_end_token_that_ends_the_turn_is_never_text(text: str) -> None:
    assert read(text, "harmony").content == text.partition("<|return|>")[0]


# -- calls in reasoning ------------------------------------------------------------------------------------------------

REASONING_WITH_CALL = f"I should look.\n{hermes(OSLO)}"


@pytest.mark.parametrize("format", ["hermes", "auto"])
@pytest.mark.parametrize("text", [f"<think>{REASONING_WITH_CALL}</think>", f"<think>{REASONING_WITH_CALL}</think>\n\n"])
def test_a_call_in_reasoning_is_rescued_if_the_reply_has_no_call_or_content(format: str, text: str) -> None:
    reply = parse(text, format=format, tools=TOOLS)
    assert runnable(reply) == weather("Oslo")
    assert [(p.code, p.call, p.blocking) for p in reply.problems if p.code != "unclosed"] == [
        ("call_in_reasoning", 0, False)
    ]
    assert reply.reasoning == "I should look."


@pytest.mark.parametrize("format", ["hermes", "auto"])
@pytest.mark.parametrize("tools", [TOOLS, None, Toolset(())])
def test_a_call_in_reasoning_that_was_never_closed_is_not_runnable(format: str, tools: Toolset | None) -> None:
    reply = read(f"<think>{REASONING_WITH_CALL}", format, tools)
    assert args(reply) == weather("Oslo") and reply.calls == () and reply.reasoning == "I should look."
    assert "call_in_open_reasoning" in codes(reply)
    never = parse(f"<think>{REASONING_WITH_CALL}", format=format, tools=tools, reasoning_calls="never")
    assert never.attempts == () and REASONING_WITH_CALL in never.reasoning


@pytest.mark.parametrize("format", ["hermes", "auto"])
@pytest.mark.parametrize(
    "text, expected_calls",
    [
        (f"<think>{REASONING_WITH_CALL}</think>It is sunny.", []),
        (f"<think>{REASONING_WITH_CALL}</think>{hermes(ROME)}", weather("Rome")),
        (f"<think>{REASONING_WITH_CALL}</think>It is sunny.{hermes(ROME)}", weather("Rome")),
        (f"<think>{REASONING_WITH_CALL} Or rather not.</think>", []),
        (f"<think>{REASONING_WITH_CALL[:-20]}", []),
        ("<think>I could use <tool_call> here.</think>", []),
    ],
)
def test_a_call_in_reasoning_is_not_rescued_if_other_content_follows(
    format: str, text: str, expected_calls: list[tuple[str, Json]]
) -> None:
    reply = parse(text, format=format, tools=TOOLS)
    assert runnable(reply) == expected_calls
    assert "call_in_reasoning" not in codes(reply)


def test_a_call_in_reasoning_parses_the_same_under_every_chunking() -> None:
    reply = read(f"<think>{REASONING_WITH_CALL}</think>", "hermes")
    assert [type(part) for part in reply.parts] == [Reasoning, Call]


def test_a_call_in_reasoning_with_a_dropped_token_is_not_rescued() -> None:
    text = hermes('{"name": "get_weather", "arguments": {"city": "Os<|im_end|>lo"}}')
    assert parse(text, format="hermes", tools=TOOLS, reasoning="open").calls == ()


def test_a_call_rescued_from_reasoning_is_checked_against_the_tools() -> None:
    text = f"<think>{REASONING_WITH_CALL}</think>"
    assert args(parse(text, format="hermes")) == weather("Oslo")
    for tools in (Toolset(()), TOOLS.scoped(["ping"])):
        reply = parse(text, format="hermes", tools=tools)
        assert reply.calls == () and args(reply) == weather("Oslo")
        assert {"call_in_reasoning", "unknown_tool", "not_authorised"} > set(codes(reply)) > {"call_in_reasoning"}


def test_reasoning_off_makes_a_call_in_think_tags_an_ordinary_call() -> None:
    reply = parse(f"<think>{REASONING_WITH_CALL}</think>", format="hermes", tools=TOOLS, reasoning="off")
    assert (runnable(reply), codes(reply), reply.reasoning) == (weather("Oslo"), [], "")


def test_calls_after_reasoning_are_rescued_and_the_reasoning_is_kept_once() -> None:
    for format in ("seed_oss", "kimi_k2"):
        reply = read(f"<think>Plan.</think>\n{hermes(OSLO)}", format)
        assert runnable(reply) == weather("Oslo")
        assert reply.reasoning == "Plan."
        bare = read(f"<think>Plan.</think>\n{OSLO}", format)
        assert bare.reasoning == "Plan."
        assert blocking(bare) == []


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if name not in NAMED_ONLY))
@pytest.mark.parametrize("before", ["", "Let me see. ", OSLO, f"[{OSLO}]"], ids=["alone", "text", "call", "list"])
def test_a_bare_call_in_a_thought_that_is_not_closed_never_runs(name: str, before: str) -> None:
    assert runnable(read(f"{before}<think>[{OSLO}, {ROME}]", name)) in ([], weather("Oslo"))
    assert weather("Rome")[0] not in runnable(read(f"{before}<think>\n{ROME}", name))


def test_a_bare_call_after_reasoning_is_rescued() -> None:
    for format in ("hermes", "auto"):
        reply = parse(f"<think>Plan.</think>\n\n{OSLO}", format=format, tools=TOOLS)
        assert (runnable(reply), reply.reasoning) == (weather("Oslo"), "Plan.")


INNER = {"name": "stop", "arguments": {}}
OUTER = [
    {"name": "nope", "arguments": {"then": INNER}},
    {"name": "lookup", "arguments": {"word": 3, "then": [INNER, INNER]}},
    {"type": "object", "default": INNER},
    {"plan": [INNER, {"name": "lookup", "arguments": {"word": "owl"}}]},
]
NESTED_CALL_TEXTS = [json.dumps(outer) for outer in OUTER] + [f"[nope(then={json.dumps(INNER)}, n=1)]"]


@pytest.mark.parametrize("name", ["auto", *sampled()])
def test_an_object_inside_the_arguments_is_not_a_call(name: str) -> None:
    word = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    tools = Toolset.of([{"name": "lookup", "parameters": word}, {"name": "stop"}])
    for text in NESTED_CALL_TEXTS:
        for end in range(text.index("{"), len(text) + 1):
            reply = parse(f"Sure: {text[:end]}", format=name, tools=tools)
            assert "stop" not in [call.name for call in reply.calls], text[:end]


@pytest.mark.parametrize("name", sampled())
def test_an_end_token_in_a_string_of_a_broken_bare_call_does_not_make_it_text(name: str) -> None:
    for end in [str(end) for end in ends_of(FORMATS[name]) if isinstance(end, Special) and '"' not in end]:
        # The name is not valid JSON, and no quotation begins after the equals sign that would make the token quoted
        # text.
        text = f'[{{"name": "get_w\neather", "arguments": {{"city": "={end}x", "days": 3}}}}]'
        expected_calls = [("get_weather", {"city": f"={end}x", "days": 3})]
        assert [runnable(hold_of_every_cut(text, Setting(each, TOOLS))) for each in ("auto", name)] == [
            expected_calls
        ] * 2, end


UNMARKED = {
    "llama3_json": '{"name": "get_weather", "parameters": {"city": "Oslo"}}',
    "pythonic": '[get_weather(city="Oslo")]',
    "xlam": '[{"name": "get_weather", "arguments": {"city": "Oslo"}}]',
    "generic_json": '{"tool_calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}',
    "contract": 'get_weather({ city: "Oslo" })',
    "auto": '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
}


@pytest.mark.parametrize("name", sampled(UNMARKED))
@pytest.mark.parametrize("close", ["", "</think>"])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_call_without_a_marker_in_reasoning_is_reasoning(name: str, close: str, is_open: bool) -> None:
    text = ("" if is_open else "<think>\n") + UNMARKED[name] + close
    reply = hold_of_every_cut(text, Setting(name, TOOLS, reasoning="open" if is_open else "auto"))
    assert (reply.attempts, reply.reasoning) == ((), UNMARKED[name]) and "looks_like_a_call" in codes(reply)
