"""Gemini's `generateContent`: contents with parts, calls and results among them, mostly without ids. The model and
whether to stream stand in the address. Keys come in camelCase or snake_case.
"""

from __future__ import annotations

from typing import Any

from rightcall.providers.gemini import field
from rightcall.providers.sdk_view import compact_json, obj, objects, text
from rightcall.serve.client_request import ClientRequest, RefusedRequest
from rightcall.serve.request_readers.body_fields import number, stops, whole_number
from rightcall.serve.request_readers.content_parts import Parts, gemini_part, joined_text, text_part
from rightcall.serve.request_readers.declared_tools import declared, entries
from rightcall.serve.request_readers.request_messages import NOWHERE, CallIds, RequestMessages
from rightcall.serve.request_readers.tool_choices import chosen, read_gemini_choice
from rightcall.serve.request_readers.whole_requests import whole_request
from rightcall.types import Json


def read_gemini(body: Json, model: str, stream: bool | None) -> ClientRequest:
    talk, ids = RequestMessages("gemini"), CallIds()
    if told := joined_text(_parts(field(body, "systemInstruction"))):
        talk.add({"role": "system", "content": told}, NOWHERE)
    for at, each in enumerate(_contents(body)):
        _read(each, talk, ids, at)
    talk.close()
    given = entries(body, "tools")
    choice, tools = chosen(read_gemini_choice(body), declared(given or []))
    config = obj(field(body, "generationConfig")) or {}
    return whole_request(
        "gemini",
        body,
        talk,
        choice,
        tools,
        has_tools=given is not None,
        model=(model or text(body.get("model"))).removeprefix("models/"),
        stream=bool(stream),
        max_tokens=whole_number(field(config, "maxOutputTokens")),
        temperature=number(config.get("temperature")),
        seed=whole_number(config.get("seed")),
        stop=stops(field(config, "stopSequences")),
    )


def _contents(body: Json) -> list[Any]:
    """A list of contents, one content, or a text. Raises `RefusedRequest` where there is none of these."""
    given = body.get("contents")
    if isinstance(given, dict | str):
        return [given]
    if not isinstance(given, list):
        kind = "is missing" if given is None else f"is of the type {type(given).__name__}"
        raise RefusedRequest(f"`contents` {kind}; send a list of contents with parts")
    return given


def _parts(content: Any) -> Parts:
    """The parts of a content, or of a text."""
    if isinstance(content, str):
        return [text_part(content)]
    found = obj(content) or {}
    given = found.get("parts", found)
    return objects(given) if isinstance(given, list) else [each for each in (obj(given),) if each]


def _read(content: Any, talk: RequestMessages, ids: CallIds, at: int) -> None:
    if not isinstance(content, dict | str):
        raise RefusedRequest(f"`contents[{at}]` is of the type {type(content).__name__}; send an object with `parts`")
    parts = _parts(content)
    if isinstance(content, dict) and content.get("role") == "model":
        _model(parts, talk, ids, at)
    else:
        _user(parts, talk, ids, at)


def _user(parts: Parts, talk: RequestMessages, ids: CallIds, at: int) -> None:
    """Results first: in Chat they stand right behind the calls."""
    results = [found for part in parts if (found := obj(field(part, "functionResponse"))) is not None]
    for each in results:
        name = text(each.get("name"))
        said, failed = _response(each.get("response"))
        inner = [made for part in objects(each.get("parts")) for made in gemini_part(part)]
        talk.result(ids.of_result(text(each.get("id")), name), [*said, *inner], at, name=name, is_error=failed)
    rest = [part for part in parts if obj(field(part, "functionResponse")) is None]
    if rest or not results:
        talk.say("user", [made for part in rest for made in gemini_part(part)], at)


def _response(response: Any) -> tuple[Parts, bool]:
    """What a tool gave, and whether it failed. An `output`, `result` or `error` alone is what it says."""
    found = obj(response)
    if found is not None and len(found) == 1:
        key, value = next(iter(found.items()))
        if key in ("output", "result", "error"):
            return _said(value), key == "error"
    return _said(response), False


def _said(value: Any) -> Parts:
    said = value if isinstance(value, str) else "" if value is None else compact_json(value)
    return [text_part(said)] if said else []


def _model(parts: Parts, talk: RequestMessages, ids: CallIds, at: int) -> None:
    turn = talk.begin(at)
    for part in parts:
        signature = field(part, "thoughtSignature")
        kept = {} if signature is None else {"thoughtSignature": signature}
        call = obj(field(part, "functionCall"))
        if call is not None:
            name = text(call.get("name"))
            turn.call(ids.of_call(text(call.get("id")), name), name, call.get("args") or {}, kept)
            continue
        if kept:
            turn.keep("thoughtSignature", signature)
        if part.get("thought") is True:
            turn.thought(text(part.get("text")))
        elif text(part.get("text")):
            turn.text(text(part["text"]))
        else:
            turn.parts += gemini_part(part)
