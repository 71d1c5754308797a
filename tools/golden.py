"""Compare how two trees parse the same inputs: `make golden BASE=COMMIT`.

The inputs are all texts and provider answers that the tests and the evaluations of BASE parse; `golden_inputs` records
and replays them. Inputs and outcomes are stored in target/golden, one folder for each base. `golden.json` has their
digests for the base commit of the restructured core; `--write` writes it again.

Exits with 1 if a call runs that did not run before, or runs with another name or other arguments, or if reading raises.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from golden_inputs import CORPUS, Replayer, encode, merge

Json = dict[str, Any]

HERE = Path(__file__).resolve().parent
DIGESTS = HERE / "golden.json"
QUICK = 15_000  # inputs
CHUNK = 1_000

_FORMAT = re.compile(r'"format":("[^"]*"|\{.*)')

# Functions that parse a model's text or a provider's answer, and tests that call them often for another purpose.
READS = re.compile(
    r"\b(parse|Parser|read|read_all|Stream|select|parse_many|detect|repair|hold_of_every_cut|from_text|Setting)\("
)
OTHER_TESTS = re.compile(
    "proxy|serve|ray|rows|cli|cost|backend|docs|layers|names[.]py|measure|wrap|workspace|dataset|capture|runner|guard"
    "|model_eval|exports|report|declare|doctor|constrain|sources|travel|pickling|hints|golden"
)
EVALUATIONS = (
    ("classes",),
    ("damaged", "--count", "100000"),
    ("shown", "--texts", "1000"),  # half of them
)

RUNS = "a call runs that did not run"
CHANGED = "a call runs with another name or other arguments"
RAISES = "reading raises an exception"
REJECTED = "a call that ran is rejected"
LOST = "a call that ran is text"
OPTION = "an option is refused"
CLASSES = (
    RUNS,
    CHANGED,
    RAISES,
    REJECTED,
    LOST,
    OPTION,
    "argument text or id of a call",
    "rejected calls",
    "problem codes",
    "repairs",
    "content",
    "reasoning",
    "format",
    "other fields",
    "spans",
    "streamed reply differs from the whole one",
    "streamed events",
)
FAILING = (RUNS, CHANGED, RAISES)


# -- comparison --------------------------------------------------------------------------------------------------------


def differences(before: Json, after: Json) -> list[str]:
    """Return the classes of difference between two outcomes of one input, worst first."""
    found = set(_reply_differences(before, after))
    old, new = before.get("streamed", {}), after.get("streamed", {})
    for cutting in old.keys() | new.keys():
        found |= set(_reply_differences(old.get(cutting, before), new.get(cutting, after)))
        if cutting not in old:
            found.add("streamed reply differs from the whole one")
    if before.get("events") != after.get("events") and not found:
        found.add("streamed events")
    return [name for name in CLASSES if name in found]


def _reply_differences(before: Json, after: Json) -> Iterator[str]:
    if "raised" in before or "raised" in after:
        if before.get("raised") != after.get("raised"):
            yield OPTION if after.get("raised") == "CallerError" else RAISES if "raised" in after else "other fields"
        return
    old, new = before.get("attempts", []), after.get("attempts", [])
    yield from _call_differences(old, new)
    if _rejected(old) != _rejected(new):
        yield "rejected calls"
    if before.get("problems", []) != after.get("problems", []):
        yield "problem codes"
    if [call["repairs"] for call in old if "repairs" in call] != [call["repairs"] for call in new if "repairs" in call]:
        yield "repairs"
    if [before.get(name) for name in ("content", "parts", "tags")] != [
        after.get(name) for name in ("content", "parts", "tags")
    ]:
        yield "content"
    for name in ("reasoning", "format", "spans"):
        if before.get(name) != after.get(name):
            yield name
    if any(before.get(name) != after.get(name) for name in ("done", "finish", "api", "usage", "extras")):
        yield "other fields"


def _call_differences(old: list[Json], new: list[Json]) -> Iterator[str]:
    """Yield the differences between runnable calls. Pair a new call with a lost one, preferably of the same name."""
    old_calls = [_meaning(call) for call in old if call["ok"]]
    new_calls = [_meaning(call) for call in new if call["ok"]]
    if old_calls == new_calls:
        if _texts(old) != _texts(new):
            yield "argument text or id of a call"
        return
    lost = list((Counter(old_calls) - Counter(new_calls)).elements())
    added = list((Counter(new_calls) - Counter(old_calls)).elements())
    if not lost and not added:
        yield CHANGED  # the order
    for name, _ in list(added):
        same = [call for call in lost if call[0] == name] or lost
        if same:
            lost.remove(same[0])
            yield CHANGED
        else:
            yield RUNS
    rejected = sum((Counter(_rejected(new)) - Counter(_rejected(old))).values())
    for _ in lost:
        yield REJECTED if rejected > 0 else LOST
        rejected -= 1


def _meaning(call: Json) -> tuple[str, str]:
    """Return name and arguments, independent of the order of keys."""
    arguments = call["arguments"] if "arguments" in call else json.loads(call.get("json") or "{}")
    return call.get("name", ""), json.dumps(arguments, sort_keys=True)


def _texts(calls: list[Json]) -> list[tuple[str, str]]:
    return [(call.get("json", ""), call.get("id", "")) for call in calls if call["ok"]]


def _rejected(calls: list[Json]) -> list[str]:
    return [call.get("name", "") for call in calls if not call["ok"]]


class Difference(NamedTuple):
    """One input that two trees parse differently."""

    classes: list[str]
    row: Json
    before: Json
    after: Json

    @property
    def format(self) -> str:
        return format_of(self.row, self.before)


def format_of(row: Json, outcome: Json) -> str:
    """Return the format that an input is counted under: its own, the one of `auto`, or the API of an answer."""
    if row["kind"] in ("read", "stream"):
        return f"{row['kind']} {outcome.get('api') or 'text'}"
    if row["kind"] == "repair":
        return "repair"
    format = row.get("format", "auto")
    if isinstance(format, dict):
        return "own format"
    return f"auto, {outcome.get('format', '?')}" if format == "auto" else str(format)


# -- inputs and outcomes -----------------------------------------------------------------------------------------------


class Inputs:
    """The recorded inputs of a base: one line of JSON each, by id; toolsets separately."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.toolsets: dict[str, Json] = {}
        self.lines: dict[str, str] = {}
        with gzip.open(path, "rt", encoding="ascii") as file:
            for line in file:
                if line.startswith('{"toolset":'):
                    row = json.loads(line)
                    self.toolsets[row["toolset"]] = row["value"]
                else:
                    self.lines[_id(line)] = line

    def sample(self, count: int, only: str) -> list[str]:
        """Return `count` ids, or all: first those of the corpus, then equally many of each other source.

        Ids are digests, so the first ones of a source are a fair sample of it. Inputs of one format are adjacent.
        """
        ids = sorted(self.lines)
        if only:
            ids = [id for id in ids if re.search(f'"format":("|.*"name":"){only}"', self.lines[id])]
        if count and count < len(ids):
            ids = self._of_sources(ids, count)
        return sorted(ids, key=lambda id: (_group(self.lines[id]), id))

    def _of_sources(self, ids: list[str], count: int) -> list[str]:
        sources: defaultdict[str, list[str]] = defaultdict(list)
        for id in ids:
            sources[json.loads(self.lines[id])["source"]].append(id)
        corpus = [id for source, some in sources.items() if CORPUS.search(source) for id in some][:count]
        generated = [some for source, some in sources.items() if not source.startswith("tests")]
        from_tests = [
            some for source, some in sources.items() if source.startswith("tests") and not CORPUS.search(source)
        ]
        chosen = [*corpus, *_spread(generated, (count - len(corpus)) // 3 if from_tests else count - len(corpus))]
        return [*chosen, *_spread(from_tests, count - len(chosen))]


def _spread(sources: list[list[str]], count: int) -> list[str]:
    """Return `count` ids, equally many of each source; larger sources fill up for small ones."""
    chosen: list[str] = []
    for at, some in enumerate(sorted(sources, key=len)):
        chosen += some[: (count - len(chosen)) // (len(sources) - at)]
    return chosen


def _id(line: str) -> str:
    """Return the id at the beginning of a line of inputs or outcomes."""
    return line[len('{"id":"') : line.index('"', len('{"id":"'))]


def record(tree: Path, folder: Path) -> Path:
    """Run the tests and the evaluations of a tree with the recorder, and write all inputs to one file."""
    path = folder / "inputs.jsonl.gz"
    if path.is_file():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as out:
        environment = _environment(tree, RIGHTCALL_GOLDEN_OUT=out, PYTHONHASHSEED="0")
        tests = [
            str(file.relative_to(tree))
            for file in sorted((tree / "tests").rglob("test_*.py"))
            if READS.search(file.read_text("utf-8")) and not OTHER_TESTS.search(file.name)
        ]
        if not tests:
            sys.exit(f"golden: no tests that parse in {tree}")
        _print_status(f"recording the inputs of {len(tests)} test files")
        options = ["-q", "-n", "2", "-p", "golden_inputs", "-p", "no:cacheprovider"]
        _run([sys.executable, "-m", "pytest", *options, *tests], tree, environment)
        for module in EVALUATIONS:
            _print_status(f"recording the inputs of {module[0]}")
            _run([sys.executable, "-m", "golden_inputs", *module], tree, environment)
        write_inputs(Path(out), path)
    return path


def write_inputs(recorded: Path, path: Path) -> None:
    def lines() -> Iterator[str]:
        for file in sorted(recorded.rglob("*.jsonl")):
            with file.open(encoding="ascii") as opened_file:
                yield from opened_file

    found = merge(lines())
    draft = path.with_suffix(".part")
    with gzip.GzipFile(draft, "wb", compresslevel=6, mtime=0) as file:
        for digest in sorted(found.toolsets):
            file.write(b'{"toolset":"%b","value":%b}\n' % (digest.encode(), encode(found.toolsets[digest]).encode()))
        for line in found.rows:
            file.write(line.encode() + b"\n")
    draft.replace(path)
    about = {"inputs": len(found.rows), "toolsets": len(found.toolsets), "skipped": dict(found.skipped)}
    path.with_name("about.json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")


def outcomes_of_base(tree: Path, inputs: Inputs, ids: list[str], processes: int) -> dict[str, str]:
    """Return the outcomes of these inputs in a base. Stored ones are used, missing ones are replayed.

    A change of the replay code invalidates all stored outcomes.
    """
    replay_digest = hashlib.sha256((HERE / "golden_inputs.py").read_bytes()).hexdigest()[:8]
    folder = inputs.path.with_name(f"outcomes-{replay_digest}")
    folder.mkdir(exist_ok=True)
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="ascii") as file:
            found.update({_id(line): line for line in file})
    missing = [id for id in ids if id not in found]
    if missing:
        fresh = {_id(line): line for line in replay(tree, inputs, missing, processes, "base")}
        part = folder / f"part{os.getpid()}"
        with gzip.open(part, "wt", compresslevel=3, encoding="ascii") as file:
            file.writelines(fresh.values())
        part.replace(folder / f"{len(missing)}-{os.getpid()}.jsonl.gz")
        found |= fresh
    return found


def replay(tree: Path, inputs: Inputs, ids: list[str], processes: int, what: str) -> Iterator[str]:
    """Yield the outcomes of these inputs in a tree, in this order, each a line of JSON that begins with its id."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="ascii") as input_file:
        json.dump(inputs.toolsets, input_file)
        input_file.writelines(["\n", *[inputs.lines[id] for id in ids]])
        input_file.flush()
        command = [sys.executable, str(HERE / "golden.py"), "replay", input_file.name, str(processes)]
        with subprocess.Popen(command, env=_environment(tree), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for done, line in enumerate(process.stdout, 1):
                if done % 500 == 0 or done == len(ids):
                    _print_progress(f"{what}: {done:,} of {len(ids):,}")
                yield line
    if process.returncode:
        sys.exit(f"golden: replaying in {tree} failed with {process.returncode}")


def replay_command(input_file: str, processes: int) -> None:
    """Print the outcomes of inputs; runs in a separate process, which imports rightcall from the tree."""
    toolsets, *lines = Path(input_file).read_text("ascii").splitlines()
    _begin_worker(json.loads(toolsets))
    if processes == 1:
        for chunk in _chunks(lines):
            sys.stdout.write(_outcomes(chunk))
        return
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for text in pool.imap(_outcomes, _chunks(lines)):
            sys.stdout.write(text)


def _chunks(lines: list[str]) -> Iterator[list[str]]:
    """Yield chunks of one format each, so that one process compiles its patterns."""
    chunk: list[str] = []
    for line in lines:
        if len(chunk) >= CHUNK or (chunk and _group(chunk[0]) != _group(line)):
            yield chunk
            chunk = []
        chunk.append(line)
    if chunk:
        yield chunk


def _group(line: str) -> str:
    found = _FORMAT.search(line)
    return found[1] if found else ""


_replayer: Any = None


def _begin_worker(toolsets: dict[str, Json]) -> None:
    global _replayer
    _replayer = Replayer(toolsets)


def _outcomes(lines: list[str]) -> str:
    found = []
    for line in lines:
        row = json.loads(line)
        found.append(f'{{"id":"{row["id"]}","outcome":{encode(_replayer.outcome(row))}}}\n')
    return "".join(found)


# -- trees -------------------------------------------------------------------------------------------------------------


def _environment(tree: Path, **more: str) -> dict[str, str]:
    """Return an environment in which Python imports rightcall, its tests and evaluations from a tree."""
    paths = [str(HERE), *[str(tree / name) for name in ("src", "tests", "evals", "fuzz", "tools")]]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "ignore", **more}


def _run(command: list[str], tree: Path, environment: dict[str, str]) -> None:
    """Run a command for the inputs that it parses; its exit status does not matter."""
    process = subprocess.run(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    _print_status("  " + (process.stdout.strip().splitlines() or ["no output"])[-1][:150])


@contextmanager
def check_out(base: str) -> Iterator[tuple[Path, str]]:
    """Yield the tree of a base and its cache key: a folder unchanged, a commit in a worktree."""
    if Path(base).is_dir():
        tree = Path(base).resolve()
        yield tree, _key_of(tree)
        return
    commit = _git("rev-parse", "--verify", f"{base}^{{commit}}")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "base"
        _git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree, commit[:12]
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _key_of(tree: Path) -> str:
    """Return the commit of a folder without changes; otherwise a digest of its files."""
    status = subprocess.run(["git", "-C", str(tree), "status", "--porcelain"], capture_output=True, text=True)
    if status.returncode == 0 and not status.stdout.strip():
        return _git("-C", str(tree), "rev-parse", "HEAD")[:12]
    digest = hashlib.sha256()
    for file in sorted([*(tree / "src").rglob("*.py"), *(tree / "tests").rglob("*.py")]):
        digest.update(file.read_bytes())
    return f"folder-{digest.hexdigest()[:12]}"


def _git(*arguments: str) -> str:
    process = subprocess.run(["git", *arguments], capture_output=True, text=True)
    if process.returncode:
        sys.exit(f"golden: git {' '.join(arguments)}: {process.stderr.strip()}")
    return process.stdout.strip()


# -- report ------------------------------------------------------------------------------------------------------------


def _print_status(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _print_progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text}", end="", file=sys.stderr, flush=True)


def report(found: list[Difference], count: int, examples: int) -> str:
    lines = [f"{count:,} inputs replayed, {len(found):,} parsed differently"]
    for name, some in by_class(found):
        formats = Counter([each.format for each in some])
        format_counts = ", ".join([f"{format} {times}" for format, times in formats.most_common(8)])
        more = f", {len(formats) - 8} more" if len(formats) > 8 else ""
        lines.append(f"{'FAIL' if name in FAILING else '    '} {name}: {len(some):,} ({format_counts}{more})")
        for each in some[:examples]:
            lines += example(each)
    return "\n".join(lines)


def by_class(found: list[Difference]) -> list[tuple[str, list[Difference]]]:
    """Return the differences of each class that has any, worst class first; shorter inputs first."""
    grouped: defaultdict[str, list[Difference]] = defaultdict(list)
    for each in sorted(found, key=lambda each: len(_input_text(each.row))):
        for name in each.classes:
            grouped[name].append(each)
    return [(name, grouped[name]) for name in CLASSES if name in grouped]


def _input_text(row: Json) -> str:
    for name in ("text", "pairs", "response", "chunks", "json"):
        if name in row:
            return row[name] if isinstance(row[name], str) else json.dumps(row[name], ensure_ascii=False)
    return ""


def example(each: Difference, most: int = 600) -> list[str]:
    options = {name: each.row[name] for name in ("format", "options", "tools", "name") if each.row.get(name)}
    lines = [
        f"       {each.row['id']} {each.row['source']} {json.dumps(options)[:200]}",
        f"         {_input_text(each.row)[:most]!r}",
    ]
    for name in sorted(each.before.keys() | each.after.keys()):
        old, new = each.before.get(name), each.after.get(name)
        if old != new:
            lines += [f"         - {name}: {json.dumps(old, ensure_ascii=False)[:most]}"]
            lines += [f"         + {name}: {json.dumps(new, ensure_ascii=False)[:most]}"]
    return [line.encode("utf-8", "backslashreplace").decode() for line in lines]


def as_json(found: list[Difference], count: int, examples: int) -> Json:
    classes = {
        name: {
            "count": len(some),
            "formats": dict(Counter([each.format for each in some])),
            "examples": [each._asdict() for each in some[:examples]],
        }
        for name, some in by_class(found)
    }
    return {"inputs": count, "different": len(found), "classes": classes}


def compare(rows: Inputs, old: dict[str, str], new: Iterable[str], ids: list[str]) -> list[Difference]:
    """Return all differences. Raise `SystemExit` if an outcome is missing on either side."""
    found = []
    done = 0
    for id, line in zip(ids, new, strict=True):
        if _id(line) != id or id not in old:
            sys.exit(f"golden: the outcome of {id} is missing")
        done += 1
        if line != old[id]:
            before, after = json.loads(old[id])["outcome"], json.loads(line)["outcome"]
            found.append(Difference(differences(before, after), json.loads(rows.lines[id]), before, after))
    if not done:
        sys.exit("golden: there are no inputs")
    return found


def digests(inputs: Inputs, outcomes: dict[str, str], base: str) -> Json:
    """Return the data of `golden.json`: numbers and digests of inputs and outcomes."""
    sources = Counter([json.loads(line)["source"] for line in inputs.lines.values()])
    texts = hashlib.sha256("".join([inputs.lines[id] for id in sorted(inputs.lines)]).encode())
    ends = hashlib.sha256("".join([outcomes[id] for id in sorted(outcomes)]).encode())
    return {
        "base": base,
        "inputs": len(inputs.lines),
        "inputs_digest": texts.hexdigest(),
        "outcomes": len(outcomes),
        "outcomes_digest": ends.hexdigest(),
        "sources": dict(sorted(sources.items())),
    }


def main() -> int:
    options = _options()
    cache = Path(options.cache or HERE.parent / "target" / "golden")
    with check_out(options.base) as (base, key):
        inputs = Inputs(record(base, cache / key))
        ids = inputs.sample(options.sample, options.only)
        if options.id:
            ids = [id for id in sorted(inputs.lines) if id.startswith(options.id)]
        old = outcomes_of_base(base, inputs, ids, options.processes)
    if options.write:
        DIGESTS.write_text(json.dumps(digests(inputs, old, key), indent=2) + "\n", "utf-8")
    tree = Path(options.tree).resolve()
    found = compare(inputs, old, replay(tree, inputs, ids, options.processes, "tree"), ids)
    _print_progress("\r" + " " * 40 + "\r")
    if options.id:
        example_lines = [line for each in found for line in example(each, 100_000)]
        print("\n".join([f"{len(ids)} inputs replayed, {len(found)} parsed differently", *example_lines]))
    elif options.json:
        print(json.dumps(as_json(found, len(ids), options.examples)))
    else:
        print(report(found, len(ids), options.examples))
    failing = [each for each in found if options.strict or set(each.classes) & set(FAILING)]
    return 1 if failing else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="a commit, or a folder with a tree")
    parser.add_argument("--tree", default=str(HERE.parent), help="the tree to compare with it (default: this one)")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help=f"replay N inputs ({QUICK:,} take a minute)")
    parser.add_argument("--only", default="", metavar="FORMAT", help="replay only inputs that name this format")
    parser.add_argument(
        "--id", default="", help="replay only the inputs whose id has this prefix, and print all of them"
    )
    parser.add_argument("--examples", type=int, default=0, metavar="N", help="print N examples of each class")
    parser.add_argument("--strict", action="store_true", help="fail for any difference")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cache", default="", help="folder for inputs and outcomes (default: target/golden)")
    parser.add_argument("--write", action="store_true", help="write the digests to golden.json")
    return parser.parse_args()


if __name__ == "__main__":
    if sys.argv[1:2] == ["replay"]:
        replay_command(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main())
