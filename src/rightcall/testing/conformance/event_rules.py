"""The rules of dialects whose streams are typed events: Anthropic's Messages and OpenAI's Responses."""

from __future__ import annotations

from typing import Any

from rightcall.providers.sdk_view import obj, objects, text
from rightcall.testing.conformance.stream_rules import StreamRules, TextSoFar, is_object_text
from rightcall.types import Json

_MESSAGE_EVENTS = frozenset(
    "message_start content_block_start content_block_delta content_block_stop message_delta message_stop ping "
    "error".split()
)
_STOP_REASONS = frozenset(
    "end_turn max_tokens stop_sequence tool_use pause_turn refusal model_context_window_exceeded".split()
)
_TRUNCATED = ("max_tokens", "refusal", "model_context_window_exceeded")
_BLOCK_DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
_THINKING_KEYS = ("thinking", "signature")


class MessagesRules(StreamRules):
    """The rules of a message's events."""

    def __init__(self) -> None:
        super().__init__()
        self._started = False
        self._stop = ""  # the stop reason, once it was sent
        self._blocks = 0
        self._open: Json | None = None
        self._pieces: list[str] = []
        self._calls = 0
        self._broken = False  # there is a call whose input is no object

    def check_event(self, name: str | None, payload: Json) -> None:
        """Report the faults of one event and of its place in the order of events; an error ends the answer. `name` is
        that of its `event:` line, which must be its type. An unknown event is only reported."""
        kind = payload.get("type")
        if name != kind:
            self.report(f"the `event:` line must name the type {kind!r:.40}, not {name!r:.40}")
        if text(kind) not in _MESSAGE_EVENTS:
            self.report(f"{kind!r:.40} is no event of this dialect; clients that check refuse the stream")
            return
        if kind == "error":
            self.check_error(payload, "type", "message")
            return
        if not self._started and kind not in ("message_start", "ping"):
            self.report("the stream must begin with message_start")
            self._started = True
        getattr(self, f"_on_{kind}")(payload)

    def _on_ping(self, payload: Json) -> None:
        """Accept a ping, which may come at any time."""

    def _on_message_start(self, payload: Json) -> None:
        """Report the faults of `message_start`, which must come once, with an empty content."""
        if self._started:
            self.report("there is a second message_start")
        self._started = True
        message = obj(payload.get("message")) or {}
        self.check_texts(message, "id", "type", "role", "model")
        self.check_usage(message.get("usage"), "input_tokens", "output_tokens")
        if message.get("content") != []:
            self.report("the message must begin with an empty list `content`")

    def _on_content_block_start(self, payload: Json) -> None:
        """Open the block that an event begins, and report its faults: the last block is open, the stop reason has come,
        a wrong index, or a faulty call."""
        if self._open is not None:
            self.report("a block begins before the last has stopped")
        if self._stop:
            self.report("a block begins after the stop_reason")
        self._check_index("block's `index`", payload)
        self._open, self._pieces = obj(payload.get("content_block")) or {}, []
        self.check_texts(self._open, "type")
        if self._open.get("type") == "tool_use":
            self._check_call(self._open, {})

    def _check_call(self, block: Json, input: Any) -> None:
        """Count a `tool_use` block, and report the faults of its id, its name and its input, which must be an object
        equal to `input`."""
        self._calls += 1
        self.check_call_id(block.get("id"))
        self.check_call_name(block.get("name"))
        if block.get("input") != input or type(block.get("input")) is not dict:
            self.report(f"`input` must be an object, empty where deltas follow, not {block.get('input')!r:.40}")

    def _check_index(self, name: str, payload: Json) -> None:
        """Report the `index` of an event if it is not the number of the current block. `name` is what the report calls
        it."""
        index = payload.get("index")
        if index != self._blocks or type(index) is not int:
            self.report(f"the {name} must be {self._blocks}, not {index!r:.40}")

    def _on_content_block_delta(self, payload: Json) -> None:
        """Store the text of a delta of the open block, and report its faults: no block is open, a wrong index, or a
        type that does not fit the block. Unknown types of deltas are accepted and ignored."""
        if self._open is None:
            self.report("a delta comes while no block is open")
            return
        self._check_index("delta's `index`", payload)
        delta = obj(payload.get("delta")) or {}
        kind, field = _BLOCK_DELTAS.get(str(delta.get("type")), ("", ""))
        if not field:
            return
        mine = self._open.get("type")
        if kind != mine and not (kind == "tool_use" and str(mine).endswith("_tool_use")):
            self.report(f"a {delta.get('type')} is in a block of type {mine!r:.40}")
        if not isinstance(delta.get(field), str):
            self.report(f"`{field}` must be text, not {delta.get(field)!r:.40}")
        elif field != "signature":
            self._pieces.append(delta[field])

    def _on_content_block_stop(self, payload: Json) -> None:
        """Close the open block, and report its faults: no block is open, a wrong index, or a text block that is blank.
        A call whose input is no JSON object is only noted, for the check of the stop reason."""
        if self._open is None:
            self.report("a block stops that is not open")
            return
        self._check_index("`index`", payload)
        content = "".join(self._pieces)
        if self._open.get("type") == "text" and not content.strip():
            self.report("a text block is empty; some clients take it for the answer")
        if self._open.get("type") == "tool_use":
            self._broken = self._broken or not is_object_text(content)
        self._open = None
        self._blocks += 1

    def _on_message_delta(self, payload: Json) -> None:
        """Report the faults of the event with the stop reason and the usage: it must come once, after all blocks are
        closed."""
        delta = obj(payload.get("delta")) or {}
        if self._stop:
            self.report("there are two message_deltas with a stop_reason")
        if self._open is not None:
            self.report("the message ends while a block is open")
        self._check_stop_reason(delta.get("stop_reason"))
        self.check_usage(payload.get("usage"), "output_tokens")

    def _check_stop_reason(self, stop: Any) -> None:
        """Store the stop reason, and report one that is unknown or contradicts the calls: "tool_use" needs calls with
        valid inputs, and a call with an invalid one needs a reason of truncation."""
        self._stop = str(stop)
        if text(stop) not in _STOP_REASONS:
            self.report(f"`stop_reason` must be a value of this dialect, not {stop!r:.40}")
        elif (stop == "tool_use") != bool(self._calls and not self._broken):
            self.report(f"`stop_reason` is {stop}, which contradicts the calls")
        elif self._broken and stop not in _TRUNCATED:
            self.report("a call's input is no JSON object")

    def _on_message_stop(self, payload: Json) -> None:
        """Note in `ended` that the answer is over, and report that no stop reason came before."""
        if not self._stop:
            self.report("there was no message_delta with a stop_reason")
        self.ended = "message_stop"

    def check_whole(self, body: Json) -> None:
        """Report the faults of a whole message: its fields, content blocks, stop reason and usage. They are added to
        `faults`."""
        self.check_texts(body, "id", "type", "role", "model")
        for block in objects(body.get("content")):
            self.check_texts(block, "type")
            if block.get("type") == "tool_use":
                self._check_call(block, block.get("input"))
            elif block.get("type") == "text" and not str(block.get("text") or "").strip():
                self.report("a text block is empty")
            elif block.get("type") == "thinking" and not all(isinstance(block.get(key), str) for key in _THINKING_KEYS):
                self.report("a thinking block needs the texts `thinking` and `signature`, if only empty ones")
        self._check_stop_reason(body.get("stop_reason"))
        self.check_usage(body.get("usage"), "input_tokens", "output_tokens")
        self.ended = "it"


