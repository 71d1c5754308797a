"""The words of a report, for the page and for the terminal: its headline, the names of what is counted, a group."""

from __future__ import annotations

from rightcall.evaluation.reports.findings import Finding
from rightcall.evaluation.reports.log_changes import ALL, Comparison, RateChange
from rightcall.evaluation.reports.reply_tally import MEASURES, GroupKey, ReplyGroup, ReplyTally, Share
from rightcall.evaluation.webpages.page_parts import Headline, PageRate, StripPiece, Tone
from rightcall.safe_text import percent

# What is counted: as a column is called, what it means, and how it is coloured where there is any of it.
LABELS: dict[str, str] = {
    "may_run": "may run",
    "as_written": "as written",
    "repaired": "repaired",
    "refused": "refused",
    "near": "near-calls",
    "cut": "cut off",
    "leaked": "leaked",
    "calling": "with a call",
    "troubled": "in trouble",
}
HINTS: dict[str, str] = {
    "may_run": "Calls that are whole and pass every check, of all calls",
    "as_written": "Calls that may run just as the model wrote them, of all calls",
    "repaired": "Calls that may run because they were repaired, of all calls",
    "refused": "Calls that must not run, of all calls",
    "near": "Replies whose text nearly is a call, and is none, of all replies",
    "cut": "Replies that were cut off, or have an error in their place, of all replies",
    "leaked": "Replies with markers or calls in their text that a server should have taken out, of all replies",
    "calling": "Replies with at least one call, of all replies",
    "troubled": "Replies with a refused call, or cut off, or with anything that nearly is a call or leaked",
}
TONES: dict[str, Tone] = {
    "may_run": "good",
    "as_written": "good",
    "repaired": "fair",
    "refused": "bad",
    "near": "bad",
    "cut": "bad",
    "leaked": "bad",
}
KINDS = ("refused", "repaired", "near", "cut", "leaked")
COLUMNS = ("may_run", "repaired", "refused", "near", "cut", "leaked")


def page_rate(share: Share, measure: str = "") -> PageRate:
    low, high = share.interval
    return PageRate(share.rate, low, high, share.whole, TONES.get(measure, "plain"))


def between(share: Share) -> str:
    """The interval of a rate in words."""
    low, high = share.interval
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def group_name(key: GroupKey) -> tuple[str, str]:
    """A group as a name and what stands below it."""
    return key.model or "(no model named)", " · ".join([name for name in (key.server, key.format or "no call") if name])


def change_name(change: RateChange) -> str:
    return f"{LABELS[change.measure]}: {change.name}" if change.name else LABELS[change.measure]


def ordered(group: ReplyGroup, kind: str) -> list[tuple[Finding, Share]]:
    """The findings of a kind with their shares, the most frequent first."""
    found = [finding for finding in group.found if finding.kind == kind]
    found.sort(key=lambda finding: (-group.found[finding], finding.name))
    return [(finding, group.finding_share(finding)) for finding in found]


# -- the headline ------------------------------------------------------------------------------------------------------


def headline(tally: ReplyTally, comparison: Comparison | None = None) -> Headline:
    """What to see first: how many calls may run; after an upgrade, whether that changed."""
    total = tally.total
    calls, replies = total.counts["calls"], total.counts["replies"]
    notes = [] if comparison is None else [_compared(comparison)]
    if not calls:
        near = total.counts["near"]
        says = f"calls in {counted(replies, 'reply', 'replies')}"
        notes.append(
            f"{counted(near, 'reply', 'replies')} nearly hold one." if near else "Nothing in them looks like one."
        )
        return Headline("No", says, (*notes, *_lines(tally)))
    may_run, written = total.share("may_run"), total.share("as_written")
    repaired = total.counts["repaired"]
    notes.append(f"95 % interval: {between(may_run)}.")
    if repaired:
        notes.append(f"{percent(written.rate)} are right as written; repair saved {counted(repaired, 'more', 'more')}.")
    notes += [*_first_cause(total), *_worst(tally), *_lines(tally)]
    strip = [
        StripPiece(LABELS[name], total.share(name).rate, total.counts[name], TONES[name])
        for name in ("as_written", "repaired", "refused")
    ]
    return Headline(
        percent(may_run.rate),
        f"of {counted(calls, 'call', 'calls')} may run",
        tuple(notes),
        tuple(strip),
    )


def counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _compared(comparison: Comparison) -> str:
    worse, better = comparison.of("worse"), comparison.of("better")
    if not worse and not better:
        return "Nothing got better or worse by more than chance explains."
    said = ", ".join([f"{len(found)} {word}" for found, word in ((worse, "worse"), (better, "better")) if found])
    first = next((change for change in (*worse, *better) if change.scope == ALL), (*worse, *better)[0])
    of = "" if first.scope == ALL else f" of {first.scope}"
    rates = f"{percent(first.before.rate)} → {percent(first.after.rate)}"
    return f"Since the log before: {said}. First of all {change_name(first)}{of}: {rates}."


def _first_cause(total: ReplyGroup) -> list[str]:
    causes = ordered(total, "refused")
    if not causes:
        return []
    finding, share = causes[0]
    return [f"Most refused: {finding.name} ({counted(share.part, 'call', 'calls')}, {percent(share.rate)})."]


def _worst(tally: ReplyTally) -> list[str]:
    """The group with the lowest rate, if its interval leaves no doubt that it is below the whole."""
    total = tally.total.share("may_run").rate
    groups = [(key, group.share("may_run")) for key, group in tally.groups.items() if group.counts["calls"]]
    below = [(share.rate, key) for key, share in groups if share.interval[1] < total]
    if len(groups) < 2 or not below:
        return []
    rate, key = min(below)
    return [f"Lowest: {', '.join(group_name(key))} with {percent(rate)}."]


def _lines(tally: ReplyTally) -> list[str]:
    return [f"{counted(tally.bad, 'line holds', 'lines hold')} no reply."] if tally.bad else []


assert set(MEASURES) == set(LABELS) == set(HINTS)
