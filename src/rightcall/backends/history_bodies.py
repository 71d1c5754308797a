"""Convert a Chat history into the messages of each API: the value of `messages`, `input` or `contents`.

    write_history("messages", [{"role": "user", "content": "Hi"}, ...])   ->   messages as Anthropic takes them

A history is not validated again: a damaged call goes out as the object that it can be. A system message keeps its
place, except that Anthropic and Gemini have a separate field for it: those writers leave it out. An image in a tool
result goes into the result where the API allows it; in Chat it goes into a user message after the results.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from rightcall.api_names import Api
from rightcall.backends.profiles import IdRule
from rightcall.providers import anthropic, gemini, ollama, openai_responses
from rightcall.providers.dialect import CallDelta, output_text
from rightcall.providers.history_messages import OPAQUE
from rightcall.providers.openai_chat import response_deltas
from rightcall.providers.sdk_view import dumps, items, obj, objects, text
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.types import Call, Json


class HistoryTurn(msgspec.Struct, frozen=True):
    """One message. `content` is what it holds, text or parts; of a result `call` is the call it belongs to, and
    `is_error` what its API said of it."""

    role: str
    content: Any = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    call: Call | None = None
    extras: dict[str, Json] = {}
    is_error: bool = False

    @property
    def text(self) -> str:
        return content_text(self.content)

    @property
    def name(self) -> str:
        return self.call.name if self.call is not None else ""


def content_text(content: Any) -> str:
    """Text as it is; of parts, those that are text, joined."""
    if isinstance(content, str):
        return content
    said = [text(part.get("text")) if isinstance(part, dict) else text(part) for part in items(content)]
    return "\n".join([each for each in said if each])


def read_turns(messages: Sequence[Json]) -> list[HistoryTurn]:
    """The history, with every result beside the call that it answers."""
    made: dict[str, Call] = {}
    out: list[HistoryTurn] = []
    for message in messages:
        turn = _turn(message, made)
        made |= {call.id: call for call in turn.calls}
        out.append(turn)
    return out


def _turn(message: Json, made: dict[str, Call]) -> HistoryTurn:
    role = text(message.get("role"))
    content = message.get("content")
    content = "" if content is None else content
    if role in ("tool", "function"):
        id, name = text(message.get("tool_call_id")), text(message.get("name"))
        call = made.get(id) or Call(name, {}, "{}", id)
        failed, extras = message.get("is_error") is True, obj(message.get(OPAQUE)) or {}
        return HistoryTurn("tool", _result(content), call=call, extras=extras, is_error=failed)
    if role != "assistant":
        return HistoryTurn("system" if role == "developer" else role, content)
    thought = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    return HistoryTurn(role, content, thought, _calls(message), extras=obj(message.get(OPAQUE)) or {})


def _result(content: Any) -> Any:
    """A result is text: servers drop or refuse anything else. Parts that are all text are that text."""
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "\n".join([text(part.get("text")) for part in content])
    return content if isinstance(content, list) else output_text(content)


def _calls(message: Json) -> tuple[Call, ...]:
    found = [
        delta
        for _, delta in response_deltas({"tool_calls": message.get("tool_calls") or []})
        if isinstance(delta, CallDelta)
    ]
    return tuple([_call(piece) for piece in found])


def _call(piece: CallDelta) -> Call:
    value = {"input": piece.arguments} if piece.custom else decode(piece.arguments or "{}", MAX_DEPTH)
    sent = dumps(value) if piece.custom else piece.arguments
    is_object = isinstance(value, dict)
    return Call(piece.name, value if is_object else {}, sent if is_object else "{}", piece.id, sent)


PartWriter = Callable[[Json], Json]


def image_urls(content: Any) -> list[str]:
    """The addresses of the images among the parts."""
    found = [obj(part.get("image_url")) or {"url": part.get("image_url")} for part in objects(content)]
    return [text(each.get("url")) for each in found if text(each.get("url"))]


def _parts(content: Any, writers: dict[str, PartWriter]) -> Any:
    """Text as it is; parts in the dialect's words."""
    if not isinstance(content, list):
        return content
    return [_part(each, writers) for each in content]


def _part(part: Any, writers: dict[str, PartWriter]) -> Any:
    found = {"type": "text", "text": part} if isinstance(part, str) else obj(part)
    if found is None:
        return part
    kind = "image_url" if image_urls([found]) else text(found.get("type"))
    write = writers.get(kind)
    return found if write is None else write(found)


def _data_url(url: str) -> tuple[str, str] | None:
    """Kind and data of an address that is the thing itself."""
    media, found, data = url.removeprefix("data:").partition(";base64,")
    return (media, data) if url.startswith("data:") and found else None


def _file(part: Json) -> Json:
    return obj(part.get("file")) or {}


