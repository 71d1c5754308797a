"""The response protocol of the contract: its tags, tool results in it, feedback, and canonical replies."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator
from functools import lru_cache

from rightcall.errors import CannotCarry, ToolError
from rightcall.formats import find, known_formats
from rightcall.formats.contract_format import CONTRACT
from rightcall.formats.spec import Format, marker_alternatives
from rightcall.parsing.rendering import render
from rightcall.problems import OF_SERVERS
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Part, Problem, Reply, Text, Tool

NAME = "tool_schema"


def tool_schema(tools: Toolset, show: Callable[[Tool], str]) -> Tool:
    """Return a tool named `tool_schema` (numbered if that name is taken), with which the model reads the declaration of
    one of the `tools`; `show` writes the declaration.

    Called with an undeclared name, the tool raises `ToolError`, which suggests the closest names.
    """

    def run(name: str) -> str:
        """Return the declaration of the tool `name`. Raises `ToolError`, with a suggestion, if there is none."""
        tool = tools.get(name)
        if tool is None:
            near = tools.nearest(name)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "the prompt lists the names"
            raise ToolError(f"there is no tool {name[:80]!r}; {hint}")
        return show(tool)

    return Tool(
        name=_unused_name(tools),
        description="Shows the whole declaration of one tool: what it does, its arguments and their types.",
        parameters={
            "type": "object",
            "properties": {"name": {"type": "string", "description": "The name of the tool, as it is listed."}},
            "required": ["name"],
            "additionalProperties": False,
        },
        read_only=True,
        run=run,
    )


def _unused_name(taken: Container[str]) -> str:
    """Return "tool_schema", or "tool_schema_2" and so on if that is among the names in `taken`."""
    name, number = NAME, 1
    while name in taken:
        number += 1
        name = f"{NAME}_{number}"
    return name


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
    """Write the result of a call for a model whose format has no role for results.

    - `text`: the result, unchanged, except that a closing marker of the block in it gets a blank inserted.
    - `name`: the tool that was called.
    - `format`: the format whose notation is used; `<tool_response>` tags where none is known.
    """
    form = _result_template(format)
    holes = {"name": " ".join(name.split()), "text": _escape_ends(text, form)}
    return _HOLE.sub(lambda hole: holes[hole.group(1)], form)


def results_in(said: str, *, format: str | Format = "contract") -> tuple[list[tuple[str, str]], str]:
    """Parse the results at the start of a message that `result_text` wrote; return them and the remaining text.

    Each result is a pair of name and text. The name is "" where the notation does not contain it.

    - `said`: a message of the user, right after a turn with calls.
    - `format`: the format of the conversation.
    """
    form = _result_template(format)
    before, _, after = form.partition("{text}")
    found: list[tuple[str, str]] = []
    opens, at = _compile_opening(before), 0
    while (start := opens.match(said, at)) is not None:
        end = said.find(after, start.end()) if after.strip() else len(said)
        if end < 0:
            break
        found.append((start.groupdict().get("name", ""), _unescape_ends(said[start.end() : end], form)))
        at = end + len(after)
    return found, said[at:].strip() if found else said


@lru_cache(64)
def _compile_opening(before: str) -> re.Pattern[str]:
    """Return the pattern that matches the text of a result's template before its content, `before`; its group `name` is
    the name of the tool, if the template has one."""
    head, name, tail = before.partition("{name}")
    said = "(?P<name>[\\w.-]++)" if name else ""
    return re.compile(rf"\s*+{re.escape(head)}{said}{re.escape(tail)}")


def _result_template(format: str | Format) -> str:
    """Return the text that this format writes for a tool result, with the placeholders {name} and {text};
    `<tool_response>` tags for a format without its own."""
    return _TAGGED if format == "contract" else RESULTS.get(find(format).name, _TAGGED)


def _closing_markers(form: str) -> list[str]:
    """Return the markers that follow the result in the template `form`; [] if none does."""
    return _MARKER.findall(form.rpartition("{text}")[2])


def _escape_ends(text: str, form: str) -> str:
    """Return the text of a result with a blank after the first character of each marker that would close the block of
    the template `form`."""
    for end in _closing_markers(form):
        text = text.replace(end, f"{end[0]} {end[1:]}")
    return text


def _unescape_ends(text: str, form: str) -> str:
    """Return the text of a result that `_escape_ends` escaped for the template `form`, without the inserted blanks. If
    the template has no closing marker, a final line break is removed."""
    for end in _closing_markers(form):
        text = text.replace(f"{end[0]} {end[1:]}", end)
    return text if form.rpartition("{text}")[2].strip() else text.removesuffix("\n")


_PREVIEW = 120
_TAG_PREVIEW = 40
_LINES = 20
_LONGEST = 600
_FENCE_LINE = re.compile(r"(?m)^[ \t]*(?:```|~~~)[\w ]{0,32}$")
_TAG = re.compile(r"</?[A-Za-z_][^<>\n]{0,200}>?")
_NEAR = "looks_like_a_call"  # reported only without a call: a loop would end as if the text were the answer
# Notes about a call that is runnable but breaks a rule of the protocol.
_SOFT_CODES = ("bare_call", "rescued", "unclosed")


def violations(reply: Reply) -> list[Problem]:
    """Return a problem for each way in which the `reply` breaks the protocol of its format; `reply.problems` are not
    included.

    Empty where the format has no protocol.
    """
    format = _protocol(reply)
    if format is None:
        return []
    found = [problem for text in stray(reply) for problem in _stray_problems(text, format)]
    opens, closes = format.protocol.done if format.protocol else ("", "")
    if reply.done == "":
        found.append(Problem("empty_done", f"the {opens}{closes} block is empty", blocking=False))
    if reply.reasoning and not _has_content(reply):
        found.append(Problem("no_blocks", "the reply has no block in it: neither a call nor a text"))
    return found


def stray(reply: Reply) -> list[str]:
    """Return the texts outside all blocks; none for a format without a protocol. Code fences that enclosed calls do
    not count."""
    if _protocol(reply) is None:
        return []
    texts = [part.text for part in reply.parts if isinstance(part, Text) and not part.tag]
    return [text for text in texts if _FENCE_LINE.sub("", text).strip()]


def prose(reply: Reply) -> str:
    """Return the text for the user: the blocks made for it, or the text of any block where there are none. Without a
    protocol, all text."""
    texts = [part for part in reply.parts if isinstance(part, Text)]
    if _protocol(reply) is None:
        return reply.content
    answers = [part.text for part in texts if part.tag == "user_response"]
    return "\n\n".join(answers or [part.text for part in texts if part.tag])


def _has_content(reply: Reply) -> bool:
    """Return whether the reply has a call, a problem, text that is not blank, or a block that says the task is done."""
    return bool(reply.attempts or reply.done is not None or reply.problems or reply.content.strip())


def feedback(reply: Reply) -> str:
    """Return the message that tells the model what was wrong with its `reply` and how to correct it.

    Empty where nothing was wrong. Faults of the server are not reported. Where calls are answered one by one, use
    `answers`.
    """
    format = _protocol(reply)
    refused, soft = _rejected_lines(reply), _soft_lines(reply) if format is not None else []
    for problem in violations(reply):
        (refused if problem.blocking else soft).append(problem.message)
    near = [] if reply.attempts else [problem.message for problem in reply.problems if problem.code == _NEAR]
    lists = {
        "Your last reply made no call, but:": near,
        "This of your last reply could not be used:": refused,
        "Your last reply broke the response protocol:": soft,
    }
    paragraphs = [_bullet_list(head, lines) for head, lines in lists.items() if lines]
    return "\n\n".join([*paragraphs, _instruction(format, bool(refused))]) if paragraphs else ""


def _rejected_lines(reply: Reply) -> list[str]:
    """Return the messages of the reply's blocking problems, each with the name of its tool, without those that the
    server caused."""
    return [
        _problem_line(name, each)
        for name, each in _problems_with_tool_names(reply)
        if each.blocking and each.code not in OF_SERVERS
    ]


def _soft_lines(reply: Reply) -> list[str]:
    """Return the messages about calls of the reply that are runnable but not written as the protocol requires."""
    return [_problem_line(name, each) for name, each in _problems_with_tool_names(reply) if each.code in _SOFT_CODES]


def _problems_with_tool_names(reply: Reply) -> list[tuple[str, Problem]]:
    """Return every problem of the reply in order, as pairs of tool name and problem; the name is "" for a problem that
    belongs to no call."""
    names = {problem: call.name for call in reply.attempts for problem in call.problems}
    return [(names.get(problem, ""), problem) for problem in reply.problems]


def _instruction(format: Format | None, has_refused: bool) -> str:
    """Return the last paragraph of the feedback. With a `format` (one that has a protocol): answer in its blocks. Else,
    with `has_refused` (calls were rejected): send these again, corrected. Else, since the text only looked like a call:
    leave an answer as it is and say so."""
    if format is not None:
        return "Answer with blocks like these, and nothing outside them:\n" + skeleton(format)
    if has_refused:
        return "Send these calls again, corrected. The others need not be sent again."
    return "If it was an answer, leave it as it is and say so without calls."


def canonical(reply: Reply) -> str:
    """Return the `reply` written as the protocol requires it, for the history of a model without a tool channel.

    The blocks are in order, without stray text or reasoning, and without calls that could not be parsed.
    """
    kept = [part for part in reply.parts if _is_canonical(part, strict=_protocol(reply) is not None)]
    blocks = [block for part in kept if (block := _render_block(part))]
    if reply.done and CONTRACT.protocol is not None:
        blocks.append(reply.done.join(CONTRACT.protocol.done))
    return "\n\n".join(blocks)


def skeleton(format: Format = CONTRACT) -> str:
    """Return the blocks of the format's protocol, one on each line, each with a placeholder for its content: an example
    of how a reply must look."""
    holds = {"assistant_prose": "what you are doing, in a sentence", "user_response": "what the user is to read"}
    blocks = [_put_between(format.call, "name({ key: value })")]
    for pair in format.content:
        blocks.append(_put_between(pair, holds.get(str(marker_alternatives(pair[0])[0]).strip("<> \n"), "text")))
    if format.protocol is not None:
        blocks.append("##DONE##".join(format.protocol.done))
    return "\n".join(blocks)


def _protocol(reply: Reply) -> Format | None:
    """Return the reply's format if it is known and has a response protocol, else None."""
    format = known_formats().formats.get(reply.format)
    return format if format is not None and format.protocol is not None else None


