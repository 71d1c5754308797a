"""Parallel calls that are merged: the index of streamed calls is missing, null, a text, always 0, or changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zoo.bad_server import BadServer
from zoo.question import Json, Question
from zoo.speech import Event
from zoo.spoiling import AnswerDamage, calls_in, each_call, set_key, streamed, twice, without

STREAM = ("stream",)


def bad_index_server(name: str, damage: AnswerDamage, symptom: str, reports: str, **more: Any) -> BadServer:
    return BadServer(name, "bad_index", symptom, modes=STREAM, damage=damage, reports=reports, **more)


def whole_calls(change: Callable[[Json, int], None]) -> AnswerDamage:
    """Send each call in one piece, as servers do that parse the whole answer first."""

    def join_pieces(events: list[Event], question: Question) -> list[Event]:
        out: list[Event] = []
        heads: list[Json] = []
        for name, payload in events:
            entries = calls_in("chat", payload)
            for entry in entries:
                if "id" in entry:
                    heads.append(entry)
                    out.append((name, payload))
                else:
                    heads[-1]["function"]["arguments"] += entry["function"]["arguments"]
            out += [] if entries else [(name, payload)]
        for at, entry in enumerate(heads):
            change(entry, at)
        return out

    return streamed(join_pieces)


def remove_index(entry: Json, at: int) -> None:
    del entry["index"]


def set_index_to_zero(entry: Json, at: int) -> None:
    entry["index"] = 0


def shift_index(entry: Json, api: str, count: int) -> None:
    """Give later pieces another index than the first piece."""
    if "id" not in entry:
        entry["index"] += 1


def repeat_name(entry: Json, api: str, count: int) -> None:
    entry["function"]["name"] = "read_file"


def set_index_to_text(entry: Json, api: str, count: int) -> None:
    if "index" in entry:  # a whole answer has no index
        entry["index"] = str(entry["index"])


def count_from_one(entry: Json, api: str, count: int) -> None:
    if "index" in entry:
        entry["index"] += 1


def interleave(events: list[Event], question: Question) -> list[Event]:
    """Start both calls before the arguments of the first one, and interleave their pieces."""
    calls = [event for event in events if calls_in("chat", event[1])]
    rest = [event for event in events if not calls_in("chat", event[1])]
    half = len(calls) // 2
    mixed = [event for pair in zip(calls[:half], calls[half:], strict=True) for event in pair]
    return [rest[0], *mixed, *rest[1:]]


SERVERS = [
    bad_index_server(
        "no_index",
        each_call(without("index")),
        "a missing index aborts the turn",
        "zed-industries/zed#42584 zed-industries/zed#38412 vercel/ai#7238",
    ),
    bad_index_server("null_index", each_call(set_key("index", None)), "null for an index", "vercel/ai#7238"),
    bad_index_server("text_index", each_call(set_index_to_text), '"0" for an index', "anomalyco/opencode#17902"),
    bad_index_server(
        "index_from_one", each_call(count_from_one), "a call at 1 and none at 0", "openai/openai-python#3201"
    ),
    bad_index_server(
        "no_index_two",
        whole_calls(remove_index),
        "two calls run together into one",
        "huggingface/smolagents#1958 openai/openai-python#3425",
        intent=twice,
        result="both calls",
    ),
    bad_index_server(
        "index_always_0",
        whole_calls(set_index_to_zero),
        "two calls run together into one: names and arguments joined",
        "huggingface/smolagents#1569 ai-dynamo/dynamo#4723",
        intent=twice,
        result="both calls",
    ),
    bad_index_server(
        "index_changes", each_call(shift_index), "arguments at an index that has no call", "danny-avila/LibreChat#13987"
    ),
    bad_index_server(
        "name_again", each_call(repeat_name), "a name said with every piece: read_fileread_file", "maximhq/bifrost#1829"
    ),
    bad_index_server(
        "mixed_pieces",
        streamed(interleave),
        "pieces of two calls in turns: a strict reader closes the first too early",
        "ai-dynamo/dynamo#4723 openai/openai-python#3201",
        intent=twice,
        result="both calls, one after the other",
    ),
]
