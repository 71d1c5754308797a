"""The scenes of `rightcall demo --all`: replies as models really write them, and what rightcall makes of each.

Each scene is a failure that users of other parsers have paid for. Add one to `SCENES`; nothing else needs to change.
The scenes of `TOLD` show what a model is told instead: a part of the prompt that the contract makes.
"""

from __future__ import annotations

import msgspec

from rightcall.cli.demo_dispatch import RUN_SCENES, RunScene
from rightcall.constrain.grammars import Grammar, grammar
from rightcall.contracts import contract
from rightcall.contracts.prompt import Contract
from rightcall.parsing.parser import Parser, Policy
from rightcall.tools.toolset import Toolset
from rightcall.types import Reply, Tool


class Scene(msgspec.Struct, frozen=True):
    """One raw reply. `elsewhere` is what other parsers make of it, `chunk` how many characters arrive at once.

    `source` says where the reply comes from, if it was not written for the demo.
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
        """What rightcall makes of it, streamed."""
        parser = Parser(self.format, tools=self.tools or TOOLS, repair=self.repair)
        for start in range(0, len(self.text), self.chunk):
            parser.feed(self.text[start : start + self.chunk])
        parser.close()
        return parser.reply


def _tool(name: str, **types: str) -> Tool:
    return Tool(
        name=name,
        parameters={"type": "object", "properties": {key: {"type": type} for key, type in types.items()}},
    )


TOOLS = Toolset(
    [
        _tool("get_weather", city="string", days="integer"),
        _tool("write_file", path="string", text="string"),
        _tool("set_heating", degrees="number", on="boolean"),
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
        "A call that was cut off is never completed",
        "the open string is closed for the model, and half a file is written",
        "qwen3_coder",
        "<tool_call>\n<function=write_file>\n<parameter=path>\nmain.py\n</parameter>\n<parameter=text>\nimport os\n"
        "os.remove(",
    ),
    Scene(
        "JSON that is an answer stays an answer",
        "the object is eaten as a call without a name, and the user sees nothing",
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
        "A namespace and wrong types are put right, and each change has a receipt",
        "the tool is unknown; or it is called with the string '2', and nobody is told",
        "hermes",
        '<tool_call>\n{"name": "functions.book_room", "arguments": {"Hotel": "Bristol", "nights": "2"}}\n</tool_call>',
    ),
    Scene(
        "An object inside a string is decoded where the schema wants an object",
        "the tool gets a string where it was promised an object",
        "hermes",
        '<tool_call>\n{"name": "book_room", "arguments": {"hotel": "Bristol", "nights": 2, "guest": '
        '"{\\"name\\": \\"Ada\\"}"}}\n</tool_call>',
    ),
    Scene(
        "A call without a name is a call of the one tool that its arguments fit",
        "the call is lost, or an empty name is handed on",
        "hermes",
        '<tool_call>\n{"arguments": {"hotel": "Bristol", "nights": 2}}\n</tool_call>',
    ),
    Scene(
        "Not even a lenient repair completes what was cut off",
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


class ToldScene(msgspec.Struct, frozen=True):
    """A prompt: its tools, from the heading `start` on."""

    title: str
    elsewhere: str
    start: str
    budget: int | None = None
    format: str = "contract"

    def play(self) -> Contract:
        return contract(TOOLS, budget=self.budget, format=self.format)

    def shown(self) -> str:
        text = self.play().text
        return text[text.index(self.start) :].strip()


TOLD: tuple[ToldScene, ...] = (
    ToldScene(
        "A model whose server knows no tools is told how to call them",
        "the request fails with 'does not support tools', or the tools are dropped and the model makes some up",
        "## Available tools",
    ),
    ToldScene(
        "The same tools for a plain completion endpoint, in the manner the model was trained on",
        "one prompt for every model, and calls in a format that the model never saw",
        "One call:",
        format="llama4_pythonic",
    ),
)


class HeldScene(msgspec.Struct, frozen=True):
    """A grammar of the tools above, and of one whose schema asks for more than a grammar can say."""

    title: str
    elsewhere: str

    def play(self) -> Grammar:
        email = {"type": "string", "pattern": r"^(?!\.)[^@]+@[^@]+$"}
        ids = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
        odd = Tool(name="invite", parameters={"type": "object", "properties": {"email": email, "ids": ids}})
        return grammar([*TOOLS, odd], format="hermes", choice="required")


HELD = HeldScene(
    "What a grammar cannot say is named, and takes no other tool down",
    "the request fails for every tool, or the grammar is switched off and only a log line says so",
)

AnyScene = Scene | ToldScene | HeldScene | RunScene
ALL_SCENES: tuple[AnyScene, ...] = (*SCENES, *TOLD, HELD, *RUN_SCENES)
