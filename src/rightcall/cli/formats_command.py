"""`rightcall formats`: list, show and test formats, and find the format of a chat template."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import typer

from rightcall.cli.app import CommandGroup, HelpedGroup
from rightcall.cli.inputs import (
    AsJson,
    exit_with_usage_error,
    format_names,
    print_message,
    read_format_file,
    register_own_formats,
    usage_errors,
    write_text,
)
from rightcall.cli.layout import console, format_json, paragraph, row, table
from rightcall.errors import CannotCarry
from rightcall.formats import discover, find, known_formats
from rightcall.formats.spec import Format
from rightcall.formats.templates.source import TemplateSource, read_source
from rightcall.formats.templates.template_detection import Detection, detect_template
from rightcall.formats.templates.template_faults import BadTemplate
from rightcall.formats.toml_text import format_to_toml
from rightcall.parsing.rendering import render
from rightcall.safe_text import brief, visible
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Part, Reasoning, Text, Tool


class FormatsGroup(HelpedGroup):
    """A group that treats an unknown command as the name of a format: `formats hermes` is `formats show hermes`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first of `args` names, as the base class does. If it is neither a command nor an
        option, it is the name of a format: return the command "show" with all of `args` as its arguments."""
        is_name = bool(args) and self.get_command(ctx, args[0]) is None and not args[0].startswith("-")
        return super().resolve_command(ctx, ["show", *args] if is_name else args)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return the completions of the base class, and the names of formats."""
        names = self.commands["show"].params[0].shell_complete(ctx, incomplete)
        return [*super().shell_complete(ctx, incomplete), *names]


formats = CommandGroup(cls=FormatsGroup, no_args_is_help=False, invoke_without_command=True)


@formats.callback()
def list_formats(ctx: typer.Context, json: AsJson = False) -> None:
    """List every format, or show one: `rightcall formats NAME`.

    A format defines how a family of models writes its calls. Formats of your own are listed too: see docs/formats.md.
    """
    if ctx.invoked_subcommand == "check":
        discover()  # `check` reports the faults of its own file
    else:
        register_own_formats()
    if ctx.invoked_subcommand is not None:
        return
    if json:
        typer.echo(format_json([_format_data(format) for format in known_formats().formats.values()]))
        return
    out = console()
    rows = [(format.name, ", ".join(format.aliases), format.models) for format in known_formats().formats.values()]
    table(out, ("format", "aliases", "models"), [[visible(cell, one_line=True) for cell in each] for each in rows])
    if out.is_terminal:
        hint = "`rightcall formats NAME` shows one with a sample; `--toml` writes it as TOML, as a start for your own."
        paragraph(out, f"\n{hint}", "dim")


# -- show --------------------------------------------------------------------------------------------------------------


@formats.command("show")
def show_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A format's name or alias.", autocompletion=format_names)],
    toml: Annotated[bool, typer.Option("--toml", help="Write it as TOML, as a start for your own format.")] = False,
    json: AsJson = False,
) -> None:
    """Show one format: its models, its body types and a sample."""
    with usage_errors():
        format = find(name)
    if json:
        typer.echo(format_json({**_format_data(format), **({"toml": _copy_as_toml(format)} if toml else {})}))
    elif toml:
        write_text(_copy_as_toml(format).rstrip("\n"))
    else:
        _print_format(format)


def _print_format(format: Format) -> None:
    """Print a format: name, aliases, models, types of bodies and a sample."""
    out = console()
    row(out, "format", format.name, "bold")
    row(out, "aliases", ", ".join(format.aliases) or "-")
    row(out, "models", visible(format.models, one_line=True) or "-")
    row(out, "body", " or ".join(type(body).__name__ for body in format.bodies))
    row(out, "sample", visible(render_sample(format)), "green")


def _format_data(format: Format) -> dict[str, Any]:
    """Return a format as JSON data: its name, aliases, models, types of bodies and a sample."""
    return {
        "name": format.name,
        "aliases": list(format.aliases),
        "models": format.models,
        "bodies": [type(body).__name__ for body in format.bodies],
        "sample": render_sample(format),
    }


def _copy_as_toml(format: Format) -> str:
    """Return a format as the text of a TOML file under the name `my_...`, since the names of built-in formats are
    reserved."""
    own = msgspec.structs.replace(format, name=f"my_{format.name}", aliases=(), models="")
    return (
        f"# Copied from {format.name}. Documentation of the keys: docs/formats.md\n"
        f"# To test it: rightcall formats check FILE\n{format_to_toml(own)}"
    )


def render_sample(format: Format, *, calls: int = 2) -> str:
    """Return a sample reply in this format: reasoning, text and two calls, without the reasoning, then without the
    text, then with one call if the format cannot represent it. With `calls=1`, return one call and nothing else; "" if
    the format cannot represent a call."""
    several: tuple[Sequence[Part], ...] = (
        (Reasoning("The user asks about Oslo."), Text("Let me look."), _WEATHER, _TIME),
        (Text("Let me look."), _WEATHER, _TIME),
        (_WEATHER, _TIME),
    )
    for parts in (several if calls > 1 else ()) + ((_WEATHER,),):
        try:
            return render(parts, format=format, tools=_SAMPLE_TOOLS)
        except CannotCarry:
            continue
    return ""


