"""Answers of a server: the bytes with their timing, what a strict client reads, and violations of the dialect's rules.

    connection = ServerConnection("http://127.0.0.1:8080", "chat", api_key_env=None, seconds=60)
    raw = await connection.ask({"model": "m", "messages": [...]}, "m", stream=True)
    parse_answer(raw, "chat", stream=True).calls[0].arguments     '{"city": "Oslo"}', exactly as it was sent
    find_rule_violations(raw, "chat", stream=True)               [RuleViolation("bad_index", "event 1: ...")]

Time and bytes are limited, also for a server that never answers, never ends or sends without limit. Nothing is
repaired. Answers may contain secrets; `ServerConnection.scrubber` removes them before anything is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from rightcall.api_names import Api
from rightcall.backends.address import api_address, find_key, own_secrets, request_address, root_url
from rightcall.backends.aiohttp_exchange import Wire
from rightcall.backends.exchange import HttpRequest, Timeouts
from rightcall.backends.http import Backend
from rightcall.errors import BackendError, BodyError, TimedOut, TransportError
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.redaction.scrubber import Scrubber
from rightcall.strict_json import Undecodable
from rightcall.testing.conformance import RULES, conforms
from rightcall.testing.conformance.stream_rules import events_in, read_json
from rightcall.types import Json

MAX_BYTES = 1_000_000
Break = Literal["", "unreachable", "late", "silent", "broke", "endless"]


class RawAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a server sent, and when.

    - `status`, `headers`, `body`: the response.
    - `first_byte`, `seconds`, `silence`: the time to the first byte, in total, and the longest time without data.
    - `pieces`: in how many pieces the body arrived.
    - `broke`: why the response is incomplete: no response (`unreachable`), out of time (`late`), out of time after a
      long silence (`silent`), a closed connection (`broke`), or too many bytes (`endless`); empty if it is complete.
    - `says`: the same as a sentence.
    """

    status: int = 0
    headers: dict[str, str] = {}
    body: bytes = b""
    first_byte: float = 0.0
    silence: float = 0.0
    seconds: float = 0.0
    pieces: int = 0
    broke: Break = ""
    says: str = ""

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300 and not self.broke

    @property
    def is_refused(self) -> bool:
        return self.status >= 400

    @property
    def kind(self) -> str:
        """The content type, without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class ServerConnection:
    """Sends requests to one server in one dialect. `seconds` is the time limit of a request. Raises `CallerError` for
    an invalid address or key."""

    def __init__(self, url: str, api: Api, *, api_key_env: str | None, seconds: float) -> None:
        self.api: Api = api
        self.root, self._address = root_url(url), api_address(url, api)
        self._seconds = seconds
        key = find_key(api, api_key_env, self._address)
        limits = Timeouts(connect=min(10.0, seconds), first_byte=seconds, idle=seconds, total=seconds)
        self._exchange = Wire(key, api, limits)
        self._headers = Backend(url, api=api, exchange=self._exchange).headers
        self.scrubber = Scrubber(own_secrets(key))

    def keep(self) -> None:
        """Keep connections open between requests, until `aclose`."""
        self._exchange.keep()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._exchange.aclose()

    async def ask(self, body: Json, model: str, *, stream: bool) -> RawAnswer:
        """Send a request and return the response, whatever its status. Never raises because of what the server does:
        `RawAnswer.broke` says why a response is missing or incomplete. If the connection fails before a response,
        without a timeout, the request is sent once more: the server may have closed an idle connection."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        url = request_address(self._address, self.api, model, stream=stream)
        fields: dict[str, Any] = {}
        pieces: list[bytes] = []
        last_data = [start]  # when data last arrived
        sent = HttpRequest("POST", url, body, self._headers, start + self._seconds)
        try:
            try:
                await self._receive(sent, fields, pieces, last_data)
            except TransportError as error:
                if fields or isinstance(error, TimedOut):
                    raise
                await self._receive(sent, fields, pieces, last_data)  # the server had closed the idle connection
        except BackendError as error:
            fields |= {"broke": _interruption(error), "says": str(error).removeprefix(f"{url}: ")}
            if isinstance(error, TimedOut) and error.stage != "connect":
                fields |= self._describe_timeout(loop.time() - last_data[0], has_begun="status" in fields)
        return RawAnswer(body=b"".join(pieces), seconds=loop.time() - start, **fields)

    def _describe_timeout(self, silence: float, *, has_begun: bool) -> dict[str, Any]:
        """Return the fields of the `RawAnswer` of a response that ran out of time: `says`, and `broke`, "silent" if no
        data came in the last half of the time, else "late". If nothing had arrived, `broke` is not set here.

        `silence` is the number of seconds without data, `has_begun` whether a status had arrived."""
        if not has_begun:
            return {"says": f"no answer within {self._seconds:g} s; allow more (--timeout)"}
        if silence > self._seconds / 2:
            return {"broke": "silent", "says": f"no data for {silence:.0f} s in the middle of the answer"}
        return {
            "broke": "late",
            "says": f"the answer was not complete within {self._seconds:g} s; allow more (--timeout)",
        }

    async def _receive(
        self, sent: HttpRequest, fields: dict[str, Any], pieces: list[bytes], last_data: list[float]
    ) -> None:
        """Send the request and store the response while it arrives: status and timing in `fields`, the body in
        `pieces`, the time of the last data in `last_data[0]`. Stops after too many bytes, with `broke` in `fields`.
        Raises a `BackendError` for a failed connection or a timeout."""
        size, start, loop = 0, last_data[0], asyncio.get_running_loop()
        async with self._exchange.open(sent) as received:
            fields |= {"status": received.status, "headers": received.headers}
            async for piece in received.chunks:
                now = loop.time()
                fields["silence"] = max(fields.get("silence", 0.0), now - last_data[0])
                last_data[0] = now
                fields.setdefault("first_byte", now - start)
                pieces.append(piece)
                fields["pieces"] = len(pieces)
                size += len(piece)
                if size > MAX_BYTES:
                    fields |= {"broke": "endless", "says": f"more than {MAX_BYTES:,} bytes were sent without an end"}
                    return


