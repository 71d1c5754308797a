"""The grammar as one regular expression, without look-around, where the language is regular.

It is not where a value may hold itself (any JSON, a recursive schema); then the error names the rule. Members come in
any order up to three, else as declared.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

from rightcall.errors import GrammarCompileError
from rightcall.shapes.algebra import (
    ANY,
    EMPTY,
    Alt,
    AnyOrder,
    Free,
    Lexeme,
    Lit,
    Node,
    Ref,
    Repeat,
    Seq,
    Upto,
    Word,
    alt,
    chars,
    inverse,
    minus,
    repeat,
    seq,
)
from rightcall.shapes.order import declared_order
from rightcall.shapes.write_regex import regex_text

if TYPE_CHECKING:
    from rightcall.constrain.grammar_value import Grammar

MAX_ORDERS = 3
MAX_SIZE = 300_000  # pieces and characters of them
MAX_NESTED = 100  # rules inside each other
_NO_SHORT_REGEX: dict[type[Node], str] = {
    Free: "free text without certain markers has no short regular expression; ask for a required call",
    Word: "undeclared arguments have no short regular expression; forbid them in the schema",
}


def emit(grammar: Grammar) -> str:
    return regex_text(_Regular(grammar).expand(Ref(grammar.start)))


class _Regular:
    def __init__(self, grammar: Grammar) -> None:
        self.rules = dict(grammar.definitions)
        self.open: dict[str, None] = {}
        self.done: dict[str, tuple[Node, int]] = {}  # and how many pieces each has
        self.pieces = 0

    def count(self, node: Node) -> None:
        self.pieces += 1 + (len(node.text) if isinstance(node, Lit) else 0)
        if self.pieces > MAX_SIZE:
            raise GrammarCompileError(f"the regular expression has over {MAX_SIZE:,} pieces; take a grammar instead")

    def expand(self, node: Node) -> Node:
        self.count(node)
        match node:
            case Ref(name):
                return self.rule(name)
            case Seq(items):
                return seq(*map(self.expand, items))
            case Alt(items):
                return alt(*map(self.expand, items))
            case Repeat(item, least, most):
                return repeat(self.expand(item), least, most)
            case Lexeme(item):
                return self.expand(item)
            case Upto():
                return self.upto(node)
            case Free((), most):
                return marker_free("", 0, most)
            case Free() | Word():
                raise GrammarCompileError(_NO_SHORT_REGEX[type(node)])
            case AnyOrder():
                return self.order(node)
        return node

    def rule(self, name: str) -> Node:
        if name in self.open:
            raise GrammarCompileError(
                f"the rule {name!r} is part of itself, so the language is not regular; take a grammar instead"
            )
        if len(self.open) > MAX_NESTED:
            raise GrammarCompileError(f"the rules nest deeper than {MAX_NESTED} levels; take a grammar instead")
        before = self.pieces
        if name not in self.done:
            self.open[name] = None
            self.done[name] = self.expand(self.rules[name]), self.pieces - before
            del self.open[name]
        node, self.pieces = self.done[name][0], before + self.done[name][1]
        return node

    def upto(self, node: Upto) -> Node:
        stop = "".join(piece.text for piece in node.stop)
        return seq(marker_free(stop, node.least, node.most), Lit(stop))

    def order(self, node: AnyOrder) -> Node:
        if len(node.members) > MAX_ORDERS or node.extra is not None:
            start, rules = declared_order(node, f"order{len(self.done)}-{id(node)}")
            self.rules |= rules
            return self.expand(start)
        most = len(node.members) if node.most is None else node.most
        needed = {at for at, member in enumerate(node.members) if member.required}
        found: list[Node] = []
        for size in range(max(node.least, len(needed)), most + 1):
            for chosen in permutations(range(len(node.members)), size):
                if needed <= set(chosen):
                    found.append(self.row(node, chosen))
        return alt(*found)

    def row(self, node: AnyOrder, chosen: tuple[int, ...]) -> Node:
        pieces = [piece for at in chosen for piece in (node.separator, node.members[at].node)][1:]
        return seq(*map(self.expand, pieces)) if pieces else EMPTY


def marker_free(stop: str, least: int, most: int | None) -> Node:
    """Text in which `stop` does not stand, nor begin where it follows: characters that do not begin it, and beginnings
    of it with a character that does not go on with it."""
    if not stop:
        return repeat(ANY, least, most)
    if stop[0] in stop[1:]:
        raise GrammarCompileError(f"text up to {stop!r} has no short regular expression; take a grammar instead")
    begin = chars(stop[0])
    heads = [stop[:size] for size in range(1, len(stop))]
    run = repeat(alt(*map(Lit, heads)), 0, 4) if heads else EMPTY
    broken = [seq(Lit(head), minus(inverse(begin), chars(stop[len(head)]))) for head in heads]
    piece = alt(inverse(begin), seq(run, alt(*broken))) if heads else inverse(begin)
    return seq(repeat(piece, least, most), run)
