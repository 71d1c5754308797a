"""The special tokens of a format: the markers, or parts of them, that are one token in the model's vocabulary.

special = ["<|call|>", "<|end|>"]        # in a file; in Python such a marker is a `Special`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from rightcall.formats.spec import Format, Special

_NO_MARKERS = ("name", "aliases", "models", "tools")


def special_tokens(format: Format) -> tuple[str, ...]:
    """Return the special tokens in a format's markers, each once."""
    return tuple(dict.fromkeys([token for text in _strings_in(format) for token in getattr(text, "tokens", ())]))


def marker_texts(format: Format) -> tuple[str, ...]:
    """Return every string in the marker fields of a format and its bodies, in order; also empty and repeated ones, and
    key names of bodies."""
    return tuple(_strings_in(format))


def mark_special_tokens(format: Format, tokens: Sequence[str]) -> Format:
    """Return a copy of the format in which these texts are marked as special tokens in all its markers; the format
    itself without `tokens`. Earlier marks of changed markers are replaced."""
    return _mark_strings(format, tokens) if tokens else format


def is_in_marker(format: Format, token: str) -> bool:
    """Return whether a marker of the format, or a key name of its bodies, contains the token."""
    return any(token in text for text in _strings_in(format))


def _strings_in(value: Any) -> Iterator[str]:
    """Yield every string in a format, a body, or a collection of them, at any depth, without the names and listings of
    a format and the keys of mappings."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in _marker_field_names(value):
            yield from _strings_in(getattr(value, name))
    elif isinstance(value, Mapping):
        yield from _strings_in(tuple(value.values()))
    elif isinstance(value, tuple):
        for each in value:
            yield from _strings_in(each)


def _mark_strings(value: Any, tokens: Sequence[str]) -> Any:
    """Return a copy of the value in which each string, at any depth, that contains some of the tokens is a `Special`
    with these."""
    if isinstance(value, str):
        found = tuple(sorted(filter(value.__contains__, tokens), key=value.index))
        return Special(value, found) if found else value
    if isinstance(value, msgspec.Struct):
        changed = {name: _mark_strings(getattr(value, name), tokens) for name in _marker_field_names(value)}
        return msgspec.structs.replace(value, **changed)
    if isinstance(value, Mapping):
        return {key: _mark_strings(each, tokens) for key, each in value.items()}
    return tuple([_mark_strings(each, tokens) for each in value]) if isinstance(value, tuple) else value


def _marker_field_names(value: msgspec.Struct) -> list[str]:
    """Return the names of the fields that may hold markers: all but name, aliases, models and tools for a `Format`, all
    fields for any other struct."""
    left_out = _NO_MARKERS if isinstance(value, Format) else ()
    return [name for name in value.__struct_fields__ if name not in left_out]
