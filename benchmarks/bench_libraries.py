"""Measure hand-written code against the library that does the same.

Each row compares one hand-written part with a library on the same input, in one process and by turns. A ratio below 1
means that the hand-written part is faster. docs/dependencies.md has the figures, and what the libraries cannot do.

    pip install ijson partial-json-parser httpx-sse datasketch detect-secrets prometheus-client
    python benchmarks/bench_libraries.py

A library that is not installed is reported and skipped.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import NamedTuple

from measure import TOOLS, table, turn_by_turn
from rightcall import Parser, Toolset
from rightcall.datasets.similarity import signature
from rightcall.providers.sse import Payloads
from rightcall.redaction.scrubber import Scrubber
from rightcall.serve.prometheus_text import CounterFamily
from rightcall.serve.upstream_lines import UpstreamLines
from rightcall.strict_json import MAX_DEPTH, decode

RUNS = 5
PIECE = 4  # characters of one delta
ARGUMENTS_SIZE = 8_192  # characters; partial-json-parser is quadratic, so that more takes minutes
EVENTS = 2_000
WORDS = 400
REPEATED = 200  # calls of a function that takes microseconds
SERIES = 50  # label values of a metric


class Comparison(NamedTuple):
    """A hand-written part, the library, and a run of each on the same input."""

    part: str
    library: str
    ours: Callable[[], object]
    theirs: Callable[[], object]


def pieces_of(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def words(count: int, seed: int) -> str:
    dice = random.Random(seed)
    return " ".join("".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))) for _ in range(count))


def stream_ours(pieces: list[str]) -> None:
    parser = Parser(format="hermes", tools=TOOLS, live=True)
    for piece in pieces:
        parser.feed(piece)
    parser.close()


def compare_json() -> Comparison:
    """Arguments of a call as strict JSON: no duplicate keys, no infinite numbers, bounded depth."""
    text = json.dumps({"path": "a.txt", "text": words(WORDS, 1), "edit": {"line": 12, "new": ["a", "b"]}})
    return Comparison(
        "strict JSON", "json", lambda: [decode(text, MAX_DEPTH) for _ in range(REPEATED)],
        lambda: [json.loads(text) for _ in range(REPEATED)],
    )  # fmt: skip


def compare_pydantic() -> Comparison:
    """The schema of a function of three plain arguments."""
    adapter = import_module("pydantic").TypeAdapter

    def declared() -> Callable[..., str]:
        def get_weather(city: str, days: int = 1, hourly: bool = False) -> str:
            """Get the weather."""
            return f"{city} {days} {hourly}"

        return get_weather  # a new function each time: nothing about it is cached

    return Comparison(
        "schema of a function", "pydantic",
        lambda: [each.parameters for _ in range(REPEATED) for each in Toolset([declared()])],
        lambda: [adapter(declared()).json_schema() for _ in range(REPEATED)],
    )  # fmt: skip


def compare_partial_json() -> Comparison:
    """Arguments of a call that arrive in pieces: the library parses all that has arrived again for each piece."""
    parse = import_module("partial_json_parser").loads
    arguments = json.dumps({"path": "a.txt", "text": words(WORDS * 10, 1)[:ARGUMENTS_SIZE]})
    call = pieces_of(f'<tool_call>\n{{"name": "edit_file", "arguments": {arguments}}}\n</tool_call>')
    arrived = [arguments[:end] for end in range(PIECE, len(arguments), PIECE)]
    return Comparison(
        "incremental JSON", "partial-json-parser", lambda: stream_ours(call), lambda: [parse(text) for text in arrived]
    )


def compare_ijson() -> Comparison:
    """The same; the library reports a string when it has ended, not while it arrives."""
    ijson = import_module("ijson")
    arguments = json.dumps({"path": "a.txt", "text": words(WORDS * 10, 1)[:ARGUMENTS_SIZE]})
    call = pieces_of(f'<tool_call>\n{{"name": "edit_file", "arguments": {arguments}}}\n</tool_call>')
    chunks = [piece.encode() for piece in pieces_of(arguments)]

    def theirs() -> None:
        parser = ijson.basic_parse_coro(ijson.sendable_list())
        for chunk in chunks:
            parser.send(chunk)
        parser.close()

    return Comparison("incremental JSON", "ijson", lambda: stream_ours(call), theirs)


def compare_httpx_sse() -> Comparison:
    """Server-sent events in network chunks; the library needs whole lines of text, and drops what is no event."""
    decoder = import_module("httpx_sse._decoders")
    event = json.dumps({"choices": [{"index": 0, "delta": {"content": "some text"}}]})
    stream = f"data: {event}\n\n" * EVENTS
    chunks = [stream[at : at + 1_000] for at in range(0, len(stream), 1_000)]

    def ours() -> int:
        payloads = Payloads()
        return sum(len(payloads.feed(chunk)) for chunk in chunks) + len(payloads.close())

    def theirs() -> int:
        lines, events = decoder.SSELineDecoder(), decoder.SSEDecoder()
        decoded = [events.decode(line.rstrip("\n")) for chunk in chunks for line in lines.decode(chunk)]
        return len([json.loads(event.data) for event in decoded if event is not None])

    if ours() != theirs():
        sys.exit("bench_libraries: the two readers of events do not find the same events")
    return Comparison("server-sent events", "httpx-sse", ours, theirs)


def compare_datasketch() -> Comparison:
    """The signature of one row of a dataset, for finding near duplicates."""
    make = import_module("datasketch").MinHash
    text = words(WORDS, 2)

    def theirs() -> None:
        data = text.encode()
        make(num_perm=128).update_batch({data[at : at + 5] for at in range(len(data) - 4)})

    return Comparison("MinHash of a row", "datasketch", lambda: signature(text), theirs)


def compare_detect_secrets() -> Comparison:
    """Secrets in a text of ordinary lines with one key."""
    scan = import_module("detect_secrets.core.scan")
    settings = import_module("detect_secrets.settings")
    lines = [words(12, seed) for seed in range(200)]
    lines[100] = "api_key = sk-" + "a1B2c3D4e5F6g7H8i9J0k1L2"
    text, scrubber = "\n".join(lines), Scrubber()

    def theirs() -> None:
        with settings.default_settings():
            for line in lines:
                list(scan.scan_line(line))

    return Comparison("secrets in a text", "detect-secrets", lambda: scrubber.text(text), theirs)


def compare_prometheus() -> Comparison:
    """Counts of requests by two labels, and the page that Prometheus reads."""
    client = import_module("prometheus_client")
    labels = [("chat", str(number % SERIES)) for number in range(EVENTS)]

    def ours() -> str:
        family = CounterFamily("requests_total", "Requests.", ("route", "status"))
        for each in labels:
            family.add(each)
        return "".join(family.lines())

    def theirs() -> bytes:
        registry = client.CollectorRegistry()
        counter = client.Counter("requests_total", "Requests.", ("route", "status"), registry=registry)
        for each in labels:
            counter.labels(*each).inc()
        return bytes(client.generate_latest(registry))

    return Comparison("metrics", "prometheus-client", ours, theirs)


class FixedAnswer(asyncio.Protocol):
    """A server that gives one answer to each request, whatever it is."""

    BODY = json.dumps({"choices": [{"message": {"content": "some text " * 40}}]}).encode()
    ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(self.ANSWER * data.count(b"\r\n\r\n"))


def start_server() -> int:
    """Start the server in a thread of its own and return its port."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    started = asyncio.run_coroutine_threadsafe(loop.create_server(FixedAnswer, "127.0.0.1", 0), loop)
    return int(started.result().sockets[0].getsockname()[1])


