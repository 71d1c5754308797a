"""Tagged bodies: where a value and a call end, in every format that has one, however the text is cut.

The formats are found by discovery, and their texts are rendered and then damaged, so that each class of fault is tried
in each of them.
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

from rightcall import Call, CannotCarry, Format, Reply, Toolset, parse, render
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


class Tagged(NamedTuple):
    name: str
    format: Format  # as it writes its tagged body
    body: Params


def tagged(name: str) -> Tagged | None:
    format = FORMATS[name]
    body = next((body for body in format.bodies if isinstance(body, Params)), None)
    if body is None:
        return None
    others = tuple(other for other in format.bodies if other is not body)
    return Tagged(name, msgspec.structs.replace(format, body=(body, *others) if others else body), body)


FOUND = [found for name in FORMATS if (found := tagged(name)) is not None]


def tagged_formats(where: Callable[[Tagged], object] = bool) -> pytest.MarkDecorator:
    wires = sampled([wire for wire in FOUND if where(wire)], lambda wire: wire.name)
    return pytest.mark.parametrize("wire", wires, ids=lambda wire: wire.name)


every_tagged = tagged_formats()
with_tag = tagged_formats(lambda wire: not marker_alternatives(wire.body.open)[0].startswith("{"))


def first(marker: str | tuple[str, ...]) -> str:
    return marker_alternatives(marker)[0].strip()


def written(wire: Tagged, *arguments: dict[str, Any]) -> str:
    return render([Call("lookup", each) for each in arguments], format=wire.format, tools=TOOLS)


def read(text: str, wire: Tagged) -> Reply:
    """The reply, which is the same under every cut."""
    return hold_of_every_cut(text, Setting(wire.name, TOOLS), seed=len(text))


def own_close(wire: Tagged) -> str:
    """What closes a call."""
    return first(wire.body.close) or first(wire.format.call[1])


def bare(wire: Tagged, arguments: dict[str, Any]) -> str:
    """A call's body, without what stands around it."""
    text = written(wire, arguments)
    start = text.index(first(wire.body.open).partition("{")[0])
    close = first(wire.body.close)
    return text[start : text.index(close) + len(close)]


def all_arguments(reply: Reply) -> list[dict[str, Any]]:
    return [call.arguments for call in reply.calls]


def codes(reply: Reply) -> list[str]:
    return [problem.code for problem in reply.problems]


# -- A1: a value swallows what follows it ------------------------------------------------------------------------------


@every_tagged
def test_a_call_without_its_closing_tag_is_rejected_before_the_next(wire: Tagged) -> None:
    reply = read(written(wire, OWL, BAT).replace(own_close(wire), "", 1), wire)
    assert all_arguments(reply) in ([BAT], [OWL, BAT])
    if len(reply.calls) == 2:  # the close of what surrounds the call is there
        assert codes(reply) == ["unclosed"]
        assert reply.problems[0].call == 0 and not reply.problems[0].blocking
    else:
        assert codes(reply) == ["abandoned"] and [call.name for call in reply.refused] == ["lookup"]


def ends(wire: Tagged) -> tuple[str, ...]:
    """What ends a turn."""
    return wire.format.ends + (wire.format.channels.ends if wire.format.channels else ())


@tagged_formats(ends)
def test_a_call_without_its_closing_tag_ends_at_an_end_of_turn(wire: Tagged) -> None:
    text = written(wire, OWL)
    reply = read(text[: text.rindex(own_close(wire))] + ends(wire)[0], wire)
    assert all_arguments(reply) == [OWL]
    assert "unclosed" in codes(reply)


@with_tag
def test_several_calls_in_one_block_are_all_read(wire: Tagged) -> None:
    one = written(wire, OWL)
    both = one.replace(bare(wire, OWL), bare(wire, OWL) + bare(wire, BAT))
    assert all_arguments(read(both, wire)) == [OWL, BAT]


@with_tag
def test_of_several_calls_in_one_block_only_the_last_may_lack_its_close(wire: Tagged) -> None:
    closed, unclosed = bare(wire, OWL), bare(wire, BAT).removesuffix(first(wire.body.close))
    reply = read(written(wire, OWL).replace(closed, unclosed + closed), wire)
    assert all_arguments(reply) == [OWL]
    assert codes(reply) == ["abandoned"]
    reply = read(written(wire, OWL).replace(closed, closed + unclosed), wire)
    assert all_arguments(reply) in ([OWL, BAT], [OWL])  # where nothing surrounds the calls, the text ends in the last
    assert set(codes(reply)) == {"unclosed" if len(reply.calls) == 2 else "truncated"}


