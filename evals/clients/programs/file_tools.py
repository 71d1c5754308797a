"""Shared by the programs in this folder: the two tools of the task, the server's address and the prompt."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

BASE, MODEL, TASK = os.environ["BASE"], os.environ["MODEL"], os.environ["TASK"]
HOW = sys.argv[1] if len(sys.argv) > 1 else ""
MOST_TURNS = 6


def read_file(path: str) -> str:
    """Read a file.

    Args:
        path: the file.
    """
    return Path(path).read_text("utf-8")


def edit_file(path: str, old: str, new: str) -> str:
    """Change a word in a file.

    Args:
        path: the file.
        old: the current word.
        new: the new word.
    """
    text = Path(path).read_text("utf-8")
    Path(path).write_text(text.replace(old, new), "utf-8")
    return "changed"


TOOLS: dict[str, Any] = {"read_file": read_file, "edit_file": edit_file}


def schema(*names: str) -> dict[str, Any]:
    properties = {name: {"type": "string"} for name in names}
    return {"type": "object", "properties": properties, "required": list(names), "additionalProperties": False}


SCHEMAS = {"read_file": schema("path"), "edit_file": schema("path", "old", "new")}


def run(name: str, arguments: str | dict[str, Any]) -> str:
    """Run a tool as most scripts do: the arguments are JSON and the tool exists."""
    parsed_arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    return str(TOOLS[name](**parsed_arguments))
