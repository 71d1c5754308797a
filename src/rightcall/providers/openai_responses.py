"""OpenAI Responses:

    {"output": [{"type": "reasoning", "summary": [...]}, {"type": "message", "content": [{"type": "output_text", ...}]},
                {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{\\"x\\": 1}"}]}

Read besides: a list of items, one item, also as `output`; `custom_tool_call`; Chat's `tool_calls` beside `output`,
which some servers fill instead. Items that the server runs itself are no calls of ours.
A stream says things twice (`delta`, `done`, the whole response at the end), and some servers only once: what was not
seen as deltas is taken from what comes later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from rightcall.parsing.how_ended import CUT, finish_of
from rightcall.providers import openai_chat
from rightcall.providers.chat_parts import chat_content
from rightcall.providers.deltas import (
    Delta,
    DeltaPiece,
    Deltas,
    End,
    Fault,
    Said,
    Seen,
    Slot,
    Stop,
    Thought,
    unknown_fields,
)
from rightcall.providers.dialect import CallOutcome, Dialect, Spoken, with_note
from rightcall.providers.outgoing import Extras, argument_text, custom_input, fields_of, output_text, turn
from rightcall.providers.sdk_view import arguments, error_text, is_parsed, obj, objects, text
from rightcall.types import Call, Json, Reply

_CALLS = ("function_call", "custom_tool_call")
_TOLD = {"message": "said", "reasoning": "thought"}
_BREAK = "\n\n"  # between the parts of one item's reasoning
_CUT_ITEM = ("truncated", "the answer ended before the call did; send the whole call again")
_KNOWN = frozenset(("type", "id", "call_id", "name", "arguments", "input", "status"))


# -- reading -----------------------------------------------------------------------------------------------------------


def whole(response: Any) -> Deltas:
    """Everything in a response, a list of items or one item."""
    found = obj(response)
    over = _is_over(found or {})
    out: list[Delta] = [delta for item in _entries(response) for delta in _item(item, over=over)]
    if found is not None:
        out += [Said(said)] if (said := text(found.get("output"))) else []
        out += _beside(found, [delta for delta in out if isinstance(delta, DeltaPiece)])
    return [(0, delta) for delta in (*out, *_ending(found or {}))]


def _entries(response: Any) -> list[Json]:
    found = obj(response)
    return objects(response if found is None else found.get("output", found))


def _is_over(response: Json) -> bool:
    """Are its items over too, though one of them says that it is still in progress?"""
    return text(response.get("status")) == "completed"


def _beside(response: Json, output: list[DeltaPiece]) -> list[Delta]:
    """The calls under `tool_calls`, as Chat writes them, that `output` does not have too: nothing may run twice."""
    ids, same = {call.id for call in output}, {(call.name, call.arguments) for call in output}
    calls = openai_chat.calls_of(response)
    return [c for c in calls if not (isinstance(c, DeltaPiece) and (c.id in ids or (c.name, c.arguments) in same))]


def _ending(response: Json) -> Iterator[Delta]:
    status = text(response.get("status"))
    if status == "failed" or response.get("error"):
        yield Fault("provider_error", f"the server reported an error: {error_text(response.get('error') or status)}")
    if status:
        reason = finish_of(text((obj(response.get("incomplete_details")) or {}).get("reason")))
        yield Stop(reason if status == "incomplete" and reason in CUT else finish_of(status))


def _item(item: Json, *, over: bool = True) -> Iterator[Delta]:
    kind = text(item.get("type"))
    if kind in _CALLS:
        yield _ended_call(item, None, over=over, whole=True)
    elif kind == "reasoning":
        if thought := _thought(item):
            yield Thought(thought)
    elif kind == "message" or (not kind and item.get("role") == "assistant"):
        content = item.get("content")
        parts = [text(content)] if text(content) else [_said(part) for part in objects(content)]
        yield from (Said(part) for part in parts if part)


def _ended_call(item: Json, slot: Slot | None, *, over: bool = True, whole: bool = False) -> DeltaPiece:
    """A call of which nothing more comes; its status says whether it is whole."""
    status = text(item.get("status"))
    was_cut = finish_of(status) in CUT and not (over and status == "in_progress")
    made = _call(item, slot, whole=whole, all=not whole)
    return msgspec.structs.replace(made, ended=status == "completed", fault=_CUT_ITEM if was_cut else None)


def _call(item: Json, slot: Slot | None, *, whole: bool = False, all: bool = False) -> DeltaPiece:
    custom = item.get("type") == "custom_tool_call"
    return DeltaPiece(
        slot=slot,
        id=text(item.get("call_id")) or text(item.get("id")),
        name=text(item.get("name")),
        arguments=text(item.get("input")) if custom else arguments(item.get("arguments")),
        custom=custom,
        whole=whole,
        all=all,
        parsed=not custom and is_parsed(item.get("arguments")),
        beside=() if custom else unknown_fields(item, _KNOWN, inner=False),
    )


def _thought(item: Json) -> str:
    parts = [*objects(item.get("summary")), *objects(item.get("content"))]
    return _BREAK.join([said for part in parts if (said := text(part.get("text")))])


def _said(part: Json) -> str:
    return text(part.get("text")) or text(part.get("refusal"))


def chunk(payload: Json, seen: Seen) -> Deltas:
    """What one event of a stream adds. A chunk may be a whole response."""
    kind = text(payload.get("type"))
    read = _EVENTS.get(kind)
    if read is not None:
        return [(0, delta) for delta in read(payload, seen)]
    return [] if kind.startswith("response.") else whole(payload)


def _pointers(payload: Json) -> list[Slot]:
    """What says which item an event is about; some servers leave out the index, some the id."""
    index, item = payload.get("output_index"), obj(payload.get("item")) or {}
    named = text(payload.get("item_id")) or text(item.get("id"))
    return [*([index] if type(index) is int else []), *([named] if named else [])]


def _slot(payload: Json, seen: Seen) -> Slot | None:
    """Where the call is counted that an event is about."""
    pointers = _pointers(payload)
    if len(pointers) > 1:
        seen["slot", pointers[1]] = pointers[0]
    return seen.get(("slot", pointers[0]), pointers[0]) if pointers else None


def _see(kind: str, payload: Json, seen: Seen, part: Any = True) -> Any:
    """A piece of an item's text, or the item: what of it came last, None where this is the first."""
    places = [(kind, pointer) for pointer in _pointers(payload)]
    before = next((seen[place] for place in places if place in seen), None)
    seen.update(dict.fromkeys(places, part))
    seen[kind] = True
    return before


