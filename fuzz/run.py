"""Parse hostile text with every format.    fuzz/run.py [--seconds 60] [--seed 1] [--format hermes]

There are six kinds of cases: mutated renderings, hostile shapes, noise, texts from hypothesis, the examples of each
law, and the mutated corpus for every function (`targets.py`: parse, read, stream, repair, check, grammar, dispatch).
For each case the laws and limits must hold, and for large shapes the steps must grow linearly (`superlinear.py`
searches more for that). If `atheris` is installed, it searches for a quarter of the time, guided by coverage.

The first failure is reduced and printed as Python or as a line for `tests/corpus/regressions/`; the exit status is 1.
Every run draws a new seed and prints it. With --keep-going the search continues, and one failure of each kind is
printed. --target repair tests only that function.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE)]

from mutate import mutated_sample, noise, small_stress  # noqa: E402
from reduce import reduce_text  # noqa: E402
from targets import TARGETS  # noqa: E402

import rightcall  # noqa: E402
from rightcall import Toolset  # noqa: E402
from rightcall.formats import FORMATS  # noqa: E402
from rightcall.parsing.options import Limits  # noqa: E402
from rightcall.testing.laws import LAWS, Case, How, Violation, check_case, line  # noqa: E402
from support import hostile, steps  # noqa: E402
from support.hostile import TOOLS, BrokenLaw, check_laws  # noqa: E402

CASE_SECONDS = 20.0
BIG = 1_000_000


class Hang(Exception):
    """A single case took too much CPU time."""


class Setting(NamedTuple):
    """All options of one case except its text, so that a smaller text can be tested with the same options."""

    format: str
    tools: Toolset | None
    how: How
    seed: int

    def cuts(self, text: str) -> list[list[int]]:
        rng = random.Random(self.seed)
        some = sorted({rng.randint(0, len(text)) for _ in range(rng.randint(1, 8))})
        return [list(range(1, len(text))), some, list(hostile.every(rng.choice((2, 3, 4, 7)), text)), []]


class Failure(NamedTuple):
    law: str
    detail: str
    repro: str


def main() -> int:
    options = parse_arguments()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    rng = random.Random(seed)
    names = [rightcall.formats.find(options.format).name] if options.format else list(FORMATS)
    signal.signal(signal.SIGPROF, _hang)
    print(f"seed {seed}, {len(names)} formats, {options.seconds:g} s")
    guided = has_atheris()
    deadline = time.monotonic() + options.seconds * (0.75 if guided else 1.0)
    counts = Counter[str]()
    failures = search(names, rng, deadline, counts, only=options.target, keep_going=options.keep_going)
    if guided and not failures:
        failures += run_atheris(options.seconds * 0.25, options.format)
    for failure in failures:
        print(f"\n{failure.law}\n{failure.detail}\n\n{failure.repro}")
    print(f"\n{counts.total()} cases, {len(failures) or 'no'} law{'s' * (len(failures) > 1)} broken, seed {seed}")
    print("  " + ", ".join([f"{kind} {count}" for kind, count in sorted(counts.items())]))
    return 1 if failures else 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Parse hostile text with every format.")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument("--seed", type=int, help="the same seed gives the same texts")
    parser.add_argument("--format", help="only this format")
    parser.add_argument("--target", choices=list(TARGETS), help="only this function")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first failure")
    return parser.parse_args()


def search(
    names: list[str],
    rng: random.Random,
    deadline: float,
    counts: Counter[str],
    *,
    only: str | None = None,
    keep_going: bool = False,
) -> list[Failure]:
    failures_found: dict[str, Failure] = {}
    while time.monotonic() < deadline and (keep_going or not failures_found):
        format = rng.choice(names)
        kind, failure = (only, run_target(only, rng)) if only else run_case(format, rng)
        if failure is not None:
            key = f"{kind} {failure.law} {type(FORMATS[format].bodies[0]).__name__ if kind not in TARGETS else ''}"
            failures_found[key] = min(failures_found.get(key, failure), failure, key=lambda f: len(f.repro))
        counts[kind] += 1
        print_progress(counts.total(), deadline)
    return [failures_found[kind] for kind in sorted(failures_found)]


def run_case(format: str, rng: random.Random) -> tuple[str, Failure | None]:
    """Run one case, mostly a small one: large ones take a second each."""
    turn = rng.random()
    if turn < 0.35:
        return "texts", check_any_text(format, rng)
    if turn < 0.5:
        return "laws", check_law_examples(format, rng)
    if turn < 0.98:
        target = rng.choice(list(TARGETS))
        return target, run_target(target, rng)
    if turn < 0.99:
        return "growth", check_growth(format, rng)
    if turn < 0.992:
        return "large", check_big_text(format, rng)
    return "hypothesis", check_hypothesis_texts(format, rng)


def run_target(name: str, rng: random.Random) -> Failure | None:
    """Run one case of one function, and reduce its text if it fails."""
    case = TARGETS[name](rng)
    wrong = run_guarded(lambda: case.check(case.text))
    if wrong is None:
        return None
    law = wrong[0]
    small = reduce_text(case.text, lambda text: (run_guarded(lambda: case.check(text)) or ("", ""))[0] == law)
    detail = (run_guarded(lambda: case.check(small)) or wrong)[1]
    return Failure(f"{name}: {law}", detail, case.repro(small))


def print_progress(count: int, deadline: float) -> None:
    if sys.stderr.isatty() and count % 50 == 0:
        print(f"\r{count} cases, {max(0, deadline - time.monotonic()):.0f} s left  ", end="", file=sys.stderr)


# -- the laws ----------------------------------------------------------------------------------------------------------


def check_law_examples(format: str, rng: random.Random) -> Failure | None:
    """Check a few examples of a law, with a new seed."""
    law = rng.choice(list(LAWS))
    for case in LAWS[law].cases(FORMATS[format], rng.randrange(10**9), 4):
        failure = check_law_case(format, case)
        if failure is not None:
            return failure
    return None


def check_law_case(format: str, case: Case) -> Failure | None:
    failures_found: list[Violation] = []
    wrong = run_guarded(lambda: failures_found.extend(check_case(FORMATS[format], case)))
    if wrong is None and failures_found:
        wrong = failures_found[0].law, failures_found[0].what
    return Failure(*wrong, line(case, format, tools="laws")) if wrong is not None else None


def check_any_text(format: str, rng: random.Random) -> Failure | None:
    make = rng.choice((mutated_sample, mutated_sample, mutated_sample, small_stress, noise))
    wire = (
        rng.choice(list(FORMATS)) if rng.random() < 0.2 else format
    )  # a model may write another format than the declared one
    text = make(wire, rng)
    return check_text(text, setting(format, rng))


def setting(format: str, rng: random.Random) -> Setting:
    few = Limits(
        reply=rng.choice((40, 200, 10**6)),
        call=rng.choice((20, 10**6)),
        depth=rng.choice((1, 3, 200)),
        calls=rng.choice((1, 2, 256)),
    )
    return Setting(
        format if rng.random() < 0.98 else "auto",
        TOOLS if rng.random() < 0.8 else None,
        How(
            rng.choice(("auto", "auto", "open", "off")),  # type: ignore[arg-type]
            rng.choice(("off", "safe", "lenient")),  # type: ignore[arg-type]
            limits=None if rng.random() < 0.8 else few,
            finish=None if rng.random() < 0.9 else "length",
            reasoning_calls="safe" if rng.random() < 0.9 else "never",
        ),
        rng.randrange(10**9),
    )


def check_text(text: str, how: Setting) -> Failure | None:
    failures_found = violation(text, how)
    if failures_found is None:
        return None
    law = failures_found[0]
    small = reduce_text(text, lambda smaller: (violation(smaller, how) or ("", ""))[0] == law)
    detail = (violation(small, how) or failures_found)[1]
    tools = "TOOLS" if how.tools is not None else "None"
    cuts = f"[list(range(1, len(text))), {how.cuts(small)[1]}]"
    repro = f"text = {small!r}\ncheck_laws(text, {how.format!r}, {cuts}, tools={tools}, how={how.how!r})"
    return Failure(law, detail, repro)


def violation(text: str, how: Setting) -> tuple[str, str] | None:
    """Return the law that this text violates, and how."""
    return run_guarded(lambda: check_laws(text, how.format, how.cuts(text), tools=how.tools, how=how.how))


def run_guarded(run: Callable[[], object]) -> tuple[str, str] | None:
    """Run the function, and return what went wrong, whatever the kind of failure."""
    signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)
    try:
        run()
    except BrokenLaw as broken:
        return broken.law, str(broken)
    except Hang:
        return "hang", f"more than {CASE_SECONDS:g} CPU-seconds"
    except Exception as error:  # noqa: BLE001 - every exception is reported as a failure
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno} in {last.name}"
        return f"exception {type(error).__name__} at {where}", repr(error)[:500]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def _hang(number: int, frame: FrameType | None) -> None:
    raise Hang


def check_hypothesis_texts(format: str, rng: random.Random) -> Failure | None:
    """Check texts from hypothesis."""
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    piece = st.sampled_from(
        [*hostile.markers(format), '{"name": "write", "arguments": {', "{", "}", '"', "write", "\n"]
    )
    texts = st.lists(st.one_of(piece, st.text(max_size=8)), max_size=12).map("".join)
    how = setting(format, rng)
    failures_found: list[Failure] = []

    @seed(how.seed)
    @settings(
        max_examples=60,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(texts)
    def try_one(text: str) -> None:
        if not failures_found:
            failure = check_text(text, how)
            failures_found.extend([failure] if failure else [])

    try_one()
    return failures_found[0] if failures_found else None


# -- cost --------------------------------------------------------------------------------------------------------------


def check_growth(format: str, rng: random.Random) -> Failure | None:
    """Return a failure if the steps for a shape grow faster than its size."""
    place = rng.choice(list(hostile.places(format)))
    stress = rng.choice(list(hostile.stresses(format)))
    mode = steps.ReadingMode(format, rng.choice((0, 1, 4)), rng.random() < 0.5)
    failures_found: list[float] = []
    wrong = run_guarded(
        lambda: failures_found.append(
            steps.growth(lambda size: hostile.hostile(format, place, stress, size), mode, size=500)
        )
    )
    how = f"growth(lambda size: hostile({format!r}, {place!r}, {stress!r}, size), {mode!r}, size=500)"
    if wrong is not None:
        return Failure(*wrong, how)
    if failures_found[0] > steps.MOST:
        return Failure("linear", f"four times the text takes {failures_found[0]:.1f} times the steps", how)
    return None


def check_big_text(format: str, rng: random.Random) -> Failure | None:
    """Parse very large texts: no exception, no hang."""
    own = hostile.markers(format) or ("[",)
    near = rng.choice(own).strip()[:-1] or "<"
    text = rng.choice(("[" * 100_000, "{" * 100_000, "<" * BIG, near * (BIG // len(near)), '{"a":"' + "a" * BIG))
    before, _ = rng.choice(list(hostile.places(format).values()))
    wrong = run_guarded(lambda: hostile.stream(before + text, format, rng.choice((100, 4096, BIG * 2))))
    return Failure(*wrong, f"{format}: {before!r} + {text[:40]!r}... ({len(text)} characters)") if wrong else None


# -- atheris -----------------------------------------------------------------------------------------------------------


def has_atheris() -> bool:
    if importlib.util.find_spec("atheris") is not None:
        return True
    print("atheris is not installed: no coverage-guided search (pip install atheris)")
    return False


def run_atheris(seconds: float, format: str | None) -> list[Failure]:
    command = [sys.executable, str(HERE / "guided.py"), f"-max_total_time={max(1, round(seconds))}"]
    process = subprocess.run([*command, *([f"--format={format}"] if format else [])], capture_output=True, text=True)
    if process.returncode == 0:
        return []
    return [Failure("found by atheris", (process.stdout + process.stderr)[-3000:], " ".join(command))]


if __name__ == "__main__":
    sys.exit(main())
