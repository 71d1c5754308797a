"""Requests that servers reject for reasons a client cannot avoid: histories, fields, names, schemas, tools."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import pairwise

from zoo.bad_server import BadServer, Refusal
from zoo.question import Json, Question, dicts, text_of
from zoo.script import Output
from zoo.speech import Answer
from zoo.spoiling import each_payload, raw, until_feedback

RefusalRule = Callable[[Question], Refusal | None]
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def refuse_if(is_wrong: Callable[[Question], object], message: str, status: int = 400) -> RefusalRule:
    return lambda question: Refusal(message, status) if is_wrong(question) else None


# -- histories ---------------------------------------------------------------------------------------------------------


def is_poisoned(question: Question) -> bool:
    """Return whether the history has arguments that are no JSON."""
    texts = [call.get("arguments", (call.get("function") or {}).get("arguments")) for call in question.calls]
    return any(isinstance(text, str) and not _is_json(text) for text in texts)


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def ids_of(question: Question, *, results: bool) -> list[str]:
    if results:
        blocks = [block for turn in question.turns for block in dicts(turn.get("content"))]
        result_turns = [turn for turn in question.turns if "output" in turn or turn.get("role") == "tool"]
        found = [turn.get("tool_call_id") or turn.get("call_id") for turn in result_turns]
        return [str(id) for id in [*found, *[block["tool_use_id"] for block in blocks if "tool_use_id" in block]]]
    return [str(call.get("call_id") or call.get("id")) for call in question.calls]


def has_orphans(question: Question) -> bool:
    return not set(ids_of(question, results=True)) <= set(ids_of(question, results=False))


def has_null(question: Question) -> bool:
    return any("content" in turn and turn["content"] is None for turn in question.turns)


def does_not_alternate(question: Question) -> bool:
    roles = [turn["role"] for turn in question.turns if turn.get("role") in ("user", "assistant", "tool")]
    return any(a == b == "user" or (a == "tool" and b == "user") for a, b in pairwise(roles))


def has_parts(question: Question) -> bool:
    return any(isinstance(turn.get("content"), list) for turn in question.turns if turn.get("role") == "tool")


def has_long_ids(question: Question) -> bool:
    return any(not re.fullmatch(r"[a-zA-Z0-9]{9}", id) for id in ids_of(question, results=False))


# -- requests ----------------------------------------------------------------------------------------------------------


def has_odd_names(question: Question) -> bool:
    return any(not _NAME.fullmatch(tool.name) for tool in question.tools)


def has_empty_tools(question: Question) -> bool:
    return question.body.get("tools") == []


def has_strict(question: Question) -> bool:
    return '"strict"' in text_of({"tools": question.body.get("tools")})


def has_other_tools(question: Question) -> bool:
    return any(each.get("type") not in (None, "function") for each in dicts(question.body.get("tools")))


def has_hard_schema(question: Question) -> bool:
    offered = text_of({"tools": question.body.get("tools")})
    return '"maxLength": 10000' in offered or "(?!" in offered


def has_tools(question: Question) -> bool:
    return bool(question.body.get("tools"))


def answer_without_tools(output: Output, question: Question) -> Output:
    return Output(text="I cannot read files.")


def subtract_tool_tokens(answer: Answer, question: Question) -> Answer:
    """Do not count the tokens of the tools, which the model does not get."""

    def change(payload: Json, api: str, at: int) -> None:
        usage = payload.get("usage")
        if usage:
            usage["prompt_tokens"] -= len(json.dumps(question.body.get("tools"))) // 4

    return each_payload(change)(answer, question)


POISON = "every request after the broken call is refused"
SERVERS = [
    BadServer(
        "refuses_poisoned_history", "poisoned_history", POISON, apis=("chat", "responses"), scene="poisoned",
        refusal=refuse_if(is_poisoned, "parse error: [json.exception.parse_error.101] unexpected end of input", 500),
        reports="MoonshotAI/kimi-cli#1171 noonghunna/club-3090#1195 vllm-project/vllm#43995",
    ),
    BadServer(
        "refuses_orphans", "history_order", "a trimmed history is refused", apis=("chat", "responses", "messages"),
        scene="orphan", refusal=refuse_if(has_orphans, "messages with role 'tool' must be a response to a call"),
        reports="langchain-ai/langchain#33265 openclaw/openclaw#29220",
    ),
    BadServer(
        "refuses_null_content", "history_order", "Cannot subscript null", scene="after_result",
        refusal=refuse_if(has_null, "Cannot use 'in' operator: null value", 500), result="the answer",
        reports="ggml-org/llama.cpp#13178",
    ),
    BadServer(
        "refuses_two_of_one_role", "history_order", "no way to recover once a call was denied", scene="two_users",
        refusal=refuse_if(does_not_alternate, "Conversation roles must alternate user/assistant/user/assistant/..."),
        reports="mistralai/mistral-vibe#1006 SWE-agent/mini-swe-agent#759",
    ),
    BadServer(
        "refuses_long_ids", "bad_ids", "ids of another server are refused", result="the answer", scene="after_result",
        refusal=refuse_if(has_long_ids, "Tool call id must be a-z, A-Z, 0-9, with a length of 9."),
        reports="editor-code-assistant/eca#233",
    ),
    BadServer(
        "refuses_result_parts", "refused_results", "a result of several parts is refused", result="the answer",
        scene="result_parts", refusal=refuse_if(has_parts, "Invalid 'content': 'content' field must be a string"),
        reports="zhukunpenglinyutong/jetbrains-cc-gui#984 anomalyco/opencode#28859 vllm-project/vllm#39614",
    ),
    BadServer(
        "refuses_names", "refused_names", "one name takes down the request", scene="odd_names",
        apis=("chat", "responses", "messages"),
        refusal=refuse_if(has_odd_names, "Invalid 'tools[0].function.name': string does not match '^[a-zA-Z0-9_-]+$'"),
        reports="openai/codex#8174 github/copilot-cli#1879 microsoft/vscode#243602",
    ),
    BadServer(
        "refuses_empty_tools", "refused_fields", "a request without tools is refused", result="the answer",
        scene="empty_tools", refusal=refuse_if(has_empty_tools, "tools: List should have at least 1 item"),
        reports="open-webui/open-webui#26655",
    ),
    BadServer(
        "refuses_strict", "refused_fields", "a field that every client sends is refused", scene="strict",
        apis=("chat", "responses"),
        refusal=refuse_if(has_strict, "tools.0.function.strict: Extra inputs are not permitted"),
        reports="OpenCoworkAI/open-cowork#232 QuantumNous/new-api#2763 tensorzero/tensorzero#2805",
    ),
    BadServer(
        "refuses_other_tools", "bad_translation", "tools that are no functions take down the request",
        apis=("responses",), scene="other_tools",
        refusal=refuse_if(has_other_tools, "'type' of tool must be 'function'"),
        reports="openai/codex#10635 ggml-org/llama.cpp#20156 tashfeenahmed/freellmapi#96",
    ),
    BadServer(
        "refuses_hard_schemas", "schema_kills_grammar", "one schema takes down every tool", scene="hard_schema",
        refusal=refuse_if(has_hard_schema, "Failed to initialize samplers: failed to parse grammar"),
        settings={"mode": "auto"},
        reports="firecrawl/firecrawl#4512 codefuturist/email-mcp#58 QwenLM/qwen-code#10520",
    ),
    BadServer(
        "grammar_fails_open", "schema_kills_grammar", "a constraint that is dropped without a word",
        result="the call that the model made when it was told",
        output=until_feedback(raw(lambda given: '{"path": ["hello.txt"]}')),
        reports="ggml-org/llama.cpp#19051",
    ),
    BadServer(
        "refuses_tools", "no_native_tools", "no tools for this model", apis=("chat", "ollama"),
        refusal=refuse_if(has_tools, "registry.ollama.ai/library/gemma3:latest does not support tools"),
        settings={"mode": "auto"}, reports="pydantic/pydantic-ai#2170 aaif-goose/goose#6690 continuedev/continue#6723",
    ),
    BadServer(
        "drops_tools", "no_native_tools", "a model that never heard of its tools", output=answer_without_tools,
        damage=subtract_tool_tokens,
        settings={"mode": "auto"}, reports="aaif-goose/goose#4485 aaif-goose/goose#8269",
    ),
]  # fmt: skip
