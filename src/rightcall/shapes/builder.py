"""The rules of a grammar while it is being made, and how freely things may be written.

A shape that occurs twice becomes one rule. White space is always optional and always bounded: where it may run on for
ever small models do not come out of it again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import msgspec

from rightcall.shapes.algebra import NEVER, Lexeme, Lit, Node, Ref, alt, chars, maybe, repeat, seq
from rightcall.shapes.intersect import Relaxation


class GrammarBounds(msgspec.Struct, frozen=True):
    """How long what a grammar allows may get; None: any length.

    - `string`: characters of a string.
    - `array`: items of an array.
    - `digits`: digits of a number.
    - `text`: characters of free text.
    - `calls`: calls in a reply.
    """

    string: int | None = None
    array: int | None = None
    digits: int | None = None
    text: int | None = None
    calls: int | None = 64


SPACE = Lexeme(alt(Lit(" "), seq(repeat(Lit("\n"), 1, 2), repeat(chars(" \t"), 0, 20))))

GAP = maybe(Ref("space"))


class Builder:
    def __init__(self, bounds: GrammarBounds, *, exact: bool = False, points: bool = False) -> None:
        self.rules: dict[str, Node] = {} if exact else {"space": SPACE}
        self.bounds = bounds
        self.points = points  # a whole number may be written 3.0
        self.exact = exact  # white space just as `render` writes it
        self.limits: dict[Relaxation, None] = {}
        self._known: dict[Hashable, Ref] = {}
        self._counts: dict[str, int] = {}

    def gap(self, rendered: str = "") -> Node:
        """White space, where `render` writes this."""
        return Lit(rendered) if self.exact else GAP

    def named(self, name: str, make: Callable[[], Node]) -> Ref:
        """The rule of this name, made when it is first asked for; it may refer to itself."""
        if name not in self.rules:
            self.rules[name] = Lit("")
            self.rules[name] = make()
        return Ref(name)

    def shared(self, key: Hashable, prefix: str, make: Callable[[], Node]) -> Node:
        """One rule for everything that has this key."""
        found = self._known.get(key)
        if found is None:
            node = make()
            if isinstance(node, (Ref, Lit)) or node == NEVER:
                return node
            number = self._counts[prefix] = self._counts.get(prefix, 0) + 1
            found = self._known[key] = Ref(f"{prefix}{number}")
            self.rules[found.name] = node
        return found

    def part(self, node: Node) -> Node:
        """A rule of its own for a piece that would nest others too deep."""
        return self.shared(("part", node), "part", lambda: node)

    def limit(self, tool: str, path: str, keyword: str, allows: str) -> None:
        self.limits[Relaxation(tool, path, keyword, allows)] = None
