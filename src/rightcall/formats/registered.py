"""The registry of known formats: the built-in ones and those registered by the user. Built-in names cannot be replaced.

    register(Format.from_toml(text))     # from now on `auto` and `format="mine"` know it

A `KnownFormats` never changes: registering creates a new one, so that a parser in another thread keeps the one it has.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec

from rightcall.errors import BadFormat, UnknownFormat
from rightcall.formats.builtin import ALIASES, FORMATS
from rightcall.formats.spec import Format


class KnownFormats(msgspec.Struct, frozen=True, eq=False):
    """Formats by name, the built-in ones first, and names by alias. Compared by identity, so that caches may use it as
    a key.

    - `formats`: each by its name.
    - `aliases`: the name of the format for each alias.
    """

    formats: dict[str, Format]
    aliases: dict[str, str]


_LOCK = threading.Lock()
_current = KnownFormats(FORMATS, ALIASES)


def known_formats() -> KnownFormats:
    """Return the formats that are known now, built in and registered. Later registrations do not change the result."""
    return _current


def register(*formats: Format) -> None:
    """Register formats, all or none, under their names and aliases for `auto`, `format=` and `detect`.

    - `formats`: made by `Format.from_toml` or in Python. Registering an equal format again has no effect.

    Raises `BadFormat` for a format that no file could define, and for a name or alias that is already used.
    """
    global _current
    from rightcall.formats.toml import check_format_value

    with _LOCK:
        known = dict(_current.formats)
        for format in formats:
            if known.get(format.name) == format:
                continue
            check_format_value(format)
            _check_names_unused(format, known)
            known[format.name] = format
        _current = _build_known_formats(known)


def unregister(name: str) -> None:
    """Remove the registered format `name`. Raises `UnknownFormat` if it was not registered."""
    global _current
    with _LOCK:
        if name in FORMATS or name not in _current.formats:
            raise UnknownFormat(f"no format {name[:80]!r} was registered")
        _current = _build_known_formats({key: format for key, format in _current.formats.items() if key != name})


class FormatCarrier:
    """Base class of objects that are pickled for another process: they register the user's formats there."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the object's state with the user's registered formats."""
        own = [format for name, format in _current.formats.items() if name not in FORMATS]
        return {**self.__dict__, "_carried": own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the object, and register the formats in its state in this process. Raises `BadFormat` if another
        format has one of their names."""
        register(*state.pop("_carried"))
        self.__dict__.update(state)


def _build_known_formats(formats: dict[str, Format]) -> KnownFormats:
    """Return a new `KnownFormats` of these formats, with the names by alias."""
    aliases = {alias: name for name, format in formats.items() for alias in format.aliases}
    return KnownFormats(formats, aliases)


def _check_names_unused(format: Format, known: dict[str, Format]) -> None:
    """Raise `BadFormat` if the name or an alias of the format is the name or an alias of one in `known`."""
    taken = {word: other.name for other in known.values() for word in (other.name, *other.aliases)}
    for word in (format.name, *format.aliases):
        if word in taken:
            raise BadFormat(
                f"format {format.name!r}: the name {word!r} is that of the format {taken[word]!r}; choose another name"
            )


def find(format: str | Format) -> Format:
    """Return the format that `format` names, by name or alias; a `Format` is returned as it is. Raises `UnknownFormat`,
    with the most similar name, for an unknown name."""
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
