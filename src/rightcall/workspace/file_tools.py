"""The four file tools, confined to one `Root`: read_file, write_file, edit_file, list_dir.

The output of a read is limited, and says how to continue. A file is written to a temporary file next to it and then
replaced, so that it is written completely or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from rightcall.errors import ToolError
from rightcall.storage.draft import Draft, write_all
from rightcall.workspace.nearest_lines import describe_nearest
from rightcall.workspace.root import Root, error_reason

MOST_BYTES = 256 * 1024
MOST_LINES = 2000
MOST_ENTRIES = 1000
LARGEST_EDIT = 10 * 1024 * 1024
MOST_SCANNED = 64 * 1024 * 1024  # bytes that are read to find a line: a thread cannot be stopped
MOST_SORTED = 100_000  # entries of a folder that are sorted
_CHUNK = 64 * 1024
_SNIFF = 8 * 1024


# -- reading -----------------------------------------------------------------------------------------------------------


def read_file(root: Root, path: str, line: int = 1, limit: int = MOST_LINES) -> str:
    """Return at most `limit` lines (and `MOST_LINES`) of a text file unchanged, from `line` on, counted from 1. If the
    file continues, the text ends with a hint how to read on. Raises `ToolError`, also for a line after the end and for
    a file that is no UTF-8 text."""
    with root.file(root.parts(path)) as handle:
        size = os.fstat(handle).st_size
        _require_text(os.pread(handle, _SNIFF, 0), path, size)
        return _read_lines(handle, path, max(line, 1), min(max(limit, 1), MOST_LINES))


def _read_lines(handle: int, path: str, first: int, most: int) -> str:
    """Return at most `most` lines of an open file from line `first` on, with a hint if the file continues. Fewer are
    returned if they exceed `MOST_BYTES`. Raises `ToolError` for a line after the end."""
    taken: list[bytes] = []
    size = number = 0
    for number, line in enumerate(_read_bounded_lines(handle), 1):
        if number < first:
            continue
        if number >= first + most:
            return _decode(taken, path) + _continuation_hint(first, number - 1)
        if size + len(line) > MOST_BYTES:
            return _end_before_limit(taken, line, path, first, number)
        taken.append(line)
        size += len(line)
    if first > max(number, 1):
        raise ToolError(f"{path} has {number} lines; there is no line {first}")
    return _decode(taken, path)


def _read_bounded_lines(handle: int) -> Iterator[bytes]:
    """Yield lines with their line ends. A line much longer than `MOST_BYTES` lacks a part after its first
    `MOST_BYTES` bytes, and remains longer than these. Raises `ToolError` once more than `MOST_SCANNED` bytes are
    read."""
    pending, read = b"", 0
    while chunk := os.read(handle, _CHUNK):
        read += len(chunk)
        if read > MOST_SCANNED:
            raise ToolError(f"only the first {MOST_SCANNED} bytes are read; use bash with sed or tail")
        if len(pending) > MOST_BYTES and b"\n" not in chunk:
            continue  # more of this line than is shown
        *lines, pending = (pending + chunk).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if pending:
        yield pending


def _end_before_limit(taken: list[bytes], line: bytes, path: str, first: int, number: int) -> str:
    """Return the text of a reading that ends because line `number`, whose bytes are `line`, exceeds the limit on bytes:
    the lines `taken` before it with a hint how to read on, or, if there are none, the start of that line with a
    note."""
    if taken:
        return _decode(taken, path) + _continuation_hint(first, number - 1)
    shown = line[:MOST_BYTES].decode("utf-8", "ignore")
    return f"{shown}\n[line {number} is longer than {MOST_BYTES} bytes; its end is not shown]"


def _continuation_hint(first: int, last: int) -> str:
    """Return the hint that ends a text with the lines `first` to `last` of a file: how to read the lines after them."""
    return f"[lines {first} to {last}; the file continues: read it with line={last + 1}]"


def _decode(lines: list[bytes], path: str) -> str:
    """Return lines decoded as UTF-8. Raises `ToolError` for other bytes."""
    try:
        return b"".join(lines).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolError(f"{path} is not UTF-8 text (byte {error.start} of the bytes read is invalid)") from error


def _require_text(beginning: bytes, path: str, size: int) -> None:
    """Raise `ToolError` if the first bytes of a file contain a null byte: it is binary. `path` and `size` are for the
    message."""
    if b"\0" in beginning:
        raise ToolError(f"{path} is a binary file ({size} bytes), not text")


# -- writing -----------------------------------------------------------------------------------------------------------


def write_file(root: Root, path: str, content: str) -> str:
    """Replace the content of a file, or create it and the folders above it. Return a sentence with its size. Raises
    `ToolError`."""
    data = encode_text(content)
    with root.changing:
        replace_file(root, root.parts(path), path, data)
    return f"wrote {path} ({len(data)} bytes)"


def encode_text(content: str) -> bytes:
    """Return text as UTF-8. Raises `ToolError` for a lone surrogate."""
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(f"the text contains a lone surrogate at position {error.start}") from error


def replace_file(root: Root, parts: list[str], path: str, data: bytes, *, seen: os.stat_result | None = None) -> None:
    """Replace the content of a file by `data`, or create it and the folders above it; another process sees the old or
    the new content.

    `parts` is the path below the root, `path` the path in messages. `seen` is the status of the file when it was read,
    None if it was not. Raises `ToolError` if the file was changed since, is read-only or is no regular file."""
    if not parts or path.endswith("/"):
        raise ToolError(f"{path!r} is a folder; name a file in it")
    with root.folder(parts[:-1], make=True) as folder:
        before = root.existing(parts[-1], folder, parts)
        if before is not None and not before.st_mode & 0o222:
            raise ToolError(f"{path} is read-only: it has no write permission")
        if seen is not None and (before is None or _file_version(before) != _file_version(seen)):
            raise ToolError(f"{path} was changed by another program meanwhile; read it again")
        try:
            _replace_by_draft(parts[-1], folder, data, before)
        except OSError as error:
            raise ToolError(f"cannot write {path}: {error_reason(error)}; the file is as it was") from error


def _file_version(file: os.stat_result) -> tuple[int, int, int]:
    """Return inode, size and modification time of a file, which differ from earlier ones if it was changed or
    replaced."""
    return file.st_ino, file.st_size, file.st_mtime_ns


def _replace_by_draft(name: str, folder: int, data: bytes, before: os.stat_result | None) -> None:
    """Write `data` to a temporary file in the open folder and rename it to `name`, with the owner and mode of the file
    `before` (None: a new file). Raises `OSError`."""
    draft = Draft(folder, name, like=before)
    try:
        write_all(draft.handle, data)
        draft.publish()
    finally:
        draft.discard()


class TextEdit(NamedTuple):
    """The text of a file before and after an edit, and the first changed line; `seen` is the state of the file when
    read."""

    before: str
    after: str
    line: int
    seen: os.stat_result


def edit_file(root: Root, path: str, old_text: str, new_text: str) -> str:
    """Replace `old_text`, which must occur exactly once in the file, by `new_text`, and write the file. Return a
    sentence with the changed line. Raises `ToolError`."""
    with root.changing:
        edit = plan_edit(root, path, old_text, new_text)
        replace_file(root, root.parts(path), path, encode_text(edit.after), seen=edit.seen)
    return f"edited {path} (line {edit.line})"


def plan_edit(root: Root, path: str, old_text: str, new_text: str) -> TextEdit:
    """Return the `TextEdit` that replaces `old_text` in the file by `new_text`, without writing it. If `old_text`
    occurs only with Windows line ends, both texts get these. Raises `ToolError` if `old_text` does not occur exactly
    once, is empty, or equals `new_text`, and if the file cannot be read."""
    if not old_text:
        raise ToolError("old_text is empty; give the text to replace")
    if old_text == new_text:
        raise ToolError("old_text and new_text are the same; nothing would change")
    text, seen = _read_whole_text(root, root.parts(path), path)
    if old_text not in text and "\r\n" in text and "\r" not in old_text:
        old_text, new_text = _convert_to_crlf(old_text), _convert_to_crlf(new_text)
    count = text.count(old_text)
    if count != 1:
        raise ToolError(_describe_matches(text, old_text, path, count))
    line = text.count("\n", 0, text.index(old_text)) + 1
    return TextEdit(text, text.replace(old_text, new_text, 1), line, seen)


def _convert_to_crlf(text: str) -> str:
    """Return the text with Windows line ends, also if some lines have them already."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _read_whole_text(root: Root, parts: list[str], path: str) -> tuple[str, os.stat_result]:
    """Return the whole text of a file and its state. Raises `ToolError` for a file that is too large, binary or not
    UTF-8."""
    data, seen = read_whole_file(root, parts, path)
    _require_text(data[:_SNIFF], path, len(data))
    return _decode([data], path), seen


