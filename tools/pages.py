"""Write the pages of docs/ that are generated from the source: `make pages`. `--check` only lists stale pages."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import failures_page
import formats_page
import problems_page
import reference_page
import rules_page

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES: dict[str, Callable[[], str]] = {
    "failures.md": failures_page.page,
    "formats.md": formats_page.page,
    "problems.md": problems_page.page,
    "reference.md": reference_page.page,
    "repair.md": rules_page.page,
}


def stale_pages() -> list[str]:
    """Return the pages that differ from what would be generated now."""
    return [name for name, page in PAGES.items() if not _is_fresh(DOCS / name, page())]


def _is_fresh(path: Path, text: str) -> bool:
    return path.exists() and path.read_text("utf-8") == text


def main() -> int:
    stale_names = stale_pages()
    for name in stale_names:
        print(f"stale: docs/{name}" if "--check" in sys.argv[1:] else f"written: docs/{name}")
        if "--check" not in sys.argv[1:]:
            (DOCS / name).write_text(PAGES[name](), "utf-8")
    return int(bool(stale_names) and "--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
