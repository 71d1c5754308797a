"""What a client asks for, whatever dialect it speaks: the value between `request_readers/` and everything behind it.

    request = read_request("messages", body)
    request.messages         in the shape of OpenAI's Chat, as `backends.Request` takes them

What can be said to a server of the client's own dialect is in `body`, untouched; the other fields are what all
dialects share.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rightcall.api_names import Api
from rightcall.providers.gemini import field
from rightcall.providers.sdk_view import obj
from rightcall.tools.toolset import Toolset
from rightcall.types import Json, Tool

ToolKind = Literal["function", "custom", "namespace", "other"]


class ClientTool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as the client declared it, and as a model is offered it.

    - `tool`: what the model is offered; its `name` is unique in the request. A custom tool takes one string, `input`.
    - `kind`: what a call of it must be when it goes back: "function", "custom" (free text), "namespace" (a function
      whose call names its namespace), or "other": a call with the item type `call_type`.
    - `name`, `namespace`: how the client calls it.
    - `call_type`: of kind "other", the type of the item that a call of it is.
    - `entry`: the declaration as it came.
    """

    tool: Tool
    kind: ToolKind = "function"
    name: str = ""
    namespace: str = ""
    call_type: str = ""
    entry: Json = {}


class ClientRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request.

    - `api`: the client's dialect.
    - `model`: as the client names it.
    - `messages`: the conversation in the shape of Chat, with what is opaque under `OPAQUE`, as `backends.Request` takes
      them.
    - `origins`: for each of the messages, the entry of the body's own list that it came from; -1 for what stands
      elsewhere in the body (instructions, a system field).
    - `tools`: what may be called; None where the request has no tools at all, and empty where it has only such as
      their provider runs.
    - `toolset`: the same tools, ready to check calls with; shared by all requests that declare the same.
    - `choice`: "auto", "required", "none" or the offered name of the one tool to call.
    - `parallel`: several calls at once are welcome.
    - `stream`: the answer is wanted as it comes. `wants_usage`: and what it cost, at its end.
    - `open_tools`: tools may be called that are not declared here (a client that defers some of its tools); which,
      `DeferredTools` says.
    - `max_tokens`, `temperature`, `seed`, `stop`: as `backends.Request`.
    - `sampling`: what else is known in several dialects, under Chat's names (`top_p`, `top_k`,
      `presence_penalty`, `response_format`, `reasoning_effort` ...).
    - `body`: the request as it came.
    - `warnings`: what was left out, one line each, for the header `x-rightcall-warnings`.
    - `previous`: the id of the response that this one goes on from, if its messages must be put before these.
    """

    api: Api
    model: str
    messages: list[Json]
    origins: tuple[int, ...] = ()
    tools: tuple[ClientTool, ...] | None = None
    toolset: Toolset | None = None
    choice: str = "auto"
    parallel: bool = True
    stream: bool = False
    wants_usage: bool = False
    open_tools: bool = False
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    sampling: Json = {}
    body: Json = {}
    warnings: tuple[str, ...] = ()
    previous: str = ""

    @property
    def choices(self) -> int:
        """How many answers are wanted."""
        if self.api == "gemini":
            found = field(obj(field(self.body, "generationConfig")) or {}, "candidateCount")
        else:
            found = self.body.get("n") if self.api == "chat" else None
        return found if type(found) is int else 1

    def tool(self, name: str) -> ClientTool | None:
        """The tool that a model knows under this name."""
        return next((each for each in self.tools or () if each.tool.name == name), None)


class RefusedRequest(Exception):
    """A request that cannot be answered: `status`, a `code` for programs, what is wrong and what to do for people, and
    fields that the client's dialect puts beside the message (`details`)."""

    def __init__(self, message: str, *, status: int = 400, code: str = "invalid_request", details: Any = None) -> None:
        super().__init__(message)
        self.status, self.code, self.details = status, code, details
