"""`rightcall chat`: talk to any model. Its calls are shown with repairs and problems, and not run.

On a terminal it is interactive; otherwise each line of standard input is one turn, and only answers are printed.
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
    grouped,
    print_message,
    read_tools,
)
from rightcall.cli.layout import Flow, console, json_line
from rightcall.cli.show import STYLES, other_problems, show_call, show_problems
from rightcall.dispatching.result import Result, rejected_result
from rightcall.errors import BackendError
from rightcall.ids import Ids
from rightcall.safe_text import visible
from rightcall.types import CallEnd, Event, Json, Reasoning, Recast, Text, to_json

MAX_LINE = 1_000_000  # characters of one turn
NOT_RUN = "This call was shown to the user and was not run."


class ChatLoop:
    """One conversation: its messages, and how answers are shown."""

    def __init__(self, backend: BaseBackend, asked: Request, *, answer_to_json: bool) -> None:
        self.backend, self.asked, self.as_json = backend, asked, answer_to_json
        self.out = console()
        self.is_sound = True

    def turn(self, line: str) -> None:
        """Send one message and show the answer. A turn that fails is not added to the conversation."""
        asked = _add_messages(self.asked, {"role": "user", "content": line})
        with closing(self.backend.stream_sync(asked)) as stream:
            self._show(stream)
            answer = stream.answer
        self.asked = _add_messages(asked, answer.message(), *not_run_messages(answer))
        self.is_sound = self.is_sound and not any(problem.blocking for problem in answer.problems)

    def _show(self, stream: SyncStreaming) -> None:
        """Print an answer as it arrives, or its JSON when it is complete."""
        if self.as_json:
            for _ in stream:
                pass
            typer.echo(json_line(answer_to_json(stream.answer)))
            return
        if not show_live_events(self.out, _wait_for_first(stream)):
            self.out.print("(nothing)", style="dim")
        show_problems(self.out, other_problems(stream.answer.problems, stream.answer.attempts))


def _add_messages(asked: Request, *messages: Json) -> Request:
    return msgspec.structs.replace(asked, messages=[*asked.messages, *messages])


def show_live_events(out: Console, events: Iterator[Event]) -> int:
    """Print text as it arrives and calls when they are complete. Returns the number of printed items."""
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


def _wait_for_first(stream: Iterator[Event]) -> Iterator[Event]:
    """Yield the events. A terminal shows a spinner until the first one."""
    with _status("waiting for the model"):
        first = next(stream, None)
    if first is not None:
        yield first
    yield from stream


def _status(text: str) -> AbstractContextManager[object]:
    if not sys.stderr.isatty():
        return nullcontext()
    return console(stderr=True).status(text)


def not_run_messages(answer: Answer) -> list[Json]:
    """Make a result for each call, since every call in a history needs one: not run, or its problems."""
    results = [Result(call, NOT_RUN) if call.ok else rejected_result(call, call.problems) for call in answer.attempts]
    return [result.message() for result in results]


def answer_to_json(answer: Answer) -> Json:
    details = {"model": answer.model, "mode": answer.mode, "evidence": list(answer.evidence), "finish": answer.finish}
    return {**to_json(answer), **details}


@grouped
def chat(
    *,
    endpoint: Endpoint,
    model: Model = "",
    tools: ToolsFile = None,
    format: FormatName = "auto",
    format_file: FormatFile = None,
    system: Annotated[str, typer.Option(metavar="TEXT", help="System message.")] = "",
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed, if the server supports one.")] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Talk to a model. Its calls are shown with repairs and problems, and not run.

    On a terminal, Ctrl-D quits and Ctrl-C stops an answer. Otherwise each line of standard input is one turn, and exit
    code 1 means that an answer failed or has blocking problems.
    """
    with backend_errors():
        endpoint.check_model(model)
        asked = Request(
            messages=[{"role": "system", "content": system}] if system else [],
            tools=read_tools(tools),
            format=choose_format(format, format_file),
            temperature=temperature,
            max_tokens=max_tokens,
            seed=seed,
            ids=Ids(),
        )
        backend = _load_backend(endpoint, model, force)
        try:
            converse(ChatLoop(backend, asked, answer_to_json=json))
        finally:
            asyncio.run(backend.aclose())


def _load_backend(endpoint: Endpoint, model: str, force: bool) -> BaseBackend:
    """Return the backend; loading a local model is shown as a status."""
    if endpoint.local is None:
        return endpoint.backend(model, force=force)
    with _status(f"loading {visible(endpoint.local, one_line=True)}"):
        return endpoint.backend(model, force=force)


def converse(talk: ChatLoop) -> None:
    """Run all turns. On a terminal, a failure ends only its turn."""
    if not sys.stdin.isatty():
        for line in _read_lines():
            talk.turn(line)
        if not talk.is_sound:
            raise typer.Exit(1)
        return
    print_message("press Ctrl-D to quit")
    for line in _read_terminal():
        try:
            talk.turn(line)
        except BackendError as error:
            print_message(str(error))
        except KeyboardInterrupt:
            talk.out.print()
            print_message("stopped; this turn is dropped")


def _read_lines() -> Iterator[str]:
    """Yield the lines of standard input that are not blank."""
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    while line := sys.stdin.readline(MAX_LINE):
        if line.strip():
            yield line.rstrip("\n")


def _read_terminal() -> Iterator[str]:
    """Yield the lines that are typed, until the end of input or Ctrl-C."""
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
