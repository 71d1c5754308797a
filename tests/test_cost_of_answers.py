"""The cost of reading a provider's answer in counted steps: linear, whatever the size and index of its deltas."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import cycle
from typing import Any

import pytest

from support.steps import MOST, measure_growth

Chunks = Callable[[int], list[Any]]


def delta(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(entries)}}]}


def entry(index: int | None = None, id: str = "", name: str = "", arguments: str = "") -> dict[str, Any]:
    function = {"name": name or None, "arguments": arguments}
    return {"function": function, **({"id": id} if id else {}), **({} if index is None else {"index": index})}


def first_call_and(*rest: Any) -> list[Any]:
    return [delta(entry(0, "a", "write", '{"text": "b"}')), *rest]


def call_deltas(count: int) -> list[Any]:
    return [delta(entry(i, f"a{i}", "write", "{}")) for i in range(count)]


def block(index: int, **fields: Any) -> dict[str, Any]:
    return {"index": index, **fields}


STREAMS: dict[str, Chunks] = {
    "blanks, one by one": lambda n: [" "] * n,
    "an event that has no end": lambda n: ["event: ", *["a"] * n],
    "a line that has no end": lambda n: ["data: ", *[" "] * n],
    "a payload in single characters": lambda n: list(json.dumps(delta(entry(0, "a", "write", "a" * n)))),
    "pieces of an index that nobody announced": lambda n: (
        call_deltas(n // 2) + [delta(entry(10**6 + i, arguments=" ")) for i in range(n // 2)]
    ),
    "pieces of an id that nobody announced": lambda n: (
        call_deltas(n // 2) + [delta(entry(None, f"z{i}", arguments="x")) for i in range(n // 2)]
    ),
    "pieces behind whole arguments": lambda n: first_call_and(*[delta(entry(0, arguments=" "))] * n),
    "pieces behind whole arguments, live": lambda n: first_call_and(*[delta(entry(0, arguments="x"))] * n),
    "the name with every piece": lambda n: [delta(entry(0, "a", "write", '{"a":'))] * n,
    "the name with every piece of a key": lambda n: [delta(entry(0, "a", "write", '{"'))] * n,
    "the name in pieces": lambda n: [delta(entry(0, "a", "w"))] * n,
    "nothing but ids": lambda n: [delta(entry(None, f"a{i}")) for i in range(n)],
    "blocks that end again and again": lambda n: [
        {"type": "content_block_start", **block(0, content_block={"type": "tool_use", "id": "a", "name": "write"})},
        {"type": "content_block_delta", **block(0, delta={"type": "input_json_delta", "partial_json": "[ " * n})},
        *[{"type": "content_block_stop", **block(0)}] * n,
    ],
    "text and calls in turn": lambda n: [
        each
        for i in range(n)
        for each in ({"choices": [{"delta": {"content": "a"}}]}, delta(entry(i, f"a{i}", "write", "{}")))
    ],
    "text and thoughts in turn": lambda n: (
        [
            {"choices": [{"delta": {"content": "a", "reasoning_content": "b"}}]},
        ]
        * n
    ),
}


@pytest.mark.parametrize("shape, live", list(zip(STREAMS, cycle([False, True]), strict=False)))
def test_the_steps_of_a_stream_grow_linearly_with_its_chunks(shape: str, live: bool) -> None:
    def read_stream(rightcall: Any, tools: Any, size: int) -> None:
        stream = rightcall.Stream(tools=tools, live=live)
        for chunk in STREAMS[shape](size):
            stream.feed(chunk)
        stream.close()

    assert measure_growth(read_stream, size=100) <= MOST


ARGUMENTS: dict[str, Callable[[int], str]] = {
    "a fence and blanks": lambda n: "```\n" + " " * n + "x",
    "brackets": lambda n: "{" * n,
    "open strings": lambda n: '{"text": "' + '\\"' * n,
    "commas": lambda n: '{"text": "a"' + "," * n,
    "keys without values": lambda n: '{"text"' * n,
    "the same key again": lambda n: "{" + '"text": "a", ' * n + "}",
    "objects in a row": lambda n: "{}" * n,
    "comments": lambda n: "/*" * n,
}


@pytest.mark.parametrize("shape, policy", list(zip(ARGUMENTS, cycle(["safe", "lenient"]), strict=False)))
def test_the_steps_of_a_repair_grow_linearly_with_the_arguments(shape: str, policy: str) -> None:
    def repair_arguments(rightcall: Any, tools: Any, size: int) -> None:
        rightcall.repair(rightcall.Call("write", {}, ARGUMENTS[shape](size)), tools, policy=policy)

    assert measure_growth(repair_arguments, size=4_000) <= MOST
