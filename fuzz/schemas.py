"""Pass unusual tools to every function that uses tools: with an accepted tool, none may raise.

    python fuzz/schemas.py --seconds 300          # add --seed n to repeat a run

Each kind of failure is printed once, with the tools that caused it.
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


class Findings:
    """The failures, one of each kind."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self.checked = self.accepted = 0

    def check_tools(self, schemas: list[Json], format: str, arguments: Json) -> None:
        self.checked += 1
        description = f"{schemas!r}, format={format!r}, arguments={arguments!r}"
        toolsets: list[Any] = []
        if not self.run_guarded("declare", lambda: toolsets.append(tools_of(schemas)), description):
            return
        self.accepted += bool(len(toolsets[0]))
        try:
            for what, use in uses(toolsets[0], format, arguments):
                self.run_guarded(what, use, description)
        except Exception as error:  # noqa: BLE001 - an exception of `uses` itself is a finding, too
            self.report("uses", error, description)

    def run_guarded(self, what: str, use: Callable[[], object], description: str) -> bool:
        start = time.process_time()
        try:
            use()
        except Exception as error:  # noqa: BLE001 - every exception is reported
            self.report(what, error, description)
            return False
        if time.process_time() - start > SLOW:
            self.kinds.setdefault(f"{what}: slow", f"{what} took {time.process_time() - start:.1f} s\n{description}")
        return True

    def report(self, what: str, error: Exception, description: str) -> None:
        last = traceback.extract_tb(error.__traceback__)[-1]
        kind = f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno} in {last.name}"
        self.kinds.setdefault(kind, f"{what}: {error!r:.300}\n{description}")


def search(seconds: float, start: int) -> Findings:
    findings = Findings()
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
        def check_example(schemas: list[Json], format: str, arguments: Json) -> None:
            if time.monotonic() < end:
                findings.check_tools(schemas, format, arguments)

        check_example()
        at += 1
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    start = random.randrange(2**32) if options.seed is None else options.seed
    findings = search(options.seconds, start)
    for kind, description in findings.kinds.items():
        print(f"== {kind}\n{description}\n")
    counts = f"{findings.checked} toolsets, {findings.accepted} accepted, {len(findings.kinds)} kinds of failure"
    print(f"seed {start}: {counts}")
    return 1 if findings.kinds else 0


if __name__ == "__main__":
    sys.exit(main())
