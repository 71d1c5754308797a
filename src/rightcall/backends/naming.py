"""Names that a server takes, on the way out, and the tools' own names on the way back.

Where a server takes all the names as they are, nothing is touched.
"""

from __future__ import annotations

import msgspec

from rightcall.api_names import Api
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


class Naming:
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
