"""The engine of a cluster: Ray Data, on the machines that `RAY_ADDRESS` names, or on this one.

    RayEngine(jobs=4).map(work, items)

Items go out in datasets of a bounded size, results come back in their order. Ray does again what a worker that was
killed had not finished. Workers read the sources themselves: on several machines these must lie where all of them can
reach them, and rightcall must be installed there.
"""

from __future__ import annotations

import logging
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from rightcall.datasets.rows.local_pool import cores, raised_error
from rightcall.datasets.rows.pool_child import packed_error
from rightcall.errors import WorkerLost
from rightcall.extras import needs

WINDOW = 64_000_000  # bytes of items that are on their way at a time: ranges are small, lines are not
MOST = 20_000  # items of one dataset
LIVES = 8  # workers that an item may take with it, its machine's end among them
TOGETHER = 4  # items that one task works on


class RayEngine:
    """Ray Data with `jobs` workers at a time; as many as there are cores if that is not said.

    A cluster that runs already is used, and stays; one that is started for this is ended with it.
    """

    def __init__(self, jobs: int | None = None) -> None:
        needs("ray")
        self._jobs = jobs

    def map(self, work: Callable[[bytes], bytes], items: Iterable[bytes]) -> Iterator[bytes]:
        with _running(self._jobs):
            for window in _windows(items):
                yield from self._results(work, window)

    def _results(self, work: Callable[[bytes], bytes], window: list[bytes]) -> Iterator[bytes]:
        import ray.data
        from ray.exceptions import RayError

        blocks = -(-len(window) // TOGETHER)
        given = ray.data.from_items([{"item": item} for item in window], override_num_blocks=blocks)
        made = given.map_batches(
            _Task(work),
            batch_size=None,
            batch_format="pyarrow",
            concurrency=None if self._jobs is None else min(self._jobs, blocks),
            ray_remote_args_fn=_retried,
        )
        try:
            for row in made.iter_rows():
                if not row["ok"]:
                    raise raised_error(row["data"])
                yield row["data"]
        except RayError as error:
            told = " ".join(str(error).split())[:300]
            raise WorkerLost(f"Ray gave up on a part: {told}; --engine local runs it on this machine") from error


def _retried() -> dict[str, int]:
    return {"max_retries": LIVES}


class _Task:
    """What a worker runs: items in, results out, and what was raised as a value, so that it comes out as it went in."""

    def __init__(self, work: Callable[[bytes], bytes]) -> None:
        self._work = pickle.dumps(work)

    def __call__(self, batch: Any) -> Any:
        import pyarrow  # type: ignore[import-untyped]

        work = pickle.loads(self._work)  # noqa: S301 - our own bytes
        done = [_done(work, item) for item in batch.column("item").to_pylist()]
        data = pyarrow.array([each for _, each in done], pyarrow.large_binary())
        return pyarrow.table({"ok": [ok for ok, _ in done], "data": data})


def _done(work: Callable[[bytes], bytes], item: bytes) -> tuple[bool, bytes]:
    try:
        return True, work(item)
    except Exception as error:  # noqa: BLE001 - it is raised again where the results are read
        return False, packed_error(error)


def _windows(items: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Items in their order, as many together as memory allows."""
    source = iter(items)
    for first in source:
        window, size = [first], len(first)
        while size < WINDOW and len(window) < MOST and (more := list(islice(source, 1))):
            window += more
            size += len(more[0])
        yield window


@contextmanager
def _running(jobs: int | None) -> Iterator[None]:
    """A cluster: the one that is there, or one of this machine for as long as the block lasts."""
    import ray

    own = not ray.is_initialized()
    if own:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        _quiet()
        alone: dict[str, Any] = {"num_cpus": jobs or cores(), "include_dashboard": False}
        here = {} if os.environ.get("RAY_ADDRESS") else alone
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **here)
    try:
        _in_order()
        yield
    finally:
        if own:
            ray.shutdown()


def _in_order() -> None:
    from ray.data import DataContext

    context = DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    _quiet()


def _quiet() -> None:
    """Ray tells of every step; what goes wrong is raised."""
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
