"""`rightcall domains`: list and show stub domains, and check your own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from rightcall.capture.domain import BadDomain, Domain, built_in_names, find_domains, read_domain_file
from rightcall.cli.inputs import AsJson, domain_names, exit_with_usage_error, usage_errors
from rightcall.cli.layout import console, format_json, row, table
from rightcall.safe_text import brief


def domains(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[check] [NAMES|FILES]",
            help="Domains to show; after check: TOML files.",
            autocompletion=domain_names,
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """List the stub domains, or show some; `check FILES` reports every error in domains of your own.

    A domain is a TOML file: tools with fixed results, and scenarios with the expected calls. Exit code 1 means that a
    file has errors.
    """
    arguments = arguments or []
    if arguments[:1] == ["check"]:
        _check_files(arguments[1:], json)
        return
    with usage_errors():
        found = find_domains(arguments or built_in_names())
    if json:
        typer.echo(format_json([_domain_json(domain, whole=bool(arguments)) for domain in found]))
    elif arguments:
        for domain in found:
            _print_domain(domain)
    else:
        rows = [(each.name, len(each.tools), len(each.scenarios), each.about) for each in found]
        table(console(), ("domain", "tools", "scenarios", "about"), rows)


def _check_files(files: list[str], json: bool) -> None:
    """Read these TOML files and print the errors of each, or a summary of its domain. Exits with code 1 if there are
    errors, with a usage error if there are no files."""
    if not files:
        exit_with_usage_error("no file: `rightcall domains check my.toml`")
    results: list[dict[str, Any]] = []
    for file in files:
        try:
            results.append({"file": file, "faults": [], **_domain_json(read_domain_file(Path(file)), whole=False)})
        except BadDomain as error:
            results.append({"file": file, "faults": str(error).splitlines()})
    if json:
        typer.echo(format_json(results))
    else:
        out = console()
        for result in results:
            for fault in result["faults"]:
                row(out, "fault", brief(fault, 500), "red")
            if not result["faults"]:
                summary = f"{result['name']}: {result['tools']} tools, {result['scenarios']} scenarios, no errors"
                row(out, "domain", brief(summary, 500), "green")
    if any(result["faults"] for result in results):
        raise typer.Exit(1)


def _domain_json(domain: Domain, *, whole: bool) -> dict[str, Any]:
    """Return a domain as JSON data: name, description, and the numbers of tools, scenarios and kinds; with `whole`,
    also the names of its tools and the requests of its scenarios."""
    kinds = Counter(scenario.kind for scenario in domain.scenarios)
    description: dict[str, Any] = {"name": domain.name, "about": domain.about, "tools": len(domain.tools)}
    description |= {"scenarios": len(domain.scenarios), "kinds": dict(sorted(kinds.items()))}
    if whole:
        description["tool_names"] = [tool.name for tool in domain.tools]
        description["requests"] = {scenario.name: scenario.request for scenario in domain.scenarios}
    return description


def _print_domain(domain: Domain) -> None:
    """Print a domain with its tools and scenarios."""
    out = console()
    row(out, "domain", brief(domain.name), "bold")
    row(out, "about", brief(domain.about, 500))
    for tool in domain.tools:
        row(out, "tool", f"{tool.name}: {brief(tool.description, 200)}", "green")
    for scenario in domain.scenarios:
        row(out, scenario.kind, f"{brief(scenario.name)}: {brief(scenario.request, 300)}")
