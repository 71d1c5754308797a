"""One run: a client, a fault, with the proxy or without it."""

from __future__ import annotations

import re
import time
from pathlib import Path

from clients.client import Client, filled
from clients.faults import BAD
from clients.installing import ROOT, programs_of, search_path, version
from clients.result_rows import Played, Way
from clients.sandbox import Ended, run_bounded
from clients.stage import Stage
from clients.task import ANSWER, NEW, OLD, Room, judged, told

SECONDS = 60.0
_COLOURS = re.compile(r"\x1b\[[0-9;?]*+[a-zA-Z]")


def play(client: Client, fault: str, way: Way, stage: Stage, *, rooms: Path, namespace: bool) -> Played:
    room = Room(rooms / client.name)
    room.make_ready()
    stage.begin()
    settings = BAD[fault].settings if fault in BAD else {}
    places = _places(client, room, stage.base(client.api, through=way == "with", settings=settings), fault)
    started = time.monotonic()
    ended = _run(client, room, places)
    heard = stage.heard()
    outcome = judged(room, ended, heard)
    return Played(
        client=client.name,
        version=version(client.package),
        fault=fault,
        way=way,
        outcome=outcome,
        seconds=round(time.monotonic() - started, 1),
        requests=len(heard),
        date=time.strftime("%Y-%m-%d"),
        said="" if outcome == "right" else _last_words(_without_places(ended.printed, room.folder, ROOT)),
        namespace=namespace,
    )


def _places(client: Client, room: Room, base: str, fault: str) -> dict[str, str]:
    places = {
        "BASE": base,
        "MODEL": fault,
        "WORK": str(room.work),
        "HOME": str(room.home),
        "FILE": str(room.file),
        "OLD": OLD,
        "NEW": NEW,
        "ANSWER": ANSWER,
        "PROGRAMS": str(programs_of(client.package)),
    }
    return {**places, "TASK": told(client, places)}


def _run(client: Client, room: Room, places: dict[str, str]) -> Ended:
    for name, text in client.files.items():
        file = Path(filled(name, places))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(filled(text, places), "utf-8")
    own = {name: filled(text, places) for name, text in client.env.items()}
    env = {
        "PATH": search_path(client.package),
        "HOME": places["HOME"],
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
    }
    for command in filter(None, (client.before, client.command)):
        words = [filled(word, places) for word in command]
        ended = run_bounded(words, env={**env, **own}, folder=room.work, seconds=SECONDS)
    return ended


def _without_places(printed: str, *folders: Path) -> str:
    """What was printed, the same wherever it was run."""
    for folder in folders:
        printed = printed.replace(str(folder), "")
    return printed


def _last_words(printed: str) -> str:
    lines = [line.strip() for line in _COLOURS.sub("", printed).splitlines()]
    return " / ".join([line for line in lines if line][-3:])[-160:]
