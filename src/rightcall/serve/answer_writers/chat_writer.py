"""OpenAI's Chat Completions:

    data: {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
           "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": null}]}
    data: [DONE]

A whole call is one chunk: index, id, type, name and the arguments as text.
"""

from __future__ import annotations

from rightcall.providers.openai_chat import REASONING
from rightcall.providers.sdk_view import obj, objects
from rightcall.serve.answer_writer import AnswerEnd, AnswerHead, AnswerUsage
from rightcall.serve.answer_writers.ordered_writer import OrderedWriter
from rightcall.serve.answer_writers.outgoing_call import OutgoingCall
from rightcall.serve.answer_writers.server_fields import unwritten
from rightcall.serve.answer_writers.wire_json import encoded, quoted
from rightcall.types import Json, Reasoning, Reply, Text

_TAIL = b'},"finish_reason":null}]}\n\n'
_DONE = b"data: [DONE]\n\n"
_FINISHES = {
    **{word: word for word in ("stop", "length", "content_filter", "tool_calls")},
    "error": "length",  # it broke off: of the words that clients know, this is the true one
}
_OWN_DELTA = frozenset(("role", "content", "refusal", "tool_calls", "function_call", "thinking", *REASONING))
_OWN_CHOICE = frozenset(("index", "delta", "message", "finish_reason"))
_OWN_TOP = frozenset(("id", "object", "created", "model", "choices", "usage", "error"))
_NOT_WORTH_A_CHUNK = _OWN_TOP | {"system_fingerprint", "service_tier", "obfuscation", "provider"}  # on every one


class ChatWriter(OrderedWriter):
    """An answer in OpenAI's Chat Completions."""

    def __init__(self, head: AnswerHead) -> None:
        super().__init__(head)
        top = {"id": head.id, "object": "chat.completion.chunk", "created": head.created, "model": head.model}
        self._top = b"data: " + encoded(top)[:-1]
        self._delta = self._top + b',"choices":[{"index":0,"delta":{'
        self._text_head = self._delta + b'"content":'
        self._thought_head = self._delta + b'"reasoning_content":'
        self._next = 0  # the index of the next call
        self._piece_head = b""

    def _begun(self) -> bytes:
        return self._delta + b'"role":"assistant","content":""' + _TAIL

    def _text(self, said: str) -> bytes:
        return self._text_head + quoted(said) + _TAIL

    def _thought(self, thought: str) -> bytes:
        return self._thought_head + quoted(thought) + _TAIL

    def _signed(self, fields: Json) -> bytes:
        kept = {key: value for key, value in fields.items() if key not in _OWN_DELTA}
        return self.begin() + self._delta + encoded(kept)[1:-1] + _TAIL if kept else b""

    def _call(self, call: OutgoingCall) -> bytes:
        entry = {"index": self._next, **_entry(call)}
        self._next += 1
        return self._delta + b'"tool_calls":[' + encoded(entry) + b"]" + _TAIL

    def _can_stream(self, call: OutgoingCall) -> bool:
        return call.kind != "custom"

    def _call_begun(self, call: OutgoingCall) -> bytes:
        self._piece_head = self._delta + b'"tool_calls":[{"index":%d,"function":{"arguments":' % self._next
        return self._call(call)

    def _call_piece(self, json: str) -> bytes:
        return self._piece_head + quoted(json) + b"}}]" + _TAIL

    def _passed(self, payload: Json) -> bytes:
        choice = next(iter(objects(payload.get("choices"))), {})
        delta = unwritten(obj(choice.get("delta")) or {}, _OWN_DELTA)
        fields, beside = unwritten(choice, _OWN_CHOICE), unwritten(payload, _NOT_WORTH_A_CHUNK)
        if not (delta or fields or beside):
            return b""
        made = {"choices": [{"index": 0, "delta": delta, "finish_reason": None, **fields}], **beside}
        return self.begin() + self._chunk(made)

    def _finished(self, end: AnswerEnd, word: str) -> bytes:
        beside = unwritten(end.beside, _OWN_TOP)
        last = {"choices": [{"index": 0, "delta": {}, "finish_reason": _FINISHES.get(word, "stop")}]}
        if not self.head.request.wants_usage:
            return self._chunk({**last, **beside}) + _DONE
        counted = {"choices": [], "usage": chat_usage(end.usage), **beside}
        return self._chunk(last) + self._chunk(counted) + _DONE

    def _failed(self, message: str, code: str) -> bytes:
        error = {"message": message, "type": "server_error", "param": None, "code": code}
        return b"data: " + encoded({"error": error}) + b"\n\n" + _DONE

    def _chunk(self, fields: Json) -> bytes:
        return self._top + b"," + encoded(fields)[1:] + b"\n\n"

    def whole(self, reply: Reply, end: AnswerEnd, given: Json | None = None) -> Json:
        parts = self.said_parts(reply)
        calls = [_entry(part) for part in parts if isinstance(part, OutgoingCall)]
        said = "".join([part.text for part in parts if isinstance(part, Text)])
        thought = "".join([part.text for part in parts if isinstance(part, Reasoning)])
        message: Json = {"role": "assistant", "content": said if said or not calls else None}
        message |= {"reasoning_content": thought} if thought else {}
        message |= {"tool_calls": calls} if calls else {}
        theirs = next(iter(objects((given or {}).get("choices"))), {})
        message |= unwritten({**(obj(theirs.get("message")) or {}), **self._message_extras(reply)}, _OWN_DELTA)
        finish = _FINISHES.get(self.finish_word(end.finish), "stop")
        choice = {"index": 0, "message": message, "finish_reason": finish, **unwritten(theirs, _OWN_CHOICE)}
        top = {"id": self.head.id, "object": "chat.completion", "created": self.head.created, "model": self.head.model}
        beside = unwritten({**(given or {}), **end.beside}, _OWN_TOP)
        return {**top, "choices": [choice], "usage": chat_usage(end.usage), **beside}


def _entry(call: OutgoingCall) -> Json:
    if call.kind == "custom":
        own: Json = {"type": "custom", "custom": {"name": call.name, "input": call.input}}
    else:
        own = {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
    return {"id": call.id, **own, **unwritten(call.extras, frozenset(("id", "index", "type", "function", "custom")))}


def chat_usage(usage: AnswerUsage) -> Json:
    """Tokens in this dialect's words; what is not known counts 0, since clients want numbers."""
    prompt, completion = usage.prompt or 0, usage.completion or 0
    out: Json = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    if usage.cached is not None:
        out["prompt_tokens_details"] = {"cached_tokens": usage.cached}
    if usage.reasoning is not None:
        out["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return {**out, **usage.given}
