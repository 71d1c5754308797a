"""docs/formats.md is what `make pages` writes, and the TOML it shows is a format that works."""

import re
from pathlib import Path

from formats_page import page
from rightcall import Format, formats
from rightcall.cli.format_sample import sample
from rightcall.laws import check_format

PAGE = Path(__file__).resolve().parent.parent / "docs" / "formats.md"


def test_the_page_of_formats_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "stale: run `make pages`"


def test_the_page_has_every_format_with_a_sample() -> None:
    headings = re.findall(r"(?m)^### (\w+)\n\n~~~\n(?!~~~)", page())
    assert headings == list(formats.FORMATS)


def test_every_sample_has_two_calls_and_no_line_that_ends_its_block() -> None:
    for format in formats.FORMATS.values():
        text = sample(format)
        assert "get_weather" in text and "get_time" in text and "~~~" not in text


def test_the_toml_on_the_page_is_a_format_that_keeps_the_laws() -> None:
    (block,) = re.findall(r"(?ms)^~~~toml\n(.*?)^~~~$", page())
    assert check_format(Format.from_toml(block), samples=20) == []
