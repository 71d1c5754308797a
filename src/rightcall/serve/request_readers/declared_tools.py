"""The tools of a request, of every kind that clients declare, as what a model can be offered: functions.

    {"type": "custom", "name": "apply_patch", "format": {...}}   ->   a function apply_patch(input), of kind "custom"
    {"type": "namespace", "name": "agents", "tools": [...]}      ->   functions agents__close ..., of kind "namespace"

What no function can stand for (a search that a provider runs) is left out with a warning. A schema that cannot be used
does not cost the client its tool: the tool is offered without it. The same list read again costs a look-up.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from rightcall.providers.gemini import field
from rightcall.providers.sdk_view import items, obj, objects, text
from rightcall.schema.limits import Refused
from rightcall.serve.client_request import ClientTool, ToolKind
from rightcall.serve.known_tools import TOOL_SEARCH, KnownTool, known_tool, screen_size
from rightcall.tools.provider_forms import definition_tool
from rightcall.tools.toolset import Toolset
from rightcall.types import Json, Tool

_LONGEST_NAME = 200
_KEPT = 1_000_000  # bytes of declarations that are worth keeping
_PLACEHOLDER = "DeferredToolPlaceholder"  # Claude Code's: never to be called
_SEARCHES = frozenset(("ToolSearch", "tool_search", _PLACEHOLDER))
_DECLARED = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")


class DeclaredTools(msgspec.Struct, frozen=True):
    """What may be called, what was left out, and whether tools may be called that are not among these."""

    tools: tuple[ClientTool, ...] = ()
    toolset: Toolset = Toolset()
    warnings: tuple[str, ...] = ()
    open_tools: bool = False
    names: dict[tuple[str, str], str] = {}  # of a namespace and a name, what a model knows it as

    def offered(self, name: str, namespace: str = "") -> str:
        """What a model knows the client's tool as, were it declared or not."""
        return self.names.get((namespace, name)) or (f"{namespace}__{name}" if namespace else name)


NO_TOOLS = DeclaredTools()


def declared(entries: list[Any]) -> DeclaredTools:
    """The tools of these declarations."""
    if not entries:
        return NO_TOOLS
    try:
        said = msgspec.json.encode(entries)
    except (UnicodeEncodeError, RecursionError, OverflowError, TypeError, ValueError):
        return _declared(entries)  # data that no body of a request can be written with either
    return _kept(said) if len(said) <= _KEPT else _declared(entries)


@lru_cache(maxsize=64)
def _kept(said: bytes) -> DeclaredTools:
    return _declared(msgspec.json.decode(said))


def _declared(entries: list[Any]) -> DeclaredTools:
    found = _Declaring()
    for at, each in enumerate(entries):
        entry = obj(each)
        if entry is None:
            found.warn(f"tools[{at}] is left out: it is no object")
        else:
            found.read(entry, at)
    return found.result()


