"""OpenAI Chat Completions, and every server that speaks it:

    {"choices": [{"message": {"role": "assistant", "content": "", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\\"x\\": 1}"}}]}}]}

It also reads a message, a list of calls, a single call, the legacy `function_call`, custom calls, content in parts,
reasoning under the keys that servers use, and a single call in place of a list.

Histories of all APIs are converted to the messages of this API; `chat_content` converts their content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from rightcall.parsing.options import finish_of
from rightcall.providers.dialect import (
    CallDelta,
    Delta,
    Deltas,
    Dialect,
    Extras,
    Fault,
    Finish,
    ModelTurn,
    ReasoningDelta,
    StreamState,
    TextDelta,
    argument_text,
    assistant_turn,
    custom_input,
    extra_fields,
    output_text,
    unknown_fields,
)
from rightcall.providers.sdk_view import arguments, compact_json, error_text, is_parsed, items, obj, objects, text
from rightcall.types import Call, Json, Reply

_CALL_KEYS = frozenset(("id", "type", "index", "function", "custom"))
_FUNCTION_KEYS = frozenset(("name", "arguments", "parsed_arguments", "description", "strict"))
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
_CALL_PARTS = frozenset(("tool_use", "tool_call", "function_call", "function"))
# Providers require reasoning back, under the key that they used, next to the calls that it led to.
REASONING = ("reasoning_content", "reasoning")
OPAQUE = (*REASONING, "reasoning_details", "extra_content", "thought_signature", "encrypted_content")
_OPAQUE = frozenset(OPAQUE)
_REASONING_KEYS = frozenset((*REASONING, "thinking", "reasoning_details"))


# -- reading -----------------------------------------------------------------------------------------------------------


def _choice_deltas(choice: Json) -> list[Delta]:
    """Return the deltas of one choice: its message (or `delta`) or its text, and its error and finish reason."""
    deltas: list[Delta] = []
    message = obj(choice.get("message")) or obj(choice.get("delta"))
    if message is not None:
        deltas = _message_deltas(message)
    elif text(choice.get("text")):
        deltas = [TextDelta(text(choice["text"]))]
    return deltas + _ending_deltas(choice)


def _ending_deltas(choice: Json) -> list[Delta]:
    """Return the error and the normalized finish reason of a choice as deltas; an empty list if it has neither."""
    deltas: list[Delta] = []
    if choice.get("error"):
        deltas.append(Fault("provider_error", f"the server reported an error: {error_text(choice['error'])}"))
    reason = text(choice.get("finish_reason"))
    if reason:
        deltas.append(Finish(finish_of(reason)))
    return deltas


def _message_deltas(message: Json) -> list[Delta]:
    """Return the deltas of a message: content, calls, and the legacy `function_call` if there are no other calls. No
    call is returned twice."""
    calls = calls_of(message)
    content = _content_deltas(message)
    if not isinstance(message.get("content"), str):
        # Parts of the content may repeat the entries of `tool_calls`.
        known = {call.id for call in calls if isinstance(call, CallDelta) and call.id}
        content = [delta for delta in content if not (isinstance(delta, CallDelta) and delta.id in known)]
    deltas = content + calls
    legacy = obj(message.get("function_call")) if "function_call" in message and not calls else None
    if legacy is not None and not any(isinstance(delta, CallDelta) for delta in content):
        deltas.append(_call_delta({"function": legacy}, None, whole=True))
    return deltas


def calls_of(message: Json) -> list[Delta]:
    """Return the calls of a message under `tool_calls`, a list or a single call, as deltas; a `Fault` for an entry that
    is no object."""
    calls = message.get("tool_calls")
    return _call_list_deltas(items(calls)) if calls else []


def _delta_field_deltas(fields: Json) -> list[Delta]:
    """Return the deltas of `fields`, the object under `delta` in one choice of a chunk: content, pieces of calls, and
    pieces of the legacy `function_call` if there are no calls."""
    deltas = _content_deltas(fields)
    calls = fields.get("tool_calls")
    entries = objects(calls) if calls else []
    for position, entry in enumerate(entries):
        deltas.append(_call_delta(entry, position if len(entries) > 1 else None))
    legacy = obj(fields.get("function_call"))
    if legacy is not None and not entries:
        deltas.append(msgspec.structs.replace(_call_delta({"function": legacy}, None), slot="function_call"))
    return deltas


def _call_delta(entry: Json, position: int | None, *, whole: bool = False) -> CallDelta:
    """Convert a call, or a piece of one, to a delta. The slot is the entry's index.

    - `position`: the slot if the entry has no index.
    - `whole`: the entry is a complete call and needs no slot.
    """
    index = entry.get("index")
    slot = None if whole else index if type(index) is int else position
    function, custom = obj(entry.get("function")) or {}, obj(entry.get("custom"))
    id = text(entry.get("id"))
    if custom is not None:
        name, free_text = text(custom.get("name")), text(custom.get("input"))
        return CallDelta(slot=slot, id=id, name=name, arguments=free_text, custom=True, whole=whole)
    key = "arguments"
    if function.get(key) is None:
        key = next((key for key in _ARGUMENT_KEYS if function.get(key) is not None), key)
    known = _FUNCTION_KEYS if key in _FUNCTION_KEYS else _FUNCTION_KEYS | {key}
    unknown = unknown_fields(function, known, inner=True) + unknown_fields(entry, _CALL_KEYS, inner=False)
    given = function.get(key)
    return CallDelta(
        slot=slot,
        id=id,
        name=text(function.get("name")),
        arguments=arguments(given),
        unknown=unknown,
        whole=whole,
        parsed=is_parsed(given),
    )


def _call_list_deltas(entries: Iterable[Any]) -> list[Delta]:
    """Return one delta per entry of a list of whole calls: a `CallDelta`, which has a fault if the entry has no
    `function` and is no custom call; or a `Fault` for an entry that is not an object."""
    deltas: list[Delta] = []
    for entry in entries:
        fields = obj(entry)
        if fields is None:
            message = f"an entry of the list of calls must be an object, not {entry!r:.80}"
            deltas.append(Fault("call_not_object", message))
        elif obj(fields.get("function")) is not None or obj(fields.get("custom")) is not None:
            deltas.append(_call_delta(fields, None, whole=True))
        else:
            cause = "`function` is not an object" if "function" in fields else "there is no `function`"
            fault = ("missing_function", f"the call cannot be read: {cause} with a name and arguments")
            id, name = text(fields.get("id")), text(fields.get("name"))
            given = arguments(fields.get("arguments")) or compact_json(fields)
            deltas.append(CallDelta(id=id, name=name, arguments=given, whole=True, fault=fault))
    return deltas


def _content_deltas(message: Json) -> list[Delta]:
    """Return the reasoning, then the text or parts of a message, then its refusal as text. Empty ones have no delta.
    Reasoning that a server sends under two keys is read once."""
    deltas: list[Delta] = []
    if not _REASONING_KEYS.isdisjoint(message) and (reasoning := _reasoning(message)):
        deltas.append(ReasoningDelta(reasoning))
    content = message.get("content")
    if isinstance(content, str):
        if content:
            deltas.append(TextDelta(text(content)))
    elif content is not None:
        deltas += _part_deltas(content)
    if refusal := text(message.get("refusal")):
        deltas.append(TextDelta(refusal))
    return deltas


def _reasoning(message: Json) -> str:
    """Return the reasoning of a message from the first key that has any, or from `reasoning_details`; "" if there is
    none."""
    for key in (*REASONING, "thinking"):
        if found := text(message.get(key)):
            return found
    details = objects(message.get("reasoning_details"))
    return "".join([text(each.get("text")) or text(each.get("summary")) for each in details])


def _thinking_text(thinking: Any) -> str:
    """Return the text of the value `thinking` of a reasoning part, which is a text itself or a list of parts; "" for
    anything else."""
    return text(thinking) or "".join([text(each.get("text")) for each in objects(thinking)])


def _part_deltas(content: Any) -> Iterator[Delta]:
    """Yield the deltas of content in parts: text, refusals, reasoning, and calls in the shape of another API.

    Some gateways leave calls among the parts. Other parts have no delta.
    """
    for part in items(content):
        fields = obj(part)
        if fields is None:
            if text(part):
                yield TextDelta(text(part))
            continue
        kind = text(fields.get("type"))
        if "thinking" in fields:
            if thinking := _thinking_text(fields["thinking"]):
                yield ReasoningDelta(thinking)
        elif kind in _CALL_PARTS:
            yield _part_call_delta(fields)
        elif content_text := text(fields.get("text")) or text(fields.get("refusal")):
            yield ReasoningDelta(content_text) if kind == "reasoning" else TextDelta(content_text)


def _part_call_delta(part: Json) -> CallDelta:
    """Convert a part of the content that is a call, in the shape of any API, to a whole call."""
    if obj(part.get("function")) is not None:
        return _call_delta(part, None, whole=True)
    given = next((part[key] for key in ("input", *_ARGUMENT_KEYS) if part.get(key) is not None), None)
    id = text(part.get("call_id")) or text(part.get("id"))
    name = text(part.get("name"))
    return CallDelta(id=id, name=name, arguments=arguments(given), whole=True, parsed=is_parsed(given))


# -- histories ---------------------------------------------------------------------------------------------------------


_TEXT_PARTS = ("text", "input_text", "output_text")
_TEXT_PART_KEYS = {"type", "text"}


def chat_content(content: Any) -> Any:
    """Convert the content of any API's message to that of Chat. A text part gets the type `text`; an image with a URL
    or with its data becomes an `image_url` part; a string in the list becomes a text part. Other objects stay
    unchanged.

    A list with only one text, without keys of its own such as `cache_control`, becomes that text; None becomes ""; any
    other value that is no list is returned unchanged.
    """
    if not isinstance(content, list | tuple):
        return "" if content is None else content
    parts = [_chat_part(each) for each in items(content)]
    if len(parts) == 1 and parts[0].keys() <= _TEXT_PART_KEYS and parts[0].get("type") == "text":
        return text(parts[0].get("text"))
    return parts


def _chat_part(given: Any) -> Json:
    """Convert a part of the content of any API's message to a part of Chat: a text part to `text`, an image to
    `image_url`. Other objects stay unchanged, and a value that is no object becomes a text part ("" unless it is a
    string)."""
    part = obj(given)
    if part is None:
        return {"type": "text", "text": text(given)}
    kind = text(part.get("type"))
    if kind in _TEXT_PARTS or (not kind and isinstance(part.get("text"), str)):
        return {**part, "type": "text"}
    url = _image_url(part, kind)
    return {"type": "image_url", "image_url": {"url": url}} if url else part


def _image_url(part: Json, kind: str) -> str:
    """Return the URL of an image part of another API, or a data URL with the image itself; "" if the part is not one.
    `kind` is the part's type."""
    if kind == "input_image":
        return text(part.get("image_url"))
    source = obj(part.get("source")) if kind == "image" else None
    if source is not None:
        return text(source.get("url")) or _data_url(source.get("media_type"), source.get("data"))
    inline = obj(part.get("inlineData", part.get("inline_data"))) or {}
    return _data_url(inline.get("mimeType", inline.get("mime_type")), inline.get("data"))


