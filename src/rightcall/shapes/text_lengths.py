"""How long the texts of a piece are, and which characters stand in them.

lengths(seq(Lit("ab"), maybe(Lit("c"))))  ->  (2, 3)
"""

from __future__ import annotations

from rightcall.shapes.algebra import ANY, Alt, Chars, Lexeme, Lit, Node, Repeat, Seq, Token, chars, repeat


def lengths(node: Node) -> tuple[int, int | None]:
    """The length of the shortest and of the longest text."""
    match node:
        case Lit(text):
            return len(text), len(text)
        case Seq(items):
            least_of, most_of = _ends(items)
            return sum(least_of), None if None in most_of else sum(filter(None, most_of))
        case Alt(items):
            least_of, most_of = _ends(items)
            return min(least_of, default=0), None if None in most_of else max(filter(None, most_of), default=0)
        case Repeat(item, least, most):
            low, high = lengths(item)
            return low * least, None if most is None or high is None else high * most
        case Lexeme(item):
            return lengths(item)
    return 1, 1


def _ends(items: tuple[Node, ...]) -> tuple[list[int], list[int | None]]:
    found = [lengths(item) for item in items]
    return [least for least, _ in found], [most for _, most in found]


def alphabet(node: Node) -> Chars:
    """Every character that may stand in it."""
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


def sized(node: Node, least: int, most: int | None) -> Node | None:
    """The texts of these lengths; None where that cannot be said by counting one repeat."""
    low, high = lengths(node)
    if low >= least and (most is None or (high is not None and high <= most)):
        return node
    if isinstance(node, Chars):
        node = Repeat(node, 1, 1)
    if isinstance(node, Repeat) and isinstance(node.item, Chars):
        return _repeated(node, least, most)
    return None


def _repeated(node: Repeat, least: int, most: int | None) -> Node | None:
    tops = [top for top in (node.most, most) if top is not None]
    bottom, top = max(node.least, least), min(tops, default=None)
    return None if top is not None and bottom > top else repeat(node.item, bottom, top)
