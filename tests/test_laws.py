"""The laws, over every format by discovery: a format in the registry is tested without a change here.

Law 1, chunking: the reply is independent of how its text is cut. Law 2, round trip: rendered calls parse back
unchanged, and what a format cannot express is rejected, only for the reasons in `CANNOT`. Law 4, nothing is lost: the
spans cover the text, and a truncated call is never completed.

Law 3, grammar, is in `test_constrain_laws.py`: everything that the grammar of some tools accepts parses as valid calls,
and it accepts every rendering of valid calls, judged by an independent engine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from rightcall import Call, CannotCarry, Format, Reasoning, Recast, Text, Tool, Toolset, parse, render
from rightcall.formats import FORMATS, find
from rightcall.formats.spec import (
    Braced,
    Envelope,
    NameThenJson,
    Params,
    Pythonic,
    TsCall,
    marker_alternatives,
)
from rightcall.parsing.values.notation import BRACED_KEY
from rightcall.types import Part
from support.cuts import Setting, hold_of_every_cut, markers, read, reply_of_events
from support.format_sample import sampled
from support.generated import (
    DECLARED,
    KEYS,
    CallsWithTools,
    any_json,
    calls_with_tools,
    comparable_parts,
    damaged_texts,
    has_reasoning,
    json_spellings,
    marker_texts,
    parts_around,
    strings,
)
from support.replies import BARE, Json
from support.samples import samples, toolset

every_format = pytest.mark.parametrize("name", sampled())
FEW = settings(
    max_examples=max(settings().max_examples // 2, 1)
)  # `make laws` uses 300 examples for each law and format


# -- what a format cannot express --------------------------------------------------------------------------------------


class Place(NamedTuple):
    """One value inside the arguments: its key, its schema, and whether it is a top-level argument."""

    format: Format
    body: Any
    key: str
    schema: Json
    value: Any
    top: bool


class Limit(NamedTuple):
    what: str
    holds: Callable[[Place], bool]


def _own_tags(place: Place) -> bool:
    """Return whether a string contains one of the body's own tags, or white space that a tag includes."""
    if not isinstance(place.value, str):
        return False
    body = place.body
    tags = [
        *marker_alternatives(body.value_close),
        *marker_alternatives(body.param),
        *marker_alternatives(body.close),
        *marker_alternatives(body.open),
    ]
    pieces = {piece.strip() for tag in tags for piece in re.split(r"\{\w+\}", tag)} - {"", ">", '">'}
    return any(piece in place.value for piece in pieces)


def _edge_newline(place: Place) -> bool:
    lines = any(text.startswith("\n") for text in marker_alternatives(place.body.value_close))
    return isinstance(place.value, str) and place.top and lines and place.value != place.value.strip("\n")


def _looks_like_null(place: Place) -> bool:
    return place.value in ("null", "None") and "null" in place.schema.get("type", ())


def _looks_like_json(place: Place) -> bool:
    try:
        json.loads(place.value)
    except (TypeError, ValueError):
        return False
    return isinstance(place.value, str)


CANNOT: dict[type, list[Limit]] = {
    Envelope: [],
    NameThenJson: [],
    TsCall: [],
    Pythonic: [
        Limit("an argument's name that is no identifier", lambda p: p.top and not re.fullmatch(r"[\w.\-]+", p.key)),
    ],
    Params: [
        Limit(
            'a key with < > " or a line break',
            lambda p: p.top and not re.fullmatch(r'[^<>"\r\n/][^<>"\r\n]{0,255}', p.key),
        ),
        Limit("a string that holds the body's own tags", _own_tags),
        Limit("a line break at the edge of a string that stands on lines of its own", _edge_newline),
        Limit("the string null where null is allowed too", lambda p: not p.body.types and _looks_like_null(p)),
        Limit(
            "a string that opens with the value's quote",
            lambda p: p.body.quote is not None and isinstance(p.value, str) and p.value.startswith(p.body.quote[0]),
        ),
        Limit("nested tags: an element called like a list's", lambda p: bool(p.body.item) and p.key == p.body.item),
        Limit(
            "nested tags: a key that is no tag's name",
            lambda p: bool(p.body.item) and not re.fullmatch(r'[^<>"\r\n/][^<>"\r\n]{0,255}', p.key),
        ),
    ],
    Braced: [
        Limit("a key with punctuation, or blanks at its edge", lambda p: not re.fullmatch(BRACED_KEY, p.key)),
        Limit("a string that holds the quote", lambda p: isinstance(p.value, str) and p.body.quote in p.value),
        Limit("the string null where null is allowed too", lambda p: p.body.quoted == "raw" and _looks_like_null(p)),
        Limit(
            "a nested string that reads as JSON, where quotes carry no type",
            lambda p: p.body.quoted == "raw" and not p.top and _looks_like_json(p),
        ),
    ],
}


