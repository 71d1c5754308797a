"""Plan one request to one server: how tools are offered, under which names, and as which messages.

`make_plan` turns a `Request` and the chosen mode into a `RequestPlan`, which `request_body` writes.
"""

from __future__ import annotations

import msgspec

from rightcall.api_names import Api
from rightcall.backends.plain_prompt import text_format, write_as_text
from rightcall.backends.profiles import UNKNOWN, Profile
from rightcall.backends.request import Request
from rightcall.errors import GrammarCompileError, Unsupported
from rightcall.formats.spec import Format
from rightcall.tools.toolset import Provider, Toolset
from rightcall.types import Call, CallEnd, CallStart, Event, Json, Reply

TOOL_DIALECTS: dict[Api, Provider] = {
    "chat": "chat",
    "responses": "responses",
    "messages": "messages",
    "ollama": "ollama",
    "completions": "chat",
    "gemini": "gemini",
}


class ToolNames:
    """Map between the tools' names and the names that a server accepts. `tools` carries the server's names; answers are
    mapped back to the tools' own names. A name that the server accepts as it is stays as it is."""

    def __init__(self, tools: Toolset | None, api: Api) -> None:
        server_names = tools.wire_names(TOOL_DIALECTS[api]) if tools is not None else {}
        self._to_server = {name: wire for name, wire in server_names.items() if name != wire}
        self._to_own = {wire: name for name, wire in self._to_server.items()}
        self.tools = tools
        if tools is not None and self._to_server:
            self.tools = Toolset([msgspec.structs.replace(tool, name=self.server_name(tool.name)) for tool in tools])

    @property
    def has_renames(self) -> bool:
        """Return True if any tool has another name on the server."""
        return bool(self._to_server)

    def server_name(self, name: str) -> str:
        """Return the server's name of the tool `name`; a name without a mapping is returned as it is."""
        return self._to_server.get(name, name)

    def restore_event(self, event: Event) -> Event:
        """Return the event with the server's name of a tool replaced by the tool's own name; events without a name are
        returned unchanged."""
        if isinstance(event, CallStart) and event.name in self._to_own:
            return CallStart(event.index, event.id, self._to_own[event.name])
        return CallEnd(event.index, self._restore_call(event.call)) if isinstance(event, CallEnd) else event

    def restore_reply(self, reply: Reply) -> Reply:
        """Return the reply with the server's names in its calls replaced by the tools' own names."""
        if not self._to_own:
            return reply
        parts = tuple([self._restore_call(part) if isinstance(part, Call) else part for part in reply.parts])
        return msgspec.structs.replace(reply, parts=parts)

    def _restore_call(self, call: Call) -> Call:
        """Return the call with the server's name of the tool replaced by the tool's own name."""
        own = self._to_own.get(call.name)
        return call if own is None else msgspec.structs.replace(call, name=own)

    def rename_message(self, message: Json) -> Json:
        """Return a history message in the shape of Chat, with the tools' own names in its calls and its `name` replaced
        by the server's names."""
        if not self._to_server:
            return message
        message = (
            {**message, "name": self.server_name(message["name"])}
            if message.get("name") in self._to_server
            else message
        )
        calls = message.get("tool_calls")
        return (
            {**message, "tool_calls": [self._rename_entry(each) for each in calls]}
            if isinstance(calls, list)
            else message
        )

    def _rename_entry(self, entry: object) -> object:
        """Return an entry of `tool_calls` with the tool's own name replaced by the server's name; an entry without a
        renamed tool as it is."""
        function = entry.get("function") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(function, dict) or function.get("name") not in self._to_server:
            return entry
        return {**entry, "function": {**function, "name": self.server_name(function["name"])}}


class ModeChoice(msgspec.Struct, frozen=True):
    """How tools are offered to a server: the `mode`, the `profile` of the server, the `evidence` for the choice as
    sentences, and `is_auto`: the mode was detected, so another one may replace it."""

    mode: str
    profile: Profile = UNKNOWN
    evidence: tuple[str, ...] = ()
    is_auto: bool = False


class RequestPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A request prepared for one server: the messages to send, the tools to offer natively, and how to read the answer.
    `fields` are body fields of a grammar."""

    request: Request
    api: Api
    mode: str
    model: str
    stream: bool
    profile: Profile
    naming: ToolNames
    messages: list[Json]
    format: str | Format
    fields: Json = {}  # of a grammar
    evidence: tuple[str, ...] = ()

    @property
    def offered(self) -> Toolset | None:
        """Return the tools that go into the body, under the server's names; None if the mode is not native, there are
        no tools, or calls are forbidden and the server has no choice "none". Only the named tool is offered if the
        server has no named choice."""
        tools, choice = self.naming.tools, self.request.choice
        if self.mode != "native" or not tools:
            return None
        if choice == "none" and "none" not in self.profile.choices:
            return None
        if self.is_narrowed:
            return tools.scoped([self.naming.server_name(choice)])
        return tools

    @property
    def allowed(self) -> Toolset | None:
        """Return the tools that the answer may call, under the server's names: all, only the named one, or none for the
        choice "none". None if the request has no tools."""
        tools = self.naming.tools or self.request.toolset
        if tools is None or self.request.choice in ("auto", "required"):
            return tools
        return tools.scoped([self.naming.server_name(self.request.choice)] if self.is_named else ())

    @property
    def is_named(self) -> bool:
        """True if the request demands a call of one named tool."""
        return self.request.choice not in ("auto", "required", "none")

    @property
    def is_narrowed(self) -> bool:
        """Return True if only the named tool is offered because the server has no named tool choice."""
        return self.is_named and "named" not in self.profile.choices

    @property
    def choice(self) -> str:
        """Return the tool choice to write into the body: "auto", "required", "none" or the server's name of a tool. A
        choice that the server lacks becomes the nearest one it has."""
        choice = self.request.choice
        if not self.is_named:
            return choice if choice in self.profile.choices else "auto"
        if "named" in self.profile.choices:
            return self.naming.server_name(choice)
        return "required" if "required" in self.profile.choices else "auto"


def without_named_choice(choice: ModeChoice) -> ModeChoice:
    """Return the mode choice with a profile that does not support a named tool choice, so that only the named tool is
    offered instead. For a server that ignores a named choice."""
    left = tuple([each for each in choice.profile.choices if each != "named"])
    return msgspec.structs.replace(choice, profile=msgspec.structs.replace(choice.profile, choices=left))


def make_plan(request: Request, choice: ModeChoice, api: Api, model: str, *, stream: bool) -> RequestPlan:
    """Return the plan of a request to one server: tools, names and messages as the mode of `choice` offers them.
    `stream` asks for a streamed answer.

    Raises `Unsupported` if the mode cannot work with this API or server.
    """
    tools, mode = request.toolset, choice.mode
    if mode == "native" and api == "completions" and tools and request.choice != "none":
        raise Unsupported("api='completions' has no tools of its own; use mode='text' or 'grammar', or api='chat'")
    format: str | Format = text_format(request.format)
    fields = grammar_fields(request, tools, format, choice.profile, api) if mode == "grammar" and tools else {}
    if api != "completions" and (mode == "native" or "tools" in fields):  # or the grammar consists of native tools
        naming, messages, format = ToolNames(tools, api), list(request.messages), request.format
    else:
        naming = ToolNames(None, api)  # names appear in the text as they are
        messages = write_as_text(request, text_format(request.format))
    return RequestPlan(
        request=request,
        api=api,
        mode=mode,
        model=model,
        stream=stream,
        profile=choice.profile,
        naming=naming,
        messages=messages,
        format=format,
        fields=fields,
        evidence=choice.evidence,
    )


def can_constrain(profile: Profile, api: Api) -> bool:
    """Return True if a grammar can be sent to this server through this API."""
    return bool(profile.grammar) and api in profile.grammar_apis


def grammar_fields(request: Request, tools: Toolset, format: str | Format, profile: Profile, api: Api) -> Json:
    """Return the body fields that constrain the server to calls of these tools in the `format`, by a grammar.

    Raises `Unsupported` if the server of this profile takes no grammar through this API, or none can be made for it.
    """
    server = profile.grammar
    if not server or not can_constrain(profile, api):
        kind = f"{profile.title} takes" if profile.name else "an unknown server type takes"
        raise Unsupported(f"mode='grammar': {kind} no grammar with api={api!r}; use mode='native' or 'text'")
    from rightcall.constrain.grammars import grammar

    try:
        made = grammar(tools, format=format, choice=request.choice, parallel=request.parallel)
        fields: Json = made.for_server(server)
    except GrammarCompileError as error:
        raise Unsupported(f"mode='grammar': {error}; use mode='native' or 'text'") from None
    return fields
