"""Asking before anything is written or run. A hook for `dispatch`.

| mode    | read_file, list_dir | write_file, edit_file        | bash    |
|---------|---------------------|------------------------------|---------|
| default | run                 | asked                        | asked   |
| plan    | run                 | run in the plan folder only  | refused |
| bypass  | run                 | run                          | run     |

"Yes to all" is for the files: it does not cover bash, unless that was said when bash was asked about.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Literal

from rightcall.dispatching.hook import Hook, Invocation, Skip
from rightcall.errors import CallerError, ToolError
from rightcall.workspace.definitions import BASH, EDIT_FILE, WRITE_FILE
from rightcall.workspace.root import Root

Permission = Literal["yes", "no", "yes to all"]
Ask = Callable[[Invocation], Permission | Awaitable[Permission]]
_MODES = ("default", "plan", "bypass")
_WRITES = (WRITE_FILE, EDIT_FILE)


class Approval(Hook):
    """The hook that `Workspace.approval` makes. Anything but a clear yes is a no. `root`, `ask`, `mode` and `plan_dir`
    are the workspace's folder and the options of `Workspace.approval`."""

    def __init__(self, root: Root, ask: Ask | None, *, mode: str, plan_dir: str) -> None:
        if mode not in _MODES:
            raise CallerError(f"mode={mode!r} is not one of {', '.join(_MODES)}")
        self._root, self._ask, self._mode = root, ask, mode
        self._plan = root.parts(plan_dir)
        self._always: set[str] = set()

    async def before(self, invocation: Invocation) -> Skip | None:
        """Asks about this `invocation` where its tool writes or runs something; what is not allowed is skipped, and the
        model told."""
        name = invocation.tool.name
        if self._mode == "bypass" or name not in (*_WRITES, BASH):
            return None
        if self._mode == "plan":
            return self._planning(invocation)
        if name in self._always or await self._allowed(invocation):
            return None
        return Skip(f"ERROR: the user did not allow {name}; ask what to do instead", "denied")

    async def _allowed(self, invocation: Invocation) -> bool:
        if self._ask is None:
            return False
        asked = self._ask(invocation)
        answer = await asked if inspect.isawaitable(asked) else asked
        if answer == "yes to all":
            self._always |= {BASH} if invocation.tool.name == BASH else set(_WRITES)
        return answer in ("yes", "yes to all")

    def _planning(self, invocation: Invocation) -> Skip | None:
        name = invocation.tool.name
        folder = "/".join(self._plan)
        if name == BASH:
            return Skip(f"ERROR: {BASH} is refused while planning; write the plan into {folder}", "plan")
        try:
            parts = self._root.parts(str(invocation.arguments.get("path", "")))
        except ToolError as error:  # a path of the model's, no fault of this hook
            return Skip(f"ERROR: {error}", "plan")
        if parts[: len(self._plan)] == self._plan and len(parts) > len(self._plan):
            return None
        return Skip(f"ERROR: while planning only files in {folder} may be written", "plan")
