"""Tools from the definitions that providers, MCP servers and registries use. Which one it is, is told by its shape.

{"type": "function", "function": {"name", "description", "parameters"}}   OpenAI chat, Ollama
{"type": "function", "name", "description", "parameters"}                 OpenAI Responses
{"name", "description", "input_schema"}                                   Anthropic
{"name", "description", "inputSchema", "outputSchema", "annotations"}     MCP
{"name", "description", "parameters": {"type": "OBJECT", ...}}            Gemini
{"name", "description", "parameters": {"path": "Where", ...}}             registry
{"title", "type": "object", "properties"}                                 JSON Schema
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from rightcall.json_pointer import step
from rightcall.schema.definition import Mended, check_parameters, check_schema, mend, plain
from rightcall.schema.limits import Refused, check_patterns
from rightcall.schema.places import properties
from rightcall.schema.validation import check_compiles
from rightcall.tools.gemini_schema import from_openapi, is_openapi
from rightcall.tools.registry import is_registry, parameters_schema
from rightcall.tools.tool_names import stands_for
from rightcall.types import Json, Tool

EXTENSION = "x-rightcall"
META = "rightcall/tool"  # where MCP wants such things, under _meta
OUTPUTS = ("x-output-schema", "x-harn-output-schema")  # both are written, for whoever reads only one of them
_OUTPUTS = (*OUTPUTS, "outputSchema", "output_schema")
_MARKS = ("aliases", "read_only", "compact")
_BY_HAND = ("registry", "bare")  # forms that people write, and may write the marks in
_LONGEST_NAME = 256
NO_PARAMETERS: Json = {"type": "object", "properties": {}}


class _Read(msgspec.Struct, kw_only=True):
    """What a definition says, before it is judged; the paths are those in the definition."""

    form: str
    inner: Mapping[str, Any]
    at: str = ""
    parameters: Any = None
    parameters_at: str = ""
    output: Any = None
    output_at: str = ""
    flags: Json = {}


class Made(msgspec.Struct, frozen=True):
    """A tool, the form it was in, and what of it was taken for what it means."""

    tool: Tool
    form: str
    mended: tuple[Mended, ...] = ()
    patterns: int = 0  # bytes, about, that its patterns compile to


def definition_tool(definition: Mapping[str, Any], root: Any = None) -> Made:
    """The tool of a definition. `root` is the registry that holds it. Raises `Refused`."""
    for recognises, read in _FORMS:
        if recognises(definition):
            return _tool(read(definition, definition if root is None else root))
    raise _unknown(definition)


def _unknown(definition: Mapping[str, Any]) -> Refused:
    if isinstance(definition.get("type"), str) and definition["type"] != "function" and "name" not in definition:
        cause = f"{definition['type']!r} is a tool that its provider runs; no call of it comes here"
        return Refused("/type", cause, "leave it out of the tools you declare")
    cure = 'write {"type": "function", "function": {"name": ..., "parameters": ...}}'
    return Refused("/name", "the definition has no name", cure)


def _tool(read: _Read) -> Made:
    name = _name(read.inner.get("name"), f"{read.at}/name")
    try:
        return _judged(read, name)
    except Refused as refused:
        raise refused.within(tool=name) from None


def _judged(read: _Read, name: str) -> Made:
    output, output_at = (read.output, read.output_at) if read.output is not None else _output(read.inner, read.at)
    by_hand = read.inner if read.form in _BY_HAND else {}
    flags = {**{key: by_hand[key] for key in _MARKS if key in by_hand}, **_extension(read.inner, read.at), **read.flags}
    output = flags.get("output_schema", output)
    said = flags.get("name")
    tool = Tool(
        name=said if isinstance(said, str) and stands_for(name, said) else name,
        description=_description(read.inner.get("description"), f"{read.at}/description"),
        parameters=_schema(NO_PARAMETERS if read.parameters is None else read.parameters, read.parameters_at),
        output_schema=None if output is None else _schema(output, output_at),
        aliases=_aliases(flags.get("aliases"), read.at),
        read_only=flags.get("read_only") is True,
        compact=flags.get("compact") is True,
    )
    mended = mend_schemas(tool, read.parameters_at, output_at)
    return Made(tool, read.form, mended, judge(tool, read.parameters_at, output_at))


def mend_schemas(
    tool: Tool, parameters_at: str = "/parameters", output_at: str = "/output_schema"
) -> tuple[Mended, ...]:
    """Mends the schemas of a tool, which must be copies, in place."""
    done = [(parameters_at, note) for note in mend(tool.parameters)]
    done += [(output_at, note) for note in mend(tool.output_schema)] if tool.output_schema is not None else []
    return tuple(Mended(tool.name, at + path, before, after) for at, (path, before, after) in done)


def judge(tool: Tool, parameters_at: str = "/parameters", output_at: str = "/output_schema") -> int:
    """What the tool's patterns cost. Raises `Refused` unless the tool can be used. The paths are where its schemas are
    in the definition."""
    _name(tool.name, "/name")
    patterns = _within(parameters_at, tool, lambda: _judge_parameters(tool))
    if tool.output_schema is not None:
        said = tool.output_schema
        _within(output_at, tool, lambda: check_schema(said))
    known = properties(tool.parameters)
    for alias, meant in tool.aliases.items():
        if meant not in known or alias in known:
            cause = f"the alias {alias!r} stands for {meant!r}, which is no parameter"
            if alias in known:
                cause = f"the alias {alias!r} is the name of a parameter itself"
            cure = f"map other names to one of {', '.join(map(repr, known)) or 'its parameters, of which it has none'}"
            raise Refused(f"/aliases{step(alias)}", cause, cure, tool=tool.name)
    return patterns


_T = TypeVar("_T")


def _within(at: str, tool: Tool, check: Callable[[], _T]) -> _T:
    try:
        return check()
    except Refused as refused:
        raise refused.within(at, tool=tool.name) from None


def _judge_parameters(tool: Tool) -> int:
    facts = check_parameters(tool.parameters)
    patterns = check_patterns(facts.patterns)
    if facts.refers:  # drafts differ in what a reference means; without one nothing is left that may not compile
        check_compiles(tool)
    return patterns


def _name(name: Any, at: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise Refused(at, f"{name!r:.60} is no name", "give the tool a name")
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise Refused(at, f"{name[:60]!r} is too long or has control characters", "give the tool a shorter, plain name")
    return name


def _description(text: Any, at: str) -> str:
    if text is not None and not isinstance(text, str):
        raise Refused(at, f"a description is text, not {type(text).__name__}", "write a string")
    return text or ""


def _schema(given: Any, at: str) -> Json:
    if not isinstance(given, Mapping):
        raise Refused(
            at, f"a JSON Schema object is needed, not {type(given).__name__}", 'write {"type": "object", ...}'
        )
    try:
        return plain(given)  # type: ignore[no-any-return]
    except Refused as refused:
        raise refused.within(at) from None


def _output(inner: Mapping[str, Any], at: str) -> tuple[Any, str]:
    key = next((key for key in _OUTPUTS if inner.get(key) is not None), OUTPUTS[0])
    return inner.get(key), f"{at}/{key}"


def _extension(inner: Mapping[str, Any], at: str) -> Json:
    """What only we know of a tool: its aliases and marks."""
    given = inner.get(EXTENSION, {})
    if not isinstance(given, Mapping):
        raise Refused(f"{at}/{EXTENSION}", "it must be an object", "remove it")
    return dict(given)


def _aliases(given: Any, at: str) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(x, str) for pair in given.items() for x in pair):
        raise Refused(f"{at}/aliases", "aliases map names to names", 'write an object such as {"file": "path"}')
    return dict(given)


def _read_function(definition: Mapping[str, Any], root: Any) -> _Read:
    inner = definition["function"]
    key = "input_schema" if "parameters" not in inner and "input_schema" in inner else "parameters"
    at = f"/function/{key}"
    return _Read(form="chat", inner=inner, at="/function", parameters=inner.get(key), parameters_at=at)


def _read_flat(definition: Mapping[str, Any], root: Any) -> _Read:
    given = definition.get("parameters")
    form = "responses" if definition.get("type") == "function" else "bare"
    return _Read(form=form, inner=definition, parameters=given, parameters_at="/parameters")


def _read_anthropic(definition: Mapping[str, Any], root: Any) -> _Read:
    given = definition["input_schema"]
    return _Read(form="messages", inner=definition, parameters=given, parameters_at="/input_schema")


def _read_mcp(definition: Mapping[str, Any], root: Any) -> _Read:
    hints = definition.get("annotations")
    flags: Json = {"read_only": True} if isinstance(hints, Mapping) and hints.get("readOnlyHint") is True else {}
    meta = definition.get("_meta")
    ours = meta.get(META) if isinstance(meta, Mapping) else None
    return _Read(
        form="mcp",
        inner=definition,
        parameters=definition["inputSchema"],
        parameters_at="/inputSchema",
        flags={**(ours if isinstance(ours, Mapping) else {}), **flags},
    )


def _read_gemini(definition: Mapping[str, Any], root: Any) -> _Read:
    parameters, parameters_at = _either(definition, "parameters", "parametersJsonSchema", "parameters_json_schema")
    output, output_at = _either(definition, "response", "responseJsonSchema", "response_json_schema")
    return _Read(
        form="gemini",
        inner=definition,
        parameters=parameters,
        parameters_at=parameters_at,
        output=output,
        output_at=output_at,
    )


def _either(definition: Mapping[str, Any], openapi: str, *json_schema: str) -> tuple[Any, str]:
    for key in json_schema:
        if definition.get(key) is not None:
            return definition[key], f"/{key}"
    given = definition.get(openapi)
    return (None if given is None else from_openapi(_schema(given, f"/{openapi}"))), f"/{openapi}"


def _read_custom(definition: Mapping[str, Any], root: Any) -> _Read:
    """A tool whose input is free text: one argument, `input`."""
    nested = isinstance(definition.get("custom"), Mapping)
    schema = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    return _Read(
        form="custom",
        inner=definition["custom"] if nested else definition,
        at="/custom" if nested else "",
        parameters=schema,
    )


def _read_registry(definition: Mapping[str, Any], root: Any) -> _Read:
    at = "/parameters"
    try:
        schema = parameters_schema(_schema(definition["parameters"], at), root)
    except Refused as refused:
        raise refused.within(tool=str(definition.get("name", ""))) from None
    return _Read(form="registry", inner=definition, parameters=schema, parameters_at=at)


def _read_json_schema(definition: Mapping[str, Any], root: Any) -> _Read:
    name = definition["name"] if isinstance(definition.get("name"), str) else definition.get("title")
    schema = {key: value for key, value in definition.items() if key not in ("name", "title", "description")}
    inner = {"name": name, "description": definition.get("description")}
    return _Read(form="json-schema", inner=inner, parameters=schema)


def _named(definition: Mapping[str, Any]) -> bool:
    return definition.get("name") is not None


_GEMINI_KEYS = {
    "parametersJsonSchema",
    "parameters_json_schema",
    "response",
    "responseJsonSchema",
    "response_json_schema",
}


def _is_gemini(definition: Mapping[str, Any]) -> bool:
    return _named(definition) and (not _GEMINI_KEYS.isdisjoint(definition) or is_openapi(definition.get("parameters")))


def _is_json_schema(definition: Mapping[str, Any]) -> bool:
    named = isinstance(definition.get("name"), str) or isinstance(definition.get("title"), str)
    return named and "parameters" not in definition and isinstance(definition.get("properties"), Mapping)


Recogniser = Callable[[Mapping[str, Any]], bool]
Reader = Callable[[Mapping[str, Any], Any], _Read]

# The first that recognises a definition reads it.
_FORMS: tuple[tuple[Recogniser, Reader], ...] = (
    (lambda d: isinstance(d.get("function"), Mapping), _read_function),
    (lambda d: _named(d) and "input_schema" in d, _read_anthropic),
    (lambda d: _named(d) and "inputSchema" in d, _read_mcp),
    (lambda d: d.get("type") == "custom" and (_named(d) or isinstance(d.get("custom"), Mapping)), _read_custom),
    (lambda d: _named(d) and d.get("type") == "function", _read_flat),
    (_is_gemini, _read_gemini),
    (_is_json_schema, _read_json_schema),
    (lambda d: _named(d) and is_registry(d.get("parameters")), _read_registry),
    (_named, _read_flat),
)
