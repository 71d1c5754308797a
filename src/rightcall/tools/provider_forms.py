"""Tool definitions of providers, MCP servers and registries: parse every form, write the form a provider expects.

{"type": ["string", "null"]}   <->   {"type": "STRING", "nullable": true}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from rightcall.schema.definition import TYPES, SchemaFix, check_parameters, check_schema, copy_plain, fix_schema
from rightcall.schema.limits import Refused, check_patterns
from rightcall.schema.places import properties
from rightcall.schema.validation import check_compiles
from rightcall.strict_json import pointer_step
from rightcall.tools.registry import is_registry, parameters_schema
from rightcall.tools.toolset import Tools, Toolset, check_provider, is_wire_name_of
from rightcall.types import Json, Tool

_CAPITALS = {name.upper() for name in TYPES}
_COUNTS = {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}
_OPENAPI_KEYWORDS = _COUNTS | {
    *("type", "format", "title", "description", "nullable", "enum", "items", "properties", "required", "anyOf"),
    *("propertyOrdering", "default", "example", "minimum", "maximum", "pattern"),
}
_FORMATS = {"enum", "date-time", "float", "double", "int32", "int64"}
_SNAKE: dict[str, str] = {
    "".join(f"_{c.lower()}" if c.isupper() else c for c in word): word for word in _OPENAPI_KEYWORDS
} | {
    "additional_properties": "additionalProperties",
    "prefix_items": "prefixItems",
}


def is_openapi(schema: Any) -> bool:
    """Return True for a schema in Gemini's notation: its `type` is a type name in capitals."""
    return isinstance(schema, dict) and isinstance(schema.get("type"), str) and schema["type"] in _CAPITALS


def from_openapi(schema: Any) -> Any:
    """Return a schema in Gemini's notation as JSON Schema, with all schemas inside; the given one is not changed.
    Keywords may be in camel or snake case, `anyOf` and `any_of`. A value that is no dict is returned unchanged."""
    if not isinstance(schema, dict):
        return schema
    found: Json = {_SNAKE.get(str(word), str(word)): value for word, value in schema.items()}
    new = {word: _convert_openapi_value(word, value) for word, value in found.items()}
    kind = new.get("type")
    if kind == "type_unspecified":
        del new["type"]
    if new.get("nullable") is True and isinstance(kind, str):
        del new["nullable"]
        new["type"] = [kind, "null"]
    return new


def _convert_openapi_value(word: str, value: Any) -> Any:
    """Return the value of the keyword `word` of a Gemini schema as JSON Schema: types in lower case, counts that are
    text as integers, inner schemas converted; values of other keywords unchanged."""
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
    """Return a JSON Schema in Gemini's notation if that says the same: converted back it gives exactly this schema;
    otherwise None. The schema is not changed."""
    new = _convert_to_openapi(schema)
    return new if new is not None and from_openapi(new) == schema else None


def _convert_to_openapi(schema: Any) -> Json | None:
    """Return a JSON Schema in Gemini's notation, with all schemas inside; None if it is no dict or Gemini has no
    equivalent for a keyword or value of it, such as no `type`, empty `properties` or an enum of numbers. The result may
    be inexact: `to_openapi` checks it."""
    if (
        not isinstance(schema, dict)
        or not schema.keys() <= _OPENAPI_KEYWORDS
        or schema.get("format", "enum") not in _FORMATS
    ):
        return None
    new = dict(schema)
    kind = schema.get("type")
    if isinstance(kind, list) and len(kind) == 2 and "null" in kind:
        new["type"], new["nullable"] = kind[0], True
    if not isinstance(new.get("type", ""), str) or not ("type" in new or "anyOf" in new):
        return None
    if "type" in new:
        new["type"] = new["type"].upper()
    if not all(isinstance(value, str) for value in schema.get("enum", ())):
        return None
    return _convert_subschemas(new)


def _convert_subschemas(new: Json) -> Json | None:
    """Convert the subschemas of `new`, a schema partly in Gemini's notation, in place and return it; None if one of
    them has no equivalent, or for empty `properties`."""
    if "items" in new:
        new["items"] = _convert_to_openapi(new["items"])
    if "properties" in new:
        new["properties"] = {key: _convert_to_openapi(item) for key, item in new["properties"].items()}
    if "anyOf" in new:
        new["anyOf"] = [_convert_to_openapi(item) for item in new["anyOf"]]
    parts = [new.get("items", {}), *new.get("properties", {}).values(), *new.get("anyOf", ())]
    return None if None in parts or new.get("properties", True) == {} else new


