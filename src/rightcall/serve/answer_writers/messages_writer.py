"""Anthropic's Messages:

    event: content_block_delta
    data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}

One block is open at a time; indexes count from 0. No event type but Anthropic's own ever goes out: clients that check
each event refuse the stream.
"""

from __future__ import annotations

from typing import Any

from rightcall.providers.sdk_view import obj, objects, text
from rightcall.serve.answer_writer import AnswerEnd, AnswerHead, AnswerUsage
from rightcall.serve.answer_writers.ordered_writer import Open, OrderedWriter
from rightcall.serve.answer_writers.outgoing_call import OutgoingCall
from rightcall.serve.answer_writers.wire_json import encoded, quoted
from rightcall.types import Json, Reasoning, Reply, Text

_STOPS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "error": "max_tokens",  # it broke off: of the words that clients know, this is the true one
    "content_filter": "refusal",
    "pause_turn": "pause_turn",
}
_OURS = frozenset(("text", "thinking", "tool_use"))  # blocks that this writer writes
_ERRORS = frozenset(
    "invalid_request_error authentication_error billing_error permission_error not_found_error request_too_large "
    "rate_limit_error timeout_error api_error overloaded_error".split()
)
_OWN_MESSAGE = frozenset("id type role model content stop_reason stop_sequence usage".split())
_OWN_END = frozenset(("type", "delta", "usage"))
_END = b"}}\n\n"


def _frame(payload: Json) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (payload["type"].encode(), encoded(payload))


class MessagesWriter(OrderedWriter):
    """An answer in Anthropic's Messages."""

    def __init__(self, head: AnswerHead) -> None:
        super().__init__(head)
        self._next = 0  # the index of the block that is open, or comes next
        self._head_of_delta = b""
        self._passing: Any = None  # the server's index of the block that passes as it came
        self._citations: list[Json] = []  # of text that is still held back

    def _begun(self) -> bytes:
        message = {"id": self.head.id, "type": "message", "role": "assistant", "model": self.head.model, "content": []}
        usage = {"input_tokens": 0, "output_tokens": 0}
        fields = {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}
        return _frame({"type": "message_start", "message": fields})

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _opened(self, kind: Open) -> bytes:
        if kind == "text":
            self._deltas("text_delta", "text")
            started = self._started({"type": "text", "text": ""})
            cited = b"".join([self._delta({"type": "citations_delta", "citation": each}) for each in self._citations])
            self._citations.clear()
            return started + cited
        self._deltas("thinking_delta", "thinking")
        return self._started({"type": "thinking", "thinking": "", "signature": ""})

    def _deltas(self, kind: str, field: str) -> None:
        event = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d' % self._next
        self._head_of_delta = event + b',"delta":{"type":"%s","%s":' % (kind.encode(), field.encode())

    def _started(self, block: Json) -> bytes:
        return _frame({"type": "content_block_start", "index": self._next, "content_block": block})

    def _delta(self, delta: Json) -> bytes:
        return _frame({"type": "content_block_delta", "index": self._next, "delta": delta})

    def _closed(self, kind: Open) -> bytes:
        self._next += 1
        self._passing = None
        return b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n' % (self._next - 1)

    def _text(self, said: str) -> bytes:
        return self._head_of_delta + quoted(said) + _END

    def _thought(self, thought: str) -> bytes:
        return self._head_of_delta + quoted(thought) + _END

    def _signed(self, fields: Json) -> bytes:
        if fields.get("type") == "redacted_thinking":
            return self._turn_to("") + self._started(fields) + self._closed("passed")
        signature = text(fields.get("signature"))
        if not signature:
            return b""
        opened = b"" if self._open == "reasoning" else self._turn_to("reasoning")
        return opened + self._delta({"type": "signature_delta", "signature": signature})

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self, call: OutgoingCall) -> bytes:
        return self._call_begun(call) + self._call_piece(call.arguments) + self._closed("call")

    def _can_stream(self, call: OutgoingCall) -> bool:
        return True

    def _call_begun(self, call: OutgoingCall) -> bytes:
        self._deltas("input_json_delta", "partial_json")
        return self._started(_block(call, {}))

    def _call_piece(self, json: str) -> bytes:
        return self._head_of_delta + quoted(json) + _END

    def _call_ended(self, call: OutgoingCall, json: str, *, whole: bool) -> bytes:
        return self._closed("call")

    # -- what a server of this dialect sent besides --------------------------------------------------------------------

    def _passed(self, payload: Json) -> bytes:
        kind, index = text(payload.get("type")), payload.get("index")
        if kind == "content_block_start":
            return self._passed_block(obj(payload.get("content_block")) or {}, index)
        if self._open == "passed" and index == self._passing:
            if kind == "content_block_stop":
                return self._closed_open()
            return _frame({**payload, "index": self._next}) if kind == "content_block_delta" else b""
        if kind == "content_block_delta":
            return self._passed_delta(obj(payload.get("delta")) or {})
        if kind == "content_block_stop" and self._open == "reasoning":
            return self._closed_open()  # the next thinking has a signature of its own
        if kind == "message_delta":
            self._beside = payload
        return self.begin() + _PING if kind == "ping" else b""

    def _passed_block(self, block: Json, index: Any) -> bytes:
        if not block or block.get("type") in _OURS:
            return b""
        out = self._turn_to("passed")
        self._passing = index
        return out + self._started(block)

    def _passed_delta(self, delta: Json) -> bytes:
        if delta.get("type") == "signature_delta":
            return self._signed(delta)
        citation = delta.get("citation")
        if delta.get("type") != "citations_delta" or citation is None:
            return b""
        if self._open == "text":
            return self._delta(delta)
        self._citations.append(citation)
        return b""

    # -- the end -------------------------------------------------------------------------------------------------------

    def _finished(self, end: AnswerEnd, word: str) -> bytes:
        theirs = obj(end.beside.get("delta")) or {}
        delta = {**theirs, "stop_reason": _stop(word, theirs), "stop_sequence": theirs.get("stop_sequence")}
        beside = {key: value for key, value in end.beside.items() if key not in _OWN_END}
        ended = {"type": "message_delta", "delta": delta, "usage": messages_usage(end.usage), **beside}
        return _frame(ended) + b'event: message_stop\ndata: {"type":"message_stop"}\n\n'

    def _failed(self, message: str, code: str) -> bytes:
        kind = code if code in _ERRORS else "api_error"
        return _frame({"type": "error", "error": {"type": kind, "message": message}})

    def _sign_of_life(self) -> bytes:
        return _PING if self._has_begun else b": keep-alive\n\n"

    def whole(self, reply: Reply, end: AnswerEnd, given: Json | None = None) -> Json:
        parts, theirs = self.said_parts(reply), given or {}
        content = _whole_content(parts, theirs, objects(self._message_extras(reply).get("thinking")))
        stop = _stop(self.finish_word(end.finish), theirs)
        top = {"id": self.head.id, "type": "message", "role": "assistant", "model": self.head.model, "content": content}
        beside = {**theirs, **end.beside}
        beside = {key: value for key, value in beside.items() if key not in _OWN_MESSAGE and value is not None}
        ended = {"stop_reason": stop, "stop_sequence": theirs.get("stop_sequence")}
        return {**top, **ended, "usage": messages_usage(end.usage), **beside}