def _stray_problems(text: str, format: Format) -> Iterator[Problem]:
    """Yield the problems of one text outside all blocks. If it contains the marker that opens a call: that the block
    holds no call. Else that its tags are unknown, and that its other text was ignored."""
    opener = str(marker_alternatives(format.call[0])[0]).strip()
    if opener in text:
        message = f"a {opener} block must hold one call, name({{ ... }}), not {_preview(text, _PREVIEW)}"
        yield Problem("no_call", message)
        return
    tags = list(dict.fromkeys([_preview(tag, _TAG_PREVIEW) for tag in _TAG.findall(text)]))
    if tags:
        yield Problem("unknown_tag", f"there is no block {', '.join(tags[:5])}", blocking=False)
    if _TAG.sub("", text).strip():
        yield Problem("stray_text", f"text outside all blocks was ignored: {_preview(text, _PREVIEW)}", blocking=False)


def _preview(text: str, most: int) -> str:
    """Return the `repr` of the stripped text for a message; if it has more than `most` characters, that of its
    beginning and "..."."""
    text = text.strip()
    return repr(text if len(text) <= most else text[:most] + "...")


def _problem_line(name: str, problem: Problem) -> str:
    """Return the message of a problem for the model, shortened to 600 characters, with the tool's `name` before it
    unless the message contains it."""
    said = problem.message if len(problem.message) <= _LONGEST else problem.message[:_LONGEST] + "..."
    return f"{name}: {said}" if name and name not in said else said


