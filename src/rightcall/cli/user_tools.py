"""The user's tools: load them from a module or an MCP server, and ask before a call runs."""

from __future__ import annotations

import importlib
import os
import shlex
import sys
import termios
from collections.abc import Iterable
from contextlib import AsyncExitStack, suppress
from types import ModuleType
from typing import Any

from rightcall.cli.inputs import exit_with_usage_error
from rightcall.cli.layout import console, paragraph
from rightcall.safe_text import brief, visible
from rightcall.tools.functions import is_class_tool, is_marked
from rightcall.tools.toolset import Toolset
from rightcall.workspace.allow_rules import AllowRule
from rightcall.workspace.approval import Denial, Permission

_TOOL_LISTS = ("TOOLS", "tools")
_YES, _NO, _ALWAYS = ("y", "yes"), ("", "n", "no"), ("a", "always")


def load_tools(source: str) -> Toolset:
    """Import the module MODULE of `source` (MODULE or MODULE:NAME), which runs its code, and return its tools: those of
    NAME; else of its list TOOLS or tools; else the functions marked with @tool, or all public functions. Exits with a
    usage error if there are none."""
    where, _, name = source.partition(":")
    module = _import_module(where)
    if name and not hasattr(module, name):
        exit_with_usage_error(f"{where!r} has no {name!r}; name a list of tools, a Toolset or a function in it")
    attribute = name or next((each for each in _TOOL_LISTS if hasattr(module, each)), "")
    tools = getattr(module, attribute) if attribute else _defined_tools(module)
    if not attribute and not tools:
        exit_with_usage_error(f"{where!r} has no tools: list them as TOOLS, or mark functions with @tool")
    return Toolset(tools)


def _import_module(where: str) -> ModuleType:
    """Import a module, given by its name or as the path of a file, and return it. A file is imported by name from its
    folder, which is added to `sys.path`, so that a child process can import it too.

    Exits with a usage error if the import fails, or if another module has the same name as the file."""
    is_file = where.endswith(".py") or os.sep in where
    folder, name = os.path.split(os.path.abspath(where)) if is_file else (os.getcwd(), where)
    if is_file and not os.path.isfile(where):
        exit_with_usage_error(f"file {where!r} does not exist")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(name.removesuffix(".py"))
    except Exception as error:  # noqa: BLE001 - the module's code can raise anything; report it in one line
        exit_with_usage_error(f"cannot import {where!r}: {type(error).__name__}: {error}")
    if is_file and os.path.realpath(getattr(module, "__file__", None) or "") != os.path.realpath(where):
        exit_with_usage_error(f"{where!r} has the same name as another module, {module.__name__!r}; rename the file")
    return module


def _defined_tools(module: ModuleType) -> list[Any]:
    """Return the public functions and tool classes marked with @tool that the module defines, or, if none is marked,
    all its public functions."""
    own = [value for key, value in vars(module).items() if not key.startswith("_") and _is_defined_in(value, module)]
    return [value for value in own if is_marked(value)] or [value for value in own if not isinstance(value, type)]


def _is_defined_in(value: Any, module: ModuleType) -> bool:
    """Return whether `value` is a function, or a class that is a tool, which the module itself defines and did not
    import."""
    if getattr(value, "__module__", None) != module.__name__ or not callable(value):
        return False
    return is_class_tool(value) if isinstance(value, type) else hasattr(value, "__name__")


async def connect_mcp_servers(stack: AsyncExitStack, servers: Iterable[str]) -> list[Toolset]:
    """Connect to MCP servers, given as URLs or commands, and return one toolset for each. `stack` closes the
    connections. Raises `BackendError` for a server that cannot be used."""
    toolsets: list[Toolset] = []
    for server in servers:
        from rightcall.mcp.client import connect

        address = server if server.startswith(("http://", "https://")) else shlex.split(server)
        toolsets.append(await stack.enter_async_context(connect(address)))
    return toolsets


# -- approval ----------------------------------------------------------------------------------------------------------


def ask_permission(call: str, rule: AllowRule | None) -> Permission:
    """Show a call on standard error and wait for the user's answer. `rule` is what the answer "always" would allow.

    Input that was typed before the question is discarded. The end of the input means no.
    """
    err = console(stderr=True)
    if call:
        paragraph(err, visible(call, one_line=True), "bold", hang=2)
    always = "" if rule is None else f", [a]lways {brief(str(rule), 200)}"
    paragraph(err, f"[y]es{always}, [n]o, or type what to do instead", hang=2)
    with suppress(termios.error, OSError, ValueError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    return _parse_answer(read_line("allow? "), rule)


def _parse_answer(answer: str, rule: AllowRule | None) -> Permission:
    """Return the permission that the user's typed answer gives: "yes", "no" (also for an empty answer), `rule` for
    "always", or a `Denial` with any other text. Without a rule, "always" means "yes" once."""
    word = answer.strip().lower()
    if word in _YES:
        return "yes"
    if word in _ALWAYS:
        return rule or "yes"
    return "no" if word in _NO else Denial(answer.strip())


def read_line(prompt: str, *, at_end: str = "") -> str:
    """Show the prompt, and return a line from standard input without its line end; `at_end` at the end of the input.
    The prompt is never written into a pipe."""
    if sys.stdout.isatty():
        with suppress(ImportError):
            import readline  # noqa: F401 - gives `input` its line editing
        with suppress(EOFError):
            return input(prompt)
        return at_end
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else at_end
