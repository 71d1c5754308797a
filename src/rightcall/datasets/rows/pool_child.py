"""A worker of the local engine: takes the work, then one item after the other, until its input ends."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress

from rightcall.datasets.rows.frames import FrameReader, framed
from rightcall.storage.draft import write_all


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.dup(1)
    os.dup2(2, 1)  # what somebody prints does not get among the results
    frames = FrameReader()
    work: Callable[[bytes], bytes] | None = None
    with suppress(BrokenPipeError):  # nobody waits any more
        while data := os.read(0, 1 << 20):
            for kind, frame in frames.add(data):
                if kind == b"W":
                    work = pickle.loads(frame)  # noqa: S301 - our own bytes
                elif work is not None:
                    write_all(out, _answer(work, frame))
    sys.stderr.flush()
    os._exit(0)


def _answer(work: Callable[[bytes], bytes], item: bytes) -> bytes:
    try:
        return framed(b"R", work(item))
    except Exception as error:  # noqa: BLE001 - the edge of a process: the parent raises it
        return framed(b"E", packed_error(error))


def packed_error(error: Exception) -> bytes:
    """What the work raised, on its way to the parent."""
    told = "".join(traceback.format_exception(error))
    try:
        return pickle.dumps((error, told))
    except Exception:  # noqa: BLE001 - what cannot travel is told in words
        return pickle.dumps((RuntimeError(f"{type(error).__name__}: {error}"), told))
