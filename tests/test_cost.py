"""Cost is linear, by counted steps: whole and in pieces, live and not, for every format and every hostile shape."""

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
from support.steps import MOST, Metered, Way, growth, shared
from test_hostile import shapes_of, text_of

WAYS = {"whole": (0, False), "in pieces": (4, False), "in pieces, live": (5, True)}


@pytest.mark.parametrize(("format", "at"), sampled_rows(zip(FORMATS, count(), strict=False)))
def test_four_times_the_hostile_text_takes_four_times_the_steps(format: str, at: int) -> None:
    """Every third shape in one of the ways, the others and another way with the next format: `make fuzz` tries all."""
    turns = {
        shape: list(WAYS)[(at + number) % len(WAYS)] for number, shape in enumerate(shapes_of(format)[at % 3 :: 3])
    }
    found = {
        (shape, way): growth(partial(text_of, format, shape), Way(format, *WAYS[way])) for shape, way in turns.items()
    }
    assert {at: times for at, times in found.items() if times > MOST} == {}


def each_in_one_way(units: list[str]) -> list[Any]:
    """Return each unit with one of the ways; a sweep has all pairs."""
    return selected(product(units, WAYS), kept=list(zip(units, cycle(WAYS), strict=False)))


@pytest.mark.parametrize(
    "pair", each_in_one_way(["[", "<", "<tool_call", '{"name": ', "a b ", "```\n", "`", "\n"]), ids="-".join
)
def test_four_times_a_text_of_unknown_format_takes_four_times_the_steps(pair: tuple[str, str]) -> None:
    unit, way = pair
    assert growth(lambda size: unit * (size // len(unit)), Way("auto", *WAYS[way])) <= MOST


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder", "kimi_k2", "pythonic", "gemma4", "contract"])
def test_four_times_a_long_value_takes_four_times_the_steps(format: str) -> None:
    def one_call(size: int) -> str:
        return render([Call("write", {"text": "word " * (size // 5) + "end"})], format=format)

    assert growth(one_call, Way(format, 4, True)) <= MOST


PYTHONIC = [name for name, format in FORMATS.items() if any(isinstance(body, Pythonic) for body in format.bodies)]


@pytest.mark.parametrize("format", sampled(PYTHONIC))
@pytest.mark.parametrize("pair", each_in_one_way([",", ", ", ",\n", "a,", '"a" ', "a ", "a=", "a=1 "]), ids="-".join)
def test_four_times_the_text_between_python_arguments_takes_four_times_the_steps(
    format: str, pair: tuple[str, str]
) -> None:
    unit, way = pair
    before = render([Call("write", {"text": "a"})], format=format).rpartition(")")[0]
    assert growth(lambda size: before + unit * (size // len(unit)), Way(format, *WAYS[way])) <= MOST


def test_four_times_a_long_answer_takes_four_times_the_steps() -> None:
    assert growth(lambda size: "word " * (size // 5), Way("hermes", 4)) <= MOST


def many_unknown_names(size: int) -> str:
    return '<tool_call>{"name": "wrote", "arguments": {}}</tool_call>' * (size // 57)


def test_many_unknown_names_are_cheap() -> None:
    assert growth(many_unknown_names, Way("hermes"), size=1_500) <= MOST


# What is read as calls and taken back, again and again.
TAKEN_BACK = {
    "rehearsals": ("lfm2", "<think>a<|tool_call_start|>[ping()]<|tool_call_end|></think>b"),
    "openers in a thought": ("kimi_k2", "<think>a<|tool_calls_section_begin|></think>b"),
    "lines that were no calls": ("contract", "ping({})\nand so on\n\n"),
}


@pytest.mark.parametrize("what", TAKEN_BACK)
def test_taking_calls_back_is_linear(what: str) -> None:
    format, unit = TAKEN_BACK[what]
    found = {
        way: growth(lambda size: unit * (size // len(unit)), Way(format, *how), size=1_500) for way, how in WAYS.items()
    }
    assert {way: times for way, times in found.items() if times > MOST} == {}


# -- detection looks no further than it must ---------------------------------------------------------------------------


def test_a_hostile_text_is_not_searched_to_its_end_for_every_opener() -> None:
    without = {"rightcall.parsing.detection": lambda source: source.replace("_FAR = 524_288", "_FAR = 1 << 40")}
    text = "<function=" * 200_000  # every beginning of an opener is none
    bounded, unbounded = [steps_of_detect(package, text) for package in (shared(), Metered(without))]
    assert bounded < 0.9 * unbounded


def steps_of_detect(package: Metered, text: str) -> int:
    with package.on():
        detect = package.load("rightcall").detect
        detect(text[:3_000])  # what is made once is no cost of the text
        return package.count(lambda: detect(text))


# -- the meter bites ---------------------------------------------------------------------------------------------------

# What is done to the source of the parser, so that reading becomes quadratic.
QUADRATIC: dict[str, str] = {
    "a scan of all the text with every piece": "self._all.find(chr(0))",
    "a join of all the pieces with every piece": "''.join(self._pieces)",
    "a search of all the text with every piece": "__import__('re').compile(chr(0)).search(self._all)",
    "a copy of the pieces with every piece": "list(self._pieces)",
    "a loop over the pieces with every piece": "[piece for piece in self._pieces]",
    "a text that is added to": "self._all",
    "a pattern that fails behind a long run": "__import__('re').compile('[a-z]*+!').match(self._all)",
}


def with_each_piece(act: str) -> Callable[[str], str]:
    def change(source: str) -> str:
        start = "    def feed(self, text: str"
        assert start in source
        head, _, tail = source.partition(start)
        rest = tail.partition("\n")
        slots = head.replace('__slots__ = ("_closed"', '__slots__ = ("_all", "_pieces", "_closed"')
        kept = "        if not hasattr(self, '_all'):\n            self._all, self._pieces = '', []\n"
        kept += f"        self._all += text\n        self._pieces.append(text)\n        {act}\n"
        return slots + start + rest[0] + "\n" + kept + rest[2]

    return change


@pytest.mark.parametrize("act", QUADRATIC.values(), ids=QUADRATIC)
def test_the_meter_sees_what_is_quadratic(act: str) -> None:
    package = Metered({"rightcall.parsing.parser": with_each_piece(act)})
    assert growth(lambda size: "a" * size, Way("hermes", 4, rescue="off"), package=package) > 2 * MOST


def test_the_meter_counts_the_same_twice() -> None:
    way = Way(next(iter(FORMATS)), 4, True)
    assert growth(lambda size: "<" * size, way) == growth(lambda size: "<" * size, way)
