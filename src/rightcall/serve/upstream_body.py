"""A client's request on its way up: as a `Request` for a server of another dialect, or as the client's own body.

    to_request(request, "chat")                     for `Backend` and its modes
    same_dialect_body(request, model="m", stream=True)   for a server of the client's dialect: nothing is lost

A history that had to be put right is Chat-shaped. In the client's own body only the entries that it changed are written
anew: those before the first change and behind the last are the client's, to the byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from rightcall.api_names import Api
from rightcall.backends.history_bodies import write_history
from rightcall.backends.request import Request
from rightcall.backends.request_body import TOOL_FIELDS, unsupported_sampling
from rightcall.providers.history_checks import HistoryProfile, history_profile
from rightcall.providers.history_messages import OPAQUE
from rightcall.providers.history_sanitizer import KeptFields, SaneHistory, sane
from rightcall.providers.sdk_view import obj, objects, text
from rightcall.serve.client_request import ClientRequest
from rightcall.serve.put_back import kept_for, put_back
from rightcall.serve.request_readers.request_messages import NOWHERE
from rightcall.types import Json

# Parts that a server of any dialect can be given; others only their own provider knows.
_CARRIED = frozenset(("text", "image_url", "file", "input_audio", "refusal", "video_url", "audio_url"))
_KINDS = frozenset(("type", "name", "namespace"))  # of a call: what it is besides a call of a function
_LISTS: dict[Api, str] = {
    "chat": "messages",
    "responses": "input",
    "messages": "messages",
    "ollama": "messages",
    "gemini": "contents",
}


def to_request(
    request: ClientRequest, api: Api = "chat", *, messages: Sequence[Json] | None = None, **more: Any
) -> Request:
    """The same question for a backend that speaks `api`. `messages` stand in place of the request's own, where these
    had to be put right or go on; `more` are further fields of the `Request`, or others than the client's."""
    said = request.messages if messages is None else messages
    fields: Json = {
        "messages": [_of_functions(each if api == request.api else _carried(each)) for each in said],
        "tools": request.toolset,
        "choice": request.choice if request.tools else "auto",
        "parallel": request.parallel,
        "model": request.model,
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
        "stop": request.stop,
        "sampling": _asked(request.sampling),
    }
    return Request(**{**fields, **more})


def dropped_fields(request: ClientRequest, api: Api) -> tuple[str, ...]:
    """What cannot be said to a server that speaks `api`, one line each, for the header of warnings."""
    if api == request.api:
        return ()
    names = unsupported_sampling(api, _asked(request.sampling))
    parts = {text(part.get("type")) for each in request.messages for part in objects(each.get("content"))} - _CARRIED
    lines = [f"{name!r} is left out: the server's API has no field for it" for name in names]
    return (*lines, *[f"a part of the type {kind[:60]!r} is only named: the server cannot read it" for kind in parts])


def _asked(sampling: Mapping[str, Any]) -> Json:
    """What is at its default everywhere is not said: servers refuse what a model cannot do."""
    return {key: value for key, value in sampling.items() if (key, value) != ("reasoning_effort", "medium")}


def _carried(message: Json) -> Json:
    """The message with parts that every server can be given."""
    content = message.get("content")
    if not isinstance(content, list) or all(text(part.get("type")) in _CARRIED for part in objects(content)):
        return message
    return {**message, "content": [_named(part) for part in objects(content)]}


def _of_functions(message: Json) -> Json:
    """The message without what makes its calls more than calls of the functions that are offered: a server of the
    client's dialect would take them for calls of tools that it is not told of."""
    kept = obj(message.get(OPAQUE))
    if kept is None or not any(_KINDS.intersection(fields) for extras in kept.values() for fields in extras.values()):
        return message
    plain = {api: {id: _unkind(fields) for id, fields in extras.items()} for api, extras in kept.items()}
    return {**message, OPAQUE: plain}


def _unkind(fields: Json) -> Json:
    return {} if "type" in fields else {key: value for key, value in fields.items() if key not in _KINDS}


def _named(part: Json) -> Json:
    kind = text(part.get("type"))
    return (
        part if kind in _CARRIED else {"type": "text", "text": f"({kind or 'something'} was here; it cannot be sent)"}
    )


# -- the history ------------------------------------------------------------------------------------------------------

# A server of the client's own dialect takes whatever that dialect has; only what no server takes is put right.
_OWN = HistoryProfile(
    name="own", who="a server of the client's dialect", developer=True, result_parts=True, reasoning="reasoning_content"
)


