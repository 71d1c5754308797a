"""Generate docs/servers.md from the results in `found/`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from report import ROOT

from real_servers.examined import DIALECTS, DialectResult, Examination, Row, load
from real_servers.kinds import NOT_RUN, SERVERS, RealServer
from real_servers.working import ClientRun, load_workers

PAGE = ROOT / "docs" / "servers.md"
_HEAD = """# Real servers

What `rightcall doctor` finds at real model servers, without and through the proxy. Each was installed from PyPI and run
on one machine, on loopback, with SmolLM2 135M (`rightcall model pull smollm2`) and a chat template that has tools
(`evals/real_servers/tools.jinja`). This page is written by

```sh
make servers                         # all of them, one at a time: an hour or two on two cores, 8 GB of disk
make servers SERVER=vllm API=chat    # one of them, in one dialect
make servers CLIENTS=1               # real clients with a real model, at the end of this page
```

- **fault**: the server's. **model**: the model's; so small a one makes many. **not offered**: refused, and said so.
- **cured**: clients behind the proxy do not see it. The proxy runs with the flags of the line that the doctor shows.
- Each question was asked once, at temperature 0. What is said of calls and their arguments is said of a model of 135M
  weights; what is said of ids, events, finish reasons, refusals and leaks is said of the server.
- A fault that is neither cured nor left is gone, and what the model wrote then stands in its place (**model**).
- Commands are as they were run in `target/servers`. A dialect takes 4 to 30 minutes of two cores; what is not examined
  yet was left for that reason and no other.
"""
_AT_WORK = """## Real clients with a real model

Each did one task once, on {on}: read a file, change a word in it, answer. The calls were spelled out in the question,
as in [clients](clients.md). The model is [smollm2-tools](../models/smollm2-tools/README.md), 135M weights with an
adapter, in llama.cpp; its chat template has no place for tools, so the proxy offers them in the prompt. What the proxy
is judged by is whether calls come well-formed; that a task is not done is the model's weakness.

```sh
{line}
```

{told}
"""
_WORK_SEEN = """
- *fit*: the call is of a declared tool, and its arguments fit the schema. *done*: read, edited, and answered in words.
  This model goes on calling when all is done: the small programs end after six turns, LangChain's loop when its 240
  seconds are over (in an earlier run the guard ended it, with status 400 at the same call for the fourth time).
- anthropic-py and ollama-py: the model read `note.txt,`, which fits its schema and is no file; the program ends there.
- copilot: its first question has 12,318 tokens with 17 tools, and SmolLM2 reads 8,192: llama.cpp refuses it, and the
  client shows its words. It needs a larger model than this machine runs.
