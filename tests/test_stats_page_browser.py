"""The page of `dataset stats` in a real browser, where there is one: nothing of it is cut off, and nothing runs."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

from captured import rows, write
from rightcall.cli.stats_page import page
from rightcall.datasets.stats import statistics

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
HOSTILE = '</title></svg><script>document.title = "owned"</script><img src=x onerror="document.title = 1">'
# Beside the page, not in it: a frame around it that measures what the browser made of it. `page` itself has no script.
MEASURE = """<!doctype html><meta charset="utf-8"><pre id="told"></pre>
<iframe id="seen" width="WIDTH" height="900"></iframe>
<script>
const seen = document.getElementById("seen");
seen.onload = () => {
  const inside = seen.contentDocument;
  const cut = [...inside.querySelectorAll("section")].filter((each) => each.scrollWidth > each.clientWidth).length;
  const wide = inside.documentElement.scrollWidth > inside.documentElement.clientWidth;
  const told = {title: inside.title, sections: inside.querySelectorAll("section").length, cut, wide,
    styled: getComputedStyle(inside.querySelector("section")).borderTopStyle,
    alien: inside.querySelectorAll("script, img").length};
  document.getElementById("told").textContent = JSON.stringify(told);
};
seen.srcdoc = PAGE;
</script>"""


@pytest.mark.skipif(not BROWSER, reason="no chromium is installed")
@pytest.mark.parametrize("width", [400, 620, 1180, 1600])
def test_every_chart_is_seen_whole_and_nothing_runs(width: int, tmp_path: Path) -> None:
    hostile = {**rows("right")[0], "format": HOSTILE, "candidate_call": {"name": HOSTILE, "arguments": {}}}
    text = page(statistics([write(tmp_path / "a.jsonl", [*rows(), hostile])]), HOSTILE)
    framed = MEASURE.replace("WIDTH", str(width)).replace("PAGE", json.dumps(text).replace("<", "\\u003c"))
    (tmp_path / "frame.html").write_text(framed)
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=5000",
        f"--user-data-dir={tmp_path}/user",
    ]
    seen = subprocess.run(
        [BROWSER, *flags, "--dump-dom", (tmp_path / "frame.html").as_uri()], capture_output=True, text=True, timeout=120
    ).stdout
    found = re.search(r'<pre id="told">(.*?)</pre>', seen, re.S)
    assert found is not None, seen[:2_000]
    told = json.loads(unescape(found[1]))
    assert told.pop("sections") > 8
    assert told.pop("title").startswith("</title>")
    assert told == {"cut": 0, "wide": False, "styled": "solid", "alien": 0}
