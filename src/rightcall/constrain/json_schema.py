"""Plain JSON Schema for engines and providers that take nothing else, cut to what each of them understands.

    project(schema, "openai")  ->  the schema with every property required, and what that allows or no longer forbids

A dialect lists the keywords that a server accepts. The schema of a whole call has the keys of the format's envelope, or
`name` and `arguments`.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from rightcall.constrain.intersect import Relaxation
from rightcall.errors import CallerError
from rightcall.formats.body_kinds import BODIES
from rightcall.schema.walk import LISTS, MAPS, ONE, REFS, Refs, direct_subschemas, references
from rightcall.strict_json import pointer_step
from rightcall.types import Json

if TYPE_CHECKING:
    from rightcall.constrain.grammars import Grammar

_SHAPE = "type properties required additionalProperties items enum const anyOf $ref $defs description title".split()
_NUMBERS = "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf".split()
_TEXT = "minLength maxLength pattern format".split()


_VALUES = frozenset(("const", "enum", "default", "examples"))
_FORBIDS_NOTHING = frozenset("$comment examples default deprecated readOnly writeOnly definitions $schema $id".split())


class SchemaDialect(msgspec.Struct, frozen=True):
    """The JSON Schema keywords that a server accepts.

    `words`: the accepted keywords, None for all. `closed`: objects take no undeclared members. `all_required`: optional
    members are sent as null instead of being omitted. `recursive`: a schema may contain itself.
    `anchored`: a `pattern` is sent only if it begins with `^` and ends with `$`. `min_items`: the largest `minItems`
    that is sent, None for any. `formats`: the values of `format` that are sent, None for all; an engine that asserts
    formats narrower than they are gets none."""

    words: frozenset[str] | None = None
    closed: bool = False
    all_required: bool = False
    recursive: bool = True
    anchored: bool = False
    min_items: int | None = None
    formats: frozenset[str] | None = None


_PROVIDER_FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split())

DIALECTS: dict[str, SchemaDialect] = {
    "": SchemaDialect(),
    "openai": SchemaDialect(
        frozenset([*_SHAPE, *_NUMBERS, "pattern", "format", "minItems", "maxItems"]),
        True,
        True,
        formats=_PROVIDER_FORMATS,
    ),
    "anthropic": SchemaDialect(
        frozenset([*_SHAPE, "allOf", "default", "format", "minItems"]),
        True,
        recursive=False,
        min_items=1,
        formats=_PROVIDER_FORMATS | {"uri"},
    ),
    "ollama": SchemaDialect(
        frozenset([*_SHAPE, "oneOf", "allOf", "minItems", "maxItems", "prefixItems", "definitions", *_TEXT, *_NUMBERS])
        - {"multipleOf"},
        anchored=True,
        formats=frozenset(),
    ),
    "xgrammar": SchemaDialect(
        frozenset(
            [
                *_SHAPE,
                "oneOf",
                "allOf",
                "minItems",
                "maxItems",
                "prefixItems",
                "minProperties",
                "maxProperties",
                "definitions",
                *_TEXT,
                *_NUMBERS,
            ]
        )
        - {"multipleOf"},
        formats=frozenset(),
    ),
}


def dialect_of(name: str) -> SchemaDialect:
    """Return the dialect of this name; "" is plain JSON Schema. Raises `CallerError` for an unknown one."""
    found = DIALECTS.get(name)
    if found is None:
        raise CallerError(
            f"there is no dialect {name!r} of JSON Schema; name one of {', '.join(filter(None, DIALECTS))}"
        )
    return found


def emit_json_schema(grammar: Grammar, dialect: str = "") -> Json:
    """Return the JSON Schema of a call, whatever the choice requires, or of a list of calls if `dialect` is "" and
    calls may be parallel. Raises `CallerError` for an unknown dialect."""
    return call_schema(grammar, dialect)[0]


def call_schema(grammar: Grammar, dialect: str) -> tuple[Json, tuple[Relaxation, ...]]:
    """Return the JSON Schema of a call, or of a list of calls if `dialect` is "" and calls may be parallel, and the
    constraints that the dialect cannot express. The choice only selects the tool: for "auto" and "none" it is a call of
    any. For "openai", several tools are alternatives under the key `call`. Raises `CallerError` for an unknown
    dialect."""
    body = grammar.format.bodies[0]
    keys = BODIES[type(body)].keys(body)
    names = (keys[0][0], keys[1][0]) if keys is not None else ("name", "arguments")
    limits: list[Relaxation] = []
    calls: list[Json] = []
    defs: Json = {}
    for at, name in enumerate(grammar.names):
        if grammar.choice not in ("auto", "required", "none", name):
            continue
        schema, made = project(grammar.tools.schema(name) or {}, dialect, name, formats=grammar.options.formats)
        limits += made
        defs[f"tool_{at}"] = _rebase(schema, f"#/$defs/tool_{at}")
        fields = {names[0]: {"type": "string", "const": name}, names[1]: {"$ref": f"#/$defs/tool_{at}"}}
        calls.append({"type": "object", "properties": fields, "required": list(names), "additionalProperties": False})
    one: Json = calls[0] if len(calls) == 1 else {"anyOf": calls}
    whole: Json = {"type": "array", "items": one, "minItems": 1} if grammar.parallel and not dialect else one
    if dialect == "openai" and "anyOf" in whole:
        # The root must be an object.
        whole = {"type": "object", "properties": {"call": whole}, "required": ["call"], "additionalProperties": False}
    return {**whole, "$defs": defs}, tuple(limits)


def _rebase(value: Any, under: str) -> Any:
    """Return a copy of a schema with its local references changed for a document that has it at the reference `under`,
    such as `#/$defs/tool_0`. The values of `const`, `enum`, `default` and `examples` are not changed."""
    if isinstance(value, dict):
        return {key: _rebase_member(key, item, under) for key, item in value.items()}
    return [_rebase(item, under) for item in value] if isinstance(value, list) else value


def _rebase_member(key: str, item: Any, under: str) -> Any:
    """Return a copy of the value `item` of the keyword `key` of a schema, with its local references changed for a
    document that has the schema at the reference `under`."""
    if key in REFS and isinstance(item, str) and (item == "#" or item.startswith("#/")):
        return under + item[1:]
    if key in _VALUES:
        return item
    if key in MAPS and isinstance(item, dict):
        return {name: _rebase(part, under) for name, part in item.items()}
    return _rebase(item, under)


def project(
    schema: Json, dialect: str, tool: str = "", *, formats: bool = False
) -> tuple[Json, tuple[Relaxation, ...]]:
    """Return a copy of the schema with only the keywords that the dialect accepts, its objects closed and their members
    required if it demands that, and the constraints that are thereby lost or changed, reported for `tool`. With
    `formats`, a dropped `format` counts as one. Raises `CallerError` for an unknown dialect."""
    projector = _Projector(schema, dialect_of(dialect), tool, formats)
    made = projector.project_schema(schema, "")
    moved: Json = {}
    while projector.waiting:
        name, target, path = projector.waiting.pop()
        moved[name] = projector.project_schema(target, path)
    if moved:
        made["$defs"] = {**made.get("$defs", {}), **moved}
    return made, tuple(dict.fromkeys(projector.limits))


class _Projector:
    """Copies the schema `root`, with its subschemas, into a dialect. `limits` collects the constraints that the copy
    loses, reported for `tool`; with `formats`, a dropped `format` is one of them."""

    def __init__(self, root: Json, dialect: SchemaDialect, tool: str, formats: bool) -> None:
        self.refs, self.dialect, self.tool, self.formats = Refs(root), dialect, tool, formats
        self.limits: list[Relaxation] = []
        self.waiting: list[tuple[str, Any, str]] = []  # targets of references whose place the dialect drops
        self.names: dict[int, str] = {}
        self.numbers = count()
        self.circles = {} if dialect.recursive else _number_circular_schemas(root, self.refs)

    def limit(self, path: str, word: str, allows: str) -> None:
        """Record a constraint that the copy loses, and what it therefore allows."""
        self.limits.append(Relaxation(self.tool, path, word, allows))

    def project_schema(self, schema: Any, path: str) -> Any:
        """Return the copy of a subschema in the dialect, and record in `limits` the constraints that it loses or
        changes. A schema that contains itself, where the dialect forbids that, becomes any value, or an empty object if
        the dialect is `closed`."""
        if not isinstance(schema, dict):
            return self._project_boolean(schema)
        if not self.dialect.recursive and self._is_circular(schema):
            allows = "an empty object alone" if self.dialect.closed else "any value"
            self.limit(f"{path}/$ref", "$ref", f"{allows}: this provider does not support recursive schemas")
            return {"type": "object", "additionalProperties": False} if self.dialect.closed else {}
        made = {}
        for word, value in schema.items():
            if self._keeps_keyword(word, value, path):
                made[word] = self._project_keyword(word, value, f"{path}{pointer_step(word)}")
        if self.dialect.closed:
            self._forbid_undeclared_members(made, schema, path)
        if self.dialect.all_required:
            self._require_all_members(made, path)
        return made

    def _project_reference(self, ref: str) -> str:
        """Return a reference to the same schema that is valid in the copy. If the dialect drops a keyword on its path,
        or its anchor, the reference leads to `$defs`, and the target is put in `waiting` to be copied there."""
        head, _, rest = ref.removeprefix("#/").partition("/")
        kept = self.dialect.words is None or (head == "$defs" and "/" not in rest)
        target = self.refs.get(ref)
        if ref == "#" or (ref.startswith("#/") and kept) or not isinstance(target, (dict, bool)):
            return ref
        if id(target) not in self.names:
            taken = self.refs.root.get("$defs", ())
            name = self.names[id(target)] = next(n for at in self.numbers if (n := f"ref_{at}") not in taken)
            self.waiting.append((name, target, ref.removeprefix("#")))
        return f"#/$defs/{self.names[id(target)]}"

    def _project_boolean(self, schema: Any) -> Any:
        """Return true or false as `{}` or `{"enum": []}` where the dialect takes no booleans; any other value
        unchanged."""
        return schema if self.dialect.words is None or not isinstance(schema, bool) else {} if schema else {"enum": []}

    def _is_circular(self, schema: Json) -> bool:
        """Return whether the target of a schema's `$ref` leads back to that schema; False without `$ref`."""
        if "$ref" not in schema:
            return False
        target = self.refs.get(schema["$ref"])
        return self.circles.get(id(schema)) == self.circles.get(id(target), -1)

    def _keeps_keyword(self, word: str, value: Any, path: str) -> bool:
        """Return whether the dialect accepts this keyword with this value. If not, record in `limits` what the schema
        then allows; annotations and `$anchor` are dropped without a record."""
        if word == "$anchor":
            return False  # references to it are rewritten as paths
        if word == "format" and self.dialect.formats is not None and value not in self.dialect.formats:
            if self.formats:
                self.limit(f"{path}/format", "format", "any text: the engine does not assert this format as it is")
            return False
        allows = self._allowed_without(word, value)
        if allows and word not in _FORBIDS_NOTHING:
            self.limit(f"{path}{pointer_step(word)}", word, allows)
        return not allows

    def _allowed_without(self, word: str, value: Any) -> str:
        """Return what the schema allows without this keyword, as text for a report; "" if the dialect accepts the
        keyword with this value."""
        dialect = self.dialect
        if dialect.words is not None and word not in dialect.words:
            return "what this keyword forbids: the engine does not know it"
        if word == "pattern" and dialect.anchored and not (value.startswith("^") and value.endswith("$")):
            return "any text: the engine takes only anchored patterns"
        if word == "minItems" and dialect.min_items is not None and value > dialect.min_items:
            return "fewer items"
        return ""

    def _project_keyword(self, word: str, value: Any, path: str) -> Any:
        """Return the value of the keyword `word` for the copy, with its subschemas copied into the dialect and its
        reference rewritten; other values unchanged."""
        if word == "$ref":
            return self._project_reference(value)
        if word in LISTS:
            return [self.project_schema(item, f"{path}/{at}") for at, item in enumerate(value)]
        if word in MAPS:
            return {key: self.project_schema(item, path + pointer_step(key)) for key, item in value.items()}
        if word == "additionalProperties" and isinstance(value, bool):
            return value  # the only place where every engine takes a boolean, and none an empty list of constants
        return self.project_schema(value, path) if word in ONE else value

    def _forbid_undeclared_members(self, made: Json, schema: Json, path: str) -> None:
        """Add `additionalProperties: false` to the copy `made` of an object schema, and record it in `limits` if
        `schema` allows undeclared members. Do nothing for other schemas."""
        said = schema.get("type")
        if "properties" in made or said == "object" or (isinstance(said, list) and "object" in said):
            # A schema without `properties` describes its members here, or not at all.
            if schema.get("additionalProperties", "properties" not in schema) is not False:
                self.limit(
                    f"{path}/additionalProperties",
                    "additionalProperties",
                    "no undeclared members, which the schema would take",
                )
            made["additionalProperties"] = False
            made.setdefault("properties", {})

    def _require_all_members(self, made: Json, path: str) -> None:
        """Make all declared members required in the copy `made`. The optional ones may then be null instead, which is
        recorded in `limits`. Do nothing without `properties`."""
        properties = made.get("properties")
        if not isinstance(properties, dict):
            return
        for key in properties:
            if key not in made.get("required", ()):
                properties[key] = _or_null(properties[key])
                self.limit(
                    f"{path}/properties{pointer_step(key)}", "required", "null, where the member would be left out"
                )
        made["required"] = list(properties)


