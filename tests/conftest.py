"""How far hypothesis looks: a little, the same on every run; RIGHTCALL_EXAMPLES=1000 looks further, elsewhere. And what
several files of tests begin with."""

import asyncio
import gc
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from rightcall.backends.recording import Recorder
from support.format_sample import SWEEP
from support.loopback import ask, backend, chat, json_answer, serving

pytest.register_assert_rewrite("support.cuts", "support.replies")

for name in ("COLUMNS", "LINES"):  # the workers of pytest-xdist say that they have a terminal
    os.environ.pop(name, None)

# Tests parse with every format and with thousands of toolsets, so they compile the same expressions again and again.
re._MAXCACHE = 100_000  # type: ignore[attr-defined]

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
_MANY = int(os.environ.get("RIGHTCALL_EXAMPLES", "0"))
settings.register_profile("ci", max_examples=15, derandomize=True, deadline=None, suppress_health_check=_QUIET)
settings.register_profile("deep", max_examples=_MANY or 1000, deadline=None, suppress_health_check=_QUIET)
settings.load_profile("deep" if _MANY else "ci")


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    """A recording of one answer, "Hello!"."""
    path = tmp_path / "c.jsonl"

    async def record() -> None:
        async with serving(json_answer(chat("Hello!"))) as server:
            await Recorder(backend(server), path).complete(ask())

    asyncio.run(record())
    return path


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only a sweep runs."""
    left_out = [] if SWEEP else [item for item in items if item.get_closest_marker("sweep")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("sweep")]


gc.disable()  # until every test is known: they are millions of objects, and all of them stay


def pytest_collection_finish() -> None:
    """The garbage collector looks at what the tests make, and not again and again at the tests themselves."""
    gc.freeze()
    gc.enable()
