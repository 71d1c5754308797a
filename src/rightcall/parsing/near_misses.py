"""Report near misses: text that looks like a call and is none, so that an agent loop does not end with it as an answer.

A near miss is a declared tool's name in a place where some format has the name of a call. The shapes are tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from rightcall.formats import FORMATS
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Envelope, marker_alternatives
from rightcall.parsing.shown import RECORD
from rightcall.tools.toolset import Toolset
from rightcall.types import Problem, Span

# The keys of a call's name in JSON: those of the built-in formats, and two that models use elsewhere.
_ENVELOPES = [body for format in FORMATS.values() for body in format.bodies if isinstance(body, Envelope)]
_NAME_KEYS = dict.fromkeys(["function", "action", *[re.escape(key) for body in _ENVELOPES for key in body.names]])
# Shapes by format: a key, an attribute or a label before the name.
_BEFORE = {
    "generic_json": rf'"(?:{"|".join(_NAME_KEYS)})"\s{{0,16}}+:\s{{0,16}}+"',
    "react": r"\bAction\s{0,4}+:[ \t`*]{0,8}+",
    "invoke": r"\b(?:(?:name|function|tool)\s{0,4}+=\s{0,4}+[\"']?|name[\"'])|<tool:\s{0,4}+(?:function>\s{0,4}+)?",
    "harmony": r"\bto=(?:functions\.)?+",
    "kimi_k2": r"\bfunctions\.",
    "qwen_agent": r"✿FUNCTION✿\s{0,4}+:\s{0,4}+",
    "gemma4": r"\bcall:",
    "tool_code": r"```tool_code\s{0,8}+(?:print\(\s{0,4}+)?+",
}
# A name between the end of a marker and the end of its line, or the next marker.
_BETWEEN = r"[>\]](?:functions\.)?+(?P<c>[^\W\d][\w.\-]{0,255}+)(?=[ \t]{0,4}+(?:\r?\n|<[^/]|\Z))"
# A name behind a special token, with the arguments not far behind it on the line.
_AT_TOKEN = r"[|\uff5c]>\s{0,4}+(?:functions\.)?+(?P<d>[^\W\d][\w.\-]{0,255}+)(?=[^\n{]{0,40}+\{)"
# Shapes by format: what follows the name.
_BEHIND = {
    "pythonic": r"\(",
    "apertus": r"[\"']\s{0,8}+:\s{0,8}+\{",
    "mistral_v11": r"\s{0,8}+(?:\[ARGS\]|\{)",
    "glm45": r"\s{0,8}+<",
    "functionary_v31": r"[\"']?+\s{0,2}+(?:>\s{0,8}+\{|/>)",
    # ChatGLM's: the name on a line of its own, the arguments in a fence below it.
    "tool_code": r"[ \t]{0,4}+\r?+\n```\w{0,16}+\s{0,8}+(?:tool_call\(|\{)",
    # At the end of its line, the arguments on the next; `_has_no_prose_before_arguments` checks the rest.
    "functionary_v32": r"[ \t]{0,4}+\r?+\n[^\n{]{0,80}+\{",
}
_NAME = r"[^\W\d][\w.\-]{0,255}+"
# A special token between a name and its arguments: the name need not be declared.
_TOKENS = {
    token: format.name
    for format in FORMATS.values()
    for body in format.bodies
    for text in marker_alternatives(next(iter(BODIES[type(body)].opening(body)), ""))
    if BODIES[type(body)].holds_json
    for token in getattr(text, "tokens", ())[-1:]
}
_TOKEN = re.compile("(" + "|".join(map(re.escape, _TOKENS)) + r")\s{0,8}+(?:```\w{0,16}+\s{0,8}+)?+\{").search
_WORD_BEFORE = re.compile(rf"{_NAME}(?::\d{{1,9}})?\s{{0,8}}\Z").search
_SHAPES = [f"(?:{source})(?P<a{i}>{_NAME})" for i, source in enumerate(_BEFORE.values())]
_SHAPES += [f"(?<![\\w.])(?<!\\w-)(?P<b{i}>{_NAME})(?={source})" for i, source in enumerate(_BEHIND.values())]
_NEAR = re.compile("|".join([*_SHAPES, _BETWEEN, _AT_TOKEN])).finditer
_FORMATS = {f"a{i}": name for i, name in enumerate(_BEFORE)} | {f"b{i}": name for i, name in enumerate(_BEHIND)}
_LAST = f"b{len(_BEHIND) - 1}"
_HARMONY = f"a{list(_BEFORE).index('harmony')}"
_FORMATS |= {"c": "glm45", "d": "deepseek_v3"}
_CONTENT = "<|content|>"  # what Functionary 2 writes before arguments
_OPEN_ARGUMENTS = frozenset((_CONTENT, *_TOKENS))
_LONGEST_TOKEN = 2 * max(map(len, _OPEN_ARGUMENTS))
_BEFORE_ARGUMENTS = re.compile(r"[ \t\r]*+\n([^\n{]*+)").match
_LETTER = re.compile("[A-Za-z]").search
_TAG = re.compile(r"[\"'>\s]{0,8}+<").match
_ARGUMENTS = re.compile(r"\s{0,4}+[({]").match
_MARKER_START = re.compile(r"[<\[][\w:|]{2,64}+\Z").search  # the beginning of a marker
_KIND = re.compile(r"(?:json|code)\Z").sub  # the type of the arguments in a header that lost its token
# Punctuation between a name and an object, and the first key of the object.
_OBJECT = re.compile(r"[^{}\w][^{}]{0,47}+\{\s{0,16}+[\"']([^\"'\\]{1,128}+)[\"']\s{0,8}+:").match
# What is left of a call without its opener: the opening tag of DeepSeek's block (stdapi-ai/stdapi.ai#182), a name with
# the end of its tag, or the closing tags of an argument and its call (xalgorix/xalgorix#248, #278).
_REMAINS = re.compile(  # each alternative begins with one character, by which the engine searches
    r"<(?:(?P<dsml>[|\uff5c\u2016]{1,2}+ ?DSML ?[|\uff5c\u2016]{1,2}+(?:\w++(?: name=[^<>\s]{0,64}+)?)?>?[ \t]*+$)"
    r"|/parameter>\s{0,8}+</(?P<qwen3_coder>function|invoke)>)"
    rf"|=(?<![\w\"'.]=)\s?[\"']?(?P<name>{_NAME})[\"']?>\s*\Z",
    re.M,
).finditer
_CALL_TAG = re.compile(r"<(/?)(?:function|invoke)\b").findall
_CURE = "if it was meant as a call, send it in the format that was asked for"
_MOST_NOTES = 8
_MOST_BEFORE_TOKEN = 280  # characters
_MAX_CHARS = 400_000
_FEW = 64  # tools whose names are searched one by one, which costs less than the patterns


def find_near_misses(source: str, spans: list[Span], tools: Toolset | None) -> list[Problem]:
    """Return notes for places in `source` that look like a call of a declared tool or like what is left of a call, at
    most eight; none without tools. Less certain shapes give at most one note for a span, and only if the span has none
    of the certain ones, and, if it has a declared name, no span before it has a note; those of `_near_arguments` only
    count for at most 64 tools. Of a span 400,000 characters are searched. A note in reasoning says so.

    `spans` are those of the reply. Its text is searched, and its reasoning that neither text nor a call follows.
    """
    searched = _spans_to_search(source, spans)
    if not searched or not tools:
        return []
    source = source.replace("\\n", " \n")  # escaped line breaks; positions do not change
    notes: list[Problem] = []
    for span in searched:
        start, end = span.start, min(span.end, span.start + _MAX_CHARS)
        found: list[Problem] = []
        has_name = len(tools) > _FEW
        for tool in () if has_name else tools:
            has_name = has_name or source.find(tool.name, start, span.end) >= 0
        if has_name:
            found = list(islice(_in_shapes(source, start, end, tools), _MOST_NOTES))
        # Less certain shapes are searched only if nothing was found before.
        if has_name and not found and not notes and len(tools) <= _FEW:
            found = _near_arguments(source, start, end, tools)
        if not found and not (has_name and notes):
            found = _at_token(source, start, end) or _remains(source, start, end, tools)
        notes += found if span.kind == "text" else map(near_miss_in_reasoning, found)
        if len(notes) >= _MOST_NOTES:
            break
    return notes[:_MOST_NOTES]


def _spans_to_search(source: str, spans: list[Span]) -> list[Span]:
    """Return the spans of text, and those of reasoning that neither text nor a call follows.

    A span of text and the one of text or reasoning before it are one span of text if only a marker that opens
    arguments, maybe of another format, is between them.
    """
    found: list[Span] = []
    last = max([i for i, span in enumerate(spans) if span.kind in ("text", "call")], default=-1)
    for i, span in enumerate(spans):
        is_behind_name = span.kind == "text" and i > 1 and _opens_arguments(source, spans[i - 2], spans[i - 1])
        if is_behind_name and spans[i - 2].kind == "text":
            found[-1] = Span(found[-1].start, span.end, "text")
        elif is_behind_name and spans[i - 2].kind == "reasoning":
            # The name is still reasoning: the marker before the arguments ended it.
            found.append(Span(spans[i - 2].start, span.end, "text"))
        elif span.kind == "text" or (span.kind == "reasoning" and i > last):
            found.append(span)
    return found


def _opens_arguments(source: str, before: Span, between: Span) -> bool:
    """Return whether `between`, the span directly behind `before`, is a marker that formats have between a name and its
    arguments."""
    is_short = between.end - between.start < _LONGEST_TOKEN
    return before.end == between.start and is_short and source[between.start : between.end].strip() in _OPEN_ARGUMENTS


# -- shapes ------------------------------------------------------------------------------------------------------------


def _in_shapes(source: str, start: int, end: int, tools: Toolset) -> Iterator[Problem]:
    """Yield a note for each declared name between `start` and `end` that is in a shape in which some format has the
    name of a call; behind `to=`, `json` or `code` at the end of a name may be left out. A name at the end of its line,
    with an object below, counts only if no prose is before the object. Each note is about the text from its shape, with
    the key or label before the name, to `end`."""
    for found in _NEAR(source, start, end):
        group = found.lastgroup or ""
        name = found[group] if found[group] in tools else _KIND("", found[group]) if group == _HARMONY else ""
        if name in tools and (group != _LAST or _has_no_prose_before_arguments(source, found.end())):
            yield near_miss(name, found.start(), end, _FORMATS[group])


def _has_no_prose_before_arguments(source: str, end: int) -> bool:
    """Return whether the text from the line break behind `end` to the first `{` has no ASCII letters (`<|content|>` at
    its end is not counted), or begins with the label of a record, such as `tool:` or `12:`. True if anything but blanks
    is before the line break, or none follows; what follows the `{` is not checked."""
    found = _BEFORE_ARGUMENTS(source, end)
    before = found[1].removesuffix(_CONTENT) if found else ""
    return not _LETTER(before) or RECORD(before) is not None


def _near_arguments(source: str, start: int, end: int, tools: Toolset) -> list[Problem]:
    """Return a list with one note for a declared name before a tag; between the beginning of a marker and arguments
    (the end of the marker is lost); or a few characters before an object whose first key is an argument of the tool:
    `f, input: {"x": 1}`. It is the first such place of the first such tool in `tools`, of whose name eight occurrences
    are inspected; empty if there is none. The format is "generic_json" in the last case, else "glm45"."""
    for tool in tools:
        for at in _positions(source, tool.name, start, end):
            behind = at + len(tool.name)
            is_opened = _ARGUMENTS(source, behind, end) and _MARKER_START(source, max(start, at - _LONGEST_TOKEN), at)
            if is_opened or _TAG(source, behind, end):
                return [near_miss(tool.name, at, end, "glm45")]
            found = _OBJECT(source, behind, end)
            if found is not None and found[1] in tools.kinds(tool.name):
                return [near_miss(tool.name, at, end, "generic_json")]
    return []


def _at_token(source: str, start: int, end: int) -> list[Problem]:
    """Return a list with one note if a name, declared or not, is directly before the first special token behind which
    an object begins (also in a fence) and which some format has between a name and its arguments; else an empty list. A
    number behind a colon, which the note shows with the name, and blanks may be between name and token."""
    found = _TOKEN(source, start, end)
    name = _WORD_BEFORE(source, max(start, found.start() - _MOST_BEFORE_TOKEN), found.start()) if found else None
    return [near_miss(name[0].strip(), name.start(), end, _TOKENS[found[1]])] if found and name else []


def _remains(source: str, start: int, end: int, tools: Toolset) -> list[Problem]:
    """Return a list with one note for the first place with what is left of a call without its opener: an opening tag of
    DeepSeek at the end of a line, a declared name with the end of its tag at the end of the searched text, or the
    closing tags of an argument and its call, if the last tag of a call before them is a closing one or there is none.
    Only the note of the second case has a name. Empty if there is no such place."""
    for found in _REMAINS(source, start, end):
        tags = _CALL_TAG(source, start, found.start()) if found["qwen3_coder"] else []
        is_call = not tags or tags[-1] == "/" if found["qwen3_coder"] else not found["name"] or found["name"] in tools
        if is_call:
            format = "deepseek_v32" if found["dsml"] else "qwen3_coder"
            return [near_miss(found["name"] or "", found.start(), end, format)]
    return []


def _positions(source: str, name: str, start: int, end: int) -> Iterator[int]:
    """Yield the first eight indexes at which `name` is found from `start` to `end`, without overlap."""
    for _ in range(_MOST_NOTES):
        start = source.find(name, start, end)
        if start < 0:
            return
        yield start
        start += len(name)


# -- notes -------------------------------------------------------------------------------------------------------------


def near_miss(name: str, start: int, end: int, format: str) -> Problem:
    """Return the note that the text between the positions `start` and `end` looks like a call of the tool `name` ("" if
    unknown) as the format of the name `format` writes it. It does not block."""
    called = f"a call of {name!r}" if name else "a call"
    return Problem(
        "looks_like_a_call",
        f"the text from {start} to {end} looks like {called} as {format} writes it, and was not taken for one; {_CURE}",
        blocking=False,
    )


def near_miss_in_reasoning(note: Problem) -> Problem:
    """Return a copy of the note for a near miss, as `near_miss` makes it, whose message says that it is in the
    reasoning."""
    message = note.message.removesuffix(_CURE)
    return msgspec.structs.replace(note, message=f"{message}it stands in the reasoning, so {_CURE}, behind it")
