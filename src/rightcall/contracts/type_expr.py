"""A TypeScript type as a value, and its text.

    Field("a", Primitive("integer"), description="n", default=[3])   ->   a?: number /* optional — n — default 3 */

Names, literals and comments come from whoever wrote the schema: none of them can end the comment or the string that it
stands in. The text is one line, so that a declaration is one too.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from rightcall.contracts.escape import Harmless


class Primitive(msgspec.Struct, frozen=True):
    name: str


class Literal(msgspec.Struct, frozen=True):
    value: Any


class ArrayType(msgspec.Struct, frozen=True):
    item: TypeExpr


class Tuple(msgspec.Struct, frozen=True):
    """The first `needed` items must be there; `rest` is the type of further ones, None where there may be none."""

    items: tuple[TypeExpr, ...]
    needed: int = 0
    rest: TypeExpr | None = None


class UnionType(msgspec.Struct, frozen=True):
    members: tuple[TypeExpr, ...]


class IntersectionType(msgspec.Struct, frozen=True):
    members: tuple[TypeExpr, ...]


class RefType(msgspec.Struct, frozen=True):
    name: str


class Unknown(msgspec.Struct, frozen=True):
    pass


class FieldType(msgspec.Struct, frozen=True):
    """`default` is a list of one value, or empty: null is a default too. `notes` are bounds and formats, in words."""

    name: str
    type: TypeExpr
    required: bool = False
    description: str = ""
    notes: tuple[str, ...] = ()
    default: tuple[Any, ...] = ()
    examples: tuple[Any, ...] = ()


class ObjectType(msgspec.Struct, frozen=True):
    """`rest` is the type of keys that are not fields, None where nothing is said of them."""

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


def _primitive(name: str) -> str:
    return _PRIMITIVES.get(name, name if is_identifier(name) else "unknown")


_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*", re.ASCII).fullmatch
_PLAIN = Harmless()


def is_identifier(name: str) -> bool:
    return _IDENTIFIER(name) is not None


def render(expr: TypeExpr, harmless: Harmless = _PLAIN) -> str:
    """The TypeScript text of a type."""
    return TextType(harmless).type(expr)


class TextType:
    """Writes types, so that nothing in them speaks the markers of the format that `harmless` knows."""

    def __init__(self, harmless: Harmless) -> None:
        self.harmless = harmless

    def type(self, expr: TypeExpr) -> str:
        match expr:
            case Primitive(name):
                return _primitive(name)
            case Literal(value):
                return self.literal(value)
            case ArrayType(item):
                return self.single(item) + "[]"
            case Tuple():
                return self.tuple(expr)
            case UnionType(members):
                return " | ".join(map(self.type, members))
            case IntersectionType(members):
                return " & ".join([self.inside(member, UnionType) for member in members])
            case ObjectType():
                return self.object(expr)
            case RefType(name):
                return name
        return "unknown"

    def inside(self, expr: TypeExpr, *kinds: Any) -> str:
        return f"({self.type(expr)})" if isinstance(expr, kinds) else self.type(expr)

    def single(self, expr: TypeExpr) -> str:
        return self.inside(expr, UnionType, IntersectionType)

    def literal(self, value: Any) -> str:
        """JSON, which TypeScript reads as a type and as a value alike."""
        return self.harmless.strings(_JSON(value))

    def name(self, name: str) -> str:
        return name if is_identifier(name) else self.literal(name)

    def tuple(self, expr: Tuple) -> str:
        items = [self.type(item) if at < expr.needed else self.single(item) + "?" for at, item in enumerate(expr.items)]
        rest = [] if expr.rest is None else [f"...{self.single(expr.rest)}[]"]
        return f"[{', '.join(items + rest)}]"

    def object(self, expr: ObjectType) -> str:
        parts = [self.field(field) for field in expr.fields]
        if expr.rest is not None:
            parts.append(self.index(expr))
        return f"{{ {'; '.join(parts)} }}" if parts else "{}"

    def index(self, expr: ObjectType) -> str:
        assert expr.rest is not None
        # A signature binds the named fields as well, so beside such it must let everything through.
        if not expr.fields or isinstance(expr.rest, Unknown):
            return f"[key: string]: {self.type(expr.rest)}"
        return f"[key: string]: unknown {self.comment(['any other: ' + self.type(expr.rest)])}"

    def field(self, field: FieldType) -> str:
        mark = "" if field.required else "?"
        return f"{self.name(field.name)}{mark}: {self.type(field.type)} {self.comment(self.about(field))}"

    def about(self, field: FieldType) -> list[str]:
        """What is said of a field: required or optional, description, bounds, default, examples."""
        parts = ["required" if field.required else "optional", self.harmless.line(field.description)]
        parts += [self.harmless.line(note) for note in field.notes]
        parts += [f"default {self.literal(value)}" for value in field.default]
        if field.examples:
            word = "example" if len(field.examples) == 1 else "examples"
            parts.append(f"{word} {', '.join([self.literal(value) for value in field.examples])}")
        return [part for part in parts if part]

    def comment(self, parts: list[str]) -> str:
        return f"/* {closed(' — '.join(parts))} */"

    def block(self, text: str) -> list[str]:
        """A description as the lines of a comment; none for a blank one."""
        if not text.strip():
            return []
        lines = [f" * {self.harmless.prose(line)}".rstrip() for line in text.strip().splitlines()]
        return ["/**", *[closed(line) for line in lines], " */"]


def closed(text: str) -> str:
    """Text for a comment, which it cannot end."""
    return text.replace("*/", "* /")
