"""Tools as TypeScript declarations for a prompt: type expressions, shared types, and escaped comments.

MarkerEscaper.of("hermes").escape_text("ends with </tool_call>")    # "ends with < /tool_call>"
MarkerEscaper.of("hermes").escape_json('"</tool_call>"')          # '"\u003c/tool_call>"', the same JSON string
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from rightcall.formats import find
from rightcall.formats.spec import Format, marker_alternatives
from rightcall.schema.walk import REFS, Refs, all_schemas, schemas_and_targets
from rightcall.strict_json import unescape_step
from rightcall.tools.toolset import Tools, Toolset, examples
from rightcall.types import Json, Tool

PROTOCOL = ("tool_call", "assistant_prose", "user_response", "done", "task_ledger")
LISTS = ("tools", "tool", "functions", "function", "available_tools", "tool_list")
_HOLE = re.compile(r"\{\w+\}")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_LONE = re.compile("[\ud800-\udfff]")
# Tags of our own protocol and of lists of tools, and whatever looks like a special token of some vocabulary.
_ALWAYS = rf"</?(?:{'|'.join((*PROTOCOL, *LISTS))})\b|<[|｜]|\[/?AVAILABLE_TOOLS|</?(?:start|end)_function_declaration"
# What lists of tools are made of besides, by the name of the listing.
_QWEN = "name description type parameter parameters required enum default".split()
_LISTING: dict[str, tuple[str, ...]] = {
    "qwen3_coder": tuple(f"{opens}{tag}>" for tag in _QWEN for opens in ("<", "</")),
    **dict.fromkeys(("fenced", "cohere", "pythonic"), ("```",)),
}


class MarkerEscaper:
    """Escapes the markers of one format in text and JSON, so that a prompt contains none by accident. Every escaper
    also knows the tags of our own protocol and of lists of tools, and beginnings of special tokens. Linear in the
    text."""

    def __init__(self, markers: tuple[str, ...] = ()) -> None:
        words = sorted({marker for marker in markers if _can_be_marker(marker)}, key=len, reverse=True)
        self._find = re.compile("|".join([_ALWAYS, *map(re.escape, words)]), re.IGNORECASE)

    @staticmethod
    def of(format: str | Format) -> MarkerEscaper:
        """Return the escaper for prompts of this format, given by name or as a `Format`: it escapes the markers of the
        format and of its tool listing."""
        chosen = find(format)
        words = _LISTING.get(chosen.tools, ())
        return MarkerEscaper((*words, *[piece.strip() for text in _markers_of(chosen) for piece in _HOLE.split(text)]))

    def escape_text(self, text: str) -> str:
        """Return the text with a blank inserted after the first character of every marker, and U+FFFD for lone
        surrogates."""
        text = text if text.isascii() else _LONE.sub("\ufffd", text)
        for _ in range(3):  # what is left of one marker may make another with what follows: >>>>
            text = self._find.sub(_insert_blank, text)
        return text

    def escape_line(self, text: str) -> str:
        """Return the text on one line (white space becomes single blanks), with a blank inserted after the first
        character of every marker."""
        return self.escape_text(" ".join(text.split()))

    def escape_json(self, json_text: str) -> str:
        """Return JSON text with the first character of every marker inside a string written as an escape (`\\u003c`);
        it has the same value."""
        return _STRING.sub(self._escape_string, json_text)

    def _escape_string(self, string: re.Match[str]) -> str:
        """Return one JSON string, matched in JSON text, with the first character of each marker, and each lone
        surrogate, escaped."""
        text = string.group()
        if not text.isascii():
            text = _LONE.sub(lambda lone: f"\\u{ord(lone.group()):04x}", text)
        return self._find.sub(lambda marker: f"\\u{ord(marker.group()[0]):04x}{marker.group()[1:]}", text)


def _insert_blank(marker: re.Match[str]) -> str:
    """Return the marker with a blank after its first character."""
    return f"{marker.group()[0]} {marker.group()[1:]}"


def _can_be_marker(marker: str) -> bool:
    """Return whether a text counts as a marker to escape: three characters or more, of which the first is no letter,
    digit, quote or backslash."""
    return len(marker) >= 3 and not marker[0].isalnum() and marker[0] not in '\\"'


def _markers_of(format: Format) -> list[str]:
    """Return all markers of a format: of sections, calls, reasoning, content, bodies and channels."""
    pairs = [format.section, format.call, format.reasoning, *format.content]
    found = [text for pair in pairs if pair for marker in pair for text in marker_alternatives(marker)]
    for body in format.bodies:
        for field in ("open", "close", "param", "value_close", "empty", "quote"):
            value = getattr(body, field, None) or ""
            found += marker_alternatives(value)
    if format.channels is not None:
        found += [*marker_alternatives(format.channels.start), format.channels.message, *format.channels.ends]
    return [*found, *format.ends]


_LONGEST = 200
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_DEEPEST = 4


def limit_notes(schema: Any, depth: int = 0) -> list[str]:
    """Return the limits that a schema declares as short phrases, such as "at least 3"; [] without limits.

    For a choice between null and one other schema, the limits of the other are included. Limits of array items begin
    with "each item:". `depth`: the nesting of the schema, to stop at four levels.
    """
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return []
    found = [*_number_limits(schema), *_string_limits(schema), *_array_limits(schema), *_object_limits(schema)]
    each = [f"each item: {note}" for note in limit_notes(schema.get("items"), depth + 1)]
    choice = schema.get("anyOf", schema.get("oneOf"))
    others = [item for item in choice if item != {"type": "null"}] if isinstance(choice, list) else []
    inner = limit_notes(others[0], depth + 1) if len(others) == 1 else []
    return [note[:_LONGEST] for note in found + each + inner]


def _range_note(low: Any, high: Any, what: str = "") -> list[str]:
    """Return the range from `low` to `high` (None: no limit) as a list with one phrase, such as "1 to 5 items"; []
    without limits. `what` is the unit."""
    unit = f" {what}" if what else ""
    if low is not None and high is not None:
        return [f"exactly {low}{unit}" if low == high else f"{low} to {high}{unit}"]
    if low is not None:
        return [f"at least {low}{unit}"]
    return [f"at most {high}{unit}"] if high is not None else []


def _number_limits(schema: Json) -> list[str]:
    """Return the limits of a number that a schema declares, as a list with one phrase, exclusive limits of draft 4
    included; [] without limits."""
    if not any(word in schema for word in _NUMBERS):
        return []
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if above is True:  # the notation of draft 4
        low, above = None, low
    if below is True:
        high, below = None, high
    found = [f"more than {above}"] if _is_number(above) else []
    found += [f"less than {below}"] if _is_number(below) else []
    found += _range_note(low, high)
    if "multipleOf" in schema:
        found.append(f"a multiple of {schema['multipleOf']}")
    whole = "integer, " if schema.get("type") == "integer" else ""
    return [whole + ", ".join(found)] if found else []


def _is_number(value: Any) -> bool:
    """Return whether a value is an int or a float; False for a boolean."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _string_limits(schema: Json) -> list[str]:
    """Return the limits of a string that a schema declares, as phrases: length, format and pattern; [] without
    limits."""
    found = _range_note(schema.get("minLength") or None, schema.get("maxLength"), "characters")
    found += [f"{word} {schema[word]}" for word in ("format", "pattern") if isinstance(schema.get(word), str)]
    return found


