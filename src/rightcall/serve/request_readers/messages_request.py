"""Anthropic Messages: a system field beside the conversation, content in blocks, results in the user's turns. Clients
put messages of role "system" among the others too.
"""

from __future__ import annotations

from typing import Any

from rightcall.providers.sdk_view import obj, objects, text
from rightcall.serve.client_request import ClientRequest, RefusedRequest
from rightcall.serve.request_readers.body_fields import limits
from rightcall.serve.request_readers.content_parts import joined_text, messages_part, messages_parts
from rightcall.serve.request_readers.declared_tools import declared, entries
from rightcall.serve.request_readers.request_messages import NOWHERE, AssistantDraft, RequestMessages, entries_of, entry
from rightcall.serve.request_readers.tool_choices import chosen, read_choice
from rightcall.serve.request_readers.whole_requests import whole_request
from rightcall.types import Json

_CALL = frozenset(("type", "id", "name", "input", "cache_control"))


def read_messages(body: Json, model: str, stream: bool | None) -> ClientRequest:
    _refuse_threads(body)
    talk = RequestMessages("messages")
    if system := joined_text(messages_parts(body.get("system"))):
        talk.add({"role": "system", "content": system}, NOWHERE)
    for at, each in enumerate(entries_of(body, "messages")):
        _read(entry(each, "messages", at), talk, at)
    talk.close()
    given = entries(body, "tools")
    choice, tools = chosen(read_choice(body.get("tool_choice")), declared(given or []))
    return whole_request(
        "messages",
        body,
        talk,
        choice,
        tools,
        has_tools=given is not None,
        model=model or text(body.get("model")),
        parallel=(obj(body.get("tool_choice")) or {}).get("disable_parallel_tool_use") is not True,
        stream=body.get("stream") is True if stream is None else stream,
        **limits(body, most=("max_tokens",), stop="stop_sequences", seed=""),
    )


def _refuse_threads(body: Json) -> None:
    """A client that wants the server to remember the conversation sends all of it again when it is told this."""
    if body.get("thread") is not None:
        details = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
        raise RefusedRequest("`thread` is not kept here; send the whole conversation without it", details=details)


def _read(message: Json, talk: RequestMessages, at: int) -> None:
    role = text(message.get("role")) or "user"
    if role == "assistant":
        _assistant(message.get("content"), talk.begin(at), talk)
    elif role in ("system", "developer"):
        talk.add({"role": role, "content": joined_text(messages_parts(message.get("content")))}, at)
    else:
        _user(role, message.get("content"), talk, at)


def _user(role: str, content: Any, talk: RequestMessages, at: int) -> None:
    """Results first: in Chat they stand right behind the calls."""
    blocks = objects(content)
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for block in results:
        parts, failed = messages_parts(block.get("content")), block.get("is_error") is True
        talk.result(text(block.get("tool_use_id")), parts, at, is_error=failed)
    rest = [block for block in blocks if block.get("type") != "tool_result"]
    if rest or not results:
        talk.say(role, messages_parts(content if isinstance(content, str) else rest), at)


def _assistant(content: Any, turn: AssistantDraft, talk: RequestMessages) -> None:
    turn.text(text(content))
    for block in objects(content):
        kind = text(block.get("type"))
        if kind == "text":
            turn.text(text(block.get("text")))
        elif kind in ("thinking", "redacted_thinking"):
            turn.thought(text(block.get("thinking")))
            turn.keep("thinking", [block])
        elif kind == "tool_use":
            beside = {key: value for key, value in block.items() if key not in _CALL}
            turn.call(text(block.get("id")), text(block.get("name")), block.get("input"), beside)
        elif kind in ("image", "document"):
            turn.parts += messages_part(block)
        else:
            talk.warn(f"{kind[:60]!r} in the history is left out: only its provider can read it")
