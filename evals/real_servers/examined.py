"""Run the doctor against a server, one dialect at a time, and try the modes of `Backend`."""

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
from real_servers.running import RunningServer
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
_FORCED_CALL = Request(
    messages=[{"role": "user", "content": 'What is the weather? Call the tool get_weather with {"city": "Oslo"}.'}],
    tools=[_WEATHER],
    choice="required",
    temperature=0.0,
    max_tokens=200,
)


class Row(msgspec.Struct, frozen=True):
    """One probe in one dialect and mode: verdict without and through the proxy, class of failure, and cause."""

    probe: str
    title: str
    way: str
    direct: str
    through: str
    slug: str = ""
    says: str = ""
    says_through: str = ""


class DialectResult(msgspec.Struct, frozen=True):
    """One dialect, examined on a day: whether the server supports it, the number of requests, and the probes."""

    on: str
    spoken: bool
    says: str = ""
    kind: str = ""
    cure: str = ""
    requests: int = 0
    seconds: float = 0.0
    rows: tuple[Row, ...] = ()


class ModeResult(msgspec.Struct, frozen=True):
    """One mode of `Backend`: the mode that was chosen, the call whole and streamed, and why."""

    mode: str
    taken: str
    whole: str
    streamed: str
    why: str = ""


class Examination(msgspec.Struct, frozen=True):
    """All results of one server."""

    name: str
    version: str
    command: str
    doctor: str
    parts: dict[str, DialectResult] = {}
    asked: tuple[ModeResult, ...] = ()


def load(name: str) -> Examination | None:
    path = FOUND / f"{name}.json"
    return msgspec.json.decode(path.read_bytes(), type=Examination) if path.exists() else None


def store(examination: Examination) -> None:
    FOUND.mkdir(exist_ok=True)
    (FOUND / f"{examination.name}.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(examination), indent=1) + b"\n"
    )


def load_examination(server: RealServer, running: RunningServer) -> Examination:
    """Return the stored results of this server; none of another version of it."""
    stored, current_version = load(server.name), version(server)
    parts, modes = (
        (stored.parts, stored.asked) if stored is not None and stored.version == current_version else ({}, ())
    )
    return Examination(
        server.name, current_version, running.command, " ".join(_DOCTOR).format(url="URL", model="MODEL"), parts, modes
    )


def examine_dialect(running: RunningServer, api: str) -> DialectResult:
    """Return the doctor's table of one dialect, without and through the proxy."""
    command_line = [word.format(url=running.url, model=running.model) for word in _DOCTOR]
    with tempfile.TemporaryFile() as out:
        subprocess.run([sys.executable, "-m", *command_line, "--api", api, "--json"], stdout=out, check=False)
        out.seek(0)
        return part(json.load(out), running.url)


def part(diagnosis: dict[str, Any], url: str) -> DialectResult:
    """Return the part of a diagnosis of one dialect that is stored."""
    (dialect,) = diagnosis["dialects"]
    through = {_key(each): each for each in (diagnosis.get("through") or {}).get("results", [])}
    return DialectResult(
        on=date.today().isoformat(),
        spoken=dialect["spoken"],
        says=_plain(dialect["says"], url),
        kind=diagnosis["kind"],
        cure=diagnosis["cure"].replace(url, "URL"),
        requests=diagnosis["requests"] + (diagnosis.get("through") or {}).get("requests", 0),
        seconds=round(diagnosis["seconds"] + (diagnosis.get("through") or {}).get("seconds", 0.0)),
        rows=tuple([_row(each, through.get(_key(each), {}), url) for each in diagnosis["results"]]),
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


def _plain(text: str, url: str) -> str:
    """Replace what differs between runs, and the path of this folder."""
    return text.replace(url, "URL").replace(str(Path.home()), "~")


def try_modes(running: RunningServer, name: str) -> tuple[ModeResult, ...]:
    """Try a forced call in each mode. Requests and responses are recorded for the tests, which replay them."""
    cassette = CASSETTES / f"{name}.jsonl"
    cassette.unlink(missing_ok=True)
    backends = [Backend(running.url, model=running.model, mode=mode) for mode in MODES]
    return tuple([try_mode(Recorder(backend, cassette), backend.mode) for backend in backends])


def try_mode(backend: BaseBackend, mode: str) -> ModeResult:
    """Try one mode, whole and streamed."""
    try:
        answer = backend.complete_sync(_FORCED_CALL)
        stream = backend.stream_sync(_FORCED_CALL)
        for _ in stream:
            pass
    except BackendError as error:
        return ModeResult(mode, "", "no", "no", str(error))
    streamed = stream.answer
    assert streamed is not None
    return ModeResult(
        mode, streamed.mode, _describe_calls(answer.calls), _describe_calls(streamed.calls), "; ".join(answer.evidence)
    )


def _describe_calls(calls: Any) -> str:
    return "; ".join([f"{call.name}({json.dumps(call.arguments)})" for call in calls]) or "no call"
