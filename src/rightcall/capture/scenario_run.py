"""One scenario as a conversation with stub tools. It does no I/O: answers go in, rows come out.

    scenario = ScenarioRun(task, settings, at=unix_ms())
    entry = scenario.entry(await backend.complete(scenario.request()), at=unix_ms())
    async for row in scenario.rows(entry, run): ...

A `JournalEntry` is what the journal has of an answer. The same entries and results of tools yield the same rows, also
after a crash.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec

from rightcall.backends.request import Answer, Request
from rightcall.capture.captured_rows import CallTrace, capture_row, example_group_id, outcome_row
from rightcall.capture.domain import solved_examples
from rightcall.capture.settings import Settings, Task
from rightcall.capture.stubs import StubOutcome
from rightcall.ids import Ids
from rightcall.providers.dialect import argument_text
from rightcall.types import Call, Json, Part, Problem, Reasoning, Text, as_error

_MAX_QUOTE = 500  # characters of an unreadable call that its error quotes
_NATIVE = frozenset(("chat", "responses", "messages", "ollama"))  # formats of replies whose calls were not text
_UNREQUESTED = frozenset(("rescued", "call_in_reasoning"))


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of the model, as it is journaled. `received` are the ids of the calls as the model sent them."""

    task: str
    group: str
    turn: int
    at: int
    calls: tuple[Call, ...]
    problems: tuple[Problem, ...]
    received: tuple[str, ...]
    message: Json
    reply: Any
    text: str
    mode: str
    format: str
    finish: str | None
    response: str | None
    usage: Json


