"""Formats of your own, found where you keep them: TOML files in folders, and entry points of installed packages.

Folders come first, in this order: those of RIGHTCALL_FORMATS, those of the project, those of your configuration. What
cannot be used is told, and keeps nothing else from being registered. A file is data; a package's code is run, as it is
for every entry point.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from rightcall.errors import BadFormat
from rightcall.formats.registered import register
from rightcall.formats.spec import Format
from rightcall.formats.toml import MAX_BYTES

VARIABLE = "RIGHTCALL_FORMATS"
GROUP = "rightcall.formats"
PROJECT = Path(".rightcall", "formats")
_ROOTS = (".git", "pyproject.toml", "rightcall.toml")
_LARGEST_PROJECT_FILE = 1_000_000


def register_found() -> list[BadFormat]:
    """Registers whatever is found. Gives a fault for each file, folder and package that cannot be used."""
    faults: list[BadFormat] = []
    for path in _files(faults):
        try:
            register(Format.from_toml(_text(path)))
        except (BadFormat, OSError, UnicodeDecodeError) as error:
            faults.append(BadFormat(f"{path}: {_reason(error)}"))
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            register(*_formats_of(point.load()))
        except Exception as error:  # noqa: BLE001 - whatever a package's code raises is told, and stops nothing else
            faults.append(BadFormat(f"{_named(point)}: {_reason(error)}"))
    return faults


def format_folders(faults: list[BadFormat] | None = None) -> list[Path]:
    """Where formats of your own are looked for, those that there are."""
    told = [] if faults is None else faults
    return [place for place in _places(told) if place.exists()]


def _places(faults: list[BadFormat]) -> Iterator[Path]:
    for named in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        if not Path(named).exists():
            faults.append(BadFormat(f"{VARIABLE} names {named!r}, and there is no such folder; make it, or unset it"))
        yield Path(named)
    yield from _of_project(faults)
    try:
        config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        yield Path(config, "rightcall", "formats")
    except RuntimeError:  # nobody's home
        return


def _of_project(faults: list[BadFormat]) -> Iterator[Path]:
    """From the working folder up to the first that looks like a project's."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        yield folder / PROJECT
        yield from _configured(folder / "rightcall.toml", (), faults)
        yield from _configured(folder / "pyproject.toml", ("tool", "rightcall"), faults)
        if any((folder / name).exists() for name in _ROOTS):
            return


def _configured(path: Path, table: tuple[str, ...], faults: list[BadFormat]) -> Iterator[Path]:
    """The folders that a project's file lists as `formats`."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_PROJECT_FILE:
            return
        said = tomllib.loads(path.read_text("utf-8"))
        for key in table:
            said = said.get(key, {})
        listed = said.get("formats", [])
    except (OSError, ValueError, AttributeError) as error:
        faults.append(BadFormat(f"{path}: no formats can be looked up in it: {_reason(error)}"))
        return
    named = [listed] if isinstance(listed, str) else listed
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        faults.append(BadFormat(f"{path}: `formats` is no list of folders; write formats = ['my_formats']"))
        return
    for each in named:
        yield path.parent / each


def _files(faults: list[BadFormat]) -> Iterator[Path]:
    seen: set[Path] = set()
    for place in format_folders(faults):
        try:
            found = [place] if place.is_file() else sorted(place.glob("*.toml"))
        except OSError as error:
            faults.append(BadFormat(f"{place}: {_reason(error)}"))
            continue
        for path in found:
            if path.resolve() not in seen:
                seen.add(path.resolve())
                yield path


def _text(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    return data.decode("utf-8-sig")


def _formats_of(value: object) -> Iterable[Format]:
    """What an entry point may be: a format, its TOML, or several of them."""
    if isinstance(value, Format):
        return [value]
    if isinstance(value, str):
        return [Format.from_toml(value)]
    if isinstance(value, list | tuple):
        return [format for each in value for format in _formats_of(each)]
    raise BadFormat(f"it is {type(value).__name__}; give a Format, TOML text, or a list of these")


def _named(point: EntryPoint) -> str:
    package = f" of the package {point.dist.name}" if point.dist is not None else ""
    return f"the entry point {point.name!r}{package}"


def _reason(error: Exception) -> str:
    if isinstance(error, BadFormat):
        return str(error)
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{type(error).__name__}: {error}"
