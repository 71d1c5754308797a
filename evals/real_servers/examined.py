"""What the doctor finds at a running server, dialect by dialect, and how `Backend` gets a call out of it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
from report import ROOT

from real_servers.installing import HERE, version
from real_servers.kinds import RealServer
from real_servers.running import Running
from rightcall import Tool
from rightcall.backends import Backend, Recorder, Request
from rightcall.backends.base import BaseBackend
from rightcall.backends.request import Mode
from rightcall.errors import BackendError

FOUND = HERE / "found"
CASSETTES = ROOT / "tests" / "cassettes" / "real_servers"
DIALECTS = ("chat", "responses", "messages", "completions", "ollama", "gemini")
MODES: tuple[Mode, ...] = ("native", "text", "grammar", "auto")
_DOCTOR = ("rightcall", "doctor", "{url}", "--model", "{model}", "--through", "--concurrency", "1", "--timeout", "300")
_WEATHER = Tool(
    name="get_weather",
    description="Tells the weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
_ASKED = Request(
    messages=[{"role": "user", "content": 'What is the weather? Call the tool get_weather with {"city": "Oslo"}.'}],
    tools=[_WEATHER],
    choice="required",
    temperature=0.0,
    max_tokens=200,
)


class Row(msgspec.Struct, frozen=True):
    """One probe, in one dialect and way: the verdict without and through the proxy, the class of failure, and why."""

    probe: str
    title: str
    way: str
    direct: str
    through: str
    slug: str = ""
    says: str = ""
    says_through: str = ""


class Part(msgspec.Struct, frozen=True):
    """One dialect, examined on a day: is it spoken, by how many requests it was told, and what each probe found."""

    on: str
    spoken: bool
    says: str = ""
    kind: str = ""
    cure: str = ""
    requests: int = 0
    seconds: float = 0.0
    rows: tuple[Row, ...] = ()


class Asked(msgspec.Struct, frozen=True):
    """One mode of `Backend`: the mode that was taken, whether the call came, whole and streamed, and why."""

    mode: str
    taken: str
    whole: str
    streamed: str
    why: str = ""


class Found(msgspec.Struct, frozen=True):
    """All that is known of one server."""

    name: str
    version: str
    command: str
    doctor: str
    parts: dict[str, Part] = {}
    asked: tuple[Asked, ...] = ()


def load(name: str) -> Found | None:
    path = FOUND / f"{name}.json"
    return msgspec.json.decode(path.read_bytes(), type=Found) if path.exists() else None


def keep(found: Found) -> None:
    FOUND.mkdir(exist_ok=True)
    (FOUND / f"{found.name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")


def begun(server: RealServer, running: Running) -> Found:
    """What is kept of this server; nothing of another version of it."""
    kept, told = load(server.name), version(server)
    parts, asked = (kept.parts, kept.asked) if kept is not None and kept.version == told else ({}, ())
    return Found(server.name, told, running.command, " ".join(_DOCTOR).format(url="URL", model="MODEL"), parts, asked)


def examined(running: Running, api: str) -> Part:
    """The doctor's table of one dialect, without and through the proxy."""
    words = [word.format(url=running.url, model=running.model) for word in _DOCTOR]
    with tempfile.TemporaryFile() as out:
        subprocess.run([sys.executable, "-m", *words, "--api", api, "--json"], stdout=out, check=False)
        out.seek(0)
        return part(json.load(out), running.url)


def part(told: dict[str, Any], url: str) -> Part:
    """What is kept of a diagnosis of one dialect."""
    (dialect,) = told["dialects"]
    through = {_key(each): each for each in (told.get("through") or {}).get("results", [])}
    return Part(
        on=date.today().isoformat(),
        spoken=dialect["spoken"],
        says=_plain(dialect["says"], url),
        kind=told["kind"],
        cure=told["cure"].replace(url, "URL"),
        requests=told["requests"] + (told.get("through") or {}).get("requests", 0),
        seconds=round(told["seconds"] + (told.get("through") or {}).get("seconds", 0.0)),
        rows=tuple([_row(each, through.get(_key(each), {}), url) for each in told["results"]]),
    )


def _key(result: dict[str, Any]) -> tuple[str, str]:
    return result["probe"], result["way"]


def _row(direct: dict[str, Any], through: dict[str, Any], url: str) -> Row:
    return Row(
        probe=direct["probe"],
        title=direct["title"],
        way=direct["way"],
        direct=direct["verdict"],
        through=through.get("verdict", "not asked"),
        slug=direct["slug"] or through.get("slug", ""),
        says=_plain(direct["says"], url),
        says_through=_plain(through.get("says", ""), url),
    )


def _plain(words: str, url: str) -> str:
    """Without what is another at every run, and where this folder is."""
    return words.replace(url, "URL").replace(str(Path.home()), "~")


def asked_in(running: Running, name: str) -> tuple[Asked, ...]:
    """How a forced call comes in each mode. What was sent and received is kept for the tests, which ask again."""
    cassette = CASSETTES / f"{name}.jsonl"
    cassette.unlink(missing_ok=True)
    asking = [Backend(running.url, model=running.model, mode=mode) for mode in MODES]
    return tuple([asked(Recorder(backend, cassette), backend.mode) for backend in asking])


def asked(backend: BaseBackend, mode: str) -> Asked:
    """One mode, whole and streamed."""
    try:
        answer = backend.complete_sync(_ASKED)
        stream = backend.stream_sync(_ASKED)
        for _ in stream:
            pass
    except BackendError as error:
        return Asked(mode, "", "no", "no", str(error))
    streamed = stream.answer
    assert streamed is not None
    return Asked(mode, streamed.mode, _came(answer.calls), _came(streamed.calls), "; ".join(answer.evidence))


def _came(calls: Any) -> str:
    return "; ".join([f"{call.name}({json.dumps(call.arguments)})" for call in calls]) or "no call"
