"""`rightcall check` and `rightcall repair`: calls given as JSON, judged, or put right with receipts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import typer

from rightcall.cli.inputs import POLICIES, AsJson, Files, Policy, ToolsFile, read_json, read_tools, refuse, usage_errors
from rightcall.cli.layout import console, row, table
from rightcall.cli.option_groups import grouped
from rightcall.cli.row_options import RowOptions, end_rows, one_file, run_key, run_rows
from rightcall.cli.safe import brief, json_text
from rightcall.cli.show import show_problems
from rightcall.datasets.rows.call_lines import CHECKED, REPAIRED, CallsWork
from rightcall.datasets.rows.outcomes import Totals
from rightcall.datasets.rows.sent_calls import Judged, judged, sent_in
from rightcall.problems import CODES
from rightcall.repairs.rules import RULES
from rightcall.types import to_json


@grouped
def check(
    *,
    files: Files = None,
    tools: ToolsFile = None,
    json: AsJson = False,
    codes: Annotated[bool, typer.Option("--codes", help="List every problem code instead.")] = False,
    many: RowOptions,
) -> None:
    """Say what is wrong with calls, given as JSON.

    Takes a call {"name": ..., "arguments": {...}}, a list of them, a provider's message or response, or a reply as
    `rightcall parse --json` prints it. Nothing is repaired. Exit code 1 means that a call must not run. With --rows
    each row of FILES holds such calls, and becomes one line of JSON.
    """
    if codes:
        _list_codes(json)
        return
    if many.wanted:
        totals = _rows("check", files, many, tools, "off", json=json)
        end_rows(totals, is_bad=totals.counts["refused"] > 0)
        return
    found = _read(one_file(files), tools, "off")
    problems = [problem for each in found for problem in each.problems]
    bad = sum(not each.call.ok for each in found)
    if json:
        listed = [to_json(problem) for problem in problems]
        typer.echo(json_text({"calls": len(found) - bad, "refused": bad, "problems": listed}))
    else:
        out = console()
        show_problems(out, problems)
        counted = f"{len(found)} call{'' if len(found) == 1 else 's'}"
        verdict = f"{bad} of {counted} must not run" if bad else f"{counted}, nothing blocks"
        row(out, "check", verdict, "bold red" if bad else "bold green")
    _end(found)


@grouped
def repair(
    *,
    files: Files = None,
    tools: ToolsFile = None,
    policy: Annotated[Policy, typer.Option("--policy", "--repair", help=POLICIES)] = Policy.safe,
    json: Annotated[
        bool, typer.Option("--json", help="With --rules: the list as JSON. With --rows: what was counted.")
    ] = False,
    rules: Annotated[bool, typer.Option("--rules", help="List every repair rule instead.")] = False,
    many: RowOptions,
) -> None:
    """Put calls right that are given as JSON, with a receipt for each change.

    Takes what `rightcall check` takes; "arguments" may be an object, or a string with the exact text that was sent.
    Prints JSON: the calls with their receipts, those that must not run under "refused", and what is still wrong with
    them. A call that was cut off is never completed. Exit code 1 means that a call must not run all the same.
    With --rows each row of FILES holds such calls, and becomes one line of JSON; exit code 1 means that some rows hold
    none.
    """
    if rules:
        _list_rules(json)
        return
    if many.wanted:
        end_rows(_rows("repair", files, many, tools, policy.value, json=json))
        return
    found = _read(one_file(files), tools, policy.value)
    problems = [to_json(problem) for each in found for problem in each.problems]
    calls = [to_json(each.call) for each in found if each.call.ok]
    refused = [to_json(each.call) for each in found if not each.call.ok]
    typer.echo(json_text({"calls": calls, "refused": refused, "problems": problems}))
    _end(found)


def _rows(
    what: Literal["check", "repair"],
    files: list[str] | None,
    many: RowOptions,
    tools: str | None,
    policy: str,
    *,
    json: bool,
) -> Totals:
    with usage_errors():
        key = run_key(many.keys, what, policy, files=(tools,))
        gives: Literal["counts", "calls"] = "counts" if what == "check" else "calls"
        work = CallsWork(key, many.keys, read_tools(tools), policy, gives)
    return run_rows(what, files, many, work, CHECKED if what == "check" else REPAIRED, json=json)


def _read(file: str, tools: str | None, policy: str) -> list[Judged]:
    if tools is None:
        refuse("say which tools there are: --tools FILE")
    with usage_errors():
        toolset = read_tools(tools)
        return judged(sent_in(read_json(file)), toolset, policy)


def _end(found: list[Judged]) -> None:
    if not all(each.call.ok for each in found):
        raise typer.Exit(1)


def _list_codes(json: bool) -> None:
    if json:
        kept = ("code", "blocking", "cause", "cure")
        typer.echo(json_text([{key: getattr(code, key) for key in kept} for code in CODES.values()]))
    else:
        rows = [(code.code, "" if code.blocking else "note", brief(code.cause, 500)) for code in CODES.values()]
        table(console(), ("code", "", "what it means"), rows)


def _list_rules(json: bool) -> None:
    if json:
        kept = ("name", "kind", "what", "sent", "arguments")
        rows: list[Any] = [msgspec.to_builtins({key: getattr(rule, key) for key in kept}) for rule in RULES]
        typer.echo(json_text(rows))
    else:
        table(console(), ("rule", "kind", "what it does"), [(rule.name, rule.kind, rule.what) for rule in RULES])
