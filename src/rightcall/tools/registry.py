"""The registry form of tools: a map from each parameter's name to its description or schema.

    {"tools": [{"name": "read", "parameters": {"path": "Where", "limit": {"type": "int", "required": false}}}]}

A parameter is required unless it has `"required": false`; a string alone is its description. References point into the
whole registry; their targets are copied into the tool, so that a `Tool` is self-contained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rightcall.schema.definition import (
    copy_plain,
    is_keyword,
    is_unset_by_null,
    schema_of_type_name,
    text_schema,
    type_of_word,
)
from rightcall.schema.limits import Refused
from rightcall.schema.walk import LISTS, MAPS, ONE, Refs
from rightcall.strict_json import escape_step, pointer_step
from rightcall.types import Json

_OF_OBJECTS = frozenset(
    (
        *("additionalProperties", "unevaluatedProperties", "patternProperties", "propertyNames"),
        *("dependentSchemas", "dependentRequired"),
    )
)


def is_registry(parameters: Any) -> bool:
    """Return True for a map of parameters, False for a JSON Schema of them.

    It is a schema if all keys are JSON Schema keywords with valid values (`{"minProperties": 1}`), or if a keyword has
    a value that cannot describe a parameter (`"additionalProperties": false`), applies to objects
    (`"if": {"required": ["a"]}`), names their type (`"type": "Object"`) or a draft. Strings under the names of other
    keywords (`{"title": "The title"}`) describe parameters: a schema of strings alone would allow anything. A keyword
    that is null is unset, and no parameter; a word that JSON Schema does not know (`strict`, `x-order`) is none either
    if its value cannot describe one.
    """
    if not isinstance(parameters, Mapping) or not parameters:
        return False
    kind = parameters.get("type")
    if isinstance(kind, list) or _allows_objects(kind) or is_keyword("$schema", parameters.get("$schema")):
        return False
    given = {key: value for key, value in parameters.items() if not _is_ignored_entry(key, value)}
    keywords = [key for key, value in given.items() if key != "type" and is_keyword(key, value)]
    only_texts = all(isinstance(value, str) and not key.startswith("$") for key, value in parameters.items())
    known = [key for key, value in given.items() if not _is_no_parameter(value) or is_keyword(key, value)]
    if len(keywords) == len(known) and not only_texts:
        return False
    if any(_is_no_parameter(given[key]) or _applies_to_objects(key, given[key]) for key in keywords):
        return False
    inner = given.get("properties")
    if isinstance(inner, Mapping) and all(isinstance(item, (Mapping, bool)) for item in inner.values()):
        return False
    return not isinstance(given.get("$ref"), str)


def _allows_objects(kind: Any) -> bool:
    """Return whether `kind`, the value of a keyword `type`, is a name of the type object in any case, or of a union
    with it, such as `Object` or `dict | None`. False for any other value, also for the definition of a parameter named
    "type"."""
    named = (schema_of_type_name(kind) or {}).get("type")
    return named == "object" or (isinstance(named, list) and "object" in named)


def _applies_to_objects(word: str, value: Any) -> bool:
    """Return True if the value of a keyword is a schema of arguments, and not the description of a parameter that is
    called like the keyword: the keyword is about the members of objects, or the value requires or declares some, and is
    no type of its own."""
    if word in _OF_OBJECTS or not isinstance(value, Mapping) or "type" in value or "description" in value:
        return word in _OF_OBJECTS
    return isinstance(value.get("required"), list) or isinstance(value.get("properties"), Mapping)


def _is_ignored_entry(key: str, value: Any) -> bool:
    """Return whether an entry in a map of parameters is to be skipped, being neither a parameter nor a valid keyword of
    a schema: a keyword that is null, as serializers write unset fields; a flag or a number under a name that is no
    keyword with such a value (`"strict": true`, but not `"additionalProperties": false`); an `x-` extension whose value
    is neither text nor an object."""
    if key.startswith("x-") or isinstance(value, (bool, int, float)):
        return _is_no_parameter(value) and not is_keyword(key, value)
    return value is None and is_unset_by_null(key)


def _is_no_parameter(value: Any) -> bool:
    """Return True if the value cannot describe a parameter: it is neither a string nor an object."""
    return not isinstance(value, (str, Mapping))


def parameters_schema(parameters: Mapping[str, Any], root: Any) -> Json:
    """Return the JSON Schema of a map of parameters in the registry form: required ones first, then by name. Other
    arguments are not allowed. Raises `Refused` for a reference that points at nothing in `root`, the whole registry."""
    writer = _RegistryWriter(root)
    parameters = {key: value for key, value in parameters.items() if not _is_ignored_entry(key, value)}
    required = sorted(key for key, given in parameters.items() if not _is_optional(given))
    names = required + sorted(parameters.keys() - set(required))
    properties = {key: writer.convert_parameter(parameters[key], pointer_step(key)) for key in names}
    schema: Json = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    definitions = writer.finish()
    return {**schema, "$defs": definitions} if definitions else schema


def _is_optional(given: Any) -> bool:
    """Return True if a parameter's definition is an object with `"required": false`."""
    return isinstance(given, Mapping) and given.get("required") is False


