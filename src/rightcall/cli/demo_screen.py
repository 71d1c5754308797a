"""The first screen of `rightcall demo`: five replies that every server's users know, before and now, and one figure.

What stands under "now" is worked out on the spot; the figure is the last one that was measured.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text as Styled

from rightcall.cli.demo_scenes import Scene
from rightcall.cli.layout import heading, paragraph, row
from rightcall.cli.safe import visible
from rightcall.cli.show import why_not
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Reply, Tool, to_json

_LONGEST = 68  # characters of a reply: one line
_TEXT: Json = {"type": "string"}


class Pair(msgspec.Struct, frozen=True):
    """`where` it is met, and the scene of it."""

    where: str
    scene: Scene


def _tool(name: str, **types: Json) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": types, "required": list(types)})


TOOLS = Toolset(
    [
        _tool("weather", city=_TEXT),
        _tool("say", text=_TEXT),
        _tool("write", path=_TEXT, text=_TEXT),
        _tool("book", nights={"type": "integer"}),
    ]
)


def _pair(where: str, title: str, before: str, text: str, format: str = "hermes") -> Pair:
    return Pair(where, Scene(title, before, format, text, tools=TOOLS))


PAIRS: tuple[Pair, ...] = (
    _pair(
        "Ollama, llama.cpp",
        "The call leaks as plain JSON",
        "shown to the user as if it were the answer, and the agent stops",
        '{"name": "weather", "arguments": {"city": "Oslo"}}',
        "qwen3_coder",
    ),
    _pair(
        "vLLM",
        "The closing tag stands inside a string",
        "the call ends there: invalid JSON, and the call is lost",
        '<tool_call>{"name": "say", "arguments": {"text": "a </tool_call> b"}}</tool_call>',
    ),
    _pair(
        "any server",
        "max_tokens cuts the call in half",
        "a JSON repair library closes the string, and half a file is written",
        '<tool_call>{"name": "write", "arguments": {"path": "a", "text": "Dea',
    ),
    _pair(
        "llama.cpp, Ollama",
        "A namespace, and a number as a string",
        "unknown tool; or the tool gets '2' for 2, and nobody is told",
        '<tool_call>{"name": "functions.book", "arguments": {"nights": "2"}}</tool_call>',
    ),
    _pair(
        "vLLM",
        "One of two calls is broken",
        "one JSON error loses both, and the text with them",
        '<tool_call>{"name": "weather", "arguments": {"city": }}</tool_call>'
        '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>',
    ),
)

# The same as in evals/ratchet.json, "damage parsed": a test holds it to that.
RIGHT, DAMAGED, WRONG = 42_937, 42_980, 0
FIGURE = (
    f"{RIGHT:,} of {DAMAGED:,} damaged calls of the Berkeley leaderboard came back as they were meant "
    f"({100 * RIGHT / DAMAGED:.1f} %); {DAMAGED - RIGHT - WRONG} were refused, none ran with other arguments"
)
SOURCE = "docs/results.md, measured by `make bfcl`"
NEXT = (
    "a reply of yours: rightcall parse --explain FILE; more scenes: rightcall demo --all; a small model, here: "
    "rightcall demo --live; Python: docs/tour.md"
)


def show_screen(out: Console) -> None:
    """All of it, on one screen."""
    heading(out, "What a model wrote, what became of it, and what you get now")
    for number, pair in enumerate(PAIRS, 1):
        head = Styled.assemble((f"{number} {pair.scene.title}", "bold"), (f"  ({pair.where})", "dim"))
        paragraph(out, head, hang=2)
        row(out, "  wrote", _shortened(pair.scene.text), "dim")
        row(out, "  before", pair.scene.elsewhere, "yellow")
        row(out, "  now", _now(pair.scene.play()))
    out.print()
    row(out, "measured", f"{FIGURE} ({SOURCE})")
    row(out, "next", NEXT)


def _shortened(text: str) -> str:
    shown = visible(text, one_line=True)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _now(reply: Reply) -> Styled:
    said = [_said(call) for call in reply.attempts]
    return Styled("; ").join(said) if said else Styled("text: " + visible(reply.content, one_line=True))


def _said(call: Call) -> Styled:
    arguments = ", ".join([f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in call.arguments.items()])
    if call.ok:
        changed = f", repaired: {', '.join([repair.rule for repair in call.repairs])}" if call.repairs else ""
        return Styled(visible(f"{call.name}({arguments}) may run{changed}", one_line=True), "green")
    reason = why_not(call)
    return Styled(f"{call.name} must not run: {reason.code if reason else 'it is not complete'}", "red")


def screen_json() -> dict[str, Any]:
    """The same as data."""
    pairs = [
        {
            "title": pair.scene.title,
            "where": pair.where,
            "raw": pair.scene.text,
            "before": pair.scene.elsewhere,
            "reply": to_json(pair.scene.play()),
        }
        for pair in PAIRS
    ]
    return {"pairs": pairs, "figure": {"right": RIGHT, "of": DAMAGED, "wrong": WRONG, "source": SOURCE}}