def _was_seen(kind: str, payload: Json, seen: Seen) -> bool:
    """Did the text of the item that ends come before? What says nothing that the end says too is of the item that ends
    next."""
    last = seen.pop(("last", kind), None)
    is_next = last is not None and {*map(type, last)}.isdisjoint(map(type, _pointers(payload)))
    return _see(kind, payload, seen) is not None or is_next


def _on_text(payload: Json, seen: Seen) -> Iterator[Delta]:
    _see("said", payload, seen)
    seen["last", "said"] = _pointers(payload)
    yield Said(text(payload.get("delta")))


def _on_thought(payload: Json, seen: Seen) -> Iterator[Delta]:
    part = (text(payload.get("type")), payload.get("summary_index"), payload.get("content_index"))
    before = _see("thought", payload, seen, part) if _pointers(payload) else seen.get(("last", "part"))
    seen["last", "thought"], seen["last", "part"], seen["thought"] = _pointers(payload), part, True
    yield Thought(text(payload.get("delta")) if before in (None, part) else _BREAK + text(payload.get("delta")))


def _on_added(payload: Json, seen: Seen) -> Iterator[Delta]:
    item = obj(payload.get("item")) or {}
    if item.get("type") in _CALLS:
        call = _call(item, _slot(payload, seen))
        seen["ids", call.id] = True
        yield call


