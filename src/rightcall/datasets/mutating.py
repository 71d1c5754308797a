"""`dataset mutate`: wrong rows made from right ones, as negative examples for a verifier.

    mutate_files(["labelled.jsonl"], "wrong.jsonl", kinds={"wrong_tool": 500, "broken_syntax": 100})

`KINDS` has a function for each kind. It takes a `SourceRow` and a random generator, and returns a `Negative`, or None
if the row cannot be made wrong in this manner. Every negative is verified: it differs from the right call, `check`
agrees with its label, and if the scenario is known, the scenario does not accept it.

The rows that are written depend on the seed and the keys of the rows alone: another order of the files, or more
processes, choose the same. If a kind has more rows than its cap, those of lowest rank are written.
"""

from __future__ import annotations

import random
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from rightcall.capture.captured_rows import (
    CANDIDATE,
    OUTCOME,
    SCHEMA,
    blocking_of,
    call_of,
    capture_key,
    conversation_before,
    tools_of,
)
from rightcall.datasets.label import Labeller, calls_before
from rightcall.datasets.row_files import MUTATED, RowNumbers, RowRun, Scratch, Seen, capture_rows, digest, output_sink
from rightcall.datasets.rows.mapping import RowOutcome
from rightcall.datasets.rows.sinks import RowSpool
from rightcall.datasets.rows.sources import RowBatch
from rightcall.datasets.schemas import label_of
from rightcall.errors import CallerError, RightcallError
from rightcall.formats import FORMATS, NAMED_ONLY, find
from rightcall.formats.spec import Format
from rightcall.parsing.parser import parse
from rightcall.parsing.rendering import render
from rightcall.providers.openai_chat import CHAT
from rightcall.providers.sdk_view import compact_json
from rightcall.storage.jsonl import encode_row
from rightcall.tools.checks import check
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Problem, Reply, Tool

BUCKET = DOMAIN = "mutated"


class SourceRow:
    """A row of a capture that may be mutated: a right call, or a good answer that needed no call. `formats` are the
    wire formats of calls with broken syntax."""

    def __init__(self, row: Json, labeller: Labeller, formats: Sequence[Format]) -> None:
        self.row, self.formats = row, formats
        self._labeller = labeller

    @property
    def is_call(self) -> bool:
        """Whether it is a complete call, with tools, that is labelled valid or, without a label, has no blocking
        problem, neither recorded nor found by `check`."""
        if self.row["kind"] != CANDIDATE or not self.call.complete or not self.tools:
            return False
        label = label_of(self.row)
        return label == "valid" if label is not None else not blocking_of(self.row) and self.is_runnable(self.call)

    @property
    def is_answer(self) -> bool:
        """Whether it is an answer that is labelled valid, in a conversation without a call."""
        return self.row["kind"] == OUTCOME and label_of(self.row) == "valid" and not calls_before(self.row)

    @cached_property
    def call(self) -> Call:
        """The call of the row. Not for outcomes."""
        return call_of(self.row)

    @cached_property
    def tools(self) -> Toolset:
        """The tools that the row offers, without `respond`."""
        return tools_of(self.row)

    @cached_property
    def messages(self) -> list[Json]:
        """The messages before the row, without the examples of a capture; only the user's request for a row that has
        none."""
        if "messages" in self.row:
            return conversation_before(self.row)
        return [{"role": "user", "content": self.row["user_request"]}]

    @cached_property
    def words(self) -> list[str]:
        """The first 200 different words of the request, in their order: candidates for values."""
        return list(dict.fromkeys(_WORD.findall(self.row["user_request"][:4_000])))[:200]

    def parameters(self, name: str) -> Json:
        """Return the schema of the parameters of the tool `name`; {} if there is no such tool."""
        return next((tool.parameters for tool in self.tools if tool.name == name), {})

    def is_runnable(self, call: Call) -> bool:
        """Return whether `check` finds no blocking problem in a call, given the tools of the row."""
        return not any(problem.blocking for problem in check(call, self.tools))

    def scenario_label(self, call: Call) -> str | None:
        """Return the label that the row's scenario gives to this call in place of the row's own;
        "deterministic_invalid" for a call with a blocking problem. None if the scenario is unknown or the row is no
        call."""
        own = {key: value for key, value in self.row.items() if key != "label"}
        own["candidate_call"] = {"name": call.name, "arguments": call.arguments}
        own["call"] = {"id": call.id, "json": call.json, "raw": "", "complete": True}
        own |= {"problems": [], "repairs": [], "messages": self.messages}
        return label_of(self._labeller.label(own)) if self.row["kind"] == CANDIDATE else None


