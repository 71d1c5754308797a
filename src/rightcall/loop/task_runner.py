"""The loop: ask the model, judge what it says, run its calls, tell it what came of them, until the task is done.

    runner = Runner(Backend(url), tools, guard="full")
    done = await runner.run("Rename the function.")
    done.status, done.answer

Programs with input and output of their own take the steps themselves:

    while (request := runner.next_request()) is not None:
        judged = runner.receive(read(my_client(request), tools=tools))
        runner.give(my_results(judged.calls))
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rightcall.backends.base import BaseBackend, Streaming
from rightcall.backends.loop_thread import LoopThread
from rightcall.backends.request import Request
from rightcall.dispatching.dispatcher import dispatch
from rightcall.dispatching.hook import Hook, HookLike
from rightcall.dispatching.result import Result, not_run
from rightcall.dispatching.run_limits import RunLimits
from rightcall.dispatching.trace import Intervention, Trace
from rightcall.errors import CallerError, DispatchStopped
from rightcall.guard.judgement import Guard, Judgement, cut
from rightcall.guard.turn import Turn
from rightcall.loop.context_window import Summary, fit
from rightcall.loop.conversation import Conversation, Status
from rightcall.loop.run_journal import RunJournal
from rightcall.tools.toolset import Tools
from rightcall.types import Event, Reply

_LIMITS = RunLimits()


class CallRan(msgspec.Struct, frozen=True):
    """The event that a call ran, or was kept from it: its `result`."""

    result: Result


class Over(msgspec.Struct, frozen=True):
    """The last event of a run: how it ended (`status`: "done", "stopped" or "cancelled"), why (`reason`), and what the
    user is to read (`answer`)."""

    status: str
    reason: str = ""
    answer: str = ""


RunEvent = Event | Intervention | CallRan | Over


class Runner:
    """A model, its tools and a guard, in a loop.

    - `model`: a backend; None for a program that asks the model itself.
    - `tools`: what may be called, as `parse` takes it.
    - `guard`: "none", "parse", "full" or a `Guard`.
    - `conversation`: what to go on with; a new one unless given.
    - `system`: the system message of a new one.
    - `choice`: as in `Request`, until a call was made.
    - `parallel`: the model may make several calls at once, and those that change nothing run at the same time.
    - `hooks`, `trace`, `limits`: as `dispatch` takes them.
    - `context`: the most tokens of a request; older turns are then shortened, and left out.
    - `summarise`: says in a text what was left out.
    - `seconds`: how long a task may take.
    - `journal`: a file that every turn is written to before its calls run; a run that was killed goes on from it.
    - `fields`: more fields of each `Request`: `mode`, `temperature`, `max_tokens` ...
    """

    def __init__(
        self,
        model: BaseBackend | None,
        tools: Tools | None,
        *,
        guard: str | Guard = "full",
        conversation: Conversation | None = None,
        system: str = "",
        choice: str = "auto",
        parallel: bool = True,
        hooks: Iterable[HookLike] = (),
        trace: Trace | None = None,
        limits: RunLimits = _LIMITS,
        context: int | None = None,
        summarise: Summary | None = None,
        seconds: float | None = None,
        journal: str | Path | RunJournal | None = None,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        if conversation is not None and system:
            raise CallerError("a conversation has its own system message; pass one or the other")
        self.model, self.guard = model, Guard.of(guard)
        self.tools = self.guard.tools(tools)
        self._journal = RunJournal(journal) if isinstance(journal, str | Path) else journal
        found = self._journal.conversation if self._journal else None
        if conversation is not None and found is not None and conversation is not found:
            raise CallerError("the journal holds a conversation already; leave the other out, or name a new file")
        self.conversation = conversation or found or Conversation(system=system)
        self.trace = trace
        self._choice, self._parallel, self._hooks, self._limits = choice, parallel, tuple(hooks), limits
        self._context, self._summarise, self._seconds = context, summarise, seconds
        self._fields = dict(fields or {})
        self._asked: Turn | None = None
        self._judged: Judgement | None = None
        self._until: float | None = None

    # -- one step at a time -------------------------------------------------------------------------------------------

    def ask(self, task: str) -> None:
        """The user says what is to be done: the `task`, in words."""
        self.conversation.ask(task)
        self._write()

    def next_request(self) -> Request | None:
        """What to ask the model next; None when the task is over. Raises `CallerError` while results are missing."""
        if self._judged is not None:
            raise CallerError("the calls of the last turn have no results yet; give them first")
        if self.conversation.status != "open":
            return None
        turn = self._asked = self._turn()
        said = self.guard.interventions(turn)
        told = {each.at for each in self.conversation.interventions if each.action == "cut"}
        self._tell([each for each in said if each.at not in told])
        messages = cut(turn, said)
        if self._context is not None:
            messages = fit(messages, self._context, summarise=self._summarise)
        return Request(
            messages=messages,
            tools=self.tools,
            choice=turn.choice,
            parallel=turn.parallel,
            ids=self.conversation.ids,
            **self._fields,
        )

    def receive(self, reply: Reply, *, seconds: float = 0.0) -> Judgement:
        """What is to become of this `reply`; its `calls` are to be run, and their results given. `seconds` is how long
        it took."""
        asked, self._asked = self._asked, None
        if asked is None or asked.messages != self.conversation.messages:
            asked = self._turn()
        judged = self.guard.judge(asked.answered(reply))
        self._tell(judged.interventions)
        self.conversation.add(reply, calls=len(judged.calls), seconds=seconds)
        self.conversation.begin(reply.message(), {result.id: result.text for result in judged.results})
        self._judged = judged
        self._write()
        if not judged.calls:
            self.give(())
        return judged

    def give(self, results: Sequence[Result]) -> None:
        """The `results` of the calls that were to run. Raises `CallerError` where none were waited for."""
        judged, self._judged = self._judged, None
        if judged is None:
            raise CallerError("no results are waited for; ask the model first")
        self.conversation.settle(judged.messages(results))
        if judged.over(results):
            stopped = judged.decision == "stop"
            why = "; ".join(dict.fromkeys([each.reason for each in judged.interventions if each.action == "stop"]))
            self.conversation.end("stopped" if stopped else "done", why, judged.answer)
        self._write()

    def _tell(self, interventions: Sequence[Intervention]) -> None:
        """Into the conversation, the trace, and every hook that wants to know."""
        self.conversation.interventions += interventions
        if self.trace is not None:
            self.trace.add(interventions)
        for hook in [hook for hook in self._hooks if isinstance(hook, Hook)]:
            for each in interventions:
                hook.intervened(each)

    def close(self) -> None:
        """Lets go of the journal. May be called twice."""
        if self._journal is not None:
            self._journal.close()

    def _turn(self) -> Turn:
        turn = Turn.of(self.conversation.messages, self.tools, parallel=self._parallel, api="chat")
        made = any(call.outcome == "ok" for call in turn.calls)
        turn.choice = "auto" if made and self._choice != "none" else self._choice
        return turn

    def _write(self) -> None:
        if self._journal is not None:
            self._journal.write(self.conversation)

    # -- the whole run ------------------------------------------------------------------------------------------------

    async def run(self, task: str | None = None) -> Over:
        """Runs the `task` to its end; without one, goes on with what the conversation holds. Raises a `BackendError`
        where the model cannot be asked; what was done until then is in the conversation, and it can go on."""
        last = Over("stopped", "nothing was done")
        async for event in self.events(task):
            if isinstance(event, Over):
                last = event
        return last

    def run_sync(self, task: str | None = None) -> Over:
        """`run` for programs without an event loop; `task` as there."""
        with LoopThread() as thread:
            return thread.run(self.run(task))

    async def events(self, task: str | None = None) -> AsyncGenerator[RunEvent]:
        """The run of this `task` as it happens: what the model says, what the guard does, what calls come to; `Over`
        is the last. Leaving it early, or cancelling, keeps what was done."""
        if self.model is None:
            raise CallerError(
                "the runner has no model; pass a backend, or take the steps yourself: next_request, receive"
            )
        if task is not None:
            self.ask(task)
        self._until = None if self._seconds is None else asyncio.get_running_loop().time() + self._seconds
        while (request := self._in_time()) is not None:
            try:
                async with self.model.stream(request) as stream:
                    began = time.monotonic()
                    while (event := await self._next(stream)) is not None:
                        yield event
                judged = self.receive(stream.answer, seconds=time.monotonic() - began)
            except TimeoutError:
                if not self._is_late():
                    raise
                continue
            except asyncio.CancelledError:
                self._end("cancelled", "the run was cancelled")
                raise
            try:
                for intervention in judged.interventions:
                    yield intervention
                for result in [*(await self._act(judged) if judged.calls else ()), *judged.results]:
                    yield CallRan(result)
            finally:
                if self._judged is judged:  # whoever listened has left, or a hook has failed
                    self.give([not_run(call, "the run was left before it") for call in judged.calls])
        yield Over(self.conversation.status, self.conversation.reason, self.conversation.answer)

    async def _next(self, stream: Streaming) -> Event | None:
        async with asyncio.timeout_at(self._until):
            return await anext(stream, None)

    def _in_time(self) -> Request | None:
        request = self.next_request()
        if request is not None and self._is_late():
            self._end("stopped", f"the task took longer than {self._seconds:g} seconds")
            return None
        return request

    def _is_late(self) -> bool:
        return self._until is not None and asyncio.get_running_loop().time() >= self._until

    def _end(self, status: Status, reason: str) -> None:
        self.conversation.end(status, reason)
        self._write()

    async def _act(self, judged: Judgement) -> Sequence[Result]:
        """Runs the calls. However that ends, each has a result, and the history holds it."""
        lost = [not_run(call, "it was cancelled") for call in judged.calls]
        results: Sequence[Result]
        try:
            async with asyncio.timeout_at(self._until):
                results = await self._dispatched(judged)
        except DispatchStopped as stopped:
            results = stopped.results
            self.give(results)
            self._end("stopped", str(stopped))
        except TimeoutError as late:
            results = getattr(late.__cause__, "results", lost)  # the loop ends by itself: it is late
            self.give(results)
        except asyncio.CancelledError as cancelled:
            self.give(getattr(cancelled, "results", lost))
            self._end("cancelled", "the run was cancelled")
            raise
        else:
            self.give(results)
        return results

    async def _dispatched(self, judged: Judgement) -> Sequence[Result]:
        return await dispatch(
            judged.calls,
            self.tools or (),
            hooks=self._hooks,
            trace=self.trace,
            limits=self._limits,
            parallel=self._parallel,
        )


async def run(
    task: str, model: BaseBackend, tools: Tools | None = None, *, guard: str | Guard = "full", **options: Any
) -> Over:
    """Runs a task to its end.

    - `task`: what is to be done, in words.
    - `model`, `tools`, `guard`: as in `Runner`.
    - `options`: the others of a `Runner`.
    """
    return await Runner(model, tools, guard=guard, **options).run(task)


def run_sync(
    task: str, model: BaseBackend, tools: Tools | None = None, *, guard: str | Guard = "full", **options: Any
) -> Over:
    """`run` for programs without an event loop: `task`, `model`, `tools`, `guard` and `options` are the same."""
    return Runner(model, tools, guard=guard, **options).run_sync(task)