def _data_url(kind: Any, data: Any) -> str:
    """Return a data URL for base64 data of an image type; "" for other types and without data."""
    return f"data:{text(kind)};base64,{data}" if text(kind).startswith("image/") and text(data) else ""


# -- writing -----------------------------------------------------------------------------------------------------------


def _call_entry(call: Call, extras: Extras | None) -> Json:
    """Return a call as an entry of `tool_calls`, with the opaque fields that `extras` has for its id. A call whose
    opaque `type` is "custom" becomes a custom call."""
    fields = extra_fields(extras, call.id)
    if fields.pop("type", "function") == "custom":
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": custom_input(call)}, **fields}
    function = {"name": call.name, "arguments": argument_text(call)}
    return {"id": call.id, "type": "function", "function": function, **fields}


# -- the dialect -------------------------------------------------------------------------------------------------------

_IDENTIFYING_KEYS = frozenset("choices tool_calls function function_call reasoning_content".split())


class OpenAIChat(Dialect):
    """OpenAI's Chat Completions API."""

    name = "chat"

    def detects(self, fields: Json) -> bool:
        """Return True if the object has keys that only Chat has, or has the shape of a Chat message: `content` with a
        role, or as a text."""
        if not _IDENTIFYING_KEYS.isdisjoint(fields):
            return True
        if text(fields.get("object")).startswith("chat.completion") or fields.get("type") == "custom":
            return True
        return "content" in fields and ("role" in fields or isinstance(fields["content"], str))

    def response_deltas(self, response: Any) -> Deltas:
        """Return the deltas of a response, a message, a list of calls or one call. The number of a choice is its
        position in the response, and 0 for all else."""
        fields = obj(response)
        if fields is None:
            return [(0, delta) for delta in _call_list_deltas(items(response))]
        if "choices" in fields:
            choices = fields["choices"]
            if not isinstance(choices, (list, tuple)):
                return [(0, Fault("malformed_response", "the response's `choices` is not a list"))]
            out: Deltas = []
            for number, choice in enumerate(objects(choices)):
                for delta in _choice_deltas(choice):
                    out.append((number, delta))
            return out
        if obj(fields.get("message")) is not None:
            deltas = _choice_deltas(fields)
        elif "function" in fields or obj(fields.get("custom")) is not None:
            deltas = _call_list_deltas([fields])
        else:
            deltas = _message_deltas(fields)
        return [(0, delta) for delta in deltas]

    def chunk_deltas(self, payload: Json, state: StreamState) -> Deltas:
        """Return the deltas of one chunk of a stream, each with the index of its choice. `state` records which choices
        had deltas.

        A chunk may be a whole response. A message after its own deltas repeats them and is not read.
        """
        if not isinstance(payload.get("choices"), (list, tuple)):
            return self.response_deltas(payload)
        out: Deltas = []
        for position, choice in enumerate(objects(payload["choices"])):
            index = choice.get("index")
            number = index if type(index) is int else position
            fields = obj(choice.get("delta"))
            if fields is not None:
                deltas = _delta_field_deltas(fields)
                state[number] = state.get(number, False) or bool(deltas)
                deltas += _ending_deltas(choice)
            elif not state.get(number):
                deltas = _choice_deltas(choice)
            else:  # a message after its own deltas repeats them
                deltas = _ending_deltas(choice)
            out += [(number, delta) for delta in deltas]
        return out

    def opaque_fields(self, response: Any) -> tuple[Json, list[tuple[str, Json]]]:
        """Return the opaque fields of the first choice's message, such as reasoning, and for each call in order its id
        and the fields that rightcall does not read; a custom call has `type` among them."""
        fields = obj(response) or {}
        choices = objects(fields.get("choices"))
        first = choices[0] if choices else fields
        message = obj(first.get("message")) or first
        calls: list[tuple[str, Json]] = []
        for call in objects(message.get("tool_calls")):
            if not call:
                continue
            kept: Json = {} if obj(call.get("custom")) is None else {"type": "custom"}
            if not call.keys() <= _CALL_KEYS:
                kept |= {key: value for key, value in call.items() if key not in _CALL_KEYS and value is not None}
            calls.append((text(call.get("id")), kept))
        of_message = {} if _OPAQUE.isdisjoint(message) else {key: message[key] for key in OPAQUE if message.get(key)}
        return of_message, calls

    def history_entries(self, history: Sequence[Any]) -> Iterator[Json | ModelTurn]:
        """Yield assistant messages as `ModelTurn` and all others as normalized copies; entries that are no objects are
        left out. A missing role becomes "user". A result (role "tool" or "function") gets the role "tool" with
        `tool_call_id` and `name`, also from Ollama's `tool_name`, each "" if it is missing."""
        for message in objects(history):
            role = text(message.get("role"))
            if role == "assistant":
                yield ModelTurn(message)
            elif role in ("tool", "function"):
                name = text(message.get("name")) or text(message.get("tool_name"))
                fields = {key: value for key, value in message.items() if key != "tool_name"}
                yield {**fields, "role": "tool", "tool_call_id": text(message.get("tool_call_id")), "name": name}
            else:
                yield {**message, "role": role or "user"}

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
        """Return the assistant's turn for a history. `content` is text, never null.

        - `blocks`: the content that replaces the text if there are no calls.
        - `reasoning_key`: the key of the reasoning; None omits it. Reasoning among the opaque fields is included in any
          case.
        """
        turn = assistant_turn(reply, calls, reasoning)
        message: Json = {"role": "assistant", "content": turn.text}
        if turn.calls:
            message["tool_calls"] = [_call_entry(call, extras) for call in turn.calls]
        elif blocks:
            message["content"] = blocks
        if turn.reasoning and reasoning_key:
            message[reasoning_key] = turn.reasoning
        return {**message, **extra_fields(extras, "")}

    def accepted_message(self, reply: Reply, extras: Extras) -> Json:
        """Return a reply as the assistant's turn in the form that servers accept: reasoning is taken only from
        `extras`, and sent only next to calls."""
        message = self.assistant_message(reply, extras=extras, reasoning_key=None)
        dropped = () if reply.attempts else REASONING
        return {key: value for key, value in message.items() if key not in dropped}

    def tool_result(self, call: Call, output: Any, *, is_error: bool = False) -> Json:
        """Return a message with the result of a call. The API has no error flag, so the text of an error begins with
        ERROR."""
        return {"role": "tool", "tool_call_id": call.id, "content": output_text(output, is_error=is_error)}

    def tool_choice(self, choice: str) -> Any:
        """Return the `tool_choice` of a request for `auto`, `required`, `none`, or the name of a tool, which is not
        checked."""
        return choice if choice in ("auto", "required", "none") else {"type": "function", "function": {"name": choice}}


CHAT = OpenAIChat()
