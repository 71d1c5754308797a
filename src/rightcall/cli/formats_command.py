"""`rightcall formats`: which there are, what one looks like, whether one of your own works, what a template writes."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from rightcall.cli.format_sample import sample
from rightcall.cli.inputs import AsJson, read_format, refuse, usage_errors
from rightcall.cli.safe import brief, json_text, visible
from rightcall.cli.show import console, row
from rightcall.cli.templates_command import detect_formats
from rightcall.formats import FORMATS, find
from rightcall.formats.spec import Format


def formats(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A format's name or alias: show it; or check, or detect.")
    ] = None,
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="After check: TOML of a format of your own. After detect: a chat template."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="After check: other samples.")] = 0,
    samples: Annotated[int, typer.Option(min=1, max=100_000, help="After check: how many samples.")] = 60,
    json: AsJson = False,
) -> None:
    """List every format, or show one; `check FILE` tries the laws on a format of your own; `detect FILE` tells which
    formats read what a model's chat template writes.

    Exit code of `check`: 0 it keeps every law, 1 it breaks one, 2 the file defines no format. `detect` takes a .jinja
    file, a tokenizer_config.json or a GGUF file, needs the extra `templates`, and renders in a process of its own with
    limits. Its exit code: 0 some format does, 1 none does, 2 there is no template that can be rendered.
    """
    if name == "check":
        check(file, seed=seed, samples=samples, json=json)
    elif name == "detect":
        detect_formats(file, json=json)
    elif file is not None:
        refuse(f"one format at a time: {name!r} or {file!r}; did you mean `rightcall formats check {file}`?")
    elif name is None:
        _list(json)
    else:
        with usage_errors():
            _show(find(name), json)


def _list(json: bool) -> None:
    if json:
        typer.echo(json_text([described(format) for format in FORMATS.values()]))
        return
    out = console()
    out = out if out.is_terminal else console(width=2_000)  # one line each, for grep
    table = Table("format", "aliases", "models", box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("a call", no_wrap=True, overflow="ellipsis")
    for format in FORMATS.values():
        call = visible(sample(format, calls=1), one_line=True)
        table.add_row(format.name, ", ".join(format.aliases), format.models, call)
    out.print(table, soft_wrap=False)


def _show(format: Format, json: bool) -> None:
    if json:
        typer.echo(json_text(described(format)))
        return
    out = console()
    row(out, "format", format.name, "bold")
    row(out, "aliases", ", ".join(format.aliases) or "-")
    row(out, "models", format.models or "-")
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


def check(file: str | None, *, seed: int, samples: int, json: bool) -> None:
    """Tries the laws on the format of a TOML file."""
    from rightcall.laws import check_format

    if file is None:
        refuse("say which file: `rightcall formats check my.toml`")
    with usage_errors():
        format = read_format(file)
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
