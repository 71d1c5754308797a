"""A call of any format that is shown on one line, or with its line breaks written as `\\n`, is told and never runs."""

from __future__ import annotations

import pytest

from rightcall import Call, Tool, parse, render
from support.format_sample import sampled
from support.replies import codes

DELETE = Tool(name="delete_rows", parameters={"type": "object", "properties": {"table": {"type": "string"}}})


@pytest.mark.parametrize("break_", [" ", "\\n"])
@pytest.mark.parametrize("name", sampled())
def test_a_call_shown_on_one_line_leaves_a_note(name: str, break_: str) -> None:
    text = render(Call("delete_rows", {"table": "users"}), format=name, tools=[DELETE]).strip().replace("\n", break_)
    for shown in (f"> {text}", f'The form is "{text}".', f"It is ````{text}````."):
        for format in (name, "auto"):
            reply = parse(shown, format=format, tools=[DELETE])
            assert reply.attempts == () and "looks_like_a_call" in codes(reply)
