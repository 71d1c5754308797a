"""The corpus: what real chat templates write, one file per format. See `corpus/README.md`."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rightcall import Reply, Toolset

CORPUS = Path(__file__).resolve().parent.parent / "corpus"


class ExpectedReply(NamedTuple):
    calls: list[tuple[str, Any]]
    content: str
    reasoning: str


class Sample(NamedTuple):
    id: str
    format: str
    shape: str
    tools: str
    templates: list[str]
    text: str
    expect: ExpectedReply
    lossy: bool  # the template lost data, so the text does not have all of the original


def files() -> list[Path]:
    return sorted([file for file in CORPUS.glob("*.jsonl") if file.stem != "prose"])


def read_samples(file: Path) -> list[Sample]:
    return [_sample(json.loads(line)) for line in file.read_text("utf-8").splitlines()]


@cache
def samples() -> tuple[Sample, ...]:
    return tuple(sample for file in files() for sample in read_samples(file))


def _sample(row: dict[str, Any]) -> Sample:
    expect = row["expect"]
    expected = ExpectedReply(
        [(call["name"], call["arguments"]) for call in expect["calls"]],
        (expect["content"] or "").strip(),
        (expect["reasoning"] or "").strip(),
    )
    fields = {key: row[key] for key in ("id", "format", "shape", "tools", "templates", "text")}
    return Sample(**fields, expect=expected, lossy="lossy" in row)


def outcome(reply: Reply) -> ExpectedReply:
    """Return the data of a reply in the form of a sample's `expect`, without outer white space."""
    return ExpectedReply(
        [(call.name, call.arguments) for call in reply.attempts], reply.content.strip(), reply.reasoning.strip()
    )


@cache
def toolset(key: str) -> Toolset:
    return Toolset(json.loads((CORPUS / "tools.json").read_text("utf-8"))[key])


@cache
def exceptions() -> dict[str, str]:
    """Return the samples that do not give the expected result, with the reasons."""
    found: dict[str, str] = tomllib.loads((CORPUS / "exceptions.toml").read_text("utf-8"))["exceptions"]
    return found
