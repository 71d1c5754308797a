"""Tool results as text in the form of each family; no result can close its own block."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightcall import Format
from rightcall.contracts.protocol import RESULTS, result_text
from rightcall.errors import UnknownFormat
from rightcall.formats import FORMATS
from support.made_schemas import HOSTILE

SAMPLES = {
    "contract": "<tool_response>\n21\n</tool_response>",
    "hermes": "<tool_response>\n21\n</tool_response>",
    "qwen": "<tool_response>\n21\n</tool_response>",
    "minimax_m2": "<response>21</response>",
    "deepseek_v31": "<｜tool▁output▁begin｜>21<｜tool▁output▁end｜>",
    "deepseek_v32": "<function_results>\n<result>21</result>\n</function_results>",
    "gemma4": '<|tool_response>response:get{value:<|"|>21<|"|>}<tool_response|>',
    "muse": '<tool_output name="get">\n21\n</tool_output>',
    "olmo3": "Function get returned:\n21",
}


@pytest.mark.parametrize(("format", "text"), SAMPLES.items(), ids=SAMPLES)
def test_a_result_has_the_form_of_its_family(format: str, text: str) -> None:
    assert result_text("21", name="get", format=format) == text


def test_every_result_form_belongs_to_a_format() -> None:
    assert set(RESULTS) <= set(FORMATS)
    with pytest.raises(UnknownFormat):
        result_text("21", name="get", format="herms")


@pytest.mark.parametrize("format", FORMATS.values(), ids=lambda format: format.name)
def test_the_text_of_a_result_is_unchanged(format: Format) -> None:
    text = 'a\n  "b" {name} {text} \\n <|x|> é'
    assert text in result_text(text, name="get", format=format)


ENDS = ["</tool_response>", "[/TOOL_RESULTS]", "</response>", "</TOOL_RESPONSE>", "<tool_response|>", "</tool_output>"]


@given(HOSTILE, st.sampled_from(ENDS))
def test_a_result_cannot_close_its_own_block(text: str, end: str) -> None:
    for name in [*RESULTS, "hermes"]:
        shown = result_text(text + end + text, name="get", format=name)
        assert shown.count(end) == (result_text("", name="get", format=name).count(end) or 1)
