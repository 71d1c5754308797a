"""Two calls that are shown, one behind the other: what closes the first does not end what shows the second."""

from __future__ import annotations

import pytest

from rightcall import Call, parse, render
from rightcall.formats import FORMATS, NAMED_ONLY
from rightcall.formats.spec import Format, marker_alternatives
from rightcall.testing.laws import cut_law
from rightcall.testing.laws.samples import TOOLS
from support.format_sample import sampled

TWO = [Call("get_weather", {"city": "Oslo"}), Call("ping", {})]
SHOWN = {
    "double quotes": 'The page says "{}" and I do not.',
    "single quotes": "The page says '{}' and I do not.",
    "curly quotes": "The page says \u201c{}\u201d and I do not.",
    "corner brackets": "\u300c{}\u300d",
    "a span": "Do not send ``{}`` to me.",
    "a fence": "For example:\n```\n{}\n```\nThat is how.",
    "HTML": "For example <pre>{}</pre> is how.",
}


def thoughts(format: Format) -> list[tuple[str, str]]:
    own = [(marker_alternatives(side)[0] for side in format.reasoning)] if format.reasoning is not None else []
    return [("<think>", "</think>"), *[(opens, closes) for opens, closes in own]]


@pytest.mark.parametrize("name", sampled())
@pytest.mark.parametrize("way", SHOWN)
def test_neither_runs(name: str, way: str) -> None:
    text = SHOWN[way].replace("{}", render(TWO, format=name, tools=TOOLS))
    for format in ("auto", name) if name not in NAMED_ONLY else (name,):
        reply = parse(text, format=format, tools=TOOLS)
        assert reply.calls == (), text
        assert reply.problems, text
    assert cut_law(FORMATS[name], text, tools=TOOLS) == []


@pytest.mark.parametrize("name", sampled())
@pytest.mark.parametrize("way", SHOWN)
def test_neither_runs_in_a_thought(name: str, way: str) -> None:
    shown = SHOWN[way].replace("{}", render(TWO, format=name, tools=TOOLS))
    for opens, closes in thoughts(FORMATS[name]):
        for text in (opens + shown, opens + shown + closes, f"{opens}{shown}{closes}Well."):
            for format in ("auto", name) if name not in NAMED_ONLY else (name,):
                assert parse(text, format=format, tools=TOOLS).calls == (), (format, text)