def _array_limits(schema: Json) -> list[str]:
    """Return the limits of an array that a schema declares, as phrases: its length and whether items are unique; []
    without limits."""
    found = _range_note(schema.get("minItems") or None, schema.get("maxItems"), "items")
    return [*found, "unique items"] if schema.get("uniqueItems") is True else found


def _object_limits(schema: Json) -> list[str]:
    """Return the limit on the number of members of an object as a phrase in a list; empty without one."""
    return _range_note(schema.get("minProperties") or None, schema.get("maxProperties"), "keys")


class Primitive(msgspec.Struct, frozen=True):
    """A type with a name of its own, such as "string"."""

    name: str


class Literal(msgspec.Struct, frozen=True):
    """The type of one constant."""

    value: Any


class ArrayType(msgspec.Struct, frozen=True):
    """An array whose items all have one type."""

    item: TypeExpr


class Tuple(msgspec.Struct, frozen=True):
    """An array with a type for each place.

    The first `needed` items are required; `rest` is the type of further ones, None where there may be none."""

    items: tuple[TypeExpr, ...]
    needed: int = 0
    rest: TypeExpr | None = None


class UnionType(msgspec.Struct, frozen=True):
    """Any of the members."""

    members: tuple[TypeExpr, ...]


class IntersectionType(msgspec.Struct, frozen=True):
    """All of the members at once."""

    members: tuple[TypeExpr, ...]


