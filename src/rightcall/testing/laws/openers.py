"""The opener law: where a call's opener stands outside shown text, there is an attempt, or a problem says why not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random

from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format, Marker, Special, marker_alternatives
from rightcall.parsing.compile import THINK
from rightcall.parsing.markers import BLANKS
from rightcall.testing.laws.case import Case, Violation, raised
from rightcall.testing.laws.marker_texts import fill, markers_of, openers_of
from rightcall.testing.laws.reading import USUAL, How, read
from rightcall.testing.laws.samples import PROSE, damaged, heap, renderings
from rightcall.testing.laws.shown_text import is_plain
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
_STRANGER = "frobnicate"
_NAME_GOES_ON = re.compile(r"[^<>\"'`{}()\[\]|=/\s,\\]").match  # a longer name is another


def opener_law(format: Format, text: str, *, tools: Toolset | None = None, how: How = USUAL) -> list[Violation]:
    """An opener is never silent: it begins an attempt, is thought, or leaves a problem of no call. Where a body, or the
    name of a declared tool where a body begins with one, follows it, a problem is not enough.

    - `format`: whose openers are looked for.
    - `text`: any text.
    - `tools`, `how`: as in `cut_law`.
    """
    try:
        reply = read(format, [text], tools=tools, how=how).reply
        for at, end in _openers_in(format, text, tools):
            what = _silence(format, text, at, end, reply, tools, how)
            if what:
                return [Violation("opener", f"{text[at:end]!r} at {at} {what}: {_seen(reply)}", text)]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported as a violation
        return [raised(error, text)]
    return []


def _silence(format: Format, text: str, at: int, end: int, reply: Reply, tools: Toolset | None, how: How) -> str:
    if not is_plain(text, at, reply.spans or ()) or _is_inside_shown(format, text, at, reply):
        return ""
    if not (_is_heard(format, reply, text, at, end) or _in_message(format, reply, text, at, end)):
        return "is silent"
    needs_attempt = _body_follows(format, text[end:], tools) and not _may_stay(reply, at, how)
    return "with a body behind it is no attempt" if needs_attempt and not reply.attempts else ""


def _is_inside_shown(format: Format, text: str, at: int, reply: Reply) -> bool:
    """Does an opener that may be shown stand before the place, around it, and not yet its close?"""
    for pair in (format.section, format.call):
        opens, closes = [
            [marker.strip() for marker in marker_alternatives(side) if marker.strip()] for side in pair or ("", "")
        ]
        begin = max([text.rfind(marker, 0, at) for marker in opens], default=-1)
        is_open = begin > max([text.rfind(marker, 0, at) for marker in closes], default=-1)
        if is_open and not text.startswith(tuple(opens), at) and not is_plain(text, begin, reply.spans or ()):
            return True
    return False


def _seen(reply: Reply) -> str:
    return f"{len(reply.attempts)} attempts, problems {[problem.code for problem in reply.problems]}"


def _openers_in(format: Format, text: str, tools: Toolset | None) -> Iterator[tuple[int, int]]:
    names = [tool.name for tool in tools] if tools is not None else ["ping"]
    found = {opener for name in (*names, _STRANGER) for opener in openers_of(format, name)}
    if found:
        longest = sorted(found, key=len, reverse=True)
        for match in re.finditer("|".join(map(re.escape, longest)), text):
            yield match.span()


def _is_heard(format: Format, reply: Reply, text: str, at: int, end: int) -> bool:
    """Is there an attempt at this place, or a problem that belongs to no call?"""
    return (
        any(problem.call is None for problem in reply.problems)
        or _attempt_here(reply, text, at, end)
        or any(not call.raw.strip() for call in reply.attempts)  # which has no place of its own
        or _is_thought(format, reply, text, at)
    )


def _attempt_here(reply: Reply, text: str, at: int, end: int) -> bool:
    """Does a call's span hold the opener, or stand right behind it with nothing but markers and blanks between?"""
    for span in reply.spans or ():
        if span.end <= at:
            continue
        if span.kind == "call":
            return True
        if span.kind != "marker" and text[max(span.start, at) : span.end].strip():
            return False
    return False


def _in_message(format: Format, reply: Reply, text: str, at: int, end: int) -> bool:
    """Of a header that opens a message: does the message hold a call? Text may stand before it."""
    starts = [start.strip() for start in marker_alternatives(format.channels.start)] if format.channels else []
    spans = reply.spans or ()
    # What a message says is no header, whatever it looks like.
    begun = [match.start() for start in starts if start for match in re.finditer(re.escape(start), text[end:])]
    headers = [end + place for place in begun if _kind_at(spans, end + place) != "text"]
    over = min(headers, default=len(text))
    return bool(starts) and any(span.kind == "call" and at <= span.start < over for span in spans)


