"""`dataset export` and `dataset import`: rows in the shapes that trainers read, and back to the same calls."""

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


def labelled_rows(*names: str) -> list[Json]:
    labeller = Labeller()
    return [labeller.label(row) for row in rows(*names)]


def export_rows(tmp_path: Path, entries: list[Json], to: str, **options: Any) -> list[Json]:
    write(tmp_path / "rows.jsonl", entries)
    export([tmp_path / "rows.jsonl"], tmp_path / "out.jsonl", to=to, **options)
    return [row for _, row in read_rows(tmp_path / "out.jsonl") if isinstance(row, dict)]


# -- prompts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_the_exported_prompt_ends_with_the_contract(tmp_path: Path, choice: Any) -> None:
    contracted = export_rows(tmp_path, labelled_rows("right"), "text", format="hermes", contract=choice)
    (tmp_path / "plain").mkdir()
    plain = export_rows(tmp_path / "plain", labelled_rows("right"), "text", format="hermes")
    assert [row["completion"] for row in contracted] == [row["completion"] for row in plain] != []
    for row, bare in zip(contracted, plain, strict=True):
        tools = Toolset(row["tools"])
        contract_text = contract(tools, format="hermes", require_action=choice == "required").text.strip()
        assert row["prompt"][0]["role"] == "system" and row["prompt"][0]["content"].endswith(contract_text)
        assert [each["role"] for each in row["prompt"]][1:] == [
            "user" if each["role"] == "tool" else each["role"] for each in bare["prompt"] if each["role"] != "system"
        ]
    with pytest.raises(CallerError, match="--contract is for --to text"):
        export_rows(tmp_path / "plain", labelled_rows("right"), "trl-sft", contract=choice)


def test_tool_names_equal_the_names_in_the_calls(tmp_path: Path) -> None:
    entries = json.loads(json.dumps(labelled_rows("right")).replace('"search_products"', '"shop.search"'))
    for to in ("openai-sft", "trl-sft", "text"):
        options = {"format": "hermes"} if to == "text" else {}
        (tmp_path / to).mkdir()
        found = export_rows(tmp_path / to, entries, to, **options)
        names = {tool["function"]["name"] for row in found for tool in row["tools"]}
        assert found and "shop.search" in names and "shop_search" not in names


# -- the shapes --------------------------------------------------------------------------------------------------------


def test_openai_rows_have_arguments_as_text_and_weight_0_for_bad_turns(tmp_path: Path) -> None:
    (row,) = export_rows(tmp_path, labelled_rows("retried"), "openai-sft")
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
    (row,) = export_rows(tmp_path, labelled_rows("parallel"), "openai-sft")
    assert row["parallel_tool_calls"] is True
    assert len(row["messages"][2]["tool_calls"]) == 2


def test_trl_rows_have_arguments_as_objects_and_only_good_turns(tmp_path: Path) -> None:
    found = export_rows(tmp_path, labelled_rows("right", "retried", "refused", "wrong"), "trl-sft")
    assert len(found) == 1
    call = found[0]["messages"][2]["tool_calls"][0]["function"]
    assert call == {"name": "add_to_cart", "arguments": {"product_id": "SKU-DOCK-1", "quantity": 2}}
    turns = export_rows(tmp_path / "turns", labelled_rows("right", "retried"), "trl-sft", turns=True)
    assert [row["completion"][0].get("tool_calls") is not None for row in turns] == [True, False, True, False]
    assert turns[2]["prompt"][2]["role"] == "assistant"  # the bad turn is in the prompt, which is not trained on


def test_a_repaired_call_is_preferred_to_the_original_call(tmp_path: Path) -> None:
    (row,) = export_rows(tmp_path, labelled_rows("repaired"), "trl-preference")
    assert row["chosen"][0]["tool_calls"][0]["function"]["arguments"]["quantity"] == 2
    assert row["rejected"] == [{"role": "assistant", "content": rows("repaired")[0]["reply"]}]
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]


def test_a_retried_call_is_preferred_to_the_bad_call_before_it(tmp_path: Path) -> None:
    (row,) = export_rows(tmp_path, labelled_rows("retried"), "trl-preference")
    assert row["chosen"][0]["tool_calls"][0]["function"]["arguments"]["quantity"] == 2
    assert '"quantity"' not in row["rejected"][0]["content"]
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]


