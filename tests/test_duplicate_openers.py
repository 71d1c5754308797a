"""Duplicate openers, and code fences after an opener: no call is lost, in any format that has an opener."""

from __future__ import annotations

import json

import pytest

from rightcall import Call, Reply, Tool, Toolset, render
from rightcall.formats import FORMATS
from rightcall.formats.spec import Envelope, Format, Params, marker_alternatives
from support.cuts import Setting, hold_of_every_cut
from support.format_sample import sampled

TOOLS = Toolset([Tool(name="lookup", parameters={"type": "object", "properties": {"word": {"type": "string"}}})])


def _opener(format: Format) -> str:
    """Return the opener of a call, or "" if it contains a name or a fence."""
    text = str(marker_alternatives(format.call[0])[0])
    return "" if "{" in text or "```" in text else text


WITH_OPENER = [name for name, format in FORMATS.items() if _opener(format) and format.channels is None]


def _holds_name(body: object) -> bool:
    """Return whether a tag contains the name of the call."""
    return isinstance(body, Params) and str(marker_alternatives(body.open)[0]).lstrip()[:1] == "<"


def _words(reply: Reply) -> list[str]:
    return [call.arguments["word"] for call in reply.calls]


def _call(name: str, word: str) -> str:
    return render([Call("lookup", {"word": word})], format=name, tools=TOOLS)


@pytest.mark.parametrize("gap", ["", "\n", " "])
@pytest.mark.parametrize("name", sampled(WITH_OPENER))
def test_a_duplicate_opener_loses_no_call(name: str, gap: str) -> None:
    opener = _opener(FORMATS[name])
    text = _call(name, "owl").replace(opener, opener + gap + opener, 1)
    assert _words(hold_of_every_cut(text, Setting(name, TOOLS))) == ["owl"]


@pytest.mark.parametrize("name", sampled(WITH_OPENER))
def test_a_fence_inside_a_call_hides_no_later_call(name: str) -> None:
    keys = next((body for body in FORMATS[name].bodies if isinstance(body, Envelope) and body.names), Envelope())
    sent = json.dumps({keys.names[0]: "lookup", keys.args[0]: {"word": "owl"}})
    close = str(marker_alternatives(FORMATS[name].call[1])[0])
    if "```" in close:
        return  # the fence belongs to the format
    text = f"{_opener(FORMATS[name])}\n```json\n{sent}\n```\n{close}\n" + _call(name, "bat")
    reply = hold_of_every_cut(text, Setting(name, TOOLS))
    assert _words(reply)[-1:] == ["bat"] and "```" not in reply.content, reply
    assert [call.arguments.get("word") for call in reply.attempts] in (["owl", "bat"], [None, "bat"])


@pytest.mark.parametrize("odd", ["get weather", "look/up", "\u00a0"])
def test_a_tag_with_an_invalid_name_before_json_is_a_rejected_call(odd: str) -> None:
    text = f'<function={odd}>{{"word": "owl"}}</function>' + _call("functionary_v31", "bat")
    reply = hold_of_every_cut(text, Setting("functionary_v31", TOOLS))
    assert (_words(reply), len(reply.refused), reply.content) == (["bat"], 1, "")
    prose = f"The tag <function={odd}> opens one."
    assert hold_of_every_cut(prose, Setting("functionary_v31", TOOLS)).content == prose


TAGGED = [name for name, format in FORMATS.items() if any(map(_holds_name, format.bodies))]


@pytest.mark.parametrize("padded", [" lookup ", " lookup", "lookup  "])
@pytest.mark.parametrize("name", sampled(TAGGED))
def test_blanks_around_the_name_in_a_tag_are_read_or_reported(name: str, padded: str) -> None:
    text = _call(name, "owl").replace("lookup", padded)
    reply = hold_of_every_cut(text, Setting(name, TOOLS))
    assert _words(reply) == ["owl"] or (not reply.calls and reply.problems)
