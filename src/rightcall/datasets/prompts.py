"""`dataset prompts`: what a capture would send, as rows `forge-dataset-tool-prompt/v1`. Nothing is sent.

for row in prompts(find_domains(["shopping"]), model="test-model", runs=2): ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from rightcall.capture.captured_rows import available_tools, unix_ms
from rightcall.capture.domain import Domain, Scenario
from rightcall.capture.settings import SYSTEM
from rightcall.datasets.schemas import PROMPT
from rightcall.datasets.written_kinds import PROMPTS
from rightcall.storage.whole_files import WholeFile
from rightcall.tools.provider_forms import to_provider
from rightcall.types import Json

MODEL, OUTPUT = "test-model", "target/dataset/tool_prompts.jsonl"


def prompts(domains: Iterable[Domain], *, model: str = MODEL, runs: int = 1) -> Iterator[Json]:
    """One row for each run of each scenario, in the order of a capture."""
    known = list(domains)
    for run_index in range(runs):
        for domain in known:
            for scenario in domain.scenarios:
                yield _row(domain, scenario, model, run_index)


def starting_messages(scenario: Scenario) -> list[Json]:
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": scenario.request}]


def _row(domain: Domain, scenario: Scenario, model: str, run_index: int) -> Json:
    tools = to_provider(domain.tools, "chat")
    request = {"model": model, "messages": starting_messages(scenario), "tools": tools, "stream": False}
    place = {"domain": domain.name, "scenario": scenario.name, "run_index": run_index}
    provenance = {"source": "rightcall", "created_at_unix_ms": unix_ms(), **place}
    return {
        "schema_version": PROMPT,
        **place,
        "user_request": scenario.request,
        "request": request,
        "available_tools": available_tools(domain.tools),
        "metadata": {"private_agent_log": True, "public_export_allowed": False, "provenance": provenance},
    }


def write_prompts(
    domains: Iterable[Domain], output: str | Path, *, model: str = MODEL, runs: int = 1, force: bool = False
) -> int:
    """Writes what a capture would send, a row for each run of each scenario, and sends nothing. Gives how many rows
    there are.

    - `domains`: those of `find_domains`.
    - `output`: the file.
    - `model`: the name that the requests have.
    - `runs`: how often each scenario is run.
    - `force`: as in `export`.
    """
    with WholeFile(output, PROMPTS, force=force) as out:
        for row in prompts(domains, model=model, runs=runs):
            out.write(row)
    return out.rows
