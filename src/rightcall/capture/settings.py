"""The settings of a capture, and its tasks in the order in which they run.

Settings(models=("qwen3",), runs=2, guard="parse", seed=7)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from rightcall.backends.request import MODES, Mode
from rightcall.capture.domain import Domain, Scenario
from rightcall.errors import CallerError
from rightcall.types import Json

GuardName = Literal["none", "parse"]
GUARDS: tuple[GuardName, ...] = ("none", "parse")
SYSTEM = (
    "You are tested with stub tools. They are harmless, always answer the same, and change nothing. "
    "Call a tool only where the request needs one; otherwise answer in words."
)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of a capture, and its limits.

    - `models`: the names of the models, which are used one after the other.
    - `runs`: how often each scenario is run.
    - `max_turns`: the maximum number of answers in one scenario.
    - `max_scenario_errors`: how many scenarios may fail before the run ends.
    - `mode`: how tools are offered, as in `Backend`.
    - `guard`: "parse" finds, repairs and checks calls; "none" accepts calls only in the requested form.
    - `choice`: "auto" or "required".
    - `examples`: how many solved scenarios of the same domain precede the request.
    - `temperature`, `max_tokens`: as in a request.
    - `seed`: the seed of the first run of a scenario; each further run adds 1.
    - `strict`: a rejected call fails the scenario.
    - `forge_compat`: send the status of a result as `_forge`, which other servers may reject.
    - `concurrency`: how many scenarios run at the same time.
    - `system`: the system message; the default explains that the tools are stubs.

    Raises `CallerError`.
    """

    models: tuple[str, ...]
    runs: int = 1
    max_turns: int = 4
    max_scenario_errors: int = 25
    mode: Mode = "auto"
    guard: GuardName = "parse"
    choice: Literal["auto", "required"] = "auto"
    examples: int = 0
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    strict: bool = False
    forge_compat: bool = False
    concurrency: int = 1
    system: str = SYSTEM

    def __post_init__(self) -> None:
        """Raise `CallerError` for a missing model, a number below its minimum, and an unknown mode or guard."""
        if not self.models or not all(model.strip() for model in self.models):
            raise CallerError("no model: pass --model NAME")
        for name, least in (("runs", 1), ("max_turns", 1), ("max_scenario_errors", 0), ("concurrency", 1)):
            if getattr(self, name) < least:
                raise CallerError(f"{name} is {getattr(self, name)}; it must be at least {least}")
        for name, known in (("mode", MODES), ("guard", GUARDS)):
            if getattr(self, name) not in known:
                raise CallerError(f"{name}={getattr(self, name)!r} is not one of {', '.join(known)}")


# These may differ between a run and its continuation: no row depends on them.
_LIMITS = ("max_scenario_errors", "concurrency")


def capture_identity(settings: Settings, domains: Sequence[Domain]) -> Json:
    """Return, as JSON data, the settings and domains that two runs must share so that one can continue the other."""
    fields: Json = msgspec.json.decode(msgspec.json.encode(settings))
    compared = {name: value for name, value in fields.items() if name not in _LIMITS}
    return {**compared, "domains": {domain.name: _digest(domain) for domain in domains}}


def _digest(domain: Domain) -> str:
    """Return a hash, 16 hexadecimal digits, of the tools and scenarios of a domain. Answers of stubs do not change
    it."""
    content: list[Any] = [
        [[tool.name, tool.description, tool.parameters] for tool in domain.tools],
        msgspec.to_builtins(domain.scenarios),
    ]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]


class Task(msgspec.Struct, frozen=True):
    """One run of a scenario by a model; `number` counts the tasks from 1."""

    number: int
    model: str
    run: int
    domain: Domain
    scenario: Scenario

    @property
    def key(self) -> str:
        """The text that identifies the task: the same in every run with these settings and domains."""
        return f"{self.model}\n{self.run}\n{self.domain.name}\n{self.scenario.name}"


def tasks(settings: Settings, domains: Sequence[Domain]) -> Iterator[Task]:
    """Yield all tasks in the order in which they run: by model, run, domain and scenario. A model that is named twice
    is used once."""
    number = 0
    for model in dict.fromkeys(settings.models):
        for run in range(settings.runs):
            for domain in domains:
                for scenario in domain.scenarios:
                    number += 1
                    yield Task(number, model, run, domain, scenario)


def count_tasks(settings: Settings, domains: Sequence[Domain]) -> int:
    """Return the number of all tasks."""
    return len(dict.fromkeys(settings.models)) * settings.runs * sum(len(domain.scenarios) for domain in domains)
