"""The page `docs/formats.md`, generated from the formats themselves, so that it is always correct."""

from __future__ import annotations

from format_fields import section
from rightcall.cli.formats_command import render_sample
from rightcall.formats import FORMATS, NAMED_ONLY
from rightcall.formats.spec import Format
from rightcall.safe_text import visible

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
optional when read. Its holes are `{name} {key} {type} {id} {index} {number}` (index counts calls from 0, number from
1). A pair is an array of two markers: what opens and what closes. A marker has at most 128 characters, the file at most
64 KB; unknown keys are refused, and nothing in the file is executed.

`rightcall formats NAME --toml` writes any format out to start from, `rightcall formats detect TEMPLATE` drafts one from
a model's chat template, and `rightcall formats check mine.toml` tries the laws on it. Every command that takes
`--format` takes `--format-file mine.toml` too, and in Python `Format.from_toml(text)` gives the value that `format=`
takes.

### Known by name, and to `auto`

A file in one of these folders, its name ending in `.toml`, is registered whenever a command needs formats; `rightcall
formats` lists it, and `--format`, `auto` and `detect` know it:

1. the folders, or files, that the variable `RIGHTCALL_FORMATS` lists, with `:` between them (`;` on Windows);
2. `.rightcall/formats` in the working folder or above it, up to the first folder with a `.git`, a `pyproject.toml` or a
   `rightcall.toml`; and the folders that such a file names: `formats = ["my_formats"]`, in `pyproject.toml` under
   `[tool.rightcall]`;
3. `rightcall/formats` in `$XDG_CONFIG_HOME`, or in `~/.config`.

A package registers formats with an entry point of the group `rightcall.formats`, whose value is a `Format`, TOML text,
or a list of these:

~~~toml
[project.entry-points."rightcall.formats"]
mine = "my_package.formats:MINE"
~~~

A built-in name or alias cannot be taken, and of two files with the same name the first counts. What cannot be used is
told on standard error with its file, key and cure, and keeps nothing else from working. In Python nothing is looked for
unless you ask for it:

```python
from rightcall import Format, formats, parse

formats.discover()  # what the command does; gives what cannot be used
formats.register(Format.from_toml('name = "mine"\\ncall = ["<c>", "</c>"]\\nbody = { kind = "envelope" }'))
print(parse('<c>{"name": "f", "arguments": {}}</c>').format)
formats.unregister("mine")
```
```text
mine
```

## Every key of a format file
"""


def page() -> str:
    """Return the whole page."""
    rows = [f"| [{f.name}](#{f.name}) | {', '.join(f.aliases)} | {f.models} |\n" for f in FORMATS.values()]
    return "".join([_HEAD, *rows, _named_only(), _OWN, section(), "\n## Samples\n", *map(_section, FORMATS.values())])


def _named_only() -> str:
    names = " and ".join([f"`{name}`" for name in FORMATS if name in NAMED_ONLY])
    return (
        f"\nProse and code look like {names}, so they are read only when named. Else a note\n"
        "says that the text looks like a call.\n"
    )


def _section(format: Format) -> str:
    return f"\n### {format.name}\n\n~~~\n{visible(render_sample(format)).rstrip()}\n~~~\n"