def _bullet_list(head: str, lines: list[str]) -> str:
    """Return a heading with `lines` below it as a list: without repetitions, and at most `_LINES` of them, the rest
    counted."""
    lines = list(dict.fromkeys(lines))
    more = [f"- and {len(lines) - _LINES} more"] if len(lines) > _LINES else []
    return "\n".join([head, *(f"- {line}" for line in lines[:_LINES]), *more])


def _is_canonical(part: Part, *, strict: bool) -> bool:
    """Return whether a part belongs in the canonical reply: a complete call, or text that is not blank and (with
    `strict`) is in a block."""
    if isinstance(part, Call):
        return part.complete
    return isinstance(part, Text) and bool(part.tag or not strict) and bool(part.text.strip())


def _render_block(part: Part) -> str:
    """Return a text or a call as a block of our own protocol. A text that contains tags is written with `<` escaped; ""
    if the part cannot be written at all."""
    tries: list[Part] = [part]
    if isinstance(part, Text):
        tries.append(Text(part.text.replace("<", "&lt;"), part.tag))
    for one in tries:
        try:
            return render([one], format=CONTRACT).strip()
        except CannotCarry:
            continue
    return ""


def _put_between(pair: tuple[str | tuple[str, ...], str | tuple[str, ...]], inside: str) -> str:
    """Return `inside` between the two markers of a pair, stripped. Of a marker with several forms, the first is
    used."""
    opens, closes = marker_alternatives(pair[0])[0], marker_alternatives(pair[1])[0]
    return f"{opens}{inside}{closes}".strip()
