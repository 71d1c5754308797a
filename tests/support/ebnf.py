"""An independent parser of EBNF as llama.cpp and xgrammar support it. It shares no code with the grammar writer.

    found = Ebnf('root ::= "[" [0-9]{1,3} ("," [0-9]{1,3})* "]"')
    found.accepts("[1,22]")      found.ends("[1] and more", 0) == [3]      found.draw(Random(0)) == "[407]"

It follows all derivations of a text at once, character by character. `make gbnf` compares it with llama.cpp's matcher.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

TOP = 0x10FFFF
_TOKEN = re.compile(
    r"""(?P<rule>[A-Za-z][\w\-]*)\s*::=|(?P<name>[A-Za-z][\w\-]*)|(?P<text>"(?:[^"\\]|\\.)*")"""
    r"""|(?P<set>\[(?:[^\]\\]|\\.)*\])|(?P<times>[*+?]|\{\d+(?:,\d*)?\})|(?P<sign>[()|])|(?P<dot>\.)|\s+|\#[^\n]*"""
)
_CHAR = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|([^\\])", re.S)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t"}
Spans = tuple[tuple[int, int], ...]
Element = Spans | str  # one character, or a rule


class _Link(NamedTuple):
    """An element of an alternative, and the element after it."""

    element: Element
    then: _Link | None


class _Stack(NamedTuple):
    """The remaining elements: a link, and the stack for the time when its alternative is complete."""

    link: _Link
    under: _Stack | None


class Ebnf:
    def __init__(self, text: str) -> None:
        self.rules: dict[str, list[tuple[Element, ...]]] = {}
        _Text(text, self.rules).read()
        self._links = {name: [_link(one) for one in options] for name, options in self.rules.items()}
        self._stacks: dict[tuple[int, int], _Stack] = {}
        self._opened: dict[int, tuple[tuple[_Stack, ...], bool]] = {}
        self._least: dict[str, int] | None = None

    # -- matching ------------------------------------------------------------------------------------------------------

    def accepts(self, text: str) -> bool:
        return len(text) in self.ends(text, 0)

    def ends(self, text: str, start: int) -> list[int]:
        """Return all places at which a text of this language that begins at `start` may end."""
        found: list[int] = []
        stacks, done = self._open(self._root())
        for at in range(start, len(text) + 1):
            if done:
                found.append(at)
            if at == len(text) or not stacks:
                break
            stacks, done = self._step(stacks, ord(text[at]))
        return found

    def _root(self) -> _Stack:
        return self._stack(_ROOT, None)

    def _stack(self, link: _Link, under: _Stack | None) -> _Stack:
        key = (id(link), id(under))
        if key not in self._stacks:
            self._stacks[key] = _Stack(link, under)
        return self._stacks[key]

    def _step(self, stacks: tuple[_Stack, ...], code: int) -> tuple[tuple[_Stack, ...], bool]:
        after: dict[int, _Stack] = {}
        done = False
        for top in stacks:
            spans = top.link.element
            if isinstance(spans, str) or not any(low <= code <= high for low, high in spans):
                continue
            following = top.under if top.link.then is None else self._stack(top.link.then, top.under)
            if following is None:
                done = True
                continue
            more, may_end = self._open(following)
            done |= may_end
            after.update({id(stack): stack for stack in more})
        return tuple(after.values()), done

    def _open(self, stack: _Stack) -> tuple[tuple[_Stack, ...], bool]:
        """Return the stacks that begin with a character, and whether the text may end here."""
        if id(stack) in self._opened:
            return self._opened[id(stack)]
        found: dict[int, _Stack] = {}
        seen: set[int] = set()
        done, pending = False, [stack]
        while pending:
            current = pending.pop()
            if id(current) in seen:
                continue
            seen.add(id(current))
            if not isinstance(current.link.element, str):
                found[id(current)] = current
                continue
            under = current.under if current.link.then is None else self._stack(current.link.then, current.under)
            for option in self._links[current.link.element]:
                if option is not None:
                    pending.append(self._stack(option, under))
                elif under is None:
                    done = True
                else:
                    pending.append(under)
        self._opened[id(stack)] = tuple(found.values()), done
        return self._opened[id(stack)]

    # -- drawing -------------------------------------------------------------------------------------------------------

    def draw(self, dice: Random, maximum: int = 200) -> str:
        """Return a random text of the language. After about `maximum` characters it takes the shortest derivation."""
        minimum = self._shortest()
        out: list[str] = []
        pending: list[Element] = ["root"]
        while pending:
            current = pending.pop()
            if not isinstance(current, str):
                out.append(_choose_character(current, dice))
                continue
            options = [one for one in self.rules[current] if _cost(one, minimum) < _ENDLESS]
            if len(out) > maximum:
                options = [min(options, key=lambda one: _cost(one, minimum))]
            pending += reversed(dice.choice(options))
        return "".join(out)

    def _shortest(self) -> dict[str, int]:
        """Return the minimum number of characters of each rule."""
        if self._least is None:
            minimum = dict.fromkeys(self.rules, _ENDLESS)
            changed = True
            while changed:
                changed = False
                for name, options in self.rules.items():
                    best = min([_cost(option, minimum) for option in options], default=_ENDLESS)
                    if best < minimum[name]:
                        minimum[name], changed = best, True
            self._least = minimum
        return self._least


