"""Measure the calls of a small model over every stub domain, in three modes.    python evals/capture.py [--write]

Runs `rightcall capture` with SmolLM2 135M on this machine: unrepaired (guard none), parsed and repaired (guard parse),
and constrained by a grammar. `--write` writes the figures to docs/results.md and the raw rows to evals/captures.
`--rows` counts those rows again. `--demo` makes the recording that `rightcall demo` uses when there is no model.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import platform
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date
from importlib.metadata import version
from pathlib import Path

import msgspec
from report import ROOT, keep_part, percent, table, wilson

from rightcall import __version__
from rightcall.backends.exchange import Exchange, HttpRequest, HttpResponse
from rightcall.backends.local import LocalBackend
from rightcall.backends.recording import Recorder
from rightcall.capture.domain import built_in_names, find_domains
from rightcall.capture.runner import Capture, Watch
from rightcall.capture.score import Tally
from rightcall.capture.settings import Task
from rightcall.cli import demo_model
from rightcall.cli.demo_model import MODEL, MODES, run_modes
from rightcall.errors import RightcallError

ROWS = ROOT / "evals" / "captures"


class ProgressWatch(Watch):
    def scenario(self, task: Task) -> None:
        if sys.stderr.isatty():
            print(f"\r{task.number} {task.domain.name} {task.scenario.name}\033[K", end="", file=sys.stderr, flush=True)


class CachedExchange:
    """Exchange that sends each request once: at temperature 0 the model would only repeat its answer."""

    def __init__(self, inner: Exchange) -> None:
        self._inner = inner
        self._answers: dict[str, tuple[int, dict[str, str], list[bytes]]] = {}

    def keep(self) -> None:
        self._inner.keep()

    async def aclose(self) -> None:
        await self._inner.aclose()

    @asynccontextmanager
    async def open(self, request: HttpRequest) -> AsyncIterator[HttpResponse]:
        key = json.dumps([request.url, request.body])
        if key not in self._answers:
            async with self._inner.open(request) as response:
                self._answers[key] = response.status, response.headers, [piece async for piece in response.chunks]
        status, headers, chunks = self._answers[key]
        yield HttpResponse(status, headers, _replay(chunks))


async def _replay(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def run_captures(
    folder: Path, domains: Sequence[str], max_turns: int, modes: Sequence[str]
) -> dict[str, Capture]:
    """Run every domain in these modes. The model may answer with text: not every scenario expects a call."""
    runs = {}
    async with LocalBackend(MODEL, threads=1) as backend:
        backend.exchange = CachedExchange(backend.exchange)
        for mode in modes:
            settings = msgspec.structs.replace(MODES[mode].settings, choice="auto", max_turns=max_turns)
            runs[mode] = Capture(
                backend, find_domains(domains), settings, folder / f"{mode}.jsonl", watch=ProgressWatch()
            )
            await runs[mode].go()
    return runs


def figures_table(runs: Mapping[str, Tally]) -> str:
    lines = []
    for name, run in runs.items():
        of = run.total
        right = [_share(count, of.wanted) for count in (of.right_tool, of.right_arguments)]
        lines.append((MODES[name].about, _share(of.valid, of.calls), *right, f"{of.done} of {of.scenarios}"))
    return table(("way", "calls that are valid", "right tool", "right arguments", "scenarios done"), lines)


def _share(count: int, of: int) -> str:
    return f"{count} of {of} ({percent(count / max(1, of))})"


def problems_table(runs: Mapping[str, Tally]) -> str:
    lines = [(f"`{name}`", _most_common(run.problems), _most_common(run.repairs)) for name, run in runs.items()]
    return table(("way", "problems", "repairs"), lines)


def _most_common(of: Counter[str]) -> str:
    return ", ".join([f"`{code}` {count}" for code, count in of.most_common(6)]) or "none"


def compare_with_none(runs: Mapping[str, Tally]) -> str:
    """Return the comparison of each mode with guard `none`, as a list."""
    none, parse, grammar = [runs[name].total for name in ("none", "parse", "grammar")]
    lines = []
    for name, of in (("`parse`", parse), ("`grammar`", grammar)):
        for what, now, before in (
            ("valid calls", of.valid, none.valid),
            ("wanted calls with the right tool", of.right_tool, none.right_tool),
            ("wanted calls with the right arguments", of.right_arguments, none.right_arguments),
            ("scenarios that are done", of.done, none.done),
        ):
            suffix = "" if now > before else ". **No better.**" if now == before else ". **Worse.**"
            lines.append(f"- {name}, {what}: {before} -> {now}{suffix}")
    return "\n".join(lines)


def part(runs: Mapping[str, Tally], domains: Sequence[str], max_turns: int) -> str:
    settings = MODES["none"].settings
    of = runs["none"].total
    low, high = [f"{rate * 100:.0f} %" for rate in wilson(of.valid, of.calls)]
    versions = f"rightcall {__version__}, xllamacpp {version('xllamacpp')}, Python {platform.python_version()}"
    domains_option = "" if list(domains) == built_in_names() else f" --domains {','.join(domains)}"
    command = f".venv/bin/python evals/capture.py --write --max-turns {max_turns}{domains_option}"
    circumstances = f"{date.today().isoformat()}, {versions}, {platform.machine()}"
    return f"""## Captures: a small model over every stub domain

