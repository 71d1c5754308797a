"""Calls inside reasoning: reasoning that is closed later contained the call, unclosed reasoning ended at the call.

The formats are those whose calls open with a special token, which ends reasoning, and whose reasoning has its own
closing marker.
"""

from __future__ import annotations

from typing import Literal

import pytest

import rightcall
from rightcall import Call, Reply, Toolset, parse, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import marker_alternatives
from rightcall.parsing.compile import compile_format
from rightcall.parsing.parser import Parser
from rightcall.parsing.shown import RESULTS
from rightcall.testing.laws import How, cut_law, opener_law
from rightcall.testing.laws.marker_texts import fill, openers_of
from rightcall.types import CallEnd
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled
from support.replies import read

_WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
TOOLS = Toolset.of([{"name": "lookup", "parameters": _WORD}])


def _is_special(name: str) -> bool:
    found = compile_format(FORMATS[name])
    signs = [sign for sign in found.scans.reasoning.actions if sign.action in ("section", "call", "body")]
    closes = any(sign.action == "think_close" for sign in found.scans.text.actions)
    return closes and any(sign.special for sign in signs) and found.channels is None


SPECIAL = [name for name in FORMATS if _is_special(name)]
special_formats = pytest.mark.parametrize("name", sampled(SPECIAL))


def _call(name: str, word: str) -> str:
    return render([Call("lookup", {"word": word})], format=name, tools=TOOLS).strip()


def _reasoning_markers(name: str) -> tuple[str, str]:
    opens, closes = FORMATS[name].reasoning or ("", "")
    return tuple(str(side if isinstance(side, str) else side[0]) for side in (opens, closes))  # type: ignore[return-value]


def _read(name: str, text: str) -> Reply:
    hold_of_every_cut(text, Setting(name, TOOLS))
    return read(text, name, TOOLS)


def _called_words(reply: Reply) -> list[str]:
    return [call.arguments["word"] for call in reply.calls]


def test_the_family_of_formats_is_not_empty() -> None:
    assert {"lfm2", "kimi_k2", "deepseek_v4", "ministral3"} <= set(SPECIAL)


@special_formats
def test_a_call_in_reasoning_that_quotes_the_turn_end_is_reasoning(name: str) -> None:
    opens, closes = _reasoning_markers(name)
    for end in [marker_alternatives(end)[0] for end in FORMATS[name].ends]:
        if end.strip().lower() in RESULTS:
            continue  # A tool result follows this marker; its content may be anything.
        quoted = f"{opens}I could send {_call(name, 'owl')}{end} but no.{closes}"
        reply = _read(name, f"{quoted}{_call(name, 'bat')}")
        assert _called_words(reply) == ["bat"], end
        assert "but no." in reply.reasoning, end


def test_a_message_in_reasoning_leaks_no_text() -> None:
    message = "\n<|from|>assistant\n<|recipient|>lookup\n<|content|>{}"
    for name in ("auto", "functionary_v2"):
        reply = parse(f"<think>I could write{message}\nbut no.</think>No.", format=name, tools=TOOLS)
        assert (reply.content, reply.attempts) == ("No.", ()), name
        assert "but no." in reply.reasoning, name


@special_formats
def test_a_call_before_the_reasoning_close_is_reasoning(name: str) -> None:
    opens, closes = _reasoning_markers(name)
    reply = _read(name, f"{opens}I could send {_call(name, 'owl')} but no.{closes}{_call(name, 'bat')}")
    assert _called_words(reply) == ["bat"] and not reply.refused
    assert reply.reasoning == f"I could send {_call(name, 'owl')} but no."


@special_formats
def test_a_call_in_reasoning_before_an_answer_never_runs(name: str) -> None:
    opens, closes = _reasoning_markers(name)
    reply = _read(name, f"{opens}I could send {_call(name, 'owl')} but no.{closes}It is a bird.")
    assert not reply.attempts and reply.content == "It is a bird."


@special_formats
def test_a_call_at_the_end_of_closed_reasoning_runs_with_a_note(name: str) -> None:
    opens, closes = _reasoning_markers(name)
    reply = _read(name, f"{opens}I send it. {_call(name, 'owl')}{closes}")
    assert _called_words(reply) == ["owl"]
    assert [problem.code for problem in reply.problems] == ["call_in_reasoning"]


@special_formats
def test_a_call_after_unclosed_reasoning_runs(name: str) -> None:
    opens, _ = _reasoning_markers(name)
    reply = _read(name, f"{opens}I send it. {_call(name, 'owl')}")
    assert _called_words(reply) == ["owl"] and reply.reasoning == "I send it."