class _Declaring:
    """A list of tools while it is read."""

    def __init__(self) -> None:
        self.tools: dict[str, ClientTool] = {}
        self.names: dict[tuple[str, str], str] = {}
        self.spelled: dict[str, int] = {}
        self.warnings: dict[str, None] = {}
        self.open_tools = False

    def warn(self, line: str) -> None:
        self.warnings[line] = None

    def result(self) -> DeclaredTools:
        toolset = Toolset.lenient([each.tool for each in self.tools.values()])
        for refusal in toolset.refused:  # each may be used, but not all of them together
            self.warn(f"the tool {refusal.tool!r} is offered without its schema: {_one_line(refusal.message)}")
            bare = msgspec.structs.replace(self.tools[refusal.tool].tool, parameters={})
            self.tools[refusal.tool] = msgspec.structs.replace(self.tools[refusal.tool], tool=bare)
        if toolset.refused:
            toolset = Toolset([each.tool for each in self.tools.values()])
        tools = tuple(self.tools.values())
        return DeclaredTools(tools, toolset, tuple(self.warnings), self.open_tools, self.names)

    def read(self, entry: Json, at: int, namespace: str = "") -> None:
        kind = text(entry.get("type"))
        name = text((obj(entry.get("function")) or entry).get("name"))
        if entry.get("defer_loading") is True or name in _SEARCHES:
            self.open_tools = True
        if field(entry, "functionDeclarations") is not None:
            self._gemini(entry, at)
        elif kind == "namespace":
            for inner in objects(entry.get("tools")):
                self.read(inner, at, text(entry.get("name")))
        elif kind == "custom" and not _schema_key(entry):
            self._custom(entry, namespace)
        elif kind in ("", "function"):
            self._function(entry, at, namespace)
        elif kind == "tool_search" and entry.get("execution") == "client":
            self.open_tools = True
            self._known(entry, TOOL_SEARCH)
        elif (known := known_tool(kind)) is not None:
            self._known(entry, known)
        elif text(entry.get("name")) and _schema_key(entry):
            self._function(entry, at, namespace)
        else:
            self._leave_out(kind)

    def _leave_out(self, kind: str) -> None:
        self.warn(f"the tool {kind[:60]!r} is left out: only its provider can run it")

    def _gemini(self, entry: Json, at: int) -> None:
        for function in objects(field(entry, "functionDeclarations")):
            self._function(function, at, "")
        for other in entry:
            if other not in ("functionDeclarations", "function_declarations"):
                self._leave_out(other)

    def _function(self, entry: Json, at: int, namespace: str) -> None:
        inner = obj(entry.get("function")) or entry
        name = text(inner.get("name"))
        if name == _PLACEHOLDER:
            return
        if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
            self.warn(f"tools[{at}] is left out: {name[:40]!r} is no name for a tool")
            return
        try:
            tool = definition_tool(entry).tool
        except Refused as refused:
            self.warn(f"the tool {name!r} is offered without its schema: {_one_line(str(refused))}")
            tool = Tool(name=name, description=text(inner.get("description")))
        self._add(tool, "namespace" if namespace else "function", name, namespace, entry=entry)

    def _custom(self, entry: Json, namespace: str) -> None:
        inner = obj(entry.get("custom")) or entry
        name = text(inner.get("name"))
        if not name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
            self.warn(f"a custom tool is left out: {name[:40]!r} is no name for a tool")
            return
        told = "\n\n".join([said for said in (text(inner.get("description")), _grammar(inner.get("format"))) if said])
        whole = {"type": "string", "description": "The whole input, as free text"}
        schema = {"type": "object", "properties": {"input": whole}, "required": ["input"]}
        self._add(Tool(name=name, description=told, parameters=schema), "custom", name, namespace, entry=entry)

    def _known(self, entry: Json, known: KnownTool) -> None:
        name = text(entry.get("name")) or known.name
        told = (text(entry.get("description")) or known.description) + screen_size(entry)
        schema = obj(entry.get("parameters")) or known.parameters
        try:
            tool = definition_tool({"name": name, "description": told, "input_schema": schema}).tool
        except Refused as refused:
            self.warn(f"the tool {name[:60]!r} is offered without its schema: {_one_line(str(refused))}")
            tool = Tool(name=known.name, description=known.description)
        kind: ToolKind = "other" if known.call_type else "function"
        self._add(tool, kind, tool.name, call_type=known.call_type, entry=entry)

    def _add(
        self, tool: Tool, kind: ToolKind, name: str, namespace: str = "", *, call_type: str = "", entry: Json
    ) -> None:
        if (namespace, name) in self.names:
            if self.tools[self.names[namespace, name]].entry != entry:
                self.warn(f"the tool {name[:60]!r} is declared twice; the first one counts")
            return
        unique = self._unique(f"{namespace}__{name}"[:_LONGEST_NAME] if namespace else name)
        tool = msgspec.structs.replace(tool, name=unique)
        self.names[namespace, name] = unique
        self.tools[unique] = ClientTool(
            tool=tool, kind=kind, name=name, namespace=namespace, call_type=call_type, entry=entry
        )

    def _unique(self, name: str) -> str:
        wanted = name
        while wanted in self.tools:
            self.spelled[name] = self.spelled.get(name, 1) + 1
            wanted = f"{name}_{self.spelled[name]}"
        return wanted


def _schema_key(entry: Json) -> str:
    return next((key for key in _DECLARED if isinstance(entry.get(key), dict)), "")


def _grammar(format: Any) -> str:
    """What the text of a custom tool must look like, in words."""
    found = obj(format) or {}
    inner = obj(found.get("grammar")) or found
    syntax, definition = text(inner.get("syntax")), text(inner.get("definition"))
    if not definition:
        return ""
    kind = "regular expression" if syntax == "regex" else f"{syntax} grammar".strip()
    return f"The input must match this {kind}:\n{definition}"


def _one_line(said: str) -> str:
    return " ".join(said.split())[:200]


def entries(body: Json, *keys: str) -> list[Any] | None:
    """The declarations under the first of these keys that has any; None for none at all."""
    for key in keys:
        found = items(body.get(key))
        if found:
            return found
    return None
