"""Throws hostile text at every format.    fuzz/run.py [--seconds 60] [--seed 1] [--format hermes]

Six kinds of case in turn: spoiled renderings, shapes made to hurt, noise, what hypothesis comes up with, what each law
makes for itself, and the corpus, spoiled, for every function there is (`targets.py`: parse, read, stream, repair,
check, grammar, dispatch). For each the laws must hold and limits be honoured, and for large shapes the steps must grow
with the size and no faster (`superlinear.py` looks for more of that). Where `atheris` is installed, it looks on for a
quarter of the time, led by what the code does.

The first failure is made as small as it will get and printed as Python or as a line for `tests/corpus/regressions/`;
the exit status is 1. Every run draws a new seed, and prints it. With --keep-going the
search goes on, and one failure of each kind is printed. --target repair tries only that function.
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

from mutate import mutated, noise, small_stress  # noqa: E402
from reduce import reduced  # noqa: E402
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
    """Everything about one case but its text, so that a smaller text can be tried under the same."""

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
    asked = arguments()
    seed = asked.seed if asked.seed is not None else random.SystemRandom().randrange(10**6)
    rng = random.Random(seed)
    names = [rightcall.formats.find(asked.format).name] if asked.format else list(FORMATS)
    signal.signal(signal.SIGPROF, _hang)
    print(f"seed {seed}, {len(names)} formats, {asked.seconds:g} s")
    guided = has_atheris()
    deadline = time.monotonic() + asked.seconds * (0.75 if guided else 1.0)
    tried = Counter[str]()
    failures = search(names, rng, deadline, tried, only=asked.target, keep_going=asked.keep_going)
    if guided and not failures:
        failures += coverage_guided(asked.seconds * 0.25, asked.format)
    for failure in failures:
        print(f"\n{failure.law}\n{failure.detail}\n\n{failure.repro}")
    print(f"\n{tried.total()} cases, {len(failures) or 'no'} law{'s' * (len(failures) > 1)} broken, seed {seed}")
    print("  " + ", ".join([f"{kind} {count}" for kind, count in sorted(tried.items())]))
    return 1 if failures else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Throws hostile text at every format.")
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
    tried: Counter[str],
    *,
    only: str | None = None,
    keep_going: bool = False,
) -> list[Failure]:
    found: dict[str, Failure] = {}
    while time.monotonic() < deadline and (keep_going or not found):
        format = rng.choice(names)
        kind, failure = (only, on_target(only, rng)) if only else attack(format, rng)
        if failure is not None:
            key = f"{kind} {failure.law} {type(FORMATS[format].bodies[0]).__name__ if kind not in TARGETS else ''}"
            found[key] = min(found.get(key, failure), failure, key=lambda f: len(f.repro))
        tried[kind] += 1
        progress(tried.total(), deadline)
    return [found[kind] for kind in sorted(found)]


def attack(format: str, rng: random.Random) -> tuple[str, Failure | None]:
    """One case, mostly small: large ones take a second each."""
    turn = rng.random()
    if turn < 0.35:
        return "texts", any_text(format, rng)
    if turn < 0.5:
        return "laws", own_examples(format, rng)
    if turn < 0.98:
        target = rng.choice(list(TARGETS))
        return target, on_target(target, rng)
    if turn < 0.99:
        return "growth", growth(format, rng)
    if turn < 0.992:
        return "large", big(format, rng)
    return "hypothesis", by_hypothesis(format, rng)


def on_target(name: str, rng: random.Random) -> Failure | None:
    """One case of one function, made as small as it will get where it fails."""
    case = TARGETS[name](rng)
    wrong = guarded(lambda: case.judge(case.text))
    if wrong is None:
        return None
    law = wrong[0]
    small = reduced(case.text, lambda text: (guarded(lambda: case.judge(text)) or ("", ""))[0] == law)
    detail = (guarded(lambda: case.judge(small)) or wrong)[1]
    return Failure(f"{name}: {law}", detail, case.repro(small))


def progress(count: int, deadline: float) -> None:
    if sys.stderr.isatty() and count % 50 == 0:
        print(f"\r{count} cases, {max(0, deadline - time.monotonic()):.0f} s left  ", end="", file=sys.stderr)


# -- the laws ----------------------------------------------------------------------------------------------------------


def own_examples(format: str, rng: random.Random) -> Failure | None:
    """A few examples that a law makes for itself, from a seed that nobody tried before."""
    law = rng.choice(list(LAWS))
    for case in LAWS[law].cases(FORMATS[format], rng.randrange(10**9), 4):
        failure = judged_case(format, case)
        if failure is not None:
            return failure
    return None


def judged_case(format: str, case: Case) -> Failure | None:
    found: list[Violation] = []
    wrong = guarded(lambda: found.extend(check_case(FORMATS[format], case)))
    if wrong is None and found:
        wrong = found[0].law, found[0].what
    return Failure(*wrong, line(case, format, tools="laws")) if wrong is not None else None


def any_text(format: str, rng: random.Random) -> Failure | None:
    make = rng.choice((mutated, mutated, mutated, small_stress, noise))
    wire = rng.choice(list(FORMATS)) if rng.random() < 0.2 else format  # a model may write another than was said
    text = make(wire, rng)
    return judged(text, setting(format, rng))


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


def judged(text: str, how: Setting) -> Failure | None:
    found = violation(text, how)
    if found is None:
        return None
    law = found[0]
    small = reduced(text, lambda smaller: (violation(smaller, how) or ("", ""))[0] == law)
    detail = (violation(small, how) or found)[1]
    tools = "TOOLS" if how.tools is not None else "None"
    cuts = f"[list(range(1, len(text))), {how.cuts(small)[1]}]"
    repro = f"text = {small!r}\ncheck_laws(text, {how.format!r}, {cuts}, tools={tools}, how={how.how!r})"
    return Failure(law, detail, repro)


def violation(text: str, how: Setting) -> tuple[str, str] | None:
    """Which law this text breaks, and how."""
    return guarded(lambda: check_laws(text, how.format, how.cuts(text), tools=how.tools, how=how.how))


def guarded(run: Callable[[], object]) -> tuple[str, str] | None:
    """What goes wrong when this runs, however it goes wrong."""
    signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)
    try:
        run()
    except BrokenLaw as broken:
        return broken.law, str(broken)
    except Hang:
        return "hang", f"more than {CASE_SECONDS:g} CPU-seconds"
    except Exception as error:  # noqa: BLE001 - any exception at all is what this looks for; it is reported as a failure
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno} in {last.name}"
        return f"exception {type(error).__name__} at {where}", repr(error)[:500]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def _hang(number: int, frame: FrameType | None) -> None:
    raise Hang


def by_hypothesis(format: str, rng: random.Random) -> Failure | None:
    """Texts from hypothesis, which looks for its own kind of odd."""
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis import strategies as st

    piece = st.sampled_from(
        [*hostile.markers(format), '{"name": "write", "arguments": {', "{", "}", '"', "write", "\n"]
    )
    texts = st.lists(st.one_of(piece, st.text(max_size=8)), max_size=12).map("".join)
    how = setting(format, rng)
    found: list[Failure] = []

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
        if not found:
            failure = judged(text, how)
            found.extend([failure] if failure else [])

    try_one()
    return found[0] if found else None


# -- cost --------------------------------------------------------------------------------------------------------------


def growth(format: str, rng: random.Random) -> Failure | None:
    """Do the steps that a shape takes grow faster than its size?"""
    place = rng.choice(list(hostile.places(format)))
    stress = rng.choice(list(hostile.stresses(format)))
    way = steps.ReadingMode(format, rng.choice((0, 1, 4)), rng.random() < 0.5)
    found: list[float] = []
    wrong = guarded(
        lambda: found.append(steps.growth(lambda size: hostile.hostile(format, place, stress, size), way, size=500))
    )
    how = f"growth(lambda size: hostile({format!r}, {place!r}, {stress!r}, size), {way!r}, size=500)"
    if wrong is not None:
        return Failure(*wrong, how)
    if found[0] > steps.MOST:
        return Failure("linear", f"four times the text takes {found[0]:.1f} times the steps", how)
    return None


def big(format: str, rng: random.Random) -> Failure | None:
    """Very large texts, whole: no exception, no hang."""
    own = hostile.markers(format) or ("[",)
    near = rng.choice(own).strip()[:-1] or "<"
    text = rng.choice(("[" * 100_000, "{" * 100_000, "<" * BIG, near * (BIG // len(near)), '{"a":"' + "a" * BIG))
    before, _ = rng.choice(list(hostile.places(format).values()))
    wrong = guarded(lambda: hostile.stream(before + text, format, rng.choice((100, 4096, BIG * 2))))
    return Failure(*wrong, f"{format}: {before!r} + {text[:40]!r}... ({len(text)} characters)") if wrong else None


# -- atheris -----------------------------------------------------------------------------------------------------------


def has_atheris() -> bool:
    if importlib.util.find_spec("atheris") is not None:
        return True
    print("atheris is not installed: no coverage-guided search (pip install atheris)")
    return False


def coverage_guided(seconds: float, format: str | None) -> list[Failure]:
    command = [sys.executable, str(HERE / "guided.py"), f"-max_total_time={max(1, round(seconds))}"]
    done = subprocess.run([*command, *([f"--format={format}"] if format else [])], capture_output=True, text=True)
    if done.returncode == 0:
        return []
    return [Failure("found by atheris", (done.stdout + done.stderr)[-3000:], " ".join(command))]


if __name__ == "__main__":
    sys.exit(main())
