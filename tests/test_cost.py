"""Parsing cost is linear, by counted steps: whole and chunked, live or not, for every format and hostile shape."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count, cycle, product
from typing import Any

import pytest

from rightcall import Call, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Pythonic
from support.format_sample import sampled, sampled_rows, selected
from support.steps import MOST, Metered, ReadingMode, growth, shared
from test_hostile import shapes_of, text_of

WAYS = {"whole": (0, False), "in pieces": (4, False), "in pieces, live": (5, True)}


@pytest.mark.parametrize(("format", "at"), sampled_rows(zip(FORMATS, count(), strict=False)))
def test_parsing_hostile_text_of_a_format_is_linear(format: str, at: int) -> None:
    """Every third shape runs in one mode; the next formats run the other shapes and modes.

    `make fuzz` runs all of them.
    """
    turns = {
        shape: list(WAYS)[(at + number) % len(WAYS)] for number, shape in enumerate(shapes_of(format)[at % 3 :: 3])
    }
    found = {
        (shape, way): growth(partial(text_of, format, shape), ReadingMode(format, *WAYS[way]))
        for shape, way in turns.items()
    }
    assert {at: times for at, times in found.items() if times > MOST} == {}


def pair_with_modes(units: list[str]) -> list[Any]:
    """Return each unit with one of the modes; a sweep has all pairs."""
    return selected(product(units, WAYS), kept=list(zip(units, cycle(WAYS), strict=False)))


@pytest.mark.parametrize(
    "pair", pair_with_modes(["[", "<", "<tool_call", '{"name": ', "a b ", "```\n", "`", "\n"]), ids="-".join
)
def test_parsing_text_of_unknown_format_is_linear(pair: tuple[str, str]) -> None:
    unit, way = pair
    assert growth(lambda size: unit * (size // len(unit)), ReadingMode("auto", *WAYS[way])) <= MOST


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder", "kimi_k2", "pythonic", "gemma4", "contract"])
def test_parsing_a_long_value_is_linear(format: str) -> None:
    def one_call(size: int) -> str:
        return render([Call("write", {"text": "word " * (size // 5) + "end"})], format=format)

    assert growth(one_call, ReadingMode(format, 4, True)) <= MOST


PYTHONIC = [name for name, format in FORMATS.items() if any(isinstance(body, Pythonic) for body in format.bodies)]


@pytest.mark.parametrize("format", sampled(PYTHONIC))
@pytest.mark.parametrize("pair", pair_with_modes([",", ", ", ",\n", "a,", '"a" ', "a ", "a=", "a=1 "]), ids="-".join)
def test_parsing_text_between_python_arguments_is_linear(format: str, pair: tuple[str, str]) -> None:
    unit, way = pair
    before = render([Call("write", {"text": "a"})], format=format).rpartition(")")[0]
    assert growth(lambda size: before + unit * (size // len(unit)), ReadingMode(format, *WAYS[way])) <= MOST


def test_parsing_a_long_answer_is_linear() -> None:
    assert growth(lambda size: "word " * (size // 5), ReadingMode("hermes", 4)) <= MOST


def many_unknown_names(size: int) -> str:
    return '<tool_call>{"name": "wrote", "arguments": {}}</tool_call>' * (size // 57)


def test_parsing_many_unknown_names_is_linear() -> None:
    assert growth(many_unknown_names, ReadingMode("hermes"), size=1_500) <= MOST


# Text that is first treated as calls and then withdrawn, repeatedly.
WITHDRAWN_CALLS = {
    "rehearsals": ("lfm2", "<think>a<|tool_call_start|>[ping()]<|tool_call_end|></think>b"),
    "openers in a thought": ("kimi_k2", "<think>a<|tool_calls_section_begin|></think>b"),
    "lines that were no calls": ("contract", "ping({})\nand so on\n\n"),
}


@pytest.mark.parametrize("case", WITHDRAWN_CALLS)
def test_withdrawing_calls_is_linear(case: str) -> None:
    format, unit = WITHDRAWN_CALLS[case]
    found = {
        way: growth(lambda size: unit * (size // len(unit)), ReadingMode(format, *options), size=1_500)
        for way, options in WAYS.items()
    }
    assert {way: times for way, times in found.items() if times > MOST} == {}


# -- detection searches a bounded part of the text ---------------------------------------------------------------------


def test_detection_does_not_search_the_whole_text_for_every_opener() -> None:
    without = {"rightcall.parsing.detection": lambda source: source.replace("_FAR = 524_288", "_FAR = 1 << 40")}
    text = "<function=" * 200_000  # no opener is complete
    bounded, unbounded = [steps_of_detect(package, text) for package in (shared(), Metered(without))]
    assert bounded < 0.9 * unbounded


def steps_of_detect(package: Metered, text: str) -> int:
    with package.on():
        detect = package.load("rightcall").detect
        detect(text[:3_000])  # Steps for objects that are created once are not counted.
        return package.count(lambda: detect(text))


# -- the meter detects quadratic cost ----------------------------------------------------------------------------------

# Statements that are added to the parser's source so that parsing becomes quadratic.
QUADRATIC: dict[str, str] = {
    "a scan of all the text with every piece": "self._all.find(chr(0))",
    "a join of all the pieces with every piece": "''.join(self._pieces)",
    "a search of all the text with every piece": "__import__('re').compile(chr(0)).search(self._all)",
    "a copy of the pieces with every piece": "list(self._pieces)",
    "a loop over the pieces with every piece": "[piece for piece in self._pieces]",
    "a text that is added to": "self._all",
    "a pattern that fails behind a long run": "__import__('re').compile('[a-z]*+!').match(self._all)",
}


def add_to_feed(statement: str) -> Callable[[str], str]:
    def change(source: str) -> str:
        start = "    def feed(self, text: str"
        assert start in source
        head, _, tail = source.partition(start)
        rest = tail.partition("\n")
        slots = head.replace('__slots__ = ("_closed"', '__slots__ = ("_all", "_pieces", "_closed"')
        added = "        if not hasattr(self, '_all'):\n            self._all, self._pieces = '', []\n"
        added += f"        self._all += text\n        self._pieces.append(text)\n        {statement}\n"
        return slots + start + rest[0] + "\n" + added + rest[2]

    return change


@pytest.mark.parametrize("act", QUADRATIC.values(), ids=QUADRATIC)
def test_the_meter_detects_quadratic_parsing(act: str) -> None:
    package = Metered({"rightcall.parsing.parser": add_to_feed(act)})
    assert growth(lambda size: "a" * size, ReadingMode("hermes", 4, rescue="off"), package=package) > 2 * MOST


def test_the_meter_is_deterministic() -> None:
    way = ReadingMode(next(iter(FORMATS)), 4, True)
    assert growth(lambda size: "<" * size, way) == growth(lambda size: "<" * size, way)
