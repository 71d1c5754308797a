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

PROVIDERS: dict[Api, Provider] = {
    "chat": "chat",
    "responses": "responses",
    "messages": "messages",
    "ollama": "ollama",
    "completions": "chat",
    "gemini": "gemini",
}


class ToolNames:
    """`tools` have the server's names; what the server says of them is given back under their own."""

    def __init__(self, tools: Toolset | None, api: Api) -> None:
        forth = tools.wire_names(PROVIDERS[api]) if tools is not None else {}
        self._forth = {name: wire for name, wire in forth.items() if name != wire}
        self._back = {wire: name for name, wire in self._forth.items()}
        self.tools = tools
        if tools is not None and self._forth:
            self.tools = Toolset([msgspec.structs.replace(tool, name=self.out(tool.name)) for tool in tools])

    @property
    def renames(self) -> bool:
        """Has the server a name of its own for any of them?"""
        return bool(self._forth)

    def out(self, name: str) -> str:
        return self._forth.get(name, name)

    def event(self, event: Event) -> Event:
        if isinstance(event, CallStart) and event.name in self._back:
            return CallStart(event.index, event.id, self._back[event.name])
        return CallEnd(event.index, self._call(event.call)) if isinstance(event, CallEnd) else event

    def reply(self, reply: Reply) -> Reply:
        if not self._back:
            return reply
        parts = tuple([self._call(part) if isinstance(part, Call) else part for part in reply.parts])
        return msgspec.structs.replace(reply, parts=parts)

    def _call(self, call: Call) -> Call:
        own = self._back.get(call.name)
        return call if own is None else msgspec.structs.replace(call, name=own)

    def message(self, message: Json) -> Json:
        """A message of a history, in the shape of Chat, with the server's names."""
        if not self._forth:
            return message
        message = {**message, "name": self.out(message["name"])} if message.get("name") in self._forth else message
        calls = message.get("tool_calls")
        return {**message, "tool_calls": [self._entry(each) for each in calls]} if isinstance(calls, list) else message

    def _entry(self, entry: object) -> object:
        function = entry.get("function") if isinstance(entry, dict) else None
        if not isinstance(entry, dict) or not isinstance(function, dict) or function.get("name") not in self._forth:
            return entry
        return {**entry, "function": {**function, "name": self.out(function["name"])}}


class ModeChoice(msgspec.Struct, frozen=True):
    """How tools are offered: the `mode`, the `profile` of the server, the `evidence` for it in words, and whether it
    was found out (`is_auto`) and so may be thought over."""

    mode: str
    profile: Profile = UNKNOWN
    evidence: tuple[str, ...] = ()
    is_auto: bool = False


class RequestPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A request made ready: the messages to send, the tools to offer by the server's own means, and how to read."""

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
        """The tools that go into the body."""
        tools, choice = self.naming.tools, self.request.choice
        if self.mode != "native" or not tools:
            return None
        if choice == "none" and "none" not in self.profile.choices:
            return None
        if self.is_narrowed:
            return tools.scoped([self.naming.out(choice)])  # the only one there is
        return tools

    @property
    def allowed(self) -> Toolset | None:
        """The tools that the answer may call, under the names that the server has for them."""
        tools = self.naming.tools or self.request.toolset
        if tools is None or self.request.choice in ("auto", "required"):
            return tools
        return tools.scoped([self.naming.out(self.request.choice)] if self.is_named else ())

    @property
    def is_named(self) -> bool:
        return self.request.choice not in ("auto", "required", "none")

    @property
    def is_narrowed(self) -> bool:
        """Is the named tool the only one that is offered, since the server takes no name?"""
        return self.is_named and "named" not in self.profile.choices

    @property
    def choice(self) -> str:
        """What to say of it to the server; "auto" is not said."""
        choice = self.request.choice
        if not self.is_named:
            return choice if choice in self.profile.choices else "auto"
        if "named" in self.profile.choices:
            return self.naming.out(choice)
        return "required" if "required" in self.profile.choices else "auto"


def without_named_choice(choice: ModeChoice) -> ModeChoice:
    """The same, for a server that does not keep to the tool that is named: it is offered no other."""
    left = tuple([each for each in choice.profile.choices if each != "named"])
    return msgspec.structs.replace(choice, profile=msgspec.structs.replace(choice.profile, choices=left))


def make_plan(request: Request, choice: ModeChoice, api: Api, model: str, *, stream: bool) -> RequestPlan:
    """Raises `Unsupported` where the mode cannot work with this API."""
    tools, mode = request.toolset, choice.mode
    if mode == "native" and api == "completions" and tools and request.choice != "none":
        raise Unsupported("api='completions' has no tools of its own; use mode='text' or 'grammar', or api='chat'")
    format: str | Format = text_format(request.format)
    fields = grammar_fields(request, tools, format, choice.profile, api) if mode == "grammar" and tools else {}
    if api != "completions" and (mode == "native" or "tools" in fields):  # or a grammar of the server's own tools
        naming, messages, format = ToolNames(tools, api), list(request.messages), request.format
    else:
        naming = ToolNames(None, api)  # names stand in the text as they are
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
    """Is there a grammar for this server?"""
    return bool(profile.grammar) and api in profile.grammar_apis


def grammar_fields(request: Request, tools: Toolset, format: str | Format, profile: Profile, api: Api) -> Json:
    """The fields of a body that hold a server to these tools. Which ones they are is the grammar's knowledge."""
    server = profile.grammar
    if not server or not can_constrain(profile, api):
        kind = f"{profile.title} takes" if profile.name else "a server of a kind that is not known takes"
        raise Unsupported(f"mode='grammar': {kind} no grammar with api={api!r}; use mode='native' or 'text'")
    from rightcall.constrain.grammars import grammar

    try:
        made = grammar(tools, format=format, choice=request.choice, parallel=request.parallel)
        fields: Json = made.for_server(server)
    except GrammarCompileError as error:
        raise Unsupported(f"mode='grammar': {error}; use mode='native' or 'text'") from None
    return fields
