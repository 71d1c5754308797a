"""What a small model's calls are worth over every stub domain, in three ways.    python evals/capture.py [--write]

Runs `rightcall capture` with SmolLM2 135M on this machine: as it wrote (guard none), read and repaired (guard parse),
and held to a grammar. `--write` puts the figures into docs/results.md and the raw rows into evals/captures; `--rows`
counts those again; `--demo` makes the recording that `rightcall demo` falls back on.
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


class Ticking(Watch):
    def scenario(self, task: Task) -> None:
        if sys.stderr.isatty():
            print(f"\r{task.number} {task.domain.name} {task.scenario.name}\033[K", end="", file=sys.stderr, flush=True)


class Once:
    """An exchange that asks each question once: at temperature 0 the model would only say the same again."""

    def __init__(self, inner: Exchange) -> None:
        self._inner = inner
        self._said: dict[str, tuple[int, dict[str, str], list[bytes]]] = {}

    def keep(self) -> None:
        self._inner.keep()

    async def aclose(self) -> None:
        await self._inner.aclose()

    @asynccontextmanager
    async def open(self, sent: HttpRequest) -> AsyncIterator[HttpResponse]:
        key = json.dumps([sent.url, sent.body])
        if key not in self._said:
            async with self._inner.open(sent) as received:
                self._said[key] = received.status, received.headers, [piece async for piece in received.chunks]
        status, headers, pieces = self._said[key]
        yield HttpResponse(status, headers, _again(pieces))


async def _again(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def measured(folder: Path, domains: Sequence[str], max_turns: int, ways: Sequence[str]) -> dict[str, Capture]:
    """Every domain in these ways. The model may answer in words: not every scenario wants a call."""
    runs = {}
    async with LocalBackend(MODEL, threads=1) as backend:
        backend.exchange = Once(backend.exchange)
        for name in ways:
            settings = msgspec.structs.replace(MODES[name].settings, choice="auto", max_turns=max_turns)
            runs[name] = Capture(backend, find_domains(domains), settings, folder / f"{name}.jsonl", watch=Ticking())
            await runs[name].go()
    return runs


def figures(runs: Mapping[str, Tally]) -> str:
    lines = []
    for name, run in runs.items():
        of = run.total
        right = [_share(count, of.wanted) for count in (of.right_tool, of.right_arguments)]
        lines.append((MODES[name].about, _share(of.valid, of.calls), *right, f"{of.done} of {of.scenarios}"))
    return table(("way", "calls that are valid", "right tool", "right arguments", "scenarios done"), lines)


def _share(count: int, of: int) -> str:
    return f"{count} of {of} ({percent(count / max(1, of))})"


def wrong(runs: Mapping[str, Tally]) -> str:
    lines = [(f"`{name}`", _most(run.problems), _most(run.repairs)) for name, run in runs.items()]
    return table(("way", "problems", "repairs"), lines)


def _most(of: Counter[str]) -> str:
    return ", ".join([f"`{code}` {count}" for code, count in of.most_common(6)]) or "none"


def verdict(runs: Mapping[str, Tally]) -> str:
    """What gets better and what does not, read off the counts."""
    none, parse, grammar = [runs[name].total for name in ("none", "parse", "grammar")]
    said = []
    for name, of in (("`parse`", parse), ("`grammar`", grammar)):
        for what, now, before in (
            ("valid calls", of.valid, none.valid),
            ("wanted calls with the right tool", of.right_tool, none.right_tool),
            ("wanted calls with the right arguments", of.right_arguments, none.right_arguments),
            ("scenarios that are done", of.done, none.done),
        ):
            judged = "" if now > before else ". **No better.**" if now == before else ". **Worse.**"
            said.append(f"- {name}, {what}: {before} -> {now}{judged}")
    return "\n".join(said)


def part(runs: Mapping[str, Tally], domains: Sequence[str], max_turns: int) -> str:
    settings = MODES["none"].settings
    of = runs["none"].total
    low, high = [f"{rate * 100:.0f} %" for rate in wilson(of.valid, of.calls)]
    with_what = f"rightcall {__version__}, xllamacpp {version('xllamacpp')}, Python {platform.python_version()}"
    some = "" if list(domains) == built_in_names() else f" --domains {','.join(domains)}"
    command = f".venv/bin/python evals/capture.py --write --max-turns {max_turns}{some}"
    made = f"{date.today().isoformat()}, {with_what}, {platform.machine()}"
    return f"""## Captures: a small model over every stub domain

