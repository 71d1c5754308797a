"""What the keywords of objects say, as shapes: declared members, and those that are only allowed.

{"properties": {"x": {"type": "integer"}}, "required": ["x"]}  ->  Object((Field("x", Number(True), True),))
"""

from __future__ import annotations

from typing import Any

from rightcall.constrain.scalar_shapes import ScalarShapes
from rightcall.json_pointer import step
from rightcall.shapes.intersect import MAX_MEMBERS, object_shape
from rightcall.shapes.patterns import Irregular, read_pattern
from rightcall.shapes.value_shapes import ANYTHING, NOTHING, Field, Object, Shape, whole_text
from rightcall.types import Json

MAX_MATCHED = 20_000  # names held against patterns of names, in one object


class MemberShapes(ScalarShapes):
    """Reads objects."""

    extras = False  # undeclared members are allowed where the schema does not speak of them

    def shape(self, schema: Any, path: str, depth: int) -> Shape:
        """What a schema says: read by the class that reads all of them."""
        raise NotImplementedError

    def object(self, schema: Json, path: str, depth: int) -> Shape:
        declared = {key: value for key, value in schema.get("properties", {}).items() if whole_text(key)}
        required = dict.fromkeys(schema.get("required", ()))
        if not all(map(whole_text, required)):
            return NOTHING
        if len(declared) + len(required) > MAX_MEMBERS:
            self.limit(path, "properties", f"any members: a grammar is made for at most {MAX_MEMBERS:,}")
            return Object()
        if len(required) * len(schema.get("patternProperties", ())) > MAX_MATCHED:
            self.limit(f"{path}/patternProperties", "patternProperties", "any value under a name that they match")
            schema = {**without_keyword(schema, "patternProperties"), "additionalProperties": True}
        extra, keys, said = self.undeclared(schema, path, depth)
        fields = [
            Field(key, self.shape(value, f"{path}/properties{step(key)}", depth + 1), key in required)
            for key, value in declared.items()
        ]
        fields = self.met_patterns(fields, schema, path, depth)
        undeclared = [key for key in required if key not in declared]
        fields += [Field(key, self.named_extra(key, schema, extra, path, depth), True) for key in undeclared]
        self.dependent(schema, path)
        least, most = self.member_counts(schema, path, fields, extra)
        return object_shape(Object(tuple(fields), extra, keys, least, most, said))

    def dependent(self, schema: Json, path: str) -> None:
        """What one member asks of others cannot be said."""
        for word in ("dependentRequired", "dependentSchemas", "propertyNames"):
            if word in schema and schema[word] not in ({}, True):
                self.limit(f"{path}/{word}", word, "members that it forbids")

    def member_counts(self, schema: Json, path: str, fields: list[Field], extra: Shape) -> tuple[int, int | None]:
        least, most = self.count(schema, "minProperties", path) or 0, self.count(schema, "maxProperties", path)
        if (least or most is not None) and extra != NOTHING:
            return self.counted(fields, least, most, path)
        return least, most

    def counted(self, fields: list[Field], least: int, most: int | None, path: str) -> tuple[int, int | None]:
        """Undeclared members are not told apart, so they cannot be counted."""
        certain = sum(field.required for field in fields)
        if least > certain:
            self.limit(f"{path}/minProperties", "minProperties", "fewer members")
        if most is not None:
            self.limit(f"{path}/maxProperties", "maxProperties", "more members")
        return 0, None

    def undeclared(self, schema: Json, path: str, depth: int) -> tuple[Shape, Any, bool]:
        """The shape of members that are not declared, what their names must match, and whether the schema says so."""
        said = "additionalProperties" in schema
        patterns: Json = schema.get("patternProperties", {})
        if said:
            extra = self.shape(schema["additionalProperties"], f"{path}/additionalProperties", depth + 1)
        else:
            extra = ANYTHING if self.extras or "properties" not in schema or patterns else NOTHING
        if not patterns:
            return extra, None, said
        return self.by_patterns(patterns, extra, said, path, depth)

    def by_patterns(self, patterns: Json, extra: Shape, said: bool, path: str, depth: int) -> tuple[Shape, Any, bool]:
        at = f"{path}/patternProperties"
        shapes = {key: self.shape(value, at + step(key), depth + 1) for key, value in patterns.items()}
        if extra == NOTHING and len(patterns) == 1:
            ((pattern, shape),) = shapes.items()
            try:
                return shape, read_pattern(pattern), True
            except Irregular:
                pass
        if all(shape == extra for shape in shapes.values()):
            return extra, None, said
        self.limit(at, "patternProperties", "any value under an undeclared name")
        return ANYTHING, None, True

    def met_patterns(self, fields: list[Field], schema: Json, path: str, depth: int) -> list[Field]:
        """A declared member whose name also matches a pattern must fit both."""
        patterns: Json = schema.get("patternProperties", {})
        if len(patterns) * len(fields) > MAX_MATCHED:
            self.limit(f"{path}/patternProperties", "patternProperties", "what patterns forbid of declared members")
            return fields
        for pattern, value in patterns.items():
            at = f"{path}/patternProperties{step(pattern)}"
            for i, field in enumerate(fields):
                if _matches(pattern, field.name):
                    met = self.intersect(field.shape, self.shape(value, at, depth + 1), at)
                    fields[i] = Field(field.name, met, field.required)
        return fields

    def named_extra(self, key: str, schema: Json, extra: Shape, path: str, depth: int) -> Shape:
        """The shape of a member that is required but not declared."""
        if "additionalProperties" not in schema:
            extra = ANYTHING
        found = [
            self.shape(value, path, depth + 1)
            for pattern, value in schema.get("patternProperties", {}).items()
            if _matches(pattern, key)
        ]
        if not found:
            return (
                extra
                if not schema.get("patternProperties") or extra != ANYTHING
                else self.shape(schema.get("additionalProperties", True), path, depth + 1)
            )
        shape = found[0]
        for other in found[1:]:
            shape = self.intersect(shape, other, path)
        return shape


def _matches(pattern: str, name: str) -> bool:
    """By the engine that checks calls: its time is linear in the name."""
    import jsonschema_rs

    try:
        return bool(
            jsonschema_rs.Draft202012Validator(
                {"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions()
            ).is_valid(name)
        )
    except ValueError:
        return True


def without_keyword(schema: Json, left_out: str) -> Json:
    return {word: value for word, value in schema.items() if word != left_out}
