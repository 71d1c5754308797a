"""Engines: run work over items, in processes of this machine or on a Ray cluster.

    LocalEngine(jobs=4).map(work, items)

Work and items are bytes to an engine, so that any engine can carry any work to any machine. A worker of `LocalEngine`
is started by its own command line and does not import the program that started it: a script without a `__main__`
guard, threads and open sockets do no harm. Items and results travel through its standard input and output. A worker
that was killed is replaced and its unfinished items are done again; an item that ends three workers raises
`WorkerLost`. Workers end when their input ends, so a parent that is killed leaves none behind.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import selectors
import signal
import subprocess
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from struct import Struct
from typing import Any, Literal, Protocol

from rightcall.errors import CallerError, WorkerLost
from rightcall.extras import require_extra
from rightcall.storage.draft import write_all

EngineName = Literal["local", "ray"]
Work = Callable[[bytes], bytes]

QUEUED_ITEMS = 2  # items that a worker has at a time, so that it never waits for the next
WAITING_RESULTS = 4  # results per worker that may wait for an earlier one
INLINE_SECONDS = 0.1  # seconds of work in this process before others are started
LOCAL_LIVES = 3  # workers that an item may end
_PROGRAM = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[1]); "
    "from rightcall.datasets.rows.engines import run_engine_worker; run_engine_worker()"
)


class Engine(Protocol):
    """Runs work over items, in other processes or on other machines.

    - `work` can be pickled and gives the same result for the same item: an item is worked on again when its worker
      was killed.
    - `items` is read as results are taken, a bounded number ahead, so that memory stays flat.
    - Results come in the order of the items. What `work` raises is raised here.
    - Closing the iterator ends all workers.
    """

    def map(self, work: Work, items: Iterable[bytes]) -> Iterator[bytes]: ...


def make_engine(name: str = "local", jobs: int | None = None) -> Engine:
    """Return an engine with so many workers. Raise `CallerError` for an unknown name and for less than one worker,
    `MissingExtra` where Ray is not installed.

    - `name`: `local`, processes of this machine; `ray`, the cluster of `RAY_ADDRESS`, or Ray on this machine.
    - `jobs`: the number of workers; None: one per core.
    """
    if name == "local":
        return LocalEngine(jobs)
    if name != "ray":
        raise CallerError(f"no engine {name!r:.40}; there are local and ray")
    return RayEngine(jobs)


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class InlineEngine:
    """Runs work in this process."""

    def map(self, work: Work, items: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the result of `work` for each item, computed in this process."""
        return map(work, items)


