"""Gemini:

    {"candidates": [{"content": {"role": "model", "parts": [{"text": "...", "thought": true}, {"text": "..."},
        {"functionCall": {"name": "f", "args": {"x": 1}}, "thoughtSignature": "..."}]}}]}

Read besides: a content, a list of parts, one part; keys in snake_case, as the SDK has them. A stream has the same shape
as a whole response, and its calls come whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rightcall.parsing.how_ended import finish_of
from rightcall.providers.chat_parts import chat_content
from rightcall.providers.deltas import Delta, DeltaPiece, Deltas, Fault, Said, Seen, Stop, Thought, unknown_fields
from rightcall.providers.dialect import CallOutcome, Dialect, Spoken
from rightcall.providers.gemini_pieces import Pieces
from rightcall.providers.outgoing import Extras, fields_of, output_text, turn
from rightcall.providers.sdk_view import arguments, items, obj, objects, text
from rightcall.types import Call, Json, Reply

# The model tried to call, and the server took the call away.
_FAILED = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE")
_IN_PIECES = ("truncated", "the call is only a piece of one; give all chunks to a Stream")
_KNOWN = frozenset(("id", "name", "args", "partialArgs", "partial_args", "willContinue", "will_continue"))
_WORDS = {"auto": "AUTO", "required": "ANY", "none": "NONE"}


class _Fragment(DeltaPiece, frozen=True, kw_only=True):
    """A call that may be only a piece of one: in a stream it is joined, elsewhere it cannot be."""

    call: Json


def field(fields: Json, name: str) -> Any:
    """A field under its name or as the SDK spells it: `functionCall`, `function_call`."""
    found = fields.get(name)
    return fields.get(_snake(name)) if found is None else found


def _snake(name: str) -> str:
    return "".join(["_" + char.lower() if char.isupper() else char for char in name])


# -- reading -----------------------------------------------------------------------------------------------------------


def whole(response: Any) -> Deltas:
    """Everything in a response, a content, a list of parts or one part."""
    found = obj(response)
    if found is None:
        return _of_parts(objects(items(response)))
    if "candidates" in found or field(found, "promptFeedback") is not None:
        return _response(found)
    if obj(found.get("content")) is not None:
        return [(0, delta) for delta in _candidate(found)]
    return _of_parts(objects(found["parts"]) if "parts" in found else [found])


def _of_parts(parts: Iterable[Json]) -> Deltas:
    return [(0, delta) for part in parts for delta in _part(part)]


def chunk(payload: Json, seen: Seen) -> Deltas:
    """What one chunk of a stream adds: it has the shape of a whole response, but a call may go on in the next."""
    return [(number, made) for number, delta in whole(payload) for made in _joined(delta, seen, number)]


def _joined(delta: Delta, seen: Seen, number: int) -> list[Delta]:
    """A call in pieces: its name with the first, its arguments with the last. Until then it is no whole JSON."""
    if not isinstance(delta, _Fragment) or (number not in seen and delta.fault is None):
        return [delta]
    first = number not in seen
    pieces = seen.setdefault(number, Pieces(len(seen)))
    pieces.add(delta.call)
    if field(delta.call, "willContinue") is True:
        return (
            [DeltaPiece(slot=pieces.slot, id=pieces.id, name=pieces.name, arguments="{", parsed=True)] if first else []
        )
    del seen[number]
    seen[number, pieces.slot] = True  # keeps the slots apart
    return [pieces.whole()]


def _response(response: Json) -> Deltas:
    out: Deltas = []
    for position, candidate in enumerate(objects(response.get("candidates"))):
        index = candidate.get("index")
        number = index if type(index) is int else position
        out += [(number, delta) for delta in _candidate(candidate)]
    blocked = text(field(obj(field(response, "promptFeedback")) or {}, "blockReason"))
    if blocked:
        out.append((0, Fault("provider_error", f"the server blocked the prompt: {blocked}")))
    return out


def _candidate(candidate: Json) -> Iterator[Delta]:
    content = obj(candidate.get("content")) or {}
    for part in objects(content.get("parts")):
        yield from _part(part)
    reason = text(field(candidate, "finishReason"))
    if reason in _FAILED:
        said = text(field(candidate, "finishMessage"))
        yield Fault("provider_error", f"the server refused the model's call: {said or reason}")
    if reason:
        yield Stop(finish_of(reason))


def _part(part: Json) -> Iterator[Delta]:
    call = obj(field(part, "functionCall"))
    if call is not None:
        id, name, given = text(call.get("id")), text(call.get("name")), arguments(call.get("args"))
        if field(call, "partialArgs") is not None or field(call, "willContinue") is True:
            yield _Fragment(call=call, id=id, name=name, arguments=given, whole=True, parsed=True, fault=_IN_PIECES)
        elif not name:
            # It may end a call that came in pieces.
            yield _Fragment(call=call, id=id, arguments=given, whole=True, parsed=True)
        else:
            beside = unknown_fields(call, _KNOWN, inner=True)
            yield DeltaPiece(id=id, name=name, arguments=given, whole=True, parsed=True, beside=beside)
    elif said := text(part.get("text")):
        yield Thought(said) if part.get("thought") is True else Said(said)


def sides(history: Sequence[Any]) -> Iterator[Json | Spoken]:
    """Who said what: of a user's content the results first, then what the user said."""
    for content in items(history):
        found = obj(content)
        if found is None:
            if text(content):
                yield {"role": "user", "content": text(content)}
        elif found.get("role") == "model":
            yield Spoken(found)
        else:
            yield from _heard(found)


