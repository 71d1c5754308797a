"""Lark as llguidance reads it. Lexemes become terminals, free text up to a marker a lazy one, any order a rule of bits.

llguidance reads a terminal as far as it goes and never goes back, so no terminal may begin inside what another could
still become: free text and its end are therefore one terminal, as are a name and the quotes around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rightcall.constrain import before_call
from rightcall.constrain.algebra import (
    EMPTY,
    MAX_ANY_ORDER,
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
    lengths,
    may_begin_stop,
)
from rightcall.constrain.builder import GAP
from rightcall.constrain.regex import anywhere, regex_text

if TYPE_CHECKING:
    from rightcall.constrain.grammars import Grammar


_LOOSE = frozenset((Alt, Seq, Free))  # in a sequence these need parentheses


def emit_lark(grammar: Grammar, tokens: dict[str, int] | bool = False) -> str:
    """Return a grammar as Lark text for llguidance. Special tokens are written as their text if `tokens` is False, as
    `<name>` if it is True, and by their ids if it maps them to ids; one of another form, or without an id, as its
    text."""
    return _Lark(grammar, tokens).text()


class _Lark:
    """Writes one grammar in Lark: its methods return the notation of a node, and add the rules that it needs to
    `rules`."""

    def __init__(self, grammar: Grammar, tokens: dict[str, int] | bool) -> None:
        self.grammar, self.tokens = grammar, tokens
        self.rules: list[str] = []
        self.writers = self._writers()
        self.known: dict[str, str] = {}  # terminals and extra rules, by their content
        # The start of an engine that waits for a trigger; where calls are required, the reply is written without it.
        required = grammar.format.channels is None and grammar.options.only_calls and grammar.lazy != grammar.start
        self.unused = grammar.lazy if required else ""
        self.names = {name: "start" if name == grammar.start else "r_" + name.lower() for name in grammar.definitions}
        self.lexemes = {
            name for name, node in grammar.definitions.items() if type(node) is Lexeme and name != grammar.start
        }

    def text(self) -> str:
        """Return all rules of the grammar as Lark text, with the extra rules that they need. The start rule for a
        trigger is left out where a reply is only calls. It adds to `rules`, so call it once."""
        for name, node in self.grammar.definitions.items():
            if name == self.unused:
                continue
            if name in self.lexemes:
                self.rules.append(f"{self.terminal_name(name)}: {self.regex(node)}")
            else:
                self.rules.append(f"{self.names[name]}: {self.node(node)}")
        return "%llguidance {}\n" + "\n".join(self.rules) + "\n"

    def terminal_name(self, name: str) -> str:
        """Return the name of the terminal for this rule."""
        return "T_" + name.upper()

    def regex(self, node: Node) -> str:
        """Return a regular node as a regular expression between slashes."""
        return f"/{regex_text(node)}/"

    def is_token(self, piece: Lit | Token) -> bool:
        """Return whether a piece of a marker can be written as one token: it is a `Token`, and has an id in `tokens`,
        or `tokens` is True and it has the form `<name>`."""
        if not isinstance(piece, Token) or self.tokens is False:
            return False
        return piece.text in self.tokens if isinstance(self.tokens, dict) else _is_name(piece.text)

    def token(self, piece: Token) -> str:
        """Return the notation of a token of the vocabulary, by its id if ids are known."""
        return f"<[{self.tokens[piece.text]}]>" if isinstance(self.tokens, dict) else piece.text

    def node(self, node: Node) -> str:
        """Return the notation of a node."""
        return self.writers[type(node)](node)

    def _writers(self) -> dict[type, Callable[[Any], str]]:
        """Return a table of the functions that write a node in Lark, by the type of the node. A lookup is faster than a
        chain of type tests."""
        return {
            Lit: lambda node: _quote_literal(node.text),
            Token: lambda node: self.token(node) if self.is_token(node) else _quote_literal(node.text),
            Ref: self.reference,
            Seq: self.sequence,
            Alt: lambda node: "\n  | ".join([self.node(item) for item in node.items]) or "/[^\\x00-\\U0010ffff]/",
            Repeat: lambda node: self.operand(node.item) + _quantifier(node.least, node.most),
            Lexeme: self.lexeme,
            Chars: self.lexeme,
            Upto: self.upto,
            Free: lambda node: self.free(node.without, node.most) + "?",
            Word: self.word,
            AnyOrder: self.any_order,
        }

    def sequence(self, node: Seq) -> str:
        """Return the notation of a sequence: its parts separated by spaces, with one shared rule for all gaps; `""` for
        an empty one."""
        out: list[str] = []
        for item in self.join_literals(node.items):
            if item is GAP:
                out.append(
                    self.define("gap", "T_SPACE?")
                )  # an engine compiles one rule faster than many optional spaces
            elif type(item) is Lit:
                out.append(_quote_literal(item.text))
            elif type(item) is Ref:
                out.append(self.reference(item))
            else:
                out.append(self.part_of_sequence(item))
        return " ".join(out) or '""'

    def part_of_sequence(self, node: Node) -> str:
        """Return the notation of a part of a sequence; a nested sequence needs no parentheses."""
        return self.node(node) if type(node) is Seq else self.operand(node)

    def reference(self, node: Ref) -> str:
        """Return the name of the rule or terminal that a node refers to."""
        return self.terminal_name(node.name) if node.name in self.lexemes else self.names[node.name]

    def join_literals(self, items: tuple[Node, ...]) -> Sequence[Node]:
        """Return the items with adjacent texts joined into one literal, and tokens that must be written as text turned
        into literals: the first of two literals would be lost where free text is allowed too."""
        if Token not in map(type, items):
            return items  # a sequence is made without two literals in a row
        out: list[Node] = []
        for item in items:
            if isinstance(item, Token) and not self.is_token(item):
                item = Lit(item.text)
            if out and isinstance(item, Lit) and isinstance(out[-1], Lit):
                out[-1] = Lit(out[-1].text + item.text)
            else:
                out.append(item)
        return out

    def operand(self, node: Node) -> str:
        """Return the notation of a node as an operand, in parentheses where needed."""
        text = self.node(node)
        return f"({text})" if type(node) in _LOOSE else text

    def define(self, prefix: str, notation: str, options: str = "") -> str:
        """Return the name of the rule or terminal with this content, `prefix` and a number. It is added to `rules` on
        the first request; `options`, such as "[lazy]", follow the name there."""
        key = prefix + options + notation
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = f"{prefix}{len(self.known)}"
            self.rules.append(f"{found}{options}: {notation}")
        return found

    def lexeme(self, node: Node) -> str:
        """Return the name of the terminal for a regular node. For a sequence with tokens, which a terminal cannot
        contain, the notation of its parts is returned instead."""
        if (
            isinstance(node, Lexeme)
            and isinstance(node.item, Seq)
            and any(isinstance(i, Token) and self.is_token(i) for i in node.item.items)
        ):
            return " ".join([self.operand(item) for item in self.join_literals(node.item.items)])
        return self.define("L", self.regex(node))

    def upto(self, node: Upto) -> str:
        """Return the notation of free text followed by its stop."""
        return self.upto_token(node) if self.is_token(node.stop[0]) else self.upto_text(node)

    def upto_token(self, node: Upto) -> str:
        """Return the notation of free text followed by `node.stop`, which begins with a token. The text has the node's
        length and contains neither `node.without` nor the stop spelled in other tokens. Where the node is `closed`, it
        is text as in `before_call`, without some harmless text too."""
        # The text of the token, spelled in other tokens, would be read as the marker as well.
        stop = "".join(piece.text for piece in node.stop)
        # What must not come right before the stop must not end the text.
        ends = [word.removesuffix(stop) for word in node.without if word.endswith(stop) and word != stop]
        never = (stop, *(word for word in node.without if not word.endswith(stop)))
        notation = f"/{_sized_text(node)}/ & ~/{anywhere(never)}/"
        notation += f" & ~/(?s:.*)(?:{_any_of_texts(ends)})/" if ends else ""
        notation += f" & /{before_call.regex()}/ & ~/{before_call.transcript_regex()}/" if node.closed else ""
        text = self.define("L", notation)
        head = text if _is_never_empty(node) else f"{text}?"
        return " ".join([head, *map(self.node, node.stop)])

    def upto_text(self, node: Upto) -> str:
        """Return the notation of free text followed by `node.stop`, which begins with plain text. The text has the
        node's length and does not contain `node.without`. Where the node is `closed`, it is text as in `before_call`,
        without some harmless text too."""
        size = next((at for at, piece in enumerate(node.stop) if self.is_token(piece)), len(node.stop))
        end = regex_text(Lit("".join(piece.text for piece in node.stop[:size])))
        notation = f"/{_sized_text(node)}{end}/"
        if may_begin_stop(node):
            notation = self.define("L", f"({notation}{_only_at_end(end)})")
        if node.without or node.closed:
            notation += f" & ~/{anywhere(node.without)}/" if node.without else ""
            notation = self.define("L", f"({notation}{self.text_before_call(end) if node.closed else ''})")
        lazy = self.define("lazy", notation, "[lazy]")
        return " ".join([lazy, *map(self.node, node.stop[size:])])

    def text_before_call(self, end: str) -> str:
        """Return conditions to append to the regular expression of a terminal that ends with the expression `end`: its
        text is as in `before_call` (plain prose at its end, no transcript), and contains `end` only at its end."""
        return f" & /{before_call.regex()}{end}/ & ~/{before_call.transcript_regex()}{end}/{_only_at_end(end)}"

    def free(self, without: tuple[str, ...], most: int | None) -> str:
        """Return the name of the terminal for one to `most` characters of text (None: no limit) in which none of the
        texts `without` occurs."""
        counted = "(?s:.+)" if most is None else f"(?s:.{{1,{most}}})"
        notation = f"/{counted}/" + (f" & ~/{anywhere(without)}/" if without else "")
        return self.define("L", notation)

    def word(self, node: Word) -> str:
        """Return the name of the terminal for the name of an undeclared argument with its delimiters, which is none of
        the names `node.without` and has the node's length; if `node.inside` is given, it must match that instead of a
        length."""
        counted = f"{{{node.least},{'' if node.most is None else node.most}}}"
        inside = f"(?:{regex_text(node.char)}){counted}" if node.inside is None else regex_text(node.inside)
        opens, closes = regex_text(Lit(node.open)), regex_text(Lit(node.close))
        notation = f"/{opens}(?:{inside}){closes}/"
        if node.without:
            notation += f" & ~/{opens}(?:{_any_of_texts(node.without)}){closes}/"
        return self.define("L", notation)

    def any_order(self, node: AnyOrder) -> str:
        """Return the notation of members in any order. Several members become rules that count them by bits; one member
        alone, or undeclared ones alone, are written in place."""
        if not node.members:
            assert node.extra is not None
            extra, separator = self.define("m", self.node(node.extra)), self.part_of_sequence(node.separator)
            return f"({extra} ({separator} {extra})*)?"
        if len(node.members) == 1 and node.extra is None:
            member = node.members[0]
            return self.operand(member.node) + ("" if member.required or node.least else "?")
        return self.with_bits(node)

    def with_bits(self, node: AnyOrder) -> str:
        """Add the rules of members in any order, tracked by one bit each with required members in the lowest bits, and
        return the name of their start. Members beyond `MAX_ANY_ORDER` are not counted: they may be missing or occur
        twice, and limits of the number of members hold for the others."""
        members = sorted(node.members, key=lambda member: not member.required)
        counted = min(len(members), MAX_ANY_ORDER)
        needed = min(sum(member.required for member in members), counted)
        least = node.least - (len(members) - counted)
        separator = "" if node.separator == EMPTY else self.part_of_sequence(node.separator) + " "
        name = f"order{len(self.known)}"
        self.known[name] = name
        ends = [f"is_ones([0:{needed}])"] if needed else []
        if least > needed:
            ends.append(f"bit_count_ge([0:{counted}], {least})")
        room = (
            [f"bit_count_lt([0:{counted}], {node.most})"] if node.most is not None and node.most < len(members) else []
        )
        lines, firsts = [f'""{_condition(ends)}'], [] if ends else ['""']
        for at, member in enumerate(members):
            notation = self.define("m", self.node(member.node))
            then, conditions = (f"set_bit({at})", [f"bit_clear({at})", *room]) if at < counted else ("_", room)
            lines.append(f"{separator}{notation} {name}::{then}{_condition(conditions)}")
            firsts.append(f"{notation} {name}::{1 << at if at < counted else 0}")
        if node.extra is not None:
            notation = self.define("m", self.node(node.extra))
            lines.append(f"{separator}{notation} {name}::_")
            firsts.append(f"{notation} {name}::0")
        self.rules.append(f"{name}::_: " + "\n  | ".join(lines))
        return self.define("first", "\n  | ".join(firsts))


def _condition(conditions: list[str]) -> str:
    """Return the notation of the condition that all of these hold; "" for none."""
    return f" %if {_join_conditions(conditions)}" if conditions else ""


def _join_conditions(conditions: list[str]) -> str:
    """Return one condition that holds if all of these hold."""
    return conditions[0] if len(conditions) == 1 else f"and({conditions[0]}, {_join_conditions(conditions[1:])})"


def _is_never_empty(node: Upto) -> bool:
    """Return whether the text before the stop has at least one character."""
    return bool(node.least or (node.inside is not None and lengths(node.inside)[0]))


def _only_at_end(end: str) -> str:
    """Return a condition to append to the regular expression of a terminal: the expression `end` matches only at its
    end."""
    return f" & ~/(?s:.*){end}(?s:.+)/"


def _sized_text(node: Upto) -> str:
    """Return a regular expression for any text of `node.least` to `node.most` characters, or for what the text must
    match."""
    if node.inside is not None:
        return f"(?:{regex_text(node.inside)})"
    if not node.least and node.most is None:
        return "(?s:.*)"
    return f"(?s:.{{{node.least},{'' if node.most is None else node.most}}})"


def _any_of_texts(words: Iterable[str]) -> str:
    """Return a regular expression that matches any of these texts, without a group around it."""
    return "|".join([regex_text(Lit(word)) for word in words])


def _quantifier(least: int, most: int | None) -> str:
    """Return the quantifier for `least` to `most` repetitions (None: no upper limit): `*`, `+`, `?`, `{m,}` or
    `{m,n}`."""
    known = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return known.get((least, most), f"{{{least},{'' if most is None else most}}}")


def _is_name(text: str) -> bool:
    """Return whether Lark can write a token as `<name>`; any other token must be given as an id."""
    return len(text) > 2 and text[0] == "<" and text[-1] == ">" and not any(c in "<> \n[]" for c in text[1:-1])


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


@lru_cache(4096)
def _quote_literal(text: str) -> str:
    """Return a text as a Lark literal in double quotes, escaped where needed."""
    return '"' + "".join([_ESCAPES.get(c) or (c if c.isprintable() else _escape_char(c)) for c in text]) + '"'


def _escape_char(char: str) -> str:
    """Return the escape of a character."""
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