_PING = b'event: ping\ndata: {"type":"ping"}\n\n'


def _block(call: OutgoingCall, input: Any) -> Json:
    return {**call.extras, "type": "tool_use", "id": call.id, "name": call.name, "input": input}


def _content(part: Text | Reasoning | OutgoingCall) -> Json:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Reasoning):
        return {"type": "thinking", "thinking": part.text, "signature": ""}
    return _block(part, {} if part.call is None else part.call.arguments)


def _whole_content(parts: list[Text | Reasoning | OutgoingCall], given: Json, thinking: list[Json]) -> list[Json]:
    """The blocks of a message. Those of a server's own message stay as they are, signed and cited, where the text is
    still the same."""
    theirs = [block for block in objects(given.get("content")) if text(block.get("type")) not in ("", "tool_use")]
    theirs = [block for block in theirs if block.get("type") != "text" or text(block.get("text")).strip()]
    said = "".join([part.text for part in parts if isinstance(part, Text)])
    if theirs and said == "".join([text(block.get("text")) for block in theirs if block.get("type") == "text"]):
        return [*map(_signed, theirs), *[_content(part) for part in parts if isinstance(part, OutgoingCall)]]
    others = [block for block in theirs if block.get("type") not in (*_OURS, "redacted_thinking")]
    ours = [_content(part) for part in parts if not (thinking and isinstance(part, Reasoning))]
    return [*thinking, *others, *ours]


def _signed(block: Json) -> Json:
    """A thought that nobody signed has an empty signature: clients that check every field want one."""
    if block["type"] != "thinking":
        return block
    return {**block, "thinking": text(block.get("thinking")), "signature": text(block.get("signature"))}


def _stop(word: str, theirs: Json) -> str:
    """The server's own word, where it says the same (`stop_sequence` is an `end_turn`)."""
    stop = _STOPS.get(word, "end_turn")
    said = text(theirs.get("stop_reason"))
    return said if stop == "end_turn" and said == "stop_sequence" else stop


def messages_usage(usage: AnswerUsage) -> Json:
    """Tokens in this dialect's words: what was read from a cache is not counted as input once more."""
    cached = usage.cached or 0
    out: Json = {"input_tokens": max((usage.prompt or 0) - cached, 0), "output_tokens": usage.completion or 0}
    if usage.cached is not None:
        out["cache_read_input_tokens"] = cached
    return {**out, **usage.given}
