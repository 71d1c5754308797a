"""JSON Schema as TypeScript: one declaration per tool, the types they share once.

    declare function run(args: { command: string /* required — Shell command. */ }): string;
    /**
     * Runs a shell command.
     */

What TypeScript has no word for (bounds, formats, patterns) stands in comments. References become type names, so that a
recursive schema ends; local references of any depth resolve, and what stands beside one is kept. The rules are those of
`docs/decisions/009-what-a-declaration-says.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rightcall.contracts.bounds import notes
from rightcall.contracts.escape import Harmless
from rightcall.contracts.shared_types import TypeNames, is_reserved, preferred
from rightcall.contracts.type_expr import (
    NULL,
    UNKNOWN,
    ArrayType,
    FieldType,
    IntersectionType,
    Literal,
    ObjectType,
    Primitive,
    RefType,
    TextType,
    Tuple,
    TypeExpr,
    UnionType,
    Unknown,
    is_identifier,
    render,
)
from rightcall.schema.walk import Refs
from rightcall.tools.toolset import Tools, Toolset, examples
from rightcall.types import Json, Tool

_COMBINED = ("$ref", "$dynamicRef", "$recursiveRef", "const", "enum", "oneOf", "anyOf", "allOf")
_OBJECT = ("properties", "additionalProperties", "patternProperties", "required")
_ARRAY = ("items", "prefixItems")


def declarations(tools: Tools) -> str:
    """TypeScript that declares these `tools`: shared types first, then one function each."""
    made = Declarations(tools)
    types = [f"{line}\n" for line in made.aliases()]
    return "".join([*types, *(["\n"] if types else ()), *[made.full(tool) for tool in made.tools]])


def to_type(schema: Any, root: Any = None) -> TypeExpr:
    """The type that a schema says. References are followed in `root`, or else in the schema itself."""
    document = schema if root is None else root
    return _TypeReader(Refs(document), TypeNames([document] if isinstance(document, dict) else [])).type(schema)


class Declarations:
    """The declarations of some tools. A type that several of them use has one name."""

    def __init__(self, tools: Tools, harmless: Harmless | None = None) -> None:
        self.tools = tools if isinstance(tools, Toolset) else Toolset(tools)
        self.text = TextType(harmless or Harmless())
        self._types: dict[str, TypeExpr] = {}
        self._notes: dict[str, list[str]] = {}
        names = TypeNames([tool.parameters for tool in self.tools])
        self._args = {tool.name: self._read(tool, names, number) for number, tool in enumerate(self.tools)}

    def _read(self, tool: Tool, names: TypeNames, number: int) -> TypeExpr:
        reader = _TypeReader(Refs(tool.parameters), names, number)
        args = reader.arguments(tool.parameters)
        while reader.waiting:
            name = next(iter(reader.waiting))
            target = reader.waiting.pop(name)
            if name not in self._types:
                self._types[name] = reader.type(target)
                self._notes[name] = notes(target)
        return args

    def args(self, tool: Tool) -> TypeExpr:
        """A tool's arguments as one type."""
        return self._args[tool.name]

    def full(self, tool: Tool) -> str:
        """The declaration of one tool, with a blank line behind it."""
        args = self.text.type(self.args(tool))
        if is_identifier(tool.name) and not is_reserved(tool.name):
            head = f"declare function {tool.name}(args: {args}): string;"
        else:  # no identifier: TypeScript takes such a name only as a member
            head = f"interface Tools {{ {self.text.literal(tool.name)}(args: {args}): string; }}"
        return "\n".join([head, *self.text.block(tool.description), "", ""])

    def compact(self, tool: Tool) -> str:
        """One tool in one line, as an item of a list."""
        said = summary(tool)
        line = f"- `{self.text.harmless.line(tool.name)}({self.text.type(self.args(tool))})`"
        return f"{line} — {self.text.harmless.line(said)}" if said else line

    def aliases(self, tools: Sequence[Tool] | None = None) -> list[str]:
        """One line per shared type that these tools use, or all of them; a type comes after those that it uses."""
        return [self._alias(name) for name in self.names(tools)]

    def names(self, tools: Sequence[Tool] | None = None) -> list[str]:
        """The names of those types, in that order."""
        return self._ordered([self.args(tool) for tool in (self.tools if tools is None else tools)])

    def type(self, name: str) -> TypeExpr:
        """The shared type of this name."""
        return self._types[name]

    def _alias(self, name: str) -> str:
        said = self._notes[name]
        comment = f" {self.text.comment([self.text.harmless.line(note) for note in said])}" if said else ""
        return f"type {name} = {self.text.type(self._types[name])}{comment};"

    def _ordered(self, starts: list[TypeExpr]) -> list[str]:
        done: dict[str, None] = {}
        opened: set[str] = set()
        stack = [(name, False) for start in reversed(starts) for name in reversed(_used(start))]
        while stack:
            name, ready = stack.pop()
            if ready:
                done[name] = None
            elif name not in opened and name in self._types:
                opened.add(name)
                stack.append((name, True))
                stack += [(inner, False) for inner in reversed(_used(self._types[name]))]
        return list(done)