def test_the_rejected_side_of_a_native_call_is_the_original_call(tmp_path: Path) -> None:
    entries = labelled_rows("repaired")
    function = {"name": "add_to_cart", "arguments": '{"product_id": "SKU-DOCK-1", "quantity": "2"}'}
    entries[0]["reply"] = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]}
    (row,) = export_rows(tmp_path, entries, "trl-preference")
    assert row["rejected"][0]["tool_calls"][0]["function"]["arguments"] == {"product_id": "SKU-DOCK-1", "quantity": "2"}
    function["arguments"] = '{"product_id": "SKU-DOCK-1", "quantity": 2'
    entries[0]["call"]["raw"] = function["arguments"]
    (row,) = export_rows(tmp_path / "cut", entries, "trl-preference")
    assert row["rejected"] == [{"role": "assistant", "content": function["arguments"]}]


def test_kto_rows_label_each_checked_turn_as_good_or_bad(tmp_path: Path) -> None:
    found = export_rows(tmp_path, labelled_rows("retried", "refused"), "trl-kto")
    assert [row["label"] for row in found] == [False, True, True, False]
    assert export_rows(tmp_path / "none", rows("right"), "trl-kto") == []


def test_sharegpt_sides_alternate_and_calls_are_json(tmp_path: Path) -> None:
    first, second = export_rows(tmp_path, labelled_rows("right", "parallel"), "sharegpt")
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


def test_verifier_rows_are_valid_and_have_the_label(tmp_path: Path) -> None:
    found = export_rows(tmp_path, labelled_rows(), "verifier")
    assert [row["label"] for row in found].count("deterministic_invalid") == 1
    assert all(faults(row) == [] for row in found)
    assert all(row["review"]["private_agent_log"] is True for row in found)
    assert export_rows(tmp_path / "none", rows("right"), "verifier") == []


@pytest.mark.parametrize("format", ["hermes", "qwen3_coder", "mistral", "llama4_pythonic", "harmony", "glm45"])
def test_text_completions_are_written_in_the_format_of_the_model(tmp_path: Path, format: str) -> None:
    found = export_rows(tmp_path, labelled_rows("right", "parallel"), "text", format=format)
    assert found
    for row in found:
        reply = formats.find(format).name
        assert row["format"] == reply
    calls = [call for row in found for call in _parsed_calls(row)]
    assert [call.name for call in calls] == ["add_to_cart", "get_product", "add_to_cart"]


def _parsed_calls(row: Json) -> Iterator[Call]:
    from rightcall import parse

    yield from parse(row["completion"], format=row["format"], tools=SHOP.tools).attempts


def test_rows_that_a_shape_cannot_represent_are_counted_with_their_reason(tmp_path: Path) -> None:
    text_and_call = [*conversation("g", (f"On it.\n{RIGHT}", "Done."))]
    exported = export([write(tmp_path / "a.jsonl", text_and_call)], tmp_path / "out.jsonl", to="sharegpt")
    assert exported.examples == 0
    assert exported.left_out == {"there is no place for text beside calls": 1}
    manifest = json.loads(Path(exported.manifest).read_text())
    assert manifest["left_out"] == exported.left_out


def test_rows_of_one_conversation_may_be_spread_over_several_files(tmp_path: Path) -> None:
    entries = labelled_rows()
    mixed = [entries[at] for at in (5, 0, 12, 3, 9, 1, 7, 2, 11, 4, 10, 6, 8)]
    files = [write(tmp_path / "a.jsonl", mixed[:6]), write(tmp_path / "b.jsonl", mixed[6:])]
    export(files, tmp_path / "mixed.jsonl", to="openai-sft")
    export([write(tmp_path / "c.jsonl", entries)], tmp_path / "whole.jsonl", to="openai-sft")
    apart, whole = [sorted((tmp_path / name).read_text().splitlines()) for name in ("mixed.jsonl", "whole.jsonl")]
    assert apart == whole and whole


def test_forge_rows_are_exported_with_a_history_built_from_them(tmp_path: Path) -> None:
    later = {
        **FORGE_ROW,
        "proxy_trace": {**FORGE_ROW["proxy_trace"], "turn": 1, "tool_call_id": "b"},
        "candidate_call": {"name": "get_product", "arguments": {"product_id": "SKU-DOCK-1"}},
    }
    (row,) = export_rows(tmp_path, [FORGE_ROW, later], "trl-sft")
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert row["messages"][2]["content"] == '{"cart_id":"cart-001"}'


def test_attempts_of_a_turn_are_distinguished() -> None:
    bad, good, *_ = labelled_rows("retried")
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
def test_invalid_options_are_rejected(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CallerError, match=message):
        export([write(tmp_path / "a.jsonl", rows("right"))], tmp_path / "out.jsonl", **options)


