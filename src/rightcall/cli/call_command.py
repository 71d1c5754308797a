"""`rightcall call`: run one call through repair, check, hooks and tool, and show the trace."""

from __future__ import annotations

import contextlib
import sys
from typing import Annotated

import typer

from rightcall.cli.inputs import (
    AsJson,
    Policy,
    RepairPolicy,
    exit_with_usage_error,
    print_message,
    read_text,
    usage_errors,
)
from rightcall.cli.layout import console, format_json, row
from rightcall.cli.show import format_repair, show_problems
from rightcall.cli.user_tools import load_tools
from rightcall.datasets.rows.calls import check_calls
from rightcall.dispatching.bounded_output import Bounds
from rightcall.dispatching.dispatcher import dispatch_sync
from rightcall.dispatching.invoke import RunLimits
from rightcall.dispatching.result import Result
from rightcall.dispatching.trace import Trace
from rightcall.safe_text import brief, visible
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Reply
from rightcall.workspace import BASH, Workspace


def call_command(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Name of the tool.")],
    arguments: Annotated[str, typer.Argument(metavar="JSON|-", help="Its arguments; - is standard input.")] = "{}",
    source: Annotated[
        str,
        typer.Option("--from", metavar="MODULE[:NAME]", help="Python module or file with the tools. Its code runs."),
    ] = "",
    workspace: Annotated[
        str,
        typer.Option(
            "--workspace", metavar="DIR", help="The five coding tools in this folder; they run without asking."
        ),
    ] = "",
    policy: RepairPolicy = Policy.safe,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.001, help="Time limit of the tool.")] = 120.0,
    isolate: Annotated[bool, typer.Option("--isolate", help="Run the tool in a separate process.")] = False,
    json: AsJson = False,
) -> None:
    """Run one call like a call of a model: repair it, check it, run it, and bound its result.

    The tools of a module are those in its list TOOLS, or else the functions marked with @tool, or else all public
    functions; MODULE:NAME selects others. Exit code 1 means that the call failed or was rejected.
    """
    _check_options(source, workspace, isolate=isolate)
    with usage_errors():
        space = Workspace(workspace) if workspace else None
        toolset = Toolset(*([load_tools(source)] if source else []), *([space.tools] if space is not None else []))
        _print_warnings(space if tool == BASH else None, isolate)
        reply = _repair_call(tool, read_text("-") if arguments == "-" else arguments, toolset, policy.value)
        trace, limits = Trace(), RunLimits(call=timeout, result=Bounds())
        with contextlib.redirect_stdout(sys.stderr):  # keep what the tool prints out of our output
            result = dispatch_sync(reply, toolset, trace=trace, limits=limits, isolate=isolate)[0]
    if json:
        typer.echo(format_json({"result": {**result.to_json(), "text": result.text}, "trace": trace.to_json()}))
    else:
        _print_result(result, trace)
    if result.error:
        raise typer.Exit(1)


def _check_options(source: str, workspace: str, *, isolate: bool) -> None:
    """Exit with a usage error if neither --from nor --workspace is given, or if --isolate is given without --from;
    otherwise do nothing."""
    if not source and not workspace:
        exit_with_usage_error("no tools: pass --from MODULE, a Python module or file, or --workspace DIR")
    if isolate and not source:
        exit_with_usage_error("--isolate applies only to tools of --from: pass --from MODULE, or leave out --isolate")


def _repair_call(tool: str, arguments: str, toolset: Toolset, policy: str) -> Reply:
    """Repair and check one call of the tool `tool`, whose `arguments` are JSON text, and return a reply with this call
    and its problems. The call is not run here."""
    repaired = check_calls([Call(tool, {}, arguments, id="call_1", raw=arguments)], toolset, policy)[0]
    return Reply(parts=(repaired.call,), problems=repaired.problems)


def _print_result(result: Result, trace: Trace) -> None:
    """Print the call, its repairs and problems, the trace, the time and the result."""
    out = console()
    row(out, "call", f"{brief(result.name)} {brief(result.call.json, 500)}", "bold")
    for repair in result.call.repairs:
        row(out, "repair", format_repair(repair), "yellow")
    show_problems(out, result.problems)
    row(out, "trace", visible(str(trace)), "cyan")
    row(out, "time", f"{result.duration * 1000:.1f} ms")
    row(out, "result", visible(result.text), "red" if result.error else "green")


def _print_warnings(shell: Workspace | None, isolate: bool) -> None:
    """Print on standard error what commands can reach in the workspace `shell` (None: nothing), and with `isolate` that
    on this system some processes are not ended."""
    if shell is not None and shell.exposure:
        print_message(shell.exposure)
    if isolate and sys.platform != "linux":
        print_message("on this system, processes that the tool starts in new sessions are not ended with it")
