"""Answers of every dialect, whole and as a stream that is split at random.

    whole, stream = WIRES["chat"]
    whole(Answer("", "Hi", ()))        the response        stream(answer, Cutter(data))        its chunks

Text, reasoning, names and arguments come in pieces. `ENDS` has each provider's values for how the answer ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from hypothesis import strategies as st

Json = dict[str, Any]


class WireCall(NamedTuple):
    id: str
    name: str
    arguments: str  # JSON text


class Answer(NamedTuple):
    reasoning: str
    text: str
    calls: tuple[WireCall, ...]
    end: str = "stop"  # one of `ENDS`


class Cutter:
    """Split texts and merge chunks, at places that hypothesis chooses."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw = data.draw

    def pieces(self, text: str) -> list[str]:
        places = sorted(self.draw(st.lists(st.integers(0, len(text)), max_size=4)))
        edges = [0, *places, len(text)]
        return [text[a:b] for a, b in pairwise(edges)]

    def yes(self) -> bool:
        return self.draw(st.booleans())


# -- every dialect, whole and streamed ---------------------------------------------------------------------------------


USAGE = {"total_tokens": 3}

# The value of each provider for how the answer ended. Providers without a value are not tested.
ENDS: dict[str, dict[str, str]] = {
    "stop": {"chat": "stop", "responses": "", "messages": "end_turn", "gemini": "STOP", "ollama": "stop"},
    "length": {
        "chat": "length",
        "responses": "max_output_tokens",
        "messages": "max_tokens",
        "gemini": "MAX_TOKENS",
        "ollama": "length",
    },
    "content_filter": {
        "chat": "content_filter",
        "responses": "content_filter",
        "messages": "refusal",
        "gemini": "SAFETY",
    },
    "error": {"chat": "error", "responses": "a reason of tomorrow", "gemini": "OTHER"},
}


def chat_whole(answer: Answer) -> Json:
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in answer.calls
    ]
    message = {"role": "assistant", "content": answer.text, "reasoning_content": answer.reasoning, "tool_calls": calls}
    return {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": ENDS[answer.end]["chat"]}],
        "usage": USAGE,
    }


def chat_stream(answer: Answer, cut: Cutter) -> Iterator[Json]:
    def chunk(**delta: Any) -> Json:
        return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

    yield chunk(role="assistant", content="")
    yield from (chunk(reasoning_content=piece) for piece in cut.pieces(answer.reasoning))
    yield from (chunk(content=piece, tool_calls=None) for piece in cut.pieces(answer.text))
    for i, call in enumerate(answer.calls):
        yield chunk(
            tool_calls=[{"index": i, "id": call.id, "type": "function", "function": {"name": "", "arguments": ""}}]
        )
        for piece in cut.pieces(call.name):
            yield chunk(tool_calls=[{"index": i, "function": {"name": piece}}])
        for piece in cut.pieces(call.arguments):
            yield chunk(tool_calls=[{"index": i, "function": {"arguments": piece}}])
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": ENDS[answer.end]["chat"]}]}
    yield {"choices": [], "usage": USAGE}


def responses_whole(answer: Answer) -> Json:
    output: list[Json] = []
    if answer.reasoning:
        output.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": answer.reasoning}]})
    if answer.text:
        output.append({"type": "message", "content": [{"type": "output_text", "text": answer.text}]})
    for i, c in enumerate(answer.calls):
        call = {"id": f"fc_{i}", "call_id": c.id, "name": c.name, "arguments": c.arguments}
        output.append({"type": "function_call", **call})
    ending: Json = {"status": "completed"}
    if answer.end != "stop":
        ending = {"status": "incomplete", "incomplete_details": {"reason": ENDS[answer.end]["responses"]}}
    return {"object": "response", **ending, "output": output}


