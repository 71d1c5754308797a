"""`dataset export` and `dataset import`: out in the shapes that trainers read, and back to the same calls."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Call, Toolset, contract, formats
from rightcall.capture.captured_rows import CallTrace, call_of, capture_row, outcome_row, read_rows
from rightcall.capture.settings import SYSTEM
from rightcall.capture.stubs import StubOutcome
from rightcall.datasets.conversations import CapturedConversation
from rightcall.datasets.exporting import export
from rightcall.datasets.label import Labeller
from rightcall.datasets.log_rows import rows_of
from rightcall.datasets.row_files import BadRows
from rightcall.datasets.schemas import faults
from rightcall.datasets.training_shapes import SHAPES, LeftOut, ShapeOptions
from rightcall.errors import CallerError
from rightcall.types import Json
from support.captured import FORGE_ROW, RIGHT, SHOP, conversation, rows, write


def labelled(*names: str) -> list[Json]:
    labeller = Labeller()
    return [labeller.label(row) for row in rows(*names)]


def exported(tmp_path: Path, entries: list[Json], to: str, **options: Any) -> list[Json]:
    write(tmp_path / "rows.jsonl", entries)
    export([tmp_path / "rows.jsonl"], tmp_path / "out.jsonl", to=to, **options)
    return [row for _, row in read_rows(tmp_path / "out.jsonl") if isinstance(row, dict)]


# -- what a model will be asked ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_with_a_contract_the_prompt_is_what_a_backend_sends(tmp_path: Path, choice: Any) -> None:
    sent = exported(tmp_path, labelled("right"), "text", format="hermes", contract=choice)
    (tmp_path / "plain").mkdir()
    plain = exported(tmp_path / "plain", labelled("right"), "text", format="hermes")
    assert [row["completion"] for row in sent] == [row["completion"] for row in plain] != []
    for row, bare in zip(sent, plain, strict=True):
        tools = Toolset(row["tools"])
        told = contract(tools, format="hermes", require_action=choice == "required").text.strip()
        assert row["prompt"][0]["role"] == "system" and row["prompt"][0]["content"].endswith(told)
        assert [each["role"] for each in row["prompt"]][1:] == [
            "user" if each["role"] == "tool" else each["role"] for each in bare["prompt"] if each["role"] != "system"
        ]
    with pytest.raises(CallerError, match="--contract is for --to text"):
        exported(tmp_path / "plain", labelled("right"), "trl-sft", contract=choice)


def test_tools_have_the_names_that_the_calls_have(tmp_path: Path) -> None:
    entries = json.loads(json.dumps(labelled("right")).replace('"search_products"', '"shop.search"'))
    for to in ("openai-sft", "trl-sft", "text"):
        options = {"format": "hermes"} if to == "text" else {}
        (tmp_path / to).mkdir()
        found = exported(tmp_path / to, entries, to, **options)
        names = {tool["function"]["name"] for row in found for tool in row["tools"]}
        assert found and "shop.search" in names and "shop_search" not in names


# -- the shapes --------------------------------------------------------------------------------------------------------


def test_openai_rows_have_arguments_as_text_and_do_not_learn_from_a_bad_turn(tmp_path: Path) -> None:
    (row,) = exported(tmp_path, labelled("retried"), "openai-sft")
    assert row.keys() == {"messages", "tools", "parallel_tool_calls"}
    roles = [message["role"] for message in row["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert [message.get("weight") for message in row["messages"] if message["role"] == "assistant"] == [0, None, None]
    call = row["messages"][4]["tool_calls"][0]
    assert call["type"] == "function"
    assert json.loads(call["function"]["arguments"]) == {"product_id": "SKU-DOCK-1", "quantity": 2}
    assert row["messages"][5] == {
        "role": "tool",
        "content": row["messages"][5]["content"],
        "tool_call_id": call["id"],
    }
    assert row["tools"][0]["type"] == "function"
    assert "respond" not in [tool["function"]["name"] for tool in row["tools"]]


def test_parallel_calls_are_one_turn_and_marked(tmp_path: Path) -> None:
    (row,) = exported(tmp_path, labelled("parallel"), "openai-sft")
    assert row["parallel_tool_calls"] is True
    assert len(row["messages"][2]["tool_calls"]) == 2


def test_trl_rows_have_arguments_as_objects_and_only_good_turns(tmp_path: Path) -> None:
    found = exported(tmp_path, labelled("right", "retried", "refused", "wrong"), "trl-sft")
    assert len(found) == 1
    call = found[0]["messages"][2]["tool_calls"][0]["function"]
    assert call == {"name": "add_to_cart", "arguments": {"product_id": "SKU-DOCK-1", "quantity": 2}}
    turns = exported(tmp_path / "turns", labelled("right", "retried"), "trl-sft", turns=True)
    assert [row["completion"][0].get("tool_calls") is not None for row in turns] == [True, False, True, False]
    assert turns[2]["prompt"][2]["role"] == "assistant"  # the bad turn stands in the prompt, where it is not learned


def test_a_repaired_call_is_preferred_to_the_call_as_it_was_sent(tmp_path: Path) -> None:
    (row,) = exported(tmp_path, labelled("repaired"), "trl-preference")
    assert row["chosen"][0]["tool_calls"][0]["function"]["arguments"]["quantity"] == 2
    assert row["rejected"] == [{"role": "assistant", "content": rows("repaired")[0]["reply"]}]
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]


def test_a_retried_call_is_preferred_to_the_bad_call_before_it(tmp_path: Path) -> None:
    (row,) = exported(tmp_path, labelled("retried"), "trl-preference")
    assert row["chosen"][0]["tool_calls"][0]["function"]["arguments"]["quantity"] == 2
    assert '"quantity"' not in row["rejected"][0]["content"]
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]


def test_a_native_call_as_it_was_sent_is_rejected_as_a_call(tmp_path: Path) -> None:
    entries = labelled("repaired")
    function = {"name": "add_to_cart", "arguments": '{"product_id": "SKU-DOCK-1", "quantity": "2"}'}
    entries[0]["reply"] = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    (row,) = exported(tmp_path, entries, "trl-preference")
    assert row["rejected"][0]["tool_calls"][0]["function"]["arguments"] == {"product_id": "SKU-DOCK-1", "quantity": "2"}
    function["arguments"] = '{"product_id": "SKU-DOCK-1", "quantity": 2'
    entries[0]["call"]["raw"] = function["arguments"]
    (row,) = exported(tmp_path / "cut", entries, "trl-preference")
    assert row["rejected"] == [{"role": "assistant", "content": function["arguments"]}]


def test_kto_rows_label_each_checked_turn_as_good_or_bad(tmp_path: Path) -> None:
    found = exported(tmp_path, labelled("retried", "refused"), "trl-kto")
    assert [row["label"] for row in found] == [False, True, True, False]
    assert exported(tmp_path / "none", rows("right"), "trl-kto") == []


def test_sharegpt_sides_alternate_and_calls_are_json(tmp_path: Path) -> None:
    first, second = exported(tmp_path, labelled("right", "parallel"), "sharegpt")
    assert [entry["from"] for entry in first["conversations"]] == ["human", "function_call", "observation", "gpt"]
    assert json.loads(first["conversations"][1]["value"])["name"] == "add_to_cart"
    assert [entry["from"] for entry in second["conversations"]] == ["human", "function_call", "observation", "gpt"]
    assert (
        len(json.loads(second["conversations"][1]["value"]))
        == len(json.loads(second["conversations"][2]["value"]))
        == 2
    )
    assert first["system"] == "Stubs."
    assert json.loads(first["tools"])[0].keys() == {"name", "description", "parameters"}


def test_verifier_rows_are_sound_and_carry_the_label(tmp_path: Path) -> None:
    found = exported(tmp_path, labelled(), "verifier")
    assert [row["label"] for row in found].count("deterministic_invalid") == 1
    assert all(faults(row) == [] for row in found)
    assert all(row["review"]["private_agent_log"] is True for row in found)
    assert exported(tmp_path / "none", rows("right"), "verifier") == []


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder", "mistral", "llama4_pythonic", "harmony", "glm45"])
def test_text_is_what_the_model_would_write_in_that_format(tmp_path: Path, format: str) -> None:
    found = exported(tmp_path, labelled("right", "parallel"), "text", format=format)
    assert found
    for row in found:
        reply = formats.find(format).name
        assert row["format"] == reply
    calls = [call for row in found for call in _parsed(row)]
    assert [call.name for call in calls] == ["add_to_cart", "get_product", "add_to_cart"]


def _parsed(row: Json) -> Iterator[Call]:
    from rightcall import parse

    yield from parse(row["completion"], format=row["format"], tools=SHOP.tools).attempts


def test_what_a_shape_cannot_say_is_counted_with_its_reason(tmp_path: Path) -> None:
    beside = [*conversation("g", (f"On it.\n{RIGHT}", "Done."))]
    made = export([write(tmp_path / "a.jsonl", beside)], tmp_path / "out.jsonl", to="sharegpt")
    assert made.examples == 0
    assert made.left_out == {"there is no place for text beside calls": 1}
    manifest = json.loads(Path(made.manifest).read_text())
    assert manifest["left_out"] == made.left_out


def test_rows_of_one_conversation_may_lie_apart_and_in_several_files(tmp_path: Path) -> None:
    entries = labelled()
    mixed = [entries[at] for at in (5, 0, 12, 3, 9, 1, 7, 2, 11, 4, 10, 6, 8)]
    files = [write(tmp_path / "a.jsonl", mixed[:6]), write(tmp_path / "b.jsonl", mixed[6:])]
    export(files, tmp_path / "mixed.jsonl", to="openai-sft")
    export([write(tmp_path / "c.jsonl", entries)], tmp_path / "whole.jsonl", to="openai-sft")
    apart, whole = [sorted((tmp_path / name).read_text().splitlines()) for name in ("mixed.jsonl", "whole.jsonl")]
    assert apart == whole and whole


def test_rows_of_the_other_schema_are_exported_with_a_history_made_from_them(tmp_path: Path) -> None:
    later = {
        **FORGE_ROW,
        "proxy_trace": {**FORGE_ROW["proxy_trace"], "turn": 1, "tool_call_id": "b"},
        "candidate_call": {"name": "get_product", "arguments": {"product_id": "SKU-DOCK-1"}},
    }
    (row,) = exported(tmp_path, [FORGE_ROW, later], "trl-sft")
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert row["messages"][2]["content"] == '{"cart_id":"cart-001"}'


def test_attempts_of_a_turn_are_distinguished() -> None:
    bad, good, *_ = labelled("retried")
    first = {**bad, "attempt": 1}
    second = {**good, "attempt": 2, "proxy_trace": {**good["proxy_trace"], "turn": 0}}
    assert [turn.good for turn in CapturedConversation([second, first]).turns] == [False, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"to": "trl"}, "no shape"),
        ({"to": "text"}, "needs a format"),
        ({"to": "trl-sft", "format": "hermes"}, "only plain text takes one"),
        ({"to": "trl-kto", "turns": True}, "--turns is for trl-sft"),
        ({"to": "text", "format": "herms"}, "did you mean"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CallerError, match=message):
        export([write(tmp_path / "a.jsonl", rows("right"))], tmp_path / "out.jsonl", **options)


def test_a_bad_row_ends_an_export_and_leaves_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", [*rows("right"), {"schema_version": "x"}])
    with pytest.raises(BadRows, match=r"a\.jsonl:3"):
        export([source], tmp_path / "out.jsonl", to="trl-sft")
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


# -- loaded for real ---------------------------------------------------------------------------------------------------

MIXED: list[Json] = [{"x": 1, "y": None}, {"x": "one", "y": [1, "a", {"b": 2.5}]}, {"x": {"deep": [True]}}, {}]


def mixed_rows() -> list[Json]:
    """Calls whose arguments have another type in each row."""
    made = []
    for at, arguments in enumerate(MIXED):
        call = Call("add_to_cart", arguments, json.dumps(arguments), f"c{at}")
        trace = CallTrace(domain="d", scenario="s", run_index=at, turn=0, model="m", tool_call_id=call.id)
        user = [{"role": "user", "content": "Go."}]
        shared: Any = {"group": f"g{at}", "request": "Go.", "tools": SHOP.tools, "reply": "x", "messages": user}
        said = {"role": "assistant", "content": ""}
        row = capture_row(call, trace=trace, assistant=said, result=StubOutcome("ok", 1), **shared)
        made.append({**row, "label": {"label": "valid", "by": "test", "why": ""}})
    return made


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`datasets`, kept off the network and inside this test's folder."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()

    def load(path: Path) -> list[Json]:
        kind = "parquet" if path.suffix == ".parquet" else "json"
        cache = str(tmp_path / "cache")
        return list(datasets.load_dataset(kind, data_files=str(path), split="train", cache_dir=cache))

    return load


def bare(value: Any) -> Any:
    """Without the keys that a column adds as null."""
    if isinstance(value, dict):
        return {key: bare(each) for key, each in value.items() if each is not None}
    return [bare(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("container", ["jsonl", "parquet"])
def test_arguments_of_every_type_come_back_out_of_datasets(tmp_path: Path, loaded: Any, container: str) -> None:
    source, target = write(tmp_path / "a.jsonl", mixed_rows()), tmp_path / f"out.{container}"
    export([source], target, to="trl-sft")
    found = [row["messages"][1]["tool_calls"][0]["function"]["arguments"] for row in loaded(target)]
    assert found == MIXED


@pytest.mark.parametrize("to", list(SHAPES))
def test_every_shape_is_the_same_in_parquet_as_in_json_lines(tmp_path: Path, loaded: Any, to: str) -> None:
    options: Any = {"to": to, "format": "hermes" if to == "text" else None}
    source = write(tmp_path / "a.jsonl", [*labelled(), *mixed_rows()])
    export([source], tmp_path / "out.jsonl", **options)
    export([source], tmp_path / "out.parquet", **options)
    lines = [bare(row) for _, row in read_rows(tmp_path / "out.jsonl")]
    assert [bare(row) for row in loaded(tmp_path / "out.parquet")] == lines and lines


def test_parquet_is_compressed_private_and_marked(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    export([write(tmp_path / "a.jsonl", labelled())], tmp_path / "out.parquet", to="trl-sft", turns=True)
    file = parquet.ParquetFile(tmp_path / "out.parquet")
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    marks = {"private": True, "shape": "trl-sft", "turns": True}
    assert json.loads(file.schema_arrow.metadata[b"rightcall"]) == marks
    assert (tmp_path / "out.parquet").stat().st_mode & 0o777 == 0o600


# -- the law -----------------------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OPEN = Toolset([{"name": name, "parameters": {"type": "object", "properties": {}}} for name in ("f", "g_2")])
CALLS = st.lists(
    st.tuples(st.sampled_from(["f", "g_2"]), st.dictionaries(TEXT, VALUES, max_size=3)), min_size=1, max_size=3
)


def run_of(turns: list[list[tuple[str, Json]]]) -> list[Json]:
    """A conversation with these calls, turn by turn, and an answer."""
    messages: list[Json] = [{"role": "user", "content": "Go."}]
    made: list[Json] = []
    for turn, calls in enumerate(turns):
        entries = [Call(name, given, json.dumps(given), f"c{turn}_{at}") for at, (name, given) in enumerate(calls)]
        functions = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.json}} for c in entries
        ]
        said = {"role": "assistant", "content": "", "tool_calls": functions}
        for at, call in enumerate(entries):
            trace = CallTrace(
                domain="d", scenario="s", run_index=0, turn=turn, model="m", call_index=at, tool_call_id=call.id
            )
            shared: Any = {"group": "g", "request": "Go.", "tools": OPEN, "messages": list(messages)}
            shared["captured_at_unix_ms"] = 1_763_200_000_000 + turn
            made.append(
                capture_row(call, trace=trace, assistant=said, reply=said, result=StubOutcome("ok", 1), **shared)
            )
        results = [{"role": "tool", "tool_call_id": call.id, "name": call.name, "content": "1"} for call in entries]
        messages += [said, *results]
    trace = CallTrace(domain="d", scenario="s", run_index=0, turn=len(turns), model="m")
    end = outcome_row(group="g", request="Go.", tools=OPEN, trace=trace, messages=messages, reply="Done.", text="Done.")
    return [*made, end]


def calls_in(example: Json) -> list[tuple[str, Json]]:
    found = [row for row in rows_of(json.loads(json.dumps(example)), group="g", repair="off") if "call" in row]
    assert not [problem for row in found for problem in row["problems"]]
    return [(call.name, call.arguments) for call in map(call_of, found)]


@pytest.mark.parametrize("to", ["openai-sft", "trl-sft", "sharegpt"])
@given(turns=st.lists(CALLS, min_size=1, max_size=3))
def test_export_then_import_gives_the_same_calls(to: str, turns: list[list[tuple[str, Json]]]) -> None:
    (example,) = SHAPES[to].examples(CapturedConversation(run_of(turns)), ShapeOptions())
    assert isinstance(example, dict)
    assert calls_in(example) == [call for turn in turns for call in turn]


@given(turns=st.lists(CALLS, min_size=1, max_size=2))
def test_single_turns_out_and_back_give_the_same_calls(turns: list[list[tuple[str, Json]]]) -> None:
    found = list(SHAPES["trl-sft"].examples(CapturedConversation(run_of(turns)), ShapeOptions(turns=True)))
    for at, example in enumerate(found):
        assert isinstance(example, dict)
        assert calls_in(example) == [call for turn in turns[: at + 1] for call in turn]


@given(turns=st.lists(CALLS, min_size=1, max_size=2))
def test_exported_checked_turns_are_imported_with_the_same_calls(turns: list[list[tuple[str, Json]]]) -> None:
    made = [{**row, "label": {"label": "valid", "by": "scenario", "why": ""}} for row in run_of(turns)]
    found = list(SHAPES["trl-kto"].examples(CapturedConversation(made), ShapeOptions()))
    assert [each["label"] for each in found if isinstance(each, dict)] == [True] * (len(turns) + 1)
    for at, example in enumerate(found):
        assert isinstance(example, dict)
        assert calls_in(example) == [call for turn in turns[: at + 1] for call in turn]


@given(turns=st.lists(CALLS, min_size=1, max_size=2))
def test_of_a_pair_out_and_back_the_chosen_calls_are_the_same(turns: list[list[tuple[str, Json]]]) -> None:
    receipt = {"rule": "scalar_type", "kind": "schema", "path": "/x", "before": "1", "after": "1"}
    made = [{**row, "reply": "broken", "repairs": [receipt]} if "call" in row else row for row in run_of(turns)]
    found = list(SHAPES["trl-preference"].examples(CapturedConversation(made), ShapeOptions()))
    assert len(found) == len(turns)
    for at, example in enumerate(found):
        assert isinstance(example, dict) and example["rejected"] == [{"role": "assistant", "content": "broken"}]
        assert calls_in(example) == [call for turn in turns[: at + 1] for call in turn]


@pytest.mark.parametrize("format", ["hermes", "mistral_v11", "llama3_json", "deepseek_v3", "kimi_k2"])
@given(turns=st.lists(CALLS, min_size=1, max_size=2))
def test_text_out_and_back_gives_the_same_calls_or_is_left_out(
    format: str, turns: list[list[tuple[str, Json]]]
) -> None:
    how = ShapeOptions(format=formats.find(format))
    for at, example in enumerate(SHAPES["text"].examples(CapturedConversation(run_of(turns)), how)):
        if isinstance(example, LeftOut):
            assert "cannot carry it" in str(example)
        else:
            assert calls_in(example) == [call for turn in turns[: at + 1] for call in turn]


# -- what no export holds ----------------------------------------------------------------------------------------------


def _spoiled(*, asks: bool, says: str) -> list[Json]:
    """A conversation in which nobody asks, or the model says this."""
    made = [*labelled("right"), *labelled("repaired")]
    for row in made:
        row["messages"] = [each for each in row["messages"] if asks or each["role"] != "user"]
        if row["kind"] == "outcome":
            row["outcome"]["text"] = row["assistant"]["content"] = row["reply"] = says
    return made


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("says", ["", " \n", "Done."])
@pytest.mark.parametrize("to", list(SHAPES))
def test_no_example_is_without_a_user_turn_or_with_an_empty_answer(
    tmp_path: Path, to: str, asks: bool, says: str
) -> None:
    options: Any = {"format": "hermes" if to == "text" else None}
    found = exported(tmp_path, _spoiled(asks=asks, says=says), to, **options)
    assert bool(found) == asks
    for example in found:
        messages: list[Any] = example.get("messages") or example.get("prompt") or example.get("conversations") or []
        assert not messages or any(each.get("role", each.get("from")) in ("user", "human") for each in messages)
        answers = [example.get(key) for key in ("completion", "chosen", "rejected") if key in example] or messages[-1:]
        for answer in answers:
            last: Any = answer[-1] if isinstance(answer, list) else answer
            said = last if isinstance(last, str) else last.get("tool_calls") or last.get("content") or last.get("value")
            assert not isinstance(said, str) or said.strip()


def test_the_prompt_of_a_capture_is_left_out_unless_it_is_asked_for(tmp_path: Path) -> None:
    made = labelled("right")
    for row in made:
        row["messages"][0]["content"] = SYSTEM
    (row,) = exported(tmp_path, made, "trl-sft")
    assert [message["role"] for message in row["messages"]][:2] == ["user", "assistant"]
    (kept,) = exported(tmp_path / "kept", made, "trl-sft", keep_system=True)
    assert kept["messages"][0] == {"role": "system", "content": SYSTEM}
    for row in made:
        row["messages"][0]["content"] = f"{SYSTEM}\n\nTools: f"
    (mixed,) = exported(tmp_path / "mixed", made, "trl-sft")
    assert mixed["messages"][0] == {"role": "system", "content": "Tools: f"}
    contracted = contract(SHOP.tools, format="hermes").text.strip()
    for at, (said, left) in enumerate(((f"{SYSTEM}\n\n{contracted}", []), (f"Hi.\n\n{contracted}", ["Hi."]))):
        for row in made:
            row["messages"][0]["content"] = said
        (bare,) = exported(tmp_path / f"contract-{at}", made, "trl-sft")
        assert [each["content"] for each in bare["messages"] if each["role"] == "system"] == left


@pytest.mark.parametrize(
    ("entries", "to", "why"),
    [
        (labelled("right"), "trl-preference", "nothing to compare.*pairs are made from rows with repairs"),
        (rows("right"), "trl-kto", "a turn without a label .*dataset label"),
        (rows("right"), "verifier", "a row without a label .*dataset label"),
        (_spoiled(asks=False, says="x"), "trl-sft", "no user turn.*import requests together with their answers"),
        ([], "sharegpt", "the input has no rows"),
    ],
)
def test_an_export_without_examples_says_why(tmp_path: Path, entries: list[Json], to: str, why: str) -> None:
    made = export([write(tmp_path / "a.jsonl", entries)], tmp_path / "out.jsonl", to=to)
    assert made.examples == 0 and re.search(why, made.why_empty)
    assert export([tmp_path / "a.jsonl"], tmp_path / "b.jsonl", to=to).why_empty == made.why_empty


# -- the source document's own rows ------------------------------------------------------------------------------------

# The fields of `forge-dataset-capture/v1`, and of the objects in it.
FORGE_FIELDS: dict[str, set[str]] = {
    "": {
        *("schema_version", "kind", "example_group_id", "source_bucket", "user_request", "workflow_state"),
        *("available_tools", "candidate_call", "tool_result", "proxy_trace", "metadata"),
    },
    "workflow_state": {"required_steps", "completed_steps", "pending_steps", "terminal_tools", "recent_errors"},
    "candidate_call": {"name", "arguments"},
    "tool_result": {"status", "content"},
    "proxy_trace": {
        *("domain", "scenario", "run_index", "turn", "call_index", "tool_call_id", "response_id", "finish_reason"),
        "model",
    },
    "metadata": {"private_agent_log", "public_export_allowed", "provenance"},
    "provenance": {"source", "captured_at_unix_ms", "domain", "scenario", "run_index"},
}


def test_forge_rows_have_the_fields_of_their_schema_and_no_other(tmp_path: Path) -> None:
    found = exported(tmp_path, labelled(), "forge-capture")
    assert len(found) == 6
    for row in found:
        assert faults(row) == []
        assert row["schema_version"] == "forge-dataset-capture/v1" and row["kind"] == "tool_call_candidate"
        parts = {"": row, **row, "provenance": row["metadata"]["provenance"]}
        assert {name: set(parts[name]) for name in FORGE_FIELDS} == FORGE_FIELDS
        assert row["available_tools"][-1]["name"] == "respond"
        assert set(row["available_tools"][0]) == {"name", "description", "parameters"}
        assert row["workflow_state"]["terminal_tools"] == ["respond"]
        assert (row["metadata"]["private_agent_log"], row["metadata"]["public_export_allowed"]) == (True, False)


@given(turns=st.lists(CALLS, min_size=1, max_size=3))
def test_forge_rows_out_and_back_are_the_same_calls_of_the_same_run(turns: list[list[tuple[str, Json]]]) -> None:
    before = [row for row in run_of(turns) if "candidate_call" in row]
    sent = list(SHAPES["forge-capture"].examples(CapturedConversation(before), ShapeOptions()))
    back = list(rows_of({"schema_version": "forge-dataset-capture/v1", "rows": sent}, group="x", kind="capture"))
    for one, other in zip(before, back, strict=True):
        assert faults(other) == []
        for name in ("example_group_id", "candidate_call", "tool_result", "proxy_trace"):
            assert other[name] == one[name], name
        assert other["available_tools"] == one["available_tools"]
        times = [row["metadata"]["provenance"]["captured_at_unix_ms"] for row in (one, other)]
        assert times[0] == times[1]
