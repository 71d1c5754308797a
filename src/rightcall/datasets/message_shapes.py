"""Captured conversations in the shapes that trainers read: one function each, all in `SHAPES`.

    for example in SHAPES["trl-sft"].examples(conversation, MessageOptions()):    # a dict, or a `LeftOut`: why not

A turn is good if its rows are labelled valid, or have no label and nothing that blocks. What cannot be said in a shape
is left out, never bent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from rightcall.backends.plain_prompt import write_as_text
from rightcall.backends.request import Request
from rightcall.datasets.columns import FORGED, JUDGED, OPENAI, PAIRS, PROMPTED, SFT, SHAREGPT, VERIFIER, WRITTEN
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
    """This conversation, or this turn, cannot be said in the shape that was asked for. The message is the reason."""


class MessageOptions(msgspec.Struct, frozen=True):
    """What the shapes need to know: whole conversations or single turns, and for plain text the format; `contract` is
    the choice of a request whose prompt it is to be, as a backend sends it that offers tools as text."""

    turns: bool = False
    format: Format | None = None
    contract: str = ""


Found = Iterator[Json | LeftOut]


# -- messages ----------------------------------------------------------------------------------------------------------


def _plain(message: Json, *, objects: bool) -> Json:
    """A message with the keys that trainers know. Arguments are text, or with `objects` the object itself."""
    role = message.get("role")
    made: Json = {"role": role, "content": _content(message.get("content"))}
    calls = message.get("tool_calls")
    if role == "assistant" and isinstance(calls, list) and calls:
        made["content"] = made["content"] or None
        made["tool_calls"] = [_call(each, objects=objects) for each in calls]
    elif role == "assistant" and not made["content"].strip():
        raise LeftOut("a message of the model is empty")
    kept = ["tool_call_id"] if role == "tool" else []
    if objects:
        kept += ["name", "reasoning_content"] if role == "tool" else ["reasoning_content"]
    return made | {key: message[key] for key in kept if isinstance(message.get(key), str)}


def _content(content: Any) -> str:
    if isinstance(content, str) or content is None:
        return content or ""
    parts = content if isinstance(content, list) else []
    said = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    if len(said) < len(parts) or not parts:
        raise LeftOut("a message holds something else than text")
    return "\n".join(said)


_UNREADABLE = "the history holds a call that cannot be read"


def _call(entry: Any, *, objects: bool) -> Json:
    function = entry.get("function") if isinstance(entry, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise LeftOut(_UNREADABLE)
    said = function.get("arguments")
    text = "{}" if said is None or said == "" else said if isinstance(said, str) else compact_json(said)
    arguments = decode(text, MAX_DEPTH)
    if not isinstance(arguments, dict):
        raise LeftOut(_UNREADABLE)
    given = arguments if objects else text
    return {"id": entry.get("id") or "", "type": "function", "function": {"name": function["name"], "arguments": given}}


def _messages(turn: CapturedTurn, *, objects: bool) -> list[Json]:
    return [_plain(message, objects=objects) for message in turn.messages]


def _said(turn: CapturedTurn, *, objects: bool) -> Json:
    return _plain(turn.assistant, objects=objects)


def _whole(conversation: CapturedConversation) -> tuple[CapturedTurn, list[CapturedTurn]]:
    """The last turn that may be learned from, and the turns before it."""
    turns = conversation.turns
    good = [(at, turn.lacks) for at, turn in enumerate(turns) if turn.good is not False]
    last = max((at for at, lacks in good if not lacks), default=None)
    if last is None:
        raise LeftOut(good[-1][1] if good else "no good turn")
    end, before = turns[last], turns[:last]
    if any(end.messages[: len(turn.messages)] != turn.messages for turn in before):
        raise LeftOut("the history was rewritten between turns (--turns keeps its good turns)")
    return end, before


def _good(conversation: CapturedConversation) -> CapturedTurn:
    """The last good turn of a conversation without a bad one before it."""
    end, before = _whole(conversation)
    if any(turn.good is False for turn in before):
        raise LeftOut("a turn before the last is bad (--turns keeps the good ones)")
    return end


# -- the shapes --------------------------------------------------------------------------------------------------------


def _openai_sft(conversation: CapturedConversation, how: MessageOptions) -> Found:
    """{"messages", "tools", "parallel_tool_calls"}; arguments are text; a bad turn has weight 0: not learned from."""
    end, before = _whole(conversation)
    messages = [*_messages(end, objects=False), _said(end, objects=False)]
    for turn in before:
        if turn.good is False and not turn.outcome:
            messages[len(turn.messages)]["weight"] = 0
    several = any(len(message.get("tool_calls", ())) > 1 for message in messages)
    yield {"messages": messages, "tools": conversation.definitions, "parallel_tool_calls": several}


def _trl_sft(conversation: CapturedConversation, how: MessageOptions) -> Found:
    """{"messages", "tools"}, or with single turns {"prompt", "completion", "tools"}; arguments are objects."""
    if how.turns:
        yield from _each(conversation, _prompted)
        return
    end = _good(conversation)
    yield {"messages": [*_messages(end, objects=True), _said(end, objects=True)], "tools": conversation.definitions}


def _prompted(conversation: CapturedConversation, turn: CapturedTurn) -> Json:
    completion = [_said(turn, objects=True)]
    return {"prompt": _messages(turn, objects=True), "completion": completion, "tools": conversation.definitions}


def _each(conversation: CapturedConversation, make: Callable[[CapturedConversation, CapturedTurn], Json]) -> Found:
    """One example of each good turn."""
    for turn in conversation.turns:
        if turn.good is False or turn.lacks:
            yield LeftOut("a bad turn" if turn.good is False else turn.lacks)
            continue
        try:
            yield make(conversation, turn)
        except LeftOut as reason:
            yield reason


def _trl_kto(conversation: CapturedConversation, how: MessageOptions) -> Found:
    """{"prompt", "completion", "label", "tools"}: each turn with whether it is good; what nobody judged is left out."""
    for turn in conversation.turns:
        if turn.good is None or (turn.outcome and turn.rows[0]["outcome"]["ended"] != "answer"):
            yield LeftOut("a turn without a label" if turn.good is None else "ended without an answer")
            continue
        if turn.lacks:
            yield LeftOut(turn.lacks)
            continue
        try:
            said = _said(turn, objects=True) if turn.good else _as_sent(turn)
            example = {"prompt": _messages(turn, objects=True), "completion": [said], "label": turn.good}
            yield {**example, "tools": conversation.definitions}
        except LeftOut as reason:
            yield reason


def _trl_preference(conversation: CapturedConversation, how: MessageOptions) -> Found:
    """{"prompt", "chosen", "rejected", "tools"}: a call as it was repaired against the call as it was sent, and the
    good turn that followed a bad one against the bad one."""
    if not any(_compares(*each) for each in _followed(conversation)):
        yield LeftOut("nothing to compare: no call was repaired, and no bad call has a good one behind it")
    for turn, following in _followed(conversation):
        try:
            pair = _pair(turn, following)
        except LeftOut as reason:
            yield reason
            continue
        if pair is not None:
            chosen, rejected = pair
            prompt = _messages(turn, objects=True)
            yield {"prompt": prompt, "chosen": [chosen], "rejected": [rejected], "tools": conversation.definitions}


def _followed(conversation: CapturedConversation) -> list[tuple[CapturedTurn, CapturedTurn | None]]:
    return list(zip(conversation.turns, [*conversation.turns[1:], None], strict=True))


def _compares(turn: CapturedTurn, following: CapturedTurn | None) -> CapturedTurn | None:
    """The turn that is better than this one was as it was sent: itself repaired, or the next; None if neither is."""
    if turn.outcome:
        return None
    if turn.good is not False and any(call.repairs for call in turn.calls):
        return turn
    better = following is not None and following.good is not False and not following.outcome
    return following if turn.good is False and better else None


def _pair(turn: CapturedTurn, following: CapturedTurn | None) -> tuple[Json, Json] | None:
    better = _compares(turn, following)
    if better is None:
        return None
    if turn.lacks:
        raise LeftOut(turn.lacks)
    chosen = _said(better, objects=True)
    rejected = _as_sent(turn)
    if not rejected["content"] and not rejected.get("tool_calls"):
        raise LeftOut("the call as it was sent is empty")
    if _bare(chosen) == _bare(rejected):
        raise LeftOut("the call as it was sent is the same")
    return chosen, rejected


def _bare(message: Json) -> Any:
    """What was said, without the ids that we gave."""
    calls = message.get("tool_calls") or []
    return message.get("content") or "", [each["function"] for each in calls]


def _as_sent(turn: CapturedTurn) -> Json:
    """The turn as the model wrote it: text as text; a provider's message with its calls, where these can be read."""
    raw = turn.rows[0].get("reply")
    if isinstance(raw, str):
        return {"role": "assistant", "content": raw}
    sent = read(raw, repair="off") if isinstance(raw, dict | list) and raw else None
    if sent is None or sent.refused or not sent.calls:
        texts = [call.raw or call.json for call in turn.calls]
        return {"role": "assistant", "content": "\n".join([sent.content if sent else "", *texts]).strip()}
    entries = [_entry(call) for call in sent.calls]
    return {"role": "assistant", "content": sent.content or None, "tool_calls": entries}


