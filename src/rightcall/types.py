"""The values that all stages exchange: frozen, comparable, cheap to create.

    reply = parse('<tool_call>{"name": "f", "arguments": {}}</tool_call>', format="hermes")
    reply.calls[0].name  # "f"

A model's mistake is a `Problem`, not an exception. `to_json` returns the JSON form of any value here.
"""

from __future__ import annotations

import json as stdlib
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from rightcall.errors import MalformedArguments, ModelError, UnknownTool

Json = dict[str, Any]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that a model may call. A `Toolset` converts functions and definitions of any provider to tools; written by
    hand it needs only a name.

    - `name`: the name that the model calls.
    - `description`: shown to the model.
    - `parameters`: the JSON Schema of its arguments; `{}` accepts any object.
    - `output_schema`: the JSON Schema of its result, if declared.
    - `aliases`: other names of arguments, each with the declared argument it replaces; they are repaired.
    - `read_only`: a call changes nothing, so its name may be repaired by guessing, and it may run in parallel.
    - `compact`: a prompt may show the tool in one line.
    - `run`: its function, sync or async; None for a tool that runs elsewhere.
    """

    name: str
    description: str = ""
    parameters: Json = {}
    output_schema: Json | None = None
    aliases: dict[str, str] = {}
    read_only: bool = False
    compact: bool = False
    run: Callable[..., Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to pickle the tool. A tool made of a function is rebuilt from it, so the function must be
        importable."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name != "run"}
        bound = getattr(self.run, "__rightcall_binding__", None)
        return _rebuild_tool, (fields, None, self.run) if bound is None else (fields, bound.function, None)


def _rebuild_tool(fields: Json, function: Callable[..., Any] | None, run: Callable[..., Any] | None) -> Tool:
    """Return the tool of a pickle with these fields: with `function`, its `run` is built from that function again;
    otherwise `run` is used as it is."""
    if function is not None:
        from rightcall.tools.collect import to_tool

        run = to_tool(function).run
    return Tool(**fields, run=run)


class Repair(msgspec.Struct, frozen=True):
    """The receipt of one change to what the model wrote.

    - `rule`: the repair rule; docs/repair.md lists them.
    - `kind`: "exact" (the text has only one meaning), "schema" (the tool's schema allows only one meaning) or "guess".
    - `path`: a JSON Pointer into the arguments; empty for all of them, or for the name.
    - `before`, `after`: the exact texts.
    """

    rule: str
    kind: Literal["exact", "schema", "guess"]
    path: str
    before: str
    after: str


class Problem(msgspec.Struct, frozen=True):
    """A mistake in a reply, described for the model.

    - `code`: an identifier for programs; docs/problems.md lists them.
    - `message`: what is wrong, and what to send instead.
    - `path`: a JSON Pointer to the place, empty for the whole.
    - `call`: the index of the call in `Reply.attempts`, from 0; None for a problem that belongs to no call.
    - `blocking`: the call must not run. False for a note. A blocking problem without a call blocks no call.
    """

    code: str
    message: str
    path: str = ""
    call: int | None = None
    blocking: bool = True


class Call(msgspec.Struct, frozen=True):
    """One call as the model made it. `Call("f", {"x": 1})` creates one by hand.

    - `name`: the tool.
    - `arguments`: the arguments, repaired.
    - `json`: the final argument text, derived from `arguments` by default.
    - `id`: unique in the conversation; empty if there is none.
    - `raw`: the call as the model wrote it, without its markers.
    - `repairs`: the receipts of all changes.
    - `problems`: what is wrong with it, notes included.
    - `complete`: False if the call was truncated or cannot be parsed; its arguments are then `{}`.
    """

    name: str
    arguments: Json = {}
    json: str = ""
    id: str = ""
    raw: str = ""
    repairs: tuple[Repair, ...] = ()
    problems: tuple[Problem, ...] = ()
    complete: bool = True

    def __post_init__(self) -> None:
        """Set `json` to the JSON of the arguments if it is empty and there are arguments."""
        if not self.json and self.arguments:
            msgspec.structs.force_setattr(self, "json", stdlib.dumps(self.arguments, ensure_ascii=False))

    @classmethod
    def from_text(
        cls,
        name: str,
        text: str,
        *,
        tools: Any = None,
        repair: Literal["off", "safe", "lenient"] = "safe",
        id: str = "",
    ) -> Call:
        """Return the call of a tool with arguments given as text, repaired and checked as by `parse`: changes are in
        `repairs`, errors in `problems`, and `ok` says whether it is runnable.

        - `name`: the tool.
        - `text`: the arguments as the model wrote them.
        - `tools`: the tools to check against, as `parse` takes them; None checks only that the text is readable.
        - `repair`: "off", "safe" or "lenient", as in `parse`.
        - `id`: the id of the call, unchanged.
        """
        from rightcall.repairs.whole_call import call_from_text

        return call_from_text(name, text, tools, repair, id)

    @property
    def ok(self) -> bool:
        """True if the call is runnable: complete, and without a blocking problem."""
        return self.complete and not any(problem.blocking for problem in self.problems)


class Text(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """Text for the user: a part of a reply, and the event with a piece of it.

    - `text`: the text as written, without markers.
    - `tag`: the contract block that contains it (`assistant_prose`, `user_response`); empty outside all blocks.
    """

    text: str
    tag: str = ""


class Reasoning(msgspec.Struct, frozen=True):
    """Reasoning of the model: a part of a reply, and the event with a piece of it. `text` has no markers."""

    text: str


class CallStart(msgspec.Struct, frozen=True):
    """The event that a call has begun. `index` counts the reply's attempts from 0; `id` and `name` are final."""

    index: int
    id: str
    name: str


class Arguments(msgspec.Struct, frozen=True):
    """The event with a piece of argument JSON. The joined pieces of a complete call are `CallEnd.call.json`; with
    `live` they are a preview: the arguments as the model wrote them.

    - `index`: the index of the call, as in `CallStart`.
    - `json`: the piece.
    """

    index: int
    json: str


class CallEnd(msgspec.Struct, frozen=True):
    """The event that a call has ended, runnable or not: check `call.ok` before you run it. `index` is that of its
    `CallStart`; `call` is the final call, repaired and checked."""

    index: int
    call: Call


class Recast(msgspec.Struct, frozen=True):
    """The event that corrects earlier events: the last `chars` characters emitted as text were "reasoning" or part of a
    "call" (`kind`); with "thought", the last `chars` characters emitted as reasoning were part of a call. With
    `hold=True` such text is held back instead."""

    chars: int
    kind: Literal["reasoning", "call", "thought"]


class Done(msgspec.Struct, frozen=True):
    """The event that the model reports the end of its task, in a format with a block for it. `text` is the content of
    the block, which may be empty."""

    text: str


Event = Text | Reasoning | CallStart | Arguments | CallEnd | Problem | Recast | Done
Part = Text | Reasoning | Call
SpanKind = Literal["text", "reasoning", "call", "marker"]


class Span(msgspec.Struct, frozen=True):
    """The role of a piece of the text: `text[start:end]` was parsed as `kind`. The spans of a reply tile its text from
    the first `start` to the last `end`."""

    start: int
    end: int
    kind: SpanKind


class Reply(msgspec.Struct, frozen=True):
    """Everything that a model wrote, in order. `calls` are runnable, `refused` are rejected, `attempts` are both.

    - `parts`: text, reasoning and calls.
    - `problems`: all problems, those of calls included; each names its attempt, which has it as well.
    - `format`: the name of the format, given or detected.
    - `done`: the content of the block that reports the end of the task; None without such a block.
    - `spans`: the role of every character, if requested.
    - `finish`: the finish reason of the provider ("stop", "tool_calls", "length" ...); None for plain text.
    - `usage`: the provider's usage, unchanged.
    - `api`: the API of the answer; empty for plain text.
    - `extras`: opaque fields that the provider must get back (signatures, encrypted reasoning), by call id; those of
      the message under "". `message()` contains them.
    """

    parts: tuple[Part, ...] = ()
    problems: tuple[Problem, ...] = ()
    format: str = ""
    done: str | None = None
    spans: tuple[Span, ...] | None = None
    finish: str | None = None
    usage: Json | None = None
    api: str = ""
    extras: dict[str, Json] = {}

    def __post_init__(self) -> None:
        """Add each problem of the reply to the call that it names, unless the call has it."""
        if self.problems:
            _attach_problems(self)

    @property
    def content(self) -> str:
        """The texts of the reply, joined by line breaks; "" without any."""
        return "\n".join([part.text for part in self.parts if type(part) is Text])

    @property
    def reasoning(self) -> str:
        """The reasoning of the reply, joined by line breaks; "" without any."""
        return "\n".join([part.text for part in self.parts if type(part) is Reasoning])

    @property
    def attempts(self) -> tuple[Call, ...]:
        """All calls, runnable or rejected, in the order written. `Problem.call` is an index into them."""
        return tuple([part for part in self.parts if type(part) is Call])

    @property
    def calls(self) -> tuple[Call, ...]:
        """The runnable calls, in the order written."""
        return tuple([part for part in self.parts if type(part) is Call and part.ok])

    @property
    def refused(self) -> tuple[Call, ...]:
        """The rejected calls, in the order written; their `problems` have the reasons."""
        return tuple([part for part in self.parts if type(part) is Call and not part.ok])

    def message(self, api: str = "chat") -> Any:
        """Return the assistant's turn for the history in the form of this API; for `responses` a list of items.

        It contains every attempt, so that each can be answered (`answers`). Arguments are always a JSON object: the
        original text if it is one, else `{}`. Opaque fields of the provider are returned to it unchanged.

        - `api`: `chat`, `responses`, `messages`, `gemini` or `ollama`, or the name of its SDK."""
        from rightcall.providers.history_messages import write_message

        return write_message(self, api)

    def to_json(self) -> Json:
        """Return plain JSON data to store or send: the fields, and also `content`, `reasoning`, `calls` and
        `refused`."""
        plain: Json = to_json(self)
        return plain

    def raise_for_problems(self) -> None:
        """Raise the error of the first blocking problem: `UnknownTool` or `MalformedArguments`, with all blocking
        problems in `problems`. Do nothing without one."""
        blocking = tuple([problem for problem in self.problems if problem.blocking])
        if blocking:
            first = blocking[0]
            error = as_error(first, next((call.name for call in self.attempts if first in call.problems), ""))
            error.problems = blocking
            raise error


def _attach_problems(reply: Reply) -> None:
    """Add each problem of the reply to the call whose index it has, unless the call has it; indexes without a call
    are ignored. Changes `reply.parts`."""
    attempts = reply.attempts
    known = {(at, problem) for at, call in enumerate(attempts) for problem in call.problems}
    unassigned: dict[int, list[Problem]] = {}
    for problem in reply.problems:
        at = problem.call
        if at is not None and 0 <= at < len(attempts) and (at, problem) not in known:
            unassigned.setdefault(at, []).append(problem)
    if unassigned:
        msgspec.structs.force_setattr(reply, "parts", tuple(_with_problems(reply.parts, unassigned)))


def _with_problems(parts: tuple[Part, ...], unassigned: dict[int, list[Problem]]) -> Iterator[Part]:
    """Yield the parts in order; a call gets the problems under its index among the calls in `unassigned` in addition to
    its own."""
    at = -1
    for part in parts:
        if type(part) is Call:
            at += 1
            part = msgspec.structs.replace(part, problems=(*part.problems, *unassigned.get(at, ())))
        yield part


def as_error(problem: Problem, name: str) -> ModelError:
    """Return, without raising it, the exception for a blocking problem: `UnknownTool` for a problem of the tool's name,
    which is `name`, else `MalformedArguments`."""
    unknown = problem.code in ("unknown_tool", "not_authorised", "invalid_name")
    error = UnknownTool(name, problem.message) if unknown else MalformedArguments(problem.message)
    error.problems = (problem,)
    return error


def _reply_json(reply: Reply) -> Json:
    """Return a reply as JSON data: its fields, the derived values, and each part with a `type`."""
    return {
        "content": reply.content,
        "reasoning": reply.reasoning,
        "calls": to_json(reply.calls),
        "refused": to_json(reply.refused),
        "problems": [to_json(problem) for problem in reply.problems],
        "format": reply.format,
        "done": reply.done,
        "finish": reply.finish,
        "usage": reply.usage,
        "api": reply.api,
        "extras": reply.extras,
        "parts": [{"type": _type_name(part), **to_json(part)} for part in reply.parts],
        "spans": to_json(reply.spans),
    }


def _struct_json(value: msgspec.Struct) -> Json:
    """Return the fields of a value as JSON data, without the function `run` and without an empty `tag`."""
    named = [name for name in value.__struct_fields__ if name != "run"]
    if isinstance(value, Text) and not value.tag:
        named.remove("tag")
    plain = {name: to_json(getattr(value, name)) for name in named}
    if isinstance(value, Call):
        plain["problems"] = [_struct_json(problem) for problem in value.problems]  # no events here
    return plain


def to_json(value: object) -> Any:
    """Return plain JSON data for a reply, a list of events or any other value here; parts and events get a `type`. A
    value of another type is returned unchanged."""
    if isinstance(value, Reply):
        return _reply_json(value)
    if isinstance(value, CallEnd):
        return {"index": value.index, "call": to_json(value.call)}
    if isinstance(value, msgspec.Struct):
        return _struct_json(value)
    if isinstance(value, (list, tuple)):
        return [
            {"type": _type_name(item), **to_json(item)} if isinstance(item, Event) else to_json(item) for item in value
        ]
    return value


_KINDS: dict[type, str] = {
    Text: "text",
    Reasoning: "reasoning",
    Call: "call",
    CallStart: "call_start",
    Arguments: "arguments",
    CallEnd: "call_end",
    Problem: "problem",
    Recast: "recast",
    Done: "done",
}


def _type_name(value: object) -> str:
    """Return the `type` that a part or event has in JSON, such as "call_start". Raises `KeyError` for any other
    value."""
    return _KINDS[type(value)]
