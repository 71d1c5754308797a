"""The Ray engine with a real cluster of two workers.

It writes the same bytes as the local engine and survives the loss of a worker. The tests are skipped if Ray is not
installed; `make ray` installs it.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rightcall.datasets import row_files
from rightcall.datasets.exporting import export
from rightcall.datasets.rows import mapping
from rightcall.datasets.rows.engines import make_engine
from rightcall.datasets.rows.mapping import RowWork, Totals, map_rows
from rightcall.datasets.rows.sinks import sink_to
from rightcall.datasets.rows.sources import sources_of
from rightcall.errors import WorkerLost
from rightcall.storage.file_kinds import LINES
from rightcall.storage.jsonl import encode_row
from support.captured import CONVERSATIONS, RIGHT, SHOP, TO_REJECT, conversation, write
from support.command import run
from support.row_works import KillsAlways, KillsOnce, Numbered, Raises

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of Ray itself

TESTS = Path(__file__).parent
ROWS = [{"id": number, "text": f"row {number} " + "é" * (number % 17)} for number in range(2_000)]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    path = os.pathsep.join([str(TESTS), *sys.path])
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        runtime_env={"env_vars": {"PYTHONPATH": path}},
    )
    yield
    ray.shutdown()


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b"".join(map(encode_row, ROWS)) + b"{torn")
    return str(path)


def map_file(source: str, out: str, work: RowWork, engine: str, **more: Any) -> Totals:
    with sink_to(out, LINES, **more) as sink:
        return map_rows(sources_of([source]), work, sink, make_engine(engine, 2), part_size=4_000)


def test_both_engines_give_the_same_bytes_in_the_same_order(source: str, tmp_path: Path) -> None:
    totals = [map_file(source, str(tmp_path / f"{name}.jsonl"), Numbered(), name) for name in ("local", "ray")]
    assert totals[0] == totals[1]
    assert totals[0].bad == 1
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes() != b""


def test_compressed_rows_are_sent_to_the_workers(source: str, tmp_path: Path) -> None:
    import gzip

    packed = tmp_path / "in.jsonl.gz"
    packed.write_bytes(gzip.compress(Path(source).read_bytes()))
    for name in ("local", "ray"):
        map_file(str(packed), str(tmp_path / f"{name}.jsonl"), Numbered(), name)
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes() != b""


def test_a_killed_worker_loses_nothing(source: str, tmp_path: Path) -> None:
    map_file(source, str(tmp_path / "local.jsonl"), Numbered(), "local")
    for number in range(2):
        (tmp_path / f"kill{number}").touch()
    map_file(source, str(tmp_path / "ray.jsonl"), KillsOnce(tmp_path), "ray")
    assert not list(tmp_path.glob("kill*"))
    assert (tmp_path / "ray.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes()


def test_a_part_that_kills_every_worker_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(encode_row(ROWS[0]))
    with pytest.raises(WorkerLost, match="--engine local"):
        map_file(str(tmp_path / "in.jsonl"), str(tmp_path / "out.jsonl"), KillsAlways(), "ray")


def test_an_exception_of_the_work_is_raised_in_the_caller(source: str, tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="a fault of the work"):
        map_file(source, str(tmp_path / "out.jsonl"), Raises(), "ray")


def test_a_run_can_be_resumed_by_the_other_engine(source: str, tmp_path: Path) -> None:
    map_file(source, str(tmp_path / "whole.jsonl"), Numbered(), "local")
    out = tmp_path / "out.jsonl"
    with sink_to(str(out), LINES) as sink, pytest.raises(ZeroDivisionError):
        map_rows(sources_of([source]), Numbered(), sink, make_engine("local", 1), part_size=4_000, watch=_stop_at(5))
    totals = map_file(source, str(out), Numbered(), "ray", resume=True)
    assert 0 < totals.resumed < totals.rows
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def _stop_at(parts: int) -> Any:
    def watch(totals: Totals) -> None:
        if totals.parts == parts:
            raise ZeroDivisionError

    return watch


# -- the commands ------------------------------------------------------------------------------------------------------

REPLIES = [
    {"id": at, "model": f"m{at % 3}", "text": f"{RIGHT if at % 3 else TO_REJECT}\n{'é' * (at % 17)}"}
    for at in range(900)
]


@pytest.fixture(scope="module")
def input_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a folder with the files that the commands read."""
    folder = tmp_path_factory.mktemp("given")
    entries = [row for at in range(30) for row in conversation(f"g-{at}", CONVERSATIONS["retried"], run=at)]
    write(folder / "rows.jsonl", entries)
    (folder / "log.jsonl").write_bytes(b"".join(map(encode_row, REPLIES)) + b"{torn\n")
    (folder / "tools.json").write_text(json.dumps(SHOP.tools.definitions()))
    calls = [{"id": at, "calls": [{"name": "get_product", "arguments": '{"product_id": 7}'}]} for at in range(900)]
    (folder / "calls.jsonl").write_bytes(b"".join(map(encode_row, calls)))
    export([folder / "rows.jsonl"], folder / "forge.jsonl", to="forge-capture")
    batch = [{"custom_id": f"r{at}", "body": {"messages": [{"role": "user", "content": "?"}]}} for at in range(300)]
    answers = [{"custom_id": f"r{at}", "response": {"body": ANSWER}} for at in range(300)]
    (folder / "batch.jsonl").write_bytes(b"".join(map(encode_row, [*batch, *answers])))
    return folder


