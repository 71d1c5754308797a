"""OpenAI Chat Completions and everything that speaks it:

    {"choices": [{"message": {"role": "assistant", "content": "", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{\\"x\\": 1}"}}]}}]}

Read besides: a message, a list of calls or one call alone, the legacy `function_call`, custom calls, content in parts,
reasoning under the names that servers give it, a lone call where a list should be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from rightcall.parsing.how_ended import finish_of
from rightcall.providers.deltas import Delta, DeltaPiece, Deltas, Fault, Said, Seen, Stop, Thought, unknown_fields
from rightcall.providers.dialect import Dialect, Spoken, one_by_one
from rightcall.providers.outgoing import Extras, argument_text, custom_input, fields_of, output_text, turn
from rightcall.providers.sdk_view import arguments, dumps, error_text, is_parsed, items, obj, objects, text
from rightcall.types import Call, Json, Reply

_KNOWN = frozenset(("id", "type", "index", "function", "custom"))
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_FUNCTION = frozenset(("name", "arguments", "parsed_arguments", "description", "strict"))
_CALL_PARTS = frozenset(("tool_use", "tool_call", "function_call", "function"))
REASONING = ("reasoning_content", "reasoning")  # wanted back, under the name it came under, beside the calls it led to
OPAQUE = (*REASONING, "reasoning_details", "extra_content", "thought_signature", "encrypted_content")
_OPAQUE = frozenset(OPAQUE)
_THOUGHTS = frozenset((*REASONING, "thinking", "reasoning_details"))


# -- reading -----------------------------------------------------------------------------------------------------------


def whole(response: Any) -> Deltas:
    """Everything in a response, a message, a list of calls or one call."""
    found = obj(response)
    if found is None:
        return [(0, delta) for delta in _calls(items(response))]
    if "choices" in found:
        return _of_choices(found["choices"])
    if obj(found.get("message")) is not None:
        return [(0, delta) for delta in _choice(found)]
    if "function" in found or obj(found.get("custom")) is not None:
        return [(0, delta) for delta in _calls([found])]
    return [(0, delta) for delta in _message(found)]


def _of_choices(choices: Any) -> Deltas:
    if not isinstance(choices, (list, tuple)):
        return [(0, Fault("malformed_response", "the response's `choices` is no list"))]
    return [(i, delta) for i, each in enumerate(objects(choices)) for delta in _choice(each)]


def chunk(payload: Json, seen: Seen) -> Deltas:
    """What one chunk of a stream adds. A chunk may be a whole response."""
    if not isinstance(payload.get("choices"), (list, tuple)):
        return whole(payload)
    out: Deltas = []
    for position, choice in enumerate(objects(payload["choices"])):
        index = choice.get("index")
        number = index if type(index) is int else position
        delta = obj(choice.get("delta"))
        if delta is not None:
            found = list(_delta(delta))
            seen[number] = seen.get(number, False) or bool(found)
            out += [(number, each) for each in [*found, *_ending(choice)]]
        elif not seen.get(number):  # a message after its own deltas says nothing new
            out += [(number, each) for each in _choice(choice)]
        else:
            out += [(number, each) for each in _ending(choice)]
    return out


def _choice(choice: Json) -> Iterator[Delta]:
    message = obj(choice.get("message")) or obj(choice.get("delta"))
    if message is not None:
        yield from _message(message)
    elif text(choice.get("text")):
        yield Said(text(choice["text"]))
    yield from _ending(choice)


def _ending(choice: Json) -> Iterator[Delta]:
    if choice.get("error"):
        yield Fault("provider_error", f"the server reported an error: {error_text(choice['error'])}")
    reason = text(choice.get("finish_reason"))
    if reason:
        yield Stop(finish_of(reason))


def _message(message: Json) -> Iterator[Delta]:
    found = calls_of(message)
    said = list(_words(message))
    if isinstance(message.get("content"), str):  # which holds no calls
        yield from said
        has_calls = bool(found)
    else:
        yield from _without(said, found)
        has_calls = bool(found) or any(isinstance(each, DeltaPiece) for each in said)
    yield from found
    if not has_calls and (legacy := obj(message.get("function_call"))) is not None:
        yield _piece({"function": legacy}, None, whole=True)


def _without(said: list[Delta], calls: list[Delta]) -> list[Delta]:
    """What was said, but for the calls among it that the list of calls has too."""
    known = {each.id for each in calls if isinstance(each, DeltaPiece) and each.id}
    return [each for each in said if not (isinstance(each, DeltaPiece) and each.id in known)]


def calls_of(message: Json) -> list[Delta]:
    """The calls under `tool_calls`, a list or one call."""
    return list(_calls(items(message.get("tool_calls"))))


def _delta(delta: Json) -> Iterator[Delta]:
    yield from _words(delta)
    entries = objects(delta.get("tool_calls"))
    for position, entry in enumerate(entries):
        yield _piece(entry, position if len(entries) > 1 else None)
    legacy = obj(delta.get("function_call"))
    if legacy is not None and not entries:
        yield msgspec.structs.replace(_piece({"function": legacy}, None), slot="function_call")


def _piece(entry: Json, position: int | None, *, whole: bool = False) -> DeltaPiece:
    index = entry.get("index")
    slot = None if whole else index if type(index) is int else position
    function, custom = obj(entry.get("function")) or {}, obj(entry.get("custom"))
    id = text(entry.get("id"))
    if custom is not None:
        name, said = text(custom.get("name")), text(custom.get("input"))
        return DeltaPiece(slot=slot, id=id, name=name, arguments=said, custom=True, whole=whole)
    key = "arguments"
    if function.get(key) is None:
        key = next((key for key in _ARGUMENTS if function.get(key) is not None), key)
    inner = unknown_fields(function, _FUNCTION if key in _FUNCTION else _FUNCTION | {key}, inner=True)
    beside = (*inner, *unknown_fields(entry, _KNOWN, inner=False))
    name, value = text(function.get("name")), function.get(key)
    said, parsed = arguments(value), is_parsed(value)
    return DeltaPiece(slot=slot, id=id, name=name, arguments=said, beside=beside, whole=whole, parsed=parsed)


def _calls(entries: Iterable[Any]) -> Iterator[Delta]:
    """A list of calls, each of which must be one."""
    for entry in entries:
        found = obj(entry)
        if found is None:
            yield Fault("call_not_object", f"an entry of the list of calls must be an object, not {entry!r:.80}")
            continue
        if obj(found.get("function")) is not None or obj(found.get("custom")) is not None:
            yield _piece(found, None, whole=True)
            continue
        what = "`function` is no object" if "function" in found else "there is no `function`"
        yield DeltaPiece(
            id=text(found.get("id")),
            name=text(found.get("name")),
            arguments=arguments(found.get("arguments")) or dumps(found),
            whole=True,
            fault=("missing_function", f"the call cannot be read: {what} with a name and arguments"),
        )


def _words(message: Json) -> Iterator[Delta]:
    """Reasoning, then text; servers that give the reasoning under two names mean it once."""
    if thought := _thought(message):
        yield Thought(thought)
    content = message.get("content")
    if isinstance(content, str):
        if content:
            yield Said(text(content))
    else:
        yield from _parts(content)
    if refusal := text(message.get("refusal")):
        yield Said(refusal)


def _thought(message: Json) -> str:
    if _THOUGHTS.isdisjoint(message):
        return ""
    thought = text(message.get("reasoning_content")) or text(message.get("reasoning")) or text(message.get("thinking"))
    if thought or "reasoning_details" not in message:
        return thought
    details = objects(message.get("reasoning_details"))
    return "".join([text(each.get("text")) or text(each.get("summary")) for each in details])


def _inner_text(thinking: Any) -> str:
    return text(thinking) or "".join([text(each.get("text")) for each in objects(thinking)])


def _parts(content: Any) -> Iterator[Delta]:
    """Content in parts: text, refusals, thinking, which is itself text or parts, and calls as another API has them."""
    for part in items(content):
        found = obj(part)
        if found is None:
            if text(part):
                yield Said(text(part))
        elif "thinking" in found:
            if thought := _inner_text(found["thinking"]):
                yield Thought(thought)
        elif text(found.get("type")) in _CALL_PARTS:
            yield _part_call(found)
        elif said := text(found.get("text")) or text(found.get("refusal")):
            yield Thought(said) if text(found.get("type")) == "reasoning" else Said(said)


def _part_call(part: Json) -> DeltaPiece:
    """A call among the parts of the content, where some gateways leave it."""
    if obj(part.get("function")) is not None:
        return _piece(part, None, whole=True)
    said = next((part[key] for key in ("input", *_ARGUMENTS) if part.get(key) is not None), None)
    id = text(part.get("call_id")) or text(part.get("id"))
    name = text(part.get("name"))
    return DeltaPiece(id=id, name=name, arguments=arguments(said), whole=True, parsed=is_parsed(said))


def sides(history: Sequence[Any]) -> Iterator[Json | Spoken]:
    """Who said what. A result of which the id is missing has its tool's name, as Ollama sends it."""
    for message in objects(history):
        role = text(message.get("role"))
        if role == "assistant":
            yield Spoken(message)
        elif role in ("tool", "function"):
            name = text(message.get("name")) or text(message.get("tool_name"))
            rest = {key: value for key, value in message.items() if key != "tool_name"}
            yield {**rest, "role": "tool", "tool_call_id": text(message.get("tool_call_id")), "name": name}
        else:
            yield {**message, "role": role or "user"}


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
    """The assistant's turn for the history. `content` is text, never null.

    Where there are no calls, `blocks` stand for the text. Reasoning goes under `reasoning_key`; None leaves it out.
    """
    said = turn(reply, calls, reasoning)
    message: Json = {"role": "assistant", "content": said.text}
    if said.calls:
        message["tool_calls"] = [_written(call, extras) for call in said.calls]
    elif blocks:
        message["content"] = blocks
    if said.reasoning and reasoning_key:
        message[reasoning_key] = said.reasoning
    return {**message, **fields_of(extras, "")}


