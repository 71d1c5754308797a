"""`format="auto"`: the format is detected from the text, streamed or whole, and prose is kept as text."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Call, CallStart, Parser, Reasoning, Reply, Text, Toolset, detect, parse, render
from rightcall.formats import FORMATS, NAMED_ONLY
from rightcall.formats.spec import Special, marker_alternatives
from rightcall.parsing import markers
from rightcall.parsing.compile import ends_of
from rightcall.parsing.known_openers import known_openers
from rightcall.types import Part
from support.cuts import Setting, assert_nothing_lost, cuts, join_events, reply_of_events
from support.cuts import read as read_chunks
from support.format_sample import selected
from support.replies import (
    BARE,
    EITHER,
    STRING,
    args,
    blocking,
    codes,
    hermes,
    is_distinctive_reasoning,
    make_call,
    runnable,
    tool,
    wrong,
)
from support.samples import Sample, samples, toolset

TOOLS = Toolset([tool("f", s=STRING), tool("g")])
CALL = '{"name": "f", "arguments": {"s": "x"}}'


def read_auto(text: str, tools: Toolset | None = TOOLS, *, like: str = "hermes") -> Reply:
    """Parse the text without a named format, check that every chunking gives the same reply, and return it.

    The markers of the format `like` are cut in half.
    """
    setting = Setting("auto", tools)
    whole = read_chunks([text], setting)
    for chunks in cuts(text, like):
        again = read_chunks(chunks, setting)
        assert again.reply == whole.reply, chunks
        assert join_events(again.events) == join_events(whole.events), chunks
        assert reply_of_events(again.events, again.reply.format, again.reply.spans) == again.reply
    assert_nothing_lost(text, whole.reply)
    return whole.reply


# -- the corpus --------------------------------------------------------------------------------------------------------

# The template lost quotes of strings or commas between values; the arguments of such a call fail validation.
LOSSY = {sample.id for sample in samples() if sample.lossy and sample.format == "pythonic"}
# A bare call after text is a call only where its format is named; elsewhere it is reported.
BEHIND_TEXT = {"gguf-cogito-3b/text_before"}


def samples_read_differently() -> Iterator[str]:
    for sample in samples():
        if sample.format in NAMED_ONLY:
            continue
        tools = toolset(sample.tools)
        named = parse(sample.text, format=sample.format, tools=tools)
        if args(parse(sample.text, tools=tools)) != args(named):
            yield sample.id


def test_auto_gives_the_same_calls_as_the_named_format() -> None:
    found = set(samples_read_differently())
    assert found <= LOSSY | BEHIND_TEXT
    assert len(found) <= 0.03 * len(samples())


@pytest.mark.parametrize("part", selected(range(8), kept=range(2)))
def test_a_corpus_sample_parses_the_same_under_every_chunking(part: int) -> None:
    for sample in samples()[part::8]:
        read_auto(sample.text, toolset(sample.tools), like=sample.format)


def one_sample_per_shape() -> list[Sample]:
    """Return one sample for every shape of every format, 40 of them at random."""
    found = {(sample.format, sample.shape): sample for sample in samples()}
    return random.Random(5).sample(list(found.values()), 40)


@pytest.mark.parametrize("sample", one_sample_per_shape(), ids=lambda sample: str(sample.id))
def test_a_text_in_two_chunks_parses_like_one_chunk(sample: Sample) -> None:
    setting = Setting("auto", toolset(sample.tools))
    whole = read_chunks([sample.text], setting).reply
    step = max(1, len(sample.text) // 60)
    for at in range(1, len(sample.text), step):
        assert read_chunks([sample.text[:at], sample.text[at:]], setting).reply == whole, at


# -- detection ---------------------------------------------------------------------------------------------------------

MARKED = [name for name in FORMATS if name not in BARE | EITHER | NAMED_ONLY]


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>\n<arg_key>s</arg_key>\n<arg_value>x</arg_value>\n</tool_call>",
        "<seed:tool_call>\n<function f g>\n<parameter=s>x</parameter>\n</function>\n</seed:tool_call>",
        "<minimax:tool_call>\n<invoke name=f>x</invoke>\n</minimax:tool_call>",
    ],
)
def test_a_broken_body_after_an_opener_is_a_rejected_call(text: str) -> None:
    reply = read_auto(text)
    assert len(reply.attempts) == 1 and not reply.calls and not reply.content


@pytest.mark.parametrize("name", MARKED)
def test_a_format_with_markers_is_detected_with_and_without_tools(name: str) -> None:
    calls = [make_call("f", s="x y"), make_call("f", s="z")]
    text = render(calls, format=name, tools=TOOLS)
    assert args(read_auto(text, like=name)) == [("f", {"s": "x y"}), ("f", {"s": "z"})]
    if name != "functionary_v32":  # a word on its own line: only a declared name distinguishes it from a heading
        assert args(read_auto(text, None, like=name)) == [("f", {"s": "x y"}), ("f", {"s": "z"})]


@pytest.mark.parametrize("name", MARKED)
def test_text_around_the_calls_is_kept(name: str) -> None:
    parts: list[Part] = [Text("One."), make_call("f", s="x"), Text("Two.")]
    reply = read_auto(render(parts, format=name, tools=TOOLS), like=name)
    assert args(reply) == [("f", {"s": "x"})]
    if FORMATS[name].content and not FORMATS[name].channels:  # a tag such as <response> may be part of the text
        assert reply.content.index("One.") < reply.content.index("Two.")
    else:
        assert reply.content == "One.\nTwo."


@pytest.mark.parametrize(
    "name", [name for name in MARKED if is_distinctive_reasoning(name, 0) and not FORMATS[name].channels]
)
def test_reasoning_before_the_calls_is_reasoning(name: str) -> None:
    parts: list[Part] = [Reasoning("Plan."), make_call("f", s="x")]
    reply = read_auto(render(parts, format=name, tools=TOOLS), like=name)
    assert args(reply) == [("f", {"s": "x"})]
    assert (
        reply.reasoning.endswith("Plan.") if name == "apriel" else reply.reasoning == "Plan."
    )  # it opens with a sentence


def test_the_reply_names_the_detected_format() -> None:
    assert parse(hermes(CALL), tools=TOOLS).format == "hermes"
    assert parse("Hello.", tools=TOOLS).format == "auto"


def test_a_call_starts_as_soon_as_its_opener_is_unambiguous() -> None:
    parser = Parser("auto", tools=TOOLS)
    events = [event for char in "Hi.\n<tool_call>\n" + CALL[:-4] for event in parser.feed(char)]
    assert Text("Hi.") in events
    assert [event.name for event in events if isinstance(event, CallStart)] == ["f"]


def test_text_without_an_opener_is_emitted_before_the_end() -> None:
    parser = Parser("auto", tools=TOOLS)
    emitted = ""
    for char in "Well, a < b and b <= c. " * 3:
        emitted += "".join(event.text for event in parser.feed(char) if isinstance(event, Text))
    assert len(emitted) > 60


def calls_after_an_end_token() -> list[str]:
    """Return calls after the token that ends a turn or message of their own format.

    Other formats may close reasoning with such a token. A header that is one word on a line is not searched for there.
    """
    found: list[str] = []
    for format in FORMATS.values():
        channels = format.channels
        if format.name in NAMED_ONLY or (channels is not None and not isinstance(channels.start, Special)):
            continue
        start = str(channels.start) if channels else ""
        call = start + render([make_call("f", s="x")], format=format.name, tools=TOOLS)
        found += [end + call for end in ends_of(format) if isinstance(end, Special)]
    return found


@pytest.mark.parametrize("text", calls_after_an_end_token())
def test_a_turn_end_token_does_not_decide_the_format(text: str) -> None:
    setting = Setting("auto", TOOLS)
    reply = read_chunks([text], setting).reply
    assert read_chunks(list(text), setting).reply == reply
    if "looks_like_a_call" not in codes(reply):  # after a result it is only reported
        assert args(reply) == [("f", {"s": "x"})]
        assert reply.content == ""


ENDS = sorted({end for each in FORMATS.values() for end in ends_of(each) if isinstance(end, Special)})


@pytest.mark.parametrize("end", ENDS)
def test_a_turn_end_token_is_not_text(end: str) -> None:
    assert parse(f"Good morning.{end}", tools=TOOLS).content == "Good morning."


# -- prose -------------------------------------------------------------------------------------------------------------

PROSE = [
    "Hello there.",
    "",
    " \n",
    "Use <tool_call> to call a tool.",
    "`<tool_call>` opens a call, `</tool_call>` closes it.",
    f"For example:\n```\n{hermes(CALL)}\n```\nThat is all.",
    f"```xml\n{hermes(CALL)}\n```\nThat is all.",
    f'Write "{hermes(CALL)}" and wait.',
    f"You would send `{CALL}`.",
    f"Send {CALL} to it.",
    f"{CALL}\nis what you would send.",
    f"```json\n{CALL}\n```\nis what you would send.",
    "f(s='x') is how f is called.",
    "I would call f(s='x').",
    '{"name": "Bob", "age": 3}',
    '{"answer": 42}',
    "[1, 2, 3]",
    '{"name": "unknown_tool", "arguments": {}}',
    '{"name": "f", "arguments": {"s": 5, "t": [',
    "<function>f</function>",
    "print('hello')\nprint('world')",
    "`[TOOL_CALLS]` is Mistral's marker.",
    "A call begins with <tool_call> here.",
    "a <|b|> c",
    "{",
    "```",
    "```json\n{}\n```",
    'Result\n{"s": "x"}',
    '\n\nAnswer\n{\n  "s": "x"\n}\n',
    "css\n{color: red}",
    "OK\n",
    "\0",
    f"x \0{CALL} y",
    f"\0\0{CALL}",
]


@pytest.mark.parametrize("text", PROSE)
def test_prose_and_examples_are_kept_exactly_as_text(text: str) -> None:
    for tools in (TOOLS, None, Toolset(())):
        reply = read_auto(text, tools)
        assert (reply.content, reply.attempts, reply.reasoning, wrong(reply)) == (text, (), "", [])


@pytest.mark.parametrize("text", ["OK\n", "Hello\nthere", "Sure:\n\n{}", "to=functions"])
def test_a_word_on_its_own_line_opens_no_format(text: str) -> None:
    assert detect(text) == []


def test_a_rejected_call_between_markers_is_still_a_call() -> None:
    reply = read_auto(hermes('{"name": "unknown_tool", "arguments": {}}'))
    assert (args(reply), blocking(reply)) == ([("unknown_tool", {})], [("unknown_tool", 0)])
    none = read_auto(hermes(CALL), Toolset(()))
    assert (args(none), blocking(none)) == ([("f", {"s": "x"})], [("unknown_tool", 0)])


def test_a_call_after_an_example_is_parsed() -> None:
    text = f"Like `{hermes(CALL)}`, or so:\n```\n{hermes(CALL)}\n```\nNow:\n{hermes(CALL)}"
    reply = read_auto(text)
    assert runnable(reply) == [("f", {"s": "x"})]
    assert "Like" in reply.content
    assert "Now:" in reply.content


def test_bare_calls_are_parsed_only_if_the_whole_reply_is_calls() -> None:
    for text in (CALL, f" {CALL}\n", f"{CALL}\n{CALL}", f"[{CALL}]", f"```json\n{CALL}\n```", "f(s='x')", "[f(s='x')]"):
        reply = read_auto(text)
        assert {name for name, _ in runnable(reply)} == {"f"}
        assert set(codes(reply)) == {"rescued"}
        assert reply.content == ""
        assert read_auto(text, None).attempts == ()


_CLOSED = CALL.replace('"x"', '"a </think> tag"')


@pytest.mark.parametrize("last", ["", "<|eot_id|>", "</s>\n", "\n<|end|><|assistant|>"])
@pytest.mark.parametrize(
    "text", [_CLOSED, f"[{_CLOSED}]", f"```json\n{_CLOSED}\n```", 'f(s="a </think> tag")', '[f(s="a </think> tag")]']
)
def test_a_bare_call_may_contain_the_reasoning_close_with_every_turn_end(text: str, last: str) -> None:
    reply = read_auto(text + last)
    assert runnable(reply) == [("f", {"s": "a </think> tag"})]
    assert (reply.content, reply.reasoning) == ("", "")


def test_think_tags_are_reasoning_in_a_reply_without_calls() -> None:
    assert read_auto("<think>Plan.</think>Answer.").parts == (Reasoning("Plan."), Text("Answer."))
    assert read_auto("Plan.</think>Answer.").parts == (Reasoning("Plan."), Text("Answer."))


def test_reasoning_off_leaves_think_tags_as_text() -> None:
    reply = parse("<think>Plan.</think>Answer.", tools=TOOLS, reasoning="off")
    assert (reply.content, reply.reasoning) == ("<think>Plan.</think>Answer.", "")
    called = parse(f"<think>Plan.</think>{hermes(CALL)}", tools=TOOLS, reasoning="off")
    assert (runnable(called), called.reasoning) == ([("f", {"s": "x"})], "")


def test_an_empty_block_is_ignored() -> None:
    assert read_auto("<tool_call>\n</tool_call>").parts == ()


def test_returned_events_do_not_change_later() -> None:
    parser = Parser("auto")
    first = parser.feed("Hello")
    parser.feed(" there, how are you?")
    assert first == []


# -- many openers ------------------------------------------------------------------------------------------------------

OPENERS = sorted({text for format in FORMATS.values() for text in markers.longest_first(format.call[0])})
ENTRIES = [(text, markers.template(text)) for text in OPENERS]


def flat_scan() -> markers.Scan[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markers, "_MANY", len(ENTRIES))
        scan = markers.Scan(ENTRIES)
        scan.search("", 0), scan.ended("", 0)  # each is compiled at its first use
        return scan


TREE, FLAT = markers.Scan(ENTRIES), flat_scan()


BEGINNINGS = sorted({text[:size] for text in [*OPENERS, "x"] for size in range(1, len(text) + 1)})


@given(st.lists(st.sampled_from([*OPENERS, *BEGINNINGS]), max_size=12))
def test_the_tree_search_finds_the_same_openers_as_the_flat_search(pieces: list[str]) -> None:
    text = "".join(pieces)
    for tree, flat in ((TREE.search, FLAT.search), (TREE.ended, FLAT.ended)):
        for pos in range(len(text) + 1):
            a, b = tree(text, pos), flat(text, pos)
            assert (a and (a.span(), a.lastindex)) == (b and (b.span(), b.lastindex))


@pytest.mark.parametrize("name", ["deepseek_v32", "hermes", "minimax_m3", "kimi_k2"])
def test_a_call_is_recognised_after_repeated_prefixes_of_its_opener(name: str) -> None:
    call = render(Call("ping", {}), format=name)
    text = "Is " + f"1 {call.strip()[0]} 2, " * 200 + "yes.\n" + call
    assert name in detect(text)
    assert [made.name for made in parse(text, tools=[tool("ping")]).calls] == ["ping"]


@pytest.mark.parametrize("rescue", ["off", "safe"])
def test_prose_that_mentions_an_opener_does_not_decide_the_format(rescue: Literal["off", "safe"]) -> None:
    call = f"<tool_call>{CALL}</tool_call>"
    for text in (f"A <tool_call> is next. {call}", f"<think>A <tool_call> is next. {call}</think>"):
        reply = parse(text, tools=TOOLS, rescue=rescue)
        assert [call.name for call in reply.calls] == ["f"], text


def test_a_token_between_a_name_and_arguments_is_reported() -> None:
    for text in ('Ok.[ARGS]{"city": "Oslo"}', 'Now nobody<｜tool▁sep｜>{"city": "Oslo"}'):
        reply = read_auto(text)
        assert reply.content == text
        assert [problem.code for problem in reply.problems] == ["looks_like_a_call"]


def test_the_number_of_openers_without_a_call_is_limited() -> None:
    text = "<tool_call>" * 10_001 + f" <tool_call>{CALL}</tool_call>"
    reply = parse(text, tools=TOOLS)
    assert reply.content == text and not reply.attempts
    assert [problem.code for problem in reply.problems if problem.blocking] == ["too_large"]
    parser = Parser(tools=TOOLS)
    for start in range(0, len(text), 999):
        parser.feed(text[start : start + 999])
    parser.close()
    assert parser.reply == reply


@pytest.mark.parametrize(
    ("text", "format", "content"),
    [
        ("<|start|>assistant to=user<|message|>Good morning.<|eom|>", "muse", "Good morning."),
        (
            "<|start|>assistant to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Yes.<|eom|>",
            "muse",
            "Yes.",
        ),
        ("Now.\n<|start|>assistant to=user<|message|>Yes.<|end|>", "muse", "Now.\nYes."),
        ("<|start|>assistant<|channel|>final<|message|>Good morning.<|return|>", "harmony", "Good morning."),
        ("<|start|>assistant<|message|>Good morning.<|end|>", "harmony", "Good morning."),
    ],
)
def test_a_header_shared_by_formats_is_resolved_by_the_following_text(text: str, format: str, content: str) -> None:
    reply = read_auto(text, like=format)
    assert (reply.format, reply.content, reply.problems) == (format, content, ())


def test_a_tool_header_without_a_channel_is_detected_by_its_arguments() -> None:
    text = '<|start|>assistant to=f<|message|>{"s": "x"}<|call|>'
    assert (read_auto(text, like="harmony").format, len(read_auto(text).calls)) == ("harmony", 1)


@pytest.mark.parametrize("opener", ["<｜tool_calls_begin｜>", "<｜tool▁calls▁begin｜>", "<|tool_calls_section_begin|>"])
@pytest.mark.parametrize("behind", ["<｜tool▁sep｜>", "<｜tool▁sep｜>{}", "<|tool_call_argument_begin|>{}", "<|tool"])
def test_an_opener_before_a_token_of_another_format_parses_the_same_under_every_chunking(
    opener: str, behind: str
) -> None:
    whole, parser = parse(opener + behind), Parser()
    for char in opener + behind:
        parser.feed(char)
    parser.close()
    assert [(call.name, call.raw) for call in parser.reply.attempts] == [(c.name, c.raw) for c in whole.attempts]
    assert parser.reply.content == whole.content


def test_text_between_llama_tokens_does_not_hide_a_later_call() -> None:
    text = '<|python_start|>I look:<|python_end|>{"name": "f", "parameters": {"s": "owl"}}<|eot|>'
    reply = parse(text, tools=TOOLS)
    assert [call.arguments for call in reply.calls] == [{"s": "owl"}] and reply.content == "I look:"


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in NAMED_ONLY])
def test_every_opener_of_a_format_is_found_by_its_literal_beginning(name: str) -> None:
    format = FORMATS[name]
    section = [text for text in marker_alternatives(format.section[0]) if text] if format.section else []
    calls = [text for text in marker_alternatives(format.call[0]) if text.strip() and text[0] != "`"]
    for text in [*section, *calls]:
        text = text.strip().replace("{name}", "f").replace("{id}", "1").replace("{index}", "0").replace("{number}", "0")
        found = known_openers().search(f"So: {text} ", 0, ended=True)
        assert found is not None and found.opener is not None, text
        assert (found.start, name in found.opener.names) == (4, True), text