class RefType(msgspec.Struct, frozen=True):
    """A shared type, by name."""

    name: str


class Unknown(msgspec.Struct, frozen=True):
    """A type of which nothing is known."""


class FieldType(msgspec.Struct, frozen=True):
    """A member of an object.

    `default` is a list of one value, or empty: null is a default too. `notes` are limits and formats, in words."""

    name: str
    type: TypeExpr
    required: bool = False
    description: str = ""
    notes: tuple[str, ...] = ()
    default: tuple[Any, ...] = ()
    examples: tuple[Any, ...] = ()


class ObjectType(msgspec.Struct, frozen=True):
    """An object.

    `rest` is the type of keys that are not fields, None where nothing is declared about them."""

    fields: tuple[FieldType, ...] = ()
    rest: TypeExpr | None = None


TypeExpr = Primitive | Literal | ArrayType | Tuple | UnionType | IntersectionType | RefType | Unknown | ObjectType

NULL = Primitive("null")
UNKNOWN = Unknown()

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_PRIMITIVES = {
    **dict.fromkeys(("str", "string"), "string"),
    **dict.fromkeys(("int", "integer", "long", "number", "float", "double"), "number"),
    **dict.fromkeys(("bool", "boolean"), "boolean"),
    **dict.fromkeys(("nil", "null", "none"), "null"),
    **dict.fromkeys(("dict", "map"), "object"),
    **dict.fromkeys(("list", "array"), "unknown[]"),
}


def _primitive_type(name: str) -> str:
    """Return the TypeScript name of a primitive type, the name itself if it is an identifier, else "unknown"."""
    return _PRIMITIVES.get(name, name if is_identifier(name) else "unknown")


_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*", re.ASCII).fullmatch
_PLAIN = MarkerEscaper()


def is_identifier(name: str) -> bool:
    """Return whether a name is an identifier of ASCII letters, digits, `_` and `$`; a reserved word is one too."""
    return _IDENTIFIER(name) is not None


def render(expr: TypeExpr, escaper: MarkerEscaper = _PLAIN) -> str:
    """Return the TypeScript text of a type."""
    return TextType(escaper).type(expr)


