"""Shapes as JSON text, and the arguments of one tool.

Object((Field("n", Number(True), True),))  ->  '{' space? '"n":' space? integer space? '}'
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from json.encoder import encode_basestring as quoted

from rightcall.constrain.algebra import (
    EMPTY,
    NEVER,
    AnyOrder,
    Lexeme,
    Lit,
    Member,
    Node,
    Word,
    alt,
    chars,
    inverse,
    maybe,
    repeat,
    seq,
)
from rightcall.constrain.builder import Builder
from rightcall.constrain.numbers import any_integer, any_number, integers, numbers
from rightcall.constrain.patterns import escape_in_json
from rightcall.constrain.value_shapes import (
    ANYTHING,
    NOTHING,
    Anything,
    Array,
    Field,
    Number,
    Object,
    OneOf,
    Shape,
    ShapeReference,
    TextShape,
    Union,
    options,
    shape_of_value,
)
from rightcall.schema.places import Kind

_NESTED = 16  # items of a tuple that one rule nests
CONTROL = (0, 0x1F)
_PLAIN = inverse(chars(CONTROL, '"\\'))
_HEX = chars((0x30, 0x39), (0x41, 0x46), (0x61, 0x66))
_PAIR = seq(
    Lit("\\u"),
    chars("dD"),
    chars("89abAB"),
    _HEX,
    _HEX,
    Lit("\\u"),
    chars("dD"),
    chars((0x43, 0x46), (0x63, 0x66)),
    _HEX,
    _HEX,
)
_CODE = seq(
    Lit("\\u"), alt(seq(chars((0x30, 0x39), "ABCEFabcef"), _HEX), seq(chars("dD"), chars((0x30, 0x37)))), _HEX, _HEX
)
JSON_CHAR = alt(_PLAIN, seq(Lit("\\"), chars('"\\/bfnrt')), _CODE, _PAIR)
# What JSON, Python and TypeScript all read alike.
PLAIN_CHAR = alt(_PLAIN, seq(Lit("\\"), chars('"\\bfnrt')), _CODE, _PAIR)
# In the name of a member every character is written in one way only, or in one escape only where it is not ASCII, so
# that a declared name cannot be taken for an undeclared one.
_LOWER = chars((0x30, 0x39), (0x61, 0x66))
_LOW = seq(
    Lit("\\u00"), alt(seq(Lit("0"), chars((0x30, 0x37), "bef")), seq(Lit("1"), _LOWER), seq(chars("89abcdef"), _LOWER))
)
_HIGH = alt(
    seq(
        Lit("\\u"),
        alt(
            seq(Lit("0"), chars((0x31, 0x39), (0x61, 0x66))),
            seq(chars((0x31, 0x39), "abcef"), _LOWER),
            seq(Lit("d"), chars((0x30, 0x37))),
        ),
        _LOWER,
        _LOWER,
    ),
    seq(Lit("\\ud"), chars("89ab"), _LOWER, _LOWER, Lit("\\ud"), chars("cdef"), _LOWER, _LOWER),
)
KEY_CHAR = alt(_PLAIN, seq(Lit("\\"), chars('"\\bfnrt')), _LOW, _HIGH)


def json_strings(text: str) -> list[str]:
    """Return the spellings of a string in JSON, quotes included: as it is, and if that is not ASCII, also with all
    other characters escaped."""
    plain = quoted(text)
    return [plain] if plain.isascii() else [plain, json.dumps(text)]


@lru_cache(4096)
def json_string(text: str, after: str = "") -> Node:
    """Return the node of a string constant in JSON, in either of the spellings of `json_strings`, followed by the text
    `after`."""
    return alt(*[Lit(spelled + after) for spelled in json_strings(text)])


class Json:
    """Writes shapes as JSON. `prefix` distinguishes the recursive rules of different tools, and `named` has the
    recursive shapes by name."""

    kind = "json"

    def __init__(self, book: Builder, prefix: str = "", named: dict[str, Shape | None] | None = None) -> None:
        self.book, self.prefix, self._named = book, prefix, named or {}

    def value(self, shape: Shape) -> Node:
        """Return the node of all values of this shape; `NEVER` if none can be written. Strings, numbers, lists and
        objects become rules of the grammar, recursive shapes deferred ones, and a reference to them is returned."""
        if type(shape) is TextShape:
            return self.text(shape)
        if type(shape) is OneOf:
            return self.constants(shape.texts)
        if type(shape) is Number:
            return self.number(shape)
        if type(shape) is Anything:
            return self.anything()
        if type(shape) is Union:
            return alt(*map(self.value, shape.options))
        if type(shape) is ShapeReference:
            name = shape.name
            return self.book.define_deferred_rule(
                f"{self.kind}_{self.prefix}{name}", lambda: self.value(self._named.get(name) or ANYTHING)
            )
        assert isinstance(shape, (Array, Object))
        nested = shape
        if (nested.extra if isinstance(nested, Object) else nested.items) == ANYTHING:
            self.anything()  # which has a rule for this very shape, if it has no other limits
        # Recursive shapes of different tools may look the same, so their rules are not shared.
        own = self.prefix if self._named else ""
        return self.book.share_rule((self.kind, own, nested), self.kind[0], lambda: self.container(nested))

    def container(self, shape: Array | Object) -> Node:
        """Return the node of a list or an object, without a rule of its own."""
        return self.array(shape) if isinstance(shape, Array) else self.object(shape)

    def anything(self) -> Node:
        """Return a reference to the rule for any value."""
        return self.book.define_rule(f"{self.kind}_value", lambda: alt(*map(self.value, options(ANYTHING))))

    # -- scalars -------------------------------------------------------------------------------------------------------

    def constants(self, texts: Sequence[str]) -> Node:
        """Return the node of any of these constants, each given as JSON text; those with lone surrogates are left out.
        `NEVER` if none remain."""
        return alt(*[self.constant(text) for text in texts if _has_no_surrogates(text)])

    def constant(self, text: str) -> Node:
        """Return the node of a constant, given as JSON text, in the usual spellings of its value: a text with or
        without escapes beyond ASCII, 3.0 also as 3, a list or an object with any white space and order of members."""
        if text[0] in "[{":
            return self.value(shape_of_value(json.loads(text)))
        return json_string(json.loads(text)) if text[0] == '"' else alt(*map(Lit, _spellings(text, self.book.points)))

    def text(self, shape: TextShape) -> Node:
        """Return a reference to the rule for the strings of this shape; with a pattern, for those that match it."""
        if shape.pattern is not None:
            pattern = shape.pattern
            return self.book.share_rule(
                ("pattern", pattern), "pattern", lambda: Lexeme(seq(Lit('"'), escape_in_json(pattern), Lit('"')))
            )
        most = self.max_length(shape)
        name = "string" if not shape.least and most is None else f"string_{shape.least}_{'' if most is None else most}"
        return self.book.define_rule(
            name, lambda: Lexeme(seq(Lit('"'), repeat(JSON_CHAR, shape.least, most), Lit('"')))
        )

    def max_length(self, shape: TextShape) -> int | None:
        """Return the smaller of the maximum lengths that the shape and the grammar's bounds give, but at least the
        shape's minimum; None for no limit."""
        tops = [top for top in (shape.most, self.book.bounds.string) if top is not None]
        return max(min(tops), shape.least) if tops else None

    def number(self, shape: Number) -> Node:
        """Return a reference to the rule for the numbers of this range, with the digits that the grammar's bounds
        allow; `NEVER` if there are none."""
        most = self.book.bounds.digits
        if shape.low is None and shape.high is None:
            return (
                self.book.define_rule("integer", lambda: any_integer(most, point=self.book.points))
                if shape.integer
                else self.book.define_rule("number", lambda: any_number(most))
            )
        if shape.integer:
            return self.book.share_rule(
                ("n", shape), "number", lambda: integers(*_integer_bounds(shape), most, point=self.book.points)
            )
        return self.book.share_rule(
            ("n", shape), "number", lambda: numbers(shape.low, shape.high, shape.low_open, shape.high_open, most)
        )

    # -- containers ----------------------------------------------------------------------------------------------------

    opens, closes = "{", "}"

    def separator(self) -> Node:
        """Return the comma between members and items, with optional white space after it."""
        return seq(Lit(","), self.book.gap(" "))

    def array(self, shape: Array) -> Node:
        """Return the node of a list in square brackets; `NEVER` if a required item cannot be written."""
        gap = self.book.gap()
        return seq(Lit("["), gap, self.items(shape, self.value, self.separator()), gap, Lit("]"))

    def items(self, shape: Array, spell: Callable[[Shape], Node], separator: Node) -> Node:
        """Return the node of the items of a list and the separators between them, empty if it has none; `spell` returns
        the node of an item of a shape. The grammar's bounds limit their number, but not below the shape's minimum."""
        bound = self.book.bounds.array
        most = (
            shape.most
            if bound is None
            else max(shape.least, min(bound, shape.most if shape.most is not None else bound))
        )
        rest = NEVER if shape.items == NOTHING else spell(shape.items)
        return _items_by_position([spell(one) for one in shape.prefix], rest, separator, shape.least, most, self.book)

    def object(self, shape: Object) -> Node:
        """Return the node of an object in braces; `NEVER` if a required member cannot be written."""
        gap = self.book.gap()
        inside = self.members(shape.fields, shape)
        if inside == NEVER:
            return NEVER
        return seq(Lit("{"), gap, Lit("}")) if inside == EMPTY else seq(Lit("{"), gap, inside, gap, Lit("}"))

    def members(self, fields: Sequence[Field], shape: Object) -> Node:
        """Return the node of an object's members in any order, the declared `fields` and the undeclared ones that
        `shape` allows, with separators between them; `NEVER` if a required member cannot be written, `EMPTY` if there
        can be none."""
        made = [Member(self.member(field), field.required) for field in fields]
        return members_in_any_order(made, self.separator(), self.undeclared_member(shape), shape)

    def member(self, field: Field) -> Node:
        """Return the node of a declared member, name and value; `NEVER` if the value cannot be written."""
        return seq(json_string(field.name, ":"), self.book.gap(" "), self.value(field.shape))

    def undeclared_member(self, shape: Object) -> Node | None:
        """Return the node of a member, name and value, whose name is none of the declared ones and matches the shape's
        pattern of names, if it has one; None if the shape allows none."""
        if shape.extra == NOTHING:
            return None
        if self.kind == "json" and not shape.fields and shape.keys is None:
            return seq(self.book.define_rule("key", self.any_name), self.book.gap(" "), self.value(shape.extra))
        names = tuple(spelled[1:-1] for field in shape.fields for spelled in json_strings(field.name))
        inside = None if shape.keys is None else escape_in_json(shape.keys)
        word = Word('"', KEY_CHAR, '":', names, self.book.bounds.string, inside)
        return seq(word, self.book.gap(" "), self.value(shape.extra))

    def any_name(self) -> Node:
        """Return the terminal of any name, with its quotes and the colon, for an object that declares none. The colon
        belongs to it: an alternative may declare the same name, and a lexer takes the longer of two lexemes."""
        return Lexeme(seq(Lit('"'), repeat(JSON_CHAR, 0, self.book.bounds.string), Lit('":')))


