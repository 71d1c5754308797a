"""Markers inside a value never complete a call that is truncated in that value."""

from __future__ import annotations

from itertools import product

import pytest

from rightcall import Call, CannotCarry, parse, render
from rightcall.formats import FORMATS
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format, marker_alternatives
from rightcall.testing.laws.samples import TOOLS
from support.format_sample import sampled


def _markers(format: Format) -> list[str]:
    """Return the markers of a call as they appear in one with the argument `text`."""
    kind = BODIES[type(format.bodies[0])]
    found = [text for marker in (*kind.markers(format.bodies[0]), *format.call) for text in marker_alternatives(marker)]
    return sorted({str(text).replace("{name}", "take_note").replace("{key}", "text").strip() for text in found} - {""})


_BRACKETS = ("}", "]", ")", "})")
_GAPS = ("", " ", "\n\n")
BARE = [name for name, format in FORMATS.items() if not _markers(format)]  # formats recognized by brackets only


def _truncated_texts(format: Format) -> list[str]:
    """Return calls truncated after two markers in the argument, if the format can represent those."""
    texts = []
    for first, gap, second in product(_markers(format), _GAPS, [*_markers(format), *_BRACKETS]):
        value = f"x{first}{gap}{second} owl"
        try:
            texts.append(render(Call("take_note", {"text": value}), format=format, tools=TOOLS).partition(" owl")[0])
        except CannotCarry:
            continue
    return texts


@pytest.mark.parametrize("name", sampled(name for name in FORMATS if name not in BARE))
def test_markers_in_a_value_complete_no_truncated_call(name: str) -> None:
    texts = _truncated_texts(FORMATS[name])
    assert texts
    for text in texts:
        assert not any(call.complete for call in parse(text, format=name, tools=TOOLS).attempts), text
