"""Which tools must or may be called, in every spelling of every dialect, as one word and the tools that are left.

"required"   {"type": "any"}   {"type": "function", "function": {"name": "f"}}   {"type": "allowed_tools", ...}
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from rightcall.providers.gemini import field
from rightcall.providers.sdk_view import items, obj, text
from rightcall.serve.known_tools import known_tool
from rightcall.serve.request_readers.declared_tools import DeclaredTools

_WORDS = {"auto": "auto", "any": "required", "required": "required", "none": "none", "validated": "auto"}


class AskedChoice(NamedTuple):
    """What was asked for: a word, or one tool by the client's name for it; `only` are the tools that may be called."""

    word: str = "auto"
    name: str = ""
    namespace: str = ""
    only: tuple[tuple[str, str], ...] | None = None


def read_choice(value: Any) -> AskedChoice:
    """`tool_choice` as OpenAI's APIs and Anthropic's have it."""
    found = obj(value)
    if found is None:
        return _word(text(value))
    kind = text(found.get("type"))
    if kind == "allowed_tools":
        inner = obj(found.get("allowed_tools")) or found
        only = [meant for each in items(inner.get("tools")) if (meant := _named(obj(each) or {}))[1]]
        return AskedChoice(_WORDS.get(text(inner.get("mode")), "auto"), only=tuple(only))
    namespace, name = _named(found)
    return AskedChoice(name=name, namespace=namespace) if name and kind not in _WORDS else _word(kind)


def _word(said: str) -> AskedChoice:
    return AskedChoice(_WORDS[said.lower()]) if said.lower() in _WORDS else AskedChoice(name=said)


def _named(found: dict[str, Any]) -> tuple[str, str]:
    """Namespace and name of the tool that is meant: by its name, or by a type that needs none."""
    inner = obj(found.get("function")) or obj(found.get("custom")) or found
    kind = text(found.get("type"))
    known = known_tool(kind)
    usual = known.name if known is not None else "" if kind in ("function", "custom", "tool") else kind
    return text(found.get("namespace")), text(inner.get("name")) or usual


def read_gemini_choice(body: dict[str, Any]) -> AskedChoice:
    config = obj(field(obj(field(body, "toolConfig")) or {}, "functionCallingConfig")) or {}
    word = _WORDS.get(text(config.get("mode")).lower(), "auto")
    names = [("", name) for each in items(field(config, "allowedFunctionNames")) if (name := text(each))]
    if not names or word == "none":
        return AskedChoice(word)
    return (
        AskedChoice(name=names[0][1])
        if word == "required" and len(names) == 1
        else AskedChoice(word, only=tuple(names))
    )


def chosen(asked: AskedChoice, tools: DeclaredTools) -> tuple[str, DeclaredTools]:
    """The choice in our word, or the name that a model knows the tool as; and the tools that may be called."""
    if asked.only is not None:
        tools = _only(asked.only, tools)
    if not asked.name:
        return asked.word, tools
    name = tools.names.get((asked.namespace, asked.name)) or _anywhere(asked.name, tools)
    if name is not None:
        return name, tools
    line = f"tool_choice names {asked.name[:60]!r}, which is no tool of this request that can be offered; it is ignored"
    return "auto", msgspec.structs.replace(tools, warnings=(*tools.warnings, line))


def _anywhere(name: str, tools: DeclaredTools) -> str | None:
    """The one tool of this name in any namespace."""
    found = [each.tool.name for each in tools.tools if each.name == name or each.tool.name == name]
    return found[0] if len(found) == 1 else None


def _only(names: tuple[tuple[str, str], ...], tools: DeclaredTools) -> DeclaredTools:
    allowed = {tools.names.get(each) or _anywhere(each[1], tools) for each in names[:1000]}
    left = tuple([each for each in tools.tools if each.tool.name in allowed])
    return msgspec.structs.replace(tools, tools=left, toolset=tools.toolset.scoped([each.tool.name for each in left]))
