"""OpenAI's Responses:

    event: response.output_text.delta
    data: {"type": "response.output_text.delta", "item_id": "msg_1_0", "output_index": 0, "content_index": 0,
           "delta": "Hi", "logprobs": [], "sequence_number": 4}

Each item is added, filled, done; the last event has all of them once more. Calls are what the client declared: of a
function, of a custom tool with free text, of a namespace, or an item type of its own.
"""

from __future__ import annotations

from typing import Any

from rightcall.providers.sdk_view import obj, objects, text
from rightcall.serve.answer_writer import AnswerEnd, AnswerHead, AnswerUsage
from rightcall.serve.answer_writers.ordered_writer import Open, OrderedWriter
from rightcall.serve.answer_writers.outgoing_call import OutgoingCall
from rightcall.serve.answer_writers.server_fields import unwritten
from rightcall.serve.answer_writers.wire_json import encoded, quoted
from rightcall.serve.known_tools import call_item
from rightcall.types import Json, Reasoning, Reply, Text

_ECHOED = (
    *("max_output_tokens", "metadata", "previous_response_id", "reasoning", "store", "temperature", "text"),
    *("tool_choice", "top_p", "truncation", "user"),
)
_OWN_REASONING = frozenset(("type", "summary", "content", "status"))
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_CALLS = ("function_call", "custom_tool_call")
_OURS = frozenset(("message", "reasoning", *_CALLS))
_OWN_TOP = frozenset("id object created_at status error incomplete_details model output usage output_text".split())
_PREFIXES = {"message": "msg", "reasoning": "rs"}  # of ids that we make
_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter", "error": "max_output_tokens"}


