"""`diagnose`: the doctor for a program or a test.

diagnose("http://127.0.0.1:8080", model="qwen3").check()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import msgspec

from rightcall.backends.address import check_api
from rightcall.backends.base import LoopThread
from rightcall.doctor.diagnosis import Diagnosis
from rightcall.doctor.examination import ExamSettings, Watch, examine
from rightcall.doctor.judging import PATIENCE


def diagnose(
    url: str,
    *,
    model: str = "",
    apis: Sequence[str] = (),
    n: int = 1,
    max_requests: int = 500,
    timeout: float = 60.0,
    patience: float = PATIENCE,
    concurrency: int = 4,
    api_key_env: str | None = None,
    through: bool = False,
) -> Diagnosis:
    """Asks a server what clients ask, in every dialect it speaks, and says what is wrong with its answers. Raises
    `CallerError` for an address or a key that cannot be used, and nothing for what the server does: `check` of what it
    returns raises an AssertionError that lists the faults.

    - `url`: where the server is, with or without `/v1`.
    - `model`: the model to ask; the first that the server lists, if none is named.
    - `apis`: the dialects to try (`chat`, `responses`, `messages`, `ollama`, `gemini`, `completions`); all if empty.
    - `n`: how often each question is asked.
    - `max_requests`: no more requests than these are sent.
    - `timeout`: seconds for one request.
    - `patience`: seconds of silence after which clients give a stream up.
    - `concurrency`: requests at the same time.
    - `api_key_env`: the name of the variable that holds the key; None: OPENAI_API_KEY and the like.
    - `through`: ask through the proxy too; what it found is `Diagnosis.through`.
    """
    settings = ExamSettings(
        model=model,
        apis=tuple([check_api(api) for api in apis]),
        n=n,
        max_requests=max_requests,
        seconds=timeout,
        patience=patience,
        concurrency=concurrency,
        api_key_env=api_key_env,
    )
    with LoopThread() as loop:
        return loop.run(diagnosed(url, settings, through=through))


def _unwatched(what: str) -> AbstractContextManager[Watch | None]:
    return nullcontext()


async def diagnosed(
    url: str,
    settings: ExamSettings,
    *,
    through: bool,
    watching: Callable[[str], AbstractContextManager[Watch | None]] = _unwatched,
) -> Diagnosis:
    """The same for a program with an event loop. `watching` is entered for each of both rounds, with what it is called,
    and gives what is told how far it is."""
    with watching("asking") as watch:
        found = await examine(url, settings, watch)
    if not through:
        return found
    from rightcall.doctor.through import examine_through

    with watching("through the proxy") as watch:
        return msgspec.structs.replace(found, through=await examine_through(found, settings, watch))
