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
from rightcall.providers.anthropic import MESSAGES
from rightcall.providers.dialect import CallDelta, output_text
from rightcall.providers.gemini import GEMINI
from rightcall.providers.history_messages import OPAQUE
from rightcall.providers.ollama import OLLAMA
from rightcall.providers.openai_chat import CHAT
from rightcall.providers.openai_responses import RESPONSES
from rightcall.providers.sdk_view import compact_json, items, obj, objects, text
from rightcall.strict_json import MAX_DEPTH, decode
from rightcall.types import Call, Json


class HistoryTurn(msgspec.Struct, frozen=True):
    """One message of a history. `content` is its text or list of parts; a tool result has the `call` that it answers,
    and `is_error` as its API reported it."""

    role: str
    content: Any = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    call: Call | None = None
    extras: dict[str, Json] = {}
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text of the content, without images and other parts."""
        return join_text_parts(self.content)

    @property
    def name(self) -> str:
        """The name of the tool that a result answers; "" for any other turn."""
        return self.call.name if self.call is not None else ""


def join_text_parts(content: Any) -> str:
    """Return the text of a message content: a string as it is, the text parts of a list joined by newlines; "" if there
    is no text."""
    if isinstance(content, str):
        return content
    said = [text(part.get("text")) if isinstance(part, dict) else text(part) for part in items(content)]
    return "\n".join([each for each in said if each])


def read_turns(messages: Sequence[Json]) -> list[HistoryTurn]:
    """Convert the messages of a Chat history to turns. Every tool result gets the `call` that it answers; a result
    without a known call gets an empty call with its id and name."""
    made: dict[str, Call] = {}
    out: list[HistoryTurn] = []
    for message in messages:
        turn = _read_turn(message, made)
        made |= {call.id: call for call in turn.calls}
        out.append(turn)
    return out


def _read_turn(message: Json, made: dict[str, Call]) -> HistoryTurn:
    """Convert one Chat message to a turn; `made` has the earlier calls by id, for the call of a tool result. The role
    `developer` becomes `system`, `function` becomes `tool`, and null content becomes ""."""
    role = text(message.get("role"))
    content = message.get("content")
    content = "" if content is None else content
    if role in ("tool", "function"):
        id, name = text(message.get("tool_call_id")), text(message.get("name"))
        call = made.get(id) or Call(name, {}, "{}", id)
        failed, extras = message.get("is_error") is True, obj(message.get(OPAQUE)) or {}
        return HistoryTurn("tool", _result_content(content), call=call, extras=extras, is_error=failed)
    if role != "assistant":
        return HistoryTurn("system" if role == "developer" else role, content)
    thought = text(message.get("reasoning_content")) or text(message.get("reasoning"))
    return HistoryTurn(role, content, thought, _read_calls(message), extras=obj(message.get(OPAQUE)) or {})


def _result_content(content: Any) -> Any:
    """Return the content of a tool result: text where possible, since servers drop or reject anything else. A list with
    other parts than text stays a list; another value becomes its JSON text."""
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "\n".join([text(part.get("text")) for part in content])
    return content if isinstance(content, list) else output_text(content)


def _read_calls(message: Json) -> tuple[Call, ...]:
    """Return the calls in the `tool_calls` of an assistant message; an empty tuple if it has none."""
    found = [
        delta
        for _, delta in CHAT.response_deltas({"tool_calls": message.get("tool_calls") or []})
        if isinstance(delta, CallDelta)
    ]
    return tuple([_build_call(piece) for piece in found])


def _build_call(piece: CallDelta) -> Call:
    """Return the call that a piece of the history describes. Arguments that are not a JSON object become {}, with the
    original text in the call's `raw`; the input of a custom tool becomes {"input": ...}."""
    value = {"input": piece.arguments} if piece.custom else decode(piece.arguments or "{}", MAX_DEPTH)
    sent = compact_json(value) if piece.custom else piece.arguments
    is_object = isinstance(value, dict)
    return Call(piece.name, value if is_object else {}, sent if is_object else "{}", piece.id, sent)


PartWriter = Callable[[Json], Json]