@every_tagged
def test_text_after_unclosed_calls_is_text(wire: Tagged) -> None:
    if wire.format.channels is not None:
        pytest.skip("text has a message of its own there")
    text = written(wire, OWL, BAT).replace(own_close(wire), "", 1)
    reply = read(text + "\nThat is all.", wire)
    assert BAT in all_arguments(reply)
    assert reply.content == "That is all."


@every_tagged
def test_a_value_that_lost_its_close_ends_with_its_call_or_blocks_it_and_no_other(wire: Tagged) -> None:
    only = {"word": "owl"}
    close = marker_alternatives(wire.body.value_close)[0].replace("{key}", "word").rstrip()
    reply = read(written(wire, only, BAT).replace(close, "", 1), wire)
    if reply.refused:
        assert all_arguments(reply) == [BAT] and len(reply.refused) == 1
    else:
        assert all_arguments(reply) == [only, BAT] and codes(reply) == ["unclosed_argument"]


OTHER_CLOSES = ["</arg>", "</value>", "</word>", "</param>", "</arg_value>", "</\uff5cDSML\uff5cvalue>"]


@every_tagged
@pytest.mark.parametrize("close", selected(OTHER_CLOSES, kept=["</arg>", "</word>"]))
def test_a_value_that_another_tag_closes_blocks_its_call(wire: Tagged, close: str) -> None:
    own = first(wire.body.value_close).replace("{key}", "word")
    if close in own:
        return
    text = written(wire, OWL).replace(own, close, 1)
    assert close in text and not any(close in str(each) for each in all_arguments(read(text, wire)))
    unclosed = written(wire, {"word": "<b>owl</b>", "n": 3}).replace(own, "", 1)
    assert all(each["word"].strip() == "<b>owl</b>" for each in all_arguments(read(unclosed, wire)))


@every_tagged
@given(data=st.data())
def test_no_call_runs_with_what_a_lost_character_let_it_swallow(wire: Tagged, data: st.DataObject) -> None:
    text = written(wire, OWL, BAT)
    at = data.draw(st.integers(0, len(text) - 1).filter(lambda at: text[at] not in "owlbat34"))
    reply = read(text[:at] + text[at + 1 :], wire)
    assert len(reply.attempts) <= 2
    # The argument's name may have lost the character.
    values = [value for arguments in all_arguments(reply) for value in arguments.values()]
    assert set(values) <= {"owl", "bat", 3, 4}


@every_tagged
@given(data=st.data())
def test_no_call_runs_with_what_a_lost_marker_let_it_swallow(wire: Tagged, data: st.DataObject) -> None:
    text = written(wire, OWL, BAT)
    body, format = wire.body, wire.format
    fields = [body.open, body.param, body.value_close, body.close, *format.call, *(format.section or ())]
    filled = [first(m).replace("{name}", "lookup").replace("{number}", "1") for m in fields if first(m)]
    marker = data.draw(st.sampled_from([m.replace("{key}", k).replace("{type}", "true") for m in filled for k in OWL]))
    if marker in text:
        reply = read(text.replace(marker, "", 1), wire)
        assert len(reply.attempts) <= 2
        values = [str(value) for arguments in all_arguments(reply) for value in arguments.values()]
        assert not any(("owl" in value and "bat" in value) or "lookup" in value for value in values)


@every_tagged
def test_no_call_runs_with_what_two_faults_let_a_value_swallow(wire: Tagged) -> None:
    dice = Random(wire.name)
    for arguments in ([OWL], [{"n": 3, "word": "owl"}], [OWL, BAT], [{"word": "owl"}, {"word": "bat"}]):
        text = written(wire, *arguments)
        places = list(marker_places(wire.format, text))
        for _ in range(150):
            first_lost, lost = sorted(dice.sample(places, 2))
            if first_lost[1] <= lost[0]:
                less = text[: first_lost[0]] + text[first_lost[1] : lost[0]] + text[lost[1] :]
                calls = all_arguments(parse(less, format=wire.name, tools=TOOLS))
                # A line break may be left where the marker around it is gone.
                values = [str(value).strip("\n") for each in calls for value in each.values()]
                assert set(values) <= {"owl", "bat", "3", "4"}, less


