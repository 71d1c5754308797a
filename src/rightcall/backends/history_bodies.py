"""A history in the words of each dialect: what stands under `messages`, `input` or `contents` of a body.

    written("messages", [{"role": "user", "content": "Hi"}, ...])   ->   messages as Anthropic takes them

A system message is written where the dialect has a place for it among the others; Anthropic and Gemini have a field of
its own for it, and it is left out here. Images of a result go where a server takes them: in Chat into a user's message
behind the results.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from rightcall.api_names import Api
from rightcall.backends.chat_history import HistoryTurn, text_of, turns
from rightcall.backends.part_bodies import anthropic_parts, gemini_parts, image_urls, responses_parts
from rightcall.backends.profiles import IdRule
from rightcall.providers import anthropic, gemini, ollama, openai_responses
from rightcall.providers.dialect import output_text
from rightcall.providers.history_messages import OPAQUE
from rightcall.providers.sdk_view import items, objects, text
from rightcall.types import Json

ANY_ID = IdRule()
# What Gemini takes in place of the signature of a call that another model made.
_UNSIGNED = "skip_thought_signature_validator"


def written(api: Api, messages: Sequence[Json], rule: IdRule = ANY_ID) -> list[Json]:
    """Messages in the shape of Chat, as this dialect has them."""
    if api in ("chat", "completions"):
        return chat_messages(messages, rule)
    return _WRITTEN[api](history_turns(messages, rule))


# -- ids ---------------------------------------------------------------------------------------------------------------


def wire_id(id: str, rule: IdRule) -> str:
    """The id, or one that stands for it, where the server does not take it. The same id gives the same."""
    longest = rule.longest or len(id)
    if not rule.chars or re.fullmatch(f"[{rule.chars}]{{{rule.shortest},{longest}}}", id):
        return id
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[: rule.longest] if rule.longest < 20 else f"call_{digest[:24]}"


def history_turns(messages: Sequence[Json], rule: IdRule) -> list[HistoryTurn]:
    """The history, read, with ids that the server takes."""
    found = turns(messages)
    return [_with_ids(turn, rule) for turn in found] if rule.chars else found


def _with_ids(turn: HistoryTurn, rule: IdRule) -> HistoryTurn:
    calls = tuple([msgspec.structs.replace(call, id=wire_id(call.id, rule)) for call in turn.calls])
    call = turn.call and msgspec.structs.replace(turn.call, id=wire_id(turn.call.id, rule))
    extras = {
        api: {wire_id(id, rule) if id else "": each for id, each in of.items()} for api, of in turn.extras.items()
    }
    return msgspec.structs.replace(turn, calls=calls, call=call, extras=extras)


# -- Chat --------------------------------------------------------------------------------------------------------------


def chat_messages(messages: Sequence[Json], rule: IdRule) -> list[Json]:
    out: list[Json] = []
    shown: list[Json] = []  # images of results, which must wait until all results of the turn are there
    for message in messages:
        if message.get("role") != "tool":
            out += [{"role": "user", "content": shown}] if shown else []
            shown = []
            out.append(_chat_message(message, rule))
            continue
        images = [part for part in objects(message.get("content")) if image_urls([part])]
        out.append(_chat_message(_without(message, images) if images else message, rule))
        shown += images
    return [*out, {"role": "user", "content": shown}] if shown else out


def _without(message: Json, images: list[Json]) -> Json:
    kept = [part for part in items(message["content"]) if not image_urls([part])]
    note = "(an image, which follows)" if len(images) == 1 else f"({len(images)} images, which follow)"
    return {**message, "content": "\n".join([said for said in (text_of(kept), note) if said])}


def _chat_message(message: Json, rule: IdRule) -> Json:
    """As it is, but for what is ours, names and ids that the server takes, and null, which some templates cannot."""
    out = {key: value for key, value in message.items() if key != OPAQUE}
    if out.get("content", "") is None:
        out["content"] = ""
    if out.pop("is_error", False) is True and isinstance(out.get("content"), str):
        out["content"] = output_text(out["content"], is_error=True)
    if isinstance(out.get("tool_call_id"), str):
        out["tool_call_id"] = wire_id(out["tool_call_id"], rule)
    if isinstance(out.get("tool_calls"), list):
        out["tool_calls"] = [_with_id(each, rule) for each in out["tool_calls"]]
    return out


def _with_id(entry: Any, rule: IdRule) -> Any:
    return {**entry, "id": wire_id(entry["id"], rule)} if isinstance(entry, dict) and text(entry.get("id")) else entry


# -- Responses ---------------------------------------------------------------------------------------------------------


def responses_items(history: Sequence[HistoryTurn]) -> list[Json]:
    return [item for turn in history for item in _responses_items(turn)]


def _responses_items(turn: HistoryTurn) -> list[Json]:
    extras = turn.extras.get("responses")
    if turn.role == "tool" and turn.call is not None:
        made = openai_responses.tool_result(turn.call, turn.text, is_error=turn.is_error)
        if image_urls(turn.content):
            made["output"] = responses_parts(turn.content)
        return [{**made, **(extras or {}).get("", {})}]
    if turn.role == "assistant":
        # Reasoning that the server did not sign cannot be sent back.
        return openai_responses.assistant_message(turn.text, turn.calls, reasoning="", extras=extras)
    return [{"role": turn.role, "content": responses_parts(turn.content)}]


# -- Anthropic ---------------------------------------------------------------------------------------------------------


def anthropic_messages(history: Sequence[HistoryTurn]) -> list[Json]:
    return list(_anthropic_messages(history))


def _anthropic_messages(history: Sequence[HistoryTurn]) -> Iterator[Json]:
    results: list[Json] = []  # of one turn: they must come in one message
    for turn in history:
        if turn.role == "tool" and turn.call is not None:
            parts = anthropic_parts(turn.content)
            results += anthropic.tool_result(turn.call, parts, is_error=turn.is_error)["content"]
            continue
        if results:
            yield {"role": "user", "content": results}
            results = []
        if turn.role == "assistant":
            extras = turn.extras.get("messages")
            yield anthropic.assistant_message(turn.text, turn.calls, extras=extras, reasoning_key=None)
        elif turn.role != "system":
            yield {"role": "user", "content": anthropic_parts(turn.content)}
    if results:
        yield {"role": "user", "content": results}


# -- Ollama ------------------------------------------------------------------------------------------------------------


def ollama_messages(history: Sequence[HistoryTurn]) -> list[Json]:
    return [_ollama_message(turn) for turn in history]


def _ollama_message(turn: HistoryTurn) -> Json:
    if turn.role == "assistant":
        return ollama.assistant_message(turn.text, turn.calls, reasoning=turn.reasoning)
    if turn.role == "tool" and turn.call is not None:
        message = ollama.tool_result(turn.call, turn.text, is_error=turn.is_error)
    else:
        message = {"role": turn.role, "content": turn.text}
    images = [url.partition(";base64,")[2] for url in image_urls(turn.content) if url.startswith("data:")]
    return {**message, "images": images} if images else message


# -- Gemini ------------------------------------------------------------------------------------------------------------


def gemini_contents(history: Sequence[HistoryTurn]) -> list[Json]:
    return list(_gemini_contents(history))


def _gemini_contents(history: Sequence[HistoryTurn]) -> Iterator[Json]:
    results: list[Json] = []  # of one turn: they must come in one content
    for turn in history:
        if turn.role == "tool" and turn.call is not None:
            results += _gemini_result(turn)
            continue
        if results:
            yield {"role": "user", "parts": results}
            results = []
        if turn.role == "assistant":
            yield _gemini_model(turn)
        elif turn.role != "system":
            yield {"role": "user", "parts": gemini_parts(turn.content)}
    if results:
        yield {"role": "user", "parts": results}


def _gemini_result(turn: HistoryTurn) -> list[Json]:
    call = turn.call
    assert call is not None
    named = call if call.name else msgspec.structs.replace(call, name="tool")  # the API demands one
    images = [part for part in objects(turn.content) if image_urls([part])]
    made = gemini.tool_result(named, turn.text, is_error=turn.is_error)["parts"]
    return [*made, *gemini_parts(images)] if images else list(made)


def _gemini_model(turn: HistoryTurn) -> Json:
    """Gemini wants the signature of the first call of a turn, and takes a word for one that it did not make."""
    extras = dict(turn.extras.get("gemini", {}))
    if turn.calls and not extras.get(turn.calls[0].id):
        extras[turn.calls[0].id] = {"thoughtSignature": _UNSIGNED}
    made = gemini.assistant_message(turn.text, turn.calls, reasoning="", extras=extras)
    return made if made["parts"] else {**made, "parts": [{"text": ""}]}


_WRITTEN: dict[Api, Callable[[Sequence[HistoryTurn]], list[Json]]] = {
    "responses": responses_items,
    "messages": anthropic_messages,
    "ollama": ollama_messages,
    "gemini": gemini_contents,
}