def test_an_invalid_row_ends_the_export_without_an_output_file(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", [*rows("right"), {"schema_version": "x"}])
    with pytest.raises(BadRows, match=r"a\.jsonl:3"):
        export([source], tmp_path / "out.jsonl", to="trl-sft")
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


# -- read back with the datasets library -------------------------------------------------------------------------------

MIXED: list[Json] = [{"x": 1, "y": None}, {"x": "one", "y": [1, "a", {"b": 2.5}]}, {"x": {"deep": [True]}}, {}]


def mixed_rows() -> list[Json]:
    """Return rows of calls whose arguments have another type in each row."""
    captured = []
    for at, arguments in enumerate(MIXED):
        call = Call("add_to_cart", arguments, json.dumps(arguments), f"c{at}")
        trace = CallTrace(domain="d", scenario="s", run_index=at, turn=0, model="m", tool_call_id=call.id)
        user = [{"role": "user", "content": "Go."}]
        shared: Any = {"group": f"g{at}", "request": "Go.", "tools": SHOP.tools, "reply": "x", "messages": user}
        message = {"role": "assistant", "content": ""}
        row = capture_row(call, trace=trace, assistant=message, result=StubOutcome("ok", 1), **shared)
        captured.append({**row, "label": {"label": "valid", "by": "test", "why": ""}})
    return captured


@pytest.fixture
def load_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load files with `datasets`, without network access and inside the folder of the test."""
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


def without_nulls(value: Any) -> Any:
    """Remove the keys that a column adds as null."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("container", ["jsonl", "parquet"])
def test_arguments_of_every_type_are_loaded_unchanged_by_datasets(
    tmp_path: Path, load_dataset: Any, container: str
) -> None:
    source, target = write(tmp_path / "a.jsonl", mixed_rows()), tmp_path / f"out.{container}"
    export([source], target, to="trl-sft")
    found = [row["messages"][1]["tool_calls"][0]["function"]["arguments"] for row in load_dataset(target)]
    assert found == MIXED


@pytest.mark.parametrize("to", list(SHAPES))
def test_parquet_and_json_lines_contain_the_same_rows_in_every_shape(
    tmp_path: Path, load_dataset: Any, to: str
) -> None:
    options: Any = {"to": to, "format": "hermes" if to == "text" else None}
    source = write(tmp_path / "a.jsonl", [*labelled_rows(), *mixed_rows()])
    export([source], tmp_path / "out.jsonl", **options)
    export([source], tmp_path / "out.parquet", **options)
    lines = [without_nulls(row) for _, row in read_rows(tmp_path / "out.jsonl")]
    assert [without_nulls(row) for row in load_dataset(tmp_path / "out.parquet")] == lines and lines


def test_parquet_is_compressed_private_and_marked(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    export([write(tmp_path / "a.jsonl", labelled_rows())], tmp_path / "out.parquet", to="trl-sft", turns=True)
    file = parquet.ParquetFile(tmp_path / "out.parquet")
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    marks = {"private": True, "shape": "trl-sft", "turns": True}
    assert json.loads(file.schema_arrow.metadata[b"rightcall"]) == marks
    assert (tmp_path / "out.parquet").stat().st_mode & 0o777 == 0o600


# -- export and import give the same calls -----------------------------------------------------------------------------

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


def conversation_rows(turns: list[list[tuple[str, Json]]]) -> list[Json]:
    """Return the rows of a conversation with these calls, turn by turn, and an answer."""
    messages: list[Json] = [{"role": "user", "content": "Go."}]
    captured: list[Json] = []
    for turn, calls in enumerate(turns):
        entries = [Call(name, given, json.dumps(given), f"c{turn}_{at}") for at, (name, given) in enumerate(calls)]
        functions = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.json}} for c in entries
        ]
        message = {"role": "assistant", "content": "", "tool_calls": functions}
        for at, call in enumerate(entries):
            trace = CallTrace(
                domain="d", scenario="s", run_index=0, turn=turn, model="m", call_index=at, tool_call_id=call.id
            )
            shared: Any = {"group": "g", "request": "Go.", "tools": OPEN, "messages": list(messages)}
            shared["captured_at_unix_ms"] = 1_763_200_000_000 + turn
            captured.append(
                capture_row(call, trace=trace, assistant=message, reply=message, result=StubOutcome("ok", 1), **shared)
            )
        results = [{"role": "tool", "tool_call_id": call.id, "name": call.name, "content": "1"} for call in entries]
        messages += [message, *results]
    trace = CallTrace(domain="d", scenario="s", run_index=0, turn=len(turns), model="m")
    end = outcome_row(group="g", request="Go.", tools=OPEN, trace=trace, messages=messages, reply="Done.", text="Done.")
    return [*captured, end]


