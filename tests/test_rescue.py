"""Calls in another shape than the one expected: taken when they are sure, with a note, and never out of prose."""

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
    made,
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


def read(text: str, format: str = "glm45", tools: Toolset | None = TOOLS, **how: object) -> Reply:
    return hold_of_every_cut(text, Setting(format, tools, **how))  # type: ignore[arg-type]


def weather(*cities: str) -> list[tuple[str, Json]]:
    return [("get_weather", {"city": city}) for city in cities]


# -- what is rescued ---------------------------------------------------------------------------------------------------

WHOLE: dict[str, tuple[str, list[tuple[str, Json]]]] = {
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
AROUND: dict[str, tuple[str, list[tuple[str, Json]]]] = {
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
# Formats whose own markers are none of those.
STRANGERS = ["glm45", "kimi_k2", "harmony", "functionary_v31", "gemma4", "deepseek_v31", "granite4"]


@pytest.mark.parametrize("format", STRANGERS)
@pytest.mark.parametrize("shape", WHOLE)
def test_a_reply_of_nothing_but_calls_is_rescued_in_every_format(format: str, shape: str) -> None:
    text, calls = WHOLE[shape]
    reply = read(text, format)
    assert (runnable(reply), reply.content, reply.reasoning) == (calls, "", "")
    assert [(p.code, p.call, p.blocking) for p in reply.problems] == [("rescued", i, False) for i in range(len(calls))]


@pytest.mark.parametrize("format", [name for name in STRANGERS if name != "granite4"])
@pytest.mark.parametrize("shape", AROUND)
def test_another_formats_markers_are_taken_with_the_text_around_them(format: str, shape: str) -> None:
    text, calls = AROUND[shape]
    reply = read(text, format)
    if format == "glm45" and shape in ("hermes", "two blocks"):  # GLM opens its calls with the same tag
        assert runnable(reply) == [] and {code for code, _ in blocking(reply)} == {"invalid_call"}
        return
    assert runnable(reply) == calls
    assert set(wrong(reply)) - {"unclosed"} == {"rescued"}
    assert reply.content.startswith("Let me look.")
    assert "get_weather" not in reply.content


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if name not in BARE | EITHER))
def test_calls_in_any_format_are_accepted_where_another_was_named(name: str) -> None:
    parts: list[Part] = [Text("Look:"), made("get_weather", city="Oslo")]
    text = render(parts, format=name, tools=TOOLS)
    other = "phi4_mini" if name != "phi4_mini" else "hermes"
    if name in NAMED_ONLY:
        assert notes(parse(text, format=other, tools=TOOLS)) == {"looks_like_a_call"}
        return
    assert runnable(parse(text, format=other, tools=TOOLS)) == weather("Oslo")


def thought(name: str) -> str:
    """A thought as the format writes it; "" where it has none."""
    format = FORMATS[name]
    messages = {} if format.channels is None else format.channels.messages
    opens, closes = [marker_alternatives(each)[0] for each in format.reasoning or messages.get("reasoning", ("", ""))]
    return f"{opens}hm{closes}" if opens else ""


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if thought(name)))
def test_a_thought_before_them_changes_nothing_for_calls_in_any_format(name: str) -> None:
    # Of messages with headers only the first may begin without its token.
    for other in [each for each in FORMATS if each not in NAMED_ONLY and FORMATS[each].channels is None]:
        text = render([made("get_weather", city="Oslo")], format=other, tools=TOOLS)
        alone, behind = [parse(before + text, format=name, tools=TOOLS) for before in ("", thought(name))]
        assert runnable(behind) == runnable(alone), other
        assert (behind.reasoning, behind.content) == ("hm", alone.content), other


def test_what_is_repaired_on_the_way_has_its_receipt() -> None:
    reply = read("{'name': 'get_weather', 'arguments': {'city': 'Oslo', 'days': '3'}}")
    assert runnable(reply) == [("get_weather", {"city": "Oslo", "days": 3})]
    assert [r.rule for r in reply.attempts[0].repairs] == ["single_quotes", "scalar_type"]
    assert runnable(read("{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}", repair="off")) == []


