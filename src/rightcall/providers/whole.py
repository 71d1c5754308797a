"""`read` and `read_all`: a provider's whole answer as a reply.

    read({"choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}}]}).calls[0].name

Never raises because of what a model or a server sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.parsing.how_ended import CUT
from rightcall.parsing.options import Limits
from rightcall.parsing.parser import Policy, ReasoningCalls, Rescue, parse, read_options
from rightcall.providers.assembler import Assembler, Manner
from rightcall.providers.deltas import Deltas, Fault, Loss, Seen, Stop, of_choice
from rightcall.providers.opaque_fields import Keepsakes
from rightcall.providers.sdk_view import error_text, obj
from rightcall.providers.sniff import DIALECTS, named, sniff
from rightcall.providers.sse import as_payloads, json_value
from rightcall.providers.usage import usage_of
from rightcall.tools.toolset import ToolLike, Toolset
from rightcall.types import Json, Reply


def read(
    response: Any,
    *,
    tools: Toolset | Iterable[ToolLike] | None = None,
    api: str = "auto",
    format: str | Format = "auto",
    reasoning: Literal["auto", "open", "off"] = "auto",
    repair: Policy | Mapping[str, Policy] = "safe",
    rescue: Rescue = "safe",
    reasoning_calls: ReasoningCalls = "safe",
    choice: str | Mapping[str, Any] | None = None,
    ids: Ids | None = None,
    limits: Limits | None = None,
) -> Reply:
    """The reply that a provider's answer holds, whatever API it came through; several choices come one after the other.
    Never raises because of what a model or a server sent: an error in place of an answer is a problem.

    - `response`: a whole response, a message, a list of items or one item: a dict, an SDK's object, or JSON as str or
      bytes. A recorded stream will do. Any other text is what a model wrote, and is parsed.
    - `tools`: what may be called, as in `parse`; None checks neither names nor arguments.
    - `api`: "auto" finds out which it is; else `chat`, `responses`, `messages`, `gemini`, `ollama` or `completions`, or
      the name of its SDK.
    - `format`, `reasoning`, `repair`, `rescue`, `reasoning_calls`, `choice`, `ids`, `limits`: as in `parse`, for the
      text of the answer and for its native calls.
    """
    how = manner(tools, format, reasoning, repair, rescue, reasoning_calls, choice, limits)
    return merged(_replies(response, api, how, Ids() if ids is None else ids, separate=False))


def read_all(
    response: Any,
    *,
    tools: Toolset | Iterable[ToolLike] | None = None,
    api: str = "auto",
    format: str | Format = "auto",
    reasoning: Literal["auto", "open", "off"] = "auto",
    repair: Policy | Mapping[str, Policy] = "safe",
    rescue: Rescue = "safe",
    reasoning_calls: ReasoningCalls = "safe",
    choice: str | Mapping[str, Any] | None = None,
    ids: Ids | None = None,
    limits: Limits | None = None,
) -> list[Reply]:
    """One reply per choice or candidate, at least one. `response`, `tools`, `api`, `format`, `reasoning`, `repair`,
    `rescue`, `reasoning_calls`, `choice`, `ids` and `limits` are those of `read`."""
    how = manner(tools, format, reasoning, repair, rescue, reasoning_calls, choice, limits)
    return _replies(response, api, how, Ids() if ids is None else ids, separate=True)


def manner(
    tools: Toolset | Iterable[ToolLike] | None,
    format: str | Format,
    reasoning: Literal["auto", "open", "off"],
    repair: Policy | Mapping[str, Policy],
    rescue: Rescue,
    reasoning_calls: ReasoningCalls,
    choice: str | Mapping[str, Any] | None,
    limits: Limits | None,
    *,
    live: bool = False,
) -> Manner:
    """The options of a reading, checked."""
    found = Toolset.of(tools, choice=choice)
    read_options(found, reasoning, repair, rescue, reasoning_calls)
    return Manner(found, format, reasoning, repair, rescue, reasoning_calls, choice, live, limits or Limits())


def _replies(response: Any, api: str, how: Manner, ids: Ids, *, separate: bool) -> list[Reply]:
    api = named(api)
    if isinstance(response, (bytes, bytearray)):
        response = bytes(response).decode("utf-8", "replace")
    if isinstance(response, str):
        found = _from_text(response, api)
        if found is None:
            return [_parsed(response, how, ids)]
        response = found
    response = response if (fields := obj(response)) is None else fields  # an SDK's object is taken apart once
    if isinstance(response, Recording):
        chunks, api = response.chunks(api)
        usage, response = response.usage, response.kept(api)
    else:
        api = sniff(response) or api if api == "auto" else api
        chunks = [whole(response, api)]
        usage = usage_of(response)
    replies = _assembled(chunks, api, how, ids, separate=separate)
    return [of_provider(reply, api, usage, None if at else response) for at, reply in enumerate(replies)]


class Recording(list[Any]):
    """The payloads of a recorded stream."""

    @property
    def usage(self) -> Json:
        """The last word on every count."""
        return {name: value for payload in self for name, value in usage_of(payload).items()}

    def kept(self, api: str) -> Any:
        """As much of the whole answer as `opaque` looks at."""
        keepsakes = Keepsakes()
        for payload in self:
            keepsakes.add(api, payload)
        return keepsakes.response(api)

    def chunks(self, api: str) -> tuple[list[Deltas], str]:
        """What each of them adds, and the dialect."""
        seen: Seen = {}
        out: list[Deltas] = []
        for payload in self:
            api = sniff(payload) or api if api == "auto" else api
            out.append(chunk(payload, api, seen))
        return out, api


def _from_text(text: str, api: str) -> Any:
    """What JSON text holds, if it is a provider's; None if the text is a model's."""
    value = json_value(text)
    if value is not None:
        return value if api != "auto" or sniff(value) or _error(value) else None
    payloads = as_payloads(text)
    return Recording(payloads) if payloads and any(map(sniff, payloads)) else None


def _parsed(text: str, how: Manner, ids: Ids) -> Reply:
    return parse(
        text,
        tools=how.tools,
        format=how.format,
        reasoning=how.reasoning,
        repair=how.repair,
        rescue=how.rescue,
        reasoning_calls=how.reasoning_calls,
        choice=how.choice,
        ids=ids,
        limits=how.limits,
    )


def whole(response: Any, api: str) -> Deltas:
    """The deltas of a whole response; an error in its place is a fault."""
    if error := _error(response):
        return [(0, Loss("provider_error", f"the server reported an error: {error}"))]
    if api == "auto":
        return [(0, _unknown(response))] if response else []
    return DIALECTS[api].whole(response)


def chunk(payload: Json, api: str, seen: Seen) -> Deltas:
    """The deltas of one chunk of a stream."""
    if error := _error(payload):
        return [(0, Loss("provider_error", f"the server reported an error: {error}"))]
    return [(0, _unknown(payload))] if api == "auto" else DIALECTS[api].chunk(payload, seen)


def _unknown(response: Any) -> Fault:
    shown = f"keys {', '.join(map(repr, list(fields)[:8]))}" if (fields := obj(response)) else f"{response!r:.80}"
    return Fault("unknown_shape", f"this is no answer of a known provider: {shown}", blocking=False)


def _error(response: Any) -> str:
    """What an error that stands where an answer should says."""
    found = obj(response) or {}
    error = found.get("error") or (found if found.get("type") == "error" else None)
    if not error or any(found.get(key) for key in ("choices", "output", "candidates")):
        return ""
    return error_text(error)


def has_loss(chunks: list[Deltas]) -> bool:
    return any(isinstance(delta, Loss) for deltas in chunks for _, delta in deltas)


def _assembled(chunks: list[Deltas], api: str, how: Manner, ids: Ids, *, separate: bool) -> list[Reply]:
    numbers = sorted({number for deltas in chunks for number, _ in deltas}) or [0]
    is_lost = has_loss(chunks)
    replies: list[Reply] = []
    first = 0
    for number in numbers:
        assembler = Assembler(api, how, ids, first)
        for deltas in chunks:
            assembler.chunk(of_choice(deltas, number))
        if is_lost:
            assembler.add(Stop("error"))
        assembler.close()
        assembler.take()
        replies.append(assembler.reply)
        first = 0 if separate else assembler.count
    return replies


def merged(replies: list[Reply]) -> Reply:
    """Replies whose calls are already counted through, as one."""
    if len(replies) == 1:
        return replies[0]
    parts = [part for reply in replies for part in reply.parts]
    problems = [problem for reply in replies for problem in reply.problems]
    finish = next((reply.finish for reply in replies if reply.finish in CUT), replies[0].finish)
    return msgspec.structs.replace(replies[0], parts=tuple(parts), problems=tuple(problems), finish=finish)


def of_provider(reply: Reply, api: str, usage: Json, response: Any) -> Reply:
    """The reply with what its provider counted, of all choices together, and what it wants back."""
    if api == "auto":
        return reply
    extras = {} if response is None else _extras(response, reply, api)
    return msgspec.structs.replace(reply, api=api, usage=usage or None, extras=extras)


def _extras(response: Any, reply: Reply, api: str) -> dict[str, Json]:
    """Fields that we do not read and a provider wants back (thought signatures, encrypted reasoning, `extra_content`),
    by the ids that the reply gave its calls."""
    message, calls = DIALECTS[api].opaque(response)
    if not message and not any(fields for _, fields in calls):
        return {}
    found = zip([call.id for call in reply.attempts], calls, strict=False)
    return {**({"": message} if message else {}), **{id: fields for id, (_, fields) in found if fields}}
