"""The values every stage passes on: frozen, comparable, cheap to make.

    reply = parse('<tool_call>{"name": "f", "arguments": {}}</tool_call>', format="hermes")
    reply.calls[0].name  # "f"

Model mistakes are values of type `Problem`; nothing here raises because of what a model wrote.
`to_json` gives the JSON form of any of them.
"""

from __future__ import annotations

import json as stdlib
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from rightcall.errors import MalformedArguments, ModelError, UnknownTool

Json = dict[str, Any]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """What a model may call. `parameters` is a JSON Schema; `aliases` maps an argument's other names to its own."""

    name: str
    description: str = ""
    parameters: Json = {}
    output_schema: Json | None = None
    aliases: dict[str, str] = {}
    read_only: bool = False
    compact: bool = False
    run: Callable[..., Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """What runs a tool made of a function is made again of that function, which must be importable."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name != "run"}
        bound = getattr(self.run, "__rightcall_binding__", None)
        return _remade, (fields, None, self.run) if bound is None else (fields, bound.function, None)


def _remade(fields: Json, function: Callable[..., Any] | None, run: Callable[..., Any] | None) -> Tool:
    if function is not None:
        from rightcall.declare.collect import to_tool

        run = to_tool(function).run
    return Tool(**fields, run=run)


class Repair(msgspec.Struct, frozen=True):
    """The receipt of one change: `before` and `after` are the exact texts, `path` a JSON Pointer into the arguments."""

    rule: str
    kind: Literal["exact", "schema", "guess"]
    path: str
    before: str
    after: str


class Problem(msgspec.Struct, frozen=True):
    """What is wrong, worded for the model. `call` is the index, among the reply's attempts, of the call it is about,
    which a blocking one forbids to run. A blocking problem of no call blocks no call."""

    code: str
    message: str
    path: str = ""
    call: int | None = None
    blocking: bool = True


class Call(msgspec.Struct, frozen=True):
    """One call as the model made it. `complete` is False when it was cut off; `ok` says that it may run.

    `json` is the settled argument text, written from `arguments` when it is not given.
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
        """The call of this tool with arguments given as text, repaired and checked as `parse` does it: what was changed
        is in `repairs`, what is wrong in `problems`, and `ok` says whether it may run."""
        from rightcall.repairs.from_text import call_from_text

        return call_from_text(name, text, tools, repair, id)

    @property
    def ok(self) -> bool:
        """May it run? It is complete, and nothing that is wrong with it blocks it."""
        return self.complete and not any(problem.blocking for problem in self.problems)


class Text(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """`tag` names the block of the contract it stood in (`assistant_prose`, `user_response`), empty outside any."""

    text: str
    tag: str = ""


class Reasoning(msgspec.Struct, frozen=True):
    text: str


class CallStart(msgspec.Struct, frozen=True):
    """A call began. Its id and name are final."""

    index: int
    id: str
    name: str


class Arguments(msgspec.Struct, frozen=True):
    """A piece of argument JSON. Joined, the pieces of a complete call are `CallEnd.call.json`; with `live` they are a
    preview, the arguments as they were written."""

    index: int
    json: str


class CallEnd(msgspec.Struct, frozen=True):
    index: int
    call: Call


class Recast(msgspec.Struct, frozen=True):
    """The last `chars` characters given as text were in fact reasoning, or part of a call. `thought`: the last so many
    given as reasoning were part of a call."""

    chars: int
    kind: Literal["reasoning", "call", "thought"]


class Done(msgspec.Struct, frozen=True):
    """The model says that its task is done. `text` is what stood in the block, which may be nothing."""

    text: str


Event = Text | Reasoning | CallStart | Arguments | CallEnd | Problem | Recast | Done
Part = Text | Reasoning | Call
SpanKind = Literal["text", "reasoning", "call", "marker"]


class Span(msgspec.Struct, frozen=True):
    """`text[start:end]` became this. The spans of a reply tile its text."""

    start: int
    end: int
    kind: SpanKind


class Reply(msgspec.Struct, frozen=True):
    """Everything a model wrote, in the order it was written.

    `calls` may run, `refused` may not, `attempts` are both in the order written. `problems` are all there are; each
    names its attempt. Of a provider's answer `api` is the API it came through, `finish` how it ended, `usage` what was
    counted, and `extras` what is not read and the provider wants back (signatures, encrypted reasoning): by call id,
    and under "" of the message.
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

    @property
    def content(self) -> str:
        return "\n".join([part.text for part in self.parts if type(part) is Text])

    @property
    def reasoning(self) -> str:
        return "\n".join([part.text for part in self.parts if type(part) is Reasoning])

    @property
    def attempts(self) -> tuple[Call, ...]:
        return tuple([part for part in self.parts if type(part) is Call])

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple([part for part in self.parts if type(part) is Call and part.ok])

    @property
    def refused(self) -> tuple[Call, ...]:
        return tuple([part for part in self.parts if type(part) is Call and not part.ok])

    def message(self, api: str = "chat") -> Any:
        """The assistant's turn for the history, as this API wants it back; for `responses` a list of items.

        Every attempt is in it, so that each can be answered (`answers`). Arguments are always a JSON object: the text
        as it came where that is one, else `{}`. What the provider wants back unseen goes back to where it came from.
        """
        from rightcall.apis.turns import message

        return message(self, api)

    def to_json(self) -> Json:
        """Plain JSON data, to be kept or sent."""
        plain: Json = to_json(self)
        return plain

    def raise_for_problems(self) -> None:
        """Raises what the first blocking problem is: `UnknownTool` or `MalformedArguments`. Else does nothing."""
        blocking = tuple([problem for problem in self.problems if problem.blocking])
        if blocking:
            first = blocking[0]
            error = as_error(first, "" if first.call is None else self.attempts[first.call].name)
            error.problems = blocking
            raise error


def as_error(problem: Problem, name: str) -> ModelError:
    """A problem as the exception it is for callers who ask for one."""
    unknown = problem.code in ("unknown_tool", "not_authorised", "invalid_name")
    error = UnknownTool(name, problem.message) if unknown else MalformedArguments(problem.message)
    error.problems = (problem,)
    return error


def to_json(value: object) -> Any:
    """Plain JSON data of a reply, a list of events or any other value here; parts and events say their `type`."""
    if isinstance(value, Reply):
        return {
            "content": value.content,
            "reasoning": value.reasoning,
            "calls": [to_json(call) for call in value.calls],
            "refused": [to_json(call) for call in value.refused],
            "problems": [to_json(problem) for problem in value.problems],
            "format": value.format,
            "done": value.done,
            "finish": value.finish,
            "usage": value.usage,
            "api": value.api,
            "extras": value.extras,
            "parts": [{"type": _kind(part), **to_json(part)} for part in value.parts],
            "spans": None if value.spans is None else [to_json(span) for span in value.spans],
        }
    if isinstance(value, CallEnd):
        return {"index": value.index, "call": to_json(value.call)}
    if isinstance(value, msgspec.Struct):
        named = [name for name in value.__struct_fields__ if name != "run"]
        if isinstance(value, Text) and not value.tag:
            named.remove("tag")
        return {name: to_json(getattr(value, name)) for name in named}
    if isinstance(value, (list, tuple)):
        return [{"type": _kind(item), **to_json(item)} if isinstance(item, Event) else to_json(item) for item in value]
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


def _kind(value: object) -> str:
    return _KINDS[type(value)]
