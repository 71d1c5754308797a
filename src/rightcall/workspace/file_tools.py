"""The four file tools: read_file, write_file, edit_file, list_dir. All confined to one `Root`.

What is read is capped, and says how to go on. What is written is written whole or not at all: to a new file beside the
old one, which then takes its place.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from rightcall.errors import ToolError
from rightcall.storage.draft import Draft, write_all
from rightcall.workspace.misses import nearest
from rightcall.workspace.root import Root, reason

MOST_BYTES = 256 * 1024
MOST_LINES = 2000
MOST_ENTRIES = 1000
LARGEST_EDIT = 10 * 1024 * 1024
FURTHEST = 64 * 1024 * 1024  # bytes that are gone through to find a line: a thread cannot be stopped
MOST_LISTED = 100_000  # entries of a folder that are looked at
_CHUNK = 64 * 1024
_SNIFF = 8 * 1024


# -- reading -----------------------------------------------------------------------------------------------------------


def read_file(root: Root, path: str, line: int = 1, limit: int = MOST_LINES) -> str:
    """Lines of a text file as they are, from `line` on."""
    with root.file(root.parts(path)) as handle:
        size = os.fstat(handle).st_size
        _must_be_text(os.pread(handle, _SNIFF, 0), path, size)
        return _lines(handle, path, max(line, 1), min(max(limit, 1), MOST_LINES))


def _lines(handle: int, path: str, first: int, most: int) -> str:
    taken: list[bytes] = []
    size = number = 0
    for number, line in enumerate(_split(handle), 1):
        if number < first:
            continue
        if number >= first + most:
            return _text(taken, path) + _hint(first, number - 1)
        if size + len(line) > MOST_BYTES:
            return _cut(taken, line, path, first, number)
        taken.append(line)
        size += len(line)
    if first > max(number, 1):
        raise ToolError(f"{path} has {number} lines; there is no line {first}")
    return _text(taken, path)


def _split(handle: int) -> Iterator[bytes]:
    """Lines with their ends. Of a line that is longer than anything shown, only the beginning is kept."""
    rest, read = b"", 0
    while chunk := os.read(handle, _CHUNK):
        read += len(chunk)
        if read > FURTHEST:
            raise ToolError(f"nothing behind the first {FURTHEST} bytes is read; use bash with sed or tail")
        if len(rest) > MOST_BYTES and b"\n" not in chunk:
            continue  # more of this line than is shown
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def _cut(taken: list[bytes], line: bytes, path: str, first: int, number: int) -> str:
    if taken:
        return _text(taken, path) + _hint(first, number - 1)
    shown = line[:MOST_BYTES].decode("utf-8", "ignore")
    return f"{shown}\n[line {number} is longer than {MOST_BYTES} bytes; the rest of it is not shown]"


def _hint(first: int, last: int) -> str:
    return f"[lines {first} to {last}; the file goes on: read it with line={last + 1}]"


def _text(lines: list[bytes], path: str) -> str:
    try:
        return b"".join(lines).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is no UTF-8 text (byte {error.start} of what was read is wrong)") from error


def _must_be_text(beginning: bytes, path: str, size: int) -> None:
    if b"\0" in beginning:
        raise ToolError(f"{path} is a binary file ({size} bytes), not text")


# -- writing -----------------------------------------------------------------------------------------------------------


def write_file(root: Root, path: str, content: str) -> str:
    """Replaces the contents of a file, or makes it and the folders above it."""
    data = encoded(content)
    with root.changing:
        replace(root, root.parts(path), path, data)
    return f"wrote {path} ({len(data)} bytes)"


def encoded(content: str) -> bytes:
    """The bytes of a file of this text. Raises `ToolError` for half a character."""
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(f"the text holds half a character (a lone surrogate at position {error.start})") from error


def replace(root: Root, parts: list[str], path: str, data: bytes, *, seen: os.stat_result | None = None) -> None:
    """The file is these bytes. `seen` is what it was when it was read, if it was; one that somebody else has changed
    meanwhile stays. Raises `ToolError`."""
    if not parts or path.endswith("/"):
        raise ToolError(f"{path!r} is a folder; name a file in it")
    with root.folder(parts[:-1], make=True) as folder:
        before = root.existing(parts[-1], folder, parts)
        if before is not None and not before.st_mode & 0o222:
            raise ToolError(f"{path} is read-only; nobody may write it")
        if seen is not None and (before is None or _version(before) != _version(seen)):
            raise ToolError(f"{path} was changed by somebody else meanwhile; read it again")
        try:
            _write_beside(parts[-1], folder, data, before)
        except OSError as error:
            raise ToolError(f"cannot write {path}: {reason(error)}; the file is as it was") from error


def _version(file: os.stat_result) -> tuple[int, int, int]:
    return file.st_ino, file.st_size, file.st_mtime_ns


def _write_beside(name: str, folder: int, data: bytes, before: os.stat_result | None) -> None:
    draft = Draft(folder, name, like=before)
    try:
        write_all(draft.handle, data)
        draft.publish()
    finally:
        draft.discard()


class TextEdit(NamedTuple):
    """What an edit makes of a file's text, and from which line on; `seen` is what the file was when it was read."""

    before: str
    after: str
    line: int
    seen: os.stat_result


