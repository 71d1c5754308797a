"""Measure the cost of a grammar: 100 tools to GBNF and to Lark, against llguidance's compilation of the result.

Targets, all in the same run: making and writing either grammar takes at most half of that compile, and that compile at
most 1.5 times llguidance's own way from the same tools' JSON Schemas. The tools are declared beforehand, once.

    python benchmarks/bench_grammar.py --real [--every N]

measures real schemas, each alone: the distinct tools of the Berkeley Function Calling Leaderboard, and the object
schemas of the JSON Schema Test Suite. Our time (the grammar, its Lark text, and llguidance's compile of it) is at most
1.5 times that of llguidance's own compiler for JSON Schema inside the same markers and envelope, at the median and at
the 99th percentile. Both are fetched from the package index once.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measure import best, table, turn_by_turn, verdict
from rightcall import Tool, Toolset, grammar
from rightcall.errors import BadTools, GrammarCompileError

TOOLS = 100
HALF, MOST = 0.5, 1.5
RUNS = 7


def parameters(at: int) -> dict[str, Any]:
    """Return typical parameters: strings, a bounded number, options, a list, a nested object."""
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
    """Return the same calls as one JSON Schema."""
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


def real_schemas() -> Iterator[tuple[str, str, Any]]:
    """Yield the source, the tool's name and the schema, without duplicates."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "evals"))
    from bfcl_cases import cases
    from bfcl_cases import fetch as fetch_cases
    from schema_suite import fetch as fetch_suite
    from schema_suite import instances

    found = [("leaderboard", tool.name, tool.parameters) for case in cases(fetch_cases()) for tool in case.tools]
    suite = [("suite", "f", instance.schema) for instance in instances(fetch_suite())]
    objects = [each for each in suite if isinstance(each[2], dict)]
    yield from {json.dumps(each): each for each in [*found, *objects]}.values()


def frame_grammar(name: str, schema: Any) -> str:
    """Return a grammar of a Hermes call whose arguments are compiled by llguidance."""
    head = json.dumps(f'<tool_call>\n{{"name": {json.dumps(name)}, "arguments": ')
    return f'%llguidance {{}}\nstart: {head} args "}}\\n</tool_call>"\nargs: %json {json.dumps(schema)}\n'


def measure_real(every: int) -> int:
    from llguidance import LLMatcher, LLTokenizer

    tokenizer = LLTokenizer("byte")
    times: dict[str, list[tuple[float, float]]] = {"leaderboard": [], "suite": []}
    skipped = 0

    def compiles(text: str) -> bool:
        return not LLMatcher(tokenizer, LLMatcher.grammar_from_lark(text), log_level=0).is_error()

    for source, name, schema in list(real_schemas())[::every]:
        try:
            tools = Toolset([{"type": "function", "function": {"name": name, "parameters": schema}}])
            lark = grammar(tools, choice="required", parallel=False).lark()
        except (BadTools, GrammarCompileError):
            skipped += 1
            continue
        theirs = frame_grammar(name, schema)
        if not compiles(lark) or not compiles(theirs):
            skipped += 1
            continue

        def ours(tools: Toolset = tools) -> None:
            compiles(grammar(tools, choice="required", parallel=False).lark())

        def own(text: str = theirs) -> None:
            compiles(text)

        mine, other = turn_by_turn(3, (ours, 1), (own, 1))
        times[source].append((mine * 1e3, other * 1e3))
    rows, missed = [], []
    for source, pairs in {**times, "all": [*times["leaderboard"], *times["suite"]]}.items():
        for share in (0.5, 0.99):
            mine, other = (sorted(pair[side] for pair in pairs)[int(share * (len(pairs) - 1))] for side in (0, 1))
            rows.append((f"{source} ({len(pairs)}), {share:.0%}", f"{mine:.2f}", f"{other:.2f}", f"{mine / other:.2f}"))
            missed += [f"{source} at {share:.0%}"] if mine > MOST * other and source == "all" else []
    print(f"{skipped} schemas that at least one of the two cannot compile")
    table(("schemas, percentile", "ours ms", "llguidance ms", "ratio"), rows)
    return verdict(f"at most {MOST} of llguidance's own compiler", missed)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--real", action="store_true", help="measure the schemas of the leaderboard and of the suite")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="with --real: measure only every Nth schema")
    options = parser.parse_args()
    return measure_real(options.every) if options.real else measure_hundred()


def measure_hundred() -> int:
    from llguidance import LLMatcher, LLTokenizer

    tools = Toolset([Tool(name=f"tool_{at}", parameters=parameters(at)) for at in range(TOOLS)])
    tokenizer, schema = LLTokenizer("byte"), as_schema(tools)

    def compile_grammar(text: str) -> Any:
        found = LLMatcher(tokenizer, text, log_level=0)
        assert not found.is_error(), found.get_error()
        return found

    def make_grammar() -> Any:
        return grammar(tools, format="hermes", choice="required")

    lark = LLMatcher.grammar_from_lark(make_grammar().lark())
    ours = best(lambda: compile_grammar(lark), RUNS)
    theirs = best(lambda: compile_grammar(LLMatcher.grammar_from_json_schema(schema)), RUNS)
    to_gbnf, to_lark = best(lambda: make_grammar().gbnf(), RUNS), best(lambda: make_grammar().lark(), RUNS)
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
