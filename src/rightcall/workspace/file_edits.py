"""Changes of files by calls: preview a change before the call runs, record it afterwards, and undo it.

    log = EditLog(space.root)
    await dispatch(reply, space.tools, hooks=[space.approval(ask), log])
    undo(space.root, log.edits.pop())

Only changes by `write_file` and `edit_file` are recorded; those of shell commands are unknown. A file that was changed
since is never undone. A call runs only if it makes the change that the user was shown: if the file changed while the
user decided, the call is skipped.
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
from rightcall.workspace.file_tools import LARGEST_EDIT, encode_text, plan_edit, read_whole_file, replace_file
from rightcall.workspace.line_diff import unified_diff
from rightcall.workspace.root import Root

_LONGEST_DIFF = 200_000
_TOO_LARGE = f"(a file of more than {LARGEST_EDIT} bytes is replaced; the change cannot be shown or undone)"


class FileEdit(msgspec.Struct, frozen=True):
    """A change of one file.

    - `path`: relative to the root.
    - `before`: the whole content before the change; None for a file that did not exist, or that is too large to be
      kept.
    - `after`: the SHA-256 of the content after the change.
    - `diff`: the change as a unified diff.
    - `is_new`: the file did not exist.
    - `folders`: how many of the folders above it existed.
    """

    path: str
    before: bytes | None
    after: str
    diff: str
    is_new: bool = False
    folders: int = 0


def plan_call(root: Root, invocation: Invocation) -> FileEdit | None:
    """Return the change that a call would make, without making it; None for a tool that writes no file. Raises the
    `ToolError` that the tool would raise."""
    name, arguments = invocation.tool.name, invocation.arguments
    if name not in WRITES:
        return None
    path = str(arguments["path"])
    parts = root.parts(path)
    if name == WRITE_FILE:
        return _plan_write(root, parts, encode_text(str(arguments["content"])))
    edit = plan_edit(root, path, str(arguments["old_text"]), str(arguments["new_text"]))
    after = encode_text(edit.after)
    return FileEdit(
        "/".join(parts), edit.before.encode(), _digest(after), _shorten_diff(unified_diff(edit.before, edit.after))
    )


def _plan_write(root: Root, parts: list[str], after: bytes) -> FileEdit:
    """Return the change that writing the content `after` would make, without writing. Its `before` is None for a new
    file, and for one too large to be kept. Raises `ToolError` for a file that cannot be read."""
    path = "/".join(parts)
    try:
        before, _ = read_whole_file(root, parts, path)
    except ToolError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return FileEdit(
                path, None, _digest(after), _describe_change(b"", after), True, _count_existing_folders(root, parts)
            )
        with root.file(parts) as handle:
            if os.fstat(handle).st_size <= LARGEST_EDIT:
                raise
        return FileEdit(path, None, _digest(after), _TOO_LARGE)
    return FileEdit(path, before, _digest(after), _describe_change(before, after))


def _describe_change(before: bytes, after: bytes) -> str:
    """Return the unified diff from the content `before` to the content `after`, shortened if it is long; a sentence if
    `before` is binary."""
    if b"\0" in before:
        return f"(a binary file of {len(before)} bytes is replaced by a text)"
    return _shorten_diff(unified_diff(before.decode("utf-8", "replace"), after.decode("utf-8")))


def _shorten_diff(diff: str) -> str:
    """Return a diff cut to `_LONGEST_DIFF` characters, with the number of characters that were cut."""
    excess = len(diff) - _LONGEST_DIFF
    return diff if excess <= 0 else f"{diff[:_LONGEST_DIFF]}\n({excess} more characters)"


def _digest(data: bytes) -> str:
    """Return the hexadecimal SHA-256 of a content."""
    return hashlib.sha256(data).hexdigest()


def _count_existing_folders(root: Root, parts: list[str]) -> int:
    """Return how many of the folders above the path `parts`, counted from the root, exist; 0 if it has none."""
    for depth in range(len(parts) - 1, 0, -1):
        with suppress(ToolError), root.folder(parts[:depth]):
            return depth
    return 0


class EditLog(Hook):
    """Records the changes that calls make to files below `root`, in `edits`, in order.

    It must come after the approval hook. `told` is called with each change that was made.
    """

    def __init__(self, root: Root, told: Callable[[Invocation, FileEdit], None] | None = None) -> None:
        self.edits: list[FileEdit] = []
        self._root, self._listener = root, told
        self._shown: dict[Invocation, FileEdit | None] = {}
        self._running: dict[Invocation, FileEdit] = {}

    def preview(self, invocation: Invocation) -> FileEdit | None:
        """Return the change that this `invocation` would make, to be shown to the user, and store it: the call is
        skipped later if its change then differs.

        None for a tool that writes no file, and for a call that will fail."""
        try:
            edit = plan_call(self._root, invocation)
        except ToolError:  # the tool raises it again when the call runs
            edit = None
        if invocation.tool.name in WRITES:
            self._shown[invocation] = edit
        return edit

    def fails(self, invocation: Invocation) -> bool:
        """Return whether the stored `preview` of this `invocation` found that the call will fail, so that the user need
        not be asked; False without a preview."""
        return invocation in self._shown and self._shown[invocation] is None

    def before(self, invocation: Invocation) -> Skip | None:
        """Plan the change of this `invocation` and keep it for `after`. Return a `Skip` if the change differs from the
        one that `preview` returned, because the file was changed meanwhile; None otherwise, also for a call that will
        fail or writes no file."""
        was_shown, shown = invocation in self._shown, self._shown.pop(invocation, None)
        try:
            edit = plan_call(self._root, invocation)
        except ToolError:
            return None
        if edit is None:
            return None
        if was_shown and edit != shown:
            return Skip(f"ERROR: {edit.path} was changed by another program meanwhile; read it again", "changed")
        self._running[invocation] = edit
        return None

    def after(self, invocation: Invocation, result: Result) -> None:
        """Add the planned change of this `invocation` to `edits`, and report it to the listener, if its `result` is of
        kind "completed"; otherwise drop it."""
        self._shown.pop(invocation, None)
        edit = self._running.pop(invocation, None)
        if edit is not None and result.kind == "completed":
            self.edits.append(edit)
            if self._listener is not None:
                self._listener(invocation, edit)

    def cleanup(self, invocation: Invocation, error: BaseException) -> None:
        """Discard the planned change of an `invocation` that failed with this `error`: the file was not changed."""
        self._shown.pop(invocation, None)
        self._running.pop(invocation, None)


def undo(root: Root, edit: FileEdit) -> str:
    """Restore the file below `root` that this `edit` changed to its content before, or remove it if the edit created
    it, and return a sentence that says so.

    Raises `ToolError`, and leaves the file unchanged, if it was changed since, cannot be written, or was too large to
    be kept."""
    parts = root.parts(edit.path)
    with root.changing:
        if edit.before is None and not edit.is_new:
            raise ToolError(f"{edit.path} was too large to be kept; it stays as it is")
        now, seen = read_whole_file(root, parts, edit.path)
        if _digest(now) != edit.after:
            raise ToolError(f"{edit.path} was changed since; it stays as it is")
        if edit.before is not None:
            replace_file(root, parts, edit.path, edit.before, seen=seen)
            return f"{edit.path} is as it was"
        _remove_file(root, parts, edit.folders)
    return f"{edit.path} is gone again"


def _remove_file(root: Root, parts: list[str], folders: int) -> None:
    """Remove a file, and the empty folders that were created for it. `folders` is the number of folders above it
    that existed before. Raises `ToolError` if the file cannot be removed."""
    try:
        with root.folder(parts[:-1]) as folder:
            os.unlink(parts[-1], dir_fd=folder)
    except OSError as error:
        raise ToolError(f"cannot remove {'/'.join(parts)}: {error.strerror}") from error
    for depth in range(len(parts) - 1, folders, -1):
        with suppress(OSError, ToolError), root.folder(parts[: depth - 1]) as above:
            os.rmdir(parts[depth - 1], dir_fd=above)