def _on_arguments(payload: Json, seen: Seen) -> Iterator[Delta]:
    custom = "custom" in text(payload.get("type"))
    yield DeltaPiece(slot=_slot(payload, seen), arguments=text(payload.get("delta")), custom=custom)


def _on_arguments_done(payload: Json, seen: Seen) -> Iterator[Delta]:
    custom = "input" in payload
    said = text(payload.get("input")) if custom else arguments(payload.get("arguments"))
    yield DeltaPiece(slot=_slot(payload, seen), arguments=said, custom=custom, all=True)


def _on_done(payload: Json, seen: Seen) -> Iterator[Delta]:
    item = obj(payload.get("item")) or {}
    if item.get("type") in _CALLS:
        call = _ended_call(item, _slot(payload, seen))
        seen["ids", call.id] = True
        yield call
        yield End(call.slot)
    elif (kind := _TOLD.get(text(item.get("type")))) and not _was_seen(kind, payload, seen):
        yield from _item(item)


def _on_end(payload: Json, seen: Seen) -> Iterator[Delta]:
    """The whole response once more: what no event has shown is taken from it."""
    response = obj(payload.get("response")) or {}
    for item in _entries(response) if "output" in response else ():
        if item.get("type") in _CALLS:
            call = _ended_call(item, None, over=_is_over(response))
            if ("ids", call.id) not in seen:
                yield from _item(item, over=_is_over(response))
            elif call.fault is not None:
                yield call
        elif _TOLD.get(text(item.get("type"))) not in seen:
            yield from _item(item)
    ending = list(_ending(response))
    yield from ending or [Stop(finish_of(text(payload.get("type")).removeprefix("response.")))]


_EVENTS: dict[str, Callable[[Json, Seen], Iterator[Delta]]] = {
    "response.output_text.delta": _on_text,
    "response.refusal.delta": _on_text,
    "response.reasoning_summary_text.delta": _on_thought,
    "response.reasoning_summary.delta": _on_thought,
    "response.reasoning_text.delta": _on_thought,
    "response.reasoning.delta": _on_thought,
    "response.output_item.added": _on_added,
    "response.function_call_arguments.delta": _on_arguments,
    "response.custom_tool_call_input.delta": _on_arguments,
    "response.function_call_arguments.done": _on_arguments_done,
    "response.custom_tool_call_input.done": _on_arguments_done,
    "response.output_item.done": _on_done,
    "response.completed": _on_end,
    "response.incomplete": _on_end,
    "response.failed": _on_end,
}


def sides(history: Sequence[Any]) -> Iterator[Json | Spoken]:
    """Who said what: what the model made from one word of the others to the next is one turn."""
    turn: list[Json] = []
    for item in objects(history):
        other = _other_side(item)
        if other is None:
            turn.append(item)
            continue
        if turn:
            yield Spoken(turn)
            turn = []
        yield other
    if turn:
        yield Spoken(turn)


def _other_side(item: Json) -> Json | None:
    """The message that an item is, if the model did not make it."""
    kind, role = text(item.get("type")), text(item.get("role"))
    if kind.endswith("_call_output"):
        return {"role": "tool", "tool_call_id": text(item.get("call_id")), "content": chat_content(item.get("output"))}
    if role and role != "assistant":
        return {"role": role, "content": chat_content(item.get("content"))}
    return None


# -- writing -----------------------------------------------------------------------------------------------------------


def assistant_message(
    reply: Reply | str,
    calls: Iterable[Call] | None = None,
    *,
    reasoning: str | None = None,
    extras: Extras | None = None,
) -> list[Json]:
    """The assistant's turn as input items: reasoning, message, one item per call."""
    said = turn(reply, calls, reasoning)
    out: list[Json] = list(fields_of(extras, "").get("reasoning", ()))
    if said.reasoning and not out:
        out.append({"type": "reasoning", "summary": [{"type": "summary_text", "text": said.reasoning}]})
    if said.text:
        content = [{"type": "output_text", "text": said.text}]
        out.append({"type": "message", "role": "assistant", "content": content})
    return out + [_written(call, extras) for call in said.calls]


