"""`rightcall chat`: a conversation with any model. Calls are shown with their receipts and problems, and not run.

In a terminal it is a dialogue; otherwise every line of standard input is one turn, and only answers are written.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from rightcall.backends.base import BaseBackend, SyncStreaming
from rightcall.backends.request import Answer, Request
from rightcall.cli.endpoint import Endpoint, MaxTokens, Model, Temperature, backend_errors
from rightcall.cli.inputs import (
    AsJson,
    Force,
    FormatFile,
    FormatName,
    ToolsFile,
    choose_format,
    read_tools,
    refuse,
    say,
)
from rightcall.cli.layout import Flow, console
from rightcall.cli.option_groups import grouped
from rightcall.cli.safe import json_line, visible
from rightcall.cli.show import STYLES, show_call, show_problems, unsaid
from rightcall.dispatching.result import Result, refused
from rightcall.errors import BackendError
from rightcall.ids import Ids
from rightcall.types import CallEnd, Event, Json, Reasoning, Recast, Text, to_json

MAX_LINE = 1_000_000  # characters of one turn
NOT_RUN = "This call was shown to the user and was not run."


class ChatLoop:
    """One conversation: what was said, and how it is shown."""

    def __init__(self, backend: BaseBackend, asked: Request, *, as_json: bool) -> None:
        self.backend, self.asked, self.as_json = backend, asked, as_json
        self.out = console()
        self.is_sound = True

    def turn(self, line: str) -> None:
        """One question and its answer. A turn that fails leaves no trace in the conversation."""
        asked = _with(self.asked, {"role": "user", "content": line})
        with closing(self.backend.stream_sync(asked)) as stream:
            self._show(stream)
            answer = stream.answer
        self.asked = _with(asked, answer.message(), *not_run(answer))
        self.is_sound = self.is_sound and not any(problem.blocking for problem in answer.problems)

    def _show(self, stream: SyncStreaming) -> None:
        if self.as_json:
            for _ in stream:
                pass
            typer.echo(json_line(as_json(stream.answer)))
            return
        if not show_events(self.out, _waiting(stream)):
            self.out.print("(nothing)", style="dim")
        show_problems(self.out, unsaid(stream.answer.problems, stream.answer.attempts))


def _with(asked: Request, *messages: Json) -> Request:
    return msgspec.structs.replace(asked, messages=[*asked.messages, *messages])


def show_events(out: Console, events: Iterator[Event]) -> int:
    """Writes text as it comes and calls when they are whole. Gives how many things were written."""
    written, calls, flow = 0, 0, Flow(out)
    for event in events:
        if isinstance(event, Text | Reasoning):
            flow.write(visible(event.text), STYLES["reasoning" if isinstance(event, Reasoning) else "text"])
        elif isinstance(event, CallEnd | Recast):
            flow.close()
            if isinstance(event, CallEnd):
                calls += 1
                show_call(out, calls, event.call)
            else:
                out.print(f"(the last {event.chars} characters were {event.kind})", style="dim")
        else:
            continue
        written += 1
    flow.close()
    return written


def _waiting(stream: Iterator[Event]) -> Iterator[Event]:
    """The events; until the first one comes, a terminal shows that something is being waited for."""
    with _status("waiting for the model"):
        first = next(stream, None)
    if first is not None:
        yield first
    yield from stream


def _status(text: str) -> AbstractContextManager[object]:
    if not sys.stderr.isatty():
        return nullcontext()
    return console(stderr=True).status(text)


def not_run(answer: Answer) -> list[Json]:
    """What the model is told of its calls: every call of a history needs a result, or what is wrong with it."""
    results = [Result(call, NOT_RUN) if call.ok else refused(call, call.problems) for call in answer.attempts]
    return [result.message() for result in results]


def as_json(answer: Answer) -> Json:
    how = {"model": answer.model, "mode": answer.mode, "evidence": list(answer.evidence), "finish": answer.finish}
    return {**to_json(answer), **how}


@grouped
def chat(
    *,
    endpoint: Endpoint,
    model: Model = "",
    tools: ToolsFile = None,
    format: FormatName = "auto",
    format_file: FormatFile = None,
    system: Annotated[str, typer.Option(metavar="TEXT", help="What the model is told first.")] = "",
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="For the same answer again, if the server can.")] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Talk to a model; its calls are shown with their receipts and problems, and not run.

    In a terminal Ctrl-D ends it and Ctrl-C stops an answer. Otherwise every line of standard input is one turn, and
    exit code 1 means that an answer could not be had or has blocking problems.
    """
    with backend_errors():
        if endpoint.local is not None and (endpoint.base_url is not None or model):
            refuse("--local says which model; --base-url and --model are for models elsewhere")
        asked = Request(
            messages=[{"role": "system", "content": system}] if system else [],
            tools=read_tools(tools),
            format=choose_format(format, format_file),
            temperature=temperature,
            max_tokens=max_tokens,
            seed=seed,
            ids=Ids(),
        )
        backend = _loaded(endpoint, model, force)
        try:
            converse(ChatLoop(backend, asked, as_json=json))
        finally:
            asyncio.run(backend.aclose())


def _loaded(endpoint: Endpoint, model: str, force: bool) -> BaseBackend:
    if endpoint.local is None:
        return endpoint.backend(model, force=force)
    with _status(f"loading {visible(endpoint.local, one_line=True)}"):
        return endpoint.backend(model, force=force)


def converse(talk: ChatLoop) -> None:
    """Every turn until there are no more. In a terminal a failure ends its turn only."""
    if not sys.stdin.isatty():
        for line in _lines():
            talk.turn(line)
        if not talk.is_sound:
            raise typer.Exit(1)
        return
    say("Ctrl-D ends it")
    for line in _typed():
        try:
            talk.turn(line)
        except BackendError as error:
            say(str(error))
        except KeyboardInterrupt:
            talk.out.print()
            say("stopped; what was said is forgotten")


def _lines() -> Iterator[str]:
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    while line := sys.stdin.readline(MAX_LINE):
        if line.strip():
            yield line.rstrip("\n")


def _typed() -> Iterator[str]:
    with suppress(ImportError):
        import readline  # noqa: F401 - gives `input` its line editing
    while True:
        try:
            line = input("> ")
        except (EOFError, KeyboardInterrupt):
            typer.echo(err=True)
            return
        if line.strip():
            yield line
