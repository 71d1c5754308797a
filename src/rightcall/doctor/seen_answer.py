"""An answer as a strict client reads it: what it says, and the calls as they were sent, nothing mended.

seen = see(raw, "chat", stream=True)
seen.calls[0].arguments         '{"city": "Oslo"}', as it stood on the wire

What cannot be read is left out here; what is wrong with the wire is told by `wire_faults`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rightcall.api_names import Api
from rightcall.doctor.raw_answer import RawAnswer
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.strict_json import Undecodable
from rightcall.testing.conformance.streamed_events import events_in, read_json
from rightcall.types import Json


class SeenCall(msgspec.Struct, kw_only=True):
    """A call as it was sent. Its arguments should be a text where `as_text`, else an object."""

    id: Any = None
    name: Any = ""
    pieces: list[Any] = []  # of the arguments: texts that belong together, or whatever stood in their place
    as_text: bool = True

    @property
    def arguments(self) -> Any:
        """As they stood on the wire; None where there were none."""
        given = [piece for piece in self.pieces if piece is not None]
        odd = [piece for piece in given if not isinstance(piece, str)]
        return odd[-1] if odd else "".join(given) if given else None

    @property
    def value(self) -> Any:
        """What a client gets of the arguments; None where they cannot be read."""
        given = self.arguments
        if not self.as_text:
            return given
        value = read_json(given) if isinstance(given, str) else None
        return None if isinstance(value, Undecodable) else value


class SeenAnswer(msgspec.Struct, kw_only=True):
    """What an answer says. `finish` is the server's own word, `turn` what a client keeps of it for its history,
    `error` an error that came in place of an answer, or in the middle of it."""

    said: list[str] = []
    thought: list[str] = []
    calls: list[SeenCall] = []
    finish: str = ""
    prompt_tokens: int | None = None
    written_tokens: int | None = None
    turn: list[Json] = []
    error: str = ""
    is_json: bool = True

    @property
    def text(self) -> str:
        return "".join(self.said)

    @property
    def reasoning(self) -> str:
        return "".join(self.thought)

    @property
    def is_cut(self) -> bool:
        return self.finish in ("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "incomplete")

    def count(self, usage: Any, prompt: str, written: str) -> None:
        found = obj(usage) or {}
        self.prompt_tokens = _number(found.get(prompt), self.prompt_tokens)
        self.written_tokens = _number(found.get(written), self.written_tokens)


def _number(value: Any, before: int | None) -> int | None:
    return value if type(value) is int else before


def see(raw: RawAnswer, api: Api, *, stream: bool) -> SeenAnswer:
    """What a client of this dialect sees of the answer."""
    whole = _whole(raw.body)
    if stream and whole is None:
        payloads = [event.payload for event in events_in(raw.body, api) if event.payload is not None]
        if not payloads:
            return SeenAnswer(is_json=False)
        seen = _STREAMED[api](payloads)
        seen.error = next((_error(each) for each in payloads if _error(each)), seen.error)
        return seen
    if whole is None:
        return SeenAnswer(is_json=False)
    seen = _WHOLE[api](whole)
    seen.error = _error(whole)
    return seen


def _whole(body: bytes) -> Json | None:
    try:
        found = read_json(body.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _error(payload: Json) -> str:
    error = payload.get("error") or (payload if payload.get("type") == "error" else None)
    if not error:
        return ""
    return text((obj(error) or {}).get("message")) or (error if isinstance(error, str) else "no words")


# -- Chat --------------------------------------------------------------------------------------------------------------

_THOUGHTS = ("reasoning_content", "reasoning")


def _thought(message: Json) -> str:
    return next((text(message[name]) for name in _THOUGHTS if text(message.get(name))), "")


def _chat(body: Json) -> SeenAnswer:
    choice = next(iter(objects(body.get("choices"))), {})
    message = obj(choice.get("message")) or {}
    seen = SeenAnswer(said=[text(message.get("content"))], finish=text(choice.get("finish_reason")), turn=[message])
    seen.thought = [_thought(message)]
    for entry in objects(message.get("tool_calls")):
        function = obj(entry.get("function")) or {}
        seen.calls.append(SeenCall(id=entry.get("id"), name=function.get("name"), pieces=[function.get("arguments")]))
    seen.count(body.get("usage"), "prompt_tokens", "completion_tokens")
    return seen


def _chat_stream(payloads: Sequence[Json]) -> SeenAnswer:
    seen = SeenAnswer()
    by_index: dict[Any, SeenCall] = {}
    for payload in payloads:
        seen.count(payload.get("usage"), "prompt_tokens", "completion_tokens")
        for choice in objects(payload.get("choices"))[:1]:
            delta = obj(choice.get("delta")) or {}
            seen.said.append(text(delta.get("content")))
            seen.thought.append(_thought(delta))
            seen.finish = seen.finish or text(choice.get("finish_reason"))
            for entry in objects(delta.get("tool_calls")):
                _chat_piece(seen, by_index, entry)
    return seen


def _chat_piece(seen: SeenAnswer, by_index: dict[Any, SeenCall], entry: Json) -> None:
    """Clients put pieces together by their index; without one, they belong to the last call, or begin one."""
    function = obj(entry.get("function")) or {}
    key = str(entry.get("index", entry.get("id") or ("last" if seen.calls and not function.get("name") else object())))
    if key == "last" and seen.calls:
        call = seen.calls[-1]
    elif key in by_index:
        call = by_index[key]
    else:
        call = by_index[key] = SeenCall(id=entry.get("id"), name=function.get("name"))
        seen.calls.append(call)
    call.id = call.id or entry.get("id")
    call.name = call.name or function.get("name")
    call.pieces.append(function.get("arguments"))


# -- Responses ---------------------------------------------------------------------------------------------------------


def _responses(body: Json) -> SeenAnswer:
    seen = SeenAnswer(turn=objects(body.get("output")), finish=_response_finish(body))
    for item in seen.turn:
        _response_item(seen, item)
    seen.count(body.get("usage"), "input_tokens", "output_tokens")
    return seen


def _response_finish(response: Json) -> str:
    return text((obj(response.get("incomplete_details")) or {}).get("reason")) or text(response.get("status"))


def _response_item(seen: SeenAnswer, item: Json) -> None:
    kind = item.get("type")
    if kind == "function_call":
        seen.calls.append(SeenCall(id=item.get("call_id"), name=item.get("name"), pieces=[item.get("arguments")]))
    elif kind == "message":
        seen.said += [text(part.get("text")) for part in objects(item.get("content"))]
    elif kind == "reasoning":
        parts = [*objects(item.get("summary")), *objects(item.get("content"))]
        seen.thought += [text(part.get("text")) for part in parts]


def _responses_stream(payloads: Sequence[Json]) -> SeenAnswer:
    """Clients take the items that were done."""
    seen = SeenAnswer()
    for payload in payloads:
        kind, response = text(payload.get("type")), obj(payload.get("response")) or {}
        if kind == "response.output_item.done" and (item := obj(payload.get("item"))):
            seen.turn.append(item)
            _response_item(seen, item)
        elif kind in ("response.completed", "response.incomplete", "response.failed", "response.done"):
            seen.finish = _response_finish(response) or kind.removeprefix("response.")
            seen.count(response.get("usage"), "input_tokens", "output_tokens")
            if not seen.turn:
                for item in objects(response.get("output")):
                    _response_item(seen, item)
    return seen


# -- Messages ----------------------------------------------------------------------------------------------------------


def _messages(body: Json) -> SeenAnswer:
    seen = SeenAnswer(finish=text(body.get("stop_reason")))
    seen.turn = [{"role": "assistant", "content": body.get("content")}]
    for block in objects(body.get("content")):
        _block(seen, block)
    seen.count(body.get("usage"), "input_tokens", "output_tokens")
    return seen


def _block(seen: SeenAnswer, block: Json) -> None:
    if block.get("type") == "tool_use":
        given = block.get("input")
        seen.calls.append(SeenCall(id=block.get("id"), name=block.get("name"), pieces=[given], as_text=False))
    elif block.get("type") == "text":
        seen.said.append(text(block.get("text")))
    elif block.get("type") == "thinking":
        seen.thought.append(text(block.get("thinking")))


def _messages_stream(payloads: Sequence[Json]) -> SeenAnswer:
    seen = SeenAnswer()
    calls: dict[Any, SeenCall] = {}
    for payload in payloads:
        delta, index = obj(payload.get("delta")) or {}, payload.get("index")
        match payload.get("type"):
            case "message_start":
                seen.count((obj(payload.get("message")) or {}).get("usage"), "input_tokens", "output_tokens")
            case "content_block_start":
                block = obj(payload.get("content_block")) or {}
                if block.get("type") == "tool_use":
                    calls[index] = SeenCall(id=block.get("id"), name=block.get("name"))
                    seen.calls.append(calls[index])
                else:
                    _block(seen, block)
            case "content_block_delta":
                seen.said.append(text(delta.get("text")))
                seen.thought.append(text(delta.get("thinking")))
                if index in calls:
                    calls[index].pieces.append(delta.get("partial_json"))
            case "message_delta":
                seen.finish = seen.finish or text(delta.get("stop_reason"))
                seen.count(payload.get("usage"), "input_tokens", "output_tokens")
    return seen


# -- Ollama ------------------------------------------------------------------------------------------------------------


def _ollama(body: Json) -> SeenAnswer:
    seen = _ollama_stream([body])
    seen.turn = [obj(body.get("message")) or {}]
    return seen


def _ollama_stream(payloads: Sequence[Json]) -> SeenAnswer:
    seen = SeenAnswer()
    for payload in payloads:
        message = obj(payload.get("message")) or {}
        seen.said.append(text(message.get("content")))
        seen.thought.append(text(message.get("thinking")))
        for entry in objects(message.get("tool_calls")):
            function = obj(entry.get("function")) or {}
            given = function.get("arguments")
            seen.calls.append(SeenCall(id=entry.get("id"), name=function.get("name"), pieces=[given], as_text=False))
        if payload.get("done"):
            seen.finish = text(payload.get("done_reason")) or "stop"
        seen.count(payload, "prompt_eval_count", "eval_count")
    return seen


# -- Gemini ------------------------------------------------------------------------------------------------------------


def _gemini(body: Json) -> SeenAnswer:
    seen = _gemini_stream([body])
    candidate = next(iter(objects(body.get("candidates"))), {})
    seen.turn = [obj(candidate.get("content")) or {}]
    return seen


def _gemini_stream(payloads: Sequence[Json]) -> SeenAnswer:
    seen = SeenAnswer()
    for payload in payloads:
        for candidate in objects(payload.get("candidates"))[:1]:
            for part in objects((obj(candidate.get("content")) or {}).get("parts")):
                _gemini_part(seen, part)
            seen.finish = seen.finish or text(candidate.get("finishReason"))
        seen.count(payload.get("usageMetadata"), "promptTokenCount", "candidatesTokenCount")
    return seen


def _gemini_part(seen: SeenAnswer, part: Json) -> None:
    (seen.thought if part.get("thought") is True else seen.said).append(text(part.get("text")))
    if call := obj(part.get("functionCall")):
        given = call.get("args")
        seen.calls.append(SeenCall(id=call.get("id"), name=call.get("name"), pieces=[given], as_text=False))


# -- completions -------------------------------------------------------------------------------------------------------


def _completions_stream(payloads: Sequence[Json]) -> SeenAnswer:
    seen = SeenAnswer()
    for payload in payloads:
        seen.count(payload.get("usage"), "prompt_tokens", "completion_tokens")
        for choice in objects(payload.get("choices"))[:1]:
            seen.said.append(text(choice.get("text")))
            seen.finish = seen.finish or text(choice.get("finish_reason"))
    return seen


_WHOLE: dict[Api, Callable[[Json], SeenAnswer]] = {
    "chat": _chat,
    "responses": _responses,
    "messages": _messages,
    "ollama": _ollama,
    "gemini": _gemini,
    "completions": lambda body: _completions_stream([body]),
}
_STREAMED: dict[Api, Callable[[Sequence[Json]], SeenAnswer]] = {
    "chat": _chat_stream,
    "responses": _responses_stream,
    "messages": _messages_stream,
    "ollama": _ollama_stream,
    "gemini": _gemini_stream,
    "completions": _completions_stream,
}
