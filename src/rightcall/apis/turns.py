"""A reply as the turn of an assistant, and what its calls came to, in the words of each API.

history.append(message(reply, "messages"))
history += results("messages", [(call, "4 degrees", False)])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rightcall.api_names import api_name
from rightcall.apis import anthropic, gemini, ollama, openai_chat, openai_responses
from rightcall.types import Call, Json, Reply


class CallOutcome(NamedTuple):
    """What a call came to, for the model: the `call`, its `output` as text, whether it `is_error`, and whether the call
    was one of a `custom` tool, which some APIs answer in another field."""

    call: Call
    output: Any
    is_error: bool = False
    custom: bool = False


class TurnWriter(NamedTuple):
    message: Callable[[Reply, dict[str, Json]], Any]
    results: Callable[[Sequence[CallOutcome], str], list[Json]]


def message(reply: Reply, api: str = "chat") -> Any:
    """The assistant's turn; what the provider wants back is in it if it is this API that it came through."""
    name = api_name(api, WRITERS)
    return WRITERS[name].message(reply, reply.extras if reply.api == name else {})


def results(api: str, outcomes: Sequence[CallOutcome], note: str = "") -> list[Json]:
    """The messages that answer calls, and a note to the model if there is one."""
    return WRITERS[api_name(api, WRITERS)].results(outcomes, note)


def _chat(outcomes: Sequence[CallOutcome], note: str) -> list[Json]:
    out = [openai_chat.tool_result(each.call, each.output, is_error=each.is_error) for each in outcomes]
    return [*out, {"role": "user", "content": note}] if note else out


def _responses(outcomes: Sequence[CallOutcome], note: str) -> list[Json]:
    out = [
        openai_responses.tool_result(each.call, each.output, is_error=each.is_error, custom=each.custom)
        for each in outcomes
    ]
    return [*out, {"role": "user", "content": note}] if note else out


def _messages(outcomes: Sequence[CallOutcome], note: str) -> list[Json]:
    """The results of one turn come in one message, and before its text."""
    blocks = [anthropic.tool_result(each.call, each.output, is_error=each.is_error)["content"] for each in outcomes]
    content = [block for each in blocks for block in each] + ([{"type": "text", "text": note}] if note else [])
    return [{"role": "user", "content": content}] if content else []


def _gemini(outcomes: Sequence[CallOutcome], note: str) -> list[Json]:
    """The results of one turn come in one content."""
    found = [gemini.tool_result(each.call, each.output, is_error=each.is_error)["parts"] for each in outcomes]
    parts = [part for each in found for part in each] + ([{"text": note}] if note else [])
    return [{"role": "user", "parts": parts}] if parts else []


def _ollama(outcomes: Sequence[CallOutcome], note: str) -> list[Json]:
    out = [ollama.tool_result(each.call, each.output, is_error=each.is_error) for each in outcomes]
    return [*out, {"role": "user", "content": note}] if note else out


def _chat_message(reply: Reply, extras: dict[str, Json]) -> Json:
    """Reasoning goes back under the name it came under, and only beside calls: without any, servers refuse it."""
    written = openai_chat.assistant_message(reply, extras=extras, reasoning_key=None)
    dropped = () if reply.attempts else openai_chat.REASONING
    return {key: value for key, value in written.items() if key not in dropped}


# Hosted servers refuse reasoning under a key of its own: it goes back only where it is signed, or a field takes it.
WRITERS: dict[str, TurnWriter] = {
    "chat": TurnWriter(_chat_message, _chat),
    "responses": TurnWriter(
        lambda reply, extras: openai_responses.assistant_message(reply, reasoning="", extras=extras), _responses
    ),
    "messages": TurnWriter(
        lambda reply, extras: anthropic.assistant_message(reply, extras=extras, reasoning_key=None), _messages
    ),
    "gemini": TurnWriter(lambda reply, extras: gemini.assistant_message(reply, extras=extras), _gemini),
    "ollama": TurnWriter(lambda reply, extras: ollama.assistant_message(reply, extras=extras), _ollama),
}
