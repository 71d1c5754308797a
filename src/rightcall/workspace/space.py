"""`Workspace`: the five coding tools for one folder."""

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
from rightcall.workspace.sandbox import Sandbox, hides_processes, sandbox_name, sandbox_prefix


class Workspace:
    """A folder and five tools to work in it: `tools` has them with their functions.

    The four file tools are confined to the folder; `bash` is confined only by a sandbox.

    - `root`: the folder, which must exist.
    - `sandbox`: "auto" confines `bash` if this machine can; see docs/workspace.md for the others.
    - `network`: whether a command in the sandbox may use the network.
    - `seconds`: the time limit of a command.
    - `most_output`: how many characters of its output are kept.
    - `environment`: the names of the variables that a command receives.
    - `extra`: further variables for it.
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
        self._prefix = sandbox_prefix(sandbox, self.root.path, network=network)
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
        """Return the name of the sandbox that confines `bash`: "bwrap", "sandbox-exec", or "" for none."""
        return sandbox_name(self._prefix)

    @property
    def exposure(self) -> str:
        """Return a sentence about what a shell command can do because no sandbox prevents it; "" if there is
        nothing."""
        found = [] if self.sandbox else ["write whatever you can"]
        found += [] if hides_processes(self._prefix) else ["read the keys in this program's environment"]
        return f"a shell command can {' and '.join(found)}: there is no sandbox against it" if found else ""

    def approval(
        self,
        ask: Ask | None = None,
        *,
        mode: Literal["default", "plan", "bypass"] = "default",
        plan_dir: str = ".plan",
        rules: Iterable[AllowRule] = (),
    ) -> Approval:
        """Return the hook that asks the user before anything is written or run.

        - `ask`: receives the invocation and returns "yes", "no", "yes to all", an `AllowRule` or a `Denial`, directly
          or as an awaitable; None: only calls that a rule covers are allowed.
        - `mode`: "default" asks; "plan" allows writing in `plan_dir` only and runs no command; "bypass" allows
          everything.
        - `plan_dir`: a folder in the workspace; "" for none.
        - `rules`: calls that are allowed without asking.
        """
        return Approval(self.root, ask, mode=mode, plan_dir=plan_dir, rules=rules)

    def read_file(self, path: str, line: int = 1, limit: int = file_tools.MOST_LINES) -> str:
        """Return at most `limit` lines of the file at `path`, from `line` on, counted from 1. Raises `ToolError`."""
        return file_tools.read_file(self.root, path, line, limit)

    def write_file(self, path: str, content: str) -> str:
        """Replace the file at `path` by `content`, or create it and the folders above it. Raises `ToolError`."""
        return file_tools.write_file(self.root, path, content)

    def edit_file(self, path: str, old_text: str, new_text: str) -> str:
        """Replace the only occurrence of `old_text` in the file at `path` by `new_text`.

        Raises `ToolError`, also if there are several.
        """
        return file_tools.edit_file(self.root, path, old_text, new_text)

    def list_dir(self, path: str) -> str:
        """Return the entries of the folder at `path`, one per line. Raises `ToolError`."""
        return file_tools.list_dir(self.root, path)

    async def bash(self, command: str, cwd: str = "") -> str:
        """Run a shell `command` in the folder `cwd` of the workspace ("" for its root) and return its exit status and
        output. Raises `ToolError` after the time limit, and if the command cannot be started or `cwd` is outside the
        workspace."""
        parts = self.root.parts(cwd) if cwd else []
        with self.root.folder(parts):
            folder = "/".join([self.root.path.rstrip("/"), *parts]) or "/"
        prefix = [*self._prefix, "--chdir", folder] if self.sandbox == "bwrap" else self._prefix
        env = shell.build_environment(self._allowed, self._extra)
        return await shell.run_command(command, folder, prefix=prefix, seconds=self._seconds, most=self._most, env=env)
