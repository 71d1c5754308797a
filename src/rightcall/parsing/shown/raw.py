"""Tags inside which nothing counts but the tag that closes them: HTML that shows its content, and results of tools."""

from __future__ import annotations

import re
from collections.abc import Callable

Closes = Callable[[str, int], "re.Match[str] | None"]

_HTML = ("pre", "code", "textarea")
_TAGS = (
    *("tool_response", "tool_responses", "tool_result", "tool_results", "tool_output", "tool_outputs"),
    *("function_response", "function_result", "function_results", "function_output", "response"),
)
# The result markers of formats, which no tag closes of the same name.
_PAIRS = {
    "<!--": "-->",
    "<![cdata[": "]]>",
    "[tool_results]": "[/tool_results]",
    "<｜tool▁outputs▁begin｜>": "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>": "<｜tool▁output▁end｜>",
    "<|tool_response_start|>": "<|tool_response_end|>",
    "<|tool_response>": "<tool_response|>",
    "<start_function_response>": "<end_function_response>",
    "<|start_tool_result|>": "<|end_tool_result|>",
}
# What a prompt has a tool say, where it ends a turn: who goes on made the result up. Nothing else closes some of them.
_NEVER = "(?!)"
_TOLD = {"observation:": _NEVER, "✿result✿:": "✿return✿:?+", "✿result✿": "✿return✿:?+"}
_NAMED = "|".join((*_HTML, *_TAGS))
OPENS = rf"<(?:{_NAMED})(?=[\s>/])|" + "|".join(map(re.escape, _PAIRS))


def _closes(opener: str) -> Closes:
    close = _PAIRS.get(opener)
    source = re.escape(close) if close is not None else rf"</{opener[1:]}\s{{0,16}}+>"
    return re.compile(source, re.I).search


_LONGEST = 32
_CLOSES = {opener: _closes(opener) for opener in (*_PAIRS, *[f"<{name}" for name in (*_HTML, *_TAGS)])}
_BEGINNINGS = frozenset([opener[:size] for opener in _CLOSES for size in range(1, len(opener) + 1)])


def unfinished(text: str) -> int:
    """Where the beginning of an opener stands that the text ends with; its length where it ends with none."""
    tail = text[-_LONGEST:].lower()
    for start in (tail.rfind("<"), tail.rfind("[")):
        end = tail[start:] if start >= 0 else ""
        if end in _PAIRS:
            break
        if end in _BEGINNINGS:
            return len(text) - len(end)
    return len(text)


def closing(opener: str) -> Closes:
    """Finds what closes this opener, as `OPENS` found it."""
    return _CLOSES[opener.lower()]


_TOLD_CLOSES: dict[str, Closes] = {opener: re.compile(close, re.I).search for opener, close in _TOLD.items()}
_RESULTS = {opener: _CLOSES[opener] for opener in _PAIRS} | _TOLD_CLOSES


def result_closing(marker: str) -> Closes | None:
    """Finds what closes a marker that begins the result of a tool; None for any other."""
    return _RESULTS.get(marker.strip().lower())


def ends_told(closes: Closes | None, marker: str) -> bool:
    """Is it a result that a prompt has a tool say that is open, and does this marker end it?"""
    return closes in _TOLD_CLOSES.values() and closes is not None and closes(marker, 0) is not None
