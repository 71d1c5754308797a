"""Make the copy of a schema that is compiled to check calls: plain 2020-12, without what a linear engine cannot run.

    {"pattern": "^(?!x)"}  ->  {}     and a `SchemaRelaxation` that reports it

A relaxed schema accepts whatever the original accepts: where leaving out a pattern would forbid something, as under
`not`, the keyword around it is left out as well. `Tool.parameters` keeps what was declared.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import msgspec

from rightcall.schema.limits import REGEX_SIZE, pattern_size
from rightcall.schema.walk import (
    LISTS,
    MAPS,
    ONE,
    REFS,
    Refs,
    all_schemas,
    draft_of,
    fragment_of,
    ref_stands_alone,
    references,
    schemas_and_targets,
    subschemas,
)
from rightcall.strict_json import pointer_step
from rightcall.types import Json

_FORBIDDING = {"not", "if", "contains", "oneOf"}  # they accept less when what is inside accepts more
_LEFT_OUT = {
    *("$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs", "definitions"),
    *REFS,
}
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,64}").fullmatch


class SchemaRelaxation(msgspec.Struct, frozen=True):
    """A `keyword` in the schema of a `tool` that is not checked, and the `reason`. `path` is a JSON Pointer into the
    tool's parameters."""

    tool: str
    path: str
    keyword: str
    reason: str


def relax_schema(tool: str, parameters: Json) -> tuple[Json, tuple[SchemaRelaxation, ...]]:
    """Return a copy of a tool's schema to compile, and what was left out of it, each once. References in it point into
    its `$defs` or to its root only, because drafts differ in where an anchor counts and which places a pointer may
    name. `parameters` is not changed and must be sound."""
    relaxer = _Relaxer(tool, Refs(parameters))
    return relaxer.copy_document(parameters), tuple(dict.fromkeys(relaxer.made))


# Keywords that drafts up to 7 ignore. In them a `$ref` also replaces all keywords next to it.
_AFTER_7 = frozenset(
    "dependentRequired dependentSchemas unevaluatedItems unevaluatedProperties prefixItems minContains maxContains "
    "$anchor $dynamicRef $dynamicAnchor $recursiveRef".split()
)
_AFTER_6 = _AFTER_7 | {"if", "then", "else"}
_AFTER_4 = _AFTER_6 | {"const", "contains", "propertyNames"}
_AFTER_2019 = frozenset(("prefixItems", "$dynamicRef", "$dynamicAnchor"))
_UNKNOWN_BEFORE = {
    "draft-04": _AFTER_4,
    "draft-06": _AFTER_6,
    "draft-07": _AFTER_7,
    "draft/2019-09": _AFTER_2019,
}


# Escapes and classes are read as a whole, because nothing in them looks around.
_CONSTRUCTS = re.compile(r"(?P<around>\(\?<?[=!]|\\[1-9]|\\k<)|\\.|\[(?:\\.|[^\]\\])*\]?", re.DOTALL)


def _reason_for(pattern: str) -> str:
    """Return the reason, as text, why the regex engine does not compile a pattern: look-around or a back-reference,
    size, or lack of support. Call it only for such a pattern."""
    if any(found["around"] for found in _CONSTRUCTS.finditer(pattern)):
        return "no regex engine that runs in linear time takes this pattern (look-around or a back-reference)"
    if pattern_size(pattern) >= REGEX_SIZE or _are_supported([pattern], _LARGER):
        return f"the pattern is too large: it compiles to more than {REGEX_SIZE:,} bytes"
    return "the regex engine does not support this pattern"


_LARGER = 16 * REGEX_SIZE


@lru_cache(4096)
def runs_in_linear_time(pattern: str) -> bool:
    """Return whether the regex engine that never backtracks compiles this pattern within `REGEX_SIZE`. It has no
    look-around and no back-references; an invalid pattern does not compile."""
    return _are_supported([pattern])


def _are_supported(patterns: list[str], size_limit: int = REGEX_SIZE) -> bool:
    """Return whether the regex engine compiles all these patterns, each within `size_limit` bytes."""
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=size_limit)
    try:
        jsonschema_rs.Draft202012Validator({"allOf": [{"pattern": each} for each in patterns]}, pattern_options=options)
    except ValueError:
        return False
    return True


def _unsupported_patterns(patterns: set[str]) -> set[str]:
    """Return those of the patterns that the regex engine does not compile. All are tried at once first, which is many
    times faster."""
    if not patterns or _are_supported(sorted(patterns)):
        return set()
    return {pattern for pattern in patterns if not runs_in_linear_time(pattern)}


