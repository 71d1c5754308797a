"""What does a grammar cost?    100 tools to GBNF and to Lark, against what llguidance needs to compile the result.

Targets, all in the same run: making and writing either grammar takes at most half of that compile, and that compile at
most 1.5 times llguidance's own way from the same tools' JSON Schemas. The tools are declared beforehand, once.
"""

from __future__ import annotations

import sys
from typing import Any

from measure import best, table, verdict
from rightcall import Tool, Toolset, grammar

TOOLS = 100
HALF, MOST = 0.5, 1.5
RUNS = 7


def parameters(at: int) -> dict[str, Any]:
    """As tools have them: strings, a bounded number, options, a list, an object inside."""
    options = {"a": {"type": "number"}, "b": {"type": "boolean"}}
    return {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "days": {"type": "integer", "minimum": 1, "maximum": 14 + at},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "options": {"type": "object", "properties": options, "required": ["a"], "additionalProperties": False},
        },
        "required": ["city", "unit"],
        "additionalProperties": False,
    }


def as_schema(tools: Toolset) -> dict[str, Any]:
    """The same calls as one JSON Schema."""
    calls = [
        {
            "type": "object",
            "properties": {"name": {"const": tool.name}, "arguments": tool.parameters},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return {"anyOf": calls}


def main() -> int:
    from llguidance import LLMatcher, LLTokenizer

    tools = Toolset([Tool(name=f"tool_{at}", parameters=parameters(at)) for at in range(TOOLS)])
    tokenizer, schema = LLTokenizer("byte"), as_schema(tools)

    def compiled(text: str) -> Any:
        found = LLMatcher(tokenizer, text, log_level=0)
        assert not found.is_error(), found.get_error()
        return found

    def made() -> Any:
        return grammar(tools, format="hermes", choice="required")

    lark = LLMatcher.grammar_from_lark(made().lark())
    ours = best(lambda: compiled(lark), RUNS)
    theirs = best(lambda: compiled(LLMatcher.grammar_from_json_schema(schema)), RUNS)
    to_gbnf, to_lark = best(lambda: made().gbnf(), RUNS), best(lambda: made().lark(), RUNS)
    rows = [
        ("tools to GBNF", f"{to_gbnf * 1e3:.1f}", f"{to_gbnf / ours:.2f} of the compile"),
        ("tools to Lark", f"{to_lark * 1e3:.1f}", f"{to_lark / ours:.2f} of the compile"),
        ("llguidance compiles the Lark", f"{ours * 1e3:.1f}", f"{ours / theirs:.2f} of its own"),
        ("llguidance from JSON Schema", f"{theirs * 1e3:.1f}", ""),
    ]
    table((f"{TOOLS} tools", "ms", ""), rows)
    missed = [name for name, took in (("GBNF", to_gbnf), ("Lark", to_lark)) if took > HALF * ours]
    missed += ["the compile"] if ours > MOST * theirs else []
    return verdict(f"at most {HALF} of the compile, which takes at most {MOST} of llguidance's own", missed)


if __name__ == "__main__":
    sys.exit(main())
