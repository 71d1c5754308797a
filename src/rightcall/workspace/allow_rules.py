"""Permissions that the user has given in advance: a tool, and which of its calls.

    AllowRule("bash", "git status *")    that command, followed by any plain words
    AllowRule("bash", "make lint")       that command and no other
    AllowRule("edit_file", "src/*")      files below that folder, with either tool that writes files
    AllowRule("search")                  every call of the tool

A command with characters that a shell interprets (`;`, `|`, `$`, `>` ...) is covered only by a rule with exactly that
command: `git status; rm -r .` does not match `git status *`.
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
_VERSION = "0123456789."
# They run their arguments: to allow one of them with any words is to allow everything.
_RUNS_ANYTHING = frozenset(
    "sh bash dash zsh ksh fish env sudo doas su xargs find eval exec command nohup time timeout nice ssh python pypy "
    "perl ruby node deno bun npx uvx php lua awk gawk mawk sed git make docker podman kubectl vim vi ed watch parallel "
    "busybox tar rsync".split()
)


class AllowRule(msgspec.Struct, frozen=True):
    """Calls that run without asking the user: those of `tool` that match `pattern`.

    For `bash` the pattern is a command, and ` *` at its end matches any plain words. For the tools that write files it
    is a path below the root, in which `*` matches anything. Other tools have no pattern. An empty pattern allows every
    call.
    """

    tool: str
    pattern: str = ""

    @classmethod
    def read(cls, text: str) -> AllowRule:
        """Parse a rule from `text` such as `bash:git status *` or `search`. Raises `CallerError` for a text that is
        not a rule."""
        tool, colon, pattern = text.partition(":")
        if not tool or (colon and (tool not in (BASH, *WRITES) or not pattern)):
            raise CallerError(
                f"{text[:80]!r} is not a rule; give a tool, or bash:COMMAND, write_file:PATTERN, edit_file:PATTERN"
            )
        return cls(tool, pattern)

    @classmethod
    def offered(cls, tool: str, arguments: Mapping[str, Any], root: Root | None) -> AllowRule | None:
        """Return the rule to offer to a user who is asked about a call of this `tool` with these `arguments`; None if
        there is none.

        For `bash` it allows the command, or its first word with any plain words; for the tools that write files, the
        folder of the file at `path`; for other tools, every call. Paths are relative to `root`."""
        if tool == BASH:
            return _choose_command_rule(str(arguments.get("command", "")))
        if tool not in WRITES:
            return cls(tool)
        path = _resolve_path_argument(arguments, root)
        return None if path is None else cls(tool, f"{path.rpartition('/')[0]}/*".removeprefix("/"))

    def covers(self, tool: str, arguments: Mapping[str, Any], root: Root | None) -> bool:
        """Return whether this rule allows a call of this `tool` with these `arguments`. A rule for one of the tools
        that write files covers both. Paths are relative to `root`; one outside it is not covered by a pattern."""
        if tool != self.tool and not (tool in WRITES and self.tool in WRITES):
            return False
        if not self.pattern:
            return True
        if tool == BASH:
            return _is_command_covered(str(arguments.get("command", "")), self.pattern)
        path = _resolve_path_argument(arguments, root)
        return path is not None and fnmatchcase(path, self.pattern)

    def __str__(self) -> str:
        return f"{self.tool}:{self.pattern}" if self.pattern else self.tool


def _resolve_path_argument(arguments: Mapping[str, Any], root: Root | None) -> str | None:
    """Return the call's argument `path` relative to the root, with `..` resolved; None without a root or for a path
    outside it."""
    try:
        return None if root is None else "/".join(root.parts(str(arguments.get("path", ""))))
    except ToolError:
        return None


def _is_command_covered(command: str, pattern: str) -> bool:
    """Return whether a command is the one in the pattern or, where the pattern ends with ` *`, the pattern's command
    followed by plain words. A command with characters that a shell interprets must equal the pattern."""
    words = pattern.removesuffix(" *")
    if words == pattern or not _PLAIN.fullmatch(command):
        return command == pattern
    return command == words or command.startswith(words + " ")


def _choose_command_rule(command: str) -> AllowRule | None:
    """Return the rule to offer for a shell command: its first word, or `git` or `make` with their subcommand, followed
    by any plain words.

    The rule is exactly the command if a shell interprets characters of it, or if its first word is a program that runs
    other programs. None for an empty command, and for one that ends with ` *`, because the rule would cover other
    commands."""
    first, *rest = command.split(maxsplit=2) or [""]
    if not first or command.endswith(" *"):
        return None  # as a rule it would cover other commands
    is_plain = _PLAIN.fullmatch(command) and "=" not in first
    if not is_plain:
        return AllowRule(BASH, command)
    runs_anything = first.rpartition("/")[2].rstrip(_VERSION) in _RUNS_ANYTHING
    if not runs_anything:
        return AllowRule(BASH, f"{first} *")
    if rest and first in ("git", "make") and _WORD.fullmatch(rest[0]):
        return AllowRule(BASH, f"{first} {rest[0]} *")
    return AllowRule(BASH, command)
