"""Text that looks like a call and was not taken for one: told, so that a loop does not end as if it were an answer."""

from __future__ import annotations

import re

from rightcall.declare.toolset import Toolset
from rightcall.types import Problem, Span

# How a call of some name may look in a text, and the format that writes it so.
_SHAPES = (
    ("generic_json", r'"(?:name|tool|tool_name|function|action)"\s{0,16}+:\s{0,16}+"(?P<a>[^"\\\s]{1,256}+)"'),
    ("react", r"\bAction\s{0,4}+:[ \t`]{0,8}+(?P<b>[\w.\-]{1,256}+)[ \t`]{0,8}+\r?\n\s{0,16}+Action[ _]Input\b"),
    (
        "invoke",
        r"<(?:[\w:]{1,32}+)?(?:invoke|function|tool|call)(?:_call)?(?:\s{1,8}+name\s{0,4}+=\s{0,4}+[\"']?|=)(?P<c>[\w.\-]{1,256}+)",
    ),
    ("tool_code", r"(?m:^[ \t]{0,16}+(?:print\(|\[)?(?P<d>[A-Za-z_][\w.\-]{0,255}+)\()"),
    ("kimi_k2", r"\bfunctions\.(?P<e>[\w\-]{1,256}+)"),
    ("gemma4", r"\bcall:(?P<f>[\w.\-]{1,256}+)\{"),
    ("mistral_v11", r"(?<![\w.\-])(?P<g>[\w.\-]{1,256}+)\[ARGS\]"),
    ("glm45", r"<tool_call>\s{0,16}+(?P<h>[\w.\-]{1,256}+)"),
)
_NEAR = re.compile("|".join(f"(?:{source})" for _, source in _SHAPES)).finditer
_GROUPS = {chr(ord("a") + i): name for i, (name, _) in enumerate(_SHAPES)}
_MOST = 8
_LONGEST = 400_000
_FEW = 64  # tools: so many names are looked for one by one, which costs less than the patterns


def near_calls(source: str, spans: list[Span], tools: Toolset | None) -> list[Problem]:
    """A note for each place of the text where a declared tool seems to be called; at most a few."""
    if not tools:
        return []
    names = [tool.name for tool in tools]
    notes: list[Problem] = []
    for span in spans:
        if span.kind != "text" or (
            len(names) <= _FEW and not any(source.find(n, span.start, span.end) >= 0 for n in names)
        ):
            continue
        last = -1
        for found in _NEAR(source, span.start, min(span.end, span.start + _LONGEST)):
            name = found[found.lastgroup or 0]
            if name not in tools or found.start() < last:
                continue
            notes.append(_note(name, found.start(), span.end, _GROUPS[found.lastgroup or "a"]))
            last = span.end if len(notes) >= _MOST else found.end()
            if len(notes) >= _MOST:
                return notes
    return notes


def _note(name: str, start: int, end: int, format: str) -> Problem:
    return Problem(
        "looks_like_a_call",
        f"the text from {start} to {end} looks like a call of {name!r} as {format} writes it, and was not taken for one; "
        "if it was meant as a call, send it in the format that was asked for",
        blocking=False,
    )
