"""Naive clients, which trust the server: one for each dialect, for streams and whole answers.

seen = read_naively("chat", data, stream=True)
seen.calls, seen.text          raises where such a client would fail
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from zoo.question import Json


class ClientView(NamedTuple):
    """The calls that a client runs, their ids, and the text that it shows."""

    calls: list[tuple[str, Any]]
    ids: list[Any]
    text: str = ""


class ClientFailed(Exception):
    """The client aborts the turn."""


def read_naively(api: str, data: bytes, *, stream: bool) -> ClientView:
    """Parse an answer as a client of this dialect does. Raise what such a client would raise."""
    read_stream, read_whole = _CLIENTS[api]
    seen = read_stream(data) if stream else read_whole(json.loads(data))
    for id in seen.ids:
        if api in ("chat", "responses", "messages") and (not isinstance(id, str) or not id):
            raise ClientFailed(f"a call has the id {id!r}")
    if len(set(map(str, seen.ids))) < len(seen.ids):
        raise ClientFailed("two calls have one id")
    return seen


def _events(data: bytes) -> Iterator[tuple[str, Json]]:
    for block in data.decode().replace("\r\n", "\n").split("\n\n"):
        name, payload = "", ""
        for line in block.splitlines():
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                payload = line[6:]
        if payload and payload != "[DONE]":
            yield name, json.loads(payload)


def _view(calls: list[tuple[Any, str, Any]], text: str) -> ClientView:
    return ClientView([(name, arguments) for _, name, arguments in calls], [id for id, _, _ in calls], text)


# -- chat --------------------------------------------------------------------------------------------------------------


def _chat_stream(data: bytes) -> ClientView:
    calls: dict[int, Json] = {}
    text, finish = "", None
    for _, chunk in _events(data):
        for choice in chunk["choices"]:
            delta = choice["delta"]
            text += delta.get("content") or ""
            for piece in delta.get("tool_calls") or ():
                if finish or piece["index"] < len(calls) - 1:
                    raise ClientFailed("a call goes on after its end")
                call = calls.setdefault(piece["index"], {"id": piece.get("id"), "name": "", "arguments": ""})
                if piece.get("id") and piece["id"] != call["id"]:
                    raise ClientFailed("the id of a call changes")
                call["name"] += piece["function"].get("name") or ""
                call["arguments"] += piece["function"]["arguments"]
            finish = choice.get("finish_reason") or finish
    if finish is None:
        raise ClientFailed("the stream ends without a finish reason")
    if list(calls) != list(range(len(calls))):
        raise ClientFailed("calls are not numbered from 0")
    return _finish(finish, [(call["id"], call["name"], call["arguments"]) for call in calls.values()], text)


def _chat_whole(body: Json) -> ClientView:
    (choice,) = body["choices"]
    message = choice["message"]
    calls = [
        (call.get("id"), call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]
    return _finish(choice["finish_reason"], calls, message.get("content") or "")


def _finish(finish: str, calls: list[tuple[Any, str, str]], text: str) -> ClientView:
    if finish not in ("stop", "length", "tool_calls", "content_filter"):
        raise ClientFailed(f"finish_reason {finish!r}")
    runnable = calls if finish == "tool_calls" else []
    return _view([(id, name, json.loads(arguments)) for id, name, arguments in runnable], text)


# -- responses ---------------------------------------------------------------------------------------------------------


def _responses_stream(data: bytes) -> ClientView:
    pieces: dict[int, str] = {}
    open_items: dict[int, Json] = {}
    done: list[Json] = []
    for _, event in _events(data):
        kind = event["type"]
        if kind == "response.output_item.added":
            open_items[event["output_index"]] = event["item"]
            pieces[event["output_index"]] = ""
        elif kind == "response.function_call_arguments.delta":
            pieces[event["output_index"]] += event["delta"]
        elif kind == "response.output_item.done":
            item = event["item"]
            done.append(item)
            del open_items[event["output_index"]]
            if item["type"] == "function_call" and item["arguments"] != pieces[event["output_index"]]:
                raise ClientFailed("the arguments differ from their deltas")
        elif kind == "response.completed":
            if open_items:
                raise ClientFailed("the response ends while an item is open")
            if done != event["response"]["output"]:
                raise ClientFailed("the response ends with items that differ from the completed ones")
            return _responses_whole(event["response"])
    raise ClientFailed("the stream ends without response.completed")


def _responses_whole(body: Json) -> ClientView:
    text = [part["text"] for item in body["output"] if item["type"] == "message" for part in item["content"]]
    calls = [item for item in body["output"] if item["type"] == "function_call"]
    if not all(isinstance(body["usage"][key], int) for key in ("input_tokens", "output_tokens", "total_tokens")):
        raise ClientFailed("a malformed usage")
    if calls and body["status"] != "completed":
        raise ClientFailed(f"the response is {body['status']!r}")
    return _view([(call["call_id"], call["name"], json.loads(call["arguments"])) for call in calls], "".join(text))


# -- messages ----------------------------------------------------------------------------------------------------------


def _messages_stream(data: bytes) -> ClientView:
    message: Json = {}
    blocks: list[Json] = []
    wires: dict[int, str] = {}
    for name, event in _events(data):
        if name == "message_start":
            if message:
                raise ClientFailed("a second message_start")
            message = event["message"]
        elif name == "content_block_start":
            blocks.append(dict(event["content_block"]))
            wires[event["index"]] = ""
        elif name == "content_block_delta":
            _block_delta(blocks[event["index"]], event, wires)
        elif name == "content_block_stop" and blocks[event["index"]]["type"] == "tool_use":
            blocks[event["index"]]["input"] = json.loads(wires[event["index"]] or "{}")
        elif name == "message_delta":
            message["stop_reason"] = event["delta"]["stop_reason"]
        elif name == "message_stop":
            return _messages_whole({**message, "content": blocks})
    raise ClientFailed("the stream ends without message_stop")


def _block_delta(block: Json, event: Json, wires: dict[int, str]) -> None:
    delta = event["delta"]
    if delta["type"] == "input_json_delta":
        if block["type"] != "tool_use":
            raise ClientFailed("arguments in a block of text")
        wires[event["index"]] += delta["partial_json"]
    elif delta["type"] == "text_delta":
        block["text"] += delta["text"]
    elif delta["type"] == "thinking_delta":
        block["thinking"] += delta["thinking"]


def _messages_whole(body: Json) -> ClientView:
    text = "".join([block["text"] for block in body["content"] if block["type"] == "text"])
    calls = [block for block in body["content"] if block["type"] == "tool_use"]
    if body["stop_reason"] not in ("end_turn", "tool_use", "max_tokens"):
        raise ClientFailed(f"stop_reason {body['stop_reason']!r}")
    runnable = calls if body["stop_reason"] == "tool_use" else []
    return _view([(call.get("id"), call["name"], _object(call["input"])) for call in runnable], text)


def _object(arguments: Any) -> Any:
    if not isinstance(arguments, dict):
        raise ClientFailed(f"arguments that are no object: {arguments!r:.40}")
    return arguments


# -- ollama and gemini -------------------------------------------------------------------------------------------------


def _ollama_stream(data: bytes) -> ClientView:
    lines = [json.loads(line) for line in data.decode().split("\n") if line]
    if not lines or not lines[-1]["done"]:
        raise ClientFailed("the stream ends without done")
    calls = [call for line in lines for call in line["message"].get("tool_calls") or ()]
    text = "".join([line["message"]["content"] for line in lines])
    return _number([(call["function"]["name"], call["function"]["arguments"]) for call in calls], text)


def _ollama_whole(body: Json) -> ClientView:
    return _ollama_stream(json.dumps(body).encode())


def _number(calls: list[tuple[str, Any]], text: str) -> ClientView:
    return _view([(at, name, _object(arguments)) for at, (name, arguments) in enumerate(calls)], text)


def _gemini_stream(data: bytes) -> ClientView:
    return _gemini([payload for _, payload in _events(data)])


def _gemini_whole(body: Json) -> ClientView:
    return _gemini([body])


def _gemini(chunks: list[Json]) -> ClientView:
    candidates = [candidate for chunk in chunks for candidate in chunk.get("candidates") or ()]
    parts = [part for each in candidates if "content" in each for part in each["content"]["parts"]]
    finishes = [candidate["finishReason"] for candidate in candidates if candidate.get("finishReason")]
    if finishes[-1:] not in (["STOP"], ["MAX_TOKENS"]):
        raise ClientFailed(f"finishReason {finishes}")
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    text = "".join([part["text"] for part in parts if "text" in part and not part.get("thought")])
    return _view([(call.get("id", at), call["name"], _object(call["args"])) for at, call in enumerate(calls)], text)


_CLIENTS: dict[str, tuple[Callable[[bytes], ClientView], Callable[[Json], ClientView]]] = {
    "chat": (_chat_stream, _chat_whole),
    "responses": (_responses_stream, _responses_whole),
    "messages": (_messages_stream, _messages_whole),
    "ollama": (_ollama_stream, _ollama_whole),
    "gemini": (_gemini_stream, _gemini_whole),
}
