"""The page `docs/problems.md`: every problem code, with the message of its example."""

from __future__ import annotations

import json

from rightcall.problems import GROUPS, TOOLS, Code
from rightcall.providers.provider_answers import read
from rightcall.safe_text import visible
from rightcall.types import Reply

_LONGEST = 400
_HEAD = """\
# Problems

What is wrong with a reply comes as values of type `Problem`, not as exceptions: a `code` for programs, a `message`
worded for the model, a `path` (a JSON Pointer into the arguments), the index of the `call` it is about among the
reply's `attempts`, and `blocking`, which says that this call must not run. A blocking problem of no call stops no call.
Each call has its own in `call.problems`: those that nothing blocks are `reply.calls`, the others `reply.refused`. A
call gets at most five problems about its arguments, the most useful first.

**What you may rely on:** a code on this page keeps its name and its meaning, and stays blocking or not. New codes may
come, so treat one that you do not know by its `blocking`. Messages may be worded better at any time: show them to the
model, but do not compare them.

Before 1.0, these codes were merged:

| old code | new code |
|---|---|
| `unclosed_paren`, `expected_paren` | `invalid_call` |
| `unterminated_list`, `unterminated_object`, `missing_colon`, `key_not_string` | `invalid_value` |
| `empty_argument_name` | `invalid_argument_name` |

This page is made by `make pages`; every message on it is what its example gave then.

```python
from rightcall import parse

text = '<tool_call>{"name": "get_weather", "arguments": {"days": "three"}}</tool_call>'
properties = {"city": {"type": "string"}, "days": {"type": "integer"}}
tools = [{"name": "get_weather", "parameters": {"properties": properties, "required": ["city"]}}]
for problem in parse(text, tools=tools).problems:
    print(problem.call, problem.code, problem.path, problem.message, sep=" | ")
```
```text
0 | missing | /city | city is required; received: days. Send city too
0 | wrong_type | /days | days must be an integer, not the string "three"
```

`Reply.raise_for_problems()` and `select` raise the first blocking one instead: `invalid_name`, `unknown_tool` and
`not_authorised` as `UnknownTool`, all others as `MalformedArguments`.

The examples below have these two tools; `list_bookings` takes no arguments, and `book` must have a `city`:

~~~text
"""
_NOTE = "Notes and other codes that do not block say something worth knowing of a call that may run.\n"


def page() -> str:
    """Return the whole page."""
    properties = TOOLS[0].parameters["properties"]
    declared = [f"{json.dumps(name)}: {json.dumps(schema)}" for name, schema in properties.items()]
    groups = [f"\n## {title}\n" + "".join(map(_section, codes)) for title, codes in GROUPS.items()]
    return "".join([_HEAD, ",\n".join(declared), "\n~~~\n\n", _NOTE, *groups])


def parse_example(code: Code) -> Reply:
    """Parse the example of a code."""
    return read(code.example, tools=TOOLS, format=code.format)


def _section(code: Code) -> str:
    blocks = "Blocks the call." if code.blocking else "Does not block."
    head = f"\n### {code.code}\n\n{blocks}\n\n- Cause: {code.cause}\n- Cure: {code.cure}\n"
    if not code.example or len(code.example) > _LONGEST:
        return head
    messages = [problem.message for problem in parse_example(code).problems if problem.code == code.code]
    quoted_messages = "".join([f"\n> {visible(message, one_line=True)}\n" for message in messages[:1]])
    return f"{head}\n~~~text\n{visible(code.example)}\n~~~\n{quoted_messages}"