def mended_history(
    request: ClientRequest, profile: str | HistoryProfile | None, *, kept: Mapping[str, KeptFields] | None = None
) -> SaneHistory:
    """The conversation as a server takes it. `profile` is that of a server that speaks Chat; None for one that speaks
    the client's own dialect, where that is another. Without `changes` the client's body may go up as it is."""
    found = _OWN if profile in (None, "ollama") else history_profile(profile or "")  # Ollama's shape is written later
    if found.fields is not None:
        found = msgspec.structs.replace(found, fields=found.fields | {OPAQUE, "is_error"})
    of_chat = {id: each for id, each in (kept or {}).items() if not kept_for(each)}
    messages, changes = put_back(request.messages, kept or {})
    made = sane(messages, profile=found, kept=of_chat)
    return msgspec.structs.replace(made, changes=(*changes, *made.changes)) if changes else made


# -- the client's own body ---------------------------------------------------------------------------------------------


def same_dialect_body(
    request: ClientRequest,
    *,
    model: str = "",
    stream: bool | None = None,
    messages: Sequence[Json] | None = None,
    appended: Sequence[Json] = (),
    tools: Json | None = None,
) -> Json:
    """The client's body for a server of its own dialect, with nothing lost that it holds.

    - `model`, `stream`: as the server is to be told; what is not given stays.
    - `messages`: the conversation in the shape of Chat, if it had to be put right.
    - `appended`: further turns in the shape of Chat, such as what a retry tells the model.
    - `tools`: what is said of tools in place of what the client says, where the server would not keep to that.
    """
    streamed = request.stream if stream is None else stream
    body = {**request.body, **_flags(request, model or request.model, streamed)}
    if tools is not None or body.get("tools") == []:  # several servers refuse that, and then a choice among none
        body = {**{key: value for key, value in body.items() if key not in TOOL_FIELDS}, **(tools or {})}
    if messages is None and not appended:
        return body
    own = _entries(request)
    entries = own if messages is None else _rewritten(request, own, list(messages))
    return {**body, _LISTS[request.api]: [*entries, *_anew(request.api, appended, "user")]}


def _flags(request: ClientRequest, model: str, stream: bool) -> Json:
    """Which model, whether to stream, and that usage is wanted: always, since it is counted here."""
    if request.api == "gemini":  # both stand in the address
        return {}
    flags: Json = {"model": model, "stream": stream}
    if request.api == "chat":
        options = obj(request.body.get("stream_options")) or {}
        if stream:
            return {**flags, "stream_options": {**options, "include_usage": True}}
        return {**flags, "stream_options": None} if options else flags
    return flags


def _entries(request: ClientRequest) -> list[Any]:
    given = request.body.get(_LISTS[request.api])
    if isinstance(given, list):
        return given
    return write_history(request.api, request.messages) if given is None else [_lone(request.api, given)]


def _lone(api: Api, given: Any) -> Any:
    """A text or one content where a list is meant."""
    if not isinstance(given, str):
        return given
    return {"role": "user", "parts": [{"text": given}]} if api == "gemini" else {"role": "user", "content": given}


def _rewritten(request: ClientRequest, own: list[Any], messages: list[Json]) -> list[Any]:
    """The client's own entries as far as their messages are as they were, and the changed ones between written anew."""
    heads = request.origins.count(NOWHERE)  # these stand before the others, and stay where they are in the body
    before, origins = request.messages[heads:], request.origins[heads:]
    after = messages[heads:] if messages[:heads] == request.messages[:heads] else messages[min(heads, 1) :]
    begin = _alike(before, after)
    end = _alike(before[begin:][::-1], after[begin:][::-1])
    begin, end = _at_borders(origins, begin, end)
    first = origins[begin] if begin < len(origins) else len(own)
    last = origins[len(origins) - end] if end else len(own)
    return [*own[:first], *_anew(request.api, after[begin : len(after) - end]), *own[last:]]


def _anew(api: Api, messages: Sequence[Json], system: str = "system") -> list[Json]:
    """Messages in the dialect's own shape. Where it has no place for a system message among the others, the client
    that sent one has."""
    if api not in ("messages", "gemini"):
        return write_history(api, messages)
    out: list[Json] = []
    for is_system, run in groupby(messages, lambda each: each.get("role") in ("system", "developer")):
        if not is_system:
            out += write_history(api, list(run))
        elif api == "messages" and system == "system":
            out += [{"role": "system", "content": each.get("content")} for each in run]
        else:
            out += write_history(api, [{**each, "role": "user"} for each in run])
    return out


def _alike(one: Sequence[Json], other: Sequence[Json]) -> int:
    """How many messages are the same at the beginning of both."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine is not theirs and mine != theirs:
            break
        count += 1
    return count


def _at_borders(origins: tuple[int, ...], begin: int, end: int) -> tuple[int, int]:
    """The same counts, made smaller where they would cut an entry of the client in two."""
    total = len(origins)
    while 0 < begin < total and origins[begin] == origins[begin - 1]:
        begin -= 1
    while 0 < end < total and origins[total - end] == origins[total - end - 1]:
        end -= 1
    return begin, end