def places(format: Format, schema: Json, value: Any, key: str = "", level: int = 0) -> list[Place]:
    found = [Place(format, format.bodies[0], key, schema, value, level == 1)] if level else []
    if isinstance(value, dict):
        inner = schema.get("properties", {})
        return found + [p for k, v in value.items() for p in places(format, inner.get(k, {}), v, k, level + 1)]
    if isinstance(value, list):
        return found + [p for v in value for p in places(format, schema.get("items", {}), v, key, level + 2)]
    return found


def reasons(format: Format, generated: CallsWithTools) -> set[str]:
    """Return the known reasons for which this format can reject these calls."""
    spots = [
        place
        for call, tool in zip(generated.calls, generated.tools, strict=True)
        for place in places(format, tool.parameters, call.arguments)
    ]
    return {limit.what for limit in CANNOT[type(format.bodies[0])] for spot in spots if limit.holds(spot)}


def render_unless_rejected(format: Format, parts: list[Part], generated: CallsWithTools) -> str | None:
    """Return the text, or None if the format rejects the calls for a reason in the table."""
    known = reasons(format, generated)
    try:
        return render(parts, format=format, tools=generated.tools)
    except CannotCarry:
        if not known:
            raise
    event("refused: " + ", ".join(sorted(known)))
    return None


# -- law 1: chunking, and law 4: nothing is lost, on any text ----------------------------------------------------------


@every_format
@FEW
@given(data=st.data())
def test_any_text_parses_the_same_under_every_chunking_without_loss(name: str, data: st.DataObject) -> None:
    text = data.draw(marker_texts(FORMATS[name]))
    setting = data.draw(
        st.sampled_from([Setting(name), Setting(name, DECLARED), Setting(name, DECLARED, repair="off")])
    )
    hold_of_every_cut(text, setting, seed=len(text))


@every_format
@FEW
@given(data=st.data())
def test_a_damaged_sample_parses_the_same_under_every_chunking_without_loss(name: str, data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from([s for s in samples() if s.format == name and len(s.text) < 500]))
    text = data.draw(damaged_texts(sample.text, FORMATS[name]))
    hold_of_every_cut(text, Setting(name, toolset(sample.tools)), seed=len(text))


@every_format
@FEW
@given(data=st.data())
def test_a_rendered_reply_parses_the_same_under_every_chunking(name: str, data: st.DataObject) -> None:
    format = FORMATS[name]
    generated = data.draw(calls_with_tools(format))
    text = render_unless_rejected(format, data.draw(parts_around(format, generated.calls)), generated)
    assume(text is not None)
    assert text is not None
    hold_of_every_cut(text, Setting(name, Toolset(generated.tools)), seed=len(text))


@every_format
@FEW
@given(data=st.data())
def test_hold_gives_the_same_reply_without_recast_events(name: str, data: st.DataObject) -> None:
    text = data.draw(marker_texts(FORMATS[name]))
    whole = read([text], Setting(name, DECLARED))
    held = read(list(text), Setting(name, DECLARED), hold=True)
    assert held.reply == whole.reply
    assert reply_of_events(held.events, held.reply.format, held.reply.spans) == held.reply
    assert not any(isinstance(event, Recast) for event in held.events)


@every_format
@FEW
@given(data=st.data())
def test_no_prefix_completes_a_call_that_the_whole_does_not_have(name: str, data: st.DataObject) -> None:
    format = FORMATS[name]
    kinds = tuple(type(body) for body in format.bodies)
    # What follows decides whether a tag in a bare value belongs to the value: a cut there is ambiguous.
    text_of = st.text(max_size=8).filter(lambda s: "<" not in s) if set(kinds) & {Params, Braced} else None
    generated = data.draw(calls_with_tools(format, text_of))
    text = render_unless_rejected(format, data.draw(parts_around(format, generated.calls)), generated)
    assume(text is not None)
    assert text is not None
    setting = Setting(name, Toolset(generated.tools))
    whole = [(call.name, json.dumps(call.arguments)) for call in read([text], setting).reply.attempts]
    for end in range(len(text)):
        reply = read([text[:end]], setting).reply
        done = [(i, call) for i, call in enumerate(reply.attempts) if call.complete]
        assert [(call.name, json.dumps(call.arguments)) for _, call in done] == [whole[i] for i, _ in done], text[:end]
    for end in data.draw(st.lists(st.integers(0, len(text)), max_size=2)):
        hold_of_every_cut(text[:end], setting, seed=end)


# -- law 2: round trip -------------------------------------------------------------------------------------------------


@every_format
@FEW
@given(data=st.data())
def test_a_rendered_reply_parses_back_unchanged(name: str, data: st.DataObject) -> None:
    format = FORMATS[name]
    generated = data.draw(calls_with_tools(format))
    parts = data.draw(parts_around(format, generated.calls))
    text = render_unless_rejected(format, parts, generated)
    if text is not None:
        reply = parse(text, format=name, tools=generated.tools)
        assert comparable_parts(reply.parts) == comparable_parts(parts)
        assert reply.problems == ()


JSON_BODIES = [name for name, format in FORMATS.items() if isinstance(format.bodies[0], (Envelope, NameThenJson))]


