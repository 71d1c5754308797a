"""Parallel calls that run together: the index of streamed calls is missing, null, a text, always 0, or changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zoo.bad_server import BadServer
from zoo.question import Json, Question
from zoo.speech import Event
from zoo.spoiling import Spoiling, calls_in, each_call, put, streamed, twice, without

STREAM = ("stream",)


def indexed(name: str, spoils: Spoiling, saw: str, reports: str, **more: Any) -> BadServer:
    return BadServer(name, "bad_index", saw, ways=STREAM, spoils=spoils, reports=reports, **more)


def whole_calls(change: Callable[[Json, int], None]) -> Spoiling:
    """Each call in one piece, as servers do that parse the whole answer first."""

    def joined(events: list[Event], question: Question) -> list[Event]:
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

    return streamed(joined)


def no_index(entry: Json, at: int) -> None:
    del entry["index"]


def first_index(entry: Json, at: int) -> None:
    entry["index"] = 0


def shifted(entry: Json, api: str, count: int) -> None:
    """The pieces behind the first have another index than it."""
    if "id" not in entry:
        entry["index"] += 1


def named_again(entry: Json, api: str, count: int) -> None:
    entry["function"]["name"] = "read_file"


def as_text(entry: Json, api: str, count: int) -> None:
    if "index" in entry:  # a whole answer has none
        entry["index"] = str(entry["index"])


def from_one(entry: Json, api: str, count: int) -> None:
    if "index" in entry:
        entry["index"] += 1


def all_at_once(events: list[Event], question: Question) -> list[Event]:
    """Both calls begin before the first one's arguments come, and their pieces take turns."""
    calls = [event for event in events if calls_in("chat", event[1])]
    rest = [event for event in events if not calls_in("chat", event[1])]
    half = len(calls) // 2
    mixed = [event for pair in zip(calls[:half], calls[half:], strict=True) for event in pair]
    return [rest[0], *mixed, *rest[1:]]


SERVERS = [
    indexed(
        "no_index",
        each_call(without("index")),
        "a missing index aborts the turn",
        "zed-industries/zed#42584 zed-industries/zed#38412 vercel/ai#7238",
    ),
    indexed("null_index", each_call(put("index", None)), "null for an index", "vercel/ai#7238"),
    indexed("text_index", each_call(as_text), '"0" for an index', "anomalyco/opencode#17902"),
    indexed("index_from_one", each_call(from_one), "a call at 1 and none at 0", "openai/openai-python#3201"),
    indexed(
        "no_index_two",
        whole_calls(no_index),
        "two calls run together into one",
        "huggingface/smolagents#1958 openai/openai-python#3425",
        means=twice,
        sees="both calls",
    ),
    indexed(
        "index_always_0",
        whole_calls(first_index),
        "two calls run together into one: names and arguments joined",
        "huggingface/smolagents#1569 ai-dynamo/dynamo#4723",
        means=twice,
        sees="both calls",
    ),
    indexed(
        "index_changes", each_call(shifted), "arguments at an index that has no call", "danny-avila/LibreChat#13987"
    ),
    indexed(
        "name_again", each_call(named_again), "a name said with every piece: read_fileread_file", "maximhq/bifrost#1829"
    ),
    indexed(
        "mixed_pieces",
        streamed(all_at_once),
        "pieces of two calls in turns: a strict reader closes the first too early",
        "ai-dynamo/dynamo#4723 openai/openai-python#3201",
        means=twice,
        sees="both calls, one after the other",
    ),
]
