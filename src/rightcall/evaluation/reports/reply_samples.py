"""Real replies to look at: a piece of the text around what was found, and what became of every character of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from rightcall.evaluation.reports.findings import Noted
from rightcall.evaluation.reports.logged_reply import LoggedReply
from rightcall.redaction.scrubber import Scrubber
from rightcall.types import Reply, Span

KEPT = 2  # samples of each finding in each group
_BEFORE, _SIZE = 200, 640  # characters shown before what was found, and in all
_LONG = 2_000  # a reply beyond this is a sample only if there is no shorter one
_WORD = re.compile(r"\s*+[^\s>]{1,60}+>?").match
_HALF = re.compile("[\ud800-\udfff]")
_HIDDEN = "\u2022"  # stands for each character of a secret


class SampleKey(msgspec.Struct, frozen=True, order=True):
    """By this samples are chosen: short before long, then by a digest, which is as good as by lot."""

    is_long: bool
    digest: str


class ReplySample(msgspec.Struct, frozen=True):
    """A piece of a reply.

    - `key`: by which it was chosen.
    - `path`, `line`: its place in the log.
    - `text`: the piece; of what looks like a secret only the length is left.
    - `spans`: what became of it; they tile the piece.
    - `found`: where in it stands what was found.
    - `before`, `after`: how many characters of the reply were left out on either side.
    - `says`: what is said of it: the message, or what became of what.
    - `cut`: the end of the text is what it is about.
    """

    key: SampleKey
    path: str
    line: int
    text: str
    spans: tuple[Span, ...]
    found: tuple[int, int]
    before: int
    after: int
    says: str
    cut: bool = False

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def order(self) -> tuple[SampleKey, str, int]:
        return self.key, self.path, self.line


def carried(text: str) -> str:
    """The text as UTF-8 can say it: U+FFFD stands for half of a surrogate pair."""
    return _HALF.sub("\ufffd", text)


def sample_key(logged: LoggedReply) -> SampleKey:
    said = logged.source if logged.source is not None else _said(logged.reply)
    digest = blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return SampleKey(len(said) > _LONG, digest)


def _said(reply: Reply) -> str:
    calls = [f"{call.name}\0{call.raw or call.json}" for call in reply.attempts]
    return "\0".join((reply.content, reply.reasoning, *calls))


def is_wanted(kept: Sequence[ReplySample], key: SampleKey, logged: LoggedReply) -> bool:
    """Would this one be kept beside those? A log may say the same a million times."""
    same = next((each for each in kept if each.key == key), None)
    if same is not None:
        return (logged.path, logged.line) < (same.path, same.line)
    return len(kept) < KEPT or key < kept[-1].key


def few(samples: Sequence[ReplySample]) -> tuple[ReplySample, ...]:
    """Those that are kept of several: the first by their keys, each text once."""
    by_key: dict[SampleKey, ReplySample] = {}
    for each in sorted(samples, key=lambda each: each.order):
        by_key.setdefault(each.key, each)
    return tuple(list(by_key.values())[:KEPT])


def sample_of(logged: LoggedReply, noted: Noted, key: SampleKey) -> ReplySample:
    """The piece of the reply around what was noted."""
    text, spans = logged.view()
    start, end = _place(logged, noted, text)
    first = max(0, min(start - _BEFORE, len(text) - _SIZE))
    last = min(len(text), first + _SIZE)
    inside = [Span(max(s.start, first) - first, min(s.end, last) - first, s.kind) for s in spans]
    return ReplySample(
        key,
        logged.path,
        logged.line,
        _masked(text)[first:last],
        tuple([span for span in inside if span.end > span.start]),
        (start - first, max(start, min(end, last)) - first),
        first,
        len(text) - last,
        _masked(noted.says),
        noted.finding.kind == "cut",
    )


def _place(logged: LoggedReply, noted: Noted, text: str) -> tuple[int, int]:
    """Where what was noted stands; the end of the text where nothing tells."""
    place = noted.place
    if noted.call is not None:
        places = logged.call_places(text)
        place = places[noted.call] if noted.call < len(places) else None
    elif noted.token and (at := text.find(noted.token)) >= 0:
        place = at, at + len(noted.token)
    if place is None or place[0] > len(text):
        return len(text), len(text)
    word = _WORD(text, place[0]) if place[0] == place[1] else None
    return place[0], word.end() if word else min(place[1], len(text))


def _masked(text: str) -> str:
    """The text with every secret hidden, of the same length: the page may be mailed."""
    text = carried(text)
    pieces: list[str] = []
    at = 0
    for secret in Scrubber().found(text):
        pieces += [text[at : secret.start], _HIDDEN * (secret.end - secret.start)]
        at = secret.end
    return "".join([*pieces, text[at:]])
