"""docs/formats.md lists every format, and the TOML that it shows is a working format."""

import re
from pathlib import Path

import pytest

from format_fields import AROUND, BODY, CHANNELS, KINDS, PROTOCOL, examples, meanings
from rightcall import Format, formats, parse
from rightcall.cli.formats_command import render_sample
from rightcall.formats import Channels, Protocol
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.toml import SPECIAL
from rightcall.testing.laws import check_format

PAGE = Path(__file__).resolve().parent.parent / "docs" / "formats.md"


def test_the_page_has_every_format_with_a_sample() -> None:
    headings = re.findall(r"(?m)^### (\w+)\n\n~~~\n(?!~~~)", PAGE.read_text("utf-8"))
    assert headings == list(formats.FORMATS)


def test_every_sample_has_two_calls_and_no_closing_fence() -> None:
    """The samples of the page are current: `test_every_generated_page_is_current` renders them again."""
    sections = re.findall(r"(?ms)^### (\w+)\n\n~~~\n(?!~~~)(.*?)(?=^###? |\Z)", PAGE.read_text("utf-8"))
    assert [name for name, _ in sections] == list(formats.FORMATS)
    for _, text in sections:
        sample, *after = text.rstrip("\n").split("~~~")
        assert "get_weather" in sample and "get_time" in sample and after == [""]


def test_the_toml_format_of_the_page_satisfies_the_laws() -> None:
    block, _ = re.findall(r"(?ms)^~~~toml\n(.*?)^~~~$", PAGE.read_text("utf-8"))  # the other block belongs to a package
    assert check_format(Format.from_toml(block), samples=20) == []


@pytest.mark.parametrize("key", examples())
def test_the_example_of_a_key_is_a_format_that_parses_its_own_rendering(key: str) -> None:
    format = Format.from_toml(examples()[key])
    text = render_sample(format, calls=1)
    assert "get_weather" in text
    assert [call.name for call in parse(text, format=format).calls] == ["get_weather"]


def test_every_key_of_a_format_file_is_documented() -> None:
    tables = {"format": (Format, AROUND), "channels": (Channels, CHANNELS), "protocol": (Protocol, PROTOCOL)}
    tables |= {kind: (body, BODY[kind]) for kind, body in KINDS.items()}
    assert set(KINDS.values()) == set(BODIES)
    for where, (struct, lines) in tables.items():
        fields = set(struct.__struct_fields__) - {"channels", "protocol"} | ({SPECIAL} if struct is Format else set())
        assert fields == set(lines) <= set(meanings(struct, where))
