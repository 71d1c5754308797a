"""The rules of a grammar under construction, how freely values may be written, and a format's markers as nodes.

A shape that occurs twice becomes one rule. White space is always optional and always bounded: small models do not get
out of unbounded white space.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import msgspec

from rightcall.constrain.algebra import (
    DIGIT,
    NEVER,
    Lexeme,
    Lit,
    Member,
    Node,
    Ref,
    Token,
    alt,
    chars,
    inverse,
    maybe,
    repeat,
    seq,
)
from rightcall.constrain.intersect import Relaxation
from rightcall.constrain.value_shapes import NOTHING, Field
from rightcall.formats.spec import Marker, Special, marker_alternatives
from rightcall.strict_json import pointer_step


class GrammarBounds(msgspec.Struct, frozen=True):
    """Maximum lengths in a grammar; None: no limit.

    - `string`: characters of a string.
    - `array`: items of an array.
    - `digits`: digits of a number.
    - `text`: characters of free text.
    - `calls`: calls in a reply."""

    string: int | None = None
    array: int | None = None
    digits: int | None = None
    text: int | None = None
    calls: int | None = 64


SPACE = Lexeme(alt(Lit(" "), seq(repeat(Lit("\n"), 1, 2), repeat(chars(" \t"), 0, 20))))

GAP = maybe(Ref("space"))


class Builder:
    """The rules of a grammar under construction, and what it cannot express (`limits`)."""

    def __init__(self, bounds: GrammarBounds, *, exact: bool = False, points: bool = False) -> None:
        self.rules: dict[str, Node] = {} if exact else {"space": SPACE}
        self.bounds = bounds
        self.points = points  # a whole number may be written 3.0
        self.exact = exact  # white space just as `render` writes it
        self.limits: dict[Relaxation, None] = {}
        self._known: dict[Hashable, Ref] = {}
        self._counts: dict[str, int] = {}
        self._deferred: list[tuple[str, Callable[[], Node]]] = []

    def gap(self, rendered: str = "") -> Node:
        """Return optional white space; if the grammar is `exact`, exactly the text `rendered`."""
        return Lit(rendered) if self.exact else GAP

    def define_rule(self, name: str, make: Callable[[], Node]) -> Ref:
        """Return a reference to the rule `name`. If the rule does not exist, it is added to `rules` with the node that
        `make` returns; `make` may refer to the rule itself."""
        if name not in self.rules:
            self.rules[name] = Lit("")
            self.rules[name] = make()
        return Ref(name)

    def define_deferred_rule(self, name: str, make: Callable[[], Node]) -> Ref:
        """Return a reference to the rule `name`. If the rule does not exist, `build_deferred_rules` calls `make` for it
        later: a chain of rules may be longer than Python's recursion limit."""
        if name not in self.rules:
            self.rules[name] = NEVER
            self._deferred.append((name, make))
        return Ref(name)

    def build_deferred_rules(self) -> None:
        """Call the `make` function of each deferred rule and store its node in `rules`, also for rules that are
        deferred meanwhile."""
        while self._deferred:
            name, make = self._deferred.pop()
            self.rules[name] = make()

    def share_rule(self, key: Hashable, prefix: str, make: Callable[[], Node]) -> Node:
        """Return a reference to the one rule for this key, which `make` builds on the first request; its name is
        `prefix` and a number. If `make` returns a literal, a reference or `NEVER`, there is no rule and that node is
        returned itself."""
        found = self._known.get(key)
        if found is None:
            node = make()
            if isinstance(node, (Ref, Lit)) or node == NEVER:
                return node
            number = self._counts[prefix] = self._counts.get(prefix, 0) + 1
            found = self._known[key] = Ref(f"{prefix}{number}")
            self.rules[found.name] = node
        return found

    def extract_rule(self, node: Node) -> Node:
        """Return a reference to the rule for this node, added on the first request, so that the node that uses it nests
        less deeply. A literal, a reference or `NEVER` is returned itself."""
        return self.share_rule(("part", node), "part", lambda: node)

    def report_lost_arguments(self, tool: str, fields: Sequence[Field], members: Sequence[Member]) -> None:
        """Record in `limits` the optional arguments of a tool that the format cannot write: whose node in `members` is
        `NEVER`, though their shape in `fields` allows a value. `members` are the nodes of the `fields`, in order."""
        for field, member in zip(fields, members, strict=True):
            if member.node == NEVER and not field.required and field.shape != NOTHING:
                path = f"/properties{pointer_step(field.name)}"
                allows = "only calls without this argument: the format cannot write it"
                self.limits[Relaxation(tool, path, "properties", allows)] = None


