"""What becomes of a command whose output cannot be written: a full disk is one line, a closed pipe none.

Whoever closed the pipe, as `head` does, has what was wanted: the exit code is that of a program that SIGPIPE ends.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

CLOSED = 141  # 128 and the number of SIGPIPE, as shells count
_CURES = {errno.ENOSPC: "make room there", errno.EDQUOT: "make room there", errno.EFBIG: "see `ulimit -f`"}


@contextmanager
def output_failures() -> Iterator[None]:
    """Ends the program where standard output cannot be written."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _write_nowhere()
        raise SystemExit(CLOSED) from None
    except OSError as error:
        if error.errno not in (*_CURES, errno.EIO):
            raise
        _write_nowhere()
        cure = _CURES.get(error.errno or 0, "look at the device")
        print(f"rightcall: cannot write to standard output: {error.strerror}; {cure}", file=sys.stderr)
        raise SystemExit(1) from None


def _write_nowhere() -> None:
    """Or the interpreter would try to write the rest when it ends, and complain."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # a stream that is no file
        pass
