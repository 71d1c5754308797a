"""List tools in a prompt, as markup or as code, and the fixed sentences of the contract."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rightcall.contracts.typescript import (
    ArrayType,
    Declarations,
    FieldType,
    Literal,
    MarkerEscaper,
    ObjectType,
    Primitive,
    RefType,
    Tuple,
    TypeExpr,
    UnionType,
    is_identifier,
)
from rightcall.errors import BadFormat
from rightcall.formats.spec import Format
from rightcall.schema.walk import LISTS, MAPS, ONE
from rightcall.types import Json, Tool

TITLE = "## Tool Calling Contract"
MODE = "The active mode is `{mode}`. This section replaces anything said about calling tools earlier in the prompt."

NATIVE = """\
Call tools through the tool channel of this API: it is preferred. Should the server take that channel away, write a
call as text, and it runs just the same:

{example}"""
CALL = "<tool_call>name({ key: value })</tool_call>"

PROTOCOL = """\
### Response protocol

A response consists of the blocks below and of white space between them. Nothing else is read.

- `<tool_call>` holds exactly one call, written `name({ key: value })`.
- `<assistant_prose>` holds a short remark for the log. It is optional.
- `<user_response>` holds the answer for the user.
- `<done>DONE_MARK</done>` says that the whole task is finished.

Rules:

- Text outside these blocks is refused, and you are told so. Do not begin a call with a label such as `tool_code:`,
  `python:` or `shell:`, and put no Markdown fence around it.
- A call is written bare: no quotes around it, no JSON object in its place. One block per call; several blocks may
  follow one another. A name that is declared in quotes is called without them.
- Arguments are one object literal. Keys are identifiers or strings; values are strings, numbers, `true`, `false`,
  `null`, arrays and objects.
- Text of several lines goes into a heredoc: `<<TAG`, a line break, the text exactly as it is, without escapes, then
  TAG at the start of a line; commas and brackets may follow it there.
- Prose is brief. Code and file contents belong into the arguments of a call.
- Rather call a tool than describe what you would do.
- Say done only after a tool call has shown that the task is finished."""

EXAMPLE = "A call looks like this:\n\n{example}"
HEREDOC = "Text of several lines, as a heredoc:\n\n{example}"
HEREDOC_ANY = "Text of several lines, as a heredoc, if there were a tool `create`:\n\n{example}"
LINES = '<<EOF\n# Today\nIt\'s "raw": \\n stays as it is.\nEOF'

LEDGER = """\
### Task ledger

Every turn shows a `<task_ledger>` with the deliverables of the task. A `<done>` is refused while one of them is open
or blocked. Keep it true:

- `ledger({ action: "add", text: "..." })` adds a deliverable; its id comes back.
- `ledger({ action: "mark", id: "deliverable-1", status: "done" })` once a tool result has shown that it is done.
- `ledger({ action: "mark", id: "deliverable-1", status: "dropped", note: "why" })` for one that is not needed any more.
- `ledger({ action: "rationale", text: "..." })` records why you go about it this way.
- `ledger({ action: "note", text: "..." })` records something you found out.

Use only ids that the ledger shows."""

LEDGER_PLAIN = """\
### Task ledger

Every turn shows a `<task_ledger>` with the deliverables of the task. The task is not done while one of them is open or
blocked. Call the tool `ledger` to add deliverables, to mark one done once a tool result has shown it, or dropped with a
note that says why. Use only ids that the ledger shows."""

ACTION = """\
### Act first

This turn is action-gated. Begin your response with a tool call: no prose, code, diff, JSON or done before it."""

EXAMPLES = "## Tool call examples"
TYPES = "## Shared types"
TOOLS = "## Available tools"
NAMES = "## Tool names"
COMPACT = "## Other tools (call directly, or call `{lookup}` for details)"
NAMED = "## More tools (call `{lookup}` first: it shows the arguments)"

WIRE = """\
### How to call a tool

