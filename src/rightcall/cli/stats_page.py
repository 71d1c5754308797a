"""`dataset stats` as pictures: bars for the terminal, and one page of HTML that needs nothing and runs nothing.

The page has no script, loads nothing (its policy is `default-src 'none'`; the one style sheet is allowed by its hash),
and every text out of the data is escaped, with unseen characters shown.
"""

from __future__ import annotations

import html
from base64 import b64encode
from hashlib import sha256

from rich.console import Console
from rich.text import Text

from rightcall.cli.layout import bar_chart
from rightcall.cli.safe import brief
from rightcall.datasets.stats import Histogram, RowStats, edges
from rightcall.files.file_kinds import beginning

_MOST = 20
_FIRST = "<!doctype html><!-- rightcall dataset stats -->"
PAGE = beginning("page of `dataset stats`", _FIRST.encode())

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --bar: #3b6fd4; --line: #d6dae0; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --paper: #15181c; --bar: #7ea6f5; --line: #353b43; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 80rem; padding: 0 1rem; overflow-wrap: anywhere; }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(28rem, 1fr)); gap: 1.5rem; }
section { border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; overflow-x: auto; }
h2 { font-size: 1rem; margin: 0 0 .5rem; }
p { margin: .25rem 0; }
svg { display: block; max-width: 100%; height: auto; }
text { fill: currentColor; font: 12px system-ui, sans-serif; }
rect { fill: var(--bar); }
@media (max-width: 32rem) { main { grid-template-columns: 1fr; } }
"""


def bars(out: Console, stats: RowStats) -> None:
    """The counts and lengths as bars of text."""
    for name, counts in stats.counts.items():
        if counts:
            _chart(out, name, [(brief(value, 40), number) for value, number in counts.most_common(_MOST)], len(counts))
    for name, histogram in stats.lengths.items():
        if histogram.total:
            _chart(out, _length_title(name, histogram), _bins(histogram), 0)


def _chart(out: Console, title: str, rows: list[tuple[str, int]], of: int) -> None:
    out.print(Text(title, "bold"))
    bar_chart(out, rows)
    if of > len(rows):
        out.print(Text(f"  and {of - len(rows):,} more", "dim"))


def _length_title(name: str, histogram: Histogram) -> str:
    unit = "messages of a conversation" if name == "messages" else f"characters of the {name}"
    return f"{unit}: mean {histogram.mean:,.0f}, median up to {histogram.median:,}, largest {histogram.largest:,}"


def _bins(histogram: Histogram) -> list[tuple[str, int]]:
    sizes = range(min(histogram.bins), max(histogram.bins) + 1)
    return [("-".join(dict.fromkeys(f"{edge:,}" for edge in edges(size))), histogram.bins[size]) for size in sizes]


# -- HTML --------------------------------------------------------------------------------------------------------------


def page(stats: RowStats, title: str) -> str:
    """The whole page."""
    charts = [_section(name, _top(stats, name)) for name, counts in stats.counts.items() if counts]
    lengths = stats.lengths.items()
    charts += [_section(_length_title(name, each), _bins(each)) for name, each in lengths if each.total]
    policy = f"default-src 'none'; style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
    return (
        f'{_FIRST}\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_safe(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{_safe(title)}</h1>\n"
        f"<p>{stats.rows:,} rows, {stats.bad:,} of them not as they should be. Made by rightcall; private.</p>\n"
        "<main>\n" + "\n".join(charts) + "\n</main>\n</body>\n</html>\n"
    )


def _top(stats: RowStats, name: str) -> list[tuple[str, int]]:
    counts = stats.counts[name]
    rows = counts.most_common(_MOST)
    rest = sum(counts.values()) - sum(number for _, number in rows)
    return [*rows, ("(the rest)", rest)] if rest else rows


def _section(title: str, rows: list[tuple[str, int]]) -> str:
    """One chart: a bar for each row, drawn as SVG, with its numbers as text."""
    most = max(number for _, number in rows) or 1
    height = 22 * len(rows) + 4
    drawn = [_bar(at, label, number, most) for at, (label, number) in enumerate(rows)]
    label = _safe(title)
    return (
        f'<section>\n<h2>{label}</h2>\n<svg viewBox="0 0 560 {height}" width="560" height="{height}" role="img" '
        f'aria-label="{label}">\n' + "\n".join(drawn) + "\n</svg>\n</section>"
    )


def _bar(at: int, label: str, number: int, most: int) -> str:
    top, width = 22 * at + 2, max(1, round(270 * number / most))
    said = _safe(label, 28)
    return (
        f'<text x="190" y="{top + 14}" text-anchor="end">{said}<title>{_safe(label)}</title></text>'
        f'<rect x="200" y="{top}" width="{width}" height="18" rx="2"></rect>'
        f'<text x="{206 + width}" y="{top + 14}">{number:,}</text>'
    )


def _safe(text: str, most: int = 160) -> str:
    return html.escape(brief(text, most), quote=True)
