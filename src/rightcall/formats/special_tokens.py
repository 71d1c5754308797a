"""The special tokens of a format: which markers, or parts of them, are one token each in the model's vocabulary.

special = ["<|call|>", "<|end|>"]        # in a file; in Python such a marker is a `Special`
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from rightcall.formats.spec import Format, Special

_NO_MARKERS = ("name", "aliases", "models", "tools")


def tokens_of(format: Format) -> tuple[str, ...]:
    """The special tokens in a format's markers, each once."""
    return tuple(dict.fromkeys([token for text in _texts(format) for token in getattr(text, "tokens", ())]))


def texts_of(format: Format) -> tuple[str, ...]:
    """The texts of a format's markers."""
    return tuple(_texts(format))


def with_tokens(format: Format, tokens: Sequence[str]) -> Format:
    """The format with these tokens marked as such wherever a marker holds them."""
    return _marked(format, tokens) if tokens else format


def is_in_a_marker(format: Format, token: str) -> bool:
    return any(token in text for text in _texts(format))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in _marker_fields(value):
            yield from _texts(getattr(value, name))
    elif isinstance(value, Mapping):
        yield from _texts(tuple(value.values()))
    elif isinstance(value, tuple):
        for each in value:
            yield from _texts(each)


def _marked(value: Any, tokens: Sequence[str]) -> Any:
    if isinstance(value, str):
        found = tuple(sorted([token for token in tokens if token in value], key=value.index))
        return Special(value, found) if found else value
    if isinstance(value, msgspec.Struct):
        changed = {name: _marked(getattr(value, name), tokens) for name in _marker_fields(value)}
        return msgspec.structs.replace(value, **changed)
    if isinstance(value, Mapping):
        return {key: _marked(each, tokens) for key, each in value.items()}
    return tuple([_marked(each, tokens) for each in value]) if isinstance(value, tuple) else value


def _marker_fields(value: msgspec.Struct) -> list[str]:
    left_out = _NO_MARKERS if isinstance(value, Format) else ()
    return [name for name in value.__struct_fields__ if name not in left_out]
