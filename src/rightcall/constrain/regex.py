"""Grammars as regular expressions, as Rust and Python read them, without look-around.

Repeat(chars((0x30, 0x39)), 1)  ->  [0-9]+

A grammar is not regular where a value may contain itself (any JSON, a recursive schema); the error then names the rule.
Members come in any order up to three, else in the declared order.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain, permutations
from typing import TYPE_CHECKING

from rightcall.constrain.algebra import (
    ANY,
    EMPTY,
    Alt,
    AnyOrder,
    Chars,
    Free,
    Lexeme,
    Lit,
    Node,
    Ref,
    Repeat,
    Seq,
    Token,
    Upto,
    Word,
    alt,
    chars,
    declared_order,
    inverse,
    may_begin_stop,
    minus,
    repeat,
    seq,
)
from rightcall.errors import GrammarCompileError

if TYPE_CHECKING:
    from rightcall.constrain.grammars import Grammar

_SPECIAL = set("\\.+*?()|[]{}^$#&-~/\"' ")


@lru_cache(4096)
def regex_text(node: Node) -> str:
    """Return a regular node as a regular expression for Rust and Python, without anchors, and without a group around
    alternatives. A node that is not regular, such as a reference, is an error of the caller (TypeError)."""
    match node:
        case Lit(text) | Token(text):
            return "".join(map(regex_char, text))
        case Chars(spans):
            return _char_class(spans)
        case Seq(items):
            return "".join([f"(?:{regex_text(item)})" if type(item) is Alt else regex_text(item) for item in items])
        case Alt(items):
            return "|".join([regex_text(item) for item in items])
        case Repeat(item, least, most):
            return _operand(item) + _quantifier(least, most)
        case Lexeme(item):
            return regex_text(item)
    raise TypeError(type(node).__name__)


def regex_char(char: str) -> str:
    """Return a character as a regular expression, escaped where needed."""
    if char in _SPECIAL:
        return f"\\x{ord(char):02x}" if char in "/\"' -&~#" else "\\" + char
    code = ord(char)
    if 0x20 <= code < 0x7F:
        return char
    return f"\\x{code:02x}" if code < 0x80 else char if char.isprintable() else f"\\U{code:08x}"


def _operand(node: Node) -> str:
    """Return the regular expression of a node as an operand, in a group where needed."""
    text = regex_text(node)
    return text if type(node) is Chars or (type(node) is Lit and len(node.text) == 1) else f"(?:{text})"


def _quantifier(least: int, most: int | None) -> str:
    """Return the quantifier for `least` to `most` repetitions (None: no upper limit): `*`, `+`, `?`, `{n}` (also for
    exactly one), `{m,}` or `{m,n}`."""
    known = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return known.get((least, most)) or (
        f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
    )


@lru_cache(4096)
def _char_class(spans: tuple[tuple[int, int], ...]) -> str:
    """Return the character class of these spans of code points, negated where they begin at 0 and end at the last code
    point; a class that matches nothing without spans."""
    if not spans:
        return "[^\\x00-\\U0010ffff]"
    if spans[0][0] == 0 and spans[-1][1] == 0x10FFFF:
        gaps = inverse(Chars(spans)).spans
        return "[^" + "".join(map(_class_range, gaps)) + "]" if gaps else "(?s:.)"
    return "[" + "".join(map(_class_range, spans)) + "]"


def _class_range(span: tuple[int, int]) -> str:
    """Return a span inside a character class, a single character or `a-z`."""
    low, high = span
    return _class_char(low) if low == high else f"{_class_char(low)}-{_class_char(high)}"


def _class_char(code: int) -> str:
    """Return a code point inside a character class: ASCII letters and digits as they are, others as escapes."""
    char = chr(code)
    if char.isascii() and char.isalnum():
        return char
    return f"\\x{code:02x}" if code < 0x80 else f"\\U{code:08x}"


def anywhere(texts: tuple[str, ...]) -> str:
    """Return a regular expression for text that contains one of these texts."""
    return "(?s:.*)(?:" + "|".join([regex_text(Lit(text)) for text in texts]) + ")(?s:.*)"


MAX_ORDERS = 3
MAX_SIZE = 300_000  # pieces and characters of them
MAX_NESTED = 100  # rules inside each other
_NO_SHORT_REGEX: dict[type[Node], str] = {
    Free: "free text without certain markers has no short regular expression; ask for a required call",
    Word: "undeclared arguments have no short regular expression; forbid them in the schema",
}


def emit_regex(grammar: Grammar) -> str:
    """Return a grammar as one regular expression. More than `MAX_ORDERS` members of an object must be in the declared
    order. Raises `GrammarCompileError` if the grammar is not regular or too large."""
    return regex_text(_Regular(grammar).expand(Ref(grammar.start)))


class _Regular:
    """Expands the rules of a grammar into one regular node, within a size limit."""

    def __init__(self, grammar: Grammar) -> None:
        self.rules = dict(grammar.definitions)
        self.open: dict[str, None] = {}
        self.done: dict[str, tuple[Node, int]] = {}  # and how many pieces each has
        self.pieces = 0

    def count(self, node: Node) -> None:
        """Add the size of a node, without the nodes in it, to `pieces`. Raises `GrammarCompileError` beyond
        `MAX_SIZE`."""
        self.pieces += 1 + (len(node.text) if isinstance(node, Lit) else 0)
        if self.pieces > MAX_SIZE:
            raise GrammarCompileError(f"the regular expression has over {MAX_SIZE:,} pieces; use a grammar instead")

    def expand(self, node: Node) -> Node:
        """Return the node with references replaced by their rules, free text by an equivalent regular node, and members
        in any order by all their orders, but by the declared order alone for more than `MAX_ORDERS` members or with
        undeclared members. Raises `GrammarCompileError` for a recursive rule, for undeclared names or free text without
        a short expression, and if the result is too large."""
        self.count(node)
        match node:
            case Ref(name):
                return self.expand_rule(name)
            case Seq(items):
                return seq(*map(self.expand, items))
            case Alt(items):
                return alt(*map(self.expand, items))
            case Repeat(item, least, most):
                return repeat(self.expand(item), least, most)
            case Lexeme(item):
                return self.expand(item)
            case Upto():
                return self.expand_upto(node)
            case Free((), most):
                return marker_free("", 0, most)
            case Free() | Word():
                raise GrammarCompileError(_NO_SHORT_REGEX[type(node)])
            case AnyOrder():
                return self.expand_any_order(node)
        return node

    def expand_rule(self, name: str) -> Node:
        """Return the expanded node of the rule `name`. Raises `GrammarCompileError` for a recursive rule, for rules
        nested too deeply, and if the result is too large. The size of the rule is counted each time."""
        if name in self.open:
            raise GrammarCompileError(
                f"the rule {name!r} is recursive, so the language is not regular; use a grammar instead"
            )
        if len(self.open) > MAX_NESTED:
            raise GrammarCompileError(f"the rules nest deeper than {MAX_NESTED} levels; use a grammar instead")
        before = self.pieces
        if name not in self.done:
            self.open[name] = None
            self.done[name] = self.expand(self.rules[name]), self.pieces - before
            del self.open[name]
        node, self.pieces = self.done[name][0], before + self.done[name][1]
        return node

    def expand_upto(self, node: Upto) -> Node:
        """Return free text with its stop as a regular node; `node.without` and `node.closed` are not enforced. Raises
        `GrammarCompileError` if the stop has no short expression, or its first character may be in the text that
        `inside` matches."""
        stop = "".join(piece.text for piece in node.stop)
        if may_begin_stop(node):
            raise GrammarCompileError("a pattern before a marker has no short regular expression; ask for JSON")
        if node.inside is not None:
            return seq(node.inside, Lit(stop))
        return seq(marker_free(stop, node.least, node.most), Lit(stop))

    def expand_any_order(self, node: AnyOrder) -> Node:
        """Return members in any order as a regular node: every permutation of up to `MAX_ORDERS` members, but only the
        declared order, whose rules are added to `rules`, for more of them or where undeclared members are allowed.
        Raises `GrammarCompileError` if the number of those is limited."""
        if len(node.members) > MAX_ORDERS or node.extra is not None:
            _reject_member_limits(node)
            start, rules = declared_order(node, f"order{len(self.done)}-{id(node)}")
            self.rules |= rules
            return self.expand(start)
        most = len(node.members) if node.most is None else node.most
        needed = {at for at, member in enumerate(node.members) if member.required}
        sizes = range(max(node.least, len(needed)), most + 1)
        orders = chain.from_iterable(permutations(range(len(node.members)), size) for size in sizes)
        return alt(*[self.expand_members(node, chosen) for chosen in orders if needed <= set(chosen)])

    def expand_members(self, node: AnyOrder, chosen: tuple[int, ...]) -> Node:
        """Return a node of the members at the positions `chosen`, in this order and with separators, expanded; empty
        for none."""
        pieces = [piece for at in chosen for piece in (node.separator, node.members[at].node)][1:]
        return seq(*map(self.expand, pieces)) if pieces else EMPTY


def _reject_member_limits(node: AnyOrder) -> None:
    """Raise `GrammarCompileError` if the number of the members is limited, other than by those that are required."""
    if node.least > sum(member.required for member in node.members) or node.most is not None:
        raise GrammarCompileError(
            f"limits of the number of more than {MAX_ORDERS} members have no short regular expression; use a "
            "grammar instead"
        )


def marker_free(stop: str, least: int, most: int | None) -> Node:
    """Return a regular node for `least` to `most` pieces of text in which `stop` does not occur, not even overlapping
    its end; any text if `stop` is empty. A piece is a character, or more if `stop` begins in it; many beginnings of
    `stop` in a row do not match. Raises `GrammarCompileError` if the first character of `stop` occurs in it again."""
    if not stop:
        return repeat(ANY, least, most)
    if stop[0] in stop[1:]:
        raise GrammarCompileError(f"text up to {stop!r} has no short regular expression; use a grammar instead")
    begin = chars(stop[0])
    heads = [stop[:size] for size in range(1, len(stop))]
    run = repeat(alt(*map(Lit, heads)), 0, 4) if heads else EMPTY
    broken = [seq(Lit(head), minus(inverse(begin), chars(stop[len(head)]))) for head in heads]
    piece = alt(inverse(begin), seq(run, alt(*broken))) if heads else inverse(begin)
    return seq(repeat(piece, least, most), run)
