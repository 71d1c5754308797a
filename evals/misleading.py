"""Answers that mention, resemble or quote calls without making one: templates combined with values.

A careful reader would treat each of them as text: the example is surrounded by text, it is quoted, or the data only
resembles a call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rightcall import Tool, Toolset

STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}


def _tool(name: str, required: str, **properties: dict[str, Any]) -> Tool:
    schema = {"type": "object", "properties": properties, "required": required.split()}
    return Tool(name=name, parameters=schema)


MISLEADING_TOOLS = Toolset(
    [
        _tool("get_weather", "city", city=STRING, days=INTEGER),
        _tool("get_time", "zone", zone=STRING),
        _tool("search_docs", "query", query=STRING, limit=INTEGER),
        _tool("bash", "command", command=STRING),
        _tool("read_file", "path", path=STRING),
        _tool("send_email", "to subject", to=STRING, subject=STRING, body=STRING),
        _tool("f", "", x={}, y={}, a={}, city={}),
        _tool("add", "a b", a={"type": "number"}, b={"type": "number"}),
    ]
)

SAMPLES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get_weather", {"city": "Oslo", "days": 3}),
    ("get_time", {"zone": "CET"}),
    ("search_docs", {"query": "how to install", "limit": 5}),
    ("bash", {"command": "ls -la /tmp"}),
    ("read_file", {"path": "src/main.py"}),
    ("send_email", {"to": "ada@example.org", "subject": "Hello"}),
    ("f", {"x": 1}),
    ("add", {"a": 1, "b": 2}),
)


def as_json(name: str, arguments: dict[str, Any], key: str = "arguments") -> str:
    return json.dumps({"name": name, key: arguments})


def as_python(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join([f'{key}={value!r}' for key, value in arguments.items()])})"


def as_tags(name: str, arguments: dict[str, Any]) -> str:
    inner = "".join([f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items()])
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


def as_hermes(name: str, arguments: dict[str, Any]) -> str:
    return f"<tool_call>\n{as_json(name, arguments)}\n</tool_call>"


def as_hermes_line(name: str, arguments: dict[str, Any]) -> str:
    return f"<tool_call>{as_json(name, arguments)}</tool_call>"


def as_mistral(name: str, arguments: dict[str, Any]) -> str:
    return f"[TOOL_CALLS] [{as_json(name, arguments)}]"


def as_llama(name: str, arguments: dict[str, Any]) -> str:
    return f"<|python_tag|>{as_json(name, arguments, 'parameters')}"


def as_harmony(name: str, arguments: dict[str, Any]) -> str:
    return f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{json.dumps(arguments)}<|call|>"


WIRES = (as_json, as_python, as_hermes, as_hermes_line, as_tags, as_mistral, as_llama, as_harmony)

# {python} is the call as Python, {json} as an envelope, {name} and {key} and {value} its parts.
EXPLAINING = (
    "You could call {python} to find out, but I already know the answer.",
    "The function `{name}` takes one argument, `{key}`; for example `{python}`.",
    "I would normally use {name} here. It is not needed, because you told me the {key} already: {value}.",
    "To do it yourself, send {json} to the server and read what comes back.",
    "In your code, replace the line {python} by a loop. Otherwise it runs only once.",
    "{python} returns a dictionary. The second form, {name}(), raises a TypeError.",
    "Die Funktion {python} liefert das Ergebnis; ich habe sie nicht aufgerufen.",
    "调用 {python} 可以得到结果，但是现在不需要。",
    "Q: What does {python} do?\nA: It looks something up and returns it.",
    "1. Open a terminal\n2. Type {python}\n3. Wait for the answer\n",
    "There are two ways:\n\n- {python}\n- asking me\n\nBoth give the same.",
    "{name}: looks things up. Arguments: {key}. Example: {json}",
)
FENCES = (
    "Here is how such a call looks:\n\n```{language}\n{wire}\n```\n\nI have not made it.",
    "```{language}\n{wire}\n```\n\nThis is only an example of the format.",
    "Example:\n\n~~~\n{wire}\n~~~\n\nReplace the values by your own.",
    "The template:\n\n````markdown\nBelow is a call.\n```{language}\n{wire}\n```\n````\n\nCopy it as it is.",
)
QUOTED = (
    "The model writes `{wire}` and stops.",
    'A reply such as "{wire}" is parsed by the server.',
    "In the log I found '{wire}', which looks right to me.",
)
CODE = (
    "Put this in a file:\n\n```python\nfrom tools import {name}\n\n\ndef main():\n    print({python})\n```\n",
    "from tools import {name}\n\nresult = {python}\nprint(result)\n",
    ">>> {python}\n'done'\n>>> exit()\n",
    "def test_{name}():\n    assert {python} is not None\n",
    "$ python -c 'from tools import {name}; print({python})'\ndone\n$ echo $?\n0\n",
    "$ curl -s http://localhost:8000/call -d '{json}'\n{{\"ok\": true}}\n",
    "async function main() {{\n  const answer = await {name}({arguments});\n  console.log(answer);\n}}\n",
    'Traceback (most recent call last):\n  File "main.py", line 3, in <module>\n    {python}\nTypeError: no\n',
)
LOGS = (
    "2025-03-01 12:00:01 INFO tool_call name={name} arguments={arguments}\n2025-03-01 12:00:02 INFO done\n",
    "[12:00:01] calling {python}\n[12:00:02] ok\n",
    'level=debug msg="tool call" call={json}\n',
    "The last three calls were:\n  {python}\n  {python}\n  {python}\nAll of them succeeded.",
)
TABLES = (
    "| tool | call |\n|---|---|\n| {name} | `{python}` |\n| help | `help()` |\n",
    "| name | arguments |\n|---|---|\n| {name} | {arguments} |\n",
    'name,arguments\n{name},"{python}"\nhelp,\n',
)
MARKERS = (
    *("<tool_call>", "</tool_call>", "<function=", "</function>", "<parameter=city>", "[TOOL_CALLS]", "[/TOOL_CALLS]"),
    *("<|python_tag|>", "<|tool_call|>", "<tool_calls>", "</tool_calls>", "<function_calls>", "<invoke name="),
    *(
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>",
        "<｜tool▁calls▁begin｜>",
        "<|action_start|>",
        "<|channel|>",
    ),
)
ABOUT_MARKERS = (
    "A call opens with `{marker}`, which is one token in the vocabulary.",
    'The string "{marker}" must be escaped in your template.',
)
TAGS_IN_PROSE = (
    "The <tool_call> tag opens a call and </tool_call> closes it. Between them stands JSON.",
    "Older models wrote <function_call> instead of <tool_call>; both are understood.",
    "Use <tool_call> ... </tool_call> around each call, and nothing else on those lines.",
    "If you see [TOOL_CALLS] in the output, your tokenizer is set up wrongly.",
    "Your grammar should start at <tool_call> and stop at </tool_call>, as in the paper.",
    "Is it <tool_call> or <tool_calls>? It depends on the model: Qwen has the first, Jamba the second.",
    "&lt;tool_call&gt;{&quot;name&quot;: &quot;get_weather&quot;}&lt;/tool_call&gt; is how it looks in HTML.",
    "He typed <tool and then gave up. <tool_ca is not a marker, and neither is [TOOL_ or <|python_ta.",
    "a < b and c > d, so <x> is empty; {x} and [x] are sets; f(x) = x + 1 is a function.",
    "The regex <tool_call>(.*?)</tool_call> is what most parsers use, and it is wrong.",
    "Write \\<tool_call\\> with backslashes in this dialect of Markdown.",
    "A closing tag without its opener, like </tool_call>, is ignored by the browser.",
)
ANSWERS: tuple[Any, ...] = (
    {"answer": 42},
    {"name": "Bob"},
    {"name": "Bob", "age": 37},
    {"name": "Ada Lovelace", "born": 1815, "works": ["notes"]},
    {"name": "get_weather", "status": "healthy", "uptime": 99.9},
    {"city": "Oslo"},
    {"x": 1, "y": 2},
    {"a": 1, "b": 2, "sum": 3},
    {"path": "src/main.py", "size": 1024},
    {"query": "how to install", "hits": []},
    {"command": "ls", "exit": 0},
    {"to": "ada@example.org", "subject": "Hello", "sent": True},
    {"result": {"name": "get_weather", "arguments": "none"}},
    {"tools": ["get_weather", "get_time", "bash"]},
    {"function": "sine", "domain": [0, 1]},
    {"type": "function", "purity": "pure"},
    {"tool": "hammer", "weight": 2},
    {"error": "no tool_call was made", "code": 404},
    {"tool_calls": 3, "tokens": 120},
    {"calls": [{"who": "Bob", "minutes": 5}]},
    {"parameters": {"alpha": 0.1, "beta": 2}},
    {"arguments": ["pro", "contra"]},
    {"weather": {"city": "Oslo", "days": 3, "sky": "clear"}},
    [],
    [1, 2, 3],
    ["get_weather", "get_time"],
    [{"name": "Bob"}, {"name": "Eve"}],
    [{"city": "Oslo"}, {"city": "Bergen"}],
    [{"id": 1, "name": "get_weather", "description": "looks it up"}],
    [["get_weather", {"city": "Oslo"}]],
    "get_weather",
    42,
    None,
)
DEFINITIONS = tuple(
    {"name": tool.name, "description": "What it does.", "parameters": tool.parameters} for tool in MISLEADING_TOOLS
)[:6]
AROUND = (
    "{text}",
    "```json\n{text}\n```",
    "Here is the result:\n\n{text}\n",
    "Here is the result:\n\n```json\n{text}\n```\n\nLet me know if you need more.",
)


def misleading() -> Iterator[tuple[str, str]]:
    """Yield each text with its kind of trap."""
    for name, arguments in SAMPLES:
        yield from _texts_of_sample(name, arguments)
    for marker in MARKERS:
        yield from [("quoted marker", template.format(marker=marker)) for template in ABOUT_MARKERS]
    yield from [("marker in prose", text) for text in TAGS_IN_PROSE]
    for value in ANSWERS:
        yield from [("JSON answer", around.format(text=json.dumps(value))) for around in AROUND]
    for definition in DEFINITIONS:
        for value in (definition, {"type": "function", "function": definition}):
            yield from [("tool definition", around.format(text=json.dumps(value))) for around in AROUND[2:]]


def _texts_of_sample(name: str, arguments: dict[str, Any]) -> Iterator[tuple[str, str]]:
    key, value = next(iter(arguments.items()))
    replacements = {
        "name": name,
        "key": key,
        "value": value,
        "arguments": json.dumps(arguments),
        "json": as_json(name, arguments),
        "python": as_python(name, arguments),
    }
    for kind, templates in (("prose", EXPLAINING), ("code", CODE), ("log", LOGS), ("table", TABLES)):
        yield from [(kind, template.format(**replacements)) for template in templates]
    for wire in WIRES:
        text = wire(name, arguments)
        language = "python" if wire is as_python else "json" if wire is as_json else ""
        yield from [("fence", template.format(wire=text, language=language)) for template in FENCES]
        if "\n" not in text:
            yield from [("quoted call", template.format(wire=text)) for template in QUOTED]