class ResponsesWriter(OrderedWriter):
    """An answer in OpenAI's Responses."""

    def __init__(self, head: AnswerHead) -> None:
        super().__init__(head)
        self._stem = head.id.removeprefix("resp_")
        self._number = 0  # of the next event
        self._output: list[Json] = []  # the items that are done, and those that pass
        self._places: dict[int, int] = {}  # of items that pass: from the server's place to ours
        self._item: Json = {}  # the one that is open
        self._said: list[str] = []
        self._annotations: list[Json] = []
        self._reasoning_id = ""  # the server's own, of the reasoning that comes
        self._server_ids: set[str] = set()  # of items that go out under the id that the server gave them
        self._delta_head = self._delta_tail = b""

    # -- events --------------------------------------------------------------------------------------------------------

    def _frame(self, kind: str, fields: Json) -> bytes:
        self._number += 1
        payload = {"type": kind, **fields, "sequence_number": self._number - 1}
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), encoded(payload))

    def _piece(self, said: str) -> bytes:
        self._said.append(said)
        self._number += 1
        return b"%s%s%s%d}\n\n" % (self._delta_head, quoted(said), self._delta_tail, self._number - 1)

    def _pieces(self, kind: str, place: Json, *, logprobs: bool = False) -> None:
        """Gets ready to write deltas of this kind."""
        head = encoded({"type": kind, **place})[:-1]
        self._said = []
        self._delta_head = b'event: %s\ndata: %s,"delta":' % (kind.encode(), head)
        self._delta_tail = b',"logprobs":[],"sequence_number":' if logprobs else b',"sequence_number":'

    def _begun(self) -> bytes:
        response = {"response": self._response("in_progress")}
        return self._frame("response.created", response) + self._frame("response.in_progress", response)

    def _response(self, status: str, **fields: Any) -> Json:
        body, head = self.head.request.body, self.head
        echoed = {key: body[key] for key in _ECHOED if body.get(key) is not None}
        return {
            "id": head.id,
            "object": "response",
            "created_at": head.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": head.model,
            "output": [],
            "parallel_tool_calls": head.request.parallel,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": None,
            **echoed,
            **fields,
        }

    # -- text and reasoning --------------------------------------------------------------------------------------------

    def _new_id(self, prefix: str, theirs: str = "") -> str:
        """An id for the next item: the server's own the first time that it comes."""
        if not theirs or theirs in self._server_ids:
            return f"{prefix}_{self._stem}_{len(self._output)}"
        self._server_ids.add(theirs)
        return theirs

    def _place(self, **fields: Any) -> Json:
        return {"item_id": self._item["id"], "output_index": len(self._output), **fields}

    def _added(self, item: Json) -> bytes:
        self._item = item
        return self._frame("response.output_item.added", {"output_index": len(self._output), "item": item})

    def _done(self, item: Json) -> bytes:
        out = self._frame("response.output_item.done", {"output_index": len(self._output), "item": item})
        self._output.append(item)
        self._item = {}
        return out

    def _opened(self, kind: Open) -> bytes:
        return self._opened_message() if kind == "text" else self._opened_reasoning({})

    def _opened_message(self) -> bytes:
        added = self._added(_message(self._new_id("msg"), [], "in_progress"))
        place = self._place(content_index=0)
        self._pieces("response.output_text.delta", place, logprobs=True)
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        return added + self._frame("response.content_part.added", {**place, "part": part})

    def _opened_reasoning(self, fields: Json) -> bytes:
        id = self._new_id("rs", text(fields.get("id")) or self._reasoning_id)
        self._reasoning_id = ""
        self._said = []
        return self._added({"id": id, "type": "reasoning", "summary": []})

    def _closed(self, kind: Open) -> bytes:
        return self._closed_message() if kind == "text" else self._closed_reasoning()

    def _closed_message(self) -> bytes:
        said, place = "".join(self._said), self._place(content_index=0)
        part = _text_part(said, self._annotations)
        self._annotations = []
        out = self._frame("response.output_text.done", {**place, "text": said, "logprobs": []})
        out += self._frame("response.content_part.done", {**place, "part": part})
        return out + self._done(_message(self._item["id"], [part]))

    def _closed_reasoning(self) -> bytes:
        said, out = "".join(self._said), b""
        item = {**self._item, "summary": [{"type": "summary_text", "text": said}] if said else []}
        if said:
            place = self._place(summary_index=0)
            out = self._frame("response.reasoning_summary_text.done", {**place, "text": said})
            out += self._frame("response.reasoning_summary_part.done", {**place, "part": item["summary"][0]})
        return out + self._done(item)

    def _text(self, said: str) -> bytes:
        return self._piece(said)

    def _thought(self, thought: str) -> bytes:
        if self._said:
            return self._piece(thought)
        place = self._place(summary_index=0)
        self._pieces("response.reasoning_summary_text.delta", place)
        part = {"type": "summary_text", "text": ""}
        return self._frame("response.reasoning_summary_part.added", {**place, "part": part}) + self._piece(thought)

    def _signed(self, fields: Json) -> bytes:
        """The fields go on the reasoning item when it is done; given before any of it, they begin one."""
        kept = unwritten(fields, _OWN_REASONING)
        out = b""
        if self._open != "reasoning" or (self._item.get("encrypted_content") and "encrypted_content" in kept):
            out = self._turn_to("") + self._opened_reasoning(kept)
            self._open = "reasoning"
        elif kept.get("id", self._item["id"]) != self._item["id"]:
            self._item = {**self._item, "id": self._new_id("rs", text(kept["id"]))}
        self._item = {**kept, **self._item}
        return out

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _call(self, call: OutgoingCall) -> bytes:
        item = self._call_item(call)
        if call.kind == "other":
            return self._added({**item, "status": "in_progress"}) + self._done(item)
        if call.kind != "custom":
            return self._call_begun(call) + self._piece(call.arguments) + self._call_ended(call, call.arguments)
        out = self._added({**item, "input": "", "status": "in_progress"})
        self._pieces("response.custom_tool_call_input.delta", self._place())
        out += self._piece(call.input)
        out += self._frame("response.custom_tool_call_input.done", {**self._place(), "input": call.input})
        return out + self._done(item)

    def _can_stream(self, call: OutgoingCall) -> bool:
        return call.kind not in ("custom", "other")

    def _call_begun(self, call: OutgoingCall) -> bytes:
        out = self._added({**self._call_item(call), "arguments": "", "status": "in_progress"})
        self._pieces("response.function_call_arguments.delta", self._place())
        return out

    def _call_piece(self, json: str) -> bytes:
        return self._piece(json)

    def _call_ended(self, call: OutgoingCall, json: str, *, whole: bool = True) -> bytes:
        done = {**self._place(), "name": call.name, "arguments": json}
        out = self._frame("response.function_call_arguments.done", done) if whole else b""
        return out + self._done({**self._item, "arguments": json, "status": "completed" if whole else "incomplete"})

    def _call_item(self, call: OutgoingCall) -> Json:
        about = {"status": "completed", "call_id": call.id}
        extras = {key: value for key, value in call.extras.items() if key != "id"}
        own: Json
        if call.kind == "custom":
            own = {"id": self._new_id("ctc"), "type": "custom_tool_call", "name": call.name, "input": call.input}
        elif call.kind == "other" and call.call_type:
            arguments = {} if call.call is None else call.call.arguments
            own = {"id": self._new_id("call"), "type": call.call_type, **call_item(call.call_type, arguments)}
        else:
            own = {"id": self._new_id("fc"), "type": "function_call", "name": call.name, "arguments": call.arguments}
            own |= {"namespace": call.namespace} if call.namespace else {}
        return {**extras, **own, **about}

    # -- what a server of this dialect sent besides --------------------------------------------------------------------

    def _passed(self, payload: Json) -> bytes:
        kind, item = text(payload.get("type")), obj(payload.get("item")) or {}
        if kind == "response.output_text.annotation.added":
            return self._annotated(payload)
        if item.get("type") == "reasoning":
            return self._passed_reasoning(kind, item)
        if kind in _ENDS:
            self._beside = obj(payload.get("response")) or {}
        theirs = payload.get("output_index")
        if type(theirs) is not int or not kind.startswith("response."):
            return b""
        if kind == "response.output_item.added" and item.get("type", "message") not in _OURS:
            return self._passed_item(theirs, item)
        if theirs not in self._places:
            return b""
        place = self._places[theirs]
        if kind == "response.output_item.done":
            del self._places[theirs]
            item = self._output[place] = {**item, "id": self._output[place]["id"]}
            return self._frame(kind, {"output_index": place, "item": item})
        fields = {key: value for key, value in payload.items() if key not in ("type", "sequence_number")}
        return self._frame(kind, {**fields, "output_index": place})

    def _passed_item(self, theirs: int, item: Json) -> bytes:
        """An item that is not ours begins: a tool that the server runs itself."""
        if theirs in self._places:
            return b""
        out = self._turn_to("")
        item = {**item, "id": self._new_id("item", text(item.get("id")))}
        self._places[theirs] = place = len(self._output)
        self._output.append(item)
        return out + self._frame("response.output_item.added", {"output_index": place, "item": item})

    def _passed_reasoning(self, kind: str, item: Json) -> bytes:
        """A server's reasoning is sent back as it came: under its own id, with what is encrypted in it."""
        if kind == "response.output_item.added":
            self._reasoning_id = text(item.get("id"))
            return b""
        signed = self._signed(item) if self._open == "reasoning" or item.get("encrypted_content") else b""
        return signed + self._closed_open() if self._open == "reasoning" else signed

    def _annotated(self, payload: Json) -> bytes:
        annotation = obj(payload.get("annotation"))
        if annotation is None:
            return b""
        self._annotations.append(annotation)
        if self._open != "text":
            return b""  # its text is still held back; the part will have it
        place = self._place(content_index=0, annotation_index=len(self._annotations) - 1)
        return self._frame("response.output_text.annotation.added", {**place, "annotation": annotation})

    # -- the end -------------------------------------------------------------------------------------------------------

    def _finished(self, end: AnswerEnd, word: str) -> bytes:
        out = b""
        for place in self._places.values():
            out += self._frame("response.output_item.done", {"output_index": place, "item": self._output[place]})
        response = self._ended(end, word)
        return out + self._frame(f"response.{response['status']}", {"response": response})

    def _ended(self, end: AnswerEnd, word: str) -> Json:
        reason = _REASONS.get(word)
        status: Json = {"incomplete_details": {"reason": reason}} if reason else {}
        fields = {
            **unwritten(end.beside, _OWN_TOP),
            **status,
            "output": self._output,
            "usage": responses_usage(end.usage),
        }
        return self._response("incomplete" if reason else "completed", **fields)

    def _failed(self, message: str, code: str) -> bytes:
        about = {"code": code, "message": message, "param": None}  # some clients look for it here, others in `error`
        out = self._frame("error", {**about, "error": {"type": "server_error", **about}})
        failed = self._response("failed", error={"code": code, "message": message}, output=self._output)
        return out + self._frame("response.failed", {"response": failed})

    def whole(self, reply: Reply, end: AnswerEnd, given: Json | None = None) -> Json:
        theirs, parts = given or {}, self.said_parts(reply)
        items = [item for item in objects(theirs.get("output")) if text(item.get("type")) not in ("", *_CALLS)]
        said = "".join([part.text for part in parts if isinstance(part, Text)])
        if items and said == _text_of(items):
            parts = [part for part in parts if isinstance(part, OutgoingCall)]
        else:
            signed = objects(self._message_extras(reply).get("reasoning"))
            items = [*signed, *[item for item in items if item["type"] not in _OURS]]
            parts = [part for part in parts if not (signed and isinstance(part, Reasoning))]
        for item in items:
            id = self._new_id(_PREFIXES.get(item["type"], "item"), text(item.get("id")))
            self._output.append({**_filled(item), "id": id})
        for part in parts:
            self._output.append(self._part_item(part))
        return {**self._ended(end, self.finish_word(end.finish)), **unwritten(theirs, _OWN_TOP)}

    def _part_item(self, part: Text | Reasoning | OutgoingCall) -> Json:
        if isinstance(part, OutgoingCall):
            return self._call_item(part)
        if isinstance(part, Text):
            return _message(self._new_id("msg"), [_text_part(part.text, [])])
        return {
            "id": self._new_id("rs"),
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": part.text}],
        }