Write calls exactly in the form of the example, with the names and arguments that the tools declare. Leave out what you
do not need, and never make up a tool or an argument. If no tool helps, answer in plain text."""

WIRE_ONE = "One call:\n\n{example}"
WIRE_TWO = "Two calls in one response:\n\n{example}"


# -- Qwen3-Coder -------------------------------------------------------------------------------------------------------


def qwen3_coder_list(tools: Sequence[Tool], escaper: MarkerEscaper) -> str:
    """Return the tools as Qwen3 Coder lists them: `<tools>` with one XML element for each tool, parameter and
    keyword."""
    return "\n".join(["<tools>", *[line for tool in tools for line in _qwen_function_lines(tool, escaper)], "</tools>"])


def _qwen_function_lines(tool: Tool, escaper: MarkerEscaper) -> list[str]:
    """Return the lines of one tool's `<function>` element in the listing of Qwen3 Coder: name, description, parameters,
    and further keywords of its schema."""
    properties = tool.parameters.get("properties")
    lines = ["<function>", _qwen_element("name", tool.name, escaper)]
    if tool.description.strip():
        lines.append(_qwen_element("description", tool.description.strip(), escaper))
    lines.append("<parameters>")
    for name, schema in properties.items() if isinstance(properties, dict) else ():
        lines += ["<parameter>", _qwen_element("name", name, escaper)]
        lines += _qwen_keyword_lines(schema if isinstance(schema, dict) else {}, (), escaper)
        lines.append("</parameter>")
    lines += _qwen_keyword_lines(tool.parameters, ("type", "properties"), escaper)
    return [*lines, "</parameters>", "</function>"]


def _qwen_keyword_lines(schema: Json, left_out: tuple[str, ...], escaper: MarkerEscaper) -> list[str]:
    """Return one XML element for each keyword of a JSON Schema, `type` and `description` first, as in the listing of
    Qwen3 Coder. Keywords in `left_out`, and those whose name is not a word, are omitted."""
    first = [word for word in ("type", "description") if word in schema]
    words = [*first, *[word for word in schema if word not in first]]
    return [_qwen_element(word, schema[word], escaper) for word in words if word not in left_out and _WORD(word)]


_WORD = re.compile(r"[$\w]+").fullmatch


def _qwen_element(word: str, value: Any, escaper: MarkerEscaper) -> str:
    """Return an XML element named `word` that contains a string as it is, or any other value as JSON; markers of the
    format are escaped."""
    if isinstance(value, str):
        return f"<{word}>{escaper.escape_text(value)}</{word}>"
    return f"<{word}>{escaper.escape_json(json.dumps(value, ensure_ascii=False))}</{word}>"


# -- Gemma -------------------------------------------------------------------------------------------------------------

_BARE = re.compile(r"[\w$.-]+").fullmatch


def gemma_list(tools: Sequence[Tool], escaper: MarkerEscaper) -> str:
    """Return the tools as Gemma 4 lists them, each between `<|tool>` and `<tool|>`."""
    writer = _GemmaWriter('<|"|>', escaper)
    return "".join([f"<|tool>{writer.declaration(tool)}<tool|>" for tool in tools])


def functiongemma_list(tools: Sequence[Tool], escaper: MarkerEscaper) -> str:
    """Return the tools as FunctionGemma lists them, each between `<start_function_declaration>` and
    `<end_function_declaration>`."""
    writer = _GemmaWriter("<escape>", escaper)
    declared = [writer.declaration(tool) for tool in tools]
    return "".join([f"<start_function_declaration>{text}<end_function_declaration>" for text in declared])


class _GemmaWriter:
    """Writer of Gemma's notation: bare keys, strings between quote tokens, types in capitals. There are no escapes."""

    def __init__(self, quote: str, escaper: MarkerEscaper) -> None:
        self.quote = quote
        self.escaper = escaper

    def declaration(self, tool: Tool) -> str:
        """Return one tool in Gemma's notation: `declaration:NAME{description:...,parameters:...}`."""
        parameters = {"type": "object", **tool.parameters}
        said = f"description:{self.string(tool.description)},parameters:{self.schema(parameters)}"
        return f"declaration:{self.escaper.escape_line(tool.name)}{{{said}}}"

    def string(self, text: str) -> str:
        """Return the text between two quote tokens, with the markers of the format escaped."""
        return f"{self.quote}{self.escaper.escape_text(text)}{self.quote}"

    def key(self, key: str) -> str:
        """Return a key bare if it consists of word characters, `$`, `.` and `-`; otherwise as a string."""
        return key if _BARE(key) else self.string(key)

    def schema(self, schema: Any) -> str:
        """Return a JSON Schema in Gemma's notation: in braces, `description` first, `required` and `type` last. A
        schema that is no object is written as a plain value."""
        if not isinstance(schema, dict):
            return self.value(schema)
        first = [word for word in ("description",) if word in schema]
        last = [word for word in ("required", "type") if word in schema]
        words = [*first, *[word for word in schema if word not in (*first, *last)], *last]
        return "{" + ",".join([f"{self.key(word)}:{self.keyword(word, schema[word])}" for word in words]) + "}"

    def keyword(self, word: str, value: Any) -> str:
        """Return the value of the schema keyword `word` in Gemma's notation: type names in capitals, inner schemas as
        `schema` writes them, any other value as JSON data."""
        if word == "type":
            return self.value([name.upper() for name in value] if isinstance(value, list) else str(value).upper())
        if word in LISTS and isinstance(value, list):
            return "[" + ",".join([self.schema(item) for item in value]) + "]"
        if word in MAPS and isinstance(value, dict):
            return "{" + ",".join([f"{self.key(key)}:{self.schema(item)}" for key, item in value.items()]) + "}"
        return self.schema(value) if word in ONE else self.value(value)

    def value(self, value: Any) -> str:
        """Return any JSON value in Gemma's notation: bare keys, strings between quote tokens, numbers and constants as
        JSON."""
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, list):
            return "[" + ",".join([self.value(item) for item in value]) + "]"
        if isinstance(value, dict):
            return "{" + ",".join([f"{self.key(key)}:{self.value(item)}" for key, item in value.items()]) + "}"
        return json.dumps(value)