def _entry(call: Call) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


_FROM = {"user": "human", "tool": "observation"}


def _sharegpt(conversation: CapturedConversation, how: MessageOptions) -> Found:
    """LLaMA-Factory: {"conversations": [{"from", "value"}], "system", "tools"}; several calls, and several results, of
    one turn are one entry each, so that the sides alternate."""
    end = _good(conversation)
    entries: list[Json] = []
    system: list[str] = []
    for message in [*_messages(end, objects=True), _said(end, objects=True)]:
        if message["role"] in ("system", "developer"):
            system.append(message["content"])
        else:
            _add(entries, *_entry_of(message))
    tools = compact_json([definition["function"] for definition in conversation.definitions])
    observed = {"conversations": [_closed(entry) for entry in entries], "system": "\n\n".join(system), "tools": tools}
    sides = [entry["from"] in ("human", "observation") for entry in entries]
    if sides != [at % 2 == 0 for at in range(len(entries))]:
        raise LeftOut("the two sides do not take turns")
    yield observed


def _entry_of(message: Json) -> tuple[str, Any]:
    if message["role"] != "assistant":
        if message["role"] not in _FROM:
            raise LeftOut(f"there is no place for the role {message['role']!r:.40}")
        return _FROM[message["role"]], message["content"]
    calls = message.get("tool_calls")
    if not calls:
        return "gpt", message["content"] or ""
    if message["content"]:
        raise LeftOut("there is no place for text beside calls")
    return "function_call", [each["function"] for each in calls]


