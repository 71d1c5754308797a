"""Signatures of functions: parameters with resolved types, names, and parsed docstrings.

Docstrings are parsed in Google, NumPy and Sphinx style; text outside the known sections is the description.
"""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from rightcall.schema.limits import Refused
from rightcall.tools.argument_reader import unresolved_annotation
from rightcall.tools.value_types import allows_none

_PARAMETERS = {
    *("args", "arguments", "parameters", "params", "attributes"),
    *("keyword args", "keyword arguments", "other parameters", "other args", "other arguments"),
}
_RESULTS = {"returns", "return", "yields", "yield", "raises", "raise", "receives", "warns"}

_HEADER = re.compile(r"([A-Za-z][A-Za-z ]{0,30}):?\s*").fullmatch
_UNDERLINE = re.compile(r"\s*-{3,}\s*").fullmatch
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(?P<names>[\w.]++)\s*+(?:\([^\n]*?\)\s*+)?:(?:\s++(?P<text>.*+))?").fullmatch
_NUMPY_ENTRY = re.compile(r"\*{0,2}(?P<names>\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?").fullmatch
_FIELD = re.compile(r"[:@](?P<field>\w+)(?P<argument>[^:\n]*):(?:\s+(?P<text>.*))?").fullmatch
_PARAMETER_FIELDS = {"param", "parameter", "arg", "argument", "key", "keyword", "kwarg", "var", "ivar", "attr"}
_FIELDS = _PARAMETER_FIELDS | {"return", "returns", "rtype", "type", "raise", "raises", "except", "yield", "yields"}


Entry = Callable[[str], re.Match[str] | None]


class ParsedDocstring(NamedTuple):
    """A docstring's description, and the description of each parameter."""

    description: str
    parameters: dict[str, str]


def read_docstring(text: str | None) -> ParsedDocstring:
    """Parse a docstring in Google, NumPy or Sphinx style. Never raises. Sections and fields of results and exceptions
    (Returns, Yields, Raises ...) are dropped, as are parameters without a text; all other text, such as Examples, is
    the description."""
    lines = inspect.cleandoc(text or "").splitlines()
    kept: list[str] = []
    found: dict[str, str] = {}
    at = 0
    while at < len(lines):
        at = _read_field(lines, at, found) or _read_section(lines, at, found) or _keep_line(lines, at, kept)
    return ParsedDocstring(
        re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), {key: text for key, text in found.items() if text}
    )


def _keep_line(lines: list[str], at: int, kept: list[str]) -> int:
    """Append the line at index `at` to `kept`, the lines of the description, and return the index of the next line."""
    kept.append(lines[at])
    return at + 1


def _read_field(lines: list[str], at: int, found: dict[str, str]) -> int:
    """Parse a Sphinx field such as `:param int city: Where.` at index `at`, with its indented lines, and add a
    parameter's text to `found` unless it has one. Return the index of the line after the field, or 0 if there is
    none."""
    match = _FIELD(lines[at])
    if match is None or match["field"] not in _FIELDS:
        return 0
    end = at + 1
    while end < len(lines) and lines[end][:1] in (" ", "\t"):
        end += 1
    if match["field"] in _PARAMETER_FIELDS and match["argument"].split():
        found.setdefault(
            match["argument"].split()[-1].lstrip("*"), _join_lines([match["text"] or "", *lines[at + 1 : end]])
        )
    return end


def _read_section(lines: list[str], at: int, found: dict[str, str]) -> int:
    """Parse a Google or NumPy section whose title is at index `at`; those of parameters add their texts to `found`,
    those of results and exceptions are skipped. Return the index of the line after it, or 0 if there is none."""
    match = _HEADER(lines[at])
    title = match[1].strip().lower() if match else ""
    if title not in _PARAMETERS and title not in _RESULTS:
        return 0
    if at + 1 < len(lines) and _UNDERLINE(lines[at + 1]):
        return _read_numpy_section(lines, at + 2, found if title in _PARAMETERS else {})
    if lines[at].rstrip().endswith(":"):
        return _read_google_section(lines, at + 1, found if title in _PARAMETERS else {})
    return 0


def _read_google_section(lines: list[str], at: int, found: dict[str, str]) -> int:
    """Parse the indented lines from index `at` on, the body of a Google section, and add the text of each entry to
    `found`; an entry starts at the indentation of the first. Return the index of the line after them."""
    end = at
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > 0):
        end += 1
    body = [line for line in lines[at:end] if line.strip()]
    _read_entries(body, _indent(body[0]) if body else 0, _GOOGLE_ENTRY, found)
    return end


