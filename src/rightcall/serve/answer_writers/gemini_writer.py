"""Gemini, as events (`alt=sse`) or as one JSON array that grows:

    data: {"candidates": [{"content": {"parts": [{"text": "Hi"}], "role": "model"}, "index": 0}],
           "modelVersion": "m", "responseId": "r"}

Google's own clients take a comment for JSON and break; a sign of life is an empty line. They forget an answer in which
an event has no `content`, and the calls of one whose last event has none: the finish comes with the last call, or with
a text of nothing, as Google sends it.
"""

from __future__ import annotations

from rightcall.providers.gemini import field
from rightcall.providers.sdk_view import obj, objects
from rightcall.request_gate import error_body
from rightcall.serve.answer_writer import AnswerEnd, AnswerHead, AnswerUsage
from rightcall.serve.answer_writers.ordered_writer import OrderedWriter
from rightcall.serve.answer_writers.outgoing_call import OutgoingCall
from rightcall.serve.answer_writers.server_fields import unwritten
from rightcall.serve.answer_writers.wire_json import encoded, quoted
from rightcall.types import Json, Reasoning, Reply, Text

_FINISHES = {"length": "MAX_TOKENS", "content_filter": "SAFETY", "error": "OTHER"}
_OWN_PART = frozenset(("text", "thought", "functionCall", "function_call", "thoughtSignature", "thought_signature"))
_SAID = frozenset(("text", "functionCall", "function_call"))
_OWN_CANDIDATE = frozenset(("content", "index", "finishReason", "finish_reason"))
_OWN_TOP = frozenset(
    "candidates usageMetadata usage_metadata modelVersion model_version responseId response_id error".split()
)


