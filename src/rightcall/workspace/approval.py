"""Ask the user before a tool writes or runs anything: a hook for `dispatch`, shared by all commands that run tools.

| mode    | tools that only read | write_file, edit_file       | bash and others   |
|---------|----------------------|-----------------------------|-------------------|
| default | run                  | the user is asked           | the user is asked |
| plan    | run                  | run in the plan folder only | rejected          |
| bypass  | run                  | run                         | run               |

"yes to all" allows every call of the tool in question, and of both tools that write files; a rule can be narrower.
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
    """The user's refusal, with `words` for the model: what it should do instead."""

    words: str


Permission = Literal["yes", "no", "yes to all"] | AllowRule | Denial
Ask = Callable[[Invocation], Permission | Awaitable[Permission]]


class Approval(Hook):
    """Asks the user before each call of a tool that is not read-only. Only a clear yes allows the call.

    - `root`: the folder that paths are relative to; None if no tool writes files.
    - `ask`: receives the invocation and returns "yes", "no", "yes to all", an `AllowRule` or a `Denial`, directly or as
      an awaitable; None: only calls that a rule covers are allowed.
    - `mode`: "default", "plan" or "bypass", as above; may be changed later.
    - `plan_dir`: the folder that may be written to in mode "plan"; "" for none.
    - `rules`: calls that are allowed without asking.
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
        self._plan_parts = root.parts(plan_dir) if root is not None else []
        self.rules = [*rules]

    async def before(self, invocation: Invocation) -> Skip | None:
        """Return None to let the call of this `invocation` run, or a `Skip` with the reason for the model.

        Mode "bypass" allows every call. Mode "plan" allows read-only tools and files in the plan folder. Mode "default"
        asks the user, unless the tool is read-only or a rule covers the call.
        """
        tool = invocation.tool
        if self.mode == "bypass" or tool.read_only:
            return None
        if self.mode == "plan":
            return self._check_call_in_plan_mode(invocation)
        if any(rule.covers(tool.name, invocation.arguments, self._root) for rule in self.rules):
            return None
        return await self._ask_user(invocation)

    async def _ask_user(self, invocation: Invocation) -> Skip | None:
        """Ask the user about a call. Return None for a yes, else a `Skip` with the refusal for the model. An
        `AllowRule` in the answer is added to `rules` and allows this call only if it covers it; without `ask` the
        call is refused."""
        name = invocation.tool.name
        response = self._ask(invocation) if self._ask is not None else "no"
        answer = await response if inspect.isawaitable(response) else response
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

    def _check_call_in_plan_mode(self, invocation: Invocation) -> Skip | None:
        """Return None for a call that writes a file in the plan folder, and a `Skip` with the reason for any other
        call."""
        name = invocation.tool.name
        folder = "/".join(self._plan_parts)
        instead = f"write the plan into {folder}" if folder else "answer with the plan"
        if name not in WRITES or self._root is None or not folder:
            return Skip(f"ERROR: {name} is refused while planning; {instead}", "plan")
        try:
            parts = self._root.parts(str(invocation.arguments.get("path", "")))
        except ToolError as error:  # the model named a path outside the root
            return Skip(f"ERROR: {error}", "plan")
        if parts[: len(self._plan_parts)] == self._plan_parts and len(parts) > len(self._plan_parts):
            return None
        return Skip(f"ERROR: while planning only files in {folder} may be written", "plan")
