"""Captures in tests: a tiny domain, a run against a loopback server, and its rows."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from rightcall.capture.capture_journal import journal_path
from rightcall.capture.domain import Domain, built_in_domain, read_domain
from rightcall.capture.runner import Capture, Watch
from rightcall.capture.settings import Settings
from support.loopback import Answering, Loopback, backend, serving

Json = dict[str, Any]

LAMPS = read_domain("""
name = "lamps"

[[tools]]
name = "switch"
description = "Switches a lamp."
parameters.type = "object"
parameters.properties = { lamp = { type = "string" }, on = { type = "boolean" } }
parameters.required = ["lamp", "on"]
answers = [
    { when = { lamp = { is = "attic" } }, error = "there is no lamp {lamp}" },
    { result = { lamp = "{lamp}", on = "{on}" } },
]

[[tools]]
name = "list_lamps"
description = "All lamps."
parameters = { type = "object", properties = {} }
answers = [{ result = ["hall", "kitchen"] }]

[[scenarios]]
name = "hall"
request = "Light in the hall, please."
calls = [{ name = "switch", arguments = { lamp = { is = "hall" }, on = { is = true } } }]

[[scenarios]]
name = "which"
request = "Which lamps are there?"
calls = [{ name = "list_lamps" }]
""")
SHOPPING: Domain = built_in_domain("shopping")


async def run_capture_async(
    output: Path,
    *answers: Answering,
    domains: list[Domain] | None = None,
    resume: bool = False,
    watch: Watch | None = None,
    **settings: Any,
) -> tuple[Capture, Loopback]:
    """Run a capture against a server that gives these answers."""
    capture_settings = Settings(**{"models": ("m",), "mode": "native", **settings})
    async with serving(*answers) as server:
        run = Capture(backend(server), domains or [LAMPS], capture_settings, output, resume=resume, watch=watch)
        await run.go()
    return run, server


def run_capture(output: Path, *answers: Answering, **options: Any) -> tuple[Capture, Loopback]:
    return asyncio.run(run_capture_async(output, *answers, **options))


def rows(output: Path) -> list[Json]:
    return [json.loads(line) for line in output.read_bytes().splitlines()]


def journal(output: Path) -> list[Json]:
    return rows(journal_path(output))


def steady(row: Json) -> Json:
    """Return the row without its timestamps."""
    text = re.sub(r"(-run-\d{5})-\d+", r"\1", json.dumps(row, sort_keys=True))
    found: Json = json.loads(text)
    del found["metadata"]["provenance"]["captured_at_unix_ms"]
    return found
