"""Detect the formats that parse a chat template's output: render known calls and parse the text with every format.

Templates differ in what they accept: arguments as an object or as text, one call at a time, empty or no content. So
several conversations are rendered, the most conclusive first, and the first one that some format parses decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from rightcall.errors import CannotCarry
from rightcall.formats import known_formats
from rightcall.formats.spec import Format
from rightcall.formats.templates.confined import ChildBounds, Rendering, render_template
from rightcall.formats.templates.drafting import draft_formats
from rightcall.formats.templates.template_faults import BadTemplate
from rightcall.formats.toml_text import format_to_toml
from rightcall.parsing.compile import compile_format
from rightcall.parsing.detection import read_whole
from rightcall.parsing.options import ReadOptions
from rightcall.parsing.rendering import render as write
from rightcall.tools.provider_forms import to_provider
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Tool


class TemplateProbe(msgspec.Struct, frozen=True):
    """Calls that must be found again. `shows` says what that proves."""

    shows: str
    calls: tuple[Call, ...]


class Detection(msgspec.Struct, frozen=True):
    """The formats that recover the calls, the best first, and the rendered assistant part in `text`. If no format does,
    `draft` is the TOML of one that would, or empty."""

    formats: tuple[str, ...]
    shows: str
    text: str
    draft: str = ""


def _call(name: str, id: str, arguments: Json) -> Call:
    """Return a call with these values and its arguments as JSON text."""
    return Call(name, arguments, json.dumps(arguments), id)


TOOLS = Toolset(
    [
        Tool(
            name="get_weather",
            description="The weather of the next days.",
            parameters={
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "Where."},
                    "days": {"type": "integer", "description": "How many."},
                    "place": {
                        "type": "object",
                        "description": "Where exactly.",
                        "properties": {
                            "lat": {"type": "number"},
                            "tags": {"type": "array", "items": {"type": "string"}},
                        },
                    },
                },
                "required": ["city"],
            },
        ),
        Tool(
            name="take_note",
            description="Keeps a text.",
            parameters={
                "type": "object",
                "properties": {"text": {"type": "string", "description": "What to keep."}},
                "required": ["text"],
            },
        ),
    ]
)
_WEATHER = {"city": "Oslo", "days": 3, "place": {"lat": 59.9, "tags": ["north", "fjord"]}}
_FIRST = _call("get_weather", "abcde0001", _WEATHER)
PROBES = (
    TemplateProbe(
        "two calls, nested arguments, a closing marker inside a string",
        (_FIRST, _call("take_note", "abcde0002", {"text": "calls end with </tool_call>, I think"})),
    ),
    TemplateProbe("two calls, nested arguments", (_FIRST, _call("take_note", "abcde0002", {"text": "Buy milk."}))),
    TemplateProbe("one call, nested arguments", (_FIRST,)),
    TemplateProbe("one call, plain arguments", (_call("get_weather", "abcde0001", {"city": "Oslo", "days": 3}),)),
    TemplateProbe("one call, one text", (_call("take_note", "abcde0002", {"text": "Buy milk."}),)),
)
_THOUGHT, _SAID = "They ask for the weather.", "One moment, please."
_MOST_CHARACTERS = 20_000  # characters: what a template writes around two short calls
_QUESTION: Json = {"role": "user", "content": "How is the weather in Oslo?"}


def detect_template(
    template: str, tokens: Mapping[str, str] | None = None, bounds: ChildBounds | None = None
) -> Detection:
    """Return the formats that parse what this template writes, or a draft of one. `tokens` are the special tokens that
    it may use. Raises `BadTemplate` if it cannot be rendered, or accepts none of the conversations."""
    answers = [(probe, answer) for probe in PROBES for answer in _assistant_messages(probe.calls)]
    opened, closed, *rendered = render_template(
        template, _render_contexts([answer for _, answer in answers], tokens or {}), bounds
    )
    texts = [
        (probe, answer, _assistant_part(one.text, opened, closed))
        for (probe, answer), one in zip(answers, rendered, strict=True)
        if one.text
    ]
    if not texts:
        raise BadTemplate(f"the template refuses the conversation: {rendered[0].error or 'it writes nothing'}")
    thought = {probe.shows: text for probe, answer, text in texts if _THOUGHT in text and _SAID in text}
    # A template may write values as text: then the tools' types are needed.
    for repair in ("off", "safe"):
        for probe, _, text in texts:
            if formats := matching_formats(text, probe.calls, repair):
                whole = thought.get(probe.shows, "")
                return Detection(_sort_by_reasoning(formats, whole), probe.shows, text)
    return _draft_detection([(probe, text) for probe, _, text in texts])


def _draft_detection(texts: list[tuple[TemplateProbe, str]]) -> Detection:
    """Return the detection for texts that no format parses: with a drafted format for the first text for which one
    works, otherwise with the first text alone."""
    for probe, text in texts:
        draft = next(
            (each for each in draft_formats(text, probe.calls) if _rank_format(text, probe.calls, each) is not None),
            None,
        )
        if draft is not None:
            return Detection((), probe.shows, text, format_to_toml(draft))
    return Detection((), "", texts[0][1])


def _sort_by_reasoning(formats: tuple[str, ...], text: str) -> tuple[str, ...]:
    """Return names of formats that find the same calls, first those that also find the reasoning and the content in
    `text`, a rendering with both; unchanged if it is ""."""
    if not text:
        return formats
    known = known_formats().formats
    replies = {name: read_whole(text, compile_format(known[name]), ReadOptions(TOOLS)) for name in formats}
    # The header of the turn may precede the thought.
    told = {
        name: reply.reasoning.strip().endswith(_THOUGHT) and reply.content.strip() == _SAID
        for name, reply in replies.items()
    }
    return tuple(sorted(formats, key=lambda name: not told[name]))


def _render_contexts(answers: list[Json], tokens: Mapping[str, str]) -> list[Json]:
    """Return the contexts to render: the prompt with and without the assistant's header, both without an answer, then
    one for each answer. `tokens` are added to each."""
    # A template adds the tokens to text, so they must be there.
    common: Json = {
        "tools": to_provider(TOOLS, "chat"),
        # Older templates take the tools as text, and the date.
        "functions": json.dumps(to_provider(TOOLS, "chat")),
        "datetime": "2026-01-02",
        "documents": None,
        "bos_token": "",
        "eos_token": "",
        **tokens,
    }
    opened = {"messages": [_QUESTION], "add_generation_prompt": True}
    others = [
        {"messages": [_QUESTION, *more], "add_generation_prompt": False} for more in ([], *([a] for a in answers))
    ]
    return [{**common, **context} for context in (opened, *others)]


def _assistant_messages(calls: tuple[Call, ...]) -> list[Json]:
    """Return the assistant message with these calls in the variants that templates accept; the last two also have
    reasoning and content."""
    plain: list[Json] = [
        {"role": "assistant", "content": content, "tool_calls": [_tool_call_entry(call, as_text) for call in calls]}
        for as_text in (False, True)
        for content in ("", None)
    ]
    full = {**plain[0], "content": _SAID, "reasoning_content": _THOUGHT, "reasoning": _THOUGHT}
    return [*plain, full, _with_named_ids(full)]


def _with_named_ids(answer: Json) -> Json:
    """Return a copy of the message whose call ids contain the names of the tools, for templates that write the ids
    only."""
    told = [
        {**entry, "id": f"functions.{entry['function']['name']}:{index}"}
        for index, entry in enumerate(answer["tool_calls"])
    ]
    return {**answer, "tool_calls": told}


def _tool_call_entry(call: Call, as_text: bool) -> Json:
    """Return a call as an entry of `tool_calls`, with its arguments as JSON text (`as_text`) or as an object."""
    arguments: Any = call.json if as_text else call.arguments
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _assistant_part(text: str, opened: Rendering, closed: Rendering) -> str:
    """Return the text behind the prompt: `opened` or `closed`, renderings without the assistant's message. If the text
    begins with neither, return it from the first difference. The end is kept."""
    for prompt in (opened.text, closed.text):
        if prompt and text.startswith(prompt):
            return text[len(prompt) :]
    prompt = closed.text or opened.text
    same = (at for at, (one, other) in enumerate(zip(text, prompt, strict=False)) if one != other)
    return text[next(same, min(len(text), len(prompt))) :]


def matching_formats(text: str, calls: tuple[Call, ...], repair: str = "off") -> tuple[str, ...]:
    """Return the names of the formats that find exactly these calls in a text, the best first; () if there are none, or
    the text is far too long."""
    if len(text) > _MOST_CHARACTERS:
        return ()
    ranked = [
        (rank, name)
        for name, format in known_formats().formats.items()
        if (rank := _rank_format(text, calls, format, repair)) is not None
    ]
    return tuple([name for _, name in sorted(ranked, key=lambda each: each[0])])


def _rank_format(text: str, calls: tuple[Call, ...], format: Format, repair: str = "off") -> tuple[int, ...] | None:
    """Return the rank of a format for a text, lower is better; None if it does not find exactly these calls, or reports
    a blocking problem.

    The order: nothing left over, then written identically, then little left over, then a marker rather than none, then
    at least the bodies written identically.
    """
    found = compile_format(format)
    reply = read_whole(text, found, ReadOptions(TOOLS, repair=repair))
    if any(problem.blocking for problem in reply.problems):
        return None
    if [(call.name, call.arguments, call.complete) for call in reply.calls] != [
        (call.name, call.arguments, True) for call in calls
    ]:
        return None
    left = len(reply.content.strip()) + len(reply.reasoning.strip())
    bodies = all(_render_calls((call,), msgspec.structs.replace(format, call=("", ""))) in text for call in calls)
    written = _render_calls(calls, format) in text
    return int(left > 0), int(not written), left, int(bool(found.bare_calls.first_characters)), int(not bodies)


def _render_calls(calls: tuple[Call, ...], format: Format) -> str:
    """Return the calls written in the format; NUL, which occurs in no text, if the format cannot carry them."""
    try:
        return write(calls, format=format, tools=TOOLS).strip()
    except CannotCarry:
        return "\0"