class Negative(msgspec.Struct, frozen=True):
    """A wrong call: its label, what was `changed`, and `why` that is wrong. Other values stay as in the source row
    unless they are given."""

    call: Call
    label: str
    changed: str
    why: str
    request: str | None = None
    messages: list[Json] | None = None
    completed: list[str] | None = None
    reply: str | None = None
    format: str = ""
    problems: tuple[Problem, ...] = ()
    more: Json = {}

    def row(self, source: SourceRow, kind: str, seed: str) -> Json:
        """Return the captured row of the negative, derived from its source row, labelled and marked as private. It
        keeps the group of its source, so that a split keeps them together; its model is `mutated:` and the kind of
        mutation."""
        row = source.row
        trace = {**row["proxy_trace"], "model": f"{DOMAIN}:{kind}", "domain": DOMAIN, "scenario": kind}
        trace |= {"tool_call_id": self.call.id, "response_id": None, "finish_reason": None}
        assistant = CHAT.assistant_message("", [self.call])
        mutation = {"kind": kind, "changed": self.changed, "seed": seed, "from": capture_key(row), **self.more}
        marks = {key: value for key, value in row["metadata"].items() if key not in ("release", "redaction")}
        state = row["workflow_state"]
        return {
            **{key: value for key, value in row.items() if key not in ("outcome", "label")},
            "schema_version": SCHEMA,
            "kind": CANDIDATE,
            "source_bucket": BUCKET,
            "user_request": row["user_request"] if self.request is None else self.request,
            "workflow_state": state if self.completed is None else {**state, "completed_steps": self.completed},
            "proxy_trace": trace,
            "mode": "text" if self.format else "native",
            "format": self.format,
            "messages": source.messages if self.messages is None else self.messages,
            "candidate_call": {"name": self.call.name, "arguments": self.call.arguments},
            "tool_result": None,
            "call": {key: getattr(self.call, key) for key in ("id", "json", "raw", "complete")},
            "repairs": [],
            "problems": msgspec.to_builtins([msgspec.structs.replace(each, call=0) for each in self.problems]),
            "assistant": assistant,
            "reply": assistant if self.reply is None else self.reply,
            "metadata": {**marks, "mutation": mutation, "private_agent_log": True, "public_export_allowed": False},
            "label": {"label": self.label, "by": "mutate", "why": self.why[:300]},
        }


def _copy_call(call: Call, kind: str, arguments: Json | None = None, name: str | None = None) -> Call:
    """Return a call with the name and arguments of another, or those that are given, and an id that names the kind of
    mutation. Its exact text and repairs are not copied."""
    return Call(name or call.name, call.arguments if arguments is None else arguments, id=f"{call.id or 'call'}-{kind}")


# -- another tool, other arguments -------------------------------------------------------------------------------------

_MOST_TRIES = 24


def make_wrong_tool_call(source: SourceRow, dice: random.Random) -> Negative | None:
    """Return a call of another tool, those that share most arguments first, with the arguments that both have and
    made-up values for the other required ones. `check` accepts it, and the scenario, where it is known, calls the tool
    wrong. None if the row is no right call or no tool fits."""
    if not source.is_call:
        return None
    right = source.call
    for tool in _rank_other_tools(source, dice)[:_MOST_TRIES]:
        arguments = plausible_arguments(tool.parameters, right.arguments, source.words)
        call = _copy_call(right, "wrong-tool", arguments, tool.name)
        if source.is_runnable(call) and source.scenario_label(call) in (None, "wrong_tool_semantic"):
            why = f"the request is for {right.name}, and {tool.name} was called"
            return Negative(call, "wrong_tool_semantic", f"{right.name} became {tool.name}", why)
    return None


def _rank_other_tools(source: SourceRow, dice: random.Random) -> list[Tool]:
    """Return the tools of the row other than the called one, those that share most arguments with the call first,
    otherwise in random order."""
    tools = [tool for tool in source.tools if tool.name != source.call.name]
    dice.shuffle(tools)
    return sorted(tools, key=lambda tool: -len(source.call.arguments.keys() & _properties_of(tool.parameters).keys()))


