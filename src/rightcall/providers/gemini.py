"""Gemini:

    {"candidates": [{"content": {"role": "model", "parts": [{"text": "...", "thought": true}, {"text": "..."},
        {"functionCall": {"name": "f", "args": {"x": 1}}, "thoughtSignature": "..."}]}}]}

It also reads a content, a list of parts, a single part, and keys in snake_case, as the SDK writes them. A chunk of a
stream has the shape of a whole response. The arguments of a call may arrive in pieces:

    {"functionCall": {"name": "f", "willContinue": true}}
    {"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "Os", "willContinue": true}], ...}}
    {"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "lo"}]}}

Such a call ends with the piece without `willContinue`. Pieces of a string are joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rightcall.parsing.options import finish_of
from rightcall.providers.dialect import (
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
    StreamState,
    TextDelta,
    assistant_turn,
    extra_fields,
    output_text,
    unknown_fields,
)
from rightcall.providers.openai_chat import chat_content
from rightcall.providers.sdk_view import arguments, compact_json, items, obj, objects, text
from rightcall.types import Call, Json, Reply

# The finish reasons of an answer from which the server removed the model's call.
_REJECTED_CALLS = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE")
_ONLY_A_PIECE = ("truncated", "the call is only a piece of one; give all chunks to a Stream")
_CALL_KEYS = frozenset(("id", "name", "args", "partialArgs", "partial_args", "willContinue", "will_continue"))


class _PartialCall(CallDelta, frozen=True, kw_only=True):
    """A call that may be only a piece of one. Only a stream can join pieces."""

    call: Json


def field(fields: Json, name: str) -> Any:
    """Return a field by its camelCase name; if it is missing or null, by the snake_case name that the SDK uses."""
    found = fields.get(name)
    if found is None:
        snake_case = "".join(["_" + char.lower() if char.isupper() else char for char in name])
        found = fields.get(snake_case)
    return found


# -- reading -----------------------------------------------------------------------------------------------------------


def _part_deltas(parts: Iterable[Json]) -> Deltas:
    """Return the deltas of a list of parts, each paired with the candidate 0."""
    return [(0, delta) for part in parts for delta in _one_part_deltas(part)]


def _join_pieces(delta: Delta, state: StreamState, number: int) -> list[Delta]:
    """Return the deltas that replace a piece of a call: its name at the first piece, nothing between, the whole call at
    the last. Any other delta, and a call without a name while no call is open, is returned unchanged.

    Until the last piece the argument text is `{`, which is not complete JSON. `number` is the candidate; `state` has
    the pieces of the open call of each candidate and is changed.
    """
    if not isinstance(delta, _PartialCall) or (number not in state and delta.fault is None):
        return [delta]
    first = number not in state
    pieces = state.setdefault(number, _CallPieces(len(state)))
    pieces.add(delta.call)
    if field(delta.call, "willContinue") is True:
        begun = CallDelta(slot=pieces.slot, id=pieces.id, name=pieces.name, arguments="{", parsed=True)
        return [begun] if first else []
    del state[number]
    state[number, pieces.slot] = True  # keeps the number of each slot unique
    return [pieces.joined_call()]


def _candidates_deltas(response: Json) -> Deltas:
    """Return the deltas of all candidates, each with the candidate's index, or its position if it has none. A prompt
    that the server blocked is a fault."""
    out: Deltas = []
    for position, candidate in enumerate(objects(response.get("candidates"))):
        index = candidate.get("index")
        number = index if type(index) is int else position
        out += [(number, delta) for delta in _candidate_deltas(candidate)]
    blocked = text(field(obj(field(response, "promptFeedback")) or {}, "blockReason"))
    if blocked:
        out.append((0, Fault("provider_error", f"the server blocked the prompt: {blocked}")))
    return out


def _candidate_deltas(candidate: Json) -> Iterator[Delta]:
    """Yield the deltas of one candidate: its parts, a `Fault` if the server removed the model's call, and the finish
    reason."""
    content = obj(candidate.get("content")) or {}
    for part in objects(content.get("parts")):
        yield from _one_part_deltas(part)
    reason = text(field(candidate, "finishReason"))
    if reason in _REJECTED_CALLS:
        message = text(field(candidate, "finishMessage"))
        yield Fault("provider_error", f"the server refused the model's call: {message or reason}")
    if reason:
        yield Finish(finish_of(reason))


def _one_part_deltas(part: Json) -> Iterator[Delta]:
    """Yield the delta of one part: a call, a piece of a call (`_PartialCall`), reasoning or text. Other and empty parts
    have none.

    A call without a name is a `_PartialCall` too: it may be the last piece of one."""
    call = obj(field(part, "functionCall"))
    if call is not None:
        id, name, given = text(call.get("id")), text(call.get("name")), arguments(call.get("args"))
        if field(call, "partialArgs") is not None or field(call, "willContinue") is True:
            yield _PartialCall(
                call=call, id=id, name=name, arguments=given, whole=True, parsed=True, fault=_ONLY_A_PIECE
            )
        elif not name:  # possibly the last piece of a call
            yield _PartialCall(call=call, id=id, arguments=given, whole=True, parsed=True)
        else:
            unknown = unknown_fields(call, _CALL_KEYS, inner=True)
            yield CallDelta(id=id, name=name, arguments=given, whole=True, parsed=True, unknown=unknown)
    elif content := text(part.get("text")):
        yield ReasoningDelta(content) if part.get("thought") is True else TextDelta(content)


# -- calls in pieces ---------------------------------------------------------------------------------------------------

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,4})\]|\[\s*(['\"])(.*?)\3\s*\]")
_MAX_PATH = 400  # characters, which is at most 200 steps
_VALUE_KEYS = ("stringValue", "numberValue", "boolValue", "string_value", "number_value", "bool_value")


class _CallPieces:
    """The pieces of one call, and the arguments that they make. `number` makes the slot of the call unique."""

    def __init__(self, number: int) -> None:
        self.slot = f"pieces-{number}"
        self.name = self.id = ""
        self.invalid_path = ""  # the first path that cannot be followed
        self._arguments: Json = {}

    def add(self, call: Json) -> None:
        """Store the values of one piece at their paths in the arguments. The first name and id count; a path that
        cannot be followed is stored in `invalid_path`, and its value is lost."""
        self.name, self.id = self.name or text(call.get("name")), self.id or text(call.get("id"))
        self._arguments.update(obj(call.get("args")) or {})
        for piece in objects(call.get("partialArgs", call.get("partial_args"))):
            path = text(piece.get("jsonPath", piece.get("json_path")))
            steps = _parse_path(path)
            if not steps or not _store_value(self._arguments, steps, _piece_value(piece)):
                self.invalid_path = self.invalid_path or path or "?"

    def joined_call(self) -> CallDelta:
        """Return the complete call as a delta whose arguments replace its earlier argument text. The delta has a fault
        if a path was invalid."""
        fault = None
        if self.invalid_path:
            message = f"a piece of the arguments has a path that leads nowhere: {self.invalid_path}"
            fault = ("malformed_response", message)
        json = compact_json(_join_strings(self._arguments))
        return CallDelta(slot=self.slot, id=self.id, name=self.name, arguments=json, all=True, parsed=True, fault=fault)


def _piece_value(piece: Json) -> Any:
    """Return the value of a piece of the arguments, or None if it has none: null has no key of its own. A float without
    fraction becomes an integer, since integers are sent as floats."""
    value = next((piece[key] for key in _VALUE_KEYS if key in piece), None)
    return int(value) if isinstance(value, float) and value.is_integer() else value


class _GrowingString(list[str]):
    """The pieces of a string that may continue."""


def _parse_path(path: str) -> list[str | int]:
    """Parse `$.a[0].b` as keys and positions. A path that is too long or not fully understood, and `$`, gives an empty
    list."""
    if len(path) >= _MAX_PATH:
        return []
    at = 1 if path.startswith("$") else 0
    steps: list[str | int] = []
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return []
        at = step.end()
        steps.append(int(step[2]) if step[2] else step[1] or step[4] or "")
    return steps


def _store_value(target: Any, steps: list[str | int], value: Any) -> bool:
    """Store a value at the path `steps` in `target`, and create missing objects and lists. A string is appended to the
    string that is there.

    Return False if the path does not fit the values; objects and lists that were created before remain.
    """
    for step, next_step in zip(steps, [*steps[1:], None], strict=True):
        if not _ensure_place(target, step):
            return False
        before = target.get(step) if isinstance(target, dict) else target[step]
        if next_step is None:
            target[step] = _extend_string(before, value) if isinstance(value, str) else value
        elif before is None:
            target[step] = [] if isinstance(next_step, int) else {}
        target = target[step]
    return True


def _ensure_place(target: Any, step: str | int) -> bool:
    """Return True if `target` is an object and the step a key, or a list and the step an index up to its length. A list
    whose length is the step is extended by None. Any other pair gives False."""
    if isinstance(target, dict):
        return isinstance(step, str)
    if not isinstance(target, list) or isinstance(target, _GrowingString):
        return False
    if not isinstance(step, int) or step > len(target):
        return False
    if step == len(target):
        target.append(None)
    return True


def _extend_string(before: Any, piece: str) -> _GrowingString:
    """Return the pieces of the string at a path with `piece` appended. `before` is the value there so far: pieces are
    extended in place, a string becomes the first piece, and any other value is replaced."""
    string = (
        before if isinstance(before, _GrowingString) else _GrowingString([before] if isinstance(before, str) else ())
    )
    string.append(piece)
    return string


def _join_strings(value: Any) -> Any:
    """Return a copy of a value in which the pieces of each string are joined."""
    if isinstance(value, _GrowingString):
        return "".join(value)
    if isinstance(value, dict):
        return {key: _join_strings(each) for key, each in value.items()}
    return [_join_strings(each) for each in value] if isinstance(value, list) else value


# -- histories ---------------------------------------------------------------------------------------------------------


def _user_messages(content: Json) -> Iterator[Json]:
    """Yield the messages of Chat for one content that is not the model's: a tool message for each result, then one user
    message with the other parts, if there are any."""
    others: list[Json] = []
    for part in objects(content.get("parts")):
        result = obj(field(part, "functionResponse"))
        if result is None:
            others.append(part)
        else:
            call = {"tool_call_id": text(result.get("id")), "name": text(result.get("name"))}
            yield {"role": "tool", **call, **_result_content(result.get("response"))}
    if others:
        yield {"role": "user", "content": chat_content(others)}


def _result_content(response: Any) -> Json:
    """Return the fields of a tool message for a result: its content, and `is_error` if the result has a key `error`.

    A result is an object. The value of a single key `output`, `result` or `error`, which the API's documentation
    defines, is the content; else the whole object is, as JSON.
    """
    fields = obj(response) or {}
    if len(fields) == 1:
        key, value = next(iter(fields.items()))
        if key in ("output", "result", "error"):
            return {"content": output_text(value), **({"is_error": True} if key == "error" else {})}
    return {"content": output_text(response), **({"is_error": True} if "error" in fields else {})}


# -- writing -----------------------------------------------------------------------------------------------------------


_CHOICES = {"auto": "AUTO", "required": "ANY", "none": "NONE"}


def _parts_of(response: Any) -> list[Json]:
    """Return the parts of a response's first candidate, of a content, of a list of parts or of one part; entries that
    are no objects are left out."""
    fields = obj(response)
    if fields is None:
        return objects(items(response))
    candidates = objects(fields.get("candidates"))
    content = obj((candidates[0] if candidates else fields).get("content")) or fields
    return objects(content["parts"]) if "parts" in content else [content]


# -- the dialect -------------------------------------------------------------------------------------------------------

_IDENTIFYING_KEYS = frozenset(
    "candidates parts functionCall promptFeedback usageMetadata prompt_feedback usage_metadata".split()
)


class Gemini(Dialect):
    """The Gemini API."""

    name = "gemini"

    def detects(self, fields: Json) -> bool:
        """Return True if the object has keys that only Gemini has, a `function_call` with `args`, or a content with
        parts."""
        if not _IDENTIFYING_KEYS.isdisjoint(fields):
            return True
        call = obj(fields.get("function_call"))
        return (call is not None and "args" in call) or "parts" in (obj(fields.get("content")) or {})

    def response_deltas(self, response: Any) -> Deltas:
        """Return the deltas of a response, a content, a list of parts or one part, with their candidates' numbers. A
        call of which this is only a piece has a fault; `chunk_deltas` joins pieces."""
        fields = obj(response)
        if fields is None:
            return _part_deltas(objects(items(response)))
        if "candidates" in fields or field(fields, "promptFeedback") is not None:
            return _candidates_deltas(fields)
        if obj(fields.get("content")) is not None:
            return [(0, delta) for delta in _candidate_deltas(fields)]
        return _part_deltas(objects(fields["parts"]) if "parts" in fields else [fields])

    def chunk_deltas(self, payload: Json, state: StreamState) -> Deltas:
        """Return the deltas of one chunk of a stream. The pieces of a call are joined over several chunks, by `state`,
        which is changed."""
        return [
            (number, joined)
            for number, delta in self.response_deltas(payload)
            for joined in _join_pieces(delta, state, number)
        ]

    def opaque_fields(self, response: Any) -> tuple[Json, list[tuple[str, Json]]]:
        """Return the thought signature of the text (the last one, if several parts have one), and for each call, in
        order, its id ("" if it has none) and its thought signature. A part without a signature has empty fields."""
        message: Json = {}
        calls: list[tuple[str, Json]] = []
        for part in _parts_of(response):
            signature = field(part, "thoughtSignature")
            fields = {} if signature is None else {"thoughtSignature": signature}
            call = obj(field(part, "functionCall"))
            if call is not None:
                calls.append((text(call.get("id")), fields))
            elif fields:
                message = fields
        return message, calls

    def history_entries(self, history: Sequence[Any]) -> Iterator[Json | ModelTurn]:
        """Yield the turns of the model as `ModelTurn`, and all others as messages of Chat; results come before the
        other parts of the same content. A string is a user's message; an empty one is left out."""
        for content in items(history):
            fields = obj(content)
            if fields is None:
                if text(content):
                    yield {"role": "user", "content": text(content)}
            elif fields.get("role") == "model":
                yield ModelTurn(fields)
            else:
                yield from _user_messages(fields)

    def assistant_message(
        self,
        reply: Reply | str,
        calls: Iterable[Call] | None = None,
        *,
        reasoning: str | None = None,
        extras: Extras | None = None,
        ids: bool = True,
    ) -> Json:
        """Return the model's turn as one content: reasoning, text, calls. `ids=False` omits the ids, for servers that
        refuse them. An empty turn has no parts."""
        turn = assistant_turn(reply, calls, reasoning)
        parts: list[Json] = []
        if turn.reasoning:
            parts.append({"text": turn.reasoning, "thought": True})
        if turn.text:
            parts.append({"text": turn.text, **extra_fields(extras, "")})
        for call in turn.calls:
            function: Json = {"id": call.id} if ids and call.id else {}
            function |= {"name": call.name, "args": call.arguments}
            parts.append({"functionCall": function, **extra_fields(extras, call.id)})
        return {"role": "model", "parts": parts}

    def tool_result(self, call: Call, output: Any, *, is_error: bool = False, ids: bool = True) -> Json:
        """Return a user's content with one result: an object as it is, any other value under `output`; with `is_error`,
        its text under `error`. `ids=False` omits the id."""
        fields = obj(output)
        if is_error:
            response: Json = {"error": output_text(output)}
        else:
            response = fields if fields is not None else {"output": output}
        function: Json = {"id": call.id} if ids and call.id else {}
        return {"role": "user", "parts": [{"functionResponse": {**function, "name": call.name, "response": response}}]}

    def result_messages(self, outcomes: Sequence[CallOutcome], note: str) -> list[Json]:
        """Return one content with all results, in order, and the note after them; no content if there is neither."""
        results = [self.tool_result(each.call, each.output, is_error=each.is_error)["parts"] for each in outcomes]
        parts = [part for each in results for part in each] + ([{"text": note}] if note else [])
        return [{"role": "user", "parts": parts}] if parts else []

    def tool_choice(self, choice: str) -> Any:
        """Return the `toolConfig` for a choice: `auto`, `required`, `none` or the name of a tool, which is not
        checked."""
        if choice in _CHOICES:
            return {"functionCallingConfig": {"mode": _CHOICES[choice]}}
        return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [choice]}}


GEMINI = Gemini()
