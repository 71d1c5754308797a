"""The result of a tool as text, for an endpoint without a role for it: each family reads its own form.

    result_text("21 degrees", name="get_weather", format="hermes")    # <tool_response>\\n21 degrees\\n</tool_response>

The text is given as it is, since a file has to arrive as it was; only what would end the block is parted by a blank.
Families whose results stand in a turn of their own get the text of that turn.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rightcall.formats import find
from rightcall.formats.spec import Format

_HOLE = re.compile(r"\{(name|text)\}")
_MARKER = re.compile(r"<[^<>\s]+>|\[/[A-Z_]+\]")
_TAGGED = "<tool_response>\n{text}\n</tool_response>"
RESULTS: dict[str, str] = {
    **dict.fromkeys(("hunyuan_a13b", "step3p5"), "<tool_response>{text}</tool_response>"),
    **dict.fromkeys(("minimax_m2", "minimax_m3"), "<response>{text}</response>"),
    **dict.fromkeys(
        ("deepseek_v32", "deepseek_v4"), "<function_results>\n<result>{text}</result>\n</function_results>"
    ),
    **dict.fromkeys(("mistral", "mistral_v11", "ministral3"), "[TOOL_RESULTS]{text}[/TOOL_RESULTS]"),
    "deepseek_v3": "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>{text}<｜tool▁output▁end｜><｜tool▁outputs▁end｜>",
    "deepseek_v31": "<｜tool▁output▁begin｜>{text}<｜tool▁output▁end｜>",
    "nemotron_v2": "<TOOL_RESPONSE>[{text}]</TOOL_RESPONSE>",
    "lfm2": "<|tool_response_start|>{text}<|tool_response_end|>",
    "gemma4": '<|tool_response>response:{name}{value:<|"|>{text}<|"|>}<tool_response|>',
    "muse": '<tool_output name="{name}">\n{text}\n</tool_output>',
    "granite_20b_fc": "<function_response> {text}",
    "minimax_m1": "tool result: {text}\n",
    "olmo3": "Function {name} returned:\n{text}",
}


def result_text(text: str, *, name: str, format: str | Format = "contract") -> str:
    """What a model without a role for results is shown as the result of a call.

    - `text`: the result, given as it is; only what would end the block is parted by a blank.
    - `name`: the tool that was called.
    - `format`: whose form to use; tags where no other is known.
    """
    form = _form(format)
    holes = {"name": " ".join(name.split()), "text": _inside(text, form)}
    return _HOLE.sub(lambda hole: holes[hole.group(1)], form)


def results_in(said: str, *, format: str | Format = "contract") -> tuple[list[tuple[str, str]], str]:
    """The results, as name and text, that a message begins with, written as `result_text` writes them, and what stands
    behind them. The name is "" where the form does not say it.

    - `said`: a message of the user's side, right behind a turn with calls.
    - `format`: whose form it is.
    """
    form = _form(format)
    before, _, after = form.partition("{text}")
    found: list[tuple[str, str]] = []
    opens, at = _opening(before), 0
    while (start := opens.match(said, at)) is not None:
        end = said.find(after, start.end()) if after.strip() else len(said)
        if end < 0:
            break
        found.append((start.groupdict().get("name", ""), _outside(said[start.end() : end], form)))
        at = end + len(after)
    return found, said[at:].strip() if found else said


@lru_cache(64)
def _opening(before: str) -> re.Pattern[str]:
    head, name, tail = before.partition("{name}")
    said = "(?P<name>[\\w.-]++)" if name else ""
    return re.compile(rf"\s*+{re.escape(head)}{said}{re.escape(tail)}")


def _form(format: str | Format) -> str:
    return _TAGGED if format == "contract" else RESULTS.get(find(format).name, _TAGGED)


def _ends(form: str) -> list[str]:
    return _MARKER.findall(form.rpartition("{text}")[2])


def _inside(text: str, form: str) -> str:
    """The text with a blank in every marker that would end its block."""
    for end in _ends(form):
        text = text.replace(end, f"{end[0]} {end[1:]}")
    return text


def _outside(text: str, form: str) -> str:
    """The text as it was before `_inside`."""
    for end in _ends(form):
        text = text.replace(f"{end[0]} {end[1:]}", end)
    return text if form.rpartition("{text}")[2].strip() else text.removesuffix("\n")