# -- TypeScript --------------------------------------------------------------------------------------------------------


def typescript_list(made: Declarations, tools: Sequence[Tool]) -> str:
    """Return the tools as TypeScript function types in a namespace, after their shared types, as gpt-oss, Functionary
    and GigaChat list tools. `made` are the declarations of the tools."""
    return f"namespace functions {{\n\n{typescript_types(made, tools)}\n\n}} // namespace functions"


def typescript_types(made: Declarations, tools: Sequence[Tool]) -> str:
    """Return the tools as TypeScript function types, after their shared types, as Apertus lists tools. `made` are the
    declarations of the tools."""
    return "\n\n".join([*made.alias_lines(tools), *[_typescript_function(made, tool) for tool in tools]])


def _typescript_function(made: Declarations, tool: Tool) -> str:
    """Return one tool as a TypeScript function type, with its description as a comment and each argument on a line
    after its own comments. A tool without arguments has no parameter."""
    lines = _line_comments(made, tool.description)
    args = made.arguments_type(tool)
    name = made.text.escaper.escape_line(tool.name)
    if not isinstance(args, ObjectType):
        return "\n".join([*lines, f"type {name} = (_: {made.text.type(args)}) => any;"])
    if not args.fields and args.rest is None:
        return "\n".join([*lines, f"type {name} = () => any;"])
    lines.append(f"type {name} = (_: {{")
    for field in args.fields:
        lines += _typescript_field(made, field)
    if args.rest is not None:
        lines.append(f"{made.text.index_signature(args)},")
    return "\n".join([*lines, "}) => any;"])


def _typescript_field(made: Declarations, field: FieldType) -> list[str]:
    """Return the lines of one member of an object type: description, limits and examples as comments, then name, type
    and default."""
    text = made.text
    said = [text.escaper.escape_line(note) for note in field.notes]
    said += [f"example: {text.literal(value)}" for value in field.examples]
    default = "".join([f" // default: {text.literal(value)}" for value in field.default])
    mark = "" if field.required else "?"
    lines = [*_line_comments(made, field.description), *[f"// {note}" for note in said]]
    return [*lines, f"{text.name(field.name)}{mark}: {text.type(field.type)},{default}"]


def _line_comments(made: Declarations, text: str) -> list[str]:
    """Return each line of the text that is not blank as a `//` comment with markers escaped; [] for a blank text."""
    return [f"// {made.text.escaper.escape_line(line)}" for line in text.splitlines() if line.strip()]


# -- Python ------------------------------------------------------------------------------------------------------------

_PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "array": "list"}


def python_list(made: Declarations, tools: Sequence[Tool]) -> str:
    """Return the tools as Python function definitions without a body, in a code fence, after the shared types, which
    are TypedDicts."""
    types = [f"{name} = {_python_annotation(made, made.shared_type(name))}" for name in made.shared_type_names(tools)]
    return "```python\n" + "\n\n".join([*types, *[_python_function(made, tool) for tool in tools]]) + "\n```"


