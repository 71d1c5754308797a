"""xgrammar's structural tags: what begins a call, what is in it, what ends it, per tool.

JSON arguments are given as JSON Schema, any other body as an EBNF grammar. Text outside the tags is free when a call is
not required.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from rightcall.constrain.gbnf import emit_with_limits as emit_gbnf
from rightcall.constrain.grammar import reachable
from rightcall.constrain.json_schema import project
from rightcall.constrain.meet import Limit
from rightcall.constrain.model import Lit, Node, Ref, Repeat, Seq, Token, seq
from rightcall.errors import GrammarCompileError
from rightcall.formats.spec import Envelope, NameThenJson
from rightcall.types import Json

if TYPE_CHECKING:
    from rightcall.constrain.grammar import Grammar


def emit(grammar: Grammar) -> Json:
    return emit_with_limits(grammar)[0]


def emit_with_limits(grammar: Grammar) -> tuple[Json, tuple[Limit, ...]]:
    if grammar.choice == "none":
        raise GrammarCompileError("a structural tag begins a call; without calls send none")
    writer = _Tags(grammar.rendered())
    return {"type": "structural_tag", "format": writer.format()}, tuple(
        dict.fromkeys([*writer.limits, *writer.not_told()])
    )


class _Tags:
    def __init__(self, exact: Grammar) -> None:
        self.grammar, self.rules = exact, exact.definitions
        self.limits: list[Limit] = []

    def format(self) -> Json:
        if "call" not in self.rules:  # the request named the tool: its arguments are the whole reply
            return self.content(self.grammar.called[0], [self.rules[self.grammar.start]])
        before, after, joint = self.around()
        once = not self.grammar.parallel
        tags = [self.tag(name, f"call_{at}") for at, name in enumerate(self.grammar.called)]
        if self.grammar.choice == "auto" and self.grammar.triggers:
            trigger = self.grammar.triggers[0]
            if before or after:
                inside = {
                    "type": "tags_with_separator",
                    "tags": tags,
                    "separator": joint,
                    "at_least_one": True,
                    "stop_after_first": once,
                }
                tags = [{"type": "tag", "begin": before, "content": inside, "end": after}]
            return {
                "type": "triggered_tags",
                "triggers": [trigger],
                "tags": tags,
                "at_least_one": False,
                "stop_after_first": once,
            }
        calls = {
            "type": "tags_with_separator",
            "tags": tags,
            "separator": joint,
            "at_least_one": True,
            "stop_after_first": once,
        }
        if not before and not after:
            return calls
        parts = [_const(before), calls, _const(after)]
        return {"type": "sequence", "elements": [part for part in parts if part.get("value") != ""]}

    def around(self) -> tuple[str, str, str]:
        """What stands before the first call, behind the last and between two."""
        block = self.rules.get("calls") or self.rules[self.grammar.start]
        items: list[Node] = list(block.items) if isinstance(block, Seq) else [block]
        at = next((i for i, item in enumerate(items) if item == Ref("call")), None)
        if at is None or not self.grammar.parallel:
            return "", "", ""
        rest = items[at + 1 :]
        joint = ""
        if rest and isinstance(rest[0], Repeat):
            more = rest.pop(0)
            assert isinstance(more, Repeat)
            joint = _texts(more.item.items[:-1]) if isinstance(more.item, Seq) else ""
        return _texts(items[:at]), _texts(rest), joint

    def tag(self, name: str, rule: str) -> Json:
        head = self.rules["call"].items if not isinstance(self.rules["call"], (Ref, Seq)) else (self.rules["call"],)  # type: ignore[union-attr]
        opener = next((item for item in head if Ref(rule) in getattr(item, "items", (item,))), Ref(rule))
        items = [item for item in getattr(opener, "items", (opener,)) if item != Ref(rule)]
        body = self.rules[rule]
        items += body.items if isinstance(body, Seq) else (body,)
        if all(isinstance(item, (Lit, Token)) for item in items):
            text = _texts(items)
            return {"type": "tag", "begin": text[:-1], "content": _const(text[-1:]), "end": ""}
        first = next(i for i, item in enumerate(items) if not isinstance(item, (Lit, Token)))
        last = len(items) - next(i for i, item in enumerate(reversed(items)) if not isinstance(item, (Lit, Token)))
        return {
            "type": "tag",
            "begin": _texts(items[:first]),
            "content": self.content(name, items[first:last]),
            "end": _texts(items[last:]),
        }

    def content(self, name: str, inside: list[Node]) -> Json:
        if len(inside) == 1 and isinstance(self.grammar.format.bodies[0], (Envelope, NameThenJson)):
            schema, made = project(self.schema(name), "xgrammar", name)
            self.limits += made
            return {"type": "json_schema", "json_schema": schema}
        rules = {**self.rules, "inside": seq(*inside)}
        part = msgspec.structs.replace(self.grammar, start="inside", definitions=reachable(rules, "inside"), lazy="")
        text, made = emit_gbnf(part)
        self.limits += made
        return {"type": "grammar", "grammar": text}

    def schema(self, name: str) -> Json:
        any_arguments = self.grammar.made_with.get("arguments") == "any"
        return {"type": "object"} if any_arguments else self.grammar.tools.schema(name) or {}

    def not_told(self) -> list[Limit]:
        """What was asked of the whole reply and does not go into tags."""
        asked = self.grammar.made_with
        found: list[Limit] = []
        if asked.get("reasoning") not in (None, False, "none"):
            required = self.grammar.choice != "auto"
            allows = "no thinking section: the reply begins with a call" if required else "text without one"
            found.append(Limit("", "", "reasoning", allows))
        if asked.get("text") and self.grammar.choice != "auto":
            found.append(Limit("", "", "text", "no text: the reply begins with a call"))
        bounds = asked.get("bounds")
        if bounds is not None and (bounds.string, bounds.array, bounds.digits) != (None, None, None):
            found.append(Limit("", "", "bounds", "strings, arrays and numbers of any length in JSON"))
        return found


def _texts(items: Sequence[Node]) -> str:
    return "".join(item.text for item in items if isinstance(item, (Lit, Token)))


def _const(text: str) -> Json:
    return {"type": "const_string", "value": text}