class LocalEngine:
    """Runs work in `jobs` processes of this machine. Without `jobs`, one per core, started only if the work takes long
    enough to be worth it. A single item, or a single job, is worked on in this process. Raises `CallerError` for less
    than one job."""

    def __init__(self, jobs: int | None = None) -> None:
        if jobs is not None and jobs < 1:
            raise CallerError(f"jobs={jobs} is no number of processes; give 1 or more")
        self.jobs = jobs or count_cores()
        self._inline_seconds = INLINE_SECONDS if jobs is None else 0.0

    def map(self, work: Work, items: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the result of `work` for each item, in order, computed by worker processes or, for one job, in this
        process. Raises what `work` raises, and `WorkerLost` for an item that ends several workers."""
        source = iter(items)
        return InlineEngine().map(work, source) if self.jobs == 1 else self._map_in_pool(work, source)

    def _map_in_pool(self, work: Work, source: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the result of each item, in order. Items are worked on in this process for a moment, and a single item
        always; then worker processes are started for the others. Raises what the work raises, and `WorkerLost`."""
        until = time.monotonic() + self._inline_seconds
        first = list(islice(source, 2))
        while first and (len(first) == 1 or time.monotonic() < until):
            yield work(first.pop(0))
            first += islice(source, 1)
        if first:
            yield from _Pool(work, self.jobs).run(chain(first, source))


# -- messages between a parent and its workers -------------------------------------------------------------------------

_HEAD = Struct("<cQ")  # kind and length
_WORK, _ITEM, _RESULT, _ERROR = b"W", b"I", b"R", b"E"


def _pack_message(kind: bytes, data: bytes) -> bytes:
    """Return a message for a pipe: its kind, its length and its data."""
    return _HEAD.pack(kind, len(data)) + data


class _MessageReader:
    """Splits bytes that arrive in pieces of any size into messages."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size, self._wanted = 0, _HEAD.size

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the kind and the data of each message that is complete with this piece; keep the rest for the next
        one."""
        self._pieces.append(data)
        self._size += len(data)
        while self._size >= self._wanted:
            joined = b"".join(self._pieces)
            kind, size = _HEAD.unpack_from(joined)
            end = _HEAD.size + size
            if len(joined) < end:
                self._pieces, self._wanted = [joined], end
                return
            self._pieces, self._size, self._wanted = [joined[end:]], len(joined) - end, _HEAD.size
            yield kind, joined[_HEAD.size : end]


def _pack_error(error: Exception) -> bytes:
    """Return the pickled pair of an exception of the work and its traceback as text. An exception that cannot be
    pickled becomes a `RuntimeError` with its description."""
    trace = "".join(traceback.format_exception(error))
    try:
        return pickle.dumps((error, trace))
    except Exception:  # noqa: BLE001 - an exception that cannot be pickled is described
        return pickle.dumps((RuntimeError(f"{type(error).__name__}: {error}"), trace))


def _unpack_error(data: bytes) -> BaseException:
    """Return the exception that `_pack_error` encoded in a worker, with the worker's traceback as a note. It is not
    raised."""
    error, trace = pickle.loads(data)  # noqa: S301 - written by a process of ours
    error.add_note(f"in a worker:\n{trace}")
    raised: BaseException = error
    return raised


def run_engine_worker() -> None:
    """Run as a worker process: receive the work on standard input, then answer one item after the other on standard
    output, with a result or an error, until the input ends. Ctrl-C is ignored, and what the work prints goes to
    standard error. Exits the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.dup(1)
    os.dup2(2, 1)  # output that the work prints must not mix with the results
    messages = _MessageReader()
    work: Work | None = None
    with suppress(BrokenPipeError):  # the parent has ended
        while data := os.read(0, 1 << 20):
            for kind, message in messages.feed(data):
                if kind == _WORK:
                    work = pickle.loads(message)  # noqa: S301 - written by a process of ours
                elif work is not None:
                    try:
                        answer = _pack_message(_RESULT, work(message))
                    except Exception as error:  # noqa: BLE001 - the parent raises it
                        answer = _pack_message(_ERROR, _pack_error(error))
                    write_all(out, answer)
    sys.stderr.flush()
    os._exit(0)


# -- the processes of this machine -------------------------------------------------------------------------------------


class _Worker:
    """A process, which is started at once and gets `first_message` first, the items that it has not answered, and the
    bytes on their way to it and from it."""

    def __init__(self, first_message: bytes) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            process_group=0,  # Ctrl-C is for the parent to handle
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.input, self.output = self.process.stdin.fileno(), self.process.stdout.fileno()
        for handle in (self.input, self.output):
            os.set_blocking(handle, False)
            _enlarge_pipe(handle)
        self.items: deque[int] = deque()
        self.outgoing: deque[memoryview] = deque([memoryview(first_message)])
        self.incoming = _MessageReader()

    def send(self) -> bool:
        """Write queued bytes to the worker until its pipe is full. Return whether bytes remain; if the worker has
        ended, they are discarded and it is False."""
        try:
            while self.outgoing:
                written = os.write(self.input, self.outgoing[0])
                if written == len(self.outgoing[0]):
                    self.outgoing.popleft()
                else:
                    self.outgoing[0] = self.outgoing[0][written:]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self.outgoing.clear()  # the worker has ended; the end of its output is read later
        return False

    def end(self) -> None:
        """Close the pipes, kill the process and wait for its end."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.process.kill()
        self.process.wait()


class _Pool:
    """The workers of one run, at most `jobs` processes. `run` starts one when an item finds all others busy. One thread
    does everything; it is woken when a pipe can be read or written."""

    def __init__(self, work: Work, jobs: int) -> None:
        self._first_message = _pack_message(_WORK, pickle.dumps(work))
        self._jobs = jobs
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._items: dict[int, bytes] = {}  # taken from the source and not answered
        self._results: dict[int, bytes] = {}  # answered and not yielded
        self._retries: deque[int] = deque()  # items of workers that were lost
        self._losses: dict[int, int] = {}  # workers that each item has ended
        self._next_in = self._next_out = 0
        self._source: Iterator[bytes] = iter(())
        self._is_exhausted = False

    def run(self, items: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the result of each item, in order. Raises what the work raises, and `WorkerLost`. All workers are ended
        when the iterator ends or is closed."""
        self._source = items
        try:
            while True:
                while self._next_out in self._results:
                    yield self._results.pop(self._next_out)
                    self._next_out += 1
                self._distribute_items()
                if self._is_exhausted and not self._items and not self._results:
                    return
                if self._next_out not in self._results:
                    self._wait_for_workers()
        finally:
            for worker in self._workers:
                worker.end()
            self._selector.close()

    def _distribute_items(self) -> None:
        """Send items to the workers, the least busy first, until each has `QUEUED_ITEMS` or no item is available. A
        worker is started for an item when all are busy and there are fewer than `jobs`."""
        while True:
            idle = min(self._workers, key=lambda worker: len(worker.items), default=None)
            if (idle is None or idle.items) and len(self._workers) < self._jobs:
                idle = None
            elif idle is None or len(idle.items) >= QUEUED_ITEMS:
                return
            number = self._take_item()
            if number is None:
                return
            worker = idle or self._start_worker()
            worker.items.append(number)
            worker.outgoing.append(memoryview(_pack_message(_ITEM, self._items[number])))
            self._flush(worker)

    def _take_item(self) -> int | None:
        """Return the number of the next item, first of those that lost workers had; None if there is none, or too many
        results are waiting to be yielded."""
        if self._retries:
            return self._retries.popleft()
        if self._is_exhausted or self._next_in - self._next_out >= self._jobs * (QUEUED_ITEMS + WAITING_RESULTS):
            return None
        try:
            item = next(self._source)
        except StopIteration:
            self._is_exhausted = True
            return None
        self._items[self._next_in] = item
        self._next_in += 1
        return self._next_in - 1

    def _start_worker(self) -> _Worker:
        """Start a worker process, register its output with the selector, and return it."""
        worker = _Worker(self._first_message)
        self._workers.append(worker)
        self._selector.register(worker.output, selectors.EVENT_READ, worker)
        return worker

    def _flush(self, worker: _Worker) -> None:
        """Write queued bytes to a worker, and watch its input only while bytes remain."""
        is_watched = worker.input in self._selector.get_map()
        if worker.send() != is_watched:
            if is_watched:
                self._selector.unregister(worker.input)
            else:
                self._selector.register(worker.input, selectors.EVENT_WRITE, worker)

    def _wait_for_workers(self) -> None:
        """Block until a pipe of a worker can be read or written, then read results and write items. Raises what
        `_read_results` raises."""
        for key, events in self._selector.select():
            worker: _Worker = key.data
            if worker not in self._workers:
                continue  # removed by an earlier event of this round
            if events & selectors.EVENT_WRITE:
                self._flush(worker)
            else:
                self._read_results(worker)

    def _read_results(self, worker: _Worker) -> None:
        """Read from a worker and store each complete result. Raises the error that its work raised. At the end of the
        output the worker is removed and its items are retried; raises `WorkerLost` if an item has ended too many
        workers."""
        data = os.read(worker.output, 1 << 20)
        if not data:
            self._remove_worker(worker)
        for kind, message in worker.incoming.feed(data):
            if kind == _ERROR:
                raise _unpack_error(message)
            number = worker.items.popleft()
            del self._items[number]
            self._results[number] = message

    def _remove_worker(self, worker: _Worker) -> None:
        """Remove a worker that has ended, and queue its items again. Raises `WorkerLost` if its first item has now
        ended `LOCAL_LIVES` workers."""
        for handle in (worker.input, worker.output):
            if handle in self._selector.get_map():
                self._selector.unregister(handle)
        self._workers.remove(worker)
        worker.end()
        if worker.items:
            number, code = worker.items[0], worker.process.returncode
            self._losses[number] = self._losses.get(number, 0) + 1
            if self._losses[number] >= LOCAL_LIVES:
                cause = f"signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exit code {code}"
                raise WorkerLost(
                    f"part {number + 1} ended {LOCAL_LIVES} workers, the last by {cause}; --jobs 1 runs it in one "
                    "process, and --resume continues the run"
                )
        self._retries.extendleft(reversed(worker.items))


def _enlarge_pipe(pipe: int) -> None:
    """Set the buffer of a pipe to 1 MiB where the system allows it: this saves system calls."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):  # a small pipe works too
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1 << 20)


# -- Ray ---------------------------------------------------------------------------------------------------------------

WINDOW_BYTES = 64_000_000  # bytes of items in one Ray dataset: ranges are small, lines are not
WINDOW_ITEMS = 20_000  # items in one Ray dataset
RAY_LIVES = 8  # workers that an item may end, ends of whole machines included
TASK_ITEMS = 4  # items that one Ray task works on


class RayEngine:
    """Runs work by Ray Data with `jobs` workers at a time, on the machines that `RAY_ADDRESS` names or on this one.

    Items go out in datasets of a bounded size. Ray does again what a lost worker had not finished. A running cluster
    is used and left running; one that is started here is ended. Workers read the sources themselves: all machines must
    reach the files and have rightcall installed.
    """

    def __init__(self, jobs: int | None = None) -> None:
        require_extra("ray")
        self._jobs = jobs

    def map(self, work: Work, items: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the result of `work` for each item, in order, computed on the Ray cluster. Raises what `work` raises,
        and `WorkerLost` if Ray gives up."""
        with _ray_session(self._jobs):
            for window in _split_into_windows(items):
                yield from self._map_window(work, window)

    def _map_window(self, work: Work, window: list[bytes]) -> Iterator[bytes]:
        """Yield the results of one bounded list of items, in order. Raises what the work raised, and `WorkerLost` if
        Ray gives up."""
        import ray.data
        from ray.exceptions import RayError

        blocks = -(-len(window) // TASK_ITEMS)
        dataset = ray.data.from_items([{"item": item} for item in window], override_num_blocks=blocks)
        results = dataset.map_batches(
            _RayTask(work),
            batch_size=None,
            batch_format="pyarrow",
            concurrency=None if self._jobs is None else min(self._jobs, blocks),
            ray_remote_args_fn=_task_options,
        )
        try:
            for row in results.iter_rows():
                if not row["ok"]:
                    raise _unpack_error(row["data"])
                yield row["data"]
        except RayError as error:
            message = " ".join(str(error).split())[:300]
            raise WorkerLost(f"Ray gave up on a part: {message}; --engine local runs it on this machine") from error


def _task_options() -> dict[str, int]:
    """Return the options of a Ray task: how often it is retried after a lost worker."""
    return {"max_retries": RAY_LIVES}


class _RayTask:
    """Maps a table of items to a table of results. What the work raises is a result too, so that it arrives as it
    was raised."""

    def __init__(self, work: Work) -> None:
        self._work = pickle.dumps(work)

    def __call__(self, batch: Any) -> Any:
        """Return a table with the result of each item of the table `batch`, in the column `data`; where `ok` is false,
        it is the encoded exception that the work raised."""
        import pyarrow  # type: ignore[import-untyped]

        work: Work = pickle.loads(self._work)  # noqa: S301 - written by a process of ours
        results: list[tuple[bool, bytes]] = []
        for item in batch.column("item").to_pylist():
            try:
                results.append((True, work(item)))
            except Exception as error:  # noqa: BLE001 - raised again where the results are read
                results.append((False, _pack_error(error)))
        data = pyarrow.array([each for _, each in results], pyarrow.large_binary())
        return pyarrow.table({"ok": [ok for ok, _ in results], "data": data})


def _split_into_windows(items: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the items in order, in lists of at most `WINDOW_ITEMS`. A list ends with the item that fills it to
    `WINDOW_BYTES` or more; a large item is never split."""
    source = iter(items)
    for first in source:
        window, size = [first], len(first)
        while size < WINDOW_BYTES and len(window) < WINDOW_ITEMS and (more := list(islice(source, 1))):
            window += more
            size += len(more[0])
        yield window


@contextmanager
def _ray_session(jobs: int | None) -> Iterator[None]:
    """Use the Ray session of this process if there is one. Otherwise connect to the cluster of `RAY_ADDRESS`, or start
    Ray on this machine, and shut that down when the block ends."""
    import ray
    from ray.data import DataContext

    is_own = not ray.is_initialized()
    if is_own:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        _limit_ray_logging()
        local: dict[str, Any] = {"num_cpus": jobs or count_cores(), "include_dashboard": False}
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **({} if os.environ.get("RAY_ADDRESS") else local))
    try:
        context = DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        _limit_ray_logging()
        yield
    finally:
        if is_own:
            ray.shutdown()


def _limit_ray_logging() -> None:
    """Set the loggers `ray` and `ray.data` to ERROR, so that reports of progress are not logged."""
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