def make_wrong_arguments_call(source: SourceRow, dice: random.Random) -> Negative | None:
    """Return the call with one value changed, which `check` accepts and the scenario, where it is known, calls wrong;
    if none can be, without a required argument, which `check` rejects. None if the row is no right call or neither
    succeeds."""
    if not source.is_call:
        return None
    given = source.call.arguments
    for name, arguments, changed in _vary_arguments(source, dice):
        call = _copy_call(source.call, "wrong-arguments", arguments)
        if source.is_runnable(call) and source.scenario_label(call) in (None, "wrong_arguments_semantic"):
            return Negative(call, "wrong_arguments_semantic", changed, f"{name} is not what was asked for: {changed}")
    for name in dice.sample(sorted(given), len(given)):
        fewer = {key: value for key, value in given.items() if key != name}
        call = _copy_call(source.call, "wrong-arguments", fewer)
        if not source.is_runnable(call):
            return Negative(call, "deterministic_invalid", f"{name} left out", f"{name} is required")
    return None


def _vary_arguments(source: SourceRow, dice: random.Random) -> Iterator[tuple[str, Json, str]]:
    """Yield, for each argument in random order, up to `_MOST_TRIES` changes: its name, all arguments with another value
    of it, and a description of the change."""
    given, properties = source.call.arguments, _properties_of(source.parameters(source.call.name))
    for name in dice.sample(sorted(given), len(given)):
        found = other_values(given[name], _as_object(properties.get(name)), source.words, dice)
        for other in islice(found, _MOST_TRIES):
            if not is_same_value(given[name], other):
                yield (
                    name,
                    {**given, name: other},
                    f"{name}: {_shorten_json(given[name])} became {_shorten_json(other)}",
                )


def _shorten_json(value: object) -> str:
    """Return a value as JSON, cut to 80 characters."""
    text = compact_json(value)
    return text if len(text) <= 80 else text[:79] + "…"


def is_same_value(one: Any, other: Any) -> bool:
    """Return whether a tool would treat two values as the same. Blanks at the ends and case of texts do not count, and
    2 equals 2.0; true does not equal 1."""
    if isinstance(one, str) and isinstance(other, str):
        return one.strip().casefold() == other.strip().casefold()
    numbers = type(one) in (int, float) and type(other) in (int, float)
    return (type(one) is type(other) or numbers) and bool(one == other)


# -- calls that should not have been made ------------------------------------------------------------------------------

_LEAST_CHARS = 2  # of a text that is searched for in a request


def make_unneeded_call(source: SourceRow, dice: random.Random) -> Negative | None:
    """Return a repetition of the row's call right after its successful result or, for a good answer without a call, a
    call in its place; None if the row is neither, the answer asks for clarification, or no call can be made."""
    if source.is_answer and source.row.get("scenario_kind") != "clarify":
        return _make_call_instead(source, dice, "not-needed", "tool_not_needed", "the request needs no tool")
    result = source.row.get("tool_result")
    if not source.is_call or not isinstance(result, dict) or result.get("status") != "ok":
        return None
    right, content = source.call, result.get("content")
    text = content if isinstance(content, str) else compact_json(content)
    answer = {"role": "tool", "tool_call_id": right.id, "name": right.name, "content": text}
    completed = source.row["workflow_state"].get("completed_steps")
    return Negative(
        _copy_call(right, "not-needed"),
        "tool_not_needed",
        f"{right.name} is called a second time",
        f"{right.name} was called with these arguments just before, and gave a result",
        messages=[*source.messages, CHAT.assistant_message("", [right]), answer],
        completed=[*(completed if isinstance(completed, list) else []), right.name],
    )


def make_premature_call(source: SourceRow, dice: random.Random) -> Negative | None:
    """Return the call after a required value was removed from the request, so that the model should have asked; the
    value must not be elsewhere in the conversation. For a row in which the model asked, return a call in place of the
    question. None if neither is possible."""
    if source.is_answer and source.row.get("scenario_kind") == "clarify":
        return _make_call_instead(
            source, dice, "ask-back", "needs_clarification", "the request lacks what the call needs"
        )
    if not source.is_call:
        return None
    for name, value in _shuffle_required_values(source, dice):
        messages = [_remove_from_message(message, value) for message in source.messages]
        request = _remove_value(source.row["user_request"], value)
        everything = compact_json([*messages, request]).casefold()
        if request == source.row["user_request"] or str(value).strip().casefold() in everything:
            continue
        why = f"nothing in the conversation says what {name} is: {value!r:.60} was made up"
        changed = f"the request no longer says {name}"
        call = _copy_call(source.call, "ask-back")
        return Negative(call, "needs_clarification", changed, why, request=request, messages=messages)
    return None


