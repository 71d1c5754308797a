"""A call with a damaged marker never runs without an argument of the text, nor with arguments mixed up.

All arguments of the tool are optional, so schema validation cannot detect a missing argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from rightcall import Call, CannotCarry, Toolset, parse, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Format, marker_alternatives
from rightcall.testing.laws.marker_texts import any_literal
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled
from support.replies import codes

_OPTIONAL = {"table": {"type": "string"}, "rows": {"type": "integer"}, "where": {"type": "object"}}
TOOLS = Toolset.of([{"name": "purge", "parameters": {"type": "object", "properties": _OPTIONAL}}])
SENT = [{"table": "owls", "rows": 734}, {"rows": 734, "table": "owls"}, {"rows": 734, "where": {"k": "bats"}}]
PURGE = Toolset.of(
    [
        {"name": "purge", "parameters": {"type": "object", "properties": {"dry_run": {"type": "boolean"}}}},
        {"name": "stop", "parameters": {"type": "object", "properties": {}}},
    ]
)


def _foreign_markers(format: Format) -> list[str]:
    """Return the markers that have a meaning next to a call: turn ends, call openers and call closers."""
    pairs = [pair for pair in (format.section, format.call) if pair is not None]
    around = [text for pair in pairs for side in pair for text in marker_alternatives(side) if "{" not in text]
    ends = [*format.ends[:2], *(format.channels.ends if format.channels is not None else ())]
    return list(dict.fromkeys([str(text).strip() for text in (*ends, *around) if text.strip()]))


def _damaged_texts(format: Format, text: str) -> Iterator[str]:
    """Yield the text with one marker removed, in other case, doubled, or next to or replaced by another marker."""
    for found in any_literal(format).finditer(text):
        start, marker, end = text[: found.start()], found.group(), text[found.end() :]
        yield from (start + end, start + marker.swapcase() + end, start + marker + marker + end)
        for stranger in _foreign_markers(format):
            yield from (start + stranger + marker + end, start + marker + stranger + end)
            if len(marker) > 2:  # single brackets also occur in JSON and in other formats
                yield start + stranger + end


@pytest.mark.parametrize("name", sampled())
def test_a_damaged_marker_removes_no_argument_from_a_runnable_call(name: str) -> None:
    for sent in SENT:
        try:
            wire = render([Call("purge", sent)], format=name, tools=TOOLS)
        except CannotCarry:
            continue
        for text in _damaged_texts(FORMATS[name], wire):
            for call in parse(text, format=name, tools=TOOLS).calls:
                odd = [key for key in call.arguments if key not in sent]
                assert len(call.arguments) == len(sent) and all(key in text for key in odd), (text, call)
                assert not any(re.search("734|rows|where", str(call.arguments.get(key))) for key in ("table",)), text


CLOSED_EARLY = {
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.purge:0<|tool_call_argument_begin|>"
    '<|tool_call_end|>{"dry_run": true}<|tool_call_end|><|tool_calls_section_end|>',
    "functionary_v2": 'purge\n<|content|><|stop|>{"dry_run": true}',
    "functionary_v31": '<function=purge</function>{"dry_run": true}>',
    "functionary_v32": 'purge\n<|eot_id|>{"dry_run": true}',
    "glm45": '<tool_call>purge</tool_call>{"dry_run": true}</tool_call>',
    "contract": "<tool_call>\npurge</tool_call>({ dry_run: true })\n</tool_call>",
    "hermes": '<tool_call>{"name": "purge"</tool_call>, "arguments": {"dry_run": true}}',
    "apriel": '<tool_calls>[{"name": "purge"} "arguments": {"dry_run": true}]</tool_calls>',
    "mistral_v11": '[TOOL_CALLS]purge[ARGS]{} "dry_run": true}',
    "step3p5": "<tool_call>\n<function=purge>\n<|im_end|><parametr=dry_run>\ntrue\n</parameter>\n"
    "</function>\n</tool_call>",
    "ling3": "<tool_call>purge<arg_key>dry_run</arg_key><arg_value>true</arg_value><|user|><arg_key>rows</ARG_KEY>"
    "<ARG_VALUE>3</arg_value></tool_call>",
    "qwen3_coder": "<tool_call>\n<function=purge>\n<|im_end|><parameter=dry_run>\ntrue\n</parameter>\n</function>",
}


@pytest.mark.parametrize("name", CLOSED_EARLY)
def test_a_call_closed_before_its_arguments_is_rejected(name: str) -> None:
    reply = hold_of_every_cut(CLOSED_EARLY[name], Setting(name, PURGE))
    assert not reply.calls and reply.problems, reply


@pytest.mark.parametrize("between", ["", "\n", "\n```json\n"])
@pytest.mark.parametrize("inside", ['{"name": "purge"}', '{"name": "purge", "arguments": null}'])
def test_an_envelope_closed_before_its_arguments_is_rejected(inside: str, between: str) -> None:
    text = f'<tool_call>{inside}</tool_call>{between}{{"dry_run": true}}'
    for name in ("hermes", "auto"):
        reply = hold_of_every_cut(text, Setting(name, PURGE))
        assert not reply.calls and "trailing_content" in codes(reply)
    for kept in (text.partition(between + '{"dry_run')[0], text.replace(inside, '{"name": "purge", "arguments": {}}')):
        assert [call.name for call in hold_of_every_cut(kept, Setting("hermes", PURGE)).calls] == ["purge"]


def test_a_header_without_its_message_is_not_a_call() -> None:
    text = '<|channel|>commentary to=functions.purge<|call|>{"dry_run": true}<|call|>'
    reply = hold_of_every_cut(text, Setting("harmony", PURGE))
    assert not reply.calls and "looks_like_a_call" in codes(reply)


@pytest.mark.parametrize("key", ["argumentz", "arguments\ufeff", "\xa0parameters", "payload"])
def test_arguments_under_an_unknown_key_are_reported(key: str) -> None:
    text = f'<tool_call>{{"name": "%s", "{key}": {{"dry_run": true}}}}</tool_call>'
    reply = hold_of_every_cut(text % "purge", Setting("hermes", PURGE))
    assert (reply.calls, codes(reply)) == ((), ["misplaced_argument"])
    none = hold_of_every_cut(text % "stop", Setting("hermes", PURGE))
    assert ([call.name for call in none.calls], codes(none)) == (["stop"], ["unknown_key"])
    text = f'<tool_call>{{"name": "purge", "arguments": {{}}, "{key}": {{"dry_run": 1}}}}</tool_call>'
    assert codes(hold_of_every_cut(text, Setting("hermes", PURGE))) == ["unknown_key"]


UNENDED = ["", " ", "<|constrain|>json", " <|constrain|>json "]


@pytest.mark.parametrize("between", UNENDED)
@pytest.mark.parametrize("more", ["", f', "note": "{"x" * 400}"'])
@pytest.mark.parametrize("end", ["<|call|>", ""])
def test_arguments_in_a_header_are_reported_and_rejected(between: str, more: str, end: str) -> None:
    text = f'<|channel|>commentary to=functions.purge{between}{{"dry_run": true{more}}}{end}'
    reply = hold_of_every_cut(text, Setting("harmony", PURGE))
    assert not reply.calls and set(codes(reply)) & {"looks_like_a_call", "truncated"}


def test_text_in_a_tool_header_is_reported() -> None:
    reply = hold_of_every_cut(
        "<|channel|>commentary to=functions.purge dry_run=true<|call|>", Setting("harmony", PURGE)
    )
    assert not reply.calls and "looks_like_a_call" in codes(reply)
    both = '<|channel|>commentary to=functions.purge {"dry_run": true}<|message|>{}<|call|>'
    assert not hold_of_every_cut(both, Setting("harmony", PURGE)).calls


@pytest.mark.parametrize(
    ("header", "label"),
    [
        ("<|channel|>final ", "final "),
        ("<|channel|>analysis\n", "analysis\n"),
        ("<|start|>assistant ", ""),
        ("<|channel|>", ""),
    ],
)
@pytest.mark.parametrize("end", ["<|end|>", ""])
def test_the_text_of_a_message_with_an_unclosed_header_is_kept(header: str, label: str, end: str) -> None:
    reply = hold_of_every_cut(f"{header}Good morning, all.{end}", Setting("harmony", PURGE))
    assert (reply.content, reply.reasoning, codes(reply)) == (f"{label}Good morning, all.", "", ["stray_marker"])


UNCLOSED_VALUES = [  # the first value is not closed, and the next argument has another opener
    ("qwen3_coder", "<function=purge>\n<parameter=table>\nowls\n{}\n734\n</parameter>\n</function>\n</tool_call>"),
    ("seed_oss", "<function=purge>\n<parameter=table>owls\n{}734</parameter>\n</function>\n</seed:tool_call>"),
    ("minimax_m2", '<invoke name="purge">\n<parameter name="table">owls\n{}734</parameter>\n</invoke>'),
    ("invoke", '<invoke name="purge">\n<parameter name="table">owls\n{}734</parameter>\n</invoke>'),
]
OPENERS = ['<parameter name="rows">', "<parameter=rows>", "<parameter rows>", "<parameter='rows'>", "<parameter: rows>"]


@pytest.mark.parametrize(("name", "text"), UNCLOSED_VALUES)
@pytest.mark.parametrize("opener", OPENERS)
def test_an_unclosed_value_does_not_swallow_an_argument_with_another_opener(name: str, text: str, opener: str) -> None:
    reply = hold_of_every_cut(text.format(opener), Setting(name, TOOLS))
    assert all(call.arguments == {"table": "owls", "rows": 734} for call in reply.calls), reply
