"""The page `docs/reference.md`: every public name with its signature and docstring, read from the package itself."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from signatures import Annotation, annotations_of, format_annotation, look_up, result_of, signature

# All public modules. The test of the public names compares the list with the package.
MODULES = ("rightcall", *[f"rightcall.{name}" for name in (
    "backends", "datasets", "errors", "formats", "guard", "hooks", "loop", "masks", "mcp", "messages", "testing",
    "workspace",
)])  # fmt: skip
OTHERS = "Other types"
BAR = "\\|"  # a bar inside a table cell
_CONSTANTS = {
    "FORMATS": "Every format by its name.",
    "ALIASES": "The name of the format that each alias stands for.",
    "NAMED_ONLY": "Formats that are read only when they are named, not by `auto`:",
    "LAWS": "Every law that `check_format` tries, by its name.",
    "NAMES": "The names of the five tools:",
}
_HEAD = """\
# Reference

Every public name, read off the package itself by `make pages`.

**What you may rely on:** the names on this page, their parameters, and what is said of them here. Parameters behind `*`
are named, never counted. New parameters come with a default that changes nothing; new fields, events, problem codes and
formats may come at any time, so take those that you do not know as unknown and not as errors. Every other module, and
every name that begins with an underscore, may change or go without a word. Until the first release all of this may
still change; the [changelog](../CHANGELOG.md) says what did.

**Calls are counted in two ways.** In data (`Problem.call`, `CallStart.index`, the JSON of replies and traces) a call
has the index it has in `Reply.attempts`, which begins with 0. Where people read (`rightcall parse`, `str(trace)`) the
first call is call 1.

**An API has one name**: `chat`, `responses`, `messages`, `gemini`, `ollama` or `completions`. Where one is asked for,
the names that people know it by will do too:
{aliases}.

"""
_OTHERS_HEAD = f"""
## {OTHERS}