class ToolRan(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call by a real tool, as it is journaled, so that it does not run again."""

    ran: str
    task: str
    turn: int
    call: int
    outcome: StubOutcome


RunCall = Callable[[int, Call], Awaitable[StubOutcome]]  # gets the index of a call in its answer, and the call


class ScenarioRun:
    """The state of one scenario's conversation."""

    def __init__(self, task: Task, settings: Settings, *, at: int, group: str = "") -> None:
        self.task, self.settings = task, settings
        self.group = group or example_group_id(task.domain.name, task.scenario.name, task.run, at)
        self.ended = False
        self.ids = Ids.numbered("capture_call")
        self._turn = 0
        self._completed: list[str] = []
        self._errors: list[str] = []
        self._messages: list[Json] = [
            {"role": "system", "content": settings.system},
            *solved_examples(
                task.domain, task.scenario, settings.examples, with_results=settings.mode in ("native", "auto")
            ),
            {"role": "user", "content": task.scenario.request},
        ]

    def request(self) -> Request:
        """Return the next request to the model: the conversation so far, with the settings of the capture. `choice`
        applies to the first turn only."""
        settings = self.settings
        return Request(
            messages=list(self._messages),
            tools=self.task.domain.tools,
            model=self.task.model,
            mode=settings.mode,
            choice=settings.choice if not self._turn else "auto",
            repair="off" if settings.guard == "none" else "safe",
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
            seed=self._seed,
            ids=self.ids,
        )

    @property
    def _seed(self) -> int | None:
        """The seed of this run: that of the settings plus the number of the run; None if the settings have none."""
        return None if self.settings.seed is None else self.settings.seed + self.task.run

    def entry(self, answer: Answer, *, at: int) -> JournalEntry:
        """Return the journal entry of an answer that arrived at the time `at`, in milliseconds. With the guard "none",
        calls that are not in the requested form become text. The conversation is not changed."""
        if self.settings.guard == "none":
            answer = drop_unrequested_calls(answer)
        raw = answer.raw if isinstance(answer.raw, dict) else {}
        return JournalEntry(
            task=self.task.key,
            group=self.group,
            turn=self._turn,
            at=at,
            calls=answer.attempts,
            problems=answer.problems,
            received=tuple([self.ids.received(call.id) for call in answer.attempts]),
            message=answer.message(),
            reply=_original_reply(answer),
            text=answer.content,
            mode=answer.mode,
            format=answer.format,
            finish=answer.finish or None,
            response=_response_id(raw.get("id")),
            usage=msgspec.to_builtins(answer.tokens),
        )

    def replay(self, entry: JournalEntry) -> None:
        """Reserve the call ids of an answer of an earlier run, so that later calls get other ids. The answer itself is
        added to the conversation by `rows`."""
        for received in entry.received:
            self.ids.take(received)

    # -- rows ----------------------------------------------------------------------------------------------------------

    async def rows(self, entry: JournalEntry, run: RunCall) -> AsyncIterator[Json]:
        """Yield the rows of an answer, and add the answer and its results to the conversation.

        `run` executes each valid call, after the consumer has taken the rows of the earlier calls. With the setting
        `strict`, a rejected call raises a `ModelError` after the rows of the calls before it.
        """
        before = list(self._messages)
        self._messages.append(entry.message)
        shared = [problem for problem in entry.problems if problem.call is None]
        for index, call in enumerate(entry.calls):
            blocking = [problem for problem in call.problems if problem.blocking]
            if blocking and self.settings.strict:
                raise as_error(blocking[0], call.name)
            result = await run(index, call) if call.ok else _make_rejection_result(call, blocking)
            yield capture_row(
                call,
                **self._common_fields(entry, index, call),
                messages=before,
                assistant=entry.message,
                result=result,
                problems=[*call.problems, *shared],
            )
            self._add_result(call, result)
        for row in self._finish_scenario(entry, before):
            yield row
        self._turn += 1
        self.ids.next_turn()

    def _finish_scenario(self, entry: JournalEntry, before: Sequence[Json]) -> Iterator[Json]:
        """Set `ended` and yield the outcome's row if this answer has no calls, or is the last that `max_turns` allows.

        Otherwise yield nothing.
        """
        if entry.calls and entry.turn + 1 < self.settings.max_turns:
            return
        self.ended = True
        if entry.calls:
            yield outcome_row(
                **self._common_fields(entry, turn=entry.turn + 1), messages=self._messages, ended="max_turns"
            )
            return
        yield outcome_row(
            **self._common_fields(entry),
            messages=before,
            assistant=entry.message,
            text=entry.text,
            problems=entry.problems,
        )

    def _add_result(self, call: Call, result: StubOutcome) -> None:
        """Add the result of a call to the conversation, and to the completed steps or errors that later rows record."""
        if result.status == "ok":
            self._completed.append(call.name)
        else:
            self._errors.append(result.message)
        message: Json = {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": result.message}
        if self.settings.forge_compat:
            message["_forge"] = {"tool_status": result.status}
        self._messages.append(message)

    def _common_fields(
        self, entry: JournalEntry, index: int = 0, call: Call | None = None, turn: int | None = None
    ) -> dict[str, Any]:
        """Return the arguments of `capture_row` and `outcome_row` that are the same for all rows of an answer. `index`
        and `call` are those of the row's call, if it has one; `turn` replaces the turn of the entry."""
        task = self.task
        trace = CallTrace(
            domain=task.domain.name,
            scenario=task.scenario.name,
            run_index=task.run,
            turn=entry.turn if turn is None else turn,
            model=task.model,
            call_index=index,
            tool_call_id="" if call is None else call.id,
            response_id=entry.response,
            finish_reason=entry.finish,
            scenario_kind=task.scenario.kind,
            mode=entry.mode,
            guard=self.settings.guard,
            format=entry.format,
            seed=self._seed,
            usage=entry.usage,
            tools="real" if task.domain.is_real else "stub",
        )
        return {
            "group": self.group,
            "request": task.scenario.request,
            "tools": task.domain.tools,
            "trace": trace,
            "reply": entry.reply,
            "completed": list(self._completed),
            "recent_errors": list(self._errors),
            "required_steps": task.scenario.required_steps,
            "captured_at_unix_ms": entry.at,
        }


def _make_rejection_result(call: Call, blocking: Sequence[Problem]) -> StubOutcome:
    """Return the error outcome of a rejected call: its problems as a message for the model, or that the call was cut
    off if it has none.

    If the history can only show `{}` for the arguments, the text that the model wrote is quoted, up to a limit.
    """
    error = " ".join([problem.message for problem in blocking]) or "the call was cut off"
    written = (call.json or call.raw).strip()
    if argument_text(call) == "{}" and written not in ("", "{}"):
        more = f" ... ({len(written) - _MAX_QUOTE:,} characters more)" if len(written) > _MAX_QUOTE else ""
        error += f" You wrote: {written[:_MAX_QUOTE]}{more}"
    return StubOutcome("error", {"error": error})


def _response_id(id: Any) -> str | None:
    """Return the id of a response as text, also if it is an integer, which some servers send; None for any other
    value."""
    return id if isinstance(id, str) else str(id) if type(id) is int else None


def _original_reply(answer: Answer) -> Any:
    """Return what the model sent: the provider's message for native calls, its content for calls as text. A response
    without messages gives its text, else the whole response."""
    choices = answer.raw.get("choices") if isinstance(answer.raw, dict) else None
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = first.get("message")
    if not isinstance(message, dict):
        return first.get("text", answer.raw)
    if answer.mode == "native" or message.get("tool_calls") or message.get("function_call"):
        return message  # a server may send native calls although text was requested
    return message.get("content") or ""


def drop_unrequested_calls(answer: Answer) -> Answer:
    """Return the answer as a plain client parses it: unchanged if its calls have the requested form, else with all
    calls as text and without their problems. In mode "native" the reply must have native calls. In the other modes no
    call may have been rescued or found in reasoning; native calls are accepted."""
    codes = {problem.code for problem in answer.problems}
    is_native = answer.format in _NATIVE
    if not answer.attempts or (is_native if answer.mode == "native" else codes.isdisjoint(_UNREQUESTED)):
        return answer
    parts: list[Part] = [part if isinstance(part, Text | Reasoning) else Text(part.raw) for part in answer.parts]
    problems = tuple([each for each in answer.problems if each.call is None and each.code not in _UNREQUESTED])
    return msgspec.structs.replace(answer, parts=tuple(parts), problems=problems)
