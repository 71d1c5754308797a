"""Pages in a real browser, if one is available: nothing is cut off, only their own script runs, and it works.

`make pagetests` runs these tests and requires a browser.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rightcall.evaluation.webpage import render_page
from support.browser import Browser, needs_browser
from support.webpages import pages

pytestmark = needs_browser

LAYOUT_FAULTS = """(() => {
  const all = [...document.querySelectorAll("body *")].filter((each) => each.checkVisibility());
  const wide = document.documentElement.clientWidth;
  const cut = all.filter((each) => each.getBoundingClientRect().right > wide + 1 && !each.closest("svg"));
  const fit = all.filter((each) => each.scrollWidth > each.clientWidth + 1 && each.clientWidth
    && !["INPUT", "SELECT"].includes(each.tagName) && getComputedStyle(each).display !== "inline");
  return {wide: document.documentElement.scrollWidth > wide, cut: cut.map((each) => each.outerHTML.slice(0, 200)),
    fit: fit.map((each) => each.outerHTML.slice(0, 200)), title: document.title.slice(0, 8),
    alien: document.querySelectorAll("img, iframe, object, link, a").length};
})()"""
# The contrast of every text with its background, computed as in WCAG.
CONTRAST = """(() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [.2126, .7152, .0722][at], 0);
  const behind = (each) => { while (each) { const c = rgb(getComputedStyle(each).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; each = each.parentElement; } return [255, 255, 255]; };
  const low = [];
  for (const each of document.querySelectorAll("body *")) {
    const says = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!says || !each.checkVisibility() || ["SCRIPT", "OPTION"].includes(each.tagName)) continue;
    const [a, b] = [light(rgb(getComputedStyle(each).color)), light(behind(each))].sort((x, y) => y - x);
    if ((a + .05) / (b + .05) < 4.5) low.push([each.className, each.tagName, (a + .05) / (b + .05)]);
  }
  return low;
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.mark.parametrize("width", [390, 820, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_completely_visible_and_readable(browser: Browser, width: int, scheme: str, tmp_path: Path) -> None:
    for page in pages(tmp_path):
        browser.open(render_page(page), width=width, scheme=scheme)
        browser.eval("document.querySelectorAll('details').forEach((each) => each.open = true)")
        assert browser.eval(LAYOUT_FAULTS) == {"wide": False, "cut": [], "fit": [], "title": "</title>", "alien": 0}
        assert browser.eval(CONTRAST) == []
        assert browser.log_messages == []
        assert len(browser.requests) == 1, "the page asked for something"


def test_print_shows_everything_and_no_controls(browser: Browser, tmp_path: Path) -> None:
    browser.open(render_page(next(pages(tmp_path))), scheme="dark", media="print")
    assert browser.eval("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert (
        browser.eval("[...document.querySelectorAll('.find, .controls')].some((each) => each.checkVisibility())")
        is False
    )


VISIBLE = "[...document.querySelectorAll({})].filter((each) => each.checkVisibility())"
ROWS = VISIBLE.format("'.table:not(:has(details)) tbody tr'") + ".map((row) => row.cells[{}].innerText)"
CARDS = VISIBLE.format("'article'") + ".map((each) => each.dataset.name)"


def click(browser: Browser, selector: str) -> None:
    browser.eval(f"document.querySelector({selector!r}).click()")


def type_into(browser: Browser, selector: str, text: str) -> None:
    browser.eval(
        f"(() => {{ const field = document.querySelector({selector!r}); field.value = {text!r}; "
        "field.dispatchEvent(new Event('input')); field.dispatchEvent(new Event('change')); })()"
    )


def test_a_click_sorts_and_a_second_click_reverses_the_order(browser: Browser, tmp_path: Path) -> None:
    browser.open(render_page(next(pages(tmp_path))))
    for column, numbers in ((1, True), (3, True), (1, True)):
        click(browser, f"th:nth-child({column + 1}) button")
        cells = browser.eval(ROWS.format(column))
        values = [float(each.split("\xa0")[0].replace(",", "").replace("–", "-1")) for each in cells]
        assert values == sorted(values, reverse=numbers) and len(values) > 4
        click(browser, f"th:nth-child({column + 1}) button")
        assert browser.eval(ROWS.format(column))[0] == cells[-1]
    click(browser, "th button")
    names = [name.lower() for name in browser.eval(ROWS.format(0))]
    assert names == sorted(names)
    assert browser.eval("document.querySelectorAll('[aria-sort]').length") == 1


def test_rows_are_filtered_by_words(browser: Browser, tmp_path: Path) -> None:
    browser.open(render_page(next(pages(tmp_path))))
    type_into(browser, ".table .find", "qwen hermes")
    assert [name.split("\n")[0] for name in browser.eval(ROWS.format(0))] == ["Qwen/Qwen2.5-7B-Instruct"]
    type_into(browser, ".table .find", "")
    assert len(browser.eval(ROWS.format(0))) == 7


def test_samples_are_filtered_by_kind_by_words_and_by_a_click_on_a_bar(browser: Browser, tmp_path: Path) -> None:
    browser.open(render_page(next(pages(tmp_path))))
    everything = browser.eval(CARDS)
    assert len(everything) > 20
    type_into(browser, ".samples select", "repaired")
    assert {name.split(":")[0] for name in browser.eval(CARDS)} == {"repaired"}
    click(browser, '[data-pick="refused:missing"]')
    assert set(browser.eval(CARDS)) == {"refused:missing"}
    assert browser.eval("document.querySelector('output').value").endswith(f" of {len(everything)}")
    type_into(browser, ".samples select", "")
    type_into(browser, ".samples .find", "smollm2 required")
    assert 0 < len(browser.eval(CARDS)) < len(everything)
    type_into(browser, ".samples .find", "")
    assert browser.eval(CARDS) == everything
