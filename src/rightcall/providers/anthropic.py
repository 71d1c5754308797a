"""Anthropic Messages:

    {"type": "message", "role": "assistant", "content": [{"type": "thinking", "thinking": "..."},
        {"type": "text", "text": "..."}, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}}]}

It also reads a list of blocks and a single block. Tools that the server runs itself (`server_tool_use`) are not calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rightcall.parsing.options import finish_of
from rightcall.providers.dialect import (
    CallClosed,
    CallDelta,
    CallOutcome,
    Delta,
    Deltas,
    Dialect,
    Extras,
    Finish,
    ModelTurn,
    ReasoningDelta,
    StreamState,
    TextDelta,
    assistant_turn,
    extra_fields,
    output_text,
    unknown_fields,
)
from rightcall.providers.openai_chat import chat_content
from rightcall.providers.sdk_view import arguments, integer, items, obj, objects, text
from rightcall.types import Call, Json, Reply

_REASONING_BLOCKS = ("thinking", "redacted_thinking")
_CALL_KEYS = frozenset(("type", "id", "name", "input"))
_SERVER_KEYS = _CALL_KEYS | {"cache_control", "caller"}


# -- reading -----------------------------------------------------------------------------------------------------------


def _message_deltas(message: Json) -> Iterator[Delta]:
    """Yield the deltas of a message: its `reasoning`, its text or blocks, and its stop reason. Empty ones have none."""
    if reasoning := text(message.get("reasoning")):
        yield ReasoningDelta(reasoning)
    content = message.get("content")
    if text(content):
        yield TextDelta(text(content))
    for block in objects(content):
        yield from _block_deltas(block)
    yield from _ending_deltas(message)


def _ending_deltas(fields: Json) -> Iterator[Delta]:
    """Yield a `Finish` with the normalized stop reason of a message, or of the `delta` of a `message_delta` event;
    nothing if it has none."""
    reason = text(fields.get("stop_reason"))
    if reason:
        yield Finish(finish_of(reason))


def _block_deltas(block: Json) -> Iterator[Delta]:
    """Yield the delta of one content block: text, thinking or `tool_use`. Empty and all other blocks, such as
    `redacted_thinking`, have none."""
    kind = text(block.get("type"))
    if kind == "text" and text(block.get("text")):
        yield TextDelta(text(block["text"]))
    elif kind == "thinking" and text(block.get("thinking")):
        yield ReasoningDelta(text(block["thinking"]))
    elif kind == "tool_use":
        yield CallDelta(
            id=text(block.get("id")),
            name=text(block.get("name")),
            arguments=arguments(block.get("input")),
            whole=True,
            parsed=True,
            unknown=unknown_fields(block, _SERVER_KEYS, inner=False),
        )


def _event_deltas(payload: Json, state: StreamState) -> Iterator[Delta]:
    """Yield the deltas of one event of a stream. `state` has the type of each block by its index; the event that begins
    a block adds it. Events of unknown types have no deltas."""
    kind = text(payload.get("type"))
    slot = integer(payload.get("index"))
    if kind == "message_start":
        message = obj(payload.get("message")) or {}
        if message.get("content"):  # a message may begin with content
            yield from _message_deltas(message)
    elif kind == "content_block_start":
        yield from _block_start_deltas(payload, slot, state)
    elif kind == "content_block_delta":
        yield from _block_piece_deltas(payload, slot, state)
    elif kind == "content_block_stop" and state.get(slot, "tool_use") == "tool_use":
        yield CallClosed(slot)
    elif kind == "message_delta":
        yield from _ending_deltas(obj(payload.get("delta")) or {})


def _block_piece_deltas(payload: Json, slot: int | None, state: StreamState) -> Iterator[Delta]:
    """Yield the deltas of an event that continues a block: a piece of text, of reasoning, or of a call's arguments.
    Pieces for a block of an unknown type are those of a call; arguments of a tool that the server runs have no
    delta."""
    delta = obj(payload.get("delta")) or {}
    if content := text(delta.get("text")):
        yield TextDelta(content)
    if reasoning := text(delta.get("thinking")):
        yield ReasoningDelta(reasoning)
    # The arguments of a tool that the server runs arrive in the same way.
    if "partial_json" in delta and state.get(slot, "tool_use") == "tool_use":
        yield CallDelta(slot=slot, arguments=arguments(delta["partial_json"]), parsed=True)


def _block_start_deltas(payload: Json, slot: int | None, state: StreamState) -> Iterator[Delta]:
    """Yield the deltas of the event that begins a block, and store the block's type in `state`. The `input` of a tool
    call is only a draft, which is used if no arguments follow."""
    block = obj(payload.get("content_block")) or {}
    kind = state[slot] = text(block.get("type"))
    if kind != "tool_use":
        yield from _block_deltas(block)
        return
    given = block.get("input")
    yield CallDelta(
        slot=slot,
        id=text(block.get("id")),
        name=text(block.get("name")),
        draft=arguments(given) if given else "",
        parsed=True,
        unknown=unknown_fields(block, _SERVER_KEYS, inner=False),
    )


def _tool_message(result: Json) -> Json:
    """Return a `tool_result` block as a tool message of Chat, with `is_error` if the block has it."""
    failed = {"is_error": True} if result.get("is_error") is True else {}
    id = text(result.get("tool_use_id"))
    return {"role": "tool", "tool_call_id": id, "content": chat_content(result.get("content")), **failed}


def _user_messages(message: Json) -> Iterator[Json]:
    """Yield the messages of Chat for one message that is not the assistant's: a tool message for each result, then one
    message with its other content, if there is any or no result."""
    content = message.get("content")
    blocks = objects(content)
    for block in blocks:
        if block.get("type") == "tool_result":
            yield _tool_message(block)
    others = [block for block in items(content) if (obj(block) or {}).get("type") != "tool_result"]
    if others or not blocks:
        role = text(message.get("role")) or "user"
        yield {"role": role, "content": chat_content(content if isinstance(content, str) else others)}


# -- writing -----------------------------------------------------------------------------------------------------------


def _call_block(call: Call, extras: Extras | None) -> Json:
    """Return a call as a `tool_use` block, with the opaque fields that `extras` has for its id."""
    block = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
    return {**block, **extra_fields(extras, call.id)}


_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


def _opaque_call_fields(block: Json) -> Json:
    """Return the fields of a `tool_use` block that rightcall does not read and that are not null."""
    return {key: value for key, value in block.items() if key not in _CALL_KEYS and value is not None}


# -- the dialect -------------------------------------------------------------------------------------------------------

_EVENTS = frozenset(
    "message_start content_block_start content_block_delta content_block_stop message_delta message_stop ping".split()
)
_BLOCK_TYPES = frozenset("tool_use thinking redacted_thinking server_tool_use tool_result".split())


class AnthropicMessages(Dialect):
    """Anthropic's Messages API."""

    name = "messages"

    def detects(self, fields: Json) -> bool:
        """Return True if the object is an event, a message or a block that only the Messages API writes. A message with
        only text needs its `type` or `stop_reason`."""
        kind = text(fields.get("type"))
        if kind in _EVENTS or kind == "message" or "stop_reason" in fields:
            return True
        if kind in ("tool_use", "redacted_thinking") or (kind == "thinking" and "signature" in fields):
            return True
        for block in objects(fields.get("content")):
            if text(block.get("type")) in _BLOCK_TYPES and not isinstance(block.get("thinking"), list):
                return True
        return False

    def response_deltas(self, response: Any) -> Deltas:
        """Return the deltas of a message, a list of blocks or one block, all with the choice 0."""
        fields = obj(response)
        if fields is None:
            return [(0, delta) for block in objects(items(response)) for delta in _block_deltas(block)]
        deltas = _message_deltas(fields) if "content" in fields or "role" in fields else _block_deltas(fields)
        return [(0, delta) for delta in deltas]

    def chunk_deltas(self, payload: Json, state: StreamState) -> Deltas:
        """Return the deltas of one event of a stream, with the choice 0, and update `state`. A chunk may be a whole
        message."""
        if text(payload.get("type")) in _EVENTS:
            return [(0, delta) for delta in _event_deltas(payload, state)]
        return self.response_deltas(payload)

    def opaque_fields(self, response: Any) -> tuple[Json, list[tuple[str, Json]]]:
        """Return the thinking blocks, unchanged, under the key `thinking` (no key if there are none), and a list with
        the id of each `tool_use` block, in order, and its fields that rightcall does not read."""
        fields = obj(response)
        blocks = objects(response if fields is None else fields.get("content", [fields]))
        thinking = [block for block in blocks if block.get("type") in _REASONING_BLOCKS]
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        call_fields = [(text(call.get("id")), _opaque_call_fields(call)) for call in calls]
        return {"thinking": thinking} if thinking else {}, call_fields

    def history_entries(self, history: Sequence[Any]) -> Iterator[Json | ModelTurn]:
        """Yield assistant messages as `ModelTurn`, and others as messages of Chat: one per result, then the other
        content of the same message, since the API requires this order. Entries that are no objects are left out."""
        for message in objects(history):
            if message.get("role") == "assistant":
                yield ModelTurn(message)
            else:
                yield from _user_messages(message)

    def assistant_message(
        self,
        reply: Reply | str,
        calls: Iterable[Call] | None = None,
        *,
        reasoning: str | None = None,
        blocks: list[Json] | None = None,
        extras: Extras | None = None,
        reasoning_key: str | None = "reasoning",
    ) -> Json:
        """Return the assistant's turn for a history: text alone as a string, else blocks. Thinking blocks in `extras`
        are sent back unchanged.

        - `blocks`: the content that replaces the text if there are no calls.
        - `reasoning_key`: the key of the reasoning if `extras` has no thinking blocks; None omits it, as Anthropic's
          own server requires.
        """
        turn = assistant_turn(reply, calls, reasoning)
        thinking: list[Json] = list(extra_fields(extras, "").get("thinking", ()))
        text_blocks = [{"type": "text", "text": turn.text}] if turn.text else []
        content: Any = turn.text
        if turn.calls:
            content = [*thinking, *text_blocks, *[_call_block(call, extras) for call in turn.calls]]
        elif thinking:
            content = [*thinking, *(blocks or text_blocks)]
        elif blocks:
            content = blocks
        message: Json = {"role": "assistant", "content": content}
        if turn.reasoning and reasoning_key and not thinking:
            message[reasoning_key] = turn.reasoning
        return message

    def accepted_message(self, reply: Reply, extras: Extras) -> Json:
        """Return a reply as the assistant's turn in the form that servers accept: of its reasoning, only the thinking
        blocks in `extras` are sent back."""
        return self.assistant_message(reply, extras=extras, reasoning_key=None)

    def tool_result(self, call: Call, output: Any, *, is_error: bool = False) -> Json:
        """Return a user message with one result. A list of content blocks is sent unchanged, any other output as text;
        `is_error` sets a flag and leaves the text unchanged."""
        blocks = isinstance(output, list) and bool(output) and all(isinstance(o, dict) and "type" in o for o in output)
        result: Json = {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": output if blocks else output_text(output),
        }
        if is_error:
            result["is_error"] = True
        return {"role": "user", "content": [result]}

    def result_messages(self, outcomes: Sequence[CallOutcome], note: str) -> list[Json]:
        """Return one user message with all results, in order, and the note after them; no message if there is
        neither."""
        results = [self.tool_result(each.call, each.output, is_error=each.is_error)["content"] for each in outcomes]
        content = [block for blocks in results for block in blocks] + ([{"type": "text", "text": note}] if note else [])
        return [{"role": "user", "content": content}] if content else []

    def tool_choice(self, choice: str) -> Any:
        """Return the `tool_choice` of a request for `auto`, `required`, `none`, or the name of a tool, which is not
        checked."""
        return {"type": _CHOICES[choice]} if choice in _CHOICES else {"type": "tool", "name": choice}


MESSAGES = AnthropicMessages()
