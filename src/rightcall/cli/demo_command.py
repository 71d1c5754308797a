"""`rightcall demo`: show replies of models, what other parsers do with them, and what rightcall does.

The first screen compares five replies; --all plays every scene. To add a scene, add it to `SCENES`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.text import Text as Styled

from rightcall.cli.inputs import AsJson, Force, usage_errors
from rightcall.cli.layout import console, format_json, heading, paragraph, row
from rightcall.cli.show import blocking_problem, show_reply
from rightcall.constrain.grammars import Grammar, grammar
from rightcall.contracts import contract
from rightcall.contracts.prompt import Contract
from rightcall.dispatching.bounded_output import Bounds
from rightcall.dispatching.dispatcher import dispatch_sync
from rightcall.dispatching.hook import Invocation, Skip
from rightcall.dispatching.invoke import RunLimits
from rightcall.dispatching.result import Result
from rightcall.dispatching.trace import Trace
from rightcall.parsing.options import Policy
from rightcall.parsing.parser import Parser, parse
from rightcall.safe_text import visible
from rightcall.tools.functions import tool
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Json, Reply, Tool, to_json


def demo(
    everything: Annotated[bool, typer.Option("--all", help="Show all scenes, including those with a model.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Run a small local model in three modes; its calls become training rows.")
    ] = False,
    recorded: Annotated[bool, typer.Option("--recorded", help="The same with recordings of the model.")] = False,
    folder: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Where the rows of --live are written. [default: a new temporary folder]"),
    ] = None,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Show what models write, what other parsers do with it, and what rightcall does.

    Without options it shows one screen and needs no model. --live runs the model of `rightcall model pull smollm2`; if
    it is not downloaded, a recording answers instead, and the output names it.
    """
    from rightcall.cli import demo_model

    folder_path = None if folder is None else Path(folder)
    wants_model = live or recorded or everything or folder_path is not None
    with usage_errors():
        demo_model.check_folder(folder_path, force=force)
        if json:
            typer.echo(format_json(_demo_json(folder_path, everything, wants_model, recorded=recorded, force=force)))
            return
        _print_demo(folder_path, everything, wants_model, recorded=recorded, force=force)


def _demo_json(
    folder_path: Path | None, everything: bool, wants_model: bool, *, recorded: bool, force: bool
) -> dict[str, Any]:
    """Return the demo as JSON data: always the first screen, with `everything` all scenes, with `wants_model` the
    captures of the model."""
    from rightcall.cli import demo_model

    result = first_screen_json()
    if everything:
        result["scenes"] = [_scene_json(number, scene) for number, scene in _number_scenes(recorded)]
    if wants_model:
        result["live"] = demo_model.demo_capture_json(
            demo_model.run_demo_capture(folder_path, recorded=recorded, force=force)
        )
    return result


def _print_demo(folder_path: Path | None, everything: bool, wants_model: bool, *, recorded: bool, force: bool) -> None:
    """Print all scenes with `everything`; then the captures of the model with `wants_model`, else the first screen."""
    from rightcall.cli import demo_model

    out = console()
    if everything:
        for number, scene in _number_scenes(recorded):
            _print_scene(out, number, scene)
    if wants_model:
        demo_model.print_demo_capture(out, demo_model.run_demo_capture(folder_path, recorded=recorded, force=force))
    else:
        print_first_screen(out)


def _number_scenes(recorded: bool) -> Iterator[tuple[int, AnyScene]]:
    """Yield all scenes with their numbers, from 1. The last one, the scene of the model, is made only when it is
    reached, since it takes longest."""
    yield from enumerate(ALL_SCENES, 1)
    from rightcall.cli.demo_model import model_scene

    yield len(ALL_SCENES) + 1, model_scene(recorded=recorded)


# -- parsing scenes ----------------------------------------------------------------------------------------------------


