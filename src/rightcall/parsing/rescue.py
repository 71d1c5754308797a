"""Calls outside the markers of the named format.

A candidate is a text that may be nothing but calls. It is parsed with every format that it may be written in, and one
of two policies accepts the result:

- `_is_all_calls`: the candidate is the whole reply. Calls of declared tools may have problems; the problems are
  reported.
- `_fitting`: the candidate is a part of the reply. Each call must be runnable as it is.

Text that is only shown is never a candidate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice

import msgspec

from rightcall.formats import FORMATS, NAMED_ONLY
from rightcall.ids import Ids
from rightcall.parsing.buffer import TokenMap
from rightcall.parsing.call_builder import MINTED
from rightcall.parsing.compile import CompiledFormat, compile_format
from rightcall.parsing.events import Fold
from rightcall.parsing.machine import Machine
from rightcall.parsing.options import ReadOptions
from rightcall.parsing.shown import Shown, last_fence, only_fence, shows
from rightcall.strict_json import scan_once
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Event, Reply, Span, Text


class Piece(msgspec.Struct, frozen=True):
    """What a piece of text holds, and the spans of it, counted from its beginning."""

    reply: Reply
    spans: list[Span]


def shifted(spans: list[Span], by: int) -> list[Span]:
    """Return the spans with `by` added to their positions."""
    return [Span(span.start + by, span.end + by, span.kind) for span in spans]


def quiet(options: ReadOptions) -> ReadOptions:
    """Return the options for parsing a part of another reply: nothing rescued, nothing live, no reasoning that the
    prompt opened, no calls taken out of reasoning."""
    reasoning = "off" if options.reasoning == "off" else "auto"
    return msgspec.structs.replace(options, reasoning=reasoning, live=False, rescue="off", reasoning_calls="never")


def read_piece(text: str, found: CompiledFormat, options: ReadOptions, told: TokenMap | None = None) -> Piece:
    """Parse a text in the format `found` with the options for a part of another reply (`quiet`). Return its reply and
    spans. A call without an id in the text gets one that begins with `MINTED`. `told`: which text is special tokens,
    None for unknown."""
    machine = Machine(found, quiet(options), Ids.numbered(MINTED))
    machine.set_token_map(told)
    machine.feed(text)
    machine.close()
    return Piece(fold(machine.take(), found.format.name), machine.output.spans.to_list())


def fold(events: list[Event], name: str) -> Reply:
    """Return the reply that these events make, in the format `name`."""
    folding = Fold()
    folding.add(events)
    return folding.reply(name, None)


class _Wrapper(msgspec.Struct, frozen=True):
    """Markers that turn a bare body into a call of a format, and how such a body begins."""

    format: str
    begins: Callable[[str], re.Match[str] | None]
    before: str = ""
    after: str = ""


_WRAPPERS = (
    # omlx#2565, ollama-vscode#20; several objects with "; " between them: imp#1088, dynamo#9536
    _Wrapper("hermes", re.compile(r"[\[{]").match, "<tool_call>\n", "\n</tool_call>"),
    # llama.cpp#14697
    _Wrapper("generic_json", re.compile(r"\{\s*\"tool_calls?\"").match),
    # The templates of Llama 4 and LFM2 without their tokens, which servers strip (Rapid-MLX#1076).
    _Wrapper("llama4_pythonic", re.compile(r"\[\s*[^\W\d][\w.\-]*\s*\(").match, "<|python_start|>", "<|python_end|>"),
    # The contract without its block (burin-labs/harn, crates/harn-vm/src/llm/tools/tests/core_parser.rs).
    _Wrapper("contract", re.compile(r"[A-Za-z_$][\w.\-$]*\(\s*\{").match),
    # The template of OLMo 3 without its tags.
    _Wrapper("olmo3", re.compile(r"[^\W\d][\w.\-]*\(").match, "<function_calls>", "</function_calls>"),
    # openclaude#380
    _Wrapper("gemma4", re.compile(r"call:[^\W\d][\w.\-]*\s*\{").match, "<|tool_call>", "<tool_call|>"),
    # mlx-lm#1448
    _Wrapper("mistral_v11", re.compile(r"[^\W\d][\w.\-]*\[ARGS\]").match, "[TOOL_CALLS]"),
)
# The request named the tool: the object holds its arguments alone.
_FORCED = _Wrapper("forced_choice", re.compile(r"\{").match)
_CLOSING_BRACKETS = {"[": "]", "{": "}"}
_SEPARATORS = re.compile(r"[\s,;]*+").match
_MAX_CHARS = 400_000
_CALL_BEGINS = re.compile(
    r'(?<!["\\])(?:(?<!\w)\[\s{0,16}+)?(?:\{\s{0,16}+"(?:name|tool|tool_name|function|type|id|tool_calls?)"\s{0,16}+:'
    r"|(?<=\[)[^\W\d][\w.\-]{0,255}+\s{0,4}+\()"
).finditer
_KEY_BEFORE = re.compile(r"(?:[\"']\s{0,8}+:|\w=)\s{0,8}+\Z").search
_MAX_STARTS = 8
_CLOSERS_ONLY = re.compile(r"[\s`;,}\])]*+").fullmatch
_BRACKETS = re.compile(r"[\"'()\[\]{}]|\\.", re.S).finditer
_QUOTES = frozenset("\"'")
_NATIVE = re.compile(r'\[\s{0,16}\{\s{0,16}"id"\s{0,16}:|\{\s{0,16}"id"\s{0,16}:\s{0,16}"call_').search


# -- the whole reply ---------------------------------------------------------------------------------------------------


def whole_reply(
    text: str, options: ReadOptions, told: TokenMap | None = None, own: CompiledFormat | None = None
) -> Piece | None:
    """Parse a reply that is nothing but whole calls of declared tools, which may have problems, and return it with its
    spans. Return None for any other text, for more than 400,000 characters, and without declared tools.

    All of it may be in one code fence (kronk#950, agent-zero#1811): such calls are tried first in any format, where
    each must be runnable. Otherwise it must begin as one of `_WRAPPERS`, the first that fits, or, if the request names
    a tool, be the object of its arguments, and the text of each call must be in it as written. `told`:
    which text is special tokens, None for unknown. `own`: the named format; if it is one that is only used when it is
    named, it is tried in a fence in place of any format.
    """
    tools = options.tools
    if tools is None or not len(tools) or len(text) > _MAX_CHARS:
        return None
    fenced = only_fence(text)
    if fenced:
        if own is not None and own.format.name in NAMED_ONLY:
            other = _fitting(read_piece(fenced, own, options, told), tools)
        else:
            other = other_format(fenced, options, told)
        if other is not None and _has_only_calls(other.reply):
            return Piece(other.reply, located(other.reply, text))
    inner = text.strip() if fenced is None else fenced
    if inner[-1:] not in _CLOSING_BRACKETS.get(inner[:1], ")}"):
        return None  # truncated, or not nothing but calls
    for wrapper in (*_WRAPPERS, _FORCED) if options.choice else _WRAPPERS:
        if not wrapper.begins(inner):
            continue
        wrapped = wrapper.before + _one_per_line(inner) + wrapper.after
        reply = read_piece(wrapped, compile_format(FORMATS[wrapper.format]), options).reply
        # Each call must be in the text as it was written, without the markers that were added.
        if reply.attempts and all(call.raw in text for call in reply.attempts) and _is_all_calls(reply, tools):
            return Piece(reply, located(reply, text))
    return None


def _is_all_calls(reply: Reply, tools: Toolset) -> bool:
    """Return whether the reply is nothing but whole calls of declared tools. They may have problems, but none may be
    truncated, completed by a repair, the definition of a tool, or next to members that have no use. True also for a
    reply without calls."""
    return _has_only_calls(reply) and all(
        call.name in tools
        and not _is_something_else(call)
        and not _was_completed(call)
        and not any(problem.code == "truncated" for problem in call.problems)
        for call in reply.attempts
    )


def _has_only_calls(reply: Reply) -> bool:
    """Return whether the reply has neither text nor reasoning."""
    return not reply.content and not reply.reasoning


def _one_per_line(text: str) -> str:
    """Return several JSON objects with commas, semicolons or blanks between or behind them, as written, one on each
    line without these; any other text as it is."""
    objects: list[str] = []
    at = 0
    while text.startswith("{", at):
        try:
            end = scan_once(text, at)[1]
        except (StopIteration, ValueError, RecursionError):
            return text
        objects.append(text[at:end])
        at = _SEPARATORS(text, end).end()  # type: ignore[union-attr]
    return "\n".join(objects) if at == len(text) and len(objects) > 1 else text


# -- a part of the reply -----------------------------------------------------------------------------------------------


def other_format(text: str, options: ReadOptions, told: TokenMap | None = None) -> Piece | None:
    """Parse a text in whatever format it is written and return its calls with other text around them; None unless it
    has calls and each is a runnable call of a declared tool (`_fitting`), and for more than 400,000 characters. `told`:
    which text is special tokens, None for unknown.

    A model may write the format that it was trained on, whatever the prompt asks for (monomind#242).
    """
    from rightcall.parsing.auto import read_auto

    if options.tools is None or len(text) > _MAX_CHARS:
        return None
    return _fitting(read_auto(text, options, told), options.tools)


def behind_text(text: str, found: CompiledFormat, options: ReadOptions) -> Piece | None:
    """Parse the bare calls that a text ends with, from one of at most nine places on where one may begin, the first
    that fits, in the named format `found`, and for JSON envelopes also in `xlam`. Return them with the text before them
    as the first part; None unless each call is a runnable one of a declared tool, which no repair completed, and
    nothing but closing brackets and separators follows (vllm#19024). None also for more than 400,000 characters."""
    if len(text) > _MAX_CHARS:
        return None
    formats = [found, compile_format(FORMATS["xlam"])] if found.bodies.envelope is not None else [found]
    starts, fence = [*islice(_candidate_starts(text), _MAX_STARTS)], found.bare_calls.fence
    if fence is not None and (last := last_fence(text)) > 0 and fence.at(text, last, True):
        starts.append(last)  # such a fence is the format's own opener
    for start in starts:
        for each in formats:
            piece = _fitting(read_piece(text[start:], each, options), options.tools)
            if piece is not None and _ends_with_calls(text[start:], piece):
                return _after_text(text, start, piece)
    return None


def api_calls(text: str, options: ReadOptions) -> Piece | None:
    """Parse calls in the notation of a provider's API, which a reader of the contract accepts as a fallback
    (burin-labs/harn, crates/harn-vm/src/llm/tools/tests/heredoc_and_messages.rs). Return them, rejected calls too,
    with the text around them, in a reply whose format is "a provider's API"; None if there are none, if the first place
    where one may begin is only shown, and for more than 400,000 characters."""
    found = _NATIVE(text) if len(text) <= _MAX_CHARS else None
    if found is None or shows(text[: found.start()]):
        return None
    piece = read_piece(text[found.start() :], compile_format(FORMATS["xlam"]), options)
    named = msgspec.structs.replace(piece.reply, format="a provider's API")
    return _after_text(text, found.start(), Piece(named, piece.spans)) if named.attempts else None


def _fitting(piece: Piece, tools: Toolset | None) -> Piece | None:
    """Return the piece if it has calls and each of them is a runnable call of a declared tool and is not something else
    (`_is_something_else`); otherwise, and without tools, None. Text around the calls does not matter."""
    calls = piece.reply.attempts
    if tools is None or not calls:
        return None
    return piece if all(call.ok and call.name in tools and not _is_something_else(call) for call in calls) else None


def _ends_with_calls(text: str, piece: Piece) -> bool:
    """Return whether `text`, of which `piece` was parsed, has nothing but calls and, behind the last one, closing
    brackets, backticks, commas, semicolons and blanks, and no repair completed a call. Markers count as part of the
    calls."""
    last = max([span.end for span in piece.spans if span.kind == "call"], default=0)
    is_end = _CLOSERS_ONLY(text, last) is not None and _has_only_calls(piece.reply)
    return is_end and not any(map(_was_completed, piece.reply.attempts))


def _candidate_starts(text: str) -> Iterator[int]:
    """Yield the indexes where a bare call may begin that is not only shown: an object whose first key is one of a call,
    or a list that begins with such an object or with `name(`. A value inside another call or object, or behind `key:`
    or `name=`, is left out, and so is all that follows an unclosed one. Ends at the first candidate inside an open
    `<think>`, also if that is closed later."""
    shown = Shown()
    at = inside = 0
    for found in _CALL_BEGINS(text):
        start = found.start() - 1 if text[found.start() - 1 : found.start()] == "[" else found.start()
        shown.take(text[at:start])
        at = start
        if start < inside or shown.shows():
            continue
        if text.rfind("<think>", 0, start) > text.rfind("</think>", 0, start):
            return
        is_part = _KEY_BEFORE(text[max(0, start - 32) : start]) is not None
        end = _value_end(text, start if is_part else found.start() + max(0, found.group().find("{")))
        inside = end if end > 0 else len(text)
        if not is_part:
            yield start


def _value_end(text: str, start: int) -> int:
    """Return the index behind the first bracketed value at or behind `start`; -1 if it is not closed. Brackets in
    strings, in single or double quotes, do not count, nor do escaped characters; the kinds of brackets are not
    compared."""
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


# -- both --------------------------------------------------------------------------------------------------------------


def _is_something_else(call: Call) -> bool:
    """Return whether the arguments of a call are the schema of a tool, or members next to its arguments have no use
    (`unknown_key`). Such a member may be an undeclared argument, and without it another call would run."""
    if any(problem.code == "unknown_key" for problem in call.problems):
        return True
    return call.arguments.get("type") == "object" and isinstance(call.arguments.get("properties"), dict)


def _was_completed(call: Call) -> bool:
    """Return whether a repair added a bracket or a name to the call. Without markers, missing brackets may mean that
    the text was truncated, and nothing shows that an object without a name is a call."""
    return any(repair.rule in ("missing_closer", "inferred_name") for repair in call.repairs)


def _after_text(text: str, start: int, piece: Piece) -> Piece:
    """Return a copy of `piece`, which begins at index `start` of `text`, with the text before it, without the blanks at
    its end, as its first part, unless it is blank, and with spans counted from the beginning of the text. The blanks
    are a span of a marker."""
    before = text[:start].rstrip()
    parts = (Text(before), *piece.reply.parts) if before else piece.reply.parts
    edge = [Span(0, len(before), "text")] if before else []
    gap = [Span(len(before), start, "marker")] if len(before) < start else []
    return Piece(msgspec.structs.replace(piece.reply, parts=parts), edge + gap + shifted(piece.spans, start))


def located(reply: Reply, text: str) -> list[Span]:
    """Return the spans of a text that is nothing but the calls of the reply: a call where the text of each is found
    behind the one before it (directly behind that if it is not found), and markers between and around them.
    Empty spans are left out; without calls all is one marker."""
    found: list[Span] = []
    at = 0
    for call in reply.attempts:
        start = max(at, text.find(call.raw, at))
        found += [Span(at, start, "marker"), Span(start, start + len(call.raw), "call")]
        at = start + len(call.raw)
    found.append(Span(at, len(text), "marker"))
    return [span for span in found if span.end > span.start]
