"""Convert a conversation to plain text, for models and servers without native tools.

The system message gets the tools and the call syntax (`contract`); calls and results of the history become text in the
same format, and the answer is parsed in it. For a completion server, the turns are framed by markers.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rightcall.backends.history_bodies import HistoryTurn, join_text_parts, read_turns
from rightcall.backends.request import Request
from rightcall.contracts import contract
from rightcall.contracts.protocol import result_text
from rightcall.errors import CannotCarry
from rightcall.formats import find
from rightcall.formats.spec import Format
from rightcall.parsing.rendering import render
from rightcall.tools.toolset import Toolset
from rightcall.types import Json, Part, Text

DEFAULT = "hermes"
_ONE_CALL = "Make at most one call in a reply, and wait for its result before the next."


def text_format(format: str | Format) -> Format:
    """Return the format in which calls are requested from the model: the given one, by name or as a `Format`, or hermes
    for "auto", since most models know it."""
    return find(DEFAULT if format == "auto" else format)


def contract_text(tools: Toolset, format: Format, choice: str, *, parallel: bool = True) -> str:
    """Return the prompt that lists the tools and explains the call syntax of the format. `choice` is "auto", "required"
    or the name of a tool: unless "auto", it demands a call, and with a name only that tool is listed. `parallel=False`
    adds a sentence that limits a reply to one call."""
    shown = tools if choice in ("auto", "required") else tools.scoped([choice])
    told = contract(shown, format=format, require_action=choice != "auto").text.strip()
    return told if parallel else f"{told}\n\n{_ONE_CALL}"


def write_as_text(request: Request, format: Format) -> list[Json]:
    """Return the messages of the request, with its calls and tool results as text in the format. The prompt that lists
    the tools is appended to a leading system message, or becomes one; there is none without tools or for the choice
    "none"."""
    tools = request.toolset
    out = [_as_text_message(turn, tools, format) for turn in read_turns(request.messages)]
    if not tools or request.choice == "none":
        return out
    told = contract_text(tools, format, request.choice, parallel=request.parallel)
    if out and out[0]["role"] == "system":
        return [{"role": "system", "content": f"{join_text_parts(out[0]['content'])}\n\n{told}"}, *out[1:]]
    return [{"role": "system", "content": told}, *out]


def _as_text_message(turn: HistoryTurn, tools: Toolset | None, format: Format) -> Json:
    """Return one turn as a message without call fields: a tool result as a user message with its text, calls as text of
    the assistant. The content of any other turn is unchanged, and may be a list of parts."""
    if turn.role == "tool":
        return {"role": "user", "content": result_text(turn.text, name=turn.name, format=format)}
    if turn.calls:
        return {"role": "assistant", "content": _render_with_calls(turn, tools, format)}
    return {"role": turn.role, "content": turn.content}


def _render_with_calls(turn: HistoryTurn, tools: Toolset | None, format: Format) -> str:
    """Return the text of an assistant turn followed by its calls in the format. If the format cannot express a call,
    such as a damaged one, all calls are lines of name and arguments as the model wrote them."""
    parts: list[Part] = [*([Text(turn.text)] if turn.text else []), *turn.calls]
    try:
        return render(parts, format=format, tools=tools)
    except CannotCarry:  # a damaged call
        return "\n".join([turn.text, *[f"{call.name} {call.json}" for call in turn.calls]]).strip()


# -- completions -------------------------------------------------------------------------------------------------------


class PromptFrame(msgspec.Struct, frozen=True):
    """The markers of a prompt format: before and after each turn, the stop text of the model's turn, and the markers
    that no message may contain, since they would forge a turn."""

    before: str
    after: str
    stop: str
    markers: tuple[str, ...]
    roles: dict[str, str] = {}


CHATML = PromptFrame("<|im_start|>{role}\n", "<|im_end|>\n", "<|im_end|>", ("<|im_start|>", "<|im_end|>"))
LLAMA = PromptFrame(
    "<|start_header_id|>{role}<|end_header_id|>\n\n",
    "<|eot_id|>",
    "<|eot_id|>",
    ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
)
GEMMA = PromptFrame(
    "<start_of_turn>{role}\n",
    "<end_of_turn>\n",
    "<end_of_turn>",
    ("<start_of_turn>", "<end_of_turn>"),
    {"assistant": "model"},
)
PHI = PromptFrame("<|{role}|>", "<|end|>", "<|end|>", ("<|end|>", "<|system|>", "<|user|>", "<|assistant|>"))
PLAIN = PromptFrame("### {role}:\n", "\n\n", "\n### user:", ("### system:", "### user:", "### assistant:"))
FRAMES: dict[str, PromptFrame] = {  # by the token that ends a turn in a format
    "<|im_end|>": CHATML,
    "<|eot_id|>": LLAMA,
    "<end_of_turn>": GEMMA,
    "<|end|>": PHI,
}


def frame_of(format: Format) -> PromptFrame:
    """Return the prompt frame (the markers around each turn) whose turn end is one of the format's end tokens; `PLAIN`
    if there is none."""
    return next((FRAMES[str(end)] for end in format.ends if str(end) in FRAMES), PLAIN)


def write_prompt(messages: Iterable[Json], frame: PromptFrame) -> str:
    """Return the prompt for a completion server: each message between the frame's markers of its turn, then the marker
    that starts the model's turn. Images and other parts than text are left out."""
    said = [_frame_turn(message, frame) for message in messages]
    return "".join(said) + _turn_start("assistant", frame)


def _frame_turn(message: Json, frame: PromptFrame) -> str:
    """Return the text of a message between the markers of its turn. Markers inside the text are broken up by a
    blank."""
    return (
        _turn_start(message["role"], frame) + _break_markers(join_text_parts(message["content"]), frame) + frame.after
    )


def _break_markers(text: str, frame: PromptFrame) -> str:
    """Return the text with a blank after the first character of every marker of the frame, so that no message can forge
    a turn."""
    for marker in frame.markers:
        text = text.replace(marker, f"{marker[0]} {marker[1:]}")
    return text


def _turn_start(role: str, frame: PromptFrame) -> str:
    """Return the marker before a turn of this role, with the role's name in this frame."""
    return frame.before.replace("{role}", frame.roles.get(role, role))
