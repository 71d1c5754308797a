"""The page `docs/repair.md`: every rule with an example that is computed when the page is generated."""

from __future__ import annotations

import json
from itertools import groupby

from rightcall.cli.show import format_repair
from rightcall.parsing.parser import parse
from rightcall.providers.provider_answers import read
from rightcall.repairs.rules import RULES, RepairRule
from rightcall.safe_text import visible
from rightcall.types import Reply, Tool

# The tools that the examples are sent to.
TOOLS: tuple[Tool, ...] = (
    Tool(
        name="get_weather",
        parameters={
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "unit": {"enum": ["celsius", "fahrenheit"]},
                "hourly": {"type": "boolean", "default": False},
                "tags": {"type": "array", "items": {"type": "string"}},
                "place": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}},
            },
            "required": ["city"],
        },
        aliases={"town": "city"},
    ),
    Tool(
        name="notes.add",
        parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    ),
)

_HEAD = """\
# Repair rules

What a model sent is changed only by the rules on this page, only where the change makes the call fit or leaves fewer
problems, and never without a receipt: a `Repair` with the rule, its kind, the place, and the text before and after.
A rule of syntax that was needed in several places leaves one receipt, with the first of them and at most 200
characters; `Call.raw` has the whole text as it was sent. Arguments that fit are byte for byte what was sent. A call
that was cut off is never completed, by any rule.

This page is made by `make pages`; every example on it was worked out then.

```python
from rightcall import Call, repair

properties = {"city": {"type": "string"}, "days": {"type": "integer"}}
tools = [{"name": "get_weather", "parameters": {"properties": properties}}]
call = repair(Call("functions.get_weather", {}, "{'city': 'Oslo', 'days': '3'}"), tools)
print(call.name, call.json)
for made in call.repairs:
    print(f"{made.rule} ({made.kind}) {made.path}: {made.before} -> {made.after}")
```
```text
get_weather {"city": "Oslo", "days": 3}
namespace (exact) : functions.get_weather -> get_weather
single_quotes (exact) : 'city' -> "city"
scalar_type (schema) /days: "3" -> 3
```

| kind | what it means | `off` | `safe` | `lenient` |
|---|---|---|---|---|
| `exact` | there is only one way to read what was sent | no | yes | yes |
| `schema` | the declared schema decides how to read it | no | yes | yes |
| `guess` | it is likely, not certain | no | tools declared `read_only` | yes |

The kind of a rule below is that of its example. Where what was sent has a second reading that would fit as well, the
receipt's kind is `guess`, and where no guess may be made the call does not run: its problem is `invalid_json` or
`uncertain`.

`safe` is the default. `parse`, `Parser`, `read` and `Stream` take one policy per tool too:
`repair={"delete_file": "off", "*": "safe"}`.

Every rule has public evidence: the last column names threads in which a model or a server sent such calls.

| rule | kind | what it does | evidence |
|---|---|---|---|
"""
_DECLARED = """
The examples have two tools. `notes.add` requires a string `text`; `get_weather` requires `city`, for which it has the
alias `town`, and takes these:

~~~text
"""
_PROPERTIES = TOOLS[0].parameters["properties"]


def page() -> str:
    """Return the whole page."""
    rows = [f"| [{rule.name}](#{rule.name}) | {rule.kind} | {rule.what} | {rule.evidence} |\n" for rule in RULES]
    declared = [f"{json.dumps(name)}: {json.dumps(schema)}" for name, schema in _PROPERTIES.items()]
    sections = [_section(name, list(rules)) for name, rules in groupby(RULES, key=lambda rule: rule.name)]
    return "".join([_HEAD, *rows, _DECLARED, ",\n".join(declared), "\n~~~\n", *sections])


def repair_example(rule: RepairRule, *, policy: str | None = None) -> Reply:
    """Repair the example of a rule."""
    repair_policy = policy or ("lenient" if rule.kind == "guess" else "safe")
    if rule.format:
        return parse(rule.sent, format=rule.format, tools=TOOLS, repair=repair_policy)  # type: ignore[arg-type]
    function = {"name": rule.tool, "arguments": rule.sent, **rule.beside}
    message = {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    return read(message, tools=TOOLS, repair=repair_policy)  # type: ignore[arg-type]


def _section(name: str, rules: list[RepairRule]) -> str:
    return f"\n### {name}\n" + "".join(map(_example, rules))


def _example(rule: RepairRule) -> str:
    call = repair_example(rule).attempts[0]
    name = f"{rule.tool or '(no name)'}  " if rule.tool != call.name else ""
    named = f"{call.name}  " if rule.tool != call.name else ""
    lines = [
        *_lines("sent", name + rule.sent),
        *(_lines("beside", json.dumps(rule.beside)) if rule.beside else ()),
        *_lines("becomes", named + call.json),
        *_lines("receipt", "\n".join(map(format_repair, call.repairs))),
    ]
    return f"\n{rule.what} ({rule.kind})\n\n~~~text\n" + "\n".join(lines) + "\n~~~\n"


def _lines(label: str, text: str) -> list[str]:
    return [f"{label if at == 0 else '':<9}{visible(line)}" for at, line in enumerate(text.split("\n"))]
