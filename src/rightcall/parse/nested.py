"""Nested tags:  <roles><item>lead</item><item>dev</item></roles>   as MiniMax M3 writes lists and objects.

The tags carry no types: the schema says whether an element is a list, an object or a scalar. Without one, children that
all have the list tag make a list, other children an object, and text is JSON if it is valid JSON.
"""

from __future__ import annotations

import re
from json.encoder import encode_basestring as quoted
from typing import Any

from rightcall.declare.kinds import kind as kind_of
from rightcall.declare.kinds import resolve
from rightcall.formats.spec import Marker, Params, alternatives
from rightcall.parse.engine import Engine, Steps
from rightcall.parse.markers import Probe, Scan, alt, template
from rightcall.parse.signals import Broken, Cut
from rightcall.parse.typed import typed


def _first(marker: Marker) -> str:
    return alternatives(marker)[0]


def _around(marker: str) -> tuple[int, int]:
    before, _, after = marker.partition("{key}")
    return len(before.lstrip()), len(after.rstrip())


_SIMPLE = {"string": "plain", "integer": "json", "number": "json", "boolean": "json"}


class _Node:
    __slots__ = ("children", "tag", "text")

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.text: list[str] = []
        self.children: list[_Node] = []


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
        self.leaf = re.compile(
            f'{re.escape(before)}([^<>"\\s/]{{1,64}}+){re.escape(after)}([^{odd}]*+){re.escape(begins)}\\1{re.escape(ends)}'
        ).match
        # Where in a tag its name stands.
        self.names = {"open": _around(opens), "close": _around(closes)}

    def read(self, p: Engine, key: str) -> Steps[tuple[str, Any]]:
        """The value of an argument, as JSON text and as a value. `pos` is behind its opening tag."""
        root = _Node(key)
        yield from self._tree(p, [root])
        tool = p.tools.get(p.call.name) if p.tools is not None and p.call is not None else None
        parameters = tool.parameters if tool else {}
        properties = parameters.get("properties")
        schema = properties.get(key) if isinstance(properties, dict) else None
        return self._value(root, schema, parameters, p.limits.depth)

    def _tree(self, p: Engine, stack: list[_Node]) -> Steps[None]:
        while stack:
            leaf = self.leaf(p.buf, p.pos)
            if leaf is not None and len(stack) <= p.limits.depth:
                node = _Node(leaf.group(1))
                node.text.append(leaf.group(2))
                stack[-1].children.append(node)
                p.pos = leaf.end()
                continue
            found = (self.scan.ended if p.ended else self.scan.search)(p.buf, p.pos)
            end = found.start() if found else len(p.buf)
            if end > p.pos:
                stack[-1].text.append(p.buf[p.pos : end])
                p.pos = end
            if found is None or found.lastindex is None:
                if p.ended:
                    raise Cut
                yield
                continue
            action = self.scan.actions[found.lastindex]
            before, after = self.names[action]
            name = p.buf[p.pos + before : found.end() - after]
            p.pos = found.end()
            if action == "open":
                node = _Node(name)
                if len(stack) > p.limits.depth:
                    raise Broken("too_deep", f"the arguments are nested deeper than {p.limits.depth} levels")
                stack[-1].children.append(node)
                stack.append(node)
            elif name == stack[-1].tag:
                stack.pop()
            else:
                raise Broken("unclosed_argument", f"the tag {stack[-1].tag!r} is not closed", f"/{stack[0].tag}")

    def _value(self, node: _Node, schema: Any, root: Any, depth: int) -> tuple[str, Any]:
        if not node.children and len(node.text) == 1 and isinstance(schema, dict) and len(schema) == 1:
            kind = _SIMPLE.get(str(schema.get("type")))
            if kind == "plain":
                return quoted(node.text[0]), node.text[0]
            if kind is not None:
                json, value, _ = typed(node.text[0], kind, depth)
                return json, value
        for _ in range(32):
            if not (isinstance(schema, dict) and isinstance(schema.get("$ref"), str)):
                break
            schema = resolve(schema["$ref"], root)
        wanted = schema.get("type") if isinstance(schema, dict) else None
        blank = not "".join(node.text).strip()
        if (wanted == "array" and blank) or (
            node.children and all(c.tag == self.item for c in node.children) and wanted is None
        ):
            items = schema.get("items") if isinstance(schema, dict) else None
            made = [self._value(child, items, root, depth) for child in node.children]
            return "[" + ", ".join(json for json, _ in made) + "]", [value for _, value in made]
        if (wanted == "object" and blank) or node.children:
            properties = schema.get("properties") if isinstance(schema, dict) else None
            inner = properties if isinstance(properties, dict) else {}
            fields = {c.tag: self._value(c, inner.get(c.tag), root, depth) for c in node.children}
            json = "{" + ", ".join(f"{quoted(tag)}: {json}" for tag, (json, _) in fields.items()) + "}"
            return json, {tag: value for tag, (_, value) in fields.items()}
        kind = _SIMPLE.get(str(wanted)) if schema == {"type": wanted} else None
        json, value, _ = typed("".join(node.text), kind or kind_of(schema, root), depth)
        return json, value
