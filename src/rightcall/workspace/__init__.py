"""Five coding tools behind one root: read_file, write_file, edit_file, list_dir, bash.

    space = Workspace("project")
    results = await dispatch(reply, space.tools, hooks=[space.approval(ask)])

The four file tools are confined to the root; `bash` is not, unless a sandbox is in force (`space.sandbox`).
"""

from rightcall.workspace.approval import Approval, Ask, Permission
from rightcall.workspace.definitions import BASH, EDIT_FILE, LIST_DIR, NAMES, READ_FILE, WRITE_FILE, all_tools
from rightcall.workspace.space import Workspace

__all__ = [
    "Approval",
    "Ask",
    "BASH",
    "EDIT_FILE",
    "LIST_DIR",
    "NAMES",
    "Permission",
    "READ_FILE",
    "WRITE_FILE",
    "Workspace",
    "all_tools",
]
