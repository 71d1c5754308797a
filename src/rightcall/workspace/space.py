"""`Workspace`: the five tools bound to a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from rightcall.tools.toolset import Toolset
from rightcall.workspace import file_tools, shell
from rightcall.workspace.allow_rules import AllowRule
from rightcall.workspace.approval import Approval, Ask
from rightcall.workspace.definitions import BASH, EDIT_FILE, LIST_DIR, READ_FILE, WRITE_FILE, all_tools
from rightcall.workspace.root import Root
from rightcall.workspace.sandbox import Sandbox, confines, hides, sandboxed


class Workspace:
    """A folder, and five tools to work in it: `tools` has them with the code to run. The four file tools are confined
    to the folder; `bash` is only where a sandbox is in force.

    - `root`: the folder, which must be there.
    - `sandbox`: "auto" confines `bash` where this machine can; see docs/workspace.md for the others.
    - `network`: may a command in the sandbox use it?
    - `seconds`: how long a command may take.
    - `most_output`: how many characters of what it writes are kept.
    - `environment`: the names of the variables that a command gets to see.
    - `extra`: variables that it gets beside these.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        sandbox: Sandbox = "auto",
        network: bool = True,
        seconds: float = shell.SECONDS,
        most_output: int = shell.MOST_OUTPUT,
        environment: Sequence[str] = shell.ALLOWED,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        self.root = Root(root)
        self._prefix = sandboxed(sandbox, self.root.path, network=network)
        self._seconds, self._most = seconds, most_output
        self._allowed, self._extra = tuple(environment), dict(extra or {})
        runs: dict[str, Callable[..., Any]] = {
            READ_FILE: self.read_file,
            WRITE_FILE: self.write_file,
            EDIT_FILE: self.edit_file,
            LIST_DIR: self.list_dir,
            BASH: self.bash,
        }
        self.tools = Toolset([msgspec.structs.replace(tool, run=runs[tool.name]) for tool in all_tools()])

    @property
    def sandbox(self) -> str:
        """What confines `bash`: "bwrap", "sandbox-exec", or "" for nothing."""
        return confines(self._prefix)

    @property
    def exposure(self) -> str:
        """What a shell command can do here that one in a sandbox could not, in words; "" for nothing."""
        found = [] if self.sandbox else ["write whatever you can"]
        found += [] if hides(self._prefix) else ["read the keys in this program's environment"]
        return f"a shell command can {' and '.join(found)}: there is no sandbox against it" if found else ""

    def approval(
        self,
        ask: Ask | None = None,
        *,
        mode: Literal["default", "plan", "bypass"] = "default",
        plan_dir: str = ".plan",
        rules: Iterable[AllowRule] = (),
    ) -> Approval:
        """The hook that asks before anything is written or run.

        - `ask`: is given the invocation and says "yes", "no", "yes to all", an `AllowRule` or a `Denial`, at once or as
          an awaitable; None: nothing is allowed but what the rules say.
        - `mode`: "default" asks; "plan" lets files be written in `plan_dir` alone and runs no command; "bypass" asks
          nothing.
        - `plan_dir`: a folder in the workspace; "" for none.
        - `rules`: what need not be asked about.
        """
        return Approval(self.root, ask, mode=mode, plan_dir=plan_dir, rules=rules)

    def read_file(self, path: str, line: int = 1, limit: int = file_tools.MOST_LINES) -> str:
        """The text of the file at `path`, at most `limit` lines from `line` on, counted from 1. Raises `ToolError`."""
        return file_tools.read_file(self.root, path, line, limit)

    def write_file(self, path: str, content: str) -> str:
        """Makes the file at `path`, and the folders above it, or replaces it; `content` is the whole of it. Raises
        `ToolError`."""
        return file_tools.write_file(self.root, path, content)

    def edit_file(self, path: str, old_text: str, new_text: str) -> str:
        """Replaces the one place of the file at `path` that holds `old_text` by `new_text`. Raises `ToolError`, also
        where there are several."""
        return file_tools.edit_file(self.root, path, old_text, new_text)

    def list_dir(self, path: str) -> str:
        """The entries of the folder at `path`, one a line. Raises `ToolError`."""
        return file_tools.list_dir(self.root, path)

    async def bash(self, command: str, cwd: str = "") -> str:
        """How a shell `command` ended, and what it wrote, run in the folder `cwd` of the workspace."""
        parts = self.root.parts(cwd) if cwd else []
        with self.root.folder(parts):
            folder = "/".join([self.root.path.rstrip("/"), *parts]) or "/"
        prefix = [*self._prefix, "--chdir", folder] if self.sandbox == "bwrap" else self._prefix
        env = shell.environment(self._allowed, self._extra)
        return await shell.run(command, folder, prefix=prefix, seconds=self._seconds, most=self._most, env=env)
