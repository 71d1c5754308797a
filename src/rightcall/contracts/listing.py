"""How each family of models lists tools in a prompt: what `Format.tools` names.

    hermes        <tools>\\n{"type": "function", "function": {...}}\\n</tools>
    typescript    namespace functions {\\n\\n// Weather\\ntype get_weather = (_: {\\ncity: string,\\n}) => any;

Whoever wrote a tool cannot break out of the list: see `harmless`. A list of JSON holds each tool's schema unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rightcall.contracts.escape import Harmless
from rightcall.contracts.listing_code import python_list, typescript_list, typescript_types
from rightcall.contracts.listing_markup import functiongemma_list, gemma_list, qwen3_coder_list
from rightcall.contracts.typescript import Declarations
from rightcall.errors import BadFormat
from rightcall.formats.spec import Format
from rightcall.types import Json, Tool


class JsonList(msgspec.Struct, frozen=True):
    """Tools as JSON: `open`, each tool between `before` and `after`, `between` two of them, `close`.

    `flat` writes the function alone, without `{"type": "function", "function": ...}` around it.
    """

    open: str = ""
    close: str = ""
    between: str = "\n"
    before: str = ""
    after: str = ""
    flat: bool = False
    indent: int | None = None

    def write(self, tools: Sequence[Tool], harmless: Harmless) -> str:
        items = [self.before + self._json(tool, harmless) + self.after for tool in tools]
        return self.open + self.between.join(items) + self.close

    def _json(self, tool: Tool, harmless: Harmless) -> str:
        value = function(tool) if self.flat else {"type": "function", "function": function(tool)}
        return json_text(value, harmless, self.indent)


class Headed(msgspec.Struct, frozen=True):
    """A heading in words for each tool, then JSON. Holes: {name} {description} {json} {parameters}."""

    each: str
    open: str = ""
    indent: int | None = None

    def write(self, tools: Sequence[Tool], harmless: Harmless) -> str:
        return self.open + "\n\n".join([self._one(tool, harmless) for tool in tools])

    def _one(self, tool: Tool, harmless: Harmless) -> str:
        said = function(tool)
        holes = {
            "name": harmless.line(tool.name),
            "description": harmless.line(tool.description),
            "json": json_text(said, harmless, self.indent),
            "parameters": json_text(said["parameters"], harmless, self.indent),
        }
        return "".join([holes.get(piece, piece) for piece in self.each.replace("}", "{").split("{")])


Code = Callable[[Declarations, Sequence[Tool]], str]
Markup = Callable[[Sequence[Tool], Harmless], str]

JSON_LISTS: dict[str, JsonList] = {
    "json": JsonList("[", "]", ", "),
    "flat": JsonList("[", "]", ", ", flat=True),
    "indented": JsonList("[\n", "\n]", ",\n", indent=4),
    "fenced": JsonList("```json\n[", "]\n```", ","),
    "cohere": JsonList("```json\n[\n    ", "\n]\n```", ",\n    ", flat=True),
    "llama": JsonList("", "", "\n\n", indent=4),
    "hermes": JsonList("<tools>\n", "\n</tools>"),
    "functions": JsonList("<functions>\n", "\n</functions>", flat=True),
    "minimax": JsonList("<tools>\n", "\n</tools>", "\n", "<tool>", "</tool>", flat=True),
    "mistral": JsonList("[AVAILABLE_TOOLS] [", "][/AVAILABLE_TOOLS]", ", "),
    "nemotron": JsonList("<AVAILABLE_TOOLS>[", "]</AVAILABLE_TOOLS>", ", ", flat=True),
    "apriel": JsonList("<available_tools>\n", "\n</available_tools>"),
    "ernie": JsonList("<tool_list>\n[", "]\n</tool_list>", ", "),
    "lfm2": JsonList("List of tools: <|tool_list_start|>[", "]<|tool_list_end|>", ", "),
    "solar": JsonList("<|tools:begin|>\n", "\n<|tools:end|>", "\n", "<|tool:begin|>", "<|tool:end|>", flat=True),
    "library": JsonList("<|function_call_library|>\n", flat=True),
    "muse": JsonList("// Function schemas\n", flat=True),
}
_HEADED: dict[str, Headed] = {
    "deepseek": Headed("### {name}\nDescription: {description}\n\nParameters: {parameters}"),
    "longcat": Headed(
        "#### Tool name: {name}\n\nDescription: {description}\n\nInputSchema: \n{parameters}",
        open="### Tool namespace: function\n\n",
        indent=2,
    ),
    "functionary": Headed("Use the function '{name}' to '{description}'\n{json}"),
}
_CODE: dict[str, Code] = {
    "typescript": typescript_list,
    "typescript_types": typescript_types,
    "pythonic": python_list,
}
_MARKUP: dict[str, Markup] = {
    "qwen3_coder": qwen3_coder_list,
    "gemma": gemma_list,
    "functiongemma": functiongemma_list,
}
LISTINGS = (*JSON_LISTS, *_HEADED, *_CODE, *_MARKUP)


def listed(tools: Sequence[Tool], format: Format, declared: Declarations | None = None) -> str:
    """The tools as models of this format's family are shown them. `declared` are their declarations, if made before."""
    harmless = Harmless.of(format) if declared is None else declared.text.harmless
    name = format.tools
    if name in _CODE:
        return _CODE[name](declared or Declarations(tools, harmless), tools)
    if name in _MARKUP:
        return _MARKUP[name](tools, harmless)
    listing = JSON_LISTS.get(name) or _HEADED.get(name)
    if listing is None:
        raise BadFormat(f"format {format.name!r}: there is no listing {name!r}; known: {', '.join(LISTINGS)}")
    return listing.write(tools, harmless)


def function(tool: Tool) -> Json:
    """Name, description and schema, as every provider orders them."""
    parameters = {"type": "object", "properties": {}, **tool.parameters}
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def json_text(value: Any, harmless: Harmless, indent: int | None = None) -> str:
    return harmless.strings(json.dumps(value, ensure_ascii=False, indent=indent))
