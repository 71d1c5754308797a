"""`dataset mutate`: every negative is wrong in the way its label says, and made the same way again."""

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from rightcall import Call, check, parse, render
from rightcall.capture.captured_rows import call_of, tools_of
from rightcall.capture.domain import Acceptable, built_in_names, find_domain
from rightcall.datasets.deduping import dedupe_files
from rightcall.datasets.exporting import export
from rightcall.datasets.label import Labeller, calls_before
from rightcall.datasets.mutating import (
    KINDS,
    ChosenRows,
    Mutator,
    is_same_value,
    mutate_files,
    other_values,
    plausible_value,
)
from rightcall.datasets.schemas import faults
from rightcall.datasets.splitting import group_key
from rightcall.errors import CannotCarry
from rightcall.formats import FORMATS, NAMED_ONLY
from rightcall.types import Json
from support.captured import FORGE_ROW, SHOP, conversation, rows, write
from support.command import failed, run
from support.format_sample import sampled

LABELS = {
    "wrong_tool": {"wrong_tool_semantic"},
    "wrong_arguments": {"wrong_arguments_semantic", "deterministic_invalid"},
    "not_needed": {"tool_not_needed"},
    "ask_back": {"needs_clarification"},
    "broken_syntax": {"deterministic_invalid"},
}


def _right(wanted: Acceptable) -> Json:
    return {name: next(iter(rule.values())) for name, rule in wanted.arguments.items()}


@cache
def truths() -> tuple[Json, ...]:
    """Right calls and good answers over the scenarios of a built-in domain, labelled."""
    labeller = Labeller()
    found = [labeller.label(row) for row in rows()]
    for scenario in SHOP.scenarios:
        calls = [Call(each.name, _right(each)) for each in scenario.calls[:1]]
        said = render(calls, format="hermes", tools=SHOP.tools) if calls else "Which one do you mean?"
        made = conversation(f"g-{scenario.name}", (said, "Done."), scenario=scenario.name)
        found += [row for row in map(labeller.label, made) if row["label"]["label"] == "valid"]
    return tuple(found)


@cache
def negatives() -> tuple[tuple[str, Json, Json], ...]:
    """Kind, truth, negative."""
    maker = Mutator(KINDS)
    return tuple((kind, row, made) for row in truths() for kind, _, made in maker.negatives(row))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_made_and_is_a_sound_row(kind: str) -> None:
    made = [row for each, _, row in negatives() if each == kind]
    assert len(made) >= 5
    assert [fault for row in made for fault in faults(row)] == []
    assert {row["label"]["label"] for row in made} <= LABELS[kind]
    assert all(row["label"]["why"] and row["metadata"]["mutation"]["changed"] for row in made)


def test_check_says_of_a_negative_what_its_label_says() -> None:
    for _, _, row in negatives():
        blocked = any(problem.blocking for problem in check(call_of(row), tools_of(row))) or bool(row["problems"])
        assert blocked == (row["label"]["label"] == "deterministic_invalid"), row["metadata"]["mutation"]


def test_a_scenario_takes_no_wrong_call_for_a_right_one() -> None:
    for kind, truth, row in negatives():
        if kind in ("wrong_tool", "wrong_arguments") and truth["kind"] == row["kind"]:
            judged = {**truth, "candidate_call": row["candidate_call"], "call": row["call"], "problems": []}
            assert Labeller().label(judged)["label"]["label"] == row["label"]["label"]


def test_labelling_again_changes_nothing() -> None:
    for _, _, row in negatives():
        assert Labeller().label(row)["label"]["label"] == row["label"]["label"]


def test_a_call_that_is_not_needed_was_made_or_not_asked_for() -> None:
    for kind, truth, row in negatives():
        if kind == "not_needed":
            before = [(call.name, call.arguments) for call in calls_before(row)]
            own = (row["candidate_call"]["name"], row["candidate_call"]["arguments"])
            assert own in before or (truth["kind"] == "outcome" and not before)


def test_the_value_to_ask_for_occurs_nowhere_in_the_conversation() -> None:
    for kind, truth, row in negatives():
        if kind == "ask_back" and truth["kind"] != "outcome":
            said = json.dumps([row["messages"], row["user_request"]]).lower()
            missing = [each for each in row["candidate_call"]["arguments"].values() if str(each).lower() not in said]
            assert missing
            assert row["user_request"] != truth["user_request"]


def test_a_negative_stays_on_the_side_of_its_truth_and_is_a_conversation_of_its_own() -> None:
    for _, truth, row in negatives():
        assert group_key(row) == group_key(truth)
        assert row["proxy_trace"]["model"] != truth["proxy_trace"]["model"]


