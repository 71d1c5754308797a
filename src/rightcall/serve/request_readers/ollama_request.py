"""Ollama's `/api/chat`: Chat's messages with arguments that are objects, images in base64 beside the text, and mostly
without ids. An answer is streamed unless the request says otherwise.
"""

from __future__ import annotations

from rightcall.providers.sdk_view import arguments, items, obj, objects, text
from rightcall.serve.client_request import ClientRequest
from rightcall.serve.request_readers.body_fields import limits
from rightcall.serve.request_readers.content_parts import data_part, responses_parts, text_part
from rightcall.serve.request_readers.declared_tools import declared, entries
from rightcall.serve.request_readers.request_messages import CallIds, RequestMessages, entries_of, entry
from rightcall.serve.request_readers.tool_choices import chosen, read_choice
from rightcall.serve.request_readers.whole_requests import whole_request
from rightcall.types import Json


def read_ollama(body: Json, model: str, stream: bool | None) -> ClientRequest:
    talk, ids = RequestMessages("ollama"), CallIds()
    for at, each in enumerate(entries_of(body, "messages")):
        _read(entry(each, "messages", at), talk, ids, at)
    talk.close()
    given = entries(body, "tools")
    choice, tools = chosen(read_choice(body.get("tool_choice")), declared(given or []))
    return whole_request(
        "ollama",
        body,
        talk,
        choice,
        tools,
        has_tools=given is not None,
        model=model or text(body.get("model")),
        stream=body.get("stream") is not False if stream is None else stream,
        **limits(obj(body.get("options")) or {}, most=("num_predict",), stop="stop"),
    )


def _read(message: Json, talk: RequestMessages, ids: CallIds, at: int) -> None:
    role = text(message.get("role")) or "user"
    content = message.get("content")
    parts = [text_part(content)] if isinstance(content, str) and content else responses_parts(content)
    parts += [_image(data) for each in items(message.get("images")) if (data := text(each))]
    if role == "tool":
        name = text(message.get("tool_name")) or text(message.get("name"))
        talk.result(ids.of_result(text(message.get("tool_call_id")), name), parts, at, name=name)
    elif role == "assistant":
        _assistant(message, talk, ids, at)
    else:
        talk.say(role, parts, at)


def _image(data: str) -> Json:
    """Ollama is not told which kind of image it is; the first bytes tell."""
    if data.startswith("data:"):
        media, _, data = data.removeprefix("data:").partition(";base64,")
        return data_part(media, data)
    begins = {"/9j/": "jpeg", "R0lG": "gif", "UklG": "webp"}
    return data_part(f"image/{begins.get(data[:4], 'png')}", data)


def _assistant(message: Json, talk: RequestMessages, ids: CallIds, at: int) -> None:
    turn = talk.begin(at)
    turn.thought(text(message.get("thinking")))
    content = message.get("content")
    turn.text(text(content) or "".join([text(part.get("text")) for part in objects(content)]))
    for call in objects(message.get("tool_calls")):
        function = obj(call.get("function")) or call
        name = text(function.get("name"))
        turn.call(ids.of_call(text(call.get("id")), name), name, arguments(function.get("arguments")) or "{}")
