"""Answers that violate the rules of their dialect, mostly where one API is translated to another; broken streams."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from zoo.bad_server import ALL, BadServer
from zoo.question import Json, Question
from zoo.script import Output, scripted_output
from zoo.speech import Answer, Event, encode_answer
from zoo.spoiling import calls_in, each_payload, no_event, streamed

STREAM = ("stream",)


def repeat_start(events: list[Event], question: Question) -> list[Event]:
    return [events[0], *events]


def add_reasoning(output: Output, question: Question) -> Output:
    return output._replace(reasoning="I must read the file.")


def put_reasoning_in_text(events: list[Event], question: Question) -> list[Event]:
    """Put the reasoning into a block of type text."""
    for _, payload in events:
        if (payload.get("content_block") or {}).get("type") == "thinking":
            payload["content_block"] = {"type": "text", "text": ""}
    return events


def remove_event_names(events: list[Event], question: Question) -> list[Event]:
    return [(None, payload) for _, payload in events]


def put_input_in_start(events: list[Event], question: Question) -> list[Event]:
    """Put the arguments into the start of the block, without deltas."""
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


def remove_indices(payload: Any, api: str, at: int) -> None:
    for key in ("output_index", "content_index", "sequence_number"):
        payload.pop(key, None)
    for key in ("model", "created_at"):
        (payload.get("response") or {}).pop(key, None)


def keep_first_and_last(events: list[Event], question: Question) -> list[Event]:
    return [events[0], events[-1]]


def clear_output(events: list[Event], question: Question) -> list[Event]:
    events[-1][1]["response"]["output"] = []
    return events


def use_chat_usage(payload: Json, api: str, at: int) -> None:
    for holder in (payload, payload.get("response") or {}):
        if "usage" in holder:
            holder["usage"] = {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49}


def answer_whole(answer: Answer, question: Question) -> Answer:
    whole = encode_answer(scripted_output(question), question._replace(stream=False))
    return whole if question.stream else answer


def write_as_events(events: list[Event], question: Question) -> list[Event]:
    """Send lines of JSON as server-sent events."""
    return [(None, f"data: {json.dumps(payload)}\n".encode()) for _, payload in events]


def break_once(answer: Answer, question: Question) -> Answer:
    """Break the connection in the middle; the second request succeeds."""
    if answer.events is None or question.nth % 2 == 0:
        return answer
    return answer._replace(events=answer.events[: len(answer.events) // 2], breaks=True)


def delay(answer: Answer, question: Question) -> Answer:
    return answer._replace(pause=0.25)


def bad_translation_server(name: str, symptom: str, reports: str, **more: Any) -> BadServer:
    return BadServer(name, "bad_translation", symptom, reports=reports, modes=STREAM, **more)


SERVERS = [
    bad_translation_server(
        "two_message_starts", "a second message_start", "BerriAI/litellm#32357", apis=("messages",),
        damage=streamed(repeat_start),
    ),
    bad_translation_server(
        "thinking_in_text_block", "thoughts in a block of text", "BerriAI/litellm#32357 BerriAI/litellm#29518",
        apis=("messages",), output=add_reasoning, damage=streamed(put_reasoning_in_text),
    ),
    bad_translation_server(
        "no_event_names", "events without their names", "BerriAI/litellm#25561", apis=("messages",),
        damage=streamed(remove_event_names),
    ),
    bad_translation_server(
        "input_in_start", "a call with empty input", "BerriAI/litellm#25321 BerriAI/litellm#25836", apis=("messages",),
        damage=streamed(put_input_in_start),
    ),
    bad_translation_server(
        "no_block_stop", "a block that never stops", "BerriAI/litellm#29286", apis=("messages",),
        damage=no_event("content_block_stop"),
    ),
    bad_translation_server(
        "events_without_places", "events that belong to no item: the SDK raises", "ggml-org/llama.cpp#23041",
        apis=("responses",), damage=each_payload(remove_indices),
    ),
    bad_translation_server(
        "only_completed", "no events of the items", "openai/codex#10635", apis=("responses",),
        damage=streamed(keep_first_and_last),
    ),
    bad_translation_server(
        "empty_output", "a response that ends without its items", "openai/codex#10635", apis=("responses",),
        damage=streamed(clear_output),
    ),
    bad_translation_server(
        "no_item_done", "items that are never done", "openai/codex#10635", apis=("responses",),
        damage=no_event("response.output_item.done"),
    ),
    bad_translation_server(
        "chat_usage", "a usage that cannot be read", "openai/codex#10635", apis=("responses",),
        damage=each_payload(use_chat_usage),
    ),
    bad_translation_server(
        "whole_for_stream", "JSON where a stream was asked for", "BerriAI/litellm#30014",
        apis=("chat", "responses", "messages", "gemini"), damage=answer_whole,
    ),
    bad_translation_server(
        "events_for_lines", "events where lines of JSON are due", "BerriAI/litellm#25561", apis=("ollama",),
        damage=streamed(write_as_events),
    ),
    BadServer(
        "breaks_off", "idle_stream", "a connection that breaks in the middle of a call",
        result="the call, asked for again", apis=ALL, modes=STREAM, damage=break_once,
        reports="maximhq/bifrost#5010",
    ),
    BadServer(
        "is_silent", "idle_stream", "nothing, until something between gives up", result="signs of life, and the call",
        modes=STREAM, apis=("chat", "messages"), damage=delay, right="alive",
        settings={"hold_headers": 0.05, "keep_alive": 0.05},
        reports="maximhq/bifrost#5010 BerriAI/litellm-docs#646",
    ),
]  # fmt: skip
