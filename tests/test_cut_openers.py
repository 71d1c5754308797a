"""A text that ends inside the opener of a call is a truncated call and not text."""

from __future__ import annotations

import pytest

from rightcall import Call, Tool, Toolset, parse, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Envelope, Format, marker_alternatives
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled

TOOLS = Toolset([Tool(name="lookup", parameters={"type": "object", "properties": {"word": {"type": "string"}}})])


def _opener_of(format: Format) -> str:
    """Return the opener of calls without the tool name."""
    opens = [marker_alternatives(pair[0])[0] for pair in (format.section, format.call) if pair is not None]
    return next((str(text).strip() for text in opens if text), "")


# A fence is judged when it is closed; headers of tokens are tested in `test_lost_recipients.py`.
FORMATS_WITH_OPENERS = [
    name
    for name, format in FORMATS.items()
    if format.channels is None
    and _opener_of(format)
    and not any(sign in _opener_of(format) for sign in ("{name}", "```"))
]


@pytest.mark.parametrize("name", sampled(FORMATS_WITH_OPENERS))
def test_a_call_truncated_inside_its_opener_or_name_is_reported(name: str) -> None:
    text = "One second." + render([Call("lookup", {"word": "owl"})], format=name, tools=TOOLS)
    opener = _opener_of(FORMATS[name])
    for end in range(text.index(opener) + len(opener), text.index("lookup") + len("lookup") + 1):
        reply = hold_of_every_cut(text[:end], Setting(name, TOOLS))
        blocking_codes = [problem.code for problem in reply.problems if problem.blocking]
        assert [call.name for call in reply.refused][-1:] in ([], [""], ["lookup"]), text[:end]
        assert (reply.content, blocking_codes, reply.calls) == ("One second.", ["truncated"], ()), text[:end]
    if not isinstance(FORMATS[name].bodies[0], Envelope):  # a JSON name continues until its closing quote
        assert [call.name for call in reply.refused] == ["lookup"]


@pytest.mark.parametrize("name", sampled(FORMATS_WITH_OPENERS))
@pytest.mark.parametrize("word", ["hello", "hello there", ".", "is how a call begins"])
def test_final_prose_after_an_opener_is_text(name: str, word: str) -> None:
    reply = hold_of_every_cut(f"Write {_opener_of(FORMATS[name])} {word}", Setting(name, TOOLS))
    is_name = word == "hello" and "truncated" in [problem.code for problem in reply.problems]
    assert is_name or (reply.content.endswith(word) and not reply.attempts), reply


def _cuts_behind_a_comma(name: str) -> list[str]:
    """Return the beginnings of a rendered reply of two calls that end in a comma behind the first call."""
    calls = [Call("lookup", {"word": "owl"}), Call("lookup", {"word": "elk"})]
    text = render(calls, format=name, tools=TOOLS)
    behind = text.index("owl")
    between = [text[:end] for end in range(behind, text.index("elk")) if text[:end].rstrip().endswith(",")]
    replies = {cut: parse(cut, format=name, tools=TOOLS) for cut in between}
    return [cut for cut, reply in replies.items() if len(reply.attempts) == len(reply.calls) == 1]


@pytest.mark.parametrize("name", sampled([name for name in FORMATS if _cuts_behind_a_comma(name)]))
def test_a_list_that_is_cut_off_behind_its_comma_is_reported(name: str) -> None:
    for cut in _cuts_behind_a_comma(name):
        reply = parse(cut, format=name, tools=TOOLS)
        assert "truncated" in {problem.code for problem in reply.problems if problem.blocking}, cut
