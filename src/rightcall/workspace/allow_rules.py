"""What was allowed once and for all: a tool, and which calls of it.

    AllowRule("bash", "git status *")    that command, with any plain words behind it
    AllowRule("bash", "make lint")       that command and no other
    AllowRule("edit_file", "src/*")      files below that folder, whichever tool writes them
    AllowRule("search")                  every call of the tool

A command with anything in it that a shell reads as more than words (`;`, `|`, `$`, `>` ...) is covered only by a rule
that says it whole: `git status; rm -r .` is no `git status *`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from rightcall.errors import CallerError, ToolError
from rightcall.workspace.definitions import BASH, EDIT_FILE, WRITE_FILE
from rightcall.workspace.root import Root

WRITES = (WRITE_FILE, EDIT_FILE)
_PLAIN = re.compile(r"[^;|&$`<>()\\\n\r\0]*+")
_WORD = re.compile(r"[a-z][a-z0-9_-]*+")
_VERSION = re.compile(r"[0-9.]+\Z")
# They run whatever stands behind them: to allow one with any words is to allow everything.
_RUNS_ANYTHING = frozenset(
    "sh bash dash zsh ksh fish env sudo doas su xargs find eval exec command nohup time timeout nice ssh python pypy "
    "perl ruby node deno bun npx uvx php lua awk gawk mawk sed git make docker podman kubectl vim vi ed watch parallel "
    "busybox tar rsync".split()
)


class AllowRule(msgspec.Struct, frozen=True):
    """Calls that need not be asked about any more: those of `tool`, as far as `pattern` goes. For `bash` it is a
    command, and ` *` at its end stands for any plain words; for the tools that write files it is a path below the
    root, and `*` stands for anything; other tools have none. Without one, every call is allowed."""

    tool: str
    pattern: str = ""

    @classmethod
    def read(cls, text: str) -> AllowRule:
        """The rule that a `text` such as `bash:git status *` says. Raises `CallerError` for what is none."""
        tool, colon, pattern = text.partition(":")
        if not tool or (colon and (tool not in (BASH, *WRITES) or not pattern)):
            raise CallerError(
                f"{text[:80]!r} allows nothing; say a tool, or bash:COMMAND, write_file:PATTERN, edit_file:PATTERN"
            )
        return cls(tool, pattern)

    @classmethod
    def offered(cls, tool: str, arguments: Mapping[str, Any], root: Root | None) -> AllowRule | None:
        """The rule to offer to somebody who is asked about a call of this `tool` with these `arguments`: it says little
        more than that call. None where no rule says that. `root` is what paths are in."""
        if tool == BASH:
            return _for_command(str(arguments.get("command", "")))
        if tool not in WRITES:
            return cls(tool)
        path = _path(arguments, root)
        return None if path is None else cls(tool, f"{path.rpartition('/')[0]}/*".removeprefix("/"))

    def covers(self, tool: str, arguments: Mapping[str, Any], root: Root | None) -> bool:
        """Is a call of this `tool` with these `arguments` allowed? `root` is what paths are in."""
        if tool != self.tool and not (tool in WRITES and self.tool in WRITES):
            return False
        if not self.pattern:
            return True
        if tool == BASH:
            return _is_such(str(arguments.get("command", "")), self.pattern)
        path = _path(arguments, root)
        return path is not None and fnmatchcase(path, self.pattern)

    def __str__(self) -> str:
        return f"{self.tool}:{self.pattern}" if self.pattern else self.tool


def _path(arguments: Mapping[str, Any], root: Root | None) -> str | None:
    """The path as the root knows it, so that `..` in one leads nowhere else."""
    try:
        return None if root is None else "/".join(root.parts(str(arguments.get("path", ""))))
    except ToolError:
        return None


def _is_such(command: str, pattern: str) -> bool:
    words = pattern.removesuffix(" *")
    if words == pattern or not _PLAIN.fullmatch(command):
        return command == pattern
    return command == words or command.startswith(words + " ")


def _for_command(command: str) -> AllowRule | None:
    first, *rest = command.split(maxsplit=2) or [""]
    if not first or command.endswith(" *"):
        return None  # as a rule it would say more
    is_plain = _PLAIN.fullmatch(command) and "=" not in first
    if not is_plain:
        return AllowRule(BASH, command)
    runs_anything = _VERSION.sub("", first.rpartition("/")[2]) in _RUNS_ANYTHING
    if not runs_anything:
        return AllowRule(BASH, f"{first} *")
    if rest and first in ("git", "make") and _WORD.fullmatch(rest[0]):
        return AllowRule(BASH, f"{first} {rest[0]} *")
    return AllowRule(BASH, command)
