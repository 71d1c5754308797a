"""`grammar(tools, format=..., choice=...)` builds a `Grammar`, which every engine's notation is emitted from.

g = grammar(tools, format="hermes", choice="required")
g.gbnf()   g.lark()   g.structural_tag()   g.json_schema()   g.regex()   g.for_server("llama.cpp")

What cannot be expressed is relaxed and listed in `relaxations`. A tool that cannot be written at all is left out, or
its arguments are left open, and it is named in `omitted` or in `relaxations`. With `strict=True` either is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from rightcall.constrain.algebra import NEVER, Alt, Node, Token, children, reachable_rules
from rightcall.constrain.builder import Builder, GrammarBounds
from rightcall.constrain.call_bodies import CALL_GRAMMARS
from rightcall.constrain.display import Rule
from rightcall.constrain.intersect import MAX_SHAPES, Relaxation, remove_endless_shapes
from rightcall.constrain.json_text import ArgumentsShape
from rightcall.constrain.json_text import Json as JsonWriter
from rightcall.constrain.reply import Replies, ReplyConstraints, ReplyFrame, build_without_calls
from rightcall.constrain.schema_shapes import Shapes
from rightcall.constrain.value_shapes import ANYTHING, NOTHING, Field, Object, Shape
from rightcall.errors import CallerError, EmptyToolList, GrammarCompileError
from rightcall.formats import FORMATS, find
from rightcall.formats.body_kinds import BODIES
from rightcall.formats.spec import Format
from rightcall.tools.toolset import ToolLike, Toolset
from rightcall.types import Json, Tool

Choice = str  # auto | required | none | the name of a tool
Reasoning = Literal["none", "auto", "open", "required"]
Server = Literal["llama.cpp", "vllm", "sglang", "ollama", "openai", "anthropic"]


class GrammarOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `grammar`, which documents them. Raises `CallerError` for invalid values."""

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
        """Raise `CallerError` for an option with an unknown value, and for a negative bound."""
        for name, known in _VALUES.items():
            if getattr(self, name) not in known:
                raise CallerError(f"{name} is {_join_alternatives(known)}, not {getattr(self, name)!r}")
        for name, most in msgspec.structs.asdict(self.bounds).items():
            if most is not None and most < 0:
                raise CallerError(f"the bound {name}={most} is negative; omit it for no limit")

    @property
    def only_calls(self) -> bool:
        """Whether a reply consists of nothing but calls."""
        return self.choice not in ("auto", "none") and not self.text and self.thinking == "none"

    @property
    def thinking(self) -> Reasoning:
        """The option `reasoning`, with True and False as "auto" and "none"."""
        if isinstance(self.reasoning, bool):
            return "auto" if self.reasoning else "none"
        return self.reasoning


_VALUES = {
    "reasoning": ("none", "auto", "open", "required", True, False),
    "arguments": ("schema", "any"),
    "whitespace": ("flexible", "rendered"),
    "isolate": ("omit", "open"),
}


def _join_alternatives(known: tuple[str | bool, ...]) -> str:
    """Return the texts as "a, b or c"; values that are not texts are left out."""
    *most, last = (word for word in known if isinstance(word, str))
    return f"{', '.join(most)} or {last}"