class _RegistryWriter:
    """Convert parameter definitions to schemas and collect the definitions that they reference."""

    def __init__(self, root: Any) -> None:
        self.refs = Refs(root)
        self.names: dict[str, str] = {}
        self.definitions: Json = {}
        self.waiting: list[tuple[str, Any, str]] = []

    def finish(self) -> Json:
        """Return the definitions that were referenced, by name, after converting them and those that they reference in
        turn. Call this once, at the end. Raises `Refused` for a reference that points at nothing."""
        while self.waiting:
            name, target, path = self.waiting.pop()
            self.definitions[name] = self.convert_schema(copy_plain(target), path)
        return self.definitions

    def convert_parameter(self, given: Any, path: str) -> Json:
        """Return the schema of one parameter; a value that is no object is its description. `path` is its place for
        errors. Raises `Refused` for a reference that points at nothing."""
        if not isinstance(given, Mapping):
            return text_schema(str(given))
        schema: Json = self.convert_schema(given, path)
        if not isinstance(schema.get("required"), list):
            schema.pop("required", None)
        return schema

    def convert_schema(self, given: Any, path: str) -> Any:
        """Return a definition as JSON Schema, with all schemas inside. A string is a type, words such as `int` are
        translated, the type `any` is dropped, `example` becomes `examples`, and `required: true` of a property moves to
        the object's `required`.

        Targets of references are queued for `finish`; one that does not exist raises `Refused`, with its place below
        `path`. Any other value that is no object is returned unchanged.
        """
        if isinstance(given, str):
            given = {"type": given}
        if not isinstance(given, Mapping):
            return given
        new: Json = {
            word: self.convert_keyword(word, value, f"{path}{pointer_step(word)}") for word, value in given.items()
        }
        if "example" in new and not isinstance(new.get("examples"), list):
            new["examples"] = [new["example"]]
        new.pop("example", None)
        if new.get("type") == "any":
            del new["type"]
        return _collect_required(new, given.get("properties"))

    def convert_keyword(self, key: str, value: Any, path: str) -> Any:
        """Return the value of the schema keyword `key` with type words, references and inner schemas converted; values
        of other keywords stay as they are. `path` is its place for errors. Raises `Refused` for a reference that points
        at nothing."""
        if key == "type":
            return (
                [_translate_type_word(item) for item in value]
                if isinstance(value, list)
                else _translate_type_word(value)
            )
        if key == "$ref" and isinstance(value, str):
            return self.convert_reference(value, path)
        if key in LISTS and isinstance(value, list):
            return [self.convert_schema(item, f"{path}/{at}") for at, item in enumerate(value)]
        if key in MAPS and isinstance(value, Mapping):
            return {
                name: _drop_required_flag(self.convert_schema(item, path + pointer_step(name)))
                for name, item in value.items()
            }
        return self.convert_schema(value, path) if key in ONE else value

    def convert_reference(self, ref: str, path: str) -> str:
        """Return the reference to the target's definition in `$defs`, which is queued for `finish` at the first
        reference. Raises `Refused`, with the place `path`, if the target does not exist."""
        if ref not in self.names:
            target = self.refs.get(ref)
            if target is None:
                raise Refused(path, f"{ref[:80]!r} points at nothing in this registry", "correct the reference")
            self.names[ref] = name = self.unused_name(ref.rpartition("/")[2] or "root")
            self.definitions[name] = {}
            self.waiting.append((name, target, path))
        return f"#/$defs/{escape_step(self.names[ref])}"

    def unused_name(self, name: str) -> str:
        """Return `name`, or `name` with a number appended if `definitions` has it already. It is not reserved: add the
        definition before the next call."""
        number, new = 1, name
        while new in self.definitions:
            number, new = number + 1, f"{name}{number + 1}"
        return new


def _translate_type_word(given: Any) -> Any:
    """Return the JSON Schema type that a word such as `int` means; any other value unchanged."""
    return type_of_word(given) or given if isinstance(given, str) else given


def _collect_required(new: Json, properties: Any) -> Json:
    """Return the converted schema `new` with the names of those `properties` added to its `required` that were marked
    `required: true` themselves; `properties` are those before conversion."""
    if not isinstance(properties, Mapping):
        return new
    flagged = [key for key, item in properties.items() if isinstance(item, Mapping) and item.get("required") is True]
    listed = new["required"] if isinstance(new.get("required"), list) else []
    both = [*listed, *(key for key in flagged if key not in listed)]
    return {**new, "required": both} if both else new


def _drop_required_flag(schema: Any) -> Any:
    """Return the schema of a property without a boolean `required`, which belongs to the registry form; a list
    remains."""
    if isinstance(schema, dict) and isinstance(schema.get("required"), bool):
        return {word: value for word, value in schema.items() if word != "required"}
    return schema
