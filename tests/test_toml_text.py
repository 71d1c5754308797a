"""A format written as TOML is read back unchanged, so every built-in format can be a starting point."""

import msgspec
import pytest

from rightcall import Format
from rightcall.formats import FORMATS
from rightcall.formats.special_tokens import special_tokens
from rightcall.formats.toml_text import format_to_toml
from support.format_sample import sampled


@pytest.mark.parametrize("name", sampled())
def test_a_format_survives_a_round_trip_through_toml(name: str) -> None:
    custom = msgspec.structs.replace(FORMATS[name], name="my_own", aliases=())
    restored = Format.from_toml(format_to_toml(custom))
    assert restored == custom
    assert set(special_tokens(restored)) == set(special_tokens(custom))


def test_the_name_of_a_channel_may_be_any_text() -> None:
    channels = FORMATS["harmony"].channels
    assert channels is not None
    kinds = {**channels.kinds, "my notes.v2": "content", 'a "quoted" one': "reasoning"}
    custom = msgspec.structs.replace(
        FORMATS["harmony"], name="my_own", aliases=(), channels=msgspec.structs.replace(channels, kinds=kinds)
    )
    assert Format.from_toml(format_to_toml(custom)) == custom