def _python_function(made: Declarations, tool: Tool) -> str:
    """Return one tool as a Python function without a body. If any argument is not a valid identifier, all become
    `**arguments`."""
    args = made.arguments_type(tool)
    fields = args.fields if isinstance(args, ObjectType) else ()
    named = all(is_identifier(field.name) for field in fields) and isinstance(args, ObjectType)
    taken = (
        ", ".join([_python_parameter(made, field) for field in fields])
        if named
        else f"**arguments: {_python_annotation(made, args)}"
    )
    lines = [f"def {made.text.escaper.escape_line(tool.name)}({taken}):", *_docstring_lines(made, tool, fields)]
    return "\n".join(lines)


def _python_parameter(made: Declarations, field: FieldType) -> str:
    """Return one argument as a Python parameter with its annotation and default; an optional one without a default gets
    None."""
    default = f" = {_python_literal(made, field.default[0])}" if field.default else "" if field.required else " = None"
    return f"{field.name}: {_python_annotation(made, field.type)}{default}"


def _docstring_lines(made: Declarations, tool: Tool, fields: Sequence[FieldType]) -> list[str]:
    """Return the indented lines of a tool's Python docstring: its description, or else its name, then one line for each
    of the `fields`, its arguments."""
    escaper = made.text.escaper
    lines = [escaper.escape_line(line) for line in tool.description.strip().splitlines()] or [
        escaper.escape_line(tool.name)
    ]
    if fields:
        lines += ["", "Args:"]
        lines += [f"    {_docstring_argument(made, field)}" for field in fields]
    inside = [f"    {line}".rstrip().replace("\\", "\\\\").replace('"""', "'''") for line in lines]
    return ['    """', *inside, '    """']


def _docstring_argument(made: Declarations, field: FieldType) -> str:
    """Return the line of a Python docstring for one argument: name, annotation, whether it is required, description,
    limits, default and examples."""
    said = "; ".join(made.text.comment_parts(field))
    return f"{made.text.escaper.escape_line(field.name)} ({_python_annotation(made, field.type)}): {said}"


def _python_annotation(made: Declarations, expr: TypeExpr) -> str:
    """Return a type expression as a Python annotation; "Any" for a type that Python cannot express."""
    match expr:
        case Primitive(name):
            return _PYTHON.get(name, "dict")
        case Literal(value):
            return f"Literal[{_python_literal(made, value)}]"
        case ArrayType(item):
            return f"list[{_python_annotation(made, item)}]"
        case Tuple(items):
            return f"tuple[{', '.join([_python_annotation(made, item) for item in items]) or '()'}]"
        case UnionType(members):
            return _python_union(made, members)
        case RefType(name):
            return name
        case ObjectType(fields, rest):
            return _typed_dict(made, fields) if fields else _python_dict(made, rest)
    return "Any"


def _python_dict(made: Declarations, values: TypeExpr | None) -> str:
    """Return the Python annotation of an object without declared fields: `dict[str, ...]` with the type of its
    `values`, or `dict` if that is None."""
    return f"dict[str, {_python_annotation(made, values)}]" if values else "dict"


def _python_union(made: Declarations, members: tuple[TypeExpr, ...]) -> str:
    """Return the members of a union as Python annotations joined by `|`: first one `Literal[...]` with all constants,
    if there are any, then the others."""
    literals = [_python_literal(made, member.value) for member in members if isinstance(member, Literal)]
    others = [_python_annotation(made, member) for member in members if not isinstance(member, Literal)]
    return " | ".join([f"Literal[{', '.join(literals)}]", *others] if literals else others)


def _typed_dict(made: Declarations, fields: Sequence[FieldType]) -> str:
    """Return the fields of an object as an anonymous TypedDict: `TypedDict({"a": Required[str], "b":
    NotRequired[int]})`."""
    inner = [
        f"{made.text.literal(field.name)}: {'Required' if field.required else 'NotRequired'}"
        f"[{_python_annotation(made, field.type)}]"
        for field in fields
    ]
    return f"TypedDict({{{', '.join(inner)}}})"


def _python_literal(made: Declarations, value: object) -> str:
    """Return a constant in Python notation: None, True and False as such, any other value as JSON."""
    if value is None or isinstance(value, bool):
        return repr(value)
    return made.text.literal(value)


