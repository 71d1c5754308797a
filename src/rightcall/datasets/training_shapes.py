"""Captured conversations in the shapes that trainers read: one function for each shape, all in `SHAPES`.

    for example in SHAPES["trl-sft"].examples(conversation, ShapeOptions()):    # a dict, or a `LeftOut` with the reason

A turn is good if its rows are labelled valid, or have no label and no blocking problem. What a shape cannot represent
is left out, never changed to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from rightcall.backends.plain_prompt import write_as_text
from rightcall.backends.request import Request
from rightcall.datasets.conversations import CapturedConversation, CapturedTurn
from rightcall.datasets.forge_rows import forge_row, training_row
from rightcall.errors import CannotCarry
from rightcall.formats.spec import Format
from rightcall.parsing.rendering import render
from rightcall.providers.provider_answers import read
from rightcall.providers.sdk_view import compact_json
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.types import Call, Json, Part, Text


class LeftOut(Exception):
    """A conversation or a turn that the shape cannot represent. The message is the reason."""


class ShapeOptions(msgspec.Struct, frozen=True):
    """The options of a shape: whether each turn is an example of its own (`turns`), and for plain text the `format` of
    calls, and the choice of the request whose prompt a text backend would send (`contract`)."""

    turns: bool = False
    format: Format | None = None
    contract: str = ""


Examples = Iterator[Json | LeftOut]


# -- messages ----------------------------------------------------------------------------------------------------------


def _plain_message(message: Json, *, objects: bool) -> Json:
    """Return a message with only the keys that trainers know. Arguments are JSON text or, with `objects`, objects.
    Raises `LeftOut` for an empty message of the model and for content that is not text."""
    role = message.get("role")
    made: Json = {"role": role, "content": _plain_content(message.get("content"))}
    calls = message.get("tool_calls")
    if role == "assistant" and isinstance(calls, list) and calls:
        made["content"] = made["content"] or None
        made["tool_calls"] = [_plain_call(each, objects=objects) for each in calls]
    elif role == "assistant" and not made["content"].strip():
        raise LeftOut("a message of the model is empty")
    kept = ["tool_call_id"] if role == "tool" else []
    if objects:
        kept += ["name", "reasoning_content"] if role == "tool" else ["reasoning_content"]
    return made | {key: message[key] for key in kept if isinstance(message.get(key), str)}


def _plain_content(content: Any) -> str:
    """Return the content of a message as one text; "" for None. Raises `LeftOut` for anything but text."""
    if isinstance(content, str) or content is None:
        return content or ""
    parts = content if isinstance(content, list) else []
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    if len(texts) < len(parts) or not parts:
        raise LeftOut("a message contains something other than text")
    return "\n".join(texts)


def _plain_call(entry: Any, *, objects: bool) -> Json:
    """Return an entry of `tool_calls` with id, name and arguments only. Raises `LeftOut` if it has no name or its
    arguments are no object."""
    function = entry.get("function") if isinstance(entry, dict) else None
    if isinstance(function, dict) and isinstance(function.get("name"), str):
        given = function.get("arguments")
        text = "{}" if given is None or given == "" else given if isinstance(given, str) else compact_json(given)
        arguments = decode(text, MAX_DEPTH)
        if isinstance(arguments, dict):
            plain = {"name": function["name"], "arguments": arguments if objects else text}
            return {"id": entry.get("id") or "", "type": "function", "function": plain}
    raise LeftOut("the history contains a call that cannot be parsed")


def _plain_history(turn: CapturedTurn, *, objects: bool) -> list[Json]:
    """Return the messages before a turn with only the keys that trainers know; with `objects`, arguments are objects
    instead of JSON text. Raises `LeftOut` for a message that cannot be represented (see `_plain_message`)."""
    return [_plain_message(message, objects=objects) for message in turn.messages]


def _plain_answer(turn: CapturedTurn, *, objects: bool) -> Json:
    """Return the message of a turn with only the keys that trainers know; with `objects`, arguments are objects instead
    of JSON text. Raises `LeftOut` if it cannot be represented (see `_plain_message`)."""
    return _plain_message(turn.assistant, objects=objects)


def _split_at_last_good(conversation: CapturedConversation) -> tuple[CapturedTurn, list[CapturedTurn]]:
    """Return the last turn that is not bad and can be an example, and the turns before it. Raises `LeftOut` if there
    is none, or the history was rewritten between turns."""
    turns = conversation.turns
    good = [(at, turn.unusable) for at, turn in enumerate(turns) if turn.good is not False]
    last = max((at for at, unusable in good if not unusable), default=None)
    if last is None:
        raise LeftOut(good[-1][1] if good else "no good turn")
    end, before = turns[last], turns[:last]
    if any(end.messages[: len(turn.messages)] != turn.messages for turn in before):
        raise LeftOut("the history was rewritten between turns (--turns keeps its good turns)")
    return end, before


def _good_messages(conversation: CapturedConversation) -> list[Json]:
    """Return the plain messages up to and including the last good turn, with arguments as objects. Raises `LeftOut` if
    there is none, or a turn before it is bad."""
    end, before = _split_at_last_good(conversation)
    if any(turn.good is False for turn in before):
        raise LeftOut("a turn before the last is bad (--turns keeps the good ones)")
    return [*_plain_history(end, objects=True), _plain_answer(end, objects=True)]


def _make_turn_examples(
    conversation: CapturedConversation, make: Callable[[CapturedConversation, CapturedTurn], Json]
) -> Examples:
    """Yield one result for each turn: the example from `make`, or a `LeftOut` with the reason if the turn is bad,
    unusable or cannot be represented."""
    for turn in conversation.turns:
        if turn.good is False or turn.unusable:
            yield LeftOut("a bad turn" if turn.good is False else turn.unusable)
            continue
        try:
            yield make(conversation, turn)
        except LeftOut as reason:
            yield reason


def _make_call_examples(
    conversation: CapturedConversation, make: Callable[[Json], Json | None], missing: str
) -> Examples:
    """Yield one result for each row: the example of a call from `make`, or a `LeftOut` with the reason: an outcome, an
    unusable turn, or `missing` if `make` returns None."""
    for turn in conversation.turns:
        for row in turn.rows:
            if turn.is_outcome:
                yield LeftOut("an outcome")
                continue
            example = None if turn.unusable else make(row)
            yield example if example is not None else LeftOut(turn.unusable or missing)


# -- the shapes --------------------------------------------------------------------------------------------------------


def _openai_sft_examples(conversation: CapturedConversation, options: ShapeOptions) -> Examples:
    """Yield one example, {"messages", "tools", "parallel_tool_calls"}, with arguments as text. A bad turn before the
    last good one has weight 0, so that it is not learned. Raises `LeftOut` without a good turn, for a rewritten
    history, and for a message that cannot be represented."""
    end, before = _split_at_last_good(conversation)
    messages = [*_plain_history(end, objects=False), _plain_answer(end, objects=False)]
    for turn in before:
        if turn.good is False and not turn.is_outcome:
            messages[len(turn.messages)]["weight"] = 0
    several = any(len(message.get("tool_calls", ())) > 1 for message in messages)
    yield {"messages": messages, "tools": conversation.definitions, "parallel_tool_calls": several}


def _trl_sft_examples(conversation: CapturedConversation, options: ShapeOptions) -> Examples:
    """Yield {"messages", "tools"} of the conversation, or, with `options.turns`, {"prompt", "completion", "tools"} of
    each good turn, with arguments as objects. A turn that is left out yields a `LeftOut`; a conversation raises it."""
    if options.turns:
        yield from _make_turn_examples(conversation, _make_turn_example)
    else:
        yield {"messages": _good_messages(conversation), "tools": conversation.definitions}


def _make_turn_example(conversation: CapturedConversation, turn: CapturedTurn) -> Json:
    """Return {"prompt", "completion", "tools"} of a turn, with arguments as objects. Raises `LeftOut` if it cannot be
    represented."""
    completion = [_plain_answer(turn, objects=True)]
    return {"prompt": _plain_history(turn, objects=True), "completion": completion, "tools": conversation.definitions}


def _trl_kto_examples(conversation: CapturedConversation, options: ShapeOptions) -> Examples:
    """Yield {"prompt", "completion", "label", "tools"} for each labelled turn; the label says whether it is good. A bad
    turn is given as the model wrote it. For any other turn, yield a `LeftOut`."""
    for turn in conversation.turns:
        if turn.good is None or not turn.has_answer:
            yield LeftOut("a turn without a label" if turn.good is None else "ended without an answer")
            continue
        if turn.unusable:
            yield LeftOut(turn.unusable)
            continue
        try:
            completion = _plain_answer(turn, objects=True) if turn.good else _rejected_answer(turn)
            example = {"prompt": _plain_history(turn, objects=True), "completion": [completion], "label": turn.good}
            yield {**example, "tools": conversation.definitions}
        except LeftOut as reason:
            yield reason


def _trl_preference_examples(conversation: CapturedConversation, options: ShapeOptions) -> Examples:
    """Yield {"prompt", "chosen", "rejected", "tools"}: a repaired call preferred to the call that the model sent, and
    the good turn after a bad one preferred to the bad one. Yield a `LeftOut` for a pair that cannot be made, and one if
    there is nothing to compare."""
    turns = conversation.turns
    found = False
    for turn, following in zip(turns, [*turns[1:], None], strict=True):
        better = _find_better_turn(turn, following)
        if better is None:
            continue
        found = True
        try:
            chosen, rejected = _make_preference_pair(turn, better)
        except LeftOut as reason:
            yield reason
            continue
        prompt = _plain_history(turn, objects=True)
        yield {"prompt": prompt, "chosen": [chosen], "rejected": [rejected], "tools": conversation.definitions}
    if not found:
        yield LeftOut("nothing to compare: no call was repaired, and no bad call is followed by a good one")


def _find_better_turn(turn: CapturedTurn, following: CapturedTurn | None) -> CapturedTurn | None:
    """Return the turn to prefer to what the model wrote in this one: itself if it was repaired, the following one if
    this is bad and that is not; None if neither applies."""
    if turn.is_outcome:
        return None
    if turn.good is not False:
        return turn if any(call.repairs for call in turn.calls) else None
    if following is None or following.good is False or following.is_outcome:
        return None
    return following


def _make_preference_pair(turn: CapturedTurn, better: CapturedTurn) -> tuple[Json, Json]:
    """Return the message of `better` as chosen, and that of `turn` as the model wrote it as rejected. Raises `LeftOut`
    if the turn is unusable, the rejected message is empty, or both are equal."""
    if turn.unusable:
        raise LeftOut(turn.unusable)
    chosen, rejected = _plain_answer(better, objects=True), _rejected_answer(turn)
    if not rejected["content"] and not rejected.get("tool_calls"):
        raise LeftOut("the call is empty before repair")
    if _comparable_message(chosen) == _comparable_message(rejected):
        raise LeftOut("the call is the same before repair")
    return chosen, rejected


def _comparable_message(message: Json) -> Any:
    """Return the text and the calls of a message without the ids of calls, which do not count in a comparison."""
    return message.get("content") or "", [each["function"] for each in message.get("tool_calls") or ()]


def _rejected_answer(turn: CapturedTurn) -> Json:
    """Return the turn as the model wrote it, without repairs: a text as it is; a provider's message with its calls,
    or with their text if one cannot be parsed."""
    raw = turn.rows[0].get("reply")
    if isinstance(raw, str):
        return {"role": "assistant", "content": raw}
    sent = read(raw, repair="off") if isinstance(raw, dict | list) and raw else None
    if sent is None or sent.refused or not sent.calls:
        texts = [call.raw or call.json for call in turn.calls]
        return {"role": "assistant", "content": "\n".join([sent.content if sent else "", *texts]).strip()}
    functions = [(call.id, {"name": call.name, "arguments": call.arguments}) for call in sent.calls]
    entries = [{"id": id, "type": "function", "function": function} for id, function in functions]
    return {"role": "assistant", "content": sent.content or None, "tool_calls": entries}


_SHAREGPT_SIDES = {"user": "human", "tool": "observation"}


def _sharegpt_examples(conversation: CapturedConversation, options: ShapeOptions) -> Examples:
    """Yield {"conversations": [{"from", "value"}], "system", "tools"} for LLaMA-Factory. Several calls, and several
    results, of one turn are one entry each, so that the sides alternate; otherwise `LeftOut` is raised."""
    entries: list[tuple[str, list[Any]]] = []
    system: list[str] = []
    for message in _good_messages(conversation):
        if message["role"] in ("system", "developer"):
            system.append(message["content"])
            continue
        side, values = _sharegpt_entry(message)
        if side == "observation" and entries and entries[-1][0] == side:
            entries[-1][1].extend(values)
        else:
            entries.append((side, values))
    sides = [side in ("human", "observation") for side, _ in entries]
    if sides != [at % 2 == 0 for at in range(len(entries))]:
        raise LeftOut("the two sides do not take turns")
    yield {
        "conversations": [{"from": side, "value": _sharegpt_value(values)} for side, values in entries],
        "system": "\n\n".join(system),
        "tools": compact_json([definition["function"] for definition in conversation.definitions]),
    }


def _sharegpt_entry(message: Json) -> tuple[str, list[Any]]:
    """Return the side of a message and its values: its calls, or its text. Raises `LeftOut` for a role without a
    side and for text beside calls."""
    if message["role"] != "assistant":
        if message["role"] not in _SHAREGPT_SIDES:
            raise LeftOut(f"there is no place for the role {message['role']!r:.40}")
        return _SHAREGPT_SIDES[message["role"]], [message["content"]]
    calls = message.get("tool_calls")
    if not calls:
        return "gpt", [message["content"] or ""]
    if message["content"]:
        raise LeftOut("there is no place for text beside calls")
    return "function_call", [each["function"] for each in calls]


def _sharegpt_value(values: list[Any]) -> str:
    """Return the value of an entry: a single text as it is, a single object or several values as JSON text."""
    value = values[0] if len(values) == 1 else values
    return value if isinstance(value, str) else compact_json(value)


def _verifier_examples(conversation: CapturedConversation, options: ShapeOptions) -> Examples:
    """Yield `toolcall-verifier-training/v1` for each call that has a label, and a `LeftOut` for every other row."""
    return _make_call_examples(conversation, training_row, "a row without a label")


def _forge_capture_examples(conversation: CapturedConversation, options: ShapeOptions) -> Examples:
    """Yield a row of `forge-dataset-capture/v1` for each call that has a result and fits its tool, and a `LeftOut` for
    every other row."""
    return _make_call_examples(conversation, forge_row, "a call that does not fit its tool, or that has no result")


def _text_examples(conversation: CapturedConversation, options: ShapeOptions) -> Examples:
    """Yield {"prompt", "completion", "format", "tools"} for each good turn, with its history as the model would write
    it in that format, and a `LeftOut` for every other turn. With a contract, the prompt is exactly what a backend would
    send."""
    assert options.format is not None
    format = options.format

    def make_example(conversation: CapturedConversation, turn: CapturedTurn) -> Json:
        """Return the example of a turn. Raises `LeftOut` if the format cannot express its calls."""
        try:
            if options.contract:
                messages = _plain_history(turn, objects=False)
                request = Request(messages=messages, tools=conversation.tools, choice=options.contract)
                prompt = write_as_text(request, format)
            else:
                prompt = [_render_message(each, format, conversation) for each in _plain_history(turn, objects=True)]
            completion = _render_message(_plain_answer(turn, objects=True), format, conversation)["content"]
        except CannotCarry as error:
            raise LeftOut(f"{format.name} cannot carry it: {error.cause}") from error
        example = {"prompt": prompt, "completion": completion, "format": format.name}
        return {**example, "tools": conversation.definitions}

    return _make_turn_examples(conversation, make_example)


def _render_message(message: Json, format: Format, conversation: CapturedConversation) -> Json:
    """Return role and content of a message, with its calls rendered as text in this format. Raises `CannotCarry` if
    the format cannot express them."""
    content = message["content"]
    if message["role"] == "assistant":
        parts: list[Part] = [Text(content)] if content else []
        for each in message.get("tool_calls", ()):
            function = each["function"]
            parts.append(Call(function["name"], function["arguments"], "", each["id"]))
        content = render(parts, format=format, tools=conversation.tools)
    return {"role": message["role"], "content": content}


# -- columns in Parquet, as the feature types of the library `datasets` ------------------------------------------------

_STRING: Json = {"dtype": "string", "_type": "Value"}
_BOOL: Json = {"dtype": "bool", "_type": "Value"}
_INTEGER: Json = {"dtype": "int64", "_type": "Value"}
_JSON: Json = {"_type": "Json"}


def _list_feature(feature: Json) -> Json:
    """Return the feature type of the library `datasets` for a list of values of this feature type."""
    return {"_type": "List", "feature": feature}


def _message_feature(arguments: Json, **more: Json) -> Json:
    """Return the feature type of a message whose arguments have the type `arguments`, with `more` fields."""
    function = {"name": _STRING, "arguments": arguments}
    calls = _list_feature({"id": _STRING, "type": _STRING, "function": function})
    return {"role": _STRING, "content": _STRING, "tool_calls": calls, "tool_call_id": _STRING, **more}


_MESSAGES = _list_feature(_message_feature(_JSON, name=_STRING, reasoning_content=_STRING))
_TOOLS = _list_feature(_JSON)
_VERIFIER_INPUT: Json = {
    "schema_version": _STRING,
    "user_request": _STRING,
    "workflow_state": _JSON,
    "available_tools": _TOOLS,
    "candidate_call": {"name": _STRING, "arguments": _JSON},
    "metadata": _JSON,
}


# -- the table ---------------------------------------------------------------------------------------------------------


class TrainingShape(NamedTuple):
    """A shape that a trainer reads.

    - `examples`: returns the examples of a conversation.
    - `columns`: its columns in Parquet; `turn_columns`: those with `--turns`, None if it does not take that.
    - `example`, `arguments`: descriptions of an example and of the arguments in it, for help and documentation.
    - `takes_format`: calls are text in a wire format, which must be named.
    """

    examples: Callable[[CapturedConversation, ShapeOptions], Examples]
    columns: Json
    example: str
    arguments: str
    turn_columns: Json | None = None
    takes_format: bool = False


SHAPES: dict[str, TrainingShape] = {
    "openai-sft": TrainingShape(
        _openai_sft_examples,
        {
            "messages": _list_feature(_message_feature(_STRING, weight=_INTEGER)),
            "tools": _TOOLS,
            "parallel_tool_calls": _BOOL,
        },
        "a conversation; a bad turn in it has weight 0",
        "text",
    ),
    "trl-sft": TrainingShape(
        _trl_sft_examples,
        {"messages": _MESSAGES, "tools": _TOOLS},
        "a conversation without a bad turn; with `--turns` each good turn as prompt and completion",
        "objects",
        {"prompt": _MESSAGES, "completion": _MESSAGES, "tools": _TOOLS},
    ),
    "trl-preference": TrainingShape(
        _trl_preference_examples,
        {"prompt": _MESSAGES, "chosen": _MESSAGES, "rejected": _MESSAGES, "tools": _TOOLS},
        "chosen and rejected: a repaired call against the call as it was sent, a good turn against the bad one before",
        "objects",
    ),
    "trl-kto": TrainingShape(
        _trl_kto_examples,
        {"prompt": _MESSAGES, "completion": _MESSAGES, "label": _BOOL, "tools": _TOOLS},
        "each judged turn, with whether it is good",
        "objects",
    ),
    "sharegpt": TrainingShape(
        _sharegpt_examples,
        {"conversations": _list_feature({"from": _STRING, "value": _STRING}), "system": _STRING, "tools": _STRING},
        "a conversation, as LLaMA-Factory reads it",
        "in a JSON text",
    ),
    "verifier": TrainingShape(
        _verifier_examples,
        {"schema_version": _STRING, "input": _VERIFIER_INPUT, "label": _STRING, "review": _JSON},
        "a labelled call, `toolcall-verifier-training/v1`",
        "objects",
    ),
    "forge-capture": TrainingShape(
        _forge_capture_examples,
        {
            **dict.fromkeys(("schema_version", "kind", "example_group_id", "source_bucket", "user_request"), _STRING),
            **dict.fromkeys(("workflow_state", "candidate_call", "tool_result", "proxy_trace", "metadata"), _JSON),
            "available_tools": _TOOLS,
        },
        "a call that was answered, `forge-dataset-capture/v1`",
        "objects",
    ),
    "text": TrainingShape(
        _text_examples,
        {
            "prompt": _list_feature({"role": _STRING, "content": _STRING}),
            "completion": _STRING,
            "format": _STRING,
            "tools": _TOOLS,
        },
        "each good turn as a model would write it in a wire format: `--format hermes`, or any other",
        "as the format has them",
        takes_format=True,
    ),
}
