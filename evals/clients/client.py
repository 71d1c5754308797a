"""A client is a value: what is installed, how it is started, and which of its tools read a file and edit it.

Texts may hold $BASE (the address of the server, without /v1), $MODEL, $WORK (the folder of the task), $HOME (the
client's own), $FILE (the file of the task), $TASK (what it is told), $OLD and $NEW (the word that is to be changed),
$ANSWER (what ends the task) and $PROGRAMS (where the small programs of libraries are).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Registry = Literal["npm", "pip"]


@dataclass(frozen=True)
class Package:
    """What a registry has. The names are installed together in `folder`; the version of the first counts."""

    registry: Registry
    folder: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class ToolUse:
    """A call that the scripted model makes: a tool of the client's own."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Client:
    """`before` is run first, where a client must be told where its server is; `files` are written before every run.
    `answers` is the call that ends the task, where a client does not take words for an end. `skips` are servers that
    it is not run before: the name of the model, which is theirs, makes it offer other tools."""

    name: str
    api: str
    package: Package
    command: tuple[str, ...]
    reads: ToolUse
    edits: ToolUse
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    answers: ToolUse | None = None
    skips: tuple[str, ...] = ()


def npm(folder: str, *names: str) -> Package:
    return Package("npm", folder, names)


def pip(folder: str, *names: str) -> Package:
    return Package("pip", folder, names)


def filled(text: str, places: Mapping[str, str]) -> str:
    """`text` with its places taken; longer names first, so that none is read as the beginning of another."""
    for name in sorted(places, key=len, reverse=True):
        text = text.replace(f"${name}", places[name])
    return text


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1)