def _interruption(error: BackendError) -> Break:
    return "broke" if isinstance(error, BodyError) else "unreachable"


class ClientCall(msgspec.Struct, kw_only=True):
    """A call exactly as the server sent it. Its arguments must be text if `as_text`, else an object. `pieces` are the
    pieces of its arguments: texts to be joined, or other values if the server sent such."""

    id: Any = None
    name: Any = ""
    pieces: list[Any] = []
    as_text: bool = True

    @property
    def arguments(self) -> Any:
        """The arguments as sent: the joined text, or the last piece that is not text; None if there are none."""
        given = [piece for piece in self.pieces if piece is not None]
        odd = [piece for piece in given if not isinstance(piece, str)]
        return odd[-1] if odd else "".join(given) if given else None

    @property
    def value(self) -> Any:
        """The parsed arguments: if the dialect sends them as text, the JSON value in it, None if it has none; else as
        sent."""
        given = self.arguments
        if not self.as_text:
            return given
        value = read_json(given) if isinstance(given, str) else None
        return None if isinstance(value, Undecodable) else value


class StrictClientAnswer(msgspec.Struct, kw_only=True):
    """An answer as a strict client reads it.

    - `texts`, `thoughts`: the pieces of its text and of its reasoning.
    - `calls`: its calls.
    - `finish`: the finish reason, as the server sent it.
    - `prompt_tokens`, `written_tokens`: the counts of the server.
    - `turn`: the entries that a client adds to its history.
    - `error`: an error instead of an answer, or in the middle of it.
    - `is_json`: whether a client can read anything of it.
    """

    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[ClientCall] = []
    finish: str = ""
    prompt_tokens: int | None = None
    written_tokens: int | None = None
    turn: list[Json] = []
    error: str = ""
    is_json: bool = True

    @property
    def text(self) -> str:
        return "".join(self.texts)

    @property
    def reasoning(self) -> str:
        return "".join(self.thoughts)

    @property
    def is_cut(self) -> bool:
        return self.finish in ("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "incomplete")

    def add_usage(self, usage: Any, prompt: str, written: str) -> None:
        """Set the counts of tokens from the object `usage`, whose keys `prompt` and `written` have them. A count that
        is missing or no integer stays as it is."""
        found = obj(usage) or {}
        self.prompt_tokens = _int_or(found.get(prompt), self.prompt_tokens)
        self.written_tokens = _int_or(found.get(written), self.written_tokens)


def _int_or(value: Any, before: int | None) -> int | None:
    return value if type(value) is int else before


def parse_answer(raw: RawAnswer, api: Api, *, stream: bool) -> StrictClientAnswer:
    """Return the answer as a strict client of this dialect parses it. Unreadable parts are left out.

    With `stream`, a body that is one JSON object is still parsed as a whole answer. `is_json` of the answer is False if
    nothing can be parsed; `error` is the first error message in it."""
    whole = _parse_object(raw.body)
    if stream and whole is None:
        payloads = [event.payload for event in events_in(raw.body, api) if event.payload is not None]
        if not payloads:
            return StrictClientAnswer(is_json=False)
        answer = _STREAMED[api](payloads)
        answer.error = next((_error_message(each) for each in payloads if _error_message(each)), answer.error)
        return answer
    if whole is None:
        return StrictClientAnswer(is_json=False)
    answer = _WHOLE[api](whole)
    answer.error = _error_message(whole)
    return answer


def _parse_object(body: bytes) -> Json | None:
    """Return the JSON object in `body`; None if it is not UTF-8, not JSON or no object. A byte order mark is
    ignored."""
    try:
        found = read_json(body.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _error_message(payload: Json) -> str:
    """Return the message of the error that a whole answer or an event has, "no message" for an error without one; "" if
    it has no error."""
    error = payload.get("error") or (payload if payload.get("type") == "error" else None)
    if not error:
        return ""
    return text((obj(error) or {}).get("message")) or (error if isinstance(error, str) else "no message")


# -- Chat --------------------------------------------------------------------------------------------------------------

_REASONING_KEYS = ("reasoning_content", "reasoning")


def _reasoning_text(message: Json) -> str:
    return next((text(message[name]) for name in _REASONING_KEYS if text(message.get(name))), "")


def _read_chat(body: Json) -> StrictClientAnswer:
    """Return the answer in a whole Chat completion: text, reasoning, calls and finish reason of the first choice, and
    the token counts. What is missing or of a wrong type is left empty."""
    choice = next(iter(objects(body.get("choices"))), {})
    message = obj(choice.get("message")) or {}
    answer = StrictClientAnswer(
        texts=[text(message.get("content"))], finish=text(choice.get("finish_reason")), turn=[message]
    )
    answer.thoughts = [_reasoning_text(message)]
    for entry in objects(message.get("tool_calls")):
        function = obj(entry.get("function")) or {}
        answer.calls.append(
            ClientCall(id=entry.get("id"), name=function.get("name"), pieces=[function.get("arguments")])
        )
    answer.add_usage(body.get("usage"), "prompt_tokens", "completion_tokens")
    return answer


def _read_chat_stream(payloads: Sequence[Json]) -> StrictClientAnswer:
    """Return the answer in the chunks of a streamed Chat completion: text, reasoning, calls and finish reason of the
    first choice in each chunk, and the last token counts. What is missing or of a wrong type is left empty."""
    answer = StrictClientAnswer()
    by_index: dict[Any, ClientCall] = {}
    for payload in payloads:
        answer.add_usage(payload.get("usage"), "prompt_tokens", "completion_tokens")
        for choice in objects(payload.get("choices"))[:1]:
            delta = obj(choice.get("delta")) or {}
            answer.texts.append(text(delta.get("content")))
            answer.thoughts.append(_reasoning_text(delta))
            answer.finish = answer.finish or text(choice.get("finish_reason"))
            for entry in objects(delta.get("tool_calls")):
                _add_chat_call_piece(answer, by_index, entry)
    return answer


def _add_chat_call_piece(answer: StrictClientAnswer, by_index: dict[Any, ClientCall], entry: Json) -> None:
    """Add the entry of a streamed call to a call of the answer, found as clients do: by its index, else its id, else
    the last call if the entry has no name. If there is no such call, the entry begins a new one, which is added to
    `by_index` too. The first id and name of a call are kept."""
    function = obj(entry.get("function")) or {}
    key = str(
        entry.get("index", entry.get("id") or ("last" if answer.calls and not function.get("name") else object()))
    )
    if key == "last" and answer.calls:
        call = answer.calls[-1]
    elif key in by_index:
        call = by_index[key]
    else:
        call = by_index[key] = ClientCall(id=entry.get("id"), name=function.get("name"))
        answer.calls.append(call)
    call.id = call.id or entry.get("id")
    call.name = call.name or function.get("name")
    call.pieces.append(function.get("arguments"))


# -- Responses ---------------------------------------------------------------------------------------------------------


def _read_responses(body: Json) -> StrictClientAnswer:
    """Return the answer in a whole response of the Responses API: the items of its output, status and token counts.
    What is missing or of a wrong type is left empty."""
    answer = StrictClientAnswer(turn=objects(body.get("output")), finish=_response_finish(body))
    for item in answer.turn:
        _add_response_item(answer, item)
    answer.add_usage(body.get("usage"), "input_tokens", "output_tokens")
    return answer


def _response_finish(response: Json) -> str:
    return text((obj(response.get("incomplete_details")) or {}).get("reason")) or text(response.get("status"))


def _add_response_item(answer: StrictClientAnswer, item: Json) -> None:
    """Add the call, text or reasoning of an item of a response to the answer; ignore an item of another type."""
    kind = item.get("type")
    if kind == "function_call":
        answer.calls.append(ClientCall(id=item.get("call_id"), name=item.get("name"), pieces=[item.get("arguments")]))
    elif kind == "message":
        answer.texts += [text(part.get("text")) for part in objects(item.get("content"))]
    elif kind == "reasoning":
        parts = [*objects(item.get("summary")), *objects(item.get("content"))]
        answer.thoughts += [text(part.get("text")) for part in parts]


def _read_responses_stream(payloads: Sequence[Json]) -> StrictClientAnswer:
    """Return the answer in the events of a streamed response of the Responses API: the items of
    `response.output_item.done` or, without any, those of the last event, with its status and token counts."""
    answer = StrictClientAnswer()
    for payload in payloads:
        kind, response = text(payload.get("type")), obj(payload.get("response")) or {}
        if kind == "response.output_item.done" and (item := obj(payload.get("item"))):
            answer.turn.append(item)
            _add_response_item(answer, item)
        elif kind in ("response.completed", "response.incomplete", "response.failed", "response.done"):
            answer.finish = _response_finish(response) or kind.removeprefix("response.")
            answer.add_usage(response.get("usage"), "input_tokens", "output_tokens")
            if not answer.turn:
                for item in objects(response.get("output")):
                    _add_response_item(answer, item)
    return answer


# -- Messages ----------------------------------------------------------------------------------------------------------


def _read_messages(body: Json) -> StrictClientAnswer:
    """Return the answer in a whole message of the Messages API: its content blocks, stop reason and token counts. What
    is missing or of a wrong type is left empty."""
    answer = StrictClientAnswer(finish=text(body.get("stop_reason")))
    answer.turn = [{"role": "assistant", "content": body.get("content")}]
    for block in objects(body.get("content")):
        _add_message_block(answer, block)
    answer.add_usage(body.get("usage"), "input_tokens", "output_tokens")
    return answer


def _add_message_block(answer: StrictClientAnswer, block: Json) -> None:
    """Add the call, text or reasoning of a content block (tool_use, text or thinking) to the answer; ignore a block of
    another type."""
    if block.get("type") == "tool_use":
        given = block.get("input")
        answer.calls.append(ClientCall(id=block.get("id"), name=block.get("name"), pieces=[given], as_text=False))
    elif block.get("type") == "text":
        answer.texts.append(text(block.get("text")))
    elif block.get("type") == "thinking":
        answer.thoughts.append(text(block.get("thinking")))


def _read_messages_stream(payloads: Sequence[Json]) -> StrictClientAnswer:
    """Return the answer in the events of a streamed message of the Messages API: text, reasoning, calls, stop reason
    and token counts."""
    answer = StrictClientAnswer()
    calls: dict[Any, ClientCall] = {}
    for payload in payloads:
        delta, index = obj(payload.get("delta")) or {}, payload.get("index")
        match payload.get("type"):
            case "message_start":
                answer.add_usage((obj(payload.get("message")) or {}).get("usage"), "input_tokens", "output_tokens")
            case "content_block_start":
                block = obj(payload.get("content_block")) or {}
                if block.get("type") == "tool_use":
                    calls[index] = ClientCall(id=block.get("id"), name=block.get("name"))
                    answer.calls.append(calls[index])
                else:
                    _add_message_block(answer, block)
            case "content_block_delta":
                answer.texts.append(text(delta.get("text")))
                answer.thoughts.append(text(delta.get("thinking")))
                if index in calls:
                    calls[index].pieces.append(delta.get("partial_json"))
            case "message_delta":
                answer.finish = answer.finish or text(delta.get("stop_reason"))
                answer.add_usage(payload.get("usage"), "input_tokens", "output_tokens")
    return answer


# -- Ollama ------------------------------------------------------------------------------------------------------------


def _read_ollama(body: Json) -> StrictClientAnswer:
    """Return the answer in a whole response of Ollama's chat API: text, reasoning, calls, finish reason and token
    counts. What is missing or of a wrong type is left empty."""
    answer = _read_ollama_stream([body])
    answer.turn = [obj(body.get("message")) or {}]
    return answer


def _read_ollama_stream(payloads: Sequence[Json]) -> StrictClientAnswer:
    """Return the answer in the lines of a streamed response of Ollama's chat API: text, reasoning, calls, finish reason
    and token counts. Each call is in one line."""
    answer = StrictClientAnswer()
    for payload in payloads:
        message = obj(payload.get("message")) or {}
        answer.texts.append(text(message.get("content")))
        answer.thoughts.append(text(message.get("thinking")))
        for entry in objects(message.get("tool_calls")):
            function = obj(entry.get("function")) or {}
            given = function.get("arguments")
            answer.calls.append(
                ClientCall(id=entry.get("id"), name=function.get("name"), pieces=[given], as_text=False)
            )
        if payload.get("done"):
            answer.finish = text(payload.get("done_reason")) or "stop"
        answer.add_usage(payload, "prompt_eval_count", "eval_count")
    return answer


# -- Gemini ------------------------------------------------------------------------------------------------------------


def _read_gemini(body: Json) -> StrictClientAnswer:
    """Return the answer in a whole response of Gemini: the parts and finish reason of its first candidate, and the
    token counts. What is missing or of a wrong type is left empty."""
    answer = _read_gemini_stream([body])
    candidate = next(iter(objects(body.get("candidates"))), {})
    answer.turn = [obj(candidate.get("content")) or {}]
    return answer


def _read_gemini_stream(payloads: Sequence[Json]) -> StrictClientAnswer:
    """Return the answer in the chunks of a streamed response of Gemini: the parts and finish reason of the first
    candidate in each chunk, and the token counts. Each call is in one part."""
    answer = StrictClientAnswer()
    for payload in payloads:
        for candidate in objects(payload.get("candidates"))[:1]:
            for part in objects((obj(candidate.get("content")) or {}).get("parts")):
                _add_gemini_part(answer, part)
            answer.finish = answer.finish or text(candidate.get("finishReason"))
        answer.add_usage(payload.get("usageMetadata"), "promptTokenCount", "candidatesTokenCount")
    return answer


def _add_gemini_part(answer: StrictClientAnswer, part: Json) -> None:
    """Add the text, or the reasoning if it is a thought, and the function call of a part of Gemini's content to the
    answer."""
    (answer.thoughts if part.get("thought") is True else answer.texts).append(text(part.get("text")))
    if call := obj(part.get("functionCall")):
        given = call.get("args")
        answer.calls.append(ClientCall(id=call.get("id"), name=call.get("name"), pieces=[given], as_text=False))


# -- completions -------------------------------------------------------------------------------------------------------


def _read_completions_stream(payloads: Sequence[Json]) -> StrictClientAnswer:
    """Return the answer in the chunks of a plain completion: text and finish reason of the first choice in each chunk,
    and the token counts. It has no calls."""
    answer = StrictClientAnswer()
    for payload in payloads:
        answer.add_usage(payload.get("usage"), "prompt_tokens", "completion_tokens")
        for choice in objects(payload.get("choices"))[:1]:
            answer.texts.append(text(choice.get("text")))
            answer.finish = answer.finish or text(choice.get("finish_reason"))
    return answer


_WHOLE: dict[Api, Callable[[Json], StrictClientAnswer]] = {
    "chat": _read_chat,
    "responses": _read_responses,
    "messages": _read_messages,
    "ollama": _read_ollama,
    "gemini": _read_gemini,
    "completions": lambda body: _read_completions_stream([body]),
}
_STREAMED: dict[Api, Callable[[Sequence[Json]], StrictClientAnswer]] = {
    "chat": _read_chat_stream,
    "responses": _read_responses_stream,
    "messages": _read_messages_stream,
    "ollama": _read_ollama_stream,
    "gemini": _read_gemini_stream,
    "completions": _read_completions_stream,
}


_MAX_VIOLATIONS = 40
# A message of `conforms` is of the class of the first text that it contains; of `bad_translation` if there is none.
_CLASSES = (
    ("`prompt_tokens`", "bad_translation"),
    ("`index` must be a number", "bad_index"),
    ("a call continues after the next", "bad_index"),
    ("the name is repeated", "bad_index"),
    ("the call's `index`", "bad_index"),
    ("two calls have the id", "bad_ids"),
    ("the call's `id`", "bad_ids"),
    ("the call's `call_id`", "bad_ids"),
    ("the `id` of a call changes", "bad_ids"),
    ("the `call_id` of a call changes", "bad_ids"),
    ("the call's name", "bad_index"),
    ("`finish_reason`", "wrong_finish"),
    ("two finishes", "wrong_finish"),
    ("comes after the finish", "wrong_finish"),
    ("text or calls come after", "wrong_finish"),
    ("must end with tool_calls", "wrong_finish"),
    ("it ends with tool_calls", "wrong_finish"),
    ("`stop_reason`", "wrong_finish"),
    ("stop_reason", "wrong_finish"),
    ("`finishReason`", "wrong_finish"),
    ("`done_reason`", "wrong_finish"),
    ("`done` must be true", "wrong_finish"),
    ("ends without", "wrong_finish"),
    ("incomplete though its calls are whole", "wrong_finish"),
    ("`arguments` must be text", "broken_arguments"),
    ("`arguments` must be an object", "broken_arguments"),
    ("`args` must be an object", "broken_arguments"),
    ("`partial_json` must be text", "broken_arguments"),
    ("`arguments` are no JSON object", "broken_arguments"),
    ("input is no JSON object", "broken_arguments"),
)


class RuleViolation(msgspec.Struct, frozen=True):
    """A violation of a rule: its class of failure (`slug`), and the message (`says`)."""

    slug: str
    says: str


def find_rule_violations(raw: RawAnswer, api: Api, *, stream: bool) -> list[RuleViolation]:
    """Return the violations of the dialect's rules by a response, in their order, at most 40; a message that several
    events have counts once. For a dialect without rules, only the content type is checked."""
    found = [*_content_type_violations(raw, api, stream=stream)]
    if api in RULES:
        lines = conforms(raw.body, api, stream=stream)
        once = {line.partition(": ")[2] if line.startswith("event ") else line: line for line in reversed(lines)}
        found += [RuleViolation(_failure_class(line), line) for line in reversed(once.values())]
    return found[:_MAX_VIOLATIONS]


def _failure_class(line: str) -> str:
    return next((slug for words, slug in _CLASSES if words in line), "bad_translation")


def _content_type_violations(raw: RawAnswer, api: Api, *, stream: bool) -> list[RuleViolation]:
    """Return the violation of a streamed answer whose content type is not text/event-stream, as a list. Empty if there
    is none, for Ollama, and for a whole answer, also one in place of a stream."""
    if not stream or api == "ollama" or raw.kind == "text/event-stream" or raw.body.lstrip()[:1] == b"{":
        return []  # `conforms` reports a whole answer instead of a stream
    kind = raw.kind or "nothing"
    return [RuleViolation("bad_translation", f"the stream's content type is {kind:.60}, not text/event-stream")]
