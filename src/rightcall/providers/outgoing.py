"""What every dialect's writer needs: what to say, and values as the text that a wire carries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rightcall.providers.sdk_view import dumps
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.types import Call, Json, Reply

# Opaque fields as `opaque` gives them: of a call by its id, of the message under "".
Extras = Mapping[str, Json]


class AssistantTurn(NamedTuple):
    """What an assistant said."""

    text: str
    calls: tuple[Call, ...]
    reasoning: str


def turn(reply: Reply | str, calls: Iterable[Call] | None, reasoning: str | None) -> AssistantTurn:
    """A reply as it is, or text with calls; what is given beside a reply replaces its own."""
    own = (
        AssistantTurn(reply.content, reply.attempts, reply.reasoning)
        if isinstance(reply, Reply)
        else AssistantTurn(reply, (), "")
    )
    return AssistantTurn(
        own.text,
        own.calls if calls is None else tuple(calls),
        own.reasoning if reasoning is None else reasoning,
    )


def argument_text(call: Call) -> str:
    """The arguments as JSON, always an object: to the byte as the model wrote them, where that text says just this."""
    if call.complete and decode(call.json, MAX_DEPTH) == call.arguments:
        return call.json.strip()
    return dumps(call.arguments)


def custom_input(call: Call) -> str:
    """The free text of a custom call."""
    said = call.arguments.get("input")
    return said if isinstance(said, str) else argument_text(call)


def output_text(output: Any, *, is_error: bool = False) -> str:
    """A tool's output as text: strings as they are, the rest as JSON. An error says so."""
    said = output if isinstance(output, str) else dumps(output)
    return f"ERROR: {said}" if is_error and not said.lower().startswith("error") else said


def fields_of(extras: Extras | None, id: str) -> Json:
    return dict(extras.get(id, {})) if extras else {}