def _read_numpy_section(lines: list[str], at: int, found: dict[str, str]) -> int:
    """Parse the lines from index `at` up to the next underlined title, the body of a NumPy section, and add the text of
    each entry to `found`; an entry starts without indentation. Return the index of the line after them."""
    end = at
    while end < len(lines) and not (end + 1 < len(lines) and lines[end].strip() and _UNDERLINE(lines[end + 1])):
        end += 1
    _read_entries([line for line in lines[at:end] if line.strip()], 0, _NUMPY_ENTRY, found)
    return end


def _read_entries(body: list[str], margin: int, entry: Entry, found: dict[str, str]) -> None:
    """Parse the lines `body` of a docstring section and add the text of each entry to `found`, by name; a name that has
    one keeps it. A line with the indentation `margin` that the pattern `entry` matches starts an entry, of one or
    several names; any other line continues one."""
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
        found.setdefault(name, _join_lines(parts))


def _indent(line: str) -> int:
    """Return the number of white space characters before a line's text."""
    return len(line) - len(line.lstrip())


def _join_lines(lines: list[str]) -> str:
    """Return the lines, stripped and without blank ones, joined by spaces."""
    return " ".join(line.strip() for line in lines if line.strip())


def resolve_parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters that a model may fill in, with resolved types; those that a partial fixed are left out. A
    parameter without an annotation gets `Any`, and one with the default None also takes null.

    Raises `Refused` for `*args`, a method without its object, and annotations that cannot be resolved.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise Refused(
            "", f"{function_label(function)} has no signature", "wrap it in a function that has one"
        ) from error
    fixed = _partial_keywords(function)
    shown = {key: parameter for key, parameter in signature.parameters.items() if key not in fixed}
    hints = _resolve_hints(function)
    for at, (key, parameter) in enumerate(shown.items()):
        if parameter.kind is parameter.VAR_POSITIONAL:
            cause = f"{function_label(function)} takes *{key}, and a model names its arguments"
            raise Refused("", cause, f"declare a parameter that is a list, {key}: list[...]")
        if at == 0 and key in ("self", "cls") and is_in_class_body(function):
            raise Refused(
                "", f"{function_label(function)} is a method without its object", "pass it from an instance: obj.method"
            )
    return {key: _with_hint(parameter, hints.get(key, Any)) for key, parameter in shown.items()}


def _with_hint(parameter: inspect.Parameter, hint: Any) -> inspect.Parameter:
    """Return a copy of the parameter with the annotation `hint`, which is extended by None if that is the default and
    not included."""
    if parameter.default is None and not allows_none(hint):
        hint = hint | None
    return parameter.replace(annotation=hint)


def _resolve_hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function by name, resolved, with the notes of `Annotated`. Raises `Refused` if one
    cannot be resolved or is no type."""
    try:
        return typing.get_type_hints(annotated_function(function), include_extras=True)
    except NameError as error:
        raise unresolved_annotation(function_label(function), error) from error
    except TypeError as error:
        raise Refused(
            "", f"an annotation of {function_label(function)} is no type: {error}", "annotate with a type"
        ) from error


def annotated_function(function: Callable[..., Any]) -> Any:
    """Return the function that has the annotations: for a partial the one inside, for an object that is no function its
    type's `__call__`."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _partial_keywords(function: Callable[..., Any]) -> set[str]:
    """Return the names of the parameters that a partial, or a partial of partials, has fixed by keyword."""
    found: set[str] = set()
    while isinstance(function, functools.partial):
        found |= function.keywords.keys()
        function = function.func
    return found


def function_name(function: Any) -> str:
    """Return the name of a function, of the one inside a partial, or of a callable object's class. Raises `Refused` for
    a lambda."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    if name == "<lambda>":
        raise Refused("", "a lambda has no name", "give it one: tool(function, name=...)")
    return str(name)


def function_docstring(function: Any) -> str | None:
    """Return the cleaned docstring of a function, or of a callable object's `__call__` or class; None if there is
    none."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.getdoc(function if inspect.isroutine(function) else type(function).__call__) or inspect.getdoc(
        function
    )


def function_label(function: Any) -> str:
    """Return the name of a function for messages: its qualified name with `()`; for a partial that of the function
    inside, for an object that of its class."""
    function = annotated_function(function) if isinstance(function, functools.partial) else function
    return f"{getattr(function, '__qualname__', type(function).__qualname__)}()"


def is_in_class_body(function: Any) -> bool:
    """Return True for a function that was defined in a class and is not bound to an object, a static method too. A
    class inside a function counts."""
    outer = getattr(function, "__qualname__", "").rpartition(".")[0]
    return inspect.isfunction(function) and bool(outer) and not outer.endswith("<locals>")
