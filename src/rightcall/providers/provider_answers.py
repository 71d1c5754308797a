"""`read`, `read_all` and `Stream`: a provider's answer, whole or streamed, as a reply.

    read({"choices": [{"message": {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}}]}).calls[0].name

    stream = Stream(tools=tools)
    for event in stream.events(response): ...
    stream.reply

A whole answer is assembled like a stream of one chunk, so both give the same reply. What a model or a server sent never
raises an exception.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, Literal, overload

import msgspec

from rightcall.errors import CallerError
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.parsing.events import Hold, all_events
from rightcall.parsing.options import CUT, Limits, Policy, ReasoningCalls, Rescue, read_options
from rightcall.parsing.parser import parse
from rightcall.providers.assembler import AnswerOptions, Assembler
from rightcall.providers.dialect import Delta, Deltas, Fault, Loss, StreamState, TextDelta
from rightcall.providers.opaque_fields import OpaqueFields
from rightcall.providers.sdk_view import error_text, items, obj, objects
from rightcall.providers.sniff import DIALECTS, detect_dialect, dialect_name
from rightcall.providers.sse import Payloads, decode_container, parse_recording
from rightcall.tools.toolset import ToolLike, Toolset
from rightcall.types import Event, Json, Reply

# -- whole answers -----------------------------------------------------------------------------------------------------


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
    """Return the reply in a provider's answer of any API. Several choices are joined in order. What a model or a server
    sent never raises an exception: an error in place of an answer is a problem of the reply.

    - `response`: a response, a message, a list of items or one item, as a dict, an SDK object, or JSON in str or bytes;
      or a recorded stream as str or bytes. Any other text is a model's output and is parsed.
    - `tools`: the tools that may be called, as in `parse`; None checks neither names nor arguments.
    - `api`: `chat`, `responses`, `messages`, `gemini`, `ollama` or `completions`, or the name of its SDK; "auto"
      detects it.
    - `format`, `reasoning`, `repair`, `rescue`, `reasoning_calls`, `choice`, `ids`, `limits`: as in `parse`, for the
      text of the answer and for its native calls.

    Raises `CallerError` for an invalid option.
    """
    options = _make_answer_options(tools, format, reasoning, repair, rescue, reasoning_calls, choice, limits)
    return _join_replies(_read_choices(response, api, options, Ids() if ids is None else ids, separate=False))


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
    """Return one reply per choice or candidate of a provider's answer, in their order, at least one. `response`,
    `tools`, `api`, `format`, `reasoning`, `repair`, `rescue`, `reasoning_calls`, `choice`, `ids` and `limits` are those
    of `read`, and so are the exceptions."""
    options = _make_answer_options(tools, format, reasoning, repair, rescue, reasoning_calls, choice, limits)
    return _read_choices(response, api, options, Ids() if ids is None else ids, separate=True)


def _make_answer_options(
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
) -> AnswerOptions:
    """Return the options of `read` or `Stream` as one value, with `tools` as a toolset (None stays None unless the
    choice is "none"). Raises `CallerError` for an invalid `reasoning`, `repair`, `rescue` or `reasoning_calls` and
    `BadTools` for unusable tools; `format`, `choice` and `limits` are not checked here."""
    toolset = Toolset.of(tools, choice=choice)
    read_options(toolset, reasoning, repair, rescue, reasoning_calls)  # raises where an option is invalid
    return AnswerOptions(toolset, format, reasoning, repair, rescue, reasoning_calls, choice, live, limits or Limits())


def _read_choices(response: Any, api: str, options: AnswerOptions, ids: Ids, *, separate: bool) -> list[Reply]:
    """Return one reply per choice of a response, at least one.

    `response` is a response, message, item or list of items (dicts or SDK objects), its JSON, or a recorded stream as
    text or bytes; any other text is parsed as a model's output. Call indexes continue from choice to choice, unless the
    replies are `separate`. Opaque fields are only in the first reply. Raises `CallerError` for an unknown `api`.
    """
    api = dialect_name(api)
    if isinstance(response, (bytes, bytearray)):
        response = bytes(response).decode("utf-8", "replace")
    payloads: list[Any] | None = None
    if isinstance(response, str):
        value, payloads = _decode_answer(response, api)
        if value is None and payloads is None:
            return [_parse_text(response, options, ids)]
        response = value
    if payloads is not None:
        chunks, api, usage, response = _read_recording(payloads, api)
    else:
        if (fields := obj(response)) is not None:
            response = fields  # an SDK object is converted once
        api = detect_dialect(response) or api if api == "auto" else api
        if error := _error_message(response):
            deltas: Deltas = [(0, _provider_error(error))]
        elif api == "auto":
            deltas = [(0, _unknown_shape(response))] if response else []
        else:
            deltas = DIALECTS[api].response_deltas(response)
        chunks, usage = [deltas], usage_of(response)

    choices: dict[int, list[list[Delta]]] = {}
    is_lost = False
    for deltas in chunks:
        by_choice, has_loss = _group_by_choice(deltas)
        is_lost = is_lost or has_loss
        for number, of_choice in by_choice.items():
            choices.setdefault(number, []).append(of_choice)
    replies: list[Reply] = []
    first = 0
    for number in sorted(choices) or [0]:
        assembler = Assembler(api, options, ids, first)
        assembler.read(choices.get(number, []), is_lost=is_lost)
        assembler.take_events()
        replies.append(_with_provider_fields(assembler.reply, api, usage, None if replies else response))
        first = 0 if separate else assembler.next_index
    return replies


def _decode_answer(text: str, api: str) -> tuple[Any, list[Any] | None]:
    """Return a provider's JSON value and None, or None and the payloads of its recorded stream. Both are None for a
    model's output, such as JSON of no known API with `api="auto"`."""
    value = decode_container(text)
    if value is not None:
        return (value if api != "auto" or detect_dialect(value) or _error_message(value) else None), None
    payloads = parse_recording(text)
    return None, payloads if payloads and any(map(detect_dialect, payloads)) else None


