"""Nodes of a grammar: immutable, hashable, independent of any engine.

    Seq((Lit('{"city":'), Ref("space"), Ref("string"), Lit("}")))     prints as     '{"city":' space string '}'

Where engines differ in what they can express there is a node of its own (`Upto`, `Free`, `Word`, `AnyOrder`), and each
emitter translates it as its engine allows. A `Lexeme` is regular and becomes one terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import msgspec

TOP = 0x10FFFF
MAX_ANY_ORDER = 60  # members of an object of which Lark keeps count in any order: bits of a rule's parameter
_SURROGATES = (0xD800, 0xDFFF)
Span = tuple[int, int]


class Lit(msgspec.Struct, frozen=True):
    """Exactly this text."""

    text: str


class Token(msgspec.Struct, frozen=True):
    """One token of the model's vocabulary; for engines without tokens, its text."""

    text: str


class Chars(msgspec.Struct, frozen=True):
    """One character of these spans of code points, which are sorted, disjoint and without surrogates."""

    spans: tuple[Span, ...]


class Ref(msgspec.Struct, frozen=True):
    """Another rule."""

    name: str


class Seq(msgspec.Struct, frozen=True):
    """These nodes, one after the other."""

    items: tuple[Node, ...]


class Alt(msgspec.Struct, frozen=True):
    """Any one of these nodes; without items, a node that matches nothing."""

    items: tuple[Node, ...]


class Repeat(msgspec.Struct, frozen=True):
    """`least` to `most` repetitions of a node; no upper limit if `most` is None."""

    item: Node
    least: int = 0
    most: int | None = None


class Lexeme(msgspec.Struct, frozen=True):
    """A regular node that becomes one terminal: nothing outside depends on the position inside it."""

    item: Node


class Upto(msgspec.Struct, frozen=True):
    """Free text followed by `stop`. Neither `stop` nor any of `without` occurs in the text. `closed`: the text must not
    open a construct that would quote `stop`. With `inside`, the text must also match that regular node, which then has
    the lengths."""

    stop: tuple[Lit | Token, ...]
    least: int = 0
    most: int | None = None
    without: tuple[str, ...] = ()
    closed: bool = False
    inside: Node | None = None


class Free(msgspec.Struct, frozen=True):
    """Free text up to the end of the reply. None of `without` occurs in it."""

    without: tuple[str, ...] = ()
    most: int | None = None


class Word(msgspec.Struct, frozen=True):
    """Characters between two delimiters that are none of the words in `without`: the name of an undeclared argument.

    With `inside`, the name must also match that regular node."""

    open: str
    char: Node
    close: str
    without: tuple[str, ...] = ()
    most: int | None = None
    inside: Node | None = None
    least: int = 0


class Member(msgspec.Struct, frozen=True):
    """A member of an `AnyOrder`."""

    node: Node
    required: bool = False


class AnyOrder(msgspec.Struct, frozen=True):
    """Each member at most once and each required member exactly once, in any order; `extra` any number of times between
    them."""

    members: tuple[Member, ...]
    separator: Node
    extra: Node | None = None
    least: int = 0
    most: int | None = None


Node = Lit | Token | Chars | Ref | Seq | Alt | Repeat | Lexeme | Upto | Free | Word | AnyOrder
EMPTY = Seq(())
NEVER = Alt(())


# -- making them -------------------------------------------------------------------------------------------------------


def seq(*items: Node) -> Node:
    """Return a sequence of nodes: nested sequences are flattened, adjacent literals joined and empty ones dropped. A
    single remaining node is returned itself; without nodes it is `EMPTY`, and with an impossible node `NEVER`."""
    out: list[Node] = []
    for item in items:
        for piece in item.items if type(item) is Seq else (item,):
            if type(piece) is Lit:
                if not piece.text:
                    continue
                if out and type(out[-1]) is Lit:
                    out[-1] = Lit(out[-1].text + piece.text)
                    continue
            elif type(piece) is Alt and not piece.items:
                return NEVER
            out.append(piece)
    return out[0] if len(out) == 1 else Seq(tuple(out))


