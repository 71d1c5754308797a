"""Throws odd tools at everything that is done with tools: nothing may raise, whatever was accepted.

    python fuzz/schemas.py --seconds 300          # and --seed n for the same ones again

Each kind of failure is shown once, with the tools that brought it about.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE)]

from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from rightcall.formats import FORMATS  # noqa: E402
from rightcall.types import Json  # noqa: E402
from support.odd_schemas import VALUES, parameters, tools_of, uses  # noqa: E402

SLOW = 5.0  # CPU-seconds, for one use of tools as small as these


class Found:
    """What went wrong, each kind once."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self.tried = self.accepted = 0

    def try_one(self, schemas: list[Json], format: str, arguments: Json) -> None:
        self.tried += 1
        about = f"{schemas!r}, format={format!r}, arguments={arguments!r}"
        made: list[Any] = []
        if not self.guarded("declare", lambda: made.append(tools_of(schemas)), about):
            return
        self.accepted += bool(len(made[0]))
        try:
            for what, use in uses(made[0], format, arguments):
                self.guarded(what, use, about)
        except Exception as error:  # noqa: BLE001 - what makes the uses themselves fail is a finding like any other
            self.report("uses", error, about)

    def guarded(self, what: str, use: Callable[[], object], about: str) -> bool:
        start = time.process_time()
        try:
            use()
        except Exception as error:  # noqa: BLE001 - any exception at all is what this looks for; it is reported
            self.report(what, error, about)
            return False
        if time.process_time() - start > SLOW:
            self.kinds.setdefault(f"{what}: slow", f"{what} took {time.process_time() - start:.1f} s\n{about}")
        return True

    def report(self, what: str, error: Exception, about: str) -> None:
        last = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno} in {last.name}"
        self.kinds.setdefault(kind, f"{what}: {error!r:.300}\n{about}")


def search(seconds: float, start: int) -> Found:
    found = Found()
    end = time.monotonic() + seconds
    at = start
    while time.monotonic() < end:

        @seed(at)
        @settings(
            max_examples=50,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(
            st.lists(parameters(), min_size=1, max_size=2),
            st.sampled_from(sorted(FORMATS)),
            st.dictionaries(st.sampled_from(["a", "b", "é", "zz"]), VALUES, max_size=3),
        )
        def try_one(schemas: list[Json], format: str, arguments: Json) -> None:
            if time.monotonic() < end:
                found.try_one(schemas, format, arguments)

        try_one()
        at += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None)
    asked = parser.parse_args()
    start = random.randrange(2**32) if asked.seed is None else asked.seed
    found = search(asked.seconds, start)
    for kind, about in found.kinds.items():
        print(f"== {kind}\n{about}\n")
    print(f"seed {start}: {found.tried} toolsets, {found.accepted} accepted, {len(found.kinds)} kinds of failure")
    return 1 if found.kinds else 0


if __name__ == "__main__":
    sys.exit(main())