def _read_recording(payloads: list[Any], api: str) -> tuple[list[Deltas], str, Json, Any]:
    """Return the deltas of each payload, the dialect, the usage, and the opaque fields in the shape of a response. The
    first payload that is known decides an `api` of "auto"."""
    state: StreamState = {}
    chunks: list[Deltas] = []
    usage: Json = {}
    for payload in payloads:
        api = detect_dialect(payload) or api if api == "auto" else api
        chunks.append(_chunk_deltas(payload, api, state))
        usage |= usage_of(payload)  # the last value of every count
    opaque_fields = OpaqueFields()
    for payload in payloads:
        opaque_fields.add(api, payload)
    return chunks, api, usage, opaque_fields.response(api)


def _parse_text(text: str, options: AnswerOptions, ids: Ids) -> Reply:
    """Parse the text of a model, which is no provider's answer, with these options, and return the reply."""
    return parse(
        text,
        tools=options.tools,
        format=options.format,
        reasoning=options.reasoning,
        repair=options.repair,
        rescue=options.rescue,
        reasoning_calls=options.reasoning_calls,
        choice=options.choice,
        ids=ids,
        limits=options.limits,
    )


# -- deltas of an answer -----------------------------------------------------------------------------------------------


def _chunk_deltas(payload: Json, api: str, state: StreamState) -> Deltas:
    """Return the deltas of one decoded chunk of the dialect `api`, each with the number of its choice. A server's error
    in place of a chunk is one `Loss`, and a chunk of unknown shape (`api` is "auto") one `Fault` that does not block.
    `state` is that of `Dialect.chunk_deltas`."""
    if error := _error_message(payload):
        return [(0, _provider_error(error))]
    return [(0, _unknown_shape(payload))] if api == "auto" else DIALECTS[api].chunk_deltas(payload, state)


def _unknown_shape(response: Any) -> Fault:
    """Return the `Fault`, which does not block, for a value that is not an answer of a known API; its message names the
    keys of the value, or quotes it."""
    shape = f"keys {', '.join(map(repr, list(fields)[:8]))}" if (fields := obj(response)) else f"{response!r:.80}"
    return Fault("unknown_shape", f"the value is not an answer of a known API: {shape}", blocking=False)


def _error_message(response: Any) -> str:
    """Return the message of an error that a server sent instead of an answer, else an empty string. An error next to
    choices, output or candidates is not one."""
    fields = obj(response) or {}
    error = fields.get("error") or (fields if fields.get("type") == "error" else None)
    if not error or any(fields.get(key) for key in ("choices", "output", "candidates")):
        return ""
    return error_text(error)


def _provider_error(message: str) -> Loss:
    """Return the `Loss` for an error that a server sent, with its message: the end of any choice may be missing."""
    return Loss("provider_error", f"the server reported an error: {message}")