def _make_call_instead(source: SourceRow, dice: random.Random, kind: str, label: str, why: str) -> Negative | None:
    """Return a runnable call of a random tool in place of an answer, with this label and reason (`why`); `kind` becomes
    part of its id. None if no tool can be called with made-up arguments."""
    tools = list(source.tools)
    for tool in dice.sample(tools, len(tools)):
        arguments = plausible_arguments(tool.parameters, {}, source.words)
        call = _copy_call(Call(tool.name, id="call"), kind, arguments)
        if source.is_runnable(call):
            return Negative(call, label, f"{tool.name} was called instead of an answer", why)
    return None


def _shuffle_required_values(source: SourceRow, dice: random.Random) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each required argument that is a number or a text of two characters or more, in random
    order."""
    required = source.parameters(source.call.name).get("required")
    given = source.call.arguments
    names = [name for name in required if name in given] if isinstance(required, list) else []
    for name in dice.sample(names, len(names)):
        value = given[name]
        is_text = isinstance(value, str) and len(value.strip()) >= _LEAST_CHARS
        if is_text or type(value) in (int, float):
            yield name, value


def _remove_value(text: str, value: Any) -> str:
    """Return the text with each occurrence of the value as a whole word replaced by a phrase without it; case is
    ignored."""
    pattern = re.compile(rf"(?<!\w){re.escape(str(value).strip())}(?!\w)", re.I)
    return pattern.sub("the one I mean" if isinstance(value, str) else "some", text)


def _remove_from_message(message: Json, value: Any) -> Json:
    """Return a user's message without the value in its text; other messages unchanged."""
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, str):
        return message
    return {**message, "content": _remove_value(content, value)}


# -- broken syntax -----------------------------------------------------------------------------------------------------

_STRUCTURE = re.compile(r"[{}\[\]()<>\"':,=/|]")
_MOST_DAMAGES = 16
_MOST_FORMATS = 4  # that are tried: a few cannot carry every call


def make_broken_call(source: SourceRow, dice: random.Random) -> Negative | None:
    """Write the call in a wire format and damage the text at random until it is parsed, with repair off, as exactly one
    call that is blocked. Return that call; None if the row is no right call or no damage of a few formats suffices."""
    if not source.is_call:
        return None
    for format in dice.sample(list(source.formats), len(source.formats))[:_MOST_FORMATS]:
        try:
            text = render(source.call, format=format, tools=source.tools)
        except RightcallError:
            continue
        for changed, damaged in _damage_text(text, dice):
            calls = list(_parse_damaged(damaged, format, source, "off").attempts)
            if len(calls) == 1 and not calls[0].ok and calls[0].name:
                return _make_broken_negative(calls[0], source, changed, damaged, format)
    return None


