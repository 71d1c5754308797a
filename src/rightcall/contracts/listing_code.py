"""Tools listed as code: TypeScript types as gpt-oss and others read them, Python functions as MiniCPM and others do."""

from __future__ import annotations

from collections.abc import Sequence

from rightcall.contracts.type_expr import (
    ArrayType,
    FieldType,
    Literal,
    ObjectType,
    Primitive,
    RefType,
    Tuple,
    TypeExpr,
    UnionType,
    is_identifier,
)
from rightcall.contracts.typescript import Declarations
from rightcall.types import Tool

# -- TypeScript --------------------------------------------------------------------------------------------------------


def typescript_list(made: Declarations, tools: Sequence[Tool]) -> str:
    """In a namespace, as gpt-oss, Functionary and GigaChat have it."""
    return f"namespace functions {{\n\n{typescript_types(made, tools)}\n\n}} // namespace functions"


def typescript_types(made: Declarations, tools: Sequence[Tool]) -> str:
    """One function type per tool, as Apertus has it."""
    return "\n\n".join([*made.aliases(tools), *[_function(made, tool) for tool in tools]])


def _function(made: Declarations, tool: Tool) -> str:
    lines = _line_comments(made, tool.description)
    args = made.args(tool)
    name = made.text.harmless.line(tool.name)
    if not isinstance(args, ObjectType):
        return "\n".join([*lines, f"type {name} = (_: {made.text.type(args)}) => any;"])
    if not args.fields and args.rest is None:
        return "\n".join([*lines, f"type {name} = () => any;"])
    lines.append(f"type {name} = (_: {{")
    for field in args.fields:
        lines += _field(made, field)
    if args.rest is not None:
        lines.append(f"{made.text.index(args)},")
    return "\n".join([*lines, "}) => any;"])


def _field(made: Declarations, field: FieldType) -> list[str]:
    text = made.text
    said = [text.harmless.line(note) for note in field.notes]
    said += [f"example: {text.literal(value)}" for value in field.examples]
    default = "".join([f" // default: {text.literal(value)}" for value in field.default])
    mark = "" if field.required else "?"
    lines = [*_line_comments(made, field.description), *[f"// {note}" for note in said]]
    return [*lines, f"{text.name(field.name)}{mark}: {text.type(field.type)},{default}"]


def _line_comments(made: Declarations, text: str) -> list[str]:
    return [f"// {made.text.harmless.line(line)}" for line in text.splitlines() if line.strip()]


# -- Python ------------------------------------------------------------------------------------------------------------

_PYTHON = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "array": "list"}


def python_list(made: Declarations, tools: Sequence[Tool]) -> str:
    """Function definitions without a body; shared and nested objects are TypedDicts."""
    types = [f"{name} = {_python(made, made.type(name))}" for name in made.names(tools)]
    return "```python\n" + "\n\n".join([*types, *[_definition(made, tool) for tool in tools]]) + "\n```"


def _definition(made: Declarations, tool: Tool) -> str:
    args = made.args(tool)
    fields = args.fields if isinstance(args, ObjectType) else ()
    named = all(is_identifier(field.name) for field in fields) and isinstance(args, ObjectType)
    taken = ", ".join([_parameter(made, field) for field in fields]) if named else f"**arguments: {_python(made, args)}"
    lines = [f"def {made.text.harmless.line(tool.name)}({taken}):", *_docstring(made, tool, fields)]
    return "\n".join(lines)


def _parameter(made: Declarations, field: FieldType) -> str:
    default = f" = {_value(made, field.default[0])}" if field.default else "" if field.required else " = None"
    return f"{field.name}: {_python(made, field.type)}{default}"


def _docstring(made: Declarations, tool: Tool, fields: Sequence[FieldType]) -> list[str]:
    harmless = made.text.harmless
    lines = [harmless.line(line) for line in tool.description.strip().splitlines()] or [harmless.line(tool.name)]
    if fields:
        lines += ["", "Args:"]
        lines += [f"    {_argument(made, field)}" for field in fields]
    inside = [f"    {line}".rstrip().replace("\\", "\\\\").replace('"""', "'''") for line in lines]
    return ['    """', *inside, '    """']


def _argument(made: Declarations, field: FieldType) -> str:
    said = "; ".join(made.text.about(field))
    return f"{made.text.harmless.line(field.name)} ({_python(made, field.type)}): {said}"


def _python(made: Declarations, expr: TypeExpr) -> str:
    match expr:
        case Primitive(name):
            return _PYTHON.get(name, "dict")
        case Literal(value):
            return f"Literal[{_value(made, value)}]"
        case ArrayType(item):
            return f"list[{_python(made, item)}]"
        case Tuple(items):
            return f"tuple[{', '.join([_python(made, item) for item in items]) or '()'}]"
        case UnionType(members):
            return _python_union(made, members)
        case RefType(name):
            return name
        case ObjectType(fields, rest):
            return _typed_dict(made, fields) if fields else _python_dict(made, rest)
    return "Any"


def _python_dict(made: Declarations, values: TypeExpr | None) -> str:
    return f"dict[str, {_python(made, values)}]" if values else "dict"


def _python_union(made: Declarations, members: tuple[TypeExpr, ...]) -> str:
    literals = [_value(made, member.value) for member in members if isinstance(member, Literal)]
    others = [_python(made, member) for member in members if not isinstance(member, Literal)]
    return " | ".join([f"Literal[{', '.join(literals)}]", *others] if literals else others)


def _typed_dict(made: Declarations, fields: Sequence[FieldType]) -> str:
    inner = [
        f"{made.text.literal(field.name)}: {'Required' if field.required else 'NotRequired'}"
        f"[{_python(made, field.type)}]"
        for field in fields
    ]
    return f"TypedDict({{{', '.join(inner)}}})"


def _value(made: Declarations, value: object) -> str:
    if value is None or isinstance(value, bool):
        return repr(value)
    return made.text.literal(value)
