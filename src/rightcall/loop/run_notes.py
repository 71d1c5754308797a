"""What happened in a run, as plain JSON objects that are kept in its journal and shown while it goes on.

    {"event": "call", "name": "edit_file", "arguments": {...}, ...}
    {"event": "result", "name": "edit_file", "kind": "completed", "text": "edited a.py (line 3)", ...}

| event       | what it says                                                                      |
|-------------|-----------------------------------------------------------------------------------|
| `task`      | the user's words                                                                  |
| `text`, `reasoning` | what the model wrote until something else came                            |
| `problem`   | what is wrong with its answer as a whole                                          |
| `call`      | a call as it was read, with its repairs and problems                              |
| `start`     | a call is about to run, or to be asked about                                      |
| `diff`      | what it would change in a file                                                    |
| `asked`     | what the user answered                                                            |
| `edited`    | a file was changed; holds what undoes it                                          |
| `result`    | what became of a call                                                             |
| `guard`     | a policy spoke                                                                    |
| `turn`      | an answer of the model is over: its tokens and seconds                            |
| `over`      | how the run ended, and what it cost                                               |
| `undone`    | the last change of a file was taken back                                          |
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from rightcall.dispatching.hook import Hook, Invocation
from rightcall.dispatching.result import Kind, Result, said
from rightcall.dispatching.trace import Intervention
from rightcall.errors import ToolTimedOut
from rightcall.loop.conversation import Conversation, Spent
from rightcall.loop.run_journal import RunJournal
from rightcall.loop.task_runner import CallRan, Over, RunEvent
from rightcall.types import CallEnd, Done, Json, Problem, Reasoning, Recast, Text, to_json
from rightcall.workspace.approval import Denial, Permission
from rightcall.workspace.file_edits import EditLog, FileEdit

Told = Callable[[Json], None]


class RunNotes(Hook):
    """Notes what happens: the events of a run are given to `event`, its calls are seen as a hook, the first of all.
    `told` is told each note, when it is in the journal."""

    def __init__(self, journal: RunJournal, conversation: Conversation, edits: EditLog, told: Told) -> None:
        self._journal, self._conversation, self._edits, self._told = journal, conversation, edits, told
        self._text: list[Text | Reasoning] = []
        self._ended: set[str] = set()
        self._spent, self._before = conversation.spent, conversation.spent
        self._began = time.monotonic()

    def task(self, text: str) -> None:
        """A new task begins, or what was broken off goes on."""
        self._began, self._before = time.monotonic(), self._conversation.spent
        self.note("task", text=text)

    def note(self, event: str, **fields: object) -> None:
        note: Json = {"event": event, "time": round(time.time(), 3), **fields}
        self._journal.note(note)
        self._told(note)

    # -- what the model says -------------------------------------------------------------------------------------------

    def event(self, event: RunEvent) -> None:
        if isinstance(event, Text | Reasoning):
            self._text.append(event)
        elif isinstance(event, Done):
            self._text.append(Text(event.text))
        elif isinstance(event, Recast):
            self._recast(event)
        elif isinstance(event, CallEnd):
            self._flush()
            self.note("call", **to_json(event.call))
        else:
            self._settled(event)

    def _settled(self, event: RunEvent) -> None:
        if isinstance(event, Problem):
            if event.call is None:
                self._flush()
                self.note("problem", code=event.code, message=event.message, blocking=event.blocking)
        elif isinstance(event, Intervention):
            self._flush_turn()
            self.note("guard", policy=event.policy, action=event.action, reason=event.reason)
        elif isinstance(event, CallRan):
            self._flush_turn()
            self._result(event.result)
        elif isinstance(event, Over):
            self.over(event.status, event.reason, event.answer)

    def _recast(self, event: Recast) -> None:
        """The last so many characters were something else."""
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
        kind, pieces = "text", list[str]()
        for each in self._text:
            of = "reasoning" if isinstance(each, Reasoning) else "text"
            if of != kind:
                self._say(kind, pieces)
                kind, pieces = of, []
            pieces.append(each.text)
        self._say(kind, pieces)
        self._text = []

    def _say(self, kind: str, pieces: list[str]) -> None:
        if text := "".join(pieces):
            self.note(kind, text=text)

    def _flush_turn(self) -> None:
        """Whatever is noted of a turn comes behind what was said in it."""
        self._flush()
        now = self._conversation.spent
        if now.turns > self._spent.turns:
            self.note("turn", **_cost(self._spent, now), seconds=round(now.seconds - self._spent.seconds, 3))
            self._spent = now

    def over(self, status: str, reason: str = "", answer: str = "") -> None:
        """The run has ended. What it cost is that of this task alone."""
        self._flush_turn()
        now, before = self._conversation.spent, self._before
        counted = {"turns": now.turns - before.turns, "calls": now.calls - before.calls, **_cost(before, now)}
        seconds = round(time.monotonic() - self._began, 3)
        self.note("over", status=status, reason=reason, answer=answer, **counted, seconds=seconds)

    # -- what becomes of its calls -------------------------------------------------------------------------------------

    def before(self, invocation: Invocation) -> None:
        self._flush_turn()
        self.note("start", id=invocation.call.id, name=invocation.tool.name, read_only=invocation.tool.read_only)
        edit = self._edits.preview(invocation)
        if edit is not None:
            self.note("diff", id=invocation.call.id, path=edit.path, diff=edit.diff)

    def asked(self, invocation: Invocation, answer: Permission) -> None:
        words = answer.words if isinstance(answer, Denial) else ""
        said = "no" if isinstance(answer, Denial) else str(answer)
        self.note("asked", id=invocation.call.id, answer=said, words=words)

    def edited(self, invocation: Invocation, edit: FileEdit) -> None:
        kept = msgspec.to_builtins(edit)
        del kept["diff"]  # noted before
        self.note("edited", id=invocation.call.id, **kept)

    def after(self, invocation: Invocation, result: Result) -> None:
        self._result(result)

    def cleanup(self, invocation: Invocation, error: BaseException) -> None:
        kind: Kind = "timed_out" if isinstance(error, ToolTimedOut) else "failed"
        kind = "cancelled" if isinstance(error, asyncio.CancelledError) else kind
        text = "it was cancelled; it may have done a part of its work" if kind == "cancelled" else said(error)
        self._result(Result(invocation.call, text, True, kind, text))

    def _result(self, result: Result) -> None:
        if result.id in self._ended:
            return
        self._ended.add(result.id)
        fields = {"name": result.name, "kind": result.kind, "error": result.error, "text": result.text}
        self.note("result", id=result.id, **fields, reason=result.reason, seconds=round(result.duration, 3))


def _cost(before: Spent, now: Spent) -> Json:
    return {"prompt": now.prompt - before.prompt, "completion": now.completion - before.completion}


# -- undoing -----------------------------------------------------------------------------------------------------------


def edits_of(notes: list[Json]) -> list[FileEdit]:
    """The changes of files that these notes tell of and that were not undone, in order."""
    found: list[FileEdit] = []
    for note in notes:
        if note["event"] == "edited":
            found.append(msgspec.convert({"diff": "", **note}, FileEdit))
        elif note["event"] == "undone" and found:
            found.pop()
    return found


def untold(notes: list[Json]) -> list[str]:
    """The files whose last change was undone since the model was last spoken to."""
    paths: list[str] = []
    for note in notes:
        if note["event"] == "undone":
            paths.append(str(note["path"]))
        elif note["event"] == "task":
            paths = []
    return paths
