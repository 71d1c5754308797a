"""Tools that a dialect knows by their type alone, as the functions that stand for them.

    {"type": "bash_20250124", "name": "bash"}   ->   a function bash(command, restart)
    {"type": "local_shell"}                     ->   a function local_shell(command, ...), whose call goes back as
                                                     {"type": "local_shell_call", "action": {"type": "exec", ...}}

The model is offered a function; what the client gets is an item of the kind it expects.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rightcall.providers.sdk_view import obj, text
from rightcall.types import Json

_TEXT: Json = {"type": "string"}
_WHOLE: Json = {"type": "integer"}
_WORDS: Json = {"type": "array", "items": {"type": "string"}}
_POINT: Json = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}


def _object(properties: Json, *required: str) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


def _one_of(*words: str) -> Json:
    return {"type": "string", "enum": list(words)}


class KnownTool(msgspec.Struct, frozen=True):
    """One of them: what the type begins with, the function's usual name and what it takes. `call_type` is the type of
    the item that a call of it is, empty where that is a plain call; the arguments stand under `holder` of that item,
    beside what is `fixed` there, and `beside` are further fields of the item."""

    begins: str
    name: str
    description: str
    parameters: Json
    call_type: str = ""
    holder: str = ""
    fixed: Json = {}
    beside: Json = {}


_EDITOR = _object(
    {
        "command": _one_of("view", "create", "str_replace", "insert", "undo_edit"),
        "path": {**_TEXT, "description": "Absolute path of a file or folder"},
        "file_text": {**_TEXT, "description": "create: the whole text of the file"},
        "old_str": {**_TEXT, "description": "str_replace: the text to replace, which must be there exactly once"},
        "new_str": {**_TEXT, "description": "str_replace, insert: the new text"},
        "insert_line": {**_WHOLE, "description": "insert: the line after which the text goes; 0 is the beginning"},
        "insert_text": {**_TEXT, "description": "insert: the text to insert"},
        "view_range": {**_POINT, "description": "view: the first and the last line, -1 for the end"},
    },
    *("command", "path"),
)
_SCREEN = _object(
    {
        "action": _one_of(
            *("key", "hold_key", "type", "cursor_position", "mouse_move", "left_mouse_down", "left_mouse_up"),
            *("left_click", "left_click_drag", "right_click", "middle_click", "double_click", "triple_click"),
            *("scroll", "wait", "screenshot", "zoom"),
        ),
        "coordinate": {**_POINT, "description": "x and y, in pixels from the upper left"},
        "start_coordinate": _POINT,
        "text": {**_TEXT, "description": "What to type, or the key to press"},
        "scroll_direction": _one_of("up", "down", "left", "right"),
        "scroll_amount": _WHOLE,
        "duration": {"type": "number"},
        "region": {"type": "array", "items": {"type": "integer"}},
    },
    "action",
)
_MEMORY = _object(
    {
        "command": _one_of("view", "create", "str_replace", "insert", "delete", "rename"),
        **dict.fromkeys(("path", "file_text", "old_str", "new_str", "insert_text", "old_path", "new_path"), _TEXT),
        "insert_line": _WHOLE,
        "view_range": _POINT,
    },
    "command",
)
_CLICK = _object(
    {
        "type": _one_of(
            *("click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait"),
        ),
        **dict.fromkeys(("x", "y", "scroll_x", "scroll_y"), _WHOLE),
        "button": _one_of("left", "right", "wheel", "back", "forward"),
        "text": _TEXT,
        "keys": _WORDS,
        "path": {"type": "array", "items": _object({"x": _WHOLE, "y": _WHOLE}, "x", "y")},
    },
    "type",
)
_PATCH = _object(
    {
        "type": _one_of("create_file", "update_file", "delete_file"),
        "path": {**_TEXT, "description": "The file, below the working folder"},
        "diff": {**_TEXT, "description": "What changes, as a V4A diff; of a new file all of it. None to delete"},
    },
    *("type", "path"),
)
_LOCAL_SHELL = _object(
    {
        "command": {**_WORDS, "description": "The program and its arguments"},
        "working_directory": _TEXT,
        "timeout_ms": _WHOLE,
        "env": {"type": "object", "additionalProperties": _TEXT},
        "user": _TEXT,
    },
    "command",
)
_SHELL = _object(
    {
        "commands": {**_WORDS, "description": "Commands for the shell, which run one beside the other"},
        "timeout_ms": _WHOLE,
        "max_output_length": _WHOLE,
    },
    "commands",
)
_BASH = _object({"command": {**_TEXT, "description": "The command to run"}, "restart": {"type": "boolean"}}, "command")

KNOWN: tuple[KnownTool, ...] = (
    KnownTool("bash_", "bash", "Runs a command in a shell that stays open between calls.", _BASH),
    KnownTool("text_editor_", "str_replace_based_edit_tool", "Views, creates and edits text files.", _EDITOR),
    KnownTool("computer_20", "computer", "Uses the mouse, the keyboard and the screen of a computer.", _SCREEN),
    KnownTool("memory_", "memory", "Reads and writes files of notes that outlast the conversation.", _MEMORY),
    KnownTool(
        "local_shell",
        "local_shell",
        "Runs a program on the user's machine.",
        _LOCAL_SHELL,
        call_type="local_shell_call",
        holder="action",
        fixed={"type": "exec"},
    ),
    KnownTool("shell", "shell", "Runs shell commands.", _SHELL, call_type="shell_call", holder="action"),
    KnownTool(
        "apply_patch",
        "apply_patch",
        "Creates, changes or deletes one file.",
        _PATCH,
        call_type="apply_patch_call",
        holder="operation",
    ),
    KnownTool(
        "computer",
        "computer",
        "Uses the mouse, the keyboard and the screen of a computer.",
        _CLICK,
        call_type="computer_call",
        holder="action",
        beside={"pending_safety_checks": []},
    ),
)
# The client looks for tools itself; its declaration says what the search takes.
TOOL_SEARCH = KnownTool(
    "tool_search",
    "tool_search",
    "Searches for further tools, which can be called from then on.",
    _object({"query": _TEXT, "limit": {"type": "number"}}, "query"),
    call_type="tool_search_call",
    holder="arguments",
    beside={"execution": "client"},
)
_BY_CALL: dict[str, KnownTool] = {tool.call_type: tool for tool in (*KNOWN, TOOL_SEARCH) if tool.call_type}


def known_tool(kind: str) -> KnownTool | None:
    """The tool that this type means. An exact type goes before one that only begins so."""
    exact = next((tool for tool in KNOWN if tool.begins == kind), None)
    return exact or next((tool for tool in KNOWN if kind.startswith(tool.begins)), None)


def call_item(call_type: str, arguments: Json) -> Json:
    """The fields of the item that a call of such a tool is, beside its `type`, `id`, `call_id` and `status`."""
    known = _BY_CALL.get(call_type)
    if known is None:
        return {"arguments": arguments}
    return {known.holder: {**known.fixed, **arguments}, **known.beside}


def item_call(item: Json) -> tuple[str, Json] | None:
    """The usual name and the arguments of such a call; None for an item that is none."""
    known = _BY_CALL.get(text(item.get("type")))
    if known is None:
        return None
    held = obj(item.get(known.holder)) or {}
    return known.name, {key: value for key, value in held.items() if key not in known.fixed}


def is_call(kind: str) -> bool:
    return kind in _BY_CALL


def screen_size(entry: Json) -> str:
    """What a computer tool says of its screen."""
    sizes: list[Any] = [entry.get(f"display_{side}_px", entry.get(f"display_{side}")) for side in ("width", "height")]
    return f" The screen has {sizes[0]} x {sizes[1]} pixels." if all(type(each) is int for each in sizes) else ""
