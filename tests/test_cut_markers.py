"""A text that ends inside a marker behind its first token: what came of it is no text, and a call that was about to
begin is told."""

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


def begun(marker: Marker) -> Iterator[str]:
    """The marker as far as it may have come, for those that begin with a token and hold more."""
    for text in marker_alternatives(marker):
        first = text.tokens[0] if isinstance(text, Special) and text.tokens else ""
        if first and text.startswith(first) and "{" not in text:
            yield from (text[:end] for end in range(len(first) + 1, len(text.rstrip())) if text[:end].strip() != first)


def opened(format: Format) -> list[str]:
    pairs = [pair for pair in (format.section, format.call) if pair is not None]
    ends = {end.strip() for end in format.ends}
    return [text for pair in pairs for text in begun(pair[0]) if text.strip() not in ends]


OPENED = [(name, text) for name, format in FORMATS.items() for text in opened(format)]


@pytest.mark.parametrize("name, text", sampled_rows(OPENED))
def test_a_final_opener_is_reported_and_no_text(name: str, text: str) -> None:
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
def test_another_marker_that_the_text_ends_in_is_no_text(name: str, text: str) -> None:
    assert parse(text, format=name).content == "Done."


def test_words_after_a_token_that_begin_no_marker_are_text() -> None:
    reply = parse("Done.<|open|>today", format="kimi_k3")
    assert reply.content == "Done.\ntoday"
    assert codes(reply) == ["stray_marker"]
