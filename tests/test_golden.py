"""`make golden` finds every difference between two trees and ranks it by its effect on a user."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from golden import (
    CHANGED,
    LOST,
    OPTION,
    RAISES,
    REJECTED,
    RUNS,
    Difference,
    Inputs,
    as_json,
    compare,
    differences,
    report,
    write_inputs,
)
from golden_inputs import (
    Recorder,
    Replayer,
    Unserialisable,
    encode,
    format_from,
    input_line,
    plain,
    plain_format,
    plain_tools,
    tools_from,
)
from rightcall import Limits, Tool, Toolset, formats

Json = dict[str, Any]
F = {"name": "f", "json": '{"x": 1}', "ok": True, "complete": True}
G = {**F, "name": "g"}
X = {"type": "object", "properties": {"x": {"type": "integer"}}}


def outcome(*attempts: Json, **fields: Any) -> Json:
    return {"attempts": list(attempts), "format": "hermes", **fields}


# -- classes of difference ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "before, after, classes",
    [
        pytest.param(outcome(F), outcome(F), [], id="the same"),
        pytest.param(outcome(), outcome(F), [RUNS], id="a new call"),
        pytest.param(outcome(F), outcome(F, F), [RUNS], id="a call twice"),
        pytest.param(outcome({**F, "ok": False}), outcome(F), [RUNS, "rejected calls"], id="a rejected call runs"),
        pytest.param(outcome(F), outcome({**F, "json": '{"x": 2}'}), [CHANGED], id="another argument"),
        pytest.param(outcome(F), outcome({**F, "json": '{"x": 1.0}'}), [CHANGED], id="a number of another type"),
        pytest.param(outcome(F), outcome(G), [CHANGED], id="another name"),
        pytest.param(outcome(F, G), outcome(G, F), [CHANGED], id="another order"),
        pytest.param(outcome(F), {"raised": "KeyError"}, [RAISES], id="an exception"),
        pytest.param(outcome(F), {"raised": "CallerError"}, [OPTION], id="an option that is gone"),
        pytest.param(outcome(F), outcome({**F, "ok": False}), [REJECTED, "rejected calls"], id="a call is rejected"),
        pytest.param(outcome(F), outcome(), [LOST], id="a call is gone"),
        pytest.param(
            outcome(F), outcome({**F, "json": '{"x":1}'}), ["argument text or id of a call"], id="argument text"
        ),
        pytest.param(outcome(F), outcome({**F, "id": "a1"}), ["argument text or id of a call"], id="an id"),
        pytest.param(outcome(F), outcome({**F, "repairs": [["r", "exact", ""]]}), ["repairs"], id="a repair"),
        pytest.param(outcome(), outcome(problems=[["c", "", None, False]]), ["problem codes"], id="a problem"),
        pytest.param(outcome(content="a"), outcome(content="b"), ["content"], id="content"),
        pytest.param(outcome(reasoning="a"), outcome(), ["reasoning"], id="reasoning"),
        pytest.param(outcome(), {**outcome(), "format": "llama3_json"}, ["format"], id="the format"),
        pytest.param(outcome(spans=[[0, 1, "t"]]), outcome(spans=[[0, 1, "m"]]), ["spans"], id="spans"),
        pytest.param(outcome(), outcome(done=""), ["other fields"], id="done"),
        pytest.param(outcome(events="a"), outcome(events="b"), ["streamed events"], id="events"),
    ],
)
def test_a_difference_has_its_class(before: Json, after: Json, classes: list[str]) -> None:
    assert differences(before, after) == classes


def test_a_call_that_is_runnable_only_when_streamed_counts_as_runnable() -> None:
    classes = differences(outcome(), outcome(streamed={"fours": outcome(F)}))
    assert classes == [RUNS, "streamed reply differs from the whole one"]


def test_arguments_are_compared_between_calls_of_the_same_name() -> None:
    changed = {**F, "json": '{"x": 2}'}
    assert differences(outcome(G, F), outcome(changed)) == [CHANGED, LOST]


def test_another_order_of_keys_is_not_a_changed_argument() -> None:
    one, other = {**F, "json": '{"x": 1, "y": 2}'}, {**F, "json": '{"y": 2, "x": 1}'}
    assert differences(outcome(one), outcome(other)) == ["argument text or id of a call"]


# -- the report --------------------------------------------------------------------------------------------------------


def test_the_report_starts_with_the_worst_class_and_counts_by_format() -> None:
    row = {"id": "1", "kind": "parse", "text": "x", "format": "hermes", "options": {}, "source": "tests/a.py"}
    spans = Difference(["spans"], row, outcome(), outcome())
    runs = Difference([RUNS], {**row, "format": "auto"}, outcome(), outcome(F))
    lines = report([spans, runs, runs], 10, 0).splitlines()
    assert lines[0] == "10 inputs replayed, 3 parsed differently"
    assert lines[1] == f"FAIL {RUNS}: 2 (auto, hermes 2)"
    assert lines[2] == "     spans: 1 (hermes 1)"
    assert as_json([runs], 10, 1)["classes"][RUNS]["count"] == 1


def test_an_example_shows_the_text_and_the_differing_fields() -> None:
    row = {"id": "1", "kind": "parse", "text": "the text", "options": {}, "source": "tests/a.py"}
    shown = report([Difference([LOST], row, outcome(F), outcome())], 1, 1)
    assert "'the text'" in shown and "- attempts" in shown and "format:" not in shown


# -- inputs ------------------------------------------------------------------------------------------------------------


def write_input_rows(tmp_path: Path, rows: list[Json]) -> Inputs:
    (tmp_path / "1.jsonl").write_text("".join([input_line(row) + "\n" for row in rows]), "ascii")
    path = tmp_path / "inputs.jsonl.gz"
    write_inputs(tmp_path, path)
    return Inputs(path)


def input_rows(source: str, count: int, first: int = 0) -> list[Json]:
    return [
        {"id": f"{at:04}", "kind": "parse", "text": str(at), "source": source, "options": {}, "format": "hermes"}
        for at in range(first, first + count)
    ]


def test_a_sample_contains_the_corpus_and_inputs_of_every_source(tmp_path: Path) -> None:
    sources = {"tests/test_corpus.py": 3, "tests/a.py": 2, "tests/b.py": 100, "shown": 100}
    inputs = write_input_rows(
        tmp_path, [row for at, name in enumerate(sources) for row in input_rows(name, sources[name], at * 100)]
    )
    ids = inputs.sample(15, "")
    assert Counter([json.loads(inputs.lines[id])["source"] for id in ids]) == {**sources, "tests/b.py": 6, "shown": 4}
    assert len(inputs.sample(0, "")) == 205
    assert len(inputs.sample(9, "hermes")) == 9
    assert inputs.sample(9, "llama3_json") == []


def test_an_input_of_two_sources_is_assigned_to_the_tests(tmp_path: Path) -> None:
    inputs = write_input_rows(tmp_path, [*input_rows("damaged", 1), *input_rows("tests/a.py", 1)])
    assert [json.loads(line)["source"] for line in inputs.lines.values()] == ["tests/a.py"]


def test_a_missing_outcome_fails(tmp_path: Path) -> None:
    inputs = write_input_rows(tmp_path, input_rows("tests/a.py", 2))
    lines = {id: f'{{"id":"{id}","outcome":{{}}}}\n' for id in inputs.lines}
    assert compare(inputs, lines, lines.values(), list(lines)) == []
    with pytest.raises(SystemExit, match="0001 is missing"):
        compare(inputs, {"0000": lines["0000"]}, lines.values(), list(lines))
    with pytest.raises(ValueError):
        compare(inputs, lines, [lines["0000"]], list(lines))
    with pytest.raises(SystemExit, match="no inputs"):
        compare(inputs, lines, [], [])


# -- recording and replaying -------------------------------------------------------------------------------------------


def test_a_recorded_input_is_replayed_with_its_options_and_tools(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    tools = Toolset([Tool(name="f", parameters=X)])
    text = 'Hello \ud800 <tool_call>{"name": "f", "arguments": {"x": "1"}}</tool_call>'
    options = {"tools": tools, "format": "hermes", "limits": Limits(calls=3), "finish": None, "spans": True}
    recorder.record("parse", {"text": text}, options)
    recorder.record("parse", {"text": text}, options)
    write_inputs(tmp_path, tmp_path / "inputs.jsonl.gz")
    inputs = Inputs(tmp_path / "inputs.jsonl.gz")
    (line,) = inputs.lines.values()
    replayed = Replayer(inputs.toolsets).outcome(json.loads(line))
    assert replayed["attempts"][0]["json"] == '{"x": 1}'
    assert replayed["content"] == "Hello \ud800"
    assert "streamed" not in replayed
    assert json.loads(line)["options"] == {"limits": {"reply": 16_000_000, "call": 4_000_000, "depth": 200, "calls": 3}}


def test_arguments_that_differ_from_the_text_of_the_call_are_in_the_outcome() -> None:
    row = {"id": "1", "kind": "parse", "text": '<tool_call>{"name": "f", "arguments": {"x": ', "source": "tests"}
    attempt = Replayer({}).outcome({**row, "options": {}, "format": "hermes"})["attempts"][0]
    assert attempt == {"name": "f", "json": '{"x": ', "ok": False, "arguments": {}}


def test_an_exception_is_an_outcome() -> None:
    row = {"id": "1", "kind": "parse", "text": "x", "source": "tests", "options": {"rescue": "never"}}
    assert Replayer({}).outcome(row) == {"raised": "CallerError"}


@pytest.mark.parametrize("name", sorted(formats.FORMATS))
def test_a_format_that_is_not_built_in_is_recorded_with_its_fields(name: str) -> None:
    custom = formats.replace(formats.FORMATS[name], name="mine")
    assert plain_format(formats.FORMATS[name]) == name
    assert format_from(json.loads(encode(plain_format(custom)))) == custom


def test_special_tokens_of_a_format_are_recorded() -> None:
    custom = formats.replace(formats.FORMATS["hermes"], name="mine", ends=(formats.Special("<e>", ("<", "e>")),))
    restored = format_from(json.loads(encode(plain_format(custom))))
    assert isinstance(restored.ends[0], formats.Special) and restored.ends[0].tokens == ("<", "e>")


def test_tools_are_recorded_with_their_scope() -> None:
    tools = Toolset([Tool(name="f", parameters=X, aliases={"y": "x"}, read_only=True), Tool(name="g")])
    restored = tools_from(json.loads(encode(plain_tools(tools.scoped(["f"])))))
    assert restored.names == ("f",) and restored.authorise("h") == "not_authorised"
    assert tools_from(plain_tools(tools)).get("f") == tools.get("f")
    assert tools_from(plain_tools([{"name": "f", "input_schema": {}}])).names == ("f",)


def test_an_object_without_plain_form_is_not_recorded() -> None:
    assert plain({"a": (1, b"x")}) == {"a": [1, {"$bytes": "eA=="}]}
    with pytest.raises(Unserialisable, match="object"):
        plain([object()])