def responses_stream(answer: Answer, cut: Cutter) -> Iterator[Json]:
    whole = responses_whole(answer)
    yield {"type": "response.created", "response": {"object": "response", "output": []}}
    has_deltas = cut.yes()
    for i, item in enumerate(whole["output"]):
        at = {"output_index": i, "item_id": item.get("id", f"x{i}")}
        empty = (
            {**item, "arguments": ""} if "arguments" in item else {"type": item["type"], "content": [], "summary": []}
        )
        yield {"type": "response.output_item.added", "item": empty, **at}
        if item["type"] == "function_call":
            for piece in cut.pieces(item["arguments"]) if has_deltas else []:
                yield {"type": "response.function_call_arguments.delta", "delta": piece, **at}
            yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"], **at}
        elif item["type"] == "reasoning":
            for piece in cut.pieces(answer.reasoning) if has_deltas else []:
                yield {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": piece, **at}
        else:
            for piece in cut.pieces(answer.text) if has_deltas else []:
                yield {"type": "response.output_text.delta", "content_index": 0, "delta": piece, **at}
            yield {"type": "response.output_text.done", "text": answer.text, **at}
        yield {"type": "response.output_item.done", "item": item, **at}
    yield {"type": f"response.{whole['status']}", "response": whole}


def anthropic_whole(answer: Answer) -> Json:
    content: list[Json] = []
    if answer.reasoning:
        content.append({"type": "thinking", "thinking": answer.reasoning, "signature": "s"})
    if answer.text:
        content.append({"type": "text", "text": answer.text})
    content += [
        {"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)} for c in answer.calls
    ]
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": ENDS[answer.end]["messages"]}


def compact(arguments: str) -> str:
    return json.dumps(json.loads(arguments), ensure_ascii=False, separators=(",", ":"))


def anthropic_stream(answer: Answer, cut: Cutter) -> Iterator[Json]:
    arguments = iter(call.arguments for call in answer.calls)
    yield {"type": "message_start", "message": {"type": "message", "role": "assistant", "content": []}}
    yield {"type": "ping"}
    for i, block in enumerate(anthropic_whole(answer)["content"]):
        kind = block["type"]
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}.get(kind, {**block, "input": {}})
        yield {"type": "content_block_start", "index": i, "content_block": {"type": kind, **empty}}
        wire = compact(next(arguments)) if kind == "tool_use" else block[kind]
        name, key = {"tool_use": ("input_json_delta", "partial_json")}.get(kind, (f"{kind}_delta", kind))
        for piece in cut.pieces(wire):
            yield {"type": "content_block_delta", "index": i, "delta": {"type": name, key: piece}}
        if "signature" in block:
            signed = {"type": "signature_delta", "signature": block["signature"]}
            yield {"type": "content_block_delta", "index": i, "delta": signed}
        yield {"type": "content_block_stop", "index": i}
    yield {"type": "message_delta", "delta": {"stop_reason": ENDS[answer.end]["messages"]}}
    yield {"type": "message_stop"}


def gemini_whole(answer: Answer) -> Json:
    parts: list[Json] = [{"text": answer.reasoning, "thought": True}] if answer.reasoning else []
    parts += [{"text": answer.text}] if answer.text else []
    parts += [{"functionCall": {"id": c.id, "name": c.name, "args": json.loads(c.arguments)}} for c in answer.calls]
    return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": ENDS[answer.end]["gemini"]}]}


def gemini_stream(answer: Answer, cut: Cutter) -> Iterator[Json]:
    for part in gemini_whole(answer)["candidates"][0]["content"]["parts"]:
        pieces = [{**part, "text": piece} for piece in cut.pieces(part["text"])] if "text" in part else [part]
        for piece in pieces:
            yield {"candidates": [{"content": {"role": "model", "parts": [piece]}, "index": 0}]}
    last = {"content": {"parts": [{"text": ""}]}, "finishReason": ENDS[answer.end]["gemini"]}
    yield {"candidates": [last], "usageMetadata": {}}


def ollama_whole(answer: Answer) -> Json:
    calls = [{"id": c.id, "function": {"name": c.name, "arguments": json.loads(c.arguments)}} for c in answer.calls]
    message = {"role": "assistant", "content": answer.text, "thinking": answer.reasoning, "tool_calls": calls}
    return {"model": "m", "message": message, "done": True, "done_reason": ENDS[answer.end]["ollama"]}


def ollama_stream(answer: Answer, cut: Cutter) -> Iterator[Json]:
    def chunk(**message: Any) -> Json:
        return {"model": "m", "message": {"role": "assistant", "content": "", **message}, "done": False}

    yield from (chunk(thinking=piece) for piece in cut.pieces(answer.reasoning))
    yield from (chunk(content=piece) for piece in cut.pieces(answer.text))
    calls = ollama_whole(answer)["message"]["tool_calls"]
    yield from (chunk(tool_calls=[call]) for call in calls) if cut.yes() else [chunk(tool_calls=calls)]
    yield {**chunk(), "done": True, "done_reason": ENDS[answer.end]["ollama"]}


WIRES: dict[str, tuple[Callable[[Answer], Json], Callable[[Answer, Cutter], Iterator[Json]]]] = {
    "chat": (chat_whole, chat_stream),
    "responses": (responses_whole, responses_stream),
    "messages": (anthropic_whole, anthropic_stream),
    "gemini": (gemini_whole, gemini_stream),
    "ollama": (ollama_whole, ollama_stream),
}
