"""The page `docs/formats.md`: made from the formats themselves, so that it cannot say anything that is not so."""

from __future__ import annotations

from rightcall.cli.format_sample import sample
from rightcall.cli.safe import visible
from rightcall.formats import FORMATS, NAMED_ONLY
from rightcall.formats.spec import Format

_HEAD = """\
# Wire formats

Every format that rightcall reads and writes, streamed or whole. `format=` and `--format` take a name or an alias.
This page is made by `make pages`; every sample on it was rendered by `rightcall.render`.

| format | aliases | models |
|---|---|---|
"""
_OWN = """
## A format of your own

A format is data: what surrounds calls, and one body that says how a call is written. As TOML:

~~~toml
name = "mine"                                # a-z, 0-9 and _; no built-in name or alias
section = ["<calls>\\n", "\\n</calls>"]        # around all calls
between = "\\n"                               # between two calls
reasoning = ["<thinking>", "</thinking>"]
ends = ["<|end|>"]                           # end-of-turn tokens
tools = "hermes"                             # how its models are shown tools in a prompt; json if nothing is said

[body]
kind = "params"                              # envelope, namethenjson, params, pythonic, braced or tscall
open = '<use tool="{name}">'
param = '<with key="{key}">'
value_close = "</with>"
close = "</use>"
~~~

A marker is a string, or an array of alternatives of which the first is written. White space at its edge is written and
optional when read. Its holes are `{name} {key} {type} {id} {index} {number}`. A marker has at most 128 characters, the
file at most 64 KB; unknown keys are refused, and nothing in the file is executed.

`rightcall formats check mine.toml` tries the laws on it, `rightcall parse --format-file mine.toml` reads with it, and
in Python `Format.from_toml(text)` gives the value that `format=` takes.

| body | a call | fields |
|---|---|---|
"""
_BODIES = """\
| `envelope` | `{"name": "f", "arguments": {"x": 1}}` | `names`, `args`, `ids`, `wrap`, `write_id`, `outer`, `content` |
| `namethenjson` | `f[ARGS]{"x": 1}` | `open`, `close`, `id` |
| `params` | `<f><x>1</x></f>` | `open`, `param`, `value_close`, `close`, `types`, `item`, `quote`, `empty`, `escapes` |
| `pythonic` | `[f(x=1)]` | `wrap` |
| `braced` | `call:f{x:1}` | `open`, `quote`, `quoted` |
| `tscall` | `f({ x: 1 })` | `labels` |

## Samples
"""


def page() -> str:
    """The whole page."""
    rows = [f"| [{f.name}](#{f.name}) | {', '.join(f.aliases)} | {f.models} |\n" for f in FORMATS.values()]
    return "".join([_HEAD, *rows, _named_only(), _OWN, _BODIES, *map(_section, FORMATS.values())])


def _named_only() -> str:
    names = " and ".join([f"`{name}`" for name in FORMATS if name in NAMED_ONLY])
    return (
        f"\nProse and code look like {names}, so they are read only when named, or with "
        '`rescue="anywhere"`. Else a note\nsays that the text looks like a call.\n'
    )


def _section(format: Format) -> str:
    return f"\n### {format.name}\n\n~~~\n{visible(sample(format)).rstrip()}\n~~~\n"
