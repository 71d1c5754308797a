"""A conversation while it is read: Chat's messages, and from which entry of the body each of them came.

talk.add({"role": "user", "content": "Hi"}, at=3)
talk.assistant(at=4).call("call_1", "f", '{"x": 1}')
"""

from __future__ import annotations

from collections import deque
from typing import Any

from rightcall.api_names import Api
from rightcall.providers.history_messages import OPAQUE
from rightcall.providers.sdk_view import arguments
from rightcall.serve.client_request import RefusedRequest
from rightcall.serve.request_readers.content_parts import Parts, content_of
from rightcall.types import Json

NOWHERE = -1  # the origin of a message that is no entry of the conversation: instructions, a system field


class AssistantDraft:
    """One turn of an assistant, which may come in pieces."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[Json] = []
        self._extras: dict[str, Json] = {}
        self._after_call = False
        self.parts: Parts = []  # what it said besides text: images, audio

    def text(self, said: str, *, apart: bool = False) -> None:
        """What is said `apart`, or behind a call, is a paragraph of its own."""
        if said:
            self._texts.append(f"\n\n{said}" if self._texts and (apart or self._after_call) else said)
            self._after_call = False

    def thought(self, said: str) -> None:
        if said:
            self._thoughts.append(said)

    def call(self, id: str, name: str, given: Any, extras: Json | None = None) -> None:
        function = {"name": name, "arguments": arguments(given)}
        self._calls.append({"id": id, "type": "function", "function": function})
        self._after_call = True
        if extras:
            self._extras[id] = extras

    def keep(self, key: str, value: Any) -> None:
        """What the provider wants back with the message: lists go on."""
        kept = self._extras.setdefault("", {})
        if isinstance(value, list):
            kept[key] = [*kept.get(key, ()), *value]
        else:
            kept[key] = value

    @property
    def is_empty(self) -> bool:
        return not (self._texts or self._thoughts or self._calls or self._extras or self.parts)

    def message(self) -> Json:
        said = "".join(self._texts)
        content: Any = said
        if self.parts:
            content = content_of([*([{"type": "text", "text": said}] if said else []), *self.parts])
        out: Json = {"role": "assistant", "content": content}
        if self._thoughts:
            out["reasoning_content"] = "\n\n".join(self._thoughts)
        if self._calls:
            out["tool_calls"] = self._calls
        if self._extras:
            out[OPAQUE] = {self._api: self._extras}
        return out


class RequestMessages:
    """`messages` and, one for each, `origins`. `warnings` are what had to be left out."""

    def __init__(self, api: Api) -> None:
        self.api: Api = api
        self.messages: list[Json] = []
        self.origins: list[int] = []
        self._warnings: dict[str, None] = {}
        self._draft: AssistantDraft | None = None
        self._drafted_at = NOWHERE

    def add(self, message: Json, at: int) -> None:
        self.close()
        self.messages.append(message)
        self.origins.append(at)

    def say(self, role: str, parts: Parts, at: int) -> None:
        self.add({"role": role, "content": content_of(parts)}, at)

    def result(
        self, id: str, parts: Parts, at: int, *, name: str = "", is_error: bool = False, extras: Json | None = None
    ) -> None:
        """What a call came to, with what a server of the same dialect wants to know of it."""
        message: Json = {"role": "tool", "tool_call_id": id, "content": content_of(parts)}
        if name:
            message["name"] = name
        if is_error:
            message["is_error"] = True
        if extras:
            message[OPAQUE] = {self.api: {"": extras}}
        self.add(message, at)

    def begin(self, at: int) -> AssistantDraft:
        """A new turn of the assistant."""
        self.close()
        return self.assistant(at)

    def assistant(self, at: int) -> AssistantDraft:
        """The turn of the assistant that goes on here."""
        if self._draft is None:
            self._draft, self._drafted_at = AssistantDraft(self.api), at
        return self._draft

    def close(self) -> None:
        """The turn of the assistant, if there is one, is over."""
        draft, self._draft = self._draft, None
        if draft is not None and not draft.is_empty:
            self.messages.append(draft.message())
            self.origins.append(self._drafted_at)

    def warn(self, line: str) -> None:
        self._warnings[line] = None

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(self._warnings)


class CallIds:
    """Ids for dialects that give calls none: a result finds its call by its id, else by its name, in order. An id that
    no call has is the client's own, which it left out of the call (LiteLLM does so for Ollama)."""

    def __init__(self) -> None:
        self._open: dict[str, str] = {}  # ids of calls without a result, in order, with the name of each
        self._by_name: dict[str, deque[str]] = {}
        self._made: dict[str, deque[str]] = {"": deque()}  # ids that are ours: of every call, and by its name
        self._seen: set[str] = set()
        self._count = 0

    def of_call(self, id: str, name: str) -> str:
        if not id:
            id = self._minted()
            for key in {"", name}:
                self._made.setdefault(key, deque()).append(id)
        self._seen.add(id)
        self._open[id] = name
        self._by_name.setdefault(name, deque()).append(id)
        return id

    def of_result(self, id: str, name: str) -> str:
        if id in self._seen:
            found = id
        elif id:
            found = self._first_open(self._made.get(name)) or id
        else:
            # One that does not say whose it is belongs to the call that has waited longest.
            found = self._first_open(self._by_name.get(name)) or ("" if name else next(iter(self._open), ""))
        self._open.pop(found, None)
        return found

    def _first_open(self, waiting: deque[str] | None) -> str:
        """The first of these calls that has no result yet."""
        while waiting:
            if (id := waiting.popleft()) in self._open:
                return id
        return ""

    def _minted(self) -> str:
        while (id := f"call_{self._count}") in self._seen:
            self._count += 1
        return id


def entries_of(body: Json, key: str, what: str = "messages") -> list[Any]:
    """The list of entries of a conversation. Raises `RefusedRequest`."""
    given = body.get(key)
    if not isinstance(given, list):
        kind = "is missing" if given is None else f"is of the type {type(given).__name__}"
        raise RefusedRequest(f"`{key}` {kind}; send a list of {what}")
    return given


def entry(value: Any, key: str, at: int) -> Json:
    """One of them. Raises `RefusedRequest` for what is no object."""
    if isinstance(value, dict):
        return value
    kind = type(value).__name__
    raise RefusedRequest(f'`{key}[{at}]` is of the type {kind}; send an object with a "role" and "content"')
