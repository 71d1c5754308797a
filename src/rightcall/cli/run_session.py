"""An agent at work on a thread of its own. What happens comes out in order on the thread of the terminal, questions
among it, so that one thread alone writes and asks.

    with RunSession(...) as session:
        session.begin("Rename the function.")
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

from rightcall.backends.base import BaseBackend
from rightcall.backends.loop_thread import LoopThread
from rightcall.cli.capture_tools import mcp_tools
from rightcall.dispatching.bounded_output import Bounds
from rightcall.dispatching.hook import Invocation
from rightcall.dispatching.invoke import RunLimits
from rightcall.errors import BackendError, CallerError
from rightcall.guard.judgement import Guard
from rightcall.guard.policies import turn_budget
from rightcall.loop.conversation import Conversation
from rightcall.loop.task_runner import RunJournal, Runner, RunNotes, edits_of, untold
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
    """Somebody is to say whether this call may run, and what an "always" would allow."""

    invocation: Invocation
    rule: AllowRule | None
    answer: Future[Permission]


Item = Event | Json | Question


class SessionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the agent works. With `asks` somebody can be asked; `fields` are those of each request."""

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
    """One conversation with an agent in a workspace. `begin` starts a task, `items` is what happens meanwhile, `stop`
    ends it early, `finish` gives how it ended. Nothing is asked of two tasks at a time."""

    def __init__(self, backend: BaseBackend, space: Workspace, journal: RunJournal, how: SessionSettings) -> None:
        self._backend, self._space, self._journal, self._how = backend, space, journal, how
        self._queue: SimpleQueue[Item | None] = SimpleQueue()
        self._thread = LoopThread()
        self._running: Future[None] | None = None
        self._cancel: Callable[[], object] = lambda: None

    def __enter__(self) -> Self:
        self._thread.__enter__()
        try:
            ready: Future[list[Toolset]] = Future()
            self._holding = self._thread.start(self._hold(ready))  # a task that nobody holds is thrown away
            self._make(Toolset(self._space.tools, *ready.result()))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends what is still open: servers, connections, the journal."""
        self._thread.__exit__()
        self._journal.close()

    async def _hold(self, ready: Future[list[Toolset]]) -> None:
        """Servers and connections belong to the task that opened them, so one task holds them all."""
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(self._backend)
                ready.set_result(await mcp_tools(stack, self._how.servers))
                await asyncio.Event().wait()
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    def _make(self, tools: Toolset) -> None:
        how, root = self._how, self._space.root
        conversation = self._journal.conversation or Conversation(system=how.system)
        self._edits = EditLog(root, lambda invocation, edit: self._notes.edited(invocation, edit))
        self._tools = tools
        self._notes = RunNotes(self._journal, conversation, self._edits, self._queue.put)
        self._approval = Approval(root, self._ask if how.asks else None, rules=how.rules)
        self.runner = Runner(
            self._backend,
            tools,
            guard=Guard.of(how.guard).with_policies(turn_budget(how.max_turns)),
            conversation=conversation,
            hooks=[self._notes, self._approval, self._edits],
            limits=RunLimits(result=Bounds()),
            context=how.context,
            seconds=how.seconds,
            journal=self._journal,
            fields={**how.fields, "live": True},
        )
        self.plan(how.plans)

    # -- a task --------------------------------------------------------------------------------------------------------

    def plan(self, on: bool) -> None:
        """While planning nothing is changed, and the model has nothing to change anything with."""
        self.plans = on
        self._approval.mode = "plan" if on else "bypass" if self._how.yes else "default"
        reading = [tool.name for tool in self._tools if tool.read_only]
        self.runner.tools = self._tools.scoped(reading) if on else self._tools

    def begin(self, task: str | None) -> None:
        """The user says this; None goes on with what was broken off."""
        undone = [f"(The user took back your last change of {path}.)" for path in untold(self._journal.notes)]
        if task is None and (undone or self.runner.conversation.status != "open"):
            task = GO_ON
        self._notes.task(task or GO_ON)
        said = None if task is None else "\n".join([*undone, task]) + (PLAN if self.plans else "")
        self._running = self._thread.start(self._turn(said))
        self._running.add_done_callback(lambda _: self._queue.put(None))

    async def _turn(self, task: str | None) -> None:
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
        """What happens until the task is over. May be broken off, by Ctrl-C, and asked for again."""
        while self._running is not None and not (self._running.done() and self._queue.empty()):
            item = self._queue.get()
            if item is not None:
                yield item

    def stop(self) -> None:
        """Ends the task as soon as it can; what was done is kept."""
        self._cancel()

    def finish(self) -> Json:
        """How it ended: the last note. Raises what broke it."""
        assert self._running is not None
        self._running.result()
        return self._journal.notes[-1]

    async def _ask(self, invocation: Invocation) -> Permission:
        if self._edits.fails(invocation):
            return "yes"
        rule = AllowRule.offered(invocation.tool.name, invocation.arguments, self._space.root)
        question = Question(invocation, rule, Future())
        self._queue.put(question)
        answer = await asyncio.wrap_future(question.answer)
        self._notes.asked(invocation, answer)
        return answer

    def undo(self) -> str:
        """Takes back the last change of a file, between two tasks. Raises as `take_back`."""
        return take_back(self._journal, self._space)


def take_back(journal: RunJournal, space: Workspace) -> str:
    """The last change of a file that this run made is undone, and noted; says so. Raises `ToolError` where it cannot be
    undone, `CallerError` where there is none."""
    edits = edits_of(journal.notes)
    if not edits:
        raise CallerError("there is nothing to undo: this run changed no file by write_file or edit_file")
    said = undo(space.root, edits[-1])
    journal.note({"event": "undone", "time": round(time.time(), 3), "path": edits[-1].path})
    return said
