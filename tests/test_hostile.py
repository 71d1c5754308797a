"""Arbitrary model output: no exception, one reply under every chunking, nothing is lost, and limits are honoured.

The shapes are in a table; `make fuzz` generates many more of the same kind, and random ones.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest

from rightcall import Call, Ids, Parser, check, parse, read, render, repair
from rightcall.errors import CallerError
from rightcall.parsing.options import Limits
from rightcall.testing.laws import How
from support.format_sample import sampled
from support.hostile import TOOLS, check_laws, every, markers, places, times

# a place in the text, and a function that makes the content from a format's name and a size
Shape = tuple[str, Callable[[str, int], str]]


def repeat(unit: str) -> Callable[[str, int], str]:
    return lambda format, size: times(unit, size)


def near_markers(format: str, size: int) -> str:
    """Return every marker of the format without its last character, repeated."""
    return times("".join(marker.strip()[:-1] + " " for marker in markers(format)) or "[ ", size)


def half_markers(format: str, size: int) -> str:
    return times("".join(marker.strip()[: len(marker.strip()) // 2 or 1] for marker in markers(format)) or "[", size)


def whole_markers(format: str, size: int) -> str:
    return times("".join(markers(format)) or "[]", size)


def spaced_markers(format: str, size: int) -> str:
    """Return markers followed by more white space than a marker can have."""
    return times("".join(marker + "\n" * 130 for marker in markers(format)) or " ", size)


def many_calls(format: str, size: int) -> str:
    before, after = places(format)["a string"]
    return times(before + "a" + after, size)


def open_calls(format: str, size: int) -> str:
    before, _ = places(format)["a string"]
    return times(before, size)


SHAPES: dict[str, Shape] = {
    "brackets": ("all", repeat("[")),
    "braces": ("all", repeat("{")),
    "angles": ("all", repeat("<")),
    "brackets as a value": ("a list", repeat("[")),
    "objects in objects as a value": ("a number", repeat('{"a":')),
    "closing brackets as a value": ("a list", repeat("]")),
    "a deep list in a string": ("a string", repeat("[]")),
    "a string that never ends": ("a string, cut", repeat("a")),
    "quotes in a string": ("a string", repeat('\\"')),
    "bare quotes in a string": ("a string", repeat('"')),
    "single quotes in a string": ("a string", repeat("'")),
    "backslashes": ("a string", repeat("\\")),
    "escapes": ("a string", repeat("\\n\\t")),
    "half escapes": ("a string", repeat("\\u12")),
    "halves of surrogate pairs, escaped": ("a string", repeat("\\ud83d")),
    "lone surrogates": ("a string", repeat("\ud800")),
    "lone surrogates in text": ("text", repeat("\udfff")),
    "NULs": ("a string", repeat("\0")),
    "NULs in text": ("text", repeat("\0")),
    "blanks": ("all", repeat(" ")),
    "blanks before a call": ("text before a call", repeat("\n ")),
    "blanks in a value": ("a number", repeat(" \n")),
    "line ends of Windows": ("a string", repeat("\r\n")),
    "a name that never ends": ("a name, cut", repeat("f")),
    "a name of blanks": ("a name", repeat(" ")),
    "a key that never ends": ("a key, cut", repeat("k")),
    "keys": ("a key", repeat('k": 1, "')),
    "a number that never ends": ("a number, cut", repeat("1")),
    "near-markers in text": ("text", near_markers),
    "near-markers in a string": ("a string", near_markers),
    "half markers in text": ("all", half_markers),
    "half markers in a string": ("a string", half_markers),
    "markers and nothing else": ("all", whole_markers),
    "markers in a string": ("a string", whole_markers),
    "markers in a string that never ends": ("a string, cut", whole_markers),
    "markers far apart in a string": ("a string", spaced_markers),
    "reasoning that never ends": ("reasoning, cut", near_markers),
    "calls": ("all", many_calls),
    "calls in a string": ("a string", many_calls),
    "calls that never end": ("all", open_calls),
}


def shapes_of(format: str) -> list[str]:
    """Return the shapes for which this format has a place."""
    there = places(format)
    return [shape for shape, (place, _) in SHAPES.items() if place in there]


def text_of(format: str, shape: str, size: int) -> str:
    place, make = SHAPES[shape]
    before, after = places(format)[place]
    return before + make(format, size) + after


@pytest.mark.parametrize("format", sampled())
def test_the_laws_hold_for_hostile_text(format: str) -> None:
    for shape in shapes_of(format):
        text = text_of(format, shape, 70)
        try:
            check_laws(text, format, [list(range(1, len(text)))], how=How(repair="off"))
        except AssertionError as broken:
            broken.add_note(f"with {shape}")
            raise


@pytest.mark.parametrize("format", sampled())
def test_spans_cover_a_large_text(format: str) -> None:
    for text in ("[" * 50_000, "<" * 50_000, near_markers(format, 50_000), "{" * 50_000):
        reply = parse(text, format=format, tools=TOOLS, spans=True)
        assert sum(span.end - span.start for span in reply.spans or ()) == len(text)


def test_hostile_text_of_an_unknown_format_has_no_calls() -> None:
    for text in ("[" * 100_000, "<" * 100_000, "<tool_call" * 10_000, '{"name": ' * 10_000):
        assert not parse(text, tools=TOOLS).attempts


@pytest.mark.parametrize("format", sampled())
def test_limits_are_honoured(format: str) -> None:
    calls = [Call("write", {"text": "a" * 20}, ""), Call("write", {"text": "b" * 200}, "")] * 3
    text = render(calls, format=format)
    for limits in (Limits(calls=2), Limits(call=100), Limits(reply=150), Limits(calls=1, call=50, reply=400, depth=1)):
        check_laws(
            text, format, [list(range(1, len(text))), list(every(5, text))], how=How(repair="off", limits=limits)
        )
        reply = parse(text, format=format, tools=TOOLS, repair="off", limits=limits)
        assert "too_large" in {problem.code for problem in reply.problems}
        assert all(len(call.raw) <= limits.call or not call.complete for call in reply.attempts)


@pytest.mark.parametrize("format", sampled())
@pytest.mark.parametrize("limit", [3, 200, 100_000])
def test_depth_is_limited_even_if_the_caller_allows_more(format: str, limit: int) -> None:
    before, after = places(format)["a list"]
    for opens, closes in (("[", "]"), ('{"a":', "}"), ("{a:", "}"), ("(", ")")):
        text = before + opens * 5_000 + "1" + closes * 5_000 + after
        reply = parse(text, format=format, tools=TOOLS, limits=Limits(depth=limit))
        assert all(depth(call.arguments) <= limit + 1 for call in reply.attempts)


def depth(value: object) -> int:
    """Return the nesting depth of lists and objects, without recursion."""
    level, values = 0, [value]
    while values := [v for v in values if isinstance(v, (dict, list))]:
        level += 1
        values = [inner for v in values for inner in (v.values() if isinstance(v, dict) else v)]
    return level


def test_reading_the_reply_while_streaming_does_not_change_it() -> None:
    parser = Parser("hermes", ids=Ids.numbered("call"))
    for piece in ("a", "b", "</think>", "c", "d"):
        parser.feed(piece)
        assert parser.reply.parts
    parser.close()
    assert parser.reply.parts == parse("ab</think>cd", format="hermes").parts


@pytest.mark.parametrize("levels", [241, 300, 900])
def test_arguments_that_are_too_deep_to_be_checked_are_a_problem_at_every_entrance(levels: int) -> None:
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "object"}}}}]
    deep: dict[str, object] = {}
    for _ in range(levels):
        deep = {"b": deep}
    for arguments in ({"a": deep}, {"b": deep}, {"a": [deep]}):
        call = Call("f", arguments, "")
        assert [problem.code for problem in check(call, tools)] == ["too_deep"]
        assert [problem.code for problem in repair(call, tools).problems] == ["too_deep"]
        text = json.dumps({"name": "f", "arguments": arguments})
        reply = parse(text, format="llama3_json", tools=tools, limits=Limits(depth=100_000))
        assert [problem.code for each in reply.attempts for problem in each.problems] == ["too_deep"]
        answer = {"message": {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": arguments}}]}}
        assert not read(answer, tools=tools).calls


def test_arguments_that_hold_themselves_or_one_value_many_times_are_checked_in_linear_time() -> None:
    inside: dict[str, object] = {}
    inside |= {"a": inside, "b": inside}
    assert [problem.code for problem in check(Call("f", inside, "{}"), None)] == ["too_deep"]
    shared: list[object] = [math.nan]
    for _ in range(60):
        shared = [shared, shared]
    assert [problem.code for problem in check(Call("f", {"a": shared}, "{}"), None)] == ["not_finite"]


def test_repair_reports_a_number_that_json_cannot_carry() -> None:
    for name in ("f", "other"):
        repaired = repair(Call(name, {"a": math.nan}), [{"name": "f", "parameters": {"type": "object"}}])
        assert [problem.code for problem in repaired.problems if problem.blocking][:1] == ["not_finite"]


def test_an_unknown_policy_of_repair_is_an_error_of_the_caller() -> None:
    with pytest.raises(CallerError, match="policy='safest' is not one of off, safe, lenient"):
        repair(Call("f", {}), None, policy="safest")


@pytest.mark.parametrize("name", sampled())
@pytest.mark.parametrize(
    "number", ["0x_", "0b_", "0o_", "-0X__", "0x", "0b2", "1_", "1__0", ".5_", "1._", "1e", "+", "0_0", "9" * 5_000]
)
def test_no_spelling_of_a_number_raises(name: str, number: str) -> None:
    text = render([Call("f", {"a": 12345})], format=name).replace("12345", number)
    for tools in (None, [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "number"}}}}]):
        parse(text, format=name, tools=tools)
        parse(text.replace(number, f"[{number}]"), format=name, tools=tools)
