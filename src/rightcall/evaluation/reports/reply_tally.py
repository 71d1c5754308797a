"""A tally of replies by model, server and format. It can be merged, and its size is bounded.

    tally = ReplyTally()
    tally.add(LoggedReply(reply=parse(text, tools=tools), model="qwen3", server="vllm", source=text))
    tally.merge(another)
    tally.total.share("may_run").rate

Parts of a log may be counted in any process and merged in any order. Of each finding a group keeps two samples, those
with the smallest digests, so that the same log yields the same samples however it was divided. `pack_tally` and
`unpack_tally` carry a tally between processes.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from rightcall.evaluation.reports.findings import Finding, LoggedReply, ReplyFinding, find_findings
from rightcall.evaluation.reports.reply_samples import (
    ReplySample,
    choose_samples,
    is_preferred,
    replace_surrogates,
    sample_key,
    sample_of,
)
from rightcall.evaluation.reports.significance import interval

REST = "(the rest)"
_MAX_GROUPS = 200
_MAX_NAME = 200

# What is counted, and the total of which it is a part.
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
    """A number of cases out of a whole."""

    part: int
    whole: int

    @property
    def rate(self) -> float:
        """The part as a fraction; 0 if the whole is empty."""
        return self.part / self.whole if self.whole else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the true rate (Wilson)."""
        return interval(self.part, self.whole)


class ReplyGroup(msgspec.Struct):
    """The counts of the replies of one model, server and format.

    - `counts`: replies, calls, and every measure.
    - `found`: how many calls, or replies, have each finding.
    - `samples`: a few samples of each finding.
    """

    counts: Counter[str] = msgspec.field(default_factory=Counter)
    found: Counter[Finding] = msgspec.field(default_factory=Counter)
    samples: dict[Finding, tuple[ReplySample, ...]] = msgspec.field(default_factory=dict)

    def share(self, measure: str) -> Share:
        """Return the share of a measure (a key of `MEASURES`) in all calls, or in all replies, as `MEASURES`
        defines."""
        return Share(self.counts[measure], self.counts[MEASURES[measure]])

    def finding_share(self, finding: Finding) -> Share:
        """Return the share of calls, or of replies, that have the finding."""
        return Share(self.found[finding], self.counts[MEASURES[finding.kind]])

    def add(self, logged: LoggedReply) -> None:
        """Count a logged reply, its calls and its findings, and keep samples of the findings that are preferred over
        the kept ones."""
        findings = find_findings(logged)
        self.counts.update(_count_measures(logged, findings))
        key = sample_key(logged) if findings else None
        for each in findings:
            self.found[each.finding] += 1
            kept = self.samples.get(each.finding, ())
            if key is not None and is_preferred(kept, key, logged):
                self.samples[each.finding] = choose_samples((*kept, sample_of(logged, each, key)))

    def merge(self, other: ReplyGroup) -> None:
        """Add the counts and samples of another group to this one; of each finding, only the preferred samples are
        kept."""
        self.counts.update(other.counts)
        self.found.update(other.found)
        for finding, samples in other.samples.items():
            self.samples[finding] = choose_samples((*self.samples.get(finding, ()), *samples))


def _count_measures(logged: LoggedReply, findings: list[ReplyFinding]) -> Counter[str]:
    """Return the counts of one reply with its `findings`: its calls by measure and, if it is the first row of its
    answer, the reply by measure. Zeros are left out."""
    attempts = logged.reply.attempts
    counts = Counter(calls=len(attempts), may_run=sum([call.ok for call in attempts]))
    counts["refused"] = counts["calls"] - counts["may_run"]
    counts["repaired"] = sum([bool(call.repairs) for call in attempts if call.ok])
    counts["as_written"] = counts["may_run"] - counts["repaired"]
    if logged.is_first:
        kinds = {each.finding.kind for each in findings}
        counts.update(["replies", *kinds & {"near", "cut", "leaked"}])
        counts["calling"] = int(bool(attempts))
        counts["troubled"] = int(bool(kinds - {"repaired"}))
    return +counts


class GroupKey(NamedTuple):
    """The group of a reply; names are empty if the log does not have them."""

    model: str
    server: str
    format: str


