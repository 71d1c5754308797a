"""One run: a client, a fault, with the proxy or without it; and what is written down of it."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import msgspec

from clients.client import Client, filled
from clients.faults import BAD
from clients.installing import TARGET, programs_of, search_path, version
from clients.sandbox import Ended, run_bounded
from clients.stage import Stage
from clients.task import ANSWER, NEW, OLD, Outcome, Room, judged, told

SECONDS = 60.0
RESULTS = TARGET / "results.jsonl"
_COLOURS = re.compile(r"\x1b\[[0-9;?]*+[a-zA-Z]")


class Played(msgspec.Struct, frozen=True):
    """A line of target/clients/results.jsonl."""

    client: str
    version: str
    api: str
    fault: str
    through: bool
    outcome: Outcome
    seconds: float
    requests: int
    said: str
    date: str
    namespace: bool

    @property
    def cell(self) -> tuple[str, str, bool]:
        return self.client, self.fault, self.through


def play(client: Client, fault: str, through: bool, stage: Stage, *, rooms: Path, namespace: bool) -> Played:
    room = Room(rooms / client.name)
    room.make_ready()
    stage.begin()
    settings = BAD[fault].settings if fault in BAD else {}
    places = _places(client, room, stage.base(client.api, through=through, settings=settings), fault)
    started = time.monotonic()
    ended = _run(client, room, places)
    heard = stage.heard()
    return Played(
        client=client.name,
        version=version(client.package),
        api=client.api,
        fault=fault,
        through=through,
        outcome=judged(room, ended, heard),
        seconds=round(time.monotonic() - started, 1),
        requests=len(heard),
        said=_last_words(ended.printed),
        date=time.strftime("%Y-%m-%d"),
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


def _last_words(printed: str) -> str:
    lines = [line.strip() for line in _COLOURS.sub("", printed).splitlines()]
    return " / ".join([line for line in lines if line][-3:])[-400:]


# -- the file of results -----------------------------------------------------------------------------------------------


def read_results(file: Path = RESULTS) -> dict[tuple[str, str, bool], Played]:
    """The last result of each cell."""
    if not file.exists():
        return {}
    lines = file.read_bytes().splitlines()
    return {each.cell: each for each in [msgspec.json.decode(line, type=Played) for line in lines]}


def add_result(played: Played, file: Path = RESULTS) -> None:
    with file.open("a", encoding="utf-8") as sink:
        sink.write(json.dumps(msgspec.to_builtins(played), ensure_ascii=False) + "\n")