@every_tagged
@pytest.mark.parametrize("tools", [TOOLS, None], ids=["with tools", "without"])
def test_an_argument_whose_tag_and_the_close_before_it_are_damaged_blocks_its_call(
    wire: Tagged, tools: Toolset | None
) -> None:
    head = first(wire.body.param).partition("{")[0]
    close = first(wire.body.value_close).replace("{key}", "word")
    text = written(wire, OWL)
    if len(head) < 6:
        pytest.skip("nothing but a sign is before the key")
    start = text.rindex(head)
    for at in range(2, len(head) - 2):
        damaged = text[: start + at] + text[start + at + 1 :]
        for closed in ("", close[:-3] + close[-2:]):
            assert not parse(damaged.replace(close, closed, 1), format=wire.name, tools=tools).calls


ABOUT = "The parameter n, invoke(parameter=n, param=n), an argument key n of parameters; <b>parameter</b> n, arg_key=n"


@every_tagged
def test_a_value_that_names_an_argument_which_is_not_given_is_carried(wire: Tagged) -> None:
    inline = "\n" not in marker_alternatives(wire.body.value_close)[0]
    page = '<b class="a\n  hidden">' if not inline else "<b>"
    for value in (
        '<input name="n"> <a n="n">n</a>\nn > 3',
        page,
        "n = 3\nif n>3: n<4",
        'class="n">',
        "a\n\nn: 1\n<n/>",
    ):
        assert all_arguments(read(written(wire, {"word": value}), wire)) == [{"word": value}]


@every_tagged
def test_a_value_that_holds_its_close_and_an_opener_is_in_doubt(wire: Tagged) -> None:
    body = wire.body
    key = "other"
    close = first(body.value_close).replace("{key}", "word")
    opener = first(body.param).replace("{key}", key).replace("{type}", "string")
    value = f"see {close} and then {opener} there"
    text = written(wire, {"word": "MARK"}).replace("MARK", value)
    reply = read(text, wire)
    assert reply.calls == () and "ambiguous_end" in codes(reply)
    if body.quote is None:
        with pytest.raises(CannotCarry):
            written(wire, {"word": value})


@every_tagged
def test_a_value_that_only_mentions_tags_is_carried(wire: Tagged) -> None:
    close = first(wire.body.value_close).replace("{key}", "word")
    value = f"close with {close} and {own_close(wire)} here"
    assert all_arguments(read(written(wire, {"word": value}), wire)) == [{"word": value}]


# -- A2, D: line breaks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["qwen3_coder", "step3p5", "seed_oss"])
@pytest.mark.parametrize("value", ["\nowl</parameter>", "\nowl\n</parameter>", "owl</parameter>"])
def test_a_close_counts_with_and_without_its_line_break(name: str, value: str) -> None:
    format = FORMATS[name]
    opens, closes = first(format.call[0]), first(format.call[1])
    inside = f"<function=lookup>\n<parameter=word>{value}\n<parameter=n>\n3\n</parameter>\n</function>"
    reply = hold_of_every_cut(f"{opens}\n{inside}\n{closes}", Setting(name, TOOLS))
    # Seed writes values inline: a line break that only stands before the value is the value's.
    word = "\nowl" if name == "seed_oss" and value == "\nowl</parameter>" else "owl"
    assert [call.arguments for call in reply.calls] == [{**OWL, "word": word}]


def test_seed_oss_keeps_the_last_line_break_of_a_value_and_writes_it_inline() -> None:
    text = render(Call("lookup", {"word": "a\nb\n"}), format="seed_oss", tools=TOOLS)
    assert "<parameter=word>a\nb\n</parameter>\n" in text
    reply = hold_of_every_cut(text, Setting("seed_oss", TOOLS))
    assert [call.arguments for call in reply.calls] == [{"word": "a\nb\n"}]


# -- A3: what the machine needs to know --------------------------------------------------------------------------------


def is_closer(wire: Tagged, text: str) -> bool:
    reader = compile_format(FORMATS[wire.name]).bodies.readers[FORMATS[wire.name].bodies.index(wire.body)]
    return any(re.fullmatch(pat.whole, text) for pat in reader.closers)


@every_tagged
def test_what_ends_a_value_or_a_body_is_a_closer_of_its_reader(wire: Tagged) -> None:
    assert is_closer(wire, first(wire.body.value_close).replace("{key}", "anything"))
    assert not wire.body.close or is_closer(wire, first(wire.body.close))


