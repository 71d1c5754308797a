"""Match rules of the leaderboard, one row per rule.

`make bfcl` compares them with its published checker on all its cases.
"""

from __future__ import annotations

from typing import Any

import pytest

from rightcall.evaluation.leaderboard import are_matches

Json = dict[str, Any]
TYPES: Json = {
    "city": {"type": "string"},
    "days": {"type": "integer"},
    "rate": {"type": "float"},
    "on": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "box": {"type": "dict"},
    "boxes": {"type": "array", "items": {"type": "dict"}},
    "pair": {"type": "tuple", "items": {"type": "integer"}},
}
FUNCTION: Json = {"name": "f", "parameters": {"type": "dict", "properties": TYPES, "required": []}}
FUNCTION_WITH_REQUIRED_CITY: Json = {"name": "f", "parameters": {**FUNCTION["parameters"], "required": ["city"]}}


@pytest.mark.parametrize(
    "arguments, truth, is_right",
    [
        ({"city": "new york"}, {"city": ["New York"]}, True),
        ({"city": "New-York."}, {"city": ["New York"]}, True),
        ({"city": "York"}, {"city": ["New York"]}, False),
        ({"city": "it's"}, {"city": ['it"s']}, True),
        ({"days": 3}, {"days": [3]}, True),
        ({"days": 3.0}, {"days": [3]}, False),
        ({"days": "3"}, {"days": [3]}, False),
        ({"days": True}, {"days": [1]}, False),
        ({"days": "n_days"}, {"days": ["n_days"]}, True),  # the name of a variable
        ({"days": "N_days"}, {"days": ["n_days"]}, False),  # whose case is significant
        ({"rate": 2}, {"rate": [2.0]}, True),
        ({"rate": 2.5}, {"rate": [2.5, 3.0]}, True),
        ({"on": 1}, {"on": [True]}, False),
        ({"tags": ["A b", "c"]}, {"tags": [["a b", "C"]]}, True),
        ({"tags": ["c", "a b"]}, {"tags": [["a b", "c"]]}, False),
        ({"tags": []}, {"tags": [["a"], ""]}, True),
        ({"pair": [1, 2]}, {"pair": [[1, 2]]}, True),
        ({"box": {"a": "X y"}}, {"box": [{"a": ["x Y", "z"], "b": [1, ""]}]}, True),
        ({"box": {"a": "x", "c": 1}}, {"box": [{"a": ["x"]}]}, False),
        ({"box": {}}, {"box": [{"a": ["x"]}]}, False),
        ({"boxes": [{"a": 1}, {"a": 2}]}, {"boxes": [[{"a": [1]}, {"a": [2]}]]}, True),
        ({"boxes": [{"a": 2}, {"a": 1}]}, {"boxes": [[{"a": [1]}, {"a": [2]}]]}, False),
        ({}, {"city": ["Oslo", ""]}, True),
        ({}, {"city": ["Oslo"]}, False),
        ({"more": 1}, {"city": ["Oslo", ""]}, False),
        ({"city": "Oslo", "days": 1}, {"city": ["Oslo"]}, False),
    ],
)
def test_arguments_match_by_the_rules_of_the_leaderboard(arguments: Json, truth: Json, is_right: bool) -> None:
    assert are_matches([("f", arguments)], [FUNCTION], [{"f": truth}]) is is_right


def test_a_required_argument_may_not_be_omitted_even_if_the_ground_truth_allows_it() -> None:
    assert not are_matches([("f", {})], [FUNCTION_WITH_REQUIRED_CITY], [{"f": {"city": ["Oslo", ""]}}])


def test_calls_match_in_any_order_and_each_matches_one_ground_truth() -> None:
    truths = [{"f": {"days": [1]}}, {"f": {"days": [2]}}]
    assert are_matches([("f", {"days": 2}), ("f", {"days": 1})], [FUNCTION], truths)
    assert not are_matches([("f", {"days": 1}), ("f", {"days": 1})], [FUNCTION], truths)
    assert not are_matches([("f", {"days": 1})], [FUNCTION], truths)
    assert not are_matches([("f", {"days": 1}), ("f", {"days": 2}), ("f", {"days": 2})], [FUNCTION], truths)
    assert not are_matches([("g", {"days": 1}), ("f", {"days": 2})], [FUNCTION], truths)


def test_equal_numbers_of_different_types_are_different_calls() -> None:
    calls: list[tuple[str, dict[str, float]]] = [("f", {"days": 5.0}), ("f", {"days": 5})]
    assert not are_matches(calls, [FUNCTION], [{"f": {"days": [5]}}, {"f": {"days": [5]}}])
