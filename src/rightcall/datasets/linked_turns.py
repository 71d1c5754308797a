"""Exchanges that go on where another ended: those of one conversation get one name.

    with LinkedTurns() as linked:
        name = linked.name("import-1", before, after)

What must be known of other exchanges is kept on disk, so memory does not grow with the files.
"""

from __future__ import annotations

from types import TracebackType

from rightcall.datasets.row_files import Scratch


class LinkedTurns:
    """Names of exchanges: one whose history is what another ended with goes on with that one. Whoever comes first goes
    on with it; a second is another conversation."""

    def __init__(self) -> None:
        self._scratch = Scratch("CREATE TABLE ends (key BLOB PRIMARY KEY, name TEXT) WITHOUT ROWID", "BEGIN")

    def __enter__(self) -> LinkedTurns:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._scratch.__exit__(kind, error, at)

    def name(self, own: str, before: list[bytes], after: bytes) -> str:
        """The name of the conversation that an exchange goes on with; its own if it begins one."""
        if not after:
            return own
        name = next((name for end in reversed(before) if (name := self._ended(end))), own)
        self._scratch.db.execute("INSERT OR REPLACE INTO ends VALUES (?, ?)", (after, name))
        return name

    def _ended(self, end: bytes) -> str:
        found = self._scratch.db.execute("DELETE FROM ends WHERE key = ? RETURNING name", (end,)).fetchone()
        return found[0] if found else ""