class JsonList(msgspec.Struct, frozen=True):
    """A listing of tools as JSON: `open`, each tool between `before` and `after`, `between` two of them, `close`.

    `flat` writes the function alone, without `{"type": "function", "function": ...}` around it."""

    open: str = ""
    close: str = ""
    between: str = "\n"
    before: str = ""
    after: str = ""
    flat: bool = False
    indent: int | None = None

    def write(self, tools: Sequence[Tool], escaper: MarkerEscaper) -> str:
        """Return the listing of these tools as one text."""
        items = [self.before + self._tool_json(tool, escaper) + self.after for tool in tools]
        return self.open + self.between.join(items) + self.close

    def _tool_json(self, tool: Tool, escaper: MarkerEscaper) -> str:
        """Return one tool as JSON text: its function object, alone if `flat`, else inside `{"type": "function",
        "function": ...}`."""
        value = function_object(tool) if self.flat else {"type": "function", "function": function_object(tool)}
        return json_text(value, escaper, self.indent)


class TemplateList(msgspec.Struct, frozen=True):
    """A listing that begins with `open` and fills the template `each` for each tool. Placeholders: {name} {description}
    {json} {parameters}; `indent` is that of the JSON."""

    each: str
    open: str = ""
    indent: int | None = None

    def write(self, tools: Sequence[Tool], escaper: MarkerEscaper) -> str:
        """Return the listing of these tools as one text, with a blank line between two tools."""
        return self.open + "\n\n".join([self._fill_template(tool, escaper) for tool in tools])

    def _fill_template(self, tool: Tool, escaper: MarkerEscaper) -> str:
        """Return the template `each` with its placeholders replaced by one tool's name, description and JSON, with
        markers escaped."""
        said = function_object(tool)
        holes = {
            "name": escaper.escape_line(tool.name),
            "description": escaper.escape_line(tool.description),
            "json": json_text(said, escaper, self.indent),
            "parameters": json_text(said["parameters"], escaper, self.indent),
        }
        return "".join([holes.get(piece, piece) for piece in self.each.replace("}", "{").split("{")])


Code = Callable[[Declarations, Sequence[Tool]], str]
Markup = Callable[[Sequence[Tool], MarkerEscaper], str]

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
_TEMPLATE_LISTS: dict[str, TemplateList] = {
    "deepseek": TemplateList("### {name}\nDescription: {description}\n\nParameters: {parameters}"),
    "longcat": TemplateList(
        "#### Tool name: {name}\n\nDescription: {description}\n\nInputSchema: \n{parameters}",
        open="### Tool namespace: function\n\n",
        indent=2,
    ),
    "functionary": TemplateList("Use the function '{name}' to '{description}'\n{json}"),
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
LISTINGS = (*JSON_LISTS, *_TEMPLATE_LISTS, *_CODE, *_MARKUP)


def list_tools(tools: Sequence[Tool], format: Format, declared: Declarations | None = None) -> str:
    """Return the prompt text that lists these tools, in the notation that models of this format's family were trained
    on.

    `declared` are the declarations of the tools, if the caller has them already. Raises `BadFormat` if the format names
    an unknown listing.
    """
    escaper = MarkerEscaper.of(format) if declared is None else declared.text.escaper
    name = format.tools
    if name in _CODE:
        return _CODE[name](declared or Declarations(tools, escaper), tools)
    if name in _MARKUP:
        return _MARKUP[name](tools, escaper)
    listing = JSON_LISTS.get(name) or _TEMPLATE_LISTS.get(name)
    if listing is None:
        raise BadFormat(f"format {format.name!r}: there is no listing {name!r}; known: {', '.join(LISTINGS)}")
    return listing.write(tools, escaper)


def function_object(tool: Tool) -> Json:
    """Return the function object of a tool, with the keys name, description and parameters, in the order that every
    provider uses. Missing `type` and `properties` of the parameters are added."""
    parameters = {"type": "object", "properties": {}, **tool.parameters}
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def json_text(value: Any, escaper: MarkerEscaper, indent: int | None = None) -> str:
    """Return the value as JSON text, with markers of the format inside strings escaped, so that no string contains one.
    `indent` is as in `json.dumps`."""
    return escaper.escape_json(json.dumps(value, ensure_ascii=False, indent=indent))