def _written(call: Call, extras: Extras | None) -> Json:
    fields = fields_of(extras, call.id)
    if fields.pop("type", "function") == "custom":
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": custom_input(call)}, **fields}
    function = {"name": call.name, "arguments": argument_text(call)}
    return {"id": call.id, "type": "function", "function": function, **fields}


def tool_result(call: Call, output: Any, *, is_error: bool = False) -> Json:
    """What a tool gave back. The wire has no error flag: an error says so in its text."""
    return {"role": "tool", "tool_call_id": call.id, "content": output_text(output, is_error=is_error)}


def tool_choice(choice: str) -> Any:
    """`auto`, `required`, `none` or a tool's name, as this dialect says it."""
    return choice if choice in ("auto", "required", "none") else {"type": "function", "function": {"name": choice}}


def read_tool_choice(value: Any) -> str:
    """Our word for it; `auto` for what is absent or unknown."""
    found = obj(value)
    if found is None:
        return {"any": "required"}.get(text(value), text(value)) or "auto"
    inner = obj(found.get("function")) or obj(found.get("custom")) or obj(found.get("allowed_tools")) or found
    return text(inner.get("name")) or text(inner.get("mode")) or "auto"


def opaque(response: Any) -> tuple[Json, list[tuple[str, Json]]]:
    """Fields we do not read but a provider wants back: of the message, and of each call with its id."""
    found = obj(response) or {}
    choices = objects(found.get("choices"))
    first = choices[0] if choices else found
    message = obj(first.get("message")) or first
    fields = [(text(each.get("id")), _fields(each)) for each in objects(message.get("tool_calls")) if each]
    kept = {} if _OPAQUE.isdisjoint(message) else {key: message[key] for key in OPAQUE if message.get(key)}
    return kept, fields


def _fields(entry: Json) -> Json:
    if entry.keys() <= _KNOWN and "custom" not in entry:
        return {}
    kept = {key: value for key, value in entry.items() if key not in _KNOWN and value is not None}
    return {"type": "custom", **kept} if obj(entry.get("custom")) is not None else kept


# -- what is known of it -----------------------------------------------------------------------------------------------

_KEYS = frozenset("choices tool_calls function function_call reasoning_content".split())


def _is_chat(found: Json) -> bool:
    if not _KEYS.isdisjoint(found):
        return True
    if text(found.get("object")).startswith("chat.completion") or found.get("type") == "custom":
        return True
    return "content" in found and ("role" in found or isinstance(found["content"], str))


def _turn(reply: Reply, extras: Extras) -> Json:
    """Reasoning goes back under the name it came under, and only beside calls: without any, servers refuse it."""
    written = assistant_message(reply, extras=extras, reasoning_key=None)
    dropped = () if reply.attempts else REASONING
    return {key: value for key, value in written.items() if key not in dropped}


CHAT = Dialect("chat", _is_chat, whole, chunk, opaque, assistant_message, _turn, one_by_one(tool_result), sides)
