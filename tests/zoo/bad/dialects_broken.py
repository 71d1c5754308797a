"""Answers that break the rules of their dialect, mostly where one API is translated into another; streams that die."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from zoo.bad_server import ALL, BadServer
from zoo.question import Json, Question
from zoo.script import Said, reply_to
from zoo.speech import Answer, Event, spoken
from zoo.spoiling import calls_in, each_payload, no_event, streamed

STREAM = ("stream",)


def two_starts(events: list[Event], question: Question) -> list[Event]:
    return [events[0], *events]


def thinks(said: Said, question: Question) -> Said:
    return said._replace(reasoning="I must read the file.")


def thinking_in_text(events: list[Event], question: Question) -> list[Event]:
    """The thought stands in a block that says it is text."""
    for _, payload in events:
        if (payload.get("content_block") or {}).get("type") == "thinking":
            payload["content_block"] = {"type": "text", "text": ""}
    return events


def unnamed(events: list[Event], question: Question) -> list[Event]:
    return [(None, payload) for _, payload in events]


def input_at_once(events: list[Event], question: Question) -> list[Event]:
    """The arguments stand in the start of the block, and no delta follows."""
    blocks: dict[int, Json] = {}
    pieces: defaultdict[int, str] = defaultdict(str)
    out: list[Event] = []
    for name, payload in events:
        for block in calls_in("messages", payload):
            blocks[payload["index"]] = block
        delta = payload.get("delta") or {}
        if delta.get("type") == "input_json_delta":
            pieces[payload["index"]] += delta["partial_json"]
        else:
            out.append((name, payload))
    for index, block in blocks.items():
        block["input"] = json.loads(pieces[index] or "{}")
    return out


def without_places(payload: Any, api: str, at: int) -> None:
    for key in ("output_index", "content_index", "sequence_number"):
        payload.pop(key, None)
    for key in ("model", "created_at"):
        (payload.get("response") or {}).pop(key, None)


def only_the_end(events: list[Event], question: Question) -> list[Event]:
    return [events[0], events[-1]]


def empty_output(events: list[Event], question: Question) -> list[Event]:
    events[-1][1]["response"]["output"] = []
    return events


def chat_usage(payload: Json, api: str, at: int) -> None:
    for holder in (payload, payload.get("response") or {}):
        if "usage" in holder:
            holder["usage"] = {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49}


def in_place_of_a_stream(answer: Answer, question: Question) -> Answer:
    whole = spoken(reply_to(question), question._replace(stream=False))
    return whole if question.stream else answer


def as_events(events: list[Event], question: Question) -> list[Event]:
    """Lines of JSON as server-sent events."""
    return [(None, f"data: {json.dumps(payload)}\n".encode()) for _, payload in events]


def breaks_once(answer: Answer, question: Question) -> Answer:
    """The connection is gone in the middle; asked again, all goes well."""
    if answer.events is None or question.nth % 2 == 0:
        return answer
    return answer._replace(events=answer.events[: len(answer.events) // 2], breaks=True)


def is_silent(answer: Answer, question: Question) -> Answer:
    return answer._replace(pause=0.25)


def told(name: str, saw: str, reports: str, **more: Any) -> BadServer:
    return BadServer(name, "bad_translation", saw, reports=reports, ways=STREAM, **more)


SERVERS = [
    told(
        "two_message_starts", "a second message_start", "BerriAI/litellm#32357", apis=("messages",),
        spoils=streamed(two_starts),
    ),
    told(
        "thinking_in_text_block", "thoughts in a block of text", "BerriAI/litellm#32357 BerriAI/litellm#29518",
        apis=("messages",), says=thinks, spoils=streamed(thinking_in_text),
    ),
    told(
        "no_event_names", "events without their names", "BerriAI/litellm#25561", apis=("messages",),
        spoils=streamed(unnamed),
    ),
    told(
        "input_in_start", "a call with empty input", "BerriAI/litellm#25321 BerriAI/litellm#25836", apis=("messages",),
        spoils=streamed(input_at_once),
    ),
    told(
        "no_block_stop", "a block that never stops", "BerriAI/litellm#29286", apis=("messages",),
        spoils=no_event("content_block_stop"),
    ),
    told(
        "events_without_places", "events that belong to no item: the SDK raises", "ggml-org/llama.cpp#23041",
        apis=("responses",), spoils=each_payload(without_places),
    ),
    told(
        "only_completed", "no events of the items", "openai/codex#10635", apis=("responses",),
        spoils=streamed(only_the_end),
    ),
    told(
        "empty_output", "a response that ends without its items", "openai/codex#10635", apis=("responses",),
        spoils=streamed(empty_output),
    ),
    told(
        "no_item_done", "items that are never done", "openai/codex#10635", apis=("responses",),
        spoils=no_event("response.output_item.done"),
    ),
    told(
        "chat_usage", "a usage that cannot be read", "openai/codex#10635", apis=("responses",),
        spoils=each_payload(chat_usage),
    ),
    told(
        "whole_for_stream", "JSON where a stream was asked for", "BerriAI/litellm#30014",
        apis=("chat", "responses", "messages", "gemini"), spoils=in_place_of_a_stream,
    ),
    told(
        "events_for_lines", "events where lines of JSON are due", "BerriAI/litellm#25561", apis=("ollama",),
        spoils=streamed(as_events),
    ),
    BadServer(
        "breaks_off", "idle_stream", "a connection that breaks in the middle of a call",
        sees="the call, asked for again", apis=ALL, ways=STREAM, spoils=breaks_once,
        reports="maximhq/bifrost#5010",
    ),
    BadServer(
        "is_silent", "idle_stream", "nothing, until something between gives up", sees="signs of life, and the call",
        ways=STREAM, apis=("chat", "messages"), spoils=is_silent, right="alive",
        settings={"hold_headers": 0.05, "keep_alive": 0.05},
        reports="maximhq/bifrost#5010 BerriAI/litellm-docs#646",
    ),
]  # fmt: skip
