"""What Python knows of a function: its parameters with resolved types, its name, and its docstring's parts.

Docstrings are read in Google, NumPy and Sphinx style; text outside the known sections is the description.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from rightcall.schema.limits import Refused
from rightcall.tools.intake import unresolved
from rightcall.tools.value_types import allows_none

_PARAMETERS = {
    *("args", "arguments", "parameters", "params", "attributes"),
    *("keyword args", "keyword arguments", "other parameters", "other args", "other arguments"),
}
_RESULTS = {"returns", "return", "yields", "yield", "raises", "raise", "receives", "warns"}

_HEADER = re.compile(r"([A-Za-z][A-Za-z ]{0,30}):?\s*").fullmatch
_RULE = re.compile(r"\s*-{3,}\s*").fullmatch
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(?P<names>[\w.]++)\s*+(?:\([^\n]*?\)\s*+)?:(?:\s++(?P<text>.*+))?").fullmatch
_NUMPY_ENTRY = re.compile(r"\*{0,2}(?P<names>\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?").fullmatch
_FIELD = re.compile(r"[:@](?P<field>\w+)(?P<argument>[^:\n]*):(?:\s+(?P<text>.*))?").fullmatch
_PARAMETER_FIELDS = {"param", "parameter", "arg", "argument", "key", "keyword", "kwarg", "var", "ivar", "attr"}
_FIELDS = _PARAMETER_FIELDS | {"return", "returns", "rtype", "type", "raise", "raises", "except", "yield", "yields"}


Entry = Callable[[str], re.Match[str] | None]


class Docs(NamedTuple):
    description: str
    parameters: dict[str, str]


def read_docstring(text: str | None) -> Docs:
    """Never raises: what is in no known style is description."""
    lines = inspect.cleandoc(text or "").splitlines()
    kept: list[str] = []
    found: dict[str, str] = {}
    at = 0
    while at < len(lines):
        at = _field(lines, at, found) or _section(lines, at, found) or _keep(lines, at, kept)
    return Docs(re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), {key: text for key, text in found.items() if text})


def _keep(lines: list[str], at: int, kept: list[str]) -> int:
    kept.append(lines[at])
    return at + 1


def _field(lines: list[str], at: int, found: dict[str, str]) -> int:
    """A Sphinx field, `:param int city: Where.`; gives the line after it, or 0."""
    match = _FIELD(lines[at])
    if match is None or match["field"] not in _FIELDS:
        return 0
    end = at + 1
    while end < len(lines) and lines[end][:1] in (" ", "\t"):
        end += 1
    if match["field"] in _PARAMETER_FIELDS and match["argument"].split():
        found.setdefault(match["argument"].split()[-1].lstrip("*"), _join([match["text"] or "", *lines[at + 1 : end]]))
    return end


def _section(lines: list[str], at: int, found: dict[str, str]) -> int:
    """A Google or NumPy section; gives the line after it, or 0."""
    match = _HEADER(lines[at])
    title = match[1].strip().lower() if match else ""
    if title not in _PARAMETERS and title not in _RESULTS:
        return 0
    if at + 1 < len(lines) and _RULE(lines[at + 1]):
        return _numpy(lines, at + 2, found if title in _PARAMETERS else {})
    if lines[at].rstrip().endswith(":"):
        return _google(lines, at + 1, found if title in _PARAMETERS else {})
    return 0


def _google(lines: list[str], at: int, found: dict[str, str]) -> int:
    """The indented lines of a section. An entry starts at the indentation of the first."""
    end = at
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > 0):
        end += 1
    body = [line for line in lines[at:end] if line.strip()]
    _entries(body, _indent(body[0]) if body else 0, _GOOGLE_ENTRY, found)
    return end


def _numpy(lines: list[str], at: int, found: dict[str, str]) -> int:
    """The lines up to the next underlined title. An entry starts without indentation."""
    end = at
    while end < len(lines) and not (end + 1 < len(lines) and lines[end].strip() and _RULE(lines[end + 1])):
        end += 1
    _entries([line for line in lines[at:end] if line.strip()], 0, _NUMPY_ENTRY, found)
    return end


def _entries(body: list[str], margin: int, entry: Entry, found: dict[str, str]) -> None:
    names: list[str] = []
    texts: dict[str, list[str]] = {}
    for line in body:
        match = entry(line.strip()) if _indent(line) == margin else None
        if match is not None:
            names = [name.strip().lstrip("*") for name in match["names"].split(",")]
            for name in names:
                texts[name] = [match.groupdict().get("text") or ""]
        else:
            for name in names:
                texts[name].append(line)
    for name, parts in texts.items():
        found.setdefault(name, _join(parts))


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _join(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines if line.strip())


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters a model may fill in, with their types resolved."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise Refused("", f"{label_of(function)} has no signature", "wrap it in a function that has one") from error
    fixed = _fixed(function)
    shown = {key: parameter for key, parameter in signature.parameters.items() if key not in fixed}
    hints = _hints(function)
    for at, (key, parameter) in enumerate(shown.items()):
        if parameter.kind is parameter.VAR_POSITIONAL:
            cause = f"{label_of(function)} takes *{key}, and a model names its arguments"
            raise Refused("", cause, f"declare a parameter that is a list, {key}: list[...]")
        if at == 0 and key in ("self", "cls") and is_in_class_body(function):
            raise Refused(
                "", f"{label_of(function)} is a method without its object", "pass it from an instance: obj.method"
            )
    return {key: _typed(parameter, hints.get(key, Any)) for key, parameter in shown.items()}


def _typed(parameter: inspect.Parameter, hint: Any) -> inspect.Parameter:
    if parameter.default is None and not allows_none(hint):
        hint = hint | None
    return parameter.replace(annotation=hint)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(annotated_function(function), include_extras=True)
    except NameError as error:
        raise unresolved(label_of(function), error) from error
    except TypeError as error:
        raise Refused(
            "", f"an annotation of {label_of(function)} is no type: {error}", "annotate with a type"
        ) from error


def annotated_function(function: Callable[..., Any]) -> Any:
    """The function that carries the annotations: behind a partial, or the `__call__` of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _fixed(function: Callable[..., Any]) -> set[str]:
    """What a partial has filled in already is not the model's to say."""
    found: set[str] = set()
    while isinstance(function, functools.partial):
        found |= function.keywords.keys()
        function = function.func
    return found


def name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    if name == "<lambda>":
        raise Refused("", "a lambda has no name", "give it one: tool(function, name=...)")
    return str(name)


def docstring_of(function: Any) -> str | None:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.getdoc(function if inspect.isroutine(function) else type(function).__call__) or inspect.getdoc(
        function
    )


def label_of(function: Any) -> str:
    function = annotated_function(function) if isinstance(function, functools.partial) else function
    return f"{getattr(function, '__qualname__', type(function).__qualname__)}()"


def is_in_class_body(function: Any) -> bool:
    """Was it defined in a class and not bound to an object since?"""
    outer = getattr(function, "__qualname__", "").rpartition(".")[0]
    return inspect.isfunction(function) and bool(outer) and not outer.endswith("<locals>")