def _add(entries: list[Json], side: str, value: Any) -> None:
    if side == "observation" and entries and entries[-1]["from"] == side:
        entries[-1]["value"].append(value)
    else:
        entries.append({"from": side, "value": [value] if side == "observation" else value})


def _closed(entry: Json) -> Json:
    value = entry["value"]
    if entry["from"] == "function_call":
        value = compact_json(value[0] if len(value) == 1 else value)
    elif entry["from"] == "observation":
        value = value[0] if len(value) == 1 else compact_json(value)
    return {"from": entry["from"], "value": value}


def _verifier(conversation: CapturedConversation, how: MessageOptions) -> Found:
    """`toolcall-verifier-training/v1`: each call that has a label."""
    yield from _calls(conversation, training_row, "a row without a label")


def _forge_capture(conversation: CapturedConversation, how: MessageOptions) -> Found:
    """`forge-dataset-capture/v1`: each call that was answered and that its validator takes."""
    yield from _calls(conversation, forge_row, "a call that does not fit its tool, or that nothing answered")


def _calls(conversation: CapturedConversation, make: Callable[[Json], Json | None], why: str) -> Found:
    """What is made of each call; `why` tells why nothing is."""
    for turn in conversation.turns:
        for row in turn.rows:
            if turn.outcome:
                yield LeftOut("an outcome")
                continue
            made = None if turn.lacks else make(row)
            yield made if made is not None else LeftOut(turn.lacks or why)


