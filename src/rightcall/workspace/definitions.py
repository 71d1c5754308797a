"""The definitions of the five tools as models receive them. The list is constant, so prompt caches stay valid."""

from __future__ import annotations

from typing import Any

from rightcall.types import Tool

READ_FILE = "read_file"
WRITE_FILE = "write_file"
EDIT_FILE = "edit_file"
LIST_DIR = "list_dir"
BASH = "bash"
NAMES = (READ_FILE, WRITE_FILE, EDIT_FILE, LIST_DIR, BASH)

_PATH = {"type": "string", "description": "Absolute path, or one relative to the workspace."}


def _schema(required: tuple[str, ...], **properties: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these properties and no others; `required` are the names of those that
    must be there."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_TOOLS = (
    Tool(
        name=READ_FILE,
        description="Returns the text of a text file, or the lines asked for. Long files come in pieces: the last line "
        "of the answer then says how to go on.",
        parameters=_schema(
            ("path",),
            path=_PATH,
            line={"type": "integer", "minimum": 1, "description": "First line to return, counted from 1."},
            limit={"type": "integer", "minimum": 1, "description": "Most lines to return."},
        ),
        read_only=True,
    ),
    Tool(
        name=WRITE_FILE,
        description="Replaces the whole contents of a file. Makes the file, and the folders above it.",
        parameters=_schema(
            ("path", "content"), path=_PATH, content={"type": "string", "description": "The full new contents."}
        ),
    ),
    Tool(
        name=EDIT_FILE,
        description="Replaces one exact piece of text in a file. Fails if it is not there, or there more than once. "
        "For several edits make several calls.",
        parameters=_schema(
            ("path", "old_text", "new_text"),
            path=_PATH,
            old_text={"type": "string", "description": "The text to replace, exactly as in the file, and unique."},
            new_text={"type": "string", "description": "The replacement."},
        ),
    ),
    Tool(
        name=LIST_DIR,
        description="Lists a folder: one entry a line, f for a file, d for a folder, l for a link, then the name.",
        parameters=_schema(("path",), path=_PATH),
        read_only=True,
    ),
    Tool(
        name=BASH,
        description="Runs a shell command with `sh -c`. Returns how it ended, then what it wrote, standard "
        "output and standard error together.",
        parameters=_schema(
            ("command",),
            command={"type": "string", "description": "The command."},
            cwd={"type": "string", "description": "Folder to run it in; the workspace by default."},
        ),
    ),
)


def all_tools() -> list[Tool]:
    """Return the definitions of the five tools, without functions; the tools of a `Workspace` have them."""
    return list(_TOOLS)