def _damage_text(text: str, dice: random.Random) -> Iterator[tuple[str, str]]:
    """Yield 16 pairs of a description and a randomly damaged copy of the text: its end is missing, or a structural
    character is missing or doubled."""
    positions = [found.start() for found in _STRUCTURE.finditer(text)]
    for _ in range(_MOST_DAMAGES):
        if not positions or dice.random() < 0.2:
            end = dice.randrange(len(text) // 2, len(text))
            yield f"cut off behind character {end}", text[:end]
            continue
        at = dice.choice(positions)
        char = text[at]
        if dice.random() < 0.6:
            yield f"{char} left out at character {at}", text[:at] + text[at + 1 :]
        else:
            yield f"{char} doubled at character {at}", text[:at] + char + text[at:]


def _parse_damaged(text: str, format: Format, source: SourceRow, policy: str) -> Reply:
    """Return the reply that the damaged text is parsed to, with this policy of repair."""
    return parse(text, format=format, tools=source.tools, repair=policy)  # type: ignore[arg-type]


def _make_broken_negative(found: Call, source: SourceRow, changed: str, text: str, format: Format) -> Negative:
    """Return the negative of the blocked call `found`, whose damaged `text` becomes its reply. It records whether safe
    repair would restore the right call."""
    problem = next(each for each in found.problems if each.blocking)
    repaired = [(each.name, each.arguments) for each in _parse_damaged(text, format, source, "safe").calls]
    id = f"{source.call.id or 'call'}-broken-syntax"
    return Negative(
        Call(found.name, found.arguments, found.json, id, found.raw, complete=found.complete),
        "deterministic_invalid",
        changed,
        f"{problem.code}: {problem.message}",
        reply=text,
        format=format.name,
        problems=found.problems,
        more={"mended_by_safe_repair": repaired == [(source.call.name, source.call.arguments)]},
    )


# -- values that fit a schema ------------------------------------------------------------------------------------------

_DIGIT = re.compile(r"\d")
_WORD = re.compile(r"\w[\w'-]*+")
_DEPTH = 4
_SAMPLES = {
    "date": "2026-03-14",
    "time": "10:30:00Z",
    "date-time": "2026-03-14T10:30:00Z",
    "email": "ann@example.com",
    "uri": "https://example.com/",
    "uuid": "3f2b8c1e-5a74-4d0b-9a61-7c2d9e8f1a05",
    "ipv4": "192.0.2.1",
}


def _as_object(value: Any) -> Json:
    """Return the value if it is an object, else {}."""
    return value if isinstance(value, dict) else {}


def _properties_of(schema: Json) -> Json:
    """Return the properties of a schema; {} if it has none."""
    return _as_object(schema.get("properties"))


def plausible_value(schema: Json, hints: Json, words: Sequence[str] = (), depth: int = 0) -> Any:
    """Return a value that this schema probably accepts; the caller must validate it. A constant, default, option or
    example of the schema comes first. `hints` are values for the members of an object, by name; `words` are candidates
    for texts."""
    examples = [schema[key] for key in ("const", "default") if key in schema]
    for key in ("enum", "examples"):
        examples += schema[key] if isinstance(schema.get(key), list) else []
    if examples:
        return examples[0]
    declared = schema.get("type")
    types = declared if isinstance(declared, list) and declared else [declared]
    kind = next((each for each in types if each != "null"), "null")
    if kind == "object" and depth < _DEPTH:
        return plausible_arguments(schema, hints, words, depth + 1)
    if kind == "array":
        return [plausible_value(_as_object(schema.get("items")), {}, words, depth + 1)] * min(
            schema.get("minItems", 0), 8
        )
    if kind in ("integer", "number"):
        return _plausible_number(schema)
    if kind in ("boolean", "null"):
        return True if kind == "boolean" else None
    return _plausible_text(schema, words)


def _plausible_number(schema: Json) -> Any:
    """Return the minimum of a schema if it has one, else 1 above its exclusive minimum, else 1 or a smaller maximum.
    Other limits are ignored."""
    if "minimum" in schema:
        return schema["minimum"]
    above = schema.get("exclusiveMinimum")
    if above is not None:
        return above + 1 if isinstance(above, int | float) else 1
    return min(1, schema.get("maximum", 1))


def _plausible_text(schema: Json, words: Sequence[str]) -> str:
    """Return a sample for the format of the schema, else the first of the words with more than three letters, else
    "main", padded and cut to the schema's lengths."""
    word = _SAMPLES.get(str(schema.get("format"))) or next((each for each in words if len(each) > 3), "main")
    return word.ljust(min(schema.get("minLength", 0), 1_000), "x")[: schema.get("maxLength", 1_000)]


def plausible_arguments(schema: Json, hints: Json, words: Sequence[str], depth: int = 0) -> Json:
    """Return arguments with the required properties, and the optional ones in `hints`. A value from `hints` is used
    unchecked, the others are made from their schemas; the caller must validate the result."""
    properties, required = _properties_of(schema), schema.get("required")
    wanted = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    names = dict.fromkeys([*wanted, *(name for name in properties if name in hints)])
    return {
        name: hints[name] if name in hints else plausible_value(_as_object(properties.get(name)), {}, words, depth)
        for name in names
    }


def other_values(value: Any, schema: Json, words: Sequence[str], dice: random.Random) -> Iterator[Any]:
    """Yield values that could be mistaken for this one: other options of an enum, else small changes of the value. They
    are not checked against the schema, and the value itself may be among them."""
    if isinstance(schema.get("enum"), list):
        yield from dice.sample(schema["enum"], len(schema["enum"]))
        return
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value * 10, value - 1)
    elif isinstance(value, str):
        yield from _vary_text(value, words, dice)
    elif isinstance(value, list) and value:
        yield value[:-1]
        yield [*value, value[0]]
    elif isinstance(value, dict):
        properties = _properties_of(schema)
        for name in dice.sample(sorted(value), len(value)):
            for other in other_values(value[name], _as_object(properties.get(name)), words, dice):
                yield {**value, name: other}