def _number_circular_schemas(root: Json, refs: Refs) -> dict[int, int]:
    """Return a number for `root` and each schema that it contains or refers to, by its `id()`. Schemas that lead to
    each other in a circle have the same number (strongly connected components), all others different ones."""
    back: dict[int, list[int]] = {id(root): []}
    seen: set[int] = set()
    order: list[int] = []
    waiting: list[tuple[Json, bool]] = [(root, False)]
    while waiting:
        here, done = waiting.pop()
        if done:
            order.append(id(here))
        elif id(here) not in seen:
            seen.add(id(here))
            waiting.append((here, True))
            for part in _successors(here, refs):
                back.setdefault(id(part), []).append(id(here))
                waiting.append((part, False))
    found: dict[int, int] = {}
    for start in reversed(order):
        group = [start]
        while group:
            one = group.pop()
            if one not in found:
                found[one] = start
                group += [other for other in back[one] if other not in found]
    return found


def _successors(schema: Json, refs: Refs) -> list[Json]:
    """Return the subschemas of a schema, one level down, and the targets of its references; only those that are
    objects."""
    found = [*direct_subschemas(schema), *map(refs.get, references(schema))]
    return [one for one in found if isinstance(one, dict)]


def _or_null(schema: Any) -> Json:
    """Return a schema that accepts what this one does and null; the same one if its `type` has null already."""
    if isinstance(schema, dict) and "type" in schema and "enum" not in schema and "const" not in schema:
        said = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return schema if "null" in said else {**schema, "type": [*said, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}