BLANKS = " \t\r\n"
_HOLE = re.compile(r"\{(name|key|type|id|index|number)\}")
_ID = Lexeme(repeat(chars((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A), "_.:-"), 1, 64))
_COUNT = Lexeme(repeat(DIGIT, 1, 3))
HOLES: dict[str, Node] = {"id": _ID, "index": _COUNT, "number": _COUNT}


class Edges(NamedTuple):
    """A marker and the white space on both sides of it."""

    before: str
    core: str
    after: str


def first(marker: Marker) -> str:
    """Return the first of the spellings of a marker."""
    return marker_alternatives(marker)[0]


def split_marker(marker: str) -> Edges:
    """Split a marker into its core and the white space before and after it, and return the three. A core of special
    tokens is a `Special`. A marker of white space alone has an empty core and is returned as `after`."""
    core = marker.strip(BLANKS)
    if not core:
        return Edges("", "", str(marker))
    at = marker.index(core)
    tokens = getattr(marker, "tokens", ())
    return Edges(str(marker)[:at], Special(core, tokens) if tokens else core, str(marker)[at + len(core) :])


def pieces(marker: str, **holes: str | Node) -> list[Node]:
    """Return the nodes of a marker: literals, `Token` nodes for its special tokens, and the values in `holes` for its
    placeholders ("" leaves one out). A placeholder `{id}`, `{index}` or `{number}` without a value becomes a node for
    any such value; another one is an error of the caller (AssertionError)."""
    out: list[Node] = []
    at, text = 0, str(marker)
    for token in getattr(marker, "tokens", ()):
        where = text.index(token, at)
        out += _fill_holes(text[at:where], holes)
        out.append(Token(token))
        at = where + len(token)
    return out + _fill_holes(text[at:], holes)


def _fill_holes(text: str, holes: dict[str, str | Node]) -> list[Node]:
    """Return the nodes of a text that has no special tokens, with its placeholders replaced by the values in `holes`
    ("" leaves one out), else by the nodes in `HOLES`. One that is in neither is an error of the caller
    (AssertionError)."""
    out: list[Node] = []
    for i, piece in enumerate(_HOLE.split(text)):
        filling = holes.get(piece, HOLES.get(piece)) if i % 2 else piece
        assert filling is not None, f"no value for the placeholder {{{piece}}}"
        if filling != "":
            out.append(Lit(filling) if isinstance(filling, str) else filling)
    return out


def stop_sequence(nodes: Sequence[Node]) -> tuple[Lit | Token, ...]:
    """Return these literals and tokens as the `stop` of free text, with adjacent literals joined. Any other node is
    an error of the caller (AssertionError)."""
    out: list[Lit | Token] = []
    for node in nodes:
        assert isinstance(node, (Lit, Token))
        if out and isinstance(node, Lit) and isinstance(out[-1], Lit):
            out[-1] = Lit(out[-1].text + node.text)
        else:
            out.append(node)
    return tuple(out)


def text_of(stop: tuple[Lit | Token, ...]) -> str:
    """Return the text of a stop sequence."""
    return "".join(piece.text for piece in stop)


QUOTED_ID = Lexeme(seq(Lit('"'), repeat(inverse(chars((0, 0x1F), '"\\')), 1, 64), Lit('"')))


def nodes_around_arguments(opens: Marker, closes: Marker, builder: Builder, name: str) -> tuple[list[Node], list[Node]]:
    """Return the nodes of the opening marker and those of the closing marker of a call of the tool `name`, each in its
    first spelling. White space that the markers have next to the arguments becomes a gap: optional, or as rendered in
    an `exact` grammar. White space on their outer sides is dropped."""
    opener, close = split_marker(first(opens)), split_marker(first(closes))
    before = [*pieces(opener.core, name=name), *([builder.gap(opener.after)] if opener.after else [])]
    return before, [*([builder.gap(close.before)] if close.before else []), *pieces(close.core)]
