"""Grammars for people: productions as text (`str(grammar)`), and one tool's rules as an SVG (`grammar.svg`).

Rule("calls", Repeat(Ref("call"), 1))  ->  calls ::= call+

In the SVG, literal text is in a rounded box and a rule that is drawn elsewhere in a square one. Boxes below each other
are a choice, a dashed frame may be left out, and `×` gives the number of repetitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from xml.sax.saxutils import escape

import msgspec

from rightcall.constrain.algebra import (
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
    Span,
    Token,
    Upto,
    Word,
    referenced_rules,
)
from rightcall.errors import CallerError

if TYPE_CHECKING:
    from rightcall.constrain.grammars import Grammar


class Rule(msgspec.Struct, frozen=True):
    """One production. Several with the same `lhs` are alternatives."""

    lhs: str
    rhs: Node

    def __str__(self) -> str:
        return f"{self.lhs} ::= {show(self.rhs)}"


def show(node: Node) -> str:
    """Return a node as text, in the notation of `str(grammar)`: literals in quotes, rules by name, `|`, `*`, `+`, `?`,
    `{m,n}`, and words such as `text-up-to(...)` for nodes without such a notation."""
    match node:
        case Seq(items):
            return " ".join(map(_show_operand, items)) or "''"
        case Alt(items):
            return " | ".join(map(show, items)) or "never"
        case Repeat(item, least, most):
            return _show_operand(item) + _show_quantifier(least, most)
        case Lexeme(item):
            return show(item)
        case AnyOrder():
            return _show_members(node)
        case Upto() | Free() | Word():
            return _show_text(node)
    return _show_leaf(node)


def _show_leaf(node: Lit | Token | Chars | Ref) -> str:
    """Return the notation of a node without parts: a quoted literal, `<token>`, a character class, or the name of a
    rule."""
    match node:
        case Lit(text):
            return repr(text)
        case Token(text):
            return f"<{text}>"
        case Chars(spans):
            return "[" + "".join(map(_show_span, spans)) + "]"
    return node.name


def _show_text(node: Upto | Free | Word) -> str:
    """Return the notation of free text or of an undeclared name: `text-up-to(STOP)`, `text-without(...)` or `text`,
    `word-other-than(...)` or `word` between its delimiters. Lengths and patterns are not shown."""
    match node:
        case Upto(stop):
            return "text-up-to(" + " ".join(map(show, stop)) + ")"
        case Free(without):
            return "text" + (f"-without({', '.join(map(repr, without))})" if without else "")
    other = f"-other-than({', '.join(node.without)})" if node.without else ""
    return f"{node.open!r} word{other} {node.close!r}"


def _show_members(node: AnyOrder) -> str:
    """Return the notation of members in any order, `any-order(a, b?, (extra)*)`: `?` marks the optional members.
    Separators and limits of their number are not shown."""
    parts = [show(member.node) + ("" if member.required else "?") for member in node.members]
    extra = [] if node.extra is None else [f"({show(node.extra)})*"]
    return "any-order(" + ", ".join(parts + extra) + ")"


def _show_operand(node: Node) -> str:
    """Return the notation of a node as an operand of a sequence or a quantifier: in parentheses if it consists of
    several parts."""
    text = show(node)
    single = type(node) in (Lit, Token, Chars, Ref, AnyOrder, Upto, Free) or type(node) is Repeat
    return text if single or (type(node) is Lexeme and " " not in text) else f"({text})"


def _show_quantifier(least: int, most: int | None) -> str:
    """Return the quantifier of a repeat: `*`, `+`, `?` or `{least,most}`, `{least,}` without an upper limit."""
    known = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return known.get((least, most), f"{{{least},{'' if most is None else most}}}")


def _show_span(span: Span) -> str:
    """Return a span of a character class, a single character or `a-z`, with unprintable ones escaped."""
    low, high = (chr(n) if chr(n).isprintable() else f"\\x{n:02x}" for n in span)
    return low if span[0] == span[1] else f"{low}-{high}"


_HIGH, _GAP, _PAD, _CHAR = 26, 10, 10, 7.4
_LONG = 46
_INKS = {
    "text": ("#e8f3ec", "#2f7d4f"),
    "rule": ("#eaf0fb", "#3a62a8"),
    "class": ("#f6f0e4", "#8a6418"),
    "frame": ("none", "#999999"),
}
_LETTERS = "ui-monospace, SFMono-Regular, Menlo, monospace"


class Drawn(NamedTuple):
    """An SVG drawing with its width, its height, and its parts, each at a position relative to the upper left
    corner."""

    wide: float
    high: float
    parts: list[tuple[float, float, str]]

    def shifted_parts(self, x: float, y: float) -> list[tuple[float, float, str]]:
        """Return the parts of the drawing, moved right by `x` and down by `y`."""
        return [(x + dx, y + dy, svg) for dx, dy, svg in self.parts]


def svg(grammar: Grammar, tool: str) -> str:
    """Return an SVG with the rules of this tool's call and those that they refer to, except `space`, one below the
    other. Raises `CallerError` if the grammar has no call of the tool."""
    if tool not in grammar.called:
        raise CallerError(f"the grammar has no call of {tool!r}; it has {', '.join(grammar.called[:10]) or 'none'}")
    rules = _rules_to_draw(grammar, f"call_{grammar.called.index(tool)}")
    y, body, widest = 20.0, [], 0.0
    for name in rules:
        node = grammar.definitions[name]
        label = tool if name.startswith("call_") else name
        body.append((16.0, y + 12, f'<text font-weight="bold" font-size="13" fill="#333333">{escape(label)}</text>'))
        drawn = _draw_node(node)
        body += drawn.shifted_parts(24, y + 22)
        y += drawn.high + 44
        widest = max(widest, drawn.wide + 48)
    wide, high = max(widest, 320), y
    lines = [f'<g transform="translate({x:.0f},{top:.0f})">{piece}</g>' for x, top, piece in body]
    size = f'viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" height="{high:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_LETTERS}" font-size="12" role="img">'
    title = f"<title>{escape(f'The grammar of a call of {tool}')}</title>"
    return (
        "\n".join([head, title, f'<rect width="{wide:.0f}" height="{high:.0f}" fill="#ffffff"/>', *lines, "</svg>"])
        + "\n"
    )


def _rules_to_draw(grammar: Grammar, start: str) -> list[str]:
    """Return the name of the start rule, followed by those of the rules that it refers to, directly or not, each once.
    The rule `space` is left out."""
    found: dict[str, None] = {start: None}
    waiting = [start]
    while waiting:
        for name in referenced_rules(grammar.definitions[waiting.pop(0)]):
            if name not in found and name != "space":
                found[name] = None
                waiting.append(name)
    return list(found)


def _draw_box(text: str, kind: str) -> Drawn:
    """Return a box with a text, which is shortened if it is long. `kind` is a key of `_INKS`."""
    shown = text if len(text) <= _LONG else text[: _LONG - 1] + "…"
    wide = max(len(shown) * _CHAR + 2 * _PAD, 24)
    fill, ink = _INKS[kind]
    round_ = 12 if kind == "text" else 3
    box = f'<rect width="{wide:.0f}" height="{_HIGH}" rx="{round_}" fill="{fill}" stroke="{ink}"/>'
    letters = f'<text x="{_PAD}" y="17" fill="{ink}" xml:space="preserve">{escape(shown)}</text>'
    return Drawn(wide, _HIGH, [(0, 0, box + letters)])


def _draw_frame(inner: Drawn, label: str) -> Drawn:
    """Return a drawing in a dashed frame with a label below it; no label if it is empty."""
    wide, high = inner.wide + 2 * _PAD, inner.high + 2 * _PAD
    box = f'<rect width="{wide:.0f}" height="{high:.0f}" rx="4" fill="none" stroke="#999999" stroke-dasharray="4 3"/>'
    x = wide - len(label) * 6.5 - 4
    tag = f'<text x="{x:.0f}" y="{high - 3:.0f}" font-size="10" fill="#777777">{escape(label)}</text>'
    return Drawn(
        wide, high + (6 if label else 0), [(0, 0, box + (tag if label else "")), *inner.shifted_parts(_PAD, _PAD)]
    )


def _draw_row(parts: list[Drawn]) -> Drawn:
    """Return the drawings side by side, vertically centered and connected by lines."""
    high = max((part.high for part in parts), default=_HIGH)
    x, out = 0.0, []
    for at, part in enumerate(parts):
        y = (high - part.high) / 2
        if at:
            out.append((x, high / 2, f'<line x2="{_GAP}" stroke="#999999"/>'))
            x += _GAP
        out += part.shifted_parts(x, y)
        x += part.wide
    return Drawn(x, high, out)


def _draw_column(parts: list[Drawn]) -> Drawn:
    """Return the drawings one below the other, aligned left; an empty drawing without parts."""
    wide = max((part.wide for part in parts), default=0)
    y, out = 0.0, []
    for part in parts:
        out += part.shifted_parts(0, y)
        y += part.high + 6
    return Drawn(wide, max(y - 6, 0), out)


def _draw_node(node: Node) -> Drawn:
    """Return the SVG drawing of a grammar node, with its width and height; a box with the node's notation for a kind of
    node that has no drawing of its own."""
    match node:
        case Lit(text):
            return _draw_box(repr(text)[1:-1], "text")
        case Token(text):
            return _draw_box(text, "text")
        case Ref(name):
            return _draw_box(name, "rule")
        case Seq(items):
            return _draw_sequence(items)
        case Alt(items):
            return _draw_alternatives(items)
        case Repeat(item, least, most):
            return _draw_frame(_draw_node(item), _repeat_label(least, most))
        case AnyOrder():
            return _draw_frame(_draw_column(_draw_members(node)), "in any order")
        case Upto(stop):
            return _draw_row([_draw_box("any text", "class"), *map(_draw_node, stop)])
    return _draw_box(show(node), "class")


def _draw_sequence(items: tuple[Node, ...]) -> Drawn:
    """Return the drawings of these nodes side by side, without optional white space; an empty box if nothing else is
    there."""
    kept = [item for item in items if item != Repeat(Ref("space"), 0, 1)]
    return _draw_row([_draw_node(item) for item in kept]) if kept else _draw_box("", "text")


def _draw_alternatives(items: tuple[Node, ...]) -> Drawn:
    """Return the drawings of up to 12 alternatives, one below the other, and a box with the number of further ones."""
    more = [_draw_box(f"and {len(items) - 12} more", "class")] if len(items) > 12 else []
    return _draw_column([*map(_draw_node, items[:12]), *more])


def _repeat_label(least: int, most: int | None) -> str:
    """Return the label of a repeat, such as `× 1 to any`; "" for an optional node, whose frame is enough."""
    return "" if (least, most) == (0, 1) else f"× {least} to {'any' if most is None else most}"


def _draw_members(node: AnyOrder) -> list[Drawn]:
    """Return the drawings of the members of an object, optional ones in a frame, and of `extra` if there is one."""
    rows = [
        _draw_node(member.node) if member.required else _draw_frame(_draw_node(member.node), "")
        for member in node.members
    ]
    return rows if node.extra is None else [*rows, _draw_frame(_draw_node(node.extra), "× any")]
