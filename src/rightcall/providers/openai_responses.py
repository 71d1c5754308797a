"""OpenAI Responses:

    {"output": [{"type": "reasoning", "summary": [...]}, {"type": "message", "content": [{"type": "output_text", ...}]},
                {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{\\"x\\": 1}"}]}

It also reads a list of items, a single item (also as `output`), `custom_tool_call`, and Chat's `tool_calls` next to
`output`, which some servers fill instead. Items that the server runs itself are not calls.

A stream sends content twice (`delta`, then `done`, and the whole response at the end), but some servers send it only
once. Content that no delta had is taken from the later events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from rightcall.parsing.options import CUT, finish_of
from rightcall.providers import openai_chat
from rightcall.providers.dialect import (
    CallClosed,
    CallDelta,
    CallOutcome,
    Delta,
    Deltas,
    Dialect,
    Extras,
    Fault,
    Finish,
    ModelTurn,
    ReasoningDelta,
    Slot,
    StreamState,
    TextDelta,
    argument_text,
    assistant_turn,
    custom_input,
    extra_fields,
    output_text,
    unknown_fields,
    with_note,
)
from rightcall.providers.openai_chat import chat_content
from rightcall.providers.sdk_view import arguments, error_text, is_parsed, obj, objects, text
from rightcall.types import Call, Json, Reply

_CALLS = ("function_call", "custom_tool_call")
_CALL_KEYS = frozenset(("type", "id", "call_id", "name", "arguments", "input", "status"))
_CONTENT_KINDS = {"message": "text", "reasoning": "reasoning"}  # by the type of an item: keys of the stream state
_PART_BREAK = "\n\n"  # between the parts of one item's reasoning
_TRUNCATED = ("truncated", "the answer ended before the call did; send the whole call again")


# -- reading -----------------------------------------------------------------------------------------------------------


def _output_items(response: Any) -> list[Json]:
    """Return the output items of a response, a list of items or one item. A response is an object with `output`."""
    fields = obj(response)
    return objects(response if fields is None else fields.get("output", fields))


def _chat_calls(response: Json, calls: list[CallDelta]) -> list[Delta]:
    """Return, as deltas, the calls under the response's `tool_calls` that are not among `calls`, by id or by name and
    arguments, so that no call runs twice."""
    ids, same = {call.id for call in calls}, {(call.name, call.arguments) for call in calls}
    others = openai_chat.calls_of(response)
    return [c for c in others if not (isinstance(c, CallDelta) and (c.id in ids or (c.name, c.arguments) in same))]


def _ending_deltas(response: Json) -> Iterator[Delta]:
    """Yield a `Fault` if the response has an error or failed, and a `Finish` with the normalized reason if it has a
    status; nothing otherwise."""
    status = text(response.get("status"))
    if status == "failed" or response.get("error"):
        yield Fault("provider_error", f"the server reported an error: {error_text(response.get('error') or status)}")
    if status:
        reason = finish_of(text((obj(response.get("incomplete_details")) or {}).get("reason")))
        yield Finish(reason if status == "incomplete" and reason in CUT else finish_of(status))


def _item_deltas(item: Json, *, completed: bool = True) -> Iterator[Delta]:
    """Yield the deltas of one item: a call, reasoning or a message. Other items, which the server runs itself, have
    none.

    `completed`: the response is completed, and so is a call with the status `in_progress`.
    """
    kind = text(item.get("type"))
    if kind in _CALLS:
        yield _ended_call_delta(item, None, completed=completed, whole=True)
    elif kind == "reasoning":
        parts = [*objects(item.get("summary")), *objects(item.get("content"))]
        if reasoning := _PART_BREAK.join([summary for part in parts if (summary := text(part.get("text")))]):
            yield ReasoningDelta(reasoning)
    elif kind == "message" or (not kind and item.get("role") == "assistant"):
        content = item.get("content")
        if text(content):
            yield TextDelta(text(content))
            return
        for part in objects(content):
            if part_text := text(part.get("text")) or text(part.get("refusal")):
                yield TextDelta(part_text)


def _ended_call_delta(item: Json, slot: Slot | None, *, completed: bool = True, whole: bool = False) -> CallDelta:
    """Convert a call item that has ended to a delta. The item's status decides whether the call is complete; a status
    of truncation is a fault.

    Unless the call is `whole`, its arguments replace earlier pieces. `completed` is that of `_item_deltas`.
    """
    status = text(item.get("status"))
    truncated = finish_of(status) in CUT and not (completed and status == "in_progress")
    call = _call_delta(item, slot, whole=whole, all=not whole)
    return msgspec.structs.replace(call, ended=status == "completed", fault=_TRUNCATED if truncated else None)


def _call_delta(item: Json, slot: Slot | None, *, whole: bool = False, all: bool = False) -> CallDelta:
    """Convert a function call item or a custom call item to a delta for this slot. Its id is the item's `call_id`, or
    else the item's `id`. `all` and `whole` are those of `CallDelta`."""
    custom = item.get("type") == "custom_tool_call"
    return CallDelta(
        slot=slot,
        id=text(item.get("call_id")) or text(item.get("id")),
        name=text(item.get("name")),
        arguments=text(item.get("input")) if custom else arguments(item.get("arguments")),
        custom=custom,
        whole=whole,
        all=all,
        parsed=not custom and is_parsed(item.get("arguments")),
        unknown=() if custom else unknown_fields(item, _CALL_KEYS, inner=False),
    )


