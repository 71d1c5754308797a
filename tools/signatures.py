"""What a function or class takes, as one would write it: annotations as the source has them, defaults that read."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

_WIDTH = 100
_LONGEST_DEFAULT = 40
_PACKAGES = re.compile(r"\b(?:rightcall|typing|collections\.abc|msgspec)(?:\.\w+)*\.(?=\w)")
_NAMES = re.compile(r"(?<![\w.'\"])[A-Z]\w+")
_STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
_STRINGS = re.compile(r"'[^']*'|\"[^\"]*\"")


class Said(NamedTuple):
    """An annotation, and the module in which its names have their meaning."""

    text: str
    module: str

    def names(self) -> set[str]:
        """The names of types that stand in it."""
        return set(_NAMES.findall(_STRINGS.sub("", self.text)))


def signature(name: str, value: Any) -> str:
    """`name(parameters) -> result`, over several lines where one is too long; empty where there is none to show."""
    if inspect.isclass(value) and getattr(value, "_is_protocol", False):
        return ""
    try:
        inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    is_async = "async " if inspect.iscoroutinefunction(value) else ""
    given = None if inspect.isclass(value) else result_of(value)
    result = "" if given is None else f" -> {given.text}"
    parts = list(_parts(value))
    line = f"{is_async}{name}({', '.join(parts)}){result}"
    if len(line) <= _WIDTH:
        return line
    return f"{is_async}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"


def parameters(value: Any) -> list[inspect.Parameter]:
    """What a caller may pass; empty where Python does not know."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    return [parameter for parameter in found if parameter.name not in ("self", "cls")]


def annotations_of(value: Any) -> dict[str, Said]:
    """The annotation of each parameter or field."""
    fields = _fields(value) if inspect.isclass(value) else {}
    found = {}
    for each in parameters(value):
        annotation, module = fields.get(each.name, (each.annotation, value.__module__))
        if annotation is not each.empty:
            found[each.name] = _said(annotation, module)
    return found


def result_of(function: Any) -> Said | None:
    """The annotation of what a function gives."""
    found = inspect.signature(function).return_annotation
    return None if found is inspect.Signature.empty else _said(found, function.__module__)


def look_up(name: str, module: str) -> Any:
    """What a name stands for in a module, also where it is imported for the type checker alone; None if unknown."""
    here = importlib.import_module(module)
    if name in vars(here):
        return vars(here)[name]
    for node in ast.walk(ast.parse(inspect.getsource(here))):
        if isinstance(node, ast.ImportFrom) and node.module and name in [each.name for each in node.names]:
            return getattr(importlib.import_module(node.module), name) if node.module.startswith("rightcall") else None
    return None


def written(annotation: Any) -> str:
    """An annotation without the modules that its names live in."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _PACKAGES.sub("", text)


def _said(annotation: Any, module: str) -> Said:
    """Names for a few words are spelled out: a reader wants the words."""
    said = Said(written(annotation), module)
    for name in said.names():
        value = look_up(name, module)
        if typing.get_origin(value) is typing.Literal:
            said = said._replace(text=re.sub(rf"\b{name}\b", written(value), said.text))
    return said._replace(text=said.text.replace("'", '"'))


def _fields(kind: type[Any]) -> dict[str, tuple[Any, str]]:
    """Annotations of fields: a struct's signature has them resolved, with every alias spelled out."""
    found: dict[str, tuple[Any, str]] = {}
    if "__init__" not in vars(kind):
        for each in reversed(kind.__mro__):
            own = vars(each).get("__annotations__", {})
            found |= {name: (annotation, each.__module__) for name, annotation in own.items()}
    return found


def _parts(value: Any) -> Iterator[str]:
    said, factories, starred = annotations_of(value), _factories(value), False
    for parameter in parameters(value):
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        text = _STARS.get(parameter.kind, "") + parameter.name
        text += f": {said[parameter.name].text}" if parameter.name in said else ""
        default = factories.get(parameter.name) or _default(parameter.default)
        yield text if parameter.default is parameter.empty else f"{text} = {default}"


def _factories(value: Any) -> Mapping[str, str]:
    """Defaults of fields that are made anew for each value."""
    if not (inspect.isclass(value) and issubclass(value, msgspec.Struct)):
        return {}
    fields = msgspec.structs.fields(value)
    made = {field.name: field.default_factory for field in fields if field.default_factory is not msgspec.NODEFAULT}
    return {name: repr(factory()) for name, factory in made.items() if factory in (dict, list, set)}


def _is_plain(value: msgspec.Struct) -> bool:
    """Is it what its class makes of nothing?"""
    needed = [field for field in msgspec.structs.fields(value) if field.required]
    return not needed and value == type(value)()


def _default(value: Any) -> str:
    if inspect.isbuiltin(value):
        return f"{value.__module__}.{value.__name__}"
    if isinstance(value, msgspec.Struct):
        return f"{type(value).__name__}()" if _is_plain(value) else "..."
    shown = repr(value)
    return "..." if len(shown) > _LONGEST_DEFAULT or " at 0x" in shown else shown.replace("'", '"')
