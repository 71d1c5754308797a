"""`rightcall check` and `rightcall repair`: validate or repair calls that are given as JSON."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import typer

from rightcall.cli.inputs import (
    POLICIES,
    AsJson,
    Files,
    Policy,
    ToolsFile,
    exit_with_usage_error,
    grouped,
    read_json_file,
    read_tools,
    usage_errors,
)
from rightcall.cli.layout import console, format_json, row, table
from rightcall.cli.row_options import RowOptions, exit_if_bad, one_file, run_key, run_rows
from rightcall.cli.show import show_problems
from rightcall.datasets.rows.calls import CHECKED, REPAIRED, CallsWork, CheckedCall, calls_in, check_calls
from rightcall.datasets.rows.mapping import Totals
from rightcall.problems import CODES
from rightcall.repairs.rules import RULES
from rightcall.safe_text import brief
from rightcall.types import Problem, to_json


@grouped
def check_command(
    *,
    files: Files = None,
    tools: ToolsFile = None,
    json: AsJson = False,
    codes: Annotated[bool, typer.Option("--codes", help="Only list every problem code.")] = False,
    many: RowOptions,
) -> None:
    """Check calls, given as JSON, and report their problems.

    Takes a call {"name": ..., "arguments": {...}}, a list of them, a provider's message or response, or the output of
    `rightcall parse --json`. Nothing is repaired. Exit code 1 means that a call is rejected. With --rows, each row of
    FILES has such calls, and becomes one line of JSON.
    """
    if codes:
        _print_codes(json)
        return
    if many.enabled:
        totals = _run_rows("check", files, many, tools, "off", json=json)
        exit_if_bad(totals, is_bad=totals.counts["refused"] > 0)
        return
    found = _check_calls(one_file(files), tools, "off")
    problems = [problem for each in found for problem in each.problems]
    bad = sum(not each.call.ok for each in found)
    if json:
        listed = [to_json(problem) for problem in problems]
        typer.echo(format_json({"calls": len(found) - bad, "refused": bad, "problems": listed}))
    else:
        _print_check(problems, len(found), bad)
    _exit_if_rejected(found)


def _print_check(problems: list[Problem], calls: int, rejected: int) -> None:
    """Print the problems, and how many of the `calls` are rejected."""
    out = console()
    show_problems(out, problems)
    counted = f"{calls} call{'' if calls == 1 else 's'}"
    verdict = f"{rejected} of {counted} rejected" if rejected else f"{counted}, none rejected"
    row(out, "check", verdict, "bold red" if rejected else "bold green")


@grouped
def repair_command(
    *,
    files: Files = None,
    tools: ToolsFile = None,
    policy: Annotated[Policy, typer.Option("--policy", "--repair", help=POLICIES)] = Policy.safe,
    json: Annotated[
        bool,
        typer.Option("--json", help="With --rules: print the list as JSON. With --rows: print the counts as JSON."),
    ] = False,
    rules: Annotated[bool, typer.Option("--rules", help="Only list every repair rule.")] = False,
    many: RowOptions,
) -> None:
    """Repair calls, given as JSON, with a record of each change.

    Takes what `rightcall check` takes; "arguments" may be an object, or a string with the exact text of the model.
    Prints JSON: the calls with their repairs, rejected calls under "refused", and the remaining problems. A truncated
    call is never completed. Exit code 1 means that a call is still rejected. With --rows, each row of FILES has such
    calls, and becomes one line of JSON; exit code 1 means that some rows have none.
    """
    if rules:
        _print_rules(json)
        return
    if many.enabled:
        exit_if_bad(_run_rows("repair", files, many, tools, policy.value, json=json))
        return
    found = _check_calls(one_file(files), tools, policy.value)
    problems = [to_json(problem) for each in found for problem in each.problems]
    calls = [to_json(each.call) for each in found if each.call.ok]
    refused = [to_json(each.call) for each in found if not each.call.ok]
    typer.echo(format_json({"calls": calls, "refused": refused, "problems": problems}))
    _exit_if_rejected(found)


def _run_rows(
    what: Literal["check", "repair"],
    files: list[str] | None,
    many: RowOptions,
    tools: str | None,
    policy: str,
    *,
    json: bool,
) -> Totals:
    """Check or repair the calls in all rows of the files, write one line of JSON per row, print the summary, and return
    the totals. Exits for wrong options and unusable files."""
    with usage_errors():
        key = run_key(many.keys, what, policy, files=(tools,))
        output: Literal["counts", "calls"] = "counts" if what == "check" else "calls"
        work = CallsWork(key, many.keys, read_tools(tools), policy, output)
    return run_rows(what, files, many, work, CHECKED if what == "check" else REPAIRED, json=json)


def _check_calls(file: str, tools: str | None, policy: str) -> list[CheckedCall]:
    """Return the calls in the JSON file `file`, repaired by `policy` ("off": only checked), with their problems.
    `tools` is a file of tool definitions; exits with a usage error if it is None, and for unusable files."""
    if tools is None:
        exit_with_usage_error("no tools: pass --tools FILE")
    with usage_errors():
        toolset = read_tools(tools)
        return check_calls(calls_in(read_json_file(file)), toolset, policy)


def _exit_if_rejected(found: list[CheckedCall]) -> None:
    """Exit with code 1 if one of these calls is rejected; otherwise do nothing."""
    if not all(each.call.ok for each in found):
        raise typer.Exit(1)


def _print_codes(json: bool) -> None:
    """Print all problem codes, as a table or, if `json` is set, as JSON."""
    if json:
        fields = ("code", "blocking", "cause", "cure")
        typer.echo(format_json([{key: getattr(code, key) for key in fields} for code in CODES.values()]))
    else:
        rows = [(code.code, "" if code.blocking else "note", brief(code.cause, 500)) for code in CODES.values()]
        table(console(), ("code", "", "what it means"), rows)


def _print_rules(json: bool) -> None:
    """Print all repair rules, as a table or, if `json` is set, as JSON."""
    if json:
        fields = ("name", "kind", "what", "sent", "arguments")
        rows: list[Any] = [msgspec.to_builtins({key: getattr(rule, key) for key in fields}) for rule in RULES]
        typer.echo(format_json(rows))
    else:
        table(console(), ("rule", "kind", "what it does"), [(rule.name, rule.kind, rule.what) for rule in RULES])
