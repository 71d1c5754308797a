"""`dataset split --by tool`: no tool that validation asks for is so much as offered in training.

Tools are ranked as conversations are, and the lowest are held out until the conversations that call one of them have
enough rows. Those that call no other tool are for validation; those that offer none of them are for training; what is
in between is on neither side. A conversation in which nothing is called counts as calling every tool that it offers,
since that none of them helps is what it teaches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rightcall.capture.captured_rows import RESPOND
from rightcall.datasets.row_files import Scratch, digest
from rightcall.types import Json

MOST_TOLD = 1_000  # names of held-out tools in the manifest


class ToolUse(NamedTuple):
    """The tools of one row: those that it calls, and those that it offers."""

    called: frozenset[str]
    offered: frozenset[str]


def tool_use(row: Json) -> ToolUse:
    """The tools of a row of any schema; `respond`, which every capture offers, is none."""
    told = row["input"] if isinstance(row.get("input"), dict) else row
    call, tools = told.get("candidate_call"), told.get("available_tools")
    offered = {_name(tool) for tool in tools} if isinstance(tools, list) else set()
    return ToolUse(frozenset({_name(call)} - _NONE), frozenset(offered - _NONE))


_NONE = {"", RESPOND.name}


def _name(named: Any) -> str:
    name = named.get("name") if isinstance(named, dict) else None
    return name if isinstance(name, str) else ""


TABLES = (
    "CREATE TABLE calls (tool BLOB, key BLOB, PRIMARY KEY (tool, key)) WITHOUT ROWID",
    "CREATE TABLE offers (tool BLOB, key BLOB, PRIMARY KEY (tool, key)) WITHOUT ROWID",
    "CREATE TABLE tools (tool BLOB PRIMARY KEY, name TEXT, hash BLOB) WITHOUT ROWID",
)
_QUIET = """INSERT OR IGNORE INTO calls SELECT tool, key FROM offers WHERE key NOT IN (SELECT key FROM calls)"""
_RANKED = "SELECT tool, name FROM tools WHERE tool IN (SELECT tool FROM calls) ORDER BY hash, tool"
_NEW = "SELECT key FROM calls WHERE tool = ? AND key NOT IN (SELECT key FROM chosen)"
_MIXED = """DELETE FROM chosen WHERE key IN (SELECT key FROM calls WHERE tool NOT IN (SELECT tool FROM held))"""
_TORN = """INSERT INTO torn SELECT DISTINCT key FROM offers
           WHERE tool IN (SELECT tool FROM held) AND key NOT IN (SELECT key FROM chosen)"""


class ToolNotes:
    """Which conversation calls and offers which tools, in a scratch database that has the table `rows`."""

    def __init__(self, scratch: Scratch) -> None:
        self._db = scratch.db
        for table in TABLES:
            self._db.execute(table)

    def add(self, key: bytes, use: ToolUse, hashes: dict[str, bytes]) -> None:
        """One row of the conversation `key`; `hashes` ranks its tools."""
        for name in use.called | use.offered:
            self._db.execute("INSERT OR IGNORE INTO tools VALUES (?, ?, ?)", (digest(name), name, hashes[name]))
        self._db.executemany("INSERT OR IGNORE INTO calls VALUES (?, ?)", [(digest(name), key) for name in use.called])
        self._db.executemany(
            "INSERT OR IGNORE INTO offers VALUES (?, ?)", [(digest(name), key) for name in use.called | use.offered]
        )

    def choose(self, wanted: int) -> list[str]:
        """Fills `chosen` with the conversations for validation, `torn` with those on neither side. Gives the names of
        the tools that are held out."""
        self._db.execute("CREATE TABLE held (tool BLOB PRIMARY KEY) WITHOUT ROWID")
        self._db.execute("CREATE TABLE sizes AS SELECT key, count(*) AS size FROM rows GROUP BY key")
        self._db.execute("CREATE UNIQUE INDEX by_key ON sizes (key)")
        self._db.execute(_QUIET)
        names: list[str] = []
        for tool, name in self._db.execute(_RANKED).fetchall():
            if wanted <= 0:
                break
            (size,) = self._db.execute(f"SELECT sum(size) FROM sizes WHERE key IN ({_NEW})", (tool,)).fetchone()
            wanted -= size or 0
            self._db.execute(f"INSERT INTO chosen {_NEW}", (tool,))
            self._db.execute("INSERT INTO held VALUES (?)", (tool,))
            names.append(name)
        self._db.execute(_MIXED)
        self._db.execute(_TORN)
        return names
