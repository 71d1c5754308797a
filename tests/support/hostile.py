"""Hostile texts and the laws that hold for each of them, shared by `test_hostile.py` and `fuzz/run.py`.

A hostile text is a *stress* (100,000 brackets, half a marker repeated, and so on) at a *place* of an otherwise
well-formed reply: in its text, in a string argument, in a key, instead of a name, and so on. The places are found by
rendering a reply with unique words and cutting it there, so a new format is covered without changes here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator

from rightcall import Call, CannotCarry, Parser, Reasoning, Text, Tool, Toolset, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Braced, Format, NameThenJson, Params, marker_alternatives
from rightcall.testing.laws import How, cut_law, opener_law, read
from rightcall.testing.laws.reading import USUAL, cut_at

TOOLS = Toolset(
    [
        Tool(
            name="write",
            parameters={
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "count": {"type": "integer"},
                    "rows": {"type": "array"},
                    "more": {"type": "object"},
                    "note": {"type": ["string", "null"]},
                },
            },
        ),
        Tool(name="ping", parameters={"type": "object", "properties": {}}),
    ]
)

# -- the laws ----------------------------------------------------------------------------------------------------------


class BrokenLaw(Exception):
    """A violated law: which one, and how."""

    def __init__(self, law: str, detail: str) -> None:
        super().__init__(f"{law}: {detail}")
        self.law = law


def every(step: int, text: str) -> range:
    return range(step, len(text), step)


def stream(text: str, format: str, step: int, *, live: bool = True) -> None:
    """Parse without storing anything, to measure the cost of parsing."""
    parser = Parser(format, tools=TOOLS, live=live)
    for start in range(0, len(text), step):
        parser.feed(text[start : start + step])
    parser.close()


def check_laws(
    text: str, format: str, cuts: list[list[int]], *, tools: Toolset | None = TOOLS, how: How = USUAL
) -> None:
    """Raise `BrokenLaw` if this text violates a law that holds for any text."""
    cuttings = {f"at {at if len(at) < 20 else f'{at[0]}, {at[1]}, ...'}": cut_at(text, at) for at in cuts}
    violations = cut_law(format, text, tools=tools, how=how, cuts=cuttings)
    if format != "auto" and how.limits is None:
        violations = violations or opener_law(FORMATS[format], text, tools=tools, how=how)
    if violations:
        raise BrokenLaw(violations[0].law, violations[0].what)
    if how.limits is not None:
        found = len(read(format, [text], tools=tools, how=how).reply.attempts)
        if found > how.limits.calls:
            raise BrokenLaw("limits", f"{found} calls, {how.limits.calls} are allowed")


# -- markers of a format, as data --------------------------------------------------------------------------------------


def templates(format: Format) -> Iterator[str]:
    """Yield every marker of a format, with its placeholders."""
    pairs = [format.section, format.call, format.reasoning, *format.content]
    for pair in pairs:
        for marker in pair or ():
            yield from marker_alternatives(marker)
    yield from format.ends
    yield format.between
    for body in format.bodies:
        if isinstance(body, Params):
            for marker in (body.open, body.param, body.value_close, body.close, body.empty):
                yield from marker_alternatives(marker)
            yield from body.quote or ()
        elif isinstance(body, NameThenJson):
            yield from marker_alternatives(body.open)
            yield from marker_alternatives(body.close)
        elif isinstance(body, Braced):
            yield from marker_alternatives(body.open)
            yield body.quote
    if format.protocol is not None:
        # The fence around a call outside all blocks is a marker, too.
        yield from (*format.protocol.done, "```{name}\n", "```", "~~~{name}\n", "~~~")
    if format.channels is not None:
        yield from marker_alternatives(format.channels.start)
        yield from (format.channels.message, format.channels.to, format.channels.channel, *format.channels.ends)
        for opens, closes in format.channels.messages.values():
            yield from (opens, closes)


_FILL = {"name": "write", "key": "text", "type": "string", "id": "call_0", "index": "0", "number": "1"}


@functools.cache
def markers(format: str) -> tuple[str, ...]:
    """Return every marker of a format, as a model writes it."""
    fill = re.compile(r"\{(name|key|type|id|index|number)\}")
    found = {fill.sub(lambda hole: _FILL[hole.group(1)], text) for text in templates(FORMATS[format])}
    return tuple(sorted(found - {""}))


# -- places ------------------------------------------------------------------------------------------------------------

_TEXT, _REASONING, _NAME, _KEY, _STRING = "zqtextqz", "zqthoughtqz", "zqnameqz", "zqkeyqz", "zqstringqz"
_COUNT = 918273645
_NESTED = {"a": [True, "b", {"c": _COUNT, "d": ["e", 1.5]}], "f": {"g": False}}


def _render(format: str, parts: list[Text | Reasoning | Call]) -> str | None:
    try:
        return render(parts, format=format)
    except CannotCarry:
        return None


@functools.cache
def places(format: str) -> dict[str, tuple[str, str]]:
    """Return the places for a stress: the text before it and the text after it."""
    call = Call("write", {"text": _STRING, "count": 3}, "")
    parts_and_words: dict[str, tuple[list[Text | Reasoning | Call], str]] = {
        "a string": ([call], _STRING),
        "a number": ([Call("write", {"count": _COUNT, "text": "a"}, "")], str(_COUNT)),
        "a list": ([Call("write", {"rows": [1, _COUNT]}, "")], str(_COUNT)),
        "a nested value": ([Call("write", {"more": _NESTED}, "")], str(_COUNT)),
        "a key": ([Call("write", {_KEY: 1, "text": "a"}, "")], _KEY),
        "a name": ([Call(_NAME, {"text": "a"}, "")], _NAME),
        "text": ([Text(_TEXT)], _TEXT),
        "text before a call": ([Text(_TEXT), call], _TEXT),
        "text after a call": ([call, Text(_TEXT)], _TEXT),
        "reasoning": ([Reasoning(_REASONING), Text("a")], _REASONING),
    }
    found = {"all": ("", "")}
    for place, (parts, word) in parts_and_words.items():
        text = _render(format, parts)
        if text is not None and word in text:
            before, _, after = text.partition(word)
            found[place] = (before, after)
    found |= {f"{place}, cut": (before, "") for place, (before, _) in found.items() if place != "all"}
    return found


# -- stresses ----------------------------------------------------------------------------------------------------------


def times(unit: str, size: int) -> str:
    """Repeat the unit to a text of about `size` characters."""
    return unit * max(1, size // len(unit))


PLAIN: dict[str, Callable[[int], str]] = {
    **{
        f"only {unit!r}": functools.partial(times, unit)
        for unit in (
            *"<>[]{}()\"'`|,:;=/\\ \n\t\r\0#-.1_a",
            "[{",
            '{"',
            '{"a":',
            '{"a":[',
            "[]",
            "{}",
            "()",
            "a(",
            "a=",
            "f(a=1),",
            ', "a": 1',
            '"a",',
            "'a',",
            "1,",
            "1 ",
            "-1e",
            "1.",
            '""',
            "''",
            '"""',
            "'''",
            "```",
            "```json\n",
            "\r\n",
            " \n",
            " a",
            "a\n",
            "a b c. ",
            '\\"',
            "\\'",
            "\\\\",
            "\\n",
            "\\u",
            "\\ud83d",
            "\\ud83d\\ude00",
            "\\u00e9",
            "\\x4",
            "\\U0001f60",
            "\\0",
            "\ud800",
            "\udc00",
            "\ud83d\ude00",
            "é",
            "\N{GRINNING FACE}",
            "\u2028",
            "<|",
            "|>",
            "</",
            "<a>",
            "</a>",
            "<!--",
            "]]>",
            "true",
            "None,",
            "NaN",
            '{"name": "write", ',
            '{"name": "write", "arguments": {}}',
            '{"arguments": {"text": "a"}, "name": "write"}',
            "{'name': 'write'}",
        )
    },
    "an open string": lambda size: '"' + "a" * size,
    "an open string of escapes": lambda size: '"' + times("\\n", size),
    "a long number": lambda size: "1" * size,
    "a long fraction": lambda size: "0." + "1" * size,
    "a deep list": lambda size: "[" * (size // 2) + "]" * (size // 2),
    "a deep object": lambda size: times('{"a":', size * 5 // 6) + "1" + "}" * (size // 6),
    "a long list": lambda size: "[" + times("1, ", size) + "1]",
    "a list of strings": lambda size: "[" + times('"a", ', size) + '""]',
    "a list of objects": lambda size: "[" + times('{"a": 1}, ', size) + "{}]",
    "a wide object": lambda size: "{" + "".join(f'"k{i}": {i}, ' for i in range(size // 12)) + '"z": 0}',
    "many keywords": lambda size: "".join(f"k{i}={i}, " for i in range(size // 9)),
}


@functools.cache
def marker_stresses(format: str) -> dict[str, Callable[[int], str]]:
    """Return stresses that consist of a format's own markers."""
    found: dict[str, Callable[[int], str]] = {}
    for marker in markers(format):
        core = marker.strip() or marker
        for unit in (
            marker,
            core[:-1] or core,
            core[: len(core) // 2] or core,
            core[:-1] + "\n" + core[-1:],
            core + " ",
            core + "a",
            core + "\n" * 130,
            core + "{",
            core + '{"',
        ):
            found[f"only {unit!r}"] = functools.partial(times, unit)
    for place, (before, after) in places(format).items():
        whole = before + "a" + after
        found[f"many times {place}"] = functools.partial(times, whole)
        found[f"many times {place}, on lines"] = functools.partial(times, whole + "\n")
    return found


def stresses(format: str) -> dict[str, Callable[[int], str]]:
    return {**PLAIN, **marker_stresses(format)}


def hostile(format: str, place: str, stress: str, size: int) -> str:
    before, after = places(format)[place]
    return before + stresses(format)[stress](size) + after
