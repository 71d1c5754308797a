"""Ollama's `/api/chat`, one JSON object a line:

    {"model": "m", "created_at": "2026-01-01T00:00:00Z",
     "message": {"role": "assistant", "content": "Hi"}, "done": false}

Calls are whole and their arguments objects. A blank line breaks clients, so a sign of life is a line that says nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime

from rightcall.providers.sdk_view import obj
from rightcall.serve.answer_writer import AnswerEnd, AnswerHead, AnswerUsage
from rightcall.serve.answer_writers.ordered_writer import OrderedWriter
from rightcall.serve.answer_writers.outgoing_call import OutgoingCall
from rightcall.serve.answer_writers.server_fields import unwritten
from rightcall.serve.answer_writers.wire_json import encoded, quoted
from rightcall.types import Json, Reasoning, Reply, Text

_DONE_REASONS = {"length": "length", "error": "length"}
_TAIL = b'},"done":false}\n'
_OWN_MESSAGE = frozenset(("role", "content", "thinking", "tool_calls"))
_OWN_TOP = frozenset(
    "model created_at message done done_reason error total_duration load_duration prompt_eval_count "
    "prompt_eval_duration eval_count eval_duration".split()
)


class OllamaWriter(OrderedWriter):
    """An answer in Ollama's own dialect."""

    content_type = "application/x-ndjson"

    def __init__(self, head: AnswerHead) -> None:
        super().__init__(head)
        when = datetime.fromtimestamp(head.created, UTC).isoformat().replace("+00:00", "Z")
        self._top: Json = {"model": head.model, "created_at": when}
        self._head = encoded(self._top)[:-1] + b',"message":{"role":"assistant","content":'
        self._thought_head = self._head + b'"","thinking":'
        self._next = 0

    def _text(self, said: str) -> bytes:
        return self._head + quoted(said) + _TAIL

    def _thought(self, thought: str) -> bytes:
        return self._thought_head + quoted(thought) + _TAIL

    def _call(self, call: OutgoingCall) -> bytes:
        entry = self._entry(call)
        return self._head + b'"","tool_calls":[' + encoded(entry) + b"]" + _TAIL

    def _entry(self, call: OutgoingCall) -> Json:
        arguments = {} if call.call is None else call.call.arguments
        function = {"index": self._next, "name": call.name, "arguments": arguments}
        self._next += 1
        extras = {key: value for key, value in call.extras.items() if key not in ("id", "function", "type", "index")}
        return {"id": call.id, "function": function, **extras}

    def _passed(self, payload: Json) -> bytes:
        message = unwritten(obj(payload.get("message")) or {}, _OWN_MESSAGE)
        beside = unwritten(payload, _OWN_TOP)
        if payload.get("done") is True:
            self._beside = beside
            return b""
        if not (message or beside):
            return b""
        return self._line({"role": "assistant", "content": "", **message}, {"done": False, **beside})

    def _finished(self, end: AnswerEnd, word: str) -> bytes:
        return self._line({"role": "assistant", "content": ""}, self._ended(end, word))

    def _ended(self, end: AnswerEnd, word: str) -> Json:
        done = {"done": True, "done_reason": _DONE_REASONS.get(word, "stop")}
        return {**done, **ollama_usage(end.usage), **unwritten(end.beside, _OWN_TOP)}

    def _failed(self, message: str, code: str) -> bytes:
        return encoded({"error": message}) + b"\n"

    def _sign_of_life(self) -> bytes:
        return self._head + b'""' + _TAIL

    def _line(self, message: Json, fields: Json) -> bytes:
        return encoded({**self._top, "message": message, **fields}) + b"\n"

    def whole(self, reply: Reply, end: AnswerEnd, given: Json | None = None) -> Json:
        parts = self.said_parts(reply)
        calls = [self._entry(part) for part in parts if isinstance(part, OutgoingCall)]
        thought = "".join([part.text for part in parts if isinstance(part, Reasoning)])
        said = "".join([part.text for part in parts if isinstance(part, Text)])
        message: Json = {"role": "assistant", "content": said}
        message |= {"thinking": thought} if thought else {}
        message |= {"tool_calls": calls} if calls else {}
        theirs = given or {}
        message |= unwritten(obj(theirs.get("message")) or {}, _OWN_MESSAGE)
        beside = unwritten(theirs, _OWN_TOP)
        return {**self._top, "message": message, **self._ended(end, self.finish_word(end.finish)), **beside}


def ollama_usage(usage: AnswerUsage) -> Json:
    """Tokens in this dialect's words, as far as they are known."""
    counts = {"prompt_eval_count": usage.prompt, "eval_count": usage.completion}
    return {**{name: count for name, count in counts.items() if count is not None}, **usage.given}
