"""Signatures of functions and classes as a person writes them: annotations as in the source, readable defaults."""

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


class Annotation(NamedTuple):
    """An annotation, and the module that its names belong to."""

    text: str
    module: str

    def names(self) -> set[str]:
        """Return the names of types in it."""
        return set(_NAMES.findall(_STRINGS.sub("", self.text)))


def signature(name: str, value: Any) -> str:
    """Return `name(parameters) -> result`, on several lines if it is too long; empty if there is none."""
    if inspect.isclass(value) and getattr(value, "_is_protocol", False):
        return ""
    try:
        inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    is_async = "async " if inspect.iscoroutinefunction(value) else ""
    result_annotation = None if inspect.isclass(value) else result_of(value)
    result = "" if result_annotation is None else f" -> {result_annotation.text}"
    parts = list(_parts(value))
    line = f"{is_async}{name}({', '.join(parts)}){result}"
    if len(line) <= _WIDTH:
        return line
    return f"{is_async}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"


def parameters(value: Any) -> list[inspect.Parameter]:
    """Return what a caller may pass; an empty list if Python does not know."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return []
    return [parameter for parameter in found if parameter.name not in ("self", "cls")]


def annotations_of(value: Any) -> dict[str, Annotation]:
    """Return the annotation of each parameter or field."""
    fields = _fields(value) if inspect.isclass(value) else {}
    found = {}
    for each in parameters(value):
        annotation, module = fields.get(each.name, (each.annotation, value.__module__))
        if annotation is not each.empty:
            found[each.name] = _to_annotation(annotation, module)
    return found


def result_of(function: Any) -> Annotation | None:
    """Return the annotation of the result of a function."""
    found = inspect.signature(function).return_annotation
    return None if found is inspect.Signature.empty else _to_annotation(found, function.__module__)


def look_up(name: str, module: str) -> Any:
    """Return the object of a name in a module, also if it is imported only for the type checker; None if unknown."""
    here = importlib.import_module(module)
    if name in vars(here):
        return vars(here)[name]
    for node in ast.walk(ast.parse(inspect.getsource(here))):
        if isinstance(node, ast.ImportFrom) and node.module and name in [each.name for each in node.names]:
            return getattr(importlib.import_module(node.module), name) if node.module.startswith("rightcall") else None
    return None


def format_annotation(annotation: Any) -> str:
    """Return an annotation without the modules of its names."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _PACKAGES.sub("", text)


def _to_annotation(annotation: Any, module: str) -> Annotation:
    """Replace the names of literal types by their values, which are more useful to readers."""
    result = Annotation(format_annotation(annotation), module)
    for name in result.names():
        value = look_up(name, module)
        if typing.get_origin(value) is typing.Literal:
            result = result._replace(text=re.sub(rf"\b{name}\b", format_annotation(value), result.text))
    return result._replace(text=result.text.replace("'", '"'))


def _fields(kind: type[Any]) -> dict[str, tuple[Any, str]]:
    """Return annotations of fields: a struct's signature has them resolved, without aliases."""
    found: dict[str, tuple[Any, str]] = {}
    if "__init__" not in vars(kind):
        for each in reversed(kind.__mro__):
            own = vars(each).get("__annotations__", {})
            found |= {name: (annotation, each.__module__) for name, annotation in own.items()}
    return found


def _parts(value: Any) -> Iterator[str]:
    annotations, factories, starred = annotations_of(value), _factories(value), False
    for parameter in parameters(value):
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or parameter.kind is parameter.VAR_POSITIONAL
        text = _STARS.get(parameter.kind, "") + parameter.name
        text += f": {annotations[parameter.name].text}" if parameter.name in annotations else ""
        default = factories.get(parameter.name) or _default(parameter.default)
        yield text if parameter.default is parameter.empty else f"{text} = {default}"


def _factories(value: Any) -> Mapping[str, str]:
    """Return defaults of fields that are created for each value."""
    if not (inspect.isclass(value) and issubclass(value, msgspec.Struct)):
        return {}
    fields = msgspec.structs.fields(value)
    factories = {
        field.name: field.default_factory for field in fields if field.default_factory is not msgspec.NODEFAULT
    }
    return {name: repr(factory()) for name, factory in factories.items() if factory in (dict, list, set)}


def _is_plain(value: msgspec.Struct) -> bool:
    """Return whether the value equals its class called without arguments."""
    required = [field for field in msgspec.structs.fields(value) if field.required]
    return not required and value == type(value)()


def _default(value: Any) -> str:
    if inspect.isbuiltin(value):
        return f"{value.__module__}.{value.__name__}"
    if isinstance(value, msgspec.Struct):
        return f"{type(value).__name__}()" if _is_plain(value) else "..."
    text = repr(value)
    return "..." if len(text) > _LONGEST_DEFAULT or " at 0x" in text else text.replace("'", '"')
