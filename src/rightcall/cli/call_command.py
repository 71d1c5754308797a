"""`rightcall call`: one call through the whole path, repair, check, hooks and run, with the trace of it."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from types import ModuleType
from typing import Annotated, Any

import typer

from rightcall.cli.inputs import AsJson, Policy, RepairPolicy, read_text, refuse, say, usage_errors
from rightcall.cli.layout import console, row
from rightcall.cli.safe import brief, json_text, visible
from rightcall.cli.show import receipt, show_problems
from rightcall.datasets.rows.sent_calls import judged
from rightcall.dispatching.bounded_output import Bounds
from rightcall.dispatching.dispatcher import dispatch_sync
from rightcall.dispatching.invoke import RunLimits
from rightcall.dispatching.result import Result
from rightcall.dispatching.trace import Trace
from rightcall.tools.functions import is_class_tool, is_marked
from rightcall.tools.toolset import Toolset
from rightcall.types import Call, Reply
from rightcall.workspace import BASH, Workspace

_LISTS = ("TOOLS", "tools")


def call(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="Name of the tool.")],
    arguments: Annotated[str, typer.Argument(metavar="JSON|-", help="Its arguments; - is standard input.")] = "{}",
    source: Annotated[
        str,
        typer.Option("--from", metavar="MODULE[:NAME]", help="Python module or file with the tools. Its code is run."),
    ] = "",
    workspace: Annotated[
        str, typer.Option("--workspace", metavar="DIR", help="The five coding tools, in this folder; nothing is asked.")
    ] = "",
    policy: RepairPolicy = Policy.safe,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=0.001, help="How long the tool may take.")] = 120.0,
    isolate: Annotated[bool, typer.Option("--isolate", help="Run the tool in a process of its own.")] = False,
    json: AsJson = False,
) -> None:
    """Run one call as a model would have made it: repaired, checked, run, and its result cut to size.

    The tools are those listed in the module as TOOLS, or else the functions marked with @tool, or else all its public
    functions; MODULE:NAME says which. Exit code 1 means that the call failed or must not run.
    """
    if not source and not workspace:
        refuse("say where the tools are: --from MODULE, a Python module or file, or --workspace DIR")
    if isolate and not source:
        refuse(
            "--isolate is for tools of --from; those of --workspace run here, and commands in a process of their own"
        )
    with usage_errors():
        space = Workspace(workspace) if workspace else None
        toolset = Toolset(*([tools_of(source)] if source else []), *([space.tools] if space is not None else []))
        _warn(space if tool == BASH else None, isolate)
        made = _made(tool, read_text("-") if arguments == "-" else arguments, toolset, policy.value)
        trace, limits = Trace(), RunLimits(call=timeout, result=Bounds())
        with contextlib.redirect_stdout(sys.stderr):  # what the tool prints is no part of what we print
            result = dispatch_sync(made, toolset, trace=trace, limits=limits, isolate=isolate)[0]
    if json:
        typer.echo(json_text({"result": {**result.to_json(), "text": result.text}, "trace": trace.to_json()}))
    else:
        _show(result, trace)
    if result.error:
        raise typer.Exit(1)


def _made(tool: str, arguments: str, toolset: Toolset, policy: str) -> Reply:
    """The call as a reply, so that what `repair` could not mend keeps it from running."""
    found = judged([Call(tool, {}, arguments, id="call_1", raw=arguments)], toolset, policy)[0]
    return Reply(parts=(found.call,), problems=found.problems)


def _show(result: Result, trace: Trace) -> None:
    out = console()
    row(out, "call", f"{brief(result.name)} {brief(result.call.json, 500)}", "bold")
    for made in result.call.repairs:
        row(out, "repair", receipt(made), "yellow")
    show_problems(out, result.problems)
    row(out, "trace", visible(str(trace)), "cyan")
    row(out, "time", f"{result.duration * 1000:.1f} ms")
    row(out, "result", visible(result.text), "red" if result.error else "green")


# -- the tools of a module ---------------------------------------------------------------------------------------------


def _warn(shell: Workspace | None, isolate: bool) -> None:
    """What a tool can reach that the caller may not expect."""
    if shell is not None and shell.exposure:
        say(shell.exposure)
    if isolate and sys.platform != "linux":
        say("what the tool starts in a session of its own is not ended with it on this system")


def tools_of(source: str) -> Toolset:
    """The tools that a module or file has. Its code is run: that is what the caller asks for."""
    where, _, name = source.partition(":")
    module = _imported(where)
    if name and not hasattr(module, name):
        refuse(f"{where!r} has no {name!r}; name a list of tools, a Toolset or a function in it")
    listed = name or next((each for each in _LISTS if hasattr(module, each)), "")
    found = getattr(module, listed) if listed else _own_tools(module)
    if not listed and not found:
        refuse(f"{where!r} has no tools: list them as TOOLS, or mark functions with @tool")
    return Toolset(found)


def _own_tools(module: ModuleType) -> list[Any]:
    own = [value for key, value in vars(module).items() if not key.startswith("_") and _is_own(value, module)]
    return [value for value in own if is_marked(value)] or [value for value in own if not isinstance(value, type)]


def _is_own(value: Any, module: ModuleType) -> bool:
    if getattr(value, "__module__", None) != module.__name__ or not callable(value):
        return False
    return is_class_tool(value) if isinstance(value, type) else hasattr(value, "__name__")


def _imported(where: str) -> ModuleType:
    """A file is imported by its name from its folder, so that a process of its own finds it in the same way."""
    is_file = where.endswith(".py") or os.sep in where
    folder, name = os.path.split(os.path.abspath(where)) if is_file else (os.getcwd(), where)
    if is_file and not os.path.isfile(where):
        refuse(f"there is no file {where!r}")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(name.removesuffix(".py"))
    except Exception as error:  # noqa: BLE001 - whatever the module's code raises is told in one line
        refuse(f"{where!r} cannot be imported: {type(error).__name__}: {error}")
    if is_file and os.path.realpath(getattr(module, "__file__", None) or "") != os.path.realpath(where):
        refuse(f"{where!r} has the name of another module, {module.__name__!r}; give it another")
    return module
