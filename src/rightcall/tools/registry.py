"""The registry form: a map from each parameter's name to what it is.

    {"tools": [{"name": "read", "parameters": {"path": "Where", "limit": {"type": "int", "required": false}}}]}

A parameter is required unless it says `"required": false`; a text alone is its description. References point into the
whole registry; what they point at is copied into the tool, so that a `Tool` stands on its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rightcall.json_pointer import escaped, step
from rightcall.schema.definition import is_keyword, plain, text_schema, word
from rightcall.schema.limits import Refused
from rightcall.schema.walk import LISTS, MAPS, ONE, Refs
from rightcall.types import Json


def is_registry(parameters: Any) -> bool:
    """Is this a map of parameters, and not a JSON Schema of them?

    It is a schema where all keys are keywords of JSON Schema with values that these may have (`{"minProperties": 1}`),
    or where a keyword has a value that describes no parameter (`"additionalProperties": false`). Texts under the names
    of keywords (`{"title": "The title"}`) describe parameters: a schema of nothing but texts would allow anything.
    """
    if not isinstance(parameters, Mapping) or not parameters:
        return False
    said = parameters.get("type")
    if said in ("object", "OBJECT") or isinstance(said, list):
        return False
    if parameters.keys() == {"type"} and isinstance(said, str) and word(said) == "object":
        return False
    keywords = [key for key, value in parameters.items() if key != "type" and is_keyword(key, value)]
    only_texts = all(isinstance(value, str) and not key.startswith("$") for key, value in parameters.items())
    if len(keywords) == len(parameters) and not only_texts:
        return False
    if any(_is_no_parameter(parameters[key]) for key in keywords):
        return False
    inner = parameters.get("properties")
    if isinstance(inner, Mapping) and all(isinstance(item, (Mapping, bool)) for item in inner.values()):
        return False
    return not isinstance(parameters.get("$ref"), str)


def _is_no_parameter(value: Any) -> bool:
    """Does this describe no parameter? One is described by a text or an object."""
    return not isinstance(value, (str, Mapping))


def parameters_schema(parameters: Mapping[str, Any], root: Any) -> Json:
    """The JSON Schema of a map of parameters: required ones first, then by name."""
    writer = _RegistryWriter(root)
    required = sorted(key for key, given in parameters.items() if not _is_optional(given))
    names = required + sorted(parameters.keys() - set(required))
    properties = {key: writer.parameter(parameters[key], step(key)) for key in names}
    schema: Json = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    definitions = writer.finish()
    return {**schema, "$defs": definitions} if definitions else schema


def _is_optional(given: Any) -> bool:
    return isinstance(given, Mapping) and given.get("required") is False


class _RegistryWriter:
    """Rewrites definitions as schemas and collects what they refer to."""

    def __init__(self, root: Any) -> None:
        self.refs = Refs(root)
        self.names: dict[str, str] = {}
        self.definitions: Json = {}
        self.waiting: list[tuple[str, Any, str]] = []

    def finish(self) -> Json:
        """The definitions, once all that they refer to is in as well."""
        while self.waiting:
            name, target, path = self.waiting.pop()
            self.definitions[name] = self.schema(plain(target), path)
        return self.definitions

    def parameter(self, given: Any, path: str) -> Json:
        if not isinstance(given, Mapping):
            return text_schema(str(given))
        schema: Json = self.schema(given, path)
        if not isinstance(schema.get("required"), list):
            schema.pop("required", None)
        return schema

    def schema(self, given: Any, path: str) -> Any:
        if isinstance(given, str):
            given = {"type": given}
        if not isinstance(given, Mapping):
            return given
        new: Json = {word: self.keyword(word, value, f"{path}{step(word)}") for word, value in given.items()}
        if "example" in new and not isinstance(new.get("examples"), list):
            new["examples"] = [new["example"]]
        new.pop("example", None)
        if new.get("type") == "any":
            del new["type"]
        return _with_required(new, given.get("properties"))

    def keyword(self, key: str, value: Any, path: str) -> Any:
        if key == "type":
            return [_word(item) for item in value] if isinstance(value, list) else _word(value)
        if key == "$ref" and isinstance(value, str):
            return self.reference(value, path)
        if key in LISTS and isinstance(value, list):
            return [self.schema(item, f"{path}/{at}") for at, item in enumerate(value)]
        if key in MAPS and isinstance(value, Mapping):
            return {name: _without_flag(self.schema(item, path + step(name))) for name, item in value.items()}
        return self.schema(value, path) if key in ONE else value

    def reference(self, ref: str, path: str) -> str:
        if ref not in self.names:
            target = self.refs.get(ref)
            if target is None:
                raise Refused(path, f"{ref[:80]!r} points at nothing in this registry", "correct the reference")
            self.names[ref] = name = self.fresh(ref.rpartition("/")[2] or "root")
            self.definitions[name] = {}
            self.waiting.append((name, target, path))
        return f"#/$defs/{escaped(self.names[ref])}"

    def fresh(self, name: str) -> str:
        """Two places whose last steps are alike are two types."""
        number, new = 1, name
        while new in self.definitions:
            number, new = number + 1, f"{name}{number + 1}"
        return new


def _word(said: Any) -> Any:
    return word(said) or said if isinstance(said, str) else said


def _with_required(new: Json, properties: Any) -> Json:
    """Inside an object too, a property may say itself that it is required."""
    if not isinstance(properties, Mapping):
        return new
    flagged = [key for key, item in properties.items() if isinstance(item, Mapping) and item.get("required") is True]
    listed = new["required"] if isinstance(new.get("required"), list) else []
    both = [*listed, *(key for key in flagged if key not in listed)]
    return {**new, "required": both} if both else new


def _without_flag(schema: Any) -> Any:
    if isinstance(schema, dict) and isinstance(schema.get("required"), bool):
        return {word: value for word, value in schema.items() if word != "required"}
    return schema
