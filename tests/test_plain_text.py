"""`is_plain_sentence`: text that every parser leaves unchanged, so that `read` need not parse it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rightcall
from rightcall.formats import Format, register, unregister
from rightcall.parsing.parser import is_plain_sentence
from rightcall.types import Text

TOOLS = rightcall.Toolset([rightcall.Tool(name="get_weather", parameters={"type": "object", "properties": {}})])
WORDS = "Let me look get_weather analysis final commentary assistan functions to Action all null true 3 don't e-mail"
SENTENCES = st.lists(st.sampled_from(WORDS.split()), min_size=1, max_size=6).flatmap(
    lambda words: st.sampled_from([" ", ", ", ". ", ""]).map(lambda between: between.join(words))
)


@given(SENTENCES)
def test_a_plain_sentence_is_parsed_as_one_text(sentence: str) -> None:
    if not is_plain_sentence(sentence):
        return
    reply = rightcall.parse(sentence, tools=TOOLS, choice="get_weather")
    assert (reply.parts, reply.problems) == ((Text(sentence),), ())


@pytest.mark.parametrize("text", ["Let me look.", "I'll check the e-mail, then answer!", "Ça va… bien?"])
def test_prose_is_plain(text: str) -> None:
    assert is_plain_sentence(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", " Hi.", "Hi. ", "two\nlines", "f()", "<tool_call>", "[TOOL_CALLS]", "`code`", '{"a": 1}', "Action: f"),
        *("functions.get_weather", "finalOK. assistantfinalDone.", "to=f", "Here is my thought process:"),
    ],
)
def test_text_with_syntax_characters_is_not_plain(text: str) -> None:
    assert not is_plain_sentence(text)


def test_no_sentence_is_plain_while_a_format_is_registered() -> None:
    register(Format("capitals", body=rightcall.formats.FORMATS["hermes"].body, call=("CALL ", " END")))
    try:
        assert not is_plain_sentence("Let me look.")
    finally:
        unregister("capitals")