class TextType:
    """Writes types as TypeScript text that contains no marker of the format that `escaper` knows."""

    def __init__(self, escaper: MarkerEscaper) -> None:
        self.escaper = escaper

    def type(self, expr: TypeExpr) -> str:
        """Return a type expression as TypeScript text; "unknown" for one that TypeScript cannot express."""
        match expr:
            case Primitive(name):
                return _primitive_type(name)
            case Literal(value):
                return self.literal(value)
            case ArrayType(item):
                return self.as_operand(item) + "[]"
            case Tuple():
                return self.tuple(expr)
            case UnionType(members):
                return " | ".join(map(self.type, members))
            case IntersectionType(members):
                return " & ".join([self.in_parentheses(member, UnionType) for member in members])
            case ObjectType():
                return self.object(expr)
            case RefType(name):
                return name
        return "unknown"

    def in_parentheses(self, expr: TypeExpr, *kinds: Any) -> str:
        """Return the TypeScript text of a type; in parentheses only if the type is of one of the classes `kinds`."""
        return f"({self.type(expr)})" if isinstance(expr, kinds) else self.type(expr)

    def as_operand(self, expr: TypeExpr) -> str:
        """Return the TypeScript text of a type for use before `[]` and `?`: in parentheses if it is a union or an
        intersection."""
        return self.in_parentheses(expr, UnionType, IntersectionType)

    def literal(self, value: Any) -> str:
        """Return a value as JSON, which TypeScript accepts as a type and as a value."""
        return self.escaper.escape_json(_JSON(value))

    def name(self, name: str) -> str:
        """Return the name of a field: an identifier as it is, any other name as a string literal."""
        return name if is_identifier(name) else self.literal(name)

    def tuple(self, expr: Tuple) -> str:
        """Return a tuple as a TypeScript type; items beyond `needed` are optional, and `rest` becomes `...type[]`."""
        items = [
            self.type(item) if at < expr.needed else self.as_operand(item) + "?" for at, item in enumerate(expr.items)
        ]
        rest = [] if expr.rest is None else [f"...{self.as_operand(expr.rest)}[]"]
        return f"[{', '.join(items + rest)}]"

    def object(self, expr: ObjectType) -> str:
        """Return an object type as TypeScript on one line, each field followed by its comment; `{}` without fields."""
        parts = [self.field(field) for field in expr.fields]
        if expr.rest is not None:
            parts.append(self.index_signature(expr))
        return f"{{ {'; '.join(parts)} }}" if parts else "{}"

    def index_signature(self, expr: ObjectType) -> str:
        """Return the TypeScript index signature of an object whose further keys have the type `rest`. Beside named
        fields its value type is `unknown`, with the declared type as a comment."""
        assert expr.rest is not None
        # TypeScript applies the signature to the named fields too, so beside fields it must accept any value.
        if not expr.fields or isinstance(expr.rest, Unknown):
            return f"[key: string]: {self.type(expr.rest)}"
        return f"[key: string]: unknown {self.comment(['any other: ' + self.type(expr.rest)])}"

    def field(self, field: FieldType) -> str:
        """Return one member of an object as TypeScript: name (with `?` if optional), type, and comment."""
        mark = "" if field.required else "?"
        return f"{self.name(field.name)}{mark}: {self.type(field.type)} {self.comment(self.comment_parts(field))}"

    def comment_parts(self, field: FieldType) -> list[str]:
        """Return the parts of a field's comment that are not empty: required or optional, description, limits, default,
        examples."""
        parts = ["required" if field.required else "optional", self.escaper.escape_line(field.description)]
        parts += [self.escaper.escape_line(note) for note in field.notes]
        parts += [f"default {self.literal(value)}" for value in field.default]
        if field.examples:
            word = "example" if len(field.examples) == 1 else "examples"
            parts.append(f"{word} {', '.join([self.literal(value) for value in field.examples])}")
        return [part for part in parts if part]

    def comment(self, parts: list[str]) -> str:
        """Return the parts, joined by dashes, as a `/* */` comment."""
        return f"/* {escape_comment_end(' — '.join(parts))} */"

    def block_comment(self, text: str) -> list[str]:
        """Return a description as the lines of a `/** */` comment with markers escaped; [] for a blank one."""
        if not text.strip():
            return []
        lines = [f" * {self.escaper.escape_text(line)}".rstrip() for line in text.strip().splitlines()]
        return ["/**", *[escape_comment_end(line) for line in lines], " */"]


def escape_comment_end(text: str) -> str:
    """Return the text with "*/" written as "* /", for use in a comment."""
    return text.replace("*/", "* /")


_ROUNDS = 64
_UNFIT = re.compile(r"[^A-Za-z0-9_$]+")
_RESERVED = frozenset(
    "any unknown never void null undefined string number boolean symbol object bigint Tools "
    "break case catch class const continue debugger default delete do else enum export extends false finally for "
    "function if import in instanceof new return super switch this throw true try typeof var while with "
    "implements interface let package private protected public static yield await arguments eval".split()
)


def is_reserved(name: str) -> bool:
    """Return whether a name cannot be declared in TypeScript: a keyword, a built-in type, or `Tools`."""
    return name in _RESERVED


class _RefTarget(msgspec.Struct, eq=False):
    """A target of references in one document. `document`: its index; `name`: the preferred type name; `inner`: the
    targets of its own references; `class_hash`: equal for targets of one class; each round of `_refine_classes`
    separates more of them."""

    document: int
    refs: Refs
    target: Json
    name: str
    inner: list[_RefTarget] = []
    class_hash: int = 0