def _written(call: Call, extras: Extras | None) -> Json:
    fields = fields_of(extras, call.id)
    kind = fields.pop("type", "")
    if kind not in ("", *_CALLS):  # an item of a tool's own, which says what it was called with
        return {"type": kind, "call_id": call.id, **fields}
    if kind == "custom_tool_call":
        return {
            "type": "custom_tool_call",
            "call_id": call.id,
            "name": call.name,
            "input": custom_input(call),
            **fields,
        }
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": argument_text(call),
        **fields,
    }


def tool_result(call: Call, output: Any, *, is_error: bool = False, custom: bool = False) -> Json:
    """What a tool gave back. The wire has no error flag: an error says so in its text."""
    kind = "custom_tool_call_output" if custom else "function_call_output"
    return {"type": kind, "call_id": call.id, "output": output_text(output, is_error=is_error)}


def tool_choice(choice: str) -> Any:
    """`auto`, `required`, `none` or a tool's name, as this dialect says it."""
    return choice if choice in ("auto", "required", "none") else {"type": "function", "name": choice}


def read_tool_choice(value: Any) -> str:
    """Our word for it; `auto` for what is absent or unknown."""
    found = obj(value)
    if found is None:
        return text(value) or "auto"
    return text(found.get("name")) or text(found.get("mode")) or "auto"


def opaque(response: Any) -> tuple[Json, list[tuple[str, Json]]]:
    """Reasoning items to be sent back as they came, and fields of calls that we do not read."""
    entries = _entries(response)
    thoughts = [item for item in entries if item.get("type") == "reasoning"]
    calls = [item for item in entries if item.get("type") in _CALLS]
    return {"reasoning": thoughts} if thoughts else {}, [(_call(item, None).id, _fields(item)) for item in calls]


def _fields(item: Json) -> Json:
    kept = {key: value for key, value in item.items() if key not in _KNOWN and value is not None}
    return {"type": "custom_tool_call", **kept} if item.get("type") == "custom_tool_call" else kept


# -- what is known of it -----------------------------------------------------------------------------------------------

_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_ITEM_KINDS = frozenset(("function_call", "custom_tool_call", "reasoning", *_OUTPUTS))
_PART_KINDS = frozenset(("output_text", "refusal", "summary_text", "reasoning_text", "input_text", "input_image"))


def _is_responses(found: Json) -> bool:
    kind = text(found.get("type"))
    if kind.startswith("response.") or found.get("object") == "response" or kind in _ITEM_KINDS:
        return True
    if "choices" not in found and _has_output(found):
        return True
    return kind == "message" and any(text(part.get("type")) in _PART_KINDS for part in objects(found.get("content")))


def _has_output(found: Json) -> bool:
    """Items, one item, or a text with calls beside it."""
    output = found.get("output")
    if isinstance(output, str):
        return bool(found.get("tool_calls"))
    return isinstance(output, (list, tuple)) or _is_item(obj(output))


def _is_item(found: Json | None) -> bool:
    """Is this one item of an output, where a list of them should be?"""
    return found is not None and (found.get("type") == "message" or text(found.get("type")) in _ITEM_KINDS)


def _turn(reply: Reply, extras: Extras) -> Any:
    """Reasoning goes back only where it is signed."""
    return assistant_message(reply, reasoning="", extras=extras)


def _results(outcomes: Sequence[CallOutcome], note: str) -> list[Json]:
    out = [tool_result(each.call, each.output, is_error=each.is_error, custom=each.custom) for each in outcomes]
    return with_note(out, note)


RESPONSES = Dialect("responses", _is_responses, whole, chunk, opaque, assistant_message, _turn, _results, sides)
