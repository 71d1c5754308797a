"""Serves one GGUF file with llama.cpp. Run as a program of its own (`python -I llama_child.py`), by `local` only.

The order comes as one line of JSON on standard input, and one line of JSON on standard output says how it went:
`{"address": "http://127.0.0.1:43211", "native": true}` once the model answers, else `{"error": ..., "reason": ...}`.
Standard input stays open as long as the parent lives: its end is the end of this process, however the parent came to
its own. llama.cpp listens on a socket file; `relay` is the only thing of rightcall that is imported, and its address.
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
    order = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = order["sys_path"]
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever the library prints is no answer
    exit_on_closed_pipe()
    threading.Thread(target=exit_with_parent, args=(order["parent"], order["folder"]), daemon=True).start()
    path = os.path.join(order["folder"], "llama.sock")
    server, answer = start_server(order, path)
    if server is None:
        send_answer(answers, answer)
        return
    from rightcall.backends.relay import relay
    from rightcall.errors import CallerError

    try:
        asyncio.run(relay(order, path, lambda address: send_answer(answers, {**answer, "address": address})))
    except CallerError as error:  # the port was taken meanwhile
        send_answer(answers, {"error": "port", "reason": str(error)})


def send_answer(answers: int, answer: dict[str, Any]) -> None:
    os.write(answers, json.dumps(answer).encode() + b"\n")
    os.close(answers)


def exit_on_closed_pipe() -> None:
    """No thread of Python runs while a model is loaded, so the kernel is told to end this process with the pipe."""
    if sys.platform == "linux":  # elsewhere this signal does nothing unless it is caught, and the thread comes later
        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)


def exit_with_parent(parent: int, folder: str) -> None:
    """Ends this process with its parent. A pipe may live on in a fork of the parent, so its id is looked at too."""
    while os.getppid() == parent and not select.select([0], [], [], 1.0)[0]:
        pass
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def start_server(order: dict[str, Any], path: str) -> tuple[Any, dict[str, Any]]:
    """llama.cpp's server, which listens at this path, and what is known of its model."""
    try:
        xllamacpp = importlib.import_module("xllamacpp")
    except ImportError as error:
        return None, {"error": "missing", "reason": str(error)}
    if reason := port_error(order["port"]):
        return None, {"error": "port", "reason": reason}
    try:
        server = xllamacpp.Server(server_settings(xllamacpp, order, path))
    except RuntimeError as error:  # the library's one error; its log says more
        return None, {"error": "model", "reason": str(error)}
    return server, {"native": has_native_tools(path)}


class SocketFileConnection(http.client.HTTPConnection):
    """A connection to a socket file."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.host)


def has_native_tools(path: str) -> bool:
    """Does the model's chat template show it the tools? If not, llama.cpp drops them without a word."""
    connection = SocketFileConnection(path)
    try:
        connection.request("GET", "/props", headers={"Host": "localhost"})
        properties = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return bool(properties.get("chat_template_caps", {}).get("supports_tools", True))


def port_error(port: int) -> str:
    """Why nothing can listen on this port, or nothing."""
    try:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def server_settings(xllamacpp: Any, order: dict[str, Any], path: str) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = order["model"]
    params.model_alias = {order["name"]}
    if order["lora"]:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(order["lora"], 1.0)]
    params.hostnames = [path]
    params.cors_origins = "http://127.0.0.1"  # the library's own default lets every web page read from it
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
