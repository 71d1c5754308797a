"""Tool definitions of providers, MCP servers and registries: read any form, write the form a provider expects.

{"type": ["string", "null"]}   <->   {"type": "STRING", "nullable": true}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from rightcall.json_pointer import step
from rightcall.schema.definition import TYPES, Mended, check_parameters, check_schema, mend, plain
from rightcall.schema.limits import Refused, check_patterns
from rightcall.schema.places import properties
from rightcall.schema.validation import check_compiles
from rightcall.tools.registry import is_registry, parameters_schema
from rightcall.tools.toolset import Tools, Toolset, check_provider, stands_for
from rightcall.types import Json, Tool

_CAPITALS = {name.upper() for name in TYPES}
_COUNTS = {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
_SAYABLE = _COUNTS | {
    *("type", "format", "title", "description", "nullable", "enum", "items", "properties", "required", "anyOf"),
    *("propertyOrdering", "default", "example", "minimum", "maximum", "pattern"),
}
_FORMATS = {"enum", "date-time", "float", "double", "int32", "int64"}
_SNAKE: dict[str, str] = {"".join(f"_{c.lower()}" if c.isupper() else c for c in word): word for word in _SAYABLE} | {
    "additional_properties": "additionalProperties",
    "prefix_items": "prefixItems",
}


def is_openapi(schema: Any) -> bool:
    return isinstance(schema, dict) and isinstance(schema.get("type"), str) and schema["type"] in _CAPITALS


def from_openapi(schema: Any) -> Any:
    """JSON Schema of a Gemini schema. Both spellings of its keywords are known, `anyOf` and `any_of`."""
    if not isinstance(schema, dict):
        return schema
    found: Json = {_SNAKE.get(str(word), str(word)): value for word, value in schema.items()}
    new = {word: _from_keyword(word, value) for word, value in found.items()}
    said = new.get("type")
    if said == "type_unspecified":
        del new["type"]
    if new.get("nullable") is True and isinstance(said, str):
        del new["nullable"]
        new["type"] = [said, "null"]
    return new


def _from_keyword(word: str, value: Any) -> Any:
    if word == "type" and isinstance(value, str):
        return value.lower()
    if word in _COUNTS and isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    if word == "properties" and isinstance(value, dict):
        return {key: from_openapi(item) for key, item in value.items()}
    if word in ("anyOf", "prefixItems") and isinstance(value, list):
        return [from_openapi(item) for item in value]
    return from_openapi(value) if word in ("items", "additionalProperties") else value


def to_openapi(schema: Json) -> Json | None:
    """The Gemini schema that reads back as exactly this; None if there is none."""
    new = _to_openapi(schema)
    return new if new is not None and from_openapi(new) == schema else None


def _to_openapi(schema: Any) -> Json | None:
    if not isinstance(schema, dict) or not schema.keys() <= _SAYABLE or schema.get("format", "enum") not in _FORMATS:
        return None
    new = dict(schema)
    said = schema.get("type")
    if isinstance(said, list) and len(said) == 2 and "null" in said:
        new["type"], new["nullable"] = said[0], True
    if not isinstance(new.get("type", ""), str) or not ("type" in new or "anyOf" in new):
        return None
    if "type" in new:
        new["type"] = new["type"].upper()
    if not all(isinstance(value, str) for value in schema.get("enum", ())):
        return None
    return _inside(new)


def _inside(new: Json) -> Json | None:
    if "items" in new:
        new["items"] = _to_openapi(new["items"])
    if "properties" in new:
        new["properties"] = {key: _to_openapi(item) for key, item in new["properties"].items()}
    if "anyOf" in new:
        new["anyOf"] = [_to_openapi(item) for item in new["anyOf"]]
    parts = [new.get("items", {}), *new.get("properties", {}).values(), *new.get("anyOf", ())]
    return None if None in parts or new.get("properties", True) == {} else new


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
        parameters=_checked_schema(NO_PARAMETERS if read.parameters is None else read.parameters, read.parameters_at),
        output_schema=None if output is None else _checked_schema(output, output_at),
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


def _checked_schema(given: Any, at: str) -> Json:
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
    return (None if given is None else from_openapi(_checked_schema(given, f"/{openapi}"))), f"/{openapi}"


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
        schema = parameters_schema(_checked_schema(definition["parameters"], at), root)
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


def to_provider(tools: Tools, provider: str, *, extensions: bool = False) -> list[Json]:
    """The list to send as `tools`. `extensions` adds what the form has no field for, which hosted servers refuse.

    A schema that does not say its type goes out as the object it must be."""
    form = check_provider(provider)
    write = _WRITERS[form]
    toolset = tools if isinstance(tools, Toolset) else Toolset(tools)
    names = toolset.wire_names(form)
    written = [write(tool, names[tool.name], extensions) for tool in toolset]
    return [{"functionDeclarations": written}] if form == "gemini" and written else written


def _openai(tool: Tool, name: str, extensions: bool) -> Json:
    return {"type": "function", "function": {**_flat(tool, name), **_extra(tool, name, extensions)}}


def _responses(tool: Tool, name: str, extensions: bool) -> Json:
    # Without "strict" this API makes every argument required.
    return {"type": "function", **_flat(tool, name), "strict": False, **_extra(tool, name, extensions)}


def _flat(tool: Tool, name: str) -> Json:
    return {"name": name, "description": tool.description, "parameters": _object(tool.parameters)}


def _anthropic(tool: Tool, name: str, extensions: bool) -> Json:
    written = {"name": name, "description": tool.description, "input_schema": _object(tool.parameters)}
    return {**written, **_extra(tool, name, extensions)}


def _gemini(tool: Tool, name: str, extensions: bool) -> Json:
    written: Json = {"name": name, "description": tool.description}
    if _object(tool.parameters) != NO_PARAMETERS:  # an object without properties is refused there
        written |= _schema("parameters", _object(tool.parameters))
    if tool.output_schema is not None:
        written |= _schema("response", tool.output_schema)
    return {**written, **_extra(tool, name, extensions, output=False)}


def _schema(key: str, schema: Json) -> Json:
    openapi = to_openapi(schema)
    return {f"{key}JsonSchema": schema} if openapi is None else {key: openapi}


def _mcp(tool: Tool, name: str, extensions: bool) -> Json:
    written: Json = {"name": name, "inputSchema": _object(tool.parameters)}
    if tool.description:
        written["description"] = tool.description
    marks = _marks(tool, name)
    if marks.pop("read_only", False):
        written["annotations"] = {"readOnlyHint": True}
    if tool.output_schema is not None and tool.output_schema.get("type") == "object":
        written["outputSchema"] = tool.output_schema
    elif tool.output_schema is not None:  # MCP has a field for objects only
        marks["output_schema"] = tool.output_schema
    return {**written, "_meta": {META: marks}} if marks and extensions else written


def _object(schema: Json) -> Json:
    if "type" in schema and "properties" in schema:
        return schema
    return {"type": "object", **({} if "$ref" in schema else {"properties": {}}), **schema}


def _extra(tool: Tool, name: str, extensions: bool, *, output: bool = True) -> Json:
    if not extensions:
        return {}
    marks = _marks(tool, name)
    found: Json = dict.fromkeys(OUTPUTS, tool.output_schema) if output and tool.output_schema is not None else {}
    return {**found, EXTENSION: marks} if marks else found


def _marks(tool: Tool, name: str) -> Json:
    """What no provider has a field for, where it is not as usual."""
    marks: dict[str, Any] = {"aliases": tool.aliases, "read_only": tool.read_only, "compact": tool.compact}
    said = {key: value for key, value in marks.items() if value}
    return said if name == tool.name else {"name": tool.name, **said}


_WRITERS: dict[str, Callable[[Tool, str, bool], Json]] = {
    "chat": _openai,
    "responses": _responses,
    "messages": _anthropic,
    "gemini": _gemini,
    "ollama": _openai,
    "mcp": _mcp,
}
