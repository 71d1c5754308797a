"""What became of replies, counted by model, server and format: a value that merges, whose size has a bound.

    tally = ReplyTally()
    tally.add(LoggedReply(parse(text, tools=tools), model="qwen3", server="vllm", source=text))
    tally.merge(another)                 # the parts of a log may be counted anywhere, and merged in any order
    tally.total.share("may_run").rate

A reply may have several *findings*: a rule that repaired a call, a code that refused one, and what went wrong with the
reply itself. Of each, a group keeps two samples: those whose digests are the smallest, so that the same log gives the
same samples however it was divided.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from rightcall.evaluation.reports.findings import Finding, Noted, findings
from rightcall.evaluation.reports.logged_reply import LoggedReply
from rightcall.evaluation.reports.reply_samples import ReplySample, carried, few, is_wanted, sample_key, sample_of
from rightcall.evaluation.reports.significance import interval

REST = "(the rest)"
_MOST_GROUPS = 200
_LONGEST_NAME = 200

# What is counted, and what it is a part of.
MEASURES: dict[str, str] = {
    "may_run": "calls",
    "as_written": "calls",
    "repaired": "calls",
    "refused": "calls",
    "near": "replies",
    "cut": "replies",
    "leaked": "replies",
    "calling": "replies",
    "troubled": "replies",
}


class Share(msgspec.Struct, frozen=True):
    """A part of a whole."""

    part: int
    whole: int

    @property
    def rate(self) -> float:
        """The part as a fraction; 0 of nothing."""
        return self.part / self.whole if self.whole else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Between which rates the true one lies, with 95 % (Wilson)."""
        return interval(self.part, self.whole)


class ReplyGroup(msgspec.Struct):
    """The replies of one model through one server in one format, counted.

    - `counts`: replies, calls, and every measure.
    - `found`: how many calls, or replies, each finding was in.
    - `samples`: a few of each finding.
    """

    counts: Counter[str] = msgspec.field(default_factory=Counter)
    found: Counter[Finding] = msgspec.field(default_factory=Counter)
    samples: dict[Finding, tuple[ReplySample, ...]] = msgspec.field(default_factory=dict)

    def share(self, measure: str) -> Share:
        """A measure as a part of the calls, or of the replies."""
        return Share(self.counts[measure], self.counts[MEASURES[measure]])

    def finding_share(self, finding: Finding) -> Share:
        """How many of the calls, or of the replies, have the finding."""
        return Share(self.found[finding], self.counts[MEASURES[finding.kind]])

    def add(self, logged: LoggedReply) -> None:
        noted = findings(logged)
        self.counts.update(_counted(logged, noted))
        if noted:
            self._keep(logged, noted)

    def _keep(self, logged: LoggedReply, noted: list[Noted]) -> None:
        key = sample_key(logged)
        for each in noted:
            self.found[each.finding] += 1
            kept = self.samples.get(each.finding, ())
            if is_wanted(kept, key, logged):
                self.samples[each.finding] = few((*kept, sample_of(logged, each, key)))

    def merge(self, other: ReplyGroup) -> None:
        self.counts.update(other.counts)
        self.found.update(other.found)
        for finding, samples in other.samples.items():
            self.samples[finding] = few((*self.samples.get(finding, ()), *samples))


def _counted(logged: LoggedReply, noted: list[Noted]) -> Counter[str]:
    attempts = logged.reply.attempts
    counts = Counter(calls=len(attempts), may_run=sum([call.ok for call in attempts]))
    counts["refused"] = counts["calls"] - counts["may_run"]
    counts["repaired"] = sum([bool(call.repairs) for call in attempts if call.ok])
    counts["as_written"] = counts["may_run"] - counts["repaired"]
    if logged.is_first:
        kinds = {each.finding.kind for each in noted}
        counts.update(["replies", *kinds & {"near", "cut", "leaked"}])
        counts["calling"] = int(bool(attempts))
        counts["troubled"] = int(bool(kinds - {"repaired"}))
    return +counts


class GroupKey(NamedTuple):
    """By what replies are grouped. Empty where a log does not say."""

    model: str
    server: str
    format: str


class ReplyTally(msgspec.Struct):
    """The replies of a log by model, server and format. Of more groups than `_MOST_GROUPS` those with the smallest
    digests are kept apart, and the others counted together: whatever a log holds, memory has a bound, and the order in
    which its parts were merged changes nothing. `bad` are lines that hold no reply."""

    groups: dict[GroupKey, ReplyGroup] = msgspec.field(default_factory=dict)
    rest: ReplyGroup = msgspec.field(default_factory=ReplyGroup)
    bad: int = 0

    def add(self, logged: LoggedReply) -> None:
        """One more reply."""
        names = (logged.model, logged.server, logged.format)
        self._group(GroupKey(*[carried(name[:_LONGEST_NAME]) for name in names])).add(logged)

    def merge(self, other: ReplyTally) -> None:
        """What another part of the log came to."""
        for key, group in other.groups.items():
            self._group(key).merge(group)
        self.rest.merge(other.rest)
        self.bad += other.bad

    def _group(self, key: GroupKey) -> ReplyGroup:
        found = self.groups.get(key)
        if found is not None:
            return found
        if len(self.groups) >= _MOST_GROUPS:
            last = max(self.groups, key=_rank)
            if _rank(key) > _rank(last):
                return self.rest
            self.rest.merge(self.groups.pop(last))
        return self.groups.setdefault(key, ReplyGroup())

    @property
    def total(self) -> ReplyGroup:
        """All groups together."""
        return _together([*self.groups.values(), self.rest])

    def largest(self) -> list[tuple[GroupKey, ReplyGroup]]:
        """The groups, those with the most replies first; then by name."""
        ordered = sorted(self.groups.items(), key=lambda item: (-item[1].counts["replies"], item[0]))
        rest = [(GroupKey(REST, "", ""), self.rest)] if self.rest.counts else []
        return [*ordered, *rest]

    def models(self) -> dict[str, ReplyGroup]:
        """The same by model alone."""
        named: dict[str, list[ReplyGroup]] = {}
        for key, group in self.largest():
            named.setdefault(key.model, []).append(group)
        return {model: _together(groups) for model, groups in named.items()}


def _together(groups: list[ReplyGroup]) -> ReplyGroup:
    total = ReplyGroup()
    for group in groups:
        total.merge(group)
    return total


@lru_cache(2 * _MOST_GROUPS)
def _rank(key: GroupKey) -> bytes:
    return blake2b("\0".join(key).encode("utf-8", "surrogatepass"), digest_size=16).digest()
