"""The pytest fixture `rightcall_cassette`: a model in tests, recorded once and replayed from then on.

    def test_asks_for_the_weather(rightcall_cassette):
        backend = rightcall_cassette(Backend("http://127.0.0.1:8080", model="qwen3"))
        assert backend.complete_sync(request).calls[0].name == "get_weather"

`pytest --rightcall-record` talks to the backend and writes `cassettes/<module>.<test>.jsonl` beside the test; without
it nothing leaves the machine. The module is loaded by every run of pytest, so it imports next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rightcall.backends.base import BaseBackend


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--rightcall-record` to pytest."""
    parser.getgroup("rightcall").addoption(
        "--rightcall-record",
        action="store_true",
        help="Ask the models and record their answers anew, instead of replaying them.",
    )


@pytest.fixture
def rightcall_cassette(request: pytest.FixtureRequest) -> Callable[..., BaseBackend]:
    """Return a function that takes a backend and returns one that replays this test's cassette, or with
    `--rightcall-record` asks the backend and records a new cassette.

    The function fails the test if there is no cassette to replay, or no backend to record. Its `name` replaces the name
    of the cassette, and `strict` is that of `ReplayBackend`.
    """
    from rightcall.backends.recording import Recorder, ReplayBackend

    is_recording = bool(request.config.getoption("--rightcall-record"))

    def use(backend: BaseBackend | None = None, *, name: str = "", strict: bool = True) -> BaseBackend:
        """Return a backend that replays the test's cassette, or that asks `backend` and records; fail the test without
        the cassette or the backend that this needs."""
        own = name or re.sub(r"[^\w.-]+", "-", f"{request.path.stem}.{request.node.name}").strip("-")
        path = request.path.parent / "cassettes" / f"{own}.jsonl"
        if is_recording:
            if backend is None:
                pytest.fail("there is nothing to record: call rightcall_cassette with a backend", pytrace=False)
            path.parent.mkdir(exist_ok=True)
            return Recorder(backend, path, fresh=True)
        if not path.exists():
            again = f"pytest --rightcall-record '{request.node.nodeid}'"
            pytest.fail(f"there is no cassette {path}: record it with {again}", pytrace=False)
        return ReplayBackend(path, strict=strict)

    return use
