"""Five coding tools for one folder: read_file, write_file, edit_file, list_dir, bash.

    space = Workspace("project")
    results = await dispatch(reply, space.tools, hooks=[space.approval(ask)])

`space.approval(ask)` asks the user before anything is written or run, an `EditLog` records what was written, and `undo`
restores it. The four file tools are confined to the root; `bash` is confined only by a sandbox (`space.sandbox`).
"""

from rightcall.workspace.allow_rules import AllowRule
from rightcall.workspace.approval import Approval, Ask, Denial, Permission
from rightcall.workspace.definitions import BASH, EDIT_FILE, LIST_DIR, NAMES, READ_FILE, WRITE_FILE, all_tools
from rightcall.workspace.file_edits import EditLog, FileEdit, undo
from rightcall.workspace.space import Workspace

__all__ = [
    "AllowRule",
    "Approval",
    "Ask",
    "BASH",
    "Denial",
    "EDIT_FILE",
    "EditLog",
    "FileEdit",
    "LIST_DIR",
    "NAMES",
    "Permission",
    "READ_FILE",
    "WRITE_FILE",
    "Workspace",
    "all_tools",
    "undo",
]
