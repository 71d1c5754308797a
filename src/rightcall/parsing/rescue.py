"""Calls that came in another shape than the one expected: read only where a text can hardly be anything else.

`safe`: the whole reply is calls of declared tools, as JSON objects or lists (in one fence or not), `name[ARGS]{...}`,
`call:name{...}` or Python calls; or a named format's own bare body stands behind text; or another format's openers
stand in the text.
`anywhere`: such calls also count behind and before text, if they fit. Nothing that is shown is a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from rightcall.formats import FORMATS, NAMED_ONLY
from rightcall.parsing.compile import Compiled, compiled
from rightcall.parsing.options import ReadOptions
from rightcall.parsing.piece import Piece, read_piece, shifted
from rightcall.parsing.shown import Shown, shows
from rightcall.parsing.shown.whole_fences import last_fence, only_fence
from rightcall.parsing.told import Told
from rightcall.strict_json import scan_once
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Part, Reply, Span, Text

Place = tuple[int, int, Piece]  # where calls begin and end in a text, and what they are
# A reply that is nothing but calls, said as if it had stood in the markers of a format that reads it.
_WRAPS = (
    ("<tool_call>\n", "\n</tool_call>", "hermes", re.compile(r"[\[{]").match),
    ("", "", "generic_json", re.compile(r"\{\s*\"tool_calls?\"").match),
    ("<|python_start|>", "<|python_end|>", "llama4_pythonic", re.compile(r"\[\s*[^\W\d][\w.\-]*\s*\(").match),
    ("", "", "contract", re.compile(r"[A-Za-z_$][\w.\-$]*\(\s*\{").match),
    ("<function_calls>", "</function_calls>", "olmo3", re.compile(r"[^\W\d][\w.\-]*\(").match),
    ("<|tool_call>", "<tool_call|>", "gemma4", re.compile(r"call:[^\W\d][\w.\-]*\s*\{").match),
    ("[TOOL_CALLS]", "", "mistral_v11", re.compile(r"[^\W\d][\w.\-]*\[ARGS\]").match),
)
_OBJECT = re.compile(r"\{").match  # of arguments alone, where the request named the tool
_ENDS = {"[": "]", "{": "}"}
_BETWEEN = re.compile(r"[\s,;]*+").match
_MOST = 400_000
# Where a bare call may begin behind text.
_CALL_BEGINS = re.compile(
    r'(?<!["\\])(?:(?<!\w)\[\s{0,16}+)?(?:\{\s{0,16}+"(?:name|tool|tool_name|function|type|id|tool_calls?)"\s{0,16}+:'
    r"|(?<=\[)[^\W\d][\w.\-]{0,255}+\s{0,4}+\()"
).finditer
_BEHIND_KEY = re.compile(r"(?:[\"']\s{0,8}+:|\w=)\s{0,8}+\Z").search
_TRIES = 8
_NOTHING = re.compile(r"[\s`;,}\])]*+").fullmatch
_BRACKETS = re.compile(r"[\"'()\[\]{}]|\\.", re.S).finditer
_QUOTES = frozenset("\"'")
_NATIVE = re.compile(r'\[\s{0,16}\{\s{0,16}"id"\s{0,16}:|\{\s{0,16}"id"\s{0,16}:\s{0,16}"call_').search


def whole_reply(text: str, options: ReadOptions, told: Told | None = None, own: Compiled | None = None) -> Piece | None:
    """What a reply holds that is nothing but calls of declared tools; None if it is anything else. `own` is the format
    that was named, where only its name makes it one."""
    tools = options.tools
    if tools is None or not len(tools) or len(text) > _MOST:
        return None
    fenced = only_fence(text)
    other = _fenced(fenced, options, told, own) if fenced else None
    if other is not None and _is_silent(other.reply):
        return Piece(other.reply, located(other.reply, text))
    inner = text.strip() if fenced is None else fenced
    if inner[-1:] not in _ENDS.get(inner[:1], ")}"):
        return None  # cut off, or not nothing but calls
    return _nothing_but_calls(text, _wrapped(inner, options), tools)


def _fenced(text: str, options: ReadOptions, told: Told | None, own: Compiled | None) -> Piece | None:
    if own is not None and own.format.name in NAMED_ONLY and len(text) <= _MOST:
        piece = read_piece(text, own, options, told)
        return piece if fits(piece.reply, options.tools) else None
    return other_format(text, options, told)


def _wrapped(text: str, options: ReadOptions) -> Iterator[Reply]:
    """The text as each format reads it that it may be the body of."""
    forced = [("", "", "forced_choice", _OBJECT)] if options.choice else []
    for before, after, name, begins in (*_WRAPS, *forced):
        if begins(text):
            yield read_piece(before + _in_a_row(text) + after, compiled(FORMATS[name]), options).reply


def _nothing_but_calls(text: str, readings: Iterator[Reply], tools: Toolset) -> Piece | None:
    """The first reading that is nothing but calls."""
    for reply in readings:
        # What was read must be what was written, without the markers that were put around it.
        stands = all(call.raw in text for call in reply.attempts)
        if reply.attempts and _is_silent(reply) and stands and _are_calls(reply, tools):
            return Piece(reply, located(reply, text))
    return None


def _is_silent(reply: Reply) -> bool:
    """Is nothing said in it, and nothing thought?"""
    return not reply.content and not reply.reasoning


def _in_a_row(text: str) -> str:
    """Objects with commas or semicolons between them, each on a line of its own; any other text as it is."""
    objects: list[str] = []
    at = 0
    while text.startswith("{", at):
        try:
            end = scan_once(text, at)[1]
        except (StopIteration, ValueError, RecursionError):
            return text
        objects.append(text[at:end])
        at = _BETWEEN(text, end).end()  # type: ignore[union-attr]
    return "\n".join(objects) if at == len(text) and len(objects) > 1 else text


def _are_calls(reply: Reply, tools: Toolset) -> bool:
    """Are all of them calls of declared tools? What does not fit is told as their problems."""
    return all(
        call.name in tools and not _is_odd(call) and not _was_completed(call) and not _was_cut(call)
        for call in reply.attempts
    )


def _is_definition(call: Call) -> bool:
    """The definition of a tool, or its description, looks like a call of it."""
    if not call.arguments:
        return any(problem.code == "unknown_key" and "'description'" in problem.message for problem in call.problems)
    return call.arguments.get("type") == "object" and isinstance(call.arguments.get("properties"), dict)


def _was_completed(call: Call) -> bool:
    """Was something added? Nothing says that the text was not cut off, so brackets may not be; and nothing says that an
    object without a name is a call."""
    return any(repair.rule in ("missing_closer", "inferred_name") for repair in call.repairs)


def _has_strangers(call: Call) -> bool:
    """A key that had no use may be an argument that is not declared, and without it another call would run."""
    return any(problem.code == "unknown_key" for problem in call.problems)


def _is_odd(call: Call) -> bool:
    return _is_definition(call) or _has_strangers(call)


def _was_cut(call: Call) -> bool:
    return any(problem.code == "truncated" for problem in call.problems)


def other_format(text: str, options: ReadOptions, told: Told | None = None) -> Piece | None:
    """What a reply holds that is written in another format than was said; None if it is none, or not all of it fits."""
    from rightcall.parsing.auto import read_auto

    if options.tools is None or len(text) > _MOST:
        return None
    piece = read_auto(text, options, told)
    return piece if fits(piece.reply, options.tools) else None


def foreign_calls(text: str, options: ReadOptions) -> Piece | None:
    """The calls of one block, whose opener another format has too; None if it holds no calls of declared tools."""
    from rightcall.parsing.auto import read_auto

    if options.tools is None or len(text) > _MOST:
        return None
    piece = read_auto(text, options)
    has_calls = piece.reply.attempts and _is_silent(piece.reply)
    return piece if has_calls and _are_calls(piece.reply, options.tools) else None


def fits(reply: Reply, tools: Toolset | None) -> bool:
    """Does it hold calls, and are all of them such as may run?"""
    attempts = reply.attempts
    return (
        tools is not None
        and bool(attempts)
        and all(call.ok and call.name in tools and not _is_odd(call) for call in attempts)
    )


def behind_text(text: str, found: Compiled, options: ReadOptions) -> Piece | None:
    """The calls that a text ends with, written as the named format writes them without any marker."""
    own = [found, compiled(FORMATS["xlam"])] if found.envelope is not None else [found]
    for start in [*_beginnings(text), *_last_fence(text, found)]:
        for each in own:
            piece = read_piece(text[start:], each, options)
            if fits(piece.reply, options.tools) and _is_last(text[start:], piece) and not _completes(piece.reply):
                return _behind(text, start, piece)
    return None


def _is_last(text: str, piece: Piece) -> bool:
    """Does nothing stand behind the calls, and nothing between them?"""
    last = max([span.end for span in piece.spans if span.kind == "call"], default=0)
    return _NOTHING(text, last) is not None and _is_silent(piece.reply)


def _last_fence(text: str, found: Compiled) -> list[int]:
    """Where the last code fence begins, if such a fence is the format's own opener."""
    start = last_fence(text) if found.fence is not None and len(text) <= _MOST else -1
    return [start] if start > 0 and found.fence is not None and found.fence.at(text, start, True) else []


