"""What a small model's calls are worth over every stub domain, in three ways.    python evals/capture.py [--write]

Runs `rightcall capture` with SmolLM2 135M on this machine: as it wrote (guard none), read and repaired (guard parse),
and held to a grammar. `--write` puts the figures into docs/results.md and the raw rows beside this file; `--demo` makes
the recording that `rightcall demo` falls back on.
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
from rightcall.backend.exchange import Exchange, Received, Sent
from rightcall.backend.local import LocalBackend
from rightcall.backend.record import Recorder
from rightcall.capture.catalogue import find_all, names
from rightcall.capture.runner import Capture, Watch
from rightcall.capture.settings import Task
from rightcall.cli import demo_capture
from rightcall.cli.demo_capture import MODEL, WAYS, run_ways
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
    async def open(self, sent: Sent) -> AsyncIterator[Received]:
        key = json.dumps([sent.url, sent.body])
        if key not in self._said:
            async with self._inner.open(sent) as received:
                self._said[key] = received.status, received.headers, [piece async for piece in received.chunks]
        status, headers, pieces = self._said[key]
        yield Received(status, headers, _again(pieces))


async def _again(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def measured(folder: Path, domains: Sequence[str], max_turns: int) -> dict[str, Capture]:
    """Every domain in every way. The model may answer in words: not every scenario wants a call."""
    runs = {}
    async with LocalBackend(MODEL, threads=1) as backend:
        backend.exchange = Once(backend.exchange)
        for name, way in WAYS.items():
            settings = msgspec.structs.replace(way.settings, choice="auto", max_turns=max_turns)
            runs[name] = Capture(backend, find_all(domains), settings, folder / f"{name}.jsonl", watch=Ticking())
            await runs[name].go()
    return runs


def figures(runs: Mapping[str, Capture]) -> str:
    lines = []
    for name, run in runs.items():
        of = run.tally.total
        counts = (of.valid, of.right_tool, of.right_arguments)
        worth = [f"{count} ({percent(count / max(1, of.calls))})" for count in counts]
        lines.append((WAYS[name].about, of.scenarios, of.calls, *worth, f"{of.done} of {of.scenarios}"))
    head = ("way", "scenarios", "calls", "valid", "right tool", "right arguments", "scenarios done")
    return table(head, lines)


def wrong(runs: Mapping[str, Capture]) -> str:
    lines = [(f"`{name}`", _most(run.tally.problems), _most(run.tally.repairs)) for name, run in runs.items()]
    return table(("way", "problems", "repairs"), lines)


def _most(of: Counter[str]) -> str:
    return ", ".join([f"`{code}` {count}" for code, count in of.most_common(6)]) or "none"


def verdict(runs: Mapping[str, Capture]) -> str:
    """What gets better and what does not, read off the counts."""
    none, parse, grammar = [runs[name].tally.total for name in ("none", "parse", "grammar")]
    said = []
    for name, of in (("`parse`", parse), ("`grammar`", grammar)):
        for what, now, before in (
            ("valid calls", of.valid, none.valid),
            ("calls of the right tool", of.right_tool, none.right_tool),
            ("calls with the right arguments", of.right_arguments, none.right_arguments),
            ("scenarios that are done", of.done, none.done),
        ):
            said.append(f"- {name}, {what}: {before} -> {now}" + ("" if now > before else ". **No better.**"))
    return "\n".join(said)


def part(runs: Mapping[str, Capture], domains: Sequence[str]) -> str:
    some = next(iter(runs.values()))
    settings = some.settings
    of = some.tally.total
    low, high = [f"{rate * 100:.0f} %" for rate in wilson(of.valid, of.calls)]
    with_what = f"rightcall {__version__}, xllamacpp {version('xllamacpp')}, Python {platform.python_version()}"
    command = f".venv/bin/python evals/capture.py --write --max-turns {settings.max_turns}"
    made = f"{date.today().isoformat()}, {with_what}, {platform.machine()}"
    return f"""## Captures: a small model over every stub domain

SmolLM2 135M runs {of.scenarios} scenarios of {len(domains)} domains ({", ".join(domains)}), each with up to
{settings.max_turns} answers, after {settings.examples} solved scenarios of the same domain. *Valid*: of a tool that is
declared, with arguments that fit its schema, not cut off. *Right tool*, *right arguments*: as the scenario accepts them
(`capture/score.py`). *Done*: every call that the scenario wants, and no other.

{made}; temperature {settings.temperature:g}, seed {settings.seed}, max_tokens {settings.max_tokens}.

```sh
make capture    # runs the model and shows these figures
{command}    # the same, and writes this part and the raw rows
```

Raw rows: `evals/captures/none.jsonl.gz`, `parse.jsonl.gz`, `grammar.jsonl.gz`.

{figures(runs)}

Against guard `none`:

{verdict(runs)}

{wrong(runs)}

The counts are small: of the calls as they stand, between {low} and {high} would be valid in the long run (Wilson,
95 %). A grammar makes calls that can be made, not calls that are wanted: a model this small still picks the tool and
the values, and a grammar lets it go on to a second call where one was enough."""


async def record_demo() -> None:
    """At temperature 0 a question asked again is answered alike, so each is kept once."""
    recording = demo_capture.RECORDING
    recording.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        await run_ways(Recorder(LocalBackend(MODEL, threads=1), recording), Path(folder))
    kept = {json.dumps(json.loads(line).get("request")): line for line in recording.read_text("utf-8").splitlines()}
    recording.write_text("\n".join([*kept.values(), ""]), "utf-8")


def keep(runs: Mapping[str, Capture]) -> None:
    ROWS.mkdir(exist_ok=True)
    for name, run in runs.items():
        packed = gzip.compress(run.output.read_bytes(), mtime=0)
        (ROWS / f"{name}.jsonl.gz").write_bytes(packed)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--domains", default=",".join(names()), help="all of them unless said")
    parser.add_argument("--max-turns", type=int, default=2, metavar="N")
    parser.add_argument("--write", action="store_true", help="write docs/results.md and evals/captures")
    parser.add_argument("--demo", action="store_true", help="only make the recording of the demo")
    options = parser.parse_args(arguments)
    try:
        if options.demo:
            asyncio.run(record_demo())
            return 0
        with tempfile.TemporaryDirectory() as folder:
            runs = asyncio.run(measured(Path(folder), options.domains.split(","), options.max_turns))
            print(figures(runs))
            print(verdict(runs))
            if options.write:
                keep(runs)
                keep_part("capture", part(runs, options.domains.split(",")))
    except RightcallError as error:
        print(f"capture: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