@pytest.mark.parametrize("format", sampled(name for name in FORMATS if name not in NAMED_ONLY))
def test_a_broken_call_blocks_in_every_wire_format(format: str) -> None:
    truth = Labeller().label(rows("right")[0])
    try:
        render(call_of(truth), format=format, tools=SHOP.tools)
    except CannotCarry:
        pytest.skip("the format cannot say this call")
    ((_, _, row),) = Mutator(["broken_syntax"], [format]).negatives(truth)
    assert row["format"] == format
    (call,) = parse(row["reply"], format=format, tools=SHOP.tools, repair="off").attempts
    assert not call.ok
    assert [problem["code"] for problem in row["problems"]] == [problem.code for problem in call.problems]


def test_the_same_seed_makes_the_same_and_another_one_others() -> None:
    made = [[row for each in truths() for _, _, row in Mutator(KINDS, seed=seed).negatives(each)] for seed in "aab"]
    assert made[0] == made[1] != made[2]


def test_nothing_is_made_of_what_is_wrong_or_was_made_already() -> None:
    maker, labeller = Mutator(KINDS), Labeller()
    wrong = [row for row in map(labeller.label, rows()) if row["label"]["label"] not in ("valid",)]
    assert len(wrong) >= 3
    assert [kind for row in wrong for kind, _, _ in maker.negatives(row)] == []
    assert [kind for _, _, row in negatives() for kind, _, _ in maker.negatives(row)] == []


def test_rows_of_forge_are_mutated_too() -> None:
    made = list(Mutator(KINDS).negatives(FORGE_ROW))
    assert {kind for kind, _, _ in made} == set(KINDS)
    assert [fault for _, _, row in made for fault in faults(row)] == []


# -- values ------------------------------------------------------------------------------------------------------------


def test_the_tools_of_every_domain_get_arguments_that_check_takes() -> None:
    tools = [(tool, find_domain(name).tools) for name in built_in_names() for tool in find_domain(name).tools]
    taken = [not check(Call(tool.name, plausible_value(tool.parameters, {}, ["Oslo"])), known) for tool, known in tools]
    assert sum(taken) >= 0.9 * len(taken)


@pytest.mark.parametrize("value", ["Oslo", "SKU-1", "two words here", 3, 2.5, True, [1, 2], {"a": 1}])
def test_every_value_has_a_different_mutation(value: object) -> None:
    found = list(other_values(value, {}, ["Bergen", "dock"], random.Random(1)))
    assert any(not is_same_value(value, other) for other in found)


@pytest.mark.parametrize("one, other", [("Oslo", " oslo"), (1, 1.0), ([1], [1])])
def test_what_a_tool_would_take_for_the_same_is_the_same(one: object, other: object) -> None:
    assert is_same_value(one, other)
    assert not is_same_value(one, "another")
    assert not is_same_value(1, True)


# -- caps and files ----------------------------------------------------------------------------------------------------


def _chosen(lines: list[Json], most: int) -> list[bytes]:
    maker = Mutator(["wrong_tool"])
    return [line for _, line in ChosenRows({"wrong_tool": most}, Frames([maker.frames(row) for row in lines]).pieces)]


class Frames:
    """Negatives as they wait on disk, cut anywhere."""

    def __init__(self, frames: list[bytes]) -> None:
        self._data = b"".join(frames)

    def pieces(self) -> Iterator[bytes]:
        return (self._data[at : at + 1_000] for at in range(0, len(self._data), 1_000))


def test_a_cap_chooses_the_same_rows_in_any_order() -> None:
    one, other = _chosen(list(truths()), 3), _chosen(list(reversed(truths())), 3)
    assert len(one) == 3
    assert one == list(reversed(other))


def test_the_command_keeps_to_its_caps_and_says_how_many_more_there_are(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", list(truths()))
    out = str(tmp_path / "out.jsonl")
    done = run("dataset", "mutate", str(source), "-o", out, "--kind", "wrong_tool=2", "--kind", "ask_back", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["kinds"]["wrong_tool"] == 2
    assert told["over"]["wrong_tool"] > 0
    assert told["rows"] == len(Path(out).read_text().splitlines()) == sum(told["kinds"].values())


def test_wrong_rows_train_a_verifier_and_are_no_duplicates(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", list(truths()))
    made = mutate_files([source], tmp_path / "wrong.jsonl")
    assert export([tmp_path / "wrong.jsonl"], tmp_path / "v.jsonl", to="verifier").examples == made.rows
    both = dedupe_files([source, tmp_path / "wrong.jsonl"], tmp_path / "once.jsonl", near=0.9)
    alone = dedupe_files([source], tmp_path / "alone.jsonl", near=0.9)
    assert both.kept - alone.kept >= 0.5 * made.rows  # several truths are the same, and so are their negatives


@pytest.mark.parametrize(
    "given, said", [("wrong", "no kind 'wrong'"), ("ask_back=x", "is not a number"), ("ask_back=-1", "is not a number")]
)
def test_a_kind_that_there_is_not_is_refused(given: str, said: str, tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", rows("right"))
    assert said in failed(run("dataset", "mutate", str(source), "-o", str(tmp_path / "o"), "--kind", given))
