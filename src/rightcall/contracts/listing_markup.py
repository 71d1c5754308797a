"""Tools listed in tags, as Qwen3-Coder reads them, and in the braces of Gemma."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from rightcall.contracts.escape import Harmless
from rightcall.schema.walk import LISTS, MAPS, ONE
from rightcall.types import Json, Tool

# -- Qwen3-Coder -------------------------------------------------------------------------------------------------------


def qwen3_coder_list(tools: Sequence[Tool], harmless: Harmless) -> str:
    return "\n".join(["<tools>", *[line for tool in tools for line in _function(tool, harmless)], "</tools>"])


def _function(tool: Tool, harmless: Harmless) -> list[str]:
    properties = tool.parameters.get("properties")
    lines = ["<function>", _tag("name", tool.name, harmless)]
    if tool.description.strip():
        lines.append(_tag("description", tool.description.strip(), harmless))
    lines.append("<parameters>")
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        lines += ["<parameter>", _tag("name", name, harmless)]
        lines += _keywords(schema if isinstance(schema, dict) else {}, (), harmless)
        lines.append("</parameter>")
    lines += _keywords(tool.parameters, ("type", "properties"), harmless)
    return [*lines, "</parameters>", "</function>"]


def _keywords(schema: Json, left_out: tuple[str, ...], harmless: Harmless) -> list[str]:
    first = [word for word in ("type", "description") if word in schema]
    words = [*first, *[word for word in schema if word not in first]]
    return [_tag(word, schema[word], harmless) for word in words if word not in left_out and _WORD(word)]


_WORD = re.compile(r"[$\w]+").fullmatch


def _tag(word: str, value: Any, harmless: Harmless) -> str:
    if isinstance(value, str):
        return f"<{word}>{harmless.prose(value)}</{word}>"
    return f"<{word}>{harmless.strings(json.dumps(value, ensure_ascii=False))}</{word}>"


# -- Gemma -------------------------------------------------------------------------------------------------------------

_BARE = re.compile(r"[\w$.-]+").fullmatch


def gemma_list(tools: Sequence[Tool], harmless: Harmless) -> str:
    writer = _Braces('<|"|>', harmless)
    return "".join([f"<|tool>{writer.declaration(tool)}<tool|>" for tool in tools])


def functiongemma_list(tools: Sequence[Tool], harmless: Harmless) -> str:
    writer = _Braces("<escape>", harmless)
    declared = [writer.declaration(tool) for tool in tools]
    return "".join([f"<start_function_declaration>{text}<end_function_declaration>" for text in declared])


class _Braces:
    """Bare keys, strings between quote tokens, types in capitals. There are no escapes, so that all text is prose."""

    def __init__(self, quote: str, harmless: Harmless) -> None:
        self.quote = quote
        self.harmless = harmless

    def declaration(self, tool: Tool) -> str:
        parameters = {"type": "object", **tool.parameters}
        said = f"description:{self.string(tool.description)},parameters:{self.schema(parameters)}"
        return f"declaration:{self.harmless.line(tool.name)}{{{said}}}"

    def string(self, text: str) -> str:
        return f"{self.quote}{self.harmless.prose(text)}{self.quote}"

    def key(self, key: str) -> str:
        return key if _BARE(key) else self.string(key)

    def schema(self, schema: Any) -> str:
        if not isinstance(schema, dict):
            return self.value(schema)
        first = [word for word in ("description",) if word in schema]
        last = [word for word in ("required", "type") if word in schema]
        words = [*first, *[word for word in schema if word not in (*first, *last)], *last]
        return "{" + ",".join([f"{self.key(word)}:{self.keyword(word, schema[word])}" for word in words]) + "}"

    def keyword(self, word: str, value: Any) -> str:
        if word == "type":
            return self.value([name.upper() for name in value] if isinstance(value, list) else str(value).upper())
        if word in LISTS and isinstance(value, list):
            return "[" + ",".join([self.schema(item) for item in value]) + "]"
        if word in MAPS and isinstance(value, dict):
            return "{" + ",".join([f"{self.key(key)}:{self.schema(item)}" for key, item in value.items()]) + "}"
        return self.schema(value) if word in ONE else self.value(value)

    def value(self, value: Any) -> str:
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, list):
            return "[" + ",".join([self.value(item) for item in value]) + "]"
        if isinstance(value, dict):
            return "{" + ",".join([f"{self.key(key)}:{self.value(item)}" for key, item in value.items()]) + "}"
        return json.dumps(value)