def members_in_any_order(members: list[Member], separator: Node, extra: Node | None, shape: Object) -> Node:
    """Return a node for the members in any order with separators, and any number of `extra` (None: none; with it,
    `shape.least` and `shape.most` are not enforced). Optional members that cannot be written are left out. `NEVER` if a
    required one cannot, or fewer than `shape.least` remain; `EMPTY` if there are none, or none are allowed."""
    if any(member.node == NEVER and member.required for member in members):
        return NEVER
    members = [member for member in members if member.node != NEVER]
    if extra is None and shape.least > len(members):
        return NEVER
    if (not members and extra is None) or shape.most == 0:
        return EMPTY
    least, most = (shape.least, shape.most) if extra is None else (0, None)
    return AnyOrder(tuple(members), separator, extra, least, most)


def _further_items(rest: Node, separator: Node, begun: int, least: int, most: int | None) -> Node:
    """Return the node of the items `rest` after the first `begun` ones of a list, each with the separator before it, so
    that the list has `least` to `most` in all; empty if `rest` is `NEVER`."""
    if rest == NEVER:
        return EMPTY
    return repeat(seq(separator, rest), max(least - begun, 0), None if most is None else most - begun)


def _items_by_position(
    first: list[Node], rest: Node, separator: Node, least: int, most: int | None, book: Builder
) -> Node:
    """Return the node of the items of a list and their separators: those of `first` by position, then any number of
    `rest`, `least` to `most` in all. Empty for an empty list. Optional items that nest deeply become rules of
    `book`."""
    if most == 0:
        return EMPTY
    fixed = first if most is None else first[:most]
    tail = _further_items(rest, separator, max(len(fixed), 1), least, most)
    if not fixed:
        return seq(rest, tail) if least else maybe(seq(rest, tail))
    needed = min(least, len(fixed))
    for at in range(len(fixed) - 1, needed - 1, -1):
        tail = maybe(seq(separator, fixed[at], tail) if at else seq(fixed[at], tail))
        if at % _NESTED == _NESTED - 1:  # an optional item is nested in the one before it
            tail = book.extract_rule(tail)
    return seq(*[piece for item in fixed[:needed] for piece in (separator, item)][1:], tail)


