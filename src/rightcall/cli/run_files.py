"""Where runs are kept: one file each, in a folder for the workspace that they were made in.

The folder is no part of the workspace, so that an agent neither reads nor commits what it did before.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from rightcall.cli.inputs import refuse

_LAST = "last"


def runs_folder(workspace: str) -> Path:
    """Where the runs in this folder are: RIGHTCALL_RUNS, or the platform's place for what programs remember."""
    real = os.path.realpath(workspace)
    name = re.sub(r"[^A-Za-z0-9_-]", "_", os.path.basename(real))[:40] or "root"
    return _base() / f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"


def _base() -> Path:
    if own := os.environ.get("RIGHTCALL_RUNS"):
        return Path(own)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "rightcall" / "runs"
    xdg = os.environ.get("XDG_STATE_HOME", "")
    return (Path(xdg) if os.path.isabs(xdg) else Path.home() / ".local" / "state") / "rightcall" / "runs"


def new_run(workspace: str) -> Path:
    """A file that is not there yet. Their names are in the order in which they were made."""
    return runs_folder(workspace) / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}.jsonl"


def last_run(workspace: str) -> Path:
    """The newest run in this folder; ends in exit code 2 where there is none."""
    found = sorted(runs_folder(workspace).glob("*.jsonl"))
    if not found:
        refuse(f"there is no earlier run in {workspace!r}; name its file with --journal FILE")
    return found[-1]


def run_named(name: str, workspace: str) -> Path:
    """The run in this file, or the newest one for `last`."""
    if name == _LAST and not os.path.exists(name):
        return last_run(workspace)
    if not os.path.exists(name):
        refuse(f"there is no file {name!r}; `last` is the newest run in the folder")
    return Path(name)