EXTENSION = "x-rightcall"
META = "rightcall/tool"  # the key under MCP's `_meta`
OUTPUTS = ("x-output-schema", "x-harn-output-schema")  # both are written, since some readers know only one of them
_OUTPUTS = (*OUTPUTS, "outputSchema", "output_schema")
_FLAGS = ("aliases", "read_only", "compact")
_HANDWRITTEN_FORMS = ("registry", "bare")  # forms in which the flags may stand at the top level
_LONGEST_NAME = 256
NO_PARAMETERS: Json = {"type": "object", "properties": {}}


class _RawDefinition(msgspec.Struct, kw_only=True):
    """The parts of a definition before validation; the paths are those in the definition."""

    form: str
    inner: Mapping[str, Any]
    at: str = ""
    parameters: Any = None
    parameters_at: str = ""
    output: Any = None
    output_at: str = ""
    flags: Json = {}


class ParsedDefinition(msgspec.Struct, frozen=True):
    """A tool, the form of its definition, and the repairs of its schemas, which the tool has already."""

    tool: Tool
    form: str
    mended: tuple[SchemaFix, ...] = ()
    patterns: int = 0  # bytes, about, that its patterns compile to


def definition_tool(definition: Mapping[str, Any], root: Any = None) -> ParsedDefinition:
    """Return the tool of a definition in any form, parsed and checked; the definition is not changed. `root` is the
    registry that contains it, for references (None: the definition itself). Raises `Refused` if it has no known form or
    cannot be used."""
    for recognises, read in _FORMS:
        if recognises(definition):
            return _parse_raw(read(definition, definition if root is None else root))
    raise _unknown_form(definition)


def _unknown_form(definition: Mapping[str, Any]) -> Refused:
    """Return (not raise) the error for a definition in no known form, or for a tool that the provider runs itself."""
    if isinstance(definition.get("type"), str) and definition["type"] != "function" and "name" not in definition:
        cause = f"{definition['type']!r} is a tool that its provider runs; no call of it comes here"
        return Refused("/type", cause, "leave it out of the tools you declare")
    cure = 'write {"type": "function", "function": {"name": ..., "parameters": ...}}'
    return Refused("/name", "the definition has no name", cure)


def _parse_raw(raw: _RawDefinition) -> ParsedDefinition:
    """Build and check the tool from the parts of a definition. Raises `Refused`, with the name of the tool, if it
    cannot be used."""
    name = _check_name(raw.inner.get("name"), f"{raw.at}/name")
    try:
        return _build_tool(raw, name)
    except Refused as refused:
        raise refused.within(tool=name) from None


def _build_tool(raw: _RawDefinition, name: str) -> ParsedDefinition:
    """Return the tool named `name` from the parts of a definition, repaired and checked. Raises `Refused` if it cannot
    be used.

    A name that was shortened for a provider is replaced by the tool's own name, if the definition has it.
    """
    output, output_at = (
        (raw.output, raw.output_at) if raw.output is not None else _find_output_schema(raw.inner, raw.at)
    )
    by_hand = raw.inner if raw.form in _HANDWRITTEN_FORMS else {}
    flags = {
        **{key: by_hand[key] for key in _FLAGS if key in by_hand},
        **_read_extension(raw.inner, raw.at),
        **raw.flags,
    }
    output = flags.get("output_schema", output)
    own_name = flags.get("name")
    tool = Tool(
        name=own_name if isinstance(own_name, str) and is_wire_name_of(name, own_name) else name,
        description=_check_description(raw.inner.get("description"), f"{raw.at}/description"),
        parameters=_copy_schema(NO_PARAMETERS if raw.parameters is None else raw.parameters, raw.parameters_at),
        output_schema=None if output is None else _copy_schema(output, output_at),
        aliases=_read_aliases(flags.get("aliases"), raw.at),
        read_only=flags.get("read_only") is True,
        compact=flags.get("compact") is True,
    )
    mended = repair_schemas(tool, raw.parameters_at, output_at)
    return ParsedDefinition(tool, raw.form, mended, check_tool(tool, raw.parameters_at, output_at))


