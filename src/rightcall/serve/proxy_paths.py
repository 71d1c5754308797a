"""Which of the proxy's doors a request knocks at: method and path in, a word out.

    door_of("POST", "/v1/messages")     ->   Door("messages", "messages")

With and without `/v1` before it; query strings are none of its business.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from rightcall.api_names import Api
from rightcall.serve.exchanged import Route

_GEMINI = re.compile(r"/(?:v1|v1beta|v1alpha)?/?models/([^/]{1,400}):(generateContent|streamGenerateContent)")
_MODELS = re.compile(r"(?:/v1|(/v1beta|/v1alpha))?/models(?:/(.{1,400}))?")
_VERSION = re.compile(r"/v1(?=/|$)")


class Door(NamedTuple):
    """What is asked for, in which dialect; of Gemini's also the model and whether it is a stream, which stand in the
    path; of a stored response and of one model in the list its id."""

    route: Route
    api: Api | None = None
    model: str = ""
    stream: bool | None = None
    id: str = ""


_DOORS: dict[tuple[str, str], Door] = {
    ("POST", "/chat/completions"): Door("chat", "chat"),
    ("POST", "/completions"): Door("completions", "completions"),
    ("POST", "/responses"): Door("responses", "responses"),
    ("GET", "/responses"): Door("refused", "responses"),  # a client that would rather have a web socket
    ("POST", "/responses/compact"): Door("compact", "responses"),
    ("POST", "/messages"): Door("messages", "messages"),
    ("POST", "/messages/count_tokens"): Door("count_tokens", "messages"),
    ("POST", "/api/chat"): Door("ollama", "ollama"),
    ("GET", "/api/tags"): Door("tags", "ollama"),
    ("POST", "/api/show"): Door("show", "ollama"),
    ("GET", "/api/version"): Door("version", "ollama"),
    ("GET", "/health"): Door("health"),
    ("GET", "/health/liveliness"): Door("health"),
    ("GET", "/ready"): Door("ready"),
    ("GET", "/health/readiness"): Door("ready"),
    ("GET", "/metrics"): Door("metrics"),
}
# What is passed on as it is: it asks for something and changes nothing.
_FORWARDED = {
    "GET": ("/props", "/slots", "/version", "/api/ps", "/server_info", "/get_model_info"),
    "POST": (
        *("/embeddings", "/rerank", "/score", "/tokenize", "/detokenize", "/apply-template", "/api/embed"),
        *("/api/embeddings", "/api/generate", "/chat/completions/render", "/messages/render"),
    ),
}


def door_of(method: str, path: str) -> Door | None:
    """The door for this request; None where there is none. HEAD is as GET."""
    method = "GET" if method == "HEAD" else method
    found = _GEMINI.fullmatch(path) if method == "POST" else None
    if found is not None:
        return Door("gemini", "gemini", unquote(found[1]), found[2] == "streamGenerateContent")
    plain = _VERSION.sub("", path.rstrip("/") or "/", count=1) or "/"
    if plain == "/" and method == "GET":
        return Door("health")
    if plain.startswith("/responses/") and method in ("GET", "DELETE"):
        return Door("responses", "responses", id=plain.removeprefix("/responses/"))
    listed = _MODELS.fullmatch(path.rstrip("/")) if method == "GET" else None
    if listed is not None:
        return Door("models", "gemini" if listed[1] else None, id=unquote(listed[2] or ""))
    if plain in _FORWARDED.get(method, ()):
        return Door("forward")
    return _DOORS.get((method, plain))
