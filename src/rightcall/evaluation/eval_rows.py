"""The raw rows of an evaluation, `rightcall-eval/v1`: a first line that says what the run is, then one per case, run
and configuration. A file may hold several runs, one after the other; the last one counts.

{"schema_version": "rightcall-eval/v1", "kind": "run", "run": {"model": "qwen3", ...}, "made": {...}}
{"schema_version": "rightcall-eval/v1", "kind": "case", "case": "questions/a", "configuration": "bare", "verdict": ...}
"""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from rightcall import __version__
from rightcall.errors import CallerError, FileFailed
from rightcall.evaluation.case_run import CaseRun
from rightcall.evaluation.eval_case import EvalCase, EvalVerdict, Played
from rightcall.storage.file_kinds import json_lines
from rightcall.storage.jsonl import LineFault, read_rows
from rightcall.types import Call, Json

SCHEMA = "rightcall-eval/v1"
EVALUATION = json_lines("evaluation", "schema_version", SCHEMA)
_LONGEST = 4_000  # characters of an answer that are kept


class EvalRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one case came to in one configuration, in one run.

    - `suite`, `case`, `category`, `run`, `configuration`: which it is.
    - `verdict`: what is right about it.
    - `ended`: "done", "stopped" by the guard, or "out of turns".
    - `turns`, `prompt_tokens`, `completion_tokens`, `seconds`: what it cost; an answer that another configuration had
      asked for already counts as if it had been asked for again.
    - `calls`: those of the last answer, of a task those of all; `ok` says whether one may run, and `runs`
      whether the guard lets it.
    - `wanted`: what was.
    - `text`: the last answer's.
    - `problems`, `repairs`, `interventions`: what was found and done on the way.
    """

    suite: str
    case: str
    category: str
    run: int
    configuration: str
    verdict: EvalVerdict
    ended: str
    turns: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    calls: tuple[Json, ...] = ()
    wanted: object = None
    text: str = ""
    problems: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    interventions: tuple[str, ...] = ()
    mode: str = ""
    format: str = ""
    seed: int | None = None
    at: str = ""

    @property
    def key(self) -> tuple[str, int, str]:
        """The same case of another evaluation has the same."""
        return self.case, self.run, self.configuration


def case_row(
    case: EvalCase, came: CaseRun, *, run: int, configuration: str, seconds: float, seed: int | None
) -> EvalRow:
    """The row of a conversation that was held."""
    answers, attempts = came.answers, came.played.attempts
    last = answers[-1] if answers else None
    return EvalRow(
        suite=case.suite,
        case=case.key,
        category=case.category,
        run=run,
        configuration=configuration,
        verdict=case.judge(came.played),
        ended=came.played.ended,
        turns=len(answers),
        prompt_tokens=sum([answer.tokens.prompt or 0 for answer in answers]),
        completion_tokens=sum([answer.tokens.completion or 0 for answer in answers]),
        seconds=round(seconds, 4),
        calls=tuple([_shown(call, came.played) for call in attempts]),
        wanted=case.wanted,
        text=came.played.text[:_LONGEST],
        problems=tuple([problem.code for answer in answers for problem in answer.problems]),
        repairs=tuple([repair.rule for call in attempts for repair in call.repairs]),
        interventions=came.interventions,
        mode=last.mode if last is not None else "",
        format=last.format if last is not None else "",
        seed=seed,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _shown(call: Call, played: Played) -> Json:
    return {"name": call.name, "arguments": call.arguments, "ok": call.ok, "runs": call in played.calls}


def row_json(row: EvalRow) -> Json:
    """A row as a line of the file holds it."""
    return {"schema_version": SCHEMA, "kind": "case", **msgspec.to_builtins(row)}


def head_json(run: Json, command: str = "") -> Json:
    """The line that begins a run: what it was told, by which `command`, when and with what it is made."""
    made = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "rightcall": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **({"command": command} if command else {}),
    }
    return {"schema_version": SCHEMA, "kind": "run", "run": run, "made": made}


class PastRun(msgspec.Struct):
    """The last run of a file: what it was told (`run`), how it was `made`, and its `rows`."""

    run: Json
    made: Json
    rows: list[EvalRow]


def read_evaluation(path: Path) -> PastRun | None:
    """The last run that a file holds; None if there is none. A last line that was torn is left out. Raises
    `CallerError`, `FileFailed`."""
    found: PastRun | None = None
    for number, row in read_rows(path):
        if isinstance(row, LineFault):
            if row.torn:
                break
            raise FileFailed(f"{path}:{number}: {row.message}; mend the line, or name another file")
        if row.get("schema_version") != SCHEMA:
            raise CallerError(f"{path}:{number}: it is no row of {SCHEMA}; `rightcall eval --out` writes such files")
        if row.get("kind") == "run":
            found = PastRun(_object(row, "run", path, number), _object(row, "made", path, number), [])
        elif found is not None:
            found.rows.append(_row(row, path, number))
    return found


def _object(row: Json, name: str, path: Path, number: int) -> Json:
    found = row.get(name, {})
    if not isinstance(found, dict):
        raise CallerError(f"{path}:{number}: `{name}` is no object; it is no row of {SCHEMA}")
    return found


def _row(row: Json, path: Path, number: int) -> EvalRow:
    try:
        return msgspec.convert(row, EvalRow)
    except msgspec.ValidationError as error:
        raise CallerError(f"{path}:{number}: {error}; it is no row of {SCHEMA}") from error
