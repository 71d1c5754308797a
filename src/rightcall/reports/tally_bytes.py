"""A tally as bytes, on its way from the process that counted a part."""

from __future__ import annotations

from collections import Counter

import msgspec

from rightcall.reports.findings import Finding
from rightcall.reports.reply_samples import ReplySample
from rightcall.reports.reply_tally import GroupKey, ReplyGroup, ReplyTally


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
    is_numbered: bool


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(_Packed)


def packed(tally: ReplyTally, *, is_numbered: bool = True) -> bytes:
    """The tally as bytes. `is_numbered`: its lines count from 1 in the file; else from 0 in the part."""
    groups = [_group(key, group) for key, group in tally.groups.items()]
    made = _Packed(groups, _group(GroupKey("", "", ""), tally.rest), tally.bad, is_numbered)
    return _ENCODER.encode(made)


def _group(key: GroupKey, group: ReplyGroup) -> _Group:
    found = [_Tallied(finding, number, group.samples.get(finding, ())) for finding, number in group.found.items()]
    return _Group(key, dict(group.counts), found)


def unpacked(data: bytes, path: str, before: int) -> ReplyTally:
    """The tally of a part of this file, in which so many lines stand before the part."""
    given = _DECODER.decode(data)
    first = 0 if given.is_numbered else before + 1
    groups = {group.key: _made(group, path, first) for group in given.groups}
    return ReplyTally(groups, _made(given.rest, path, first), given.bad)


def _made(given: _Group, path: str, first: int) -> ReplyGroup:
    samples = {
        each.finding: tuple([msgspec.structs.replace(one, path=path, line=first + one.line) for one in each.samples])
        for each in given.found
        if each.samples
    }
    return ReplyGroup(Counter(given.counts), Counter({each.finding: each.number for each in given.found}), samples)
