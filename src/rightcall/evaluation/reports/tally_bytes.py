"""A tally as bytes, on its way from the process that counted a part."""

from __future__ import annotations

from collections import Counter

import msgspec

from rightcall.evaluation.reports.findings import Finding
from rightcall.evaluation.reports.reply_samples import ReplySample
from rightcall.evaluation.reports.reply_tally import GroupKey, ReplyGroup, ReplyTally


class _Tallied(msgspec.Struct, array_like=True):
    finding: Finding
    number: int
    samples: tuple[ReplySample, ...]


class _Group(msgspec.Struct, array_like=True):
    key: GroupKey
    counts: dict[str, int]
    found: list[_Tallied]


class _Packed(msgspec.Struct, array_like=True):
    groups: list[_Group]
    rest: _Group
    bad: int


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Packed)


def packed(tally: ReplyTally) -> bytes:
    """The tally as bytes; its lines are as they travel (`RowBatch.line`)."""
    groups = [_group(key, group) for key, group in tally.groups.items()]
    made = _Packed(groups, _group(GroupKey("", "", ""), tally.rest), tally.bad)
    return _ENCODER.encode(made)


def _group(key: GroupKey, group: ReplyGroup) -> _Group:
    found = [_Tallied(finding, number, group.samples.get(finding, ())) for finding, number in group.found.items()]
    return _Group(key, dict(group.counts), found)


def unpacked(data: bytes, path: str, before: int) -> ReplyTally:
    """The tally of a part of this file; `before` added to a line as it travelled is that line of the file."""
    given = _DECODER.decode(data)
    groups = {group.key: _made(group, path, before) for group in given.groups}
    return ReplyTally(groups, _made(given.rest, path, before), given.bad)


def _made(given: _Group, path: str, before: int) -> ReplyGroup:
    samples = {
        each.finding: tuple([msgspec.structs.replace(one, path=path, line=before + one.line) for one in each.samples])
        for each in given.found
        if each.samples
    }
    return ReplyGroup(Counter(given.counts), Counter({each.finding: each.number for each in given.found}), samples)
