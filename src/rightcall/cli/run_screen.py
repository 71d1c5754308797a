"""How a run looks: text as it comes, calls when they run, changes as diffs, results in brief. The same live and later.

`event` is what comes in pieces, `note` what is settled: a run that is shown again has notes alone. All text from
outside passes `visible` and is never read as markup.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import typer
from rich.console import Console
from rich.status import Status
from rich.text import Text as Styled

from rightcall.cli.layout import LABEL, Flow, console, paragraph, row
from rightcall.cli.safe import brief, json_line, visible
from rightcall.cli.show import STYLES, receipt, verdict
from rightcall.types import Arguments, Call, CallStart, Event, Json, Reasoning, Recast, Repair, Text
from rightcall.workspace.definitions import BASH, EDIT_FILE, LIST_DIR, READ_FILE, WRITE_FILE

MOST_DIFF = 200  # lines of a diff
MOST_OUTPUT = 16  # lines of an output
_FILES = (READ_FILE, WRITE_FILE, EDIT_FILE, LIST_DIR)
_DIFF = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}
_SAID_BY_THE_CALL = ("problems", "unknown_tool")
_WAITING = "waiting for the model"


class JsonNotes:
    """The notes as lines of JSON, for programs."""

    def event(self, event: Event) -> None:
        """In pieces, which a program has no use for: the note follows."""

    def note(self, note: Json) -> None:
        typer.echo(json_line(note))

    def pause(self) -> None:
        """Nothing moves."""


class RunScreen:
    """A run in the terminal, or in a file. With `live` the pieces are shown as they come, and their notes not again;
    what was `typed` there is not shown again either."""

    def __init__(self, *, live: bool, typed: bool = False) -> None:
        self._out, self._live, self._typed = console(), live, typed
        self._flow = Flow(self._out)
        self._status = LiveStatus(live)
        self._calls: dict[str, Json] = {}
        self._written = 0

    def event(self, event: Event) -> None:
        if isinstance(event, Text | Reasoning):
            self._status.clear()
            self._said("reasoning" if isinstance(event, Reasoning) else "text", event.text)
        elif isinstance(event, CallStart):
            self._flow.close()
            self._written = 0
            self._status.show(f"writing {brief(event.name, 40)}")
        elif isinstance(event, Arguments):
            self._written += len(event.json)
            self._status.show(f"writing a call, {self._written:,} characters")
        elif isinstance(event, Recast) and event.kind != "thought":
            self.pause()
            self._out.print(f"(the last {event.chars} characters were {event.kind})", style="dim")

    def note(self, note: Json) -> None:
        kind = str(note.get("event"))
        if kind in ("text", "reasoning"):
            if not self._live:
                self._said(kind, str(note["text"]))
            return
        drawn = getattr(self, f"_{kind}", None)
        if drawn is not None:
            self.pause()
            drawn(note)

    def pause(self) -> None:
        """Ends the line, and what moves."""
        self._status.clear()
        self._flow.close()

    def _said(self, kind: str, text: str) -> None:
        self._flow.write(visible(text), STYLES["reasoning" if kind == "reasoning" else "text"])

    # -- notes, each by its name ---------------------------------------------------------------------------------------

    def _task(self, note: Json) -> None:
        if not self._typed:
            paragraph(self._out, visible(str(note["text"])), "bold", label="> ")
        self._status.show(_WAITING)

    def _problem(self, note: Json) -> None:
        label, style = ("problem", "red") if note["blocking"] else ("note", "yellow")
        row(self._out, label, f"{note['code']}: {brief(str(note['message']), 500)}", style)

    def _call(self, note: Json) -> None:
        """A call that may run is shown when it does."""
        self._calls[str(note["id"])] = note
        call = _call_of(note)
        if not call.ok:
            row(self._out, "call", verdict(call))

    def _start(self, note: Json) -> None:
        if not note["read_only"]:
            self._head(str(note["id"]), str(note["name"]))
        self._status.show(f"running {brief(str(note['name']), 40)}")

    def _head(self, id: str, name: str, more: str = "", style: str = "bold") -> None:
        call = self._calls.get(id, {})
        row(self._out, brief(name, 40), Styled(_summary(name, call), style).append(more, "dim"))
        for made in msgspec.convert(call.get("repairs", []), list[Repair]):
            row(self._out, "repair", receipt(made), "yellow")

    def _diff(self, note: Json) -> None:
        lines = visible(str(note["diff"])).split("\n")
        for line in lines[:MOST_DIFF]:
            paragraph(self._out, line, _DIFF.get(line[:1], "default"), label=" " * LABEL)
        if len(lines) > MOST_DIFF:
            paragraph(self._out, f"({len(lines) - MOST_DIFF} more lines)", "dim", label=" " * LABEL)

    def _asked(self, note: Json) -> None:
        answer = visible(str(note["answer"]), one_line=True)
        said = {"yes": "allowed", "no": "not allowed"}.get(answer, f"always allowed: {answer}")
        words = f": {brief(str(note['words']), 300)}" if note.get("words") else ""
        row(self._out, "", said + words, "dim")

    def _result(self, note: Json) -> None:
        id, name, text = str(note["id"]), str(note["name"]), str(note["text"])
        if note["kind"] == "refused" and id in self._calls and not _call_of(self._calls[id]).ok:
            return  # the call itself was shown, with what is wrong with it
        is_bad = bool(note["error"]) or text.startswith("ERROR")
        if name in (READ_FILE, LIST_DIR) and not is_bad:
            self._head(id, name, f"  {_counted(name, text)}", "default")
        else:
            if note["kind"] == "refused" or (name in (READ_FILE, LIST_DIR)):
                self._head(id, name)
            row(self._out, "", _shortened(visible(text)), "red" if is_bad else "dim")
        self._status.show(_WAITING)

    def _guard(self, note: Json) -> None:
        if note["action"] == "refuse" and note["policy"] in _SAID_BY_THE_CALL:
            return
        row(self._out, "guard", f"{note['policy']}: {note['action']}: {brief(str(note['reason']), 300)}", "yellow")

    def _undone(self, note: Json) -> None:
        row(self._out, "undone", brief(str(note["path"]), 300), "yellow")

    def _over(self, note: Json) -> None:
        reason = f"{brief(str(note['reason']), 500)}; " if note.get("reason") else ""
        row(self._out, str(note["status"]), reason + _cost(note), "dim" if note["status"] == "done" else "red")


class LiveStatus:
    """What is being waited for, on a terminal; elsewhere nothing."""

    def __init__(self, live: bool) -> None:
        self._err: Console | None = console(stderr=True) if live and sys.stderr.isatty() else None
        self._status: Status | None = None

    def show(self, text: str) -> None:
        if self._err is None:
            return
        if self._status is None:
            self._status = self._err.status(text)
            self._status.start()
        else:
            self._status.update(text)

    def clear(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


def _call_of(note: Json) -> Call:
    return msgspec.convert({key: value for key, value in note.items() if key not in ("event", "time")}, Call)


def summary(name: str, arguments: Mapping[str, Any]) -> str:
    """A call in a line: the command, the file, or its arguments."""
    if name == BASH:
        folder = f"   (in {brief(str(arguments['cwd']))})" if arguments.get("cwd") else ""
        return f"$ {visible(str(arguments.get('command', '')))}{folder}"
    if name in _FILES:
        line = f", line {arguments['line']}" if arguments.get("line") else ""
        return brief(str(arguments.get("path", "")), 300) + line
    return brief(json_line(dict(arguments)), 300)


def _summary(name: str, call: Json) -> str:
    return summary(name, call.get("arguments") or {})


def _counted(name: str, text: str) -> str:
    count = text.count("\n") + (1 if text and not text.endswith("\n") else 0)
    one, many = ("entry", "entries") if name == LIST_DIR else ("line", "lines")
    return f"{count:,} {one if count == 1 else many}"


def _shortened(text: str) -> str:
    lines = text.split("\n")
    if len(lines) <= MOST_OUTPUT:
        return _narrowed(lines)
    half = MOST_OUTPUT // 2
    return _narrowed([*lines[:half], f"({len(lines) - 2 * half} more lines)", *lines[-half:]])


def _narrowed(lines: Sequence[str]) -> str:
    return "\n".join([line if len(line) <= 1000 else f"{line[:1000]} … ({len(line) - 1000} more)" for line in lines])


def _cost(note: Json) -> str:
    tokens = f", {note['prompt']:,} tokens in, {note['completion']:,} out" if note["prompt"] else ""
    return f"{_many(note['turns'], 'turn')}, {_many(note['calls'], 'call')}{tokens}, {note['seconds']:.1f} s"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