def read_whole_file(root: Root, parts: list[str], path: str) -> tuple[bytes, os.stat_result]:
    """Return the whole content of a regular file and its status when it was read. Raises `ToolError` if it cannot be
    opened, and for more than `LARGEST_EDIT` bytes."""
    with root.file(parts) as handle:
        seen = os.fstat(handle)
        size = seen.st_size
        if size > LARGEST_EDIT:
            raise ToolError(f"{path} has {size} bytes; files over {LARGEST_EDIT} are not edited")
        chunks: list[bytes] = []
        left = LARGEST_EDIT
        while left > 0 and (chunk := os.read(handle, _CHUNK)):  # it may grow meanwhile
            chunks.append(chunk)
            left -= len(chunk)
    return b"".join(chunks), seen


def _describe_matches(text: str, old_text: str, path: str, count: int) -> str:
    """Return the error message for a text that does not occur exactly once: the lines where it occurs, or the most
    similar lines of the file."""
    if not count:
        return f"old_text not found in {path}{describe_nearest(text, old_text)}"
    places: list[str] = []
    at = -1
    while len(places) < 5 and (at := text.find(old_text, at + 1)) >= 0:
        places.append(str(text.count("\n", 0, at) + 1))
    more = ", ..." if count > len(places) else ""
    where = f"(lines {', '.join(places)}{more})"
    return f"old_text appears {count} times in {path} {where}; add lines around it to make it unique"


