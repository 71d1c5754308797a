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
    """A conversation with a model: `asked` is the next request, and has all messages so far."""

    def __init__(self, backend: BaseBackend, asked: Request, *, answer_to_json: bool) -> None:
        self.backend, self.asked, self.as_json = backend, asked, answer_to_json
        self.out = console()
        self.is_sound = True

    def send_message(self, line: str) -> None:
        """Send `line` as a message of the user, print the answer, and add both to `asked`. Sets `is_sound` to False if
        the answer has a blocking problem. Raises `BackendError` if sending fails; then `asked` is unchanged."""
        asked = _add_messages(self.asked, {"role": "user", "content": line})
        with closing(self.backend.stream_sync(asked)) as stream:
            self._print_answer(stream)
            answer = stream.answer
        self.asked = _add_messages(asked, answer.message(), *not_run_messages(answer))
        self.is_sound = self.is_sound and not any(problem.blocking for problem in answer.problems)

    def _print_answer(self, stream: SyncStreaming) -> None:
        """Print an answer as it arrives, and then its problems; with --json, print it as one line of JSON when it is
        complete. Consumes the stream."""
        if self.as_json:
            for _ in stream:
                pass
            typer.echo(json_line(answer_to_json(stream.answer)))
            return
        if not print_live_events(self.out, _show_spinner_until_first(stream)):
            self.out.print("(nothing)", style="dim")
        show_problems(self.out, other_problems(stream.answer.problems, stream.answer.attempts))


def _add_messages(asked: Request, *messages: Json) -> Request:
    """Return a copy of the request with these messages after its own."""
    return msgspec.structs.replace(asked, messages=[*asked.messages, *messages])


def print_live_events(out: Console, events: Iterator[Event]) -> int:
    """Print text and reasoning as they arrive, calls when they are complete, and a remark for each `Recast`; return how
    many of these events were printed. Other events are ignored."""
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


def _show_spinner_until_first(stream: Iterator[Event]) -> Iterator[Event]:
    """Yield all events of the stream. If standard error is a terminal, a spinner is shown there until the first one."""
    with _spinner("waiting for the model"):
        first = next(stream, None)
    if first is not None:
        yield first
    yield from stream


def _spinner(text: str) -> AbstractContextManager[object]:
    """Return a context that shows a spinner with this text on standard error; without a terminal, nothing."""
    if not sys.stderr.isatty():
        return nullcontext()
    return console(stderr=True).status(text)


def not_run_messages(answer: Answer) -> list[Json]:
    """Return a tool message for each call of the answer, since every call in a history needs one: for a valid call that
    it was not run, for a rejected call its problems."""
    results = [Result(call, NOT_RUN) if call.ok else rejected_result(call, call.problems) for call in answer.attempts]
    return [result.message() for result in results]


def answer_to_json(answer: Answer) -> Json:
    """Return an answer as JSON data: the reply, the model, the mode with its evidence, and the finish reason."""
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
    """Return the backend of the endpoint for this model. On a terminal a spinner is shown while a local model is
    loaded. Exits with code 2 for wrong options."""
    if endpoint.local is None:
        return endpoint.backend(model, force=force)
    with _spinner(f"loading {visible(endpoint.local, one_line=True)}"):
        return endpoint.backend(model, force=force)


def converse(talk: ChatLoop) -> None:
    """Run one turn of the chat for each line of standard input, until its end.

    On a terminal, the user is prompted, and a failed or interrupted turn is reported and dropped. Otherwise
    `BackendError` is raised at a failure, and after the last line a blocking problem in any answer exits with code
    1."""
    if not sys.stdin.isatty():
        for line in _read_piped_lines():
            talk.send_message(line)
        if not talk.is_sound:
            raise typer.Exit(1)
        return
    print_message("press Ctrl-D to quit")
    for line in _prompt_for_lines():
        try:
            talk.send_message(line)
        except BackendError as error:
            print_message(str(error))
        except KeyboardInterrupt:
            talk.out.print()
            print_message("stopped; this turn is dropped")


def _read_piped_lines() -> Iterator[str]:
    """Yield the lines of standard input that are not blank, without line ends. A line longer than `MAX_LINE` is yielded
    in pieces."""
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    while line := sys.stdin.readline(MAX_LINE):
        if line.strip():
            yield line.rstrip("\n")


def _prompt_for_lines() -> Iterator[str]:
    """Prompt for lines and yield those that are not blank, until the end of input or Ctrl-C."""
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
