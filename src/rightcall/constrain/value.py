"""The grammar of one JSON value: what stands between the brackets of any call, and what a plain JSON answer is."""

from __future__ import annotations

from rightcall.constrain.grammar_value import Grammar, GrammarOptions, reachable
from rightcall.constrain.schema_shapes import Shapes
from rightcall.formats import FORMATS
from rightcall.shapes.builder import Builder, GrammarBounds
from rightcall.shapes.write_json import Json
from rightcall.tools.toolset import Toolset
from rightcall.types import Json as JsonObject


def value_grammar(
    schema: JsonObject | bool, *, undeclared: bool = False, formats: bool = False, bounds: GrammarBounds | None = None
) -> Grammar:
    """JSON text that fits this schema, which must be plain 2020-12 as `Toolset.schema` gives it."""
    root: JsonObject = schema if isinstance(schema, dict) else {"allOf": [schema]}
    shapes = Shapes("", root, extras=undeclared, formats=formats)
    shape = shapes.read()
    book = Builder(bounds or GrammarBounds(), points=True)
    book.rules["value"] = Json(book, "", shapes.named).value(shape)
    return Grammar(
        start="value",
        definitions=reachable(book.rules, "value"),
        relaxations=tuple(shapes.limits),
        tools=Toolset([]),
        options=GrammarOptions(format=FORMATS["generic_json"], choice="required"),
    )