def _vary_text(value: str, words: Sequence[str], dice: random.Random) -> Iterator[str]:
    """Yield texts like this one: with another last digit, without a word, other words of the request, with a suffix."""
    digits = list(_DIGIT.finditer(value))
    if digits:
        at = digits[-1].start()
        for other in dice.sample("123456789", 9):
            yield value[:at] + other + value[at + 1 :]
    parts = value.split()
    if len(parts) > 2:
        dropped = dice.randrange(len(parts))
        yield " ".join(parts[:dropped] + parts[dropped + 1 :])
    yield from (word for word in dice.sample(words, len(words)) if len(word) > 3 and word.lower() not in value.lower())
    yield value + "-2"


KINDS: dict[str, Callable[[SourceRow, random.Random], Negative | None]] = {
    "wrong_tool": make_wrong_tool_call,
    "wrong_arguments": make_wrong_arguments_call,
    "not_needed": make_unneeded_call,
    "ask_back": make_premature_call,
    "broken_syntax": make_broken_call,
}


# -- files -------------------------------------------------------------------------------------------------------------

MOST, SEED = 1_000, "rightcall-mutate-v1"
_RANK = 8  # bytes
_FRAME = struct.Struct(f">B{_RANK}sI")  # kind, rank, size of the line


class Mutated(msgspec.Struct, frozen=True):
    """The result: the number of `rows`, also by `kinds`, made of so many `sources`; and how many rows of each kind were
    over its cap (`over`). `output` is the file."""

    rows: int
    sources: int
    kinds: dict[str, int]
    over: dict[str, int]
    output: str


def mutate_files(
    paths: Iterable[str | Path],
    output: str | Path,
    *,
    kinds: Mapping[str, int] | None = None,
    formats: Sequence[str] = (),
    seed: str = SEED,
    engine: str = "local",
    jobs: int | None = None,
    resume: bool = False,
    seen: Seen | None = None,
    force: bool = False,
) -> Mutated:
    """Write wrong calls, made of right ones: of calls labelled valid, or without a label and without a blocking
    problem. Each has its label, the change and the reason why it is wrong, and is verified: it differs from the right
    call, and `check`, and the scenario where it is known, agree with its label.

    - `paths`: captures.
    - `output`: the file.
    - `kinds`: the most rows of each kind ("wrong_tool", "wrong_arguments", "not_needed", "ask_back", "broken_syntax");
      None: a thousand of each.
    - `formats`: the wire formats of calls with broken syntax; without any, all of them.
    - `seed`: the same seed gives the same rows.
    - `engine`, `jobs`, `resume`: as in `label_files`.
    - `seen`, `force`: as in `export`.

    Raise `BadRows` for rows with faults, and `CallerError` for an unknown kind or a negative number; nothing is
    written then.
    """
    caps = dict.fromkeys(KINDS, MOST) if kinds is None else dict(kinds)
    for kind, most in caps.items():
        if kind not in KINDS:
            raise CallerError(f"no kind {kind!r:.40}; there are {', '.join(KINDS)}")
        if most < 0:
            raise CallerError(f"the cap of {kind} is {most}; give 0 or more")
    run, counts = RowRun(engine, jobs, resume, seen), Counter[str]()
    files = run.sources(paths)
    with output_sink(output, MUTATED, files, force=force) as sink, RowSpool(output, "made", resume=resume) as spool:
        sink.begin("mutate")
        totals = run.map(files, _MutateWork(Mutator(caps, formats, seed)), spool)
        chosen = ChosenRows(caps, spool.pieces)
        for kind, line in chosen:
            counts[kind] += 1
            sink.write(line, {})
        sink.finish()
    written = {kind: counts[kind] for kind in caps}
    over = {kind: chosen.made[kind] - counts[kind] for kind in caps if chosen.made[kind] > counts[kind]}
    return Mutated(sum(written.values()), totals.rows, written, over, str(output))


