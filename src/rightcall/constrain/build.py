"""`grammar(tools, format=..., choice=...)`: from what a user has at hand to a `Grammar`.

What cannot be said is relaxed and listed in `relaxations`; a tool that cannot be written at all is left out, or its
arguments are left open, and is named in `omitted` or in the list. With `strict=True` either is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from rightcall.constrain.grammar_value import Choice, Grammar, GrammarOptions, Reasoning, reachable
from rightcall.constrain.reply import Replies, ReplyOptions
from rightcall.constrain.schema_shapes import Shapes
from rightcall.constrain.unbounded import without_endless
from rightcall.errors import CallerError, EmptyToolList, GrammarCompileError
from rightcall.formats import find
from rightcall.formats.spec import Format
from rightcall.parsing.bodies import BODIES
from rightcall.shapes.algebra import NEVER, Alt, Node
from rightcall.shapes.arguments import ArgumentsShape
from rightcall.shapes.builder import Builder, GrammarBounds
from rightcall.shapes.intersect import MAX_SHAPES, Relaxation
from rightcall.shapes.value_shapes import ANYTHING, NOTHING, Field, Object
from rightcall.tools.toolset import ToolLike, Toolset
from rightcall.types import Tool

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
    """The grammar of replies in a format with calls of these tools. What cannot be said is listed in `relaxations`, and
    a tool that cannot be written at all in `omitted`.

    - `tools`: what may be called, as in `parse`.
    - `format`: a name, an alias or a `Format`.
    - `choice`: "auto" (a reply may be text or calls), "required", "none", or the name of the one tool to call.
    - `parallel`: allow several calls in a reply.
    - `reasoning`: does a thinking section come first? "none", "auto" (it may), "required", or "open": the prompt has
      already begun it. True and False are "auto" and "none".
    - `text`: allow text before a required call.
    - `arguments`: "schema", or "any" to fix the shape of a call alone.
    - `undeclared`: allow members that a schema neither declares nor forbids.
    - `formats`: hold strings to the `format` of their schema (dates, addresses ...).
    - `whitespace`: "flexible", or "rendered": just as `render` writes it.
    - `bounds`: the most characters, items, digits and calls; None for the usual.
    - `isolate`: a tool that cannot be written is left out ("omit"), or may be called with any arguments ("open").
    - `strict`: raise instead of relaxing or leaving out.

    Raises `EmptyToolList`, `CallerError` for a choice that is no tool, `GrammarCompileError`.
    """
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
        refuse(made.relaxations, made.omitted)
    return made


def build(tools: Toolset | None, options: GrammarOptions) -> Grammar:
    """The grammar that these options ask for. Raises as `grammar` does."""
    if not tools and options.choice != "none":
        raise EmptyToolList
    assert tools is not None
    book = Builder(options.bounds, exact=options.whitespace == "rendered")
    sources = _Sources(tools, book, options)
    usable = sources.usable(_chosen(tools, options.choice))
    named = options.choice not in _CHOICES
    choice = "required" if named else options.choice
    replies = Replies(options.format, book, ReplyOptions(choice, options.parallel, options.thinking, options.text))
    replies.named_choice = named
    start = replies.build(usable) if usable else _only_text(replies)
    return Grammar(
        start=start,
        definitions=_kept(book.rules, start, replies.lazy),
        relaxations=tuple(dict.fromkeys([*sources.limits, *book.limits])),
        omitted=sources.omitted,
        frame=replies.frame,
        triggers=replies.triggers,
        lazy=replies.lazy,
        tools=tools,
        options=options,
    )


_CHOICES = ("auto", "required", "none")


def _chosen(toolset: Toolset, choice: str) -> list[Tool]:
    """The tools that a reply may call."""
    if choice in _CHOICES:
        return [] if choice == "none" else list(toolset)
    if choice not in toolset:
        near = ", ".join(toolset.nearest(choice) or toolset.names[:10])
        raise CallerError(f"there is no tool {choice[:80]!r} to choose; name one of {near}, or auto, required or none")
    return [tool for tool in toolset if tool.name == choice]


def _only_text(replies: Replies) -> str:
    """No call may be made: text alone."""
    from rightcall.constrain.reply import text_only

    return text_only(replies)


def _kept(rules: dict[str, Node], start: str, lazy: str) -> dict[str, Node]:
    """What the start needs, and what an engine needs that waits for a trigger."""
    found = reachable(rules, start, *([lazy] if lazy else []))
    return {start: rules[start], **{name: node for name, node in rules.items() if name in found and name != start}}


def refuse(relaxations: tuple[Relaxation, ...], omitted: dict[str, str]) -> None:
    """What `strict` is: the first thing that cannot be said is an error."""
    if omitted:
        name, why = next(iter(omitted.items()))
        raise GrammarCompileError(f"tool {name!r} cannot be written: {why}")
    if relaxations:
        one = relaxations[0]
        raise GrammarCompileError(
            f"tool {one.tool!r}: {one.keyword} at {one.path or '/'} cannot be said, it would allow {one.allows}"
            + (f" (and {len(relaxations) - 1} more)" if len(relaxations) > 1 else "")
        )


class _Sources:
    """What each tool's arguments look like, or why it is left out."""

    def __init__(self, toolset: Toolset, book: Builder, options: GrammarOptions) -> None:
        self.toolset, self.book, self.options, self.format = toolset, book, options, options.format
        self.limits: dict[Relaxation, None] = {}
        self.omitted: dict[str, str] = {}
        self.count = 0
        self.left = MAX_ALL_SHAPES

    def usable(self, tools: list[Tool]) -> list[ArgumentsShape]:
        """Those that can be written; at least one, if there are any."""
        known = [shape for tool in tools if (shape := self.tool(tool)) is not None]
        if tools and not known:
            raise GrammarCompileError("; ".join(f"{name}: {why}" for name, why in list(self.omitted.items())[:3]))
        return known

    def tool(self, tool: Tool) -> ArgumentsShape | None:
        body = self.format.bodies[0]
        if not BODIES[type(body)].carries_name(body, tool.name):
            self.omitted[tool.name] = f"format {self.format.name!r} cannot write this name so that it reads back"
            return None
        prefix = f"{self.count}_"
        self.count += 1
        if self.options.arguments == "any":
            return self._open(tool, prefix)
        if self.left <= 0:
            said = "any arguments: the tools before it are all that a grammar is made for"
            self.limits[Relaxation(tool.name, "", "size", said)] = None
            return self._open(tool, prefix)
        most = min(MAX_SHAPES, self.left)
        schema = self.toolset.schema(tool.name) or {}
        shapes = Shapes(tool.name, schema, extras=self.options.undeclared, formats=self.options.formats, most=most)
        shape = shapes.read()
        self.left -= most - max(0, shapes.left)
        if not isinstance(shape, Object):
            shape = shapes.intersect(shape, Object(), "")
        shape, named = without_endless(shape, shapes.named) if shapes.named else (shape, shapes.named)
        known = ArgumentsShape(tool.name, shape, named, self.toolset.kinds(tool.name), prefix)
        why = self._impossible(known)
        if not why:
            self.limits |= shapes.limits
            for one in self.toolset.relaxations_of(tool.name):
                self.limits[Relaxation(one.tool, one.path, one.keyword, f"anything: {one.reason}")] = None
            return known
        if self.options.isolate == "open":
            self.limits[Relaxation(tool.name, "", "parameters", f"any arguments: {why}")] = None
            return self._open(tool, prefix)
        self.omitted[tool.name] = why
        return None

    def _open(self, tool: Tool, prefix: str) -> ArgumentsShape:
        """Any arguments: where names stand in tags that must agree, only the declared ones."""
        body = self.format.bodies[0]
        declared = tool.parameters.get("properties", {}) if BODIES[type(body)].declared_only else {}
        fields = tuple(Field(key, ANYTHING) for key in declared) if isinstance(declared, dict) else ()
        return ArgumentsShape(tool.name, Object(fields, said=True), {}, {}, prefix)

    def _impossible(self, known: ArgumentsShape) -> str:
        if known.shape == NOTHING:
            return "no arguments can fit its schema"
        body = self.format.bodies[0]
        kind = BODIES[type(body)]
        if kind.named_by_header:
            return ""
        known.body = kind.grammar(body, known, self.book)
        if NEVER in [node for node in known.body if type(node) is Alt]:
            return f"format {self.format.name!r} has no way to write one of its required arguments"
        return ""