def image_urls(content: Any) -> list[str]:
    """Return the URLs of the images among the content parts, in order; [] for a string and for parts without an
    image."""
    found = [obj(part.get("image_url")) or {"url": part.get("image_url")} for part in objects(content)]
    return [text(each.get("url")) for each in found if text(each.get("url"))]


def _write_parts(content: Any, writers: dict[str, PartWriter]) -> Any:
    """Return the content with every part converted by the writer of its kind in `writers`; parts of other kinds, and a
    string, stay as they are."""
    if not isinstance(content, list):
        return content
    return [_write_part(each, writers) for each in content]


def _write_part(part: Any, writers: dict[str, PartWriter]) -> Any:
    """Return one content part converted by the writer of its kind; a string is a text part. A part whose kind has no
    writer stays as it is."""
    found = {"type": "text", "text": part} if isinstance(part, str) else obj(part)
    if found is None:
        return part
    kind = "image_url" if image_urls([found]) else text(found.get("type"))
    write = writers.get(kind)
    return found if write is None else write(found)


def _split_data_url(url: str) -> tuple[str, str] | None:
    """Return media type and data of a base64 data URL; None for any other URL."""
    media, found, data = url.removeprefix("data:").partition(";base64,")
    return (media, data) if url.startswith("data:") and found else None


def _file_object(part: Json) -> Json:
    """Return the `file` of a content part; {} if it has none."""
    return obj(part.get("file")) or {}


def _audio_data(part: Json) -> tuple[str, str]:
    """Return media type and base64 data of an audio part; wav is the default type."""
    found = obj(part.get("input_audio")) or {}
    return f"audio/{text(found.get('format')) or 'wav'}", text(found.get("data"))


# -- Responses ---------------------------------------------------------------------------------------------------------


def write_responses_parts(content: Any) -> Any:
    """Convert the content of a Chat message to the parts that the Responses API takes. A string, and parts of an
    unknown kind, stay as they are."""
    return _write_parts(content, _RESPONSES)


def _responses_text_part(part: Json) -> Json:
    """Return a text part as Responses takes it."""
    return {**part, "type": "input_text"}


def _responses_image_part(part: Json) -> Json:
    """Convert an image part of Chat to one of Responses, with its `detail` if it has one."""
    detail = text((obj(part.get("image_url")) or {}).get("detail"))
    made: Json = {"type": "input_image", "image_url": image_urls([part])[0]}
    return {**made, "detail": detail} if detail else made


def _responses_file_part(part: Json) -> Json:
    """Return a file part as Responses takes it."""
    return {"type": "input_file", **_file_object(part)}


_RESPONSES: dict[str, PartWriter] = {
    "text": _responses_text_part,
    "image_url": _responses_image_part,
    "file": _responses_file_part,
}


# -- Anthropic ---------------------------------------------------------------------------------------------------------


def write_anthropic_parts(content: Any) -> Any:
    """Convert the content of a Chat message to the parts that Anthropic's Messages API takes. A string, and parts of an
    unknown kind, stay as they are."""
    return _write_parts(content, _ANTHROPIC)


def _anthropic_source(url: str) -> Json:
    """Return Anthropic's `source` of an image or a document for its URL: type "base64" for a base64 data URL, type
    "url" for any other."""
    inline = _split_data_url(url)
    if inline is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": inline[0], "data": inline[1]}


def _anthropic_image_part(part: Json) -> Json:
    """Return an image part as Messages takes it."""
    return {"type": "image", "source": _anthropic_source(image_urls([part])[0])}


def _anthropic_document(part: Json) -> Json:
    """Convert a file part of Chat to Anthropic's document: inline for a data URL, by URL, or else by file id, with the
    file's name as its title."""
    found = _file_object(part)
    url, name = text(found.get("file_data")) or text(found.get("file_url")), text(found.get("filename"))
    source = _anthropic_source(url) if url else {"type": "file", "file_id": text(found.get("file_id"))}
    return {"type": "document", "source": source, **({"title": name} if name else {})}


_ANTHROPIC: dict[str, PartWriter] = {"image_url": _anthropic_image_part, "file": _anthropic_document}