@pytest.mark.parametrize("name", sampled(JSON_BODIES))
@given(data=st.data())
def test_a_json_body_keeps_any_arguments_and_their_spelling(name: str, data: st.DataObject) -> None:
    format = FORMATS[name]
    arguments = data.draw(st.dictionaries(strings(format), any_json(format), max_size=3))
    spelling = data.draw(json_spellings(arguments))
    call = Call("f", arguments, spelling)
    choice = "f" if name == "forced_choice" else None
    reply = parse(render([call, call], format=name), format=name, choice=choice)
    assert comparable_parts(reply.parts) == comparable_parts([call, call])
    assert [read_back.json for read_back in reply.attempts] == [spelling, spelling]
    assert reply.problems == ()


PYTHONIC = [name for name, format in FORMATS.items() if isinstance(format.bodies[0], Pythonic)]


@pytest.mark.parametrize("name", sampled(PYTHONIC))
@given(data=st.data())
def test_a_pythonic_body_keeps_any_values(name: str, data: st.DataObject) -> None:
    arguments = data.draw(st.dictionaries(KEYS, any_json(FORMATS[name]), max_size=3))
    call = Call("f", arguments, json.dumps(arguments))
    reply = parse(render([call, call], format=name), format=name)
    assert comparable_parts(reply.parts) == comparable_parts([call, call])
    assert reply.problems == ()


@given(data=st.data())
def test_a_typescript_literal_keeps_any_arguments(data: st.DataObject) -> None:
    format = FORMATS["contract"]
    arguments = data.draw(st.dictionaries(strings(format), any_json(format), max_size=3))
    call = Call("f", arguments, json.dumps(arguments))
    reply = parse(render([call, call], format=format), format=format)
    assert comparable_parts(reply.parts) == comparable_parts([call, call])
    assert reply.problems == ()


@every_format
@FEW
@given(data=st.data())
def test_text_with_markers_of_the_format_is_kept_unchanged_or_rejected(name: str, data: st.DataObject) -> None:
    format = FORMATS[name]
    prose = data.draw(marker_texts(format))
    assume(prose.strip())
    parts: list[Part] = [Text(prose), Call("f", {"s": "x"}, '{"s": "x"}')]
    try:
        text = render(parts, format=name, tools=DECLARED)
    except CannotCarry:
        return
    assert comparable_parts(parse(text, format=name, tools=DECLARED).parts) == comparable_parts(parts)


@every_format
@given(prose=st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="<[{>|`]"), max_size=40))
def test_text_without_markers_is_kept_exactly(name: str, prose: str) -> None:
    assume(not any(marker in prose for marker in markers(FORMATS[name]) if len(marker) > 1))
    reply = parse(prose, format=name)
    assert reply.content == prose
    assert reply.attempts == () and reply.problems == () and reply.reasoning == ""


REFUSED: list[tuple[str, Json, Json]] = [
    # format, schema of the argument, arguments
    ("pythonic", {"type": "string"}, {"two words": "x"}),
    ("qwen3_coder", {"type": "string"}, {"a>b": "x"}),
    ("qwen3_coder", {"type": "string"}, {"s": "x\n</parameter>\n</function>\n</tool_call>"}),
    ("qwen3_coder", {"type": ["string", "null"]}, {"s": "null"}),
    ("glm45", {"type": ["string", "null"]}, {"s": "None"}),
    ("glm45", {"type": "string"}, {"s": "x</arg_value>\n</tool_call>"}),
    ("minimax_m3", {}, {"s": {"item": 1}}),
    ("gemma4", {"type": "object"}, {"s": {"a: b": 1}}),
    ("gemma4", {"type": "string"}, {"s": 'x<|"|>}<tool_call|>'}),
    ("functiongemma", {"type": ["string", "null"]}, {"s": "null"}),
]


@pytest.mark.parametrize("name, schema, arguments", REFUSED)
def test_inexpressible_arguments_are_rejected_with_path_and_cause(name: str, schema: Json, arguments: Json) -> None:
    tool = Tool(name="f", parameters={"type": "object", "properties": dict.fromkeys(arguments, schema)})
    call = Call("f", arguments, json.dumps(arguments))
    with pytest.raises(CannotCarry) as refusal:
        render(call, format=name, tools=[tool])
    assert refusal.value.path.startswith("/parts/0")
    assert refusal.value.cause
    assert reasons(find(name), CallsWithTools([call], [tool])), "refused for no reason that is known"


@pytest.mark.parametrize("name", sorted(BARE))
def test_a_format_without_an_opener_rejects_text_before_a_call(name: str) -> None:
    with pytest.raises(CannotCarry):
        render([Text("Now then."), Call("f", {"s": "x"}, '{"s": "x"}')], format=name)


@pytest.mark.parametrize("name", sampled(name for name, format in FORMATS.items() if not has_reasoning(format)))
def test_a_format_without_reasoning_rejects_reasoning(name: str) -> None:
    with pytest.raises(CannotCarry):
        render([Reasoning("Hm."), Call("f", {}, "{}")], format=name)


@every_format
def test_a_truncated_call_is_not_rendered(name: str) -> None:
    with pytest.raises(CannotCarry):
        render(Call("f", {}, "", complete=False), format=name)