def _integer_bounds(shape: Number) -> tuple[int | None, int | None]:
    """Return the smallest and the largest integer in a range of numbers, None where it has no bound."""
    low = high = None
    if shape.low is not None:
        low = int(shape.low.to_integral_value("ROUND_CEILING"))
        low += shape.low_open and low == shape.low
    if shape.high is not None:
        high = int(shape.high.to_integral_value("ROUND_FLOOR"))
        high -= shape.high_open and high == shape.high
    return low, high


def _spellings(text: str, points: bool) -> list[str]:
    """Return the spellings of a constant that is no string, given as JSON text. JSON Schema treats 3 and 3.0 as
    equal, so a number without a fraction has two; an integer is written with a point only if the grammar allows
    `points`."""
    if text[0] in "-0123456789":
        if text == "-0.0":
            return [text, "-0", "0.0", "0"]
        if text.endswith(".0"):
            return [text, text[:-2]]
        if text.lstrip("-").isdigit():
            return [text, text + ".0"] if points else [text]
        if "e+" in text and (value := float(text)).is_integer():
            return [text, str(int(value))]
    return [text]


def _has_no_surrogates(text: str) -> bool:
    """Return whether a text contains no lone surrogate."""
    return text.isascii() or text.encode("utf-8", "replace").decode() == text