class ReplyTally(msgspec.Struct):
    """The replies of a log by model, server and format.

    At most `_MAX_GROUPS` groups are kept, those with the smallest digests; `rest` counts all others together. So memory
    is bounded, and the order of merging has no effect. `bad` is the number of lines without a reply.
    """

    groups: dict[GroupKey, ReplyGroup] = msgspec.field(default_factory=dict)
    rest: ReplyGroup = msgspec.field(default_factory=ReplyGroup)
    bad: int = 0

    def add(self, logged: LoggedReply) -> None:
        """Count a reply in the group of its model, server and format."""
        names = (logged.model, logged.server, logged.format)
        self._find_group(GroupKey(*[replace_surrogates(name[:_MAX_NAME]) for name in names])).add(logged)

    def merge(self, other: ReplyTally) -> None:
        """Add the tally of another part of the log to this one; the order of merging has no effect."""
        for key, group in other.groups.items():
            self._find_group(key).merge(group)
        self.rest.merge(other.rest)
        self.bad += other.bad

    def _find_group(self, key: GroupKey) -> ReplyGroup:
        """Return the group with this key, which is created if it is new. If there are too many groups, the one that is
        last by digest is merged into `rest`, or `rest` is returned if that is the new one."""
        found = self.groups.get(key)
        if found is not None:
            return found
        if len(self.groups) >= _MAX_GROUPS:
            last = max(self.groups, key=_group_order)
            if _group_order(key) > _group_order(last):
                return self.rest
            self.rest.merge(self.groups.pop(last))
        return self.groups.setdefault(key, ReplyGroup())

    @property
    def total(self) -> ReplyGroup:
        """All groups together."""
        return _merge_groups([*self.groups.values(), self.rest])

    def largest(self) -> list[tuple[GroupKey, ReplyGroup]]:
        """Return the groups with their keys, those with the most replies first, then by name. If `rest` counts
        anything, it is last, under the name `REST`."""
        ordered = sorted(self.groups.items(), key=lambda item: (-item[1].counts["replies"], item[0]))
        rest = [(GroupKey(REST, "", ""), self.rest)] if self.rest.counts else []
        return [*ordered, *rest]

    def models(self) -> dict[str, ReplyGroup]:
        """Return the groups merged by model, as a dict in which the model of the largest group comes first."""
        named: dict[str, list[ReplyGroup]] = {}
        for key, group in self.largest():
            named.setdefault(key.model, []).append(group)
        return {model: _merge_groups(groups) for model, groups in named.items()}


def _merge_groups(groups: list[ReplyGroup]) -> ReplyGroup:
    """Return a new group with the counts and samples of all these."""
    total = ReplyGroup()
    for group in groups:
        total.merge(group)
    return total


@lru_cache(2 * _MAX_GROUPS)
def _group_order(key: GroupKey) -> bytes:
    return blake2b("\0".join(key).encode("utf-8", "surrogatepass"), digest_size=16).digest()


class _PackedFinding(msgspec.Struct, array_like=True):
    finding: Finding
    number: int
    samples: tuple[ReplySample, ...]


class _PackedGroup(msgspec.Struct, array_like=True):
    key: GroupKey
    counts: dict[str, int]
    found: list[_PackedFinding]


class _PackedTally(msgspec.Struct, array_like=True):
    groups: list[_PackedGroup]
    rest: _PackedGroup
    bad: int


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_PackedTally)


def pack_tally(tally: ReplyTally) -> bytes:
    """Encode a tally as bytes, for `unpack_tally` in another process. The lines of its samples are relative to their
    batch."""
    groups = [_pack_group(key, group) for key, group in tally.groups.items()]
    packed = _PackedTally(groups, _pack_group(GroupKey("", "", ""), tally.rest), tally.bad)
    return _ENCODER.encode(packed)


def _pack_group(key: GroupKey, group: ReplyGroup) -> _PackedGroup:
    """Return a group with its key in the form that is encoded."""
    found = [_PackedFinding(finding, number, group.samples.get(finding, ())) for finding, number in group.found.items()]
    return _PackedGroup(key, dict(group.counts), found)


def unpack_tally(data: bytes, path: str, before: int) -> ReplyTally:
    """Decode the bytes of `pack_tally` and return the tally. It is of a part of the file at `path`, of which `before`
    lines precede the part: both go into its samples."""
    packed = _DECODER.decode(data)
    groups = {group.key: _unpack_group(group, path, before) for group in packed.groups}
    return ReplyTally(groups, _unpack_group(packed.rest, path, before), packed.bad)


def _unpack_group(packed: _PackedGroup, path: str, before: int) -> ReplyGroup:
    """Return a group from its encoded form, with `path` as the file of its samples and `before` added to their
    lines."""
    samples = {
        each.finding: tuple([msgspec.structs.replace(one, path=path, line=before + one.line) for one in each.samples])
        for each in packed.found
        if each.samples
    }
    return ReplyGroup(Counter(packed.counts), Counter({each.finding: each.number for each in packed.found}), samples)