class Scene(msgspec.Struct, frozen=True):
    """A reply to parse. `elsewhere` describes what other parsers do with it; `chunk` is the size of a streamed chunk.

    `source` names where the reply comes from, if it was not written for the demo.
    """

    title: str
    elsewhere: str
    format: str
    text: str
    chunk: int = 4
    repair: Policy = "safe"
    tools: Toolset | None = None
    source: str = ""

    def play(self) -> Reply:
        """Parse the reply of the scene in chunks of `chunk` characters and return it as a `Reply`."""
        parser = Parser(self.format, tools=self.tools or TOOLS, repair=self.repair)
        for start in range(0, len(self.text), self.chunk):
            parser.feed(self.text[start : start + self.chunk])
        parser.close()
        return parser.reply


def _optional_tool(name: str, **types: str) -> Tool:
    """Return a tool whose parameters are all optional; `types` has their JSON types by name."""
    return Tool(
        name=name,
        parameters={"type": "object", "properties": {key: {"type": type} for key, type in types.items()}},
    )


TOOLS = Toolset(
    [
        _optional_tool("get_weather", city="string", days="integer"),
        _optional_tool("write_file", path="string", text="string"),
        _optional_tool("set_heating", degrees="number", on="boolean"),
        Tool(
            name="book_room",
            parameters={
                "type": "object",
                "properties": {
                    "hotel": {"type": "string"},
                    "nights": {"type": "integer"},
                    "guest": {"type": "object", "properties": {"name": {"type": "string"}}},
                },
                "required": ["hotel", "nights"],
            },
        ),
    ]
)
SCENES: tuple[Scene, ...] = (
    Scene(
        "A closing marker inside a string does not close the call",
        "the call ends at the first </tool_call>, and the rest of the file is shown to the user",
        "hermes",
        '<tool_call>\n{"name": "write_file", "arguments": {"path": "notes.md", "text": "calls end with '
        '</tool_call>, always"}}\n</tool_call>',
    ),
    Scene(
        "A truncated call is never completed",
        "the open string is closed for the model, and half a file is written",
        "qwen3_coder",
        "<tool_call>\n<function=write_file>\n<parameter=path>\nmain.py\n</parameter>\n<parameter=text>\nimport os\n"
        "os.remove(",
    ),
    Scene(
        "JSON that is an answer stays an answer",
        "the object is treated as a call without a name, and the user sees nothing",
        "llama3_json",
        '{"answer": 42, "unit": "km"}',
    ),
    Scene(
        "One bad call takes neither its sibling nor the text with it",
        "one JSON error loses both calls, and the text between and after them is dropped",
        "hermes",
        'First Oslo.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": }}\n</tool_call>\n'
        'Then Rome.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>\nThat is all.',
    ),
    Scene(
        "Python calls with -3 and true are read",
        "a minus sign or a lower-case true is no plain literal, and every call of the reply is lost",
        "pythonic",
        '[set_heating(degrees=-3, on=true), get_weather(city="Tromsø")]',
    ),
    Scene(
        "Arguments before the name, and a tool that does not exist",
        "the arguments come out as invalid JSON, and an undeclared tool loses call and text",
        "hermes",
        '<tool_call>\n{"arguments": {"city": "Oslo"}, "name": "get_wether"}\n</tool_call>',
    ),
    Scene(
        "A namespace and wrong types are repaired, and each change is recorded",
        "the tool is unknown; or it is called with the string '2', and the change is not reported",
        "hermes",
        '<tool_call>\n{"name": "functions.book_room", "arguments": {"Hotel": "Bristol", "nights": "2"}}\n</tool_call>',
    ),
    Scene(
        "An object inside a string is decoded where the schema wants an object",
        "the tool gets a string where its schema requires an object",
        "hermes",
        '<tool_call>\n{"name": "book_room", "arguments": {"hotel": "Bristol", "nights": 2, "guest": '
        '"{\\"name\\": \\"Ada\\"}"}}\n</tool_call>',
    ),
    Scene(
        "A call without a name is a call of the one tool that its arguments fit",
        "the call is lost, or an empty name is passed on",
        "hermes",
        '<tool_call>\n{"arguments": {"hotel": "Bristol", "nights": 2}}\n</tool_call>',
    ),
    Scene(
        "Even a lenient repair does not complete a truncated call",
        "a JSON repair library closes the string, and half a file is written",
        "hermes",
        '<tool_call>\n{"name": "write_file", "arguments": {"path": "notes.md", "text": "Dear all, this is to',
        repair="lenient",
    ),
    Scene(
        "A call that leaked as bare JSON is rescued, whatever format was expected",
        "the JSON is shown to the user as if it were an answer, and the agent stops",
        "qwen3_coder",
        '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
    ),
    Scene(
        "A call that is shown as an example stays text",
        "a rescue by regular expression calls the tool that the answer only explains",
        "auto",
        'A call looks like this:\n```json\n{"name": "set_heating", "arguments": {"degrees": 30}}\n```\nShall I?',
    ),
)


