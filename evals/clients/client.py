"""Clients as values: what is installed, how it is started, and which tools read and edit a file.

Texts may contain $BASE (the address of the server, without /v1), $MODEL, $WORK (the folder of the task), $HOME (the
home folder of the client), $FILE (the file of the task), $TASK (the prompt), $OLD and $NEW (the word before and after
the change), $ANSWER (the text that ends the task) and $PROGRAMS (the folder of the small programs that use libraries).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Registry = Literal["npm", "pip"]


@dataclass(frozen=True)
class Package:
    """Packages of a registry. The names are installed together in `folder`; the version of the first is reported."""

    registry: Registry
    folder: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class ToolUse:
    """A call that the scripted model makes to one of the client's own tools."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Client:
    """One client.

    `before` is run first, if a client must be configured with the address of its server. `files` are written before
    every run. `answers` is the call that ends the task, if a client does not accept text as the end. `skips` are
    servers that it is not run against: their name, used as the model's name, makes the client offer other tools.
    """

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


def fill_placeholders(text: str, places: Mapping[str, str]) -> str:
    """Replace the placeholders in `text`. Longer names first, so that none matches the beginning of another."""
    for name in sorted(places, key=len, reverse=True):
        text = text.replace(f"${name}", places[name])
    return text


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1)
