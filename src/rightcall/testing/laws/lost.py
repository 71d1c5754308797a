"""The nothing-lost law: the spans cover the text, and agree with the parts of the reply."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from rightcall.formats.body_kinds import BODIES
from rightcall.formats.registered import KnownFormats, known_formats
from rightcall.formats.spec import Format, Special, marker_alternatives
from rightcall.formats.turn_ends import LAST_TOKENS
from rightcall.parsing.compile import THINK
from rightcall.testing.laws.marker_texts import literals, marker_templates, pattern
from rightcall.testing.laws.samples import Violation
from rightcall.types import Reply, Span

_STAYS = {"call_in_reasoning", "call_in_open_reasoning"}  # such a call remains in the reasoning as well
# A code fence around calls belongs to their markers, also if its end is missing, and so do the brackets of a list.
_IGNORABLE = re.compile(r"(?:```|~~~)[^`\n]{0,64}\n|(?:```|~~~)[A-Za-z_0-9]{0,16}|`{1,2}\Z|[\s\[\],;}{)]")
_TRUNCATION_CODES = ("truncated", "stray_marker")  # the text may end inside a marker
_REMOVED_BY_REPAIR = ("comment", "code_fence")  # may be between a call and its closing marker


def nothing_lost_law(format: str | Format, text: str, reply: Reply) -> list[Violation]:
    """Return a list with one violation unless every character of the `text` belongs to the text, the reasoning, a call
    or a marker of this `reply`, which was parsed in this `format` with spans; and spans of markers contain nothing but
    markers, and text that a repair names. Otherwise return []."""
    what = _coverage_fault(text, reply) or _content_fault(text, reply) or _marker_fault(format, text, reply)
    return [Violation("nothing lost", what, text)] if what else []


def _coverage_fault(text: str, reply: Reply) -> str:
    """Return a description of what is wrong with the spans of a reply: they must cover the text without gaps and
    overlaps, and the raw text of each call must be in it. "" if nothing is."""
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


def _content_fault(text: str, reply: Reply) -> str:
    """Return a description of how the spans of text, reasoning and calls differ from the parts of the reply, but for
    white space; "" if they do not."""
    spanned = {
        kind: _without_blanks(_spanned_text(text, reply.spans or (), kind)) for kind in ("text", "reasoning", "call")
    }
    codes = {problem.code for problem in reply.problems}
    raws = [_without_blanks(call.raw) for call in reply.attempts]
    if "rescued" in codes:  # text around such calls belongs to their spans
        right = _are_in_order(raws, spanned["call"])
    else:
        right = bool(codes & _STAYS) or spanned["call"] == "".join(raws)
    if not right:
        return f"the spans of calls hold {spanned['call']!r}, the calls {raws!r}"
    content = {"reasoning": _without_blanks(reply.reasoning), "text": _without_blanks(reply.content)}
    if _has_text_in_json(reply.format):
        content["text"] = spanned["text"]
    for kind, want in content.items():
        if spanned[kind] != want:
            return f"the spans of {kind} hold {spanned[kind]!r}, the parts {want!r}"
    return ""


def _are_in_order(pieces: list[str], text: str) -> bool:
    """Return whether `text` contains all pieces in this order, without overlaps."""
    at = 0
    for piece in pieces:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True


def _spanned_text(text: str, spans: tuple[Span, ...], kind: str) -> str:
    """Return the text of all spans of this kind, joined."""
    return "".join([text[span.start : span.end] for span in spans if span.kind == kind])


def _without_blanks(text: str) -> str:
    """Return the text without white space."""
    return "".join(text.split())


def _has_text_in_json(format: str) -> bool:
    """Return whether the text of a reply in the format of this name may be inside JSON; False for an unknown name."""
    known = known_formats().formats.get(format)
    return known is not None and any(BODIES[type(body)].content_key(body) for body in known.bodies)


def _marker_fault(format: str | Format, text: str, reply: Reply) -> str:
    """Return a description of text that was lost in the span of a marker; "" if none was, and for formats that are not
    checked: unknown ones, those with message headers or a protocol, and those with JSON around calls."""
    known = format if isinstance(format, Format) else known_formats().formats.get(reply.format or format)
    if known is None or known.channels or known.protocol or _has_text_in_json(known.name):
        return ""
    rescued = any(problem.code == "rescued" for problem in reply.problems)
    own = _any_marker_pattern(known_formats()) if rescued else _own_marker_pattern(known, format == "auto")
    end = _parsed_end(text, reply)
    removed = [each.before for call in reply.attempts for each in call.repairs if each.rule in _REMOVED_BY_REPAIR]
    is_cut = any(problem.code in _TRUNCATION_CODES for problem in reply.problems)
    for span in reply.spans or ():
        inside = _without_edges(known, text, span, end) if span.kind == "marker" else ""
        inside = _cut_marker_pattern(known).sub("", inside) if is_cut and inside and span.end == len(text) else inside
        # Text that a repair removed may contain a marker, or the beginning of one.
        rest = _IGNORABLE.sub("", _remove_each(removed, own.sub("", inside)))
        if rest and _IGNORABLE.sub("", own.sub("", _remove_each(removed, inside))):
            return f"{rest!r} was lost in a marker: {text[span.start : span.end]!r}"
    return ""


def _remove_each(removed: list[str], text: str) -> str:
    """Return the text without the first occurrence of each of the texts `removed`."""
    for each in removed:
        text = text.replace(each, "", 1)
    return text


def _start_of_final_tokens(text: str, start: int) -> int:
    """Return the index, not before `start`, behind which the text is nothing but end-of-turn tokens and blanks; its
    length if no token ends it."""
    first = end = len(text)
    while True:
        while end > start and text[end - 1].isspace():
            end -= 1
        token = next((token for token in LAST_TOKENS if text.endswith(token, start, end)), "")
        if not token:
            return first
        first = end = end - len(token)


def _without_edges(format: Format, text: str, span: Span, end: int) -> str:
    """Return the text of a marker's span without what may be incomplete: an opener at the start of the text that lacks
    its first token, end-of-turn tokens at the end, and, if the span reaches `end`, a truncated closing marker."""
    inside = text[span.start : min(span.end, _start_of_final_tokens(text, span.start))]
    inside = inside if span.start else _startless_opener_pattern(format).sub("", inside)
    return inside if span.end < end else _cut_closer_pattern(format).sub("", inside)


def _parsed_end(text: str, reply: Reply) -> int:
    """Return the position in the text where parsing ended: before the last span if a limit was reached, else the end of
    the text."""
    limited = any(problem.code == "too_large" and problem.call is None for problem in reply.problems)
    return reply.spans[-1].start if limited and reply.spans else len(text)


def _startless_opener_pattern(format: Format) -> re.Pattern[str]:
    """Return a pattern that matches, at the start of a text, an opener of a call or of reasoning without its first
    special token, which the prompt may end with; one that matches nothing if there is no such opener."""
    sides = [format.call[0], *((format.reasoning or ())[:1])]
    openers = [text for side in sides for text in marker_alternatives(side) if isinstance(text, Special)]
    cut = [text.removeprefix(token).strip() for text in openers for token in text.tokens[:1]]
    return pattern("|".join([rf"\A\s*{_loose_pattern(text)}" for text in cut if text]) or "(?!)")


def _cut_closer_pattern(format: Format) -> re.Pattern[str]:
    """Return a pattern that matches, at the end of a text, a truncated closing marker of a call, its body or its
    section; one that matches nothing if there are no such markers."""
    sides = [format.call[1], *(format.section or ())[1:], *[BODIES[type(body)].closing(body) for body in format.bodies]]
    closes = [text.strip() for side in sides for text in marker_alternatives(side) if "{" not in text]
    begun = {text[:size] for text in closes for size in range(1, len(text))}
    return pattern("|".join([rf"{re.escape(text)}\Z" for text in sorted(begun, key=len, reverse=True)]) or "(?!)")


def _cut_marker_pattern(format: Format) -> re.Pattern[str]:
    """Return a pattern that matches, at the end of a text, a truncated marker that begins with a special token; one
    that matches nothing if the format has no such marker."""
    begun: set[str] = set()
    for text in (*marker_templates(format), *format.ends):
        first = text.tokens[0] if isinstance(text, Special) and text.tokens else ""
        if first and text.strip().startswith(first):
            begun.update(_prefix_patterns(first, str(text).strip()[len(first) :]))
    return pattern("|".join([rf"{each}\Z" for each in sorted(begun, key=len, reverse=True)]) or "(?!)")


def _prefix_patterns(first: str, rest: str) -> list[str]:
    """Return patterns of the prefixes of a marker, ascending by length, from its token `first` and one more character
    on. `rest` is the marker after the token; a placeholder matches any word."""
    found, lead = [], re.escape(first) + r"\s*+"
    for piece in re.split(r"(\{\w+\})", rest):
        is_hole = piece.startswith("{") and piece.endswith("}")
        sizes = range(1, len(piece) + 1)
        found += [lead + r"\S{0,256}"] if is_hole else [lead + _loose_pattern(piece[:size]) for size in sizes]
        lead += _loose_pattern(piece)
    return found


def _reasoning_markers(format: Format) -> list[str]:
    """Return the markers of reasoning of a format, with their alternatives."""
    return [text for side in format.reasoning or () for text in marker_alternatives(side)]


@lru_cache(4)
def _any_marker_pattern(formats: KnownFormats) -> re.Pattern[str]:
    """Return a pattern that matches a marker of any of the formats, a literal piece of one, or a JSON key, for calls in
    another format than the reply's."""
    found = {
        text for known in formats.formats.values() for text in (*marker_templates(known), *literals(known), *known.ends)
    }
    longest = sorted(found, key=len, reverse=True)
    return pattern("|".join([*(_loose_pattern(text.strip()) for text in longest if text.strip()), r'"\w+"\s*:']))


