"""All commands in one place."""

from __future__ import annotations

from typing import Annotated

import typer

from rightcall import __version__
from rightcall.cli.call_command import call
from rightcall.cli.calls_command import check, repair
from rightcall.cli.capture_command import capture
from rightcall.cli.chat_command import chat
from rightcall.cli.contract_command import contract
from rightcall.cli.dataset_cleaning import dedupe, mutate
from rightcall.cli.dataset_command import app as dataset
from rightcall.cli.dataset_exchange import export, import_
from rightcall.cli.demo_command import demo
from rightcall.cli.doctor_command import doctor
from rightcall.cli.domains_command import domains
from rightcall.cli.eval_command import eval_
from rightcall.cli.explain_command import explain
from rightcall.cli.formats_command import formats
from rightcall.cli.grammar_command import grammar
from rightcall.cli.help_page import CommandGroup
from rightcall.cli.mcp_command import mcp
from rightcall.cli.model_command import model
from rightcall.cli.parse_command import detect, parse
from rightcall.cli.render_command import render
from rightcall.cli.replay_command import replay
from rightcall.cli.report_command import report
from rightcall.cli.run_command import run
from rightcall.cli.serve_command import serve
from rightcall.cli.tools_command import tools

app = CommandGroup(add_completion=True)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rightcall {__version__}")
        raise typer.Exit()


@app.callback()
def rightcall(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Turns what any language model writes into tool calls that can be trusted.

    Exit codes: 0 fine, 1 something blocking was found, 2 wrong usage.
    """


app.command()(parse)
app.command()(check)
app.command()(repair)
app.command()(call)
app.command()(report)
app.command()(tools)
app.command()(contract)
app.command()(render)
app.command()(grammar)
app.command()(detect)
app.add_typer(formats, name="formats")
app.command()(explain)
app.command()(replay)
app.command()(serve)
app.command()(doctor)
app.command()(demo)
app.command()(chat)
app.command()(run)
app.command()(capture)
app.command("eval")(eval_)
app.add_typer(model, name="model")
app.add_typer(mcp, name="mcp")
app.command()(domains)
dataset.command()(export)
dataset.command("import")(import_)
dataset.command()(dedupe)
dataset.command()(mutate)
app.add_typer(dataset, name="dataset")