def repair_schemas(
    tool: Tool, parameters_at: str = "/parameters", output_at: str = "/output_schema"
) -> tuple[SchemaFix, ...]:
    """Repair the schemas of a tool in place; they must be copies. Return the repairs; their paths begin with
    `parameters_at` or `output_at`, the places of the schemas in the definition."""
    done = [(parameters_at, note) for note in fix_schema(tool.parameters)]
    done += [(output_at, note) for note in fix_schema(tool.output_schema)] if tool.output_schema is not None else []
    return tuple(SchemaFix(tool.name, at + path, before, after) for at, (path, before, after) in done)


def check_tool(tool: Tool, parameters_at: str = "/parameters", output_at: str = "/output_schema") -> int:
    """Check that a tool's name, schemas and aliases are usable, and return about how many bytes the patterns of its
    parameters compile to. An alias must stand for a declared parameter and be the name of none. Raises `Refused`, whose
    path is `/name`, in `/aliases`, or begins with `parameters_at` or `output_at` for a schema."""
    _check_name(tool.name, "/name")
    patterns = _with_context(parameters_at, tool, lambda: _check_parameters(tool))
    if tool.output_schema is not None:
        output = tool.output_schema
        _with_context(output_at, tool, lambda: check_schema(output))
    known = properties(tool.parameters)
    for alias, target in tool.aliases.items():
        if target not in known or alias in known:
            cause = f"the alias {alias!r} stands for {target!r}, which is no parameter"
            if alias in known:
                cause = f"the alias {alias!r} is the name of a parameter itself"
            cure = f"map other names to one of {', '.join(map(repr, known)) or 'its parameters, of which it has none'}"
            raise Refused(f"/aliases{pointer_step(alias)}", cause, cure, tool=tool.name)
    return patterns


_T = TypeVar("_T")


def _with_context(at: str, tool: Tool, check: Callable[[], _T]) -> _T:
    """Return the result of `check()`. If it raises `Refused`, raise that error with `at` before its path and with the
    tool's name."""
    try:
        return check()
    except Refused as refused:
        raise refused.within(at, tool=tool.name) from None


def _check_parameters(tool: Tool) -> int:
    """Check the schema of a tool's parameters. Return about how many bytes its patterns compile to. Raises `Refused` if
    the schema is not usable."""
    facts = check_parameters(tool.parameters)
    patterns = check_patterns(facts.patterns)
    if facts.refers:  # drafts differ in what a reference means; a schema without one always compiles
        check_compiles(tool)
    return patterns


def _check_name(name: Any, at: str) -> str:
    """Return the name unchanged. Raises `Refused`, with the place `at`, if it is no text, blank, too long, or has
    control characters."""
    if not isinstance(name, str) or not name.strip():
        raise Refused(at, f"{name!r:.60} is no name", "give the tool a name")
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise Refused(at, f"{name[:60]!r} is too long or has control characters", "give the tool a shorter, plain name")
    return name


def _check_description(text: Any, at: str) -> str:
    """Return the description, "" for None. Raises `Refused`, with the place `at`, if it is not text."""
    if text is not None and not isinstance(text, str):
        raise Refused(at, f"a description is text, not {type(text).__name__}", "write a string")
    return text or ""


def _copy_schema(given: Any, at: str) -> Json:
    """Return a deep copy of a schema as plain JSON. Raises `Refused`, with the place `at`, if it is no object, is too
    large or too deep, or JSON cannot represent it; a class as the value of `type` becomes its name."""
    if not isinstance(given, Mapping):
        raise Refused(
            at, f"a JSON Schema object is needed, not {type(given).__name__}", 'write {"type": "object", ...}'
        )
    try:
        return copy_plain(given)  # type: ignore[no-any-return]
    except Refused as refused:
        raise refused.within(at) from None


def _find_output_schema(inner: Mapping[str, Any], at: str) -> tuple[Any, str]:
    """Return the output schema of a definition, under the first key of `_OUTPUTS` that has one, and its path below
    `at`; the schema is None if there is none."""
    key = next((key for key in _OUTPUTS if inner.get(key) is not None), OUTPUTS[0])
    return inner.get(key), f"{at}/{key}"