_ENDLESS = 10**9
_ROOT = _Link("root", None)


def _link(elements: tuple[Element, ...]) -> _Link | None:
    found: _Link | None = None
    for element in reversed(elements):
        found = _Link(element, found)
    return found


def _cost(option: tuple[Element, ...], minimum: dict[str, int]) -> int:
    """Return the cost of an alternative. Each rule adds a little, so that an indirection is never cheaper."""
    found = 0
    for element in option:
        found += minimum[element] + 1 if isinstance(element, str) else 1 if element else _ENDLESS
    return min(found, _ENDLESS)


def _choose_character(spans: Spans, dice: Random) -> str:
    """Choose a character, mostly a printable ASCII character."""
    printable = [(max(low, 32), min(high, 126)) for low, high in spans if low <= 126 and high >= 32]
    low, high = dice.choice(printable if printable and dice.random() < 0.97 else spans)
    return chr(dice.randint(low, min(high, low + 5000)))


class _Text:
    """Parse the text of a grammar into rules; groups and repetitions become separate rules."""

    def __init__(self, text: str, rules: dict[str, list[tuple[Element, ...]]]) -> None:
        self.rules = rules
        self.tokens = list(self._tokens(text))
        self.at = 0

    def _tokens(self, text: str) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            assert found, f"no grammar: {text[at : at + 60]!r}"
            at = found.end()
            if found.lastgroup:
                yield found.lastgroup, found[found.lastgroup]

    def _next(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def read(self) -> None:
        while self._next()[0] == "rule":
            name = self._next()[1]
            self.at += 1
            assert name not in self.rules, f"{name} is defined twice"
            self.rules[name] = []  # it comes before its parts
            self.rules[name] += self._options()
        assert self._next()[0] == "end", self._next()
        for options in list(self.rules.values()):
            for option in options:
                missing = [one for one in option if isinstance(one, str) and one not in self.rules]
                assert not missing, f"{missing} are not defined"

    def _options(self) -> list[tuple[Element, ...]]:
        found = [self._sequence()]
        while self._next() == ("sign", "|"):
            self.at += 1
            found.append(self._sequence())
        return found

    def _sequence(self) -> tuple[Element, ...]:
        out: list[Element] = []
        while True:
            kind, text = self._next()
            if kind in ("end", "rule") or text in ("|", ")"):
                return tuple(out)
            self.at += 1
            piece = self._piece(kind, text)
            if self._next()[0] == "times":
                piece = self._times(piece, self._next()[1])
                self.at += 1
                assert self._next()[0] != "times", "engines take no second quantifier"
            out += piece

    def _piece(self, kind: str, text: str) -> list[Element]:
        if kind == "name":
            return [text]
        if kind == "dot":
            return [((0, TOP),)]
        if kind == "set":
            return [_set(text[1:-1])]
        if kind == "text":
            return [((code, code),) for code, _ in _codes(text[1:-1])]
        assert text == "(", text
        options = self._options()
        assert self._next()[1] == ")"
        self.at += 1
        return [self._rule(options)]

    def _rule(self, options: list[tuple[Element, ...]]) -> str:
        name = f"({len(self.rules)})"
        self.rules[name] = options
        return name

    def _times(self, piece: list[Element], times: str) -> list[Element]:
        minimum, maximum = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}.get(times) or _counts(times)
        one = piece[0] if len(piece) == 1 else self._rule([tuple(piece)])
        if maximum < 0:
            more = self._rule([])
            self.rules[more] += [(one, more), ()]
            return [one] * minimum + [more]
        rest: tuple[Element, ...] = ()
        for _ in range(maximum - minimum):
            rest = (self._rule([(one, *rest), ()]),)
        return [one] * minimum + list(rest)


def _counts(times: str) -> tuple[int, int]:
    minimum, comma, maximum = times[1:-1].partition(",")
    return int(minimum), int(maximum) if maximum else -1 if comma else int(minimum)


def _codes(text: str) -> Iterator[tuple[int, bool]]:
    """Yield code points, and whether each was written with a backslash."""
    for found in _CHAR.finditer(text):
        number = found[1] or found[2] or found[3]
        if number:
            yield int(number, 16), True
        elif found[4]:
            yield ord(_PLAIN.get(found[4], found[4])), True
        else:
            yield ord(found[5]), False


def _set(text: str) -> Spans:
    inverted = text.startswith("^")
    codes = list(_codes(text[inverted:]))
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(codes):
        if at + 2 < len(codes) and codes[at + 1] == (ord("-"), False):
            spans.append((codes[at][0], codes[at + 2][0]))
            at += 3
        else:
            spans.append((codes[at][0], codes[at][0]))
            at += 1
    return _inverse(spans) if inverted else tuple(spans)


def _inverse(spans: list[tuple[int, int]]) -> Spans:
    out: list[tuple[int, int]] = []
    at = 0
    for low, high in sorted(spans):
        if low > at:
            out.append((at, low - 1))
        at = max(at, high + 1)
    return (*out, (at, TOP)) if at <= TOP else tuple(out)