def alt(*items: Node) -> Node:
    """Return a node that matches any of these nodes, nested alternatives flattened and duplicates removed. A single
    remaining node is returned itself; without nodes, `NEVER`."""
    if len(items) == 1:
        return items[0]
    out: dict[Node, None] = {}
    for item in items:
        for piece in item.items if type(item) is Alt else (item,):
            out[piece] = None
    return next(iter(out)) if len(out) == 1 else Alt(tuple(out))


def maybe(item: Node) -> Node:
    """Return a node that matches `item` or the empty text; the empty sequence if `item` is empty or impossible."""
    return EMPTY if type(item) in (Seq, Alt) and not item.items else Repeat(item, 0, 1)  # type: ignore[union-attr]


def repeat(item: Node, least: int = 0, most: int | None = None) -> Node:
    """Return `item` repeated `least` to `most` times (None: no upper limit); exactly once is `item` itself. Repeating
    nothing, or `most` 0, gives the empty sequence; an impossible item gives `NEVER` if it is required, else the empty
    sequence."""
    if most == 0 or item == EMPTY:
        return EMPTY
    if item == NEVER:
        return NEVER if least else EMPTY
    return item if least == most == 1 else Repeat(item, least, most)


@lru_cache(1024)
def chars(*spans: Span | str) -> Chars:
    """Return the set of these characters, without surrogates. A span is a pair of inclusive code points; a text stands
    for each of its characters."""
    pairs = [
        pair for span in spans for pair in ([span] if isinstance(span, tuple) else [(ord(c), ord(c)) for c in span])
    ]
    return Chars(_merge_spans(pairs))


def inverse(found: Chars) -> Chars:
    """Return the set of all characters except these. Surrogates are in neither set."""
    out: list[Span] = []
    at = 0
    for low, high in _merge_spans([*found.spans, _SURROGATES], keep=True):
        if low > at:
            out.append((at, low - 1))
        at = high + 1
    if at <= TOP:
        out.append((at, TOP))
    return Chars(tuple(out))


def both(one: Chars, other: Chars) -> Chars:
    """Return the characters that are in both sets."""
    pairs = [(max(a, c), min(b, d)) for a, b in one.spans for c, d in other.spans if max(a, c) <= min(b, d)]
    return Chars(_merge_spans(pairs))


def minus(one: Chars, other: Chars) -> Chars:
    """Return the characters of `one` that are not in `other`."""
    return both(one, inverse(other))


def has(found: Chars, char: str) -> bool:
    """Return whether a set contains a character."""
    return any(low <= ord(char) <= high for low, high in found.spans)


def _merge_spans(pairs: Iterable[Span], keep: bool = False) -> tuple[Span, ...]:
    """Return the spans sorted, with those that overlap or touch merged; surrogates are removed unless `keep`."""
    out: list[Span] = []
    for low, high in sorted(pairs):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return tuple(out) if keep else _remove_surrogates(out)


def _remove_surrogates(spans: list[Span]) -> tuple[Span, ...]:
    """Return the spans without the code points of surrogates, splitting spans that contain them."""
    first, last = _SURROGATES
    if not any(low <= last and high >= first for low, high in spans):
        return tuple(spans)
    cut = [(low, min(high, first - 1)) for low, high in spans] + [(max(low, last + 1), high) for low, high in spans]
    return tuple(sorted({(low, high) for low, high in cut if low <= high}))


ANY = chars((0, TOP))
DIGIT = chars((0x30, 0x39))


# -- looking at them ---------------------------------------------------------------------------------------------------


def _any_order_children(node: AnyOrder) -> tuple[Node, ...]:
    """Return the members of an `AnyOrder`, its separator, and `extra` if it has one."""
    return (*[member.node for member in node.members], node.separator, *(() if node.extra is None else (node.extra,)))


