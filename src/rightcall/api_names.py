"""The names of provider APIs: one canonical name each, and the aliases that users know.

api_name("anthropic") == "messages"
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Literal, get_args

from rightcall.errors import CallerError

Api = Literal["chat", "responses", "messages", "gemini", "ollama", "completions"]
APIS: tuple[Api, ...] = get_args(Api)
ALIASES: dict[str, Api] = {
    "openai": "chat",
    "openai_chat": "chat",
    "chat_completions": "chat",
    "openai_responses": "responses",
    "anthropic": "messages",
    "claude": "messages",
    "google": "gemini",
    "google_genai": "gemini",
}


def api_name(name: str, known: Iterable[str] = APIS, *, what: str = "api") -> str:
    """Return the canonical name of an API, given by name or alias. Raises `CallerError` with a suggestion if it is
    not in `known`; `what` is the parameter in its message."""
    word = ALIASES.get(name.lower().replace("-", "_"), name)
    known = tuple(known)
    if word in known:
        return word
    near = difflib.get_close_matches(name, [*known, *ALIASES], 1, 0.6)
    suggestion = ALIASES.get(near[0], near[0]) if near else ""
    hint = f" (did you mean {suggestion!r}?)" if suggestion in known else ""
    raise CallerError(f"no {what} {name!r}{hint}; there are {', '.join(known)}")