def _own_marker_pattern(format: Format, unknown: bool) -> re.Pattern[str]:
    """Return a pattern that matches a marker of a format, a literal piece of one, or a usual tag of reasoning; with
    `unknown`, for a format that was detected, also end-of-turn tokens and reasoning markers of all formats."""
    of_all_formats: set[str] = set()
    if unknown:
        for known in known_formats().formats.values():
            of_all_formats |= {*known.ends, *_reasoning_markers(known)}
    tokens = {token for text in marker_templates(format) for token in getattr(text, "tokens", ())}
    found = sorted(
        {*marker_templates(format), *literals(format), *of_all_formats, *tokens, *map(str, THINK)},
        key=len,
        reverse=True,
    )
    return pattern("|".join(_loose_pattern(text.strip()) for text in found if text.strip()) or "(?!)")


def _loose_pattern(marker: str) -> str:
    """Return a pattern that matches a marker with any text for its placeholders, any or no white space for its white
    space, and optional white space next to its special tokens and tags."""
    tokens = getattr(marker, "tokens", ())
    if len(tokens) and marker not in tokens:
        parts = re.split("(" + "|".join(map(re.escape, tokens)) + ")", str(marker))
        return r"\s*+".join([_loose_pattern(part.strip()) for part in parts if part.strip()])
    pieces = re.split(r"(\{(?:name|key|type|id|index|number|cite)\}|\s+|(?<=>)(?=\w)|(?<=\w)(?=<))", marker)
    return "".join([_loose_piece(piece) for piece in pieces if piece is not None])


def _loose_piece(piece: str) -> str:
    """Return a pattern for a piece of a marker: optional white space for white space, any text for a placeholder, else
    the piece itself."""
    if not piece.strip():
        return r"\s*+"
    if piece in ("{key}", "{cite}"):
        return r"[^\r\n]{1,256}?"
    return r"\S{1,256}?" if re.fullmatch(r"\{[a-z]+\}", piece) else re.escape(piece)
