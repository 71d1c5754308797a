"""`rightcall grammar`: make a grammar for constrained decoding, and list what it cannot express."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import typer

from rightcall.cli.inputs import (
    AsJson,
    FormatFile,
    FormatName,
    ToolsFile,
    choose_format,
    exit_with_usage_error,
    grouped,
    print_message,
    read_tools,
    usage_errors,
)
from rightcall.cli.layout import console, format_json, paragraph, table
from rightcall.constrain.builder import GrammarBounds
from rightcall.constrain.grammars import Grammar, raise_if_relaxed
from rightcall.constrain.grammars import grammar as make_grammar
from rightcall.constrain.intersect import Relaxation
from rightcall.constrain.server_requests import SERVERS, fragment_and_limits
from rightcall.formats.spec import Format
from rightcall.safe_text import brief, visible
from rightcall.tools.toolset import Toolset

_EMIT = ("gbnf", "lark", "structural-tag", "json-schema", "regex", "rules", "svg")


Emit = Annotated[str, typer.Option("--emit", "-e", metavar="|".join(_EMIT), help="What to print.")]
ForServer = Annotated[
    str | None, typer.Option("--server", metavar="|".join(SERVERS), help="Print the fields of a request instead.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Fail on constraints that cannot be expressed, instead of relaxing them.")
]


class AllowedReplies(msgspec.Struct, frozen=True, kw_only=True):
    """Options that say which replies the grammar allows."""

    choice: Annotated[
        str, typer.Option("--choice", metavar="auto|required|none|TOOL", help="Which calls a reply may have.")
    ] = "auto"
    one: Annotated[bool, typer.Option("--one", help="Allow at most one call.")] = False
    reasoning: Annotated[
        str, typer.Option("--reasoning", metavar="none|auto|open|required", help="A reasoning section first.")
    ] = "none"
    text: Annotated[bool, typer.Option("--text", help="Allow text before a required call.")] = False
    any_arguments: Annotated[
        bool, typer.Option("--any-arguments", help="Constrain the form of a call, but not its arguments.")
    ] = False
    undeclared: Annotated[
        bool, typer.Option("--undeclared", help="Allow arguments that a schema neither declares nor forbids.")
    ] = False
    formats: Annotated[bool, typer.Option("--formats", help="Enforce `format` (date, email, uuid ...).")] = False
    max_string: Annotated[
        int | None, typer.Option("--max-string", metavar="N", help="Maximum length of a string.", min=1)
    ] = None
    max_items: Annotated[
        int | None, typer.Option("--max-items", metavar="N", help="Maximum length of an array.", min=1)
    ] = None

    def grammar(self, tools: Toolset | None, format: str | Format) -> Grammar:
        """Return the grammar of the calls of these tools in this format, as these options say. Raises `CallerError` for
        an invalid option, `GrammarCompileError` if there is no such grammar."""
        return make_grammar(
            tools or (),
            format=format,
            choice=self.choice,
            parallel=not self.one,
            reasoning=self.reasoning,  # type: ignore[arg-type]  # validated there
            text=self.text,
            arguments="any" if self.any_arguments else "schema",
            undeclared=self.undeclared,
            formats=self.formats,
            bounds=GrammarBounds(string=self.max_string, array=self.max_items),
        )


@grouped
def grammar_command(
    *,
    tools: ToolsFile = None,
    format: FormatName = "hermes",
    format_file: FormatFile = None,
    emit: Emit = "gbnf",
    server: ForServer = None,
    wanted: AllowedReplies,
    strict: Strict = False,
    json: AsJson = False,
) -> None:
    """Make a grammar for constrained decoding from tools and a format.

    Writes the grammar to standard output, and a table of what it cannot express to standard error. With --json both are
    in one object. Exit code 1 means that a tool had to be left out; 2, with --strict, that something cannot be
    expressed.
    """
    with usage_errors():
        if emit not in _EMIT:
            exit_with_usage_error(f"--emit is one of {', '.join(_EMIT)}, not {emit!r}")
        if tools is None:
            exit_with_usage_error("no tools: pass --tools FILE, JSON with tool definitions")
        made = wanted.grammar(read_tools(tools), _choose_format(format, format_file))
        result, limits = _emit_grammar(made, emit, server)
        if strict:
            raise_if_relaxed(limits, made.omitted)
    if json:
        typer.echo(
            format_json({"result": result, "relaxations": [*map(_relaxation_json, limits)], "omitted": made.omitted})
        )
    else:
        _print_grammar(result if isinstance(result, str) else format_json(result))
        _print_relaxations(limits)
        _print_omitted_tools(made.omitted)
    if made.omitted:
        raise typer.Exit(1)


def _choose_format(name: str, file: str | None) -> str | Format:
    """Return the format called `name`, or the one that the TOML `file` defines, if it is not None: then `name` is
    ignored. Exits with a usage error for "auto"; raises `CallerError` for an unknown or invalid format."""
    chosen = choose_format(name if file is None else "auto", file)
    if chosen == "auto":
        exit_with_usage_error(
            "'auto' is only for parsing; for a grammar, name a format: `rightcall formats` lists them"
        )
    return chosen


def _print_omitted_tools(omitted: dict[str, str]) -> None:
    """Print on standard error each tool that the grammar omits, with the reason."""
    for name, why in omitted.items():
        print_message(f"left out: {name}: {why}")


def _emit_grammar(made: Grammar, emit: str, server: str | None) -> tuple[Any, tuple[Relaxation, ...]]:
    """Return the grammar in the form `emit`, or as fields of a request for `server` if that is not None, and everything
    that it relaxes in this form. Exits with a usage error for "svg" without tools."""
    if server is not None:
        return fragment_and_limits(made, server)
    if emit == "structural-tag":
        from rightcall.constrain.structural_tag import emit_structural_tag_with_limits

        tag, limits = emit_structural_tag_with_limits(made)
        return tag, (*made.relaxations, *limits)
    if emit == "gbnf":
        from rightcall.constrain.gbnf import emit_gbnf_with_limits

        text, more = emit_gbnf_with_limits(made)
        return text, (*made.relaxations, *more)
    if emit == "svg":
        if not made.called:
            exit_with_usage_error("there is no tool to draw")
        return made.svg(made.called[0]), made.relaxations
    writers: dict[str, Callable[[], Any]] = {
        "lark": made.lark,
        "json-schema": made.json_schema,
        "regex": made.regex,
        "rules": lambda: str(made),
    }
    return writers[emit](), made.relaxations


def _relaxation_json(limit: Relaxation) -> dict[str, str]:
    """Return a relaxation as JSON data."""
    return {"tool": limit.tool, "path": limit.path, "keyword": limit.keyword, "allows": limit.allows}


def _print_grammar(text: str) -> None:
    """Print the grammar: wrapped on a terminal, as UTF-8 bytes elsewhere."""
    text = text.rstrip("\n")
    if sys.stdout.isatty():
        paragraph(console(), visible(text), hang=4)
    else:
        sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")
        sys.stdout.buffer.flush()


def _print_relaxations(limits: tuple[Relaxation, ...]) -> None:
    """Print the relaxations as a table on standard error, so that only the grammar goes through a pipe."""
    heads = ("tool", "path", "keyword", "what is now allowed; check still rejects it")
    cells = [(limit.tool, limit.path or "/", limit.keyword, limit.allows) for limit in limits]
    if cells:
        table(console(stderr=True), heads, [[brief(cell, 200) for cell in each] for each in cells])