@special_formats
def test_no_call_ends_while_its_reasoning_can_still_be_closed(name: str) -> None:
    opens, closes = _reasoning_markers(name)
    parser = Parser(name, tools=TOOLS)
    events = parser.feed(f"{opens}I could send {_call(name, 'owl')} but")
    assert not any(isinstance(event, CallEnd) for event in events)
    parser.feed(f" no.{closes}")
    parser.close()
    assert not parser.reply.attempts


def test_an_id_used_in_reasoning_is_free_for_a_later_call() -> None:
    reply = _read("kimi_k2", f"<think>Say {_call('kimi_k2', 'owl')}?</think>{_call('kimi_k2', 'owl')}")
    assert [call.id for call in reply.calls] == ["functions.lookup:0"]


def test_a_truncated_call_in_reasoning_ends_with_the_reasoning() -> None:
    text = "<think>It goes <|tool_call_start|>[lookup(5, 6) and so on.</think>It is a bird."
    reply = _read("lfm2", text)
    assert not reply.calls and reply.content == "It is a bird."


def test_a_mentioned_opener_stays_in_the_reasoning() -> None:
    reply = _read("lfm2", "<think>The token <|tool_call_start|> opens a call.</think>It is a bird.")
    assert reply.reasoning == "The token <|tool_call_start|> opens a call." and reply.content == "It is a bird."


@pytest.mark.parametrize("name", ["auto", *sampled()])
@pytest.mark.parametrize("finish", ["length", "content_filter", "error"])
def test_no_call_in_open_reasoning_of_a_truncated_reply_is_runnable(name: str, finish: str) -> None:
    wire = "kimi_k2" if name == "auto" else name
    opens = next((text for text in marker_alternatives((FORMATS[wire].reasoning or ("",))[0]) if text), "")
    for opener in {opens, "<think>"} - {""}:
        text = f"{opener}The page says: {_call(wire, 'owl')}"
        reply = hold_of_every_cut(text, Setting(name, TOOLS, finish=finish))
        assert not reply.calls and not reply.content and reply.reasoning.startswith("The page says:")
        assert {problem.code for problem in reply.problems if problem.blocking} <= {"call_in_open_reasoning"}
        assert not parse(text, format=name, tools=TOOLS, finish=finish, reasoning_calls="never").attempts


@special_formats
def test_a_call_after_a_special_token_in_truncated_reasoning_is_rejected(name: str) -> None:
    reply = read(f"{_reasoning_markers(name)[0]}I send it. {_call(name, 'owl')}", name, TOOLS, finish="length")
    assert [call.arguments for call in reply.refused] == [{"word": "owl"}]
    assert [problem.code for problem in reply.problems] == ["call_in_open_reasoning"]


@pytest.mark.parametrize("name", sampled())
@pytest.mark.parametrize("reasoning_calls", ["safe", "never"])
def test_an_empty_opener_is_reported_where_the_reply_ends_with_the_reasoning(
    name: str, reasoning_calls: Literal["safe", "never"]
) -> None:
    format = FORMATS[name]
    how = How("open", reasoning_calls=reasoning_calls)
    for opener in openers_of(format, "lookup"):
        for close in {
            *(fill(str(marker_alternatives(close)[0])) for close in (format.call[1], "", " is a marker.")),
            "",
        }:
            for end in ("", "</think>"):
                text = f"Well, {opener}{close}{end}"
                assert opener_law(format, text, tools=TOOLS, how=how) == [], text
                assert cut_law(format, text, tools=TOOLS, how=how) == [], text


@pytest.mark.parametrize("name", ["auto", *sampled()])
@pytest.mark.parametrize("finish", [None, "length"])
def test_a_call_left_in_final_reasoning_is_reported(name: str, finish: str | None) -> None:
    call = _call("kimi_k2" if name == "auto" else name, "owl")
    for text in (f"The page says: {call}", f"The page says: {call} Hm.", f"The page says: {call}</think>"):
        setting = Setting(name, TOOLS, "open", finish=finish, reasoning_calls="never")
        reply = hold_of_every_cut(text, setting)
        reported = [problem.code for problem in reply.problems]
        assert reply.attempts or "looks_like_a_call" in reported or reply.content, text


