"""`Workspace`: the five tools bound to a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from rightcall.declare.toolset import Toolset
from rightcall.workspace import file_tools, shell
from rightcall.workspace.approval import Approval, Ask
from rightcall.workspace.definitions import BASH, EDIT_FILE, LIST_DIR, READ_FILE, WRITE_FILE, all_tools
from rightcall.workspace.root import Root
from rightcall.workspace.sandbox import Sandbox, confines, hides, sandboxed


class Workspace:
    """A folder, and what may be done in it.

    `seconds` and `most_output` bound a command, `environment` names the variables it gets to see and `extra` adds some.
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
        self, ask: Ask | None = None, *, mode: Literal["default", "plan", "bypass"] = "default", plan_dir: str = ".plan"
    ) -> Approval:
        """The hook that asks before anything is written or run."""
        return Approval(self.root, ask, mode=mode, plan_dir=plan_dir)

    def read_file(self, path: str, line: int = 1, limit: int = file_tools.MOST_LINES) -> str:
        return file_tools.read_file(self.root, path, line, limit)

    def write_file(self, path: str, content: str) -> str:
        return file_tools.write_file(self.root, path, content)

    def edit_file(self, path: str, old_text: str, new_text: str) -> str:
        return file_tools.edit_file(self.root, path, old_text, new_text)

    def list_dir(self, path: str) -> str:
        return file_tools.list_dir(self.root, path)

    async def bash(self, command: str, cwd: str = "") -> str:
        parts = self.root.parts(cwd) if cwd else []
        with self.root.folder(parts):
            folder = "/".join([self.root.path.rstrip("/"), *parts]) or "/"
        prefix = [*self._prefix, "--chdir", folder] if self.sandbox == "bwrap" else self._prefix
        env = shell.environment(self._allowed, self._extra)
        return await shell.run(command, folder, prefix=prefix, seconds=self._seconds, most=self._most, env=env)