def summary(tool: Tool) -> str:
    """A tool's description up to the first full stop or line break."""
    return tool.description.strip().split("\n", 1)[0].split(".", 1)[0].strip()


def _used(expr: TypeExpr) -> list[str]:
    """The names in a type, in the order written."""
    return [expr.name] if isinstance(expr, RefType) else [name for inner in _parts(expr) for name in _used(inner)]


def _parts(expr: TypeExpr) -> tuple[TypeExpr, ...]:
    """The types inside a type, in the order written."""
    match expr:
        case ArrayType(item):
            return (item,)
        case Tuple(items, _, rest):
            return (*items, rest or UNKNOWN)
        case UnionType(members) | IntersectionType(members):
            return members
        case ObjectType(fields, rest):
            return (*[field.type for field in fields], rest or UNKNOWN)
    return ()


class _TypeReader:
    """From the schemas of one document to types. `waiting` are the targets whose names were given out."""

    def __init__(self, refs: Refs, names: TypeNames, document: int = 0) -> None:
        self.refs = refs
        self.names = names
        self.document = document  # its number among those that `names` knows
        self.waiting: dict[str, Json] = {}

    def arguments(self, schema: Json) -> TypeExpr:
        """Arguments are an object, whether the schema says so or not."""
        found = self.type({"properties": {}, **schema} if not any(word in schema for word in _COMBINED) else schema)
        return Primitive("object") if isinstance(found, Unknown) else found

    def type(self, schema: Any) -> TypeExpr:
        if isinstance(schema, str):
            return Primitive(schema)
        if not isinstance(schema, dict):
            return UNKNOWN
        found = self.without_null(schema)
        if schema.get("nullable") is True and not isinstance(found, Unknown):
            return _union([found, NULL])
        return found

    def parts(self, schema: Json) -> Iterator[TypeExpr]:
        """What its references, its constants and the schemas in it each say."""
        for word in _COMBINED[:3]:
            if isinstance(schema.get(word), str):
                yield self.reference(schema[word])
        if (constants := _constants(schema)) is not None:
            yield _union([Literal(value) for value in constants])
        for word, join in (("oneOf", _union), ("anyOf", _union), ("allOf", _intersection)):
            if isinstance(schema.get(word), list):
                yield join([self.type(item) for item in schema[word]])

    def without_null(self, schema: Json) -> TypeExpr:
        known: list[TypeExpr] = [part for part in self.parts(schema) if not isinstance(part, Unknown)]
        if not known or ("properties" in schema and "const" not in schema and "enum" not in schema):
            known.append(self.stated(schema))
        return _intersection(known)

    def reference(self, ref: str) -> TypeExpr:
        target = self.refs.get(ref)
        name = self.names.of(self.document, target) if isinstance(target, dict) else preferred(ref)
        if isinstance(target, bool) or not name or not preferred(ref, self.refs.root):
            return UNKNOWN
        if isinstance(target, dict):
            self.waiting[name] = target
        return RefType(name)

    def stated(self, schema: Json) -> TypeExpr:
        """What `type` says, and where it says nothing what the keywords of one type do."""
        said = schema.get("type")
        if isinstance(said, list):
            return _union([self.named(schema, name) for name in said if isinstance(name, str)])
        if isinstance(said, str):
            return self.named(schema, said)
        if "properties" in schema:
            return self.object(schema)
        return self.array(schema) if any(word in schema for word in _ARRAY) else UNKNOWN

    def named(self, schema: Json, name: str) -> TypeExpr:
        if name == "array":
            return self.array(schema)
        if name == "object" and any(word in schema for word in _OBJECT):
            return self.object(schema)
        return Primitive(name)

    def array(self, schema: Json) -> TypeExpr:
        items = schema.get("items", {})
        first = items if isinstance(items, list) else schema.get("prefixItems")
        if not isinstance(first, list):
            return ArrayType(self.type(items)) if items is not False else Tuple(())
        rest = schema.get("additionalItems", {}) if isinstance(items, list) else items
        needed = schema.get("minItems", 0)
        return Tuple(
            tuple([self.type(item) for item in first]),
            needed if isinstance(needed, int) else 0,
            None if rest is False else self.type(rest),
        )

    def object(self, schema: Json) -> TypeExpr:
        required = dict.fromkeys(key for key in schema.get("required") or () if isinstance(key, str))
        fields = [self.field(key, item, key in required) for key, item in _members(schema, required).items()]
        fields.sort(key=lambda field: not field.required)
        rest = self.rest(schema)
        if not fields and rest is None and "properties" not in schema:
            return Primitive("object")
        return ObjectType(tuple(fields), rest)

    def rest(self, schema: Json) -> TypeExpr | None:
        """The type of keys without a field of their own, where the schema says one."""
        said = schema.get("additionalProperties")
        if said is False:
            patterns = schema.get("patternProperties") or {}
            return _union([self.type(item) for item in patterns.values()], keep=True) if patterns else None
        if said is None:
            return None
        return UNKNOWN if schema.get("patternProperties") else self.type(said)

    def field(self, name: str, schema: Any, required: bool) -> FieldType:
        said = schema if isinstance(schema, dict) else {}
        description = said.get("description")
        return FieldType(
            name,
            self.type(schema),
            required,
            description if isinstance(description, str) else "",
            tuple(notes(schema)),
            (said["default"],) if "default" in said else (),
            examples(said),
        )