def calls_in(example: Json) -> list[tuple[str, Json]]:
    found = [row for row in rows_of(json.loads(json.dumps(example)), group="g", repair="off") if "call" in row]
    assert not [problem for row in found for problem in row["problems"]]
    return [(call.name, call.arguments) for call in map(call_of, found)]


@pytest.mark.parametrize("to", ["openai-sft", "trl-sft", "sharegpt"])
@given(turns=st.lists(CALLS, min_size=1, max_size=3))
def test_export_then_import_gives_the_same_calls(to: str, turns: list[list[tuple[str, Json]]]) -> None:
    (example,) = SHAPES[to].examples(CapturedConversation(conversation_rows(turns)), ShapeOptions())
    assert isinstance(example, dict)
    assert calls_in(example) == [call for turn in turns for call in turn]


@given(turns=st.lists(CALLS, min_size=1, max_size=2))
def test_exported_single_turns_are_imported_with_the_same_calls(turns: list[list[tuple[str, Json]]]) -> None:
    found = list(SHAPES["trl-sft"].examples(CapturedConversation(conversation_rows(turns)), ShapeOptions(turns=True)))
    for at, example in enumerate(found):
        assert isinstance(example, dict)
        assert calls_in(example) == [call for turn in turns[: at + 1] for call in turn]


@given(turns=st.lists(CALLS, min_size=1, max_size=2))
def test_exported_checked_turns_are_imported_with_the_same_calls(turns: list[list[tuple[str, Json]]]) -> None:
    labelled_rows = [
        {**row, "label": {"label": "valid", "by": "scenario", "why": ""}} for row in conversation_rows(turns)
    ]
    found = list(SHAPES["trl-kto"].examples(CapturedConversation(labelled_rows), ShapeOptions()))
    assert [each["label"] for each in found if isinstance(each, dict)] == [True] * (len(turns) + 1)
    for at, example in enumerate(found):
        assert isinstance(example, dict)
        assert calls_in(example) == [call for turn in turns[: at + 1] for call in turn]


@given(turns=st.lists(CALLS, min_size=1, max_size=2))
def test_exported_preference_pairs_are_imported_with_the_chosen_calls(turns: list[list[tuple[str, Json]]]) -> None:
    receipt = {"rule": "scalar_type", "kind": "schema", "path": "/x", "before": "1", "after": "1"}
    repaired_rows = [
        {**row, "reply": "broken", "repairs": [receipt]} if "call" in row else row for row in conversation_rows(turns)
    ]
    found = list(SHAPES["trl-preference"].examples(CapturedConversation(repaired_rows), ShapeOptions()))
    assert len(found) == len(turns)
    for at, example in enumerate(found):
        assert isinstance(example, dict) and example["rejected"] == [{"role": "assistant", "content": "broken"}]
        assert calls_in(example) == [call for turn in turns[: at + 1] for call in turn]


@pytest.mark.parametrize("format", ["hermes", "mistral_v11", "llama3_json", "deepseek_v3", "kimi_k2"])
@given(turns=st.lists(CALLS, min_size=1, max_size=2))
def test_exported_text_is_imported_with_the_same_calls_or_omitted(
    format: str, turns: list[list[tuple[str, Json]]]
) -> None:
    options = ShapeOptions(format=formats.find(format))
    for at, example in enumerate(SHAPES["text"].examples(CapturedConversation(conversation_rows(turns)), options)):
        if isinstance(example, LeftOut):
            assert "cannot carry it" in str(example)
        else:
            assert calls_in(example) == [call for turn in turns[: at + 1] for call in turn]


# -- content that no export contains -----------------------------------------------------------------------------------