def _heard(content: Json) -> Iterator[Json]:
    said: list[Json] = []
    for part in objects(content.get("parts")):
        result = obj(field(part, "functionResponse"))
        if result is None:
            said.append(part)
        else:
            names = {"tool_call_id": text(result.get("id")), "name": text(result.get("name"))}
            yield {"role": "tool", **names, **_came_to(result.get("response"))}
    if said:
        yield {"role": "user", "content": chat_content(said)}


def _came_to(response: Any) -> Json:
    """A result is an object. One key, `output` or `error`, is the result itself, as the API's own page has it."""
    found = obj(response) or {}
    if len(found) == 1:
        key, value = next(iter(found.items()))
        if key in ("output", "result", "error"):
            return {"content": output_text(value), **({"is_error": True} if key == "error" else {})}
    return {"content": output_text(response), **({"is_error": True} if "error" in found else {})}


# -- writing -----------------------------------------------------------------------------------------------------------


def assistant_message(
    reply: Reply | str,
    calls: Iterable[Call] | None = None,
    *,
    reasoning: str | None = None,
    extras: Extras | None = None,
    ids: bool = True,
) -> Json:
    """The model's turn as one content. `ids=False` leaves the ids out, for servers that refuse them."""
    said = turn(reply, calls, reasoning)
    parts: list[Json] = []
    if said.reasoning:
        parts.append({"text": said.reasoning, "thought": True})
    if said.text:
        parts.append({"text": said.text, **fields_of(extras, "")})
    for call in said.calls:
        function: Json = {"id": call.id} if ids and call.id else {}
        parts.append(
            {"functionCall": {**function, "name": call.name, "args": call.arguments}, **fields_of(extras, call.id)}
        )
    return {"role": "model", "parts": parts}


def tool_result(call: Call, output: Any, *, is_error: bool = False, ids: bool = True) -> Json:
    """A user's content with one result: `output`, or `error` where the tool failed. An object goes out as it is."""
    found = obj(output)
    if is_error:
        response: Json = {"error": output_text(output)}
    else:
        response = found if found is not None else {"output": output}
    function: Json = {"id": call.id} if ids and call.id else {}
    return {"role": "user", "parts": [{"functionResponse": {**function, "name": call.name, "response": response}}]}


def tool_choice(choice: str) -> Any:
    """`auto`, `required`, `none` or a tool's name, as this dialect says it: a `toolConfig`."""
    if choice in _WORDS:
        return {"functionCallingConfig": {"mode": _WORDS[choice]}}
    return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [choice]}}


def read_tool_choice(value: Any) -> str:
    """Our word for it; `auto` for what is absent or unknown."""
    config = obj(field(obj(value) or {}, "functionCallingConfig")) or {}
    names = items(field(config, "allowedFunctionNames"))
    mode = text(config.get("mode"))
    if mode == "ANY" and len(names) == 1:
        return text(names[0])
    return next((word for word, theirs in _WORDS.items() if theirs == mode), "auto")


def opaque(response: Any) -> tuple[Json, list[tuple[str, Json]]]:
    """Thought signatures: of the text, and of each call."""
    message: Json = {}
    calls: list[tuple[str, Json]] = []
    for part in _parts(response):
        signature = field(part, "thoughtSignature")
        fields = {} if signature is None else {"thoughtSignature": signature}
        call = obj(field(part, "functionCall"))
        if call is not None:
            calls.append((text(call.get("id")), fields))
        elif fields:
            message = fields
    return message, calls


def _parts(response: Any) -> list[Json]:
    found = obj(response)
    if found is None:
        return objects(items(response))
    candidates = objects(found.get("candidates"))
    content = obj((candidates[0] if candidates else found).get("content")) or found
    return objects(content["parts"]) if "parts" in content else [content]


# -- what is known of it -----------------------------------------------------------------------------------------------

_KEYS = frozenset("candidates parts functionCall promptFeedback usageMetadata prompt_feedback usage_metadata".split())


def _is_gemini(found: Json) -> bool:
    if not _KEYS.isdisjoint(found):
        return True
    call = obj(found.get("function_call"))
    return (call is not None and "args" in call) or "parts" in (obj(found.get("content")) or {})


def _turn(reply: Reply, extras: Extras) -> Json:
    return assistant_message(reply, extras=extras)


def _results(outcomes: Sequence[CallOutcome], note: str) -> list[Json]:
    """The results of one turn come in one content."""
    found = [tool_result(each.call, each.output, is_error=each.is_error)["parts"] for each in outcomes]
    parts = [part for each in found for part in each] + ([{"text": note}] if note else [])
    return [{"role": "user", "parts": parts}] if parts else []


GEMINI = Dialect("gemini", _is_gemini, whole, chunk, opaque, assistant_message, _turn, _results, sides)
