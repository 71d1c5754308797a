"""Compare what two trees read: `make golden BASE=COMMIT`.

The inputs are all texts and provider answers that the tests and the evaluations of BASE read; `golden_inputs` records
and replays them. Inputs and outcomes are kept in target/golden, one folder for each base; `golden.json` has their
digests for the base that the restructuring of the reading core began with; `--write` makes it anew.

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

from golden_inputs import CORPUS, Replayer, encoded, merged

Json = dict[str, Any]

HERE = Path(__file__).resolve().parent
DIGESTS = HERE / "golden.json"
QUICK = 15_000  # inputs
CHUNK = 1_000

_FORMAT = re.compile(r'"format":("[^"]*"|\{.*)')

# What reads a model's text or a provider's answer in a test, and tests that do so in numbers for another reason.
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
    """The classes of difference between two outcomes of one input, worst first."""
    found = set(_reply_differences(before, after))
    old, new = before.get("streamed", {}), after.get("streamed", {})
    for way in old.keys() | new.keys():
        found |= set(_reply_differences(old.get(way, before), new.get(way, after)))
        if way not in old:
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
    """Differences between the calls that run. A new call is paired with one that is gone, of the same name if it can
    be."""
    ran, runs = [_meaning(call) for call in old if call["ok"]], [_meaning(call) for call in new if call["ok"]]
    if ran == runs:
        if _texts(old) != _texts(new):
            yield "argument text or id of a call"
        return
    gone, added = list((Counter(ran) - Counter(runs)).elements()), list((Counter(runs) - Counter(ran)).elements())
    if not gone and not added:
        yield CHANGED  # the order
    for name, _ in list(added):
        same = [call for call in gone if call[0] == name] or gone
        if same:
            gone.remove(same[0])
            yield CHANGED
        else:
            yield RUNS
    rejected = sum((Counter(_rejected(new)) - Counter(_rejected(old))).values())
    for _ in gone:
        yield REJECTED if rejected > 0 else LOST
        rejected -= 1


def _meaning(call: Json) -> tuple[str, str]:
    """Name and arguments, whatever the order of keys."""
    arguments = call["arguments"] if "arguments" in call else json.loads(call.get("json") or "{}")
    return call.get("name", ""), json.dumps(arguments, sort_keys=True)


def _texts(calls: list[Json]) -> list[tuple[str, str]]:
    return [(call.get("json", ""), call.get("id", "")) for call in calls if call["ok"]]


def _rejected(calls: list[Json]) -> list[str]:
    return [call.get("name", "") for call in calls if not call["ok"]]


class Difference(NamedTuple):
    """One input that two trees read differently."""

    classes: list[str]
    row: Json
    before: Json
    after: Json

    @property
    def format(self) -> str:
        return format_of(self.row, self.before)


def format_of(row: Json, outcome: Json) -> str:
    """The format that an input is counted under: its own, what `auto` found, or the API of a provider's answer."""
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
    """The recorded inputs of a base: one line of JSON each, by id; toolsets apart."""

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
        """So many ids, or all: first those of the corpus, then as many of each other source. Ids are digests, so that
        the first ones of a source are a fair sample of it. Inputs of one format come together."""
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
        made = [some for source, some in sources.items() if not source.startswith("tests")]
        tested = [some for source, some in sources.items() if source.startswith("tests") and not CORPUS.search(source)]
        chosen = [*corpus, *_spread(made, (count - len(corpus)) // 3 if tested else count - len(corpus))]
        return [*chosen, *_spread(tested, count - len(chosen))]


def _spread(sources: list[list[str]], count: int) -> list[str]:
    """So many ids, as many of each source; what a small source does not have comes from the larger ones."""
    chosen: list[str] = []
    for at, some in enumerate(sorted(sources, key=len)):
        chosen += some[: (count - len(chosen)) // (len(sources) - at)]
    return chosen


def _id(line: str) -> str:
    """The id that a line of inputs or outcomes begins with."""
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
            sys.exit(f"golden: no reading tests in {tree}")
        _say(f"recording what {len(tests)} files of tests read")
        options = ["-q", "-n", "2", "-p", "golden_inputs", "-p", "no:cacheprovider"]
        _run([sys.executable, "-m", "pytest", *options, *tests], tree, environment)
        for module in EVALUATIONS:
            _say(f"recording what {module[0]} reads")
            _run([sys.executable, "-m", "golden_inputs", *module], tree, environment)
        write_inputs(Path(out), path)
    return path


def write_inputs(recorded: Path, path: Path) -> None:
    def lines() -> Iterator[str]:
        for file in sorted(recorded.rglob("*.jsonl")):
            with file.open(encoding="ascii") as opened:
                yield from opened

    found = merged(lines())
    whole = path.with_suffix(".part")
    with gzip.GzipFile(whole, "wb", compresslevel=6, mtime=0) as file:
        for digest in sorted(found.toolsets):
            file.write(b'{"toolset":"%b","value":%b}\n' % (digest.encode(), encoded(found.toolsets[digest]).encode()))
        for line in found.rows:
            file.write(line.encode() + b"\n")
    whole.replace(path)
    about = {"inputs": len(found.rows), "toolsets": len(found.toolsets), "skipped": dict(found.skipped)}
    path.with_name("about.json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")


def outcomes_of_base(tree: Path, inputs: Inputs, ids: list[str], processes: int) -> dict[str, str]:
    """The outcomes of these inputs in a base. They are kept; what is not kept yet is replayed. A change of the replay
    makes all of them anew."""
    replay_digest = hashlib.sha256((HERE / "golden_inputs.py").read_bytes()).hexdigest()[:8]
    folder = inputs.path.with_name(f"outcomes-{replay_digest}")
    folder.mkdir(exist_ok=True)
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="ascii") as file:
            found.update({_id(line): line for line in file})
    missing = [id for id in ids if id not in found]
    if missing:
        fresh = {_id(line): line for line in replayed(tree, inputs, missing, processes, "base")}
        part = folder / f"part{os.getpid()}"
        with gzip.open(part, "wt", compresslevel=3, encoding="ascii") as file:
            file.writelines(fresh.values())
        part.replace(folder / f"{len(missing)}-{os.getpid()}.jsonl.gz")
        found |= fresh
    return found


def replayed(tree: Path, inputs: Inputs, ids: list[str], processes: int, what: str) -> Iterator[str]:
    """The outcomes of these inputs in a tree, in this order, each a line of JSON that begins with its id."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="ascii") as wanted:
        json.dump(inputs.toolsets, wanted)
        wanted.writelines(["\n", *[inputs.lines[id] for id in ids]])
        wanted.flush()
        command = [sys.executable, str(HERE / "golden.py"), "replay", wanted.name, str(processes)]
        with subprocess.Popen(command, env=_environment(tree), stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for done, line in enumerate(process.stdout, 1):
                if done % 500 == 0 or done == len(ids):
                    _progress(f"{what}: {done:,} of {len(ids):,}")
                yield line
    if process.returncode:
        sys.exit(f"golden: replaying in {tree} failed with {process.returncode}")


def replay_command(wanted: str, processes: int) -> None:
    """Print the outcomes of inputs; runs in a process of its own, which imports rightcall from the tree."""
    toolsets, *lines = Path(wanted).read_text("ascii").splitlines()
    _begin_worker(json.loads(toolsets))
    if processes == 1:
        for chunk in _chunks(lines):
            sys.stdout.write(_outcomes(chunk))
        return
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        for text in pool.imap(_outcomes, _chunks(lines)):
            sys.stdout.write(text)


def _chunks(lines: list[str]) -> Iterator[list[str]]:
    """Inputs of one format belong together, so that one process compiles its patterns."""
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
        found.append(f'{{"id":"{row["id"]}","outcome":{encoded(_replayer.outcome(row))}}}\n')
    return "".join(found)


# -- trees -------------------------------------------------------------------------------------------------------------


def _environment(tree: Path, **more: str) -> dict[str, str]:
    """The environment in which Python imports rightcall, its tests and evaluations from a tree."""
    paths = [str(HERE), *[str(tree / name) for name in ("src", "tests", "evals", "fuzz", "tools")]]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "ignore", **more}


def _run(command: list[str], tree: Path, environment: dict[str, str]) -> None:
    """Run a command whose verdict does not matter: it is run for what it reads."""
    done = subprocess.run(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    _say("  " + (done.stdout.strip().splitlines() or ["no output"])[-1][:150])


@contextmanager
def checked_out(base: str) -> Iterator[tuple[Path, str]]:
    """The tree of a base and the name of its folder in the cache: a folder as it is, a commit in a worktree."""
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
    """The commit of a folder without changes; else a digest of its files."""
    status = subprocess.run(["git", "-C", str(tree), "status", "--porcelain"], capture_output=True, text=True)
    if status.returncode == 0 and not status.stdout.strip():
        return _git("-C", str(tree), "rev-parse", "HEAD")[:12]
    digest = hashlib.sha256()
    for file in sorted([*(tree / "src").rglob("*.py"), *(tree / "tests").rglob("*.py")]):
        digest.update(file.read_bytes())
    return f"folder-{digest.hexdigest()[:12]}"


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"golden: git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


# -- report ------------------------------------------------------------------------------------------------------------


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text}", end="", file=sys.stderr, flush=True)


def report(found: list[Difference], count: int, examples: int) -> str:
    lines = [f"{count:,} inputs replayed, {len(found):,} read differently"]
    for name, some in by_class(found):
        formats = Counter([each.format for each in some])
        shown = ", ".join([f"{format} {times}" for format, times in formats.most_common(8)])
        more = f", {len(formats) - 8} more" if len(formats) > 8 else ""
        lines.append(f"{'FAIL' if name in FAILING else '    '} {name}: {len(some):,} ({shown}{more})")
        for each in some[:examples]:
            lines += example(each)
    return "\n".join(lines)


def by_class(found: list[Difference]) -> list[tuple[str, list[Difference]]]:
    """The differences of each class that has any, worst class first; shorter inputs first."""
    grouped: defaultdict[str, list[Difference]] = defaultdict(list)
    for each in sorted(found, key=lambda each: len(_given(each.row))):
        for name in each.classes:
            grouped[name].append(each)
    return [(name, grouped[name]) for name in CLASSES if name in grouped]


def _given(row: Json) -> str:
    for name in ("text", "pairs", "response", "chunks", "json"):
        if name in row:
            return row[name] if isinstance(row[name], str) else json.dumps(row[name], ensure_ascii=False)
    return ""


def example(each: Difference, most: int = 600) -> list[str]:
    options = {name: each.row[name] for name in ("format", "options", "tools", "name") if each.row.get(name)}
    lines = [
        f"       {each.row['id']} {each.row['source']} {json.dumps(options)[:200]}",
        f"         {_given(each.row)[:most]!r}",
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
    """All differences. Raises `SystemExit` if an outcome is missing on either side."""
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
    """What `golden.json` holds: numbers and digests of inputs and outcomes."""
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
    with checked_out(options.base) as (base, key):
        inputs = Inputs(record(base, cache / key))
        ids = inputs.sample(options.sample, options.only)
        if options.id:
            ids = [id for id in sorted(inputs.lines) if id.startswith(options.id)]
        old = outcomes_of_base(base, inputs, ids, options.processes)
    if options.write:
        DIGESTS.write_text(json.dumps(digests(inputs, old, key), indent=2) + "\n", "utf-8")
    tree = Path(options.tree).resolve()
    found = compare(inputs, old, replayed(tree, inputs, ids, options.processes, "tree"), ids)
    _progress("\r" + " " * 40 + "\r")
    if options.id:
        shown = [line for each in found for line in example(each, 100_000)]
        print("\n".join([f"{len(ids)} inputs replayed, {len(found)} read differently", *shown]))
    elif options.json:
        print(json.dumps(as_json(found, len(ids), options.examples)))
    else:
        print(report(found, len(ids), options.examples))
    failing = [each for each in found if options.strict or set(each.classes) & set(FAILING)]
    return 1 if failing else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="a commit, or a folder with a tree")
    parser.add_argument("--tree", default=str(HERE.parent), help="the tree that is compared with it; this one")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help=f"replay N inputs; {QUICK:,} take a minute")
    parser.add_argument("--only", default="", metavar="FORMAT", help="replay only inputs that name this format")
    parser.add_argument("--id", default="", help="replay only the inputs whose id begins so, and print all of them")
    parser.add_argument("--examples", type=int, default=0, metavar="N", help="print N examples of each class")
    parser.add_argument("--strict", action="store_true", help="fail for any difference")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--cache", default="", help="where inputs and outcomes are kept; target/golden")
    parser.add_argument("--write", action="store_true", help="write the digests to golden.json")
    return parser.parse_args()


if __name__ == "__main__":
    if sys.argv[1:2] == ["replay"]:
        replay_command(sys.argv[2], int(sys.argv[3]))
    else:
        sys.exit(main())