class TypeNames:
    """Type names for the targets of references in several documents; equal targets share a name.

    Time is linear in their size, times the number of rounds."""

    def __init__(self, documents: Iterable[Json]) -> None:
        self._targets: dict[tuple[int, int], _RefTarget] = {}  # by document, and by the id of the target
        self._roots: list[Json] = []  # kept alive, so that the ids of targets stay unique
        for number, root in enumerate(documents):
            self._roots.append(root)
            self._collect(number, Refs(root))
        self._connect_targets()
        self._refine_classes()
        self._names: dict[int, str] = {}
        self._taken: dict[str, int] = {}

    def name_of(self, document: int, target: Any) -> str | None:
        """Return the type name of a reference target in the document of this index; None for a schema that no reference
        points at.

        Of several different targets with the same preferred name, the first that is asked for gets it without a number.
        """
        entry = self._targets.get((document, id(target)))
        if entry is not None and entry.class_hash not in self._names:
            self._names[entry.class_hash] = _unused_name(entry.name, self._taken)
        return None if entry is None else self._names[entry.class_hash]

    def _collect(self, number: int, refs: Refs) -> None:
        """Add the targets of all references of one document (`number` is its index), each with the name that its
        reference suggests."""
        for schema in schemas_and_targets(refs):
            for ref, target in _reference_targets(schema, refs):
                if (number, id(target)) not in self._targets:
                    self._targets[number, id(target)] = _RefTarget(number, refs, target, preferred_name(ref, refs.root))

    def _connect_targets(self) -> None:
        """Store with each target the targets of its own references, and set its class to a hash of its name and
        schema."""
        for entry in self._targets.values():
            inner = {
                ref: target
                for schema in all_schemas(entry.target)
                for ref, target in _reference_targets(schema, entry.refs)
            }
            entry.inner = [self._targets[entry.document, id(inner[ref])] for ref in sorted(inner)]
            entry.class_hash = hash((entry.name, json.dumps(entry.target, sort_keys=True)))

    def _refine_classes(self) -> None:
        """Refine the classes of targets until targets that lead to different targets are in different classes. If that
        takes more than `_ROUNDS` rounds, no name is shared between documents."""
        targets = list(self._targets.values())
        count = len({entry.class_hash for entry in targets})
        for _ in range(_ROUNDS):
            kinds = [hash((entry.class_hash, *[inner.class_hash for inner in entry.inner])) for entry in targets]
            for entry, kind in zip(targets, kinds, strict=True):
                entry.class_hash = kind
            if count == (count := len(set(kinds))):
                return
        for entry in targets:  # a chain longer than the rounds: nothing is shared between documents
            entry.class_hash = hash((entry.document, entry.class_hash))


def _reference_targets(schema: Json, refs: Refs) -> Iterator[tuple[str, Json]]:
    """Yield each reference of a schema itself, not of inner ones, that resolves to an object, with its target."""
    for word in REFS:
        if isinstance(schema.get(word), str) and isinstance(target := refs.get(schema[word]), dict):
            yield schema[word], target


def preferred_name(ref: str, root: Any = None) -> str:
    """Return the type name that a reference such as `#/$defs/City` suggests: its last step, as an identifier.

    A reference to the whole document suggests the title of `root` as an identifier, or "Arguments" without a title; ""
    if `root` is not given, is no object, or is itself a reference.
    """
    last = unescape_step(ref.rstrip("/").rpartition("/")[2].strip("#"))
    if not last and isinstance(root, dict) and "$ref" not in root:
        last = root["title"] if isinstance(root.get("title"), str) and root["title"].strip() else "Arguments"
    name = _UNFIT.sub("_", last).strip("_") or ("_" if last else "")
    return f"_{name}" if name[:1].isdigit() else name


def _unused_name(name: str, taken: dict[str, int]) -> str:
    """Return an identifier that is not in `taken`, and add it: `name`, with `_` appended if it is a reserved word, or
    with a number if it is taken.

    `taken` maps each name to the number that was last appended to it, so that the next one is found quickly.
    """
    number = taken.get(name, 1)
    new = f"{name}{number}" if number > 1 else f"{name}_" if name in _RESERVED else name or "_"
    while new in taken:
        number, new = number + 1, f"{name}{number + 1}"
    taken[new] = taken.get(new, 1)
    taken[name] = number
    return new


_COMBINED = ("$ref", "$dynamicRef", "$recursiveRef", "const", "enum", "oneOf", "anyOf", "allOf")
_OBJECT = ("properties", "additionalProperties", "patternProperties", "required")
_ARRAY = ("items", "prefixItems")


def declarations(tools: Tools) -> str:
    """Return TypeScript that declares these `tools`: shared types first, then one function each."""
    made = Declarations(tools)
    types = [f"{line}\n" for line in made.alias_lines()]
    return "".join([*types, *(["\n"] if types else ()), *[made.full(tool) for tool in made.tools]])


