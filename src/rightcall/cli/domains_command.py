"""`rightcall domains`: which there are, and whether one of your own works."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from rightcall.capture import catalogue
from rightcall.capture.domain import BadDomain, Domain
from rightcall.cli.completing import domain_names
from rightcall.cli.inputs import AsJson, refuse, usage_errors
from rightcall.cli.layout import console, row, table
from rightcall.cli.safe import brief, json_text


def domains(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[check] [NAMES|FILES]",
            help="Domains to show; after check: TOML files of your own.",
            autocompletion=domain_names,
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """List the stub domains, or show some; `check FILES` says everything that is wrong with domains of your own.

    A domain is a TOML file: tools that answer the same every time, and scenarios with the calls that are right. Exit
    code 1 means that a file cannot be used.
    """
    given = words or []
    if given[:1] == ["check"]:
        _check(given[1:], json)
        return
    with usage_errors():
        found = catalogue.find_domains(given or catalogue.names())
    if json:
        typer.echo(json_text([_told(domain, whole=bool(given)) for domain in found]))
    elif given:
        for domain in found:
            _show(domain)
    else:
        rows = [(each.name, len(each.tools), len(each.scenarios), each.about) for each in found]
        table(console(), ("domain", "tools", "scenarios", "about"), rows)


def _check(files: list[str], json: bool) -> None:
    if not files:
        refuse("say which files: `rightcall domains check my.toml`")
    results: list[dict[str, Any]] = []
    for file in files:
        try:
            results.append({"file": file, "faults": [], **_told(catalogue.from_file(Path(file)), whole=False)})
        except BadDomain as error:
            results.append({"file": file, "faults": str(error).splitlines()})
    if json:
        typer.echo(json_text(results))
    else:
        out = console()
        for result in results:
            for fault in result["faults"]:
                row(out, "fault", brief(fault, 500), "red")
            if not result["faults"]:
                said = f"{result['name']}: {result['tools']} tools, {result['scenarios']} scenarios, nothing wrong"
                row(out, "domain", brief(said, 500), "green")
    if any(result["faults"] for result in results):
        raise typer.Exit(1)


def _told(domain: Domain, *, whole: bool) -> dict[str, Any]:
    kinds = Counter(scenario.kind for scenario in domain.scenarios)
    told: dict[str, Any] = {"name": domain.name, "about": domain.about, "tools": len(domain.tools)}
    told |= {"scenarios": len(domain.scenarios), "kinds": dict(sorted(kinds.items()))}
    if whole:
        told["tool_names"] = [tool.name for tool in domain.tools]
        told["requests"] = {scenario.name: scenario.request for scenario in domain.scenarios}
    return told


def _show(domain: Domain) -> None:
    out = console()
    row(out, "domain", brief(domain.name), "bold")
    row(out, "about", brief(domain.about, 500))
    for tool in domain.tools:
        row(out, "tool", f"{tool.name}: {brief(tool.description, 200)}", "green")
    for scenario in domain.scenarios:
        row(out, scenario.kind, f"{brief(scenario.name)}: {brief(scenario.request, 300)}")
