"""Text that looks like a call and was not taken for one: told, so that a loop does not end as if it were an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from rightcall.formats import FORMATS
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import marker_alternatives
from rightcall.parsing.shown import RECORD
from rightcall.tools.toolset import Toolset
from rightcall.types import Problem, Span

# A name where a call would have it: behind a key, an attribute or a label, or before what opens its arguments.
_BEFORE = {
    "generic_json": r'"(?:name|tool|tool_name|function|action)"\s{0,16}+:\s{0,16}+"',
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
_BEHIND = {
    "pythonic": r"\(",
    "apertus": r"[\"']\s{0,8}+:\s{0,8}+\{",
    "mistral_v11": r"\s{0,8}+(?:\[ARGS\]|\{)",
    "glm45": r"\s{0,8}+<",
    "functionary_v31": r"[\"']?+\s{0,2}+(?:>\s{0,8}+\{|/>)",
    # ChatGLM's: the name on a line of its own, the arguments in a fence below it.
    "tool_code": r"[ \t]{0,4}+\r?+\n```\w{0,16}+\s{0,8}+(?:tool_call\(|\{)",
    # At the end of its line, the arguments on the next: `_is_argument_line` says the rest.
    "functionary_v32": r"[ \t]{0,4}+\r?+\n[^\n{]{0,80}+\{",
}
_NAME = r"[^\W\d][\w.\-]{0,255}+"
# A special token between a name and its arguments: whatever the name is, something was to be called.
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
_OPENED = re.compile(r"[<\[][\w:|]{2,64}+\Z").search  # what begins like a marker, up to a place
_KIND = re.compile(r"(?:json|code)\Z").sub  # what a header says of the arguments, where the token before it is gone
# Words between a name and an object, and the object's first key.
_OBJECT = re.compile(r"[^{}\w][^{}]{0,47}+\{\s{0,16}+[\"']([^\"'\\]{1,128}+)[\"']\s{0,8}+:").match
_CURE = "if it was meant as a call, send it in the format that was asked for"
_MOST = 8
_FAR = 280
_LONGEST = 400_000
_FEW = 64  # tools: so many names are looked for one by one, which costs less than the patterns


def near_calls(source: str, spans: list[Span], tools: Toolset | None) -> list[Problem]:
    """A note for each place where a declared tool seems to be called; at most a few. Looked at is the text, and what
    was thought last where nothing was said or called behind it."""
    said = _said(source, spans)
    if not said or not tools:
        return []
    names = [tool.name for tool in tools]
    source = source.replace("\\n", " \n")  # a line break that is only shown; places stay what they are
    known = frozenset(names)
    notes: list[Problem] = []
    for span in said:
        found = _of_span(source, span, names, known, tools, is_first=not notes)
        notes += found if span.kind == "text" else map(in_thought, found)
        if len(notes) >= _MOST:
            break
    return notes[:_MOST]


def _of_span(
    source: str, span: Span, names: list[str], known: frozenset[str], tools: Toolset, *, is_first: bool
) -> list[Problem]:
    """The notes of one text. What is less certain is looked for where nothing was found before."""
    end = min(span.end, span.start + _LONGEST)
    if not _names_any(source, span, names):
        return _at_token(source, span.start, end)
    notes = list(islice(_named(source, span.start, end, known), _MOST))
    if not is_first or notes:
        return notes
    if len(names) <= _FEW:
        notes = _glued(source, span.start, end, names) or _spoken(source, span.start, end, tools)
    return notes or _at_token(source, span.start, end)


def _named(source: str, start: int, end: int, names: frozenset[str]) -> Iterator[Problem]:
    """Where a declared name stands as a call would have it."""
    for found in _NEAR(source, start, end):
        group = found.lastgroup or ""
        name = found[group] if found[group] in names else _KIND("", found[group]) if group == _HARMONY else ""
        if name in names and (group != _LAST or _is_argument_line(source, found.end())):
            yield near_call(name, found.start(), end, _FORMATS[group])


def _said(source: str, spans: list[Span]) -> list[Span]:
    """The text, and the last thoughts where neither text nor a call follows them. What stands around a marker that
    opens arguments, in another format maybe, is one."""
    said: list[Span] = []
    last = next((i for i in reversed(range(len(spans))) if spans[i].kind in ("text", "call")), -1)
    for i, span in enumerate(spans):
        if span.kind == "text" and i > 1 and said and _opens_arguments(source, said[-1], spans[i - 1]):
            said[-1] = Span(said[-1].start, span.end, "text")
        elif span.kind == "text" and i > 1 and _is_begun_in_thought(source, spans[i - 2], spans[i - 1]):
            said.append(Span(spans[i - 2].start, span.end, "text"))
        elif span.kind == "text" or (span.kind == "reasoning" and i > last):
            said.append(span)
    return said


def _is_begun_in_thought(source: str, before: Span, between: Span) -> bool:
    """Was the name still thought, and ended the marker before the arguments the thought?"""
    return before.kind == "reasoning" and _opens_arguments(source, before, between)


def _opens_arguments(source: str, said: Span, between: Span) -> bool:
    """Does a marker that stands between a name and its arguments stand between what was said and what follows?"""
    is_short = between.end - between.start < _LONGEST_TOKEN
    return said.end == between.start and is_short and source[between.start : between.end].strip() in _OPEN_ARGUMENTS


def _is_argument_line(source: str, end: int) -> bool:
    """Does nothing but what shows a line stand before the arguments on the line behind that place?"""
    found = _BEFORE_ARGUMENTS(source, end)
    before = found[1].removesuffix(_CONTENT) if found else ""
    return not _LETTER(before) or RECORD(before) is not None


def _glued(source: str, start: int, end: int, names: list[str]) -> list[Problem]:
    """A name before a tag, or behind what begins like a marker and before arguments, where that marker lost what told
    it from the name."""
    for name in names:
        for at in _places(source, name, start, end):
            behind = at + len(name)
            opened = _ARGUMENTS(source, behind, end) and _OPENED(source, max(start, at - _LONGEST_TOKEN), at)
            if opened or _TAG(source, behind, end):
                return [near_call(name, at, end, "glm45")]
    return []


def _places(source: str, name: str, start: int, end: int) -> Iterator[int]:
    """Where a name stands; the first few places."""
    for _ in range(_MOST):
        start = source.find(name, start, end)
        if start < 0:
            return
        yield start
        start += len(name)


def _spoken(source: str, start: int, end: int, tools: Toolset) -> list[Problem]:
    """A name, a few words, and an object whose first key is an argument of the tool: `tool: f, input: {...}`"""
    for tool in tools:
        for at in _places(source, tool.name, start, end):
            found = _OBJECT(source, at + len(tool.name), end)
            if found is not None and found[1] in tools.kinds(tool.name):
                return [near_call(tool.name, at, end, "generic_json")]
    return []


def _at_token(source: str, start: int, end: int) -> list[Problem]:
    """A call of no declared tool: a special token stands between its name and its arguments."""
    found = _TOKEN(source, start, end)
    name = _WORD_BEFORE(source, max(start, found.start() - _FAR), found.start()) if found else None
    return [near_call(name[0].strip(), name.start(), end, _TOKENS[found[1]])] if found and name else []


def _names_any(source: str, span: Span, names: list[str]) -> bool:
    if len(names) > _FEW:
        return True
    return any(source.find(name, span.start, span.end) >= 0 for name in names)


def near_call(name: str, start: int, end: int, format: str) -> Problem:
    """What stands between these places looks like a call of that tool, as that format writes it."""
    called = f"a call of {name!r}" if name else "a call"
    return Problem(
        "looks_like_a_call",
        f"the text from {start} to {end} looks like {called} as {format} writes it, and was not taken for one; {_CURE}",
        blocking=False,
    )


def in_thought(note: Problem) -> Problem:
    """The same of a call in reasoning."""
    message = note.message.removesuffix(_CURE)
    return msgspec.structs.replace(note, message=f"{message}it stands in the reasoning, so {_CURE}, behind it")
