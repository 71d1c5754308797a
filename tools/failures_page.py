"""The page `docs/failures.md`: the reported failures, what a client gets without and with the proxy, and the tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from rightcall.doctor.failure_classes import FAILURE_CLASSES, FailureClass
from test_failure_remedies import PARTS
from zoo import ZOO
from zoo.bad_server import BadServer

_HEAD = """\
# Failures

What users of tool calling report, in classes, the most reported first. For each class: who suffers, what a client saw,
what it sees behind `rightcall serve`, and the test that shows both. `rightcall doctor` tells which a server has.

The servers are those of `tests/zoo/`: scripted ones that misbehave as the reports say, in each dialect in which it was
reported. `tests/test_zoo.py` asks each of them without the proxy, where a client breaks, and through it, where clients
of all five dialects and the providers' own SDKs get what was meant. Those of one: `pytest tests/test_zoo.py -k NAME`.
To point a client at it: `PYTHONPATH=tests python -m zoo`, then `http://127.0.0.1:8099/NAME/v1`.

This page is made by `make pages`.
"""
_DIALECTS = {"chat": "Chat", "responses": "Responses", "messages": "Messages", "ollama": "Ollama", "gemini": "Gemini"}


def page() -> str:
    """Return the whole page."""
    ranked = sorted(FAILURE_CLASSES.values(), key=lambda each: each.number)
    return _HEAD + "".join(map(_section, ranked))


def _section(failure: FailureClass) -> str:
    servers = [server for server in ZOO.values() if server.failure == failure.slug]
    lines = [f"\n## {failure.title}\n", f"`{failure.slug}`: {failure.what}\n", f"{failure.cure}{_remedy(failure)}\n"]
    lines.append(f"Who suffers: {', '.join(map(_link, _reports(failure, servers)))}.\n")
    if servers:
        lines += ["| server, and its tests | dialects | a client saw | it sees now |", "|---|---|---|---|"]
        lines += [*map(_row, servers), ""]
    if failure.slug in PARTS:
        lines.append(f"Test of the part: `tests/test_failure_remedies.py`, `{PARTS[failure.slug].__name__}`.\n")
    return "\n".join(lines)


def _remedy(failure: FailureClass) -> str:
    if failure.outcome == "reported":
        return " (reported, not cured)"
    return f" `rightcall serve --upstream URL {' '.join(failure.flags)}`" if failure.flags else ""


def _reports(failure: FailureClass, servers: list[BadServer]) -> list[str]:
    reports = [report for server in servers for report in server.reports.split()]
    return list(dict.fromkeys([*failure.threads, *reports]))


def _link(report: str) -> str:
    place, _, number = report.partition("#")
    return f"[{report}](https://github.com/{place}/issues/{number})"


def _row(server: BadServer) -> str:
    dialects = ", ".join([_DIALECTS[api] for api in server.apis])
    mode = "" if len(server.modes) == 2 else {"stream": ", streamed", "whole": ", whole"}[server.modes[0]]
    return f"| `{server.name}` | {dialects}{mode} | {_cell(server.symptom)} | {_cell(server.result)}{_with(server)} |"


def _with(server: BadServer) -> str:
    """Return the settings that a server needs, if the proxy's defaults are not enough."""
    settings = [f"`{name} = {value!r}`".replace("'", '"') for name, value in server.settings.items()]
    return f" (with {', '.join(settings)})" if settings else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