def _group_by_choice(deltas: Deltas) -> tuple[dict[int, list[Delta]], bool]:
    """Return the deltas grouped by the number of their choice, in order, and whether one of them is a `Loss`."""
    choices: dict[int, list[Delta]] = {}
    has_loss = False
    for number, delta in deltas:
        choices.setdefault(number, []).append(delta)
        has_loss = has_loss or isinstance(delta, Loss)
    return choices, has_loss


# -- replies of an answer ----------------------------------------------------------------------------------------------


def _join_replies(replies: list[Reply]) -> Reply:
    """Join replies whose calls are numbered consecutively to one: parts and problems in order, all else from the first.
    The finish reason is that of the first truncated reply, else of the first reply."""
    if len(replies) == 1:
        return replies[0]
    parts = [part for reply in replies for part in reply.parts]
    problems = [problem for reply in replies for problem in reply.problems]
    finish = next((reply.finish for reply in replies if reply.finish in CUT), replies[0].finish)
    return msgspec.structs.replace(replies[0], parts=tuple(parts), problems=tuple(problems), finish=finish)


def _with_provider_fields(reply: Reply, api: str, usage: Json, response: Any) -> Reply:
    """Return the reply with `api`, the usage, which is that of all choices, and the opaque fields in `response` (None:
    none). With the API "auto" the reply is returned unchanged.

    Opaque fields (thought signatures, encrypted reasoning, `extra_content`) are not read, but the provider requires
    them back. They are stored under the ids that the reply gave its calls, which are matched by their position.
    """
    if api == "auto":
        return reply
    extras: dict[str, Json] = {}
    if response is not None:
        message, calls = DIALECTS[api].opaque_fields(response)
        if message:
            extras[""] = message
        for position, (_, fields) in enumerate(calls):
            if fields and position < len(reply.attempts):
                extras[reply.attempts[position].id] = fields
    return msgspec.structs.replace(reply, api=api, usage=usage or None, extras=extras)


_USAGE_KEYS = ("usage", "usageMetadata", "usage_metadata")
_OLLAMA_COUNTS = (
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
    "load_duration",
    "total_duration",
)
_KEYS_WITH_USAGE = frozenset((*_USAGE_KEYS, *_OLLAMA_COUNTS, "response", "message"))


def usage_of(payload: Any) -> Json:
    """Return the token counts and durations in a response or chunk, under the provider's own names; an empty object if
    it has none."""
    fields = obj(payload) or {}
    if _KEYS_WITH_USAGE.isdisjoint(fields):
        return {}
    usage = {key: fields[key] for key in _OLLAMA_COUNTS if type(fields.get(key)) is int}
    for holder in objects([fields, fields.get("response"), fields.get("message")]):
        for key in _USAGE_KEYS:
            counts = obj(holder.get(key)) or {}
            usage |= {name: value for name, value in counts.items() if value is not None}
    return usage


# -- streamed answers --------------------------------------------------------------------------------------------------