# A close that is named after its argument looks like any other: the machine asks for those first.
@tagged_formats(lambda wire: "{key}" not in first(wire.body.value_close))
def test_what_ends_a_call_or_a_section_is_no_closer_of_its_reader(wire: Tagged) -> None:
    outer = [*wire.format.call, *(wire.format.section or ())]
    assert not any(is_closer(wire, text.strip()) for marker in outer for text in marker_alternatives(marker) if text)


# -- A6: an abandoned call ---------------------------------------------------------------------------------------------


@every_tagged
def test_a_call_that_was_opened_and_left_is_refused_and_the_next_is_read(wire: Tagged) -> None:
    whole = written(wire, OWL)
    param = first(wire.body.param).partition("{")[0]
    opened = whole[: whole.index(param, whole.rindex("lookup"))]
    start = first(wire.format.channels.start) if wire.format.channels else ""
    reply = read(opened + start + whole, wire)
    assert all_arguments(reply) == [OWL]
    assert [call.name for call in reply.refused] == ["lookup"]
    assert "abandoned" in codes(reply)


# -- B3, B5: openers ---------------------------------------------------------------------------------------------------


@with_tag
def test_a_tag_that_lost_a_character_runs_no_call_and_is_reported(wire: Tagged) -> None:
    tag = first(wire.body.open).partition("{name}")[0].replace("{id}", "call_0")
    known = [text.partition("{name}")[0] for text in marker_alternatives(wire.body.open)]
    for damaged in (tag[:2] + tag[3:], tag[:-2] + tag[-1]):
        reply = read(written(wire, OWL).replace(tag, damaged, 1), wire)
        assert (all_arguments(reply) == [OWL] and damaged in known) or (not reply.calls and reply.problems)


@with_tag
def test_a_tag_that_lost_its_end_is_read_with_a_receipt_or_reported(wire: Tagged) -> None:
    before, _, after = first(wire.body.open).partition("{name}")
    before, end = before.replace("{id}", "call_0"), after.replace("{number}", "1")
    reply = read(written(wire, OWL).replace(f"{before}lookup{end}", f"{before}lookup{end[:-1]}", 1), wire)
    if end[-1] == ">" and len(end) <= 2:
        assert all_arguments(reply) == [OWL]
        assert [made.rule for made in reply.calls[0].repairs] == ["broken_opener"]
    else:
        assert not reply.calls and reply.problems


@pytest.mark.parametrize("odd", ["get weather", "look/up", "\u00a0", "look, up"])
@with_tag
def test_a_tag_with_something_else_than_a_name_before_an_argument_is_a_refused_call(wire: Tagged, odd: str) -> None:
    name = first(wire.body.open).replace("{name}", odd)
    if name.count("{"):
        return  # the tag says more than the name
    text = written(wire, OWL, BAT).replace(first(wire.body.open).replace("{name}", "lookup"), name, 1)
    reply = read(text, wire)
    assert all_arguments(reply) == [BAT] and len(reply.refused) == 1, reply


@pytest.mark.parametrize("name", ["glm45", "ling3", "poolside_v1", "hy_v3"])
def test_a_name_alone_in_its_block_is_a_call_even_of_a_tool_that_is_not_there(name: str) -> None:
    reply = hold_of_every_cut("<tool_call>pong</tool_call>", Setting(name, TOOLS))
    assert [(call.name, codes(reply)) for call in reply.refused] == [("pong", ["unknown_tool"])]


def test_minicpm5_may_leave_out_the_blank_in_its_tag() -> None:
    text = '<functionname="lookup"><param name="word">owl</param></function>'
    assert [call.arguments for call in parse(text, format="minicpm5", tools=TOOLS).calls] == [{"word": "owl"}]


def test_step3_may_leave_out_the_word_before_its_separator() -> None:
    text = render(Call("lookup", OWL), format="step3", tools=TOOLS).replace("function<｜tool_sep｜>", "")
    reply = hold_of_every_cut(text, Setting("step3", TOOLS))
    assert [call.arguments for call in reply.calls] == [OWL]


@with_tag
def test_a_body_without_its_section_is_read(wire: Tagged) -> None:
    reply = read(bare(wire, OWL), wire)
    assert all_arguments(reply) == [OWL]