def to_type(schema: Any, root: Any = None) -> TypeExpr:
    """Return the type that a schema describes, `UNKNOWN` if it describes none. References are resolved in `root`, or
    else in the schema itself."""
    document = schema if root is None else root
    return _TypeReader(Refs(document), TypeNames([document] if isinstance(document, dict) else [])).type(schema)


class Declarations:
    """The TypeScript declarations of some tools. A type that several of them use has one name."""

    def __init__(self, tools: Tools, escaper: MarkerEscaper | None = None) -> None:
        self.tools = tools if isinstance(tools, Toolset) else Toolset(tools)
        self.text = TextType(escaper or MarkerEscaper())
        self._types: dict[str, TypeExpr] = {}
        self._notes: dict[str, list[str]] = {}
        names = TypeNames([tool.parameters for tool in self.tools])
        self._args = {tool.name: self._read_arguments(tool, names, number) for number, tool in enumerate(self.tools)}

    def _read_arguments(self, tool: Tool, names: TypeNames, number: int) -> TypeExpr:
        """Return the type of a tool's arguments, and store the shared types that it uses. `number` is the tool's index
        among the documents of `names`."""
        reader = _TypeReader(Refs(tool.parameters), names, number)
        args = reader.arguments(tool.parameters)
        while reader.waiting:
            name = next(iter(reader.waiting))
            target = reader.waiting.pop(name)
            if name not in self._types:
                self._types[name] = reader.type(target)
                self._notes[name] = limit_notes(target)
        return args

    def arguments_type(self, tool: Tool) -> TypeExpr:
        """Return a tool's arguments as one type expression. Raises `KeyError` for a tool that is not among the declared
        ones."""
        return self._args[tool.name]

    def full(self, tool: Tool) -> str:
        """Return the TypeScript declaration of one of the tools as text, with its description as a comment, followed by
        a blank line. Raises `KeyError` for a tool that is not among the declared ones."""
        args = self.text.type(self.arguments_type(tool))
        if is_identifier(tool.name) and not is_reserved(tool.name):
            head = f"declare function {tool.name}(args: {args}): string;"
        else:  # TypeScript accepts a name that is no identifier only as a member
            head = f"interface Tools {{ {self.text.literal(tool.name)}(args: {args}): string; }}"
        return "\n".join([head, *self.text.block_comment(tool.description), "", ""])

    def compact(self, tool: Tool) -> str:
        """Return one of the tools on one line, as an item of a Markdown list: name, arguments in TypeScript, and the
        first sentence of its description. Raises `KeyError` for a tool that is not among the declared ones."""
        said = first_sentence(tool)
        line = f"- `{self.text.escaper.escape_line(tool.name)}({self.text.type(self.arguments_type(tool))})`"
        return f"{line} — {self.text.escaper.escape_line(said)}" if said else line

    def alias_lines(self, tools: Sequence[Tool] | None = None) -> list[str]:
        """Return one `type NAME = ...;` line for each shared type that these tools use (None: all tools); a type
        follows the types it uses."""
        return [self._alias_line(name) for name in self.shared_type_names(tools)]

    def shared_type_names(self, tools: Sequence[Tool] | None = None) -> list[str]:
        """Return the names of the shared types that these tools use (None: all tools); a type follows the types it
        uses."""
        return self._order_types([self.arguments_type(tool) for tool in (self.tools if tools is None else tools)])

    def shared_type(self, name: str) -> TypeExpr:
        """Return the shared type of this name. Raises `KeyError` for an unknown name."""
        return self._types[name]

    def _alias_line(self, name: str) -> str:
        """Return the TypeScript declaration of the shared type `name`, with its limits as a comment."""
        said = self._notes[name]
        comment = f" {self.text.comment([self.text.escaper.escape_line(note) for note in said])}" if said else ""
        return f"type {name} = {self.text.type(self._types[name])}{comment};"

    def _order_types(self, exprs: list[TypeExpr]) -> list[str]:
        """Return the names of the shared types that the type expressions `exprs` refer to, directly or through each
        other. Each name follows those of the types that it uses, except in a cycle."""
        done: dict[str, None] = {}
        opened: set[str] = set()
        stack = [(name, False) for expr in reversed(exprs) for name in reversed(_used_types(expr))]
        while stack:
            name, ready = stack.pop()
            if ready:
                done[name] = None
            elif name not in opened and name in self._types:
                opened.add(name)
                stack.append((name, True))
                stack += [(inner, False) for inner in reversed(_used_types(self._types[name]))]
        return list(done)