class GeminiWriter(OrderedWriter):
    """An answer in Gemini's dialect. `AnswerHead.as_array` says which of its two kinds of stream is wanted."""

    def __init__(self, head: AnswerHead) -> None:
        super().__init__(head)
        self._top: Json = {"modelVersion": head.model, "responseId": head.id}
        self._before, self._after = (b"", b"") if head.as_array else (b"data: ", b"\r\n\r\n")
        self.content_type = "application/json" if head.as_array else "text/event-stream"
        self._text_head = b'{"candidates":[{"content":{"parts":[{"text":'
        self._text_tail = b'}],"role":"model"},"index":0}],' + encoded(self._top)[1:]
        self._thought_tail = b',"thought":true' + self._text_tail
        self._first = True
        self._waiting: list[Json] = []  # the parts of a call, until it is known whether the finish goes with them

    def _begun(self) -> bytes:
        return b"[" if self.head.as_array else b""

    def _framed(self, written: bytes) -> bytes:
        return self._after_waiting() + self._one_frame(written)

    def _after_waiting(self) -> bytes:
        waiting, self._waiting = self._waiting, []
        return self._parts(waiting) if waiting else b""

    def _one_frame(self, written: bytes) -> bytes:
        if not self.head.as_array:
            return b"data: " + written + b"\r\n\r\n"
        between, self._first = b"" if self._first else b",\r\n", False
        return between + written

    def _text(self, said: str) -> bytes:
        return self._framed(self._text_head + quoted(said) + self._text_tail)

    def _thought(self, thought: str) -> bytes:
        return self._framed(self._text_head + quoted(thought) + self._thought_tail)

    def _signed(self, fields: Json) -> bytes:
        signature = field(fields, "thoughtSignature")
        if signature is None:
            return b""
        thought: Json = {"thought": True} if self._open == "reasoning" else {}
        return self.begin() + self._parts([{"text": "", **thought, "thoughtSignature": signature}])

    def _call(self, call: OutgoingCall) -> bytes:
        before = self._after_waiting()
        self._waiting = [_call_part(call)]
        return before

    def _parts(self, parts: list[Json], fields: Json | None = None, beside: Json | None = None) -> bytes:
        content = {"content": {"parts": parts, "role": "model"}} if parts else {}
        candidate = {**content, "index": 0, **(fields or {})}
        return self._framed(encoded({"candidates": [candidate], **self._top, **(beside or {})}))

    def _passed(self, payload: Json) -> bytes:
        candidate = next(iter(objects(payload.get("candidates"))), {})
        parts = _other_parts(candidate)
        fields, beside = unwritten(candidate, _OWN_CANDIDATE), unwritten(payload, _OWN_TOP)
        signed = b"".join([self._signed(part) for part in _all_parts(candidate) if "functionCall" not in part])
        if not (parts or fields or beside):
            return signed
        out = self._turn_to("") if parts else self.begin()
        return signed + out + self._parts(parts, fields, beside)

    def _finished(self, end: AnswerEnd, word: str) -> bytes:
        beside = {"usageMetadata": gemini_usage(end.usage), **unwritten(end.beside, _OWN_TOP)}
        parts, self._waiting = self._waiting or [{"text": ""}], []
        return self._parts(parts, {"finishReason": _FINISHES.get(word, "STOP")}, beside) + self._ending()

    def _failed(self, message: str, code: str) -> bytes:
        opening = b"" if self._has_begun else self._begun()
        return opening + self._framed(encoded(error_body("gemini", 502, message, code))) + self._ending()

    def _ending(self) -> bytes:
        return b"]" if self.head.as_array else b""

    def _sign_of_life(self) -> bytes:
        return b"\n" if self.head.as_array else b"\r\n"

    def whole(self, reply: Reply, end: AnswerEnd, given: Json | None = None) -> Json:
        theirs = next(iter(objects((given or {}).get("candidates"))), {})
        parts = [*[_part(part) for part in self.said_parts(reply)], *_other_parts(theirs)]
        signed = self._message_extras(reply)
        last = next((part for part in reversed(parts) if "text" in part and "thought" not in part), None)
        if signed and last is not None:
            last.update(signed)
        finish = _FINISHES.get(self.finish_word(end.finish), "STOP")
        content = {"parts": parts or [{"text": ""}], "role": "model"}
        candidate = {"content": content, "finishReason": finish, "index": 0, **unwritten(theirs, _OWN_CANDIDATE)}
        beside = unwritten({**(given or {}), **end.beside}, _OWN_TOP)
        return {"candidates": [candidate], "usageMetadata": gemini_usage(end.usage), **self._top, **beside}


def _part(part: Text | Reasoning | OutgoingCall) -> Json:
    if isinstance(part, OutgoingCall):
        return _call_part(part)
    return {"text": part.text} if isinstance(part, Text) else {"text": part.text, "thought": True}


def _call_part(call: OutgoingCall) -> Json:
    arguments = {} if call.call is None else call.call.arguments
    extras = {key: value for key, value in call.extras.items() if key not in ("functionCall", "text")}
    return {"functionCall": {"id": call.id, "name": call.name, "args": arguments}, **extras}


def _other_parts(candidate: Json) -> list[Json]:
    """Parts that are neither text, thought nor a call: code that the server ran, data."""
    return [part for part in _all_parts(candidate) if unwritten(part, _OWN_PART) and not (part.keys() & _SAID)]


def _all_parts(candidate: Json) -> list[Json]:
    return objects((obj(candidate.get("content")) or {}).get("parts"))


def gemini_usage(usage: AnswerUsage) -> Json:
    """Tokens in this dialect's words: thoughts are counted beside the answer, not in it."""
    prompt, completion, thoughts = usage.prompt or 0, usage.completion or 0, usage.reasoning or 0
    out = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": max(completion - thoughts, 0),
        "totalTokenCount": prompt + completion,
    }
    out |= {"cachedContentTokenCount": usage.cached} if usage.cached is not None else {}
    out |= {"thoughtsTokenCount": thoughts} if usage.reasoning is not None else {}
    return {**out, **usage.given}