# By type, because every rule of a hundred tools is looked at.
_CHILDREN: dict[type, Callable[[Any], tuple[Node, ...]]] = {
    Seq: lambda node: node.items,
    Alt: lambda node: node.items,
    Repeat: lambda node: (node.item,),
    Lexeme: lambda node: (node.item,),
    Upto: lambda node: node.stop if node.inside is None else (node.inside, *node.stop),
    Word: lambda node: (node.char,) if node.inside is None else (node.inside,),
    AnyOrder: _any_order_children,
}
_LEAVES = frozenset((Lit, Token, Chars, Free, Lexeme, Upto, Word))  # in these there is no other rule


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes directly inside a node; none for a leaf, and for a reference, which is not followed."""
    look = _CHILDREN.get(type(node))
    return look(node) if look is not None else ()


def referenced_rules(node: Node) -> list[str]:
    """Return the names of the rules that a node refers to, at any depth inside it; a name occurs once per reference.
    The rules themselves are not looked into."""
    found: list[str] = []
    waiting: list[Node] = [node]
    while waiting:
        here = waiting.pop()
        kind = type(here)
        if kind is Ref:
            found.append(here.name)  # type: ignore[union-attr]
        elif kind is Seq or kind is Alt:
            waiting += [item for item in here.items if type(item) not in _LEAVES]  # type: ignore[union-attr]
        elif kind not in _LEAVES:
            waiting += _CHILDREN[kind](here)
    return found


def lengths(node: Node) -> tuple[int, int | None]:
    """Return the number of characters of the shortest and of the longest text of a node, None for no limit. Literals,
    sequences, alternatives, repeats and lexemes are measured; any other node counts as one character."""
    match node:
        case Lit(text):
            return len(text), len(text)
        case Seq(items):
            least_of, most_of = _lengths_of_each(items)
            return sum(least_of), None if None in most_of else sum(filter(None, most_of))
        case Alt(items):
            least_of, most_of = _lengths_of_each(items)
            return min(least_of, default=0), None if None in most_of else max(filter(None, most_of), default=0)
        case Repeat(item, least, most):
            low, high = lengths(item)
            return low * least, None if most is None or high is None else high * most
        case Lexeme(item):
            return lengths(item)
    return 1, 1


def _lengths_of_each(items: tuple[Node, ...]) -> tuple[list[int], list[int | None]]:
    """Return two lists: the shortest and the longest length of each node, None for no limit."""
    found = [lengths(item) for item in items]
    return [least for least, _ in found], [most for _, most in found]


def alphabet(node: Node) -> Chars:
    """Return every character that a text of the node may contain; all characters for a node whose texts are not
    fixed, such as a reference or free text."""
    match node:
        case Lit(text) | Token(text):
            return chars(text)
        case Chars():
            return node
        case Seq(items) | Alt(items):
            return chars(*(span for item in items for span in alphabet(item).spans))
        case Repeat(item) | Lexeme(item):
            return alphabet(item)
    return ANY


def may_begin_stop(node: Upto) -> bool:
    """Return whether the node that the text must match (`inside`) may contain the first character of the stop,
    anywhere; False without such a node."""
    return node.inside is not None and has(alphabet(node.inside), node.stop[0].text[0])


def limit_length(node: Node, least: int, most: int | None) -> Node | None:
    """Return a node for those texts of `node` that have `least` to `most` characters: `node` itself if all have. None
    if no text has, or if anything but repetitions of a single character class would have to be counted."""
    low, high = lengths(node)
    if low >= least and (most is None or (high is not None and high <= most)):
        return node
    if isinstance(node, Chars):
        node = Repeat(node, 1, 1)
    if isinstance(node, Repeat) and isinstance(node.item, Chars):
        return _limit_repeat(node, least, most)
    return None


def _limit_repeat(node: Repeat, least: int, most: int | None) -> Node | None:
    """Return a repeat of one character class with its counts narrowed to `least` to `most` (None: no upper limit); None
    if the two ranges have no count in common."""
    tops = [top for top in (node.most, most) if top is not None]
    bottom, top = max(node.least, least), min(tops, default=None)
    return None if top is not None and bottom > top else repeat(node.item, bottom, top)


MAX_ANY = 4


def declared_order(node: AnyOrder, prefix: str) -> tuple[Node, dict[str, Node]]:
    """Return a node for the members in declared order, then any number of `extra`, with separators between them, and
    the rules that it refers to by name. Optional members may be missing. The names of the rules begin with `prefix`.
    `node.least` and `node.most` are not enforced."""
    members = node.members
    needed = next((at for at, member in enumerate(members) if member.required), len(members))
    following = [seq(node.separator, member.node) for member in members]
    rest = [piece if member.required else maybe(piece) for piece, member in zip(following, members, strict=True)]
    extra = repeat(seq(node.separator, node.extra)) if node.extra is not None else EMPTY
    if members and not needed:
        return seq(members[0].node, *rest[1:], extra), {}
    rules: dict[str, Node] = {f"{prefix}-t{needed + 1}": seq(*rest[needed + 1 :], extra)}
    after: Node = Ref(f"{prefix}-t{needed + 1}")
    if needed < len(members):
        start = seq(members[needed].node, after)
        rules[f"{prefix}-t{needed}"] = seq(following[needed], after)
        after = Ref(f"{prefix}-t{needed}")
    else:
        start = maybe(seq(node.extra, after)) if node.extra is not None else EMPTY
    for at in range(needed - 1, -1, -1):
        rules[f"{prefix}-f{at + 1}"] = start
        start = alt(seq(members[at].node, after), Ref(f"{prefix}-f{at + 1}"))
        rules[f"{prefix}-t{at}"] = seq(rest[at], after)
        after = Ref(f"{prefix}-t{at}")
    rules.pop(f"{prefix}-t0", None)
    return start, rules


def all_orders(node: AnyOrder, prefix: str) -> tuple[Node, dict[str, Node]]:
    """Return a node for the members in every order, with `extra` any number of times before, between and after them,
    and the rules that it refers to by name, one for every set of members already written. The names begin with
    `prefix`. `node.least` and `node.most` are enforced; `extra` is not counted."""
    rules: dict[str, Node] = {}
    everything = (1 << len(node.members)) - 1
    needed = sum(1 << at for at, member in enumerate(node.members) if member.required)
    most = len(node.members) if node.most is None else node.most

    def more(written: int, first: bool) -> Node:
        """Return what may follow when the members with a bit in `written` are written; `first` is True before the first
        member, which needs no separator."""
        options: list[Node] = []
        separator = EMPTY if first else node.separator
        if written.bit_count() < most:
            for at, member in enumerate(node.members):
                if not written >> at & 1:
                    options.append(seq(separator, member.node, _after(written | 1 << at)))
        if node.extra is not None:
            options.append(seq(separator, node.extra, _after(written)))
        if written & needed == needed and written.bit_count() >= node.least:
            options.append(EMPTY)
        return Alt(tuple(options)) if len(options) != 1 else options[0]

    def _after(written: int) -> Node:
        """Return a reference to the rule for what follows the members in `written`, added to `rules` on the first
        request. If nothing can follow, there is no rule: return `EMPTY`, or `NEVER` if members are missing."""
        done = written == everything or written.bit_count() >= most
        if done and node.extra is None:
            return EMPTY if written & needed == needed and written.bit_count() >= node.least else NEVER
        name = f"{prefix}-{written}"
        if name not in rules:
            rules[name] = EMPTY
            rules[name] = more(written, False)
        return Ref(name)

    return more(0, True), rules


def reachable_rules(rules: dict[str, Node], *starts: str) -> dict[str, Node]:
    """Return the rules named by `starts` and all rules that they refer to, directly or not, in the order in which
    they are found."""
    found: dict[str, Node] = {}
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = rules[name]
            waiting += [other for other in referenced_rules(rules[name]) if other not in found]
    return found
