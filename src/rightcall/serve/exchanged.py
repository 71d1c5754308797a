"""`Exchanged`: what became of one request, in one value that the log, metrics, traces, headers and captures all read.

    exchanged = Exchanged(id=new_request_id(), route="chat", client_api="chat")
    ...                                         # the pipeline fills it while the request is answered
    response.headers.update(headers_of(exchanged))

Everything in it but `content` is free of what people and models wrote: names, codes, counts and times.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from rightcall.api_names import Api
from rightcall.ids import random_hex
from rightcall.serve.answer_writer import AnswerUsage
from rightcall.types import Json, Reply

Route = Literal[
    "chat", "completions", "responses", "compact", "messages", "count_tokens", "ollama", "gemini",
    "models", "tags", "show", "version", "health", "ready", "metrics", "forward", "refused",
]  # fmt: skip
SERVED_BY: dict[Api, Route] = {
    "chat": "chat",
    "responses": "responses",
    "messages": "messages",
    "ollama": "ollama",
    "gemini": "gemini",
    "completions": "completions",
}
PREFIX = "x-rightcall-"
LONGEST = 400  # characters of one header: proxies refuse heads of a few thousand


class ExchangedContent(msgspec.Struct):
    """What was written on both sides: kept only where a capture, a recording or `--log-content` wants it.

    - `sent`: the body that the upstream was last sent, in its own dialect.
    - `received`: what it answered: an object, the list of the payloads of its stream, or its bytes.
    - `answered`: the same as the client was given it.
    """

    sent: Json | None = None
    received: Any = None
    answered: Reply | None = None


class Exchanged(msgspec.Struct, kw_only=True):
    """One request and what became of it. Filled while it is answered, read when it is over; `headers_of` is asked when
    the head of the answer goes out, with what is known by then.

    - `id`: of the request, in the log, the header `x-rightcall-id` and the trace.
    - `route`: what was asked for. `method`: with which HTTP method.
    - `client_api`, `upstream_api`: the dialects on both sides; empty where none was spoken.
    - `model`: as the client named it. `upstream_model`: as the upstream was asked for it.
    - `upstream`: its name in the settings.
    - `mode`: how tools were offered ("native", "text", "grammar"), or "pass": byte for byte. `why`: in words.
    - `format`: the format that calls in text were read as.
    - `stream`, `tools`: a stream was wanted; how many tools were offered.
    - `status`: of the answer; 0 until there is one. `error`: the code of the refusal or failure, if it is one.
    - `began`: when, in seconds since 1970. `clock`: the same on a clock that only goes forward.
    - `first_byte`, `upstream_first_byte`, `total`: seconds since then; None for what never came.
    - `tokens`: what it cost.
    - `calls`: how many calls went to the client.
    - `repairs`: the rules that were applied, one entry for each time. `rescues`: the formats of calls that a server had
      left in its text. `problems`: codes. `near`: how much text was nearly a call.
    - `retries`: how often the model was asked again. `tries`: requests sent upstream, all together. `failovers`: how
      often another upstream took over.
    - `guard`: what the guard did, each as "policy: action".
    - `gave_up`: retries were spent, and a call went out as written ("pass") or not at all ("error").
    - `finish`: in the words of `Reply.finish`.
    - `warnings`: what was left out of the request, one line each.
    - `client_gone`: the client left before the end.
    - `bytes_in`, `bytes_out`: of the bodies, as the client sent and received them.
    - `content`: what was written; None unless somebody asked for it.
    """

    id: str
    route: Route
    method: str = "POST"
    client_api: Api | Literal[""] = ""
    upstream_api: Api | Literal[""] = ""
    model: str = ""
    upstream_model: str = ""
    upstream: str = ""
    mode: str = ""
    why: tuple[str, ...] = ()
    format: str = ""
    stream: bool = False
    tools: int = 0
    status: int = 0
    error: str = ""
    began: float = msgspec.field(default_factory=time.time)
    clock: float = msgspec.field(default_factory=time.monotonic)
    first_byte: float | None = None
    upstream_first_byte: float | None = None
    total: float | None = None
    tokens: AnswerUsage = AnswerUsage()
    calls: int = 0
    repairs: list[str] = []
    rescues: list[str] = []
    problems: list[str] = []
    near: int = 0
    retries: int = 0
    tries: int = 0
    failovers: int = 0
    guard: list[str] = []
    gave_up: Literal["", "pass", "error"] = ""
    finish: str = ""
    warnings: list[str] = []
    client_gone: bool = False
    bytes_in: int = 0
    bytes_out: int = 0
    content: ExchangedContent | None = None

    def seconds(self) -> float:
        """How long ago the request came."""
        return time.monotonic() - self.clock

    def note_first_byte(self) -> None:
        """The first byte goes to the client now; later ones are not the first."""
        if self.first_byte is None:
            self.first_byte = self.seconds()

    def note_upstream_first_byte(self) -> None:
        """The first byte of the answer that counts came from the upstream now."""
        self.upstream_first_byte = self.seconds()


def new_request_id() -> str:
    """An id that no other request has."""
    return "req_" + random_hex()


def headers_of(exchanged: Exchanged) -> dict[str, str]:
    """The headers `x-rightcall-*` that say what was done, as far as it is known now: in printable ASCII, bounded, and
    without anything that people or models wrote."""
    said = {
        "id": exchanged.id,
        "upstream": exchanged.upstream,
        "mode": exchanged.mode,
        "format": exchanged.format,
        "repairs": _counted(exchanged.repairs),
        "rescues": _counted(exchanged.rescues),
        "problems": _counted(exchanged.problems),
        "retries": str(exchanged.retries) if exchanged.retries else "",
        "guard": _joined(exchanged.guard),
        "gave-up": exchanged.gave_up,
        "warnings": _joined(exchanged.warnings),
    }
    return {PREFIX + name: header_text(value) for name, value in said.items() if value.strip()}


def header_text(text: str) -> str:
    """The text as a header may hold it: printable ASCII, at most `LONGEST` characters of it."""
    short = text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
    if short.isascii() and short.isprintable():
        return short.strip()
    return "".join([char if " " <= char <= "~" else "?" for char in short]).strip()


def _counted(words: list[str]) -> str:
    """Each word once, in order, with how often it came."""
    if not words:
        return ""
    return ", ".join([word if many == 1 else f"{word};n={many}" for word, many in Counter(words).items()])


def _joined(lines: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(lines))
