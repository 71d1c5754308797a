"""Samples of replies: a piece of the text around a finding, with its spans and without secrets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b

import msgspec

from rightcall.evaluation.reports.findings import LoggedReply, ReplyFinding
from rightcall.redaction.scrubber import Scrubber
from rightcall.types import Reply, Span

SAMPLES_PER_FINDING = 2  # in each group
_BEFORE, _SIZE = 200, 640  # characters before the finding, and of the whole sample
_LONG = 2_000  # a reply beyond this is a sample only if there is no shorter one
_WORD = re.compile(r"\s*+[^\s>]{1,60}+>?").match
_HALF = re.compile("[\ud800-\udfff]")
_MASK = "\u2022"  # replaces each character of a secret


class SampleKey(msgspec.Struct, frozen=True, order=True):
    """The order in which samples are preferred: short before long, then by a digest, which is a random choice that the
    order of the log does not change."""

    is_long: bool
    digest: str


class ReplySample(msgspec.Struct, frozen=True):
    """A piece of a reply.

    - `key`: the order in which samples are preferred.
    - `path`, `line`: the place of the reply in the log.
    - `text`: the piece, with secrets masked.
    - `spans`: its spans; together they cover the piece.
    - `found`: the start and end of the finding in the piece.
    - `before`, `after`: how many characters of the reply were left out on either side.
    - `says`: the message of the finding.
    - `cut`: the finding is the end of the text.
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


def replace_surrogates(text: str) -> str:
    """Return the text with U+FFFD for each unpaired surrogate, so that it can be encoded as UTF-8."""
    return _HALF.sub("\ufffd", text)


def sample_key(logged: LoggedReply) -> SampleKey:
    """Return the key by which samples of this reply are ordered: whether its text is long, and a digest. Equal texts
    have equal keys."""
    text = logged.source if logged.source is not None else _reply_text(logged.reply)
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return SampleKey(len(text) > _LONG, digest)


def _reply_text(reply: Reply) -> str:
    """Return content, reasoning and calls of a reply as one text, for a digest."""
    calls = [f"{call.name}\0{call.raw or call.json}" for call in reply.attempts]
    return "\0".join((reply.content, reply.reasoning, *calls))


def is_preferred(kept: Sequence[ReplySample], key: SampleKey, logged: LoggedReply) -> bool:
    """Return whether a sample of this reply, with this `key`, should be added to those that are `kept` or replace one
    of them: there is space, its key is smaller than the last one's, or it is an earlier place of a text that is
    kept."""
    same = next((each for each in kept if each.key == key), None)
    if same is not None:
        return (logged.path, logged.line) < (same.path, same.line)
    return len(kept) < SAMPLES_PER_FINDING or key < kept[-1].key


def choose_samples(samples: Sequence[ReplySample]) -> tuple[ReplySample, ...]:
    """Return the samples to keep: the first `SAMPLES_PER_FINDING` in the order of their keys, each text once."""
    by_key: dict[SampleKey, ReplySample] = {}
    for each in sorted(samples, key=lambda each: each.order):
        by_key.setdefault(each.key, each)
    return tuple(list(by_key.values())[:SAMPLES_PER_FINDING])


def sample_of(logged: LoggedReply, finding: ReplyFinding, key: SampleKey) -> ReplySample:
    """Return the part of a reply around a `finding` as a sample, at most 640 characters, with secrets masked. `key`
    becomes the sample's key."""
    text, spans = logged.view()
    start, end = _find_place(logged, finding, text)
    first = max(0, min(start - _BEFORE, len(text) - _SIZE))
    last = min(len(text), first + _SIZE)
    inside = [Span(max(s.start, first) - first, min(s.end, last) - first, s.kind) for s in spans]
    return ReplySample(
        key,
        logged.path,
        logged.line,
        _mask_secrets(text)[first:last],
        tuple([span for span in inside if span.end > span.start]),
        (start - first, max(start, min(end, last)) - first),
        first,
        len(text) - last,
        _mask_secrets(finding.says),
        finding.finding.kind == "cut",
    )


def _find_place(logged: LoggedReply, finding: ReplyFinding, text: str) -> tuple[int, int]:
    """Return start and end of the finding in the `text` of the reply: of its call, of its token, or its place, extended
    to a word if it is empty. The end of the text twice if its place is unknown."""
    place = finding.place
    if finding.call is not None:
        places = logged.call_places(text)
        place = places[finding.call] if finding.call < len(places) else None
    elif finding.token and (at := text.find(finding.token)) >= 0:
        place = at, at + len(finding.token)
    if place is None or place[0] > len(text):
        return len(text), len(text)
    word = _WORD(text, place[0]) if place[0] == place[1] else None
    return place[0], word.end() if word else min(place[1], len(text))


def _mask_secrets(text: str) -> str:
    """Return the text with every character of a secret replaced by a dot, since reports are passed on."""
    text = replace_surrogates(text)
    pieces: list[str] = []
    at = 0
    for secret in Scrubber().find_secrets(text):
        pieces += [text[at : secret.start], _MASK * (secret.end - secret.start)]
        at = secret.end
    return "".join([*pieces, text[at:]])
