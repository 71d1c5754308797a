"""Measure how much of real schemas a grammar can express.    python evals/grammar.py [--every N] [--write]

With the tools and truths of the Berkeley Function Calling Leaderboard: the share of tools without a relaxation, and
whether a truth is rejected. With the official JSON Schema test suite, draft 2020-12: every valid instance must be
accepted, every invalid one rejected or covered by a reported relaxation. llguidance is the matcher. The exit status is
1 when a figure misses its target or is worse than in `grammar_ratchet.json`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from bfcl_cases import Case, cases
from bfcl_cases import fetch as fetch_cases
from report import ROOT, Figure, faults, figures_table, tighten
from schema_suite import Instance, instances
from schema_suite import fetch as fetch_suite

from rightcall import CannotCarry, Tool, check, grammar, render
from rightcall.constrain.grammars import value_grammar
from rightcall.schema.definition import check_schema, copy_plain
from rightcall.schema.limits import Refused
from rightcall.schema.relax import relax_schema

RATCHET = ROOT / "evals" / "grammar_ratchet.json"
PAGE = ROOT / "docs" / "constrain-results.md"
FORMATS = ("hermes", "qwen3_coder", "lfm2", "gemma4", "harmony", "glm45")


def matcher(lark: str) -> Any:
    from llguidance import LLMatcher, LLTokenizer

    matcher_found = LLMatcher(LLTokenizer("byte"), LLMatcher.grammar_from_lark(lark), log_level=0)
    if matcher_found.is_error():
        raise RuntimeError(matcher_found.get_error()[:1000])
    return matcher_found


def accepts(grammar_matcher: Any, text: str) -> bool:
    tokens = list(text.encode())
    accepted_count = grammar_matcher.try_consume_tokens(tokens)
    is_accepted = accepted_count == len(tokens) and grammar_matcher.is_accepting()
    grammar_matcher.reset()
    return bool(is_accepted)


# -- the leaderboard ---------------------------------------------------------------------------------------------------


def measure_tools(found: Sequence[Case]) -> tuple[Figure, ...]:
    """Measure the share of tools that a grammar expresses completely, and of truths that it accepts in each format."""
    whole, tools, why = 0, 0, Counter[str]()
    seen: set[str] = set()
    for case in found:
        fresh = [tool for tool in case.tools if json.dumps([tool.name, tool.parameters]) not in seen]
        seen |= {json.dumps([tool.name, tool.parameters]) for tool in fresh}
        if fresh:
            tool_grammar = grammar(fresh, format="hermes", choice="required")
            lost = {limit.tool for limit in tool_grammar.relaxations} | set(tool_grammar.omitted)
            why.update(limit.keyword for limit in tool_grammar.relaxations)
            tools += len(fresh)
            whole += len(fresh) - len(lost)
    print("relaxed:", dict(why), file=sys.stderr)
    return (Figure("leaderboard: tools without a relaxation", whole, tools, 0.97), *measure_truths(found))


def measure_truths(found: Sequence[Case]) -> tuple[Figure, ...]:
    figures = []
    undeclared_count = 0
    for format in FORMATS:
        accepted = carried = 0
        for case in found:
            if any(check(call, case.tools) for call in case.calls):
                continue
            try:
                text = render(case.calls, format=format, tools=case.tools)
            except CannotCarry:
                continue
            carried += 1
            # Some truths have a member that the schema allows but does not declare; a grammar accepts it on request.
            has_undeclared = any(
                _has_undeclared((case.tools.get(call.name) or Tool(name="")).parameters, call.arguments)
                for call in case.calls
            )
            undeclared_count += has_undeclared
            used = case.tools.scoped([call.name for call in case.calls])
            grammar_matcher = matcher(grammar(used, format=format, choice="required", undeclared=has_undeclared).lark())
            if accepts(grammar_matcher, text):
                accepted += 1
            else:
                print(f"  refused: {format}: {case.id}: {text[:200]}", file=sys.stderr)
        figures.append(Figure(f"leaderboard: truths accepted, {format}", accepted, carried, 1.0))
    print(f"{undeclared_count // len(FORMATS)} truths have undeclared members", file=sys.stderr)
    return tuple(figures)


def _has_undeclared(schema: Any, value: Any) -> bool:
    """Return whether a truth has a member that the schema does not declare."""
    if isinstance(value, list):
        return isinstance(schema, dict) and any(_has_undeclared(schema.get("items"), item) for item in value)
    declared = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(value, dict) or not isinstance(declared, dict):
        return False
    return any(key not in declared or _has_undeclared(declared[key], item) for key, item in value.items())


# -- the suite ---------------------------------------------------------------------------------------------------------


def classify_instance(instance: Instance) -> str:
    """Return accepted, refused, relaxed (invalid, accepted, and reported), or `no schema` if tools cannot have it."""
    try:
        schema = copy_plain(instance.schema)
        if not isinstance(schema, bool):
            check_schema(schema)
            schema, _ = relax_schema("t", schema)
    except Refused:
        return "no schema"
    schema_grammar = value_grammar(schema, undeclared=True)
    is_accepted = schema_grammar.start != "" and accepts(
        matcher(schema_grammar.lark()), json.dumps(instance.value, ensure_ascii=False)
    )
    return "relaxed" if is_accepted and schema_grammar.relaxations else "accepted" if is_accepted else "refused"


def measure_suite(found: Sequence[Instance]) -> tuple[Figure, ...]:
    count: Counter[str] = Counter()
    for instance in found:
        verdict = classify_instance(instance)
        if verdict == "no schema":
            count["no schema"] += 1
            continue
        right = verdict in ("accepted", "relaxed") if instance.valid else verdict in ("refused", "relaxed")
        kind = "valid" if instance.valid else "invalid"
        count[kind] += 1
        count[f"{kind} right"] += right
        count["plainly refused"] += not instance.valid and verdict == "refused"
        if not right:
            print(
                f"  {kind} but {verdict}: {instance.name}: {json.dumps([instance.schema, instance.value])[:300]}",
                file=sys.stderr,
            )
    return (
        Figure("suite: valid instances accepted", count["valid right"], count["valid"], 1.0),
        Figure("suite: invalid instances refused or reported", count["invalid right"], count["invalid"], 1.0),
        Figure("suite: invalid instances refused", count["plainly refused"], count["invalid"]),
        Figure("suite: instances whose schema a tool may have", len(found) - count["no schema"], len(found)),
    )


HEAD = """# What a grammar can say: measured

Written by `make grammar` (`python evals/grammar.py --write`). The tools and truths are those of the Berkeley Function
Calling Leaderboard, the instances those of the official JSON Schema test suite, draft 2020-12; llguidance is the judge.
An instance whose schema no tool may have (a reference to somewhere else, or inside an inner `$id`) is not counted.
Where it is invalid and accepted, a relaxation was reported.

"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, metavar="N", help="measure only every Nth case")
    parser.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name} and the ratchet")
    options = parser.parse_args(arguments)
    figures = [
        *measure_tools(list(cases(fetch_cases()))[:: options.every]),
        *measure_suite(list(instances(fetch_suite()))[:: options.every]),
    ]
    print(figures_table(figures))
    if options.every > 1:
        print("this is a sample: the page and the ratchet are neither written nor compared")
        return 0
    wrong = faults(figures, RATCHET)
    if options.write:
        PAGE.write_text(HEAD + figures_table(figures) + "\n", "utf-8")
        tighten(figures, RATCHET)
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