# -- streams -----------------------------------------------------------------------------------------------------------


def _item_keys(payload: Json) -> list[Slot]:
    """Return the index and then the id of the item of an event, as far as it has them. Some servers omit the index,
    some the id."""
    index, item = payload.get("output_index"), obj(payload.get("item")) or {}
    id = text(payload.get("item_id")) or text(item.get("id"))
    return [*([index] if type(index) is int else []), *([id] if id else [])]


def _find_slot(payload: Json, state: StreamState) -> Slot | None:
    """Return the slot of the call that an event belongs to: the index of its item; without an index, the one that an
    earlier event gave for its id, or else the id. None if the event has neither. An event with both is recorded in
    `state`."""
    keys = _item_keys(payload)
    if len(keys) > 1:
        state["slot", keys[1]] = keys[0]
    return state.get(("slot", keys[0]), keys[0]) if keys else None


def _record_delivery(kind: str, payload: Json, state: StreamState, part: Any = True) -> Any:
    """Record in `state` that content of this kind ("text" or "reasoning") of this event's item was delivered; `part`
    says which part of the item. Return the part that was recorded before, or None if this is the first."""
    places = [(kind, key) for key in _item_keys(payload)]
    before = next((state[place] for place in places if place in state), None)
    state.update(dict.fromkeys(places, part))
    state[kind] = True
    return before


def _record_item_end(kind: str, payload: Json, state: StreamState) -> bool:
    """Record in `state` that the content of this event's item has ended, and return True if it was delivered before, so
    that it must not be read again.

    Pieces whose keys cannot be compared with those of the item count as those of the item that ends next."""
    last = state.pop(("last", kind), None)
    is_next = last is not None and {*map(type, last)}.isdisjoint(map(type, _item_keys(payload)))
    return _record_delivery(kind, payload, state) is not None or is_next


def _read_text(payload: Json, state: StreamState) -> Iterator[Delta]:
    """Read an event with a piece of text: yield it, and record that its item was delivered."""
    _record_delivery("text", payload, state)
    state["last", "text"] = _item_keys(payload)
    yield TextDelta(text(payload.get("delta")))


def _read_reasoning(payload: Json, state: StreamState) -> Iterator[Delta]:
    """Read an event with a piece of reasoning: yield it, with a break before a new part of the item's reasoning, and
    record the delivery."""
    part = (text(payload.get("type")), payload.get("summary_index"), payload.get("content_index"))
    has_keys = bool(_item_keys(payload))
    before = _record_delivery("reasoning", payload, state, part) if has_keys else state.get(("last", "part"))
    state["last", "reasoning"], state["last", "part"], state["reasoning"] = _item_keys(payload), part, True
    delta = text(payload.get("delta"))
    yield ReasoningDelta(delta if before in (None, part) else _PART_BREAK + delta)


def _read_item_start(payload: Json, state: StreamState) -> Iterator[Delta]:
    """Read the event that begins an item: for a call, record its id in `state` and yield its first delta; for other
    items nothing."""
    item = obj(payload.get("item")) or {}
    if item.get("type") in _CALLS:
        call = _call_delta(item, _find_slot(payload, state))
        state["ids", call.id] = True
        yield call


def _read_arguments(payload: Json, state: StreamState) -> Iterator[Delta]:
    """Read an event with a piece of a call's arguments, or of a custom call's input: yield it as one `CallDelta`."""
    custom = "custom" in text(payload.get("type"))
    yield CallDelta(slot=_find_slot(payload, state), arguments=text(payload.get("delta")), custom=custom)


def _read_final_arguments(payload: Json, state: StreamState) -> Iterator[Delta]:
    """Read the event with the final arguments of a call: yield one `CallDelta`, which replaces the pieces."""
    custom = "input" in payload
    given = text(payload.get("input")) if custom else arguments(payload.get("arguments"))
    yield CallDelta(slot=_find_slot(payload, state), arguments=given, custom=custom, all=True)


