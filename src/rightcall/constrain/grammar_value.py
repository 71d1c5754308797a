"""What `grammar(...)` gives: rules, a start, what was relaxed, and every engine's spelling of it.

g = grammar(tools, format="hermes", choice="required")
g.gbnf()   g.lark()   g.structural_tag()   g.json_schema()   g.regex()   g.for_server("llama.cpp")
"""

from __future__ import annotations

from typing import Literal

import msgspec

from rightcall.errors import CallerError
from rightcall.formats.spec import Format
from rightcall.shapes.algebra import EMPTY, Alt, Node, Token, children, references
from rightcall.shapes.builder import GrammarBounds
from rightcall.shapes.intersect import Relaxation
from rightcall.shapes.productions import Rule
from rightcall.tools.toolset import Toolset
from rightcall.types import Json

Choice = str  # auto | required | none | the name of a tool
Reasoning = Literal["none", "auto", "open", "required"]
Server = Literal["llama.cpp", "vllm", "sglang", "ollama", "openai", "anthropic"]


class GrammarOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a grammar was asked to say: the options of `grammar`, which says what each is. Raises `CallerError`."""

    format: Format
    choice: Choice = "auto"
    parallel: bool = True
    reasoning: Reasoning | bool = "none"
    text: bool = False
    arguments: Literal["schema", "any"] = "schema"
    undeclared: bool = False
    formats: bool = False
    whitespace: Literal["flexible", "rendered"] = "flexible"
    bounds: GrammarBounds = GrammarBounds()
    isolate: Literal["omit", "open"] = "omit"

    def __post_init__(self) -> None:
        for name, known in _VALUES.items():
            if getattr(self, name) not in known:
                raise CallerError(f"{name} is {_listed(known)}, not {getattr(self, name)!r}")
        for name, most in msgspec.structs.asdict(self.bounds).items():
            if most is not None and most < 0:
                raise CallerError(f"the bound {name}={most} is below zero; leave it out for none")

    @property
    def thinking(self) -> Reasoning:
        """`reasoning` in a word."""
        if isinstance(self.reasoning, bool):
            return "auto" if self.reasoning else "none"
        return self.reasoning


_VALUES = {
    "reasoning": ("none", "auto", "open", "required", True, False),
    "arguments": ("schema", "any"),
    "whitespace": ("flexible", "rendered"),
    "isolate": ("omit", "open"),
}


def _listed(known: tuple[str | bool, ...]) -> str:
    *most, last = (word for word in known if isinstance(word, str))
    return f"{', '.join(most)} or {last}"


class ReplyFrame(msgspec.Struct, frozen=True):
    """What the calls of a reply are made of, for engines that are told it in parts: what stands before the first, one
    call per tool, what stands between two and behind the last. `joined` is False where the only tool's arguments are
    the whole reply."""

    before: Node = EMPTY
    calls: tuple[Node, ...] = ()
    joint: Node = EMPTY
    after: Node = EMPTY
    joined: bool = True


class Grammar(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What `grammar` gives: the replies that are allowed, in every engine's spelling. Immutable.

    - `start`: the rule that a reply begins with.
    - `definitions`: each rule's name and what it stands for.
    - `relaxations`: what the grammar does not hold a model to: each has the `tool`, the `path` and the `keyword` of its
      schema, and what it `allows` instead. `check` still says it.
    - `omitted`: tools that cannot be written at all, and why.
    - `frame`: what calls are made of, for engines that are told it in parts.
    - `triggers`: the texts by which a call begins, for engines that wake up only there; `lazy` is then the start.
    - `tools`, `options`: what it was made of; the options are those of `grammar`.
    """

    start: str
    definitions: dict[str, Node]
    relaxations: tuple[Relaxation, ...] = ()
    omitted: dict[str, str] = {}
    frame: ReplyFrame = ReplyFrame()
    triggers: tuple[str, ...] = ()
    lazy: str = ""
    tools: Toolset
    options: GrammarOptions

    @property
    def format(self) -> Format:
        """The format of the replies."""
        return self.options.format

    @property
    def choice(self) -> Choice:
        """Which calls: "auto", "required", "none", or the name of the one tool."""
        return self.options.choice

    @property
    def parallel(self) -> bool:
        """May there be several calls in a reply?"""
        return self.options.parallel

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The productions, the start's first. Alternatives are productions of their own."""
        names = [self.start, *(name for name in self.definitions if name != self.start)]
        return tuple(Rule(name, rhs) for name in names for rhs in _alternatives(self.definitions[name]))

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that may be called, in the order of declaration."""
        return tuple(tool.name for tool in self.tools if tool.name not in self.omitted)

    @property
    def called(self) -> tuple[str, ...]:
        """The tools that this choice allows, in the order of the alternatives of `call`."""
        return self.names if self.choice in ("auto", "required") else tuple(n for n in self.names if n == self.choice)

    @property
    def specials(self) -> tuple[str, ...]:
        """The special tokens that stand in it."""
        found: dict[str, None] = {}
        waiting = list(self.definitions.values())
        while waiting:
            node = waiting.pop()
            if isinstance(node, Token):
                found[node.text] = None
            waiting += children(node)
        return tuple(sorted(found))

    def rendered(self) -> Grammar:
        """The same with all white space as `render` writes it."""
        from rightcall.constrain.build import build

        return build(self.tools, msgspec.structs.replace(self.options, whitespace="rendered"))

    def __str__(self) -> str:
        return "\n".join(map(str, self.rules))

    def begun(self) -> Grammar:
        """The same, but a reply begins with the opener of its first call: for engines that wait for a trigger."""
        if not self.lazy:
            return self
        return msgspec.structs.replace(
            self, start=self.lazy, definitions=reachable(self.definitions, self.lazy), lazy=""
        )

    def gbnf(self, *, tokens: dict[str, int] | bool = False) -> str:
        """For llama.cpp. Special tokens are written as their text, as names (`tokens=True`), or as the ids given."""
        from rightcall.constrain.gbnf import emit

        return emit(self, tokens)

    def lark(self, *, tokens: dict[str, int] | bool = False) -> str:
        """For llguidance. `tokens=True` where the tokenizer has the format's special tokens under their names; ids
        where a name is not written `<...>`."""
        from rightcall.constrain.lark import emit

        return emit(self, tokens)

    def structural_tag(self) -> Json:
        """For xgrammar, and so for vLLM and SGLang."""
        from rightcall.constrain.structural_tag import emit

        return emit(self)

    def json_schema(self, *, dialect: str = "") -> Json:
        """One JSON Schema for a call, or for a list of calls. `dialect` is "" for plain JSON Schema, or a server's name
        for what it takes."""
        from rightcall.constrain.json_schema import emit

        return emit(self, dialect)

    def regex(self) -> str:
        """One regular expression. Raises `GrammarCompileError` where the language is not regular."""
        from rightcall.constrain.to_regex import emit

        return emit(self)

    def for_server(self, server: Server) -> Json:
        """Exactly the fields to add to a request to this `server`. Raises `CallerError` for one that is not known."""
        from rightcall.constrain.served_by import fragment

        return fragment(self, server)

    def for_server_with_limits(self, server: Server) -> tuple[Json, tuple[Relaxation, ...]]:
        """The fields for this `server`, and everything that they do not enforce: `relaxations` and what this server
        cannot be told."""
        from rightcall.constrain.served_by import fragment_and_limits

        return fragment_and_limits(self, server)

    def svg(self, tool: str) -> str:
        """A picture of the grammar of the `tool` of this name."""
        from rightcall.constrain.picture import svg

        return svg(self, tool)


def _alternatives(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, Alt) else (node,)


def reachable(rules: dict[str, Node], *starts: str) -> dict[str, Node]:
    """The rules that the start needs, in the order in which they are first mentioned."""
    found: dict[str, Node] = {}
    waiting = list(starts)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = rules[name]
            waiting += [other for other in references(rules[name]) if other not in found]
    return found