def first_sentence(tool: Tool) -> str:
    """Return a tool's description up to the first full stop or line break, without them; "" without a description."""
    return tool.description.strip().split("\n", 1)[0].split(".", 1)[0].strip()


def _used_types(expr: TypeExpr) -> list[str]:
    """Return the names of the shared types that appear in a type expression itself, not in those types, in the order
    written, repetitions included."""
    return (
        [expr.name]
        if isinstance(expr, RefType)
        else [name for inner in _inner_types(expr) for name in _used_types(inner)]
    )


def _inner_types(expr: TypeExpr) -> tuple[TypeExpr, ...]:
    """Return the type expressions that a type consists of, in the order written; () for a primitive, a constant or a
    reference. For a tuple or object the last is the type of the rest, `UNKNOWN` if it has none."""
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
    """Turns the schemas of one document into types. `waiting` holds the named targets that are not yet read."""

    def __init__(self, refs: Refs, names: TypeNames, document: int = 0) -> None:
        self.refs = refs
        self.names = names
        self.document = document  # its index among the documents of `names`
        self.waiting: dict[str, Json] = {}

    def arguments(self, schema: Json) -> TypeExpr:
        """Return the type of a tool's arguments from their schema: an object, whether the schema says so or not, unless
        it combines schemas or constants."""
        found = self.type({"properties": {}, **schema} if not any(word in schema for word in _COMBINED) else schema)
        return Primitive("object") if isinstance(found, Unknown) else found

    def type(self, schema: Any) -> TypeExpr:
        """Return the type that a JSON Schema describes, with null added for `nullable`. A text is a type name; anything
        else that is no object is `UNKNOWN`."""
        if isinstance(schema, str):
            return Primitive(schema)
        if not isinstance(schema, dict):
            return UNKNOWN
        found = self.type_without_null(schema)
        if schema.get("nullable") is True and not isinstance(found, Unknown):
            return _union([found, NULL])
        return found

    def combined_types(self, schema: Json) -> Iterator[TypeExpr]:
        """Yield the types that a schema combines: of its references, of its constants, and of its `oneOf`, `anyOf` and
        `allOf`."""
        for word in _COMBINED[:3]:
            if isinstance(schema.get(word), str):
                yield self.reference(schema[word])
        if (constants := _declared_constants(schema)) is not None:
            yield _union([Literal(value) for value in constants])
        for word, join in (("oneOf", _union), ("anyOf", _union), ("allOf", _intersection)):
            if isinstance(schema.get(word), list):
                yield join([self.type(item) for item in schema[word]])

    def type_without_null(self, schema: Json) -> TypeExpr:
        """Return the type of a schema, ignoring `nullable`: the intersection of the types that it combines and, if
        there are none or it has properties, of its declared type."""
        known: list[TypeExpr] = [part for part in self.combined_types(schema) if not isinstance(part, Unknown)]
        if not known or ("properties" in schema and "const" not in schema and "enum" not in schema):
            known.append(self.declared_type(schema))
        return _intersection(known)

    def reference(self, ref: str) -> TypeExpr:
        """Return the named type of a reference and queue its target. A reference that does not resolve keeps the name
        that it suggests, with nothing queued; `UNKNOWN` for a boolean schema or a reference that suggests no name."""
        target = self.refs.get(ref)
        name = self.names.name_of(self.document, target) if isinstance(target, dict) else preferred_name(ref)
        if isinstance(target, bool) or not name or not preferred_name(ref, self.refs.root):
            return UNKNOWN
        if isinstance(target, dict):
            self.waiting[name] = target
        return RefType(name)

    def declared_type(self, schema: Json) -> TypeExpr:
        """Return the type that the `type` of a schema declares, or that its keywords of objects and arrays imply;
        `UNKNOWN` if there are none."""
        said = schema.get("type")
        if isinstance(said, list):
            return _union([self.type_named(schema, name) for name in said if isinstance(name, str)])
        if isinstance(said, str):
            return self.type_named(schema, said)
        if "properties" in schema:
            return self.object(schema)
        return self.array(schema) if any(word in schema for word in _ARRAY) else UNKNOWN

    def type_named(self, schema: Json, name: str) -> TypeExpr:
        """Return the type for `name`, one of the type names in a schema's `type`: for "array" and "object" with the
        items and members that the schema declares."""
        if name == "array":
            return self.array(schema)
        if name == "object" and any(word in schema for word in _OBJECT):
            return self.object(schema)
        return Primitive(name)

    def array(self, schema: Json) -> TypeExpr:
        """Return the array type that a schema describes, or a tuple where items are declared one by one."""
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
        """Return the object type that a schema describes, required fields first; the primitive "object" where no member
        is declared."""
        required = dict.fromkeys(key for key in schema.get("required") or () if isinstance(key, str))
        fields = [self.field(key, item, key in required) for key, item in _member_schemas(schema, required).items()]
        fields.sort(key=lambda field: not field.required)
        rest = self.additional_type(schema)
        if not fields and rest is None and "properties" not in schema:
            return Primitive("object")
        return ObjectType(tuple(fields), rest)

    def additional_type(self, schema: Json) -> TypeExpr | None:
        """Return the type of an object's keys that are not declared as fields, from `additionalProperties`, or from
        `patternProperties` if it is false; `UNKNOWN` if both allow some. None where `additionalProperties` is missing
        or nothing is allowed."""
        said = schema.get("additionalProperties")
        if said is False:
            patterns = schema.get("patternProperties") or {}
            return _union([self.type(item) for item in patterns.values()], keep=True) if patterns else None
        if said is None:
            return None
        return UNKNOWN if schema.get("patternProperties") else self.type(said)

    def field(self, name: str, schema: Any, required: bool) -> FieldType:
        """Return the member `name` of an object, from its schema: type, description, limits, default and examples."""
        said = schema if isinstance(schema, dict) else {}
        description = said.get("description")
        return FieldType(
            name,
            self.type(schema),
            required,
            description if isinstance(description, str) else "",
            tuple(limit_notes(schema)),
            (said["default"],) if "default" in said else (),
            examples(said),
        )