# -- Gemini ------------------------------------------------------------------------------------------------------------


def write_gemini_parts(content: Any) -> list[Json]:
    """Convert the content of a Chat message to Gemini's parts. The list has at least one part, with an empty text if
    necessary."""
    if not isinstance(content, list):
        return [{"text": text(content)}]
    return _write_parts(content, _GEMINI) or [{"text": ""}]


def _gemini_text_part(part: Json) -> Json:
    """Return a text part as Gemini takes it."""
    return {"text": text(part.get("text"))}


def _gemini_data(url: str, media: str, name: str = "") -> Json:
    """Return Gemini's part for a file: `inlineData` for a base64 data URL, with its own media type, otherwise
    `fileData` of the type `media`. A `name` becomes the `displayName`."""
    inline, images_of_results = _split_data_url(url), {"displayName": name} if name else {}
    if inline is None:
        return {"fileData": {"mimeType": media, "fileUri": url, **images_of_results}}
    return {"inlineData": {"mimeType": inline[0], "data": inline[1], **images_of_results}}


def _gemini_image_part(part: Json) -> Json:
    """Return an image part as Gemini takes it."""
    return _gemini_data(image_urls([part])[0], "image/*")


def _gemini_file_part(part: Json) -> Json:
    """Convert a file part of Chat, which has data, a URL or an id, to one of Gemini, as a PDF unless its data has
    another type."""
    found = _file_object(part)
    url = text(found.get("file_data")) or text(found.get("file_url")) or text(found.get("file_id"))
    return _gemini_data(url, "application/pdf", text(found.get("filename")))


def _gemini_audio_part(part: Json) -> Json:
    """Convert an audio part of Chat to one of Gemini, inline; wav is the default type."""
    media, data = _audio_data(part)
    return {"inlineData": {"mimeType": media, "data": data}}


_GEMINI: dict[str, PartWriter] = {
    "text": _gemini_text_part,
    "image_url": _gemini_image_part,
    "file": _gemini_file_part,
    "input_audio": _gemini_audio_part,
}


ANY_ID = IdRule()
# Gemini's placeholder for the signature of a call of another model.
_UNSIGNED = "skip_thought_signature_validator"


def write_history(api: Api, messages: Sequence[Json], rule: IdRule = ANY_ID) -> list[Json]:
    """Convert a history in the shape of Chat to the messages of the API `api`, with call ids that `rule` allows. System
    messages are left out for `messages` and `gemini`, which have a separate field for them. The history is not
    validated."""
    if api in ("chat", "completions"):
        return write_chat_messages(messages, rule)
    return _WRITERS[api](read_turns_for_server(messages, rule))


# -- ids ---------------------------------------------------------------------------------------------------------------


def fit_call_id(id: str, rule: IdRule) -> str:
    """Return the id if `rule` allows it or allows any id, otherwise a replacement made from its hash. Equal ids get
    equal replacements."""
    longest = rule.longest or len(id)
    if not rule.chars or re.fullmatch(f"[{rule.chars}]{{{rule.shortest},{longest}}}", id):
        return id
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
    return digest[: rule.longest] if rule.longest < 20 else f"call_{digest[:24]}"


def read_turns_for_server(messages: Sequence[Json], rule: IdRule) -> list[HistoryTurn]:
    """Convert a Chat history to turns, with call ids that `rule` does not allow replaced in calls and results alike."""
    found = read_turns(messages)
    return [_fit_turn_ids(turn, rule) for turn in found] if rule.chars else found


def _fit_turn_ids(turn: HistoryTurn, rule: IdRule) -> HistoryTurn:
    """Return the turn with the ids of its calls, of the call that it answers, and of its extras replaced where `rule`
    does not allow them."""
    calls = tuple([msgspec.structs.replace(call, id=fit_call_id(call.id, rule)) for call in turn.calls])
    call = turn.call and msgspec.structs.replace(turn.call, id=fit_call_id(turn.call.id, rule))
    extras = {
        api: {fit_call_id(id, rule) if id else "": each for id, each in of.items()} for api, of in turn.extras.items()
    }
    return msgspec.structs.replace(turn, calls=calls, call=call, extras=extras)