def _completes(reply: Reply) -> bool:
    return any(map(_was_completed, reply.attempts))


def anywhere(text: str, options: ReadOptions) -> Piece | None:
    """The calls in a text, with text before and behind them: bare, or in a format that counts only when named."""
    found = _bare_places(text, options)
    if found:
        calls = sum(len(piece.reply.attempts) for _, _, piece in found)
        return _among(text, found) if calls <= options.limits.calls else None
    for each in [compiled(FORMATS[name]) for name in sorted(NAMED_ONLY)]:
        for start in (0, *_last_fence(text, each)):
            piece = read_piece(text[start:], each, options)
            if fits(piece.reply, options.tools):
                return _behind(text, start, piece)
    return None


def _bare_places(text: str, options: ReadOptions) -> list[Place]:
    found: list[Place] = []
    at = 0
    for start in _beginnings(text):
        end = _value_end(text, start) if start >= at else -1
        piece = _bare_calls(text[start:end], options) if end > 0 else None
        if piece is not None:
            found.append((start, end, piece))
            at = end
    return found


def _bare_calls(text: str, options: ReadOptions) -> Piece | None:
    """What a text holds that is nothing but calls that may run."""
    for name in ("xlam", "llama4_pythonic"):
        piece = read_piece(text, compiled(FORMATS[name]), options)
        if fits(piece.reply, options.tools) and _is_silent(piece.reply) and not _completes(piece.reply):
            return piece
    return None


