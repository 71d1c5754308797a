"""`dataset import`: lines of every log format, alone and together, and lines without a usable answer."""

import json
import pickle
import time
from pathlib import Path
from typing import Any

import pytest

from rightcall import Toolset
from rightcall.backends.cassette import load_cassette
from rightcall.backends.plain_prompt import write_as_text
from rightcall.backends.request import Request
from rightcall.capture.captured_rows import call_of, read_rows
from rightcall.datasets.importing import import_files
from rightcall.datasets.label import Labeller
from rightcall.datasets.log_rows import ImportedLine, ImportOptions, import_line, rows_of
from rightcall.datasets.logs import KINDS, detect_kind
from rightcall.datasets.schemas import faults
from rightcall.formats import find
from rightcall.types import Json
from support.captured import write
from support.format_sample import sampled

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}
FLAT: Json = WEATHER["function"]  # type: ignore[assignment]
ANTHROPIC_TOOL = {"name": "get_weather", "input_schema": FLAT["parameters"]}
GEMINI_TOOLS = [{"functionDeclarations": [FLAT]}]
CALL = {"name": "get_weather", "arguments": {"city": "Oslo", "days": "2"}}
ARGUMENT_TEXT = '{"city": "Oslo", "days": "2"}'
USER: Json = {"role": "user", "content": "Weather?"}
CHAT_CALL: Json = {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": ARGUMENT_TEXT}}
CHAT_TURN: Json = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}
RESULT: Json = {"role": "tool", "tool_call_id": "a", "content": "Sunny."}
TAGGED = f"<tool_call>\n{json.dumps(CALL)}\n</tool_call>"
AT = 1_763_200_000

# -- answers, whole and as streams -------------------------------------------------------------------------------------

COMPLETION: Json = {
    "id": "resp-1",
    "object": "chat.completion",
    "created": AT,
    "model": "gpt-4o",
    "choices": [{"index": 0, "message": CHAT_TURN, "finish_reason": "tool_calls"}],
    "usage": {"total_tokens": 7},
}
CHAT_REQUEST: Json = {"model": "gpt-4o", "messages": [USER], "tools": [WEATHER]}


def _chunk(delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "resp-1", "object": "chat.completion.chunk", "created": AT, "model": "gpt-4o", "choices": [choice]}


