"""HTML pages: every text is escaped, and pages fit terminals of any width."""

import html
import io
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from rightcall.cli.layout import Page as Screenful
from rightcall.cli.page_screen import show_page
from rightcall.evaluation.webpage import (
    BarChart,
    BarCharts,
    BarRow,
    Headline,
    PageRate,
    WebPage,
    page_kind,
    render_page,
)
from rightcall.safe_text import percent
from support.webpages import HOSTILE, pages

TAGS = set(
    "html head meta title style script body header main footer section div article figure figcaption details summary "
    "h1 h2 h3 p b i em small span ul li dl dt dd table thead tbody tr th td button input select option output pre svg "
    "rect line".split()
)
EMPTY = {"meta", "input"}


class Page(HTMLParser):
    """Parses a page into its tags with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_page_loads_nothing_and_escapes_everything(tmp_path: Path) -> None:
    for page in pages(tmp_path):
        text = render_page(page)
        found = Page(text)
        assert found.open == []
        assert {tag for tag, _ in found.tags} <= TAGS
        assert [tag for tag, _ in found.tags].count("script") == 1
        names = {name for _, attributes in found.tags for name in attributes}
        assert not [name for name in names if name.startswith("on") or name in ("src", "href", "style", "action")]
        assert 'document.title = "owned"' in "".join(found.texts)  # as text
        assert "\u202e" not in text and "\x00" not in text
        assert "url(" not in text and "@import" not in text and "://" not in text


def test_the_content_security_policy_allows_only_the_style_and_the_script(tmp_path: Path) -> None:
    text = render_page(next(pages(tmp_path)))
    hashes = [
        b64encode(sha256(each.encode()).digest()).decode()
        for each in (
            text.partition("<style>")[2].partition("</style>")[0],
            text.rpartition("<script>")[2].partition("</script>")[0],
        )
    ]
    policy = next(a["content"] for _, a in Page(text).tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; form-action 'none'; "
        "base-uri 'none'"
    )


def test_a_page_is_recognised_by_its_beginning() -> None:
    page = WebPage("report", "x", Headline("1 %", "of it"), ())
    assert page_kind("report").name == "page of `report`"
    assert render_page(page).startswith("<!doctype html><!-- rightcall report -->")


def render_bars(*rates: float) -> str:
    rows = tuple([BarRow(f"row{at}", PageRate(rate, rate, rate, 100), "1") for at, rate in enumerate(rates)])
    return render_page(WebPage("report", "x", Headline("1 %", "of it"), (BarCharts((BarChart("Chart", rows),)),)))


def test_a_single_bar_is_not_drawn_as_a_chart() -> None:
    assert "<rect" not in render_bars(0.5) and "50.0" in render_bars(0.5)
    assert render_bars(0.5, 0.2).count('class="fill"') == 2


def test_bars_are_drawn_on_a_round_scale() -> None:
    widths = re.findall(r'class="fill" width="([\d.]+)%"', render_bars(0.05, 0.02, 0.001))
    assert [float(width) for width in widths] == [100.0, 40.0, 2.0]
    assert "2.5\u00a0%" in render_bars(0.05, 0.02)


@pytest.mark.parametrize(
    "rate, text",
    [(0, "0 %"), (0.0004, "< 0.1 %"), (0.031, "3.1 %"), (0.5, "50.0 %"), (0.9996, "> 99.9 %"), (1, "100 %")],
)
def test_a_rate_is_never_rounded_to_zero_or_all(rate: float, text: str) -> None:
    assert percent(rate) == text
    assert html.escape(text).replace(" ", "\u00a0") in render_bars(rate, 0.5)


# -- on a terminal -----------------------------------------------------------------------------------------------------


PLAIN: Any = {"markup": False, "highlight": False, "emoji": False}


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("colour", [None, "truecolor"])
def test_a_page_fits_every_terminal(width: int, colour: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for page in pages(tmp_path, hostile=HOSTILE + " and \x1b[2Jmore"):
        out = Console(width=500, color_system=colour, force_terminal=True, record=True, file=io.StringIO(), **PLAIN)
        show_page(out, page)
        lines = out.export_text(styles=False).splitlines()
        assert max(map(cell_len, lines)) <= width
        assert "\u202e" not in "".join(lines) and "\x1b" not in "".join(lines)
        assert lines[0].startswith(page.headline.figure)


def test_a_rate_too_small_for_its_bar_has_the_thinnest_bar() -> None:
    rows = [BarRow(name, PageRate(rate, rate, rate, 1_000), "1") for name, rate in (("most", 1.0), ("few", 0.0001))]
    out = Screenful(80)
    show_page(out, WebPage("report", "x", Headline("1 %", "of it"), (BarCharts((BarChart("Chart", tuple(rows)),)),)))
    (few,) = [line for line in out.text.splitlines() if "few" in line]
    assert few.split()[:2] == ["few", "▏"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_words_are_not_broken_on_a_terminal(width: int, tmp_path: Path) -> None:
    """With plain text only, because names wider than the terminal must be broken."""
    for page in pages(tmp_path, hostile="vllm"):
        whole, narrow = [_print_page(page, each) for each in (1_000, width)]
        assert set(narrow.split()) <= set(whole.split()) | {"…"}


def _print_page(page: WebPage, width: int) -> str:
    out = Screenful(width)
    show_page(out, page)
    return re.sub("[█▏▎▍▌▋▊▉]+", "", out.text)


def test_without_colours_brackets_mark_the_subject_of_a_sample(tmp_path: Path) -> None:
    text = " ".join(_print_page(next(pages(tmp_path, hostile="vllm")), 120).split())
    assert '⟦{"name": "get_weather", "arguments": {}}⟧' in text