def test_an_id_in_the_text_is_kept() -> None:
    [call] = read(f"[{NATIVE}]").attempts
    assert call.id == "call_1"


def test_calls_of_the_named_format_are_never_rescued() -> None:
    text = f"{OSLO}\n{hermes(ROME)}"
    reply = read(text, "hermes")
    assert runnable(reply) == weather("Rome")
    assert "Oslo" in reply.content
    assert codes(reply) == ["looks_like_a_call"]


# -- events ------------------------------------------------------------------------------------------------------------


def test_emitted_text_is_taken_back_with_a_recast() -> None:
    got = read_chunks(list(OSLO), Setting("glm45", TOOLS))
    recast = [event for event in got.events if isinstance(event, Recast)]
    assert recast == [Recast(len(OSLO), "call")]
    assert "".join(event.text for event in got.events if isinstance(event, Text)) == OSLO
    assert [type(part) for part in got.reply.parts] == [Call]


def test_surrounding_text_is_emitted_again_after_the_recast() -> None:
    text = f"Let me look.\n{hermes(OSLO)}\nDone."
    got = read_chunks(list(text), Setting("kimi_k2", TOOLS))
    assert [type(part) for part in got.reply.parts] == [Text, Call, Text]
    at = next(i for i, event in enumerate(got.events) if isinstance(event, Recast))
    given = "".join(event.text for event in got.events[:at] if isinstance(event, Text))
    assert got.events[at] == Recast(len(given), "call")
    assert [event for event in got.events[at:] if isinstance(event, Text)] == [Text("Let me look."), Text("Done.")]


def test_held_text_is_never_taken_back() -> None:
    for format in ("glm45", "hermes", "kimi_k2"):
        parser = Parser(format, tools=TOOLS, hold=True)
        events = [event for char in OSLO for event in parser.feed(char)] + parser.close()
        assert not [event for event in events if isinstance(event, Recast)]
        assert args(parser.reply) == weather("Oslo")


def test_the_raw_text_of_a_rescued_call_is_the_text_it_was_read_from() -> None:
    for text, _ in (*WHOLE.values(), *AROUND.values()):
        assert all(call.raw in text for call in read(text).attempts)


# -- what is not -------------------------------------------------------------------------------------------------------

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
def test_prose_and_calls_that_may_not_run_stay_text_to_the_byte(format: str, kind: str) -> None:
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
def test_a_reply_of_nothing_but_calls_that_do_not_fit_is_refused_calls(format: str, text: str, code: str) -> None:
    reply = read(text, format)
    assert (reply.content, len(reply.refused)) == ("", 1)
    assert blocking(reply) == [(code, len(reply.attempts) - 1)]


@pytest.mark.parametrize("kind", [*WHOLE, *AROUND])
def test_without_tools_nothing_is_rescued(kind: str) -> None:
    text, _ = (WHOLE | AROUND)[kind]
    for tools in (None, Toolset(())):
        reply = read(text, "kimi_k2", tools)
        said = text.replace("<|tool_call_end|>", "")  # which is a token of Kimi's too: here it closes nothing
        assert (reply.content, reply.attempts, wrong(reply)) == (said, (), [])


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
def test_where_the_request_named_the_tool_its_arguments_alone_are_the_call(format: str) -> None:
    reply = parse('{"city": "Oslo"}', format=format, tools=TOOLS, choice="get_weather")
    assert (runnable(reply), reply.content) == (weather("Oslo"), "")
    assert runnable(parse('{"town": "Oslo"}', format=format, tools=TOOLS, choice="get_weather")) == []
    assert parse('{"city": "Oslo"}', tools=TOOLS).content == '{"city": "Oslo"}'