# -- every argument is accounted for -----------------------------------------------------------------------------------


@every_tagged
def test_an_argument_that_is_given_twice_blocks_and_is_named(wire: Tagged) -> None:
    text = written(wire, {"word": "owl", "n": 3})
    key = {"word": "bat"}
    again = written(wire, key)
    start = again.index(first(wire.body.param).partition("{")[0], again.index("lookup"))
    close = first(wire.body.value_close).replace("{key}", "word")
    doubled = again[start : again.index(close, start) + len(close)]
    place = text.rindex(own_close(wire) if first(wire.body.close) else first(wire.format.call[1]))
    reply = read(text[:place] + doubled + text[place:], wire)
    assert reply.calls == ()
    assert any("'word'" in problem.message for problem in reply.problems if problem.blocking)


@with_tag
def test_json_in_place_of_tags_is_blocked_by_trailing_text_live_or_not(wire: Tagged) -> None:
    text = bare(wire, OWL)
    start = text.index(first(wire.body.param).partition("{")[0], text.index("lookup"))
    reply = read(text[:start] + '{"word": "owl"}/and more', wire)
    assert reply.calls == () and "unexpected_text" in codes(reply)


# -- D: what kimi_k3 escapes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["a&b", 'a"b', "a<b", "&quot;", "&amp;amp;", "x > y", "a/b"])
def test_kimi_k3_escapes_quoted_text(key: str) -> None:
    tools = Toolset([tool("lookup", **{key: STRING})])
    text = render(Call("lookup", {key: "owl"}), format="kimi_k3", tools=tools)
    assert f'key="{key.replace("&", "&amp;").replace(chr(34), "&quot;")}"' in text
    reply = hold_of_every_cut(text, Setting("kimi_k3", tools))
    assert [call.arguments for call in reply.calls] == [{key: "owl"}]


@pytest.mark.parametrize("format", sampled())
def test_the_line_breaks_of_a_layout_may_be_those_of_windows(format: str) -> None:
    calls = [Call("lookup", {"word": "one word", "n": 2}), Call("lookup", {"word": "another"})]
    wire = render(calls, format=format, tools=TOOLS).replace("\n", "\r\n")
    reply = hold_of_every_cut(wire, Setting(format, TOOLS))
    assert [call.arguments for call in reply.calls] == [call.arguments for call in calls]


@pytest.mark.parametrize("format", sampled())
@pytest.mark.parametrize("text", ["\r\na", "a\r\n", "\r\na\r\n", "a\r", "\ra", "\r\n", "a\r\nb"])
def test_line_breaks_at_the_edges_of_a_value_are_its_own(format: str, text: str) -> None:
    try:
        wire = render([Call("lookup", {"word": text})], format=format, tools=TOOLS)
    except CannotCarry:
        return
    reply = hold_of_every_cut(wire, Setting(format, TOOLS))
    assert [call.arguments for call in reply.calls] == [{"word": text}]


# -- a body's closing tag that was cut short ---------------------------------------------------------------------------

CLOSED = [
    wire
    for wire in FOUND
    if first(wire.body.close).startswith("</") and (wire.format.section or first(wire.format.call[1]))
]


@tagged_formats(CLOSED.__contains__)
@pytest.mark.parametrize("letters", [1, 2, 3])
def test_a_call_whose_closing_tag_is_cut_short_takes_nothing_with_it(wire: Tagged, letters: int) -> None:
    close = first(wire.body.close)
    calls = [Call("lookup", OWL), Call("ping", {}), Call("lookup", BAT)]
    text = render(calls, format=wire.format, tools=TOOLS).replace(close, close[: -letters - 1] + ">") + "\nGood day."
    reply = read(text, wire)
    assert all(call.arguments in (OWL, {}, BAT) for call in reply.calls)
    assert len(reply.attempts) <= 3 and reply.problems


@tagged_formats(lambda wire: wire in CLOSED and not wire.format.channels)
def test_a_value_that_holds_such_a_tag_is_never_cut_off_at_it(wire: Tagged) -> None:
    close, whole = first(wire.body.close), written(wire, {"word": "a"})
    behind = whole[whole.rindex(first(wire.body.value_close)) :]
    held = behind.replace(close, close[:-3] + ">") + " b"
    reply = read(whole.removesuffix(behind) + held + behind, wire)
    assert [call.arguments for call in reply.calls] in ([], [{"word": "a" + held}])
