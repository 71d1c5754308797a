"""Closing markers of calls: a marker that is broken, missing, doubled or preceded by text leaves a problem."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rightcall import Call, Toolset, render
from rightcall.formats import FORMATS
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format, NameThenJson, Special, marker_alternatives
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled, sampled_rows
from support.replies import codes

_TABLE = {"type": "object", "properties": {"table": {"type": "string"}}, "required": ["table"]}
TOOLS = Toolset.of([{"name": "delete_rows", "parameters": _TABLE}])
SECTIONS = [name for name, format in FORMATS.items() if format.section]


def render_call(format: Format) -> str:
    return render(Call("delete_rows", {"table": "users"}), format=format, tools=TOOLS)


def closing_markers(format: Format) -> Iterator[tuple[str, int, int]]:
    """Yield for each closing marker in a call's text: what it closes, its position and its length."""
    text = render_call(format)
    body = BODIES[type(format.bodies[0])].closing(format.bodies[0])
    for what, marker in (("call", format.call[1]), ("section", (format.section or ("", ""))[1]), ("body", body)):
        close = marker_alternatives(marker)[0].strip()
        if close and close in text:
            yield what, text.rindex(close), len(close)


CLOSES = [(name, *found) for name, format in FORMATS.items() for found in closing_markers(format)]
of_closes = pytest.mark.parametrize(("format", "what", "at", "size"), sampled_rows(CLOSES))


@of_closes
def test_a_call_with_a_broken_close_has_a_problem(format: str, what: str, at: int, size: int) -> None:
    text, middle = render_call(FORMATS[format]), at + size // 2
    for put_in in (" where id=7", "x"):
        reply = hold_of_every_cut(text[:middle] + put_in + text[middle:], Setting(format, TOOLS))
        assert codes(reply), "nothing says that the close is broken"
        assert "where id=7" in reply.content + "".join(call.raw for call in reply.attempts) or put_in == "x"


@of_closes
def test_a_call_without_its_close_before_other_text_has_a_problem(format: str, what: str, at: int, size: int) -> None:
    text = render_call(FORMATS[format])
    reply = hold_of_every_cut(text[:at] + "Done." + text[at + size :], Setting(format, TOOLS))
    assert codes(reply), "nothing says that the close is missing"


@of_closes
def test_a_doubled_close_of_a_call_or_section_is_dropped_with_a_note(
    format: str, what: str, at: int, size: int
) -> None:
    text = render_call(FORMATS[format])
    if what == "body" and FORMATS[format].call[1]:
        return  # A value may contain it.
    if text[at : at + size].startswith("```"):
        return  # A fence also opens a fence.
    if text[at : at + size].strip() in FORMATS[format].ends:
        return  # It also ends the turn.
    for between in ("", "\n"):
        doubled = text[: at + size] + between + text[at : at + size] + text[at + size :]
        reply = hold_of_every_cut(doubled, Setting(format, TOOLS))
        assert [call.arguments for call in reply.calls] == [{"table": "users"}]
        assert codes(reply) == ["stray_marker"] and not reply.content.strip()


@pytest.mark.parametrize("format", ["minicpm5", "minimax_m2", "kimi_k3", "deepseek_v32", "muse", "invoke"])
def test_text_and_a_second_close_make_the_end_of_a_call_ambiguous(format: str) -> None:
    at, size = next((at, size) for what, at, size in closing_markers(FORMATS[format]) if what == "body")
    text = render_call(FORMATS[format])
    doubled = text[: at + size] + " where id=7 " + text[at : at + size] + text[at + size :]
    reply = hold_of_every_cut(doubled, Setting(format, TOOLS))
    assert reply.calls == () and "ambiguous_end" in codes(reply)


@pytest.mark.parametrize("format", sampled(SECTIONS))
@pytest.mark.parametrize("calls", [1, 2])
def test_text_between_a_call_and_the_section_close_is_reported(format: str, calls: int) -> None:
    sent = [Call("delete_rows", {"table": "users"})] * calls
    text = render(sent, format=format, tools=TOOLS)
    closing = marker_alternatives((FORMATS[format].section or ("", ""))[1])[0].strip()
    at = text.rindex(closing)
    reply = hold_of_every_cut(text[:at] + " where id=7\n" + text[at:], Setting(format, TOOLS))
    assert len(reply.calls) == calls and reply.content == "where id=7"
    assert codes(reply) == ["trailing_content"] and not any(problem.blocking for problem in reply.problems)


