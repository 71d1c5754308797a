"""The fields of a format file: the meaning, an example, and a reply in such a format.

The meaning of a field comes from the docstring of its class; the examples are here, and each is a valid format.
"""

from __future__ import annotations

import inspect
import re

from rightcall.cli.formats_command import render_sample
from rightcall.formats import Format
from rightcall.formats.spec import Body, Braced, Channels, Envelope, NameThenJson, Params, Protocol, Pythonic, TsCall
from rightcall.safe_text import visible

_MEANING = re.compile(r"^- `(\w+)`: (.*(?:\n  .*)*)", re.M)
KINDS: dict[str, type[Body]] = {
    "envelope": Envelope,
    "namethenjson": NameThenJson,
    "params": Params,
    "pythonic": Pythonic,
    "braced": Braced,
    "tscall": TsCall,
}
_OWN_MEANING = {
    ("format", "special"): "markers, or parts of them, that are one token each in the model's vocabulary: they end a "
    "thought, for nobody writes one by chance, and a grammar asks for the token itself.",
    ("pythonic", "wrap"): "what stands before, between and after several calls.",
    ("tscall", "labels"): "words that may stand before the name with a colon and are not read.",
    ("protocol", "done"): "the pair around the last word, which says that the task is done.",
}

# The smallest format of each kind: its keys outside the body, and those of the body.
_AROUND = {"name": 'name = "mine"', "call": 'call = ["<call>", "</call>"]'}
_BODIES: dict[str, dict[str, str]] = {
    "envelope": {},
    "namethenjson": {"open": 'open = "{name}:"'},
    "params": {
        "open": "open = '<use tool=\"{name}\">'",
        "param": "param = '<with key=\"{key}\">'",
        "value_close": 'value_close = "</with>"',
        "close": 'close = "</use>"',
    },
    "pythonic": {},
    "braced": {"open": 'open = "call:{name}"', "quote": 'quote = "\'"'},
    "tscall": {},
}

_BESIDE = {"outer": 'call = ["", ""]'}  # what a key requires outside the body

AROUND: dict[str, str] = {
    "name": 'name = "mine"',
    "body": 'body = [{ kind = "envelope" }, { kind = "pythonic" }]',
    "section": 'section = ["<calls>\\n", "\\n</calls>"]',
    "call": 'call = ["<call>", "</call>"]',
    "between": 'between = "\\n---\\n"',
    "reasoning": 'reasoning = ["<thinking>", "</thinking>"]',
    "content": 'content = [["<say>", "</say>"]]',
    "ends": 'ends = ["<|end|>"]',
    "citations": 'citations = ["<cite>", "</cite>"]',
    "special": 'ends = ["<|end|>"]\nspecial = ["<|end|>"]',
    "tools": 'tools = "hermes"',
    "aliases": 'aliases = ["my-model", "my_model_2"]',
    "models": 'models = "My Model 7B"',
}
CHANNELS: dict[str, str] = {
    "start": 'start = "<|start|>"',
    "message": 'message = "<|message|>"',
    "ends": 'ends = ["<|end|>", "<|call|>"]',
    "kinds": 'kinds = { thoughts = "reasoning", answer = "content" }',
    "messages": "messages = { reasoning = ['<|channel|>thoughts<|message|>', '<|end|>'], "
    "content = ['<|channel|>answer<|message|>', '<|end|>'], "
    "call = ['<|channel|>tool to={name}<|message|>', '<|call|>'] }",
    "to": 'to = " to="',
    "channel": 'channel = "<|channel|>"',
    "prefix": 'prefix = "tools."',
}
PROTOCOL: dict[str, str] = {"done": 'done = ["<done>", "</done>"]'}
BODY: dict[str, dict[str, str]] = {
    "envelope": {
        "names": 'names = ["tool"]',
        "args": 'args = ["input"]',
        "ids": 'ids = ["call_id"]',
        "wrap": 'wrap = ["[", ", ", "]"]',
        "write_id": 'write_id = "last"',
        "outer": 'outer = ["tool_calls"]\nwrap = ["[", ", ", "]"]',
        "content": 'content = "response"',
    },
    "namethenjson": {
        "open": 'open = "{name}[ARGS]"',
        "close": 'close = "[/ARGS]"',
        "id": 'open = "{name}#{index}"\nid = "functions.{name}:{index}"',
    },
    "params": {
        **_BODIES["params"],
        "types": 'param = \'<with key="{key}" as="{type}">\'\ntypes = { text = "string", json = "json" }',
        "item": 'param = "<{key}>"\nvalue_close = "</{key}>"\nitem = "item"',
        "quote": 'quote = ["`", "`"]',
        "json": 'json = ["<json>", "</json>"]',
        "empty": "empty = '<use tool=\"{name}\"/>'",
        "escapes": 'escapes = { \'&\' = "&amp;", \'"\' = "&quot;" }',
    },
    "pythonic": {"wrap": 'wrap = ["", "; ", ""]'},
    "braced": {**_BODIES["braced"], "quoted": 'quoted = "raw"'},
    "tscall": {"labels": 'labels = ["tool", "call"]'},
}