def _audio(part: Json) -> tuple[str, str]:
    found = obj(part.get("input_audio")) or {}
    return f"audio/{text(found.get('format')) or 'wav'}", text(found.get("data"))


# -- Responses ---------------------------------------------------------------------------------------------------------


def write_responses_parts(content: Any) -> Any:
    return _parts(content, _RESPONSES)


def _responses_text(part: Json) -> Json:
    return {**part, "type": "input_text"}


def _responses_image(part: Json) -> Json:
    detail = text((obj(part.get("image_url")) or {}).get("detail"))
    made: Json = {"type": "input_image", "image_url": image_urls([part])[0]}
    return {**made, "detail": detail} if detail else made


def _responses_file(part: Json) -> Json:
    return {"type": "input_file", **_file(part)}


_RESPONSES: dict[str, PartWriter] = {
    "text": _responses_text,
    "image_url": _responses_image,
    "file": _responses_file,
}


# -- Anthropic ---------------------------------------------------------------------------------------------------------


def write_anthropic_parts(content: Any) -> Any:
    return _parts(content, _ANTHROPIC)


def _source(url: str) -> Json:
    inline = _data_url(url)
    if inline is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": inline[0], "data": inline[1]}


def _anthropic_image(part: Json) -> Json:
    return {"type": "image", "source": _source(image_urls([part])[0])}


def _anthropic_file(part: Json) -> Json:
    found = _file(part)
    url, name = text(found.get("file_data")) or text(found.get("file_url")), text(found.get("filename"))
    source = _source(url) if url else {"type": "file", "file_id": text(found.get("file_id"))}
    return {"type": "document", "source": source, **({"title": name} if name else {})}


_ANTHROPIC: dict[str, PartWriter] = {"image_url": _anthropic_image, "file": _anthropic_file}


# -- Gemini ------------------------------------------------------------------------------------------------------------


def write_gemini_parts(content: Any) -> list[Json]:
    if not isinstance(content, list):
        return [{"text": text(content)}]
    return _parts(content, _GEMINI) or [{"text": ""}]


def _gemini_text(part: Json) -> Json:
    return {"text": text(part.get("text"))}


def _gemini_data(url: str, media: str, name: str = "") -> Json:
    inline, shown = _data_url(url), {"displayName": name} if name else {}
    if inline is None:
        return {"fileData": {"mimeType": media, "fileUri": url, **shown}}
    return {"inlineData": {"mimeType": inline[0], "data": inline[1], **shown}}


def _gemini_image(part: Json) -> Json:
    return _gemini_data(image_urls([part])[0], "image/*")


def _gemini_file(part: Json) -> Json:
    found = _file(part)
    url = text(found.get("file_data")) or text(found.get("file_url")) or text(found.get("file_id"))
    return _gemini_data(url, "application/pdf", text(found.get("filename")))


def _gemini_audio(part: Json) -> Json:
    media, data = _audio(part)
    return {"inlineData": {"mimeType": media, "data": data}}


_GEMINI: dict[str, PartWriter] = {
    "text": _gemini_text,
    "image_url": _gemini_image,
    "file": _gemini_file,
    "input_audio": _gemini_audio,
}


ANY_ID = IdRule()
# What Gemini takes in place of the signature of a call that another model made.
_UNSIGNED = "skip_thought_signature_validator"


def write_history(api: Api, messages: Sequence[Json], rule: IdRule = ANY_ID) -> list[Json]:
    """Messages in the shape of Chat, as this dialect has them."""
    if api in ("chat", "completions"):
        return write_chat_messages(messages, rule)
    return _WRITERS[api](read_turns_for_server(messages, rule))


# -- ids ---------------------------------------------------------------------------------------------------------------


def fit_call_id(id: str, rule: IdRule) -> str:
    """The id, or one that stands for it, where the server does not take it. The same id gives the same."""
    longest = rule.longest or len(id)
    if not rule.chars or re.fullmatch(f"[{rule.chars}]{{{rule.shortest},{longest}}}", id):
        return id
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[: rule.longest] if rule.longest < 20 else f"call_{digest[:24]}"


def read_turns_for_server(messages: Sequence[Json], rule: IdRule) -> list[HistoryTurn]:
    """The history, read, with ids that the server takes."""
    found = read_turns(messages)
    return [_with_ids(turn, rule) for turn in found] if rule.chars else found


def _with_ids(turn: HistoryTurn, rule: IdRule) -> HistoryTurn:
    calls = tuple([msgspec.structs.replace(call, id=fit_call_id(call.id, rule)) for call in turn.calls])
    call = turn.call and msgspec.structs.replace(turn.call, id=fit_call_id(turn.call.id, rule))
    extras = {
        api: {fit_call_id(id, rule) if id else "": each for id, each in of.items()} for api, of in turn.extras.items()
    }
    return msgspec.structs.replace(turn, calls=calls, call=call, extras=extras)


