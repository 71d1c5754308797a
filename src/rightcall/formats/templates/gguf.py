"""Read the chat templates in the header of a GGUF file.

A GGUF file begins with a magic number, a version, the number of tensors and of metadata entries, and then the entries:
a key, a type, a value. Lengths and counts in the file are not trusted: each has a limit, and so has the whole header.
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from rightcall.formats.templates.template_faults import BadTemplate

MAGIC = b"GGUF"
KEY = "tokenizer.chat_template"

MAX_HEADER = 256_000_000  # bytes: vocabularies of half a million tokens with their merges need a tenth of it
MAX_ENTRIES = 65_536
MAX_KEY = 65_535
MAX_ITEMS = 16_000_000  # of an array
MAX_STRING = 16_000_000
MAX_TEMPLATE = 1_000_000
MAX_NESTING = 4
_PIECE = 1_000_000

_STRING, _ARRAY = 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # type -> bytes of a number


def chat_templates(read: Callable[[int], bytes]) -> dict[str, str]:
    """Return every chat template of a GGUF file by name; the unnamed one is `default`, and {} means none. `read`
    returns the next bytes, as many as asked for. Raises `BadTemplate` for an invalid file and beyond limits."""
    return _Header(read).templates()


class _Header:
    """A reader of a GGUF header: byte order, count width, and how many bytes it may still read."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._left = MAX_HEADER
        self._order = "<"
        self._count = "Q"

    def templates(self) -> dict[str, str]:
        """Read the header and return its chat templates by name; all other entries are skipped. Raises
        `BadTemplate`."""
        self._begin()
        entries = self._number(self._count)
        if entries > MAX_ENTRIES:
            raise BadTemplate(f"the GGUF header says it has {entries:,} entries; at most {MAX_ENTRIES:,} are read")
        found: dict[str, str] = {}
        for _ in range(entries):
            key = self._string("a key", MAX_KEY)
            kind = self._number("I")
            if kind == _STRING and (key == KEY or key.startswith(KEY + ".")):
                found[key[len(KEY) + 1 :] or "default"] = self._string("the chat template", MAX_TEMPLATE)
            else:
                self._skip(kind, 0)
        return found

    def _begin(self) -> None:
        """Read the start of the file up to the number of entries, and set byte order and width of counts. Raises
        `BadTemplate` for an unknown magic number or version."""
        if self._bytes(4) != MAGIC:
            raise BadTemplate("this is no GGUF file: it does not begin with GGUF")
        version = self._number("I")
        if version and not version & 0xFFFF:  # the bytes are the other way round
            self._order = ">"
            version = int.from_bytes(version.to_bytes(4, "little"), "big")
        if version not in (1, 2, 3):
            raise BadTemplate(f"GGUF version {version} is not known; versions 1 to 3 are read")
        self._count = "I" if version == 1 else "Q"
        self._number(self._count)  # tensors

    def _skip(self, kind: int, nesting: int) -> None:
        """Skip a value of the type `kind`, inside `nesting` arrays. Raises `BadTemplate` for an unknown type and beyond
        limits."""
        if kind in _SIZES:
            self._drop(_SIZES[kind])
        elif kind == _STRING:
            self._drop(self._length("a string", MAX_STRING))
        elif kind == _ARRAY:
            self._skip_array(nesting)
        else:
            raise BadTemplate(f"the GGUF header has a value of unknown type {kind}")

    def _skip_array(self, nesting: int) -> None:
        """Skip an array, inside `nesting` others: its type, length and items. Raises `BadTemplate` beyond the limits of
        nesting and length."""
        if nesting >= MAX_NESTING:
            raise BadTemplate(f"the GGUF header has arrays nested deeper than {MAX_NESTING}")
        kind = self._number("I")
        items = self._length("an array", MAX_ITEMS)
        if kind in _SIZES:
            self._drop(_SIZES[kind] * items)
            return
        for _ in range(items):
            self._skip(kind, nesting + 1)

    def _string(self, what: str, most: int) -> str:
        """Read a string and return it, with invalid UTF-8 replaced. `what` names it in errors. Raises `BadTemplate` if
        it is longer than `most` bytes."""
        return self._bytes(self._length(what, most)).decode("utf-8", "replace")

    def _length(self, what: str, most: int) -> int:
        """Read a length or count and return it. `what` names its value in errors. Raises `BadTemplate` if it is more
        than `most`."""
        length = self._number(self._count)
        if length > most:
            raise BadTemplate(f"the GGUF header says that {what} has a length of {length:,}; at most {most:,} is read")
        return length

    def _number(self, code: str) -> int:
        """Read an integer with this code of `struct`, in the file's byte order, and return it. Raises `BadTemplate` at
        the end."""
        made = struct.Struct(self._order + code)
        return int(made.unpack(self._bytes(made.size))[0])

    def _drop(self, size: int) -> None:
        """Read this many bytes, in pieces, and drop them. Raises `BadTemplate` at the limit and at the end of the
        file."""
        while size > 0:
            size -= len(self._bytes(min(size, _PIECE)))

    def _bytes(self, size: int) -> bytes:
        """Read exactly this many bytes and return them. Raises `BadTemplate` at the limit and at the end of the
        file."""
        self._left -= size
        if self._left < 0:
            raise BadTemplate(f"the GGUF header is longer than {MAX_HEADER:,} bytes; nothing that long is read")
        data = self._read(size)
        if len(data) < size:
            raise BadTemplate("the GGUF file ends inside its header")
        return data
