"""Calls that lack their opening token, which a prompt may end with: parsed at the start of a reply, else reported."""

from __future__ import annotations

import pytest

from rightcall import Call, Reply, Tool, Toolset, parse, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Format, NameThenJson, Special, marker_alternatives
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled

TOOLS = Toolset([Tool(name="lookup", parameters={"type": "object", "properties": {"word": {"type": "string"}}})])
WITH_STOP = Toolset([*TOOLS, Tool(name="stop", parameters={"type": "object", "properties": {}})])
OWL, BAT = Call("lookup", {"word": "owl"}), Call("lookup", {"word": "bat"})


def _begins_with_token_and_name(format: Format) -> bool:
    """Return whether a call begins with its name after a special token."""
    body = format.bodies[0]
    opens = marker_alternatives(body.open)[0] if isinstance(body, NameThenJson) else ""
    is_word = not opens.startswith(opens.tokens) if isinstance(opens, Special) else False
    return is_word and "{" not in opens.partition("{name}")[0] and format.channels is None


FORMATS_WITH_TOKEN_AND_NAME = [
    name for name, format in FORMATS.items() if _begins_with_token_and_name(format) and format.call[0]
]
every_format_with_token_and_name = pytest.mark.parametrize("name", sampled(FORMATS_WITH_TOKEN_AND_NAME))


def _without_opener(name: str, calls: list[Call]) -> str:
    text = render(calls, format=name, tools=TOOLS)
    body = FORMATS[name].bodies[0]
    assert isinstance(body, NameThenJson)
    return text[text.index(str(marker_alternatives(body.open)[0]).partition("{name}")[0] + "lookup") :]


def _read(name: str, text: str) -> Reply:
    return hold_of_every_cut(text, Setting(name, TOOLS))


def test_the_family_of_formats_is_not_empty() -> None:
    assert {"deepseek_v31", "kimi_k2", "mistral_v11"} <= set(FORMATS_WITH_TOKEN_AND_NAME)


@every_format_with_token_and_name
@pytest.mark.parametrize("before", ["", "\n", "<think>Hm.</think>\n"])
def test_the_first_call_may_lack_its_opener(name: str, before: str) -> None:
    reply = _read(name, before + _without_opener(name, [OWL, BAT]))
    assert [call.arguments for call in reply.calls] == [OWL.arguments, BAT.arguments]
    assert (reply.content, reply.refused) == ("", ())


@every_format_with_token_and_name
@pytest.mark.parametrize("before", ["So: ", "It is "])
def test_a_call_without_its_opener_after_other_text_is_text(name: str, before: str) -> None:
    reply = _read(name, before + _without_opener(name, [OWL]))
    assert not reply.attempts and "looks_like_a_call" in [problem.code for problem in reply.problems]


@every_format_with_token_and_name
def test_without_an_opener_a_call_of_an_undeclared_tool_is_text(name: str) -> None:
    reply = _read(name, _without_opener(name, [OWL]).replace("lookup", "nothing"))
    assert not reply.attempts and "owl" in reply.content


@every_format_with_token_and_name
def test_prose_after_the_token_is_text(name: str) -> None:
    text = _without_opener(name, [OWL])
    assert not _read(name, text[: text.index("{")] + " takes a word.").attempts


@every_format_with_token_and_name
def test_a_truncated_call_without_its_opener_is_rejected(name: str) -> None:
    text = _without_opener(name, [OWL])
    for end in range(text.index("{"), text.index("}")):
        reply = _read(name, text[:end])
        assert [call.name for call in reply.refused] == ["lookup"] and not reply.calls


# -- remainders of calls that lost their opener or belong to no format are reported ------------------------------------

CALL_REMAINDERS = [
    "<function_callsstop()",
    "[TOOL_CALLSstop()",
    "<tool_callstop{}",
    "```tool_code\nstop\n```",
    "```tool_code\nprint(stop\n```",
    "stop\n```python\ntool_call()\n```",
    "I look.\nstop\n```python\ntool_call()\n```",
    "stop\n```json\n{}\n```",
    "stop>{}</function>",
    "=stop>\n{}\n</function>",
    "<stop/>",
    "<stop>{}</stop>",
    # gpt-oss, where a server omits the special tokens
    "assistantcommentary to=functions.stop json{}",
    "analysisLet me end it.assistantcommentary to=functions.stopjson{}",
    "assistantcommentary to=stopcode{}",
]


@pytest.mark.parametrize("text", CALL_REMAINDERS)
@pytest.mark.parametrize("format", ["auto", *sampled()])
def test_the_remainder_of_a_call_of_a_declared_tool_is_reported_in_every_format(format: str, text: str) -> None:
    reply = parse(text, format=format, tools=WITH_STOP)
    messages = [problem.message for problem in reply.problems if problem.code == "looks_like_a_call"]
    assert reply.attempts or "'stop'" in "".join(messages)


@pytest.mark.parametrize("inside", ["x = 1", "print('hello')", "# nothing", ""])
def test_a_call_fence_without_calls_is_reported(inside: str) -> None:
    reply = hold_of_every_cut(f"```tool_code\n{inside}\n```", Setting("tool_code", WITH_STOP))
    assert [problem.code for problem in reply.problems] == ["opener_without_call"] and not reply.attempts