class Grammar(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A grammar of the allowed replies, independent of any engine. Immutable.

    - `start`: the rule of the whole reply.
    - `definitions`: each rule's name and its node.
    - `relaxations`: the constraints that the grammar does not enforce: each has the `tool`, the `path` and the
    `keyword` of its schema, and what it `allows` instead. `check` still enforces them.
    - `omitted`: the tools that cannot be expressed at all, each with the reason.
    - `frame`: the parts of a reply with calls, for engines that take them one by one.
    - `triggers`: the texts at which a lazy engine starts to constrain; `lazy` is then the start rule.
    - `tools`, `options`: the inputs of the grammar; the options are those of `grammar`."""

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
        """Which calls are allowed: "auto", "required", "none", or the name of the one tool."""
        return self.options.choice

    @property
    def parallel(self) -> bool:
        """Whether a reply may contain several calls."""
        return self.options.parallel

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The productions, the start's first. Alternatives are productions of their own."""
        names = [self.start, *(name for name in self.definitions if name != self.start)]
        return tuple(Rule(name, rhs) for name in names for rhs in _alternatives_of(self.definitions[name]))

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that are not omitted, whatever `choice` allows, in the order of declaration."""
        return tuple(tool.name for tool in self.tools if tool.name not in self.omitted)

    @property
    def called(self) -> tuple[str, ...]:
        """The tools that this choice allows, in the order of the alternatives of `call`; empty for "none"."""
        return self.names if self.choice in ("auto", "required") else tuple(n for n in self.names if n == self.choice)

    @property
    def specials(self) -> tuple[str, ...]:
        """The special tokens that occur in the grammar, each once and sorted."""
        found: dict[str, None] = {}
        waiting = list(self.definitions.values())
        while waiting:
            node = waiting.pop()
            if isinstance(node, Token):
                found[node.text] = None
            waiting += children(node)
        return tuple(sorted(found))

    def rendered(self) -> Grammar:
        """Return the same grammar with white space exactly as `render` writes it."""
        return build(self.tools, msgspec.structs.replace(self.options, whitespace="rendered"))

    def __str__(self) -> str:
        return "\n".join(map(str, self.rules))

    def begun(self) -> Grammar:
        """Return the same grammar for a reply that begins with the opener of its first call, for engines that wait for
        a trigger; the grammar itself if it has no such start (`lazy` is empty)."""
        if not self.lazy:
            return self
        return msgspec.structs.replace(
            self, start=self.lazy, definitions=reachable_rules(self.definitions, self.lazy), lazy=""
        )

    def gbnf(self, *, tokens: dict[str, int] | bool = False) -> str:
        """Return the grammar in GBNF, for llama.cpp; what GBNF cannot express is relaxed without a report. Special
        tokens are written as their text, as names (`tokens=True`), or as the given ids."""
        from rightcall.constrain.gbnf import emit_gbnf

        return emit_gbnf(self, tokens)

    def lark(self, *, tokens: dict[str, int] | bool = False) -> str:
        """Return the grammar in Lark, for llguidance. Special tokens are written as their text; pass `tokens=True` if
        the tokenizer has them under their names, and ids for names that are not written `<...>`."""
        from rightcall.constrain.lark import emit_lark

        return emit_lark(self, tokens)

    def structural_tag(self) -> Json:
        """Return a structural tag, for xgrammar, and therefore for vLLM and SGLang; what it cannot express is relaxed,
        and only `for_server_with_limits` reports it. Raises `GrammarCompileError` for the choice "none"."""
        from rightcall.constrain.structural_tag import emit_structural_tag

        return emit_structural_tag(self)

    def json_schema(self, *, dialect: str = "") -> Json:
        """Return a JSON Schema for a call, also for the choices "auto" and "none", or for a list of calls if `dialect`
        is "" and calls may be parallel. `dialect` is "" for plain JSON Schema, or the name of a server to use only the
        keywords that it accepts. Raises `CallerError` for an unknown dialect."""
        from rightcall.constrain.json_schema import emit_json_schema

        return emit_json_schema(self, dialect)

    def regex(self) -> str:
        """Return a regular expression, in which more than three members of an object have the declared order. Raises
        `GrammarCompileError` if the language is not regular, or the expression would be too large."""
        from rightcall.constrain.regex import emit_regex

        return emit_regex(self)

    def for_server(self, server: Server) -> Json:
        """Return exactly the fields to add to a request to this `server`. Raises `CallerError` for an unknown one, and
        `GrammarCompileError` for a grammar that it does not take."""
        from rightcall.constrain.server_requests import fragment

        return fragment(self, server)

    def for_server_with_limits(self, server: Server) -> tuple[Json, tuple[Relaxation, ...]]:
        """Return the fields for this `server`, and everything that they do not enforce: `relaxations`, and what this
        server does not support. Raises as `for_server`."""
        from rightcall.constrain.server_requests import fragment_and_limits

        return fragment_and_limits(self, server)

    def svg(self, tool: str) -> str:
        """Return a picture of the grammar of a call of the `tool` with this name, as SVG text. Raises `CallerError` if
        the grammar has no call of it."""
        from rightcall.constrain.display import svg

        return svg(self, tool)


def _alternatives_of(node: Node) -> tuple[Node, ...]:
    """Return the alternatives of a node, none for an impossible one; any other node is its only alternative."""
    return node.items if isinstance(node, Alt) else (node,)


MAX_ALL_SHAPES = 100_000  # of all tools: those behind it are written as far as that goes, and reported


def grammar(
    tools: Toolset | Iterable[ToolLike],
    *,
    format: str | Format = "hermes",
    choice: Choice = "auto",
    parallel: bool = True,
    reasoning: Reasoning | bool = "none",
    text: bool = False,
    arguments: Literal["schema", "any"] = "schema",
    undeclared: bool = False,
    formats: bool = False,
    whitespace: Literal["flexible", "rendered"] = "flexible",
    bounds: GrammarBounds | None = None,
    isolate: Literal["omit", "open"] = "omit",
    strict: bool = False,
) -> Grammar:
    """Return the grammar of replies in a format with calls of these tools. Constraints that cannot be expressed are
    listed in `relaxations`, and tools that cannot be expressed at all in `omitted`.

    - `tools`: the tools that may be called, as in `parse`.
    - `format`: a name, an alias or a `Format`.
    - `choice`: "auto" (a reply may be text or calls), "required", "none", or the name of the one tool to call.
    - `parallel`: allow several calls in a reply.
    - `reasoning`: whether a thinking section comes first: "none", "auto" (optional), "required", or "open" if the
    prompt has already begun it. True and False are "auto" and "none".
    - `text`: allow text before a required call.
    - `arguments`: "schema", or "any" to constrain only the shape of a call.
    - `undeclared`: allow members that a schema neither declares nor forbids.
    - `formats`: enforce the `format` of strings (dates, addresses ...).
    - `whitespace`: "flexible", or "rendered": exactly as `render` writes it.
    - `bounds`: the maximum numbers of characters, items, digits and calls; None for the defaults.
    - `isolate`: omit a tool that cannot be expressed ("omit"), or allow it with any arguments ("open").
    - `strict`: raise instead of relaxing or omitting.

    Raises `EmptyToolList` without tools, unless `choice` is "none"; `CallerError` for an invalid option, format or
    bound, or a choice that is not a tool; `GrammarCompileError` if no tool can be expressed, or because of `strict`."""
    options = GrammarOptions(
        format=find(format),
        choice=choice,
        parallel=parallel,
        reasoning=reasoning,
        text=text,
        arguments=arguments,
        undeclared=undeclared,
        formats=formats,
        whitespace=whitespace,
        bounds=bounds or GrammarBounds(),
        isolate=isolate,
    )
    made = build(Toolset.of(tools), options)
    if strict:
        raise_if_relaxed(made.relaxations, made.omitted)
    return made


def build(tools: Toolset | None, options: GrammarOptions) -> Grammar:
    """Return the grammar of these tools for options whose values are already checked. Raises `EmptyToolList` without
    tools unless the choice is "none", `CallerError` for a choice that is not a tool, `GrammarCompileError` if no tool
    can be expressed."""
    if not tools and options.choice != "none":
        raise EmptyToolList
    assert tools is not None
    book = Builder(options.bounds, exact=options.whitespace == "rendered")
    tool_shapes = _ToolShapes(tools, book, options)
    usable = tool_shapes.read_tools(_select_tools(tools, options.choice))
    named = options.choice not in _CHOICES
    choice = "required" if named else options.choice
    replies = Replies(options.format, book, ReplyConstraints(choice, options.parallel, options.thinking, options.text))
    replies.named_choice = named
    start = replies.build(usable) if usable else build_without_calls(replies)
    book.build_deferred_rules()
    return Grammar(
        start=start,
        definitions=_needed_rules(book.rules, start, replies.lazy),
        relaxations=tuple(dict.fromkeys([*tool_shapes.limits, *book.limits])),
        omitted=tool_shapes.omitted,
        frame=replies.frame,
        triggers=replies.triggers,
        lazy=replies.lazy,
        tools=tools,
        options=options,
    )


_CHOICES = ("auto", "required", "none")


def _select_tools(toolset: Toolset, choice: str) -> list[Tool]:
    """Return the tools that a reply may call: all, none, or the one named by `choice`. Raises `CallerError` if there
    is no such tool."""
    if choice in _CHOICES:
        return [] if choice == "none" else list(toolset)
    if choice not in toolset:
        near = ", ".join(toolset.nearest(choice) or toolset.names[:10])
        raise CallerError(f"there is no tool {choice[:80]!r} to choose; name one of {near}, or auto, required or none")
    return [tool for tool in toolset if tool.name == choice]


def _needed_rules(rules: dict[str, Node], start: str, lazy: str) -> dict[str, Node]:
    """Return the rule `start` first, then the rules that it or the rule `lazy` refers to, directly or not, in the order
    of `rules`. `lazy` is the start for engines that wait for a trigger, or ""."""
    found = reachable_rules(rules, start, *([lazy] if lazy else []))
    return {start: rules[start], **{name: node for name, node in rules.items() if name in found and name != start}}


def raise_if_relaxed(relaxations: tuple[Relaxation, ...], omitted: dict[str, str]) -> None:
    """Raise `GrammarCompileError` for the first omitted tool, or else for the first relaxation; do nothing if there
    is neither. This implements the option `strict`."""
    if omitted:
        name, why = next(iter(omitted.items()))
        raise GrammarCompileError(
            f"tool {name!r} cannot be written: {why}; change the tool, or omit strict to leave it out"
        )
    if relaxations:
        one = relaxations[0]
        raise GrammarCompileError(
            f"tool {one.tool!r}: {one.keyword} at {one.path or '/'} cannot be enforced: it would allow {one.allows}"
            + (f" (and {len(relaxations) - 1} more)" if len(relaxations) > 1 else "")
            + "; change the schema, or omit strict to relax it"
        )


class _ToolShapes:
    """Reads the shape of the arguments of each tool. `omitted` has the tools that cannot be expressed, with the
    reason, and `limits` the constraints that the shapes do not express."""

    def __init__(self, toolset: Toolset, book: Builder, options: GrammarOptions) -> None:
        self.toolset, self.book, self.options, self.format = toolset, book, options, options.format
        self.limits: dict[Relaxation, None] = {}
        self.omitted: dict[str, str] = {}
        self.count = 0
        self.left = MAX_ALL_SHAPES

    def read_tools(self, tools: list[Tool]) -> list[ArgumentsShape]:
        """Return the shapes of the tools that can be expressed, none without tools; the others are in `omitted`. Raises
        `GrammarCompileError` if there are tools and none of them can be expressed."""
        known = [shape for tool in tools if (shape := self.read_tool(tool)) is not None]
        if tools and not known:
            reasons = "; ".join(f"{name}: {why}" for name, why in list(self.omitted.items())[:3])
            raise GrammarCompileError(f"{reasons}; change the tools, or choose another format")
        return known

    def read_tool(self, tool: Tool) -> ArgumentsShape | None:
        """Return the shape of the arguments of a tool, and report in `limits` what it does not express; None for an
        omitted tool, with the reason in `omitted`. Any arguments are allowed with `arguments="any"`; also, and
        reported, beyond the size limit, and with `isolate="open"` for a tool that would be omitted, unless the format
        cannot write its name."""
        body = self.format.bodies[0]
        if not BODIES[type(body)].carries_name(body, tool.name):
            self.omitted[tool.name] = f"format {self.format.name!r} cannot write this name unambiguously"
            return None
        prefix = f"{self.count}_"
        self.count += 1
        if self.options.arguments == "any":
            return self._any_arguments(tool, prefix)
        if self.left <= 0:
            said = "any arguments: the tools before it use up the size limit of a grammar"
            self.limits[Relaxation(tool.name, "", "size", said)] = None
            return self._any_arguments(tool, prefix)
        shapes, shape = self._read_shape(tool.name, undeclared=self.options.undeclared)
        shape, named = remove_endless_shapes(shape, shapes.named) if shapes.named else (shape, shapes.named)
        known = ArgumentsShape(tool.name, shape, named, lambda: self.toolset.kinds(tool.name), prefix)
        why = self._explain_impossible(known)
        if not why:
            self.limits |= shapes.limits
            for one in self.toolset.relaxations_of(tool.name):
                self.limits[Relaxation(one.tool, one.path, one.keyword, f"anything: {one.reason}")] = None
            return known
        if self.options.isolate == "open":
            self.limits[Relaxation(tool.name, "", "parameters", f"any arguments: {why}")] = None
            return self._any_arguments(tool, prefix)
        self.omitted[tool.name] = why
        return None

    def _read_shape(self, name: str, *, undeclared: bool) -> tuple[Shapes, Shape]:
        """Read the schema of a tool, with undeclared members or without, and return its reader and the shape of the
        arguments. Its size is subtracted from `left`, the limit of all tools. Beyond the limit nothing is raised: the
        shape allows more, which the reader reports in `limits`."""
        most = min(MAX_SHAPES, self.left)
        schema = self.toolset.schema(name) or {}
        shapes = Shapes(name, schema, extras=undeclared, formats=self.options.formats, most=most)
        shape = shapes.read(Object())
        self.left -= most - max(0, shapes.left)
        return shapes, shape

    def _any_arguments(self, tool: Tool, prefix: str) -> ArgumentsShape:
        """Return a shape that allows any arguments. If the format writes each argument in tags with its name, the
        declared ones are fields of the shape. `prefix` distinguishes the rules of different tools."""
        body = self.format.bodies[0]
        declared = tool.parameters.get("properties", {}) if BODIES[type(body)].declared_only else {}
        fields = tuple(Field(key, ANYTHING) for key in declared) if isinstance(declared, dict) else ()
        return ArgumentsShape(tool.name, Object(fields, said=True), {}, dict, prefix)

    def _explain_impossible(self, known: ArgumentsShape) -> str:
        """Return the reason why the format cannot write a call of this tool; "" if it can. The nodes of the call are
        stored in `known.body` if they are needed to find out."""
        if known.shape == NOTHING:
            return "no arguments can fit its schema"
        body = self.format.bodies[0]
        kind = BODIES[type(body)]
        if kind.named_by_header:
            return ""
        known.body = CALL_GRAMMARS[type(body)](body, known, self.book)
        if NEVER in [node for node in known.body if type(node) is Alt]:
            return self._explain_unwritable(known.name)
        return ""

    def _explain_unwritable(self, name: str) -> str:
        """Return the reason why no call of this tool can be written: its schema, undeclared members that are left out,
        or the format."""
        if self._is_never(name, undeclared=True):
            return "no arguments can fit its schema"
        if self._is_never(name, undeclared=self.options.undeclared):
            return "no arguments fit its schema without undeclared members"
        return f"format {self.format.name!r} cannot write one of its required arguments"

    def _is_never(self, name: str, *, undeclared: bool) -> bool:
        """Return whether not even JSON can hold arguments of this tool, with undeclared members or without. The schema
        is read again, and its size counted again."""
        shapes, shape = self._read_shape(name, undeclared=undeclared)
        return JsonWriter(Builder(self.options.bounds), "", shapes.named).value(shape) == NEVER


def value_grammar(
    schema: Json | bool, *, undeclared: bool = False, formats: bool = False, bounds: GrammarBounds | None = None
) -> Grammar:
    """Return the grammar of JSON text that fits this schema, which must be plain 2020-12 as returned by
    `Toolset.schema`; what it cannot express is in `relaxations`. With `undeclared`, members that it neither declares
    nor forbids are allowed; with `formats`, `format` is enforced. `bounds` limits lengths; None for the defaults."""
    root: Json = schema if isinstance(schema, dict) else {"allOf": [schema]}
    shapes = Shapes("", root, extras=undeclared, formats=formats)
    shape = shapes.read()
    book = Builder(bounds or GrammarBounds(), points=True)
    book.rules["value"] = JsonWriter(book, "", shapes.named).value(shape)
    book.build_deferred_rules()
    return Grammar(
        start="value",
        definitions=reachable_rules(book.rules, "value"),
        relaxations=tuple(shapes.limits),
        tools=Toolset([]),
        options=GrammarOptions(format=FORMATS["generic_json"], choice="required"),
    )
