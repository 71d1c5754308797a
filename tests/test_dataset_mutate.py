"""`dataset mutate`: every negative has the fault of its label and is generated deterministically."""

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


def _correct_arguments(wanted: Acceptable) -> Json:
    return {name: next(iter(rule.values())) for name, rule in wanted.arguments.items()}


@cache
def truths() -> tuple[Json, ...]:
    """Correct calls and good answers over the scenarios of a built-in domain, labelled."""
    labeller = Labeller()
    found = [labeller.label(row) for row in rows()]
    for scenario in SHOP.scenarios:
        calls = [Call(each.name, _correct_arguments(each)) for each in scenario.calls[:1]]
        reply_text = render(calls, format="hermes", tools=SHOP.tools) if calls else "Which one do you mean?"
        rows_of_scenario = conversation(f"g-{scenario.name}", (reply_text, "Done."), scenario=scenario.name)
        found += [row for row in map(labeller.label, rows_of_scenario) if row["label"]["label"] == "valid"]
    return tuple(found)


@cache
def negatives() -> tuple[tuple[str, Json, Json], ...]:
    """Triples of kind, truth and negative."""
    maker = Mutator(KINDS)
    return tuple((kind, row, made) for row in truths() for kind, _, made in maker.negatives(row))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_valid_labelled_rows(kind: str) -> None:
    rows_of_kind = [row for each, _, row in negatives() if each == kind]
    assert len(rows_of_kind) >= 5
    assert [fault for row in rows_of_kind for fault in faults(row)] == []
    assert {row["label"]["label"] for row in rows_of_kind} <= LABELS[kind]
    assert all(row["label"]["why"] and row["metadata"]["mutation"]["changed"] for row in rows_of_kind)


def test_check_blocks_exactly_the_negatives_labelled_invalid() -> None:
    for _, _, row in negatives():
        blocked = any(problem.blocking for problem in check(call_of(row), tools_of(row))) or bool(row["problems"])
        assert blocked == (row["label"]["label"] == "deterministic_invalid"), row["metadata"]["mutation"]


def test_the_labeller_gives_a_wrong_call_the_label_of_its_negative() -> None:
    for kind, truth, row in negatives():
        if kind in ("wrong_tool", "wrong_arguments") and truth["kind"] == row["kind"]:
            judged = {**truth, "candidate_call": row["candidate_call"], "call": row["call"], "problems": []}
            assert Labeller().label(judged)["label"]["label"] == row["label"]["label"]


def test_labelling_a_negative_again_keeps_its_label() -> None:
    for _, _, row in negatives():
        assert Labeller().label(row)["label"]["label"] == row["label"]["label"]


def test_an_unneeded_call_repeats_an_earlier_one_or_follows_no_request() -> None:
    for kind, truth, row in negatives():
        if kind == "not_needed":
            before = [(call.name, call.arguments) for call in calls_before(row)]
            own = (row["candidate_call"]["name"], row["candidate_call"]["arguments"])
            assert own in before or (truth["kind"] == "outcome" and not before)


def test_the_missing_value_occurs_nowhere_in_the_conversation() -> None:
    for kind, truth, row in negatives():
        if kind == "ask_back" and truth["kind"] != "outcome":
            conversation_text = json.dumps([row["messages"], row["user_request"]]).lower()
            missing = [
                each
                for each in row["candidate_call"]["arguments"].values()
                if str(each).lower() not in conversation_text
            ]
            assert missing
            assert row["user_request"] != truth["user_request"]


def test_a_negative_has_the_group_of_its_truth_and_its_own_conversation() -> None:
    for _, truth, row in negatives():
        assert group_key(row) == group_key(truth)
        assert row["proxy_trace"]["model"] != truth["proxy_trace"]["model"]


@pytest.mark.parametrize("format", sampled(name for name in FORMATS if name not in NAMED_ONLY))
def test_a_call_with_broken_syntax_is_rejected_in_every_format(format: str) -> None:
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


def test_negatives_depend_only_on_the_seed() -> None:
    negatives_by_seed = [
        [row for each in truths() for _, _, row in Mutator(KINDS, seed=seed).negatives(each)] for seed in "aab"
    ]
    assert negatives_by_seed[0] == negatives_by_seed[1] != negatives_by_seed[2]