def _unique_types(members: Iterable[TypeExpr]) -> list[TypeExpr]:
    """Return the types in order, without those whose TypeScript text equals that of an earlier one."""
    members = list(members)
    if len(members) < 2:
        return members
    return list({render(member): member for member in reversed(members)}.values())[::-1]


def _flatten(members: Iterable[TypeExpr], kind: type[UnionType] | type[IntersectionType]) -> list[TypeExpr]:
    """Return the types with each union (or intersection, as `kind` says) among them replaced by its members."""
    return [one for member in members for one in (member.members if isinstance(member, kind) else (member,))]


def _declared_constants(schema: Json) -> list[Any] | None:
    """Return the values that a schema allows: that of `const` as a list, or the list of `enum`; None if it has
    neither."""
    if "const" in schema:
        return [schema["const"]]
    return schema["enum"] if isinstance(schema.get("enum"), list) else None


def _member_schemas(schema: Json, required: Iterable[str]) -> Json:
    """Return the schemas of an object's members by name: the declared ones, except those that `false` forbids, and `{}`
    for the names in `required` that are not declared."""
    properties = schema["properties"] if isinstance(schema.get("properties"), dict) else {}
    allowed = {key: item for key, item in properties.items() if item is not False}
    return {**allowed, **{key: {} for key in required if key not in properties}}


def _union(members: list[TypeExpr], *, keep: bool = False) -> TypeExpr:
    """Return the union of the types; the only one alone, and `UNKNOWN` without any. Equal types are merged.

    Unknown types are dropped; with `keep`, one of them makes the whole union `UNKNOWN`.
    """
    different = _unique_types(
        [member for member in _flatten(members, UnionType) if keep or not isinstance(member, Unknown)]
    )
    if keep and UNKNOWN in different:
        return UNKNOWN
    return UNKNOWN if not different else different[0] if len(different) == 1 else UnionType(tuple(different))


def _intersection(members: list[TypeExpr]) -> TypeExpr:
    """Return the intersection of the types, without unknown and repeated ones; the only one alone, and `UNKNOWN`
    without any."""
    different = _unique_types(
        [member for member in _flatten(members, IntersectionType) if not isinstance(member, Unknown)]
    )
    return UNKNOWN if not different else different[0] if len(different) == 1 else IntersectionType(tuple(different))