def _text(conversation: CapturedConversation, how: MessageOptions) -> Found:
    """{"prompt", "completion", "format", "tools"}: each good turn as the model would write it in that format; its
    history too. With a contract, the prompt is what a backend would send, to the letter."""
    assert how.format is not None
    chosen = how.format

    def written(conversation: CapturedConversation, turn: CapturedTurn) -> Json:
        try:
            history = _history(turn, how, conversation)
            completion = _render(_said(turn, objects=True), chosen, conversation)
        except CannotCarry as error:
            raise LeftOut(f"{chosen.name} cannot carry it: {error.cause}") from error
        example = {"prompt": history, "completion": completion, "format": chosen.name}
        return {**example, "tools": conversation.definitions}

    yield from _each(conversation, written)


def _history(turn: CapturedTurn, how: MessageOptions, conversation: CapturedConversation) -> list[Json]:
    assert how.format is not None
    messages = _messages(turn, objects=True)
    if not how.contract:
        return [_rendered(message, how.format, conversation) for message in messages]
    sent = Request(messages=_messages(turn, objects=False), tools=conversation.tools, choice=how.contract)
    return write_as_text(sent, how.format)


def _rendered(message: Json, format: Format, conversation: CapturedConversation) -> Json:
    if message["role"] != "assistant":
        return {"role": message["role"], "content": message["content"]}
    return {"role": "assistant", "content": _render(message, format, conversation)}


def _render(message: Json, format: Format, conversation: CapturedConversation) -> str:
    parts: list[Part] = [Text(message["content"])] if message["content"] else []
    for each in message.get("tool_calls", ()):
        function = each["function"]
        parts.append(Call(function["name"], function["arguments"], "", each["id"]))
    return render(parts, format=format, tools=conversation.tools)


class TrainingShape(NamedTuple):
    """A shape that a trainer reads.

    - `examples`: what a conversation is in it.
    - `columns`: its columns in Parquet; `turns` those with `--turns`, where it knows that.
    - `example`, `arguments`: what an example is, and what arguments are in it, in words.
    - `takes_format`: it is written in a wire format, which must be named.
    """

    examples: Callable[[CapturedConversation, MessageOptions], Found]
    columns: Json
    example: str
    arguments: str
    turns: Json | None = None
    takes_format: bool = False


SHAPES: dict[str, TrainingShape] = {
    "openai-sft": TrainingShape(_openai_sft, OPENAI, "a conversation; a bad turn in it has weight 0", "text"),
    "trl-sft": TrainingShape(
        _trl_sft,
        SFT,
        "a conversation without a bad turn; with `--turns` each good turn as prompt and completion",
        "objects",
        PROMPTED,
    ),
    "trl-preference": TrainingShape(
        _trl_preference,
        PAIRS,
        "chosen and rejected: a repaired call against the call as it was sent, a good turn against the bad one before",
        "objects",
    ),
    "trl-kto": TrainingShape(_trl_kto, JUDGED, "each judged turn, with whether it is good", "objects"),
    "sharegpt": TrainingShape(_sharegpt, SHAREGPT, "a conversation, as LLaMA-Factory reads it", "in a JSON text"),
    "verifier": TrainingShape(_verifier, VERIFIER, "a labelled call, `toolcall-verifier-training/v1`", "objects"),
    "forge-capture": TrainingShape(
        _forge_capture, FORGED, "a call that was answered, `forge-dataset-capture/v1`", "objects"
    ),
    "text": TrainingShape(
        _text,
        WRITTEN,
        "each good turn as a model would write it in a wire format: `--format hermes`, or any other",
        "as the format has them",
        takes_format=True,
    ),
}
