"""The opener law: an opener of a call outside quoted text leads to an attempt, or to a problem that says why not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format, Marker, Special, marker_alternatives
from rightcall.parsing.compile import THINK
from rightcall.parsing.markers import BLANKS
from rightcall.testing.laws.marker_texts import fill, markers_of, openers_of
from rightcall.testing.laws.reading import USUAL, How, read
from rightcall.testing.laws.samples import PROSE, Case, Violation, damage, marker_sequence, raised_violation, renderings
from rightcall.tools.toolset import Toolset
from rightcall.types import Reply, Span

_TAILS = (
    *(
        "",
        " ",
        "\n",
        "hello",
        " is how a call begins.",
        "{}",
        "[]",
        "{",
        '{"command": "ls"}',
        '{"name": "ping"',
        "ping",
    ),
    *('{"name": "ping", "arguments": {}}', '{"name": "", "arguments": {}}', "[[ping()]]", "[ping()]", "nobody", "\n\n"),
    *('{"city": "Oslo"}', '[{"name": "ping"}]', "ping()", "null", '"', "get_weather\n", "call:ping{"),
)
_UNKNOWN_TOOL = "frobnicate"
_NAME_CONTINUES = re.compile(r"[^<>\"'`{}()\[\]|=/\s,\\]").match  # the name is longer


def opener_law(format: Format, text: str, *, tools: Toolset | None = None, how: How = USUAL) -> list[Violation]:
    """Return a list with the first violation of this law, [] if there is none: an opener is never ignored; it begins an
    attempt, is part of reasoning, or leads to a problem. If a body follows, or the name of a declared tool where the
    body begins with one, there must be an attempt. Openers that may be quoted are left out. An exception is a
    violation.

    - `format`: the format of the openers.
    - `text`: any text.
    - `tools`: the declared tools; None: names are not checked.
    - `how`: the other options of the parser.
    """
    try:
        reply = read(format, [text], tools=tools, how=how).reply
        for at, end in _openers_in(format, text, tools):
            what = _opener_fault(format, text, at, end, reply, tools, how)
            if what:
                return [Violation("opener", f"{text[at:end]!r} at {at} {what}: {_describe_reply(reply)}", text)]
    except Exception as error:  # noqa: BLE001 - any exception is a violation
        return [raised_violation(error, text)]
    return []


def _opener_fault(format: Format, text: str, at: int, end: int, reply: Reply, tools: Toolset | None, how: How) -> str:
    """Return a description of what is wrong with the reply for the opener from `at` to `end`: it has no effect, or is
    no attempt although a body follows. "" if nothing is wrong, or the opener may be quoted."""
    if not is_plain(text, at, reply.spans or ()) or _is_inside_quoted_call(format, text, at, reply):
        return ""
    if not (_has_effect(format, reply, text, at, end) or _message_has_call(format, reply, text, at, end)):
        return "has no effect"
    needs_attempt = _body_follows(format, text[end:], tools) and not _can_stay_in_reasoning(reply, at, how)
    return "is followed by a body and is no attempt" if needs_attempt and not reply.attempts else ""


def _is_inside_quoted_call(format: Format, text: str, at: int, reply: Reply) -> bool:
    """Return whether the position `at` is inside a call or section that may be quoted: after its opener, before its
    closing marker."""
    for pair in (format.section, format.call):
        opens, closes = [
            [marker.strip() for marker in marker_alternatives(side) if marker.strip()] for side in pair or ("", "")
        ]
        begin = max([text.rfind(marker, 0, at) for marker in opens], default=-1)
        is_open = begin > max([text.rfind(marker, 0, at) for marker in closes], default=-1)
        if is_open and not text.startswith(tuple(opens), at) and not is_plain(text, begin, reply.spans or ()):
            return True
    return False


def _describe_reply(reply: Reply) -> str:
    """Return a text about the number of attempts and the problems of a reply, for a violation."""
    return f"{len(reply.attempts)} attempts, problems {[problem.code for problem in reply.problems]}"


def _openers_in(format: Format, text: str, tools: Toolset | None) -> Iterator[tuple[int, int]]:
    """Yield start and end of each opener of a call in the text, for the names of the declared tools (`ping` if `tools`
    is None) and for an unknown name."""
    names = [tool.name for tool in tools] if tools is not None else ["ping"]
    found = {opener for name in (*names, _UNKNOWN_TOOL) for opener in openers_of(format, name)}
    if found:
        longest = sorted(found, key=len, reverse=True)
        for match in re.finditer("|".join(map(re.escape, longest)), text):
            yield match.span()


def _has_effect(format: Format, reply: Reply, text: str, at: int, end: int) -> bool:
    """Return whether the opener from `at` to `end` shows in the reply: as an attempt there, as an attempt or a problem
    that has no position, or as a part of reasoning."""
    return (
        any(problem.call is None for problem in reply.problems)
        or _is_attempt_at(reply, text, at, end)
        or any(not call.raw.strip() for call in reply.attempts)  # such a call has no position
        or _is_reasoning(format, reply, text, at)
    )


def _is_attempt_at(reply: Reply, text: str, at: int, end: int) -> bool:
    """Return whether the opener at the position `at` is in the span of a call, or only markers and white space are
    between it and the next one. `end` is not used."""
    for span in reply.spans or ():
        if span.end <= at:
            continue
        if span.kind == "call":
            return True
        if span.kind != "marker" and text[max(span.start, at) : span.end].strip():
            return False
    return False


def _message_has_call(format: Format, reply: Reply, text: str, at: int, end: int) -> bool:
    """Return whether the message that the header from `at` to `end` opens has a call, before or after which it may have
    text. False for a format without headers."""
    starts = [start.strip() for start in marker_alternatives(format.channels.start)] if format.channels else []
    spans = reply.spans or ()
    # Text in a message is no header, even if it looks like one.
    positions = [match.start() for start in starts if start for match in re.finditer(re.escape(start), text[end:])]
    headers = [end + place for place in positions if _kind_at(spans, end + place) != "text"]
    over = min(headers, default=len(text))
    return bool(starts) and any(span.kind == "call" and at <= span.start < over for span in spans)


def _kind_at(spans: Sequence[Span], at: int) -> str:
    """Return the kind of the span at a position; "" if there is none."""
    return next((span.kind for span in spans if span.start <= at < span.end), "")


def _is_reasoning(format: Format, reply: Reply, text: str, at: int) -> bool:
    """Return whether the opener at the position `at` may be a part of reasoning: it is in reasoning that text, a call,
    more reasoning or an opener of reasoning follows, or in a message of reasoning."""
    spans = reply.spans or ()
    if _kind_at(spans, at) != "reasoning":
        return False
    if format.channels is not None or any(span.kind != "marker" for span in spans if span.start > at):
        return True
    thinks = [each.strip() for pair in (THINK, format.reasoning) if pair for each in marker_alternatives(pair[0])]
    return any(text.find(opens, at) >= 0 for opens in thinks if opens)


def _can_stay_in_reasoning(reply: Reply, at: int, how: How) -> bool:
    """Return whether the position `at` is in reasoning in which a call may remain: the reasoning was closed, or `how`
    extracts no calls from it."""
    spans = reply.spans or ()
    behind = next((i + 1 for i, span in enumerate(spans) if span.start <= at < span.end), 0)
    is_closed = behind < len(spans) or bool(reply.attempts)
    return _kind_at(spans, at) == "reasoning" and (is_closed or how.reasoning_calls == "never")


def _body_follows(format: Format, rest: str, tools: Toolset | None) -> bool:
    """Return whether `rest`, the text after an opener, begins with arguments, or with the name of a declared tool if
    the format's body begins with one. False for formats with headers or a protocol."""
    if format.channels is not None or format.protocol is not None:
        return False
    rest = rest.lstrip(BLANKS)
    for body in format.bodies:
        kind = BODIES[type(body)]
        if kind.is_object and rest.startswith(('{"', '[{"')):
            return True
        if any(_is_declared_name(marker, rest, tools) for marker in kind.opening(body)[:1]):
            return True
    return False