def _read_extension(inner: Mapping[str, Any], at: str) -> Json:
    """Return a copy of the definition's fields that only this library uses, such as aliases and flags; {} if there are
    none. Raises `Refused`, with the place below `at`, if they are no object."""
    given = inner.get(EXTENSION, {})
    if not isinstance(given, Mapping):
        raise Refused(f"{at}/{EXTENSION}", f"it is {type(given).__name__}, not an object", "remove it")
    return dict(given)


def _read_aliases(given: Any, at: str) -> dict[str, str]:
    """Return a copy of a definition's aliases; {} for None. Raises `Refused`, with the place below `at`, unless they
    map names to names."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(x, str) for pair in given.items() for x in pair):
        raise Refused(f"{at}/aliases", "aliases map names to names", 'write an object such as {"file": "path"}')
    return dict(given)


def _read_chat(definition: Mapping[str, Any], root: Any) -> _RawDefinition:
    """Return the parts of a definition in the form of Chat: the tool is inside `function`. `root` is not needed."""
    inner = definition["function"]
    key = "input_schema" if "parameters" not in inner and "input_schema" in inner else "parameters"
    at = f"/function/{key}"
    return _RawDefinition(form="chat", inner=inner, at="/function", parameters=inner.get(key), parameters_at=at)


def _read_top_level_parameters(definition: Mapping[str, Any], root: Any) -> _RawDefinition:
    """Return the parts of a definition with `parameters` at the top: the form of Responses if its `type` is "function",
    else the bare form. `root` is not needed."""
    given = definition.get("parameters")
    form = "responses" if definition.get("type") == "function" else "bare"
    return _RawDefinition(form=form, inner=definition, parameters=given, parameters_at="/parameters")


def _read_anthropic(definition: Mapping[str, Any], root: Any) -> _RawDefinition:
    """Return the parts of a definition of Anthropic: the schema is in `input_schema`. `root` is not needed."""
    given = definition["input_schema"]
    return _RawDefinition(form="messages", inner=definition, parameters=given, parameters_at="/input_schema")


def _read_mcp(definition: Mapping[str, Any], root: Any) -> _RawDefinition:
    """Return the parts of a definition of MCP: the schema is in `inputSchema`, the annotation `readOnlyHint` marks it
    as read-only, and `_meta` has our fields. `root` is not needed."""
    hints = definition.get("annotations")
    flags: Json = {"read_only": True} if isinstance(hints, Mapping) and hints.get("readOnlyHint") is True else {}
    meta = definition.get("_meta")
    ours = meta.get(META) if isinstance(meta, Mapping) else None
    return _RawDefinition(
        form="mcp",
        inner=definition,
        parameters=definition["inputSchema"],
        parameters_at="/inputSchema",
        flags={**(ours if isinstance(ours, Mapping) else {}), **flags},
    )


def _read_gemini(definition: Mapping[str, Any], root: Any) -> _RawDefinition:
    """Return the parts of a definition of Gemini, whose schemas may be in Gemini's notation or JSON Schema. `root` is
    not needed. Raises `Refused` for a schema that is no object."""
    parameters, parameters_at = _find_schema(definition, "parameters", "parametersJsonSchema", "parameters_json_schema")
    output, output_at = _find_schema(definition, "response", "responseJsonSchema", "response_json_schema")
    return _RawDefinition(
        form="gemini",
        inner=definition,
        parameters=parameters,
        parameters_at=parameters_at,
        output=output,
        output_at=output_at,
    )


def _find_schema(definition: Mapping[str, Any], openapi: str, *json_schema: str) -> tuple[Any, str]:
    """Return a schema of a Gemini definition and its path: that under the first key in `json_schema` that is not null,
    else that under the key `openapi`, converted from Gemini's notation; the schema is None if there is none. Raises
    `Refused` as `_copy_schema` does."""
    for key in json_schema:
        if definition.get(key) is not None:
            return definition[key], f"/{key}"
    given = definition.get(openapi)
    return (None if given is None else from_openapi(_copy_schema(given, f"/{openapi}"))), f"/{openapi}"


def _read_custom(definition: Mapping[str, Any], root: Any) -> _RawDefinition:
    """Return the parts of a custom tool, whose input is free text: one argument, `input`. `root` is not needed."""
    nested = isinstance(definition.get("custom"), Mapping)
    schema = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    return _RawDefinition(
        form="custom",
        inner=definition["custom"] if nested else definition,
        at="/custom" if nested else "",
        parameters=schema,
    )


def _read_registry(definition: Mapping[str, Any], root: Any) -> _RawDefinition:
    """Return the parts of a definition in the registry form, whose map of parameters is converted to a schema;
    references point into `root`. Raises `Refused` for a reference that points at nothing, and for parameters that are
    no object or no JSON."""
    at = "/parameters"
    try:
        schema = parameters_schema(_copy_schema(definition["parameters"], at), root)
    except Refused as refused:
        raise refused.within(tool=str(definition.get("name", ""))) from None
    return _RawDefinition(form="registry", inner=definition, parameters=schema, parameters_at=at)


def _read_json_schema(definition: Mapping[str, Any], root: Any) -> _RawDefinition:
    """Return the parts of a JSON Schema with a name or title, which is a tool with this schema as its parameters.
    `root` is not needed."""
    name = definition["name"] if isinstance(definition.get("name"), str) else definition.get("title")
    schema = {key: value for key, value in definition.items() if key not in ("name", "title", "description")}
    inner = {"name": name, "description": definition.get("description")}
    return _RawDefinition(form="json-schema", inner=inner, parameters=schema)


def _has_name(definition: Mapping[str, Any]) -> bool:
    """Return True if the definition has a `name` that is not null."""
    return definition.get("name") is not None


_GEMINI_KEYS = {
    "parametersJsonSchema",
    "parameters_json_schema",
    "response",
    "responseJsonSchema",
    "response_json_schema",
}


def _is_gemini(definition: Mapping[str, Any]) -> bool:
    """Return True for a definition with a name that has a schema field only of Gemini, or `parameters` in Gemini's
    notation."""
    return _has_name(definition) and (
        not _GEMINI_KEYS.isdisjoint(definition) or is_openapi(definition.get("parameters"))
    )


def _is_json_schema(definition: Mapping[str, Any]) -> bool:
    """Return True for a JSON Schema with `properties` and a name or title, and without `parameters`."""
    named = isinstance(definition.get("name"), str) or isinstance(definition.get("title"), str)
    return named and "parameters" not in definition and isinstance(definition.get("properties"), Mapping)


Recogniser = Callable[[Mapping[str, Any]], bool]
Reader = Callable[[Mapping[str, Any], Any], _RawDefinition]

# The first that recognises a definition reads it.
_FORMS: tuple[tuple[Recogniser, Reader], ...] = (
    (lambda d: isinstance(d.get("function"), Mapping), _read_chat),
    (lambda d: _has_name(d) and "input_schema" in d, _read_anthropic),
    (lambda d: _has_name(d) and "inputSchema" in d, _read_mcp),
    (lambda d: d.get("type") == "custom" and (_has_name(d) or isinstance(d.get("custom"), Mapping)), _read_custom),
    (lambda d: _has_name(d) and d.get("type") == "function", _read_top_level_parameters),
    (_is_gemini, _read_gemini),
    (_is_json_schema, _read_json_schema),
    (lambda d: _has_name(d) and is_registry(d.get("parameters")), _read_registry),
    (_has_name, _read_top_level_parameters),
)


def to_provider(tools: Tools, provider: str, *, extensions: bool = False) -> list[Json]:
    """Return the list to send as `tools`, in the order of declaration; for "gemini" it has one object with all
    declarations. Names are those that the provider accepts. `extensions` adds fields that the form does not define;
    hosted servers reject them.

    A schema without a type is sent as an object. Raises `CallerError` for an unknown provider.
    """
    form = check_provider(provider)
    write = _WRITERS[form]
    toolset = tools if isinstance(tools, Toolset) else Toolset(tools)
    names = toolset.wire_names(form)
    written = [write(tool, names[tool.name], extensions) for tool in toolset]
    return [{"functionDeclarations": written}] if form == "gemini" and written else written


def _write_chat(tool: Tool, name: str, extensions: bool) -> Json:
    """Return the definition of a tool under the wire name `name`, in the form of Chat and Ollama. `extensions` adds our
    own fields."""
    return {"type": "function", "function": {**_flat_fields(tool, name), **_extension_fields(tool, name, extensions)}}


def _write_responses(tool: Tool, name: str, extensions: bool) -> Json:
    """Return the definition of a tool under the wire name `name`, in the form of Responses, with `strict: false`.
    `extensions` adds our own fields."""
    # Without "strict" this API makes every argument required.
    return {
        "type": "function",
        **_flat_fields(tool, name),
        "strict": False,
        **_extension_fields(tool, name, extensions),
    }


def _flat_fields(tool: Tool, name: str) -> Json:
    """Return the name, description and parameters of a tool's definition, as Chat and Responses write them."""
    return {"name": name, "description": tool.description, "parameters": _as_object_schema(tool.parameters)}


