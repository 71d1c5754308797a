"""Clients as most are written: they believe the server. One for each dialect, for streams and whole answers.

seen = naive("chat", data, stream=True)
seen.calls, seen.text          raises where such a client would break
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from zoo.question import Json


class Seen(NamedTuple):
    """What a client runs and shows. `ids` are those of the calls."""

    calls: list[tuple[str, Any]]
    ids: list[Any]
    text: str = ""


class Broken(Exception):
    """The client gives up on the turn."""


def naive(api: str, data: bytes, *, stream: bool) -> Seen:
    """Reads an answer as a client of this dialect does. Raises whatever such a client would."""
    streamed, whole = _CLIENTS[api]
    seen = streamed(data) if stream else whole(json.loads(data))
    for id in seen.ids:
        if api in ("chat", "responses", "messages") and (not isinstance(id, str) or not id):
            raise Broken(f"a call has the id {id!r}")
    if len(set(map(str, seen.ids))) < len(seen.ids):
        raise Broken("two calls have one id")
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


def _run(calls: list[tuple[Any, str, Any]], text: str) -> Seen:
    return Seen([(name, given) for _, name, given in calls], [id for id, _, _ in calls], text)


# -- chat --------------------------------------------------------------------------------------------------------------


def _chat_stream(data: bytes) -> Seen:
    calls: dict[int, Json] = {}
    text, finish = "", None
    for _, chunk in _events(data):
        for choice in chunk["choices"]:
            delta = choice["delta"]
            text += delta.get("content") or ""
            for piece in delta.get("tool_calls") or ():
                if finish or piece["index"] < len(calls) - 1:
                    raise Broken("a call goes on after its end")
                made = calls.setdefault(piece["index"], {"id": piece.get("id"), "name": "", "arguments": ""})
                if piece.get("id") and piece["id"] != made["id"]:
                    raise Broken("the id of a call changes")
                made["name"] += piece["function"].get("name") or ""
                made["arguments"] += piece["function"]["arguments"]
            finish = choice.get("finish_reason") or finish
    if finish is None:
        raise Broken("the stream ends without a finish reason")
    if list(calls) != list(range(len(calls))):
        raise Broken("calls are not numbered from 0")
    return _finished(finish, [(made["id"], made["name"], made["arguments"]) for made in calls.values()], text)


def _chat_whole(body: Json) -> Seen:
    (choice,) = body["choices"]
    message = choice["message"]
    made = [
        (call.get("id"), call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]
    return _finished(choice["finish_reason"], made, message.get("content") or "")


def _finished(finish: str, calls: list[tuple[Any, str, str]], text: str) -> Seen:
    if finish not in ("stop", "length", "tool_calls", "content_filter"):
        raise Broken(f"finish_reason {finish!r}")
    ran = calls if finish == "tool_calls" else []
    return _run([(id, name, json.loads(given)) for id, name, given in ran], text)


# -- responses ---------------------------------------------------------------------------------------------------------


def _responses_stream(data: bytes) -> Seen:
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
                raise Broken("the arguments are not what their pieces gave")
        elif kind == "response.completed":
            if open_items:
                raise Broken("the response ends while an item is open")
            if done != event["response"]["output"]:
                raise Broken("the response ends with other items than were done")
            return _responses_whole(event["response"])
    raise Broken("the stream ends without response.completed")


def _responses_whole(body: Json) -> Seen:
    text = [part["text"] for item in body["output"] if item["type"] == "message" for part in item["content"]]
    calls = [item for item in body["output"] if item["type"] == "function_call"]
    if not all(isinstance(body["usage"][key], int) for key in ("input_tokens", "output_tokens", "total_tokens")):
        raise Broken("a usage that cannot be read")
    if calls and body["status"] != "completed":
        raise Broken(f"the response is {body['status']!r}")
    return _run([(call["call_id"], call["name"], json.loads(call["arguments"])) for call in calls], "".join(text))


# -- messages ----------------------------------------------------------------------------------------------------------


def _messages_stream(data: bytes) -> Seen:
    message: Json = {}
    blocks: list[Json] = []
    wires: dict[int, str] = {}
    for name, event in _events(data):
        if name == "message_start":
            if message:
                raise Broken("a second message_start")
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
    raise Broken("the stream ends without message_stop")


def _block_delta(block: Json, event: Json, wires: dict[int, str]) -> None:
    delta = event["delta"]
    if delta["type"] == "input_json_delta":
        if block["type"] != "tool_use":
            raise Broken("arguments in a block of text")
        wires[event["index"]] += delta["partial_json"]
    elif delta["type"] == "text_delta":
        block["text"] += delta["text"]
    elif delta["type"] == "thinking_delta":
        block["thinking"] += delta["thinking"]


def _messages_whole(body: Json) -> Seen:
    text = "".join([block["text"] for block in body["content"] if block["type"] == "text"])
    calls = [block for block in body["content"] if block["type"] == "tool_use"]
    if body["stop_reason"] not in ("end_turn", "tool_use", "max_tokens"):
        raise Broken(f"stop_reason {body['stop_reason']!r}")
    ran = calls if body["stop_reason"] == "tool_use" else []
    return _run([(call.get("id"), call["name"], _object(call["input"])) for call in ran], text)


def _object(given: Any) -> Any:
    if not isinstance(given, dict):
        raise Broken(f"arguments that are no object: {given!r:.40}")
    return given


# -- ollama and gemini -------------------------------------------------------------------------------------------------


def _ollama_stream(data: bytes) -> Seen:
    lines = [json.loads(line) for line in data.decode().split("\n") if line]
    if not lines or not lines[-1]["done"]:
        raise Broken("the stream ends without done")
    calls = [call for line in lines for call in line["message"].get("tool_calls") or ()]
    text = "".join([line["message"]["content"] for line in lines])
    return _numbered([(call["function"]["name"], call["function"]["arguments"]) for call in calls], text)


def _ollama_whole(body: Json) -> Seen:
    return _ollama_stream(json.dumps(body).encode())


def _numbered(calls: list[tuple[str, Any]], text: str) -> Seen:
    return _run([(at, name, _object(given)) for at, (name, given) in enumerate(calls)], text)


def _gemini_stream(data: bytes) -> Seen:
    return _gemini([payload for _, payload in _events(data)])


def _gemini_whole(body: Json) -> Seen:
    return _gemini([body])


def _gemini(chunks: list[Json]) -> Seen:
    candidates = [candidate for chunk in chunks for candidate in chunk.get("candidates") or ()]
    parts = [part for each in candidates if "content" in each for part in each["content"]["parts"]]
    finishes = [candidate["finishReason"] for candidate in candidates if candidate.get("finishReason")]
    if finishes[-1:] not in (["STOP"], ["MAX_TOKENS"]):
        raise Broken(f"finishReason {finishes}")
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    text = "".join([part["text"] for part in parts if "text" in part and not part.get("thought")])
    return _run([(call.get("id", at), call["name"], _object(call["args"])) for at, call in enumerate(calls)], text)


_CLIENTS: dict[str, tuple[Callable[[bytes], Seen], Callable[[Json], Seen]]] = {
    "chat": (_chat_stream, _chat_whole),
    "responses": (_responses_stream, _responses_whole),
    "messages": (_messages_stream, _messages_whole),
    "ollama": (_ollama_stream, _ollama_whole),
    "gemini": (_gemini_stream, _gemini_whole),
}
