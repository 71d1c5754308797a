"""Split any declaration of tools into single tools, each with its source or the reason why it is rejected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from rightcall.schema.definition import copy_plain
from rightcall.schema.limits import Refused
from rightcall.strict_json import pointer_step
from rightcall.types import Tool

if TYPE_CHECKING:
    from rightcall.schema.definition import SchemaFix
    from rightcall.tools.provider_forms import ParsedDefinition


class SdkObject(Protocol):
    """A pydantic object of an SDK, such as a tool listed by an MCP client. It is read as the JSON that it dumps."""

    @property
    def model_dump(self) -> Callable[..., dict[str, Any]]:
        """Return the object as a dict, as pydantic models do."""


ToolLike = Tool | Mapping[str, Any] | Callable[..., Any] | SdkObject

_LISTS = ("tools", "functions", "functionDeclarations", "function_declarations")
_DEFINING = ("function", "parameters", "input_schema", "inputSchema", "properties")
_DEEPEST = 8


class FoundTool(NamedTuple):
    """A tool, or the reason why there is none. `source` names its form and place: `openai at /tools/0`; `mended` has
    the repairs of its schemas, `patterns` the size that its patterns compile to."""

    tool: Tool | Refused
    source: str
    mended: tuple[SchemaFix, ...] = ()
    patterns: int = 0


def to_tool(definition: ToolLike) -> Tool:
    """Return the tool that a `Tool`, a function, a class or any provider's definition describes. Raises `BadTools` if
    it cannot be used, and unless there is exactly one."""
    found = list(collect_tools(definition))
    if len(found) != 1:
        cure = "pass several to Toolset" if found else "pass a tool"
        raise Refused("", f"one tool is needed here, and there are {len(found)}", cure)
    if isinstance(found[0].tool, Refused):
        raise found[0].tool
    return found[0].tool


def collect_tools(source: object, path: str = "", root: Any = None, depth: int = 0) -> Iterator[FoundTool]:
    """Yield every tool in a source: functions, classes, definitions, registries, and lists of them, to a depth of
    eight. What is no usable tool is yielded as `Refused`, not raised.

    `path` is the place of the source for messages, and `root` the outermost list or registry, for references.
    """
    if isinstance(source, Tool):
        yield _collect_one(lambda: _check_tool_schemas(source, "Tool"), path)
    elif depth < _DEEPEST and not isinstance(source, type) and callable(getattr(source, "model_dump", None)):
        dumped = source.model_dump(by_alias=True, exclude_none=True, mode="json")  # type: ignore[attr-defined]
        yield from collect_tools(dumped, path, root, depth + 1)
    elif isinstance(source, Mapping):
        yield from _collect_mapping(source, path, root, depth)
    elif callable(source):
        yield _collect_one(lambda: _from_callable(source), path)
    elif isinstance(source, Iterable) and not isinstance(source, (str, bytes)) and depth < _DEEPEST:
        for at, item in enumerate(source):
            yield from collect_tools(item, path + pointer_step(at), source if root is None else root, depth + 1)
    else:
        cause = f"{type(source).__name__} is no tool"
        cure = "tools must be functions, classes, Tools, tool definition dicts, a tool registry, or a list of these"
        refused = Refused(path, cause, cure)
        refused.given = bool(path)  # among others, as in the JSON of a request
        yield FoundTool(refused, _source_label(type(source).__name__, path))


def _collect_mapping(source: Mapping[str, Any], path: str, root: Any, depth: int) -> Iterator[FoundTool]:
    """Yield the tools of a mapping: of the lists inside it (`tools`, `functions`, or the `result` of an MCP listing),
    or of the one definition that it is. What is no usable tool is yielded as `Refused`, not raised. `path`, `root` and
    `depth` are those of `collect_tools`."""
    from rightcall.tools.provider_forms import definition_tool

    wrapped = [key for key in _LISTS if key in source] if not any(key in source for key in _DEFINING) else []
    if wrapped and depth < _DEEPEST:
        for key in wrapped:
            yield from collect_tools(
                source[key] or (), path + pointer_step(key), source if root is None else root, depth + 1
            )
    elif isinstance(source.get("result"), Mapping) and "tools" in source["result"]:
        yield from collect_tools(source["result"], path + "/result", root, depth + 1)
    else:
        found = _collect_one(lambda: definition_tool(source, root), path)
        if isinstance(found.tool, Refused):
            found.tool.given = bool(source or path)
        yield found


def _from_callable(function: Callable[..., Any]) -> ParsedDefinition:
    """Return the checked tool of a function or class, with its qualified name as the form. Raises `Refused` if it
    cannot be used."""
    from rightcall.tools.functions import callable_tool

    tool = callable_tool(function)
    source = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', tool.name)}".lstrip(".")
    return _check_tool_schemas(tool, source)


def _check_tool_schemas(tool: Tool, form: str) -> ParsedDefinition:
    """Return the tool as a `ParsedDefinition` of this `form`, after checking its name, schemas and aliases. If its
    schemas needed repairs, it is a repaired copy; the given tool is never changed. Raises `Refused` if it cannot be
    used."""
    from rightcall.tools.provider_forms import ParsedDefinition, check_tool, repair_schemas

    output = tool.output_schema
    if output is not None:
        output = _plain_schema(output, "/output_schema", tool.name)
    plain_tool = Tool(
        name=tool.name,
        parameters=_plain_schema(tool.parameters, "/parameters", tool.name),
        output_schema=None
        if tool.output_schema is None
        else _plain_schema(tool.output_schema, "/output_schema", tool.name),
        aliases=tool.aliases,
    )
    mended = repair_schemas(plain_tool)
    patterns = check_tool(plain_tool)
    if not mended:
        return ParsedDefinition(tool, form, (), patterns)
    new = msgspec.structs.replace(tool, parameters=plain_tool.parameters, output_schema=plain_tool.output_schema)
    return ParsedDefinition(new, form, mended, patterns)


def _plain_schema(schema: Any, at: str, tool: str) -> Any:
    """Return a deep copy of a JSON Schema as plain JSON. Raises `Refused`, with the place `at` and the name of the
    `tool`, if it is no object or JSON cannot represent it."""
    if not isinstance(schema, Mapping):
        raise Refused(at, f"a JSON Schema is an object, not {type(schema).__name__}", "write a dict", tool=tool)
    try:
        return copy_plain(schema)
    except Refused as refused:
        raise refused.within(at, tool=tool) from None


def _collect_one(make: Callable[[], ParsedDefinition], path: str) -> FoundTool:
    """Call `make` and return its tool as a `FoundTool`, or the `Refused` that it raises as one; `path`, the place of
    the source, is put before the places in it."""
    try:
        made = make()
    except Refused as refused:
        return FoundTool(refused.within(path), _source_label("", path))
    mended = tuple(msgspec.structs.replace(note, path=path + note.path) for note in made.mended)
    return FoundTool(made.tool, _source_label(made.form, path), mended, made.patterns)


def _source_label(form: str, path: str) -> str:
    """Return a label for a tool's source, such as `openai at /tools/0`; form or path alone if the other is empty, "the
    definition" if both are."""
    return f"{form} at {path}" if form and path else form or path or "the definition"