OTHER = ['{"name": "ping", "arguments": {"city": "Oslo"}}', '{"tool": "ping", "parameters": {"city": "Oslo"}}']


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("text", [*OTHER, '{"name": "get_weather", "arguments": {"city": "Oslo"}}', '{"city": "Oslo"}'])
def test_which_tool_a_forced_choice_calls_does_not_depend_on_the_cut(text: str, live: bool) -> None:
    for size in range(1, len(text) + 1):
        parser = Parser("forced_choice", tools=TOOLS, choice="get_weather", live=live)
        for start in range(0, len(text), size):
            parser.feed(text[start : start + size])
        parser.close()
        assert runnable(parser.reply) == ([] if text in OTHER else weather("Oslo"))
        assert [call.name for call in parser.reply.attempts] == ["get_weather"]


@pytest.mark.parametrize("sent", OTHER)
def test_arguments_that_are_a_call_of_another_tool_are_never_taken_out_of_it(sent: str) -> None:
    reply = parse(hermes(f'{{"name": "get_weather", "arguments": {sent}}}'), format="hermes", tools=TOOLS)
    assert (runnable(reply), [problem.code for problem in reply.problems]) == (
        [],
        ["missing", "unknown_argument", "misplaced_argument"],
    )


def test_the_definition_of_a_tool_is_no_call() -> None:
    tool = Tool(name="record", parameters={"type": "object", "properties": {"a": STRING}})
    text = '{"name": "record", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}'
    assert read(text, tools=Toolset([tool])).parts == (Text(text),)


@pytest.mark.parametrize(
    "shown", ["`a<|call|>` and", "```\na<|call|>\n```", 'the "x<|call|>" is', "in `<|end|>, `<|call|>` or"]
)
def test_an_end_token_that_is_shown_is_text(shown: str) -> None:
    assert read(shown, "harmony").parts == (Text(shown),)


@pytest.mark.parametrize("text", ["```\nprint(1)<|return|>", "a `b<|return|>", 'a "b<|return|>\n', "Hi.<|return|>"])
def test_an_end_token_that_ends_the_turn_is_never_text(text: str) -> None:
    assert read(text, "harmony").content == text.partition("<|return|>")[0]


# -- calls in reasoning ------------------------------------------------------------------------------------------------

THOUGHT = f"I should look.\n{hermes(OSLO)}"


@pytest.mark.parametrize("format", ["hermes", "auto"])
@pytest.mark.parametrize("text", [f"<think>{THOUGHT}</think>", f"<think>{THOUGHT}</think>\n\n"])
def test_a_call_in_the_reasoning_is_taken_where_there_is_neither_call_nor_content(format: str, text: str) -> None:
    reply = parse(text, format=format, tools=TOOLS)
    assert runnable(reply) == weather("Oslo")
    assert [(p.code, p.call, p.blocking) for p in reply.problems if p.code != "unclosed"] == [
        ("call_in_reasoning", 0, False)
    ]
    assert reply.reasoning == "I should look."


@pytest.mark.parametrize("format", ["hermes", "auto"])
@pytest.mark.parametrize("tools", [TOOLS, None, Toolset(())])
def test_a_call_in_reasoning_that_was_never_closed_may_not_run(format: str, tools: Toolset | None) -> None:
    reply = read(f"<think>{THOUGHT}", format, tools)
    assert args(reply) == weather("Oslo") and reply.calls == () and reply.reasoning == "I should look."
    assert "call_in_open_reasoning" in codes(reply)
    never = parse(f"<think>{THOUGHT}", format=format, tools=tools, reasoning_calls="never")
    assert never.attempts == () and THOUGHT in never.reasoning


@pytest.mark.parametrize("format", ["hermes", "auto"])
@pytest.mark.parametrize(
    "text, ran",
    [
        (f"<think>{THOUGHT}</think>It is sunny.", []),
        (f"<think>{THOUGHT}</think>{hermes(ROME)}", weather("Rome")),
        (f"<think>{THOUGHT}</think>It is sunny.{hermes(ROME)}", weather("Rome")),
        (f"<think>{THOUGHT} Or rather not.</think>", []),
        (f"<think>{THOUGHT[:-20]}", []),
        ("<think>I could use <tool_call> here.</think>", []),
    ],
)
def test_a_rehearsal_is_not_run_where_the_reply_has_more_to_say(
    format: str, text: str, ran: list[tuple[str, Json]]
) -> None:
    reply = parse(text, format=format, tools=TOOLS)
    assert runnable(reply) == ran
    assert "call_in_reasoning" not in codes(reply)


