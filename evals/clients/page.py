"""Generate docs/clients.md from the results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from clients.client import Client
from clients.everyone import CLIENTS
from clients.faults import BAD, GOOD, faults_for
from clients.incurable import INCURABLE
from clients.installing import ROOT
from clients.result_rows import ROUTES, Key, RunResult

PAGE = ROOT / "docs" / "clients.md"
Results = Mapping[Key, RunResult]
SIGNS = {"right": "+", "refused": "e", "ended badly": "x", "lost": "X", "out of time": "T"}
_TITLES = {
    "chat": "Chat Completions",
    "responses": "Responses",
    "messages": "Messages",
    "ollama": "Ollama",
    "gemini": "Gemini",
}

_HEAD = """# Real clients

<!-- made by `make clients`; do not edit -->

Each client did one task with tools, headless: read a file, change a word in it, answer. A scripted server played the
model and misbehaved in one way, in each answer with a call; the client was run straight before it, and then with
[`rightcall serve`](proxy.md) in between, as a process with its default settings. A run is right if the file was read
and holds the right word, the answer was shown, and the client ended with status 0, within 60 seconds.

`+` right · `e` the client refused the call, told the model so and went on: the file is unchanged · `x` done, and then
an error · `X` the turn is lost · `T` out of time · `·` not run. In each cell: without the proxy, then with it."""

_THREADS = """\
The tool runners of Anthropic's SDKs (anthropic-py-runner, anthropic-js) leave the conversation to the server, as a
thread. Servers that know no threads answer all the same, and the turn is lost even before a good one; the proxy tells
the SDK to send everything."""

_INCURABLE = """\
- `refuses_all`: the server takes no request with tools, in any form. The client gets the server's own reason.
- `breaks_off_after_words`: words have reached the client when the stream breaks. It cannot be asked again without
  saying them twice; the stream gets an end, and the client the words.
- `words_beside_a_call`: the model's own words before a call end the turn in clients that take the first text for the
  answer (pydantic-ai's `run_stream`). The words are the model's, and stay.
- `says_it_was_cut`: the server says that it reached a limit, right behind a call. In Chat Completions and Responses the
  call's own text shows that it is whole, and it is given. In the other dialects the server has parsed it and may have
  closed it itself: a call that may be half is not given, and the client learns of the limit."""


def page(results: Results) -> str:
    parts = [_HEAD, f"{_when(results.values())}\n{_how_long(results)}", _clients(results)]
    parts += [_dialect(api, results) for api in _TITLES]
    parts += [_failures(results), _not_run(results)]
    return "\n\n".join([part for part in parts if part]) + "\n"


def _when(played: Iterable[RunResult]) -> str:
    every = list(played)
    dates = sorted({each.date for each in every})
    inside = all(each.namespace for each in every)
    where = "in a network namespace of their own, from which only this machine can be reached"
    location = where if inside else "in part without a network namespace, so that they could reach the network"
    return f"{len(every)} runs, {dates[0]} to {dates[-1]}, {location}." if every else "Nothing was run yet."


def _how_long(results: Results) -> str:
    """Return how long `make clients` takes, from the runs that it includes."""
    cells = [(client.name, fault, way) for client in CLIENTS.values() for fault in faults_for(client) for way in ROUTES]
    durations = [seconds for cell in cells if cell in results and (seconds := results[cell].seconds) is not None]
    minutes = f"{sum(durations) / 60:.0f} minutes"
    return (
        f"{len(durations)} of them are those of `make clients`; one by one they took {minutes}, and two run at a time."
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _clients(results: Results) -> str:
    lines = ["## Clients", "", _row(["client", "version", "dialect", "faults", "right without", "right with"])]
    lines.append(_row(["---"] * 6))
    for client in CLIENTS.values():
        faults = [fault for fault in _run_faults(client, results) if fault != GOOD and fault not in INCURABLE]
        pairs = [pair for fault in faults if (pair := _pair(client, fault, results))]
        if not pairs:
            continue
        version = ", ".join(sorted({each.version for each in results.values() if each.client == client.name}))
        counts = [sum(each.outcome == "right" for each in column) for column in zip(*pairs, strict=True)]
        lines.append(_row([client.name, version, client.api, str(len(pairs)), *map(str, counts)]))
    return "\n".join([*lines, "", _THREADS])


def _pair(client: Client, fault: str, results: Results) -> tuple[RunResult, RunResult] | None:
    without, through = results.get((client.name, fault, "without")), results.get((client.name, fault, "with"))
    return (without, through) if without and through else None


def _run_faults(client: Client, results: Results) -> list[str]:
    return [fault for fault in [GOOD, *BAD] if any((client.name, fault, way) in results for way in ROUTES)]


def _dialect(api: str, results: Results) -> str:
    clients = [client for client in CLIENTS.values() if client.api == api and _run_faults(client, results)]
    faults = [fault for fault in [GOOD, *BAD] if any(fault in _run_faults(client, results) for client in clients)]
    if not faults:
        return ""
    lines = [f"## {_TITLES[api]}", "", _row(["the server", *[client.name for client in clients]])]
    lines.append(_row(["---"] * (len(clients) + 1)))
    lines += [_row([f"`{fault}`", *[_cell(client, fault, results) for client in clients]]) for fault in faults]
    symptoms = [f"- `{fault}`: {BAD[fault].symptom}" for fault in faults if fault in BAD]
    return "\n".join([*lines, "", "What clients saw of them, by the reports:", "", *symptoms])


def _cell(client: Client, fault: str, results: Results) -> str:
    signs = [_sign(results.get((client.name, fault, way))) for way in ROUTES]
    return "·" if signs == ["·", "·"] else " ".join(signs)


def _sign(played: RunResult | None) -> str:
    return "·" if played is None else SIGNS[played.outcome]


def _failures(results: Results) -> str:
    failures = [
        each
        for each in results.values()
        if each.way == "with" and each.outcome != "right" and each.fault not in INCURABLE
    ]
    lines = ["## What is not right behind the proxy", ""]
    lines += [_row(["client", "the server", "what became of it", "last words"]), _row(["---"] * 4)] if failures else []
    for each in sorted(failures, key=lambda each: (each.fault, each.client)):
        last_output = each.said.replace("|", "/").replace("`", "'")
        lines.append(_row([each.client, f"`{each.fault}`", each.outcome, f"`{last_output}`" if last_output else ""]))
    return "\n".join(
        [*lines, *([] if failures else ["Nothing of what was run, but for what no proxy can cure:"]), "", _INCURABLE]
    )


def _not_run(results: Results) -> str:
    never = [client.name for client in CLIENTS.values() if not _run_faults(client, results)]
    part = {
        client.name: missing
        for client in CLIENTS.values()
        if client.name not in never
        and (missing := [fault for fault in faults_for(client) if not _pair(client, fault, results)])
    }
    if not never and not part:
        return ""
    lines = ["## Not run", ""]
    lines += [f"- {', '.join(never)}: not at all."] if never else []
    lines += [f"- {name}: {', '.join(f'`{fault}`' for fault in missing)}." for name, missing in part.items()]
    return "\n".join(lines)
