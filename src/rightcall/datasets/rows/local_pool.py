"""The engine of this machine: processes that take one item after the other.

    LocalEngine(jobs=4).map(work, items)

A worker is started by its own command line and knows nothing of the program that started it: a script without a
`__main__` guard, threads and open sockets do no harm. Items and results travel as bytes through its standard input and
output. A worker that was killed is started anew, and what it had not finished is done again; an item that takes three
workers with it raises `WorkerLost`. Workers end when their input does, so a parent that is killed leaves none.
"""

from __future__ import annotations

import json
import os
import pickle
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice

from rightcall.datasets.rows.engines import InlineEngine
from rightcall.datasets.rows.frames import FrameReader, framed
from rightcall.errors import CallerError, WorkerLost

AHEAD = 2  # items that a worker has at a time, so that it never waits for the next
WAITING = 4  # results per worker that may wait for one before them
ALONE = 0.1  # seconds of work before processes are started for the rest
LIVES = 3  # workers that an item may take with it
_PROGRAM = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from rightcall.datasets.rows.pool_child import main; main()"
)


def cores() -> int:
    """How many of them this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalEngine:
    """`jobs` processes of this machine. Where that is not said: one per core, if the work takes long enough to be worth
    starting them. A single item, or a single job, is worked on in this process."""

    def __init__(self, jobs: int | None = None) -> None:
        if jobs is not None and jobs < 1:
            raise CallerError(f"jobs={jobs} is no number of processes; give 1 or more")
        self.jobs = jobs or cores()
        self._alone = ALONE if jobs is None else 0.0

    def map(self, work: Callable[[bytes], bytes], items: Iterable[bytes]) -> Iterator[bytes]:
        source = iter(items)
        if self.jobs == 1:
            return InlineEngine().map(work, source)
        return self._both(work, source)

    def _both(self, work: Callable[[bytes], bytes], source: Iterator[bytes]) -> Iterator[bytes]:
        until = time.monotonic() + self._alone
        first = list(islice(source, 2))
        while first and (len(first) == 1 or time.monotonic() < until):
            yield work(first.pop(0))
            first += islice(source, 1)
        if first:
            yield from _Pool(work, self.jobs).run(chain(first, source))


class _Worker:
    """A process, what it has been given and has not answered, and the bytes on their way to it and from it."""

    def __init__(self, hello: bytes) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            process_group=0,  # Ctrl-C is the parent's to act on
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.input, self.output = self.process.stdin.fileno(), self.process.stdout.fileno()
        for handle in (self.input, self.output):
            os.set_blocking(handle, False)
            _widen(handle)
        self.given: deque[int] = deque()
        self.going: deque[memoryview] = deque([memoryview(hello)])
        self.coming = FrameReader()

    def send(self) -> bool:
        """Writes what the pipe takes. Is there more?"""
        try:
            while self.going:
                written = os.write(self.input, self.going[0])
                if written == len(self.going[0]):
                    self.going.popleft()
                else:
                    self.going[0] = self.going[0][written:]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self.going.clear()  # it has ended; its output says so
        return False

    def end(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.kill()
        self.process.wait()


class _Pool:
    """The workers of one run. Everything is done by one thread, woken when a pipe can be read or written."""

    def __init__(self, work: Callable[[bytes], bytes], jobs: int) -> None:
        self._hello = framed(b"W", pickle.dumps(work))
        self._jobs = jobs
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._items: dict[int, bytes] = {}  # given out or to be, and not answered
        self._results: dict[int, bytes] = {}  # answered, and not yet passed on
        self._again: deque[int] = deque()  # of workers that were lost
        self._lost: dict[int, int] = {}
        self._next_in = self._next_out = 0
        self._source: Iterator[bytes] = iter(())
        self._is_dry = False

    def run(self, items: Iterator[bytes]) -> Iterator[bytes]:
        self._source = items
        try:
            while True:
                while self._next_out in self._results:
                    yield self._results.pop(self._next_out)
                    self._next_out += 1
                self._hand_out()
                if self._is_dry and not self._items and not self._results:
                    return
                if self._next_out not in self._results:
                    self._wait()
        finally:
            for worker in self._workers:
                worker.end()
            self._selector.close()

    # -- giving --------------------------------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        """Every worker gets what it can take; one is started when there is work for it."""
        while True:
            idle = min(self._workers, key=lambda worker: len(worker.given), default=None)
            may_start = len(self._workers) < self._jobs
            if (idle is None or idle.given) and may_start:
                idle = None
            elif idle is None or len(idle.given) >= AHEAD:
                return
            number = self._take()
            if number is None:
                return
            worker = idle or self._start()
            worker.given.append(number)
            worker.going.append(memoryview(framed(b"I", self._items[number])))
            self._flush(worker)

    def _take(self) -> int | None:
        """The number of the next item to be worked on, if there is one and the results do not pile up."""
        if self._again:
            return self._again.popleft()
        if self._is_dry or self._next_in - self._next_out >= self._jobs * (AHEAD + WAITING):
            return None
        try:
            item = next(self._source)
        except StopIteration:
            self._is_dry = True
            return None
        self._items[self._next_in] = item
        self._next_in += 1
        return self._next_in - 1

    def _start(self) -> _Worker:
        worker = _Worker(self._hello)
        self._workers.append(worker)
        self._selector.register(worker.output, selectors.EVENT_READ, worker)
        return worker

    def _flush(self, worker: _Worker) -> None:
        """Writes, and asks to be woken for the rest."""
        is_watched = worker.input in self._selector.get_map()
        if worker.send() != is_watched:
            if is_watched:
                self._selector.unregister(worker.input)
            else:
                self._selector.register(worker.input, selectors.EVENT_WRITE, worker)

    # -- taking --------------------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        for key, events in self._selector.select():
            worker: _Worker = key.data
            if worker not in self._workers:
                continue  # lost in this very round
            if events & selectors.EVENT_WRITE:
                self._flush(worker)
            else:
                self._receive(worker)

    def _receive(self, worker: _Worker) -> None:
        data = os.read(worker.output, 1 << 20)
        if not data:
            self._replace(worker)
        for kind, frame in worker.coming.add(data):
            if kind == b"E":
                raise raised_error(frame)
            number = worker.given.popleft()
            del self._items[number]
            self._results[number] = frame

    def _replace(self, worker: _Worker) -> None:
        """A worker is gone: what it had goes to others, the first of it first. It may have been that item's fault."""
        for handle in (worker.input, worker.output):
            if handle in self._selector.get_map():
                self._selector.unregister(handle)
        self._workers.remove(worker)
        worker.end()
        code = worker.process.returncode
        if worker.given:
            number = worker.given[0]
            self._lost[number] = self._lost.get(number, 0) + 1
            if self._lost[number] >= LIVES:
                raise WorkerLost(_lost(number, code))
        self._again.extendleft(reversed(worker.given))


def _lost(number: int, code: int) -> str:
    how = f"signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exit code {code}"
    return (
        f"part {number + 1} ended {LIVES} workers, the last by {how}; --jobs 1 runs it in one process, and "
        "--resume goes on from here"
    )


def raised_error(frame: bytes) -> BaseException:
    """What the work raised. It was pickled by a process of ours."""
    error, told = pickle.loads(frame)  # noqa: S301 - our own bytes
    error.add_note(f"in a worker:\n{told}")
    raised: BaseException = error
    return raised


def _widen(pipe: int) -> None:
    """A pipe that holds as much as it may: fewer turns for the same bytes."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # it works as it is
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)
