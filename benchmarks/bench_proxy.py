"""Measure the proxy: 200-chunk streams over loopback, 16 connections, against a minimal aiohttp pass-through.

Load and upstream share one core, the proxies have the other, and are measured in turn. Targets, each against the bare
pass-through of the same run: at least 90 % of its requests a second for streams without tools, 60 % with tools
inspected; paced by 5 ms a chunk, the first byte within 2 ms of it. LiteLLM's proxy is measured with tools where the
variable LITELLM names its program, or `litellm` is on the path (target: 50 x its rate).

    python benchmarks/bench_proxy.py [--seconds 10] [--soak 600]

`--soak` keeps 500 paced streams going for so many seconds and shows the proxy's memory, which must stay flat.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from measure import table, verdict

CHUNKS = 200
HOST = "127.0.0.1"
ROUNDS = 4
LEAST_PLAIN, LEAST_TOOLS, MOST_MS, LEAST_LITELLM = 0.90, 0.60, 2.0, 50.0
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": f"tool_{at}",
            "description": "Does one thing. " * 12,
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }
    for at in range(10)
]


# -- the upstream ------------------------------------------------------------------------------------------------------


def _frame(at: int) -> bytes:
    choice = {
        "index": 0,
        "delta": {"content": f" word{at:03d}"},
        "finish_reason": "stop" if at == CHUNKS - 1 else None,
    }
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
    data = b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


class Upstream(asyncio.Protocol):
    """Answers every POST with the same stream, each chunk as a separate write, with `pace` seconds in between."""

    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    frames: ClassVar = [_frame(at) for at in range(CHUNKS)]
    done = b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
    models = b'{"object":"list","data":[{"id":"m","object":"model","owned_by":"vllm"}]}'
    pace = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (at := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:at].lower()
            found = head.find(b"content-length:")
            size = int(head[found + 15 :].split(b"\r\n", 1)[0]) if found >= 0 else 0
            if len(self.buffer) < at + 4 + size:
                return
            self.buffer = self.buffer[at + 4 + size :]
            self.answer(head)

    def answer(self, head: bytes) -> None:
        if head.startswith(b"get"):
            kind = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            self.transport.write(kind % len(self.models) + self.models)
        elif self.pace:
            self.task = asyncio.get_running_loop().create_task(self.slowly())
        else:
            self.transport.write(self.head)
            for frame in self.frames:
                self.transport.write(frame)
            self.transport.write(self.done)

    async def slowly(self) -> None:
        self.transport.write(self.head)
        for frame in self.frames:
            if self.transport.is_closing():
                return
            self.transport.write(frame)
            await asyncio.sleep(self.pace)
        self.transport.write(self.done)


async def upstream(port: int, pace: float) -> None:
    Upstream.pace = pace
    server = await asyncio.get_running_loop().create_server(Upstream, HOST, port, backlog=1024)
    await server.serve_forever()


# -- a bare pass-through -----------------------------------------------------------------------------------------------


async def bare(port: int, upstream_url: str) -> None:
    import aiohttp
    from aiohttp import web

    own = {"host", "content-length", "transfer-encoding", "connection", "keep-alive"}
    session = aiohttp.ClientSession(auto_decompress=False, connector=aiohttp.TCPConnector(limit=0))

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in own}
        async with session.request(request.method, upstream_url + request.path_qs, data=body, headers=headers) as got:
            response_headers = {name: value for name, value in got.headers.items() if name.lower() not in own}
            response = web.StreamResponse(status=got.status, headers=response_headers)
            await response.prepare(request)
            async for piece in got.content.iter_any():
                await response.write(piece)
            await response.write_eof()
            return response

    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, HOST, port, backlog=1024).start()
    await asyncio.Event().wait()


# -- the load ----------------------------------------------------------------------------------------------------------


class Load(asyncio.Protocol):
    """One connection, which sends a request after each complete answer, until `until`."""

    request = b""
    until = 0.0
    first: ClassVar[list[float]] = []
    total: ClassVar[list[float]] = []
    faults = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.send()

    def send(self) -> None:
        self.begun, self.seen, self.words, self.tail = time.perf_counter(), None, 0, b""
        self.transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        if self.seen is None and b"data:" in data:
            self.seen = now - self.begun
        self.words += data.count(b"word")
        self.tail = (self.tail + data)[-16:]
        if not self.tail.endswith(b"0\r\n\r\n"):
            return
        Load.faults += self.words < CHUNKS
        self.first.append(self.seen or now - self.begun)
        self.total.append(now - self.begun)
        if now < self.until:
            self.send()
        else:
            self.transport.close()


async def load(port: int, seconds: float, connections: int, tools: bool) -> dict[str, float]:
    messages = [{"role": "system", "content": "y" * 2000}, {"role": "user", "content": "hello"}]
    body: dict[str, Any] = {"model": "m", "stream": True, "messages": messages}
    data = json.dumps({**body, "tools": TOOLS} if tools else body).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {HOST}:{port}\r\nContent-Type: application/json\r\n"
    Load.request = f"{head}Authorization: Bearer sk-fake\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data
    loop = asyncio.get_running_loop()
    Load.first, Load.total, Load.faults = [], [], 0
    Load.until = time.perf_counter() + seconds
    started = time.perf_counter()
    for _ in range(connections):
        await loop.create_connection(Load, HOST, port)
    await asyncio.sleep(seconds)
    spent, answer_count = time.perf_counter() - started, len(Load.total)
    quantiles = statistics.quantiles(Load.first, n=100) if answer_count > 1 else [float("nan")] * 99
    return {
        "rate": answer_count / spent,
        "first_p50": quantiles[49] * 1000,
        "first_p99": quantiles[98] * 1000,
        "made": answer_count,
        "faults": Load.faults,
    }


# -- the run -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def process(core: int, *command: str, env: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    cores = os.sched_getaffinity(0)
    pinned = {sorted(cores)[core % len(cores)]}
    child = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(env or {})},
        preexec_fn=lambda: os.sched_setaffinity(0, pinned),
    )
    try:
        yield child
    finally:
        child.terminate()
        try:
            child.wait(15)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def wait_for(port: int, seconds: float = 60.0) -> None:
    import socket

    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), 0.5):
            return
        time.sleep(0.1)
    raise SystemExit(f"nothing listens on port {port}")


def free_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


def role_command(*words: object) -> list[str]:
    return [sys.executable, __file__, *[str(word) for word in words]]


def measure_load(port: int, seconds: float, connections: int, tools: bool) -> dict[str, float]:
    process = subprocess.run(
        role_command("--role", "load", port, seconds, connections, int(tools)), capture_output=True, check=True
    )
    found: dict[str, float] = json.loads(process.stdout)
    return found


def memory(pid: int) -> float:
    with open(f"/proc/{pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def ours(upstream_url: str, port: int) -> list[str]:
    command = [sys.executable, "-m", "rightcall", "serve", "--upstream", f"{upstream_url}/v1"]
    return [*command, "--port", str(port), "--mode", "native"]


def litellm() -> str | None:
    return os.environ.get("LITELLM") or shutil.which("litellm")


@contextlib.contextmanager
def run_proxy(name: str, behind_port: int, port: int) -> Iterator[int]:
    """Run the proxy of this name."""
    upstream_url, env = f"http://{HOST}:{behind_port}", {}
    with tempfile.TemporaryDirectory() as folder:
        command = (
            role_command("--role", "bare", port, upstream_url) if name == "bare aiohttp" else ours(upstream_url, port)
        )
        if name == "LiteLLM":
            config = Path(folder) / "litellm.yaml"
            entry = {"model": "openai/m", "api_base": f"{upstream_url}/v1", "api_key": "sk-fake"}
            config.write_text(json.dumps({"model_list": [{"model_name": "m", "litellm_params": entry}]}))
            command = [litellm() or "", "--config", str(config), "--host", HOST, "--port", str(port)]
            env = {
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
                "PYTHONPATH": "",
            }
        with process(1, *command, env=env) as child:
            wait_for(port, 180)
            yield child.pid


def measure_in_rounds(names: list[str], pace: float, seconds: float, tools: bool) -> dict[str, dict[str, float]]:
    """Measure each proxy in rounds, so that other load on the machine affects all of them."""
    with contextlib.ExitStack() as stack:
        behind_port = free_port()
        stack.enter_context(process(0, *role_command("--role", "upstream", behind_port, pace)))
        wait_for(behind_port)
        ports = {name: free_port() for name in names}
        pids = {name: stack.enter_context(run_proxy(name, behind_port, port)) for name, port in ports.items()}
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for at in range(ROUNDS + 1):
            for name, port in ports.items():
                found = measure_load(port, seconds / ROUNDS if at else 1.5, 16, tools)
                rounds[name] += [found] if at else []
        return {name: {**average(found), "MB": memory(pids[name])} for name, found in rounds.items()}


def average(rounds: list[dict[str, float]]) -> dict[str, float]:
    middle = {key: statistics.median([each[key] for each in rounds]) for key in ("rate", "first_p50", "first_p99")}
    return {**middle, "faults": sum([each["faults"] for each in rounds])}


def run(seconds: float) -> int:
    results: dict[tuple[str, str], dict[str, float]] = {}
    for label, pace, tools in (("plain", 0.0, False), ("tools", 0.0, True), ("paced", 0.005, True)):
        found = measure_in_rounds(["bare aiohttp", "rightcall"], pace, seconds, tools)
        results |= {(name, label): each for name, each in found.items()}
    if litellm():
        results["LiteLLM", "tools"] = measure_in_rounds(["LiteLLM"], 0.0, 3 * seconds, True)["LiteLLM"]
    else:
        print("LiteLLM is skipped: the program is not installed", file=sys.stderr)
    rows = [
        [
            name,
            label,
            f"{found['rate']:.0f}",
            f"{found['rate'] / results['bare aiohttp', label]['rate']:.2f}",
            f"{found['first_p50']:.2f} / {found['first_p99']:.2f}",
            f"{found['MB']:.0f}",
            f"{found['faults']:.0f}",
        ]
        for (name, label), found in results.items()
    ]
    table(["proxy", "streams", "requests/s", "of bare", "first byte p50 / p99 ms", "MB", "faults"], rows)
    plain, tools_, paced = (results["rightcall", label] for label in ("plain", "tools", "paced"))
    base = {label: results["bare aiohttp", label] for label in ("plain", "tools", "paced")}
    beyond = paced["first_p50"] - base["paced"]["first_p50"]
    lines = {
        f"{LEAST_PLAIN:.0%} of bare without tools": plain["rate"] >= LEAST_PLAIN * base["plain"]["rate"],
        f"{LEAST_TOOLS:.0%} of bare with tools": tools_["rate"] >= LEAST_TOOLS * base["tools"]["rate"],
        f"first byte within {MOST_MS:g} ms of bare, paced ({beyond:.2f})": beyond <= MOST_MS,
        "no answer lost": not any(found["faults"] for found in results.values()),
    }
    if ("LiteLLM", "tools") in results:
        times = tools_["rate"] / results["LiteLLM", "tools"]["rate"]
        lines[f"{LEAST_LITELLM:.0f} x LiteLLM ({times:.0f})"] = times >= LEAST_LITELLM
    return verdict("; ".join(lines), [line for line, met in lines.items() if not met])


def soak(seconds: float) -> int:
    behind_port, port = free_port(), free_port()
    command = ours(f"http://{HOST}:{behind_port}", port)
    with process(0, *role_command("--role", "upstream", behind_port, 0.05)), process(1, *command) as child:
        wait_for(behind_port)
        wait_for(port)
        samples: list[float] = []
        loader = subprocess.Popen(role_command("--role", "load", port, seconds, 500, 1), stdout=subprocess.PIPE)
        started = time.monotonic()
        while loader.poll() is None:
            time.sleep(max(seconds / 60, 1.0))
            samples.append(memory(child.pid))
            print(f"{time.monotonic() - started:6.0f} s  {samples[-1]:6.1f} MB", file=sys.stderr)
        response = json.loads((loader.stdout or sys.stdin).read())
    early = statistics.median(samples[len(samples) // 4 : len(samples) // 2])
    late = statistics.median(samples[-len(samples) // 4 :])
    answer_counts = f"{response['made']} answers, {response['faults']} faults"
    print(f"500 streams for {seconds:.0f} s: {answer_counts}; {early:.0f} -> {late:.0f} MB")
    return 0 if late <= early * 1.1 + 2 and not response["faults"] else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--soak", type=float, default=0.0)
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.role:
        return soak(options.soak) if options.soak else run(options.seconds)
    with contextlib.suppress(ImportError):
        import uvloop

        uvloop.install()
    name, *words = options.role
    if name == "upstream":
        asyncio.run(upstream(int(words[0]), float(words[1])))
    elif name == "bare":
        asyncio.run(bare(int(words[0]), words[1]))
    else:
        response = asyncio.run(load(int(words[0]), float(words[1]), int(words[2]), words[3] == "1"))
        print(json.dumps(response))
    return 0


if __name__ == "__main__":
    sys.exit(main())