# -- Chat --------------------------------------------------------------------------------------------------------------


def write_chat_messages(messages: Sequence[Json], rule: IdRule) -> list[Json]:
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
    return {**message, "content": "\n".join([said for said in (content_text(kept), note) if said])}


def _chat_message(message: Json, rule: IdRule) -> Json:
    """As it is, but for what is ours, names and ids that the server takes, and null, which some templates cannot."""
    out = {key: value for key, value in message.items() if key != OPAQUE}
    if out.get("content", "") is None:
        out["content"] = ""
    if out.pop("is_error", False) is True and isinstance(out.get("content"), str):
        out["content"] = output_text(out["content"], is_error=True)
    if isinstance(out.get("tool_call_id"), str):
        out["tool_call_id"] = fit_call_id(out["tool_call_id"], rule)
    if isinstance(out.get("tool_calls"), list):
        out["tool_calls"] = [_with_id(each, rule) for each in out["tool_calls"]]
    return out


def _with_id(entry: Any, rule: IdRule) -> Any:
    return (
        {**entry, "id": fit_call_id(entry["id"], rule)} if isinstance(entry, dict) and text(entry.get("id")) else entry
    )


# -- Responses ---------------------------------------------------------------------------------------------------------


def write_responses_items(history: Sequence[HistoryTurn]) -> list[Json]:
    return [item for turn in history for item in _responses_items(turn)]


def _responses_items(turn: HistoryTurn) -> list[Json]:
    extras = turn.extras.get("responses")
    if turn.role == "tool" and turn.call is not None:
        made = openai_responses.tool_result(turn.call, turn.text, is_error=turn.is_error)
        if image_urls(turn.content):
            made["output"] = write_responses_parts(turn.content)
        return [{**made, **(extras or {}).get("", {})}]
    if turn.role == "assistant":
        # Reasoning that the server did not sign cannot be sent back.
        return openai_responses.assistant_message(turn.text, turn.calls, reasoning="", extras=extras)
    return [{"role": turn.role, "content": write_responses_parts(turn.content)}]


# -- Anthropic ---------------------------------------------------------------------------------------------------------


def write_anthropic_messages(history: Sequence[HistoryTurn]) -> list[Json]:
    return list(_anthropic_messages(history))


def _anthropic_messages(history: Sequence[HistoryTurn]) -> Iterator[Json]:
    results: list[Json] = []  # of one turn: they must come in one message
    for turn in history:
        if turn.role == "tool" and turn.call is not None:
            parts = write_anthropic_parts(turn.content)
            results += anthropic.tool_result(turn.call, parts, is_error=turn.is_error)["content"]
            continue
        if results:
            yield {"role": "user", "content": results}
            results = []
        if turn.role == "assistant":
            extras = turn.extras.get("messages")
            yield anthropic.assistant_message(turn.text, turn.calls, extras=extras, reasoning_key=None)
        elif turn.role != "system":
            yield {"role": "user", "content": write_anthropic_parts(turn.content)}
    if results:
        yield {"role": "user", "content": results}


# -- Ollama ------------------------------------------------------------------------------------------------------------


def write_ollama_messages(history: Sequence[HistoryTurn]) -> list[Json]:
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


def write_gemini_contents(history: Sequence[HistoryTurn]) -> list[Json]:
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
            yield {"role": "user", "parts": write_gemini_parts(turn.content)}
    if results:
        yield {"role": "user", "parts": results}


def _gemini_result(turn: HistoryTurn) -> list[Json]:
    call = turn.call
    assert call is not None
    named = call if call.name else msgspec.structs.replace(call, name="tool")  # the API demands one
    images = [part for part in objects(turn.content) if image_urls([part])]
    made = gemini.tool_result(named, turn.text, is_error=turn.is_error)["parts"]
    return [*made, *write_gemini_parts(images)] if images else list(made)


def _gemini_model(turn: HistoryTurn) -> Json:
    """Gemini wants the signature of the first call of a turn, and takes a word for one that it did not make."""
    extras = dict(turn.extras.get("gemini", {}))
    if turn.calls and not extras.get(turn.calls[0].id):
        extras[turn.calls[0].id] = {"thoughtSignature": _UNSIGNED}
    made = gemini.assistant_message(turn.text, turn.calls, reasoning="", extras=extras)
    return made if made["parts"] else {**made, "parts": [{"text": ""}]}


_WRITERS: dict[Api, Callable[[Sequence[HistoryTurn]], list[Json]]] = {
    "responses": write_responses_items,
    "messages": write_anthropic_messages,
    "ollama": write_ollama_messages,
    "gemini": write_gemini_contents,
}