SmolLM2 135M runs {of.scenarios} scenarios of {len(domains)} domains ({", ".join(domains)}), each with at most
{max_turns} answer(s), after {settings.examples} solved scenarios of the same domain. *Valid*: of a tool that is
declared, with arguments that fit its schema, not cut off. *Right tool*, *right arguments*: as the scenario accepts them
(`capture/score.py`), of the calls that scenarios want. *Done*: every call that the scenario wants, and no other.

{made}; temperature {settings.temperature:g}, seed {settings.seed}, max_tokens {settings.max_tokens}.

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

{figures(runs)}

Against guard `none`:

{verdict(runs)}

{wrong(runs)}

The counts are small: of the calls as they stand, between {low} and {high} would be valid in the long run (Wilson,
95 %). A grammar makes calls that can be made, not calls that are wanted: a model this small still picks the tool and
the values, and a grammar lets it go on to a second call where one was enough. A scenario that wants no call, or a
question back, is done if no call was made that holds: there a broken call does no harm, and one that was mended or held
to the tools does."""


async def record_demo() -> None:
    """At temperature 0 a question asked again is answered alike, so each is kept once."""
    recording = demo_model.CAPTURE_RECORDING
    with tempfile.TemporaryDirectory() as folder:
        await run_modes(Recorder(LocalBackend(MODEL, threads=1), recording, fresh=True), Path(folder))
    kept = {json.dumps(json.loads(line).get("request")): line for line in recording.read_text("utf-8").splitlines()}
    recording.write_text("\n".join([*kept.values(), ""]), "utf-8")


def keep(runs: Mapping[str, Capture]) -> None:
    ROWS.mkdir(exist_ok=True)
    for name, run in runs.items():
        (ROWS / f"{name}.jsonl.gz").write_bytes(gzip.compress(run.output.read_bytes(), mtime=0))


def kept(domains: Sequence[str]) -> dict[str, Tally]:
    """The raw rows, counted again."""
    found = {name: Tally(find_domains(domains)) for name in MODES}
    for name, tally in found.items():
        with gzip.open(ROWS / f"{name}.jsonl.gz") as lines:
            for line in lines:
                tally.add(json.loads(line))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--domains", default=",".join(built_in_names()), help="all of them unless said")
    parser.add_argument("--max-turns", type=int, default=1, metavar="N", help="answers of the model in one scenario")
    parser.add_argument("--write", action="store_true", help="write docs/results.md and evals/captures")
    parser.add_argument(
        "--only", choices=tuple(MODES), help="run one way; of the others the rows in evals/captures count"
    )
    parser.add_argument("--rows", action="store_true", help="run nothing; count the rows in evals/captures")
    parser.add_argument("--demo", action="store_true", help="only make the recording of the demo")
    options = parser.parse_args(arguments)
    domains = options.domains.split(",")
    try:
        if options.demo:
            asyncio.run(record_demo())
            return 0
        ways = () if options.rows else (options.only,) if options.only else tuple(MODES)
        found = _run(domains, options.max_turns, ways, write=options.write) if ways else {}
        found = {**kept(domains), **found} if set(found) != set(MODES) else found
    except RightcallError as error:
        print(f"capture: {error}", file=sys.stderr)
        return 1
    print(f"{figures(found)}\n\n{verdict(found)}")
    if options.write:
        keep_part("capture", part(found, domains, options.max_turns))
    return 0


def _run(domains: Sequence[str], max_turns: int, ways: Sequence[str], *, write: bool) -> dict[str, Tally]:
    with tempfile.TemporaryDirectory() as folder:
        runs = asyncio.run(measured(Path(folder), domains, max_turns, ways))
        if write:
            keep(runs)
    return {name: run.tally for name, run in runs.items()}


if __name__ == "__main__":
    sys.exit(main())
