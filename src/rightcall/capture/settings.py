"""What a capture is to do, and the scenarios that follow from it, in the order they are run.

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
    """Everything that decides what is asked and how it is read, and how patient the run is.

    - `models`: the models to ask, one after the other.
    - `runs`: how often each scenario is run.
    - `max_turns`: answers in one scenario.
    - `max_scenario_errors`: how many scenarios may fail before the run ends.
    - `mode`: how tools are offered, as in `Backend`.
    - `guard`: "parse" reads, repairs and checks answers; "none" takes calls as the server gives them.
    - `choice`: "auto" or "required".
    - `examples`: how many solved scenarios of the same domain go before the request.
    - `temperature`, `max_tokens`: as servers take them.
    - `seed`: each run of a scenario has its own: this, and the number of the run.
    - `strict`: a bad call is a failed scenario.
    - `forge_compat`: send a result's status as `_forge`, which other servers may refuse.
    - `concurrency`: scenarios at the same time.
    - `system`: what the model is told before the request; unless said, that it is tested with stub tools.

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
        if not self.models or not all(model.strip() for model in self.models):
            raise CallerError("no model is named; say which with --model")
        for name, least in (("runs", 1), ("max_turns", 1), ("max_scenario_errors", 0), ("concurrency", 1)):
            if getattr(self, name) < least:
                raise CallerError(f"{name} is {getattr(self, name)}; it must be at least {least}")
        for name, known in (("mode", MODES), ("guard", GUARDS)):
            if getattr(self, name) not in known:
                raise CallerError(f"{name}={getattr(self, name)!r} is not one of {', '.join(known)}")


# What may change between a run and its resumption: nothing that the rows depend on.
_PATIENCE = ("max_scenario_errors", "concurrency")


def identity(settings: Settings, domains: Sequence[Domain]) -> Json:
    """What two runs must have in common for one to go on with the other, as JSON data."""
    said: Json = msgspec.json.decode(msgspec.json.encode(settings))
    kept = {name: value for name, value in said.items() if name not in _PATIENCE}
    return {**kept, "domains": {domain.name: _digest(domain) for domain in domains}}


def _digest(domain: Domain) -> str:
    """Of the tools and scenarios."""
    shown: list[Any] = [
        [[tool.name, tool.description, tool.parameters] for tool in domain.tools],
        msgspec.to_builtins(domain.scenarios),
    ]
    return hashlib.sha256(json.dumps(shown, sort_keys=True, default=str).encode()).hexdigest()[:16]


class Task(msgspec.Struct, frozen=True):
    """One scenario to run: the `number`-th of all, from 1."""

    number: int
    model: str
    run: int
    domain: Domain
    scenario: Scenario

    @property
    def key(self) -> str:
        """The same task in another run of the same settings."""
        return f"{self.model}\n{self.run}\n{self.domain.name}\n{self.scenario.name}"


def tasks(settings: Settings, domains: Sequence[Domain]) -> Iterator[Task]:
    number = 0
    for model in dict.fromkeys(settings.models):
        for run in range(settings.runs):
            for domain in domains:
                for scenario in domain.scenarios:
                    number += 1
                    yield Task(number, model, run, domain, scenario)


def count(settings: Settings, domains: Sequence[Domain]) -> int:
    return len(dict.fromkeys(settings.models)) * settings.runs * sum(len(domain.scenarios) for domain in domains)
