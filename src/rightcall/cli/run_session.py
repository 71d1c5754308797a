"""Run an agent on a separate thread.

Events, notes and questions are passed to the terminal's thread in order, so that only one thread prints and asks.

    with RunSession(...) as session:
        session.start_task("Rename the function.")
        for item in session.items(): ...
        session.finish()
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, aclosing
from queue import SimpleQueue
from typing import NamedTuple, Self

import msgspec

from rightcall.backends.base import BaseBackend, LoopThread
from rightcall.cli.user_tools import connect_mcp_servers
from rightcall.dispatching.bounded_output import Bounds
from rightcall.dispatching.hook import Invocation
from rightcall.dispatching.invoke import RunLimits
from rightcall.errors import BackendError, CallerError
from rightcall.guard.judgement import Guard
from rightcall.guard.policies import turn_budget
from rightcall.loop.conversation import Conversation
from rightcall.loop.task_runner import RunJournal, Runner, RunNotes, standing_edits, undone_paths
from rightcall.tools.toolset import Toolset
from rightcall.types import Arguments, CallStart, Event, Json, Reasoning, Recast, Text
from rightcall.workspace.allow_rules import AllowRule
from rightcall.workspace.approval import Approval, Permission
from rightcall.workspace.file_edits import EditLog, undo
from rightcall.workspace.space import Workspace

PLAN = "\n\n(Plan only: read what you need, change nothing, and answer with the plan.)"
GO_ON = "Go on with the task."
_LIVE = (Text, Reasoning, CallStart, Arguments, Recast)


class Question(NamedTuple):
    """A question to the user: may this call run? `rule` is what the answer "always" would allow."""

    invocation: Invocation
    rule: AllowRule | None
    answer: Future[Permission]


Item = Event | Json | Question


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the agent. With `asks` the user can be asked; `fields` are added to each request."""

    servers: Sequence[str] = ()
    guard: str = "full"
    max_turns: int = 50
    seconds: float | None = None
    context: int | None = None
    system: str = ""
    fields: Json = {}
    rules: Sequence[AllowRule] = ()
    yes: bool = False
    asks: bool = True
    plans: bool = False