class ArgumentsShape:
    """The shape of the arguments of one tool, and what is needed to write it. `kinds` returns how the text of each
    argument is parsed; `prefix` distinguishes the rules of different tools."""

    def __init__(
        self, name: str, shape: Shape, named: dict[str, Shape | None], kinds: Callable[[], dict[str, Kind]], prefix: str
    ) -> None:
        self.name, self.shape, self.named, self.kinds, self.prefix = name, shape, named, kinds, prefix
        self.body: list[Node] | None = None  # as its format writes it, once that was asked for

    def write_json(self, builder: Builder) -> Node:
        """Return the node of all arguments as one JSON object; `NEVER` if a required one cannot be written."""
        return Json(builder, self.prefix, self.named).value(self.shape)

    def object_shape(self) -> Object | None:
        """Return the shape of the arguments as one object, for formats that write members one by one: references are
        followed, and of several alternatives only the first object is used. None if there is no object, also for
        `ANYTHING`."""
        shape = self.shape
        for _ in range(32):
            name = getattr(shape, "name", None)
            if name is None or isinstance(shape, Object):
                break
            shape = self.named.get(name) or Object()
        if isinstance(shape, Object):
            return shape
        found = [one for one in getattr(shape, "options", ()) if isinstance(one, Object)]
        return found[0] if found else None
