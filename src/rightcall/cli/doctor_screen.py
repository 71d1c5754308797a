"""A diagnosis on a terminal: who was asked, a table for each dialect, each class of failure with evidence and cure."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from rightcall.cli.layout import Cell, heading, paragraph, row, table
from rightcall.cli.safe import brief, visible
from rightcall.doctor.diagnosis import Diagnosis, ProbeResult
from rightcall.doctor.judging import Verdict

_STYLES: dict[Verdict, str] = {
    "ok": "green",
    "fault": "red",
    "model": "yellow",
    "not offered": "dim",
    "unreachable": "red",
}
_WORDS: dict[Verdict, str] = {"fault": "FAULT", "not offered": "none"}
_MOST_SEEN = 3
_SHOWN = 700  # characters of a request, and of an answer


def show_diagnosis(out: Console, found: Diagnosis, *, samples: int = 6) -> None:
    """Prints all of it; of the faults so many with what was sent and received."""
    _head(out, found)
    for api in found.spoken:
        out.print()
        heading(out, api)
        table(out, _heads(found), [*_rows(found, api)])
    _faults(out, found, samples)
    _foot(out, found)


def _head(out: Console, found: Diagnosis) -> None:
    row(out, "server", brief(f"{found.url}  {found.kind}".rstrip(), 300), "bold")
    row(out, "model", brief(found.model or "none was named, and the server lists none", 200))
    row(out, "speaks", ", ".join(found.spoken) or "no dialect that was tried", "green" if found.spoken else "red")
    silent: dict[str, list[str]] = {}
    for each in found.dialects:
        if each.says:
            silent.setdefault(each.says, []).append(each.api)
    for says, apis in silent.items():
        row(out, "", brief(f"{', '.join(apis)}: {says}", 300), "dim")


# -- the table ---------------------------------------------------------------------------------------------------------


def _heads(found: Diagnosis) -> tuple[str, ...]:
    if found.through is None:
        return ("probe", "whole", "streamed", "class")
    return ("probe", "whole", "proxy", "streamed", "proxy", "class")


def _rows(found: Diagnosis, api: str) -> Iterator[list[Cell]]:
    sides = [found] if found.through is None else [found, found.through]
    by_place = {
        (side, each.probe, each.way): each
        for side, diagnosis in enumerate(sides)
        for each in diagnosis.results
        if each.api == api
    }
    titles = {each.probe: each.title for each in found.results if each.api == api}
    for probe, title in titles.items():
        both = [by_place.get((side, probe, way)) for way in ("whole", "streamed") for side in range(len(sides))]
        slugs = [each.slug for each in both if each is not None and each.is_named]
        yield [title, *[_verdict(each) for each in both], ", ".join(dict.fromkeys(slugs))]


def _verdict(result: ProbeResult | None) -> Text:
    if result is None:
        return Text("")
    rate = f" {result.passed}/{result.of}" if result.of > 1 else ""
    return Text(_WORDS.get(result.verdict, result.verdict) + rate, _STYLES[result.verdict])


# -- the faults --------------------------------------------------------------------------------------------------------


def _faults(out: Console, found: Diagnosis, samples: int) -> None:
    for at, failure in enumerate((*found.classes, *found.habits)):
        mine = found.shown(failure)
        out.print()
        whose = " (the model's doing)" if failure in found.habits else ""
        heading(out, f"{failure.slug}: {failure.title}{whose}")
        paragraph(out, failure.what, "dim", label="  ")
        seen = _by_words(mine)
        for says, where in [*seen.items()][:_MOST_SEEN]:
            row(out, "  seen", brief(f"{where}: {says}", 400))
        if len(seen) > _MOST_SEEN:
            row(out, "", f"and {len(seen) - _MOST_SEEN} more, in --html and --json", "dim")
        if at < samples:
            _evidence(out, mine[0])
        says, line = found.advice(failure)
        row(out, "  cure", says)
        if line:
            row(out, "", visible(line, one_line=True), "cyan")


def _by_words(results: list[ProbeResult]) -> dict[str, str]:
    """What was said, and where: by dialect, way and probe. The same words of several stand once."""
    places: dict[str, dict[tuple[str, str], list[str]]] = {}
    for each in results:
        places.setdefault(each.says, {}).setdefault((each.api, each.way), []).append(each.title)
    return {
        says: "; ".join([f"{api} {way}: {', '.join(titles)}" for (api, way), titles in of.items()])
        for says, of in places.items()
    }


def _evidence(out: Console, result: ProbeResult) -> None:
    shown = result.evidence
    if shown is None:
        return
    row(out, "  sent", _cut(shown.request, shown.request_left_out), "dim")
    row(out, f"  {shown.status or 'came'}", _cut(shown.answer, shown.answer_left_out), "dim")


def _cut(text: str, left_out: int) -> str:
    """Some of it. JSON without blanks gets a few, so that lines can break."""
    text = text.replace(',"', ', "').replace('":', '": ').replace('":  ', '": ')
    left = max(0, len(text) - _SHOWN) + left_out
    return visible(text[:_SHOWN], one_line=True) + (f" … ({left:,} more)" if left else "")


def _foot(out: Console, found: Diagnosis) -> None:
    out.print()
    both = found.requests + (0 if found.through is None else found.through.requests)
    took = found.seconds + (0.0 if found.through is None else found.through.seconds)
    checks = f"{len(found.faults)} of {len(found.results)} checks failed" if found.results else "nothing was asked"
    row(out, "found", f"{checks}; {len(found.classes)} classes of failure", "bold red" if found.faults else "bold")
    if found.through is not None:
        left = len(found.through.faults)
        row(out, "proxy", f"{left} of {len(found.through.results)} checks failed", "red" if left else "green")
    row(out, "asked", f"{both} requests in {took:.1f} s" + _skipped(found))
    if cure := found.cure():
        row(out, "cure", visible(cure, one_line=True), "cyan")


def _skipped(found: Diagnosis) -> str:
    count = found.skipped + (0 if found.through is None else found.through.skipped)
    why = "--max-requests was reached, or the server had stopped answering"
    return f"; {count} more were left out: {why}" if count else ""
