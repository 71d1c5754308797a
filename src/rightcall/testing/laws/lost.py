"""Nothing is lost: the spans tile the text, and what they say it became is what the reply holds."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from rightcall.formats.body_kinds import BODIES
from rightcall.formats.registered import KnownFormats, known_formats
from rightcall.formats.spec import Format, Special, marker_alternatives
from rightcall.formats.turn_ends import LAST_TOKENS
from rightcall.parsing.compile import THINK
from rightcall.testing.laws.case import Violation
from rightcall.testing.laws.marker_texts import literals, pattern, templates
from rightcall.types import Reply, Span

_STAYS = {"call_in_reasoning", "call_in_open_reasoning"}  # such a call stays in the reasoning as well
# A code fence around the calls of a block goes with its markers, also where its end was cut off, and so do the brackets
# of a list.
_NO_TEXT = re.compile(r"(?:```|~~~)[^`\n]{0,64}\n|(?:```|~~~)[A-Za-z_0-9]{0,16}|`{1,2}\Z|[\s\[\],;}{)]")
_LAST = re.compile(rf"(?:(?:{'|'.join(map(re.escape, LAST_TOKENS))})\s*+)++\Z")
_CUT = ("truncated", "stray_marker")  # what tells that the text ends inside a marker
_BESIDE = ("comment", "code_fence")  # what may stand between a call and its close, and leaves a receipt


def nothing_lost_law(format: str | Format, text: str, reply: Reply) -> list[Violation]:
    """Every character of the `text` is text, reasoning, a call's or a marker's in this `reply`, which was read in this
    `format` with its spans; under a marker there is nothing but markers, and what has a receipt."""
    what = _tiles(text, reply) or _holds(text, reply) or _under_markers(format, text, reply)
    return [Violation("nothing lost", what, text)] if what else []


def _tiles(text: str, reply: Reply) -> str:
    spans = reply.spans or ()
    edges = [0, *(span.end for span in spans)]
    if (
        [span.start for span in spans] != edges[:-1]
        or edges[-1] != len(text)
        or any(a == b for a, b in pairwise(edges))
    ):
        return "the spans do not tile the text"
    return next(
        (
            f"what call {i + 1} was read from is not in the text"
            for i, call in enumerate(reply.attempts)
            if call.raw not in text
        ),
        "",
    )


def _holds(text: str, reply: Reply) -> str:
    became = {kind: _solid(_under(text, reply.spans or (), kind)) for kind in ("text", "reasoning", "call")}
    codes = {problem.code for problem in reply.problems}
    raws = [_solid(call.raw) for call in reply.attempts]
    if "rescued" in codes:  # what stands around such calls counts as theirs
        right = _in_order(raws, became["call"])
    else:
        right = bool(codes & _STAYS) or became["call"] == "".join(raws)
    if not right:
        return f"the spans of calls hold {became['call']!r}, the calls {raws!r}"
    held = {"reasoning": _solid(reply.reasoning), "text": _solid(reply.content)}
    if _says_text_in_json(reply.format):
        held["text"] = became["text"]
    for kind, want in held.items():
        if became[kind] != want:
            return f"the spans of {kind} hold {became[kind]!r}, the parts {want!r}"
    return ""


def _in_order(pieces: list[str], text: str) -> bool:
    at = 0
    for piece in pieces:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def _under(text: str, spans: tuple[Span, ...], kind: str) -> str:
    return "".join([text[span.start : span.end] for span in spans if span.kind == kind])


def _solid(text: str) -> str:
    return "".join(text.split())


def _says_text_in_json(format: str) -> bool:
    known = known_formats().formats.get(format)
    return known is not None and any(BODIES[type(body)].content_key(body) for body in known.bodies)


def _under_markers(format: str | Format, text: str, reply: Reply) -> str:
    """Text that went under in a marker. A header, or JSON around the calls, may say anything."""
    known = format if isinstance(format, Format) else known_formats().formats.get(reply.format or format)
    if known is None or known.channels or known.protocol or _says_text_in_json(known.name):
        return ""
    rescued = any(problem.code == "rescued" for problem in reply.problems)
    own = _any_markers(known_formats()) if rescued else _own_markers(known, format == "auto")
    read = _read_until(text, reply)
    told = [each.before for call in reply.attempts for each in call.repairs if each.rule in _BESIDE]
    is_cut = any(problem.code in _CUT for problem in reply.problems)
    for span in reply.spans or ():
        under = _but_edges(known, text, span, read) if span.kind == "marker" else ""
        under = _cut_marker(known).sub("", under) if is_cut and under and span.end == len(text) else under
        # What has a receipt may hold a marker, or look like the beginning of one.
        rest = _NO_TEXT.sub("", _without(told, own.sub("", under)))
        if rest and _NO_TEXT.sub("", own.sub("", _without(told, under))):
            return f"{rest!r} went under in a marker: {text[span.start : span.end]!r}"
    return ""


def _without(told: list[str], under: str) -> str:
    """What a span holds, without what stood beside a call and has its receipt."""
    for each in told:
        under = under.replace(each, "", 1)
    return under


def _but_edges(format: Format, text: str, span: Span, read: int) -> str:
    """What a span holds, without a marker that the prompt began or that was cut off, and what any model ends with."""
    last = _LAST.search(text, span.start)
    under = text[span.start : min(span.end, last.start() if last else span.end)]
    under = under if span.start else _begun(format).sub("", under)
    return under if span.end < read else _cut_close(format).sub("", under)


def _read_until(text: str, reply: Reply) -> int:
    """Where the reading ended: what stands behind a limit of the reply is text, and was not read."""
    limited = any(problem.code == "too_large" and problem.call is None for problem in reply.problems)
    return reply.spans[-1].start if limited and reply.spans else len(text)


def _begun(format: Format) -> re.Pattern[str]:
    """Matches an opener without its first token, which the prompt may have ended with, where a reply begins."""
    sides = [format.call[0], *((format.reasoning or ())[:1])]
    openers = [text for side in sides for text in marker_alternatives(side) if isinstance(text, Special)]
    cut = [text.removeprefix(token).strip() for text in openers for token in text.tokens[:1]]
    return pattern("|".join([rf"\A\s*{_loose(text)}" for text in cut if text]) or "(?!)")


def _cut_close(format: Format) -> re.Pattern[str]:
    """Matches the beginning of what closes a call, its body or its section, where the text was cut off inside of it."""
    sides = [format.call[1], *(format.section or ())[1:], *[BODIES[type(body)].closing(body) for body in format.bodies]]
    closes = [text.strip() for side in sides for text in marker_alternatives(side) if "{" not in text]
    begun = {text[:size] for text in closes for size in range(1, len(text))}
    return pattern("|".join([rf"{re.escape(text)}\Z" for text in sorted(begun, key=len, reverse=True)]) or "(?!)")


def _cut_marker(format: Format) -> re.Pattern[str]:
    """Matches the beginning of a marker, from its first token on, where the text was cut off inside of it."""
    begun: set[str] = set()
    for text in (*templates(format), *format.ends):
        first = text.tokens[0] if isinstance(text, Special) and text.tokens else ""
        if first and text.strip().startswith(first):
            begun.update(_beginnings(first, str(text).strip()[len(first) :]))
    return pattern("|".join([rf"{each}\Z" for each in sorted(begun, key=len, reverse=True)]) or "(?!)")


def _beginnings(first: str, rest: str) -> list[str]:
    found, lead = [], re.escape(first) + r"\s*+"
    for piece in re.split(r"(\{\w+\})", rest):
        is_hole = piece.startswith("{") and piece.endswith("}")
        sizes = range(1, len(piece) + 1)
        found += [lead + r"\S{0,256}"] if is_hole else [lead + _loose(piece[:size]) for size in sizes]
        lead += _loose(piece)
    return found


def _thought(format: Format) -> list[str]:
    return [text for side in format.reasoning or () for text in marker_alternatives(side)]


@lru_cache(4)
def _any_markers(formats: KnownFormats) -> re.Pattern[str]:
    """Matches a marker of any format, or a key of the JSON around a call: of calls that were written in another way."""
    found = {text for known in formats.formats.values() for text in (*templates(known), *literals(known), *known.ends)}
    longest = sorted(found, key=len, reverse=True)
    return pattern("|".join([*(_loose(text.strip()) for text in longest if text.strip()), r'"\w+"\s*:']))


def _own_markers(format: Format, unknown: bool) -> re.Pattern[str]:
    """Matches a marker of the format, or a piece of one, or the tags of reasoning that any reply may begin with. Where
    the format is not known, any end-of-turn token too, and what opens or closes reasoning."""
    ends = {end for known in known_formats().formats.values() for end in known.ends} if unknown else set[str]()
    ends |= {text for known in known_formats().formats.values() for text in _thought(known)} if unknown else set()
    tokens = {token for text in templates(format) for token in getattr(text, "tokens", ())}
    found = sorted({*templates(format), *literals(format), *ends, *tokens, *map(str, THINK)}, key=len, reverse=True)
    return pattern("|".join(_loose(text.strip()) for text in found if text.strip()) or "(?!)")


def _loose(marker: str) -> str:
    """A marker with anything in its holes, and white space where it has white space or stands beside a token."""
    tokens = getattr(marker, "tokens", ())
    if len(tokens) and marker not in tokens:
        parts = re.split("(" + "|".join(map(re.escape, tokens)) + ")", str(marker))
        return r"\s*+".join([_loose(part.strip()) for part in parts if part.strip()])
    pieces = re.split(r"(\{(?:name|key|type|id|index|number|cite)\}|\s+|(?<=>)(?=\w)|(?<=\w)(?=<))", marker)
    return "".join([_loosened(piece) for piece in pieces if piece is not None])


def _loosened(piece: str) -> str:
    if not piece.strip():
        return r"\s*+"
    if piece in ("{key}", "{cite}"):
        return r"[^\r\n]{1,256}?"
    return r"\S{1,256}?" if re.fullmatch(r"\{[a-z]+\}", piece) else re.escape(piece)
