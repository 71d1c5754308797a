"""What a call would change in a file, shown before it runs, kept after it did, and undone.

    log = EditLog(space.root)
    await dispatch(reply, space.tools, hooks=[space.approval(ask), log])
    undo(space.root, log.edits.pop())

Only `write_file` and `edit_file` are kept: what a shell command changed nobody knows. A file that was changed since is
never undone. What somebody was shown is what is written: if the file changed while they thought about it, the call is
not run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress

import msgspec

from rightcall.dispatching.hook import Hook, Invocation, Skip
from rightcall.dispatching.result import Result
from rightcall.errors import ToolError
from rightcall.workspace.allow_rules import WRITES
from rightcall.workspace.definitions import WRITE_FILE
from rightcall.workspace.file_tools import LARGEST_EDIT, edit_of, encoded, replace, whole_bytes
from rightcall.workspace.line_diff import unified
from rightcall.workspace.root import Root

_LONGEST_DIFF = 200_000
_TOO_LARGE = f"(a file of more than {LARGEST_EDIT} bytes is replaced; it cannot be shown, nor undone)"


class FileEdit(msgspec.Struct, frozen=True):
    """A change of one file.

    - `path`: below the root.
    - `before`: all that it held; None for a file that was not there, or that is too large to be kept.
    - `after`: the SHA-256 of what it holds now.
    - `diff`: the change as a unified diff.
    - `is_new`: the file was not there.
    - `folders`: how many of the folders above it were there.
    """

    path: str
    before: bytes | None
    after: str
    diff: str
    is_new: bool = False
    folders: int = 0


def planned(root: Root, invocation: Invocation) -> FileEdit | None:
    """The change that a call would make; None for a tool that writes no file. Raises `ToolError` where the tool would,
    too."""
    name, arguments = invocation.tool.name, invocation.arguments
    if name not in WRITES:
        return None
    path = str(arguments["path"])
    parts = root.parts(path)
    if name == WRITE_FILE:
        return _written(root, parts, encoded(str(arguments["content"])))
    edit = edit_of(root, path, str(arguments["old_text"]), str(arguments["new_text"]))
    after = encoded(edit.after)
    return FileEdit("/".join(parts), edit.before.encode(), _hash(after), _bounded(unified(edit.before, edit.after)))


def _written(root: Root, parts: list[str], after: bytes) -> FileEdit:
    path = "/".join(parts)
    try:
        before, _ = whole_bytes(root, parts, path)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return FileEdit(path, None, _hash(after), _shown(b"", after), True, _folders_there(root, parts))
        with root.file(parts) as handle:
            if os.fstat(handle).st_size <= LARGEST_EDIT:
                raise
        return FileEdit(path, None, _hash(after), _TOO_LARGE)
    return FileEdit(path, before, _hash(after), _shown(before, after))


def _shown(before: bytes, after: bytes) -> str:
    if b"\0" in before:
        return f"(a binary file of {len(before)} bytes is replaced by a text)"
    return _bounded(unified(before.decode("utf-8", "replace"), after.decode("utf-8")))


def _bounded(diff: str) -> str:
    left = len(diff) - _LONGEST_DIFF
    return diff if left <= 0 else f"{diff[:_LONGEST_DIFF]}\n({left} more characters)"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _folders_there(root: Root, parts: list[str]) -> int:
    for depth in range(len(parts) - 1, 0, -1):
        with suppress(ToolError), root.folder(parts[:depth]):
            return depth
    return 0


class EditLog(Hook):
    """Keeps the changes that calls made to files below `root`: `edits` has them in order. It belongs behind the hook
    that asks. `told` is told of each."""

    def __init__(self, root: Root, told: Callable[[Invocation, FileEdit], None] | None = None) -> None:
        self.edits: list[FileEdit] = []
        self._root, self._told = root, told
        self._shown: dict[Invocation, FileEdit | None] = {}
        self._running: dict[Invocation, FileEdit] = {}

    def preview(self, invocation: Invocation) -> FileEdit | None:
        """What this `invocation` would change, for somebody to look at; None for nothing that can be told."""
        try:
            edit = planned(self._root, invocation)
        except ToolError:  # which the tool will say, too
            edit = None
        if invocation.tool.name in WRITES:
            self._shown[invocation] = edit
        return edit

    def fails(self, invocation: Invocation) -> bool:
        """Was it seen, when somebody looked, that this `invocation` will fail? Then there is nothing to ask: where it
        would no longer fail it does not run."""
        return invocation in self._shown and self._shown[invocation] is None

    def before(self, invocation: Invocation) -> Skip | None:
        """Looks at the file again: an `invocation` that is not what was shown does not run."""
        was_shown, shown = invocation in self._shown, self._shown.pop(invocation, None)
        try:
            edit = planned(self._root, invocation)
        except ToolError:
            return None
        if edit is None:
            return None
        if was_shown and edit != shown:
            return Skip(f"ERROR: {edit.path} was changed by somebody else meanwhile; read it again", "changed")
        self._running[invocation] = edit
        return None

    def after(self, invocation: Invocation, result: Result) -> None:
        """Keeps what this `invocation` changed, if its `result` says that it ran."""
        self._shown.pop(invocation, None)
        edit = self._running.pop(invocation, None)
        if edit is not None and result.kind == "completed":
            self.edits.append(edit)
            if self._told is not None:
                self._told(invocation, edit)

    def cleanup(self, invocation: Invocation, error: BaseException) -> None:
        """Forgets an `invocation` that failed with this `error`: it changed nothing."""
        self._shown.pop(invocation, None)
        self._running.pop(invocation, None)


def undo(root: Root, edit: FileEdit) -> str:
    """The file below `root` is as it was before this `edit`; says so. Raises `ToolError` where it was changed since, or
    cannot be written, or was too large to be kept: then it stays as it is."""
    parts = root.parts(edit.path)
    with root.changing:
        if edit.before is None and not edit.is_new:
            raise ToolError(f"{edit.path} was too large to be kept; it stays as it is")
        now, seen = whole_bytes(root, parts, edit.path)
        if _hash(now) != edit.after:
            raise ToolError(f"{edit.path} was changed since; it stays as it is")
        if edit.before is not None:
            replace(root, parts, edit.path, edit.before, seen=seen)
            return f"{edit.path} is as it was"
        _remove(root, parts, edit.folders)
    return f"{edit.path} is gone again"


def _remove(root: Root, parts: list[str], folders: int) -> None:
    """The file, and the folders that were made for it, if nothing else is in them."""
    try:
        with root.folder(parts[:-1]) as folder:
            os.unlink(parts[-1], dir_fd=folder)
    except OSError as error:
        raise ToolError(f"cannot remove {'/'.join(parts)}: {error.strerror}") from error
    for depth in range(len(parts) - 1, folders, -1):
        with suppress(OSError, ToolError), root.folder(parts[: depth - 1]) as above:
            os.rmdir(parts[depth - 1], dir_fd=above)