ANSWER = {"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "Yes."}}]}
COMMANDS: dict[str, tuple[str, ...]] = {
    "parse": ("parse", "--rows", "log.jsonl", "--tools", "tools.json", "--out", "OUT"),
    "check": ("check", "--rows", "calls.jsonl", "--tools", "tools.json", "--out", "OUT"),
    "repair": ("repair", "--rows", "calls.jsonl", "--tools", "tools.json", "--out", "OUT"),
    "report": ("report", "log.jsonl", "--tools", "tools.json", "--html", "OUT"),
    "dataset import": ("dataset", "import", "log.jsonl", "--from", "text", "--tools", "tools.json", "-o", "OUT"),
    "dataset import, joined": ("dataset", "import", "batch.jsonl", "forge.jsonl", "-o", "OUT"),
    "dataset label": ("dataset", "label", "rows.jsonl", "-o", "OUT"),
    "dataset dedupe": ("dataset", "dedupe", "rows.jsonl", "--near", "0.9", "-o", "OUT"),
    "dataset mutate": ("dataset", "mutate", "rows.jsonl", "--format", "hermes", "-o", "OUT"),
    "dataset export": ("dataset", "export", "rows.jsonl", "--to", "trl-preference", "-o", "OUT"),
    "dataset export, Parquet": ("dataset", "export", "rows.jsonl", "--to", "openai-sft", "-o", "OUT.parquet"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_writes_the_same_output_with_both_engines(
    name: str, input_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_files, "PART", 20_000)
    monkeypatch.setattr(mapping.map_rows, "__kwdefaults__", {"part_size": 20_000, "watch": None})
    monkeypatch.chdir(input_folder)
    outputs = []
    for engine in ("local", "ray"):
        arguments = [each.replace("OUT", str(tmp_path / engine)) for each in COMMANDS[name]]
        done = run(*arguments, "--jobs", "2", "--engine", engine, "--json")
        assert done.exit_code in (0, 1) and done.stdout, done.output
        outputs.append({key: each for key, each in json.loads(done.stdout).items() if key not in VARYING})
    suffix = ".parquet" if "Parquet" in name else ""
    here, there = ((tmp_path / f"{engine}{suffix}").read_bytes() for engine in ("local", "ray"))
    assert here == there != b""
    assert outputs[0] == outputs[1] != {}


VARYING = {"output", "path", "manifest", "seconds", "rows_per_second"}


# -- an S3 store -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("moto")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)])
    environ = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "XDG_STATE_HOME": str(tmp_path_factory.mktemp("state")),
    }
    before = dict(os.environ)
    os.environ.update(environ)
    try:
        _wait_for_port(port)
        from pyarrow import fs  # type: ignore[import-untyped]

        file_system = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", allow_bucket_creation=True)
        file_system.create_dir("logs")
        yield "s3://logs"
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.kill()
        server.wait()


def _wait_for_port(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the store did not start")


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_rows_are_mapped_from_bucket_to_bucket(engine: str, source: str, bucket: str, tmp_path: Path) -> None:
    from rightcall.datasets.rows.stores import RemoteStore

    store = RemoteStore()
    for number in range(2):
        with store.writing(f"{bucket}/{engine}/in{number}.jsonl") as write:
            write(Path(source).read_bytes())
    map_file(source, str(tmp_path / "here.jsonl"), Numbered(), "local")
    if engine == "ray":  # workers need the address of the store, as in a real cluster
        ray.shutdown()
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": _worker_env()})
    map_file(f"{bucket}/{engine}/*.jsonl", f"{bucket}/{engine}.jsonl", Numbered(), engine)
    with store.open(f"{bucket}/{engine}.jsonl") as file:
        assert file.read() == 2 * (tmp_path / "here.jsonl").read_bytes()


def _worker_env() -> dict[str, str]:
    environ = {key: value for key, value in os.environ.items() if key.startswith("AWS_")}
    return {**environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
