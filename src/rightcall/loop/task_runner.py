"""`Runner`: the guarded loop of model, calls and results, with a journal that a killed run continues from.

{"event": "call", "name": "edit_file", "arguments": {...}, ...}
{"event": "result", "name": "edit_file", "kind": "completed", "text": "edited a.py (line 3)", ...}
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rightcall.backends.base import BaseBackend, LoopThread, Streaming
from rightcall.backends.request import Request
from rightcall.dispatching.dispatcher import dispatch
from rightcall.dispatching.hook import Hook, HookLike, Invocation
from rightcall.dispatching.invoke import RunLimits
from rightcall.dispatching.result import Kind, Result, describe_error, not_run_result
from rightcall.dispatching.trace import Intervention, Trace
from rightcall.errors import CallerError, DispatchStopped, FileFailed, ToolTimedOut
from rightcall.guard.judgement import Guard, Judgement, shorten_results
from rightcall.guard.turn import Turn
from rightcall.loop.conversation import Conversation, Spent, Status, Summary, fit
from rightcall.storage.file_kinds import existing, json_lines
from rightcall.storage.journal import Journal
from rightcall.storage.jsonl import LineFault, read_rows
from rightcall.tools.toolset import Tools
from rightcall.types import CallEnd, Done, Event, Json, Problem, Reasoning, Recast, Reply, Text, to_json
from rightcall.workspace.approval import Denial, Permission
from rightcall.workspace.file_edits import EditLog, FileEdit

NoteListener = Callable[[Json], None]


class RunNotes(Hook):
    """Writes the events of a run to its journal; it is also the first hook of the run.

    `listener` is called with each note after it was written."""

    def __init__(self, journal: RunJournal, conversation: Conversation, edits: EditLog, listener: NoteListener) -> None:
        self._journal, self._conversation, self._edits, self._listener = journal, conversation, edits, listener
        self._text: list[Text | Reasoning] = []
        self._ended: set[str] = set()
        self._spent, self._before = conversation.spent, conversation.spent
        self._started = time.monotonic()

    def task(self, text: str) -> None:
        """Write a note with the `text` of a task that begins, or of an interrupted one that continues. The time and the
        cost in the note of its end count from here."""
        self._started, self._before = time.monotonic(), self._conversation.spent
        self.note("task", text=text)

    def note(self, event: str, **fields: object) -> None:
        """Append a note with the name of the `event`, these fields and the time (seconds since 1970) to the journal,
        and pass it to the listener."""
        note: Json = {"event": event, "time": round(time.time(), 3), **fields}
        self._journal.note(note)
        self._listener(note)

    # -- events of the reply -------------------------------------------------------------------------------------------

    def event(self, event: RunEvent) -> None:
        """Write the note of one event of the run, if the journal has one for it. Text and reasoning are collected, and
        written before the note of the next other event."""
        if isinstance(event, Text | Reasoning):
            self._text.append(event)
        elif isinstance(event, Done):
            self._text.append(Text(event.text))
        elif isinstance(event, Recast):
            self._reclassify_last_text(event)
        elif isinstance(event, CallEnd):
            self._flush()
            self.note("call", **to_json(event.call))
        else:
            self._note_outcome(event)

    def _note_outcome(self, event: RunEvent) -> None:
        """Write the note of a problem that belongs to no call, an intervention, a result or the end of the run, after
        the text collected so far; ignore other events."""
        if isinstance(event, Problem):
            if event.call is None:
                self._flush()
                self.note("problem", code=event.code, message=event.message, blocking=event.blocking)
        elif isinstance(event, Intervention):
            self._flush_turn()
            self.note("guard", policy=event.policy, action=event.action, reason=event.reason)
        elif isinstance(event, CallRan):
            self._flush_turn()
            self._note_result(event.result)
        elif isinstance(event, Over):
            self.over(event.status, event.reason, event.answer)

    def _reclassify_last_text(self, event: Recast) -> None:
        """Take the last `event.chars` characters out of the collected text, or for the kind "thought" out of the
        collected reasoning. For the kind "reasoning" they are added again as reasoning; for other kinds they were part
        of a call and are dropped."""
        left, kind = event.chars, Reasoning if event.kind == "thought" else Text
        moved: list[str] = []
        for at in range(len(self._text) - 1, -1, -1):
            each = self._text[at]
            if left <= 0 or not isinstance(each, kind):
                break
            cut = max(0, len(each.text) - left)
            left -= len(each.text) - cut
            moved.append(each.text[cut:])
            self._text[at] = kind(each.text[:cut])
        if event.kind == "reasoning":
            self._text.append(Reasoning("".join(reversed(moved))))

    def _flush(self) -> None:
        """Write the collected text and reasoning, one note for each run of pieces of the same kind, and empty the
        collection."""
        kind, pieces = "text", list[str]()
        for each in self._text:
            of = "reasoning" if isinstance(each, Reasoning) else "text"
            if of != kind:
                self._note_text(kind, pieces)
                kind, pieces = of, []
            pieces.append(each.text)
        self._note_text(kind, pieces)
        self._text = []

    def _note_text(self, kind: str, pieces: list[str]) -> None:
        """Write a note of the kind "text" or "reasoning" with the joined pieces; nothing if they are empty."""
        if text := "".join(pieces):
            self.note(kind, text=text)

    def _flush_turn(self) -> None:
        """Write the collected text, then the cost of the turn if one has ended since the last such note."""
        self._flush()
        now = self._conversation.spent
        if now.turns > self._spent.turns:
            self.note("turn", **_token_cost(self._spent, now), seconds=round(now.seconds - self._spent.seconds, 3))
            self._spent = now

    def over(self, status: str, reason: str = "", answer: str = "") -> None:
        """Write the note that the run has ended, with the turns, calls, tokens and seconds of this task alone."""
        self._flush_turn()
        now, before = self._conversation.spent, self._before
        counted = {"turns": now.turns - before.turns, "calls": now.calls - before.calls, **_token_cost(before, now)}
        seconds = round(time.monotonic() - self._started, 3)
        self.note("over", status=status, reason=reason, answer=answer, **counted, seconds=seconds)

    # -- hook methods, for calls ---------------------------------------------------------------------------------------

    def before(self, invocation: Invocation) -> None:
        """Write a note that a call starts, and one with the diff of the file that it will change, if any. Called as a
        hook; returns None, so that the call runs."""
        self._flush_turn()
        self.note("start", id=invocation.call.id, name=invocation.tool.name, read_only=invocation.tool.read_only)
        edit = self._edits.preview(invocation)
        if edit is not None:
            self.note("diff", id=invocation.call.id, path=edit.path, diff=edit.diff)

    def permission_answered(self, invocation: Invocation, answer: Permission) -> None:
        """Write a note with the user's answer to a request for permission: "no" with the user's words, or the
        permission."""
        name, words = ("no", answer.words) if isinstance(answer, Denial) else (str(answer), "")
        self.note("asked", id=invocation.call.id, answer=name, words=words)

    def edited(self, invocation: Invocation, edit: FileEdit) -> None:
        """Write a note of a change of a file by a call, with what is needed to undo it."""
        kept = msgspec.to_builtins(edit)
        del kept["diff"]  # noted before
        self.note("edited", id=invocation.call.id, **kept)

    def after(self, invocation: Invocation, result: Result) -> None:
        """Write the note of the result of a call that ran or was skipped."""
        self._note_result(result)

    def cleanup(self, invocation: Invocation, error: BaseException) -> None:
        """Write the note of the result of a call that failed, timed out or was cancelled, by the type of `error`."""
        kind: Kind = "timed_out" if isinstance(error, ToolTimedOut) else "failed"
        kind = "cancelled" if isinstance(error, asyncio.CancelledError) else kind
        text = "it was cancelled; it may have done a part of its work" if kind == "cancelled" else describe_error(error)
        self._note_result(Result(invocation.call, text, True, kind, text))

    def _note_result(self, result: Result) -> None:
        """Write the note of a result; nothing if the journal has one for this call id already."""
        if result.id in self._ended:
            return
        self._ended.add(result.id)
        fields = {"name": result.name, "kind": result.kind, "error": result.error, "text": result.text}
        self.note("result", id=result.id, **fields, reason=result.reason, seconds=round(result.duration, 3))


def _token_cost(before: Spent, now: Spent) -> Json:
    """Return the prompt and completion tokens that were spent between two states."""
    return {"prompt": now.prompt - before.prompt, "completion": now.completion - before.completion}


# -- undoing -----------------------------------------------------------------------------------------------------------


def standing_edits(notes: list[Json]) -> list[FileEdit]:
    """Return the changes of files in these notes that were not undone, oldest first. A note of an undo removes the
    latest change before it."""
    found: list[FileEdit] = []
    for note in notes:
        if note["event"] == "edited":
            found.append(msgspec.convert({"diff": "", **note}, FileEdit))
        elif note["event"] == "undone" and found:
            found.pop()
    return found


def undone_paths(notes: list[Json]) -> list[str]:
    """Return the paths of the files whose changes were undone since the last task, in order; the model does not know of
    it yet."""
    paths: list[str] = []
    for note in notes:
        if note["event"] == "undone":
            paths.append(str(note["path"]))
        elif note["event"] == "task":
            paths = []
    return paths


KIND = json_lines("journal of a run", "run_journal", 1)


class RunJournal:
    """The journal file of a run. `conversation` is what it held, None for a new one; `notes` are the notes in it."""

    def __init__(self, path: str | Path) -> None:
        self._file = Journal(path, KIND, torn="cut", alone=True)
        self.conversation: Conversation | None = None
        self.notes: list[Json] = []
        self._written = 0
        if self._file.is_empty:
            self._file.append({"run_journal": 1})
        else:
            self.conversation, self.notes = _read_journal(Path(path))
            self._written = 0 if self.conversation is None else len(self.conversation.messages)
            if self.conversation is not None:  # the state with which it continues
                self._file.append({"all": self.conversation.messages, "state": _state(self.conversation)})

    def write(self, conversation: Conversation) -> None:
        """Append the messages that are new since the last write, and the state of the conversation, in one line, which
        is written completely or not at all."""
        new = conversation.messages[self._written :]
        self._file.append({"new": new, "state": _state(conversation)})
        self._written = len(conversation.messages)

    def note(self, note: Json) -> None:
        """Append a note to the journal and to `notes`; notes are not part of the conversation."""
        self._file.append(note)
        self.notes.append(note)

    def close(self) -> None:
        self._file.close()


def _state(conversation: Conversation) -> Json:
    """Return everything of a conversation except the messages, as JSON data."""
    return {key: value for key, value in conversation.to_json().items() if key != "messages"}


def read_notes(path: str | Path) -> Iterator[Json]:
    """Yield the notes of a run in order; the run may still be writing them. Raises `FileFailed` for a missing file, one
    of another kind, and an invalid line other than an incomplete last one."""
    existing(Path(path), KIND)
    for _, row in _read_rows(Path(path)):
        if "event" in row:
            yield row


def _read_journal(path: Path) -> tuple[Conversation | None, list[Json]]:
    """Return the last conversation in a journal and all its notes; the conversation is None if none was written yet.
    Raises `FileFailed` if the file cannot be read or has an invalid line; an incomplete last line is ignored."""
    messages: list[Any] = []
    notes: list[Json] = []
    state: Json = {}
    for _, row in _read_rows(path):
        if "event" in row:
            notes.append(row)
            continue
        messages = list(row["all"]) if "all" in row else messages
        messages += row.get("new", ())
        state = row.get("state", state)
    return Conversation.from_json({**state, "messages": messages}) if state else None, notes


def _read_rows(path: Path) -> Iterator[tuple[int, Json]]:
    """Yield line number and row of each line of a journal; an incomplete last line is left out. Raises `FileFailed` if
    the file cannot be read, and for any other invalid line."""
    for number, row in read_rows(path):
        if not isinstance(row, LineFault):
            yield number, row
        elif not row.torn:
            raise FileFailed(
                f"line {number} of {path} is not a JSON object; the journal of a run has one in every line"
            )


_LIMITS = RunLimits()


class CallRan(msgspec.Struct, frozen=True):
    """The event that a call ran, or was rejected: its `result`."""

    result: Result


class Over(msgspec.Struct, frozen=True):
    """The last event of a run: its `status` ("done", "stopped" or "cancelled"), the `reason`, and the `answer` for
    the user."""

    status: str
    reason: str = ""
    answer: str = ""


RunEvent = Event | Intervention | CallRan | Over


class Runner:
    """The loop of a model, its tools and a guard.

    - `model`: a backend; None for a program that sends the requests itself.
    - `tools`: what may be called, as `parse` takes it.
    - `guard`: "none", "parse", "full" or a `Guard`.
    - `conversation`: the conversation to continue; a new one by default.
    - `system`: the system message of a new one.
    - `choice`: as in `Request`, until a call was made.
    - `parallel`: the model may make several calls at once, and read-only ones run at the same time.
    - `hooks`, `trace`, `limits`: as `dispatch` takes them.
    - `context`: the most tokens of a request; older turns are then shortened, and left out.
    - `summarise`: returns a text about the messages that are left out.
    - `seconds`: the time limit of a task.
    - `journal`: a file that every turn is written to before its calls run; a run that was killed continues from it.
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
            raise CallerError("the journal has a conversation already; do not pass another one, or name a new file")
        self.conversation = conversation or found or Conversation(system=system)
        self.trace = trace
        self._choice, self._parallel, self._hooks, self._limits = choice, parallel, tuple(hooks), limits
        self._context, self._summarise, self._seconds = context, summarise, seconds
        self._fields = dict(fields or {})
        self._requested: Turn | None = None
        self._judged: Judgement | None = None
        self._until: float | None = None

    # -- one step at a time --------------------------------------------------------------------------------------------

    def ask(self, task: str) -> None:
        """Append the `task`, a text of the user, to the conversation and write it to the journal. Raises
        `CallerError` while results are missing."""
        self.conversation.ask(task)
        self._write()

    def next_request(self) -> Request | None:
        """Return the next request for the model, with the history as the guard cuts it, shortened to the limits; None
        when the task is over. New cuts of the guard are recorded and reported to the hooks.

        Raises `CallerError` while results are missing."""
        if self._judged is not None:
            raise CallerError("the calls of the last turn have no results yet; give them first")
        if self.conversation.status != "open":
            return None
        turn = self._requested = self._turn()
        interventions = self.guard.interventions(turn)
        reported = {each.at for each in self.conversation.interventions if each.action == "cut"}
        self._report_interventions([each for each in interventions if each.at not in reported])
        messages = shorten_results(turn, interventions)
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
        """Judge this `reply`, add it to the conversation, and return the judgement. If its `calls` are not empty, run
        them and pass the results to `give`; otherwise the turn is completed here.

        `seconds` is how long the reply took.
        """
        asked, self._requested = self._requested, None
        if asked is None or asked.messages != self.conversation.messages:
            asked = self._turn()
        judged = self.guard.judge(asked.answered(reply))
        self._report_interventions(judged.interventions)
        self.conversation.add(reply, calls=len(judged.calls), seconds=seconds)
        self.conversation.begin(reply.message(), {result.id: result.text for result in judged.results})
        self._judged = judged
        self._write()
        if not judged.calls:
            self.give(())
        return judged

    def give(self, results: Sequence[Result]) -> None:
        """Add the `results` of the calls to the conversation, and end it as done or stopped if the task is over.
        Raises `CallerError` when none are expected."""
        judged, self._judged = self._judged, None
        if judged is None:
            raise CallerError("no results are expected; send the next request and receive its reply first")
        self.conversation.settle(judged.messages(results))
        if judged.over(results):
            stopped = judged.decision == "stop"
            why = "; ".join(dict.fromkeys([each.reason for each in judged.interventions if each.action == "stop"]))
            self.conversation.end("stopped" if stopped else "done", why, judged.answer)
        self._write()

    def _report_interventions(self, interventions: Sequence[Intervention]) -> None:
        """Add interventions to the conversation and the trace, and call `intervened` of each hook that is a `Hook` with
        each of them."""
        self.conversation.interventions += interventions
        if self.trace is not None:
            self.trace.add(interventions)
        for hook in [hook for hook in self._hooks if isinstance(hook, Hook)]:
            for each in interventions:
                hook.intervened(each)

    def close(self) -> None:
        """Close the journal. May be called twice."""
        if self._journal is not None:
            self._journal.close()

    def _turn(self) -> Turn:
        """Return the guard's view of the next turn, with the `tool_choice` to send: after a successful call it is
        "auto", unless the choice of the run is "none"."""
        turn = Turn.of(self.conversation.messages, self.tools, parallel=self._parallel, api="chat")
        made = any(call.outcome == "ok" for call in turn.calls)
        turn.choice = "auto" if made and self._choice != "none" else self._choice
        return turn

    def _write(self) -> None:
        """Write the conversation to the journal, if there is one."""
        if self._journal is not None:
            self._journal.write(self.conversation)

    # -- the whole run -------------------------------------------------------------------------------------------------

    async def run(self, task: str | None = None) -> Over:
        """Run the `task` to its end and return the last event; without a task, continue with the conversation.

        Raises a `BackendError` when the model server fails; the conversation has what was done until then, and can
        continue.
        """
        last = Over("stopped", "nothing was done")
        async for event in self.events(task):
            if isinstance(event, Over):
                last = event
        return last

    def run_sync(self, task: str | None = None) -> Over:
        """Run `run` with this `task` in a program without an event loop."""
        with LoopThread() as thread:
            return thread.run(self.run(task))

    async def events(self, task: str | None = None) -> AsyncGenerator[RunEvent]:
        """Run this `task` and yield what happens: the reply as it streams, interventions, results; `Over` is the last.
        Without a task, continue with the conversation. Out of time, the run is stopped. Raises `CallerError` without a
        model, and a `BackendError` when the model server fails.

        Leaving it early, or cancelling, keeps what was done."""
        if self.model is None:
            raise CallerError(
                "the runner has no model; pass a backend, or take the steps yourself: next_request, receive"
            )
        if task is not None:
            self.ask(task)
        self._until = None if self._seconds is None else asyncio.get_running_loop().time() + self._seconds
        while (request := self._next_request_in_time()) is not None:
            try:
                async with self.model.stream(request) as stream:
                    began = time.monotonic()
                    while (event := await self._next_event(stream)) is not None:
                        yield event
                judged = self.receive(stream.answer, seconds=time.monotonic() - began)
            except TimeoutError:
                if not self._is_late():
                    raise
                continue
            except asyncio.CancelledError:
                self._end_conversation("cancelled", "the run was cancelled")
                raise
            try:
                for intervention in judged.interventions:
                    yield intervention
                for result in [*(await self._run_calls(judged) if judged.calls else ()), *judged.results]:
                    yield CallRan(result)
            finally:
                if self._judged is judged:  # the consumer stopped iterating, or a hook failed
                    self.give([not_run_result(call, "the run was left before it") for call in judged.calls])
        yield Over(self.conversation.status, self.conversation.reason, self.conversation.answer)

    async def _next_event(self, stream: Streaming) -> Event | None:
        """Return the next event of the reply, None at its end. Raises `TimeoutError` when the task is out of time."""
        async with asyncio.timeout_at(self._until):
            return await anext(stream, None)

    def _next_request_in_time(self) -> Request | None:
        """Return the next request. None if the task is over; if its time is over, the conversation is ended as stopped
        first."""
        request = self.next_request()
        if request is not None and self._is_late():
            self._end_conversation("stopped", f"the task took longer than {self._seconds:g} seconds")
            return None
        return request

    def _is_late(self) -> bool:
        """Return whether the time limit of the task has passed; False without one."""
        return self._until is not None and asyncio.get_running_loop().time() >= self._until

    def _end_conversation(self, status: Status, reason: str) -> None:
        """End the conversation with this status and reason, and save it in the journal if there is one."""
        self.conversation.end(status, reason)
        self._write()

    async def _run_calls(self, judged: Judgement) -> Sequence[Result]:
        """Run the calls of the judgement, add their results to the conversation, and return them. Every call has a
        result: a hook that stops the batch ends the conversation as stopped, calls that are out of time get a note, and
        after a cancellation the conversation is ended as cancelled and `CancelledError` is raised again."""
        lost = [not_run_result(call, "it was cancelled") for call in judged.calls]
        results: Sequence[Result]
        try:
            async with asyncio.timeout_at(self._until):
                results = await self._dispatch(judged)
        except DispatchStopped as stopped:
            results = stopped.results
            self.give(results)
            self._end_conversation("stopped", str(stopped))
        except TimeoutError as late:
            results = getattr(late.__cause__, "results", lost)  # the loop ends at the next request: the task is late
            self.give(results)
        except asyncio.CancelledError as cancelled:
            self.give(getattr(cancelled, "results", lost))
            self._end_conversation("cancelled", "the run was cancelled")
            raise
        else:
            self.give(results)
        return results

    async def _dispatch(self, judged: Judgement) -> Sequence[Result]:
        """Run the calls of the judgement with the tools, hooks and limits of the run, and return their results. Raises
        `DispatchStopped` if a hook ends the batch."""
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
    """Run a task to its end and return the last event.

    - `task`: the instructions of the user.
    - `model`, `tools`, `guard`: as in `Runner`.
    - `options`: the other options of a `Runner`.
    """
    return await Runner(model, tools, guard=guard, **options).run(task)


def run_sync(
    task: str, model: BaseBackend, tools: Tools | None = None, *, guard: str | Guard = "full", **options: Any
) -> Over:
    """Run `run` in a program without an event loop: `task`, `model`, `tools`, `guard` and `options` are the same."""
    return Runner(model, tools, guard=guard, **options).run_sync(task)
