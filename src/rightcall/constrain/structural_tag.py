"""xgrammar's structural tags: what begins a call, what is in it, what ends it, per tool.

JSON arguments are given as JSON Schema where xgrammar enforces all of it, anything else as an EBNF grammar. Text
outside the tags is free when a call is not required.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from rightcall.constrain.algebra import Lexeme, Lit, Node, Seq, Token, reachable_rules, seq
from rightcall.constrain.builder import BLANKS
from rightcall.constrain.gbnf import emit_gbnf_with_limits
from rightcall.constrain.intersect import Relaxation
from rightcall.constrain.json_schema import project
from rightcall.constrain.value_shapes import (
    ANYTHING,
    NULL,
    TRUE_FALSE,
    Array,
    Number,
    Object,
    Shape,
    TextShape,
    accepts,
)
from rightcall.errors import GrammarCompileError
from rightcall.formats.body_kinds import BODIES
from rightcall.schema.walk import Refs, schemas_and_targets, subschemas
from rightcall.types import Json

if TYPE_CHECKING:
    from rightcall.constrain.grammars import Grammar


def emit_structural_tag(grammar: Grammar) -> Json:
    """Return the structural tag of a grammar; what it cannot express is relaxed without a report. Raises
    `GrammarCompileError` for the choice "none"."""
    return emit_structural_tag_with_limits(grammar)[0]


def emit_structural_tag_with_limits(grammar: Grammar) -> tuple[Json, tuple[Relaxation, ...]]:
    """Return a structural tag, and the constraints that it cannot express beyond the grammar's own relaxations. Raises
    `GrammarCompileError` for the choice "none"."""
    if grammar.choice == "none":
        raise GrammarCompileError("a grammar with choice='none' has no structural tag; send the request without one")
    writer = _Tags(grammar.rendered())
    return {"type": "structural_tag", "format": writer.build_format()}, tuple(dict.fromkeys(writer.limits))


class _Tags:
    """Builds the structural tag of one grammar. `limits` collects the constraints that the tag cannot express."""

    def __init__(self, exact: Grammar) -> None:
        self.grammar, self.rules, self.frame = exact, exact.definitions, exact.frame
        self.limits: list[Relaxation] = []

    def build_format(self) -> Json:
        """Return the `format` of the structural tag: triggered tags if calls are optional, a sequence if one is
        required, only the arguments if they are the whole reply, and one grammar if optional calls have no opener. Adds
        to `limits` what it cannot express."""
        optional = self.grammar.choice == "auto"
        if optional and not self.grammar.triggers:
            return self.whole_reply_grammar()
        self.limits += self.unexpressed_options()
        if not self.frame.joined:  # the request named the tool: its arguments are the whole reply
            return self.tag_content(self.grammar.called[0], list(self.frame.calls))
        before, after = _texts(_items(self.frame.before)), _texts(_items(self.frame.after))
        calls = self.call_tags(optional and not before)
        if optional:
            return self.triggered_tags(before, calls, after)
        parts = [part for part in (_constant_tag(before), calls, _constant_tag(after)) if part.get("value") != ""]
        return calls if len(parts) == 1 else {"type": "sequence", "elements": parts}

    def whole_reply_grammar(self) -> Json:
        """Return the structural format of one grammar for the whole reply, for calls without an opener that could
        trigger a tag. Adds to `limits` what it cannot express."""
        text, made = emit_gbnf_with_limits(msgspec.structs.replace(self.grammar, lazy=""))
        self.limits += made
        return {"type": "grammar", "grammar": text}

    def call_tags(self, bare: bool) -> Json:
        """Return the structural format of one or more calls: a tag for each tool and the separator. With `bare`, white
        space before the opener of a call is left out, because it belongs to the free text before it."""
        nodes = zip(self.grammar.called, self.frame.calls, strict=True)
        return {
            "type": "tags_with_separator",
            "tags": [self.call_tag(name, _items(node), bare) for name, node in nodes],
            "separator": _texts(_items(self.frame.joint)),
            "at_least_one": True,
            "stop_after_first": not self.grammar.parallel,
        }

    def triggered_tags(self, before: str, calls: Json, after: str) -> Json:
        """Return the structural format of free text in which an opener triggers calls. `calls` is the format of
        `call_tags`, and `before` and `after` are the texts around all calls; they make one tag of all calls unless both
        are empty."""
        tags = calls["tags"]
        if before or after:
            tags = [{"type": "tag", "begin": before.lstrip(BLANKS), "content": calls, "end": after}]
        return {
            "type": "triggered_tags",
            "triggers": [self.grammar.triggers[0]],
            "tags": tags,
            "at_least_one": False,
            "stop_after_first": not self.grammar.parallel,
        }

    def call_tag(self, name: str, items: Sequence[Node], bare: bool) -> Json:
        """Return the tag of a call of the tool `name` with these nodes: the texts at its beginning and end, and the
        content between them; if all is fixed text, the content is its last character. With `bare`, white space at the
        beginning is left out. Adds to `limits`."""
        fixed = [isinstance(item, (Lit, Token)) for item in items]
        if all(fixed):
            text = _texts(items)
            tag: Json = {"type": "tag", "begin": text[:-1], "content": _constant_tag(text[-1:]), "end": ""}
        else:
            first, last = fixed.index(False), len(fixed) - fixed[::-1].index(False)
            inside = self.tag_content(name, list(items[first:last]))
            tag = {"type": "tag", "begin": _texts(items[:first]), "content": inside, "end": _texts(items[last:])}
        return {**tag, "begin": tag["begin"].lstrip(BLANKS)} if bare else tag

    def tag_content(self, name: str, inside: list[Node]) -> Json:
        """Return the content of a tag, for the nodes `inside` a call of the tool `name`: a JSON Schema if they are JSON
        arguments and xgrammar enforces their schema, else a grammar. Adds to `limits` what it cannot express."""
        # Where the arguments can only be {}, the remaining node may be an id.
        arguments = len(inside) == 1 and not isinstance(inside[0], Lexeme)
        holds_json = BODIES[type(self.grammar.format.bodies[0])].holds_json
        if arguments and holds_json and is_exact(self.arguments_schema(name), formats=self.grammar.options.formats):
            schema, made = project(self.arguments_schema(name), "xgrammar", name)
            self.limits += made
            return {"type": "json_schema", "json_schema": schema}
        rules = {**self.rules, "inside": seq(*inside)}
        part = msgspec.structs.replace(
            self.grammar, start="inside", definitions=reachable_rules(rules, "inside"), lazy=""
        )
        text, made = emit_gbnf_with_limits(part)
        self.limits += made
        return {"type": "grammar", "grammar": text}

    def arguments_schema(self, name: str) -> Json:
        """Return the JSON Schema of the arguments of the tool `name`; any object with the option arguments="any"."""
        any_arguments = self.grammar.options.arguments == "any"
        schema = {} if any_arguments else self.grammar.tools.schema(name) or {}
        return {**schema, "type": "object"}

    def unexpressed_options(self) -> list[Relaxation]:
        """Return a relaxation for each option for the whole reply, such as reasoning or bounds, that tags cannot
        express."""
        asked = self.grammar.options
        found: list[Relaxation] = []
        if self.grammar.choice == "auto":
            found.append(Relaxation("", "", "text", "a call in a code fence or in quotes, which is shown and not made"))
        if asked.thinking != "none":
            required = self.grammar.choice != "auto"
            allows = "no thinking section: the reply begins with a call" if required else "text without one"
            found.append(Relaxation("", "", "reasoning", allows))
        if asked.text and self.grammar.choice != "auto":
            found.append(Relaxation("", "", "text", "no text: the reply begins with a call"))
        bounds = asked.bounds
        if (bounds.string, bounds.array, bounds.digits) != (None, None, None):
            found.append(Relaxation("", "", "bounds", "strings, arrays and numbers of any length in JSON"))
        return found


_TYPED = frozenset(
    "minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum items prefixItems minItems maxItems "
    "properties required additionalProperties".split()
)
_ALONE = frozenset(("$ref", "anyOf", "oneOf", "allOf", "enum", "const"))  # keywords beside them are ignored
_ANNOTATIONS = frozenset(
    "title description $comment default examples deprecated readOnly writeOnly $defs $schema $id format".split()
)


def is_exact(schema: Json, *, formats: bool) -> bool:
    """Return whether xgrammar enforces a schema, as `Toolset.arguments_schema` returns it, as JSON Schema means it.

    It ignores all but one of several keywords for the same value (`$ref` with others, `type` with `anyOf`, `allOf` of
    several schemas) and most keywords without `type`. It reads every pattern as anchored, without the lengths beside it
    and without the Unicode characters of its classes, asserts a `format` narrower than it is, writes constant objects
    without spaces, and does not know a declared name that has an escape. `formats`: a `format` is to be asserted;
    otherwise it is not sent.
    """
    return all(_is_exact_alone(each, formats) for each in schemas_and_targets(Refs(schema)))


def _is_exact_alone(schema: Json, formats: bool) -> bool:
    """Return whether xgrammar enforces the keywords of one schema as JSON Schema means them; its subschemas are not
    checked. With `formats`, it is False for a schema with `format`; otherwise `format` is ignored."""
    words = schema.keys() - _ANNOTATIONS
    if formats and "format" in schema:
        return False
    if any(sub.schema is False and sub.keyword != "additionalProperties" for sub in subschemas(schema)):
        return False
    if words.isdisjoint(_ALONE):
        declared = schema.get("properties", {})
        complete = all(name in declared for name in schema.get("required", ()))
        plain = all(json.dumps(name, ensure_ascii=False) == f'"{name}"' for name in declared)
        return complete and plain and (not words or ("type" in words and words <= _TYPED | {"type"}))
    constants = schema.get("enum", [schema.get("const")])
    if any(isinstance(value, (dict, list)) for value in constants):
        return False
    if len(words) == 1:
        return len(schema.get("allOf", (True,))) == 1
    if words != {"enum", "type"} or not isinstance(schema["type"], str):
        return False
    return all(accepts(_PLAIN[schema["type"]], value) for value in constants)


_PLAIN: dict[str, Shape] = {
    "string": TextShape(),
    "integer": Number(True),
    "number": Number(),
    "boolean": TRUE_FALSE,
    "null": NULL,
    "array": Array((), ANYTHING),
    "object": Object(),
}


def _items(node: Node) -> tuple[Node, ...]:
    """Return the nodes of a sequence; any other node alone."""
    return node.items if isinstance(node, Seq) else (node,)


def _texts(items: Sequence[Node]) -> str:
    """Return the joined texts of the literals and tokens; other nodes are left out."""
    return "".join(item.text for item in items if isinstance(item, (Lit, Token)))


def _constant_tag(text: str) -> Json:
    """Return a tag that matches exactly this text."""
    return {"type": "const_string", "value": text}
