"""Tagged bodies: where a value and a call end, in every format that has such a body, under every chunking.

The formats are found by discovery. Their texts are rendered and then damaged, so that each class of fault is tested in
each format.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Call, CannotCarry, Format, Parser, Reply, Toolset, parse, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Params, marker_alternatives
from rightcall.parsing.compile import compile_format
from rightcall.testing.laws.damage import marker_places
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled, selected
from support.replies import INTEGER, STRING, tool

TOOLS = Toolset([tool("lookup", word=STRING, n=INTEGER), tool("ping")])
OWL: dict[str, Any] = {"word": "owl", "n": 3}
BAT: dict[str, Any] = {"word": "bat", "n": 4}


class TaggedFormat(NamedTuple):
    name: str
    format: Format  # the format with its tagged body first
    body: Params


def find_tagged_format(name: str) -> TaggedFormat | None:
    format = FORMATS[name]
    body = next((body for body in format.bodies if isinstance(body, Params)), None)
    if body is None:
        return None
    others = tuple(other for other in format.bodies if other is not body)
    return TaggedFormat(name, msgspec.structs.replace(format, body=(body, *others) if others else body), body)


FOUND = [found for name in FORMATS if (found := find_tagged_format(name)) is not None]


def tagged_formats(where: Callable[[TaggedFormat], object] = bool) -> pytest.MarkDecorator:
    wires = sampled([wire for wire in FOUND if where(wire)], lambda wire: wire.name)
    return pytest.mark.parametrize("wire", wires, ids=lambda wire: wire.name)


every_tagged = tagged_formats()
with_tag = tagged_formats(lambda wire: not marker_alternatives(wire.body.open)[0].startswith("{"))


def first_alternative(marker: str | tuple[str, ...]) -> str:
    return marker_alternatives(marker)[0].strip()


def render_calls(wire: TaggedFormat, *arguments: dict[str, Any]) -> str:
    return render([Call("lookup", each) for each in arguments], format=wire.format, tools=TOOLS)


def read(text: str, wire: TaggedFormat) -> Reply:
    """Return the reply, which is the same under every chunking."""
    return hold_of_every_cut(text, Setting(wire.name, TOOLS), seed=len(text))


def own_close(wire: TaggedFormat) -> str:
    """Return the closing marker of a call."""
    return first_alternative(wire.body.close) or first_alternative(wire.format.call[1])


def call_body(wire: TaggedFormat, arguments: dict[str, Any]) -> str:
    """Return the body of a call without the markers around it."""
    text = render_calls(wire, arguments)
    start = text.index(first_alternative(wire.body.open).partition("{")[0])
    close = first_alternative(wire.body.close)
    return text[start : text.index(close) + len(close)]


def all_arguments(reply: Reply) -> list[dict[str, Any]]:
    return [call.arguments for call in reply.calls]


def codes(reply: Reply) -> list[str]:
    return [problem.code for problem in reply.problems]


# -- A1: a value that swallows the text after it -----------------------------------------------------------------------


@every_tagged
def test_a_call_without_its_closing_tag_is_rejected_before_the_next(wire: TaggedFormat) -> None:
    reply = read(render_calls(wire, OWL, BAT).replace(own_close(wire), "", 1), wire)
    assert all_arguments(reply) in ([BAT], [OWL, BAT])
    if len(reply.calls) == 2:  # The closing marker of the surrounding block is present.
        assert codes(reply) == ["unclosed"]
        assert reply.problems[0].call == 0 and not reply.problems[0].blocking
    else:
        assert codes(reply) == ["abandoned"] and [call.name for call in reply.refused] == ["lookup"]


def turn_ends(wire: TaggedFormat) -> tuple[str, ...]:
    """Return the markers that end a turn."""
    return wire.format.ends + (wire.format.channels.ends if wire.format.channels else ())


@tagged_formats(turn_ends)
def test_a_call_without_its_closing_tag_ends_at_an_end_of_turn(wire: TaggedFormat) -> None:
    text = render_calls(wire, OWL)
    reply = read(text[: text.rindex(own_close(wire))] + turn_ends(wire)[0], wire)
    assert all_arguments(reply) == [OWL]
    assert "unclosed" in codes(reply)


@with_tag
def test_several_calls_in_one_block_are_all_parsed(wire: TaggedFormat) -> None:
    one = render_calls(wire, OWL)
    both = one.replace(call_body(wire, OWL), call_body(wire, OWL) + call_body(wire, BAT))
    assert all_arguments(read(both, wire)) == [OWL, BAT]


@with_tag
def test_only_the_last_of_several_calls_in_one_block_can_lack_its_close(wire: TaggedFormat) -> None:
    closed, unclosed = call_body(wire, OWL), call_body(wire, BAT).removesuffix(first_alternative(wire.body.close))
    reply = read(render_calls(wire, OWL).replace(closed, unclosed + closed), wire)
    assert all_arguments(reply) == [OWL]
    assert codes(reply) == ["abandoned"]
    reply = read(render_calls(wire, OWL).replace(closed, closed + unclosed), wire)
    assert all_arguments(reply) in (
        [OWL, BAT],
        [OWL],
    )  # In a format without a surrounding block, the text ends inside the last call.
    assert set(codes(reply)) == {"unclosed" if len(reply.calls) == 2 else "truncated"}


@every_tagged
def test_text_after_unclosed_calls_is_text(wire: TaggedFormat) -> None:
    if wire.format.channels is not None:
        pytest.skip("text has a message of its own there")
    text = render_calls(wire, OWL, BAT).replace(own_close(wire), "", 1)
    reply = read(text + "\nThat is all.", wire)
    assert BAT in all_arguments(reply)
    assert reply.content == "That is all."


@every_tagged
def test_a_value_that_lost_its_close_affects_only_its_own_call(wire: TaggedFormat) -> None:
    only = {"word": "owl"}
    close = marker_alternatives(wire.body.value_close)[0].replace("{key}", "word").rstrip()
    reply = read(render_calls(wire, only, BAT).replace(close, "", 1), wire)
    if reply.refused:
        assert all_arguments(reply) == [BAT] and len(reply.refused) == 1
    else:
        assert all_arguments(reply) == [only, BAT] and codes(reply) == ["unclosed_argument"]


OTHER_CLOSES = ["</arg>", "</value>", "</word>", "</param>", "</arg_value>", "</\uff5cDSML\uff5cvalue>"]


@every_tagged
@pytest.mark.parametrize("close", selected(OTHER_CLOSES, kept=["</arg>", "</word>"]))
def test_a_call_whose_value_is_closed_by_another_tag_is_rejected(wire: TaggedFormat, close: str) -> None:
    own = first_alternative(wire.body.value_close).replace("{key}", "word")
    if close in own:
        return
    text = render_calls(wire, OWL).replace(own, close, 1)
    assert close in text and not any(close in str(each) for each in all_arguments(read(text, wire)))
    unclosed = render_calls(wire, {"word": "<b>owl</b>", "n": 3}).replace(own, "", 1)
    assert all(each["word"].strip() == "<b>owl</b>" for each in all_arguments(read(unclosed, wire)))


@every_tagged
@given(data=st.data())
def test_no_runnable_call_swallows_text_after_a_lost_character(wire: TaggedFormat, data: st.DataObject) -> None:
    text = render_calls(wire, OWL, BAT)
    at = data.draw(st.integers(0, len(text) - 1).filter(lambda at: text[at] not in "owlbat34"))
    reply = read(text[:at] + text[at + 1 :], wire)
    assert len(reply.attempts) <= 2
    # The lost character may belong to the argument's name.
    values = [value for arguments in all_arguments(reply) for value in arguments.values()]
    assert set(values) <= {"owl", "bat", 3, 4}


@every_tagged
@given(data=st.data())
def test_no_runnable_call_swallows_text_after_a_lost_marker(wire: TaggedFormat, data: st.DataObject) -> None:
    text = render_calls(wire, OWL, BAT)
    body, format = wire.body, wire.format
    fields = [body.open, body.param, body.value_close, body.close, *format.call, *(format.section or ())]
    filled = [
        first_alternative(m).replace("{name}", "lookup").replace("{number}", "1")
        for m in fields
        if first_alternative(m)
    ]
    marker = data.draw(st.sampled_from([m.replace("{key}", k).replace("{type}", "true") for m in filled for k in OWL]))
    if marker in text:
        reply = read(text.replace(marker, "", 1), wire)
        assert len(reply.attempts) <= 2
        values = [str(value) for arguments in all_arguments(reply) for value in arguments.values()]
        assert not any(("owl" in value and "bat" in value) or "lookup" in value for value in values)


@every_tagged
def test_no_runnable_call_swallows_text_after_two_lost_markers(wire: TaggedFormat) -> None:
    dice = Random(wire.name)
    for arguments in ([OWL], [{"n": 3, "word": "owl"}], [OWL, BAT], [{"word": "owl"}, {"word": "bat"}]):
        text = render_calls(wire, *arguments)
        places = list(marker_places(wire.format, text))
        for _ in range(150):
            first_lost, lost = sorted(dice.sample(places, 2))
            if first_lost[1] <= lost[0]:
                less = text[: first_lost[0]] + text[first_lost[1] : lost[0]] + text[lost[1] :]
                calls = all_arguments(parse(less, format=wire.name, tools=TOOLS))
                # The line break around a lost marker may be left over.
                values = [str(value).strip("\n") for each in calls for value in each.values()]
                assert set(values) <= {"owl", "bat", "3", "4"}, less


@every_tagged
@pytest.mark.parametrize("tools", [TOOLS, None], ids=["with tools", "without"])
def test_a_call_with_a_damaged_argument_tag_and_close_before_it_is_rejected(
    wire: TaggedFormat, tools: Toolset | None
) -> None:
    head = first_alternative(wire.body.param).partition("{")[0]
    close = first_alternative(wire.body.value_close).replace("{key}", "word")
    text = render_calls(wire, OWL)
    if len(head) < 6:
        pytest.skip("only a sign precedes the key")
    start = text.rindex(head)
    for at in range(2, len(head) - 2):
        damaged = text[: start + at] + text[start + at + 1 :]
        for closed in ("", close[:-3] + close[-2:]):
            assert not parse(damaged.replace(close, closed, 1), format=wire.name, tools=tools).calls


ABOUT = "The parameter n, invoke(parameter=n, param=n), an argument key n of parameters; <b>parameter</b> n, arg_key=n"


@every_tagged
def test_a_value_that_mentions_a_missing_argument_is_kept(wire: TaggedFormat) -> None:
    inline = "\n" not in marker_alternatives(wire.body.value_close)[0]
    page = '<b class="a\n  hidden">' if not inline else "<b>"
    for value in (
        '<input name="n"> <a n="n">n</a>\nn > 3',
        page,
        "n = 3\nif n>3: n<4",
        'class="n">',
        "a\n\nn: 1\n<n/>",
    ):
        assert all_arguments(read(render_calls(wire, {"word": value}), wire)) == [{"word": value}]


@every_tagged
def test_a_value_with_its_close_and_an_opener_is_ambiguous(wire: TaggedFormat) -> None:
    body = wire.body
    key = "other"
    close = first_alternative(body.value_close).replace("{key}", "word")
    opener = first_alternative(body.param).replace("{key}", key).replace("{type}", "string")
    value = f"see {close} and then {opener} there"
    text = render_calls(wire, {"word": "MARK"}).replace("MARK", value)
    reply = read(text, wire)
    assert reply.calls == () and "ambiguous_end" in codes(reply)
    if body.quote is None:
        with pytest.raises(CannotCarry):
            render_calls(wire, {"word": value})


@tagged_formats(lambda wire: wire.body.close and wire.format.call[1])
def test_a_value_without_its_close_is_rejected_at_the_end_of_a_truncated_reply(wire: TaggedFormat) -> None:
    close = first_alternative(wire.body.value_close).replace("{key}", "word")
    text = render_calls(wire, {"word": "owl"}).replace(close, "").replace("owl\n\n", "owl\n")
    assert [call.arguments for call in parse(text, format=wire.name, tools=TOOLS).calls] in ([], [{"word": "owl"}])
    for finish in ("length", "content_filter"):
        parser = Parser(wire.name, tools=TOOLS)
        parser.feed(text)
        parser.close(finish)
        for reply in (parse(text, format=wire.name, tools=TOOLS, finish=finish), parser.reply):
            assert reply.calls == () and "truncated" in codes(reply)


@pytest.mark.parametrize("lost", ["tag", "sign"])
@tagged_formats(lambda wire: "{key}" in first_alternative(wire.body.param) and not wire.body.item)
def test_without_declared_tools_a_value_that_contains_a_later_argument_is_rejected(
    wire: TaggedFormat, lost: str
) -> None:
    opener = first_alternative(wire.body.param).partition("{key}")[0]
    before, _, after = render_calls(wire, OWL).rpartition(opener)
    text = before + (opener[1:] if lost == "sign" else "") + after
    reply = hold_of_every_cut(text, Setting(wire.name), seed=len(text))
    assert [call for call in reply.calls if call.arguments["word"] != "owl"] == [] and reply.problems
    mention = f"close with `{first_alternative(wire.body.value_close).replace('{key}', 'word')}`."
    kept = hold_of_every_cut(render_calls(wire, {**OWL, "word": mention}), Setting(wire.name))
    assert [call.arguments["word"] for call in kept.calls] == [mention]


@pytest.mark.parametrize("gap", ["", "\n"], ids=["glued", "on a line of its own"])
@tagged_formats(lambda wire: "<" in first_alternative(wire.body.param).partition("{key}")[2])
def test_a_value_that_begins_with_its_opening_tag_is_rejected(wire: TaggedFormat, gap: str) -> None:
    tag = "<" + first_alternative(wire.body.param).rpartition("<")[2]
    text = render_calls(wire, OWL)
    reply = read(text.replace("owl", f"{tag}{gap}owl"), wire)
    assert reply.calls == () and "unexpected_text" in codes(reply)
    assert all_arguments(read(text.replace("owl", f"see {tag}owl"), wire)) == [{**OWL, "word": f"see {tag}owl"}]


@every_tagged
def test_a_value_that_mentions_tags_is_kept(wire: TaggedFormat) -> None:
    close = first_alternative(wire.body.value_close).replace("{key}", "word")
    value = f"close with {close} and {own_close(wire)} here"
    assert all_arguments(read(render_calls(wire, {"word": value}), wire)) == [{"word": value}]


# -- ends that a value has by accident ---------------------------------------------------------------------------------


def first_close(wire: TaggedFormat) -> str:
    return first_alternative(wire.body.value_close).replace("{key}", "word")


@every_tagged
@pytest.mark.parametrize("edge", ["\n\n", "\n\n\n"])
def test_an_unclosed_value_that_ends_with_line_breaks_is_rejected(wire: TaggedFormat, edge: str) -> None:
    """One line break may be that of the missing tag. How many more belong to the value is not certain."""
    text = render_calls(wire, {"word": "owl"})
    start, end = text.index("owl"), text.index(first_close(wire), text.index("owl"))
    closed = text[:start].rstrip("\n") + text[start:]
    assert all_arguments(read(closed, wire)) in ([{"word": "owl"}], [{"word": "owl\n"}])
    reply = read(text[:start].rstrip("\n") + "owl" + edge + text[end + len(first_close(wire)) :].lstrip("\n"), wire)
    assert all_arguments(reply) == [] and len(reply.refused) == 1


with_body_close = tagged_formats(lambda wire: first_alternative(wire.body.close))


@with_body_close
@pytest.mark.parametrize("word", ["owl\n", "owl", ""])
def test_a_last_value_that_ends_with_the_closing_tag_of_the_body_is_ambiguous(wire: TaggedFormat, word: str) -> None:
    """Without that tag at its place the two may have been swapped."""
    close = first_alternative(wire.body.close)
    text = render_calls(wire, {"word": "owl"})
    start, end = text.index("owl"), text.rindex(close)
    swapped = text[:start] + word + close + text[start + 3 : end].rstrip("\n") + text[end + len(close) :]
    assert all_arguments(read(swapped, wire)) == []


@every_tagged
@pytest.mark.parametrize("shown", ["Use `CLOSE` to end it.", "End it with `CLOSE` and then `CLOSE`.", "`CLOSE`"])
def test_an_unclosed_call_is_rejected_if_text_behind_it_shows_a_closing_tag(wire: TaggedFormat, shown: str) -> None:
    """The text may be a part of its last value."""
    if wire.format.channels is not None and not wire.format.section:
        pytest.skip("text has a message of its own there")
    text = render_calls(wire, {"word": "owl"}).replace(own_close(wire), "", 1)
    for close in {first_alternative(wire.body.close), first_close(wire).strip()} - {""}:
        assert all_arguments(read(f"{text}\n{shown.replace('CLOSE', close)}", wire)) == []


@tagged_formats(lambda wire: wire.body.quote)
@pytest.mark.parametrize("word", ["OPENls OPENxSHUT", "OPENowlOPENSHUT", "OPENowlSHUTOPENxSHUT", "OPENOPENxSHUT"])
def test_a_quoted_value_that_opens_quotes_again_is_ambiguous(wire: TaggedFormat, word: str) -> None:
    opens, shuts = wire.body.quote or ("", "")
    quoted = f"{opens}owl{shuts}"
    assert all_arguments(read(render_calls(wire, OWL).replace("owl", quoted), wire)) == [OWL]
    reply = read(render_calls(wire, OWL).replace("owl", word.replace("OPEN", opens).replace("SHUT", shuts)), wire)
    assert all_arguments(reply) == [] and codes(reply) == ["ambiguous_end"]


# -- A2, D: line breaks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["qwen3_coder", "step3p5", "seed_oss"])
@pytest.mark.parametrize("value", ["\nowl</parameter>", "\nowl\n</parameter>", "owl</parameter>"])
def test_a_value_close_is_recognised_with_and_without_its_line_break(name: str, value: str) -> None:
    format = FORMATS[name]
    opens, closes = first_alternative(format.call[0]), first_alternative(format.call[1])
    inside = f"<function=lookup>\n<parameter=word>{value}\n<parameter=n>\n3\n</parameter>\n</function>"
    reply = hold_of_every_cut(f"{opens}\n{inside}\n{closes}", Setting(name, TOOLS))
    # Seed writes values inline: a single line break before the value belongs to the value.
    word = "\nowl" if name == "seed_oss" and value == "\nowl</parameter>" else "owl"
    assert [call.arguments for call in reply.calls] == [{**OWL, "word": word}]


def test_seed_oss_keeps_the_last_line_break_of_a_value() -> None:
    text = render(Call("lookup", {"word": "a\nb\n"}), format="seed_oss", tools=TOOLS)
    assert "<parameter=word>a\nb\n</parameter>\n" in text
    reply = hold_of_every_cut(text, Setting("seed_oss", TOOLS))
    assert [call.arguments for call in reply.calls] == [{"word": "a\nb\n"}]


# -- A3: the closers of a reader ---------------------------------------------------------------------------------------


def is_closer(wire: TaggedFormat, text: str) -> bool:
    reader = compile_format(FORMATS[wire.name]).bodies.readers[FORMATS[wire.name].bodies.index(wire.body)]
    return any(re.fullmatch(pat.whole, text) for pat in reader.closers)


@every_tagged
def test_the_close_of_a_value_or_body_is_a_closer_of_its_reader(wire: TaggedFormat) -> None:
    assert is_closer(wire, first_alternative(wire.body.value_close).replace("{key}", "anything"))
    assert not wire.body.close or is_closer(wire, first_alternative(wire.body.close))


# A close named after its argument looks like any other: the state machine tries those first.
@tagged_formats(lambda wire: "{key}" not in first_alternative(wire.body.value_close))
def test_the_close_of_a_call_or_section_is_not_a_closer_of_its_reader(wire: TaggedFormat) -> None:
    outer = [*wire.format.call, *(wire.format.section or ())]
    assert not any(is_closer(wire, text.strip()) for marker in outer for text in marker_alternatives(marker) if text)


# -- A6: an abandoned call ---------------------------------------------------------------------------------------------


@every_tagged
def test_an_abandoned_call_is_rejected_and_the_next_is_parsed(wire: TaggedFormat) -> None:
    whole = render_calls(wire, OWL)
    param = first_alternative(wire.body.param).partition("{")[0]
    opened = whole[: whole.index(param, whole.rindex("lookup"))]
    start = first_alternative(wire.format.channels.start) if wire.format.channels else ""
    reply = read(opened + start + whole, wire)
    assert all_arguments(reply) == [OWL]
    assert [call.name for call in reply.refused] == ["lookup"]
    assert "abandoned" in codes(reply)


# -- B3, B5: openers ---------------------------------------------------------------------------------------------------


@with_tag
def test_a_call_whose_tag_lost_a_character_is_reported(wire: TaggedFormat) -> None:
    tag = first_alternative(wire.body.open).partition("{name}")[0].replace("{id}", "call_0")
    known = [text.partition("{name}")[0] for text in marker_alternatives(wire.body.open)]
    for damaged in (tag[:2] + tag[3:], tag[:-2] + tag[-1]):
        reply = read(render_calls(wire, OWL).replace(tag, damaged, 1), wire)
        assert (all_arguments(reply) == [OWL] and damaged in known) or (not reply.calls and reply.problems)


@with_tag
def test_a_tag_that_lost_its_end_is_repaired_or_reported(wire: TaggedFormat) -> None:
    before, _, after = first_alternative(wire.body.open).partition("{name}")
    before, end = before.replace("{id}", "call_0"), after.replace("{number}", "1")
    reply = read(render_calls(wire, OWL).replace(f"{before}lookup{end}", f"{before}lookup{end[:-1]}", 1), wire)
    if end[-1] == ">" and len(end) <= 2:
        assert all_arguments(reply) == [OWL]
        assert [made.rule for made in reply.calls[0].repairs] == ["broken_opener"]
    else:
        assert not reply.calls and reply.problems


@pytest.mark.parametrize("odd", ["get weather", "look/up", "\u00a0", "look, up"])
@with_tag
def test_a_tag_with_an_invalid_name_before_an_argument_is_a_rejected_call(wire: TaggedFormat, odd: str) -> None:
    name = first_alternative(wire.body.open).replace("{name}", odd)
    if name.count("{"):
        return  # The tag contains more than the name.
    text = render_calls(wire, OWL, BAT).replace(first_alternative(wire.body.open).replace("{name}", "lookup"), name, 1)
    reply = read(text, wire)
    assert all_arguments(reply) == [BAT] and len(reply.refused) == 1, reply


@pytest.mark.parametrize("name", ["glm45", "ling3", "poolside_v1", "hy_v3"])
def test_a_lone_name_in_a_block_is_a_call_even_of_an_unknown_tool(name: str) -> None:
    reply = hold_of_every_cut("<tool_call>pong</tool_call>", Setting(name, TOOLS))
    assert [(call.name, codes(reply)) for call in reply.refused] == [("pong", ["unknown_tool"])]


def test_minicpm5_tags_are_parsed_without_their_blank() -> None:
    text = '<functionname="lookup"><param name="word">owl</param></function>'
    assert [call.arguments for call in parse(text, format="minicpm5", tools=TOOLS).calls] == [{"word": "owl"}]


def test_step3_calls_are_parsed_without_the_word_before_the_separator() -> None:
    text = render(Call("lookup", OWL), format="step3", tools=TOOLS).replace("function<｜tool_sep｜>", "")
    reply = hold_of_every_cut(text, Setting("step3", TOOLS))
    assert [call.arguments for call in reply.calls] == [OWL]


@with_tag
def test_a_body_without_its_section_is_parsed(wire: TaggedFormat) -> None:
    reply = read(call_body(wire, OWL), wire)
    assert all_arguments(reply) == [OWL]


# -- every argument is accounted for -----------------------------------------------------------------------------------


@every_tagged
def test_a_call_with_a_duplicate_argument_is_rejected_and_names_it(wire: TaggedFormat) -> None:
    text = render_calls(wire, {"word": "owl", "n": 3})
    key = {"word": "bat"}
    again = render_calls(wire, key)
    start = again.index(first_alternative(wire.body.param).partition("{")[0], again.index("lookup"))
    close = first_alternative(wire.body.value_close).replace("{key}", "word")
    doubled = again[start : again.index(close, start) + len(close)]
    place = text.rindex(
        own_close(wire) if first_alternative(wire.body.close) else first_alternative(wire.format.call[1])
    )
    reply = read(text[:place] + doubled + text[place:], wire)
    assert reply.calls == ()
    assert any("'word'" in problem.message for problem in reply.problems if problem.blocking)


@with_tag
def test_json_in_place_of_tags_with_trailing_text_is_rejected(wire: TaggedFormat) -> None:
    text = call_body(wire, OWL)
    start = text.index(first_alternative(wire.body.param).partition("{")[0], text.index("lookup"))
    reply = read(text[:start] + '{"word": "owl"}/and more', wire)
    assert reply.calls == () and "unexpected_text" in codes(reply)


# -- D: escapes of kimi_k3 ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["a&b", 'a"b', "a<b", "&quot;", "&amp;amp;", "x > y", "a/b"])
def test_kimi_k3_escapes_quoted_text(key: str) -> None:
    tools = Toolset([tool("lookup", **{key: STRING})])
    text = render(Call("lookup", {key: "owl"}), format="kimi_k3", tools=tools)
    assert f'key="{key.replace("&", "&amp;").replace(chr(34), "&quot;")}"' in text
    reply = hold_of_every_cut(text, Setting("kimi_k3", tools))
    assert [call.arguments for call in reply.calls] == [{key: "owl"}]


@pytest.mark.parametrize("format", sampled())
def test_windows_line_breaks_in_the_layout_are_accepted(format: str) -> None:
    calls = [Call("lookup", {"word": "one word", "n": 2}), Call("lookup", {"word": "another"})]
    wire = render(calls, format=format, tools=TOOLS).replace("\n", "\r\n")
    reply = hold_of_every_cut(wire, Setting(format, TOOLS))
    assert [call.arguments for call in reply.calls] == [call.arguments for call in calls]


@pytest.mark.parametrize("format", sampled())
@pytest.mark.parametrize("text", ["\r\na", "a\r\n", "\r\na\r\n", "a\r", "\ra", "\r\n", "a\r\nb"])
def test_line_breaks_at_the_edges_of_a_value_are_kept(format: str, text: str) -> None:
    try:
        wire = render([Call("lookup", {"word": text})], format=format, tools=TOOLS)
    except CannotCarry:
        return
    reply = hold_of_every_cut(wire, Setting(format, TOOLS))
    assert [call.arguments for call in reply.calls] == [{"word": text}]


# -- a truncated closing tag of a body ---------------------------------------------------------------------------------

CLOSED = [
    wire
    for wire in FOUND
    if first_alternative(wire.body.close).startswith("</")
    and (wire.format.section or first_alternative(wire.format.call[1]))
]


@tagged_formats(CLOSED.__contains__)
@pytest.mark.parametrize("letters", [1, 2, 3])
def test_a_call_with_a_truncated_closing_tag_does_not_affect_others(wire: TaggedFormat, letters: int) -> None:
    close = first_alternative(wire.body.close)
    calls = [Call("lookup", OWL), Call("ping", {}), Call("lookup", BAT)]
    text = render(calls, format=wire.format, tools=TOOLS).replace(close, close[: -letters - 1] + ">") + "\nGood day."
    reply = read(text, wire)
    assert all(call.arguments in (OWL, {}, BAT) for call in reply.calls)
    assert len(reply.attempts) <= 3 and reply.problems


@tagged_formats(lambda wire: wire in CLOSED and not wire.format.channels)
def test_a_value_is_never_cut_at_a_truncated_closing_tag_inside_it(wire: TaggedFormat) -> None:
    close, whole = first_alternative(wire.body.close), render_calls(wire, {"word": "a"})
    behind = whole[whole.rindex(first_alternative(wire.body.value_close)) :]
    held = behind.replace(close, close[:-3] + ">") + " b"
    reply = read(whole.removesuffix(behind) + held + behind, wire)
    assert [call.arguments for call in reply.calls] in ([], [{"word": "a" + held}])
