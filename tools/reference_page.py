"""The page `docs/reference.md`: every public name with its signature and its docstring, read off the package itself."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import msgspec

# Everything that may be imported from. The test of the public names holds it against the package.
MODULES = ("rightcall", *[f"rightcall.{name}" for name in (
    "backends", "datasets", "errors", "formats", "hooks", "masks", "mcp", "messages", "testing", "workspace",
)])  # fmt: skip
_WIDTH = 100
_HEAD = """\
# Reference

Every public name, read off the package itself by `make pages`.

**What you may rely on:** the names on this page, their parameters, and what is said of them here. Parameters behind `*`
are named, never counted. New parameters come with a default that changes nothing; new fields, events, problem codes and
formats may come at any time, so take those that you do not know as unknown and not as errors. Every other module, and
every name that begins with an underscore, may change or go without a word. Until the first release all of this may
still change; the [changelog](../CHANGELOG.md) says what did.

"""


def page() -> str:
    """The whole page."""
    links = "".join(f"- [`{name}`](#{name.replace('.', '')}): {_first_line(_module(name))}\n" for name in MODULES)
    return _HEAD + links + "".join(map(_module_section, MODULES))


def public_names(module: str) -> list[str]:
    """The names of a public module, in alphabetical order."""
    here = _module(module)
    listed = getattr(here, "__all__", None) or [
        name for name, value in vars(here).items() if inspect.isclass(value) and value.__module__ == module
    ]
    return sorted((name for name in listed if not name.startswith("__")), key=str.lower)


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _first_line(value: Any) -> str:
    return (inspect.getdoc(value) or "").partition("\n")[0]


def _module_section(module: str) -> str:
    entries = [_entry(name, getattr(_module(module), name)) for name in public_names(module)]
    return f"\n## {module}\n\n{_prose(_module(module))}\n" + "".join(entries)


def _entry(name: str, value: Any) -> str:
    if inspect.ismodule(value):
        return f"\n### {name}\n\nThe module [`{value.__name__}`](#{value.__name__.replace('.', '')}).\n"
    if inspect.isclass(value):
        return _class(name, value)
    if inspect.isfunction(value):
        return f"\n### {name}\n\n{_signature(name, value)}\n{_prose(value)}\n"
    return f"\n### {name}\n\n{_constant(value)}\n"


def _constant(value: Any) -> str:
    if isinstance(value, dict):
        return f"A table with {len(value)} entries, by name."
    if isinstance(value, frozenset | tuple | list):
        return "One of " + ", ".join(f"`{each}`" for each in sorted(map(str, value))) + "."
    return f"A value of type `{type(value).__name__}`." if not hasattr(value, "__args__") else f"`{_type(str(value))}`"


def _class(name: str, value: type[Any]) -> str:
    parts = [f"\n### {name}\n\n", _signature(name, value), "\n", _prose(value), "\n"]
    return "".join([*parts, *_members(name, value)])


def _members(owner: str, value: type[Any]) -> Iterator[str]:
    for name, member in sorted(vars(value).items()):
        if name.startswith("_") or not _first_line(member):
            continue
        if isinstance(member, property):
            yield f"\n**`{owner}.{name}`** {_inline(member)}\n"
        elif isinstance(member, classmethod | staticmethod) or inspect.isfunction(member):
            function = getattr(member, "__func__", member)
            yield f"\n{_signature(f'{owner}.{name}', function)}\n{_prose(function)}\n"


def _inline(value: Any) -> str:
    return " ".join((inspect.getdoc(value) or "").split())


def _prose(value: Any) -> str:
    """A docstring as Markdown: what is indented in it is an example."""
    text = inspect.getdoc(value) or ""
    if inspect.isclass(value) and (value.__doc__ is None or issubclass(value, msgspec.Struct)):
        text = inspect.cleandoc(value.__dict__.get("__doc__") or "")
    return _fenced(text).rstrip()


def _fenced(text: str) -> str:
    blocks = re.split(r"\n{2,}", text)
    done = []
    for block in blocks:
        is_code = all(line.startswith("    ") for line in block.splitlines() if line)
        done.append(f"~~~pyi\n{textwrap.dedent(block)}\n~~~" if block and is_code else block)
    return "\n\n".join(done).replace("~~~\n\n~~~pyi\n", "\n")


def _signature(name: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    is_async = "async " if inspect.iscoroutinefunction(value) else ""
    parts = list(_parameters(signature))
    result = "" if inspect.isclass(value) or signature.return_annotation is inspect.Parameter.empty else (
        f" -> {_type(signature.return_annotation)}"
    )  # fmt: skip
    line = f"{is_async}{name}({', '.join(parts)}){result}"
    if len(line) > _WIDTH:
        line = f"{is_async}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"
    return f"~~~pyi\n{line}\n~~~\n"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    star = False
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            star = True
            yield "*"
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        yield _parameter(parameter)


def _parameter(parameter: inspect.Parameter) -> str:
    stars = (
        "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    )
    text: str = stars + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {_type(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return text
    default = parameter.default
    shown = (
        "..."
        if isinstance(default, msgspec.Struct) or len(repr(default)) > 40 or " at 0x" in repr(default)
        else repr(default)
    )
    return f"{text} = {shown}" if parameter.annotation is not parameter.empty else f"{text}={shown}"


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:rightcall|typing|collections\.abc|msgspec)(?:\.\w+)*\.(?=\w)", "", text)