def _read_item_end(payload: Json, state: StreamState) -> Iterator[Delta]:
    """Read the event that ends an item: yield a call with its final arguments and its end, or content that no event has
    delivered."""
    item = obj(payload.get("item")) or {}
    if item.get("type") in _CALLS:
        call = _ended_call_delta(item, _find_slot(payload, state))
        state["ids", call.id] = True
        yield call
        yield CallClosed(call.slot)
    elif (kind := _CONTENT_KINDS.get(text(item.get("type")))) and not _record_item_end(kind, payload, state):
        yield from _item_deltas(item)


def _read_response_end(payload: Json, state: StreamState) -> Iterator[Delta]:
    """Read the event that ends the stream and repeats the whole response: yield the calls and the kinds of content that
    no event has delivered, calls that turn out truncated, and the finish reason."""
    response = obj(payload.get("response")) or {}
    completed = text(response.get("status")) == "completed"
    for item in _output_items(response) if "output" in response else ():
        if item.get("type") in _CALLS:
            call = _ended_call_delta(item, None, completed=completed)
            if ("ids", call.id) not in state:
                yield from _item_deltas(item, completed=completed)
            elif call.fault is not None:
                yield call
        elif _CONTENT_KINDS.get(text(item.get("type"))) not in state:
            yield from _item_deltas(item)
    ending = list(_ending_deltas(response))
    yield from ending or [Finish(finish_of(text(payload.get("type")).removeprefix("response.")))]


_EVENTS: dict[str, Callable[[Json, StreamState], Iterator[Delta]]] = {
    "response.output_text.delta": _read_text,
    "response.refusal.delta": _read_text,
    "response.reasoning_summary_text.delta": _read_reasoning,
    "response.reasoning_summary.delta": _read_reasoning,
    "response.reasoning_text.delta": _read_reasoning,
    "response.reasoning.delta": _read_reasoning,
    "response.output_item.added": _read_item_start,
    "response.function_call_arguments.delta": _read_arguments,
    "response.custom_tool_call_input.delta": _read_arguments,
    "response.function_call_arguments.done": _read_final_arguments,
    "response.custom_tool_call_input.done": _read_final_arguments,
    "response.output_item.done": _read_item_end,
    "response.completed": _read_response_end,
    "response.incomplete": _read_response_end,
    "response.failed": _read_response_end,
}


# -- histories ---------------------------------------------------------------------------------------------------------


def _other_message(item: Json) -> Json | None:
    """Return the Chat message of an item that the model did not write: a result, or a message of another role than
    assistant. Return None for all other items."""
    kind, role = text(item.get("type")), text(item.get("role"))
    if kind.endswith("_call_output"):
        return {"role": "tool", "tool_call_id": text(item.get("call_id")), "content": chat_content(item.get("output"))}
    if role and role != "assistant":
        return {"role": role, "content": chat_content(item.get("content"))}
    return None


# -- writing -----------------------------------------------------------------------------------------------------------


def _call_item(call: Call, extras: Extras | None) -> Json:
    """Return a call as an input item, with the opaque fields that `extras` has for its id; the opaque `type`, if there
    is one, is the type of the item, such as `custom_tool_call`."""
    fields = extra_fields(extras, call.id)
    kind = fields.pop("type", "")
    if kind not in ("", *_CALLS):  # an item type of one tool, whose fields are the arguments
        return {"type": kind, "call_id": call.id, **fields}
    item = {"type": kind or "function_call", "call_id": call.id, "name": call.name}
    if kind == "custom_tool_call":
        return {**item, "input": custom_input(call), **fields}
    return {**item, "arguments": argument_text(call), **fields}


def _opaque_call_fields(item: Json) -> Json:
    """Return the fields of a call item that rightcall does not read and that are not null; for a custom call also its
    `type`."""
    kept = {key: value for key, value in item.items() if key not in _CALL_KEYS and value is not None}
    return {"type": "custom_tool_call", **kept} if item.get("type") == "custom_tool_call" else kept


# -- the dialect -------------------------------------------------------------------------------------------------------

_ITEM_TYPES = frozenset((*_CALLS, "reasoning", "function_call_output", "custom_tool_call_output"))
_PART_TYPES = frozenset(("output_text", "refusal", "summary_text", "reasoning_text", "input_text", "input_image"))


def _is_output(fields: Json) -> bool:
    """Return True if the object's `output` is a list, a known item, or a text with `tool_calls` next to it. Raises
    `KeyError` if the key is missing."""
    output = fields["output"]
    if isinstance(output, str):
        return bool(fields.get("tool_calls"))
    item = obj(output) or {}
    return isinstance(output, (list, tuple)) or item.get("type") == "message" or text(item.get("type")) in _ITEM_TYPES


