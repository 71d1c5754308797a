"""What is known of one tool when its call is written as a grammar: its name, and the shape of its arguments."""

from __future__ import annotations

from rightcall.schema.text_kinds import Kind
from rightcall.shapes.algebra import Node
from rightcall.shapes.builder import Builder
from rightcall.shapes.value_shapes import Object, Shape
from rightcall.shapes.write_json import Json


class ArgumentsShape:
    """`kinds` says how the text of each argument is read, `prefix` keeps the rules of two tools apart."""

    def __init__(
        self, name: str, shape: Shape, named: dict[str, Shape | None], kinds: dict[str, Kind], prefix: str
    ) -> None:
        self.name, self.shape, self.named, self.kinds, self.prefix = name, shape, named, kinds, prefix
        self.body: list[Node] | None = None  # as its format writes it, once that was asked for

    def json(self, builder: Builder) -> Node:
        """All of them as one JSON object."""
        return Json(builder, self.prefix, self.named).value(self.shape)

    def object(self) -> Object | None:
        """Their shape where members are written one by one. Of several the first: tools take one object."""
        shape = self.shape
        for _ in range(32):
            name = getattr(shape, "name", None)
            if name is None or isinstance(shape, Object):
                break
            shape = self.named.get(name) or Object()
        if isinstance(shape, Object):
            return shape
        found = [one for one in getattr(shape, "options", ()) if isinstance(one, Object)]
        return found[0] if found else None
