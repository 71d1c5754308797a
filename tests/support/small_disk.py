"""A small disk for one command, which disappears with the command.

    subprocess.run([*on_small_disk(folder), sys.executable, "tests/support/starved.py", str(folder), "1"])

It is a tmpfs over the folder, in a mount namespace of the command. If the kernel does not allow it, the command gets
the folder unchanged and must handle the missing disk.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_SMALL = 64 << 20


def on_small_disk(folder: Path) -> list[str]:
    """Return a command prefix that makes `folder` a disk of 64 MB; an empty list if that is not allowed."""
    mount = f'mount -t tmpfs -o size={_SMALL} tmpfs "$0" && exec "$@"'
    prefix = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(folder)]
    if shutil.which("unshare") is None or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        return []
    return prefix


def is_small_disk(folder: Path) -> bool:
    """Return whether this is such a disk. A larger disk must not be filled."""
    disk = os.statvfs(folder)
    return disk.f_blocks * disk.f_frsize <= _SMALL


def page_size(folder: Path) -> int:
    return os.statvfs(folder).f_frsize


def leave_room(folder: Path, pages: int) -> Path:
    """Fill the disk of `folder` with one file, except for `pages` pages. Remove the file to free the disk."""
    ballast = folder / "ballast"
    disk = os.statvfs(folder)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, (disk.f_bavail - pages) * disk.f_frsize)
    return ballast