def test_wrong_rows_and_negatives_are_not_mutated() -> None:
    maker, labeller = Mutator(KINDS), Labeller()
    wrong = [row for row in map(labeller.label, rows()) if row["label"]["label"] not in ("valid",)]
    assert len(wrong) >= 3
    assert [kind for row in wrong for kind, _, _ in maker.negatives(row)] == []
    assert [kind for _, _, row in negatives() for kind, _, _ in maker.negatives(row)] == []


def test_forge_rows_are_mutated() -> None:
    mutated = list(Mutator(KINDS).negatives(FORGE_ROW))
    assert {kind for kind, _, _ in mutated} == set(KINDS)
    assert [fault for _, _, row in mutated for fault in faults(row)] == []


# -- values ------------------------------------------------------------------------------------------------------------


def test_plausible_arguments_are_valid_for_most_tools_of_every_domain() -> None:
    tools = [(tool, find_domain(name).tools) for name in built_in_names() for tool in find_domain(name).tools]
    taken = [not check(Call(tool.name, plausible_value(tool.parameters, {}, ["Oslo"])), known) for tool, known in tools]
    assert sum(taken) >= 0.9 * len(taken)


@pytest.mark.parametrize("value", ["Oslo", "SKU-1", "two words here", 3, 2.5, True, [1, 2], {"a": 1}])
def test_every_value_has_a_mutation_that_differs(value: object) -> None:
    found = list(other_values(value, {}, ["Bergen", "dock"], random.Random(1)))
    assert any(not is_same_value(value, other) for other in found)


@pytest.mark.parametrize("one, other", [("Oslo", " oslo"), (1, 1.0), ([1], [1])])
def test_values_that_a_tool_treats_as_equal_are_the_same(one: object, other: object) -> None:
    assert is_same_value(one, other)
    assert not is_same_value(one, "another")
    assert not is_same_value(1, True)


# -- caps and files ----------------------------------------------------------------------------------------------------


def _chosen_lines(lines: list[Json], most: int) -> list[bytes]:
    maker = Mutator(["wrong_tool"])
    return [line for _, line in ChosenRows({"wrong_tool": most}, Frames([maker.frames(row) for row in lines]).pieces)]


class Frames:
    """Negatives as stored on disk, in chunks of any size."""

    def __init__(self, frames: list[bytes]) -> None:
        self._data = b"".join(frames)

    def pieces(self) -> Iterator[bytes]:
        return (self._data[at : at + 1_000] for at in range(0, len(self._data), 1_000))


def test_a_cap_chooses_the_same_rows_in_any_order() -> None:
    one, other = _chosen_lines(list(truths()), 3), _chosen_lines(list(reversed(truths())), 3)
    assert len(one) == 3
    assert one == list(reversed(other))


def test_the_command_applies_its_caps_and_reports_the_number_of_further_rows(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", list(truths()))
    out = str(tmp_path / "out.jsonl")
    done = run("dataset", "mutate", str(source), "-o", out, "--kind", "wrong_tool=2", "--kind", "ask_back", "--json")
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert summary["kinds"]["wrong_tool"] == 2
    assert summary["over"]["wrong_tool"] > 0
    assert summary["rows"] == len(Path(out).read_text().splitlines()) == sum(summary["kinds"].values())


def test_negatives_are_exported_for_a_verifier_and_kept_by_dedupe(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", list(truths()))
    made = mutate_files([source], tmp_path / "wrong.jsonl")
    assert export([tmp_path / "wrong.jsonl"], tmp_path / "v.jsonl", to="verifier").examples == made.rows
    both = dedupe_files([source, tmp_path / "wrong.jsonl"], tmp_path / "once.jsonl", near=0.9)
    alone = dedupe_files([source], tmp_path / "alone.jsonl", near=0.9)
    assert both.kept - alone.kept >= 0.5 * made.rows  # several truths are equal, and so are their negatives


@pytest.mark.parametrize(
    "given, message",
    [("wrong", "no kind 'wrong'"), ("ask_back=x", "is not a number"), ("ask_back=-1", "is not a number")],
)
def test_an_invalid_kind_is_rejected(given: str, message: str, tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", rows("right"))
    assert message in failed(run("dataset", "mutate", str(source), "-o", str(tmp_path / "o"), "--kind", given))