def _value_end(text: str, start: int) -> int:
    """Behind the bracket that closes the one at `start`; -1 if none does."""
    depth, quote = 0, ""
    for found in _BRACKETS(text, start):
        char = found.group()
        if quote or char in _QUOTES:
            quote = char if not quote else "" if char == quote else quote
        elif char in "[{(":
            depth += 1
        elif char in ")}]":
            depth -= 1
            if depth == 0:
                return found.end()
    return -1


def _among(text: str, found: list[Place]) -> Piece:
    """Calls at these places of a text, and the text around them. Blanks that touch a call are markers."""
    parts: list[Part] = []
    spans: list[Span] = []
    edges = [(0, 0, None), *found, (len(text), len(text), None)]
    for (_, at, _), (start, end, piece) in pairwise(edges):
        first, last = _said_between(text, at, start, is_last=piece is None)
        parts += [Text(text[first:last])] if first < last else []
        spans += [Span(at, first, "marker"), Span(first, last, "text"), Span(last, start, "marker")]
        if piece is not None:
            parts += piece.reply.parts
            spans += shifted(piece.spans, start)
            spans.append(Span(spans[-1].end, end, "marker"))
    name = found[0][2].reply.format
    return Piece(Reply(tuple(parts), (), name), [span for span in spans if span.start < span.end])


def _said_between(text: str, at: int, start: int, *, is_last: bool) -> tuple[int, int]:
    """Where the text between two calls begins and ends; at the same place where none is."""
    said = _BETWEEN(text, at, start).end() if at else 0  # type: ignore[union-attr]
    if said >= start:
        return start, start
    first = at + len(text[at:start]) - len(text[at:start].lstrip()) if at else 0
    return first, start if is_last else first + len(text[first:start].rstrip())


def native_calls(text: str, options: ReadOptions) -> Piece | None:
    """Calls as a provider's API would have carried them, which some models write where text belongs."""
    found = _NATIVE(text) if options.tools is not None and len(text) <= _MOST else None
    if found is None or shows(text[: found.start()]):
        return None
    piece = read_piece(text[found.start() :], compiled(FORMATS["xlam"]), options)
    if not piece.reply.attempts:
        return None
    named = msgspec.structs.replace(piece.reply, format="a provider's API")
    return _behind(text, found.start(), Piece(named, piece.spans))


def _beginnings(text: str) -> Iterator[int]:
    """Where a bare call may begin that is not only shown; the first few. What stands inside another call, or is a part
    of any other value, is none: it is what is called with."""
    shown = Shown()
    at = tries = inside = 0
    for found in _CALL_BEGINS(text) if len(text) <= _MOST else ():
        start = found.start() - 1 if text[found.start() - 1 : found.start()] == "[" else found.start()
        shown.take(text[at:start])
        at = start
        if start < inside or shown.shows():
            continue
        is_part = _BEHIND_KEY(text[max(0, start - 32) : start]) is not None
        end = _value_end(text, start if is_part else found.start() + max(0, found.group().find("{")))
        inside = end if end > 0 else len(text)
        if not is_part:
            yield start
            tries += 1
            if tries == _TRIES:
                return


def _behind(text: str, start: int, piece: Piece) -> Piece:
    """The same with the text before it."""
    before = text[:start].rstrip()
    parts = (Text(before), *piece.reply.parts) if before else piece.reply.parts
    edge = [Span(0, len(before), "text")] if before else []
    gap = [Span(len(before), start, "marker")] if len(before) < start else []
    return Piece(msgspec.structs.replace(piece.reply, parts=parts), edge + gap + shifted(piece.spans, start))


def located(reply: Reply, text: str) -> list[Span]:
    """The spans of a text that turned out to be nothing but calls: each call's own text, and markers around."""
    found: list[Span] = []
    at = 0
    for call in reply.attempts:
        start = max(at, text.find(call.raw, at))
        found += [Span(at, start, "marker"), Span(start, start + len(call.raw), "call")]
        at = start + len(call.raw)
    found.append(Span(at, len(text), "marker"))
    return [span for span in found if span.end > span.start]
