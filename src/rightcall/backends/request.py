"""`Request` and `Answer`: the same two values for every server.

    Request(messages=[{"role": "user", "content": "Weather in Oslo?"}], tools=[get_weather], choice="required")

Messages have the shape of OpenAI's Chat, whatever API the server has. An answer is a reply with its circumstances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from rightcall.api_names import api_name
from rightcall.errors import CallerError
from rightcall.formats.spec import Format
from rightcall.ids import Ids
from rightcall.parsing.options import Limits, Policy
from rightcall.providers import openai_chat
from rightcall.providers.history_messages import OPAQUE
from rightcall.providers.openai_chat import CHAT
from rightcall.tools.toolset import Tools, Toolset
from rightcall.types import Json, Reply

Mode = Literal["native", "text", "grammar", "auto"]
MODES: tuple[Mode, ...] = ("native", "text", "grammar", "auto")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a model, the same for every server. A field that is None or empty is left to the backend or the
    server.

    - `messages`: the conversation, in the shape of OpenAI's Chat for every server.
    - `tools`: the callable tools, as `parse` takes them; None for a request without tools.
    - `choice`: "auto", "required", "none" or the name of the one tool to call.
    - `parallel`: the answer may contain several calls. If False, the server is told so if its API allows it, and a
      `Guard` enforces it.
    - `model`: overrides the backend's model.
    - `mode`: overrides the backend's mode of offering tools.
    - `format`: the format of calls in text; "auto" detects it.
    - `reasoning`, `repair`, `limits`: how the answer is read, as in `parse`.
    - `temperature`, `max_tokens`, `seed`, `stop`: as servers take them; `stop` is a tuple of strings.
    - `sampling`: further parameters of the answer under the names of OpenAI's Chat (`top_p`, `response_format`,
      `reasoning_effort` ...); those without a field in the server's API are left out.
    - `extra`: fields that are copied into the body and override all others.
    - `ids`: the call ids of the conversation, so that none is used twice.
    - `live`: stream string arguments while they arrive, as in `Parser`.

    Raises `CallerError` for invalid messages, an unknown mode or an unknown choice.
    """

    messages: Sequence[Json]
    tools: Tools | None = None
    choice: str = "auto"
    parallel: bool = True
    model: str = ""
    mode: Mode | None = None
    format: str | Format = "auto"
    reasoning: Literal["auto", "open", "off"] = "auto"
    repair: Policy | Mapping[str, Policy] = "safe"
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    sampling: Json = {}
    extra: Json = {}
    ids: Ids | None = None
    live: bool = False
    limits: Limits | None = None

    def __post_init__(self) -> None:
        if self.mode is not None and self.mode not in MODES:
            raise CallerError(f"mode={self.mode!r} is not one of {', '.join(MODES)}")
        if isinstance(self.stop, str):
            raise CallerError(f"stop={self.stop!r} is a string; pass a tuple of strings")
        if not _are_messages(self.messages):
            raise CallerError('messages must be a list of messages such as {"role": "user", "content": "Hi"}')
        toolset = Toolset.of(self.tools)
        msgspec.structs.force_setattr(self, "tools", toolset)  # an iterator can be consumed only once
        named = self.choice not in ("auto", "required", "none")
        if named and (toolset is None or self.choice not in toolset):
            have = ", ".join(toolset.names) if toolset else "none"
            raise CallerError(
                f"choice={self.choice!r} is neither auto, required, none nor a tool of this request ({have})"
            )

    @property
    def toolset(self) -> Toolset | None:
        """The tools as a `Toolset`, converted when the request was created."""
        return Toolset.of(self.tools)

    @property
    def is_forced(self) -> bool:
        """True if the answer must contain a call."""
        return self.choice not in ("auto", "none") and bool(self.toolset)


def _are_messages(value: object) -> bool:
    """Return True for a sequence of objects of which each has a `role` that is a string."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    kinds = (dict, Mapping)  # most are dict, and isinstance with an abstract class is slow
    return all(isinstance(each, kinds) and isinstance(each.get("role"), str) for each in value)


class Usage(msgspec.Struct, frozen=True):
    """Token counts as reported by the server; None where it reported none. `prompt` and `completion` are input and
    output; `cached` is the cached part of the prompt, `reasoning` the reasoning part of the completion."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    reasoning: int | None = None


class Timing(msgspec.Struct, frozen=True):
    """Seconds since the request was made: to the `first_byte` of the successful answer, and to its end (`total`)."""

    first_byte: float = 0.0
    total: float = 0.0


class Try(msgspec.Struct, frozen=True):
    """One try: the HTTP `status`, or 0 and the `error`; then the seconds `waited` before the next try."""

    status: int
    error: str = ""
    waited: float = 0.0


class Answer(Reply, frozen=True):
    """A `Reply` with its circumstances. `parts`, `problems`, `format`, `done`, `spans`, `finish`, `usage`, `api` and
    `extras` are those of `Reply`. And:

    - `tokens`: the counts in `usage`, under the same names for every server.
    - `model`: the model that answered, as the server names it.
    - `mode`: how tools were offered: "native", "text" or "grammar".
    - `evidence`: why this mode was used, as sentences.
    - `raw`: the server's answer: an object, or the list of streamed payloads.
    - `tries`: all tries, including the last one.
    - `timing`: how long the answer took.
    """

    tokens: Usage = Usage()
    model: str = ""
    mode: str = "native"
    evidence: tuple[str, ...] = ()
    raw: Any = None
    tries: tuple[Try, ...] = ()
    timing: Timing = Timing()

    def message(self, api: str = "chat") -> Any:
        """Return the assistant message for the `messages` of the next request, with the fields that this provider needs
        back. For another `api` than "chat", see `Reply.message`."""
        if api_name(api) != "chat":
            return super().message(api)
        chat = self.api in ("chat", "completions", "")
        message = CHAT.assistant_message(self, extras=self.extras if chat else None, reasoning_key=None)
        for name in openai_chat.REASONING:
            message.pop(name, None)
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        return {**message, OPAQUE: {self.api: self.extras}} if self.extras and not chat else message


def to_answer(reply: Reply, **fields: Any) -> Answer:
    """Return a reply as an `Answer` with the additional `fields`, which also replace fields of the reply."""
    own = {name: getattr(reply, name) for name in Reply.__struct_fields__}
    return Answer(**own | fields)
