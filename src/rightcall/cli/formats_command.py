"""`rightcall formats`: which there are, what one looks like, whether one of your own works, what a template writes."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from rightcall.cli.completing import format_names
from rightcall.cli.format_sample import sample
from rightcall.cli.help_page import CommandGroup, HelpedGroup
from rightcall.cli.inputs import AsJson, own_formats, read_format, refuse, usage_errors, write_text
from rightcall.cli.layout import console, paragraph, row, table
from rightcall.cli.safe import brief, json_text, visible
from rightcall.cli.templates_command import detect_formats
from rightcall.formats import discover, find, known_formats
from rightcall.formats.spec import Format
from rightcall.formats.toml_text import format_to_toml


class FormatsGroup(HelpedGroup):
    """A word that is none of its commands is the name of a format: `formats hermes` is `formats show hermes`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        is_name = bool(args) and self.get_command(ctx, args[0]) is None and not args[0].startswith("-")
        return super().resolve_command(ctx, ["show", *args] if is_name else args)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        names = self.commands["show"].params[0].shell_complete(ctx, incomplete)
        return [*super().shell_complete(ctx, incomplete), *names]


formats = CommandGroup(cls=FormatsGroup, no_args_is_help=False, invoke_without_command=True)


@formats.callback()
def listed(ctx: typer.Context, json: AsJson = False) -> None:
    """List every format, or show one: `rightcall formats NAME`.

    A format says how a family of models writes its calls. Those of your own are listed too: see docs/formats.md.
    """
    if ctx.invoked_subcommand == "check":
        discover()  # what is wrong with a file is said of the one that is checked
    else:
        own_formats()
    if ctx.invoked_subcommand is not None:
        return
    if json:
        typer.echo(json_text([described(format) for format in known_formats().formats.values()]))
        return
    out = console()
    rows = [(format.name, ", ".join(format.aliases), format.models) for format in known_formats().formats.values()]
    table(out, ("format", "aliases", "models"), [[visible(cell, one_line=True) for cell in each] for each in rows])
    if out.is_terminal:
        hint = "`rightcall formats NAME` shows one with a sample; `--toml` writes it out, to start your own from."
        paragraph(out, f"\n{hint}", "dim")


@formats.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A format's name or alias.", autocompletion=format_names)],
    toml: Annotated[bool, typer.Option("--toml", help="Write it as TOML, to start a format of your own from.")] = False,
    json: AsJson = False,
) -> None:
    """Show one format: who writes it, what it is made of, and a sample."""
    with usage_errors():
        format = find(name)
    if json:
        typer.echo(json_text({**described(format), **({"toml": own_toml(format)} if toml else {})}))
    elif toml:
        write_text(own_toml(format).rstrip("\n"))
    else:
        _show(format)


def own_toml(format: Format) -> str:
    """The format as a file that may be changed and used: a built-in name cannot be taken again."""
    own = msgspec.structs.replace(format, name=f"my_{format.name}", aliases=(), models="")
    return (
        f"# Begun from {format.name}. What the keys mean: docs/formats.md\n"
        f"# Whether it works: rightcall formats check FILE\n{format_to_toml(own)}"
    )


def _show(format: Format) -> None:
    out = console()
    row(out, "format", format.name, "bold")
    row(out, "aliases", ", ".join(format.aliases) or "-")
    row(out, "models", visible(format.models, one_line=True) or "-")
    row(out, "body", " or ".join(type(body).__name__ for body in format.bodies))
    row(out, "sample", visible(sample(format)), "green")


def described(format: Format) -> dict[str, Any]:
    """What is told of a format as JSON."""
    return {
        "name": format.name,
        "aliases": list(format.aliases),
        "models": format.models,
        "bodies": [type(body).__name__ for body in format.bodies],
        "sample": sample(format),
    }


@formats.command("check")
def check(
    file: Annotated[str, typer.Argument(metavar="FILE|NAME", help="TOML of a format of your own, or its name.")] = "",
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Another number, other samples.")] = 0,
    samples: Annotated[int, typer.Option(min=1, max=100_000, metavar="N", help="How many samples.")] = 60,
    json: AsJson = False,
) -> None:
    """Try the laws on a format of your own: does it read what it writes, however the text is cut?

    Exit code 0 means that it keeps every law, 1 that it breaks one, 2 that the file defines no format.
    """
    from rightcall.testing.laws import check_format

    if not file:
        refuse("say which file: `rightcall formats check my.toml`")
    with usage_errors():
        format = find(file) if file in known_formats().formats else read_format(file)
    violations = check_format(format, seed=seed, samples=samples)
    if json:
        typer.echo(json_text({"format": format.name, "violations": msgspec.to_builtins(violations)}))
    else:
        out = console()
        for violation in violations:
            row(out, violation.law.replace("never ", ""), brief(violation.what, 600), "red")
            row(out, "", brief(violation.input, 400), "dim")
        verdict = f"breaks laws: {len(violations)} violations" if violations else "keeps every law"
        row(out, "format", f"{format.name} {verdict}", "bold red" if violations else "bold green")
    if violations:
        raise typer.Exit(1)


@formats.command("detect")
def detect(
    file: Annotated[
        str, typer.Argument(metavar="TEMPLATE", help="A .jinja file, a tokenizer_config.json or a GGUF file.")
    ] = "",
    json: AsJson = False,
) -> None:
    """Tell which formats read what a model's chat template writes; where none does, draft one.

    The template is rendered in a process of its own, with limits; that needs the extra `templates`. Exit code 0 means
    that some format does, 1 that none does, 2 that there is no template that can be rendered.
    """
    detect_formats(file, json=json)