def compare_aiohttp() -> Comparison:
    """Requests one after the other on a connection that stays open, and their whole answers."""
    aiohttp = import_module("aiohttp")
    url = f"http://127.0.0.1:{start_server()}"
    request = f"GET / HTTP/1.1\r\nHost: {url.removeprefix('http://')}\r\n\r\n".encode()

    async def ask() -> int:
        lines, size = UpstreamLines(url, proxy=None, ca="", seconds=10), 0
        for _ in range(REPEATED):
            line = await lines.open()
            line.ask(request, "GET")
            await line.head()
            while piece := await line.piece():
                size += len(piece)
            lines.put_back(line)
        lines.close()
        return size

    async def ask_library() -> int:
        size = 0
        async with aiohttp.ClientSession() as session:
            for _ in range(REPEATED):
                async with session.get(url) as answer:
                    size += len(await answer.read())
        return size

    if asyncio.run(ask()) != asyncio.run(ask_library()):
        sys.exit("bench_libraries: the two clients do not read the same answers")
    return Comparison("HTTP client", "aiohttp", lambda: asyncio.run(ask()), lambda: asyncio.run(ask_library()))


COMPARISONS = (
    compare_json, compare_pydantic, compare_partial_json, compare_ijson, compare_httpx_sse, compare_datasketch,
    compare_detect_secrets, compare_prometheus, compare_aiohttp,
)  # fmt: skip


def installed() -> Iterator[Comparison]:
    for compare in COMPARISONS:
        try:
            yield compare()
        except ImportError as error:
            print(f"left out: {error.name} is not installed")


def main() -> int:
    rows = []
    for part, library, ours, theirs in installed():
        own, other = turn_by_turn(RUNS, (ours, 1), (theirs, 1))
        rows.append((part, library, f"{own * 1000:.2f}", f"{other * 1000:.2f}", f"{own / other:.3f}"))
    if rows:
        table(("part", "library", "ours, ms", "library, ms", "ratio"), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
