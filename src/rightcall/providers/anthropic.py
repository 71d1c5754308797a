"""Anthropic Messages:

    {"type": "message", "role": "assistant", "content": [{"type": "thinking", "thinking": "..."},
        {"type": "text", "text": "..."}, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}}]}

Read besides: a list of blocks, one block. Tools that the server runs itself (`server_tool_use`) are no calls of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rightcall.parsing.how_ended import finish_of
from rightcall.providers.chat_parts import chat_content
from rightcall.providers.deltas import Delta, DeltaPiece, Deltas, End, Said, Seen, Stop, Thought, unknown_fields
from rightcall.providers.dialect import CallOutcome, Dialect, Spoken
from rightcall.providers.outgoing import Extras, fields_of, output_text, turn
from rightcall.providers.sdk_view import arguments, items, obj, objects, text
from rightcall.types import Call, Json, Reply

_THINKING = ("thinking", "redacted_thinking")
_KNOWN = frozenset(("type", "id", "name", "input"))
_SERVERS = _KNOWN | {"cache_control", "caller"}


# -- reading -----------------------------------------------------------------------------------------------------------


def whole(response: Any) -> Deltas:
    """Everything in a message, a list of blocks or one block."""
    found = obj(response)
    if found is None:
        return [(0, delta) for block in objects(items(response)) for delta in _block(block)]
    return [(0, delta) for delta in (_message(found) if "content" in found or "role" in found else _block(found))]


def _message(message: Json) -> Iterator[Delta]:
    if thought := text(message.get("reasoning")):
        yield Thought(thought)
    content = message.get("content")
    if text(content):
        yield Said(text(content))
    for block in objects(content):
        yield from _block(block)
    yield from _ending(message)


def _ending(fields: Json) -> Iterator[Delta]:
    reason = text(fields.get("stop_reason"))
    if reason:
        yield Stop(finish_of(reason))


def _block(block: Json) -> Iterator[Delta]:
    kind = text(block.get("type"))
    if kind == "text" and text(block.get("text")):
        yield Said(text(block["text"]))
    elif kind == "thinking" and text(block.get("thinking")):
        yield Thought(text(block["thinking"]))
    elif kind == "tool_use":
        yield DeltaPiece(
            id=text(block.get("id")),
            name=text(block.get("name")),
            arguments=arguments(block.get("input")),
            whole=True,
            parsed=True,
            beside=unknown_fields(block, _SERVERS, inner=False),
        )


def chunk(payload: Json, seen: Seen) -> Deltas:
    """What one event of a stream adds. A chunk may be a whole message."""
    return [(0, delta) for delta in _event(payload, seen)]


def _event(payload: Json, seen: Seen) -> Iterator[Delta]:
    kind = text(payload.get("type"))
    if kind == "message_start":
        yield from _started(payload)
    elif kind == "content_block_start":
        yield from _opened(payload, seen)
    elif kind == "content_block_delta":
        yield from _grown(payload, seen)
    elif kind == "content_block_stop":
        yield from _stopped(payload, seen)
    elif kind == "message_delta":
        yield from _ending(obj(payload.get("delta")) or {})
    elif kind not in ("ping", "message_stop"):
        yield from (delta for _, delta in whole(payload))


def _slot(payload: Json) -> int | None:
    index = payload.get("index")
    return index if type(index) is int else None


def _started(payload: Json) -> Iterator[Delta]:
    """A message may begin with what it holds already."""
    message = obj(payload.get("message")) or {}
    if message.get("content"):
        yield from _message(message)


def _opened(payload: Json, seen: Seen) -> Iterator[Delta]:
    block = obj(payload.get("content_block")) or {}
    kind = seen[_slot(payload)] = text(block.get("type"))
    if kind != "tool_use":
        yield from _block(block)
        return
    given = block.get("input")
    yield DeltaPiece(
        slot=_slot(payload),
        id=text(block.get("id")),
        name=text(block.get("name")),
        draft=arguments(given) if given else "",
        parsed=True,
        beside=unknown_fields(block, _SERVERS, inner=False),
    )


def _grown(payload: Json, seen: Seen) -> Iterator[Delta]:
    delta = obj(payload.get("delta")) or {}
    if said := text(delta.get("text")):
        yield Said(said)
    if thought := text(delta.get("thinking")):
        yield Thought(thought)
    # The arguments of a tool that the server runs come the same way.
    if "partial_json" in delta and seen.get(_slot(payload), "tool_use") == "tool_use":
        yield DeltaPiece(slot=_slot(payload), arguments=arguments(delta["partial_json"]), parsed=True)


def _stopped(payload: Json, seen: Seen) -> Iterator[Delta]:
    if seen.get(_slot(payload), "tool_use") == "tool_use":
        yield End(_slot(payload))


def sides(history: Sequence[Any]) -> Iterator[Json | Spoken]:
    """Who said what: of a user's message the results first, as the API demands, then what the user said."""
    for message in objects(history):
        if message.get("role") == "assistant":
            yield Spoken(message)
        else:
            yield from _heard(message)