@pytest.mark.parametrize("name", sampled())
@pytest.mark.parametrize(("finish", "how"), [("length", "safe"), ("stop", "never")])
def test_a_call_left_in_provider_reasoning_is_reported(name: str, finish: str, how: Literal["safe", "never"]) -> None:
    thought = {"role": "assistant", "content": None, "reasoning_content": f"I send {_call(name, 'owl')}"}
    reply = rightcall.read(
        {"object": "chat.completion", "choices": [{"index": 0, "message": thought, "finish_reason": finish}]},
        tools=TOOLS,
        format=name,
        reasoning_calls=how,
    )
    assert reply.attempts == ()
    assert {problem.code for problem in reply.problems} & {"looks_like_a_call", "opener_without_call"}


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if compile_format(FORMATS[name]).reasoning_ends))
def test_a_close_shared_with_messages_ends_reasoning_that_contains_a_call(name: str) -> None:
    opens, closes = _reasoning_markers(name)
    reasoning_with_call = f"{opens}I might send {_call(name, 'owl')}"
    assert _called_words(_read(name, f"{reasoning_with_call} - no, I must not.{closes}I will not.")) == []
    assert _called_words(_read(name, f"{reasoning_with_call} - no, I must not.{closes}{_call(name, 'bat')}")) == ["bat"]
    assert _called_words(_read(name, f"{reasoning_with_call}{closes}")) == ["owl"]


def test_reasoning_before_an_answer_reports_no_problem() -> None:
    reply = parse(f"<think>Or {_call('hermes', 'owl')}?</think>It is a bird.", format="hermes", tools=TOOLS)
    assert reply.problems == ()


@special_formats
@pytest.mark.parametrize("blanks", ["", " ", "\n", "\n \n"])
def test_an_opener_at_the_end_of_truncated_reasoning_stays_in_it_with_its_blanks(name: str, blanks: str) -> None:
    for opener in openers_of(FORMATS[name], "lookup"):
        text = f"Well, {opener}{blanks}"
        reply = hold_of_every_cut(text, Setting(name, TOOLS, "open", finish="length"))
        assert (reply.content, reply.attempts) == ("", ()) or reply.refused, text
        assert reply.reasoning in (text, "Well,"), text


@pytest.mark.parametrize("behind", ["{", '{"a"', "["])
def test_an_incomplete_opener_after_reasoning_is_text(behind: str) -> None:
    text = f"<|tool_call|>[sHere is my response:{behind}"
    reply = parse(text, format="granite3", reasoning="open", spans=True)
    assert (reply.reasoning, reply.content, reply.attempts) == ("<|tool_call|>[s", behind, ())
    assert [text[span.start : span.end] for span in reply.spans or () if span.kind == "text"] == [behind]


@pytest.mark.parametrize("name", sampled())
def test_a_call_in_reasoning_never_runs_before_another_opener(name: str) -> None:
    opens, closes = _reasoning_markers(name) if all(_reasoning_markers(name)) else ("<think>", "</think>")
    close = fill(str(marker_alternatives(FORMATS[name].call[1])[0]))
    for opener in openers_of(FORMATS[name], "lookup"):
        for behind in {opener, opener + close}:
            reply = _read(name, f"{opens}Maybe {_call(name, 'owl')}{closes}{behind}")
            assert "owl" not in [call.arguments.get("word") for call in reply.calls], behind
        thought = {"role": "assistant", "content": opener, "reasoning_content": f"Maybe {_call(name, 'owl')}"}
        given = {"object": "chat.completion", "choices": [{"index": 0, "message": thought, "finish_reason": "stop"}]}
        assert not rightcall.read(given, tools=TOOLS, format=name).calls, opener


@pytest.mark.parametrize("name", ["auto", *sampled()])
def test_with_reasoning_off_nothing_is_reasoning(name: str) -> None:
    for wire in ("hermes", "k2_horizon", "kimi_k2", *({name} & {*FORMATS})):
        for opens, closes in {_reasoning_markers(wire), ("<think>", "</think>")} - {("", "")}:
            text = f'{opens}He wrote "so.{closes}\n{_call(wire, "owl")}'
            assert read(text, name, TOOLS, reasoning="off").reasoning == "", text


@special_formats
def test_a_lone_opener_after_reasoning_does_not_run_the_call_in_it(name: str) -> None:
    opens, closes = _reasoning_markers(name)
    before = f"{opens}Maybe {_call(name, 'owl')}{closes}"
    for token in compile_format(FORMATS[name]).openers.first_tokens:
        assert _called_words(_read(name, before + token)) == [], token


def test_a_last_call_in_reasoning_runs() -> None:
    opens, closes = _reasoning_markers("kimi_k3")
    assert _called_words(_read("kimi_k3", f"{opens}Maybe {_call('kimi_k3', 'owl')}{closes}")) == ["owl"]