Names that stand in the signatures above. Such values are given to you, or may be passed; their classes are not imported
from anywhere that stays, and what is said of them here may be relied on.
"""


def page() -> str:
    """Return the whole page."""
    others = other_types()
    aliases = {name: value for name, value in others.items() if not inspect.isclass(value)}
    classes = {name: value for name, value in others.items() if inspect.isclass(value)}
    links = [f"- [`{name}`](#{_anchor(name)}): {_first_line(_module(name))}\n" for name in MODULES]
    links.append(f"- [{OTHERS}](#{_anchor(OTHERS)}): what else stands in signatures.\n")
    sections = [_module_section(name) for name in MODULES]
    ends = [_OTHERS_HEAD, *_table(aliases), *[_class(name, value) for name, value in classes.items()]]
    return _with_anchors("".join([_HEAD.format(aliases=_api_aliases()), *links, *sections, *ends]))


def public_names(module: str) -> list[str]:
    """Return the names of a public module, in alphabetical order."""
    module_object = _module(module)
    names_listed = getattr(module_object, "__all__", None) or [
        name for name, value in vars(module_object).items() if inspect.isclass(value) and value.__module__ == module
    ]
    return sorted((name for name in names_listed if not name.startswith("__")), key=lambda name: (name.lower(), name))


def functions_of(value: type[Any]) -> dict[str, Any]:
    """Return the public methods and property getters of a class, including those of bases that are not public."""
    found: dict[str, Any] = {}
    for each in value.__mro__:
        if each is value or (each.__module__.startswith("rightcall") and not _is_public(each)):
            found = {name: member for name, member in vars(each).items() if not name.startswith("_")} | found
    plain = {name: getattr(member, "fget", None) or getattr(member, "func", None) or getattr(member, "__func__", member)
             for name, member in found.items()}  # fmt: skip
    return {name: function for name, function in sorted(plain.items()) if inspect.isfunction(function)}


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _first_line(value: Any) -> str:
    return (inspect.getdoc(value) or "").partition("\n")[0]


def _api_aliases() -> str:
    from rightcall.api_names import ALIASES

    names = {
        api: [f"`{name}`" for name, names_of_api in ALIASES.items() if names_of_api == api] for api in ALIASES.values()
    }
    return ";\n".join(f"{', '.join(names_of_api)} for `{api}`" for api, names_of_api in names.items())


def _is_public(value: Any) -> bool:
    return any(getattr(_module(module), value.__name__, None) is value for module in MODULES)


# -- entries -----------------------------------------------------------------------------------------------------------


def _module_section(module: str) -> str:
    names = public_names(module)
    links = "\n".join(_links(module, names))
    entries = [_entry(name, getattr(_module(module), name)) for name in names if _home(module, name) == module]
    return f"\n## {module}\n\n{_prose(_module(module))}\n\n{links}\n" + "".join(entries)


def _links(module: str, names: list[str]) -> Iterator[str]:
    kinds: dict[str, list[str]] = {"Functions": [], "Classes": [], "And": []}
    for name in names:
        value = getattr(_module(module), name)
        kind = "Functions" if inspect.isfunction(value) else "Classes" if inspect.isclass(value) else "And"
        kinds[kind].append(f"[`{name}`](#@{_home(module, name)}.{name})")
    yield from (f"- {kind}: {', '.join(links)}" for kind, links in kinds.items() if links)


def _home(module: str, name: str) -> str:
    """Return the first public module with this object: it is documented there, and linked from the others."""
    value = getattr(_module(module), name)
    return next(each for each in MODULES if getattr(_module(each), name, None) is value or each == module)


def _entry(name: str, value: Any) -> str:
    if inspect.ismodule(value):
        return f"\n### {name}\n\nThe module [`{value.__name__}`](#{_anchor(value.__name__)}).\n"
    if inspect.isclass(value):
        return _class(name, value)
    if inspect.isfunction(value):
        return f"\n### {name}\n\n{_code(signature(name, value))}{_prose(value)}\n"
    return f"\n### {name}\n\n{_constant(name, value)}\n"


def _constant(name: str, value: Any) -> str:
    about = _CONSTANTS.get(name, "")
    if isinstance(value, dict):
        return f"{about} {len(value)} entries."
    if isinstance(value, frozenset | tuple):
        each = value if isinstance(value, tuple) else sorted(value)
        return f"{about} {', '.join(f'`{one}`' for one in each)}."
    return f"`{value!r}`" if isinstance(value, str) else f"Stands for `{format_annotation(value)}`."


def _table(aliases: dict[str, Any]) -> Iterator[str]:
    """Yield a table of the aliases, each expressed by other aliases where possible."""
    texts = {name: format_annotation(value) for name, value in aliases.items()}
    yield "\n| name | stands for |\n|---|---|\n"
    for name, text in texts.items():
        for other, inner in sorted(texts.items(), key=lambda each: -len(each[1])):
            text = re.sub(rf"{re.escape(inner)}(?!\w)", other, text) if other != name else text
        yield f"| `{name}` | `{text.replace('|', BAR)}` |\n"


def _class(name: str, value: type[Any]) -> str:
    head = f"\n### {name}\n\n{_code(signature(name, value))}{_prose(value)}\n"
    return "".join([head, *_members(name, value), _inherited(value)])


def _members(owner: str, value: type[Any]) -> Iterator[str]:
    for name, function in functions_of(value).items():
        if isinstance(inspect.getattr_static(value, name), classmethod | staticmethod) or _is_method(value, name):
            yield f"\n{_code(signature(f'{owner}.{name}', function))}{_prose(function)}\n"
        else:
            yield f"\n**`{owner}.{name}`** {' '.join(_doc(function).split())}\n"


def _is_method(value: type[Any], name: str) -> bool:
    return inspect.isfunction(inspect.getattr_static(value, name))


def _inherited(value: type[Any]) -> str:
    """Return the members that a public class has from a public base, which documents them."""
    own = functions_of(value)
    lines = []
    for base in value.__mro__[1:]:
        names = [f"`{name}`" for name in functions_of(base) if name not in own] if _is_rightcall(base) else []
        if names and _is_public(base):
            home = next(module for module in MODULES if getattr(_module(module), base.__name__, None) is base)
            lines.append(f"\nFrom [`{base.__name__}`](#@{home}.{base.__name__}): {', '.join(names)}.\n")
            own |= functions_of(base)
    return "".join(lines)


def _is_rightcall(value: Any) -> bool:
    return inspect.isclass(value) and value.__module__.partition(".")[0] == "rightcall"


# -- types that are not public -----------------------------------------------------------------------------------------


def other_types() -> dict[str, Any]:
    """Return types that are not public but appear in public signatures: aliases, and classes of returned values."""
    public = {name for module in MODULES for name in public_names(module)}
    found: dict[str, Any] = {}
    for value in _public_values():
        for annotation, is_given in _annotations(value):
            for name in annotation.names() - public:
                other = look_up(name, annotation.module)
                if _is_alias(other) or (is_given and _is_rightcall(other)):
                    found |= {name: other, **{each.__name__: each for each in _classes(other)}}
    return {name: found[name] for name in sorted(found.keys() - public)}


def _public_values() -> Iterator[Any]:
    for module in MODULES:
        for name in public_names(module):
            value = getattr(_module(module), name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield value
            if inspect.isclass(value):
                yield from functions_of(value).values()


def _annotations(value: Any) -> Iterator[tuple[Annotation, bool]]:
    """Yield every annotation, and whether its value is given to the caller: a result, or a field of a value."""
    is_value = inspect.isclass(value) and "__init__" not in vars(value)
    yield from ((annotation, is_value) for annotation in annotations_of(value).values())
    if not inspect.isclass(value) and (result := result_of(value)) is not None:
        yield result, True


def _classes(alias: Any) -> Iterator[Any]:
    """Yield the classes of the package in an alias."""
    for each in getattr(alias, "__args__", ()):
        yield from [each] if _is_rightcall(each) else _classes(each)


def _is_alias(value: Any) -> bool:
    return hasattr(value, "__args__") and not inspect.isclass(value)


# -- text --------------------------------------------------------------------------------------------------------------


def _code(text: str) -> str:
    return f"~~~pyi\n{text}\n~~~\n\n" if text else ""


def _doc(value: Any) -> str:
    """Return the docstring as written. A module's has no indentation to remove, and inherited ones do not count."""
    text = value.__dict__.get("__doc__") if inspect.isclass(value) else value.__doc__
    return (text or "").strip() if inspect.ismodule(value) else inspect.cleandoc(text or "")


def _prose(value: Any) -> str:
    """Convert a docstring to Markdown: an indented block is an example."""
    blocks = []
    for block in re.split(r"\n{2,}", _doc(value)):
        is_code = all(line.startswith("    ") for line in block.splitlines() if line)
        blocks.append(_code(textwrap.dedent(block)).rstrip() if block and is_code else block)
    return "\n\n".join(blocks).replace("~~~\n\n~~~pyi\n", "\n").rstrip()


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _with_anchors(text: str) -> str:
    """Replace links to `#@module.name` by the anchors of the headings; duplicate slugs get a number."""
    slug_counts: dict[str, int] = {}
    anchors: dict[str, str] = {}
    module = ""
    for level, heading in re.findall(r"(?m)^(##+) (.+)$", text):
        slug = _anchor(heading)
        anchor = f"{slug}-{slug_counts[slug]}" if slug in slug_counts else slug
        slug_counts[slug] = slug_counts.get(slug, 0) + 1
        module = heading if level == "##" else module
        anchors[f"{module}.{heading}"] = anchor
    return re.sub(r"#@([\w.]+)", lambda link: f"#{anchors[link[1]]}", text)