# -- scenes of prompts and grammars ------------------------------------------------------------------------------------


class PromptScene(msgspec.Struct, frozen=True):
    """A prompt with tools. The demo shows it from the heading `start` on."""

    title: str
    elsewhere: str
    start: str
    budget: int | None = None
    format: str = "contract"

    def play(self) -> Contract:
        """Return the contract for the demo's tools: the text of the prompt and its size."""
        return contract(TOOLS, budget=self.budget, format=self.format)

    def excerpt(self) -> str:
        """Return the text of the prompt from the heading `start` on."""
        text = self.play().text
        return text[text.index(self.start) :].strip()


PROMPT_SCENES: tuple[PromptScene, ...] = (
    PromptScene(
        "A prompt lets a model call tools on a server without tool support",
        "the request fails with 'does not support tools', or the tools are dropped and the model makes some up",
        "## Available tools",
    ),
    PromptScene(
        "The same tools for a plain completion endpoint, in the format that the model was trained on",
        "one prompt for every model, and calls in a format that the model never saw",
        "One call:",
        format="llama4_pythonic",
    ),
)


class GrammarScene(msgspec.Struct, frozen=True):
    """A grammar for the tools above, and for one with a schema that a grammar cannot express."""

    title: str
    elsewhere: str

    def play(self) -> Grammar:
        """Return one grammar for the demo's tools and a tool whose schema a grammar cannot fully express."""
        email = {"type": "string", "pattern": r"^(?!\.)[^@]+@[^@]+$"}
        ids = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
        odd = Tool(name="invite", parameters={"type": "object", "properties": {"email": email, "ids": ids}})
        return grammar([*TOOLS, odd], format="hermes", choice="required")


GRAMMAR_SCENE = GrammarScene(
    "What a grammar cannot express is reported, and the other tools still work",
    "the request fails for every tool, or the grammar is switched off and only a log line reports it",
)


# -- scenes of running calls -------------------------------------------------------------------------------------------


class CallResults(msgspec.Struct, frozen=True):
    """A reply, the results of its calls and their trace."""

    reply: Reply
    results: tuple[Result, ...]
    trace: Trace


class RunScene(msgspec.Struct, frozen=True):
    """A reply whose calls are run. `elsewhere` describes what other agent loops do with it."""

    title: str
    elsewhere: str
    text: str
    source: str = ""

    def play(self) -> CallResults:
        """Parse the reply, run its calls except those that a hook denies, and return reply, results and trace. The
        tools are harmless."""
        tools = _make_log_tools()
        reply, trace = parse(self.text, tools=tools, format="hermes"), Trace()
        limits = RunLimits(result=Bounds(string_chars=200))
        results = dispatch_sync(reply, tools, hooks=[_deny_changes], trace=trace, limits=limits)
        return CallResults(reply, tuple(results), trace)


def _make_log_tools() -> Toolset:
    """Return two tools for the scene that runs calls: one that reads a long log, and one that must never run. They are
    made when the scene is played, so that other scenes do not wait for them."""

    @tool(read_only=True)
    async def read_log(path: str) -> str:
        return "\n".join(
            [f"12:00:{second % 60:02} {path} line {second}: nothing to see here" for second in range(4000)]
        )

    @tool
    async def delete_all(path: str) -> str:
        raise AssertionError("not approved")

    return Toolset(read_log, delete_all)


