"""The formats that are known: the built-in ones and those that were registered. Built-in names cannot be taken.

    register(Format.from_toml(text))     # from now on `auto` and `format="mine"` know it

A `KnownFormats` never changes: registering makes a new one, so that whoever reads by one goes on by it, in any thread.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec

from rightcall.errors import BadFormat, UnknownFormat
from rightcall.formats.builtin import ALIASES, FORMATS
from rightcall.formats.spec import Format


class KnownFormats(msgspec.Struct, frozen=True, eq=False):
    """Formats by name, the built-in ones first, and names by alias. Equal to itself alone, so that caches may hold it.

    - `formats`: each by its name.
    - `aliases`: the name that each alias stands for.
    """

    formats: dict[str, Format]
    aliases: dict[str, str]


_LOCK = threading.Lock()
_current = KnownFormats(FORMATS, ALIASES)


def known_formats() -> KnownFormats:
    """The formats that are known now, built in and registered. What is registered later is not in it."""
    return _current


def register(*formats: Format) -> None:
    """Makes formats of your own known, all or none, by name and by alias, to `auto`, `format=` and `detect`.

    - `formats`: what `Format.from_toml` gives, or made in Python. One that is registered already may come again.

    Raises `BadFormat` for what no file could say, and for a name or an alias that is built in or another one's.
    """
    global _current
    from rightcall.formats.toml import check_format_value

    with _LOCK:
        known = dict(_current.formats)
        for format in formats:
            if known.get(format.name) == format:
                continue
            check_format_value(format)
            _check_free(format, known)
            known[format.name] = format
        _current = _build_known_formats(known)


def unregister(name: str) -> None:
    """Forgets a format that was registered as `name`. Raises `UnknownFormat` if none was."""
    global _current
    with _LOCK:
        if name in FORMATS or name not in _current.formats:
            raise UnknownFormat(f"no format {name[:80]!r} was registered")
        _current = _build_known_formats({key: format for key, format in _current.formats.items() if key != name})


class FormatCarrier:
    """What goes to another process takes along the formats that are registered here: `auto` knows them there."""

    def __getstate__(self) -> dict[str, Any]:
        own = [format for name, format in _current.formats.items() if name not in FORMATS]
        return {**self.__dict__, "_carried": own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        register(*state.pop("_carried"))
        self.__dict__.update(state)


def _build_known_formats(formats: dict[str, Format]) -> KnownFormats:
    aliases = {alias: name for name, format in formats.items() for alias in format.aliases}
    return KnownFormats(formats, aliases)


def _check_free(format: Format, known: dict[str, Format]) -> None:
    taken = {word: other.name for other in known.values() for word in (other.name, *other.aliases)}
    for word in (format.name, *format.aliases):
        if word in taken:
            raise BadFormat(
                f"format {format.name!r}: the name {word!r} is that of the format {taken[word]!r}; choose another name"
            )


def find(format: str | Format) -> Format:
    """The format that `format` names, by name or alias; a `Format` is itself. Raises `UnknownFormat`, naming the
    nearest."""
    if isinstance(format, Format):
        return format
    known = _current
    found = known.formats.get(format) or known.formats.get(known.aliases.get(format, ""))
    if found is not None:
        return found
    import difflib

    folded = str(format).lower().replace("-", "_").replace(".", "")
    near = difflib.get_close_matches(folded[:64], [*known.formats, *known.aliases], 1, 0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UnknownFormat(f"no format {str(format)[:80]!r}; {hint}`rightcall formats` lists them")