def _kind_at(spans: Sequence[Span], at: int) -> str:
    return next((span.kind for span in spans if span.start <= at < span.end), "")


def _is_thought(format: Format, reply: Reply, text: str, at: int) -> bool:
    """Does the opener stand in reasoning with text, a call or another thought behind it, or in a message that its
    header calls reasoning? There it may be a thought."""
    spans = reply.spans or ()
    if _kind_at(spans, at) != "reasoning":
        return False
    if format.channels is not None or any(span.kind != "marker" for span in spans if span.start > at):
        return True
    thinks = [each.strip() for pair in (THINK, format.reasoning) if pair for each in marker_alternatives(pair[0])]
    return any(text.find(opens, at) >= 0 for opens in thinks if opens)


def _may_stay(reply: Reply, at: int, how: How) -> bool:
    """May a call stay in the reasoning that it stands in, because that was closed or nothing is taken out of it?"""
    spans = reply.spans or ()
    behind = next((i + 1 for i, span in enumerate(spans) if span.start <= at < span.end), 0)
    is_closed = behind < len(spans) or bool(reply.attempts)
    return _kind_at(spans, at) == "reasoning" and (is_closed or how.reasoning_calls == "never")


def _body_follows(format: Format, rest: str, tools: Toolset | None) -> bool:
    """Do arguments, or a declared name where the body begins with one, stand right behind an opener?"""
    if format.channels is not None or format.protocol is not None:
        return False
    rest = rest.lstrip(BLANKS)
    for body in format.bodies:
        kind = BODIES[type(body)]
        if kind.is_object and rest.startswith(('{"', '[{"')):
            return True
        if any(_names_a_tool(marker, rest, tools) for marker in kind.opening(body)[:1]):
            return True
    return False


def _names_a_tool(marker: Marker, rest: str, tools: Toolset | None) -> bool:
    names = [tool.name for tool in tools] if tools is not None else []
    opens = [fill(text, name=name).strip() for text in marker_alternatives(marker) for name in names]
    return any(opening and rest.startswith(opening) and not _NAME_GOES_ON(rest, len(opening)) for opening in opens)


# -- examples ----------------------------------------------------------------------------------------------------------


def cases(format: Format, seed: int, count: int) -> Iterator[Case]:
    """Openers with all manner of things behind them; renderings with blanks beside their tokens, or damaged; heaps."""
    dice = Random(f"{seed} {format.name} openers")
    openers = [*openers_of(format), *openers_of(format, _STRANGER)]
    rendered = list(renderings(format, seed, count // 3 + 1))
    markers = markers_of(format)
    if not openers:
        return
    for _ in range(count):
        kind = dice.randrange(5) if rendered else 0
        if kind < 2:
            text = _opened(dice, openers, markers)
        elif kind == 2:
            text = _spaced(dice, format, dice.choice(rendered))
        elif kind == 3:
            text = damaged(dice, dice.choice(rendered), markers)
        else:
            text = heap(dice, markers)
        yield Case("opener", text, seed=seed)


def _opened(dice: Random, openers: list[str], markers: list[str]) -> str:
    before = dice.choice(("", "", dice.choice(PROSE) + " ", dice.choice(PROSE) + "\n"))
    behind = dice.choice(("", "", dice.choice(markers), " " + dice.choice(PROSE), dice.choice(openers)))
    return before + dice.choice(openers) + dice.choice(_TAILS) + behind


def _spaced(dice: Random, format: Format, text: str) -> str:
    """Blanks beside the special tokens, as detokenizers write them."""
    for token in sorted(_tokens(format)):
        blank = dice.choice(("", " ", "\n"))
        text = text.replace(token, dice.choice((blank + token, token + blank)))
    return text


def _tokens(format: Format) -> set[str]:
    fields = [*format.call, *(format.section or ())]
    fields += [marker for body in format.bodies for marker in BODIES[type(body)].opening(body)[:1]]
    marked = [text for marker in fields for text in marker_alternatives(marker) if isinstance(text, Special)]
    return {token for text in marked for token in text.tokens}


def judge(format: Format, case: Case, tools: Toolset | None, how: How = USUAL) -> list[Violation]:
    return opener_law(format, case.text, tools=tools, how=how)
