"""Texts that end inside a marker: the partial marker is not text, and a partial call opener is reported."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rightcall import parse
from rightcall.formats import FORMATS
from rightcall.formats.spec import Format, Marker, Special, marker_alternatives
from support.cuts import Setting
from support.cuts import read as read_chunks
from support.format_sample import sampled_rows
from support.replies import codes


def partial_markers(marker: Marker) -> Iterator[str]:
    """Yield every prefix of the marker that is longer than its first token, if it begins with a token."""
    for text in marker_alternatives(marker):
        first = text.tokens[0] if isinstance(text, Special) and text.tokens else ""
        if first and text.startswith(first) and "{" not in text:
            yield from (text[:end] for end in range(len(first) + 1, len(text.rstrip())) if text[:end].strip() != first)


def partial_openers(format: Format) -> list[str]:
    pairs = [pair for pair in (format.section, format.call) if pair is not None]
    ends = {end.strip() for end in format.ends}
    return [text for pair in pairs for text in partial_markers(pair[0]) if text.strip() not in ends]


PARTIAL_OPENERS = [(name, text) for name, format in FORMATS.items() for text in partial_openers(format)]


@pytest.mark.parametrize("name, text", sampled_rows(PARTIAL_OPENERS))
def test_a_partial_opener_at_the_end_is_reported_and_not_text(name: str, text: str) -> None:
    setting = Setting(name, None)
    reply = read_chunks(["Done." + text], setting).reply
    assert (reply.content, reply.calls) == ("Done.", ())
    assert "truncated" in codes(reply)
    assert read_chunks(list("Done." + text), setting).reply == reply


@pytest.mark.parametrize(
    "name, text",
    [
        ("kimi_k3", "Done.<|close|>respon"),
        ("kimi_k3", "Done.<|open|>respon"),
        ("hermes", "Done.<|im_end|>\n<|im_start|>assis"),
    ],
)
def test_another_partial_marker_at_the_end_is_not_text(name: str, text: str) -> None:
    assert parse(text, format=name).content == "Done."


def test_text_after_a_token_that_begins_no_marker_is_kept() -> None:
    reply = parse("Done.<|open|>today", format="kimi_k3")
    assert reply.content == "Done.\ntoday"
    assert codes(reply) == ["stray_marker"]