# -- listing -----------------------------------------------------------------------------------------------------------


def list_dir(root: Root, path: str) -> str:
    """Return one line per entry of a folder: d for a folder, f for a file, l for a link, ? for anything else, then the
    name. Lines are sorted by type, then name; a last line counts those over `MOST_ENTRIES`. Raises `ToolError`."""
    with root.folder(root.parts(path)) as folder, os.scandir(folder) as entries:
        listed = islice(entries, MOST_SORTED)
        names = sorted(f"{_entry_type(entry)} {_escape_unprintable(entry.name)}" for entry in listed)
    if len(names) > MOST_ENTRIES:
        least = "at least " if len(names) == MOST_SORTED else ""
        names = [*names[:MOST_ENTRIES], f"[{least}{len(names) - MOST_ENTRIES} more entries are not shown]"]
    return "\n".join(names) if names else "[the folder is empty]"


def _entry_type(entry: os.DirEntry[str]) -> str:
    """Return the letter of an entry in a listing: l, d, f, or ? for anything else."""
    if entry.is_symlink():
        return "l"
    return "d" if entry.is_dir(follow_symlinks=False) else "f" if entry.is_file(follow_symlinks=False) else "?"


def _escape_unprintable(name: str) -> str:
    """Return a file's name as one printable line: unchanged, or quoted with escapes if it has unprintable characters,
    since a line break in it must not look like two entries."""
    return name if name.isprintable() else ascii(name)