@pytest.mark.parametrize("place", ["before", "behind"])
def test_text_in_a_message_to_a_tool_is_reported(place: str) -> None:
    opens, closes = "<atem:function_calls>", "</atem:function_calls>"
    text = render_call(FORMATS["muse"])
    text = text.replace(opens, "Now. " + opens) if place == "before" else text.replace(closes, closes + " Now.")
    reply = hold_of_every_cut(text, Setting("muse", TOOLS))
    assert (len(reply.calls), reply.content, codes(reply)) == (1, "Now.", ["trailing_content"])


@pytest.mark.parametrize("format", sampled())
def test_a_rendered_call_is_parsed_without_problems(format: str) -> None:
    reply = hold_of_every_cut(render_call(FORMATS[format]), Setting(format, TOOLS))
    assert len(reply.calls) == 1 and codes(reply) == []


def likely_close(format: Format) -> str:
    """Return the closing marker that a model writes by analogy if the format has none."""
    opens = [text.strip() for text in marker_alternatives(format.call[0])] if not format.call[1] else []
    return next((f"{text[0]}/{text[1:]}" for text in opens if text[:1] in "[<" and text[1:-1].isidentifier()), "")


@pytest.mark.parametrize("format", sampled(name for name, format in FORMATS.items() if likely_close(format)))
def test_a_foreign_close_is_dropped_after_a_call_and_is_text_elsewhere(format: str) -> None:
    close = likely_close(FORMATS[format])
    text = render_call(FORMATS[format])
    reply = hold_of_every_cut(f"{text}{close} Done.", Setting(format, TOOLS))
    assert (len(reply.calls), reply.content, codes(reply)) == (1, "Done.", ["stray_marker"])
    text_with_close = f"Nothing but {close} was missing."
    assert hold_of_every_cut(text_with_close, Setting(format, TOOLS)).content == text_with_close


OPENS = [
    (name, marker.strip())
    for name, format in FORMATS.items()
    for pair in (format.section, format.call)
    for marker in marker_alternatives(pair[0] if pair else "")
    if isinstance(marker, Special) and "{" not in marker
]


@pytest.mark.parametrize("format, opener", OPENS)
def test_a_dropped_opener_separates_the_texts_around_it(format: str, opener: str) -> None:
    for before, behind in (("Good", "day"), ("Good ", " day, friend")):
        reply = hold_of_every_cut(f"{before}{opener}{behind}", Setting(format, TOOLS))
        if not reply.attempts:
            assert reply.content.split() == f"{before} {behind}".split()
            assert "opener_without_call" in codes(reply)


@pytest.mark.parametrize("name", sampled())
@pytest.mark.parametrize("tail", ["`", "``", "\n`", "```", " ````"])
def test_final_backticks_after_a_call_parse_the_same_under_every_chunking(name: str, tail: str) -> None:
    for text in (render_call(FORMATS[name]), render_call(FORMATS[name]).rstrip()):
        hold_of_every_cut(text + tail, Setting(name, TOOLS))


def test_a_bracket_that_closes_a_call_is_not_a_stray_bracket() -> None:
    format = Format("brackets", body=NameThenJson(open="@@{name}(", close=")"), between="\n")
    text = render([Call("delete_rows", {"table": "owls"})] * 2, format=format, tools=TOOLS)
    reply = hold_of_every_cut(text, Setting(format, TOOLS))
    assert (len(reply.calls), codes(reply)) == (2, [])


def test_a_truncated_closing_tag_after_json_is_reported() -> None:
    for letters in (1, 2, 3):
        sent = {"table": "</functio>"}
        text = render([Call("delete_rows", sent)] * 2, format="functionary_v31", tools=TOOLS)
        text = text.replace("}</function>", f"}}{'</function'[:-letters]}>")
        reply = hold_of_every_cut(text, Setting("functionary_v31", TOOLS))
        assert all(call.arguments == sent for call in reply.calls)
        assert set(codes(reply)) == {"trailing_content", "unclosed"}
