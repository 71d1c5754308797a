"""The laws as a library: every built-in format satisfies them, and a broken format violates them."""

import json

import msgspec
import pytest

from rightcall import Call, Format, Limits, Text, formats, parse, render
from rightcall.formats.spec import Envelope, NameThenJson, Params
from rightcall.testing.laws import (
    LAWS,
    Violation,
    case_from_line,
    check_case,
    check_format,
    cut_law,
    cuttings,
    line,
    nothing_lost_law,
    round_trip_law,
    truncation_law,
)
from rightcall.testing.laws.marker_texts import markers_of
from rightcall.testing.laws.samples import TOOLS, samples
from support.format_sample import SWEEP, sampled

HERMES = formats.find("hermes")
SAMPLES = 20 if SWEEP else 5  # `make laws` takes 300

BROKEN_FORMATS = {
    "the value's close is ordinary text": Format(
        "broken", body=Params(open="<{name}>", param="[{key}]", value_close="o", close="l"), call=("<c>", "</c>")
    ),
    "reasoning and calls open alike": Format(
        "broken", body=Envelope(), call=("<a>", "</a>"), reasoning=("<a>", "</a>")
    ),
    "nothing says the name": Format("broken", body=NameThenJson(), call=("<c>", "</c>")),
    "the list is written in other brackets than it is read": Format(
        "broken", body=Envelope(wrap=("(", " and ", ")")), call=("<c>", "</c>")
    ),
}
UNCOMPILABLE_FORMATS = {
    "a hole that occurs twice": Format("broken", body=NameThenJson(open="{name} {name}"), call=("<c>", "</c>")),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", sampled())
def test_every_built_in_format_satisfies_every_law(name: str, law: str) -> None:
    format = formats.find(name)
    for case in LAWS[law].cases(format, 0, SAMPLES):
        assert check_case(format, case) == [], line(case, name, tools="laws")


@pytest.mark.parametrize("format", BROKEN_FORMATS.values(), ids=BROKEN_FORMATS)
def test_a_broken_format_violates_a_law(format: Format) -> None:
    assert check_format(format, samples=12)


@pytest.mark.parametrize("format", UNCOMPILABLE_FORMATS.values(), ids=UNCOMPILABLE_FORMATS)
def test_a_format_that_does_not_compile_is_a_violation_and_not_an_exception(format: Format) -> None:
    violations = check_format(format, samples=2)
    assert {violation.law for violation in violations} == {"never raises"}


def test_the_same_seed_gives_the_same_samples() -> None:
    assert list(samples(HERMES, 3, 20)) == list(samples(HERMES, 3, 20))
    assert list(samples(HERMES, 3, 20)) != list(samples(HERMES, 4, 20))


def test_the_samples_contain_markers_of_the_format() -> None:
    strings = repr(list(samples(HERMES, 0, 60)))
    assert all(marker in strings for marker in ("<tool_call>", "</tool_call>", "<think>"))


def test_the_number_of_violations_is_bounded() -> None:
    assert 0 < len(check_format(BROKEN_FORMATS["nothing says the name"], samples=200)) < 30


def test_every_chunking_joins_to_the_whole_text() -> None:
    text = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    chunkings = cuttings(HERMES, text)
    assert {"".join(chunks) for chunks in chunkings.values()} == {text}
    assert "<tool" in chunkings["with every marker split in half"][0]


@pytest.mark.parametrize("text", ["", "x", "<tool_call>"])
def test_very_short_texts_satisfy_the_chunking_law(text: str) -> None:
    assert cut_law(HERMES, text) == []


def test_markers_contain_no_unfilled_placeholder() -> None:
    assert not [marker for name in formats.FORMATS for marker in markers_of(formats.find(name)) if "{name}" in marker]


def test_each_law_can_be_checked_on_one_text() -> None:
    text = 'Hm.<tool_call>{"name": "get_weather", "arguments": {"city": "</tool_call>"}}</tool_call>'
    assert cut_law(HERMES, text, tools=TOOLS) == []
    assert truncation_law(HERMES, text, tools=TOOLS) == []
    assert round_trip_law(HERMES, [Text("Hm."), Call("ping", {}, "{}")], tools=TOOLS) == []


@pytest.mark.parametrize("name", sampled())
def test_a_limit_inside_a_marker_loses_no_text(name: str) -> None:
    text = render([Call("ping")], format=name, tools=TOOLS)
    for size in range(max(1, len(text) - 12), len(text)):
        reply = parse(text, format=name, tools=TOOLS, limits=Limits(reply=size), spans=True)
        assert nothing_lost_law(name, text, reply) == []


def test_content_that_a_format_cannot_represent_is_not_a_violation() -> None:
    assert round_trip_law(HERMES, [Text("<tool_call>"), Call("ping", {}, "{}")]) == []


def test_a_violation_is_a_frozen_value() -> None:
    violation = Violation("cut", "what", "input")
    assert violation == Violation("cut", "what", "input")
    with pytest.raises(AttributeError):
        violation.law = "truncation"  # type: ignore[misc]
    assert msgspec.to_builtins(violation)["law"] == "cut"


@pytest.mark.parametrize("law", LAWS)
def test_a_case_can_be_repeated_from_its_json_line(law: str) -> None:
    format = formats.find("qwen3_coder")
    for case in LAWS[law].cases(format, 5, 6):
        again = case_from_line(json.loads(line(case, format.name)))
        assert line(again, format.name) == line(case, format.name)
        assert [v.law for v in check_case(format, again)] == [v.law for v in check_case(format, case)]
