"""Asking before anything is written or run. A hook for `dispatch`, the same for every command that runs tools.

| mode    | tools that only read | write_file, edit_file        | bash and others |
|---------|----------------------|------------------------------|-----------------|
| default | run                  | asked                        | asked           |
| plan    | run                  | run in the plan folder only  | refused         |
| bypass  | run                  | run                          | run             |

"Yes to all" is for the tool that was asked about, and for both that write files; a rule says it more narrowly.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

import msgspec

from rightcall.dispatching.hook import Hook, Invocation, Skip
from rightcall.errors import CallerError, ToolError
from rightcall.workspace.allow_rules import WRITES, AllowRule
from rightcall.workspace.root import Root

DENIED = "denied"
_MODES = ("default", "plan", "bypass")


class Denial(msgspec.Struct, frozen=True):
    """A no with `words` for the model: what it should do instead."""

    words: str


Permission = Literal["yes", "no", "yes to all"] | AllowRule | Denial
Ask = Callable[[Invocation], Permission | Awaitable[Permission]]


class Approval(Hook):
    """Asks before a tool is run that does more than read. Anything but a clear yes is a no.

    - `root`: what paths are in; None where no tool writes files.
    - `ask`: is given the invocation and says "yes", "no", "yes to all", an `AllowRule` or a `Denial`, at once or as an
      awaitable; None: nothing is allowed but what the rules say.
    - `mode`: "default", "plan" or "bypass", as above; may be set later.
    - `plan_dir`: the folder that may be written to while planning; "" for none.
    - `rules`: what need not be asked about.
    """

    def __init__(
        self,
        root: Root | None = None,
        ask: Ask | None = None,
        *,
        mode: str = "default",
        plan_dir: str = "",
        rules: Iterable[AllowRule] = (),
    ) -> None:
        if mode not in _MODES:
            raise CallerError(f"mode={mode!r} is not one of {', '.join(_MODES)}")
        self._root, self._ask, self.mode = root, ask, mode
        self._plan = root.parts(plan_dir) if root is not None else []
        self.rules = [*rules]

    async def before(self, invocation: Invocation) -> Skip | None:
        """Asks about this `invocation` where its tool does more than read; what is not allowed is skipped, and the
        model told."""
        tool = invocation.tool
        if self.mode == "bypass" or tool.read_only:
            return None
        if self.mode == "plan":
            return self._planning(invocation)
        if any(rule.covers(tool.name, invocation.arguments, self._root) for rule in self.rules):
            return None
        return await self._asked(invocation)

    async def _asked(self, invocation: Invocation) -> Skip | None:
        name = invocation.tool.name
        said = self._ask(invocation) if self._ask is not None else "no"
        answer = await said if inspect.isawaitable(said) else said
        if answer == "yes to all":
            answer = AllowRule(name)
        if isinstance(answer, AllowRule):
            self.rules.append(answer)
            answer = "yes" if answer.covers(name, invocation.arguments, self._root) else "no"
        if answer == "yes":
            return None
        if isinstance(answer, Denial):
            return Skip(f"ERROR: the user did not allow {name}, and said: {answer.words}", DENIED)
        return Skip(f"ERROR: the user did not allow {name}; ask what to do instead", DENIED)

    def _planning(self, invocation: Invocation) -> Skip | None:
        name = invocation.tool.name
        folder = "/".join(self._plan)
        instead = f"write the plan into {folder}" if folder else "answer with the plan"
        if name not in WRITES or self._root is None or not folder:
            return Skip(f"ERROR: {name} is refused while planning; {instead}", "plan")
        try:
            parts = self._root.parts(str(invocation.arguments.get("path", "")))
        except ToolError as error:  # a path of the model's, no fault of this hook
            return Skip(f"ERROR: {error}", "plan")
        if parts[: len(self._plan)] == self._plan and len(parts) > len(self._plan):
            return None
        return Skip(f"ERROR: while planning only files in {folder} may be written", "plan")
