"""Whatever a model writes: no exception, one reply however it is cut, nothing lost, and and limits are honoured.

The shapes stand in a table; `make fuzz` makes many more of the same kind, and random ones.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rightcall import Call, Ids, Parser, parse, render
from rightcall.parsing.options import Limits
from rightcall.testing.laws import How
from support.format_sample import sampled
from support.hostile import TOOLS, check_laws, every, markers, places, times

# What it is: where it stands, and what it is made of (a format's name and a size give the text).
Shape = tuple[str, Callable[[str, int], str]]


def again(unit: str) -> Callable[[str, int], str]:
    return lambda format, size: times(unit, size)


def near_markers(format: str, size: int) -> str:
    """Every marker of the format without its last character, in turn."""
    return times("".join(marker.strip()[:-1] + " " for marker in markers(format)) or "[ ", size)


def half_markers(format: str, size: int) -> str:
    return times("".join(marker.strip()[: len(marker.strip()) // 2 or 1] for marker in markers(format)) or "[", size)


def whole_markers(format: str, size: int) -> str:
    return times("".join(markers(format)) or "[]", size)


def spaced_markers(format: str, size: int) -> str:
    """Markers with more white space behind them than a marker may have."""
    return times("".join(marker + "\n" * 130 for marker in markers(format)) or " ", size)


def many_calls(format: str, size: int) -> str:
    before, after = places(format)["a string"]
    return times(before + "a" + after, size)


def open_calls(format: str, size: int) -> str:
    before, _ = places(format)["a string"]
    return times(before, size)


SHAPES: dict[str, Shape] = {
    "brackets": ("all", again("[")),
    "braces": ("all", again("{")),
    "angles": ("all", again("<")),
    "brackets as a value": ("a list", again("[")),
    "objects in objects as a value": ("a number", again('{"a":')),
    "closing brackets as a value": ("a list", again("]")),
    "a deep list in a string": ("a string", again("[]")),
    "a string that never ends": ("a string, cut", again("a")),
    "quotes in a string": ("a string", again('\\"')),
    "bare quotes in a string": ("a string", again('"')),
    "single quotes in a string": ("a string", again("'")),
    "backslashes": ("a string", again("\\")),
    "escapes": ("a string", again("\\n\\t")),
    "half escapes": ("a string", again("\\u12")),
    "halves of surrogate pairs, escaped": ("a string", again("\\ud83d")),
    "lone surrogates": ("a string", again("\ud800")),
    "lone surrogates in text": ("text", again("\udfff")),
    "NULs": ("a string", again("\0")),
    "NULs in text": ("text", again("\0")),
    "blanks": ("all", again(" ")),
    "blanks before a call": ("text before a call", again("\n ")),
    "blanks in a value": ("a number", again(" \n")),
    "line ends of Windows": ("a string", again("\r\n")),
    "a name that never ends": ("a name, cut", again("f")),
    "a name of blanks": ("a name", again(" ")),
    "a key that never ends": ("a key, cut", again("k")),
    "keys": ("a key", again('k": 1, "')),
    "a number that never ends": ("a number, cut", again("1")),
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
    """The shapes that this format has a place for."""
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
def test_a_large_text_is_read_whole(format: str) -> None:
    for text in ("[" * 50_000, "<" * 50_000, near_markers(format, 50_000), "{" * 50_000):
        reply = parse(text, format=format, tools=TOOLS, spans=True)
        assert sum(span.end - span.start for span in reply.spans or ()) == len(text)


def test_text_of_unknown_format_is_read_in_seconds() -> None:
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
    """How many lists and objects lie one in the other, without recursion."""
    level, values = 0, [value]
    while values := [v for v in values if isinstance(v, (dict, list))]:
        level += 1
        values = [inner for v in values for inner in (v.values() if isinstance(v, dict) else v)]
    return level


def test_a_looked_at_reply_is_the_same_at_the_end() -> None:
    parser = Parser("hermes", ids=Ids.numbered("call"))
    for piece in ("a", "b", "</think>", "c", "d"):
        parser.feed(piece)
        assert parser.reply.parts
    parser.close()
    assert parser.reply.parts == parse("ab</think>cd", format="hermes").parts