class Stream:
    """Reads one streamed answer of a provider. `feed` returns the events that a chunk made certain, `close` the rest;
    `reply` is then the one that `read` returns for the whole answer. The first of several choices is emitted as it
    arrives, the others at the end.

    The options are those of `read`: `api`, `tools`, `format`, `reasoning`, `repair`, `rescue`, `reasoning_calls`,
    `choice`, `ids` and `limits`. Two more:

    - `live`: emit string arguments while they arrive, as a preview, also for calls in the text. The end of a call in
      the text is emitted at the end of the answer, because such a call is rejected if native calls follow.
    - `hold`: hold back text that may turn out to be reasoning or a call, so that no `Recast` is emitted.
    """

    def __init__(
        self,
        api: str = "auto",
        *,
        tools: Toolset | Iterable[ToolLike] | None = None,
        format: str | Format = "auto",
        reasoning: Literal["auto", "open", "off"] = "auto",
        repair: Policy | Mapping[str, Policy] = "safe",
        rescue: Rescue = "safe",
        reasoning_calls: ReasoningCalls = "safe",
        choice: str | Mapping[str, Any] | None = None,
        ids: Ids | None = None,
        live: bool = False,
        hold: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self._api = dialect_name(api)
        self._options = _make_answer_options(
            tools, format, reasoning, repair, rescue, reasoning_calls, choice, limits, live=live
        )
        self._ids = Ids() if ids is None else ids
        self._payloads = Payloads()
        self._state: StreamState = {}
        self._opaque_fields = OpaqueFields()
        self._first: Assembler | None = None  # of choice 0
        self._others: dict[int, list[list[Delta]]] = {}
        self._replies: list[Reply] = []
        self._usage: Json = {}
        self._is_lost = False  # a part of the answer was lost, possibly the end of a choice
        self._closed = False
        self._hold = Hold() if hold else None

    def feed(self, chunk: Any) -> list[Event]:
        """Return the events that this `chunk` made certain: parsed JSON, an SDK object, a list of these, or text or
        bytes of the stream, cut anywhere. Raises `CallerError` once the stream is closed."""
        if self._closed:
            raise CallerError("this stream is closed; a new answer needs a new Stream")
        if type(chunk) is TextDelta:
            return self._feed_text(chunk)
        if isinstance(chunk, str | bytes):
            payloads: list[Any] = list(self._payloads.feed(chunk))
        elif isinstance(chunk, list | tuple):
            payloads = items(chunk)
        else:
            payloads = [chunk]
        events: list[Event] = []
        for payload in payloads:
            events += self._feed_payload(payload)
        return events if self._hold is None else self._hold.pass_on(events, closed=False)

    def close(self) -> list[Event]:
        """End the stream and return the remaining events, those of all other choices included. A second call returns an
        empty list."""
        if self._closed:
            return []
        self._closed = True
        events = [event for fault in self._payloads.close() for event in self._feed_payload(fault)]
        first = self._get_first_assembler()
        first.close()
        events += first.take_events()
        self._replies = [first.reply]
        next_index = first.next_index
        for number in sorted(self._others):
            other = Assembler(self._api, self._options, self._ids, next_index)
            other.read(self._others[number], is_lost=self._is_lost)
            events += other.take_events()
            self._replies.append(other.reply)
            next_index = other.next_index
        return events if self._hold is None else self._hold.pass_on(events, closed=True)

    @overload
    def events(self, chunks: Iterable[Any]) -> Iterator[Event]: ...
    @overload
    def events(self, chunks: AsyncIterable[Any]) -> AsyncIterator[Event]: ...
    def events(self, chunks: Iterable[Any] | AsyncIterable[Any]) -> Iterator[Event] | AsyncIterator[Event]:
        """Feed each of `chunks`, close the stream, and yield all events. Use `async for` over an async stream."""
        return all_events(self, chunks)

    @property
    def reply(self) -> Reply:
        """Return the reply so far; before the stream is closed, it has only the first choice and only events that are
        certain."""
        unfinished = Reply() if self._first is None else self._first.reply
        reply = _join_replies(self._replies) if self._closed else unfinished
        return _with_provider_fields(reply, self._api, self._usage, self._opaque_fields.response(self._api))

    @property
    def has_native_calls(self) -> bool:
        """Return True once the first choice has a native call; calls in its text do not count."""
        return self._first is not None and self._first.has_native_calls

    def _feed_text(self, delta: TextDelta) -> list[Event]:
        """Read a piece of text of the first choice, which the caller has already extracted from its chunk, and return
        the events that it made certain."""
        self._state[0] = True
        first = self._get_first_assembler()
        first.add_chunk([delta])
        events = first.take_events()
        return events if self._hold is None else self._hold.pass_on(events, closed=False)

    def _feed_payload(self, payload: Any) -> list[Event]:
        """Read one decoded chunk, or the fault of an invalid one, and return the events of the first choice.

        The deltas of other choices are stored until the end of the stream. A chunk that is neither an object nor a
        fault is ignored.
        """
        deltas: Deltas = []
        if isinstance(payload, Fault):
            deltas = [(0, payload)]
        elif fields := obj(payload):
            if self._api == "auto":
                self._api = detect_dialect(fields) or "auto"
            deltas = _chunk_deltas(fields, self._api, self._state)
            self._opaque_fields.add(self._api, fields)
            self._usage |= usage_of(fields)
        if not deltas:
            return []
        by_choice, has_loss = _group_by_choice(deltas)
        self._is_lost = self._is_lost or has_loss
        first = self._get_first_assembler()
        first.add_chunk(by_choice.pop(0, []))
        for number, of_choice in by_choice.items():
            self._others.setdefault(number, []).append(of_choice)
        return first.take_events()

    def _get_first_assembler(self) -> Assembler:
        """Return the assembler of the first choice. It is made at the first call, when the API is known from the first
        chunk."""
        if self._first is None:
            self._first = Assembler(self._api, self._options, self._ids)
        return self._first