def _message(id: str, content: list[Json], status: str = "completed") -> Json:
    return {"id": id, "type": "message", "status": status, "role": "assistant", "content": content}


def _text_part(said: str, annotations: list[Json]) -> Json:
    return {"type": "output_text", "text": said, "annotations": annotations, "logprobs": []}


def _filled(item: Json) -> Json:
    """An item of the server's own, with the fields that clients insist on."""
    if item["type"] == "message":
        content = [_filled_part(part) for part in objects(item.get("content"))]
        return {**item, "status": text(item.get("status")) or "completed", "role": "assistant", "content": content}
    return {**item, "summary": objects(item.get("summary"))} if item["type"] == "reasoning" else item


def _filled_part(part: Json) -> Json:
    if text(part.get("type")) not in ("", "output_text"):
        return part
    return {
        **_text_part(text(part.get("text")), []),
        **{key: value for key, value in part.items() if value is not None},
    }


def _text_of(items: list[Json]) -> str:
    parts = [part for item in items if item.get("type") == "message" for part in objects(item.get("content"))]
    return "".join([text(part.get("text")) for part in parts])


def responses_usage(usage: AnswerUsage) -> Json:
    """Tokens in this dialect's words; what is not known counts 0, since clients want all of these numbers."""
    prompt, completion = usage.prompt or 0, usage.completion or 0
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": usage.cached or 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": prompt + completion,
        **usage.given,
    }
