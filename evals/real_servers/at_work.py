"""Run real clients with a real model through the proxy, and count well-formed calls and completed tasks.

The clients and the task are those of `make clients`.

    make servers CLIENTS=1
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
from clients.client import Client, fill_placeholders
from clients.everyone import CLIENTS
from clients.installing import install, programs_of, search_path, version
from clients.sandbox import ProcessResult, run_bounded
from clients.stage import Proxy
from clients.task import AFTER, NEW, OLD, ONLY_IN_THE_FILE, ClientFolders, describe_task

from real_servers.kinds import WORKHORSE
from real_servers.running import running_server
from real_servers.working import RUNS_FILE, ClientRun, ClientRuns, load_workers

MODEL = "smollm2"
SECONDS = 240.0
WORKERS = "openai-py openai-py-whole openai-py-responses anthropic-py ollama-py ai-sdk langchain copilot".split()


def run_clients(names: list[str]) -> None:
    """Run the task once with each client."""
    chosen = [CLIENTS[name] for name in names or WORKERS]
    install([client.package for client in chosen])
    flags = ["--guard", "full"]
    with running_server(WORKHORSE) as at, tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        command = [sys.executable, "-m", "rightcall", "serve", "--port", "0", "--upstream", at.url, *flags]
        proxy = Proxy([*command, "--log", str(log), "--log-content"])
        try:
            for client in chosen:
                _store(
                    " ".join(["rightcall serve --upstream URL", *flags]),
                    _run_task(client, proxy.url, Path(folder), log),
                )
        finally:
            proxy.end()


def _store(line: str, client_run: ClientRun) -> None:
    stored = load_workers()
    before = {each.client: each for each in stored.workers} if stored is not None else {}
    runs = ClientRuns(date.today().isoformat(), line, tuple({**before, client_run.client: client_run}.values()))
    RUNS_FILE.write_bytes(msgspec.json.format(msgspec.json.encode(runs), indent=1) + b"\n")
    print(client_run, file=sys.stderr, flush=True)


def _run_task(client: Client, base: str, folder: Path, log: Path) -> ClientRun:
    folders = ClientFolders(folder / client.name)
    folders.prepare()
    before, started = len(_rows(log)), time.monotonic()
    process = _run(client, folders, _places(client, folders, base))
    time.sleep(1.0)  # the log is written after the answers
    rows = [row for row in _rows(log)[before:] if row.get("client")]
    edited = folders.file.read_text("utf-8", "replace") == AFTER
    was_read = any(ONLY_IN_THE_FILE in json.dumps(row.get("content")) for row in rows)
    return ClientRun(
        client=client.name,
        version=version(client.package),
        api=client.api,
        requests=len(rows),
        calls=sum([row.get("calls", 0) for row in rows]),
        sound=sum([row.get("calls", 0) for row in rows if _is_sound(row)]),
        retries=sum([row.get("retries", 0) for row in rows]),
        was_read=was_read,
        was_edited=edited,
        is_done=edited and was_read and process.status == 0 and not rows[-1].get("calls", 0),
        seconds=round(time.monotonic() - started),
        said=_last_output(process, folders),
    )


def _is_sound(row: dict[str, Any]) -> bool:
    """Return whether the calls were passed on because they fit. A call that was rejected only as a repetition fits."""
    return not row.get("gave_up") or not (row.get("problems") or row["gave_up"] != "pass")


def _rows(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []


def _run(client: Client, folders: ClientFolders, places: dict[str, str]) -> ProcessResult:
    for name, text in client.files.items():
        file = Path(fill_placeholders(name, places))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(fill_placeholders(text, places), "utf-8")
    env = {"PATH": search_path(client.package), "HOME": places["HOME"], "TERM": "dumb", "LANG": "C.UTF-8"}
    env |= {name: fill_placeholders(text, places) for name, text in client.env.items()}
    command_line = [fill_placeholders(word, places) for word in client.command]
    return run_bounded(command_line, env=env, folder=folders.workspace, seconds=SECONDS)


def _places(client: Client, folders: ClientFolders, base: str) -> dict[str, str]:
    """Return the placeholders of `make clients`, but with a file name that so small a model can find."""
    places = {
        "BASE": base,
        "MODEL": MODEL,
        "WORK": str(folders.workspace),
        "HOME": str(folders.home),
        "FILE": folders.file.name,
        "OLD": OLD,
        "NEW": NEW,
        "ANSWER": "done",
        "PROGRAMS": str(programs_of(client.package)),
    }
    return {**places, "TASK": describe_task(client, places)}


def _last_output(process: ProcessResult, folders: ClientFolders) -> str:
    lines = [line.strip() for line in process.printed.replace(str(folders.folder), "").splitlines() if line.strip()]
    return " ".join(lines[-2:])[-160:]