class RunSession:
    """A conversation with an agent in a workspace.

    `start_task` starts a task, `items` iterates over what happens, `stop` cancels it, and `finish` returns the outcome.
    One task runs at a time."""

    def __init__(self, backend: BaseBackend, space: Workspace, journal: RunJournal, settings: SessionSettings) -> None:
        self._backend, self._space, self._journal, self._settings = backend, space, journal, settings
        self._queue: SimpleQueue[Item | None] = SimpleQueue()
        self._thread = LoopThread()
        self._running: Future[None] | None = None
        self._cancel: Callable[[], object] = lambda: None

    def __enter__(self) -> Self:
        self._thread.__enter__()
        try:
            ready: Future[list[Toolset]] = Future()
            self._holding = self._thread.start(
                self._hold_connections(ready)
            )  # an unreferenced task would be garbage collected
            self._make_runner(Toolset(self._space.tools, *ready.result()))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to backend and MCP servers, the thread and the journal. A running task is cancelled."""
        self._thread.__exit__()
        self._journal.close()

    async def _hold_connections(self, ready: Future[list[Toolset]]) -> None:
        """Connect the backend and the MCP servers, set the servers' toolsets, or the error, as the result of `ready`,
        and keep them connected until this task is cancelled."""
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self._backend)
                ready.set_result(await connect_mcp_servers(stack, self._settings.servers))
                await asyncio.Event().wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    def _make_runner(self, tools: Toolset) -> None:
        """Set `runner` to a new runner with these tools, whose hooks are the notes, the approval and the log of edits.
        It continues the conversation of the journal, if there is one."""
        settings, root = self._settings, self._space.root
        conversation = self._journal.conversation or Conversation(system=settings.system)
        self._edits = EditLog(root, lambda invocation, edit: self._notes.edited(invocation, edit))
        self._tools = tools
        self._notes = RunNotes(self._journal, conversation, self._edits, self._queue.put)
        self._approval = Approval(root, self._ask_user if settings.asks else None, rules=settings.rules)
        self.runner = Runner(
            self._backend,
            tools,
            guard=Guard.of(settings.guard).with_policies(turn_budget(settings.max_turns)),
            conversation=conversation,
            hooks=[self._notes, self._approval, self._edits],
            limits=RunLimits(result=Bounds()),
            context=settings.context,
            seconds=settings.seconds,
            journal=self._journal,
            fields={**settings.fields, "live": True},
        )
        self.set_planning(settings.plans)

    # -- a task --------------------------------------------------------------------------------------------------------

    def set_planning(self, on: bool) -> None:
        """Turn planning on or off. While it is on, only read-only tools are offered to the model, and no other call is
        allowed."""
        self.plans = on
        self._approval.mode = "plan" if on else "bypass" if self._settings.yes else "default"
        reading = [tool.name for tool in self._tools if tool.read_only]
        self.runner.tools = self._tools.scoped(reading) if on else self._tools

    def start_task(self, task: str | None) -> None:
        """Start a task on the session's thread and return at once.

        With None, resume an interrupted task without a new message; if none is interrupted, or a file change was
        undone, send "Go on with the task." as the task."""
        undone = [f"(The user took back your last change of {path}.)" for path in undone_paths(self._journal.notes)]
        if task is None and (undone or self.runner.conversation.status != "open"):
            task = GO_ON
        self._notes.task(task or GO_ON)
        message = None if task is None else "\n".join([*undone, task]) + (PLAN if self.plans else "")
        self._running = self._thread.start(self._run_task(message))
        self._running.add_done_callback(lambda _: self._queue.put(None))

    async def _run_task(self, task: str | None) -> None:
        """Run a task (None: resume), and put its events into the queue and the journal. A cancellation or a failing
        server ends it with a note, and is not raised."""
        loop, own = asyncio.get_running_loop(), asyncio.current_task()
        assert own is not None
        self._cancel = lambda: loop.call_soon_threadsafe(own.cancel)
        try:
            async with aclosing(self.runner.events(task)) as events:
                async for event in events:
                    if isinstance(event, _LIVE):
                        self._queue.put(event)
                    self._notes.event(event)
        except asyncio.CancelledError:
            self._notes.over("cancelled", "you stopped it")
        except BackendError as error:
            self._notes.over("failed", str(error))

    def items(self) -> Iterator[Item]:
        """Yield events, notes and questions, as they come, until the task is over. If Ctrl-C interrupts the loop, call
        this again."""
        while self._running is not None and not (self._running.done() and self._queue.empty()):
            item = self._queue.get()
            if item is not None:
                yield item

    def stop(self) -> None:
        """Request the cancellation of the running task and return at once. Its changes to files are kept."""
        self._cancel()

    def finish(self) -> Json:
        """Wait for the end of the task and return its last note, which has the outcome. Raises the error that ended the
        task, if there is one."""
        assert self._running is not None
        self._running.result()
        return self._journal.notes[-1]

    async def _ask_user(self, invocation: Invocation) -> Permission:
        """Put a question about a call into the queue, wait for the answer, record and return it. A call that is known
        to fail gets "yes" without a question."""
        if self._edits.fails(invocation):
            return "yes"
        rule = AllowRule.offered(invocation.tool.name, invocation.arguments, self._space.root)
        question = Question(invocation, rule, Future())
        self._queue.put(question)
        answer = await asyncio.wrap_future(question.answer)
        self._notes.permission_answered(invocation, answer)
        return answer

    def undo(self) -> str:
        """Undo the last file change of this run, between two tasks, and return a message for the user. Raises
        `ToolError` if it cannot be undone, `CallerError` if there is none."""
        return undo_last_edit(self._journal, self._space)


def undo_last_edit(journal: RunJournal, space: Workspace) -> str:
    """Undo the last change that this run made to a file, record that, and return a message for the user.

    Raises `ToolError` if it cannot be undone, `CallerError` if there is none.
    """
    edits = standing_edits(journal.notes)
    if not edits:
        raise CallerError("there is nothing to undo: this run changed no file by write_file or edit_file")
    message = undo(space.root, edits[-1])
    journal.note({"event": "undone", "time": round(time.time(), 3), "path": edits[-1].path})
    return message