def toml_of(kind: str = "envelope", around: str = "", body: str = "", table: str = "") -> str:
    """Return the smallest format of a kind with these lines in it, and this table."""
    above = _with(_AROUND if not table else {"name": _AROUND["name"]}, around)
    inside = "" if "body =" in around else f'\n[body]\nkind = "{kind}"\n' + _with(_BODIES[kind], body)
    return above + table + inside


def _with(lines: dict[str, str], more: str) -> str:
    """Return the lines, without those whose key is in one of the further lines."""
    keys = {line.partition(" = ")[0] for line in more.splitlines()}
    return "".join([f"{line}\n" for key, line in lines.items() if key not in keys]) + (f"{more}\n" if more else "")


def examples() -> dict[str, str]:
    """Return every field by its location, with a whole file that uses it."""
    channels = "\n[channels]\n" + "".join([f"{line}\n" for line in CHANNELS.values()])
    protocol = '\ncontent = [["<prose>", "</prose>"]]\n[protocol]\n' + "".join(PROTOCOL.values()) + "\n"
    files = {key: toml_of(around=line) for key, line in AROUND.items()}
    files |= {f"channels.{key}": toml_of("namethenjson", body='open = ""', table=channels) for key in CHANNELS}
    files |= {f"protocol.{key}": toml_of("tscall", 'call = ["<call>", "</call>"]', table=protocol) for key in PROTOCOL}
    for kind, lines in BODY.items():
        files |= {f"body.{kind}.{key}": toml_of(kind, _BESIDE.get(key, ""), line) for key, line in lines.items()}
    return files


def meanings(kind: type, where: str) -> dict[str, str]:
    """Return the meaning of each field of a class, from its docstring."""
    from_docstring = {
        key: " ".join(text.split()) for key, text in _MEANING.findall(inspect.cleandoc(kind.__doc__ or ""))
    }
    return {**from_docstring, **{key: text for (own, key), text in _OWN_MEANING.items() if own == where}}


def section() -> str:
    """Return the part of the page about fields."""
    tables = [
        _table("### Around the calls", Format, "format", AROUND),
        _table("### `[channels]`: messages with headers", Channels, "channels", CHANNELS),
        _table("### `[protocol]`: replies that are blocks and nothing else", Protocol, "protocol", PROTOCOL),
    ]
    for kind, lines in BODY.items():
        sample_text = visible(render_sample(Format.from_toml(toml_of(kind)), calls=1)).strip()
        head = f'### `[body]` with `kind = "{kind}"`\n\n~~~text\n{sample_text}\n~~~'
        tables.append(_table(head, KINDS[kind], kind, lines))
    return "\n".join(tables)


def _table(head: str, kind: type, where: str, lines: dict[str, str]) -> str:
    meaning_by_key = meanings(kind, where)
    rows = [f"| `{key}` | {meaning_by_key[key]} | {_code(line)} |\n" for key, line in lines.items()]
    return f"\n{head}\n\n| key | what it says | for example |\n|---|---|---|\n" + "".join(rows)


def _code(lines: str) -> str:
    return "<br>".join([f"`` {line} ``".replace("|", "\\|") for line in lines.splitlines()])
