"""GBNF as llama.cpp reads it. It works character by character and follows all readings at once, so terminals may touch.

Free text up to a marker becomes the states of the search for that marker. A text that is also counted is counted in
pieces: characters, or beginnings of the marker that did not become one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from rightcall.constrain import before_call
from rightcall.constrain.algebra import (
    ANY,
    EMPTY,
    MAX_ANY,
    TOP,
    Alt,
    AnyOrder,
    Chars,
    Free,
    Lexeme,
    Lit,
    Member,
    Node,
    Ref,
    Repeat,
    Seq,
    Token,
    Upto,
    Word,
    all_orders,
    alt,
    chars,
    declared_order,
    inverse,
    may_begin_stop,
    minus,
    seq,
)
from rightcall.constrain.before_call import LETTER, OPENING
from rightcall.constrain.builder import GAP
from rightcall.constrain.intersect import Relaxation

if TYPE_CHECKING:
    from rightcall.constrain.grammars import Grammar

_FALLBACKS, _FEW = 6, 2  # how often a piece may fall back; few where there are many markers
_EMPTY_LINE, _NOTHING = "\n\n", '""'
_NEVER = "[^\\u0000-\\U0010FFFF]"
_LONGEST = 200  # longest declared name that undeclared ones are distinguished from
MAX_PREFIXES = 50_000  # of declared names, of all objects together: each is a rule
_LOOSE = frozenset((Alt, Seq, Repeat))  # in a sequence these need parentheses


def emit_gbnf(grammar: Grammar, tokens: dict[str, int] | bool = False) -> str:
    """Return a grammar as GBNF text. What GBNF cannot express is relaxed without a report. Special tokens are written
    as their text if `tokens` is False, as `<name>` if it is True, and by their ids if it maps them to ids; one of
    another form, or without an id, as its text."""
    return emit_gbnf_with_limits(grammar, tokens)[0]


def emit_gbnf_with_limits(
    grammar: Grammar, tokens: dict[str, int] | bool = False
) -> tuple[str, tuple[Relaxation, ...]]:
    """Return a grammar as GBNF text, and the constraints that GBNF cannot express beyond the grammar's own relaxations.
    Special tokens are written as their text if `tokens` is False, as `<name>` if it is True, and by their ids if it
    maps them to ids; one of another form, or without an id, as its text."""
    writer = _Gbnf(grammar, tokens)
    return writer.text(), tuple(dict.fromkeys(writer.limits))


class _Gbnf:
    """Writes one grammar in GBNF: its methods return the notation of a node, and add the rules that it needs to
    `lines`."""

    def __init__(self, grammar: Grammar, tokens: dict[str, int] | bool) -> None:
        self.grammar, self.tokens = grammar, tokens
        self.lines: list[str] = []
        self.limits: list[Relaxation] = []
        self.writers = self._writers()
        self.known: dict[object, str] = {}
        self.prefixes_left = MAX_PREFIXES
        self.names = {name: "root" if name == grammar.start else name.replace("_", "-") for name in grammar.definitions}

    def text(self) -> str:
        """Return all rules of the grammar as GBNF text, with the extra rules that they need. It adds to `lines`, so
        call it once."""
        for name, node in self.grammar.definitions.items():
            self.rule(self.names[name], node)
        return "\n".join(self.lines) + "\n"

    def rule(self, name: str, node: Node) -> None:
        """Add the rule `name` for this node."""
        self.lines.append(f"{name} ::= {self.node(node)}")

    def node(self, node: Node) -> str:
        """Return the notation of a node; rules that it needs are added to `lines`."""
        return self.writers[type(node)](node)

    def _writers(self) -> dict[type, Callable[[Any], str]]:
        """Return a table of the functions that write a node in GBNF, by the type of the node. A lookup is faster than a
        chain of type tests."""
        return {
            Lit: lambda node: _quote_literal(node.text),
            Token: lambda node: self.token(node.text) if self.is_token(node.text) else _quote_literal(node.text),
            Chars: lambda node: _char_class(node.spans),
            Ref: lambda node: self.names.get(node.name, node.name),
            Seq: self.row,
            Alt: lambda node: " | ".join([self.node(item) for item in node.items]) or _NEVER,
            Repeat: self.repeat,
            Lexeme: lambda node: self.node(node.item),
            Upto: self.upto,
            Free: lambda node: self.free(node.without, node.most),
            Word: self.word,
            AnyOrder: self.any_order,
        }

    def row(self, node: Seq) -> str:
        """Return the notation of a sequence: its parts separated by spaces, with `space?` for a gap; `""` for an empty
        one."""
        out = []
        for item in node.items:
            if item is GAP:
                out.append("space?")
            elif type(item) is Lit:
                out.append(_quote_literal(item.text))
            elif type(item) is Ref:
                out.append(self.names.get(item.name, item.name))
            else:
                out.append(self.inside(item))
        return " ".join(out) or '""'

    def repeat(self, node: Repeat) -> str:
        """Return the notation of a repeat: an operand and a quantifier. The operand of a count above one becomes one
        symbol, by a rule of its own if needed."""
        if node.least > 1 or (node.most or 0) > 1:
            operand = self.as_symbol(node.item)
        else:  # of two quantifiers in a row, engines reject or ignore the second
            operand = f"({self.node(node.item)})" if _has_quantifier(node.item) else self.inside(node.item)
        return operand + _quantifier(node.least, node.most)

    def inside(self, node: Node) -> str:
        """Return the notation of a node as a part of a sequence, in parentheses if it consists of several parts."""
        text = self.node(node)
        kind = type(node.item) if type(node) is Lexeme else type(node)
        return f"({text})" if kind in _LOOSE and " " in text else text

    def as_symbol(self, node: Node) -> str:
        """Return the notation of a reference or a character class; for any other node the name of a rule, added to
        `lines` on the first request. llama.cpp multiplies out a counted group in parentheses and rejects the result
        when it is too large."""
        if isinstance(node, (Ref, Chars)):
            return self.node(node)
        key = ("single", node)
        if key not in self.known:
            notation = self.node(node)
            name = self.known[key] = f"part{len(self.known)}"
            self.lines.append(f"{name} ::= {notation}")
        return self.known[key]

    def is_token(self, text: str) -> bool:
        """Return whether a text can be written as one token: it has an id in `tokens`, or `tokens` is True and it is of
        the form `<name>`."""
        return (
            text in self.tokens
            if isinstance(self.tokens, dict)
            else self.tokens and text[:1] == "<" and text[-1:] == ">" and ">" not in text[:-1]
        )

    def token(self, text: str) -> str:
        """Return the notation of a token of the vocabulary, by its id if ids are known."""
        return f"<[{self.tokens[text]}]>" if isinstance(self.tokens, dict) else text

    # -- free text -----------------------------------------------------------------------------------------------------

    def upto(self, node: Upto) -> str:
        """Return the notation of free text followed by its stop, and add the rules that it needs. Relaxed, and reported
        in `limits`: a minimum length, which is not enforced (not reported if the stop begins with a token or a call
        follows), a maximum one, which counts pieces, and a text to match that may contain the stop."""
        stop = "".join(piece.text for piece in node.stop)
        if node.inside is not None:
            if may_begin_stop(node):
                self.limits.append(Relaxation("", "", "pattern", f"a text that contains {stop!r}"))
            return f"{self.inside(node.inside)} " + " ".join(map(self.node, node.stop))
        if node.closed and node.most is None:
            return f"{self.text_before_call(stop, node.without)} " + " ".join(map(self.node, node.stop))
        if self.is_token(node.stop[0].text) and isinstance(node.stop[0], Token):
            text = self.free((stop, *node.without), node.most)
            return f"{text} " + " ".join(map(self.node, node.stop))
        if node.least:
            # What is counted are pieces, and one of them may be many characters.
            self.limits.append(Relaxation("", "", "minLength", f"a shorter text before {stop!r}"))
        if node.most is None:
            return self.search(stop, node.without)
        name = self.counted_pieces(stop, (*node.without, *OPENING) if node.closed else node.without)
        return f"{name}{_quantifier(0, node.most)} {name}-end"

    def text_before_call(self, stop: str, without: tuple[str, ...]) -> str:
        """Return the notation of text before a call with the opener `stop`, so that the call is no quotation, and add
        its rules: paragraphs without `<`, `stop` and `without`, then lines of plain prose (`before_call.states`), or at
        most a space unless `stop` begins with `<`, `[` or `]`. It rejects some harmless text."""
        others = tuple(text for text in (stop, *without) if "<" not in text)
        paragraphs = f"{self.search(_EMPTY_LINE, ('<', *others))}*"
        if stop[0] not in "<[]":
            return f'{paragraphs} " "?'
        if "closed" not in self.known:
            self.known["closed"] = "before-line"
            for name, row in before_call.states().items():
                options = [f"{_char_class(found.spans)} before-{after}" for found, after in row if found is not LETTER]
                options += [f"before-letter before-{after}" for found, after in row if found is LETTER]
                self.lines.append(f"before-{name} ::= {' | '.join([*options, _NOTHING])}")
            self.lines.append(f"before-letter ::= {_char_class(LETTER.spans)}")
        return f"{paragraphs} {self.known['closed']}"

    def free(self, without: tuple[str, ...], most: int | None) -> str:
        """Return the notation of text in which none of the texts `without` occurs, of at most `most` characters (None:
        no limit), and add the rules that it needs. A beginning of one of these texts counts as one character, which is
        reported in `limits`."""
        if not without:
            return "[^\\u0000]" + _quantifier(0, most)
        if most is not None:
            name = self.counted_pieces("", without)
            return f"{name}{_quantifier(0, most)} {name}-end"
        return self.search("", without)

    def search(self, stop: str, without: tuple[str, ...]) -> str:
        """Return the name of the rule for text that ends after the first `stop` and contains none of `without`, and add
        it on the first request; without `stop`, the text may end anywhere."""
        key = ("search", stop, without)
        if key not in self.known:
            name = self.known[key] = f"upto{len(self.known)}" if stop else f"free{len(self.known)}"
            _Search(stop, without, name).write(self)
        return self.known[key]

    def counted_pieces(self, stop: str, without: tuple[str, ...]) -> str:
        """Return the name of the rule for one countable piece of text before `stop` without the texts `without`: a
        character, or a partial match that was not completed. `NAME-end` is the rule for the end of the text, `stop`
        included. Both are added on the first request, and that pieces are counted is reported in `limits`."""
        key = ("pieces", stop, without)
        if key not in self.known:
            name = self.known[key] = f"piece{len(self.known)}"
            _Search(stop, without, name).write_pieces(self)
            allows = f"a longer text before {stop!r}" if stop else "a longer text"
            self.limits.append(
                Relaxation("", "", "maxLength", f"{allows}: a beginning of a marker counts as one character")
            )
        return self.known[key]

    # -- names ---------------------------------------------------------------------------------------------------------

    def word(self, node: Word) -> str:
        """Return the notation of the name of an undeclared argument with its delimiters: none of the names
        `node.without`, of at least the node's length, while a maximum is not enforced. Allowed in spite of that, and
        reported, are declared names with an escape, very long ones, and all of them beyond `MAX_PREFIXES`. With
        `node.inside` it only matches that."""
        if node.inside is not None:
            return f"{_quote_literal(node.open)} {self.inside(node.inside)} {_quote_literal(node.close)}"
        key = ("word", node)
        if key not in self.known:
            name = self.known[key] = f"word{len(self.known)}"
            words = sorted(word for word in node.without if "\\" not in word and len(word) <= _LONGEST)
            if len(words) < len(node.without):
                allows = "any value of a declared member whose name has an escape or is very long"
                self.limits.append(Relaxation("", "", "additionalProperties", allows))
            self.prefixes_left -= sum(map(len, words))
            if self.prefixes_left < 0:
                allows = "any value of a declared member: there are too many long names to tell them apart"
                self.limits.append(Relaxation("", "", "additionalProperties", allows))
                words = []
            self.write_other_names(words, node, name)
        return self.known[key]

    def write_other_names(self, words: list[str], node: Word, name: str) -> None:
        """Add the rules for a name, with the delimiters of `node`, that is none of `words`: one rule for every prefix
        of a word. `name` is the start rule and the prefix of the other rules' names. The node's maximum length is not
        enforced."""
        self.rule(f"{name}-any", Repeat(node.char))
        plain, rest = _split_plain_chars(node.char)
        escapes: list[Node] = [Ref(self.as_symbol(alt(*rest)))] if rest else []
        beginnings = _prefixes_of(words)
        states = {beginning: f"{name}-{at}" for at, beginning in enumerate(beginnings)}
        for beginning, following in beginnings.items():
            others = alt(minus(plain, chars("".join(following))), *escapes)
            options: list[Node] = [seq(others, Ref(f"{name}-any"))]
            options += [seq(Lit(head), Ref(states[beginning + head])) for head in following]
            done = beginning not in words and len(beginning) >= node.least
            self.rule(states[beginning], Alt((*options, EMPTY)) if done else alt(*options))
        self.rule(name, seq(Lit(node.open), Ref(states[""]), Lit(node.close)))

    def any_order(self, node: AnyOrder) -> str:
        """Add the rules of members in any order and return the notation of their start. Above `MAX_ANY` members only
        the declared order is allowed, and limits of their number are not enforced, which is reported in `limits`."""
        prefix = f"order{len(self.known)}"
        self.known[prefix] = prefix
        for at, member in enumerate(node.members):
            self.rule(f"{prefix}-m{at}", member.node)
        members = tuple(Member(Ref(f"{prefix}-m{at}"), member.required) for at, member in enumerate(node.members))
        node = msgspec.structs.replace(node, members=members)
        if len(members) > MAX_ANY and (node.least or node.most is not None):
            self.limits.append(Relaxation("", f"rule {prefix}", "minProperties", "any number of the declared members"))
        start, rules = declared_order(node, prefix) if len(members) > MAX_ANY else all_orders(node, prefix)
        for name, rule in rules.items():
            self.rule(name, rule)
        return f"({self.node(start)})"


def _split_plain_chars(char: Node) -> tuple[Chars, list[Node]]:
    """Return the character class among the alternatives of a character of a name, and the other alternatives, which are
    escapes."""
    items = char.items if isinstance(char, Alt) else (char,)
    plain = next(item for item in items if isinstance(item, Chars))
    return plain, [item for item in items if not isinstance(item, Chars)]


def _prefixes_of(words: list[str]) -> dict[str, list[str]]:
    """Return every prefix of the words, the empty one included, in order, with the characters that lead to a longer
    prefix."""
    known = {word[:size] for word in words for size in range(len(word) + 1)} | {""}
    following: dict[str, list[str]] = {beginning: [] for beginning in sorted(known)}
    for beginning in following:
        if beginning:
            following[beginning[:-1]].append(beginning[-1])
    return following


class _Search:
    """The states of a search for several texts at once, `stop` and those in `without`; each state is the longest prefix
    of one of them that is matched so far. `name` is the rule of the first state, and begins the names of the others."""

    def __init__(self, stop: str, without: tuple[str, ...], name: str) -> None:
        self.stop, self.name = stop, name
        self.texts = ((stop,) if stop else ()) + tuple(text for text in without if text)
        self.prefixes = sorted(
            {text[:size] for text in self.texts for size in range(len(text))}, key=lambda p: (len(p), p)
        )
        self.numbers = {prefix: at for at, prefix in enumerate(self.prefixes)}
        self.alphabet = sorted({char for text in self.texts for char in text})

    def state(self, prefix: str) -> str:
        """Return the name of the rule for the state with this matched prefix."""
        return self.name if not prefix else f"{self.name}-{self.numbers[prefix]}"

    def next_prefix(self, prefix: str, char: str) -> str | None:
        """Return the longest prefix of a text that is matched when `char` follows the matched `prefix`; None if one of
        the texts is then complete."""
        text = prefix + char
        while text not in self.numbers:
            if text in self.texts:
                return None
            text = text[1:]
        # A shorter text may be complete although a longer one is still under way.
        return None if any(text.endswith(whole) for whole in self.texts) else text

    def completes_stop(self, prefix: str, char: str) -> bool:
        """Return whether `char` after the matched `prefix` completes `stop`, and no other text; False if there is no
        `stop`."""
        text = prefix + char
        forbidden = any(text.endswith(other) for other in self.texts if other != self.stop)
        return bool(self.stop) and text.endswith(self.stop) and not forbidden

    def write_pieces(self, gbnf: _Gbnf) -> None:
        """Add to `gbnf.lines` the rules of countable pieces. One piece leads from the start of the search back to it;
        `NAME-end` leads from there to the stop, or to the end of the text if there is none. The number of fallbacks
        within a piece is limited, so that it cannot grow without end."""
        most = _FALLBACKS if len(self.prefixes) < 60 else _FEW
        for left in range(most + 1):
            for prefix in self.prefixes[1:]:
                self._write_piece(gbnf, prefix, left, f"{self.name}-{left}-{self.numbers[prefix]}", "")
                self._write_piece(gbnf, prefix, left, f"{self.name}-end-{left}-{self.numbers[prefix]}", "-end")
        self._write_piece(gbnf, "", most, self.name, "")
        self._write_piece(gbnf, "", most, f"{self.name}-end", "-end")

    def _write_piece(self, gbnf: _Gbnf, prefix: str, left: int, rule: str, ending: str) -> None:
        """Add to `gbnf.lines` the rule named `rule` for the remainder of a piece of which `prefix` is matched and
        `left` fallbacks remain. `ending` is "-end" for the rules that lead to the stop or the end of the text, else
        ""."""
        options: list[str] = []
        if not ending:
            away = [char for char in self.alphabet if self.next_prefix(prefix, char) != ""]
            options.append(_char_class(minus(ANY, chars("".join(away))).spans))
        options += filter(None, [self._transition(prefix, char, left, ending) for char in self.alphabet])
        if ending and not self.stop:
            options.append('""')
        gbnf.lines.append(f"{rule} ::= " + (" | ".join(options) or _NEVER))

    def _transition(self, prefix: str, char: str, left: int, ending: str) -> str:
        """Return the notation of `char` and the rule for the state after it, of a piece of which `prefix` is matched;
        the character alone if it completes the stop and `ending` is "-end". "" if it completes another text, leads back
        to the start, or needs one of `left` fallbacks when none is left."""
        after = self.next_prefix(prefix, char)
        if after is None:
            return _quote_literal(char) if ending and self.completes_stop(prefix, char) else ""
        fuel = left if after == prefix + char else left - 1
        return f"{_quote_literal(char)} {self.name}{ending}-{fuel}-{self.numbers[after]}" if after and fuel >= 0 else ""

    def write(self, gbnf: _Gbnf) -> None:
        """Add to `gbnf.lines` a rule for every state of the search: a character leads to the rule of the next state,
        and the character that completes `stop` ends the text. Without `stop`, every state may end it. Characters that
        complete another text are left out."""
        for prefix in self.prefixes:
            options = [f"{_char_class(inverse(chars(''.join(self.alphabet))).spans)} {self.name}"]
            same: dict[str, list[str]] = {}
            for char in self.alphabet:
                after = self.next_prefix(prefix, char)
                if after is not None:
                    same.setdefault(self.state(after), []).append(char)
                elif self.completes_stop(prefix, char):
                    options.append(_quote_literal(char))
            options += [f"{_char_class(chars(''.join(group)).spans)} {state}" for state, group in same.items()]
            if not self.stop:
                options.append('""')
            gbnf.lines.append(f"{self.state(prefix)} ::= " + " | ".join(options))


def _has_quantifier(node: Node) -> bool:
    """Return whether a node is written with a quantifier at its end."""
    return isinstance(node.item if isinstance(node, Lexeme) else node, Repeat)


def _quantifier(least: int, most: int | None) -> str:
    """Return the quantifier for `least` to `most` repetitions (None: no upper limit): `*`, `+`, `?`, `{n}` (also for
    exactly one), `{m,}` or `{m,n}`."""
    known = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return known.get((least, most)) or (
        f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
    )


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


@lru_cache(4096)
def _quote_literal(text: str) -> str:
    """Return a text as a GBNF literal in double quotes, escaped where needed."""
    return '"' + "".join([_ESCAPES.get(c) or (c if c.isprintable() else _escape(ord(c))) for c in text]) + '"'


@lru_cache(4096)
def _char_class(spans: tuple[tuple[int, int], ...]) -> str:
    """Return the character class of these spans of code points, negated where they begin at 0 and end at the last code
    point. All characters become all but NUL."""
    if spans == ANY.spans:
        return "[^\\u0000]"
    if spans and spans[0][0] == 0 and spans[-1][1] == TOP:
        return "[^" + "".join(map(_class_range, inverse(Chars(spans)).spans)) + "]"
    return "[" + "".join(map(_class_range, spans)) + "]"


def _class_range(span: tuple[int, int]) -> str:
    """Return a span inside a character class, a single character or `a-z`."""
    low, high = span
    return _class_char(low) if low == high else f"{_class_char(low)}-{_class_char(high)}"


def _class_char(code: int) -> str:
    """Return a code point inside a character class: ASCII letters and digits as they are, others as escapes."""
    char = chr(code)
    return char if char.isascii() and char.isalnum() else _escape(code)


def _escape(code: int) -> str:
    """Return the escape of a code point. `\\x5C` is not used: llama.cpp reads two digits after it, xgrammar as many as
    follow."""
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