CHAT_CHUNKS: list[Json] = [
    _chunk({"role": "assistant", "tool_calls": [{**CHAT_CALL, "index": 0, "function": {"name": "get_weather"}}]}),
    _chunk({"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENT_TEXT[:9]}}]}),
    _chunk({"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENT_TEXT[9:]}}]}),
    _chunk({}, "tool_calls"),
]
TOOL_USE: Json = {"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "Oslo", "days": "2"}}
MESSAGE: Json = {
    "id": "resp-1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [TOOL_USE],
    "stop_reason": "tool_use",
}
MESSAGES_REQUEST: Json = {"model": "claude", "max_tokens": 9, "messages": [USER], "tools": [ANTHROPIC_TOOL]}
MESSAGES_EVENTS: list[Json] = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {**TOOL_USE, "input": {}}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": ARGUMENT_TEXT}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
]
ITEM: Json = {"type": "function_call", "id": "fc", "call_id": "a", "name": "get_weather", "arguments": ARGUMENT_TEXT}
RESPONSE: Json = {"id": "resp-1", "object": "response", "created_at": AT, "model": "gpt-4o", "output": [ITEM]}
RESPONSES_REQUEST: Json = {"model": "gpt-4o", "input": "Weather?", "tools": [{"type": "function", **FLAT}]}
RESPONSES_EVENTS: list[Json] = [
    {"type": "response.created", "response": {**RESPONSE, "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {**ITEM, "arguments": ""}},
    {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": ARGUMENT_TEXT},
    {"type": "response.output_item.done", "output_index": 0, "item": ITEM},
    {"type": "response.completed", "response": {**RESPONSE, "status": "completed"}},
]
FUNCTION_CALL: Json = {"functionCall": {"id": "a", "name": "get_weather", "args": {"city": "Oslo", "days": "2"}}}
CANDIDATES: Json = {
    "candidates": [{"content": {"role": "model", "parts": [FUNCTION_CALL]}, "finishReason": "STOP"}],
    "modelVersion": "gemini-2",
    "responseId": "resp-1",
    "createTime": "2025-11-15T09:46:40Z",
}
GEMINI_REQUEST: Json = {"contents": [{"role": "user", "parts": [{"text": "Weather?"}]}], "tools": GEMINI_TOOLS}


def events(payloads: list[Json]) -> str:
    return "".join([f"data: {json.dumps(payload)}\n\n" for payload in payloads])


def recorded_exchange(path: str, body: Json, *chunks: str) -> Json:
    request = {"method": "POST", "path": path, "body": body}
    return {"request": request, "response": {"status": 200, "headers": {}, "chunks": list(chunks), "delays": []}}


# One answer with one call and its request, in the shape of every log format.
EXCHANGES: dict[str, list[Json]] = {
    "chat": [{"request": CHAT_REQUEST, "response": COMPLETION}],
    "chat, as http logs have it": [{"request": {"body": json.dumps(CHAT_REQUEST)}, "response": {"body": COMPLETION}}],
    "chat, other words": [{"request_body": CHAT_REQUEST, "response_body": json.dumps(COMPLETION)}],
    "chat, the request laid flat": [{**CHAT_REQUEST, "response": COMPLETION}],
    "chat, input and output": [{"input": CHAT_REQUEST, "output": COMPLETION}],
    "chat, as a stream": [{"request": CHAT_REQUEST, "response": events(CHAT_CHUNKS) + "data: [DONE]\n\n"}],
    "chat, as a list of chunks": [{"request": CHAT_REQUEST, "response": CHAT_CHUNKS}],
    "messages": [{"request": MESSAGES_REQUEST, "response": MESSAGE, "timestamp": AT}],
    "messages, as a stream": [{"request": MESSAGES_REQUEST, "response": events(MESSAGES_EVENTS), "ts": AT * 1000}],
    "messages, as a list of events": [{"request": MESSAGES_REQUEST, "response": MESSAGES_EVENTS, "time": str(AT)}],
    "responses": [{"request": RESPONSES_REQUEST, "response": RESPONSE}],
    "responses, as a stream": [{"request": RESPONSES_REQUEST, "response": events(RESPONSES_EVENTS)}],
    "gemini": [{"request": GEMINI_REQUEST, "response": CANDIDATES}],
    "gemini, as a list of chunks": [{"request": GEMINI_REQUEST, "response": [CANDIDATES]}],
    "ollama": [
        {
            "request": {**CHAT_REQUEST, "model": "llama"},
            "response": {
                "model": "llama",
                "created_at": "2025-11-15T09:46:40Z",
                "message": {"role": "assistant", "content": "", "tool_calls": [{"function": CALL}]},
                "done": True,
            },
        }
    ],
    "cassette": [recorded_exchange("/v1/chat/completions", CHAT_REQUEST, json.dumps(COMPLETION))],
    "cassette of a stream": [
        recorded_exchange("/v1/chat/completions", CHAT_REQUEST, *events(CHAT_CHUNKS).splitlines(True))
    ],
    "cassette of messages": [
        {**recorded_exchange("/v1/messages", MESSAGES_REQUEST, *events(MESSAGES_EVENTS).splitlines(True))},
    ],
    "batch": [
        {"custom_id": "r-1", "method": "POST", "url": "/v1/chat/completions", "body": CHAT_REQUEST},
        {"id": "batch_req_1", "custom_id": "r-1", "response": {"status_code": 200, "body": COMPLETION}, "error": None},
    ],
    "batch of Responses": [
        {"id": "b", "custom_id": "r-1", "response": {"status_code": 200, "body": RESPONSE}, "error": None},
        {"custom_id": "r-1", "method": "POST", "url": "/v1/responses", "body": RESPONSES_REQUEST},
    ],
    "batch of Anthropic": [
        {"custom_id": "r-1", "params": MESSAGES_REQUEST, "created_at": AT},
        {"custom_id": "r-1", "result": {"type": "succeeded", "message": MESSAGE}},
    ],
    "batch of Gemini": [{"key": "r-1", "request": GEMINI_REQUEST}, {"key": "r-1", "response": CANDIDATES}],
}
# A whole conversation: a call, its result, an answer.
CONVERSATIONS: dict[str, Json] = {
    "chat": {"messages": [USER, CHAT_TURN, RESULT, {"role": "assistant", "content": "Sunny."}], "tools": [WEATHER]},
    "messages": {
        "system": "Be kind.",
        "messages": [
            USER,
            {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, TOOL_USE]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "Sunny."}]},
            {"role": "assistant", "content": "Sunny."},
        ],
        "tools": [ANTHROPIC_TOOL],
    },
    "responses": {
        "input": [
            USER,
            {"type": "reasoning", "summary": []},
            ITEM,
            {"type": "function_call_output", "call_id": "a", "output": "Sunny."},
        ],
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sunny."}]}],
        "tools": [{"type": "function", **FLAT}],
    },
    "gemini": {
        "contents": [
            *GEMINI_REQUEST["contents"],
            {"role": "model", "parts": [FUNCTION_CALL]},
            {"role": "user", "parts": [{"functionResponse": {"name": "get_weather", "response": {"text": "Sunny."}}}]},
            {"role": "model", "parts": [{"text": "Sunny."}]},
        ],
        "tools": GEMINI_TOOLS,
    },
    "sharegpt": {
        "conversations": [
            {"from": "human", "value": "Weather?"},
            {"from": "function_call", "value": json.dumps(CALL)},
            {"from": "observation", "value": "Sunny."},
            {"from": "gpt", "value": "Sunny."},
        ],
        "tools": json.dumps([FLAT]),
    },
    "hermes": {
        "conversations": [
            {"from": "system", "value": f"Tools: <tools>{json.dumps([WEATHER])}</tools>"},
            {"from": "human", "value": "Weather?"},
            {"from": "gpt", "value": TAGGED},
            {"from": "tool", "value": "<tool_response>\nSunny.\n</tool_response>"},
            {"from": "gpt", "value": "Sunny."},
        ]
    },
    "glaive": {
        "system": f"SYSTEM: You have access to the following functions -\n{json.dumps(FLAT, indent=4)}\n",
        "chat": "USER: Weather?\n\n\nASSISTANT: <functioncall> "
        f'{{"name": "get_weather", "arguments": \'{ARGUMENT_TEXT}\'}} <|endoftext|>\n\n\n'
        "FUNCTION RESPONSE: Sunny.\n\n\nASSISTANT: Sunny. <|endoftext|>\n\n\n",
    },
}
# Text written by a model.
TEXTS: dict[str, Json] = {
    "text": {"text": TAGGED, "prompt": "Weather?"},
    "output": {"instruction": "Weather?", "input": "", "output": TAGGED},
    "response": {"prompt": "Weather?", "response": TAGGED},
    "response to messages": {"messages": [USER], "response": TAGGED},
    "generated_text": {"prompt": "Weather?", "generated_text": TAGGED},
    "a pipeline's messages": {"generated_text": [USER, {"role": "assistant", "content": TAGGED}]},
    "a prompt that lists its tools": {
        "prompt": [{"role": "system", "content": json.dumps(FLAT)}, USER],
        "text": TAGGED,
    },
}
ALONE: dict[str, Json] = {
    "chat.completion": COMPLETION,
    "response": RESPONSE,
    "message": MESSAGE,
    "candidates": CANDIDATES,
    "a batch's result": EXCHANGES["batch"][1],
}


def import_lines(folder: Path, lines: list[Json], **options: Any) -> list[Json]:
    write(folder / "log.jsonl", lines)
    import_files([folder / "log.jsonl"], folder / "out.jsonl", refused=_never, **options)
    return [row for _, row in read_rows(folder / "out.jsonl") if isinstance(row, dict)]


def _never(where: object, why: str) -> None:
    raise AssertionError(f"{where} {why}")


def _assert_weather_call(row: Json) -> None:
    assert faults(row) == []
    call = call_of(row)
    assert (call.name, call.arguments) == ("get_weather", {"city": "Oslo", "days": 2})
    assert [repair.rule for repair in call.repairs] == ["scalar_type"]
    assert row["source_bucket"] == "imported_log"
    assert row["metadata"]["private_agent_log"] is True


@pytest.mark.parametrize("name", EXCHANGES)
def test_an_exchange_is_one_answer_with_its_ids_model_and_time(name: str, tmp_path: Path) -> None:
    (row,) = import_lines(tmp_path, EXCHANGES[name])
    _assert_weather_call(row)
    trace, provenance = row["proxy_trace"], row["metadata"]["provenance"]
    assert row["user_request"] == "Weather?" and row["messages"] == [USER]
    assert trace["model"] in ("gpt-4o", "claude", "gemini-2", "llama")
    assert trace["response_id"] == "resp-1" or name == "ollama"
    assert trace["tool_call_id"] == "a" or name == "ollama"
    assert provenance["captured_at_unix_ms"] == AT * 1000 or name == "cassette of messages"
    assert provenance.get("log_id") == ("r-1" if "batch" in name else None if name == "ollama" else "resp-1")


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_each_turn_of_a_conversation_is_a_row_with_its_result(name: str, tmp_path: Path) -> None:
    call, answer = import_lines(tmp_path, [CONVERSATIONS[name]])
    _assert_weather_call(call)
    result_text = '{"text":"Sunny."}' if name == "gemini" else "Sunny."
    assert call["tool_result"] == {"status": "ok", "content": result_text}
    assert answer["outcome"]["text"] == "Sunny."
    assert answer["workflow_state"]["completed_steps"] == ["get_weather"]
    results = [message for message in answer["messages"] if message["role"] == "tool"]
    assert results == [
        {"role": "tool", "tool_call_id": call_of(call).id, "name": "get_weather", "content": result_text},
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_model_output_is_read_under_every_usual_key(name: str, tmp_path: Path) -> None:
    (row,) = import_lines(tmp_path, [{**TEXTS[name], "id": 7, "model": "m"}], tools=Toolset([WEATHER]))
    _assert_weather_call(row)
    assert row["user_request"] == "Weather?"
    assert row["metadata"]["provenance"]["log_id"] == "7" and row["proxy_trace"]["model"] == "m"


@pytest.mark.parametrize("name", ALONE)
def test_an_answer_without_a_request_is_a_row_with_an_unknown_request(name: str, tmp_path: Path) -> None:
    (row,) = import_lines(tmp_path, [ALONE[name]], tools=Toolset([WEATHER]))
    _assert_weather_call(row)
    assert row["messages"] == [] and row["user_request"] == "(nothing was asked)"


def test_every_log_format_is_covered() -> None:
    lines = [*EXCHANGES.values(), *[[each] for each in (*CONVERSATIONS.values(), *TEXTS.values(), *ALONE.values())]]
    assert {detect_kind(line) for group in lines for line in group} | {"capture"} == set(KINDS)


def test_one_file_can_mix_log_formats_and_a_format_can_be_named(tmp_path: Path) -> None:
    lines = [line for name in ("chat", "messages", "cassette", "batch") for line in EXCHANGES[name]]
    assert len(import_lines(tmp_path, [*lines, *CONVERSATIONS.values()])) == 4 + 2 * len(CONVERSATIONS)
    (row,) = import_lines(tmp_path / "named", [{"messages": [USER], "response": COMPLETION}], kind="openai")
    assert row["proxy_trace"]["tool_call_id"] == "a"


def test_each_choice_of_an_answer_is_a_separate_conversation(tmp_path: Path) -> None:
    other = {"index": 1, "message": {"role": "assistant", "content": "Where?"}, "finish_reason": "stop"}
    several = {**COMPLETION, "choices": [*COMPLETION["choices"], other]}
    first, second = import_lines(tmp_path, [{"request": CHAT_REQUEST, "response": several}])
    assert first["candidate_call"]["name"] == "get_weather" and second["outcome"]["text"] == "Where?"
    assert second["example_group_id"] == first["example_group_id"] + "-choice-1"


# -- related lines -----------------------------------------------------------------------------------------------------


def _exchange_pair(answer: str = "Sunny.", request: str = "Weather?") -> list[Json]:
    """Return what an agent sends and receives: a call, and an answer after the result of the call."""
    first = {**CHAT_REQUEST, "messages": [{"role": "user", "content": request}]}
    second_request = {**first, "messages": [*first["messages"], {**CHAT_TURN, "content": ""}, RESULT]}
    second_answer = {
        **COMPLETION,
        "choices": [{"message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}],
    }
    return [{"request": first, "response": COMPLETION}, {"request": second_request, "response": second_answer}]


def test_exchanges_of_one_conversation_form_one_group_without_duplicate_turns(tmp_path: Path) -> None:
    one, other = _exchange_pair(), _exchange_pair("Rain.", "And in Bergen?")
    rows = import_lines(tmp_path, [one[0], other[0], other[1], one[1]])
    groups = [row["example_group_id"] for row in rows]
    assert groups[0] == groups[3] != groups[1] == groups[2]
    assert [(row["kind"], row["proxy_trace"]["turn"]) for row in rows if row["example_group_id"] == groups[0]] == [
        ("tool_call_candidate", 0),
        ("outcome", 1),
    ]
    assert [message["role"] for message in rows[3]["messages"]] == ["user", "assistant", "tool"]


def test_a_repeated_request_starts_a_second_conversation(tmp_path: Path) -> None:
    rows = import_lines(tmp_path, [*_exchange_pair(), *_exchange_pair()])
    assert [row["example_group_id"][-8:] for row in rows] == ["00000001", "00000001", "00000003", "00000003"]


def test_a_request_and_its_result_are_joined_across_files(tmp_path: Path) -> None:
    request, result = EXCHANGES["batch"]
    files = [write(tmp_path / "results.jsonl", [result]), write(tmp_path / "requests.jsonl", [request])]
    counts = import_files(files, tmp_path / "out.jsonl", refused=_never)
    assert counts["calls"] == 1
    (found,) = [row for _, row in read_rows(tmp_path / "out.jsonl") if isinstance(row, dict)]
    assert found["user_request"] == "Weather?"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (EXCHANGES["batch"][:1], "give the file of the results too"),
        ([*EXCHANGES["batch"], EXCHANGES["batch"][0]], "import one batch at a time"),
    ],
)
def test_batch_lines_that_cannot_be_joined_are_rejected(lines: list[Json], why: str, tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", lines)
    reasons: list[str] = []
    counts = import_files(
        [tmp_path / "log.jsonl"], tmp_path / "out.jsonl", refused=lambda at, reason: reasons.append(reason)
    )
    assert counts == {"refused": 1} and why in reasons[0]


def test_the_header_the_queries_and_the_failures_of_a_cassette_are_skipped(tmp_path: Path) -> None:
    failed: Json = recorded_exchange("/v1/chat/completions", CHAT_REQUEST, '{"error": "busy"}')
    failed["response"]["status"] = 503
    question = {"request": {"method": "GET", "path": "/props"}, "response": {"status": 404, "chunks": []}}
    probe = {**CHAT_REQUEST, "messages": [{"role": "user", "content": "Call the tool tool_probe now."}]}
    lines = [
        {"rightcall_cassette": 1, "api": "chat", "model": "m"},
        question,
        recorded_exchange("/v1/chat/completions", probe, json.dumps(COMPLETION)),
        failed,
        *EXCHANGES["cassette"],
    ]
    write(tmp_path / "tape.jsonl", lines)
    reasons: list[str] = []
    counts = import_files(
        [tmp_path / "tape.jsonl"],
        tmp_path / "out.jsonl",
        refused=_never,
        passed_over=lambda where, why: reasons.append(why),
    )
    assert (counts["calls"], counts["passed_over"]) == (1, 4)
    assert reasons == [
        "head of a cassette",
        "question about the server",
        "probe of the server",
        "answer that failed or broke off",
    ]


def test_a_real_cassette_is_imported_completely(tmp_path: Path) -> None:
    tape = Path(__file__).parent / "cassettes" / "smollm2.jsonl"
    counts = import_files([tape], tmp_path / "out.jsonl", refused=_never)
    rows = [row for _, row in read_rows(tmp_path / "out.jsonl") if isinstance(row, dict)]
    assert (
        counts["conversations"] == len(load_cassette(tape).exchanges) == len({row["example_group_id"] for row in rows})
    )
    assert counts["calls"] > 0 and all(faults(row) == [] for row in rows)
    assert {row["proxy_trace"]["model"] for row in rows} == {"smollm2"}
    assert all(row["proxy_trace"]["response_id"].startswith("chatcmpl-") for row in rows)
    assert all(len(row["available_tools"]) > 1 for row in rows)  # the prompt lists them


# -- reading -----------------------------------------------------------------------------------------------------------


def test_a_call_is_rescued_only_if_the_options_allow_it() -> None:
    bare = {"text": json.dumps(CALL), "tools": [WEATHER], "prompt": "Weather?"}
    assert ["call" in row for row in rows_of(bare, group="g")] == [True]
    assert ["call" in row for row in rows_of(bare, group="g", rescue="off")] == [False]
    thought = {"text": f"<think><tool_call>{json.dumps(CALL)}</tool_call></think>", "tools": [WEATHER], "prompt": "?"}
    assert ["call" in row for row in rows_of(thought, group="g")] == [True]
    assert ["call" in row for row in rows_of(thought, group="g", reasoning_calls="never")] == [False]


def test_a_rejected_call_is_imported_with_its_problem() -> None:
    log = {"text": '<tool_call>{"name": "get_weather", "arguments": {}}</tool_call>', "tools": [WEATHER]}
    (row,) = rows_of(log, group="g")
    assert [problem["code"] for problem in row["problems"]] == ["missing"]
    assert row["call"]["complete"] is True


def test_a_log_without_tools_is_imported_without_checking_names() -> None:
    (row,) = rows_of({"text": '<tool_call>{"name": "f", "arguments": {}}</tool_call>'}, group="g")
    assert row["problems"] == []
    assert "label" not in Labeller().label(row)


def test_json_written_by_a_model_is_text_and_not_a_server_answer() -> None:
    (row,) = rows_of({"request": CHAT_REQUEST, "response": json.dumps(CALL)}, group="g")
    assert row["candidate_call"]["name"] == "get_weather" and row["reply"] == json.dumps(CALL)


def test_results_are_matched_to_calls_by_id_name_or_position() -> None:
    def call(name: str, id: str) -> Json:
        return {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}

    for ids, results, wanted in (
        (("a", "b"), [{"tool_call_id": "b", "content": "2"}, {"tool_call_id": "a", "content": "1"}], ["1", "2"]),
        (("", ""), [{"name": "g", "content": "2"}, {"name": "f", "content": "1"}], ["1", "2"]),
        (("", ""), [{"content": "1"}, {"content": "2"}], ["1", "2"]),
    ):
        turn = {"role": "assistant", "tool_calls": [call("f", ids[0]), call("g", ids[1])]}
        rows = list(rows_of({"messages": [USER, turn, *[{"role": "tool", **each} for each in results]]}, group="g"))
        assert [row["tool_result"]["content"] for row in rows] == wanted


@pytest.mark.parametrize("format", sampled())
def test_results_in_a_text_prompt_are_imported_as_results(format: str) -> None:
    """The log contains the messages that a backend in text mode sends."""
    contents = [" Sunny,\n21 degrees. ", "</tool_response> [/TOOL_RESULTS] </response>"]
    called = {"name": "get_weather", "arguments": '{"city": "Oslo", "days": 2}'}
    calls = [{**CHAT_CALL, "id": id, "function": called} for id in ("a", "b")]
    results = [{"role": "tool", "tool_call_id": id, "content": each} for id, each in zip("ab", contents, strict=True)]
    history = [USER, {**CHAT_TURN, "tool_calls": calls}, *results, {"role": "user", "content": "And now?"}]
    sent = write_as_text(Request(messages=history, tools=Toolset([WEATHER])), find(format))
    rows = list(rows_of({"messages": [*sent, {"role": "assistant", "content": "Bye."}]}, group="g", format=format))
    assert [row["tool_result"]["content"].strip() for row in rows[:-1]] == [each.strip() for each in contents]
    assert [message["role"] for message in rows[-1]["messages"]][1:] == ["user", "assistant", "tool", "tool", "user"]


# -- lines without an answer -------------------------------------------------------------------------------------------

EMPTY: Json = {**COMPLETION, "choices": [{"message": {"role": "assistant", "content": ""}, "finish_reason": "stop"}]}
NOTHING: dict[str, str] = {
    '{"a": 1}': "unknown log format; its keys are 'a'",
    "{}": "unknown log format; its keys are none",
    "nonsense": "not JSON",
    "[]": "a row is a JSON object",
    '{"text": "x", "tools": [{"name": 1}]}': "name",
    '{"conversations": 1}': "unknown log format",
    '{"messages": []}': "no conversation in it",
    '{"messages": [{"role": "user", "content": "Hi"}]}': "there is no turn of a model in it",
    json.dumps({"request": CHAT_REQUEST, "response": EMPTY}): "the answer is empty",
    json.dumps({"request": CHAT_REQUEST, "response": {"error": {"message": "busy"}}}): "the server reported an error",
    '{"text": "", "prompt": "Hi"}': "the answer is empty",
    '{"schema_version": "rightcall-capture/v1"}': "read it as it is",
}


@pytest.mark.parametrize("line", NOTHING)
def test_a_line_without_an_answer_is_rejected_with_its_cause_and_the_others_are_read(line: str, tmp_path: Path) -> None:
    good = {**TEXTS["text"], "tools": [WEATHER]}
    (tmp_path / "log.jsonl").write_text(line + "\n" + json.dumps(good) + "\n")
    rejected: list[tuple[int, str]] = []
    counts = import_files(
        [tmp_path / "log.jsonl"],
        tmp_path / "out.jsonl",
        refused=lambda where, why: rejected.append((where.number, why)),
    )
    assert [number for number, _ in rejected] == [1] and NOTHING[line] in rejected[0][1]
    assert (counts["refused"], counts["conversations"], counts["calls"], counts["repairs"]) == (1, 1, 1, 1)


HOSTILE: list[Json] = [
    {"messages": [None, 1, {"role": 3}, {"role": "assistant", "tool_calls": {"a": 1}}], "tools": []},
    {"messages": [{"role": "tool", "content": [{"type": "image"}]}, {"role": "assistant", "content": [1]}]},
    {"conversations": [{"from": None, "value": None}, {"from": "function_call", "value": "[1, {}]"}, 3]},
    {"input": [{"type": "function_call"}, {"type": "x_call_output", "output": {"a": 1}}], "output": [None]},
    {"prompt": [{"role": "assistant", "content": {"a": 1}}], "completion": "x"},
    {"contents": [None, 3, {"role": "model", "parts": 1}, {"parts": [{"functionResponse": 1}]}], "tools": {"a": 1}},
    {"request": {"messages": [{"role": "assistant", "content": 1}]}, "response": [None]},
    {"request": {"method": "POST", "path": 1}, "response": {"chunks": [3]}},
    {"custom_id": 1, "body": {"messages": 3}, "response": {"body": "{"}},
    {"custom_id": {}, "response": {"status_code": "x", "body": {"choices": [{"message": None}]}}},
    {"chat": "ASSISTANT: <functioncall> {'name'", "system": "SYSTEM: [{"},
    {"chat": "ASSISTANT: <functioncall> [1]"},
    {"generated_text": [{"role": "assistant"}]},
    {"schema_version": "forge-dataset-capture/v1", "proxy_trace": 3},
    {"choices": 1, "object": "chat.completion", "created": "never", "id": ["x"]},
]


@pytest.mark.parametrize("line", HOSTILE)
def test_hostile_lines_give_valid_rows_or_a_reason(line: Json) -> None:
    line_result = import_line(line, "g", ImportOptions())
    assert all(faults(row) == [] for row in line_result.rows)
    assert line_result.rows or line_result.reason


def _long_lines(many: int) -> dict[str, Json]:
    """Return long lines by the part that is long."""
    turns = [message for at in range(many // 40) for message in (USER, {"role": "assistant", "content": f"{at}"})]
    return {
        "openers": {"text": "x", "prompt": [{"role": "system", "content": "{\n" * many}]},
        "tools that never end": {"text": "x", "prompt": [{"role": "system", "content": '{"a":\n' * many}]},
        "sides": {"chat": "USER: a\nASSISTANT: b\n" * 3, "system": "SYSTEM: " + "{[" * many},
        "history": {"request": {"messages": turns}, "response": {"role": "assistant", "content": "y"}},
        "tags": {"conversations": [{"from": "tool", "value": "<tool_response>" * many}, {"from": "gpt", "value": "y"}]},
        "events": {"request": CHAT_REQUEST, "response": CHAT_CHUNKS * (many // 400)},
    }


@pytest.mark.parametrize("name", _long_lines(40))
def test_the_time_of_a_line_is_proportional_to_its_length(name: str) -> None:
    def cost(many: int) -> float:
        line = _long_lines(many)[name]
        began = time.process_time()
        import_line(line, "g", ImportOptions())
        return time.process_time() - began

    short, long = min(cost(4_000) for _ in range(2)), min(cost(32_000) for _ in range(2))
    assert long < 0.02 + short * 8 * 4


def test_a_conversation_with_too_long_a_history_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rightcall.datasets.log_rows._MOST_HISTORY", 2_000)
    many = [each for at in range(40) for each in (USER, {**CHAT_TURN, "tool_calls": [CHAT_CALL]}, RESULT)]
    line_result = import_line({"messages": many, "tools": [WEATHER]}, "g", ImportOptions())
    assert line_result.is_refused and "split the conversation" in line_result.reason


def test_the_import_of_a_line_can_be_pickled() -> None:
    sent = pickle.dumps((import_line, EXCHANGES["chat"][0], "g", ImportOptions(tools=Toolset([WEATHER]))))
    work, *given = pickle.loads(sent)  # noqa: S301 - our own
    line_result: ImportedLine = pickle.loads(pickle.dumps(work(*given)))  # noqa: S301 - our own
    assert call_of(line_result.rows[0]).name == "get_weather" and line_result.end