def _heard(message: Json) -> Iterator[Json]:
    content = message.get("content")
    blocks = objects(content)
    for block in blocks:
        if block.get("type") == "tool_result":
            failed = {"is_error": True} if block.get("is_error") is True else {}
            id = text(block.get("tool_use_id"))
            yield {"role": "tool", "tool_call_id": id, "content": chat_content(block.get("content")), **failed}
    said = [block for block in items(content) if (obj(block) or {}).get("type") != "tool_result"]
    if said or not blocks:
        role = text(message.get("role")) or "user"
        yield {"role": role, "content": chat_content(content if isinstance(content, str) else said)}


# -- writing -----------------------------------------------------------------------------------------------------------


def assistant_message(
    reply: Reply | str,
    calls: Iterable[Call] | None = None,
    *,
    reasoning: str | None = None,
    blocks: list[Json] | None = None,
    extras: Extras | None = None,
    reasoning_key: str | None = "reasoning",
) -> Json:
    """The assistant's turn for the history. Without calls `blocks`, if any, or the text are the content.

    Thinking blocks among the `extras` are sent back signed, as they came. Otherwise reasoning goes under
    `reasoning_key`; None leaves it out, as Anthropic's own server wants it.
    """
    said = turn(reply, calls, reasoning)
    thinking: list[Json] = list(fields_of(extras, "").get("thinking", ()))
    content: Any = said.text
    if said.calls:
        content = [*thinking, *_text_blocks(said.text), *[_written(call, extras) for call in said.calls]]
    elif thinking:
        content = [*thinking, *(blocks or _text_blocks(said.text))]
    elif blocks:
        content = blocks
    message: Json = {"role": "assistant", "content": content}
    if said.reasoning and reasoning_key and not thinking:
        message[reasoning_key] = said.reasoning
    return message


def _text_blocks(said: str) -> list[Json]:
    return [{"type": "text", "text": said}] if said else []


def _written(call: Call, extras: Extras | None) -> Json:
    return {
        "type": "tool_use",
        "id": call.id,
        "name": call.name,
        "input": call.arguments,
        **fields_of(extras, call.id),
    }


def tool_result(call: Call, output: Any, *, is_error: bool = False) -> Json:
    """A user message with one result. A list of content blocks goes out as it is."""
    blocks = isinstance(output, list) and bool(output) and all(isinstance(o, dict) and "type" in o for o in output)
    result: Json = {"type": "tool_result", "tool_use_id": call.id, "content": output if blocks else output_text(output)}
    if is_error:
        result["is_error"] = True
    return {"role": "user", "content": [result]}


_WORDS = {"auto": "auto", "required": "any", "none": "none"}


def tool_choice(choice: str) -> Any:
    """`auto`, `required`, `none` or a tool's name, as this dialect says it."""
    return {"type": _WORDS[choice]} if choice in _WORDS else {"type": "tool", "name": choice}


def read_tool_choice(value: Any) -> str:
    """Our word for it; `auto` for what is absent or unknown."""
    found = obj(value) or {}
    kind = text(found.get("type"))
    return text(found.get("name")) or next((word for word, theirs in _WORDS.items() if theirs == kind), "auto")


def opaque(response: Any) -> tuple[Json, list[tuple[str, Json]]]:
    """Thinking blocks with their signatures, and fields of calls that we do not read."""
    found = obj(response)
    blocks = objects(response if found is None else found.get("content", [found]))
    thinking = [block for block in blocks if block.get("type") in _THINKING]
    calls = [block for block in blocks if block.get("type") == "tool_use"]
    return {"thinking": thinking} if thinking else {}, [(text(each.get("id")), _unread(each)) for each in calls]


def _unread(call: Json) -> Json:
    return {key: value for key, value in call.items() if key not in _KNOWN and value is not None}


# -- what is known of it -----------------------------------------------------------------------------------------------

_EVENTS = frozenset(
    "message_start content_block_start content_block_delta content_block_stop message_delta message_stop ping".split()
)
_BLOCK_KINDS = frozenset("tool_use thinking redacted_thinking server_tool_use tool_result".split())


def _is_messages(found: Json) -> bool:
    kind = text(found.get("type"))
    if kind in _EVENTS or kind == "message" or "stop_reason" in found:
        return True
    if kind in ("tool_use", "redacted_thinking") or (kind == "thinking" and "signature" in found):
        return True
    for block in objects(found.get("content")):
        if text(block.get("type")) in _BLOCK_KINDS and not isinstance(block.get("thinking"), list):
            return True
    return False


def _turn(reply: Reply, extras: Extras) -> Json:
    """Reasoning goes back only where it is signed."""
    return assistant_message(reply, extras=extras, reasoning_key=None)


def _results(outcomes: Sequence[CallOutcome], note: str) -> list[Json]:
    """The results of one turn come in one message, and before its text."""
    blocks = [tool_result(each.call, each.output, is_error=each.is_error)["content"] for each in outcomes]
    content = [block for each in blocks for block in each] + ([{"type": "text", "text": note}] if note else [])
    return [{"role": "user", "content": content}] if content else []


MESSAGES = Dialect("messages", _is_messages, whole, chunk, opaque, assistant_message, _turn, _results, sides)
