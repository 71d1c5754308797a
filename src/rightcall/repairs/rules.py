"""The table of repair rules, loaded from `rules.toml`: name, kind, effect, evidence and an example of each rule.

`docs/repair.md` is generated from this table. The tests run every example and compare the names with the source.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any, Literal

import msgspec


class RepairRule(msgspec.Struct, frozen=True):
    """A repair rule with an example: a call with the argument text `sent` is repaired to `arguments`, with a receipt of
    this name and kind. A rule may have several of these.

    - `what`: what the rule repairs. `evidence`: public threads that show the damage in the output of models or servers.
    - `tool`, `of`: the tool name that was sent and the declared name.
    - `beside`: what was sent next to the name and the arguments.
    - `format`: if given, `sent` is a whole reply in this format.
    """

    name: str
    kind: Literal["exact", "schema", "guess"]
    what: str
    evidence: str
    sent: str
    arguments: dict[str, Any]
    tool: str = "get_weather"
    of: str = "get_weather"
    beside: dict[str, Any] = {}
    format: str = ""


_TABLES = tomllib.loads((files("rightcall.repairs") / "rules.toml").read_text("utf-8"))
RULES: tuple[RepairRule, ...] = tuple(msgspec.convert(_TABLES["rule"], list[RepairRule]))