def _write_messages(tool: Tool, name: str, extensions: bool) -> Json:
    """Return the definition of a tool under the wire name `name`, in the form of Anthropic. `extensions` adds our own
    fields."""
    written = {"name": name, "description": tool.description, "input_schema": _as_object_schema(tool.parameters)}
    return {**written, **_extension_fields(tool, name, extensions)}


def _write_gemini(tool: Tool, name: str, extensions: bool) -> Json:
    """Return the definition of a tool under the wire name `name`, in the form of Gemini; schemas without an equivalent
    in its notation go into the JSON Schema fields. `extensions` adds our own fields."""
    written: Json = {"name": name, "description": tool.description}
    if _as_object_schema(tool.parameters) != NO_PARAMETERS:  # Gemini rejects an object without properties
        written |= _gemini_schema_field("parameters", _as_object_schema(tool.parameters))
    if tool.output_schema is not None:
        written |= _gemini_schema_field("response", tool.output_schema)
    return {**written, **_extension_fields(tool, name, extensions, output=False)}


def _gemini_schema_field(key: str, schema: Json) -> Json:
    """Return a dict with one field: the JSON Schema in Gemini's notation under `key`, or as it is under `key` +
    "JsonSchema" if it has no equivalent."""
    openapi = to_openapi(schema)
    return {f"{key}JsonSchema": schema} if openapi is None else {key: openapi}