_CALL_FIELDS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESPONSE_ENDS = ("response.completed", "response.incomplete", "response.failed")
_RESPONSES_COUNTS = ("input_tokens", "output_tokens", "total_tokens")
# The events with pieces of an item, and the field of the item's last event that has the whole text.
_DELTA_FIELDS = {
    "response.output_text.delta": "text",
    "response.reasoning_summary_text.delta": "text",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
_DONE_FIELDS = {name.removesuffix("delta") + "done": field for name, field in _DELTA_FIELDS.items()}


class _ItemState:
    """The state of one open item."""

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
        self._has_blank = False  # a message consists of white space
        self._item_ids: set[str] = set()
        self._failing = False

    def check_event(self, name: str | None, payload: Json) -> None:
        """Report the faults of one event and of its place in the order of events. `name` is that of its `event:` line,
        if it has one, and must be its type. After an error only `response.failed` may follow. Unknown events are
        accepted."""
        kind = payload.get("type")
        if not isinstance(kind, str):
            self.report("the event has no `type`")
            return
        if name is not None and name != kind:
            self.report(f"the `event:` line must name the type {kind!r:.60}, not {name!r:.60}")
        self._check_sequence_number(payload)
        if not self._created and kind not in ("response.created", "error"):
            self.report("the stream must begin with response.created")
        self._created = True
        if kind == "error":
            self.check_texts(payload, "message")
            self._failing = True
        elif self._failing and kind != "response.failed":
            self.report("it comes after an error, which only response.failed may follow")
        else:
            self._check_content(kind, payload)

    def _check_content(self, kind: str, payload: Json) -> None:
        """Report the faults of the fields of an event of the type `kind`, and update the state of the items; nothing
        for unknown types."""
        if kind in _DELTA_FIELDS:
            self._check_delta(kind, payload)
        elif kind in _DONE_FIELDS:
            self._check_done(kind, payload)
        elif reader := _RESPONSE_HANDLERS.get(kind):
            reader(self, payload)

    def _check_sequence_number(self, payload: Json) -> None:
        """Count the event, and report its `sequence_number`, if it has one, unless it is the number of events before
        it."""
        number = payload.get("sequence_number")
        if number is not None and number != self._sequence:
            self.report(f"`sequence_number` must be {self._sequence}, not {number!r:.40}")
        self._sequence += 1

    def _on_created(self, payload: Json) -> None:
        """Store the response's id of `response.created`, and report its faults, also that it comes twice."""
        response = obj(payload.get("response")) or {}
        if self._id is not None:
            self.report("there is a second response.created")
        self._id = response.get("id")
        self.check_texts(response, "id", "model")
        self.check_numbers(response, "created_at")

    # -- items ---------------------------------------------------------------------------------------------------------

    def _on_added(self, payload: Json) -> None:
        """Open the item that an event begins, and report its faults: a wrong `output_index`, missing or repeated ids,
        or a faulty call."""
        item, given = obj(payload.get("item")) or {}, payload.get("output_index")
        expected = len(self._open) + len(self._done)
        index = given if type(given) is int else expected
        if given != expected or type(given) is not int:
            self.report(f"`output_index` must be {expected}, not {given!r:.40}")
        self.check_texts(item, "type", "id")
        if text(item.get("id")) in self._item_ids:
            self.report(f"two items have the id {item['id']!r:.60}")
        self._item_ids.add(text(item.get("id")) or f"none {index}")
        if "call_id" in item or text(item.get("type")) in _CALL_FIELDS:
            self._check_call(item)
        self._open[index] = _ItemState(item)

    def _check_call(self, item: Json) -> None:
        """Report the faults of an item that is a call, at its beginning or whole: status, id, name, arguments, and
        blank text before it."""
        self.check_texts(item, "status")
        self.check_call_id(item.get("call_id"), "call_id")
        if field := _CALL_FIELDS.get(str(item.get("type"))):
            self.check_call_name(item.get("name"))
            if not isinstance(item.get(field), str):
                self.report(f"`{field}` must be text, not {item.get(field)!r:.40}")
        if self._has_blank:
            self.report("blank text precedes a call; some clients take it for the answer")

    def _find_open_item(self, payload: Json) -> _ItemState | None:
        """Return the state of the open item that an event names by `output_index`; None, which is reported, if there is
        none."""
        index = payload.get("output_index")
        state = self._open.get(index) if type(index) is int else None
        if state is None:
            self.report(f"there is no open item at `output_index` {index!r:.40}")
        return state

    def _check_delta(self, kind: str, payload: Json) -> None:
        """Add a piece of an item's text or arguments to the open item, and report its faults. `kind` is the type of the
        event."""
        state = self._find_open_item(payload)
        self._check_part_index(kind, payload, state)
        if not isinstance(payload.get("delta"), str):
            self.report(f"`delta` must be text, not {payload.get('delta')!r:.40}")
        elif state is not None:
            state.pieces.append(payload["delta"])

    def _check_part_index(self, kind: str, payload: Json, state: _ItemState | None) -> None:
        """Report the faults of an event of the type `kind` in the part that it belongs to: a missing index, and text
        before a part was added to the item. `state` is the open item, if there is one."""
        if "output_text" in kind:
            self.check_numbers(payload, "content_index")
        if "summary" in kind:
            self.check_numbers(payload, "summary_index")
        if "text" in kind and state is not None and not state.parts:
            self.report("text comes before the part it belongs to was added")

    def _on_part(self, payload: Json) -> None:
        """Count a new part of the open item; report an event without an open item."""
        state = self._find_open_item(payload)
        if state is not None:
            state.parts += 1

    def _check_done(self, kind: str, payload: Json) -> None:
        """Report an event that repeats the whole text or arguments of an item if they are not the joined pieces that
        came before. `kind` is the type of the event."""
        state = self._find_open_item(payload)
        self._check_part_index(kind, payload, state)
        field = _DONE_FIELDS[kind]
        if state is not None and payload.get(field) != "".join(state.pieces):
            self.report(f"`{field}` must be what the deltas gave, not {payload.get(field)!r:.40}")

    def _on_item_done(self, payload: Json) -> None:
        """Close the item that an event ends, and report where it differs from its beginning and its pieces; report an
        event without an open item."""
        state = self._find_open_item(payload)
        item = obj(payload.get("item")) or {}
        if state is None:
            return
        if item.get("type") != state.item.get("type"):
            self.report("the item changes its type")
        elif item.get("type") == "message":
            self._check_message(item, "".join(state.pieces))
        elif field := _CALL_FIELDS.get(str(item.get("type"))):
            if item.get(field) != "".join(state.pieces):
                self.report(f"`{field}` must be what the deltas gave, not {item.get(field)!r:.40}")
            if item.get("call_id") != state.item.get("call_id"):
                self.report("the `call_id` of a call changes")
        del self._open[payload["output_index"]]
        self._finish_item(payload["output_index"], item)

    def _finish_item(self, index: int, item: Json) -> None:
        """Store an item that has ended, and record whether it is a blank message."""
        self._done[index] = item
        self._has_blank = self._has_blank or _is_blank_message(item)

    def _check_message(self, item: Json, text: str | None) -> None:
        """Report the faults of an item that is a message: its fields, its annotations, and a text that is not `text`,
        the joined pieces. With None, the text is not compared."""
        self.check_texts(item, "id", "status")
        parts = [part for part in objects(item.get("content")) if part.get("type") == "output_text"]
        if any(not isinstance(part.get("annotations"), list) for part in parts):
            self.report("the text has no list `annotations`")
        if text is not None and "".join([str(part.get("text")) for part in parts]) != text:
            self.report("the message's text is not what the deltas gave")

    # -- the end -------------------------------------------------------------------------------------------------------

    def _on_end(self, payload: Json) -> None:
        """Note in `ended` that the response is over, and report the faults of the last event: id, status, open items,
        an output that is not the items that ended, calls and usage. Of a failed response only the error is checked."""
        response = obj(payload.get("response")) or {}
        self.ended = str(payload.get("type"))
        if self._id is not None and response.get("id") != self._id:
            self.report("the response ends under another `id`")
        if payload.get("type") != f"response.{response.get('status')}":
            self.report(f"the `status` of the response is {response.get('status')!r:.40}")
        if payload.get("type") == "response.failed":
            self.check_texts(obj(response.get("error")) or {}, "message")
            return
        if self._open:
            self.report("the response ends while an item is open")
        if objects(response.get("output")) != [self._done[at] for at in sorted(self._done)]:
            self.report("`output` must hold the items that were done")
        self._check_output(response)

    def _check_output(self, response: Json) -> None:
        """Report a response whose calls do not fit its status (invalid arguments need "incomplete", valid ones exclude
        it), and faults of its usage."""
        calls = [item for item in objects(response.get("output")) if text(item.get("type")) in _CALL_FIELDS]
        cut = response.get("status") == "incomplete"
        arguments = [call.get("arguments") for call in calls if call["type"] == "function_call"]
        is_whole = all(map(is_object_text, arguments))
        if not (is_whole or cut):
            self.report("a call's `arguments` are no JSON object")
        if calls and is_whole and cut:
            self.report("the response is incomplete though its calls are whole; clients drop them")
        self.check_usage(response.get("usage"), *_RESPONSES_COUNTS)

    def check_whole(self, body: Json) -> None:
        """Report the faults of a whole response: its fields, items, calls and usage. They are added to `faults`."""
        self.check_texts(body, "id", "model", "status")
        self.check_numbers(body, "created_at")
        for index, item in enumerate(objects(body.get("output"))):
            self._on_added({"item": item, "output_index": index})
            if item.get("type") == "message":
                self._check_message(item, None)
            self._finish_item(index, self._open.pop(index).item)
        if not isinstance(body.get("output"), list):
            self.report("there is no list `output`")
        self._check_output(body)
        self.ended = "it"


def _is_blank_message(item: Json) -> bool:
    """Return whether an item is a message whose text is only white space; False for one with an empty text and for
    other items."""
    parts = objects(item.get("content")) if item.get("type") == "message" else []
    content = TextSoFar()
    for part in parts:
        content.add(text(part.get("text")))
    return content.is_blank


_RESPONSE_HANDLERS = {
    "response.created": ResponsesRules._on_created,
    "response.output_item.added": ResponsesRules._on_added,
    "response.content_part.added": ResponsesRules._on_part,
    "response.reasoning_summary_part.added": ResponsesRules._on_part,
    "response.output_item.done": ResponsesRules._on_item_done,
    **dict.fromkeys(_RESPONSE_ENDS, ResponsesRules._on_end),
}
