"""A disk of its own for a command: small, and gone with it.

    subprocess.run([*on_small_disk(folder), sys.executable, "tests/support/starved.py", str(folder), "1"])

A tmpfs over the folder, in a name space of mounts that only the command sees. The kernel may not allow it: then the
command has the folder as it is, and what it does about full disks is up to it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_SMALL = 64 << 20


def on_small_disk(folder: Path) -> list[str]:
    """What to put before a command, so that `folder` is a disk of 64 MB for it; nothing where that is not allowed."""
    mount = f'mount -t tmpfs -o size={_SMALL} tmpfs "$0" && exec "$@"'
    before = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(folder)]
    if shutil.which("unshare") is None or subprocess.run([*before, "true"], capture_output=True).returncode:
        return []
    return before


def is_small_disk(folder: Path) -> bool:
    """Is this such a disk? One that is larger is nobody's to fill."""
    disk = os.statvfs(folder)
    return disk.f_blocks * disk.f_frsize <= _SMALL


def page_size(folder: Path) -> int:
    return os.statvfs(folder).f_frsize


def leave_room(folder: Path, pages: int) -> Path:
    """Fills the disk that `folder` is on, but for so many `pages`, with one file. Removing that makes room again."""
    ballast = folder / "ballast"
    disk = os.statvfs(folder)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, (disk.f_bavail - pages) * disk.f_frsize)
    return ballast
