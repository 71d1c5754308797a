"""Run one client against one fault, with or without the proxy."""

from __future__ import annotations

import re
import time
from pathlib import Path

from clients.client import Client, fill_placeholders
from clients.faults import BAD
from clients.installing import ROOT, programs_of, search_path, version
from clients.result_rows import Route, RunResult
from clients.sandbox import ProcessResult, run_bounded
from clients.stage import Stage
from clients.task import ANSWER, NEW, OLD, ClientFolders, classify_outcome, describe_task

SECONDS = 60.0
_COLOURS = re.compile(r"\x1b\[[0-9;?]*+[a-zA-Z]")


def run_client(client: Client, fault: str, way: Route, stage: Stage, *, rooms: Path, namespace: bool) -> RunResult:
    folders = ClientFolders(rooms / client.name)
    folders.prepare()
    stage.reset()
    settings = BAD[fault].settings if fault in BAD else {}
    places = _places(client, folders, stage.base(client.api, through=way == "with", settings=settings), fault)
    started = time.monotonic()
    process = _run(client, folders, places)
    requests = stage.received_requests()
    outcome = classify_outcome(folders, process, requests)
    return RunResult(
        client=client.name,
        version=version(client.package),
        fault=fault,
        way=way,
        outcome=outcome,
        seconds=round(time.monotonic() - started, 1),
        requests=len(requests),
        date=time.strftime("%Y-%m-%d"),
        said="" if outcome == "right" else _last_output(_without_paths(process.printed, folders.folder, ROOT)),
        namespace=namespace,
    )


def _places(client: Client, folders: ClientFolders, base: str, fault: str) -> dict[str, str]:
    places = {
        "BASE": base,
        "MODEL": fault,
        "WORK": str(folders.workspace),
        "HOME": str(folders.home),
        "FILE": str(folders.file),
        "OLD": OLD,
        "NEW": NEW,
        "ANSWER": ANSWER,
        "PROGRAMS": str(programs_of(client.package)),
    }
    return {**places, "TASK": describe_task(client, places)}


def _run(client: Client, folders: ClientFolders, places: dict[str, str]) -> ProcessResult:
    for name, text in client.files.items():
        file = Path(fill_placeholders(name, places))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(fill_placeholders(text, places), "utf-8")
    own = {name: fill_placeholders(text, places) for name, text in client.env.items()}
    env = {
        "PATH": search_path(client.package),
        "HOME": places["HOME"],
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
    }
    for command in filter(None, (client.before, client.command)):
        command_line = [fill_placeholders(word, places) for word in command]
        process = run_bounded(command_line, env={**env, **own}, folder=folders.workspace, seconds=SECONDS)
    return process


def _without_paths(printed: str, *folders: Path) -> str:
    """Remove the paths, so that the output is the same wherever it was run."""
    for folder in folders:
        printed = printed.replace(str(folder), "")
    return printed


def _last_output(printed: str) -> str:
    lines = [line.strip() for line in _COLOURS.sub("", printed).splitlines()]
    return " / ".join([line for line in lines if line][-3:])[-160:]
