"""A small recogniser of GBNF, for tables of short texts: literals, classes, groups, references, `| * + ? {m,n}`."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import NamedTuple

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[A-Za-z0-9_-]+|\{\d+(?:,\d*)?\}|[()|*+?.]')


class Repeat(NamedTuple):
    node: object
    least: int
    most: int


class Ref(NamedTuple):
    name: str


class Group(NamedTuple):
    """Alternatives, each a sequence."""

    ways: tuple[tuple[object, ...], ...]


Node = object  # a Group, a Repeat, a Ref, a class of characters as a pattern, or a literal as a string


def accepts(gbnf: str, text: str) -> bool:
    """Is the whole text a sentence of the grammar?"""
    rules = _rules(gbnf)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        return len(text) in _Match(rules, text).ends(Ref("root"), 0)
    finally:
        sys.setrecursionlimit(limit)


@cache
def _rules(gbnf: str) -> dict[str, Node]:
    found = {}
    for line in gbnf.splitlines():
        name, sign, body = line.partition(" ::= ")
        if sign:
            found[name.strip()] = _group(_TOKEN.findall(body))
    return found


def _group(tokens: list[str]) -> Node:
    ways: list[list[Node]] = [[]]
    while tokens:
        token = tokens.pop(0)
        if token == ")":
            break
        if token == "|":
            ways.append([])
        elif token in "*+?" or token[0] == "{":
            ways[-1][-1] = Repeat(ways[-1][-1], *_times(token))
        else:
            ways[-1].append(_group(tokens) if token == "(" else _leaf(token))
    return Group(tuple(map(tuple, ways)))


def _times(token: str) -> tuple[int, int]:
    if token in "*+?":
        return {"*": (0, 10**6), "+": (1, 10**6), "?": (0, 1)}[token]
    least, comma, most = token[1:-1].partition(",")
    return int(least), int(most or 10**6) if comma else int(least)


def _leaf(token: str) -> Node:
    if token[0] == '"':
        return re.sub(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|.)", _unescaped, token[1:-1], flags=re.S)
    if token[0] == "[" or token == ".":
        return re.compile(token, re.S)
    return Ref(token)


def _unescaped(match: re.Match[str]) -> str:
    said = match[1]
    return chr(int(said[1:], 16)) if len(said) > 1 else {"n": "\n", "r": "\r", "t": "\t"}.get(said, said)


class _Match:
    """Where a node that begins at a place may end."""

    def __init__(self, rules: dict[str, Node], text: str) -> None:
        self.rules, self.text = rules, text
        self.known: dict[tuple[str, int], frozenset[int]] = {}

    def ends(self, node: Node, at: int) -> frozenset[int]:
        if isinstance(node, str):
            return frozenset({at + len(node)} if self.text.startswith(node, at) else ())
        if isinstance(node, re.Pattern):
            return frozenset({at + 1} if at < len(self.text) and node.match(self.text[at]) else ())
        if isinstance(node, Ref):
            if (node.name, at) not in self.known:
                self.known[node.name, at] = frozenset()  # no rule here begins with itself
                self.known[node.name, at] = self.ends(self.rules[node.name], at)
            return self.known[node.name, at]
        if isinstance(node, Repeat):
            return self._repeated(node, at)
        assert isinstance(node, Group)
        return frozenset().union(*[self._sequence(way, at) for way in node.ways])

    def _sequence(self, nodes: tuple[Node, ...], at: int) -> frozenset[int]:
        places = frozenset({at})
        for node in nodes:
            places = frozenset().union(*[self.ends(node, place) for place in places])
        return places

    def _repeated(self, node: Repeat, at: int) -> frozenset[int]:
        places, found, times = frozenset({at}), set[int](), 0
        while places and times <= node.most:
            if times >= node.least:
                if places <= found:
                    break
                found |= places
            times += 1
            places = frozenset().union(*[self.ends(node.node, place) for place in places])
        return frozenset(found)
