"""What is asked of a model, and what comes back: two values, the same for every server.

    Request(messages=[{"role": "user", "content": "Weather in Oslo?"}], tools=[get_weather], choice="required")

Messages have the shape of OpenAI's Chat, whatever the server speaks. An answer is a reply that knows how it came about.
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
from rightcall.tools.toolset import Tools, Toolset
from rightcall.types import Json, Reply

Mode = Literal["native", "text", "grammar", "auto"]
MODES: tuple[Mode, ...] = ("native", "text", "grammar", "auto")


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a model, the same for every server. What is None or empty is left to the backend, or to the
    server.

    - `messages`: the conversation, in the shape of OpenAI's Chat whatever the server speaks.
    - `tools`: what may be called, as `parse` takes it; None for a request without tools.
    - `choice`: "auto", "required", "none" or the name of the one tool to call.
    - `parallel`: the answer may hold several calls; else the server is told so as far as it can be, and a `Guard` holds
      it to that.
    - `model`: instead of the backend's.
    - `mode`: how tools are offered, instead of the backend's `mode`.
    - `format`: what to read calls in text as; "auto" finds out.
    - `reasoning`, `repair`, `limits`: how the answer is read, as in `parse`.
    - `temperature`, `max_tokens`, `seed`, `stop`: as servers take them; `stop` is a tuple of strings.
    - `sampling`: how else the answer is to be written, under the names of OpenAI's Chat (`top_p`, `response_format`,
      `reasoning_effort` ...); what the server's API has no field for is left out.
    - `extra`: fields that go into the body as they are, and win over what would stand there.
    - `ids`: the ids of the conversation, so that none comes twice.
    - `live`: string arguments go out while they arrive, as in `Parser`.

    Raises `CallerError` for messages, a mode or a choice that cannot be.
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
        msgspec.structs.force_setattr(self, "tools", toolset)  # an iterator can be asked only once
        named = self.choice not in ("auto", "required", "none")
        if named and (toolset is None or self.choice not in toolset):
            have = ", ".join(toolset.names) if toolset else "none"
            raise CallerError(
                f"choice={self.choice!r} is neither auto, required, none nor a tool of this request ({have})"
            )

    @property
    def toolset(self) -> Toolset | None:
        """`tools`, as the toolset that they become when the request is made."""
        return Toolset.of(self.tools)

    @property
    def is_forced(self) -> bool:
        """Must the answer hold a call?"""
        return self.choice not in ("auto", "none") and bool(self.toolset)


def _are_messages(value: object) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return False
    kinds = (dict, Mapping)  # most are plain, and an abstract class is slow to ask
    return all(isinstance(each, kinds) and isinstance(each.get("role"), str) for each in value)


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the server counted them; None where it did not say. `prompt` and `completion` are what was sent and
    what was written; `cached` are those of the prompt that it had at hand, `reasoning` those of the answer that were
    thought."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    reasoning: int | None = None


class Timing(msgspec.Struct, frozen=True):
    """Seconds since the request was made: to the `first_byte` of the answer that counted, and to its end (`total`)."""

    first_byte: float = 0.0
    total: float = 0.0


class Try(msgspec.Struct, frozen=True):
    """One try: the HTTP `status`, or 0 and the `error`; then how many seconds were `waited` before the next."""

    status: int
    error: str = ""
    waited: float = 0.0


class Answer(Reply, frozen=True):
    """A `Reply`, and how it came about. Of `parts`, `problems`, `format`, `done`, `spans`, `finish`, `usage`, `api` and
    `extras` see there. And:

    - `tokens`: those of `usage`, under the same names for every server.
    - `model`: the one that answered, as the server calls it.
    - `mode`: how tools were offered: "native", "text" or "grammar".
    - `evidence`: why in that way, in words.
    - `raw`: the server's answer: an object, or a list of what was streamed.
    - `tries`: those that were made, the last one included.
    - `timing`: how long it took.
    """

    tokens: Usage = Usage()
    model: str = ""
    mode: str = "native"
    evidence: tuple[str, ...] = ()
    raw: Any = None
    tries: tuple[Try, ...] = ()
    timing: Timing = Timing()

    def message(self, api: str = "chat") -> Any:
        """The assistant's turn for the `messages` of the next request, with what this provider wants back; with another
        `api` than "chat", as `Reply.message` gives it."""
        if api_name(api) != "chat":
            return super().message(api)
        chat = self.api in ("chat", "completions", "")
        message = openai_chat.assistant_message(self, extras=self.extras if chat else None, reasoning_key=None)
        for name in openai_chat.REASONING:
            message.pop(name, None)
        if self.reasoning:
            message["reasoning_content"] = self.reasoning
        return {**message, OPAQUE: {self.api: self.extras}} if self.extras and not chat else message


def to_answer(reply: Reply, **fields: Any) -> Answer:
    """The answer that this reply is."""
    own = {name: getattr(reply, name) for name in Reply.__struct_fields__}
    return Answer(**own | fields)