class _Relaxer:
    """Copies one schema and records what is left out."""

    def __init__(self, tool: str, refs: Refs) -> None:
        self.tool, self.refs = tool, refs
        self.names = {id(refs.root): "#"}  # new references, by the id of their target
        self.waiting: dict[str, tuple[Json, str]] = {}  # targets to copy, by their new reference
        self.copied: set[str] = {"#"}
        self.made: list[SchemaRelaxation] = []
        named, patterns = set[str](), set[str]()
        taken: dict[str, int] = {}
        for schema in schemas_and_targets(refs):
            named.update(schema.get("patternProperties", ()))
            patterns.update([schema["pattern"]] if "pattern" in schema else ())
            for ref in references(schema):
                target = refs.get(ref)
                if isinstance(target, dict) and id(target) not in self.names:
                    self.names[id(target)] = f"#/$defs/{_unused_name(ref, taken)}"
        self.refused = _unsupported_patterns(patterns | named)
        self.unknown = _UNKNOWN_BEFORE.get(draft_of(refs.root), frozenset())
        self.ref_stands_alone = ref_stands_alone(refs.root)
        self.names_lost = not named.isdisjoint(self.refused)

    def copy_document(self, root: Json) -> Json:
        """Return the copy of the root schema, with the targets of references in its `$defs`, and fill `made` with what
        was left out. Call it once."""
        copy = self.copy_schema(root, "")
        definitions: Json = {}
        while self.waiting:
            name = next(iter(self.waiting))
            schema, path = self.waiting.pop(name)
            definitions[name.removeprefix("#/$defs/")] = self.copy_schema(schema, path)
        return {**copy, "$defs": definitions} if definitions else copy

    def copy_subschema(self, schema: Any, path: str) -> Any:
        """Return the copy of a subschema at `path`. The target of a reference is copied to `$defs` later, and a
        reference is returned in its place. A value that is no object is returned unchanged."""
        if not isinstance(schema, dict):
            return schema
        return {"$ref": self.name_target(schema, path)} if id(schema) in self.names else self.copy_schema(schema, path)

    def name_target(self, schema: Json, path: str) -> str:
        """Return the new reference of a target, and register the target, found at `path`, to be copied later, once."""
        name = self.names[id(schema)]
        if name not in self.copied:
            self.copied.add(name)
            self.waiting[name] = schema, path
        return name

    def copy_schema(self, schema: Json, path: str) -> Json:
        """Return the copy of one schema object, found at `path`, with its subschemas, in the notation of 2020-12 and
        without unsupported patterns."""
        if self.ref_stands_alone and isinstance(schema.get("$ref"), str):
            schema = {"$ref": schema["$ref"]}
        words = [(word, value) for word, value in schema.items() if word not in _LEFT_OUT and word not in self.unknown]
        copy = {word: self.copy_keyword(word, value, f"{path}{pointer_step(word)}") for word, value in words}
        _modernize(copy)
        self.add_references(copy, schema)
        if self.refused:
            self.drop_patterns(copy, schema, path)
        if copy.pop("nullable", None) is True:
            _allow_null(copy)
        return copy

    def add_references(self, copy: Json, schema: Json) -> None:
        """Add the references of `schema` to its copy as plain `$ref`, or in `allOf`. In one document without inner ids
        all kinds of references mean the same."""
        for ref in references({word: value for word, value in schema.items() if word not in self.unknown}):
            target = self.refs.get(ref)
            if target is True:
                continue
            made: Any = {"$ref": self.name_target(target, fragment_of(ref))} if isinstance(target, dict) else False
            if made is False or "$ref" in copy:
                copy["allOf"] = [*copy.get("allOf", ()), made]
            else:
                copy |= made

    def copy_keyword(self, word: str, value: Any, path: str) -> Any:
        """Return the value of a keyword with copies of the schemas in it; a value without schemas is returned as it is,
        not copied."""
        if word in LISTS or (word == "items" and isinstance(value, list)):
            return [self.copy_subschema(item, f"{path}/{at}") for at, item in enumerate(value)]
        if word in MAPS:
            return {key: self.copy_subschema(item, path + pointer_step(key)) for key, item in value.items()}
        return self.copy_subschema(value, path) if word in ONE else value

    def drop_patterns(self, copy: Json, schema: Json, path: str) -> None:
        """Remove the unsupported patterns of `schema` from its copy, with the keywords that would forbid more without
        them, and record each."""
        if copy.get("pattern") in self.refused:
            self.drop(copy, "pattern", path, _reason_for(copy["pattern"]))
        named = [key for key in copy.get("patternProperties", ()) if key in self.refused]
        for key in named:
            del copy["patternProperties"][key]
            self.record(f"{path}/patternProperties{pointer_step(key)}", "patternProperties", _reason_for(key))
        if named:
            self.drop(copy, "additionalProperties", path, "a pattern beside it that allows names was left out")
        if self.names_lost:
            self.drop(copy, "unevaluatedProperties", path, "a pattern that allows names was left out")
        self.drop_forbidding(copy, schema, path)

    def drop_forbidding(self, copy: Json, schema: Json, path: str) -> None:
        """Remove from the copy, and record, the keywords that forbid more when a schema inside them accepts more, if
        something was left out there: `not`, `if` with its branches, `maxContains`. `oneOf` becomes `anyOf`."""
        inside = {
            sub.keyword for sub in subschemas(schema) if sub.keyword in _FORBIDDING and self.may_change(sub.schema)
        }
        why = "a pattern inside it was left out"
        if "not" in inside:
            self.drop(copy, "not", path, why)
        if "if" in inside:
            for word in ("then", "else", "if"):
                self.drop(copy, word, path, why)
        if "contains" in inside:
            self.drop(copy, "maxContains", path, why)
        if "oneOf" in inside:
            self.record(f"{path}/oneOf", "oneOf", f"{why}; it is checked as anyOf")
            copy.setdefault("allOf", []).append({"anyOf": copy.pop("oneOf")})

    def may_change(self, schema: Any) -> bool:
        """Return whether something is left out inside a schema, or possibly behind a reference in it."""
        return any(
            any(word in inner for word in REFS)
            or inner.get("pattern") in self.refused
            or (self.names_lost and "unevaluatedProperties" in inner)
            or not self.refused.isdisjoint(inner.get("patternProperties", ()))
            for inner in all_schemas(schema)
        )

    def drop(self, copy: Json, word: str, path: str, reason: str) -> None:
        """Remove a keyword from the copy and record it; do nothing if the copy does not have it."""
        if word in copy:
            del copy[word]
            self.record(f"{path}{pointer_step(word)}", word, reason)

    def record(self, path: str, word: str, reason: str) -> None:
        """Record that a keyword is not checked."""
        self.made.append(SchemaRelaxation(self.tool, path, word, reason))