def _is_declared_name(marker: Marker, rest: str, tools: Toolset | None) -> bool:
    """Return whether `rest` begins with this marker, filled with the whole name of a declared tool; False if `tools` is
    None."""
    names = [tool.name for tool in tools] if tools is not None else []
    opens = [fill(text, name=name).strip() for text in marker_alternatives(marker) for name in names]
    return any(opening and rest.startswith(opening) and not _NAME_CONTINUES(rest, len(opening)) for opening in opens)


# -- examples ----------------------------------------------------------------------------------------------------------


def opener_cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Yield `count` cases for the opener law: openers with various texts after them, damaged renderings, renderings
    with white space next to tokens, and random sequences of markers. Nothing for a format without openers."""
    dice = Random(f"{seed} {format.name} openers")
    openers = [*openers_of(format), *openers_of(format, _UNKNOWN_TOOL)]
    rendered = list(renderings(format, seed, count // 3 + 1))
    markers = markers_of(format)
    if not openers:
        return
    for _ in range(count):
        kind = dice.randrange(5) if rendered else 0
        if kind < 2:
            text = _opener_with_tail(dice, openers, markers)
        elif kind == 2:
            text = _with_blanks(dice, format, dice.choice(rendered))
        elif kind == 3:
            text = damage(dice, dice.choice(rendered), markers)
        else:
            text = marker_sequence(dice, markers)
        yield Case("opener", text, seed=seed)


def _opener_with_tail(dice: Random, openers: list[str], markers: list[str]) -> str:
    """Return a text with a random opener, with or without prose before it, and with the beginning of a body, a marker,
    prose or another opener after it."""
    before = dice.choice(("", "", dice.choice(PROSE) + " ", dice.choice(PROSE) + "\n"))
    behind = dice.choice(("", "", dice.choice(markers), " " + dice.choice(PROSE), dice.choice(openers)))
    return before + dice.choice(openers) + dice.choice(_TAILS) + behind


def _with_blanks(dice: Random, format: Format, text: str) -> str:
    """Return a text with random white space before or after the format's special tokens of calls, as some detokenizers
    add it; sometimes unchanged."""
    for token in sorted(_special_tokens(format)):
        blank = dice.choice(("", " ", "\n"))
        text = text.replace(token, dice.choice((blank + token, token + blank)))
    return text


def _special_tokens(format: Format) -> set[str]:
    """Return the special tokens in the opening and closing markers of calls and sections, and the opening ones of
    bodies."""
    fields = [*format.call, *(format.section or ())]
    fields += [marker for body in format.bodies for marker in BODIES[type(body)].opening(body)[:1]]
    marked = [text for marker in fields for text in marker_alternatives(marker) if isinstance(text, Special)]
    return {token for text in marked for token in text.tokens}


_BLANK_LINE = re.compile(r"\n[ \t\r]*+\n")
_QUOTES = re.compile("[\"'`\u00ab\u00bb\u2018-\u201f\u2039\u203a\u300c-\u300f]")
_CODE = re.compile(
    r"`|~~~|<pre|<code|<textarea|<!--|<!\[CDATA|^(?:@@ |diff --git|---|\+\+\+)|response|result", re.M | re.I
)
_ITEM = r"(?:(?:[-*+]|\d{1,9}[.)])[ \t]++)*+"  # the start of a list item, and of one inside it
_LINE = re.compile(rf"\s*+{_ITEM}(?:>|\d++[\t|:.]|\d{{2,4}}-|\[|[A-Za-z ]{{1,20}}+:)|    |\t")


def is_plain(text: str, at: int, spans: tuple[Span, ...]) -> bool:
    """Return whether the position `at` of a text is certainly outside code, quotes and other text that may be quoted;
    False if there is doubt. `spans` are those of the text's reply: text inside calls and finished reasoning before the
    position is ignored. This is independent of the parser."""
    before = _without_calls(text[:at], _spans_begun_before(spans, at))
    *others, paragraph = _BLANK_LINE.split(before)
    if _CODE.search(before) or any(map(_has_quoted_opener, others)):
        return False
    # Text after a marker or a call begins a line.
    start = max([span.end for span in spans if span.kind in ("marker", "call") and span.end <= at], default=0)
    behind = text[start:at]
    lines = (before.rpartition("\n")[2], behind.rpartition("\n")[2])
    return not _QUOTES.search(paragraph) and not any(map(_LINE.match, lines))


def _has_quoted_opener(text: str) -> bool:
    """Return whether a quotation mark precedes a bracket in the text: the quotation may continue over empty lines."""
    quote = _QUOTES.search(text)
    return quote is not None and max(map(text.rfind, "[<{")) > quote.start()


def _spans_begun_before(spans: tuple[Span, ...], at: int) -> list[Span]:
    """Return the spans that start at or before a position. If the last one is reasoning, it is left out together with
    the reasoning and markers directly before it, which belong to the same block."""
    before = [span for span in spans if span.start <= at]
    if before and before[-1].kind == "reasoning":
        while before and before[-1].kind in ("reasoning", "marker"):
            before.pop()
    return before


def _without_calls(before: str, spans: list[Span]) -> str:
    """Return the text `before` without the calls and the reasoning among `spans`, the remaining pieces joined with
    spaces."""
    edges = [edge for span in spans if span.kind in ("call", "reasoning") for edge in (span.start, span.end)]
    return " ".join([before[a:b] for a, b in pairwise([0, *edges, len(before)])][::2])