"""
_WELL = {"ok", "not offered"}
_DIALECTS = {"chat": "Chat", "responses": "Responses", "messages": "Messages", "completions": "completions"}


def page() -> str:
    stored = {name: examination for name in SERVERS if (examination := load(name)) is not None}
    sections = [_section(server, stored.get(name)) for name, server in SERVERS.items()]
    parts = [_HEAD, _summary(stored), *sections, *_client_section(), _not_run()]
    return "\n".join(parts)


def _summary(stored: dict[str, Examination]) -> str:
    head = ["server", "version", "dialects", "faults", "cured", "left", "new behind the proxy"]
    return "\n".join([_line(head), _line(["---"] * len(head)), *[_counts(name, stored[name]) for name in stored], ""])


def _counts(name: str, examination: Examination) -> str:
    rows = [row for part in examination.parts.values() for row in part.rows]
    if not rows:
        return _line([f"[{SERVERS[name].title}](#{_anchor(name)})", examination.version, "not examined yet", *[""] * 4])
    faults = [row for row in rows if row.direct == "fault"]
    remaining = sum([row.through == "fault" for row in faults])
    new = sum([row.through == "fault" and row.direct != "fault" for row in rows])
    cured = sum([row.through == "ok" for row in faults])
    spoken = ", ".join([_DIALECTS.get(api, api) for api, part in examination.parts.items() if part.spoken])
    return _line(
        [f"[{SERVERS[name].title}](#{_anchor(name)})", examination.version, spoken, len(faults), cured, remaining, new]
    )


def _anchor(name: str) -> str:
    return "".join([each for each in SERVERS[name].title.lower().replace(" ", "-") if each.isalnum() or each in "-_"])


def _section(server: RealServer, examination: Examination | None) -> str:
    lines = [f"## {server.title}", ""]
    if server.note:
        lines += [server.note, ""]
    if server.seen:
        lines += ["Seen by hand:", "", *[f"- {each}" for each in server.seen], ""]
    return "\n".join(
        [
            *lines,
            *(_examined(server, examination) if examination is not None else ["Not examined by the doctor yet.", ""]),
        ]
    )


def _examined(server: RealServer, examination: Examination) -> list[str]:
    days = sorted({part.on for part in examination.parts.values()})
    when = f", examined on {' and '.join(days)}" if days else ""
    lines = [f"Version {examination.version}{when}.", "", "```sh", examination.command, examination.doctor, "```", ""]
    for api, part in examination.parts.items():
        if part.spoken:
            lines += [*_dialect(api, part), ""]
    if silent := [api for api, part in examination.parts.items() if not part.spoken]:
        lines += [f"Not spoken: {', '.join(silent)}.", ""]
    if missing := [api for api in DIALECTS if api not in examination.parts]:
        why = f" {server.unasked}" if server.unasked else ""
        lines += [f"Not examined yet: {', '.join(missing)}.{why}", ""]
    return [*lines, *_modes(examination)]


def _dialect(api: str, part: DialectResult) -> list[str]:
    verdicts = Counter([row.direct for row in part.rows])
    verdicts_text = ", ".join([f"{verdicts[verdict]} {verdict}" for verdict in sorted(verdicts)])
    counts_after = Counter([row.through for row in part.rows])
    verdicts_after = ", ".join([f"{counts_after[verdict]} {verdict}" for verdict in sorted(counts_after)])
    lines = [
        f"### {_DIALECTS.get(api, api)}{_of(part)}",
        "",
        f"Without the proxy: {verdicts_text}. Through it: {verdicts_after}.",
    ]
    if part.says:
        lines += ["", part.says]
    if part.cure:
        lines += ["", "```sh", part.cure, "```"]
    lines += _faults(part.rows)
    return lines


def _faults(rows: Iterable[Row]) -> list[str]:
    """Return a table of the faults; whole and streamed share a row if both show the same."""
    ways_by_cells: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        if not {row.direct, row.through} <= _WELL:
            ways_by_cells.setdefault(_cells(row), []).append(row.way)
    if not ways_by_cells:
        return []
    lines = ["", _line(["probe", "way", "without", "through", "what was seen"]), _line(["---"] * 5)]
    return lines + [_line([cells[0], " and ".join(ways), *cells[1:]]) for cells, ways in ways_by_cells.items()]


def _of(part: DialectResult) -> str:
    return "" if not part.kind else f", recognised as {part.kind}"


def _cells(row: Row) -> tuple[str, ...]:
    direct = f"{row.direct}: `{row.slug}`" if row.direct == "fault" and row.slug else row.direct
    through = "cured" if row.direct == "fault" and row.through == "ok" else row.through
    observations = [_short(row.says) if row.direct not in _WELL else ""]
    if row.through not in _WELL and row.says_through != row.says:
        observations.append(f"through: {_short(row.says_through)}")
    return row.title, direct, through, "; ".join([each for each in observations if each])


def _modes(examination: Examination) -> list[str]:
    if not examination.asked:
        return []
    lines = ["### How `Backend` asks", "", _line(["mode", "taken", "whole", "streamed", "why"]), _line(["---"] * 5)]
    rows = [
        [each.mode, each.taken, f"`{each.whole}`", f"`{each.streamed}`", _short(each.why)] for each in examination.asked
    ]
    return [*lines, *[_line(row) for row in rows], ""]


def _client_section() -> list[str]:
    """Return the section about real clients with a real model."""
    stored = load_workers()
    if stored is None:
        return []
    head = ["client", "version", "API", "requests", "calls", "fit", "asked again", "read", "edited", "done", "seconds"]
    rows = [_client_row(each) for each in stored.workers]
    calls, sound = sum([each.calls for each in stored.workers]), sum([each.sound for each in stored.workers])
    done = sum([each.is_done for each in stored.workers])
    told = f"Calls that reached a client and fit their schemas: {sound} of {calls}. Tasks done: {done} of {len(rows)}."
    lines = [_AT_WORK.format(on=stored.on, line=stored.line, told=told), _line(head), _line(["---"] * len(head))]
    return ["\n".join([*lines, *[_line(row) for row in rows], _WORK_SEEN])]


def _client_row(each: ClientRun) -> list[object]:
    counts = (each.requests, each.calls, each.sound, each.retries)
    did = (_yes(each.was_read), _yes(each.was_edited), _yes(each.is_done))
    return [each.client, each.version, each.api, *counts, *did, round(each.seconds)]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _not_run() -> str:
    return "\n".join(["## Not run", "", *[f"- {name}: {why}." for name, why in NOT_RUN.items()], ""])


def _short(text: str, most: int = 200) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def _line(cells: list[object] | list[str]) -> str:
    return "| " + " | ".join([str(cell).replace("|", "\\|").replace("<", "&lt;") for cell in cells]) + " |"