def _different(members: Iterable[TypeExpr]) -> list[TypeExpr]:
    """Without members that read the same as an earlier one."""
    members = list(members)
    if len(members) < 2:
        return members
    return list({render(member): member for member in reversed(members)}.values())[::-1]


def _flat(members: Iterable[TypeExpr], kind: type[UnionType] | type[IntersectionType]) -> list[TypeExpr]:
    return [one for member in members for one in (member.members if isinstance(member, kind) else (member,))]


def _constants(schema: Json) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return schema["enum"] if isinstance(schema.get("enum"), list) else None


def _members(schema: Json, required: Iterable[str]) -> Json:
    """What an object may hold: the declared, and what is required without being declared."""
    properties = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
    allowed = {key: item for key, item in properties.items() if item is not False}
    return {**allowed, **{key: {} for key in required if key not in properties}}


def _union(members: list[TypeExpr], *, keep: bool = False) -> TypeExpr:
    """One of these; `keep` keeps what may be anything, which else is left out beside what is more telling."""
    told = _different([member for member in _flat(members, UnionType) if keep or not isinstance(member, Unknown)])
    if keep and UNKNOWN in told:
        return UNKNOWN
    return UNKNOWN if not told else told[0] if len(told) == 1 else UnionType(tuple(told))


def _intersection(members: list[TypeExpr]) -> TypeExpr:
    told = _different([member for member in _flat(members, IntersectionType) if not isinstance(member, Unknown)])
    return UNKNOWN if not told else told[0] if len(told) == 1 else IntersectionType(tuple(told))
