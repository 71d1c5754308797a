"""Scenarios of stub domains as cases: `domains`, which have short and long ones, and `tasks`, the long ones alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from rightcall.capture.catalogue import DEFAULT, find_domains
from rightcall.capture.domain import Domain, Scenario
from rightcall.capture.examples import solved
from rightcall.evaluation.eval_case import EvalCase, by_scenario

TASK_DOMAINS = ("clinic", "warehouse", "newsroom", "expenses", "fleet")


def domain_cases(wanted: Iterable[str] = (), examples: int = 0) -> Iterator[EvalCase]:
    """The scenarios of these domains, by name or TOML file; the usual ones unless said."""
    for domain in find_domains(list(wanted) or DEFAULT):
        yield from _cases("domains", domain, examples)


def task_cases(wanted: Iterable[str] = (), examples: int = 0) -> Iterator[EvalCase]:
    """The tasks of several steps, of all domains that have them unless some are named."""
    for domain in find_domains(list(wanted) or TASK_DOMAINS):
        yield from _cases("tasks", domain, examples)


def _cases(suite: str, domain: Domain, examples: int) -> Iterator[EvalCase]:
    for scenario in domain.scenarios:
        if scenario.kind != "open":
            yield _case(suite, domain, scenario, examples)


def _case(suite: str, domain: Domain, scenario: Scenario, examples: int) -> EvalCase:
    return EvalCase(
        suite=suite,
        id=f"{domain.name}/{scenario.name}",
        category=domain.name,
        tools=domain.tools,
        messages=(*solved(domain, scenario, examples), {"role": "user", "content": scenario.request}),
        wanted=[msgspec.to_builtins(call) for call in scenario.calls],
        judge=by_scenario(scenario, domain),
        domain=domain,
    )
