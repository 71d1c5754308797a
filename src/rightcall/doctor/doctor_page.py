"""A diagnosis as a page: figures, a table for each dialect, the classes of failure with their cures, and evidence."""

from __future__ import annotations

from collections.abc import Iterator

from rightcall.doctor.diagnosis import Diagnosis, ProbeEvidence, ProbeResult
from rightcall.doctor.judges import Verdict
from rightcall.evaluation.webpage import (
    Cell,
    FigureTile,
    FigureTiles,
    Headline,
    NamedCell,
    PageColumn,
    PagePart,
    PageSample,
    PageTable,
    SampleCard,
    SampleCards,
    SamplePiece,
    Tone,
    ToneCell,
    WebPage,
)

KIND = "doctor"
_TONES: dict[Verdict, Tone] = {
    "ok": "good",
    "fault": "bad",
    "model": "fair",
    "not offered": "plain",
    "unreachable": "bad",
}
_ORDER: dict[Verdict, float] = {"fault": 0.0, "unreachable": 1.0, "model": 2.0, "not offered": 3.0, "ok": 4.0}
_FOOT = (
    "ok: the server behaved as expected. fault: it did not; the class names the deviation. model: the model did not do "
    "as it was asked, so the answer shows nothing about the server. not offered: the server does not have the feature.",
    "Secrets of a known form are removed from requests and responses.",
)


def doctor_page(diagnosis: Diagnosis) -> WebPage:
    """Return the web page of a diagnosis: a headline, figures, cures if there are any, a table for each dialect, and
    evidence."""
    parts: list[PagePart] = [_figure_tiles(diagnosis)]
    parts += [_cure_table(diagnosis)] if diagnosis.classes or diagnosis.habits else []
    parts += [_dialect_table(diagnosis, api) for api in diagnosis.spoken]
    parts += [SampleCards("Requests and responses", tuple(_evidence_cards(diagnosis)))]
    return WebPage(
        KIND, f"{diagnosis.url} · {diagnosis.model or 'no model'}", _headline(diagnosis), tuple(parts), _FOOT
    )


def _headline(diagnosis: Diagnosis) -> Headline:
    """Return the headline of the page: the number of failure classes ("No" for none) with server, model, dialects and
    cure; if the server has none of the dialects, "No dialect" with the reason for each."""
    if not diagnosis.spoken:
        says = "was answered: " + "; ".join([f"{each.api}: {each.says}" for each in diagnosis.dialects])
        return Headline("No dialect", says[:400])
    says = f"classes of failure at {diagnosis.url}" if diagnosis.classes else f"faults at {diagnosis.url}"
    kind = diagnosis.kind or "unknown server type"
    notes = [f"{diagnosis.model or 'no model'} · {kind} · {', '.join(diagnosis.spoken)}"]
    if cure := diagnosis.cure():
        notes.append(cure)
    return Headline(str(len(diagnosis.classes) or "No"), says, tuple(notes))


def _figure_tiles(diagnosis: Diagnosis) -> FigureTiles:
    """Return the figures of the page: the number of failed checks, also through the proxy if it was examined, and the
    number of requests with their seconds."""
    tiles = [_fault_tile("checks that failed", diagnosis)]
    if diagnosis.through is not None:
        tiles.append(_fault_tile("through the proxy", diagnosis.through))
    took = diagnosis.seconds + (0.0 if diagnosis.through is None else diagnosis.through.seconds)
    asked = diagnosis.requests + (0 if diagnosis.through is None else diagnosis.through.requests)
    tiles.append(FigureTile("requests", f"{asked:,}", f"in {took:.1f} s"))
    return FigureTiles(tuple(tiles))


def _fault_tile(label: str, diagnosis: Diagnosis) -> FigureTile:
    """Return a figure with this label: the number of faults of a diagnosis, out of the number of its results."""
    many = len(diagnosis.faults)
    return FigureTile(label, f"{many}", f"of {len(diagnosis.results)}", "bad" if many else "good")


# -- classes and their cures -------------------------------------------------------------------------------------------


def _cure_table(diagnosis: Diagnosis) -> PageTable:
    """Return the table of the failure classes that the diagnosis found: what happens, the cure, and the command."""
    columns = ("class", "what happens", "cure", "command")
    rows = [
        (NamedCell(each.title, each.slug), each.what, *diagnosis.advice(each))
        for each in (*diagnosis.classes, *diagnosis.habits)
    ]
    return PageTable("Classes of failure", tuple([PageColumn(title) for title in columns]), tuple(rows))


# -- a dialect ---------------------------------------------------------------------------------------------------------


def _dialect_table(diagnosis: Diagnosis, api: str) -> PageTable:
    """Return the table of the dialect `api`: a row for each probe, with the verdicts whole and streamed, and columns
    for the proxy if it was examined."""
    sides = [diagnosis] if diagnosis.through is None else [diagnosis, diagnosis.through]
    heads = ["whole", "streamed"] if len(sides) == 1 else ["whole", "whole, proxy", "streamed", "streamed, proxy"]
    columns = [PageColumn("probe"), *[PageColumn(head) for head in heads], PageColumn("class"), PageColumn("seen")]
    return PageTable(api, tuple(columns), tuple(_probe_rows(sides, api)))


def _probe_rows(sides: list[Diagnosis], api: str) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each probe of the dialect `api`: the verdicts whole and streamed of each diagnosis in `sides`,
    the classes of failure, and the reason of the worst verdict."""
    by_place = {
        (at, each.probe, each.way): each for at, side in enumerate(sides) for each in side.results if each.api == api
    }
    titles = {each.probe: each.title for each in sides[0].results if each.api == api}
    for probe, title in titles.items():
        cells = [by_place.get((at, probe, way)) for way in ("whole", "streamed") for at in range(len(sides))]
        worst = min([each for each in cells if each is not None], key=lambda each: _ORDER[each.verdict])
        slugs = dict.fromkeys([each.slug for each in cells if each is not None and each.is_named])
        yield NamedCell(title, probe), *[_verdict_cell(each) for each in cells], ", ".join(slugs), worst.says


def _verdict_cell(result: ProbeResult | None) -> Cell:
    """Return the `ToneCell` for the verdict of a result, with its pass rate if the probe was repeated, sorted by how
    bad the verdict is; "", an empty cell, without a result."""
    if result is None:
        return ""
    rate = f" {result.passed}/{result.of}" if result.of > 1 else ""
    return ToneCell(result.verdict + rate, _TONES[result.verdict], _ORDER[result.verdict])


# -- evidence ----------------------------------------------------------------------------------------------------------


def _evidence_cards(diagnosis: Diagnosis) -> Iterator[SampleCard]:
    """Yield a card with request and response of each result that is a fault or unreachable and has evidence."""
    for each in diagnosis.results:
        if each.evidence is not None and each.verdict in ("fault", "unreachable"):
            meaning = each.failure.what if each.failure is not None else ""
            yield SampleCard(
                each.slug or each.verdict,
                each.title,
                meaning,
                f"{each.api} · {each.way} · {each.says}",
                tuple(_evidence_samples(each.evidence)),
                _TONES[each.verdict],
            )


def _evidence_samples(shown: ProbeEvidence) -> Iterator[PageSample]:
    """Yield the request and the response of this evidence as samples for the page."""
    yield PageSample((SamplePiece(shown.request),), "sent", after=shown.request_left_out)
    yield PageSample((SamplePiece(shown.answer, found=True),), f"status {shown.status}", after=shown.answer_left_out)
