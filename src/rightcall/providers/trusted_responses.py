"""Responses of OpenAI's API, whole and as events, that hold only calls that may run.

Items that are neither a message nor a call of ours go out as they came, under their new places.
"""

from __future__ import annotations

from typing import Any

from rightcall.providers.openai_responses import RESPONSES
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.providers.trusted import EventFrame
from rightcall.types import Call, CallEnd, Event, Json, Reply, Text

_CALLS = ("function_call", "custom_tool_call")
_ENDS = ("response.completed", "response.incomplete", "response.failed")


def whole(response: Json, replies: list[Reply]) -> Json:
    """The response with its calls, and the text where calls were found in it, as the reply has them."""
    reply = replies[0]
    calls = [_item(call, reply.extras.get(call.id)) for call in reply.calls]
    made = {**response, "output": [*_kept(response, reply.content), *calls]}
    return {**made, "output_text": reply.content} if "output_text" in response else made


def _kept(response: Json, content: str) -> list[Json]:
    """The response's items but its calls, with this text."""
    items = objects(response.get("output"))
    said = "\n".join([part for item in items if item.get("type") == "message" for part in _texts(item)])
    kept = [item for item in items if item.get("type") not in _CALLS]
    if said == content:
        return kept
    kept = [item for item in kept if item.get("type") != "message"]
    return [*kept, _message("msg_" + text(response.get("id")), content)] if content else kept


def _texts(item: Json) -> list[str]:
    return [text(part.get("text")) for part in objects(item.get("content")) if text(part.get("text"))]


def _message(id: str, said: str, status: str = "completed") -> Json:
    content = [{"type": "output_text", "text": said, "annotations": []}]
    return {"id": id, "type": "message", "role": "assistant", "status": status, "content": content}


def _item(call: Call, extras: Json | None = None) -> Json:
    (item,) = RESPONSES.assistant_message("", [call], extras={call.id: extras or {}})
    return {"id": f"fc_{call.id}", "status": "completed", **item}


class ResponsesChunks:
    """The events of one response. Items and events are counted anew, since some go and others come."""

    def __init__(self) -> None:
        self._number = 0
        self._output: list[Json] = []  # the items as they went out
        self._places: dict[Any, int] = {}  # from a place there to the place here, of items that go out as they came
        self._message: Json | None = None  # the one that is being written
        self._said: list[str] = []
        self._end: Json = {"type": "response.completed", "response": {}}

    def take(self, payload: Json, events: list[Event]) -> list[EventFrame]:
        kind = text(payload.get("type"))
        if kind in _ENDS:
            self._end = payload
            return self._written(events)
        if kind.startswith(("response.output_text", "response.refusal", "response.content_part")):
            return self._written(events)
        if not kind.startswith("response.") or kind in ("response.created", "response.in_progress", "response.queued"):
            return [*self._written(events), *self._frames(payload)]
        return [*self._written(events), *self._passed(kind, payload)]

    def close(self, events: list[Event], reply: Reply) -> list[EventFrame]:
        out = [*self._written(events), *self._end_message()]
        response = {**(obj(self._end.get("response")) or {}), "output": self._output}
        return [*out, *self._frames({**self._end, "response": response})]

    def _passed(self, kind: str, payload: Json) -> list[EventFrame]:
        """The events of items that are not ours: reasoning, and tools that the server runs itself."""
        item = obj(payload.get("item")) or {}
        place = payload.get("output_index")
        if item.get("type") in (*_CALLS, "message") or ("arguments" in kind or "custom_tool_call" in kind):
            return []
        out: list[EventFrame] = []
        if kind == "response.output_item.added":
            out = self._end_message()
            self._places[place] = len(self._output)
            self._output.append(item)
        if place not in self._places:
            return []
        if kind == "response.output_item.done":
            self._output[self._places[place]] = item
        return [*out, *self._frames({**payload, "output_index": self._places[place]})]

    def _written(self, events: list[Event]) -> list[EventFrame]:
        out: list[EventFrame] = []
        for event in events:
            if isinstance(event, Text) and event.text:
                out += self._text(event.text)
            elif isinstance(event, CallEnd) and event.call.ok:
                out += [*self._end_message(), *self._call(event.call)]
        return out

    def _text(self, said: str) -> list[EventFrame]:
        out: list[EventFrame] = []
        if self._message is None:
            id = f"msg_{len(self._output)}"
            self._message = {**_message(id, "", "in_progress"), "content": []}
            part = {"type": "output_text", "text": "", "annotations": []}
            place = {"output_index": len(self._output)}
            out += self._frames({"type": "response.output_item.added", **place, "item": self._message})
            out += self._frames({"type": "response.content_part.added", **self._part(), "part": part})
        self._said.append(said)
        return [*out, *self._frames({"type": "response.output_text.delta", **self._part(), "delta": said})]

    def _part(self) -> Json:
        id = (self._message or {}).get("id")
        return {"item_id": id, "output_index": len(self._output), "content_index": 0}

    def _end_message(self) -> list[EventFrame]:
        if self._message is None:
            return []
        said = "".join(self._said)
        item = _message(self._message["id"], said)
        part = self._part()
        out = self._frames({"type": "response.output_text.done", **part, "text": said})
        out += self._frames({"type": "response.content_part.done", **part, "part": item["content"][0]})
        place = {"output_index": len(self._output)}
        out += self._frames({"type": "response.output_item.done", **place, "item": item})
        self._output.append(item)
        self._message, self._said = None, []
        return out

    def _call(self, call: Call) -> list[EventFrame]:
        item = _item(call)
        place = {"output_index": len(self._output)}
        about = {"item_id": item["id"], **place}
        arguments = item["arguments"]
        started = {**item, "arguments": "", "status": "in_progress"}
        out = self._frames({"type": "response.output_item.added", **place, "item": started})
        out += self._frames({"type": "response.function_call_arguments.delta", **about, "delta": arguments})
        done = {"name": call.name, "arguments": arguments}
        out += self._frames({"type": "response.function_call_arguments.done", **about, **done})
        out += self._frames({"type": "response.output_item.done", **place, "item": item})
        self._output.append(item)
        return out

    def _frames(self, payload: Json) -> list[EventFrame]:
        self._number += 1
        return [EventFrame({**payload, "sequence_number": self._number - 1}, text(payload.get("type")))]


def error(message: str) -> Json:
    return {"error": {"message": message, "type": "model_error", "param": None, "code": "calls_refused"}}


def streamed() -> ResponsesChunks:
    """The writer of one streamed answer."""
    return ResponsesChunks()