def _deny_changes(invocation: Invocation) -> Skip | None:
    """Return None, which allows the call, for a read-only tool, and a `Skip` for any other: a hook."""
    return None if invocation.tool.read_only else Skip("the user refused", "not approved")


RUN_SCENES: tuple[RunScene, ...] = (
    RunScene(
        "Calls run: bounded, approved one by one, and never when truncated",
        "the log of 190,000 characters fills the context, everything is deleted, and the last call is guessed",
        '<tool_call>\n{"name": "read_log", "arguments": {"path": "app.log"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "delete_all", "arguments": {"path": "/"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "delete_all", "arguments": {"path": "/ho',
    ),
)
AnyScene = Scene | PromptScene | GrammarScene | RunScene
ALL_SCENES: tuple[AnyScene, ...] = (*SCENES, *PROMPT_SCENES, GRAMMAR_SCENE, *RUN_SCENES)


# -- display of scenes -------------------------------------------------------------------------------------------------


def _print_scene(out: Console, number: int, scene: AnyScene) -> None:
    """Print one scene: its number and title, what other parsers do, and the result. Playing it may run its calls."""
    heading(out, f"{number}. {scene.title}")
    if isinstance(scene, PromptScene):
        _print_prompt(out, scene)
    elif isinstance(scene, GrammarScene):
        _print_grammar(out, scene)
    else:
        _print_scene_reply(out, scene)
    out.print()


def _print_prompt(out: Console, scene: PromptScene) -> None:
    """Print the excerpt of a prompt, its size in tokens, and what other parsers do."""
    row(out, "elsewhere", scene.elsewhere, "yellow")
    row(out, "prompt", visible(scene.excerpt()), "green")
    row(out, "tokens", f"about {scene.play().stats.tokens} for the whole contract")


def _print_grammar(out: Console, scene: GrammarScene) -> None:
    """Print the tools of a grammar and what it cannot express."""
    constraint = scene.play()
    row(out, "elsewhere", scene.elsewhere, "yellow")
    row(out, "grammar", f"{len(constraint.names)} tools: {', '.join(constraint.names)}", "green")
    for limit in constraint.relaxations:
        row(out, "relaxed", visible(f"{limit.tool} {limit.path}: {limit.allows}"), "yellow")


def _print_scene_reply(out: Console, scene: Scene | RunScene) -> None:
    """Print the reply of a scene, what other parsers do with it, and what rightcall does with it. A `RunScene` is
    played, which runs its calls."""
    if scene.source:
        row(out, "source", visible(scene.source, one_line=True), "dim")
    row(out, "raw", visible(scene.text), "dim")
    row(out, "elsewhere", scene.elsewhere, "yellow")
    if isinstance(scene, RunScene):
        print_call_results(out, scene.play())
    else:
        show_reply(out, scene.play())


def print_call_results(out: Console, ran: CallResults) -> None:
    """Print a reply, the trace of its calls and their results."""
    show_reply(out, ran.reply)
    row(out, "trace", visible(str(ran.trace)), "cyan")
    for number, result in enumerate(ran.results, 1):
        row(out, f"result {number}", visible(result.text), "red" if result.error else "green")


def _scene_json(number: int, scene: AnyScene) -> dict[str, Any]:
    """Play one scene and return it with its result as JSON data; `number` is its number in the demo."""
    head = {"number": number, "title": scene.title, "elsewhere": scene.elsewhere}
    if isinstance(scene, PromptScene):
        prompt = scene.play()
        return {**head, "told": prompt.text, "stats": to_json(prompt.stats)}
    if isinstance(scene, GrammarScene):
        constraint = scene.play()
        limits = [to_json(limit) for limit in constraint.relaxations]
        return {**head, "tools": constraint.names, "relaxations": limits}
    played = call_results_json(scene.play()) if isinstance(scene, RunScene) else {"reply": to_json(scene.play())}
    return {**head, "source": scene.source, "raw": scene.text, **played}


