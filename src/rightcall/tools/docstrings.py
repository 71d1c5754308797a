"""What a docstring says of a function and of its parameters, in Google, NumPy or Sphinx style.

    Args:                      Parameters                  :param city: Where.
        city (str): Where.     ----------
                               city : str
                                   Where.

The description is what is left when the sections on parameters, results and exceptions are taken out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import NamedTuple

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
