"""Serve one GGUF file with llama.cpp. `local` runs this file as a program (`python -I llama_child.py`).

The order arrives as one line of JSON on standard input. One line of JSON on standard output reports the outcome:
`{"address": "http://127.0.0.1:43211", "native": true}` once the model answers, else `{"error": ..., "reason": ...}`.
Standard input stays open while the parent lives: when it closes, this process ends, however the parent ended. llama.cpp
listens on a socket file; `relay`, the only part of rightcall that is imported, listens on the address.
"""

from __future__ import annotations

import asyncio
import fcntl
import http.client
import importlib
import json
import os
import select
import shutil
import socket
import sys
import threading
from typing import Any


def main() -> None:
    """Read the order from standard input, load the model, report the address or the error to the parent, and serve
    until the parent ends."""
    order = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = order["sys_path"]
    answers = os.dup(1)
    os.dup2(2, 1)  # output of the library must not reach the parent
    exit_on_closed_pipe()
    threading.Thread(target=clean_up_after_parent, args=(order["parent"], order["folder"]), daemon=True).start()
    path = os.path.join(order["folder"], "llama.sock")
    server, answer = start_server(order, path)
    if server is None:
        send_answer(answers, answer)
        return
    from rightcall.backends.relay import relay
    from rightcall.errors import CallerError

    try:
        asyncio.run(relay(order, path, lambda address: send_answer(answers, {**answer, "address": address})))
    except CallerError as error:  # another process bound the port meanwhile
        send_answer(answers, {"error": "port", "reason": str(error)})


def send_answer(answers: int, answer: dict[str, Any]) -> None:
    """Write the answer as one line of JSON to the file descriptor `answers`, and close it."""
    os.write(answers, json.dumps(answer).encode() + b"\n")
    os.close(answers)


def exit_on_closed_pipe() -> None:
    """Ask the kernel to end this process when standard input closes, since no Python thread runs while a model is being
    loaded. Returns at once; does nothing on systems other than Linux."""
    if sys.platform == "linux":  # on other systems the signal has no effect; the thread ends the process later
        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)


def clean_up_after_parent(parent: int, folder: str) -> None:
    """Wait until the process `parent` has ended or standard input closes, then delete `folder` and exit this process.
    Blocks: run it in a daemon thread. The parent's id is checked too, because a fork of the parent may keep the pipe
    open."""
    while os.getppid() == parent and not select.select([0], [], [], 1.0)[0]:
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def start_server(order: dict[str, Any], path: str) -> tuple[Any, dict[str, Any]]:
    """Start llama.cpp's server on the socket file `path`. Return the server and the answer for the parent; if it cannot
    start, return None and an answer with the error: "missing" library, busy "port", or unreadable "model"."""
    try:
        xllamacpp = importlib.import_module("xllamacpp")
    except ImportError as error:
        return None, {"error": "missing", "reason": str(error)}
    if reason := port_error(order["port"]):
        return None, {"error": "port", "reason": reason}
    try:
        server = xllamacpp.Server(llama_parameters(xllamacpp, order, path))
    except RuntimeError as error:  # the library's only error type; its log has the details
        return None, {"error": "model", "reason": str(error)}
    return server, {"native": has_native_tools(path)}


class SocketFileConnection(http.client.HTTPConnection):
    """An HTTP connection to a Unix socket, whose path is given as the host."""

    def connect(self) -> None:
        """Connect to the socket file whose path is the host, with a timeout of 60 seconds. Raises `OSError`."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.host)


def has_native_tools(path: str) -> bool:
    """Return True if the model's chat template shows tools, as llama.cpp reports over its socket file `path`, or
    reports nothing about it. If not, llama.cpp drops tools without an error."""
    connection = SocketFileConnection(path)
    try:
        connection.request("GET", "/props", headers={"Host": "localhost"})
        properties = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return bool(properties.get("chat_template_caps", {}).get("supports_tools", True))


def port_error(port: int) -> str:
    """Return the reason why this process cannot listen on this port of 127.0.0.1, as text; "" if it can."""
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def llama_parameters(xllamacpp: Any, order: dict[str, Any], path: str) -> Any:
    """Return the parameters of llama.cpp's server: the order's model, adapter, context and threads, and `path` as the
    socket file to listen on."""
    params = xllamacpp.CommonParams()
    params.model.path = order["model"]
    params.model_alias = {order["name"]}
    if order["lora"]:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(order["lora"], 1.0)]
    params.hostnames = [path]
    params.cors_origins = "http://127.0.0.1"  # the library's default allows every web page
    params.cors_credentials = False
    params.ui = False
    params.endpoint_slots = False
    params.n_ctx = order["context"]
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order["threads"]
    params.cache_ram_mib = 0
    params.use_jinja = True
    params.offline = True
    params.verbosity = 1
    return params


if __name__ == "__main__":
    main()