def test_a_call_in_reasoning_parses_the_same_under_every_chunking() -> None:
    reply = read(f"<think>{THOUGHT}</think>", "hermes")
    assert [type(part) for part in reply.parts] == [Reasoning, Call]


def test_a_call_out_of_which_a_marker_was_dropped_is_not_taken_out_of_reasoning() -> None:
    text = hermes('{"name": "get_weather", "arguments": {"city": "Os<|im_end|>lo"}}')
    assert parse(text, format="hermes", tools=TOOLS, reasoning="open").calls == ()


def test_a_call_at_the_end_of_the_reasoning_is_checked_like_any_other() -> None:
    text = f"<think>{THOUGHT}</think>"
    assert args(parse(text, format="hermes")) == weather("Oslo")
    for tools in (Toolset(()), TOOLS.scoped(["ping"])):
        reply = parse(text, format="hermes", tools=tools)
        assert reply.calls == () and args(reply) == weather("Oslo")
        assert {"call_in_reasoning", "unknown_tool", "not_authorised"} > set(codes(reply)) > {"call_in_reasoning"}


def test_reasoning_off_makes_a_call_in_think_tags_an_ordinary_call() -> None:
    reply = parse(f"<think>{THOUGHT}</think>", format="hermes", tools=TOOLS, reasoning="off")
    assert (runnable(reply), codes(reply), reply.reasoning) == (weather("Oslo"), [], "")


def test_calls_after_reasoning_are_rescued_and_the_reasoning_is_kept_once() -> None:
    for format in ("seed_oss", "kimi_k2"):
        reply = read(f"<think>Plan.</think>\n{hermes(OSLO)}", format)
        assert runnable(reply) == weather("Oslo")
        assert reply.reasoning == "Plan."
        bare = read(f"<think>Plan.</think>\n{OSLO}", format)
        assert bare.reasoning == "Plan."
        assert blocking(bare) == []


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
WRITTEN = [json.dumps(outer) for outer in OUTER] + [f"[nope(then={json.dumps(INNER)}, n=1)]"]


@pytest.mark.parametrize("name", ["auto", *sampled()])
def test_what_a_call_is_called_with_is_no_call(name: str) -> None:
    word = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    tools = Toolset.of([{"name": "lookup", "parameters": word}, {"name": "stop"}])
    for written in WRITTEN:
        for end in range(written.index("{"), len(written) + 1):
            reply = parse(f"Sure: {written[:end]}", format=name, tools=tools)
            assert "stop" not in [call.name for call in reply.calls], written[:end]


@pytest.mark.parametrize("name", sampled())
def test_a_token_that_ends_turns_inside_a_string_of_a_broken_bare_call_does_not_make_it_text(name: str) -> None:
    for end in [str(end) for end in ends_of(FORMATS[name]) if isinstance(end, Special) and '"' not in end]:
        # The name is not valid JSON, and behind the sign no quotation begins that would show the token.
        text = f'[{{"name": "get_w\neather", "arguments": {{"city": "={end}x", "days": 3}}}}]'
        found = [("get_weather", {"city": f"={end}x", "days": 3})]
        assert [runnable(hold_of_every_cut(text, Setting(each, TOOLS))) for each in ("auto", name)] == [found] * 2, end


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
def test_a_call_without_a_marker_in_reasoning_is_thought(name: str, close: str, is_open: bool) -> None:
    text = ("" if is_open else "<think>\n") + UNMARKED[name] + close
    reply = hold_of_every_cut(text, Setting(name, TOOLS, reasoning="open" if is_open else "auto"))
    assert (reply.attempts, reply.reasoning) == ((), UNMARKED[name]) and "looks_like_a_call" in codes(reply)