SmolLM2 135M runs {of.scenarios} scenarios of {len(domains)} domains ({", ".join(domains)}), each with at most
{max_turns} answer(s), after {settings.examples} solved scenarios of the same domain. *Valid*: of a tool that is
declared, with arguments that fit its schema, not cut off. *Right tool*, *right arguments*: as the scenario accepts them
(`capture/score.py`), of the calls that scenarios want. *Done*: every call that the scenario wants, and no other.

{circumstances}; temperature {settings.temperature:g}, seed {settings.seed}, max_tokens {settings.max_tokens}.

```sh
make capture    # runs the model and shows these figures
{command}    # the same, and writes this part and the raw rows
```

Raw rows: `evals/captures/none.jsonl.gz`, `parse.jsonl.gz`, `grammar.jsonl.gz`.

How it is asked and counted was settled after looking. With examples that show results, the model made no call in six
scenarios and wrote results instead, so the examples are calls alone. A first run over five domains, two answers each,
gave 3 valid calls of 10 as they stand and through `parse`, 44 of 52 with a grammar, and no scenario done. *Right tool*
first counted calls that were made over and over; now it counts up to what is wanted. `none` and `parse` share the
model's answers, since they ask the same, and so differ by reading alone. Where `--only` ran a way by itself, the ways
are of different hours; for the rows kept here that is `grammar`, whose model and examples were the same.

{figures_table(runs)}

Against guard `none`:

{compare_with_none(runs)}

{problems_table(runs)}

The counts are small: of the calls as they stand, between {low} and {high} would be valid in the long run (Wilson,
95 %). A grammar makes calls that can be made, not calls that are wanted: a model this small still picks the tool and
the values, and a grammar lets it go on to a second call where one was enough. A scenario that wants no call, or a
question back, is done if no call was made that holds: there a broken call does no harm, and one that was mended or held
to the tools does."""


async def record_demo() -> None:
    """Record the demo. At temperature 0 a repeated request gets the same answer, so each is recorded once."""
    recording = demo_model.CAPTURE_RECORDING
    with tempfile.TemporaryDirectory() as folder:
        await run_modes(Recorder(LocalBackend(MODEL, threads=1), recording, fresh=True), Path(folder))
    lines_by_request = {
        json.dumps(json.loads(line).get("request")): line for line in recording.read_text("utf-8").splitlines()
    }
    recording.write_text("\n".join([*lines_by_request.values(), ""]), "utf-8")


def store_rows(runs: Mapping[str, Capture]) -> None:
    ROWS.mkdir(exist_ok=True)
    for name, run in runs.items():
        (ROWS / f"{name}.jsonl.gz").write_bytes(gzip.compress(run.output.read_bytes(), mtime=0))


def count_stored_rows(domains: Sequence[str]) -> dict[str, Tally]:
    """Count the stored raw rows."""
    tallies = {name: Tally(find_domains(domains)) for name in MODES}
    for name, tally in tallies.items():
        with gzip.open(ROWS / f"{name}.jsonl.gz") as lines:
            for line in lines:
                tally.add(json.loads(line))
    return tallies


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--domains", default=",".join(built_in_names()), help="the domains to run (default: all)")
    parser.add_argument("--max-turns", type=int, default=1, metavar="N", help="number of model answers in one scenario")
    parser.add_argument("--write", action="store_true", help="write docs/results.md and evals/captures")
    parser.add_argument(
        "--only", choices=tuple(MODES), help="run one mode; use the rows in evals/captures for the others"
    )
    parser.add_argument("--rows", action="store_true", help="run no model; count the rows in evals/captures")
    parser.add_argument("--demo", action="store_true", help="only record the demo")
    options = parser.parse_args(arguments)
    domains = options.domains.split(",")
    try:
        if options.demo:
            asyncio.run(record_demo())
            return 0
        modes = () if options.rows else (options.only,) if options.only else tuple(MODES)
        tallies = _run(domains, options.max_turns, modes, write=options.write) if modes else {}
        tallies = {**count_stored_rows(domains), **tallies} if set(tallies) != set(MODES) else tallies
    except RightcallError as error:
        print(f"capture: {error}", file=sys.stderr)
        return 1
    print(f"{figures_table(tallies)}\n\n{compare_with_none(tallies)}")
    if options.write:
        keep_part("capture", part(tallies, domains, options.max_turns))
    return 0


def _run(domains: Sequence[str], max_turns: int, modes: Sequence[str], *, write: bool) -> dict[str, Tally]:
    with tempfile.TemporaryDirectory() as folder:
        runs = asyncio.run(run_captures(Path(folder), domains, max_turns, modes))
        if write:
            store_rows(runs)
    return {name: run.tally for name, run in runs.items()}


if __name__ == "__main__":
    sys.exit(main())