_SAMPLE_TOOLS = Toolset(
    [
        Tool(
            name="get_weather",
            parameters={
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            },
        ),
        Tool(name="get_time", parameters={"type": "object", "properties": {"zone": {"type": "string"}}}),
    ]
)


def _sample_call(name: str, arguments: dict[str, object]) -> Call:
    """Return a call for the samples, with a fixed id."""
    return Call(name, arguments, json.dumps(arguments), "call12345")


_WEATHER = _sample_call("get_weather", {"city": "Oslo", "days": 3})
_TIME = _sample_call("get_time", {"zone": "CET"})


# -- check -------------------------------------------------------------------------------------------------------------


@formats.command("check")
def check_format_command(
    file: Annotated[str, typer.Argument(metavar="FILE|NAME", help="TOML file of a format, or its name.")] = "",
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the samples.")] = 0,
    samples: Annotated[int, typer.Option(min=1, max=100_000, metavar="N", help="Number of samples.")] = 60,
    json: AsJson = False,
) -> None:
    """Test whether a format of your own parses what it renders, for any chunking of the text."""
    from rightcall.testing.laws import check_format

    if not file:
        exit_with_usage_error("no file: `rightcall formats check my.toml`")
    with usage_errors():
        format = find(file) if file in known_formats().formats else read_format_file(file)
    violations = check_format(format, seed=seed, samples=samples)
    if json:
        typer.echo(format_json({"format": format.name, "violations": msgspec.to_builtins(violations)}))
    else:
        out = console()
        for violation in violations:
            row(out, violation.law.replace("never ", ""), brief(violation.what, 600), "red")
            row(out, "", brief(violation.input, 400), "dim")
        verdict = f"breaks laws: {len(violations)} violations" if violations else "keeps every law"
        row(out, "format", f"{format.name} {verdict}", "bold red" if violations else "bold green")
    if violations:
        raise typer.Exit(1)


# -- detect ------------------------------------------------------------------------------------------------------------


@formats.command("detect")
def detect_format_command(
    file: Annotated[
        str, typer.Argument(metavar="TEMPLATE", help="A .jinja file, a tokenizer_config.json or a GGUF file.")
    ] = "",
    json: AsJson = False,
) -> None:
    """List the formats that parse what a model's chat template writes; if there is none, draft one.

    The template is rendered in a separate process with limits, which needs the extra `templates`. Exit codes: 0 a
    format was found, 1 none was found, 2 there is no template that can be rendered.
    """
    if not file:
        exit_with_usage_error(
            "no file: `rightcall formats detect chat_template.jinja` (or tokenizer_config.json, or a GGUF file)"
        )
    with usage_errors():
        source = _read_template(file)
        detections = {name: detect_template(text, source.tokens) for name, text in source.templates.items()}
    if json:
        typer.echo(format_json({name: _detection_json(each) for name, each in detections.items()}))
    else:
        for name, each in detections.items():
            _print_detection(name, each)
    if not any(each.formats for each in detections.values()):
        drafted = any(each.draft for each in detections.values())
        more = "save the draft as a file and test it" if drafted else "write your own and test it"
        print_message(
            f"no format parses what this template writes; {more}: `rightcall formats check FILE`, docs/formats.md"
        )
        raise typer.Exit(1)


def _read_template(file: str) -> TemplateSource:
    """Return the chat templates and special tokens in a .jinja, JSON or GGUF file. Exits with a usage error if it
    cannot be read or has none."""
    try:
        with open(file, "rb") as opened:
            return read_source(opened.read)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        exit_with_usage_error(f"cannot read {file!r}: {reason}")
    except BadTemplate as error:
        exit_with_usage_error(f"{file!r}: {error}")


def _detection_json(detection: Detection) -> dict[str, object]:
    """Return a detection as JSON data: the formats, the parts that they recover (`shows`), the rendered text, and the
    draft of a format if there is one."""
    draft = {"draft": detection.draft} if detection.draft else {}
    return {"formats": list(detection.formats), "shows": detection.shows, "text": detection.text, **draft}


def _print_detection(name: str, detection: Detection) -> None:
    """Print what a template writes, the formats that parse it, and the draft of a format if there is one."""
    out = console()
    row(out, "template", brief(name), "bold")
    row(out, "writes", visible(detection.text.strip("\n")) or "(nothing)", "dim")
    if detection.formats:
        row(out, "recovered", detection.shows)
    if detection.draft:
        row(out, "draft", visible(detection.draft.strip()), "green")
    row(out, "formats", "\n".join(detection.formats) or "none", "green" if detection.formats else "red")
