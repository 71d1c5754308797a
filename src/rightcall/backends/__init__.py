"""Call a model through one interface: any server, a recording, or a local model.

    backend = Backend("http://127.0.0.1:8080", model="qwen3")
    answer = await backend.complete(Request(messages=[{"role": "user", "content": "Hi"}], tools=[get_weather]))

A request and an answer are values (`request`). `request_body` writes a request for a server's API, and `providers`
reads the answer. An `Exchange` only transports bytes, so that a recording can replace the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rightcall.lazy_names import load_lazily

if TYPE_CHECKING:
    from rightcall.backends.base import BaseBackend, Streaming, SyncStreaming
    from rightcall.backends.exchange import Retries, Timeouts
    from rightcall.backends.http import Backend
    from rightcall.backends.local import LocalBackend, LocalServer
    from rightcall.backends.recording import Recorder, ReplayBackend, ReplayServer
    from rightcall.backends.request import Answer, Request, Timing, Try, Usage

__all__ = [
    "Answer",
    "Backend",
    "BaseBackend",
    "LocalBackend",
    "LocalServer",
    "Recorder",
    "ReplayBackend",
    "ReplayServer",
    "Request",
    "Retries",
    "Streaming",
    "SyncStreaming",
    "Timeouts",
    "Timing",
    "Try",
    "Usage",
]

__getattr__ = load_lazily(
    __name__,
    {
        "Answer": "rightcall.backends.request",
        "Backend": "rightcall.backends.http",
        "BaseBackend": "rightcall.backends.base",
        "LocalBackend": "rightcall.backends.local",
        "LocalServer": "rightcall.backends.local",
        "Recorder": "rightcall.backends.recording",
        "ReplayBackend": "rightcall.backends.recording",
        "ReplayServer": "rightcall.backends.recording",
        "Request": "rightcall.backends.request",
        "Retries": "rightcall.backends.exchange",
        "Streaming": "rightcall.backends.base",
        "SyncStreaming": "rightcall.backends.base",
        "Timeouts": "rightcall.backends.exchange",
        "Timing": "rightcall.backends.request",
        "Try": "rightcall.backends.request",
        "Usage": "rightcall.backends.request",
    },
)
