"""`dataset import`: logs of others as rows of ours, through the same reading, repair and check as a live model.

    rows_of({"messages": [...], "tools": [...]}, group="import-log-1")   ->   rows of rightcall-capture/v1

Each call is a row, with its receipts and problems; each answer without a call is an outcome.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from rightcall.apis.openai_chat import assistant_message
from rightcall.apis.sdk_view import dumps, text
from rightcall.apis.whole import read
from rightcall.capture.captured_rows import RESPOND, CallTrace, LineFault, capture_row, outcome_row, unix_ms
from rightcall.capture.stubs import StubOutcome
from rightcall.datasets.logs import Log, LogTurn, conversation
from rightcall.datasets.row_files import Seen, Where, digest, read_all
from rightcall.datasets.written_kinds import IMPORTED
from rightcall.declare.toolset import Toolset
from rightcall.errors import CallerError, RightcallError
from rightcall.files.whole_files import WholeFile
from rightcall.ids import Ids
from rightcall.strict_json import MAX_DEPTH, Undecodable, decode
from rightcall.types import Call, Json, Reply, Tool
from rightcall.wire.parser import parse

_KEPT = 200_000  # characters of tools that are kept when read


def rows_of(
    row: Json,
    *,
    group: str,
    kind: str = "auto",
    tools: Toolset | None = None,
    format: str = "auto",
    repair: str = "safe",
    rescue: str = "safe",
    reasoning_calls: str = "safe",
    model: str = "unknown",
    at: int | None = None,
) -> Iterator[Json]:
    """The rows of one logged conversation. Raises `RightcallError` if it is none, or its tools cannot be used."""
    log = conversation(row, kind)
    toolset = tools if tools is not None else _tools(log.tools)
    told = Toolset.lenient([]) if toolset is None else toolset
    if format == "auto" and log.format != "auto":
        format = log.format
    said = row.get("model")
    how = {"format": format, "repair": repair, "rescue": rescue, "reasoning_calls": reasoning_calls}
    made = _Walk(log, toolset, told, group, how, said if isinstance(said, str) and said else model, at)
    return made.rows()


def _tools(given: Any) -> Toolset | None:
    """Tools as logged: definitions of any provider, or JSON text with them. None if there are none."""
    if isinstance(given, str) and given.strip():
        given = decode(given, MAX_DEPTH)
    if not given or isinstance(given, Undecodable):
        return None
    said = dumps(given)
    return _read_tools(said) if len(said) < _KEPT else _read_tools.__wrapped__(said)


@lru_cache(64)
def _read_tools(said: str) -> Toolset:
    """Conversations share their tools: what was read is kept for a while."""
    return Toolset([tool for tool in Toolset(json.loads(said)) if tool.name != RESPOND.name])


class _Walk:
    """Goes through a conversation, turn by turn, and remembers it in OpenAI chat form."""

    def __init__(
        self,
        log: Log,
        tools: Toolset | None,
        told: Iterable[Tool],
        group: str,
        how: Mapping[str, str],
        model: str,
        at: int | None,
    ) -> None:
        self.log, self.tools, self.told = log, tools, told
        self.group, self.how, self.model, self.at = group, how, model, at
        self.ids = Ids()
        self.messages: list[Json] = []
        self.waiting: list[Call] = []  # calls without a result yet
        self.done: list[str] = []
        self.turn = 0

    def rows(self) -> Iterator[Json]:
        for at, entry in enumerate(self.log.entries):
            if isinstance(entry, LogTurn):
                yield from self._turn(entry, self.log.entries[at + 1 :])
                self.turn += 1
            else:
                self.messages.append(self._named(entry))

    def _named(self, message: Json) -> Json:
        """A result that does not say what it answers belongs to the first call that has none."""
        if message["role"] != "tool":
            self.waiting = []
            return message
        given = text(message.get("tool_call_id"))
        call = next((each for each in self.waiting if self.ids.received(each.id) == given), None)
        if call is None and self.waiting:
            call = self.waiting[0]
        if call is None:
            return message
        self.waiting.remove(call)
        self.done.append(call.name)
        return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": message["content"]}

    def _read(self, said: LogTurn) -> Reply:
        if said.api == "text":
            return parse(said.value, tools=self.tools, ids=self.ids, **self.how)  # type: ignore[arg-type]
        return read(said.value, tools=self.tools, api=said.api, ids=self.ids, **self.how)  # type: ignore[arg-type]

    def _turn(self, said: LogTurn, after: tuple[Json | LogTurn, ...]) -> Iterator[Json]:
        reply = self._read(said)
        assistant = assistant_message(reply, reasoning_key="reasoning_content")
        before, done = list(self.messages), list(self.done)
        shared: dict[str, Any] = {"group": self.group, "request": self._request(), "tools": self.told}
        shared |= {"messages": before, "assistant": assistant, "reply": said.value, "completed": done}
        shared["captured_at_unix_ms"] = self.at
        if not reply.attempts:
            problems = list(reply.problems)
            yield outcome_row(trace=self._trace(reply, 0, ""), text=reply.content, problems=problems, **shared)
        results = _results(after)
        of_no_call = [problem for problem in reply.problems if problem.call is None]
        for index, call in enumerate(reply.attempts):
            result = results.get(self.ids.received(call.id)) or (results.get(index) if "" in results else None)
            trace = self._trace(reply, index, call.id)
            yield capture_row(call, trace=trace, problems=[*call.problems, *of_no_call], result=result, **shared)
        self.messages.append(assistant)
        self.waiting = list(reply.attempts)

    def _request(self) -> str:
        said = [each["content"] for each in self.messages if each["role"] == "user" and each["content"].strip()]
        return said[-1] if said else "(nothing was asked)"

    def _trace(self, reply: Reply, index: int, id: str) -> CallTrace:
        return CallTrace(
            domain="import",
            scenario="log",
            run_index=0,
            turn=self.turn,
            model=self.model,
            call_index=index,
            tool_call_id=id,
            format=reply.format,
            mode="native" if reply.format in ("", "native") else "text",
            guard="parse",
            source="import",
            bucket="imported_log",
        )


def _results(after: tuple[Json | LogTurn, ...]) -> dict[str | int, StubOutcome]:
    """The results right behind a turn: by the id of their call, and by position where one has no id ("" says so)."""
    found: dict[str | int, StubOutcome] = {}
    for at, entry in enumerate(after):
        if isinstance(entry, LogTurn) or entry["role"] != "tool":
            break
        outcome = StubOutcome("ok", entry["content"])
        found[text(entry.get("tool_call_id"))] = found[at] = outcome
    return found


# -- files -------------------------------------------------------------------------------------------------------------


def import_files(
    paths: Iterable[str | Path],
    output: str | Path,
    *,
    kind: str = "auto",
    tools: Toolset | None = None,
    format: str = "auto",
    repair: str = "safe",
    rescue: str = "safe",
    reasoning_calls: str = "safe",
    model: str = "unknown",
    refused: Callable[[Where, str], None],
    seen: Seen | None = None,
    force: bool = False,
) -> Counter[str]:
    """Writes logs of others as rows of ours, through the same reading, repair and check as a live model. Gives counts
    of what was found.

    - `paths`: files of JSON lines, one conversation each.
    - `output`: the file.
    - `kind`: what the logs are; "auto" tells by their keys.
    - `tools`: what could be called, where the logs do not say.
    - `format`, `repair`, `rescue`, `reasoning_calls`: as in `parse`.
    - `model`: the model's name, where the logs do not say.
    - `refused`: is told of each line that holds no conversation, with its place and the reason.
    - `seen`, `force`: as in `export`.
    """
    counts: Counter[str] = Counter()
    at, files = unix_ms(), list(paths)
    options = {"kind": kind, "tools": tools, "format": format, "repair": repair, "model": model}
    options |= {"rescue": rescue, "reasoning_calls": reasoning_calls}
    with WholeFile(output, IMPORTED, sources=files, force=force) as out:
        for where, row in read_all(files, seen=seen):
            group = f"import-{digest(where.path).hex()[:8]}-{where.number:08d}"
            try:
                if isinstance(row, LineFault):
                    raise CallerError(row.message)
                made = list(rows_of(row, group=group, at=at, **options))  # type: ignore[arg-type]
            except RightcallError as error:
                counts["refused"] += 1
                refused(where, str(error))
                continue
            counts["conversations"] += 1
            for each in made:
                _counted(counts, each)
                out.write(each)
    return counts


def _counted(counts: Counter[str], row: Json) -> None:
    counts["calls" if "candidate_call" in row else "answers"] += 1
    counts["repairs"] += len(row.get("repairs", ()))
    counts["problems"] += len(row["problems"])
