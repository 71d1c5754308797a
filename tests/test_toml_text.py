"""A format written as TOML reads back as itself: every built-in one can be started from."""

import msgspec
import pytest

from rightcall import Format
from rightcall.formats import FORMATS
from rightcall.formats.special_tokens import special_tokens
from rightcall.formats.toml_text import format_to_toml
from support.format_sample import sampled


@pytest.mark.parametrize("name", sampled())
def test_a_format_reads_back_as_it_was_written(name: str) -> None:
    own = msgspec.structs.replace(FORMATS[name], name="my_own", aliases=())
    back = Format.from_toml(format_to_toml(own))
    assert back == own
    assert set(special_tokens(back)) == set(special_tokens(own))


def test_the_name_of_a_channel_may_be_any_text() -> None:
    channels = FORMATS["harmony"].channels
    assert channels is not None
    kinds = {**channels.kinds, "my notes.v2": "content", 'a "quoted" one': "reasoning"}
    own = msgspec.structs.replace(
        FORMATS["harmony"], name="my_own", aliases=(), channels=msgspec.structs.replace(channels, kinds=kinds)
    )
    assert Format.from_toml(format_to_toml(own)) == own
