"""Answers of a correct server, in every dialect, whole and as a stream.

encode_answer(Output(text="Hi"), question)       Answer(events=[(None, {"object": "chat.completion.chunk", ...}), ...])
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from zoo.question import Json, Question
from zoo.script import Output, ScriptedCall

Event = tuple[str | None, Any]
_USAGE = (40, 9)  # tokens of the prompt and of the answer
_CREATED = 1_790_000_000


class Answer(NamedTuple):
    """The events of a stream, or a body. `breaks`: the connection is cut after it."""

    events: list[Event] | None = None
    body: Any = None
    status: int = 200
    kind: str = ""
    breaks: bool = False
    pause: float = 0.0  # seconds before the first event


def encode_answer(output: Output, question: Question) -> Answer:
    """Encode the output in the dialect of the question."""
    whole, stream = _ENCODERS[question.api]
    if question.stream:
        return Answer(events=list(stream(output, question)))
    return Answer(body=whole(output, question))


def pieces(text: str, most: int = 4) -> list[str]:
    step = max(1, -(-len(text) // most))
    return [text[at : at + step] for at in range(0, len(text), step)]


def _model(question: Question) -> str:
    return str(question.body.get("model") or "zoo")


def _id(question: Question, prefix: str) -> str:
    return f"{prefix}zoo{len(question.turns)}n{question.nth}"


def _arguments_object(call: ScriptedCall) -> Any:
    """Return the arguments where the dialect has an object."""
    return call.arguments if call.raw is None else call.raw


def _parse_arguments(call: ScriptedCall) -> Any:
    """Return the arguments as an object; text that is no JSON object stays text."""
    try:
        found = json.loads(call.wire)
    except (ValueError, TypeError):
        return call.wire
    return found if isinstance(found, dict) else call.wire


# -- chat --------------------------------------------------------------------------------------------------------------


def _chat_usage(question: Question) -> Json:
    prompt, answer = _USAGE[0] + len(json.dumps(question.body)) // 4, _USAGE[1]
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


def _chat_call(call: ScriptedCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.wire}}


def _chat_whole(output: Output, question: Question) -> Json:
    message: Json = {"role": "assistant", "content": output.text or None}
    if output.reasoning:
        message["reasoning_content"] = output.reasoning
    if output.calls:
        message["tool_calls"] = [_chat_call(call) for call in output.calls]
    finish = output.finish or ("tool_calls" if output.calls else "stop")
    return {
        "id": _id(question, "chatcmpl-"),
        "object": "chat.completion",
        "created": _CREATED,
        "model": _model(question),
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": _chat_usage(question),
    }


def _chat_stream(output: Output, question: Question) -> Iterator[Event]:
    base = {"id": _id(question, "chatcmpl-"), "object": "chat.completion.chunk", "created": _CREATED}
    base["model"] = _model(question)

    def chunk(delta: Json, finish: str | None = None) -> Event:
        return None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    yield from [chunk({"reasoning_content": piece}) for piece in pieces(output.reasoning)]
    yield from [chunk({"content": piece}) for piece in pieces(output.text)]
    for index, call in enumerate(output.calls):
        head = {"index": index, **_chat_call(call)}
        if not isinstance(call.wire, str):
            yield chunk({"tool_calls": [head]})
            continue
        yield chunk({"tool_calls": [{**head, "function": {"name": call.name, "arguments": ""}}]})
        for piece in pieces(call.wire, 3):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, output.finish or ("tool_calls" if output.calls else "stop"))
    yield None, {**base, "choices": [], "usage": _chat_usage(question)}
    yield None, "[DONE]"


# -- responses ---------------------------------------------------------------------------------------------------------


def _items(output: Output, question: Question) -> list[Json]:
    out: list[Json] = []
    if output.reasoning:
        out.append({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": output.reasoning}]})
    if output.text:
        text = {"type": "output_text", "text": output.text, "annotations": []}
        item = {"type": "message", "id": _id(question, "msg_"), "role": "assistant", "status": "completed"}
        out.append({**item, "content": [text]})
    for at, call in enumerate(output.calls):
        item = {"type": "function_call", "id": f"{_id(question, 'fc_')}{at}", "call_id": call.id, "name": call.name}
        out.append({**item, "arguments": call.wire, "status": "completed"})
    return out


def _response(output: Output, question: Question, *, done: bool) -> Json:
    body = {"id": _id(question, "resp_"), "object": "response", "created_at": _CREATED, "model": _model(question)}
    if not done:
        return {**body, "status": "in_progress", "output": []}
    counts = _chat_usage(question)
    names = ("input_tokens", "output_tokens", "total_tokens")
    usage = dict(zip(names, counts.values(), strict=True))
    ending: Json = {"status": "completed"}
    if output.finish == "length":
        ending = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return {**body, **ending, "output": _items(output, question), "usage": usage}


def _responses_whole(output: Output, question: Question) -> Json:
    return _response(output, question, done=True)


def _responses_stream(output: Output, question: Question) -> Iterator[Event]:
    number = -1

    def event(kind: str, **fields: Any) -> Event:
        nonlocal number
        number += 1
        return kind, {"type": kind, "sequence_number": number, **fields}

    yield event("response.created", response=_response(output, question, done=False))
    for index, item in enumerate(_items(output, question)):
        at = {"output_index": index, "item_id": item["id"]}
        for kind, fields in _item_events(item):
            yield event(kind, **({"output_index": index} if "item" in fields else at), **fields)
    whole = _response(output, question, done=True)
    yield event(f"response.{whole['status']}", response=whole)


def _item_events(item: Json) -> Iterator[tuple[str, Json]]:
    added = "response.output_item.added"
    if item["type"] == "function_call":
        wire = item["arguments"]
        yield added, {"item": {**item, "arguments": "" if isinstance(wire, str) else wire, "status": "in_progress"}}
        for piece in pieces(wire, 3) if isinstance(wire, str) else []:
            yield "response.function_call_arguments.delta", {"delta": piece}
        yield "response.function_call_arguments.done", {"arguments": wire}
    elif item["type"] == "message":
        (part,) = item["content"]
        where = {"content_index": 0}
        yield added, {"item": {**item, "content": [], "status": "in_progress"}}
        yield "response.content_part.added", {**where, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield "response.output_text.delta", {**where, "delta": piece}
        yield "response.output_text.done", {**where, "text": part["text"]}
        yield "response.content_part.done", {**where, "part": part}
    else:
        (part,) = item["summary"]
        where = {"summary_index": 0}
        yield added, {"item": {**item, "summary": []}}
        yield "response.reasoning_summary_part.added", {**where, "part": {**part, "text": ""}}
        yield "response.reasoning_summary_text.delta", {**where, "delta": part["text"]}
        yield "response.reasoning_summary_text.done", {**where, "text": part["text"]}
        yield "response.reasoning_summary_part.done", {**where, "part": part}
    yield "response.output_item.done", {"item": item}


# -- messages ----------------------------------------------------------------------------------------------------------


def _blocks(output: Output) -> list[Json]:
    out: list[Json] = []
    if output.reasoning:
        out.append({"type": "thinking", "thinking": output.reasoning, "signature": "c2lnbmVk"})
    if output.text:
        out.append({"type": "text", "text": output.text})
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _parse_arguments(call)} for call in output.calls
    ]
    return out + calls


def _message(output: Output, question: Question) -> Json:
    counts = _chat_usage(question)
    return {
        "id": _id(question, "msg_"),
        "type": "message",
        "role": "assistant",
        "model": _model(question),
        "content": _blocks(output),
        "stop_reason": output.finish or ("tool_use" if output.calls else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": counts["prompt_tokens"], "output_tokens": counts["completion_tokens"]},
    }


def _messages_stream(output: Output, question: Question) -> Iterator[Event]:
    def event(kind: str, **fields: Any) -> Event:
        return kind, {"type": kind, **fields}

    whole = _message(output, question)
    yield event("message_start", message={**whole, "content": [], "stop_reason": None})
    wires = iter([call.wire for call in output.calls])
    for index, block in enumerate(whole["content"]):
        kind = block["type"]
        empty: Json = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}.get(kind, {"input": {}})
        yield event("content_block_start", index=index, content_block={**block, **empty})
        for delta in _block_deltas(block, next(wires) if kind == "tool_use" else ""):
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=ending, usage={"output_tokens": whole["usage"]["output_tokens"]})
    yield event("message_stop")


def _block_deltas(block: Json, wire: Any) -> list[Json]:
    if block["type"] == "text":
        return [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    if block["type"] == "thinking":
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return [{"type": "thinking_delta", "thinking": block["thinking"]}, signed]
    split = pieces(wire, 3) if isinstance(wire, str) else [wire]
    return [{"type": "input_json_delta", "partial_json": piece} for piece in split]


# -- ollama ------------------------------------------------------------------------------------------------------------


def _ollama_line(question: Question, message: Json, **more: Any) -> Json:
    stamp = {"model": _model(question), "created_at": "2026-11-15T12:00:00.000000Z"}
    return {**stamp, "message": {"role": "assistant", "content": "", **message}, "done": False, **more}


def _ollama_end(output: Output, question: Question) -> Json:
    usage = _chat_usage(question)
    counts = {"prompt_eval_count": usage["prompt_tokens"], "eval_count": usage["completion_tokens"]}
    return {"done": True, "done_reason": output.finish or "stop", "total_duration": 1, **counts}


def _ollama_calls(output: Output) -> Json:
    calls = [{"function": {"name": call.name, "arguments": _arguments_object(call)}} for call in output.calls]
    return {"tool_calls": calls} if calls else {}


def _ollama_whole(output: Output, question: Question) -> Json:
    thinking = {"thinking": output.reasoning} if output.reasoning else {}
    message = {"content": output.text, **thinking, **_ollama_calls(output)}
    return _ollama_line(question, message, **_ollama_end(output, question))


def _ollama_stream(output: Output, question: Question) -> Iterator[Event]:
    yield from [(None, _ollama_line(question, {"thinking": piece})) for piece in pieces(output.reasoning)]
    yield from [(None, _ollama_line(question, {"content": piece})) for piece in pieces(output.text)]
    if output.calls:
        yield None, _ollama_line(question, _ollama_calls(output))
    yield None, _ollama_line(question, {}, **_ollama_end(output, question))


# -- gemini ------------------------------------------------------------------------------------------------------------


def _gemini_parts(output: Output) -> list[Json]:
    out: list[Json] = [{"text": output.reasoning, "thought": True}] if output.reasoning else []
    out += [{"text": output.text}] if output.text else []
    return out + [
        {"functionCall": {"id": call.id, "name": call.name, "args": _arguments_object(call)}} for call in output.calls
    ]


def _gemini_body(question: Question, parts: list[Json], finish: str | None) -> Json:
    counts = _chat_usage(question)
    names = ("promptTokenCount", "candidatesTokenCount", "totalTokenCount")
    usage = dict(zip(names, counts.values(), strict=True))
    ending = {"finishReason": finish} if finish else {}
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **ending}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "zoo", "responseId": _id(question, "")}


def _gemini_whole(output: Output, question: Question) -> Json:
    return _gemini_body(question, _gemini_parts(output), output.finish or "STOP")


def _gemini_stream(output: Output, question: Question) -> Iterator[Event]:
    parts = _gemini_parts(output) or [{"text": ""}]
    cut = [{**part, "text": piece} for part in parts if "text" in part for piece in pieces(part["text"]) or [""]]
    cut += [part for part in parts if "text" not in part]
    for at, part in enumerate(cut):
        yield None, _gemini_body(question, [part], (output.finish or "STOP") if at == len(cut) - 1 else None)


_ENCODERS: dict[str, Any] = {
    "chat": (_chat_whole, _chat_stream),
    "responses": (_responses_whole, _responses_stream),
    "messages": (_message, _messages_stream),
    "ollama": (_ollama_whole, _ollama_stream),
    "gemini": (_gemini_whole, _gemini_stream),
}


# -- bytes -------------------------------------------------------------------------------------------------------------


def encode_event(api: str, event: Event) -> bytes:
    """Return an event in its encoded form."""
    name, payload = event
    if isinstance(payload, bytes):
        return payload
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    if api == "ollama":
        return text.encode() + b"\n"
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def stream_kind(api: str) -> str:
    return "application/x-ndjson" if api == "ollama" else "text/event-stream"
