"""What the clients of OpenAI's Responses insist on, event by event."""

from __future__ import annotations

from typing import Any

from rightcall.providers.sdk_view import obj, objects, text
from rightcall.testing.conformance.stream_rules import SaidSoFar, StreamRules, is_object
from rightcall.types import Json

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
# The events that bring pieces of an item: where the whole of it stands, and the event that says it.
_PIECES = {
    "response.output_text.delta": "text",
    "response.reasoning_summary_text.delta": "text",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
_WHOLES = {name.removesuffix("delta") + "done": field for name, field in _PIECES.items()}


class _ItemState:
    """What is known of one item that is open."""

    def __init__(self, item: Json) -> None:
        self.item = item
        self.pieces: list[str] = []
        self.parts = 0


class ResponsesRules(StreamRules):
    """The rules of a response's events."""

    def __init__(self) -> None:
        super().__init__()
        self._id: Any = None
        self._created = False
        self._sequence = 0
        self._open: dict[int, _ItemState] = {}
        self._done: dict[int, Json] = {}
        self._has_blank = False  # a message of blanks is among them
        self._item_ids: set[str] = set()
        self._failing = False

    def take(self, name: str | None, payload: Json) -> None:
        kind = payload.get("type")
        if not isinstance(kind, str):
            self.say("the event has no `type`")
            return
        if name is not None and name != kind:
            self.say(f"the `event:` line must name the type {kind!r:.60}, not {name!r:.60}")
        self._counted(payload)
        if not self._created and kind not in ("response.created", "error"):
            self.say("the stream must begin with response.created")
        self._created = True
        if kind == "error":
            self.want_texts(payload, "message")
            self._failing = True
        elif self._failing and kind != "response.failed":
            self.say("it comes after an error, which only response.failed may follow")
        elif kind in _PIECES:
            self._piece(kind, payload)
        elif kind in _WHOLES:
            self._whole_piece(kind, payload)
        elif reader := _READERS.get(kind):
            reader(self, payload)

    def _counted(self, payload: Json) -> None:
        number = payload.get("sequence_number")
        if number is not None and number != self._sequence:
            self.say(f"`sequence_number` must be {self._sequence}, not {number!r:.40}")
        self._sequence += 1

    def _on_created(self, payload: Json) -> None:
        response = obj(payload.get("response")) or {}
        if self._id is not None:
            self.say("there is a second response.created")
        self._id = response.get("id")
        self.want_texts(response, "id", "model")
        self.want_numbers(response, "created_at")

    # -- items ---------------------------------------------------------------------------------------------------------

    def _on_added(self, payload: Json) -> None:
        item, said = obj(payload.get("item")) or {}, payload.get("output_index")
        due = len(self._open) + len(self._done)
        index = said if type(said) is int else due
        if said != due or type(said) is not int:
            self.say(f"`output_index` must be {due}, not {said!r:.40}")
        self.want_texts(item, "type", "id")
        if text(item.get("id")) in self._item_ids:
            self.say(f"two items have the id {item['id']!r:.60}")
        self._item_ids.add(text(item.get("id")) or f"none {index}")
        if "call_id" in item or text(item.get("type")) in _CALLS:
            self._call(item)
        self._open[index] = _ItemState(item)

    def _call(self, item: Json) -> None:
        self.want_texts(item, "status")
        self.new_call_id(item.get("call_id"), "call_id")
        if field := _CALLS.get(str(item.get("type"))):
            self.want_call_name(item.get("name"))
            if not isinstance(item.get(field), str):
                self.say(f"`{field}` must be text, not {item.get(field)!r:.40}")
        if self._has_blank:
            self.say("blank text stands before a call; some clients take it for the answer")

    def _state(self, payload: Json) -> _ItemState | None:
        index = payload.get("output_index")
        state = self._open.get(index) if type(index) is int else None
        if state is None:
            self.say(f"there is no open item at `output_index` {index!r:.40}")
        return state

    def _piece(self, kind: str, payload: Json) -> None:
        state = self._state(payload)
        self._want_part(kind, payload, state)
        if not isinstance(payload.get("delta"), str):
            self.say(f"`delta` must be text, not {payload.get('delta')!r:.40}")
        elif state is not None:
            state.pieces.append(payload["delta"])

    def _want_part(self, kind: str, payload: Json, state: _ItemState | None) -> None:
        if "output_text" in kind:
            self.want_numbers(payload, "content_index")
        if "summary" in kind:
            self.want_numbers(payload, "summary_index")
        if "text" in kind and state is not None and not state.parts:
            self.say("text comes before the part it belongs to was added")

    def _on_part(self, payload: Json) -> None:
        state = self._state(payload)
        if state is not None:
            state.parts += 1

    def _whole_piece(self, kind: str, payload: Json) -> None:
        state = self._state(payload)
        self._want_part(kind, payload, state)
        field = _WHOLES[kind]
        if state is not None and payload.get(field) != "".join(state.pieces):
            self.say(f"`{field}` must be what the deltas gave, not {payload.get(field)!r:.40}")

    def _on_item_done(self, payload: Json) -> None:
        state = self._state(payload)
        item = obj(payload.get("item")) or {}
        if state is None:
            return
        if item.get("type") != state.item.get("type"):
            self.say("the item changes its type")
        elif item.get("type") == "message":
            self._message(item, "".join(state.pieces))
        elif field := _CALLS.get(str(item.get("type"))):
            if item.get(field) != "".join(state.pieces):
                self.say(f"`{field}` must be what the deltas gave, not {item.get(field)!r:.40}")
            if item.get("call_id") != state.item.get("call_id"):
                self.say("the `call_id` of a call changes")
        del self._open[payload["output_index"]]
        self._finish_item(payload["output_index"], item)

    def _finish_item(self, index: int, item: Json) -> None:
        self._done[index] = item
        self._has_blank = self._has_blank or _is_blank_message(item)

    def _message(self, item: Json, said: str | None) -> None:
        self.want_texts(item, "id", "status")
        parts = [part for part in objects(item.get("content")) if part.get("type") == "output_text"]
        if any(not isinstance(part.get("annotations"), list) for part in parts):
            self.say("the text has no list `annotations`")
        if said is not None and "".join([str(part.get("text")) for part in parts]) != said:
            self.say("the message's text is not what the deltas gave")

    # -- the end -------------------------------------------------------------------------------------------------------

    def _on_end(self, payload: Json) -> None:
        response = obj(payload.get("response")) or {}
        self.ended = str(payload.get("type"))
        if self._id is not None and response.get("id") != self._id:
            self.say("the response ends under another `id`")
        if payload.get("type") != f"response.{response.get('status')}":
            self.say(f"the `status` of the response is {response.get('status')!r:.40}")
        if payload.get("type") == "response.failed":
            self.want_texts(obj(response.get("error")) or {}, "message")
            return
        if self._open:
            self.say("the response ends while an item is open")
        if objects(response.get("output")) != [self._done[at] for at in sorted(self._done)]:
            self.say("`output` must hold the items that were done")
        self._ending(response)

    def _ending(self, response: Json) -> None:
        calls = [item for item in objects(response.get("output")) if text(item.get("type")) in _CALLS]
        cut = response.get("status") == "incomplete"
        broken = [call for call in calls if call["type"] == "function_call" and not is_object(call.get("arguments"))]
        if broken and not cut:
            self.say("a call's `arguments` are no JSON object")
        if calls and not broken and cut:
            self.say("the response is incomplete though its calls are whole; clients drop them")
        self.want_usage(response.get("usage"), *_COUNTS)

    def whole(self, body: Json) -> None:
        """A whole response."""
        self.want_texts(body, "id", "model", "status")
        self.want_numbers(body, "created_at")
        for index, item in enumerate(objects(body.get("output"))):
            self._on_added({"item": item, "output_index": index})
            if item.get("type") == "message":
                self._message(item, None)
            self._finish_item(index, self._open.pop(index).item)
        if not isinstance(body.get("output"), list):
            self.say("there is no list `output`")
        self._ending(body)
        self.ended = "it"


def _is_blank_message(item: Json) -> bool:
    parts = objects(item.get("content")) if item.get("type") == "message" else []
    said = SaidSoFar()
    for part in parts:
        said.add(text(part.get("text")))
    return said.is_blank


_READERS = {
    "response.created": ResponsesRules._on_created,
    "response.output_item.added": ResponsesRules._on_added,
    "response.content_part.added": ResponsesRules._on_part,
    "response.reasoning_summary_part.added": ResponsesRules._on_part,
    "response.output_item.done": ResponsesRules._on_item_done,
    **dict.fromkeys(_ENDS, ResponsesRules._on_end),
}