# -- Chat --------------------------------------------------------------------------------------------------------------


def write_chat_messages(messages: Sequence[Json], rule: IdRule) -> list[Json]:
    """Convert a history for a Chat server, with call ids that `rule` allows. Images of tool results are moved to a user
    message that follows the results."""
    out: list[Json] = []
    images_of_results: list[Json] = []  # images of results, sent after all results of the turn
    for message in messages:
        if message.get("role") != "tool":
            out += [{"role": "user", "content": images_of_results}] if images_of_results else []
            images_of_results = []
            out.append(_chat_message(message, rule))
            continue
        images = [part for part in objects(message.get("content")) if image_urls([part])]
        out.append(_chat_message(_move_images_out(message, images) if images else message, rule))
        images_of_results += images
    return [*out, {"role": "user", "content": images_of_results}] if images_of_results else out


def _move_images_out(message: Json, images: list[Json]) -> Json:
    """Return a tool result with its text alone, and a note that the `images` follow."""
    kept = [part for part in items(message["content"]) if not image_urls([part])]
    note = "(an image, which follows)" if len(images) == 1 else f"({len(images)} images, which follow)"
    return {**message, "content": "\n".join([said for said in (join_text_parts(kept), note) if said])}


def _chat_message(message: Json, rule: IdRule) -> Json:
    """Return a message without rightcall's own fields, with call ids that `rule` allows. Null content becomes "", since
    some chat templates fail on null; the text of a failed tool result is marked as an error."""
    out = {key: value for key, value in message.items() if key != OPAQUE}
    if out.get("content", "") is None:
        out["content"] = ""
    if out.pop("is_error", False) is True and isinstance(out.get("content"), str):
        out["content"] = output_text(out["content"], is_error=True)
    if isinstance(out.get("tool_call_id"), str):
        out["tool_call_id"] = fit_call_id(out["tool_call_id"], rule)
    if isinstance(out.get("tool_calls"), list):
        out["tool_calls"] = [_fit_entry_id(each, rule) for each in out["tool_calls"]]
    return out


def _fit_entry_id(entry: Any, rule: IdRule) -> Any:
    """Return an entry of `tool_calls` with an id that `rule` allows; an entry without an id stays as it is."""
    return (
        {**entry, "id": fit_call_id(entry["id"], rule)} if isinstance(entry, dict) and text(entry.get("id")) else entry
    )


# -- Responses ---------------------------------------------------------------------------------------------------------


def write_responses_items(history: Sequence[HistoryTurn]) -> list[Json]:
    """Convert turns to the items of `input`."""
    return [item for turn in history for item in _responses_items(turn)]


def _responses_items(turn: HistoryTurn) -> list[Json]:
    """Convert one turn to items of the Responses API: a function output for a tool result, a message and calls for the
    assistant, else a message. Reasoning that the server did not sign cannot be sent back and is left out."""
    extras = turn.extras.get("responses")
    if turn.role == "tool" and turn.call is not None:
        made = RESPONSES.tool_result(turn.call, turn.text, is_error=turn.is_error)
        if image_urls(turn.content):
            made["output"] = write_responses_parts(turn.content)
        return [{**made, **(extras or {}).get("", {})}]
    if turn.role == "assistant":
        # Reasoning that the server did not sign cannot be sent back.
        return RESPONSES.assistant_message(turn.text, turn.calls, reasoning="", extras=extras)
    return [{"role": turn.role, "content": write_responses_parts(turn.content)}]


# -- Anthropic ---------------------------------------------------------------------------------------------------------


def write_anthropic_messages(history: Sequence[HistoryTurn]) -> list[Json]:
    """Convert turns to the `messages` of Anthropic's API; consecutive tool results share one user message. System turns
    are left out."""
    return list(_anthropic_messages(history))