class OpenAIResponses(Dialect):
    """OpenAI's Responses API."""

    name = "responses"

    def detects(self, fields: Json) -> bool:
        """Return True if the object is a response, an event or an item that only the Responses API writes."""
        kind = text(fields.get("type"))
        if kind.startswith("response.") or fields.get("object") == "response" or kind in _ITEM_TYPES:
            return True
        if "choices" not in fields and "output" in fields and _is_output(fields):
            return True
        return kind == "message" and any(
            text(part.get("type")) in _PART_TYPES for part in objects(fields.get("content"))
        )

    def response_deltas(self, response: Any) -> Deltas:
        """Return the deltas of a response, a list of items or one item, all with the choice 0: items, an `output` that
        is text, calls that only `tool_calls` has, and the finish reason."""
        response_fields = obj(response)
        fields = response_fields or {}
        completed = text(fields.get("status")) == "completed"
        deltas = [delta for item in _output_items(response) for delta in _item_deltas(item, completed=completed)]
        if response_fields is not None:
            if output := text(fields.get("output")):
                deltas.append(TextDelta(output))
            deltas += _chat_calls(fields, [delta for delta in deltas if isinstance(delta, CallDelta)])
        return [(0, delta) for delta in (*deltas, *_ending_deltas(fields))]

    def chunk_deltas(self, payload: Json, state: StreamState) -> Deltas:
        """Return the deltas of one event of a stream, with the choice 0, and update `state`. A chunk may be a whole
        response; unknown events have no deltas."""
        kind = text(payload.get("type"))
        read_event = _EVENTS.get(kind)
        if read_event is not None:
            return [(0, delta) for delta in read_event(payload, state)]
        return [] if kind.startswith("response.") else self.response_deltas(payload)

    def opaque_fields(self, response: Any) -> tuple[Json, list[tuple[str, Json]]]:
        """Return the reasoning items under `reasoning` (no key if there are none), and for each call in order its id
        and the fields that rightcall does not read."""
        entries = _output_items(response)
        reasoning = [item for item in entries if item.get("type") == "reasoning"]
        calls = [item for item in entries if item.get("type") in _CALLS]
        fields = [(_call_delta(item, None).id, _opaque_call_fields(item)) for item in calls]
        return {"reasoning": reasoning} if reasoning else {}, fields

    def history_entries(self, history: Sequence[Any]) -> Iterator[Json | ModelTurn]:
        """Yield results and messages that the model did not write as messages of Chat, and all adjacent items of the
        model as one `ModelTurn` with the list of these items. Entries that are no objects are left out."""
        turn: list[Json] = []
        for item in objects(history):
            message = _other_message(item)
            if message is None:
                turn.append(item)
                continue
            if turn:
                yield ModelTurn(turn)
                turn = []
            yield message
        if turn:
            yield ModelTurn(turn)

    def assistant_message(
        self,
        reply: Reply | str,
        calls: Iterable[Call] | None = None,
        *,
        reasoning: str | None = None,
        extras: Extras | None = None,
    ) -> list[Json]:
        """Return the assistant's turn as input items: the reasoning, the message unless it is empty, one item per call.
        Reasoning items in `extras` replace the reasoning's text."""
        turn = assistant_turn(reply, calls, reasoning)
        out: list[Json] = list(extra_fields(extras, "").get("reasoning", ()))
        if turn.reasoning and not out:
            out.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": turn.reasoning}]})
        if turn.text:
            content = [{"type": "output_text", "text": turn.text}]
            out.append({"type": "message", "role": "assistant", "content": content})
        return out + [_call_item(call, extras) for call in turn.calls]

    def accepted_message(self, reply: Reply, extras: Extras) -> Any:
        """Return a reply as the assistant's turn in the form that servers accept: of its reasoning, only the items in
        `extras` are sent back."""
        return self.assistant_message(reply, reasoning="", extras=extras)

    def tool_result(self, call: Call, output: Any, *, is_error: bool = False, custom: bool = False) -> Json:
        """Return an item with the result of a call; `custom`: of a custom call. The API has no error flag, so the text
        of an error begins with ERROR."""
        kind = "custom_tool_call_output" if custom else "function_call_output"
        return {"type": kind, "call_id": call.id, "output": output_text(output, is_error=is_error)}

    def result_messages(self, outcomes: Sequence[CallOutcome], note: str) -> list[Json]:
        """Return the results of one turn as items, in order, and the note, unless it is empty, as a user message."""
        results = [
            self.tool_result(each.call, each.output, is_error=each.is_error, custom=each.custom) for each in outcomes
        ]
        return with_note(results, note)

    def tool_choice(self, choice: str) -> Any:
        """Return the `tool_choice` of a request for `auto`, `required`, `none`, or the name of a tool, which is not
        checked."""
        return choice if choice in ("auto", "required", "none") else {"type": "function", "name": choice}


RESPONSES = OpenAIResponses()
