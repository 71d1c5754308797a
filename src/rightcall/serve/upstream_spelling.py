"""An upstream as people write it: `http://localhost:8080/v1`, or `messages=https://api.anthropic.com`.

What it speaks is guessed from the URL where it is not said: from the path of an API at its end, the port or host that a
kind of server is known by, else `chat`, which every kind of local server speaks.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from rightcall.api_names import APIS, Api, api_name
from rightcall.errors import CallerError

_ODD = re.compile(r"[\x00-\x20\x7f]")
# How a URL ends, or its path begins, and what is spoken there.
BY_PATH: dict[str, Api] = {
    "/chat/completions": "chat",
    "/completions": "completions",
    "/responses": "responses",
    "/messages": "messages",
    "/api/chat": "ollama",
    "/api": "ollama",
    "/v1beta": "gemini",
    "/v1beta/models": "gemini",
}
BY_HOST: dict[str, Api] = {
    "api.anthropic.com": "messages",
    "generativelanguage.googleapis.com": "gemini",
    "ollama.com": "ollama",
}
OLLAMA_PORT = 11434


def split_api(text: str) -> tuple[str, str]:
    """`API=URL` as both; the first is empty where only a URL is written. Raises `CallerError` for an unknown API."""
    word, equals, url = text.partition("=")
    if not equals or "/" in word or ":" in word:
        return "", text
    return api_name(word, APIS), url


def guessed_api(url: str) -> Api:
    """What is spoken at this URL, if nobody says."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    ends = [each for each in BY_PATH if path.endswith(each)]
    if ends:
        return BY_PATH[max(ends, key=len)]
    if (parts.hostname or "") in BY_HOST:
        return BY_HOST[parts.hostname or ""]
    return "ollama" if parts.port == OLLAMA_PORT and not path else "chat"


def usual_name(url: str) -> str:
    """A name for an upstream that was given none."""
    parts = urlsplit(url)
    return (parts.hostname or "") + (f":{parts.port}" if parts.port else "")


def check_url(url: str) -> None:
    """Raises `CallerError` for what is no address of a server."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise CallerError(f"{url[:80]!r} cannot be read ({error}); write it like http://127.0.0.1:8080/v1") from None
    if "@" in parts.netloc:
        raise CallerError(f"the address of {host} holds credentials; take them out and name the key's variable")
    if parts.scheme not in ("http", "https") or not host or _ODD.search(url):
        raise CallerError(f"{url[:80]!r} is no address; write it like http://127.0.0.1:8080/v1")
    if parts.query or parts.fragment:
        raise CallerError(f"the address of {host} has a query string or a fragment; give the address alone")