def _anthropic_messages(history: Sequence[HistoryTurn]) -> Iterator[Json]:
    """Yield the `messages` of Anthropic's API for the turns; consecutive tool results are joined in one user message,
    and system turns are left out."""
    results: list[Json] = []  # results of one turn share one message
    for turn in history:
        if turn.role == "tool" and turn.call is not None:
            parts = write_anthropic_parts(turn.content)
            results += MESSAGES.tool_result(turn.call, parts, is_error=turn.is_error)["content"]
            continue
        if results:
            yield {"role": "user", "content": results}
            results = []
        if turn.role == "assistant":
            extras = turn.extras.get("messages")
            yield MESSAGES.assistant_message(turn.text, turn.calls, extras=extras, reasoning_key=None)
        elif turn.role != "system":
            yield {"role": "user", "content": write_anthropic_parts(turn.content)}
    if results:
        yield {"role": "user", "content": results}


# -- Ollama ------------------------------------------------------------------------------------------------------------


def write_ollama_messages(history: Sequence[HistoryTurn]) -> list[Json]:
    """Convert turns to the `messages` of Ollama's API; of images, only those given as data URLs are kept."""
    return [_ollama_message(turn) for turn in history]


def _ollama_message(turn: HistoryTurn) -> Json:
    """Return one turn as a message of Ollama's API: its text, calls, reasoning, and the base64 data of images given as
    data URLs."""
    if turn.role == "assistant":
        return OLLAMA.assistant_message(turn.text, turn.calls, reasoning=turn.reasoning)
    if turn.role == "tool" and turn.call is not None:
        message = OLLAMA.tool_result(turn.call, turn.text, is_error=turn.is_error)
    else:
        message = {"role": turn.role, "content": turn.text}
    images = [url.partition(";base64,")[2] for url in image_urls(turn.content) if url.startswith("data:")]
    return {**message, "images": images} if images else message


# -- Gemini ------------------------------------------------------------------------------------------------------------


def write_gemini_contents(history: Sequence[HistoryTurn]) -> list[Json]:
    """Convert turns to the `contents` of Gemini's API; consecutive tool results share one content. System turns are
    left out."""
    return list(_gemini_contents(history))


def _gemini_contents(history: Sequence[HistoryTurn]) -> Iterator[Json]:
    """Yield the `contents` of Gemini's API for the turns; consecutive tool results are joined in one content, and
    system turns are left out."""
    results: list[Json] = []  # results of one turn share one content
    for turn in history:
        if turn.role == "tool" and turn.call is not None:
            results += _gemini_result(turn)
            continue
        if results:
            yield {"role": "user", "parts": results}
            results = []
        if turn.role == "assistant":
            yield _gemini_assistant(turn)
        elif turn.role != "system":
            yield {"role": "user", "parts": write_gemini_parts(turn.content)}
    if results:
        yield {"role": "user", "parts": results}


def _gemini_result(turn: HistoryTurn) -> list[Json]:
    """Return the Gemini parts of a tool result: the function response, named "tool" if the tool is unknown, then its
    images."""
    call = turn.call
    assert call is not None
    named = call if call.name else msgspec.structs.replace(call, name="tool")  # the API demands one
    images = [part for part in objects(turn.content) if image_urls([part])]
    made = GEMINI.tool_result(named, turn.text, is_error=turn.is_error)["parts"]
    return [*made, *write_gemini_parts(images)] if images else list(made)


def _gemini_assistant(turn: HistoryTurn) -> Json:
    """Return an assistant turn as a content of Gemini, with at least one part. Gemini requires a signature on the first
    call of a turn; a call without one gets a placeholder."""
    extras = dict(turn.extras.get("gemini", {}))
    if turn.calls and not extras.get(turn.calls[0].id):
        extras[turn.calls[0].id] = {"thoughtSignature": _UNSIGNED}
    made = GEMINI.assistant_message(turn.text, turn.calls, reasoning="", extras=extras)
    return made if made["parts"] else {**made, "parts": [{"text": ""}]}


_WRITERS: dict[Api, Callable[[Sequence[HistoryTurn]], list[Json]]] = {
    "responses": write_responses_items,
    "messages": write_anthropic_messages,
    "ollama": write_ollama_messages,
    "gemini": write_gemini_contents,
}
