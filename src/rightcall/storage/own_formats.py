"""Find and register the formats of the user: TOML files in folders, and entry points of installed packages.

Folders come first, in this order: those in RIGHTCALL_FORMATS, those of the project, those of the user's configuration.
An unusable file is reported and does not affect the others. A file is data; the code of a package is run, as for every
entry point.
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
    """Register the user's formats from TOML files and entry points, which runs the code of the latter. Return an error
    for each file, folder and package that is unusable; nothing is raised for these."""
    faults: list[BadFormat] = []
    for path in _find_toml_files(faults):
        try:
            register(Format.from_toml(_read_beginning(path)))
        except (BadFormat, OSError, UnicodeDecodeError) as error:
            faults.append(BadFormat(f"{path}: {_describe_error(error)}"))
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            register(*_formats_of(point.load()))
        except Exception as error:  # noqa: BLE001 - any error of a package's code is reported and affects no other package
            faults.append(BadFormat(f"{_entry_point_label(point)}: {_describe_error(error)}"))
    return faults


def format_folders(faults: list[BadFormat] | None = None) -> list[Path]:
    """Return the folders and files that exist and are searched for user formats, in order of precedence. Faults, such
    as unreadable settings, are appended to `faults` unless it is None."""
    return [place for place in _candidate_folders([] if faults is None else faults) if place.exists()]


def _candidate_folders(faults: list[BadFormat]) -> Iterator[Path]:
    """Yield the folders to search, existing or not, in order of precedence: those in RIGHTCALL_FORMATS, those of the
    project, that of the user's configuration. A missing folder of RIGHTCALL_FORMATS is appended to `faults` too."""
    for named in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        if not Path(named).exists():
            faults.append(
                BadFormat(f"{VARIABLE} names {named!r}, which does not exist; create the folder, or unset the variable")
            )
        yield Path(named)
    yield from _project_format_folders(faults)
    try:
        config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        yield Path(config, "rightcall", "formats")
    except RuntimeError:  # no home directory
        return


def _project_format_folders(faults: list[BadFormat]) -> Iterator[Path]:
    """Yield the format folders of the working folder and its parents, up to and including the project root, existing or
    not: `.rightcall/formats`, and the folders that rightcall.toml and pyproject.toml list. Unusable settings are
    appended to `faults`."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        yield folder / PROJECT
        yield from _configured_folders(folder / "rightcall.toml", (), faults)
        yield from _configured_folders(folder / "pyproject.toml", ("tool", "rightcall"), faults)
        if any((folder / name).exists() for name in _ROOTS):
            return


def _configured_folders(path: Path, table: tuple[str, ...], faults: list[BadFormat]) -> Iterator[Path]:
    """Yield the folders that the key `formats` lists in a project's TOML file, in the table at the keys `table`,
    relative to the file. None are yielded without the file or the key, or if the file is too large. An unreadable file
    or an invalid list is appended to `faults`."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_PROJECT_FILE:
            return
        settings = tomllib.loads(path.read_text("utf-8"))
        for key in table:
            settings = settings.get(key, {})
        listed = settings.get("formats", [])
    except (OSError, ValueError, AttributeError) as error:
        faults.append(BadFormat(f"{path}: its list of formats cannot be read: {_describe_error(error)}"))
        return
    named = [listed] if isinstance(listed, str) else listed
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        faults.append(BadFormat(f"{path}: `formats` is not a list of folders; write formats = ['my_formats']"))
        return
    for each in named:
        yield path.parent / each


def _find_toml_files(faults: list[BadFormat]) -> Iterator[Path]:
    """Yield the TOML files in all searched folders, each once. Unreadable folders are appended to `faults`."""
    seen: set[Path] = set()
    for place in format_folders(faults):
        try:
            found = [place] if place.is_file() else sorted(place.glob("*.toml"))
        except OSError as error:
            faults.append(BadFormat(f"{place}: {_describe_error(error)}"))
            continue
        for path in found:
            if path.resolve() not in seen:
                seen.add(path.resolve())
                yield path


def _read_beginning(path: Path) -> str:
    """Return the text of a file without its byte order mark. Of a file with more than `MAX_BYTES` only the beginning is
    returned, with the mark; it is still longer than `MAX_BYTES`, which the TOML reader reports. Raises `OSError` or
    `UnicodeDecodeError`."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    return data.decode("utf-8-sig") if len(data) <= MAX_BYTES else data.decode("utf-8", "replace")


def _formats_of(value: object) -> Iterable[Format]:
    """Return the formats that an entry point provides: a `Format`, TOML text, or a list of these. Raises `BadFormat`
    for anything else."""
    if isinstance(value, Format):
        return [value]
    if isinstance(value, str):
        return [Format.from_toml(value)]
    if isinstance(value, list | tuple):
        return [format for each in value for format in _formats_of(each)]
    raise BadFormat(f"it is {type(value).__name__}; give a Format, TOML text, or a list of these")


def _entry_point_label(point: EntryPoint) -> str:
    """Return the name of an entry point and its package, for an error message."""
    package = f" of the package {point.dist.name}" if point.dist is not None else ""
    return f"the entry point {point.name!r}{package}"


def _describe_error(error: Exception) -> str:
    """Return the cause of an error for a message: the text of `BadFormat` or `OSError`, with the type for any other
    error."""
    if isinstance(error, BadFormat):
        return str(error)
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return f"{type(error).__name__}: {error}"