class _MutateWork:
    """Make the negatives of the rows of a part."""

    def __init__(self, maker: Mutator) -> None:
        self.key = f"mutate {maker.kinds} {maker.seed} {digest(repr(maker.formats)).hex()}"
        self._maker = maker

    def __call__(self, batch: RowBatch) -> RowOutcome:
        """Return the encoded negatives of the rows of a part. Invalid rows are recorded as faults."""
        outcome = RowOutcome()
        outcome.data = b"".join([self._maker.frames(row) for _, row in capture_rows(batch, outcome)])
        return outcome


class Mutator:
    """Makes the negatives of single rows, of these `kinds`. It can be pickled. Without `formats`, every format is used
    except those that must be named."""

    def __init__(self, kinds: Iterable[str], formats: Sequence[str] = (), seed: str = SEED) -> None:
        self.kinds, self.seed = list(kinds), seed
        chosen = formats or [name for name in FORMATS if name not in NAMED_ONLY]
        self.formats = [find(name) for name in chosen]  # the values: a worker may not know a format of the caller
        self._labeller = Labeller()

    def negatives(self, row: Json) -> Iterator[tuple[str, bytes, Json]]:
        """Yield kind, rank and row of each negative of a row; nothing for a row that a mutation made. The rank, a
        digest of seed, kind and row, decides which negatives are kept within a cap."""
        if row.get("source_bucket") == BUCKET:
            return
        source, key = SourceRow(row, self._labeller, self.formats), capture_key(row)
        for kind in self.kinds:
            rank = digest(f"{self.seed}\0{kind}\0{key}")
            made = KINDS[kind](source, random.Random(int.from_bytes(rank, "big")))
            if made is not None:
                yield kind, rank, made.row(source, kind, self.seed)

    def frames(self, row: Json) -> bytes:
        """Return the encoded negatives of a row, which `ChosenRows` decodes."""
        frames: list[bytes] = []
        for kind, rank, made in self.negatives(row):
            line = encode_row(made)
            frames.append(_FRAME.pack(self.kinds.index(kind), rank[:_RANK], len(line)) + line)
        return b"".join(frames)


class ChosenRows:
    """Of all negatives those within their caps, in the order in which they were made. `pieces` returns their bytes, and
    is called twice, so that no row is in memory. `made` has the number of rows of each kind."""

    def __init__(self, caps: Mapping[str, int], pieces: Callable[[], Iterator[bytes]]) -> None:
        self._kinds, self._caps, self._pieces = list(caps), caps, pieces
        self.made: Counter[str] = Counter()

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """Yield the kind and the encoded row of each chosen negative, in the order in which they were made, and fill
        `made`."""
        chosen = self._choose()
        for number, (kind, _, line) in enumerate(_read_frames(self._pieces())):
            if number in chosen:
                yield self._kinds[kind], line

    def _choose(self) -> RowNumbers:
        """Return the numbers of the rows to keep: those of lowest rank in each kind, up to its cap. Count the rows
        of each kind in `made`."""
        chosen = RowNumbers()
        with Scratch("CREATE TABLE ranks (kind INT, rank BLOB, number INT)") as scratch:
            frames = enumerate(_read_frames(self._pieces()))
            scratch.insert("INSERT INTO ranks VALUES (?, ?, ?)", ((kind, rank, at) for at, (kind, rank, _) in frames))
            for kind, count in scratch.db.execute("SELECT kind, count(*) FROM ranks GROUP BY kind"):
                self.made[self._kinds[kind]] = count
            for at, kind in enumerate(self._kinds):
                ranked = "SELECT number FROM ranks WHERE kind = ? ORDER BY rank, number LIMIT ?"
                for (number,) in scratch.db.execute(ranked, (at, self._caps[kind])):
                    chosen.add(number)
        return chosen


def _read_frames(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the index of the kind, the rank and the line of each negative that `Mutator.frames` encoded, from pieces of
    any size; an incomplete last one is dropped."""
    data, at = b"", 0
    for piece in pieces:
        data, at = data[at:] + piece, 0
        while len(data) - at >= _FRAME.size:
            kind, rank, size = _FRAME.unpack_from(data, at)
            if len(data) - at < _FRAME.size + size:
                break
            start = at + _FRAME.size
            yield kind, rank, data[start : start + size]
            at = start + size