def _spoiled_rows(*, asks: bool, text: str) -> list[Json]:
    """Return conversations without a user turn or with this text as the model's answer."""
    spoiled_rows = [*labelled_rows("right"), *labelled_rows("repaired")]
    for row in spoiled_rows:
        row["messages"] = [each for each in row["messages"] if asks or each["role"] != "user"]
        if row["kind"] == "outcome":
            row["outcome"]["text"] = row["assistant"]["content"] = row["reply"] = text
    return spoiled_rows


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("text", ["", " \n", "Done."])
@pytest.mark.parametrize("to", list(SHAPES))
def test_every_example_has_a_user_turn_and_a_nonempty_answer(tmp_path: Path, to: str, asks: bool, text: str) -> None:
    options: Any = {"format": "hermes" if to == "text" else None}
    found = export_rows(tmp_path, _spoiled_rows(asks=asks, text=text), to, **options)
    assert bool(found) == asks
    for example in found:
        messages: list[Any] = example.get("messages") or example.get("prompt") or example.get("conversations") or []
        assert not messages or any(each.get("role", each.get("from")) in ("user", "human") for each in messages)
        answers = [example.get(key) for key in ("completion", "chosen", "rejected") if key in example] or messages[-1:]
        for answer in answers:
            last: Any = answer[-1] if isinstance(answer, list) else answer
            content = (
                last if isinstance(last, str) else last.get("tool_calls") or last.get("content") or last.get("value")
            )
            assert not isinstance(content, str) or content.strip()


def test_the_system_prompt_of_a_capture_is_omitted_unless_requested(tmp_path: Path) -> None:
    captured = labelled_rows("right")
    for row in captured:
        row["messages"][0]["content"] = SYSTEM
    (row,) = export_rows(tmp_path, captured, "trl-sft")
    assert [message["role"] for message in row["messages"]][:2] == ["user", "assistant"]
    (kept,) = export_rows(tmp_path / "kept", captured, "trl-sft", keep_system=True)
    assert kept["messages"][0] == {"role": "system", "content": SYSTEM}
    for row in captured:
        row["messages"][0]["content"] = f"{SYSTEM}\n\nTools: f"
    (mixed,) = export_rows(tmp_path / "mixed", captured, "trl-sft")
    assert mixed["messages"][0] == {"role": "system", "content": "Tools: f"}
    contracted = contract(SHOP.tools, format="hermes").text.strip()
    for at, (system_text, expected) in enumerate(
        ((f"{SYSTEM}\n\n{contracted}", []), (f"Hi.\n\n{contracted}", ["Hi."]))
    ):
        for row in captured:
            row["messages"][0]["content"] = system_text
        (bare,) = export_rows(tmp_path / f"contract-{at}", captured, "trl-sft")
        assert [each["content"] for each in bare["messages"] if each["role"] == "system"] == expected


@pytest.mark.parametrize(
    ("entries", "to", "why"),
    [
        (labelled_rows("right"), "trl-preference", "nothing to compare.*pairs are made from rows with repairs"),
        (rows("right"), "trl-kto", "a turn without a label .*dataset label"),
        (rows("right"), "verifier", "a row without a label .*dataset label"),
        (_spoiled_rows(asks=False, text="x"), "trl-sft", "no user turn.*import requests together with their answers"),
        ([], "sharegpt", "the input has no rows"),
    ],
)
def test_an_export_without_examples_reports_the_reason(tmp_path: Path, entries: list[Json], to: str, why: str) -> None:
    exported = export([write(tmp_path / "a.jsonl", entries)], tmp_path / "out.jsonl", to=to)
    assert exported.examples == 0 and re.search(why, exported.why_empty)
    assert export([tmp_path / "a.jsonl"], tmp_path / "b.jsonl", to=to).why_empty == exported.why_empty


# -- rows of forge-dataset-capture -------------------------------------------------------------------------------------

# The fields of `forge-dataset-capture/v1` and of its nested objects.
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


def test_forge_rows_have_exactly_the_fields_of_their_schema(tmp_path: Path) -> None:
    found = export_rows(tmp_path, labelled_rows(), "forge-capture")
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
def test_exported_forge_rows_are_imported_unchanged(turns: list[list[tuple[str, Json]]]) -> None:
    before = [row for row in conversation_rows(turns) if "candidate_call" in row]
    sent = list(SHAPES["forge-capture"].examples(CapturedConversation(before), ShapeOptions()))
    back = list(rows_of({"schema_version": "forge-dataset-capture/v1", "rows": sent}, group="x", kind="capture"))
    for one, other in zip(before, back, strict=True):
        assert faults(other) == []
        for name in ("example_group_id", "candidate_call", "tool_result", "proxy_trace"):
            assert other[name] == one[name], name
        assert other["available_tools"] == one["available_tools"]
        times = [row["metadata"]["provenance"]["captured_at_unix_ms"] for row in (one, other)]
        assert times[0] == times[1]
