"""Nested tags:  <roles><item>lead</item><item>dev</item></roles>   as MiniMax M3 writes lists and objects.

The tags carry no types: the schema says whether an element is a list, an object or a scalar. Without one, children that
all have the list tag make a list, other children an object, and text is JSON if it is valid JSON.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring as quoted
from typing import Any

from rightcall.formats.spec import Marker, Params, alternatives
from rightcall.parsing.argument_values import typed
from rightcall.parsing.buffer import Broken, Cut, Steps
from rightcall.parsing.call_builder import CallBuilder
from rightcall.parsing.markers import Probe, Scan, alt, template
from rightcall.schema.places import kind as kind_of
from rightcall.schema.places import may_nest, resolve


def _first(marker: Marker) -> str:
    return alternatives(marker)[0]


def _around(marker: str) -> tuple[int, int]:
    before, _, after = marker.partition("{key}")
    return len(before.lstrip()), len(after.rstrip())


_MOST_REFS = 32
_SIMPLE = {"string": "plain", "integer": "json", "number": "json", "boolean": "json"}


# An element: its tag, the text in it, the elements in it.
_Node = tuple[str, list[str], list["_Node"]]


def _followed(schema: Any, root: Any) -> Any:
    left = _MOST_REFS
    while left and isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        schema, left = resolve(schema["$ref"], root), left - 1
    return schema


def _said(schema: Any, word: str) -> Any:
    return schema.get(word) if isinstance(schema, dict) else None


def _options(schema: dict[str, Any], root: Any) -> list[Any]:
    """What the schema lets through: itself, or those that it names."""
    options = [each for word in ("anyOf", "oneOf") if isinstance(schema.get(word), list) for each in schema[word]]
    return [_followed(option, root) for option in options] or [schema]


def _is_of(schema: Any, wanted: str) -> bool:
    said = _said(schema, "type")
    return bool(said == wanted or (isinstance(said, list) and wanted in said))


class NestedTags:
    def __init__(self, body: Params) -> None:
        self.item = body.item
        opens, closes = _first(body.param), _first(body.value_close)
        self.tag = Probe(alt(template(opens), template(closes)))
        self.scan = Scan([("open", template(opens)), ("close", template(closes))])
        # An element with nothing but text in it, all there: one match instead of two searches.
        before, after = opens.strip().split("{key}")
        begins, ends = closes.strip().split("{key}")
        odd = re.escape(before[0])
        opening = re.escape(before) + r'([^<>"\s/]{1,64}+)' + re.escape(after)
        self.leaf = re.compile(f"{opening}([^{odd}]*+){re.escape(begins)}\\1{re.escape(ends)}").match
        # Where in a tag its name stands.
        self.names = {"open": _around(opens), "close": _around(closes)}

    def read(self, p: CallBuilder, key: str) -> Steps[tuple[str, Any]]:
        """The value of an argument, as JSON text and as a value. `pos` is behind its opening tag."""
        root: _Node = key, [], []
        stack = [root]
        while not self._grow(p, stack):
            yield
        return self._argument(p, root, p.call.name if p.call else "")

    def at_once(self, p: CallBuilder, key: str) -> tuple[str, Any] | None:
        """As `read`, if the value is all there; else `pos` is anywhere in it."""
        root: _Node = key, [], []
        return self._argument(p, root, p.call.name if p.call else "") if self._grow(p, [root]) else None

    def may_begin(self, p: CallBuilder, key: str) -> bool:
        """May the value of this argument be written in tags, though it may be a text as well?"""
        schema, root = self._schema(p, key, p.call.name if p.call else "")
        return may_nest(schema, root)

    def _argument(self, p: CallBuilder, root: _Node, name: str) -> tuple[str, Any]:
        return self._value(root, *self._schema(p, root[0], name), p.limits.depth)

    def _schema(self, p: CallBuilder, key: str, name: str) -> tuple[Any, Any]:
        """The schema of an argument, and of all of them."""
        tool = p.tools.get(name) if p.tools is not None else None
        parameters = tool.parameters if tool else {}
        properties = parameters.get("properties")
        return properties.get(key) if isinstance(properties, dict) else None, parameters

    def _grow(self, p: CallBuilder, stack: list[_Node]) -> bool:
        """Takes the elements that are there. False where more text is needed."""
        while stack:
            leaf = self.leaf(p.buf, p.pos)
            if leaf is not None and len(stack) <= p.limits.depth:
                tag, text = leaf.groups()
                stack[-1][2].append((tag, [text], []))
                p.pos = leaf.end()
                continue
            found = (self.scan.ended if p.ended else self.scan.search)(p.buf, p.pos)
            end = found.start() if found else len(p.buf)
            if end > p.pos:
                stack[-1][1].append(p.buf[p.pos : end])
                p.pos = end
            if found is None or found.lastindex is None:
                if p.ended:
                    raise Cut
                return False
            self._take_tag(p, stack, self.scan.actions[found.lastindex], found.end())
        return True

    def _take_tag(self, p: CallBuilder, stack: list[_Node], action: str, end: int) -> None:
        before, after = self.names[action]
        name = p.buf[p.pos + before : end - after]
        p.pos = end
        if action == "open":
            node: _Node = name, [], []
            if len(stack) > p.limits.depth:
                raise Broken("too_deep", f"the arguments are nested deeper than {p.limits.depth} levels")
            stack[-1][2].append(node)
            stack.append(node)
        elif name == stack[-1][0]:
            stack.pop()
        else:
            raise Broken("unclosed_argument", f"the tag {stack[-1][0]!r} is not closed", f"/{stack[0][0]}")

    def _value(self, node: _Node, schema: Any, root: Any, depth: int) -> tuple[str, Any]:
        _, text, children = node
        if not children and len(text) == 1 and type(schema) is dict and len(schema) == 1:
            wanted = schema.get("type")
            kind = _SIMPLE.get(wanted) if type(wanted) is str else None
            if kind is not None:
                return (quoted(text[0]), text[0]) if kind == "plain" else typed(text[0], kind, depth)[:2]
        return self._nested(node, self._fitting(_followed(schema, root), children, root), root, depth)

    def _nested(self, node: _Node, schema: Any, root: Any, depth: int) -> tuple[str, Any]:
        _, text, children = node
        wanted = _said(schema, "type")
        blank = not "".join(text).strip()
        if children and not blank:
            raise Broken("unexpected_text", f"text stands between the tags of {node[0]!r}; put each text into a tag")
        if (wanted == "array" and blank) or (wanted is None and self._is_list(children)):
            return self._list(children, _said(schema, "items"), root, depth)
        if (wanted == "object" and blank) or children:
            return self._object(children, _said(schema, "properties"), root, depth)
        json, value, _ = typed("".join(text), kind_of(schema, root), depth)
        return json, value

    def _list(self, children: list[_Node], items: Any, root: Any, depth: int) -> tuple[str, Any]:
        made = [self._value(child, items, root, depth) for child in children]
        return "[" + ", ".join([json for json, _ in made]) + "]", [value for _, value in made]

    def _object(self, children: list[_Node], properties: Any, root: Any, depth: int) -> tuple[str, Any]:
        """Elements by their tags; those of one tag are a list."""
        named: dict[str, list[_Node]] = {}
        for child in children:
            if child[0] in named:
                named[child[0]].append(child)
            else:
                named[child[0]] = [child]
        pieces: list[str] = []
        values: dict[str, Any] = {}
        declared = properties if isinstance(properties, dict) else {}
        for tag, nodes in named.items():
            schema = declared.get(tag)
            if len(nodes) == 1:
                json, values[tag] = self._value(nodes[0], schema, root, depth)
            else:
                json, values[tag] = self._list(nodes, _said(_followed(schema, root), "items"), root, depth)
            pieces.append(f"{quoted(tag)}: {json}")
        return "{" + ", ".join(pieces) + "}", values

    def _fitting(self, schema: Any, children: list[_Node], root: Any) -> Any:
        """Of several types that the schema lets through, the one that elements such as these are written for."""
        if not children or not isinstance(schema, dict):
            return schema
        if type(schema.get("type")) is str and "anyOf" not in schema and "oneOf" not in schema:
            return schema
        options = _options(schema, root)
        order = ("array", "object") if self._is_list(children) else ("object", "array")
        fitting = ({**option, "type": wanted} for wanted in order for option in options if _is_of(option, wanted))
        return next(fitting, schema)

    def _is_list(self, children: list[_Node]) -> bool:
        return bool(children) and all(tag == self.item for tag, _, _ in children)
