"""`<think>` at the beginning of a reply is reasoning in every format, whatever reasoning markers the format has."""

from __future__ import annotations

import pytest

from rightcall import Call, CannotCarry, Reply, Text, Toolset, parse, render
from rightcall.formats import FORMATS
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled, selected
from support.replies import codes

_WORD = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
TOOLS = Toolset.of([{"name": "lookup", "parameters": _WORD}])
MESSAGES = [
    (name, kind)
    for name, format in FORMATS.items()
    for kind in (format.channels.messages if format.channels else ())
    if kind != "call"
]
every_format = pytest.mark.parametrize("name", sampled())
# A message to a tool with only a header as its marker: after other text it is a line of text.
HEADED = {name for name, format in FORMATS.items() if format.channels and not format.channels.to}


def _call(name: str, word: str) -> str:
    return render([Call("lookup", {"word": word})], format=name, tools=TOOLS).strip()


def _read(name: str, text: str, **options: str | None) -> Reply:
    return hold_of_every_cut(text, Setting(name, TOOLS, **options))  # type: ignore[arg-type]


def _called_words(reply: Reply) -> list[str]:
    return [call.arguments["word"] for call in reply.calls]


@every_format
@pytest.mark.parametrize("finish", selected([None, "length"], kept=[None]))
def test_a_call_in_think_tags_is_reasoning_and_the_text_after_them_is_content(name: str, finish: str | None) -> None:
    text = f"\n<think>\nI could send {_call(name, 'owl')} but the user forbids it.\n</think>\n\nNo."
    reply = _read(name, text, finish=finish)
    assert not reply.attempts and reply.content == "No."
    assert reply.reasoning.startswith("I could send") and reply.reasoning.endswith("but the user forbids it.")


@every_format
def test_auto_runs_no_call_in_think_tags(name: str) -> None:
    reply = _read("auto", f"<think>\nI could send {_call(name, 'owl')} but the user forbids it.\n</think>\n\nNo.")
    assert not reply.attempts and "think" not in reply.content and "No." in reply.content


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if name not in HEADED))
def test_a_call_after_think_tags_runs(name: str) -> None:
    reply = _read(name, f"<think>\nIs it {_call(name, 'owl')}? Rather not.\n</think>\n\n{_call(name, 'bat')}")
    assert _called_words(reply) == ["bat"] and not reply.refused


@every_format
def test_reasoning_calls_never_leaves_calls_in_think_tags(name: str) -> None:
    text = f"<think>\nI send it. {_call(name, 'owl')}\n</think>"
    assert not parse(text, format=name, tools=TOOLS, reasoning_calls="never").attempts


@every_format
def test_think_tags_can_be_opened_by_the_prompt(name: str) -> None:
    channels = FORMATS[name].channels
    if channels is not None and "reasoning" in channels.kinds.values():
        pytest.skip("the prompt opens a message of reasoning there")
    reply = _read(name, f"I could send {_call(name, 'owl')} but no.\n</think>\n\nNo.", reasoning="open")
    assert not reply.attempts and reply.content == "No."


@pytest.mark.parametrize(("name", "kind"), MESSAGES)
def test_auto_detects_the_first_header_after_think_tags(name: str, kind: str) -> None:
    channels = FORMATS[name].channels
    assert channels is not None
    opens, closes = channels.messages[kind]  # type: ignore[index]
    text = f"<think>Hm.</think>\n{opens}I would send {_call(name, 'owl')}, but no.{closes}"
    reply, by_name = _read("auto", text), _read(name, text)
    assert (reply.parts, reply.format) == (by_name.parts, name) and reply.reasoning.startswith("Hm.")


@every_format
def test_without_reasoning_tags_are_text(name: str) -> None:
    reply = parse("<think>Hm.</think>No.", format=name, reasoning="off")
    assert (reply.reasoning, reply.content) == ("", "<think>Hm.</think>No.")


@every_format
def test_text_that_would_be_parsed_as_reasoning_is_not_rendered(name: str) -> None:
    part = Text("<think>Hm.</think>No.")
    try:
        text = render([part], format=name)
    except CannotCarry:
        return
    assert not text.startswith("<think>") and parse(text, format=name).parts == (part,)


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if not FORMATS[name].reasoning))
def test_think_tags_after_text_are_text_in_formats_without_them(name: str) -> None:
    text = "The tag <think> opens a thought and </think> closes it."
    reply = parse(text, format=name)
    assert (reply.content, codes(reply)) == (text, [])