def call_results_json(ran: CallResults) -> dict[str, Any]:
    """Return the reply, the trace and the results as JSON data."""
    results = [{"id": each.id, "kind": each.kind, "error": each.error, "text": each.text} for each in ran.results]
    return {"reply": to_json(ran.reply), "trace": ran.trace.to_json(), "results": results}


# -- the first screen --------------------------------------------------------------------------------------------------

_LONGEST = 68  # characters of a reply: one line
_TEXT: Json = {"type": "string"}


class Pair(msgspec.Struct, frozen=True):
    """A scene of the first screen, and `where` it occurs."""

    where: str
    scene: Scene


def _required_tool(name: str, **types: Json) -> Tool:
    """Return a tool whose parameters, given as schemas by name, are all required."""
    return Tool(name=name, parameters={"type": "object", "properties": types, "required": list(types)})


SCREEN_TOOLS = Toolset(
    [
        _required_tool("weather", city=_TEXT),
        _required_tool("say", text=_TEXT),
        _required_tool("write", path=_TEXT, text=_TEXT),
        _required_tool("book", nights={"type": "integer"}),
    ]
)


def _pair(where: str, title: str, before: str, text: str, format: str = "hermes") -> Pair:
    """Return a scene of the first screen: `where` it occurs, its title, what happens `before` (without rightcall), and
    the text of the reply."""
    return Pair(where, Scene(title, before, format, text, tools=SCREEN_TOOLS))


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
        "The closing tag is inside a string",
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
        "unknown tool; or the tool gets '2' for 2, and the change is not reported",
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
# The same as in evals/ratchet.json, "damage parsed", as a test verifies.
RIGHT, DAMAGED, WRONG = 42_937, 42_980, 0
FIGURE = (
    f"{RIGHT:,} of {DAMAGED:,} damaged calls of the Berkeley leaderboard were recovered as intended "
    f"({100 * RIGHT / DAMAGED:.1f} %); {DAMAGED - RIGHT - WRONG} were rejected, none ran with other arguments"
)
SOURCE = "docs/results.md, measured by `make bfcl`"
NEXT = (
    "your own reply: rightcall parse --explain FILE; more scenes: rightcall demo --all; a small model, here: "
    "rightcall demo --live; Python: docs/tour.md"
)


def print_first_screen(out: Console) -> None:
    """Print the first screen: the five replies, the measured figure, and what to try next."""
    heading(out, "What a model wrote, what other parsers do, and what rightcall does")
    for number, pair in enumerate(PAIRS, 1):
        head = Styled.assemble((f"{number} {pair.scene.title}", "bold"), (f"  ({pair.where})", "dim"))
        paragraph(out, head, hang=2)
        row(out, "  wrote", _shorten(pair.scene.text), "dim")
        row(out, "  before", pair.scene.elsewhere, "yellow")
        row(out, "  now", _describe_result(pair.scene.play()))
    out.print()
    row(out, "measured", f"{FIGURE} ({SOURCE})")
    row(out, "next", NEXT)


def _shorten(text: str) -> str:
    """Return text in one line, cut to `_LONGEST` characters."""
    shown = visible(text, one_line=True)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _describe_result(reply: Reply) -> Styled:
    """Return the calls of a reply in one line, each with its verdict; without calls, its text."""
    calls = [_describe_call(call) for call in reply.attempts]
    return Styled("; ").join(calls) if calls else Styled("text: " + visible(reply.content, one_line=True))


def _describe_call(call: Call) -> Styled:
    """Return a call in one line: its arguments and repairs if it is runnable, otherwise why it is rejected."""
    arguments = ", ".join([f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in call.arguments.items()])
    if call.ok:
        changed = f", repaired: {', '.join([repair.rule for repair in call.repairs])}" if call.repairs else ""
        return Styled(visible(f"{call.name}({arguments}) runnable{changed}", one_line=True), "green")
    reason = blocking_problem(call)
    return Styled(f"{call.name} rejected: {reason.code if reason else 'it is not complete'}", "red")


def first_screen_json() -> dict[str, Any]:
    """Return the first screen of the demo as JSON data."""
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