def _write_mcp(tool: Tool, name: str, extensions: bool) -> Json:
    """Return the definition of a tool under the wire name `name`, in the form of MCP; `extensions` adds what has no
    place in it under `_meta`."""
    written: Json = {"name": name, "inputSchema": _as_object_schema(tool.parameters)}
    if tool.description:
        written["description"] = tool.description
    marks = _unsupported_fields(tool, name)
    if marks.pop("read_only", False):
        written["annotations"] = {"readOnlyHint": True}
    if tool.output_schema is not None and tool.output_schema.get("type") == "object":
        written["outputSchema"] = tool.output_schema
    elif tool.output_schema is not None:  # MCP has a field for objects only
        marks["output_schema"] = tool.output_schema
    return {**written, "_meta": {META: marks}} if marks and extensions else written


def _as_object_schema(schema: Json) -> Json:
    """Return a copy of a parameters' schema with a missing `type` and `properties` added (no `properties` beside a
    reference); the schema itself if it has both."""
    if "type" in schema and "properties" in schema:
        return schema
    return {"type": "object", **({} if "$ref" in schema else {"properties": {}}), **schema}


def _extension_fields(tool: Tool, name: str, extensions: bool, *, output: bool = True) -> Json:
    """Return the fields that a definition under the wire name `name` gets with `extensions`: the output schema (only if
    `output`), and under `EXTENSION` the tool's flags and its own name if that differs. {} without `extensions`."""
    if not extensions:
        return {}
    marks = _unsupported_fields(tool, name)
    found: Json = dict.fromkeys(OUTPUTS, tool.output_schema) if output and tool.output_schema is not None else {}
    return {**found, EXTENSION: marks} if marks else found


def _unsupported_fields(tool: Tool, name: str) -> Json:
    """Return the tool's fields that no provider defines (aliases, read_only, compact), if they are set, and its own
    name if it differs from the wire name `name`."""
    marks: dict[str, Any] = {"aliases": tool.aliases, "read_only": tool.read_only, "compact": tool.compact}
    marks = {key: value for key, value in marks.items() if value}
    return marks if name == tool.name else {"name": tool.name, **marks}


_WRITERS: dict[str, Callable[[Tool, str, bool], Json]] = {
    "chat": _write_chat,
    "responses": _write_responses,
    "messages": _write_messages,
    "gemini": _write_gemini,
    "ollama": _write_chat,
    "mcp": _write_mcp,
}
