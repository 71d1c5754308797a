"""One scenario, held as a conversation with stub tools. No IO: an answer goes in, rows come out.

    talk = Talk(task, settings, at=unix_ms())
    said = talk.said(await backend.complete(talk.request()))
    async for row in talk.rows(said, run): ...    # the same for the same `JournalEntry` and results, after a crash too

A `JournalEntry` is what is journaled of an answer: enough to build its rows and to go on from there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec

from rightcall.backends.request import Answer, Request
from rightcall.capture.captured_rows import CallTrace, capture_row, example_group_id, outcome_row
from rightcall.capture.examples import solved
from rightcall.capture.settings import Settings, Task
from rightcall.capture.stubs import StubOutcome
from rightcall.ids import Ids
from rightcall.providers.dialect import argument_text
from rightcall.types import Call, Json, Part, Problem, Reasoning, Text, as_error

_QUOTED = 500  # characters of a call that could not be read
_NATIVE = frozenset(("chat", "responses", "messages", "ollama"))  # how a reply says it was no text
_ELSEWHERE = frozenset(("rescued", "call_in_reasoning"))


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One answer, as it is journaled. `received` are the ids of the calls as the model gave them."""

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
    """What a real tool gave to a call of an answer, as it is journaled: it is not run again."""

    ran: str
    task: str
    turn: int
    call: int
    outcome: StubOutcome


RunCall = Callable[[int, Call], Awaitable[StubOutcome]]  # the place of a call in its answer, and the call


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
            *solved(task.domain, task.scenario, settings.examples, with_results=settings.mode in ("native", "auto")),
            {"role": "user", "content": task.scenario.request},
        ]

    def request(self) -> Request:
        """What to ask the model next."""
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
        return None if self.settings.seed is None else self.settings.seed + self.task.run

    def said(self, answer: Answer, *, at: int) -> JournalEntry:
        """What is to be journaled of the answer."""
        if self.settings.guard == "none":
            answer = unguarded(answer)
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
            reply=_reply(answer),
            text=answer.content,
            mode=answer.mode,
            format=answer.format,
            finish=answer.finish or None,
            response=_response_id(raw.get("id")),
            usage=msgspec.to_builtins(answer.tokens),
        )

    def again(self, said: JournalEntry) -> None:
        """Takes the ids that an answer of an earlier run took, so that later ones are told apart from them."""
        for received in said.received:
            self.ids.take(received)

    # -- rows ----------------------------------------------------------------------------------------------------------

    async def rows(self, said: JournalEntry, run: RunCall) -> AsyncIterator[Json]:
        """The rows of an answer, each made when the one before is safe, and the conversation goes on behind them. `run`
        is asked for the result of each call that may run.

        With `strict` a bad call raises a `ModelError` after the rows of the calls before it.
        """
        before = list(self._messages)
        self._messages.append(said.message)
        shared = [problem for problem in said.problems if problem.call is None]
        for index, call in enumerate(said.calls):
            blocking = [problem for problem in call.problems if problem.blocking]
            if blocking and self.settings.strict:
                raise as_error(blocking[0], call.name)
            result = await run(index, call) if call.ok else _refused(call, blocking)
            yield capture_row(
                call,
                **self._shared(said, index, call),
                messages=before,
                assistant=said.message,
                result=result,
                problems=[*call.problems, *shared],
            )
            self._note(call, result)
        for row in self._last(said, before):
            yield row
        self._turn += 1
        self.ids.next_turn()

    def _last(self, said: JournalEntry, before: Sequence[Json]) -> Iterator[Json]:
        """The row that says how the scenario ended, if it did."""
        if said.calls and said.turn + 1 < self.settings.max_turns:
            return
        self.ended = True
        if said.calls:
            yield outcome_row(**self._shared(said, turn=said.turn + 1), messages=self._messages, ended="max_turns")
            return
        yield outcome_row(
            **self._shared(said),
            messages=before,
            assistant=said.message,
            text=said.text,
            problems=said.problems,
        )

    def _note(self, call: Call, result: StubOutcome) -> None:
        """What the model is told of the call, and what the next row says had happened before it."""
        if result.status == "ok":
            self._completed.append(call.name)
        else:
            self._errors.append(result.message)
        told: Json = {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": result.message}
        if self.settings.forge_compat:
            told["_forge"] = {"tool_status": result.status}
        self._messages.append(told)

    def _shared(
        self, said: JournalEntry, index: int = 0, call: Call | None = None, turn: int | None = None
    ) -> dict[str, Any]:
        """What every row of an answer has."""
        task = self.task
        trace = CallTrace(
            domain=task.domain.name,
            scenario=task.scenario.name,
            run_index=task.run,
            turn=said.turn if turn is None else turn,
            model=task.model,
            call_index=index,
            tool_call_id="" if call is None else call.id,
            response_id=said.response,
            finish_reason=said.finish,
            scenario_kind=task.scenario.kind,
            mode=said.mode,
            guard=self.settings.guard,
            format=said.format,
            seed=self._seed,
            usage=said.usage,
            tools="real" if task.domain.is_real else "stub",
        )
        return {
            "group": self.group,
            "request": task.scenario.request,
            "tools": task.domain.tools,
            "trace": trace,
            "reply": said.reply,
            "completed": list(self._completed),
            "recent_errors": list(self._errors),
            "required_steps": task.scenario.required_steps,
            "captured_at_unix_ms": said.at,
        }


def _refused(call: Call, blocking: Sequence[Problem]) -> StubOutcome:
    """What a call that may not run is answered with: its problems, worded for the model. Where the history can show
    nothing but `{}` in the place of what was written, that is quoted, within bounds."""
    said = " ".join([problem.message for problem in blocking]) or "the call was cut off"
    wrote = (call.json or call.raw).strip()
    if argument_text(call) == "{}" and wrote not in ("", "{}"):
        more = f" ... ({len(wrote) - _QUOTED:,} characters more)" if len(wrote) > _QUOTED else ""
        said += f" You wrote: {wrote[:_QUOTED]}{more}"
    return StubOutcome("error", {"error": said})


def _response_id(id: Any) -> str | None:
    """Some servers count their answers."""
    return id if isinstance(id, str) else str(id) if type(id) is int else None


def _reply(answer: Answer) -> Any:
    """What came from the model: the text in which it was asked to call, else the provider's own message."""
    choices = answer.raw.get("choices") if isinstance(answer.raw, dict) else None
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = first.get("message")
    if not isinstance(message, dict):
        return first.get("text", answer.raw)
    if answer.mode == "native" or message.get("tool_calls") or message.get("function_call"):
        return message  # a server may give its own calls to whoever asked for text
    return message.get("content") or ""


def unguarded(answer: Answer) -> Answer:
    """The answer as a plain client sees it: calls count only where they were asked for, the rest is text."""
    found = {problem.code for problem in answer.problems}
    is_native = answer.format in _NATIVE
    if not answer.attempts or (is_native if answer.mode == "native" else found.isdisjoint(_ELSEWHERE)):
        return answer
    parts: list[Part] = [part if isinstance(part, Text | Reasoning) else Text(part.raw) for part in answer.parts]
    problems = tuple([each for each in answer.problems if each.call is None and each.code not in _ELSEWHERE])
    return msgspec.structs.replace(answer, parts=tuple(parts), problems=problems)
