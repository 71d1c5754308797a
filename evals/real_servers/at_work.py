"""Real clients at work with a real model, through the proxy: how many of its calls reach them well-formed, how many of
the tasks get done. The clients are those of `make clients`, and so is the task.

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
from clients.client import Client, filled
from clients.everyone import CLIENTS
from clients.installing import install, programs_of, search_path, version
from clients.sandbox import Ended, run_bounded
from clients.stage import Proxy
from clients.task import AFTER, NEW, OLD, ONLY_IN_THE_FILE, Room, told

from real_servers.kinds import WORKHORSE
from real_servers.running import running
from real_servers.working import KEPT, Worked, Working, load_workers

MODEL = "smollm2"
SECONDS = 240.0
WORKERS = "openai-py openai-py-whole openai-py-responses anthropic-py ollama-py ai-sdk langchain copilot".split()


def clients_at_work(names: list[str]) -> None:
    """Lets each do the task once."""
    chosen = [CLIENTS[name] for name in names or WORKERS]
    install([client.package for client in chosen])
    flags = ["--guard", "full"]
    with running(WORKHORSE) as at, tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        command = [sys.executable, "-m", "rightcall", "serve", "--port", "0", "--upstream", at.url, *flags]
        proxy = Proxy([*command, "--log", str(log), "--log-content"])
        try:
            for client in chosen:
                _keep(
                    " ".join(["rightcall serve --upstream URL", *flags]), _worked(client, proxy.url, Path(folder), log)
                )
        finally:
            proxy.end()


def _keep(line: str, worked: Worked) -> None:
    kept = load_workers()
    before = {each.client: each for each in kept.workers} if kept is not None else {}
    found = Working(date.today().isoformat(), line, tuple({**before, worked.client: worked}.values()))
    KEPT.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    print(worked, file=sys.stderr, flush=True)


def _worked(client: Client, base: str, folder: Path, log: Path) -> Worked:
    room = Room(folder / client.name)
    room.make_ready()
    before, began = len(_rows(log)), time.monotonic()
    ended = _run(client, room, _places(client, room, base))
    time.sleep(1.0)  # the log is written behind the answers
    rows = [row for row in _rows(log)[before:] if row.get("client")]
    edited = room.file.read_text("utf-8", "replace") == AFTER
    was_read = any(ONLY_IN_THE_FILE in json.dumps(row.get("content")) for row in rows)
    return Worked(
        client=client.name,
        version=version(client.package),
        api=client.api,
        requests=len(rows),
        calls=sum([row.get("calls", 0) for row in rows]),
        sound=sum([row.get("calls", 0) for row in rows if _is_sound(row)]),
        retries=sum([row.get("retries", 0) for row in rows]),
        was_read=was_read,
        was_edited=edited,
        is_done=edited and was_read and ended.status == 0 and not rows[-1].get("calls", 0),
        seconds=round(time.monotonic() - began),
        said=_last_words(ended, room),
    )


def _is_sound(row: dict[str, Any]) -> bool:
    """Did its calls go out because they fit? One that is given up on only because it was made before does."""
    return not row.get("gave_up") or not (row.get("problems") or row["gave_up"] != "pass")


def _rows(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []


def _run(client: Client, room: Room, places: dict[str, str]) -> Ended:
    for name, text in client.files.items():
        file = Path(filled(name, places))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(filled(text, places), "utf-8")
    env = {"PATH": search_path(client.package), "HOME": places["HOME"], "TERM": "dumb", "LANG": "C.UTF-8"}
    env |= {name: filled(text, places) for name, text in client.env.items()}
    words = [filled(word, places) for word in client.command]
    return run_bounded(words, env=env, folder=room.work, seconds=SECONDS)


def _places(client: Client, room: Room, base: str) -> dict[str, str]:
    """As in `make clients`, but for the file, which so small a model finds in the folder it works in."""
    places = {
        "BASE": base,
        "MODEL": MODEL,
        "WORK": str(room.work),
        "HOME": str(room.home),
        "FILE": room.file.name,
        "OLD": OLD,
        "NEW": NEW,
        "ANSWER": "done",
        "PROGRAMS": str(programs_of(client.package)),
    }
    return {**places, "TASK": told(client, places)}


def _last_words(ended: Ended, room: Room) -> str:
    lines = [line.strip() for line in ended.printed.replace(str(room.folder), "").splitlines() if line.strip()]
    return " ".join(lines[-2:])[-160:]