def _modernize(schema: Json) -> None:
    """Replace in place the notation of older drafts by that of 2020-12: lists in `items`, boolean `exclusiveMinimum`
    and `exclusiveMaximum`, `dependencies`. Subschemas are not changed."""
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        if "additionalItems" in schema:
            schema["items"] = schema.pop("additionalItems")
        if not schema["prefixItems"]:
            del schema["prefixItems"]
    schema.pop("additionalItems", None)  # it has no meaning without a list of items
    for limit, word in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(word), bool) and schema.pop(word) and limit in schema:
            schema[word] = schema.pop(limit)
    for key, needs in schema.pop("dependencies", {}).items():
        schema.setdefault("dependentRequired" if isinstance(needs, list) else "dependentSchemas", {})[key] = needs


def _allow_null(schema: Json) -> None:
    """Change a schema in place so that it also accepts null, as `nullable: true` of OpenAPI means."""
    if "type" in schema:
        said = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = said if "null" in said else [*said, "null"]
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if "enum" in schema and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    for word in ("anyOf", "oneOf"):
        if word in schema:
            schema[word] = [*schema[word], {"type": "null"}]
    taken = {word: schema.pop(word) for word in ("$ref", "allOf") if word in schema}
    if taken:
        inner = schema.pop("anyOf", None)
        both: Json = {"anyOf": [taken, {"type": "null"}]}
        schema.update(both if inner is None else {"allOf": [both, {"anyOf": inner}]})


def _unused_name(ref: str, taken: dict[str, int]) -> str:
    """Return an unused name for the target of the reference `ref`, and count it in `taken`: its last step if that has
    plain characters only, else "part", with a number if it is taken."""
    last = ref.rpartition("/")[2]
    name = last if _PLAIN_NAME(last) else "part"
    count = taken[name] = taken.get(name, 0) + 1
    return name if count == 1 else _unused_name(f"/{name[:40]}_{count}", taken)