def edit_file(root: Root, path: str, old_text: str, new_text: str) -> str:
    """Replaces one exact piece of text, which must be there exactly once."""
    with root.changing:
        edit = edit_of(root, path, old_text, new_text)
        replace(root, root.parts(path), path, encoded(edit.after), seen=edit.seen)
    return f"edited {path} (line {edit.line})"


def edit_of(root: Root, path: str, old_text: str, new_text: str) -> TextEdit:
    """What the edit would be. Raises `ToolError` where it cannot be made."""
    if not old_text:
        raise ToolError("old_text is empty; give the text that is to be replaced")
    if old_text == new_text:
        raise ToolError("old_text and new_text are the same; nothing would change")
    text, seen = _whole(root, root.parts(path), path)
    if old_text not in text and "\r\n" in text and "\r" not in old_text:
        old_text, new_text = _for_windows(old_text), _for_windows(new_text)
    count = text.count(old_text)
    if count != 1:
        raise ToolError(_not_once(text, old_text, path, count))
    line = text.count("\n", 0, text.index(old_text)) + 1
    return TextEdit(text, text.replace(old_text, new_text, 1), line, seen)


def _for_windows(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _whole(root: Root, parts: list[str], path: str) -> tuple[str, os.stat_result]:
    data, seen = whole_bytes(root, parts, path)
    _must_be_text(data[:_SNIFF], path, len(data))
    return _text([data], path), seen


def whole_bytes(root: Root, parts: list[str], path: str) -> tuple[bytes, os.stat_result]:
    """All of a file, and what it was then. Raises `ToolError`, also for one that is too large to be edited."""
    with root.file(parts) as handle:
        seen = os.fstat(handle)
        size = seen.st_size
        if size > LARGEST_EDIT:
            raise ToolError(f"{path} has {size} bytes; files over {LARGEST_EDIT} are not edited")
        chunks: list[bytes] = []
        left = LARGEST_EDIT
        while left > 0 and (chunk := os.read(handle, _CHUNK)):  # it may grow all the while
            chunks.append(chunk)
            left -= len(chunk)
    return b"".join(chunks), seen


def _not_once(text: str, old_text: str, path: str, count: int) -> str:
    if not count:
        return f"old_text not found in {path}{nearest(text, old_text)}"
    places: list[str] = []
    at = -1
    while len(places) < 5 and (at := text.find(old_text, at + 1)) >= 0:
        places.append(str(text.count("\n", 0, at) + 1))
    more = ", ..." if count > len(places) else ""
    where = f"(lines {', '.join(places)}{more})"
    return f"old_text appears {count} times in {path} {where}; add lines around it to make it unique"


# -- listing -----------------------------------------------------------------------------------------------------------


def list_dir(root: Root, path: str) -> str:
    """One line an entry: d for a folder, l for a link, f for a file, ? for anything else, and the name."""
    with root.folder(root.parts(path)) as folder, os.scandir(folder) as entries:
        names = sorted(f"{_kind(entry)} {_printable(entry.name)}" for entry in islice(entries, MOST_LISTED))
    if len(names) > MOST_ENTRIES:
        least = "at least " if len(names) == MOST_LISTED else ""
        names = [*names[:MOST_ENTRIES], f"[{least}{len(names) - MOST_ENTRIES} more entries are not shown]"]
    return "\n".join(names) if names else "[the folder is empty]"


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "l"
    return "d" if entry.is_dir(follow_symlinks=False) else "f" if entry.is_file(follow_symlinks=False) else "?"


def _printable(name: str) -> str:
    """A name with a line break in it must not look like two entries."""
    return name if name.isprintable() else ascii(name)
