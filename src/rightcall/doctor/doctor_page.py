"""A diagnosis as one page: what was found, a table for each dialect, each class of failure with evidence and cure."""

from __future__ import annotations

from collections.abc import Iterator

from rightcall.doctor.diagnosis import Diagnosis, ProbeEvidence, ProbeResult
from rightcall.doctor.judging import Verdict
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
    "ok: the server did as it should. fault: it did not, in the way that the class names. model: the model did not do "
    "as it was asked, so nothing can be said of the server. not offered: the server has no such thing.",
    "Secrets that are known by their shape are taken out of what was sent and received.",
)


def doctor_page(found: Diagnosis) -> WebPage:
    """The page of a diagnosis."""
    parts: list[PagePart] = [_figures(found)]
    parts += [_cures(found)] if found.classes or found.habits else []
    parts += [_dialect(found, api) for api in found.spoken]
    parts += [SampleCards("What was sent and what came", tuple(_cards(found)))]
    return WebPage(KIND, f"{found.url} · {found.model or 'no model'}", _headline(found), tuple(parts), _FOOT)


def _headline(found: Diagnosis) -> Headline:
    if not found.spoken:
        says = "was answered: " + "; ".join([f"{each.api}: {each.says}" for each in found.dialects])
        return Headline("No dialect", says[:400])
    says = f"classes of failure at {found.url}" if found.classes else f"faults at {found.url}"
    notes = [f"{found.model or 'no model'} · {found.kind or 'a server of no known kind'} · {', '.join(found.spoken)}"]
    if cure := found.cure():
        notes.append(cure)
    return Headline(str(len(found.classes) or "No"), says, tuple(notes))


def _figures(found: Diagnosis) -> FigureTiles:
    tiles = [_tile("checks that failed", found)]
    if found.through is not None:
        tiles.append(_tile("through the proxy", found.through))
    took = found.seconds + (0.0 if found.through is None else found.through.seconds)
    asked = found.requests + (0 if found.through is None else found.through.requests)
    tiles.append(FigureTile("requests", f"{asked:,}", f"in {took:.1f} s"))
    return FigureTiles(tuple(tiles))


def _tile(label: str, found: Diagnosis) -> FigureTile:
    many = len(found.faults)
    return FigureTile(label, f"{many}", f"of {len(found.results)}", "bad" if many else "good")


# -- classes and what cures them ---------------------------------------------------------------------------------------


def _cures(found: Diagnosis) -> PageTable:
    columns = ("class", "what happens", "what cures it", "command")
    rows = [
        (NamedCell(each.title, each.slug), each.what, *found.advice(each)) for each in (*found.classes, *found.habits)
    ]
    return PageTable("Classes of failure", tuple([PageColumn(title) for title in columns]), tuple(rows))


# -- a dialect ---------------------------------------------------------------------------------------------------------


def _dialect(found: Diagnosis, api: str) -> PageTable:
    sides = [found] if found.through is None else [found, found.through]
    heads = ["whole", "streamed"] if len(sides) == 1 else ["whole", "whole, proxy", "streamed", "streamed, proxy"]
    columns = [PageColumn("probe"), *[PageColumn(head) for head in heads], PageColumn("class"), PageColumn("seen")]
    return PageTable(api, tuple(columns), tuple(_rows(sides, api)))


def _rows(sides: list[Diagnosis], api: str) -> Iterator[tuple[Cell, ...]]:
    by_place = {
        (at, each.probe, each.way): each for at, side in enumerate(sides) for each in side.results if each.api == api
    }
    titles = {each.probe: each.title for each in sides[0].results if each.api == api}
    for probe, title in titles.items():
        cells = [by_place.get((at, probe, way)) for way in ("whole", "streamed") for at in range(len(sides))]
        worst = min([each for each in cells if each is not None], key=lambda each: _ORDER[each.verdict])
        slugs = dict.fromkeys([each.slug for each in cells if each is not None and each.is_named])
        yield NamedCell(title, probe), *[_cell(each) for each in cells], ", ".join(slugs), worst.says


def _cell(result: ProbeResult | None) -> Cell:
    if result is None:
        return ""
    rate = f" {result.passed}/{result.of}" if result.of > 1 else ""
    return ToneCell(result.verdict + rate, _TONES[result.verdict], _ORDER[result.verdict])


# -- evidence ----------------------------------------------------------------------------------------------------------


def _cards(found: Diagnosis) -> Iterator[SampleCard]:
    for each in found.results:
        if each.evidence is not None and each.verdict in ("fault", "unreachable"):
            meaning = each.failure.what if each.failure is not None else ""
            yield SampleCard(
                each.slug or each.verdict,
                each.title,
                meaning,
                f"{each.api} · {each.way} · {each.says}",
                tuple(_samples(each.evidence)),
                _TONES[each.verdict],
            )


def _samples(shown: ProbeEvidence) -> Iterator[PageSample]:
    yield PageSample((SamplePiece(shown.request),), "sent", after=shown.request_left_out)
    yield PageSample((SamplePiece(shown.answer, found=True),), f"status {shown.status}", after=shown.answer_left_out)
